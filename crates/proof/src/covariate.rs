//! Noise shared with a covariate: a figure taken before each run, which no treatment changes.
//!
//! ```text
//! y(b, s), c(b, s)   logarithms of figure and covariate, less their block's and slot's mean
//! share              (sum y c)^2 / (sum y^2 sum c^2): explained part of the noise in blocks, arms
//! interval           of the correlation's artanh, +-1.96 / sqrt(f - 1), with
//!                    f = (blocks - 1)(slots - 1) - 1 degrees of freedom
//! ```
//!
//! The slot's mean is the arm's, so the residuals exclude the treatment's effect. Over all runs,
//! an effect of -50% was explained as noise whenever the covariate was slow by chance in its
//! runs. That happened in 5 to 9% of studies of 6 blocks and 1% noise, whose intervals then
//! missed it in up to 11%. The share shows if a covariate helps ([`Explained::helps`]).
//! `contrast` then removes the explained part by a line that is fitted at each shift that a test
//! or an interval tries. With the true shift subtracted, that line is the same in every draw of
//! the design, so the tests stay exact.
//!
//! Fewer than [`DEGREES_MIN`] degrees of freedom prove nothing: chance alone reaches a quarter in
//! 4% of studies there. That is 10 blocks of two arms, 7 of three.
//!
//! Limits: one straight line. If a treatment's run does change the covariate (a device that is
//! still busy with it), a part of the carry-over is explained as noise. The tests of order look for
//! that. The decision to adjust is made once, by residuals that know the arms: with sixteen degrees
//! and more, one draw of the labels changes little.

use crate::effect::Observations;
use crate::interval::Interval;

/// The least share of the noise that makes an adjustment worth while.
pub const HELPS: f64 = 0.25;
/// The fewest degrees of freedom of the residuals that allow a statement.
pub const DEGREES_MIN: usize = 16;
/// Deviations of the correlation's artanh on either side of a 95% interval.
const REACH: f64 = 1.96;

/// Part of the noise that a covariate explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explained {
    /// Share of the variance within blocks and arms, 0 to 1.
    pub share: f64,
    /// The 95% interval of the share.
    pub interval: Interval,
}

impl Explained {
    /// Compares figures with a covariate of the same runs. `None` if there are too few runs, or
    /// either of them is constant.
    #[must_use]
    pub fn of(seen: &Observations, covariate: &Observations) -> Option<Explained> {
        let freedom = degrees(seen);
        if freedom < DEGREES_MIN || covariate.blocks() != seen.blocks() || covariate.slots() != seen.slots() {
            return None;
        }
        let (mut both, mut own, mut other) = (0.0, 0.0, 0.0);
        for (y, c) in residuals(seen).into_iter().zip(residuals(covariate)) {
            both += y * c;
            own += y * y;
            other += c * c;
        }
        if own <= 0.0 || other <= 0.0 {
            return None;
        }
        let correlation = (both / (own * other).sqrt()).clamp(-1.0, 1.0);
        let reach = REACH / (freedom as f64 - 1.0).sqrt();
        let (size, square) = (correlation.abs().atanh(), |end: f64| end.max(0.0).tanh().powi(2));
        let interval = Interval { low: square(size - reach), high: square(size + reach) };
        Some(Explained { share: correlation * correlation, interval })
    }

    /// True if the share makes an adjustment worth while.
    #[must_use]
    pub fn helps(&self) -> bool {
        self.share >= HELPS
    }
}

/// Returns the degrees of freedom of residuals about blocks, slots and a line.
fn degrees(seen: &Observations) -> usize {
    (seen.blocks().saturating_sub(1) * seen.slots().saturating_sub(1)).saturating_sub(1)
}

/// Returns the logarithms about their block's and their slot's mean.
fn residuals(seen: &Observations) -> Vec<f64> {
    let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
    let blocks: Vec<f64> = seen.logs().iter().map(|row| mean(&mut row.iter().copied(), row.len())).collect();
    let slots: Vec<f64> = (0..seen.slots())
        .map(|slot| mean(&mut seen.logs().iter().map(|row| row[slot]), seen.blocks()))
        .collect();
    let all = blocks.iter().sum::<f64>() / blocks.len() as f64;
    let rows = seen.logs().iter().zip(&blocks);
    rows.flat_map(|(row, block)| row.iter().zip(&slots).map(move |(log, slot)| log - block - slot + all))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::Contrast;
    use crate::random::Generator;
    use crate::randomisation;

    /// Makes blocks of three runs: a covariate, and figures that follow it with this slope and
    /// noise of their own. The second slot has this effect.
    fn made(seed: u64, blocks: usize, slope: f64, (own, effect): (f64, f64)) -> (Observations, Observations) {
        let mut generator = Generator::new(seed);
        let (mut figures, mut covariates) = (Vec::new(), Vec::new());
        for _ in 0..blocks {
            let covariate: Vec<f64> = (0..3).map(|_| 0.05 * generator.normal()).collect();
            let figure = covariate.iter().enumerate();
            let figure = figure.map(|(slot, c)| {
                (slope * c + own * generator.normal() + if slot == 1 { effect } else { 0.0 }).exp()
            });
            figures.push(figure.collect());
            covariates.push(covariate.into_iter().map(f64::exp).collect());
        }
        let observations = |rows: &[Vec<f64>]| Observations::new(3, rows).expect("well formed");
        (observations(&figures), observations(&covariates))
    }

    #[test]
    fn what_only_follows_the_covariate_is_gone_whatever_the_effect() {
        let (seen, covariate) = made(5, 10, 0.7, (0.0, 0.3));
        let explained = Explained::of(&seen, &covariate).expect("enough runs");
        assert!((explained.share - 1.0).abs() < 1e-9 && explained.helps(), "{explained:?}");
        let contrast = Contrast::of_pairs(&seen.beside(&covariate), &[(1, 0)], (0, 2)).expect("a pair");
        assert!(contrast.effects().iter().all(|effect| (effect - 0.3).abs() < 1e-9));
        assert!((contrast.estimate() - 0.3).abs() < 1e-9 && contrast.deviation() < 1e-9);
    }

    #[test]
    fn a_covariate_that_says_nothing_is_not_used_and_too_few_runs_say_nothing() {
        let (seen, covariate) = made(5, 10, 0.0, (0.05, 0.0));
        let explained = Explained::of(&seen, &covariate).expect("enough runs");
        assert!(!explained.helps() && explained.interval.low == 0.0, "{explained:?}");
        assert!(explained.interval.contains(explained.share));
        assert_eq!(Explained::of(&seen.first(9), &covariate.first(9)), None);
    }

    #[test]
    fn a_large_effect_is_not_taken_for_noise() {
        // -50% with noise of 1%: 5 to 9% of studies were adjusted to -32 to -39%, with
        // intervals thirty times as wide.
        let half = 0.5f64.ln();
        for seed in 0..200 {
            let (seen, covariate) = made(seed, 10, 0.0, (0.01, half));
            let adjusted = seen.clone().beside(&covariate);
            let of = |seen: &Observations| Contrast::of_pairs(seen, &[(1, 0)], (0, 2)).expect("a pair");
            let (plain, adjusted) = (of(&seen), of(&adjusted));
            assert!((adjusted.estimate() - half).abs() < 0.02, "{seed}: {}", adjusted.estimate());
            let width = |contrast: &Contrast| {
                let found = randomisation::interval(contrast, 0.05);
                found.high - found.low
            };
            assert!(width(&adjusted) < 2.0 * width(&plain), "{seed}");
        }
    }
}
