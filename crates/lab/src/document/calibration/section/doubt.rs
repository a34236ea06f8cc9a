//! What casts doubt: what did not settle, what was warned of, and what answered each point.

use super::{interval, median, number};
use crate::document::calibration::context::{CalibrationContext, MeasuredPoint, Source};
use plumb_report::Section;
use plumb_report::format::{Figure, Percent};
use plumb_report::table::{Cell, Column, Facts, Table, Tone};

/// Main figures and points whose repeats disagree.
pub(super) fn unsettled(context: &CalibrationContext) -> Section {
    let mut table = Table::new(vec![
        Column::wrapped("What", 44),
        Column::number("Median"),
        Column::text("Interval"),
        Column::wrapped("Why it does not count as settled", 60),
    ]);
    let figures = context
        .figures
        .iter()
        .map(|figure| (format!("{} ({})", figure.name.trim(), figure.unit), &figure.estimate));
    let points = context.points.iter().map(|point| (format!("{} (requests/s)", point.what), &point.iops));
    for (what, estimate) in figures.chain(points) {
        if let Some(reason) = &estimate.unsettled {
            let interval = interval(estimate);
            table.row(vec![Cell::from(what), median(estimate), Cell::from(interval), Cell::from(reason)]);
        }
    }
    let section = Section::front("unsettled", "What Did Not Settle");
    if table.rows.is_empty() { section.note("everything settled") } else { section }.table(table)
}

/// The warnings, all of them.
pub(super) fn warnings(context: &CalibrationContext) -> Option<Section> {
    let mut facts = Facts::default();
    for (index, warning) in context.warnings.iter().enumerate() {
        facts.add((index + 1).to_string(), warning);
    }
    (!facts.rows.is_empty()).then(|| Section::front("warnings", "Warnings").facts(facts))
}

/// What the device or the machine cannot do.
pub(super) fn refused(context: &CalibrationContext) -> Option<Section> {
    let mut table =
        Table::new(vec![Column::wrapped("Point", 44), Column::wrapped("Why it was not measured", 60)]);
    for refused in &context.refused {
        table.row(vec![Cell::from(&refused.what), Cell::from(&refused.why)]);
    }
    (!table.rows.is_empty()).then(|| Section::front("refused", "What Was Not Measured").table(table))
}

/// Cache or device, point by point.
pub(super) fn points(context: &CalibrationContext) -> Section {
    let mut table = Table::new(vec![
        Column::wrapped("Point", 44),
        Column::number("Requests/s"),
        Column::text("Interval"),
        Column::number("p50 us"),
        Column::number("p99 us"),
        Column::number("CPU us\na request"),
        Column::number("% of bytes\nat device"),
        Column::text("Answered by"),
        Column::wrapped("How that is known", 44),
    ]);
    for point in &context.points {
        table.row(cells(point));
    }
    Section::detail("points", "Every Point: Cache or Device")
        .note("% of bytes at device: of those asked for, as the kernel counts them outside this program")
        .note("what only its speed gives away is suspected, not known")
        .table(table)
}

fn cells(point: &MeasuredPoint) -> Vec<Cell> {
    let share = point.device_share.map(|share| Percent { part: share, whole: 1.0 });
    let tone = match point.source {
        Source::Device => Tone::Good,
        Source::PageCache if !point.direct => Tone::Plain,
        Source::PageCache => Tone::Bad,
        Source::HostCacheSuspected | Source::Unknown => Tone::Open,
    };
    vec![
        Cell::from(&point.what),
        median(&point.iops),
        Cell::from(interval(&point.iops)),
        Cell::from(number(point.p50_us)),
        Cell::from(number(point.p99_us)),
        Cell::from(point.cpu_us.map(number).unwrap_or_default()),
        Cell::from(share.figure()),
        Cell::from(point.source.name()).with_tone(tone),
        Cell::from(&point.reason),
    ]
}

impl Source {
    /// The name as reports print it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Source::Device => "device",
            Source::PageCache => "page cache",
            Source::HostCacheSuspected => "host cache suspected",
            Source::Unknown => "unknown",
        }
    }
}
