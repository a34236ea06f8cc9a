//! Draws the measured error rates, power and savings as SVG pictures.

use super::simulation::synthetic::Noise;
use super::simulation::{Curve, ERROR_MAX, ErrorRates, Row, Saving, Share};
use plumb_report::picture::{of_plot, of_table};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke};
use plumb_report::table::{self, Cell, Column, Table, Tone};

/// Upper end of the axis of errors.
const ERROR_SHOWN: f64 = 0.08;

/// Returns the names and contents of the files.
pub(super) fn all(measured: &ErrorRates) -> [(&'static str, String); 3] {
    [
        ("proof-errors.svg", errors(measured)),
        ("proof-power.svg", power(measured)),
        ("proof-stopping.svg", stopping(measured)),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// Draws, for each noise, the study with the highest rate of false statements.
fn errors(measured: &ErrorRates) -> String {
    let at = |share: f64| share / ERROR_SHOWN;
    let ticks = [0.0, 0.02, 0.04, 0.06, 0.08].map(|tick| (at(tick), percent(tick))).to_vec();
    let axis = table::Axis { ticks, line: Some(at(ERROR_MAX)) };
    let columns = vec![
        Column::text("Noise"),
        Column::text("The study that is wrong most often"),
        Column::number("False"),
        Column::number("95% interval"),
        Column::drawn("", 20, axis),
    ];
    let mut table = Table::new(columns);
    let now = || measured.false_statements.iter().filter(|row| !row.name.starts_with("before"));
    for (column, noise) in Noise::ALL.into_iter().enumerate() {
        let worst =
            now().max_by(|one, two| one.shares[column].upper().total_cmp(&two.shares[column].upper()));
        let Some(Row { name, shares }) = worst else { continue };
        let share = shares[column];
        let ends = share.interval();
        let drawn = table::Drawing::Interval {
            low: Some(at(ends.low)),
            at: at(share.found()),
            high: (ends.high <= ERROR_SHOWN).then(|| at(ends.high)),
        };
        let tone = if ends.high <= ERROR_MAX { Tone::Good } else { Tone::Open };
        table.row(vec![
            Cell::from(noise.name()),
            Cell::from(name.as_str()),
            Cell::from(format!("{:.2}%", 100.0 * share.found())).with_tone(tone),
            Cell::from(format!("{:.2}-{:.2}%", 100.0 * ends.low, 100.0 * ends.high)),
            Cell::drawn(Some(drawn)),
        ]);
    }
    let beneath = format!(
        "The worst of {} kinds of study for each noise, {} studies each; dashed: 5.5%",
        now().count(),
        measured.scale.studies
    );
    of_table(&table, "Studies in which anything is said falsely", &beneath)
}

fn mark(x: f64, share: Share) -> Mark {
    let ends = share.interval();
    let range = Some((100.0 * ends.low, 100.0 * ends.high));
    Mark { x, y: 100.0 * share.found(), y_range: range, ..Mark::default() }
}

fn blocks(value: f64) -> String {
    format!("{value:.0}")
}

fn power(measured: &ErrorRates) -> String {
    let series = |(place, curve): (usize, &Curve)| Series {
        name: format!("{}%{}", curve.percent, if curve.noise == Noise::Lognormal { "" } else { " (stalls)" }),
        colour: place / 2,
        stroke: if curve.noise == Noise::Lognormal { Stroke::Line } else { Stroke::Dashed },
        marks: curve.points.iter().map(|(blocks, share)| mark(*blocks as f64, *share)).collect(),
    };
    let level = [0.0, 40.0].map(|x| Mark { x, y: 95.0, ..Mark::default() }).to_vec();
    let goal = Series { name: "95%".to_string(), colour: 6, stroke: Stroke::Fit, marks: level };
    let plot = Plot {
        title: "Studies that find a slowdown, by their blocks".to_string(),
        x: Axis::stepped("blocks", 4.0, 10, blocks),
        y: Axis::stepped("found, % of studies", 20.0, 5, blocks),
        series: [goal].into_iter().chain(measured.curves.iter().enumerate().map(series)).collect(),
    };
    of_plot(&plot, "Two runs differ by 3% (s_d); stalls: heavy tails, in a tenth of all runs")
}

fn stopping(measured: &ErrorRates) -> String {
    let series = |(colour, rows): (usize, &[Saving])| {
        let spent = |row: &Saving| Mark {
            x: row.percent / row.sized_for,
            y: 100.0 * row.mean_blocks / row.fixed as f64,
            ..Mark::default()
        };
        Series {
            name: format!("for {}%: {} blocks", rows[0].sized_for, rows[0].fixed),
            colour,
            stroke: Stroke::Line,
            marks: rows.iter().map(spent).collect(),
        }
    };
    let same = measured.savings.chunk_by(|one, two| one.sized_for == two.sized_for);
    let times = |value: f64| if value == 0.0 { "0".to_string() } else { format!("{value:.1}x") };
    let plot = Plot {
        title: "Blocks that a study spends which stops when its claim is decided".to_string(),
        x: Axis::stepped("true effect, in multiples of the one that the study was sized for", 0.5, 4, times),
        y: Axis::stepped("% of the fixed study's blocks", 20.0, 6, blocks),
        series: same.enumerate().map(series).collect(),
    };
    of_plot(&plot, "Means, lognormal noise; designs that find what they are for in 95% of studies")
}
