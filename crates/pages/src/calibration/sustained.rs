//! A sustained load: its levels, and its curve over time.

use super::number;
use plumb_calibrate::{Calibration, Level, Sustained};
use plumb_report::format::{Change, Figure, MinutesSeconds};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, short_count};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Drawing, Section, cells};

/// Steps on the time axis.
const STEPS: usize = 6;

pub(super) fn section(calibration: &Calibration) -> Option<Section> {
    let sustained = calibration.sustained.as_ref().filter(|sustained| !sustained.windows.is_empty())?;
    let levels = sustained.levels();
    let mut table = Table::new(vec![
        Column::number("From"),
        Column::number("To"),
        Column::number("IOPS"),
        Column::number("Change"),
        Column::number("p99 us"),
        Column::number("p of the change"),
    ]);
    let mut before: Option<f64> = None;
    for Level { begin, end, iops, p99_micros, p } in &levels {
        let clock = |at: &plumb_units::Nanos| MinutesSeconds(at.seconds()).figure();
        let change = before.map_or(Cell::default(), |before| Change(iops / before).figure().into());
        let p = p.map_or(Cell::default(), |p| format!("{p:.4}").into());
        table.row(cells![clock(begin), clock(end), number(*iops), change, number(*p99_micros), p]);
        before = Some(*iops);
    }
    let note = format!("{}; {}", sustained.point, sentence(&levels));
    let section = Section::front("sustained", "Sustained Load").note(note);
    Some(section.drawings(vec![Drawing::Plot(plot(sustained, &levels))]).table(table))
}

/// Describes first and last level in a sentence.
pub(super) fn sentence(levels: &[Level]) -> String {
    let (Some(first), Some(last)) = (levels.first(), levels.last()) else { return String::new() };
    match levels {
        [only] => format!("{} a second for {}, without a change of level", number(only.iops), only.end),
        _ => format!(
            "{} a second for {}, and {} a second at the end ({})",
            number(first.iops),
            first.end,
            number(last.iops),
            Change(last.iops / first.iops).figure()
        ),
    }
}

fn plot(sustained: &Sustained, levels: &[Level]) -> Plot {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let last = sustained.windows.last().map_or(1.0, |window| seconds(window.begin_ns + sustained.window_ns));
    let most = sustained.windows.iter().map(|window| window.iops).fold(1.0, f64::max);
    let windows = sustained.windows.iter().map(|window| Mark {
        x: seconds(window.begin_ns),
        y: window.iops,
        hint: format!("{:.0} s: {}", seconds(window.begin_ns), number(window.iops)),
        ..Mark::default()
    });
    let ends = levels.iter().flat_map(|level| [level.begin, level.end].map(|at| (at, level.iops)));
    let ends = ends.map(|(at, iops)| Mark { x: at.seconds(), y: iops, ..Mark::default() });
    let series = |name: &str, colour, stroke, marks| Series { name: name.to_string(), colour, stroke, marks };
    Plot {
        title: "Requests a second over time".to_string(),
        x: Axis::stepped("seconds", last / STEPS as f64, STEPS, short_count),
        y: Axis::linear("requests a second", most, short_count),
        series: vec![
            series("levels", 1, Stroke::Fit, ends.collect()),
            series("windows", 0, Stroke::Marks, windows.collect()),
        ],
    }
}
