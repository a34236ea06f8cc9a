//! A database whose log is created or opened: its files, their places, and code shared by both.

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

/// Returns the paths that log files in a database's home can have, with the default places.
pub fn files(home: &Path) -> impl Iterator<Item = PathBuf> {
    files_in(home, DatabaseId(0), LogPlaces::default())
}

/// Returns the paths that the log files of a database can have.
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
/// If the control file knows of a log whose control block is missing. New log files would destroy
/// what only the old ones hold.
pub(crate) fn has_log(disk: &Disk, home: &Path, reaches: Lsn) -> Result<bool, EngineError> {
    let path = checkpoint::path(home);
    let is_there = disk.exists(&path);
    if !is_there && reaches > Lsn(0) {
        let why = "it is missing, and the log files cannot be read without it; put it back, or restore the database from a copy";
        return Err(EngineError::Log { path, why: why.to_string() });
    }
    Ok(is_there)
}

/// Returns the path of the log's control block in a database's home.
pub fn control_block(home: &Path) -> PathBuf {
    checkpoint::path(home)
}

/// Refuses a control file older than the log's control block (L7). Its segments are out of date,
/// and blocks of one segment would be read as another's.
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

/// Returns the default names of the first members, from which the other members are created.
pub(crate) fn usual_names(files: u32) -> impl Iterator<Item = String> {
    let path = |id| LogPlaces::default().path(Path::new(""), DatabaseId(0), id);
    MemberId::all(files, 1).map(move |id| path(id).display().to_string())
}

/// Returns the log files that a copy of a database must have, in their default places, each with
/// its least length in bytes.
///
/// # Errors
/// If the control block cannot be read, or belongs to another database.
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

/// Returns the directories of members inside a database's home, without the home itself.
pub(crate) fn directories_in(home: &Path, places: &LogPlaces) -> Vec<PathBuf> {
    let within = [1, 2].into_iter().filter(|member| !places.is_outside(*member));
    within.map(|member| places.directory(home, member)).filter(|directory| directory != home).collect()
}

/// A database whose log is created or opened.
#[derive(Debug, Clone, Copy)]
pub struct LogHome<'a> {
    /// The database's directory.
    pub home: &'a Path,
    /// The same directory with links resolved.
    pub canonical: &'a Path,
    /// Directories of the log files.
    pub places: &'a LogPlaces,
    /// Id of the database.
    pub database: DatabaseId,
    /// Access to the log files.
    pub access: &'a Access,
    /// Settings of the instance.
    pub settings: &'a Settings,
    /// Tablespaces whose blocks the records change.
    pub tablespaces: &'a Tablespaces,
    /// Highest operation number so far; LSNs must be above it.
    pub above: Lsn,
    /// End of the log, or an LSN after it.
    pub reaches: Lsn,
    /// Buffer caches, still empty.
    pub caches: &'a BufferCaches,
    /// Extents in which recovery may apply records.
    pub live: &'a [LiveExtent],
}

/// The place where a log continues: after `end`, with the LSN `next`.
pub(super) struct Continuation {
    pub(super) files: Vec<LogFile>,
    pub(super) current: usize,
    pub(super) offset: u64,
    pub(super) next: Lsn,
    pub(super) end: Lsn,
}

/// An extent of an existing segment, in which recovery may apply records. An extent added after
/// the segment's creation may get records of an earlier segment too. That is harmless: its blocks
/// are not in use yet, and are formatted when they are.
#[derive(Debug, Clone, Copy)]
pub struct LiveExtent {
    /// Place in the tablespace.
    pub extent: Extent,
    /// Tablespace of the extent's file.
    pub purpose: Space,
    /// LSN at which the segment was created; earlier records belong to another segment.
    pub created: Lsn,
    /// True if the buffer cache reads it, false for direct path.
    pub cached: bool,
}

/// Rounds bytes up to whole pages of 4096, the unit of log file sizes.
pub(super) fn of_whole_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// Rejects log files too short for the records of the largest blocks.
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
        // A record may change blocks of any tablespace.
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

    /// Returns the log writer, with files opened as `log_sync_method` asks.
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

    /// Returns the log writer's channel: a system call for one member. Two members are written at
    /// once by the instance's I/O method, in its form for any thread. The channel passes between
    /// threads with the log writer's role.
    fn channel(&self, members: u32) -> Result<Channel, EngineError> {
        let method = match members {
            1 => Method::start(MethodKind::Sync, 1)?,
            _ => self.access.method.for_any_thread(),
        };
        Ok(method.channel_of(members as usize, &[], &[])?)
    }

    /// Creates the directories of members inside the home; those outside must exist.
    pub(super) fn make_places(&self, members: u32) -> Result<(), EngineError> {
        for member in (1..=members).filter(|member| !self.places.is_outside(*member)) {
            self.access.disk.make_directory(&self.places.directory(self.home, member))?;
        }
        Ok(())
    }

    /// Returns the bytes of a log block: the larger one, if two directories differ.
    pub(super) fn log_block(&self) -> u64 {
        let of = |member| log_access::log_block(self.access, &self.places.directory(self.home, member));
        of(1).max(if self.places.is_outside(2) { of(2) } else { 0 })
    }

    pub(super) fn is_outside(&self) -> bool {
        [1, 2].into_iter().any(|member| self.places.is_outside(member))
    }

    /// Returns the owner that headers name; empty if no member lies outside of the home.
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

    /// Returns the destination of copies of filled log files; `None` if none are made.
    pub(super) fn archive(&self) -> Result<Option<Archive>, EngineError> {
        let Some(directory) = self.settings.archive_dest()? else { return Ok(None) };
        let directory = self.make_own(directory)?;
        Ok(Some(Archive::new(self.access, directory, self.database)))
    }

    /// Chooses the sync method of log writes, and reopens the files if it requires that.
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
                // Unlocks first, because both are openings of the same file.
                member.unlock();
                checkpoint::lock(&durable)?;
                *member = Arc::new(durable);
            }
        }
        Ok(choice)
    }

    /// Returns a directory for copies. One inside the home is created; any other must exist.
    fn make_own(&self, directory: &Path) -> Result<PathBuf, EngineError> {
        let path = self.home.join(directory);
        if directory.is_relative() {
            self.access.disk.make_directory(&path)?;
        }
        Ok(path)
    }
}
