//! Absolute figures of the arms next to the study's measure: processor time, bytes moved, and the
//! waits in which any arm spent the most time.
//!
//! The memory and the temporary files of an arm's plan are those of its only execution, if the plan
//! is JSON of PostgreSQL: the peaks of all work areas together, and the blocks of 8 KB written. The
//! mean sizes of a read and of a write are of the same execution, if it was traced.
//!
//! A figure is the median over the counted runs of an arm, so that one slow run does not change it.
//! All arms have the same events: a wait that only one of them has is the difference that a reader
//! looks for.

use super::result::{ArmFigure, ArmUnit};
use plumb_record::operation::total;
use plumb_record::{Record, RequestSizes};
use plumb_units::{Bytes, median, total_of};
use serde_json::Value;

/// Most events. The longest wait of each arm is one, and of these the longest are kept.
const EVENTS_MOST: usize = 3;

/// A figure that runs of every kind may have.
struct Row {
    name: &'static str,
    unit: ArmUnit,
    of: fn(&Record) -> Option<u64>,
}

const ROWS: [Row; 4] = [
    Row { name: "CPU", unit: ArmUnit::Nanoseconds, of: |run| run.header.db_cpu_ns },
    Row { name: "read", unit: ArmUnit::Bytes, of: |run| total(run, "physical read total bytes") },
    Row { name: "written", unit: ArmUnit::Bytes, of: |run| total(run, "physical write total bytes") },
    Row { name: "written to temp", unit: ArmUnit::Bytes, of: temp_written },
];

fn temp_written(run: &Record) -> Option<u64> {
    let temp = run.io_by_file_type().into_iter().filter(|group| group.name.starts_with("Temp"));
    Some(total_of(temp.map(|group| group.writes.bytes))).filter(|bytes| *bytes > 0)
}

/// Returns the time that a run waited for an event; 0 if it did not.
fn waited(run: &Record, event: &str) -> f64 {
    let own = run.foreground_events.iter().filter(|wait| wait.event == event);
    total_of(own.map(|wait| wait.time_ns)) as f64
}

fn median_wait(runs: &[&Record], event: &str) -> f64 {
    median(&runs.iter().map(|run| waited(run, event)).collect::<Vec<_>>())
}

/// Returns the events that take the most time of an arm each, the longest first.
pub(super) fn events(arms: &[Vec<&Record>]) -> Vec<String> {
    let mut found: Vec<(String, f64)> = Vec::new();
    for runs in arms {
        let events = runs.iter().flat_map(|run| &run.foreground_events).filter(|wait| !wait.is_idle());
        let longest = events
            .map(|wait| (wait.event.as_str(), median_wait(runs, &wait.event)))
            .max_by(|one, two| one.1.total_cmp(&two.1));
        let Some((event, ns)) = longest.filter(|(_, ns)| *ns > 0.0) else { continue };
        match found.iter_mut().find(|(known, _)| known == event) {
            Some((_, most)) => *most = most.max(ns),
            None => found.push((event.to_string(), ns)),
        }
    }
    found.sort_by(|one, two| two.1.total_cmp(&one.1));
    found.truncate(EVENTS_MOST);
    found.into_iter().map(|(event, _)| event).collect()
}

/// Returns the figures of an arm's counted runs; a figure that no run has is left out.
pub(super) fn figures(runs: &[&Record], events: &[String]) -> Vec<ArmFigure> {
    let of_row = |row: &Row| {
        let values: Vec<f64> = runs.iter().filter_map(|run| Some((row.of)(run)? as f64)).collect();
        let figure =
            |values: &[f64]| ArmFigure { name: row.name.to_string(), unit: row.unit, median: median(values) };
        (!values.is_empty()).then(|| figure(&values))
    };
    let of_event = |event: &String| ArmFigure {
        name: event.clone(),
        unit: ArmUnit::Nanoseconds,
        median: median_wait(runs, event),
    };
    let waits = events.iter().filter(|_| !runs.is_empty()).map(of_event);
    ROWS.iter().filter_map(of_row).chain(waits).collect()
}

/// Returns the figures of a run with a plan: of the plan, and of the requests of its execution.
pub(super) fn of_plan(run: &Record) -> Vec<ArmFigure> {
    let figure = |name: &str, median: f64| ArmFigure { name: name.to_string(), unit: ArmUnit::Bytes, median };
    let printed = run.plan.as_deref().and_then(|plan| serde_json::from_str::<Value>(plan).ok());
    let of_json = printed.as_ref().and_then(|printed| printed.pointer("/0/Plan")).map(|plan| {
        let temp = kilobytes(plan, "Temp Written Blocks") * 8.0;
        [("plan memory", memory(plan)), ("plan temp", temp)]
            .map(|(name, kilobytes)| figure(name, kilobytes * Bytes::K as f64))
    });
    let means = run.request_sizes.as_ref().map_or([None; 2], RequestSizes::means);
    let sizes = ["mean read", "mean write"].into_iter().zip(means);
    let sizes = sizes.filter_map(|(name, mean)| Some(figure(name, mean? as f64)));
    of_json.into_iter().flatten().chain(sizes).collect()
}

fn kilobytes(node: &Value, name: &str) -> f64 {
    node.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Adds the work areas of an operator, of its workers and of its inputs.
fn memory(node: &Value) -> f64 {
    let is_on_disk = node.get("Sort Space Type").and_then(Value::as_str) == Some("Disk");
    let sorted = if is_on_disk { 0.0 } else { kilobytes(node, "Sort Space Used") };
    let below = ["Workers", "Plans"].into_iter().filter_map(|name| node.get(name)?.as_array());
    sorted + kilobytes(node, "Peak Memory Usage") + below.flatten().map(memory).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::{IoFunction, IoTally, TraceBucket, WaitEvent, fixture};

    /// A run that waited for these events, milliseconds.
    fn run(waits: &[(&str, u64)]) -> Record {
        let mut run = fixture::record(1_000_000_000, 1);
        let first = run.foreground_events[0].clone();
        let wait = |(event, ms): &(&str, u64)| WaitEvent {
            event: event.to_string(),
            time_ns: ms * 1_000_000,
            ..first.clone()
        };
        run.foreground_events = waits.iter().map(wait).collect();
        run
    }

    fn named(run: &Record) -> Vec<String> {
        figures(&[run], &[]).into_iter().map(|figure| figure.name).collect()
    }

    #[test]
    fn arms_have_the_longest_waits_of_each_other() {
        let one = [run(&[("buffer waits", 900), ("scan", 50)]), run(&[("scan", 60)])];
        let two = [run(&[("temp write", 70)])];
        let arms: Vec<Vec<&Record>> = vec![one.iter().collect(), two.iter().collect()];
        let events = events(&arms);
        assert_eq!(events, ["buffer waits", "temp write"]);
        let shown = |runs: &[&Record]| {
            let waits = figures(runs, &events).into_iter().filter(|figure| events.contains(&figure.name));
            waits.map(|figure| figure.median / 1e6).collect::<Vec<_>>()
        };
        assert_eq!(shown(&arms[0]), [450.0, 0.0], "a run without the wait counts as 0");
        assert_eq!(shown(&arms[1]), [0.0, 70.0]);
        assert_eq!(shown(&[]), [0.0; 0]);
    }

    #[test]
    fn a_plan_has_the_memory_of_all_its_work_areas_and_its_temporary_files() {
        let plan = r#"[{"Plan": {"Node Type": "Gather", "Temp Written Blocks": 3, "Plans": [
            {"Node Type": "Sort", "Sort Space Used": 900, "Sort Space Type": "Disk",
             "Workers": [{"Sort Space Used": 20, "Sort Space Type": "Memory"}],
             "Plans": [{"Node Type": "Hash", "Peak Memory Usage": 5}]}]}}]"#;
        let mut run = Record { plan: Some(plan.to_string()), ..run(&[]) };
        let of = |run: &Record| of_plan(run).into_iter().map(|it| (it.name, it.median)).collect::<Vec<_>>();
        let kilobytes = |name: &str, size: f64| (name.to_string(), size * 1024.0);
        assert_eq!(of(&run), [kilobytes("plan memory", 25.0), kilobytes("plan temp", 24.0)]);
        run.plan = Some("Seq Scan on t".to_string());
        assert_eq!(of(&run), [], "a plan of another form");
        let sizes = vec![TraceBucket { to: 1 << 14, reads: 2, writes: 0 }];
        run.request_sizes = Some(RequestSizes { read_bytes: 24 << 10, sizes, ..RequestSizes::default() });
        assert_eq!(of(&run), [kilobytes("mean read", 12.0)]);
    }

    #[test]
    fn a_figure_that_no_run_has_is_left_out() {
        let mut run = run(&[]);
        assert_eq!(named(&run), ["CPU", "read"]);
        let writes = IoTally { requests: 3, bytes: 30, time_ns: None };
        run.io_functions = vec![IoFunction {
            function: "temp writes".to_string(),
            part_of: None,
            reads: IoTally::default(),
            writes,
            large: None,
        }];
        run.statistics.clear();
        assert_eq!(named(&run), ["CPU", "written to temp"]);
        assert_eq!(figures(&[&run], &[])[1].median, 30.0);
    }
}
