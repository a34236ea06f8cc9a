//! Processor time of requests, and cycles if a counter is available.
//!
//! Both are of the whole process, because other threads than the caller's serve requests. These are
//! the pool's workers, the kernel thread that polls a ring for submissions, and the kernel's
//! workers for blocking requests. All belong to this process. Both are read at the first request
//! and after the last completion.
//!
//! Limits: interrupt time of a device is charged to the interrupted process. Time that a host takes
//! from a virtual processor counts as the process's own; cycles exclude it.

use plumb_events::clock;
use plumb_host::readings::CycleCounter;
use plumb_units::{Nanos, counters};

/// Processor time and cycles, at a moment or between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuUse {
    pub time: Nanos,
    /// `None` if nothing counts them.
    pub cycles: Option<u64>,
}

counters!(CpuUse { time, cycles });

/// Reads processor time and cycles.
#[derive(Debug)]
pub(crate) struct CpuMeter(Result<CycleCounter, String>);

impl CpuMeter {
    /// Starts a meter for threads that the calling thread starts afterwards.
    pub(crate) fn start() -> CpuMeter {
        CpuMeter(CycleCounter::start())
    }

    pub(crate) fn read(&self) -> CpuUse {
        let cycles = self.0.as_ref().ok().and_then(CycleCounter::read);
        CpuUse { time: clock::process_cpu(), cycles }
    }

    /// Returns the reason why cycles are not counted.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }
}
