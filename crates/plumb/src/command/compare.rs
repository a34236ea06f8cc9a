//! `plumb compare`: two runs, or two arms of studies, side by side; also a run and a baseline.

use crate::arguments::Compare;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::targets::KINDS;
use crate::{baseline, output};
use plumb_record::RunState;
use plumb_report::html;
use plumb_study::bundle;
use plumb_study::compare::compare;
use std::path::Path;

/// Compares two runs or arms, and prints or writes the comparison. Fails if a side is no bundle and
/// no arm of one, the two ran different workloads, or a report cannot be written.
pub fn run(arguments: &Compare) -> Result<Outcome, Failure> {
    if let Some(name) = &arguments.save_baseline {
        baseline::save(name, Path::new(&arguments.first))?;
    }
    let (first, second) = match (&arguments.baseline, &arguments.second) {
        (Some(name), _) => (baseline::find(name)?, &arguments.first),
        (None, Some(second)) => (arguments.first.clone(), second),
        (None, None) => return Ok(Outcome::Fine),
    };
    let comparison = compare(&first, second, KINDS)?;
    let document = plumb_pages::compare::document(&comparison);
    if let Some(path) = &arguments.html {
        bundle::write_new(path, &html::render(&document))?;
    }
    output::print(&match arguments.json {
        true => bundle::json(&comparison)?,
        false => output::report(&document),
    })?;
    let mut runs = comparison.first.runs.iter().chain(&comparison.second.runs);
    let invalid = runs.any(|run| run.validity().state == RunState::Invalid);
    Ok(if invalid { Outcome::INVALID } else { Outcome::Fine })
}
