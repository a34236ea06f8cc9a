//! The p95 of two arms, compared by order statistics.
//!
//! The p95 of an arm is the time that 19 of 20 of its runs do not exceed; of a rate, the rate that
//! they reach. Of n runs of one law, the number that do not exceed it is binomial, whatever the
//! law. So two of the sorted runs bound it. B(k) is the chance of at most k of n:
//!
//! ```text
//! run r lies above the p95 with a chance of at most B(r - 1), run s below it with 1 - B(s - 1)
//! the effect lies above a shift:   run r of the treatment - run s of the reference > shift
//! ```
//!
//! Each of the two bounds has half of the error (Bonferroni), because the runs of a block resemble
//! each other. Ties, and laws that jump at their p95, only make the bounds hold more often.
//!
//! Rejected:
//!
//! - The bootstrap: its samples lack the slow runs that did not happen.
//! - The draws of the design: they test that both arms have one law, and arms of one p95 may differ
//!   in everything else.
//! - Both runs of the reference as two: they share the noise of their block.
//!
//! Limits: a claim of its own at 5% needs [`fewest_blocks`], 86. Blocks that resemble their
//! neighbours hold fewer runs than they count. A study that may stop has no such test.

use crate::contrast::Contrast;
use crate::interval::Interval;
use crate::proportion;
use crate::randomisation::{self, Tails};
use crate::student;

/// Share of the runs that do not exceed the p95 of a time, and exceed that of a rate.
pub const SHARE: f64 = 0.95;

/// Returns the fewest blocks that bound the p95 of both arms at a two-sided level.
pub fn fewest_blocks(level: f64) -> usize {
    randomisation::fewest_blocks(SHARE, level / 2.0)
}

/// The logarithms of the runs of two arms, one a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantiles {
    treatment: Vec<f64>,
    reference: Vec<f64>,
    share: f64,
    unit: f64,
    /// Lost blocks that count as the worst possible.
    suspect: usize,
}

impl Quantiles {
    /// Takes the runs of both arms of a comparison, which tells the error of rounded figures and
    /// the blocks that it lost. `share` of the runs do not exceed the quantile.
    ///
    /// # Panics
    /// Panics when the arms have different numbers of runs.
    pub fn new(treatment: Vec<f64>, reference: Vec<f64>, share: f64, of: &Contrast) -> Self {
        assert_eq!(treatment.len(), reference.len(), "a run of each arm a block");
        let (unit, suspect) = (of.unit(), of.suspect());
        Self { treatment: sorted(treatment), reference: sorted(reference), share, unit, suspect }
    }

    /// Returns the logarithms of the p95 of the runs seen, of the treatment and of the reference.
    /// An arm without runs has NaN.
    pub fn seen(&self) -> [f64; 2] {
        [&self.treatment, &self.reference].map(|runs| {
            let at = (runs.len().max(1) - 1) as f64 * self.share;
            let (below, above) = (runs.get(at.floor() as usize), runs.get(at.ceil() as usize));
            let (below, above) = (below.copied().unwrap_or(f64::NAN), above.copied().unwrap_or(f64::NAN));
            below + at.fract() * (above - below)
        })
    }

    /// Returns the effect on the p95 of the runs seen, a log-ratio.
    pub(crate) fn estimate(&self) -> f64 {
        let [treatment, reference] = self.seen();
        treatment - reference
    }

    /// Returns the one-sided p of a shift.
    pub(crate) fn tails(&self, shift: f64) -> Tails {
        let (above, below) = (self.above(), self.below());
        Tails { less: below.p(-shift + self.unit), greater: above.p(shift + self.unit) }
    }

    /// Returns the shifts that the test does not reject at a two-sided level.
    pub fn interval(&self, level: f64) -> Interval {
        let (low, high) = (self.above().least(level / 2.0), -self.below().least(level / 2.0));
        Interval { low: low - self.unit, high: high + self.unit }
    }

    /// Returns the spread of a normal effect over the blocks whose interval at this level would be
    /// as wide; NaN if the interval has no end.
    pub fn spread(&self, level: f64) -> f64 {
        let (low, high, blocks) = (self.above(), self.below(), self.treatment.len() as f64);
        let wide = -low.least(level / 2.0) - high.least(level / 2.0);
        let critical = student::upper_quantile(level / 2.0, blocks - 1.0);
        if wide.is_finite() { wide / (2.0 * critical) * blocks.sqrt() } else { f64::NAN }
    }

    /// Asks if the treatment lies above the reference. A lost run of the treatment counts as the
    /// lowest, one of the reference as the highest.
    fn above(&self) -> Above {
        Above::new(&self.treatment, &self.reference, self.suspect, self.share)
    }

    fn below(&self) -> Above {
        Above::new(&self.reference, &self.treatment, self.suspect, self.share)
    }
}

fn sorted(mut runs: Vec<f64>) -> Vec<f64> {
    runs.sort_unstable_by(f64::total_cmp);
    runs
}

/// Test of one side: runs of which the quantile may lie above that of others.
struct Above {
    upper: Vec<f64>,
    lower: Vec<f64>,
    /// Chance that a run lies above the quantile, by its place among the sorted runs.
    chances: Vec<f64>,
}

impl Above {
    fn new(upper: &[f64], lower: &[f64], lost: usize, share: f64) -> Above {
        let with = |runs: &[f64], worst: f64| {
            sorted(runs.iter().copied().chain(std::iter::repeat_n(worst, lost)).collect())
        };
        let (upper, lower) = (with(upper, f64::NEG_INFINITY), with(lower, f64::INFINITY));
        Above { chances: proportion::cumulative(upper.len(), share), upper, lower }
    }

    /// Returns the p against an effect of at most this shift.
    fn p(&self, shift: f64) -> f64 {
        let bounds = self.lower.iter().zip(&self.chances).map(|(bound, chance)| {
            let first = self.upper.partition_point(|run| *run <= bound + shift);
            self.chances.get(first).map_or(1.0, |above| 2.0 * above.max(1.0 - chance))
        });
        bounds.fold(1.0, f64::min)
    }

    /// Returns the end of the one-sided interval at a level.
    fn least(&self, level: f64) -> f64 {
        let half = level / 2.0;
        let run = self.chances.partition_point(|chance| *chance <= half).checked_sub(1);
        let bound = self.chances.partition_point(|chance| 1.0 - chance > half);
        match (run.and_then(|run| self.upper.get(run)), self.lower.get(bound)) {
            (Some(run), Some(bound)) => run - bound,
            _ => f64::NEG_INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::Lost;
    use crate::random::Generator;

    type Law = fn(&mut Generator) -> f64;

    fn quantiles(seed: u64, blocks: usize, laws: [Law; 2], share: f64) -> Quantiles {
        let mut generator = Generator::new(seed);
        // Blocks share a noise of their own.
        let draw = |law: Law, generator: &mut Generator| law(generator);
        let runs: Vec<[f64; 2]> = (0..blocks)
            .map(|_| {
                let shared = 0.02 * generator.normal();
                laws.map(|law| shared + draw(law, &mut generator))
            })
            .collect();
        let of = |side: usize| runs.iter().map(|run| run[side]).collect::<Vec<f64>>();
        Quantiles::new(of(0), of(1), share, &Contrast::default())
    }

    fn even(generator: &mut Generator) -> f64 {
        0.03 * generator.normal()
    }

    fn rare(generator: &mut Generator, share: f64, factor: f64) -> f64 {
        let slow = if generator.unit() < share { factor.ln() } else { 0.0 };
        slow + even(generator)
    }

    /// Returns the p95 of the noise of block and run with slow runs, by its distribution.
    fn p95(share: f64, factor: f64) -> f64 {
        let wide = (0.03f64.powi(2) + 0.02f64.powi(2)).sqrt();
        let below = |at: f64| {
            (1.0 - share) * crate::summary::normal_probability(at / wide)
                + share * crate::summary::normal_probability((at - factor.ln()) / wide)
        };
        let (mut low, mut high) = (-1.0, 5.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if below(middle) < SHARE { low = middle } else { high = middle }
        }
        high
    }

    #[test]
    fn intervals_cover_the_p95_under_rare_and_frequent_slow_runs() {
        for (law, truth) in [
            (even as Law, p95(0.0, 1.0)),
            (|generator| rare(generator, 0.01, 10.0), p95(0.01, 10.0)),
            (|generator| rare(generator, 0.04, 3.0), p95(0.04, 3.0)),
            (|generator| rare(generator, 0.05, 3.0), p95(0.05, 3.0)),
            (|generator| rare(generator, 0.1, 3.0), p95(0.1, 3.0)),
        ] {
            let effect = truth - p95(0.0, 1.0);
            let covered = (0..1_000)
                .filter(|seed| quantiles(*seed, 100, [law, even], SHARE).interval(0.05).contains(effect));
            let covered = covered.count();
            assert!(covered >= 950, "{covered} of 1,000 cover {effect}");
        }
    }

    #[test]
    fn the_test_agrees_with_its_interval_of_times_and_of_rates() {
        for share in [SHARE, 1.0 - SHARE] {
            let found = quantiles(4, 120, [|generator| rare(generator, 0.3, 2.0), even], share);
            let Interval { low, high } = found.interval(0.05);
            assert!(low < found.estimate() && found.estimate() < high, "{found:?}");
            let [inside, outside] =
                [1e-9, -1e-9].map(|step| [found.tails(low + step).greater, found.tails(high - step).less]);
            assert!(inside.iter().all(|p| *p > 0.025) && outside.iter().all(|p| *p <= 0.025), "{share}");
            // The slow runs of a time are its high ones.
            assert_eq!(low > 0.0, share == SHARE);
        }
    }

    #[test]
    fn too_few_runs_bound_nothing_and_the_fewest_do() {
        assert_eq!([0.05, 0.04].map(fewest_blocks), [86, 90]);
        let at = |blocks| quantiles(1, blocks, [even; 2], SHARE);
        let (few, enough) = (at(85), at(86));
        assert_eq!(few.interval(0.05), Interval::UNBOUNDED);
        assert!(few.spread(0.05).is_nan() && few.tails(0.0).two_sided() > 0.05);
        let Interval { low, high } = enough.interval(0.05);
        assert!(low.is_finite() && high.is_finite() && enough.spread(0.05) > 0.0);
        assert!(at(0).estimate().is_nan());
    }

    #[test]
    fn suspect_runs_count_as_the_worst_and_rounding_widens() {
        let (lost, runs) =
            (Lost { blocks: 6, treatment: 6, treatment_runs: 1, reference_runs: 2, ..Lost::default() }, 150);
        let even = quantiles(2, runs, [even; 2], SHARE);
        let with = Contrast::of_differences(&[0.0; 9]).without(lost);
        let lost = Quantiles::new(even.treatment.clone(), even.reference.clone(), SHARE, &with);
        let (whole, part) = (even.interval(0.05), lost.interval(0.05));
        assert!(part.low < whole.low && part.high > whole.high, "{whole:?} {part:?}");
        let rounded = Quantiles { unit: 0.1, ..even.clone() };
        assert!((rounded.interval(0.05).low - whole.low + 0.1).abs() < 1e-12);
        assert!(rounded.tails(-0.1).greater > 0.5 && even.tails(-0.1).greater < 0.025);
    }
}
