//! Processor time of requests, and cycles where a counter is to be had.
//!
//! Both are of the whole process, because other threads than the caller's carry requests:
//! the pool's workers, the kernel thread that polls a ring for submissions, the kernel's
//! workers for requests that would block. All of these are threads of this process.
//! They are read when the first request is made and when the last has completed.
//!
//! Limits: the time of a device's interrupts is charged to the process they interrupt. Time that a
//! host takes from a virtual processor counts as ours; cycles do not.

use plumb_events::clock;
use plumb_host::readings::CycleCounter;
use plumb_units::Nanos;

/// Processor time and cycles, at a moment or between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuUse {
    pub time: Nanos,
    /// `None` where nothing counts them.
    pub cycles: Option<u64>,
}

impl CpuUse {
    pub(crate) fn since(self, earlier: CpuUse) -> CpuUse {
        CpuUse {
            time: self.time.saturating_sub(earlier.time),
            cycles: self.cycles.zip(earlier.cycles).map(|(later, earlier)| later.saturating_sub(earlier)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct CpuMeter(Result<CycleCounter, String>);

impl CpuMeter {
    /// A meter of the threads that the calling thread starts from now on.
    pub(crate) fn start() -> CpuMeter {
        CpuMeter(CycleCounter::start())
    }

    pub(crate) fn read(&self) -> CpuUse {
        let cycles = self.0.as_ref().ok().and_then(CycleCounter::read);
        CpuUse { time: clock::process_cpu(), cycles }
    }

    /// Why cycles are not counted.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }
}
