//! Measures the coverage of intervals, the blocks for a power, and the saving by early stopping.

use super::situations::single;
use super::study::Plan;
use super::synthetic::Noise;
use super::{ALPHA, Goal, PAIR_DEVIATION, Reached, Scale, Share, count, each};
use plumb_proof::ProofError;
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::log_ratio;
use plumb_proof::family::{Asks, Looks};
use plumb_proof::interval::Interval;
use plumb_proof::randomisation;
use plumb_proof::sequential::Spending;

const POWER: f64 = 0.95;
/// Most blocks in the search for a power.
const BLOCKS_MAX: usize = 90;
/// Most blocks of a study whose interval after a stop is measured.
pub(super) const STOPPED_BLOCKS: usize = 30;

/// Coverage of the intervals of fixed studies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Coverage {
    pub blocks: usize,
    pub noise: Noise,
    /// Share of intervals that contain the effect.
    pub share: Share,
}

/// The interval of a study that stops when its claim is decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stopped {
    pub noise: Noise,
    /// The true slowdown in per cent.
    pub percent: f64,
    /// Share of intervals that contain it.
    pub share: Share,
    /// Median width, of studies that stopped before their last block, relative to a fixed study
    /// with the same number of blocks.
    pub width: f64,
}

/// Power by number of blocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// The slowdown in per cent.
    pub percent: f64,
    /// The model of the machine.
    pub noise: Noise,
    /// Blocks, and the share of studies that prove it.
    pub points: Vec<(usize, Share)>,
}

/// Blocks needed to find a slowdown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Power {
    /// The slowdown in per cent.
    pub percent: f64,
    pub deviation: f64,
    /// Claims of the study, all with this slowdown.
    pub claims: usize,
    /// The model of the machine.
    pub noise: Noise,
    /// Fewest blocks with which 95% of the studies find one of them; `None` above 90.
    pub blocks: Option<usize>,
    pub wanted: Option<usize>,
}

/// Blocks used with early stopping, on lognormal noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Saving {
    /// The slowdown that both designs are sized for, in per cent.
    pub sized_for: f64,
    pub percent: f64,
    /// Blocks of the fixed study with 95% power for the slowdown it is sized for.
    pub fixed: usize,
    /// Most blocks of the sequential study with the same power.
    pub planned: usize,
    /// Blocks that it uses on average.
    pub mean_blocks: f64,
    /// Share of studies that prove the difference.
    pub decided: Share,
}

fn contrast(
    plan: &Plan,
    noise: Noise,
    generator: &mut plumb_proof::random::Generator,
) -> Result<Contrast, ProofError> {
    Contrast::of_pairs(&plan.figures(noise, generator)?.0, &[(1, 0)], (0, 2))
}

pub(super) fn coverage(scale: Scale) -> Result<Vec<Coverage>, ProofError> {
    let scale = Scale { studies: scale.studies / 10, ..scale };
    let truth = log_ratio(5.0);
    let mut rows = Vec::new();
    for (row, blocks) in [6, 9, 24].into_iter().enumerate() {
        for (column, noise) in
            Noise::ALL.into_iter().enumerate().filter(|(_, noise)| *noise != Noise::DirtyArm)
        {
            let plan = Plan::single(blocks).slower_by(5.0);
            let share = count(scale, 700 + 20 * row + column, |generator| {
                let contrast = contrast(&plan, noise, generator)?;
                Ok(Looks::Once.interval(&contrast, Asks::Difference, ALPHA).contains(truth))
            })?;
            rows.push(Coverage { blocks, noise, share });
        }
    }
    Ok(rows)
}

pub(super) fn stopped(scale: Scale) -> Result<Vec<Stopped>, ProofError> {
    let scale = Scale { studies: scale.studies / 4, ..scale };
    let looks = Looks::Every(Spending::Planned { blocks: STOPPED_BLOCKS });
    let mut rows = Vec::new();
    for (row, noise) in [Noise::Lognormal, Noise::HeavyTails, Noise::ByBlock].into_iter().enumerate() {
        for (column, percent) in [1.0, 2.0, 4.0].into_iter().enumerate() {
            let plan = Plan::single(STOPPED_BLOCKS).slower_by(percent);
            let found = each(scale, 780 + 4 * row + column, |generator| {
                let seen = decided(&contrast(&plan, noise, generator)?, looks);
                let wide = |interval: Interval| interval.high - interval.low;
                let interval = looks.interval(&seen, Asks::Difference, ALPHA);
                let fixed = wide(Looks::Once.interval(&seen, Asks::Difference, ALPHA));
                let early = seen.blocks() < STOPPED_BLOCKS;
                Ok((interval.contains(log_ratio(percent)), early.then(|| wide(interval) / fixed)))
            })?;
            let hits = found.iter().filter(|(holds, _)| *holds).count();
            let share = Share { hits, studies: scale.studies };
            let widths: Vec<f64> = found.iter().filter_map(|(_, width)| *width).collect();
            rows.push(Stopped { noise, percent, share, width: plumb_units::median(&widths) });
        }
    }
    Ok(rows)
}

/// Returns the blocks up to the first at which a difference is proved.
fn decided(whole: &Contrast, looks: Looks) -> Contrast {
    let Looks::Every(spending) = looks else { return whole.clone() };
    match plumb_proof::sequential::crossing(whole, 0.0, ALPHA, spending) {
        Some(crossing) => whole.first(crossing.block),
        None => whole.clone(),
    }
}

pub(super) fn power(scale: Scale) -> Result<Vec<Power>, ProofError> {
    let scale = Scale { studies: scale.studies / 2, ..scale };
    let mut rows = Vec::new();
    for (row, (percent, deviation, claims, wanted)) in [
        (5.0, PAIR_DEVIATION, 1, Some(6)),
        (2.0, PAIR_DEVIATION, 1, Some(24)),
        (5.0, PAIR_DEVIATION, 4, Some(7)),
        (2.0, PAIR_DEVIATION, 4, Some(28)),
        (5.0, 0.08, 1, Some(28)),
    ]
    .into_iter()
    .enumerate()
    {
        for (column, noise) in [Noise::Lognormal, Noise::HeavyTails, Noise::Bursts].into_iter().enumerate() {
            let clean = noise == Noise::Lognormal;
            let plan =
                |blocks: usize| Plan::many(claims, blocks).slower_by(percent).with_deviation(deviation);
            let blocks = fewest(|blocks| {
                let found = count(scale, 800 + 10 * row + column, |generator| {
                    let answers = plan(blocks).answers(noise, generator)?;
                    Ok(answers[0].differs())
                })?;
                Ok(found.found() >= POWER)
            })?;
            let wanted = wanted.filter(|_| clean);
            rows.push(Power { percent, deviation: 100.0 * deviation, claims, noise, blocks, wanted });
        }
    }
    Ok(rows)
}

pub(super) fn curves(scale: Scale) -> Result<Vec<Curve>, ProofError> {
    let scale = Scale { studies: scale.studies / 2, ..scale };
    let mut curves = Vec::new();
    for (row, percent) in [5.0, 2.0].into_iter().enumerate() {
        for (column, noise) in [Noise::Lognormal, Noise::HeavyTails].into_iter().enumerate() {
            let mut points = Vec::new();
            for (place, blocks) in [6, 7, 8, 10, 12, 16, 20, 24, 28, 32, 40].into_iter().enumerate() {
                let plan = Plan::single(blocks).slower_by(percent);
                let found = count(scale, 950 + 24 * row + 12 * column + place, |generator| {
                    let contrast = contrast(&plan, noise, generator)?;
                    Ok(randomisation::tails(&contrast, 0.0).two_sided() <= ALPHA)
                })?;
                points.push((blocks, found));
            }
            curves.push(Curve { percent, noise, points });
        }
    }
    Ok(curves)
}

/// Returns the fewest blocks that are enough. A binary search suffices, because
/// power grows with the blocks.
fn fewest(enough: impl Fn(usize) -> Result<bool, ProofError>) -> Result<Option<usize>, ProofError> {
    let (mut low, mut high) = (6, 12);
    while !enough(high)? {
        if high >= BLOCKS_MAX {
            return Ok(None);
        }
        (low, high) = (high + 1, (2 * high).min(BLOCKS_MAX));
    }
    while low < high {
        let middle = (low + high) / 2;
        if enough(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(Some(low))
}

pub(super) fn savings(scale: Scale) -> Result<Vec<Saving>, ProofError> {
    let scale = Scale { studies: scale.studies / 2, ..scale };
    let mut rows = Vec::new();
    for (row, sized_for) in [5.0, 2.0, 1.5].into_iter().enumerate() {
        let cell = 900 + 10 * row;
        let found = |blocks: usize| {
            let plan = Plan::single(blocks).slower_by(sized_for);
            let proved = count(scale, cell, |generator| {
                let answer =
                    single(&contrast(&plan, Noise::Lognormal, generator)?, Asks::Difference, Looks::Once);
                Ok(answer.is_some_and(|answer| answer.differs()))
            })?;
            Ok(proved.found() >= POWER)
        };
        let Some(fixed) = fewest(found)? else { continue };
        let enough = |planned: usize| Ok(trial(scale, cell, sized_for, planned)?.1.found() >= POWER);
        let (mut low, mut high) = (fixed, 2 * fixed);
        while low < high {
            let middle = (low + high) / 2;
            if enough(middle)? { high = middle } else { low = middle + 1 }
        }
        for (column, factor) in [1.0, 1.5, 2.0].into_iter().enumerate() {
            let percent = factor * sized_for;
            let (mean_blocks, decided) = trial(scale, cell + 1 + column, percent, low)?;
            rows.push(Saving { sized_for, percent, fixed, planned: low, mean_blocks, decided });
        }
    }
    Ok(rows)
}

/// Returns the mean blocks of a study that may stop, and the share that proves its difference.
fn trial(scale: Scale, cell: usize, percent: f64, planned: usize) -> Result<(f64, Share), ProofError> {
    let plan = Plan::single(planned).slower_by(percent);
    let spending = Spending::Planned { blocks: planned };
    let crossings = each(scale, cell, |generator| {
        let whole = contrast(&plan, Noise::Lognormal, generator)?;
        Ok(plumb_proof::sequential::crossing(&whole, 0.0, ALPHA, spending))
    })?;
    let spent = crossings.iter().map(|crossing| crossing.map_or(planned, |crossing| crossing.block));
    let decided = Share { hits: crossings.iter().flatten().count(), studies: scale.studies };
    Ok((spent.sum::<usize>() as f64 / scale.studies.max(1) as f64, decided))
}

impl Power {
    pub(super) fn goal(&self) -> Option<Goal> {
        let wanted = self.wanted?;
        Some(Goal {
            text: format!(
                "{}% at s_d {}%, {} claim{}, in {wanted} blocks",
                self.percent,
                self.deviation,
                self.claims,
                if self.claims == 1 { "" } else { "s" }
            ),
            found: self.blocks.map_or("not within 90".to_string(), |blocks| format!("{blocks} blocks")),
            reached: Reached::when(self.blocks.is_some_and(|blocks| blocks <= wanted)),
        })
    }
}

impl Saving {
    pub(super) fn goal(&self) -> Option<Goal> {
        let share = self.mean_blocks / self.fixed as f64;
        (self.fixed >= 24 && self.percent == self.sized_for).then(|| Goal {
            text: format!("at most 60% of the fixed blocks, sized for {}% and true", self.sized_for),
            found: format!("{:.0}%", 100.0 * share),
            reached: Reached::when(share <= 0.6),
        })
    }
}

impl Stopped {
    pub(super) fn goal(&self) -> Goal {
        let Self { noise, percent, share, width } = self;
        let noise = noise.name();
        Goal {
            text: format!("after a stop, coverage 94.5% and width 1.15 times the fixed: {percent}%, {noise}"),
            found: format!("{:.1}%, {width:.2} times", 100.0 * share.found()),
            reached: Reached::when(share.found() >= 0.945 && *width <= 1.15),
        }
    }
}
