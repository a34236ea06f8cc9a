//! Tools that print lines: what the device did (iostat, sar, collectl, iosnoop, biosnoop), what a
//! benchmark measured (pgbench, ORION, CALIBRATE_IO), and what a call did (traces, DTrace).
//!
//! | file | formats | tried on |
//! |---|---|---|
//! | `device` | iostat and its JSON, sar -d, sadf, collectl -sD | sysstat 12.5, collectl 3 |
//! | `snoop` | iosnoop, biosnoop | DTraceToolkit, bcc |
//! | `benchmark` | pgbench, sysbench, ORION, CALIBRATE_IO, v$iostat_file | pgbench 15, ORION 11.2 |
//! | `trace` | 10046 traces | none: by its documentation |
//! | `dtrace` | flows of calls, aggregations, `time` | Solaris 10 |
//!
//! Other versions are read by their headings and are untried: sysstat 9 to 11, sar, sadf, JSON of
//! iostat, perf-tools' iosnoop, biosnoop.bt, sysbench, pgbench 12 and 18, ORION 11.1 and 12.2.

mod benchmark;
pub(crate) mod device;
mod dtrace;
pub(crate) mod lines;
mod snoop;
mod trace;

use crate::figure::sheet::{Figure, added};
use crate::reader::{Reader, joined};
use plumb_record::ImportedFigure;
use plumb_units::ValueRange;

/// The readers of the family.
pub const READERS: [Reader; 15] =
    joined(&[&device::READERS, &snoop::READERS, &benchmark::READERS, &[trace::READER], &dtrace::READERS]);

/// The figure of the range that the sums of both sides give, such as bytes over requests.
pub(super) fn quotient(name: String, unit: &str, [sum, count]: [&[Figure]; 2]) -> Option<ImportedFigure> {
    let all = |figures: &[Figure]| {
        let range = added(figures);
        (range, figures.iter().map(|figure| figure.value).sum::<f64>())
    };
    let ((range, total), (counts, many)) = (all(sum), all(count));
    derived(name, unit, sum.first()?.line, total / many, range.over(counts)?)
}

/// A figure that no report prints: its line is that of the first figure that it follows from.
pub(super) fn derived(
    name: String,
    unit: &str,
    line: u32,
    value: f64,
    range: ValueRange,
) -> Option<ImportedFigure> {
    let (text, unit) = ("derived".to_string(), unit.to_string());
    let ValueRange { low, high } = range;
    value.is_finite().then_some(ImportedFigure { name, text, line, unit, value, low, high })
}
