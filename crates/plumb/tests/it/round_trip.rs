//! This program's own reports of runs, imported again, give the figures of their records.
//!
//! A printed figure stands for an interval; the record's value must lie in it. Counts are exact.
//! Records are those of small runs, and these with their counts, bytes and times drawn at random.

use crate::program::{fine, plumb};
use plumb_foreign::sheet::{Sheet, SheetRow};
use plumb_foreign::{Import, READERS, Source, import};
use plumb_record::{Consistent, IoGroup, Record, WaitEvent};
use plumb_report::{html, markdown, text};
use std::path::Path;

/// A linear congruential generator: the same numbers in each test.
struct Draw(u64);

impl Draw {
    /// A number below 2 to the power of `bits`, of any size.
    fn number(&mut self, bits: u32) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = 1 + (self.0 >> 58) as u32 % bits;
        (self.0 >> 8) & ((1 << size) - 1)
    }
}

fn record(here: &Path, arguments: &[&str]) -> Record {
    let ended = plumb(here, arguments.iter().chain(&["--json"]));
    // A busy machine may contradict a receipt of times, which makes a run INVALID.
    assert!(matches!(ended.code, Some(0 | 5)), "{arguments:?}: {}", ended.stderr);
    Record::from_json(&ended.stdout).expect("a record")
}

/// Draws counts, bytes and times of a record.
fn redrawn(record: &Record, draw: &mut Draw) -> Record {
    let mut drawn = record.clone();
    drawn.header.db_time_ns = Some(1 + draw.number(44));
    drawn.header.db_cpu_ns = Some(1 + draw.number(43));
    drawn.header.elapsed_ns = 1_000_000_000 + draw.number(43);
    for event in drawn.foreground_events.iter_mut().chain(&mut drawn.background_events) {
        (event.waits, event.time_ns) = (1 + draw.number(34), draw.number(46));
    }
    for statistic in &mut drawn.statistics {
        statistic.total = 1 + draw.number(48);
    }
    for function in &mut drawn.io_functions {
        (function.reads.requests, function.reads.bytes) = (1 + draw.number(32), draw.number(46));
        (function.writes.requests, function.writes.bytes) = (1 + draw.number(32), draw.number(46));
    }
    for file in &mut drawn.io_files {
        (file.reads.requests, file.writes.requests) = (1 + draw.number(30), 1 + draw.number(30));
    }
    drawn
}

fn imported(page: &str) -> Import {
    let source = Source::of(Path::new("report"), page.as_bytes());
    let mut all = import(&source, READERS, "0.1.0").unwrap_or_else(|error| panic!("{error}\n{page}"));
    assert_eq!(all.len(), 1, "one report");
    all.remove(0)
}

/// Returns a table with a row by its first words.
fn row<'a>(import: &'a Import, section: &'static str, name: &str) -> (&'a Sheet, &'a SheetRow) {
    let sheet = import.report.sheet(section).unwrap_or_else(|| panic!("no {section}"));
    let found = sheet.rows.iter().find(|row| row.cells.iter().any(|cell| cell.raw == name));
    (sheet, found.unwrap_or_else(|| panic!("no {name} in {section}: {:?}", sheet.rows)))
}

/// Checks that a value prints as the import has it.
fn prints(import: &Import, section: &'static str, [name, key]: [&str; 2], value: f64) {
    let (sheet, row) = row(import, section, name);
    let figure = sheet.figure(row, key).unwrap_or_else(|| panic!("{name} has no {key}"));
    let slack = 1e-9 * value.abs() + 1e-9;
    let holds = figure.range.low - slack <= value && value <= figure.range.high + slack;
    assert!(holds, "{name} {key}: {} prints as {}", value, figure.raw);
}

fn events(import: &Import, section: &'static str, events: &[WaitEvent]) {
    let waited = events.iter().filter(|event| event.waits > 0);
    for event in waited.clone() {
        let name = event.event.as_str();
        prints(import, section, [name, "waits"], event.waits as f64);
        prints(import, section, [name, "time"], event.time_ns as f64 / 1e9);
        let (sheet, row) = row(import, section, name);
        assert_eq!(sheet.text(row, "class"), event.wait_class, "{name}");
    }
    let rows = import.report.sheet(section).map_or(0, |sheet| sheet.rows.len());
    assert_eq!(rows, waited.count(), "{section}");
}

fn groups(import: &Import, section: &'static str, groups: &[IoGroup]) {
    for group in groups {
        for (tally, count, bytes) in
            [(group.reads, "reads", "read_bytes"), (group.writes, "writes", "written_bytes")]
        {
            if tally.requests > 0 && tally.bytes > 0 {
                prints(import, section, [&group.name, count], tally.requests as f64);
                prints(import, section, [&group.name, bytes], tally.bytes as f64);
            }
        }
    }
}

/// The figures of the first page, which all forms have.
fn first_page(record: &Record, import: &Import) {
    let own = import.record.as_ref().expect("an interval");
    assert_eq!(own.header.workload, record.header.workload);
    assert_eq!(
        (&own.header.begin_time, &own.header.end_time),
        (&record.header.begin_time, &record.header.end_time)
    );
    assert_eq!(own.header.host.name, record.header.host.name);
    assert_eq!(own.header.host.cpus, record.header.host.cpus);
    // Seconds are printed with two decimals.
    let near = |own: u64, ns: u64| assert!(own.abs_diff(ns) <= 5_000_001, "{own} against {ns}");
    near(own.header.elapsed_ns, record.header.elapsed_ns);
    near(own.header.db_time(), record.header.db_time());
    if let (Some(own), Some(cpu)) = (&own.host_cpu, &record.host_cpu) {
        near(own.user_ns, cpu.user_ns);
        near(own.idle_ns, cpu.idle_ns);
    }
    assert_eq!(own.host_cpu.is_some(), record.host_cpu.is_some());
    for area in &record.memory.areas {
        prints(import, "cache_sizes", [&area.name, "begin"], area.bytes as f64);
    }
    let top = import.report.sheet("top_events").expect("the top events");
    assert!(!top.rows.is_empty());
    for event in &record.foreground_events {
        if top.rows.iter().any(|row| top.text(row, "event") == event.event) {
            prints(import, "top_events", [&event.event, "waits"], event.waits as f64);
        }
    }
}

fn whole(record: &Record, import: &Import) {
    first_page(record, import);
    assert!(import.report.unread.is_empty(), "{:?}", import.report.unread);
    events(import, "foreground_events", &record.foreground_events);
    events(import, "background_events", &record.background_events);
    for statistic in record.statistics.iter().filter(|statistic| statistic.total > 0) {
        prints(import, "activity", [&statistic.name, "total"], statistic.total as f64);
    }
    groups(import, "io_functions", &record.io_by_function());
    groups(import, "io_filetypes", &record.io_by_file_type());
    let own = import.record.as_ref().expect("an interval");
    let moved = record.io_files.iter().filter(|file| file.reads.requests > 0 && file.writes.requests > 0);
    for file in moved {
        let found = own.io_files.iter().filter(|own| own.tablespace == file.tablespace);
        let found: Vec<[u64; 2]> = found.map(|own| [own.reads.requests, own.writes.requests]).collect();
        assert!(found.contains(&[file.reads.requests, file.writes.requests]), "{}: {found:?}", file.path);
    }
    for setting in record.settings.iter().filter(|setting| setting.value.len() < 20) {
        let found = own.settings.iter().find(|own| own.name == setting.name);
        let found = found.map(|own| (&own.value, &own.taken));
        assert_eq!(found, Some((&setting.value, &setting.taken)), "{}", setting.name);
    }
}

/// Imports all forms of a report. Returns their checks that do not hold.
fn all_forms(record: &Record) -> Vec<String> {
    let document = plumb_pages::run::document(record);
    let [text, page] = [text::render(&document), html::render(&document)].map(|page| imported(&page));
    whole(record, &text);
    whole(record, &page);
    first_page(record, &imported(&markdown::render(&document)));
    let bad = |import: &Import| {
        let checks = import.report.checks.iter();
        let bad = checks.filter(|check| !matches!(check.outcome, Consistent::Holds | Consistent::NotAsked));
        bad.map(|check| format!("{check:?}")).collect::<Vec<_>>()
    };
    [bad(&text), bad(&page)].concat()
}

#[test]
fn a_report_in_each_form_gives_the_figures_of_its_record() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let mut draw = Draw(51);
    let runs: [&[&str]; 3] = [
        &["run", "redo", "--rows", "2K", "--seed", "7"],
        &["run", "slob", "--scale", "600", "--schemas", "2", "--run-time", "200ms", "--seed", "7"],
        &["run", "large-sort", "--rows", "20K", "--set", "sort_area_size=1M", "--seed", "7"],
    ];
    for arguments in runs {
        let record = record(here, arguments);
        let bad = all_forms(&record);
        // What files read from the page cache moves faster than any device.
        let bad: Vec<&String> = bad.iter().filter(|check| !check.contains("a read is possible")).collect();
        assert!(bad.is_empty(), "{arguments:?}: {bad:#?}");
        for _ in 0..4 {
            drop(all_forms(&redrawn(&record, &mut draw)));
        }
    }
}

/// Text, page and Markdown of a study give the medians of its analysis and its verdicts.
#[test]
fn a_study_in_each_form_gives_the_figures_of_its_arms() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let study = ["study", "large-sort", "--rows", "20K", "--factor", "parallel_degree=1,2", "--blocks", "2"];
    drop(plumb(here, study.iter().chain(&["--seed", "7", "--bundle", "s"])));
    let read = |name: &str| std::fs::read_to_string(here.join("s").join(name)).expect("a file of the bundle");
    let analysis: serde_json::Value = serde_json::from_str(&read("analysis.json")).expect("JSON");
    let markdown = fine(here, ["report", "s", "--format", "markdown"]);
    let verdict = analysis["claims"][0]["verdict"]["label"].as_str().expect("a verdict");
    for (form, text) in [("text", read("report.txt")), ("page", read("report.html")), ("markdown", markdown)]
    {
        let import = imported(&text);
        let record = import.record.as_ref().unwrap_or_else(|| panic!("{form}: no interval"));
        for arm in analysis["arms"].as_array().expect("arms") {
            let (name, median) = (arm["name"].as_str().expect("a name"), arm["median"].as_f64());
            let own = record.measures.iter().find(|row| row.name == format!("{name}: elapsed time"));
            let own = own.unwrap_or_else(|| panic!("{form}: no {name} in {:#?}", record.measures)).value;
            let median = median.expect("a median");
            assert!((own - median).abs() <= 0.005 * median.max(0.1), "{form}: {name} {own} {median}");
        }
        let claims = import.imported.facts.iter().find(|fact| fact.name.starts_with("Claim 1"));
        let said = claims.unwrap_or_else(|| panic!("{form}: {:#?}", import.imported.facts));
        assert!(said.text.starts_with(verdict), "{form}: {} is not {verdict}", said.text);
    }
}

#[test]
fn a_report_of_the_command_is_a_report_to_import() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    drop(plumb(here, ["run", "redo", "--rows", "20K", "--bundle", "run"]));
    for (name, kind) in [("report.txt", "plumb report"), ("report.html", "plumb page")] {
        let file = format!("run/{name}");
        let list = fine(here, ["import", "--list", &file]);
        assert!(list.contains(&format!(": {kind}, from line ")), "{list}");
        assert!(!list.contains("NOT READ"), "{list}");
    }
    drop(fine(here, ["import", "run/report.txt", "--bundle", "again"]));
    let compared = fine(here, ["compare", "run", "again"]);
    assert!(compared.contains("redo size"), "{compared}");
}
