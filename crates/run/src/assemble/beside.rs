//! Samples of the machine, and intervals between snapshots, on the run's clock.

use super::phases::Timeline;
use super::{Evidence, io, load_profile};
use crate::rows::Counted;
use plumb_host::readings::{DiskStats, RequestCounts};
use plumb_record::{Beside, DeviceSample, DeviceTally, Interval, MemorySample, Sample};
use plumb_study::sampler::{Look, Looks};
use plumb_units::Nanos;

/// Converts each pair of consecutive samples to their difference.
pub(super) fn beside(looks: &Looks, timeline: &Timeline) -> Beside {
    let samples = looks.looks.windows(2).map(|pair| sample(looks, [&pair[0], &pair[1]], timeline));
    Beside { interval_ns: looks.interval.0, cost_ns: looks.cost.0, samples: samples.collect() }
}

fn sample(looks: &Looks, [earlier, later]: [&Look; 2], timeline: &Timeline) -> Sample {
    let disks = looks.devices.iter().zip(&earlier.disks).zip(&later.disks);
    let device = |((name, earlier), later): ((&String, &Option<DiskStats>), &Option<DiskStats>)| {
        let grown = later.zip(*earlier).map(|(later, earlier)| later.since(&earlier));
        let Some(grown) = grown else {
            return DeviceSample { device: name.clone(), ..DeviceSample::default() };
        };
        DeviceSample {
            device: name.clone(),
            reads: tally(&grown.reads),
            writes: tally(&grown.writes),
            busy_ns: grown.io_time.0,
            weighted_ns: grown.weighted_io_time.0,
        }
    };
    let stalled = later.stalled.zip(earlier.stalled);
    let stalled = |of: fn(&plumb_study::machine::MemoryStall) -> u64| {
        stalled.map(|(later, earlier)| of(&later).saturating_sub(of(&earlier)))
    };
    let cpu = later.cpu.zip(earlier.cpu);
    Sample {
        begin_ns: timeline.since_start(earlier.beat.at),
        end_ns: timeline.since_start(later.beat.at),
        devices: disks.map(device).collect(),
        cpu: cpu.map(|(later_cpu, earlier_cpu)| later_cpu.since(&earlier_cpu, earlier.load, later.load)),
        memory: Some(MemorySample {
            available_bytes: later.available.map(|bytes| bytes.0),
            some_stalled_ns: stalled(|stall| stall.some_ns),
            full_stalled_ns: stalled(|stall| stall.full_ns),
        }),
    }
}

fn tally(counts: &RequestCounts) -> DeviceTally {
    DeviceTally {
        requests: counts.completed,
        merged: counts.merged,
        bytes: counts.bytes.0,
        time_ns: counts.time.0,
    }
}

/// Returns the differences between consecutive snapshots.
pub(super) fn intervals(seen: &Evidence, timeline: &Timeline) -> Vec<Interval> {
    seen.measured.cuts.iter().map(|cut| interval(seen, cut, timeline)).collect()
}

fn interval(seen: &Evidence, cut: &Interval, timeline: &Timeline) -> Interval {
    Interval {
        begin_ns: timeline.since_start(Nanos(cut.begin_ns)),
        end_ns: timeline.since_start(Nanos(cut.end_ns)),
        load_profile: load_profile::rows(&Counted::of_rows(cut), &seen.measured.outcome),
        kernel_io: io::kernel(seen, cut.kernel_io),
        ..cut.clone()
    }
}
