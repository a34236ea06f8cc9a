//! plumb itself, in this process: the index build of `create_index`.
//!
//! Each run opens the database anew, as every peer starts anew. The sort areas
//! of all servers together are the memory limit; scan, queue and write buffers
//! come on top and are in the peak of resident memory, as is this program.

use super::child::Stop;
use super::peer::{Ground, Peer, Reach, Run, Task, drop_caches};
use anyhow::Context;
use plumb_engine::drop::drop_named;
use plumb_engine::index::build::{BuildOutcome, IndexSpec, create_index};
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::load;
use plumb_engine::{Instance, Layout, Settings, check};
use plumb_events::clock::process_cpu;
use plumb_events::now;
use plumb_io::receipt;
use plumb_units::Bytes;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

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
        let slack = 64 * Bytes::M;
        let (users, temp, indx) = ground.keys.row_bytes();
        let sized = |row_bytes: u64| Bytes(ground.rows.0 * row_bytes + slack);
        let sizes = InitialSizes { users: sized(users), temp: sized(temp), indx: sized(indx) };
        let home = home(ground);
        let settings = settings(ground, Bytes(64 * Bytes::M))?;
        let (keys, rows, seed) = (ground.keys, ground.rows, ground.seed);
        interruptible(&ground.stop, |cancel| {
            let instance = Instance::create(&Layout::in_one(home), settings, sizes, cancel)?;
            load(&instance, &keys.table().to_uppercase(), keys.source(rows, seed).as_ref())?;
            Ok(())
        })?;
        Ok(format!("{}{}", env!("CARGO_PKG_VERSION"), revision()))
    }

    fn tasks(&self, limits: &[Bytes]) -> Vec<Task> {
        let task = |memory: &Bytes| Task {
            action: "index",
            work: "create_index",
            produces: "index",
            memory: *memory,
            reach: Reach::OwnLimit,
        };
        limits.iter().map(task).collect()
    }

    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run> {
        let home = home(ground);
        drop_caches(&home)?;
        let settings = settings(ground, task.memory)?;
        interruptible(&ground.stop, |cancel| {
            let instance = Instance::open(&home, settings, cancel)?;
            let built = build(ground, &instance);
            // A build that failed has left no index.
            let _ = drop_named(&instance, &ground.keys.index().to_uppercase());
            built
        })
    }
}

/// Builds, measures and checks.
fn build(ground: &Ground, instance: &Instance) -> anyhow::Result<Run> {
    let spec = IndexSpec {
        name: ground.keys.index().to_uppercase(),
        table: ground.keys.table().to_uppercase(),
        columns: ground.keys.key().iter().map(|name| (name.to_uppercase(), false)).collect(),
    };
    anyhow::ensure!(receipt::reset_peak(), "the peak of resident memory cannot be reset here");
    let start = receipt::resident_memory()?.rss;
    let cpu_begin = process_cpu();
    let begin = now();
    let outcome = create_index(instance, &spec)?;
    let seconds = now().saturating_sub(begin).seconds();
    let cpu_seconds = process_cpu().saturating_sub(cpu_begin).seconds();
    let peak = receipt::resident_memory()?.peak;
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
    let mut settings = Settings::default();
    let area = Bytes(memory.0 / ground.degree as u64).as_setting();
    settings.set("sort_area_size", &area, "--memory")?;
    settings.set("parallel_degree", &ground.degree.to_string(), "--degree")?;
    Ok(settings)
}

/// Does work in a thread of its own while this one looks for a request to stop.
pub(in crate::bench) fn interruptible<T: Send>(
    stop: &Stop,
    work: impl FnOnce(Cancel) -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let cancel = Cancel::default();
    let given = cancel.clone();
    thread::scope(|scope| {
        let worker = scope.spawn(move || work(given));
        while !worker.is_finished() {
            if stop.requested() {
                cancel.request();
            }
            thread::sleep(Duration::from_millis(5));
        }
        worker.join().ok().context("the build panicked")?
    })
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
