//! Compares two sets of runs figure by figure.
//!
//! ```text
//! BUNDLE, BUNDLE:ARM ──[side]──> runs and their pairing ──[judge]──> a difference a figure,
//!                        │                                  │       a verdict a measure
//!                        └──[measure_question]──> claims ┘
//! ```
//!
//! Arms of one study are judged by that study's measures. If a claim compares the two, its verdict
//! is used: a figure has one p, whichever report prints it.
//!
//! For a figure with [`Outcome::Open`], both values are shown and the difference stays blank. The
//! difference of single runs is in brackets.

mod judge;
mod measure_question;
mod side;
mod targets;

use crate::StudyError;
use crate::analysis::result::Why;
use crate::analysis::why;
use crate::vocabulary::{Kinds, Measure};
use plumb_proof::median;
use plumb_proof::verdict::Verdict;
use plumb_record::Record;
use plumb_record::figures::{FigureGroup, figures};
use plumb_record::operation::operations;
use plumb_record::{Fact, RequestSizes, RunState, headline};
use serde::Serialize;
use std::collections::BTreeSet;

/// Version of the comparison's format.
pub const COMPARE_SCHEMA_VERSION: u32 = 5;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub schema_version: u32,
    pub first: Period,
    pub second: Period,
    pub pairing: Pairing,
    /// Error allowed to each table of differences, a share: 0.05.
    pub alpha: f64,
    /// Verdicts on the study's measures, its own first; empty without tests.
    pub judged: Vec<Judged>,
    /// Sentences about runs left out, with the reason.
    pub remarks: Vec<String>,
    /// Differences, one for each figure.
    pub differences: Vec<Difference>,
    /// The difference as a sum of its parts; `None` if the sessions are not recorded.
    pub explanation: Option<Explanation>,
}

/// Origin of a difference, as a sum of parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Meaning of both times: all work, or an operation if a run ends by the clock.
    pub of: String,
    /// True if both times are of an operation: the elapsed time divided by the operations.
    pub of_operation: bool,
    /// Both times and their parts.
    pub why: Why,
}

/// Relative difference up to which elapsed times count as those of runs that end by the clock,
/// if no record says so.
const SAME_TIME: f64 = 0.02;

/// True if a run ends by the clock and not with its work; `None` if its record does not say.
fn ends_by_the_clock(run: &Record) -> Option<bool> {
    let value = |name| run.parameters.iter().find(|row| row.name == name).map(|row| row.value.as_str());
    let says = value("run-time").is_some() && value("work-loop").is_none_or(|operations| operations == "0");
    match (run.parameters.is_empty(), &run.period) {
        (true, _) => None,
        // A period of a run that ends with its work ends with a snapshot, not with that work.
        (false, Some(_)) => says.then_some(true),
        (false, None) => Some(says),
    }
}

/// Returns the reason to explain the time of an operation instead of the elapsed time. `None` if
/// both sides did the same work.
fn clock_of(first: &[Record], second: &[Record], done: impl Fn(&Record) -> f64) -> Option<&'static str> {
    let runs = || first.iter().chain(second);
    if runs().any(|run| done(run) <= 0.0) {
        return None;
    }
    let ends: Vec<Option<bool>> = runs().map(ends_by_the_clock).collect();
    if ends.iter().all(|by_clock| *by_clock == Some(true)) {
        return Some("both runs end by the clock");
    }
    // If only one run ends by the clock, the elapsed times are of different work, too.
    if ends.contains(&Some(true)) {
        return Some("a run ends by the clock");
    }
    let mean = |runs: &[Record], of: &dyn Fn(&Record) -> f64| {
        runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
    };
    let near = |of: &dyn Fn(&Record) -> f64| {
        let [one, two] = [first, second].map(|runs| mean(runs, of));
        (one - two).abs() <= SAME_TIME * one.max(two)
    };
    let is_guess = ends.contains(&None) && near(&|run| run.header.elapsed_ns as f64) && !near(&done);
    is_guess.then_some("both ran for the same time")
}

/// Explains the difference of two sets of runs as a sum.
pub fn explanation(first: &[Record], second: &[Record], pairing: Pairing) -> Option<Explanation> {
    // Waits of a command's processes are not recorded.
    if first.iter().chain(second).any(|run| run.command.is_some()) {
        return None;
    }
    let is_paired = pairing == Pairing::Blocks;
    let runs = [("1st", first), ("2nd", second)];
    let done = |run: &Record| operations(run).map_or(0.0, |(_, count)| count as f64);
    let name = first.iter().chain(second).find_map(|run| Some(operations(run)?.0));
    match name.zip(clock_of(first, second, done)) {
        Some((name, clock)) => {
            let of = format!("elapsed time per {name}, as {clock}");
            let why = why::between(runs, |run| 1.0 / done(run), is_paired)?;
            Some(Explanation { of, of_operation: true, why })
        }
        None => {
            let why = why::between(runs, |_| 1.0, is_paired)?;
            Some(Explanation { of: "the elapsed time".to_string(), of_operation: false, why })
        }
    }
}

/// Verdict on one measure of the study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    pub measure: Measure,
    /// The claim that gives the verdict; `None` if no claim compares these two.
    pub claim: Option<String>,
    /// Verdict on the second against the first.
    pub verdict: Verdict,
    /// True if the request is the only evidence for the origin of the difference.
    pub asked_only: bool,
    pub reasons: Vec<String>,
}

/// Reads a side that is no bundle, such as the report of another program; `None` if it is one.
pub type SideReader<'r> = &'r dyn Fn(&str) -> Option<Result<Record, String>>;

/// Reads the runs of a bundle or record, or of an arm as `BUNDLE:ARM`.
pub fn period(named: &str, kinds: &Kinds) -> Result<Period, StudyError> {
    side::period(named, kinds)
}

/// Compares two arguments: bundles or records of runs, or arms of studies as `BUNDLE:ARM`.
pub fn compare(first: &str, second: &str, kinds: &Kinds) -> Result<Comparison, StudyError> {
    compare_with(first, second, kinds, &|_| None)
}

/// Compares two arguments, of which `reading` reads those that are no bundles.
pub fn compare_with(
    first: &str,
    second: &str,
    kinds: &Kinds,
    reading: SideReader<'_>,
) -> Result<Comparison, StudyError> {
    let side::Sides { first, second, pairing, asked, remarks } =
        side::Sides::read([first, second], kinds, reading)?;
    let (differences, judged) = judge::judge(&first.runs, &second.runs, pairing, &asked);
    let explanation = explanation(&first.runs, &second.runs, pairing);
    let remarks = targets::remarks(&first.runs, &second.runs).into_iter().chain(remarks).collect();
    Ok(Comparison {
        schema_version: COMPARE_SCHEMA_VERSION,
        explanation,
        first,
        second,
        pairing,
        alpha: judge::ALPHA,
        judged,
        remarks,
        differences,
    })
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Period {
    /// The bundle, as the user named it.
    pub source: String,
    /// Arm of a study; `None` for a single run.
    pub arm: Option<String>,
    /// At least one record, in order of execution. With pairing by blocks, runs at
    /// the same index are pairs.
    pub runs: Vec<Record>,
    /// Plan that the study kept of the arm, as it was printed.
    #[serde(skip)]
    pub plan: Option<String>,
    /// Sizes of the requests of its execution.
    #[serde(skip)]
    pub request_sizes: Option<RequestSizes>,
}

/// Relation of the runs of one set to those of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// A single run on one side or both: nothing shows the noise of equal runs.
    Single,
    /// Pairs of runs of the same block of one study, in random order within it.
    Blocks,
    /// Repeated runs that were not interleaved: the hour and the setting cannot be separated.
    Apart,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub group: FigureGroup,
    /// Unique in the table of its group.
    pub name: String,
    /// Values in the first set, in the order of the runs.
    pub first: Vec<f64>,
    pub second: Vec<f64>,
}

/// Result of a figure's test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub group: FigureGroup,
    pub name: String,
    /// Second over first; `None` if the first is 0.
    pub ratio: Option<f64>,
    /// Lower end of the interval; `None` if unbounded or unknown.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` if unbounded or unknown.
    pub high: Option<f64>,
    /// p of "no difference" after correction within the table; `None` without a test.
    pub p: Option<f64>,
    /// Number of pairs, or of runs of the smaller set.
    pub runs: u64,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Higher,
    Lower,
    /// 0 in every run of the first set, in none of the second.
    New,
    /// 0 in every run of the second set, in none of the first.
    Gone,
    /// Every run of either side has the same value.
    Same,
    Open,
    /// One run on a side: the observed change, with unknown noise.
    Raw,
}

/// Returns the figures of two sets, table by table; a figure that a run lacks is 0.
pub fn samples(first: &[Record], second: &[Record]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for group in FigureGroup::ALL {
        let of = |runs: &[Record]| runs.iter().map(|run| figures(group, run)).collect::<Vec<_>>();
        let (firsts, seconds) = (of(first), of(second));
        let values = |runs: &[Vec<(String, f64)>], name: &str| {
            let value = |run: &Vec<(String, f64)>| {
                run.iter().find(|(own, _)| own == name).map_or(0.0, |(_, value)| *value)
            };
            runs.iter().map(value).collect()
        };
        for name in names(group, first, second) {
            samples.push(Sample {
                group,
                first: values(&firsts, &name),
                second: values(&seconds, &name),
                name,
            });
        }
    }
    samples
}

/// Returns the names of a table's rows; those that only the second set has come last.
pub fn names(group: FigureGroup, first: &[Record], second: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in first.iter().chain(second).flat_map(|run| figures(group, run)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Period {
    /// Returns the run with the median elapsed time, the earlier of two.
    pub fn typical(&self) -> Option<&Record> {
        let mut by_time = self.runs.iter().collect::<Vec<_>>();
        by_time.sort_by_key(|run| run.header.elapsed_ns);
        by_time.get(by_time.len().saturating_sub(1) / 2).copied()
    }

    /// Returns the median of a figure of its runs.
    pub fn median(&self, of: impl Fn(&Record) -> f64) -> f64 {
        median(&self.runs.iter().map(of).collect::<Vec<_>>())
    }

    /// True if any of its runs has a figure.
    pub fn has(&self, group: FigureGroup, name: &str) -> bool {
        self.runs.iter().any(|run| figures(group, run).iter().any(|(own, _)| own == name))
    }

    /// Returns the median of a figure; a run that does not have it counts as 0.
    pub fn figure(&self, group: FigureGroup, name: &str) -> f64 {
        self.median(|run| {
            figures(group, run).iter().find(|(own, _)| own == name).map_or(0.0, |(_, value)| *value)
        })
    }

    /// Returns the worst state of its runs.
    pub fn state(&self) -> RunState {
        let states = || self.runs.iter().map(|run| run.validity().state);
        match () {
            () if states().any(|state| state == RunState::Invalid) => RunState::Invalid,
            () if states().any(|state| state == RunState::Unverified) => RunState::Unverified,
            () => RunState::Valid,
        }
    }

    /// Returns the facts that make a run doubtful, in the order of findings.
    pub fn facts(&self) -> Vec<Fact> {
        let facts = self.runs.iter().flat_map(Record::doubtful).map(|found| found.fact);
        facts.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns `DISTURBED (others used the device) in 3 of 9 runs`; `None` if no run is doubtful.
    pub fn doubtful(&self) -> Option<String> {
        let facts = self.facts();
        let found = self.runs.iter().filter(|run| run.doubtful().next().is_some()).count();
        (found > 0).then(|| headline(&facts).join(", ") + &self.in_runs(found))
    }

    /// Returns ` in 3 of 9 runs`; empty for a single run.
    fn in_runs(&self, found: usize) -> String {
        if self.runs.len() == 1 { String::new() } else { format!(" in {found} of {} runs", self.runs.len()) }
    }

    /// Returns each fact with the figures of the run it affects most.
    pub fn circumstances(&self) -> Vec<String> {
        let of_fact = |fact: Fact| {
            let found = self.runs.iter().flat_map(Record::doubtful).filter(|found| found.fact == fact);
            let found: Vec<_> = found.collect();
            let most = found.iter().max_by(|one, two| one.share.total_cmp(&two.share))?;
            let in_runs = self.in_runs(found.len());
            let most_of = if in_runs.is_empty() { "" } else { ", at most" };
            Some(format!("{}{in_runs}{most_of}: {}", fact.words().1, most.evidence))
        };
        self.facts().into_iter().filter_map(of_fact).collect()
    }
}

impl Comparison {
    /// Returns both sets, the first one first.
    pub fn sides(&self) -> [&Period; 2] {
        [&self.first, &self.second]
    }

    /// Returns both sets under their names in tables.
    pub fn named_sides(&self) -> [(&'static str, &Period); 2] {
        [("1st", &self.first), ("2nd", &self.second)]
    }

    /// Returns the difference of a figure; `None` if it was not tested.
    pub fn difference(&self, group: FigureGroup, name: &str) -> Option<&Difference> {
        self.differences.iter().find(|found| found.group == group && found.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_events::Unit;
    use plumb_record::{ParameterRow, Period, StatisticRow};

    /// A run with this elapsed time, operations and parameters.
    fn run(elapsed_ns: u64, operations: u64, parameters: &[(&str, &str)]) -> Record {
        let mut run = plumb_record::fixture::record(elapsed_ns, 2);
        let statement =
            StatisticRow { name: "execute count".to_string(), total: operations, unit: Unit::Count };
        run.statistics.extend((operations > 0).then_some(statement));
        let row =
            |(name, value): &(&str, &str)| ParameterRow { name: (*name).into(), value: (*value).into() };
        run.parameters = parameters.iter().map(row).collect();
        run
    }

    const BY_CLOCK: &[(&str, &str)] = &[("run-time", "4s"), ("work-loop", "0")];
    const BY_WORK: &[(&str, &str)] = &[("run-time", "4s"), ("work-loop", "1000")];

    #[test]
    fn an_operation_is_explained_if_runs_end_by_clock() {
        let of = |first: &Record, second: &Record| {
            let found =
                explanation(std::slice::from_ref(first), std::slice::from_ref(second), Pairing::Single);
            let found = found.expect("their sessions are known");
            assert_eq!(found.of_operation, found.of.starts_with("elapsed time per statement, as "));
            (found.of, found.why.reference_elapsed_ns, found.why.treatment_elapsed_ns)
        };
        let (four, three) = (run(4_000_000_000, 1000, BY_CLOCK), run(3_000_000_000, 500, BY_CLOCK));
        let clock = |why: &str| format!("elapsed time per statement, as {why}");
        assert_eq!(of(&four, &three), (clock("both runs end by the clock"), 4_000_000, 6_000_000));
        let fixed = run(3_000_000_000, 1000, BY_WORK);
        assert_eq!(of(&four, &fixed).0, clock("a run ends by the clock"));
        let elapsed = "the elapsed time".to_string();
        assert_eq!(of(&fixed, &run(2_990_000_000, 2000, BY_WORK)).0, elapsed, "each ends with its work");
        assert_eq!(of(&four, &run(3_000_000_000, 0, BY_CLOCK)).0, elapsed, "a run without operations");
        // Older records lack the parameters: then similar elapsed times decide.
        let older = [run(4_000_000_000, 1000, &[]), run(4_010_000_000, 500, &[])];
        assert_eq!(of(&older[0], &older[1]).0, clock("both ran for the same time"));
        assert_eq!(of(&older[0], &run(3_000_000_000, 500, &[])).0, elapsed);
        // A period of fixed work ends with a snapshot.
        let of_period = |operations| Record {
            period: Some(Period { first: 1, last: 2, left_out: Vec::new() }),
            ..run(4_000_000_000, operations, BY_WORK)
        };
        assert_eq!(of(&of_period(10), &of_period(20)).0, clock("both ran for the same time"));
    }
}
