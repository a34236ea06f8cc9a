//! State of a calibration, in one line at a fixed place.
//!
//! It follows from [`Calibration::doubts`]: settled, or in doubt with the reasons.

use super::measured;
use plumb_calibrate::{AnswerSource, Calibration};
use plumb_report::State;
use plumb_report::table::Tone;

/// Settled without reasons, otherwise in doubt.
pub(super) fn state(reasons: &[String]) -> State {
    let tone = if reasons.is_empty() { Tone::Good } else { Tone::Open };
    State { of: "Calibration".to_string(), word: Calibration::word(reasons).to_string(), tone }
}

/// Returns the counts behind the state.
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
