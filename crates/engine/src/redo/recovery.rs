//! Making, opening and recovering the log.
//!
//! How a recovery goes:
//! 1. The newer whole copy of the control block says which log file has the low LSN, and where redo begins.
//! 2. The control block and the files from that one on are synced: a killed process may have
//!    written last and not synced (L6). Batches are read from that file on, ahead of need
//!    ([`log_reader`](super::log_reader)). Records from the redo LSN on are done again in frames
//!    of the buffer cache; when there are too many of them, all are written
//!    ([`replay`](super::replay)). A block that is not whole is taken from its image, which the
//!    log has for every block that changed since the checkpoint.
//! 3. What transactions have no end is collected on the way: those that the checkpoint lists, and those that follow.
//! 4. The blocks are left to the cache, as changed and not written. The log goes on behind its last batch, with LSNs of its own.
//!
//! What it does not do: undo. That needs trees and rows, and is done through the same calls as any rollback
//! ([`crate::transaction`]), after which a checkpoint begins, as any other. A crash before it is complete finds the same control block and the same log,
//! longer by what was done since.
//!
//! Where the log ends: at the first place where no whole batch of the right LSN is. A batch is begun when everything before is durable (L2), so a
//! whole batch further on means that this one was whole once: then it is damage and not the end, and recovery refuses. Further on is: behind the
//! broken batch as far as a write reaches, or in the file of the next sequence.
//!
//! Cost: a record costs a look-up of its block and the copy of its bytes; the log is read in large requests of which several are in flight.
//! Limits: one thread does the records again.

use super::archiver::Archive;
use super::checkpoint::{self, Checkpoint, ControlFile, FileHeaders};
use super::claim::Claim;
use super::copier::{Copier, Purpose};
use super::epoch::{Epoch, Epochs, Standing};
use super::log::{Log, LogOptions};
use super::log_access;
use super::log_file::{self, BATCH_HEADER, BatchHeader, FILE_HEADER, FILES_MOST, FileHeader, Owner};
use super::log_reader::LogReader;
use super::log_writer::{BatchPlace, LogFile, LogWriter, Usage, charge};
use super::record::{Record, RecordKind, UNDER_WAY_BYTES, length_of};
use super::replay::Replay;
use super::sync_method::SyncChoice;
use crate::EngineError;
use crate::access::Access;
use crate::cache::BufferCaches;
use crate::database_id::DatabaseId;
use crate::settings::{Setting, Settings};
use crate::storage::block::LSN_MOST;
use crate::storage::control::{Catalog, FILE_NAME as CATALOG};
use crate::storage::log_places::LogPlaces;
use crate::storage::own_file::require_own_at;
use crate::storage::tablespace::{Extent, Purpose as Space};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{
    Arena, Channel, Disk, Durability, File, IoBuffer, IoError, Method, MethodKind, OpenMode, Operation,
    Request,
};
use plumb_units::{Bytes, Lsn, path_text};
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Numbers that direct path operations of one opening may have below the LSNs of its log.
const OPERATIONS: u64 = 1 << 30;
/// Bytes of a write when a log file is made.
const PIECE: usize = 1 << 20;
/// Bytes of log that are gone through at once: what blocks they change is known before the first one is.
const STRETCH: u64 = 4 << 20;

/// The files of a log in a database's home, those that there can be, where their places are the
/// usual ones.
pub fn files(home: &Path) -> impl Iterator<Item = PathBuf> {
    files_in(home, DatabaseId(0), LogPlaces::default())
}

/// The files that the log of a database can have.
pub(crate) fn files_in(
    home: &Path,
    database: DatabaseId,
    places: LogPlaces,
) -> impl Iterator<Item = PathBuf> {
    let numbered = (1..=FILES_MOST).flat_map(|number| [1, 2].map(|member| (number, member)));
    let control = [checkpoint::path(home), checkpoint::path(home).with_extension("new")];
    numbered.map(move |which| places.path(home, database, which)).chain(control)
}

/// True if a database has a log.
///
/// # Errors
/// When the control file knows of one and the log's control block is gone: log files that were made
/// anew would be the end of what only the old ones have.
pub(crate) fn has_log(disk: &Disk, home: &Path, reaches: Lsn) -> Result<bool, EngineError> {
    let path = checkpoint::path(home);
    let is_there = disk.exists(&path);
    if !is_there && reaches > Lsn(0) {
        let why = "it is missing, and the log files cannot be read without it; put it back, or restore the database from a copy";
        return Err(EngineError::Log { path, why: why.to_string() });
    }
    Ok(is_there)
}

/// The control block of a log in a database's home.
#[must_use]
pub fn control_block(home: &Path) -> PathBuf {
    checkpoint::path(home)
}

/// Refuses a control file that is older than the log's control block (L7): what it says of segments
/// is no longer so, and blocks of one would be read as another's.
pub(crate) fn require_newest(home: &Path, catalog: &Catalog, noted: &Checkpoint) -> Result<(), EngineError> {
    if catalog.definitions >= noted.definitions {
        return Ok(());
    }
    let why = format!(
        "it has {} changes of tables and indexes, and {} noted {}: it is older than the log and the data files; \
         put the newest one back, or restore the database from a backup",
        catalog.definitions,
        checkpoint::FILE_NAME,
        noted.definitions
    );
    Err(EngineError::ControlFile { path: home.join(CATALOG), why })
}

/// Names of a log's files in their usual places: those of first members, which the others are made
/// of.
pub(crate) fn usual_names(files: u32) -> impl Iterator<Item = String> {
    let path = |number| LogPlaces::default().path(Path::new(""), DatabaseId(0), (number, 1));
    (1..=files).map(move |number| path(number).display().to_string())
}

/// The files of a log that a copy of a database must have, in their usual places, each with its
/// least length.
///
/// # Errors
/// When the control block cannot be read, or is another database's.
pub(crate) fn log_files_of(
    disk: &Disk,
    home: &Path,
    catalog: &Catalog,
) -> Result<Vec<(String, u64)>, EngineError> {
    if !has_log(disk, home, Lsn(catalog.log_reaches))? {
        return Ok(Vec::new());
    }
    let path = checkpoint::path(home);
    let bytes = disk.read_small(&path)?.unwrap_or_default();
    let checkpoint = Checkpoint::newest(&bytes, catalog.database, &path)?;
    let logs = usual_names(checkpoint.log_files).map(|name| (name, checkpoint.file_bytes));
    let control = checkpoint::path(Path::new("")).display().to_string();
    Ok(logs.chain([(control, bytes.len() as u64)]).collect())
}

/// The directories of members within a database's home that are not the home itself.
pub(crate) fn directories_in(home: &Path, places: &LogPlaces) -> Vec<PathBuf> {
    let within = [1, 2].into_iter().filter(|member| !places.is_outside(*member));
    within.map(|member| places.directory(home, member)).filter(|directory| directory != home).collect()
}

/// What a database is whose log is made or opened.
#[derive(Debug, Clone, Copy)]
pub struct LogHome<'a> {
    /// Its directory.
    pub home: &'a Path,
    /// The same without links.
    pub canonical: &'a Path,
    /// Where its log files lie, or shall.
    pub places: &'a LogPlaces,
    /// Which one it is.
    pub database: DatabaseId,
    /// The way to its log files.
    pub access: &'a Access,
    /// Its settings.
    pub settings: &'a Settings,
    /// Its tablespaces.
    pub tablespaces: &'a Tablespaces,
    /// LSNs must be above it: numbers of operations so far.
    pub above: Lsn,
    /// Where the log ends, or behind.
    pub reaches: Lsn,
    /// Its buffer caches, which no block is in yet.
    pub caches: &'a BufferCaches,
    /// What may be done again.
    pub live: &'a [LiveExtent],
}

/// An extent of a segment that is there: records may be done again in it. One that the segment got later than it was created may be given records of the
/// segment before: its block is not in use yet then, and is new when it is.
#[derive(Debug, Clone, Copy)]
pub struct LiveExtent {
    /// Where it is.
    pub extent: Extent,
    /// The tablespace of its file.
    pub purpose: Space,
    /// When its segment was created: what the log has of it before was another's.
    pub created: Lsn,
    /// Whether it is read through the buffer cache; else by direct path.
    pub cached: bool,
}

/// A transaction that had no end when the log broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unended {
    /// Its number.
    pub transaction: u64,
    /// Its first record, or a place before it.
    pub first: Lsn,
    /// What of it is undone first.
    pub last: Lsn,
}

/// What a recovery did.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Transactions to undo.
    pub unended: Vec<Unended>,
    /// The least number that no transaction has had.
    pub next_transaction: u64,
    /// Records that were done again, or found done.
    pub record_count: u64,
    /// Bytes of them.
    pub redo_bytes: u64,
    /// Blocks that were changed; one that memory had no place for in between counts again.
    pub block_count: u64,
    /// Members of log files that were missing or damaged, and were made like the others.
    pub restored: Vec<String>,
}

/// How long log files are made for a size that was asked for.
fn of_whole_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// Refuses log files that are too short for the records of the largest blocks.
fn require_records(options: &LogOptions, log_block: u64, bytes: u64) -> Result<(), EngineError> {
    let least = FILE_HEADER + 3 * charge(options.record_max(), log_block as usize) as u64;
    if bytes >= least {
        return Ok(());
    }
    Err(EngineError::Contradiction {
        first: format!("log_file_size={}", Bytes(bytes).as_setting()),
        second: format!("a block size of {}", Bytes(options.block_bytes as u64).as_setting()),
        why: format!(
            "a log file must hold three of the longest records: at least {}",
            Bytes(of_whole_pages(least)).as_setting()
        ),
    })
}

impl LogHome<'_> {
    fn options(&self) -> Result<LogOptions, EngineError> {
        let buffer_bytes = self.settings.number(Setting::LogBuffer) as usize;
        let checkpoint_interval = self.settings.number(Setting::LogCheckpointInterval);
        // A record may be of blocks of any tablespace.
        let block_bytes = self.tablespaces.largest_block().bytes();
        let options = LogOptions { buffer_bytes, block_bytes, checkpoint_interval };
        if buffer_bytes < 2 * options.record_max() {
            return Err(EngineError::Contradiction {
                first: format!("log_buffer={}", Bytes(buffer_bytes as u64).as_setting()),
                second: format!("a block size of {}", Bytes(options.block_bytes as u64).as_setting()),
                why: format!(
                    "it must hold two of the longest records: at least {}",
                    Bytes((2 * options.record_max()).next_power_of_two() as u64).as_setting()
                ),
            });
        }
        Ok(options)
    }

    fn staging(&self, options: &LogOptions) -> Result<IoBuffer, EngineError> {
        Ok(Arena::buffers(options.buffer_bytes / 2 + FILE_HEADER as usize, 1)?.1.remove(0))
    }

    fn mirror(&self, options: &LogOptions, members: u32) -> Result<Option<IoBuffer>, EngineError> {
        if members > 1 { self.staging(options).map(Some) } else { Ok(None) }
    }

    /// The log writer's way to its files: a system call of its own, but for two members, which are written at once. The log writer's role goes from thread to
    /// thread, and the channel with it.
    fn channel(&self, members: u32) -> Result<Channel, EngineError> {
        let method = match members {
            1 => Method::start(MethodKind::Sync, 1)?,
            _ => self.access.method.for_any_thread(),
        };
        Ok(method.channel_of(members as usize, &[], &[])?)
    }

    /// Makes the log files and the control block. Until the control block is there the database has no log, and what was made is made anew.
    ///
    /// # Errors
    /// When a file cannot be made, or the settings contradict each other.
    pub fn create(&self, session: &Session) -> Result<Log, EngineError> {
        let options = self.options()?;
        let bytes = of_whole_pages(self.settings.number(Setting::LogFileSize));
        let count = self.settings.number(Setting::LogFileGroups) as u32;
        let log_block = self.log_block();
        require_records(&options, log_block, bytes)?;
        let first = Lsn((self.above.0 + OPERATIONS).max(self.reaches.0).next_multiple_of(8));
        let members = self.settings.number(Setting::LogFileMembers) as u32;
        self.make_places(members)?;
        self.require_no_log(count, members)?;
        let none = Epochs::default();
        let epoch = if self.is_outside() { none.next(&self.access.disk).now } else { none.now };
        let owner = self.owner(epoch);
        let mut files = Vec::new();
        for number in 1..=count {
            let of_file =
                (1..=members).map(|member| self.create_member(session, (number, member), (bytes, &owner)));
            let header = FileHeader::unused(self.database, number);
            let members = of_file.collect::<Result<_, _>>()?;
            files.push(LogFile { members, header, bytes, usage: Usage::Free, archived: true });
        }
        for member in 1..=members {
            self.access.disk.sync_directory(&self.places.directory(self.home, member))?;
        }
        let archive = self.archive()?;
        let sync = self.choose_sync(session, &mut files, log_block)?;
        let mut writer = LogWriter {
            database: self.database,
            owner,
            files,
            current: 0,
            offset: FILE_HEADER,
            next: first,
            end: first,
            opening: self.access.disk.random_id() as u64,
            block: log_block as usize,
            written: 0,
            spare: charge(options.record_max(), log_block as usize),
            sync,
            archives: archive.is_some(),
            channel: self.channel(members)?,
            staging: Some(self.staging(&options)?),
            mirror: self.mirror(&options, members)?,
        };
        writer.begin_file(session, 0, 1)?;
        let checkpoint = Checkpoint {
            database: self.database,
            serial: 0,
            redo: first,
            low: first,
            sequence: 1,
            next_transaction: 1,
            log_block: log_block as u32,
            log_files: count,
            members,
            file_bytes: bytes,
            headers: FileHeaders::NotNoted,
            epochs: Epochs { now: epoch, before: epoch },
            definitions: 0,
        };
        let control = self.create_control(session, &checkpoint)?;
        Log::new(options, (writer, archive), (control, checkpoint), VecDeque::new())
    }

    /// The control block gets its name when it is whole.
    fn create_control(&self, session: &Session, checkpoint: &Checkpoint) -> Result<ControlFile, EngineError> {
        let path = checkpoint::path(self.home);
        let beside = path.with_extension("new");
        let disk = &self.access.disk;
        if disk.exists(&beside) {
            disk.remove(&beside)?;
        }
        let mut made = ControlFile::open_at(self.access, &beside, OpenMode::Create)?;
        made.write(session, &Checkpoint { serial: 1, ..*checkpoint })?;
        made.write(session, checkpoint)?;
        disk.sync_directory(self.home)?;
        disk.rename(&beside, &path)?;
        disk.sync_directory(self.home)?;
        drop(made);
        ControlFile::open_at(self.access, &path, OpenMode::Write)
    }

    /// Makes the directories of members that are within the database's; those outside are there.
    fn make_places(&self, members: u32) -> Result<(), EngineError> {
        for member in (1..=members).filter(|member| !self.places.is_outside(*member)) {
            self.access.disk.make_directory(&self.places.directory(self.home, member))?;
        }
        Ok(())
    }

    /// The least piece that log files in their directories are written by.
    fn log_block(&self) -> u64 {
        let of = |member| log_access::log_block(self.access, &self.places.directory(self.home, member));
        of(1).max(if self.places.is_outside(2) { of(2) } else { 0 })
    }

    fn is_outside(&self) -> bool {
        [1, 2].into_iter().any(|member| self.places.is_outside(member))
    }

    /// The owner that headers name where a member lies outside of the home.
    fn owner(&self, epoch: Epoch) -> Owner {
        match self.is_outside() {
            true => Owner { home: self.canonical.to_path_buf(), epoch },
            false => Owner::default(),
        }
    }

    fn claim<'c>(&'c self, checkpoint: &Checkpoint) -> Claim<'c> {
        let LogHome { home, canonical, database, access, .. } = *self;
        Claim { disk: &access.disk, home, canonical, database, epochs: checkpoint.epochs }
    }

    fn path(&self, number: u32, member: u32) -> PathBuf {
        self.places.path(self.home, self.database, (number, member))
    }

    /// Refuses to make a log where one of this database is. The copy of a directory from before its
    /// log was made has none, and would remove the original's.
    fn require_no_log(&self, count: u32, members: u32) -> Result<(), EngineError> {
        let of_file = |number| (1..=members).map(move |member| (number, member));
        for which in (1..=count).flat_map(of_file).filter(|(_, member)| self.places.is_outside(*member)) {
            let path = self.path(which.0, which.1);
            if self.access.disk.exists(&path) && self.has_begun(&path)? {
                let why = format!(
                    "the log of another copy of the database is in it, and none in {}; open that copy, or restore a backup",
                    self.home.display()
                );
                return Err(EngineError::Log { path, why });
            }
        }
        Ok(())
    }

    /// True for a log file of this database that has batches, or had some before it was begun
    /// again. One that a killed process was making has none.
    fn has_begun(&self, path: &Path) -> Result<bool, EngineError> {
        let mut head = self.access.disk.read_head(path, FILE_HEADER as usize + BATCH_HEADER)?;
        head.resize(FILE_HEADER as usize + BATCH_HEADER, 0);
        let Some(header) = FileHeader::read(&head, self.database, path)? else { return Ok(false) };
        let batch = BatchHeader::claimed(&head[FILE_HEADER as usize..], header.sequence, Lsn(0));
        Ok(header.sequence > 1 || batch.is_some())
    }

    /// Makes room for a member that is made: removes one that this database has made before.
    fn remove_own(&self, path: &Path, member: u32) -> Result<(), EngineError> {
        let disk = &self.access.disk;
        if !disk.exists(path) {
            return Ok(());
        }
        if self.places.is_outside(member) && !disk.is_memory() {
            let mut head = disk.read_head(path, FILE_HEADER as usize)?;
            head.resize(FILE_HEADER as usize, 0);
            FileHeader::read(&head, self.database, path)?;
            if FileHeader::owner(&head).home != self.canonical {
                let why = "it is there already, and does not say that it is this database's; move it away";
                return Err(EngineError::Log { path: path.to_path_buf(), why: why.to_string() });
            }
        }
        Ok(disk.remove(path)?)
    }

    /// Makes a member of a log file, of zeros. One outside of the home says first whose it is.
    fn create_member(
        &self,
        session: &Session,
        (number, member): (u32, u32),
        (bytes, owner): (u64, &Owner),
    ) -> Result<Arc<File>, EngineError> {
        let path = self.path(number, member);
        self.remove_own(&path, member)?;
        let file = Arc::new(self.access.disk.open(&path, OpenMode::Create, self.access.direct)?);
        checkpoint::lock(&file)?;
        let mut channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        let mut buffer = Arena::buffers(PIECE, 1)?.1.remove(0);
        let is_outside = self.places.is_outside(member);
        if is_outside {
            FileHeader::unused(self.database, number).write(&mut buffer, owner);
        }
        for offset in (0..bytes).step_by(PIECE) {
            let request = Request {
                operation: Operation::Write,
                file: Arc::clone(&file),
                offset,
                buffer,
                range: 0..PIECE.min((bytes - offset) as usize),
                event: Event::DataFileInitWrite,
                stream: IoStream::FileInit,
                tag: 0,
            };
            channel.submit(session, request)?;
            buffer = channel.wait(session, Event::DataFileInitWrite)?.buffer;
            buffer[..FILE_HEADER as usize].fill(0);
        }
        session.wait(Event::DataFileInitWrite, || file.sync_all())?;
        Ok(file)
    }

    /// Refuses what was asked for by name and is fixed when a log is made.
    fn require_as_made(&self, checkpoint: &Checkpoint) -> Result<(), EngineError> {
        let count = |setting, made: u32| (setting, self.settings.number(setting), u64::from(made));
        let size = of_whole_pages(self.settings.number(Setting::LogFileSize));
        let fixed = [
            count(Setting::LogFileGroups, checkpoint.log_files),
            count(Setting::LogFileMembers, checkpoint.members),
            (Setting::LogFileSize, size, checkpoint.file_bytes),
        ];
        for (setting, made) in
            [(Setting::LogPath, &self.places.first), (Setting::LogMirrorPath, &self.places.second)]
        {
            if self.settings.is_explicit(setting) && Path::new(self.settings.word(setting)) != made {
                return Err(EngineError::Contradiction {
                    first: format!("{}={}", setting.row().name, self.settings.word(setting)),
                    second: format!("a log that was made in {:?}", path_text(made)),
                    why: "that is fixed then; leave it out, or make another database".to_string(),
                });
            }
        }
        for (setting, asked, made) in fixed {
            // A control block that says nothing of a size is of any.
            if self.settings.is_explicit(setting) && asked != made && made > 0 {
                let shown = |value| match setting {
                    Setting::LogFileSize => Bytes(value).as_setting(),
                    _ => value.to_string(),
                };
                return Err(EngineError::Contradiction {
                    first: format!("{}={}", setting.row().name, shown(asked)),
                    second: format!("a log that was made with {}", shown(made)),
                    why: "that is fixed then; leave it out, or make another database".to_string(),
                });
            }
        }
        Ok(())
    }

    /// Opens the log and does again what it has.
    ///
    /// # Errors
    /// When the control block or a log file is missing or damaged, or a block that has to be changed is.
    pub fn recover(&self, session: &Session) -> Result<(Log, Recovered), EngineError> {
        let options = self.options()?;
        let path = checkpoint::path(self.home);
        require_own_at(&self.access.disk, &path, OpenMode::Write)?;
        let mut control = ControlFile::open_at(self.access, &path, OpenMode::Write)?;
        let checkpoint = control.read(session, self.database)?;
        self.require_as_made(&checkpoint)?;
        let mut redo = Redo::new(self, session, &checkpoint)?;
        let files = self.open_files(&mut redo, &checkpoint)?;
        let lengths = || files.iter().map(|file| file.bytes);
        require_records(&options, u64::from(checkpoint.log_block), lengths().min().unwrap_or(0))?;
        let file_bytes = checkpoint.file_bytes.max(lengths().max().unwrap_or(0));
        let checkpoint = Checkpoint { file_bytes, ..checkpoint };
        self.make_durable(session, &files, &checkpoint)?;
        let (current, offset, end) = redo.read_log(&files, &checkpoint, options.buffer_bytes)?;
        redo.finish(end)?;
        let Redo { places, recovered, is_cut_short, .. } = redo;
        let checkpoint = match self.is_outside() {
            true => self.take_epoch(session, &mut control, (&files, is_cut_short), checkpoint)?,
            false => checkpoint,
        };
        // Copies of a database go on with LSNs of their own, above all numbers of operations; and above the first of a file that was begun by an opening
        // which wrote nothing else.
        let stretch = self.access.disk.random_id() as u64 >> 32;
        let least = end.max(files[current].header.first).max(Lsn(self.above.0 + OPERATIONS));
        let next = Lsn((least.0 + stretch).next_multiple_of(8));
        let mut files = used(files, &places, &checkpoint);
        let archive = self.archive()?;
        if let Some(archive) = &archive {
            require_archived(session, archive, &mut files)?;
        }
        let sync = self.choose_sync(session, &mut files, u64::from(checkpoint.log_block))?;
        let writer = LogWriter {
            database: self.database,
            owner: self.owner(checkpoint.epochs.now),
            files,
            current,
            offset,
            next,
            end,
            opening: self.access.disk.random_id() as u64,
            block: checkpoint.log_block as usize,
            written: 0,
            spare: charge(options.record_max(), checkpoint.log_block as usize),
            sync,
            archives: archive.is_some(),
            channel: self.channel(checkpoint.members)?,
            staging: Some(self.staging(&options)?),
            mirror: self.mirror(&options, checkpoint.members)?,
        };
        Ok((Log::new(options, (writer, archive), (control, checkpoint), places)?, recovered))
    }

    /// Makes durable what is read next (L6). A killed process may have written its last batch and
    /// not synced it, so that it is in the page cache alone. A write with O_DSYNC takes nothing
    /// before it along, so a loss of power would leave what is acknowledged next behind a hole.
    fn make_durable(
        &self,
        session: &Session,
        files: &[LogFile],
        checkpoint: &Checkpoint,
    ) -> Result<(), EngineError> {
        let needed = files.iter().filter(|file| file.header.sequence >= checkpoint.sequence);
        for member in needed.flat_map(|file| &file.members) {
            session.wait(Event::LogFileParallelWrite, || member.sync_data())?;
        }
        Ok(())
    }

    /// Where filled log files are copied to, if they are.
    fn archive(&self) -> Result<Option<Archive>, EngineError> {
        let Some(directory) = self.settings.archive_dest()? else { return Ok(None) };
        let directory = self.make_own(directory)?;
        Ok(Some(Archive::new(self.access, directory, self.database)))
    }

    /// A directory for copies; one within the database is made, any other is there or is none.
    fn make_own(&self, directory: &Path) -> Result<PathBuf, EngineError> {
        let path = self.home.join(directory);
        if directory.is_relative() {
            self.access.disk.make_directory(&path)?;
        }
        Ok(path)
    }

    /// Decides how log writes become durable, and has the files open for it.
    fn choose_sync(
        &self,
        session: &Session,
        files: &mut [LogFile],
        log_block: u64,
    ) -> Result<SyncChoice, EngineError> {
        let unused = files.iter().rfind(|file| file.usage == Usage::Free).map(|file| file.file().path());
        let word = self.settings.word(Setting::LogSyncMethod);
        let shares_threads = self.settings.number(Setting::SharedServers) > 0;
        let choice = SyncChoice::of((word, shares_threads), session, self.access, (unused, log_block))?;
        let durability = choice.method.durability();
        if durability != Durability::OnSync {
            for member in files.iter_mut().flat_map(|file| &mut file.members) {
                let (disk, direct) = (&self.access.disk, self.access.direct);
                let durable = disk.open_durable(member.path(), OpenMode::Write, direct, durability)?;
                // One lock at a time: these are two openings of one file.
                member.unlock();
                checkpoint::lock(&durable)?;
                *member = Arc::new(durable);
            }
        }
        Ok(choice)
    }

    fn open_files(&self, redo: &mut Redo<'_>, checkpoint: &Checkpoint) -> Result<Vec<LogFile>, EngineError> {
        self.make_places(checkpoint.members)?;
        (1..=checkpoint.log_files).map(|number| self.open_file(redo, number, checkpoint)).collect()
    }

    /// Opens a member of a log file; none where it is missing or has lost its end, with what is wrong with it.
    fn open_member(&self, path: &Path, least: u64) -> Result<Result<Arc<File>, String>, EngineError> {
        require_own_at(&self.access.disk, path, OpenMode::Write)?;
        match self.access.disk.open(path, OpenMode::Write, self.access.direct) {
            Ok(file) => {
                checkpoint::lock(&file)?;
                let bytes = file.length()?;
                let is_short =
                    format!("it has {bytes} bytes of {least}, and what its end had may have been committed");
                Ok(if bytes < least { Err(is_short) } else { Ok(Arc::new(file)) })
            }
            Err(IoError::Operation { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(Err("it is missing".to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives members outside of the home to this opening.
    fn take_epoch(
        &self,
        session: &Session,
        control: &mut ControlFile,
        (files, is_cut_short): (&[LogFile], bool),
        checkpoint: Checkpoint,
    ) -> Result<Checkpoint, EngineError> {
        if is_cut_short {
            // O1: otherwise two openings in a row that are cut short leave members of three epochs.
            self.write_epoch(session, files, &checkpoint)?;
        }
        let epochs = checkpoint.epochs.next(&self.access.disk);
        assert_eq!(epochs.before, checkpoint.epochs.now, "O1: members have the epoch before");
        let checkpoint = Checkpoint { serial: checkpoint.serial + 1, epochs, ..checkpoint };
        // O2: before a member has it.
        control.write(session, &checkpoint)?;
        self.write_epoch(session, files, &checkpoint)?;
        Ok(checkpoint)
    }

    /// Gives the members outside of the home the epoch that the control block has, durably.
    fn write_epoch(
        &self,
        session: &Session,
        files: &[LogFile],
        checkpoint: &Checkpoint,
    ) -> Result<(), EngineError> {
        let owner = self.owner(checkpoint.epochs.now);
        let mut copier = Copier::new(session, Purpose::Member)?;
        let mut page = vec![0; FILE_HEADER as usize];
        for file in files {
            file.header.write(&mut page, &owner);
            for (_, member) in (1..).zip(&file.members).filter(|(number, _)| self.places.is_outside(*number))
            {
                copier.write(member, 0, &page)?;
            }
        }
        Ok(())
    }

    /// Opens the members of a log file; one that is missing, has lost its end or is not whole at its head is made anew from the other.
    fn open_file(
        &self,
        redo: &mut Redo<'_>,
        number: u32,
        checkpoint: &Checkpoint,
    ) -> Result<LogFile, EngineError> {
        let unused = FileHeader::unused(self.database, number);
        let mut found: Vec<Option<(Arc<File>, Option<FileHeader>)>> = Vec::new();
        let (mut first_why, mut others) = (None, Vec::new());
        for member in 1..=checkpoint.members {
            let path = self.path(number, member);
            let opened = match self.open_member(&path, checkpoint.file_bytes)? {
                Ok(file) => file,
                Err(why) => {
                    first_why.get_or_insert(why);
                    found.push(None);
                    continue;
                }
            };
            let head = redo.reader.head(&opened)?;
            let header = FileHeader::read(head, self.database, &path)?;
            if header.is_some() && self.places.is_outside(member) {
                let owner = FileHeader::owner(head);
                redo.is_cut_short |= owner.epoch != checkpoint.epochs.now;
                if self.claim(checkpoint).judge(&path, &owner)? == Standing::Behind {
                    first_why.get_or_insert(
                        "it is an older copy, which was not there at the last opening".to_string(),
                    );
                    found.push(None);
                    continue;
                }
            }
            others.extend(header.filter(|header| header.number != number).map(|found| (member, found)));
            found.push(Some((opened, header.filter(|header| header.number == number))));
        }
        let worth = |(file, header): &&(Arc<File>, Option<FileHeader>)| {
            (header.map(|header| header.sequence), file.length().unwrap_or(0))
        };
        let best = found.iter().flatten().max_by_key(worth).cloned();
        let Some((source, header)) = best else {
            let path = self.path(number, 1);
            let wrong = first_why.expect("a member that was not opened has a reason");
            let why = format!("{wrong}; restore it from a copy of the database made when it was closed");
            return Err(EngineError::Log { path, why });
        };
        self.require_own(number, found.iter().flatten().count(), &others)?;
        let (bytes, owner) = (source.length()?, self.owner(checkpoint.epochs.now));
        let mut opened = Vec::new();
        for (member, found) in (1..).zip(found) {
            let file = match &found {
                Some((file, same)) if *same == header && file.length()? == bytes => Arc::clone(file),
                found => {
                    if matches!(found, Some((_, Some(_)))) {
                        // It is this database's, whichever directory its header names.
                        self.access.disk.remove(&self.path(number, member))?;
                    }
                    redo.is_cut_short = true;
                    let file = self.create_member(redo.session, (number, member), (bytes, &owner))?;
                    self.access.disk.sync_directory(file.path().parent().unwrap_or(self.home))?;
                    redo.make_like(&source, &file, bytes)?;
                    file
                }
            };
            opened.push(file);
        }
        let header = header.unwrap_or(unused);
        Ok(LogFile { members: opened, header, bytes, usage: Usage::Free, archived: true })
    }

    /// Refuses a log file whose members, `members` in number, are all those of other log files: one
    /// alone is made again from the other member.
    fn require_own(
        &self,
        number: u32,
        members: usize,
        others: &[(u32, FileHeader)],
    ) -> Result<(), EngineError> {
        let Some((member, FileHeader { number: found, .. })) = others.last() else { return Ok(()) };
        if others.len() < members {
            return Ok(());
        }
        let why = format!(
            "it is log file {found} of this database, expected log file {number}; name it {}, where it belongs: if \
             the two were swapped, swap them back",
            self.path(*found, *member).display()
        );
        Err(EngineError::Log { path: self.path(number, *member), why })
    }
}

/// Says of each file whether it is needed: from the checkpoint's on all are, also those in which no batch is.
fn used(mut files: Vec<LogFile>, places: &VecDeque<BatchPlace>, checkpoint: &Checkpoint) -> Vec<LogFile> {
    for file in files.iter_mut().filter(|file| file.header.sequence >= checkpoint.sequence) {
        file.usage = Usage::Used(checkpoint.low);
    }
    for place in places {
        files[place.file].usage = Usage::Used(place.end);
    }
    files
}

/// Keeps files from being used that were filled before and have no copy yet.
fn require_archived(session: &Session, archive: &Archive, files: &mut [LogFile]) -> Result<(), EngineError> {
    // L6: a killed process may have named a copy and not synced the name.
    let is_durable = archive.sync_names().is_ok();
    for file in files.iter_mut().filter(|file| file.header.sequence > 0) {
        file.archived = is_durable && archive.has(session, &file.header).unwrap_or(false);
        if !file.archived && file.usage == Usage::Free {
            file.usage = Usage::Used(Lsn(0));
        }
    }
    Ok(())
}

/// A stretch of a log file that is gone through at once: where it ends, and its batches: LSN, and where the records are.
struct Stretch {
    end: u64,
    batches: Vec<(Lsn, Range<u64>)>,
}

/// Goes through the log.
struct Redo<'a> {
    home: &'a LogHome<'a>,
    session: &'a Session,
    reader: LogReader<'a>,
    replay: Replay<'a>,
    log_block: usize,
    from: Lsn,
    open: BTreeMap<u64, Unended>,
    places: VecDeque<BatchPlace>,
    recovered: Recovered,
    /// True if a member outside of the home does not have the epoch of the last opening.
    is_cut_short: bool,
}

impl<'a> Redo<'a> {
    fn new(
        home: &'a LogHome<'a>,
        session: &'a Session,
        checkpoint: &Checkpoint,
    ) -> Result<Redo<'a>, EngineError> {
        Ok(Redo {
            home,
            session,
            reader: LogReader::new(session, home.access)?,
            replay: Replay::new(home, session)?,
            log_block: checkpoint.log_block as usize,
            from: checkpoint.redo,
            open: BTreeMap::new(),
            places: VecDeque::new(),
            recovered: Recovered { next_transaction: checkpoint.next_transaction, ..Recovered::default() },
            is_cut_short: false,
        })
    }

    /// Makes a member like another: the header last, so that a crash leaves one that is not whole.
    fn make_like(&mut self, source: &Arc<File>, member: &Arc<File>, bytes: u64) -> Result<(), EngineError> {
        let mut copier = Copier::new(self.session, Purpose::Member)?;
        copier.copy(source, member, FILE_HEADER..bytes)?;
        self.session.wait(Event::LogFileParallelWrite, || member.sync_all())?;
        let head = copier.read(source, 0, FILE_HEADER as usize)?.to_vec();
        copier.write(member, 0, &head)?;
        let (path, source) = (member.path().display(), source.path().display());
        self.recovered
            .restored
            .push(format!("{path} was missing or damaged, and was made anew from {source}"));
        Ok(())
    }

    /// Goes through all batches from the checkpoint's low LSN on. Gives the file and offset where the next batch goes, and the LSN behind the last.
    fn read_log(
        &mut self,
        files: &[LogFile],
        checkpoint: &Checkpoint,
        write_max: usize,
    ) -> Result<(usize, u64, Lsn), EngineError> {
        let find = |sequence: u64| files.iter().position(|file| file.header.sequence == sequence);
        let mut sequence = checkpoint.sequence;
        let Some(mut current) = find(sequence) else {
            let path = checkpoint::path(self.home.home);
            let why = format!(
                "no log file has the sequence {sequence}, which the last checkpoint needs; restore the log files from a copy of the database made when it was closed"
            );
            return Err(EngineError::Log { path, why });
        };
        let mut end = files[current].header.first;
        loop {
            let offset = self.read_file(&files[current], current, &mut end, write_max)?;
            sequence += 1;
            match find(sequence) {
                // A file is begun when everything before it is durable, and so begins where that ended.
                Some(next) if files[next].header.previous_end == end => current = next,
                Some(next) => {
                    let path = files[current].file().path().to_path_buf();
                    return Err(damaged(path, offset, end, files[next].header.previous_end));
                }
                None => {
                    self.require_end(files, checkpoint.sequence, (sequence, end))?;
                    let reaches = checkpoint.reaches().max(self.home.reaches);
                    if end < reaches {
                        let path = files[current].file().path().to_path_buf();
                        return Err(damaged(path, offset, end, reaches));
                    }
                    return Ok((current, offset, end));
                }
            }
        }
    }

    /// Refuses a log whose next file, of this sequence, was begun and cannot be told from one that was not: a header is durable before a batch follows
    /// it, and before a file of a later sequence is begun. The power may go while a header is written; then there is neither.
    fn require_end(
        &mut self,
        files: &[LogFile],
        first: u64,
        (sequence, end): (u64, Lsn),
    ) -> Result<(), EngineError> {
        let refuse = |file: &LogFile, what: String| {
            let path = file.file().path().to_path_buf();
            let why = format!(
                "{what}, and the header of no log file says {sequence}: one is damaged, and what its file has may have been committed: restore the database from a copy"
            );
            Err(EngineError::Log { path, why })
        };
        for file in files {
            if file.header.sequence > sequence {
                return refuse(file, format!("it has the sequence {}", file.header.sequence));
            }
            if file.header.sequence < first {
                // As much as direct I/O reads at least.
                self.reader.open(file.file(), FILE_HEADER..2 * FILE_HEADER)?;
                self.reader.fill(2 * FILE_HEADER)?;
                if BatchHeader::claimed(self.reader.window(FILE_HEADER), sequence, end).is_some() {
                    return refuse(file, format!("its first batch has the sequence {sequence}"));
                }
            }
        }
        Ok(())
    }

    /// Goes through the batches of a file. Gives the offset behind the last.
    fn read_file(
        &mut self,
        file: &LogFile,
        number: usize,
        end: &mut Lsn,
        write_max: usize,
    ) -> Result<u64, EngineError> {
        self.reader.open(file.file(), FILE_HEADER..file.bytes)?;
        let (mut at, mut more) = (FILE_HEADER, true);
        while more {
            let stretch;
            (stretch, more) = self.stretch(file, number, at, end)?;
            self.redo(&stretch, file)?;
            at = stretch.end;
            self.reader.discard(at);
        }
        self.settle_last(file, number)?;
        // A batch further on would mean that the one that is not whole was so once.
        let claimed = BatchHeader::claimed(self.reader.window(at), file.header.sequence, *end);
        // The log buffer may have been larger when it was written.
        let longest = self.places.iter().map(|place| (place.end.0 - place.lsn.0) as usize).max();
        let write_max = write_max.max(longest.max(claimed).unwrap_or(0));
        let limit = write_max + 2 * FILE_HEADER as usize;
        self.reader.fill(at + limit as u64)?;
        let rest = self.reader.window(at);
        for further in (self.log_block..rest.len().min(limit)).step_by(self.log_block) {
            if let Some(batch) = BatchHeader::read(&rest[further..], file.header.sequence, *end) {
                return Err(damaged(file.file().path().to_path_buf(), at, *end, batch.lsn));
            }
        }
        Ok(at)
    }

    /// The next batches of a file, and whether more may follow.
    fn stretch(
        &mut self,
        file: &LogFile,
        number: usize,
        at: u64,
        end: &mut Lsn,
    ) -> Result<(Stretch, bool), EngineError> {
        let mut stretch = Stretch { end: at, batches: Vec::new() };
        while stretch.end - at < STRETCH {
            let Some(batch) = self.batch(file, stretch.end, *end)? else { return Ok((stretch, false)) };
            let records = stretch.end + BATCH_HEADER as u64..stretch.end + batch.length as u64;
            *end = Lsn(batch.lsn.0 + (batch.length - BATCH_HEADER) as u64);
            let (lsn, offset) = (batch.lsn, stretch.end);
            let place = BatchPlace { lsn, end: *end, file: number, offset, written: 0, verified: true };
            self.places.push_back(place);
            stretch.batches.push((batch.lsn, records));
            stretch.end += batch.length.next_multiple_of(self.log_block) as u64;
        }
        Ok((stretch, true))
    }

    /// The batch at an offset, if a whole one is there; what the second member alone has is given to the first.
    fn batch(&mut self, file: &LogFile, at: u64, least: Lsn) -> Result<Option<BatchHeader>, EngineError> {
        let sequence = file.header.sequence;
        let found = self.reader.batch(at, sequence, least)?;
        let Some(second) = file.members.get(1).filter(|_| found.is_none()) else { return Ok(found) };
        let mut other = LogReader::new(self.session, self.home.access)?;
        other.open(second, at..file.bytes)?;
        let Some(batch) = other.batch(at, sequence, least)? else { return Ok(None) };
        let padded = batch.length.next_multiple_of(self.log_block);
        other.fill(at + padded as u64)?;
        self.reader.fill(at + padded as u64)?;
        let bytes = &other.window(at)[..padded];
        self.reader.replace(at, bytes);
        Copier::new(self.session, Purpose::Member)?.write(file.file(), at, bytes)?;
        let (first, second) = (file.file().path().display(), second.path().display());
        self.recovered.restored.push(format!("the batch at byte {at} of {first} was taken from {second}"));
        Ok(Some(batch))
    }

    /// Gives the last batch of a file to all members: one of them may have it alone, and it is acknowledged from now on.
    fn settle_last(&mut self, file: &LogFile, number: usize) -> Result<(), EngineError> {
        let last = self.places.back().filter(|place| place.file == number && file.members.len() > 1);
        let Some(last) = last.copied() else { return Ok(()) };
        let padded = charge((last.end.0 - last.lsn.0) as usize, self.log_block) as usize;
        let mut reader = LogReader::new(self.session, self.home.access)?;
        reader.open(file.file(), last.offset..last.offset + padded as u64)?;
        reader.fill(last.offset + padded as u64)?;
        for member in &file.members[1..] {
            Copier::new(self.session, Purpose::Member)?.write(
                member,
                last.offset,
                reader.window(last.offset),
            )?;
        }
        Ok(())
    }

    /// Does the records of a stretch again.
    fn redo(&mut self, stretch: &Stretch, file: &LogFile) -> Result<(), EngineError> {
        let Redo { reader, replay, from, .. } = self;
        let batches = || stretch.batches.iter().map(|(lsn, at)| (*lsn, within(reader.window(at.start), at)));
        let again = batches().flat_map(|(lsn, bytes)| Records { lsn, bytes });
        let nonsense = |(lsn, why): (Lsn, String)| EngineError::Log {
            path: file.file().path().to_path_buf(),
            why: format!("the record of LSN {} {why}; restore the database from a copy", lsn.0),
        };
        for record in again.clone().filter(|record| record.lsn >= *from) {
            require_record(&record)
                .and_then(|()| replay.require_sound_record(&record))
                .map_err(|why| nonsense((record.lsn, why)))?;
        }
        replay.prepare(again.filter(|record| record.lsn >= *from))?;
        for (lsn, bytes) in
            stretch.batches.iter().map(|(lsn, at)| (*lsn, within(self.reader.window(at.start), at)))
        {
            let mut records = Records { lsn, bytes };
            for record in records.by_ref().filter(|record| record.lsn >= self.from) {
                note(&mut self.open, &mut self.recovered, &record);
                self.replay.redo(&record, || file.file().path().to_path_buf())?;
            }
            if !records.bytes.is_empty() {
                let path = file.file().path().to_path_buf();
                let lsn = records.lsn.0;
                let why = format!("the record of LSN {lsn} makes no sense, though its batch is whole");
                return Err(EngineError::Log { path, why });
            }
        }
        Ok(())
    }

    fn finish(&mut self, end: Lsn) -> Result<(), EngineError> {
        self.replay.finish(self.from..end)?;
        self.recovered.block_count = self.replay.block_count;
        self.recovered.unended = self.open.values().copied().collect();
        let most = LogOptions::transactions_max(self.home.tablespaces.largest_block().bytes());
        if self.recovered.unended.len() > most {
            let (found, path) = (self.recovered.unended.len(), checkpoint::path(self.home.home));
            let why = format!(
                "its log has {found} transactions without an end, expected at most {most}; restore the database from a copy"
            );
            return Err(EngineError::Log { path, why });
        }
        Ok(())
    }
}

/// Refuses a record with numbers that no log has.
fn require_record(record: &Record<'_>) -> Result<(), String> {
    let most = |what: &str, found: u64, most: u64| match found <= most {
        true => Ok(()),
        false => Err(format!("has {what} {found}, expected at most {most}")),
    };
    most("transaction", record.transaction, LSN_MOST)?;
    most("the record before it at LSN", record.previous.0, record.lsn.0)?;
    if record.kind != RecordKind::Checkpoint {
        return Ok(());
    }
    for entry in record.undo.chunks_exact(UNDER_WAY_BYTES) {
        let [transaction, first, last] = [0, 8, 16].map(|at| log_file::number(entry, at));
        most("transaction", transaction, LSN_MOST)?;
        most("the first record of a transaction at LSN", first, record.lsn.0)?;
        most("the last record of a transaction at LSN", last, record.lsn.0)?;
    }
    Ok(())
}

/// The records of a batch; ends early where the bytes make no sense, which are then left.
#[derive(Clone)]
struct Records<'a> {
    lsn: Lsn,
    bytes: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = Record::parse(self.lsn, self.bytes)?;
        let length = length_of(self.bytes)?;
        (self.lsn, self.bytes) = (Lsn(self.lsn.0 + length as u64), &self.bytes[length..]);
        Some(record)
    }
}

/// As many of the bytes as a range has.
fn within<'b>(bytes: &'b [u8], range: &Range<u64>) -> &'b [u8] {
    &bytes[..(range.end - range.start) as usize]
}

/// Keeps track of which transactions have an end, and counts.
fn note(open: &mut BTreeMap<u64, Unended>, recovered: &mut Recovered, record: &Record<'_>) {
    let Record { kind, transaction, lsn, previous, .. } = *record;
    match kind {
        RecordKind::Checkpoint => {
            for entry in record.undo.chunks_exact(UNDER_WAY_BYTES) {
                let [transaction, first, last] = [0, 8, 16].map(|at| log_file::number(entry, at));
                open.insert(transaction, Unended { transaction, first: Lsn(first), last: Lsn(last) });
                recovered.next_transaction = recovered.next_transaction.max(transaction + 1);
            }
        }
        RecordKind::Commit | RecordKind::RolledBack => {
            open.remove(&transaction);
        }
        RecordKind::Change | RecordKind::Undoing if transaction != 0 => {
            let entry = open.entry(transaction);
            let entry = entry.or_insert(Unended { transaction, first: lsn, last: Lsn(0) });
            if kind == RecordKind::Undoing {
                entry.last = previous;
            } else if !record.undo.is_empty() {
                entry.last = lsn;
            }
        }
        RecordKind::Change | RecordKind::Undoing => {}
    }
    recovered.next_transaction = recovered.next_transaction.max(transaction + 1);
    recovered.record_count += 1;
    recovered.redo_bytes += record.length() as u64;
}

fn damaged(path: PathBuf, offset: u64, found: Lsn, expected: Lsn) -> EngineError {
    let why = format!(
        "the batch at byte {offset} is damaged: the log goes on at LSN {} behind LSN {}; this is no end of the log, and what follows may have been committed: restore the database from a copy",
        expected.0, found.0
    );
    EngineError::Log { path, why }
}
