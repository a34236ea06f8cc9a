//! I/O by function, by stream, by type of file, by tablespace, by file and by device.

use super::{figures, test_columns, tested};
use plumb_record::IoTally;
use plumb_record::figures::{FigureGroup, tallies};
use plumb_report::format::{Average, Decimal, PerSecond, Reading, Size};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Section, cells};
use plumb_study::compare::{Comparison, names};

/// Shows the requests of a table's rows on both sides, with the test of their mean time.
fn requests(comparison: &Comparison, group: FigureGroup, title: &str) -> Table {
    let mut columns = vec![Column::wrapped(title, 26)];
    columns.extend(
        [
            "Reqs/s\n1st",
            "Reqs/s\n2nd",
            "MB/s\n1st",
            "MB/s\n2nd",
            "Size\n1st",
            "Size\n2nd",
            "Avg Time\n1st",
            "Avg Time\n2nd",
        ]
        .map(Column::number),
    );
    columns.extend(test_columns());
    let mut table = Table::new(columns);
    let elapsed_ns =
        comparison.sides().map(|period| period.median(|run| run.header.elapsed_ns as f64) as u64);
    for name in names(group, &comparison.first.runs, &comparison.second.runs) {
        let side = |of: fn(IoTally) -> Option<u64>| {
            comparison.sides().map(|period| {
                let own = |run: &plumb_record::Record| {
                    let all = tallies(group, run);
                    let tally = all.into_iter().find(|(known, _)| *known == name);
                    tally.and_then(|(_, tally)| of(tally)).unwrap_or(0) as f64
                };
                period.median(own).round() as u64
            })
        };
        let (requests, bytes, times) = (
            side(|tally| Some(tally.requests)),
            side(|tally| Some(tally.bytes)),
            side(|tally| tally.time_ns),
        );
        let rate = |side: usize| {
            let rate = PerSecond { total: requests[side] as f64, elapsed_ns: elapsed_ns[side] };
            (requests[side] > 0).then_some(rate)
        };
        let megabytes = |side: usize| {
            let rate =
                PerSecond { total: bytes[side] as f64 / 1_048_576.0, elapsed_ns: elapsed_ns[side] }.rate();
            (requests[side] > 0).then_some(Decimal(rate))
        };
        let timed = comparison.sides().map(|period| period.has(group, &name));
        let average =
            |side: usize| timed[side].then_some(Average { total_ns: times[side], count: requests[side] });
        let mut cells = cells![&name];
        cells.extend([0, 1].map(|side| Cell::of(rate(side))));
        cells.extend([0, 1].map(|side| Cell::of(megabytes(side))));
        cells.extend([0, 1].map(|side| Cell::of(bytes[side].checked_div(requests[side]).map(Size))));
        cells.extend([0, 1].map(|side| Cell::of(average(side))));
        cells.extend(tested(comparison, group, &name));
        table.row(cells);
    }
    table
}

/// Legend for `%Diff` in these tables.
const OF_TIME: &str = "Avg Time ends with a request's completion, with io_uring when that was seen; %Diff, interval and p are those of it";

pub(super) fn functions(comparison: &Comparison) -> Section {
    let table = requests(comparison, FigureGroup::Io, "Function");
    Section::detail("io", "IOStat by Function").note(OF_TIME).table(table)
}

/// Shows requests by type of file, those of up to 128K and larger ones apart.
pub(super) fn file_types(comparison: &Comparison) -> Section {
    let table = requests(comparison, FigureGroup::FileType, "File Type");
    Section::detail("io-file-types", "IOStat by Filetype").note(OF_TIME).table(table)
}

pub(super) fn streams(comparison: &Comparison) -> Section {
    let table = requests(comparison, FigureGroup::Stream, "Stream");
    Section::detail("io-streams", "I/O by Stream").note(OF_TIME).table(table)
}

/// Shows requests by tablespace, reads of one block and of several apart.
pub(super) fn tablespaces(comparison: &Comparison) -> Section {
    let table = requests(comparison, FigureGroup::Tablespace, "Tablespace");
    Section::detail("io-tablespaces", "Tablespace IO Stats").note(OF_TIME).table(table)
}

pub(super) fn files(comparison: &Comparison) -> Section {
    let table = requests(comparison, FigureGroup::File, "Tablespace, File");
    Section::detail("io-files", "File IO Stats")
        .note("files of the same name are taken for each other, whatever directory they lie in")
        .note(OF_TIME)
        .table(table)
}

/// Shows the work of the devices, counted by the kernel for all processes.
pub(super) fn devices(comparison: &Comparison) -> Section {
    let table =
        figures(comparison, FigureGroup::Device, ["Device", "1st", "2nd"], |value| Cell::of(Reading(value)));
    let named = |period: &plumb_study::compare::Period| {
        let devices = period.typical().map(|run| run.io_devices.as_slice()).unwrap_or_default();
        devices.iter().map(|device| device.device.clone()).collect::<Vec<_>>().join(", ")
    };
    let [first, second] = comparison.sides().map(named);
    Section::detail("devices", "Device Rates")
        .note(format!(
            "device 1, 2 and so on are {first} in the 1st and {second} in the 2nd; by all processes"
        ))
        .note("ms each: from submission to completion; queue: requests under way on average; the work alone")
        .table(table)
}
