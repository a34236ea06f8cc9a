//! Simulates mishaps of studies, and counts false statements by the former and the present rules.

use super::study::{Judged, Plan};
use super::synthetic::Noise;
use super::{ALPHA, PAIR_DEVIATION, Scale, Share, count};
use plumb_proof::ProofError;
use plumb_proof::contrast::{Contrast, Lost};
use plumb_proof::covariate::Explained;
use plumb_proof::effect::Observations;
use plumb_proof::family::{self, Advice, Asks, Looks, Question};
use plumb_proof::noise;
use plumb_proof::normal_quantile;
use plumb_proof::random::Generator;
use plumb_proof::randomisation;
use plumb_proof::signed_rank;
use plumb_proof::verdict::{Standing, Verdict};

/// A situation and its rates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Situation {
    pub name: String,
    pub counted: &'static str,
    /// Rate by the former rules; `None` if they had no such rule.
    pub before: Option<Share>,
    pub now: Option<Share>,
}

pub(super) fn all(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let mut rows = Vec::new();
    rows.extend(stalls(scale)?);
    rows.extend(creation(scale)?);
    rows.extend(canary(scale)?);
    rows.extend(dirty(scale)?);
    rows.extend(crashes(scale)?);
    rows.extend(looks(scale)?);
    rows.push(equalities(scale)?);
    rows.push(floors(scale)?);
    Ok(rows)
}

/// Returns the verdict on a single claim of these figures.
fn verdict(plan: &Plan, figures: &(Observations, Vec<Vec<usize>>)) -> Result<Verdict, ProofError> {
    plan.judged(figures.0.clone(), figures.1.clone()).map(|judged: Judged<'_>| judged.verdict(0))
}

fn is_faster(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Faster(_))
}

/// Treatment that is 5% faster in most runs and three times slower in a
/// tenth: 14% slower on average.
fn stalls(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let scale = Scale { studies: scale.studies / 10, ..scale };
    let mut rows = Vec::new();
    for (row, blocks) in [9, 20, 30].into_iter().enumerate() {
        let (plan, former) = (Plan::single(blocks), Plan::single(blocks).judged_as_before());
        let figures = |generator: &mut Generator| {
            let (seen, orders) = plan.figures(Noise::Lognormal, generator)?;
            let slow = |generator: &mut Generator| if generator.unit() < 0.1 { 3.0 } else { 0.95 };
            let rows = changed(&seen, |slot, time| if slot == 1 { time * slow(generator) } else { time })?;
            Ok::<_, ProofError>((rows, orders))
        };
        let cell = 600 + row;
        let counted = |plan: &Plan, holds: fn(&Verdict) -> bool| {
            count(scale, cell, |generator| Ok(holds(&verdict(plan, &figures(generator)?)?)))
        };
        let before = Some(counted(&former, is_faster)?);
        let now = Some(counted(&plan, is_faster)?);
        let mixed = Some(counted(&plan, |verdict| verdict.standing() == Standing::Mixed)?);
        let name = |blocks| format!("5% faster, a tenth three times slower, {blocks} blocks");
        rows.push(Situation { name: name(blocks), counted: "PROVED faster", before, now });
        rows.push(Situation { name: name(blocks), counted: "MIXED", before: None, now: mixed });
    }
    Ok(rows)
}

/// Returns the figures with each run changed.
fn changed(
    seen: &Observations,
    mut change: impl FnMut(usize, f64) -> f64,
) -> Result<Observations, ProofError> {
    let rows: Vec<Vec<f64>> = seen
        .logs()
        .iter()
        .map(|block| block.iter().enumerate().map(|(slot, log)| change(slot, log.exp())).collect())
        .collect();
    Observations::new(seen.slots(), &rows)
}

/// Two levels that are databases, equal except for the place of their files on disk (2%): one
/// database per level, or one per run.
fn creation(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let mut rows = Vec::new();
    for (row, blocks) in [9, 30].into_iter().enumerate() {
        let plan = Plan::single(blocks);
        let proved = |cell: usize, each_run: bool, former: bool| {
            count(scale, cell, |generator| {
                let (seen, _) = plan.figures(Noise::Lognormal, generator)?;
                // The reference's two runs use one database, or two.
                let luck = [(); 2].map(|()| 0.02 * generator.normal());
                let seen = changed(&seen, |slot, time| {
                    let own = if each_run { 0.02 * generator.normal() } else { luck[usize::from(slot == 1)] };
                    time * own.exp()
                })?;
                differs(&seen, former)
            })
        };
        let name = |what: &str| format!("levels are databases, {what}, {blocks} blocks");
        let cell = 620 + 2 * row;
        let (before, now) = (Some(proved(cell, false, true)?), Some(proved(cell, false, false)?));
        rows.push(Situation { name: name("one each"), counted: "a difference", before, now });
        let (before, now) = (Some(proved(cell + 1, true, true)?), Some(proved(cell + 1, true, false)?));
        rows.push(Situation { name: name("drawn each run"), counted: "a difference", before, now });
    }
    Ok(rows)
}

/// True if a verdict says that slot 1 differs from slots 0 and 2, the reference's.
fn differs(seen: &Observations, former: bool) -> Result<bool, ProofError> {
    let p = if former {
        signed_rank::p(&seen.log_ratios(1, 0)?)
    } else {
        let contrast = Contrast::of_pairs(seen, &[(1, 0)], (0, 2))?;
        randomisation::tails(&contrast, 0.0).two_sided()
    };
    Ok(p <= ALPHA)
}

/// Machine whose speed varies by 4% from run to run. A canary before each run measures that with 1%
/// noise of its own. Counted with and without an adjustment by the canary.
fn canary(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let mut rows = Vec::new();
    for (row, (blocks, effect)) in [(10, 0.0), (24, 0.0), (10, 0.05)].into_iter().enumerate() {
        let plan = Plan::single(blocks);
        let counted = |adjust: bool| {
            count(scale, 700 + row, |generator| {
                let (seen, _) = plan.figures(Noise::Lognormal, generator)?;
                let mut moods = Vec::new();
                let seen = changed(&seen, |slot, time| {
                    let mood = 0.04 * generator.normal();
                    moods.push((mood + 0.01 * generator.normal()).exp());
                    let faster = if slot == 1 { -effect } else { 0.0 };
                    time * (mood + faster).exp()
                })?;
                let rows: Vec<Vec<f64>> = moods.chunks(3).map(<[f64]>::to_vec).collect();
                let canary = Observations::new(3, &rows)?;
                let helps = Explained::of(&seen, &canary).is_some_and(|explained| explained.helps());
                differs(&if adjust && helps { seen.beside(&canary) } else { seen }, false)
            })
        };
        let what = if effect == 0.0 { "no effect" } else { "an effect of 5%" };
        let name = format!("noise that a canary saw too, {what}, {blocks} blocks");
        let (before, now) = (Some(counted(false)?), Some(counted(true)?));
        rows.push(Situation { name, counted: "a difference", before, now });
    }
    Ok(rows)
}

/// Treatment without an effect of its own that slows the next run, with three slots.
fn dirty(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let scale = Scale { studies: scale.studies / 4, ..scale };
    let mut rows = Vec::new();
    for (row, (blocks, sigmas)) in
        [(9, 1.0), (9, 2.0), (9, 4.0), (20, 1.0), (20, 2.0), (20, 4.0)].into_iter().enumerate()
    {
        let (plan, former) = (Plan::single(blocks), Plan::single(blocks).judged_as_before());
        let counted = |plan: &Plan| {
            count(scale, 640 + row, |generator| {
                let (seen, orders) = plan.figures(Noise::Lognormal, generator)?;
                let seen = dirtied(&seen, &orders, sigmas * PAIR_DEVIATION / std::f64::consts::SQRT_2)?;
                Ok(plan.judged(seen, orders)?.says_falsely())
            })
        };
        rows.push(Situation {
            name: format!("the run after the treatment {sigmas} sigma slower, {blocks} blocks"),
            counted: "a difference",
            before: Some(counted(&former)?),
            now: Some(counted(&plan)?),
        });
    }
    Ok(rows)
}

/// Returns figures in which the run after slot 1 is slower by `dirt`.
fn dirtied(seen: &Observations, orders: &[Vec<usize>], dirt: f64) -> Result<Observations, ProofError> {
    let mut rows: Vec<Vec<f64>> = seen.logs().to_vec();
    let mut before = None;
    for (block, order) in orders.iter().enumerate() {
        for &slot in order {
            rows[block][slot] += if before.replace(slot) == Some(1) { dirt } else { 0.0 };
        }
    }
    let rows: Vec<Vec<f64>> = rows.iter().map(|block| block.iter().map(|log| log.exp()).collect()).collect();
    Observations::new(seen.slots(), &rows)
}

/// Treatments without an effect. The slowest runs of one side crash: a fifth of the treatment's, or
/// an eighth of the reference's. Their blocks are lost.
fn crashes(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let mut rows = Vec::new();
    for (row, (side, slots, quantile, blocks)) in [
        ("a treatment", &[1][..], 0.84, 12),
        ("a treatment", &[1][..], 0.84, 30),
        ("a reference", &[0, 2][..], 1.15, 12),
        ("a reference", &[0, 2][..], 1.15, 30),
    ]
    .into_iter()
    .enumerate()
    {
        let plan = Plan::single(blocks);
        let limit = 60f64.ln() + quantile * PAIR_DEVIATION / std::f64::consts::SQRT_2;
        let proved = |former: bool| {
            count(scale, 660 + row, |generator| {
                let (seen, _) = plan.figures(Noise::Lognormal, generator)?;
                let slow = |slot: usize, block: &[f64]| slots.contains(&slot) && block[slot] >= limit;
                found(&seen, former, |_, block| [0, 1, 2].map(|slot| slow(slot, block)))
            })
        };
        rows.push(Situation {
            name: format!("{side} that crashes where it is slow, {blocks} blocks"),
            counted: "a difference",
            before: Some(proved(true)?),
            now: Some(proved(false)?),
        });
    }
    rows.extend(lost_by_chance(scale)?);
    Ok(rows)
}

/// True if a difference is found in the blocks without a failed run. `failed` marks the failed runs
/// of a block; the reference has the first and last slot.
fn found(
    seen: &Observations,
    former: bool,
    mut failed: impl FnMut(usize, &[f64]) -> [bool; 3],
) -> Result<bool, ProofError> {
    let mut lost = Lost { treatment_runs: 1, reference_runs: 2, ..Lost::default() };
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for (index, block) in seen.logs().iter().enumerate() {
        let [first, treatment, second] = failed(index, block);
        lost.treatment += usize::from(treatment);
        lost.reference += usize::from(first) + usize::from(second);
        if first || treatment || second {
            lost.blocks += 1;
        } else {
            kept.push(block.iter().map(|log| log.exp()).collect());
        }
    }
    let kept = Observations::new(3, &kept)?;
    if former {
        return Ok(signed_rank::p(&kept.log_ratios(1, 0)?) <= ALPHA);
    }
    let contrast = Contrast::of_pairs(&kept, &[(1, 0)], (0, 2))?.without(lost);
    Ok(Looks::Once.tails(&contrast, 0.0, &[]).two_sided() <= ALPHA)
}

/// An effect, and blocks lost because a random run failed.
fn lost_by_chance(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let scale = Scale { studies: scale.studies / 4, ..scale };
    let mut rows = Vec::new();
    let sizes = [(5.0, 12), (5.0, 16), (5.0, 20), (10.0, 12), (20.0, 12)];
    for (row, (percent, blocks)) in sizes.into_iter().enumerate() {
        for lost in 0..3 {
            // 3% a run, not of the ratio of two.
            let deviation = PAIR_DEVIATION * std::f64::consts::SQRT_2;
            let plan = Plan::single(blocks).slower_by(percent).with_deviation(deviation);
            let proved = |former: bool| {
                count(scale, 670 + row, |generator| {
                    let (seen, _) = plan.figures(Noise::Lognormal, generator)?;
                    found(&seen, former, |block, _| {
                        let failed = generator.below(3);
                        [0, 1, 2].map(|slot| block < lost && slot == failed)
                    })
                })
            };
            rows.push(Situation {
                name: format!("{percent}% slower, 3% a run, {lost} of {blocks} blocks lost by chance"),
                counted: "a difference",
                before: Some(proved(true)?),
                now: Some(proved(false)?),
            });
        }
    }
    Ok(rows)
}

/// Study that is stopped, read and resumed. By the former rules each look was a test; now the only
/// test is at the end.
fn looks(scale: Scale) -> Result<Vec<Situation>, ProofError> {
    let mut rows = Vec::new();
    for (row, looks) in [3, 8].into_iter().enumerate() {
        let plan = Plan::single(40);
        let proved = |former: bool| {
            count(scale, 680 + row, |generator| {
                let (seen, _) = plan.figures(Noise::Lognormal, generator)?;
                let single = seen.log_ratios(1, 0)?;
                if former {
                    return Ok((1..=looks).any(|look| signed_rank::p(&single[..40 * look / looks]) <= ALPHA));
                }
                let contrast = Contrast::of_pairs(&seen, &[(1, 0)], (0, 2))?;
                Ok(randomisation::tails(&contrast, 0.0).two_sided() <= ALPHA)
            })
        };
        rows.push(Situation {
            name: format!("stopped and resumed, {looks} times in 40 blocks"),
            counted: "a difference",
            before: Some(proved(true)?),
            now: Some(proved(false)?),
        });
    }
    Ok(rows)
}

/// Two comparisons without an effect and two effects at their margin. By the former rules each
/// kind had its own family of tests.
fn equalities(scale: Scale) -> Result<Situation, ProofError> {
    let (plan, former) = (Plan::factorial(30), Plan::factorial(30).judged_as_before());
    let counted = |plan: &Plan| {
        count(scale, 690, |generator| Ok(plan.run(Noise::Lognormal, generator)?.says_falsely()))
    };
    Ok(Situation {
        name: "equalities at their margin beside no effects, 30 blocks".to_string(),
        counted: "anything false",
        before: Some(counted(&former)?),
        now: Some(counted(&plan)?),
    })
}

/// Effect that a study claims to find with 80% power: by the formula from the
/// reference's noise, and by simulation.
fn floors(scale: Scale) -> Result<Situation, ProofError> {
    // Both get the true spread, because nine blocks estimate it only within a quarter.
    let scale = Scale { studies: scale.studies / 4, ..scale };
    let blocks = 9;
    let level = ALPHA / 4.0;
    let quantiles = normal_quantile(1.0 - level / 2.0) + normal_quantile(0.8);
    let formula = quantiles * PAIR_DEVIATION / (blocks as f64).sqrt();
    let threes = PAIR_DEVIATION * 0.75f64.sqrt();
    let simulated = noise::smallest_effect(blocks, threes, level, 0.8, 1);
    let found = |effect: f64, former: bool| {
        let percent = 100.0 * effect.exp_m1();
        let plan = Plan::single(blocks).slower_by(percent);
        count(scale, 695, |generator| {
            let (seen, _) = plan.figures(Noise::Lognormal, generator)?;
            if former {
                return Ok(signed_rank::p(&seen.log_ratios(1, 0)?) <= level);
            }
            let contrast = Contrast::of_pairs(&seen, &[(1, 0)], (0, 2))?;
            Ok(randomisation::tails(&contrast, 0.0).two_sided() <= level)
        })
    };
    Ok(Situation {
        name: "the smallest effect found with 80% power, 9 blocks, a quarter of 5%".to_string(),
        counted: "found",
        before: Some(found(formula, true)?),
        now: Some(found(simulated, false)?),
    })
}

/// Returns the answer to a single question without advice, for cells that need only numbers.
pub(super) fn single(contrast: &Contrast, asks: Asks, looks: Looks) -> Option<plumb_proof::family::Answer> {
    let family =
        family::ask(&[Question { contrast: Some(contrast), asks, means: None }], ALPHA, looks, Advice::None);
    family.answers.into_iter().next().flatten()
}
