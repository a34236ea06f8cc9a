//! `plumb sort`: a file of lines or records into another one, measured like a run.

use crate::arguments::Sort;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::{Audience, ProgressObserver, Watch};
use crate::{bundle, command_line, output, run, settings};
use plumb_engine::EngineError;
use plumb_engine::line_sort::{Compared, LineSortSpec, Part, Shape, SortKey, SortOrder, Ties};
use plumb_host::device::DeviceDescription;
use plumb_io::named_directory;
use plumb_run::place::Places;
use plumb_run::workload::named_file::{self, directory_of};
use std::fs;
use std::path::Path;

/// Most bytes of a record: with its key it fits a block.
const RECORD_BYTES_MAX: usize = 16_000;

/// Sorts the file, checks it and reports the run. If it fails, there is no output. A wrong output
/// is removed, and the outcome is INVALID.
pub fn run(arguments: &Sort) -> Result<Outcome, Failure> {
    require_files(arguments)?;
    let spec = spec(arguments)?;
    let settings = settings::parse_for_files(&arguments.set)?;
    require_plain(&spec.input)?;
    require_new(&spec.output)?;
    let places = Places::in_one(arguments.place());
    let devices = devices(&places, &spec)?;
    let interrupt = Interrupt::install()?;
    let bundle = bundle::reserve(arguments.bundle.as_deref(), None, &interrupt)?;
    let watch = Watch::start(if arguments.json { Audience::Nobody } else { Audience::Terminal });
    let progress = ProgressObserver { watch: &watch, interrupt: &interrupt };
    let request = named_file::Request {
        spec: &spec,
        settings,
        places: &places,
        devices: &devices,
        command_line: &command_line::typed(),
    };
    let record = named_file::sort(request, interrupt.cancel(), &progress)?;
    drop(watch);
    let document = plumb_pages::run::document(&record);
    if arguments.json {
        output::print(&(record.to_json()? + "\n"))?;
        if let Some(reservation) = &bundle {
            bundle::write(reservation.directory(), &bundle::of_run(&record, &document)?)?;
        }
        return Ok(run::outcome(&record));
    }
    let report = if arguments.report { output::report(&document) + "\n" } else { String::new() };
    bundle::show(&(report + &output::summary(&document)), bundle.as_ref(), &record, &document)?;
    let outcome = run::outcome(&record);
    match outcome {
        Outcome::Fine => output::print(&format!("{} is sorted\n", spec.output.display()))?,
        _ if spec.output.exists() => output::print(&format!(
            "{} is sorted and checked; the figures above are not to be believed\n",
            spec.output.display()
        ))?,
        _ => output::print("the output was wrong and has been removed\n")?,
    }
    Ok(outcome)
}

fn spec(arguments: &Sort) -> Result<LineSortSpec, Failure> {
    let shape = arguments.record.map_or(Shape::Lines, Shape::Records);
    let order = match arguments.record {
        Some(bytes) => order_of_records(arguments, bytes)?,
        None => order_of_lines(arguments)?,
    };
    Ok(LineSortSpec { input: arguments.input.clone(), output: arguments.output.clone(), shape, order })
}

fn order_of_records(arguments: &Sort, bytes: usize) -> Result<SortOrder, Failure> {
    if !(1..=RECORD_BYTES_MAX).contains(&bytes) {
        return Err(Failure::usage(format!("--record {bytes}: expected 1 to {RECORD_BYTES_MAX} bytes")));
    }
    let key = |text: &String| {
        let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
        let range = range.filter(|range: &std::ops::Range<usize>| !range.is_empty() && range.end <= bytes);
        let range = range.ok_or_else(|| {
            Failure::usage(format!("--key {text}: expected bytes of the record, as 0..10, up to 0..{bytes}"))
        })?;
        Ok(SortKey { part: Part::Bytes(range), compared: Compared::Bytes })
    };
    let keys = arguments.key.iter().map(key).collect::<Result<_, Failure>>()?;
    Ok(SortOrder { keys, ties: Ties::Bytes })
}

fn order_of_lines(arguments: &Sort) -> Result<SortOrder, Failure> {
    let delimiter = arguments.delimiter.as_deref().map(delimiter).transpose()?;
    let compared = if arguments.numeric { Compared::Numbers } else { Compared::Bytes };
    let key = |text: &String| {
        let (first, last) =
            text.split_once(',').map_or((text.as_str(), None), |(first, last)| (first, Some(last)));
        let number = |text: &str| text.parse::<usize>().ok().filter(|field| *field > 0);
        let fields = match (number(first), last.map(number)) {
            (Some(first), None) => Some((first, None)),
            (Some(first), Some(Some(last))) if first <= last => Some((first, Some(last))),
            _ => None,
        };
        let (first, last) = fields.ok_or_else(|| {
            Failure::usage(format!(
                "--key {text}: expected a field or two of a line, counted from 1, as 2 or 2,2 (with --record: bytes, as 0..10)"
            ))
        })?;
        Ok(SortKey { part: Part::Fields { first, last, delimiter }, compared })
    };
    let mut keys = arguments.key.iter().map(key).collect::<Result<Vec<_>, Failure>>()?;
    if keys.is_empty() && arguments.numeric {
        keys.push(SortKey { part: Part::Whole, compared });
    }
    if keys.is_empty() && delimiter.is_some() {
        return Err(Failure::usage(
            "--delimiter: without --key whole lines are compared; leave it out, or add --key N",
        ));
    }
    let ties = if arguments.stable { Ties::Input } else { Ties::Bytes };
    Ok(SortOrder { keys, ties })
}

/// Parses one byte between fields.
fn delimiter(text: &str) -> Result<u8, Failure> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if *byte != b'\n' => Ok(*byte),
        _ => Err(Failure::usage(format!("--delimiter {text:?}: expected one character of one byte, or tab"))),
    }
}

/// Fails on a dash: elsewhere it is standard input or output, but a pipe has no positions.
fn require_files(arguments: &Sort) -> Result<(), Failure> {
    let named = [("IN", "is read", &arguments.input), ("OUT", "is written", &arguments.output)];
    match named.into_iter().find(|(.., path)| *path == Path::new("-")) {
        None => Ok(()),
        Some((which, what, _)) => Err(Failure::usage(format!(
            "{which} is -, and a pipe cannot be: the file {what} at several places at once; name a file (./- for one that is \
             called so)"
        ))),
    }
}

/// Fails on a pipe, which cannot be read at several places at once.
fn require_plain(input: &Path) -> Result<(), Failure> {
    match fs::metadata(input) {
        Ok(found) if !found.is_file() => Err(Failure::run(format!(
            "{} is no plain file, and is read at several places at once: write what is in it to a file first",
            input.display()
        ))),
        // Opening a missing file reports it.
        _ => Ok(()),
    }
}

/// Fails if the output exists, before anything is made.
fn require_new(output: &Path) -> Result<(), Failure> {
    if fs::symlink_metadata(output).is_ok() {
        return Err(Failure::from(EngineError::FileExists { path: output.to_path_buf() }));
    }
    named_directory::require("OUT", directory_of(output)).map(|_| ()).map_err(Failure::from)
}

/// Returns the devices under the temporary database, the input and the output.
fn devices(places: &Places<'_>, spec: &LineSortSpec) -> Result<Vec<DeviceDescription>, Failure> {
    let mut devices = places.describe()?;
    for file in [&spec.input, &spec.output] {
        let directory = directory_of(file);
        // Opening a missing input reports it.
        let Ok(directory) = directory.canonicalize() else { continue };
        if devices.iter().all(|known| known.path != directory) {
            devices.push(plumb_io::describe_device(&directory)?);
        }
    }
    Ok(devices)
}
