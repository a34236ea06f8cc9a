//! Response and wait times as quantiles, with the counts behind them.

use super::events::ordered;
use plumb_events::LatencyHistogram;
use plumb_record::{Record, Response};
use plumb_report::format::{Count, Duration, PerSecond, Total};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, short_micros};
use plumb_report::table::{Cell, RowKind, Table};
use plumb_report::{Drawing, Section};
use plumb_units::Nanos;

/// Quantiles of the table, with their names.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];
/// Fewest durations above a quantile for which it is shown.
const ABOVE_MIN: f64 = 5.0;

const NOTES: [&str; 2] = [
    "within 3.2%, rounded up; blank where fewer than 5 were longer, so that the quantile would be one of a handful",
    "N above: of the last column that is not blank",
];

/// Shows response times of the workload's operations; `None` without any.
pub(super) fn responses(record: &Record) -> Option<Section> {
    if record.responses.is_empty() {
        return None;
    }
    let mut table = Table::default().text(["Operation"]).numbers(["Operations", "Per Second", "Mean"]);
    table = table.numbers(QUANTILES.map(|(name, _)| name)).numbers(["Max", "N above"]);
    for response in &record.responses {
        let latency = &response.latency;
        let elapsed_ns = response.elapsed_ns.unwrap_or(record.header.elapsed_ns);
        let per_second = PerSecond { total: latency.count() as f64, elapsed_ns };
        let mut cells = vec![
            Cell::from(&response.operation),
            Cell::of(Count(latency.count())),
            Cell::of(Total(per_second.rate())),
            Cell::of(Duration(latency.mean().0)),
        ];
        cells.extend(quantiles(latency));
        table.row(cells);
    }
    let section = Section::front("responses", "Response Times")
        .drawings(vec![Drawing::Plot(picture(&record.responses))]);
    Some(NOTES.iter().fold(section, |section, note| section.note(*note)).table(table))
}

/// Draws the share of operations that ended within each time.
fn picture(responses: &[Response]) -> Plot {
    let micros = |nanos: Nanos| (nanos.0 as f64 / 1e3).max(0.1);
    let series = |(colour, response): (usize, &Response)| {
        let count = response.latency.count().max(1) as f64;
        let mut below = 0_u64;
        let marks = response.latency.buckets().map(|(upto, more)| {
            below = below.saturating_add(more);
            let share = 100.0 * below as f64 / count;
            let hint = format!("{}: {share:.1}% within {upto}", response.operation);
            Mark { x: micros(upto), y: share, hint, ..Mark::default() }
        });
        let marks = marks.collect();
        Series { name: response.operation.clone(), colour, stroke: Stroke::Line, marks }
    };
    let series: Vec<Series> = responses.iter().enumerate().map(series).collect();
    let times = || series.iter().flat_map(|series| &series.marks).map(|mark| mark.x);
    let (least, most) = (times().fold(f64::MAX, f64::min), times().fold(0.1, f64::max));
    Plot {
        title: "Share of operations that ended within a time".to_string(),
        x: Axis::log("response time", least, most, short_micros),
        y: Axis::stepped("% of operations", 20.0, 5, |share| format!("{share:.0}")),
        series,
    }
}

/// Shows waits by event; `None` for older records, which lack them.
pub(super) fn waits(record: &Record) -> Option<Section> {
    let mut table = Table::default().text(["Event"]).numbers(["Waits", "Mean"]);
    table = table.numbers(QUANTILES.map(|(name, _)| name)).numbers(["Max", "N above"]);
    let mut any = false;
    for (events, is_background) in [(&record.foreground_events, false), (&record.background_events, true)] {
        for event in ordered(events) {
            let Some(latency) = event.latency.as_ref().filter(|latency| latency.count() > 0) else {
                continue;
            };
            any = true;
            let name =
                if is_background { format!("{} (background)", event.event) } else { event.event.clone() };
            let mut cells = vec![
                Cell::from(&name),
                Cell::of(Count(latency.count())),
                Cell::of(Duration(latency.mean().0)),
            ];
            cells.extend(quantiles(latency));
            table.push(if event.is_idle() { RowKind::Quiet } else { RowKind::Plain }, cells);
        }
    }
    let section = Section::detail("latency", "Wait Event Latencies");
    any.then(|| NOTES.iter().fold(section, |section, note| section.note(*note)).table(table))
}

/// Returns quantiles with enough durations above, the longest duration, and
/// the count above the last.
fn quantiles(latency: &LatencyHistogram) -> Vec<Cell> {
    let count = latency.count() as f64;
    let mut above = None;
    let mut cells: Vec<Cell> = Vec::with_capacity(QUANTILES.len() + 2);
    for (_, share) in QUANTILES {
        let left = count * (1.0 - share);
        let shown = (left >= ABOVE_MIN).then(|| latency.quantile(share));
        above = shown.map_or(above, |_| Some(left.round() as u64));
        cells.push(Cell::of(shown.map(|Nanos(ns)| Duration(ns))));
    }
    cells.push(Cell::of(Duration(latency.max().0)));
    cells.push(Cell::of(above.map(Count)));
    cells
}
