//! fio's text, as its terminal shows it: of version 2 and of version 3.
//!
//! ```text
//! 2: read : io=5120.0MB, bw=44174KB/s, iops=5521, runt=118686msec
//! 3: read: IOPS=22.5k, BW=87.9MiB/s (92.2MB/s)(5120MiB/58254msec)
//! ```
//! Version 2 writes KB for KiB; of the two bandwidths of version 3 the binary one is read.

use super::{HEAD_LINES_MOST, SYNC, longest};
use crate::figure::sheet::{Printed, Remark};
use crate::format::sections::{table, with_columns};
use crate::report::Report;
use crate::source::SourcePart;

/// Kinds of requests, in the order of the sizes of a job's line.
const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// True of the line with the version, above the entries.
pub(super) fn begins(line: &str) -> bool {
    line.trim_start().strip_prefix("fio-").is_some_and(|rest| {
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
    /// Least, greatest and mean time of completion.
    latency: [Printed; 3],
    total: Printed,
    submission: Printed,
    size: Printed,
    depth: Printed,
    processes: Printed,
    /// Mean of the samples of the rate, and their number.
    sampled: [Printed; 2],
    /// CPU of its processes, by user and system.
    cpu: [Printed; 2],
    percentiles: Vec<(String, Printed)>,
}

/// The line of a job above the version, with its options:
/// `rr: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) ..., ioengine=libaio, iodepth=16`.
#[derive(Debug, Clone, Default)]
struct Head {
    job: String,
    /// Least and greatest size of reads, writes and trims.
    sizes: Vec<Printed>,
    depth: Printed,
}

/// Reads the lines of jobs above a version, up to the end of another report.
fn heads(part: &SourcePart<'_>) -> Vec<Head> {
    let mut heads = Vec::new();
    for (line, text) in part.above(HEAD_LINES_MOST).lines() {
        if begins(text) || ["Run status", "Disk stats"].iter().any(|end| text.starts_with(end)) {
            heads.clear();
        }
        let Some((job, options)) = text.split_once(": (g=") else { continue };
        let printed = |raw: &str| Printed { raw: raw.to_string(), line };
        let sizes = options.split("bs=").nth(1).unwrap_or_default();
        let sizes = sizes.split(", ioengine").next().unwrap_or_default().split([',', '/']);
        let one_size = |range: &str| {
            let range = range.trim_start_matches([' ', '(', 'R', 'W', 'T', ')']);
            let (least, most) = range.split_once('-').unwrap_or((range, range));
            printed(if least == most { least.trim_end_matches(['B', 'i']) } else { "" })
        };
        let depth = printed(until_end(options.split("iodepth=").nth(1).unwrap_or_default()));
        heads.push(Head { job: job.trim().to_string(), sizes: sizes.map(one_size).collect(), depth });
    }
    heads
}

/// Notes the errors that fio prints between its lines: `fio: pid=7, err=5/file:io_u.c:1896, ...`.
pub(super) fn errors(part: &SourcePart<'_>, report: &mut Report) {
    for (line, text) in part.lines() {
        if is_error(text) && report.failed.len() < super::ERRORS_MOST {
            let text = plumb_units::cut(text.trim(), 200).into_owned();
            report.failed.push(Remark { line, text });
        }
    }
}

fn is_error(text: &str) -> bool {
    text.trim_start().starts_with("fio: ") && (text.contains("error") || text.contains("err="))
}

pub(super) fn read(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    report.run.title = "FIO REPORT".to_string();
    let mut text = Text { heads: heads(part), ..Text::default() };
    for (line, raw) in part.lines() {
        let trimmed = raw.trim();
        let is_known = trimmed.is_empty() || begins(trimmed) || is_error(trimmed);
        if !is_known && !text.line(line, trimmed) {
            report.leave(line, trimmed);
        }
        if let (Some((job, rest)), Some((_, error))) =
            (trimmed.split_once(": (groupid="), trimmed.split_once("err="))
        {
            let error =
                error.split("): pid").next().unwrap_or(rest).split(": pid").next().unwrap_or_default();
            let raw = error.trim().trim_end_matches(')').replacen(" (", ", ", 1);
            report.fail(job, &Printed { raw, line });
        }
    }
    errors(&part.above(HEAD_LINES_MOST), &mut report);
    errors(part, &mut report);
    report.run.workload = text.rows.first().map_or(String::new(), |row| row.job.raw.clone());
    text.fill(&mut report, part.first_line());
    report
}

/// The lines of a report as far as they are read.
#[derive(Debug, Default)]
struct Text {
    heads: Vec<Head>,
    rows: Vec<Row>,
    /// The job that is read, and its processes.
    job: Printed,
    processes: Printed,
    /// The unit of the percentiles that follow.
    unit: &'static str,
    groups: Vec<Vec<Printed>>,
    /// Figures that no check needs: job, line, name and value.
    details: Vec<[Printed; 4]>,
}

impl Text {
    /// Reads a line; false if it is none of a report's.
    fn line(&mut self, line: u32, text: &str) -> bool {
        let printed = |raw: &str| Printed { raw: raw.to_string(), line };
        if let Some((name, rest)) = text.split_once(": (groupid=") {
            self.job = printed(name);
            self.processes = printed(rest.split("jobs=").nth(1).map_or("", until_end));
        } else if let Some(group) = group(text).filter(|_| !self.rows.is_empty()) {
            self.groups.push(group.map(|cell| printed(&cell)).to_vec());
        } else if let Some(direction) = direction_of(text) {
            let processes = self.processes.clone();
            let head = self.heads.iter().find(|head| head.job == self.job.raw).cloned().unwrap_or_default();
            let place = DIRECTIONS.iter().position(|name| *name == direction).unwrap_or(0);
            let size = head.sizes.get(place).cloned().unwrap_or_default();
            let row = of_line(text, &self.job, printed(direction));
            self.rows.push(Row { processes, size, depth: head.depth, ..row });
        } else if let Some(unit) = unit_of(text, "sync").filter(|_| text.contains("avg=")) {
            let latency = ["min", "max", "avg"].map(|name| printed(&with_unit(text, name, unit)));
            let (job, total) = (self.job.clone(), latency[2].clone());
            self.rows.push(Row { job, direction: printed(SYNC), latency, total, ..Row::default() });
        } else if text.starts_with("issued") && text.contains("total=") {
            set_requests(&mut self.rows, &self.job, text, line);
        } else if let Some(row) = self.rows.last_mut() {
            let percentiles_of = ["clat percentiles", "sync percentiles", "lat percentiles"];
            if let Some(unit) = percentiles_of.iter().find_map(|of| unit_of(text, of)) {
                self.unit = unit;
            } else if text.starts_with('|') {
                let time = |time: String| printed(&format!("{time}{}", self.unit));
                row.percentiles.extend(percentiles(text).map(|(percent, own)| (percent, time(own))));
            } else if let Some(unit) = unit_of(text, "clat") {
                row.latency = ["min", "max", "avg"].map(|name| printed(&with_unit(text, name, unit)));
            } else if let Some(unit) = unit_of(text, "lat").filter(|_| text.contains("avg=")) {
                row.total = printed(&with_unit(text, "avg", unit));
            } else if let Some(unit) = unit_of(text, "slat") {
                row.submission = printed(&with_unit(text, "avg", unit));
                return self.other(line, text);
            } else {
                if text.starts_with("iops") && text.contains("avg=") {
                    row.sampled = ["avg=", "samples="].map(|name| printed(&value(text, name)));
                }
                return self.other(line, text);
            }
        } else {
            return false;
        }
        true
    }

    /// Reads the figures of a line such as `cpu : usr=1.89%, sys=11.05%`; false without any.
    fn other(&mut self, line: u32, text: &str) -> bool {
        let Some((name, rest)) = text.split_once(':') else { return false };
        if ["Run status group", "Disk stats"].iter().any(|head| name.starts_with(head)) {
            return true;
        }
        let printed = |raw: String| Printed { raw, line };
        if name.trim() == "latency" && rest.contains("depth=") {
            let depth = rest.split("depth=").nth(1).map_or("", until_end);
            let own = self.rows.iter_mut().rev().take_while(|row| row.job.line == self.job.line);
            own.for_each(|row| row.depth = printed(depth.to_string()));
        }
        if name.trim() == "cpu" {
            let own = self.rows.iter_mut().rev().take_while(|row| row.job.line == self.job.line);
            own.for_each(|row| row.cpu = ["usr=", "sys="].map(|name| printed(value(rest, name))));
        }
        let title = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = details(name, rest);
        let is_own = !found.is_empty();
        self.details.extend(
            found.into_iter().map(|(name, value)| {
                [self.job.clone(), printed(title.clone()), printed(name), printed(value)]
            }),
        );
        is_own
    }

    fn fill(self, report: &mut Report, line: u32) {
        const NAMES: [&str; 19] = [
            "job",
            "direction",
            "io",
            "bw",
            "iops",
            "runtime",
            "total_ios",
            "clat min",
            "clat max",
            "clat mean",
            "lat mean",
            "slat mean",
            "bs",
            "iodepth",
            "numjobs",
            "iops_mean",
            "iops_samples",
            "usr_cpu",
            "sys_cpu",
        ];
        let mut jobs = with_columns("jobs", line, NAMES);
        let mut percentiles = with_columns("percentiles", line, ["job", "direction", "percentile", "clat"]);
        let mut groups = table("groups", line);
        let mut details = with_columns("details", line, ["job", "line", "name", "value"]);
        for row in self.rows {
            let line = row.direction.line;
            for (percent, time) in row.percentiles {
                let percent = Printed { raw: percent, line: time.line };
                percentiles.push(time.line, vec![row.job.clone(), row.direction.clone(), percent, time]);
            }
            let [least, most, mean] = row.latency;
            let cells = vec![
                row.job,
                row.direction,
                row.bytes,
                row.bandwidth,
                row.rate,
                row.runtime,
                row.requests,
                least,
                most,
                mean,
                row.total,
                row.submission,
                row.size,
                row.depth,
                row.processes,
            ];
            let [sampled, cpu] = [row.sampled, row.cpu];
            let cells = cells.into_iter().chain(sampled).chain(cpu).collect();
            jobs.push(line, cells);
        }
        self.groups.into_iter().for_each(|cells| groups.push(cells[0].line, cells));
        self.details.into_iter().for_each(|cells| details.push(cells[1].line, cells.to_vec()));
        report.run.elapsed = longest(&jobs);
        let all = [jobs, percentiles, groups, details];
        report.sheets.extend(all.into_iter().filter(|sheet| !sheet.rows.is_empty()));
    }
}

/// The digits at the start of a text.
fn until_end(text: &str) -> &str {
    &text[..text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len())]
}

/// Direction, bytes, least and most time of a line below `Run status group`:
/// `READ: io=20480MB, aggrb=176551KB/s, ..., mint=110704msec, maxt=118784msec` or
/// `READ: bw=8192KiB/s (8389kB/s), ..., io=8192KiB (8389kB), run=1000-1000msec`.
fn group(line: &str) -> Option<[String; 4]> {
    let (name, rest) = line.split_once(':')?;
    let direction = ["READ", "WRITE", "TRIM"].into_iter().find(|own| *own == name.trim())?;
    let bytes = value(rest, "io=");
    let times = value(rest, "run=");
    let (least, most) = match times.split_once('-') {
        Some((least, most)) => (format!("{least}msec"), most.to_string()),
        None => (value(rest, "mint="), value(rest, "maxt=")),
    };
    Some([direction.to_lowercase(), bytes, least, most])
}

/// The direction of a line with the figures of one.
fn direction_of(line: &str) -> Option<&'static str> {
    let is_of = |name: &str| {
        let rest = line.strip_prefix(name).map(str::trim_start).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|rest| rest.contains("io=") || rest.contains("IOPS="))
    };
    DIRECTIONS.into_iter().find(|name| is_of(name))
}

fn of_line(line: &str, job: &Printed, direction: Printed) -> Row {
    let number = direction.line;
    let printed = |raw: String| Printed { raw, line: number };
    let mut row = Row { job: job.clone(), direction, ..Row::default() };
    if line.contains("IOPS=") {
        row.rate = printed(value(line, "IOPS="));
        row.bandwidth = printed(value(line, "BW="));
        let moved = line.rsplit('(').next().unwrap_or_default().split(')').next().unwrap_or_default();
        let (bytes, time) = moved.split_once('/').unwrap_or_default();
        (row.bytes, row.runtime) = (printed(bytes.to_string()), printed(time.to_string()));
    } else {
        row.bytes = printed(value(line, "io="));
        row.bandwidth = printed(value(line, "bw="));
        row.rate = printed(value(line, "iops="));
        row.runtime = printed(value(line, "runt="));
    }
    row
}

/// Reads the requests of all directions, which one line has: `total=r=655360/w=0/d=0` or
/// `total=655360,0,0`.
fn set_requests(rows: &mut [Row], job: &Printed, line: &str, number: u32) {
    let totals = line.split("total=").nth(1).unwrap_or_default();
    let totals = totals.split_whitespace().next().unwrap_or_default().trim_end_matches(',');
    let is_old = totals.starts_with("r=");
    let parts: Vec<&str> = totals.split(if is_old { '/' } else { ',' }).collect();
    for row in rows.iter_mut().rev().take_while(|row| row.job.line == job.line) {
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

/// Returns the figures of a line behind its name: `min=4, max=109`, `ios=2619049/4`, `>=64=0.0%`.
/// Extremes and means have the unit in the name: `slat (usec)`, `bw (  KiB/s)`.
fn details(name: &str, rest: &str) -> Vec<(String, String)> {
    let bracket = name.split_once('(').map_or("", |(_, unit)| unit.trim_end().trim_end_matches(')'));
    let rate: String = bracket.split_whitespace().collect();
    let time = ["slat", "clat", "lat", "sync"].iter().find_map(|of| unit_of(name, of));
    let mut found = Vec::new();
    for pair in rest.split(',') {
        let Some((key, value)) = pair.trim().rsplit_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        if !value.starts_with(|digit: char| digit.is_ascii_digit()) {
            continue;
        }
        let is_sample = ["min", "max", "avg", "stdev"].contains(&key);
        match (value.split_once('/'), time) {
            (Some((reads, writes)), _) => {
                found.push((format!("{key} read"), reads.to_string()));
                found.push((format!("{key} write"), writes.to_string()));
            }
            (None, Some(unit)) if is_sample => found.push((key.to_string(), with_unit(rest, key, unit))),
            (None, None) if is_sample && rate.ends_with("/s") => {
                found.push((key.to_string(), format!("{value}{rate}")));
            }
            (None, _) => found.push((key.to_string(), value.to_string())),
        }
    }
    found
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
