//! An instance: an open database with its settings, files and recorder.
//!
//! A database has a home directory (control file, lock file), and its data files there or in
//! directories of their own. [`create`] creates it, [`open`] opens it, and [`crate::access`]
//! decides how its files are accessed. This module is the running instance: the catalog, and its
//! changes, which are durable before they take effect.
//!
//! Limits: one process may change a database, or several may read it ([`Instance::open_to_read`]).
//! A change of the catalog rewrites all of it.

mod create;
mod lend;
mod lock;
mod open;

pub use crate::access::Access;
pub use create::{InitialSizes, Layout, stands};
pub use lend::Lent;

use crate::EngineError;
use crate::cache::BufferCaches;
use crate::cache::caches::Writers;
use crate::parallel::servers::{Operation, Sharing};
use crate::read_cost::MergeReads;
use crate::redo::log_home;
use crate::settings::Settings;
use crate::storage::control::{Catalog, FILE_NAME, RESERVE_NAME, SegmentExtent};
use crate::storage::log_places::LogPlaces;
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::storage::tablespaces::Tablespaces;
use lock::{HomeLock, LOCK_FILE};
use plumb_events::{Cancel, Event, Recorder, Session, locked};
use plumb_io::{Disk, OpenMode};
use plumb_units::{BlockSize, Bytes, Lsn};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Most bytes of the home's path that a log file header can hold.
const HOME_BYTES_MOST: usize = 4000;

/// An open database.
#[derive(Debug)]
pub struct Instance {
    /// Values of all settings.
    pub settings: Settings,
    /// Access to the files.
    pub access: Access,
    /// Recorder of all sessions.
    pub recorder: Recorder,
    /// Flag that asks all running operations to stop.
    pub cancel: Cancel,
    home: PathBuf,
    mode: OpenMode,
    tablespaces: Arc<Tablespaces>,
    /// Dropping these stops their writers.
    caches: BufferCaches,
    catalog: Mutex<Catalog>,
    /// Reason why it is unknown which control file a power failure leaves; set at most once.
    doubt: OnceLock<String>,
    /// Measured read costs for merge plans.
    pub(crate) merge_reads: Mutex<Option<MergeReads>>,
    /// Number of the next operation; changed under the catalog's lock.
    next_lsn: AtomicU64,
    /// Lock on the home while the database is open; `None` for files in memory.
    lock: Option<HomeLock>,
}

/// State of a database that was created or opened.
struct Opened {
    home: PathBuf,
    mode: OpenMode,
    lock: Option<HomeLock>,
    catalog: Catalog,
    tablespaces: Tablespaces,
    next_lsn: u64,
}

impl Instance {
    fn new(
        (settings, access, recorder, cancel): (Settings, Access, Recorder, Cancel),
        opened: Opened,
    ) -> Result<Instance, EngineError> {
        let traced = settings.debug.debug_trace_requests;
        if traced > 0 {
            recorder.arm_trace(traced);
        }
        let tablespaces = Arc::new(opened.tablespaces);
        let writers = match &access.disk {
            Disk::Memory(disk) if disk.has_power() => Writers::Sessions,
            _ => Writers::Asked,
        };
        let caches = BufferCaches::new(&settings, writers, &access, (&tablespaces, &recorder))?;
        Ok(Instance {
            settings,
            access,
            recorder,
            cancel,
            home: opened.home,
            mode: opened.mode,
            tablespaces,
            caches,
            catalog: Mutex::new(opened.catalog),
            doubt: OnceLock::new(),
            merge_reads: Mutex::new(None),
            next_lsn: AtomicU64::new(opened.next_lsn),
            lock: opened.lock,
        })
    }

    /// True if one thread does all work, so that its disk sees one order of requests.
    fn is_one_thread(&self) -> bool {
        matches!(&self.access.disk, Disk::Memory(disk) if disk.has_power())
    }

    /// Returns the database's directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the tablespace of a purpose.
    ///
    /// # Panics
    /// If it is for another block size and was never created: see [`Instance::tablespace_of`].
    pub fn tablespace(&self, purpose: Purpose) -> &Tablespace {
        self.tablespaces.get(purpose)
    }

    /// Returns the tablespace of tables with blocks of this size. If its size is
    /// not `db_block_size`, the first call creates it next to the files of USERS,
    /// with `first` bytes in all.
    ///
    /// # Errors
    /// If no cache has blocks of this size, or the files cannot be created or accessed like the
    /// others. Also if open transactions have no room in their log for records of such blocks.
    pub fn tablespace_of(
        &self,
        session: &Session,
        block_size: BlockSize,
        first: Bytes,
    ) -> Result<Purpose, EngineError> {
        let purpose = self.tablespaces.tables_of(block_size);
        self.caches.of(purpose)?;
        let mut catalog = self.catalog();
        if self.tablespaces.find(purpose).is_none() {
            create::add_tablespace(self, session, &mut catalog, (purpose, block_size, first))?;
        }
        Ok(purpose)
    }

    /// Shares the tablespaces with owners that outlive a borrow of the instance.
    pub(crate) fn share_tablespaces(&self) -> Arc<Tablespaces> {
        Arc::clone(&self.tablespaces)
    }

    /// Returns all tablespaces.
    pub fn tablespaces(&self) -> &Tablespaces {
        &self.tablespaces
    }

    /// Returns the buffer caches.
    pub fn caches(&self) -> &BufferCaches {
        &self.caches
    }

    /// Replaces the cache, for tests.
    #[cfg(test)]
    pub(crate) fn replace_cache(&mut self, options: crate::cache::CacheOptions) {
        let (tablespaces, size) = (Arc::clone(&self.tablespaces), self.tablespaces.block_size());
        let cache =
            crate::cache::BufferCache::new((options, size), &self.access, tablespaces, self.recorder.clone());
        self.caches = BufferCaches::one(cache);
    }

    /// Locks the catalog and returns it.
    pub fn catalog(&self) -> MutexGuard<'_, Catalog> {
        locked(&self.catalog)
    }

    /// Returns a number for an operation that will write blocks. No other operation of this
    /// database ever has it, so that a block shows which operation wrote it.
    ///
    /// # Errors
    /// If no reserved number is left, and the control file cannot be written.
    pub fn next_lsn(&self, session: &Session) -> Result<Lsn, EngineError> {
        let mut catalog = self.catalog();
        let lsn = self.next_lsn.load(Relaxed);
        if lsn >= catalog.lsn_ceiling {
            self.replace_catalog(session, &mut catalog, Catalog::raise_lsn_ceiling)?;
        }
        assert!(lsn < catalog.lsn_ceiling, "a number is reserved before it is used");
        self.next_lsn.store(lsn + 1, Relaxed);
        Ok(Lsn(lsn))
    }

    /// Changes the catalog, durably. At that moment a load or a build becomes part of the database.
    ///
    /// # Errors
    /// If the control file cannot be written; then nothing changed.
    /// [`EngineError::ControlFileInDoubt`] if it may have changed; then
    /// no later change is possible.
    pub fn change_catalog(
        &self,
        session: &Session,
        change: impl FnOnce(&mut Catalog),
    ) -> Result<(), EngineError> {
        let mut catalog = self.catalog();
        self.replace_catalog(session, &mut catalog, |catalog| {
            change(catalog);
            catalog.definitions += 1;
        })?;
        // L7: after the control file. A crash in between leaves a newer control file than noted.
        if let Some(log) = self.caches.log() {
            log.note_definitions(session, catalog.definitions);
        }
        Ok(())
    }

    fn replace_catalog(
        &self,
        session: &Session,
        catalog: &mut Catalog,
        change: impl FnOnce(&mut Catalog),
    ) -> Result<(), EngineError> {
        self.require_writable()?;
        let mut changed = catalog.clone();
        change(&mut changed);
        if let Some(log) = self.caches.log()
            && log.durable() > log.gap().end
        {
            changed.log_reaches = log.durable().0;
        }
        let Err(error) = self.write_catalog(session, &changed) else {
            *catalog = changed;
            return Ok(());
        };
        // The new control file may exist although its directory could not be synced, and a power
        // failure may leave either. Until that is known, no session may use the space that the
        // change freed or took. So the old file is written back.
        let found = Catalog::find_on(&self.access.disk, &self.home);
        let is_as_before = found.is_ok_and(|found| found.as_ref() == Some(&*catalog));
        if is_as_before || self.write_catalog(session, catalog).is_ok() {
            return Err(error);
        }
        self.tablespaces.kept().for_each(Tablespace::keep_all);
        let _ = self.doubt.set(error.to_string());
        self.require_writable()
    }

    fn write_catalog(&self, session: &Session, catalog: &Catalog) -> Result<(), EngineError> {
        let write = || catalog.write(&self.access.disk, &self.home);
        session.wait(Event::ControlFileParallelWrite, write)
    }

    /// Records the directories of the log files in the catalog, as the settings name them,
    /// before the log is created.
    ///
    /// # Errors
    /// If a directory does not exist, the home's path is too long for the log files' headers, or
    /// the control file cannot be written.
    pub(crate) fn name_log_places(&self, session: &Session) -> Result<LogPlaces, EngineError> {
        let places = LogPlaces::of(&self.settings)?;
        let home_bytes = self.canonical_home().as_os_str().len();
        if !places.are_usual() && home_bytes > HOME_BYTES_MOST {
            return Err(EngineError::Contradiction {
                first: "log files outside of the database's directory".to_string(),
                second: format!("a directory with a path of {home_bytes} bytes"),
                why: format!("they keep its path, up to {HOME_BYTES_MOST} bytes of it; choose a shorter one"),
            });
        }
        if self.catalog().log_places != places {
            self.change_catalog(session, |catalog| catalog.set_log_places(places.clone()))?;
        }
        Ok(places)
    }

    /// Returns the home with links resolved, or as it was given if that fails.
    pub(crate) fn canonical_home(&self) -> PathBuf {
        create::canonical(&self.home).unwrap_or_else(|_| self.home.clone())
    }

    /// Frees the extents of a segment that is not in the catalog, and discards its cached blocks.
    pub(crate) fn release(&self, session: &Session, purpose: Purpose, extents: &[SegmentExtent]) {
        let extents = || extents.iter().map(|piece| piece.extent);
        self.caches.discard(session, purpose, extents());
        self.tablespace(purpose).release(extents());
    }

    /// Returns free space at the end of the files of tables and indexes to the disk.
    pub(crate) fn shorten_files(&self) {
        for tablespace in self.tablespaces.kept() {
            // A file that cannot be shortened keeps the space for later use.
            let _ = tablespace.give_back();
        }
    }

    /// Fails if the database was opened to be read, or its control file is in doubt.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] or [`EngineError::ControlFileInDoubt`].
    pub fn require_writable(&self) -> Result<(), EngineError> {
        match (self.mode, self.doubt.get()) {
            (OpenMode::Read, _) => Err(EngineError::ReadOnly { home: self.home.clone() }),
            (_, Some(first)) => {
                Err(EngineError::ControlFileInDoubt { home: self.home.clone(), first: first.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Returns `servers` threads that sessions share; `None` for 0.
    pub fn sharing(&self, servers: usize) -> Option<Sharing> {
        let cache = self.caches.own();
        let files = self.tablespaces.files_to_register(cache.block_size());
        (servers > 0).then(|| Sharing {
            servers,
            method: self.access.method.clone(),
            files: files.into_iter().map(Arc::clone).collect(),
            memory: cache.memory(),
        })
    }

    /// Creates a parallel operation.
    pub fn operation(&self) -> Operation {
        let operation = Operation::new(&self.recorder, &self.access.servers.threads, &self.cancel);
        let operation = operation.sharing(self.sharing(self.settings.io.shared_servers));
        if self.is_one_thread() { operation.without_threads() } else { operation }
    }

    /// Returns the number of servers in each set of a parallel operation.
    pub fn parallel_degree(&self) -> usize {
        self.access.servers.degree
    }

    /// Syncs the files of a tablespace.
    ///
    /// # Errors
    /// If a device reports a failed write: the blocks written are lost and must be written again.
    pub fn sync(&self, session: &Session, purpose: Purpose) -> Result<(), EngineError> {
        self.tablespace(purpose).files.iter().try_for_each(|file| file.sync(session))
    }

    /// Closes the database and removes all its files and directories.
    ///
    /// # Errors
    /// The first failure to remove something; the rest is removed.
    pub fn destroy(self) -> Result<(), EngineError> {
        self.caches.stop();
        let mut first = Ok(());
        for file in self.tablespaces.iter().flat_map(|tablespace| &tablespace.files) {
            let removed = self.access.disk.remove(file.file.path());
            if first.is_ok() {
                first = removed.map_err(EngineError::from);
            }
        }
        if !self.access.disk.is_memory() {
            let (database, places) = {
                let catalog = self.catalog();
                (catalog.database, catalog.log_places.clone())
            };
            let log_files = log_home::files_in(&self.home, database, places.clone());
            for path in [FILE_NAME, RESERVE_NAME, LOCK_FILE]
                .map(|name| self.home.join(name))
                .into_iter()
                .chain(log_files)
            {
                // A missing file counts as removed.
                let _ = self.access.disk.remove(&path);
            }
            let mut directories: Vec<&Path> = self
                .tablespaces
                .iter()
                .flat_map(|t| &t.files)
                .filter_map(|f| f.file.path().parent())
                .collect();
            let of_log = log_home::directories_in(&self.home, &places);
            directories.extend(of_log.iter().map(PathBuf::as_path).chain([self.home.as_path()]));
            for directory in directories {
                // A directory with other files is not empty, and stays.
                let _ = self.access.disk.remove_directory(directory);
            }
        }
        first
    }
}
