//! Backups: a copy of all files of a database while sessions change it, and how it becomes a database again.
//!
//! ```text
//! checkpoint ──> hold the log ──> control block ──> data files ──> [log files, catalog] ──> manifest
//!    redo begins here                               as they are      nobody logs
//! ```
//! Data files are copied as they are, one after the other, while blocks of them are written: a copied block may be of any moment after the
//! checkpoint, or torn. That is what a crash leaves, too, and the same log makes it whole: every block's first change after a checkpoint is logged with the whole
//! block. So the copy of the log must begin with that checkpoint, which the log is held for, and must be one of a moment: it is copied as the log writer, so that
//! commits wait as long as log files are read. The first opening of the restored copy recovers it, to the last commit before that moment.
//!
//! Each file's length and CRC-32C is in the manifest, `backup.json`, which is written last: a directory without it is no backup. A restore verifies all files before it writes
//! the first one, writes over nothing, and puts the catalog there last.
//!
//! Why not close the database first: a load without redo obliges a backup, and its time is the load's; whoever else works need not stop for it.
//!
//! Limits: files outside of the database's directory are refused, and so is a direct path load or build that ends meanwhile and has no redo, or not all of
//! it behind the checkpoint. Where sessions need
//! the log that is held, the backup fails and not they. Copies of filled log files are no part of it.

use crate::redo::recovery;
use crate::storage::block::LsnRange;
use crate::storage::control::FILE_NAME as CATALOG;
use crate::transaction::Transactions;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session, clock};
use plumb_io::{
    Arena, Channel, DirectIo, Disk, File, IoBuffer, IoError, Method, MethodKind, OpenMode, Operation, Request,
};
use plumb_units::{Bytes, Lsn, Nanos};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The manifest's name in a backup.
pub const MANIFEST: &str = "backup.json";
const VERSION: u32 = 1;
/// Bytes of a request.
const PIECE: usize = 1 << 20;

/// What a backup has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    version: u32,
    /// The database's id, in hexadecimal.
    pub database: String,
    /// Its files, the catalog last.
    pub files: Vec<CopiedFile>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// Its path within the database's directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
}

/// What was copied, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Files.
    pub file_count: u64,
    /// Bytes of them.
    pub bytes: Bytes,
    /// From the first to the last.
    pub elapsed: Nanos,
}

impl Copied {
    fn of(manifest: &Manifest, begin: Nanos) -> Copied {
        Copied {
            file_count: manifest.files.len() as u64,
            bytes: Bytes(manifest.files.iter().map(|file| file.bytes).sum()),
            elapsed: clock::now().saturating_sub(begin),
        }
    }
}

fn refused(path: &Path, why: impl Into<String>) -> EngineError {
    EngineError::Backup { path: path.to_path_buf(), why: why.into() }
}

/// Copies the files of an open database to a directory, which is made; `transactions` where it has a log ([`has_log`]).
///
/// # Errors
/// When the directory has anything in it, a file cannot be read or written, or the log was needed before it was copied.
pub fn backup(
    instance: &Instance,
    transactions: Option<&Transactions<'_>>,
    (session, to): (&Session, &Path),
) -> Result<Copied, EngineError> {
    let begin = clock::now();
    require_empty(to)?;
    require_within(instance)?;
    let segments = direct_segments(instance);
    let copier = Copier::new(session, to)?;
    let (files, log_from) = match transactions {
        Some(transactions) => with_log(instance, transactions, (session, to), copier)?,
        None => (without_log(instance, copier)?, Lsn(u64::MAX)),
    };
    // A load that began since is in the log as a whole, if it has redo.
    let in_log = |lsns: LsnRange| lsns.first_record().is_some_and(|first| first >= log_from);
    let found = direct_segments(instance).into_iter().filter(|(_, lsns)| !in_log(*lsns));
    if !found.eq(segments) {
        let why =
            "a table or an index was loaded, built or dropped meanwhile, which no redo says; back up again";
        return Err(refused(to, why));
    }
    let database = format!("{:032x}", instance.catalog().database.0);
    let manifest = Manifest { version: VERSION, database, files };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| refused(to, error.to_string()))?;
    Disk::Kernel.sync_directory(to)?;
    Disk::Kernel.replace(&to.join(MANIFEST), text.as_bytes())?;
    Ok(Copied::of(&manifest, begin))
}

/// Whether a database has a log, or had one, so that its transactions must be open while it is copied.
#[must_use]
pub fn has_log(instance: &Instance) -> bool {
    recovery::control_block(instance.home()).exists() || instance.catalog().log_reaches > 0
}

/// Nobody changes a block of a database without a log.
fn without_log(instance: &Instance, mut copier: Copier<'_>) -> Result<Vec<CopiedFile>, EngineError> {
    let home = instance.home();
    let mut files =
        data_files(instance).map(|file| copier.file(home, file)).collect::<Result<Vec<_>, _>>()?;
    files.push(copier.small(home, &home.join(CATALOG))?);
    Ok(files)
}

fn with_log(
    instance: &Instance,
    transactions: &Transactions<'_>,
    (session, to): (&Session, &Path),
    mut copier: Copier<'_>,
) -> Result<(Vec<CopiedFile>, Lsn), EngineError> {
    let (log, home) = (transactions.log(), instance.home());
    transactions.checkpoint(session)?;
    let held = log.hold()?;
    let log_from = log.end();
    let mut files = vec![copier.small(home, &recovery::control_block(home))?];
    // A tablespace that is made meanwhile is made anew by the opening of the copy, and what lies in it by the log.
    let sources: Vec<&Arc<File>> = data_files(instance).collect();
    for file in &sources {
        files.push(copier.file(home, file)?);
    }
    log.as_writer(session, || {
        // What has grown meanwhile has grown by zeros, and by what the log has.
        for (copied, file) in files[1..].iter_mut().zip(&sources) {
            copier.lengthen(copied, file.length()?)?;
        }
        for file in log.shared_files() {
            files.push(copier.file(home, file)?);
        }
        files.push(copier.small(home, &home.join(CATALOG))?);
        Ok(())
    })?;
    if held.is_held() {
        return Ok((files, log_from));
    }
    let why = "the log came round before it was copied; back up when less is changed, or make the database with a larger \
               log_file_size";
    Err(refused(to, why))
}

/// The files that a copy needs: those of TEMP are made anew.
fn data_files(instance: &Instance) -> impl Iterator<Item = &Arc<File>> {
    let kept = instance.tablespaces().kept();
    kept.flat_map(|tablespace| &tablespace.files).map(|file| &file.file)
}

/// The manifest of a backup.
///
/// # Errors
/// When there is none, or it is of another version.
pub fn manifest(from: &Path) -> Result<Manifest, EngineError> {
    let path = from.join(MANIFEST);
    let text = Disk::Kernel.read_small(&path)?;
    let text = text.ok_or_else(|| {
        let why = format!("it has no {MANIFEST}, and so is no whole backup");
        refused(from, format!("{why}: name a directory that `plumb backup` has written"))
    })?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| refused(&path, format!("it cannot be understood: {error}")))?;
    if manifest.version != VERSION {
        return Err(refused(
            &path,
            format!("it is of version {}, and this program reads {VERSION}", manifest.version),
        ));
    }
    Ok(manifest)
}

/// Makes a database of a backup, in a directory that is empty or not there. Nothing is written before all of it has been verified.
///
/// # Errors
/// When a file is missing or damaged, or something is there.
pub fn restore(session: &Session, from: &Path, to: &Path) -> Result<Copied, EngineError> {
    let begin = clock::now();
    let manifest = manifest(from)?;
    require_empty(to)?;
    let mut reader = Copier::reader(session)?;
    for expected in &manifest.files {
        let path = from.join(&expected.name);
        let file = Arc::new(Disk::Kernel.open(&path, OpenMode::Read, DirectIo::Off)?);
        let found = reader.pass(&file, None)?;
        if found != (expected.bytes, expected.crc32c) {
            let why = format!(
                "it is damaged: {} bytes with CRC-32C {:08x}, and {MANIFEST} says {} with {:08x}; nothing was restored: restore from another backup",
                found.0, found.1, expected.bytes, expected.crc32c
            );
            return Err(refused(&path, why));
        }
    }
    let mut copier = Copier::new(session, to)?;
    for expected in &manifest.files {
        let path = from.join(&expected.name);
        if expected.name == CATALOG {
            copier.small(from, &path)?;
            continue;
        }
        let file = Arc::new(Disk::Kernel.open(&path, OpenMode::Read, DirectIo::Off)?);
        copier.file(from, &file)?;
    }
    Disk::Kernel.sync_directory(to)?;
    Ok(Copied::of(&manifest, begin))
}

/// Refuses a directory with something in it, and makes one that is not there.
fn require_empty(to: &Path) -> Result<(), EngineError> {
    let failed = |operation| move |source| IoError::Operation { operation, path: to.to_path_buf(), source };
    if !to.exists() {
        return Ok(());
    }
    let mut entries = std::fs::read_dir(to).map_err(failed("read directory"))?;
    let Some(first) = entries.next() else { return Ok(()) };
    let first = PathBuf::from(first.map_err(failed("read directory"))?.file_name());
    let known = [("a backup stands there", MANIFEST), ("a database stands there", CATALOG)];
    let known = known.into_iter().find(|(_, name)| to.join(name).exists());
    let (what, name) =
        known.map_or(("it is not empty", first.as_path()), |(what, name)| (what, Path::new(name)));
    Err(refused(
        to,
        format!("{what} ({}), and nothing is written over; name a new directory", name.display()),
    ))
}

/// Refuses a database with files elsewhere.
fn require_within(instance: &Instance) -> Result<(), EngineError> {
    let home = instance.home();
    match data_files(instance).map(|file| file.path()).find(|path| !path.starts_with(home)) {
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

/// The segments that direct path operations made: their names, and the numbers of what wrote them.
fn direct_segments(instance: &Instance) -> Vec<(String, LsnRange)> {
    let catalog = instance.catalog();
    let tables = catalog.tables.iter().map(|table| (table.name.clone(), table.lsns));
    let indexes = catalog.indexes.iter().map(|index| (index.name.clone(), index.lsns));
    tables.chain(indexes).collect()
}

/// Copies files into a directory, and adds up their bytes.
struct Copier<'a> {
    session: &'a Session,
    to: PathBuf,
    channel: Channel,
    /// `None` while it is under way.
    buffer: Option<IoBuffer>,
}

impl<'a> Copier<'a> {
    fn reader(session: &'a Session) -> Result<Copier<'a>, EngineError> {
        let channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        Ok(Copier { session, to: PathBuf::new(), channel, buffer: Arena::buffers(PIECE, 1)?.1.pop() })
    }

    fn new(session: &'a Session, to: &Path) -> Result<Copier<'a>, EngineError> {
        std::fs::create_dir_all(to).map_err(|source| IoError::Operation {
            operation: "create directory",
            path: to.to_path_buf(),
            source,
        })?;
        Ok(Copier { to: to.to_path_buf(), ..Copier::reader(session)? })
    }

    /// Copies a small file, whole and durably.
    fn small(&self, home: &Path, path: &Path) -> Result<CopiedFile, EngineError> {
        let bytes = Disk::Kernel.read_small(path)?;
        let bytes = bytes.ok_or_else(|| refused(path, "it is not there"))?;
        let name = name_in(home, path)?;
        Disk::Kernel.replace(&self.to.join(&name), &bytes)?;
        Ok(CopiedFile { name, bytes: bytes.len() as u64, crc32c: sum_of(&bytes, None) })
    }

    /// Copies a file, durably.
    fn file(&mut self, home: &Path, file: &Arc<File>) -> Result<CopiedFile, EngineError> {
        let name = name_in(home, file.path())?;
        let copy = Arc::new(Disk::Kernel.open(&self.to.join(&name), OpenMode::Create, DirectIo::Off)?);
        let (bytes, crc32c) = self.pass(file, Some(&copy))?;
        self.session.wait(Event::BackupIo, || copy.sync_all())?;
        Ok(CopiedFile { name, bytes, crc32c })
    }

    /// Goes through a file, and writes it to another one where there is one. Gives its length and the checksum of its bytes.
    fn pass(&mut self, file: &Arc<File>, copy: Option<&Arc<File>>) -> Result<(u64, u32), EngineError> {
        let length = file.length()?;
        let (mut offset, mut sum) = (0, None);
        while offset < length {
            let asked = PIECE.min((length - offset).next_multiple_of(4096) as usize);
            let found = self.transfer(Operation::ReadAtMost, file, (offset, asked), IoStream::BackupReads)?;
            if found == 0 {
                break;
            }
            let bytes = self.buffer.as_ref().map_or(&[][..], |buffer| &buffer[..found]);
            sum = Some(sum_of(bytes, sum));
            if let Some(copy) = copy {
                self.transfer(Operation::Write, copy, (offset, found), IoStream::BackupWrites)?;
            }
            offset += found as u64;
        }
        Ok((offset, sum.unwrap_or_else(|| sum_of(&[], None))))
    }

    /// Makes a copy as long as its file is by now, with zeros.
    fn lengthen(&mut self, copied: &mut CopiedFile, length: u64) -> Result<(), EngineError> {
        if length <= copied.bytes {
            return Ok(());
        }
        let file = Disk::Kernel.open(&self.to.join(&copied.name), OpenMode::Write, DirectIo::Off)?;
        file.truncate(length)?;
        file.sync_all()?;
        (copied.bytes, copied.crc32c) = self.pass(&Arc::new(file), None)?;
        Ok(())
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

/// A file's path within the database.
fn name_in(home: &Path, path: &Path) -> Result<String, EngineError> {
    let name = path.strip_prefix(home).ok().and_then(Path::to_str);
    name.map(str::to_string).ok_or_else(|| refused(path, format!("it is no file of {}", home.display())))
}

/// CRC-32C of bytes that follow others.
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
    fn sessions_that_need_the_log_get_it_and_the_backup_knows() {
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
        let held = transactions.log().hold().expect("nobody else holds it");
        assert!(transactions.log().hold().is_err(), "one at a time");
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
