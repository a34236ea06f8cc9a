//! The sections of a calibration's report, in the order of the module above.

mod curves;
mod doubt;
mod durable;
mod figures;
mod ladder;
mod matrix;
mod read_cost;
mod run;
mod transfers;

pub(super) use figures::headline;

use super::context::{CalibrationContext, Estimate};
use plumb_report::Section;
use plumb_report::format::grouped;
use plumb_report::table::{Cell, Tone};

/// All sections; what was not measured has none.
pub(super) fn sections(context: &CalibrationContext) -> Vec<Section> {
    let mut sections = vec![figures::figures(context)];
    sections.extend(curves::curves(context));
    sections.extend(transfers::transfers(context));
    sections.extend(matrix::matrix(context));
    sections.extend(durable::durable(context));
    sections.extend(ladder::ladders(context));
    sections.extend(read_cost::read_cost(context));
    sections.push(doubt::unsettled(context));
    sections.extend(doubt::refused(context));
    sections.extend(doubt::warnings(context));
    sections.push(run::environment(context));
    sections.push(doubt::points(context));
    sections
}

/// Three figures of small numbers, thousands grouped in large ones.
fn number(value: f64) -> String {
    match value {
        value if value < 9.995 => grouped(value, 2),
        value if value < 99.95 => grouped(value, 1),
        value => grouped(value, 0),
    }
}

/// The median; one that has not settled carries a question mark.
fn median(estimate: &Estimate) -> Cell {
    let open = estimate.unsettled.is_some();
    let mark = if open { " ?" } else { "" };
    Cell::from(number(estimate.median) + mark).with_tone(if open { Tone::Open } else { Tone::Plain })
}

/// The interval, with its confidence where it has one.
fn interval(estimate: &Estimate) -> String {
    let confidence = match estimate.confidence {
        Some(confidence) => format!(" {:.0}%", confidence * 100.0),
        None => String::new(),
    };
    format!("[{}, {}]{confidence}", number(estimate.low), number(estimate.high))
}

/// What the question mark and the brackets mean.
const READING: &str = "medians of repeats; in brackets their interval, with its confidence where there were enough repeats for one, otherwise their range; ? has not settled";
