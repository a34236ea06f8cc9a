//! Bundles of earlier versions: their records give the numbers and verdicts they gave then, except
//! for intended changes.
//!
//! Each file of `tests/fixtures/bundles` is the bundle of a shipped study, as an object of file
//! names and texts. Its runs are too few to prove much. The test fails if a number moves by a bit
//! without a row of [`CHANGED`], or a verdict without a row of [`VERDICTS`].

use flate2::read::GzDecoder;
use plumb_report::text;
use plumb_run::embedded::Engine;
use plumb_study::analysis::analyse;
use plumb_study::bundle::{ANALYSIS, Bundle, Contents, MANIFEST};
use plumb_study::report::publish;
use plumb_study::verify::verify;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

/// Studies whose bundles are kept.
const STUDIES: [&str; 5] =
    ["large-sort", "large-sort-parallel", "large-sort-serial", "sort-area", "sort-write-buffers"];

/// Unpacks a kept bundle into a directory. Its reports were not kept, so its
/// manifest does not list them.
fn unpack(study: &str, directory: &Path) {
    let file = format!("{}/tests/fixtures/bundles/{study}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let packed = GzDecoder::new(File::open(&file).expect(&file));
    let files: BTreeMap<String, String> = serde_json::from_reader(packed).expect("names and texts");
    fs::create_dir(directory.join("runs")).expect("a directory");
    files.iter().for_each(|(name, text)| fs::write(directory.join(name), text).expect("a file"));
    let kept = |line: &&str| line.split_once("  ").is_some_and(|(_, name)| files.contains_key(name));
    let list: String = files[MANIFEST].lines().filter(kept).map(|line| format!("{line}\n")).collect();
    fs::write(directory.join(MANIFEST), list).expect("a file");
}

/// Collects every value of a JSON text by its path; an empty list or object is a value.
fn leaves(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| leaves(value, &format!("{path}/{name}"), found));
        }
        Value::Array(values) if !values.is_empty() => {
            let numbered = values.iter().enumerate();
            numbered.for_each(|(index, value)| leaves(value, &format!("{path}/{index}"), found));
        }
        _ => {
            found.insert(path.to_string(), value.clone());
        }
    }
}

/// Maps a path of an analysis of schema 1 to the current one; `None` for derived values.
fn renamed(path: &str) -> Option<String> {
    let header = path.strip_prefix("/header/");
    Some(match (header, path) {
        // The hashed text now names its target and its workload's parameters.
        (Some("measure/unit" | "measure/better" | "workload" | "study_hash"), _) => return None,
        (Some("measure/name"), _) => "/study/measure/name".to_string(),
        (Some(field @ ("name" | "title" | "question" | "source")), _) => format!("/study/{field}"),
        (Some(field @ ("state" | "end_time" | "elapsed_ns")), _) => format!("/{field}"),
        (Some(field), _) => format!("/environment/{field}"),
        (None, "/design/blocks_planned") => "/study/blocks".to_string(),
        (None, "/design/alpha") => "/study/alpha".to_string(),
        (None, "/design/effect_sought") => "/study/sought".to_string(),
        _ if path.starts_with("/factors") && path.ends_with("/reference") => return None,
        _ if path.starts_with("/factors") => format!("/study{path}"),
        _ if path.starts_with("/devices") => format!("/environment{path}"),
        // The published table follows from the study, names of groups from their indices.
        _ if path.starts_with("/published") => return None,
        _ if path.starts_with("/order/") && path.ends_with("/name") => return None,
        _ if path.starts_with("/order/") => path.replace("/ratio", "/shift"),
        _ if path.starts_with("/claims/") && path.ends_with("/bearing") => {
            path.replace("/bearing", "/outcome")
        }
        // No version measured a value under this name.
        (None, "/calibration/sequential_write_bytes_per_s") => return None,
        _ => path.to_string(),
    })
}

/// Converts a current value to schema 1: ratios of order tests instead of logarithms, the
/// printed name of the measure.
fn as_then(path: &str, value: Option<&Value>) -> Option<Value> {
    let value = value?;
    Some(match path {
        "/schema_version" => Value::from(1),
        "/header/measure/name" if value == "elapsed" => Value::from("elapsed time"),
        _ if path.starts_with("/order/")
            && (path.ends_with("/ratio") || path.ends_with("drift_per_block")) =>
        {
            Value::from(value.as_f64()?.exp())
        }
        _ => value.clone(),
    })
}

/// Paths whose values changed, with the reason; a `*` stands for one index.
const CHANGED: [(&str, &str); 33] = [
    ("/claims/*/p", TEST),
    ("/claims/*/adjusted_p", TEST),
    ("/claims/*/effect/low", TEST),
    ("/claims/*/effect/high", TEST),
    (
        "/claims/*/effect/ratio",
        "a claim about the reference arm has both its runs; others are equal to 1e-12, see below",
    ),
    ("/claims/*/effect/confidence", FAMILY),
    ("/claims/*/equivalence/p", FAMILY),
    ("/claims/*/smallest_effect", FLOOR),
    ("/claims/*/blocks_needed", FLOOR),
    ("/claims/*/verdict/line", "it prints the figures above"),
    ("/claims/*/reasons/*", "they print the figures above"),
    ("/claims/*/why/reference_elapsed_ns", POOLED),
    ("/claims/*/why/treatment_elapsed_ns", POOLED),
    ("/claims/*/why/parts/*/reference_ns", POOLED),
    ("/claims/*/why/parts/*/treatment_ns", POOLED),
    ("/floor/smallest_effect", "a floor is of a claim, not of the study"),
    ("/claims/*/verdict/*", TWICE),
    ("/claims/*/average/*", "the level is that of the claim"),
    ("/main_effects/*/effect/*", READING),
    ("/main_effects/*/*", READING),
    ("/main_effects", READING),
    ("/interactions/*/effect/*", READING),
    ("/interactions/*/*", READING),
    ("/interactions", READING),
    ("/recommendation/gain/ratio", ADVICE),
    ("/recommendation/gain/low", ADVICE),
    ("/recommendation/gain/high", ADVICE),
    ("/recommendation/gain/confidence", ADVICE),
    ("/recommendation/evidence", ADVICE),
    ("/findings/*/what", "the best of the arms is so if it is proved: otherwise it may be"),
    ("/findings/*/evidence", "it prints figures of the advice, and blocks that are needed"),
    ("/findings/*/advice", "it prints blocks that are needed"),
    ("/not_tested/*", "these records do not have what others did on the machine"),
];
const TEST: &str =
    "runs are permuted within blocks, put about their median, and blocks have to agree by Student's t";
const TWICE: &str = "an equality holds for the average, too";
const READING: &str = "what no claim says, with both runs of the reference, corrected within the table";
const POOLED: &str = "arms that are pooled count alike, though the reference has two runs a block";
const FAMILY: &str = "claims share the error in equal parts, so that their intervals hold together";
const FLOOR: &str = "simulated, of the claim's own spread, with six blocks at least";
const ADVICE: &str =
    "with what settled claims leave of the error; shrunk for the choice and for being significant";

/// Verdicts that changed their label: study, claim from 0, then, now, and why.
const VERDICTS: [(&str, usize, &str, &str, &str); 0] = [];

/// Returns the reason why a value may differ.
fn changed(path: &str) -> Option<&'static str> {
    let alike = |pattern: &str| {
        let (parts, own) = (pattern.split('/'), path.split('/'));
        parts.clone().count() == own.clone().count()
            && parts.zip(own).all(|(part, own)| part == "*" || part == own)
    };
    CHANGED.iter().find(|(pattern, _)| alike(pattern)).map(|(_, why)| *why)
}

/// Checks that claims without the reference arm keep their estimate, and verdicts
/// without a row their label.
fn the_same_claims(study: &str, then: &Value, now: &Value) {
    let reference = now["design"]["reference_arm"].as_u64().expect("an arm");
    for (index, (then, now)) in then["claims"]
        .as_array()
        .expect("claims")
        .iter()
        .zip(now["claims"].as_array().expect("claims"))
        .enumerate()
    {
        let named = VERDICTS.iter().find(|row| (row.0, row.1) == (study, index));
        // An equality is of the typical run, and is called so since version 8.
        let of_then = then["verdict"]["label"].as_str().map(|label| match label {
            "PROVED EQUAL" => "PROVED typically EQUAL",
            other => other,
        });
        let label = named.map_or(of_then, |row| Some(row.3));
        assert_eq!(now["verdict"]["label"].as_str(), label, "{study}: claim {index}");
        let arms = [&now["arms"]["reference"], &now["arms"]["treatment"]].map(Value::as_u64);
        if arms.iter().all(|arm| arm.is_some_and(|arm| arm != reference)) {
            let ratio = |claim: &Value| claim["effect"]["ratio"].as_f64().expect("a ratio");
            assert!((ratio(then) / ratio(now) - 1.0).abs() < 1e-12, "{study}: claim {index}");
        }
    }
}

#[test]
fn kept_bundles_give_the_same_numbers_and_verdicts() {
    for study in STUDIES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        unpack(study, directory.path());
        let (manifest, contents) = Contents::read(directory.path(), &[&Engine]).expect("it is read");
        let stored = manifest.text(directory.path(), ANALYSIS).expect("an analysis");
        let stored: Value = serde_json::from_str(&stored).expect("JSON");
        let again = serde_json::to_value(analyse(&contents)).expect("plain data");
        let (mut then, mut now) = (BTreeMap::new(), BTreeMap::new());
        leaves(&stored, "", &mut then);
        leaves(&again, "", &mut now);
        assert!(then.len() > 500, "{study}: {} values", then.len());
        the_same_claims(study, &stored, &again);
        for (path, value) in &then {
            if let Some(place) = renamed(path) {
                let found = as_then(path, now.get(&place));
                if changed(path).is_none() {
                    assert_eq!(Some(value), found.as_ref(), "{study}: {path} at {place}");
                }
            }
        }
    }
}

#[test]
fn an_older_bundle_is_judged_again_and_can_be_analysed_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    unpack("sort-area", directory.path());
    let again = verify(directory.path(), &[&Engine], plumb_pages::study::rendered).expect("it is whole");
    assert_eq!((again.judged_again, again.differences), (Some(1), Vec::<String>::new()));
    // Its files are checked as ever.
    let record = directory.path().join("runs/0002.json");
    let text = fs::read_to_string(&record).expect("a run");
    fs::write(&record, format!("{text} ")).expect("a file");
    verify(directory.path(), &[&Engine], plumb_pages::study::rendered).expect_err("a run has changed");
    fs::write(&record, text).expect("a file");
    let mut bundle = Bundle::open(directory.path(), &[&Engine]).expect("it is whole");
    publish(&mut bundle, plumb_pages::study::rendered).expect("it is written");
    drop(bundle);
    let verified =
        verify(directory.path(), &[&Engine], plumb_pages::study::rendered).expect("it is as it was written");
    assert_eq!(verified.analysis.expect("an analysis").claims.len(), 3);
}

#[test]
fn the_published_table_is_next_to_the_kept_medians() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    unpack("large-sort-parallel", directory.path());
    let (manifest, contents) = Contents::read(directory.path(), &[&Engine]).expect("it is read");
    let then = manifest.text(directory.path(), ANALYSIS).expect("an analysis");
    let then: Value = serde_json::from_str(&then).expect("JSON");
    let report = text::render(&plumb_pages::study::document(&analyse(&contents)));
    let rows = then["published"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let words = |field: &str, word: &dyn Fn(&Value) -> String| -> Vec<String> {
            row[field].as_array().expect("a list").iter().map(word).collect()
        };
        let labels = words("labels", &|label| label.as_str().expect("a label").to_string());
        let theirs = words("published_s", &|seconds| {
            let seconds = seconds.as_f64().expect("a time") as u64;
            format!("{}:{:02}", seconds / 60, seconds % 60)
        });
        let ours = words("arms", &|arm| {
            let median = &then["arms"][arm.as_u64().expect("an arm") as usize]["median"];
            format!("{:.3}", median.as_f64().expect("a median"))
        });
        let expected: Vec<String> = [labels, theirs, ours].concat();
        let shown = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            expected.iter().all(|word| words.contains(&word.as_str()))
        };
        assert!(report.lines().any(shown), "{expected:?}");
    }
}

/// The table for users names the versions that this program writes.
#[test]
fn the_versions_of_the_documentation_are_those_of_the_code() {
    let page = include_str!("../../../../docs/compatibility.md");
    let versions = [
        ("analysis of a study (`study --json`)", plumb_study::analysis::result::ANALYSIS_SCHEMA_VERSION),
        ("comparison (`compare --json`)", plumb_study::compare::COMPARE_SCHEMA_VERSION),
        ("record of a run (`record.json`, `run --json`)", plumb_record::SCHEMA_VERSION),
    ];
    for (name, version) in versions {
        assert!(page.contains(&format!("| {name} | {version} |")), "{name} is at {version}");
    }
}
