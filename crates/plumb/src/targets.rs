//! The kinds of targets: one row each.

use plumb_lab::LabError;
use plumb_lab::study::Study;
use plumb_lab::target::child::Runner;
use plumb_lab::target::command::{CommandTarget, Commands};
use plumb_lab::target::embedded::{Embedded, Engine};
use plumb_lab::target::{Opening, Target};
use plumb_lab::vocabulary::{Kinds, TargetKind};

/// What study files may name; the first is meant where one names none.
pub const KINDS: &Kinds = &[&Engine, &Commands];

/// Runners, one for each kind: they make a run in a process of its own.
pub const RUNNERS: &[&dyn Runner] = &[&Engine, &Commands];

/// Opens the target of a study.
///
/// # Errors
/// When it cannot be opened.
pub fn open<'a>(study: &Study, opening: Opening<'a>) -> Result<Box<dyn Target + 'a>, LabError> {
    Ok(match study.vocabulary.target() == Commands.name() {
        true => Box::new(CommandTarget::open(study, opening)?),
        false => Box::new(Embedded::open(study, opening)?),
    })
}
