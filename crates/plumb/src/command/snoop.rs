//! `plumb snoop`: every request of a running program, at the call and at the device.

use crate::arguments::{Snoop, View};
use crate::bundle;
use crate::command_line;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output;
use plumb_events::clock;
use plumb_record::calendar::Moment;
use plumb_record::{Header, Record};
use plumb_snoop::{Capture, Live, Show, SnoopError, Target, WORKLOAD};
use plumb_study::bundle::Reservation;
use plumb_study::machine;
use plumb_units::Nanos;
use std::time::Duration;

/// Interval between two rows of `--summary`.
const SECOND: Nanos = Nanos(1_000_000_000);

impl From<SnoopError> for Failure {
    fn from(error: SnoopError) -> Failure {
        Failure::run(error.to_string())
    }
}

/// Traces a program until it ends, the time is over, or Ctrl-C.
///
/// # Errors
/// When there is no such program, rights or tracepoints are missing, or the bundle cannot be
/// written.
pub fn run(arguments: &Snoop) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let bundle = bundle::reserve(arguments.bundle.as_deref(), None, &interrupt)?;
    let begin = (clock::wall(), clock::now());
    let mut capture = Capture::start(target(arguments))?;
    capture.directories().into_iter().for_each(|directory| interrupt.takes_apart(directory));
    let mut live = Live::new(show(arguments), capture.begin());
    follow(arguments, &mut capture, &mut live, &interrupt)?;
    capture.finish(&mut live)?;
    output::print(&live.take_lines())?;
    let elapsed = clock::now().saturating_sub(begin.1);
    let sums = capture.sums(&live);
    let record = plumb_snoop::record(header(arguments, begin.0, elapsed), sums, &live);
    ended(&mut capture);
    show_record(arguments, record, bundle.as_ref())
}

fn target(arguments: &Snoop) -> Target {
    match (arguments.pid, &arguments.name) {
        (Some(pid), _) => Target::Pid(pid),
        (None, Some(name)) => Target::Name(name.clone()),
        (None, None) => Target::Command(arguments.command.clone()),
    }
}

fn show(arguments: &Snoop) -> Show {
    match (arguments.view, arguments.summary) {
        _ if arguments.quiet || arguments.json => Show::Nothing,
        (_, true) => Show::Seconds,
        (View::Both, _) => Show::Both,
        (View::Calls, _) => Show::Calls,
        (View::Disk, _) => Show::Disk,
    }
}

/// Takes events until the end.
fn follow(
    arguments: &Snoop,
    capture: &mut Capture,
    live: &mut Live,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let begin = clock::now();
    let mut second = begin;
    loop {
        capture.step(live)?;
        let now = clock::now();
        if now.saturating_sub(second) >= SECOND {
            live.end_second();
            second = now;
        }
        output::print(&live.take_lines())?;
        let is_over = arguments.until.is_some_and(|until| now.saturating_sub(begin) >= until);
        if is_over || !capture.is_alive() || interrupt.cancel().check().is_err() {
            return Ok(());
        }
    }
}

/// Reports a command that failed. A command that still runs is ended with its trace.
fn ended(capture: &mut Capture) {
    if capture.is_alive() {
        return;
    }
    match capture.wait() {
        Some(Ok(ended)) if !ended.status.success() => {
            output::complain(&format!("the command ended with {}", ended.status));
        }
        Some(Err(error)) => output::complain(&format!("the end of the command is not known: {error}")),
        _ => {}
    }
}

fn header(arguments: &Snoop, begin: Duration, elapsed: Nanos) -> Header {
    Header {
        title: "PLUMB SNOOP".to_string(),
        workload: WORKLOAD.to_string(),
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        git_revision: option_env!("PLUMB_REVISION").map(str::to_string),
        host: machine::describe(),
        begin_time: Moment::of(begin).iso(),
        end_time: Moment::of(clock::wall()).iso(),
        elapsed_ns: elapsed.0,
        db_time_ns: None,
        db_cpu_ns: None,
        command_line: command_line::without_secrets(&command_line::words(), &arguments.secret),
        seed: 0,
        settings_hash: String::new(),
        clock_source: machine::clock_source(),
        clock_precision_ns: None,
    }
}

fn show_record(arguments: &Snoop, record: Record, bundle: Option<&Reservation>) -> Result<Outcome, Failure> {
    let document = plumb_pages::run::document(&record);
    if arguments.json {
        output::print(&record.to_json()?)?;
        bundle::keep(bundle, &record, &document)?;
        return Ok(Outcome::Fine);
    }
    let elapsed = Nanos(record.header.elapsed_ns);
    let sums = record.snoop.as_ref().map_or(String::new(), |snoop| plumb_snoop::sums(snoop, elapsed));
    bundle::show(&sums, bundle, &record, &document)?;
    Ok(Outcome::Fine)
}
