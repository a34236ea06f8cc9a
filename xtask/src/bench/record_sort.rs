//! Sorting a file of 100-byte records: time, CPU by stage, memory and disk.
//!
//! The records are those of gensort, made once; what is printed of each round comes
//! from that round alone. Every output is judged as valsort does, against the sum of
//! the input, and removed.
//!
//! CPU of a stage is that of the sessions that did it, from their own clocks.

use super::Spread;
use anyhow::Context;
use clap::Args;
use plumb_engine::file_sort::create::create;
use plumb_engine::file_sort::validate::{RecordSummary, validate};
use plumb_engine::file_sort::{FileSortOutcome, FileSortSpec, sort_file};
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::{Event, Period, SessionKind, now};
use plumb_io::receipt;
use plumb_units::Bytes;
use plumb_workload::gensort::{GensortRecords, KEY_BYTES, RECORD_BYTES, RecordForm};
use std::path::PathBuf;

/// What to sort, and how often.
#[derive(Debug, Args)]
pub struct Options {
    /// Bytes of records.
    #[arg(long, default_value = "1G")]
    size: Bytes,
    /// Memory in all.
    #[arg(long, default_value = "512M")]
    memory: Bytes,
    /// Where the files go, removed in the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Sorts.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Settings, as name=value.
    #[arg(long = "set")]
    set: Vec<String>,
}

/// Memory besides the sort areas: the program, stacks, rings, samples of runs.
const OVERHEAD: u64 = 24 * Bytes::M;
/// Servers.
const DEGREE: u64 = 2;

struct Round {
    seconds: f64,
    period: Period,
    outcome: FileSortOutcome,
    peak: Bytes,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let mut settings = Settings::default();
    let area = Bytes((options.memory.0.saturating_sub(OVERHEAD) / DEGREE / Bytes::K).max(1) * Bytes::K);
    for (name, value) in [
        ("sort_area_size", area.as_setting()),
        ("parallel_degree", DEGREE.to_string()),
        ("db_cache_size", "1M".to_string()),
    ] {
        settings.set(name, &value, "--memory")?;
    }
    for set in &options.set {
        let (name, value) = set.split_once('=').context("--set takes name=value")?;
        settings.set(name, value, "--set")?;
    }
    let count = options.size.0 / RECORD_BYTES as u64;
    println!("{count} records; {}", settings.canonical().replace('\n', " "));
    let home = options.path.join(format!("plumb-bench-{}", std::process::id()));
    let slack = 64 * Bytes::M;
    let sizes = InitialSizes {
        users: Bytes(0),
        temp: Bytes(options.size.0 + options.size.0 / 50 + slack),
        indx: Bytes(0),
    };
    let instance = Instance::create(&Layout::in_one(home.clone()), settings, sizes, Cancel::default())?;
    let input = home.join("records.dat");
    let measured = measure(options, &instance, &input, count);
    let _ = std::fs::remove_file(&input);
    instance.destroy()?;
    print(&measured?);
    Ok(())
}

fn measure(
    options: &Options,
    instance: &Instance,
    input: &std::path::Path,
    count: u64,
) -> anyhow::Result<Vec<Round>> {
    create(instance, input, &GensortRecords { count, form: RecordForm::Binary })?;
    let expected = validate::<RECORD_BYTES, KEY_BYTES>(instance, input)?;
    println!("checksum of the input {:x}", expected.checksum);
    (0..options.repeat).map(|_| round(instance, input, &expected)).collect()
}

fn round(instance: &Instance, input: &std::path::Path, expected: &RecordSummary) -> anyhow::Result<Round> {
    let output = input.with_file_name("sorted.dat");
    let spec = FileSortSpec { input: input.to_path_buf(), output: output.clone() };
    anyhow::ensure!(receipt::reset_peak(), "the peak of resident memory cannot be reset here");
    let before = instance.recorder.snapshot();
    let begin = now();
    let outcome = sort_file::<RECORD_BYTES, KEY_BYTES>(instance, &spec)?;
    let seconds = now().saturating_sub(begin).seconds();
    let period = instance.recorder.snapshot().since(&before);
    let peak = receipt::resident_memory()?.peak;
    let found = validate::<RECORD_BYTES, KEY_BYTES>(instance, &output);
    std::fs::remove_file(&output)?;
    let found = found?;
    anyhow::ensure!(found.unordered == 0, "record {:?} is out of order", found.first_unordered);
    anyhow::ensure!(found.checksum == expected.checksum, "the checksum is another: {:x}", found.checksum);
    anyhow::ensure!(found.record_count == expected.record_count, "{} records", found.record_count);
    for session in &period.sessions {
        println!(
            "  {} elapsed {:.2} cpu {:.2}",
            session.name,
            session.elapsed.seconds(),
            session.cpu.seconds()
        );
    }
    for event in Event::ALL {
        let t = period.event(*event, SessionKind::Foreground);
        if t.count > 0 {
            println!("    {} {} {}", event.name(), t.count, t.time);
        }
    }
    for span in instance.recorder.phases() {
        println!("    {} {} {}", span.name, span.begin, span.end);
    }
    println!(
        "{seconds:.2} s, {} peak, runs {} bytes {} shares {:?} width {}",
        peak,
        outcome.sort.servers.iter().map(|s| s.run_count).sum::<u64>(),
        outcome.run_bytes,
        outcome.share_counts,
        outcome.sort.servers[0].merge_width
    );
    Ok(Round { seconds, period, outcome, peak })
}

fn print(rounds: &[Round]) {
    let of = |value: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(value).collect());
    println!("seconds {}", of(&|round| round.seconds).show(2));
    let _ = rounds.iter().map(|r| (&r.period, &r.outcome, r.peak));
}
