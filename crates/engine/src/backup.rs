//! Backups: a copy of all files of a database while sessions change it, and its restore.
//!
//! ```text
//! checkpoint ─> hold the log ─> control block ─> data files ─> [log files, catalog] ─> manifest
//!    redo begins here                            as they are     no session logs
//! ```
//! Data files are copied as they are, in sequence, while their blocks are written. So a copied
//! block may be of any moment after the checkpoint, as after a crash. The same log repairs it,
//! because every block is logged whole at its first change after a checkpoint. So the copy of the
//! log must begin with that checkpoint, for which the log is held. It must also be of one moment:
//! it is copied in the log writer's role, and commits wait meanwhile. The first opening of the
//! restored copy recovers it to the last commit before that moment.
//!
//! Blocks of tables and indexes are verified as they are copied ([`blocks`]). Otherwise damage by a
//! disk would be found after the last sound backup is gone.
//!
//! The manifest, `backup.json`, has each file's length and CRC-32C. It is written last: a directory
//! without it is no backup. A backup may come from elsewhere, so a restore trusts nothing in it
//! ([`manifest`]). It accepts only names that the engine makes, and requires each file that the
//! catalog needs. It verifies all files before it writes the first one, and verifies each copy by
//! the bytes written. It overwrites nothing, and writes the catalog last.
//!
//! Both directories are held by their descriptors. The target bears the mark of its process
//! ([`plumb_host::owner`]) until it is complete, so that two processes cannot fill one directory.
//! The mark also identifies the remains of a killed process: the next backup or restore starts
//! over.
//!
//! The database need not be closed, because other sessions need not stop for a backup. After a load
//! without redo a backup is due, and its time is part of the load's.
//!
//! Limits: data files outside of the database's directory are refused. So is a direct path load or
//! build that ends during the backup, unless all its redo is after the checkpoint. If sessions
//! need the held log, the backup fails rather than the sessions. Copies of filled log files are not
//! included.

mod blocks;
mod filling;
mod manifest;

pub use filling::FillingLeftover;
pub use manifest::{CopiedFile, MANIFEST, Manifest, manifest};

use crate::redo::log_home;
use crate::storage::block::LsnRange;
use crate::storage::control::{Catalog, FILE_NAME as CATALOG};
use crate::storage::datafile::DataFile;
use crate::transaction::Transactions;
use crate::{EngineError, Instance};
use blocks::Owned;
use filling::Filling;
use plumb_events::{Cancel, Event, IoStream, Session, clock};
use plumb_io::{
    Arena, Channel, DirectIo, Directory, Disk, File, IoBuffer, IoError, Method, MethodKind, OpenMode,
    Operation, Request,
};
use plumb_units::{Bytes, Lsn, Nanos, cut};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a request: whole blocks of any size.
const PIECE: usize = 1 << 20;

/// Verification of blocks while they are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Verifies each block of a table or an index, by its checksum and its address.
    Blocks,
    /// Verifies nothing, to save what is left of a damaged database.
    Nothing,
}

/// Result of a backup or a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Number of files copied.
    pub file_count: u64,
    /// Bytes of all files.
    pub bytes: Bytes,
    /// Number of blocks verified.
    pub block_count: u64,
    /// Time from start to end.
    pub elapsed: Nanos,
}

impl Copied {
    fn of(files: &[CopiedFile], block_count: u64, begin: Nanos) -> Copied {
        Copied {
            file_count: files.len() as u64,
            bytes: Bytes(files.iter().map(|file| file.bytes).sum()),
            block_count,
            elapsed: clock::now().saturating_sub(begin),
        }
    }
}

fn refused(path: &Path, why: impl Into<String>) -> EngineError {
    // The text quotes the manifest, whose names may have any length.
    EngineError::Backup { path: path.to_path_buf(), why: cut(&why.into(), 400).into_owned() }
}

/// Copies the files of an open database to a directory, which is created. `transactions` is needed
/// if the database has a log ([`has_log`]).
///
/// # Errors
/// If the directory is not empty, a file cannot be read or written, a block is damaged, or sessions
/// needed the log before it was copied. Then nothing created stays.
pub fn backup(
    instance: &Instance,
    transactions: Option<&Transactions<'_>>,
    session: &Session,
    to: &Path,
    verification: Verification,
) -> Result<Copied, EngineError> {
    let begin = clock::now();
    require_copyable(instance)?;
    let filling = Filling::begin(to)?;
    let segments = direct_segments(instance);
    let mut copier = Copier::new(Reader::new(session, &instance.cancel)?, &filling);
    let (files, log_from) = match transactions {
        Some(transactions) => with_log(instance, transactions, &mut copier, verification)?,
        None => (without_log(instance, &mut copier, verification)?, Lsn(u64::MAX)),
    };
    // A load that began since is completely in the log, if it has redo.
    let in_log = |lsns: LsnRange| lsns.first_record().is_some_and(|first| first >= log_from);
    let found = direct_segments(instance).into_iter().filter(|(_, lsns, _)| !in_log(*lsns));
    if !found.eq(segments) {
        let why = "a table or an index was loaded, built or dropped meanwhile without redo; back up again";
        return Err(refused(to, why));
    }
    let block_count = copier.block_count;
    let copied = Copied::of(&files, block_count, begin);
    let text = Manifest::new(instance.catalog().database, files).text(to)?;
    filling.directory().sync("")?;
    filling.put(MANIFEST, text.as_bytes())?;
    filling.complete()?;
    Ok(copied)
}

/// Refuses a directory inside the database's own, because the loss of the database would
/// take the backup with it.
///
/// # Errors
/// If the directory is, or would be created, inside the database's.
pub fn require_apart(instance: &Instance, to: &Path) -> Result<(), EngineError> {
    filling::require_apart(to, instance.home())
}

/// True if a database has or had a log, so that its transactions must be open for a backup.
pub fn has_log(instance: &Instance) -> bool {
    instance.access.disk.exists(&log_home::control_block(instance.home()))
        || instance.catalog().log_reaches > 0
}

/// Copies a database without a log, whose blocks no session changes.
fn without_log(
    instance: &Instance,
    copier: &mut Copier<'_>,
    verification: Verification,
) -> Result<Vec<CopiedFile>, EngineError> {
    let home = instance.home();
    let mut files = Vec::new();
    for file in data_files(instance) {
        files.push(copier.data_file(instance, file, verification)?);
    }
    files.push(copier.small(&instance.access.disk, &home.join(CATALOG), CATALOG)?);
    Ok(files)
}

fn with_log(
    instance: &Instance,
    transactions: &Transactions<'_>,
    copier: &mut Copier<'_>,
    verification: Verification,
) -> Result<(Vec<CopiedFile>, Lsn), EngineError> {
    let (log, home, session) = (transactions.log(), instance.home(), copier.reader.session);
    let disk = &instance.access.disk;
    transactions.checkpoint(session)?;
    let held = log.control.hold()?;
    let log_from = log.end();
    let control = log_home::control_block(home);
    let mut files = vec![copier.small(disk, &control, &name_in(home, &control)?)?];
    let sources: Vec<&DataFile> = data_files(instance).collect();
    for file in &sources {
        files.push(copier.data_file(instance, file, verification)?);
    }
    log.as_writer(session, || {
        // A file that grew meanwhile grew by zeros, and by blocks that the log has.
        for (copied, file) in files[1..].iter_mut().zip(&sources) {
            copier.lengthen(copied, file.file.length()?)?;
        }
        // A tablespace created meanwhile has no block newer than the log.
        for file in data_files(instance).skip(sources.len()) {
            files.push(copier.data_file(instance, file, verification)?);
        }
        let logs = log.batches.files();
        for (file, name) in logs.iter().zip(log_home::usual_names(logs.len() as u32)) {
            files.push(copier.file(file, &name)?);
        }
        // The copies of the log files have their default places.
        files.push(copier.catalog(disk, home)?);
        Ok(())
    })?;
    if held.is_held() {
        return Ok((files, log_from));
    }
    let why = "sessions needed the log before it was copied; back up under less load, or make the database with a larger \
               log_file_size";
    Err(refused(copier.filling.directory().path(), why))
}

/// Returns the files that a copy needs, those of added tablespaces last. Files
/// of TEMP are created again.
fn data_files(instance: &Instance) -> impl Iterator<Item = &DataFile> {
    instance.tablespaces().kept().flat_map(|tablespace| &tablespace.files)
}

/// Creates a database from a backup, in a directory that is empty or absent. Verifies the
/// whole backup before it writes.
///
/// # Errors
/// If a file is missing, damaged or not part of a backup, or the directory is not
/// empty. Then nothing created stays.
pub fn restore(session: &Session, cancel: &Cancel, from: &Path, to: &Path) -> Result<Copied, EngineError> {
    let begin = clock::now();
    if !from.is_dir() {
        return Err(manifest::missing(from));
    }
    let source = Disk::Held(Arc::new(Directory::open(from)?));
    let manifest = manifest::of(&source, from)?;
    filling::require_empty(to)?;
    let mut reader = Reader::new(session, cancel)?;
    for expected in &manifest.files {
        let file = open_to_read(&source, &from.join(&expected.name))?;
        reader.pass(&file, None, &mut |_, _| Ok(()))?.require(expected, &from.join(&expected.name))?;
    }
    manifest.require_complete(&source, from)?;
    let filling = Filling::begin(to)?;
    let mut copier = Copier::new(reader, &filling);
    for expected in &manifest.files {
        let path = from.join(&expected.name);
        let copied = match expected.name == CATALOG {
            true => copier.small(&source, &path, CATALOG)?,
            false => copier.file(&open_to_read(&source, &path)?, &expected.name)?,
        };
        // The bytes read now may differ from those verified.
        Passed { bytes: copied.bytes, crc32c: copied.crc32c }.require(expected, &path)?;
    }
    filling.complete()?;
    Ok(Copied::of(&manifest.files, 0, begin))
}

fn open_to_read(disk: &Disk, path: &Path) -> Result<Arc<File>, EngineError> {
    match disk.open(path, OpenMode::Read, DirectIo::Off) {
        Ok(file) => Ok(Arc::new(file)),
        Err(IoError::Operation { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let why = format!(
                "it is missing, and {MANIFEST} lists it; nothing was restored: restore from another backup"
            );
            Err(refused(path, why))
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a database with a file that cannot be copied.
fn require_copyable(instance: &Instance) -> Result<(), EngineError> {
    let home = instance.home();
    if let Some(file) = instance.tablespaces().kept().flat_map(|tablespace| &tablespace.unusable).next() {
        return Err(refused(&file.path, format!("it cannot be copied: {}", file.error)));
    }
    match data_files(instance).map(|file| file.file.path()).find(|path| !path.starts_with(home)) {
        None => Ok(()),
        Some(path) => Err(refused(
            path,
            format!(
                "it lies outside of the database {}; copy such a database while it is closed",
                home.display()
            ),
        )),
    }
}

/// Returns the segments of direct path operations: their names, the operations that wrote them, and
/// their number of extents, which a load into an existing table changes.
fn direct_segments(instance: &Instance) -> Vec<(String, LsnRange, usize)> {
    let catalog = instance.catalog();
    let tables = catalog.tables.iter().map(|table| (table.name.clone(), table.lsns, table.extents.len()));
    let indexes = catalog.indexes.iter().map(|index| (index.name.clone(), index.lsns, index.leaves.len()));
    tables.chain(indexes).collect()
}

/// Length and checksum of a file that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Passed {
    bytes: u64,
    crc32c: u32,
}

impl Passed {
    fn require(self, expected: &CopiedFile, path: &Path) -> Result<(), EngineError> {
        if (self.bytes, self.crc32c) == (expected.bytes, expected.crc32c) {
            return Ok(());
        }
        let why = format!(
            "it is damaged: {} bytes with CRC-32C {:08x}, and {MANIFEST} says {} with {:08x}; nothing was restored: restore from another backup",
            self.bytes, self.crc32c, expected.bytes, expected.crc32c
        );
        Err(refused(path, why))
    }
}

/// Inspects a piece of a file at an offset, before it is written.
type Look<'l> = dyn FnMut(u64, &[u8]) -> Result<(), EngineError> + 'l;

struct Reader<'a> {
    session: &'a Session,
    cancel: &'a Cancel,
    channel: Channel,
    /// `None` while a request is in flight.
    buffer: Option<IoBuffer>,
}

/// Copies files into a directory.
struct Copier<'a> {
    reader: Reader<'a>,
    filling: &'a Filling,
    block_count: u64,
}

impl<'a> Copier<'a> {
    fn new(reader: Reader<'a>, filling: &'a Filling) -> Copier<'a> {
        Copier { reader, filling, block_count: 0 }
    }

    /// Copies a small file, whole and durably.
    fn small(&self, disk: &Disk, path: &Path, name: &str) -> Result<CopiedFile, EngineError> {
        let bytes = disk.read_small(path)?.ok_or_else(|| refused(path, "it is not there"))?;
        self.put(name, &bytes)
    }

    /// Copies the catalog of a database whose log files are copied to their default places.
    fn catalog(&self, disk: &Disk, home: &Path) -> Result<CopiedFile, EngineError> {
        let path = home.join(CATALOG);
        let mut catalog = Catalog::find_on(disk, home)?.ok_or_else(|| refused(&path, "it is not there"))?;
        if catalog.log_places.are_usual() {
            return self.small(disk, &path, CATALOG);
        }
        catalog.set_log_places(crate::storage::log_places::LogPlaces::default());
        self.put(CATALOG, catalog.text(&path)?.as_bytes())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<CopiedFile, EngineError> {
        self.filling.put(name, bytes)?;
        Ok(CopiedFile { name: name.to_string(), bytes: bytes.len() as u64, crc32c: sum_of(bytes, None) })
    }

    /// Copies a data file, and verifies the blocks that segments own.
    fn data_file(
        &mut self,
        instance: &Instance,
        file: &DataFile,
        verification: Verification,
    ) -> Result<CopiedFile, EngineError> {
        let name = name_in(instance.home(), file.file.path())?;
        let mut owned = match verification {
            Verification::Blocks => Owned::of(instance, file, self.reader.session),
            Verification::Nothing => Owned::nothing(file, self.reader.session),
        };
        let copied = self.copy(&file.file, &name, &mut |offset, piece| owned.verify(offset, piece))?;
        self.block_count += owned.block_count();
        Ok(copied)
    }

    /// Copies a file and syncs the copy.
    fn file(&mut self, file: &Arc<File>, name: &str) -> Result<CopiedFile, EngineError> {
        self.copy(file, name, &mut |_, _| Ok(()))
    }

    fn copy(&mut self, file: &Arc<File>, name: &str, look: &mut Look<'_>) -> Result<CopiedFile, EngineError> {
        let copy = Arc::new(self.filling.create(name)?);
        let Passed { bytes, crc32c } = self.reader.pass(file, Some(&copy), look)?;
        self.reader.session.wait(Event::BackupIo, || copy.sync_all())?;
        Ok(CopiedFile { name: name.to_string(), bytes, crc32c })
    }

    /// Extends a copy with zeros to the present length of its file.
    fn lengthen(&mut self, copied: &mut CopiedFile, length: u64) -> Result<(), EngineError> {
        if length <= copied.bytes {
            return Ok(());
        }
        let file = self.filling.open(&copied.name)?;
        file.truncate(length)?;
        file.sync_all()?;
        let passed = self.reader.pass(&Arc::new(file), None, &mut |_, _| Ok(()))?;
        (copied.bytes, copied.crc32c) = (passed.bytes, passed.crc32c);
        Ok(())
    }
}

impl<'a> Reader<'a> {
    fn new(session: &'a Session, cancel: &'a Cancel) -> Result<Reader<'a>, EngineError> {
        let channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        Ok(Reader { session, cancel, channel, buffer: Arena::buffers(PIECE, 1)?.1.pop() })
    }

    /// Reads a file, and writes it to `copy` if there is one.
    fn pass(
        &mut self,
        file: &Arc<File>,
        copy: Option<&Arc<File>>,
        look: &mut Look<'_>,
    ) -> Result<Passed, EngineError> {
        let length = file.length()?;
        let (mut offset, mut sum) = (0, None);
        while offset < length {
            self.cancel.check()?;
            let asked = PIECE.min((length - offset).next_multiple_of(4096) as usize);
            let found = self.transfer(Operation::ReadAtMost, file, (offset, asked), IoStream::BackupReads)?;
            if found == 0 {
                break;
            }
            let bytes = self.buffer.as_ref().map_or(&[][..], |buffer| &buffer[..found]);
            look(offset, bytes)?;
            sum = Some(sum_of(bytes, sum));
            if let Some(copy) = copy {
                self.transfer(Operation::Write, copy, (offset, found), IoStream::BackupWrites)?;
            }
            offset += found as u64;
        }
        Ok(Passed { bytes: offset, crc32c: sum.unwrap_or_else(|| sum_of(&[], None)) })
    }

    fn transfer(
        &mut self,
        operation: Operation,
        file: &Arc<File>,
        (offset, length): (u64, usize),
        stream: IoStream,
    ) -> Result<usize, EngineError> {
        let buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => Arena::buffers(PIECE, 1)?.1.remove(0),
        };
        let (file, range, event) = (Arc::clone(file), 0..length, Event::BackupIo);
        let request = Request { operation, file, offset, buffer, range, event, stream, tag: 0 };
        Ok(self.channel.carry_out(self.session, request, &mut self.buffer)?)
    }
}

/// Returns a file's path relative to the database.
fn name_in(home: &Path, path: &Path) -> Result<String, EngineError> {
    let name = path.strip_prefix(home).ok().and_then(Path::to_str);
    name.map(str::to_string).ok_or_else(|| refused(path, format!("it is no file of {}", home.display())))
}

/// Returns the CRC-32C of bytes that follow others with the sum `before`.
fn sum_of(bytes: &[u8], before: Option<u32>) -> u32 {
    let own = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    let both = |before: u32| {
        crc_fast::checksum_combine(
            crc_fast::CrcAlgorithm::Crc32Iscsi,
            u64::from(before),
            own,
            bytes.len() as u64,
        )
    };
    before.map_or(own, both) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::InitialSizes;
    use crate::settings::Settings;
    use plumb_events::Role;
    use plumb_io::sim::MemoryDisk;
    use plumb_types::{Column, ColumnType, Number, Schema, Value};

    #[test]
    fn checksums_of_pieces_join() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|at| (at * 31) as u8).collect();
        let (one, two) = bytes.split_at(3333);
        assert_eq!(sum_of(two, Some(sum_of(one, None))), sum_of(&bytes, None));
        assert_eq!(sum_of(b"123456789", None), 0xE306_9283, "the check value of CRC-32C");
    }

    #[test]
    fn sessions_that_need_the_held_log_fail_the_backup() {
        let disk = MemoryDisk::with_power(7);
        let mut settings = Settings::default();
        let small = [
            ("io_method", "null"),
            ("log_file_size", "256K"),
            ("log_buffer", "128K"),
            ("debug_extent_blocks", "8"),
        ];
        for (name, value) in small {
            settings.set(name, value, "the test").expect("in range");
        }
        let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 16) };
        let instance =
            Instance::create_on(&disk, Path::new("/in/memory/db"), settings, sizes).expect("a database");
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        let columns = vec![
            Column::required("ID", ColumnType::NUMBER),
            Column::required("V", ColumnType::Text { max_bytes: 1000 }),
        ];
        transactions
            .create_table(&session, "T", &Schema::new(columns).expect("a schema"), &[])
            .expect("a table");
        let held = transactions.log().control.hold().expect("nobody else holds it");
        assert!(transactions.log().control.hold().is_err(), "one at a time");
        let mut connection = transactions.connect(&session);
        let mut insert = |rows: i64| {
            let mut transaction = connection.begin();
            for id in 0..rows {
                let id = Value::Number(Number::new(i128::from(id), 0).expect("small"));
                transaction.insert("T", &[id, Value::Text("v".repeat(500))]).expect("inserted");
                transaction.commit_and_chain().expect("committed");
            }
        };
        insert(100);
        assert!(held.is_held(), "there was room");
        insert(3000);
        assert!(!held.is_held(), "the files were needed");
    }
}
