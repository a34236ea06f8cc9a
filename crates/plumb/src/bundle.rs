//! A bundle: the directory that keeps a run's record and its reports.

use crate::calendar::Moment;
use crate::failure::Failure;
use plumb_events::clock;
use plumb_report::{ReportContext, html, text};
use std::fs;
use std::path::{Path, PathBuf};

/// The record's file.
const RECORD: &str = "record.json";

/// Where a workload's bundle goes when nobody says.
#[must_use]
pub fn default_directory(workload: &str) -> PathBuf {
    Path::new("plumb-reports").join(format!("{workload}-{}", Moment::of(clock::wall()).compact()))
}

/// Writes record and reports; returns the paths of the files.
///
/// # Errors
/// When the directory or a file cannot be written.
pub fn write(directory: &Path, context: &ReportContext) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::of_file("make the directory", directory, &error))?;
    let mut files = vec![write_file(directory, RECORD, &context.to_json()?)?];
    files.extend(write_reports(directory, context)?);
    Ok(files)
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
    let text = fs::read_to_string(&record).map_err(|error| {
        Failure::run(format!(
            "cannot read {}: {error}; name a bundle's directory or its {RECORD}",
            record.display()
        ))
    })?;
    let context = ReportContext::from_json(&text)
        .map_err(|error| Failure::run(format!("{}: {error}", record.display())))?;
    let directory = record.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    Ok((directory, context))
}

fn write_file(directory: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|error| Failure::of_file("write", &path, &error))?;
    Ok(path)
}
