//! Bundles without a manifest: a run's or a calibration's.

use super::{CALIBRATION, STUDY, refused, source_of};
use crate::StudyError;
use plumb_io::Directory;
use plumb_record::outside;
use plumb_record::{FILE, Record};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads the record of a run's bundle, named by its directory or by the record's file. Gives the directory too.
///
/// # Errors
/// When there is none, or one of another version.
pub fn run_record(bundle: &Path) -> Result<(PathBuf, Record), StudyError> {
    let path = if bundle.is_dir() { bundle.join(FILE) } else { bundle.to_path_buf() };
    let record = Record::from_json(&text(&path)?)
        .map_err(|source| StudyError::Record { path: path.clone(), source })?;
    Ok((path.parent().map_or_else(PathBuf::new, Path::to_path_buf), record))
}

/// What happened between two snapshots of a run, numbered from 1, as the record of a run. Gives the bundle's directory too.
///
/// # Errors
/// As [`run_record`], and when it has no such snapshots.
pub fn run_period(bundle: &Path, (first, last): (usize, usize)) -> Result<(PathBuf, Record), StudyError> {
    let (directory, record) = run_record(bundle)?;
    let taken = record.last_snapshot();
    let no_period = || StudyError::NoPeriod { path: bundle.to_path_buf(), first, last, taken };
    Ok((directory, record.period(first, last).ok_or_else(no_period)?))
}

/// The text of one of its files.
///
/// # Errors
/// When it cannot be read.
pub fn text(path: &Path) -> Result<String, StudyError> {
    outside::text(path).map_err(|error| StudyError::BundleRead {
        path: path.to_path_buf(),
        why: format!("{error}{}", plumb_io::cure(&error, path, &cure(path))),
    })
}

/// Writes a file of a bundle without a manifest, whole, in place of one of that name; a link of
/// that name goes, and what it leads to stays. Gives its path.
///
/// # Errors
/// When it cannot be written.
pub fn write_over(directory: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, StudyError> {
    let path = directory.join(name);
    let written = Directory::open(directory).and_then(|held| held.replace(name, bytes));
    written.map_err(|error| refused(&path, source_of(error)))?;
    Ok(path)
}

fn cure(path: &Path) -> String {
    let usual = format!("name a bundle's directory or its {FILE}");
    match path.parent().filter(|_| path.ends_with(FILE)) {
        Some(directory) => bundles_below(directory).unwrap_or(usual),
        None => usual,
    }
}

/// The cure where a directory has bundles instead of being one, as that of a suite; none where it has none.
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

/// More of them would hide the cure in a long line.
const BUNDLES_NAMED: usize = 4;
