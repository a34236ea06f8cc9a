//! The control block of the log: where recovery begins.
//!
//! Two copies of 512 bytes, 4096 apart, in `redo.ctl`; they are written in turn, each durable
//! before the next checkpoint. So a write that the power cut short leaves the other copy, which is
//! the one before: recovery then begins earlier, in a log that still has all it needs, because a
//! log file is used again only after the control block that gives it up is durable (L3).
//!
//! ```text
//! byte  0  crc32c u32      of bytes 4 to 128
//!       4  version u32     1
//!       8  magic           "plumbctl"
//!      16  database u128
//!      32  serial u64      of the copy: the higher one counts
//!      40  redo LSN u64    records from here on are done again; the first one is that of the checkpoint
//!      48  low LSN u64     records before it are not needed, by no transaction either
//!      56  sequence u64    of the log file with the low LSN
//!      64  next transaction u64
//!      72  log block u32   bytes
//!      76  log files u32
//!      80  members u32     of each log file; 0 as 1
//!      88  file bytes u64  of each log file; 0: not noted
//!      96  headers u64     1: each data file's header has the LSN of this checkpoint, or of a later one
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

/// The file's name in the database's home.
pub const FILE_NAME: &str = "redo.ctl";
const MAGIC: [u8; 8] = *b"plumbctl";
const VERSION: u32 = 1;
/// Bytes from one copy to the other.
const COPY_BYTES: usize = 4096;
/// Bytes of a log block, from the least to what any device asks for.
const LOG_BLOCKS: (u64, u64) = (512, 64 << 10);
/// Bytes of a log file at most: the range of the setting.
const FILE_BYTES_MOST: u64 = 1 << 40;

/// True for a control block whose checkpoint is noted in the headers of data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileHeaders {
    /// By none: the log is new, or an older program wrote the control block.
    NotNoted,
    /// In each, before the control block was written.
    Noted,
}

/// What the control block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The database.
    pub database: DatabaseId,
    /// Counts checkpoints.
    pub serial: u64,
    /// Where records begin that have to be done again.
    pub redo: Lsn,
    /// Where records begin that are needed at all.
    pub low: Lsn,
    /// The log file with the low LSN.
    pub sequence: u64,
    /// The least number that no transaction has had.
    pub next_transaction: u64,
    /// Bytes of a log block.
    pub log_block: u32,
    /// How many log files there are.
    pub log_files: u32,
    /// How many members each of them has.
    pub members: u32,
    /// How long each of them is at least; 0 in a control block that was written before this was
    /// noted.
    pub file_bytes: u64,
    /// Whether headers of data files have it.
    pub headers: FileHeaders,
    /// The epochs that members outside of the home may have.
    pub epochs: Epochs,
    /// Changes of the catalog that the control file had at least (L7); 0 in a control block from
    /// before this was noted.
    pub definitions: u64,
}

impl Checkpoint {
    /// Up to where the log goes at least. Where a transaction was under way the record of the
    /// checkpoint, which lists it, must be there: without it what the transaction had changed
    /// before would pass for committed.
    pub(super) fn reaches(&self) -> Lsn {
        let lists = self.low < self.redo;
        Lsn(self.redo.0 + if lists { HEADER_BYTES as u64 } else { 0 })
    }

    /// The checkpoint that each data file must have been there for; 0 where that is not known.
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

    /// Refuses a field that no control block has. Everything that follows computes with them: how
    /// many files and members are opened, how they are cut into blocks, where the log begins.
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
        // The next one is above it.
        require(part, ("epoch", self.epochs.now.0), 0..=u64::MAX >> 1)?;
        require(part, ("changes of the catalog", self.definitions), 0..=LSN_MOST)
    }

    /// The control block of a database; `None` where it cannot be read, which is for the opening of
    /// the log to report.
    pub(crate) fn find(disk: &Disk, home: &Path, database: DatabaseId) -> Option<Checkpoint> {
        let path = path(home);
        let bytes = disk.read_small(&path).ok().flatten()?;
        Checkpoint::newest(&bytes, database, &path).ok()
    }

    /// The copy that counts of those in a control block.
    ///
    /// # Errors
    /// When none is whole, or it is another database's.
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

/// The open file of the control block.
#[derive(Debug)]
pub(super) struct ControlFile {
    file: Arc<File>,
    channel: Channel,
    buffer: Option<IoBuffer>,
}

impl ControlFile {
    /// Opens it, or makes one without a copy in it.
    pub(super) fn open_at(access: &Access, path: &Path, mode: OpenMode) -> Result<ControlFile, EngineError> {
        let file = access.disk.open(path, mode, DirectIo::Off)?;
        lock(&file)?;
        let (_, mut buffers) = Arena::buffers(2 * COPY_BYTES, 1)?;
        let channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        Ok(ControlFile { file: Arc::new(file), channel, buffer: buffers.pop() })
    }

    /// Writes the copy whose turn it is, and makes it durable.
    pub(super) fn write(&mut self, session: &Session, checkpoint: &Checkpoint) -> Result<(), EngineError> {
        let mut buffer = self.buffer.take().ok_or_else(|| lost(&self.file))?;
        checkpoint.write(&mut buffer[..COPY_BYTES]);
        let offset = checkpoint.serial % 2 * COPY_BYTES as u64;
        self.transfer(session, Operation::WriteAndSync, offset, (buffer, COPY_BYTES))
    }

    /// The copy that counts, durable from then on.
    pub(super) fn read(
        &mut self,
        session: &Session,
        database: DatabaseId,
    ) -> Result<Checkpoint, EngineError> {
        let buffer = self.buffer.take().ok_or_else(|| lost(&self.file))?;
        self.transfer(session, Operation::ReadAtMost, 0, (buffer, 2 * COPY_BYTES))?;
        let buffer = self.buffer.as_ref().ok_or_else(|| lost(&self.file))?;
        let newest = Checkpoint::newest(buffer, database, self.file.path())?;
        // L6: a killed process may have written it and not synced it.
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
            stream: if writes { IoStream::HeaderWrites } else { IoStream::HeaderReads },
            tag: 0,
        };
        self.channel.carry_out(session, request, &mut self.buffer)?;
        Ok(())
    }
}

/// Locks a file of the log for this process alone.
pub(super) fn lock(file: &File) -> Result<(), EngineError> {
    if file.lock(Lock::Exclusive)? {
        return Ok(());
    }
    let (path, holder) = (file.path().to_path_buf(), "another process".to_string());
    Err(EngineError::InUse { what: "log file", path, holder })
}

/// Where it is.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join(FILE_NAME)
}

fn lost(file: &File) -> EngineError {
    EngineError::LogFailed { first: format!("a write of {} failed", file.path().display()) }
}
