//! DataFusion: a sort from Parquet into Parquet within a bounded memory pool.

use super::peer::{Ground, Peer, Reach, Run, Task};
use super::python::Script;
use plumb_units::Bytes;

const LEFTOVERS: &[&str] = &["sorted.parquet", "temp"];

/// DataFusion from its Python package.
#[derive(Debug)]
pub(super) struct DataFusion(Script);

impl DataFusion {
    pub(super) fn new() -> DataFusion {
        let packages = &["datafusion==55.0.0", "pyarrow==26.0.1"];
        DataFusion(Script::new("datafusion", include_str!("datafusion.py"), packages))
    }
}

impl Peer for DataFusion {
    fn name(&self) -> &'static str {
        "DataFusion"
    }

    fn form(&self) -> &'static str {
        "Parquet file; int32, date32, decimal128(38,2), string, a column of row numbers"
    }

    fn memory(&self) -> &'static str {
        "fair spill pool = limit, `target_partitions` = degree, a sixteenth of the limit or 10 MB reserved for merges"
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        self.0.load(ground)
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        let task = |memory: &Bytes| Task {
            action: "sort",
            work: "COPY (... ORDER BY) TO Parquet",
            produces: "sorted copy of keys and row ids, Parquet",
            memory: *memory,
            reach: Reach::OwnLimit,
        };
        limits.iter().map(task).collect()
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        self.0.run(ground, task, LEFTOVERS)
    }
}
