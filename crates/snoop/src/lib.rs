//! Every request of a running program, at the call and at the device.
//!
//! ```text
//! kernel tracepoints ──[tracefs]──> pages ──[page, format, event]──> events
//!   ──[capture: in order of time]──> [join: calls, requests, owners] ──> lines  [text]
//!                                        │  [process: threads, files]  [extents: files of sectors]
//!                                        └──> [tally, pattern, map] ──> record::Snoop
//! ```
//!
//! Folders, each using only those before it: `kernel` (tracefs, pages, events), `owner` (whose call
//! or request it is), `sums` (what a record keeps), `shown` (lines, tables, the record). `capture`
//! joins them; `flow` and `sample` are programs of their own.
//!
//! The call view is what a program asked of the kernel: offset in a file, bytes, time in the call.
//! The device view is what a disk was asked to do: sector, bytes, time in the queue and at the
//! disk. They differ, by the page cache, the file system and its journal, and the difference is the
//! finding.
//!
//! Why tracepoints by tracefs and not eBPF or perf events: docs/adr/0025. Sketch of the cost: a
//! call with one request is 5 events of 40 to 70 bytes, about 0.2 us each to write and 0.2 us to
//! read. Memory is 17 MB for each processor, fixed before the trace, and tables of bounded size.
//!
//! Limits: Linux with tracefs instances, as root. Page faults of mapped files have requests and no
//! calls. 32-bit programs have other numbers of calls and are not seen. libaio's requests show at
//! the disk; their calls are those that submit.

mod error;
mod target;

mod kernel;
mod owner;
mod shown;
mod sums;

mod capture;
mod flow;
mod sample;

/// Makes tests that start processes take turns: the end of a command ends all children.
#[cfg(test)]
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub use capture::Capture;
pub use error::SnoopError;
pub use flow::Flow;
pub use kernel::tracefs::{TraceLeftover, is_refusal};
pub use sample::ProcSampling;
pub use shown::live::{Live, Show};
pub use shown::record::{WORKLOAD, record, sampled};
pub use shown::text::sums;
pub use target::SnoopTarget;
