//! The main figures.

use super::{READING, interval, median, number};
use crate::document::calibration::context::{CalibrationContext, MainFigure};
use plumb_report::format::{Count, Figure};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Headline, Section};

/// The few to read first.
pub(in crate::document::calibration) fn headline(context: &CalibrationContext) -> Vec<Headline> {
    let first = context.figures.iter().filter(|figure| figure.headline);
    let of = |figure: &MainFigure| Headline {
        name: figure.name.trim().to_string(),
        value: format!("{} {}", number(figure.estimate.median), figure.unit),
        aside: format!(
            "{}[{}, {}]",
            if figure.estimate.unsettled.is_none() { "" } else { "? " },
            number(figure.estimate.low),
            number(figure.estimate.high)
        ),
    };
    first.map(of).collect()
}

/// All of them.
pub(super) fn figures(context: &CalibrationContext) -> Section {
    let mut table = Table::new(vec![
        Column::text("Figure"),
        Column::number("Median"),
        Column::text("Unit"),
        Column::text("Interval"),
        Column::number("Repeats"),
        Column::text("Found at"),
    ]);
    for figure in &context.figures {
        table.row(vec![
            Cell::from(&figure.name),
            median(&figure.estimate),
            Cell::from(&figure.unit),
            Cell::from(interval(&figure.estimate)),
            Cell::from(Count(figure.estimate.repeats).figure()),
            Cell::from(&figure.at),
        ]);
    }
    Section::front("figures", "Main Figures").note(READING).table(table)
}
