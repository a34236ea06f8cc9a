//! Peers that are libraries: DuckDB, SQLite, DataFusion, each a row of a table and a script.

use super::peer::{Ground, Peer, Run, Task, Work};
use super::python::Script;
use plumb_units::Bytes;

/// What DuckDB leaves of a sort.
pub(super) const DUCKDB_LEFTOVERS: &[&str] = &["sorted.db", "sorted.db.wal", "sorted.parquet", "temp"];
/// DuckDB from its Python package.
pub(super) const DUCKDB_PACKAGES: &[&str] = &["duckdb==2.0.0", "pyarrow==26.0.1"];

/// A library and what it does.
#[derive(Debug)]
pub(super) struct Library {
    name: &'static str,
    form: &'static str,
    memory: &'static str,
    works: &'static [Work],
    /// Files of a run that are removed before and after it.
    leftovers: &'static [&'static str],
    script: Script,
}

impl Library {
    /// A sorted copy of the keys as a table and as Parquet, and its index.
    pub(super) fn duckdb() -> Library {
        Library {
            name: "DuckDB",
            form: "native table; INTEGER, DATE, DECIMAL(38,2), VARCHAR",
            memory: "`memory_limit` = limit, `threads` = degree, `temp_directory` beside the data, `preserve_insertion_order` off",
            works: &[
                ("table", "CREATE TABLE AS ... ORDER BY", "sorted copy of keys and row ids, table"),
                ("parquet", "COPY (... ORDER BY) TO Parquet", "sorted copy of keys and row ids, Parquet"),
                ("index", "CREATE INDEX", "index (ART), in memory and in the file"),
            ],
            leftovers: DUCKDB_LEFTOVERS,
            script: Script::new("duckdb", include_str!("duckdb.py"), DUCKDB_PACKAGES),
        }
    }

    /// CREATE INDEX with worker threads, by the Python package that carries the newest SQLite.
    pub(super) fn sqlite() -> Library {
        Library {
            name: "SQLite",
            form: "table in a database file of 8K pages; INTEGER, NUMERIC, TEXT, dates as text",
            memory: "`threads` = degree - 1 beside the first, `cache_size` = limit / degree, which bounds the sort of each",
            works: &[("index", "CREATE INDEX", "index")],
            // The next run needs the journal of a failed one to roll it back.
            leftovers: &[],
            script: Script::new("sqlite", include_str!("sqlite.py"), &["apsw==3.54.1.0"]),
        }
    }

    /// A sort from Parquet into Parquet within a bounded memory pool.
    pub(super) fn datafusion() -> Library {
        let packages = &["datafusion==55.0.0", "pyarrow==26.0.1"];
        Library {
            name: "DataFusion",
            form: "Parquet file; int32, date32, decimal128(38,2), string, a column of row numbers",
            memory: "fair spill pool = limit, `target_partitions` = degree, a sixteenth of the limit or 10 MB reserved for merges",
            works: &[("sort", "COPY (... ORDER BY) TO Parquet", "sorted copy of keys and row ids, Parquet")],
            leftovers: &["sorted.parquet", "temp"],
            script: Script::new("datafusion", include_str!("datafusion.py"), packages),
        }
    }
}

impl Peer for Library {
    fn name(&self) -> &'static str {
        self.name
    }

    fn form(&self) -> &'static str {
        self.form
    }

    fn memory(&self) -> &'static str {
        self.memory
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        self.script.load(ground)
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        Task::at_each(self.works, limits)
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        self.script.run(ground, task, self.leftovers)
    }
}
