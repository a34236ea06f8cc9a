//! Computes figures that follow from printed ones, with the interval that the roundings allow.
//!
//! A pasted table lacks the head of its report, but a total divided by its rate gives the length of
//! the interval, and a time divided by its share gives DB time. The result is the interval that
//! all rows allow.

use crate::figure::sheet::{Cell, Figure, Sheet, SheetRow, is_named};
use crate::figure::stamp;
use crate::report::{Report, value};
use plumb_figures::numeral::Comma;
use plumb_figures::printed::read_with;
use plumb_figures::{CellReading, FigureUnit};
use plumb_record::ImportedFigure;
use plumb_units::ValueRange;
use std::collections::BTreeMap;

/// Size of a block if a report does not state it.
const BLOCK_BYTES: f64 = 8192.0;

/// Parses a time such as `60.22 (mins)`.
fn minutes(cell: &Cell, comma: Comma) -> Cell {
    Cell { reading: read_with(&cell.raw, FigureUnit::MINUTES, comma), ..cell.clone() }
}

/// Returns the minutes in a row of the snapshots; Statspack prints them in another column.
pub fn minutes_of(sheet: &Sheet, row: &SheetRow) -> Option<Cell> {
    let cell = sheet.cell(row, "time")?;
    let own = sheet.cell(row, "snapshot").filter(|own| own.raw.contains(['.', ','])).unwrap_or(cell);
    Some(minutes(own, sheet.comma))
}

/// Fills in the interval, and DB time and DB CPU of a report whose head lacks them.
pub fn fill(report: &mut Report) {
    let lengths = lengths(report);
    report.run.elapsed = match report.run.elapsed.take() {
        Some(head) => Some(narrowed(report, head, &lengths)),
        None => all_of(lengths),
    };
    if report.run.db_time.is_none() {
        let shares = |sheet: &Sheet, row: &SheetRow| {
            matches!(sheet.text(row, "instance"), "" | "*").then_some(())?;
            let share = sheet.figure(row, "share")?;
            let parts = ValueRange { low: share.range.low / 100.0, high: share.range.high / 100.0 };
            let time = sheet.figure(row, "time")?;
            Some((time.range.over(parts)?, time.line))
        };
        let found = report.rows("top_events").filter_map(|(sheet, row)| shares(sheet, row)).collect();
        report.run.db_time = all_of(found);
    }
    if report.run.db_cpu.is_none() {
        let found = report
            .rows("top_events")
            .find(|(sheet, row)| ["DB CPU", "CPU time"].contains(&sheet.text(row, "event")));
        report.run.db_cpu = found.and_then(|(sheet, row)| sheet.cell(row, "time")).cloned();
    }
}

/// Returns the interval of a head within what its snapshots and its totals over rates allow: two
/// digits of minutes leave 0.6 s open, and a redo size of 20 million over its rate a millisecond.
/// A report whose parts disagree keeps the head's interval, and the checks name them.
fn narrowed(report: &Report, head: Cell, lengths: &[(ValueRange, u32)]) -> Cell {
    const JUDGES_MOST: usize = 50;
    let CellReading::Value { range, .. } = head.reading else { return head };
    let seconds = |text: &str| stamp::second(text).map(|second| second as f64);
    // A stamp is cut off to the second.
    let snapshots = seconds(&report.run.begin).zip(seconds(&report.run.end));
    // A global report names those of one instance.
    let snapshots = snapshots.filter(|_| report.sheet("snapshots").is_some());
    let snapshots =
        snapshots.map(|(begin, end)| ValueRange { low: end - begin - 1.0, high: end - begin + 1.0 });
    let prior = snapshots.and_then(|own| range.and(own)).unwrap_or(range);
    let mut within: Vec<ValueRange> =
        lengths.iter().map(|(length, _)| *length).filter(|length| length.and(prior).is_some()).collect();
    let width = |range: &ValueRange| range.high - range.low;
    within.sort_by(|one, two| width(one).total_cmp(&width(two)));
    // A single changed figure must not decide: the length that most others meet begins.
    let judges = &within[..within.len().min(JUDGES_MOST)];
    let votes = |one: &&ValueRange| judges.iter().filter(|other| one.meets(**other)).count();
    let first = judges.iter().rev().max_by_key(votes).and_then(|first| first.and(prior));
    let range = within.iter().fold(first.unwrap_or(prior), |all, length| all.and(*length).unwrap_or(all));
    Cell { reading: CellReading::Value { value: range.middle(), range }, ..head }
}

/// Returns totals divided by their rates, each with its line.
fn lengths(report: &Report) -> Vec<(ValueRange, u32)> {
    let quotient = |sheet: &Sheet, row: &SheetRow, total: &str, rate: &str| {
        let total = sheet.figure(row, total)?;
        Some((total.range.over(sheet.figure(row, rate)?.range)?, total.line))
    };
    let of = |section, total, rate| {
        let found = report.rows(section).filter_map(move |(sheet, row)| quotient(sheet, row, total, rate));
        found.collect::<Vec<_>>()
    };
    let mut lengths = of("activity", "total", "per_second");
    for section in ["io_filetypes", "io_functions"] {
        lengths.extend(of(section, "read_bytes", "read_bytes_per_s"));
        lengths.extend(of(section, "written_bytes", "written_bytes_per_s"));
    }
    lengths
}

/// Returns the values that all intervals allow, from the narrowest on. The checks
/// report intervals that contradict them.
fn all_of(mut found: Vec<(ValueRange, u32)>) -> Option<Cell> {
    let width = |range: &ValueRange| range.high - range.low;
    found.sort_by(|(one, _), (two, _)| width(one).total_cmp(&width(two)));
    let (first, line) = *found.first()?;
    let range = found.iter().fold(first, |all, (range, _)| all.and(*range).unwrap_or(all));
    let reading = CellReading::Value { value: range.middle(), range };
    Some(Cell { raw: format!("{:.2} s, derived", range.middle()), line, reading })
}

/// Returns the size of a block, bytes, if the report states it.
pub fn block_bytes(report: &Report) -> Option<f64> {
    let parameter = report.rows("parameters").find(|(sheet, row)| sheet.text(row, "name") == "db_block_size");
    let parameter = parameter.and_then(|(sheet, row)| sheet.text(row, "value").parse().ok());
    let cache = || {
        let mut found = report.rows("cache_sizes");
        found.find_map(|(sheet, row)| {
            is_named(sheet.text(row, "name"), "Std Block Size").then(|| value(sheet.cell(row, "begin")))?
        })
    };
    let compared = || {
        report
            .rows("compared_databases")
            .find_map(|(sheet, row)| Some(sheet.figure(row, "block_size")?.value))
    };
    parameter.or_else(cache).or_else(compared).filter(|bytes: &f64| *bytes >= 512.0)
}

/// Returns the size of a block for computations, and a phrase if the size is assumed.
pub fn block_assumed(report: &Report) -> (f64, &'static str) {
    block_bytes(report).map_or((BLOCK_BYTES, "blocks of 8192 bytes assumed"), |bytes| (bytes, ""))
}

fn quotient(name: String, unit: &str, one: &Figure, two: &Figure, scale: f64) -> Option<ImportedFigure> {
    let range = one.range.over(two.range)?;
    let value = one.value / two.value * scale;
    let text = format!("{} / {}", one.raw, two.raw);
    let unit = unit.to_string();
    Some(ImportedFigure {
        name,
        text,
        line: one.line,
        unit,
        value,
        low: range.low * scale,
        high: range.high * scale,
    })
}

/// Returns the derived figures of a report that readers ask for first.
pub fn figures(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    if let Some(Cell { raw, line, reading: CellReading::Value { value, range } }) = &report.run.elapsed
        && raw.ends_with("derived")
    {
        let (name, text) = ("Interval: total / per second".to_string(), raw.clone());
        let unit = "s".to_string();
        found.push(ImportedFigure {
            name,
            text,
            line: *line,
            unit,
            value: *value,
            low: range.low,
            high: range.high,
        });
    }
    found.extend(redo(report));
    found.extend(requests(report));
    found.extend(tablespaces(report));
    found.extend(compared(report));
    found
}

/// Returns bytes and time of a log write. Times of statistics are in hundredths of a second.
fn redo(report: &Report) -> Vec<ImportedFigure> {
    let of = |name: &str| {
        report
            .rows("activity")
            .find(|(sheet, row)| sheet.text(row, "name") == name)
            .and_then(|(sheet, row)| sheet.figure(row, "total"))
    };
    let Some(writes) = of("redo writes") else { return Vec::new() };
    let size = of("redo size")
        .and_then(|size| quotient("Log write: bytes each".to_string(), "bytes", &size, &writes, 1.0));
    let time = of("redo write time").and_then(|time| {
        // The statistic is rounded to a hundredth of a second.
        let range = ValueRange { low: (time.range.low - 0.5).max(0.0), high: time.range.high + 0.5 };
        quotient("Log write: time each".to_string(), "s", &Figure { range, ..time }, &writes, 0.01)
    });
    size.into_iter().chain(time).collect()
}

/// Returns the size of a request by function and by type of file.
fn requests(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    let of = |sheet: &Sheet, row: &SheetRow, [bytes, requests]: [&str; 2], what: &str| {
        let requests = sheet.figure(row, requests).filter(|requests| requests.value > 0.0)?;
        let bytes = sheet.figure(row, bytes).filter(|bytes| bytes.value > 0.0)?;
        let name = format!("{}: size of a {what}", row.cells[0].raw.trim_end_matches(':'));
        quotient(name, "bytes", &bytes, &requests, 1.0)
    };
    const WAYS: [([&str; 2], &str); 4] = [
        (["read_bytes_per_s", "reads_per_s"], "read"),
        (["written_bytes_per_s", "writes_per_s"], "write"),
        (["direct_read_bytes_per_s", "direct_reads_per_s"], "direct read"),
        (["direct_written_bytes_per_s", "direct_writes_per_s"], "direct write"),
    ];
    for section in ["io_functions", "io_filetypes", "global_io_functions_rates"] {
        for (sheet, row) in report.rows(section) {
            found.extend(WAYS.iter().filter_map(|(keys, what)| of(sheet, row, *keys, what)));
        }
    }
    found
}

/// Returns the size of a read by tablespace, and its time per 100 KB, because times of reads of
/// different sizes do not compare.
fn tablespaces(report: &Report) -> Vec<ImportedFigure> {
    let (block, assumed) = block_assumed(report);
    let mut found = Vec::new();
    for (sheet, row) in report.rows("tablespaces") {
        let Some(blocks) = sheet.figure(row, "blocks_per_read").filter(|blocks| blocks.value > 0.0) else {
            continue;
        };
        let name = sheet.text(row, "tablespace");
        let [low, high] = [blocks.range.low * block, blocks.range.high * block];
        let assumed = if assumed.is_empty() { String::new() } else { format!(", {assumed}") };
        found.push(ImportedFigure {
            name: format!("{name}: size of a read"),
            text: format!("{} blocks{assumed}", blocks.raw),
            line: blocks.line,
            unit: "bytes".to_string(),
            value: blocks.value * block,
            low,
            high,
        });
        if let Some(time) = sheet.figure(row, "read_time").filter(|time| time.value > 0.0) {
            let name = format!("{name}: time of 1 KB read");
            found.extend(quotient(name, "s", &time, &blocks, 1024.0 / block));
        }
    }
    found
}

/// Returns the waits a second of the events of two periods, whose lengths are in the heading.
fn compared(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for sheet in report.sheets_of("compared_events") {
        let heading = sheet.notes.iter().find(|note| note.text.contains("Elapsed time:"));
        let Some(heading) = heading else { continue };
        let mut sides: BTreeMap<&str, Vec<Figure>> = BTreeMap::new();
        for (side, elapsed) in ["first", "second"].into_iter().zip(behind(heading, "Elapsed time:")) {
            let text = format!("{} s / 1", elapsed.raw);
            let interval = ImportedFigure { name: format!("Interval, {side}"), text, ..(&elapsed).into() };
            found.push(interval);
            for row in &sheet.rows {
                let event = sheet.text(row, &format!("{side}_event"));
                let Some(waits) =
                    sheet.figure(row, &format!("{side}_waits")).filter(|waits| waits.value > 0.0)
                else {
                    continue;
                };
                found.extend(quotient(
                    format!("{event}: waits a second, {side}"),
                    "/s",
                    &waits,
                    &elapsed,
                    1.0,
                ));
                sides.entry(event.trim_start_matches('-')).or_default().push(waits);
            }
        }
        for (event, both) in &sides {
            if let [first, second] = both.as_slice() {
                found.extend(quotient(format!("{event}: waits, second over first"), "", second, first, 1.0));
            }
        }
    }
    found
}

/// Returns the figures after each mention of a name in a remark: shares if they
/// end with `%`, otherwise seconds.
pub fn behind(note: &crate::figure::sheet::Remark, name: &str) -> Vec<Figure> {
    let figure = |rest: &str| {
        let raw = rest.split_whitespace().next()?.to_string();
        let unit = if raw.ends_with('%') { FigureUnit::PERCENT } else { FigureUnit::S };
        let CellReading::Value { value, range } = plumb_figures::read(&raw, unit) else { return None };
        Some(Figure { name: name.to_string(), raw, line: note.line, unit: unit.base(), value, range })
    };
    note.text.split(name).skip(1).filter_map(figure).collect()
}
