//! One line that says what the evidence proves.
//!
//! | verdict | when | exit |
//! |---|---|---|
//! | PROVED faster / slower | p <= alpha after correction, the interval is clear of no effect, and runs agree on average | 0 |
//! | PROVED EQUAL | both one-sided tests about the margin | 0 |
//! | NOT PROVED | neither; or the figures have no ratio, as where one is 0 | 3 |
//! | MIXED | the typical run is proved better or worse, and the average of all runs lies on the other side | 8 |
//! | REFUTED | what is proved excludes what was claimed | 7 |
//! | UNSTABLE | an arm changes during the study, or the run before matters | 4 |
//! | INVALID | a receipt contradicts its setting, or a run failed verification | 5 |
//! | IMPOSSIBLE | a figure beyond a physical bound | 6 |
//!
//! `judge` asks in the order of falling doubt about the data itself: what cannot have happened
//! first, then what was not the experiment asked for, then whether the arms held still, and
//! only then what the numbers say. Each answer it passes over, and each it stops at, is among the
//! reasons. A study stands as its worst claim does, and [`Standing`] is the table of what is worse than what: IMPOSSIBLE, INVALID,
//! UNSTABLE, REFUTED, MIXED, NOT PROVED, PROVED. REFUTED is no verdict on an effect but on a claim about it, and the
//! caller, who knows the claim, says so.
//!
//! "Faster by 5%" means the better by 5% of the reference's figure: 5% less time, or
//! 5% more throughput. The interval is in the same words, both ends positive when proved.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;

use crate::change_point::ChangePoint;
use crate::effect::percent;
use crate::equivalence::Equivalence;
use crate::interval::Interval;
use crate::noise::{self, Goal};
use crate::order::{After, OrderReport};

/// The power that floors and plans are stated for.
pub const POWER: f64 = 0.8;
/// A test of order speaks at this p.
pub const ORDER_P: f64 = 0.01;
/// A carry-over from the arms of a claim is believed at this p ...
pub const CARRY_OVER_P: f64 = 0.05;
/// ... and matters when it exceeds this share of the effect claimed (after Duplyakin
/// et al. 2023, who found order to be worth effects of the usual size).
pub const CARRY_OVER_SHARE: f64 = 1.0 / 3.0;

/// Which figures are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times, waits, bytes moved.
    Lower,
    /// Rates.
    Higher,
}

/// The side on which something is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The better one.
    Faster,
    /// The worse one.
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

/// How a claim or a study stands, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A figure that no machine gives.
    Impossible,
    /// Not the experiment that was asked for.
    Invalid,
    /// The arms did not hold still.
    Unstable,
    /// A claim is contradicted by what is proved.
    Refuted,
    /// The typical run and the average disagree.
    Mixed,
    /// Nothing is decided.
    NotProved,
    /// Something is.
    Proved,
}

impl Standing {
    /// The program's exit code.
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

    /// The word.
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

/// A proved change in per cent of the reference's figure, both ends of its interval
/// in the same direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The estimate.
    pub percent: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What is said of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The treatment is better.
    Faster(Change),
    /// The treatment is worse.
    Slower(Change),
    /// No difference larger than the margin, in per cent.
    Equal {
        /// The margin.
        within: f64,
    },
    /// The typical run is proved to be on one side, and the average lies on the other.
    Mixed {
        /// Where the typical run lies.
        typically: Side,
        /// By how much.
        change: Change,
        /// By how much the average lies on the other side, in per cent of the reference's.
        average: f64,
    },
    /// Not enough evidence either way.
    NotProved {
        /// Smallest effect this study would have found with 80% power, in per cent; NaN where
        /// no two blocks tell the noise.
        floor: f64,
        /// Blocks still to run, unless no sensible number would do.
        more_blocks: Option<usize>,
    },
    /// There is no figure to be tested, however many blocks there are.
    NoFigure {
        /// Which one is missing.
        reason: String,
    },
    /// The arms did not hold still.
    Unstable {
        /// What changed.
        reason: String,
    },
    /// Not the experiment that was asked for.
    Invalid {
        /// Which receipt or check.
        reason: String,
    },
    /// No such figure can be.
    Impossible {
        /// Which bound.
        reason: String,
    },
}

impl Verdict {
    /// How a claim stands of which this is said.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Faster(_) | Self::Slower(_) | Self::Equal { .. } => Standing::Proved,
            Self::Mixed { .. } => Standing::Mixed,
            Self::NotProved { .. } | Self::NoFigure { .. } => Standing::NotProved,
            Self::Unstable { .. } => Standing::Unstable,
            Self::Invalid { .. } => Standing::Invalid,
            Self::Impossible { .. } => Standing::Impossible,
        }
    }

    /// The program's exit code.
    pub fn exit_code(&self) -> u8 {
        self.standing().exit_code()
    }

    /// The words before the first figure.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Faster(_) => "PROVED faster",
            Self::Slower(_) => "PROVED slower",
            Self::Equal { .. } => "PROVED EQUAL",
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
            Self::Faster(change) | Self::Slower(change) => {
                let Change { percent, low, high } = change;
                write!(out, "{label} by {}% [{}, {}]", Figure(*percent), Figure(*low), Figure(*high))
            }
            Self::Equal { within } => write!(out, "{label} within +-{}%", Trimmed(*within)),
            Self::Mixed { typically, change: Change { percent, low, high }, average } => {
                let other = match typically {
                    Side::Faster => Side::Slower,
                    Side::Slower => Side::Faster,
                };
                write!(
                    out,
                    "{label}: typically {} by {}% [{}, {}], on average {} by {}%",
                    typically.word(),
                    Figure(*percent),
                    Figure(*low),
                    Figure(*high),
                    other.word(),
                    Figure(*average)
                )
            }
            Self::NotProved { floor, more_blocks } => {
                if floor.is_finite() {
                    write!(out, "{label}: floor {}%, ", Figure(*floor))?;
                } else {
                    write!(out, "{label}: floor unknown, ")?;
                }
                match more_blocks {
                    Some(1) => out.write_str("about 1 more block needed"),
                    Some(blocks) => write!(out, "about {blocks} more blocks needed"),
                    None => write!(out, "more than {} blocks needed", noise::BLOCKS_MAX),
                }
            }
            Self::NoFigure { reason }
            | Self::Unstable { reason }
            | Self::Invalid { reason }
            | Self::Impossible { reason } => {
                write!(out, "{label}: {reason}")
            }
        }
    }
}

/// A verdict is kept as it is read: label, line and exit code.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Verdict", 3)?;
        fields.serialize_field("label", self.label())?;
        fields.serialize_field("line", &self.to_string())?;
        fields.serialize_field("exit_code", &self.exit_code())?;
        fields.end()
    }
}

/// Two digits that mean something: 0.043, 0.43, 4.3, 43.2.
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

/// A p with four decimals; none is 0.
struct Chance(f64);

impl fmt::Display for Chance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0.0001 { out.write_str("p < 0.0001") } else { write!(out, "p = {:.4}", self.0) }
    }
}

/// A chosen number as it was chosen: 2, 0.5.
struct Trimmed(f64);

impl fmt::Display for Trimmed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.0);
        out.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The worst of several, the first of equals; none of none.
pub fn worst(verdicts: &[Verdict]) -> Option<&Verdict> {
    verdicts.iter().min_by_key(|verdict| verdict.standing())
}

/// The test of a claim after correction for the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Log-ratio of treatment to reference.
    pub estimate: f64,
    /// p to be held against `alpha`: corrected for the family.
    pub adjusted_p: f64,
    /// The interval at the level of the claim.
    pub interval: Interval,
    /// That level.
    pub level: f64,
    /// Blocks used.
    pub blocks: usize,
    /// The fewest blocks with which a comparison of this kind can be proved at that level.
    pub blocks_min: usize,
    /// Standard deviation of the effect over the blocks, what floors and plans are made of; NaN of fewer than two.
    pub deviation: f64,
}

/// What more blocks are counted for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sought {
    /// A difference of this log-ratio, or, when there were enough for it, the one seen.
    Difference(f64),
    /// An equality within this log-ratio.
    Equality(f64),
}

/// A change point and the arm in which it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmChange {
    /// Name of the arm.
    pub arm: String,
    /// Where and how much.
    pub change: ChangePoint,
}

/// All that a verdict rests on. Nothing is optional by default: a study that did not look
/// says so by an empty list, in sight of the reader.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// Figures beyond a physical bound, a sentence each.
    pub beyond_bound: &'a [String],
    /// Receipts that contradict their setting and runs that failed verification.
    pub contradictions: &'a [String],
    /// Changes of the arms of this claim.
    pub changes: &'a [ArmChange],
    /// Tests of the order, if runs were ordered.
    pub order: Option<&'a OrderReport>,
    /// The corrected test.
    pub difference: Difference,
    /// What the runs before did to those after, if runs were ordered: after the claim's own arms.
    pub carry_over: Option<After>,
    /// The equivalence test, if a margin was claimed.
    pub equivalence: Option<Equivalence>,
    /// The ratio of the means, where there is one.
    pub average: Option<f64>,
    /// Error allowed to the whole study.
    pub alpha: f64,
    /// Claims of the study.
    pub claims: usize,
    /// Which direction is good.
    pub better: Better,
    /// What more blocks are counted for.
    pub sought: Sought,
    /// Seed of the planning simulation.
    pub seed: u64,
}

/// A verdict and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Sentences, the decisive one last.
    pub reasons: Vec<String>,
}

/// Turns evidence into a verdict.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut reasons = Vec::new();
    let verdict = physical(evidence, &mut reasons)
        .or_else(|| receipts(evidence, &mut reasons))
        .or_else(|| stability(evidence, &mut reasons))
        .or_else(|| equality(evidence, &mut reasons))
        .or_else(|| too_few(evidence, &mut reasons))
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
        format!("{arm} changes by {shift:+.1}% at block {} (p = {:.4})", change.index + 1, change.p)
    });
    let mut found: Vec<String> = changes.collect();
    let general = evidence.order.map(|order| (order.carry_over_size(), order.carry_over_p, ORDER_P));
    // A treatment that slows its successors looks fast; one that speeds them up hides what it gains, which proves nothing
    // falsely. So one side matters, but to an equality, which both may make.
    let towards = |after: &After| after.shift * evidence.difference.estimate < 0.0;
    let equal = evidence.equivalence.is_some_and(|test| test.p <= evidence.alpha);
    let own = evidence.carry_over.filter(|after| equal || towards(after));
    let own = own.map(|after| (after.shift.abs(), if equal { after.p } else { after.p / 2.0 }, CARRY_OVER_P));
    let limit = CARRY_OVER_SHARE * at_stake(evidence);
    let believed = own.into_iter().chain(general).find(|(size, p, most)| p <= most && *size > limit);
    if let Some((size, p, _)) = believed {
        found.push(format!("the run before matters, by up to {:.1}% (p = {p:.3})", percent(size)));
    } else if evidence.order.is_some_and(|order| order.position_p <= ORDER_P || order.drift_p <= ORDER_P) {
        reasons.push("the machine drifted; the random order balances it".to_string());
    }
    let reason = found.first().cloned();
    reasons.extend(found);
    reason.map(|reason| Verdict::Unstable { reason })
}

/// What a carry-over could have made or hidden: the difference that is proved, the margin of an equality; nothing is at
/// stake where nothing is proved.
fn at_stake(evidence: &Evidence<'_>) -> f64 {
    match evidence.equivalence {
        Some(test) if test.p <= evidence.alpha => test.margin.ln_1p(),
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
    Some(Verdict::Equal { within: 100.0 * equivalence.margin })
}

fn difference(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Option<Verdict> {
    let Difference { estimate, adjusted_p, interval, blocks, .. } = evidence.difference;
    if adjusted_p > evidence.alpha || interval.contains(0.0) {
        return None;
    }
    reasons.push(format!(
        "adjusted {} over {} claim{} and {blocks} blocks, interval clear of no effect",
        Chance(adjusted_p),
        evidence.claims,
        if evidence.claims == 1 { "" } else { "s" }
    ));
    let ends = [percent(interval.low), percent(interval.high)].map(f64::abs);
    let change =
        Change { percent: percent(estimate).abs(), low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
    let lower = interval.high < 0.0;
    let typically = if lower == (evidence.better == Better::Lower) { Side::Faster } else { Side::Slower };
    // The stalls of a few runs may take back what all others gain.
    if let Some(average) = evidence.average.filter(|ratio| (*ratio < 1.0) != lower) {
        let average = 100.0 * (average - 1.0);
        reasons.push(format!("the mean of all runs changes by {average:+.1}%"));
        return Some(Verdict::Mixed { typically, change, average: average.abs() });
    }
    Some(match typically {
        Side::Faster => Verdict::Faster(change),
        Side::Slower => Verdict::Slower(change),
    })
}

fn not_proved(evidence: &Evidence<'_>, reasons: &mut Vec<String>) -> Verdict {
    let Difference { estimate, adjusted_p, level, blocks, blocks_min, deviation, .. } = evidence.difference;
    reasons.push(format!("adjusted p = {adjusted_p:.3}, effect {:+.1}%", percent(estimate)));
    if adjusted_p <= evidence.alpha && evidence.difference.interval.contains(0.0) {
        reasons.push("blocks with equal differences leave no effect at the end of the interval".to_string());
    }
    let floor = noise::smallest_effect(blocks, deviation, level, POWER, evidence.seed);
    let floor = if floor.is_finite() { percent(floor) } else { f64::NAN };
    if deviation.is_nan() || deviation <= 0.0 {
        // One block has no spread: what is known is how few could prove anything.
        let more_blocks = Some(blocks_min.saturating_sub(blocks).max(1));
        return Verdict::NotProved { floor: f64::NAN, more_blocks };
    }
    let needed = blocks_sought(evidence).max(blocks_min);
    let more_blocks = (needed < noise::BLOCKS_MAX).then(|| needed.saturating_sub(blocks).max(1));
    Verdict::NotProved { floor, more_blocks }
}

/// Blocks in all for what is sought.
fn blocks_sought(evidence: &Evidence<'_>) -> usize {
    let Difference { estimate, level, blocks, deviation, .. } = evidence.difference;
    let goal = |effect: f64| Goal { effect, deviation, alpha: level, power: POWER };
    let total = |effect: f64| noise::blocks_for(&goal(effect), evidence.seed);
    match evidence.sought {
        Sought::Equality(margin) if estimate.abs() < margin => {
            noise::blocks_for_equality(&goal(estimate), margin, evidence.seed)
        }
        // Beyond its margin, what can be proved is the difference.
        Sought::Equality(_) => total(estimate),
        Sought::Difference(sought) => {
            // A larger effect than the one sought takes fewer blocks. Enough for the effect sought, and it
            // was not found: then for one as small as what was seen.
            let larger = Some(estimate).filter(|seen| seen.abs() > sought.abs()).map(total);
            let needed = larger.into_iter().chain([total(sought)]).find(|needed| *needed > blocks);
            needed.unwrap_or_else(|| total(estimate))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(percent: f64, low: f64, high: f64) -> Change {
        Change { percent, low, high }
    }

    #[test]
    fn every_line() {
        let lines = [
            Verdict::Faster(change(5.0, 3.12, 6.94)),
            Verdict::Slower(change(64.71, 60.0, 70.2)),
            Verdict::Faster(change(0.43, 0.05, 0.81)),
            Verdict::Equal { within: 2.0 },
            Verdict::Equal { within: 0.5 },
            Verdict::Mixed { typically: Side::Faster, change: change(5.0, 3.0, 7.0), average: 14.0 },
            Verdict::NotProved { floor: 1.23, more_blocks: Some(14) },
            Verdict::NotProved { floor: 1.23, more_blocks: Some(1) },
            Verdict::NotProved { floor: 30.0, more_blocks: None },
            Verdict::NoFigure { reason: "redo writes is 0 in run 4".to_string() },
            Verdict::Unstable { reason: "direct changes by +8.0% at block 9 (p = 0.0005)".to_string() },
            Verdict::Invalid { reason: "direct I/O asked for, 0 of 412 requests were direct".to_string() },
            Verdict::Impossible { reason: "4.1 GB/s read, the device gives 2.0 GB/s".to_string() },
        ];
        let text: Vec<String> = lines.iter().map(|line| format!("{} {line}", line.exit_code())).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        0 PROVED faster by 5.0% [3.1, 6.9]
        0 PROVED slower by 64.7% [60.0, 70.2]
        0 PROVED faster by 0.43% [0.050, 0.81]
        0 PROVED EQUAL within +-2%
        0 PROVED EQUAL within +-0.5%
        8 MIXED: typically faster by 5.0% [3.0, 7.0], on average slower by 14.0%
        3 NOT PROVED: floor 1.2%, about 14 more blocks needed
        3 NOT PROVED: floor 1.2%, about 1 more block needed
        3 NOT PROVED: floor 30.0%, more than 2000 blocks needed
        3 NOT PROVED: redo writes is 0 in run 4
        4 UNSTABLE: direct changes by +8.0% at block 9 (p = 0.0005)
        5 INVALID: direct I/O asked for, 0 of 412 requests were direct
        6 IMPOSSIBLE: 4.1 GB/s read, the device gives 2.0 GB/s
        ");
        assert_eq!(worst(&lines).map(Verdict::exit_code), Some(6));
        assert_eq!(worst(&lines[..7]).map(Verdict::exit_code), Some(8));
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
            },
            equivalence: None,
            average: None,
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
        assert!(
            matches!(unclear.verdict, Verdict::NotProved { more_blocks: Some(5..=12), .. }),
            "{unclear:?}"
        );
        let tests = |p: f64| Some(Equivalence { margin: 0.02, p_lower: p, p_upper: p, p });
        let equal = Evidence { equivalence: tests(0.05), ..evidence(0.0, 0.9) };
        assert_eq!(judge(&equal).verdict.to_string(), "PROVED EQUAL within +-2%");
    }

    #[test]
    fn a_doubt_about_the_data_comes_before_any_number() {
        let bound = ["9 GB/s".to_string()];
        let receipt = ["buffered".to_string()];
        let changes = [ArmChange {
            arm: "direct".to_string(),
            change: ChangePoint { index: 8, shift: 0.1, p: 0.0005 },
        }];
        let mut all = evidence(-0.5, 0.001);
        all.changes = &changes;
        assert_eq!(
            judge(&all).verdict.to_string(),
            "UNSTABLE: direct changes by +10.5% at block 9 (p = 0.0005)"
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

    #[test]
    fn an_average_on_the_other_side_makes_a_proof_mixed() {
        let stalls = Evidence { average: Some(1.14), ..evidence(-0.05, 0.01) };
        let line = "MIXED: typically faster by 4.9% [3.0, 6.8], on average slower by 14.0%";
        assert_eq!(judge(&stalls).verdict.to_string(), line);
        let agrees = Evidence { average: Some(0.99), ..evidence(-0.05, 0.01) };
        assert_eq!(judge(&agrees).verdict.exit_code(), 0);
        let rate = Evidence { better: Better::Higher, average: Some(1.14), ..evidence(-0.05, 0.01) };
        assert!(judge(&rate).verdict.to_string().ends_with("on average faster by 14.0%"));
    }

    #[test]
    fn a_claim_of_equality_plans_for_equality() {
        let more =
            |sought: Sought, estimate: f64| match judge(&Evidence { sought, ..evidence(estimate, 0.9) })
                .verdict
            {
                Verdict::NotProved { more_blocks, .. } => more_blocks.map(|more| more + 12),
                _ => None,
            };
        let (equal, difference) = (more(Sought::Equality(0.02), 0.0), more(Sought::Difference(0.02), 0.0));
        assert!(equal.is_some_and(|blocks| (16..=28).contains(&blocks)), "{equal:?}");
        assert!(difference.is_some_and(|blocks| (17..=24).contains(&blocks)), "{difference:?}");
        // At 1.9% the margin of 2% is near, and far more blocks are needed to be sure of it.
        assert!(more(Sought::Equality(0.02), 0.019).is_none_or(|blocks| blocks > 1_000));
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
        assert_eq!(judge(&one).verdict.to_string(), "NOT PROVED: floor unknown, about 5 more blocks needed");
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
            "UNSTABLE: the run before matters, by up to 3.0% (p = 0.001)"
        );
        let after =
            |shift: f64| Evidence { carry_over: Some(After { shift, p: 0.08 }), ..evidence(-0.05, 0.001) };
        let own = judge(&after(0.02)).verdict.to_string();
        assert!(own.starts_with("UNSTABLE: the run before matters, by up to 2.0% (p = 0.040)"), "{own}");
        assert_eq!(judge(&after(-0.02)).verdict.exit_code(), 0, "it hides a part of the gain");
        let large = Evidence { order: Some(&order), ..evidence(-0.5, 0.001) };
        assert_eq!(judge(&large).verdict.exit_code(), 0);
    }
}
