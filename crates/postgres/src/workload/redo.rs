//! Redo: page views are inserted in arrays with a commit after each, by some sessions at once.
//!
//! Rows, seed and length of an array are those of the engine's redo: `buffer = 1K` makes many small
//! transactions, 16M few large ones. An array is one prepared INSERT over `unnest`, so that a
//! commit costs one round trip. The log keeps the server's default level, because commits without
//! a log that a standby can use are another question.

use super::{Begun, Execution, Outcome, Place, Settings, counted};
use crate::PostgresError;
use crate::copy::{days, table_columns};
use crate::evidence::{Done, InForce};
use crate::session::Session;
use plumb_events::{Cancel, Phase, clock};
use plumb_record::Check;
use plumb_types::{DateTime, RowBatch, RowSource, columns, decode_number};
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::REDO;
use plumb_workload::{PagesSpec, PagesTable, Work, Workload};
use postgres::Statement;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

const TABLE: &str = "page_views";
const INSERT: &str = "insert into page_views select date '2000-01-01' + day, page, status, bytes from \
                      unnest($1::int[], $2::text[], $3::int[], $4::int[]) as rows (day, page, status, bytes)";
const DURING: &str = "rows are inserted";
/// Bytes of a row in the table and in the log, with that of its commit.
const ROW_BYTES: u64 = 400;

pub(super) struct Redo;

impl Execution for Redo {
    fn workload(&self) -> &'static Workload {
        &REDO
    }

    fn settings(&self) -> Settings {
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
    fn load(&self, session: &mut Session<'_>, work: &Work, _: &Cancel) -> Result<(), PostgresError> {
        let columns = table_columns(table(work).schema());
        session.run("the table is created", &format!("create table {TABLE} ({columns})"))
    }

    fn begin<'a>(&self, place: &Place<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
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
            span: (Nanos(0), Nanos(0)),
        }))
    }
}

fn table(work: &Work) -> PagesTable {
    PagesTable::new(PagesSpec { rows: work.rows(), seed: work.seed() })
}

/// An import with its sessions.
struct Importing<'s> {
    sessions: Vec<(Session<'s>, Statement)>,
    work: Work,
    commits: AtomicU64,
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
    fn insert(&mut self, session: &mut Session<'_>, insert: &Statement) -> Result<(), PostgresError> {
        let array = std::mem::take(self);
        session
            .execute(DURING, insert, &[&array.days, &array.pages, &array.statuses, &array.bytes])
            .map(|_| ())
    }
}

impl Begun for Importing<'_> {
    fn work(&mut self) -> Result<(), PostgresError> {
        let (rows, length) = (table(&self.work), self.work.value("buffer").unwrap_or(1));
        let (rows, commits) = (&rows, &self.commits);
        self.span.0 = clock::now();
        let import = |(session, insert): &mut (Session<'_>, Statement)| -> Result<(), PostgresError> {
            let (mut batch, mut array) = (RowBatch::new(), Array::default());
            while rows.next_batch(&mut batch).map_err(PostgresError::Rows)? {
                for row in batch.iter() {
                    array.push(row)?;
                    if array.length >= length {
                        array.insert(session, insert)?;
                        commits.fetch_add(1, Relaxed);
                    }
                }
            }
            if array.length > 0 {
                array.insert(session, insert)?;
                commits.fetch_add(1, Relaxed);
            }
            Ok(())
        };
        let ended: Result<(), PostgresError> = thread::scope(|scope| {
            let import = &import;
            let sessions = self.sessions.iter_mut();
            let threads: Vec<_> = sessions.map(|session| scope.spawn(move || import(session))).collect();
            let lost = || PostgresError::Unfit("a session's thread ended by a panic".to_string());
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| lost())?)
        });
        self.span.1 = clock::now();
        ended
    }

    fn outcome(&mut self) -> Result<Outcome, PostgresError> {
        for (session, _) in &mut self.sessions {
            session.flush_statistics()?;
        }
        Ok(Outcome {
            done: Done {
                commits: self.commits.load(Relaxed),
                sessions: self.sessions.len() as u64,
                ..Done::default()
            },
            rows: self.work.rows(),
            phases: vec![(Phase::Import, self.span.0, self.span.1)],
            sort_lines: Vec::new(),
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
