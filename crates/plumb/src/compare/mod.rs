//! `plumb compare`: two runs, or two arms of studies, side by side.
//!
//! Read both sides, pair them if they can be paired, test what can be tested, print. Which
//! differences are printed at all is decided in `judge`; the report leaves the others blank.

mod judge;
mod side;

use crate::arguments::Compare;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output;
use plumb_lab::bundle;
use plumb_report::RunState;
use plumb_report::compare::{COMPARE_SCHEMA_VERSION, CompareContext, html, text};
use side::Sides;

/// Compares them.
///
/// # Errors
/// When a side is no bundle or no arm of one, when the two ran different workloads, or when a report cannot be written.
pub fn run(arguments: &Compare) -> Result<Outcome, Failure> {
    let sides = Sides::read(&arguments.first, &arguments.second)?;
    let context = context(sides);
    if let Some(path) = &arguments.html {
        bundle::write_new(path, &html::render(&context))?;
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(&context)
            .map_err(|error| Failure::run(format!("the comparison cannot be written as JSON: {error}")))?;
        output::print(&(json + "\n"))?;
    } else {
        output::print(&text::render(&context))?;
    }
    let mut runs = context.first.runs.iter().chain(&context.second.runs);
    let invalid = runs.any(|run| run.validity().state == RunState::Invalid);
    Ok(if invalid { Outcome::Invalid } else { Outcome::Fine })
}

fn context(sides: Sides) -> CompareContext {
    let Sides { first, second, pairing, remarks } = sides;
    let differences = judge::differences(&first.runs, &second.runs, pairing);
    let (verdict, mut reasons) = judge::verdict(&first.runs, &second.runs, pairing).unzip();
    reasons.get_or_insert_default().extend(remarks);
    CompareContext {
        schema_version: COMPARE_SCHEMA_VERSION,
        first,
        second,
        pairing,
        alpha: judge::ALPHA,
        verdict,
        reasons: reasons.unwrap_or_default(),
        differences,
    }
}
