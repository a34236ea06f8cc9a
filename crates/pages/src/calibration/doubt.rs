//! Doubts: unsettled figures, warnings, and the source of each point's answers.

use super::{interval, measured, median, median_of, number};
use plumb_calibrate::{AnswerSource, Calibration, Estimate, TaskResult};
use plumb_io::DirectIo;
use plumb_report::format::{Figure, Percent};
use plumb_report::table::{Cell, Column, Facts, Table, Tone};
use plumb_report::{Section, cells, table};

/// Main figures and points whose repeats disagree.
pub(super) fn unsettled(calibration: &Calibration) -> Section {
    let mut table = Table::new(vec![
        Column::wrapped("What", 44),
        Column::number("Median"),
        Column::text("Interval"),
        Column::wrapped("Why it does not count as settled", 60),
    ]);
    let figures = calibration
        .figures
        .iter()
        .map(|figure| (format!("{} ({})", figure.kind.name(), figure.kind.unit()), figure.estimate.clone()));
    let points = measured(calibration)
        .filter_map(|result| Some((format!("{} (requests/s)", result.task), result.iops(0)?)));
    for (what, estimate) in figures.chain(points) {
        if let Some(reason) = &estimate.reason {
            let interval = interval(&estimate);
            table.row(cells![what, median(&estimate), interval, reason]);
        }
    }
    let section = Section::front("unsettled", "What Did Not Settle");
    if table.rows.is_empty() { section.note("everything settled") } else { section }.table(table)
}

/// Lists all warnings of the calibration.
pub(super) fn warnings(calibration: &Calibration) -> Option<Section> {
    let mut facts = Facts::default();
    for (index, warning) in calibration.warnings.iter().enumerate() {
        facts.add((index + 1).to_string(), warning.to_string());
    }
    (!facts.rows.is_empty()).then(|| Section::front("warnings", "Warnings").facts(facts))
}

/// Lists points that the device or the machine cannot measure.
pub(super) fn refused(calibration: &Calibration) -> Option<Section> {
    let table = table!(refused in &calibration.refused; [
        wrapped(44) "Point" => refused.task.to_string(),
        wrapped(60) "Why it was not measured" => &refused.why,
    ]);
    (!table.rows.is_empty()).then(|| Section::front("refused", "What Was Not Measured").table(table))
}

/// Shows for each point if a cache or the device answered.
pub(super) fn points(calibration: &Calibration) -> Section {
    let mut table = Table::new(vec![
        Column::wrapped("Point", 28),
        Column::number("Requests/s"),
        Column::text("Interval"),
        Column::number("p50 us"),
        Column::number("p99 us"),
        Column::number("CPU us\na request"),
        Column::number("% of bytes\nat device"),
        Column::text("Answered by"),
        Column::wrapped("How that is known", 24),
    ]);
    for result in measured(calibration) {
        table.row(cells(result));
    }
    Section::detail("points", "Every Point: Cache or Device")
        .note("% of bytes at device: of those asked for, as the kernel counts them outside this program")
        .note("what only its speed gives away is suspected, not known")
        .table(table)
}

fn cells(result: &TaskResult) -> Vec<Cell> {
    let share = result.device_share().map(|share| Percent { part: share, whole: 1.0 });
    let answer = &result.answer;
    let tone = match answer.source {
        AnswerSource::Device => Tone::Good,
        AnswerSource::PageCache if result.direct_io() == DirectIo::Off => Tone::Plain,
        AnswerSource::PageCache | AnswerSource::CacheBelow => Tone::Bad,
        AnswerSource::HostCacheSuspected | AnswerSource::Unknown => Tone::Open,
    };
    let iops = result.iops(0);
    // Times and costs have no mark: the rate's shows if the repeats agree.
    let plain =
        |estimate: Option<Estimate>| estimate.map_or(Cell::default(), |of| Cell::from(number(of.median)));
    cells![
        result.task.to_string(),
        median_of(iops.clone()),
        iops.as_ref().map(interval).unwrap_or_default(),
        plain(result.latency_micros(0, 0.5)),
        plain(result.latency_micros(0, 0.99)),
        plain(result.cpu_micros()),
        share.figure(),
        Cell::from(answer.source.name()).with_tone(tone),
        &answer.reason
    ]
}
