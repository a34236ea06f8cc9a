//! Steps of level in a series of reports, as of a database's load over days.
//!
//! Loads resemble the day before, grow, and repeat each week. A shuffle of the days destroys all of
//! that, so by shuffles a steady growth is a step in 98% of series, and a load that resembles the
//! day before (autocorrelation 0.8) in 36%. So a step must explain more than each of these:
//!
//! ```text
//! without   y = level (+ day of the week) + r                r = rho r' + e
//! step      the same + shift from report k on
//! growth    the same + growth t
//! found     2 (log-likelihood of step - without), each at its best rho, the largest over k
//! p         share of series of the first model with as much, at the rho that it was fitted with
//! ```
//!
//! A step is stated if p is small and the step fits better than the growth. Growth is no part of
//! the first model: it explains three quarters of a step in the middle, so that 60 reports with a
//! noise of 15% showed a step of 30% in a third of series.
//!
//! The found value does not depend on level or week, so the drawn series have none. Rho is
//! estimated too low in short series; the draws add its usual bias (Marriott, Pope 1954). A true
//! step makes the rho without it too high, which costs power and no error.
//!
//! A day of the week counts if three weeks are known and it explains more than chance. After a step
//! both parts are searched again.
//!
//! Rejected: Pettitt's test of `change_point`, whose shuffles suit blocks of a study, because their
//! order within a study was drawn.
//!
//! Limits: reports are taken as equally far apart, and a week as seven of them. A random walk makes
//! steps that no series of its length tells from others.

use crate::change_point::{ChangePoint, SEGMENT_MIN};
use crate::random::Generator;
use plumb_units::median;

/// Fewest reports in which a step is searched.
pub const REPORTS_MIN: usize = 14;
/// Largest p of a step.
pub const STEP_P: f64 = 0.05;
/// Smallest step, a log-ratio.
pub const STEP_MIN: f64 = 0.048_790_164_169_432;
const DRAWS: usize = 399;
/// Correlations of neighbours that are tried.
const RHOS: [f64; 9] = [0.0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.88, 0.94, 0.98];
/// Log-likelihood by which a step must exceed growth, because its place is free: without it a
/// tenth of 28 growing reports had a step.
const LIKELIER: f64 = 1.0;
const WEEK: usize = 7;
/// Ratio of variances from which on the days of a week differ: 1% of F with 6 and 20 degrees.
const WEEK_F: f64 = 3.9;
/// Mean likelihood ratio of a step to none with which four of five series show it ...
const USUAL_RATIO: f64 = 22.0;
/// ... and of a step to the growth that is most like it.
const RATIO_TO_GROWTH: f64 = 3.0;

/// Finds the steps of a series of logarithms, in order.
pub fn steps(series: &[f64], seed: u64) -> Vec<ChangePoint> {
    let mut generator = Generator::new(seed);
    let mut parts = vec![(0, series.len())];
    let mut found = Vec::new();
    while let Some((start, end)) = parts.pop() {
        if let Some(step) = step(&series[start..end], &mut generator) {
            parts.push((start, start + step.index));
            parts.push((start + step.index, end));
            found.push(ChangePoint { index: start + step.index, ..step });
        }
    }
    found.sort_unstable_by_key(|step| step.index);
    found
}

/// Returns about how many reports like these show a step of a log-ratio in their middle with the
/// usual power; `None` for too few to know.
pub fn reports_for(series: &[f64], shift: f64) -> Option<usize> {
    if series.len() < REPORTS_MIN {
        return None;
    }
    let models = models(series.len(), has_week(series));
    let (_, best) = models.iter().map(|model| (model.ratio(series), model)).fold(
        (f64::NEG_INFINITY, &models[0]),
        |(most, best), (ratio, model)| {
            if ratio.without > most { (ratio.without, model) } else { (most, best) }
        },
    );
    let variance = best.residual_variance(series) / (1.0 - best.rho).powi(2);
    // Of a step in the middle, its square over four is variance; growth leaves a quarter of that.
    let each = |part: f64| (shift * shift / part / variance.max(1e-12)).ln_1p();
    let reports = (USUAL_RATIO / each(4.0)).max(RATIO_TO_GROWTH / each(16.0));
    Some(reports.ceil().max(REPORTS_MIN as f64) as usize)
}

fn step(part: &[f64], generator: &mut Generator) -> Option<ChangePoint> {
    if part.len() < REPORTS_MIN {
        return None;
    }
    let models = models(part.len(), has_week(part));
    let found = best(&models, part);
    let shift = median(&part[found.index..]) - median(&part[..found.index]);
    if shift.abs() < STEP_MIN || !found.beats_growth {
        return None;
    }
    let count = part.len() as f64;
    let rho = (found.rho + (1.0 + 3.0 * found.rho) / count).min(0.99);
    let mut as_large = 1;
    for _ in 0..DRAWS {
        let series = correlated(part.len(), rho, generator);
        as_large += usize::from(best(&models, &series).ratio >= found.ratio);
        if as_large as f64 > STEP_P * (DRAWS + 1) as f64 {
            return None;
        }
    }
    let p = as_large as f64 / (DRAWS + 1) as f64;
    Some(ChangePoint { index: found.index, shift, p, steady: false })
}

/// Draws a series in which each value resembles the one before.
fn correlated(count: usize, rho: f64, generator: &mut Generator) -> Vec<f64> {
    let mut state = generator.normal() / (1.0 - rho * rho).sqrt();
    let next = |_| {
        let value = state;
        state = rho * state + generator.normal();
        value
    };
    (0..count).map(next).collect()
}

struct Best {
    index: usize,
    rho: f64,
    ratio: f64,
    beats_growth: bool,
}

/// Compares the best step with none, each at its own correlation.
fn best(models: &[Model], series: &[f64]) -> Best {
    let mut without = (f64::NEG_INFINITY, 0.0);
    let mut with = (f64::NEG_INFINITY, SEGMENT_MIN);
    let mut growth = f64::NEG_INFINITY;
    for model in models {
        let ratio = model.ratio(series);
        if ratio.without > without.0 {
            without = (ratio.without, model.rho);
        }
        if ratio.with > with.0 {
            with = (ratio.with, ratio.index);
        }
        growth = growth.max(ratio.growth);
    }
    let ratio = 2.0 * (with.0 - without.0);
    Best { index: with.1, rho: without.1, ratio, beats_growth: with.0 > growth + LIKELIER }
}

/// Log-likelihoods of a series at one correlation.
struct Ratio {
    without: f64,
    with: f64,
    growth: f64,
    index: usize,
}

/// Columns of a model at one correlation, orthonormal. Growth and the step of each report have
/// the base columns removed.
struct Model {
    rho: f64,
    base: Vec<Vec<f64>>,
    growth: Vec<f64>,
    steps: Vec<(usize, Vec<f64>)>,
}

fn models(count: usize, week: bool) -> Vec<Model> {
    RHOS.iter().map(|rho| Model::new(count, week, *rho)).collect()
}

/// Subtracts from each value its part of the one before.
fn whitened(series: &[f64], rho: f64) -> Vec<f64> {
    let first = series.first().map(|first| first * (1.0 - rho * rho).sqrt());
    first.into_iter().chain(series.windows(2).map(|two| two[1] - rho * two[0])).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Subtracts the parts of orthonormal columns.
fn less(mut column: Vec<f64>, base: &[Vec<f64>]) -> Vec<f64> {
    for own in base {
        let part = dot(&column, own);
        column.iter_mut().zip(own).for_each(|(value, own)| *value -= part * own);
    }
    column
}

/// Scales a column to length 1; `None` if nothing of it is left.
fn normed(column: Vec<f64>) -> Option<Vec<f64>> {
    let length = dot(&column, &column).sqrt();
    (length > 1e-6).then(|| column.into_iter().map(|value| value / length).collect())
}

impl Model {
    fn new(count: usize, week: bool, rho: f64) -> Self {
        let middle = count as f64 / 2.0;
        let mut columns: Vec<Vec<f64>> = vec![vec![1.0; count]];
        if week {
            let day = |day: usize| (0..count).map(|at| f64::from(u8::from(at % WEEK == day))).collect();
            columns.extend((1..WEEK).map(day));
        }
        let mut base: Vec<Vec<f64>> = Vec::new();
        for column in columns {
            base.extend(normed(less(whitened(&column, rho), &base)));
        }
        let step = |index: usize| {
            let column: Vec<f64> = (0..count).map(|at| f64::from(u8::from(at >= index))).collect();
            Some((index, normed(less(whitened(&column, rho), &base))?))
        };
        let steps = (SEGMENT_MIN..=count - SEGMENT_MIN).filter_map(step).collect();
        let growth: Vec<f64> = (0..count).map(|at| at as f64 / middle - 1.0).collect();
        let growth = normed(less(whitened(&growth, rho), &base)).unwrap_or_default();
        Self { rho, base, growth, steps }
    }

    fn residual(&self, series: &[f64]) -> Vec<f64> {
        less(whitened(series, self.rho), &self.base)
    }

    fn residual_variance(&self, series: &[f64]) -> f64 {
        let rest = self.residual(series);
        dot(&rest, &rest) / (rest.len() - self.base.len()) as f64
    }

    fn ratio(&self, series: &[f64]) -> Ratio {
        let rest = self.residual(series);
        let (count, whole) = (rest.len() as f64, dot(&rest, &rest));
        let of = |sum: f64| -count / 2.0 * sum.max(1e-18).ln() + (1.0 - self.rho * self.rho).ln() / 2.0;
        let by = |(index, step): &(usize, Vec<f64>)| (*index, dot(&rest, step).powi(2));
        let most = self.steps.iter().map(by).max_by(|one, two| one.1.total_cmp(&two.1));
        let (index, explained) = most.unwrap_or((SEGMENT_MIN, 0.0));
        let growth = dot(&rest, &self.growth).powi(2);
        Ratio { without: of(whole), with: of(whole - explained), growth: of(whole - growth), index }
    }
}

/// True if days of the week differ by more than chance.
fn has_week(series: &[f64]) -> bool {
    if series.len() < 3 * WEEK {
        return false;
    }
    // A step must not hide the week, nor be taken for one: differences of neighbours have neither.
    let changes: Vec<f64> = series.windows(2).map(|two| two[1] - two[0]).collect();
    let mean = changes.iter().sum::<f64>() / changes.len() as f64;
    let day = |day: usize| {
        let own: Vec<f64> = changes.iter().skip(day).step_by(WEEK).copied().collect();
        (own.iter().sum::<f64>() / own.len() as f64, own.len() as f64)
    };
    let days: Vec<(f64, f64)> = (0..WEEK).map(day).collect();
    let between: f64 = days.iter().map(|(own, count)| count * (own - mean).powi(2)).sum();
    let all: f64 = changes.iter().map(|change| (change - mean).powi(2)).sum();
    let freedom = changes.len().saturating_sub(WEEK) as f64;
    between / (WEEK - 1) as f64 > WEEK_F * (all - between).max(1e-18) / freedom
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns in how many of 40 series a step is stated.
    fn stated(make: impl Fn(&mut Generator) -> Vec<f64>) -> usize {
        let found = |seed: &u64| !steps(&make(&mut Generator::new(*seed)), 1).is_empty();
        (0..40u64).filter(found).count()
    }

    #[test]
    fn loads_that_grow_repeat_or_resemble_the_day_before_have_no_step() {
        let normal = |generator: &mut Generator| 0.15 * generator.normal();
        assert!(stated(|generator| (0..28).map(|_| normal(generator)).collect()) <= 3);
        let weekend = |at: usize| if at % 7 >= 5 { 0.4f64.ln() } else { 0.0 };
        let weekly = |generator: &mut Generator| (0..28).map(|at| weekend(at) + normal(generator)).collect();
        assert!(stated(weekly) <= 3);
        let growing = |generator: &mut Generator| {
            (0..28).map(|at| 0.01 * f64::from(at) + 0.05 * generator.normal()).collect()
        };
        assert!(stated(growing) <= 3);
        assert!(stated(|generator| scaled(correlated(28, 0.8, generator), 0.1)) <= 5);
    }

    #[test]
    fn a_step_of_a_third_is_found_where_it_is() {
        let stepped = |generator: &mut Generator| -> Vec<f64> {
            let level = |at: usize| if at >= 14 { 1.3f64.ln() } else { 0.0 };
            (0..28).map(|at| level(at) + 0.05 * generator.normal()).collect()
        };
        assert!(stated(stepped) >= 36);
        let found = steps(&stepped(&mut Generator::new(5)), 1);
        assert_eq!(found.iter().map(|step| step.index).collect::<Vec<_>>(), [14]);
        assert!((found[0].shift - 1.3f64.ln()).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn smaller_steps_take_more_reports() {
        let mut generator = Generator::new(3);
        let even: Vec<f64> = (0..28).map(|_| 0.05 * generator.normal()).collect();
        let needed = |percent: f64| reports_for(&even, (percent / 100.0f64).ln_1p()).unwrap();
        assert!(needed(15.0) > needed(30.0) && (18..=60).contains(&needed(15.0)), "{}", needed(15.0));
        assert_eq!(reports_for(&even[..9], 0.1), None);
    }

    fn scaled(series: Vec<f64>, by: f64) -> Vec<f64> {
        series.into_iter().map(|value| by * value).collect()
    }
}
