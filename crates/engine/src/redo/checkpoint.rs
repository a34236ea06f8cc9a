//! The control block of the log: where recovery begins.
//!
//! `redo.ctl` holds two copies of 512 bytes, 4096 apart. Checkpoints overwrite them in turn, and
//! each is durable before the next. A write torn by a power failure leaves the other, older copy,
//! so recovery begins earlier. The log still holds all that it needs, because a log file is reused
//! only after the control block that releases it is durable (L3).
//!
//! ```text
//! byte  0  crc32c u32      of bytes 4 to 128
//!       4  version u32     1
//!       8  magic           "plumbctl"
//!      16  database u128
//!      32  serial u64      of the copy: the higher one counts
//!      40  redo LSN u64    of the checkpoint's record, the first that recovery applies
//!      48  low LSN u64     records before it are not needed by recovery or any transaction
//!      56  sequence u64    of the log file with the low LSN
//!      64  next transaction u64
//!      72  log block u32   bytes
//!      76  log files u32
//!      80  members u32     of each log file; 0 means 1
//!      88  file bytes u64  of each log file; 0: not noted
//!      96  headers u64     1: each data file header has the LSN of this checkpoint or a later one
//!     104  epoch u64       of the last opening; 0: no member lies outside of the home
//!     112  epoch before u64
//!     120  definitions u64 changes of the catalog that the control file had at least; 0: not noted
//! ```

use super::epoch::{Epoch, Epochs};
use super::log_file::{FILES_MOST, checksum, number, require};
use super::record::HEADER_BYTES;
use crate::EngineError;
use crate::access::Access;
use crate::database_id::DatabaseId;
use crate::storage::block::LSN_MOST;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{
    Arena, Channel, DirectIo, Disk, File, IoBuffer, Lock, Method, MethodKind, OpenMode, Operation, Request,
};
use plumb_units::Lsn;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File name in the database's home.
pub const FILE_NAME: &str = "redo.ctl";
const MAGIC: [u8; 8] = *b"plumbctl";
const VERSION: u32 = 1;
/// Distance between the two copies.
const COPY_BYTES: usize = 4096;
/// Bytes of a log block: the least, and the most that any device asks for.
const LOG_BLOCKS: (u64, u64) = (512, 64 << 10);
/// Most bytes of a log file, the upper end of the setting's range.
const FILE_BYTES_MOST: u64 = 1 << 40;

/// State of the data file headers: with or without the LSN of the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileHeaders {
    /// No header is known to have it: the log is new, or an older program wrote the control block.
    NotNoted,
    /// Each header had it before the control block was written.
    Noted,
}

/// Contents of one copy of the control block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The database that owns the log.
    pub database: DatabaseId,
    /// Number of the checkpoint; the copy with the higher one counts.
    pub serial: u64,
    /// LSN of the first record that recovery applies.
    pub redo: Lsn,
    /// LSN of the first record that recovery or a rollback needs, at most `redo`.
    pub low: Lsn,
    /// Sequence of the log file that holds the low LSN.
    pub sequence: u64,
    /// Lowest transaction number that was never used.
    pub next_transaction: u64,
    /// Bytes of a log block, a power of two from 512 to 64K.
    pub log_block: u32,
    /// Number of log files.
    pub log_files: u32,
    /// Members of each log file, 1 or 2.
    pub members: u32,
    /// Least bytes of each log file; 0 in a control block from before this field existed.
    pub file_bytes: u64,
    /// State of the data file headers.
    pub headers: FileHeaders,
    /// Epochs that members outside of the home may have.
    pub epochs: Epochs,
    /// Least number of catalog changes that the control file holds (L7); 0 in a control block
    /// from before this field existed.
    pub definitions: u64,
}

impl Checkpoint {
    /// Returns the LSN that the log reaches at least. If a transaction was running, the
    /// checkpoint's record, which lists it, must be there. Otherwise the transaction's earlier
    /// changes would count as committed.
    pub(super) fn reaches(&self) -> Lsn {
        let lists = self.low < self.redo;
        Lsn(self.redo.0 + if lists { HEADER_BYTES as u64 } else { 0 })
    }

    /// Returns the LSN that each data file header must have reached; 0 if unknown.
    pub(crate) fn of_headers(&self) -> Lsn {
        if self.headers == FileHeaders::Noted { self.redo } else { Lsn(0) }
    }

    fn write(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mut put = |at: usize, number: u64| bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        put(32, self.serial);
        put(40, self.redo.0);
        put(48, self.low.0);
        put(56, self.sequence);
        put(64, self.next_transaction);
        put(72, u64::from(self.log_files) << 32 | u64::from(self.log_block));
        put(80, u64::from(self.members));
        put(88, self.file_bytes);
        put(96, u64::from(self.headers == FileHeaders::Noted));
        put(104, self.epochs.now.0);
        put(112, self.epochs.before.0);
        put(120, self.definitions);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&MAGIC);
        bytes[16..32].copy_from_slice(&self.database.0.to_le_bytes());
        let sum = checksum(&bytes[4..128]);
        bytes[0..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Rejects a field out of range. The numbers of files and members, their sizes and the start of
    /// the log all follow from these fields.
    fn require_bounds(&self, path: &Path) -> Result<(), EngineError> {
        let part = (path, "the control block");
        require(part, ("serial", self.serial), 0..=LSN_MOST)?;
        require(part, ("redo LSN", self.redo.0), 0..=LSN_MOST)?;
        require(part, ("low LSN", self.low.0), 0..=self.redo.0)?;
        require(part, ("sequence", self.sequence), 1..=LSN_MOST)?;
        require(part, ("next transaction", self.next_transaction), 1..=LSN_MOST)?;
        require(part, ("bytes of a log block", u64::from(self.log_block)), LOG_BLOCKS.0..=LOG_BLOCKS.1)?;
        if !self.log_block.is_power_of_two() {
            let why = format!(
                "the control block: bytes of a log block: found {}, expected a power of two; restore the database from a copy",
                self.log_block
            );
            return Err(EngineError::Log { path: path.to_path_buf(), why });
        }
        require(part, ("log files", u64::from(self.log_files)), 1..=u64::from(FILES_MOST))?;
        require(part, ("members of a log file", u64::from(self.members)), 1..=2)?;
        require(part, ("bytes of a log file", self.file_bytes), 0..=FILE_BYTES_MOST)?;
        // Leaves room for the next epoch, which is higher.
        require(part, ("epoch", self.epochs.now.0), 0..=u64::MAX >> 1)?;
        require(part, ("changes of the catalog", self.definitions), 0..=LSN_MOST)
    }

    /// Reads the control block of a database; `None` if that fails, which opening the log reports.
    pub(crate) fn find(disk: &Disk, home: &Path, database: DatabaseId) -> Option<Checkpoint> {
        let path = path(home);
        let bytes = disk.read_small(&path).ok().flatten()?;
        Checkpoint::newest(&bytes, database, &path).ok()
    }

    /// Returns the newer whole copy of a control block.
    ///
    /// # Errors
    /// If neither copy is whole, a field is out of range, or the database is another one.
    pub(super) fn newest(bytes: &[u8], database: DatabaseId, path: &Path) -> Result<Checkpoint, EngineError> {
        let copies = bytes.chunks_exact(COPY_BYTES).take(2).filter_map(Checkpoint::read);
        let newest = copies.max_by_key(|copy| copy.serial).ok_or_else(|| EngineError::Log {
            path: path.to_path_buf(),
            why: "neither copy of the log's control block is whole; restore the database from a copy"
                .to_string(),
        })?;
        if newest.database != database {
            let (found, expected) = (newest.database, database);
            let (what, path) = ("control block of the log", path.to_path_buf());
            return Err(EngineError::OtherDatabase { what, path, found, expected });
        }
        newest.require_bounds(path)?;
        Ok(newest)
    }

    fn read(bytes: &[u8]) -> Option<Checkpoint> {
        let whole = number(bytes, 0) as u32 == checksum(&bytes[4..128]) && bytes[8..16] == MAGIC;
        whole.then(|| Checkpoint {
            database: DatabaseId(u128::from(number(bytes, 24)) << 64 | u128::from(number(bytes, 16))),
            serial: number(bytes, 32),
            redo: Lsn(number(bytes, 40)),
            low: Lsn(number(bytes, 48)),
            sequence: number(bytes, 56),
            next_transaction: number(bytes, 64),
            log_block: number(bytes, 72) as u32,
            log_files: (number(bytes, 72) >> 32) as u32,
            members: (number(bytes, 80) as u32).max(1),
            file_bytes: number(bytes, 88),
            headers: if number(bytes, 96) == 1 { FileHeaders::Noted } else { FileHeaders::NotNoted },
            epochs: Epochs { now: Epoch(number(bytes, 104)), before: Epoch(number(bytes, 112)) },
            definitions: number(bytes, 120),
        })
    }
}

#[derive(Debug)]
pub(super) struct ControlFile {
    file: Arc<File>,
    channel: Channel,
    buffer: Option<IoBuffer>,
}

impl ControlFile {
    /// Opens the file, or creates one without a copy.
    pub(super) fn open_at(access: &Access, path: &Path, mode: OpenMode) -> Result<ControlFile, EngineError> {
        let file = access.disk.open(path, mode, DirectIo::Off)?;
        lock(&file)?;
        let (_, mut buffers) = Arena::buffers(2 * COPY_BYTES, 1)?;
        let channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        Ok(ControlFile { file: Arc::new(file), channel, buffer: buffers.pop() })
    }

    /// Overwrites the older copy durably.
    pub(super) fn write(&mut self, session: &Session, checkpoint: &Checkpoint) -> Result<(), EngineError> {
        let mut buffer = self.buffer.take().ok_or_else(|| lost(&self.file))?;
        checkpoint.write(&mut buffer[..COPY_BYTES]);
        let offset = checkpoint.serial % 2 * COPY_BYTES as u64;
        self.transfer(session, Operation::WriteAndSync, offset, (buffer, COPY_BYTES))
    }

    /// Reads the newer copy and makes it durable.
    pub(super) fn read(
        &mut self,
        session: &Session,
        database: DatabaseId,
    ) -> Result<Checkpoint, EngineError> {
        let buffer = self.buffer.take().ok_or_else(|| lost(&self.file))?;
        self.transfer(session, Operation::ReadAtMost, 0, (buffer, 2 * COPY_BYTES))?;
        let buffer = self.buffer.as_ref().ok_or_else(|| lost(&self.file))?;
        let newest = Checkpoint::newest(buffer, database, self.file.path())?;
        // L6: a killed process may have written this without a sync.
        session.wait(Event::ControlFileParallelWrite, || self.file.sync_data())?;
        Ok(newest)
    }

    fn transfer(
        &mut self,
        session: &Session,
        operation: Operation,
        offset: u64,
        (buffer, bytes): (IoBuffer, usize),
    ) -> Result<(), EngineError> {
        let writes = operation.writes();
        let request = Request {
            operation,
            file: Arc::clone(&self.file),
            offset,
            buffer,
            range: 0..bytes,
            event: if writes { Event::ControlFileParallelWrite } else { Event::ControlFileSequentialRead },
            stream: if writes { IoStream::ControlWrites } else { IoStream::ControlReads },
            tag: 0,
        };
        self.channel.carry_out(session, request, &mut self.buffer)?;
        Ok(())
    }
}

/// Locks a log file against other processes.
pub(super) fn lock(file: &File) -> Result<(), EngineError> {
    if file.lock(Lock::Exclusive)? {
        return Ok(());
    }
    let (path, holder) = (file.path().to_path_buf(), "another process".to_string());
    Err(EngineError::InUse { what: "log file", path, holder })
}

pub(super) fn path(home: &Path) -> PathBuf {
    home.join(FILE_NAME)
}

fn lost(file: &File) -> EngineError {
    EngineError::LogFailed { first: format!("a write of {} failed", file.path().display()) }
}
