//! `plumb calibrate`: what the storage under a path can do, measured and stored.
//!
//! ```text
//! PATH/plumb-calibration.json    the newest calibration: what later ones are compared with
//! BUNDLE/calibration.json        the same
//! BUNDLE/record.json             what its report says, the device and the host described
//! BUNDLE/report.html             the same with its curves, for a browser
//! BUNDLE/NAME_20261120_2104_*    iops, lat, mbps, ci and hist .csv, as ORION lays them out
//! ```
//!
//! What can be refused is refused before anything is measured; the summary is
//! printed before a file is written, whatever becomes of that.

mod context;
mod progress_display;

use crate::arguments::Calibrate;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Audience;
use crate::{bundle, output};
use plumb_calibrate::{
    AGREEMENT_LIMIT, Agreement, CalibrateError, Calibration, Disagreement, Mode, Options, calibrate, csv,
    leftovers,
};
use plumb_events::clock;
use plumb_io::device::{self, DeviceDescription};
use plumb_lab::bundle::CALIBRATION;
use plumb_lab::calendar::Moment;
use plumb_lab::document::calibration::{self, CalibrationContext};
use plumb_lab::record;
use plumb_lab::{place, stored};
use plumb_report::html;
use progress_display::ProgressDisplay;
use std::path::{Path, PathBuf};

/// The command's name in paths.
const NAME: &str = "calibrate";
/// Its report.
const REPORT: &str = "report.html";
/// Lines of a summary are no longer than this.
const WIDTH: usize = 100;
/// What the further lines of a broken line begin with.
const INDENT: &str = "    ";

/// Calibrates.
///
/// # Errors
/// When the path will not do, an option is out of range, a request fails, or a
/// result cannot be written.
pub fn run(arguments: &Calibrate) -> Result<Outcome, Failure> {
    let path = place::require_directory("--path", &arguments.path)?;
    let device = device::describe(&path)?;
    let earlier = stored::read(&arguments.path)?;
    let bundle = bundle_directory(arguments);
    bundle.as_deref().map_or(Ok(()), bundle::require_writable)?;
    if let Some(directory) = bundle.as_deref().filter(|directory| directory.join(CALIBRATION).exists()) {
        let directory = directory.display();
        return Err(Failure::usage(format!(
            "--bundle {directory} holds a calibration already; name another directory"
        )));
    }
    let interrupt = Interrupt::install()?;
    let begin = Moment::of(clock::wall());
    let prefix = format!("{}_{}", arguments.test_name, begin.minute());
    let calibration = measure(arguments, &device, begin, &interrupt)?;
    let record = serde_json::to_string(&calibration)
        .map_err(|error| Failure::run(format!("the calibration cannot be written as JSON: {error}")))?
        + "\n";
    if arguments.json {
        output::print(&record)?;
    } else {
        let comparison = earlier.filter(|earlier| alike(earlier, &calibration, &device));
        let comparison = comparison.map_or(String::new(), |earlier| compare(&earlier, &calibration));
        output::print(&(calibration.summary() + &comparison + "\n"))?;
    }
    // One that fails does not keep the other from being written.
    let (stored, bundled) =
        (store(arguments, &calibration, &record), keep(bundle, &calibration, &device, record, &prefix));
    let beside = bundled?.map(|report| {
        format!("  {} with {CALIBRATION} and {prefix}_{{iops,lat,mbps,ci,hist}}.csv\n", report.display())
    });
    let stored = stored?.map(|path| format!("  {}\n", path.display()));
    let paths: String = beside.into_iter().chain(stored).collect();
    if !arguments.json {
        output::print(&paths)?;
    }
    Ok(Outcome::Fine)
}

/// The newest calibration of a path, if it has one that this version reads.
///
/// # Errors
/// When what bears its name is something else.
pub fn stored(path: &Path) -> Result<Option<Calibration>, Failure> {
    Ok(stored::read(path)?)
}

/// Renders the report of a bundle again, and prints the summary.
///
/// # Errors
/// When a file of it is missing or of another version, or the report cannot be written.
pub fn rebuild(directory: &Path) -> Result<Outcome, Failure> {
    let file = directory.join(CALIBRATION);
    let calibration: Calibration = serde_json::from_str(&record::text(&file)?).map_err(|error| {
        Failure::run(format!(
            "{}: is no calibration that this program reads ({error}): use the release that wrote it",
            file.display()
        ))
    })?;
    let file = directory.join(record::FILE);
    let context = CalibrationContext::from_json(&record::text(&file)?)
        .map_err(|error| Failure::run(format!("{}: {error}", file.display())))?;
    let page = html::render(&calibration::document(&context));
    bundle::write(directory, &[(REPORT.to_string(), page)])?;
    output::print(&format!("{}\n  {}\n", calibration.summary(), directory.join(REPORT).display()))?;
    Ok(Outcome::Fine)
}

/// Where the bundle goes, if there is to be one.
fn bundle_directory(arguments: &Calibrate) -> Option<PathBuf> {
    let default = || (!arguments.json).then(|| bundle::default_directory(NAME));
    arguments.bundle.clone().or_else(default)
}

fn measure(
    arguments: &Calibrate,
    device: &DeviceDescription,
    begin: Moment,
    interrupt: &Interrupt,
) -> Result<Calibration, Failure> {
    let options = options(arguments, begin)?;
    let others = leftovers(&device.path);
    for other in &others {
        output::remark(&format!(
            "{} is of another calibration: if none is running, it was killed and the directory can be removed\n",
            other.display()
        ));
    }
    let audience = if arguments.json { Audience::Nobody } else { Audience::Terminal };
    interrupt.begin();
    let display = ProgressDisplay::new(audience, &device.path, others, interrupt);
    let ended = calibrate(device, &options, &display);
    drop(display);
    interrupt.keep();
    ended.map_err(|error| failure(&error, interrupt))
}

fn options(arguments: &Calibrate, begin: Moment) -> Result<Options, Failure> {
    let mut options = Options {
        file_size: arguments.file_size,
        max_latency: arguments.max_latency,
        duration: arguments.duration,
        ..Options::new(arguments.run, arguments.seed, begin.iso())
    };
    match arguments.advanced.given() {
        Some(option) if options.mode != Mode::Advanced => {
            let run = options.mode.name();
            Err(Failure::usage(format!("{option} is an option of --run advanced, and this is --run {run}")))
        }
        _ => {
            arguments.advanced.apply(&mut options);
            Ok(options)
        }
    }
}

fn failure(error: &CalibrateError, interrupt: &Interrupt) -> Failure {
    match error {
        CalibrateError::Cancelled => Failure::run(interrupt.message()),
        CalibrateError::Option { option, value, range } => {
            Failure::usage(format!("--{} {value} is not possible: {range}", option.replace('_', "-")))
        }
        other => Failure::run(other.to_string()),
    }
}

/// Stores it for later runs, unless it is advanced: that has only the points it
/// names, and would take the place of one that has all main figures.
fn store(arguments: &Calibrate, calibration: &Calibration, record: &str) -> Result<Option<PathBuf>, Failure> {
    if calibration.mode == Mode::Advanced {
        return Ok(None);
    }
    Ok(Some(stored::write(&arguments.path, record)?))
}

/// Writes the bundle, if there is to be one; gives the path of its report.
fn keep(
    bundle: Option<PathBuf>,
    calibration: &Calibration,
    device: &DeviceDescription,
    record: String,
    prefix: &str,
) -> Result<Option<PathBuf>, Failure> {
    let Some(directory) = bundle else { return Ok(None) };
    let context = context::context(calibration, device);
    let page = html::render(&calibration::document(&context));
    let mut all = vec![
        (REPORT.to_string(), page),
        (CALIBRATION.to_string(), record),
        (record::FILE.to_string(), context.to_json()?),
    ];
    all.extend(tables(calibration, prefix));
    bundle::write(&directory, &all)?;
    Ok(Some(directory.join(REPORT)))
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

/// Whether an earlier calibration asked the same of the same device.
fn alike(earlier: &Calibration, calibration: &Calibration, device: &DeviceDescription) -> bool {
    let asked = |of: &Calibration| (of.mode, of.file_bytes, of.max_latency_ns, of.environment.direct);
    earlier.matches(device) && asked(earlier) == asked(calibration)
}

/// How many figures two calibrations agree in, and which not.
fn compare(earlier: &Calibration, calibration: &Calibration) -> String {
    let mut compared = earlier.agreement(calibration);
    // Where both found nothing there is no ratio.
    compared.retain(|figure| figure.ratio.is_finite());
    let agreed = compared.iter().filter(|figure| figure.agrees).count();
    let mut text = format!(
        "\nagainst the calibration of {}: {agreed} of {} figures within {:.0}%\n",
        earlier.environment.date,
        compared.len(),
        AGREEMENT_LIMIT * 1e2
    );
    let mut reasons: Vec<Disagreement> = compared.iter().filter_map(|figure| figure.why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let of_reason = compared.iter().filter(|figure| figure.why == Some(reason));
        let ratios: Vec<String> = of_reason
            .map(|Agreement { kind, ratio, .. }| {
                let at = calibration.figure(*kind).map_or("", |figure| figure.at.as_str());
                // A name that begins with blanks continues the line above it in a summary.
                let name = if kind.name().starts_with(' ') { at } else { kind.name() };
                format!("{name} {ratio:.2} times")
            })
            .collect();
        text.push_str(&(broken(&format!("  {}: {}", reason.name(), ratios.join("; "))) + "\n"));
    }
    text
}

/// Broken between two words where a line of a summary ends; further lines stand under the first's text.
fn broken(line: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for (index, word) in line.split(' ').enumerate() {
        let blank = usize::from(index > 0);
        if width + blank + word.chars().count() > WIDTH && width > INDENT.len() {
            text.push('\n');
            text.push_str(INDENT);
            width = INDENT.len();
        } else if index > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += word.chars().count();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{INDENT, WIDTH, broken};

    #[test]
    fn a_long_line_is_broken_between_two_words() {
        assert_eq!(broken("  short"), "  short");
        let text = broken(&"word ".repeat(45));
        assert_eq!(text.split_whitespace().count(), 45);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            lines[1..].iter().all(|line| line.starts_with(INDENT) && !line.starts_with("     ")),
            "{text}"
        );
    }
}
