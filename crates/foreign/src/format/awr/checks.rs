//! Checks the arithmetic of an AWR or Statspack report.
//!
//! A check computes, from some figures, the interval of another one, and holds if the printed
//! figure meets it. A figure that no device, link or processor can reach is impossible and is left
//! out; the wait event gives the time instead.

use super::derived::{behind, block_assumed};
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Cell, Figure, Sheet, SheetRow};
use crate::report::Report;
use plumb_figures::bound::{REQUEST_RATE_MOST, request_rate};
use plumb_figures::{Quantity, Reading};
use plumb_record::{Consistency, Consistent};
use plumb_units::ValueRange;
use std::collections::HashMap;

const AVERAGE: Rule =
    Rule { name: "time / waits = average", arithmetic: "total wait time / waits = average wait" };
const SHARE: Rule = Rule {
    name: "time / DB time = % of DB time",
    arithmetic: "total wait time / DB time = share of DB time",
};
const RATE: Rule =
    Rule { name: "total / interval = per second", arithmetic: "total / elapsed time = per second" };
const TRANSACTION: Rule = Rule {
    name: "total / transactions = per transaction",
    arithmetic: "total / (user commits + user rollbacks) = per transaction",
};
const PROFILE: Rule = Rule {
    name: "load profile = instance activity",
    arithmetic: "total of the statistic / elapsed time = per second of the load profile",
};
const VOLUME: Rule =
    Rule { name: "bytes / interval = bytes per second", arithmetic: "data / elapsed time = data per second" };
const SUM: Rule = Rule { name: "sum of rows = total", arithmetic: "sum of the rows = the row TOTAL" };
const FUNCTIONS: Rule = Rule {
    name: "functions = file types",
    arithmetic: "TOTAL by function = TOTAL by type of file within 2%: the server counts them at different moments",
};
/// The share by which totals of functions and of file types differ on sound systems.
const COUNTED_APART: ValueRange = ValueRange { low: 0.98, high: 1.02 };
const IO_PROFILE: Rule = Rule {
    name: "IOStat = IO Profile",
    arithmetic: "requests per second by IOStat = those of the IO Profile",
};
const READ: Rule = Rule {
    name: "a read is possible",
    arithmetic: "blocks per read x block size / time of a read <= 20 GB/s, more than any device or link moves",
};
const READS: Rule =
    Rule { name: "reads / interval = reads per second", arithmetic: "reads / elapsed time = reads/s" };
const WRITES: Rule = Rule {
    name: "writes of files = writes of their tablespace",
    arithmetic: "sum of the writes of a tablespace's files = its writes",
};
const SHIFTED: Rule = Rule {
    name: "columns stand under their headings",
    arithmetic: "writes of a tablespace's files = the figure one or two columns before Writes, and not that under it",
};
const WAITS: Rule =
    Rule { name: "waits <= elapsed time", arithmetic: "sum of the waits of one session <= its elapsed time" };
const HISTOGRAM: Rule = Rule {
    name: "histogram has the average",
    arithmetic: "least and greatest mean that the histogram allows enclose (foreground + background time) / waits",
};
const CAPTURED: Rule = Rule {
    name: "captured share",
    arithmetic: "(foreground wait time + DB CPU) / DB time = the captured share that is printed",
};
const CAPTURED_MOST: Rule = Rule {
    name: "captured time <= DB time",
    arithmetic: "foreground wait time + DB CPU <= DB time: a session cannot wait and compute at once",
};
const LITTLE: Rule = Rule {
    name: "DB time <= sessions x interval",
    arithmetic: "Little's law: DB time / elapsed time is the average number of active sessions, of those that there were",
};
const PROCESSORS: Rule =
    Rule { name: "CPU <= processors x interval", arithmetic: "DB CPU <= CPUs x elapsed time" };
const HOST: Rule = Rule {
    name: "user + system + idle <= 100%",
    arithmetic: "%User + %System + %Idle <= 100%; %WIO is a part of %Idle",
};
const INSTANCES: Rule = Rule { name: "sum of instances", arithmetic: "sum of the instances = the row Sum" };
const MEAN: Rule = Rule { name: "average of instances", arithmetic: "Sum / instances = the row Avg" };
const DIFFERENCE: Rule = Rule {
    name: "%Diff of two periods",
    arithmetic: "100 x (2nd - 1st) / 1st = %Diff, which is computed before rounding",
};

pub fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for section in [
        "top_events",
        "foreground_events",
        "background_events",
        "wait_events",
        "wait_classes",
        "foreground_classes",
    ] {
        for (sheet, row) in rows(report, section) {
            checks.extend(average(sheet, row, ["waits", "time", "average"]));
            if section != "background_events" {
                checks.extend(share(sheet, row, report.run.db_time.as_ref()));
            }
        }
    }
    checks.extend(activity(report));
    checks.extend(iostat(report));
    checks.extend(totals(report));
    for (sheet, row) in rows(report, "tablespaces").chain(rows(report, "files")) {
        checks.extend(possible(report, sheet, row));
        checks.extend(rate(&READS, sheet, row, ["reads", "reads_per_s"], report.run.elapsed.as_ref()));
    }
    checks.extend(shifted(report));
    checks.extend(histograms(report));
    checks.extend(captured(report));
    checks.extend(statements(report));
    checks.extend(limits(report));
    checks.extend(instances(report));
    checks.extend(compared(report));
    checks
}

fn rows<'a>(report: &'a Report, section: &'static str) -> impl Iterator<Item = (&'a Sheet, &'a SheetRow)> {
    report.sheets_of(section).flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row)))
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
    let Reading::Value { value, range } = cell.reading else { return None };
    Some(Figure { name: name.to_string(), raw: cell.raw.clone(), line: cell.line, unit, value, range })
}

fn average(sheet: &Sheet, row: &SheetRow, [waits, time, average]: [&str; 3]) -> Option<Consistency> {
    let of = name(sheet, row);
    let [waits, time] = [sheet.figure(row, waits)?, sheet.figure(row, time)?];
    let expected = time.range.over(waits.range)?;
    let Some(average) = sheet.figure(row, average) else { return Some(AVERAGE.not_asked(&of, "average")) };
    Some(AVERAGE.meets(&of, Sides { expected, found: average.range, unit: "s" }, &[&time, &waits, &average]))
}

fn share(sheet: &Sheet, row: &SheetRow, db_time: Option<&Cell>) -> Option<Consistency> {
    let is_part = !matches!(sheet.text(row, "instance"), "" | "*");
    let [time, share] = [sheet.figure(row, "time")?, sheet.figure(row, "share")?];
    // The printed DB time is the sum of all instances.
    if is_part {
        return None;
    }
    let of = name(sheet, row);
    let Some(db_time) = of_cell("DB time", db_time, "s") else {
        return Some(SHARE.not_asked(&of, "DB time"));
    };
    let expected = time.range.over(db_time.range)?.times(ValueRange::exactly(100.0));
    Some(SHARE.meets(&of, Sides { expected, found: share.range, unit: "%" }, &[&time, &db_time, &share]))
}

/// Checks a rate: a total over the interval.
fn rate(
    rule: &Rule,
    sheet: &Sheet,
    row: &SheetRow,
    [total, rate]: [&str; 2],
    elapsed: Option<&Cell>,
) -> Option<Consistency> {
    let [total, rate] = [sheet.figure(row, total)?, sheet.figure(row, rate)?];
    let of = name(sheet, row);
    let Some(elapsed) = of_cell("Elapsed", elapsed, "s") else {
        return Some(rule.not_asked(&of, "elapsed time"));
    };
    let expected = total.range.over(elapsed.range)?;
    Some(rule.meets(&of, Sides { expected, found: rate.range, unit: rate.unit }, &[&total, &elapsed, &rate]))
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

fn activity(report: &Report) -> Vec<Consistency> {
    let elapsed = report.run.elapsed.as_ref();
    let total = |name: &str| {
        let mut found = rows(report, "activity").filter(|(sheet, row)| sheet.text(row, "name") == name);
        found.next().and_then(|(sheet, row)| sheet.figure(row, "total"))
    };
    let ended = total("user commits").map(|commits| {
        let rollbacks = total("user rollbacks").map_or(ValueRange::exactly(0.0), |rollbacks| rollbacks.range);
        Figure { range: commits.range.plus(rollbacks), ..commits }
    });
    let mut checks = Vec::new();
    for (sheet, row) in rows(report, "activity") {
        checks.extend(rate(&RATE, sheet, row, ["total", "per_second"], elapsed));
        let each = sheet.figure(row, "per_transaction");
        if let (Some(ended), Some(each), Some(total)) = (&ended, each, sheet.figure(row, "total"))
            && let Some(expected) = total.range.over(ended.range)
        {
            let sides = Sides { expected, found: each.range, unit: "" };
            checks.push(TRANSACTION.meets(&name(sheet, row), sides, &[&total, ended, &each]));
        }
    }
    for (sheet, row) in rows(report, "load_profile") {
        let own = sheet.text(row, "name").to_lowercase();
        let Some((_, statistic)) = PROFILES.iter().find(|(start, _)| own.starts_with(start)) else {
            continue;
        };
        let sides = (sheet.figure(row, "per_second"), total(statistic), of_cell("Elapsed", elapsed, "s"));
        if let (Some(found), Some(total), Some(elapsed)) = sides
            && let Some(expected) = total.range.over(elapsed.range)
        {
            let sides = Sides { expected, found: found.range, unit: "/s" };
            checks.push(PROFILE.meets(&own, sides, &[&total, &elapsed, &found]));
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

fn iostat(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for section in ["io_functions", "io_filetypes"] {
        for sheet in report.sheets_of(section) {
            for row in &sheet.rows {
                let elapsed = report.run.elapsed.as_ref();
                checks.extend(rate(&VOLUME, sheet, row, ["read_bytes", "read_bytes_per_s"], elapsed));
                checks.extend(rate(&VOLUME, sheet, row, ["written_bytes", "written_bytes_per_s"], elapsed));
            }
            let Some(total) = sheet.rows.iter().find(|row| is_total(sheet, row)) else { continue };
            for key in ADDED {
                let parts: Vec<Figure> = sheet
                    .rows
                    .iter()
                    .filter(|row| !is_total(sheet, row))
                    .filter_map(|row| sheet.figure(row, key))
                    .collect();
                let Some(found) = sheet.figure(total, key).filter(|_| !parts.is_empty()) else { continue };
                let expected = parts.iter().fold(ValueRange::exactly(0.0), |sum, part| sum.plus(part.range));
                let figures: Vec<&Figure> = parts.iter().chain([&found]).collect();
                let sides = Sides { expected, found: found.range, unit: found.unit };
                checks.push(SUM.meets(&found.name, sides, &figures));
            }
        }
    }
    checks
}

/// Compares the totals of different sections.
fn totals(report: &Report) -> Vec<Consistency> {
    let of_section = |section: &'static str, key: &str| {
        let mut found = rows(report, section).filter(|(sheet, row)| is_total(sheet, row));
        found.next().and_then(|(sheet, row)| sheet.figure(row, key))
    };
    let profile = |key: &str| {
        let mut found = rows(report, "io_profile")
            .filter(|(sheet, row)| sheet.text(row, "name").trim_end_matches(':') == "Total Requests");
        found.next().and_then(|(sheet, row)| sheet.figure(row, key))
    };
    let mut checks = Vec::new();
    let mut meet = |rule: &Rule, of: &str, expected: Option<Figure>, found: Option<Figure>| {
        if let (Some(expected), Some(found)) = (expected, found) {
            let sides = Sides { expected: expected.range, found: found.range, unit: found.unit };
            checks.push(rule.meets(of, sides, &[&expected, &found]));
        }
    };
    for key in ADDED {
        let widened = |figure: Figure| Figure { range: figure.range.times(COUNTED_APART), ..figure };
        let expected = of_section("io_filetypes", key).map(widened);
        meet(&FUNCTIONS, key, expected, of_section("io_functions", key));
    }
    for (section, words) in [
        ("io_filetypes", "file types"),
        ("io_functions", "functions"),
        ("global_io_functions", "functions"),
        ("global_io_filetypes", "file types"),
    ] {
        for (key, own) in [("reads", "reads_per_s"), ("writes", "writes_per_s")] {
            meet(&IO_PROFILE, &format!("{key} by {words}"), profile(key), of_section(section, own));
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
    let outcome = if is_impossible { Consistent::Impossible } else { Consistent::Holds };
    let most = ValueRange { low: 0.0, high: REQUEST_RATE_MOST };
    let sides = Sides { expected: most, found: least, unit: "bytes/s" };
    let mut check = READ.judged(&name(sheet, row), sides, &[&blocks, &time], outcome);
    if is_impossible {
        let event = "use the wait event's time instead".to_string();
        check.note = if assumed.is_empty() { event } else { format!("{event}; {assumed}") };
    }
    Some(check)
}

/// Returns the writes of each tablespace, summed over its files.
fn writes_of_files(report: &Report) -> HashMap<String, Figure> {
    let mut sums: HashMap<String, Figure> = HashMap::new();
    for (sheet, row) in rows(report, "files") {
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
    for (sheet, row) in rows(report, "tablespaces") {
        let tablespace = sheet.text(row, "tablespace");
        let Some(found) = sheet.figure(row, "writes") else { continue };
        let Some(expected) = of_files.get(tablespace) else { continue };
        let sides = Sides { expected: expected.range, found: found.range, unit: "" };
        checks.push(WRITES.meets(tablespace, sides, &[expected, &found]));
        if sheet.notes.iter().any(|note| note.text == REPAIRED) && std::ptr::eq(row, &sheet.rows[0]) {
            let mut check =
                SHIFTED.judged("Tablespace IO Stats", sides, &[expected, &found], Consistent::Fails);
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
    for (sheet, row) in rows(report, section) {
        if let (Some(waits), Some(time)) = (sheet.figure(row, "waits"), sheet.figure(row, "time")) {
            waited.entry(sheet.text(row, "event").to_string()).or_insert((waits, time));
        }
    }
    waited
}

fn histograms(report: &Report) -> Vec<Consistency> {
    let lists = ["foreground_events", "background_events"].map(|section| waited(report, section));
    let mut checks = Vec::new();
    for (sheet, row) in rows(report, "histogram") {
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
        checks.push(CAPTURED_MOST.at_most("DB time", sides, &[&waits, &cpu, &db_time]));
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
            let found = waits.iter().fold(ValueRange::exactly(0.0), |sum, wait| sum.plus(wait.range));
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
        let sessions = rows(report, "snapshots").filter_map(|(sheet, row)| sheet.figure(row, "sessions"));
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
    for (sheet, row) in rows(report, "host_cpu") {
        let parts: Vec<Figure> =
            ["user", "system", "idle"].iter().filter_map(|key| sheet.figure(row, key)).collect();
        if let [user, system, idle] = parts.as_slice() {
            let found = user.range.plus(system.range).plus(idle.range);
            let sides = Sides { expected: ValueRange { low: 0.0, high: 100.0 }, found, unit: "%" };
            checks.push(HOST.at_most("Host CPU", sides, &[user, system, idle]));
        }
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
            let Some(sum) =
                sum_row.and_then(|row| sheet.figure(row, column.key)).filter(|_| !parts.is_empty())
            else {
                continue;
            };
            let expected = parts.iter().fold(ValueRange::exactly(0.0), |all, part| all.plus(part.range));
            let figures: Vec<&Figure> = parts.iter().chain([&sum]).collect();
            let sides = Sides { expected, found: sum.range, unit: sum.unit };
            checks.push(INSTANCES.meets(&column.name, sides, &figures));
            if let Some(mean) = mean_row.and_then(|row| sheet.figure(row, column.key))
                && let Some(expected) = sum.range.over(ValueRange::exactly(parts.len() as f64))
            {
                let sides = Sides { expected, found: mean.range, unit: mean.unit };
                checks.push(MEAN.meets(&column.name, sides, &[&sum, &mean]));
            }
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
    for (sheet, row) in rows(report, "compared_load") {
        for by in ["per_second", "per_transaction"] {
            let of = |what: &str| sheet.figure(row, &format!("{what}_{by}"));
            let (Some(first), Some(second), Some(found)) = (of("first"), of("second"), of("difference"))
            else {
                continue;
            };
            let Some(quotient) = second.range.over(first.range) else { continue };
            let expected = quotient.plus(ValueRange::exactly(-1.0)).times(ValueRange::exactly(100.0));
            let sides = Sides { expected, found: found.range, unit: "%" };
            checks.push(DIFFERENCE.meets(&name(sheet, row), sides, &[&first, &second, &found]));
        }
    }
    for (sheet, row) in rows(report, "compared_events") {
        for side in ["first", "second"] {
            let [waits, time, mean] = ["waits", "time", "average"].map(|key| format!("{side}_{key}"));
            let check = average(sheet, row, [&waits, &time, &mean]);
            let event = sheet.text(row, &format!("{side}_event"));
            checks.extend(check.map(|check| Consistency { of: event.to_string(), ..check }));
        }
    }
    checks
}
