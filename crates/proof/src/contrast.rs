//! A claim's comparison as the design drew it: in every block, one or several small lotteries.
//!
//! ```text
//! two runs      treatment, reference                     which of them is the treatment was a coin's toss
//! three runs    treatment, reference, reference again    ... and here a draw from three
//! a sum         (both - second) - (first - neither)      an interaction: its sign was a coin's toss
//! ```
//!
//! A claim over all levels of another factor has several such lotteries in a block, drawn one by one, since every run
//! of a block had its place by itself. Each is kept as the differences of its *lone* run to the others, logarithms of
//! ratios, with a sign: a lone run is the treatment (+1) or, where the reference arm is the treatment of a claim, that
//! which it is compared with (-1).
//!
//! Why three runs and not an averaged reference: the sign of `t - (r + r')/2` is no fair coin, since a stall weighs 1 on
//! the treatment and 1/2 on the reference. Which of three runs the treatment is, however, was drawn from three, whatever the
//! noise; and the third run takes a quarter off the variance.

use crate::ProofError;
use crate::effect::Observations;
use crate::signed_rank;
use crate::summary::variance;

/// One lottery of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lottery {
    /// The lone run's logarithm less that of each other run; the second counts only with two others.
    differences: [f64; 2],
    others: usize,
    /// +1 when a larger lone run is a larger effect.
    sign: f64,
}

impl Lottery {
    /// A treatment and a reference, or any difference whose sign was drawn.
    pub fn pair(difference: f64) -> Self {
        Self { differences: [difference, 0.0], others: 1, sign: 1.0 }
    }

    /// One run and two of another arm: its differences to both. `sign` is +1 for a treatment, -1 for a run that the two are
    /// compared with.
    pub fn trio(differences: [f64; 2], sign: f64) -> Self {
        Self { differences, others: 2, sign }
    }

    /// Runs that took part.
    pub fn runs(&self) -> usize {
        self.others + 1
    }

    /// The effect seen.
    pub fn effect(&self) -> f64 {
        self.sign * self.differences[..self.others].iter().sum::<f64>() / self.others as f64
    }

    /// The runs about their mean when the effect is taken out, the lone one first; mirrored so that a larger first value is a
    /// larger effect. What is behind the last run is 0.
    pub(crate) fn aligned(&self, effect: f64) -> [f64; 3] {
        let out = |index: usize| {
            if index < self.others { self.differences[index] - self.sign * effect } else { 0.0 }
        };
        let differences = [out(0), out(1)];
        let lone = (differences[0] + differences[1]) / self.runs() as f64;
        let other = |index: usize| {
            if index < self.others { self.sign * (lone - differences[index]) } else { 0.0 }
        };
        [self.sign * lone, other(0), other(1)]
    }
}

/// The lotteries of a claim, block by block: as many in every block, of the same kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Contrast {
    blocks: Vec<Vec<Lottery>>,
    lost: usize,
}

impl Contrast {
    /// The lotteries of each block.
    ///
    /// # Panics
    /// When blocks hold different numbers of them.
    pub fn new(blocks: Vec<Vec<Lottery>>) -> Self {
        assert!(blocks.windows(2).all(|two| two[0].len() == two[1].len()), "blocks of different size");
        Self { blocks, lost: 0 }
    }

    /// One lottery a block between a treatment and a reference, or for any difference whose sign was drawn.
    pub fn of_differences(differences: &[f64]) -> Self {
        Self::new(differences.iter().map(|difference| vec![Lottery::pair(*difference)]).collect())
    }

    /// Pairs of slots, each the treatment's and the reference's. A pair with `twice.0`, the reference arm's slot, is compared
    /// with its second run `twice.1` as well, unless that one is in the pair.
    ///
    /// # Errors
    /// When there is no such slot, or no pair.
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
        let lottery = |block: &[f64], (treatment, reference): (usize, usize)| {
            let against = |lone: usize, sign| {
                Lottery::trio([block[lone] - block[twice.0], block[lone] - block[twice.1]], sign)
            };
            match (treatment, reference) {
                (lone, other) if other == twice.0 && lone != twice.1 => against(lone, 1.0),
                (other, lone) if other == twice.0 && lone != twice.1 => against(lone, -1.0),
                _ => Lottery::pair(block[treatment] - block[reference]),
            }
        };
        let blocks = seen.logs().iter().map(|block| pairs.iter().map(|pair| lottery(block, *pair)).collect());
        Ok(Self::new(blocks.collect()))
    }

    /// The same when so many more blocks were begun and lost to a run of these arms that failed. Which blocks are lost may
    /// depend on the treatment: tests count each as the worst that could have been seen.
    pub fn without(self, lost: usize) -> Self {
        Self { lost, ..self }
    }

    /// Blocks that were lost.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// With the lost blocks in their place, each further on this side (+1 or -1) than any that was seen.
    pub(crate) fn completed(&self, side: f64) -> Self {
        let each = self.blocks.first().map_or(0, Vec::len);
        let effects = self.blocks.iter().flatten().flat_map(|lottery| lottery.differences);
        let beyond = 4.0 * effects.fold(0.0f64, |most, difference| most.max(difference.abs())) + 1.0;
        let worst = vec![Lottery::pair(side * beyond); each];
        Self::new(self.blocks.iter().cloned().chain(std::iter::repeat_n(worst, self.lost)).collect())
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The lotteries, block by block.
    pub fn lotteries(&self) -> &[Vec<Lottery>] {
        &self.blocks
    }

    /// The effect of every block, a log-ratio: the mean of its lotteries'.
    pub fn effects(&self) -> Vec<f64> {
        let mean =
            |block: &Vec<Lottery>| block.iter().map(Lottery::effect).sum::<f64>() / block.len().max(1) as f64;
        self.blocks.iter().map(mean).collect()
    }

    /// The typical effect: the median of the means of all pairs of blocks (Hodges, Lehmann 1963).
    pub fn estimate(&self) -> f64 {
        signed_rank::estimate(&self.effects())
    }

    /// Standard deviation of the effect over the blocks; NaN of fewer than two.
    pub fn deviation(&self) -> f64 {
        let effects = self.effects();
        if effects.len() < 2 { f64::NAN } else { variance(&effects).sqrt() }
    }

    /// The first blocks alone.
    pub fn first(&self, blocks: usize) -> Self {
        Self { blocks: self.blocks[..blocks.min(self.blocks.len())].to_vec(), lost: self.lost }
    }

    /// One-sided chance that the labels of so many blocks as these all fall the most extreme way: the smallest p there is.
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
        // Treatment 3 against 1 and 2; two arms that are not the reference; the reference as a treatment.
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
    fn runs_lie_about_their_mean_once_the_effect_is_out() {
        for (lottery, effect) in [
            (Lottery::pair(0.4), 0.4),
            (Lottery::trio([0.3, 0.5], 1.0), 0.4),
            (Lottery::trio([0.3, 0.5], -1.0), -0.4),
        ] {
            assert!((lottery.effect() - effect).abs() < 1e-12);
            let before = lottery.aligned(0.0);
            assert!(before.iter().sum::<f64>().abs() < 1e-12, "{before:?}");
            assert!(before[0] * effect > 0.0, "a larger first value is a larger effect");
            assert!(lottery.aligned(effect)[0].abs() < 1e-12);
        }
    }
}
