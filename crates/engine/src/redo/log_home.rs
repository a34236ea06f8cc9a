//! A database whose log is made or opened: its files and their places, and what making and opening
//! share.

use super::archiver::Archive;
use super::checkpoint::{self, Checkpoint};
use super::claim::Claim;
use super::epoch::Epoch;
use super::log::LogOptions;
use super::log_access;
use super::log_file::{FILE_HEADER, FILES_MOST, Owner};
use super::log_writer::{LogFile, LogWriter, Usage, charge};
use super::sync_method::SyncChoice;
use crate::EngineError;
use crate::access::Access;
use crate::cache::BufferCaches;
use crate::database_id::DatabaseId;
use crate::settings::Settings;
use crate::storage::control::{Catalog, FILE_NAME as CATALOG};
use crate::storage::log_places::{LogPlaces, MemberId};
use crate::storage::tablespace::{Extent, Purpose as Space};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::Session;
use plumb_io::{Arena, Channel, Disk, Durability, IoBuffer, Method, MethodKind, OpenMode};
use plumb_units::{Bytes, Lsn};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    let control = [checkpoint::path(home), checkpoint::path(home).with_extension("new")];
    MemberId::all(FILES_MOST, 2).map(move |id| places.path(home, database, id)).chain(control)
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
    let path = |id| LogPlaces::default().path(Path::new(""), DatabaseId(0), id);
    MemberId::all(files, 1).map(move |id| path(id).display().to_string())
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

/// A database whose log is made or opened.
#[derive(Debug, Clone, Copy)]
pub struct LogHome<'a> {
    /// The database's directory.
    pub home: &'a Path,
    /// The same without links.
    pub canonical: &'a Path,
    /// The directories of its log files.
    pub places: &'a LogPlaces,
    /// The id of the database.
    pub database: DatabaseId,
    /// The way to its log files.
    pub access: &'a Access,
    /// The settings of the instance.
    pub settings: &'a Settings,
    /// The tablespaces whose blocks records change.
    pub tablespaces: &'a Tablespaces,
    /// LSNs must be above it: numbers of operations so far.
    pub above: Lsn,
    /// The end of the log, or an LSN behind it.
    pub reaches: Lsn,
    /// The buffer caches, which no block is in yet.
    pub caches: &'a BufferCaches,
    /// The extents in which records may be done again.
    pub live: &'a [LiveExtent],
}

/// The place where a log goes on: behind `end`, with the LSN `next`.
pub(super) struct Continuation {
    pub(super) files: Vec<LogFile>,
    pub(super) current: usize,
    pub(super) offset: u64,
    pub(super) next: Lsn,
    pub(super) end: Lsn,
}

/// An extent of a segment that is there: records may be done again in it. One that the segment got
/// later than it was created may be given records of the segment before: its block is not in use
/// yet then, and is new when it is.
#[derive(Debug, Clone, Copy)]
pub struct LiveExtent {
    /// The place in its tablespace.
    pub extent: Extent,
    /// The tablespace of its file.
    pub purpose: Space,
    /// When its segment was created: what the log has of it before was another's.
    pub created: Lsn,
    /// True if it is read through the buffer cache; else by direct path.
    pub cached: bool,
}

/// Rounds a size that was asked for up to whole pages: log files are that long.
pub(super) fn of_whole_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// Refuses log files that are too short for the records of the largest blocks.
pub(super) fn require_records(options: &LogOptions, log_block: u64, bytes: u64) -> Result<(), EngineError> {
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
    pub(super) fn options(&self) -> Result<LogOptions, EngineError> {
        let buffer_bytes = self.settings.log.log_buffer.0 as usize;
        let checkpoint_interval = self.settings.log.log_checkpoint_interval.0;
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

    /// The log writer of files that it goes on in, which are opened as `log_sync_method` asks.
    pub(super) fn writer(
        &self,
        session: &Session,
        options: &LogOptions,
        checkpoint: &Checkpoint,
        archives: bool,
        at: Continuation,
    ) -> Result<LogWriter, EngineError> {
        let Continuation { mut files, current, offset, next, end } = at;
        let (block, members) = (checkpoint.log_block as usize, checkpoint.members);
        let sync = self.choose_sync(session, &mut files, u64::from(checkpoint.log_block))?;
        Ok(LogWriter {
            database: self.database,
            owner: self.owner(checkpoint.epochs.now),
            files,
            current,
            offset,
            next,
            end,
            opening: self.access.disk.random_id() as u64,
            block,
            written: 0,
            spare: charge(options.record_max(), block),
            sync,
            archives,
            channel: self.channel(members)?,
            staging: Some(self.staging(options)?),
            mirror: if members > 1 { Some(self.staging(options)?) } else { None },
        })
    }

    fn staging(&self, options: &LogOptions) -> Result<IoBuffer, EngineError> {
        Ok(Arena::buffers(options.buffer_bytes / 2 + FILE_HEADER as usize, 1)?.1.remove(0))
    }

    /// The log writer's way to its files: a system call of its own, but for two members, which are
    /// written at once. The log writer's role goes from thread to thread, and the channel with it.
    fn channel(&self, members: u32) -> Result<Channel, EngineError> {
        let method = match members {
            1 => Method::start(MethodKind::Sync, 1)?,
            _ => self.access.method.for_any_thread(),
        };
        Ok(method.channel_of(members as usize, &[], &[])?)
    }

    /// Makes the directories of members that are within the database's; those outside are there.
    pub(super) fn make_places(&self, members: u32) -> Result<(), EngineError> {
        for member in (1..=members).filter(|member| !self.places.is_outside(*member)) {
            self.access.disk.make_directory(&self.places.directory(self.home, member))?;
        }
        Ok(())
    }

    /// The least piece that log files in their directories are written by.
    pub(super) fn log_block(&self) -> u64 {
        let of = |member| log_access::log_block(self.access, &self.places.directory(self.home, member));
        of(1).max(if self.places.is_outside(2) { of(2) } else { 0 })
    }

    pub(super) fn is_outside(&self) -> bool {
        [1, 2].into_iter().any(|member| self.places.is_outside(member))
    }

    /// The owner that headers name where a member lies outside of the home.
    pub(super) fn owner(&self, epoch: Epoch) -> Owner {
        match self.is_outside() {
            true => Owner { home: self.canonical.to_path_buf(), epoch },
            false => Owner::default(),
        }
    }

    pub(super) fn claim<'c>(&'c self, checkpoint: &Checkpoint) -> Claim<'c> {
        let LogHome { home, canonical, database, access, .. } = *self;
        Claim { disk: &access.disk, home, canonical, database, epochs: checkpoint.epochs }
    }

    pub(super) fn path(&self, id: MemberId) -> PathBuf {
        self.places.path(self.home, self.database, id)
    }

    /// The place for copies of filled log files; `None` where none are made.
    pub(super) fn archive(&self) -> Result<Option<Archive>, EngineError> {
        let Some(directory) = self.settings.archive_dest()? else { return Ok(None) };
        let directory = self.make_own(directory)?;
        Ok(Some(Archive::new(self.access, directory, self.database)))
    }

    /// Decides how log writes become durable, and has the files open for it.
    fn choose_sync(
        &self,
        session: &Session,
        files: &mut [LogFile],
        log_block: u64,
    ) -> Result<SyncChoice, EngineError> {
        let unused = files.iter().rfind(|file| file.usage == Usage::Free).map(|file| file.file().path());
        let choice = SyncChoice::of(self.settings, session, self.access, unused, log_block)?;
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

    /// A directory for copies; one within the database is made, any other is there or is none.
    fn make_own(&self, directory: &Path) -> Result<PathBuf, EngineError> {
        let path = self.home.join(directory);
        if directory.is_relative() {
            self.access.disk.make_directory(&path)?;
        }
        Ok(path)
    }
}
