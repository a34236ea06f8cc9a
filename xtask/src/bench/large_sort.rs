//! The index build from end to end, cold, against the device's sequential read.
//!
//! Interleaved and repeated: the raw read of the table's bytes, the scan alone,
//! the build. All figures of a line come from the same run; what is printed is
//! the median and the range.

use super::Spread;
use super::dataset::Keys;
use super::stop::Room;
use anyhow::Context;
use clap::Args;
use plumb_engine::drop::drop_named;
use plumb_engine::index::build::{BuildOutcome, create_index};
use plumb_engine::parallel::servers;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::scan::{self, Granules};
use plumb_engine::{Instance, probe};
use plumb_events::Cancel;
use plumb_events::{Role, SessionKind, SessionTotals, Statistic, now};
use plumb_host::readings;
use plumb_units::{Bytes, Nanos, RowCount};
use std::path::PathBuf;
use std::thread;

/// What to build, and how often.
#[derive(Debug, Args)]
pub struct Options {
    /// Rows of the sales table; several give the ratio of their times.
    #[arg(long, value_delimiter = ',', default_value = "10M")]
    rows: Vec<RowCount>,
    /// Where the temporary database goes.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Builds of each table.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Settings, as name=value; the default is 32M of sort area, degree 2.
    #[arg(long = "set")]
    set: Vec<String>,
}

struct Round {
    raw: f64,
    scan: f64,
    build: f64,
    rows: u64,
    read: u64,
    cpu: f64,
    over_declared: i64,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let mut medians = Vec::new();
    for rows in &options.rows {
        medians.push((rows, bench(options, *rows)?));
    }
    for pair in medians.windows(2) {
        println!(
            "{} rows take {:.2} times as long as {} (goal: at most 12 for ten times the rows)",
            pair[1].0,
            pair[1].1 / pair[0].1,
            pair[0].0
        );
    }
    Ok(())
}

fn bench(options: &Options, rows: RowCount) -> anyhow::Result<f64> {
    let settings = super::settings(&[("sort_area_size", "32M"), ("parallel_degree", "2")], &options.set)?;
    println!("{rows} rows; {}", settings.canonical().replace('\n', " "));
    let room = Room::create(&options.path, "large-sort")?;
    let home = room.path().join("plumb");
    let instance = Keys::Numbers.database(home, settings, (rows, 1), 1, Cancel::default())?;
    let rounds = (0..options.repeat).map(|_| round(&instance)).collect::<anyhow::Result<Vec<Round>>>()?;
    Ok(print(&rounds))
}

fn round(instance: &Instance) -> anyhow::Result<Round> {
    let spec = Keys::Numbers.index_spec();
    let table_bytes: u64 = {
        let catalog = instance.catalog();
        let table = catalog.table(&spec.table)?;
        table.extents.iter().map(|extent| u64::from(extent.used)).sum::<u64>()
            * instance.tablespace(Purpose::Users).block_size.bytes() as u64
    };
    // Raw, scan, scan, raw: what drifts during the four falls on both alike.
    let first_raw = raw_read(instance, table_bytes)?;
    let first_scan = scan_alone(instance, &spec.table)?;
    let second_scan = scan_alone(instance, &spec.table)?;
    let second_raw = raw_read(instance, table_bytes)?;
    let rate = |one: f64, two: f64| 2.0 * table_bytes as f64 / (one + two);
    let (raw, scan) = (rate(first_raw, second_raw), rate(first_scan, second_scan));
    anyhow::ensure!(readings::reset_peak(), "the peak of resident memory cannot be reset here");
    let before = instance.recorder.snapshot();
    let begin = now();
    let outcome = create_index(instance, &spec)?;
    let build = now().saturating_sub(begin).seconds();
    let period = instance.recorder.snapshot().since(&before);
    let foreground = period.sessions.iter().filter(|session| session.role.kind() == SessionKind::Foreground);
    let cpu = foreground.map(SessionTotals::cpu_used);
    let peak = readings::resident_memory()?.peak;
    drop_named(instance, &spec.name)?;
    Ok(Round {
        raw,
        scan,
        build,
        rows: outcome.index.entry_count,
        read: period.statistic(Statistic::PhysicalReadBytes),
        cpu: cpu.sum::<Nanos>().seconds(),
        over_declared: peak.0 as i64 - declared(&outcome) as i64,
    })
}

fn declared(outcome: &BuildOutcome) -> u64 {
    outcome.sort.memory.iter().map(|(_, bytes)| bytes.0).sum()
}

/// Seconds of reading so many bytes of the table's files, with the requests of a
/// scan and nothing behind.
fn raw_read(instance: &Instance, bytes: u64) -> anyhow::Result<f64> {
    let session = instance.recorder.session(Role::DeviceProbe);
    let shots = probe::Shots { bytes, count: 1 };
    let rates = probe::sequential_reads(instance, &session, Purpose::Users, shots)?;
    Ok(bytes as f64 / rates.first().context("the table has no extent")?)
}

/// Seconds of reading and verifying every block and walking its rows.
fn scan_alone(instance: &Instance, table: &str) -> anyhow::Result<f64> {
    let begin = now();
    let table = instance.catalog().table(table)?.clone();
    let granules = Granules::new(&table);
    let coordinator = instance.recorder.session(Role::User);
    let operation = instance.operation();
    thread::scope(|scope| {
        let server = |number: usize| {
            let (granules, operation) = (&granules, &operation);
            servers::start(scope, operation, (Role::ScanServer, number), move |session| {
                scan::scan(instance, session, operation, granules, |_, _| Ok(()))
            })
        };
        let all = (0..instance.parallel_degree()).map(server).collect();
        servers::join(&coordinator, all);
    });
    operation.outcome()?;
    Ok(now().saturating_sub(begin).seconds())
}

fn print(rounds: &[Round]) -> f64 {
    let of = |value: fn(&Round) -> f64| Spread::of(rounds.iter().map(value).collect());
    let build = of(|round| round.build);
    let mb = Bytes::M as f64;
    println!("  median [least .. most] of {} rounds", rounds.len());
    println!("  index build, s                        {}", build.show(3));
    println!("  rows a second, million                {}", of(|r| r.rows as f64 / r.build / 1e6).show(2));
    println!("  CPU of the build, s                   {}", of(|r| r.cpu).show(3));
    println!(
        "  raw sequential read, MB/s             {}",
        Spread::of(rounds.iter().map(|r| r.raw / mb).collect()).show(0)
    );
    println!("  scan alone, share of raw read         {}", of(|r| r.scan / r.raw).show(3));
    println!("  build over read-bound floor           {}", of(|r| r.build / (r.read as f64 / r.raw)).show(2));
    println!(
        "  peak RSS over declared memory, MB     {}",
        Spread::of(rounds.iter().map(|r| r.over_declared as f64 / mb).collect()).show(1)
    );
    build.median
}
