//! SLOB: random reads and updates of single blocks by index.
//!
//! Keys, operations and their order are those of the engine's SLOB, so one `slob.conf` means the
//! same on both. Each schema is a table with one row a block and an index on its key. A session
//! selects the rows of a work unit by one statement, or updates them by one statement, which is a
//! transaction. The work begins when all sessions are connected.
//!
//! Rows. A row of the engine fills its block. Here an update writes a new version, and a full
//! block would send each one to another block with an entry in the index. So a row has a third of
//! a block, `fillfactor` keeps the rest free, and the versions of a row share its block. All rows
//! of an update get the same texts.
//!
//! Texts are `bytea`, because drawn ones contain bytes that no text of the server may have.
//!
//! The buffers start as the engine's cache does: with all blocks if they fit, otherwise empty.

use super::{
    BaseSettings, Begun, ServerWork, WorkOutcome, WorkPlace, buffer_gets, check_index, counted, in_threads,
    relation_size,
};
use crate::PostgresError;
use crate::copy::write_rows;
use crate::evidence::WorkDone;
use crate::session::{InForce, ServerSession};
use plumb_events::{Cancel, LatencyHistogram, Phase, clock, locked};
use plumb_record::{Check, Response};
use plumb_types::{RowBatch, RowSource, Schema, SourceError};
use plumb_units::{Bytes, Nanos};
use plumb_workload::slob::{
    Arrivals, BLOCK_BYTES, Conflict, Kind, Operation, Operations, Rows, SLOB, SlobSpec, Texts, keys,
};
use plumb_workload::{Work, Workload};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

const DURING: &str = "rows are read and updated";
/// Largest bytes of a row's values: a third of a block.
const ROW_BYTES_MAX: usize = 2_600;
/// Rows of a batch of the load.
const BATCH_ROWS: usize = 64;
/// Seed of the scan table's rows, different from every schema's.
const SCAN_SEED: u64 = 1 << 40;
/// Bytes on disk of a row: its block, and its part of the index and of the log.
const BLOCK_ON_DISK: u64 = BLOCK_BYTES + 512;

pub(super) struct Slob;

impl ServerWork for Slob {
    fn workload(&self) -> &'static Workload {
        &SLOB
    }

    /// The cache is as small as the engine's. Ranges are read by index, unless a study asks for
    /// another plan.
    fn settings(&self) -> BaseSettings {
        &[
            ("shared_buffers", "16MB"),
            ("max_wal_size", "4GB"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
        ]
    }

    fn room(&self, work: &Work) -> Bytes {
        Bytes(work.rows().saturating_mul(BLOCK_ON_DISK).saturating_add(Bytes::G))
    }

    fn table(&self) -> &'static str {
        "user1_cf1"
    }

    fn writes(&self) -> bool {
        true
    }

    fn load(
        &self,
        session: &mut ServerSession<'_>,
        work: &Work,
        cancel: &Cancel,
    ) -> Result<(), PostgresError> {
        let spec = spec(work)?;
        for schema in 0..spec.schemas {
            let (table, index) = (SlobSpec::table(schema), SlobSpec::index(schema));
            fill(session, &table, &SlobRows::new(&spec, keys(&spec, schema), schema << 20), cancel)?;
            session.run("the index is created", &format!("create index {index} on {table} (custid)"))?;
            session.run("the table is vacuumed", &format!("vacuum (freeze, analyze) {table}"))?;
            let blocks = relation_size(session, &table)?.0 / BLOCK_BYTES;
            if blocks != spec.scale {
                return Err(PostgresError::Unfit(format!(
                    "{} rows of {table} lie in {blocks} blocks, expected one a block; use a server with blocks of 8K",
                    spec.scale
                )));
            }
        }
        if spec.scan_pct > 0 {
            let keys = (1..=spec.scan_blocks).collect();
            fill(session, SlobSpec::SCAN_TABLE, &SlobRows::new(&spec, keys, SCAN_SEED), cancel)?;
        }
        Ok(())
    }

    /// Returns the query of the first work unit.
    fn query(&self, work: &Work) -> Result<Option<String>, PostgresError> {
        let (table, last) = (SlobSpec::table(0), spec(work)?.work_unit - 1);
        Ok(Some(format!("select count(c2) from {table} where custid between 1 and {last}")))
    }

    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
        let spec = spec(place.work)?;
        let mut beside = place.session()?;
        warm(&mut beside, &spec)?;
        let client = |number| SlobClient::connect(place, &spec, number);
        let clients = (0..spec.sessions).map(client).collect::<Result<_, _>>()?;
        beside.flush_statistics()?;
        Ok(Box::new(Running {
            gets: buffer_gets(&mut beside)?,
            beside,
            clients,
            spec,
            span: (Nanos(0), Nanos(0)),
        }))
    }
}

fn spec(work: &Work) -> Result<SlobSpec, PostgresError> {
    SlobSpec::of(work, BLOCK_BYTES).map_err(|Conflict { first, second, why }| {
        PostgresError::Unfit(format!("{first} and {second}: {why}"))
    })
}

/// Maker of a table's rows, in the order of keys.
struct SlobRows {
    rows: Rows,
    left: Mutex<(std::vec::IntoIter<u64>, Texts)>,
}

impl SlobRows {
    fn new(spec: &SlobSpec, keys: Vec<u64>, seed: u64) -> SlobRows {
        let rows = Rows::new(ROW_BYTES_MAX);
        let rows = if spec.obfuscate { rows } else { rows.repeating() };
        SlobRows { rows, left: Mutex::new((keys.into_iter(), Texts::new(spec.seed ^ seed))) }
    }
}

impl RowSource for SlobRows {
    fn schema(&self) -> &Schema {
        self.rows.schema()
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(locked(&self.left).0.len() as u64)
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        let mut left = locked(&self.left);
        let (keys, texts) = &mut *left;
        keys.take(BATCH_ROWS).for_each(|key| self.rows.push(texts, key, batch));
        Ok(!batch.is_empty())
    }
}

/// Creates and fills a table, in one transaction, so that its rows need no log.
fn fill(
    session: &mut ServerSession<'_>,
    table: &str,
    rows: &SlobRows,
    cancel: &Cancel,
) -> Result<(), PostgresError> {
    let texts: Vec<String> =
        rows.schema().columns[1..].iter().map(|column| column.name.to_lowercase()).collect();
    let (balance, texts) = texts.split_last().map_or(("balance", [].as_slice()), |(last, rest)| (last, rest));
    let columns: String = texts.iter().map(|name| format!(", {name} bytea not null")).collect();
    let plain: Vec<String> = texts.iter().map(|name| format!("alter {name} set storage plain")).collect();
    session.run(
        "the table is created",
        &format!(
            "begin; create table {table} (custid integer not null{columns}, {balance} text not null) with (fillfactor = \
             10); alter table {table} {}",
            plain.join(", ")
        ),
    )?;
    session.copy(&format!("copy {table} from stdin (format binary, freeze)"), |writer, failed| {
        write_rows(rows, writer, cancel, failed)
    })?;
    session.run("the table is loaded", "commit")
}

/// Reads every block into the buffers, if they hold them all with a tenth to spare.
fn warm(session: &mut ServerSession<'_>, spec: &SlobSpec) -> Result<(), PostgresError> {
    const WARM: &str = "the buffers are filled";
    let buffers: i64 =
        session.value(WARM, "select setting::bigint from pg_settings where name = 'shared_buffers'")?;
    let blocks = spec.schemas * (spec.scale + spec.scale / 100 + 4);
    let available = "select exists (select from pg_available_extensions where name = 'pg_prewarm')";
    if blocks + blocks / 10 > u64::try_from(buffers).unwrap_or(0) || !session.value(WARM, available)? {
        return Ok(());
    }
    session.run(WARM, "create extension if not exists pg_prewarm")?;
    let names = (0..spec.schemas).flat_map(|schema| [SlobSpec::table(schema), SlobSpec::index(schema)]);
    names.into_iter().try_for_each(|name| session.run(WARM, &format!("select pg_prewarm('{name}')")))
}

/// Statements on the table of a schema.
struct OfSchema {
    select: Statement,
    update: Statement,
}

/// A session with its operations and its counts.
struct SlobClient<'s> {
    session: ServerSession<'s>,
    statements: BTreeMap<u64, OfSchema>,
    scan: Option<Statement>,
    rows: Rows,
    texts: Texts,
    done: SlobCounts,
}

#[derive(Debug, Clone, Default)]
struct SlobCounts {
    operations: u64,
    updates: u64,
    /// Operations that found another number of rows.
    wrong: u64,
    /// Operations that were due and not begun at the end.
    behind: u64,
    responses: BTreeMap<&'static str, LatencyHistogram>,
}

/// Number of columns that an update replaces.
fn replaced(spec: &SlobSpec) -> Vec<String> {
    if spec.heavy {
        (2..=20).map(|number| format!("c{number}")).collect()
    } else {
        vec!["c2".into(), "c20".into()]
    }
}

impl<'s> SlobClient<'s> {
    fn connect(place: &WorkPlace<'s>, spec: &SlobSpec, number: u64) -> Result<SlobClient<'s>, PostgresError> {
        let mut session = place.session()?;
        let own = spec.schema_of(number);
        let hot = (spec.hot_schema_frequency > 0).then_some(0);
        let mut statements = BTreeMap::new();
        for schema in std::iter::once(own).chain(hot) {
            let (table, keys) = (SlobSpec::table(schema), "where custid between $1 and $2");
            let texts = replaced(spec);
            let set = texts.iter().enumerate().map(|(at, name)| format!("{name} = ${}, ", at + 3));
            // Each row of a pair gets what the other one loses; the last row may have no partner.
            let change = "case when (custid - $1) % 2 = 1 then -(1 + (custid - $1) / 2 % 7) \
                          when custid < $2 then 1 + (custid - $1) / 2 % 7 else 0 end";
            let update = format!(
                "update {table} set {}balance = lpad((balance::bigint + {change})::text, 18, '0') {keys}",
                set.collect::<String>()
            );
            statements.insert(
                schema,
                OfSchema {
                    select: session.prepare(DURING, &format!("select count(c2) from {table} {keys}"))?,
                    update: session.prepare(DURING, &update)?,
                },
            );
        }
        let scan = format!("select count(c2) from {}", SlobSpec::SCAN_TABLE);
        let scan = (spec.scan_pct > 0).then(|| session.prepare(DURING, &scan)).transpose()?;
        Ok(SlobClient {
            session,
            statements,
            scan,
            rows: SlobRows::new(spec, Vec::new(), 0).rows,
            texts: Texts::new(spec.seed ^ (number + 1) << 44),
            done: SlobCounts::default(),
        })
    }

    /// Performs operations until the time is over or the loops are done.
    fn run(&mut self, spec: &SlobSpec, number: u64, begin: Nanos) -> Result<(), PostgresError> {
        let mut operations = Operations::new(spec, number);
        let end = if spec.work_loop == 0 { begin + spec.run_time } else { Nanos(u64::MAX) };
        let mut arrivals = Arrivals::new(spec, number, begin);
        while clock::now() < end && (spec.work_loop == 0 || self.done.operations < spec.work_loop) {
            let drawn = operations.draw();
            let arrival = arrivals.as_mut().map(Arrivals::draw);
            let due = arrival.or_else(|| drawn.think.map(|pause| clock::now() + pause));
            if let Some(due) = due {
                thread::sleep(Duration::from_nanos(due.min(end).saturating_sub(clock::now()).0));
            }
            let started = clock::now();
            if started >= end {
                break;
            }
            let kind = self.perform(spec, &drawn)?;
            let spent = clock::now().saturating_sub(arrival.unwrap_or(started));
            self.done.responses.entry(kind).or_default().add(spent);
            self.done.operations += 1;
        }
        let last = clock::now().min(end);
        self.done.behind = arrivals.map_or(0, |mut arrivals| arrivals.due_before(last));
        Ok(())
    }

    fn perform(&mut self, spec: &SlobSpec, operation: &Operation) -> Result<&'static str, PostgresError> {
        let key = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
        let (from, to) = (key(operation.key - spec.work_unit + 1), key(operation.key - 1));
        let count =
            |session: &mut ServerSession<'_>, statement: &Statement, values: &[&(dyn ToSql + Sync)]| {
                let rows = session.prepared_rows(DURING, statement, values)?;
                let count: i64 = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(0);
                Ok::<u64, PostgresError>(u64::try_from(count).unwrap_or(0))
            };
        let ours = self.statements.get(&operation.schema);
        let (kind, found, expected) = match (operation.kind, ours, &self.scan) {
            (Kind::Scan, _, Some(scan)) => ("scan", count(&mut self.session, scan, &[])?, spec.scan_blocks),
            (Kind::Update, Some(ours), _) => {
                let texts: Vec<Vec<u8>> = (0..replaced(spec).len())
                    .map(|_| self.rows.text(&mut self.texts).as_bytes().to_vec())
                    .collect();
                let mut values: Vec<&(dyn ToSql + Sync)> = vec![&from, &to];
                values.extend(texts.iter().map(|text| text as &(dyn ToSql + Sync)));
                self.done.updates += 1;
                ("update", self.session.execute(DURING, &ours.update, &values)?, spec.work_unit - 1)
            }
            (_, Some(ours), _) => {
                ("select", count(&mut self.session, &ours.select, &[&from, &to])?, spec.work_unit - 1)
            }
            (_, None, _) => ("select", 0, 1),
        };
        self.done.wrong += u64::from(found != expected);
        Ok(kind)
    }
}

struct Running<'s> {
    beside: ServerSession<'s>,
    clients: Vec<SlobClient<'s>>,
    spec: SlobSpec,
    /// Blocks found in the buffers and read, before the work.
    gets: [u64; 2],
    span: (Nanos, Nanos),
}

impl Begun for Running<'_> {
    fn work(&mut self) -> Result<(), PostgresError> {
        let (spec, begin) = (&self.spec, clock::now());
        self.span.0 = begin;
        let ended = in_threads(&mut self.clients, |client, number| client.run(spec, number, begin));
        self.span.1 = clock::now();
        ended
    }

    fn outcome(&mut self) -> Result<WorkOutcome, PostgresError> {
        let mut all = SlobCounts::default();
        let mut sessions: Vec<_> = self.clients.iter_mut().map(|client| &mut client.session).collect();
        ServerSession::flush_all(&mut sessions)?;
        for client in &self.clients {
            all.operations += client.done.operations;
            all.updates += client.done.updates;
            for (kind, latency) in &client.done.responses {
                all.responses.entry(kind).or_default().merge(latency);
            }
        }
        let later = buffer_gets(&mut self.beside)?;
        let [hits, reads] = [0, 1].map(|at| later[at].saturating_sub(self.gets[at]));
        let response = |(kind, latency): (&'static str, _)| Response {
            operation: kind.to_string(),
            latency,
            elapsed_ns: None,
        };
        Ok(WorkOutcome {
            done: WorkDone {
                table: relation_size(&mut self.beside, &SlobSpec::table(0))?,
                commits: all.updates,
                sessions: self.spec.sessions,
                ..WorkDone::default()
            },
            rows: all.operations * (self.spec.work_unit - 1),
            phases: vec![(Phase::RandomIo, self.span.0, self.span.1)],
            statistics: vec![
                ("execute count", all.operations),
                ("session logical reads", hits + reads),
                ("buffer cache hits", hits),
                ("physical reads", reads),
            ],
            responses: all.responses.into_iter().map(response).collect(),
            ..WorkOutcome::default()
        })
    }

    /// Checks rows, index and sum of balances of each table.
    fn verify(&mut self) -> Result<Vec<Check>, PostgresError> {
        let begin = clock::now();
        let wrong: u64 = self.clients.iter().map(|client| client.done.wrong).sum();
        let (mut rows, mut moved, mut indexes) = (0, 0, Vec::new());
        let sum = Rows::balance_sum(self.spec.scale).to_string();
        for schema in 0..self.spec.schemas {
            let table = SlobSpec::table(schema);
            let count: i64 =
                self.beside.value("the rows are counted", &format!("select count(*) from {table}"))?;
            rows += u64::try_from(count).unwrap_or(0);
            let statement = format!("select sum(balance::numeric)::text from {table}");
            let found: String = self.beside.value("the balances are added up", &statement)?;
            moved += u64::from(found != sum);
            indexes.extend(check_index(&mut self.beside, &SlobSpec::index(schema))?);
        }
        let spent = clock::now().saturating_sub(begin);
        let mut checks = vec![
            counted("all rows are there", rows, self.spec.schemas * self.spec.scale, spent),
            counted("operations with another number of rows", wrong, 0, Nanos(0)),
            counted("tables whose balances have another sum", moved, 0, Nanos(0)),
        ];
        checks.extend(indexes);
        Ok(checks)
    }

    /// Each run has a data directory of its own, which is removed.
    fn undo(&mut self) -> Result<(), PostgresError> {
        Ok(())
    }

    fn settings(&mut self) -> Result<Vec<InForce>, PostgresError> {
        self.clients[0].session.settings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::table_columns;

    #[test]
    fn rows_of_the_engine_leave_room_for_two_more_versions() {
        let mut work = Work::of(&SLOB);
        work.set("scale", "200").expect("blocks");
        let spec = spec(&work).expect("consistent");
        let source = SlobRows::new(&spec, keys(&spec, 0), 0);
        assert_eq!(source.row_count_hint(), Some(200));
        let (mut batch, mut rows, mut most) = (RowBatch::new(), 0, 0);
        while source.next_batch(&mut batch).expect("rows") {
            rows += batch.len();
            most = batch.iter().map(<[u8]>::len).fold(most, usize::max);
        }
        assert_eq!(rows, 200);
        // A tuple's header, a pointer to it, and a length of four bytes for each value.
        assert!(3 * (most + 28 + 22 * 4) < BLOCK_BYTES as usize && most > 2_048, "{most}");
        assert!(table_columns(source.schema()).starts_with("custid integer not null, c2 text"));
        assert_eq!([replaced(&spec).len(), replaced(&SlobSpec { heavy: true, ..spec }).len()], [2, 19]);
        work.set("work-unit", "200").expect("a count");
        let error = super::spec(&work).expect_err("too large").to_string();
        assert!(error.starts_with("scale=200 blocks and work-unit=200: "), "{error}");
    }
}
