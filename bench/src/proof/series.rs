//! Simulated series of reports: how often a step is stated, where there is one and where not.

use super::rows::Bound;
use super::table::{Line, each};
use plumb_proof::random::Generator;
use plumb_proof::series::steps;

/// A law of the logarithms of a load over reports.
#[derive(Clone, Copy)]
struct Law {
    name: &'static str,
    reports: usize,
    /// Deviation of a report's noise.
    noise: f64,
    /// Correlation with the report before; 1 is a random walk.
    rho: f64,
    /// Growth from a report to the next, of a logarithm.
    growth: f64,
    /// Size of a step in the middle.
    step: f64,
    /// Logarithm of the load at weekends.
    weekend: f64,
    bound: Option<Bound>,
}

impl Law {
    fn draw(&self, generator: &mut Generator) -> Vec<f64> {
        let mut state = generator.normal();
        let fresh = if self.rho < 1.0 { (1.0 - self.rho * self.rho).sqrt() } else { 1.0 };
        let report = |at: usize| {
            state = self.rho * state + fresh * generator.normal();
            let step = if 2 * at >= self.reports { self.step } else { 0.0 };
            let weekend = if at % 7 >= 5 { self.weekend } else { 0.0 };
            self.noise * state + self.growth * at as f64 + step + weekend
        };
        (0..self.reports).map(report).collect()
    }
}

fn laws() -> Vec<Law> {
    let none = Some(Bound::AtMost(0.06));
    let plain = Law {
        name: "independent, 15%",
        reports: 28,
        noise: 0.15,
        rho: 0.0,
        growth: 0.0,
        step: 0.0,
        weekend: 0.0,
        bound: none,
    };
    let mut laws = Vec::new();
    for reports in [28, 60, 100] {
        let plain = Law { reports, ..plain };
        laws.push(plain);
        laws.push(Law { name: "weekends at 40%", weekend: 0.4f64.ln(), ..plain });
        laws.push(Law { name: "like the report before, 0.5", rho: 0.5, ..plain });
        laws.push(Law { name: "like the report before, 0.8", rho: 0.8, ..plain });
        let walk = Some(Bound::AtMost(0.1));
        laws.push(Law { name: "random walk of 5%", noise: 0.05, rho: 1.0, bound: walk, ..plain });
        laws.push(Law { name: "grows by 1% a report, 5%", noise: 0.05, growth: 0.01, ..plain });
    }
    let found = Some(Bound::AtLeast(0.95));
    for (name, reports, noise, step, bound) in [
        ("a step of 30%, noise 5%", 28, 0.05, 1.3f64, found),
        ("a step of 30%, noise 15%", 28, 0.15, 1.3, None),
        ("a step of 30%, noise 15%", 60, 0.15, 1.3, found),
        ("a step of 15%, noise 5%", 60, 0.05, 1.15, None),
    ] {
        laws.push(Law { name, reports, noise, step: step.ln(), bound, ..plain });
    }
    laws
}

/// Draws the series of each law and counts those with a step.
pub(super) fn lines(series: usize, seed: u64) -> anyhow::Result<Vec<Line>> {
    let line = |(cell, law): (usize, Law)| {
        let stated = each(series, seed, 2000 + cell, |seed| {
            anyhow::Ok(!steps(&law.draw(&mut Generator::new(seed)), 1).is_empty())
        })?;
        let what = "a step is stated".to_string();
        Ok(Line {
            name: law.name.to_string(),
            size: format!("{} reports", law.reports),
            what,
            ..Line::of(&stated, law.bound)
        })
    };
    laws().into_iter().enumerate().map(line).collect()
}
