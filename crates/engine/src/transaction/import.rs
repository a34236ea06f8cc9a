//! Conventional load: inserts the rows of a source through transactions, by array inserts, as an
//! import utility does.
//!
//! Sessions take batches of rows from the source, insert them in arrays, and commit after each
//! array or after a number of rows. Committed rows stay even if the import fails; the rest is
//! rolled back.
//!
//! Limits: a session holds a batch of the source and an array in memory. A transaction must log
//! less than the log files hold.

use super::check::row_hash;
use super::{Transaction, Transactions};
use crate::EngineError;
use crate::parallel::servers::{self, Operation};
use plumb_events::{Phase, Session, now};
use plumb_types::{RowBatch, RowSource};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Parameters of an import.
#[derive(Debug, Clone, Copy)]
pub struct ImportSpec<'s> {
    /// Name of the table, which must exist.
    pub table: &'s str,
    /// Bytes of rows in one array insert, which has at least one row.
    pub array_bytes: usize,
    /// Rows of a transaction; `None` to commit after each array.
    pub rows_per_commit: Option<u64>,
    /// Number of sessions that share the rows.
    pub sessions: usize,
    /// Rows committed so far, for progress reports.
    pub committed: &'s AtomicU64,
}

/// Result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// Committed rows.
    pub row_count: u64,
    /// Bytes of the committed rows, as row images.
    pub row_bytes: u64,
    /// Sum of the hashes of the committed rows ([`row_hash`]), modulo 2^64.
    pub row_sum: u64,
    /// Number of commits.
    pub commit_count: u64,
    /// Rows of commits that the log failed to make durable. Recovery finds each such transaction
    /// completely, or not at all.
    pub doubtful_row_count: u64,
}

impl Imported {
    fn add(&mut self, other: Imported) {
        self.row_count += other.row_count;
        self.row_bytes += other.row_bytes;
        self.row_sum = self.row_sum.wrapping_add(other.row_sum);
        self.commit_count += other.commit_count;
        self.doubtful_row_count += other.doubtful_row_count;
    }
}

/// Imports all rows of a source into a table. Returns the committed rows, even after a failure.
///
/// # Errors
/// The first failure of a session, after which the others stop.
pub fn import(
    transactions: &Transactions<'_>,
    coordinator: &Session,
    source: &dyn RowSource,
    spec: &ImportSpec<'_>,
) -> (Imported, Result<(), EngineError>) {
    let instance = transactions.instance();
    let begin = now();
    let operation = instance.operation();
    let parts = std::thread::scope(|scope| {
        let operation = &operation;
        let work = move |session: &Session, _| {
            let mut part = Imported::default();
            // Committed rows count, even if a later failure ends the session.
            if let Err(error) = import_part(transactions, session, operation, (source, spec), &mut part) {
                operation.fail(error);
            }
            Ok(part)
        };
        servers::join(coordinator, servers::start_sessions(scope, operation, spec.sessions, work))
    });
    let mut sum = Imported::default();
    parts.into_iter().flatten().flatten().for_each(|part| sum.add(part));
    instance.recorder.phase(Phase::Import, begin, sum.row_count);
    (sum, operation.outcome())
}

/// Runs one session of an import; `done` counts what it has committed.
fn import_part(
    transactions: &Transactions<'_>,
    session: &Session,
    operation: &Operation,
    (source, spec): (&dyn RowSource, &ImportSpec<'_>),
    done: &mut Imported,
) -> Result<(), EngineError> {
    let mut connection = transactions.connect(session);
    let mut rows = Rows {
        transaction: connection.begin(),
        spec,
        array: RowBatch::new(),
        pending: Imported::default(),
        done,
    };
    let mut batch = RowBatch::new();
    while source.next_batch(&mut batch).map_err(EngineError::Source)? {
        for row in batch.iter() {
            operation.check()?;
            rows.add(row)?;
        }
    }
    rows.insert()?;
    rows.commit()
}

struct Rows<'p, 'c, 'a> {
    transaction: Transaction<'c, 'a>,
    spec: &'p ImportSpec<'p>,
    /// Rows of the next array insert.
    array: RowBatch,
    /// Inserted rows of the running transaction.
    pending: Imported,
    done: &'p mut Imported,
}

impl Rows<'_, '_, '_> {
    fn add(&mut self, row: &[u8]) -> Result<(), EngineError> {
        let is_full = self.array.byte_count() + row.len() > self.spec.array_bytes;
        if is_full && !self.array.is_empty() {
            self.insert()?;
            if self.spec.rows_per_commit.is_none() {
                self.commit()?;
            }
        }
        self.array.push_row(row);
        let rows = self.pending.row_count + self.array.len() as u64;
        if self.spec.rows_per_commit.is_some_and(|most| rows >= most) {
            self.insert()?;
            self.commit()?;
        }
        Ok(())
    }

    fn insert(&mut self) -> Result<(), EngineError> {
        if !self.array.is_empty() {
            self.transaction.insert_rows(self.spec.table, &self.array)?;
            self.pending.add(Imported {
                row_count: self.array.len() as u64,
                row_bytes: self.array.byte_count() as u64,
                row_sum: self.array.iter().fold(0, |sum: u64, row| sum.wrapping_add(row_hash(row))),
                ..Imported::default()
            });
            self.array.clear();
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        let pending = std::mem::take(&mut self.pending);
        if let Err(error) = self.transaction.commit_and_chain() {
            // The commit record may have reached the disk before the failure.
            if matches!(error, EngineError::LogFailed { .. }) {
                self.done.doubtful_row_count += pending.row_count;
            }
            return Err(error);
        }
        self.spec.committed.fetch_add(pending.row_count, Relaxed);
        self.done.add(Imported { commit_count: u64::from(pending.row_count > 0), ..pending });
        Ok(())
    }
}
