//! From a calibration to the context of its report: the same figures in the report's words.

use crate::command_line;
use plumb_calibrate::{
    AnswerSource, Calibration, CurvePoint, Estimate, Figure, FigureKind, Interval, Load, Pattern,
    RefusedTask, Rung, RungState, TaskResult, Warning,
};
use plumb_io::device::DeviceDescription;
use plumb_lab::document::calibration as report;
use plumb_lab::document::calibration::CalibrationContext;
use plumb_io::{DirectIo, MethodKind};
use plumb_lab::{assemble, host};
use plumb_units::Bytes;

/// Requests of at least so many bytes are counted in MB a second.
const TRANSFER_MIN: u64 = 64 * Bytes::K;
/// The sort area that the consequence of the read cost is stated for.
const SORT_AREA: Bytes = Bytes(32 * Bytes::M);
/// The figures to read first.
const HEADLINE: [FigureKind; 6] = [
    FigureKind::SmallReadLatency,
    FigureKind::SmallReadIops,
    FigureKind::SmallWriteIops,
    FigureKind::SequentialRead,
    FigureKind::SequentialWrite,
    FigureKind::DurableWrite,
];

/// The context of its report.
#[must_use]
pub fn context(calibration: &Calibration, device: &DeviceDescription) -> CalibrationContext {
    let load_of_others = |warning: &&Warning| matches!(warning, Warning::OtherLoad { .. });
    let environment = &calibration.environment;
    let reason = "what the points were measured by; other methods stand in the ladder";
    CalibrationContext {
        schema_version: report::CALIBRATION_SCHEMA_VERSION,
        header: header(calibration),
        device: assemble::device(device, environment.method.name(), reason),
        figures: figures(&calibration.figures),
        curves: curves(calibration),
        transfers: transfers(calibration),
        matrix: Some(matrix(calibration)).filter(|matrix| !matrix.cells.is_empty()),
        durable: calibration.tasks.iter().filter_map(durable).collect(),
        plausibility: calibration.plausibility.clone(),
        ladders: ladders(calibration),
        cycles_refused: calibration.cycles_refused.clone(),
        read_cost: read_cost(calibration),
        points: calibration.tasks.iter().filter_map(measured_point).collect(),
        refused: calibration.refused.iter().map(refused).collect(),
        other_load: calibration.warnings.iter().find(load_of_others).map(ToString::to_string),
        warnings: calibration.warnings.iter().map(ToString::to_string).collect(),
    }
}

fn header(calibration: &Calibration) -> report::CalibrationHeader {
    let environment = &calibration.environment;
    report::CalibrationHeader {
        title: format!("PLUMB CALIBRATION  {} on {}", environment.path, environment.device),
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        host: host::describe(),
        begin_time: environment.date.clone(),
        command_line: command_line::typed(),
        mode: calibration.mode.to_string(),
        seed: calibration.seed,
        method: environment.method.name().to_string(),
        direct: environment.direct,
        file_bytes: calibration.file_bytes,
        small_bytes: calibration.size_small,
        large_bytes: calibration.size_large,
        repeat_ns: calibration.task_time_ns,
        repeats: calibration.tasks.iter().map(|result| result.repeats.len() as u64).sum(),
        elapsed_ns: calibration.elapsed_ns,
    }
}

fn estimate(estimate: &Estimate) -> report::Estimate {
    report::Estimate {
        median: estimate.median,
        low: estimate.low,
        high: estimate.high,
        confidence: match estimate.interval {
            Interval::Range => None,
            Interval::Confidence(confidence) => Some(confidence),
        },
        repeats: estimate.repeats as u64,
        unsettled: (!estimate.settled).then(|| estimate.reason.clone().unwrap_or_default()),
    }
}

fn figures(figures: &[Figure]) -> Vec<report::MainFigure> {
    // A name that begins with blanks continues the one above it.
    let mut whole = "";
    let mut named = |name: &'static str| {
        if name.starts_with(' ') {
            return format!("{whole}, {}", name.trim());
        }
        whole = name;
        name.to_string()
    };
    let figure = |figure: &Figure| report::MainFigure {
        name: named(figure.kind.name()),
        unit: figure.kind.unit().to_string(),
        estimate: estimate(&figure.estimate),
        at: figure.at.clone(),
        headline: HEADLINE.contains(&figure.kind),
    };
    figures.iter().map(figure).collect()
}

/// One curve for each mix that was measured.
fn curves(calibration: &Calibration) -> Vec<report::Curve> {
    let small = |result: &TaskResult| {
        let load = *result.point()?.single()?;
        let fits = load.request_bytes == calibration.size_small && load.pattern == Pattern::Random;
        fits.then_some(load.write_percent)
    };
    let mut percents: Vec<u8> = calibration.tasks.iter().filter_map(small).collect();
    percents.sort_unstable();
    percents.dedup();
    let curve = |percent: &u8| {
        let curve = calibration.curve(*percent);
        let first = curve.saturation();
        let saturates = |point: &CurvePoint| first.is_some_and(|first| std::ptr::eq(first, point));
        report::Curve {
            name: match percent {
                0 => "reads".to_string(),
                100 => "writes".to_string(),
                percent => format!("{} reads to {percent} writes", 100 - percent),
            },
            points: curve
                .points
                .iter()
                .map(|point| report::CurvePoint { saturates: saturates(point), ..curve_point(point) })
                .collect(),
        }
    };
    percents.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect()
}

fn curve_point(point: &CurvePoint) -> report::CurvePoint {
    let [p50, p90, p99, p999] = &point.percentiles_micros;
    report::CurvePoint {
        depth: point.outstanding as u64,
        threads: point.threads as u64,
        iops: estimate(&point.iops),
        saturates: false,
        latency_us: report::LatencyPercentiles {
            p50: estimate(p50),
            p90: estimate(p90),
            p99: estimate(p99),
            p999: estimate(p999),
            max: point.max_micros,
        },
    }
}

fn transfers(calibration: &Calibration) -> Vec<report::Transfer> {
    let transfer = |result: &TaskResult| {
        let point = result.point().filter(|point| calibration.is_usual(point))?;
        let load = *point.single().filter(|load| load.request_bytes >= TRANSFER_MIN)?;
        let transfer = report::Transfer {
            what: load.to_string(),
            request_bytes: load.request_bytes,
            depth: load.outstanding as u64,
            threads: point.threads as u64,
            mb_per_s: estimate(&result.mb_per_second(0)?),
        };
        Some((place(&load, point.threads), transfer))
    };
    let mut transfers: Vec<_> = calibration.tasks.iter().filter_map(transfer).collect();
    transfers.sort_by_key(|(place, _)| *place);
    transfers.into_iter().map(|(_, transfer)| transfer).collect()
}

/// Sequential before random, reads before writes, small before large.
fn place(load: &Load, threads: usize) -> (bool, u8, u64, usize, usize) {
    (load.pattern == Pattern::Random, load.write_percent, load.request_bytes, load.outstanding, threads)
}

fn matrix(calibration: &Calibration) -> report::LoadMatrix {
    let matrix = calibration.matrix();
    let numbers = |numbers: &[usize]| numbers.iter().map(|number| *number as u64).collect();
    let cells = matrix.cells.iter().map(|cell| report::MatrixCell {
        large: cell.large as u64,
        small: cell.small as u64,
        iops: cell.iops.as_ref().map(estimate),
        latency_ms: cell.latency_ms.as_ref().map(estimate),
        mb_per_s: cell.mb_per_second.as_ref().map(estimate),
    });
    report::LoadMatrix {
        small: numbers(&matrix.small),
        large: numbers(&matrix.large),
        cells: cells.collect(),
    }
}

fn durable(result: &TaskResult) -> Option<report::DurableWrite> {
    let point = result.durable()?;
    Some(report::DurableWrite {
        request_bytes: point.request_bytes,
        method: point.method.name().to_string(),
        direct: point.direct_io == DirectIo::Required,
        zeroed: point.space == plumb_calibrate::Space::Zeroed,
        p50_us: estimate(&result.latency_micros(0, 0.5)?),
        p99_us: estimate(&result.latency_micros(0, 0.99)?),
        source: source(result.answer.source),
    })
}

fn ladders(calibration: &Calibration) -> Vec<report::Ladder> {
    let sizes = [
        (calibration.size_small, &calibration.ladder_small),
        (calibration.size_large, &calibration.ladder_large),
    ];
    let ladder = |(bytes, rungs): (u64, &Vec<Rung>)| {
        // The first rung is a system call of each of many threads: no other point is.
        let load = calibration.tasks.iter().filter_map(|result| {
            let point = result.point().filter(|point| point.method == MethodKind::Sync)?;
            point.single().filter(|load| load.request_bytes == bytes)
        });
        let requests = load.map(ToString::to_string).next();
        report::Ladder {
            requests: requests.unwrap_or_else(|| format!("{} reads", Bytes(bytes).as_setting())),
            rungs: rungs.iter().map(rung).collect(),
        }
    };
    sizes.into_iter().filter(|(_, rungs)| !rungs.is_empty()).map(ladder).collect()
}

fn rung(rung: &Rung) -> report::Rung {
    let name = rung.name.clone();
    match &rung.state {
        RungState::Measured { iops, cpu_micros, cycles, note, .. } => report::Rung::Measured {
            name,
            iops: estimate(iops),
            cpu_us: estimate(cpu_micros),
            cycles: cycles.as_ref().map(estimate),
            note: note.clone(),
        },
        RungState::Refused { why, cure } => {
            report::Rung::Refused { name, why: why.clone(), cure: cure.clone() }
        }
    }
}

fn read_cost(calibration: &Calibration) -> Option<report::ReadCost> {
    let cost = calibration.read_cost.as_ref()?;
    let block = Bytes(calibration.size_small);
    let measured = cost.measured.iter().map(|(request_bytes, mean)| report::ReadTime {
        request_bytes: *request_bytes,
        mean_us: estimate(mean),
    });
    Some(report::ReadCost {
        start_us: estimate(&cost.start_micros),
        mb_per_s: estimate(&cost.mb_per_second),
        measured: measured.collect(),
        consequence: format!(
            "sort_read_fac {} of {} blocks, so {} runs at once in a sort area of {}",
            cost.sort_read_fac(block),
            block.as_setting(),
            cost.merge_width(SORT_AREA, block),
            SORT_AREA.as_setting()
        ),
    })
}

fn measured_point(result: &TaskResult) -> Option<report::MeasuredPoint> {
    let access = match (result.point(), result.durable()) {
        (Some(point), _) => point.direct_io,
        (None, durable) => durable?.direct_io,
    };
    Some(report::MeasuredPoint {
        what: result.task.to_string(),
        direct: access == DirectIo::Required,
        iops: estimate(&result.iops(0)?),
        p50_us: result.latency_micros(0, 0.5)?.median,
        p99_us: result.latency_micros(0, 0.99)?.median,
        cpu_us: result.cpu_micros().map(|cpu| cpu.median),
        device_share: result.device_share(),
        source: source(result.answer.source),
        reason: result.answer.reason.clone(),
    })
}

fn refused(refused: &RefusedTask) -> report::RefusedPoint {
    report::RefusedPoint { what: refused.task.to_string(), why: refused.why.clone() }
}

fn source(source: AnswerSource) -> report::Source {
    match source {
        AnswerSource::Device => report::Source::Device,
        AnswerSource::PageCache => report::Source::PageCache,
        AnswerSource::HostCacheSuspected => report::Source::HostCacheSuspected,
        AnswerSource::Unknown => report::Source::Unknown,
    }
}
