//! I/O over time, by function and by file.

use super::beside;
use plumb_events::Direction;
use plumb_record::{Completion, IoFunction, IoTally, Phase, ProfileSeries, Record};
use plumb_report::format::{Average, Count, Decimal, Figure, PerSecond, Percent, Seconds, Size, Throughput};
use plumb_report::profile::{Band, Chart, Limit, Stream, axis_end};
use plumb_report::table::{Cell, RowKind, Table};
use plumb_report::{Block, Section, cells};
use plumb_units::{Bytes, Nanos};

/// The picture: bytes over time and the phases.
pub(super) fn profile(record: &Record) -> Option<Section> {
    let chart = chart(record)?;
    let section = Section::front("io-profile", "I/O Profile").note(format!(
        "MB/s (2^20 bytes) over seconds from the start, in buckets of {} s; streams cover the whole run, that is all \
         phases",
        chart.bucket_s
    ));
    let section = match chart.strips.is_empty() {
        true => section,
        false => section.note(format!(
            "below it, on the same axis: what was seen beside the run, a look every {} s; each from 0 to the figure at its left",
            record.beside.as_ref().map_or(1.0, |beside| Nanos(beside.interval_ns).seconds())
        )),
    };
    Some(section.block(Block::Profile(chart)))
}

/// Its figures, by stream and by phase.
pub(super) fn streams(record: &Record) -> Option<Section> {
    let chart = chart(record);
    if chart.is_none() && record.phases.is_empty() {
        return None;
    }
    let mut section = Section::front("io-streams", "I/O Streams and Phases")
        .note("of the whole run; the sections below cover the measured operation alone");
    if let Some(chart) = chart {
        if limit_mb_per_s(record, Direction::Read).is_some() {
            let by = if record.calibrated().is_some() { "as calibrated" } else { "as measured in this run" };
            section = section.note(format!("% of device: of its sequential read or write {by}"));
        }
        section = section.table(series(record, &chart));
    }
    Some(if record.phases.is_empty() { section } else { section.table(phases(record)) })
}

/// What is drawn of a profile: the streams that moved, on axes that end with the last of all that is drawn (bytes, phases and
/// what was seen beside them: a device may be measured when no stream moves any more) and at a round number above the largest bucket, or above the device's own limit when that is near enough to be worth seeing.
fn chart(record: &Record) -> Option<Chart> {
    let profile = &record.io_profile;
    let streams = moved(&profile.series);
    if profile.bucket_ns == 0 || streams.is_empty() {
        return None;
    }
    let bucket_s = Nanos(profile.bucket_ns).seconds();
    let peak = streams.iter().map(|stream| stream.peak_mb_per_s(bucket_s)).fold(0.0, f64::max);
    let limit = limit_mb_per_s(record, Direction::Read);
    // The limit belongs in the picture unless it would flatten the data below half of it.
    let top = limit.filter(|limit| *limit <= 2.0 * peak).map_or(peak, |limit| limit.max(peak));
    let elapsed_s = Nanos(record.header.elapsed_ns).seconds();
    let positive = |axis: Option<f64>| axis.filter(|end| end.is_finite() && *end > 0.0);
    let bands = record.phases.iter().map(|phase| Band {
        name: phase.name.clone(),
        start_s: Nanos(phase.start_ns).seconds(),
        end_s: Nanos(phase.end_ns).seconds(),
    });
    let bytes_end_s = positive(profile.x_max_s).unwrap_or(elapsed_s.max(bucket_s));
    let seen = record.beside.iter().flat_map(|beside| &beside.samples).map(|sample| sample.end_ns);
    let ends = record.phases.iter().map(|phase| phase.end_ns).chain(seen);
    Some(Chart {
        x_max_s: ends.map(|ns| Nanos(ns).seconds()).fold(bytes_end_s, f64::max),
        y_max_mb_per_s: positive(profile.y_max_mb_per_s).unwrap_or(axis_end(top)),
        bucket_s,
        streams,
        bands: bands.collect(),
        limit: limit.map(|mb_per_s| Limit { name: "device sequential read".to_string(), mb_per_s }),
        strips: record.beside.as_ref().map(beside::strips).unwrap_or_default(),
    })
}

/// The streams in which anything moved; the place in the record chooses the colour.
pub(crate) fn moved(series: &[ProfileSeries]) -> Vec<Stream> {
    let moved = series.iter().enumerate().filter(|(_, series)| series.bytes.iter().any(|bytes| *bytes > 0));
    let stream = |(colour, series): (usize, &ProfileSeries)| Stream {
        name: series.name.clone(),
        colour,
        bytes: series.bytes.clone(),
    };
    moved.map(stream).collect()
}

/// The device's sequential limit, MB/s: that of a calibration where one holds, otherwise
/// what the run itself measured. None where files lie on several devices: no limit
/// is that of all.
fn limit_mb_per_s(record: &Record, direction: Direction) -> Option<f64> {
    let mut devices = record.devices.iter().map(|device| &device.device);
    if devices.next().is_some_and(|first| devices.any(|other| other != first)) {
        return None;
    }
    let stored = record.calibrated();
    let bytes_per_s = match direction {
        Direction::Read => stored
            .and_then(|stored| stored.sequential_read_bytes_per_s)
            .or_else(|| record.calibration.as_ref()?.sequential_limit()),
        Direction::Write => stored.and_then(|stored| stored.sequential_write_bytes_per_s),
    };
    bytes_per_s.map(|rate| rate / Bytes::M as f64)
}

fn series(record: &Record, chart: &Chart) -> Table {
    let mut table = Table::default()
        .text(["Stream"])
        .numbers(["Data", "Active (s)", "MB/s\nwhile active", "MB/s\npeak", "% of device\nwhile active"])
        .with_caption("Streams, whole run");
    for series in &chart.streams {
        let bytes = series.total();
        let active = series.bytes.iter().filter(|bytes| **bytes > 0).count();
        let active_ns = active as u64 * record.io_profile.bucket_ns;
        let rate = Bytes(bytes).per(Nanos(active_ns)).mb_per_second();
        let limit = limit_mb_per_s(record, record.io_profile.series[series.colour].direction).unwrap_or(0.0);
        let share = Percent { part: rate, whole: limit };
        table.row(cells![
            &series.name,
            Size(bytes),
            Seconds(active_ns),
            Decimal(rate),
            Decimal(series.peak_mb_per_s(chart.bucket_s)),
            Cell::of(share).with_share(share.share())
        ]);
    }
    table
}

/// What a phase did; what it handled no rows of, or moved no bytes of its own in, is blank: the requests of a device that is
/// measured are no rows and no bytes of the run.
fn phases(record: &Record) -> Table {
    let mut table = Table::default()
        .text(["Phase", "Operation"])
        .numbers(["Start (s)", "End (s)", "Elapsed (s)", "Rows", "Rows/s", "Data", "MB/s", "% of\ndevice"])
        .with_caption("Phases");
    for phase in &record.phases {
        let elapsed_ns = phase.end_ns.saturating_sub(phase.start_ns);
        let rows = Some(phase.rows).filter(|rows| *rows > 0);
        let rows_per_s = rows.map(|rows| PerSecond { total: rows as f64, elapsed_ns }.rate());
        let bytes = Some(phase.bytes).filter(|bytes| *bytes > 0);
        table.row(cells![
            &phase.name,
            &phase.operation,
            Seconds(phase.start_ns),
            Seconds(phase.end_ns),
            Seconds(elapsed_ns),
            rows.map(Count),
            rows_per_s.map(|rate| Count(rate.round() as u64)),
            bytes.map(Size),
            bytes.map(|bytes| Throughput { bytes, elapsed_ns }),
            bytes.and_then(|_| phase_share(record, phase))
        ]);
    }
    table
}

/// What a phase that moved bytes one way reached of the device's limit that way.
pub(crate) fn phase_share(record: &Record, phase: &Phase) -> Option<Percent> {
    let whole = limit_mb_per_s(record, phase.direction?)?;
    let elapsed = Nanos(phase.end_ns.saturating_sub(phase.start_ns));
    (elapsed.0 > 0).then(|| Percent { part: Bytes(phase.bytes).per(elapsed).mb_per_second(), whole })
}

/// Requests and bytes by the function that asked for them.
pub(super) fn functions(record: &Record) -> Section {
    let mut functions = record.io_functions.iter().collect::<Vec<_>>();
    functions.retain(|row| row.reads.requests + row.writes.requests > 0);
    functions.sort_by_key(|row| std::cmp::Reverse(row.reads.bytes + row.writes.bytes));
    let [read_time, write_time] = match record.completion {
        Completion::Exact => ["Avg\nread time", "Avg\nwrite time"],
        Completion::Seen => ["Avg read\nseen after", "Avg write\nseen after"],
    };
    let mut table = Table::default().text(["Function Name"]).numbers([
        "Reads:\nReqs",
        "Reads:\nData",
        "Reads:\nMB/s",
        "Avg\nread size",
        read_time,
        "Writes:\nReqs",
        "Writes:\nData",
        "Writes:\nMB/s",
        "Avg\nwrite size",
        write_time,
    ]);
    let elapsed_ns = record.header.elapsed_ns;
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
    for device in &record.io_devices {
        let function = format!("{}, all processes", device.device);
        let row = IoFunction { function, reads: device.reads, writes: device.writes };
        table.push(RowKind::Quiet, function_cells(&row, elapsed_ns));
    }
    let section = Section::detail("io-functions", "IOStat by Function summary")
        .note("'Data' columns suffixed with K,M,G,T are in multiples of 1024")
        .note("MB/s over the whole run; ordered by (Data Read + Write) desc")
        .note(match record.completion {
            Completion::Exact => "Times: of the system call that moved a request, exact",
            Completion::Seen => {
                "Seen after: from the enter that handed a request to the kernel until its session saw the completion, \
                 which includes what the session did meanwhile"
            }
        });
    let section = match record.io_devices.is_empty() {
        true => section,
        false => section.note(
            "Last lines: the device's own time as the kernel counts it (/sys/class/block/DEV/stat), requests as it \
             split and merged them",
        ),
    };
    section.table(table)
}

fn function_cells(row: &IoFunction, elapsed_ns: u64) -> Vec<Cell> {
    let mut cells = cells![&row.function];
    for tally in [row.reads, row.writes] {
        let average = tally.time_ns.map(|total_ns| Average { total_ns, count: tally.requests });
        // A direction without a request is left blank, so that the others stand out.
        let moved = (tally.requests > 0).then_some(tally);
        cells.extend([
            Cell::of(moved.map(|tally| Count(tally.requests))),
            Cell::of(moved.map(|tally| Size(tally.bytes))),
            Cell::of(moved.map(|tally| Throughput { bytes: tally.bytes, elapsed_ns })),
            Cell::of(average_size(tally)),
            Cell::of(average),
        ]);
    }
    cells
}

fn sum(tallies: impl Iterator<Item = IoTally>) -> IoTally {
    tallies.fold(IoTally::default(), |mut sum, tally| {
        sum.add(&tally);
        sum
    })
}

fn average_size(tally: IoTally) -> Option<Size> {
    tally.bytes.checked_div(tally.requests).filter(|bytes| *bytes > 0).map(Size)
}

/// Requests and bytes by data file.
pub(super) fn files(record: &Record) -> Section {
    let mut files = record.io_files.iter().collect::<Vec<_>>();
    files.sort_by_key(|file| (&file.tablespace, &file.path));
    let [read_time, write_time] = match record.completion {
        Completion::Exact => ["Av\nRd time", "Av\nWrt time"],
        Completion::Seen => ["Av Rd\nseen after", "Av Wrt\nseen after"],
    };
    let mut table = Table::default().text(["Tablespace"]).wrapped("Filename", 36).numbers([
        "Reads",
        "Av\nRds/s",
        read_time,
        "Av\nRd size",
        "Writes",
        "Av\nWrts/s",
        write_time,
        "Av\nWrt size",
    ]);
    let elapsed_ns = record.header.elapsed_ns;
    for file in files {
        let mut cells = cells![&file.tablespace, &file.path];
        for tally in [file.reads, file.writes] {
            let per_second = PerSecond { total: tally.requests as f64, elapsed_ns };
            cells.extend([
                Cell::of(Count(tally.requests)),
                Cell::from(per_second.figure()),
                Cell::of(tally.time_ns.map(|total_ns| Average { total_ns, count: tally.requests })),
                Cell::of(average_size(tally)),
            ]);
        }
        table.row(cells);
    }
    Section::detail("io-files", "File IO Stats").note("ordered by Tablespace, File").table(table)
}
