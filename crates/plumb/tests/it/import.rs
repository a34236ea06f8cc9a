//! `plumb import`: reports of other programs from a file to a bundle.

use crate::program::{fine, plumb, refused};
use std::fs;

/// A report in text, made up, in the shape of AWR 11.2.0.4.
const TEXT: &str = include_str!("../../../foreign/tests/it/fixtures/awr_11204.txt");
/// The same report as HTML.
const HTML: &str = include_str!("../../../foreign/tests/it/fixtures/awr_11204.html");

#[test]
fn a_report_becomes_a_bundle_that_all_pages_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    fs::write(here.join("b.html"), HTML).expect("a file");
    let page = fine(here, ["import", "a.txt"]);
    assert!(page.contains("db file sequential read"), "{page}");
    let list = fine(here, ["import", "a.txt", "--list"]);
    assert!(list.starts_with("a.txt: ") && list.contains("SECTION"), "{list}");
    let json: serde_json::Value =
        serde_json::from_str(&fine(here, ["import", "a.txt", "b.html", "--json"])).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(2));
    drop(fine(here, ["import", "a.txt", "--bundle", "one"]));
    drop(fine(here, ["import", "b.html", "--bundle", "two"]));
    drop(fine(here, ["report", "one"]));
    assert!(here.join("one/report.html").is_file());
    let lines = fine(here, ["info", "one", "two"]);
    assert_eq!(lines.lines().count(), 3, "a head and a line a report: {lines}");
    let compared = fine(here, ["compare", "one", "two"]);
    assert!(compared.contains("an imported report"), "{compared}");
}

#[test]
fn a_file_that_is_no_report_is_refused_in_one_line_and_the_others_are_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    fs::write(here.join("letter.txt"), "Dear colleague,\nthe database is slow.\n").expect("a file");
    let (code, error) = refused(here, ["import", "letter.txt"]);
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
    assert!(error.contains("letter.txt"), "{error}");
    let (_, error) = refused(here, ["import", "letter.txt", "a.txt", "--json"]);
    assert_eq!(error.lines().count(), 1, "{error}");
    let (_, error) = refused(here, ["import", "missing.txt"]);
    assert!(error.contains("missing.txt") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_report_cut_short_is_said_in_one_line_and_strict_fails() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let cut = &TEXT[..TEXT.find("End of Report").expect("an end")];
    fs::write(here.join("a.txt"), cut).expect("a file");
    let last = cut.trim_end().lines().count();
    let said =
        format!("a.txt has an AWR report that is cut short after line {last}: no `End of Report` ends it");
    let plain = plumb(here, ["import", "a.txt"]);
    assert_eq!((plain.code, plain.stderr.trim_end()), (Some(0), said.as_str()));
    assert!(plain.stdout.contains(&format!("Cut short: after line {last}")), "{}", plain.stdout);
    let (code, error) = refused(here, ["import", "a.txt", "--strict"]);
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
    assert!(error.contains(&said), "{error}");
    fs::write(here.join("b.txt"), TEXT.replace("11.2.0.4.0", "23.4.0.0.0")).expect("a file");
    let untried = plumb(here, ["import", "b.txt"]).stderr;
    assert!(untried.contains("release 23.4.0.0.0") && untried.lines().count() == 1, "{untried}");
}

#[test]
fn what_a_tool_does_not_print_is_blank_in_every_page() {
    const IOSTAT: &str = include_str!("../../../foreign/tests/it/fixtures/iostat12.txt");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("i.txt"), IOSTAT).expect("a file");
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    let page = fine(here, ["import", "i.txt", "--bundle", "tool"]);
    assert!(!page.contains("DB Time") && !page.contains("DB CPU"), "{page}");
    drop(fine(here, ["import", "a.txt", "--bundle", "awr"]));
    let line: serde_json::Value =
        serde_json::from_str(&fine(here, ["info", "tool", "--json"])).expect("JSON");
    for column in ["sessions", "db_cpu", "db_tm", "top_wait"] {
        assert!(line[0][column].is_null(), "{column}: {line}");
    }
    let compared = fine(here, ["compare", "awr", "tool"]);
    assert!(compared.contains("11.2.0.4.0") && !compared.contains("(-100.0)"), "{compared}");
    assert!(!compared.contains("% Steal time"), "{compared}");
}

#[test]
fn a_report_is_diagnosed_from_its_file_and_from_its_bundle() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    // A sixth of the reads in the same time: each is slow.
    let slow = TEXT.replace("617,937", "102,989").replace("900       1", "900       9");
    let slow = slow.replace("900       9   50.0", "900      20   50.0");
    fs::write(here.join("a.txt"), &slow).expect("a file");
    let page = fine(here, ["diagnose", "a.txt"]);
    assert!(page.contains("Diagnosis") && page.contains("R5"), "{page}");
    drop(fine(here, ["import", "a.txt", "--bundle", "one"]));
    let of_bundle = fine(here, ["diagnose", "one", "--json"]);
    assert_eq!(of_bundle, fine(here, ["diagnose", "a.txt", "--json"]));
    let written = fine(here, ["diagnose", "a.txt", "--study", "proof.toml"]);
    assert!(written.contains("plumb study"), "{written}");
    let study = fs::read_to_string(here.join("proof.toml")).expect("a study");
    assert!(study.contains("[[factor]]"), "{study}");
    let (_, error) = refused(here, ["diagnose", "a.txt", "--study", "proof.toml"]);
    assert!(error.contains("proof.toml"), "an existing file is kept: {error}");
    fs::write(here.join("line.txt"), "no report\n").expect("a file");
    let (code, error) = refused(here, ["diagnose", "line.txt"]);
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
}

#[test]
fn reports_over_weeks_are_a_series_in_the_order_of_their_begin() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let later = TEXT.replace("03-May-24", "04-May-24");
    fs::write(here.join("b.txt"), later).expect("a file");
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    let page = fine(here, ["report", "--series", "b.txt", "a.txt"]);
    assert!(page.contains("TOO FEW REPORTS: 2 of 14"), "{page}");
    let place = |date: &str| page.find(date).expect("a report");
    assert!(place("03-May-24") < place("04-May-24"), "{page}");
    drop(fine(here, ["report", "--series", "b.txt", "a.txt", "--html", "series.html"]));
    let drawn = fs::read_to_string(here.join("series.html")).expect("a page");
    assert!(drawn.contains("<svg") && drawn.contains("TOO FEW REPORTS"), "{drawn}");
    let (_, error) = refused(here, ["report", "--series", "a.txt", "--html", "series.html"]);
    assert!(error.contains("series.html"), "an existing file is kept: {error}");
    let json: serde_json::Value =
        serde_json::from_str(&fine(here, ["report", "--series", "b.txt", "a.txt", "--json"])).expect("JSON");
    assert_eq!(json["reports"].as_array().map(Vec::len), Some(2));
    let other = TEXT.replace("DEMO ", "PROD ");
    fs::write(here.join("c.txt"), other).expect("a file");
    let (_, error) = refused(here, ["report", "--series", "a.txt", "c.txt"]);
    assert!(error.contains("of one database"), "{error}");
}

#[test]
fn an_import_is_compared_with_a_run_and_listed_next_to_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    drop(fine(here, ["import", "a.txt", "--bundle", "awr"]));
    drop(plumb(here, ["run", "redo", "--rows", "500", "--bundle", "run"]));
    let lines = fine(here, ["info", "awr", "run"]);
    assert!(lines.contains("\nawr|") && lines.contains("\nrun|"), "{lines}");
    // Events and statistics of one name are figures of both.
    let compared = fine(here, ["compare", "awr", "run"]);
    assert!(compared.contains("log file sync") && compared.contains("redo size"), "{compared}");
}

/// The figures of fio's own JSON, which is read by another reader here.
fn of_fio(json: &serde_json::Value) -> Vec<(String, f64, f64)> {
    let mut found = Vec::new();
    for job in json["jobs"].as_array().expect("jobs") {
        for direction in ["read", "write"] {
            let own = &job[direction];
            let figure = |name: &str| own[name].as_f64().unwrap_or_default();
            if figure("total_ios") > 0.0 {
                let name = format!("{} {direction}", job["jobname"].as_str().unwrap_or_default());
                let mean = own["clat_ns"]["mean"].as_f64().unwrap_or_default() / 1e9;
                found.push((name, figure("iops"), mean));
            }
        }
    }
    found
}

#[test]
fn what_fio_prints_in_each_form_is_imported_as_fio_says_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let jobs =
        "--name=a --rw=randrw --bs=8k --size=2M --name=b --rw=write --bs=64k --size=2M --numjobs=2 --fsync=8";
    for form in ["json", "json+", "normal", "json,normal", "json+,normal"] {
        let mut command = std::process::Command::new("fio");
        command.current_dir(here).args(jobs.split(' ')).args([
            "--output",
            "fio.out",
            "--output-format",
            form,
        ]);
        let Ok(ended) = command.output() else {
            println!("skipped: fio is missing");
            return;
        };
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let text = fs::read_to_string(here.join("fio.out")).expect("a file");
        let imports: serde_json::Value =
            serde_json::from_str(&fine(here, ["import", "fio.out", "--json"])).expect("JSON");
        assert_eq!(imports.as_array().map(Vec::len), Some(1), "{form}");
        let checks = imports[0]["report"]["checks"].as_array().expect("checks");
        let bad: Vec<_> = checks.iter().filter(|check| check["outcome"] == "fails").collect();
        assert!(bad.is_empty(), "{form}: {bad:#?}\n{text}");
        let sheets = imports[0]["report"]["sheets"].as_array().expect("tables");
        let sheet = sheets.iter().find(|sheet| sheet["section"] == "jobs").expect("jobs");
        let rows = sheet["rows"].as_array().expect("rows");
        let has_row = |name: &str| {
            rows.iter().any(|row| {
                let text = |at: usize| row["cells"][at]["raw"].as_str().unwrap_or_default();
                format!("{} {}", text(0), text(1)) == name
            })
        };
        for name in ["a read", "a write", "b write", "b sync"] {
            assert!(has_row(name), "{form}: {name}");
        }
        let Some(begin) = text.find('{').filter(|_| form.starts_with("json")) else { continue };
        let own: serde_json::Value = serde_json::Deserializer::from_str(&text[begin..])
            .into_iter()
            .next()
            .expect("a document")
            .expect("JSON");
        let measures = imports[0]["record"]["measures"].as_array().expect("measures");
        let value = |name: &str| -> Vec<f64> {
            // The second of two jobs of a name has its number.
            let is_named = |text: &str| text.replace(" (2)", "") == name;
            let named = measures.iter().filter(|measure| measure["name"].as_str().is_some_and(is_named));
            named.filter_map(|measure| measure["value"].as_f64()).collect()
        };
        for (name, rate, mean) in of_fio(&own) {
            let near = |all: Vec<f64>, one: f64| all.iter().any(|value| (value - one).abs() <= 1e-6 * one);
            assert!(near(value(&format!("{name} requests")), rate), "{form}: {name} {rate}");
            assert!(near(value(&format!("{name} mean latency")), mean), "{form}: {name} {mean}");
        }
    }
}

#[test]
fn files_are_compared_as_bundles_are() {
    const FIO: &str = "\
fio-3.28
probe: (groupid=0, jobs=1): err= 0: pid=7: Sat Nov 21 20:19:22 2026
  write: IOPS=22.5k, BW=87.9MiB/s (92.2MB/s)(5120MiB/58254msec); 0 zone resets
    clat (usec): min=9, max=123, avg=43.23, stdev=5.65
     issued rwts: total=0,1310720,0,0 short=0,0,0,0 dropped=0,0,0,0
";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    fs::write(here.join("b.txt"), TEXT.replace("DEMO ", "PROD ")).expect("a file");
    let compared = fine(here, ["compare", "a.txt", "b.txt"]);
    assert!(compared.contains("Workload: DEMO and PROD"), "{compared}");
    let page = fine(here, ["import", "a.txt", "b.txt"]);
    assert_eq!(page.matches("End of Report").count(), 2, "{page}");
    assert!(page.contains("Nothing is kept"), "{page}");
    assert_eq!(fs::read_dir(here).expect("a directory").count(), 2, "nothing is kept");
    fs::write(here.join("one.txt"), FIO).expect("a file");
    let failed = FIO.replace("err= 0", "err= 5 (func=io_u error, error=Input/output error)");
    fs::write(here.join("two.txt"), failed).expect("a file");
    let compared = fine(here, ["compare", "one.txt", "two.txt"]);
    assert!(compared.contains("2nd is of a run that failed: probe: error 5"), "{compared}");
    fs::write(here.join("both.txt"), format!("{FIO}\n{FIO}")).expect("a file");
    let compared = fine(here, ["compare", "both.txt"]);
    assert!(compared.contains("both.txt:1") && compared.contains("both.txt:2"), "{compared}");
    assert_eq!(fine(here, ["compare", "one.txt", "both.txt:2"]).lines().count(), compared.lines().count());
    let (code, said) = refused(here, ["compare", "one.txt", "both.txt"]);
    assert!(code != 0 && said.contains("has 2 reports or periods (fio text, fio text)"), "{said}");
    let (_, said) = refused(here, ["compare", "one.txt", "both.txt:3"]);
    assert!(said.contains("has no report 3; it has 2"), "{said}");
}
