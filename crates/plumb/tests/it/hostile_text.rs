//! Texts from outside on every page, as text and as HTML: markup, quotes, control characters.
//!
//! Each text of a record or a calibration that may be any text is replaced by a hostile one, field
//! by field; fields whose words are the program's own refuse it. Studies and claims are files of
//! their own with such texts.

use crate::program::{fine, plumb};
use plumb_calibrate::Calibration;
use plumb_record::{
    Record, Snoop, SnoopAmplification, SnoopBuffer, SnoopCalls, SnoopMap, SnoopPart, SnoopPattern,
    SnoopPlace, SnoopRequests,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A tag that ends a script, an attribute that ends, escape sequences of terminals.
const HOSTILE: &str = "x</script><script>fail()</script>\"'><b onload=fail()>&\u{1b}[31m\u{7}\u{9b}2J";

/// Collects the names of the fields that hold a text, or a list of texts.
fn fields(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => drop(found.insert(name.to_string())),
        Value::Array(all) => all.iter().for_each(|value| fields(value, name, found)),
        Value::Object(all) => all.iter().for_each(|(name, value)| fields(value, name, found)),
        _ => {}
    }
}

/// Appends the hostile text to each text of a field.
fn spoil(value: &mut Value, name: &str, field: &str) {
    match value {
        Value::String(text) if name == field => text.push_str(HOSTILE),
        Value::Array(all) => all.iter_mut().for_each(|value| spoil(value, name, field)),
        Value::Object(all) => all.iter_mut().for_each(|(name, value)| spoil(value, name, field)),
        _ => {}
    }
}

/// Spoils every field that the type accepts with any text. Returns the document and their number.
fn hostile(mut document: Value, is_accepted: impl Fn(&str) -> bool) -> (Value, usize) {
    let mut names = BTreeSet::new();
    fields(&document, "", &mut names);
    let mut count = 0;
    for field in &names {
        let mut changed = document.clone();
        spoil(&mut changed, "", field);
        if is_accepted(&changed.to_string()) {
            (document, count) = (changed, count + 1);
        }
    }
    (document, count)
}

/// Checks what a command printed, or a file that it wrote.
fn sound(what: &str, text: &str) {
    let is_obeyed = |letter: char| letter.is_control() && letter != '\n';
    let breaches = ["<script>fail", "<b onload"].into_iter().filter(|_| text.contains("<html"));
    let mut places = breaches.filter_map(|breach| text.find(breach)).chain(text.find(is_obeyed));
    if let Some(at) = places.next() {
        let before: String = text[..at].chars().rev().take(80).collect();
        let before: String = before.chars().rev().collect();
        let behind: String = text[at..].chars().take(80).collect();
        panic!("{what}: {before:?} and then {behind:?}");
    }
}

/// Runs a command, whatever its verdict, and checks its output.
fn runs(here: &Path, arguments: &[&str]) {
    let ended = plumb(here, arguments);
    assert!(ended.code.is_some_and(|code| !matches!(code, 1 | 2)), "{arguments:?}: {}", ended.stderr);
    sound(&arguments.join(" "), &ended.stdout);
    sound(&arguments.join(" "), &ended.stderr);
}

fn reads(here: &Path, file: &str) {
    sound(file, &fs::read_to_string(here.join(file)).unwrap_or_else(|error| panic!("{file}: {error}")));
}

/// Returns a trace with one row of each kind.
fn snoop() -> Snoop {
    let map =
        SnoopMap { cells: vec![vec![1, 2], vec![3, 4]], time_step_ns: 1, row_step: 1, ..SnoopMap::default() };
    Snoop {
        cannot_see: vec![String::new()],
        buffers: vec![SnoopBuffer { events: 1, ..SnoopBuffer::default() }],
        calls: vec![SnoopCalls { calls: 1, ..SnoopCalls::default() }],
        requests: vec![SnoopRequests { requests: 1, ..SnoopRequests::default() }],
        others: vec![SnoopRequests { requests: 1, ..SnoopRequests::default() }],
        places: vec![SnoopPlace { requests: 2, placed: 1, ..SnoopPlace::default() }],
        patterns: vec![SnoopPattern { requests: 1, of: 2, ..SnoopPattern::default() }],
        amplification: vec![SnoopAmplification {
            parts: vec![SnoopPart::default()],
            ..SnoopAmplification::default()
        }],
        maps: vec![map],
        ..Snoop::default()
    }
}

#[test]
fn texts_of_a_record_stay_text_on_the_pages_of_runs_traces_comparisons_and_diagnoses() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let printed = fine(here, ["run", "redo", "--rows", "500", "--json"]);
    // The answer is no part of a record.
    let json = Record::from_json(&printed).and_then(|record| record.to_json()).expect("a record");
    let record: Value = serde_json::from_str(&json).expect("a record");
    let is_record = |text: &str| Record::from_json(text).is_ok();
    let (spoiled, count) = hostile(record, is_record);
    assert!(count > 30, "{count} fields");
    let mut traced = Record::from_json(&json).expect("a record");
    traced.snoop = Some(snoop());
    let of_trace = serde_json::from_str(&traced.to_json().expect("JSON")).expect("JSON");
    let (of_trace, more) = hostile(of_trace, is_record);
    assert!(more > count + 8, "{more} fields");
    for (name, value) in [("run", &spoiled), ("again", &spoiled), ("trace", &of_trace)] {
        fs::create_dir(here.join(name)).expect("a directory");
        fs::write(here.join(name).join("record.json"), value.to_string()).expect("a record");
        runs(here, &["report", name]);
        ["report.txt", "report.html"].iter().for_each(|file| reads(here, &format!("{name}/{file}")));
        runs(here, &["diagnose", name]);
    }
    runs(here, &["compare", "run", "again", "--html", "compare.html"]);
    reads(here, "compare.html");
    runs(here, &["info", "run", "trace"]);
}

#[test]
fn texts_of_other_programs_stay_text_on_the_pages_of_imports_and_series() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    // Names of a host, events, files and parameters; a heading; a line that no table takes.
    let awr = include_str!("../../../foreign/tests/it/fixtures/awr_11204.html");
    let markup = HOSTILE.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let spoiled = awr
        .replace("dbhost1.example.com", &format!("dbhost1{markup}"))
        .replace("db file sequential read", &format!("db file sequential read{markup}"))
        .replace("users01.dbf", &format!("users01{markup}.dbf"))
        .replace("filesystemio_options", &format!("filesystemio_options{markup}"))
        .replace("SGA Memory Summary", &format!("SGA Memory{markup}"))
        .replace("900.0", "990.0");
    assert!(spoiled.matches("fail()").count() > 8);
    fs::write(here.join("awr<b>.html"), &spoiled).expect("a file");
    let text = include_str!("../../../foreign/tests/it/fixtures/awr_11204.txt");
    let text = text.replace("log file sync ", &format!("{:.14} ", HOSTILE.trim_start_matches('x')));
    fs::write(here.join("awr.txt"), format!("{text}\n{HOSTILE} 1 2 3\n")).expect("a file");
    for (number, file) in ["awr<b>.html", "awr.txt"].into_iter().enumerate() {
        let bundle = format!("bundle{number}");
        runs(here, &["import", file, "--bundle", &bundle]);
        ["report.txt", "report.html"].iter().for_each(|file| reads(here, &format!("{bundle}/{file}")));
        runs(here, &["import", file, "--list"]);
        runs(here, &["diagnose", file]);
        let page = format!("series{number}.html");
        runs(here, &["report", "--series", file, file, "--html", &page]);
        reads(here, &page);
    }
}

#[test]
fn texts_of_claims_studies_and_calibrations_stay_text() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let here = directory.path();
    let quoted = HOSTILE.replace('"', "\\\"").replace('\u{1b}', "\\u001b").replace('\u{7}', "\\u0007");
    let quoted = quoted.replace('\u{9b}', "\\u009b");
    let claim = format!(
        "statement = \"{quoted}\"\n[source]\ntitle = \"{quoted}\"\nauthor = \"{quoted}\"\ndate = \"2026\"\n\
         place = \"{quoted}\"\n[figures]\na = {{ text = \"2 s\" }}\nb = {{ text = \"1 s\" }}\nc = {{ text = \"9%\" }}\n\
         [[relation]]\nrule = \"faster\"\nfrom = \"a\"\nto = \"b\"\npercent = \"c\"\n"
    );
    fs::write(here.join("claim.toml"), claim).expect("a file");
    runs(here, &["audit", "claim.toml", "--html", "audit.html"]);
    reads(here, "audit.html");
    // A level of a factor refuses control characters.
    let marks: String = HOSTILE.chars().filter(|letter| !letter.is_control() && *letter != '\'').collect();
    let [one, two] = ["true", "echo"].map(|program| format!("{program} '{marks}'"));
    runs(here, &["compare-commands", &one, &two, "--blocks", "1", "--bundle", "study"]);
    ["report.txt", "report.html"].iter().for_each(|file| reads(here, &format!("study/{file}")));
    runs(here, &["report", "study", "--format", "markdown"]);
    drop(plumb(
        here,
        ["calibrate", "--file-size", "16M", "--duration", "1ms", "--yes", "--bundle", "device"],
    ));
    let file = here.join("device/calibration.json");
    let calibration = fs::read_to_string(&file).expect("a calibration");
    let value = serde_json::from_str(&calibration).expect("JSON");
    let (spoiled, count) = hostile(value, |text| Calibration::from_json(text).is_ok());
    assert!(count > 5, "{count} fields");
    fs::write(&file, spoiled.to_string()).expect("a calibration");
    runs(here, &["report", "device"]);
    ["report.txt", "report.html"].iter().for_each(|file| reads(here, &format!("device/{file}")));
}
