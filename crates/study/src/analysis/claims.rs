//! Tests every claim, places it in the family, and judges it.
//!
//! One family (`proof::family`) holds all claims of the study, invalid ones too. The error is
//! shared among the claims made, not those that turned out well. Differences, equalities, margins,
//! averages, and the advice share its error. A claim's expectation decides at which points of the
//! line its effect is tested. A study that stops as soon as it may pays for every look at its
//! figures.
//!
//! Next to the typical effect, a claim reports the effect on the average of all runs, and the
//! number of slow runs (`proof::average`).

use super::averages::AverageTest;
use super::doubts;
use super::figures::Figures;
use super::result::{ArmPair, ClaimOutcome, Effect, JudgedClaim, SlowShare};
use super::stability::{Stability, effect};
use super::used_blocks::UsedBlocks;
use super::why;
use crate::definition::{Claim, Expectation, Of, Study};
use crate::plan::Plan;
use crate::vocabulary::{Figure, Measure};
use plumb_proof::ProofError;
use plumb_proof::average::{self, Means, RatioOfMeans, SlowSeen, slow_runs};
use plumb_proof::change_point::{self, Search};
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::{Observations, log_ratio};
use plumb_proof::family::{self, Advice, Answer, Asks, Looks, OnAverage, Place, Question, is_hopeless};
use plumb_proof::interval::Interval;
use plumb_proof::noise;
use plumb_proof::order::{self, After};
use plumb_proof::quantile::{self, Quantiles};
use plumb_proof::randomisation::{fewest_blocks, shape_p, spread};
use plumb_proof::verdict::{
    ArmChange, Average, Better, Difference, Evidence, Judgement, POWER, Side, Sought, Standing, Typically,
    Verdict, judge,
};

pub(super) struct Tested {
    pub(super) contrast: Contrast,
    asks: Asks,
    pub(super) answer: Answer,
    pub(super) interval: Interval,
    average: Option<RatioOfMeans>,
    p95: Option<Quantiles>,
    shape_p: Option<f64>,
    wanders_p: Option<f64>,
    slow: Option<SlowSeen>,
    carry_over: Option<After>,
    coarse: Option<String>,
    spread: f64,
}

impl Tested {
    /// True if the remaining planned blocks cannot change the verdict: it is decided, or hopeless.
    pub(super) fn settles(&self, planned: usize) -> bool {
        self.answer.decided(self.asks) || is_hopeless(&self.answer, self.asks, &self.contrast, planned)
    }

    fn effect(&self) -> Effect {
        effect(self.answer.estimate, self.interval, self.answer.interval_level)
    }

    fn on_average(&self) -> Option<Effect> {
        let RatioOfMeans { ratio, interval } = self.average?;
        let logs = Interval { low: interval.low.ln(), high: interval.high.ln() };
        Some(effect(ratio.ln(), logs, self.answer.interval_level))
    }
}

/// Tests of all claims in their order, or the reason why one has none, and
/// the error left for advice.
pub(super) struct Tests {
    pub(super) claims: Vec<Result<Tested, String>>,
    pub(super) advice_level: f64,
}

fn measure<'a>(study: &'a Study, claim: &'a Claim) -> &'a Measure {
    claim.measure.as_ref().unwrap_or(&study.measure)
}

pub(super) fn test(figures: &Figures<'_>) -> Tests {
    let (plan, looks) = (figures.plan(), figures.used.looks());
    let study = &plan.study;
    let numbers: Vec<Result<Numbers, String>> =
        study.claims.iter().map(|claim| numbers(figures, claim)).collect();
    let asks: Vec<Asks> =
        study.claims.iter().map(|claim| asked(claim.expects, measure(study, claim).better)).collect();
    let questions: Vec<Question<'_>> = numbers
        .iter()
        .zip(&asks)
        .map(|(found, asks)| Question {
            contrast: found.as_ref().ok().map(|numbers| &numbers.contrast),
            asks: *asks,
            means: found.as_ref().ok().and_then(|numbers| numbers.means.as_ref()),
            p95: found.as_ref().ok().and_then(|numbers| numbers.p95.as_ref()),
        })
        .collect();
    let advice = if plan.advice_claim().is_some() { Advice::None } else { Advice::Shares };
    let family = family::ask(&questions, study.alpha, looks, advice);
    let mut claims = Vec::new();
    for (index, (found, answer)) in numbers.into_iter().zip(family.answers).enumerate() {
        let (claim, asks) = (&study.claims[index], asks[index]);
        claims.push(found.and_then(|Numbers { contrast, observations, means, p95, slow }| {
            let answer = answer.ok_or("no block could be used")?;
            Ok(Tested {
                spread: p95.as_ref().map_or_else(|| spread(&contrast), |p95| p95.spread(answer.level)),
                coarse: coarse(&contrast, &observations, measure(study, claim), asks),
                asks,
                answer,
                interval: interval(&answer, |level| match &p95 {
                    Some(p95) => p95.interval(level),
                    None => looks.interval(&contrast, asks, level),
                }),
                average: means.and_then(|means| mean_ratio(looks, &means, &answer)),
                shape_p: if p95.is_some() { None } else { shape_p(&contrast) },
                p95,
                wanders_p: order::wanders_p(&contrast.effects(), plan.schedule.seed),
                slow,
                carry_over: figures.after(&observations, &claim.sides(&plan.design).to),
                contrast,
            })
        }));
    }
    Tests { claims, advice_level: family.advice_level }
}

/// Returns the interval for a verdict. A proved equality has the interval of its one-sided tests,
/// which lies within the margin. It is widened to include no effect (Hsu, Hwang, Liu, Ruberg 1994).
fn interval(answer: &Answer, at: impl Fn(f64) -> Interval) -> Interval {
    if answer.place != Place::Within || answer.differs() {
        return at(answer.interval_level);
    }
    let Interval { low, high } = at(2.0 * answer.interval_level);
    Interval { low: low.min(0.0), high: high.max(0.0) }
}

/// Returns the ratio of means, with the interval chosen as in [`interval`].
fn mean_ratio(looks: Looks, means: &Means, answer: &Answer) -> Option<RatioOfMeans> {
    let found = looks.ratio(means, answer.interval_level)?;
    if answer.equivalence.is_none() || answer.on_average != Some(OnAverage::Within) {
        return Some(found);
    }
    let Interval { low, high } = looks.ratio(means, 2.0 * answer.interval_level)?.interval;
    Some(RatioOfMeans { interval: Interval { low: low.min(1.0), high: high.max(1.0) }, ..found })
}

/// Input of a claim's test.
struct Numbers {
    contrast: Contrast,
    observations: Observations,
    means: Option<Means>,
    p95: Option<Quantiles>,
    slow: Option<SlowSeen>,
}

/// Returns why figures cannot prove an equality or a margin: a clock too coarse for it.
fn coarse(contrast: &Contrast, observations: &Observations, measure: &Measure, asks: Asks) -> Option<String> {
    let (Asks::Equality(margin) | Asks::NotBeyond(margin)) = asks else { return None };
    let mut logs: Vec<f64> = observations.logs().iter().flatten().copied().collect();
    logs.sort_unstable_by(f64::total_cmp);
    let middle = logs.get(logs.len() / 2)?.exp();
    let one_number = contrast.blocks() > 0 && contrast.is_alike();
    let step = match contrast.unit() {
        _ if one_number && measure.is_exact() => return None,
        _ if one_number => step_of(middle),
        unit if unit >= margin.abs() => unit * middle,
        _ => return None,
    };
    let (unit, percent) = (measure.unit(), 100.0 * step / middle);
    let step = plain(step);
    let space = if unit.is_empty() || unit == "%" { "" } else { " " };
    let clock = format!("the clock of these figures is {step}{space}{unit}");
    Some(match one_number {
        true => format!("{clock} or finer, and all of them are one number: what it hides is unknown"),
        false => format!("{clock}, {percent:.1}% of them: no equality within less can be seen"),
    })
}

/// Returns the largest power of ten that a figure is a multiple of.
fn step_of(figure: f64) -> f64 {
    let largest = figure.log10().floor() as i32;
    let is_multiple = |step: &f64| ((figure / step).round() * step / figure - 1.0).abs() < 1e-9;
    let mut steps = (0..DIGITS).map(|digit| 10f64.powi(largest - digit));
    steps.find(is_multiple).unwrap_or(10f64.powi(largest - DIGITS))
}

/// Digits of a figure that are searched for the step of its clock.
const DIGITS: i32 = 9;

/// Prints a figure with three digits at most.
fn plain(figure: f64) -> String {
    let decimals = (2 - figure.log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{figure:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Returns the question put to a claim's effect: better by 20% is a time of 80%, or a rate of 120%.
fn asked(expects: Expectation, better: Better) -> Asks {
    let sign = if better == Better::Higher { -1.0 } else { 1.0 };
    match expects {
        Expectation::Equal { within } => Asks::Equality(log_ratio(within)),
        Expectation::Faster { at_least } if at_least > 0.0 => Asks::Side(log_ratio(-at_least * sign)),
        Expectation::Slower { at_least } if at_least > 0.0 => Asks::Side(log_ratio(at_least * sign)),
        // A rate of 97% is slower by 3%, as is a time of 103%.
        Expectation::NotSlower { by } => Asks::NotBeyond(log_ratio(by * sign)),
        Expectation::Faster { .. } | Expectation::Slower { .. } | Expectation::Differs => Asks::Difference,
    }
}

/// Returns a claim's comparison and the figures it is made of.
fn numbers(figures: &Figures<'_>, claim: &Claim) -> Result<Numbers, String> {
    let (plan, used) = (figures.plan(), figures.used);
    let measure = measure(&plan.study, claim);
    let observations = figures.observations(measure).map_err(|error| no_ratio(used, measure, &error))?;
    let contrast =
        claim.contrast(&plan.design, &observations, plan.twice()).map_err(|error| error.to_string())?;
    let lost = used.lost(&claim.signs(&plan.design));
    let (means, slow) = averages(plan, claim, &observations);
    let contrast = contrast.without(lost);
    let p95 = if claim.of == Of::P95 { Some(quantiles(figures, claim, &contrast)?) } else { None };
    let means = means.filter(|_| p95.is_none());
    Ok(Numbers { contrast, observations, means, p95, slow })
}

/// Returns the runs of a claim of the p95, one of each arm a block, as they were: what a canary
/// explains is a part of them.
fn quantiles(figures: &Figures<'_>, claim: &Claim, contrast: &Contrast) -> Result<Quantiles, String> {
    let plan = figures.plan();
    let measure = measure(&plan.study, claim);
    let seen = figures.measured(measure).map_err(|error| error.to_string())?;
    let sides = claim.sides(&plan.design);
    let runs = |arms: &[usize]| seen.series(arms[0]).map_err(|error| error.to_string());
    let share = match measure.better {
        Better::Lower => quantile::SHARE,
        Better::Higher => 1.0 - quantile::SHARE,
    };
    Ok(Quantiles::new(runs(&sides.to)?, runs(&sides.from)?, share, contrast))
}

/// Explains why a measure has no ratios: names the run in which it is not positive.
fn no_ratio(used: &UsedBlocks<'_>, measure: &Measure, error: &ProofError) -> String {
    let ProofError::NotPositive { block, slot, value } = error else { return error.to_string() };
    let run = used.blocks.get(*block).and_then(|(_, runs)| runs.get(*slot));
    let run = run.map_or_else(String::new, |run| format!(" in run {} ({})", run.number, run.arm));
    if value.is_nan() {
        return format!(
            "{} is not known{run}: nothing of it was counted, and no number of blocks changes that",
            measure.title()
        );
    }
    format!(
        "{} is {value}{run}, and no ratio can be made of it: no number of blocks changes that",
        measure.title()
    )
}

/// Returns the mean times of both sides, and the slow runs; an interaction has neither.
fn averages(plan: &Plan, claim: &Claim, observations: &Observations) -> (Option<Means>, Option<SlowSeen>) {
    if claim.with.is_some() {
        return (None, None);
    }
    let sides = claim.sides(&plan.design);
    let slots = |arms: &[usize]| {
        let again = arms.contains(&plan.schedule.reference).then(|| plan.schedule.reference_again());
        arms.iter().copied().chain(again).collect::<Vec<usize>>()
    };
    let (to, from) = (slots(&sides.to), slots(&sides.from));
    // The mean of a rate would hide a stall. Of its inverse, a time per unit, a stall is a part.
    let better = measure(&plan.study, claim).better;
    let cost = |log: f64| if better == Better::Higher { (-log).exp() } else { log.exp() };
    let means = |slots: &[usize]| -> Vec<f64> {
        let mean = |block: &Vec<f64>| {
            // The two runs of the reference count as one arm.
            let of_arm = |arm: usize| {
                let own: Vec<f64> = slots
                    .iter()
                    .filter(|slot| plan.schedule.arm_of(**slot) == arm)
                    .map(|slot| cost(block[*slot]))
                    .collect();
                (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
            };
            let arms: Vec<f64> = (0..plan.schedule.arms).filter_map(of_arm).collect();
            arms.iter().sum::<f64>() / arms.len().max(1) as f64
        };
        observations.logs().iter().map(mean).collect()
    };
    let runs = |slots: &[usize]| -> Vec<f64> {
        observations.logs().iter().flat_map(|block| slots.iter().map(|slot| cost(block[*slot]))).collect()
    };
    let single = sides.to.len() == 1 && sides.from.len() == 1;
    let slow = (single && observations.blocks() > 0).then(|| {
        let (to, from) = (runs(&to), runs(&from));
        SlowSeen { treatment: slow_runs(&to, &from), reference: slow_runs(&from, &from) }
    });
    let kind = if better == Better::Higher { average::Figures::Rates } else { average::Figures::Times };
    (Some(Means::new(means(&to), means(&from), kind)), slow)
}

pub(super) fn judge_all(used: &UsedBlocks<'_>, stability: &Stability, tests: &Tests) -> Vec<JudgedClaim> {
    let study = &used.contents.plan.study;
    let rows = study.claims.iter().zip(&tests.claims);
    rows.map(|(claim, tested)| judged(used, stability, claim, tested)).collect()
}

fn judged(
    used: &UsedBlocks<'_>,
    stability: &Stability,
    claim: &Claim,
    tested: &Result<Tested, String>,
) -> JudgedClaim {
    let plan = &used.contents.plan;
    let mut judgement = verdict(used, stability, claim, tested.as_ref());
    let sides = claim.sides(&plan.design);
    let pair = match (&sides.from[..], &sides.to[..]) {
        ([reference], [treatment]) => Some(ArmPair { reference: *reference, treatment: *treatment }),
        _ => None,
    };
    let proved = matches!(judgement.verdict, Verdict::Mixed { .. })
        || matches!(judgement.verdict.proved(), Some(Typically::Differs(..)));
    // Doubtful data explain nothing.
    let is_of_effect = judgement.verdict.standing() > Standing::Unstable;
    // Parts of the elapsed time do not explain a figure that the target measures itself.
    let timed = !matches!(measure(&plan.study, claim).figure, Figure::Measured(_));
    let explained = proved && timed && claim.with.is_none() && claim.of != Of::P95;
    let tested = tested.as_ref().ok();
    let some = tested.filter(|tested| tested.contrast.blocks() > 0);
    let better = measure(&plan.study, claim).better;
    let place = tested.map_or(Place::Open, |tested| place_of(tested.answer.place, better));
    let typical = outcome(claim.expects, place, &judgement.verdict);
    let outcome = on_average(claim, better, some, typical, &mut judgement);
    JudgedClaim {
        name: claim.name.clone(),
        text: claim.text.clone(),
        comparison: claim.comparison(&plan.study),
        arms: pair,
        measure: claim.measure.clone(),
        outcome,
        asked_only: proved && doubts::asked_only(used, claim),
        reasons: judgement.reasons,
        effect: some.map(Tested::effect),
        average: some.and_then(Tested::on_average),
        shape_p: some.and_then(|tested| tested.shape_p),
        wanders_p: some.and_then(|tested| tested.wanders_p),
        slow_runs: some.and_then(|tested| tested.slow).map(|SlowSeen { treatment, .. }| SlowShare {
            slow: treatment.slow as u64,
            runs: treatment.runs as u64,
            low: treatment.share.low,
            high: treatment.share.high,
        }),
        carry_over: some.and_then(|tested| tested.carry_over),
        p: tested.map(|tested| tested.answer.p()),
        adjusted_p: tested.map(|tested| tested.answer.adjusted_p),
        blocks: used.blocks.len() as u64,
        blocks_needed: match judgement.verdict {
            Verdict::NotProved { more, .. } if outcome != ClaimOutcome::Refuted => {
                more.blocks().map(|blocks| blocks as u64)
            }
            _ => None,
        },
        verdict: judgement.verdict,
        smallest_effect: tested.and_then(|tested| {
            let (blocks, level) = (tested.contrast.blocks(), tested.answer.level);
            let found = noise::smallest_effect(blocks, tested.spread, level, POWER, plan.schedule.seed);
            // Figures without spread show no noise floor.
            (found.is_finite() && found > 0.0).then(|| (found + tested.contrast.unit()).exp_m1())
        }),
        covered: some.filter(|_| is_of_effect).and_then(|_| why::covered(used, claim)),
        equivalence: tested.and_then(|tested| tested.answer.equivalence),
        why: explained.then(|| why::why(used, claim)).flatten(),
        profiles: pair.filter(|_| explained).and_then(|pair| why::profiles(used, pair)),
    }
}

/// Returns the outcome of a claim from that of its typical run. A claim of averages needs their
/// proof too, or has a reason why not.
fn on_average(
    claim: &Claim,
    better: Better,
    tested: Option<&Tested>,
    typical: ClaimOutcome,
    judgement: &mut Judgement,
) -> ClaimOutcome {
    if claim.of != Of::Average {
        return typical;
    }
    let Some(tested) = tested.filter(|_| typical == ClaimOutcome::Holds) else { return ClaimOutcome::Open };
    let (lies, level) = (tested.answer.on_average, tested.answer.interval_level);
    let test = AverageTest { lies, level, ratio: tested.average, slow: tested.slow, better };
    let proved = test.proves(claim.expects, &judgement.verdict);
    let outcome = if proved.is_ok() { ClaimOutcome::Holds } else { ClaimOutcome::Open };
    judgement.reasons.push(proved.err().unwrap_or_else(|| "the average is proved as well".to_string()));
    outcome
}

fn verdict(
    used: &UsedBlocks<'_>,
    stability: &Stability,
    claim: &Claim,
    tested: Result<&Tested, &String>,
) -> Judgement {
    let study = &used.contents.plan.study;
    let mut contradictions = doubts::contradictions(used, claim);
    let tested = match tested {
        Ok(tested) => tested,
        Err(why) => {
            let verdict = match contradictions.first() {
                Some(reason) => Verdict::Invalid { reason: reason.clone() },
                None => Verdict::NoFigure { reason: why.clone() },
            };
            contradictions.push(why.clone());
            return Judgement { verdict, reasons: contradictions };
        }
    };
    let seed = used.contents.plan.schedule.seed;
    let (contrast, answer) = (&tested.contrast, &tested.answer);
    let changes = change_point::find(&contrast.effects(), &Search::usual(seed));
    let changes = changes.into_iter().map(|change| ArmChange { arm: claim.comparison(study), change });
    let changes: Vec<ArmChange> = changes.chain(stability.moves.iter().cloned()).collect();
    let mut judgement = judge(&Evidence {
        beyond_bound: &doubts::beyond_bound(used, claim),
        contradictions: &contradictions,
        changes: &changes,
        order: stability.order.as_ref(),
        carry_over: tested.carry_over,
        difference: Difference {
            estimate: answer.estimate,
            adjusted_p: answer.adjusted_p,
            interval: tested.interval,
            level: answer.level,
            blocks: contrast.blocks(),
            blocks_min: blocks_min(tested),
            deviation: tested.spread,
            unit: tested.contrast.unit(),
        },
        equivalence: answer.equivalence,
        place: answer.place,
        slow: tested.slow,
        identical: contrast.is_alike(),
        average: tested.average.zip(answer.on_average).map(|(found, lies)| Average {
            lies,
            ratio: found.ratio,
            interval: found.interval,
        }),
        wanders_p: tested.wanders_p,
        shape_p: tested.shape_p,
        alpha: study.alpha,
        claims: study.claims.len(),
        better: measure(study, claim).better,
        sought: match tested.asks {
            Asks::Equality(margin) => Sought::Equality(margin),
            Asks::NotBeyond(bound) => Sought::NotSlower(bound.abs()),
            Asks::Difference | Asks::Side(_) => Sought::Difference(log_ratio(100.0 * study.sought)),
        },
        seed,
    });
    refuse_coarse(&mut judgement, tested);
    let mut judgement = say_p95(judgement, tested, measure(study, claim));
    if let Some(sentence) = lost(contrast) {
        judgement.reasons.insert(0, sentence);
    }
    judgement
}

/// Returns the fewest blocks that can prove a claim at its level.
fn blocks_min(tested: &Tested) -> usize {
    let (contrast, level) = (&tested.contrast, tested.answer.level);
    match &tested.p95 {
        _ if contrast.blocks() == 0 => 1,
        Some(_) => quantile::fewest_blocks(level),
        None => fewest_blocks(contrast.first(1).smallest_tail(), level),
    }
}

/// Says of a claim of p95 that its verdict is of that, and which figures were seen.
fn say_p95(mut judgement: Judgement, tested: &Tested, measure: &Measure) -> Judgement {
    let runs = tested.contrast.blocks();
    let Some(p95) = tested.p95.as_ref().filter(|_| runs > 0) else { return judgement };
    let [treatment, reference] = p95.seen().map(f64::exp).map(plain);
    let seen = format!("p95 of {runs} runs each: {treatment} against {reference} {}", measure.unit());
    judgement.reasons.insert(0, seen.trim_end().to_string());
    judgement.verdict = judgement.verdict.in_p95();
    judgement
}

/// Takes back what figures that are too coarse cannot show; a proved difference stays.
fn refuse_coarse(judgement: &mut Judgement, tested: &Tested) {
    let open = matches!(
        judgement.verdict,
        Verdict::NotProved { .. } | Verdict::Equal { .. } | Verdict::NotSlower { .. }
    );
    if let Some(reason) = tested.coarse.clone().filter(|_| open) {
        judgement.reasons.push(reason.clone());
        judgement.verdict = Verdict::NoFigure { reason };
    }
}

/// Says how many blocks a claim lost, and how its tests count them.
fn lost(contrast: &Contrast) -> Option<String> {
    let blocks = match contrast.lost() {
        0 => return None,
        1 => "1 block was".to_string(),
        more => format!("{more} blocks were"),
    };
    Some(match contrast.suspect() {
        0 => format!("{blocks} lost to a failed run of its arms and left out"),
        _ => format!(
            "{blocks} lost to failed runs of its arms, more of them one side's than by chance: \
             each is counted as the worst it could have been"
        ),
    })
}

/// Returns the place of an effect in terms of the measure: a higher rate is a lower cost.
fn place_of(place: Place, better: Better) -> Place {
    match (place, better) {
        (Place::Below, Better::Higher) => Place::Above,
        (Place::Above, Better::Higher) => Place::Below,
        (place, _) => place,
    }
}

/// Returns the outcome of a claim: its verdict compared with its expectation.
fn outcome(expects: Expectation, place: Place, verdict: &Verdict) -> ClaimOutcome {
    // Doubtful data, a missing figure and an average on the other side answer nothing.
    if verdict.standing() < Standing::NotProved || matches!(verdict, Verdict::NoFigure { .. }) {
        return ClaimOutcome::Open;
    }
    match (expects, place, verdict.proved()) {
        (Expectation::Faster { at_least }, Place::Below, _) if at_least > 0.0 => ClaimOutcome::Holds,
        (Expectation::Faster { at_least }, Place::Above, _) if at_least > 0.0 => ClaimOutcome::Refuted,
        (Expectation::Slower { at_least }, Place::Above, _) if at_least > 0.0 => ClaimOutcome::Holds,
        (Expectation::Slower { at_least }, Place::Below, _) if at_least > 0.0 => ClaimOutcome::Refuted,
        // The verdict already includes the average.
        (Expectation::NotSlower { .. }, Place::Above, _) => ClaimOutcome::Refuted,
        (Expectation::NotSlower { .. }, Place::Below, Some(_))
        | (Expectation::Faster { at_least: 0.0 }, _, Some(Typically::Differs(Side::Faster, _)))
        | (Expectation::Slower { at_least: 0.0 }, _, Some(Typically::Differs(Side::Slower, _)))
        | (Expectation::Equal { .. }, _, Some(Typically::Equal(_)))
        | (Expectation::Differs, _, Some(Typically::Differs(..))) => ClaimOutcome::Holds,
        (Expectation::Faster { .. }, _, Some(Typically::Differs(Side::Slower, _)))
        | (Expectation::Slower { .. }, _, Some(Typically::Differs(Side::Faster, _)))
        | (Expectation::Equal { .. }, Place::Beyond, _) => ClaimOutcome::Refuted,
        _ => ClaimOutcome::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_proof::verdict::{Change, More, TypicalLimits};

    #[test]
    fn more_of_a_rate_is_asked_for_above() {
        let faster = Expectation::parse("faster by at least 20%").expect("a form");
        assert_eq!(asked(faster, Better::Lower), Asks::Side(log_ratio(-20.0)));
        assert_eq!(asked(faster, Better::Higher), Asks::Side(log_ratio(20.0)));
        assert_eq!(place_of(Place::Above, Better::Higher), Place::Below);
        let not_slower = Expectation::parse("not slower by 3%").expect("a form");
        assert_eq!(asked(not_slower, Better::Lower), Asks::NotBeyond(log_ratio(3.0)));
        assert_eq!(asked(not_slower, Better::Higher), Asks::NotBeyond(log_ratio(-3.0)));
    }

    #[test]
    fn a_verdict_bears_on_what_was_expected() {
        let change = Change { percent: 30.0, low: 25.0, high: 35.0 };
        let faster = Verdict::Faster(change);
        let equal = Verdict::Equal { within: 5.0, beside: None };
        let open = Verdict::NotProved { floor: 1.0, more: More::Never };
        let not_slower = Verdict::NotSlower { by: 3.0, change, beside: TypicalLimits::default() };
        let typically = Typically::Differs(Side::Faster, change);
        let mixed = Verdict::Mixed { typically, on_average: Side::Slower, average: change };
        for (expects, place, verdict, expected) in [
            ("faster", Place::Open, &faster, ClaimOutcome::Holds),
            ("faster by at least 20%", Place::Below, &faster, ClaimOutcome::Holds),
            ("faster by at least 30%", Place::Open, &faster, ClaimOutcome::Open),
            ("faster by at least 60%", Place::Above, &faster, ClaimOutcome::Refuted),
            ("faster by at least 60%", Place::Above, &open, ClaimOutcome::Refuted),
            ("slower", Place::Open, &faster, ClaimOutcome::Refuted),
            ("slower by at least 5%", Place::Below, &faster, ClaimOutcome::Refuted),
            ("equal within 5%", Place::Beyond, &faster, ClaimOutcome::Refuted),
            ("equal within 40%", Place::Open, &faster, ClaimOutcome::Open),
            ("differs", Place::Open, &faster, ClaimOutcome::Holds),
            ("equal within 5%", Place::Within, &equal, ClaimOutcome::Holds),
            ("faster", Place::Open, &open, ClaimOutcome::Open),
            ("faster", Place::Open, &mixed, ClaimOutcome::Open),
            ("not slower by 3%", Place::Below, &not_slower, ClaimOutcome::Holds),
            ("not slower by 3%", Place::Below, &faster, ClaimOutcome::Holds),
            ("not slower by 3%", Place::Open, &open, ClaimOutcome::Open),
            ("not slower by 3%", Place::Above, &open, ClaimOutcome::Refuted),
        ] {
            let expects = Expectation::parse(expects).expect("a form that is known");
            assert_eq!(outcome(expects, place, verdict), expected, "{expects} {verdict}");
        }
    }
}
