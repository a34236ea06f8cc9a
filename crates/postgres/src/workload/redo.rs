//! Redo: page views are inserted in arrays with a commit after each, by some sessions at once.
//!
//! Rows, seed and length of an array are those of the engine's redo: `buffer = 1K` makes many small
//! transactions, 16M few large ones. An array is one prepared INSERT over `unnest`, so that a
//! commit costs one round trip. The log keeps the server's default level, because commits without
//! a log that a standby can use are another question.

use super::{BaseSettings, Begun, ServerWork, WorkOutcome, WorkPlace, counted, in_threads};
use crate::PostgresError;
use crate::copy::{days, table_columns};
use crate::evidence::WorkDone;
use crate::session::{InForce, ServerSession};
use plumb_events::{Cancel, Phase, clock, locked};
use plumb_record::Check;
use plumb_types::{DateTime, RowBatch, RowSource, columns, decode_number};
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::REDO;
use plumb_workload::{PagesSpec, PagesTable, Work, Workload};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio_postgres::Statement;

const TABLE: &str = "page_views";
const INSERT: &str = "insert into page_views select date '2000-01-01' + day, page, status, bytes from \
                      unnest($1::int[], $2::text[], $3::int[], $4::int[]) as rows (day, page, status, bytes)";
const DURING: &str = "rows are inserted";
/// Bytes of a row in the table and in the log, with that of its commit.
const ROW_BYTES: u64 = 400;

pub(super) struct Redo;

impl ServerWork for Redo {
    fn workload(&self) -> &'static Workload {
        &REDO
    }

    fn settings(&self) -> BaseSettings {
        &[("max_wal_size", "4GB")]
    }

    fn room(&self, work: &Work) -> Bytes {
        Bytes(work.rows().saturating_mul(ROW_BYTES).saturating_add(Bytes::G))
    }

    fn table(&self) -> &'static str {
        TABLE
    }

    fn writes(&self) -> bool {
        true
    }

    /// Makes the empty table; the rows come with the work.
    fn load(&self, session: &mut ServerSession<'_>, work: &Work, _: &Cancel) -> Result<(), PostgresError> {
        let columns = table_columns(table(work).schema());
        session.run("the table is created", &format!("create table {TABLE} ({columns})"))
    }

    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
        let count = place.work.value("sessions").unwrap_or(1);
        let session = |_| {
            let mut session = place.session()?;
            let insert = session.prepare(DURING, INSERT)?;
            Ok((session, insert))
        };
        Ok(Box::new(Importing {
            sessions: (0..count).map(session).collect::<Result<_, PostgresError>>()?,
            work: place.work.clone(),
            commits: AtomicU64::new(0),
            worked: AtomicU64::new(0),
            span: (Nanos(0), Nanos(0)),
        }))
    }
}

fn table(work: &Work) -> PagesTable {
    PagesTable::new(PagesSpec { rows: work.rows(), seed: work.seed() })
}

/// An import with its sessions.
struct Importing<'s> {
    sessions: Vec<(ServerSession<'s>, Statement)>,
    work: Work,
    commits: AtomicU64,
    worked: AtomicU64,
    span: (Nanos, Nanos),
}

/// Rows of an array, by column.
#[derive(Debug, Default)]
struct Array {
    days: Vec<i32>,
    pages: Vec<String>,
    statuses: Vec<i32>,
    bytes: Vec<i32>,
    /// Length of the rows' images.
    length: u64,
}

impl Array {
    fn push(&mut self, row: &[u8]) -> Result<(), PostgresError> {
        let unfit = |column| PostgresError::Value {
            column,
            value: format!("{row:?}"),
            expected: "a row of page views: date, text, integer, integer",
        };
        let mut values = columns(row);
        let mut next = |column| values.next().flatten().ok_or_else(|| unfit(column));
        let number = |value: &[u8], column| {
            let whole = decode_number(value).ok().filter(|(_, scale)| *scale == 0);
            whole.and_then(|(number, _)| i32::try_from(number).ok()).ok_or_else(|| unfit(column))
        };
        let day = DateTime::decode(next(1)?).ok().and_then(|date| days(&date));
        self.days.push(day.ok_or_else(|| unfit(1))?);
        self.pages.push(String::from_utf8_lossy(next(2)?).into_owned());
        self.statuses.push(number(next(3)?, 3)?);
        self.bytes.push(number(next(4)?, 4)?);
        self.length += row.len() as u64;
        Ok(())
    }

    /// Inserts the rows and empties the array.
    fn insert(&mut self, session: &mut ServerSession<'_>, insert: &Statement) -> Result<(), PostgresError> {
        let array = std::mem::take(self);
        session
            .execute(DURING, insert, &[&array.days, &array.pages, &array.statuses, &array.bytes])
            .map(|_| ())
    }
}

/// Rows for all sessions, which take an array at a time. A batch of the source has thousands of
/// rows, so a session that took a whole one would leave nothing to others.
struct Arrays<'r> {
    rows: &'r PagesTable,
    length: u64,
    /// A batch with the number of its rows that were taken.
    left: Mutex<(RowBatch, usize)>,
}

impl Arrays<'_> {
    /// Returns the next array, which is empty at the end.
    fn take(&self) -> Result<Array, PostgresError> {
        let (mut left, mut array) = (locked(&self.left), Array::default());
        let (batch, taken) = &mut *left;
        while array.length < self.length {
            if *taken == batch.len() {
                *taken = 0;
                if !self.rows.next_batch(batch).map_err(PostgresError::Rows)? {
                    break;
                }
            }
            array.push(batch.row(*taken))?;
            *taken += 1;
        }
        Ok(array)
    }
}

impl Begun for Importing<'_> {
    fn work(&mut self) -> Result<(), PostgresError> {
        let rows = table(&self.work);
        let length = self.work.value("buffer").unwrap_or(1);
        let arrays = Arrays { rows: &rows, length, left: Mutex::new((RowBatch::new(), 0)) };
        let (commits, worked) = (&self.commits, &self.worked);
        self.span.0 = clock::now();
        let ended = in_threads(&mut self.sessions, |(session, insert), _| {
            let mut own = 0;
            loop {
                let mut array = arrays.take()?;
                if array.length == 0 {
                    break;
                }
                array.insert(session, insert)?;
                own += 1;
            }
            commits.fetch_add(own, Relaxed);
            worked.fetch_add(u64::from(own > 0), Relaxed);
            Ok(())
        });
        self.span.1 = clock::now();
        ended
    }

    fn outcome(&mut self) -> Result<WorkOutcome, PostgresError> {
        let mut sessions: Vec<_> = self.sessions.iter_mut().map(|(session, _)| session).collect();
        ServerSession::flush_all(&mut sessions)?;
        Ok(WorkOutcome {
            done: WorkDone {
                commits: self.commits.load(Relaxed),
                sessions: self.worked.load(Relaxed),
                ..WorkDone::default()
            },
            rows: self.work.rows(),
            phases: vec![(Phase::Import, self.span.0, self.span.1)],
            ..WorkOutcome::default()
        })
    }

    /// Compares number and sum of the rows with those of the source.
    fn verify(&mut self) -> Result<Vec<Check>, PostgresError> {
        let begin = clock::now();
        let (source, mut batch, mut sum) = (table(&self.work), RowBatch::new(), 0_i64);
        while source.next_batch(&mut batch).map_err(PostgresError::Rows)? {
            let mut array = Array::default();
            batch.iter().try_for_each(|row| array.push(row))?;
            sum += array.bytes.iter().map(|bytes| i64::from(*bytes)).sum::<i64>();
        }
        let Some((session, _)) = self.sessions.first_mut() else { return Ok(Vec::new()) };
        let of = |what: &str| format!("select {what}::bigint from {TABLE}");
        let rows: i64 = session.value("the rows are counted", &of("count(*)"))?;
        let last = source.schema().columns.last().map_or("bytes", |column| column.name.as_str());
        let found: i64 = session.value("the rows are added up", &of(&format!("coalesce(sum({last}), 0)")))?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let spent = clock::now().saturating_sub(begin);
        Ok(vec![
            counted("rows of PAGE_VIEWS", count(rows), self.work.rows(), spent),
            counted("sum of PAGE_VIEWS", count(found), count(sum), Nanos(0)),
        ])
    }

    /// Each run has a data directory of its own, which is removed.
    fn undo(&mut self) -> Result<(), PostgresError> {
        Ok(())
    }

    fn settings(&mut self) -> Result<Vec<InForce>, PostgresError> {
        self.sessions.first_mut().map_or_else(|| Ok(Vec::new()), |(session, _)| session.settings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_array_is_as_long_as_asked_so_that_all_sessions_get_some() {
        let mut work = Work::of(&REDO);
        work.set("rows", "2000").expect("a count");
        let rows = table(&work);
        let arrays = Arrays { rows: &rows, length: 1024, left: Mutex::new((RowBatch::new(), 0)) };
        let (mut count, mut found) = (0, 0);
        loop {
            let array = arrays.take().expect("rows");
            if array.length == 0 {
                break;
            }
            assert!(array.length < 2048, "{} bytes in an array of 1 KB", array.length);
            (count, found) = (count + 1, found + array.days.len());
        }
        assert_eq!(found, 2000);
        assert!(count > 50, "{count} arrays");
    }
}
