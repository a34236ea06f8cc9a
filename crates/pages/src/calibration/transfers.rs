//! MB/s by request size and threads.

use super::{interval, median, number};
use plumb_calibrate::{Calibration, Estimate, Load, Pattern, Point};
use plumb_report::format::{Count, Figure};
use plumb_report::plot::{Bar, Bars, short_bytes};
use plumb_report::table::Table;
use plumb_report::{Drawing, Section, table};
use plumb_units::Bytes;

/// Smallest request whose rate is shown in MB/s.
const TRANSFER_MIN: u64 = 64 * Bytes::K;

/// Requests of one size by a number of threads, and their MB per second.
type Transfer = (Load, usize, Estimate);

pub(super) fn transfers(calibration: &Calibration) -> Option<Section> {
    let transfer = |result: &plumb_calibrate::TaskResult| {
        let point: &Point = result.point().filter(|point| calibration.is_usual(point))?;
        let load = *point.single().filter(|load| load.request_bytes >= TRANSFER_MIN)?;
        Some((load, point.threads, result.mb_per_second(0)?))
    };
    let mut transfers: Vec<Transfer> = calibration.tasks.iter().filter_map(transfer).collect();
    // Sequential before random, reads before writes, small before large.
    transfers.sort_by_key(|(load, threads, _)| {
        (load.pattern == Pattern::Random, load.write_percent, load.request_bytes, load.outstanding, *threads)
    });
    if transfers.is_empty() {
        return None;
    }
    let bars =
        Bars { title: "MB/s (2^20 bytes)".to_string(), colour: 0, bars: transfers.iter().map(bar).collect() };
    let section = Section::front("transfers", "Throughput by Request Size and Threads");
    Some(section.drawings(vec![Drawing::Bars(bars)]).table(table(&transfers)))
}

fn bar((load, threads, estimate): &Transfer) -> Bar {
    let threads = if *threads > 1 { format!(", {threads} threads") } else { String::new() };
    Bar {
        name: format!("{load}{threads}"),
        value: estimate.median,
        range: (estimate.low, estimate.high),
        shown: number(estimate.median),
    }
}

fn table(transfers: &[Transfer]) -> Table {
    table!((load, threads, estimate) in transfers; [
        text "Requests" => load.to_string(),
        numbers "Size" => short_bytes(load.request_bytes as f64),
        numbers "Outstanding" => Count(load.outstanding as u64).figure(),
        numbers "Threads" => Count(*threads as u64).figure(),
        numbers "MB/s" => median(estimate),
        text "Interval" => interval(estimate),
    ])
}
