//! Candidates for the best arm, and those of them that are better than the reference.
//!
//! Calling the arm with the smallest figures "the best" is a claim of its own, and mostly an
//! untested one. With error L two statements are possible (after Hsu 1981):
//!
//! ```text
//! an arm is not the best      another arm is proved better than it
//! the candidates              all other arms: the best is among them
//! ```
//!
//! Each pair of the K arms is tested on one side at L / (2K - 3). Whichever arm is best, K - 1
//! tests could wrongly remove it. Whichever is the reference, K - 2 more could wrongly call an arm
//! better than it. So both statements together are wrong in at most L of studies.
//!
//! The gain of a candidate is shrunk towards the mean of all candidates, by the share of their
//! scatter that noise alone would cause. Candidates that are indistinguishable are not far apart,
//! and the one that looks best looks too good. The gain is also corrected for having been
//! significant (`selection`): if half of studies find an effect, those overstate it by a tenth.

use crate::ProofError;
use crate::contrast::{Contrast, Lost};
use crate::effect::Observations;
use crate::family::{Asks, Looks};
use crate::interval::Interval;
use crate::randomisation;
use crate::selection;
use crate::student;
use crate::summary::{mean, variance};

/// The arms of a study, each in its slot.
#[derive(Debug, Clone, Copy)]
pub struct Arms<'a> {
    /// Figures of all arms, where lower is better.
    pub seen: &'a Observations,
    /// Number of arms, the reference included.
    pub arms: usize,
    /// The reference arm's slot, and that of its second run.
    pub twice: (usize, usize),
    /// Failed arms of each block that was started and lost.
    pub lost: &'a [Vec<usize>],
}

impl Arms<'_> {
    /// Compares one arm with another. An arm that fails where it is slow must not be advised for
    /// the remaining blocks, so `Lost` counts the lost blocks of the pair.
    fn contrast(&self, one: usize, other: usize) -> Result<Contrast, ProofError> {
        let failed = |arm: usize| self.lost.iter().flatten().filter(|failed| **failed == arm).count();
        let runs = |arm: usize| if arm == self.twice.0 { 2 } else { 1 };
        let lost = Lost {
            blocks: self.lost.iter().filter(|arms| arms.contains(&one) || arms.contains(&other)).count(),
            treatment: failed(one),
            reference: failed(other),
            treatment_runs: runs(one),
            reference_runs: runs(other),
        };
        Ok(Contrast::of_pairs(self.seen, &[(one, other)], self.twice)?.without(lost))
    }
}

/// Gain of an arm over the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Log-ratio to the reference, after shrinkage and correction.
    pub estimate: f64,
    /// Interval that holds for all arms together.
    pub interval: Interval,
    /// Two-sided level of this interval.
    pub level: f64,
}

/// Candidates for the best arm, and their proved gains.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// Arms that are not proved worse than any other.
    pub candidates: Vec<usize>,
    /// The candidates that are proved better than the reference, with their gains.
    pub better: Vec<(usize, Gain)>,
}

/// Finds the candidates with an error of `level`. `levels` are all levels that it could have been,
/// for studies that may stop.
///
/// # Errors
/// When the observations lack one of the arms.
pub fn best(arms: &Arms<'_>, looks: Looks, level: f64, levels: &[f64]) -> Result<Best, ProofError> {
    let tests = (2 * arms.arms).saturating_sub(3).max(1) as f64;
    let each = level / tests;
    let watched: Vec<f64> = levels.iter().map(|level| 2.0 * level / tests).collect();
    let better = |one: usize, other: usize| -> Result<bool, ProofError> {
        let contrast = arms.contrast(one, other)?;
        Ok(level > 0.0 && looks.tails(&contrast, 0.0, &watched).less <= each)
    };
    let mut beaten = vec![false; arms.arms];
    let mut above_reference = Vec::new();
    for one in 0..arms.arms {
        for other in (0..arms.arms).filter(|other| *other != one) {
            if better(one, other)? {
                beaten[other] = true;
                above_reference.extend((other == arms.twice.0).then_some(one));
            }
        }
    }
    let candidates: Vec<usize> = (0..arms.arms).filter(|arm| !beaten[*arm]).collect();
    let estimates = shrunk(arms, &candidates)?;
    let mut gains = Vec::new();
    for (arm, estimate) in candidates.iter().zip(estimates).filter(|(arm, _)| above_reference.contains(arm)) {
        let contrast = arms.contrast(*arm, arms.twice.0)?;
        let interval = looks.interval(&contrast, Asks::Difference, 2.0 * each);
        let estimate = corrected(&contrast, estimate, each);
        // The shrunk estimate must lie inside the interval, too.
        let estimate = f64::clamp(estimate, interval.low, interval.high);
        gains.push((*arm, Gain { estimate, interval, level: 2.0 * each }));
    }
    Ok(Best { candidates, better: gains })
}

/// Returns an estimate that a test with this one-sided error proved, without the
/// bias of having been proved.
pub fn corrected(contrast: &Contrast, estimate: f64, error: f64) -> f64 {
    let blocks = contrast.blocks() as f64;
    if error <= 0.0 || blocks < 2.0 {
        return estimate;
    }
    let critical = student::upper_quantile(error, blocks - 1.0);
    selection::corrected(estimate, randomisation::spread(contrast) / blocks.sqrt(), critical)
}

/// Returns the candidates' log-ratios to the reference, shrunk towards their mean.
fn shrunk(arms: &Arms<'_>, candidates: &[usize]) -> Result<Vec<f64>, ProofError> {
    let contrast = |arm: &usize| arms.contrast(*arm, arms.twice.0);
    let contrasts =
        candidates.iter().filter(|arm| **arm != arms.twice.0).map(contrast).collect::<Result<Vec<_>, _>>()?;
    let estimates: Vec<f64> = contrasts.iter().map(Contrast::estimate).collect();
    let centre = mean(&estimates);
    // Candidates' deviations from their mean, block by block, exclude the shared reference.
    let apart: Vec<f64> = contrasts
        .iter()
        .map(|contrast| {
            let others = contrasts.iter().map(Contrast::effects).collect::<Vec<_>>();
            let own = contrast.effects();
            let from_mean = |block: usize| {
                own[block] - others.iter().map(|effects| effects[block]).sum::<f64>() / others.len() as f64
            };
            let scatter: Vec<f64> = (0..own.len()).map(from_mean).collect();
            variance(&scatter) / own.len().max(1) as f64
        })
        .collect();
    let (noise, scatter) = (mean(&apart), mean(&squares(&estimates, centre)));
    let kept = if scatter > 0.0 { (1.0 - noise / scatter).max(0.0) } else { 0.0 };
    let mut own = estimates.iter().map(|estimate| centre + kept * (estimate - centre));
    let of = |arm: &usize| if *arm == arms.twice.0 { 0.0 } else { own.next().unwrap_or(0.0) };
    Ok(candidates.iter().map(of).collect())
}

fn squares(values: &[f64], centre: f64) -> Vec<f64> {
    values.iter().map(|value| (value - centre).powi(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    fn study(seed: u64, effects: &[f64], blocks: usize) -> Observations {
        let mut generator = Generator::new(seed);
        let slots = effects.len() + 1;
        let rows: Vec<Vec<f64>> = (0..blocks)
            .map(|_| {
                let log = |slot: usize| effects.get(slot).copied().unwrap_or(effects[0]);
                (0..slots).map(|slot| (log(slot) + 0.02 * generator.normal()).exp()).collect()
            })
            .collect();
        Observations::new(slots, &rows).unwrap()
    }

    fn found(seed: u64, effects: &[f64], blocks: usize) -> Best {
        found_without(seed, effects, blocks, &[])
    }

    fn found_without(seed: u64, effects: &[f64], blocks: usize, lost: &[Vec<usize>]) -> Best {
        let seen = study(seed, effects, blocks);
        let arms = Arms { seen: &seen, arms: effects.len(), twice: (0, effects.len()), lost };
        best(&arms, Looks::Once, 0.05, &[0.05]).unwrap()
    }

    #[test]
    fn arms_that_cannot_be_told_apart_stay_together() {
        let found = found(1, &[0.0, -0.5, -0.5, -0.3], 12);
        assert_eq!(found.candidates, [1, 2]);
        let arms: Vec<usize> = found.better.iter().map(|(arm, _)| *arm).collect();
        assert_eq!(arms, [1, 2]);
        for (_, gain) in &found.better {
            assert!((gain.estimate + 0.5).abs() < 0.02 && gain.interval.contains(-0.5), "{gain:?}");
        }
    }

    #[test]
    fn an_arm_that_failed_in_some_blocks_is_not_advised_for_the_others() {
        let better = |lost: &[Vec<usize>]| -> Vec<usize> {
            found_without(1, &[0.0, -0.5, -0.3], 12, lost).better.iter().map(|(arm, _)| *arm).collect()
        };
        assert_eq!(better(&[]), [1]);
        assert_eq!(
            better(&[vec![1], vec![1], vec![1], vec![1]]),
            [2],
            "a third of its blocks may be its slow ones"
        );
        assert_eq!(
            better(&[vec![0], vec![0], vec![0], vec![0]]),
            [0; 0],
            "nor is a reference that failed worse"
        );
    }

    #[test]
    fn where_nothing_differs_every_arm_is_a_candidate_and_none_is_better() {
        let wrong = (0..200).filter(|seed| {
            let found = found(100 + seed, &[0.0; 4], 9);
            found.candidates.len() < 4 || !found.better.is_empty()
        });
        assert!(wrong.count() <= 18, "5% of 200 is 10");
    }

    #[test]
    fn the_winner_is_not_flattered() {
        // Six arms, all 2% better: the best-looking one looks 4% better.
        let effects = [0.0, -0.02, -0.02, -0.02, -0.02, -0.02, -0.02];
        let (mut raw, mut kept) = (0.0, 0.0);
        for seed in 0..100 {
            let seen = study(500 + seed, &effects, 8);
            let arms = Arms { seen: &seen, arms: 7, twice: (0, 7), lost: &[] };
            let candidates = [1, 2, 3, 4, 5, 6];
            let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
            let own = |arm: &usize| Contrast::of_pairs(&seen, &[(*arm, 0)], (0, 7)).unwrap().estimate();
            raw += least(&candidates.iter().map(own).collect::<Vec<_>>()) / 100.0;
            kept += least(&shrunk(&arms, &candidates).unwrap()) / 100.0;
        }
        assert!(raw < -0.027 && (-0.0235..-0.0185).contains(&kept), "raw {raw}, shrunk {kept}");
    }
}
