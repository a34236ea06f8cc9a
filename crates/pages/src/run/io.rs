//! I/O over time, by stream and by phase.

use super::beside;
use plumb_events::Direction;
use plumb_record::{Phase, ProfileSeries, Record};
use plumb_report::format::{Count, Decimal, PerSecond, Percent, Seconds, Size, Throughput};
use plumb_report::profile::{Band, Chart, Limit, Stream, axis_end};
use plumb_report::table::{Cell, Table};
use plumb_report::{Block, Section, table};
use plumb_units::{Bytes, Nanos};

/// Draws bytes over time and the phases.
pub(super) fn profile(record: &Record) -> Option<Section> {
    let chart = chart(record)?;
    let measured = measured(record, &chart);
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
    let section = section.block(Block::Profile(chart));
    Some(match measured {
        Some(measured) => section
            .note(
                "the second picture is the measured work alone, on an axis of its own: other phases moved bytes far faster",
            )
            .block(Block::Profile(measured)),
        None => section,
    })
}

/// Operations of a run outside the measured work.
const OUTSIDE: [&str; 3] = ["load", "calibration", "verify"];
/// Rate of the work, of that of the whole run, below which it is drawn apart.
const FLAT: f64 = 0.25;

/// Draws the measured work alone if other phases moved bytes so fast that it would be a flat line.
fn measured(record: &Record, whole: &Chart) -> Option<Chart> {
    let work = || record.phases.iter().filter(|phase| !OUTSIDE.contains(&phase.operation.as_str()));
    let begin_ns = work().map(|phase| phase.start_ns).min()?;
    let end_ns = work().map(|phase| phase.end_ns).max()?;
    let width = record.io_profile.bucket_ns.max(1);
    let (first, last) = ((begin_ns / width) as usize, end_ns.div_ceil(width) as usize);
    let streams = whole.streams.iter().map(|stream| Stream {
        bytes: stream.bytes.iter().take(last).skip(first).copied().collect(),
        ..stream.clone()
    });
    let mut streams: Vec<Stream> = streams.collect();
    streams.retain(|stream| stream.total() > 0);
    let peak = |streams: &[Stream]| {
        streams.iter().map(|stream| stream.peak_mb_per_s(whole.bucket_s)).fold(0.0, f64::max)
    };
    let top = peak(&streams);
    if streams.is_empty() || top >= FLAT * peak(&whole.streams) {
        return None;
    }
    let from_s = first as f64 * whole.bucket_s;
    let bands = work().map(|phase| Band {
        name: phase.name.clone(),
        start_s: (Nanos(phase.start_ns).seconds() - from_s).max(0.0),
        end_s: Nanos(phase.end_ns).seconds() - from_s,
    });
    Some(Chart {
        x_max_s: Nanos(end_ns).seconds() - from_s,
        y_max_mb_per_s: axis_end(top),
        bucket_s: whole.bucket_s,
        streams,
        bands: bands.collect(),
        limit: None,
        strips: Vec::new(),
    })
}

/// Shows the figures of the picture, by stream and by phase.
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

/// Returns the chart of a profile with the streams that moved bytes. The time axis ends with
/// the last of bytes, phases and samples, because a device may be measured after the last
/// stream. The other axis ends at a round number above the largest bucket, or above the
/// device's limit if that is near.
fn chart(record: &Record) -> Option<Chart> {
    let profile = &record.io_profile;
    let streams = moved(&profile.series);
    if profile.bucket_ns == 0 || streams.is_empty() {
        return None;
    }
    let bucket_s = Nanos(profile.bucket_ns).seconds();
    let peak = streams.iter().map(|stream| stream.peak_mb_per_s(bucket_s)).fold(0.0, f64::max);
    let limit = limit_mb_per_s(record, Direction::Read);
    // The limit is drawn unless it would flatten the data below half of the chart.
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

/// Returns the streams that moved bytes; their index in the record chooses the colour.
pub(crate) fn moved(series: &[ProfileSeries]) -> Vec<Stream> {
    let moved = series.iter().enumerate().filter(|(_, series)| series.bytes.iter().any(|bytes| *bytes > 0));
    let stream = |(colour, series): (usize, &ProfileSeries)| Stream {
        name: series.name.clone(),
        colour,
        bytes: series.bytes.clone(),
    };
    moved.map(stream).collect()
}

/// Returns the device's sequential limit, MB/s, from a valid calibration, otherwise from this run.
/// `None` if files are on several devices, because no limit applies to all.
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
    table!(series in &chart.streams; {
        let bytes = series.total();
        let active = series.bytes.iter().filter(|bytes| **bytes > 0).count();
        let active_ns = active as u64 * record.io_profile.bucket_ns;
        let rate = Bytes(bytes).per(Nanos(active_ns)).mb_per_second();
        let limit = limit_mb_per_s(record, record.io_profile.series[series.colour].direction).unwrap_or(0.0);
        let share = Percent { part: rate, whole: limit };
    } [
        text "Stream" => &series.name,
        numbers "Data" => Size(bytes),
        numbers "Active (s)" => Seconds(active_ns),
        numbers "MB/s\nwhile active" => Decimal(rate),
        numbers "MB/s\npeak" => Decimal(series.peak_mb_per_s(chart.bucket_s)),
        numbers "% of device\nwhile active" => Cell::of(share).with_share(share.share()),
    ])
    .with_caption("Streams, whole run")
}

/// Shows the phases. A phase without rows or bytes of its own has blanks: probes of the device are
/// neither rows nor bytes of the run.
fn phases(record: &Record) -> Table {
    table!(phase in &record.phases; {
        let elapsed_ns = phase.end_ns.saturating_sub(phase.start_ns);
        let rows = Some(phase.rows).filter(|rows| *rows > 0);
        let rows_per_s = rows.map(|rows| PerSecond { total: rows as f64, elapsed_ns }.rate());
        let bytes = Some(phase.bytes).filter(|bytes| *bytes > 0);
    } [
        text "Phase" => &phase.name,
        text "Operation" => &phase.operation,
        numbers "Start (s)" => Seconds(phase.start_ns),
        numbers "End (s)" => Seconds(phase.end_ns),
        numbers "Elapsed (s)" => Seconds(elapsed_ns),
        numbers "Rows" => rows.map(Count),
        numbers "Rows/s" => rows_per_s.map(|rate| Count(rate.round() as u64)),
        numbers "Data" => bytes.map(Size),
        numbers "MB/s" => bytes.map(|bytes| Throughput { bytes, elapsed_ns }),
        numbers "% of\ndevice" => bytes.and_then(|_| phase_share(record, phase)),
    ])
    .with_caption("Phases")
}

/// Returns the share of the device's limit that a phase with one direction reached.
pub(crate) fn phase_share(record: &Record, phase: &Phase) -> Option<Percent> {
    let whole = limit_mb_per_s(record, phase.direction?)?;
    let elapsed = Nanos(phase.end_ns.saturating_sub(phase.start_ns));
    (elapsed.0 > 0).then(|| Percent { part: Bytes(phase.bytes).per(elapsed).mb_per_second(), whole })
}
