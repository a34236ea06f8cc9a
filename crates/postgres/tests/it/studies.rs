//! Study files in the vocabulary of a server.

use crate::server::installed;
use plumb_postgres::Postgres;
use plumb_study::definition::{Study, catalog, parse};
use plumb_study::targets::command::Commands;
use plumb_study::vocabulary::{Kinds, Seen, TakesEffect};

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
