//! A bundle: the directory that keeps a run's record and its reports.
//!
//! Whether it can be made is tried before the run, because a run may take hours
//! and its report must not be lost for a missing right; the trial leaves nothing
//! behind. Should the bundle fail all the same, the text report is printed first.

use crate::failure::Failure;
use crate::output;
use plumb_events::clock;
use plumb_lab::calendar::Moment;
use plumb_report::{ReportContext, html, text};
use std::fs;
use std::path::{Path, PathBuf};

/// The record's file.
pub const RECORD: &str = "record.json";

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

/// Writes record and reports; returns the paths of the files.
///
/// # Errors
/// When the directory or a file cannot be written.
pub fn write(directory: &Path, context: &ReportContext) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    let mut files = vec![write_file(directory, RECORD, &context.to_json()?)?];
    files.extend(write_reports(directory, context)?);
    Ok(files)
}

/// Writes files of any names to a bundle.
///
/// # Errors
/// When the directory or a file cannot be written.
pub fn write_files(directory: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    files.iter().try_for_each(|(name, text)| write_file(directory, name, text).map(|_| ()))
}

/// Prints `shown`, and below it the paths of the bundle's files when there is to
/// be one. What was measured is printed first of all, whatever becomes of the bundle.
///
/// # Errors
/// When the bundle or standard output cannot be written.
pub fn show(shown: &str, directory: Option<&Path>, context: &ReportContext) -> Result<(), Failure> {
    output::print(shown)?;
    let files = directory.map(|directory| write(directory, context)).transpose()?;
    let paths = files.unwrap_or_default().into_iter().map(|file| format!("  {}\n", file.display()));
    output::print(&paths.collect::<String>())
}

/// Writes the two reports; returns their paths.
///
/// # Errors
/// When a file cannot be written.
pub fn write_reports(directory: &Path, context: &ReportContext) -> Result<Vec<PathBuf>, Failure> {
    Ok(vec![
        write_file(directory, "report.txt", &text::render(context))?,
        write_file(directory, "report.html", &html::render(context))?,
    ])
}

/// Reads the record of a bundle, named by its directory or by the record's file.
/// Returns the directory too.
///
/// # Errors
/// When there is none, or it cannot be understood.
pub fn read(bundle: &Path) -> Result<(PathBuf, ReportContext), Failure> {
    let record = if bundle.is_dir() { bundle.join(RECORD) } else { bundle.to_path_buf() };
    let context = ReportContext::from_json(&read_file(&record)?)
        .map_err(|error| Failure::run(format!("{}: {error}", record.display())))?;
    let directory = record.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    Ok((directory, context))
}

/// The text of a file of a bundle.
///
/// # Errors
/// When it cannot be read.
pub fn read_file(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| {
        Failure::run(format!(
            "cannot read {}: {error}; name a bundle's directory or its {RECORD}",
            file.display()
        ))
    })
}

fn write_file(directory: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
    Ok(path)
}
