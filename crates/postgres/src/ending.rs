//! The end of servers whose program was killed: their processes and their shared memory.
//!
//! ```text
//! PATH/plumb-postgres-ID/{data,golden} ──> initdb, bootstrap, postgres ──> ended
//!        └─ device and inode ──> segment of System V ──> /dev/shm/PostgreSQL.N ──> removed
//! ```
//!
//! Processes are found by the directory in which they work, and `initdb` by its argument. A server
//! that was killed itself leaves sessions that work on until they next wait, and shared memory.
//!
//! The head of a segment of System V has the device and the inode of the data directory, and the
//! name of the segment in `/dev/shm` that lists the others there. So no memory of another server is
//! touched. Rejected: the file `postmaster.pid`, which a bootstrap process does not write, and
//! which does not name the segments in `/dev/shm`.
//!
//! Limits: the lists in `/dev/shm` have the form of PostgreSQL 14 and later.

use plumb_events::clock;
use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart, PartKind, named};
use plumb_host::proc_files;
use plumb_host::process::below;
use plumb_host::shared_memory::segments;
use plumb_units::Nanos;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Start of the names of directories, which are removed with their process.
pub(crate) const PREFIX: &str = "plumb-postgres-";
/// Names in that directory, besides the mark.
pub(crate) const DATA: &str = "data";
pub(crate) const LOG: &str = "server.log";
pub(crate) const GOLDEN: &str = "golden";
/// Time between two checks. Longest time of an end that the first process orders, of one by
/// SIGQUIT, and of all ends.
const INTERVAL: Duration = Duration::from_millis(5);
const FIRST_BOUND: Nanos = Nanos(5_000_000_000);
const END_BOUND: Nanos = Nanos(10_000_000_000);
const LAST_BOUND: Nanos = Nanos(20_000_000_000);
/// First word of a segment of System V, and of a list of segments in `/dev/shm`.
const SEGMENT_MAGIC: u32 = 679_834_894;
const LIST_MAGIC: u32 = 0x9a50_3d32;
/// Bytes of a segment's head, of the head of a list, and of a row of it.
const SEGMENT_HEAD: usize = 56;
const LIST_HEAD: usize = 16;
const LIST_ROW: usize = 40;
/// Most bytes of a list that are read.
const LIST_MOST: u64 = 1 << 20;

/// Servers of killed studies, with their directories.
#[derive(Debug)]
pub struct ServerLeftover;

impl Leftover for ServerLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        named(marked, PREFIX)
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        match (part.kind, part.top()) {
            (PartKind::Directory, Some(name)) => [DATA, GOLDEN].contains(&name),
            (_, Some(name)) => name == LOG,
            // The server makes files and directories of many names in its own. A killed one leaves
            // its socket.
            (_, None) => true,
        }
    }

    fn release(&self, marked: &Path) -> io::Result<()> {
        [DATA, GOLDEN].iter().try_for_each(|name| end_server(&marked.join(name)))
    }
}

/// Ends the server that another process started in this data directory, or initialises it, with all
/// of its processes and its shared memory, and waits for the end.
///
/// # Errors
/// If a process does not end.
pub(crate) fn end_server(data: &Path) -> io::Result<()> {
    let Ok(found) = fs::metadata(data) else { return Ok(()) };
    let data = data.canonicalize()?;
    end_processes(&data)?;
    remove_memory(DirectoryIdentity { device: found.dev(), inode: found.ino() });
    Ok(())
}

/// Ends all processes of a data directory. The first process of a server ends the others in order.
/// A bootstrap process ends on its own when `initdb` is gone, and removes its shared memory then.
fn end_processes(data: &Path) -> io::Result<()> {
    let begin = clock::now();
    let mut asked = BTreeSet::new();
    let mut waited: Vec<Pid> = Vec::new();
    for initdb in processes().filter(|pid| initialises(*pid, data)) {
        waited.extend(below(initdb));
        let _ = kill_process(initdb, Signal::KILL);
    }
    loop {
        let alive: Vec<Pid> = processes().filter(|pid| works_in(*pid, data)).collect();
        waited.retain(|pid| link(*pid, "exe").is_some());
        let spent = clock::now().saturating_sub(begin);
        if alive.is_empty() && (waited.is_empty() || spent > END_BOUND) {
            return Ok(());
        }
        if let Some(pid) = alive.first().filter(|_| spent > LAST_BOUND) {
            return Err(io::Error::other(format!("process {pid} works in it and does not end")));
        }
        let first = first_process(data).filter(|first| alive.contains(first) && spent < FIRST_BOUND);
        for pid in alive.into_iter().filter(|pid| first.is_none_or(|first| first == *pid)) {
            if spent > END_BOUND {
                let _ = kill_process(pid, Signal::KILL);
            } else if !is_bootstrap(pid) && asked.insert(pid.as_raw_nonzero()) {
                let _ = kill_process(pid, Signal::QUIT);
            }
        }
        thread::sleep(INTERVAL);
    }
}

/// Returns the first process of the server that the directory names. A bootstrap process writes the
/// negative of its number.
fn first_process(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let number: i32 = text.lines().next()?.trim().parse().ok()?;
    (number > 0).then(|| Pid::from_raw(number)).flatten()
}

fn processes() -> impl Iterator<Item = Pid> {
    proc_files::all().filter_map(Pid::from_raw)
}

/// Returns the target of a link of a process.
fn link(pid: Pid, name: &str) -> Option<PathBuf> {
    proc_files::link(pid, name)
}

fn arguments(pid: Pid) -> Vec<String> {
    let text = proc_files::text(pid, "cmdline").unwrap_or_default();
    text.split('\0').map(str::to_string).collect()
}

/// True for a process of the program `postgres` that works in a directory.
fn works_in(pid: Pid, data: &Path) -> bool {
    link(pid, "cwd").is_some_and(|there| there == data)
        && link(pid, "exe").is_some_and(|exe| exe.ends_with("postgres"))
}

/// True for a process that reads its commands from `initdb`.
fn is_bootstrap(pid: Pid) -> bool {
    arguments(pid).iter().any(|word| ["--boot", "--single", "--check"].contains(&word.as_str()))
}

/// True for a process of the program `initdb` that makes a data directory.
fn initialises(pid: Pid, data: &Path) -> bool {
    let Some(works_in) =
        link(pid, "cwd").filter(|_| link(pid, "exe").is_some_and(|exe| exe.ends_with("initdb")))
    else {
        return false;
    };
    arguments(pid).iter().any(|word| works_in.join(word).canonicalize().is_ok_and(|path| path == data))
}

/// A data directory, as the head of its server's memory names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryIdentity {
    device: u64,
    inode: u64,
}

/// Removes the shared memory of the server with this data directory, unless a process is attached
/// to it.
fn remove_memory(identity: DirectoryIdentity) {
    for segment in segments().unwrap_or_default() {
        let head = (segment.bytes == SEGMENT_HEAD as u64).then(|| segment.head::<SEGMENT_HEAD>());
        let Some(list) = head.and_then(|head| list_of(&head.ok()?, identity)) else { continue };
        let files = files_of(list);
        if segment.remove_abandoned().is_ok_and(|is_removed| is_removed) {
            files.iter().for_each(|file| drop(fs::remove_file(file)));
        }
    }
}

/// Returns the number of the list of segments that a server's head names; `None` for the head of
/// another program or server.
fn list_of(head: &[u8], identity: DirectoryIdentity) -> Option<u32> {
    let of = DirectoryIdentity { device: long(head, 40)?, inode: long(head, 48)? };
    let is_its = word(head, 0)? == SEGMENT_MAGIC && of == identity;
    word(head, 24).filter(|_| is_its)
}

/// Returns the files in `/dev/shm` that a list names, and the list.
fn files_of(list: u32) -> Vec<PathBuf> {
    let path = |number: u32| PathBuf::from(format!("/dev/shm/PostgreSQL.{number}"));
    let mut bytes = Vec::new();
    let read = File::open(path(list)).and_then(|file| file.take(LIST_MOST).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    numbers_in(&bytes).chain([list]).map(path).collect()
}

/// Returns the numbers of the segments that a list names.
fn numbers_in(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let is_list = word(bytes, 0) == Some(LIST_MAGIC);
    let count = word(bytes, 4).filter(|_| is_list).unwrap_or(0) as usize;
    let rows = bytes.get(LIST_HEAD..).unwrap_or_default().chunks_exact(LIST_ROW).take(count);
    // A row that is not used has no references.
    let used = rows.filter(|row| word(row, 4).is_some_and(|references| references > 0));
    used.filter_map(|row| word(row, 0))
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(magic: u32, list: u32, device: u64, inode: u64) -> Vec<u8> {
        let mut head = vec![0; SEGMENT_HEAD];
        head[..4].copy_from_slice(&magic.to_ne_bytes());
        head[24..28].copy_from_slice(&list.to_ne_bytes());
        head[40..48].copy_from_slice(&device.to_ne_bytes());
        head[48..56].copy_from_slice(&inode.to_ne_bytes());
        head
    }

    #[test]
    fn a_segment_names_its_list_only_for_its_own_directory() {
        let of = |device, inode| DirectoryIdentity { device, inode };
        let its = head(SEGMENT_MAGIC, 7, 3, 11);
        assert_eq!(list_of(&its, of(3, 11)), Some(7));
        assert_eq!(list_of(&its, of(3, 12)), None, "the directory of another server");
        assert_eq!(list_of(&head(1, 7, 3, 11), of(3, 11)), None, "the segment of another program");
        assert_eq!(list_of(&its[..40], of(3, 11)), None, "too short");
    }

    #[test]
    fn the_number_of_a_bootstrap_process_is_no_first_process() {
        let data = tempfile::tempdir().expect("a directory");
        let of = |text: &str| {
            fs::write(data.path().join("postmaster.pid"), text).expect("a file");
            first_process(data.path()).map(|pid| pid.as_raw_nonzero().get())
        };
        assert_eq!(of("4711\n/data\n"), Some(4711));
        for text in ["-4711\n/data\n", "0\n", "", "x\n", "99999999999\n"] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_list_names_the_segments_in_use_and_no_more_than_it_has() {
        let mut list = vec![0; LIST_HEAD + 2 * LIST_ROW];
        list[..4].copy_from_slice(&LIST_MAGIC.to_ne_bytes());
        list[4..8].copy_from_slice(&900_000_u32.to_ne_bytes());
        for (row, (number, references)) in [(5_u32, 2_u32), (6, 0)].into_iter().enumerate() {
            let at = LIST_HEAD + row * LIST_ROW;
            list[at..at + 4].copy_from_slice(&number.to_ne_bytes());
            list[at + 4..at + 8].copy_from_slice(&references.to_ne_bytes());
        }
        assert_eq!(numbers_in(&list).collect::<Vec<_>>(), [5]);
        list[0] ^= 1;
        assert_eq!(numbers_in(&list).count(), 0, "no list of a server");
        assert_eq!(numbers_in(&[]).count(), 0);
    }
}
