//! DuckDB on a file of records: a table of a key and a payload, sorted by the key.

use super::child::Watch;
use super::libraries::{DUCKDB_LEFTOVERS, DUCKDB_PACKAGES};
use super::packages;
use super::peer::{Ground, KeyFacts, Run, drop_caches};
use super::python::{Script, remove};
use crate::bench::dataset::Keys;
use crate::bench::stop::Stop;
use plumb_units::{Bytes, RowCount};
use serde_json::{Value, json};
use std::path::Path;

/// DuckDB with the records loaded.
#[derive(Debug)]
pub(in crate::bench) struct DuckRecords {
    script: Script,
    ground: Ground,
    /// The part of a job that is the same for all.
    job: Value,
    version: String,
}

impl DuckRecords {
    /// What it can sort into.
    pub(in crate::bench) const ACTIONS: [&str; 2] = ["table", "parquet"];

    /// Fetches DuckDB and loads the records of a file; everything goes into `directory`.
    pub(in crate::bench) fn load(
        directory: &Path,
        input: &Path,
        (records, record_bytes, key_bytes): (u64, usize, usize),
        (degree, stop): (usize, &Stop),
    ) -> anyhow::Result<DuckRecords> {
        let ground = Ground {
            directory: directory.to_path_buf(),
            packages: packages::directory()?,
            stop: stop.clone(),
            keys: Keys::Numbers,
            rows: RowCount(records),
            seed: 0,
            degree,
            csv: input.to_path_buf(),
            facts: KeyFacts::default(),
        };
        let mut script = Script::new("records", include_str!("records.py"), DUCKDB_PACKAGES);
        script.fetch(&ground)?;
        let job = json!({
            "directory": ground.room("duckdb")?, "degree": degree, "input": input, "records": records,
            "record_bytes": record_bytes, "key_bytes": key_bytes,
            "data": {"keys": "numbers", "table": "records", "index": "", "key": ["key"], "columns": []},
        });
        let mut loaded = DuckRecords { script, ground, job, version: String::new() };
        loaded.version = loaded.call("load", Bytes(0))?.0;
        Ok(loaded)
    }

    pub(in crate::bench) fn version(&self) -> &str {
        &self.version
    }

    /// Sorts once, cold, checks the result and removes it.
    pub(in crate::bench) fn sort(&self, action: &str, memory: Bytes) -> anyhow::Result<Run> {
        let room = self.ground.room("duckdb")?;
        remove(&room, DUCKDB_LEFTOVERS);
        drop_caches(&room)?;
        let sorted = self.call(action, memory);
        remove(&room, DUCKDB_LEFTOVERS);
        Ok(sorted?.1)
    }

    fn call(&self, action: &str, memory: Bytes) -> anyhow::Result<(String, Run)> {
        let mut job = self.job.clone();
        job["action"] = json!(action);
        job["memory"] = json!(memory.0);
        let (answer, _) = self.script.call(&self.ground, &job, Watch::Nobody)?;
        Ok((answer.version.clone(), answer.into_run()))
    }
}
