//! Scans: streams read the whole sales table at once, count the rows that satisfy a condition, and
//! add columns.
//!
//! Each stream is a session with a SELECT of its own, which may have parallel workers. Scans of one
//! table do not follow each other (`synchronize_seqscans`), because then one would read for all.
//! The condition is the study's text, as SQL.
//!
//! The verification makes the rows again from their seed. Rows with the condition and rows without
//! it, found by two more statements, must add up to them.
//!
//! Limits: there is no load by direct path, no checksum of a row's bytes and no scan of files by
//! other processes, so these parameters of the engine's scan are refused.

use super::{
    BaseSettings, Begun, ServerWork, WorkOutcome, WorkPlace, counted, in_threads, relation_size, sales,
};
use crate::PostgresError;
use crate::evidence::WorkDone;
use crate::session::{InForce, ServerSession};
use plumb_events::{Cancel, Phase, clock};
use plumb_record::Check;
use plumb_types::{RowBatch, RowSource, columns, decode_number};
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::SCAN;
use plumb_workload::{Work, Workload};

const DURING: &str = "the table is scanned";
/// Parameters of the engine's scan that a server lacks, with their only value here.
const ENGINE_ONLY: [(&str, u64, &str); 3] = [
    ("filled", 0, "a server has one way to fill a table"),
    ("instances", 1, "no other process reads a server's files"),
    ("checksum", 0, "a server hashes no row as the engine does"),
];

pub(super) struct Scan;

impl ServerWork for Scan {
    fn workload(&self) -> &'static Workload {
        &SCAN
    }

    fn settings(&self) -> BaseSettings {
        &[("synchronize_seqscans", "off")]
    }

    fn room(&self, work: &Work) -> Bytes {
        Bytes(work.rows().saturating_mul(sales::ROW_BYTES).saturating_add(Bytes::G))
    }

    fn table(&self) -> &'static str {
        sales::TABLE
    }

    fn writes(&self) -> bool {
        false
    }

    fn load(
        &self,
        session: &mut ServerSession<'_>,
        work: &Work,
        cancel: &Cancel,
    ) -> Result<(), PostgresError> {
        Query::of(work)?;
        sales::load(session, work, cancel)
    }

    fn query(&self, work: &Work) -> Result<Option<String>, PostgresError> {
        let query = Query::of(work)?;
        Ok(Some(query.sql(query.condition.as_deref())))
    }

    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
        let query = Query::of(place.work)?;
        let session = |_| Ok(Stream { session: place.session()?, found: Vec::new() });
        let streams = place.work.value("streams").unwrap_or(1);
        Ok(Box::new(Scanning {
            streams: (0..streams).map(session).collect::<Result<_, PostgresError>>()?,
            query,
            work: place.work.clone(),
            span: (Nanos(0), Nanos(0)),
        }))
    }
}

/// Columns to add and the condition.
struct Query {
    columns: Vec<String>,
    condition: Option<String>,
}

impl Query {
    fn of(work: &Work) -> Result<Query, PostgresError> {
        for (name, only, why) in ENGINE_ONLY {
            let parameter = work.workload.parameter(name);
            if let Some((parameter, value)) =
                parameter.zip(work.value(name)).filter(|(_, value)| *value != only)
            {
                let (found, only) = (parameter.shown(value), parameter.shown(only));
                return Err(PostgresError::Unfit(format!(
                    "{name}={found}: {why}; leave it out, or give {name}={only}"
                )));
            }
        }
        let schema = sales::rows(work).schema().clone();
        let text = work.text("columns").unwrap_or_default();
        let named = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let columns: Vec<String> = named.map(str::to_lowercase).collect();
        let known =
            |name: &String| schema.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        if let Some(unknown) = columns.iter().find(|name| !known(name)) {
            let names: Vec<String> = schema.columns.iter().map(|column| column.name.to_lowercase()).collect();
            return Err(PostgresError::Unfit(format!(
                "columns: the sales table has no column {unknown}; it has {}",
                names.join(", ")
            )));
        }
        Ok(Query { columns, condition: work.text("where") })
    }

    /// Returns the statement, with the rows of this condition. Sums are texts, because they may
    /// have any number of digits.
    fn sql(&self, condition: Option<&str>) -> String {
        let sums: String =
            self.columns.iter().map(|column| format!(", coalesce(sum({column}), 0)::text")).collect();
        let filter = condition.map_or(String::new(), |condition| format!(" where {condition}"));
        format!("select count(*)::text{sums} from {}{filter}", sales::TABLE)
    }

    /// Runs a statement; returns the count and the sums.
    fn run(
        &self,
        session: &mut ServerSession<'_>,
        condition: Option<&str>,
    ) -> Result<Vec<String>, PostgresError> {
        let rows = session.rows(DURING, &self.sql(condition), &[])?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        Ok((0..row.len()).map(|column| row.try_get(column).unwrap_or_default()).collect())
    }

    /// Adds the rows of the generator: count, and sums in hundredths.
    fn expected(&self, work: &Work) -> Result<Vec<i128>, PostgresError> {
        let (source, mut batch) = (sales::rows(work), RowBatch::new());
        let place = |name: &String| {
            source.schema().columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
        };
        let places: Vec<usize> = self.columns.iter().filter_map(place).collect();
        let mut totals = vec![0; 1 + places.len()];
        while source.next_batch(&mut batch).map_err(PostgresError::Rows)? {
            for row in batch.iter() {
                totals[0] += 100;
                for (total, place) in totals[1..].iter_mut().zip(&places) {
                    let number =
                        columns(row).nth(*place).flatten().and_then(|value| decode_number(value).ok());
                    let (unscaled, scale) = number.unwrap_or_default();
                    *total += in_hundredths(unscaled, scale);
                }
            }
        }
        Ok(totals)
    }
}

/// Returns `unscaled / 10^scale` in hundredths; the sales table has no finer number.
fn in_hundredths(unscaled: i128, scale: i8) -> i128 {
    match 2 - i32::from(scale) {
        up @ 0.. => unscaled * 10_i128.pow(up as u32),
        down => unscaled / 10_i128.pow(down.unsigned_abs()),
    }
}

/// Parses a number of the server into hundredths.
fn hundredths(text: &str) -> i128 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<2}").parse().unwrap_or(i128::MIN)
}

struct Stream<'s> {
    session: ServerSession<'s>,
    found: Vec<String>,
}

struct Scanning<'s> {
    streams: Vec<Stream<'s>>,
    query: Query,
    work: Work,
    span: (Nanos, Nanos),
}

impl Begun for Scanning<'_> {
    fn work(&mut self) -> Result<(), PostgresError> {
        let query = &self.query;
        self.span.0 = clock::now();
        let ended = in_threads(&mut self.streams, |stream, _| {
            stream.found = query.run(&mut stream.session, query.condition.as_deref())?;
            Ok(())
        });
        self.span.1 = clock::now();
        ended
    }

    fn outcome(&mut self) -> Result<WorkOutcome, PostgresError> {
        let streams = self.streams.len() as u64;
        let session = &mut self.streams[0].session;
        let table = relation_size(session, sales::TABLE)?;
        Ok(WorkOutcome {
            done: WorkDone { table, sessions: streams, ..WorkDone::default() },
            rows: self.work.rows() * streams,
            phases: vec![(Phase::TableScan, self.span.0, self.span.1)],
            statistics: vec![("table scan rows gotten", self.work.rows() * streams)],
            ..WorkOutcome::default()
        })
    }

    fn verify(&mut self) -> Result<Vec<Check>, PostgresError> {
        let begin = clock::now();
        let found: Vec<Vec<i128>> = self
            .streams
            .iter()
            .map(|stream| std::iter::once(rows_of(stream)).chain(sums_of(stream)).collect())
            .collect();
        let alike = found.iter().all(|stream| *stream == found[0]);
        let mut all = found[0].clone();
        if let Some(condition) = self.query.condition.clone() {
            let others = format!("({condition}) is not true");
            let others = self.query.run(&mut self.streams[0].session, Some(&others))?;
            all.iter_mut().zip(others.iter()).for_each(|(sum, other)| *sum += hundredths(other));
        }
        let expected = self.query.expected(&self.work)?;
        let spent = clock::now().saturating_sub(begin);
        let shown =
            |totals: &[i128]| totals.iter().map(|it| format!("{}", it / 100)).collect::<Vec<_>>().join(", ");
        let sums = Check {
            name: "scan = rows as generated".to_string(),
            passed: alike && all == expected,
            detail: format!(
                "{} found by each of {} streams, {} expected with those that do not satisfy the condition",
                shown(&found[0]),
                found.len(),
                shown(&expected)
            ),
            elapsed_ns: spent.0,
        };
        let table = self.query.run(&mut self.streams[0].session, None)?;
        let count = table.first().and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok(vec![sums, counted("rows of SALES", count, self.work.rows(), Nanos(0))])
    }

    fn undo(&mut self) -> Result<(), PostgresError> {
        Ok(())
    }

    fn settings(&mut self) -> Result<Vec<InForce>, PostgresError> {
        self.streams[0].session.settings()
    }
}

fn rows_of(stream: &Stream<'_>) -> i128 {
    stream.found.first().map_or(0, |count| hundredths(count))
}

fn sums_of<'s>(stream: &'s Stream<'_>) -> impl Iterator<Item = i128> + 's {
    stream.found.iter().skip(1).map(|sum| hundredths(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added_in_hundredths() {
        assert_eq!([hundredths("12"), hundredths("-0.5"), hundredths("3.25")], [1200, -50, 325]);
        assert_eq!([in_hundredths(12, 0), in_hundredths(325, 2), in_hundredths(12, -1)], [1200, 325, 12_000]);
    }

    #[test]
    fn parameters_that_a_server_lacks_are_refused_with_the_cure() {
        let mut work = Work::of(&SCAN);
        assert!(Query::of(&work).is_ok());
        work.set("columns", "regular_qty,nothing").expect("a text");
        let error = Query::of(&work).err().expect("no such column").to_string();
        assert!(error.contains("the sales table has no column nothing; it has sales_date, "), "{error}");
        work.set("filled", "conventional").expect("a word");
        let error = Query::of(&work).err().expect("one way").to_string();
        assert_eq!(
            error,
            "filled=conventional: a server has one way to fill a table; leave it out, or give filled=direct"
        );
    }
}
