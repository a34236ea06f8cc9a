//! The method ladder: the same requests by every method, plainest first, with their costs and the
//! reasons for missing rungs.
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
//! Rungs differ in processor time far more than in requests per second, because any of them keeps a
//! slow disk busy. So each row has both. The processor time is that of the process, including the
//! kernel thread that polls for submissions.

use crate::measure::find;
use crate::plan::{STEPS, Step};
use crate::{Buffers, Estimate, Files, Point, TaskResult};
use plumb_host::device::{DeviceDescription, RingSetup};
use plumb_io::DirectIo;
use serde::{Deserialize, Serialize};

/// One method of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The method, or its addition to the rung above.
    pub name: String,
    /// Figures of the method, or the reason why there are none.
    pub state: RungState,
}

/// Figures of a method, or the reason why there are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a dozen of them at most, and most are measured")]
pub enum RungState {
    /// The method works and was measured.
    Measured {
        iops: Estimate,
        mb_per_second: Estimate,
        /// Processor microseconds per request, of the process with the kernel threads of its rings.
        cpu_micros: Estimate,
        /// Processor cycles per request; `None` if nothing counts them.
        #[serde(default)]
        cycles: Option<Estimate>,
        /// A cost that the figures do not show.
        #[serde(default)]
        note: Option<String>,
    },
    /// The method could not be measured.
    Refused {
        /// Reason why it does not work.
        why: String,
        /// Action that would make it work.
        cure: String,
    },
}

impl RungState {
    /// Requests per second, if it was measured.
    pub fn iops(&self) -> Option<&Estimate> {
        if let RungState::Measured { iops, .. } = self { Some(iops) } else { None }
    }

    /// Processor microseconds per request, if it was measured.
    pub fn cpu_micros(&self) -> Option<&Estimate> {
        if let RungState::Measured { cpu_micros, .. } = self { Some(cpu_micros) } else { None }
    }

    /// Processor cycles per request, if something counted them.
    pub fn cycles(&self) -> Option<&Estimate> {
        if let RungState::Measured { cycles, .. } = self { cycles.as_ref() } else { None }
    }
}

/// Returns the ladder for requests like `like`, with all rungs that exist.
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
    // A single rung was measured for another purpose.
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
    if let Some((why, cure)) = step.refusal(device) {
        return refused(why, cure);
    }
    if step.ring.setup == RingSetup::CompletionPolling && like.direct_io == DirectIo::Off {
        return refused("only direct I/O can be polled for", "use a file system with direct I/O");
    }
    let found = find(results, &step.point(like));
    let Some(result) = found else { return refused("it was not measured", "give the calibration more time") };
    let all = |fixed: fn(&crate::DeviceEvidence) -> u64| {
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
    use crate::{Load, Ring, Task};
    use plumb_host::device::{IoUringSupport, RingPart, RingRefusal};
    use plumb_io::MethodKind;
    use plumb_units::Bytes;

    fn like() -> Point {
        let ring = Ring::default();
        let usual = Point::usual(Bytes(8192), MethodKind::IoUring, DirectIo::Required, ring);
        usual.with(vec![Load::random_read(Bytes(8192), 32)], 1)
    }

    /// Prints the ladder of a device with this io_uring support. Every rung that works there
    /// was measured, with everything registered.
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
