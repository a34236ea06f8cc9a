//! Tests which differences of two sets of runs exceed noise.
//!
//! - Pairs of runs of the same block: a measure has its verdict from the study's claim. Any other
//!   figure has the test of those claims on logarithms of ratios, corrected within its table. The
//!   intervals of a table hold together in 95% of comparisons. A measure without a claim is
//!   corrected for all pairs of arms, because the pair was picked afterwards. Of 28 pairs, one
//!   looks proved by chance. A figure that is 0 on one side only has no ratio. It is new or gone if
//!   all pairs agree and their number suffices for a proof.
//! - Repeated runs that were not interleaved: no test separates the setting from the hour, so there
//!   is no p. A difference is shown if no run of one set lies among those of the other. Shuffled
//!   sets of this size must do so in at most 5% of cases, 2 / C(n + m, n).
//! - Single runs: the raw change, without a test.

use super::measure_question::MeasureQuestion;
use super::{Difference, Judged, Outcome, Pairing, Sample, samples};
use crate::vocabulary::{Better, Figure, Measure};
use plumb_proof::average::{Figures, Means};
use plumb_proof::change_point::{self, Search};
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::log_ratio;
use plumb_proof::family::{self, Advice, Asks, Looks, Place, Question};
use plumb_proof::interval::Interval;
use plumb_proof::median;
use plumb_proof::multiple::{Outcome as Proved, Step, single_step};
use plumb_proof::order;
use plumb_proof::randomisation::{fewest_blocks, interval, spread, tails};
use plumb_proof::verdict::{self, ArmChange, Evidence, Sought};
use plumb_record::Record;
use plumb_record::figures::{DB_CPU, DB_TIME, ELAPSED, FigureGroup};

/// Error allowed to each table, and to the verdict.
pub const ALPHA: f64 = 0.05;
/// Smallest effect of interest, per cent.
const EFFECT_SOUGHT: f64 = 2.0;
/// Seed of simulations; constant, so that the same input gives the same report.
const SEED: u64 = 1996;

/// Judges every figure, and the study's measures with verdicts.
pub(super) fn judge(
    first: &[Record],
    second: &[Record],
    pairing: Pairing,
    asked: &[MeasureQuestion],
) -> (Vec<Difference>, Vec<Judged>) {
    let samples = samples(first, second);
    match pairing {
        Pairing::Single => (samples.iter().filter_map(raw).collect(), Vec::new()),
        Pairing::Apart => (samples.iter().map(apart).collect(), Vec::new()),
        Pairing::Blocks => {
            let (mut differences, mut judged) = (Vec::new(), Vec::new());
            let (measured, rest): (Vec<&Sample>, Vec<&Sample>) =
                samples.iter().partition(|sample| asked.iter().any(|asked| is_of(sample, &asked.measure)));
            for asked in asked {
                let sample = measured.iter().find(|sample| is_of(sample, &asked.measure));
                let runs = first.iter().chain(second);
                let own = || sample.and_then(|sample| by_itself(sample, asked, runs));
                judged.extend(asked.judged().or_else(own));
                differences.extend(sample.map(|sample| of_measure(sample, asked)));
            }
            for group in FigureGroup::ALL {
                let of_group: Vec<&Sample> =
                    rest.iter().copied().filter(|sample| sample.group == group).collect();
                differences.extend(paired(&of_group, 1));
            }
            (differences, judged)
        }
    }
}

/// True if this row of the report shows that measure.
fn is_of(sample: &Sample, measure: &Measure) -> bool {
    let (group, name) = match &measure.figure {
        Figure::Elapsed => (FigureGroup::Time, ELAPSED),
        Figure::DbTime => (FigureGroup::Time, DB_TIME),
        Figure::DbCpu => (FigureGroup::Time, DB_CPU),
        Figure::Event(name) => (FigureGroup::Event, name.as_str()),
        Figure::Count(name) | Figure::Bytes(name) | Figure::Micros(name) => {
            (FigureGroup::Statistic, name.as_str())
        }
        Figure::Measured(_) => (FigureGroup::Measure, measure.name.as_str()),
        // A measure made of several figures is no row of a report.
        Figure::Both(..)
        | Figure::ProcessCpu
        | Figure::Rate(_)
        | Figure::EventShare(_)
        | Figure::StreamRate(_)
        | Figure::StreamTime(_) => {
            return false;
        }
    };
    sample.group == group && sample.name == name
}

/// Returns the row of a measure: the claim's effect, or its own test.
fn of_measure(sample: &Sample, asked: &MeasureQuestion) -> Difference {
    let claimed = asked.claim.as_ref().and_then(|claim| Some((claim, claim.effect?)));
    match (untested(sample), claimed) {
        (Some(plain), _) => plain,
        (None, None) => paired(&[sample], asked.pairs).remove(0),
        (None, Some((claim, effect))) => {
            let proved = claim.adjusted_p.is_some_and(|p| p <= ALPHA);
            let outcome = match (effect.low, effect.high) {
                (Some(low), _) if proved && low > 1.0 => Outcome::Higher,
                (_, Some(high)) if proved && high < 1.0 => Outcome::Lower,
                _ => Outcome::Open,
            };
            Difference {
                low: effect.low,
                high: effect.high,
                p: claim.adjusted_p,
                runs: claim.blocks,
                ..bare(sample, effect.ratio, outcome)
            }
        }
    }
}

/// Change from one run to another.
fn raw(sample: &Sample) -> Option<Difference> {
    let (first, second) = (median(&sample.first), median(&sample.second));
    (first > 0.0).then(|| bare(sample, second / first, Outcome::Raw))
}

/// A difference with nothing but its ratio.
fn bare(sample: &Sample, ratio: f64, outcome: Outcome) -> Difference {
    Difference {
        group: sample.group,
        name: sample.name.clone(),
        ratio: Some(ratio).filter(|ratio| ratio.is_finite()),
        low: None,
        high: None,
        p: None,
        runs: sample.first.len().min(sample.second.len()) as u64,
        outcome,
    }
}

/// Tests one table of pairs; `choices` is the number of tables from which it was picked.
fn paired(samples: &[&Sample], choices: usize) -> Vec<Difference> {
    let tested: Vec<&Sample> = samples.iter().copied().filter(|sample| untested(sample).is_none()).collect();
    let plain = samples.iter().filter_map(|sample| untested(sample));
    plain.chain(tests(&tested, choices).iter().map(Tested::difference)).collect()
}

/// A tested figure, with a ratio in every pair.
struct Tested<'a> {
    sample: &'a Sample,
    contrast: Contrast,
    step: Step,
    interval: Interval,
}

/// Tests a table, corrected for its rows and for the tables not picked.
fn tests<'a>(samples: &[&'a Sample], choices: usize) -> Vec<Tested<'a>> {
    let contrasts: Vec<Contrast> =
        samples.iter().map(|sample| Contrast::of_differences(&logs(sample))).collect();
    let mut p: Vec<f64> = contrasts.iter().map(|contrast| tails(contrast, 0.0).two_sided()).collect();
    // A single step depends on the number of the other tests, not on their p.
    p.resize(p.len() * choices.max(1), 1.0);
    let rows = samples.iter().zip(contrasts).zip(single_step(&p, ALPHA));
    rows.map(|((sample, contrast), step)| {
        let interval = interval(&contrast, step.level);
        Tested { sample, contrast, step, interval }
    })
    .collect()
}

impl Tested<'_> {
    fn difference(&self) -> Difference {
        let Self { sample, contrast, step, interval } = self;
        let end = |end: f64| Some(end.exp()).filter(|_| end.is_finite());
        let outcome = match step.outcome {
            Proved::Proved if interval.low > 0.0 => Outcome::Higher,
            Proved::Proved if interval.high < 0.0 => Outcome::Lower,
            Proved::Proved | Proved::NotProved => Outcome::Open,
        };
        Difference {
            low: end(interval.low),
            high: end(interval.high),
            p: Some(step.adjusted_p),
            ..bare(sample, contrast.estimate().exp(), outcome)
        }
    }
}

/// Logarithms of the pairs' ratios; requires values above 0.
fn logs(sample: &Sample) -> Vec<f64> {
    sample.first.iter().zip(&sample.second).map(|(one, two)| (two / one).ln()).collect()
}

/// Returns the difference of a figure that needs no test, or has no ratio to test.
fn untested(sample: &Sample) -> Option<Difference> {
    let (first, second) = (&sample.first, &sample.second);
    let zeros = |values: &[f64]| values.iter().filter(|value| **value == 0.0).count();
    let enough = first.len() >= fewest_blocks(0.5, ALPHA);
    match (zeros(first), zeros(second)) {
        _ if first.iter().chain(second).all(|value| Some(value) == first.first()) => {
            Some(bare(sample, 1.0, Outcome::Same))
        }
        (0, 0) => None,
        (0, gone) if gone == second.len() && enough => Some(bare(sample, 0.0, Outcome::Gone)),
        (new, 0) if new == first.len() && enough => Some(bare(sample, f64::INFINITY, Outcome::New)),
        _ => Some(bare(sample, f64::INFINITY, Outcome::Open)),
    }
}

/// Compares two sets that were not interleaved.
fn apart(sample: &Sample) -> Difference {
    let ends = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
    };
    let ((low, high), (other_low, other_high)) = (ends(&sample.first), ends(&sample.second));
    let ratio = median(&sample.second) / median(&sample.first);
    let seldom = chance_of_no_overlap(sample.first.len(), sample.second.len()) <= ALPHA;
    let outcome = match () {
        () if low == high && (low, high) == (other_low, other_high) => {
            return bare(sample, 1.0, Outcome::Same);
        }
        () if seldom && other_high < low => Outcome::Lower,
        () if seldom && other_low > high => Outcome::Higher,
        () => Outcome::Open,
    };
    bare(sample, ratio, outcome)
}

/// Share of shuffles of n + m values in which no value of one set lies among those of the other.
fn chance_of_no_overlap(n: usize, m: usize) -> f64 {
    let choices: f64 = (1..=n).map(|index| (m + index) as f64 / index as f64).product();
    2.0 / choices
}

/// Judges a measure that no claim of the study compares for these two; `None` if it has no test.
fn by_itself<'a>(
    sample: &Sample,
    asked: &MeasureQuestion,
    runs: impl Iterator<Item = &'a Record>,
) -> Option<Judged> {
    let MeasureQuestion { measure, pairs, .. } = asked;
    let tested = tests(&[sample], *pairs).into_iter().next().filter(|_| untested(sample).is_none())?;
    let level = tested.step.level;
    let effects = tested.contrast.effects();
    let changes = change_point::find(&effects, &Search::usual(SEED));
    let changes =
        changes.into_iter().map(|change| ArmChange { arm: "the ratio of the two".to_string(), change });
    let contradictions = runs.flat_map(|run| run.validity().reasons).collect::<Vec<_>>();
    let means = means(sample, measure.better);
    let question =
        Question { contrast: Some(&tested.contrast), asks: Asks::Difference, means: Some(&means), p95: None };
    let family = family::ask(&[question], level, Looks::Once, Advice::None);
    let lies = family.answers.into_iter().flatten().next().and_then(|answer| answer.on_average);
    let average = lies.zip(means.ratio(level)).map(|(lies, found)| verdict::Average {
        lies,
        ratio: found.ratio,
        interval: found.interval,
    });
    let judgement = verdict::judge(&Evidence {
        beyond_bound: &[],
        contradictions: &contradictions,
        changes: &changes.collect::<Vec<_>>(),
        order: None,
        carry_over: None,
        difference: verdict::Difference {
            estimate: tested.contrast.estimate(),
            adjusted_p: tested.step.adjusted_p,
            interval: tested.interval,
            level,
            blocks: effects.len(),
            blocks_min: fewest_blocks(0.5, level),
            deviation: spread(&tested.contrast),
            unit: tested.contrast.unit(),
        },
        slow: None,
        identical: false,
        equivalence: None,
        place: Place::Open,
        average,
        wanders_p: order::wanders_p(&effects, SEED),
        shape_p: None,
        alpha: ALPHA,
        claims: *pairs,
        better: measure.better,
        sought: Sought::Difference(log_ratio(EFFECT_SOUGHT)),
        seed: SEED,
    });
    let family = match pairs {
        1 => "its p is for it alone".to_string(),
        _ => format!("they are one of {pairs} pairs of its arms, and each counts as a claim"),
    };
    let mut reasons = vec![format!("no claim of the study compares these two by it: {family}")];
    reasons.extend(judgement.reasons);
    reasons.dedup();
    let measure = measure.clone();
    Some(Judged { measure, claim: None, verdict: judgement.verdict, asked_only: false, reasons })
}

/// Averages of both sets: harmonic ones for rates, as for a study's claims.
fn means(sample: &Sample, better: Better) -> Means {
    let (first, second) = (sample.first.clone(), sample.second.clone());
    if better == Better::Lower {
        return Means::new(second, first, Figures::Times);
    }
    let inverse = |rates: Vec<f64>| rates.into_iter().map(|rate| 1.0 / rate).collect::<Vec<f64>>();
    Means::new(inverse(second), inverse(first), Figures::Rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, first: &[f64], second: &[f64]) -> Sample {
        Sample {
            group: FigureGroup::Event,
            name: name.to_string(),
            first: first.to_vec(),
            second: second.to_vec(),
        }
    }

    #[test]
    fn a_table_of_pairs_says_what_is_more_than_noise() {
        let base = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01];
        let times = |factor: f64| base.map(|value| value * factor);
        let noise = [1.01, 1.09, 0.91, 1.04, 0.96, 1.0, 0.99, 1.0];
        let samples = [
            sample("halved", &base, &times(0.5)),
            sample("noise", &base, &noise),
            sample("same", &[3.0; 8], &[3.0; 8]),
            sample("gone", &base, &[0.0; 8]),
            sample("new", &[0.0; 8], &base),
            sample("at times", &base, &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ];
        let found = paired(&samples.iter().collect::<Vec<_>>(), 1);
        let outcome = |name: &str| found.iter().find(|found| found.name == name).map(|found| found.outcome);
        assert_eq!(outcome("halved"), Some(Outcome::Lower));
        assert_eq!(outcome("noise"), Some(Outcome::Open));
        assert_eq!(outcome("same"), Some(Outcome::Same));
        assert_eq!(outcome("gone"), Some(Outcome::Gone));
        assert_eq!(outcome("new"), Some(Outcome::New));
        assert_eq!(outcome("at times"), Some(Outcome::Open));
        let halved = found.iter().find(|found| found.name == "halved").unwrap();
        assert!((halved.ratio.unwrap() - 0.5).abs() < 1e-9 && halved.p.unwrap() <= ALPHA);
    }

    #[test]
    fn a_measure_without_a_claim_has_its_own_test() {
        let base = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01];
        let sample = sample("rate", &base, &[2.0, 2.3, 1.7, 2.1, 1.9, 2.1, 1.9, 2.0]);
        for (better, label) in [(Better::Higher, "PROVED faster"), (Better::Lower, "PROVED slower")] {
            let judged = by_itself(&sample, &rate(better, 1), std::iter::empty()).expect("it has a ratio");
            assert_eq!((judged.verdict.label(), judged.claim), (label, None));
            let said = "no claim of the study compares these two by it: its p is for it alone";
            assert_eq!(judged.reasons[0], said);
        }
    }

    /// A measure without a claim, in a study with this number of pairs of arms.
    fn rate(better: Better, pairs: usize) -> MeasureQuestion {
        let measure = Measure { name: "rate".to_string(), figure: Figure::Measured(String::new()), better };
        MeasureQuestion { measure, claim: None, pairs }
    }

    #[test]
    fn a_pair_picked_afterwards_is_one_of_all_pairs() {
        let base = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01];
        let sample = sample("rate", &base, &[2.0, 2.3, 1.7, 2.1, 1.9, 2.1, 1.9, 2.0]);
        // All 8 blocks agree: p = 2/2^8, and 28 times that is above 5%.
        for (pairs, proved, p) in [(3, true, 6.0 / 256.0), (28, false, 56.0 / 256.0)] {
            let asked = rate(Better::Lower, pairs);
            let judged = by_itself(&sample, &asked, std::iter::empty()).expect("it has a ratio");
            assert_eq!(judged.verdict.label() == "PROVED slower", proved, "{}", judged.verdict);
            let said = format!("they are one of {pairs} pairs of its arms, and each counts as a claim");
            assert!(judged.reasons[0].ends_with(&said), "{}", judged.reasons[0]);
            // The row of the table agrees.
            let row = of_measure(&sample, &asked);
            assert_eq!(row.outcome == Outcome::Higher, proved);
            assert!((row.p.expect("a test") - p).abs() < 1e-12, "{:?}", row.p);
        }
    }

    #[test]
    fn one_run_each_has_a_raw_change_and_no_test() {
        let found = raw(&sample("halved", &[2.0], &[1.0])).expect("a ratio");
        assert_eq!((found.outcome, found.ratio, found.p, found.low), (Outcome::Raw, Some(0.5), None, None));
        assert_eq!(raw(&sample("new", &[0.0], &[1.0])), None);
    }

    #[test]
    fn five_pairs_prove_nothing() {
        let halved = sample("halved", &[1.0, 1.1, 0.9, 1.2, 1.05], &[0.5, 0.5, 0.5, 0.5, 0.5]);
        let found = paired(&[&halved], 1);
        assert_eq!(found[0].outcome, Outcome::Open);
        let found = paired(&[&sample("gone", &[1.0; 5], &[0.0; 5])], 1);
        assert_eq!(found[0].outcome, Outcome::Open);
    }

    #[test]
    fn sets_not_interleaved_differ_only_without_overlap() {
        let first = [1.0, 1.1, 1.2, 1.3];
        assert_eq!(apart(&sample("apart", &first, &[2.0, 2.1, 2.2, 2.3])).outcome, Outcome::Higher);
        assert_eq!(apart(&sample("overlap", &first, &[1.25, 2.1, 2.2, 2.3])).outcome, Outcome::Open);
        // By chance, three against three do so in a tenth of all cases.
        assert_eq!(apart(&sample("few", &first[..3], &[2.0, 2.1, 2.2])).outcome, Outcome::Open);
        assert!((chance_of_no_overlap(3, 3) - 0.1).abs() < 1e-12);
        let difference = apart(&sample("apart", &first, &[2.0, 2.1, 2.2, 2.3]));
        assert_eq!((difference.p, difference.low), (None, None));
    }
}
