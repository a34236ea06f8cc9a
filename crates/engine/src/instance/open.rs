//! Opens a database: to change it, or to read it without leaving a trace.
//!
//! To change it, the home and every data file are locked exclusively and a batch of operation
//! numbers is reserved. Some files are repaired. The temporary tablespace holds nothing that
//! outlives an instance, so a missing, short or damaged file of it is created again. So is a data
//! file without blocks of any table or index. Any other missing or damaged file keeps its error
//! ([`Tablespace::unusable`]), and the rest can be used.
//!
//! To read it, nothing is written, not even the lock file. So reading works on a read-only mount,
//! in a directory without write permission, and next to other readers. The temporary tablespace is
//! not opened.
//!
//! A file outside the home names its home. If that is another directory, the database may have been
//! moved, and the file gets the new name. Otherwise this is a copy, and the file belongs to the
//! original. The path comes from a control file that another user may have written. So such a file
//! is used only if its header has this database's id, and is never created again.
//!
//! The home is held by its descriptor ([`Directory`]). If it is moved while open, the instance
//! continues in it, and leaves a new directory at the old place unchanged.

use super::create::{canonical, header, stands};
use super::lock::HomeLock;
use super::{Instance, Opened};
use crate::EngineError;
use crate::access::{self, Access};
use crate::redo::checkpoint::Checkpoint;
use crate::redo::{Claim, log_home};
use crate::settings::Settings;
use crate::storage::control::{Catalog, FILE_NAME, FileEntry, SegmentExtent, TablespaceEntry};
use crate::storage::datafile::{DataFile, Meant};
use crate::storage::header::{FileHeader, Found};
use crate::storage::own_file::require_own;
use crate::storage::tablespace::{Extent, Purpose, Tablespace, UnusableFile};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Cancel, Event, Recorder, Role, Session};
use plumb_io::sim::MemoryDisk;
use plumb_io::{Directory, Disk, Lock, OpenMode};
use plumb_units::{BlockCount, BlockSize, Bytes, FileId, Lsn};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Instance {
    /// Opens the database in `home`.
    ///
    /// # Errors
    /// If there is none, another process has it open, or its control file is damaged. A missing or
    /// damaged data file is reported to the sessions that need it.
    pub fn open(home: &Path, settings: Settings, cancel: Cancel) -> Result<Instance, EngineError> {
        stands(home)?;
        settings.require_archive_dest()?;
        open_as(OpenMode::Write, None, home, settings, cancel)
    }

    /// Opens the database in `home` on a disk in memory that can lose power. It has one
    /// server and starts no thread.
    ///
    /// # Errors
    /// As [`Instance::open`].
    pub fn open_on(disk: &Arc<MemoryDisk>, home: &Path, settings: Settings) -> Result<Instance, EngineError> {
        open_as(OpenMode::Write, Some(disk), home, settings, Cancel::default())
    }

    /// Opens the database in `home` to read it, next to other readers. It cannot be changed, and
    /// nothing can be sorted in it.
    ///
    /// # Errors
    /// As [`Instance::open`].
    pub fn open_to_read(home: &Path, settings: Settings, cancel: Cancel) -> Result<Instance, EngineError> {
        open_as(OpenMode::Read, None, home, settings, cancel)
    }
}

/// Fits the reads of scans to the blocks and extents of the database.
fn fit_reads(settings: &mut Settings, catalog: &Catalog) -> Result<(), EngineError> {
    let users = catalog.tablespaces.iter().find(|entry| entry.purpose == Purpose::Users);
    if let Some(block_size) = users.and_then(|entry| BlockSize::new(entry.block_size)) {
        settings.adopt_read_ahead(block_size);
    }
    let mut entries = catalog.tablespaces.iter();
    entries.try_for_each(|entry| settings.require_reads_within(u64::from(entry.extent_blocks)))
}

fn open_as(
    mode: OpenMode,
    memory: Option<&Arc<MemoryDisk>>,
    home: &Path,
    mut settings: Settings,
    cancel: Cancel,
) -> Result<Instance, EngineError> {
    let missing = || EngineError::NoDatabase { home: home.to_path_buf() };
    let held = if memory.is_some() || !home.is_dir() { None } else { Some(Arc::new(Directory::open(home)?)) };
    let disk = match (memory, &held) {
        (Some(disk), _) => Disk::Memory(Arc::clone(disk)),
        (None, Some(held)) => Disk::Held(Arc::clone(held)),
        (None, None) => return Err(missing()),
    };
    let read = || Catalog::find_on(&disk, home)?.ok_or_else(missing);
    // Read before the lock, to tell a missing database from a locked one, and again after it,
    // because its last owner may have changed it meanwhile.
    let mut catalog = read()?;
    let kind = if mode == OpenMode::Read { Lock::Shared } else { Lock::Exclusive };
    let lock = match &held {
        None => None,
        Some(held) => HomeLock::take(held, kind)?,
    };
    if lock.is_some() {
        catalog = read()?;
    }
    if !catalog.is_open() {
        // Its creator is dead, and a reader may not remove the remains.
        return Err(missing());
    }
    fit_reads(&mut settings, &catalog)?;
    let access = access_to(&catalog, home, mode, disk.clone(), &settings)?;
    let canonical = if memory.is_some() { home.to_path_buf() } else { canonical(home)? };
    let checkpoint = require_log(mode, &access.disk, home, &canonical, &catalog)?;
    let recorder = Recorder::new();
    let session = recorder.session(Role::OpenDatabase);
    let opening = Opening {
        mode,
        home,
        held: held.as_deref(),
        canonical,
        checkpoint,
        session: &session,
        access: &access,
        catalog: &catalog,
    };
    let tablespaces =
        catalog.tablespaces.iter().map(|entry| opening.tablespace(entry)).collect::<Result<Vec<_>, _>>()?;
    let damaged = |why| EngineError::ControlFile { path: home.join(FILE_NAME), why };
    let tablespaces = Tablespaces::of(tablespaces).map_err(damaged)?;
    claim(&catalog, &tablespaces).map_err(damaged)?;
    if mode == OpenMode::Write {
        let unusable = || tablespaces.iter().flat_map(|tablespace| &tablespace.unusable);
        catalog.note_usable(|id| unusable().all(|file| file.id.0 != id), checkpoint);
        catalog.skip_lsns(&access.disk);
    }
    let next_lsn = catalog.lsn_ceiling;
    if mode == OpenMode::Write {
        catalog.raise_lsn_ceiling();
        session.wait(Event::ControlFileParallelWrite, || catalog.write(&access.disk, home))?;
    }
    drop(session);
    let opened = Opened { home: home.to_path_buf(), mode, lock, catalog, tablespaces, next_lsn };
    Instance::new((settings, access, recorder, cancel), opened)
}

/// Refuses a control file older than the log, and for writing a directory whose log another copy
/// has. Returns the LSN that each data file header must have reached; 0 if unknown.
fn require_log(
    mode: OpenMode,
    disk: &Disk,
    home: &Path,
    canonical: &Path,
    catalog: &Catalog,
) -> Result<Lsn, EngineError> {
    let Some(log) = Checkpoint::find(disk, home, catalog.database) else { return Ok(Lsn(0)) };
    log_home::require_newest(home, catalog, &log)?;
    if mode == OpenMode::Write {
        // A copy that cannot continue its log must not diverge by loads without redo either.
        let claim = Claim { disk, home, canonical, database: catalog.database, epochs: log.epochs };
        claim.require_log(&catalog.log_places, &log)?;
    }
    Ok(log.of_headers())
}

/// Resolves the access to the files of a database.
fn access_to(
    catalog: &Catalog,
    home: &Path,
    mode: OpenMode,
    disk: Disk,
    settings: &Settings,
) -> Result<Access, EngineError> {
    let files: Vec<PathBuf> = catalog.data_files(home).collect();
    // The smallest blocks decide if direct I/O is possible, because it moves whole device units.
    let sizes = catalog.tablespaces.iter().filter_map(|entry| BlockSize::new(entry.block_size));
    let block_size = sizes.min().unwrap_or(settings.block_size());
    match (mode, &disk) {
        (_, Disk::Memory(memory)) => access::in_memory(settings, memory),
        (OpenMode::Read, _) => {
            let file = files.iter().find(|file| disk.exists(file)).map(PathBuf::as_path);
            access::resolve_to_read(settings, block_size, disk.clone(), file)
        }
        _ => {
            let directories: Vec<PathBuf> =
                files.iter().filter_map(|file| file.parent().map(Path::to_path_buf)).collect();
            access::resolve(settings, block_size, disk, directories.iter())
        }
    }
}

/// Marks the extents of all segments as used.
fn claim(catalog: &Catalog, tablespaces: &Tablespaces) -> Result<(), String> {
    for (purpose, extents) in owned_extents(catalog) {
        let missing = || format!("something lies in tablespace {}, which is not there", purpose.name());
        let tablespace = tablespaces.find(purpose).ok_or_else(missing)?;
        extents.iter().try_for_each(|extent| tablespace.claim(extent.extent))?;
    }
    Ok(())
}

fn owned_extents(catalog: &Catalog) -> impl Iterator<Item = (Purpose, &[SegmentExtent])> {
    let tables = catalog.tables.iter().map(|table| (table.tablespace, table.extents.as_slice()));
    let leaves = catalog.indexes.iter().map(|index| (Purpose::Indx, index.leaves.as_slice()));
    let branches = catalog.indexes.iter().map(|index| (Purpose::Indx, index.branches.as_slice()));
    let live = catalog.live_extents().map(|(purpose, extents, _)| (purpose, extents));
    tables.chain(leaves).chain(branches).chain(live)
}

/// Inputs for opening the files of a database.
struct Opening<'a> {
    mode: OpenMode,
    home: &'a Path,
    /// `None` for a database in memory.
    held: Option<&'a Directory>,
    canonical: PathBuf,
    /// LSN that data file headers must have reached.
    checkpoint: Lsn,
    session: &'a Session,
    access: &'a Access,
    catalog: &'a Catalog,
}

impl Opening<'_> {
    fn tablespace(&self, entry: &TablespaceEntry) -> Result<Tablespace, EngineError> {
        let block_size = BlockSize::new(entry.block_size).expect("the control file was validated");
        let (mut files, mut unusable) = (Vec::new(), Vec::new());
        let not_needed = self.mode == OpenMode::Read && entry.purpose == Purpose::Temp;
        for file in entry.files.iter().filter(|_| !not_needed) {
            match self.file(entry, file, block_size) {
                Ok(opened) => files.push(opened),
                Err(
                    error @ (EngineError::InUse { .. }
                    | EngineError::CopyOf { .. }
                    | EngineError::LinkedFile { .. }),
                ) => return Err(error),
                // The creator of the tablespace was killed. It is empty, and the next opening to
                // write creates its files.
                Err(error) if self.mode == OpenMode::Read && !self.is_used(file.id) && error.is_damage() => {}
                // Sorts write to all files of TEMP, so a missing one would change what was asked
                // for.
                Err(error) if entry.purpose == Purpose::Temp => return Err(error),
                Err(error) => {
                    let (id, path) = (FileId(file.id), file.path_from(self.home));
                    unusable.push(UnusableFile { id, path, error: Arc::new(error) });
                }
            }
        }
        Tablespace::new(entry.purpose, block_size, BlockCount(entry.extent_blocks), (files, unusable))
    }

    /// True if a table or an index has an extent in the file.
    fn is_used(&self, file: u16) -> bool {
        owned_extents(self.catalog).flat_map(|(_, pieces)| pieces).any(|piece| piece.extent.file == file)
    }

    fn file(
        &self,
        entry: &TablespaceEntry,
        file: &FileEntry,
        block_size: BlockSize,
    ) -> Result<DataFile, EngineError> {
        let path = file.path_from(self.home);
        let header = header(self.catalog, entry, file, (block_size, &self.canonical));
        // The file may have grown since its creation, so the extents of segments count too.
        let owned = owned_extents(self.catalog).flat_map(|(_, pieces)| pieces).map(|piece| piece.extent);
        let end_of = |extent: Extent| (u64::from(extent.block) + u64::from(extent.blocks)) * entry.block_size;
        let end = owned.filter(|extent| extent.file == file.id).map(end_of).max();
        let needed = file.bytes.max(end.unwrap_or(0));
        let writes_inside = self.mode == OpenMode::Write && !file.is_outside();
        let checkpoint = file.needs.map_or(self.checkpoint, Lsn);
        let meant = Meant { header: &header, bytes: file.bytes, needed, checkpoint };
        let held = self.held.filter(|_| !file.is_outside());
        let require_own = |mode| held.map_or(Ok(()), |held| require_own(held, &file.path, mode));
        // A link is not opened. A second name is reported after a process that has the file open.
        require_own(OpenMode::Read)?;
        match DataFile::open(self.session, self.access, &path, &meant, self.mode) {
            Ok((opened, found)) => {
                require_own(self.mode)?;
                self.settle(opened, header, found)
            }
            Err(error) if writes_inside && end.is_none() && may_be_made_anew(&error, header.purpose) => {
                require_own(self.mode)?;
                let made = self.make_anew(&path, &header, file.bytes);
                made.map_err(|error| self.without_room(error, &path, file.bytes))
            }
            Err(error) if file.is_outside() && end.is_none() && error.is_damage() => {
                Err(EngineError::OutsideFile { path, error: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }

    /// Assigns a file outside the home to this database, unless the database
    /// that it names still exists.
    fn settle(&self, file: DataFile, header: FileHeader, found: Found) -> Result<DataFile, EngineError> {
        let Some(original) = found.home.filter(|named| header.home.as_ref() != Some(named)) else {
            return Ok(file);
        };
        // A database that cannot be read counts as existing.
        let is_there = match Catalog::find(&original) {
            Ok(found) => found.is_some_and(|found| found.database == header.database),
            Err(_) => true,
        };
        if is_there {
            let (path, home) = (file.file.path().to_path_buf(), self.home.to_path_buf());
            return Err(EngineError::CopyOf { path, original, home });
        }
        if self.mode == OpenMode::Write {
            let header = FileHeader { checkpoint: found.checkpoint, ..header };
            file.write_header(self.session, &self.access.method, &header)?;
            file.sync(self.session)?;
        }
        Ok(file)
    }

    /// Adds the control file to the error of a disk without room for the length that it gives.
    fn without_room(&self, error: EngineError, path: &Path, bytes: u64) -> EngineError {
        match error {
            EngineError::Io(error) if error.is_full() => EngineError::NoRoom {
                path: path.to_path_buf(),
                bytes: Bytes(bytes),
                control: self.home.join(FILE_NAME),
                error: Box::new(error),
            },
            error => error,
        }
    }

    fn make_anew(&self, path: &Path, header: &FileHeader, bytes: u64) -> Result<DataFile, EngineError> {
        let (session, access) = (self.session, self.access);
        let cancel = Cancel::default();
        if !access.disk.exists(path) {
            let made = DataFile::create(session, access, &cancel, path, (header, bytes))?;
            access.disk.sync_directory(path.parent().unwrap_or(self.home))?;
            return Ok(made);
        }
        let file = DataFile::reach(session, access, path, (header, bytes), OpenMode::Write)?;
        file.format(session, &access.method, &cancel, header)?;
        Ok(file)
    }
}

/// True if an unusable file of the home, without a block of a table or an index, may be replaced by
/// an empty one. Not if it may be another database's, or could not be accessed.
fn may_be_made_anew(error: &EngineError, purpose: Purpose) -> bool {
    match error {
        EngineError::OtherDatabase { .. } => purpose == Purpose::Temp,
        error => error.is_damage(),
    }
}
