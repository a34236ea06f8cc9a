//! Snapshots within a run: one row for each interval.

use plumb_record::{Interval, Record, WaitEvent};
use plumb_report::format::{Decimal, PerSecond, Percent, Seconds, Throughput, grouped};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, short_micros};
use plumb_report::{Drawing, Section, table};
use plumb_units::total_of;

/// Largest number of rows in the table; the record has all.
const ROWS_MAX: usize = 60;

/// Shows the work of each interval; `None` without snapshots.
pub(super) fn section(record: &Record) -> Option<Section> {
    // Snapshots of a period keep their numbers in the run.
    let first = record.period.as_ref().map_or(1, |period| period.first);
    let last = record.last_snapshot()? + first - 1;
    let table = table!((place, interval) in record.intervals.iter().take(ROWS_MAX).enumerate(); {
        let elapsed_ns = interval.end_ns.saturating_sub(interval.begin_ns);
        let total = |names: &[&str]| {
            let own = interval.statistics.iter().filter(|row| names.contains(&row.name.as_str()));
            total_of(own.map(|row| row.total))
        };
        let rate = |names: &[&str]| PerSecond { total: total(names) as f64, elapsed_ns };
        let bytes = |name: &str| Throughput { bytes: total(&[name]), elapsed_ns };
        let busy = interval.foreground_events.iter().filter(|event| !event.is_idle());
        let top: Option<&WaitEvent> = busy.max_by_key(|event| event.time_ns);
    } [
        numbers "From\nsnapshot" => (place + first).to_string(),
        numbers "To" => (place + first + 1).to_string(),
        numbers "Begin (s)" => Seconds(interval.begin_ns),
        numbers "Elapsed (s)" => Seconds(elapsed_ns),
        numbers "DB Time\n(s)" => Seconds(interval.db_time_ns),
        numbers "Avg Active\nSessions" => Percent::of(interval.db_time_ns, elapsed_ns).share().map(Decimal),
        numbers "% DB\nCPU" => Percent::of(interval.db_cpu_ns, interval.db_time_ns),
        numbers "Transac-\ntions/s" => rate(&["user commits", "user rollbacks"]),
        numbers "Reads/s" => rate(&["physical read total IO requests"]),
        numbers "Reads\nMB/s" => bytes("physical read total bytes"),
        numbers "Writes/s" => rate(&["physical write total IO requests"]),
        numbers "Writes\nMB/s" => bytes("physical write total bytes"),
        text "Top wait" => top.map_or("", |event| event.event.as_str()),
        numbers "% DB\ntime" => top.map(|event| Percent::of(event.time_ns, interval.db_time_ns)),
    ]);
    let section = Section::front("snapshots", "Snapshots").note(format!(
        "{first} to {last}; `plumb report BUNDLE --begin 1 --end 2` reports what happened between two of them, and `plumb compare \
         BUNDLE:1-2 BUNDLE:2-3` compares two periods"
    ));
    let drawings = [rates(&record.intervals), waits(&record.intervals)];
    let drawings: Vec<Drawing> = drawings.into_iter().flatten().map(Drawing::Plot).collect();
    let section = if drawings.is_empty() { section } else { section.drawings(drawings) };
    let left_out = record.intervals.len().saturating_sub(ROWS_MAX);
    let section = match left_out {
        0 => section,
        more => section.note(format!("{more} more are in the record")),
    };
    Some(section.table(table))
}

/// Counters whose rates are drawn.
const RATES: [(&str, &str); 4] = [
    ("operations", "execute count"),
    ("commits", "user commits"),
    ("read requests", "physical read total IO requests"),
    ("write requests", "physical write total IO requests"),
];
/// Events whose mean wait is drawn: the response of the device, and that of a commit.
const WAITS: [&str; 4] =
    ["db file sequential read", "direct path read", "log file sync", "log file parallel write"];

/// Returns the middle of an interval, seconds from the first one's start.
fn middle(interval: &Interval, begin_ns: u64) -> f64 {
    u64::midpoint(interval.begin_ns, interval.end_ns).saturating_sub(begin_ns) as f64 / 1e9
}

/// Draws rates over time; `None` with fewer than two intervals.
fn rates(intervals: &[Interval]) -> Option<Plot> {
    let rate = |interval: &Interval, name: &str| {
        let total = interval.statistics.iter().find(|row| row.name == name).map_or(0, |row| row.total);
        let elapsed_ns = interval.end_ns.saturating_sub(interval.begin_ns);
        PerSecond { total: total as f64, elapsed_ns }.rate()
    };
    let series =
        RATES.map(|(shown, name)| (shown, intervals.iter().map(|it| Some(rate(it, name))).collect()));
    plot(intervals, "Rates over time, a second", series.to_vec(), |most| {
        Axis::linear("a second", most, |rate| grouped(rate, 0))
    })
}

/// Draws mean waits over time.
fn waits(intervals: &[Interval]) -> Option<Plot> {
    let mean = |interval: &Interval, name: &str| {
        let all = interval.foreground_events.iter().chain(&interval.background_events);
        let (waits, ns) =
            all.filter(|event| event.event == name).fold((0_u64, 0_u64), |(waits, ns), event| {
                (waits + event.waits, ns.saturating_add(event.time_ns))
            });
        (waits > 0).then(|| ns as f64 / waits as f64 / 1e3)
    };
    let series = WAITS.map(|name| (name, intervals.iter().map(|it| mean(it, name)).collect()));
    plot(intervals, "Mean wait over time", series.to_vec(), |most| {
        Axis::linear("mean wait", most, short_micros)
    })
}

/// Draws those series that are above zero somewhere.
fn plot(
    intervals: &[Interval],
    title: &str,
    values: Vec<(&str, Vec<Option<f64>>)>,
    axis: impl Fn(f64) -> Axis,
) -> Option<Plot> {
    let begin_ns = intervals.first().filter(|_| intervals.len() > 1)?.begin_ns;
    let end_s = intervals.last()?.end_ns.saturating_sub(begin_ns) as f64 / 1e9;
    let moved = values.into_iter().enumerate();
    let moved = moved.filter(|(_, (_, values))| values.iter().flatten().any(|value| *value > 0.0));
    let series: Vec<Series> = moved
        .map(|(colour, (name, values))| {
            let marks = intervals.iter().zip(values).filter_map(|(interval, value)| {
                let (x, y) = (middle(interval, begin_ns), value?);
                Some(Mark { x, y, hint: format!("{name}: {} at {x:.1} s", grouped(y, 1)), ..Mark::default() })
            });
            Series { name: name.to_string(), colour, stroke: Stroke::Line, marks: marks.collect() }
        })
        .collect();
    let most = series.iter().flat_map(|series| &series.marks).map(|mark| mark.y).reduce(f64::max)?;
    let x = Axis::linear("seconds", end_s, |seconds| grouped(seconds, 1));
    Some(Plot { title: title.to_string(), x, y: axis(most), series })
}
