//! Sorting a file of 100-byte records: time, CPU by stage, memory and disk; DuckDB
//! beside it, if wished.
//!
//! The records are those of gensort, made once. Rounds are interleaved: one sort of
//! each program, in an order drawn anew. Every output is judged, ours as valsort does
//! against the sum of the input, and removed; the time of that does not count.
//!
//! Memory is in all: our sort areas are what is left of it for each server beside
//! the program itself, DuckDB gets it as its `memory_limit`. What is printed as the
//! peak is the resident set as the kernel counts it.
//!
//! CPU of a stage is that of the sessions that did it, from their own clocks.

use super::peers::DuckRecords;
use super::stop::{Room, Stop};
use super::{Spread, order};
use clap::Args;
use plumb_engine::file_sort::create::create;
use plumb_engine::file_sort::validate::{RecordSummary, validate};
use plumb_engine::file_sort::{FileSortOutcome, FileSortSpec, sort_file};
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::{Event, Period, SessionKind, SessionTotals, now};
use plumb_host::readings;
use plumb_proof::random::Generator;
use plumb_run::workload::execution;
use plumb_units::{Bytes, RowCount};
use plumb_workload::Work;
use plumb_workload::gensort::{GensortRecords, KEY_BYTES, RECORD_BYTES, RecordForm};
use plumb_workload::specification::RECORD_SORT;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Settings besides those that follow from the memory, as name=value.
    #[arg(long = "set")]
    set: Vec<String>,
    /// DuckDB on the same records, interleaved; needs network access the first time.
    #[arg(long)]
    duckdb: bool,
}

/// Memory besides the sort areas: the program, stacks, rings, samples of runs.
const OVERHEAD: u64 = 24 * Bytes::M;
const DEGREE: u64 = 2;

struct Round {
    seconds: f64,
    period: Period,
    outcome: FileSortOutcome,
    peak: Bytes,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "record-sort")?;
    let settings = settings(options)?;
    let count = options.size.0 / RECORD_BYTES as u64;
    println!("{} records, {}, {}", RowCount(count), options.memory, settings.canonical().replace('\n', " "));
    let slack = 64 * Bytes::M;
    let temp = Bytes(options.size.0 + options.size.0 / 50 + slack);
    let sizes = InitialSizes { users: Bytes(0), temp, indx: Bytes(0) };
    let layout = Layout::in_one(room.path().join("plumb"));
    stop.interruptible(|cancel| {
        let instance = Instance::create(&layout, settings, sizes, cancel)?;
        measure(options, &instance, room.path(), count, &stop)
    })
}

fn settings(options: &Options) -> anyhow::Result<Settings> {
    let area = options.memory.0.saturating_sub(OVERHEAD) / DEGREE / Bytes::K * Bytes::K;
    let (area, degree) = (Bytes(area.max(Bytes::K)).as_setting(), DEGREE.to_string());
    let given = [("sort_area_size", area.as_str()), ("parallel_degree", &degree), ("db_cache_size", "1M")];
    let mut settings = super::settings(&given, &options.set)?;
    execution(&RECORD_SORT).apply_defaults(&Work::of(&RECORD_SORT), &mut settings)?;
    Ok(settings)
}

fn measure(
    options: &Options,
    instance: &Instance,
    room: &Path,
    count: u64,
    stop: &Stop,
) -> anyhow::Result<()> {
    let input = room.join("records.dat");
    create(instance, &input, &GensortRecords { count, form: RecordForm::Binary })?;
    let expected = validate::<RECORD_BYTES, KEY_BYTES>(instance, &input)?;
    let shape = (count, RECORD_BYTES, KEY_BYTES);
    let duckdb = match options.duckdb {
        true => Some(DuckRecords::load(room, &input, shape, (DEGREE as usize, stop))?),
        false => None,
    };
    let mut ours = Vec::new();
    let mut theirs: [Vec<(f64, Bytes)>; 2] = [Vec::new(), Vec::new()];
    let mut random = Generator::new(1);
    for _ in 0..options.repeat {
        for who in order(&mut random, if duckdb.is_some() { 1 + theirs.len() } else { 1 }) {
            rustix::fs::sync();
            stop.check()?;
            match (who, &duckdb) {
                (1.., Some(duckdb)) => {
                    let action = DuckRecords::ACTIONS[who - 1];
                    match duckdb.sort(action, options.memory) {
                        Ok(run) => {
                            eprintln!("DuckDB into {action}: {:.2} s", run.seconds);
                            theirs[who - 1].push((run.seconds, run.memory_peak));
                        }
                        Err(error) => eprintln!("DuckDB into {action}: {error:#}"),
                    }
                }
                _ => {
                    let round = round(instance, &input, &expected)?;
                    eprintln!("plumb: {:.2} s", round.seconds);
                    ours.push(round);
                }
            }
        }
    }
    print(&ours, options, &expected, instance);
    if let Some(duckdb) = duckdb {
        print_theirs(&ours, &theirs, duckdb.version(), options);
    }
    Ok(())
}

/// Sorts once and judges the output.
fn round(instance: &Instance, input: &Path, expected: &RecordSummary) -> anyhow::Result<Round> {
    let output = input.with_file_name("sorted.dat");
    let spec = FileSortSpec { input: input.to_path_buf(), output: output.clone() };
    anyhow::ensure!(readings::reset_peak(), "the peak of resident memory cannot be reset here");
    let before = instance.recorder.snapshot();
    let begin = now();
    let outcome = sort_file::<RECORD_BYTES, KEY_BYTES>(instance, &spec)?;
    let seconds = now().saturating_sub(begin).seconds();
    let period = instance.recorder.snapshot().since(&before);
    let peak = readings::resident_memory()?.peak;
    let found = validate::<RECORD_BYTES, KEY_BYTES>(instance, &output);
    fs::remove_file(&output)?;
    let found = found?;
    anyhow::ensure!(found.unordered == 0, "wrong result: {} records out of order", found.unordered);
    anyhow::ensure!(
        found.record_count == expected.record_count,
        "wrong result: {} records",
        found.record_count
    );
    anyhow::ensure!(found.checksum == expected.checksum, "wrong result: checksum {:x}", found.checksum);
    Ok(Round { seconds, period, outcome, peak })
}

fn print(rounds: &[Round], options: &Options, input: &RecordSummary, instance: &Instance) {
    let of = |value: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(value).collect());
    let records = input.record_count as f64;
    let bytes = records * RECORD_BYTES as f64;
    let ns = |round: &Round, role: &str| {
        let of_role = |session: &&SessionTotals| session.name.contains(role);
        round.period.sessions.iter().filter(of_role).map(|session| session.cpu_used().seconds()).sum::<f64>()
            * 1e9
            / records
    };
    let waited = |round: &Round, event| {
        round.period.event(event, SessionKind::Foreground).time.seconds() / DEGREE as f64
    };
    let runs = |round: &Round| round.outcome.sort.servers.iter().map(|server| server.run_count).sum::<u64>();
    let temp = instance.tablespace(Purpose::Temp).size();
    println!("  median [least .. most] of {} rounds; checksum {:x}", rounds.len(), input.checksum);
    println!("  sort, s                               {}", of(&|r| r.seconds).show(2));
    println!(
        "  MB/s (2^20)                           {}",
        of(&|r| bytes / r.seconds / Bytes::M as f64).show(0)
    );
    println!("  CPU ns a record: load, sort, runs     {}", of(&|r| ns(r, "sort server")).show(0));
    println!("  CPU ns a record: merge, write         {}", of(&|r| ns(r, "merge server")).show(0));
    for (what, event) in [
        ("input reads", Event::ExternalTableRead),
        ("run writes", Event::DirectPathWriteTemp),
        ("run reads", Event::DirectPathReadTemp),
        ("output writes", Event::ExternalTableWrite),
    ] {
        println!("  waited for {what:13}, s a server   {}", of(&|r| waited(r, event)).show(2));
    }
    println!("  runs merged at once                   {}", of(&|r| runs(r) as f64).show(0));
    println!(
        "  peak RSS, MB, of {:19}  {}",
        options.memory.to_string(),
        of(&|r| r.peak.0 as f64 / Bytes::M as f64).show(0)
    );
    let used = |r: &Round| r.outcome.run_bytes.0 as f64 / bytes;
    println!(
        "  disk besides the input, times of it   {:.3}: runs {:.3} in files of {temp}, output 1",
        1.0 + temp.0 as f64 / bytes,
        rounds.last().map_or(0.0, used),
    );
}

fn print_theirs(ours: &[Round], theirs: &[Vec<(f64, Bytes)>], version: &str, options: &Options) {
    for (action, runs) in DuckRecords::ACTIONS.iter().zip(theirs) {
        if runs.is_empty() {
            println!("  DuckDB {version} into {action}: failed at {}", options.memory);
            continue;
        }
        let seconds = Spread::of(runs.iter().map(|run| run.0).collect());
        let ratios = ours.iter().zip(runs).map(|(our, their)| their.0 / our.seconds).collect();
        let peak = runs.iter().map(|run| run.1).max().unwrap_or(Bytes(0));
        println!(
            "  DuckDB {version} into {action:8} s          {}; {} times our time; peak RSS {peak}",
            seconds.show(2),
            Spread::of(ratios).show(2)
        );
    }
}
