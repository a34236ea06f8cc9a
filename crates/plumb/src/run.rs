//! `plumb run`: a workload from nothing to its report.

use crate::arguments::Run;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::{Audience, ProgressObserver, Watch};
use crate::{bundle, command_line, output, settings};
use plumb_lab::bundle::Reservation;
use plumb_lab::document;
use plumb_lab::place::Places;
use plumb_lab::record::{Record, RunState};
use plumb_lab::workload::{self, Request};
use plumb_workload::Work;

/// Runs the workload.
///
/// # Errors
/// When it cannot run to its end. A failed verification is no error but an outcome.
pub fn run(arguments: &Run) -> Result<Outcome, Failure> {
    let work = work(arguments)?;
    let settings = settings::parse(&arguments.set)?;
    let places = places(arguments);
    let devices = places.describe()?;
    let interrupt = Interrupt::install()?;
    let bundle = bundle::reserve(arguments.bundle.as_deref(), default_name(arguments), &interrupt)?;
    let watch = Watch::start(if arguments.json { Audience::Nobody } else { Audience::Terminal });
    let request = Request {
        work: &work,
        settings,
        places: &places,
        devices: &devices,
        command_line: &command_line::typed(),
    };
    let progress = ProgressObserver { watch: &watch, interrupt: &interrupt };
    let (record, mut database) = workload::run(request, interrupt.cancel(), &progress)?;
    drop(watch);
    if arguments.keep {
        interrupt.keep();
        output::remark(&format!("the database stays in {}\n", database.keep().display()));
    }
    drop(database);
    show(arguments, bundle.as_ref(), &record)?;
    Ok(outcome(&record))
}

/// The prefix of a default bundle name; none with --json, which writes a bundle only if one is named.
fn default_name(arguments: &Run) -> Option<&'static str> {
    (!arguments.json).then_some(arguments.work.workload.name)
}

/// The workload with its parameters.
fn work(arguments: &Run) -> Result<Work, Failure> {
    let mut work = Work::of(arguments.work.workload);
    let given = &arguments.work.given;
    given
        .iter()
        .try_for_each(|(name, text)| work.set(name, text))
        .map_err(|why| Failure::usage(format!("--{why}")))?;
    Ok(work)
}

fn places(arguments: &Run) -> Places<'_> {
    Places {
        home: &arguments.path,
        users: &arguments.data_path,
        temp: &arguments.temp_path,
        indx: &arguments.index_path,
    }
}

fn show(arguments: &Run, bundle: Option<&Reservation>, record: &Record) -> Result<(), Failure> {
    let document = document::run::document(record);
    if arguments.json {
        output::print(&(record.to_json()? + "\n"))?;
        let Some(reservation) = bundle else { return Ok(()) };
        return bundle::write(reservation.directory(), &bundle::of_run(record, &document)?).map(|_| ());
    }
    let shown = output::report(&document) + "\n" + &output::summary(&document);
    bundle::show(&shown, bundle, record, &document)
}

/// The exit code that follows from a report.
#[must_use]
pub fn outcome(record: &Record) -> Outcome {
    match record.validity().state {
        RunState::Invalid => Outcome::INVALID,
        RunState::Valid | RunState::Unverified => Outcome::Fine,
    }
}
