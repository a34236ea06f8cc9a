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

use crate::bundle::Environment;
use crate::definition::Study;
use crate::vocabulary::{Assignment, Measure};
use plumb_proof::equivalence::Equivalence;
use plumb_proof::noise::Floor;
use plumb_proof::order::{After, OrderReport};
pub use plumb_proof::verdict::Standing;
use plumb_proof::verdict::Verdict;
use plumb_record::{Fact, Finding, IoProfile, MeasuredLimits, Phase, RunState, SettingRow};
use serde::Serialize;

/// The version of the study context written by this crate; it grows when a field changes its meaning or goes.
pub const ANALYSIS_SCHEMA_VERSION: u32 = 6;

/// Everything a study's report says.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    pub schema_version: u32,
    pub study: Study,
    /// A hash of the study as text: equal hashes are equal studies.
    pub study_hash: String,
    /// Where it ran, and by which program.
    pub environment: Environment,
    /// SHA-256 of the checksums of all files that this rests on; none of what no bundle keeps.
    pub evidence_hash: Option<String>,
    /// Whether all that was planned ran.
    pub state: StudyState,
    /// End of the last run, ISO 8601.
    pub end_time: String,
    /// From begin to end, preparation and settling included, nanoseconds.
    pub elapsed_ns: u64,
    /// The combinations of levels that ran.
    pub arms: Vec<Arm>,
    /// How runs were ordered and counted.
    pub design: Design,
    /// The claims in the study's order, each with its verdict.
    pub claims: Vec<JudgedClaim>,
    /// Each factor's effect averaged over the others, for reading, but for what a claim says; the
    /// intervals of all rows hold together.
    pub main_effects: Vec<MainEffect>,
    /// By how much one factor changes another's effect, likewise.
    pub interactions: Vec<Interaction>,
    /// The noise, measured on the reference's two runs a block; none before the second block.
    pub floor: Option<NoiseFloor>,
    /// Whether the order of execution mattered; none when too few blocks ran.
    pub order: Option<OrderReport>,
    /// Changes of level within an arm.
    pub changes: Vec<LevelChange>,
    /// What work that no treatment touches took before each run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub canary: Vec<CanaryFigure>,
    /// What the hypervisor gave to other guests during the runs; none where no run says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen: Option<StolenFigure>,
    /// Runs of used blocks whose circumstances make them doubtful; none where no run was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubtful: Option<DoubtfulRuns>,
    /// The fewest used blocks in which a change can be found.
    pub changes_need_blocks: u64,
    /// The fewest in which a change of the canary can be found.
    pub canary_needs_blocks: u64,
    /// Every run in order of execution, warm-ups and failed ones too.
    pub runs: Vec<StudyRun>,
    /// The settings to use; none when nothing was proved better than the reference.
    pub recommendation: Option<Recommendation>,
    /// What the verdicts mean, and what to try next.
    pub findings: Vec<Finding>,
    /// What the study says nothing about, one sentence each.
    pub not_tested: Vec<String>,
    /// The device's limits; its shares are those of the arm that reached most.
    pub calibration: Option<MeasuredLimits>,
    /// The settings that all arms share, in printing order; those of the factors are in the study.
    pub settings: Vec<SettingRow>,
}

/// Whether all that was planned ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyState {
    /// It did, or the study stopped by its own rule.
    Finished,
    /// It was stopped from outside; what finished is judged.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// Its name, unique in the study, such as `direct=TRUE area=1M`.
    pub name: String,
    /// The index of each factor's level, in the factors' order.
    pub levels: Vec<usize>,
    /// Median of the measure over its counted runs, in the measure's unit; none when none counted.
    pub median: Option<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
}

/// How runs were ordered, counted and judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Blocks that the analysis used, a count.
    pub blocks_used: u64,
    /// Blocks that ran and were not used.
    pub blocks_marked: Vec<MarkedBlock>,
    /// Warm-up runs, recorded and not counted, a count.
    pub warm_up_runs: u64,
    /// What happens between two runs, so that one does not pay for another.
    pub settling: String,
    /// From the study's begin, or where it was resumed, to the canary of the first run: what was made and loaded, nanoseconds.
    pub loading_ns: u64,
    /// What the canaries before all runs took, nanoseconds.
    pub canary_ns: u64,
    /// What no draw decided, in a sentence.
    pub not_randomised: String,
}

/// A block that ran and was not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkedBlock {
    pub block: u64,
    pub reason: String,
}

/// A ratio of treatment to reference with its interval; 1 is no effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
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
    pub fn ends(&self) -> plumb_report::axis::Effect {
        (self.low, self.ratio, self.high)
    }
}

/// What a verdict means for the claim as it was written before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// What is proved is what was claimed.
    Holds,
    /// What is proved excludes what was claimed.
    Refuted,
    Open,
}

/// A claim and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedClaim {
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
    pub verdict: Verdict,
    /// Whether nothing but the request shows that what was proved comes from what is claimed.
    pub asked_only: bool,
    /// What it means for the claim.
    pub outcome: ClaimOutcome,
    /// Why, one sentence each, the decisive one last.
    pub reasons: Vec<String>,
    /// The typical effect: the pseudo-median of the log-ratios within blocks. Its interval has the
    /// level at which those of all claims hold together, or that of the claim's own step where only
    /// its step proves it; none when no block was usable.
    pub effect: Option<Effect>,
    /// The ratio of the means of all runs at the same level, of rates the harmonic ones; none of an interaction.
    pub average: Option<Effect>,
    /// p of "both arms are as even as each other"; none where it cannot be told.
    pub shape_p: Option<f64>,
    /// p of "the effect does not wander from block to block"; none of fewer blocks than tell it.
    pub wanders_p: Option<f64>,
    /// Slow runs of the treatment; none where several arms are compared with several.
    pub slow_runs: Option<SlowShare>,
    /// What runs after the claim's treatment were, against all others; none when none follows it.
    pub carry_over: Option<After>,
    /// p of "no difference", before correction.
    pub p: Option<f64>,
    /// p corrected for the claims that were not settled before this one.
    pub adjusted_p: Option<f64>,
    pub blocks: u64,
    /// About how many more blocks would reach what the verdict says with 80% power; none when
    /// proved, or where no number is planned for.
    pub blocks_needed: Option<u64>,
    /// Smallest effect that this many blocks find with 80% power, a share.
    pub smallest_effect: Option<f64>,
    /// How much of the difference is in what the statistic takes off; none where it takes nothing off, or the whole is not told from nothing.
    pub covered: Option<Covered>,
    /// The test of equality, when the claim asks for it.
    pub equivalence: Option<Equivalence>,
    /// Where a proved difference comes from.
    pub why: Option<Why>,
    /// Bytes over time of a typical run of either arm.
    pub profiles: Option<ProfilePair>,
}

/// The share of a difference that some of its parts have, over blocks: Fieller's interval at 95%, alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covered {
    pub parts: Vec<String>,
    /// What differs as a whole.
    pub of: String,
    /// The share; above 1 where the rest goes the other way.
    pub share: f64,
    /// The least share that agrees with the runs.
    pub low: f64,
    pub high: f64,
}

/// Runs of a treatment that were slower than the median of its reference one and a half times: above so many times the time, or below
/// the rate divided by it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowShare {
    pub slow: u64,
    /// All runs of the treatment, a count.
    pub runs: u64,
    /// The least share that agrees with it, at 95%.
    pub low: f64,
    /// The largest share that agrees with it, at 95%.
    pub high: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ArmPair {
    /// What the treatment is compared with.
    pub reference: usize,
    pub treatment: usize,
}

/// An elapsed difference as the sum of the differences of its parts. What the parts leave is unaccounted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// How the sessions' times became parts of the elapsed time, in a sentence.
    pub basis: String,
    /// The operation that all times are of, where the runs lasted for the same time and did
    /// different work; none where they are of whole runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The whole difference by blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<EndsNanos>,
    /// What runs before: the arm's name, or the level's.
    pub reference: String,
    pub treatment: String,
    /// Mean elapsed time of the reference's counted runs, nanoseconds.
    pub reference_elapsed_ns: u64,
    /// Mean elapsed time of the treatment's counted runs, nanoseconds.
    pub treatment_elapsed_ns: u64,
    /// CPU and each wait event, without the unaccounted rest, in any order.
    pub parts: Vec<WhyPart>,
    /// The phases of the run, in order of their begin; they may overlap.
    pub phases: Vec<PhasePart>,
}

impl Why {
    /// True if the interval of the whole difference excludes 0, so that a part is a share of
    /// something. Without an interval: if there is any difference.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.ends.map_or(self.reference_elapsed_ns != self.treatment_elapsed_ns, EndsNanos::is_told)
    }
}

/// The time of a phase on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhasePart {
    pub name: String,
    /// Its mean time of the reference, nanoseconds.
    pub reference_ns: u64,
    /// Its mean time of the treatment, nanoseconds.
    pub treatment_ns: u64,
    /// The difference of both by blocks.
    pub ends: Option<EndsNanos>,
}

/// The 95% interval of a difference by blocks (Student's), alone, nanoseconds; none of fewer than two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EndsNanos {
    pub low_ns: i64,
    pub high_ns: i64,
}

impl EndsNanos {
    /// True if it does not include 0.
    #[must_use]
    pub const fn is_told(self) -> bool {
        self.low_ns > 0 || self.high_ns < 0
    }
}

/// CPU, or the wait for one event, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhyPart {
    /// `DB CPU` or the event's name.
    pub name: String,
    /// Its wait class; empty for CPU.
    pub wait_class: String,
    /// Its part of the reference's elapsed time, nanoseconds.
    pub reference_ns: u64,
    /// Its part of the treatment's elapsed time, nanoseconds.
    pub treatment_ns: u64,
    /// The difference of both by blocks.
    pub ends: Option<EndsNanos>,
}

/// The I/O profiles of two runs, to be drawn on the same axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfilePair {
    /// A typical run of the reference.
    pub reference: RunProfile,
    /// A typical run of the treatment.
    pub treatment: RunProfile,
}

/// The I/O profile of one run. Its buckets may be as long as they are: each side keeps its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunProfile {
    pub arm: String,
    /// The run's number in the bundle: the one with the arm's median, if that is one run.
    pub run: u64,
    /// The run's elapsed time, nanoseconds.
    pub elapsed_ns: u64,
    pub profile: IoProfile,
    pub phases: Vec<Phase>,
}

/// A factor moved from one level to another, averaged over all other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainEffect {
    pub factor: String,
    /// The level that is the base.
    pub from: String,
    /// The level it is changed to.
    pub to: String,
    pub effect: Effect,
    /// p of "no effect", corrected for the rows of the table; none in a study that ends when it is
    /// decided.
    pub p: Option<f64>,
}

/// By how much the first factor's effect is multiplied when the second is changed too; 1 is not at all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interaction {
    /// The first factor with its change, such as `direct FALSE -> TRUE`.
    pub first: String,
    /// The second, in the same form.
    pub second: String,
    pub effect: Effect,
    /// p of "they simply multiply", corrected for the rows of the table; none in a study that ends
    /// when it is decided.
    pub p: Option<f64>,
}

/// The noise, measured on the reference's two runs a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Of the logarithms of A/A ratios.
    #[serde(flatten)]
    pub floor: Floor,
    /// The second run of the reference against the first: an effect known to be none.
    pub aa: Option<Effect>,
    pub aa_p: Option<f64>,
}

/// A change of level within an arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelChange {
    pub arm: String,
    /// In what it was found: `its ratio to the reference`, `its own figures`, or which of the canary's times.
    pub series: String,
    /// The first block after it, from 1.
    pub block: u64,
    /// Level after over level before.
    pub ratio: f64,
    /// p of "the level does not change".
    pub p: f64,
}

/// A share of the noise within blocks and arms, with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Explains {
    pub share: f64,
    /// The least share that agrees with the runs.
    pub low: f64,
    pub high: f64,
}

impl From<plumb_proof::covariate::Explained> for Explains {
    fn from(found: plumb_proof::covariate::Explained) -> Explains {
        Explains { share: found.share, low: found.interval.low, high: found.interval.high }
    }
}

/// One of the canary's times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanaryFigure {
    /// `fixed processor work` or `fixed device reads`.
    pub what: String,
    /// The median over the runs of used blocks, nanoseconds.
    pub median_ns: u64,
    /// The time that one run in twenty stays below, nanoseconds.
    pub low_ns: u64,
    /// The time that one run in twenty exceeds, nanoseconds.
    pub high_ns: u64,
    /// The share of the noise within blocks and arms that it explains; none in too few runs.
    pub explains: Option<Explains>,
    /// Whether the study's figures are adjusted by it.
    pub adjusted: bool,
}

/// Processor time that the hypervisor gave to other guests during the runs of used blocks: shares of the processors' time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StolenFigure {
    /// The median over the runs.
    pub median: f64,
    /// What one run in twenty stays below.
    pub low: f64,
    /// What one run in twenty exceeds.
    pub high: f64,
    /// The most of a run.
    pub most: f64,
    /// Runs that lost a twentieth or more.
    pub much: u64,
    pub runs: u64,
    /// The share of the noise within blocks and arms that goes with it; none in too few runs, or where it
    /// never changes.
    pub explains: Option<Explains>,
}

/// Runs of used blocks beside which others used the machine, or for which a cache answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubtfulRuns {
    pub runs: u64,
    /// Those whose circumstances are known.
    pub judged: u64,
    /// Those that others, a quota or want of memory disturbed.
    pub disturbed: u64,
    /// The blocks that have one of these.
    pub disturbed_blocks: u64,
    /// Each fact that makes a run doubtful.
    pub facts: Vec<DoubtfulFact>,
    /// The arms that read from the page cache.
    pub cached: Vec<CachedArm>,
}

/// A fact that makes runs doubtful.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubtfulFact {
    pub fact: Fact,
    /// Runs that it makes doubtful.
    pub runs: u64,
    pub blocks: u64,
    /// The largest share of a run.
    pub most: f64,
    /// The number of that run.
    pub run: u64,
    /// The arm of that run.
    pub arm: String,
    /// The figures of that run in a sentence.
    pub evidence: String,
}

/// An arm whose reads the page cache answered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachedArm {
    pub arm: usize,
    /// The mean share of the bytes read over its runs.
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyRun {
    /// Its number in the bundle, from 1, in order of execution: the record is `runs/NNNN.json`.
    pub number: u64,
    /// Its block, from 1; none for a warm-up.
    pub block: Option<u64>,
    /// Its place in the order of its block, from 1.
    pub position: u64,
    /// Its slot; the one beyond the arms is the reference's second run.
    pub slot: usize,
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
    /// What makes it doubtful all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<Fact>,
    /// The basis of that in a line, such as `3 of 3 checks passed, 15 of 15 receipts held`.
    pub basis: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Counted {
    Yes,
    WarmUp,
    No {
        /// Why this run does not count.
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// The arm it rests on.
    pub arm: usize,
    pub settings: Vec<Assignment>,
    /// What the gain is against, such as the reference arm's name.
    pub against: String,
    /// The arms that cannot be told from the best, this one among them: the best is one of these.
    pub candidates: Vec<usize>,
    /// The fewest blocks in which the arms could have been told apart, where there were fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_to_tell_apart: Option<u64>,
    /// The gain to expect, as the ratio of the measure, shrunk for having been chosen and for
    /// having been significant; below 1 is a gain where lower is better.
    pub gain: Effect,
    /// Which claims it rests on, and what it costs.
    pub evidence: String,
}
