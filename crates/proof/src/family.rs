//! One error for everything that a study says: differences, equalities, what holds and what is refuted, advice.
//!
//! Whatever is said of a claim is said about where its effect lies on the line of log-ratios, cut at a few points:
//!
//! ```text
//! faster, slower, differs     ---------------|0---------------      PROVED faster | PROVED slower
//! faster by at least 60%      ------|x-------|0---------------      holds | REFUTED at x, and the above at 0
//! equal within d              ------|-d------|0------|+d------      PROVED EQUAL between, REFUTED beyond
//! ```
//!
//! Each point is tested, "the effect is exactly here" (`randomisation`, or `sequential` in a study that may stop), and a claim
//! may say what lies on the side of a point that its test leaves. At a level L that is wrong in at most L of studies
//! for *one* claim, however many points it has: the effect lies somewhere, so that only tests of the points next to it can
//! be wrong, one on either side, each with L/2; an equality spends both halves on the one margin at which it can be wrong,
//! where no difference can (Schuirmann 1987; Berger 1982).
//!
//! The claims of a study share alpha. m claims get alpha/m each. A claim is *settled* when all its points are left behind:
//! nothing more can be said of it, and its share goes to the others in equal parts (Holm 1979; Bretz, Maurer, Brannath,
//! Posch 2009). An equality that is proved is not settled by it, since "no effect" may still be true of it: that is
//! what two families of claims got wrong (9.6% of studies with two true nulls and two effects at their margin).
//!
//! Advice is one member more, without a share of its own: before any claim is settled there is none. It weighs w = 1/4 of an open claim where a share
//! is given away, for a claim was written before the runs, and advice has all of alpha when all claims are settled, whatever its weight. With f of m
//! claims settled
//!
//! ```text
//! an open claim has alpha/m (1 + f/(m - f + w))       advice has alpha w f / (m (m - f + w))
//! ```
//!
//! A weight of 1 costs two blocks of thirty: of four claims of 2% at s_d 3%, each is found in 94.7% of studies of 28 blocks by Student's t then, and in 95.7% with 1/4.
//! Without advice it is Holm's alpha/(m - f). Claims with equal p have the same level, whatever their order.
//!
//! Limits: the share of a settled claim goes on although its sign may be wrong; with independent tests that costs nothing
//! (Shaffer 1980), with dependent ones `calibration` finds no excess. Intervals are at the level of the claim's own test:
//! jointly they exclude nothing wrongly of what verdicts say, and each alone covers with 1 - level.

use crate::contrast::Contrast;
use crate::equivalence::Equivalence;
use crate::interval::Interval;
use crate::randomisation::{self, Side, Tails};
use crate::sequential::{self, Crossing, Spending};
use crate::student;
use crate::summary::normal_quantile;

/// What is asked of an effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asks {
    /// Whether it lies above or below no effect.
    Difference,
    /// That, and on which side of this log-ratio.
    Side(f64),
    /// Whether it is nearer to no effect than this log-ratio, above 0.
    Equality(f64),
}

impl Asks {
    fn points(self) -> Vec<f64> {
        match self {
            Self::Difference => vec![0.0],
            Self::Side(bound) => vec![0.0, bound],
            Self::Equality(bound) => vec![0.0, -bound, bound],
        }
    }
}

/// How often the figures are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Looks {
    /// When all blocks have run.
    Once,
    /// After every block.
    Every(Spending),
}

impl Looks {
    /// One-sided p of a shift. In a study that may stop they are the smallest of `levels` crossed, halved: of use at these
    /// levels only, which are two-sided ones.
    pub fn tails(self, contrast: &Contrast, shift: f64, levels: &[f64]) -> Tails {
        if contrast.lost() > 0 {
            let one = |side| self.tails(&contrast.completed(side), shift, levels);
            return Tails { less: one(1.0).less, greater: one(-1.0).greater };
        }
        let Self::Every(spending) = self else { return randomisation::tails(contrast, shift) };
        crossed(&sequential::crossings(contrast, shift, levels, spending), contrast.blocks())
    }

    /// The shifts that are not rejected at a level by a test of what is asked.
    pub fn interval(self, contrast: &Contrast, asks: Asks, level: f64) -> Interval {
        if contrast.lost() > 0 {
            let one = |side| self.interval(&contrast.completed(side), asks, level);
            return Interval { low: one(-1.0).low, high: one(1.0).high };
        }
        match self {
            Self::Once => randomisation::interval(contrast, level),
            Self::Every(spending) => sequential::interval(contrast, level, spending, &asks.points()),
        }
    }
}

/// One-sided p of a walk after so many blocks: half of the smallest level that it had crossed.
fn crossed(crossings: &[Crossing], blocks: usize) -> Tails {
    let past = crossings.iter().filter(|crossing| crossing.block <= blocks);
    match past.min_by(|one, two| one.level.total_cmp(&two.level)) {
        None => Tails::NONE,
        Some(Crossing { side: Side::Above, level, .. }) => Tails { greater: level / 2.0, ..Tails::NONE },
        Some(Crossing { side: Side::Below, level, .. }) => Tails { less: level / 2.0, ..Tails::NONE },
    }
}

/// A claim's numbers and what is asked of them; without numbers it still has its share.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The comparison.
    pub contrast: Option<&'a Contrast>,
    /// What is asked.
    pub asks: Asks,
}

/// Who shares the error beside the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nobody: advice follows from a claim, or none is given.
    None,
    /// The choice among the arms.
    Shares,
}

/// What a claim's tests say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The typical effect, a log-ratio.
    pub estimate: f64,
    /// One-sided p of "no effect", before any correction.
    pub tails: Tails,
    /// The same for the level that the claim had, to be held against alpha.
    pub adjusted_p: f64,
    /// The two-sided level at which the claim was tested; its interval is that of `Looks::interval` at this level.
    pub level: f64,
    /// Of a claim that asks for equality; `p` is adjusted.
    pub equivalence: Option<Equivalence>,
    /// Where the effect lies beside the points that were asked for.
    pub place: Place,
}

/// Where an effect was proved to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Not told.
    Open,
    /// Below the bound of `Asks::Side`.
    Below,
    /// Above it.
    Above,
    /// Within the margin of `Asks::Equality`.
    Within,
    /// Beyond it.
    Beyond,
}

/// The answers, and the level that is left for advice: the error that a false choice may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// One a question, in order; none for a claim without numbers.
    pub answers: Vec<Option<Answer>>,
    /// 0 when no claim is settled.
    pub advice_level: f64,
}

/// What advice weighs beside an open claim.
const ADVICE_WEIGHT: f64 = 0.25;

/// The levels of an open claim and of advice when some of `claims` are settled.
fn shares(claims: usize, settled: usize, advice: Advice, alpha: f64) -> (f64, f64) {
    let (all, free) = (claims as f64, settled as f64);
    match advice {
        Advice::None => (alpha / (all - free).max(1.0), 0.0),
        Advice::Shares => {
            let part = free / (all - free + ADVICE_WEIGHT);
            (alpha / all * (1.0 + part), alpha / all * part * ADVICE_WEIGHT)
        }
    }
}

/// Every level at which a claim may be asked: what a study that may stop has to watch. A margin is tested on one side, at twice
/// the level.
fn levels(asks: Asks, claims: usize, advice: Advice, alpha: f64) -> Vec<f64> {
    let one = (0..claims).map(|settled| shares(claims, settled, advice, alpha).0);
    match asks {
        Asks::Equality(_) => one.flat_map(|level| [level, 2.0 * level]).collect(),
        Asks::Difference | Asks::Side(_) => one.collect(),
    }
}

/// The levels that advice may have, by the number of claims that are settled.
pub fn advice_levels(claims: usize, alpha: f64) -> Vec<f64> {
    (1..=claims).map(|settled| shares(claims, settled, Advice::Shares, alpha).1).collect()
}

/// Asks all questions of a study at once.
pub fn ask(questions: &[Question<'_>], alpha: f64, looks: Looks, advice: Advice) -> Family {
    let tests: Vec<Vec<Tails>> = questions
        .iter()
        .map(|question| {
            let watched = levels(question.asks, questions.len(), advice, alpha);
            let tails = |shift: f64| {
                question.contrast.map_or(Tails::NONE, |contrast| looks.tails(contrast, shift, &watched))
            };
            question.asks.points().into_iter().map(tails).collect()
        })
        .collect();
    answered(questions, &tests, alpha, advice)
}

/// The same for a study whose blocks are all known, as if it were asked after any of them: every point is walked once.
pub(crate) struct Walks {
    /// Of each question, of each point: what was crossed, and when.
    crossings: Vec<(Asks, Vec<Vec<Crossing>>)>,
    alpha: f64,
    advice: Advice,
}

impl Walks {
    pub(crate) fn of(questions: &[Question<'_>], alpha: f64, spending: Spending, advice: Advice) -> Self {
        let walked = |question: &Question<'_>| {
            let watched = levels(question.asks, questions.len(), advice, alpha);
            let walk = |shift: f64| {
                let crossings = |contrast| sequential::crossings(contrast, shift, &watched, spending);
                question.contrast.map_or(Vec::new(), crossings)
            };
            (question.asks, question.asks.points().into_iter().map(walk).collect())
        };
        Self { crossings: questions.iter().map(walked).collect(), alpha, advice }
    }

    fn tests(&self, blocks: usize) -> Vec<Vec<Tails>> {
        let points =
            |points: &Vec<Vec<Crossing>>| points.iter().map(|point| crossed(point, blocks)).collect();
        self.crossings.iter().map(|(_, walked)| points(walked)).collect()
    }

    /// Whether all that is asked is answered after so many blocks.
    pub(crate) fn have_decided(&self, blocks: usize) -> bool {
        let tests = self.tests(blocks);
        let (given, _) = step_down(&tests, self.alpha, self.advice);
        let claims = self.crossings.iter().zip(&tests).zip(given);
        claims
            .into_iter()
            .all(|(((asks, _), tests), level)| decided(*asks, tests[0], place(*asks, tests, level), level))
    }

    /// The questions as they are answered then; they hold so many blocks.
    pub(crate) fn ask(&self, questions: &[Question<'_>], blocks: usize) -> Family {
        answered(questions, &self.tests(blocks), self.alpha, self.advice)
    }
}

fn answered(questions: &[Question<'_>], tests: &[Vec<Tails>], alpha: f64, advice: Advice) -> Family {
    let (given, settled) = step_down(tests, alpha, advice);
    let answers = questions.iter().zip(tests).zip(given).map(|((question, tests), level)| {
        Some(answer(question.contrast?, question.asks, tests, Levels { level, alpha }))
    });
    Family { answers: answers.collect(), advice_level: shares(questions.len(), settled, advice, alpha).1 }
}

/// Each claim's level, and how many claims are settled.
fn step_down(tests: &[Vec<Tails>], alpha: f64, advice: Advice) -> (Vec<f64>, usize) {
    let settling: Vec<f64> =
        tests.iter().map(|points| points.iter().map(Tails::two_sided).fold(0.0, f64::max)).collect();
    let mut ascending: Vec<usize> = (0..tests.len()).collect();
    ascending.sort_by(|a, b| settling[*a].total_cmp(&settling[*b]));
    let mut given = vec![0.0; tests.len()];
    let (mut settled, mut first_of_equals) = (0, 0);
    for (rank, &claim) in ascending.iter().enumerate() {
        if rank > 0 && settling[claim] > settling[ascending[rank - 1]] {
            first_of_equals = rank;
        }
        // Behind the first that is not settled, nothing more is set free.
        given[claim] = shares(tests.len(), first_of_equals.min(settled), advice, alpha).0;
        if settled == rank && settling[claim] <= given[claim] {
            settled += 1;
        }
    }
    (given, settled)
}

#[derive(Clone, Copy)]
struct Levels {
    level: f64,
    alpha: f64,
}

fn answer(contrast: &Contrast, asks: Asks, tests: &[Tails], Levels { level, alpha }: Levels) -> Answer {
    // A p at its own level must not come out a rounding above alpha.
    let adjusted =
        |p: f64| if p <= level { (p * alpha / level).min(alpha) } else { (p * alpha / level).min(1.0) };
    let equivalence = match asks {
        Asks::Equality(bound) => {
            let (p_lower, p_upper) = (tests[1].greater, tests[2].less);
            Some(Equivalence { margin: bound.exp_m1(), p_lower, p_upper, p: adjusted(p_lower.max(p_upper)) })
        }
        _ => None,
    };
    Answer {
        estimate: contrast.estimate(),
        tails: tests[0],
        adjusted_p: adjusted(tests[0].two_sided()),
        level,
        equivalence,
        place: place(asks, tests, level),
    }
}

fn place(asks: Asks, tests: &[Tails], level: f64) -> Place {
    let (below, above) =
        (|at: usize| tests[at].less <= level / 2.0, |at: usize| tests[at].greater <= level / 2.0);
    match asks {
        Asks::Side(_) if below(1) => Place::Below,
        Asks::Side(_) if above(1) => Place::Above,
        Asks::Equality(_) if tests[1].greater <= level && tests[2].less <= level => Place::Within,
        Asks::Equality(_) if below(1) || above(2) => Place::Beyond,
        _ => Place::Open,
    }
}

impl Answer {
    /// Two-sided p of "no effect", before any correction.
    pub fn p(&self) -> f64 {
        self.tails.two_sided()
    }

    /// Whether the effect is proved to be on this side of none.
    pub fn is(&self, side: Side) -> bool {
        let tail = match side {
            Side::Below => self.tails.less,
            Side::Above => self.tails.greater,
        };
        2.0 * tail <= self.level
    }

    /// Whether a difference is proved.
    pub fn differs(&self) -> bool {
        self.is(Side::Below) || self.is(Side::Above)
    }

    /// Whether what was asked is answered.
    pub fn decided(&self, asks: Asks) -> bool {
        decided(asks, self.tails, self.place, self.level)
    }
}

fn decided(asks: Asks, tails: Tails, place: Place, level: f64) -> bool {
    match asks {
        Asks::Difference => tails.two_sided() <= level,
        Asks::Side(_) | Asks::Equality(_) => place != Place::Open,
    }
}

/// A chance of an answer below which a study is not continued for it.
const CHANCE_MIN: f64 = 0.05;
/// How much better than it looks an effect is given credit to be: the upper end of its 80% interval.
const CREDIT: f64 = 1.2816;

/// Whether a claim that has no answer yet has hardly a chance to get one by `planned` blocks, even if the effect is as favourable as
/// what was seen of it lets expect. To stop for that proves nothing, so that it costs no error; the error that it leaves
/// unspent is the price.
pub fn is_hopeless(answer: &Answer, asks: Asks, contrast: &Contrast, planned: usize) -> bool {
    let (blocks, deviation) = (contrast.blocks(), contrast.deviation());
    if blocks < randomisation::BLOCKS_MIN || planned <= 2 || deviation.is_nan() {
        return false;
    }
    let (seen, all) = (blocks as f64, planned.max(blocks) as f64);
    let credit = CREDIT * deviation / seen.sqrt();
    let lucky = normal_quantile(1.0 - CHANCE_MIN) * deviation * (all - seen).sqrt() / all;
    // How far from a point the last estimate may come to lie, and how near to it, if the blocks to come are as favourable.
    let far = |distance: f64| distance + (all - seen) / all * credit + lucky;
    let near = |distance: f64| distance - (all - seen) / all * credit.min(distance) - lucky;
    let needed = |level: f64| student::upper_quantile(level, all - 1.0) * deviation / all.sqrt();
    let half = needed(answer.level / 2.0);
    let effect = answer.estimate;
    match asks {
        Asks::Difference => far(effect.abs()) < half,
        Asks::Side(bound) => far((effect - bound).abs()) < half,
        Asks::Equality(bound) => {
            near(effect.abs()) > bound - needed(answer.level) && far(effect.abs()) < bound + half
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    /// Pairs with this effect and s_d 3%.
    fn pairs(seed: u64, effect: f64, blocks: usize) -> Contrast {
        let mut generator = Generator::new(seed);
        let differences: Vec<f64> = (0..blocks).map(|_| effect + 0.03 * generator.normal()).collect();
        Contrast::of_differences(&differences)
    }

    fn question(contrast: &Contrast, asks: Asks) -> Question<'_> {
        Question { contrast: Some(contrast), asks }
    }

    #[test]
    fn shares_sum_to_alpha_and_are_holms_without_advice() {
        for claims in 1..9 {
            for settled in 0..claims {
                let (open, advice) = shares(claims, settled, Advice::Shares, 0.05);
                assert!(
                    ((claims - settled) as f64 * open + advice - 0.05).abs() < 1e-12,
                    "{claims} {settled}"
                );
                let (holm, none) = shares(claims, settled, Advice::None, 0.05);
                assert_eq!((holm, none), (0.05 / (claims - settled) as f64, 0.0));
            }
            assert!((shares(claims, claims, Advice::Shares, 0.05).1 - 0.05).abs() < 1e-12);
        }
    }

    #[test]
    fn a_settled_claim_gives_its_share_away_and_equals_have_equal_levels() {
        let (far, near) = (pairs(1, 0.2, 12), pairs(2, 0.001, 12));
        let asked = [question(&near, Asks::Difference), question(&far, Asks::Difference)];
        let family = ask(&asked, 0.05, Looks::Once, Advice::None);
        let levels: Vec<f64> = family.answers.iter().flatten().map(|answer| answer.level).collect();
        assert_eq!(levels, [0.05, 0.025]);
        for order in [[&far, &far, &near], [&near, &far, &far]] {
            let asked = order.map(|contrast| question(contrast, Asks::Difference));
            let family = ask(&asked, 0.05, Looks::Once, Advice::None);
            let levels = family.answers.iter().flatten().map(|answer| answer.level);
            let of_far = levels.zip(order).filter(|(_, contrast)| **contrast == far).map(|(level, _)| level);
            assert!(of_far.into_iter().all(|level| (level - 0.05 / 3.0).abs() < 1e-12));
        }
    }

    #[test]
    fn a_proved_equality_does_not_settle_its_claim() {
        let (equal, open) = (pairs(3, 0.0, 20), pairs(4, 0.0, 20));
        let asked = [question(&equal, Asks::Equality(0.1)), question(&open, Asks::Difference)];
        let family = ask(&asked, 0.05, Looks::Once, Advice::Shares);
        let answers: Vec<Answer> = family.answers.into_iter().flatten().collect();
        assert_eq!(answers[0].place, Place::Within);
        assert_eq!([answers[0].level, answers[1].level], [0.025; 2]);
        assert_eq!(family.advice_level, 0.0);
    }

    #[test]
    fn a_small_effect_within_its_margin_is_settled_when_it_is_known_to_be_some() {
        let small = pairs(5, 0.05, 30);
        let asked = [question(&small, Asks::Equality(0.1)), question(&small, Asks::Side(0.2))];
        let family = ask(&asked, 0.05, Looks::Once, Advice::Shares);
        let answers: Vec<Answer> = family.answers.into_iter().flatten().collect();
        assert_eq!([answers[0].place, answers[1].place], [Place::Within, Place::Below]);
        assert!(answers.iter().all(Answer::differs));
        assert!((family.advice_level - 0.05).abs() < 1e-12);
    }

    #[test]
    fn a_bound_is_tested_itself() {
        // Clear of no effect, and on neither side of 5%.
        let contrast = pairs(6, 0.05, 9);
        let family = ask(&[question(&contrast, Asks::Side(0.05))], 0.05, Looks::Once, Advice::None);
        let answer = family.answers[0].unwrap();
        assert!(answer.differs() && answer.place == Place::Open && !answer.decided(Asks::Side(0.05)));
    }

    #[test]
    fn what_blocks_cannot_answer_any_more_is_hopeless() {
        let hopeless = |effect: f64, asks: Asks, blocks: usize, planned: usize| {
            let given_up = (0..60).filter(|seed| {
                let contrast = pairs(300 + seed, effect, blocks);
                let family = ask(&[question(&contrast, asks)], 0.05, Looks::Once, Advice::None);
                is_hopeless(&family.answers[0].unwrap(), asks, &contrast, planned)
            });
            given_up.count()
        };
        // s_d 3%: 20 of 40 blocks know no effect within 0.7%; 3% would be seen.
        assert!(hopeless(0.0, Asks::Difference, 24, 30) > 20);
        assert_eq!(hopeless(0.03, Asks::Difference, 12, 30), 0);
        assert_eq!(hopeless(0.0, Asks::Equality(0.05), 12, 30), 0);
        assert!(hopeless(0.0, Asks::Equality(0.002), 27, 30) > 40);
        assert!(hopeless(0.05, Asks::Side(0.05), 28, 30) > 30);
        assert_eq!(hopeless(0.0, Asks::Difference, 5, 30), 0, "too early to tell");
    }

    #[test]
    fn lost_blocks_speak_against_whatever_is_said() {
        let whole = pairs(1, 0.2, 12);
        let p = |contrast: &Contrast| {
            let family = ask(&[question(contrast, Asks::Difference)], 0.05, Looks::Once, Advice::None);
            family.answers[0].unwrap()
        };
        let (whole, one, three) = (p(&whole), p(&whole.clone().without(1)), p(&whole.clone().without(3)));
        assert!(whole.p() < one.p() && one.p() < three.p(), "{} {} {}", whole.p(), one.p(), three.p());
        assert!(!three.differs());
        let low = |lost| Looks::Once.interval(&pairs(1, 0.2, 12).without(lost), Asks::Difference, 0.05).low;
        assert!(low(1) < low(0));
        assert_eq!(whole.estimate, three.estimate);
    }

    #[test]
    fn a_claim_without_numbers_keeps_its_share() {
        let contrast = pairs(1, 0.2, 12);
        let none = Question { contrast: None, asks: Asks::Difference };
        let family = ask(&[none, question(&contrast, Asks::Difference)], 0.05, Looks::Once, Advice::None);
        assert_eq!(family.answers[0], None);
        assert_eq!(family.answers[1].unwrap().level, 0.025);
    }
}
