//! A bundle: the directory that keeps a run's record and its reports.
//!
//! Whether it can be made is tried before the run, because a run may take hours
//! and its report must not be lost for a missing right; the trial leaves nothing
//! behind. Should the bundle fail all the same, the text report is printed first.

use crate::failure::Failure;
use crate::output;
use plumb_events::clock;
use plumb_lab::calendar::Moment;
use plumb_lab::record::{FILE, Record};
use plumb_lab::report::rendered;
use plumb_report::Document;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a workload's bundle goes when nobody says.
#[must_use]
pub fn default_directory(workload: &str) -> PathBuf {
    Path::new("plumb-reports").join(format!("{workload}-{}", Moment::of(clock::wall()).compact()))
}

/// Refuses a directory that cannot be made or written to, and leaves everything as it was.
///
/// # Errors
/// When the bundle could not be written there.
pub fn require_writable(directory: &Path) -> Result<(), Failure> {
    let missing: Vec<&Path> =
        directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    let trial = directory.join(format!("plumb-trial-{}", std::process::id()));
    let tried = fs::create_dir_all(directory).and_then(|()| fs::write(&trial, ""));
    let _ = fs::remove_file(&trial);
    for made in missing {
        // One that somebody else has begun to use is not empty and stays.
        let _ = fs::remove_dir(made);
    }
    tried.map_err(|error| cannot_write(directory, &error))
}

fn cannot_write(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!(
        "cannot write reports to {}: {error}; name a directory that this user may write to with --bundle",
        directory.display()
    ))
}

/// A run's record and its reports as files: name and text.
///
/// # Errors
/// When the record is no JSON.
pub fn of_run(record: &Record, document: &Document) -> Result<Vec<(String, String)>, Failure> {
    let reports = rendered(document).map(|(name, text)| (name.to_string(), text));
    Ok([(FILE.to_string(), record.to_json()?)].into_iter().chain(reports).collect())
}

/// Writes files to a bundle; returns their paths.
///
/// # Errors
/// When the directory or a file cannot be written.
pub fn write(directory: &Path, files: &[(impl AsRef<str>, String)]) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    files.iter().map(|(name, text)| write_file(directory, name.as_ref(), text)).collect()
}

/// Paths as they are printed, a line each.
#[must_use]
pub fn listed(files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("  {}\n", file.display())).collect()
}

/// Prints `shown`, and below it the paths of the bundle's files when there is to
/// be one. What was measured is printed first of all, whatever becomes of the bundle.
///
/// # Errors
/// When the bundle or standard output cannot be written.
pub fn show(
    shown: &str,
    directory: Option<&Path>,
    record: &Record,
    document: &Document,
) -> Result<(), Failure> {
    output::print(shown)?;
    let Some(directory) = directory else { return Ok(()) };
    output::print(&listed(&write(directory, &of_run(record, document)?)?))
}

fn write_file(directory: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
    Ok(path)
}
