//! A bundle: the directory that keeps a run's record and its reports.
//!
//! It is reserved before the run ([`Reservation`]), because a run may take hours and its report must neither be
//! lost for a missing right nor replace another one; a reservation that comes to nothing leaves nothing. Should
//! the bundle fail all the same, the text report is printed first.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use plumb_events::clock;
use plumb_lab::bundle::{Reservation, refused};
use plumb_lab::calendar::Moment;
use plumb_lab::orphans::REPORTS;
use plumb_report::{ReportContext, html, text};
use std::fs;
use std::path::{Path, PathBuf};

/// The record's file.
pub const RECORD: &str = "record.json";

/// Reserves the directory that was named, or else one in `plumb-reports` of this name and the time, if
/// there is to be one. An interruption removes it as long as it is empty.
///
/// # Errors
/// When the bundle could not be written there, or something would be written over.
pub fn reserve(
    named: Option<&Path>,
    default: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Option<Reservation>, Failure> {
    let reservation = match (named, default) {
        (Some(directory), _) => Reservation::named(directory)?,
        (None, Some(name)) => {
            let name = format!("{name}-{}", Moment::of(clock::wall()).compact());
            Reservation::fresh(Path::new(REPORTS), &name)?
        }
        (None, None) => return Ok(None),
    };
    interrupt.reserved(&reservation);
    Ok(Some(reservation))
}

/// Writes record and reports; returns the paths of the files.
///
/// # Errors
/// When a file cannot be written.
pub fn write(directory: &Path, context: &ReportContext) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![write_file(directory, RECORD, &context.to_json()?)?];
    files.extend(write_reports(directory, context)?);
    Ok(files)
}

/// Writes files of any names to a bundle.
///
/// # Errors
/// When a file cannot be written.
pub fn write_files(directory: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    files.iter().try_for_each(|(name, text)| write_file(directory, name, text).map(|_| ()))
}

/// Prints `shown`, and below it the paths of the bundle's files when there is to
/// be one. What was measured is printed first of all, whatever becomes of the bundle.
///
/// # Errors
/// When the bundle or standard output cannot be written.
pub fn show(shown: &str, reservation: Option<&Reservation>, context: &ReportContext) -> Result<(), Failure> {
    output::print(shown)?;
    let files = reservation.map(|reservation| write(reservation.directory(), context)).transpose()?;
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
    fs::write(&path, text).map_err(|error| refused(&path, error))?;
    Ok(path)
}
