//! Reads the head of a report: database, host and interval.
//!
//! Elapsed and DB time are in the table of snapshots. DB CPU is in the time model, otherwise in the
//! row `DB CPU` of the top events. If the head lacks the number of CPUs, it is NUM_CPUS of the
//! operating system statistics.

use super::{checks, derived};
use crate::figure::sheet::{Cell, Sheet, is_named};
use crate::report::{ImportedRun, Report, value};
use plumb_figures::is_number;

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
    answers(report);
}

/// Fills in what a reader looks for first: the interval, DB time, and the largest events.
fn answers(report: &mut Report) {
    let facts = |report: &Report, name: &str| {
        let found = report.facts.iter().find(|fact| fact.name.eq_ignore_ascii_case(name));
        found.map_or(String::new(), |fact| fact.text.clone())
    };
    // A column of minutes has the unit in its heading.
    let printed = |cell: &Option<Cell>| match cell {
        Some(cell) if is_number(&cell.raw) => format!("{:.2} s", value(Some(cell)).unwrap_or(0.0)),
        cell => cell.as_ref().map_or(String::new(), |cell| cell.raw.clone()),
    };
    let or = |one: String, two: String| if one.is_empty() { two } else { one };
    let elapsed = or(facts(report, "Elapsed"), printed(&report.run.elapsed));
    let db_time = or(facts(report, "DB Time"), printed(&report.run.db_time));
    let [seconds, time] = [&report.run.elapsed, &report.run.db_time].map(|cell| value(cell.as_ref()));
    let sessions = seconds.zip(time).filter(|(seconds, _)| *seconds > 0.0);
    let sessions = sessions.map(|(seconds, time)| format!("{:.1} average active sessions", time / seconds));
    let mut events = Vec::new();
    for section in ["top_events", "top_foreground_events"] {
        for sheet in report.sheets_of(section) {
            let rows = sheet.rows.iter().filter(|row| matches!(sheet.text(row, "instance"), "" | "*"));
            events.extend(rows.take(3).map(|row| {
                let average = sheet.cell(row, "average").map_or("", |cell| &cell.raw);
                let unit = if average.ends_with('s') || average.is_empty() { "" } else { " ms" };
                let share = sheet.text(row, "share");
                let share = if share.is_empty() { String::new() } else { format!("{share}% of DB time") };
                let average =
                    if average.is_empty() { String::new() } else { format!("{average}{unit} on average") };
                (sheet.text(row, "event").to_string(), share, average)
            }));
        }
    }
    if let Some(second) = &report.second {
        let of = |run: &ImportedRun| {
            let seconds = |cell: &Option<Cell>| {
                value(cell.as_ref()).map_or("unknown".to_string(), |value| format!("{value:.2} s"))
            };
            let [elapsed, time] = [&run.elapsed, &run.db_time].map(seconds);
            (format!("DB time {time}"), format!("in {elapsed} on {}", run.workload))
        };
        let both = [("First period", of(&report.run)), ("Second period", of(second))];
        both.into_iter().for_each(|(name, (value, aside))| report.answer(name, value, aside));
        return;
    }
    report.answer("Elapsed", elapsed, "");
    report.answer("DB time", db_time, sessions.unwrap_or_default());
    for (event, share, average) in events.into_iter().take(3) {
        report.answer(&event, share, average);
    }
}

fn snapshots(report: &mut Report, run: &mut ImportedRun) {
    let Some(sheet) = report.sheet("snapshots") else { return };
    let mut facts = Vec::new();
    for row in &sheet.rows {
        let Some(cell) = sheet.cell(row, "time") else { continue };
        let label = row.cells[0].raw.trim_end_matches(':').to_string();
        match label.as_str() {
            "Begin Snap" => run.begin.clone_from(&cell.raw),
            "End Snap" => run.end.clone_from(&cell.raw),
            "Elapsed" => run.elapsed = derived::minutes_of(sheet, row),
            "DB Time" | "DB time" => run.db_time = derived::minutes_of(sheet, row),
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

/// Fills in both periods of a comparison.
fn compared(report: &mut Report) {
    let Some(databases) = report.sheet("compared_databases") else {
        if report.sheet("compared_events").is_some() {
            let [first, second] = [0, 1].map(|at| period(report, at));
            (report.run, report.second) = (first, Some(second));
        }
        return;
    };
    let mut facts = Vec::new();
    for row in &databases.rows {
        let names = databases.columns.iter().map(|column| column.name.clone());
        facts.extend(names.zip(row.cells.iter().cloned()));
    }
    let [first, second] = [0, 1].map(|at| period(report, at));
    (report.run, report.second) = (first, Some(second));
    facts.iter().for_each(|(name, cell)| report.fact(name, cell));
}

/// Returns the first or the second period of a comparison.
fn period(report: &Report, at: usize) -> ImportedRun {
    let mut run = ImportedRun::default();
    let row =
        |section: &'static str| report.sheet(section).and_then(|sheet| Some((sheet, sheet.rows.get(at)?)));
    if let Some((sheet, row)) = row("compared_databases") {
        (run.workload, run.host) =
            (sheet.text(row, "instance").to_string(), sheet.text(row, "host").to_string());
    }
    let named = if at == 0 { "first" } else { "second" };
    run.title = format!("IMPORTED REPORT  Instance: {}, {named} of two periods", run.workload);
    if let Some((sheet, row)) = row("compared_periods") {
        (run.begin, run.end) = (sheet.text(row, "begin").to_string(), sheet.text(row, "end").to_string());
        (run.elapsed, run.db_time) =
            (sheet.cell(row, "elapsed").cloned(), sheet.cell(row, "db_time").cloned());
    }
    // The heading of the events has milliseconds, the table above tenths of a minute.
    let events = report.sheet("compared_events");
    let heading =
        events.and_then(|sheet| sheet.notes.iter().find(|note| note.text.contains("Elapsed time:")));
    if let Some(note) = heading {
        let of = |name: &str| derived::behind(note, name).into_iter().nth(at).map(Cell::from);
        run.elapsed = of("Elapsed time:").or_else(|| run.elapsed.take());
        run.db_time = of("DB time:").or_else(|| run.db_time.take());
    }
    if let Some(sheet) = events {
        let (event, time) = (format!("{named}_event"), format!("{named}_time"));
        let cpu = sheet.rows.iter().find(|row| ["CPU time", "DB CPU"].contains(&sheet.text(row, &event)));
        run.db_cpu = cpu.and_then(|row| sheet.cell(row, &time)).cloned();
    }
    if let Some(sheet) = report.sheet("compared_hosts") {
        let cpus = sheet.rows.iter().find(|row| sheet.text(row, "name").starts_with("Number of CPUs"));
        run.cpus = cpus.and_then(|row| value(sheet.cell(row, named))).map(|cpus| cpus as u32);
    }
    run
}
