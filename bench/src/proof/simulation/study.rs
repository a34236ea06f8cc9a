//! Makes studies with claims of every kind that are just not true, and judges them.
//!
//! ```text
//! single      one treatment, one claim                                      no effect
//! factorial   factors a, b of two levels, reference twice        a: no effect, b: 5% slower
//!             a at b0, a at b1            is there a difference?            there is none
//!             b at a0, b at a1            is it less than 5%?               it is 5%
//!             b over both                 on which side of 5%?              on neither
//!             a with b                    do they multiply?                 they do
//!             advice                      which arm is best?                both without b
//! ```

use super::synthetic::{Noise, Study};
use super::{ALPHA, PAIR_DEVIATION};
use plumb_proof::ProofError;
use plumb_proof::average::{Figures, Means};
use plumb_proof::best::{self, Arms, Best};
use plumb_proof::change_point::{self, Search};
use plumb_proof::contrast::{Contrast, Lottery};
use plumb_proof::design::{Order, Schedule};
use plumb_proof::effect::{Observations, log_ratio};
use plumb_proof::family::{
    self, Advice, Answer, Asks, Family, Looks, OnAverage, Place, Question, advice_levels,
};
use plumb_proof::interval::Interval;
use plumb_proof::multiple;
use plumb_proof::order;
use plumb_proof::random::Generator;
use plumb_proof::randomisation::{Side, Tails, fewest_blocks};
use plumb_proof::sequential::Spending;
use plumb_proof::signed_rank;
use plumb_proof::verdict::{
    ArmChange, Average, Better, Difference, Evidence, Sought, Standing, Verdict, judge,
};

/// Slowdown of factor b, per cent: also the margin and bound of its claims.
const MARGIN: f64 = 5.0;

/// The rules that judge a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// The rules of `plumb_proof`, when all blocks have run.
    Fixed,
    /// The same rules, applied after every block.
    UntilDecided,
    Former,
}

/// A study that is made many times.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    blocks: usize,
    rules: Rules,
    /// True log-ratios of the arms to the reference.
    effects: Vec<f64>,
    claims: Vec<Claim>,
    deviation: f64,
}

/// A comparison, the question about it, and the truth.
#[derive(Debug, Clone, PartialEq)]
struct Claim {
    pairs: Vec<(usize, usize)>,
    /// Pairs before a second change. If there are any, the claim is about
    /// the difference of both comparisons.
    before: Vec<(usize, usize)>,
    asks: Asks,
    /// The effect, both typical and average.
    truth: f64,
}

impl Plan {
    /// Returns a study of one treatment without an effect.
    pub fn single(blocks: usize) -> Self {
        let claim = Claim { pairs: vec![(1, 0)], before: vec![], asks: Asks::Difference, truth: 0.0 };
        Self {
            blocks,
            rules: Rules::Fixed,
            effects: vec![0.0; 2],
            claims: vec![claim],
            deviation: PAIR_DEVIATION,
        }
    }

    /// Returns a study of two factors of two levels, with six claims. Arms: 0 a0 b0, 1 a0 b1, 2
    /// a1 b0, 3 a1 b1.
    pub fn factorial(blocks: usize) -> Self {
        let edge = log_ratio(MARGIN);
        let claim = |pairs: &[(usize, usize)], asks, truth| Claim {
            pairs: pairs.to_vec(),
            before: vec![],
            asks,
            truth,
        };
        let claims = vec![
            claim(&[(2, 0)], Asks::Difference, 0.0),
            claim(&[(3, 1)], Asks::Difference, 0.0),
            claim(&[(1, 0)], Asks::Equality(edge), edge),
            claim(&[(3, 2)], Asks::Equality(edge), edge),
            claim(&[(1, 0), (3, 2)], Asks::Side(edge), edge),
            Claim { before: vec![(2, 0)], ..claim(&[(3, 1)], Asks::Difference, 0.0) },
        ];
        let effects = vec![0.0, edge, 0.0, edge];
        Self { blocks, rules: Rules::Fixed, effects, claims, deviation: PAIR_DEVIATION }
    }

    /// Returns a study of several treatments against one reference, with a claim on each.
    /// The first treatment is slower.
    pub(super) fn many(treatments: usize, blocks: usize) -> Self {
        let claim = |arm| Claim { pairs: vec![(arm, 0)], ..Self::single(blocks).claims.remove(0) };
        let claims = (1..=treatments).map(claim).collect();
        Self { effects: vec![0.0; treatments + 1], claims, ..Self::single(blocks) }
    }

    /// Sets the slowdown of every treatment, per cent.
    pub(super) fn slower_by(mut self, percent: f64) -> Self {
        self.effects[1..].fill(log_ratio(percent));
        self.claims.iter_mut().for_each(|claim| claim.truth = log_ratio(percent));
        self
    }

    /// Sets the standard deviation of the log-ratio of two runs.
    pub(super) fn with_deviation(self, deviation: f64) -> Self {
        Self { deviation, ..self }
    }

    /// Applies the rules after every block.
    pub fn until_decided(self) -> Self {
        Self { rules: Rules::UntilDecided, ..self }
    }

    /// Judges by the former rules.
    pub fn judged_as_before(self) -> Self {
        Self { rules: Rules::Former, ..self }
    }

    pub fn name(&self) -> String {
        let what = match self.claims.len() {
            1 => "1 claim".to_string(),
            claims => format!("{claims} claims"),
        };
        match self.rules {
            Rules::Fixed => format!("{what}, {} blocks", self.blocks),
            Rules::UntilDecided => format!("{what}, stops, {} at most", self.blocks),
            Rules::Former => format!("before: {what}, {}", self.blocks),
        }
    }

    fn arms(&self) -> usize {
        self.effects.len()
    }

    fn twice(&self) -> (usize, usize) {
        (0, self.arms())
    }

    pub(super) fn figures(
        &self,
        noise: Noise,
        generator: &mut Generator,
    ) -> Result<(Observations, Vec<Vec<usize>>), ProofError> {
        let schedule =
            Schedule { arms: self.arms(), reference: 0, seed: generator.bits(), order: Order::Shuffled };
        let sigma = self.deviation / std::f64::consts::SQRT_2;
        Study { schedule, blocks: self.blocks, effects: &self.effects, noise, sigma }.run(generator)
    }

    pub(super) fn run(&self, noise: Noise, generator: &mut Generator) -> Result<Judged<'_>, ProofError> {
        let (seen, orders) = self.figures(noise, generator)?;
        self.judged(seen, orders)
    }

    /// Makes the study once, with a fixed number of blocks, and answers only its
    /// claims, because advice takes longest.
    pub(super) fn answers(&self, noise: Noise, generator: &mut Generator) -> Result<Vec<Answer>, ProofError> {
        let (seen, orders) = self.figures(noise, generator)?;
        let judged = self.unjudged(seen, orders)?;
        let family = family::ask(&judged.questions(), ALPHA, Looks::Once, judged.advice());
        Ok(family.answers.into_iter().flatten().collect())
    }

    fn unjudged(&self, seen: Observations, orders: Vec<Vec<usize>>) -> Result<Judged<'_>, ProofError> {
        let contrasts = self
            .claims
            .iter()
            .map(|claim| claim.contrast(&seen, self.arms()))
            .collect::<Result<Vec<_>, _>>()?;
        let means = match self.rules {
            Rules::Former => vec![None; self.claims.len()],
            _ => self.claims.iter().map(|claim| claim.means(&seen, self.arms())).collect(),
        };
        Ok(Judged { plan: self, seen, orders, contrasts, means, answers: Vec::new(), advice: None })
    }

    pub(super) fn judged(
        &self,
        seen: Observations,
        orders: Vec<Vec<usize>>,
    ) -> Result<Judged<'_>, ProofError> {
        let mut judged = self.unjudged(seen, orders)?;
        match self.rules {
            Rules::Fixed => judged.ask()?,
            Rules::Former => judged.answers = judged.former(),
            Rules::UntilDecided => judged.look_until_decided()?,
        }
        Ok(judged)
    }
}

impl Claim {
    fn contrast(&self, seen: &Observations, arms: usize) -> Result<Contrast, ProofError> {
        if self.before.is_empty() {
            return Contrast::of_pairs(seen, &self.pairs, (0, arms));
        }
        let at = |block: &Vec<f64>, pairs: &[(usize, usize)]| block[pairs[0].0] - block[pairs[0].1];
        let four = |block: &Vec<f64>| vec![Lottery::pair(at(block, &self.pairs) - at(block, &self.before))];
        Ok(Contrast::new(seen.logs().iter().map(four).collect()))
    }

    /// Returns the mean times of both sides. The reference's two runs count as one arm.
    fn means(&self, seen: &Observations, arms: usize) -> Option<Means> {
        if !self.before.is_empty() {
            return None;
        }
        let time = |block: &[f64], slot: usize| match slot == 0 {
            true => f64::midpoint(block[0].exp(), block[arms].exp()),
            false => block[slot].exp(),
        };
        let mean = |side: fn(&(usize, usize)) -> usize| {
            let of = |block: &Vec<f64>| {
                let all = self.pairs.iter().map(|pair| time(block, side(pair)));
                all.sum::<f64>() / self.pairs.len() as f64
            };
            seen.logs().iter().map(of).collect()
        };
        Some(Means::new(mean(|pair| pair.0), mean(|pair| pair.1), Figures::Times))
    }
}

/// A study that was made, and its judgement.
pub(super) struct Judged<'a> {
    plan: &'a Plan,
    seen: Observations,
    orders: Vec<Vec<usize>>,
    pub(super) contrasts: Vec<Contrast>,
    means: Vec<Option<Means>>,
    pub(super) answers: Vec<Answer>,
    advice: Option<Best>,
}

impl Judged<'_> {
    fn questions(&self) -> Vec<Question<'_>> {
        let claims = self.contrasts.iter().zip(&self.plan.claims).zip(&self.means);
        claims
            .map(|((contrast, claim), means)| Question {
                contrast: Some(contrast),
                asks: claim.asks,
                means: means.as_ref(),
            })
            .collect()
    }

    fn looks(&self) -> Looks {
        match self.plan.rules {
            Rules::UntilDecided => Looks::Every(Spending::Planned { blocks: self.plan.blocks }),
            Rules::Fixed | Rules::Former => Looks::Once,
        }
    }

    fn advice(&self) -> Advice {
        if self.plan.arms() == 2 { Advice::None } else { Advice::Shares }
    }

    /// Judges all claims at once, from all blocks.
    fn ask(&mut self) -> Result<(), ProofError> {
        let family = family::ask(&self.questions(), ALPHA, Looks::Once, self.advice());
        self.take(family, Looks::Once)
    }

    fn take(&mut self, family: Family, looks: Looks) -> Result<(), ProofError> {
        let plan = self.plan;
        self.answers = family.answers.into_iter().flatten().collect();
        if self.advice() == Advice::Shares {
            let arms = Arms { seen: &self.seen, arms: plan.arms(), twice: plan.twice(), lost: &[] };
            let levels = advice_levels(plan.claims.len(), ALPHA);
            self.advice = Some(best::best(&arms, looks, family.advice_level, &levels)?);
        }
        Ok(())
    }

    /// Judges after each block until everything is decided, or all blocks have run.
    fn look_until_decided(&mut self) -> Result<(), ProofError> {
        let planned = self.plan.blocks;
        let spending = Spending::Planned { blocks: planned };
        let walks = family::Walks::of(&self.questions(), ALPHA, spending, self.advice());
        // Nothing is decided before the fewest blocks.
        let fewest = fewest_blocks(1.0 / 3.0, ALPHA);
        let blocks = (fewest..planned).find(|blocks| walks.have_decided(*blocks)).unwrap_or(planned);
        self.seen = self.seen.first(blocks);
        self.orders.truncate(blocks);
        self.contrasts = self.contrasts.iter().map(|contrast| contrast.first(blocks)).collect();
        let plan = self.plan;
        self.means = plan.claims.iter().map(|claim| claim.means(&self.seen, plan.arms())).collect();
        let family = walks.ask(&self.questions(), blocks);
        self.take(family, Looks::Every(spending))
    }

    /// Answers by the former rules: signed ranks of single runs, Holm over differences, Holm again
    /// over equalities. Sides of a bound and advice were not tested.
    fn former(&self) -> Vec<Answer> {
        let plan = self.plan;
        let single = |claim: &Claim| -> Vec<f64> {
            let slot = |(to, from): &(usize, usize), block: &Vec<f64>| block[*to] - block[*from];
            let mean = |pairs: &[(usize, usize)], block: &Vec<f64>| {
                pairs.iter().map(|pair| slot(pair, block)).sum::<f64>() / pairs.len().max(1) as f64
            };
            let of = |block: &Vec<f64>| mean(&claim.pairs, block) - mean(&claim.before, block);
            self.seen.logs().iter().map(of).collect()
        };
        let differences: Vec<Vec<f64>> = plan.claims.iter().map(single).collect();
        let p: Vec<f64> = differences.iter().map(|found| signed_rank::p(found)).collect();
        let steps = multiple::holm(&p, ALPHA);
        let equal: Vec<f64> = plan
            .claims
            .iter()
            .zip(&differences)
            .filter_map(|(claim, found)| match claim.asks {
                Asks::Equality(bound) => {
                    Some(signed_rank::tails(found, -bound).greater.max(signed_rank::tails(found, bound).less))
                }
                _ => None,
            })
            .collect();
        let mut equal = multiple::holm(&equal, ALPHA).into_iter();
        plan.claims
            .iter()
            .zip(&differences)
            .zip(steps)
            .map(|((claim, found), step)| {
                let interval = signed_rank::interval(found, step.level);
                let within = matches!(claim.asks, Asks::Equality(_))
                    && equal.next().is_some_and(|step| step.outcome == multiple::Outcome::Proved);
                let place = match claim.asks {
                    Asks::Side(bound) if interval.high < bound => Place::Below,
                    Asks::Side(bound) if interval.low > bound => Place::Above,
                    _ if within => Place::Within,
                    _ => Place::Open,
                };
                let signed_rank::Tails { less, greater } = signed_rank::tails(found, 0.0);
                // A statement needs Holm's proof, whatever its own level.
                let proved = step.outcome == multiple::Outcome::Proved;
                Answer {
                    estimate: signed_rank::estimate(found),
                    tails: if proved { Tails { less, greater } } else { Tails::NONE },
                    adjusted_p: step.adjusted_p,
                    level: step.level,
                    interval_level: step.level,
                    equivalence: None,
                    place,
                    on_average: None,
                }
            })
            .collect()
    }

    /// True if any statement is false. An UNSTABLE claim makes no statement.
    pub(super) fn says_falsely(&self) -> bool {
        let claims = self.plan.claims.iter().zip(&self.answers).enumerate();
        let wrong = |(index, (claim, answer)): (usize, (&Claim, &Answer))| {
            (claim_is_wrong(claim, answer) || self.average_may_be_wrong(index))
                && self.claim_says_falsely(index)
        };
        claims.into_iter().any(wrong) || self.advises_falsely()
    }

    /// True if a verdict prints an average that could be wrong.
    fn average_may_be_wrong(&self, index: usize) -> bool {
        let truth = self.plan.claims[index].truth;
        match self.answers[index].on_average {
            Some(OnAverage::Below) => truth >= 0.0,
            Some(OnAverage::Above) => truth <= 0.0,
            Some(OnAverage::Within) => true,
            Some(OnAverage::Open) | None => false,
        }
    }

    /// True if a claim's verdict, or the outcome for the claim, is false.
    fn claim_says_falsely(&self, index: usize) -> bool {
        let (claim, answer) = (&self.plan.claims[index], &self.answers[index]);
        let verdict = self.verdict(index);
        match (&verdict, claim.asks) {
            (Verdict::Unstable { .. }, _) => false,
            (Verdict::Equal { .. }, Asks::Equality(bound)) => claim.truth.abs() >= bound * (1.0 - 1e-12),
            (Verdict::NotSlower { .. }, Asks::NotBeyond(bound)) => claim.truth >= bound,
            (Verdict::Mixed { on_average, .. }, _) => {
                let slower = *on_average == plumb_proof::verdict::Side::Slower;
                let bound = if let Asks::Equality(bound) = claim.asks { bound } else { 0.0 };
                let average = if slower { claim.truth <= bound } else { claim.truth >= -bound };
                average || claim_is_wrong(claim, answer)
            }
            _ => claim_is_wrong(claim, answer),
        }
    }

    /// True if the advice names no best arm, or calls an arm better that is not.
    fn advises_falsely(&self) -> bool {
        let Some(Best { candidates, better }) = &self.advice else { return false };
        let effects = &self.plan.effects;
        let lowest = effects.iter().copied().fold(f64::INFINITY, f64::min);
        let has_best = candidates.iter().any(|arm| effects[*arm] <= lowest);
        !has_best || better.iter().any(|(arm, _)| effects[*arm] >= 0.0)
    }

    /// Returns the verdict on a claim.
    pub(super) fn verdict(&self, index: usize) -> Verdict {
        let (contrast, answer, claim) =
            (&self.contrasts[index], &self.answers[index], &self.plan.claims[index]);
        let changes = change_point::find(&contrast.effects(), &Search::usual(index as u64));
        let changes: Vec<ArmChange> =
            changes.into_iter().map(|change| ArmChange { arm: String::new(), change }).collect();
        let former = self.plan.rules == Rules::Former;
        let treated: Vec<usize> = claim.pairs.iter().map(|pair| pair.0).collect();
        let own = |_: ()| {
            order::after(
                &self.seen,
                &self.orders,
                &order::Asked { slots: &treated, twice: self.plan.twice(), seed: index as u64 },
            )
        };
        let average = self.means[index].as_ref().zip(answer.on_average).and_then(|(means, lies)| {
            let found = self.looks().ratio(means, answer.interval_level)?;
            Some(Average { lies, ratio: found.ratio, interval: found.interval })
        });
        judge(&Evidence {
            beyond_bound: &[],
            contradictions: &[],
            changes: &changes,
            order: Some(&order::test(&self.seen, &self.orders, index as u64)),
            carry_over: (!former).then_some(()).and_then(own),
            difference: Difference {
                estimate: answer.estimate,
                adjusted_p: answer.adjusted_p,
                interval: self.interval(index),
                level: answer.level,
                blocks: contrast.blocks(),
                blocks_min: 1,
                deviation: contrast.deviation(),
            },
            equivalence: answer.equivalence,
            place: answer.place,
            average,
            wanders_p: (!former)
                .then_some(())
                .and_then(|()| order::wanders_p(&contrast.effects(), index as u64)),
            shape_p: None,
            alpha: ALPHA,
            claims: self.plan.claims.len(),
            better: Better::Lower,
            sought: match claim.asks {
                Asks::NotBeyond(bound) => Sought::NotSlower(bound),
                _ => Sought::Difference(1.0),
            },
            seed: 1,
        })
        .verdict
    }

    /// Returns an interval on the proved side. The verdict depends on nothing else of it.
    fn interval(&self, index: usize) -> Interval {
        let answer = &self.answers[index];
        match () {
            () if answer.is(Side::Below) => Interval { high: -f64::MIN_POSITIVE, ..Interval::UNBOUNDED },
            () if answer.is(Side::Above) => Interval { low: f64::MIN_POSITIVE, ..Interval::UNBOUNDED },
            () => Interval::UNBOUNDED,
        }
    }

    pub(super) fn is_unstable(&self, index: usize) -> bool {
        self.verdict(index).standing() == Standing::Unstable
    }
}

/// True if the statement about a claim is false.
fn claim_is_wrong(claim: &Claim, answer: &Answer) -> bool {
    let truth = claim.truth;
    let side = |low: bool, bound: f64| if low { truth >= bound } else { truth <= bound };
    let placed = match (claim.asks, answer.place) {
        (Asks::Equality(bound), Place::Within) => return truth.abs() >= bound * (1.0 - 1e-12),
        (Asks::Equality(bound), Place::Beyond) => truth.abs() <= bound,
        (Asks::Side(bound) | Asks::NotBeyond(bound), Place::Below) => side(true, bound),
        (Asks::Side(bound) | Asks::NotBeyond(bound), Place::Above) => side(false, bound),
        _ => false,
    };
    placed || answer.is(Side::Below) && truth >= 0.0 || answer.is(Side::Above) && truth <= 0.0
}
