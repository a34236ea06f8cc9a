//! Simulates studies whose truth is known, and judges them by `plumb_proof`.
//!
//! ```text
//! false statements   rate of false differences, equalities, sides and advice
//! situations         rate at which mishaps of studies mislead the former and the present rules
//! coverage           share of intervals that contain the effect, and their width
//! power              blocks until 95% of the studies find a slowdown
//! saving             share of those blocks that a study with early stopping uses
//! ```
//!
//! Studies are made and judged by the code of the laboratory: `design`, `synthetic`, `family`,
//! `best`, `change_point`, `order`, `verdict`. The former rules are the comparison: signed ranks
//! of single runs, Holm over the differences, Holm again over the equalities.
//!
//! Every cell has its own part of the seed. A share of N studies has a standard error of sqrt(p
//! (1-p) / N). Its upper end is that of Clopper and Pearson (1934), 97.5% one-sided.
//!
//! Bound of the saving: with normal noise, no sequential two-sided 5% test with 95% power uses less
//! than 51% of the fixed blocks at the effect that it is sized for (Wald, Wolfowitz 1948, with the
//! formula of Wald 1945).
//!
//! Limits: `synthetic` may differ from a real machine. Tests of order and change are made only for
//! false statements and in the cells that count UNSTABLE, because they decide nothing elsewhere.

mod power;
mod show;
mod situations;
mod study;
pub mod synthetic;

pub(crate) use power::{Coverage, Curve, Power, Saving, Stopped};
pub(crate) use situations::Situation;
pub(crate) use study::Plan;

use plumb_proof::ProofError;
use plumb_proof::interval::Interval;
use plumb_proof::proportion;
use plumb_proof::random::Generator;
use std::panic::resume_unwind;
use study::Judged;
use synthetic::Noise;

const ALPHA: f64 = 0.05;
/// Standard deviation of the log-ratio of two runs (s_d).
const PAIR_DEVIATION: f64 = 0.03;
/// Bound for the upper end of each rate of false statements.
pub const ERROR_MAX: f64 = 0.055;

/// Number of studies and their seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    pub studies: usize,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    pub hits: usize,
    pub studies: usize,
}

impl Share {
    pub fn found(self) -> f64 {
        self.hits as f64 / self.studies.max(1) as f64
    }

    pub fn interval(self) -> Interval {
        proportion::interval(self.hits, self.studies, 0.05)
    }

    /// Returns the upper end of the share's interval.
    pub fn upper(self) -> f64 {
        self.interval().high
    }
}

/// Rates of one kind of study, by noise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub name: String,
    /// One share per noise, in the order of `Noise::ALL`.
    pub shares: Vec<Share>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ErrorRates {
    pub scale: Scale,
    /// Shares of studies with any false statement.
    pub false_statements: Vec<Row>,
    /// Shares of studies that are called UNSTABLE.
    pub unstable: Vec<Row>,
    pub situations: Vec<Situation>,
    /// Coverage of 95% intervals of fixed studies.
    pub coverage: Vec<Coverage>,
    /// Coverage and width of the intervals of studies that stopped.
    pub stopped: Vec<Stopped>,
    /// Shares of studies that find an effect, by their blocks.
    pub curves: Vec<Curve>,
    pub power: Vec<Power>,
    /// Blocks used by studies with early stopping.
    pub savings: Vec<Saving>,
}

pub fn run(scale: Scale) -> Result<ErrorRates, ProofError> {
    Ok(ErrorRates {
        scale,
        false_statements: false_statements(scale)?,
        unstable: unstable(scale)?,
        situations: situations::all(scale)?,
        coverage: power::coverage(scale)?,
        stopped: power::stopped(scale)?,
        curves: power::curves(scale)?,
        power: power::power(scale)?,
        savings: power::savings(scale)?,
    })
}

/// Returns the random numbers of one study of a cell.
fn stream(scale: Scale, cell: usize, study: usize) -> Generator {
    Generator::of_part(scale.seed, (cell as u64) << 32 | study as u64)
}

/// Returns the outcome of each study of a cell, in order. All processors make studies: each study
/// has its own random numbers, so the result does not depend on which processor makes it.
pub fn each<T: Send, E: Send>(
    scale: Scale,
    cell: usize,
    make: impl Fn(&mut Generator) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let servers = std::thread::available_parallelism().map_or(1, usize::from);
    let share = scale.studies.div_ceil(servers).max(1);
    let made = |server: usize| {
        let studies = server * share..scale.studies.min((server + 1) * share);
        studies.map(|study| make(&mut stream(scale, cell, study))).collect::<Result<Vec<T>, E>>()
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let made = &made;
        let servers: Vec<_> = (0..servers).map(|server| scope.spawn(move || made(server))).collect();
        servers.into_iter().map(|server| server.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut all = Vec::with_capacity(scale.studies);
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}

/// Returns the share of studies for which a predicate is true.
fn count(
    scale: Scale,
    cell: usize,
    holds: impl Fn(&mut Generator) -> Result<bool, ProofError> + Sync,
) -> Result<Share, ProofError> {
    let hits = each(scale, cell, holds)?.into_iter().filter(|holds| *holds).count();
    Ok(Share { hits, studies: scale.studies })
}

fn false_statements(scale: Scale) -> Result<Vec<Row>, ProofError> {
    let plans = [
        Plan::single(6),
        Plan::single(9),
        Plan::single(24),
        Plan::factorial(9),
        Plan::factorial(20),
        Plan::single(24).until_decided(),
        Plan::factorial(20).until_decided(),
        Plan::single(9).judged_as_before(),
        Plan::factorial(9).judged_as_before(),
        Plan::factorial(20).judged_as_before(),
    ];
    let mut rows = Vec::new();
    for (row, plan) in plans.iter().enumerate() {
        let mut shares = Vec::new();
        for (column, noise) in Noise::ALL.into_iter().enumerate() {
            let cell = 100 + 20 * row + column;
            shares.push(count(scale, cell, |generator| Ok(plan.run(noise, generator)?.says_falsely()))?);
        }
        rows.push(Row { name: plan.name(), shares });
    }
    Ok(rows)
}

fn unstable(scale: Scale) -> Result<Vec<Row>, ProofError> {
    // A fortieth of the studies, because each makes thousands of shuffles.
    let scale = Scale { studies: scale.studies / 40, ..scale };
    let mut rows = Vec::new();
    for (row, (blocks, percent)) in [(9, 0.0), (20, 0.0), (9, 5.0), (20, 5.0)].into_iter().enumerate() {
        let plan = Plan::single(blocks).slower_by(percent);
        let mut shares = Vec::new();
        for (column, noise) in Noise::ALL.into_iter().enumerate() {
            let cell = 400 + 20 * row + column;
            shares.push(count(scale, cell, |generator| {
                plan.run(noise, generator).map(|judged: Judged| judged.is_unstable(0))
            })?);
        }
        rows.push(Row { name: format!("1 claim, {blocks} blocks, {percent}%"), shares });
    }
    Ok(rows)
}

/// A goal and the measured value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Goal {
    pub text: String,
    pub found: String,
    pub reached: Reached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    Yes,
    No,
}

impl Reached {
    fn when(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

impl ErrorRates {
    /// Returns the goals, each with its outcome.
    pub fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        for row in self.false_statements.iter().filter(|row| !row.name.starts_with("before")) {
            let named = row.shares.iter().zip(Noise::ALL);
            let (worst, noise) = named
                .max_by(|(one, _), (two, _)| one.upper().total_cmp(&two.upper()))
                .unwrap_or((&Share { hits: 0, studies: 0 }, Noise::Lognormal));
            goals.push(Goal {
                text: format!("a false statement in at most 5.5% of studies, upper end: {}", row.name),
                found: format!(
                    "{:.2}%, upper end {:.2}% ({})",
                    100.0 * worst.found(),
                    100.0 * worst.upper(),
                    noise.name()
                ),
                reached: Reached::when(worst.upper() <= ERROR_MAX),
            });
        }
        for row in &self.unstable {
            let clean = row.shares[0];
            goals.push(Goal {
                text: format!("UNSTABLE in at most 5% on lognormal noise: {}", row.name),
                found: format!("{:.2}%", 100.0 * clean.found()),
                reached: Reached::when(clean.found() <= 0.05),
            });
        }
        goals.extend(self.power.iter().filter_map(Power::goal));
        goals.extend(self.savings.iter().filter_map(Saving::goal));
        goals.extend(self.stopped.iter().map(Stopped::goal));
        goals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_calibration_is_within_generous_bounds() {
        let scale = Scale { studies: 20, seed: 1 };
        let found = run(scale).unwrap();
        for row in found.false_statements.iter().filter(|row| !row.name.starts_with("before")) {
            // 5% of 20 is 1; chance gives 6 or more in one of 3,000 cells.
            assert!(row.shares.iter().all(|share| share.hits <= 5), "{row:?}");
        }
        let text = found.to_string();
        assert!(text.contains("\nGoals\n") && text.lines().all(|line| line.chars().count() <= 140), "{text}");
        assert_eq!(found, run(scale).unwrap(), "the same seed gives the same figures");
    }
}
