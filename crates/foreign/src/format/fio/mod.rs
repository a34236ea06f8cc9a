//! fio: its JSON and JSON+, and the text that people paste, of versions 2 and 3.
//!
//! ```text
//! json ──> leaves (path, text, line) ─┐
//! text ──> job, direction, figures ───┴─> two sheets: jobs, percentiles ──> checks
//! ```
//! Both forms fill the same sheets, so that one table of columns and one list of checks serves
//! both.
//!
//! Units changed with the versions, and the keys say which holds. Times are nanoseconds under
//! `clat_ns` and microseconds under `clat`. `io_bytes` was KiB until 2.20, when it had no
//! `io_kbytes` next to it. `bw` is KiB a second always; version 2 prints KB for KiB.
//!
//! Bandwidths and times of a run are cut off and not rounded: 185,680 is 185,680 to 185,681.
//!
//! An entry is a job, or with `group_reporting` all jobs of a group. Percentiles of several entries
//! are never averaged: of all jobs no more is known than the highest one, which is a bound.
//!
//! Options that are not printed are unknown: versions before 2.14 print none, and a depth of 1 is
//! the default only of a document with options.

mod json;
mod series;
mod terse;
mod text;

use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Cell, Figure, Sheet, SheetRow, added};
use crate::figure::shown::scaled;
use crate::format::tool::{derived, quotient};
use crate::reader::{Begins, Fill, Reader, measures};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::relation::Test;
use plumb_findings::JobSignals;
use plumb_record::{Consistency, ImportedFigure, Record, SettingRow};
use plumb_units::ValueRange;
use std::collections::BTreeMap;

/// The readers of fio's forms.
pub const READERS: [Reader; 4] = [
    reader("fio JSON", Begins::Line(|line| line.trim_start().starts_with("\"fio version\"")), |part| {
        answered(json::read(part))
    }),
    reader("fio text", Begins::Line(text::begins), |part| answered(text::read(part))),
    reader("fio terse", Begins::Ranges(terse::ranges), |part| answered(terse::read(part))),
    series::READER,
];

const fn reader(kind: &'static str, begins: Begins, read: fn(&SourcePart<'_>) -> Report) -> Reader {
    Reader::new(kind, begins, read).checked(check).filling(figures, Fill::With(fill))
}

/// Adds a line for each direction, of all its jobs together.
fn answered(mut report: Report) -> Report {
    let jobs = Job::all(&report);
    let figures = figures(&report);
    let mut said = Vec::new();
    for direction in ["read", "write", "trim", "mixed", SYNC] {
        let own: Vec<&Job<'_>> = jobs.iter().filter(|job| job.direction == direction).collect();
        let Some(first) = own.first() else { continue };
        let of = if own.len() > 1 { format!("all {direction}") } else { first.name.clone() };
        let shown = |what: &str, unit: Option<&str>| {
            let figure = figures.iter().find(|figure| figure.name == format!("{of} {what}"))?;
            Some(scaled(figure.value, unit.unwrap_or(&figure.unit)))
        };
        let rate = shown("requests", Some("")).map(|rate| format!("{rate} IOPS"));
        // fio prints both, and says KiB and MiB for multiples of 1024.
        let bandwidth = shown("bandwidth", None).map(|text| text.replace("B/s", "iB/s"));
        let value: Vec<String> = rate.into_iter().chain(bandwidth).collect();
        let times = [
            ("mean", "mean latency"),
            ("p50", "p50"),
            ("p99", "p99"),
            ("p99 at most", "p99 at most"),
            ("p99.9", "p99.9"),
        ];
        let times = times.iter().filter_map(|(name, what)| Some(format!("{name} {}", shown(what, None)?)));
        let jobs = Some(format!("{} jobs", own.len())).filter(|_| own.len() > 1);
        let errors = match report.failed.len() {
            0 => None,
            1 => Some("1 error".to_string()),
            count => Some(format!("{count} errors")),
        };
        let aside: Vec<String> = times.chain(jobs).chain(errors).collect();
        said.push((direction, value.join(", "), aside.join(", ")));
    }
    for (direction, value, aside) in said {
        report.answer(direction, value, aside);
    }
    report
}

/// Lines above a version that may have the options of its jobs.
const HEAD_LINES_MOST: usize = 100;
/// Errors of a run that are kept.
const ERRORS_MOST: usize = 20;
/// Calls of fsync and the like.
const SYNC: &str = "sync";

/// Key of the jobs of a text behind its JSON, which are the same ones.
const PRINTED_JOBS: &str = "printed_jobs";
/// Key of the percentiles of those jobs.
const PRINTED_PERCENTILES: &str = "printed_percentiles";

const BANDWIDTH: Rule =
    Rule::new("io_bytes / runtime = bw", "bytes moved, divided by the time, are the bandwidth");
const RATE: Rule = Rule::new("total_ios / runtime = iops", "requests, divided by the time, are the rate");
const SIZE: Rule = Rule::new("total_ios x bs = io_bytes", "requests times their size are the bytes moved");
const MEAN: Rule = Rule::new("min <= mean <= max", "the mean lies between the extremes");
const ORDER: Rule = Rule::new("percentiles ascend", "a higher percentile is no shorter than a lower one");
const LITTLE: Rule = Rule::new(
    "iops x latency <= iodepth x numjobs",
    "Little's law: no more requests are outstanding than the jobs may have",
);
const GROUP: Rule =
    Rule::new("io of jobs = io of Run status", "bytes of the jobs of a direction = sum of its groups' bytes");
const PRINTED: Rule = Rule::new("JSON = text", "a figure of the JSON is one that prints as the text has it");
const SAMPLED: Rule = Rule::new(
    "iops = mean of its samples",
    "the rate of the whole run is within 20% of the mean of the samples, of one process or of all",
);
const BINS: Rule = Rule::new("bins = total_ios", "the bins of the histogram add up to the requests");

fn check(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("jobs") {
        for row in &sheet.rows {
            of_row(sheet, row, &mut checks);
        }
    }
    for sheet in report.sheets_of("percentiles") {
        of_percentiles(sheet, &mut checks);
    }
    checks.extend(of_groups(report));
    checks.extend(of_text(report));
    checks
}

/// Figures of a JSON against those of the text behind it, job by job in their order.
fn of_text(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    let (Some(json), Some(text)) = (report.sheet("jobs"), report.sheet(PRINTED_JOBS)) else {
        return checks;
    };
    let name = |sheet: &Sheet, row: &SheetRow| {
        format!("{} {}", sheet.text(row, "job"), sheet.text(row, "direction"))
    };
    for (own, printed) in json.rows.iter().zip(&text.rows) {
        let of = name(json, own);
        if of != name(text, printed) {
            continue;
        }
        for key in ["bytes", "bandwidth", "rate", "runtime", "requests", "least", "most", "mean"] {
            let (Some(exact), Some(shown)) = (json.figure(own, key), text.figure(printed, key)) else {
                continue;
            };
            // Some figures are rounded and some are cut off.
            let expected = ValueRange { low: shown.range.low, high: cut_off(&shown).high };
            let sides = Sides { expected, found: exact.range, unit: exact.unit };
            checks.push(PRINTED.meets(&format!("{of} {key}"), sides, &[&exact, &shown]));
        }
    }
    checks
}

/// The sums of both tables by direction.
fn of_groups(report: &Report) -> Vec<Consistency> {
    let figures = |section: &'static str, direction: &str| -> Vec<Figure> {
        let own = report.rows(section).filter(|(sheet, row)| sheet.text(row, "direction") == direction);
        own.filter_map(|(sheet, row)| sheet.figure(row, "bytes")).collect()
    };
    let check = |direction: &str| {
        let [of_groups, of_jobs] = ["groups", "jobs"].map(|section| figures(section, direction));
        let sides = Sides { expected: added(&of_groups), found: added(&of_jobs), unit: "bytes" };
        let all: Vec<&Figure> = of_groups.iter().chain(&of_jobs).collect();
        (!of_groups.is_empty() && !of_jobs.is_empty()).then(|| GROUP.meets(direction, sides, &all))
    };
    ["read", "write", "trim"].into_iter().filter_map(check).collect()
}

/// An interval whose text was cut off behind its last digit.
fn cut_off(figure: &Figure) -> ValueRange {
    let digit = figure.range.high - figure.range.low;
    ValueRange { low: figure.value, high: figure.value + digit }
}

fn of_row(sheet: &Sheet, row: &SheetRow, checks: &mut Vec<Consistency>) {
    let name = format!("{} {}", sheet.text(row, "job"), sheet.text(row, "direction"));
    let figure = |key: &str| sheet.figure(row, key).filter(|figure| figure.value > 0.0);
    let runtime = figure("runtime");
    let time = runtime.as_ref().map(cut_off);
    let quotient = |total: &str, rate: &str, rule: Rule| {
        let (Some(total), Some(rate), Some(time)) = (figure(total), figure(rate), time) else {
            return rule.not_asked(&name, "bytes, requests or runtime");
        };
        let Some(expected) = total.range.over(time) else { return rule.not_asked(&name, "runtime") };
        let (low, high) = (rate.range.low.min(rate.value), cut_off(&rate).high);
        let sides = Sides { expected, found: ValueRange { low, high }, unit: rate.unit };
        rule.meets(&name, sides, &[&total, &rate])
    };
    checks.push(quotient("bytes", "bandwidth", BANDWIDTH));
    checks.push(quotient("requests", "rate", RATE));
    // Short requests moved less than was asked for.
    let sizes = ["requests", "size", "bytes"].map(|key| figure(key).filter(|_| figure("short").is_none()));
    let asked = SIZE.ask(&name, sizes, Test::Equal, |[requests, size, bytes]| {
        Some([requests.times(ValueRange::exactly(size.middle())), bytes])
    });
    checks.push(asked.unwrap_or_else(|| SIZE.not_asked(&name, "one size of all requests")));
    // The extremes are cut off to whole units.
    let high = figure("most").map_or(0.0, |most| cut_off(&most).high);
    let asked = MEAN.ask(&name, ["least", "most", "mean"].map(figure), Test::Equal, |[least, _, mean]| {
        Some([ValueRange { low: least.low, high }, mean])
    });
    checks.push(asked.unwrap_or_else(|| MEAN.not_asked(&name, "extremes")));
    let flight = ["rate", "latency", "processes", "depth"].map(figure);
    let asked = LITTLE.ask(&name, flight, Test::AtMost, |[rate, latency, processes, depth]| {
        let most = ValueRange::exactly(depth.middle() * processes.middle());
        Some([most, rate.times(latency)])
    });
    checks.push(asked.unwrap_or_else(|| LITTLE.not_asked(&name, "iodepth or latency")));
    // Few samples say little, and a log of each request ruins them.
    if let (Some(rate), Some(sampled)) = (figure("rate"), figure("sampled"))
        && figure("samples").is_some_and(|samples| samples.value >= SAMPLES_LEAST)
    {
        let processes = figure("processes").map_or(1.0, |processes| processes.value);
        let expected = ValueRange { low: 0.8 * sampled.value, high: 1.2 * sampled.value * processes };
        let sides = Sides { expected, found: rate.range, unit: rate.unit };
        checks.push(SAMPLED.meets(&name, sides, &[&rate, &sampled]));
    }
    checks.extend(BINS.ask(&name, ["bins", "requests"].map(figure), Test::Equal, Some));
}

fn of_percentiles(sheet: &Sheet, checks: &mut Vec<Consistency>) {
    // Jobs may have one name: the line tells them apart.
    let entry = |row: &SheetRow| {
        (sheet.cell(row, "job").map(|cell| cell.line), sheet.text(row, "direction").to_string())
    };
    for rows in sheet.rows.chunk_by(|one, other| entry(one) == entry(other)) {
        let times: Vec<Figure> = rows.iter().filter_map(|row| sheet.figure(row, "time")).collect();
        let falling = times.windows(2).find(|pair| pair[1].range.high < pair[0].range.low);
        let Some(pair) = falling.or_else(|| times.windows(2).next()) else { continue };
        let high = pair[0].range.high.max(pair[1].range.high);
        let expected = ValueRange { low: pair[0].range.low, high };
        let sides = Sides { expected, found: pair[1].range, unit: "s" };
        let name = format!("{} {}", sheet.text(&rows[0], "job"), sheet.text(&rows[0], "direction"));
        checks.push(ORDER.meets(&name, sides, &[&pair[0], &pair[1]]));
    }
}

/// Samples of a rate that its mean is held against.
const SAMPLES_LEAST: f64 = 10.0;

/// A row of the jobs with a name that no other row has.
struct Job<'r> {
    name: String,
    direction: &'r str,
    sheet: &'r Sheet,
    row: &'r SheetRow,
    /// Percentiles in the order of the report.
    percentiles: Vec<(f64, Figure)>,
}

impl<'r> Job<'r> {
    fn all(report: &'r Report) -> Vec<Job<'r>> {
        // A document may have thousands of jobs: one look at each row must do.
        type Entry<'r> = (u32, &'r str);
        fn entry<'r>(sheet: &Sheet, row: &'r SheetRow) -> Entry<'r> {
            (sheet.cell(row, "job").map_or(0, |cell| cell.line), sheet.text(row, "direction"))
        }
        let mut times: BTreeMap<Entry<'r>, Vec<(f64, Figure)>> = BTreeMap::new();
        for (sheet, row) in report.rows("percentiles") {
            if let (Some(percent), Some(time)) = (sheet.figure(row, "percent"), sheet.figure(row, "time")) {
                times.entry(entry(sheet, row)).or_default().push((percent.value, time));
            }
        }
        let mut named: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut jobs = Vec::new();
        for (sheet, row) in report.rows("jobs") {
            let (job, direction) = (sheet.text(row, "job"), sheet.text(row, "direction"));
            let count = named.entry((job, direction)).or_default();
            *count += 1;
            let name = match *count {
                1 => format!("{job} {direction}"),
                count => format!("{job} ({count}) {direction}"),
            };
            let percentiles = times.remove(&entry(sheet, row)).unwrap_or_default();
            jobs.push(Job { name, direction, sheet, row, percentiles });
        }
        jobs
    }

    fn figure(&self, key: &str) -> Option<Figure> {
        self.sheet.figure(self.row, key)
    }

    fn percentile(&self, percent: f64) -> Option<&Figure> {
        let own = self.percentiles.iter().find(|(own, _)| (own - percent).abs() < 1e-6);
        own.map(|(_, figure)| figure)
    }
}

/// Rate, bandwidth, mean and percentiles of each entry, and of all entries of a direction.
fn figures(report: &Report) -> Vec<ImportedFigure> {
    let jobs = Job::all(report);
    let mut found = Vec::new();
    for direction in ["read", "write", "trim", "mixed", SYNC] {
        let own: Vec<&Job<'_>> = jobs.iter().filter(|job| job.direction == direction).collect();
        if own.len() > 1 {
            found.extend(of_all(direction, &own));
        }
        for job in own {
            let times = [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)];
            let rows = [("requests", "rate"), ("bandwidth", "bandwidth"), ("mean latency", "mean")]
                .map(|(what, key)| (what, job.figure(key)));
            let of_times = times.map(|(what, percent)| (what, job.percentile(percent).cloned()));
            for (what, figure) in rows.into_iter().chain(of_times) {
                let Some(figure) = figure else { continue };
                let name = format!("{} {what}", job.name);
                found.push(ImportedFigure { name, ..ImportedFigure::from(&figure) });
            }
        }
    }
    found
}

/// Sums of the rates of several entries, the mean of their times by requests, and the highest p99,
/// above which less than one request of a hundred is.
fn of_all(direction: &str, jobs: &[&Job<'_>]) -> Vec<ImportedFigure> {
    let all = |key: &str| -> Vec<Figure> { jobs.iter().filter_map(|job| job.figure(key)).collect() };
    let mut found = Vec::new();
    for (what, key, unit) in [("requests", "rate", "/s"), ("bandwidth", "bandwidth", "bytes/s")] {
        let figures = all(key);
        let Some(first) = figures.first().filter(|_| figures.len() == jobs.len()) else { continue };
        let value = figures.iter().map(|one| one.value).sum::<f64>();
        let name = format!("all {direction} {what}");
        found.extend(derived(name, unit, first.line, value, added(&figures)));
    }
    let pairs: Vec<(Figure, Figure)> =
        jobs.iter().filter_map(|job| Some((job.figure("rate")?, job.figure("mean")?))).collect();
    let times: Vec<Figure> = pairs
        .iter()
        .map(|(rate, mean)| Figure {
            value: rate.value * mean.value,
            range: rate.range.times(mean.range),
            ..mean.clone()
        })
        .collect();
    let rates: Vec<Figure> = pairs.into_iter().map(|(rate, _)| rate).collect();
    found.extend(quotient(format!("all {direction} mean latency"), "s", [&times, &rates]));
    let highest = jobs.iter().filter_map(|job| job.percentile(99.0));
    let highest = highest.max_by(|one, two| one.value.total_cmp(&two.value));
    found.extend(highest.map(|figure| ImportedFigure {
        name: format!("all {direction} p99 at most"),
        ..ImportedFigure::from(figure)
    }));
    found
}

/// Returns what each job asked for and got, for the rules.
pub(crate) fn signals(report: &Report) -> Vec<JobSignals> {
    let error = report.failed.first().map_or(String::new(), |error| error.text.clone());
    let jobs = Job::all(report);
    let flown = |job: &Job<'_>| {
        let value = |key: &str| job.figure(key).map(|figure| figure.value);
        Some(value("rate")? * (value("mean")? + value("submission").unwrap_or(0.0)))
    };
    let line = |job: &Job<'_>| job.sheet.cell(job.row, "job").map_or(0, |cell| cell.line);
    // Both directions share the depth of an entry.
    let mut flying: BTreeMap<u32, Option<f64>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.direction != SYNC) {
        let all = flying.entry(line(job)).or_insert(Some(0.0));
        *all = all.zip(flown(job)).map(|(all, own)| all + own);
    }
    let of = |job: &Job<'_>| {
        let in_flight = flying.get(&line(job)).copied().flatten();
        let value = |key: &str| job.figure(key).map(|figure| figure.value);
        let cpu = value("user").zip(value("system")).map(|(user, system)| (user + system) / 100.0);
        JobSignals {
            name: job.name.clone(),
            requests_per_s: value("rate").unwrap_or(0.0),
            mean_s: value("mean"),
            p99_s: job.percentile(99.0).map(|figure| figure.value),
            submission_s: value("submission"),
            depth: value("depth").zip(value("processes")).map(|(depth, processes)| depth * processes),
            in_flight,
            cpu,
            direct: value("direct").map(|direct| direct > 0.0),
            runtime_s: value("runtime").unwrap_or(0.0),
            errors: report.failed.len(),
            error: error.clone(),
        }
    };
    jobs.iter().filter(|job| job.direction != SYNC).map(of).collect()
}

/// Figures of each entry as measures of the record, because fio has no events and no statistics.
fn fill(report: &Report, record: &mut Record) {
    measures(&figures(report), record);
    // A single job is all jobs of its direction: two files compare although their jobs have other
    // names.
    let jobs = Job::all(report);
    for direction in ["read", "write", "trim", "mixed"] {
        let own: Vec<&Job<'_>> = jobs.iter().filter(|job| job.direction == direction).collect();
        if own.len() == 1 {
            measures(&of_all(direction, &own), record);
        }
    }
    for sheet in report.sheets_of("jobs") {
        record.settings.extend(settings(sheet));
    }
}

/// Returns the options of each entry as settings. Entries have numbers, so that the settings of two
/// files compare although their jobs have other names.
fn settings(sheet: &Sheet) -> impl Iterator<Item = SettingRow> {
    const OPTIONS: [(&str, &str); 5] = [
        ("job", "name"),
        ("direction", "direction"),
        ("size", "bs"),
        ("depth", "iodepth"),
        ("processes", "numjobs"),
    ];
    let of_row = move |(at, row): (usize, &SheetRow)| {
        let option = move |(key, name): (&str, &str)| {
            let value = sheet.text(row, key).to_string();
            (!value.is_empty()).then(|| SettingRow {
                name: format!("{}. {name}", at + 1),
                value,
                taken: None,
                is_default: false,
                source: "fio".to_string(),
                description: String::new(),
            })
        };
        OPTIONS.into_iter().filter_map(option).collect::<Vec<_>>()
    };
    sheet.rows.iter().enumerate().flat_map(of_row)
}

/// The longest runtime of the rows: those of entries overlap.
fn longest(jobs: &Sheet) -> Option<Cell> {
    let at = jobs.columns.iter().position(|column| column.key == "runtime")?;
    let cells = jobs.rows.iter().filter_map(|row| row.cells.get(at));
    let value = |cell: &&Cell| cell.reading.value().unwrap_or(0.0);
    cells.max_by(|one, other| value(one).total_cmp(&value(other))).cloned()
}

#[cfg(test)]
mod tests;
