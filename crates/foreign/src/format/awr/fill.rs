//! Fills the record of a run from an AWR report.
//!
//! A total that is not printed is its rate times the interval. A time known in two ways is the
//! middle of the values that both allow (`rounding::best`). AWR prints whole seconds and an
//! average, and the average times the waits is often more exact.

use super::derived::block_assumed;
use super::events;
use crate::figure::rounding::{best, nanoseconds, whole};
use crate::figure::sheet::{Cell, Sheet, SheetRow, is_named};
use crate::reader::ReportPeriod;
use crate::report::{Report, value};
use plumb_events::Unit;
use plumb_figures::CellReading;
use plumb_record::{
    HostCpu, IoFile, IoFunction, IoTally, LoadRow, MemoryArea, Record, SettingRow, StatisticRow, WaitEvent,
};
use plumb_units::ValueRange;
use std::collections::{BTreeMap, BTreeSet};

/// Fills a record with the figures of one period of a report.
pub fn fill(report: &Report, record: &mut Record, period: ReportPeriod) {
    let elapsed = record.header.elapsed_ns as f64 / 1e9;
    if report.sheet("compared_events").is_some() {
        return compared(report, record, period);
    }
    let classes = classes(report);
    record.load_profile = load(report, ["load_profile", "per_second"], elapsed);
    record.foreground_events = events(report, &["foreground_events", "top_events"], &classes);
    record.background_events = events(report, &["background_events"], &classes);
    record.statistics = statistics(report);
    record.io_functions = functions(report, elapsed);
    record.io_files = files(report);
    record.settings = report.rows("parameters").map(|(sheet, row)| setting(sheet, row)).collect();
    record.memory.areas = report.rows("cache_sizes").filter_map(|(sheet, row)| area(sheet, row)).collect();
    record.host_cpu = host_cpu(report, elapsed);
}

/// Fills in one of two periods: its top events and its load. The list has events of background
/// processes, too: those of the class System I/O.
fn compared(report: &Report, record: &mut Record, period: ReportPeriod) {
    let side = if period == ReportPeriod::First { "first" } else { "second" };
    let elapsed = record.header.elapsed_ns as f64 / 1e9;
    record.load_profile = load(report, ["compared_load", &format!("{side}_per_second")], elapsed);
    for (sheet, row) in report.rows("compared_events") {
        let key = |name: &str| format!("{side}_{name}");
        let name = sheet.text(row, &key("event")).trim_start_matches('-').trim();
        let event = events::full_name(name).to_string();
        let class = events::full_class(sheet.text(row, &key("class"))).or_else(|| events::class_of(&event));
        let keys = [key("waits"), key("time"), key("average")];
        let found = waited(sheet, row, [&keys[0], &keys[1], &keys[2]]);
        let Some((waits, time)) = found else { continue };
        let own = wait_event(event, class.unwrap_or(events::UNKNOWN), waits, time);
        match own.wait_class.as_str() {
            "System I/O" => record.background_events.push(own),
            _ => record.foreground_events.push(own),
        }
    }
}

fn load(report: &Report, [section, rate]: [&str; 2], elapsed: f64) -> Vec<LoadRow> {
    let sheets = report.sheets.iter().filter(|sheet| sheet.section == section);
    let row = |(sheet, row): (&Sheet, &SheetRow)| {
        let total = sheet.figure(row, rate)?.value * elapsed;
        let name = sheet.text(row, "name").trim_end_matches(':').to_string();
        Some(LoadRow { name, total, is_count: false })
    };
    sheets.flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row))).filter_map(row).collect()
}

/// Returns the classes that any section of the report names, by event.
fn classes(report: &Report) -> BTreeMap<&str, &'static str> {
    let mut classes = BTreeMap::new();
    for sheet in &report.sheets {
        for row in &sheet.rows {
            let class = events::full_class(sheet.text(row, "class"));
            let event = sheet.text(row, "event");
            if let Some(class) = class.filter(|_| !event.is_empty()) {
                classes.entry(event).or_insert(class);
            }
        }
    }
    classes
}

/// Returns the class that the report names for an event, whose name another section may cut off.
fn named_class(classes: &BTreeMap<&str, &'static str>, event: &str) -> Option<&'static str> {
    // A name and its start are neighbours in the order of names.
    const NEAR: usize = 8;
    let same = |(name, _): &(&&str, &&'static str)| is_named(name, event) || is_named(event, name);
    let near = || classes.range(event..).take(NEAR).chain(classes.range(..event).rev().take(NEAR));
    classes.get(event).copied().or_else(|| near().find(same).map(|(_, class)| *class))
}

/// Returns waits and seconds of a row; the time is the middle of what time and average allow.
fn waited(sheet: &Sheet, row: &SheetRow, [waits, time, average]: [&str; 3]) -> Option<(f64, f64)> {
    let waits = sheet.figure(row, waits)?;
    let by_average = sheet.figure(row, average).map(|average| average.range.times(waits.range));
    let printed = sheet.figure(row, time).map(|time| time.range);
    Some((waits.value, best(printed, by_average)?))
}

/// Returns the seconds of a row within what its share allows, where DB time follows from shares: of
/// short waits the share has more digits than the time.
fn within_share(report: &Report, sheet: &Sheet, row: &SheetRow, seconds: f64) -> f64 {
    let is_derived = |cell: &&Cell| cell.raw.ends_with("derived") && sheet.section == "top_events";
    let whole = report.run.db_time.as_ref().filter(is_derived).and_then(|cell| match cell.reading {
        CellReading::Value { range, .. } => Some(range),
        _ => None,
    });
    let (share, time) = (sheet.figure(row, "share"), sheet.figure(row, "time"));
    let allowed = whole.zip(share).map(|(whole, share)| {
        let hundredth = ValueRange::exactly(0.01);
        share.range.times(hundredth).times(whole)
    });
    let both = allowed.zip(time).and_then(|(allowed, time)| allowed.and(time.range));
    both.map_or(seconds, |both| seconds.clamp(both.low, both.high))
}

fn wait_event(event: String, class: &str, waits: f64, seconds: f64) -> WaitEvent {
    WaitEvent {
        event,
        wait_class: class.to_string(),
        waits: whole(waits),
        time_ns: nanoseconds(seconds),
        max_ns: None,
        histogram: Vec::new(),
        latency: None,
    }
}

/// Returns the events of the first of these sections in the report.
fn events(
    report: &Report,
    sections: &[&'static str],
    classes: &BTreeMap<&str, &'static str>,
) -> Vec<WaitEvent> {
    let found = sections.iter().find(|section| report.sheet(section).is_some());
    let mut events: Vec<WaitEvent> = Vec::new();
    // Of the sheet before: to look through all rows for each row would take hours on a long table.
    let mut shares: Option<(&Sheet, bool)> = None;
    for (sheet, row) in found.into_iter().flat_map(|section| report.rows(section)) {
        // In a global report the row `*` includes the rows of single instances.
        let instance = sheet.text(row, "instance");
        let is_part = !instance.is_empty() && instance != "*";
        let found = waited(sheet, row, ["waits", "time", "average"]).filter(|_| !is_part);
        let Some((waits, time)) = found else { continue };
        let time = within_share(report, sheet, row, time);
        let event = events::full_name(sheet.text(row, "event")).to_string();
        let has_shares = match shares {
            Some((of, has)) if std::ptr::eq(of, sheet) => has,
            _ => sheet.rows.iter().any(|row| sheet.figure(row, "share").is_some()),
        };
        shares = Some((sheet, has_shares));
        let is_idle = has_shares && sheet.cell(row, "share").is_some_and(|share| share.raw.is_empty());
        let idle = is_idle.then_some(plumb_record::IDLE_CLASS);
        let class = class_of(sheet.text(row, "class"), idle, &event, classes);
        let mut own = wait_event(event, class, waits, time);
        own.max_ns = sheet.figure(row, "most").map(|most| nanoseconds(most.value));
        events.push(own);
    }
    events
}

/// Returns the class of a row's event: as its row says, idle if the list leaves its share blank,
/// as another section says, as Oracle's list says, else unknown.
fn class_of(
    printed: &str,
    idle: Option<&'static str>,
    event: &str,
    classes: &BTreeMap<&str, &'static str>,
) -> &'static str {
    events::full_class(printed)
        .or(idle)
        .or_else(|| named_class(classes, event))
        .or_else(|| events::class_of(event))
        .unwrap_or(events::UNKNOWN)
}

/// Returns each statistic once: `user commits` stands in the key and in the other ones.
fn statistics(report: &Report) -> Vec<StatisticRow> {
    let mut known = BTreeSet::new();
    let all = report.rows("activity").filter_map(|(sheet, row)| statistic(sheet, row));
    all.filter(|row| known.insert(row.name.clone())).collect()
}

fn statistic(sheet: &Sheet, row: &SheetRow) -> Option<StatisticRow> {
    let name = sheet.text(row, "name").to_string();
    let unit = if name.contains("bytes") || name == "redo size" { Unit::Bytes } else { Unit::Count };
    Some(StatisticRow { total: whole(sheet.figure(row, "total")?.value), name, unit })
}

/// Returns requests and bytes in one direction. Their time is unknown: reports print only the time
/// of waits. A rate of one digit leaves their number open; the waits are more exact if they are
/// within it. A printed zero is none, although up to half a megabyte prints so.
fn tally(
    sheet: &Sheet,
    row: &SheetRow,
    [count, rate, bytes, per_second]: [&str; 4],
    elapsed: f64,
) -> IoTally {
    let range =
        |key: &str| sheet.figure(row, key).filter(|figure| figure.value > 0.0).map(|figure| figure.range);
    let over = ValueRange::exactly(elapsed);
    let by_rate = range(per_second).map(|range| range.times(over));
    // Waits are of both directions together.
    let is_one_way = !["reads_per_s", "writes_per_s"].into_iter().all(|rate| range(rate).is_some());
    let waits = sheet.figure(row, "waits").filter(|waits| {
        is_one_way && waits.value > 0.0 && range(rate).is_some_and(|rate| rate.times(over).meets(waits.range))
    });
    let of_rate = || Some(sheet.figure(row, rate)?.value * elapsed);
    let counted = sheet.figure(row, count).or(waits).map(|count| count.value);
    let requests = counted.or_else(of_rate).unwrap_or(0.0);
    IoTally { requests: whole(requests), bytes: best(range(bytes), by_rate).map_or(0, whole), time_ns: None }
}

fn functions(report: &Report, elapsed: f64) -> Vec<IoFunction> {
    let is_total = |name: &str| name.trim_end_matches(':').eq_ignore_ascii_case("total");
    let of = |(sheet, row): (&Sheet, &SheetRow)| {
        let function = sheet.text(row, "name").to_string();
        let reads = tally(sheet, row, ["reads", "reads_per_s", "read_bytes", "read_bytes_per_s"], elapsed);
        let writes =
            tally(sheet, row, ["writes", "writes_per_s", "written_bytes", "written_bytes_per_s"], elapsed);
        (!is_total(&function)).then_some(IoFunction { function, reads, writes, ..IoFunction::default() })
    };
    report.rows("io_functions").filter_map(of).collect()
}

fn files(report: &Report) -> Vec<IoFile> {
    let (block, _) = block_assumed(report);
    let section = if report.sheet("files").is_some() { "files" } else { "tablespaces" };
    let of = |(sheet, row): (&Sheet, &SheetRow)| {
        let figure = |key: &str| sheet.figure(row, key).map(|figure| figure.value);
        let reads = figure("reads")?;
        // A file without reads has no printed size and time.
        let bytes = figure("blocks_per_read").unwrap_or(0.0) * reads * block;
        let time = figure("read_time").map(|time| nanoseconds(time * reads));
        let reads = IoTally { requests: whole(reads), bytes: whole(bytes), time_ns: time };
        let writes = IoTally { requests: whole(figure("writes").unwrap_or(0.0)), bytes: 0, time_ns: None };
        Some(IoFile {
            tablespace: sheet.text(row, "tablespace").to_string(),
            path: sheet.text(row, "file").to_string(),
            reads,
            writes,
            ..IoFile::default()
        })
    };
    report.rows(section).filter_map(of).collect()
}

fn setting(sheet: &Sheet, row: &SheetRow) -> SettingRow {
    let value = sheet.text(row, "value");
    let (value, taken) = match sheet.cell(row, "end") {
        Some(end) => (value, Some(end.raw.as_str()).filter(|end| !end.is_empty())),
        None => (value, None),
    };
    SettingRow {
        name: sheet.text(row, "name").to_string(),
        value: value.to_string(),
        taken: taken.map(str::to_string),
        is_default: false,
        source: "init.ora".to_string(),
        description: String::new(),
    }
}

fn area(sheet: &Sheet, row: &SheetRow) -> Option<MemoryArea> {
    let name = sheet.text(row, "name").trim_end_matches(':').to_string();
    let bytes = sheet.figure(row, "begin")?.value;
    let is_other = name.contains("Block Size");
    (!is_other).then_some(MemoryArea { name, bytes: whole(bytes) })
}

/// Returns the host's CPU times from the operating system statistics, in hundredths of a second.
/// The report's idle time includes the wait for I/O; a record has the two apart.
fn host_cpu(report: &Report, elapsed: f64) -> Option<HostCpu> {
    let of = |name: &str| {
        let mut found = report.rows("os_statistics").filter(|(sheet, row)| sheet.text(row, "name") == name);
        found.next().and_then(|(sheet, row)| value(sheet.cell(row, "value")))
    };
    let load =
        |key: &str| report.rows("host_cpu").find_map(|(sheet, row)| Some(sheet.figure(row, key)?.value));
    let ns = |hundredths: f64| nanoseconds(hundredths.max(0.0) / 100.0);
    let iowait = of("IOWAIT_TIME").unwrap_or(0.0);
    (elapsed > 0.0).then_some(())?;
    Some(HostCpu {
        user_ns: ns(of("USER_TIME")?),
        system_ns: ns(of("SYS_TIME")?),
        iowait_ns: ns(iowait),
        steal_ns: 0,
        idle_ns: ns(of("IDLE_TIME")? - iowait),
        load_begin: load("load_begin"),
        load_end: load("load_end"),
    })
}
