//! What the methods of this crate do to data whose truth is known.
//!
//! ```text
//! false proofs   studies in which nothing differs: how often is a difference called proved?
//! coverage       studies with a 5% slowdown: how often does the interval hold it?
//! power          how many blocks until 95% of the studies find a slowdown?
//! saving         how many of those blocks does stopping early spend?
//! ```
//!
//! Every cell runs whole studies through `design`, `synthetic`, `effect` and the tests, as the
//! laboratory would, with its own part of the seed. A share of N studies has a standard error
//! of sqrt(p (1-p) / N): half a per cent at 5% and 2,000 studies. It is printed, and an error
//! rate meets its goal unless it exceeds it by more than two of them: the tests spend nearly
//! all of the 5%, so that half of all correct cells would otherwise seem to fail.
//!
//! What saving is possible: no sequential test of a two-sided 5% with 95% power spends less
//! than 51% of the fixed blocks at the very effect it is sized for, if the noise is normal
//! (Wald, Wolfowitz 1948, with the formula of Wald 1945). Larger effects stop sooner, down to
//! the exact minimum of blocks.
//!
//! Limits: of a sequential study of many claims only Holm's first step is walked, because in
//! a study without any true effect no other step is reached before it. Whether
//! `synthetic` resembles a real machine is not asked here.

use std::fmt;

use crate::ProofError;
use crate::design::{Order, Schedule};
use crate::effect::Observations;
use crate::multiple::{self, Outcome};
use crate::permutation::{self, Statistic};
use crate::random::Generator;
use crate::sequential::{self, Monitor, Spending};
use crate::signed_rank;
use crate::summary::doubled_ranks;
use crate::synthetic::{Noise, Study};

const ALPHA: f64 = 0.05;
/// s_d: deviation of the log-ratio of two runs.
const PAIR_DEVIATION: f64 = 0.03;
const FIXED_BLOCKS: usize = 12;
const PLANNED_BLOCKS: usize = 40;
const CLAIMS: usize = 20;
/// Blocks of the studies in which power is looked for.
const POWER_BLOCKS_MAX: usize = 60;
/// The slowdowns that sequential designs are sized for, in per cent, and the blocks in
/// which their fixed counterpart is looked for.
const SIZES: [(f64, usize); 3] = [(5.0, 30), (2.0, 60), (1.0, 180)];

/// How much to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Studies in each cell.
    pub studies: usize,
    /// Seed of everything.
    pub seed: u64,
}

/// How a study decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// 12 blocks, one claim.
    Fixed,
    /// 12 blocks, 20 claims, Holm; none is true.
    FixedStudy,
    /// 12 blocks, 20 claims, Holm; half are true.
    FixedHalfTrue,
    /// Looked at after each of 40 blocks, one claim.
    Sequential,
    /// The same without a planned end, cut off after 80 blocks.
    SequentialOpen,
    /// Looked at after each of 40 blocks, 20 claims.
    SequentialStudy,
    /// For contrast: the fixed test at each of 40 blocks, stopping at the first p below 5%.
    Peeking,
}

impl Method {
    const ALL: [Self; 7] = [
        Self::Fixed,
        Self::FixedStudy,
        Self::FixedHalfTrue,
        Self::Sequential,
        Self::SequentialOpen,
        Self::SequentialStudy,
        Self::Peeking,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed, 1 claim",
            Self::FixedStudy => "fixed, 20 claims",
            Self::FixedHalfTrue => "fixed, 20 claims, 10 true",
            Self::Sequential => "sequential, 1 claim",
            Self::SequentialOpen => "sequential, no planned end",
            Self::SequentialStudy => "sequential, 20 claims",
            Self::Peeking => "(naive peeking, 1 claim)",
        }
    }

    fn blocks(self) -> usize {
        match self {
            Self::Fixed | Self::FixedStudy | Self::FixedHalfTrue => FIXED_BLOCKS,
            Self::Sequential | Self::SequentialStudy | Self::Peeking => PLANNED_BLOCKS,
            Self::SequentialOpen => 2 * PLANNED_BLOCKS,
        }
    }

    fn claims(self) -> usize {
        match self {
            Self::FixedStudy | Self::FixedHalfTrue | Self::SequentialStudy => CLAIMS,
            _ => 1,
        }
    }
}

/// A share of studies and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The share.
    pub found: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Share {
    fn of(hits: usize, studies: usize) -> Self {
        let found = hits as f64 / studies.max(1) as f64;
        Self { found, standard_error: (found * (1.0 - found) / studies.max(1) as f64).sqrt() }
    }
}

/// How often something that is not so was called proved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalseProof {
    /// How the study decides.
    pub method: Method,
    /// How the machine misbehaves.
    pub noise: Noise,
    /// Share of studies with at least one false proof.
    pub share: Share,
}

/// How often the interval held the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Blocks of a fixed study; none for the interval at the time a sequential one stopped.
    pub fixed_blocks: Option<usize>,
    /// How the machine misbehaves.
    pub noise: Noise,
    /// Share of intervals that hold the truth.
    pub share: Share,
}

/// What it takes to find a slowdown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// The slowdown in per cent.
    pub percent: f64,
    /// How the machine misbehaves.
    pub noise: Noise,
    /// Fewest blocks from which on 95% of the studies find it; none within 60.
    pub blocks: Option<usize>,
}

/// What stopping early spends, on lognormal noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saving {
    /// The slowdown that both designs are sized for, in per cent.
    pub sized_for: f64,
    /// The true slowdown.
    pub percent: f64,
    /// Blocks of the fixed study with 95% power for the slowdown it is sized for.
    pub fixed: usize,
    /// Most blocks of the sequential study with the same power.
    pub planned: usize,
    /// Blocks it spends on average; with no effect it stops when equality within the
    /// sized-for margin is proved.
    pub mean_blocks: f64,
    /// Share decided: proved different, or equal where nothing differs.
    pub decided: Share,
}

/// The figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// What was run.
    pub scale: Scale,
    /// False proofs.
    pub false_proofs: Vec<FalseProof>,
    /// Coverage of 95% intervals.
    pub coverage: Vec<Coverage>,
    /// Blocks to 95% power.
    pub power: Vec<Power>,
    /// Blocks spent by stopping early.
    pub savings: Vec<Saving>,
}

/// A goal and what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The goal in words.
    pub text: String,
    /// What was found.
    pub found: String,
    /// Whether it was reached.
    pub reached: Reached,
}

/// Reached or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// It was.
    Yes,
    /// It was not.
    No,
}

/// Runs all cells.
pub fn run(scale: Scale) -> Result<Calibration, ProofError> {
    Ok(Calibration {
        scale,
        false_proofs: false_proofs(scale)?,
        coverage: coverage(scale)?,
        power: power(scale)?,
        savings: savings(scale)?,
    })
}

/// The stream of a study of a cell.
fn stream(scale: Scale, cell: usize, study: usize) -> Generator {
    Generator::of_part(scale.seed, (cell as u64) << 32 | study as u64)
}

fn study(
    arms: usize,
    blocks: usize,
    effects: &[f64],
    noise: Noise,
    generator: &mut Generator,
) -> Result<Observations, ProofError> {
    let schedule = Schedule { arms, reference: 0, seed: generator.bits(), order: Order::Shuffled };
    let sigma = PAIR_DEVIATION / std::f64::consts::SQRT_2;
    Ok(Study { schedule, blocks, effects, noise, sigma }.run(generator)?.0)
}

fn false_proofs(scale: Scale) -> Result<Vec<FalseProof>, ProofError> {
    let mut rows = Vec::new();
    for (row, method) in Method::ALL.into_iter().enumerate() {
        for (column, noise) in Noise::ALL.into_iter().enumerate() {
            let mut hits = 0;
            for index in 0..scale.studies {
                let mut generator = stream(scale, 100 + 10 * row + column, index);
                hits += usize::from(proves_falsely(method, noise, &mut generator)?);
            }
            rows.push(FalseProof { method, noise, share: Share::of(hits, scale.studies) });
        }
    }
    Ok(rows)
}

fn proves_falsely(method: Method, noise: Noise, generator: &mut Generator) -> Result<bool, ProofError> {
    let claims = method.claims();
    let mut effects = vec![0.0; claims + 1];
    let true_claims = if method == Method::FixedHalfTrue { claims / 2 } else { 0 };
    effects[1..=true_claims].fill(1.2f64.ln());
    let seen = study(claims + 1, method.blocks(), &effects, noise, generator)?;
    let differences =
        (1..=claims).map(|slot| seen.log_ratios(slot, 0)).collect::<Result<Vec<_>, ProofError>>()?;
    let planned = Spending::Planned { blocks: PLANNED_BLOCKS };
    Ok(match method {
        Method::Fixed | Method::FixedStudy | Method::FixedHalfTrue => {
            let p: Vec<f64> =
                differences.iter().map(|d| permutation::test(d, 0.0, Statistic::SignedRank, 0).p).collect();
            multiple::holm(&p, ALPHA)[true_claims..].iter().any(|step| step.outcome == Outcome::Proved)
        }
        Method::Sequential | Method::SequentialStudy => {
            let level = ALPHA / claims as f64;
            differences.iter().any(|d| sequential::crossing(d, 0.0, level, planned).is_some())
        }
        Method::SequentialOpen => {
            let open = Spending::Open { scale: FIXED_BLOCKS };
            differences.iter().any(|d| sequential::crossing(d, 0.0, ALPHA, open).is_some())
        }
        Method::Peeking => (1..=PLANNED_BLOCKS).any(|blocks| rejects(&differences[0][..blocks])),
    })
}

/// The fixed two-sided signed-rank test at 5%.
fn rejects(differences: &[f64]) -> bool {
    rejects_beyond(differences, signed_rank::cut(differences.len(), ALPHA))
}

/// The same with the critical value at hand.
fn rejects_beyond(differences: &[f64], cut: usize) -> bool {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let (mut below, mut above) = (0, 0);
    for (rank, difference) in doubled_ranks(&sizes).iter().zip(differences) {
        if *difference < 0.0 {
            below += rank;
        } else {
            above += rank;
        }
    }
    below.min(above) < 2 * cut
}

fn coverage(scale: Scale) -> Result<Vec<Coverage>, ProofError> {
    let truth = 1.05f64.ln();
    let planned = Spending::Planned { blocks: PLANNED_BLOCKS };
    let mut rows = Vec::new();
    for (row, fixed_blocks) in [Some(8), Some(12), Some(20), None].into_iter().enumerate() {
        for (column, noise) in Noise::ALL.into_iter().enumerate() {
            let mut hits = 0;
            for index in 0..scale.studies {
                let mut generator = stream(scale, 200 + 10 * row + column, index);
                let blocks = fixed_blocks.unwrap_or(PLANNED_BLOCKS);
                let seen = study(2, blocks, &[0.0, truth], noise, &mut generator)?.log_ratios(1, 0)?;
                let interval = if fixed_blocks.is_some() {
                    permutation::interval(&seen, ALPHA, Statistic::SignedRank, 0)
                } else {
                    let stop = sequential::crossing(&seen, 0.0, ALPHA, planned).map_or(blocks, |c| c.block);
                    sequential::interval(&seen[..stop], ALPHA, planned)
                };
                hits += usize::from(interval.contains(truth));
            }
            rows.push(Coverage { fixed_blocks, noise, share: Share::of(hits, scale.studies) });
        }
    }
    Ok(rows)
}

fn power(scale: Scale) -> Result<Vec<Power>, ProofError> {
    let mut rows = Vec::new();
    for (row, percent) in [5.0, 2.0].into_iter().enumerate() {
        for (column, noise) in Noise::ALL.into_iter().enumerate() {
            let cell = 300 + 10 * row + column;
            let search = Search { cell, percent, noise, most: POWER_BLOCKS_MAX };
            rows.push(Power { percent, noise, blocks: search.run(scale)? });
        }
    }
    Ok(rows)
}

/// One cell of fixed studies.
struct Search {
    cell: usize,
    percent: f64,
    noise: Noise,
    most: usize,
}

impl Search {
    /// The fewest blocks from which on the fixed test has 95% power. Each study is tested after
    /// each of its blocks, which is no peeking: counts of different block numbers are never joined.
    fn run(&self, scale: Scale) -> Result<Option<usize>, ProofError> {
        let cuts: Vec<usize> = (0..=self.most).map(|blocks| signed_rank::cut(blocks, ALPHA)).collect();
        let mut found = vec![0usize; self.most + 1];
        let effects = [0.0, crate::effect::log_ratio(self.percent)];
        for index in 0..scale.studies {
            let mut generator = stream(scale, self.cell, index);
            let seen = study(2, self.most, &effects, self.noise, &mut generator)?.log_ratios(1, 0)?;
            for blocks in 1..=self.most {
                found[blocks] += usize::from(rejects_beyond(&seen[..blocks], cuts[blocks]));
            }
        }
        let enough = |count: &usize| *count as f64 >= 0.95 * scale.studies as f64;
        let last_short = found.iter().rposition(|count| !enough(count)).unwrap_or(0);
        Ok((last_short < self.most).then_some(last_short + 1))
    }
}

fn savings(scale: Scale) -> Result<Vec<Saving>, ProofError> {
    let mut rows = Vec::new();
    for (row, (sized_for, most)) in SIZES.into_iter().enumerate() {
        let cell = 400 + 10 * row;
        let search = Search { cell, percent: sized_for, noise: Noise::Lognormal, most };
        let Some(fixed) = search.run(scale)? else { continue };
        // The fewest planned blocks with the same power; power grows with them.
        let (mut low, mut high) = (fixed, 2 * fixed);
        while low < high {
            let middle = (low + high) / 2;
            let trial = Trial { cell: cell + 1, sized_for, percent: sized_for, planned: middle };
            if trial.run(scale)?.1.found >= 0.95 {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        for (column, factor) in [0.0, 1.0, 1.5, 2.0, 3.0].into_iter().enumerate() {
            let percent = factor * sized_for;
            let trial = Trial { cell: cell + 2 + column, sized_for, percent, planned: low };
            let (mean_blocks, decided) = trial.run(scale)?;
            rows.push(Saving { sized_for, percent, fixed, planned: low, mean_blocks, decided });
        }
    }
    Ok(rows)
}

/// One cell of sequential studies.
struct Trial {
    cell: usize,
    sized_for: f64,
    percent: f64,
    planned: usize,
}

impl Trial {
    /// Mean blocks and the share decided rightly.
    fn run(&self, scale: Scale) -> Result<(f64, Share), ProofError> {
        let spending = Spending::Planned { blocks: self.planned };
        let effect = crate::effect::log_ratio(self.percent);
        let (mut blocks, mut decided) = (0usize, 0usize);
        for index in 0..scale.studies {
            let mut generator = stream(scale, self.cell, index);
            let seen =
                study(2, self.planned, &[0.0, effect], Noise::Lognormal, &mut generator)?.log_ratios(1, 0)?;
            let mut monitor = Monitor::new(&[ALPHA], spending);
            let different = seen.iter().find_map(|difference| monitor.push(*difference)).map(|c| c.block);
            let equal = if self.percent == 0.0 {
                sequential::equivalent_since(&seen, self.sized_for / 100.0, ALPHA, spending)
            } else {
                None
            };
            let right = if self.percent == 0.0 { equal } else { different };
            decided += usize::from(right.is_some());
            let stop = different.unwrap_or(self.planned).min(equal.unwrap_or(self.planned));
            blocks += stop;
        }
        Ok((blocks as f64 / scale.studies.max(1) as f64, Share::of(decided, scale.studies)))
    }
}

impl Calibration {
    /// The goals and whether they were reached.
    pub fn goals(&self) -> Vec<Goal> {
        let mut goals = vec![
            self.error_goal("a false proof in at most 5% of single claims", 1),
            self.error_goal("a false proof in at most 5% of studies of 20 claims", CLAIMS),
            self.coverage_goal("fixed 95% intervals cover 93% to 97%", |row| row.fixed_blocks.is_some()),
            self.coverage_goal("95% intervals at an early stop do", |row| row.fixed_blocks.is_none()),
            self.power_goal("5% found with 95% power in at most 12 blocks", 5.0, 12),
            self.power_goal("2% found with 95% power in at most 40 blocks", 2.0, 40),
        ];
        for row in &self.savings {
            let Saving { sized_for, percent, fixed, mean_blocks, .. } = *row;
            if percent == sized_for || percent == 2.0 * sized_for {
                let share = mean_blocks / fixed as f64;
                goals.push(Goal {
                    text: format!("half the blocks: sized for {sized_for}%, the truth is {percent}%"),
                    found: format!("{:.0}%", 100.0 * share),
                    reached: reached(share <= 0.5),
                });
            }
        }
        goals
    }

    fn error_goal(&self, text: &str, claims: usize) -> Goal {
        let rows = self.false_proofs.iter().filter(|row| row.method != Method::Peeking);
        let rows = rows.filter(|row| row.method.claims() == claims);
        let largest = rows.map(|row| row.share).max_by(|a, b| a.found.total_cmp(&b.found));
        let Share { found, standard_error } = largest.unwrap_or(Share { found: 1.0, standard_error: 0.0 });
        Goal {
            text: text.to_string(),
            found: format!("at most {:.2} +-{:.2}%", 100.0 * found, 100.0 * standard_error),
            reached: reached(found <= ALPHA + 2.0 * standard_error),
        }
    }

    fn coverage_goal(&self, text: &str, chosen: impl Fn(&Coverage) -> bool) -> Goal {
        let shares = self.coverage.iter().filter(|row| chosen(row)).map(|row| row.share.found);
        let (low, high) = shares.fold((1.0f64, 0.0f64), |(low, high), c| (low.min(c), high.max(c)));
        Goal {
            text: text.to_string(),
            found: format!("{:.2}% to {:.2}%", 100.0 * low, 100.0 * high),
            reached: reached(low >= 0.93 && high <= 0.97),
        }
    }

    fn power_goal(&self, text: &str, percent: f64, most: usize) -> Goal {
        let rows = self.power.iter().filter(|row| row.percent == percent && row.noise == Noise::Lognormal);
        let blocks = rows.filter_map(|row| row.blocks).max();
        let found = blocks.map_or("not within 60 blocks".to_string(), |blocks| format!("{blocks} blocks"));
        Goal { text: text.to_string(), found, reached: reached(blocks.is_some_and(|blocks| blocks <= most)) }
    }
}

fn reached(condition: bool) -> Reached {
    if condition { Reached::Yes } else { Reached::No }
}

impl fmt::Display for Calibration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scale { studies, seed } = self.scale;
        writeln!(out, "{studies} studies a cell, seed {seed}; s_d {:.0}%", 100.0 * PAIR_DEVIATION)?;
        heading(out, "False proofs, % of studies")?;
        for method in Method::ALL {
            let cells = self.false_proofs.iter().filter(|row| row.method == method);
            shares(out, method.name(), cells.map(|row| row.share))?;
        }
        heading(out, "Coverage of 95% intervals, %")?;
        for fixed in [Some(8), Some(12), Some(20), None] {
            let name = fixed.map_or("at an early stop".to_string(), |blocks| format!("{blocks} blocks"));
            let cells = self.coverage.iter().filter(|row| row.fixed_blocks == fixed);
            shares(out, &name, cells.map(|row| row.share))?;
        }
        heading(out, "Blocks to 95% power")?;
        for percent in [5.0, 2.0] {
            write!(out, "{:<28}", format!("{percent}% slowdown"))?;
            for row in self.power.iter().filter(|row| row.percent == percent) {
                write!(out, "{:>15}", row.blocks.map_or("> 60".to_string(), |blocks| blocks.to_string()))?;
            }
            writeln!(out)?;
        }
        writeln!(out, "\nBlocks spent by stopping early, lognormal noise")?;
        writeln!(out, "sized for    true effect    fixed    planned    mean    of fixed    decided")?;
        for row in &self.savings {
            let Saving { sized_for, percent, fixed, planned, mean_blocks, decided } = row;
            let (share, decided) = (100.0 * mean_blocks / *fixed as f64, 100.0 * decided.found);
            writeln!(
                out,
                "{sized_for:>8}% {percent:>13}% {fixed:>8} {planned:>10} {mean_blocks:>7.1} {share:>10.0}% {decided:>9.1}%"
            )?;
        }
        writeln!(out, "\nGoals")?;
        for Goal { text, found, reached } in self.goals() {
            let mark = if reached == Reached::Yes { "reached" } else { "NOT REACHED" };
            writeln!(out, "{mark:<12} {text}: {found}")?;
        }
        Ok(())
    }
}

/// A caption and the names of the noise models.
fn heading(out: &mut fmt::Formatter<'_>, caption: &str) -> fmt::Result {
    write!(out, "\n{caption:<28}")?;
    Noise::ALL.into_iter().try_for_each(|noise| write!(out, "{:>15}", noise.name()))?;
    writeln!(out)
}

fn shares(out: &mut fmt::Formatter<'_>, name: &str, cells: impl Iterator<Item = Share>) -> fmt::Result {
    write!(out, "{name:<28}")?;
    for Share { found, standard_error } in cells {
        write!(out, "{:>15}", format!("{:.2} +-{:.2}", 100.0 * found, 100.0 * standard_error))?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_calibration_is_within_generous_bounds() {
        let scale = Scale { studies: 100, seed: 1 };
        let found = run(scale).unwrap();
        for row in found.false_proofs.iter().filter(|row| row.method != Method::Peeking) {
            assert!(row.share.found <= 0.13, "{row:?}");
        }
        assert!(found.false_proofs.iter().any(|row| row.method == Method::Peeking && row.share.found > 0.13));
        for row in &found.coverage {
            assert!(row.share.found >= 0.87, "{row:?}");
        }
        assert!(found.to_string().contains("\nGoals\n"));
        assert_eq!(found, run(scale).unwrap(), "the same seed gives the same figures");
    }
}
