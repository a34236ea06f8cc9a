//! The method ladder: the same requests by every method, plainest first, with
//! what each costs, and why a rung is missing.
//!
//! What the rungs differ by is processor time far more than requests a second: a
//! slow disk is as busy by any of them. So both stand in each row.

use crate::plan::LADDER;
use crate::results::find;
use crate::{Buffers, Estimate, Point, TaskResult, Way};
use plumb_io::device::{DeviceDescription, IoUringSupport};
use serde::{Deserialize, Serialize};

/// One method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The method, or what it adds to the one above.
    pub name: String,
    /// What it came to.
    pub state: RungState,
}

/// What a method came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungState {
    /// It works.
    Measured {
        /// Requests a second.
        iops: Estimate,
        /// MB a second.
        mb_per_second: Estimate,
        /// Processor time a request, microseconds.
        cpu_micros: Estimate,
    },
    /// It was not measured.
    Refused {
        /// Why not.
        why: String,
        /// What would help.
        cure: String,
    },
}

/// The ladder for requests like those of `like`, all rungs that exist.
pub(crate) fn ladder(results: &[TaskResult], like: &Point, device: &DeviceDescription) -> Vec<Rung> {
    let mut rungs: Vec<Rung> = LADDER
        .into_iter()
        .map(|(way, buffers)| Rung {
            name: name(way, buffers),
            state: state(results, like, way, buffers, device),
        })
        .collect();
    // One rung is no ladder: these requests were measured for something else.
    let measured = rungs.iter().filter(|rung| matches!(rung.state, RungState::Measured { .. })).count();
    if measured < 2 {
        return Vec::new();
    }
    rungs.extend(beyond(device));
    rungs
}

fn name(way: Way, buffers: Buffers) -> String {
    match buffers {
        Buffers::Registered => "+ registered buffers".to_string(),
        Buffers::Ordinary => way.kind().name().to_string(),
    }
}

fn state(
    results: &[TaskResult],
    like: &Point,
    way: Way,
    buffers: Buffers,
    device: &DeviceDescription,
) -> RungState {
    if let (Way::IoUring, IoUringSupport::No { why, cure }) = (way, &device.io_uring) {
        return refused(why, cure);
    }
    let found = find(results, &Point { way, buffers, threads: 1, ..like.clone() });
    let Some(result) = found else { return refused("it was not measured", "give the calibration more time") };
    let fixed = result.repeats.iter().all(|repeat| {
        let evidence = &repeat.measurement.evidence;
        evidence.ring_fixed_requests == evidence.ring_requests
    });
    if buffers == Buffers::Registered && !fixed {
        let limit = device.host.memlock_soft.map_or("unlimited".to_string(), |bytes| bytes.as_setting());
        let why = format!("the kernel did not pin all buffers (ulimit -l is {limit})");
        return refused(&why, "raise ulimit -l or run with CAP_IPC_LOCK");
    }
    match (result.iops(0), result.mb_per_second(0), result.cpu_micros()) {
        (Some(iops), Some(mb_per_second), Some(cpu_micros)) => {
            RungState::Measured { iops, mb_per_second, cpu_micros }
        }
        _ => refused("nothing completed while it was measured", "give the calibration more time"),
    }
}

/// The rungs that the channels of `plumb-io` do not climb.
fn beyond(device: &DeviceDescription) -> Vec<Rung> {
    let io_poll = device.block.as_ref().and_then(|block| block.queue.io_poll);
    let iopoll = if io_poll == Some(true) {
        refused("plumb's rings do not poll for completions", "none yet: the device could")
    } else {
        refused(
            "the disk has no queues that can be polled (queue/io_poll is 0)",
            "load its driver with some: nvme.poll_queues=N, virtio_blk.num_poll_queues=N",
        )
    };
    let rungs = [
        ("+ registered files", refused("plumb's rings do not register files", "none yet")),
        (
            "+ cooperative task running",
            refused("it is part of every ring of plumb where the kernel has it: see io_uring", "none needed"),
        ),
        (
            "+ SQPOLL",
            refused(
                "plumb's rings start no polling thread, which would take a processor of its own",
                "none yet",
            ),
        ),
        ("+ IOPOLL", iopoll),
    ];
    rungs.into_iter().map(|(name, state)| Rung { name: name.to_string(), state }).collect()
}

fn refused(why: &str, cure: &str) -> RungState {
    RungState::Refused { why: why.to_string(), cure: cure.to_string() }
}
