//! The page is the report: its figures with their texts, and its sections alone as in the whole.

use crate::{fixture, imports, only};
use plumb_foreign::Import;
use plumb_foreign::figure::sheet::Sheet;
use plumb_report::text;
use std::collections::BTreeSet;

const WHOLE: [&str; 5] = [
    fixture!("awr_11204.txt"),
    fixture!("awr_11204.html"),
    fixture!("statspack.txt"),
    fixture!("global.html"),
    fixture!("compare.txt"),
];

fn known(import: &Import) -> impl Iterator<Item = &Sheet> {
    import.report.sheets.iter().filter(|sheet| !sheet.section.is_empty())
}

/// The figures of known sections that are not on the page with their text.
fn missing_on_page(import: &Import) -> Vec<String> {
    let page = text::render(&import.page(Vec::new()));
    let words: BTreeSet<&str> = page.split_whitespace().collect();
    let cells = known(import).flat_map(|sheet| sheet.rows.iter().flat_map(|row| &row.cells));
    let figures = cells.filter(|cell| cell.reading.value().is_some()).map(|cell| cell.raw.clone());
    figures.filter(|raw| !raw.split_whitespace().all(|word| words.contains(word))).collect()
}

fn rows(sheet: &Sheet) -> Vec<Vec<&str>> {
    sheet.rows.iter().map(|row| row.cells.iter().map(|cell| cell.raw.as_str()).collect()).collect()
}

/// The sections of a text that, cut out with their headings, do not give the rows of the whole.
fn unlike_alone(whole: &str) -> Vec<String> {
    let lines: Vec<&str> = whole.lines().collect();
    let mut unlike = Vec::new();
    for sheet in known(&only(whole)).filter(|sheet| !sheet.heading.is_empty() && sheet.rows.len() > 1) {
        let last = sheet.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.line).max().unwrap_or(0);
        let cut = lines[sheet.line as usize - 1..last as usize].join("\n");
        let source = plumb_foreign::Source::of(std::path::Path::new("cut"), cut.as_bytes());
        let alone = plumb_foreign::import(&source, plumb_foreign::READERS, "0").unwrap_or_default();
        let mut found = alone.iter().flat_map(known).filter(|own| own.section == sheet.section);
        // The table of files puts the tablespaces of 11.2.0.4 right, and it is not there.
        let is_moved = sheet.notes.iter().any(|note| note.text.starts_with("printed one column off"));
        if !is_moved && !found.any(|own| rows(own) == rows(sheet)) {
            unlike.push(format!("{} of line {}", sheet.heading, sheet.line));
        }
    }
    unlike
}

#[test]
fn every_figure_of_a_known_section_stands_on_the_page_with_its_text() {
    for whole in WHOLE {
        for import in imports(whole) {
            assert_eq!(missing_on_page(&import), Vec::<String>::new(), "{}", import.report.kind);
        }
    }
}

#[test]
fn a_section_that_is_cut_out_alone_has_the_rows_of_the_whole() {
    for whole in [fixture!("awr_11204.txt"), fixture!("statspack.txt")] {
        assert_eq!(unlike_alone(whole), Vec::<String>::new());
    }
}

#[test]
fn tables_of_a_page_that_are_cut_out_alone_have_the_rows_of_the_whole() {
    let whole = fixture!("awr_11204.html");
    let import = only(whole);
    let mut cut = 0;
    for piece in whole.split_inclusive("</table>") {
        let body = piece.rsplit("<body").next().unwrap_or(piece);
        let source = plumb_foreign::Source::of(std::path::Path::new("mail.html"), body.as_bytes());
        let Ok(alone) = plumb_foreign::import(&source, plumb_foreign::READERS, "0") else { continue };
        for sheet in alone.iter().flat_map(known) {
            let same = known(&import).any(|own| own.section == sheet.section && rows(own) == rows(sheet));
            // The table of files puts the tablespaces right, and it is not there.
            assert!(same || sheet.section == "tablespaces", "{}", sheet.heading);
            cut += 1;
        }
    }
    assert!(cut > 10, "{cut} tables");
}

#[test]
fn a_derived_column_is_marked_and_a_printed_one_keeps_its_text() {
    let page = text::render(&only(fixture!("awr_11204.txt")).page(Vec::new()));
    assert!(page.contains("columns with + follow from the others"), "{page}");
    assert!(page.contains("+ size of"), "{page}");
    // The megabytes of an idle function stay what they are.
    let of = |name: &str| page.lines().any(|line| line.starts_with(name) && line.contains("0M"));
    assert!(of("DBWR") || of("LGWR"), "{page}");
}

/// Paragraphs with rulers and indents of their own, as the text of an AWR report may have them.
const ADVICE: &str = "
          ADDM Report for Task 'ADDM:7_1_11'
          ----------------------------------

Summary of Findings
-------------------
   Description              Active Sessions      Recommendations
                            Percent of Activity
   -----------------------  -------------------  ---------------
1  Writes of the redo log   .39 | 51.22          2

~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~

Finding 1: Writes of the redo log
Impact is .39 active sessions, 51.22% of total activity.
--------------------------------------------------------
Sessions waited long for the log, because each of them commits a row at a time.

   Recommendation 1: Application Analysis
   Estimated benefit is .39 active sessions, 51.22% of total activity.
   -------------------------------------------------------------------
   Action
      Commit several rows at once.

";

#[test]
fn the_report_of_an_advisor_within_another_one_stands_line_by_line() {
    const NEXT: &str = "Global Cache Transfer Stats ";
    let whole = fixture!("awr_11204.txt");
    let (before, after) = whole.split_at(whole.find(NEXT).expect("the section"));
    let (alone, both) = (only(whole), only(&format!("{before}{ADVICE}{after}")));
    let (checks, tables) = (&alone.imported.checks, &alone.report.sheets);
    assert_eq!(checks.len(), both.imported.checks.len());
    assert_eq!(both.report.sheets.len(), tables.len() + 1, "one section more");
    let page = text::render(&both.page(Vec::new()));
    for line in ADVICE.lines().map(str::trim).filter(|line| line.contains(char::is_alphabetic)) {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(!page.lines().any(|line| line.starts_with("~~~") && line.contains("as printed")), "{page}");
}

#[test]
fn remarks_stand_once_and_a_heading_ends_before_those_of_columns() {
    let text = "\
Top 5 Timed Events                                         Avg %Total
~~~~~~~~~~~~~~~~~~                                        wait   Call
Event                                 Waits    Time (s)   (ms)   Time Wait Class
------------------------------ ------------ ----------- ------ ------ ----------
db file sequential read             259,800         714      3   48.5 User I/O
CPU time                                            115           7.8

Instance Activity Stats  DB/Inst: DEMO/demo1  Snaps: 10-11
-> Ordered by the name
   and nothing else

Statistic                                     Total     per Second     per Trans
-------------------------------- ------------------ -------------- -------------
user commits                                  3,600            1.0           1.0
user calls                                    7,200            2.0           2.0
";
    let pages: Vec<String> =
        imports(text).iter().map(|import| text::render(&import.page(Vec::new()))).collect();
    let has = |line: &str| pages.iter().any(|page| page.lines().any(|own| own.trim_end() == line));
    assert!(has("-> Ordered by the name and nothing else"), "{pages:?}");
    assert!(
        pages
            .iter()
            .any(|page| page.contains("Top 5 Timed Events                                as printed")
                || page.lines().any(|line| line.starts_with("Top 5 Timed Events") && !line.contains("Avg")))
    );
    assert!(!pages.concat().contains("-> ->"));
}

#[test]
fn the_mean_of_a_device_stands_in_none_of_its_rows() {
    let text = "\
Linux 6.1.0 (db1) \t05/03/24 \t_x86_64_\t(4 CPU)

Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn
sda               5.00        40.00         0.00       4000          0

Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn
sda              10.00        80.00         0.00        800          0

Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn
sda              30.00       240.00         0.00       2400          0
";
    let page = text::render(&only(text).page(Vec::new()));
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("sda ")).collect();
    assert!(
        rows.iter().any(|row| row.split_whitespace().eq(["sda", "10.00", "80.00", "0.00", "800", "0"])),
        "{page}"
    );
    let mean = page.lines().find(|line| line.starts_with("sda: requests ")).expect("the mean");
    assert!(mean.contains("20.00 /s"), "{mean}");
    // Without stamps there is no column for them, and a fact without a line has none.
    assert!(!page.lines().any(|line| line.starts_with("time ") && line.contains("Device")), "{page}");
    assert!(!page.lines().any(|line| line.starts_with("Samples") && line.ends_with(" 0")), "{page}");
}
