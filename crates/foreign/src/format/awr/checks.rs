//! Checks the arithmetic of an AWR or Statspack report.
//!
//! A check computes, from some figures, the interval of another one, and holds if the printed
//! figure meets it. A figure that no device, link or processor can reach is impossible and is left
//! out; the wait event gives the time instead.

use super::derived::{behind, block_assumed, minutes_of};
use crate::figure::check::{ExplainedByHabit as _, Habit, RowCheck, Rule, Sides};
use crate::figure::sheet::{Cell, Figure, Sheet, SheetRow, added};
use crate::report::Report;
use plumb_figures::bound::{REQUEST_RATE_MOST, request_rate};
use plumb_figures::relation::{Quotient, Test};
use plumb_figures::{Absence, CellReading, Quantity};
use plumb_record::{Consistency, Consistent};
use plumb_units::ValueRange;
use std::collections::HashMap;

const AVERAGE: Rule = Rule::new("time / waits = average", "total wait time / waits = average wait");
const SHARE: Rule =
    Rule::new("time / DB time = % of DB time", "total wait time / DB time = share of DB time");
const RATE: Rule = Rule::new("total / interval = per second", "total / elapsed time = per second");
const TRANSACTION: Rule = Rule::new(
    "total / transactions = per transaction",
    "total / (user commits + user rollbacks) = per transaction",
);
const PROFILE: Rule = Rule::new(
    "load profile = instance activity",
    "total of the statistic / elapsed time = per second of the load profile",
);
const VOLUME: Rule =
    Rule::new("bytes / interval = bytes per second", "data / elapsed time = data per second");
const SUM: Rule = Rule::new("sum of rows = total", "sum of the rows = the row TOTAL");
const FUNCTIONS: Rule = Rule::new(
    "functions = file types",
    "TOTAL by function = TOTAL by type of file: the server counts them at different moments",
);
/// Share of the bytes or requests of both directions below which a difference is small.
const SMALL_SHARE: f64 = 0.05;
/// Requests a second below which a difference of any share is of a few requests.
const SMALL_RATE: f64 = 2.0;
const IO_PROFILE: Rule =
    Rule::new("IOStat = IO Profile", "requests per second by IOStat = those of the IO Profile");
const READ: Rule = Rule::new(
    "a read is possible",
    "blocks per read x block size / time of a read <= 20 GB/s, more than any device or link moves",
);
const READS: Rule = Rule::new("reads / interval = reads per second", "reads / elapsed time = reads/s");
const WRITES: Rule = Rule::new(
    "writes of files = writes of their tablespace",
    "sum of the writes of a tablespace's files = its writes",
);
const SHIFTED: Rule = Rule::new(
    "columns stand under their headings",
    "writes of a tablespace's files = the figure one or two columns before Writes, and not that under it",
);
const WAITS: Rule = Rule::new("waits <= elapsed time", "sum of the waits of one session <= its elapsed time");
const HISTOGRAM: Rule = Rule::new(
    "histogram has the average",
    "least and greatest mean that the histogram allows enclose (foreground + background time) / waits",
);
const CAPTURED: Rule = Rule::new(
    "captured share",
    "(foreground wait time + DB CPU) / DB time = the captured share that is printed",
);
const CAPTURED_MOST: Rule = Rule::new(
    "captured time <= DB time",
    "foreground wait time + DB CPU <= DB time: a session cannot wait and compute at once",
);
/// Oracle times CPU within waits, and waits for asynchronous requests that overlap.
const ASYNCHRONOUS: Habit =
    Habit { name: "CPU + waits above DB time: asynchronous waits overlap", holds_most: 0.0, most: 0.35 };
const HEAD_TIME: Rule = Rule::new(
    "DB time of the head = time model",
    "DB time in minutes of the head = DB time of the time model, or of times over shares",
);
const HEAD_ELAPSED: Rule = Rule::new(
    "elapsed time of the head = snapshots, totals / rates",
    "minutes between the snapshots = totals of statistics / their rates",
);
const PROFILE_TIME: Rule = Rule::new(
    "load profile = time model",
    "DB time or DB CPU / elapsed time = per second of the load profile",
);
const IN_FLIGHT: Rule =
    Rule::new("reads in flight <= sessions", "reads x time of a read / elapsed time <= 128 for each session");
const DISPLACED: Rule = Rule::new(
    "figures stand under their headings",
    "a row has a figure in its first column of figures, and no figure is cut",
);
const LITTLE: Rule = Rule::new(
    "DB time <= sessions x interval",
    "Little's law: DB time / elapsed time is the average number of active sessions, of those that there were",
);
const PROCESSORS: Rule = Rule::new("CPU <= processors x interval", "DB CPU <= CPUs x elapsed time");
const HOST: Rule =
    Rule::new("user + system + idle <= 100%", "%User + %System + %Idle <= 100%; %WIO is a part of %Idle");
const INSTANCES: Rule = Rule::new("sum of instances", "sum of the instances = the row Sum");
const MEAN: Rule = Rule::new("average of instances", "Sum / instances = the row Avg");
const DIFFERENCE: Rule =
    Rule::new("%Diff of two periods", "100 x (2nd - 1st) / 1st = %Diff, which is computed before rounding");

/// Lists of events and classes with a share of DB time.
const OF_DB_TIME: &[&str] =
    &["top_events", "foreground_events", "wait_events", "wait_classes", "foreground_classes"];
const RATES: Quotient = Quotient::new(&["total"], &["@elapsed time"]);

/// The checks of single rows.
const ROW_CHECKS: &[RowCheck] = &[
    RowCheck {
        rule: AVERAGE,
        sections: &[
            "top_events",
            "foreground_events",
            "background_events",
            "wait_events",
            "wait_classes",
            "foreground_classes",
        ],
        quotient: Quotient::new(&["time"], &["waits"]),
        printed: "average",
    },
    RowCheck {
        rule: SHARE,
        sections: OF_DB_TIME,
        quotient: Quotient { over: &["time"], under: &["@DB time"], factor: 100.0 },
        printed: "share",
    },
    RowCheck { rule: RATE, sections: &["activity"], quotient: RATES, printed: "per_second" },
    RowCheck {
        rule: TRANSACTION,
        sections: &["activity"],
        quotient: Quotient::new(&["total"], &["@transactions"]),
        printed: "per_transaction",
    },
    RowCheck {
        rule: VOLUME,
        sections: &["io_functions", "io_filetypes"],
        quotient: Quotient::new(&["read_bytes"], &["@elapsed time"]),
        printed: "read_bytes_per_s",
    },
    RowCheck {
        rule: VOLUME,
        sections: &["io_functions", "io_filetypes"],
        quotient: Quotient::new(&["written_bytes"], &["@elapsed time"]),
        printed: "written_bytes_per_s",
    },
    RowCheck {
        rule: READS,
        sections: &["tablespaces", "files"],
        quotient: Quotient::new(&["reads"], &["@elapsed time"]),
        printed: "reads_per_s",
    },
    RowCheck {
        rule: AVERAGE,
        sections: &["compared_events"],
        quotient: Quotient::new(&["first_time"], &["first_waits"]),
        printed: "first_average",
    },
    RowCheck {
        rule: AVERAGE,
        sections: &["compared_events"],
        quotient: Quotient::new(&["second_time"], &["second_waits"]),
        printed: "second_average",
    },
];

pub fn checks(report: &Report) -> Vec<Consistency> {
    let whole = whole(report);
    let find = |key: &str| whole.iter().find(|(known, _)| *known == key).map(|(_, figure)| figure.clone());
    let mut checks = Vec::new();
    for check in ROW_CHECKS {
        for (sheet, row) in check.sections.iter().flat_map(|section| report.rows(section)) {
            // A share is of the DB time of all instances together.
            let is_part = !matches!(sheet.text(row, "instance"), "" | "*");
            if !(is_part && check.printed == "share") {
                checks.extend(check.ask(&name(sheet, row), sheet, row, &find));
            }
        }
    }
    checks.extend(head(report));
    checks.extend(profiles(report));
    checks.extend(sums(report));
    checks.extend(totals(report));
    for (sheet, row) in report.rows("tablespaces").chain(report.rows("files")) {
        checks.extend(possible(report, sheet, row));
    }
    checks.extend(in_flight(report));
    checks.extend(displaced(report));
    checks.extend(shifted(report));
    checks.extend(histograms(report));
    checks.extend(captured(report));
    checks.extend(statements(report));
    checks.extend(limits(report));
    checks.extend(instances(report));
    checks.extend(compared(report));
    checks
}

/// Returns the figures of the whole report that rows are divided by.
fn whole(report: &Report) -> Vec<(&'static str, Figure)> {
    let run = &report.run;
    let of = |key: &'static str, cell: &Option<Cell>| Some((key, of_cell(&key[1..], cell.as_ref(), "s")?));
    let transactions = total(report, "user commits").map(|commits| {
        let rollbacks =
            total(report, "user rollbacks").map_or(ValueRange::exactly(0.0), |rollbacks| rollbacks.range);
        ("@transactions", Figure { range: commits.range.plus(rollbacks), ..commits })
    });
    let all = [of("@elapsed time", &run.elapsed), of("@DB time", &run.db_time), transactions];
    all.into_iter().flatten().collect()
}

/// Returns the total of a statistic.
fn total(report: &Report, name: &str) -> Option<Figure> {
    let mut found = report.rows("activity").filter(|(sheet, row)| sheet.text(row, "name") == name);
    found.next().and_then(|(sheet, row)| sheet.figure(row, "total"))
}

/// Compares DB time and elapsed time of the head with what the sections below say.
fn head(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (rule, labels, cell) in [
        (HEAD_TIME, ["DB Time", "DB time"], &report.run.db_time),
        (HEAD_ELAPSED, ["Elapsed", "Elapsed"], &report.run.elapsed),
    ] {
        let sheet = report.sheet("snapshots");
        let row = sheet.and_then(|sheet| {
            let label = |row: &&SheetRow| labels.contains(&row.cells[0].raw.trim_end_matches(':'));
            Some((sheet, sheet.rows.iter().find(label)?))
        });
        let Some((sheet, row)) = row else { continue };
        let printed = minutes_of(sheet, row);
        let found = printed.as_ref().and_then(|cell| of_cell(labels[0], Some(cell), "s"));
        let expected = of_cell("time model", cell.as_ref(), "s");
        checks.extend(rule.ask("head", [expected, found], Test::Equal, Some));
    }
    let elapsed = of_cell("Elapsed", report.run.elapsed.as_ref(), "s");
    for (sheet, row) in report.rows("load_profile") {
        let own = sheet.text(row, "name").to_lowercase();
        let cell = match own.split('(').next().unwrap_or_default().trim_end_matches(':') {
            "db time" => &report.run.db_time,
            "db cpu" => &report.run.db_cpu,
            _ => continue,
        };
        let figures = [of_cell(&own, cell.as_ref(), "s"), elapsed.clone(), sheet.figure(row, "per_second")];
        checks
            .extend(PROFILE_TIME.ask(&own, figures, Test::Equal, |[time, elapsed, found]| {
                Some([time.over(elapsed)?, found])
            }));
    }
    checks
}

/// Compares the reads of a tablespace in flight, by its time, with those that the sessions could
/// have asked for.
fn in_flight(report: &Report) -> Vec<Consistency> {
    /// Requests of a session at once: a batch of a parallel or a direct read.
    const EACH_MOST: f64 = 128.0;
    let sessions = report.rows("snapshots").filter_map(|(sheet, row)| sheet.figure(row, "sessions"));
    let sessions = sessions.max_by(|one, two| one.value.total_cmp(&two.value));
    let elapsed = of_cell("Elapsed", report.run.elapsed.as_ref(), "s");
    let (Some(sessions), Some(elapsed)) = (sessions, elapsed) else { return Vec::new() };
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("tablespaces").chain(report.rows("files")) {
        let [reads, time] = ["reads", "read_time"].map(|key| sheet.figure(row, key));
        let (Some(reads), Some(time)) = (reads, time) else { continue };
        let Some(found) = reads.range.times(time.range).over(elapsed.range) else { continue };
        let most = ValueRange { low: 0.0, high: sessions.range.high * EACH_MOST };
        let sides = Sides { expected: most, found, unit: "" };
        let holds = found.may_be_at_most(most);
        let outcome = if holds { Consistent::Holds } else { Consistent::Impossible };
        let figures = [&reads, &time, &elapsed, &sessions];
        let mut check = IN_FLIGHT.judged(&name(sheet, row), sides, &figures, outcome);
        if !holds {
            check.note = "a fault of the read time: use the wait event's time".to_string();
        }
        checks.push(check);
    }
    checks
}

/// Sections whose rows all have a figure in their first column of figures, by its key.
const FILLED: [(&str, &str); 5] = [
    ("foreground_events", "waits"),
    ("background_events", "waits"),
    ("activity", "total"),
    ("io_functions", "read_bytes"),
    ("tablespaces", "reads"),
];

/// Names rows whose figures do not stand under their headings: the first column is blank, or a
/// figure is cut. Without this, such a row lowers the number of checks and is named nowhere.
fn displaced(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (section, key) in FILLED {
        for (sheet, row) in report.rows(section) {
            let figure = |at: usize| row.cells[at].reading.value().is_some();
            let places = |keyed: bool| {
                (0..row.cells.len()).filter(move |at| {
                    let column = &sheet.columns[*at];
                    column.unit.quantity != Quantity::Text && column.key.is_empty() != keyed
                })
            };
            let is_blank = sheet.cell(row, key).is_some_and(|cell| cell.raw.is_empty());
            let is_cut = |at: &usize| row.cells[*at].reading == CellReading::Absent(Absence::Unreadable);
            let cut = places(true).find(is_cut);
            let is_moved = is_blank && places(true).any(figure);
            let Some(at) = cut.or_else(|| is_moved.then(|| places(true).find(|at| figure(*at)))?) else {
                continue;
            };
            let (cell, column) = (&row.cells[at], &sheet.columns[at].name);
            let mut check = DISPLACED.not_asked(&name(sheet, row), "");
            check.outcome = Consistent::Fails;
            check.note = format!("line {}: {:?} stands under {column}", cell.line, cell.raw);
            checks.push(check);
        }
    }
    checks
}

/// Returns the name of a row: its first cell with words.
fn name(sheet: &Sheet, row: &SheetRow) -> String {
    let words = sheet.columns.iter().zip(&row.cells).filter(|(column, _)| {
        column.unit.quantity == Quantity::Text && !["instance", "class"].contains(&column.key)
    });
    words.map(|(_, cell)| cell.raw.as_str()).find(|name| !name.is_empty()).unwrap_or("").to_string()
}

/// Returns a cell of the head as a figure.
fn of_cell(name: &str, cell: Option<&Cell>, unit: &'static str) -> Option<Figure> {
    let cell = cell?;
    let CellReading::Value { value, range } = cell.reading else { return None };
    Some(Figure { name: name.to_string(), raw: cell.raw.clone(), line: cell.line, unit, value, range })
}

/// Rows of the load profile, and the statistics behind them.
const PROFILES: [(&str, &str); 8] = [
    ("redo size", "redo size"),
    ("logical read", "session logical reads"),
    ("block changes", "db block changes"),
    ("physical read", "physical reads"),
    ("physical write", "physical writes"),
    ("user calls", "user calls"),
    ("executes", "execute count"),
    ("logons", "logons cumulative"),
];

fn profiles(report: &Report) -> Vec<Consistency> {
    let elapsed = of_cell("Elapsed", report.run.elapsed.as_ref(), "s");
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("load_profile") {
        let own = sheet.text(row, "name").to_lowercase();
        let Some((_, statistic)) = PROFILES.iter().find(|(start, _)| own.starts_with(start)) else {
            continue;
        };
        let sides = (sheet.figure(row, "per_second"), total(report, statistic), &elapsed);
        if let (Some(found), Some(total), Some(elapsed)) = sides
            && let Some(expected) = total.range.over(elapsed.range)
        {
            let sides = Sides { expected, found: found.range, unit: "/s" };
            checks.push(PROFILE.meets(&own, sides, &[&total, elapsed, &found]));
        }
    }
    checks
}

/// Columns of I/O statistics that add up over the rows.
const ADDED: [&str; 8] = [
    "reads",
    "read_bytes",
    "reads_per_s",
    "read_bytes_per_s",
    "writes",
    "written_bytes",
    "writes_per_s",
    "written_bytes_per_s",
];

fn is_total(sheet: &Sheet, row: &SheetRow) -> bool {
    sheet.text(row, "name").trim_end_matches(':').eq_ignore_ascii_case("total")
}

/// Compares the sums of rows with their totals.
fn sums(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in ["io_functions", "io_filetypes"].iter().flat_map(|section| report.sheets_of(section)) {
        checks.extend(SUM.of_total(sheet, is_total, &ADDED));
    }
    checks
}

/// Compares the totals of different sections.
fn totals(report: &Report) -> Vec<Consistency> {
    let of_section = |section: &'static str, key: &str| {
        let mut found = report.rows(section).filter(|(sheet, row)| is_total(sheet, row));
        found.next().and_then(|(sheet, row)| sheet.figure(row, key))
    };
    let profile = |key: &str| {
        let mut found = report
            .rows("io_profile")
            .filter(|(sheet, row)| sheet.text(row, "name").trim_end_matches(':') == "Total Requests");
        found.next().and_then(|(sheet, row)| sheet.figure(row, key))
    };
    let mut checks = Vec::new();
    // Bytes or requests of both directions, of which a difference is a share.
    let kind = |key: &str| {
        let other = if key.contains("read") {
            key.replace("read", "written")
        } else {
            key.replace("written", "read")
        };
        let other = if key.starts_with("writes") { key.replace("writes", "reads") } else { other };
        let other = if key.starts_with("reads") { key.replace("reads", "writes") } else { other };
        [key, &other]
            .map(|key| of_section("io_functions", key).map_or(0.0, |figure| figure.value))
            .iter()
            .sum::<f64>()
    };
    let mut meet = |rule: &Rule, of: &str, expected: Option<Figure>, found: Option<Figure>, whole: f64| {
        if let (Some(expected), Some(found)) = (expected, found) {
            let sides = Sides { expected: expected.range, found: found.range, unit: found.unit };
            // A few writes of a system that reads are many per cent of its writes.
            let apart = (expected.range.low - found.range.high).max(found.range.low - expected.range.high);
            let is_small = apart <= whole * SMALL_SHARE || expected.value.max(found.value) < SMALL_RATE;
            let most = if is_small { 1.0 } else { Habit::MOMENTS.most };
            let habit = Habit { most, ..Habit::MOMENTS };
            checks.push(rule.within(of, sides, &[&expected, &found], habit));
        }
    };
    for key in ADDED {
        meet(&FUNCTIONS, key, of_section("io_filetypes", key), of_section("io_functions", key), kind(key));
    }
    for (section, words) in [
        ("io_filetypes", "file types"),
        ("io_functions", "functions"),
        ("global_io_functions", "functions"),
        ("global_io_filetypes", "file types"),
    ] {
        for (key, own) in [("reads", "reads_per_s"), ("writes", "writes_per_s")] {
            meet(&IO_PROFILE, &format!("{key} by {words}"), profile(key), of_section(section, own), 0.0);
        }
    }
    checks
}

fn possible(report: &Report, sheet: &Sheet, row: &SheetRow) -> Option<Consistency> {
    let [blocks, time] = [sheet.figure(row, "blocks_per_read")?, sheet.figure(row, "read_time")?];
    if blocks.value <= 0.0 {
        return None;
    }
    let (block, assumed) = block_assumed(report);
    let bytes = blocks.range.times(ValueRange::exactly(block));
    // A contradiction must hold even for the longest time with the printed text.
    let least = request_rate(bytes, time.range);
    let is_impossible = least.low > REQUEST_RATE_MOST;
    let outcome = if is_impossible { Consistent::Habit } else { Consistent::Holds };
    let most = ValueRange { low: 0.0, high: REQUEST_RATE_MOST };
    let sides = Sides { expected: most, found: least, unit: "bytes/s" };
    let mut check = READ.judged(&name(sheet, row), sides, &[&blocks, &time], outcome);
    if is_impossible {
        let event = "use the wait event's time instead".to_string();
        check.note = if assumed.is_empty() { event } else { format!("{event}; {assumed}") };
        check = check.explained("asynchronous reads: their time is not counted in readtim");
    }
    Some(check)
}

/// Returns the writes of each tablespace, summed over its files.
fn writes_of_files(report: &Report) -> HashMap<String, Figure> {
    let mut sums: HashMap<String, Figure> = HashMap::new();
    for (sheet, row) in report.rows("files") {
        let (tablespace, Some(writes)) = (sheet.text(row, "tablespace"), sheet.figure(row, "writes")) else {
            continue;
        };
        match sums.get_mut(tablespace) {
            Some(sum) => {
                sum.range = sum.range.plus(writes.range);
                sum.value += writes.value;
            }
            None => {
                let name = format!("{tablespace}: writes of its files");
                sums.insert(tablespace.to_string(), Figure { name, ..writes });
            }
        }
    }
    sums
}

fn shifted(report: &Report) -> Vec<Consistency> {
    let (mut checks, of_files) = (Vec::new(), writes_of_files(report));
    for (sheet, row) in report.rows("tablespaces") {
        let tablespace = sheet.text(row, "tablespace");
        let Some(found) = sheet.figure(row, "writes") else { continue };
        let Some(expected) = of_files.get(tablespace) else { continue };
        let sides = Sides { expected: expected.range, found: found.range, unit: "" };
        checks.push(WRITES.meets(tablespace, sides, &[expected, &found]));
        if sheet.notes.iter().any(|note| note.text == REPAIRED) && std::ptr::eq(row, &sheet.rows[0]) {
            let mut check =
                SHIFTED.judged("Tablespace IO Stats", sides, &[expected, &found], Consistent::Habit);
            check = check.explained("columns one off: so in all reports of 11.2.0.4, shown corrected");
            check.note = REPAIRED.to_string();
            checks.push(check);
        }
    }
    checks
}

/// Remark on a table whose columns were moved.
pub const REPAIRED: &str = "printed one column off: writes stood under 1-bk Rds/s, 1-bk Rds/s under Av 1-bk Rd(ms), \
     Av 1-bk Rd(ms) under Writes; the writes of the files prove it";

/// Moves the columns of release 11.2.0.4's table of tablespaces, which are printed one off. The
/// writes of the files must contradict the printed columns and agree with the moved ones.
pub fn repair(report: &mut Report) {
    let Some(at) = report.sheets.iter().position(|sheet| sheet.section == "tablespaces") else { return };
    let sheet = &report.sheets[at];
    let column = |key: &str| sheet.columns.iter().position(|column| column.key == key);
    let places = ["single_reads_per_s", "single_read_time", "writes"].map(column);
    let [Some(rate), Some(time), Some(writes)] = places else { return };
    let of_files = writes_of_files(report);
    let (mut meant, mut printed) = (0, 0);
    for row in &sheet.rows {
        let Some(of_files) = of_files.get(sheet.text(row, "tablespace")) else { continue };
        let reads =
            |at: usize| plumb_figures::read(&row.cells[at].raw, plumb_figures::FigureUnit::COUNT).range();
        let agrees = |at: usize| reads(at).is_some_and(|range| range.meets(of_files.range));
        (meant, printed) = (meant + usize::from(agrees(rate)), printed + usize::from(agrees(writes)));
        if !agrees(rate) {
            return;
        }
    }
    if meant == 0 || printed == meant {
        return;
    }
    let sheet = &mut report.sheets[at];
    for row in &mut sheet.rows {
        let [own_writes, own_rate, own_time] = [rate, time, writes].map(|at| row.cells[at].clone());
        for (place, cell) in [(writes, own_writes), (rate, own_rate), (time, own_time)] {
            let reading = plumb_figures::read(&cell.raw, sheet.columns[place].unit);
            row.cells[place] = Cell { reading, ..cell };
        }
    }
    let line = sheet.line;
    sheet.notes.push(crate::figure::sheet::Remark { line, text: REPAIRED.to_string() });
}

/// Returns the edge of a bucket, seconds, from a heading such as `<16ms`, `<=1s` or `>=512us`.
/// True marks the last bucket, which is open.
fn edge(heading: &str) -> Option<(bool, f64)> {
    let heading = heading.rsplit(' ').next()?;
    let is_open = heading.starts_with('>');
    let text = heading.trim_start_matches(['<', '>', '=']);
    let end = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(end);
    let number = match number.split_once('/') {
        Some((one, two)) => one.parse::<f64>().ok()? / two.parse::<f64>().ok()?,
        None => number.parse().ok()?,
    };
    // Buckets are powers of two, so the heading's 1 s is 1024 ms.
    let seconds = match unit {
        "us" | "u" => number * 1e-6,
        "ms" | "m" => number * 1.024e-3,
        "s" => number * 1.048_576,
        _ => return None,
    };
    Some((is_open, seconds))
}

/// Returns waits and time of the events of a list by name; the first row of a name counts.
fn waited(report: &Report, section: &'static str) -> HashMap<String, (Figure, Figure)> {
    let mut waited = HashMap::new();
    for (sheet, row) in report.rows(section) {
        if let (Some(waits), Some(time)) = (sheet.figure(row, "waits"), sheet.figure(row, "time")) {
            waited.entry(sheet.text(row, "event").to_string()).or_insert((waits, time));
        }
    }
    waited
}

fn histograms(report: &Report) -> Vec<Consistency> {
    let lists = ["foreground_events", "background_events"].map(|section| waited(report, section));
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("histogram") {
        let event = sheet.text(row, "event");
        let mut both = lists.iter().filter_map(|list| list.get(event));
        let Some((mut waits, mut time)) = both.next().cloned() else { continue };
        for (more_waits, more_time) in both {
            waits.range = waits.range.plus(more_waits.range);
            time.range = time.range.plus(more_time.range);
        }
        let Some(expected) = means(sheet, row) else { continue };
        let Some(found) = time.range.over(waits.range) else { continue };
        let sides = Sides { expected, found, unit: "s" };
        checks.push(HISTOGRAM.meets(event, sides, &[&waits, &time]));
    }
    checks
}

/// Returns the least and the greatest mean of a row of a histogram; `None` without buckets.
fn means(sheet: &Sheet, row: &SheetRow) -> Option<ValueRange> {
    let (mut least, mut most, mut parts) = (0.0, 0.0, ValueRange::exactly(0.0));
    let mut below = 0.0;
    for (column, cell) in sheet.columns.iter().zip(&row.cells) {
        let Some((is_open, edge)) = edge(&column.name).filter(|_| column.key.is_empty()) else { continue };
        let part = cell.reading.range().unwrap_or(ValueRange::exactly(0.0));
        // An open bucket (`>1s`) starts at its edge, any other at the edge of the one before.
        least += part.low / 100.0 * if is_open { edge } else { below };
        most += part.high / 100.0 * if is_open && part.high > 0.0 { f64::INFINITY } else { edge };
        (parts, below) = (parts.plus(part), edge);
    }
    (parts.high >= 99.0).then_some(ValueRange { low: least, high: most.min(f64::MAX) })
}

fn captured(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("foreground_classes") {
        let of = |name: &str| {
            let mut found = sheet.notes.iter().filter(|note| note.text.contains(name));
            found.next().and_then(|note| behind(note, name).into_iter().next())
        };
        let figures = (of("Total FG Wait Time:"), of("DB CPU time:"), of("Total DB time"));
        let (Some(waits), Some(cpu), Some(db_time)) = figures else { continue };
        let sum = waits.range.plus(cpu.range);
        let sides = Sides { expected: db_time.range, found: sum, unit: "s" };
        checks.push(CAPTURED_MOST.at_most_within("DB time", sides, &[&waits, &cpu, &db_time], ASYNCHRONOUS));
        if let (Some(printed), Some(share)) = (of("Captured Time accounts for"), sum.over(db_time.range)) {
            let expected = share.times(ValueRange::exactly(100.0));
            let sides = Sides { expected, found: printed.range, unit: "%" };
            checks.push(CAPTURED.meets("DB time", sides, &[&waits, &cpu, &db_time, &printed]));
        }
    }
    checks
}

/// Checks waits and elapsed time of single statements measured by hand.
/// A heading begins another statement.
fn statements(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("statement") {
        let mut title = sheet.heading.clone();
        let (mut elapsed, mut waits): (Option<Figure>, Vec<Figure>) = (None, Vec::new());
        let mut end = |title: &str, elapsed: Option<Figure>, waits: Vec<Figure>| {
            let Some(elapsed) = elapsed.filter(|_| !waits.is_empty()) else { return };
            let found = added(&waits);
            let figures: Vec<&Figure> = waits.iter().chain([&elapsed]).collect();
            let sides = Sides { expected: elapsed.range, found, unit: "s" };
            checks.push(WAITS.at_most(title, sides, &figures));
        };
        for row in &sheet.rows {
            let name = sheet.text(row, "name");
            match sheet.figure(row, "value") {
                None => {
                    end(&title, elapsed.take(), std::mem::take(&mut waits));
                    title = name.to_string();
                }
                Some(figure) if name.starts_with("Elapsed") => elapsed = Some(figure),
                Some(figure) if figure.raw.ends_with("seconds") => waits.push(figure),
                Some(_) => {}
            }
        }
        end(&title, elapsed, waits);
    }
    checks
}

fn limits(report: &Report) -> Vec<Consistency> {
    let run = &report.run;
    let elapsed = of_cell("Elapsed", run.elapsed.as_ref(), "s");
    let mut checks = Vec::new();
    if let (Some(elapsed), Some(db_time)) = (&elapsed, of_cell("DB time", run.db_time.as_ref(), "s")) {
        let sessions = report.rows("snapshots").filter_map(|(sheet, row)| sheet.figure(row, "sessions"));
        match sessions.max_by(|one, two| one.value.total_cmp(&two.value)) {
            Some(sessions) => {
                let sides =
                    Sides { expected: sessions.range.times(elapsed.range), found: db_time.range, unit: "s" };
                checks.push(LITTLE.at_most("DB time", sides, &[&sessions, elapsed, &db_time]));
            }
            None => checks.push(LITTLE.not_asked("DB time", "number of sessions")),
        }
    }
    match (&elapsed, of_cell("DB CPU", run.db_cpu.as_ref(), "s"), run.cpus) {
        (Some(elapsed), Some(cpu), Some(cpus)) => {
            let expected = elapsed.range.times(ValueRange::exactly(f64::from(cpus)));
            let sides = Sides { expected, found: cpu.range, unit: "s" };
            let holds = cpu.range.low <= expected.high;
            let outcome = if holds { Consistent::Holds } else { Consistent::Impossible };
            checks.push(PROCESSORS.judged("DB CPU", sides, &[elapsed, &cpu], outcome));
        }
        _ => checks.push(PROCESSORS.not_asked("DB CPU", "elapsed time, DB CPU or number of processors")),
    }
    for (sheet, row) in report.rows("host_cpu") {
        let parts = ["user", "system", "idle"].map(|key| sheet.figure(row, key));
        checks.extend(HOST.ask("Host CPU", parts, Test::AtMost, |[user, system, idle]| {
            Some([ValueRange { low: 0.0, high: 100.0 }, user.plus(system).plus(idle)])
        }));
    }
    checks
}

/// Checks rows of instances against their sum and average.
fn instances(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("global_io_functions_rates") {
        let named = |row: &&SheetRow, name: &str| sheet.text(row, "instance") == name;
        let own: Vec<&SheetRow> =
            sheet.rows.iter().filter(|row| is_instance(sheet.text(row, "instance"))).collect();
        let sum_row = sheet.rows.iter().find(|row| named(row, "Sum"));
        let mean_row = sheet.rows.iter().find(|row| named(row, "Avg"));
        for column in sheet.columns.iter().filter(|column| !column.key.is_empty() && column.key != "instance")
        {
            let parts: Vec<Figure> = own.iter().filter_map(|row| sheet.figure(row, column.key)).collect();
            let [sum, mean] = [sum_row, mean_row].map(|row| sheet.figure(row?, column.key));
            checks.extend(INSTANCES.adds_up(&column.name, &parts, sum.clone()));
            checks.extend(MEAN.ask(&column.name, [sum, mean], Test::Equal, |[sum, mean]| {
                Some([sum.over(ValueRange::exactly(parts.len() as f64))?, mean])
            }));
        }
    }
    checks
}

fn is_instance(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks the differences of two periods, and the averages of their events.
fn compared(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("compared_load") {
        for by in ["per_second", "per_transaction"] {
            let of = |what: &str| sheet.figure(row, &format!("{what}_{by}"));
            let figures = ["first", "second", "difference"].map(of);
            checks.extend(DIFFERENCE.ask(
                &name(sheet, row),
                figures,
                Test::Equal,
                |[first, second, found]| {
                    let growth = second.over(first)?.plus(ValueRange::exactly(-1.0));
                    Some([growth.times(ValueRange::exactly(100.0)), found])
                },
            ));
        }
    }
    checks
}
