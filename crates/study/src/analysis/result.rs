//! The analysis of a study: the data that its report renders and that a bundle keeps.
//!
//! Plain data, like the context of a run: the analysis fills it, crate `pages` renders it. Units
//! end the names. Effects are ratios of treatment to reference, 1 for no effect; renderers make per
//! cent of them. Derived figures are not kept: the unaccounted part of a difference, the claims by
//! verdict, the worst verdict.
//!
//! Indices: an arm is its place in [`Analysis::arms`]. A block has a slot for every arm, with the
//! same number. One more slot, the last, runs the reference arm a second time (A/A). Blocks are
//! numbered from 1, as they are printed. An open end of an interval is `None`: JSON has no
//! infinity, and too few blocks bound nothing.

use crate::bundle::Environment;
use crate::definition::Study;
use crate::vocabulary::{Assignment, Measure};
use plumb_proof::equivalence::Equivalence;
use plumb_proof::noise::Floor;
use plumb_proof::order::{After, OrderReport};
pub use plumb_proof::verdict::Standing;
use plumb_proof::verdict::Verdict;
use plumb_record::{Fact, Finding, IoProfile, IoTally, MeasuredLimits, Phase, RunState, SettingRow};
use serde::Serialize;

/// Version of the analysis as it is written; it grows when a field changes
/// its meaning or is removed.
pub const ANALYSIS_SCHEMA_VERSION: u32 = 8;

#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    pub schema_version: u32,
    pub study: Study,
    /// Hash of the study as text: equal hashes are equal studies.
    pub study_hash: String,
    /// The machine and the program of the runs.
    pub environment: Environment,
    /// SHA-256 of the checksums of all files that the analysis rests on; `None` outside a bundle.
    pub evidence_hash: Option<String>,
    pub state: StudyState,
    /// End of the last run, ISO 8601.
    pub end_time: String,
    /// From start to end, preparation and settling included, nanoseconds.
    pub elapsed_ns: u64,
    pub arms: Vec<Arm>,
    pub design: Design,
    /// Judged claims in the order of the study.
    pub claims: Vec<JudgedClaim>,
    /// Effect of each factor averaged over the others, for information, without those that a claim
    /// tests. The intervals of all rows hold together.
    pub main_effects: Vec<MainEffect>,
    /// Ratios by which one factor changes another's effect; the intervals hold together, too.
    pub interactions: Vec<Interaction>,
    /// Noise of the reference's two runs per block; `None` before the second block.
    pub floor: Option<NoiseFloor>,
    /// Test of the order of execution; `None` if too few blocks ran.
    pub order: Option<OrderReport>,
    pub changes: Vec<LevelChange>,
    /// Times of the canary, which no treatment affects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub canary: Vec<CanaryFigure>,
    /// Processor time that the hypervisor gave to other guests; `None` if a run did not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen: Option<StolenFigure>,
    /// Runs of used blocks with doubtful circumstances; `None` if no run was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubtful: Option<DoubtfulRuns>,
    /// The fewest used blocks in which a change can be found.
    pub changes_need_blocks: u64,
    /// The fewest used blocks in which a change of the canary can be found.
    pub canary_needs_blocks: u64,
    /// Every run in order of execution, warm-ups and failed ones included.
    pub runs: Vec<StudyRun>,
    /// The settings to use; `None` if nothing was proved better than the reference.
    pub recommendation: Option<Recommendation>,
    /// Remarks on the verdicts, with advice for the next study.
    pub findings: Vec<Finding>,
    /// Effects that the study did not test, one sentence each.
    pub not_tested: Vec<String>,
    /// The device's limits, with the shares of the run that came closest to one.
    pub calibration: Option<MeasuredLimits>,
    /// Settings that all arms share, in printing order; the study has those of the factors.
    pub settings: Vec<SettingRow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyState {
    /// All planned runs were made, or the study stopped by its own rule.
    Finished,
    /// Stopped from outside; the finished runs are kept, without verdicts.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// Unique in the study, such as `direct=TRUE area=1M`.
    pub name: String,
    /// Index of each factor's level, in the order of the factors.
    pub levels: Vec<usize>,
    /// Median of the measure over the arm's counted runs, in its unit; `None` if none counted.
    pub median: Option<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
    /// Largest declared memory of its counted runs, bytes; `None` if they declare none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<u64>,
    /// Largest resident set of its counted runs, bytes; `None` if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// The device alone, measured in each of its counted runs; `None` if no run did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<ArmDevice>,
    /// Share of the machine's processors in use during its counted runs; `None` if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_cpu: Option<f64>,
    /// Time of all its counted runs, to which `io` belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_ns: Option<u64>,
    /// I/O of all its counted runs; that of a command is of devices alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<ArmIo>,
    /// Figures other than the measure; all arms have the same events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ArmFigure>,
}

/// A figure of an arm's counted runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmFigure {
    /// Such as `written`, or a wait event.
    pub name: String,
    pub unit: ArmUnit,
    pub median: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmUnit {
    Bytes,
    Nanoseconds,
}

/// Medians of what the runs of an arm measured of the device before their work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArmDevice {
    /// Sequential read with many requests in flight, bytes per second.
    pub sequential_read_bytes_per_s: Option<f64>,
    /// One random read of 8K with nothing else in flight, nanoseconds.
    pub random_read_8k_ns: Option<f64>,
}

/// Requests of an arm's runs in a line of an I/O table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmIo {
    pub table: IoTable,
    /// Function, type of file or tablespace.
    pub name: String,
    pub reads: IoTally,
    pub writes: IoTally,
    /// Time of a device with a request in flight, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Time in flight summed over a device's requests, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted_ns: Option<u64>,
}

/// Tables of I/O in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IoTable {
    Function,
    Filetype,
    Tablespace,
    /// A block device, by the kernel's counters, of all processes.
    Device,
}

/// Order, counting and selection of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Design {
    /// Such as `full factorial` or `half fraction, resolution IV`.
    pub kind: String,
    /// Effects that this design cannot tell apart, one sentence each.
    pub confounded: Vec<String>,
    /// The arm that runs twice per block, the base of comparisons.
    pub reference_arm: usize,
    /// Such as `every order of a block equally likely`.
    pub order: String,
    pub seed: u64,
    /// Such as `after 12 blocks` or `when every claim is decided, at most 40 blocks`.
    pub stopping: String,
    pub blocks_used: u64,
    /// Blocks that ran and were not used.
    pub blocks_marked: Vec<MarkedBlock>,
    /// Number of runs recorded but not counted.
    pub warm_up_runs: u64,
    /// Work between two runs, so that one does not pay for another.
    pub settling: String,
    /// Making and loading data: from the start or a resumption to
    /// the first run's canary, nanoseconds.
    pub loading_ns: u64,
    /// Sum of the canaries before all runs, nanoseconds.
    pub canary_ns: u64,
    /// A sentence about conditions that were not randomised.
    pub not_randomised: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkedBlock {
    pub block: u64,
    pub reason: String,
}

/// Ratio of treatment to reference with its interval; 1 is no effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    pub ratio: f64,
    /// Lower end; `None` if unbounded.
    pub low: Option<f64>,
    /// Upper end; `None` if unbounded.
    pub high: Option<f64>,
    /// Level of the interval, a share: 0.95 for one that misses the truth in 5% of studies.
    pub confidence: f64,
}

impl Effect {
    /// Returns the low end, the ratio and the high end.
    pub fn ends(&self) -> plumb_report::axis::Effect {
        (self.low, self.ratio, self.high)
    }
}

/// The verdict compared with the claim as it was written before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// The proof shows the claim.
    Holds,
    /// The proof excludes the claim.
    Refuted,
    Open,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedClaim {
    pub name: String,
    pub text: String,
    /// Comparison in words: `direct=TRUE against direct=FALSE, at area=1M`.
    pub comparison: String,
    /// The two arms; `None` for a claim averaged over arms.
    pub arms: Option<ArmPair>,
    /// The measure, if it is not the study's own.
    pub measure: Option<Measure>,
    pub verdict: Verdict,
    /// True if the request is the only evidence that the claimed change took effect.
    pub asked_only: bool,
    pub outcome: ClaimOutcome,
    /// Reasons of the verdict, one sentence each, the decisive one last.
    pub reasons: Vec<String>,
    /// The typical effect: the pseudo-median of the log-ratios within blocks; `None` without a
    /// usable block. The interval has the level at which those of all claims hold together. If only
    /// the claim's own step proves it, it has the level of that step.
    pub effect: Option<Effect>,
    /// Ratio of the means of all runs at the same level; harmonic means for
    /// rates; `None` for an interaction.
    pub average: Option<Effect>,
    /// p of "both arms are equally steady"; `None` if it cannot be computed.
    pub shape_p: Option<f64>,
    /// p of "the effect does not drift from block to block"; `None` with too few blocks.
    pub wanders_p: Option<f64>,
    /// Slow runs of the treatment; `None` if several arms are compared with several.
    pub slow_runs: Option<SlowShare>,
    /// Runs after the claim's treatment compared with all others; `None` if no run follows it.
    pub carry_over: Option<After>,
    /// p of "no difference", before correction.
    pub p: Option<f64>,
    /// p corrected for the claims that were not settled before this one.
    pub adjusted_p: Option<f64>,
    pub blocks: u64,
    /// Estimate of the further blocks that reach the verdict's effect with 80% power. `None` when
    /// proved, or where no number can be planned.
    pub blocks_needed: Option<u64>,
    /// Smallest effect that this many blocks find with 80% power, a share.
    pub smallest_effect: Option<f64>,
    /// Share of the difference in the statistic that the measure excludes. `None` if it excludes
    /// none, or if the whole difference includes zero.
    pub covered: Option<Covered>,
    /// Test of equality, if the claim expects it.
    pub equivalence: Option<Equivalence>,
    /// Origin of a proved difference.
    pub why: Option<Why>,
    /// Bytes over time of a typical run of either arm.
    pub profiles: Option<ProfilePair>,
}

/// Share of a difference that some of its parts cover, over blocks, with Fieller's 95% interval.
/// The interval is not corrected for others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covered {
    pub parts: Vec<String>,
    /// Name of the whole difference.
    pub of: String,
    /// Above 1 if the rest goes the other way.
    pub share: f64,
    /// Lower end of the interval; `high` is the upper end.
    pub low: f64,
    pub high: f64,
}

/// Runs of the treatment above 1.5 times the median time of its reference. For a rate: runs below
/// the reference's median divided by 1.5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowShare {
    pub slow: u64,
    /// Number of all runs of the treatment.
    pub runs: u64,
    /// Lower bound of the share of slow runs, at 95%.
    pub low: f64,
    /// Upper bound of the share of slow runs, at 95%.
    pub high: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ArmPair {
    pub reference: usize,
    pub treatment: usize,
}

/// An elapsed difference as the sum of its parts' differences; the remainder is unaccounted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// Conversion of the sessions' times to parts of the elapsed time, in a sentence.
    pub basis: String,
    /// The operation to which all times refer, if the runs had a fixed duration and did different
    /// work. `None` if times are of whole runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<EndsNanos>,
    /// Name of the reference arm, or of its level.
    pub reference: String,
    pub treatment: String,
    /// Mean elapsed time of the reference's counted runs, nanoseconds.
    pub reference_elapsed_ns: u64,
    /// Mean elapsed time of the treatment's counted runs, nanoseconds.
    pub treatment_elapsed_ns: u64,
    /// CPU and each wait event, without the unaccounted rest, in any order.
    pub parts: Vec<WhyPart>,
    /// Phases of the run in order of their start; they may overlap.
    pub phases: Vec<PhasePart>,
}

impl Why {
    /// True if the interval of the whole difference excludes 0, so that a part is a share of
    /// something. Without an interval: true if there is any difference.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.ends.map_or(self.reference_elapsed_ns != self.treatment_elapsed_ns, EndsNanos::is_told)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhasePart {
    pub name: String,
    /// Mean time of the reference, nanoseconds.
    pub reference_ns: u64,
    /// Mean time of the treatment, nanoseconds.
    pub treatment_ns: u64,
    /// Interval of the difference by blocks.
    pub ends: Option<EndsNanos>,
}

/// Student's 95% interval of a difference by blocks, uncorrected, in
/// nanoseconds. It needs two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EndsNanos {
    pub low_ns: i64,
    pub high_ns: i64,
}

impl EndsNanos {
    /// True if the interval excludes 0.
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
    pub wait_class: String,
    /// Part of the reference's elapsed time, nanoseconds.
    pub reference_ns: u64,
    /// Part of the treatment's elapsed time, nanoseconds.
    pub treatment_ns: u64,
    /// Interval of the difference by blocks.
    pub ends: Option<EndsNanos>,
}

/// I/O profiles of two runs, drawn on the same axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfilePair {
    pub reference: RunProfile,
    pub treatment: RunProfile,
}

/// I/O profile of one run. Buckets of both sides may differ in length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunProfile {
    pub arm: String,
    /// Number in the bundle of the run with the arm's median elapsed time, the
    /// lower of two middle ones.
    pub run: u64,
    /// Elapsed time of the run, nanoseconds.
    pub elapsed_ns: u64,
    pub profile: IoProfile,
    pub phases: Vec<Phase>,
}

/// A factor moved from one level to another, averaged over all other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainEffect {
    pub factor: String,
    pub from: String,
    pub to: String,
    pub effect: Effect,
    /// p of "no effect", corrected for the rows of the table. `None` in a study that
    /// ends when it is decided.
    pub p: Option<f64>,
}

/// Factor by which the first effect is multiplied when the second factor changes
/// too; 1 is no interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interaction {
    /// The first factor with its change, such as `direct FALSE -> TRUE`.
    pub first: String,
    /// The second factor with its change.
    pub second: String,
    pub effect: Effect,
    /// p of "the effects multiply", corrected for the rows of the table. `None` in a study that
    /// ends when it is decided.
    pub p: Option<f64>,
}

/// Noise of the reference's two runs per block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Noise of the logarithms of A/A ratios.
    #[serde(flatten)]
    pub floor: Floor,
    /// Second run of the reference against the first: an effect known to be none.
    pub aa: Option<Effect>,
    pub aa_p: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelChange {
    pub arm: String,
    /// Series of the change: `its ratio to the reference`, `its own figures`, or
    /// a time of the canary.
    pub series: String,
    /// First block after the change, from 1; `None` for a steady change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Level after over level before.
    pub ratio: f64,
    /// p of "the level does not change".
    pub p: f64,
}

/// Share of the noise within blocks and arms, with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Explains {
    pub share: f64,
    /// Lower end of the interval; `high` is the upper end.
    pub low: f64,
    pub high: f64,
}

impl From<plumb_proof::covariate::Explained> for Explains {
    fn from(found: plumb_proof::covariate::Explained) -> Explains {
        Explains { share: found.share, low: found.interval.low, high: found.interval.high }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanaryFigure {
    /// `fixed processor work` or `fixed device reads`.
    pub what: String,
    /// Median over the runs of used blocks, nanoseconds.
    pub median_ns: u64,
    /// 5% quantile over the runs, nanoseconds.
    pub low_ns: u64,
    /// 95% quantile over the runs, nanoseconds.
    pub high_ns: u64,
    /// Share of the noise within blocks and arms that it explains; `None` in too few runs.
    pub explains: Option<Explains>,
    /// True if the study's figures are adjusted by it.
    pub adjusted: bool,
}

/// Processor time given to other guests during runs of used blocks, as
/// shares of the processors' time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StolenFigure {
    pub median: f64,
    /// 5% quantile over the runs.
    pub low: f64,
    /// 95% quantile over the runs.
    pub high: f64,
    /// Largest share of a run.
    pub most: f64,
    /// Number of runs that lost 5% or more.
    pub much: u64,
    pub runs: u64,
    /// Share of the noise within blocks and arms that it explains. `None` in too few runs,
    /// or if it never changes.
    pub explains: Option<Explains>,
}

/// Runs of used blocks during which other work used the machine, or a cache answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubtfulRuns {
    pub runs: u64,
    /// Number of runs with known circumstances.
    pub judged: u64,
    /// Runs disturbed by other work, a quota or lack of memory.
    pub disturbed: u64,
    /// Number of blocks with a disturbed run.
    pub disturbed_blocks: u64,
    pub facts: Vec<DoubtfulFact>,
    /// Arms most of whose runs read from the page cache.
    pub cached: Vec<CachedArm>,
}

/// A fact that makes runs doubtful, with the run most affected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubtfulFact {
    pub fact: Fact,
    /// Number of runs that it makes doubtful.
    pub runs: u64,
    pub blocks: u64,
    /// Largest share of a run, that of run `run`.
    pub most: f64,
    pub run: u64,
    pub arm: String,
    /// Figures of that run in a sentence.
    pub evidence: String,
}

/// An arm whose reads the page cache answered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachedArm {
    pub arm: usize,
    /// Mean share of the bytes read, over its doubtful runs.
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyRun {
    /// Number in the bundle, from 1, in order of execution: the record is `runs/NNNN.json`.
    pub number: u64,
    /// Block, from 1; `None` for a warm-up.
    pub block: Option<u64>,
    /// Place in the order of its block, from 1.
    pub position: u64,
    /// Slot in the block; the last slot is the reference's second run.
    pub slot: usize,
    pub arm: usize,
    /// From the study's start to the start of the timed part, nanoseconds.
    pub start_ns: u64,
    /// Elapsed time of the timed part, nanoseconds; `None` if the run did not finish.
    pub elapsed_ns: Option<u64>,
    /// The study's measure in its unit; `None` if the run did not finish.
    pub value: Option<f64>,
    pub counted: Counted,
    /// Result of its receipts and checks; `None` if the run did not finish.
    pub validity: Option<RunState>,
    /// Facts that make a valid run doubtful.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<Fact>,
    /// Basis of the validity in a line, such as `3 of 3 checks passed, 15 of 15 receipts held`.
    pub basis: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Counted {
    Yes,
    WarmUp,
    No {
        /// Reason why the run is excluded.
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    pub arm: usize,
    pub settings: Vec<Assignment>,
    /// Base of the gain, such as the reference arm's name.
    pub against: String,
    /// The arms that cannot be told from the best, this one included.
    pub candidates: Vec<usize>,
    /// Fewest blocks in which the arms could have been told apart, if fewer ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_to_tell_apart: Option<u64>,
    /// Expected gain as a ratio of the measure, shrunk because the arm was selected for its
    /// significance. Below 1 is a gain where lower is better.
    pub gain: Effect,
    /// Claim or comparison behind the advice, in a sentence.
    pub evidence: String,
}
