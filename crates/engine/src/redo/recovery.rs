//! Making, opening and recovering the log.
//!
//! How a recovery goes:
//! 1. The newer whole copy of the control block says which log file has the low LSN, and where redo begins.
//! 2. Batches are read from that file on. Records from the redo LSN on are done again, each block read once and kept
//!    in memory until there are too many of them; then all are written. A block that is not whole is taken from its image,
//!    which the log has for every block that changed since the checkpoint.
//! 3. What transactions have no end is collected on the way: those that the checkpoint lists, and those that follow.
//! 4. The blocks are written and synced. The log goes on behind its last batch, with LSNs of its own.
//!
//! What it does not do: undo. That needs trees and rows, and is done through the same calls as any rollback
//! ([`crate::transaction`]), after which a checkpoint ends the recovery. A crash anywhere before finds the same log and the same control block.
//!
//! Where the log ends: at the first place where no whole batch of the right LSN is. A batch is begun when everything before is durable (L2), so a
//! whole batch further on means that this one was whole once: then it is damage and not the end, and recovery refuses. Further on is: behind the
//! broken batch as far as a write reaches, or in the file of the next sequence.
//!
//! Cost: a file is read by requests of a megabyte; a record costs a look-up of its block and the copy of its bytes. A block that is new in the
//! log, or has an image there, is not read; adjacent blocks are written together.
//! Limits: one thread; a block that has to be read is read alone; a log file is held in memory while it is gone through.

use super::checkpoint::{self, Checkpoint, ControlFile};
use super::log::{Log, LogOptions};
use super::log_file::{self, BATCH_HEADER, BatchHeader, FILE_HEADER, FileHeader};
use super::log_writer::{BatchPlace, LogFile, LogWriter, SyncMethod, Usage, charge};
use super::record::{HEADER_BYTES, Record, RecordKind, Start, length_of};
use crate::EngineError;
use crate::access::Access;
use crate::cache::CacheOptions;
use crate::database_id::DatabaseId;
use crate::settings::{Setting, Settings};
use crate::storage::block;
use crate::storage::tablespace::{Extent, Purpose, Tablespace};
use plumb_events::{Event, IoStream, Session};
use plumb_io::device::{self, DirectIoSupport};
use plumb_io::{
    Arena, Channel, DirectIo, Disk, IoBuffer, IoError, Method, MethodKind, OpenMode, Operation, Request,
};
use plumb_units::{BlockAddress, BlockSize, Lsn};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Numbers that direct path operations of one opening may have below the LSNs of its log.
const OPERATIONS: u64 = 1 << 30;
/// Log files that a database may have: the range of the setting.
const FILES_MOST: u32 = 64;
/// Bytes of a read of a log file, and of a write when one is made.
const PIECE: usize = 1 << 20;

/// The files of a log in a database's home, those that there can be.
pub fn files(home: &Path) -> impl Iterator<Item = PathBuf> {
    let numbered = (1..=FILES_MOST).map(|number| log_file::path(home, number));
    numbered.chain([checkpoint::path(home), checkpoint::path(home).with_extension("new")])
}

/// What a database is whose log is made or opened.
#[derive(Debug, Clone, Copy)]
pub struct LogHome<'a> {
    /// Its directory.
    pub home: &'a Path,
    /// Which one it is.
    pub database: DatabaseId,
    /// The way to its files.
    pub access: &'a Access,
    /// Its settings.
    pub settings: &'a Settings,
    /// Its tablespaces, all of one block size.
    pub tablespaces: &'a [Tablespace],
    /// LSNs must be above it: numbers of operations so far.
    pub above: Lsn,
    /// What may be done again: extents of segments that are there, and since when.
    pub live: &'a [(Extent, Lsn)],
}

/// A transaction that had no end when the log broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unended {
    /// Its number.
    pub transaction: u64,
    /// Its first record, or a place before it.
    pub first: Lsn,
    /// What of it is undone first.
    pub last: Lsn,
}

/// What a recovery did.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Transactions to undo.
    pub unended: Vec<Unended>,
    /// The least number that no transaction has had.
    pub next_transaction: u64,
    /// Records that were done again, or found done.
    pub record_count: u64,
    /// Bytes of them.
    pub redo_bytes: u64,
    /// Blocks that were written.
    pub block_count: u64,
}

impl LogHome<'_> {
    fn block_size(&self) -> BlockSize {
        self.tablespaces[0].block_size
    }

    fn options(&self) -> Result<LogOptions, EngineError> {
        let buffer_bytes = self.settings.number(Setting::LogBuffer) as usize;
        let options = LogOptions { buffer_bytes, block_bytes: self.block_size().bytes() };
        if buffer_bytes < 2 * options.record_max() {
            return Err(EngineError::Contradiction {
                first: format!("log_buffer={buffer_bytes}"),
                second: format!("a block size of {}", options.block_bytes),
                why: format!("it must hold two of the longest records, {} bytes", 2 * options.record_max()),
            });
        }
        Ok(options)
    }

    /// Whether a block is of a segment that was there at that LSN and is still.
    fn is_live(&self, address: BlockAddress, lsn: Lsn) -> bool {
        self.live.iter().any(|(extent, created)| {
            let blocks = extent.block..extent.block + extent.blocks;
            extent.file == address.file.0 && blocks.contains(&address.block.0) && lsn >= *created
        })
    }

    /// Whether the database has a log.
    #[must_use]
    pub fn has_log(&self) -> bool {
        self.access.disk.exists(&checkpoint::path(self.home))
    }

    /// The least piece that a log file is written by.
    fn log_block(&self) -> u64 {
        if self.access.direct == DirectIo::Off || !matches!(self.access.disk, Disk::Kernel) {
            return 512;
        }
        match device::describe(self.home).map(|device| device.direct_io) {
            Ok(DirectIoSupport::Yes { memory_align, offset_align, .. }) => {
                offset_align.0.max(memory_align.0).max(512)
            }
            _ => 4096,
        }
    }

    fn staging(&self, options: &LogOptions) -> Result<IoBuffer, EngineError> {
        Ok(Arena::buffers(options.buffer_bytes / 2 + FILE_HEADER as usize, 1)?.1.remove(0))
    }

    /// Makes the log files and the control block. Until the control block is there the database has no log, and what was made is made anew.
    ///
    /// # Errors
    /// When a file cannot be made, or the settings contradict each other.
    pub fn create(&self, session: &Session) -> Result<Log, EngineError> {
        let options = self.options()?;
        let bytes = self.settings.number(Setting::LogFileSize);
        let count = self.settings.number(Setting::LogFileGroups) as u32;
        let log_block = self.log_block();
        let least = FILE_HEADER + 3 * charge(options.record_max(), log_block as usize) as u64;
        if bytes < least {
            return Err(EngineError::Contradiction {
                first: format!("log_file_size={bytes}"),
                second: format!("a block size of {}", options.block_bytes),
                why: format!("a log file must hold three of the longest records: at least {least} bytes"),
            });
        }
        let first = Lsn((self.above.0 + OPERATIONS).next_multiple_of(8));
        let mut files = Vec::new();
        for number in 1..=count {
            files.push(self.create_file(session, number, bytes.next_multiple_of(PIECE as u64 / 256))?);
        }
        let mut writer = LogWriter {
            database: self.database,
            files,
            current: 0,
            offset: FILE_HEADER,
            next: first,
            end: first,
            opening: self.access.disk.random_id() as u64,
            block: log_block as usize,
            spare: charge(options.record_max(), log_block as usize),
            sync: SyncMethod::of(self.settings.word(Setting::LogSyncMethod)),
            channel: Method::start(MethodKind::Sync, 1)?.channel(&[])?,
            staging: Some(self.staging(&options)?),
        };
        writer.begin_file(session, 0, 1)?;
        let checkpoint = Checkpoint {
            database: self.database,
            serial: 0,
            redo: first,
            low: first,
            sequence: 1,
            next_transaction: 1,
            log_block: log_block as u32,
            log_files: count,
        };
        let control = self.create_control(session, &checkpoint)?;
        Log::new(options, writer, (control, checkpoint), VecDeque::new())
    }

    /// The control block gets its name when it is whole.
    fn create_control(&self, session: &Session, checkpoint: &Checkpoint) -> Result<ControlFile, EngineError> {
        let path = checkpoint::path(self.home);
        let beside = path.with_extension("new");
        let disk = &self.access.disk;
        if disk.exists(&beside) {
            disk.remove(&beside)?;
        }
        let mut made = ControlFile::open_at(self.access, &beside, OpenMode::Create)?;
        made.write(session, &Checkpoint { serial: 1, ..*checkpoint })?;
        made.write(session, checkpoint)?;
        disk.sync_directory(self.home)?;
        disk.rename(&beside, &path)?;
        disk.sync_directory(self.home)?;
        drop(made);
        ControlFile::open_at(self.access, &path, OpenMode::Write)
    }

    fn create_file(&self, session: &Session, number: u32, bytes: u64) -> Result<LogFile, EngineError> {
        let path = log_file::path(self.home, number);
        let disk = &self.access.disk;
        if disk.exists(&path) {
            disk.remove(&path)?;
        }
        let file = Arc::new(disk.open(&path, OpenMode::Create, self.access.direct)?);
        let mut channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        let mut buffer = Arena::buffers(PIECE, 1)?.1.remove(0);
        for offset in (0..bytes).step_by(PIECE) {
            let request = Request {
                operation: Operation::Write,
                file: Arc::clone(&file),
                offset,
                buffer,
                range: 0..PIECE.min((bytes - offset) as usize),
                event: Event::DataFileInitWrite,
                stream: IoStream::FileInit,
                tag: 0,
            };
            channel.submit(session, request)?;
            buffer = channel.wait(session, Event::DataFileInitWrite)?.buffer;
        }
        session.wait(Event::DataFileInitWrite, || file.sync_all())?;
        let header = FileHeader::unused(self.database, number);
        Ok(LogFile { file, header, bytes, usage: Usage::Free })
    }

    /// Opens the log and does again what it has.
    ///
    /// # Errors
    /// When the control block or a log file is missing or damaged, or a block that has to be changed is.
    pub fn recover(&self, session: &Session) -> Result<(Log, Recovered), EngineError> {
        let options = self.options()?;
        let path = checkpoint::path(self.home);
        let mut control = ControlFile::open_at(self.access, &path, OpenMode::Write)?;
        let checkpoint = control.read(session, self.database)?;
        let mut redo = Redo::new(self, session, &checkpoint)?;
        let files = self.open_files(&mut redo, &checkpoint)?;
        let (current, offset, end) = redo.read_log(&files, &checkpoint, options.buffer_bytes)?;
        redo.finish()?;
        let Redo { places, recovered, .. } = redo;
        // Copies of a database go on with LSNs of their own, above all numbers of operations.
        let stretch = self.access.disk.random_id() as u64 >> 32;
        let next = Lsn((end.0.max(self.above.0 + OPERATIONS) + stretch).next_multiple_of(8));
        let writer = LogWriter {
            database: self.database,
            files: used(files, &places, current, checkpoint.low),
            current,
            offset,
            next,
            end,
            opening: self.access.disk.random_id() as u64,
            block: checkpoint.log_block as usize,
            spare: charge(options.record_max(), checkpoint.log_block as usize),
            sync: SyncMethod::of(self.settings.word(Setting::LogSyncMethod)),
            channel: Method::start(MethodKind::Sync, 1)?.channel(&[])?,
            staging: Some(self.staging(&options)?),
        };
        Ok((Log::new(options, writer, (control, checkpoint), places)?, recovered))
    }

    fn open_files(&self, redo: &mut Redo<'_>, checkpoint: &Checkpoint) -> Result<Vec<LogFile>, EngineError> {
        let mut files = Vec::new();
        for number in 1..=checkpoint.log_files {
            let path = log_file::path(self.home, number);
            let damage = |why: String| EngineError::Log { path: path.clone(), why };
            let file = self.access.disk.open(&path, OpenMode::Write, self.access.direct).map_err(
                |error| match error {
                    IoError::Operation { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                        damage(
                            "it is missing; restore it from a copy of the database made when it was closed"
                                .to_string(),
                        )
                    }
                    error => error.into(),
                },
            )?;
            let file = Arc::new(file);
            let bytes = file.length()?;
            let head = redo.read(&file, 0, FILE_HEADER as usize)?;
            let header = FileHeader::read(head, self.database, &path)?;
            let header = header.filter(|header| header.number == number);
            let header = header.unwrap_or(FileHeader::unused(self.database, number));
            files.push(LogFile { file, header, bytes, usage: Usage::Free });
        }
        Ok(files)
    }
}

/// Says of each file whether it is needed.
fn used(mut files: Vec<LogFile>, places: &VecDeque<BatchPlace>, current: usize, low: Lsn) -> Vec<LogFile> {
    files[current].usage = Usage::Used(low);
    for place in places {
        files[place.file].usage = Usage::Used(place.end);
    }
    files
}

/// A block under recovery.
struct Recovering {
    purpose: Purpose,
    bytes: Box<[u8]>,
    /// Whether it is what somebody wrote, or has been made so.
    whole: bool,
    changed: bool,
}

/// Does records again.
struct Redo<'a> {
    home: &'a LogHome<'a>,
    session: &'a Session,
    channel: Channel,
    buffer: Option<IoBuffer>,
    blocks: HashMap<BlockAddress, Recovering>,
    blocks_max: usize,
    log_block: usize,
    from: Lsn,
    open: BTreeMap<u64, Unended>,
    places: VecDeque<BatchPlace>,
    recovered: Recovered,
}

impl<'a> Redo<'a> {
    fn new(
        home: &'a LogHome<'a>,
        session: &'a Session,
        checkpoint: &Checkpoint,
    ) -> Result<Redo<'a>, EngineError> {
        let cache = CacheOptions::of(home.settings, home.block_size()).frame_count;
        Ok(Redo {
            home,
            session,
            channel: Method::start(MethodKind::Sync, 1)?.channel(&[])?,
            buffer: Some(Arena::buffers(PIECE, 1)?.1.remove(0)),
            blocks: HashMap::new(),
            blocks_max: cache.max(16),
            log_block: checkpoint.log_block as usize,
            from: checkpoint.redo,
            open: BTreeMap::new(),
            places: VecDeque::new(),
            recovered: Recovered { next_transaction: checkpoint.next_transaction, ..Recovered::default() },
        })
    }

    /// Bytes of a log file, as far as it goes.
    fn read(&mut self, file: &Arc<plumb_io::File>, offset: u64, bytes: usize) -> Result<&[u8], EngineError> {
        let request = Request {
            operation: Operation::ReadAtMost,
            file: Arc::clone(file),
            offset,
            buffer: self.buffer.take().expect("there until a read fails"),
            range: 0..bytes,
            event: Event::LogFileSequentialRead,
            stream: IoStream::LogReads,
            tag: 0,
        };
        self.channel.submit(self.session, request)?;
        let completion = self.channel.wait(self.session, Event::LogFileSequentialRead)?;
        Ok(&self.buffer.insert(completion.buffer)[completion.range])
    }

    /// Goes through all batches from the checkpoint's low LSN on. Gives the file and offset where the next batch goes, and the LSN behind the last.
    fn read_log(
        &mut self,
        files: &[LogFile],
        checkpoint: &Checkpoint,
        write_max: usize,
    ) -> Result<(usize, u64, Lsn), EngineError> {
        let find = |sequence: u64| files.iter().position(|file| file.header.sequence == sequence);
        let mut sequence = checkpoint.sequence;
        let Some(mut current) = find(sequence) else {
            let path = checkpoint::path(self.home.home);
            let why = format!(
                "no log file has the sequence {sequence}, which the last checkpoint needs; restore the log files from a copy of the database made when it was closed"
            );
            return Err(EngineError::Log { path, why });
        };
        let mut end = files[current].header.first;
        loop {
            let offset = self.read_file(&files[current], current, &mut end, write_max)?;
            sequence += 1;
            match find(sequence) {
                // A file is begun when everything before it is durable, and so begins where that ended.
                Some(next) if files[next].header.previous_end == end => current = next,
                Some(next) => {
                    let path = files[current].file.path().to_path_buf();
                    return Err(damaged(path, offset, end, files[next].header.previous_end));
                }
                None if end < checkpoint.redo => {
                    let path = files[current].file.path().to_path_buf();
                    return Err(damaged(path, offset, end, checkpoint.redo));
                }
                None => return Ok((current, offset, end)),
            }
        }
    }

    /// Goes through the batches of a file. Gives the offset behind the last.
    fn read_file(
        &mut self,
        file: &LogFile,
        number: usize,
        end: &mut Lsn,
        write_max: usize,
    ) -> Result<u64, EngineError> {
        // All of it at once: a batch may be as long as half the log buffer.
        let mut bytes = Vec::with_capacity(file.bytes as usize);
        for offset in (0..file.bytes).step_by(PIECE) {
            let length = PIECE.min((file.bytes - offset) as usize);
            bytes.extend_from_slice(self.read(&file.file, offset, length)?);
        }
        let block = self.log_block;
        let mut at = FILE_HEADER as usize;
        while let Some(batch) =
            bytes.get(at..).and_then(|rest| BatchHeader::read(rest, file.header.sequence, *end))
        {
            let records = &bytes[at + BATCH_HEADER..at + batch.length];
            let batch_end = Lsn(batch.lsn.0 + records.len() as u64);
            self.places.push_back(BatchPlace {
                lsn: batch.lsn,
                end: batch_end,
                file: number,
                offset: at as u64,
            });
            self.records(batch.lsn, records, file)?;
            *end = batch_end;
            at += batch.length.next_multiple_of(block);
        }
        let limit = (at + write_max + 2 * FILE_HEADER as usize).min(bytes.len());
        for further in (at + block..limit).step_by(block) {
            if let Some(batch) = BatchHeader::read(&bytes[further..], file.header.sequence, *end) {
                return Err(damaged(file.file.path().to_path_buf(), at as u64, *end, batch.lsn));
            }
        }
        Ok(at as u64)
    }

    fn records(&mut self, first: Lsn, bytes: &[u8], file: &LogFile) -> Result<(), EngineError> {
        let mut at = 0;
        while at < bytes.len() {
            let lsn = Lsn(first.0 + at as u64);
            let Some(record) = Record::parse(lsn, &bytes[at..]) else {
                let why = format!("the record of LSN {} makes no sense, though its batch is whole", lsn.0);
                return Err(EngineError::Log { path: file.file.path().to_path_buf(), why });
            };
            let length = length_of(&bytes[at..]).unwrap_or(HEADER_BYTES);
            if lsn >= self.from {
                self.note(&record);
                self.recovered.record_count += 1;
                self.recovered.redo_bytes += length as u64;
                self.redo(&record)?;
            }
            at += length;
        }
        Ok(())
    }

    /// Keeps track of which transactions have an end.
    fn note(&mut self, record: &Record<'_>) {
        let Record { kind, transaction, lsn, previous, .. } = *record;
        match kind {
            RecordKind::Checkpoint => {
                for entry in record.undo.chunks_exact(24) {
                    let [transaction, first, last] = [0, 8, 16].map(|at| log_file::number(entry, at));
                    self.open
                        .insert(transaction, Unended { transaction, first: Lsn(first), last: Lsn(last) });
                    self.recovered.next_transaction = self.recovered.next_transaction.max(transaction + 1);
                }
            }
            RecordKind::Commit | RecordKind::RolledBack => {
                self.open.remove(&transaction);
            }
            RecordKind::Change | RecordKind::Undoing if transaction != 0 => {
                let entry = self.open.entry(transaction);
                let entry = entry.or_insert(Unended { transaction, first: lsn, last: Lsn(0) });
                if kind == RecordKind::Undoing {
                    entry.last = previous;
                } else if !record.undo.is_empty() {
                    entry.last = lsn;
                }
            }
            RecordKind::Change | RecordKind::Undoing => {}
        }
        self.recovered.next_transaction = self.recovered.next_transaction.max(transaction + 1);
    }

    fn redo(&mut self, record: &Record<'_>) -> Result<(), EngineError> {
        for change in record.changes() {
            if !self.home.is_live(change.address, record.lsn) {
                // The segment was dropped, or its creation came to nothing: the space may be another's now.
                continue;
            }
            if !self.blocks.contains_key(&change.address) {
                if self.blocks.len() >= self.blocks_max {
                    self.write_blocks()?;
                }
                let block = match change.start {
                    Start::Present => self.read_block(change.purpose, change.address)?,
                    // All of it comes from the log, and what it becomes later too.
                    Start::Zeros | Start::Image => Recovering {
                        purpose: change.purpose,
                        bytes: vec![0; self.home.block_size().bytes()].into(),
                        whole: false,
                        changed: false,
                    },
                };
                self.blocks.insert(change.address, block);
            }
            let path = || self.home.tablespaces[change.purpose as usize].path(change.address).to_path_buf();
            let block = self.blocks.get_mut(&change.address).expect("just read");
            if block.whole && block::lsn_of(&block.bytes) >= record.lsn.0 {
                continue;
            }
            if !block.whole && change.start == Start::Present {
                return Err(EngineError::CorruptBlock {
                    path: path(),
                    address: change.address,
                    what: "checksum",
                    found: "another one".to_string(),
                    expected:
                        "that of its content: the log has no image of the block since the last checkpoint"
                            .to_string(),
                });
            }
            if change.apply(&mut block.bytes, record.lsn).is_none() {
                let why = format!("the record of LSN {} leads out of its block", record.lsn.0);
                return Err(EngineError::Log { path: path(), why });
            }
            (block.whole, block.changed) = (true, true);
        }
        Ok(())
    }

    fn read_block(&mut self, purpose: Purpose, address: BlockAddress) -> Result<Recovering, EngineError> {
        let tablespace = &self.home.tablespaces[purpose as usize];
        let block_size = tablespace.block_size;
        let file = Arc::clone(&tablespace.file(address.file)?.file);
        let bytes = self.read(&file, address.block.byte_offset(block_size), block_size.bytes())?;
        let mut block: Box<[u8]> = vec![0; block_size.bytes()].into();
        block[..bytes.len()].copy_from_slice(bytes);
        let whole = block::is_whole(&block, address);
        Ok(Recovering { purpose, bytes: block, whole, changed: false })
    }

    /// Writes what has changed, in the order of the files, adjacent blocks together.
    fn write_blocks(&mut self) -> Result<(), EngineError> {
        let mut changed: Vec<_> = self.blocks.drain().filter(|(_, block)| block.changed).collect();
        changed.sort_unstable_by_key(|(address, _)| *address);
        self.recovered.block_count += changed.len() as u64;
        let mut rest = changed.as_mut_slice();
        while let Some((first, block)) = rest.first() {
            let (first, purpose, bytes) = (*first, block.purpose, block.bytes.len());
            let follows = |(number, (address, _)): (usize, &(BlockAddress, Recovering))| {
                address.file == first.file && address.block == first.block.plus(number as u32)
            };
            let most = PIECE / bytes;
            let count = rest.iter().take(most).enumerate().take_while(|it| follows(*it)).count();
            let (joined, behind) = std::mem::take(&mut rest).split_at_mut(count);
            rest = behind;
            let mut buffer = self.buffer.take().expect("there until a request fails");
            for ((_, block), target) in joined.iter_mut().zip(buffer.chunks_exact_mut(bytes)) {
                block::set_checksum(&mut block.bytes);
                target.copy_from_slice(&block.bytes);
            }
            let tablespace = &self.home.tablespaces[purpose as usize];
            let request = Request {
                operation: Operation::Write,
                file: Arc::clone(&tablespace.file(first.file)?.file),
                offset: first.block.byte_offset(tablespace.block_size),
                buffer,
                range: 0..count * bytes,
                event: Event::DbFileParallelWrite,
                stream: if purpose == Purpose::Indx { IoStream::IndexWrites } else { IoStream::DataWrites },
                tag: 0,
            };
            self.channel.submit(self.session, request)?;
            self.buffer = Some(self.channel.wait(self.session, Event::DbFileParallelWrite)?.buffer);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.write_blocks()?;
        for tablespace in self.home.tablespaces.iter().filter(|it| it.purpose != Purpose::Temp) {
            tablespace.files.iter().try_for_each(|file| file.sync(self.session))?;
        }
        self.recovered.unended = self.open.values().copied().collect();
        Ok(())
    }
}

fn damaged(path: PathBuf, offset: u64, found: Lsn, expected: Lsn) -> EngineError {
    let why = format!(
        "the batch at byte {offset} is damaged: the log goes on at LSN {} behind LSN {}; this is no end of the log, and what follows may have been committed: restore the database from a copy",
        expected.0, found.0
    );
    EngineError::Log { path, why }
}
