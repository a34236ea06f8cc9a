//! Study files in the vocabulary of a server.

use crate::server::{installed, place};
use plumb_postgres::Postgres;
use plumb_study::definition::{Study, catalog, parse};
use plumb_study::targets::command::Commands;
use plumb_study::vocabulary::{Assignment, Kinds, Seen, TakesEffect};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const KINDS: &Kinds = &[&Postgres, &Commands];

fn text_of(name: &str) -> String {
    let (_, text) = catalog::text(name).expect("it comes with the program");
    format!("target = \"postgres\"\n{text}")
}

fn parsed(text: &str) -> Result<Study, String> {
    parse("made-up.toml", text, KINDS).map_err(|error| error.to_string())
}

#[test]
fn shipped_studies_of_a_server_are_in_its_vocabulary() {
    let ours = catalog::FILES.iter().filter(|(file, _)| file.starts_with("pg-"));
    let studies: Vec<Study> = ours.map(|(_, text)| parsed(text).expect("well formed")).collect();
    assert!(studies.len() >= 7);
    for study in &studies {
        let kept = parse("kept.toml", &study.to_toml(), KINDS).expect("its own text");
        assert_eq!(kept.hash(), study.hash(), "{}", study.name);
    }
}

#[test]
fn a_table_of_the_target_replaces_keys_of_the_file_and_others_ignore_it() {
    let study = parsed(&text_of("sort-area")).expect("mapped");
    let area = &study.factors[0];
    assert_eq!((area.name.as_str(), area.levels[0].label.as_str()), ("area", "1MB"));
    assert!(study.all_settings().all(|set| !set.name.starts_with("sort_")), "{:?}", study.settings);
    assert!(!study.to_toml().contains("[postgres"), "what is kept is the result");

    let command = "target = \"command\"\nname = \"x\"\ntitle = \"x\"\nquestion = \"x\"\nblocks = 5\n[command]\nrun = \"true \
                   {a}\"\n[[factor]]\nname = \"a\"\nlevels = [\"1\", \"2\"]\n[[claim]]\nname = \"c\"\ntext = \"x\"\nfactor = \
                   \"a\"\nfrom = \"1\"\nto = \"2\"\nexpect = \"differs\"\n";
    let plain = parsed(command).expect("a command");
    let with_table = parsed(&format!("{command}[postgres]\nrows = \"1M\"\n")).expect("the table is ignored");
    assert_eq!(plain.hash(), with_table.hash());
    let error = parsed(&format!("postgres = 1\n{command}")).expect_err("no table");
    assert!(error.contains("[postgres] is a table of keys that replace those of the file"), "{error}");
}

#[test]
fn commits_on_two_places_are_compared_on_a_server_too() {
    let study = parsed(&text_of("storage-commits").replace("@1", "/a").replace("@2", "/b")).expect("mapped");
    let path = study.vocabulary.setting("path", "/a", "here").expect("a place").0;
    assert_eq!(
        (path.takes_effect, path.receipt, path.about_io),
        (TakesEffect::Creation, Seen::Outside, true)
    );
    let named: Vec<&str> = study.all_settings().map(|set| set.value.as_str()).collect();
    assert_eq!((named, study.claims.len()), (vec!["/a", "/b"], 1));
    assert!(study.vocabulary.setting("path", " ", "here").is_err());
}

#[test]
fn what_cannot_be_mapped_is_refused_in_one_line() {
    if installed().is_none() {
        return;
    }
    let error = parsed(&text_of("sort-write-buffers")).expect_err("the engine's settings");
    assert!(
        error.contains("PostgreSQL ") && error.contains(" has no such setting; a table [postgres]"),
        "{error}"
    );
    assert!(!error.contains('\n'));
    let tried = text_of("sort-area").replace("max_parallel_maintenance_workers = 0", "huge_pages = \"try\"");
    let error = parsed(&tried).expect_err("no treatment");
    assert!(error.contains("huge_pages = try falls back without a word"), "{error}");
}

#[test]
fn settings_say_when_they_take_effect_and_which_evidence_there_can_be() {
    let study = parsed(&text_of("sort-area")).expect("well formed");
    let facts = |name: &str, value: &str| study.vocabulary.setting(name, value, "here").expect("known").0;
    assert_eq!(facts("data_checksums", "on").takes_effect, TakesEffect::Creation);
    assert_eq!(facts("shared_buffers", "1GB").takes_effect, TakesEffect::Start);
    assert_eq!(facts("maintenance_work_mem", "1GB").takes_effect, TakesEffect::Session);
    assert_eq!(facts("server", "/usr/lib/postgresql/15/bin").takes_effect, TakesEffect::Build);
    assert_eq!(facts("wal_buffers", "1MB").receipt, Seen::Inside);
    assert_eq!(facts("wal_sync_method", "fsync").receipt, Seen::Outside);
}

/// A server of version 15 that was built without lz4: its programs answer questions and no more.
fn without_lz4(directory: &Path) -> String {
    let program = "#!/bin/sh\ncase \"$*\" in\n*--version*) echo 'postgres (PostgreSQL) 15.4';;\n\
                   *wal_compression=lz4*) echo 'FATAL:  invalid value for parameter \"wal_compression\": \"lz4\"' >&2; \
                   echo 'HINT:  Available values: pglz, on, off.' >&2; exit 1;;\n\
                   *) echo 'postgres: could not access directory' >&2; exit 2;;\nesac\n";
    for name in ["postgres", "initdb"] {
        let path = directory.join(name);
        std::fs::write(&path, program).expect("a program");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    directory.display().to_string()
}

/// Parses a shipped study with this server.
fn on(server: &str, name: &str) -> Study {
    let text = text_of(name).replacen("target = \"postgres\"\n", "", 1);
    let text = text.replacen("[settings]\n", &format!("[settings]\nserver = \"{server}\"\n"), 1);
    parsed(&text).expect("well formed")
}

#[test]
fn a_level_that_a_build_lacks_is_left_out_with_its_claims_and_the_rest_runs() {
    let place = place();
    let server = without_lz4(place.path());
    let (study, left_out) = on(&server, "pg-wal-compression").possible().expect("two levels are left");
    let labels: Vec<&str> = study.factors[0].levels.iter().map(|level| level.label.as_str()).collect();
    assert_eq!(labels, ["off", "pglz"]);
    assert_eq!(study.claims.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>(), ["pglz-time"]);
    assert_eq!((study.claims[0].change.from, study.claims[0].change.to), (0, 1));
    let text = left_out[0].to_string();
    assert!(text.starts_with("compression=lz4 is left out: PostgreSQL 15.4 of "), "{text}");
    assert!(
        text.contains("Available values: pglz, on, off; without it there is no claim lz4-log, lz4-time"),
        "{text}"
    );
    assert!(!text.contains('\n'));
    // Its own text is the study without the level.
    assert_eq!(parse("kept.toml", &study.to_toml(), KINDS).expect("its text").hash(), study.hash());
}

#[test]
fn a_study_of_a_setting_that_a_version_lacks_is_refused_in_one_line() {
    let place = place();
    let server = without_lz4(place.path());
    let error = on(&server, "pg-io-method").possible().expect_err("version 15 has no io_method").to_string();
    assert!(
        error.starts_with("study pg-io-method: no level of method is possible here: io_method is known from PostgreSQL 18 on, and "),
        "{error}"
    );
    assert!(error.ends_with(" is 15; name a later server") && !error.contains('\n'), "{error}");
}

#[test]
fn evidence_is_known_before_a_run() {
    let place = place();
    let server = without_lz4(place.path());
    let study = on(&server, "pg-wal-compression");
    let settings: Vec<&Assignment> = study.all_settings().collect();
    let here = study.vocabulary.here(&settings, place.path());
    assert!(here.target.starts_with("PostgreSQL 15.4 of "), "{}", here.target);
    let of = |name: &str| here.evidence.iter().find(|found| found.setting == name).expect("a row");
    let compression = of("wal_compression");
    assert_eq!(compression.seen, Seen::Inside, "there is no pg_waldump: {compression:?}");
    assert!(compression.by.contains("pg_waldump is not installed with the server"), "{compression:?}");
    assert_eq!((of("max_wal_size").seen, of("min_wal_size").seen), (Seen::Outside, Seen::Inside));
    assert_eq!(of("sessions").by, "plumb's own work");
}
