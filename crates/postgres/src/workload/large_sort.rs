//! The large sort: the sales table, an index on it, and the verification of the index.
//!
//! Rows, seed and key are those of the embedded engine's large sort. The table is loaded once. A
//! run changes nothing but the index, so all arms use the same files.
//!
//! Blocks of temporary files come from `pg_stat_statements`, because `pg_stat_io` counts none of
//! them. The extension is made with the table on plumb's own servers that have it.
//!
//! The phases come from lines of `trace_sort`, which the server writes when a sort begins its last
//! step. The lines cost nothing that can be measured: there are some dozens for a build.

use super::sales::{self, TABLE};
use super::{BaseSettings, Begun, ServerWork, WorkOutcome, WorkPlace, check_index, counted};
use crate::PostgresError;
use crate::evidence::WorkDone;
use crate::session::{InForce, ServerSession};
use plumb_events::{Cancel, Phase, clock};
use plumb_record::Check;
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::LARGE_SORT;
use plumb_workload::{Work, Workload};

const INDEX: &str = "sales_store_prod";
const BUILD: &str = "create index sales_store_prod on sales (store_id, prod_id)";
/// Bytes of all entries of a row in index and temporary files.
const ENTRY_BYTES: u64 = 60;
/// Extension whose counters see the temporary files of an index build.
const STATEMENTS: &str = "pg_stat_statements";
/// Counts of temporary blocks, with their columns and the factor to the count's unit.
const TEMPORARY: [(&str, &str, u64); 4] = [
    ("physical reads direct temporary tablespace", "temp_blks_read", 1),
    ("physical writes direct temporary tablespace", "temp_blks_written", 1),
    ("temporary block read time (usec)", "temp_blk_read_time", 1000),
    ("temporary block write time (usec)", "temp_blk_write_time", 1000),
];
/// The line with which the last step of a sort begins.
const LAST_STEP: &str = "performsort";

pub(super) struct LargeSort;

impl ServerWork for LargeSort {
    fn workload(&self) -> &'static Workload {
        &LARGE_SORT
    }

    /// An index build is not logged, as a build by direct path is not.
    fn settings(&self) -> BaseSettings {
        &[("wal_level", "minimal"), ("max_wal_senders", "0"), ("max_wal_size", "4GB")]
    }

    fn room(&self, work: &Work) -> Bytes {
        Bytes(work.rows().saturating_mul(sales::ROW_BYTES + ENTRY_BYTES).saturating_add(Bytes::G))
    }

    fn table(&self) -> &'static str {
        TABLE
    }

    fn preloads(&self) -> Option<&'static str> {
        Some(STATEMENTS)
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
        if session.own_server().is_ok_and(|server| server.installation.has_extension(STATEMENTS)) {
            session.run("the extension is made", &format!("create extension {STATEMENTS}"))?;
        }
        sales::load(session, work, cancel)
    }

    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
        let mut session = place.session()?;
        let made = format!("select exists (select from pg_extension where extname = '{STATEMENTS}')");
        let counted = session.value("the extension is looked for", &made)?;
        if counted {
            session.run("counters start at 0", "select pg_stat_statements_reset()")?;
        }
        session.run("the sort is traced", "set trace_sort = on; set client_min_messages = log")?;
        let rows = place.work.rows();
        Ok(Box::new(Building { session, rows, counted, begin: Nanos(0), end: Nanos(0) }))
    }
}

/// An index build with its session.
struct Building<'s> {
    session: ServerSession<'s>,
    rows: u64,
    /// True if the server counts the build's temporary blocks.
    counted: bool,
    begin: Nanos,
    end: Nanos,
}

impl Begun for Building<'_> {
    fn work(&mut self) -> Result<(), PostgresError> {
        self.begin = clock::now();
        self.session.run("the index is built", BUILD)?;
        self.end = clock::now();
        Ok(())
    }

    fn outcome(&mut self) -> Result<WorkOutcome, PostgresError> {
        let lines = self.session.take_lines();
        let last_step = lines.iter().find(|(_, line)| line.contains(LAST_STEP)).map(|(at, _)| *at);
        let between = last_step.unwrap_or(self.end).clamp(self.begin, self.end);
        let size = |of: &str| format!("select pg_table_size('{of}')");
        let table: i64 = self.session.value("the table is measured", &size(TABLE))?;
        let index: i64 = self.session.value("the index is measured", &size(INDEX))?;
        let bytes = |size: i64| Bytes(u64::try_from(size).unwrap_or(0));
        Ok(WorkOutcome {
            done: WorkDone { table: bytes(table), index: bytes(index), sessions: 1, ..WorkDone::default() },
            rows: self.rows,
            phases: vec![
                (Phase::RunGeneration, self.begin, between),
                (Phase::MergeAndIndex, between, self.end),
            ],
            statistics: self.temporary()?,
            sort_lines: lines.into_iter().map(|(_, line)| line).collect(),
            ..WorkOutcome::default()
        })
    }

    fn verify(&mut self) -> Result<Vec<Check>, PostgresError> {
        self.session.run(
            "the checks are prepared",
            "set client_min_messages = warning; set max_parallel_workers_per_gather = 0",
        )?;
        let begin = clock::now();
        let found: i64 =
            self.session.value("the rows are counted", &format!("select count(*) from {TABLE}"))?;
        let found = u64::try_from(found).unwrap_or(0);
        let mut checks = vec![counted("rows of SALES", found, self.rows, clock::now().saturating_sub(begin))];
        checks.push(self.verify_index()?);
        Ok(checks)
    }

    fn undo(&mut self) -> Result<(), PostgresError> {
        self.session.run("the index is dropped", &format!("drop index {INDEX}; checkpoint"))
    }

    fn settings(&mut self) -> Result<Vec<InForce>, PostgresError> {
        self.session.settings()
    }
}

impl Building<'_> {
    /// Returns the temporary blocks of the build and its workers, with their time. Version 14 has
    /// no time of them.
    fn temporary(&mut self) -> Result<Vec<(&'static str, u64)>, PostgresError> {
        if !self.counted {
            return Ok(Vec::new());
        }
        let counts: Vec<String> = TEMPORARY
            .iter()
            .map(|(_, column, scale)| {
                format!("coalesce((to_jsonb(found) ->> '{column}')::float8 * {scale}, -1)::bigint")
            })
            .collect();
        let statement = format!(
            "select {} from {STATEMENTS} as found where query like 'create index {INDEX} %'",
            counts.join(", ")
        );
        let rows = self.session.rows("the counters are read", &statement, &[])?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let count = |at: usize| row.try_get::<_, i64>(at).ok().and_then(|count| u64::try_from(count).ok());
        let named = TEMPORARY.iter().enumerate();
        Ok(named.filter_map(|(at, (name, ..))| Some((*name, count(at)?))).collect())
    }

    /// Compares the index with the table. Without amcheck, entries are counted through the index.
    fn verify_index(&mut self) -> Result<Check, PostgresError> {
        let begin = clock::now();
        let name = "index SALES(STORE_ID, PROD_ID)".to_string();
        if let Some(check) = check_index(&mut self.session, INDEX)? {
            return Ok(Check { name, ..check });
        }
        let count = "set enable_seqscan = off; set enable_bitmapscan = off";
        self.session.run("the index is checked", count)?;
        let ordered = format!(
            "select count(*) from (select (store_id, prod_id) < lag((store_id, prod_id)) over () as falls from \
             (select store_id, prod_id from {TABLE} order by store_id, prod_id) as entries) as pairs where falls is not true"
        );
        let found: i64 = self.session.value("the index is checked", &ordered)?;
        let found = u64::try_from(found).unwrap_or(0);
        Ok(counted(&name, found, self.rows, clock::now().saturating_sub(begin)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn every_version_says_when_a_sort_begins_and_when_its_last_step_does() {
        for version in recorded::VERSIONS {
            let said = recorded::text(version, "sort.txt");
            let count = |part: &str| said.lines().filter(|line| line.contains(part)).count();
            // The leader, two workers and the leader's merge; then one build without workers.
            assert!(count("begin index sort") >= 4, "{version}: {said}");
            assert!(count(LAST_STEP) >= 2, "{version}: {said}");
        }
    }
}
