//! The method ladder: the same requests by every method, plainest first, with
//! what each costs, and why a rung is missing.
//!
//! ```text
//! sync                        a thread for each request outstanding
//! threads                     a pool of them
//! io_uring                    a plain ring
//! + registered buffers        pages pinned beforehand
//! + registered files          the file looked up beforehand
//! + cooperative task running  completions run when the thread enters the kernel anyway
//! + deferred task running     and only when it asks for them: what plumb's engine has
//! SQPOLL, IOPOLL              instead of it, polling for submissions or for completions
//! ```
//!
//! What the rungs differ by is processor time far more than requests a second: a
//! slow disk is as busy by any of them. So both stand in each row. The processor time
//! is the process's, and so holds the kernel thread that polls for submissions.

use crate::results::find;
use crate::{Access, Buffers, Estimate, Files, Point, Ring, Setup, TaskResult, Way};
use plumb_io::RingSetup;
use plumb_io::device::{DeviceDescription, RingPart};
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
#[allow(clippy::large_enum_variant, reason = "a dozen of them at most, and most are measured")]
pub enum RungState {
    /// It works.
    Measured {
        /// Requests a second.
        iops: Estimate,
        /// MB a second.
        mb_per_second: Estimate,
        /// Processor time a request, microseconds: the process's, with the kernel
        /// threads of its rings.
        cpu_micros: Estimate,
        /// Processor cycles a request; `None` where nothing counts them.
        #[serde(default)]
        cycles: Option<Estimate>,
        /// What must be known beside the figures.
        #[serde(default)]
        note: Option<String>,
    },
    /// It was not measured.
    Refused {
        /// Why not.
        why: String,
        /// What would help.
        cure: String,
    },
}

/// A rung before it is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub name: &'static str,
    pub way: Way,
    pub buffers: Buffers,
    pub ring: Ring,
}

/// The rungs, the plainest first.
pub(crate) const STEPS: [Step; 9] = [
    step("sync", Way::Sync, Buffers::Ordinary, Setup::Plain, Files::Ordinary),
    step("threads", Way::Threads, Buffers::Ordinary, Setup::Plain, Files::Ordinary),
    step("io_uring", Way::IoUring, Buffers::Ordinary, Setup::Plain, Files::Ordinary),
    step("+ registered buffers", Way::IoUring, Buffers::Registered, Setup::Plain, Files::Ordinary),
    step("+ registered files", Way::IoUring, Buffers::Registered, Setup::Plain, Files::Registered),
    best_ring("+ cooperative task running", Setup::Cooperative),
    best_ring("+ deferred task running", Setup::Deferred),
    best_ring("SQPOLL", Setup::SubmissionPolling),
    best_ring("IOPOLL", Setup::CompletionPolling),
];

const fn best_ring(name: &'static str, setup: Setup) -> Step {
    step(name, Way::IoUring, Buffers::Registered, setup, Files::Registered)
}

const fn step(name: &'static str, way: Way, buffers: Buffers, setup: Setup, files: Files) -> Step {
    Step { name, way, buffers, ring: Ring { setup, files } }
}

impl Step {
    /// The rungs that work on a device.
    pub(crate) fn workable(device: &DeviceDescription) -> Vec<Step> {
        STEPS.into_iter().filter(|step| step.refusal(device).is_none()).collect()
    }

    /// The point that measures it, for requests like those of another.
    pub(crate) fn point(&self, like: &Point) -> Point {
        let Step { way, buffers, ring, .. } = *self;
        Point { way, buffers, ring, threads: 1, ..like.clone() }
    }

    /// Why it does not work here, and what cures that.
    fn refusal(&self, device: &DeviceDescription) -> Option<RungState> {
        if self.way != Way::IoUring {
            return None;
        }
        let buffers = (self.buffers == Buffers::Registered).then_some(RingPart::RegisteredBuffers);
        let files = (self.ring.files == Files::Registered).then_some(RingPart::RegisteredFiles);
        let setup = Some(RingPart::Setup(self.ring.setup.ring()));
        let parts = [setup, buffers, files].into_iter().flatten();
        let (why, cure) = parts.filter_map(|part| device.io_uring.refusal(part)).next()?;
        Some(refused(why, cure))
    }

    /// What its figures do not say.
    fn note(&self, processors: usize) -> Option<String> {
        (self.ring.setup.ring() == RingSetup::SubmissionPolling)
            .then(|| format!("the kernel's polling thread keeps 1 of {processors} processors busy"))
    }
}

/// The ladder for requests like those of `like`, all rungs that exist.
pub(crate) fn ladder(
    results: &[TaskResult],
    like: &Point,
    device: &DeviceDescription,
    processors: usize,
) -> Vec<Rung> {
    let rung = |step: Step| Rung {
        name: step.name.to_string(),
        state: state(results, like, step, device, processors),
    };
    let rungs: Vec<Rung> = STEPS.into_iter().map(rung).collect();
    // One rung is no ladder: these requests were measured for something else.
    let measured = rungs.iter().filter(|rung| matches!(rung.state, RungState::Measured { .. })).count();
    if measured < 2 { Vec::new() } else { rungs }
}

fn state(
    results: &[TaskResult],
    like: &Point,
    step: Step,
    device: &DeviceDescription,
    processors: usize,
) -> RungState {
    if let Some(refusal) = step.refusal(device) {
        return refusal;
    }
    if step.ring.setup == Setup::CompletionPolling && like.access == Access::Buffered {
        return refused("only direct I/O can be polled for", "use a file system with direct I/O");
    }
    let found = find(results, &step.point(like));
    let Some(result) = found else { return refused("it was not measured", "give the calibration more time") };
    let all = |fixed: fn(&crate::Evidence) -> u64| {
        result.repeats.iter().all(|repeat| {
            let evidence = &repeat.measurement.evidence;
            fixed(evidence) == evidence.ring_requests
        })
    };
    if step.buffers == Buffers::Registered && !all(|evidence| evidence.ring_fixed_requests) {
        let limit = device.host.memlock_soft.map_or("unlimited".to_string(), |bytes| bytes.as_setting());
        let why = format!("the kernel did not pin all buffers (ulimit -l is {limit})");
        return refused(&why, "raise ulimit -l or run with CAP_IPC_LOCK");
    }
    if step.ring.files == Files::Registered && !all(|evidence| evidence.ring_fixed_file_requests) {
        return refused("the kernel did not register the file", "raise ulimit -n");
    }
    match (result.iops(0), result.mb_per_second(0), result.cpu_micros()) {
        (Some(iops), Some(mb_per_second), Some(cpu_micros)) => RungState::Measured {
            iops,
            mb_per_second,
            cpu_micros,
            cycles: result.cycles(),
            note: step.note(processors),
        },
        _ => refused("nothing completed while it was measured", "give the calibration more time"),
    }
}

fn refused(why: &str, cure: &str) -> RungState {
    RungState::Refused { why: why.to_string(), cure: cure.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{place, result};
    use crate::{Load, Pattern, Task};
    use plumb_io::device::{IoUringSupport, RingRefusal};

    fn like() -> Point {
        let load = Load {
            pattern: Pattern::Random,
            request_bytes: 8192,
            write_percent: 0,
            outstanding: 32,
            zone_bytes: None,
        };
        let (way, access, buffers) = (Way::IoUring, Access::Direct, Buffers::Registered);
        Point { loads: vec![load], threads: 1, way, access, buffers, ring: Ring::default() }
    }

    /// The ladder on a device whose io_uring is so, all rungs of which were measured that
    /// work there, with all buffers and files registered.
    fn lines(io_uring: IoUringSupport) -> String {
        let (_directory, mut device) = place();
        device.io_uring = io_uring;
        let measured = |step: &Step| {
            let mut result = result(Task::Point(step.point(&like())), &[100, 101, 102], 50);
            for repeat in &mut result.repeats {
                let evidence = &mut repeat.measurement.evidence;
                evidence.ring_requests = 100;
                evidence.ring_fixed_requests = 100;
                evidence.ring_fixed_file_requests = 100;
            }
            result
        };
        let results: Vec<TaskResult> = Step::workable(&device).iter().map(measured).collect();
        let line = |rung: &Rung| match &rung.state {
            RungState::Measured { iops, cpu_micros, note, .. } => {
                let note = note.as_deref().unwrap_or_default();
                format!("{}: {} IOPS, {} us {note}", rung.name, iops.median, cpu_micros.median)
            }
            RungState::Refused { why, cure } => format!("{}: {why}; {cure}", rung.name),
        };
        let lines: Vec<String> = ladder(&results, &like(), &device, 2).iter().map(line).collect();
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_rung_is_measured_or_says_why_not() {
        let refusal = |part, why: &str, cure: &str| RingRefusal { part, why: why.into(), cure: cure.into() };
        insta::assert_snapshot!(lines(IoUringSupport::Yes {
            features: Vec::new(),
            file_read: true,
            refusals: vec![
                refusal(RingPart::Setup(RingSetup::Deferred), "too old", "use a kernel of 6.1 or later"),
                refusal(
                    RingPart::Setup(RingSetup::CompletionPolling),
                    "no queues",
                    "load its driver with some"
                ),
            ],
        }));
    }

    #[test]
    fn without_io_uring_its_rungs_name_the_cure() {
        let no = IoUringSupport::No { why: "forbidden".to_string(), cure: "allow it".to_string() };
        let lines = lines(no);
        assert_eq!(
            lines.lines().filter(|line| line.ends_with(": forbidden; allow it")).count(),
            7,
            "{lines}"
        );
    }
}
