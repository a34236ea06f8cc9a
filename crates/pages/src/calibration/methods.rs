//! Compares I/O methods on the same requests, with reasons for missing rungs.

use super::{interval, median, number};
use plumb_calibrate::{Calibration, Estimate, Rung, RungState};
use plumb_io::MethodKind;
use plumb_report::plot::{Bar, Bars};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Drawing, Section, cells};
use plumb_units::Bytes;

/// A figure of a rung.
type Of = fn(&RungState) -> Option<&Estimate>;

pub(super) fn ladders(calibration: &Calibration) -> Option<Section> {
    let sizes = [
        (calibration.size_small, &calibration.ladder_small),
        (calibration.size_large, &calibration.ladder_large),
    ];
    let section = Section::front("methods", "I/O Methods").note(
        "the same requests by each method, plainest first; a rung that begins with + adds to the one above",
    );
    let section =
        sizes.into_iter().filter(|(_, rungs)| !rungs.is_empty()).fold(section, |section, (size, rungs)| {
            let requests = requests(calibration, size);
            section.drawings(drawings(&requests, rungs)).table(table(requests, rungs))
        });
    (!section.blocks.is_empty()).then_some(section)
}

/// Returns the requests of the comparison, such as `8K random read x32`.
pub(super) fn requests(calibration: &Calibration, size: u64) -> String {
    // Only the first rung's point uses the sync method with many threads.
    let load = calibration.tasks.iter().find_map(|result| {
        let point = result.point().filter(|point| point.method == MethodKind::Sync)?;
        point.single().filter(|load| load.request_bytes == size)
    });
    load.map_or_else(|| format!("{} reads", Bytes(size).as_setting()), ToString::to_string)
}

fn drawings(requests: &str, rungs: &[Rung]) -> Vec<Drawing> {
    let bars = |what: &str, colour, of: Of| {
        let bars = rungs.iter().filter_map(|rung| Some((&rung.name, of(&rung.state)?)));
        let bars = bars.map(|(name, estimate)| Bar {
            name: name.clone(),
            value: estimate.median,
            range: (estimate.low, estimate.high),
            shown: number(estimate.median),
        });
        Drawing::Bars(Bars { title: format!("{requests}: {what}"), colour, bars: bars.collect() })
    };
    vec![
        bars("requests a second", 0, RungState::iops),
        bars("processor microseconds a request", 1, RungState::cpu_micros),
    ]
}

fn table(requests: String, rungs: &[Rung]) -> Table {
    let counted = rungs.iter().any(|rung| rung.state.cycles().is_some());
    let mut columns = vec![
        Column::text("Method"),
        Column::number("Requests/s"),
        Column::text("Interval"),
        Column::number("CPU us\na request"),
        Column::text("Interval"),
    ];
    if counted {
        columns.push(Column::number("Cycles\na request"));
    }
    columns.push(Column::wrapped("What else, or why not and what would help", 40));
    let mut table = Table::new(columns).with_caption(requests);
    for Rung { name, state } in rungs {
        let mut cells = cells![name];
        let said = match state {
            RungState::Measured { iops, cpu_micros, cycles, note, .. } => {
                cells.extend([median(iops), Cell::from(interval(iops))]);
                cells.extend([median(cpu_micros), Cell::from(interval(cpu_micros))]);
                cells.extend(cycles.as_ref().map(median));
                note.clone().unwrap_or_default()
            }
            RungState::Refused { why, cure } => format!("{why}; {cure}"),
        };
        cells.resize(table.columns.len() - 1, Cell::default());
        cells.push(Cell::from(said));
        table.row(cells);
    }
    table
}
