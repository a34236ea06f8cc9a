//! Several figures in one table: a single step, whose intervals hold together.
//!
//! Each of m figures is tested at alpha / m (Bonferroni), so that tests and intervals agree, and
//! all intervals hold together. `family` judges a study's claims: it steps down (Holm 1979), and
//! tests more than one hypothesis for each claim.

/// Result of the step for one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Smallest error of the table at which the figure would be proved to differ.
    pub adjusted_p: f64,
    /// Comparison of p with the level.
    pub outcome: Outcome,
    /// Two-sided level of the test and of the interval.
    pub level: f64,
}

/// Decision of the step for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// p is at most the level, so the figure differs.
    Proved,
    /// p is above the level, so no difference is stated.
    NotProved,
}

/// Tests each figure at alpha / m.
pub fn single_step(p_values: &[f64], alpha: f64) -> Vec<Step> {
    let level = alpha / p_values.len().max(1) as f64;
    let step = |p: &f64| {
        let outcome = if *p <= level { Outcome::Proved } else { Outcome::NotProved };
        // p * m may be a rounding error above alpha.
        let most = if outcome == Outcome::Proved { alpha } else { 1.0 };
        let adjusted_p = (p * p_values.len() as f64).min(most);
        Step { adjusted_p, outcome, level }
    };
    p_values.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_tested_at_its_share_and_says_so() {
        let steps = single_step(&[0.01, 0.02, 0.05 / 3.0], 0.05);
        let proved: Vec<bool> = steps.iter().map(|step| step.outcome == Outcome::Proved).collect();
        assert_eq!(proved, [true, false, true]);
        assert!(steps.iter().all(|step| (step.adjusted_p <= 0.05) == (step.outcome == Outcome::Proved)));
        assert!(single_step(&[], 0.05).is_empty());
    }
}
