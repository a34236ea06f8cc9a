//! plumb itself, in this process: the index build of `create_index`.
//!
//! Each run opens the database anew, as every peer starts anew. The sort areas
//! of all servers together are the memory limit; scan, queue and write buffers
//! come on top and are in the peak of resident memory, as is this program.

use super::peer::{Ground, Peer, Run, Task, drop_caches};
use plumb_engine::drop::drop_named;
use plumb_engine::index::build::{BuildOutcome, create_index};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{Instance, Settings, check};
use plumb_events::clock::process_cpu;
use plumb_events::now;
use plumb_host::readings;
use plumb_units::Bytes;
use std::path::PathBuf;
use std::process::Command;

/// plumb as a peer of the others.
#[derive(Debug, Default)]
pub(super) struct Plumb;

impl Peer for Plumb {
    fn name(&self) -> &'static str {
        "plumb"
    }

    fn form(&self) -> &'static str {
        "table of row images in blocks of 8K; NUMBER, DATE, VARCHAR2; direct I/O"
    }

    fn memory(&self) -> &'static str {
        "`sort_area_size` = limit / degree for each sort server; all other settings default"
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String> {
        let (home, settings) = (home(ground), settings(ground, Bytes(64 * Bytes::M))?);
        let (keys, rows, seed) = (ground.keys, ground.rows, ground.seed);
        ground
            .stop
            .interruptible(|cancel| keys.database(home, settings, (rows, seed), 1, cancel).map(drop))?;
        Ok(format!("{}{}", env!("CARGO_PKG_VERSION"), revision()))
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        Task::at_each(&[("index", "create_index", "index")], limits)
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        let home = home(ground);
        drop_caches(&home)?;
        let settings = settings(ground, task.memory)?;
        ground.stop.interruptible(|cancel| {
            let instance = Instance::open(&home, settings, cancel)?;
            let built = build(ground, &instance);
            // A build that failed has left no index.
            let _ = drop_named(&instance, &ground.keys.index().to_uppercase());
            built
        })
    }
}

fn build(ground: &Ground, instance: &Instance) -> anyhow::Result<Run> {
    let spec = ground.keys.index_spec();
    anyhow::ensure!(readings::reset_peak(), "the peak of resident memory cannot be reset here");
    let start = readings::resident_memory()?.rss;
    let cpu_begin = process_cpu();
    let begin = now();
    let outcome = create_index(instance, &spec)?;
    let seconds = now().saturating_sub(begin).seconds();
    let cpu_seconds = process_cpu().saturating_sub(cpu_begin).seconds();
    let peak = readings::resident_memory()?.peak;
    let rows = outcome.index.entry_count;
    anyhow::ensure!(rows == ground.rows.0, "wrong result: {rows} entries of {}", ground.rows.0);
    check::check_table(instance, &spec.table)?;
    Ok(Run {
        seconds,
        sync_seconds: 0.0,
        cpu_seconds,
        memory_start: start,
        memory_peak: peak,
        output: index_bytes(instance, &outcome),
        note: format!("{} planned", outcome.sort.memory.iter().map(|(_, bytes)| *bytes).sum::<Bytes>()),
    })
}

fn index_bytes(instance: &Instance, outcome: &BuildOutcome) -> Bytes {
    let extents = outcome.index.leaves.iter().chain(&outcome.index.branches);
    let blocks: u64 = extents.map(|extent| u64::from(extent.used)).sum();
    Bytes(blocks * instance.tablespace(Purpose::Indx).block_size.bytes() as u64)
}

fn home(ground: &Ground) -> PathBuf {
    ground.directory.join("plumb")
}

fn settings(ground: &Ground, memory: Bytes) -> anyhow::Result<Settings> {
    let area = Bytes(memory.0 / ground.degree as u64).as_setting();
    let degree = ground.degree.to_string();
    crate::bench::settings(&[("sort_area_size", area.as_str()), ("parallel_degree", &degree)], &[])
}

/// The revision of the sources, where git knows it.
fn revision() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty=+"])
        .current_dir(crate::workspace())
        .output()
        .ok()
        .filter(|output| output.status.success());
    output.map_or(String::new(), |output| format!(" ({})", String::from_utf8_lossy(&output.stdout).trim()))
}
