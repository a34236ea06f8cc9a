//! The transactions under way, what statements may still see, and who waits for whom.
//!
//! A transaction is entered with its first change and leaves when its end is durable, or undone to the last. Between the two its
//! changes are seen by nobody else: a version whose transaction is entered, or younger than the snapshot, is not the reader's.
//!
//! A row has no lock of its own. It is locked when the transaction that made its version is entered; who wants to
//! change it waits for that transaction. Each waits for one at most, so a deadlock is a circle, found when its last arrow is drawn.
//!
//! Limits: as many transactions at once as a checkpoint's record has room for ([`LogOptions::transactions_max`](crate::redo::LogOptions::transactions_max)).

use crate::EngineError;
use plumb_events::{Event, Session, locked, now, wait_signal};
use plumb_units::{Lsn, Nanos, RowId};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long a wait sleeps before it checks its condition again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A transaction under way.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// None of its records is before it.
    first: Lsn,
    /// What of it is undone first.
    last: Lsn,
    /// Its end is in the log, and not durable yet.
    ended: bool,
    waits_for: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    /// Statements under way, by their horizon.
    snapshots: BTreeMap<Lsn, usize>,
    waiting: usize,
}

/// The table of transactions.
#[derive(Debug)]
pub(super) struct Active {
    /// Transactions that may be under way at once.
    most: usize,
    state: Mutex<State>,
    ended: Condvar,
}

/// What a statement sees: the transactions that had ended when it began, and its own.
#[derive(Debug)]
pub struct Snapshot<'a> {
    active: &'a Active,
    own: u64,
    next: u64,
    under_way: Vec<u64>,
    horizon: Lsn,
}

impl Snapshot<'_> {
    /// Every version before it is the statement's to see.
    pub(super) fn horizon(&self) -> Lsn {
        self.horizon
    }

    /// Whether what this transaction has done is.
    pub(super) fn sees(&self, transaction: u64) -> bool {
        transaction == self.own
            || (transaction < self.next && self.under_way.binary_search(&transaction).is_err())
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let mut state = self.active.state();
        if let Some(count) = state.snapshots.get_mut(&self.horizon) {
            *count -= 1;
            if *count == 0 {
                state.snapshots.remove(&self.horizon);
            }
        }
    }
}

/// What a checkpoint must know.
pub(super) struct UnderWay {
    /// Transaction, first and last LSN, 24 bytes each.
    pub(super) list: Vec<u8>,
    pub(super) next: u64,
}

impl Active {
    /// `most` may be under way at once; the first one has the number `next`.
    pub(super) fn new(most: usize, next: u64) -> Active {
        Active { most, state: Mutex::new(State { next, ..State::default() }), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Waits until a transaction has ended, or until it is time to look again.
    fn wait<'g>(&'g self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        wait_signal((&self.state, &self.ended), state, LOOK_AGAIN)
    }

    /// Enters a transaction none of whose records is before the LSN that `end` reads.
    pub(super) fn enter(&self, end: impl FnOnce() -> Lsn) -> Result<(u64, Lsn), EngineError> {
        let mut state = self.state();
        if state.entries.len() >= self.most {
            return Err(EngineError::Contradiction {
                first: "one transaction more".to_string(),
                second: format!("{} under way", self.most),
                why: "the record of a checkpoint lists no more in blocks of this size; commit or roll back some first"
                    .to_string(),
            });
        }
        let transaction = state.next;
        state.next += 1;
        let first = end();
        let entry = Entry { first, last: Lsn(0), ended: false, waits_for: None };
        state.entries.insert(transaction, entry);
        Ok((transaction, first))
    }

    /// Enters one that a recovery found.
    pub(super) fn enter_again(&self, transaction: u64, first: Lsn, last: Lsn) {
        let entry = Entry { first, last, ended: false, waits_for: None };
        self.state().entries.insert(transaction, entry);
    }

    /// What of the transaction is undone first from now on.
    pub(super) fn note(&self, transaction: u64, last: Lsn) {
        if let Some(entry) = self.state().entries.get_mut(&transaction) {
            entry.last = last;
        }
    }

    /// The end of the transaction is in the log.
    pub(super) fn note_end(&self, transaction: u64) {
        if let Some(entry) = self.state().entries.get_mut(&transaction) {
            entry.ended = true;
        }
    }

    /// The transaction is over for everybody.
    pub(super) fn leave(&self, transaction: u64) {
        let mut state = self.state();
        state.entries.remove(&transaction);
        if state.waiting > 0 {
            self.ended.notify_all();
        }
    }

    pub(super) fn is_under_way(&self, transaction: u64) -> bool {
        self.state().entries.contains_key(&transaction)
    }

    /// The oldest transaction under way.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.state().entries.iter().min_by_key(|(_, entry)| entry.first).map(|(transaction, _)| *transaction)
    }

    /// What a statement that begins now sees; `end` reads the LSN of the next record.
    pub(super) fn snapshot(&self, own: u64, end: impl FnOnce() -> Lsn) -> Snapshot<'_> {
        let mut state = self.state();
        let first = state.entries.values().map(|entry| entry.first).min();
        let horizon = first.unwrap_or_else(end);
        *state.snapshots.entry(horizon).or_default() += 1;
        let under_way = state.entries.keys().copied().collect();
        Snapshot { active: self, own, next: state.next, under_way, horizon }
    }

    /// What was done before it is seen by all statements, those under way too, and is never undone.
    pub(super) fn horizon(&self, end: Lsn) -> Lsn {
        let state = self.state();
        let first = state.entries.values().map(|entry| entry.first).min();
        let seen = state.snapshots.keys().next().copied();
        first.into_iter().chain(seen).min().unwrap_or(end).min(end)
    }

    /// What a checkpoint needs of the log that began at this LSN: where the oldest transaction under way begins, if that is before.
    pub(super) fn low(&self, begin: Lsn) -> Lsn {
        let state = self.state();
        state.entries.values().map(|entry| entry.first).min().map_or(begin, |first| first.min(begin))
    }

    /// Waits for the end of some transaction, for a moment at most. Gives how long it was.
    pub(super) fn wait_for_oldest(&self, session: &Session) -> Nanos {
        let mut state = self.state();
        state.waiting += 1;
        let begin = session.begin_wait();
        state = self.wait(state);
        session.end_wait(Event::LogFileSwitchCheckpoint, begin);
        state.waiting -= 1;
        now().saturating_sub(begin.at())
    }

    /// What the record of a checkpoint notes that begins now.
    pub(super) fn under_way(&self) -> UnderWay {
        let state = self.state();
        let mut under_way = UnderWay { list: Vec::new(), next: state.next };
        for (transaction, entry) in state.entries.iter().filter(|(_, entry)| !entry.ended) {
            for number in [*transaction, entry.first.0, entry.last.0] {
                under_way.list.extend_from_slice(&number.to_le_bytes());
            }
        }
        under_way
    }

    /// Waits for the end of a transaction that has changed a row, as long as `still` says that transactions can end at all: after a failure of the log
    /// none does.
    pub(super) fn wait_for(
        &self,
        session: &Session,
        transaction: u64,
        (holder, row): (u64, RowId),
        still: impl Fn() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut state = self.state();
        let mut next = Some(holder);
        while let Some(other) = next {
            if other == transaction {
                return Err(EngineError::Deadlock { transaction, row, holder });
            }
            next = state.entries.get(&other).and_then(|entry| entry.waits_for);
        }
        if let Some(entry) = state.entries.get_mut(&transaction) {
            entry.waits_for = Some(holder);
        }
        state.waiting += 1;
        let begin = session.begin_wait();
        let mut result = Ok(());
        while state.entries.contains_key(&holder) && result.is_ok() {
            state = self.wait(state);
            result = still();
        }
        session.end_wait(Event::EnqTxRowLock, begin);
        state.waiting -= 1;
        if let Some(entry) = state.entries.get_mut(&transaction) {
            entry.waits_for = None;
        }
        result
    }
}
