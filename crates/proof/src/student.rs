//! Student's distribution: the distance of a mean of few values from 0, in its own standard errors.
//!
//! The tail is a regularised incomplete beta function, P(|T| > t) = I(x; f/2, 1/2) with
//! x = f / (f + t^2), computed by its continued fraction (Abramowitz, Stegun 1964, 26.5.8) in the
//! manner of Lentz (1976). The logarithm of the gamma function is that of Lanczos (1964) with six
//! terms, to ten digits.

use crate::interval::Interval;
use crate::summary::{mean, variance};

/// Most terms of the continued fraction, which needs about sqrt(max(a, b)) of them.
const TERMS_MAX: usize = 400;

/// Returns P(T > `t`) with `freedom` degrees of freedom, which need not be whole; above 0.
pub fn upper_tail(t: f64, freedom: f64) -> f64 {
    let half = incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)) / 2.0;
    if t >= 0.0 { half } else { 1.0 - half }
}

/// Returns the `t` that is exceeded with this probability, between 0 and one half, by bisection.
pub fn upper_quantile(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, freedom) > probability && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if upper_tail(middle, freedom) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Returns the value below which a ratio of two variances of equal expectation lies with this
/// probability (Fisher, Snedecor), by bisection.
pub(crate) fn ratio_of_variances(probability: f64, above: f64, below: f64) -> f64 {
    let share =
        |ratio: f64| incomplete_beta(above / 2.0, below / 2.0, above * ratio / (above * ratio + below));
    let (mut low, mut high) = (0.0, 1.0);
    while share(high) < probability && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if share(middle) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the mean of some values over its standard error; infinite if all values are the
/// same number other than 0.
pub fn ratio(values: &[f64]) -> f64 {
    let centre = mean(values);
    let error = (variance(values) / values.len().max(1) as f64).sqrt();
    if centre == 0.0 { 0.0 } else { centre / error }
}

/// Returns the interval of a mean at a two-sided level; none for fewer than two values.
pub fn interval(values: &[f64], level: f64) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let reach = upper_quantile(level / 2.0, count - 1.0) * (variance(values) / count).sqrt();
    let centre = mean(values);
    Some(Interval { low: centre - reach, high: centre + reach })
}

fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..TERMS_MAX {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for step in [even, odd] {
            d = 1.0 / away(1.0 + step * d);
            c = away(1.0 + step / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

fn log_gamma(x: f64) -> f64 {
    let coefficients = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let base = x + 5.5;
    let series = coefficients.iter().enumerate().fold(1.000_000_000_190_015, |sum, (index, coefficient)| {
        sum + coefficient / (x + 1.0 + index as f64)
    });
    (x + 0.5) * base.ln() - base + (2.506_628_274_631_000_5 * series / x).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, probability, expected) in [
            (1.0, 0.025, 12.706_2),
            (4.0, 0.025, 2.776_45),
            (5.0, 0.005, 4.032_14),
            (10.0, 0.05, 1.812_46),
            (30.0, 0.025, 2.042_27),
            (1000.0, 0.025, 1.962_34),
        ] {
            let found = upper_quantile(probability, freedom);
            assert!((found - expected).abs() < 1e-4 * expected, "{freedom} {probability}: {found}");
            assert!((upper_tail(found, freedom) - probability).abs() < 1e-9);
            assert!((upper_tail(-found, freedom) - (1.0 - probability)).abs() < 1e-9);
        }
    }

    #[test]
    fn ratios_of_variances_are_those_of_the_tables() {
        for (above, below, expected) in [(5.0, 5.0, 7.146), (10.0, 10.0, 3.717), (2.0, 20.0, 4.461)] {
            let found = ratio_of_variances(0.975, above, below);
            assert!((found - expected).abs() < 2e-3, "{above} {below}: {found}");
        }
    }

    #[test]
    fn equal_values_are_infinitely_far_from_nothing() {
        assert_eq!(ratio(&[2.0, 2.0, 2.0]), f64::INFINITY);
        assert_eq!(ratio(&[0.0, 0.0]), 0.0);
        assert_eq!(upper_tail(f64::INFINITY, 3.0), 0.0);
        assert!((ratio(&[1.0, 2.0, 3.0]) - 2.0 * 3f64.sqrt()).abs() < 1e-12);
    }
}
