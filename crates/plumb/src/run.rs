//! `plumb run`: a workload from nothing to its report.

use crate::arguments::Run;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::{Audience, ProgressObserver, Watch};
use crate::{bundle, command_line, output, settings};
use plumb_engine::{EngineError, Setting};
use plumb_record::{Record, RunState};
use plumb_run::RunError;
use plumb_run::place::Places;
use plumb_run::workload::{self, Ran, Request};
use plumb_study::bundle::Reservation;
use plumb_units::visible;
use plumb_workload::slob::SLOB;
use plumb_workload::slob_conf::{self, SlobConf};
use plumb_workload::{Work, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most requests of a trace: 160 MB of memory, allocated as they come, and some
/// 40 MB in the bundle.
const TRACED: &str = "4M";
/// Bytes of a slob.conf at most.
const CONF_MOST: u64 = 16 << 20;

/// Runs the workload and reports it. A failed verification is an outcome, not an error.
pub fn run(arguments: &Run) -> Result<Outcome, Failure> {
    if arguments.trace && arguments.json && arguments.bundle.is_none() {
        let why = "--trace with --json has no bundle to keep the requests in; name one with --bundle, or leave one of them out";
        return Err(Failure::usage(why));
    }
    let (work, origins) = work(arguments)?;
    let mut settings = settings::parse(&arguments.set)?;
    if let Some(interval) = arguments.snapshot {
        settings.set("snapshot_interval", &(interval.0 / 1_000_000).to_string(), "--snapshot")?;
    }
    if arguments.trace {
        settings.set(Setting::DebugTraceRequests.row().name, TRACED, "--trace")?;
    }
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
    let ran = workload::run(request, interrupt.cancel(), &progress);
    let Ran { record, trace, mut database } = ran.map_err(|error| with_origins(error, &origins))?;
    drop(watch);
    if arguments.keep {
        interrupt.keep();
        output::remark(&format!("the database stays in {}\n", database.keep().display()));
    }
    drop(database);
    show(arguments, bundle.as_ref(), &record)?;
    if let (Some(reservation), Some(trace)) = (&bundle, trace) {
        bundle::write_trace(reservation.directory(), &trace)?;
    }
    Ok(outcome(&record))
}

/// Returns the prefix of a default bundle name; none with --json, which writes a bundle
/// only if one is named.
fn default_name(arguments: &Run) -> Option<&'static str> {
    (!arguments.json).then_some(arguments.work.workload.name)
}

/// Place in a file where each parameter is given.
type Origins = BTreeMap<&'static str, String>;

/// Returns the workload with its parameters: those of a file, replaced by those of the command
/// line. Also returns the file's places that still count.
fn work(arguments: &Run) -> Result<(Work, Origins), Failure> {
    let workload = arguments.work.workload;
    let given = &arguments.work.given;
    let Some(conf) = &arguments.conf else { return Ok((filled(workload, None, given)?, Origins::new())) };
    let read = of_file(conf, workload)?;
    let mut origins = read.origins.clone();
    origins.retain(|parameter, _| given.iter().all(|(name, _)| name != parameter));
    Ok((filled(workload, Some((path_shown(conf), read)), given)?, origins))
}

/// Adds to an error the places of the parameters that it names, if a file gave them.
fn with_origins(error: RunError, origins: &Origins) -> Failure {
    let sides = match &error {
        RunError::Engine(EngineError::Contradiction { first, second, .. }) => {
            [first, second].map(|side| side.split('=').next().unwrap_or_default()).to_vec()
        }
        RunError::NoRoom { .. } => vec!["scale"],
        _ => Vec::new(),
    };
    let places: Vec<&str> =
        sides.into_iter().filter_map(|name| origins.get(name)).map(String::as_str).collect();
    let shown = if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) };
    let failure = Failure::from(error);
    Failure { message: failure.message + &shown, ..failure }
}

/// Returns the workload with the parameters of a file, which messages name, and
/// those of the command line.
fn filled(
    workload: &'static Workload,
    conf: Option<(String, SlobConf)>,
    given: &[(&'static str, String)],
) -> Result<Work, Failure> {
    let mut work = Work::of(workload);
    let (conf, read) = conf.unzip();
    let of_conf = |why: String| Failure::usage(format!("{}: {why}", conf.as_deref().unwrap_or_default()));
    for (name, value) in read.iter().flat_map(|read| &read.given) {
        work.set(name, value).map_err(of_conf)?;
    }
    given
        .iter()
        .try_for_each(|(name, text)| work.set(name, text))
        .map_err(|why| Failure::usage(format!("--{why}")))?;
    let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    if let Some((parameter, why)) = work.without_effect(&names) {
        let what = format!("--{}: it has no effect, for {why}; or leave it out", parameter.name);
        return Err(Failure::usage(what));
    }
    // The hot spot is a part of the table's final length.
    let size = read.and_then(|read| read.hotspot_size(work.value("scale")?));
    if let Some(size) = size.filter(|_| !given.iter().any(|(name, _)| *name == "hotspot-size")) {
        work.set("hotspot-size", &size).map_err(of_conf)?;
    }
    Ok(work)
}

/// Reads a slob.conf, and reports its lines without effect.
fn of_file(conf: &Path, workload: &Workload) -> Result<SlobConf, Failure> {
    let name = path_shown(conf);
    if workload.name != SLOB.name {
        let what = format!("--conf {name}: {} takes no slob.conf; it is for plumb run slob", workload.name);
        return Err(Failure::usage(what));
    }
    let bytes = plumb_host::regular::read_regular(conf, CONF_MOST)
        .map_err(|error| Failure::usage(format!("--conf {name}: {error}")))?;
    // A comment may be in any encoding; a value that is no text is refused as a value.
    let read = slob_conf::read(&name, &String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::usage(error.to_string()))?;
    read.remarks.iter().for_each(|remark| output::remark(&format!("{remark}\n")));
    Ok(read)
}

/// Formats a path for messages.
fn path_shown(path: &Path) -> String {
    visible(&path.display().to_string()).to_string()
}

fn places(arguments: &Run) -> Places<'_> {
    let Some(log) = &arguments.log_path else {
        return Places {
            users: &arguments.data_path,
            temp: &arguments.temp_path,
            indx: &arguments.index_path,
            ..Places::in_one(&arguments.path)
        };
    };
    // The home is the log's place, so the others need places of their own.
    let rest = std::slice::from_ref(&arguments.path);

    Places {
        home: log,
        home_argument: "--log-path",
        users: or_rest(&arguments.data_path, rest),
        temp: or_rest(&arguments.temp_path, rest),
        indx: or_rest(&arguments.index_path, rest),
    }
}

fn or_rest<'a>(named: &'a [PathBuf], rest: &'a [PathBuf]) -> &'a [PathBuf] {
    if named.is_empty() { rest } else { named }
}

fn show(arguments: &Run, bundle: Option<&Reservation>, record: &Record) -> Result<(), Failure> {
    let document = plumb_pages::run::document(record);
    if arguments.json {
        output::print(&document.answered(&record.to_json()?))?;
        return bundle::keep(bundle, record, &document).map(|_| ());
    }
    let report = if arguments.quiet { String::new() } else { output::report(&document) + "\n" };
    let shown = report + &output::summary(&document);
    bundle::show(&shown, bundle, record, &document)
}

/// Returns the outcome of a run's record.
pub fn outcome(record: &Record) -> Outcome {
    match record.validity().state {
        RunState::Invalid => Outcome::INVALID,
        RunState::Valid | RunState::Unverified => Outcome::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file's own SCALE is 1000 blocks.
    #[test]
    fn the_hot_spot_of_a_slob_conf_is_a_part_of_the_table_that_there_will_be() {
        let check = |given: &[(&'static str, &str)], expect: &str| {
            let text = "DO_UPDATE_HOTSPOT=TRUE\nHOTSPOT_PCT=10\nSCALE=1000\n";
            let conf = slob_conf::read("slob.conf", text).expect("it can be read");
            let given: Vec<_> = given.iter().map(|(name, value)| (*name, (*value).to_string())).collect();
            let work = filled(&SLOB, Some(("slob.conf".to_string(), conf)), &given).expect("it can be done");
            let found = work.values().find(|(name, _)| *name == "hotspot-size").expect("a value").1;
            assert_eq!(found.to_string(), expect, "{given:?}");
        };
        check(&[], "100");
        check(&[("scale", "10000")], "1000");
        check(&[("scale", "80M")], "8M");
        check(&[("scale", "10000"), ("hotspot-size", "50")], "50");
    }
}
