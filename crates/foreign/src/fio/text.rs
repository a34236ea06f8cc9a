//! fio's text, as its terminal shows it: of version 2 and of version 3.
//!
//! ```text
//! 2: read : io=5120.0MB, bw=44174KB/s, iops=5521, runt=118686msec
//! 3: read: IOPS=22.5k, BW=87.9MiB/s (92.2MB/s)(5120MiB/58254msec)
//! ```
//! Version 2 writes KB for KiB; of the two bandwidths of version 3 the binary one is read.

use super::{JOBS, PERCENTILES, json};
use crate::report::Report;
use crate::sheet::{Printed, Remark, Sheet};
use crate::source::Part;

/// True of the line with the version, above the entries.
pub(super) fn begins(line: &str) -> bool {
    line.strip_prefix("fio-").is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_digit())
            && rest.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter))
    })
}

/// An entry and a direction while its lines are read.
#[derive(Debug, Default)]
struct Row {
    job: Printed,
    direction: Printed,
    bytes: Printed,
    bandwidth: Printed,
    rate: Printed,
    runtime: Printed,
    requests: Printed,
    /// Least, most and mean, as text and in microseconds a unit.
    latency: [Printed; 3],
    total: Printed,
    percentiles: Vec<(String, Printed)>,
}

pub(super) fn read(part: &Part<'_>) -> Report {
    let mut report = Report::default();
    report.run.title = "FIO REPORT".to_string();
    let (mut rows, mut job) = (Vec::<Row>::new(), Printed::default());
    let mut unit = "us";
    for (line, text) in part.lines() {
        let trimmed = text.trim();
        let printed = |raw: &str| Printed { raw: raw.to_string(), line };
        if let Some((name, _)) = trimmed.split_once(": (groupid=") {
            job = printed(name);
        } else if let Some(direction) = direction_of(trimmed) {
            rows.push(of_line(trimmed, &job, printed(direction)));
        } else if trimmed.contains("issued") && trimmed.contains("total=") {
            set_requests(&mut rows, &job, trimmed, line);
        } else if let Some(row) = rows.last_mut() {
            if let Some(found) = unit_of(trimmed, "clat percentiles") {
                unit = found;
            } else if trimmed.starts_with('|') {
                let times =
                    percentiles(trimmed).map(|(percent, time)| (percent, printed(&format!("{time}{unit}"))));
                row.percentiles.extend(times);
            } else if let Some(unit) = unit_of(trimmed, "clat") {
                row.latency = ["min", "max", "avg"].map(|name| printed(&with_unit(trimmed, name, unit)));
            } else if let Some(unit) = unit_of(trimmed, "lat").filter(|_| trimmed.contains("avg=")) {
                row.total = printed(&with_unit(trimmed, "avg", unit));
            } else if !trimmed.is_empty() {
                report.unread.push(Remark { line, text: text.to_string() });
            }
        } else if !begins(text) && !trimmed.is_empty() {
            report.unread.push(Remark { line, text: text.to_string() });
        }
    }
    report.run.workload = rows.first().map_or(String::new(), |row| row.job.raw.clone());
    fill_sheets(&mut report, rows, part.first_line());
    report
}

fn fill_sheets(report: &mut Report, rows: Vec<Row>, line: u32) {
    let names =
        ["job", "direction", "io", "bw", "iops", "runtime", "total_ios", "clat min", "clat max", "clat mean"];
    let names = names.into_iter().chain(["lat mean"]).map(String::from).collect();
    let mut jobs = Sheet::new(Some(&JOBS), Printed { raw: "jobs".to_string(), line }, names);
    let names = ["job", "direction", "percentile", "clat"].map(String::from).to_vec();
    let heading = Printed { raw: "clat percentiles".to_string(), line };
    let mut percentiles = Sheet::new(Some(&PERCENTILES), heading, names);
    for row in rows {
        let line = row.direction.line;
        for (percent, time) in row.percentiles {
            let percent = Printed { raw: percent, line: time.line };
            percentiles.push(time.line, vec![row.job.clone(), row.direction.clone(), percent, time]);
        }
        let [least, most, mean] = row.latency;
        let cells =
            vec![row.job, row.direction, row.bytes, row.bandwidth, row.rate, row.runtime, row.requests];
        jobs.push(line, cells.into_iter().chain([least, most, mean, row.total]).collect());
    }
    report.run.elapsed = json::longest(&jobs);
    report.sheets.extend([jobs, percentiles].into_iter().filter(|sheet| !sheet.rows.is_empty()));
}

/// The direction of a line with the figures of one.
fn direction_of(line: &str) -> Option<&'static str> {
    let is_of = |name: &str| {
        let rest = line.strip_prefix(name).map(str::trim_start).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|rest| rest.contains("io=") || rest.contains("IOPS="))
    };
    ["read", "write", "trim", "mixed"].into_iter().find(|name| is_of(name))
}

fn of_line(line: &str, job: &Printed, direction: Printed) -> Row {
    let number = direction.line;
    let printed = |raw: String| Printed { raw, line: number };
    let mut row = Row { job: job.clone(), direction, ..Row::default() };
    if line.contains("IOPS=") {
        row.rate = printed(value(line, "IOPS=").replace('k', "K"));
        row.bandwidth = printed(binary(&value(line, "BW=")));
        let moved = line.rsplit('(').next().unwrap_or_default().split(')').next().unwrap_or_default();
        let (bytes, time) = moved.split_once('/').unwrap_or_default();
        (row.bytes, row.runtime) = (printed(binary(bytes)), printed(milliseconds(time)));
    } else {
        row.bytes = printed(binary(&value(line, "io=")));
        row.bandwidth = printed(binary(&value(line, "bw=")));
        row.rate = printed(value(line, "iops="));
        row.runtime = printed(milliseconds(&value(line, "runt=")));
    }
    row
}

/// The requests of all directions stand in one line: `total=r=655360/w=0/d=0` or `total=655360,0,0`.
fn set_requests(rows: &mut [Row], job: &Printed, line: &str, number: u32) {
    let totals = line.split("total=").nth(1).unwrap_or_default();
    let totals = totals.split_whitespace().next().unwrap_or_default().trim_end_matches(',');
    let is_old = totals.starts_with("r=");
    let parts: Vec<&str> = totals.split(if is_old { '/' } else { ',' }).collect();
    for row in rows.iter_mut().filter(|row| row.job.line == job.line) {
        let place = ["read", "write", "trim"].iter().position(|name| *name == row.direction.raw);
        let total = place
            .and_then(|place| parts.get(place))
            .map(|part| part.trim_start_matches(['r', 'w', 'd', '=']));
        row.requests = Printed { raw: total.unwrap_or_default().to_string(), line: number };
    }
}

/// The text behind a name, up to a comma or a blank.
fn value(line: &str, name: &str) -> String {
    let rest = line.split_once(name).map_or("", |(_, rest)| rest.trim_start());
    rest.split([',', ' ', ';', ')']).next().unwrap_or_default().to_string()
}

/// A size or a rate without what says binary, because all of them are: `87.9MiB/s`, `44174KB/s`.
fn binary(text: &str) -> String {
    let text = text.trim_end_matches("/s").replace("iB", "B");
    match text.strip_suffix('B') {
        Some(bytes) if bytes.ends_with(|digit: char| digit.is_ascii_digit()) => format!("{bytes}bytes"),
        _ => text,
    }
}

/// `118686msec` as `118686ms`.
fn milliseconds(text: &str) -> String {
    text.replace("msec", "ms")
}

/// The unit in brackets behind a name at the start of a line: `clat (usec):`.
fn unit_of(line: &str, name: &str) -> Option<&'static str> {
    let rest = line.strip_prefix(name)?.trim_start().strip_prefix('(')?;
    match rest.split(')').next()? {
        "nsec" => Some("ns"),
        "usec" => Some("us"),
        "msec" => Some("ms"),
        _ => None,
    }
}

/// A figure of a line of times: `avg=13.06`, `max= 43082`, `max=12.3k`.
fn with_unit(line: &str, name: &str, unit: &str) -> String {
    let number = value(line, &format!("{name}="));
    match number.strip_suffix('k') {
        // Thousands have no suffix of a time behind them.
        Some(thousands) => match unit {
            "ns" => format!("{thousands}us"),
            "us" => format!("{thousands}ms"),
            _ => format!("{thousands}s"),
        },
        None if number.is_empty() => number,
        None => format!("{number}{unit}"),
    }
}

/// Percentiles of a line: `|  1.00th=[  516],  5.00th=[  708],`.
fn percentiles(line: &str) -> impl Iterator<Item = (String, String)> + use<'_> {
    line.split("th=[").zip(line.split("th=[").skip(1)).filter_map(|(before, behind)| {
        let percent = before.rsplit([' ', ',', '|']).next().filter(|percent| !percent.is_empty())?;
        let time = behind.split(']').next()?.trim();
        Some((percent.to_string(), time.to_string()))
    })
}
