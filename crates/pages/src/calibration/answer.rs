//! The answer of a calibration: reads and commits of the device, fitness, or what to measure again.

use super::{derived, number};
use plumb_calibrate::Calibration;
use plumb_report::{Headline, ReportAnswer};

pub(super) fn answer(calibration: &Calibration, doubts: &[String]) -> ReportAnswer {
    let environment = &calibration.environment;
    let words = derived::words(calibration);
    let of = |question: &str| words.iter().find(|(name, _)| *name == question).map(|(_, text)| text.as_str());
    let found: Vec<&str> = ["Reads", "Commits", "Scans"].into_iter().filter_map(of).take(2).collect();
    let figures = calibration.figures.iter().take(2);
    let named = figures.map(|figure| {
        format!("{} {} {}", figure.kind.name(), number(figure.estimate.median), figure.kind.unit())
    });
    let word = Calibration::word(doubts);
    let advice = match (doubts.is_empty(), of("Fit for")) {
        (true, Some(fit)) => format!("fit for {}", fit.split(':').next().unwrap_or(fit)),
        (true, None) => String::new(),
        (false, _) => "measure again before a setting rests on it".to_string(),
    };
    ReportAnswer {
        asked: format!("{} on {}", environment.path, environment.device),
        found: match found.is_empty() {
            true => named.collect::<Vec<_>>().join("; "),
            false => found.join("; "),
        },
        sure: doubts.first().map_or(word.to_string(), |doubt| format!("{word}: {doubt}")),
        advice,
        lines: words.iter().map(line).collect(),
    }
}

fn line((question, text): &(&'static str, String)) -> Headline {
    Headline { name: (*question).to_string(), value: text.clone(), aside: String::new() }
}
