//! Compares a calibration with an earlier one of the same device, in a few lines.

use super::summary::WIDTH;
use plumb_calibrate::{AGREEMENT_LIMIT, Agreement, Calibration, Disagreement};
use plumb_report::text::hanging;

/// Counts the figures that agree, and names the others by reason.
pub fn against(earlier: &Calibration, calibration: &Calibration) -> String {
    let mut compared = earlier.agreement(calibration);
    // Two zeros have no ratio.
    compared.retain(|figure| figure.ratio.is_finite());
    let agreed = compared.iter().filter(|figure| figure.agrees).count();
    let mut lines = vec![format!(
        "against the calibration of {}: {agreed} of {} figures within {:.0}%",
        earlier.environment.date,
        compared.len(),
        AGREEMENT_LIMIT * 1e2
    )];
    let mut reasons: Vec<Disagreement> = compared.iter().filter_map(|figure| figure.why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let of_reason = compared.iter().filter(|figure| figure.why == Some(reason));
        let ratio = |Agreement { kind, ratio, .. }: &Agreement| format!("{} {ratio:.2} times", kind.name());
        let ratios: Vec<String> = of_reason.map(ratio).collect();
        lines.extend(hanging("  ", &format!("{}: {}", reason.name(), ratios.join("; ")), WIDTH));
    }
    lines.join("\n") + "\n"
}
