//! Stopping as soon as the evidence allows, with the error of a single test.
//!
//! Testing after every block and stopping at the first p below 5% is wrong in more than a fifth of
//! all studies of 40 blocks. Here the error is a budget: after k blocks at most alpha g(k) of it
//! may be spent (Lan, DeMets 1983), with g rising to 1.
//!
//! ```text
//! S_k = sum of the scores that the lone runs of k blocks drew
//!
//!   +c |        ####      rejected: "above"
//!      |     ##'
//!    0 |--*--*--*--*--    the walk of the sum; where it may be after k lotteries,
//!      |     ##.          without having crossed before, is known exactly
//!   -c |        ####      rejected: "below"
//! ```
//!
//! The runs of a lottery are centred on their median, as in `randomisation`, and scored by their
//! size among all runs so far (sequential ranks: Parent 1965; Reynolds 1975). A score is a
//! normal score with the run's sign, a whole number. Only the choice of the lone run in a
//! lottery is random, so the walk is a sum of known lotteries. The chance of every position,
//! among the walks not stopped so far, follows by one addition for each position and score. The
//! ends of that distribution are cut off as far as the budget allows, half of it on either side;
//! the cut chance is the spent error. So the chance that a treatment without effect is ever
//! rejected is at most alpha for these very scores. That holds at every stopping time, for
//! whatever reason the study stops. It needs no simulation, no large-sample argument, and no
//! assumption that blocks are alike.
//!
//! As there, Student's t over the blocks so far must agree, for effects that vary. Its p must not
//! exceed the chance that the walk's cut has in a normal distribution of the walk's variance. It
//! uses the effects themselves, or the scores if some run lies far out.
//!
//! Why not an e-process or a betting martingale, which is always valid: it pays for the freedom
//! never to plan. The normal mixture over sign-symmetric differences (de la Pena 1999; Howard et
//! al. 2021) takes half as many blocks again (a test repeats it). `Spending::Open` keeps the
//! freedom, at a price. Why not re-rank all blocks at each look: earlier looks would have had other
//! scores, and the walk of survivors would need every path instead of a row of sums.
//!
//! Several levels run at once, so that a family can be tested whenever the study stops: the p of a
//! walk is the smallest level crossed. Cuts are forced to be nested (a smaller level's cut is never
//! nearer to 0), so that p is valid at any time.
//!
//! The interval. Every shift has a walk of its own. Those that never crossed form an interval that
//! holds at all times together (Jennison, Turnbull 1984), a third wider than that of a fixed study.
//! But it is read once. A claim is settled once the walks of all tested points have crossed. Its
//! interval then is that of `randomisation` at 0.6 of the level, from the blocks so far, and those
//! points stay outside. It is read when the estimate happens to be extreme, so at the level itself
//! it would miss up to 8% of effects that are small for the study. With 0.6 `bench proof` finds no
//! more than the level. It is an eighth wider than that of a fixed study of as many blocks. While a
//! claim is not settled, a shift is outside only if both that interval and the shift's own walk
//! exclude it. If no walk has crossed, nothing is excluded.
//!
//! Limits: no bounded interval and no proof before `BLOCKS_MIN` blocks, which is most of a small
//! study; the saving is a third. The 0.6 is found by simulation, not derived. An ordering
//! of outcomes by the block of the stop (Tsiatis, Rosner, Mehta 1984) would need the chance of
//! every earlier stop under each shift.

use crate::contrast::{Contrast, Lottery};
use crate::interval::Interval;
use crate::randomisation::{self, BLOCKS_MIN, Scores, Shape, Side, Tails};
use crate::summary::{normal_probability, normal_score};

/// Factor of a normal score before rounding: scores up to about 30.
const SCALE: f64 = 12.0;
/// Share of a settled claim's level at which its interval is made.
pub(crate) const LEVEL_SHARE: f64 = 0.6;

/// Distribution of the error over the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spending {
    /// The whole error by a planned last block: g(k) = ln(1 + (e - 1) k/n), the spending function
    /// that imitates equal cuts at all looks (Lan, DeMets 1983; Pocock 1977).
    Planned {
        /// Most blocks that the study will run. Later ones are ignored.
        blocks: usize,
    },
    /// Never the whole error: g(k) = k / (k + scale), for studies that run until decided.
    Open {
        /// Blocks after which half of the error is spent.
        scale: usize,
    },
}

impl Spending {
    /// Returns the share of the error that may be spent after `blocks` blocks.
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

/// The crossing of a level by a walk, which rejects the walk's shift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// Number of blocks at the crossing, from 1.
    pub block: usize,
    /// Side on which the walk crossed.
    pub side: Side,
    /// The smallest level crossed then.
    pub level: f64,
}

/// The positions of all walks not stopped so far, at one level.
#[derive(Debug, Clone)]
struct Walk {
    level: f64,
    /// Chance of each sum from `lowest` on.
    chances: Vec<f64>,
    lowest: i64,
    /// Error spent on walks that left below, and above.
    spent: [f64; 2],
    crossed: Option<(usize, Side)>,
}

impl Walk {
    fn new(level: f64) -> Self {
        Self { level, chances: vec![1.0], lowest: 0, spent: [0.0; 2], crossed: None }
    }

    /// Adds one lottery: each of these steps is equally likely.
    fn toss(&mut self, steps: &[i64]) {
        let least = steps.iter().copied().min().unwrap_or(0);
        let most = steps.iter().copied().max().unwrap_or(0);
        let mut next = vec![0.0; self.chances.len() + (most - least) as usize];
        let share = 1.0 / steps.len() as f64;
        for step in steps {
            let from = (step - least) as usize;
            let moved = next[from..].iter_mut().zip(&self.chances);
            moved.for_each(|(next, chance)| *next += share * chance);
        }
        self.chances = next;
        self.lowest += least;
    }

    fn highest(&self) -> i64 {
        self.lowest + self.chances.len() as i64 - 1
    }

    /// Returns the first sum on either side beyond which the chance is within the budget, for the
    /// lower and the upper end. One beyond every sum if nothing is.
    fn affordable(&self, budget: [f64; 2]) -> [i64; 2] {
        // Rounding of a few hundred additions is far below this allowance.
        let fits = |budget: f64, chances: &mut dyn Iterator<Item = &f64>| {
            let mut sum = 0.0;
            chances
                .take_while(|chance| {
                    sum += **chance;
                    sum <= budget + 1e-13
                })
                .count() as i64
        };
        let below = fits(budget[0], &mut self.chances.iter());
        let above = fits(budget[1], &mut self.chances.iter().rev());
        [self.lowest + below - 1, self.highest() - above + 1]
    }

    /// Stops all walks at or beyond the cuts.
    fn stop(&mut self, cuts: [i64; 2]) {
        let below = (cuts[0] - self.lowest + 1).clamp(0, self.chances.len() as i64) as usize;
        let above =
            (self.highest() - cuts[1] + 1).clamp(0, self.chances.len() as i64 - below as i64) as usize;
        let kept = self.chances.len() - above;
        self.spent[0] += self.chances[..below].iter().sum::<f64>();
        self.spent[1] += self.chances[kept..].iter().sum::<f64>();
        self.chances.truncate(kept);
        self.chances.drain(..below);
        self.lowest += below as i64;
        if self.chances.is_empty() {
            self.chances.push(0.0);
        }
    }
}

/// A test that may be read after every block.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// Walks in ascending order of levels.
    walks: Vec<Walk>,
    spending: Spending,
    /// Sizes of the centred runs so far, ascending.
    sizes: Vec<f64>,
    /// Distances of the outlying runs of all lotteries so far.
    outliers: Vec<f64>,
    /// Score of each block's lone runs above the mean of their lotteries.
    blocks: Vec<f64>,
    /// The effects of the blocks about the tested one.
    effects: Vec<f64>,
    sum: i64,
    /// Mean and variance of the sum if every draw is equally likely.
    mean: f64,
    variance: f64,
}

impl Monitor {
    /// Creates a test at several two-sided levels, such as those of a family.
    pub fn new(levels: &[f64], spending: Spending) -> Self {
        let mut levels = levels.to_vec();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        let walks = levels.into_iter().map(Walk::new).collect();
        Self {
            walks,
            spending,
            sizes: Vec::new(),
            outliers: Vec::new(),
            blocks: Vec::new(),
            effects: Vec::new(),
            sum: 0,
            mean: 0.0,
            variance: 0.0,
        }
    }

    /// Takes the lotteries of the next block, about an effect.
    pub fn push(&mut self, lotteries: &[Lottery], against: f64) {
        if matches!(self.spending, Spending::Planned { blocks } if self.blocks.len() >= blocks) {
            return;
        }
        let mut above = 0.0;
        for lottery in lotteries {
            let steps = self.steps(lottery, against);
            self.outliers.push(lottery.outlier(against));
            let mean = steps.iter().sum::<i64>() as f64 / steps.len() as f64;
            self.sum += steps[0];
            self.mean += mean;
            self.variance +=
                steps.iter().map(|step| (*step as f64 - mean).powi(2)).sum::<f64>() / steps.len() as f64;
            above += (steps[0] as f64 - mean) / lotteries.len() as f64;
            self.walks.iter_mut().for_each(|walk| walk.toss(&steps));
        }
        self.blocks.push(above);
        let effect = lotteries.iter().map(Lottery::effect).sum::<f64>() / lotteries.len() as f64;
        self.effects.push(effect - against);
        self.look();
    }

    /// Returns the steps of a lottery, the real one first: signed normal scores of their
    /// sizes among those so far.
    fn steps(&mut self, lottery: &Lottery, against: f64) -> Vec<i64> {
        let aligned = &lottery.aligned(against)[..lottery.runs()];
        for value in aligned {
            let place = self.sizes.partition_point(|other| *other < value.abs());
            self.sizes.insert(place, value.abs());
        }
        let step = |value: &f64| {
            let size = value.abs();
            if size == 0.0 {
                return 0;
            }
            let below = self.sizes.partition_point(|other| *other < size);
            let upto = self.sizes.partition_point(|other| *other <= size);
            let share = (below + upto) as f64 / (2 * self.sizes.len()) as f64;
            let score = (SCALE * normal_score(0.5 + share / 2.0)).round().max(1.0);
            if *value > 0.0 { score as i64 } else { -(score as i64) }
        };
        aligned.iter().map(step).collect()
    }

    fn look(&mut self) {
        let blocks = self.blocks.len();
        let share = self.spending.share(blocks);
        let (sum, mean, deviation) = (self.sum, self.mean, self.variance.sqrt());
        let scores = Scores::suiting(&self.sizes, &self.outliers);
        let values = if scores == Scores::Ranks { &self.blocks } else { &self.effects };
        // The chance of so large a t if the effect varies, against that of such a
        // sum if it does not.
        let spread_agrees = |side: Side, cut: i64| {
            let z = side.sign() * (cut as f64 - mean) / deviation;
            blocks >= BLOCKS_MIN && scores.by_blocks(values, side) <= normal_probability(-z)
        };
        let mut nearest = [i64::MAX, i64::MIN];
        for walk in self.walks.iter_mut().rev() {
            let budget = walk.spent.map(|spent| walk.level * share / 2.0 - spent);
            let [low, high] = walk.affordable(budget);
            nearest = [low.min(nearest[0]), high.max(nearest[1])];
            walk.stop(nearest);
            if walk.crossed.is_some() {
                continue;
            }
            if sum >= nearest[1] && spread_agrees(Side::Above, nearest[1]) {
                walk.crossed = Some((blocks, Side::Above));
            } else if sum <= nearest[0] && spread_agrees(Side::Below, nearest[0]) {
                walk.crossed = Some((blocks, Side::Below));
            }
        }
    }

    /// Returns the levels crossed so far, ascending: the first is a p-value valid at any time.
    fn crossings(&self) -> impl Iterator<Item = Crossing> {
        self.walks.iter().filter_map(|walk| {
            let (block, side) = walk.crossed?;
            Some(Crossing { block, side, level: walk.level })
        })
    }
}

/// Walks through all blocks about a shift; returns the levels ever crossed, ascending. Between arms
/// of different shape the test of a fixed study must agree, which asks for the parameter itself: by
/// scores alone, a skewed treatment was proved to differ in 6.6% of studies.
pub fn crossings(contrast: &Contrast, shift: f64, levels: &[f64], spending: Spending) -> Vec<Crossing> {
    let mut monitor = Monitor::new(levels, spending);
    contrast.lotteries().iter().for_each(|block| monitor.push(block, shift));
    let mut found: Vec<Crossing> = monitor.crossings().collect();
    if !found.is_empty() && randomisation::shape_differs(contrast) == Shape::Differs {
        let Tails { less, greater } = randomisation::tails(contrast, shift);
        let own = |side| if side == Side::Above { greater } else { less };
        found.retain(|crossing| 2.0 * own(crossing.side) <= crossing.level);
    }
    found
}

/// Walks at one level; returns its crossing.
pub fn crossing(contrast: &Contrast, shift: f64, level: f64, spending: Spending) -> Option<Crossing> {
    crossings(contrast, shift, &[level], spending).into_iter().next()
}

/// Returns the interval after any block of a study that tested the walks of `points`.
pub fn interval(contrast: &Contrast, level: f64, spending: Spending, points: &[f64]) -> Interval {
    if contrast.blocks() < BLOCKS_MIN {
        return Interval::UNBOUNDED;
    }
    let left = |shift: f64| crossing(contrast, shift, level, spending).map(|crossing| crossing.side);
    let sides: Vec<Option<Side>> = points.iter().map(|point| left(*point)).collect();
    let settled = sides.iter().all(Option::is_some);
    let shape = randomisation::shape_differs(contrast);
    let found = randomisation::inverted(contrast, |shift, side| {
        randomisation::rejects(contrast, shape, shift, side, LEVEL_SHARE * level)
            && (settled || left(shift) == Some(side))
    });
    let outside = |found: Interval, (point, side): (&f64, &Option<Side>)| match side {
        Some(Side::Above) => Interval { low: found.low.max(point.next_up()), ..found },
        Some(Side::Below) => Interval { high: found.high.min(point.next_down()), ..found },
        None => found,
    };
    let Interval { low, high } = points.iter().zip(&sides).fold(found, outside);
    // Blocks after the crossing may favour the other side.
    Interval { low, high: high.max(low) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use proptest::prelude::*;

    fn normal(seed: u64, blocks: usize, shift: f64) -> Contrast {
        let mut generator = Generator::new(seed);
        let differences: Vec<f64> = (0..blocks).map(|_| shift + generator.normal()).collect();
        Contrast::of_differences(&differences)
    }

    /// Returns the share of walks whose sum ever crosses, over all draws of these lotteries: an
    /// exact count of the walk alone, without t.
    fn crossed_share(lotteries: &[Vec<i64>], level: f64, spending: Spending) -> f64 {
        let all: usize = lotteries.iter().map(Vec::len).product();
        let crosses = |mut draw: usize| {
            let (mut walk, mut sum) = (Walk::new(level), 0);
            lotteries.iter().enumerate().any(|(index, steps)| {
                sum += steps[draw % steps.len()];
                draw /= steps.len();
                walk.toss(steps);
                let share = spending.share(index + 1);
                let cuts = walk.affordable(walk.spent.map(|spent| level * share / 2.0 - spent));
                walk.stop(cuts);
                sum <= cuts[0] || sum >= cuts[1]
            })
        };
        (0..all).filter(|draw| crosses(*draw)).count() as f64 / all as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn over_all_draws_the_error_is_never_above_the_level(
            steps in prop::collection::vec((1i64..9, -9i64..9), 8),
        ) {
            let pairs: Vec<Vec<i64>> = steps.iter().map(|(a, _)| vec![*a, -a]).collect();
            let trios: Vec<Vec<i64>> = steps.iter().map(|(a, b)| vec![*a, *b, -a - b]).collect();
            for lotteries in [pairs, trios] {
                for spending in [Spending::Planned { blocks: 8 }, Spending::Open { scale: 3 }] {
                    for level in [0.05, 0.2] {
                        let share = crossed_share(&lotteries, level, spending);
                        prop_assert!(share <= level, "{share} at {level}");
                    }
                }
            }
        }

        #[test]
        fn crossing_a_smaller_level_crosses_the_larger(seed in 0u64..3_000) {
            let levels: Vec<f64> = (1..=6).map(|left| 0.05 / f64::from(left)).collect();
            let mut together = Monitor::new(&levels, Spending::Planned { blocks: 24 });
            for block in normal(seed, 24, 0.5).lotteries() {
                together.push(block, 0.0);
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
            let interval = interval(&seen, 0.05, spending, &[0.0]);
            assert_eq!(crossed, !interval.contains(0.0), "seed {seed}: {interval:?}");
        }
    }

    #[test]
    fn a_settled_claim_has_an_interval_hardly_wider_than_a_fixed_one() {
        let spending = Spending::Planned { blocks: 30 };
        let wide = |found: Interval| found.high - found.low;
        let (mut held, mut widths) = (0, Vec::new());
        for seed in 0..200 {
            let whole = normal(seed, 30, 0.7);
            let Some(Crossing { block, .. }) = crossing(&whole, 0.0, 0.05, spending) else { continue };
            let seen = whole.first(block);
            let (own, fixed) =
                (interval(&seen, 0.05, spending, &[0.0]), randomisation::interval(&seen, 0.05));
            held += usize::from(own.contains(0.7));
            widths.push(wide(own) / wide(fixed));
            // A point without a crossing is not excluded.
            let open = interval(&seen, 0.05, spending, &[0.0, 0.7]);
            assert!(open.contains(0.7) || crossing(&seen, 0.7, 0.05, spending).is_some(), "seed {seed}");
        }
        let median = plumb_units::median(&widths);
        assert!(widths.len() > 150 && held * 100 >= widths.len() * 94, "{held} of {}", widths.len());
        assert!((1.05..1.2).contains(&median), "{median}");
    }

    #[test]
    fn what_was_proved_stays_outside_whatever_came_after() {
        let mut effects = vec![1.0; 10];
        effects.extend((0..10).map(|block| -1.0 - f64::from(block % 3) / 10.0));
        let seen = Contrast::of_differences(&effects);
        let spending = Spending::Planned { blocks: 20 };
        assert_eq!(crossing(&seen, 0.0, 0.05, spending).map(|crossing| crossing.side), Some(Side::Above));
        let found = interval(&seen, 0.05, spending, &[0.0]);
        assert!(found.low > 0.0 && found.low <= found.high, "{found:?}");
    }

    #[test]
    fn nothing_is_proved_below_the_fewest_blocks() {
        let spending = Spending::Open { scale: 1 };
        let equal = |blocks: usize, effect: f64| Contrast::of_differences(&vec![effect; blocks]);
        assert_eq!(crossing(&equal(5, 1.0), 0.0, 0.05, spending), None);
        assert_eq!(interval(&equal(3, 1.0), 0.05, spending, &[0.0]), Interval::UNBOUNDED);
        let late = crossing(&equal(30, 1.0), 0.0, 0.05, Spending::Planned { blocks: 30 }).unwrap();
        // 2/2^7 = 0.0156 is the first within 0.05 g(7/30) = 0.0168.
        assert_eq!((late.side, late.block), (Side::Above, 7));
        assert_eq!(crossing(&equal(30, 0.0), 0.0, 0.05, spending), None);
    }

    /// Returns the blocks until the normal-mixture e-process of sign-symmetric differences reaches
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
            walk += crossing(&seen.first(45), 0.0, 0.05, spending).map_or(45, |crossing| crossing.block);
            mixture += mixture_blocks(&seen.effects()).map_or(300, |index| index + 1);
        }
        assert!(walk * 4 < mixture * 3, "walk {walk}, mixture {mixture}, in all of 300 studies");
    }
}
