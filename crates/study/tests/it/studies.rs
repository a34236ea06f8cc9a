//! The shipped studies.

use plumb_run::embedded::Engine;
use plumb_study::definition::{catalog, parse};
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::command::Commands;
use std::fs;
use std::path::Path;

#[test]
fn each_study_parses_round_trips_and_can_prove_its_claims() {
    for study in catalog::all(&[&Engine, &Commands]).expect("they are well formed") {
        let text = study.to_toml();
        let again = parse("again.toml", &text, &[&Engine, &Commands])
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, study, "{text}");
        assert_eq!(again.hash(), study.hash());
        let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, 1).expect("a design");
        assert!(
            plan.study.blocks >= plan.blocks_needed(),
            "{} has too few blocks to prove anything",
            plan.study.name
        );
        assert!(
            plan.study.blocks >= plan.blocks_to_recommend(),
            "{} has too few blocks to recommend an arm: {} are needed",
            plan.study.name,
            plan.blocks_to_recommend()
        );
    }
}

#[test]
fn figures_of_a_source_stand_beside_ours() {
    let studies = catalog::all(&[&Engine, &Commands]).expect("they are well formed");
    for name in ["redo-direct", "log-file-size", "ext4-xfs"] {
        let study = studies.iter().find(|study| study.name == name).expect("it is there");
        let published = study.published.as_ref().expect("its source has figures");
        assert!(published.rows.iter().all(|row| row.times.len() == 2), "{name}");
    }
}

#[test]
fn files_are_named_for_their_studies() {
    for ((file, _), study) in
        catalog::FILES.iter().zip(catalog::all(&[&Engine, &Commands]).expect("well formed"))
    {
        assert_eq!(*file, format!("{}.toml", study.name));
    }
}

#[test]
fn comparisons_with_other_programs_parse_and_can_prove_their_claims() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let peers = fs::read_dir(root.join("studies")).expect("the studies").flatten();
    let peers = peers.filter(|entry| entry.file_name().to_string_lossy().starts_with("peer-"));
    let mut names = Vec::new();
    for path in peers.map(|entry| entry.path()) {
        let text = fs::read_to_string(&path).expect("a study");
        let study = parse("peer.toml", &text, &[&Commands])
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(path.file_stem().expect("a name").to_string_lossy(), study.name);
        // What a script does is part of the treatment.
        for line in text.lines().filter_map(|line| line.strip_prefix("files = ")) {
            let scripts = line.split('"').filter(|part| part.ends_with(".py"));
            assert!(scripts.map(|script| root.join(script)).all(|script| script.is_file()), "{line}");
        }
        names.push(study.name.clone());
        let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, 1).expect("a design");
        assert!(plan.study.blocks >= plan.blocks_needed(), "{} has too few blocks", plan.study.name);
    }
    let page = fs::read_to_string(root.join("docs/measured/peers.md")).expect("the page");
    assert!(names.len() >= 7, "{names:?}");
    assert!(names.iter().all(|name| page.contains(&format!("studies/{name}.toml"))), "{names:?}");
}
