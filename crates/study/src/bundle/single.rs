//! Bundles without a manifest: of a run or a calibration.

use super::{CALIBRATION, STUDY, refused};
use crate::StudyError;
use plumb_io::Directory;
use plumb_record::{FILE, Record, outside};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads the record of a run, named by its bundle's directory or by the record's
/// file. Returns the directory, too.
pub fn run_record(bundle: &Path) -> Result<(PathBuf, Record), StudyError> {
    let path = if bundle.is_dir() { bundle.join(FILE) } else { bundle.to_path_buf() };
    let record = Record::from_json(&text(&path)?)
        .map_err(|source| StudyError::Record { path: path.clone(), source })?;
    Ok((path.parent().map_or_else(PathBuf::new, Path::to_path_buf), record))
}

/// Returns the period between two snapshots of a run, numbered from 1, as a record. Returns the
/// bundle's directory, too. Fails if the run lacks these snapshots.
pub fn run_period(bundle: &Path, (first, last): (usize, usize)) -> Result<(PathBuf, Record), StudyError> {
    let (directory, record) = run_record(bundle)?;
    let taken = record.last_snapshot();
    let no_period = || StudyError::NoPeriod { path: bundle.to_path_buf(), first, last, taken };
    Ok((directory, record.period(first, last).ok_or_else(no_period)?))
}

/// Reads a text file of a bundle.
pub fn text(path: &Path) -> Result<String, StudyError> {
    outside::text(path).map_err(|error| StudyError::BundleRead {
        path: path.to_path_buf(),
        why: format!("{error}{}", plumb_io::cure(&error, path, &cure(path))),
    })
}

/// Replaces a file of a bundle without a manifest and returns its path. A link of that name
/// is replaced, its target stays.
pub fn write_over(directory: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, StudyError> {
    let path = directory.join(name);
    let written = Directory::open(directory).and_then(|held| held.replace(name, bytes));
    written.map_err(|error| refused(&path, error.into_source()))?;
    Ok(path)
}

fn cure(path: &Path) -> String {
    let usual = format!("name a bundle's directory or its {FILE}");
    match path.parent().filter(|_| path.ends_with(FILE)) {
        Some(directory) => bundles_below(directory).unwrap_or(usual),
        None => usual,
    }
}

/// Returns the cure for a directory that contains bundles, such as that of a suite;
/// `None` if it contains none.
pub(super) fn bundles_below(directory: &Path) -> Option<String> {
    let is_bundle = |path: &PathBuf| [FILE, STUDY, CALIBRATION].iter().any(|file| path.join(file).is_file());
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_bundle).collect();
    below.sort();
    let named: Vec<String> =
        below.iter().take(BUNDLES_NAMED).map(|path| path.display().to_string()).collect();
    let and_more = if below.len() > named.len() { ", ..." } else { "" };
    (!named.is_empty())
        .then(|| format!("bundles lie below it, name one of them: {}{and_more}", named.join(", ")))
}

/// Number of bundles named in an error; more would make the line too long.
const BUNDLES_NAMED: usize = 4;
