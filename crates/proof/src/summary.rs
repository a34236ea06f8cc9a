//! Means, medians, ranks and the normal distribution, shared by several modules.

/// Returns the arithmetic mean; 0 for no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Returns the sample variance with n-1; 0 for fewer than two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Returns twice the rank of each value, 2 for the smallest; equal values share the mean of their
/// ranks, which doubling keeps an integer.
pub(crate) fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut by_value: Vec<usize> = (0..values.len()).collect();
    by_value.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut start = 0;
    while start < by_value.len() {
        let mut end = start + 1;
        while end < by_value.len() && values[by_value[end]] == values[by_value[start]] {
            end += 1;
        }
        // Ranks start+1 ..= end have the mean (start + 1 + end) / 2.
        by_value[start..end].iter().for_each(|&index| ranks[index] = start + 1 + end);
        start = end;
    }
    ranks
}

/// Returns the distribution function of the standard normal, by the complementary error function of
/// Numerical Recipes (Press et al. 1992); relative error below 1.2e-7.
pub(crate) fn normal_probability(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let series = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
    ];
    let sum = series.iter().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = 0.5 * t * (-z * z - 1.265_512_23 + t * sum).exp();
    if x >= 0.0 { 1.0 - tail } else { tail }
}

/// Returns the quantile of the standard normal, by bisection of `normal_probability`. `probability`
/// lies strictly between 0 and 1.
#[must_use]
pub fn normal_quantile(probability: f64) -> f64 {
    assert!(probability > 0.0 && probability < 1.0, "no quantile at {probability}");
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_probability(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Returns the quantile to 4.5e-4, by a rational approximation (Abramowitz, Stegun 1964, 26.2.23),
/// for scores that are rounded anyway.
pub(crate) fn normal_score(probability: f64) -> f64 {
    let t = (-2.0 * probability.min(1.0 - probability).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let size = t - above / below;
    if probability < 0.5 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, expected) in [(0.975, 1.959_964), (0.95, 1.644_854), (0.8, 0.841_621), (0.5, 0.0)] {
            assert!((normal_quantile(probability) - expected).abs() < 2e-6, "{probability}");
        }
        let error = |probability: f64| (normal_score(probability) - normal_quantile(probability)).abs();
        assert!((1..200).all(|index| error(f64::from(index) / 200.0) < 5e-4));
        assert!((normal_probability(-1.0) - 0.158_655).abs() < 1e-6);
    }

    #[test]
    fn ties_share_the_mean_rank() {
        assert_eq!(doubled_ranks(&[3.0, 1.0, 3.0, 2.0]), [7, 2, 7, 4]);
        assert_eq!(variance(&[1.0, 3.0]), 2.0);
    }
}
