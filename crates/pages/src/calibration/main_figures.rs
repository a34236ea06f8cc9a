//! The main figures of a calibration.

use super::{READING, interval, median, number, range};
use plumb_calibrate::{Calibration, FigureKind, MainFigure};
use plumb_report::format::{Count, Figure, Share};
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
    let mut columns = vec![
        Column::text("Figure"),
        Column::number("Median"),
        Column::text("Unit"),
        Column::text("Interval"),
        Column::number("Repeats"),
    ];
    let link = calibration.link_bytes_per_second.is_some();
    if link {
        columns.push(Column::number("% of\nthe link"));
    }
    columns.push(Column::text("Found at"));
    let mut table = Table::new(columns);
    for figure in &calibration.figures {
        let MainFigure { kind, estimate, at } = figure;
        let repeats = Count(estimate.repeats as u64).figure();
        let mut row = cells![kind.name(), median(estimate), kind.unit(), interval(estimate), repeats];
        if link {
            row.push(calibration.link_share(figure).map(Share).figure().into());
        }
        row.push(at.into());
        table.row(row);
    }
    Section::front("figures", "Main Figures").note(READING).table(table)
}
