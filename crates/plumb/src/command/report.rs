//! `plumb report`: the reports of a bundle of a run, a study or a calibration, rendered again.

use crate::arguments::Report;
use crate::command::study::{self, End};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{bundle, calibrate, output, run};
use plumb_lab::bundle::run_record;
use plumb_lab::document;
use plumb_lab::report::rendered;

/// Renders them.
///
/// # Errors
/// When the bundle has no record that this program can read, or a report cannot be written.
pub fn run(arguments: &Report) -> Result<Outcome, Failure> {
    if arguments.bundle.join(plumb_lab::bundle::STUDY).exists() {
        let end = if arguments.end { End::Here } else { End::Kept };
        return study::rebuild(&arguments.bundle, end, arguments.picture.as_deref());
    }
    if arguments.picture.is_some() {
        return Err(Failure::usage(format!(
            "--picture: {} is no study, and has no effects to draw; leave it out",
            arguments.bundle.display()
        )));
    }
    if arguments.bundle.join(plumb_lab::bundle::CALIBRATION).exists() {
        return calibrate::rebuild(&arguments.bundle);
    }
    let (directory, record) = run_record(&arguments.bundle)?;
    let document = document::run::document(&record);
    let files = bundle::write(&directory, &rendered(&document))?;
    output::print(&(output::summary(&document) + &bundle::listed(&files)))?;
    Ok(run::outcome(&record))
}
