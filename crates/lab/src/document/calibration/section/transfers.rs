//! MB/s by request size and threads.

use super::{interval, median, number};
use crate::document::calibration::context::{CalibrationContext, Transfer};
use plumb_report::format::{Count, Figure};
use plumb_report::plot::{Bar, Bars, short_bytes};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Drawing, Section};

pub(super) fn transfers(context: &CalibrationContext) -> Option<Section> {
    if context.transfers.is_empty() {
        return None;
    }
    let bars = Bars {
        title: "MB/s (2^20 bytes)".to_string(),
        colour: 0,
        bars: context.transfers.iter().map(bar).collect(),
    };
    let section = Section::front("transfers", "Throughput by Request Size and Threads");
    Some(section.drawings(vec![Drawing::Bars(bars)]).table(table(&context.transfers)))
}

fn bar(transfer: &Transfer) -> Bar {
    let threads =
        if transfer.threads > 1 { format!(", {} threads", transfer.threads) } else { String::new() };
    let estimate = &transfer.mb_per_s;
    Bar {
        name: format!("{}{threads}", transfer.what),
        value: estimate.median,
        range: (estimate.low, estimate.high),
        shown: number(estimate.median),
    }
}

fn table(transfers: &[Transfer]) -> Table {
    let mut table = Table::new(vec![
        Column::text("Requests"),
        Column::number("Size"),
        Column::number("Outstanding"),
        Column::number("Threads"),
        Column::number("MB/s"),
        Column::text("Interval"),
    ]);
    for transfer in transfers {
        table.row(vec![
            Cell::from(&transfer.what),
            Cell::from(short_bytes(transfer.request_bytes as f64)),
            Cell::from(Count(transfer.depth).figure()),
            Cell::from(Count(transfer.threads).figure()),
            median(&transfer.mb_per_s),
            Cell::from(interval(&transfer.mb_per_s)),
        ]);
    }
    table
}
