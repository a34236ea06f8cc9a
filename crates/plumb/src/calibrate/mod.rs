//! `plumb calibrate`: what the storage under a path can do, measured and stored.
//!
//! ```text
//! PATH/plumb-calibration.json    the newest calibration: what later ones are compared with
//! BUNDLE/calibration.json        the same
//! BUNDLE/record.json             the program, the machine and the device that made it
//! BUNDLE/report.html, .txt       its report: with curves for a browser, in tables as text
//! BUNDLE/NAME_20261120_2104_*    iops, lat, mbps, ci and hist .csv, as ORION lays them out
//! ```
//!
//! Arguments are checked before anything is measured. The summary is printed before a file is
//! written, so that a full disk does not lose it.

mod progress_display;

use crate::arguments::{Calibrate, Shown};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Audience;
use crate::{bundle, command_line, cure, output};
use plumb_calibrate::{CalibrateError, Calibration, Mode, Options, calibrate, csv, leftovers};
use plumb_events::clock;
use plumb_host::device::DeviceDescription;
use plumb_io::named_directory;
use plumb_pages::calibration as document;
use plumb_pages::rendered;
use plumb_record as record;
use plumb_record::calendar::Moment;
use plumb_report::Document;
use plumb_run::stored;
use plumb_study::analysis::result::Standing;
use plumb_study::bundle::{CALIBRATION, json, text as bundle_text};
use plumb_study::provenance::Provenance;
use plumb_study::share::names::Names;
use plumb_study::share::{self, Shared};
use progress_display::ProgressDisplay;
use std::path::{Path, PathBuf};

/// The command's name in paths.
const NAME: &str = "calibrate";
/// The report that the command names first.
const PAGE: &str = "report.html";

/// Calibrates, prints the summary and writes the bundle.
///
/// # Errors
/// When the path is unusable, an option is out of range, a request fails, or
/// a result cannot be written.
pub fn run(arguments: &Calibrate) -> Result<Outcome, Failure> {
    let path = named_directory::require("--path", &arguments.path)?;
    let device = plumb_io::describe_device(&path)?;
    let earlier = stored::read(&arguments.path)?;
    let interrupt = Interrupt::install()?;
    let default = (!arguments.json).then_some(NAME);
    let bundle = bundle::reserve(arguments.bundle.as_deref(), default, &interrupt)?;
    let begin = Moment::of(clock::wall());
    let prefix = format!("{}_{}", arguments.test_name, begin.minute());
    let calibration = measure(arguments, &device, begin, &interrupt)?;
    let provenance = Provenance::of(&calibration, &device, command_line::typed());
    let report = document::document(&calibration, &provenance);
    let record = json(&calibration.stated())?;
    if arguments.json {
        output::print(&record)?;
    } else {
        let alike = |earlier: &Calibration| earlier.matches(&device) && earlier.asked_like(&calibration);
        let against = earlier.filter(alike).map(|earlier| document::against(&earlier, &calibration));
        let against = against.map_or(String::new(), |lines| format!("\n{lines}"));
        output::print(&(output::summary(&report) + &against + "\n"))?;
    }
    // Both are tried: a failure of one must not prevent the other.
    let stored = store(arguments, &calibration, &record);
    let bundled = bundle.as_ref().map(|reservation| {
        let directory = reservation.directory();
        bundle::write(directory, &files(&calibration, record, &provenance, &report, &prefix)?)?;
        let beside = format!("report.txt, {CALIBRATION} and {prefix}_{{iops,lat,mbps,ci,hist}}.csv");
        Ok::<_, Failure>(format!("  {} with {beside}\n", directory.join(PAGE).display()))
    });
    let stored = stored?.map(|path| format!("  {}\n", path.display()));
    let paths: String = bundled.transpose()?.into_iter().chain(stored).collect();
    if !arguments.json {
        output::print(&paths)?;
    }
    Ok(outcome(&calibration))
}

/// Exit code: a calibration in doubt ends as an unstable study does.
fn outcome(calibration: &Calibration) -> Outcome {
    if calibration.doubts().is_empty() { Outcome::Fine } else { Outcome::Stands(Standing::Unstable) }
}

/// The newest calibration of a path, if it has one that this version reads.
///
/// # Errors
/// When the file of that name is no calibration.
pub fn stored(path: &Path) -> Result<Option<Calibration>, Failure> {
    Ok(stored::read(path)?)
}

/// Renders the reports of a bundle again, and prints the summary.
///
/// # Errors
/// When a file of it is missing or of another version, or a report cannot be written.
pub fn rebuild(directory: &Path, shown: Shown) -> Result<Outcome, Failure> {
    let [calibration, provenance] = [CALIBRATION, record::FILE].map(|name| directory.join(name));
    let refused = |file: &Path, why: String| Failure::run(format!("{}: {why}", file.display()));
    let made = Calibration::from_json(&bundle_text(&calibration)?)
        .map_err(|error| refused(&calibration, error.to_string()))?;
    let by = Provenance::from_json(&bundle_text(&provenance)?)
        .map_err(|error| refused(&provenance, format!("does not say what made the calibration ({error})")))?;
    let report = document::document(&made, &by);
    let files = bundle::write(directory, &rendered(&report))?;
    match shown {
        Shown::Json => output::print(&bundle_text(&calibration)?)?,
        _ => output::print(&(output::summary(&report) + "\n" + &bundle::listed(&files)))?,
    }
    Ok(outcome(&made))
}

/// Replaces the names of a calibration's bundle, and makes its reports and tables again.
///
/// # Errors
/// When the bundle has no calibration that this program can read.
pub fn shared(directory: &Path, names: &mut Names) -> Result<Shared, Failure> {
    let refused = |why: String| Failure::run(format!("{}: {why}", directory.display()));
    let mut documents = Vec::new();
    for name in [CALIBRATION, record::FILE] {
        let text = bundle_text(&directory.join(name))?;
        let value = serde_json::from_str(&text).map_err(|error| refused(format!("{name}: {error}")))?;
        share::find(names, &value);
        documents.push(value);
    }
    let mut shared = Shared::default();
    documents.iter_mut().for_each(|value| shared.value(names, value));
    let [made, by] = [0, 1].map(|place| documents[place].to_string());
    let made = Calibration::from_json(&made).map_err(|error| refused(error.to_string()))?;
    let by = Provenance::from_json(&by).map_err(|error| refused(error.to_string()))?;
    let text = json(&documents[0])?;
    for (name, text) in files(&made, text, &by, &document::document(&made, &by), "calibration")? {
        shared.add(name, text);
    }
    Ok(shared)
}

fn measure(
    arguments: &Calibrate,
    device: &DeviceDescription,
    begin: Moment,
    interrupt: &Interrupt,
) -> Result<Calibration, Failure> {
    let options = options(arguments, begin);
    let others = leftovers(&device.path);
    let audience = if arguments.json { Audience::Nobody } else { Audience::Terminal };
    interrupt.begin();
    let display = ProgressDisplay::new(audience, &device.path, others, interrupt);
    let ended = calibrate(device, &options, &display);
    drop(display);
    interrupt.keep();
    ended.map_err(|error| failure(&error, interrupt))
}

fn options(arguments: &Calibrate, begin: Moment) -> Options {
    let mut options = Options {
        file_size: arguments.file_size,
        max_latency: arguments.max_latency,
        duration: arguments.duration,
        ..Options::new(arguments.run, arguments.seed, begin.iso())
    };
    // Given with another --run they have been refused (`arguments::unused`).
    arguments.advanced.apply(&mut options);
    options
}

fn failure(error: &CalibrateError, interrupt: &Interrupt) -> Failure {
    match error {
        CalibrateError::Cancelled => interrupt.failure(),
        CalibrateError::Option { option, value, range } => {
            Failure::usage(format!("--{} {value} is not possible: {range}", option.replace('_', "-")))
        }
        other => Failure::run(format!("{other}{}", cure::of_calibration(other))),
    }
}

/// Stores it for later runs, unless it is advanced: that one has only the points that it names, and
/// would replace one with all main figures.
fn store(arguments: &Calibrate, calibration: &Calibration, record: &str) -> Result<Option<PathBuf>, Failure> {
    if calibration.mode == Mode::Advanced {
        return Ok(None);
    }
    Ok(Some(stored::write(&arguments.path, record)?))
}

/// The files of a bundle: name and text.
fn files(
    calibration: &Calibration,
    record: String,
    provenance: &Provenance,
    report: &Document,
    prefix: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let reports = rendered(report).map(|(name, text)| (name.to_string(), text));
    let records = [(CALIBRATION.to_string(), record), (record::FILE.to_string(), json(provenance)?)];
    Ok(reports.into_iter().chain(records).chain(tables(calibration, prefix)).collect())
}

/// The CSV files of a bundle: name and text.
fn tables(calibration: &Calibration, prefix: &str) -> Vec<(String, String)> {
    let matrix = calibration.matrix();
    let tables = [
        ("iops", csv::iops(&matrix)),
        ("lat", csv::latency(&matrix)),
        ("mbps", csv::mbps(&matrix)),
        ("ci", csv::intervals(calibration)),
        ("hist", csv::histograms(calibration)),
    ];
    tables.into_iter().map(|(kind, text)| (format!("{prefix}_{kind}.csv"), text)).collect()
}
