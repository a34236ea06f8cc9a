//! Latency over throughput: benefit and cost of more outstanding requests.
//!
//! The horizontal axis is throughput instead of depth, so that the curve turns straight up at
//! saturation. All curves share both axes.

use super::{interval, median, number};
use plumb_calibrate::{Calibration, Curve, CurvePoint, Estimate};
use plumb_report::format::{Count, Figure};
use plumb_report::plot::{Axis, Mark, Plot, Series, Side, Stroke, duration, short_count, short_micros};
use plumb_report::table::Table;
use plumb_report::{Drawing, Section, table};

pub(super) fn curves(calibration: &Calibration) -> Option<Section> {
    let mut drawn = calibration.curves();
    drawn.retain(|curve| curve.points.len() > 1);
    if drawn.is_empty() {
        return None;
    }
    let (x, y) = axes(&drawn);
    let plots = drawn.iter().enumerate().map(|(index, curve)| Drawing::Plot(plot(curve, index, &x, &y)));
    let section = Section::front("curves", "Latency over Throughput")
        .note("small random requests; the number beside a point is the requests outstanding, 2t: by two threads")
        .note("a ring marks the smallest depth that comes within 3% of the maximum; shades are intervals")
        .drawings(plots.collect());
    Some(drawn.iter().fold(section, |section, curve| section.table(table(curve))))
}

fn axes(curves: &[Curve]) -> (Axis, Axis) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.iops.high).fold(0.0, f64::max);
    let shortest = points().map(|point| point.percentiles_micros[0].low).fold(f64::INFINITY, f64::min);
    let longest = points().map(|point| point.percentiles_micros[2].high).fold(0.0, f64::max);
    (
        Axis::linear("requests a second", most, short_count),
        Axis::log("latency", shortest, longest, short_micros),
    )
}

fn plot(curve: &Curve, index: usize, x: &Axis, y: &Axis) -> Plot {
    // Depths of one thread form the curve; the same depth by several threads is a separate point.
    let series = |name: &str, stroke, marks| Series { name: name.to_string(), colour: index, stroke, marks };
    let alone = || curve.points.iter().filter(|point| point.threads == 1);
    let shared = || curve.points.iter().filter(|point| point.threads > 1);
    let p50 = |point: &CurvePoint| Mark {
        ringed: saturates(curve, point),
        ..mark(point, &point.percentiles_micros[0], "p50", Label::Shown)
    };
    let p99 = |point: &CurvePoint| mark(point, &point.percentiles_micros[2], "p99", Label::None);
    let mut all = vec![
        series("p99", Stroke::Dashed, alone().map(p99).collect()),
        series("p50", Stroke::Line, alone().map(p50).collect()),
    ];
    if shared().next().is_some() {
        let marks = shared().map(p50).chain(shared().map(p99)).collect();
        let several = Series { name: "several threads".to_string(), colour: 6, stroke: Stroke::Marks, marks };
        all.push(several);
    }
    Plot { title: name(curve), x: x.clone(), y: y.clone(), series: all }
}

/// Name of the mix, such as `reads`.
fn name(curve: &Curve) -> String {
    match curve.write_percent {
        0 => "reads".to_string(),
        100 => "writes".to_string(),
        percent => format!("{} reads to {percent} writes", 100 - percent),
    }
}

/// True for the first point, by depth and then by threads, that saturates the device.
fn saturates(curve: &Curve, point: &CurvePoint) -> bool {
    curve.saturation().is_some_and(|first| std::ptr::eq(first, point))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Shown,
    None,
}

fn mark(point: &CurvePoint, latency: &Estimate, which: &str, label: Label) -> Mark {
    let threads = if point.threads > 1 { format!(" {}t", point.threads) } else { String::new() };
    Mark {
        x: point.iops.median,
        y: latency.median,
        x_range: Some((point.iops.low, point.iops.high)),
        y_range: Some((latency.low, latency.high)),
        label: if label == Label::Shown { format!("{}{threads}", point.outstanding) } else { String::new() },
        // The same depth by one thread has its label on the right.
        side: if point.threads > 1 { Side::Left } else { Side::Right },
        hint: format!(
            "depth {}{threads}: {} requests/s, {which} {}",
            point.outstanding,
            number(point.iops.median),
            duration(latency.median)
        ),
        ..Mark::default()
    }
}

fn table(curve: &Curve) -> Table {
    let most = curve.points.iter().map(|point| point.iops.median).fold(f64::MIN_POSITIVE, f64::max);
    table!(point in &curve.points; {
        let [p50, p90, p99, p999] = &point.percentiles_micros;
    } [
        numbers "Outstanding" => Count(point.outstanding as u64).figure(),
        numbers "Threads" => Count(point.threads as u64).figure(),
        numbers "Requests/s" => median(&point.iops).with_share(Some(point.iops.median / most)),
        text "Interval" => interval(&point.iops),
        numbers "p50\nus" => median(p50),
        numbers "p90\nus" => median(p90),
        numbers "p99\nus" => median(p99),
        numbers "p99.9\nus" => median(p999),
        numbers "Longest\nus" => number(point.max_micros),
        text "" => if saturates(curve, point) { "saturated from here" } else { "" },
    ])
    .with_caption(name(curve))
}
