//! I/O over time, by function and by file.

use super::{Block, Section};
use crate::ReportContext;
use crate::context::{Completion, IoDirection, IoFunction, IoTally, Phase};
use crate::format::{Average, Count, Decimal, Figure, PerSecond, Percent, Seconds, Size, Throughput};
use crate::profile::{Chart, limit_mb_per_s, peak_mb_per_s};
use crate::table::{Cell, Column, RowKind, Table};
use plumb_units::{Bytes, Nanos};

/// Bytes over time with the phases behind them; none when nothing was recorded.
pub(super) fn profile(context: &ReportContext) -> Option<Section> {
    let chart = Chart::of(context);
    if chart.is_none() && context.phases.is_empty() {
        return None;
    }
    let mut section = Section::front("io-profile", "I/O Profile");
    if let Some(chart) = chart {
        section = section.note(format!(
            "MB/s (2^20 bytes) over seconds from the begin, in buckets of {} s",
            chart.bucket_s
        ));
        section = section.note(
            "streams cover the whole run, that is all phases below; the other sections cover the measured operation alone",
        );
        if limit_mb_per_s(context, IoDirection::Read).is_some() {
            let by = if context.calibrated().is_some() { "as calibrated" } else { "as measured in this run" };
            section = section.note(format!("% of device: of its sequential read or write {by}"));
        }
        let table = series(context, &chart);
        section.blocks.push(Block::Profile(chart));
        section = section.table(table);
    }
    Some(if context.phases.is_empty() { section } else { section.table(phases(context)) })
}

fn series(context: &ReportContext, chart: &Chart) -> Table {
    let mut table = Table::new(vec![
        Column::text("Stream"),
        Column::number("Data"),
        Column::number("Active (s)"),
        Column::number("MB/s\nwhile active"),
        Column::number("MB/s\npeak"),
        Column::number("% of device\nwhile active"),
    ])
    .with_caption("Streams, whole run");
    for series in &chart.series {
        let bytes = series.bytes.iter().sum();
        let active = series.bytes.iter().filter(|bytes| **bytes > 0).count();
        let active_ns = active as u64 * context.io_profile.bucket_ns;
        let rate = Bytes(bytes).per(Nanos(active_ns)).mb_per_second();
        let limit = limit_mb_per_s(context, series.direction).unwrap_or(0.0);
        let share = Percent { part: rate, whole: limit };
        table.row(vec![
            Cell::from(&series.name),
            Cell::of(Size(bytes)),
            Cell::of(Seconds(active_ns)),
            Cell::of(Decimal(rate)),
            Cell::of(Decimal(peak_mb_per_s(series, chart.bucket_s))),
            Cell::of(share).with_share(share.share()),
        ]);
    }
    table
}

fn phases(context: &ReportContext) -> Table {
    let mut table = Table::new(vec![
        Column::text("Phase"),
        Column::text("Operation"),
        Column::number("Start (s)"),
        Column::number("End (s)"),
        Column::number("Elapsed (s)"),
        Column::number("Rows"),
        Column::number("Rows/s"),
        Column::number("Data"),
        Column::number("MB/s"),
        Column::number("% of\ndevice"),
    ])
    .with_caption("Phases");
    for phase in &context.phases {
        let elapsed_ns = phase.end_ns.saturating_sub(phase.start_ns);
        let rows_per_s = PerSecond { total: phase.rows as f64, elapsed_ns }.rate();
        table.row(vec![
            Cell::from(&phase.name),
            Cell::from(&phase.operation),
            Cell::of(Seconds(phase.start_ns)),
            Cell::of(Seconds(phase.end_ns)),
            Cell::of(Seconds(elapsed_ns)),
            Cell::of(Count(phase.rows)),
            Cell::of(Count(rows_per_s.round() as u64)),
            Cell::of(Size(phase.bytes)),
            Cell::of(Throughput { bytes: phase.bytes, elapsed_ns }),
            Cell::of(phase_share(context, phase)),
        ]);
    }
    table
}

/// What a phase that moved bytes one way reached of the device's limit that way.
pub(crate) fn phase_share(context: &ReportContext, phase: &Phase) -> Option<Percent> {
    let whole = limit_mb_per_s(context, phase.direction?)?;
    let elapsed = Nanos(phase.end_ns.saturating_sub(phase.start_ns));
    (elapsed.0 > 0).then(|| Percent { part: Bytes(phase.bytes).per(elapsed).mb_per_second(), whole })
}

/// Requests and bytes by the function that asked for them.
pub(super) fn functions(context: &ReportContext) -> Section {
    let mut functions = context.io_functions.iter().collect::<Vec<_>>();
    functions.retain(|row| row.reads.requests + row.writes.requests > 0);
    functions.sort_by_key(|row| std::cmp::Reverse(row.reads.bytes + row.writes.bytes));
    let [read_time, write_time] = match context.completion {
        Completion::Exact => ["Avg\nread time", "Avg\nwrite time"],
        Completion::Seen => ["Avg read\nseen after", "Avg write\nseen after"],
    };
    let mut table = Table::new(vec![
        Column::text("Function Name"),
        Column::number("Reads:\nReqs"),
        Column::number("Reads:\nData"),
        Column::number("Reads:\nMB/s"),
        Column::number("Avg\nread size"),
        Column::number(read_time),
        Column::number("Writes:\nReqs"),
        Column::number("Writes:\nData"),
        Column::number("Writes:\nMB/s"),
        Column::number("Avg\nwrite size"),
        Column::number(write_time),
    ]);
    let elapsed_ns = context.header.elapsed_ns;
    for row in &functions {
        table.row(function_cells(row, elapsed_ns));
    }
    if functions.len() > 1 {
        let total = IoFunction {
            function: "TOTAL:".to_string(),
            reads: sum(functions.iter().map(|row| row.reads)),
            writes: sum(functions.iter().map(|row| row.writes)),
        };
        table.push(RowKind::Total, function_cells(&total, elapsed_ns));
    }
    for device in &context.io_devices {
        let function = format!("{}, all processes", device.device);
        let row = IoFunction { function, reads: device.reads, writes: device.writes };
        table.push(RowKind::Quiet, function_cells(&row, elapsed_ns));
    }
    let section = Section::detail("io-functions", "IOStat by Function summary")
        .note("'Data' columns suffixed with K,M,G,T are in multiples of 1024")
        .note("MB/s over the whole run; ordered by (Data Read + Write) desc")
        .note(match context.completion {
            Completion::Exact => "Times: of the system call that moved a request, exact",
            Completion::Seen => {
                "Seen after: from the enter that handed a request to the kernel until its session saw the completion, \
                 which includes what the session did meanwhile"
            }
        });
    let section = match context.io_devices.is_empty() {
        true => section,
        false => section.note(
            "Last lines: the device's own time as the kernel counts it (/sys/class/block/DEV/stat), requests as it \
             split and merged them",
        ),
    };
    section.table(table)
}

fn function_cells(row: &IoFunction, elapsed_ns: u64) -> Vec<Cell> {
    let mut cells = vec![Cell::from(&row.function)];
    for tally in [row.reads, row.writes] {
        // A direction without a request is left blank, so that the others stand out.
        let moved = (tally.requests > 0).then_some(tally);
        cells.extend([
            Cell::of(moved.map(|tally| Count(tally.requests))),
            Cell::of(moved.map(|tally| Size(tally.bytes))),
            Cell::of(moved.map(|tally| Throughput { bytes: tally.bytes, elapsed_ns })),
            Cell::of(average_size(tally)),
            Cell::of(Average { total_ns: tally.time_ns, count: tally.requests }),
        ]);
    }
    cells
}

fn sum(tallies: impl Iterator<Item = IoTally>) -> IoTally {
    tallies.fold(IoTally::default(), |sum, tally| IoTally {
        requests: sum.requests + tally.requests,
        bytes: sum.bytes + tally.bytes,
        time_ns: sum.time_ns + tally.time_ns,
    })
}

fn average_size(tally: IoTally) -> Option<Size> {
    tally.bytes.checked_div(tally.requests).filter(|bytes| *bytes > 0).map(Size)
}

/// Requests and bytes by data file.
pub(super) fn files(context: &ReportContext) -> Section {
    let mut files = context.io_files.iter().collect::<Vec<_>>();
    files.sort_by_key(|file| (&file.tablespace, &file.path));
    let [read_time, write_time] = match context.completion {
        Completion::Exact => ["Av\nRd time", "Av\nWrt time"],
        Completion::Seen => ["Av Rd\nseen after", "Av Wrt\nseen after"],
    };
    let mut table = Table::new(vec![
        Column::text("Tablespace"),
        Column::wrapped("Filename", 36),
        Column::number("Reads"),
        Column::number("Av\nRds/s"),
        Column::number(read_time),
        Column::number("Av\nRd size"),
        Column::number("Writes"),
        Column::number("Av\nWrts/s"),
        Column::number(write_time),
        Column::number("Av\nWrt size"),
    ]);
    let elapsed_ns = context.header.elapsed_ns;
    for file in files {
        let mut cells = vec![Cell::from(&file.tablespace), Cell::from(&file.path)];
        for tally in [file.reads, file.writes] {
            let per_second = PerSecond { total: tally.requests as f64, elapsed_ns };
            cells.extend([
                Cell::of(Count(tally.requests)),
                Cell::from(per_second.figure()),
                Cell::of(Average { total_ns: tally.time_ns, count: tally.requests }),
                Cell::of(average_size(tally)),
            ]);
        }
        table.row(cells);
    }
    Section::detail("io-files", "File IO Stats").note("ordered by Tablespace, File").table(table)
}
