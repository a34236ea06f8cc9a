//! Samples of the machine during the run: strips below its profile, and tables of the same figures.
//!
//! The columns are those of collectl and iostat: reads and writes separately, then both. Queue and
//! wait derive from the kernel's times. The queue is the weighted time over the elapsed one, the
//! wait the time of requests over their number.

use plumb_record::{Beside, DeviceSample, DeviceTally, HostCpu, Record, Sample};
use plumb_report::format::{Count, Decimal, Duration, Percent, Seconds, Size, grouped};
use plumb_report::profile::axis_end;
use plumb_report::strip::{Strip, StripLine};
use plumb_report::table::{Column, Table};
use plumb_report::{Section, cells};
use plumb_units::Bytes;

/// Largest number of rows in a table; neighbouring samples are added.
const ROWS_MAX: usize = 24;

/// A figure of a sample; `None` if unknown.
type Reading = fn(&Sample, usize) -> Option<f64>;

/// Returns panels below the profile: those of each active device, then shares of the whole machine.
pub(super) fn strips(beside: &Beside) -> Vec<Strip> {
    let rate: [(&str, &str, Reading); 2] = [
        ("reads", "MB/s", |sample, device| per_second(sample, device, |of| of.reads.bytes as f64 / MB)),
        ("writes", "MB/s", |sample, device| per_second(sample, device, |of| of.writes.bytes as f64 / MB)),
    ];
    let requests: [(&str, &str, Reading); 2] = [
        ("reads", "/s", |sample, device| per_second(sample, device, |of| of.reads.requests as f64)),
        ("writes", "/s", |sample, device| per_second(sample, device, |of| of.writes.requests as f64)),
    ];
    let wait: [(&str, &str, Reading); 2] = [
        ("reads", "ms", |sample, device| wait_ms(&sample.devices.get(device)?.reads)),
        ("writes", "ms", |sample, device| wait_ms(&sample.devices.get(device)?.writes)),
    ];
    let queue: [(&str, &str, Reading); 1] =
        [("requests", "", |sample, device| per_second(sample, device, |of| of.weighted_ns as f64 / 1e9))];
    let mut strips = Vec::new();
    for (index, name) in busy_devices(beside) {
        let panels = [
            ("throughput", &rate[..]),
            ("requests", &requests[..]),
            ("wait", &wait[..]),
            ("queue", &queue[..]),
        ];
        for (what, lines) in panels {
            strips.extend(strip(beside, &format!("{name} {what}"), index, lines, None));
        }
        // The kernel counts busy time in steps, and the clock is read next to its counters. A busy
        // device may exceed 100%, where the panel ends.
        let busy: [(&str, &str, Reading); 1] = [("busy", "%", |sample, device| {
            per_second(sample, device, |of| of.busy_ns as f64 / 1e7).map(|percent| percent.min(100.0))
        })];
        strips.extend(strip(beside, &format!("{name} utilisation"), index, &busy, Some(100.0)));
    }
    let machine: [(&str, &str, Reading); 4] = [
        ("CPU user+system", "%", |sample, _| cpu_percent(sample, |cpu| cpu.user_ns + cpu.system_ns)),
        ("CPU I/O wait", "%", |sample, _| cpu_percent(sample, |cpu| cpu.iowait_ns)),
        ("CPU stolen", "%", |sample, _| cpu_percent(sample, |cpu| cpu.steal_ns)),
        ("memory stalls", "%", |sample, _| stalled_percent(sample)),
    ];
    strips.extend(strip(beside, "host", 0, &machine, Some(100.0)));
    strips
}

const MB: f64 = Bytes::M as f64;

/// Returns a panel; `None` without values.
fn strip(
    beside: &Beside,
    title: &str,
    device: usize,
    lines: &[(&str, &str, Reading)],
    top: Option<f64>,
) -> Option<Strip> {
    let line = |(colour, (name, _, of)): (usize, &(&str, &str, Reading))| StripLine {
        name: (*name).to_string(),
        colour,
        values: beside.samples.iter().map(|sample| of(sample, device)).collect(),
    };
    let lines_drawn: Vec<StripLine> = lines.iter().enumerate().map(line).collect();
    let largest = lines_drawn.iter().flat_map(|line| &line.values).flatten().copied().reduce(f64::max)?;
    let begin = beside.samples.first()?.begin_ns;
    let ends = std::iter::once(begin).chain(beside.samples.iter().map(|sample| sample.end_ns));
    Some(Strip {
        title: title.to_string(),
        unit: lines.first()?.1.to_string(),
        top: top.unwrap_or_else(|| axis_end(largest)),
        ends_s: ends.map(|ns| ns as f64 / 1e9).collect(),
        lines: lines_drawn,
    })
}

/// Returns indices and names of the devices with requests.
pub(super) fn busy_devices(beside: &Beside) -> Vec<(usize, String)> {
    let devices = beside.samples.first().map(|sample| sample.devices.as_slice()).unwrap_or_default();
    let moved = |index: usize| {
        let mut samples = beside.samples.iter().filter_map(|sample| sample.devices.get(index));
        samples.any(|device| device.reads.requests + device.writes.requests > 0)
    };
    let named = devices.iter().enumerate().filter(|(index, _)| moved(*index));
    named.map(|(index, device)| (index, device.device.clone())).collect()
}

fn per_second(sample: &Sample, device: usize, of: fn(&DeviceSample) -> f64) -> Option<f64> {
    let device = sample.devices.get(device)?;
    (sample.seconds() > 0.0).then(|| of(device) / sample.seconds())
}

/// Mean time of a request, milliseconds; `None` without a request.
fn wait_ms(tally: &DeviceTally) -> Option<f64> {
    (tally.requests > 0).then(|| tally.time_ns as f64 / tally.requests as f64 / 1e6)
}

fn cpu_percent(sample: &Sample, of: fn(&HostCpu) -> u64) -> Option<f64> {
    let cpu = sample.cpu.as_ref()?;
    let all = cpu.total_ns();
    Percent::of(of(cpu), all).share().map(|share| 100.0 * share)
}

fn stalled_percent(sample: &Sample) -> Option<f64> {
    let stalled = sample.memory?.some_stalled_ns?;
    (sample.seconds() > 0.0).then(|| stalled as f64 / 1e7 / sample.seconds())
}

/// Shows the same figures in tables, one for each device and one for the machine.
pub(super) fn section(record: &Record) -> Option<Section> {
    let beside = record.beside.as_ref().filter(|beside| !beside.samples.is_empty())?;
    let samples = beside.joined(ROWS_MAX);
    let cost_share = Percent::of(beside.cost_ns, elapsed_ns(beside));
    let mut section = Section::detail("beside", "Beside the Run")
        .note("as the kernel counts for all processes, over the whole run; At: where the stretch ends, on the run's clock")
        .note("Queue: requests under way on average; Wait: from submission to completion; Busy: share of time with a request under way")
        .note(format!(
            "looking took {} of CPU in all, {}% of one processor",
            plumb_report::format::Figure::figure(&Duration(beside.cost_ns)),
            grouped(cost_share.share().unwrap_or(0.0) * 100.0, 3)
        ));
    if samples.len() < beside.samples.len() {
        section = section.note(format!(
            "{} looks in {} rows; beside.csv of the bundle has each",
            beside.samples.len(),
            samples.len()
        ));
    }
    for (index, name) in busy_devices(beside) {
        section = section.table(device_table(&samples, index).with_caption(name));
    }
    Some(section.table(host_table(&samples).with_caption("Host")))
}

fn elapsed_ns(beside: &Beside) -> u64 {
    let ends = beside.samples.first().zip(beside.samples.last());
    ends.map_or(0, |(first, last)| last.end_ns.saturating_sub(first.begin_ns))
}

fn device_table(samples: &[Sample], device: usize) -> Table {
    let mut columns = vec![Column::number("At (s)")];
    for direction in ["Reads:", "Writes:"] {
        let titles = ["KB/s", "Merged/s", "IOs/s", "Size", "Wait"];
        columns.extend(titles.map(|title| Column::number(format!("{direction}\n{title}"))));
    }
    columns.extend(["Both:\nSize", "Queue", "Wait", "Busy %"].map(Column::number));
    let mut table = Table::new(columns);
    for sample in samples {
        let Some(seen) = sample.devices.get(device) else { continue };
        let mut cells = cells![Seconds(sample.end_ns)];
        for tally in [seen.reads, seen.writes] {
            cells.extend(tally_cells(&tally, sample.seconds()));
        }
        let both = DeviceTally {
            requests: seen.reads.requests + seen.writes.requests,
            merged: 0,
            bytes: seen.reads.bytes + seen.writes.bytes,
            time_ns: seen.reads.time_ns + seen.writes.time_ns,
        };
        let busy = Percent { part: seen.busy_ns as f64 / 1e9, whole: sample.seconds() };
        cells.extend(cells![
            size(&both),
            per_second(sample, device, |of| of.weighted_ns as f64 / 1e9).map(Decimal),
            wait(&both),
            busy
        ]);
        table.row(cells);
    }
    table
}

fn tally_cells(tally: &DeviceTally, seconds: f64) -> Vec<plumb_report::table::Cell> {
    let per_second = |count: f64| (seconds > 0.0).then(|| Count((count / seconds).round() as u64));
    cells![
        per_second(tally.bytes as f64 / 1024.0),
        per_second(tally.merged as f64),
        per_second(tally.requests as f64),
        size(tally),
        wait(tally)
    ]
}

fn size(tally: &DeviceTally) -> Option<Size> {
    tally.bytes.checked_div(tally.requests).filter(|bytes| *bytes > 0).map(Size)
}

fn wait(tally: &DeviceTally) -> Option<Duration> {
    tally.time_ns.checked_div(tally.requests).map(Duration)
}

fn host_table(samples: &[Sample]) -> Table {
    let mut table = Table::default().numbers([
        "At (s)",
        "% User",
        "% System",
        "% I/O\nwait",
        "% Steal",
        "% Idle",
        "Load",
        "Memory\navailable",
        "% of time\nstalled",
    ]);
    let parts: [fn(&HostCpu) -> u64; 5] =
        [|cpu| cpu.user_ns, |cpu| cpu.system_ns, |cpu| cpu.iowait_ns, |cpu| cpu.steal_ns, |cpu| cpu.idle_ns];
    for sample in samples {
        let mut cells = cells![Seconds(sample.end_ns)];
        cells.extend(parts.map(|of| plumb_report::table::Cell::of(cpu_percent(sample, of).map(Decimal))));
        let load = sample.cpu.as_ref().and_then(|cpu| cpu.load_end);
        cells.extend(cells![
            load.map_or(String::new(), |load| grouped(load, 2)),
            sample.memory.and_then(|memory| memory.available_bytes).map(Size),
            stalled_percent(sample).map(Decimal)
        ]);
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample with both kinds of requests.
    fn sample(second: u64) -> Sample {
        let tally = DeviceTally { requests: 100, merged: 0, bytes: 100 << 20, time_ns: 50_000_000 };
        Sample {
            begin_ns: second * 1_000_000_000,
            end_ns: (second + 1) * 1_000_000_000,
            devices: vec![DeviceSample {
                device: "nvme0n1".to_string(),
                reads: tally,
                writes: tally,
                busy_ns: 900_000_000,
                weighted_ns: 100_000_000,
            }],
            ..Sample::default()
        }
    }

    #[test]
    fn each_panel_has_a_title_of_its_own() {
        let beside = Beside { interval_ns: 1_000_000_000, cost_ns: 0, samples: (0..3).map(sample).collect() };
        let titles: Vec<String> = strips(&beside).into_iter().map(|strip| strip.title).collect();
        let expected = ["throughput", "requests", "wait", "queue", "utilisation"];
        assert_eq!(titles, expected.map(|what| format!("nvme0n1 {what}")));
    }
}
