//! Reports of other programs, with bytes, lines and pieces changed.
//!
//! The base is the fixtures of `foreign`, one of each kind. What is imported becomes every page
//! that the commands make of it, and its record is written and read again.

use anyhow::Context as _;
use plumb_foreign::{READERS, Source, import};
use plumb_pages::series::{self, Member};
use plumb_proof::random::Generator;
use plumb_record::Record;
use plumb_report::Document;
use std::fs;
use std::path::Path;

/// The fixtures of the importers.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/foreign/tests/it/fixtures");
/// Bytes of a changed report at most: a line that is repeated may double it many times.
const BYTES_MOST: usize = 8 << 20;

/// Changes a report and imports it. Returns what was refused.
pub(super) fn attempt(random: &mut Generator, shown: fn(&Document)) -> anyhow::Result<Vec<String>> {
    let bytes = changed(random)?;
    let source = Source::of(Path::new("fuzz"), &bytes);
    let imports = match import(&source, READERS, "fuzz") {
        Ok(imports) => imports,
        Err(error) => return Ok(vec![error.to_string()]),
    };
    for import in imports {
        shown(&import.page(Vec::new()));
        let Some(record) = import.record else { continue };
        let member = Member { name: import.imported.file.clone(), record: &record };
        shown(&series::document(&[member], "fuzz"));
        shown(&plumb_pages::run::document(&record));
        shown(&plumb_pages::run::diagnosis::document(&record));
        let again = Record::from_json(&record.to_json()?).context("a record is read again");
        if let Err(error) = again {
            return Ok(vec![format!("{error:#}")]);
        }
    }
    Ok(Vec::new())
}

fn fixture(random: &mut Generator) -> anyhow::Result<Vec<u8>> {
    let mut files =
        fs::read_dir(FIXTURES)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    // A directory has no order, and a trial must be repeated by its number.
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{FIXTURES} has no fixture");
    Ok(fs::read(&files[random.below(files.len())])?)
}

fn changed(random: &mut Generator) -> anyhow::Result<Vec<u8>> {
    let mut bytes = fixture(random)?;
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len().max(1));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let other = fixture(random)?;
                let begin = random.below(other.len());
                let end = begin + random.below(other.len() - begin) + 1;
                bytes.splice(at..at, other[begin..end].iter().copied());
            }
            2 => {
                // A line many times.
                let end = bytes[at..]
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(bytes.len(), |end| at + end + 1);
                let line = bytes[at..end].to_vec();
                let most = BYTES_MOST.saturating_sub(bytes.len()) / line.len().max(1);
                bytes.splice(at..at, line.repeat(random.below(20_000).min(most)));
            }
            3 => {
                // Letters that begin tables, pages and documents.
                let marks =
                    ["\n", "\t", "|", "{", "[", "\"", "<table>", "-----", "~~~~", "1e308", "-", ",", "\0"];
                let mark = marks[random.below(marks.len())].repeat(random.below(200) + 1);
                bytes.splice(at..at, mark.bytes());
            }
            _ => {
                for _ in 0..random.below(40) {
                    let at = random.below(bytes.len().max(1));
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = random.below(256) as u8;
                    }
                }
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short part of what `bench fuzz` does, the same in each run.
    #[test]
    fn changed_reports_become_pages_or_one_line() {
        let shown = |document: &Document| drop(plumb_pages::rendered(document));
        let mut taken = 0;
        for number in 0..16 {
            let mut random = Generator::of_part(52, number);
            let refusals =
                attempt(&mut random, shown).unwrap_or_else(|error| panic!("trial {number}: {error}"));
            let is_line = |refusal: &String| !refusal.contains('\n') && refusal.len() < 4096;
            assert!(refusals.iter().all(is_line), "trial {number}: {refusals:?}");
            taken += usize::from(refusals.is_empty());
        }
        assert!(taken > 4, "most changes leave a report: {taken}");
    }
}
