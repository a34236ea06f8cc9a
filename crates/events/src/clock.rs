//! The only place that reads a clock.

use plumb_units::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, SystemTime};

/// Returns the monotonic time. Its origin is arbitrary: use differences only.
#[inline]
pub fn now() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Returns the time for which the machine was suspended, which [`now`] leaves out. Its origin
/// is arbitrary: use differences only.
pub fn suspended() -> Nanos {
    nanos(clock_gettime(ClockId::Boottime)).saturating_sub(now())
}

/// Returns the CPU time that the calling thread has used.
pub fn thread_cpu() -> Nanos {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// Returns the CPU time that the whole process has used.
pub fn process_cpu() -> Nanos {
    nanos(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns the time of day as the time since 1970-01-01 UTC.
pub fn wall() -> Duration {
    #[allow(clippy::disallowed_methods, reason = "this is the place that reads clocks")]
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Returns CPU time and run-queue delay of a thread of this process, as the scheduler counts them
/// (`/proc/self/task/TID/schedstat`); `None` where the kernel does not count.
pub fn scheduler_times(thread: i32) -> Option<(Nanos, Nanos)> {
    // Into a buffer on the stack, because sessions start and end often.
    let mut line = [0; 64];
    let length = File::open(format!("/proc/self/task/{thread}/schedstat")).ok()?.read(&mut line).ok()?;
    parse_schedstat(std::str::from_utf8(&line[..length]).ok()?)
}

/// Returns the run-queue delay of this thread so far; zero where the kernel does not count.
pub fn thread_queued() -> Nanos {
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    scheduler_times(thread).map_or(Nanos(0), |(_, queued)| queued)
}

/// Parses `ns-on-processor ns-waiting slices`, the form of schedstat; `None` if it is another.
pub fn parse_schedstat(text: &str) -> Option<(Nanos, Nanos)> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    Some((Nanos(fields.next()?.ok()?), Nanos(fields.next()?.ok()?)))
}

fn nanos(time: Timespec) -> Nanos {
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
