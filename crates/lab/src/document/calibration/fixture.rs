//! A fixed calibration for the tests: a virtual disk, a normal run.

use super::context::*;
use crate::record::Host;

/// Nine repeats within half a per cent.
fn steady(median: f64) -> Estimate {
    Estimate {
        median,
        low: median * 0.995,
        high: median * 1.005,
        confidence: Some(0.961),
        repeats: 9,
        unsettled: None,
    }
}

/// Three repeats that disagree.
fn shaky(median: f64) -> Estimate {
    Estimate {
        median,
        low: median * 0.8,
        high: median * 1.1,
        confidence: None,
        repeats: 3,
        unsettled: Some("range of 3 repeats is 30% wide (limit 10%)".to_string()),
    }
}

/// The calibration.
pub(crate) fn normal() -> CalibrationContext {
    CalibrationContext {
        schema_version: CALIBRATION_SCHEMA_VERSION,
        header: header(),
        device: crate::document::run::fixture::device(),
        figures: figures(),
        curves: vec![
            curve("reads", 1.0),
            curve("writes", 1.4),
            Curve { points: vec![], ..curve("70 reads to 30 writes", 1.0) },
        ],
        transfers: vec![
            transfer("64K random read x1", 64 << 10, 1, 1, 610.0),
            transfer("1M sequential read x8", 1 << 20, 8, 1, 1_204.0),
            transfer("1M sequential read x8", 1 << 20, 8, 2, 1_231.0),
        ],
        matrix: Some(matrix()),
        durable: durable(),
        plausibility: Some(
            "4K O_DIRECT write, fdatasync, zeroed log takes 160 us, 140 us of it the sync".to_string(),
        ),
        ladders: vec![ladder()],
        cycles_refused: None,
        read_cost: Some(ReadCost {
            start_us: steady(45.0),
            mb_per_s: steady(1_228.8),
            measured: [8u64, 64, 256, 512, 1024]
                .map(|kib| ReadTime {
                    request_bytes: kib << 10,
                    mean_us: steady(45.0 + kib as f64 / 1_228.8 * 1_000.0 / 1.024 * 1.01),
                })
                .to_vec(),
            consequence: "sort_read_fac 8 of 8K blocks, so 512 runs at once in a sort area of 32M"
                .to_string(),
        }),
        points: points(),
        refused: vec![RefusedPoint {
            what: "512 O_DIRECT write, fdatasync, zeroed log".to_string(),
            why: "direct writes here are multiples of 4K".to_string(),
        }],
        other_load: None,
        warnings: vec!["a cache may have answered 3 tasks: 8K random write x32, io_uring".to_string()],
    }
}

/// One of seconds on a quiet disk: nothing but what every calibration has.
pub(super) fn least() -> CalibrationContext {
    let mut context = normal();
    context.figures.retain(|figure| figure.estimate.unsettled.is_none());
    context.points.truncate(1);
    context.curves.clear();
    context.transfers.clear();
    context.durable.clear();
    context.ladders.clear();
    context.warnings.clear();
    context.refused.clear();
    CalibrationContext { matrix: None, plausibility: None, read_cost: None, ..context }
}

fn header() -> CalibrationHeader {
    CalibrationHeader {
        title: "PLUMB CALIBRATION  /u02/oradata".to_string(),
        plumb_version: "0.1.0".to_string(),
        host: Host {
            name: "db7".to_string(),
            cpus: 2,
            cpu_model: "AMD EPYC".to_string(),
            memory_bytes: 24 << 30,
            kernel: "Linux 6.18.0".to_string(),
        },
        begin_time: "2026-11-20T21:04:05+00:00".to_string(),
        command_line: "plumb calibrate --path /u02/oradata --run normal".to_string(),
        mode: "normal".to_string(),
        seed: 7,
        method: "io_uring".to_string(),
        direct: true,
        file_bytes: 16 << 30,
        small_bytes: 8192,
        large_bytes: 1 << 20,
        repeat_ns: 1_000_000_000,
        repeats: 612,
        elapsed_ns: 569_000_000_000,
    }
}

fn figures() -> Vec<MainFigure> {
    let figure = |name: &str, unit: &str, estimate, at: &str, headline| MainFigure {
        name: name.to_string(),
        unit: unit.to_string(),
        estimate,
        at: at.to_string(),
        headline,
    };
    vec![
        figure("small random read, alone", "us", steady(50.2), "8K random read x1", true),
        figure("small random reads", "IOPS", steady(75_120.0), "depth 64; 97% at 32", true),
        figure("large sequential read", "MB/s", steady(1_204.0), "1M sequential read x8", true),
        figure("  by all threads", "MB/s", steady(1_231.0), "1M sequential read x8, 2 threads", false),
        figure("4K write + fdatasync", "us", shaky(160.0), "4K O_DIRECT write, fdatasync, zeroed log", true),
    ]
}

fn curve(name: &str, faster: f64) -> Curve {
    let point = |depth: u64, threads: u64| {
        // Little's law below saturation, the maximum above it.
        let iops = (depth as f64 / 50e-6).min(75_000.0) * faster * (1.0 - 0.4 / depth as f64);
        let micros = depth as f64 / iops * 1e6;
        CurvePoint {
            depth,
            threads,
            iops: steady(iops),
            saturates: depth == 8,
            latency_us: LatencyPercentiles {
                p50: steady(micros * 0.9),
                p90: steady(micros * 1.5),
                p99: steady(micros * 2.2),
                p999: shaky(micros * 4.0),
                max: micros * 9.0,
            },
        }
    };
    let mut points: Vec<CurvePoint> = [1, 2, 4, 8, 16, 32, 64, 128].map(|depth| point(depth, 1)).to_vec();
    points.push(point(128, 2));
    Curve { name: name.to_string(), points }
}

fn transfer(what: &str, request_bytes: u64, depth: u64, threads: u64, mb_per_s: f64) -> Transfer {
    Transfer { what: what.to_string(), request_bytes, depth, threads, mb_per_s: steady(mb_per_s) }
}

fn matrix() -> LoadMatrix {
    let (small, large) = (vec![0, 1, 4, 16], vec![0, 1, 4]);
    let cell = |large: u64, small: u64| MatrixCell {
        large,
        small,
        iops: (small > 0).then(|| steady(18_000.0 * small as f64 / (1.0 + large as f64))),
        latency_ms: (small > 0).then(|| steady(0.05 * (1.0 + large as f64))),
        mb_per_s: (large > 0).then(|| steady(400.0 * large as f64 / (1.0 + 0.1 * small as f64))),
    };
    let cells = large.iter().flat_map(|large| small.iter().map(move |small| (*large, *small)));
    let cells = cells.filter(|(large, small)| large + small > 0).map(|(large, small)| cell(large, small));
    LoadMatrix { cells: cells.collect(), small, large }
}

fn durable() -> Vec<DurableWrite> {
    let write = |kib: u64, method: &str, direct, zeroed, micros, source| DurableWrite {
        request_bytes: kib << 10,
        method: method.to_string(),
        direct,
        zeroed,
        p50_us: steady(micros),
        p99_us: steady(micros * 3.0),
        source,
    };
    vec![
        write(4, "write only", true, true, 20.0, Source::Unknown),
        write(4, "fdatasync", true, true, 160.0, Source::Device),
        write(128, "fdatasync", true, true, 260.0, Source::Device),
        write(4, "O_DSYNC", true, true, 22.0, Source::HostCacheSuspected),
        write(4, "fdatasync", false, false, 310.0, Source::Device),
    ]
}

fn ladder() -> Ladder {
    let measured = |name: &str, iops, cpu| Rung::Measured {
        name: name.to_string(),
        iops: steady(iops),
        cpu_us: steady(cpu),
        cycles: Some(steady(cpu * 2_900.0)),
        note: (name == "SQPOLL")
            .then(|| "the kernel's polling thread keeps 1 of 2 processors busy".to_string()),
    };
    Ladder {
        requests: "8K random read x32".to_string(),
        rungs: vec![
            measured("sync", 60_000.0, 9.0),
            measured("threads", 52_000.0, 14.0),
            measured("io_uring", 75_000.0, 3.1),
            measured("+ registered buffers", 75_100.0, 2.8),
            measured("SQPOLL", 74_900.0, 13.0),
            Rung::Refused {
                name: "+ IOPOLL".to_string(),
                why: "the disk has no queues that can be polled (queue/io_poll is 0)".to_string(),
                cure: "load its driver with some: nvme.poll_queues=N".to_string(),
            },
        ],
    }
}

fn points() -> Vec<MeasuredPoint> {
    let point = |what: &str, iops, share, source, reason: &str| MeasuredPoint {
        what: what.to_string(),
        direct: true,
        iops,
        p50_us: 51.0,
        p99_us: 88.0,
        cpu_us: Some(3.1),
        device_share: Some(share),
        source,
        reason: reason.to_string(),
    };
    vec![
        point(
            "8K random read x1",
            steady(19_900.0),
            1.0,
            Source::Device,
            "every byte read came from a device",
        ),
        point(
            "8K random write x32",
            shaky(120_000.0),
            1.0,
            Source::HostCacheSuspected,
            "writes are 1.6 times as fast as the same reads: a cache takes them",
        ),
        MeasuredPoint {
            direct: false,
            ..point(
                "4K write, write only",
                steady(900_000.0),
                0.0,
                Source::PageCache,
                "nothing asked for more",
            )
        },
    ]
}
