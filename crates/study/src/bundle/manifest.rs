//! Checksums of a bundle's files, in the format of `sha256sum`.

use super::single::bundles_below;
use super::{ANALYSIS, END, ENVIRONMENT, ERRORS, ORDER, RECORD, REPORTS, RUNS, STUDY, UNFINISHED};
use crate::StudyError;
use plumb_host::owner::MARK;
use plumb_io::{Directory, FRESH, IoError, cure};
use plumb_record::outside;
use plumb_units::hex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

pub const MANIFEST: &str = "manifest.sha256";
const DIGITS: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest(BTreeMap<String, String>);

impl Manifest {
    /// Lists a file with the checksum of its text.
    pub fn list(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_string(), checksum(text.as_bytes()));
    }

    /// Removes a file from the list.
    pub fn strike(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn lists(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the text of the file: checksum, two blanks, name.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect()
    }

    /// Hashes the input of a study's analysis, and nothing derived from it. Publishing this hash
    /// commits to these runs and no others.
    pub fn evidence(&self) -> String {
        let derived = |name: &str| name == ANALYSIS || REPORTS.contains(&name);
        let lines: String = self
            .0
            .iter()
            .filter(|(name, _)| !derived(name))
            .map(|(name, sum)| format!("{sum}  {name}\n"))
            .collect();
        checksum(lines.as_bytes())
    }

    /// Reads and parses a bundle's manifest. Fails if any byte differs from this format.
    pub fn read(directory: &Path) -> Result<Manifest, StudyError> {
        let path = directory.join(MANIFEST);
        if !path.exists() && directory.join(ORDER).is_file() {
            return Err(StudyError::Tampered { path, why: "it is gone".to_string() });
        }
        let held = Directory::open(directory).and_then(|held| held.read_file(MANIFEST));
        let text = held
            .map_err(IoError::into_source)
            .and_then(|file| io::read_to_string(file.take(outside::TEXT_MOST)));
        let text = text.map_err(|source| StudyError::BundleRead {
            path: path.clone(),
            why: format!(
                "{source}{}",
                cure(
                    &source,
                    &path,
                    bundles_below(directory).as_deref().unwrap_or(
                        "name the directory of a study's bundle; those of runs and calibrations have no checksums"
                    )
                )
            ),
        })?;
        let entry = |line: &str| {
            let (sum, name) = line.split_once("  ")?;
            let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let whole = sum.len() == DIGITS && sum.bytes().all(hexadecimal);
            let inside =
                !name.is_empty() && !name.starts_with('/') && !name.split('/').any(|part| part == "..");
            (whole && inside).then(|| (name.to_string(), sum.to_string()))
        };
        let entries: Option<BTreeMap<String, String>> = text.lines().map(entry).collect();
        let manifest = entries.map(Manifest).filter(|manifest| manifest.to_text() == text);
        manifest.ok_or_else(|| StudyError::Tampered {
            path,
            why: "it is no list of checksums as this program writes it".to_string(),
        })
    }

    /// Returns the text of a listed file after checking its checksum. Fails if the file
    /// is missing or has changed.
    pub fn text(&self, directory: &Path, name: &str) -> Result<String, StudyError> {
        let path = directory.join(name);
        let expected = self.0.get(name).ok_or_else(|| StudyError::Tampered {
            path: path.clone(),
            why: format!("{MANIFEST} does not list it"),
        })?;
        let unreadable = |why: String| StudyError::Tampered {
            path: path.clone(),
            why: format!("{MANIFEST} lists it, and it cannot be read: {why}"),
        };
        let read = Directory::open(directory).and_then(|held| held.read(name, outside::TRACE_MOST));
        let read = read.map_err(|error| unreadable(error.into_source().to_string()))?;
        let bytes = read.ok_or_else(|| unreadable("it is gone".to_string()))?;
        let found = checksum(&bytes);
        if found != *expected {
            let why =
                format!("its SHA-256 is {}..., and {MANIFEST} has {}...", &found[..12], &expected[..12]);
            return Err(StudyError::Tampered { path, why });
        }
        String::from_utf8(bytes).map_err(|_| StudyError::Tampered {
            path: directory.join(name),
            why: "it is no text".to_string(),
        })
    }
}

/// Returns files and directories that the manifest does not list, except the mark of a writer.
pub fn unlisted(directory: &Path, manifest: &Manifest) -> Result<Vec<String>, StudyError> {
    let mut found = Vec::new();
    let runs = directory.join(RUNS);
    let runs = fs::symlink_metadata(&runs).is_ok_and(|found| found.is_dir()).then_some(runs);
    let runs = runs.map(|runs| (runs, format!("{RUNS}/")));
    for (inside, prefix) in [(directory.to_path_buf(), String::new())].into_iter().chain(runs) {
        let entries = fs::read_dir(&inside)
            .map_err(|source| StudyError::BundleRead { path: inside.clone(), why: source.to_string() })?;
        for entry in entries.flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // A link to a directory is unlisted, whatever its name.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend((name != RUNS).then(|| format!("{name}/")));
            } else if !manifest.lists(&name) && name != MANIFEST && name != MARK {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// True if a study creates this file in its bundle, or uses the name while writing one.
pub fn is_made(name: &str) -> bool {
    let Some(run) = name.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('/')) else {
        let made = [STUDY, ENVIRONMENT, ORDER, END, ANALYSIS, MANIFEST].into_iter().chain(REPORTS);
        let name = name.strip_suffix(FRESH).unwrap_or(name);
        let unfinished = |made: &str| Path::new(made).with_extension(UNFINISHED);
        return made.into_iter().any(|made| name == made || Path::new(name) == unfinished(made));
    };
    let run = run.strip_suffix(FRESH).unwrap_or(run);
    let number = run.strip_suffix(RECORD).or_else(|| run.strip_suffix(ERRORS));
    let number = number.or_else(|| run.strip_suffix(UNFINISHED)?.strip_suffix('.'));
    number.is_some_and(|number| number.len() >= 4 && number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn checksum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
