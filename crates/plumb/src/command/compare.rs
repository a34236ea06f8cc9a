//! `plumb compare`: two runs, or two arms of studies, side by side.

use crate::arguments::Compare;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_lab::compare::compare;
use plumb_lab::document;
use plumb_lab::record::RunState;
use plumb_lab::target::embedded::ENGINE;
use plumb_report::{html, text};
use std::fs;

/// Compares them.
///
/// # Errors
/// When a side is no bundle or no arm of one, when the two ran different workloads, or when a report cannot be written.
pub fn run(arguments: &Compare) -> Result<Outcome, Failure> {
    let comparison = compare(&arguments.first, &arguments.second, &ENGINE)?;
    let document = document::compare::document(&comparison);
    if let Some(path) = &arguments.html {
        fs::write(path, html::render(&document)).map_err(|error| {
            Failure::run(format!("cannot write {}: {error}; name a file in a directory that this user may write to with --html", path.display()))
        })?;
    }
    output::print(&match arguments.json {
        true => plumb_lab::bundle::json(&comparison)?,
        false => text::render(&document),
    })?;
    let mut runs = comparison.first.runs.iter().chain(&comparison.second.runs);
    let invalid = runs.any(|run| run.validity().state == RunState::Invalid);
    Ok(if invalid { Outcome::Invalid } else { Outcome::Fine })
}
