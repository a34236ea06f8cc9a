//! Loading a CSV file beside DuckDB: six columns of mixed kinds, whose types both find in the file.
//!
//! Timed is the way from a file and no database to a table that is durable: of plumb what `plumb load` does, in this process; of
//! DuckDB `CREATE TABLE ... AS SELECT * FROM read_csv(...)` and a checkpoint, with its defaults but for the threads and the order
//! of rows, which need not be kept. For the types plumb looks at every value, DuckDB at a sample. Rounds are interleaved, each in a new random
//! order, and the file is out of the page cache before each run. Both tables must have all rows and the same sum of amounts.

use super::child::Watch;
use super::commits::compared;
use super::libraries::DUCKDB_PACKAGES;
use super::packages;
use super::peer::{Ground, KeyFacts, Run, drop_caches};
use super::python::{Script, remove};
use crate::bench::dataset::Keys;
use crate::bench::machine::Machine;
use crate::bench::stop::{Room, Stop};
use crate::bench::{Spread, order, settings};
use anyhow::Context;
use clap::Args;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::load;
use plumb_engine::table::scan::{self, Granules};
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::clock::process_cpu;
use plumb_events::{Role, now};
use plumb_host::readings;
use plumb_proof::random::Generator;
use plumb_types::{column_at, decode_number};
use plumb_units::{Bytes, RowCount};
use plumb_workload::{CsvFile, CsvOptions};
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// The column whose values are summed, in hundredths.
const AMOUNT: usize = 4;
const CITIES: [&str; 8] =
    ["Ulm", "Hamburg", "Berlin", "Bad Salzuflen", "Leipzig", "Freiburg im Breisgau", "Mainz", "Halle"];
const NOTES: &str =
    "gift wrapping; please ring twice; leave it with the neighbours; fragile; by the side door";

/// How much, how often, and where.
#[derive(Debug, Args)]
pub struct Options {
    /// Rows of the file, of some 89 bytes each.
    #[arg(long, default_value = "5M")]
    rows: RowCount,
    /// Rounds.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Threads of each.
    #[arg(long, default_value_t = 2)]
    degree: usize,
    /// Seed of the order of runs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the data goes, removed in the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
}

pub(in crate::bench) fn run(options: &Options) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "load")?;
    let mut ground = Ground {
        directory: room.path().to_path_buf(),
        packages: packages::directory()?,
        stop,
        keys: Keys::Numbers,
        rows: options.rows,
        seed: options.seed,
        degree: options.degree,
        csv: room.path().join("rows.csv"),
        facts: KeyFacts::default(),
    };
    let mut script = Script::new("duckdb", include_str!("load.py"), DUCKDB_PACKAGES);
    script.fetch(&ground)?;
    ground.facts = write_csv(&ground)?;
    let bytes = fs::metadata(&ground.csv)?.len();
    println!("{} rows, {}\n{}", options.rows, Bytes(bytes), Machine::describe(&ground.directory).show());
    let mut random = Generator::new(options.seed);
    let mut runs: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..options.repeat {
        for who in order(&mut random, runs.len()) {
            rustix::fs::sync();
            drop_caches(&ground.directory)?;
            let run = if who == 0 { by_plumb(&ground)? } else { by_duckdb(&ground, &script)? };
            ground.stop.check()?;
            eprintln!("{}: {:.2} s", ["plumb", "DuckDB"][who], run.seconds);
            runs[who].push(run);
        }
    }
    let [ours, theirs] = &runs;
    for (name, runs) in [("plumb", ours), ("DuckDB", theirs)] {
        let of = |figure: fn(&Run) -> f64| Spread::of(runs.iter().map(figure).collect());
        println!(
            "{name:<8} {} s, {} s of CPU; peak memory {}, table {} {}",
            of(|run| run.seconds).show(2),
            of(|run| run.cpu_seconds).show(2),
            Bytes(of(|run| run.memory_peak.0 as f64).median as u64),
            runs[0].output,
            runs[0].note,
        );
    }
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| theirs.seconds / ours.seconds);
    println!("DuckDB takes times plumb's time: {}", compared(ratios.collect()));
    Ok(())
}

/// Numbers, times, few and many different texts, amounts of which some are missing, and remarks.
fn write_csv(ground: &Ground) -> anyhow::Result<KeyFacts> {
    let file = File::create(&ground.csv).with_context(|| format!("creating {}", ground.csv.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut facts = KeyFacts::default();
    let mut random = Generator::new(ground.seed);
    writeln!(out, "id,placed,city,customer,amount,note")?;
    for row in 0..ground.rows.0 {
        if row % 100_000 == 0 {
            ground.stop.check()?;
        }
        let mut below = |count: usize| random.below(count);
        let (year, month, day) = (2015 + below(10), 1 + below(12), 1 + below(28));
        let (hour, minute, second) = (below(24), below(60), below(60));
        let (city, customer) = (CITIES[below(CITIES.len())], below(900_000));
        write!(out, "{row},{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{city},")?;
        write!(out, "customer.{customer}@example.org,")?;
        // The same digits behind the point everywhere; one of 16 has no value.
        let (cents, known) = (below(1_000_000) as u64, below(16) > 0);
        if known {
            write!(out, "{}.{:02}", cents / 100, cents % 100)?;
        }
        facts.add(if known { cents } else { 0 });
        let begin = below(40);
        writeln!(out, ",{}", &NOTES[begin..begin + below(40)])?;
    }
    out.into_inner()?.sync_all()?;
    Ok(facts)
}

fn by_duckdb(ground: &Ground, script: &Script) -> anyhow::Result<Run> {
    let room = ground.room("duckdb")?;
    let job = json!({
        "directory": room, "csv": ground.csv, "degree": ground.degree, "data": ground.keys.job(),
    });
    let called = script.call(ground, &job, Watch::Nobody);
    remove(&room, &["loaded.db", "loaded.db.wal"]);
    let (answer, _) = called?;
    answer.check(&ground.facts)?;
    let note = format!("(version {})", answer.version);
    Ok(Run { note, ..answer.into_run() })
}

fn by_plumb(ground: &Ground) -> anyhow::Result<Run> {
    let degree = ground.degree.to_string();
    let settings = settings(&[("parallel_degree", &degree)], &[])?;
    let layout = Layout::in_one(ground.directory.join("plumb"));
    let sizes = InitialSizes { users: Bytes(1), temp: Bytes(1), indx: Bytes(1) };
    anyhow::ensure!(readings::reset_peak(), "the peak of resident memory cannot be reset here");
    let memory_start = readings::resident_memory()?.rss;
    ground.stop.interruptible(|cancel| {
        let (begin, cpu_begin) = (now(), process_cpu());
        let source = CsvFile::open(&ground.csv, CsvOptions::default())?;
        let instance = Instance::create(&layout, settings, sizes, cancel)?;
        let loaded = load(&instance, "loaded", &source)?;
        let seconds = now().saturating_sub(begin).seconds();
        let cpu_seconds = process_cpu().saturating_sub(cpu_begin).seconds();
        let memory_peak = readings::resident_memory()?.peak;
        ground.facts.check(found(&instance)?)?;
        let block_bytes = instance.tablespace(Purpose::Users).block_size.bytes() as u64;
        instance.destroy()?;
        let output = Bytes(loaded.block_count * block_bytes);
        Ok(Run { seconds, cpu_seconds, memory_start, memory_peak, output, ..Run::default() })
    })
}

/// Rows of the table and the sum of their amounts.
fn found(instance: &Instance) -> anyhow::Result<KeyFacts> {
    let session = instance.recorder.session(Role::User);
    let table = instance.catalog().table("loaded")?.clone();
    let (operation, granules) = (instance.operation(), Granules::new(&table));
    let mut facts = KeyFacts::default();
    scan::scan(instance, &session, &operation, &granules, |row, row_id| {
        let amount = column_at(row, AMOUNT).map_err(|error| error.to_string());
        let amount = amount.and_then(|amount| {
            let (unscaled, scale) =
                amount.map_or(Ok((0, 2)), decode_number).map_err(|error| error.to_string())?;
            u64::try_from(unscaled * 10_i128.pow(2 - scale as u32)).map_err(|error| error.to_string())
        });
        facts.add(amount.map_err(|why| EngineError::BadRow { row: row_id, why })?);
        Ok(())
    })?;
    Ok(facts)
}
