//! The table of running transactions: what statements see, and which transaction waits for which.
//!
//! A transaction enters the table with its first change. It leaves when its end is durable, or when
//! all its changes are undone. In between no other transaction sees its changes: a version is
//! invisible if its transaction is in the table or younger than the snapshot.
//!
//! A row has no lock of its own. It is locked while the transaction that wrote its version is in
//! the table, and a session that wants to change it waits for that transaction. Each transaction
//! waits for one at most, so a deadlock is a cycle, found when its last edge is added.
//!
//! Limits: at most as many transactions as a checkpoint's record can list
//! ([`LogOptions::transactions_max`](crate::redo::LogOptions::transactions_max)).

use crate::EngineError;
use plumb_events::{Event, Session, locked, now, wait_signal};
use plumb_units::{Lsn, Nanos, RowId};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Time that a wait sleeps before it checks its condition again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// No record of the transaction has a lower LSN.
    first: Lsn,
    /// LSN of the record that is undone first.
    last: Lsn,
    /// True once its end is in the log, though not yet durable.
    ended: bool,
    waits_for: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    /// Number of running statements, by horizon.
    snapshots: BTreeMap<Lsn, usize>,
    waiting: usize,
}

#[derive(Debug)]
pub(super) struct Active {
    /// Most transactions that may run at once.
    most: usize,
    state: Mutex<State>,
    ended: Condvar,
}

/// The visible transactions of a statement: those that had ended when it began, and its own.
#[derive(Debug)]
pub struct Snapshot<'a> {
    active: &'a Active,
    own: u64,
    next: u64,
    under_way: Vec<u64>,
    horizon: Lsn,
}

impl Snapshot<'_> {
    /// Returns the LSN before which the statement sees every version.
    pub(super) fn horizon(&self) -> Lsn {
        self.horizon
    }

    /// True if the statement sees the changes of this transaction.
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

/// State of the transactions for a checkpoint's record.
pub(super) struct UnderWay {
    /// Transaction, first and last LSN of each, 8 bytes each.
    pub(super) list: Vec<u8>,
    pub(super) next: u64,
}

impl Active {
    /// Creates the table. At most `most` transactions run at once; `next` numbers the first.
    pub(super) fn new(most: usize, next: u64) -> Active {
        Active { most, state: Mutex::new(State { next, ..State::default() }), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Waits until a transaction ends, or for [`LOOK_AGAIN`].
    fn wait<'g>(&'g self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        wait_signal((&self.state, &self.ended), state, LOOK_AGAIN)
    }

    /// Enters a transaction. `end` reads an LSN that all its records reach.
    ///
    /// # Errors
    /// If too many transactions run.
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

    /// Enters a transaction that recovery found.
    pub(super) fn enter_again(&self, transaction: u64, first: Lsn, last: Lsn) {
        let entry = Entry { first, last, ended: false, waits_for: None };
        self.state().entries.insert(transaction, entry);
    }

    /// Sets the LSN of the record that is undone first.
    pub(super) fn note(&self, transaction: u64, last: Lsn) {
        if let Some(entry) = self.state().entries.get_mut(&transaction) {
            entry.last = last;
        }
    }

    pub(super) fn note_end(&self, transaction: u64) {
        if let Some(entry) = self.state().entries.get_mut(&transaction) {
            entry.ended = true;
        }
    }

    /// Removes a transaction, so that others see its changes, and wakes the waiters.
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

    /// Returns the oldest running transaction, by its first LSN.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.state().entries.iter().min_by_key(|(_, entry)| entry.first).map(|(transaction, _)| *transaction)
    }

    /// Takes a snapshot for a statement; `end` reads the LSN of the next record.
    pub(super) fn snapshot(&self, own: u64, end: impl FnOnce() -> Lsn) -> Snapshot<'_> {
        let mut state = self.state();
        let first = state.entries.values().map(|entry| entry.first).min();
        let horizon = first.unwrap_or_else(end);
        *state.snapshots.entry(horizon).or_default() += 1;
        let under_way = state.entries.keys().copied().collect();
        Snapshot { active: self, own, next: state.next, under_way, horizon }
    }

    /// Returns the LSN before which all statements see every change, and no change is ever undone.
    pub(super) fn horizon(&self, end: Lsn) -> Lsn {
        let state = self.state();
        let first = state.entries.values().map(|entry| entry.first).min();
        let seen = state.snapshots.keys().next().copied();
        first.into_iter().chain(seen).min().unwrap_or(end).min(end)
    }

    /// Returns the first LSN that a checkpoint begun at `begin` needs: that of the oldest
    /// transaction, if it is lower.
    pub(super) fn low(&self, begin: Lsn) -> Lsn {
        let state = self.state();
        state.entries.values().map(|entry| entry.first).min().map_or(begin, |first| first.min(begin))
    }

    /// Waits for the end of any transaction, at most [`LOOK_AGAIN`]. Returns the time waited.
    pub(super) fn wait_for_oldest(&self, session: &Session) -> Nanos {
        let mut state = self.state();
        state.waiting += 1;
        let begin = session.begin_wait();
        state = self.wait(state);
        session.end_wait(Event::LogFileSwitchCheckpoint, begin);
        state.waiting -= 1;
        now().saturating_sub(begin.at())
    }

    /// Returns the running transactions for the record of a checkpoint.
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

    /// Waits for the end of the transaction that changed a row. `still` fails once no transaction
    /// can end, after a failure of the log.
    ///
    /// # Errors
    /// [`EngineError::Deadlock`], or the error of `still`.
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
