//! fio's terse output: a line a job, fields parted by semicolons, times in microseconds.
//!
//! Versions 3 and 4 have 41 fields a direction. Version 5 has 47, because it adds samples of the
//! rate. Version 3 has no trims.

use super::longest;
use crate::figure::sheet::Printed;
use crate::format::sections::with_columns;
use crate::report::Report;
use crate::source::SourcePart;
use std::ops::Range;

/// Fields of a direction behind its percentiles, and their number.
const PERCENTILE_COUNT: usize = 20;
/// Fields of a job in front of its first direction.
const HEAD: usize = 5;

/// Returns the fields of a job, the number of its directions, and that of fields of each.
fn fields(line: &str) -> Option<(Vec<&str>, &'static [&'static str], usize)> {
    let line = line.trim_start();
    if !line.starts_with(['3', '4', '5']) || !line[1..].starts_with(";fio-") {
        return None;
    }
    let fields: Vec<&str> = line.trim().split(';').take(400).collect();
    let (directions, each): (&[&str], usize) = match *fields.first()? {
        "3" => (&["read", "write"], 41),
        "4" => (&["read", "write", "trim"], 41),
        "5" => (&["read", "write", "trim"], 47),
        _ => return None,
    };
    let is_own = fields.get(1)?.starts_with("fio-") && fields.len() > HEAD + each * directions.len();
    is_own.then_some((fields, directions, each))
}

/// Consecutive lines are one report.
pub(super) fn ranges(part: &SourcePart<'_>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, (_, line)) in part.lines().enumerate() {
        if fields(line).is_none() {
            continue;
        }
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => found.push(at..at + 1),
        }
    }
    found
}

pub(super) fn read(part: &SourcePart<'_>) -> Report {
    const NAMES: [&str; 11] = [
        "job",
        "direction",
        "io_bytes in KiB",
        "bw",
        "iops",
        "runtime",
        "slat mean",
        "clat min",
        "clat max",
        "clat mean",
        "lat mean",
    ];
    /// Place of each column behind the job's name, among the fields of a direction.
    const PLACES: [usize; 9] = [0, 1, 2, 3, 6, 8, 9, 10, 34];
    let mut report = Report::default();
    report.run.title = "FIO REPORT".to_string();
    let mut jobs = with_columns("jobs", part.first_line(), NAMES);
    let of_times = ["job", "direction", "percentile", "clat"];
    let mut percentiles = with_columns("percentiles", part.first_line(), of_times);
    for (line, text) in part.lines() {
        let Some((fields, directions, each)) = fields(text) else { continue };
        let printed = |raw: &str| Printed { raw: raw.to_string(), line };
        report.fail(fields[2], &printed(fields[4]));
        if report.facts.is_empty() {
            let reading = plumb_figures::CellReading::Words;
            report.fact("Version", &crate::figure::sheet::Cell { raw: fields[1].to_string(), line, reading });
            report.run.workload = fields[2].to_string();
        }
        for (number, direction) in directions.iter().enumerate() {
            let own = &fields[HEAD + number * each..][..each];
            if own[0].parse::<u64>().unwrap_or(0) == 0 {
                continue;
            }
            let cells = [fields[2], direction].into_iter().chain(PLACES.map(|place| own[place]));
            jobs.push(line, cells.map(printed).collect());
            for pair in &own[12..12 + PERCENTILE_COUNT] {
                // Places without a percentile are `0%=0`.
                if let Some((percent, time)) = pair.split_once("%=").filter(|(percent, _)| *percent != "0") {
                    percentiles.push(line, [fields[2], direction, percent, time].map(printed).to_vec());
                }
            }
        }
    }
    report.run.elapsed = longest(&jobs);
    report.sheets.extend([jobs, percentiles].into_iter().filter(|sheet| !sheet.rows.is_empty()));
    report
}
