//! Cut files, random changes, long files: no panic, no hang, bounded memory.

use crate::fixture;
use plumb_foreign::{READERS, Source, import};
use proptest::prelude::*;
use std::path::Path;

const FIXTURES: [&str; 27] = [
    fixture!("awr_11204.txt"),
    fixture!("awr_11204.html"),
    fixture!("statspack.txt"),
    fixture!("global.html"),
    fixture!("compare.txt"),
    fixture!("slides.txt"),
    fixture!("sorts.txt"),
    fixture!("sizes.txt"),
    fixture!("words.txt"),
    fixture!("dtrace.txt"),
    fixture!("one_line.txt"),
    fixture!("iostat12.txt"),
    fixture!("iostat10.txt"),
    fixture!("iostat.json"),
    fixture!("sar.txt"),
    fixture!("collectl.txt"),
    fixture!("biosnoop.txt"),
    fixture!("iosnoop.txt"),
    fixture!("iosnoop_line.txt"),
    fixture!("pgbench15.txt"),
    fixture!("pgbench10.txt"),
    fixture!("orion.txt"),
    fixture!("calibrate.txt"),
    fixture!("plan.txt"),
    fixture!("plan_tabs.txt"),
    fixture!("trace.txt"),
    fixture!("pg_profile.html"),
];

/// Imports bytes; only that it ends matters.
fn swallow(bytes: &[u8]) -> usize {
    let source = Source::of(Path::new("x"), bytes);
    import(&source, READERS, "0").map_or(0, |imports| imports.len())
}

#[test]
fn a_file_cut_at_any_byte_is_read_as_far_as_it_goes() {
    for fixture in FIXTURES {
        // Every byte of the first lines and of the last, and steps between: the whole takes
        // minutes.
        let end = fixture.len();
        let step = (end / 100).max(1);
        for cut in (0..end.min(200)).chain((200..end).step_by(step)).chain(end.saturating_sub(60)..end) {
            swallow(&fixture.as_bytes()[..cut]);
        }
    }
}

#[test]
fn a_blank_that_is_no_ascii_does_not_hold_the_reader_of_json() {
    for blank in ["\u{a0}", "\u{b}", "\u{85}"] {
        swallow(fixture!("iostat.json").replacen(' ', blank, 3).as_bytes());
        swallow(format!("\"fio version\" : {blank}1, \"jobs\" : [{blank}]").as_bytes());
    }
}

#[test]
fn a_cut_report_keeps_its_head() {
    let text = fixture!("awr_11204.txt");
    let source = Source::of(Path::new("x"), &text.as_bytes()[..text.len() / 2]);
    let import = import(&source, READERS, "0").expect("a report").remove(0);
    assert_eq!(import.record.expect("an interval").header.workload, "DEMO");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes replaced, lines repeated, and pieces of other fixtures put between.
    #[test]
    fn random_changes_end_in_a_report_or_in_one_line(
        which in 0..FIXTURES.len(),
        other in 0..FIXTURES.len(),
        changes in proptest::collection::vec((any::<u32>(), any::<u8>()), 0..60),
        splice in any::<u32>(),
        length in 0usize..4000,
    ) {
        let mut bytes = FIXTURES[which].as_bytes().to_vec();
        for (at, byte) in &changes {
            let at = *at as usize % bytes.len();
            bytes[at] = *byte;
        }
        let at = splice as usize % bytes.len();
        let from = FIXTURES[other].as_bytes();
        let begin = splice as usize % from.len();
        let piece = from[begin..(begin + length).min(from.len())].to_vec();
        bytes.splice(at..at, piece);
        swallow(&bytes);
    }

    #[test]
    fn random_lines_of_rulers_and_tabs_end(text in "([-~ \t.:0-9a-zA-Z<>\n]|DB/Inst:|------|<td>|<table|-> ){0,400}") {
        swallow(format!("WORKLOAD REPOSITORY report for\n{text}").as_bytes());
        swallow(format!("<html><title>awr</title>{text}").as_bytes());
        swallow(text.as_bytes());
    }
}

#[test]
fn forty_megabytes_are_read_in_one_pass() {
    let row =
        "<tr><td>an event of some name</td><td align=\"right\">1,234</td><td>5.6</td><td>&#160;</td></tr>\n";
    let mut page = String::from(
        "<html><title>AWR Report</title><h3>Foreground Wait Events</h3><table><tr><th>Event</th><th>Waits</th><th>Avg wait (ms)</th><th>x</th></tr>",
    );
    page.push_str(&row.repeat((40 << 20) / row.len()));
    assert_eq!(swallow(page.as_bytes()), 1);
    drop(page);
    let line = "an event of some name           1,234     5   12,345      10      0.1    1.0\n";
    let mut text = String::from(
        "WORKLOAD REPOSITORY report for\n\nForeground Wait Events   DB/Inst: X/y\n\nEvent                             Waits -outs   Time (s)    (ms)     /txn   time\n-------------------------- ------------ ----- ---------- ------- -------- ------\n",
    );
    text.push_str(&line.repeat((4 << 20) / line.len()));
    assert_eq!(swallow(text.as_bytes()), 1);
}

#[test]
fn more_cells_than_are_kept_are_refused_in_one_line() {
    let page = format!("<html><title>AWR Report</title><table>{}", "<tr><td>1<td>2".repeat(2_100_000));
    let source = Source::of(Path::new("long.html"), page.as_bytes());
    let refused = import(&source, READERS, "0").expect_err("refused").to_string();
    assert!(refused.starts_with("long.html has more than 4000000 cells"), "{refused}");
}
