//! Fills the record of a run from an AWR report.
//!
//! A total that is not printed is its rate times the interval. A time known in two ways is the
//! middle of the values that both allow (`rounding::best`). AWR prints whole seconds and an
//! average, and the average times the waits is often more exact.

use super::derived::block_assumed;
use crate::figure::rounding::{best, nanoseconds, whole};
use crate::figure::sheet::{Sheet, SheetRow};
use crate::report::{Report, value};
use plumb_events::{Event, Unit};
use plumb_record::{
    HostCpu, IoFile, IoFunction, IoTally, LoadRow, MemoryArea, Record, SettingRow, StatisticRow, WaitEvent,
};
use plumb_units::ValueRange;

/// Fills a record with the figures of a report.
pub fn fill(report: &Report, record: &mut Record) {
    let elapsed = record.header.elapsed_ns as f64 / 1e9;
    record.load_profile = load(report, elapsed);
    record.foreground_events = events(report, &["foreground_events", "top_events"]);
    record.background_events = events(report, &["background_events"]);
    record.statistics = rows(report, "activity").filter_map(|(sheet, row)| statistic(sheet, row)).collect();
    record.io_functions = functions(report, elapsed);
    record.io_files = files(report);
    record.settings = rows(report, "parameters").map(|(sheet, row)| setting(sheet, row)).collect();
    record.memory.areas = rows(report, "cache_sizes").filter_map(|(sheet, row)| area(sheet, row)).collect();
    record.host_cpu = host_cpu(report, elapsed);
}

fn rows<'a>(report: &'a Report, section: &'static str) -> impl Iterator<Item = (&'a Sheet, &'a SheetRow)> {
    report.sheets_of(section).flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row)))
}

fn load(report: &Report, elapsed: f64) -> Vec<LoadRow> {
    let row = |(sheet, row): (&Sheet, &SheetRow)| {
        let total = sheet.figure(row, "total").map(|total| total.value);
        let total = total.or_else(|| Some(sheet.figure(row, "per_second")?.value * elapsed))?;
        let name = sheet.text(row, "name").trim_end_matches(':').to_string();
        Some(LoadRow { name, total, is_count: false })
    };
    rows(report, "load_profile").filter_map(row).collect()
}

/// Returns the events of the first of these sections in the report.
fn events(report: &Report, sections: &[&'static str]) -> Vec<WaitEvent> {
    let found = sections.iter().find(|section| report.sheet(section).is_some());
    let mut events: Vec<WaitEvent> = Vec::new();
    for (sheet, row) in found.into_iter().flat_map(|section| rows(report, section)) {
        // In a global report the row `*` includes the rows of single instances.
        let instance = sheet.text(row, "instance");
        let is_part = !instance.is_empty() && instance != "*";
        let Some(waits) = sheet.figure(row, "waits").filter(|_| !is_part) else { continue };
        let by_average = sheet.figure(row, "average").map(|average| average.range.times(waits.range));
        let time = best(sheet.figure(row, "time").map(|time| time.range), by_average);
        let Some(time) = time else { continue };
        let event = full_name(sheet.text(row, "event"));
        let wait_class = class_of(sheet, row, &event);
        events.push(WaitEvent {
            event,
            wait_class,
            waits: whole(waits.value),
            time_ns: nanoseconds(time),
            max_ns: sheet.figure(row, "most").map(|most| nanoseconds(most.value)),
            histogram: Vec::new(),
            latency: None,
        });
    }
    events
}

/// Returns the full name of an event cut off by its column, if only one event begins so.
fn full_name(printed: &str) -> String {
    const CUT_LEAST: usize = 26;
    let mut whole = Event::ALL.iter().map(|event| event.name()).filter(|name| name.starts_with(printed));
    match (whole.next(), whole.next()) {
        (Some(name), None) if printed.len() >= CUT_LEAST => name.to_string(),
        _ => printed.to_string(),
    }
}

/// Returns the printed class in full; otherwise the class of a known event, or `Idle` for an event
/// without a share of DB time.
fn class_of(sheet: &Sheet, row: &SheetRow, event: &str) -> String {
    const CLASSES: [&str; 12] = [
        "Administrative",
        "Application",
        "Cluster",
        "Commit",
        "Concurrency",
        "Configuration",
        "Idle",
        "Network",
        "Other",
        "Scheduler",
        "System I/O",
        "User I/O",
    ];
    let printed = sheet.text(row, "class");
    let in_full = CLASSES.iter().find(|class| !printed.is_empty() && class.starts_with(printed));
    let known = Event::ALL.iter().find(|own| own.name() == event).map(|event| event.class().name());
    let has_share = sheet.figure(row, "share").is_some();
    in_full
        .copied()
        .or(known)
        .unwrap_or(if has_share { "Other" } else { plumb_record::IDLE_CLASS })
        .to_string()
}

fn statistic(sheet: &Sheet, row: &SheetRow) -> Option<StatisticRow> {
    let name = sheet.text(row, "name").to_string();
    let unit = if name.contains("bytes") || name == "redo size" { Unit::Bytes } else { Unit::Count };
    Some(StatisticRow { total: whole(sheet.figure(row, "total")?.value), name, unit })
}

/// Returns requests and bytes in one direction. Their time is unknown: reports print
/// only the time of waits.
fn tally(
    sheet: &Sheet,
    row: &SheetRow,
    [count, rate, bytes, per_second]: [&str; 4],
    elapsed: f64,
) -> IoTally {
    let range = |key: &str| sheet.figure(row, key).map(|figure| figure.range);
    let by_rate = range(per_second).map(|range| range.times(ValueRange::exactly(elapsed)));
    let value = |key: &str| sheet.figure(row, key).map(|figure| figure.value);
    let requests = value(count).or_else(|| Some(value(rate)? * elapsed)).unwrap_or(0.0);
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
    let own: Vec<IoFunction> = rows(report, "io_functions").filter_map(of).collect();
    if own.is_empty() { rows(report, "io_filetypes").filter_map(of).collect() } else { own }
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
    rows(report, section).filter_map(of).collect()
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
        let mut found = rows(report, "os_statistics").filter(|(sheet, row)| sheet.text(row, "name") == name);
        found.next().and_then(|(sheet, row)| value(sheet.cell(row, "value")))
    };
    let load =
        |key: &str| rows(report, "host_cpu").find_map(|(sheet, row)| Some(sheet.figure(row, key)?.value));
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
