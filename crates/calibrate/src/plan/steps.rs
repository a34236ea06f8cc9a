//! Steps of the method ladder: methods to compare, and a check if a device supports them.
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

use super::point::{Buffers, Files, Point, Ring};
use plumb_host::device::{DeviceDescription, RingPart, RingSetup};
use plumb_io::MethodKind;

/// A step of the ladder: a method, and its addition to the step above.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub name: &'static str,
    pub method: MethodKind,
    pub buffers: Buffers,
    pub ring: Ring,
}

/// All steps, with the plainest first.
pub(crate) const STEPS: [Step; 9] = [
    step("sync", MethodKind::Sync, Buffers::Ordinary, RingSetup::Plain, Files::Ordinary),
    step("threads", MethodKind::Threads, Buffers::Ordinary, RingSetup::Plain, Files::Ordinary),
    step("io_uring", MethodKind::IoUring, Buffers::Ordinary, RingSetup::Plain, Files::Ordinary),
    step("+ registered buffers", MethodKind::IoUring, Buffers::Registered, RingSetup::Plain, Files::Ordinary),
    step("+ registered files", MethodKind::IoUring, Buffers::Registered, RingSetup::Plain, Files::Registered),
    best_ring("+ cooperative task running", RingSetup::Cooperative),
    best_ring("+ deferred task running", RingSetup::Deferred),
    best_ring("SQPOLL", RingSetup::SubmissionPolling),
    best_ring("IOPOLL", RingSetup::CompletionPolling),
];

const fn best_ring(name: &'static str, setup: RingSetup) -> Step {
    step(name, MethodKind::IoUring, Buffers::Registered, setup, Files::Registered)
}

const fn step(
    name: &'static str,
    method: MethodKind,
    buffers: Buffers,
    setup: RingSetup,
    files: Files,
) -> Step {
    Step { name, method, buffers, ring: Ring { setup, files } }
}

impl Step {
    /// Returns the steps that work on a device.
    pub(crate) fn workable(device: &DeviceDescription) -> Vec<Step> {
        STEPS.into_iter().filter(|step| step.refusal(device).is_none()).collect()
    }

    /// Returns the point that measures the step, with the requests of `like`.
    pub(crate) fn point(&self, like: &Point) -> Point {
        let Step { method, buffers, ring, .. } = *self;
        Point { method, buffers, ring, threads: 1, ..like.clone() }
    }

    /// Returns the reason why a device does not support it, and the cure.
    pub(crate) fn refusal<'a>(&self, device: &'a DeviceDescription) -> Option<(&'a str, &'a str)> {
        if self.method != MethodKind::IoUring {
            return None;
        }
        let buffers = (self.buffers == Buffers::Registered).then_some(RingPart::RegisteredBuffers);
        let files = (self.ring.files == Files::Registered).then_some(RingPart::RegisteredFiles);
        let setup = Some(RingPart::Setup(self.ring.setup));
        let parts = [setup, buffers, files].into_iter().flatten();
        parts.filter_map(|part| device.io_uring.refusal(part)).next()
    }

    /// Returns a cost that the figures do not show.
    pub(crate) fn note(&self, processors: usize) -> Option<String> {
        (self.ring.setup == RingSetup::SubmissionPolling)
            .then(|| format!("the kernel's polling thread keeps 1 of {processors} processors busy"))
    }
}
