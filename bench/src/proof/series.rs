//! Simulates series of reports, and counts those in which a step is stated.

use super::simulation::{Scale, Share, each};
use plumb_proof::random::Generator;
use plumb_proof::series::steps;
use std::fmt::Write as _;

/// A law of the logarithms of a load over reports.
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
    let plain = Law { name: "", reports: 28, noise: 0.15, rho: 0.0, growth: 0.0, step: 0.0, weekend: 0.0 };
    let mut laws = Vec::new();
    for reports in [28, 60, 100] {
        let plain = Law { reports, ..plain };
        laws.push(Law { name: "independent, sd 15%", ..plain });
        laws.push(Law { name: "weekends at 40%", weekend: 0.4f64.ln(), ..plain });
        laws.push(Law { name: "like the report before, 0.5", rho: 0.5, ..plain });
        laws.push(Law { name: "like the report before, 0.8", rho: 0.8, ..plain });
        laws.push(Law { name: "random walk of 5%", noise: 0.05, rho: 1.0, ..plain });
        laws.push(Law { name: "grows by 1% a report, sd 5%", noise: 0.05, growth: 0.01, ..plain });
    }
    for (name, reports, noise, step) in [
        ("a step of 30%, sd 5%", 28, 0.05, 1.3f64),
        ("a step of 30%, sd 15%", 28, 0.15, 1.3),
        ("a step of 30%, sd 15%", 60, 0.15, 1.3),
        ("a step of 15%, sd 5%", 28, 0.05, 1.15),
        ("a step of 15%, sd 5%", 60, 0.05, 1.15),
    ] {
        laws.push(Law { name, reports, noise, step: step.ln(), ..plain });
    }
    laws
}

/// Makes the series, and returns a table of rates.
pub(super) fn run(series: usize, seed: u64) -> anyhow::Result<String> {
    let mut text =
        format!("\n{:<52}{:>7}{:>18}\n", format!("Series, % of {series}"), "reports", "a step stated");
    for (cell, law) in laws().into_iter().enumerate() {
        let stated = each(Scale { studies: series, seed }, 2000 + cell, |generator| {
            anyhow::Ok(!steps(&law.draw(generator), 1).is_empty())
        })?;
        let share = Share { hits: stated.iter().filter(|stated| **stated).count(), studies: series };
        writeln!(text, "{:<52}{:>7}{share:>18}", law.name, law.reports)?;
    }
    Ok(text)
}
