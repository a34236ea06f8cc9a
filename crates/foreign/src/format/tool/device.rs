//! Statistics of block devices: iostat in all forms, sar -d, sadf, collectl -sD.
//!
//! Columns came and went: sysstat 9 has one `await` and sizes in sectors, 10 has one time for
//! reads and one for writes, 12 has sizes in kB, 12.1 discards and 12.5 flushes. Without -x there
//! are totals next to the rates; -h prints the device last and three tables a sample. One table of
//! columns serves all, because a heading always has the same meaning.
//!
//! A mean weighs each sample by the seconds that it covers, and a device that a sample leaves out
//! (`iostat -z`) was idle in it. The first sample of iostat is the mean since the start of the
//! machine. Where others follow, it has no weight, unless its rates are whole numbers of requests
//! for the interval of the others (`iostat -y`).
//!
//! `svctm` is no measurement and `%util` of 100 is no saturation; neither is checked against
//! anything. collectl cuts decimals off where iostat rounds.

use super::derived;
use super::lines::{self, Between, LineFormat, LineTable, second_of_day, seconds_after, seconds_cell};
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Figure, Printed, Sheet, SheetHead, SheetRow, added};
use crate::figure::shown::scaled;
use crate::form::json;
use crate::format::sections::with_columns;
use crate::reader::{Begins, CELLS_MOST, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::bound::REQUEST_RATE_MOST;
use plumb_findings::DeviceSignals;
use plumb_record::{Consistency, ImportedFact, ImportedFigure};
use plumb_units::ValueRange;
use std::collections::{BTreeMap, BTreeSet};

/// The readers of the tools.
pub(super) const READERS: [Reader; 5] = [
    reader(
        "iostat JSON",
        Begins::Line(|line| line.trim_start_matches(['{', ' ']).starts_with("\"sysstat\"")),
        of_json,
    ),
    reader("iostat", Begins::Ranges(|part| lines::ranges(part, &IOSTAT)), |part| {
        ended(lines::read(part, &IOSTAT))
    }),
    reader("sar -d", Begins::Ranges(|part| lines::ranges(part, &SAR)), |part| ended(lines::read(part, &SAR))),
    reader("sadf -d", Begins::Ranges(|part| lines::ranges(part, &SADF)), |part| {
        ended(lines::read(part, &SADF))
    }),
    reader("collectl", Begins::Ranges(|part| lines::ranges(part, &COLLECTL)), |part| {
        ended(lines::read(part, &COLLECTL))
    }),
];

/// A reader whose reports have a row for each device and sample.
const fn reader(kind: &'static str, begins: Begins, read: fn(&SourcePart<'_>) -> Report) -> Reader {
    Reader::new(kind, begins, read).checked(checks).filling(means, Fill::Derived)
}

const fn blanks(needs: &'static [&'static str]) -> LineTable {
    LineTable { section: "devices", between: Between::Blanks, needs, loose: "" }
}

static IOSTAT: LineFormat = LineFormat {
    tables: &[
        blanks(&["Device", "r/s", "w/s", "%util"]),
        blanks(&["Device", "tps"]),
        // Of -h, which prints a table for each kind of request, the device last.
        blanks(&["Device", "r/s"]),
        blanks(&["Device", "w/s"]),
        blanks(&["Device", "d/s"]),
        blanks(&["Device", "%util"]),
    ],
    pairs: "",
    aside: sysstat,
    stamped: true,
};

static SAR: LineFormat =
    LineFormat { tables: &[blanks(&["DEV", "tps"])], pairs: "", aside: sysstat, stamped: true };

static SADF: LineFormat = LineFormat {
    tables: &[LineTable {
        section: "devices",
        between: Between::Semicolons,
        needs: &["hostname", "interval", "timestamp", "DEV", "tps"],
        loose: "",
    }],
    pairs: "",
    aside: |_, text, _| text.contains("LINUX-RESTART"),
    stamped: false,
};

static COLLECTL: LineFormat = LineFormat {
    tables: &[LineTable {
        section: "collected",
        between: Between::Blanks,
        needs: &["Name", "KBytes", "IOs", "RWSize"],
        loose: "",
    }],
    pairs: "",
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

/// Words of a line around the tables at most.
const SYSSTAT_WORDS_MOST: usize = 16;

/// Lines around the tables: `Linux 5.10.0 (host)  09/04/24  _x86_64_ (4 CPU)` and the times of
/// processors, which are no matter of a device.
fn sysstat(line: u32, text: &str, report: &mut Report) -> bool {
    let words: Vec<&str> = text.split_whitespace().take(SYSSTAT_WORDS_MOST).collect();
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
    // The command above its output says whether the first sample is one.
    if let Some((_, options)) = text.split_once("iostat -") {
        let fact = |text: &str| ImportedFact { name: "Command".to_string(), text: text.to_string(), line };
        report.facts.push(fact(&format!("iostat -{}", options.trim())));
        return true;
    }
    let is_of_cpu = |word: &&str| word.trim_end_matches('%').replace(',', ".").parse::<f64>().is_ok();
    text.contains("avg-cpu:") || text.contains("RESTART") || words.len() == 6 && words.iter().all(is_of_cpu)
}

/// Reads the JSON of iostat, or of sadf, whose samples say their interval.
fn of_json(part: &SourcePart<'_>) -> Report {
    // The first brace is on the line of the first key, or on one before.
    let json = json::read_behind(part, part.text.find("\"sysstat\"").unwrap_or(0));
    let mut report = Report::default();
    let host = json::place("sysstat/hosts", 0);
    let sample = |number: usize| json::place(&format!("{host}/statistics"), number);
    let is_sample = |number: &usize| json.below(&format!("{}/", sample(*number))).next().is_some();
    let all: Vec<usize> = (0..).take_while(is_sample).collect();
    // With -z a sample may have no device.
    let names = all.iter().map(|number| json.keys(&format!("{}/disk", sample(*number))));
    let Some(mut names) = names.into_iter().find(|names| !names.is_empty()) else { return report };
    names.insert(0, "time".to_string());
    let mut sheet = with_columns("devices", part.first_line(), names);
    for number in all {
        let of = sample(number);
        let find = |key: &str| json.text(&format!("{of}/timestamp{key}")).raw;
        let stamp = [find(""), find("/date"), find("/time")].join(" ").trim().to_string();
        let first = sheet.rows.len();
        let seconds = find("/interval").parse().ok();
        sheet.heads.push(SheetHead { rows: first, stamp: stamp.clone(), seconds });
        json.rows(&format!("{of}/disk"), &mut sheet);
        sheet.rows[first..].iter_mut().for_each(|row| row.cells[0].raw.clone_from(&stamp));
    }
    let has_intervals = sheet.heads.iter().any(|head| head.seconds.is_some());
    report.kind = if has_intervals { "sadf JSON" } else { "" }.to_string();
    report.sheets.push(sheet);
    for (name, key) in [("Host", "nodename"), ("Kernel", "release"), ("Date", "date")] {
        let Printed { raw, line } = json.text(&format!("{host}/{key}"));
        let words = plumb_figures::CellReading::Words;
        report.fact(name, &crate::figure::sheet::Cell { raw, line, reading: words });
    }
    report.run.host = json.text(&format!("{host}/nodename")).raw;
    report.run.platform = format!("Linux {}", json.text(&format!("{host}/release")).raw);
    report.run.cpus = json.text(&format!("{host}/number-of-cpus")).raw.parse().ok();
    report.require_bracket(part, &json);
    ended(report)
}

/// Gives a report the interval that its samples cover.
fn ended(mut report: Report) -> Report {
    report.run.title = "DEVICE STATISTICS".to_string();
    report.run.workload = report.run.host.clone();
    // It will be refused.
    if report.cells() > CELLS_MOST {
        return report;
    }
    // Without stamps no column is for them.
    for sheet in &mut report.sheets {
        let has_stamp = |row: &SheetRow| row.cells.first().is_some_and(|cell| !cell.raw.is_empty());
        if sheet.columns.first().is_some_and(|first| first.key == "stamp")
            && !sheet.rows.iter().any(has_stamp)
        {
            sheet.columns.remove(0);
            sheet.rows.iter_mut().for_each(|row| drop(row.cells.remove(0)));
        }
    }
    let series = Series::of(&report);
    let Some((_, sheet, row)) = series.rows.first() else { return report };
    let line = row.cells.last().map_or(sheet.line, |cell| cell.line);
    let stamps = || series.samples.iter().map(|sample| sample.stamp.clone());
    let (begin, end) = (stamps().next().unwrap_or_default(), stamps().next_back().unwrap_or_default());
    let seconds = series.seconds();
    let said = series.said();
    // The head of sar has the begin of its first sample.
    if report.run.begin.is_empty() {
        report.run.begin = begin;
    }
    report.run.end = end;
    // Both stamps are cut off to whole seconds.
    report.run.elapsed = seconds.map(|seconds| seconds_cell(seconds, 1.0, line));
    answer(&mut report);
    report.facts.push(ImportedFact { name: "Samples".to_string(), text: said, line: 0 });
    report
}

/// Devices that the first lines answer for.
const ANSWERS_MOST: usize = 4;

/// Says of the busiest devices what they did.
fn answer(report: &mut Report) {
    let figures = means(report);
    let mut devices: Vec<(&str, f64)> = Vec::new();
    for figure in &figures {
        let Some((device, what)) = figure.name.split_once(": ") else { continue };
        let rate = if ["reads", "writes", "requests"].contains(&what) { figure.value } else { 0.0 };
        match devices.iter_mut().find(|(known, _)| *known == device) {
            Some((_, sum)) => *sum += rate,
            None => devices.push((device, rate)),
        }
    }
    devices.sort_by(|one, two| two.1.total_cmp(&one.1));
    let mut said = Vec::new();
    for (device, rate) in devices.iter().take(ANSWERS_MOST) {
        let of = |what: &str| figures.iter().find(|figure| figure.name == format!("{device}: {what}"));
        let shown = |what: &str| of(what).map(|figure| scaled(figure.value, &figure.unit).replace(" %", "%"));
        let moved: f64 = ["bytes read", "bytes written", "bytes moved"]
            .iter()
            .filter_map(|what| of(what))
            .map(|figure| figure.value)
            .sum();
        let value = format!("{} IOPS, {}", scaled(*rate, ""), scaled(moved, "bytes/s"));
        let parts = [
            ("read", "time of a read"),
            ("write", "time of a write"),
            ("request", "time of a request"),
            ("flush", "time of a flush"),
            ("queue", "queue"),
            ("busy", "busy"),
            ("busiest sample", "requests in the busiest sample"),
        ];
        let aside = parts.iter().filter_map(|(name, what)| Some(format!("{name} {}", shown(what)?)));
        said.push((device.to_string(), value, aside.collect::<Vec<_>>().join(", ")));
    }
    for (device, value, aside) in said {
        report.answer(&device, value, aside);
    }
}

/// A sample of all devices.
#[derive(Debug, Clone, Default)]
struct Sample {
    stamp: String,
    /// Seconds that it covers, if the report says.
    seconds: Option<f64>,
    /// Seconds for the means; equal ones if the report does not say them.
    weight: f64,
}

/// The samples of a report, and its rows by sample.
struct Series<'r> {
    samples: Vec<Sample>,
    rows: Vec<SampleRow<'r>>,
    /// Rows of sar with the means of the rows above them; the number of those rows.
    averages: Vec<SampleRow<'r>>,
    /// The first sample is the mean since the start of the machine.
    since_boot: bool,
}

impl<'r> Series<'r> {
    fn of(report: &'r Report) -> Series<'r> {
        let mut series =
            Series { samples: Vec::new(), rows: Vec::new(), averages: Vec::new(), since_boot: false };
        for sheet in report.sheets_of("devices").chain(report.sheets_of("collected")) {
            series.add(sheet);
        }
        let fact = |name: &str| report.facts.iter().find(|fact| fact.name == name);
        let each = fact("Sample, seconds").and_then(|fact| fact.text.parse::<f64>().ok());
        let command = fact("Command").map(|fact| fact.text.as_str());
        let options = command.map(|text| text.split_whitespace().filter(|word| word.starts_with('-')));
        let is_y = options.map(|mut all| all.any(|word| word.contains('y')));
        let is_iostat = series.rows.first().is_some_and(|(_, sheet, _)| {
            sheet.section == "devices" && is_by_head(sheet) && sheet.heads[0].seconds.is_none()
        });
        series.weigh(each);
        series.since_boot =
            is_iostat && series.samples.len() > 1 && !is_y.unwrap_or_else(|| series.is_first_of_interval());
        if series.since_boot {
            series.samples[0].weight = 0.0;
        }
        series
    }

    /// Adds the rows of a table. A sample begins with a head of iostat, with another stamp, and
    /// with a device that the sample has.
    fn add(&mut self, sheet: &'r Sheet) {
        let by_head = is_by_head(sheet);
        // Tables of one sample of iostat -h have the same number.
        let base = if by_head { 0 } else { self.samples.len() };
        let (mut count, mut heads) = (0, sheet.heads.iter().peekable());
        let mut before: Option<f64> = None;
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut begin = |samples: &mut Vec<Sample>, stamp: &str, seconds: Option<f64>| {
            count += 1;
            if samples.len() < base + count {
                samples.push(Sample { stamp: stamp.to_string(), seconds, weight: 1.0 });
            }
        };
        for (number, row) in sheet.rows.iter().enumerate() {
            while let Some(head) = heads.next_if(|head| head.rows <= number) {
                let second = second_of_day(&head.stamp);
                if by_head {
                    let seconds = head.seconds.or_else(|| Some(seconds_after(before?, second?)));
                    begin(&mut self.samples, &head.stamp, seconds);
                }
                (before, seen) = (second, BTreeSet::new());
            }
            let (device, stamp) = (sheet.text(row, "device"), sheet.text(row, "stamp"));
            if device.starts_with("LINUX-RESTART") {
                continue;
            }
            if stamp == "Average:" {
                self.averages.push((self.rows.len(), sheet, row));
                continue;
            }
            let is_new = self
                .rows
                .last()
                .is_none_or(|(_, last, row)| !std::ptr::eq(*last, sheet) || last.text(row, "stamp") != stamp);
            if !by_head && (is_new || seen.contains(device)) {
                let second = second_of_day(stamp);
                let said = sheet.figure(row, "seconds").map(|figure| figure.value);
                let seconds = said.or_else(|| Some(seconds_after(before?, second?)));
                begin(&mut self.samples, stamp, seconds.filter(|seconds| *seconds > 0.0));
                (before, seen) = (second, BTreeSet::new());
            }
            seen.insert(device);
            self.rows.push((self.samples.len().max(1) - 1, sheet, row));
            if by_head {
                let own = sheet.heads.partition_point(|head| head.rows <= number);
                self.rows.last_mut().expect("pushed").0 = own.max(1) - 1;
            }
        }
        // With -z a sample without a row had no request.
        for head in heads.filter(|_| by_head) {
            let seconds = head.seconds.or_else(|| Some(seconds_after(before?, second_of_day(&head.stamp)?)));
            begin(&mut self.samples, &head.stamp, seconds);
            before = second_of_day(&head.stamp);
        }
    }

    /// Gives each sample its seconds: said, or of the totals of plain iostat, or those of others.
    fn weigh(&mut self, each: Option<f64>) {
        for (at, sheet, row) in &self.rows {
            let figure = |key: &str| sheet.figure(row, key).filter(|figure| figure.value > 0.0);
            let of_total = |total: &str, rate: &str| {
                let (total, rate) = (figure(total)?, figure(rate)?);
                // Rates of two decimals say seconds to a hundredth only if they are large.
                (rate.value > 100.0 * (rate.range.high - rate.value)).then(|| total.value / rate.value)
            };
            let sample = &mut self.samples[*at];
            let own =
                of_total("read_total", "read_bytes").or_else(|| of_total("written_total", "written_bytes"));
            sample.seconds = sample.seconds.or(own);
        }
        let mut known: Vec<f64> = self.samples.iter().filter_map(|sample| sample.seconds).collect();
        known.sort_by(f64::total_cmp);
        let usual = each.or_else(|| known.get(known.len() / 2).copied());
        for sample in &mut self.samples {
            sample.seconds = sample.seconds.or(each);
            sample.weight = sample.seconds.or(usual).unwrap_or(1.0);
        }
    }

    /// True if the first sample can be one of an interval like the others: all its rates are whole
    /// requests and milliseconds, and those of a mean since the start of the machine are not.
    fn is_first_of_interval(&self) -> bool {
        /// Below it the figures are counts: one rate and a busy share of a second. Rates of longer
        /// intervals are round by themselves more often.
        const CHANCE_MOST: [f64; 2] = [2e-3, 1e-5];
        const RATES: [&str; 5] = ["reads", "writes", "discards", "flushes", "requests"];
        // The chance that figures of two decimals are whole without being counts.
        let chance = |is_own: &dyn Fn(usize) -> bool, seconds: f64| -> f64 {
            let mut chance = 1.0;
            for (_, sheet, row) in self.rows.iter().filter(|(at, ..)| is_own(*at)) {
                let rates = RATES.iter().filter_map(|key| sheet.figure(row, key));
                let rates = rates.map(|rate| (rate.value * seconds, 0.006 * seconds, 0.01 * seconds));
                let busy = sheet.figure(row, "busy");
                let busy = busy.map(|busy| (busy.value * 10.0 * seconds, 0.06 * seconds, 0.1 * seconds));
                for (count, most, own) in rates.chain(busy).filter(|(count, ..)| *count > 0.5) {
                    if (count - count.round()).abs() > most {
                        return 1.0;
                    }
                    chance *= own.min(1.0);
                }
            }
            chance
        };
        let is_whole = |is_own: &dyn Fn(usize) -> bool, seconds: f64| {
            chance(is_own, seconds) <= CHANCE_MOST[usize::from(seconds > 2.0)]
        };
        let timed = self.samples[1..].iter().find_map(|sample| sample.seconds);
        let mut tried =
            timed.into_iter().chain([1.0, 2.0, 5.0, 10.0].into_iter().filter(|_| timed.is_none()));
        let usual = tried.find(|seconds| is_whole(&|at| at > 0, *seconds));
        usual.is_some_and(|seconds| is_whole(&|at| at == 0, seconds))
    }

    /// Returns the seconds of the samples with a weight, if the report says them all.
    fn seconds(&self) -> Option<f64> {
        let counted = self.samples.iter().skip(usize::from(self.since_boot));
        let all: Option<Vec<f64>> = counted
            .enumerate()
            .map(|(at, sample)| {
                sample.seconds.or_else(|| (at == 0 && self.is_timed()).then_some(sample.weight))
            })
            .collect();
        all.map(|all| all.iter().sum::<f64>()).filter(|seconds| *seconds > 0.0)
    }

    fn is_timed(&self) -> bool {
        self.samples.len() > 1 && self.samples[1..].iter().all(|sample| sample.seconds.is_some())
    }

    fn said(&self) -> String {
        let count = self.samples.len();
        match (self.since_boot, count) {
            (true, _) => format!(
                "{} of {count}; the first is left out: unless -y is given, it is the mean since the start of the machine",
                count - 1
            ),
            (false, 1) if self.rows.first().is_some_and(|(_, sheet, _)| is_by_head(sheet)) => {
                "1; of iostat without -y it is the mean since the start of the machine".to_string()
            }
            (false, _) => count.to_string(),
        }
    }
}

/// True if each head of a table begins a sample, as those of iostat do.
fn is_by_head(sheet: &Sheet) -> bool {
    let stamp = |number: usize| sheet.rows.get(number).map(|row| sheet.text(row, "stamp"));
    sheet.section == "devices"
        && !sheet.columns.iter().any(|column| column.key == "seconds")
        && sheet.heads.iter().all(|head| stamp(head.rows).is_none_or(|own| own == head.stamp))
}

const READ_SIZE: Rule = Rule::new(
    "bytes / reads = size of a read",
    "bytes read a second / reads a second = average size of a read",
);
const WRITE_SIZE: Rule = Rule::new(
    "bytes / writes = size of a write",
    "bytes written a second / writes a second = average size of a write",
);
const SIZE: Rule = Rule::new(
    "bytes / requests = size of a request",
    "all bytes a second / all requests a second = average size of a request",
);
const QUEUE: Rule = Rule::new(
    "requests x time = queue",
    "Little's law: sum of requests a second x their time = average number in the queue",
);
const TIME: Rule = Rule::new(
    "await is between r_await and w_await",
    "time of a read x reads + time of a write x writes = await x all requests",
);
const BUSY: Rule =
    Rule::new("%util <= 100%", "a device is busy for no more than the interval, and 1% for the clock");
const POSSIBLE: Rule = Rule::new(
    "a request is possible",
    "size of a request / its time <= 20 GB/s, more than any device or link moves",
);

const AVERAGE: Rule = Rule::new(
    "mean of the samples = Average",
    "sum of a rate x the seconds of its sample / all seconds = the rate in the row Average",
);

/// Rows of sar with averages against the samples above them.
fn averages(report: &Report, checks: &mut Vec<Consistency>) {
    let series = Series::of(report);
    let mut begin = 0;
    for block in series.averages.chunk_by(|one, two| one.0 == two.0) {
        let end = block[0].0;
        let rows = &series.rows[begin..end];
        let all = || rows.iter().map(|(at, ..)| *at);
        let (first, last) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        let seconds: f64 = series.samples.iter().take(last + 1).skip(first).map(|sample| sample.weight).sum();
        let by_device = by_device(rows);
        for (_, sheet, row) in block {
            let device = sheet.text(row, "device");
            for key in ["requests", "read_bytes", "written_bytes"] {
                let Some(average) = sheet.figure(row, key) else { continue };
                let own = by_device.get(device).into_iter().flatten();
                let mut used = vec![average.clone()];
                let mut sum = ValueRange::exactly(0.0);
                for (at, of, row) in own {
                    let Some(figure) = of.figure(row, key) else { continue };
                    let weight = ValueRange::exactly(series.samples[*at].weight / seconds);
                    sum = sum.plus(figure.range.times(weight));
                    used.push(figure);
                }
                // Stamps are whole seconds, and intervals are not.
                let (low, high) = (sum.low * 0.99, sum.high * 1.01);
                let sides =
                    Sides { expected: ValueRange { low, high }, found: average.range, unit: average.unit };
                let used: Vec<&Figure> = used.iter().take(8).collect();
                checks.push(AVERAGE.meets(&format!("{device} {key}"), sides, &used));
            }
        }
        begin = end;
    }
}

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    averages(report, &mut checks);
    for (sheet, row) in report.rows("devices").chain(report.rows("collected")) {
        of_row(sheet, row, &mut checks);
    }
    checks
}

fn of_row(sheet: &Sheet, row: &SheetRow, checks: &mut Vec<Consistency>) {
    let of = [sheet.text(row, "device"), sheet.text(row, "stamp")].join(" ");
    let of = of.trim();
    let is_cut_off = sheet.section == "collected";
    let figure = |key: &str| {
        let figure = sheet.figure(row, key)?;
        let more = if is_cut_off { (figure.range.high - figure.value).max(0.0) } else { 0.0 };
        let range = ValueRange { low: figure.range.low, high: figure.range.high + more };
        Some(Figure { range, ..figure })
    };
    let sum = |keys: &[&str]| {
        let all: Vec<Figure> = keys.iter().filter_map(|key| figure(key)).collect();
        let range = added(&all);
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
    let (bytes, of_bytes) = sum(&["bytes", "read_bytes", "written_bytes", "discarded_bytes"]);
    let (requests, of_requests) = sum(&["requests", "reads", "writes", "discards"]);
    if let (Some(size), true) = (figure("size"), of_bytes.len() > 1 || figure("bytes").is_some()) {
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

/// Devices that means are computed of, at most.
const DEVICES_MOST: usize = 200;

/// Means of each device over its samples: a rate is weighed by seconds, a time by requests.
fn means(report: &Report) -> Vec<ImportedFigure> {
    let series = Series::of(report);
    let by_device = by_device(&series.rows);
    let mut named = BTreeSet::new();
    let devices = series.rows.iter().map(|(_, sheet, row)| sheet.text(row, "device"));
    let devices = devices.filter(|device| named.insert(*device)).take(DEVICES_MOST);
    devices.flat_map(|device| series.of_device(device, &by_device[device])).collect()
}

/// A row with the number of its sample, and its table.
type SampleRow<'r> = (usize, &'r Sheet, &'r SheetRow);

/// Returns the rows of each device, because a search of all rows for each device takes too long.
fn by_device<'r>(rows: &[SampleRow<'r>]) -> BTreeMap<&'r str, Vec<SampleRow<'r>>> {
    let mut devices: BTreeMap<&str, Vec<SampleRow<'_>>> = BTreeMap::new();
    for row in rows {
        devices.entry(row.1.text(row.2, "device")).or_default().push(*row);
    }
    devices
}

/// Returns what each device did, for the rules.
pub(crate) fn signals(report: &Report) -> Vec<DeviceSignals> {
    let mut devices: Vec<DeviceSignals> = Vec::new();
    for figure in means(report) {
        let Some((name, what)) = figure.name.split_once(": ") else { continue };
        if devices.last().is_none_or(|last| last.name != name) {
            devices.push(DeviceSignals { name: name.to_string(), ..DeviceSignals::default() });
        }
        let Some(device) = devices.last_mut() else { continue };
        let value = figure.value;
        match what {
            "reads" | "writes" | "requests" => device.requests_per_s += value,
            "time of a read" => device.read_s = Some(value),
            "time of a write" => device.write_s = Some(value),
            "flushes" => device.flushes = Some([value, 0.0]),
            "time of a flush" => device.flushes = device.flushes.map(|[rate, _]| [rate, value]),
            "queue" => device.queue = Some(value),
            "busy" => device.busy = Some(value / 100.0),
            "requests in the busiest sample" => device.most_per_s = Some(value),
            _ => {}
        }
    }
    devices
}

/// A sum of weighed figures.
#[derive(Debug, Clone, Copy)]
struct Sum {
    line: u32,
    value: f64,
    range: ValueRange,
}

impl Series<'_> {
    /// The sum of a quantity of a device over its samples, each times its seconds; `None` if no
    /// row has it.
    fn sum(
        &self,
        rows: &[SampleRow<'_>],
        of: impl Fn(&Sheet, &SheetRow) -> Option<(u32, f64, ValueRange)>,
    ) -> Option<Sum> {
        let mut found: Option<Sum> = None;
        for (at, sheet, row) in rows {
            let weight = self.samples[*at].weight;
            let Some((line, value, range)) = of(sheet, row) else { continue };
            let zero = ValueRange::exactly(0.0);
            let sum = found.get_or_insert(Sum { line, value: 0.0, range: zero });
            sum.value += weight * value;
            sum.range = sum.range.plus(range.times(ValueRange::exactly(weight)));
        }
        found
    }

    fn of_device(&self, device: &str, rows: &[SampleRow<'_>]) -> Vec<ImportedFigure> {
        let figure = |key: &'static str| {
            move |sheet: &Sheet, row: &SheetRow| {
                let figure = sheet.figure(row, key)?;
                Some((figure.line, figure.value, figure.range))
            }
        };
        let whole = self.samples.iter().map(|sample| sample.weight).sum::<f64>();
        let mut found = Vec::new();
        for (key, what, unit) in [
            ("reads", "reads", "/s"),
            ("writes", "writes", "/s"),
            ("requests", "requests", "/s"),
            ("flushes", "flushes", "/s"),
            ("read_bytes", "bytes read", "bytes/s"),
            ("written_bytes", "bytes written", "bytes/s"),
            ("bytes", "bytes moved", "bytes/s"),
            ("queue", "queue", ""),
            ("busy", "busy", "%"),
        ] {
            let Some(sum) = self.sum(rows, figure(key)) else { continue };
            let range = sum.range.times(ValueRange::exactly(1.0 / whole));
            found.extend(derived(format!("{device}: {what}"), unit, sum.line, sum.value / whole, range));
        }
        for (rates, time, what) in [
            (&["reads"][..], "read_time", "time of a read"),
            (&["writes"], "write_time", "time of a write"),
            (&["flushes"], "flush_time", "time of a flush"),
            (&["requests", "reads", "writes"], "time", "time of a request"),
        ] {
            let rate = |sheet: &Sheet, row: &SheetRow| {
                sheet.figure(row, time)?;
                let all: Vec<Figure> = rates.iter().filter_map(|key| sheet.figure(row, key)).collect();
                let range = added(&all);
                let value = all.iter().map(|one| one.value).sum::<f64>();
                (value > 0.0).then_some((all.first()?.line, value, range))
            };
            let product = |sheet: &Sheet, row: &SheetRow| {
                let ((_, rate, rates), time) = (rate(sheet, row)?, sheet.figure(row, time)?);
                Some((time.line, rate * time.value, rates.times(time.range)))
            };
            if let (Some(all), Some(count)) = (self.sum(rows, product), self.sum(rows, rate))
                && let Some(range) = all.range.over(count.range)
            {
                let value = all.value / count.value;
                found.extend(derived(format!("{device}: {what}"), "s", all.line, value, range));
            }
        }
        found.extend(self.busiest(device, rows));
        found
    }

    /// The requests a second in the sample with most of them, where there are several.
    fn busiest(&self, device: &str, rows: &[SampleRow<'_>]) -> Option<ImportedFigure> {
        let counted: Vec<f64> =
            self.samples.iter().map(|sample| sample.weight).filter(|weight| *weight > 0.0).collect();
        let mut sums: BTreeMap<usize, Sum> = BTreeMap::new();
        for (at, sheet, row) in rows.iter().filter(|(at, ..)| self.samples[*at].weight > 0.0) {
            for figure in ["requests", "reads", "writes"].iter().filter_map(|key| sheet.figure(row, key)) {
                let zero = Sum { line: figure.line, value: 0.0, range: ValueRange::exactly(0.0) };
                let sum = sums.entry(*at).or_insert(zero);
                (sum.value, sum.range) = (sum.value + figure.value, sum.range.plus(figure.range));
            }
        }
        let most = sums.into_values().max_by(|one, two| one.value.total_cmp(&two.value))?;
        let name = format!("{device}: requests in the busiest sample");
        derived(name, "/s", most.line, most.value, most.range).filter(|_| counted.len() > 1)
    }
}
