//! Figures as pages and first lines show them: in a unit that suits their size.

use plumb_report::format::{Figure, Reading};

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * KB;
const GB: f64 = 1024.0 * MB;

/// Formats a value in a unit that suits its size.
pub(crate) fn scaled(value: f64, unit: &str) -> String {
    let (factor, unit) = match (unit, value.abs()) {
        ("s", size) if size < 1e-3 => (1e6, "us"),
        ("s", size) if size < 1.0 => (1e3, "ms"),
        // Reports, and the rest of this one, have multiples of 1024.
        ("bytes", size) if size >= GB => (1.0 / GB, "GB"),
        ("bytes", size) if size >= MB => (1.0 / MB, "MB"),
        ("bytes", size) if size >= 10.0 * KB => (1.0 / KB, "KB"),
        ("bytes/s", size) if size >= GB => (1.0 / GB, "GB/s"),
        ("bytes/s", size) if size >= MB => (1.0 / MB, "MB/s"),
        ("bytes/s", size) if size >= 10.0 * KB => (1.0 / KB, "KB/s"),
        (unit, _) => (1.0, unit),
    };
    format!("{} {unit}", Reading(value * factor).figure()).trim_end().to_string()
}
