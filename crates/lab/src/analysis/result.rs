//! What a study's report is made from, and what a bundle keeps of its analysis.
//!
//! Plain data, as in the context of a run: whoever analysed the runs fills it, and this crate
//! renders it. Units end the names. Effects are ratios of treatment to reference, 1 where there is no
//! effect; per cent are left to the renderers. What follows from other fields is not kept: the
//! unaccounted part of a difference, counts of claims by verdict, the study's worst verdict.
//!
//! Indices: an arm is its place in [`Analysis::arms`]. A block has a slot for every arm, numbered
//! alike, and one more, the last, in which the reference arm runs a second time (A/A).
//! Blocks are numbered from 1, as they are printed. An open end of an interval is `None`: JSON
//! has no infinity, and too few blocks bound nothing.

use crate::record::{Calibration, Device, Finding, Host, IoProfile, Phase, RunState, Setting};
use serde::{Deserialize, Serialize};

/// The version of the study context written by this crate; it grows when a field changes its meaning or goes.
pub const STUDY_SCHEMA_VERSION: u32 = 1;

/// Everything a study's report says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The context's version: [`STUDY_SCHEMA_VERSION`] when written by this crate.
    pub schema_version: u32,
    /// What was asked, of what, where and when.
    pub header: StudyHeader,
    /// What was varied.
    pub factors: Vec<Factor>,
    /// The combinations of levels that ran.
    pub arms: Vec<Arm>,
    /// How runs were ordered, counted and judged.
    pub design: Design,
    /// The claims in the study file's order, each with its verdict.
    pub claims: Vec<Claim>,
    /// Each factor's effect averaged over the others, for reading; only claims are corrected for.
    pub main_effects: Vec<MainEffect>,
    /// By how much one factor changes another's effect, for reading.
    pub interactions: Vec<Interaction>,
    /// The published table that the study answers to, beside ours; none when there is no such table.
    pub published: Option<PublishedTable>,
    /// The noise, measured on the reference's two runs a block; none before the second block.
    pub floor: Option<NoiseFloor>,
    /// Whether the order of execution mattered; none when too few blocks ran.
    pub order: Option<OrderTest>,
    /// Changes of level within an arm.
    pub changes: Vec<ChangePoint>,
    /// The fewest used blocks in which a change can be found; 0 in studies from before this was kept.
    #[serde(default)]
    pub changes_need_blocks: u64,
    /// Every run in order of execution, warm-ups and failed ones too.
    pub runs: Vec<StudyRun>,
    /// The settings to use; none when nothing was proved better than the reference.
    pub recommendation: Option<Recommendation>,
    /// What the verdicts mean, and what to try next.
    pub findings: Vec<Finding>,
    /// What the study says nothing about, one sentence each.
    pub not_tested: Vec<String>,
    /// What lies under each distinct path.
    pub devices: Vec<Device>,
    /// The device's limits; its shares are those of the arm that reached most.
    pub calibration: Option<Calibration>,
    /// The settings that all arms share, in printing order; those of the factors are in [`Analysis::arms`].
    pub settings: Vec<Setting>,
}

/// What was asked, of what, where and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyHeader {
    /// The study's name, such as `large-sort-parallel`.
    pub name: String,
    /// One line.
    pub title: String,
    /// The question in a sentence or two.
    pub question: String,
    /// Whose conclusions the claims are; empty when they are the study's own.
    pub source: String,
    /// The workload with its size, such as `large-sort, 2,000,000 rows`.
    pub workload: String,
    /// What ran it, such as `the embedded engine`.
    pub target: String,
    /// The statistic that runs are compared by, unless a claim names another.
    pub measure: Measure,
    /// Whether all that was planned ran.
    pub state: StudyState,
    /// The version of the program.
    pub plumb_version: String,
    /// The revision it was built from.
    pub git_revision: Option<String>,
    /// The machine.
    pub host: Host,
    /// Begin of the first run, ISO 8601.
    pub begin_time: String,
    /// End of the last run, ISO 8601.
    pub end_time: String,
    /// From begin to end, preparation and settling included, nanoseconds.
    pub elapsed_ns: u64,
    /// The command as it was typed.
    pub command_line: String,
    /// A hash of the resolved study file: equal hashes are equal studies.
    pub study_hash: String,
}

/// Whether all that was planned ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyState {
    /// It did, or the study stopped by its own rule.
    Finished,
    /// It was stopped from outside; what finished is judged.
    Interrupted,
}

/// A statistic of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Its name, such as `elapsed time of the index build`.
    pub name: String,
    /// The unit of its values as printed, such as `s`.
    pub unit: String,
    /// Which values are better.
    pub better: Better,
}

/// Which values of a measure are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times, waits, bytes moved.
    Lower,
    /// Rates.
    Higher,
}

/// What was varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels.
    pub levels: Vec<Level>,
    /// The level that the reference arm has.
    pub reference: usize,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Its label, such as `TRUE` or `1M`.
    pub label: String,
    /// The settings it stands for.
    pub settings: Vec<Assignment>,
}

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The setting's name.
    pub name: String,
    /// The value as it would be typed.
    pub value: String,
}

/// A combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name, unique in the study, such as `direct=TRUE area=1M`.
    pub name: String,
    /// The index of each factor's level, in the factors' order.
    pub levels: Vec<usize>,
    /// Median of the measure over its counted runs, in the measure's unit; none when none counted.
    pub median: Option<f64>,
    /// Smallest of them.
    pub least: Option<f64>,
    /// Largest of them.
    pub most: Option<f64>,
}

/// How runs were ordered, counted and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Such as `full factorial` or `half fraction, resolution IV`.
    pub kind: String,
    /// Effects that this design cannot tell apart, one sentence each.
    pub confounded: Vec<String>,
    /// The arm that runs twice a block and that others are compared with.
    pub reference_arm: usize,
    /// Such as `every order of a block equally likely`.
    pub order: String,
    /// The seed of the order.
    pub seed: u64,
    /// When the study stops, such as `after 12 blocks` or `when every claim is decided, at most 40 blocks`.
    pub stopping: String,
    /// Blocks planned, a count.
    pub blocks_planned: u64,
    /// Blocks that the analysis used, a count.
    pub blocks_used: u64,
    /// Blocks that ran and were not used.
    pub blocks_marked: Vec<MarkedBlock>,
    /// Warm-up runs, recorded and not counted, a count.
    pub warm_up_runs: u64,
    /// What happens between two runs, so that one does not pay for another.
    pub settling: String,
    /// Error allowed to the whole study, a share: 0.05.
    pub alpha: f64,
    /// Smallest effect worth finding, a share: 0.02.
    pub effect_sought: f64,
}

/// A block that ran and was not used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkedBlock {
    /// The block, from 1.
    pub block: u64,
    /// Why.
    pub reason: String,
}

/// A ratio of treatment to reference with its interval; 1 is no effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The estimate.
    pub ratio: f64,
    /// Lower end; none is unbounded.
    pub low: Option<f64>,
    /// Upper end; none is unbounded.
    pub high: Option<f64>,
    /// The interval's level, a share: 0.95 for one that misses the truth in 5% of studies.
    pub confidence: f64,
}

impl Effect {
    /// The ratio between the ends of its interval.
    pub(crate) fn ends(&self) -> plumb_report::axis::Effect {
        (self.low, self.ratio, self.high)
    }
}

/// One line that says what the evidence proves, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The words before the first figure, such as `PROVED faster`.
    pub label: String,
    /// The whole line, such as `PROVED faster by 62.3% [60.1, 64.0]`.
    pub line: String,
    /// 0 proved, 3 not proved, 4 unstable, 5 invalid, 6 impossible.
    pub exit_code: u8,
}

/// What a verdict means for the claim as it was written before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bearing {
    /// What is proved is what was claimed.
    Holds,
    /// What is proved excludes what was claimed.
    Refuted,
    /// Neither.
    Open,
}

/// A claim and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its key in the study file.
    pub name: String,
    /// The claim in a sentence.
    pub text: String,
    /// What is compared: `direct=TRUE against direct=FALSE, at area=1M`.
    pub comparison: String,
    /// The two arms, when the claim compares two; none for one averaged over arms.
    pub arms: Option<ArmPair>,
    /// The statistic, when it is not the study's own.
    pub measure: Option<Measure>,
    /// The verdict.
    pub verdict: Verdict,
    /// What it means for the claim.
    pub bearing: Bearing,
    /// Why, one sentence each, the decisive one last.
    pub reasons: Vec<String>,
    /// The effect at the level at which the claim was tested; none when no block was usable.
    pub effect: Option<Effect>,
    /// p of "no difference", before correction.
    pub p: Option<f64>,
    /// p after Holm's correction over the study's claims.
    pub adjusted_p: Option<f64>,
    /// Blocks used, a count.
    pub blocks: u64,
    /// About how many more blocks it would take; none when proved, or when no sensible number would do.
    pub blocks_needed: Option<u64>,
    /// Smallest effect that this many blocks find with 80% power, a share.
    pub smallest_effect: Option<f64>,
    /// The test of equality, when the claim asks for it.
    pub equivalence: Option<Equivalence>,
    /// Where a proved difference comes from.
    pub why: Option<Why>,
    /// Bytes over time of a typical run of either arm.
    pub profiles: Option<ProfilePair>,
}

/// Two arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPair {
    /// What the treatment is compared with.
    pub reference: usize,
    /// The treatment.
    pub treatment: usize,
}

/// Two one-sided tests about a margin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// The margin, a share: 0.02 is 2%.
    pub margin: f64,
    /// The larger of the two p.
    pub p: f64,
}

/// An elapsed difference as the sum of the differences of its parts. What the parts leave is unaccounted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// How the sessions' times became parts of the elapsed time, in a sentence.
    pub basis: String,
    /// What runs before: the arm's name, or the level's.
    pub reference: String,
    /// What runs after.
    pub treatment: String,
    /// Mean elapsed time of the reference's counted runs, nanoseconds.
    pub reference_elapsed_ns: u64,
    /// Mean elapsed time of the treatment's counted runs, nanoseconds.
    pub treatment_elapsed_ns: u64,
    /// CPU and each wait event, without the unaccounted rest, in any order.
    pub parts: Vec<WhyPart>,
}

/// CPU, or the wait for one event, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyPart {
    /// `DB CPU` or the event's name.
    pub name: String,
    /// Its wait class; empty for CPU.
    pub wait_class: String,
    /// Its part of the reference's elapsed time, nanoseconds.
    pub reference_ns: u64,
    /// Its part of the treatment's elapsed time, nanoseconds.
    pub treatment_ns: u64,
}

/// The I/O profiles of two runs, to be drawn on the same axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfilePair {
    /// A typical run of the reference.
    pub reference: RunProfile,
    /// A typical run of the treatment.
    pub treatment: RunProfile,
}

/// The I/O profile of one run. Its buckets may be as long as they are: each side keeps its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunProfile {
    /// The arm's name.
    pub arm: String,
    /// The run's number in the bundle: the one with the arm's median, if that is one run.
    pub run: u64,
    /// The run's elapsed time, nanoseconds.
    pub elapsed_ns: u64,
    /// Bytes over time.
    pub profile: IoProfile,
    /// The run's phases.
    pub phases: Vec<Phase>,
}

/// A factor moved from one level to another, averaged over all other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MainEffect {
    /// The factor's name.
    pub factor: String,
    /// The level that is the base.
    pub from: String,
    /// The level it is changed to.
    pub to: String,
    /// The effect.
    pub effect: Effect,
    /// p of "no effect", not corrected.
    pub p: f64,
}

/// By how much the first factor's effect is multiplied when the second is changed too; 1 is not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// The first factor with its change, such as `direct FALSE -> TRUE`.
    pub first: String,
    /// The second, in the same form.
    pub second: String,
    /// The effect.
    pub effect: Effect,
    /// p of "they simply multiply", not corrected.
    pub p: f64,
}

/// A published table and ours, in the published layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// Its title.
    pub title: String,
    /// Where it stands, and what it was measured on.
    pub source: String,
    /// Names of the columns that label the rows, such as `async` and `area`.
    pub row_labels: Vec<String>,
    /// Titles of the columns of values, such as `direct FALSE`.
    pub columns: Vec<String>,
    /// The rows; the first value of the first row is what the others are a share of.
    pub rows: Vec<PublishedRow>,
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// One for each of [`PublishedTable::row_labels`].
    pub labels: Vec<String>,
    /// The published times, seconds, one a column; none where the table has a gap.
    pub published_s: Vec<Option<f64>>,
    /// The arm of each column; none where none ran.
    pub arms: Vec<Option<usize>>,
}

/// The noise, measured on the reference's two runs a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Standard deviation of the natural logarithms of the A/A ratios.
    pub deviation: f64,
    /// The same from the median absolute deviation.
    pub robust_deviation: f64,
    /// Pairs it was measured on, a count.
    pub blocks: u64,
    /// Variance of a run about its block, squared log units.
    pub within: f64,
    /// Variance of the blocks' levels, squared log units.
    pub between: f64,
    /// The second reference run against the first: an effect known to be none.
    pub aa: Option<Effect>,
    /// p of the A/A comparison.
    pub aa_p: Option<f64>,
    /// Smallest effect that the blocks used find with 80% power at the first step of Holm, a share.
    pub smallest_effect: f64,
}

/// Whether the order of execution mattered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderTest {
    /// p of "the position in the block does not matter".
    pub position_p: f64,
    /// By position, from the first.
    pub positions: Vec<OrderShift>,
    /// p of "the run before does not matter".
    pub carry_over_p: f64,
    /// By the run before.
    pub predecessors: Vec<OrderShift>,
    /// p of "the level does not drift over the blocks".
    pub drift_p: f64,
    /// Ratio of one block's level to the one before.
    pub drift_per_block: f64,
}

/// A group of runs against what their arm and block let expect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderShift {
    /// The position, or the arm that ran before.
    pub name: String,
    /// The ratio; 1 is as expected.
    pub ratio: f64,
}

/// A change of level within an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// The arm's name.
    pub arm: String,
    /// In what it was found: `its ratio to the reference` or `its own figures`.
    pub series: String,
    /// The first block after it, from 1.
    pub block: u64,
    /// Level after over level before.
    pub ratio: f64,
    /// p of "the level does not change".
    pub p: f64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// Its number in the bundle, from 1, in order of execution: the record is `runs/NNNN.json`.
    pub number: u64,
    /// Its block, from 1; none for a warm-up.
    pub block: Option<u64>,
    /// Its place in the order of its block, from 1.
    pub position: u64,
    /// Its slot; the one beyond the arms is the reference's second run.
    pub slot: usize,
    /// Its arm.
    pub arm: usize,
    /// From the study's begin to the begin of what was timed, nanoseconds.
    pub start_ns: u64,
    /// The elapsed time of what was timed, nanoseconds; none when it did not finish.
    pub elapsed_ns: Option<u64>,
    /// The study's measure in its unit; none when it did not finish.
    pub value: Option<f64>,
    /// Whether it counts, and why not.
    pub counted: Counted,
    /// Whether its receipts held and its result was verified; none when it did not finish.
    pub validity: Option<RunState>,
    /// The basis of that in a line, such as `3 of 3 checks passed, 15 of 15 receipts held`.
    pub basis: String,
}

/// Whether a run counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Counted {
    /// It does.
    Yes,
    /// It warmed up.
    WarmUp,
    /// Its block is marked.
    No {
        /// Why this run does not count.
        reason: String,
    },
}

/// The settings to use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The arm it rests on.
    pub arm: usize,
    /// The settings.
    pub settings: Vec<Assignment>,
    /// What the gain is against, such as the reference arm's name.
    pub against: String,
    /// The gain to expect, as the ratio of the measure; below 1 is a gain where lower is better.
    pub gain: Effect,
    /// Which claims it rests on, and what it costs.
    pub evidence: String,
}
