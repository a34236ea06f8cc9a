//! The effect of a treatment on the average of all runs, next to its effect on the typical run.
//!
//! The proved effect is that of the typical run: stalls in a tenth of the runs hardly move it. A
//! load that runs every night also pays for the stalls. So each claim has two more figures:
//!
//! ```text
//! ratio of means   sum of the treatment's times / sum of the reference's   interval: Fieller 1954
//! slow runs        share of the treatment's runs above 1.5 times the median of the reference's
//! ```
//!
//! Both take times. A rate enters as time a unit, its inverse: a slow run is one below the
//! reference's median rate by a factor of 1.5. The average is the harmonic mean, units done by the
//! time that they took. The arithmetic mean of rates hides stalls. A run at a third of the rate
//! takes three times as long, but lowers that mean by only two thirds of one run.
//!
//! The ratio r is within its interval if the mean over blocks of t - r u lies within Student's t of
//! 0. Here t and u are a block's mean times, so that is a quadratic in r. The interval of the share
//! is that of Clopper and Pearson, each end at 95%: none in 9 runs means at most 28%.
//!
//! The average is tested as well ([`Means`]), after the typical verdict. So a verdict says that
//! most runs gain and the average loses only if the interval excludes no change. An equality is of
//! the typical run; the line adds the average unless that is proved to lie within the margin.
//!
//! Limits: the mean of few runs contains no stalls that did not occur; the upper end of the share
//! covers those. So the interval of an average is one of the runs seen: with 1% of runs at ten
//! times the length, 10 blocks miss the mean in 90% of studies. Tails without variance have no
//! valid interval of the mean either.

use crate::interval::Interval;
use crate::proportion;
use crate::randomisation::{BLOCKS_MIN, Tails};
use crate::student;
use crate::summary::{mean, variance};
use plumb_units::median;

/// Multiple of the reference's median from which on a run is slow.
pub const SLOW: f64 = 1.5;
/// Error of the slow runs' interval, both ends together.
const SLOW_ALPHA: f64 = 0.1;

/// The ratio of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioOfMeans {
    /// Mean of the treatment over mean of the reference.
    pub ratio: f64,
    /// Interval at the requested level; unbounded if the reference's mean may be 0.
    pub interval: Interval,
}

impl RatioOfMeans {
    /// Returns the ratio of harmonic means of rates, if these are means of times a unit.
    #[must_use]
    pub fn inverse(self) -> Self {
        // A ratio of positive figures has no end at or below 0.
        let high = if self.interval.low > 0.0 { 1.0 / self.interval.low } else { f64::INFINITY };
        Self { ratio: 1.0 / self.ratio, interval: Interval { low: 1.0 / self.interval.high, high } }
    }
}

/// Returns the ratio of the means of two sets of figures that are paired by block: times, or the
/// differences of a part and of the whole. None for fewer than two blocks.
///
/// # Panics
/// When the sets differ in size.
pub fn ratio_of_means(treatment: &[f64], reference: &[f64], level: f64) -> Option<RatioOfMeans> {
    assert_eq!(treatment.len(), reference.len(), "a pair a block");
    if treatment.len() < 2 {
        return None;
    }
    let (above, below) = (mean(treatment), mean(reference));
    let count = treatment.len() as f64;
    let together: f64 =
        treatment.iter().zip(reference).map(|(t, u)| (t - above) * (u - below)).sum::<f64>() / (count - 1.0);
    let critical = student::upper_quantile(level / 2.0, count - 1.0);
    let squared = critical * critical / count;
    // a r^2 - 2 b r + c <= 0
    let a = below * below - squared * variance(reference);
    let b = above * below - squared * together;
    let c = above * above - squared * variance(treatment);
    let root = (b * b - a * c).max(0.0).sqrt();
    let interval =
        if a > 0.0 { Interval { low: (b - root) / a, high: (b + root) / a } } else { Interval::UNBOUNDED };
    Some(RatioOfMeans { ratio: above / below, interval })
}

/// Kind of the figures whose averages are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// Times, or other figures whose mean is meaningful.
    Times,
    /// Rates, stored as times a unit: the ratio of their harmonic means is the inverse.
    Rates,
}

/// The mean times of both sides of a comparison, block by block.
#[derive(Debug, Clone, PartialEq)]
pub struct Means {
    treatment: Vec<f64>,
    reference: Vec<f64>,
    figures: Figures,
}

impl Means {
    /// Takes the mean time, or the mean time a unit, of each side and block.
    ///
    /// # Panics
    /// When the sets differ in size.
    pub fn new(treatment: Vec<f64>, reference: Vec<f64>, figures: Figures) -> Self {
        assert_eq!(treatment.len(), reference.len(), "a pair a block");
        Self { treatment, reference, figures }
    }

    /// Returns the ratio of the averages with its interval; none for fewer than two blocks.
    pub fn ratio(&self, level: f64) -> Option<RatioOfMeans> {
        let found = ratio_of_means(&self.treatment, &self.reference, level)?;
        Some(if self.figures == Figures::Rates { found.inverse() } else { found })
    }

    /// Tests the hypothesis that the logarithm of the ratio is `against`. Fieller's interval is
    /// the inversion of this test.
    pub fn tails(&self, against: f64) -> Tails {
        if self.treatment.len() < BLOCKS_MIN {
            return Tails::NONE;
        }
        let ratio = if self.figures == Figures::Rates { (-against).exp() } else { against.exp() };
        let pairs = self.treatment.iter().zip(&self.reference);
        let apart: Vec<f64> = pairs.map(|(treatment, reference)| treatment - ratio * reference).collect();
        let tail = |sign: f64| student::upper_tail(sign * student::ratio(&apart), apart.len() as f64 - 1.0);
        let (above, below) = (tail(1.0), tail(-1.0));
        match self.figures {
            Figures::Times => Tails { less: below, greater: above },
            Figures::Rates => Tails { less: above, greater: below },
        }
    }
}

/// Number and share of slow runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowRuns {
    /// Number of runs above the bound.
    pub slow: usize,
    /// Number of runs, slow ones included.
    pub runs: usize,
    /// Interval of the share of slow runs, each end at 95%.
    pub share: Interval,
}

/// Slow runs of both sides, above [`SLOW`] times the median of the reference's runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowSeen {
    /// Slow runs among the treatment's.
    pub treatment: SlowRuns,
    /// Slow runs among the reference's own.
    pub reference: SlowRuns,
}

/// Counts the treatment's runs above `SLOW` times the reference's median; both are
/// times, or times a unit.
pub fn slow_runs(treatment: &[f64], reference: &[f64]) -> SlowRuns {
    let bound = SLOW * median(reference);
    let slow = treatment.iter().filter(|time| **time > bound).count();
    SlowRuns { slow, runs: treatment.len(), share: proportion::interval(slow, treatment.len(), SLOW_ALPHA) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn the_interval_of_a_ratio_covers_it() {
        let mut generator = Generator::new(3);
        let covered = (0..2_000).filter(|_| {
            let block = |generator: &mut Generator| (0.3 * generator.normal()).exp();
            let rows: Vec<(f64, f64)> = (0..10)
                .map(|_| {
                    let mood = block(&mut generator);
                    (0.8 * mood * (0.1 * generator.normal()).exp(), mood * (0.1 * generator.normal()).exp())
                })
                .collect();
            let (t, u): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            ratio_of_means(&t, &u, 0.05).unwrap().interval.contains(0.8)
        });
        let covered = covered.count();
        assert!((1_870..=1_935).contains(&covered), "{covered} of 2,000");
        assert_eq!(ratio_of_means(&[1.0], &[1.0], 0.05), None);
    }

    #[test]
    fn the_inverse_of_a_ratio_is_that_of_the_rates() {
        let found = ratio_of_means(&[2.0, 2.1, 1.9], &[1.0, 1.0, 1.01], 0.05).unwrap();
        let rates = found.inverse();
        assert!((rates.ratio * found.ratio - 1.0).abs() < 1e-12);
        assert!(rates.interval.low < rates.ratio && rates.ratio < rates.interval.high, "{rates:?}");
        let open = RatioOfMeans { ratio: 2.0, interval: Interval::UNBOUNDED }.inverse();
        assert!(open.interval.low <= 0.0 && open.interval.high == f64::INFINITY, "{open:?}");
    }

    #[test]
    fn the_test_of_an_average_agrees_with_its_interval_for_times_and_rates() {
        let mut generator = Generator::new(8);
        let mut noise =
            |centre: f64| (0..9).map(|_| centre * (0.1 * generator.normal()).exp()).collect::<Vec<_>>();
        let (treatment, reference) = (noise(1.2), noise(1.0));
        for figures in [Figures::Times, Figures::Rates] {
            let means = Means::new(treatment.clone(), reference.clone(), figures);
            let found = means.ratio(0.05).unwrap();
            for end in [found.interval.low, found.interval.high] {
                assert!((means.tails(end.ln()).two_sided() - 0.05).abs() < 1e-6, "{figures:?} {end}");
            }
            let slower = means.tails(0.0).greater < 0.025;
            assert_eq!(slower, figures == Figures::Times, "{found:?}");
        }
    }

    #[test]
    fn slow_runs_are_counted_and_none_is_not_never() {
        let found = slow_runs(&[1.0; 9], &[1.0; 18]);
        assert_eq!((found.slow, found.runs), (0, 9));
        assert!((found.share.high - 0.283).abs() < 1e-3, "{found:?}");
        assert_eq!(slow_runs(&[1.0, 1.6, 3.0], &[1.0, 0.9, 1.1]).slow, 2);
    }
}
