//! Requests of the log, bytes that reached its device, and requests of a trace.

use super::beside::busy_devices;
use plumb_events::Direction;
use plumb_record::{Beside, DeviceSample, DeviceTally, LogIo, Record, TraceBucket, TracePoint, TraceSummary};
use plumb_report::format::{Average, Count, Decimal, Duration, Figure, Size, grouped};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, duration, short_micros};
use plumb_report::table::{Facts, Table};
use plumb_report::{Drawing, Section, cells};
use plumb_units::{Bytes, Nanos};

/// Upper bounds of the lengths with one colour each in the picture.
const SIZES: [u64; 5] = [Bytes::K, 8 * Bytes::K, 64 * Bytes::K, 512 * Bytes::K, u64::MAX];

/// Compares requests of the log with the bytes its device received; `None` without a log.
pub(super) fn log(record: &Record) -> Option<Section> {
    let log = record.log.as_ref()?;
    let mut facts = Facts::default();
    let way = if log.direct { "direct" } else { "buffered" };
    facts.add("Log files", format!("{way}, {}", log.sync_method));
    facts.add("Pattern", log.pattern.name());
    let mean = |total: u64, count: u64| total as f64 / count.max(1) as f64;
    facts.add(
        "Log writes",
        format!(
            "{} of {} on average, {} each",
            Count(log.writes).figure(),
            Bytes(mean(log.write_bytes, log.writes) as u64),
            Nanos(mean(log.write_ns, log.writes) as u64)
        ),
    );
    facts.add(
        "By the statistics",
        format!(
            "{} redo writes, {} each with what makes them durable",
            Count(log.redo_writes).figure(),
            Nanos((mean(log.redo_write_us, log.redo_writes) * 1e3) as u64)
        ),
    );
    facts.add("Redo size", Bytes(log.redo_bytes).to_string());
    facts.add(
        "Asked of the files",
        format!("{} written, {} read", Bytes(log.write_bytes), Bytes(log.read_bytes)),
    );
    facts.add("Sent to the device", log.sent_bytes.map_or(String::new(), |sent| sent_line(log, sent)));
    let fetched = |fetched: u64| format!("{} that nobody asked for", Bytes(fetched));
    facts.add("Fetched from it", log.fetched_bytes.map_or(String::new(), fetched));
    let slow = |slow: u64| {
        let beside = log.slow_beside_reads.map_or(String::new(), |beside| {
            format!(", {} of them in a second in which the device read", Count(beside).figure())
        });
        format!("{} writes above four times the median{beside}", Count(slow).figure())
    };
    facts.add("Slow", log.slow_writes.map_or(String::new(), slow));
    let section = Section::detail("log-io", "Log I/O")
        .note("sent and fetched: what the kernel counts for this process, less what was asked of other files; amplification: sent over redo size");
    Some(section.facts(facts))
}

fn sent_line(log: &LogIo, sent: u64) -> String {
    // Without redo there is nothing to be amplified.
    if log.redo_bytes == 0 {
        return Bytes(sent).to_string();
    }
    let times = sent as f64 / log.redo_bytes as f64;
    format!("{}, amplification {}", Bytes(sent), Decimal(times).figure())
}

/// Shows the requests of a trace; `None` without one.
pub(super) fn trace(record: &Record) -> Option<Section> {
    let trace = record.trace.as_ref()?;
    let mut sums = Table::default()
        .text(["Session", "Direction"])
        .numbers(["Requests", "Data", "Average\nsize", "Average\ntime", "Longest"])
        .with_caption("By session");
    for sum in &trace.sessions {
        sums.row(cells![
            &sum.name,
            name(sum.direction),
            Count(sum.requests),
            Size(sum.bytes),
            Size(sum.bytes / sum.requests.max(1)),
            Average { total_ns: sum.time_ns, count: sum.requests },
            Duration(sum.max_ns),
        ]);
    }
    let devices = record.beside.as_ref().and_then(|beside| device_picture(trace, beside));
    let drawings = [Some(picture(trace)), devices].into_iter().flatten().map(Drawing::Plot);
    let section = Section::detail("trace", "Requests")
        .note(format!(
            "{} requests kept, {} dropped for lack of room; `plumb trace` prints them from the bundle",
            Count(trace.requests).figure(),
            Count(trace.dropped).figure()
        ))
        .drawings(drawings.collect())
        .table(sums)
        .table(histogram("By length", "Up to", &trace.sizes, |to| Bytes(to).as_setting()))
        .table(histogram("By service time", "Up to", &trace.latencies, |to| Nanos(to).to_string()));
    Some(section)
}

const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}

fn histogram(caption: &str, column: &str, buckets: &[TraceBucket], label: fn(u64) -> String) -> Table {
    let mut table = Table::default().text([column]).numbers(["Reads", "Writes"]).with_caption(caption);
    for bucket in buckets {
        table.row(cells![label(bucket.to), Count(bucket.reads), Count(bucket.writes)]);
    }
    table
}

/// Draws service time over time, with a colour for each range of lengths.
fn picture(trace: &TraceSummary) -> Plot {
    let micros = |point: &TracePoint| point.latency_ns as f64 / 1e3;
    let [least, most] =
        [f64::min, f64::max].map(|choose| trace.points.iter().map(micros).reduce(choose).unwrap_or(1.0));
    let series = |(place, to): (usize, &u64)| {
        let from = place.checked_sub(1).map_or(0, |before| SIZES[before]);
        let own = trace.points.iter().filter(|point| point.bytes > from && point.bytes <= *to);
        let mark = |point: &TracePoint| Mark {
            x: point.begin_ns as f64 / 1e9,
            y: micros(point),
            hint: format!(
                "{} of {} in {}",
                name(point.direction),
                Bytes(point.bytes),
                duration(micros(point))
            ),
            ..Mark::default()
        };
        let to =
            if *to == u64::MAX { "larger".to_string() } else { format!("to {}", Bytes(*to).as_setting()) };
        Series { name: to, colour: place, stroke: Stroke::Marks, marks: own.map(mark).collect() }
    };
    Plot {
        title: "Service time of requests, by length".to_string(),
        x: seconds(trace),
        y: Axis::log("service time", least, most, short_micros),
        series: SIZES.iter().enumerate().map(series).filter(|series| !series.marks.is_empty()).collect(),
    }
}

/// Draws the block devices' requests of all processes. They exceed the requests above if the file
/// system pads, splits, or reads before it writes.
fn device_picture(trace: &TraceSummary, beside: &Beside) -> Option<Plot> {
    type Way = fn(&DeviceSample) -> &DeviceTally;
    let ways: [(&str, Way); 2] = [("reads", |device| &device.reads), ("writes", |device| &device.writes)];
    let mut series = Vec::new();
    for (index, name) in busy_devices(beside) {
        for (way, of) in ways {
            let marks = beside.samples.iter().filter_map(|sample| {
                // A sample that overlaps the trace is drawn in the middle of the overlap.
                let begin = sample.begin_ns.max(trace.begin_ns);
                let end = sample.end_ns.min(trace.begin_ns + trace.elapsed_ns);
                let middle = u64::midpoint(begin, end).saturating_sub(trace.begin_ns);
                let tally = of(sample.devices.get(index)?);
                let rate = tally.requests as f64 / sample.seconds();
                let hint = format!("{} {way} of {}", Count(tally.requests).figure(), Bytes(tally.bytes));
                (begin < end).then(|| Mark { x: middle as f64 / 1e9, y: rate, hint, ..Mark::default() })
            });
            let marks = marks.collect();
            series.push(Series {
                name: format!("{name} {way}"),
                colour: series.len(),
                stroke: Stroke::Line,
                marks,
            });
        }
    }
    let rates = series.iter().flat_map(|series| &series.marks).map(|mark| mark.y);
    let most = rates.reduce(f64::max)?;
    Some(Plot {
        title: "Requests of the devices under it, a second".to_string(),
        x: seconds(trace),
        y: Axis::linear("requests/s", most, |rate| grouped(rate, 0)),
        series,
    })
}

fn seconds(trace: &TraceSummary) -> Axis {
    Axis::linear("seconds", trace.elapsed_ns as f64 / 1e9, |seconds| format!("{seconds:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::Sample;

    #[test]
    fn a_log_without_redo_has_no_amplification() {
        let log = |redo_bytes| LogIo { redo_bytes, ..LogIo::default() };
        assert_eq!(sent_line(&log(1 << 20), 3 << 20), "3.00 MB, amplification 3.0");
        assert_eq!(sent_line(&log(0), 3 << 20), "3.00 MB");
    }

    #[test]
    fn devices_are_drawn_on_the_clock_of_the_trace() {
        let second = 1_000_000_000;
        let sample = |number: u64| {
            let reads = DeviceTally { requests: 100 * (number + 1), ..DeviceTally::default() };
            let device = DeviceSample { device: "vda".to_string(), reads, ..DeviceSample::default() };
            Sample {
                begin_ns: number * second,
                end_ns: (number + 1) * second,
                devices: vec![device],
                ..Sample::default()
            }
        };
        let beside = Beside { samples: (0..4).map(sample).collect(), ..Beside::default() };
        let trace = TraceSummary { begin_ns: second, elapsed_ns: 8 * second / 5, ..TraceSummary::default() };
        let plot = device_picture(&trace, &beside).expect("a device read");
        let marks: Vec<(f64, f64)> = plot.series[0].marks.iter().map(|mark| (mark.x, mark.y)).collect();
        assert_eq!(marks, [(0.5, 200.0), (1.3, 300.0)], "what was before or behind the trace is not drawn");
    }
}
