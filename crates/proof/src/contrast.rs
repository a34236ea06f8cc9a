//! A claim's comparison as the design drew it: in every block, one or several small lotteries.
//!
//! ```text
//! two runs      treatment, reference                     a coin decided which is the treatment
//! three runs    treatment, reference, reference again    a draw from three decided it
//! a sum         (both - second) - (first - neither)      an interaction: a coin decided its sign
//! ```
//!
//! A claim over all levels of another factor has several such lotteries in a block. They are drawn
//! independently, because every run of a block had its own place. Each is stored as the
//! differences of its *lone* run to the others, logarithms of ratios, with a sign. A lone run is
//! the treatment (+1). If the reference arm is the treatment of a claim, it is the run that the
//! reference is compared with (-1).
//!
//! Why three runs and not an averaged reference: the sign of `t - (r + r')/2` is no fair
//! coin. A stall weighs 1 on the treatment and 1/2 on the reference. But which of three
//! runs is the treatment was drawn from three, whatever the noise. The third run reduces
//! the variance by a quarter.
//!
//! *The typical effect* is one parameter, used by the test, the interval and the estimate. It is
//! the pseudo-median of log t - log a, a treatment's and a reference's run of one block (Hodges,
//! Lehmann 1963). Take two blocks, average their differences: half of such averages lie above the
//! parameter. It is 0 if both arms have one law, whatever the law, because the difference is then
//! symmetric. Stalls in a tenth of one arm's runs move it by a fifth of the noise. The estimate is
//! the mean of the pseudo-medians of t - a and of t - a'. If the arms have one law, each of them is
//! symmetric about 0, so the estimate is unbiased.
//!
//! Rejected:
//!
//! - The pseudo-median of both together, because averages of one block's two differences are not
//!   symmetric. With stalls in both arms its bias was 0.5 points in ten blocks.
//! - That of t - (a + a')/2, because a stall hits the mean of two runs twice as often and half as
//!   hard. Its bias was 1 to 2.5 points to "faster".
//!
//! *A covariate* (a canary before each run) is removed by a line fitted to the claim's own runs.
//! For a test, the tested shift is first subtracted from the lone runs, so that the slope is the
//! same in all draws. For the estimate both arms' means are subtracted, because a line through runs
//! that contain the effect would explain the effect as noise.
//!
//! *A lost block*, in which a run of these arms failed, is left out ([`Lost`]). The draws of the
//! other blocks are unchanged, so the test of the rest is exact, and a lost block costs its own
//! share of the power, 1/n. That holds while failing does not depend on the treatment. So the
//! failed runs are tested as well. If one side has more of them than chance suggests, at p <=
//! `DEPENDS_P`, each lost block counts as the worst possible. Two failed treatments and no failed
//! reference are such a case, or four failed references.
//!
//! Rejected:
//!
//! - Counting every lost block as the worst. With one of 12 lost, a 5% effect at a noise of 3% a
//!   run was found in 39% of studies instead of 98%; if six claims share the error, in none.
//! - Leaving out every lost block. A treatment that fails in its slowest fifth of runs then proves
//!   itself faster in 11% of studies of 12 blocks.

use crate::ProofError;
use crate::effect::Observations;
use crate::proportion;
use crate::signed_rank;
use crate::summary::{mean, variance};
use plumb_units::median;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Failing is assumed to depend on the treatment if one side fails this often by chance. With a
/// side that fails where it is slow, at most 5.5% of studies of 12, 20 or 30 blocks are then false;
/// at 0.1, up to 7.4%.
const DEPENDS_P: f64 = 0.2;

/// Log-ratio below which two figures are one number, recovered from logarithms.
const ALIKE: f64 = 1e-12;

/// Blocks that a comparison lost to failed runs of its arms, with the failures of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Number of blocks that were lost.
    pub blocks: usize,
    /// Failed runs of the treatment's side.
    pub treatment: usize,
    /// Failed runs of the reference's side.
    pub reference: usize,
    /// Runs that the treatment's side has in a block.
    pub treatment_runs: usize,
    /// Runs that the reference's side has in a block.
    pub reference_runs: usize,
}

impl Lost {
    /// True if one side failed more often than chance suggests.
    pub fn depends(&self) -> bool {
        let failed = self.treatment + self.reference;
        let runs = self.treatment_runs + self.reference_runs;
        if failed == 0 || runs == 0 {
            return false;
        }
        let share = self.treatment_runs as f64 / runs as f64;
        let more = |own: usize, share: f64| match own {
            0 => 1.0,
            own => 1.0 - proportion::at_most(own - 1, failed, share),
        };
        more(self.treatment, share).min(more(self.reference, 1.0 - share)) <= DEPENDS_P
    }
}

/// One lottery of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lottery {
    /// Logarithm of the lone run less that of each other run; with one other
    /// run the second is unused.
    differences: [f64; 2],
    /// The same differences of a covariate; 0 without one.
    covariate: [f64; 2],
    others: usize,
    /// +1 if a larger lone run is a larger effect, otherwise -1.
    sign: f64,
}

impl Lottery {
    /// Creates a lottery of a treatment and a reference, or of any difference whose sign was drawn.
    pub fn pair(difference: f64) -> Self {
        Self { differences: [difference, 0.0], covariate: [0.0; 2], others: 1, sign: 1.0 }
    }

    /// Creates a lottery of one run and two of another arm, from its differences to both. `sign` is
    /// +1 for a treatment, -1 for a run that is compared with the two.
    pub fn trio(differences: [f64; 2], sign: f64) -> Self {
        Self { differences, covariate: [0.0; 2], others: 2, sign }
    }

    /// Adds the differences of a covariate of its runs.
    fn beside(self, covariate: [f64; 2]) -> Self {
        Self { covariate, ..self }
    }

    /// Returns the number of runs, 2 or 3.
    pub fn runs(&self) -> usize {
        self.others + 1
    }

    /// Returns the observed effect, a log-ratio.
    pub fn effect(&self) -> f64 {
        self.sign * self.differences[..self.others].iter().sum::<f64>() / self.others as f64
    }

    /// Returns the lone run's ratio to each other run: one or two logarithms.
    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.differences[..self.others].iter().map(|difference| self.sign * difference)
    }

    /// Returns the runs about their mean after subtracting the effect, the lone one first. They are
    /// mirrored so that a larger first value is a larger effect. Places after the last run are 0.
    pub(crate) fn centred(&self, effect: f64) -> [f64; 3] {
        self.about_mean(self.differences, effect)
    }

    /// Returns the runs about their median, so that a stall of one does not move the others.
    pub(crate) fn aligned(&self, effect: f64) -> [f64; 3] {
        let mut runs = self.centred(effect);
        let middle = median(&runs[..self.runs()]);
        runs[..self.runs()].iter_mut().for_each(|run| *run -= middle);
        runs
    }

    /// Returns the runs about the middle of the two closest. With stalls, the two closest runs are
    /// of one kind more often than the median is near its neighbours.
    pub(crate) fn anchored(&self, effect: f64) -> [f64; 3] {
        let mut runs = self.centred(effect);
        let mut sorted = runs;
        sorted[..self.runs()].sort_unstable_by(f64::total_cmp);
        let [low, middle, high] = sorted;
        let anchor = match (middle - low).total_cmp(&(high - middle)) {
            _ if self.runs() < 3 => f64::midpoint(low, middle),
            Ordering::Less => f64::midpoint(low, middle),
            Ordering::Equal => middle,
            Ordering::Greater => f64::midpoint(middle, high),
        };
        runs[..self.runs()].iter_mut().for_each(|run| *run -= anchor);
        runs
    }

    /// Returns the distance of the run furthest from the middle of the two closest; of a pair, that
    /// of its runs. It is the same whichever run is the lone one.
    pub(crate) fn outlier(&self, effect: f64) -> f64 {
        let runs = self.anchored(effect);
        if self.runs() < 3 {
            return 2.0 * runs[0].abs();
        }
        let further = |one: &f64, other: &f64| one.abs().total_cmp(&other.abs()).then(one.total_cmp(other));
        runs.into_iter().max_by(further).unwrap_or(0.0)
    }

    fn about_mean(&self, differences: [f64; 2], effect: f64) -> [f64; 3] {
        let out = |index: usize| {
            if index < self.others { differences[index] - self.sign * effect } else { 0.0 }
        };
        let differences = [out(0), out(1)];
        let lone = (differences[0] + differences[1]) / self.runs() as f64;
        let other = |index: usize| {
            if index < self.others { self.sign * (lone - differences[index]) } else { 0.0 }
        };
        [self.sign * lone, other(0), other(1)]
    }
}

/// The lotteries of a claim, block by block: the same number and kind in every block.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contrast {
    blocks: Vec<Vec<Lottery>>,
    lost: Lost,
    /// Largest error, on the logarithm, of rounded figures.
    unit: f64,
}

impl Contrast {
    /// Creates a contrast from the lotteries of each block.
    ///
    /// # Panics
    /// When blocks have different numbers of them.
    pub fn new(blocks: Vec<Vec<Lottery>>) -> Self {
        assert!(blocks.windows(2).all(|two| two[0].len() == two[1].len()), "blocks of different size");
        Self { blocks, lost: Lost::default(), unit: 0.0 }
    }

    /// Creates one lottery a block between a treatment and a reference, or for any
    /// difference whose sign was drawn.
    pub fn of_differences(differences: &[f64]) -> Self {
        Self::new(differences.iter().map(|difference| vec![Lottery::pair(*difference)]).collect())
    }

    /// Creates a lottery for each pair of slots, the treatment's and the reference's. A pair with
    /// `twice.0`, the reference arm's slot, is also compared with its second run `twice.1`, unless
    /// that one is in the pair.
    ///
    /// # Errors
    /// When one of the slots does not exist, or there is no pair.
    pub fn of_pairs(
        seen: &Observations,
        pairs: &[(usize, usize)],
        twice: (usize, usize),
    ) -> Result<Self, ProofError> {
        if pairs.is_empty() {
            return Err(ProofError::TooFew { what: "arms on one side of a comparison", found: 0, needed: 1 });
        }
        let slots = pairs.iter().flat_map(|(treatment, reference)| [*treatment, *reference]);
        slots.chain([twice.0, twice.1]).try_for_each(|slot| seen.known(slot))?;
        let lottery = |block: usize, (treatment, reference): (usize, usize)| {
            let (own, covariate) = (&seen.logs()[block], seen.covariate().map(|covariate| &covariate[block]));
            let from = |lone: usize, others: [usize; 2]| {
                let of = |runs: &Vec<f64>| others.map(|other| runs[lone] - runs[other]);
                (of(own), covariate.map_or([0.0; 2], of))
            };
            let against = |lone: usize, sign| {
                let (differences, covariate) = from(lone, [twice.0, twice.1]);
                Lottery::trio(differences, sign).beside(covariate)
            };
            match (treatment, reference) {
                (lone, other) if other == twice.0 && lone != twice.1 => against(lone, 1.0),
                (other, lone) if other == twice.0 && lone != twice.1 => against(lone, -1.0),
                _ => {
                    let (differences, covariate) = from(treatment, [reference; 2]);
                    Lottery::pair(differences[0]).beside([covariate[0], 0.0])
                }
            }
        };
        let blocks = 0..seen.blocks();
        let blocks = blocks.map(|block| pairs.iter().map(|pair| lottery(block, *pair)).collect());
        Ok(Self { unit: seen.unit(twice), ..Self::new(blocks.collect()) })
    }

    /// Returns the error, on the logarithm, that rounded figures may cause: one unit of
    /// theirs if their noise does not smooth the rounding, otherwise 0. A test uses it
    /// against whatever it would prove.
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// True if no run differs from another of its block.
    pub fn is_alike(&self) -> bool {
        let differences = self.blocks.iter().flatten().flat_map(Lottery::ratios);
        differences.into_iter().all(|ratio| ratio.abs() < ALIKE)
    }

    /// Returns the contrast as if its figures had all their digits.
    pub(crate) fn exact(&self) -> Self {
        Self { unit: 0.0, ..self.clone() }
    }

    /// Returns the lotteries without the covariate's part, for the test of an effect.
    pub(crate) fn about(&self, effect: f64) -> Cow<'_, Self> {
        self.without_covariate(effect, 0.0)
    }

    /// Returns the lotteries without the covariate's part within arms: both arms' means are
    /// subtracted before the fit.
    fn within_arms(&self) -> Cow<'_, Self> {
        let lotteries = || self.blocks.iter().flatten();
        let effects: Vec<f64> = lotteries().map(Lottery::effect).collect();
        let of =
            |lottery: &Lottery| lottery.sign * lottery.covariate.iter().sum::<f64>() / lottery.others as f64;
        self.without_covariate(mean(&effects), mean(&lotteries().map(of).collect::<Vec<_>>()))
    }

    fn without_covariate(&self, effect: f64, covariate_effect: f64) -> Cow<'_, Self> {
        let (mut both, mut own) = (0.0, 0.0);
        for lottery in self.blocks.iter().flatten() {
            let (y, c) = (lottery.centred(effect), lottery.about_mean(lottery.covariate, covariate_effect));
            both += y.iter().zip(c).map(|(y, c)| y * c).sum::<f64>();
            own += c.iter().map(|c| c * c).sum::<f64>();
        }
        if self.blocks.iter().flatten().all(|lottery| lottery.covariate == [0.0; 2]) || own <= 0.0 {
            return Cow::Borrowed(self);
        }
        let slope = both / own;
        let adjusted = |lottery: &Lottery| {
            let without = |index: usize| lottery.differences[index] - slope * lottery.covariate[index];
            Lottery { differences: [without(0), without(1)], covariate: [0.0; 2], ..*lottery }
        };
        let blocks = self.blocks.iter().map(|block| block.iter().map(adjusted).collect()).collect();
        Cow::Owned(Self { blocks, ..*self })
    }

    /// Adds blocks that were started and lost to failed runs of these arms.
    pub fn without(self, lost: Lost) -> Self {
        Self { lost, ..self }
    }

    /// Returns the number of lost blocks.
    pub fn lost(&self) -> usize {
        self.lost.blocks
    }

    /// Returns the lost blocks that tests count as the worst possible, because their loss depends
    /// on the treatment; the others are left out.
    pub fn suspect(&self) -> usize {
        if self.lost.depends() { self.lost.blocks } else { 0 }
    }

    /// Returns the contrast with the lost blocks, each further on this side (+1 or
    /// -1) than any observed one.
    pub(crate) fn completed(&self, side: f64) -> Self {
        let each = self.blocks.first().map_or(0, Vec::len);
        let effects = self.blocks.iter().flatten().flat_map(|lottery| lottery.differences);
        let beyond = 4.0 * effects.fold(0.0f64, |most, difference| most.max(difference.abs())) + 1.0;
        let worst = vec![Lottery::pair(side * beyond); each];
        let blocks = self.blocks.iter().cloned().chain(std::iter::repeat_n(worst, self.lost.blocks));
        Self { unit: self.unit, ..Self::new(blocks.collect()) }
    }

    /// Returns the number of blocks, without lost ones.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the lotteries, block by block.
    pub fn lotteries(&self) -> &[Vec<Lottery>] {
        &self.blocks
    }

    /// Returns the effect of every block, a log-ratio: the mean of its lotteries'.
    pub fn effects(&self) -> Vec<f64> {
        let own = self.within_arms();
        let effect =
            |block: &Vec<Lottery>| block.iter().map(Lottery::effect).sum::<f64>() / block.len().max(1) as f64;
        own.blocks.iter().map(effect).collect()
    }

    /// Returns the log-ratios of every block to either run of the reference, each a mean over the
    /// block's lotteries; one if no lottery has a second.
    pub(crate) fn ratios(&self) -> Vec<Vec<f64>> {
        let ratios = |block: &Vec<Lottery>| {
            let most = block.iter().map(|lottery| lottery.others).max().unwrap_or(0);
            let nth = |index: usize| {
                let own = block.iter().map(|lottery| {
                    let mut ratios = lottery.ratios();
                    ratios.nth(index.min(lottery.others - 1)).unwrap_or(0.0)
                });
                own.sum::<f64>() / block.len().max(1) as f64
            };
            (0..most).map(nth).collect()
        };
        self.blocks.iter().map(ratios).collect()
    }

    /// Returns the typical effect: the mean of the pseudo-medians of the blocks' ratios to
    /// either run of the reference.
    pub fn estimate(&self) -> f64 {
        let ratios = self.within_arms().ratios();
        let runs = ratios.first().map_or(0, Vec::len);
        let nth = |index: usize| {
            // A lost block that counts as the worst has one ratio.
            ratios.iter().filter_map(|block| block.get(index).or(block.last())).copied().collect::<Vec<f64>>()
        };
        let estimates: Vec<f64> = (0..runs).map(|index| signed_rank::estimate(&nth(index))).collect();
        if estimates.is_empty() { signed_rank::estimate(&[]) } else { mean(&estimates) }
    }

    /// Returns the standard deviation of the effect over the blocks; NaN for fewer than two.
    pub fn deviation(&self) -> f64 {
        let effects = self.effects();
        if effects.len() < 2 { f64::NAN } else { variance(&effects).sqrt() }
    }

    /// Returns the first blocks only.
    pub fn first(&self, blocks: usize) -> Self {
        Self { blocks: self.blocks[..blocks.min(self.blocks.len())].to_vec(), ..*self }
    }

    /// Returns the smallest one-sided p: the chance that the labels of all blocks
    /// fall the most extreme way.
    pub fn smallest_tail(&self) -> f64 {
        self.blocks.iter().flatten().map(|lottery| 1.0 / lottery.runs() as f64).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_with_the_reference_arm_has_both_its_runs() {
        let e = |log: f64| log.exp();
        let seen = Observations::new(4, &[vec![e(1.0), e(3.0), e(5.0), e(2.0)]]).unwrap();
        let one = |pair| Contrast::of_pairs(&seen, &[pair], (0, 3)).unwrap();
        // Treatment 3 against 1 and 2; two arms that are not the reference;
        // the reference as a treatment.
        for (pair, effect, runs) in [((1, 0), 1.5, 3), ((2, 1), 2.0, 2), ((0, 2), -3.5, 3), ((3, 0), 1.0, 2)]
        {
            let found = one(pair);
            assert!((found.effects()[0] - effect).abs() < 1e-12, "{pair:?}: {:?}", found.effects());
            assert_eq!(found.lotteries()[0][0].runs(), runs, "{pair:?}");
        }
        let both = Contrast::of_pairs(&seen, &[(1, 0), (2, 1)], (0, 3)).unwrap();
        assert!((both.effects()[0] - 1.75).abs() < 1e-12);
        assert!((both.smallest_tail() - 1.0 / 6.0).abs() < 1e-12);
        assert!(Contrast::of_pairs(&seen, &[(9, 0)], (0, 3)).is_err());
        assert!(Contrast::of_pairs(&seen, &[], (0, 3)).is_err());
    }

    #[test]
    fn failing_depends_on_the_treatment_where_one_side_fails_more_than_by_chance() {
        let depends = |treatment: usize, reference: usize| {
            let (treatment_runs, reference_runs) = (1, 2);
            Lost { blocks: 1, treatment, reference, treatment_runs, reference_runs }.depends()
        };
        for (treatment, reference) in [(0, 0), (1, 0), (0, 3), (1, 1), (2, 1), (1, 4), (4, 8)] {
            assert!(!depends(treatment, reference), "{treatment} {reference}");
        }
        for (treatment, reference) in [(2, 0), (3, 0), (3, 1), (0, 4), (4, 2), (1, 8)] {
            assert!(depends(treatment, reference), "{treatment} {reference}");
        }
    }

    #[test]
    fn runs_are_put_about_the_two_that_are_closest() {
        let anchored = |differences: [f64; 2], sign: f64| Lottery::trio(differences, sign).anchored(0.0);
        let close = |found: [f64; 3], expected: [f64; 3]| {
            assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12), "{found:?}");
        };
        // The lone run is 0.1 above one reference, the other one stalled.
        close(anchored([0.1, -1.0], 1.0), [0.05, -0.05, 1.05]);
        close(anchored([0.1, -1.0], -1.0), [-0.05, 0.05, -1.05]);
        close(anchored([1.0, 0.9], 1.0), [0.95, -0.05, 0.05]);
        close(anchored([0.1, -0.1], 1.0), [0.0, -0.1, 0.1]);
        assert_eq!(Lottery::pair(0.2).anchored(0.0), [0.1, -0.1, 0.0]);
    }

    #[test]
    fn stalls_in_both_arms_do_not_lean_the_estimate() {
        let mut generator = crate::random::Generator::new(9);
        let mut estimates = |blocks: usize, studies: usize| -> Vec<f64> {
            let mut run = || 0.02 * generator.normal() + if generator.unit() < 0.1 { 3f64.ln() } else { 0.0 };
            let mut lottery = || {
                let [t, a, b] = [run(), run(), run()];
                vec![Lottery::trio([t - a, t - b], 1.0)]
            };
            (0..studies).map(|_| Contrast::new((0..blocks).map(|_| lottery()).collect()).estimate()).collect()
        };
        // By the means of two runs the bias of 24 blocks was 0.014, and by both runs together that
        // of 10 blocks 0.0053. Four standard errors of 10 blocks are 0.0018, of 24 blocks 0.001.
        let (few, many) = (estimates(10, 16_000), estimates(24, 4_000));
        assert!(mean(&few).abs() < 0.002 && median(&few).abs() < 0.001, "{}", mean(&few));
        assert!(mean(&many).abs() < 0.002 && median(&many).abs() < 0.001, "{}", mean(&many));
    }

    #[test]
    fn a_covariate_is_fitted_without_the_effect_that_is_tested() {
        // A true effect of ln 0.5, no noise of its own, and a covariate that is high by
        // chance where the treatment ran.
        let rows: Vec<Vec<f64>> = (0..12).map(|_| vec![1.0, 0.5, 1.0]).collect();
        let mut generator = crate::random::Generator::new(4);
        let canary: Vec<Vec<f64>> = (0..12)
            .map(|_| {
                (0..3).map(|slot| (0.1 * generator.normal() + f64::from(slot == 1) * 0.2).exp()).collect()
            })
            .collect();
        let canary = Observations::new(3, &canary).unwrap();
        let seen = Observations::new(3, &rows).unwrap().beside(&canary);
        let contrast = Contrast::of_pairs(&seen, &[(1, 0)], (0, 2)).unwrap();
        assert!((contrast.estimate() - 0.5f64.ln()).abs() < 1e-9, "{}", contrast.estimate());
        let about = contrast.about(0.5f64.ln());
        assert!(about.effects().iter().all(|effect| (effect - 0.5f64.ln()).abs() < 1e-9));
    }

    #[test]
    fn runs_lie_about_their_mean_once_the_effect_is_out() {
        for (lottery, effect) in [
            (Lottery::pair(0.4), 0.4),
            (Lottery::trio([0.3, 0.5], 1.0), 0.4),
            (Lottery::trio([0.3, 0.5], -1.0), -0.4),
        ] {
            assert!((lottery.effect() - effect).abs() < 1e-12);
            let before = lottery.centred(0.0);
            assert!(before.iter().sum::<f64>().abs() < 1e-12, "{before:?}");
            assert!(before[0] * effect > 0.0, "a larger first value is a larger effect");
            assert!(lottery.centred(effect)[0].abs() < 1e-12);
        }
    }
}
