//! Recovery: applies the records of the log again to the blocks that they change.
//!
//! 1. Batches are read ahead of need ([`log_reader`](super::log_reader)), from the log file of the
//!    low LSN on. Records from the redo LSN on are applied in frames of the buffer cache. If there
//!    are too many changed blocks, all are written ([`replay`](super::replay)). A damaged block is
//!    restored from its image, which the log has for every block changed since the checkpoint.
//! 2. Transactions without an end are collected: those that the checkpoint lists, and later ones.
//! 3. The blocks stay in the cache as dirty.
//!
//! Recovery does not undo. Undo needs trees and rows, and uses the same calls as any rollback
//! ([`crate::transaction`]); a checkpoint follows. A crash before that checkpoint completes finds
//! the same control block and a longer log.
//!
//! The log ends at the first place without a whole batch of the right LSN. A batch begins only when
//! everything before it is durable (L2). So a whole batch further on proves that this one was whole
//! once: the log is damaged, and recovery refuses it. Recovery searches as far past the broken
//! batch as one write reaches, and in the file of the next sequence.
//!
//! Cost: each record costs a look-up of its block and a copy of its bytes. The log is read in large
//! requests, several in flight. Limits: one thread applies the records.

use super::checkpoint::{self, Checkpoint};
use super::copier::{Copier, Purpose};
use super::log::LogOptions;
use super::log_file::{self, BATCH_HEADER, BatchHeader, FILE_HEADER};
use super::log_home::LogHome;
use super::log_reader::LogReader;
use super::log_writer::{BatchPlace, LogFile, charge};
use super::record::{Record, RecordKind, UNDER_WAY_BYTES, length_of};
use super::replay::Replay;
use crate::EngineError;
use crate::storage::block::LSN_MOST;
use plumb_events::{Event, Session};
use plumb_io::File;
use plumb_units::Lsn;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of log processed at once: all their blocks are known before the first is changed.
const STRETCH: u64 = 4 << 20;

/// A transaction without an end in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unended {
    /// Number of the transaction.
    pub transaction: u64,
    /// LSN of its first record, or a lower one.
    pub first: Lsn,
    /// LSN of its last record, which is undone first.
    pub last: Lsn,
}

/// Result of a recovery.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Transactions to undo.
    pub unended: Vec<Unended>,
    /// Lowest transaction number that was never used.
    pub next_transaction: u64,
    /// Records applied, or found applied already.
    pub record_count: u64,
    /// Bytes of these records.
    pub redo_bytes: u64,
    /// Changed blocks; one that was evicted in between counts again.
    pub block_count: u64,
    /// Messages about log file members that were missing or damaged, and were restored.
    pub restored: Vec<String>,
}

/// A range of a log file processed at once: its end, and the LSN and record bytes of each batch.
struct Stretch {
    end: u64,
    batches: Vec<(Lsn, Range<u64>)>,
}

/// Reads the log during recovery.
pub(super) struct Redo<'a> {
    home: &'a LogHome<'a>,
    pub(super) session: &'a Session,
    pub(super) reader: LogReader<'a>,
    replay: Replay<'a>,
    log_block: usize,
    from: Lsn,
    open: BTreeMap<u64, Unended>,
    pub(super) places: VecDeque<BatchPlace>,
    pub(super) recovered: Recovered,
    /// True if a member outside of the home lacks the epoch of the last opening.
    pub(super) is_cut_short: bool,
}

impl<'a> Redo<'a> {
    pub(super) fn new(
        home: &'a LogHome<'a>,
        session: &'a Session,
        checkpoint: &Checkpoint,
    ) -> Result<Redo<'a>, EngineError> {
        Ok(Redo {
            home,
            session,
            reader: LogReader::new(session, home.access)?,
            replay: Replay::new(home, session)?,
            log_block: checkpoint.log_block as usize,
            from: checkpoint.redo,
            open: BTreeMap::new(),
            places: VecDeque::new(),
            recovered: Recovered { next_transaction: checkpoint.next_transaction, ..Recovered::default() },
            is_cut_short: false,
        })
    }

    /// Makes a member a copy of another. The header is written last, so that a crash leaves a
    /// member without a valid one.
    pub(super) fn make_like(
        &mut self,
        source: &Arc<File>,
        member: &Arc<File>,
        bytes: u64,
    ) -> Result<(), EngineError> {
        let mut copier = Copier::new(self.session, Purpose::Member)?;
        copier.copy(source, member, FILE_HEADER..bytes)?;
        self.session.wait(Event::LogFileParallelWrite, || member.sync_all())?;
        let head = copier.read(source, 0, FILE_HEADER as usize)?.to_vec();
        copier.write(member, 0, &head)?;
        let (path, source) = (member.path().display(), source.path().display());
        self.recovered
            .restored
            .push(format!("{path} was missing or damaged, and was restored from {source}"));
        Ok(())
    }

    /// Reads all batches from the checkpoint's low LSN on. Returns the file and offset of the next
    /// batch, and the end of the last one.
    pub(super) fn read_log(
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
                // A file begins when everything before it is durable, so it begins where that
                // ended.
                Some(next) if files[next].header.previous_end == end => current = next,
                Some(next) => {
                    let path = files[current].file().path().to_path_buf();
                    return Err(damaged(path, offset, end, files[next].header.previous_end));
                }
                None => {
                    self.require_end(files, checkpoint.sequence, sequence, end)?;
                    let reaches = checkpoint.reaches().max(self.home.reaches);
                    if end < reaches {
                        let path = files[current].file().path().to_path_buf();
                        return Err(damaged(path, offset, end, reaches));
                    }
                    return Ok((current, offset, end));
                }
            }
        }
    }

    /// Refuses a log if the file of this sequence was begun but has lost its header. A header is
    /// durable before a batch follows it, and before a file of a later sequence begins. A power
    /// failure during the header's write leaves neither.
    fn require_end(
        &mut self,
        files: &[LogFile],
        first: u64,
        sequence: u64,
        end: Lsn,
    ) -> Result<(), EngineError> {
        let refuse = |file: &LogFile, what: String| {
            let path = file.file().path().to_path_buf();
            let why = format!(
                "{what}, and the header of no log file says {sequence}: one is damaged, and what its file has may have been committed: restore the database from a copy"
            );
            Err(EngineError::Log { path, why })
        };
        for file in files {
            if file.header.sequence > sequence {
                return refuse(file, format!("it has the sequence {}", file.header.sequence));
            }
            if file.header.sequence < first {
                // The least unit of direct I/O.
                self.reader.open(file.file(), FILE_HEADER..2 * FILE_HEADER)?;
                self.reader.fill(2 * FILE_HEADER)?;
                if BatchHeader::claimed(self.reader.window(FILE_HEADER), sequence, end).is_some() {
                    return refuse(file, format!("its first batch has the sequence {sequence}"));
                }
            }
        }
        Ok(())
    }

    /// Reads the batches of a file. Returns the offset after the last.
    fn read_file(
        &mut self,
        file: &LogFile,
        number: usize,
        end: &mut Lsn,
        write_max: usize,
    ) -> Result<u64, EngineError> {
        self.reader.open(file.file(), FILE_HEADER..file.bytes)?;
        let (mut at, mut more) = (FILE_HEADER, true);
        while more {
            let stretch;
            (stretch, more) = self.stretch(file, number, at, end)?;
            self.redo(&stretch, file)?;
            at = stretch.end;
            self.reader.discard(at);
        }
        self.settle_last(file, number)?;
        // A later whole batch proves that the broken one was whole once.
        let claimed = BatchHeader::claimed(self.reader.window(at), file.header.sequence, *end);
        // The log buffer may have been larger when the batch was written.
        let longest = self.places.iter().map(|place| (place.end.0 - place.lsn.0) as usize).max();
        let write_max = write_max.max(longest.max(claimed).unwrap_or(0));
        let limit = write_max + 2 * FILE_HEADER as usize;
        self.reader.fill(at + limit as u64)?;
        let rest = self.reader.window(at);
        for further in (self.log_block..rest.len().min(limit)).step_by(self.log_block) {
            if let Some(batch) = BatchHeader::read(&rest[further..], file.header.sequence, *end) {
                return Err(damaged(file.file().path().to_path_buf(), at, *end, batch.lsn));
            }
        }
        Ok(at)
    }

    /// Reads the next batches of a file; false if no more follow.
    fn stretch(
        &mut self,
        file: &LogFile,
        number: usize,
        at: u64,
        end: &mut Lsn,
    ) -> Result<(Stretch, bool), EngineError> {
        let mut stretch = Stretch { end: at, batches: Vec::new() };
        while stretch.end - at < STRETCH {
            let Some(batch) = self.batch(file, stretch.end, *end)? else { return Ok((stretch, false)) };
            let records = stretch.end + BATCH_HEADER as u64..stretch.end + batch.length as u64;
            *end = Lsn(batch.lsn.0 + (batch.length - BATCH_HEADER) as u64);
            let (lsn, offset) = (batch.lsn, stretch.end);
            let place = BatchPlace { lsn, end: *end, file: number, offset, written: 0, verified: true };
            self.places.push_back(place);
            stretch.batches.push((batch.lsn, records));
            stretch.end += batch.length.next_multiple_of(self.log_block) as u64;
        }
        Ok((stretch, true))
    }

    /// Reads the batch at an offset, if it is whole. A batch that only the second member has
    /// is copied to the first.
    fn batch(&mut self, file: &LogFile, at: u64, least: Lsn) -> Result<Option<BatchHeader>, EngineError> {
        let sequence = file.header.sequence;
        let found = self.reader.batch(at, sequence, least)?;
        let Some(second) = file.members.get(1).filter(|_| found.is_none()) else { return Ok(found) };
        let mut other = LogReader::new(self.session, self.home.access)?;
        other.open(second, at..file.bytes)?;
        let Some(batch) = other.batch(at, sequence, least)? else { return Ok(None) };
        let padded = batch.length.next_multiple_of(self.log_block);
        other.fill(at + padded as u64)?;
        self.reader.fill(at + padded as u64)?;
        let bytes = &other.window(at)[..padded];
        self.reader.replace(at, bytes);
        Copier::new(self.session, Purpose::Member)?.write(file.file(), at, bytes)?;
        let (first, second) = (file.file().path().display(), second.path().display());
        self.recovered.restored.push(format!("the batch at byte {at} of {first} was taken from {second}"));
        Ok(Some(batch))
    }

    /// Writes the last batch of a file to all members. Only one may have it, and it counts
    /// as acknowledged from now on.
    fn settle_last(&mut self, file: &LogFile, number: usize) -> Result<(), EngineError> {
        let last = self.places.back().filter(|place| place.file == number && file.members.len() > 1);
        let Some(last) = last.copied() else { return Ok(()) };
        let padded = charge((last.end.0 - last.lsn.0) as usize, self.log_block) as usize;
        let mut reader = LogReader::new(self.session, self.home.access)?;
        reader.open(file.file(), last.offset..last.offset + padded as u64)?;
        reader.fill(last.offset + padded as u64)?;
        for member in &file.members[1..] {
            Copier::new(self.session, Purpose::Member)?.write(
                member,
                last.offset,
                reader.window(last.offset),
            )?;
        }
        Ok(())
    }

    /// Applies the records of a stretch.
    fn redo(&mut self, stretch: &Stretch, file: &LogFile) -> Result<(), EngineError> {
        let Redo { reader, replay, from, .. } = self;
        let batches = || stretch.batches.iter().map(|(lsn, at)| (*lsn, within(reader.window(at.start), at)));
        let again = batches().flat_map(|(lsn, bytes)| Records { lsn, bytes });
        let nonsense = |(lsn, why): (Lsn, String)| EngineError::Log {
            path: file.file().path().to_path_buf(),
            why: format!("the record of LSN {} {why}; restore the database from a copy", lsn.0),
        };
        for record in again.clone().filter(|record| record.lsn >= *from) {
            require_record(&record)
                .and_then(|()| replay.require_sound_record(&record))
                .map_err(|why| nonsense((record.lsn, why)))?;
        }
        replay.prepare(again.filter(|record| record.lsn >= *from))?;
        for (lsn, bytes) in
            stretch.batches.iter().map(|(lsn, at)| (*lsn, within(self.reader.window(at.start), at)))
        {
            let mut records = Records { lsn, bytes };
            for record in records.by_ref().filter(|record| record.lsn >= self.from) {
                note(&mut self.open, &mut self.recovered, &record);
                self.replay.redo(&record, || file.file().path().to_path_buf())?;
            }
            if !records.bytes.is_empty() {
                let path = file.file().path().to_path_buf();
                let lsn = records.lsn.0;
                let why = format!("the record of LSN {lsn} makes no sense, though its batch is whole");
                return Err(EngineError::Log { path, why });
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, end: Lsn) -> Result<(), EngineError> {
        self.replay.finish(self.from..end)?;
        self.recovered.block_count = self.replay.block_count;
        self.recovered.unended = self.open.values().copied().collect();
        let most = LogOptions::transactions_max(self.home.tablespaces.largest_block().bytes());
        if self.recovered.unended.len() > most {
            let (found, path) = (self.recovered.unended.len(), checkpoint::path(self.home.home));
            let why = format!(
                "its log has {found} transactions without an end, expected at most {most}; restore the database from a copy"
            );
            return Err(EngineError::Log { path, why });
        }
        Ok(())
    }
}

/// Rejects a record with numbers that no log has.
fn require_record(record: &Record<'_>) -> Result<(), String> {
    let most = |what: &str, found: u64, most: u64| match found <= most {
        true => Ok(()),
        false => Err(format!("has {what} {found}, expected at most {most}")),
    };
    most("transaction", record.transaction, LSN_MOST)?;
    most("the record before it at LSN", record.previous.0, record.lsn.0)?;
    if record.kind != RecordKind::Checkpoint {
        return Ok(());
    }
    for entry in record.undo.chunks_exact(UNDER_WAY_BYTES) {
        let [transaction, first, last] = [0, 8, 16].map(|at| log_file::number(entry, at));
        most("transaction", transaction, LSN_MOST)?;
        most("the first record of a transaction at LSN", first, record.lsn.0)?;
        most("the last record of a transaction at LSN", last, record.lsn.0)?;
    }
    Ok(())
}

/// Iterator over the records of a batch; it stops at malformed bytes and leaves them.
#[derive(Clone)]
struct Records<'a> {
    lsn: Lsn,
    bytes: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = Record::parse(self.lsn, self.bytes)?;
        let length = length_of(self.bytes)?;
        (self.lsn, self.bytes) = (Lsn(self.lsn.0 + length as u64), &self.bytes[length..]);
        Some(record)
    }
}

/// Returns the first bytes, as many as the range has.
fn within<'b>(bytes: &'b [u8], range: &Range<u64>) -> &'b [u8] {
    &bytes[..(range.end - range.start) as usize]
}

/// Updates the transactions without an end, and the counts.
fn note(open: &mut BTreeMap<u64, Unended>, recovered: &mut Recovered, record: &Record<'_>) {
    let Record { kind, transaction, lsn, previous, .. } = *record;
    match kind {
        RecordKind::Checkpoint => {
            for entry in record.undo.chunks_exact(UNDER_WAY_BYTES) {
                let [transaction, first, last] = [0, 8, 16].map(|at| log_file::number(entry, at));
                open.insert(transaction, Unended { transaction, first: Lsn(first), last: Lsn(last) });
                recovered.next_transaction = recovered.next_transaction.max(transaction + 1);
            }
        }
        RecordKind::Commit | RecordKind::RolledBack => {
            open.remove(&transaction);
        }
        RecordKind::Change | RecordKind::Undoing if transaction != 0 => {
            let entry = open.entry(transaction);
            let entry = entry.or_insert(Unended { transaction, first: lsn, last: Lsn(0) });
            if kind == RecordKind::Undoing {
                entry.last = previous;
            } else if !record.undo.is_empty() {
                entry.last = lsn;
            }
        }
        RecordKind::Change | RecordKind::Undoing => {}
    }
    recovered.next_transaction = recovered.next_transaction.max(transaction + 1);
    recovered.record_count += 1;
    recovered.redo_bytes += record.length() as u64;
}

fn damaged(path: PathBuf, offset: u64, found: Lsn, expected: Lsn) -> EngineError {
    let why = format!(
        "the batch at byte {offset} is damaged: the log goes on at LSN {} behind LSN {}; this is no end of the log, and what follows may have been committed: restore the database from a copy",
        expected.0, found.0
    );
    EngineError::Log { path, why }
}
