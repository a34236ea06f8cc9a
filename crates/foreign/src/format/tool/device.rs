//! Statistics of block devices: iostat -x, sar -d, collectl -sD.
//!
//! Columns came and went: sysstat 9 has one `await` and sizes in sectors, 10 has one time for
//! reads and one for writes, 12 has sizes in kB, 12.1 discards and 12.5 flushes. One table of
//! columns serves all, because a heading always has the same meaning.
//!
//! `svctm` is no measurement and `%util` of 100 is no saturation; neither is checked against
//! anything. The first sample of iostat is the mean since the start of the machine: where others
//! follow, it is checked and has no part in the means.
//!
//! collectl cuts decimals off where iostat rounds.

use super::lines::{self, Between, LineFormat, LineTable, seconds_between, seconds_cell};
use super::{derived, quotient, rows};
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Figure, Printed, Section, Sheet, SheetRow, known, words};
use crate::form::json;
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::bound::REQUEST_RATE_MOST;
use plumb_figures::{FigureUnit, Quantity};
use plumb_record::{Consistency, ImportedFact, ImportedFigure};
use plumb_units::ValueRange;

/// The readers of the tools.
pub(super) const READERS: [Reader; 4] = [
    reader(
        "iostat JSON",
        Begins::Line(|line| line.trim_start_matches(['{', ' ']).starts_with("\"sysstat\"")),
        of_json,
    ),
    reader("iostat", Begins::Ranges(|part| lines::ranges(part, &IOSTAT)), |part| {
        ended(lines::read(part, &IOSTAT))
    }),
    reader("sar -d", Begins::Ranges(|part| lines::ranges(part, &SAR)), |part| ended(lines::read(part, &SAR))),
    reader("collectl", Begins::Ranges(|part| lines::ranges(part, &COLLECTL)), |part| {
        ended(lines::read(part, &COLLECTL))
    }),
];

/// A reader whose reports have a row for each device and sample.
const fn reader(kind: &'static str, begins: Begins, read: fn(&SourcePart<'_>) -> Report) -> Reader {
    Reader { kind, begins, read, check: checks, derive: means, fill: Fill::Derived }
}

const KB: FigureUnit = FigureUnit::new(Quantity::Bytes, 1024.0);
const SECTORS: FigureUnit = FigureUnit::new(Quantity::Bytes, 512.0);
const KB_PER_S: FigureUnit = FigureUnit::new(Quantity::BytesPerSecond, 1024.0);
const SECTORS_PER_S: FigureUnit = FigureUnit::new(Quantity::BytesPerSecond, 512.0);

static DEVICES: Section = Section {
    key: "devices",
    headings: &["Device"],
    first: &[],
    columns: &[
        words("stamp", &["time"]),
        words("device", &["Device", "DEV", "disk_device"]),
        known("reads", FigureUnit::PER_S, &["r/s"]),
        known("writes", FigureUnit::PER_S, &["w/s"]),
        known("discards", FigureUnit::PER_S, &["d/s"]),
        known("flushes", FigureUnit::PER_S, &["f/s"]),
        known("requests", FigureUnit::PER_S, &["tps"]),
        known("read_bytes", KB_PER_S, &["rkB/s"]),
        known("written_bytes", KB_PER_S, &["wkB/s"]),
        known("discarded_bytes", KB_PER_S, &["dkB/s"]),
        known("read_bytes", FigureUnit::MB_PER_S, &["rMB/s"]),
        known("written_bytes", FigureUnit::MB_PER_S, &["wMB/s"]),
        known("discarded_bytes", FigureUnit::MB_PER_S, &["dMB/s"]),
        known("read_bytes", SECTORS_PER_S, &["rsec/s", "rd_sec/s"]),
        known("written_bytes", SECTORS_PER_S, &["wsec/s", "wr_sec/s"]),
        known("read_merges", FigureUnit::PER_S, &["rrqm/s"]),
        known("write_merges", FigureUnit::PER_S, &["wrqm/s"]),
        known("read_merge_share", FigureUnit::PERCENT, &["%rrqm", "rrqm"]),
        known("write_merge_share", FigureUnit::PERCENT, &["%wrqm", "wrqm"]),
        known("read_time", FigureUnit::MS, &["r_await"]),
        known("write_time", FigureUnit::MS, &["w_await"]),
        known("discard_time", FigureUnit::MS, &["d_await"]),
        known("flush_time", FigureUnit::MS, &["f_await"]),
        known("time", FigureUnit::MS, &["await"]),
        known("read_size", KB, &["rareq-sz"]),
        known("write_size", KB, &["wareq-sz"]),
        known("size", KB, &["areq-sz"]),
        known("size", SECTORS, &["avgrq-sz"]),
        known("queue", FigureUnit::NUMBER, &["aqu-sz", "avgqu-sz"]),
        known("busy", FigureUnit::PERCENT, &["%util", "util"]),
    ],
};

static COLLECTED: Section = Section {
    key: "collected",
    headings: &["DISK STATISTICS (/sec)"],
    first: &[],
    columns: &[
        words("stamp", &["time"]),
        words("device", &["Name"]),
        known("read_bytes", KB_PER_S, &["KBytes"]),
        known("reads", FigureUnit::PER_S, &["IOs"]),
        known("read_size", KB, &["Size"]),
        known("written_bytes", KB_PER_S, &["KBytes"]),
        known("writes", FigureUnit::PER_S, &["IOs"]),
        known("write_size", KB, &["Size"]),
        known("size", KB, &["RWSize"]),
        known("queue", FigureUnit::NUMBER, &["QLen"]),
        known("time", FigureUnit::MS, &["Wait"]),
        known("busy", FigureUnit::PERCENT, &["Util"]),
    ],
};

static IOSTAT: LineFormat = LineFormat {
    tables: &[LineTable {
        section: &DEVICES,
        between: Between::Blanks,
        needs: &["Device", "r/s", "w/s", "%util"],
        loose: "",
    }],
    pairs: None,
    aside: sysstat,
    stamped: true,
};

static SAR: LineFormat = LineFormat {
    tables: &[LineTable { section: &DEVICES, between: Between::Blanks, needs: &["DEV", "tps"], loose: "" }],
    pairs: None,
    aside: sysstat,
    stamped: true,
};

static COLLECTL: LineFormat = LineFormat {
    tables: &[LineTable {
        section: &COLLECTED,
        between: Between::Blanks,
        needs: &["Name", "KBytes", "IOs", "RWSize"],
        loose: "",
    }],
    pairs: None,
    aside: |line, text, report| {
        let text = text.trim();
        let interval = text.strip_prefix("waiting for ").and_then(|rest| rest.split(' ').next());
        if let Some(interval) = interval {
            let (name, text) = ("Sample, seconds".to_string(), interval.to_string());
            report.facts.push(ImportedFact { name, text, line });
        }
        interval.is_some() || text.starts_with("# DISK STATISTICS") || text.contains("---reads---")
    },
    stamped: true,
};

/// Lines around the tables: `Linux 5.10.0 (host)  09/04/24  _x86_64_ (4 CPU)` and the times of
/// processors, which are no matter of a device.
fn sysstat(line: u32, text: &str, report: &mut Report) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["Linux", kernel, host, rest @ ..] = words.as_slice() {
        let facts = [("Kernel", *kernel), ("Host", host.trim_matches(['(', ')']))];
        report.facts.extend(facts.map(|(name, text)| ImportedFact {
            name: name.to_string(),
            text: text.to_string(),
            line,
        }));
        report.run.platform = format!("Linux {kernel}");
        report.run.host = facts[1].1.to_string();
        let at = rest.iter().position(|word| word.starts_with("CPU"));
        let count = at.and_then(|at| rest.get(at.checked_sub(1)?));
        report.run.cpus = count.and_then(|count| count.trim_start_matches('(').parse().ok());
        return true;
    }
    let is_of_cpu = |word: &&str| word.parse::<f64>().is_ok();
    text.contains("avg-cpu:") || text.contains("RESTART") || words.len() == 6 && words.iter().all(is_of_cpu)
}

/// Reads the JSON of iostat.
fn of_json(part: &SourcePart<'_>) -> Report {
    // The first brace is on the line of the first key, or on one before.
    let json = json::read_behind(part, part.text.find("\"sysstat\"").unwrap_or(0));
    let mut report = Report::default();
    let host = json::place("sysstat/hosts", 0);
    for (name, key) in [("Host", "nodename"), ("Kernel", "release"), ("Date", "date")] {
        let Printed { raw, line } = json.text(&format!("{host}/{key}"));
        let words = plumb_figures::Reading::Words;
        report.fact(name, &crate::figure::sheet::Cell { raw, line, reading: words });
    }
    report.run.host = json.text(&format!("{host}/nodename")).raw;
    report.run.platform = format!("Linux {}", json.text(&format!("{host}/release")).raw);
    report.run.cpus = json.text(&format!("{host}/number-of-cpus")).raw.parse().ok();
    let sample = |number: usize| json::place(&format!("{host}/statistics"), number);
    let mut names = json.keys(&format!("{}/disk", sample(0)));
    names.insert(0, "time".to_string());
    let heading = Printed { raw: "Device".to_string(), line: part.first_line() };
    let mut sheet = Sheet::new(Some(&DEVICES), heading, names);
    for number in 0.. {
        let of = sample(number);
        let time = json.text(&format!("{of}/timestamp"));
        let first = sheet.rows.len();
        if json.rows(&format!("{of}/disk"), &mut sheet) == 0 {
            break;
        }
        for row in &mut sheet.rows[first..] {
            row.cells[0].raw.clone_from(&time.raw);
        }
    }
    report.sheets.extend((!sheet.rows.is_empty()).then_some(sheet));
    report.require_bracket(part, &json);
    ended(report)
}

/// Gives a report the interval that its stamps, or its number of samples, say.
fn ended(mut report: Report) -> Report {
    report.run.title = "DEVICE STATISTICS".to_string();
    report.run.workload = report.run.host.clone();
    let Some(sheet) = report.sheets.first() else { return report };
    let of_rows =
        || sheet.rows.iter().map(|row| sheet.text(row, "stamp")).filter(|stamp| *stamp != "Average:");
    // The head of sar has the begin of its first sample.
    let begin = report.run.begin.clone();
    let stamps = || std::iter::once(begin.as_str()).chain(of_rows());
    if begin.is_empty() {
        report.run.begin = of_rows().next().unwrap_or("").to_string();
    }
    report.run.end = of_rows().next_back().unwrap_or("").to_string();
    let first = sheet.rows.first().map_or("", |row| sheet.text(row, "device"));
    let samples = sheet.rows.iter().filter(|row| sheet.text(row, "device") == first).count();
    let each = report.facts.iter().find(|fact| fact.name == "Sample, seconds");
    let each = each.and_then(|fact| fact.text.parse::<f64>().ok());
    let by_samples = each.map(|each| each * samples as f64);
    // Both stamps are cut off to whole seconds.
    let seconds = seconds_between(stamps()).or(by_samples);
    report.run.elapsed = seconds.map(|seconds| seconds_cell(seconds, 1.0, sheet.line));
    report
}

const READ_SIZE: Rule = Rule {
    name: "bytes / reads = size of a read",
    arithmetic: "bytes read a second / reads a second = average size of a read",
};
const WRITE_SIZE: Rule = Rule {
    name: "bytes / writes = size of a write",
    arithmetic: "bytes written a second / writes a second = average size of a write",
};
const SIZE: Rule = Rule {
    name: "bytes / requests = size of a request",
    arithmetic: "all bytes a second / all requests a second = average size of a request",
};
const QUEUE: Rule = Rule {
    name: "requests x time = queue",
    arithmetic: "Little's law: sum of requests a second x their time = average number in the queue",
};
const TIME: Rule = Rule {
    name: "await is between r_await and w_await",
    arithmetic: "time of a read x reads + time of a write x writes = await x all requests",
};
const BUSY: Rule = Rule {
    name: "%util <= 100%",
    arithmetic: "a device is busy for no more than the interval, and 1% for the clock",
};
const POSSIBLE: Rule = Rule {
    name: "a request is possible",
    arithmetic: "size of a request / its time <= 20 GB/s, more than any device or link moves",
};

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in rows(report, DEVICES.key).chain(rows(report, COLLECTED.key)) {
        of_row(sheet, row, &mut checks);
    }
    checks
}

fn of_row(sheet: &Sheet, row: &SheetRow, checks: &mut Vec<Consistency>) {
    let of = [sheet.text(row, "device"), sheet.text(row, "stamp")].join(" ");
    let of = of.trim();
    let is_cut_off = sheet.section == COLLECTED.key;
    let figure = |key: &str| {
        let figure = sheet.figure(row, key)?;
        let more = if is_cut_off { (figure.range.high - figure.value).max(0.0) } else { 0.0 };
        let range = ValueRange { low: figure.range.low, high: figure.range.high + more };
        Some(Figure { range, ..figure })
    };
    let sum = |keys: &[&str]| {
        let all: Vec<Figure> = keys.iter().filter_map(|key| figure(key)).collect();
        let range = all.iter().fold(ValueRange::exactly(0.0), |sum, figure| sum.plus(figure.range));
        (range, all)
    };
    let mut meet = |rule: &Rule, expected: Option<ValueRange>, found: Figure, parts: &[&Figure]| {
        let Some(expected) = expected.filter(|_| found.value > 0.0) else { return };
        let sides = Sides { expected, found: found.range, unit: found.unit };
        let figures: Vec<&Figure> = parts.iter().copied().chain([&found]).collect();
        checks.push(rule.meets(of, sides, &figures));
    };
    for (rule, [bytes, requests, size]) in [
        (&READ_SIZE, ["read_bytes", "reads", "read_size"]),
        (&WRITE_SIZE, ["written_bytes", "writes", "write_size"]),
    ] {
        if let (Some(bytes), Some(requests), Some(size)) = (figure(bytes), figure(requests), figure(size)) {
            meet(rule, bytes.range.over(requests.range), size, &[&bytes, &requests]);
        }
    }
    let (bytes, of_bytes) = sum(&["read_bytes", "written_bytes", "discarded_bytes"]);
    let (requests, of_requests) = sum(&["requests", "reads", "writes", "discards"]);
    if let (Some(size), 2..) = (figure("size"), of_bytes.len()) {
        let parts: Vec<&Figure> = of_bytes.iter().chain(&of_requests).collect();
        meet(&SIZE, bytes.over(requests), size, &parts);
    }
    let timed = [
        ["reads", "read_time"],
        ["writes", "write_time"],
        ["discards", "discard_time"],
        ["flushes", "flush_time"],
    ];
    let timed: Vec<[Figure; 2]> =
        timed.iter().filter_map(|[rate, time]| Some([figure(rate)?, figure(time)?])).collect();
    let product = timed
        .iter()
        .fold(ValueRange::exactly(0.0), |sum, [rate, time]| sum.plus(rate.range.times(time.range)));
    let parts: Vec<&Figure> = timed.iter().flatten().collect();
    // Kernels before 4.20, whose tools know no discards, sample the queue.
    if let (Some(queue), true) = (figure("queue"), figure("discards").is_some() && timed.len() > 1) {
        meet(&QUEUE, Some(product), queue, &parts);
    }
    if let (Some(time), 2) = (figure("time"), timed.len()) {
        meet(&TIME, product.over(requests), time, &parts);
    }
    bounds(of, sheet, row, checks);
}

fn bounds(of: &str, sheet: &Sheet, row: &SheetRow, checks: &mut Vec<Consistency>) {
    let figure = |key: &str| sheet.figure(row, key).filter(|figure| figure.value > 0.0);
    if let Some(busy) = figure("busy") {
        let sides = Sides { expected: ValueRange { low: 0.0, high: 101.0 }, found: busy.range, unit: "%" };
        checks.push(BUSY.at_most(of, sides, &[&busy]));
    }
    for [size, time] in [["read_size", "read_time"], ["write_size", "write_time"]] {
        let (Some(size), Some(time)) = (figure(size), sheet.figure(row, time)) else { continue };
        let least = size.range.low / time.range.high;
        let found = ValueRange { low: least, high: f64::INFINITY };
        let expected = ValueRange { low: 0.0, high: REQUEST_RATE_MOST };
        let outcome = if least > REQUEST_RATE_MOST {
            plumb_record::Consistent::Impossible
        } else {
            plumb_record::Consistent::Holds
        };
        let found = ValueRange { high: found.high.min(f64::MAX), ..found };
        let sides = Sides { expected, found, unit: "bytes/s" };
        checks.push(POSSIBLE.judged(of, sides, &[&size, &time], outcome));
    }
}

/// Means of each device over its samples: a time is weighted by its requests.
fn means(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for sheet in report.sheets_of(DEVICES.key).chain(report.sheets_of(COLLECTED.key)) {
        let mut devices: Vec<&str> = Vec::new();
        for row in &sheet.rows {
            let device = sheet.text(row, "device");
            if !devices.contains(&device) && devices.len() < DEVICES_MOST {
                devices.push(device);
            }
        }
        for device in devices {
            found.extend(of_device(report, sheet, device));
        }
    }
    found
}

/// Devices that means are computed of, at most.
const DEVICES_MOST: usize = 200;

fn of_device(report: &Report, sheet: &Sheet, device: &str) -> Vec<ImportedFigure> {
    let is_own =
        |row: &&SheetRow| sheet.text(row, "device") == device && sheet.text(row, "stamp") != "Average:";
    let all: Vec<&SheetRow> = sheet.rows.iter().filter(is_own).collect();
    let is_since_boot = report.kind.starts_with("iostat") && all.len() > 1;
    let own = &all[usize::from(is_since_boot)..];
    let mut found = Vec::new();
    for (key, what, unit) in [
        ("reads", "reads", "/s"),
        ("writes", "writes", "/s"),
        ("requests", "requests", "/s"),
        ("read_bytes", "bytes read", "bytes/s"),
        ("written_bytes", "bytes written", "bytes/s"),
        ("queue", "queue", ""),
        ("busy", "busy", "%"),
    ] {
        let figures: Vec<Figure> = own.iter().filter_map(|row| sheet.figure(row, key)).collect();
        let Some(line) = figures.first().map(|figure| figure.line) else { continue };
        let count = figures.len() as f64;
        let sum = figures.iter().fold(ValueRange::exactly(0.0), |sum, figure| sum.plus(figure.range));
        let value = figures.iter().map(|figure| figure.value).sum::<f64>() / count;
        let range = sum.times(ValueRange::exactly(1.0 / count));
        found.extend(derived(format!("{device}: {what}"), unit, line, value, range));
    }
    for (rate, time, what) in [
        ("reads", "read_time", "time of a read"),
        ("writes", "write_time", "time of a write"),
        ("flushes", "flush_time", "time of a flush"),
        ("requests", "time", "time of a request"),
    ] {
        let rate = |row: &SheetRow| {
            let both = || Some((sheet.figure(row, "reads")?, sheet.figure(row, "writes")?));
            let sum = |(reads, writes): (Figure, Figure)| {
                let (range, value) = (reads.range.plus(writes.range), reads.value + writes.value);
                Figure { range, value, ..reads }
            };
            sheet.figure(row, rate).or_else(|| if rate == "requests" { both().map(sum) } else { None })
        };
        let pairs = own.iter().filter_map(|row| Some((rate(row)?, sheet.figure(row, time)?)));
        let (rates, times): (Vec<Figure>, Vec<Figure>) = pairs
            .filter(|(rate, _)| rate.value > 0.0)
            .map(|(rate, time)| {
                let (range, value) = (rate.range.times(time.range), rate.value * time.value);
                (rate, Figure { range, value, ..time })
            })
            .unzip();
        found.extend(quotient(format!("{device}: {what}"), "s", [&times, &rates]));
    }
    found
}
