//! The main figures of a calibration.

use super::{READING, interval, median, number, range};
use plumb_calibrate::{Calibration, FigureKind, MainFigure};
use plumb_report::format::{Count, Figure};
use plumb_report::table::{Column, Table};
use plumb_report::{Headline, Section, cells};

/// Figures shown in the headline.
const HEADLINE: [FigureKind; 6] = [
    FigureKind::SmallReadLatency,
    FigureKind::SmallReadIops,
    FigureKind::SmallWriteIops,
    FigureKind::SequentialRead,
    FigureKind::SequentialWrite,
    FigureKind::DurableWrite,
];

pub(super) fn headline(calibration: &Calibration) -> Vec<Headline> {
    let first = calibration.figures.iter().filter(|figure| HEADLINE.contains(&figure.kind));
    let of = |figure: &MainFigure| Headline {
        name: figure.kind.name().to_string(),
        value: format!("{} {}", number(figure.estimate.median), figure.kind.unit()),
        aside: format!("{}{}", if figure.estimate.settled { "" } else { "? " }, range(&figure.estimate)),
    };
    first.map(of).collect()
}

pub(super) fn figures(calibration: &Calibration) -> Section {
    let mut table = Table::new(vec![
        Column::text("Figure"),
        Column::number("Median"),
        Column::text("Unit"),
        Column::text("Interval"),
        Column::number("Repeats"),
        Column::text("Found at"),
    ]);
    for MainFigure { kind, estimate, at } in &calibration.figures {
        table.row(cells![
            kind.name(),
            median(estimate),
            kind.unit(),
            interval(estimate),
            Count(estimate.repeats as u64).figure(),
            at
        ]);
    }
    Section::front("figures", "Main Figures").note(READING).table(table)
}
