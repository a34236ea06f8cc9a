//! The read cost curve: t(bytes) = s + bytes / B, with its points and the line.

use super::{interval, number};
use plumb_calibrate::{Calibration, Estimate, ReadCost};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, duration, short_bytes, short_micros};
use plumb_report::table::{Facts, Table};
use plumb_report::{Drawing, Section, table};
use plumb_units::Bytes;

/// Number of steps on the axis of sizes.
const STEPS: usize = 4;

pub(super) fn read_cost(calibration: &Calibration) -> Option<Section> {
    let cost = calibration.read_cost.as_ref()?;
    let mut facts = Facts::default();
    facts.add(
        "s, the start",
        format!("{} us {}", number(cost.start_micros.median), interval(&cost.start_micros)),
    );
    facts.add(
        "B, the rate",
        format!("{} MB/s {}", number(cost.mb_per_second.median), interval(&cost.mb_per_second)),
    );
    facts.add("Of a merge", cost.of_a_merge(Bytes(calibration.size_small)));
    let section = Section::front("read-cost", "Read Cost: t(bytes) = s + bytes / B")
        .note("mean times of random reads, one at a time; the line is the least squares of relative errors")
        .facts(facts);
    Some(section.drawings(vec![Drawing::Plot(plot(cost))]).table(table(cost)))
}

fn fitted(cost: &ReadCost, bytes: f64) -> f64 {
    cost.start_micros.median + bytes / (cost.mb_per_second.median * Bytes::M as f64) * 1e6
}

fn plot(cost: &ReadCost) -> Plot {
    let largest = cost.measured.iter().map(|(bytes, _)| *bytes).max().unwrap_or(Bytes::M);
    let longest = cost.measured.iter().map(|(_, mean)| mean.high);
    let longest = longest.fold(fitted(cost, largest as f64), f64::max);
    let mark = |(bytes, mean): &(u64, Estimate)| Mark {
        x: *bytes as f64,
        y: mean.median,
        y_range: Some((mean.low, mean.high)),
        hint: format!("{}: {}", short_bytes(*bytes as f64), duration(mean.median)),
        ..Mark::default()
    };
    let end = |bytes: f64| Mark { x: bytes, y: fitted(cost, bytes), ..Mark::default() };
    let series = |name: &str, colour, stroke, marks| Series { name: name.to_string(), colour, stroke, marks };
    Plot {
        title: "Time of one read by its size".to_string(),
        x: Axis::stepped("bytes of the read", largest as f64 / STEPS as f64, STEPS, short_bytes),
        y: Axis::linear("time", longest, short_micros),
        series: vec![
            series("s + bytes / B", 1, Stroke::Fit, vec![end(0.0), end(largest as f64)]),
            series("measured", 0, Stroke::Marks, cost.measured.iter().map(mark).collect()),
        ],
    }
}

fn table(cost: &ReadCost) -> Table {
    table!((bytes, mean) in &cost.measured; {
        let line = fitted(cost, *bytes as f64);
        let off = (line / mean.median - 1.0) * 100.0;
    } [
        numbers "Read" => short_bytes(*bytes as f64),
        numbers "Measured us" => super::median(mean),
        text "Interval" => interval(mean),
        numbers "Line us" => number(line),
        numbers "Off by %" => format!("{off:+.1}"),
    ])
}
