//! CPU time a row of each stage of an index build, and of all together.
//!
//! Every stage runs alone, on one thread, over the rows and with the memory of a real build,
//! between two readings of the thread's CPU clock. Then the whole index is built, and the remainder
//! that the stages do not explain is printed.
//!
//! The stages run on files in memory (`io_method=null`), where a request is a copy, so that their
//! time is the engine's. A build on the device costs more by the kernel's time for the I/O. The
//! stages after the table queue get the rows of one sort server: those of the lowest key range, in
//! the order of the scan.
//!
//! ```text
//! scan        verify blocks, walk rows (and copy the table from the files in memory)
//! key         make a record of each row
//! queue       find the range, put into a buffer, hand over
//! run sort    take records into the sort area, sort its strips
//! run write   empty the area: merge its strips if they are no runs, make and seal blocks
//! merge       all runs, from their blocks
//! leaf        put entries into leaves, seal them
//! the rest    whole build less these: clearing memory, submitting requests, waking up, branches
//! ```
//!
//! Limits: a stage alone has the caches for itself. Cycles are time by the clock
//! rate that the kernel shows; a virtual machine has no counter of its own. On a
//! machine that does other work as well, only orders of magnitude hold.

mod alone;

use super::dataset::Keys;
use super::figure::Figure;
use super::stop::Room;
use alone::Alone;
use anyhow::Context;
use clap::Args;
use plumb_engine::Instance;
use plumb_engine::drop::drop_named;
use plumb_engine::index::build::create_index;
use plumb_engine::sort::codec::BytesCodec;
use plumb_engine::sort::key::KeyBuilder;
use plumb_engine::sort::word::{WordCodec, WordLayout};
use plumb_engine::storage::control::IndexColumn;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::clock::process_cpu;
use plumb_units::RowCount;
use std::fs;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Keys: of two numbers, or text.
    #[arg(long, value_enum, default_value_t = Keys::Numbers)]
    keys: Keys,
    /// Rows of the indexed table.
    #[arg(long, default_value = "10M")]
    rows: RowCount,
    /// Directory of the temporary database.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Repetitions of each stage and of the build; six are the fewest that give an interval.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Settings, as name=value; the default is 32M of sort area, degree 2.
    #[arg(long = "set")]
    set: Vec<String>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let room = Room::create(&options.path, "stages")?;
    let in_memory = database(options, room.path().join("memory"), &[("io_method", "null")])?;
    let alone = alone(options, &in_memory)?;
    let engine = builds(options, &in_memory)?;
    drop(in_memory);
    let built = builds(options, &database(options, room.path().join("device"), &[])?)?;
    report(options, &alone, engine, built);
    Ok(())
}

/// The stages, with the records that the index would have.
fn alone(options: &Options, instance: &Instance) -> anyhow::Result<alone::Findings> {
    let table = instance.catalog().table(&options.keys.table().to_uppercase())?.clone();
    let column = |name: &&str| {
        let position = table.schema.position(&name.to_uppercase()).context("a column of the key")?;
        Ok(IndexColumn { position, descending: false })
    };
    let columns = options.keys.key().iter().map(column).collect::<anyhow::Result<Vec<IndexColumn>>>()?;
    let repeat = usize::from(options.repeat);
    match WordLayout::new(&columns, &table, instance.tablespace(Purpose::Users).block_size) {
        Some(layout) if layout.fits::<u64>() => {
            Alone::new(instance, table, WordCodec::<u64>::new(layout))?.measure(repeat)
        }
        Some(layout) => Alone::new(instance, table, WordCodec::<u128>::new(layout))?.measure(repeat),
        None => {
            let codec = BytesCodec(KeyBuilder::new(&columns, &table.schema));
            Alone::new(instance, table, codec)?.measure(repeat)
        }
    }
}

/// A database with the table; `forced` overrides the settings.
fn database(options: &Options, home: PathBuf, forced: &[(&str, &str)]) -> anyhow::Result<Instance> {
    let given = [("sort_area_size", "32M"), ("parallel_degree", "2")];
    let mut settings = super::settings(&given, &options.set)?;
    for (name, value) in forced {
        settings.set(name, value, "bench")?;
    }
    options.keys.database(home, settings, options.rows)
}

/// CPU nanoseconds a row of whole builds.
fn builds(options: &Options, instance: &Instance) -> anyhow::Result<Figure> {
    let spec = options.keys.index_spec();
    let mut nanos = Vec::new();
    for _ in 0..options.repeat {
        let begin = process_cpu();
        create_index(instance, &spec)?;
        nanos.push(process_cpu().saturating_sub(begin).0 as f64 / options.rows.0 as f64);
        drop_named(instance, &spec.name)?;
    }
    Ok(Figure::of(nanos))
}

/// Prints the stages, what is left of the build, and what is largest.
fn report(options: &Options, alone: &alone::Findings, engine: Figure, built: Figure) {
    let gigahertz = clock_rate();
    let explained: f64 = alone.stages.iter().map(|stage| stage.nanos.value).sum();
    let mut lines: Vec<(String, String, f64)> = alone
        .stages
        .iter()
        .map(|stage| (stage.name.to_string(), stage.nanos.show(1), stage.nanos.value))
        .collect();
    let rest = engine.value - explained;
    lines.push(("the rest".to_string(), format!("{rest:.1}"), rest));
    let input_output = built.value - engine.value;
    lines.push(("I/O".to_string(), format!("{input_output:.1}"), input_output));
    lines.push(("whole build".to_string(), built.show(1), built.value));
    println!(
        "keys of {}, {} rows; CPU nanoseconds a row [95% interval] of {}; cycles by a clock of {gigahertz:.2} GHz",
        options.keys.name(),
        options.rows,
        options.repeat
    );
    for (name, nanos, median) in &lines {
        let share = 100.0 * median / built.value;
        println!("  {name:12} {nanos:>24} ns {:>7.0} cycles {share:>6.1}%", median * gigahertz);
    }
    for line in &alone.lines {
        println!("{line}");
    }
    let largest = lines[..lines.len() - 1].iter().max_by(|one, two| one.2.total_cmp(&two.2));
    if let Some((name, _, median)) = largest {
        println!("next bottleneck: {name}, {:.0}% of the build's CPU", 100.0 * median / built.value);
    }
}

/// The clock rate that the kernel shows, in GHz; 1 where it shows none.
fn clock_rate() -> f64 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let rate = text.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split_once(':'));
    rate.and_then(|(_, rate)| rate.trim().parse::<f64>().ok()).map_or(1.0, |megahertz| megahertz / 1e3)
}
