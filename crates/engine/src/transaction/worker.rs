//! The worker of a session: access to the cache and the log, and the steps of a change.

use super::active::Active;
use super::connection::LockWait;
use super::undo::Undo;
use super::{Transactions, patch, rows};
use crate::cache::{CacheReader, ChangingBlock, DeviceProgress};
use crate::redo::edit::Edit;
use crate::redo::record::{HEADER_BYTES, Record, RecordBytes, RecordKind};
use crate::redo::{Admission, Log};
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use plumb_events::{Session, Statistic};
use plumb_units::{BlockAddress, Bytes, Lsn, Nanos, RowId};

/// Longest wait for the oldest transaction to free its log, not counting time in which
/// a device does not answer.
const ROOM_PATIENCE: Nanos = Nanos(if cfg!(test) { 500_000_000 } else { 10_000_000_000 });
/// Most bytes of a record besides rows, entries and images.
const RECORD_BESIDE: usize = 256;

/// A session's means to change blocks.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) store: &'a Transactions<'a>,
    pub(super) instance: &'a Instance,
    pub(super) session: &'a Session,
    pub(super) log: &'a Log,
    pub(super) active: &'a Active,
    pub(super) reader: CacheReader<'a>,
    /// Number of the running transaction; 0 for none.
    pub(super) own: u64,
    pub(super) lock_wait: LockWait,
    record: RecordBytes,
    undo: Vec<u8>,
    pub(super) found: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// The log's view of a running transaction.
#[derive(Debug)]
pub(super) struct Thread<'a> {
    pub(super) transaction: u64,
    /// LSN of the record that is undone first.
    pub(super) last: Lsn,
    /// Room for the undo of its changes, and for its end.
    pub(super) promised: Admission<'a>,
}

pub(super) type Changes<'a> = Vec<(Edit, ChangingBlock<'a>)>;

impl<'a> Worker<'a> {
    pub(super) fn new(store: &'a Transactions<'a>, session: &'a Session) -> Worker<'a> {
        Worker {
            store,
            instance: store.instance,
            session,
            log: &store.log,
            active: &store.active,
            reader: CacheReader::new(session, store.instance.caches()),
            own: 0,
            lock_wait: LockWait::Forever,
            record: RecordBytes::default(),
            undo: Vec::new(),
            found: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Creates a worker that verifies the checksum of each block that it reads.
    pub(super) fn verifying(store: &'a Transactions<'a>, session: &'a Session) -> Worker<'a> {
        let reader = CacheReader::verifying(session, store.instance.caches());
        Worker { reader, ..Worker::new(store, session) }
    }

    pub(super) fn block_bytes_of(&self, tablespace: Purpose) -> usize {
        self.instance.tablespace(tablespace).block_size.bytes()
    }

    /// Returns the bytes of a block that inserts leave free, because rows
    /// grow: `pct_free`, or a tenth.
    pub(super) fn spare_of(&self, tablespace: Purpose) -> usize {
        let block_bytes = self.block_bytes_of(tablespace);
        match self.instance.settings.storage.pct_free {
            Some(percent) => block_bytes * percent / 100,
            None => block_bytes / 10,
        }
    }

    /// Waits for room in the log: for a record of at most `record` bytes, and for `besides` bytes
    /// of log blocks. If there is none, a checkpoint makes room. If that is not enough, waits for
    /// the end of the oldest transaction, unless it is this one or the session never waits. The
    /// wait is limited by [`ROOM_PATIENCE`], because the oldest may wait for this transaction. Time
    /// in which a device does not answer does not count.
    ///
    /// # Errors
    /// [`EngineError::LogFull`] after that wait, or the log's failure.
    pub(super) fn admit(&mut self, record: usize, besides: i64) -> Result<Admission<'a>, EngineError> {
        self.log.check()?;
        self.store.checkpoints.step(self.session)?;
        if let Some(admission) = self.log.admit(record, besides) {
            return Ok(admission);
        }
        let needed = self.log.room.charge(record) + besides;
        let mut waited = Nanos(0);
        loop {
            self.store.make_room(self.session, needed)?;
            if let Some(admission) = self.log.admit(record, besides) {
                return Ok(admission);
            }
            let oldest = self.active.oldest();
            let is_other = oldest.is_some_and(|oldest| oldest != self.own);
            if !is_other || self.lock_wait == LockWait::Never || waited > ROOM_PATIENCE {
                let (needed, total) = (Bytes(needed as u64), self.log.total());
                return Err(EngineError::LogFull { needed, total, oldest: oldest.unwrap_or(0) });
            }
            let before = self.devices();
            let paused = self.active.wait_for_oldest(self.session);
            // The oldest may wait for a device that does not answer, and continues when it does.
            if !before.into_iter().zip(self.devices()).any(|(before, now)| before.stood_until(now)) {
                waited = Nanos(waited.0 + paused.0);
            }
        }
    }

    /// Returns the progress of the data files' and the log's devices.
    fn devices(&self) -> [DeviceProgress; 2] {
        [self.instance.caches().progress(), self.log.progress()]
    }

    /// Returns the log bytes that undoing a record may take. Undoing may log an image of the block.
    pub(super) fn promise(&self, tablespace: Purpose, undo: usize) -> i64 {
        self.log.room.charge(undo + self.block_bytes_of(tablespace) + RECORD_BESIDE)
    }

    /// Logs a change that belongs to no transaction and is never undone.
    pub(super) fn log_system(
        &mut self,
        mut admission: Admission<'_>,
        changes: Changes<'_>,
    ) -> Result<(), EngineError> {
        self.record.begin(RecordKind::Change, 0, Lsn(0), &[]);
        let (_, length) = self.append(changes)?;
        admission.spend(length);
        Ok(())
    }

    /// Logs the image of a block that no other session knows. Returns the LSN of the record.
    pub(super) fn log_image(
        &mut self,
        (purpose, address): (Purpose, BlockAddress),
        block: &[u8],
    ) -> Result<Lsn, EngineError> {
        let mut admission = self.admit(block.len() + RECORD_BESIDE, 0)?;
        let _gate = self.log.enter();
        self.record.begin(RecordKind::Change, 0, Lsn(0), &[]);
        Edit::image(purpose, address).finish(block, &mut self.record);
        let record = self.record.finish();
        let lsn = self.log.append(self.session, record)?;
        self.session.count(Statistic::RedoDirectBytes, record.len() as u64);
        admission.spend(record.len());
        Ok(lsn)
    }

    /// Logs a change of a transaction with its undo; keeps `promise` of
    /// the admission for the undoing.
    pub(super) fn log_change(
        &mut self,
        thread: &mut Thread<'a>,
        (mut admission, promise): (Admission<'a>, i64),
        (segment, undo): (Lsn, &Undo<'_>),
        changes: Changes<'_>,
    ) -> Result<(), EngineError> {
        undo.write(segment, &mut self.undo);
        self.record.begin(RecordKind::Change, thread.transaction, thread.last, &self.undo);
        let (lsn, length) = self.append(changes)?;
        admission.spend(length);
        thread.promised.join(admission.split(promise));
        thread.last = lsn;
        self.active.note(thread.transaction, lsn);
        Ok(())
    }

    /// Logs the undoing of a record; `previous` is undone next.
    pub(super) fn log_undoing(
        &mut self,
        thread: &mut Thread<'a>,
        previous: Lsn,
        changes: Changes<'_>,
    ) -> Result<(), EngineError> {
        self.record.begin(RecordKind::Undoing, thread.transaction, previous, &[]);
        let (_, length) = self.append(changes)?;
        thread.promised.spend(length);
        thread.last = previous;
        self.active.note(thread.transaction, previous);
        Ok(())
    }

    /// Logs the end of a transaction. Returns the LSN after its record.
    pub(super) fn log_end(&mut self, thread: &mut Thread<'a>, kind: RecordKind) -> Result<Lsn, EngineError> {
        let gate = self.log.enter();
        self.record.begin(kind, thread.transaction, Lsn(0), &[]);
        let (lsn, length) = self.append(Vec::new())?;
        self.active.note_end(thread.transaction);
        drop(gate);
        thread.promised.spend(length);
        Ok(Lsn(lsn.0 + length as u64))
    }

    /// Completes the record, appends it, and releases the blocks as changed.
    fn append(&mut self, mut changes: Changes<'_>) -> Result<(Lsn, usize), EngineError> {
        let mut images = 0;
        for (edit, block) in &mut changes {
            images += edit.finish(block, &mut self.record);
        }
        let record = self.record.finish();
        let lsn = self.log.append(self.session, record)?;
        self.session.count(Statistic::RedoImageBytes, images as u64);
        self.session.count(Statistic::BlockChanges, changes.len() as u64);
        for (edit, mut block) in changes {
            edit.set_lsn(&mut block, lsn);
            block.changed(lsn);
        }
        Ok((lsn, record.len()))
    }

    /// Reads a record of the log into `found`; `None` if the log no longer holds it.
    pub(super) fn read_log(&mut self, lsn: Lsn) -> Result<Option<Record<'_>>, EngineError> {
        if !self.log.read(self.session, lsn, &mut self.found)? {
            return Ok(None);
        }
        Ok(Record::parse(lsn, &self.found))
    }

    /// Returns the other running transaction that wrote this version of a row, if there is one.
    pub(super) fn holder(&mut self, version: Lsn, own: u64) -> Result<Option<u64>, EngineError> {
        if version < self.active.horizon(self.log.end()) {
            return Ok(None);
        }
        let active = self.active;
        let transaction = self.read_log(version)?.map(|record| record.transaction);
        Ok(transaction.filter(|transaction| *transaction != own && active.is_under_way(*transaction)))
    }

    /// Rejects a chain of records that does not lead to lower LSNs, because it would never end.
    pub(super) fn require_older(&self, found: Lsn, than: Lsn) -> Result<(), EngineError> {
        if found < than {
            return Ok(());
        }
        Err(EngineError::Log {
            path: self.instance.home().to_path_buf(),
            why: format!(
                "the record of LSN {} leads to LSN {} as the one before it, expected a lower one; restore the database from a copy",
                than.0, found.0
            ),
        })
    }

    /// Returns the image of a row as a snapshot sees it; `None` if it sees none.
    pub(super) fn version_for(
        &mut self,
        snapshot: &super::Snapshot<'_>,
        row_id: RowId,
        row: &rows::StoredRow<'_>,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let mut version = RowVersion::of(row);
        while version.lsn >= snapshot.horizon() {
            let Some(record) = self.read_log(version.lsn)? else {
                return Err(EngineError::SnapshotTooOld { row: row_id });
            };
            if snapshot.sees(record.transaction) {
                break;
            }
            let before = version.lsn;
            if !version.step_back(record.undo) {
                return Ok(None);
            }
            self.require_older(version.lsn, before)?;
            self.session.count(Statistic::ConsistentVersions, 1);
        }
        Ok(version.is_there.then_some(version.image))
    }
}

/// A version of a row, written by the record of that LSN.
#[derive(Debug)]
pub(super) struct RowVersion {
    pub(super) lsn: Lsn,
    /// False for a deleted row.
    pub(super) is_there: bool,
    pub(super) image: Vec<u8>,
}

impl RowVersion {
    /// Copies the version that is in the block.
    pub(super) fn of(row: &rows::StoredRow<'_>) -> RowVersion {
        RowVersion { lsn: row.version, is_there: !row.deleted, image: rows::plain_image(row) }
    }

    /// Steps back to the version before, by the undo bytes of its record;
    /// `false` if there was none.
    pub(super) fn step_back(&mut self, undo: &[u8]) -> bool {
        self.lsn = match Undo::parse(undo) {
            Some((_, Undo::Updated { version, image, .. })) => {
                self.image = image.to_vec();
                version
            }
            Some((_, Undo::Patched { version, pieces, .. })) => {
                patch::apply(pieces, &mut self.image);
                version
            }
            Some((_, Undo::Deleted { version, .. })) => version,
            _ => return false,
        };
        self.is_there = true;
        true
    }
}

/// Bytes of the record that ends a transaction.
pub(super) const END_BYTES: usize = HEADER_BYTES;

#[cfg(test)]
mod tests;
