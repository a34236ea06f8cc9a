//! `plumb report`: the reports of a bundle of a run, a study or a calibration, rendered again.

use crate::arguments::{Report, ReportOf};
use crate::command::study::{self, End};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{bundle, calibrate, output, run};
use plumb_pages::rendered;
use plumb_study::bundle::{run_period, run_record};
use std::path::Path;

/// Renders the reports of a bundle again, and prints the summary.
pub fn run(arguments: &Report) -> Result<Outcome, Failure> {
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
