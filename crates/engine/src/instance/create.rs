//! Making a database, so that a creation that ends at any moment leaves a database or nothing.
//!
//! How: the control file is written first, as that of a database in the making, with the names of
//! all files to come. Then the files are made and synced, then their directories. At last the
//! control file is replaced by that of a database that stands. Who finds the first one, and can
//! lock the home, knows that its maker is dead: the files it names go, and it after them. A
//! creation that fails removes what it has made itself.
//!
//! Why the names are safe to remove: none of the files was there when the control file was written,
//! and a file that is there already is never opened. A control file that came from elsewhere may
//! name any file, so a file outside the home is removed only if its header has this database's id:
//! such a file gets its header first. A home with data files and no control file has been damaged
//! by another program, and is left alone.
//!
//! The home is held by its descriptor from the first file on ([`Directory`]): should it be moved,
//! the creation goes on where it is.

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
use plumb_events::Cancel;
use plumb_events::{Event, Recorder, Role, Session};
use plumb_io::sim::MemoryDisk;
use plumb_io::{Directory, Disk, IoError, Lock, OpenMode};
use plumb_units::{BlockCount, BlockSize, Bytes, FileId, Lsn};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            Purpose::Temp => &self.temp,
            Purpose::Indx => &self.indx,
            _ => &self.users,
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.home].into_iter().chain(&self.users).chain(&self.temp).chain(&self.indx)
    }
}

/// The first size of each tablespace in bytes, rounded up to extents.
#[derive(Debug, Clone, Copy, Default)]
pub struct InitialSizes {
    /// For tables.
    pub users: Bytes,
    /// For sort runs.
    pub temp: Bytes,
    /// For indexes.
    pub indx: Bytes,
}

impl InitialSizes {
    /// Nothing at all.
    pub const NONE: InitialSizes = InitialSizes { users: Bytes(0), temp: Bytes(0), indx: Bytes(0) };
}

/// The operation that makes the files.
pub(super) const CREATION: Lsn = Lsn(1);

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
        settings.require_reads_within(extent_bytes(&settings) / settings.block_size().bytes() as u64)?;
        let access = access::resolve(&settings, settings.block_size(), Disk::Kernel, layout.all())?;
        if !access.disk.is_memory() {
            settings.require_archive_dest()?;
        }
        create_by(access, layout, settings, sizes, cancel)
    }

    /// Makes a new database on a disk in memory that can lose power, and opens it. It has one
    /// server and starts no thread.
    ///
    /// # Errors
    /// When the home holds a database already, or the disk fails.
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
        // Not before: another process's lock file is not ours to remove.
        made.files.push(layout.home.join(LOCK_FILE));
        if Catalog::find_on(&access.disk, &layout.home)?.is_some() {
            // Whoever made it since has let go of it.
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
            extent_bytes: extent_bytes(&settings),
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

/// True if a database stands in `home`. What a killed creation has left there is removed.
///
/// # Errors
/// When the control file is damaged or there are data files without one, or another process is
/// making one.
pub fn stands(home: &Path) -> Result<bool, EngineError> {
    let stands = |found: &Option<Catalog>| found.as_ref().is_some_and(Catalog::is_open);
    let found = Catalog::find(home)?;
    if found.is_none() || stands(&found) {
        return Ok(found.is_some());
    }
    let held = Arc::new(Directory::open(home)?);
    let disk = Disk::Held(Arc::clone(&held));
    let _lock = HomeLock::take(&held, Lock::Exclusive)?;
    // Its maker may have come to an end since.
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
    // Its own list goes last.
    disk.remove(&home.join(FILE_NAME))?;
    Ok(false)
}

/// True if a file outside the home says that it is this database's.
fn is_of(catalog: &Catalog, path: &Path) -> bool {
    header::database_of(path).is_ok_and(|found| found == Some(catalog.database))
}

/// A directory's path without links, as it is compared.
pub(super) fn canonical(directory: &Path) -> Result<PathBuf, EngineError> {
    directory.canonicalize().map_err(|source| {
        IoError::Operation { operation: "resolve", path: directory.to_path_buf(), source }.into()
    })
}

/// A tablespace that is to be made.
struct Planned<'a> {
    purpose: Purpose,
    block_size: BlockSize,
    extent_bytes: u64,
    file_count: u64,
    /// The length of all files, rounded up to extents.
    bytes: Bytes,
    /// Where the files go, in turn.
    directories: &'a [PathBuf],
}

impl Planned<'_> {
    /// As the control file has it: with files none of which is there yet, numbered behind those
    /// that the catalog has.
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

/// Makes a tablespace of another block size in a database that is open, with as many files as USERS
/// has and beside them.
///
/// It is entered first: should this be killed, the next opening makes the files, in which nothing
/// lies.
///
/// # Errors
/// When blocks of this size cannot be reached as the others are, transactions are open, a file is
/// there already or cannot be made; then nothing was made.
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
            // The error to report is the first one; an opening makes anew what the control file
            // has.
            let _ = instance.replace_catalog(session, catalog, forget);
            forget(catalog);
            paths().for_each(|path| drop(access.disk.remove(&path)));
            Err(error)
        }
    }
}

/// Bytes of an extent: a power of two, and eight blocks at least.
#[must_use]
pub fn extent_bytes(settings: &Settings) -> u64 {
    let block_bytes = settings.block_size().bytes() as u64;
    let asked = settings.debug.debug_extent_blocks;
    if asked > 0 {
        return (asked * block_bytes).next_power_of_two();
    }
    let least = 8 * block_bytes;
    settings.storage.extent_size.0.max(least).next_power_of_two()
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

/// Makes the files of a tablespace, which is in the catalog; `home` as it was given, and without
/// links.
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

/// What the header of a data file must say.
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

/// What a create has made so far; removed again unless kept.
#[derive(Debug, Default)]
struct Made {
    /// By which the home is held, once it is.
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

/// Makes the names durable: those of the files, and of the directories that they lie in. These may
/// have been made by the caller just before.
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
        // The error to report is the first one.
        for file in &self.files {
            let _ = self.disk.as_ref().map(|disk| disk.remove(file));
        }
        for directory in self.directories.iter().rev() {
            let _ = Disk::Kernel.remove_directory(directory);
        }
    }
}
