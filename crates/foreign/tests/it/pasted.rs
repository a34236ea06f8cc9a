//! Tables without a head: tabs, one line, paragraphs; the figures that follow from them.

use crate::{figure, fixture, imports, with};
use plumb_foreign::Import;
use plumb_foreign::figure::sheet::SheetRow;
use plumb_record::Consistent::{Fails, Habit, Holds, NotAsked};

fn near(import: &Import, name: &str, expected: f64, digits: f64) {
    let found = figure(import, name);
    assert!((found.value - expected).abs() <= digits, "{name}: {} expected {expected}", found.value);
    assert!(found.low <= found.value && found.value <= found.high);
}

#[test]
fn statistics_on_one_line_say_how_long_their_interval_was() {
    let all = imports(fixture!("one_line.txt"));
    let expected = [(180.9, 2_731.0, 0.00416), (171.0, 2_832.0, 0.0062), (125.6, 399_055.0, 0.3255)];
    assert_eq!(all.len(), expected.len());
    for (import, (seconds, bytes, time)) in all.iter().zip(expected) {
        near(import, "Interval: total / per second", seconds, 0.05);
        near(import, "Log write: bytes each", bytes, 0.5);
        near(import, "Log write: time each", time, 0.000_05);
        assert!(with(&import.report.checks, Fails).is_empty());
        // DB time is not known, and so it is absent.
        assert_eq!(import.record.as_ref().expect("an interval").header.db_time_ns, None);
    }
    let changed = fixture!("one_line.txt").replacen("98.03", "98.93", 1);
    let all = imports(&changed);
    assert_eq!(with(&all[0].report.checks, Habit), [("total / interval = per second", "redo writes")]);
}

#[test]
fn tables_with_tabs_are_read_as_they_stand() {
    let all = imports(fixture!("slides.txt"));
    let shape = |import: &Import| {
        import.report.sheets.iter().map(|sheet| (sheet.section, sheet.rows.len())).collect::<Vec<_>>()
    };
    assert_eq!(
        all.iter().map(shape).collect::<Vec<_>>(),
        [
            vec![("top_events", 5), ("io_filetypes", 5), ("tablespaces", 6)],
            vec![("top_events", 5), ("io_filetypes", 5), ("tablespaces", 6)],
            vec![("tablespaces", 7)],
            vec![("tablespaces", 3)],
            vec![("global_io_functions_rates", 4)],
            vec![("global_io_functions_rates", 4)],
        ]
    );
    for import in &all {
        assert!(with(&import.report.checks, Fails).is_empty(), "{:?}", with(&import.report.checks, Fails));
    }
    let kb = 1024.0;
    near(&all[0], "TEMP_BIG: size of a read", 630.0 * kb, 1.5 * kb);
    near(&all[0], "Temp File: size of a read", 630.0 * kb, 1.5 * kb);
    near(&all[1], "TEMP_BIG: size of a read", 2.5 * kb * kb, 0.05 * kb * kb);
    near(&all[4], "1: size of a direct read", 22.33 * kb * kb, 0.005 * kb * kb);
    let by_kb = |import: &Import, name: &str| figure(import, name).value;
    let slow = by_kb(&all[2], "DATA_8K: time of 1 KB read");
    assert!((slow - 0.000_114_5).abs() < 5e-8);
    assert!((slow / by_kb(&all[3], "STAGE: time of 1 KB read") - 6.6).abs() < 0.05);
    // Both intervals lie within what the totals and rates allow.
    near(&all[0], "Interval: total / per second", 136.8, 0.5);
    near(&all[1], "Interval: total / per second", 96.3, 0.5);
    let record = all[0].record.as_ref().expect("an interval");
    let db_time = record.header.db_time_ns.expect("time over share") as f64 / 1e9;
    assert!((db_time - 5_542.0).abs() < 3.0, "{db_time}");
}

#[test]
fn a_read_that_no_device_can_do_is_the_habit_of_asynchronous_reads() {
    let all = imports(fixture!("slides.txt"));
    let impossible: Vec<_> = all
        .iter()
        .map(|import| with(&import.report.checks, Habit))
        .filter(|found| !found.is_empty())
        .collect();
    let temp = vec![("a read is possible", "TEMP_BIG")];
    assert_eq!(impossible, [temp.clone(), temp]);
    let found = all[0].imported.checks.iter().find(|check| check.of == "TEMP_BIG").expect("the check");
    // 630 KB in 0.015 ms at most: 43 GB/s at least.
    assert!(found.found.expect("an interval")[0] > 43e9);
    assert!(found.note.contains("wait event"), "{}", found.note);
    assert_eq!(
        found.figures.iter().map(|figure| figure.text.as_str()).collect::<Vec<_>>(),
        ["78.87", "0.01"]
    );
}

#[test]
fn rows_of_instances_add_up() {
    let rates = imports(fixture!("slides.txt")).remove(4).report;
    let held = with(&rates.checks, Holds);
    let of = |rule: &str| held.iter().filter(|(name, _)| *name == rule).count();
    assert_eq!((of("sum of instances"), of("average of instances")), (14, 14));
    let changed = fixture!("slides.txt").replacen("13,540.63", "13,541.63", 1);
    let failed = imports(&changed).remove(4).report.checks;
    let failed = with(&failed, Habit);
    assert_eq!(
        failed,
        [("sum of instances", "Reads MB/sec Total"), ("average of instances", "Reads MB/sec Total")]
    );
}

#[test]
fn waits_of_a_statement_cannot_be_more_than_its_time() {
    let import = imports(fixture!("by_hand.txt")).remove(0);
    let failed = with(&import.report.checks, Fails);
    let rule = "waits <= elapsed time";
    assert_eq!(failed, [(rule, "Blocks of 2K"), (rule, "Blocks of 16K")]);
    let sums: Vec<f64> =
        import.imported.checks.iter().map(|check| check.found.expect("an interval")[1]).collect();
    assert!((sums[0] - 0.0515).abs() < 1e-4 && (sums[1] - 0.058).abs() < 1e-4, "{sums:?}");
    assert!(import.record.is_none(), "no interval, no run");
}

#[test]
fn tables_of_unknown_columns_are_read_as_they_are_headed() {
    let text = "Buffers\tSize\tMinutes\t\n\t\t32K\t64K\n2\t32\t4.85\t4.6\n4\t32\t4.55\t4.53\n\nTable 2\n";
    let import = imports(text).remove(0);
    assert_eq!((import.report.kind.as_str(), import.report.sheets.len()), ("pasted tables", 1));
    assert!(import.report.checks.iter().all(|check| check.outcome == NotAsked), "nothing is known of it");
    assert!(import.record.is_none());
}

/// The names of the columns and the rows of the tables of all imports.
type Tables = Vec<(String, Vec<String>, Vec<Vec<String>>)>;

fn tables(all: &[Import]) -> Tables {
    let sheets = all.iter().flat_map(|import| &import.report.sheets);
    let shown = sheets.map(|sheet| {
        let names = sheet.columns.iter().map(|column| column.name.clone()).collect();
        let texts = |row: &SheetRow| row.cells.iter().map(|cell| cell.raw.clone()).collect();
        (sheet.heading.clone(), names, sheet.rows.iter().map(texts).collect())
    });
    shown.collect()
}

/// The value of a cell in the base unit of its text.
fn cell(all: &[Import], [table, row, column]: [usize; 3]) -> f64 {
    let sheet = all.iter().flat_map(|import| &import.report.sheets).nth(table).expect("a table");
    sheet.rows[row].cells[column].reading.value().expect("a figure")
}

#[test]
fn tables_of_papers_have_spanners_merged_cells_and_captions() {
    let all = imports(fixture!("sorts.txt"));
    let tables = tables(&all);
    let headings: Vec<&str> = tables.iter().map(|(heading, ..)| heading.as_str()).collect();
    assert_eq!(
        headings,
        [
            "Table 1: Memory Needed per Process",
            "Table 2: Elapsed time in Mins/Secs",
            "Table 3: Elapsed Time in Mins/Secs for Large Serial Sorts",
            "Table 4: Test table"
        ]
    );
    let rows: Vec<usize> = tables.iter().map(|(_, _, rows)| rows.len()).collect();
    assert_eq!(rows, [2, 2, 4, 3], "the second line of headings is no row");
    assert_eq!(tables[0].1[4], "Number of Processes Memory Needed Per Process 16");
    assert_eq!(tables[1].1, ["BUFFERS", "BUFFER_SIZE Creation Time 32K", "BUFFER_SIZE Creation Time 64K"]);
    assert_eq!(tables[2].1, ["ASYNC", "AREA_SIZE", "DIRECT_WRITES FALSE", "DIRECT_WRITES TRUE"]);
    assert_eq!(tables[2].2[3], ["TRUE", "2M", "42:00", "40:45"], "a merged cell is that of each of its rows");
    let kilo = 1024.0;
    assert_eq!(cell(&all, [0, 1, 4]), 4096.0 * kilo, "K of memory is 1,024 bytes");
    assert_eq!(cell(&all, [1, 0, 1]), 290.0, "minutes and seconds");
    assert_eq!((cell(&all, [2, 0, 2]), cell(&all, [2, 1, 1])), (2700.0, 2.0 * kilo * kilo));
}

#[test]
fn tables_of_an_authors_own_are_read_before_known_ones_and_have_the_units_of_their_texts() {
    let all = imports(fixture!("sizes.txt"));
    assert_eq!(all.len(), 1);
    let tables = tables(&all);
    let shape: Vec<(usize, usize)> =
        tables.iter().map(|(_, names, rows)| (names.len(), rows.len())).collect();
    assert_eq!(shape, [(3, 2), (3, 3), (3, 3), (6, 2)]);
    let mega = 1_048_576.0;
    assert_eq!((cell(&all, [0, 0, 1]), cell(&all, [0, 1, 2])), (724.0 * mega, 1094.0 * mega));
    assert_eq!((cell(&all, [1, 0, 1]), cell(&all, [1, 1, 2])), (34.0, 140.0 * mega));
    assert_eq!((cell(&all, [1, 2, 1]), cell(&all, [1, 2, 2])), (630.0 * 1024.0, 2.5 * mega));
    assert_eq!((cell(&all, [2, 0, 1]), cell(&all, [2, 2, 2])), (3.7 * 1024.0 * mega, 5.0));
}

#[test]
fn an_authors_own_table_does_not_join_known_ones_that_are_far_apart() {
    let far = "\n".repeat(20);
    let events = "Event\tWaits\tTime(s)\tAvg wait (ms)\t% DB time\tWait Class\nDB CPU\t\t392\t\t73.98\t\n";
    let own = "Name\tSize\tRows\nA\t1 GB\t10\nB\t2 GB\t20\n";
    let types = "Filetype Name\tReads: Data\tReqs per sec\tData per sec\nData File\t6.1G\t17.52\t111.113\n";
    let all = imports(&[events, &far, own, &far, types].concat());
    let sections: Vec<Vec<&str>> =
        all.iter().map(|import| import.report.sheets.iter().map(|sheet| sheet.section).collect()).collect();
    assert_eq!(sections, [vec!["top_events", ""], vec!["io_filetypes"]]);
}

#[test]
fn tables_of_words_and_figures_are_read_without_tabs() {
    let all = imports(fixture!("words.txt"));
    let tables = tables(&all);
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0].1, ["", "2k blksze", "16k blksze"]);
    assert_eq!(tables[0].2[1], ["80k table size", "8.74 secs", "8.31 secs"]);
    assert_eq!(tables[1].2[2], ["Chained rows", "0", "0"]);
    assert_eq!((cell(&all, [0, 0, 1]), cell(&all, [1, 0, 1])), (4.33, 1871.0));
}

#[test]
fn prose_is_no_table() {
    let source = plumb_foreign::Source::of(std::path::Path::new("x"), b"a b\tc\nEvent, Waits and 3 of 4\n");
    let refused =
        plumb_foreign::import(&source, plumb_foreign::READERS, "0").expect_err("refused").to_string();
    assert_eq!(
        refused,
        "x has no report that is known: no line of 2 begins one and no table has known columns; `plumb help import` names the kinds"
    );
}
