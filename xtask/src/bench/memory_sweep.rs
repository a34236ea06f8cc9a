//! The index build over the memory of its sort: does more memory ever cost time?
//!
//! What it does: builds the same index with 1 MB of sort memory for all servers
//! together, 2 MB, and so on up to the first size at which everything fits, each
//! several times, and prints merges, passes and time beside one another. Then it
//! finds the least memory in which nothing is written to disk, and measures what
//! one record less costs.
//!
//! How: rounds, in each every size once, in a new random order. A step counts as
//! a rise only where the larger memory is slower in every round. The least
//! memory for everything is found by halving, with write buffers on top of the
//! area (`sort_direct_writes=true`), so that the area is what is asked for. Both
//! sides of it are then measured in turns.
//!
//! Limits: the sort of a server is its own; key ranges from a sample differ by a
//! few per cent, so with several servers "fits" is said of the fullest. Text keys
//! pack a little differently each time: there the edge is found to one part in a
//! thousand.

use super::dataset::Keys;
use super::stop::Room;
use super::{Spread, order};
use clap::Args;
use plumb_engine::drop::drop_named;
use plumb_engine::index::build::{BuildOutcome, create_index};
use plumb_engine::{Instance, Settings};
use plumb_events::Cancel;
use plumb_events::now;
use plumb_proof::random::Generator;
use plumb_units::{Bytes, RowCount};
use std::path::{Path, PathBuf};

/// Memory of all servers that the sweep begins with.
const LEAST: u64 = Bytes::M;
/// What one record over memory may cost: issue goal.
const OVER_MOST: f64 = 1.05;

/// What to build, and how often.
#[derive(Debug, Args)]
pub struct Options {
    /// Keys: of two numbers, or text.
    #[arg(long, value_enum, default_value_t = Keys::Numbers)]
    keys: Keys,
    /// Rows of the table.
    #[arg(long, default_value = "10M")]
    rows: RowCount,
    /// Where the temporary database goes.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Servers that sort.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=9))]
    degree: u8,
    /// Settings, as name=value.
    #[arg(long = "set")]
    set: Vec<String>,
}

/// Times of one size, and how it went the last time.
struct Step {
    memory: u64,
    seconds: Vec<f64>,
    outcome: Option<BuildOutcome>,
}

impl Step {
    fn of(memory: u64) -> Step {
        Step { memory, seconds: Vec::new(), outcome: None }
    }
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let room = Room::create(&options.path, "memory-sweep")?;
    let home = room.path().join("plumb");
    let settings = settings(options, LEAST, false)?;
    // Intermediate merges hold their runs and what they make of them.
    options.keys.database(home.clone(), settings, (options.rows, 1), 3, Cancel::default())?;
    sweep(options, &home)
}

fn sweep(options: &Options, home: &Path) -> anyhow::Result<()> {
    let mut steps = Vec::new();
    let mut memory = LEAST;
    loop {
        let mut step = Step::of(memory);
        build(options, home, &mut step, false)?;
        // The first build of a size finds out whether it is the last; its time counts as no other's.
        let fits = step.outcome.as_ref().is_some_and(fits);
        step.seconds.clear();
        steps.push(step);
        if fits {
            break;
        }
        memory *= 2;
    }
    rounds(options, home, &mut steps, false)?;
    print_steps(options, &steps);
    let most = steps.last().map_or(LEAST, |step| step.memory);
    let edge = edge(options, home, most)?;
    let one_less = edge - record_bytes(options);
    let mut sides = vec![Step::of(edge), Step::of(one_less)];
    rounds(options, home, &mut sides, true)?;
    print_edge(options, &sides);
    Ok(())
}

/// The step of the edge: a record for each server, or one part in a thousand.
fn record_bytes(options: &Options) -> u64 {
    let servers = u64::from(options.degree);
    match options.keys {
        Keys::Numbers => 16 * servers,
        Keys::Text => options.rows.0 / 1000 * 16,
    }
}

fn rounds(options: &Options, home: &Path, steps: &mut [Step], on_top: bool) -> anyhow::Result<()> {
    let mut random = Generator::new(1);
    for _ in 0..options.repeat {
        for index in order(&mut random, steps.len()) {
            build(options, home, &mut steps[index], on_top)?;
        }
    }
    Ok(())
}

/// The least memory in which everything fits, between half of `most` and `most`.
fn edge(options: &Options, home: &Path, most: u64) -> anyhow::Result<u64> {
    let unit = record_bytes(options);
    let (mut little, mut enough) = (most / 4 / unit, most.div_ceil(unit));
    while enough - little > 1 {
        let middle = little + (enough - little) / 2;
        let mut step = Step::of(middle * unit);
        build(options, home, &mut step, true)?;
        match step.outcome.as_ref().is_some_and(fits) {
            true => enough = middle,
            false => little = middle,
        }
    }
    Ok(enough * unit)
}

fn fits(outcome: &BuildOutcome) -> bool {
    outcome.sort.servers.iter().all(|server| server.optimal)
}

fn build(options: &Options, home: &Path, step: &mut Step, on_top: bool) -> anyhow::Result<()> {
    // Nothing of the build before is left to be written in this one.
    rustix::fs::sync();
    let instance = Instance::open(home, settings(options, step.memory, on_top)?, Cancel::default())?;
    let spec = options.keys.index_spec();
    let begin = now();
    let outcome = create_index(&instance, &spec)?;
    step.seconds.push(now().saturating_sub(begin).seconds());
    drop_named(&instance, &spec.name)?;
    step.outcome = Some(outcome);
    Ok(())
}

fn settings(options: &Options, memory: u64, on_top: bool) -> anyhow::Result<Settings> {
    let area = Bytes(memory / u64::from(options.degree)).as_setting();
    let degree = options.degree.to_string();
    let mut given = vec![("sort_area_size", area.as_str()), ("parallel_degree", &degree)];
    given.extend(on_top.then_some(("sort_direct_writes", "true")));
    super::settings(&given, &options.set)
}

fn print_steps(options: &Options, steps: &[Step]) {
    println!(
        "keys of {}, {} rows, degree {}; seconds, median [least .. most] of {} rounds",
        options.keys.name(),
        options.rows,
        options.degree,
        options.repeat
    );
    println!("    memory   runs  merges  passes   temp bytes   seconds                 over the next");
    for (at, step) in steps.iter().enumerate() {
        let over = steps.get(at + 1).map_or("-".to_string(), |next| ratio(step, next).show(3));
        println!("{}   {over}", line(step));
    }
    let rises: Vec<String> = rises(steps).iter().map(|memory| Bytes(*memory).to_string()).collect();
    match rises.is_empty() {
        true => println!("monotone: no size is slower than the one before in every round"),
        false => println!("not monotone: slower than the size before in every round: {}", rises.join(", ")),
    }
}

/// Sizes that were slower than the size before in every round.
fn rises(steps: &[Step]) -> Vec<u64> {
    let slower =
        |pair: &&[Step]| pair[0].seconds.iter().zip(&pair[1].seconds).all(|(less, more)| less < more);
    steps.windows(2).filter(slower).map(|pair| pair[1].memory).collect()
}

fn line(step: &Step) -> String {
    let servers = step.outcome.iter().flat_map(|outcome| &outcome.sort.servers);
    let sum = |value: fn(&plumb_events::SortServerSummary) -> u64| servers.clone().map(value).sum::<u64>();
    let (runs, merges, bytes) = (sum(|s| s.run_count), sum(|s| s.intermediate_merges), sum(|s| s.run_bytes));
    let passes = servers.clone().map(|server| server.merge_passes).max().unwrap_or(0);
    format!(
        "{:>10} {runs:>6} {merges:>7} {passes:>7} {:>12}   {:<22}",
        Bytes(step.memory).to_string(),
        Bytes(bytes).to_string(),
        Spread::of(step.seconds.clone()).show(3)
    )
}

/// Time of one over time of another, within rounds.
fn ratio(one: &Step, other: &Step) -> Spread {
    Spread::of(one.seconds.iter().zip(&other.seconds).map(|(one, other)| one / other).collect())
}

fn print_edge(options: &Options, sides: &[Step]) {
    let [exact, less] = sides else { return };
    println!(
        "least memory for everything, write buffers beside it, and {} less",
        Bytes(record_bytes(options))
    );
    println!("{}", line(exact));
    println!("{}", line(less));
    let over = ratio(less, exact);
    let verdict = if over.median <= OVER_MOST { "reached" } else { "missed" };
    println!("one record over memory costs {} times as long (goal {OVER_MOST}: {verdict})", over.show(3));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_one_in_every_round() {
        let step = |memory, seconds: &[f64]| Step { seconds: seconds.to_vec(), ..Step::of(memory) };
        let noisy = [step(1, &[3.0, 3.0, 3.0]), step(2, &[3.5, 2.9, 3.5]), step(4, &[2.0, 2.0, 2.0])];
        assert!(rises(&noisy).is_empty());
        assert_eq!(rises(&[step(1, &[3.0, 3.0]), step(2, &[3.1, 3.2])]), [2]);
    }

    #[test]
    fn a_ratio_is_taken_within_rounds() {
        let step = |seconds: &[f64]| Step { seconds: seconds.to_vec(), ..Step::of(1) };
        let spread = ratio(&step(&[2.0, 4.0, 9.0]), &step(&[1.0, 2.0, 3.0]));
        assert_eq!((spread.least, spread.median, spread.most), (2.0, 2.0, 3.0));
    }
}
