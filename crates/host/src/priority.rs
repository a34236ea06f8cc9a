//! The nice value of a thread, which Linux keeps by thread and not by process.
//!
//! A thread for which others will soon wait gets precedence, so that it runs when it is
//! woken and not a scheduler slice later (some 3 ms). That takes a privilege
//! (`CAP_SYS_NICE`, or a limit `RLIMIT_NICE`).
//!
//! Why not a real-time class: a thread in one keeps all others from its processor, and a
//! mistake would hang the machine.

use crate::kernel::stat_fields;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setpriority_process};
use rustix::thread::gettid;
use std::fs;

/// The nice value of highest precedence.
pub const FIRST: i32 = -20;

/// Gives the calling thread the highest precedence ([`FIRST`]).
///
/// # Errors
/// The reason and the cure, when the kernel refuses.
pub fn put_first() -> Result<(), String> {
    // A limit of n allows nice values down to 20 - n.
    let allowed =
        || getrlimit(Resource::Nice).current.map_or(i64::from(FIRST), |limit| (20 - limit as i64).min(19));
    setpriority_process(None, FIRST).map_err(|error| match error {
        Errno::ACCESS | Errno::PERM => format!(
            "the system allows nice {} at least (RLIMIT_NICE) and it takes {FIRST}; give the program CAP_SYS_NICE, or set ulimit -e to 40",
            allowed()
        ),
        error => error.to_string(),
    })
}

/// Returns the kernel's number of the calling thread.
pub fn thread_number() -> i32 {
    gettid().as_raw_nonzero().get()
}

/// Returns the nice value of a thread of this process, from /proc; `None` when it has ended.
pub fn nice_of(thread: i32) -> Option<i32> {
    nice_in(&fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?)
}

/// Reads field 19 of proc_pid_stat(5).
fn nice_in(stat: &str) -> Option<i32> {
    stat_fields(stat).nth(16)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nice_value_is_found_behind_a_name_with_brackets() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 39 -20 1 0";
        assert_eq!(nice_in(stat), Some(-20));
        assert_eq!(nice_in("12 (short) S 1"), None);
    }

    #[test]
    fn a_thread_is_put_first_or_is_told_what_it_takes() {
        std::thread::spawn(|| match put_first() {
            Ok(()) => assert_eq!(nice_of(thread_number()), Some(FIRST)),
            Err(why) => assert!(why.contains("RLIMIT_NICE"), "{why}"),
        })
        .join()
        .expect("no panic");
        assert_ne!(nice_of(thread_number()), Some(FIRST), "it is that thread's alone");
    }
}
