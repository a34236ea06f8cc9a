//! The matrix as ORION's CSV files, and two more files.
//!
//! ```text
//! _iops.csv  Large/Small, 1, 2, 4      a row a large, a column a small number; from small = 1
//! _lat.csv   the same, mean latency of small requests in milliseconds
//! _mbps.csv  Large/Small, 0, 1, 2      from small = 0 and large = 1
//! _ci.csv    a line a figure of every task: its interval, its repeats, settled or not, bytes
//!            requested and bytes at the device in all repeats, and the source of the answers;
//!            cells of the matrix have their numbers of large and small requests, others none
//! _hist.csv  a line a bucket: its upper end in microseconds, its count
//! ```
//!
//! A cell that was not measured is empty. A spreadsheet made for ORION's files can read the first
//! three without changes.

use crate::{Calibration, Estimate, Interval, Matrix, MatrixCell, Measurement, TaskResult};
use std::fmt::Write;

/// Returns the file `_iops.csv`: small requests per second.
pub fn iops(matrix: &Matrix) -> String {
    table(matrix, |cell| Some(format!("{:.0}", cell.iops.as_ref()?.median)))
}

/// Returns the file `_lat.csv`: mean latency of small requests, milliseconds.
pub fn latency(matrix: &Matrix) -> String {
    table(matrix, |cell| Some(format!("{:.3}", cell.latency_ms.as_ref()?.median)))
}

/// Returns the file `_mbps.csv`: MB per second of large requests.
pub fn mbps(matrix: &Matrix) -> String {
    table(matrix, |cell| Some(format!("{:.2}", cell.mb_per_second.as_ref()?.median)))
}

/// Returns the file `_ci.csv`: intervals of every task, and the source of its answers.
pub fn intervals(calibration: &Calibration) -> String {
    let mut text = "large,small,task,load,measure,median,low,high,interval,repeats,settled,reason,\
                    asked_bytes,device_bytes,verdict,evidence\n"
        .to_string();
    let layout = calibration.matrix_layout();
    for result in &calibration.tasks {
        let place = layout.place(result);
        let (large, small) = place
            .map_or((String::new(), String::new()), |(large, small)| (large.to_string(), small.to_string()));
        let (asked, device) = result.bytes();
        let device = device.map_or(String::new(), |bytes| bytes.to_string());
        let (task, evidence) = (quoted(&result.task.to_string()), quoted(&result.answer.reason));
        for (load, measure, estimate) in measures(result) {
            let interval = interval(&estimate);
            let source = result.answer.source.name();
            line(
                &mut text,
                &[&large, &small, &task, &load, &measure, &interval, &asked, &device, &source, &evidence],
            );
        }
    }
    text
}

/// Returns the figures of each load of a task.
fn measures(result: &TaskResult) -> Vec<(usize, &'static str, Estimate)> {
    let loads = result.point().map_or(1, |point| point.loads.len());
    let of_load = |load: usize| {
        let latency = |measurement: &Measurement| Some(measurement.loads.get(load)?.latency.mean().millis());
        [
            ("iops", result.iops(load)),
            ("lat_ms", result.estimate(latency)),
            ("mbps", result.mb_per_second(load)),
        ]
        .into_iter()
        .filter_map(move |(measure, estimate)| Some((load, measure, estimate?)))
    };
    let cpu = result.cpu_micros().map(|estimate| (0, "cpu_us", estimate));
    (0..loads).flat_map(of_load).chain(cpu).collect()
}

/// Returns the file `_hist.csv`: the latencies of every task.
pub fn histograms(calibration: &Calibration) -> String {
    let mut text = "task,load,upper_us,count\n".to_string();
    for result in &calibration.tasks {
        let loads = result.point().map_or(1, |point| point.loads.len());
        for load in 0..loads {
            for (upper, count) in result.latency(load).buckets() {
                let task = quoted(&result.task.to_string());
                line(&mut text, &[&task, &load, &format!("{:.3}", upper.micros()), &count]);
            }
        }
    }
    text
}

fn interval(estimate: &Estimate) -> String {
    let kind = match estimate.interval {
        Interval::Range => "range".to_string(),
        Interval::Confidence(confidence) => format!("{:.1}%", confidence * 1e2),
    };
    format!(
        "{:.3},{:.3},{:.3},{kind},{},{},{}",
        estimate.median,
        estimate.low,
        estimate.high,
        estimate.repeats,
        estimate.settled,
        quoted(estimate.reason.as_deref().unwrap_or(""))
    )
}

fn table(matrix: &Matrix, figure: impl Fn(&MatrixCell) -> Option<String>) -> String {
    let (columns, rows) = matrix.filled(|cell| figure(cell).is_some());
    let mut text = "Large/Small".to_string();
    for small in &columns {
        append(&mut text, small);
    }
    text.push('\n');
    for large in rows {
        text.push_str(&large.to_string());
        for small in &columns {
            append(&mut text, &matrix.cell(large, *small).and_then(&figure).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

fn append(text: &mut String, value: &dyn std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, ", {value}");
}

fn line(text: &mut String, values: &[&dyn std::fmt::Display]) {
    for (index, value) in values.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{value}");
    }
    text.push('\n');
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::answer;
    use crate::fixture::{calibration, place, result};
    use crate::plan::{MatrixKind, cell};
    use crate::{DurableMethod, DurablePoint, LogSpace, Point, Ring, Task};
    use plumb_host::device::RingSetup;
    use plumb_io::{DirectIo, MethodKind};
    use plumb_units::Bytes;

    fn matrix() -> Matrix {
        let one = |values: &[f64]| Estimate::of(values, 0.1);
        let cell = |large: usize, small: usize| MatrixCell {
            large,
            small,
            iops: one(&[2302.0, 2300.0, 2310.0]).filter(|_| small > 0),
            latency_ms: one(&[0.43, 0.42, 0.6]).filter(|_| small > 0),
            mb_per_second: one(&[271.58, 271.0, 272.0]).filter(|_| large > 0),
        };
        Matrix {
            small: vec![0, 1, 4],
            large: vec![0, 1, 2],
            cells: vec![cell(0, 1), cell(0, 4), cell(1, 0), cell(1, 1), cell(1, 4), cell(2, 0)],
        }
    }

    #[test]
    fn files_have_the_layout_that_orion_users_read() {
        let matrix = matrix();
        let files =
            [("_iops.csv", iops(&matrix)), ("_lat.csv", latency(&matrix)), ("_mbps.csv", mbps(&matrix))];
        let text: Vec<String> = files.iter().map(|(name, text)| format!("{name}\n{text}")).collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn every_task_has_its_interval_bytes_and_answer() {
        let mut calibration = calibration();
        let sizes = (Bytes(calibration.size_small), Bytes(calibration.size_large));
        let point = |ring| {
            let usual = Point::usual(sizes.0, MethodKind::IoUring, DirectIo::Required, ring);
            usual.with(cell(sizes, MatrixKind::READS, 4, 1), 1)
        };
        let durable = |method| {
            let direct_io = DirectIo::Required;
            Task::Durable(DurablePoint { method, direct_io, request_bytes: 4096, space: LogSpace::Zeroed })
        };
        let polled = Ring { setup: RingSetup::SubmissionPolling, ..Ring::default() };
        calibration.tasks = vec![
            result(Task::Point(point(Ring::default())), &[2302, 2300, 2310], 430),
            result(Task::Point(point(polled)), &[2302, 1300, 2310], 430),
            result(durable(DurableMethod::None), &[9000, 9010, 9020], 20),
            result(durable(DurableMethod::Fdatasync), &[6000, 6010, 6020], 160),
        ];
        answer::judge(&mut calibration.tasks, &place().1);
        insta::assert_snapshot!(intervals(&calibration));
    }
}
