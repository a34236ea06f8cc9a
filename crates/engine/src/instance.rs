//! An instance: an open database with its settings, files and recorder.
//!
//! The start resolves what `auto` and `setall` mean on this machine, once ([`access`]).
//!
//! A database lies in one home directory (control file, lock file), its data
//! files there or in directories of their own. A process holds the lock file
//! while the instance lives.

use crate::EngineError;
use crate::access;
use crate::cache::{BufferCache, CacheOptions};
use crate::probe::MergeReads;
use crate::settings::{Setting, Settings};
use crate::storage::control::{Catalog, FileEntry, TablespaceEntry};
use crate::storage::datafile::DataFile;
use crate::storage::tablespace::{Extent, Purpose, Tablespace};
use plumb_events::{Event, Recorder, Session, SessionKind};
use plumb_io::{Disk, IoError};
use plumb_units::{BlockCount, BlockSize, Bytes, FileId, Lsn};
use std::fs;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::access::Access;

const LOCK_FILE: &str = "lock";

/// Where a database's files go.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The control file and the lock file.
    pub home: PathBuf,
    /// Data files of tables; several directories are used in turn.
    pub users: Vec<PathBuf>,
    /// Data files of sort runs.
    pub temp: Vec<PathBuf>,
    /// Data files of indexes.
    pub indx: Vec<PathBuf>,
}

impl Layout {
    /// Everything in one directory.
    #[must_use]
    pub fn in_one(home: PathBuf) -> Layout {
        Layout { users: vec![home.clone()], temp: vec![home.clone()], indx: vec![home.clone()], home }
    }

    fn directories(&self, purpose: Purpose) -> &[PathBuf] {
        match purpose {
            Purpose::Users => &self.users,
            Purpose::Temp => &self.temp,
            Purpose::Indx => &self.indx,
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.home].into_iter().chain(&self.users).chain(&self.temp).chain(&self.indx)
    }
}

/// The first size of each tablespace in bytes, rounded up to extents.
#[derive(Debug, Clone, Copy)]
pub struct InitialSizes {
    /// For tables.
    pub users: Bytes,
    /// For sort runs.
    pub temp: Bytes,
    /// For indexes.
    pub indx: Bytes,
}

/// A request to stop, seen by every server between two pieces of work.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// # Errors
    /// [`EngineError::Interrupted`] once a stop was asked for.
    #[inline]
    pub fn check(&self) -> Result<(), EngineError> {
        if self.0.load(Relaxed) { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

/// An open database.
#[derive(Debug)]
pub struct Instance {
    /// A value for every setting.
    pub settings: Settings,
    /// The way to the files.
    pub access: Access,
    /// The records of all sessions.
    pub recorder: Recorder,
    /// Asks everything under way to stop.
    pub cancel: Cancel,
    home: PathBuf,
    tablespaces: Arc<Vec<Tablespace>>,
    /// Stops its writers when the instance is dropped.
    cache: BufferCache,
    catalog: Mutex<Catalog>,
    /// What was measured for the plans of merges.
    pub(crate) merge_reads: Mutex<Option<MergeReads>>,
    /// Holds the lock as long as it is open; `None` for files in memory.
    _lock: Option<fs::File>,
}

impl Instance {
    /// Makes a new database and opens it.
    ///
    /// # Errors
    /// When the home holds a database already, a setting cannot be met on this
    /// machine, or a file cannot be made; then what was made is removed again.
    pub fn create(
        layout: &Layout,
        settings: Settings,
        sizes: InitialSizes,
        cancel: Cancel,
    ) -> Result<Instance, EngineError> {
        let access = access::resolve(&settings, settings.block_size(), layout.all())?;
        let in_memory = matches!(access.disk, Disk::Memory(_));
        if !in_memory && layout.home.join(crate::storage::control::FILE_NAME).exists() {
            return Err(EngineError::Exists { kind: "database", name: layout.home.display().to_string() });
        }
        let mut made = Made::default();
        let lock = if in_memory {
            None
        } else {
            for directory in layout.all() {
                made.directory(directory)?;
            }
            let lock = lock_home(&layout.home)?;
            // Not before: another process's lock file is not ours to remove.
            made.files.push(layout.home.join(LOCK_FILE));
            Some(lock)
        };
        let recorder = Recorder::new();
        let session = recorder.session("create database", SessionKind::Foreground);
        let mut catalog = Catalog::new();
        let mut tablespaces = Vec::new();
        for purpose in Purpose::ALL {
            let bytes = match purpose {
                Purpose::Users => sizes.users,
                Purpose::Temp => sizes.temp,
                Purpose::Indx => sizes.indx,
            };
            let (entry, tablespace) = create_tablespace(
                &session,
                (&access, &cancel),
                &settings,
                layout,
                (purpose, bytes),
                &mut made,
            )?;
            catalog.tablespaces.push(entry);
            tablespaces.push(tablespace);
            cancel.check()?;
        }
        if !in_memory {
            made.files.push(layout.home.join(crate::storage::control::FILE_NAME));
            session.wait(Event::ControlFileParallelWrite, || catalog.write(&layout.home))?;
        }
        drop(session);
        made.keep();
        let tablespaces = Arc::new(tablespaces);
        let cache = new_cache(&settings, &access, &tablespaces, &recorder);
        Ok(Instance {
            settings,
            access,
            recorder,
            cancel,
            home: layout.home.clone(),
            tablespaces,
            cache,
            catalog: Mutex::new(catalog),
            merge_reads: Mutex::new(None),
            _lock: lock,
        })
    }

    /// Opens the database in `home`.
    ///
    /// # Errors
    /// When there is none, another process has it open, or a file is missing,
    /// cut short or not the one the control file means.
    pub fn open(home: &Path, settings: Settings, cancel: Cancel) -> Result<Instance, EngineError> {
        // Read before the lock to tell a missing database from a locked one, and
        // again behind it: its last owner may have changed it until then.
        Catalog::read(home)?;
        let lock = lock_home(home)?;
        let catalog = Catalog::read(home)?;
        let directories: Vec<PathBuf> = catalog
            .tablespaces
            .iter()
            .flat_map(|entry| &entry.files)
            .filter_map(|file| file.path.parent().map(Path::to_path_buf))
            .collect();
        let block_size = catalog.tablespaces.first().and_then(|entry| BlockSize::new(entry.block_size));
        let block_size = block_size.unwrap_or(settings.block_size());
        let access = access::resolve(&settings, block_size, directories.iter())?;
        let recorder = Recorder::new();
        let session = recorder.session("open database", SessionKind::Foreground);
        let mut tablespaces = Vec::new();
        for entry in &catalog.tablespaces {
            tablespaces.push(open_tablespace(&session, &access, home, (&catalog, entry))?);
        }
        for (purpose, extents) in owned_extents(&catalog) {
            let tablespace = &tablespaces[purpose as usize];
            for extent in extents {
                tablespace.claim(extent.extent).map_err(|why| EngineError::ControlFile {
                    path: home.join(crate::storage::control::FILE_NAME),
                    why,
                })?;
            }
        }
        drop(session);
        let tablespaces = Arc::new(tablespaces);
        let cache = new_cache(&settings, &access, &tablespaces, &recorder);
        Ok(Instance {
            settings,
            access,
            recorder,
            cancel,
            home: home.to_path_buf(),
            tablespaces,
            cache,
            catalog: Mutex::new(catalog),
            merge_reads: Mutex::new(None),
            _lock: Some(lock),
        })
    }

    /// The database's directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The tablespace of a purpose.
    #[must_use]
    pub fn tablespace(&self, purpose: Purpose) -> &Tablespace {
        &self.tablespaces[purpose as usize]
    }

    /// The tablespaces, for what outlives a borrow of the instance.
    pub(crate) fn share_tablespaces(&self) -> Arc<Vec<Tablespace>> {
        Arc::clone(&self.tablespaces)
    }

    /// All tablespaces.
    #[must_use]
    pub fn tablespaces(&self) -> &[Tablespace] {
        &self.tablespaces
    }

    /// The buffer cache.
    #[must_use]
    pub fn cache(&self) -> &BufferCache {
        &self.cache
    }

    /// A cache of another shape, for tests.
    #[cfg(test)]
    pub(crate) fn replace_cache(&mut self, options: CacheOptions) {
        let tablespaces = Arc::clone(&self.tablespaces);
        self.cache = BufferCache::new(options, &self.access, tablespaces, self.recorder.clone());
    }

    /// The catalog as it stands.
    pub fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the catalog has a table or an index of this name, in capitals.
    pub(crate) fn has_segment(&self, name: &str) -> bool {
        self.catalog().segments().any(|segment| segment == name)
    }

    /// A number for an operation that is about to write blocks.
    pub fn next_lsn(&self) -> Lsn {
        let mut catalog = self.catalog();
        catalog.next_lsn += 1;
        Lsn(catalog.next_lsn - 1)
    }

    /// Changes the catalog and makes the change durable: the moment at which a
    /// load or a build becomes part of the database.
    ///
    /// # Errors
    /// When the control file cannot be written; the catalog is then as before. Or when the new one
    /// stands and is not durable: the catalog is then changed.
    pub fn change_catalog(
        &self,
        session: &Session,
        change: impl FnOnce(&mut Catalog),
    ) -> Result<(), EngineError> {
        let mut catalog = self.catalog();
        let mut changed = catalog.clone();
        change(&mut changed);
        if matches!(self.access.disk, Disk::Kernel) {
            let written = session.wait(Event::ControlFileParallelWrite, || changed.write(&self.home));
            if let Err(error) = written {
                // The new control file may stand although its directory could not be synced: what it
                // refers to is then no longer the caller's to take back.
                if Catalog::read(&self.home).is_ok_and(|found| found.segments().eq(changed.segments())) {
                    *catalog = changed;
                }
                return Err(error);
            }
        }
        *catalog = changed;
        Ok(())
    }

    /// Servers in each set of a parallel operation.
    #[must_use]
    pub fn parallel_degree(&self) -> usize {
        self.access.servers.degree
    }

    /// Makes the files of a tablespace durable.
    ///
    /// # Errors
    /// When a device reports a failed write: what was written is lost and must
    /// be written again.
    pub fn sync(&self, session: &Session, purpose: Purpose) -> Result<(), EngineError> {
        for file in &self.tablespace(purpose).files {
            session.wait(Event::DirectPathSync, || file.file.sync_data())?;
        }
        Ok(())
    }

    /// Closes the database and removes every file and directory of it.
    ///
    /// # Errors
    /// When something cannot be removed; the rest is removed all the same.
    pub fn destroy(self) -> Result<(), EngineError> {
        self.cache.stop();
        let mut first = Ok(());
        for file in self.tablespaces.iter().flat_map(|tablespace| &tablespace.files) {
            let removed = self.access.disk.remove(file.file.path());
            if first.is_ok() {
                first = removed.map_err(EngineError::from);
            }
        }
        if matches!(self.access.disk, Disk::Kernel) {
            for name in [crate::storage::control::FILE_NAME, LOCK_FILE] {
                // Missing is as good as removed.
                let _ = fs::remove_file(self.home.join(name));
            }
            let mut directories: Vec<&Path> = self
                .tablespaces
                .iter()
                .flat_map(|t| &t.files)
                .filter_map(|f| f.file.path().parent())
                .collect();
            directories.push(&self.home);
            for directory in directories {
                // A directory that others use too is not empty and stays.
                let _ = fs::remove_dir(directory);
            }
        }
        first
    }
}

/// What a create has made so far; removed again unless kept.
#[derive(Debug, Default)]
struct Made {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    kept: bool,
}

impl Made {
    fn directory(&mut self, path: &Path) -> Result<(), EngineError> {
        let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
        self.directories.extend(missing.into_iter().rev().map(Path::to_path_buf));
        fs::create_dir_all(path).map_err(|source| IoError::Operation {
            operation: "create directory",
            path: path.to_path_buf(),
            source,
        })?;
        Ok(())
    }

    fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for directory in self.directories.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

fn lock_home(home: &Path) -> Result<fs::File, EngineError> {
    let path = home.join(LOCK_FILE);
    let fail = |source| IoError::Operation { operation: "lock", path: path.clone(), source };
    let mut file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(fail)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = if holder.is_empty() { "unknown".to_string() } else { holder.trim().to_string() };
            return Err(EngineError::InUse { path: home.to_path_buf(), holder });
        }
        Err(fs::TryLockError::Error(source)) => return Err(fail(source).into()),
    }
    file.set_len(0).map_err(fail)?;
    file.rewind().map_err(fail)?;
    write!(file, "{}", std::process::id()).map_err(fail)?;
    Ok(file)
}

fn new_cache(
    settings: &Settings,
    access: &Access,
    tablespaces: &Arc<Vec<Tablespace>>,
    recorder: &Recorder,
) -> BufferCache {
    let options = CacheOptions::of(settings, tablespaces[0].block_size);
    BufferCache::new(options, access, Arc::clone(tablespaces), recorder.clone())
}

fn create_tablespace(
    session: &Session,
    (access, cancel): (&Access, &Cancel),
    settings: &Settings,
    layout: &Layout,
    (purpose, bytes): (Purpose, Bytes),
    made: &mut Made,
) -> Result<(TablespaceEntry, Tablespace), EngineError> {
    let block_size = settings.block_size();
    let extent_bytes =
        settings.number(Setting::ExtentSize).max(8 * block_size.bytes() as u64).next_power_of_two();
    let extent_blocks = block_size.blocks_in(extent_bytes);
    let file_count = settings.number(Setting::DataFiles);
    let file_bytes = bytes.0.div_ceil(file_count).next_multiple_of(extent_bytes).max(extent_bytes);
    let directories = layout.directories(purpose);
    let mut files = Vec::new();
    let mut entries = Vec::new();
    for number in 0..file_count {
        let directory = &directories[number as usize % directories.len()];
        let path = directory.join(format!("{}{:02}.dbf", purpose.name().to_lowercase(), number + 1));
        let id = FileId((purpose as u64 * file_count + number + 1) as u16);
        let shape = (id, block_size, file_bytes);
        let file = DataFile::create(session, access, cancel, &path, shape)?;
        if matches!(access.disk, Disk::Kernel) {
            made.files.push(path.clone());
        }
        files.push(file);
        entries.push(FileEntry { id: id.0, path, bytes: file_bytes });
    }
    let entry = TablespaceEntry {
        purpose,
        block_size: block_size.bytes() as u64,
        extent_blocks: extent_blocks.0,
        files: entries,
    };
    Ok((entry, Tablespace::new(purpose, block_size, extent_blocks, files)?))
}

fn open_tablespace(
    session: &Session,
    access: &Access,
    home: &Path,
    (catalog, entry): (&Catalog, &TablespaceEntry),
) -> Result<Tablespace, EngineError> {
    let block_size = BlockSize::new(entry.block_size).ok_or_else(|| EngineError::ControlFile {
        path: home.join(crate::storage::control::FILE_NAME),
        why: format!("a block size of {} bytes is not possible", entry.block_size),
    })?;
    let mut files = Vec::new();
    for file in &entry.files {
        // It may have grown since it was made: what segments own of it counts too.
        let owned = owned_extents(catalog).flat_map(|(_, pieces)| pieces).map(|piece| piece.extent);
        let end_of = |extent: Extent| (u64::from(extent.block) + u64::from(extent.blocks)) * entry.block_size;
        let bytes = owned.filter(|extent| extent.file == file.id).map(end_of).fold(file.bytes, u64::max);
        let shape = (FileId(file.id), block_size, bytes);
        files.push(DataFile::open(session, access, &file.path, shape)?);
    }
    Tablespace::new(entry.purpose, block_size, BlockCount(entry.extent_blocks), files)
}

fn owned_extents(
    catalog: &Catalog,
) -> impl Iterator<Item = (Purpose, &[crate::storage::control::SegmentExtent])> {
    let tables = catalog.tables.iter().map(|table| (Purpose::Users, table.extents.as_slice()));
    let leaves = catalog.indexes.iter().map(|index| (Purpose::Indx, index.leaves.as_slice()));
    let branches = catalog.indexes.iter().map(|index| (Purpose::Indx, index.branches.as_slice()));
    tables.chain(leaves).chain(branches)
}
