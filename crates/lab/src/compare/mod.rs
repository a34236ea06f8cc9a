//! Two sets of runs, and what a test says of each figure in which they differ.
//!
//! ```text
//! BUNDLE, BUNDLE:ARM ──[side]──> runs and how they pair ──[judge]──> a difference a figure, a verdict a measure
//!                        └──[asked]──> the study's measures, and what its claims say ──┘
//! ```
//!
//! Arms of one study are judged by what that study measures, and where a claim of it compares these two, by that claim: a
//! figure has one p, whichever report prints it.
//!
//! A figure whose difference is [`Outcome::Open`] is shown for both sides, and its difference is left blank. That of
//! single runs is shown in brackets.

mod asked;
mod judge;
mod side;

use crate::LabError;
use crate::record::{IoFunction, IoTally, Record};
use crate::vocabulary::{Kinds, Measure};
use plumb_proof::verdict::Verdict;
use serde::Serialize;

/// The version of the comparison written by this crate.
pub const COMPARE_SCHEMA_VERSION: u32 = 2;

/// Two sets of runs and their differences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// [`COMPARE_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The first set.
    pub first: Period,
    /// The second set.
    pub second: Period,
    /// How the runs of one belong to those of the other.
    pub pairing: Pairing,
    /// Error allowed to each table of differences, a share: 0.05.
    pub alpha: f64,
    /// What is proved of the study's measures, its own first; empty when nothing can be.
    pub judged: Vec<Judged>,
    /// What was left out and why, one sentence each.
    pub remarks: Vec<String>,
    /// What the tests say, a figure each.
    pub differences: Vec<Difference>,
}

/// What is proved of one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The measure.
    pub measure: Measure,
    /// The study's claim that says it; none where no claim compares these two.
    pub claim: Option<String>,
    /// What is proved of the second against the first.
    pub verdict: Verdict,
    /// Whether nothing but the request shows where that comes from.
    pub asked_only: bool,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}

/// Compares what two arguments name: bundles or records of runs, or arms of studies as `BUNDLE:ARM`.
///
/// # Errors
/// When one of them names nothing that can be read, or the two do not compare.
pub fn compare(first: &str, second: &str, kinds: &Kinds) -> Result<Comparison, LabError> {
    let side::Sides { first, second, pairing, asked, remarks } = side::Sides::read(first, second, kinds)?;
    let (differences, judged) = judge::judge(&first.runs, &second.runs, pairing, &asked);
    Ok(Comparison {
        schema_version: COMPARE_SCHEMA_VERSION,
        first,
        second,
        pairing,
        alpha: judge::ALPHA,
        judged,
        remarks,
        differences,
    })
}

/// One set of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Period {
    /// The bundle, as it was named.
    pub source: String,
    /// The arm of a study; none for a single run.
    pub arm: Option<String>,
    /// The records, in order of execution, at least one. Runs at the same place are pairs if the pairing is by blocks.
    pub runs: Vec<Record>,
}

/// How the runs of one set belong to those of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// A single run on either side, or on one: nothing says how far two runs of the same lie apart.
    Single,
    /// Pairs of runs of the same block of one study, in random order within it.
    Blocks,
    /// Repeated runs that were not interleaved: the hour and the setting cannot be told apart.
    Apart,
}

/// A table of the report, within which tests are corrected for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Elapsed time, and of a database DB time and DB CPU; seconds.
    Time,
    /// What the target measures by itself; each in its unit.
    Measure,
    /// The load profile; a second.
    Load,
    /// Time waited for an event; seconds.
    Event,
    /// Counters; totals.
    Statistic,
    /// Mean time of a request by function and direction, as `IoTally::time_ns` has it; nanoseconds.
    Io,
}

impl Group {
    /// All of them, in the order of the report.
    pub const ALL: [Group; 6] =
        [Group::Time, Group::Measure, Group::Load, Group::Event, Group::Statistic, Group::Io];
}

/// One figure of every run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its table.
    pub group: Group,
    /// Its name, unique in the table.
    pub name: String,
    /// Its values in the first set, in the order of the runs.
    pub first: Vec<f64>,
    /// Its values in the second set.
    pub second: Vec<f64>,
}

/// What the test of a figure says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Its table.
    pub group: Group,
    /// The figure's name.
    pub name: String,
    /// Second over first; none when the first is 0.
    pub ratio: Option<f64>,
    /// Lower end of the interval; none is unbounded or not known.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// p of "no difference" after correction within the table; none without a test.
    pub p: Option<f64>,
    /// Pairs, or runs of the smaller set, a count.
    pub runs: u64,
    /// What follows.
    pub outcome: Outcome,
}

/// What follows from a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The second is larger.
    Higher,
    /// The second is smaller.
    Lower,
    /// It is 0 in the first, and never in the second.
    New,
    /// It is 0 in the second, and never in the first.
    Gone,
    /// Every run of either side has the same value.
    Same,
    /// The difference may be noise.
    Open,
    /// One run on a side: the change as it was seen, and nothing says how far two runs of the same lie apart.
    Raw,
}

/// The figures of two sets that a test may be asked about, table by table.
#[must_use]
pub fn samples(first: &[Record], second: &[Record]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for group in Group::ALL {
        for name in names(group, first, second) {
            let values = |runs: &[Record]| runs.iter().map(|run| value(group, &name, run)).collect();
            samples.push(Sample { group, first: values(first), second: values(second), name });
        }
    }
    samples
}

/// The elapsed time.
pub(crate) const ELAPSED: &str = "Elapsed";
/// The times of a database.
const DB_TIMES: [&str; 2] = ["DB Time", "DB CPU"];

/// The names of a table's rows, those of the first set before those that only the second has.
pub(crate) fn names(group: Group, first: &[Record], second: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in first.iter().chain(second) {
        for name in names_of(group, run) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn names_of(group: Group, run: &Record) -> Vec<String> {
    match group {
        // Of a command no more is known than its own figures.
        Group::Time => {
            let of_database = DB_TIMES.iter().filter(|_| run.command.is_none());
            [ELAPSED].iter().chain(of_database).map(|name| (*name).to_string()).collect()
        }
        Group::Measure => run.measures.iter().map(|row| row.name.clone()).collect(),
        Group::Load => run.load_profile.iter().map(|row| row.name.clone()).collect(),
        Group::Event => {
            let busy = run.foreground_events.iter().filter(|event| !event.is_idle() && event.waits > 0);
            busy.map(|event| event.event.clone()).collect()
        }
        Group::Statistic => {
            let moved = run.statistics.iter().filter(|statistic| statistic.total > 0);
            moved.map(|statistic| statistic.name.clone()).collect()
        }
        Group::Io => {
            let both = run.io_functions.iter().flat_map(directions);
            both.filter(|(_, tally)| tally.requests > 0).map(|(name, _)| name).collect()
        }
    }
}

/// A function's reads and writes, each under its name.
fn directions(row: &IoFunction) -> [(String, IoTally); 2] {
    [(format!("{}: reads", row.function), row.reads), (format!("{}: writes", row.function), row.writes)]
}

/// The requests of a function in a direction.
pub(crate) fn tally(run: &Record, name: &str) -> IoTally {
    let mut all = run.io_functions.iter().flat_map(directions);
    all.find(|(found, _)| found == name).map(|(_, tally)| tally).unwrap_or_default()
}

/// The figure of a run; 0 where it has none.
fn value(group: Group, name: &str, run: &Record) -> f64 {
    let header = &run.header;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let found = match group {
        Group::Time => match name {
            ELAPSED => Some(seconds(header.elapsed_ns)),
            "DB Time" => Some(seconds(header.db_time_ns)),
            _ => Some(seconds(header.db_cpu_ns)),
        },
        Group::Measure => run.measures.iter().find(|row| row.name == name).map(|row| row.value),
        Group::Load => {
            let row = run.load_profile.iter().find(|row| row.name == name);
            row.map(|row| row.total / seconds(header.elapsed_ns.max(1)))
        }
        Group::Event => {
            let event = run.foreground_events.iter().find(|event| event.event == name);
            event.map(|event| seconds(event.time_ns))
        }
        Group::Statistic => {
            let statistic = run.statistics.iter().find(|statistic| statistic.name == name);
            statistic.map(|statistic| statistic.total as f64)
        }
        Group::Io => {
            let tally = tally(run, name);
            (tally.requests > 0).then(|| tally.time_ns as f64 / tally.requests as f64)
        }
    };
    found.unwrap_or(0.0)
}
