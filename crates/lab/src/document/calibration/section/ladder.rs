//! The method ladder: the same requests by every method, and why a rung is missing.

use super::{interval, median, number};
use crate::document::calibration::context::{CalibrationContext, Estimate, Ladder, Rung};
use plumb_report::plot::{Bar, Bars};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Drawing, Section};

pub(super) fn ladders(context: &CalibrationContext) -> Option<Section> {
    if context.ladders.is_empty() {
        return None;
    }
    let section = Section::front("methods", "I/O Methods").note(
        "the same requests by each method, plainest first; a rung that begins with + adds to the one above",
    );
    Some(
        context
            .ladders
            .iter()
            .fold(section, |section, ladder| section.drawings(drawings(ladder)).table(table(ladder))),
    )
}

fn drawings(ladder: &Ladder) -> Vec<Drawing> {
    let bars = |what: &str, colour, of: fn(&Rung) -> Option<(&String, &Estimate)>| {
        let bars = ladder.rungs.iter().filter_map(of).map(|(name, estimate)| Bar {
            name: name.clone(),
            value: estimate.median,
            range: (estimate.low, estimate.high),
            shown: number(estimate.median),
        });
        Drawing::Bars(Bars { title: format!("{}: {what}", ladder.requests), colour, bars: bars.collect() })
    };
    vec![
        bars("requests a second", 0, |rung| match rung {
            Rung::Measured { name, iops, .. } => Some((name, iops)),
            Rung::Refused { .. } => None,
        }),
        bars("processor microseconds a request", 1, |rung| match rung {
            Rung::Measured { name, cpu_us, .. } => Some((name, cpu_us)),
            Rung::Refused { .. } => None,
        }),
    ]
}

fn table(ladder: &Ladder) -> Table {
    let counted = ladder.rungs.iter().any(|rung| matches!(rung, Rung::Measured { cycles: Some(_), .. }));
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
    columns.push(Column::wrapped("What else, or why not and what would help", 48));
    let mut table = Table::new(columns).with_caption(ladder.requests.clone());
    for rung in &ladder.rungs {
        let (mut cells, said) = match rung {
            Rung::Measured { name, iops, cpu_us, cycles, note } => {
                let mut cells = vec![Cell::from(name), median(iops), Cell::from(interval(iops))];
                cells.extend([median(cpu_us), Cell::from(interval(cpu_us))]);
                cells.extend(cycles.as_ref().map(median));
                (cells, note.clone().unwrap_or_default())
            }
            Rung::Refused { name, why, cure } => (vec![Cell::from(name)], format!("{why}; {cure}")),
        };
        cells.resize(table.columns.len() - 1, Cell::default());
        cells.push(Cell::from(said));
        table.row(cells);
    }
    table
}
