//! `plumb snoop`: every request of a running program, at the call and at the device.

use crate::arguments::{SnoopOf, View};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output;
use crate::{bundle, command_line};
use plumb_events::clock;
use plumb_host::process::Ended;
use plumb_record::{Header, Record};
use plumb_snoop::{Capture, Flow, Live, ProcSampling, Show, SnoopError, SnoopTarget, WORKLOAD, is_refusal};
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
/// Fails if there is no such program, rights or tracepoints are missing, or the bundle cannot be
/// written.
pub fn run(arguments: &SnoopOf) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    if arguments.flow {
        return flow(arguments, &interrupt);
    }
    let bundle = bundle::reserve(arguments.bundle.as_deref(), None, &interrupt)?;
    let begin = Begin { wall: clock::wall(), monotonic: clock::now() };
    if arguments.sample {
        let sampler = ProcSampling::start(target(arguments), String::new())?;
        return sample(arguments, sampler, &begin, bundle.as_ref(), &interrupt);
    }
    let mut capture = match Capture::start(target(arguments)) {
        Err(error) if is_refusal(&error) => {
            let sampler = ProcSampling::start(target(arguments), error.to_string())?;
            output::complain(&format!("{error}; samples of /proc are shown instead"));
            return sample(arguments, sampler, &begin, bundle.as_ref(), &interrupt);
        }
        started => started?,
    };
    capture.directories().into_iter().for_each(|directory| interrupt.takes_apart(directory));
    let mut live = Live::new(show(arguments), capture.begin());
    follow(arguments, &mut capture, &mut live, &interrupt)?;
    capture.finish(&mut live)?;
    live.end_last_second();
    output::print(&live.take_lines())?;
    let sums = capture.sums(&live);
    let record = plumb_snoop::record(header(arguments, &begin), sums, &live);
    if !capture.is_alive() {
        ended(capture.wait());
    }
    show_record(arguments, &record, bundle.as_ref())
}

/// Start of a trace by both clocks.
struct Begin {
    wall: Duration,
    monotonic: Nanos,
}

/// True until the time is over or a signal arrives.
fn goes_on(arguments: &SnoopOf, begin: Nanos, interrupt: &Interrupt) -> bool {
    let elapsed = clock::now().saturating_sub(begin);
    arguments.until.is_none_or(|until| elapsed < until) && interrupt.cancel().check().is_ok()
}

fn sample(
    arguments: &SnoopOf,
    mut sampler: ProcSampling,
    begin: &Begin,
    bundle: Option<&Reservation>,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    interrupt.begin_reading();
    loop {
        sampler.step();
        if !sampler.is_alive() || !goes_on(arguments, begin.monotonic, interrupt) {
            break;
        }
    }
    if !sampler.is_alive() {
        ended(sampler.wait());
    }
    let record = plumb_snoop::sampled(header(arguments, begin), sampler.sums()?);
    show_record(arguments, &record, bundle)
}

fn flow(arguments: &SnoopOf, interrupt: &Interrupt) -> Result<Outcome, Failure> {
    let mut flow = Flow::start(&target(arguments))?;
    flow.directories().into_iter().for_each(|directory| interrupt.takes_apart(directory));
    let begin = clock::now();
    loop {
        // The events of a command that has ended are in the buffers.
        let is_last = !flow.is_alive();
        flow.step()?;
        if is_last || !goes_on(arguments, begin, interrupt) {
            break;
        }
    }
    output::print(&flow.text())?;
    if !flow.is_alive() {
        ended(flow.wait());
    }
    Ok(Outcome::Fine)
}

fn target(arguments: &SnoopOf) -> SnoopTarget {
    match (arguments.pid, &arguments.name) {
        (Some(pid), _) => SnoopTarget::Pid(pid),
        (None, Some(name)) => SnoopTarget::Name(name.clone()),
        (None, None) => SnoopTarget::Command(arguments.command.clone()),
    }
}

fn show(arguments: &SnoopOf) -> Show {
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
    arguments: &SnoopOf,
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
        if !capture.is_alive() || !goes_on(arguments, begin, interrupt) {
            return Ok(());
        }
    }
}

/// Reports a command that failed.
fn ended(command: Option<std::io::Result<Ended>>) {
    match command {
        Some(Ok(ended)) if !ended.status.success() => {
            output::complain(&format!("the command ended with {}", ended.status));
        }
        Some(Err(error)) => output::complain(&format!("the end of the command is not known: {error}")),
        _ => {}
    }
}

fn header(arguments: &SnoopOf, begin: &Begin) -> Header {
    Header {
        elapsed_ns: clock::now().saturating_sub(begin.monotonic).0,
        command_line: command_line::without_secrets(&command_line::words(), &arguments.secret),
        ..machine::header("PLUMB SNOOP".to_string(), WORKLOAD, [begin.wall, clock::wall()])
    }
}

/// Returns the record without the values of secrets, which paths may have.
fn without_secrets(record: &Record, variables: &[String]) -> Result<Record, Failure> {
    if variables.is_empty() {
        return Ok(record.clone());
    }
    let mut document: serde_json::Value = serde_json::from_str(&record.to_json()?)
        .map_err(|error| Failure::run(format!("the record cannot be read back: {error}")))?;
    command_line::hide_values(&mut document, variables);
    Ok(Record::from_json(&document.to_string())?)
}

fn show_record(
    arguments: &SnoopOf,
    record: &Record,
    bundle: Option<&Reservation>,
) -> Result<Outcome, Failure> {
    let record = &without_secrets(record, &arguments.secret)?;
    let document = plumb_pages::run::document(record);
    if arguments.json {
        output::print(&document.answered(&record.to_json()?))?;
        bundle::keep(bundle, record, &document)?;
        return Ok(Outcome::Fine);
    }
    let elapsed = Nanos(record.header.elapsed_ns);
    let sums = record.snoop.as_ref().map_or(String::new(), |snoop| plumb_snoop::sums(snoop, elapsed));
    bundle::show(&(output::answer(&document) + &sums), bundle, record, &document)?;
    Ok(Outcome::Fine)
}
