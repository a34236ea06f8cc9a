//! DuckDB: a sorted copy of the keys as a table and as Parquet, and its index.

use super::peer::{Ground, Peer, Reach, Run, Task};
use super::python::Script;
use plumb_units::Bytes;

const LEFTOVERS: &[&str] = &["sorted.db", "sorted.db.wal", "sorted.parquet", "temp"];

/// DuckDB from its Python package.
#[derive(Debug)]
pub(super) struct DuckDb(Script);

impl DuckDb {
    pub(super) fn new() -> DuckDb {
        DuckDb(Script::new("duckdb", include_str!("duckdb.py"), &["duckdb==2.0.0", "pyarrow==26.0.1"]))
    }
}

impl Peer for DuckDb {
    fn name(&self) -> &'static str {
        "DuckDB"
    }

    fn form(&self) -> &'static str {
        "native table; INTEGER, DATE, DECIMAL(38,2), VARCHAR"
    }

    fn memory(&self) -> &'static str {
        "`memory_limit` = limit, `threads` = degree, `temp_directory` beside the data, `preserve_insertion_order` off"
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        self.0.load(ground)
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        let kinds = [
            ("table", "CREATE TABLE AS ... ORDER BY", "sorted copy of keys and row ids, table"),
            ("parquet", "COPY (... ORDER BY) TO Parquet", "sorted copy of keys and row ids, Parquet"),
            ("index", "CREATE INDEX", "index (ART), in memory and in the file"),
        ];
        let tasks = kinds.iter().flat_map(|(action, work, produces)| {
            limits.iter().map(|memory| Task {
                action,
                work,
                produces,
                memory: *memory,
                reach: Reach::OwnLimit,
            })
        });
        tasks.collect()
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        self.0.run(ground, task, LEFTOVERS)
    }
}
