//! Compares commits on disks whose flushes wait a known time, and finds the wait.
//!
//! ```text
//! server ─ fdatasync of its log ─> ext4 ─> /dev/loopN ─ flush ─> a file whose syncs wait
//! ```
//!
//! The server is the same in all arms and knows nothing of the wait. One session commits, so that
//! each commit waits for one flush. The truth is the mean wait, measured where it is made, times
//! the syncs of the log that the server counts. The factor is `path`, as for a user with several
//! disks.
//!
//! Rejected: a limit of requests by a control group, whose time for a commit is no constant.

use super::PostgresBench;
use crate::power::place::{Format, Loop, On, OnDevice};
use crate::slow_disk::{SlowDisk, SlowSpec, Waited, WaitsAt};
use crate::studies::laboratory::Laboratory;
use anyhow::Context;
use plumb_postgres::installation::Installation;
use plumb_study::analysis::result::{Analysis, Effect};
use plumb_study::bundle::RunRecord;
use plumb_units::{Nanos, median};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Waits of a flush; the first disk is the reference.
const WAITS: [Nanos; 3] = [Nanos(0), Nanos(200_000), Nanos(1_000_000)];
/// More than a server asks for; blocks that were never written take no space.
const IMAGE_BYTES: u64 = 6 << 30;
/// Statistic that counts the syncs of the log.
const SYNCS: &str = "redo synch writes";

/// A mounted file system on a slow disk. Fields are dropped in this order.
struct Disk {
    mounted: OnDevice,
    _device: Loop,
    slow: SlowDisk,
}

impl Disk {
    fn make(room: &Path, number: usize) -> anyhow::Result<Disk> {
        let name = format!("slow-{number}");
        let spec = SlowSpec { name: &name, bytes: IMAGE_BYTES, waits: WaitsAt::Syncs };
        let slow = SlowDisk::mount(room, &spec)?;
        let device = Loop::attach(&slow.file())?;
        let directory = room.join(format!("disk-{number}"));
        std::fs::create_dir(&directory)?;
        let mounted = OnDevice::make(On::Ext4, &device, directory, Format::Make)?;
        Ok(Disk { mounted, _device: device, slow })
    }

    fn directory(&self) -> &PathBuf {
        &self.mounted.mount
    }
}

pub(super) fn run(
    options: &PostgresBench,
    server: &Installation,
    laboratory: &Laboratory,
) -> anyhow::Result<()> {
    let made = (0..WAITS.len()).map(|number| Disk::make(laboratory.room(), number));
    let disks = made.collect::<anyhow::Result<Vec<_>>>()?;
    let text = text(options, server, &disks);
    disks.iter().zip(WAITS).for_each(|(disk, wait)| disk.slow.wait.start(wait));
    let (analysis, runs) = laboratory.study_with(&text, options.seed, "study of slow disks")?;
    let waited: Vec<Waited> = disks.iter().map(|disk| disk.slow.wait.end()).collect();
    println!("{}", show(&analysis, &runs, &waited)?);
    Ok(())
}

fn text(options: &PostgresBench, server: &Installation, disks: &[Disk]) -> String {
    let level = |disk: &Disk| format!("\"{}\"", disk.directory().display());
    let levels: Vec<String> = disks.iter().map(level).collect();
    let mut text = format!(
        r#"target = "postgres"
name = "slow-disks"
title = "Commits on disks whose flushes wait"
question = "Is a wait of the storage found, with its size?"
workload = "redo"
rows = {}
blocks = {}

[parameters]
sessions = 1
buffer = "1K"

[settings]
server = "{}"

[[factor]]
name = "place"
setting = "path"
levels = [{}]
"#,
        options.slow_rows,
        options.blocks,
        server.directory.display(),
        levels.join(", ")
    );
    for (number, level) in levels.iter().enumerate().skip(1) {
        let _ = write!(
            text,
            r#"
[[claim]]
name = "wait-{number}"
text = "A wait of each flush makes commits slower."
factor = "place"
from = {}
to = {level}
expect = "slower"
"#,
            levels[0]
        );
    }
    text
}

/// Returns the table of waits, their truth, and what the study found.
fn show(analysis: &Analysis, runs: &[RunRecord], waited: &[Waited]) -> anyhow::Result<String> {
    let reference = analysis.arms[0].median.context("no block came to its end")?;
    let mut text = format!(
        "a run without a wait: {:.1} ms; {} flushes of its disk in all\n\n\
         | wait of a flush | measured | syncs a run | truth: slower by | found | inside | verdict |\n\
         |---|---|---|---|---|---|---|\n",
        1e3 * reference,
        waited[0].answers
    );
    for (number, claim) in (1..).zip(&analysis.claims) {
        let wait = WAITS[number];
        let syncs = syncs(runs, number);
        let more = waited[number].mean_us - waited[0].mean_us;
        let truth = more * syncs / 1e6 / reference;
        let effect = claim.effect.as_ref().context("no block was usable")?;
        let inside = effect.low.is_none_or(|low| low <= 1.0 + truth)
            && effect.high.is_none_or(|high| high >= 1.0 + truth);
        let _ = writeln!(
            text,
            "| {wait} | {more:.0} us | {syncs:.0} | {:.1}% | {} | {} | {} |",
            100.0 * truth,
            percent(effect),
            if inside { "yes" } else { "NO" },
            claim.verdict.label()
        );
    }
    Ok(text)
}

/// Returns the syncs of the log in the median run of an arm.
fn syncs(runs: &[RunRecord], arm: usize) -> f64 {
    let ours = runs.iter().filter(|run| run.arm_index == arm && run.block.is_some());
    let rows = ours.filter_map(|run| run.record.as_ref()).flat_map(|record| &record.statistics);
    let counts: Vec<f64> = rows.filter(|row| row.name == SYNCS).map(|row| row.total as f64).collect();
    median(&counts)
}

fn percent(effect: &Effect) -> String {
    let end =
        |ratio: Option<f64>| ratio.map_or("-".to_string(), |ratio| format!("{:.1}", 100.0 * (ratio - 1.0)));
    format!("{:.1}% [{}, {}]", 100.0 * (effect.ratio - 1.0), end(effect.low), end(effect.high))
}
