//! Whether to believe a calibration: one line, always in the same place.
//!
//! It follows from the record and is not stored in it. A calibration is settled when every main figure is, no other
//! process used the device, and nothing but the device answered reads; anything else leaves it in doubt, with the
//! reasons.

use super::measured;
use plumb_calibrate::{AnswerSource, Calibration, TaskResult, Warning};
use plumb_io::DirectIo;
use plumb_report::State;
use plumb_report::table::Tone;

/// Settled without a reason against it.
pub(super) fn state(reasons: &[String]) -> State {
    let (word, tone) = if reasons.is_empty() { ("SETTLED", Tone::Good) } else { ("IN DOUBT", Tone::Open) };
    State { of: "Calibration".to_string(), word: word.to_string(), tone }
}

/// What the state rests on.
pub(super) fn basis(calibration: &Calibration) -> String {
    let settled = calibration.figures.iter().filter(|figure| figure.estimate.settled).count();
    let from_device = measured(calibration).filter(|result| result.answer.source == AnswerSource::Device);
    format!(
        "{settled} of {} main figures settled, the device answered {} of {} points",
        calibration.figures.len(),
        from_device.count(),
        measured(calibration).count()
    )
}

/// What speaks against it, a sentence each.
pub(super) fn reasons(calibration: &Calibration) -> Vec<String> {
    let mut reasons = Vec::new();
    if !calibration.environment.direct {
        reasons.push("all requests went through the page cache".to_string());
    }
    let other_load = |warning: &&Warning| matches!(warning, Warning::OtherLoad { .. });
    reasons.extend(calibration.warnings.iter().find(other_load).map(ToString::to_string));
    let unsettled = calibration.figures.iter().filter(|figure| !figure.estimate.settled);
    let unsettled: Vec<&str> = unsettled.map(|figure| figure.kind.name()).collect();
    if !unsettled.is_empty() {
        reasons.push(format!("not settled: {}", unsettled.join("; ")));
    }
    for (source, what) in [
        (AnswerSource::PageCache, "the page cache answered part of"),
        (AnswerSource::HostCacheSuspected, "a cache beneath this machine may have answered"),
    ] {
        // A write that was to end in the page cache is no surprise there.
        let unexpected =
            |result: &&TaskResult| result.answer.source == source && result.direct_io() == DirectIo::Required;
        let found: Vec<&TaskResult> = measured(calibration).filter(unexpected).collect();
        if let Some(first) = found.first() {
            let points =
                if found.len() == 1 { "1 point".to_string() } else { format!("{} points", found.len()) };
            reasons.push(format!("{what} {points}, among them {}: {}", first.task, first.answer.reason));
        }
    }
    reasons
}
