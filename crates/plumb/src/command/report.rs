//! `plumb report`: the reports of a bundle of a run, a study or a calibration, rendered again.

use crate::arguments::{Report, ReportOf};
use crate::command::study::{self, End};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{bundle, calibrate, output, run};
use plumb_foreign::{READERS, Source, import, stamp};
use plumb_pages::rendered;
use plumb_pages::series::{self, Member};
use plumb_record::Record;
use plumb_study::bundle::{run_period, run_record};
use std::path::{Path, PathBuf};

/// Renders the reports of a bundle again, and prints the summary.
///
/// # Errors
/// When the bundle has no record that this program can read, or a report cannot be written.
pub fn run(arguments: &Report) -> Result<Outcome, Failure> {
    if !arguments.series.is_empty() {
        return of_series(&arguments.series);
    }
    let (bundle, end) = match arguments.of().map_err(Failure::usage)? {
        ReportOf::Period(bundle, period) => return of_period(&bundle, period),
        ReportOf::Whole(bundle) => (bundle, End::Kept),
        ReportOf::Ended(bundle) => (bundle, End::Here),
    };
    if bundle.join(plumb_study::bundle::STUDY).exists() {
        return study::rebuild(&bundle, end, arguments.picture.as_deref());
    }
    let of_studies = [
        (arguments.picture.is_some(), "--picture", "has no effects to draw"),
        (end == End::Here, "--end", "has ended"),
    ];
    if let Some((_, option, has)) = of_studies.into_iter().find(|(given, ..)| *given) {
        return Err(Failure::usage(format!(
            "{option}: {} is no study, and {has}; leave it out",
            bundle.display()
        )));
    }
    if bundle.join(plumb_study::bundle::CALIBRATION).exists() {
        return calibrate::rebuild(&bundle);
    }
    let (directory, record) = run_record(&bundle)?;
    let document = plumb_pages::run::document(&record);
    let files = bundle::write(&directory, &rendered(&document))?;
    output::print(&(output::summary(&document) + &bundle::listed(&files)))?;
    Ok(run::outcome(&record))
}

/// Prints the report of all reports of some files in the order of their begin; in the order of the
/// files where a begin is in a form that is not known.
fn of_series(files: &[PathBuf]) -> Result<Outcome, Failure> {
    let mut imports = Vec::new();
    for file in files {
        let read = Source::read(file).and_then(|source| import(&source, READERS, env!("CARGO_PKG_VERSION")));
        imports.extend(read.map_err(|error| Failure::run(error.to_string()))?);
    }
    let mut all: Vec<(String, Record)> =
        imports.into_iter().filter_map(|import| Some((import.imported.file, import.record?))).collect();
    let Some((_, first)) = all.first() else {
        return Err(Failure::run("--series: no report says how long its interval was".to_string()));
    };
    let of = first.header.workload.clone();
    if let Some((file, other)) = all.iter().find(|(_, record)| record.header.workload != of) {
        let other = &other.header.workload;
        return Err(Failure::run(format!(
            "--series: {file} is of {other}, and the first report is of {of}; name reports of one database"
        )));
    }
    let second = |record: &Record| stamp::second(&record.header.begin_time);
    if all.iter().all(|(_, record)| second(record).is_some()) {
        all.sort_by_key(|(_, record)| second(record));
    } else {
        output::remark("the begin of a report has no known form: they are in the order of the files\n");
    }
    let members: Vec<Member<'_>> =
        all.iter().map(|(name, record)| Member { name: name.clone(), record }).collect();
    output::print(&output::report(&series::document(&members, env!("CARGO_PKG_VERSION"))))?;
    Ok(Outcome::Fine)
}

/// Prints the whole report of a period, and writes it next to the run's under a name of its own.
fn of_period(bundle: &Path, (first, last): (usize, usize)) -> Result<Outcome, Failure> {
    let (directory, record) = run_period(bundle, (first, last))?;
    let document = plumb_pages::run::document(&record);
    let named = rendered(&document).map(|(name, text)| {
        let (stem, end) = name.split_once('.').unwrap_or((name, "txt"));
        (format!("{stem}-{first}-{last}.{end}"), text)
    });
    output::print(&output::report(&document))?;
    output::print(&bundle::listed(&bundle::write(&directory, &named)?))?;
    Ok(run::outcome(&record))
}
