//! Segments of System V shared memory, which outlive the processes that made them.
//!
//! A program that is killed cannot remove its segment. The kernel's list tells which process made
//! a segment and how many are attached to it, so that no segment of a living program is removed.

use std::{fs, io};

/// The kernel's list of segments, a line each.
const LIST: &str = "/proc/sysvipc/shm";

/// A segment of the kernel's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Number of the segment in the list.
    pub id: i32,
    /// Number of the process that made it.
    pub maker: i32,
    /// Size of the segment in bytes.
    pub bytes: u64,
    /// Number of processes that are attached to it.
    pub attached: u64,
}

/// Returns the kernel's list of segments.
///
/// # Errors
/// When the kernel has no list.
pub fn segments() -> io::Result<Vec<Segment>> {
    Ok(parsed(&fs::read_to_string(LIST)?))
}

impl Segment {
    /// Returns the first bytes of the segment.
    ///
    /// # Errors
    /// When the segment is shorter or gone, or this user may not read it.
    pub fn head<const BYTES: usize>(&self) -> io::Result<[u8; BYTES]> {
        if self.bytes < BYTES as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        #[allow(unsafe_code)]
        let address = unsafe { libc::shmat(self.id, std::ptr::null(), libc::SHM_RDONLY) };
        if address.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        let mut head = [0; BYTES];
        // SAFETY: the mapping has at least this many bytes. A segment cannot shrink.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::copy_nonoverlapping(address.cast::<u8>(), head.as_mut_ptr(), BYTES);
            libc::shmdt(address);
        }
        Ok(head)
    }

    /// Removes the segment if its maker is the same and no process is attached to it. Returns true
    /// if the segment was removed.
    ///
    /// # Errors
    /// When the kernel has no list, or this user may not remove it.
    pub fn remove_abandoned(self) -> io::Result<bool> {
        let is_same = |found: &Segment| (found.id, found.maker, found.attached) == (self.id, self.maker, 0);
        if !segments()?.iter().any(is_same) {
            return Ok(false);
        }
        // SAFETY: this command reads and writes nothing through the pointer.
        #[allow(unsafe_code)]
        let answer = unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
        if answer == 0 { Ok(true) } else { Err(io::Error::last_os_error()) }
    }
}

fn parsed(list: &str) -> Vec<Segment> {
    let mut lines = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let places =
        ["shmid", "cpid", "size", "nattch"].map(|name| head.iter().position(|column| *column == name));
    let segment = |line: Vec<&str>| {
        let [id, maker, bytes, attached] = places.map(|place| line.get(place?)?.parse::<u64>().ok());
        let [id, maker] = [id?, maker?].map(|number| i32::try_from(number).ok());
        Some(Segment { id: id?, maker: maker?, bytes: bytes?, attached: attached? })
    };
    lines.filter_map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid\n\
                          12345678          3   600                    56  4711  4712      0   101\n\
                          12345679          4   600                    56  4711  4712      2   101\n";

    #[test]
    fn the_list_has_a_row_for_each_segment() {
        let of = |id, attached| Segment { id, maker: 4711, bytes: 56, attached };
        assert_eq!(parsed(TEXT), [of(3, 0), of(4, 2)]);
        assert_eq!(parsed(""), []);
        assert_eq!(parsed("key shmid\n1 2\n"), [], "a list without the columns");
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
        let found = || segments().expect("a list").into_iter().find(|segment| segment.id == id);
        let segment = found().expect("it was made");
        assert_eq!((segment.maker, segment.bytes, segment.attached), (maker, 4096, 0));
        assert_eq!(segment.head::<8>().expect("it is this user's"), [0; 8]);
        assert!(segment.head::<5000>().is_err(), "it is shorter");
        assert!(!Segment { maker: maker + 1, ..segment }.remove_abandoned().expect("a list"));
        assert!(segment.remove_abandoned().expect("removed"));
        assert!(!segment.remove_abandoned().expect("a list"), "it is gone");
        assert_eq!(found(), None);
    }
}
