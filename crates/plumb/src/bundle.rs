//! A bundle: the directory that keeps a run's record and its reports.
//!
//! It is reserved before the run ([`Reservation`]), because a run may take hours. Its report must
//! neither be lost for a missing permission nor replace another one. An unused reservation leaves
//! nothing behind. The report is printed before the bundle is written, in case writing fails.

use crate::failure::Failure;
use crate::history::REPORTS;
use crate::interrupt::Interrupt;
use crate::output;
use plumb_events::clock;
use plumb_pages::rendered;
use plumb_record::calendar::Moment;
use plumb_record::trace::{self, RunTrace};
use plumb_record::{BESIDE, FILE, FIO_JOB, Record};
use plumb_report::Document;
use plumb_study::bundle::{Reservation, write_over};
use std::path::{Path, PathBuf};

/// Reserves the directory given by the user, or one in `plumb-reports` with this name and the time,
/// if a bundle is requested. An interruption removes it while it is empty. Fails if the bundle
/// could not be written there, or would replace files.
pub fn reserve(
    named: Option<&Path>,
    default: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Option<Reservation>, Failure> {
    interrupt.whole(|_| {
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
    })
}

/// Returns a run's record and its reports as files: name and text.
pub fn of_run(record: &Record, document: &Document) -> Result<Vec<(String, String)>, Failure> {
    let reports = rendered(document).map(|(name, text)| (name.to_string(), text));
    let beside = record.beside.as_ref().map(|beside| (BESIDE.to_string(), beside.to_csv()));
    let job = record.mix.as_ref().map(|mix| (FIO_JOB.to_string(), mix.fio_job()));
    let first = [(FILE.to_string(), record.to_json()?)].into_iter();
    Ok(first.chain(beside).chain(job).chain(reports).collect())
}

/// Writes files to a bundle; returns their paths.
pub fn write(directory: &Path, files: &[(impl AsRef<str>, String)]) -> Result<Vec<PathBuf>, Failure> {
    let write = |(name, text): &(_, String)| {
        let name: &str = AsRef::as_ref(name);
        Ok(write_over(directory, name, text.as_bytes())?)
    };
    files.iter().map(write).collect()
}

/// Writes a run's trace to its bundle.
pub fn write_trace(directory: &Path, trace: &RunTrace) -> Result<(), Failure> {
    write_over(directory, trace::FILE, &trace.to_bytes())?;
    Ok(())
}

/// Formats paths for printing, a line each.
pub fn listed(files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("  {}\n", file.display())).collect()
}

/// Prints `shown`, then the paths of the bundle's files if there is a bundle. The figures come
/// first, in case the bundle cannot be written.
pub fn show(
    shown: &str,
    reservation: Option<&Reservation>,
    record: &Record,
    document: &Document,
) -> Result<(), Failure> {
    output::print(shown)?;
    output::print(&listed(&keep(reservation, record, document)?))
}

/// Writes a run's record and its reports to its bundle, if there is one,
/// without printing; returns their paths.
pub fn keep(
    reservation: Option<&Reservation>,
    record: &Record,
    document: &Document,
) -> Result<Vec<PathBuf>, Failure> {
    let Some(reservation) = reservation else { return Ok(Vec::new()) };
    write(reservation.directory(), &of_run(record, document)?)
}
