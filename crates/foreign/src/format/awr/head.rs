//! Reads the head of a report: database, host and interval.
//!
//! Elapsed and DB time are in the table of snapshots. DB CPU is in the time model, otherwise in the
//! row `DB CPU` of the top events. If the head lacks the number of CPUs, it is NUM_CPUS of the
//! operating system statistics.

use super::{checks, derived};
use crate::figure::sheet::{Cell, Sheet, is_named};
use crate::report::{ImportedRun, Report, value};
use plumb_figures::{FigureUnit, read};

/// Fills in the facts of a report and its run.
pub fn fill(report: &mut Report) {
    let mut run = ImportedRun::default();
    for (section, keys) in [
        (
            "database",
            &[
                "database",
                "database_id",
                "unique_name",
                "role",
                "edition",
                "instance",
                "startup",
                "release",
                "rac",
                "cdb",
                "host",
            ][..],
        ),
        ("instance", &["instance", "startup"]),
        ("host", &["host", "platform", "cpus", "cores", "sockets", "memory"]),
    ] {
        let Some(sheet) = report.sheet(section) else { continue };
        let Some(row) = sheet.rows.first() else { continue };
        let cells: Vec<(String, Cell)> = keys
            .iter()
            .filter_map(|key| {
                let at = sheet.columns.iter().position(|column| column.key == *key)?;
                Some((sheet.columns[at].name.clone(), row.cells[at].clone()))
            })
            .collect();
        let text = |key| sheet.text(row, key).to_string();
        let number = |key| sheet.figure(row, key).map(|figure| figure.value);
        match section {
            "database" => {
                (run.workload, run.host) = (text("database"), text("host"));
                run.db_time = sheet.cell(row, "db_time").cloned();
            }
            "host" => {
                (run.host, run.platform) = (text("host"), text("platform"));
                run.cpus = number("cpus").map(|cpus| cpus as u32);
                run.memory_bytes = number("memory").map(|bytes| bytes as u64);
            }
            _ => {}
        }
        cells.iter().for_each(|(name, cell)| report.fact(name, cell));
    }
    snapshots(report, &mut run);
    global(report, &mut run);
    cpu(report, &mut run);
    run.title = format!("IMPORTED REPORT  Database: {}", run.workload);
    report.run = run;
    compared(report);
    derived::fill(report);
    checks::repair(report);
}

/// Parses a time such as `60.22 (mins)`.
fn minutes(cell: &Cell) -> Cell {
    Cell { reading: read(&cell.raw, FigureUnit::MINUTES), ..cell.clone() }
}

fn snapshots(report: &mut Report, run: &mut ImportedRun) {
    let Some(sheet) = report.sheet("snapshots") else { return };
    let mut facts = Vec::new();
    for row in &sheet.rows {
        let Some(cell) = sheet.cell(row, "time") else { continue };
        // Statspack prints the length in another column.
        let own = sheet.cell(row, "snapshot").filter(|own| own.raw.contains('.')).unwrap_or(cell);
        let label = row.cells[0].raw.trim_end_matches(':').to_string();
        match label.as_str() {
            "Begin Snap" => run.begin.clone_from(&cell.raw),
            "End Snap" => run.end.clone_from(&cell.raw),
            "Elapsed" => run.elapsed = Some(minutes(own)),
            "DB Time" | "DB time" => run.db_time = Some(minutes(own)),
            _ => continue,
        }
        facts.push((label, cell.clone()));
    }
    facts.iter().for_each(|(label, cell)| report.fact(label, cell));
}

/// Combines the instances of a global report: the longest interval, and the sum of DB times.
fn global(report: &mut Report, run: &mut ImportedRun) {
    let Some(sheet) = report.sheet("included_instances") else { return };
    let Some(first) = sheet.rows.first() else { return };
    (run.begin, run.end) = (sheet.text(first, "begin").to_string(), sheet.text(first, "end").to_string());
    (run.host, run.platform) =
        (sheet.text(first, "host").to_string(), sheet.text(first, "platform").to_string());
    let longest = sheet.rows.iter().max_by(|one, two| {
        let elapsed = |row| sheet.figure(row, "elapsed").map_or(0.0, |figure| figure.value);
        elapsed(one).total_cmp(&elapsed(two))
    });
    run.elapsed = longest.and_then(|row| sheet.cell(row, "elapsed")).cloned();
}

/// Fills in DB CPU, and the number of CPUs if the head lacks it.
fn cpu(report: &Report, run: &mut ImportedRun) {
    let of = |section, key, name: &str, figure| {
        let sheet: &Sheet = report.sheet(section)?;
        let row = sheet.rows.iter().find(|row| is_named(sheet.text(row, key), name))?;
        sheet.cell(row, figure).cloned()
    };
    run.db_cpu =
        of("time_model", "name", "DB CPU", "time").or_else(|| of("top_events", "event", "DB CPU", "time"));
    if run.cpus.is_none() {
        run.cpus = value(of("os_statistics", "name", "NUM_CPUS", "value").as_ref()).map(|cpus| cpus as u32);
    }
    // The time model is more exact: seconds with a decimal, against minutes with two in the head.
    let of_model = of("time_model", "name", "DB time", "time");
    run.db_time = of_model.filter(|cell| value(Some(cell)).is_some()).or_else(|| run.db_time.take());
}

/// Fills in the first of two periods, which becomes the record.
fn compared(report: &mut Report) {
    let mut facts = Vec::new();
    let mut run = std::mem::take(&mut report.run);
    if let Some(sheet) = report.sheet("compared_databases") {
        for row in &sheet.rows {
            facts.extend(
                sheet
                    .columns
                    .iter()
                    .zip(&row.cells)
                    .map(|(column, cell)| (column.name.clone(), cell.clone())),
            );
        }
        let row = sheet.rows.first();
        let text = |key| row.map_or("", |row| sheet.text(row, key)).to_string();
        (run.workload, run.host) = (text("instance"), text("host"));
        run.title = format!("IMPORTED REPORT  Instance: {}, first of two periods", run.workload);
    }
    if let Some(sheet) = report.sheet("compared_periods") {
        let row = sheet.rows.first();
        let text = |key| row.map_or("", |row| sheet.text(row, key)).to_string();
        (run.begin, run.end) = (text("begin"), text("end"));
        let cell = |key| row.and_then(|row| sheet.cell(row, key)).cloned();
        (run.elapsed, run.db_time) = (cell("elapsed"), cell("db_time"));
    }
    // The heading of the events has milliseconds, the table above tenths of a minute.
    let heading = report
        .sheet("compared_events")
        .and_then(|sheet| sheet.notes.iter().find(|note| note.text.contains("Elapsed time:")));
    if let Some(note) = heading {
        let first = |name: &str| derived::behind(note, name).into_iter().next().map(Cell::from);
        run.elapsed = first("Elapsed time:").or_else(|| run.elapsed.take());
        run.db_time = first("DB time:").or_else(|| run.db_time.take());
    }
    report.run = run;
    facts.iter().for_each(|(name, cell)| report.fact(name, cell));
}
