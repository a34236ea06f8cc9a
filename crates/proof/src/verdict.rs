//! The verdict: one line that states what the evidence proves.
//!
//! ```text
//! verdict                  when                                                              exit
//! PROVED faster / slower   p <= alpha after correction, the interval excludes no effect, and    0
//!                          the average is not proved to lie on the other side
//! PROVED typically EQUAL   both one-sided tests about the margin, of the typical run            0
//! PROVED EQUAL             the same, of exact counts that are all one number                    0
//! PROVED typically         the test about the margin, of the typical run                        0
//!        not slower
//! PROVED in p95            one of these, of the p95 of both arms, where a claim asks for it      0
//! NOT PROVED               none of them; or the figures have no ratio, as if one is 0           3
//! UNSTABLE                 an arm changes during the study, or the run before matters           4
//! INVALID                  a receipt contradicts its setting, or a run failed verification      5
//! IMPOSSIBLE               a figure beyond a physical bound                                     6
//! REFUTED                  a proved statement excludes the claim                                7
//! MIXED                    one thing is proved of the typical run and the contrary of the       8
//!                          average of all runs, each by its own test
//! ```
//!
//! `judge` checks in the order of falling doubt about the data: first the impossible, then
//! deviations from the requested experiment, then the stability of the arms, and then the numbers.
//! The reasons list each check that it passes and the one at which it stops. A study is as good as
//! its worst claim; [`Standing`] orders them: IMPOSSIBLE, INVALID, UNSTABLE, REFUTED, MIXED, NOT
//! PROVED, PROVED. REFUTED is a verdict on a claim and not on an effect, so the caller, which
//! knows the claim, decides it. It also decides if a proved effect proves the claim.
//!
//! An equality and a margin are of the typical run. Rare slow runs may lie outside any sample: of
//! 30 runs without one, up to 9.5% may be slow. So the line says how many were seen and how many
//! could not be seen ([`TypicalLimits`]), and the average where it is not shown to lie within the
//! margin.
//!
//! "Faster by 5%" means better by 5% of the reference's figure: 5% less time, or 5% more
//! throughput. The interval uses the same words; both ends are positive if proved.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;

use crate::average::{SlowRuns, SlowSeen};
use crate::change_point::ChangePoint;
use crate::effect::percent;
use crate::equivalence::Equivalence;
use crate::family::{OnAverage, Place};
use crate::interval::Interval;
use crate::noise::{self, Goal};
use crate::order::{After, OrderReport};
use crate::randomisation::SHAPE_P;
use crate::selection;
use crate::student;

/// The power for which floors and plans are stated.
pub const POWER: f64 = 0.8;
/// Beginning of the reason given for a proved effect smaller than the floor.
pub const TOO_LARGE: &str = "fewer than 80% of such studies";
/// Largest p at which a test of order counts.
pub const ORDER_P: f64 = 0.01;
/// Largest p at which a carry-over from the arms of a claim counts ...
pub const CARRY_OVER_P: f64 = 0.05;
/// ... if it exceeds this share of the claimed effect. Effects of order can be as large as usual
/// effects (Duplyakin et al. 2023).
pub const CARRY_OVER_SHARE: f64 = 1.0 / 3.0;

/// Direction in which figures are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower: times, waits, bytes moved.
    Lower,
    /// Higher: rates, such as rows a second.
    Higher,
}

/// Side on which something is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The treatment is the better one.
    Faster,
    /// The treatment is the worse one.
    Slower,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
        }
    }
}

/// Standing of a claim or a study, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A figure that no machine can produce.
    Impossible,
    /// Another experiment than the requested one.
    Invalid,
    /// An arm changed during the study.
    Unstable,
    /// A proved statement contradicts a claim.
    Refuted,
    /// The typical run and the average disagree.
    Mixed,
    /// No statement is proved yet.
    NotProved,
    /// At least one statement is proved.
    Proved,
}

impl Standing {
    /// Returns the exit code of the program.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Proved => 0,
            Self::NotProved => 3,
            Self::Unstable => 4,
            Self::Invalid => 5,
            Self::Impossible => 6,
            Self::Refuted => 7,
            Self::Mixed => 8,
        }
    }

    /// Returns the word that reports print.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proved => "PROVED",
            Self::NotProved => "NOT PROVED",
            Self::Unstable => "UNSTABLE",
            Self::Invalid => "INVALID",
            Self::Impossible => "IMPOSSIBLE",
            Self::Refuted => "REFUTED",
            Self::Mixed => "MIXED",
        }
    }
}

/// A proved change in per cent of the reference's figure, with both ends of its
/// interval in the same direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Estimated change, in per cent.
    pub percent: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

/// A proved statement about the typical run or the p95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Typically {
    /// A difference on this side.
    Differs(Side, Change),
    /// No difference larger than this margin, in per cent.
    Equal(f64),
    /// Not worse by more than this margin, in per cent.
    NotSlower(f64),
}

impl fmt::Display for Typically {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(side, change) => write!(out, "{} by {change}", side.word()),
            Self::Equal(within) => write!(out, "equal within +-{}%", Trimmed(*within)),
            Self::NotSlower(by) => write!(out, "not slower by {}%", Trimmed(*by)),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percent, low, high } = self;
        write!(out, "{}% [{}, {}]", Figure(*percent), Figure(*low), Figure(*high))
    }
}

/// A change that is printed with its sign.
struct Signed(Change);

impl fmt::Display for Signed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.percent > 0.0 {
            out.write_str("+")?;
        }
        write!(out, "{}", self.0)
    }
}

/// Limits of an equality or a margin of the typical run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TypicalLimits {
    /// The slow runs; `None` if several arms are compared with several.
    pub slow: Option<SlowSeen>,
    /// Change of the average in per cent, unless it is proved to lie within the margin.
    pub average: Option<Change>,
}

impl fmt::Display for TypicalLimits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(SlowSeen { treatment, reference }) = self.slow {
            let (SlowRuns { slow, runs, share }, SlowRuns { slow: others, runs: of, .. }) =
                (treatment, reference);
            let number = |slow: usize| if slow == 0 { "none".to_string() } else { slow.to_string() };
            write!(out, ", but for slow runs ({} of {runs}", number(slow))?;
            if slow + others > 0 {
                write!(out, ", {} of {of} of the reference", number(others))?;
            }
            write!(out, ": at most {}%)", Figure(100.0 * share.high))?;
        }
        match self.average {
            Some(average) => write!(out, "; on average of the runs seen {}", Signed(average)),
            None => Ok(()),
        }
    }
}

/// Purpose of a number of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// To find a difference of this size, in per cent.
    Find(f64),
    /// To prove equal arms equal within this margin, in per cent.
    Equal(f64),
}

impl fmt::Display for Aim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Find(percent) => write!(out, "find {}%", Figure(*percent)),
            Self::Equal(within) => write!(out, "prove equal arms equal within {}%", Trimmed(*within)),
        }
    }
}

/// Number of blocks that an open claim still needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum More {
    /// This number of further blocks reaches the aim with 80% power.
    Blocks(usize, Aim),
    /// The blocks that ran reach the aim.
    Enough(Aim),
    /// No plan has as many blocks.
    TooMany(Aim),
    /// Fewer than this number of further blocks prove nothing; the noise is unknown.
    Fewest(usize),
    /// All figures of both arms are equal.
    Never,
}

impl More {
    /// Returns the number of further blocks, if one is known.
    pub fn blocks(&self) -> Option<usize> {
        match self {
            Self::Blocks(more, _) | Self::Fewest(more) => Some(*more),
            Self::Enough(_) | Self::TooMany(_) | Self::Never => None,
        }
    }

    /// Returns the purpose of the blocks.
    pub fn aim(&self) -> Option<Aim> {
        match self {
            Self::Blocks(_, aim) | Self::Enough(aim) | Self::TooMany(aim) => Some(*aim),
            Self::Fewest(_) | Self::Never => None,
        }
    }
}

impl fmt::Display for More {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = format!("({:.0}% power)", 100.0 * POWER);
        match self {
            Self::Blocks(1, aim) => write!(out, "with about 1 more block they {aim} {power}"),
            Self::Blocks(more, aim) => write!(out, "about {more} more blocks {aim} {power}"),
            Self::Enough(aim) => write!(out, "these blocks {aim} {power}"),
            Self::TooMany(aim) => {
                write!(out, "more than {} blocks {aim} {power}", noise::BLOCKS_MAX)
            }
            Self::Fewest(1) => out.write_str("nothing is proved before 1 more block"),
            Self::Fewest(more) => write!(out, "nothing is proved before {more} more blocks"),
            Self::Never => out.write_str("all figures are alike, and no number of blocks tells more"),
        }
    }
}

/// Verdict on one claim of a study.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The treatment is proved better.
    Faster(Change),
    /// The treatment is proved worse.
    Slower(Change),
    /// No difference larger than the margin.
    Equal {
        /// The margin, in per cent.
        within: f64,
        /// Limits of a statement about the typical run; `None` if all figures are one exact count.
        beside: Option<TypicalLimits>,
    },
    /// The typical run is not worse by more than the margin.
    NotSlower {
        /// The margin, in per cent.
        by: f64,
        /// Typical change in per cent of the reference's figure, signed.
        change: Change,
        /// Limits of a statement about the typical run.
        beside: TypicalLimits,
    },
    /// A statement about the p95 of both arms, which their claim is about.
    P95(Typically),
    /// One thing is proved of the typical run, and the contrary of the average.
    Mixed {
        /// Statement about the typical run.
        typically: Typically,
        /// Side on which the average lies.
        on_average: Side,
        /// Change of the average, in per cent of the reference's average.
        average: Change,
    },
    /// The evidence is insufficient either way.
    NotProved {
        /// Smallest effect that this study would have found with 80% power, in per cent; NaN if no
        /// two blocks show the noise.
        floor: f64,
        /// Number of blocks still to run, and their purpose.
        more: More,
    },
    /// No figure can be tested, however many blocks there are.
    NoFigure {
        /// The missing figure, as a sentence.
        reason: String,
    },
    /// An arm changed during the study.
    Unstable {
        /// The change, as a sentence.
        reason: String,
    },
    /// The experiment was not the requested one.
    Invalid {
        /// The failed receipt or check, as a sentence.
        reason: String,
    },
    /// No machine can produce such a figure.
    Impossible {
        /// The violated bound, as a sentence.
        reason: String,
    },
}

impl Verdict {
    /// Returns the standing of a claim with this verdict.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Faster(_)
            | Self::Slower(_)
            | Self::Equal { .. }
            | Self::NotSlower { .. }
            | Self::P95(_) => Standing::Proved,
            Self::Mixed { .. } => Standing::Mixed,
            Self::NotProved { .. } | Self::NoFigure { .. } => Standing::NotProved,
            Self::Unstable { .. } => Standing::Unstable,
            Self::Invalid { .. } => Standing::Invalid,
            Self::Impossible { .. } => Standing::Impossible,
        }
    }

    /// Returns the exit code of the program.
    pub fn exit_code(&self) -> u8 {
        self.standing().exit_code()
    }

    /// Returns the ends of a proved gain, per cent, below 0 for a loss; `None` if no difference is
    /// proved.
    #[must_use]
    pub fn gain(&self) -> Option<[f64; 2]> {
        match self {
            Self::Faster(change) => Some([change.low, change.high]),
            Self::Slower(change) => Some([-change.high, -change.low]),
            _ => None,
        }
    }

    /// Returns the proved statement; `None` if nothing or two contrary things are proved.
    #[must_use]
    pub fn proved(&self) -> Option<Typically> {
        match *self {
            Self::Faster(change) => Some(Typically::Differs(Side::Faster, change)),
            Self::Slower(change) => Some(Typically::Differs(Side::Slower, change)),
            Self::Equal { within, .. } => Some(Typically::Equal(within)),
            Self::NotSlower { by, .. } => Some(Typically::NotSlower(by)),
            Self::P95(proved) => Some(proved),
            _ => None,
        }
    }

    /// Returns the same verdict on the p95.
    #[must_use]
    pub fn in_p95(self) -> Self {
        self.proved().map_or(self, Self::P95)
    }

    /// Returns the words before the first figure.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Faster(_) => "PROVED faster",
            Self::Slower(_) => "PROVED slower",
            Self::Equal { beside: None, .. } => "PROVED EQUAL",
            Self::Equal { .. } => "PROVED typically EQUAL",
            Self::NotSlower { .. } => "PROVED typically not slower",
            Self::P95(_) => "PROVED in p95",
            Self::Mixed { .. }
            | Self::NotProved { .. }
            | Self::NoFigure { .. }
            | Self::Unstable { .. }
            | Self::Invalid { .. }
            | Self::Impossible { .. } => self.standing().word(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label();
        match self {
            Self::Faster(change) | Self::Slower(change) => write!(out, "{label} by {change}"),
            Self::Equal { within, beside } => {
                write!(out, "{label} within +-{}%", Trimmed(*within))?;
                beside.map_or(Ok(()), |beside| write!(out, "{beside}"))
            }
            Self::NotSlower { by, change, beside } => {
                write!(out, "{label} by {}%: {}{beside}", Trimmed(*by), Signed(*change))
            }
            Self::P95(proved) => write!(out, "{label}: {proved}"),
            Self::Mixed { typically, on_average, average } => {
                write!(out, "{label}: typically {typically}, on average {} by {average}", on_average.word())
            }
            Self::NotProved { floor, more } if floor.is_finite() => {
                write!(out, "{label}: floor {}%, {more}", Figure(*floor))
            }
            Self::NotProved { more: more @ More::Never, .. } => write!(out, "{label}: {more}"),
            Self::NotProved { more, .. } => write!(out, "{label}: floor unknown, {more}"),
            Self::NoFigure { reason }
            | Self::Unstable { reason }
            | Self::Invalid { reason }
            | Self::Impossible { reason } => {
                write!(out, "{label}: {reason}")
            }
        }
    }
}

/// Serialises a verdict as label, line and exit code.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Verdict", 3)?;
        fields.serialize_field("label", self.label())?;
        fields.serialize_field("line", &self.to_string())?;
        fields.serialize_field("exit_code", &self.exit_code())?;
        fields.end()
    }
}

/// Prints two significant digits: 0.043, 0.43, 4.3, 43.2.
struct Figure(f64);

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let decimals = if size >= 0.995 || size == 0.0 {
            1
        } else if size >= 0.0995 {
            2
        } else {
            3
        };
        write!(out, "{:.decimals$}", self.0)
    }
}

/// Prints a p with four decimals, never as 0.
struct Chance(f64);

impl fmt::Display for Chance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0.0001 { out.write_str("p < 0.0001") } else { write!(out, "p = {:.4}", self.0) }
    }
}

/// Prints a given number as it was given: 2, 0.5.
struct Trimmed(f64);

impl fmt::Display for Trimmed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.0);
        out.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Returns the worst of several, the first of equals; `None` for none.
pub fn worst(verdicts: &[Verdict]) -> Option<&Verdict> {
    verdicts.iter().min_by_key(|verdict| verdict.standing())
}

/// The test of a claim after correction for the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Log-ratio of treatment to reference.
    pub estimate: f64,
    /// p to be compared with `alpha`: corrected for the family.
    pub adjusted_p: f64,
    /// The interval at the claim's level.
    pub interval: Interval,
    /// Two-sided level of the interval.
    pub level: f64,
    /// Number of blocks that were used.
    pub blocks: usize,
    /// The fewest blocks that can prove a comparison of this kind at that level.
    pub blocks_min: usize,
    /// Spread of the effect over the blocks as the test sees it, from which floors and plans
    /// follow; NaN for fewer than two.
    pub deviation: f64,
    /// Largest error, on the logarithm, of rounded figures; 0 without.
    pub unit: f64,
}

/// Goal that further blocks are planned for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sought {
    /// A difference of this log-ratio.
    Difference(f64),
    /// An equality within this log-ratio.
    Equality(f64),
    /// A figure not worse by more than this log-ratio, above 0 whichever side is worse.
    NotSlower(f64),
}

/// Result of the average's test, which `family` makes after the typical run's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Average {
    /// Side on which it is proved.
    pub lies: OnAverage,
    /// Ratio of the averages of treatment and reference.
    pub ratio: f64,
    /// Interval of the averages' ratio.
    pub interval: Interval,
}

/// A change point, and the arm in which it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmChange {
    /// Name of the changed arm.
    pub arm: String,
    /// Place and size of the change.
    pub change: ChangePoint,
}

/// Everything on which a verdict rests. No field has a default: a study without a test states
/// it by an empty list.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// Figures beyond a physical bound, a sentence each.
    pub beyond_bound: &'a [String],
    /// Receipts that contradict their setting, and runs that failed verification.
    pub contradictions: &'a [String],
    /// Changes of the arms of this claim.
    pub changes: &'a [ArmChange],
    /// Tests of the order, if runs were ordered.
    pub order: Option<&'a OrderReport>,
    /// The test, corrected for other claims.
    pub difference: Difference,
    /// Carry-over from the claim's own arms to later runs, if runs were ordered.
    pub carry_over: Option<After>,
    /// The equivalence test, if a margin was claimed.
    pub equivalence: Option<Equivalence>,
    /// Proved place of the typical run among the points of the claim.
    pub place: Place,
    /// The average's test, if there is one.
    pub average: Option<Average>,
    /// The slow runs of both sides, if one arm is compared with one.
    pub slow: Option<SlowSeen>,
    /// True if all figures are one number, and exact.
    pub identical: bool,
    /// p of "the effect does not wander from block to block", if there are enough blocks.
    pub wanders_p: Option<f64>,
    /// p of "the arms are equally even", if it can be tested.
    pub shape_p: Option<f64>,
    /// Error allowed to the whole study.
    pub alpha: f64,
    /// Number of claims of the study.
    pub claims: usize,
    /// Direction in which figures are better.
    pub better: Better,
    /// Goal that further blocks are planned for.
    pub sought: Sought,
    /// Seed of the planning simulation.
    pub seed: u64,
}

/// A verdict, with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Verdict on the judged claim.
    pub verdict: Verdict,
    /// Sentences, the decisive one last.
    pub reasons: Vec<String>,
}

/// Judges evidence and returns the verdict.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut reasons = Vec::new();
    let verdict = physical(evidence, &mut reasons)
        .or_else(|| receipts(evidence, &mut reasons))
        .or_else(|| stability(evidence, &mut reasons))
        .or_else(|| equality(evidence, &mut reasons))
        .or_else(|| too_few(evidence, &mut reasons))
        .or_else(|| not_slower(evidence, &mut reasons))
        .or_else(|| difference(evidence, &mut reasons))
        .unwrap_or_else(|| not_proved(evidence, &mut reasons));
    Judgement { verdict, reasons }
}

fn physical(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    reasons.extend(evidence.beyond_bound.iter().cloned());
    evidence.beyond_bound.first().map(|reason| Verdict::Impossible { reason: reason.clone() })
}

fn receipts(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    reasons.extend(evidence.contradictions.iter().cloned());
    evidence.contradictions.first().map(|reason| Verdict::Invalid { reason: reason.clone() })
}

fn stability(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    let changes = evidence.changes.iter().map(|ArmChange { arm, change }| {
        let shift = percent(change.shift);
        let place = match change.steady {
            true => "in the course of the study, and not at one block".to_string(),
            false => format!("about block {}", change.index + 1),
        };
        format!("{arm} changes by {shift:+.1}% {place} (p = {:.4})", change.p)
    });
    let mut found: Vec<String> = changes.collect();
    let general = evidence.order.map(|order| (order.carry_over_size(), order.carry_over_p, ORDER_P));
    // A treatment that slows its successors looks fast. One that speeds them up hides its
    // gain, which proves nothing falsely. So only one side matters, except for an
    // equality, which both may fake.
    let towards = |after: &After| after.shift * evidence.difference.estimate < 0.0;
    let equal = evidence.equivalence.is_some_and(|test| test.p <= evidence.alpha);
    let own = evidence.carry_over.filter(|after| equal || towards(after));
    let own = own.map(|after| (after.shift.abs(), if equal { after.p } else { after.p / 2.0 }, CARRY_OVER_P));
    let limit = CARRY_OVER_SHARE * at_stake(evidence);
    let believed = own.into_iter().chain(general).find(|(size, p, most)| p <= most && *size > limit);
    if let Some((size, p, _)) = believed {
        found.push(format!("the run before may matter, by up to {:.1}% (p = {p:.3})", percent(size)));
    } else if evidence.order.is_some_and(|order| order.position_p <= ORDER_P || order.drift_p <= ORDER_P) {
        reasons.push("the machine drifted; the random order balances it".to_string());
    }
    let at_stake = at_stake(evidence).is_finite();
    found.extend(evidence.wanders_p.filter(|p| at_stake && *p <= ORDER_P).map(|p| {
        format!("the effect wanders: that of a block is like that of the block before (p = {p:.3})")
    }));
    if let Some(p) = evidence.shape_p.filter(|p| *p <= SHAPE_P) {
        reasons.push(format!(
            "the arms differ in shape ({}): one is less even, and what is typical of it is a matter of definition",
            Chance(p)
        ));
    }
    let reason = found.first().cloned();
    reasons.extend(found);
    reason.map(|reason| Verdict::Unstable { reason })
}

/// Returns the effect that a carry-over could have made or hidden: the proved difference, or the
/// margin of an equality. Infinite if nothing is proved.
fn at_stake(evidence: &Evidence<'_>) -> f64 {
    match evidence.equivalence {
        Some(test) if test.p <= evidence.alpha => test.margin.ln_1p(),
        _ if is_not_slower(evidence).is_some() => match evidence.sought {
            Sought::NotSlower(margin) => margin,
            _ => f64::INFINITY,
        },
        _ if evidence.difference.adjusted_p <= evidence.alpha => evidence.difference.estimate.abs(),
        _ => f64::INFINITY,
    }
}

fn too_few(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    let Difference { blocks, blocks_min, level, .. } = evidence.difference;
    if blocks >= blocks_min {
        return None;
    }
    reasons.push(format!("{blocks} blocks cannot reach p = {level:.4}; {blocks_min} is the fewest"));
    Some(not_proved(evidence, reasons))
}

fn equality(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    let equivalence = evidence.equivalence.filter(|test| test.p <= evidence.alpha)?;
    reasons.push(format!("both margins are rejected, {}", Chance(equivalence.p)));
    let within = 100.0 * equivalence.margin;
    let mixed = mixed(evidence, Typically::Equal(within), reasons);
    let beside = (!evidence.identical).then(|| beside(evidence));
    Some(mixed.unwrap_or(Verdict::Equal { within, beside }))
}

/// Returns the limits of a statement about the typical run.
fn beside(evidence: &Evidence<'_>) -> TypicalLimits {
    let open = evidence.average.filter(|average| average.lies != OnAverage::Within);
    TypicalLimits { slow: evidence.slow, average: open.map(Average::change) }
}

impl Average {
    fn change(self) -> Change {
        let Interval { low, high } = self.interval;
        signed(self.ratio.ln(), Interval { low: low.max(0.0).ln(), high: high.ln() })
    }
}

/// Returns the margin of a claim that its figure is not worse, if it is proved of the typical run.
fn is_not_slower(evidence: &Evidence<'_>) -> Option<f64> {
    let Sought::NotSlower(margin) = evidence.sought else { return None };
    let good = if evidence.better == Better::Lower { Place::Below } else { Place::Above };
    (evidence.place == good).then_some(margin)
}

fn not_slower(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    let margin = is_not_slower(evidence)?;
    let Difference { estimate, interval, .. } = evidence.difference;
    let is_faster = match evidence.better {
        Better::Lower => interval.high < 0.0,
        Better::Higher => interval.low > 0.0,
    };
    // The margin is a share of the reference's figure: a time of 103%, a rate of 97%.
    let by = if evidence.better == Better::Lower { percent(margin) } else { -percent(-margin) };
    reasons.push(format!("worse by {}% or more is rejected", Trimmed(by)));
    let mixed = mixed(evidence, Typically::NotSlower(by), reasons);
    if mixed.is_some() || !is_faster {
        let change = signed(estimate, interval);
        return mixed.or(Some(Verdict::NotSlower { by, change, beside: beside(evidence) }));
    }
    None
}

/// Converts a log-ratio and its interval to signed changes.
fn signed(estimate: f64, interval: Interval) -> Change {
    Change { percent: percent(estimate), low: percent(interval.low), high: percent(interval.high) }
}

/// Returns the verdict for an average that contradicts the typical run.
fn mixed(evidence: &Evidence<'_>, typically: Typically, reasons: &mut Vec<String>) -> Option<Verdict> {
    let average = evidence.average?;
    let (lies, change) = (average.lies, average.change());
    let contrary = match (lies, typically) {
        (OnAverage::Below, Typically::Differs(..)) => evidence.difference.estimate > 0.0,
        (OnAverage::Above, Typically::Differs(..)) => evidence.difference.estimate < 0.0,
        (OnAverage::Below | OnAverage::Above, Typically::Equal(_)) => true,
        (OnAverage::Below, Typically::NotSlower(_)) => evidence.better == Better::Higher,
        (OnAverage::Above, Typically::NotSlower(_)) => evidence.better == Better::Lower,
        _ => false,
    };
    let asked = !matches!(typically, Typically::Differs(..));
    let sentence = format!("the average of the runs seen changes by {}", Signed(change));
    if contrary {
        reasons.push(sentence);
        let ends = [change.low, change.high].map(f64::abs);
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let average = Change { percent: change.percent.abs(), low, high };
        let on_average = side(evidence.better, lies == OnAverage::Below);
        return Some(Verdict::Mixed { typically, on_average, average });
    }
    if lies == OnAverage::Open {
        let what = if asked { "from the margin" } else { "from no change" };
        reasons.push(format!("{sentence}, not told {what}"));
    }
    None
}

/// Returns the side of a change to lower or higher figures.
fn side(better: Better, lower: bool) -> Side {
    if lower == (better == Better::Lower) { Side::Faster } else { Side::Slower }
}

fn difference(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    let Difference { estimate, adjusted_p, interval, blocks, .. } = evidence.difference;
    if adjusted_p > evidence.alpha || interval.contains(0.0) {
        return None;
    }
    let ends = [percent(interval.low), percent(interval.high)].map(f64::abs);
    let change =
        Change { percent: percent(estimate).abs(), low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
    let typically = side(evidence.better, interval.high < 0.0);
    // The stalls of a few runs may cancel the gain of all others.
    let mixed = mixed(evidence, Typically::Differs(typically, change), reasons);
    reasons.extend(looks_too_large(evidence));
    reasons.push(format!(
        "adjusted {} over {} claim{} and {blocks} blocks, interval clear of no effect",
        Chance(adjusted_p),
        evidence.claims,
        if evidence.claims == 1 { "" } else { "s" }
    ));
    Some(mixed.unwrap_or(match typically {
        Side::Faster => Verdict::Faster(change),
        Side::Slower => Verdict::Slower(change),
    }))
}

/// Returns the reason for a proved effect smaller than these blocks find with the usual power: its
/// size without the bias of being proved.
fn looks_too_large(evidence: &Evidence<'_>) -> Option<String> {
    let Difference { estimate, interval, level, blocks, deviation, unit, .. } = evidence.difference;
    let floor = noise::smallest_effect(blocks, deviation, level, POWER, evidence.seed) + unit;
    if !floor.is_finite() || estimate.abs() >= floor {
        return None;
    }
    let critical = student::upper_quantile(level / 2.0, blocks as f64 - 1.0);
    let left = selection::corrected(estimate, deviation / (blocks as f64).sqrt(), critical);
    // The interval has the test's own spread, which the correction only approximates.
    let left = left.clamp(interval.low, interval.high);
    Some(format!(
        "{TOO_LARGE} find an effect of this size, and those that do say too much of it: corrected for that, {:+.1}%",
        percent(left)
    ))
}

fn not_proved(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Verdict {
    let Difference { estimate, adjusted_p, level, blocks, blocks_min, deviation, unit, .. } =
        evidence.difference;
    reasons.push(format!("adjusted p = {adjusted_p:.3}, effect {:+.1}%", percent(estimate)));
    if adjusted_p <= evidence.alpha && evidence.difference.interval.contains(0.0) {
        reasons.push("blocks with equal differences leave no effect at the end of the interval".to_string());
    }
    if blocks < blocks_min || deviation.is_nan() {
        // One block has no spread, so only the fewest blocks are known.
        let more = More::Fewest(blocks_min.saturating_sub(blocks).max(1));
        return Verdict::NotProved { floor: f64::NAN, more };
    }
    if deviation <= 0.0 {
        return Verdict::NotProved { floor: f64::NAN, more: More::Never };
    }
    let floor = noise::smallest_effect(blocks, deviation, level, POWER, evidence.seed) + unit;
    let floor = if floor.is_finite() { percent(floor) } else { f64::NAN };
    let (needed, aim) = sought(evidence);
    let needed = needed.max(blocks_min);
    let more = match needed {
        enough if enough <= blocks => More::Enough(aim),
        noise::BLOCKS_MAX.. => More::TooMany(aim),
        needed => More::Blocks(needed - blocks, aim),
    };
    Verdict::NotProved { floor, more }
}

/// Returns all blocks for the goal, regardless of the observed effect, which is chance.
fn sought(evidence: &Evidence<'_>) -> (usize, Aim) {
    let Difference { level, deviation, unit, .. } = evidence.difference;
    let goal = |effect: f64| Goal { effect, deviation, alpha: level, power: POWER };
    match evidence.sought {
        Sought::Equality(margin) => {
            let blocks = noise::blocks_for_equality(&goal(0.0), margin - unit, evidence.seed);
            (blocks, Aim::Equal(percent(margin)))
        }
        Sought::Difference(effect) | Sought::NotSlower(effect) => {
            // Rounding hides a unit of any effect.
            let seen = effect.abs() - unit;
            let blocks =
                if seen > 0.0 { noise::blocks_for(&goal(seen), evidence.seed) } else { noise::BLOCKS_MAX };
            (blocks, Aim::Find(percent(effect.abs())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(percent: f64, low: f64, high: f64) -> Change {
        Change { percent, low, high }
    }

    fn slow(treatment: usize, reference: usize) -> Option<SlowSeen> {
        let share = Interval { low: 0.0, high: 0.095 };
        let of = |slow, runs| SlowRuns { slow, runs, share };
        Some(SlowSeen { treatment: of(treatment, 30), reference: of(reference, 60) })
    }

    #[test]
    fn every_line() {
        let lines = [
            Verdict::Faster(change(5.0, 3.12, 6.94)),
            Verdict::Slower(change(64.71, 60.0, 70.2)),
            Verdict::Faster(change(0.43, 0.05, 0.81)),
            Verdict::Equal { within: 2.0, beside: None },
            Verdict::Equal { within: 0.5, beside: Some(TypicalLimits::default()) },
            Verdict::Equal { within: 5.0, beside: Some(TypicalLimits { slow: slow(0, 0), average: None }) },
            Verdict::NotSlower {
                by: 3.0,
                change: change(0.43, -1.05, 1.81),
                beside: TypicalLimits { slow: slow(2, 0), average: Some(change(14.0, -2.0, 43.0)) },
            },
            Verdict::Slower(change(30.0, 12.04, 45.0)).in_p95(),
            Verdict::Equal { within: 5.0, beside: Some(TypicalLimits::default()) }.in_p95(),
            Verdict::Mixed {
                typically: Typically::Differs(Side::Faster, change(5.0, 3.0, 7.0)),
                on_average: Side::Slower,
                average: change(14.0, 3.0, 25.1),
            },
            Verdict::NotProved { floor: 1.23, more: More::Blocks(14, Aim::Find(1.0)) },
            Verdict::NotProved { floor: 1.23, more: More::Enough(Aim::Equal(2.0)) },
            Verdict::NotProved { floor: f64::NAN, more: More::Never },
            Verdict::NotProved { floor: 30.0, more: More::TooMany(Aim::Find(0.1)) },
            Verdict::NoFigure { reason: "redo writes is 0 in run 4".to_string() },
            Verdict::Unstable { reason: "direct changes by +8.0% about block 9 (p = 0.0005)".to_string() },
            Verdict::Invalid { reason: "direct I/O asked for, 0 of 412 requests were direct".to_string() },
            Verdict::Impossible { reason: "4.1 GB/s read, the device gives 2.0 GB/s".to_string() },
        ];
        let mut text: Vec<String> = lines.iter().map(|line| format!("{} {line}", line.exit_code())).collect();
        let longest = "0 PROVED typically not slower by 3%: +0.43% [-1.1, 1.8], but for slow runs (2 of 30, \
                       none of 60 of the reference: at most 9.5%); on average of the runs seen +14.0% [-2.0, 43.0]";
        assert_eq!(text.remove(6), longest);
        insta::assert_snapshot!(text.join("\n"), @r"
        0 PROVED faster by 5.0% [3.1, 6.9]
        0 PROVED slower by 64.7% [60.0, 70.2]
        0 PROVED faster by 0.43% [0.050, 0.81]
        0 PROVED EQUAL within +-2%
        0 PROVED typically EQUAL within +-0.5%
        0 PROVED typically EQUAL within +-5%, but for slow runs (none of 30: at most 9.5%)
        0 PROVED in p95: slower by 30.0% [12.0, 45.0]
        0 PROVED in p95: equal within +-5%
        8 MIXED: typically faster by 5.0% [3.0, 7.0], on average slower by 14.0% [3.0, 25.1]
        3 NOT PROVED: floor 1.2%, about 14 more blocks find 1.0% (80% power)
        3 NOT PROVED: floor 1.2%, these blocks prove equal arms equal within 2% (80% power)
        3 NOT PROVED: all figures are alike, and no number of blocks tells more
        3 NOT PROVED: floor 30.0%, more than 2000 blocks find 0.10% (80% power)
        3 NOT PROVED: redo writes is 0 in run 4
        4 UNSTABLE: direct changes by +8.0% about block 9 (p = 0.0005)
        5 INVALID: direct I/O asked for, 0 of 412 requests were direct
        6 IMPOSSIBLE: 4.1 GB/s read, the device gives 2.0 GB/s
        ");
        assert_eq!(worst(&lines).map(Verdict::exit_code), Some(6));
        assert_eq!(worst(&lines[..10]).map(Verdict::exit_code), Some(8));
        assert_eq!(worst(&lines[..4]), Some(&lines[0]), "the first of equals");
        assert_eq!(worst(&[]), None);
    }

    fn evidence(estimate: f64, adjusted_p: f64) -> Evidence<'static> {
        let interval = Interval { low: estimate - 0.02, high: estimate + 0.02 };
        Evidence {
            beyond_bound: &[],
            contradictions: &[],
            changes: &[],
            order: None,
            carry_over: None,
            difference: Difference {
                estimate,
                adjusted_p,
                interval,
                level: 0.05,
                blocks: 12,
                blocks_min: 6,
                deviation: 0.03,
                unit: 0.0,
            },
            equivalence: None,
            place: Place::Open,
            average: None,
            slow: None,
            identical: false,
            wanders_p: None,
            shape_p: None,
            alpha: 0.05,
            claims: 1,
            better: Better::Lower,
            sought: Sought::Difference(0.02),
            seed: 1,
        }
    }

    #[test]
    fn numbers_decide_when_nothing_speaks_against_the_data() {
        assert_eq!(judge(&evidence(-0.05, 0.01)).verdict.to_string(), "PROVED faster by 4.9% [3.0, 6.8]");
        let rate = Evidence { better: Better::Higher, ..evidence(-0.05, 0.01) };
        assert_eq!(judge(&rate).verdict.to_string(), "PROVED slower by 4.9% [3.0, 6.8]");
        let unclear = judge(&evidence(0.01, 0.3));
        let Verdict::NotProved { more, .. } = unclear.verdict else { panic!("{unclear:?}") };
        assert!(more.blocks().is_some_and(|more| (5..=12).contains(&more)), "{more:?}");
        assert!(more.to_string().ends_with(" more blocks find 2.0% (80% power)"), "{more}");
        let tests = |p: f64| Some(Equivalence { margin: 0.02, p_lower: p, p_upper: p, p });
        let equal = Evidence { equivalence: tests(0.05), ..evidence(0.0, 0.9) };
        assert_eq!(judge(&equal).verdict.to_string(), "PROVED typically EQUAL within +-2%");
        let counts = Evidence { identical: true, ..equal };
        assert_eq!(judge(&counts).verdict.to_string(), "PROVED EQUAL within +-2%");
    }

    #[test]
    fn a_doubt_about_the_data_comes_before_any_number() {
        let bound = ["9 GB/s".to_string()];
        let receipt = ["buffered".to_string()];
        let changes = [ArmChange {
            arm: "direct".to_string(),
            change: ChangePoint { index: 8, shift: 0.1, p: 0.0005, steady: false },
        }];
        let mut all = evidence(-0.5, 0.001);
        all.changes = &changes;
        assert_eq!(
            judge(&all).verdict.to_string(),
            "UNSTABLE: direct changes by +10.5% about block 9 (p = 0.0005)"
        );
        all.contradictions = &receipt;
        assert_eq!(judge(&all).verdict.to_string(), "INVALID: buffered");
        all.beyond_bound = &bound;
        assert_eq!(judge(&all).verdict.to_string(), "IMPOSSIBLE: 9 GB/s");
    }

    #[test]
    fn too_few_blocks_prove_nothing_whatever_the_numbers() {
        let mut few = evidence(-0.5, 0.0);
        few.difference.blocks = 5;
        let judgement = judge(&few);
        assert_eq!(judgement.verdict.exit_code(), 3);
        assert!(judgement.reasons[0].contains("6 is the fewest"), "{judgement:?}");
    }

    fn on_average(lies: OnAverage, ratio: f64) -> Option<Average> {
        Some(Average { lies, ratio, interval: Interval { low: ratio - 0.1, high: ratio + 0.1 } })
    }

    #[test]
    fn an_average_that_is_proved_to_lie_on_the_other_side_makes_a_proof_mixed() {
        let judged = |lies, ratio, better| {
            let average = on_average(lies, ratio);
            judge(&Evidence { better, average, ..evidence(-0.05, 0.01) })
        };
        let stalls = judged(OnAverage::Above, 1.14, Better::Lower).verdict.to_string();
        let line = "MIXED: typically faster by 4.9% [3.0, 6.8], on average slower by 14.0% [4.0, 24.0]";
        assert_eq!(stalls, line);
        // An average that is only observed is a reason and no more.
        let open = judged(OnAverage::Open, 1.06, Better::Lower);
        assert_eq!(open.verdict.to_string(), "PROVED faster by 4.9% [3.0, 6.8]");
        let said = "the average of the runs seen changes by +6.0% [-4.0, 16.0], not told from no change";
        assert!(open.reasons.iter().any(|reason| reason == said), "{:?}", open.reasons);
        assert_eq!(judged(OnAverage::Below, 0.85, Better::Lower).verdict.exit_code(), 0);
        let rate = judged(OnAverage::Above, 1.14, Better::Higher).verdict.to_string();
        assert!(rate.ends_with("on average faster by 14.0% [4.0, 24.0]"), "{rate}");
    }

    #[test]
    fn an_equality_and_a_margin_are_of_the_typical_run_and_say_an_average_that_is_not() {
        let equal = |lies, ratio| {
            let equivalence = Some(Equivalence { margin: 0.05, p_lower: 0.01, p_upper: 0.01, p: 0.01 });
            let average = on_average(lies, ratio);
            judge(&Evidence { equivalence, average, ..evidence(0.0, 0.9) }).verdict.to_string()
        };
        assert_eq!(equal(OnAverage::Within, 1.0), "PROVED typically EQUAL within +-5%");
        let open = "PROVED typically EQUAL within +-5%; on average of the runs seen +14.0% [4.0, 24.0]";
        assert_eq!(equal(OnAverage::Open, 1.14), open);
        let above = "MIXED: typically equal within +-5%, on average slower by 20.0% [10.0, 30.0]";
        assert_eq!(equal(OnAverage::Above, 1.2), above);
        let not_slower = |lies, estimate: f64, place, better| {
            let sought = Sought::NotSlower(0.03f64.ln_1p());
            let average = on_average(lies, 1.01);
            let p = if estimate.abs() > 0.02 { 0.01 } else { 0.5 };
            judge(&Evidence { sought, average, place, better, ..evidence(estimate, p) }).verdict.to_string()
        };
        let proved = not_slower(OnAverage::Within, 0.005, Place::Below, Better::Lower);
        assert_eq!(proved, "PROVED typically not slower by 3%: +0.50% [-1.5, 2.5]");
        let rate = not_slower(OnAverage::Within, -0.005, Place::Above, Better::Higher);
        assert!(rate.starts_with("PROVED typically not slower by 2.913%: -0.50%"), "{rate}");
        let faster = not_slower(OnAverage::Within, -0.05, Place::Below, Better::Lower);
        assert!(faster.starts_with("PROVED faster by 4.9%"), "{faster}");
        let wide = not_slower(OnAverage::Open, 0.005, Place::Below, Better::Lower);
        assert!(wide.ends_with("[-1.5, 2.5]; on average of the runs seen +1.0% [-9.0, 11.0]"), "{wide}");
    }

    #[test]
    fn what_is_proved_near_the_edge_of_power_is_said_to_look_too_large() {
        let reasons = |estimate: f64| judge(&evidence(estimate, 0.03)).reasons;
        assert!(reasons(-0.022).iter().any(|reason| reason.starts_with("fewer than 80% of such studies")));
        assert!(!reasons(-0.06).iter().any(|reason| reason.starts_with("fewer than 80%")));
    }

    #[test]
    fn a_wandering_effect_is_unstable_where_something_is_proved() {
        let wandering = |p: f64, proved: f64| {
            judge(&Evidence { wanders_p: Some(p), ..evidence(-0.05, proved) }).verdict.standing()
        };
        assert_eq!(wandering(0.005, 0.01), Standing::Unstable);
        assert_eq!(wandering(0.02, 0.01), Standing::Proved);
        assert_eq!(wandering(0.005, 0.5), Standing::NotProved);
    }

    #[test]
    fn a_claim_of_equality_plans_for_equality() {
        let more =
            |sought: Sought, estimate: f64| match judge(&Evidence { sought, ..evidence(estimate, 0.9) })
                .verdict
            {
                Verdict::NotProved { more, .. } => more.blocks().map(|more| more + 12),
                _ => None,
            };
        let (equal, difference) = (more(Sought::Equality(0.02), 0.0), more(Sought::Difference(0.02), 0.0));
        assert!(equal.is_some_and(|blocks| (16..=28).contains(&blocks)), "{equal:?}");
        assert!(difference.is_some_and(|blocks| (17..=24).contains(&blocks)), "{difference:?}");
        // The observed effect is chance, and plans nothing.
        assert_eq!(more(Sought::Equality(0.02), 0.019), equal);
        assert_eq!(more(Sought::Difference(0.02), 0.001), difference);
        assert_eq!(more(Sought::Difference(0.2), 0.0), None, "these blocks find it");
    }

    #[test]
    fn a_study_stands_as_its_worst_claim() {
        let all = [
            (Standing::Impossible, 6),
            (Standing::Invalid, 5),
            (Standing::Unstable, 4),
            (Standing::Refuted, 7),
            (Standing::Mixed, 8),
            (Standing::NotProved, 3),
            (Standing::Proved, 0),
        ];
        assert!(all.is_sorted());
        assert!(all.iter().all(|(standing, code)| standing.exit_code() == *code));
    }

    #[test]
    fn a_p_that_passes_beside_an_interval_that_does_not_is_explained() {
        let mut tied = evidence(-0.05, 0.039);
        tied.difference.interval = Interval { low: -0.1, high: 0.0 };
        let judgement = judge(&tied);
        assert_eq!(judgement.verdict.exit_code(), 3);
        assert!(judgement.reasons.iter().any(|reason| reason.contains("equal differences")), "{judgement:?}");
    }

    #[test]
    fn one_block_tells_no_noise() {
        let mut one = evidence(-0.5, 1.0);
        (one.difference.blocks, one.difference.deviation) = (1, f64::NAN);
        assert_eq!(
            judge(&one).verdict.to_string(),
            "NOT PROVED: floor unknown, nothing is proved before 5 more blocks"
        );
    }

    #[test]
    fn carry_over_matters_when_it_is_large_beside_the_effect() {
        let group = |index, shift| crate::order::Group { index, shift };
        let order = OrderReport {
            position_p: 0.5,
            positions: vec![],
            carry_over_p: 0.001,
            predecessors: vec![group(0, 0.0), group(1, 0.03)],
            drift_p: 0.5,
            drift_per_block: 0.0,
        };
        let small = Evidence { order: Some(&order), ..evidence(-0.05, 0.001) };
        assert_eq!(
            judge(&small).verdict.to_string(),
            "UNSTABLE: the run before may matter, by up to 3.0% (p = 0.001)"
        );
        let after =
            |shift: f64| Evidence { carry_over: Some(After { shift, p: 0.08 }), ..evidence(-0.05, 0.001) };
        let own = judge(&after(0.02)).verdict.to_string();
        assert!(own.starts_with("UNSTABLE: the run before may matter, by up to 2.0% (p = 0.040)"), "{own}");
        assert_eq!(judge(&after(-0.02)).verdict.exit_code(), 0, "it hides a part of the gain");
        let large = Evidence { order: Some(&order), ..evidence(-0.5, 0.001) };
        assert_eq!(judge(&large).verdict.exit_code(), 0);
    }
}
