//! `plumb calibrate`: measures the storage under a path and stores the result.
//!
//! ```text
//! PATH/plumb-calibration.json    the newest calibration, which later ones are compared with
//! BUNDLE/calibration.json        the same
//! BUNDLE/record.json             the program, the machine and the device that made it
//! BUNDLE/report.html, .txt       its report: with curves for a browser, in tables as text
//! BUNDLE/NAME_20261120_2104_*    iops, lat, mbps, ci and hist .csv, as ORION lays them out
//! ```
//!
//! Arguments are checked before anything is measured. The summary is printed before a file is
//! written, so that a full disk does not lose it.

mod progress_display;

use crate::arguments::{Calibrate, PrintForm};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Audience;
use crate::{bundle, command_line, cure, output};
use plumb_calibrate::{CalibrateError, Calibration, Mode, Options, VolumeLayout, busy, calibrate, csv};
use plumb_events::clock;
use plumb_host::device::DeviceDescription;
use plumb_io::named_directory;
use plumb_pages::calibration as document;
use plumb_pages::rendered;
use plumb_record as record;
use plumb_record::calendar::Moment;
use plumb_report::Document;
use plumb_run::calibration_store;
use plumb_share::Tokens;
use plumb_study::analysis::result::Standing;
use plumb_study::bundle::{CALIBRATION, json, text as bundle_text};
use plumb_study::provenance::Provenance;
use plumb_study::share::Shared;
use plumb_units::Bytes;
use progress_display::ProgressDisplay;
use std::path::{Path, PathBuf};

/// The command's name in paths.
const NAME: &str = "calibrate";
/// The report that the command names first.
const PAGE: &str = "report.html";

/// Calibrates, prints the summary and writes the bundle. Fails if the path is unusable, an option
/// is out of range, a request fails, or a result cannot be written.
pub fn run(arguments: &Calibrate) -> Result<Outcome, Failure> {
    let devices = devices(&arguments.path)?;
    let kept = kept_under(arguments);
    let earlier = kept.map(calibration_store::read).transpose()?.flatten();
    let interrupt = Interrupt::install()?;
    may_load(arguments, &devices)?;
    let default = (!arguments.json).then_some(NAME);
    let bundle = bundle::reserve(arguments.bundle.as_deref(), default, &interrupt)?;
    let begin = Moment::of(clock::wall());
    let prefix = format!("{}_{}", arguments.test_name, begin.minute());
    let calibration = measure(arguments, &devices, begin, &interrupt)?;
    let device = &devices[0];
    let provenance = Provenance::of(&calibration, device, command_line::typed());
    let report = document::document(&calibration, &provenance);
    let record = json(&calibration.stated())?;
    if arguments.json {
        output::print(&report.answered(&record))?;
    } else {
        let alike = |earlier: &Calibration| earlier.matches(device) && earlier.asked_like(&calibration);
        let against = earlier.filter(alike).map(|earlier| document::against(&earlier, &calibration));
        let against = against.map_or(String::new(), |lines| format!("\n{lines}"));
        output::print(&(output::summary(&report) + &against + "\n"))?;
    }
    // Both are tried: a failure of one must not prevent the other.
    let stored = kept.map(|path| calibration_store::write(path, &record)).transpose();
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

/// Returns the exit code: that of UNSTABLE for a calibration in doubt, that of IMPOSSIBLE for one
/// with a figure above its link.
fn outcome(calibration: &Calibration) -> Outcome {
    match calibration.doubts().is_empty() {
        _ if !calibration.impossible().is_empty() => Outcome::Stands(Standing::Impossible),
        true => Outcome::Fine,
        false => Outcome::Stands(Standing::Unstable),
    }
}

/// Describes the device under each path.
fn devices(paths: &[PathBuf]) -> Result<Vec<DeviceDescription>, Failure> {
    let mut devices: Vec<DeviceDescription> = Vec::new();
    for path in paths {
        let path = named_directory::require("--path", path)?;
        if devices.iter().any(|device| device.path == path) {
            let path = path.display();
            return Err(Failure::usage(format!("--path {path} is given twice: name each path once")));
        }
        devices.push(plumb_io::describe_device(&path)?);
    }
    Ok(devices)
}

/// Asks before it loads a device that others use. Without a terminal no user can answer, so the
/// result says that it is in doubt.
fn may_load(arguments: &Calibrate, devices: &[DeviceDescription]) -> Result<(), Failure> {
    if arguments.yes || arguments.json || !output::can_ask() {
        return Ok(());
    }
    let Some((device, requests)) = devices.iter().find_map(|device| Some((device, busy(device)?))) else {
        return Ok(());
    };
    let limit = arguments
        .max_rate
        .map_or("all that it can take".to_string(), |rate| format!("at most {rate} requests a second"));
    let disk = device.block.as_ref().map_or("the device", |block| &block.disk);
    let question = format!(
        "{disk} serves {requests:.0} requests a second of others, and a calibration adds {limit}. Go on? [y/N] "
    );
    match output::agreed(&question)? {
        Some(false) => Err(Failure::run(
            "nothing was measured; --yes does not ask, --max-rate limits the load".to_string(),
        )),
        _ => Ok(()),
    }
}

/// Returns the newest calibration of a path, if this version can read one. Fails if the file of
/// that name is no calibration.
pub fn stored(path: &Path) -> Result<Option<Calibration>, Failure> {
    Ok(calibration_store::read(path)?)
}

/// Renders the reports of a bundle again, and prints the summary.
pub fn rebuild(directory: &Path, shown: PrintForm) -> Result<Outcome, Failure> {
    let [calibration, provenance] = [CALIBRATION, record::FILE].map(|name| directory.join(name));
    let refused = |file: &Path, why: String| Failure::run(format!("{}: {why}", file.display()));
    let made = Calibration::from_json(&bundle_text(&calibration)?)
        .map_err(|error| refused(&calibration, error.to_string()))?;
    let by = Provenance::from_json(&bundle_text(&provenance)?)
        .map_err(|error| refused(&provenance, format!("does not say what made the calibration ({error})")))?;
    let report = document::document(&made, &by);
    let files = bundle::write(directory, &rendered(&report))?;
    match shown {
        PrintForm::Json => output::print(&report.answered(&bundle_text(&calibration)?))?,
        _ => output::print(&(output::summary(&report) + "\n" + &bundle::listed(&files)))?,
    }
    Ok(outcome(&made))
}

/// Copies a calibration's bundle without its names, and makes its reports and tables again. Fails
/// if the bundle has no calibration that this program can read.
pub fn shared(directory: &Path, tokens: &mut Tokens) -> Result<Shared, Failure> {
    let refused = |why: String| Failure::run(format!("{}: {why}", directory.display()));
    let mut documents = Vec::new();
    for name in [CALIBRATION, record::FILE] {
        let text = bundle_text(&directory.join(name))?;
        let mut value = serde_json::from_str(&text).map_err(|error| refused(format!("{name}: {error}")))?;
        plumb_record::share::replace_names(tokens, &mut value);
        documents.push(value);
    }
    let [made, by] = [0, 1].map(|place| documents[place].to_string());
    let made = Calibration::from_json(&made).map_err(|error| refused(error.to_string()))?;
    let by = Provenance::from_json(&by).map_err(|error| refused(error.to_string()))?;
    let text = json(&documents[0])?;
    let files = files(&made, text, &by, &document::document(&made, &by), "calibration")?;
    Ok(files.into_iter().map(|(name, text)| (name, text.into())).collect())
}

fn measure(
    arguments: &Calibrate,
    devices: &[DeviceDescription],
    begin: Moment,
    interrupt: &Interrupt,
) -> Result<Calibration, Failure> {
    let options = options(arguments, begin);
    let paths: Vec<&Path> = devices.iter().map(|device| device.path.as_path()).collect();
    let audience = if arguments.json { Audience::Nobody } else { Audience::Terminal };
    interrupt.begin();
    let display = ProgressDisplay::new(audience, &paths, interrupt);
    let ended = calibrate(devices, &options, &display);
    drop(display);
    interrupt.keep();
    ended.map_err(|error| failure(&error, interrupt))
}

fn options(arguments: &Calibrate, begin: Moment) -> Options {
    let mut options = Options {
        file_size: arguments.file_size,
        max_latency: arguments.max_latency,
        duration: arguments.duration,
        layout: arguments.simulate.unwrap_or(VolumeLayout::Concat),
        stripe: arguments.stripe.unwrap_or(Bytes(Bytes::M)),
        link: arguments.link,
        sustain: arguments.sustain,
        max_rate: arguments.max_rate,
        ..Options::new(arguments.run, arguments.seed, begin.iso())
    };
    // With another --run they have been rejected already (`arguments::unused`).
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

/// The path under which the result is kept for later runs. An advanced one has only the points that
/// it names, one of several paths or with a limit is not what the device can do: none of them may
/// take the place of one with all main figures.
fn kept_under(arguments: &Calibrate) -> Option<&Path> {
    let whole = arguments.run != Mode::Advanced && arguments.max_rate.is_none();
    match arguments.path.as_slice() {
        [path] if whole => Some(path),
        _ => None,
    }
}

/// Returns the files of a bundle: name and text.
fn files(
    calibration: &Calibration,
    record: String,
    provenance: &Provenance,
    report: &Document,
    prefix: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let reports = rendered(report).map(|(name, text)| (name.to_string(), text));
    let records = [(CALIBRATION.to_string(), record), (record::FILE.to_string(), json(provenance)?)];
    // The measurement first: without it a bundle is half.
    Ok(records.into_iter().chain(reports).chain(tables(calibration, prefix)).collect())
}

/// Returns the CSV files of a bundle: name and text.
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
