//! Noise that something else saw too: adjustment by a figure that was taken before each run and that no treatment touches.
//!
//! ```text
//! y(b, s), c(b, s)     logarithms of the figure and of the covariate, each less its block's mean
//! slope                sum y c / sum c^2, over all runs of all blocks, whatever their arm
//! share                (sum y c)^2 / (sum y^2 sum c^2): what of the noise within blocks it explains
//! adjusted             y - slope c
//! ```
//!
//! Why the tests stay right: nothing here knows which run had which arm. If a treatment does nothing, the pairs (y, c) of a block might as
//! well have been dealt out in another order, and every order gives the same slope; so a permutation of adjusted figures is as
//! good as one of figures. The same holds for the choice to adjust at all, which is made by the share ([`HELPS`]). What
//! a treatment does makes the share smaller and the slope no different on average, since c was drawn into the order with the arms.
//!
//! Limits: one straight line. A covariate that a treatment's run does touch (a device that is still busy with it) would take a part of
//! carry-over for noise; the tests of order look for that.

use crate::ProofError;
use crate::effect::Observations;

/// The least share of the noise that is worth an adjustment: at the fewest [`RUNS_MIN`] chance alone reaches it in one study of ten.
pub const HELPS: f64 = 0.25;
/// Runs, beyond one a block, below which no line is laid.
pub const RUNS_MIN: usize = 12;

/// A line through figures and covariate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// By how much a figure's logarithm grows with the covariate's.
    pub slope: f64,
    /// What of the noise within blocks it explains, 0 to 1.
    pub share: f64,
}

impl Fit {
    /// Lays the line; `None` where there are too few runs, or one of both never moves.
    #[must_use]
    pub fn of(seen: &Observations, covariate: &Observations) -> Option<Fit> {
        let runs = seen.blocks() * seen.slots().saturating_sub(1);
        if runs < RUNS_MIN || covariate.blocks() != seen.blocks() || covariate.slots() != seen.slots() {
            return None;
        }
        let (mut both, mut own, mut other) = (0.0, 0.0, 0.0);
        for (y, c) in seen.logs().iter().zip(covariate.logs()) {
            for (y, c) in centred(y).zip(centred(c)) {
                both += y * c;
                own += y * y;
                other += c * c;
            }
        }
        (own > 0.0 && other > 0.0).then(|| Fit { slope: both / other, share: both * both / (own * other) })
    }

    /// Whether it explains enough to be used.
    #[must_use]
    pub fn helps(&self) -> bool {
        self.share >= HELPS
    }

    /// The figures without what the covariate explains; each block keeps its mean.
    ///
    /// # Errors
    /// When a figure leaves the range of numbers.
    pub fn adjusted(
        &self,
        seen: &Observations,
        covariate: &Observations,
    ) -> Result<Observations, ProofError> {
        let row = |(y, c): (&Vec<f64>, &Vec<f64>)| {
            y.iter().zip(centred(c)).map(|(y, c)| (y - self.slope * c).exp()).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = seen.logs().iter().zip(covariate.logs()).map(row).collect();
        Observations::new(seen.slots(), &rows)
    }
}

fn centred(block: &[f64]) -> impl Iterator<Item = f64> {
    let mean = block.iter().sum::<f64>() / block.len() as f64;
    block.iter().map(move |value| value - mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    /// Ten blocks of three runs: a covariate, and figures that follow it with this slope and noise of their own.
    fn made(slope: f64, own: f64) -> (Observations, Observations) {
        let mut generator = Generator::new(5);
        let (mut figures, mut covariates) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let covariate: Vec<f64> = (0..3).map(|_| 0.05 * generator.normal()).collect();
            let figure = covariate.iter().map(|c| (slope * c + own * generator.normal()).exp()).collect();
            figures.push(figure);
            covariates.push(covariate.into_iter().map(f64::exp).collect());
        }
        let observations = |rows: &[Vec<f64>]| Observations::new(3, rows).expect("well formed");
        (observations(&figures), observations(&covariates))
    }

    #[test]
    fn what_only_follows_the_covariate_is_gone_and_each_block_keeps_its_mean() {
        let (seen, covariate) = made(0.7, 0.0);
        let fit = Fit::of(&seen, &covariate).expect("enough runs");
        assert!((fit.slope - 0.7).abs() < 1e-9 && (fit.share - 1.0).abs() < 1e-9, "{fit:?}");
        let adjusted = fit.adjusted(&seen, &covariate).expect("finite");
        for (after, before) in adjusted.logs().iter().zip(seen.logs()) {
            let mean = before.iter().sum::<f64>() / 3.0;
            assert!(after.iter().all(|value| (value - mean).abs() < 1e-9), "{after:?} {mean}");
        }
    }

    #[test]
    fn a_covariate_that_says_nothing_is_not_used_and_too_few_runs_lay_no_line() {
        let (seen, covariate) = made(0.0, 0.05);
        let fit = Fit::of(&seen, &covariate).expect("enough runs");
        assert!(!fit.helps(), "{fit:?}");
        assert_eq!(Fit::of(&seen.first(5), &covariate.first(5)), None);
    }

    #[test]
    fn which_run_had_which_arm_changes_nothing() {
        let (seen, covariate) = made(0.5, 0.02);
        let turned = |of: &Observations| {
            let rows: Vec<Vec<f64>> = of
                .logs()
                .iter()
                .map(|block| [2, 0, 1].map(|slot: usize| block[slot].exp()).to_vec())
                .collect();
            Observations::new(3, &rows).expect("well formed")
        };
        let (one, other) = (Fit::of(&seen, &covariate), Fit::of(&turned(&seen), &turned(&covariate)));
        let (one, other) = (one.expect("a line"), other.expect("a line"));
        assert!((one.slope - other.slope).abs() < 1e-12 && (one.share - other.share).abs() < 1e-12);
    }
}
