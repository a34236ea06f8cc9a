//! AWR as text and as HTML, Statspack, global, two periods; their checks and records.

use crate::{figure, fixture, imports, only, row, sheet, with};
use plumb_figures::CellReading;
use plumb_foreign::figure::sheet::Sheet;
use plumb_record::Consistent::{Fails, Habit, Holds, Impossible, NotAsked};

const TEXT: &str = fixture!("awr_11204.txt");
const HTML: &str = fixture!("awr_11204.html");
const SHIFTED: (&str, &str) = ("columns stand under their headings", "Tablespace IO Stats");

/// Figures of known columns by section and row: what both forms of a report must agree in.
fn keyed(sheet: &Sheet) -> Vec<(String, &'static str, CellReading)> {
    let mut found = Vec::new();
    for (at, row) in sheet.rows.iter().enumerate() {
        for (column, cell) in
            sheet.columns.iter().zip(&row.cells).filter(|(column, _)| !column.key.is_empty())
        {
            if cell.reading.value().is_some() {
                found.push((format!("{} {at}", sheet.section), column.key, cell.reading));
            }
        }
    }
    found
}

#[test]
fn text_and_html_of_one_report_give_equal_figures() {
    let (text, html) = (only(TEXT), only(HTML));
    let mut compared = 0;
    for one in text.report.sheets.iter().filter(|sheet| !sheet.section.is_empty()) {
        if one.section == "efficiency" || one.section == "cache_sizes" {
            // An HTML page has pairs in another order.
            continue;
        }
        let two = sheet(&html.report, one.section);
        let (one, two) = (keyed(one), keyed(two));
        assert_eq!(one.len(), two.len(), "{one:?} {two:?}");
        for ((place, key, one), (_, other, two)) in one.iter().zip(&two) {
            let (one, two) = (one.range().expect("a value"), two.range().expect("a value"));
            assert!(key == other && one.meets(two), "{place} {key}: {one:?} {two:?}");
            compared += 1;
        }
    }
    assert!(compared > 250, "{compared} figures");
    let record = |import: &plumb_foreign::Import| {
        let mut record = import.record.clone().expect("an interval");
        record.imported = None;
        // Names are cut off in text, and the month of a page's startup is its minute.
        record.header.settings_hash.clear();
        record.header.host.name.clear();
        record.settings.clear();
        record.io_functions.iter_mut().for_each(|row| row.function.truncate(12));
        record.background_events.iter_mut().for_each(|row| row.event.truncate(20));
        record.foreground_events.iter_mut().for_each(|row| row.event.truncate(20));
        record.memory.areas.sort_by_key(|area| area.bytes);
        record
    };
    assert_eq!(record(&text), record(&html));
}

#[test]
fn every_section_is_read_or_listed() {
    for text in [TEXT, HTML] {
        let import = only(text);
        assert!(import.report.unread.is_empty(), "{:?}", import.report.unread);
        let sections: Vec<&str> = import.report.sheets.iter().map(|sheet| sheet.section).collect();
        for section in [
            "database",
            "host",
            "snapshots",
            "load_profile",
            "efficiency",
            "top_events",
            "host_cpu",
            "io_profile",
            "cache_sizes",
            "time_model",
            "os_statistics",
            "foreground_classes",
            "foreground_events",
            "background_events",
            "histogram",
            "activity",
            "thread_activity",
            "io_functions",
            "io_filetypes",
            "io_function_filetypes",
            "tablespaces",
            "files",
            "parameters",
        ] {
            assert!(sections.contains(&section), "{section} in {sections:?}");
        }
    }
    let report = only(TEXT).report;
    let empty: Vec<&str> = report.empty.iter().map(|empty| empty.text.as_str()).collect();
    assert_eq!(empty, ["MTTR Advisory"]);
}

#[test]
fn tables_are_cut_by_their_rulers() {
    let report = only(TEXT).report;
    let of = |heading: &str| report.sheets.iter().find(|sheet| sheet.heading == heading).expect("a table");
    let names =
        |heading: &str| of(heading).columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        names("Global Cache Transfer Stats")[..6],
        ["Inst No", "Block Class", "CR Blocks Received", "CR % Immed", "CR % Busy", "CR % Congst"]
    );
    assert_eq!(
        row(of("Global Cache Transfer Stats"), "undo header")[..4],
        ["2", "undo header", "212", "99.5"]
    );
    // The sum has a ruler of its own above it.
    assert_eq!(of("SGA Memory Summary").rows.len(), 3);
    // Page breaks, statements, wrapped names and values.
    assert_eq!(sheet(&report, "background_events").rows.len(), 3);
    assert_eq!(of("SQL ordered by Reads").rows.len(), 2);
    let parameters = sheet(&report, "parameters");
    assert_eq!(
        row(parameters, "control_files")[1],
        "/u01/oradata/demo/control01.ctl,/u02/oradata/demo/control02.ctl"
    );
    let file = "/u01/oradata/demo/a/directory/with/a/long/name/so_that_it_wraps_users01.dbf";
    assert_eq!(row(sheet(&report, "files"), "USERS")[1], file);
    assert_eq!(row(sheet(&report, "cache_sizes"), "Std Block Size"), ["Std Block Size", "8K", ""]);
    assert_eq!(row(sheet(&report, "io_function_filetypes"), "Buffer Cache Reads (Data File)")[1], "11G");
}

#[test]
fn a_sound_report_adds_up_but_for_the_shifted_columns() {
    for text in [TEXT, HTML] {
        let report = only(text).report;
        assert_eq!(with(&report.checks, Habit), [SHIFTED]);
        assert!(with(&report.checks, Fails).is_empty());
        assert!(with(&report.checks, Impossible).is_empty());
        let (held, open) = (with(&report.checks, Holds), with(&report.checks, NotAsked));
        assert!(held.len() > 90, "{} held", held.len());
        assert!(open.is_empty(), "{open:?}");
        let mut kinds: Vec<&str> = held.iter().map(|(name, _)| *name).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 22, "{kinds:?}");
    }
}

#[test]
fn one_changed_figure_fails_the_check_that_it_is_in() {
    for (from, to, check) in [
        ("617,937     0        900       1", "617,937     0        990       1", "time / waits = average"),
        (
            "36,000     0        180       5",
            "36,000     0        190       5",
            "time / DB time = % of DB time",
        ),
        ("720,240,000      200,000.0", "720,340,000      200,000.0", "total / interval = per second"),
        ("200,000.0      20,000.0", "200,000.0      20,001.0", "total / transactions = per transaction"),
        ("10,000.0           1,000.0", "10,010.0           1,000.0", "load profile = instance activity"),
        ("3.5G    20.0   .995M", "3.5G    20.0   1.05M", "bytes / interval = bytes per second"),
        (
            "LGWR                 0M     0.0      0M    700M    10.0",
            "LGWR                 0M     0.0      0M    700M    13.0",
            "sum of rows = total",
        ),
        (
            "510.0           400.0           110.0",
            "510.0           430.0           110.0",
            "IOStat = IO Profile",
        ),
        ("36K                   100.0", "36K       100.0", "histogram has the average"),
        ("1,140.00 (s)", "1,240.00 (s)", "captured time <= DB time"),
        ("96.7%  of Total", "95.7%  of Total", "captured share"),
        (
            "1.28      0.45       4.1       4.7       1.1      91.2",
            "1.28      0.45       4.1       5.1       1.1      91.2",
            "user + system + idle <= 100%",
        ),
        (
            "      11 03-May-24 10:00:02        42",
            "      11 03-May-24 10:00:02         0",
            "DB time <= sessions x interval",
        ),
    ] {
        let mut changed = TEXT.replacen(from, to, 1);
        assert_ne!(changed, TEXT, "{from}");
        if check.starts_with("DB time <=") {
            changed = changed.replace("09:00:01        40", "09:00:01         0");
        }
        let report = only(&changed).report;
        let failed = [with(&report.checks, Fails), with(&report.checks, Habit)].concat();
        assert!(failed.iter().any(|(name, _)| *name == check), "{check}: {failed:?}");
    }
    let cpu = TEXT.replace(
        "DB CPU                                                  600.0",
        "DB CPU                                               39,600.0",
    );
    assert_eq!(with(&only(&cpu).report.checks, Impossible), [("CPU <= processors x interval", "DB CPU")]);
}

#[test]
fn shifted_columns_are_put_right_where_the_files_prove_it_and_nowhere_else() {
    let users = |text: &str| {
        let report = only(text).report;
        let sheet = sheet(&report, "tablespaces");
        let row = sheet.row("tablespace", "USERS").expect("a row");
        ["writes", "single_reads_per_s", "single_read_time"].map(|key| sheet.text(row, key).to_string())
    };
    assert_eq!(users(TEXT), ["360,120", "350.0", "1"]);
    assert_eq!(users(HTML), ["360,120", "350.0", "1"]);
    // A single write more, and nothing is proved.
    let unproved = TEXT.replace("360,120     100       12", "360,121     100       12");
    assert_eq!(users(&unproved), ["1", "360,120", "350.0"]);
    let report = only(&unproved).report;
    let rule = "writes of files = writes of their tablespace";
    assert!(with(&report.checks, Fails).contains(&(rule, "USERS")));
}

#[test]
fn a_record_has_what_the_report_says_and_no_more() {
    let record = only(TEXT).record.expect("an interval");
    let header = &record.header;
    assert_eq!((header.workload.as_str(), header.elapsed_ns), ("DEMO", 3_601_200_000_000));
    assert_eq!((header.db_time_ns, header.db_cpu_ns), (Some(1_800_000_000_000), Some(600_000_000_000)));
    assert_eq!((header.host.cpus, header.host.name.as_str()), (Some(8), "dbhost1.example."));
    let read = record.foreground_events.iter().find(|event| event.event == "db file sequential read");
    let read = read.expect("the event");
    // 899.5 to 900.5 s by time, 309 to 927 s by average.
    assert_eq!((read.waits, read.time_ns, read.max_ns), (617_937, 900_000_000_000, None));
    assert!(read.histogram.is_empty());
    assert!(
        record.foreground_events.iter().any(|event| event.is_idle() && event.event.starts_with("SQL*Net"))
    );
    let cache = record.io_functions.iter().find(|row| row.function == "Buffer Cache Re").expect("a function");
    assert_eq!((cache.reads.requests, cache.reads.time_ns), (1_368_456, None));
    let users = record.io_files.iter().find(|file| file.tablespace == "USERS").expect("a file");
    assert_eq!(
        (users.reads.requests, users.writes.requests, users.writes.time_ns),
        (1_368_456, 360_120, None)
    );
    assert!(record.settings.iter().any(|row| row.name == "filesystemio_options" && row.value == "none"));
    let cpu = record.host_cpu.as_ref().expect("statistics of the host");
    assert_eq!((cpu.user_ns, cpu.idle_ns), (1_181_190_000_000, 25_957_460_000_000));
    let again = plumb_record::Record::from_json(&record.to_json().expect("JSON")).expect("the same");
    assert_eq!(again, record);
}

#[test]
fn the_k_that_fell_off_a_narrow_column_is_put_back() {
    let report = only(TEXT).report;
    let histogram = sheet(&report, "histogram");
    let waits = |name: &str| {
        let row = histogram.row("event", name).expect("a row");
        histogram.figure(row, "waits").expect("a value").value.round()
    };
    assert_eq!((waits("db file sequential read"), waits("log file sync")), (617_900.0, 36_000.0));
}

#[test]
fn two_reports_in_a_file_are_two_imports_and_an_encoding_changes_nothing() {
    let both = imports(&format!("SQL> @awrrpt\n{TEXT}\n{TEXT}"));
    assert_eq!(both.len(), 2);
    assert_eq!(both[1].report.line as usize, 3 + TEXT.lines().count() + 1);
    let dressed = TEXT.replace('\n', "\r\n").replace("dbhost1", "gr\u{f6}\u{df}er1");
    let latin1: Vec<u8> = dressed.chars().map(|letter| u8::try_from(letter).expect("Latin-1")).collect();
    let source = plumb_foreign::Source::of(std::path::Path::new("x"), &latin1);
    let import = plumb_foreign::import(&source, plumb_foreign::READERS, "0").expect("a report").remove(0);
    assert_eq!(import.record.expect("a record").header.host.name, "gr\u{f6}\u{df}er1.example.");
    assert_eq!(with(&import.report.checks, Habit), [SHIFTED]);
}

#[test]
fn statspack_is_read_with_its_own_headings() {
    let import = only(fixture!("statspack.txt"));
    let (report, record) = (&import.report, import.record.as_ref().expect("an interval"));
    assert_eq!(report.kind, "Statspack report");
    assert!(report.unread.is_empty(), "{:?}", report.unread);
    assert_eq!(
        (record.header.elapsed_ns, record.header.db_time_ns),
        (3_601_200_000_000, Some(1_800_000_000_000))
    );
    assert_eq!(record.header.db_cpu_ns, Some(600_000_000_000));
    assert_eq!((record.header.host.name.as_str(), record.header.host.cpus), ("dbhost1", Some(8)));
    assert!(with(&report.checks, Fails).is_empty(), "{:?}", with(&report.checks, Fails));
    assert!(with(&report.checks, Holds).len() > 20);
    // #### is no figure.
    assert!(record.foreground_events.iter().all(|event| event.event != "buffer busy waits"));
    assert_eq!(row(sheet(report, "tablespaces"), "USERS")[1], "1,368,456");
    assert!((figure(&import, "Log write: time each").value - 0.00416).abs() < 1e-6);
}

#[test]
fn a_global_report_is_checked_between_its_sections() {
    let import = only(fixture!("global.html"));
    let record = import.record.as_ref().expect("an interval");
    assert_eq!(
        (record.header.elapsed_ns, record.header.db_time_ns),
        (3_601_200_000_000, Some(3_600_000_000_000))
    );
    let event = &record.foreground_events[0];
    // 1,439.985 to 1,440.015 s by its average, and the sum of instances only once.
    assert_eq!(
        (event.waits, event.time_ns, record.foreground_events.len()),
        (3_000_000, 1_440_000_000_000, 1)
    );
    assert_eq!(with(&import.report.checks, Fails), [("IOStat = IO Profile", "reads by functions")]);
    // The heading of the column has the unit.
    let elapsed = import.imported.answers.iter().find(|answer| answer.name == "Elapsed");
    assert_eq!(elapsed.expect("an interval").value, "3601.20 s");
}

#[test]
fn documents_that_are_no_reports_of_runs_name_what_takes_them() {
    let refused = |text: &str| {
        let source = plumb_foreign::Source::of(std::path::Path::new("page"), text.as_bytes());
        plumb_foreign::import(&source, plumb_foreign::READERS, "0.1.0").expect_err("refused").to_string()
    };
    let table = "\nEvent  Waits\n------ -----\nsync       3\n";
    let calibration = "page is a calibration by plumb, and import reads reports of other programs; give its \
                       bundle, the directory that it is in, to `plumb report` or `plumb compare`";
    assert_eq!(refused(&format!("PLUMB CALIBRATION  /u01 on vda{table}")), calibration);
    assert_eq!(refused(&format!("# PLUMB CALIBRATION  /u01 on vda{table}")), calibration);
    assert!(refused("PLUMB REPORT  Workload: redo").starts_with("page is a report of a run by plumb"));
    let page = "<!DOCTYPE html>\n<html><head><title>PLUMB AUDIT  three claims</title></head></html>";
    assert!(refused(page).ends_with("give the file of its claim to `plumb audit`"));
    let compared = refused(&format!("PLUMB COMPARE PERIOD REPORT  Workload: redo{table}"));
    assert!(compared.ends_with("import the two reports that it compares"), "{compared}");
}

#[test]
fn two_periods_are_compared_as_they_stand() {
    let import = only(fixture!("compare.txt"));
    let record = import.record.as_ref().expect("an interval");
    // The heading of the events is more exact than 2.0 minutes.
    assert_eq!((record.header.workload.as_str(), record.header.elapsed_ns), ("DEMO12", 122_614_000_000));
    assert_eq!(record.header.db_time_ns, Some(1_935_330_000_000));
    assert!(with(&import.report.checks, Fails).is_empty(), "{:?}", with(&import.report.checks, Fails));
    assert!(with(&import.report.checks, Holds).len() > 30);
    // Differences below a ruler of their own, in per cent.
    let differences = import.report.sheets.iter().find(|sheet| sheet.heading == "%Diff").expect("a table");
    let values: Vec<Option<f64>> =
        differences.rows[0].cells.iter().map(|cell| cell.reading.value()).collect();
    assert_eq!(values, [None, Some(0.2), Some(-0.5), Some(-0.6)]);
    let value = |name: &str| figure(&import, name).value;
    assert_eq!(value("db file sequential read: waits a second, first").round(), 3_749.0);
    assert_eq!(value("db file sequential read: waits a second, second").round(), 12_561.0);
    assert!((value("db file sequential read: waits, second over first") - 3.33).abs() < 0.005);
    assert_eq!(value("Interval, first"), 122.614);
    // The first of the three periods of this article.
    let earlier = fixture!("compare.txt").replace("459,637", "906,150").replace("122.614 sec", "122.27 sec");
    let earlier = only(&earlier);
    let value = |name: &str| figure(&earlier, name).value;
    assert_eq!(value("db file sequential read: waits a second, first").round(), 7_411.0);
    assert_eq!((10.0 * value("Interval, first")).round(), 1223.0);
    let changed = fixture!("compare.txt").replacen("226.4", "226.6", 1);
    let failed = only(&changed).report.checks;
    assert_eq!(with(&failed, Habit), [("%Diff of two periods", "Redo size (bytes):")]);
}

/// A total that fell prints its quotients without their sign.
#[test]
fn a_total_that_fell_is_no_contradiction() {
    let text = fixture!("awr_11204.txt").replacen(
        "user commits                ",
        "ges remote lock allocation                      -69            0.0           0.0\nuser commits                ",
        1,
    );
    let failed = |text: &str| format!("{:?}", with(&only(text).report.checks, Fails));
    let row = "ges remote lock allocation";
    assert!(with(&only(&text).report.checks, Holds).iter().any(|(_, of)| *of == row));
    assert_eq!(failed(&text), failed(fixture!("awr_11204.txt")));
}

/// Sections of 12.1 in the shape of the report: a row of two lines, and statements below theirs.
const OF_12_1: &str = "
WORKLOAD REPOSITORY report for

SQL ordered by Elapsed Time             DB/Inst: DEMO/demo1  Snaps: 10-11
-> % Total DB Time is the Elapsed Time of the SQL statement divided
   into the Total Database Time multiplied by 100

        Elapsed                  Elapsed Time
        Time (s)    Executions  per Exec (s)  %Total   %CPU    %IO    SQL Id
---------------- -------------- ------------- ------ ------ ------ -------------
            59.6         80,197          0.01   99.3   40.4   87.4 bhdvtsvjhgvrh
Module: load
SELECT COUNT(C2) FROM T1 WHERE ( ID > ( :B1 - :B2 ) ) AND ( ID < :B1 ) AND C3 IN
 (1, 2)

            12.1              1         12.10   20.0   33.6   90.0 g2d5bkr17rhw3
BEGIN NULL; END;
          ------------------------------------------------------

Segments by Logical Reads               DB/Inst: DEMO/demo1  Snaps: 10-11
-> Total Logical Reads:      20,675,048

                     Tablespace
Owner                   Name
-------------------- ----------
                     Subobject  Obj.                             Logical
Object Name            Name     Type        Obj#   Dataobj#        Reads  %Total
-------------------- ---------- ----- ---------- ---------- ------------ -------
APP1                 USERS
T1                              TABLE      96386      96387    4,478,048   21.66
APP2                 USERS
T1_PK                819247_402 INDEX      96390      96391          864     .04
          ------------------------------------------------------

End of Report
";

#[test]
fn a_segment_has_the_figures_of_its_second_line() {
    let import = only(OF_12_1);
    let segments = import.report.sheets.iter().find(|sheet| sheet.heading == "Segments by Logical Reads");
    let rows = &segments.expect("the section").rows;
    let texts = |at: usize| rows[at].cells.iter().map(|cell| cell.raw.as_str()).collect::<Vec<_>>();
    assert_eq!(rows.len(), 2);
    assert_eq!(texts(0), ["APP1", "USERS", "T1", "", "TABLE", "96386", "96387", "4,478,048", "21.66"]);
    assert_eq!(texts(1), ["APP2", "USERS", "T1_PK", "819247_402", "INDEX", "96390", "96391", "864", ".04"]);
}

#[test]
fn a_statement_stands_with_its_row_as_on_a_page() {
    let import = only(OF_12_1);
    let found = import.report.sheets.iter().find(|sheet| sheet.heading == "SQL ordered by Elapsed Time");
    let statements = found.expect("the section");
    let texts = |at: usize, name: &str| {
        let column = statements.columns.iter().position(|column| column.name == name).expect(name);
        statements.rows[at].cells[column].raw.as_str()
    };
    let text = "SELECT COUNT(C2) FROM T1 WHERE ( ID > ( :B1 - :B2 ) ) AND ( ID < :B1 ) AND C3 IN (1, 2)";
    assert_eq!((texts(0, "SQL Module"), texts(0, "SQL Text")), ("load", text));
    assert_eq!((texts(1, "SQL Module"), texts(1, "SQL Text")), ("", "BEGIN NULL; END;"));
}
