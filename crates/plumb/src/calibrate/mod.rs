//! `plumb calibrate`: what the storage under a path can do, measured and stored.
//!
//! ```text
//! PATH/plumb-calibration.json    the newest calibration: what later ones are compared with
//! BUNDLE/calibration.json        the same
//! BUNDLE/NAME_20261120_2104_*    iops, lat, mbps, ci and hist .csv, as ORION lays them out
//! ```
//!
//! What can be refused is refused before anything is measured; the summary is
//! printed before a file is written, whatever becomes of that.

mod onlooker;
mod stored;

use crate::arguments::Calibrate;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::Audience;
use crate::{bundle, output};
use onlooker::Onlooker;
use plumb_calibrate::{
    AGREEMENT_LIMIT, Agreement, CalibrateError, Calibration, Mode, Options, calibrate, csv, leftovers,
};
use plumb_events::clock;
use plumb_io::device::{self, DeviceDescription};
use plumb_lab::calendar::Moment;
use plumb_lab::place;
use std::path::PathBuf;

/// The command's name in paths.
const NAME: &str = "calibrate";
/// The calibration's file in a bundle.
const RECORD: &str = "calibration.json";
/// Lines of a summary are no longer than this.
const WIDTH: usize = 100;

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
        (store(arguments, &calibration, &record), keep(bundle, &calibration, record, &prefix));
    let paths: String =
        bundled?.iter().chain(&stored?).map(|path| format!("  {}\n", path.display())).collect();
    if !arguments.json {
        output::print(&paths)?;
    }
    Ok(Outcome::Fine)
}

/// The newest calibration of a path, if it has one that this version reads.
///
/// # Errors
/// When what bears its name is something else.
pub fn stored(path: &std::path::Path) -> Result<Option<Calibration>, Failure> {
    stored::read(path)
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
    let options = Options {
        file_size: arguments.file_size,
        max_latency: arguments.max_latency,
        duration: arguments.duration,
        ..Options::new(arguments.run.mode(), arguments.seed, begin.iso())
    };
    let others = leftovers(&device.path);
    for other in &others {
        output::remark(&format!(
            "{} is of another calibration: if none is running, it was killed and the directory can be removed\n",
            other.display()
        ));
    }
    let audience = if arguments.json { Audience::Nobody } else { Audience::Terminal };
    interrupt.begin();
    let onlooker = Onlooker::new(audience, &device.path, others, interrupt);
    let ended = calibrate(device, &options, &onlooker);
    drop(onlooker);
    interrupt.keep();
    ended.map_err(|error| failure(&error, interrupt))
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
    stored::write(&arguments.path, record).map(Some)
}

/// Writes the bundle, if there is to be one; gives the paths, those of the tables as one.
fn keep(
    bundle: Option<PathBuf>,
    calibration: &Calibration,
    record: String,
    prefix: &str,
) -> Result<Vec<PathBuf>, Failure> {
    let Some(directory) = bundle else { return Ok(Vec::new()) };
    bundle::write_files(&directory, &files(calibration, record, prefix))?;
    Ok(vec![directory.join(RECORD), directory.join(format!("{prefix}_{{iops,lat,mbps,ci,hist}}.csv"))])
}

/// The files of a bundle: name and text.
fn files(calibration: &Calibration, record: String, prefix: &str) -> Vec<(String, String)> {
    let matrix = calibration.matrix();
    let tables = [
        ("iops", csv::iops(&matrix)),
        ("lat", csv::latency(&matrix)),
        ("mbps", csv::mbps(&matrix)),
        ("ci", csv::intervals(&matrix)),
        ("hist", csv::histograms(calibration)),
    ];
    let tables = tables.into_iter().map(|(kind, text)| (format!("{prefix}_{kind}.csv"), text));
    std::iter::once((RECORD.to_string(), record)).chain(tables).collect()
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
    for Agreement { kind, ratio, why, .. } in compared.iter().filter(|figure| !figure.agrees) {
        let at = calibration.figure(*kind).map_or("", |figure| figure.at.as_str());
        // A name that begins with blanks continues the line above it in a summary.
        let name = if kind.name().starts_with(' ') { at } else { kind.name() };
        let line = format!("  {name}: {ratio:.2} times, {}", why.as_deref().unwrap_or(""));
        text.push_str(&(shortened(&line) + "\n"));
    }
    text
}

/// At most a line of a summary, cut between two words; the record has all of it.
fn shortened(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.to_string();
    }
    let begin: String = line.chars().take(WIDTH - 3).collect();
    begin.rsplit_once(' ').map_or(begin.as_str(), |(words, _)| words).to_string() + "..."
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, shortened};

    #[test]
    fn a_long_line_ends_between_two_words() {
        assert_eq!(shortened("  short"), "  short");
        assert_eq!(shortened(&"word ".repeat(30)), "word ".repeat(19).trim_end().to_string() + "...");
        assert_eq!(shortened(&"x".repeat(WIDTH + 1)).len(), WIDTH);
    }
}
