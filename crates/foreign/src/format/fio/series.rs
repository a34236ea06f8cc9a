//! fio's logs of latency, bandwidth or rate: a sample a line.
//!
//! ```text
//! 1000, 801293, 0, 4096, 0      milliseconds, value, direction, size, then offset or priority
//! ```
//!
//! The name of the file says the quantity: `_lat`, `_clat` and `_slat` are nanoseconds, `_bw` is
//! KiB a second, `_iops` requests a second. Before version 3 latencies are microseconds, which no
//! log says. Percentiles are over samples: with `log_avg_msec` of means, without it of requests.

use crate::figure::sheet::{Figure, Printed};
use crate::figure::shown::scaled;
use crate::format::sections::with_columns;
use crate::format::tool::{derived, lines::seconds_cell};
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_record::ImportedFigure;
use plumb_units::ValueRange;
use std::ops::Range;

pub(super) const READER: Reader =
    Reader::new("fio log", Begins::Ranges(ranges), read).filling(figures, Fill::Derived);

/// Words of the direction's number.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// Samples that a file has at least, whose name does not say that it is a log.
const SAMPLES_LEAST: usize = 3;

/// Returns the heading of the values by the name of the file.
fn quantity(file: &str) -> Option<&'static str> {
    let name = file.to_lowercase();
    [("lat", "latency, ns"), ("bw", "bandwidth, KiB/s"), ("iops", "iops")]
        .into_iter()
        .find(|(mark, _)| {
            ["_", "-"].iter().any(|before| name.contains(&format!("{before}{mark}")))
                || name.contains(&format!("{mark}."))
        })
        .map(|(_, heading)| heading)
}

/// Returns time, value, direction and size of a line; `None` if it is no sample.
fn sample(line: &str) -> Option<[&str; 4]> {
    if !line.trim_start().starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut fields = line.split(',').map(str::trim);
    let own = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
    let is_number = |field: &str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = own.iter().all(|field| is_number(field)) && matches!(own[2], "0" | "1" | "2");
    let more: Vec<&str> = fields.take(5).collect();
    (is_own && more.len() < 4 && more.iter().all(|field| is_number(field.trim_start_matches("0x"))))
        .then_some(own)
}

fn ranges(part: &SourcePart<'_>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in part.lines().enumerate().filter(|(_, (_, line))| sample(line).is_some()) {
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => found.push(at..at + 1),
        }
    }
    let is_named = quantity(part.file_name()).is_some();
    found.retain(|range| is_named || range.len() >= SAMPLES_LEAST);
    found
}

fn read(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    report.run.title = "FIO LOG".to_string();
    let value = quantity(part.file_name()).unwrap_or("value");
    let names = ["time (ms)", value, "direction", "bs"];
    let mut sheet = with_columns("samples", part.first_line(), names);
    let mut last = 0.0f64;
    for (line, text) in part.lines() {
        let Some([time, value, direction, size]) = sample(text) else { continue };
        let word = direction.parse().ok().and_then(|place: usize| DIRECTIONS.get(place)).unwrap_or(&"");
        let cells = [time, value, word, size].map(|raw| Printed { raw: raw.to_string(), line });
        sheet.push(line, cells.to_vec());
        last = last.max(time.parse().unwrap_or(0.0));
    }
    report.run.elapsed = (last > 0.0).then(|| seconds_cell(last / 1e3, 5e-4, part.first_line()));
    report.sheets.push(sheet);
    let found = figures(&report);
    for direction in DIRECTIONS {
        let of = |what: &str| {
            let own =
                found.iter().find(|figure| figure.name.starts_with(direction) && figure.name.ends_with(what));
            own.map(|figure| match figure.unit.is_empty() && figure.value.fract() == 0.0 {
                true => figure.value.to_string(),
                false => scaled(figure.value, &figure.unit),
            })
        };
        let parts = ["p50 over time", "p95 over time", "p99 over time", "most", "samples"];
        let parts = parts
            .iter()
            .filter_map(|what| Some(format!("{} {}", what.split(' ').next()?, of(&format!(": {what}"))?)));
        let aside = parts.collect::<Vec<_>>().join(", ");
        report.answer(
            direction,
            of(": mean of samples").map_or(String::new(), |mean| format!("mean {mean}")),
            aside,
        );
    }
    report
}

/// Mean, percentiles and extremes of the samples of each direction.
fn figures(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for sheet in report.sheets_of("samples") {
        let what =
            sheet.columns.get(1).map_or("", |column| column.name.split(',').next().unwrap_or_default());
        for direction in DIRECTIONS {
            let own = sheet.rows.iter().filter(|row| sheet.text(row, "direction") == direction);
            let mut values: Vec<Figure> = own.filter_map(|row| sheet.figure(row, "value")).collect();
            values.sort_by(|one, two| one.value.total_cmp(&two.value));
            let Some(first) = values.first() else { continue };
            let count = values.len();
            let mean = values.iter().map(|figure| figure.value).sum::<f64>() / count as f64;
            let name = |of: &str| format!("{direction} {what}: {of}");
            let exactly = ValueRange::exactly;
            found.extend(derived(name("samples"), "", first.line, count as f64, exactly(count as f64)));
            found.extend(derived(name("mean of samples"), first.unit, first.line, mean, exactly(mean)));
            for (of, percent) in
                [("least", 0.0), ("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("most", 100.0)]
            {
                let place = (percent / 100.0 * count as f64).ceil().max(1.0) as usize - 1;
                let figure = &values[place.min(count - 1)];
                let of =
                    if percent > 0.0 && percent < 100.0 { format!("{of} over time") } else { of.to_string() };
                found.push(ImportedFigure { name: name(&of), ..ImportedFigure::from(figure) });
            }
        }
    }
    found
}
