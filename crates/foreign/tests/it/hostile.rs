//! Cut files, random changes, long files: no panic, no hang, bounded memory.

use crate::{fixture, imports, only, with};
use plumb_foreign::{READERS, Source, import};
use plumb_record::Consistent;
use proptest::prelude::*;
use std::path::Path;

const FIXTURES: [&str; 25] = [
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

/// A whole report of fio with the bins of its histogram.
const FIO: &str = r#"{
  "fio version" : "fio-3.33",
  "time" : "Fri May  3 10:00:00 2024",
  "jobs" : [
    {
      "jobname" : "a",
      "job options" : { "rw" : "randread", "bs" : "8k" },
      "read" : {
        "io_bytes" : 4915200, "io_kbytes" : 4800, "bw" : 480, "iops" : 60.0, "runtime" : 10000,
        "total_ios" : 600, "short_ios" : 0,
        "clat_ns" : { "min" : 1000, "max" : 9000, "mean" : 4000.0, "N" : 600,
          "bins" : { "1000" : 16, "4000" : 500, "9000" : 84 } }
      }
    }
  ]
}
"#;

#[test]
fn a_file_cut_short_is_called_so_and_its_last_figures_are_not_blamed() {
    let cut_after = |text: &str| only(text).report.cut.map(|cut| cut.line);
    let whole = [
        fixture!("awr_11204.txt"),
        fixture!("awr_11204.html"),
        fixture!("statspack.txt"),
        fixture!("pg_profile.html"),
        fixture!("iostat.json"),
        FIO,
    ];
    for text in whole {
        assert_eq!(cut_after(text), None, "{}", &text[..40]);
    }
    let until = |text: &str, mark: &str| text[..text.find(mark).expect("a mark")].to_string();
    for (text, mark) in [
        (fixture!("awr_11204.txt"), "End of Report"),
        (fixture!("awr_11204.html"), "End of Report"),
        (fixture!("pg_profile.html"), "\"settings\": ["),
        (FIO, ", \"9000\" : 84"),
    ] {
        let cut = until(text, mark);
        let written = cut.lines().collect::<Vec<_>>();
        let last = written.iter().rposition(|line| !line.trim().is_empty()).expect("a line") + 1;
        assert_eq!(cut_after(&cut), Some(last as u32), "{mark}");
        let [checks, of_whole] = [cut.as_str(), text].map(|text| only(text).report.checks);
        assert_eq!(with(&checks, Consistent::Fails), with(&of_whole, Consistent::Fails), "{mark}");
    }
}

#[test]
fn reports_of_text_and_of_html_in_one_file_are_all_read() {
    let [text, page] = [fixture!("awr_11204.txt"), fixture!("awr_11204.html")];
    let page_cut = &page[..page.find("</body>").expect("an end")];
    for (parts, kinds) in [
        (vec![text, page], vec!["AWR report", "AWR page"]),
        (vec![page, text], vec!["AWR page", "AWR report"]),
        (vec![page_cut, "\n", text], vec!["AWR page", "AWR report"]),
        (vec![text, page, text, page], vec!["AWR report", "AWR page", "AWR report", "AWR page"]),
    ] {
        let all = imports(&parts.concat());
        let found: Vec<&str> = all.iter().map(|import| import.report.kind.as_str()).collect();
        assert_eq!(found, kinds);
        for import in &all {
            let own = only(if import.report.kind == "AWR page" { page } else { text });
            assert_eq!(import.report.checks.len(), own.report.checks.len(), "{kinds:?}");
        }
    }
}

#[test]
fn a_release_without_a_sample_is_untried() {
    let untried = |release: &str| {
        plumb_foreign::awr::untried(&only(&fixture!("awr_11204.txt").replace("11.2.0.4.0", release)).report)
    };
    assert_eq!(untried("11.2.0.4.0"), None);
    assert_eq!(untried("10.2.0.5.0").as_deref(), Some("release 10.2.0.5.0"));
    assert_eq!(untried("23.4.0.24 ").as_deref(), Some("release 23.4.0.24"));
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
fn megabytes_are_read_in_one_pass() {
    let row =
        "<tr><td>an event of some name</td><td align=\"right\">1,234</td><td>5.6</td><td>&#160;</td></tr>\n";
    let mut page = String::from(
        "<html><title>AWR Report</title><h3>Foreground Wait Events</h3><table><tr><th>Event</th><th>Waits</th><th>Avg wait (ms)</th><th>x</th></tr>",
    );
    page.push_str(&row.repeat((8 << 20) / row.len()));
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
    let rows = format!("<tr>{}", "<td>1".repeat(50)).repeat(80_001);
    let page = format!("<html><title>AWR Report</title><table>{rows}");
    let source = Source::of(Path::new("long.html"), page.as_bytes());
    let refused = import(&source, READERS, "0").expect_err("refused").to_string();
    assert!(refused.starts_with("long.html has more than 4000000 cells"), "{refused}");
}

#[test]
fn more_lines_than_are_kept_are_refused_in_one_line() {
    let source = Source::of(Path::new("long.txt"), "a 1,25 2,50\n".repeat(1_000_001).as_bytes());
    let refused = import(&source, READERS, "0").expect_err("refused").to_string();
    assert_eq!(refused, "long.txt has more than 1000000 lines; cut the file into single reports");
    let shared = plumb_foreign::share::copy(&source, READERS, &mut plumb_share::Tokens::new([]));
    assert_eq!(shared.expect_err("refused").to_string(), refused);
}

#[test]
fn more_reports_or_tables_than_are_kept_are_refused_in_one_line() {
    let refused = |text: &str| {
        let source = Source::of(Path::new("x"), text.as_bytes());
        import(&source, READERS, "0").expect_err("refused").to_string()
    };
    let many = "WORKLOAD REPOSITORY report for\n\nName  Value\n----- -----\na         1\n\n".repeat(1001);
    assert_eq!(refused(&many), "x has more than 1000 reports; cut the file into single reports");
    let tables: String = (0..20_001)
        .map(|at| format!("Section {at}  DB/Inst: A/a\nName  Value\n----- -----\na         1\n\n"))
        .collect();
    let text = format!("WORKLOAD REPOSITORY report for\n\n{tables}End of Report\n");
    assert_eq!(refused(&text), "x has more than 20000 tables; cut the file into single reports");
}

#[test]
fn jobs_by_the_ten_thousand_keep_their_own_percentiles() {
    let job = |at: usize| {
        format!(
            "{{\"jobname\": \"j\", \"error\": 0,\n\"read\": {{\"io_bytes\": 4096000, \"bw\": 400, \"iops\": 100.0, \
             \"runtime\": 10000, \"total_ios\": 1000, \"clat_ns\": {{\"min\": 1, \"max\": 90000, \"mean\": 5.0, \
             \"percentile\": {{\"99.000000\": {}}}}}}}}}",
            10_000 + at
        )
    };
    let jobs: Vec<String> = (0..10_000).map(job).collect();
    let text = format!("{{\n\"fio version\": \"fio-3.33\",\n\"jobs\": [{}]}}\n", jobs.join(","));
    let import = only(&text);
    let of =
        |name: &str| import.imported.figures.iter().find(|figure| figure.name == name).map(|own| own.value);
    assert_eq!(of("all read requests"), Some(1_000_000.0));
    let last = of("j (10000) read p99").expect("the last job");
    assert!((last - 19.999e-6).abs() < 1e-12, "{last}");
}
