//! Creates a database, so that a creation that ends at any moment leaves a database or nothing.
//!
//! The control file is written first, as that of an unfinished database, with the names of all
//! files to come. Then the files are created and synced, and their directories. Finally the control
//! file is replaced by that of a finished database. A process that finds the first one, and can
//! lock the home, knows that its creator is dead. It removes the files that it names, and then the
//! control file. A creation that fails removes its files itself.
//!
//! The names are safe to remove: none of the files existed when the control file was written, and
//! an existing file is never opened. A control file from elsewhere may name any file. So a file
//! outside the home is removed only if its header has this database's id; such a file gets its
//! header first. A home with data files and no control file was damaged by another program, and is
//! left unchanged.
//!
//! The home is held by its descriptor from the first file on ([`Directory`]). If it is moved, the
//! creation continues at its new place.

use super::lock::{HomeLock, LOCK_FILE};
use super::{Instance, Opened};
use crate::EngineError;
use crate::access::{self, Access};
use crate::database_id::DatabaseId;
use crate::settings::Settings;
use crate::storage::control::{Catalog, FILE_NAME, FileEntry, RESERVE_NAME, TablespaceEntry};
use crate::storage::datafile::DataFile;
use crate::storage::header::{self, FileHeader, NO_CHECKPOINT};
use crate::storage::own_file::require_own;
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Cancel, Event, Recorder, Role, Session};
use plumb_io::sim::MemoryDisk;
use plumb_io::{Directory, Disk, IoError, Lock, OpenMode};
use plumb_units::{BlockCount, BlockSize, Bytes, FileId, Lsn};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories of a database's files.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Directory of the control file and the lock file.
    pub home: PathBuf,
    /// Directories of the data files of tables, used in turn.
    pub users: Vec<PathBuf>,
    /// Directories of the data files of sort runs, used in turn.
    pub temp: Vec<PathBuf>,
    /// Directories of the data files of indexes, used in turn.
    pub indx: Vec<PathBuf>,
}

impl Layout {
    /// Returns the layout with all files in one directory.
    pub fn in_one(home: PathBuf) -> Layout {
        Layout { users: vec![home.clone()], temp: vec![home.clone()], indx: vec![home.clone()], home }
    }

    fn directories(&self, purpose: Purpose) -> &[PathBuf] {
        match purpose {
            Purpose::Temp => &self.temp,
            Purpose::Indx => &self.indx,
            _ => &self.users,
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.home].into_iter().chain(&self.users).chain(&self.temp).chain(&self.indx)
    }
}

/// Initial size of each tablespace in bytes, rounded up to extents.
#[derive(Debug, Clone, Copy, Default)]
pub struct InitialSizes {
    /// Size of the tablespace of tables.
    pub users: Bytes,
    /// Size of the tablespace of sort runs.
    pub temp: Bytes,
    /// Size of the tablespace of indexes.
    pub indx: Bytes,
}

impl InitialSizes {
    /// The smallest sizes: one extent per file.
    pub const NONE: InitialSizes = InitialSizes { users: Bytes(0), temp: Bytes(0), indx: Bytes(0) };
}

/// The operation that creates the files.
pub(super) const CREATION: Lsn = Lsn(1);

impl Instance {
    /// Creates a new database and opens it.
    ///
    /// # Errors
    /// If the home has a database already, a setting cannot be met on this machine, or a file
    /// cannot be created; then all files created are removed.
    pub fn create(
        layout: &Layout,
        mut settings: Settings,
        sizes: InitialSizes,
        cancel: Cancel,
    ) -> Result<Instance, EngineError> {
        settings.adopt_read_ahead(settings.block_size());
        settings.require_reads_within(settings.extent_bytes() / settings.block_size().bytes() as u64)?;
        let access = access::resolve(&settings, settings.block_size(), Disk::Kernel, layout.all())?;
        if !access.disk.is_memory() {
            settings.require_archive_dest()?;
        }
        create_by(access, layout, settings, sizes, cancel)
    }

    /// Creates a new database on a disk in memory that can lose power, and opens it. It has one
    /// server and starts no thread.
    ///
    /// # Errors
    /// If the home has a database already, or the disk fails.
    pub fn create_on(
        disk: &Arc<MemoryDisk>,
        home: &Path,
        settings: Settings,
        sizes: InitialSizes,
    ) -> Result<Instance, EngineError> {
        let access = access::in_memory(&settings, disk)?;
        create_by(access, &Layout::in_one(home.to_path_buf()), settings, sizes, Cancel::default())
    }
}

fn create_by(
    mut access: Access,
    layout: &Layout,
    settings: Settings,
    sizes: InitialSizes,
    cancel: Cancel,
) -> Result<Instance, EngineError> {
    settings.require_one_cache_for(settings.block_size())?;
    let on_disk = !access.disk.is_memory();
    let exists = || EngineError::Exists { kind: "database", name: layout.home.display().to_string() };
    if if on_disk { stands(&layout.home)? } else { access.disk.exists(&layout.home.join(FILE_NAME)) } {
        return Err(exists());
    }
    let mut made = Made::default();
    let mut lock = None;
    if on_disk {
        layout.all().try_for_each(|directory| made.directory(directory))?;
        let held = Arc::new(Directory::open(&layout.home)?);
        lock = HomeLock::take(&held, Lock::Exclusive)?;
        access.disk = Disk::Held(held);
        made.disk = Some(access.disk.clone());
        // Not earlier, because another process's lock file must not be removed.
        made.files.push(layout.home.join(LOCK_FILE));
        if Catalog::find_on(&access.disk, &layout.home)?.is_some() {
            // Another process created it meanwhile and released the lock.
            made.keep();
            return Err(exists());
        }
    }
    let recorder = Recorder::new();
    let session = recorder.session(Role::CreateDatabase);
    let home = if on_disk { canonical(&layout.home)? } else { layout.home.clone() };
    let mut catalog = Catalog::new(DatabaseId(access.disk.random_id()), &home);
    for (purpose, bytes) in
        [(Purpose::Users, sizes.users), (Purpose::Temp, sizes.temp), (Purpose::Indx, sizes.indx)]
    {
        let planned = Planned {
            purpose,
            block_size: settings.block_size(),
            extent_bytes: settings.extent_bytes(),
            file_count: settings.storage.data_files,
            bytes,
            directories: layout.directories(purpose),
        };
        catalog.tablespaces.push(planned.entry(&catalog, &home)?);
    }
    let write = |catalog: &Catalog| {
        session.wait(Event::ControlFileParallelWrite, || catalog.write(&access.disk, &layout.home))
    };
    if on_disk {
        let files: Vec<PathBuf> = catalog.data_files(&layout.home).collect();
        if let Some(file) = files.iter().find(|file| access.disk.exists(file)) {
            return Err(EngineError::NoControlFile { home: layout.home.clone(), file: file.clone() });
        }
        made.files.extend(files);
        made.files.extend([FILE_NAME, RESERVE_NAME].map(|name| layout.home.join(name)));
    }
    write(&catalog)?;
    let tablespaces = make_files(&session, (&access, &cancel), layout, &catalog)?;
    sync_names(&access.disk, &catalog, layout)?;
    catalog.open();
    write(&catalog)?;
    drop(session);
    made.keep();
    let mode = plumb_io::OpenMode::Create;
    let opened =
        Opened { home: layout.home.clone(), mode, lock, catalog, tablespaces, next_lsn: CREATION.0 + 1 };
    Instance::new((settings, access, recorder, cancel), opened)
}

/// True if `home` has a database. Removes the remains of a killed creation.
///
/// # Errors
/// If the control file is damaged, there are data files without one, or another
/// process is creating a database.
pub fn stands(home: &Path) -> Result<bool, EngineError> {
    let stands = |found: &Option<Catalog>| found.as_ref().is_some_and(Catalog::is_open);
    let found = Catalog::find(home)?;
    if found.is_none() || stands(&found) {
        return Ok(found.is_some());
    }
    let held = Arc::new(Directory::open(home)?);
    let disk = Disk::Held(Arc::clone(&held));
    let _lock = HomeLock::take(&held, Lock::Exclusive)?;
    // Its creator may have finished since.
    let found = Catalog::find_on(&disk, home)?;
    let Some(catalog) = found.as_ref().filter(|catalog| !catalog.is_open()) else {
        return Ok(stands(&found));
    };
    for file in catalog.half_made(&canonical(home)?) {
        let path = file.path_from(home);
        let is_own = if file.is_outside() {
            is_of(catalog, &path)
        } else {
            require_own(&held, &file.path, OpenMode::Write).is_ok()
        };
        if is_own && disk.exists(&path) {
            disk.remove(&path)?;
        }
    }
    if disk.exists(&home.join(RESERVE_NAME)) {
        disk.remove(&home.join(RESERVE_NAME))?;
    }
    // The list of the files goes last.
    disk.remove(&home.join(FILE_NAME))?;
    Ok(false)
}

/// True if the header of a file outside the home has this database's id.
fn is_of(catalog: &Catalog, path: &Path) -> bool {
    header::database_of(path).is_ok_and(|found| found == Some(catalog.database))
}

/// Returns a directory's path with links resolved, for comparisons.
pub(super) fn canonical(directory: &Path) -> Result<PathBuf, EngineError> {
    directory.canonicalize().map_err(|source| {
        IoError::Operation { operation: "resolve", path: directory.to_path_buf(), source }.into()
    })
}

struct Planned<'a> {
    purpose: Purpose,
    block_size: BlockSize,
    extent_bytes: u64,
    file_count: u64,
    /// Bytes of all files, rounded up to extents.
    bytes: Bytes,
    /// Directories of the files, used in turn.
    directories: &'a [PathBuf],
}

impl Planned<'_> {
    /// Returns the control file's entry: files that do not exist yet, numbered
    /// after those of the catalog.
    fn entry(&self, catalog: &Catalog, home: &Path) -> Result<TablespaceEntry, EngineError> {
        let Planned { purpose, block_size, extent_bytes, file_count, directories, .. } = *self;
        let file_bytes = self.bytes.0.div_ceil(file_count).next_multiple_of(extent_bytes).max(extent_bytes);
        if file_bytes / block_size.bytes() as u64 > u64::from(u32::MAX) {
            return Err(EngineError::Full { tablespace: purpose.name(), files: file_count as usize });
        }
        let known = catalog.tablespaces.iter().flat_map(|entry| &entry.files).map(|file| file.id);
        let first = known.max().unwrap_or(0) + 1;
        let mut files = Vec::new();
        for number in 0..file_count {
            let directory = &directories[number as usize % directories.len()];
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            let path = directory.join(format!("{}{:02}.dbf", purpose.name().to_lowercase(), number + 1));
            let path = path.strip_prefix(home).map_or(path.clone(), Path::to_path_buf);
            files.push(FileEntry { id: first + number as u16, path, bytes: file_bytes, needs: None });
        }
        let extent_blocks = block_size.blocks_in(extent_bytes).0;
        Ok(TablespaceEntry { purpose, block_size: block_size.bytes() as u64, extent_blocks, files })
    }
}

/// Creates a tablespace of another block size in an open database, with as many files as USERS
/// has, in the same directories.
///
/// It enters the control file first. If the process is killed, the next opening creates
/// the files, which are empty.
///
/// # Errors
/// If blocks of this size cannot be accessed like the others, or a file exists already or cannot be
/// created. Also if open transactions have no room in their log for such blocks. Then nothing was
/// created.
pub(super) fn add_tablespace(
    instance: &Instance,
    session: &Session,
    catalog: &mut Catalog,
    (purpose, block_size, bytes): (Purpose, BlockSize, Bytes),
) -> Result<(), EngineError> {
    instance.require_writable()?;
    if instance.caches.log().is_some() && block_size > instance.tablespaces.largest_block() {
        return Err(EngineError::Contradiction {
            first: format!("tablespace {}, which is not there yet", purpose.name()),
            second: "transactions that are open".to_string(),
            why: "their log has no room for changes of such large blocks; make the tablespace before they are opened"
                .to_string(),
        });
    }
    let (home, access) = (&instance.home, &instance.access);
    let canonical = instance.canonical_home();
    let users = instance.tablespace(Purpose::Users);
    let beside: Vec<PathBuf> =
        users.files.iter().filter_map(|file| file.file.path().parent().map(Path::to_path_buf)).collect();
    let least = 8 * block_size.bytes() as u64;
    let planned = Planned {
        purpose,
        block_size,
        extent_bytes: users.extent_blocks.bytes(users.block_size).max(least),
        file_count: beside.len() as u64,
        bytes,
        directories: &beside,
    };
    let entry = planned.entry(catalog, &canonical)?;
    instance.settings.require_reads_within(u64::from(entry.extent_blocks))?;
    access.require_direct(block_size, &beside)?;
    let paths = || entry.files.iter().map(|file| file.path_from(home));
    if let Some(path) = paths().find(|path| access.disk.exists(path)) {
        return Err(EngineError::FileExists { path });
    }
    let forget = |catalog: &mut Catalog| catalog.tablespaces.retain(|known| known.purpose != purpose);
    let entered = instance.replace_catalog(session, catalog, |catalog| catalog.add_tablespace(entry.clone()));
    let made = entered.and_then(|()| {
        let made =
            make_tablespace(session, (access, &instance.cancel), (home, &canonical), (catalog, &entry))?;
        beside.iter().try_for_each(|directory| access.disk.sync_directory(directory))?;
        Ok(made)
    });
    match made {
        Ok(made) => {
            let added = instance.tablespaces.add(made);
            assert!(added.is_ok(), "the catalog's lock is held: nobody else has added it");
            Ok(())
        }
        Err(error) => {
            // The first error is the one to report; an opening creates again what the control file
            // has.
            let _ = instance.replace_catalog(session, catalog, forget);
            forget(catalog);
            paths().for_each(|path| drop(access.disk.remove(&path)));
            Err(error)
        }
    }
}

fn make_files(
    session: &Session,
    (access, cancel): (&Access, &Cancel),
    layout: &Layout,
    catalog: &Catalog,
) -> Result<Tablespaces, EngineError> {
    let home = canonical(&layout.home).unwrap_or_else(|_| layout.home.clone());
    let make = |entry| make_tablespace(session, (access, cancel), (&layout.home, &home), (catalog, entry));
    let made = catalog.tablespaces.iter().map(make).collect::<Result<Vec<_>, EngineError>>()?;
    Ok(Tablespaces::of(made).expect("the first three were planned"))
}

/// Creates the files of a tablespace that is in the catalog; `home` is
/// as given, `canonical` without links.
fn make_tablespace(
    session: &Session,
    (access, cancel): (&Access, &Cancel),
    (home, canonical): (&Path, &Path),
    (catalog, entry): (&Catalog, &TablespaceEntry),
) -> Result<Tablespace, EngineError> {
    let block_size = BlockSize::new(entry.block_size).expect("it was set");
    let mut files = Vec::new();
    for file in &entry.files {
        cancel.check()?;
        let header = header(catalog, entry, file, (block_size, canonical));
        let path = file.path_from(home);
        files.push(DataFile::create(session, access, cancel, &path, (&header, file.bytes))?);
    }
    Tablespace::new(entry.purpose, block_size, BlockCount(entry.extent_blocks), (files, Vec::new()))
}

/// Returns the header that a data file must have.
pub(super) fn header(
    catalog: &Catalog,
    entry: &TablespaceEntry,
    file: &FileEntry,
    (block_size, home): (BlockSize, &Path),
) -> FileHeader {
    FileHeader {
        database: catalog.database,
        file: FileId(file.id),
        block_size,
        extent_blocks: BlockCount(entry.extent_blocks),
        purpose: entry.purpose,
        created: CREATION,
        checkpoint: NO_CHECKPOINT,
        home: file.path.is_absolute().then(|| home.to_path_buf()),
    }
}

/// Files and directories of a creation, removed on drop unless kept.
#[derive(Debug, Default)]
struct Made {
    /// The disk that holds the home's descriptor, once there is one.
    disk: Option<Disk>,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    kept: bool,
}

impl Made {
    fn directory(&mut self, path: &Path) -> Result<(), EngineError> {
        self.directories.extend(Disk::Kernel.make_directory(path)?);
        Ok(())
    }

    fn keep(&mut self) {
        self.kept = true;
    }
}

/// Syncs the names of the files and of their directories, which the caller may have just created.
fn sync_names(disk: &Disk, catalog: &Catalog, layout: &Layout) -> Result<(), EngineError> {
    let parent = |path: PathBuf| path.parent().map(Path::to_path_buf);
    let of_files = catalog.data_files(&layout.home).filter_map(parent);
    let around = layout.all().cloned().filter_map(parent);
    let directories: BTreeSet<PathBuf> = of_files.chain(around).collect();
    Ok(directories.iter().try_for_each(|directory| disk.sync_directory(directory))?)
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // The first error is the one to report.
        for file in &self.files {
            let _ = self.disk.as_ref().map(|disk| disk.remove(file));
        }
        for directory in self.directories.iter().rev() {
            let _ = Disk::Kernel.remove_directory(directory);
        }
    }
}
