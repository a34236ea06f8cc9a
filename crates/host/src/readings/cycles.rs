//! Processor cycles of a thread and of all threads that it starts afterwards.
//!
//! The processor counts them, and the kernel sums the counts of the threads
//! (perf_event_open with `inherit`), including its own threads for a ring of this process.
//! Time in the kernel is included.
//!
//! Limits: many virtual machines have no such counter, and `kernel.perf_event_paranoid` may deny
//! it to an ordinary user. Both are errors that name the reason, because cycles computed from a
//! clock would be no count.

use rustix::io::Errno;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The attributes in their first and smallest layout (`PERF_ATTR_SIZE_VER0`):
/// type and size, config, period, sample type, read format, flags, wakeup, breakpoint.
type Attributes = [u64; 8];
const TYPE_HARDWARE: u64 = 0;
const CONFIG_CPU_CYCLES: u64 = 0;
const FLAG_INHERIT: u64 = 1 << 1;
const CLOSE_ON_EXEC: u64 = 8;

/// A counter that runs from [`CycleCounter::start`] on.
#[derive(Debug)]
pub struct CycleCounter(fs::File);

impl CycleCounter {
    /// Counts the calling thread, the threads that it starts from now on, and their descendants.
    ///
    /// # Errors
    /// The reason and the cure in one line, where the counter is unavailable.
    pub fn start() -> Result<CycleCounter, String> {
        let size = size_of::<Attributes>() as u64;
        let attributes: Attributes =
            [TYPE_HARDWARE | size << 32, CONFIG_CPU_CYCLES, 0, 0, 0, FLAG_INHERIT, 0, 0];
        let (this_thread, any_processor, no_group) = (0, -1, -1);
        // SAFETY: the attributes are as long as they say and outlive the call, which copies them.
        #[allow(unsafe_code)]
        let answer = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attributes.as_ptr(),
                this_thread,
                any_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        let Ok(descriptor @ 0..) = RawFd::try_from(answer) else {
            return Err(explain(&io::Error::last_os_error()));
        };
        // SAFETY: the kernel has just opened it for this call, and no other code has it.
        #[allow(unsafe_code)]
        let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(CycleCounter(owned.into()))
    }

    /// Returns the cycles so far; `None` where the kernel refuses.
    pub fn read(&self) -> Option<u64> {
        let mut count = [0; size_of::<u64>()];
        (&self.0).read_exact(&mut count).ok()?;
        Some(u64::from_ne_bytes(count))
    }
}

fn explain(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV) => {
            "this processor, or the machine that lends it, offers no cycle counter".to_string()
        }
        Some(Errno::PERM | Errno::ACCESS) => {
            let path = "/proc/sys/kernel/perf_event_paranoid";
            let level = fs::read_to_string(path).unwrap_or_default();
            format!(
                "the kernel keeps cycle counters from this user (kernel.perf_event_paranoid is {}): \
                 sysctl kernel.perf_event_paranoid=1",
                level.trim()
            )
        }
        Some(Errno::NOSYS) => "the kernel has no perf events, or a seccomp filter hides them".to_string(),
        _ => format!("perf_event_open failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_threads_are_counted_or_it_is_said_why_not() {
        let counter = match CycleCounter::start() {
            Ok(counter) => counter,
            Err(why) => {
                assert!(!why.is_empty() && !why.contains('\n'), "{why}");
                println!("skipped: {why}");
                return;
            }
        };
        let before = counter.read().expect("a count");
        let work = || (0..1_000_000u64).fold(1, |sum: u64, n| std::hint::black_box(sum ^ n));
        std::thread::spawn(work).join().expect("no panic");
        assert!(counter.read().expect("a count") > before + 500_000, "a million steps of another thread");
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let said = |errno: Errno| explain(&errno.into());
        assert!(said(Errno::NOENT).contains("offers no cycle counter"));
        assert!(said(Errno::ACCESS).contains("perf_event_paranoid=1"));
        assert!(said(Errno::INVAL).starts_with("perf_event_open failed: "));
    }
}
