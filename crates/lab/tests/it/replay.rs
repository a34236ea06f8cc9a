//! Bundles of earlier programs: what their records give is what they said.
//!
//! Each file of `tests/fixtures/bundles` is the bundle of a study that comes with the program, as an object of file
//! names and texts. Its runs are too few to prove much: what matters is that nothing moves by a bit.

use flate2::read::GzDecoder;
use plumb_lab::analysis::analyse;
use plumb_lab::bundle::{ANALYSIS, Contents};
use plumb_lab::target::embedded::ENGINE;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

/// The studies whose bundles are kept.
const STUDIES: [&str; 5] =
    ["large-sort", "large-sort-parallel", "large-sort-serial", "sort-area", "sort-write-buffers"];

/// Lays a kept bundle out as a directory.
fn unpack(study: &str, directory: &Path) {
    let file = format!("{}/tests/fixtures/bundles/{study}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let packed = GzDecoder::new(File::open(&file).expect(&file));
    let files: BTreeMap<String, String> = serde_json::from_reader(packed).expect("names and texts");
    fs::create_dir(directory.join("runs")).expect("a directory");
    files.iter().for_each(|(name, text)| fs::write(directory.join(name), text).expect("a file"));
}

/// Every value of a JSON text by its path; an empty list or object is a value.
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

#[test]
fn the_records_of_kept_bundles_give_the_same_numbers_and_verdicts_to_the_last_bit() {
    for study in STUDIES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        unpack(study, directory.path());
        let (manifest, contents) = Contents::read(directory.path(), &ENGINE).expect("it is read");
        let stored = manifest.text(directory.path(), ANALYSIS).expect("an analysis");
        let stored: Value = serde_json::from_str(&stored).expect("JSON");
        let again = serde_json::to_value(analyse(&contents)).expect("plain data");
        let (mut then, mut now) = (BTreeMap::new(), BTreeMap::new());
        leaves(&stored, "", &mut then);
        leaves(&again, "", &mut now);
        assert!(then.len() > 500, "{study}: {} values", then.len());
        for (path, value) in &then {
            assert_eq!(Some(value), now.get(path), "{study}: {path}");
        }
        assert_eq!(then.len(), now.len(), "{study}");
    }
}
