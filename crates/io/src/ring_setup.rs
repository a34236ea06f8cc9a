//! Set-ups of a ring: the kernel's ways to run completions.
//!
//! ```text
//! plain                  the kernel interrupts the thread to run a completion
//! cooperative            it waits until the thread enters the kernel anyway (5.19)
//! deferred               the same, and only when the thread asks for completions (6.1)
//! submission polling     a kernel thread takes entries from memory: no system call to
//!                        submit, and one more processor busy (5.13 without privileges)
//! completion polling     the thread asks the disk instead of waiting for its interrupt:
//!                        direct reads and writes only, and only where the driver has
//!                        queues for it (queue/io_poll)
//! ```
//!
//! Engines use `deferred`, and `plain` where the kernel is older: [`best`]. The others are used
//! only if asked for by name, and none is replaced by another.

use io_uring::IoUring;
use plumb_host::device::RingSetup;
use std::io;

/// Milliseconds for which the kernel's submission thread polls for entries before it sleeps.
/// That is long against the gap between two requests of a busy ring, and short enough that an
/// idle ring costs no CPU.
const SUBMISSION_IDLE_MS: u32 = 10;

/// Makes a ring with room for two completions an entry, the kernel's default.
pub(crate) fn build(setup: RingSetup, entries: u32) -> io::Result<IoUring> {
    build_with(setup, entries, 2 * entries)
}

/// Makes a ring with room for `completions` completions.
pub(crate) fn build_with(setup: RingSetup, entries: u32, completions: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if completions != 2 * entries {
        builder.setup_cqsize(completions);
    }
    match setup {
        RingSetup::Plain => &mut builder,
        RingSetup::Cooperative => builder.setup_coop_taskrun().setup_taskrun_flag(),
        RingSetup::Deferred => builder.setup_single_issuer().setup_defer_taskrun(),
        RingSetup::SubmissionPolling => builder.setup_sqpoll(SUBMISSION_IDLE_MS),
        RingSetup::CompletionPolling => builder.setup_iopoll().setup_single_issuer().setup_defer_taskrun(),
    };
    builder.build(entries)
}

/// Returns the set-up for engines: the best that this kernel has.
pub(super) fn best(entries: u32) -> io::Result<RingSetup> {
    match build(RingSetup::Deferred, entries) {
        Ok(_) => Ok(RingSetup::Deferred),
        Err(_) => build(RingSetup::Plain, entries).map(|_| RingSetup::Plain),
    }
}
