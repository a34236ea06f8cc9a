//! The report of a calibration: the limits of a storage device.
//!
//! A [`Calibration`] has the data, and every section reads it directly; machine and device are in
//! the [`Provenance`]. The order: state, main figures in words, as a table and with what follows,
//! then their sources (several paths, a sustained load, curves, large requests, the matrix, durable
//! writes, methods, read cost). Last come the doubts: unsettled figures, the answer of each point,
//! the environment.
//!
//! Rejected: a copy of the record in terms of the report, which was as long as both.
//!
//! Limits: nothing is measured or estimated here. The page carries the record without its repeats.

mod answer;
mod asynchronous;
mod circumstances;
mod comparison;
mod curves;
mod derived;
mod doubt;
mod durable_writes;
mod main_figures;
mod methods;
mod read_times;
mod small_and_large;
mod state;
mod summary;
mod sustained;
mod transfers;
mod volume;

pub use comparison::against;

use plumb_calibrate::{Calibration, Estimate, Interval, TaskResult};
use plumb_report::format::grouped;
use plumb_report::table::{Cell, Tone};
use plumb_report::{Document, Section, text};
use plumb_study::provenance::Provenance;

/// Builds the report of a calibration.
pub fn document(calibration: &Calibration, provenance: &Provenance) -> Document {
    let environment = &calibration.environment;
    let reasons = calibration.doubts();
    // The repeats are left out to keep the page small; its sections show everything.
    let kept = Calibration { tasks: Vec::new(), ..calibration.clone() };
    Document {
        title: format!("PLUMB CALIBRATION  {} on {}", environment.path, environment.device),
        answer: answer::answer(calibration, &reasons),
        question: String::new(),
        running_head: format!("Calibration: {}  Host: {}", calibration.mode, provenance.host.name),
        width: text::WIDTH,
        state: state::state(&reasons),
        basis: state::basis(calibration),
        reasons,
        headline: main_figures::headline(calibration),
        sections: sections(calibration, provenance),
        summary: summary::summary(calibration),
        footer: format!(
            "plumb {}. The main figures are embedded in this page as JSON; calibration.json beside it has every repeat.",
            provenance.plumb_version
        ),
        data: serde_json::to_string(&kept).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Returns all sections; parts that were not measured have none.
fn sections(calibration: &Calibration, provenance: &Provenance) -> Vec<Section> {
    let mut sections: Vec<Section> = derived::in_words(calibration).into_iter().collect();
    sections.push(main_figures::figures(calibration));
    sections.extend(derived::section(calibration));
    sections.extend(volume::section(calibration));
    sections.extend(sustained::section(calibration));
    sections.extend(curves::curves(calibration));
    sections.extend(transfers::transfers(calibration));
    sections.extend(small_and_large::matrix(calibration));
    sections.extend(durable_writes::durable(calibration));
    sections.extend(methods::ladders(calibration));
    sections.extend(asynchronous::section(calibration));
    sections.extend(read_times::read_cost(calibration));
    sections.push(doubt::unsettled(calibration));
    sections.extend(doubt::refused(calibration));
    sections.extend(doubt::warnings(calibration));
    sections.push(circumstances::environment(calibration, provenance));
    sections.push(doubt::points(calibration));
    sections
}

/// Returns the tasks with at least one request completed during the measurement.
fn measured(calibration: &Calibration) -> impl Iterator<Item = &TaskResult> {
    calibration.measured()
}

/// Prints small numbers with three figures, and groups thousands in large ones.
fn number(value: f64) -> String {
    match value {
        value if value < 9.995 => grouped(value, 2),
        value if value < 99.95 => grouped(value, 1),
        value => grouped(value, 0),
    }
}

/// Prints the median, with a question mark if it has not settled.
fn median(estimate: &Estimate) -> Cell {
    let (mark, tone) = if estimate.settled { ("", Tone::Plain) } else { (" ?", Tone::Open) };
    Cell::from(number(estimate.median) + mark).with_tone(tone)
}

/// Prints the median if it was measured, otherwise a blank.
fn median_of(estimate: Option<Estimate>) -> Cell {
    estimate.as_ref().map_or_else(Cell::default, median)
}

fn range(estimate: &Estimate) -> String {
    format!("[{}, {}]", number(estimate.low), number(estimate.high))
}

/// Prints the interval, with its confidence if it has one.
fn interval(estimate: &Estimate) -> String {
    match estimate.interval {
        Interval::Confidence(confidence) => format!("{} {:.0}%", range(estimate), confidence * 100.0),
        Interval::Range => range(estimate),
    }
}

/// Legend for question mark and brackets.
const READING: &str = "medians of repeats; in brackets their interval, with its confidence where there were enough repeats for one, otherwise their range; ? has not settled";

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
