//! SQLite: CREATE INDEX with worker threads.

use super::peer::{Ground, Peer, Reach, Run, Task};
use super::python::Script;
use plumb_units::Bytes;

/// SQLite from the Python package that carries the newest.
#[derive(Debug)]
pub(super) struct Sqlite(Script);

impl Sqlite {
    pub(super) fn new() -> Sqlite {
        Sqlite(Script::new("sqlite", include_str!("sqlite.py"), &["apsw==3.54.1.0"]))
    }
}

impl Peer for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn form(&self) -> &'static str {
        "table in a database file of 8K pages; INTEGER, NUMERIC, TEXT, dates as text"
    }

    fn memory(&self) -> &'static str {
        "`threads` = degree - 1 beside the first, `cache_size` = limit / degree, which bounds the sort of each"
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        self.0.load(ground)
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        let task = |memory: &Bytes| Task {
            action: "index",
            work: "CREATE INDEX",
            produces: "index",
            memory: *memory,
            reach: Reach::OwnLimit,
        };
        limits.iter().map(task).collect()
    }

    /// A journal that a failed run left is needed to roll it back: it stays
    /// until the next run has opened the database.
    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        self.0.run(ground, task, &[])
    }
}
