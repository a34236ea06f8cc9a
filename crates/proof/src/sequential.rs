//! Stopping as soon as the evidence allows, with the error of one look.
//!
//! Looking at a p-value after every block and stopping at the first below 5% is wrong in more
//! than a fifth of all studies of 40 blocks (`calibration` shows it). Here the error is a
//! budget: after k blocks at most alpha g(k) of it may be spent (Lan, DeMets 1983), g rising to
//! 1.
//!
//! ```text
//! S_k = s_1 a_1 + ... + s_k a_k      s_i the sign of d_i, a_i its score
//!
//!   +c |        ####      rejected: "above"
//!      |     ##'
//!    0 |--*--*--*--*--    the walk of the sum; where it may be after k coins,
//!      |     ##.          without having crossed before, is known exactly
//!   -c |        ####      rejected: "below"
//! ```
//!
//! A score depends on no sign: a_i is the rank of |d_i| among the blocks so far
//! (Parent 1965; Reynolds 1975), scaled to 1..=`SCORE_MAX`. Under sign symmetry the
//! walk is therefore a sum of fair coins on known integers, and the chance of every position, among
//! the walks not stopped so far, follows by one addition a position and block. The ends of that
//! distribution are cut off as far as the budget allows; what is cut is what is spent. So the
//! chance that a true null is ever rejected is at most alpha for these very scores, at every
//! stopping time, for whatever reason one stops; no simulation, no large-sample argument,
//! no assumption that blocks are alike.
//!
//! Why not an e-process or a betting martingale, which is valid for ever: it pays for the
//! freedom never to plan. The normal mixture over sign-symmetric differences (de la Pena 1999;
//! Howard et al. 2021) takes some 31 and 15 blocks on average where this walk, planned for 45,
//! takes 22 and 10 (effects of 2/3 and 4/3 of s_d; a test repeats the first).
//! `Spending::Open` keeps the freedom, at a price. Why not re-rank all blocks at each look:
//! past looks would have been made with other scores, and the walk of survivors would need 2^n
//! paths instead of a row of sums.
//!
//! Several levels run at once so that Holm can be applied whenever the study stops: the
//! p of a walk is the smallest level crossed. Cuts are forced to be nested (a smaller
//! level's cut is never nearer to 0), so that p is valid at any time.
//!
//! The interval holds every shift whose own walk has not crossed (Jennison, Turnbull 1984): it
//! covers the truth at all times together, hence at the time one stopped at, and is wider than
//! that of a fixed study: at an early stop a 95% interval covers in 97% to 99.7% of studies.
//! Limits: no bounded interval and no proof before `blocks_needed` blocks, which with small
//! studies is most of them; how much is saved is in `calibration`.

use crate::interval::Interval;
use crate::permutation::boundary;
use crate::signed_rank;

/// The largest score of a block: finer than the ranks of most studies.
const SCORE_MAX: f64 = 24.0;

/// How the error is spread over the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spending {
    /// All of it by a planned last block: g(k) = ln(1 + (e - 1) k/n), the spending
    /// function that imitates equal cuts at all looks (Lan, DeMets 1983; Pocock 1977).
    Planned {
        /// The most blocks the study will run. Later ones are ignored.
        blocks: usize,
    },
    /// Never all of it: g(k) = k / (k + scale), for studies that run until decided.
    Open {
        /// Blocks after which half is spent.
        scale: usize,
    },
}

impl Spending {
    /// The share of the error that may be spent after so many blocks.
    pub fn share(&self, blocks: usize) -> f64 {
        match self {
            Self::Planned { blocks: last } => {
                let time = (blocks as f64 / (*last).max(1) as f64).min(1.0);
                (1.0 + (std::f64::consts::E - 1.0) * time).ln().min(1.0)
            }
            Self::Open { scale } => blocks as f64 / (blocks + (*scale).max(1)) as f64,
        }
    }
}

/// To which side a walk left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The differences lie above the shift.
    Above,
    /// They lie below it.
    Below,
}

/// A rejection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// Blocks seen when it happened, from 1.
    pub block: usize,
    /// The direction.
    pub side: Side,
    /// The smallest level crossed then.
    pub level: f64,
}

/// The positions of all walks not stopped so far, at one level.
#[derive(Debug, Clone)]
struct Walk {
    level: f64,
    /// Chance of each sum from -reach to +reach.
    chances: Vec<f64>,
    spent: f64,
    crossed: Option<(usize, Side)>,
}

impl Walk {
    fn new(level: f64) -> Self {
        Self { level, chances: vec![1.0], spent: 0.0, crossed: None }
    }

    /// One more coin worth `score`.
    fn toss(&mut self, score: usize) {
        if score == 0 {
            return;
        }
        let mut next = vec![0.0; self.chances.len() + 2 * score];
        for (position, chance) in self.chances.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            next[position] += chance / 2.0;
            next[position + 2 * score] += chance / 2.0;
        }
        self.chances = next;
    }

    fn reach(&self) -> usize {
        self.chances.len() / 2
    }

    /// The nearest cut whose two ends hold no more than the budget; above every sum if
    /// there is none.
    fn affordable(&self, budget: f64) -> usize {
        let reach = self.reach();
        let (mut cut, mut ends) = (reach + 1, 0.0);
        while cut > 1 {
            ends += 2.0 * self.chances[reach + cut - 1];
            // Rounding of a few hundred additions is far below this allowance.
            if ends > budget + 1e-13 {
                break;
            }
            cut -= 1;
        }
        cut
    }

    /// Stops all walks at or beyond the cut.
    fn stop(&mut self, cut: usize) {
        let reach = self.reach();
        if cut > reach {
            return;
        }
        let last = self.chances.len();
        self.spent += self.chances[..=reach - cut].iter().chain(&self.chances[reach + cut..]).sum::<f64>();
        self.chances.copy_within(reach - cut + 1..last - (reach - cut + 1), 0);
        self.chances.truncate(2 * cut - 1);
    }
}

/// A test that may be looked at after every block.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// Ascending levels.
    walks: Vec<Walk>,
    spending: Spending,
    /// Sizes of the differences so far, ascending.
    sizes: Vec<f64>,
    blocks: usize,
    sum: i64,
}

impl Monitor {
    /// A test of "no effect" at several two-sided levels, such as `multiple::levels`.
    pub fn new(levels: &[f64], spending: Spending) -> Self {
        let mut levels = levels.to_vec();
        levels.sort_unstable_by(f64::total_cmp);
        let walks = levels.into_iter().map(Walk::new).collect();
        Self { walks, spending, sizes: Vec::new(), blocks: 0, sum: 0 }
    }

    /// Takes the difference of the next block; returns the best crossing so far.
    pub fn push(&mut self, difference: f64) -> Option<Crossing> {
        if matches!(self.spending, Spending::Planned { blocks } if self.blocks >= blocks) {
            return self.crossing();
        }
        self.blocks += 1;
        let score = self.score(difference.abs());
        self.sum += if difference > 0.0 { score as i64 } else { -(score as i64) };
        let share = self.spending.share(self.blocks);
        let (block, sum) = (self.blocks, self.sum);
        let mut nearest = 1;
        for walk in self.walks.iter_mut().rev() {
            walk.toss(score);
            let cut = walk.affordable(walk.level * share - walk.spent).max(nearest);
            walk.stop(cut);
            nearest = cut;
            if walk.crossed.is_none() && sum.unsigned_abs() as usize >= cut {
                walk.crossed = Some((block, if sum > 0 { Side::Above } else { Side::Below }));
            }
        }
        self.crossing()
    }

    /// The size's rank among those so far, as 1..=`SCORE_MAX`; 0 has no sign to toss.
    fn score(&mut self, size: f64) -> usize {
        let (below, upto) = (
            self.sizes.partition_point(|other| *other < size),
            self.sizes.partition_point(|other| *other <= size),
        );
        self.sizes.insert(upto, size);
        if size == 0.0 {
            return 0;
        }
        // The mean rank of the ties, this one included, less one half, is (below + upto + 1) / 2.
        let share = (below + upto + 1) as f64 / (2 * self.sizes.len()) as f64;
        (SCORE_MAX * share).round().max(1.0) as usize
    }

    /// The smallest level crossed so far, which is a p-value valid at any time.
    pub fn crossing(&self) -> Option<Crossing> {
        self.walks.iter().find_map(|walk| {
            let (block, side) = walk.crossed?;
            Some(Crossing { block, side, level: walk.level })
        })
    }

    /// The smallest level crossed, or 1.
    pub fn p(&self) -> f64 {
        self.crossing().map_or(1.0, |crossing| crossing.level)
    }

    /// Blocks seen.
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

/// Walks through all differences about a shift and says whether it was ever rejected.
pub fn crossing(differences: &[f64], shift: f64, level: f64, spending: Spending) -> Option<Crossing> {
    let mut monitor = Monitor::new(&[level], spending);
    differences.iter().find_map(|difference| monitor.push(difference - shift))
}

/// Every shift never rejected so far: holds at any stopping time.
pub fn interval(differences: &[f64], level: f64, spending: Spending) -> Interval {
    let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let most = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Where all differences are one the ends lie beside it, far enough to be other numbers.
    let margin = (most - least).max(1e-9 * least.abs().max(most.abs())).max(f64::MIN_POSITIVE);
    let left = |shift: f64| matches!(crossing(differences, shift, level, spending), Some(c) if c.side == Side::Above);
    let right = |shift: f64| matches!(crossing(differences, shift, level, spending), Some(c) if c.side == Side::Below);
    if differences.is_empty() {
        return Interval::UNBOUNDED;
    }
    let centre = signed_rank::estimate(differences);
    // "No effect" is among the shifts tried, so that interval and test agree about it.
    let mut found = Interval::UNBOUNDED;
    let lowest = if centre > 0.0 && left(0.0) { 0.0 } else { least - margin };
    if left(lowest) {
        found.low = boundary(lowest, centre, left);
    }
    let highest = if centre < 0.0 && right(0.0) { 0.0 } else { most + margin };
    if right(highest) {
        found.high = boundary(highest, centre, right);
    }
    found
}

/// Whether the effect was at any time proved to lie within a margin (a share): both
/// margins rejected, each one-sided at `alpha`, that is, two-sided at twice that.
pub fn equivalent_since(differences: &[f64], margin: f64, alpha: f64, spending: Spending) -> Option<usize> {
    let bound = (1.0 + margin).ln();
    let lower = crossing(differences, -bound, 2.0 * alpha, spending).filter(|c| c.side == Side::Above)?;
    let upper = crossing(differences, bound, 2.0 * alpha, spending).filter(|c| c.side == Side::Below)?;
    Some(lower.block.max(upper.block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiple;
    use crate::random::Generator;
    use proptest::prelude::*;

    fn normal(seed: u64, blocks: usize, shift: f64) -> Vec<f64> {
        let mut generator = Generator::new(seed);
        (0..blocks).map(|_| shift + generator.normal()).collect()
    }

    /// Rejections over all 2^n signs of given sizes: an exact count, not a sample.
    fn rejected_share(sizes: &[f64], levels: &[f64], spending: Spending) -> f64 {
        let all = 1u32 << sizes.len();
        let rejected = (0..all).filter(|signs| {
            let mut monitor = Monitor::new(levels, spending);
            for (i, size) in sizes.iter().enumerate() {
                monitor.push(if signs >> i & 1 == 1 { *size } else { -size });
            }
            monitor.p() <= levels[0]
        });
        rejected.count() as f64 / f64::from(all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn over_all_signs_the_error_is_never_above_the_level(steps in prop::collection::vec(1u32..9, 10)) {
            let sizes: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            for spending in [Spending::Planned { blocks: 10 }, Spending::Open { scale: 3 }] {
                prop_assert!(rejected_share(&sizes, &[0.05], spending) <= 0.05);
                prop_assert!(rejected_share(&sizes, &[0.02, 0.05], spending) <= 0.02);
            }
        }

        #[test]
        fn crossing_a_smaller_level_crosses_the_larger(seed in 0u64..3_000) {
            let levels = multiple::levels(0.05, 6);
            let spending = Spending::Planned { blocks: 24 };
            let mut together = Monitor::new(&levels, spending);
            for difference in normal(seed, 24, 0.5) {
                together.push(difference);
                let crossed: Vec<bool> = together.walks.iter().map(|walk| walk.crossed.is_some()).collect();
                prop_assert!(crossed.is_sorted(), "{:?}", crossed);
            }
        }
    }

    #[test]
    fn the_interval_excludes_no_effect_when_the_walk_crossed() {
        let spending = Spending::Planned { blocks: 20 };
        for seed in 0..30 {
            let seen = normal(seed, 20, 0.7);
            let crossed = crossing(&seen, 0.0, 0.05, spending).is_some();
            let interval = interval(&seen, 0.05, spending);
            assert_eq!(crossed, !interval.contains(0.0), "seed {seed}: {interval:?}");
        }
    }

    #[test]
    fn nothing_is_proved_below_the_exact_minimum() {
        let spending = Spending::Open { scale: 1 };
        assert_eq!(crossing(&[1.0; 5], 0.0, 0.05, spending), None);
        assert_eq!(interval(&[1.0, 2.0, 3.0], 0.05, spending), Interval::UNBOUNDED);
        let late = crossing(&[1.0; 30], 0.0, 0.05, Spending::Planned { blocks: 30 }).unwrap();
        // 2/2^7 = 0.0156 is the first within 0.05 g(7/30) = 0.0168.
        assert_eq!((late.side, late.block), (Side::Above, 7));
        assert_eq!(crossing(&[0.0; 30], 0.0, 0.05, spending), None);
    }

    /// Blocks until the normal-mixture e-process of sign-symmetric differences reaches
    /// 1/alpha: sqrt(c / (c + V)) exp(S^2 / (2 (c + V))), S their sum, V their sum of squares.
    fn mixture_blocks(differences: &[f64]) -> Option<usize> {
        let (mut sum, mut squares) = (0.0, 0.0);
        let prior = 5.0;
        differences.iter().position(|difference| {
            sum += difference;
            squares += difference * difference;
            let evidence = 0.5 * f64::ln(prior / (prior + squares)) + sum * sum / (2.0 * (prior + squares));
            evidence >= f64::ln(1.0 / 0.05)
        })
    }

    #[test]
    fn the_walk_decides_before_an_e_process() {
        let spending = Spending::Planned { blocks: 45 };
        let (mut walk, mut mixture) = (0, 0);
        for seed in 0..300 {
            let seen = normal(seed, 300, 2.0 / 3.0);
            walk += crossing(&seen, 0.0, 0.05, spending).map_or(45, |crossing| crossing.block);
            mixture += mixture_blocks(&seen).map_or(300, |index| index + 1);
        }
        assert!(walk * 4 < mixture * 3, "walk {walk}, mixture {mixture}, in all of 300 studies");
    }

    #[test]
    fn equality_is_proved_early_when_the_margin_is_wide() {
        let seen: Vec<f64> = normal(4, 30, 0.0).iter().map(|d| 0.005 * d).collect();
        let spending = Spending::Planned { blocks: 30 };
        assert!(equivalent_since(&seen, 0.02, 0.05, spending).is_some_and(|block| block <= 12));
        assert_eq!(equivalent_since(&seen, 0.0005, 0.05, spending), None);
    }
}
