//! Segments of System V shared memory, which outlive the processes that made them.
//!
//! A program that is killed cannot remove its segment. The kernel's list tells which process made
//! a segment and how many are attached to it, so that no segment of a living program is removed.

use std::{fs, io};

/// The kernel's list of segments, a line each.
const LIST: &str = "/proc/sysvipc/shm";

/// A segment, as the program that made it has noted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Number of the segment in the kernel's list.
    pub id: i32,
    /// Number of the process that made it.
    pub maker: i32,
}

impl Segment {
    /// Removes the segment if that process made it and no process is attached to it. Returns true
    /// if the segment was removed.
    ///
    /// # Errors
    /// When the kernel has no list, or this user may not remove it.
    pub fn remove_abandoned(self) -> io::Result<bool> {
        if !is_abandoned(&fs::read_to_string(LIST)?, self) {
            return Ok(false);
        }
        // SAFETY: this command reads and writes nothing through the pointer.
        #[allow(unsafe_code)]
        let answer = unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
        if answer == 0 { Ok(true) } else { Err(io::Error::last_os_error()) }
    }
}

/// True if the list has the segment, made by its process, with nothing attached.
fn is_abandoned(list: &str, segment: Segment) -> bool {
    let mut lines = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let places = ["shmid", "cpid", "nattch"].map(|name| head.iter().position(|column| *column == name));
    let [Some(id), Some(maker), Some(attached)] = places else { return false };
    let number = |line: &[&str], place: usize| line.get(place).and_then(|text| text.parse::<i32>().ok());
    let mut lines = lines.filter(|line| number(line, id) == Some(segment.id));
    lines.any(|line| number(&line, maker) == Some(segment.maker) && number(&line, attached) == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid\n\
                          12345678          3   600                    56  4711  4712      0   101\n\
                          12345679          4   600                    56  4711  4712      2   101\n";

    #[test]
    fn only_a_segment_of_its_maker_to_which_nothing_is_attached_is_abandoned() {
        assert!(is_abandoned(TEXT, Segment { id: 3, maker: 4711 }));
        assert!(!is_abandoned(TEXT, Segment { id: 3, maker: 4712 }), "another process made it");
        assert!(!is_abandoned(TEXT, Segment { id: 4, maker: 4711 }), "it is in use");
        assert!(!is_abandoned(TEXT, Segment { id: 5, maker: 4711 }), "there is none");
        assert!(!is_abandoned("", Segment { id: 3, maker: 4711 }));
    }

    #[test]
    fn a_segment_is_removed_once_nothing_is_attached() {
        let maker = i32::try_from(std::process::id()).expect("a number");
        // SAFETY: makes a segment and attaches nothing.
        #[allow(unsafe_code)]
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600 | libc::IPC_CREAT) };
        if id < 0 {
            return println!("skipped: this kernel has no shared memory of System V");
        }
        let segment = Segment { id, maker };
        assert!(!Segment { maker: maker + 1, ..segment }.remove_abandoned().expect("a list"));
        assert!(segment.remove_abandoned().expect("removed"));
        assert!(!segment.remove_abandoned().expect("a list"), "it is gone");
    }
}
