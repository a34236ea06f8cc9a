//! The kinds of targets, and the makers of leftovers: one row each.

use crate::traced::Tracer;
use plumb_calibrate::ScratchLeftover;
use plumb_engine::backup::FillingLeftover;
use plumb_engine::file_sort::OutputLeftover;
use plumb_host::leftover::Leftover;
use plumb_postgres::leftover::VisitLeftover;
use plumb_postgres::visit::{Visit, VisitedTarget};
use plumb_postgres::{Postgres, PostgresTarget, ServerLeftover};
use plumb_run::TemporaryLeftover;
use plumb_run::embedded::{Embedded, Engine};
use plumb_run::loops::LoopLeftover;
use plumb_snoop::TraceLeftover;
use plumb_study::StudyError;
use plumb_study::bundle::BundleLeftover;
use plumb_study::definition::Study;
use plumb_study::file_journal::WrittenLeftover;
use plumb_study::targets::child::Runner;
use plumb_study::targets::command::{CommandTarget, Commands};
use plumb_study::targets::{Opening, Target};
use plumb_study::vocabulary::{Kinds, TargetKind};

/// Kinds that study files may name; the first is the default.
pub const KINDS: &Kinds = &[&Engine, &Commands, &Postgres];

/// Runners, one for each kind, which make a run in a process of its own.
pub const RUNNERS: &[&dyn Runner] = &[&Engine, &Commands, &Postgres];

/// Makers of things that outlive a kill. A marked directory goes to the first that claims it: those
/// that know it by its name come before those that know it by its parts.
pub const LEFTOVERS: &[&dyn Leftover] = &[
    &TemporaryLeftover,
    &ScratchLeftover,
    &LoopLeftover,
    &ServerLeftover,
    &OutputLeftover,
    &WrittenLeftover,
    &FillingLeftover,
    &BundleLeftover,
    &VisitLeftover,
    &TraceLeftover,
];

/// Opens the target of a study; with a visit it is that server.
pub fn open<'a>(
    study: &Study,
    visit: Option<Visit>,
    opening: Opening<'a>,
) -> Result<Box<dyn Target + 'a>, StudyError> {
    if let Some(visit) = visit {
        return Ok(Box::new(VisitedTarget::open(study, visit, opening)?));
    }
    Ok(match study.vocabulary.target() {
        target if target == Commands.name() => Box::new(CommandTarget::open(study, opening)?),
        target if target == Postgres.name() => {
            Box::new(PostgresTarget::open(study, opening)?.traced_by(&Tracer))
        }
        _ => Box::new(Embedded::open(study, opening)?),
    })
}
