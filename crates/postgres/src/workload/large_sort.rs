//! The large sort: the sales table, an index on it, and the verification of the index.
//!
//! Rows, seed and key are those of the embedded engine's large sort. The table is loaded once. A
//! run changes nothing but the index, so all arms use the same files.
//!
//! The phases come from lines of `trace_sort`, which the server writes when a sort begins its last
//! step. The lines cost nothing that can be measured: there are some dozens for a build.

use super::sales::{self, TABLE};
use super::{BaseSettings, Begun, ServerWork, WorkOutcome, WorkPlace, check_index, counted};
use crate::PostgresError;
use crate::evidence::{InForce, WorkDone};
use crate::session::ServerSession;
use plumb_events::{Cancel, Phase, clock};
use plumb_record::Check;
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::LARGE_SORT;
use plumb_workload::{Work, Workload};

const INDEX: &str = "sales_store_prod";
const BUILD: &str = "create index sales_store_prod on sales (store_id, prod_id)";
/// Bytes of all entries of a row in index and temporary files.
const ENTRY_BYTES: u64 = 60;
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

    fn writes(&self) -> bool {
        false
    }

    fn load(
        &self,
        session: &mut ServerSession<'_>,
        work: &Work,
        cancel: &Cancel,
    ) -> Result<(), PostgresError> {
        sales::load(session, work, cancel)
    }

    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError> {
        let mut session = place.session()?;
        session.run("the sort is traced", "set trace_sort = on; set client_min_messages = log")?;
        Ok(Box::new(Building { session, rows: place.work.rows(), begin: Nanos(0), end: Nanos(0) }))
    }
}

/// An index build with its session.
struct Building<'s> {
    session: ServerSession<'s>,
    rows: u64,
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
