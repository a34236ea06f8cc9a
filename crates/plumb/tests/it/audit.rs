//! Published claims: those of the program, files and directories of them, and bundles behind them.

use crate::program::{fine, names, plumb, refused};
use plumb_study::definition::catalog;
use std::fs;
use std::path::Path;

const HEAD: &str =
    "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n";

/// Writes a claim that names a study and a bundle of it.
fn claim(here: &Path, name: &str, experiment: &str) {
    fs::write(here.join(name), format!("{HEAD}[experiment]\n{experiment}\n")).expect("a file");
}

#[test]
fn all_claims_of_the_program_are_audited_and_the_worst_decides_the_exit_code() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let all = plumb(directory.path(), ["audit"]);
    assert_eq!(all.code, Some(6), "{}", all.stderr);
    let one = plumb(directory.path(), ["audit", "block-size"]);
    assert_eq!(one.code, Some(3));
    assert!(one.stdout.contains("critic's slip") && one.stdout.contains("39,696"), "{}", one.stdout);
    let json = plumb(directory.path(), ["audit", "slow-reads", "--json"]);
    assert_eq!(json.code, Some(6));
    assert!(json.stdout.contains("\"verdict\": \"IMPOSSIBLE\""), "{}", json.stdout);
    let html = plumb(directory.path(), ["audit", "slow-reads", "--html", "page.html"]);
    assert_eq!(html.code, Some(6));
    assert_eq!(names(directory.path()), ["page.html"]);
}

/// A shipped claim names a shipped study that has the claim.
#[test]
fn each_claim_names_a_study_that_there_is() {
    for claim in plumb_audit::catalog::all().expect("claims") {
        let Some(experiment) = claim.experiment else { continue };
        let (_, text) = catalog::text(&experiment.study).unwrap_or_else(|| panic!("{}", experiment.study));
        let name = experiment.claim.or(experiment.contrary).expect("one of them");
        assert!(text.contains(&format!("[[claim]]\nname = \"{name}\"")), "{}: {name}", experiment.study);
    }
}

#[test]
fn a_claim_with_a_sound_bundle_passes_and_one_changed_byte_makes_it_invalid() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let study = ["compare-commands", "true", "sleep 0.2", "--blocks", "8", "--bundle", "b"];
    fine(here, study);
    let study = fs::read_to_string(here.join("b/study.toml")).expect("a study");
    let word = |key: &str| {
        let line = study.lines().rfind(|line| line.starts_with(&format!("{key} = "))).expect("a line");
        line.split('"').nth(1).expect("a text").to_string()
    };
    let name = study.lines().find(|line| line.starts_with("name = ")).expect("a name");
    let name = name.split('"').nth(1).expect("a text").to_string();
    let claims = study.split("[[claim]]").nth(1).expect("a claim");
    let of = claims.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name").trim_matches('"');
    let experiment = format!("study = \"{name}\"\nclaim = \"{of}\"\nbundle = \"b\"");
    claim(here, "same.toml", &experiment);
    claim(here, "contrary.toml", &experiment.replace("\nclaim", "\ncontrary"));
    claim(here, "other.toml", &experiment.replace(&format!("\"{of}\""), "\"none\""));
    let same = plumb(here, ["audit", "same.toml"]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.contains("b verifies (hash"), "{}", same.stdout);
    assert_eq!(plumb(here, ["audit", "contrary.toml"]).code, Some(7));
    assert_eq!(plumb(here, ["audit", "other.toml"]).code, Some(5));
    // The exit code of a directory is that of its worst claim.
    fs::create_dir(here.join("claims")).expect("a directory");
    ["same.toml", "contrary.toml"].iter().for_each(|file| {
        let text = fs::read_to_string(here.join(file)).expect("a claim").replace("\"b\"", "\"../b\"");
        fs::write(here.join("claims").join(file), text).expect("a file");
    });
    assert_eq!(plumb(here, ["audit", "claims"]).code, Some(7));
    let report = here.join("b/report.txt");
    let text = fs::read_to_string(&report).expect("a report").replacen('A', "B", 1);
    fs::write(&report, text).expect("a file");
    let broken = plumb(here, ["audit", "same.toml"]);
    assert_eq!(broken.code, Some(5), "{}", broken.stdout);
    assert!(broken.stdout.contains("report.txt"), "{}", broken.stdout);
    let _ = word;
}

#[test]
fn hostile_files_are_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("long.toml"), "#".repeat(2 << 20)).expect("a file");
    fs::write(here.join("binary.toml"), [0xFF, 0xFE, 0]).expect("a file");
    fs::write(here.join("deep.toml"), format!("a = {}", "[".repeat(100_000))).expect("a file");
    fs::write(here.join("escape.toml"), "statement = \"\u{1b}[2J\"\n").expect("a file");
    fs::create_dir(here.join("empty")).expect("a directory");
    for file in ["long.toml", "binary.toml", "deep.toml", "escape.toml", "empty"] {
        let (code, line) = refused(here, ["audit", file]);
        assert!([1, 2].contains(&code), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}
