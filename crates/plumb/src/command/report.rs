//! `plumb report`: the reports of a bundle of a run, a study or a calibration, rendered again.

use crate::arguments::Report;
use crate::calibrate;
use crate::command::study;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{bundle, output, run};
use plumb_report::summary;

/// Renders them.
///
/// # Errors
/// When the bundle has no record that this program can read, or a report cannot be written.
pub fn run(arguments: &Report) -> Result<Outcome, Failure> {
    if arguments.bundle.join(plumb_lab::bundle::STUDY).exists() {
        return study::rebuild(&arguments.bundle);
    }
    if arguments.bundle.join(calibrate::CALIBRATION).exists() {
        return calibrate::rebuild(&arguments.bundle);
    }
    let (directory, context) = bundle::read(&arguments.bundle)?;
    let files = bundle::write_reports(&directory, &context)?;
    let mut shown = summary::render(&context);
    for file in files {
        shown.push_str(&format!("  {}\n", file.display()));
    }
    output::print(&shown)?;
    Ok(run::outcome(&context))
}
