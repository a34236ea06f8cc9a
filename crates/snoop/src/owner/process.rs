//! Processes of a trace, their threads, and the files behind their descriptors.
//!
//! ```text
//! thread ──> process ──> descriptor ──> file (path, device, inode)
//! ```
//!
//! A descriptor is read from `/proc/PID/fd` at its first sight and at each open; close, exec and
//! the process's end forget it. A file is known by device and inode: its other descriptors,
//! processes and the kernel's write-back find it by them. A rename changes the path and keeps the
//! file.
//!
//! F1 A name is never that of a later file: a descriptor that was closed or opened again before it
//! could be read has no name, and its calls are shown with `<none>`.
//!
//! Limits: a process that ends within about 0.1 ms of an open leaves no name. Offsets of read and
//! write are known from an open or a seek on, because a descriptor may be shared.

use crate::kernel::event::comm_text;
use crate::owner::descriptor::{self, FileKind, Raw};
use plumb_host::kernel::{stat_fields, status_field};
use plumb_units::path_text;
use rustix::fs::OFlags;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Number of a file in [`Processes::file`].
pub(crate) type FileNumber = u32;
/// Most files with names of their own; others are counted together.
const FILES_MAX: usize = 65_536;
/// Flag of a descriptor whose writes are durable when they return; it is a part of `O_SYNC`. The
/// constant of rustix has both bits, so that a file with this one alone would lack it.
const O_DSYNC: u32 = 0o10000;
/// Name of a file that could not be read.
pub const NO_NAME: &str = "<none>";

/// A file that was used.
#[derive(Debug, Clone)]
pub(crate) struct FileName {
    /// Path as text; `<none>` if it is unknown.
    pub path: String,
    /// Disk with the file, as the kernel numbers it; 0 if unknown.
    pub disk: u32,
    pub inode: u64,
    pub kind: FileKind,
    /// Bytes at its first sight; none if unknown.
    pub size: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Descriptor {
    pub file: FileNumber,
    /// Position of the next read or write; none if unknown.
    pub position: Option<u64>,
    /// True if reads and writes bypass the page cache.
    pub is_direct: bool,
    /// True if a write waits until it is durable (`O_DSYNC`, `O_SYNC`).
    pub is_durable: bool,
    /// True if it was inherited through an exec, which may have closed it.
    is_old: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub comm: String,
    /// Number in its own container, where that differs.
    pub inner: Option<u32>,
    descriptors: HashMap<i32, Descriptor>,
}

/// Processes of a trace, with threads and files.
#[derive(Debug)]
pub(crate) struct Processes {
    proc: PathBuf,
    /// Process of each live thread.
    threads: HashMap<u32, u32>,
    processes: HashMap<u32, Process>,
    files: Vec<FileName>,
    by_inode: HashMap<(u32, u64), FileNumber>,
    disks: HashMap<u32, u32>,
    /// Processes that had ended at the last look.
    gone: HashSet<u32>,
    /// Events that have been read and not yet taken, by process and descriptor: until then /proc
    /// shows a later file (F1).
    changing: HashMap<(u32, i32), u32>,
}

impl Processes {
    /// Creates an empty table over `/proc`, or a directory of its form.
    pub fn new(proc: &Path) -> Processes {
        let path = NO_NAME.to_string();
        let none = FileName { path, disk: 0, inode: 0, kind: FileKind::Unknown, size: None };
        Processes {
            proc: proc.to_path_buf(),
            threads: HashMap::new(),
            processes: HashMap::new(),
            files: vec![none],
            by_inode: HashMap::new(),
            disks: HashMap::new(),
            gone: HashSet::new(),
            changing: HashMap::new(),
        }
    }

    /// Adds a live process; returns its threads, none if it has ended.
    pub fn add(&mut self, pid: u32) -> Vec<u32> {
        let directory = self.proc.join(pid.to_string());
        let entries = fs::read_dir(directory.join("task")).into_iter().flatten().flatten();
        let threads: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        if !threads.is_empty() {
            let status = fs::read_to_string(directory.join("status")).unwrap_or_default();
            let inner = status_field(&status, "NSpid").and_then(|numbers| {
                numbers.split_ascii_whitespace().nth(1).and(numbers.split_ascii_whitespace().last())
            });
            let process = Process {
                comm: status_field(&status, "Name").unwrap_or_default().to_string(),
                inner: inner.and_then(|inner| inner.parse().ok()),
                descriptors: HashMap::new(),
            };
            self.processes.insert(pid, process);
            self.threads.extend(threads.iter().map(|thread| (*thread, pid)));
        }
        threads
    }

    /// Adds the thread that starts a command: a process made by it is traced, and inherits the
    /// standard descriptors of this one.
    pub fn add_starter(&mut self, thread: u32) {
        self.threads.insert(thread, thread);
        self.processes.insert(thread, Process::default());
        for number in 0..=2 {
            if let Some(found) = self.read(std::process::id(), number) {
                self.keep(thread, number, found);
            }
        }
    }

    /// Adds a thread, or a process, that a traced thread made.
    pub fn forked(&mut self, parent: u32, child: u32, is_thread: IsThread, comm: &[u8]) {
        let Some(process) = self.threads.get(&parent).copied() else { return };
        if is_thread == IsThread::Yes {
            self.threads.insert(child, process);
            return;
        }
        let mut made = self.processes.get(&process).cloned().unwrap_or_default();
        made.comm = comm_text(comm);
        // Both move one position now.
        made.descriptors.values_mut().for_each(|descriptor| descriptor.position = None);
        if let Some(process) = self.processes.get_mut(&process) {
            process.descriptors.values_mut().for_each(|descriptor| descriptor.position = None);
        }
        self.threads.insert(child, child);
        self.processes.insert(child, made);
    }

    /// Marks descriptors as possibly closed by an exec.
    pub fn executed(&mut self, thread: u32) {
        let Some(pid) = self.process_of(thread) else { return };
        let name = fs::read_to_string(self.proc.join(pid.to_string()).join("comm"));
        if let Some(process) = self.processes.get_mut(&pid) {
            process.descriptors.values_mut().for_each(|descriptor| descriptor.is_old = true);
            if let Ok(name) = name {
                process.comm = name.trim_end().to_string();
            }
        }
    }

    /// Renames a process by its first thread.
    pub fn named(&mut self, thread: u32, comm: &[u8]) {
        if let Some(process) = self.processes.get_mut(&thread) {
            process.comm = comm_text(comm);
        }
    }

    /// Forgets a thread, and with its last thread the process's descriptors. Its name stays for
    /// requests that complete later.
    pub fn ended(&mut self, thread: u32, is_process: IsProcess) {
        let pid = self.threads.remove(&thread);
        if is_process == IsProcess::Yes
            && let Some(process) = pid.and_then(|pid| self.processes.get_mut(&pid))
        {
            process.descriptors.clear();
        }
    }

    /// Returns the process of a thread; none if it is not traced.
    pub fn process_of(&self, thread: u32) -> Option<u32> {
        self.threads.get(&thread).copied()
    }

    /// Forgets the threads of processes that have ended. The kernel does not report the end of
    /// every thread: workers of io_uring are not followed.
    pub fn prune(&mut self) {
        let mut pids: Vec<u32> = self.threads.values().copied().collect();
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let stat = fs::read_to_string(self.proc.join(pid.to_string()).join("stat")).unwrap_or_default();
            let state = stat_fields(&stat).next();
            // At the second look: the last events of the process have been taken by then.
            if state.is_none_or(|state| matches!(state, "Z" | "X")) && !self.gone.insert(pid) {
                self.threads.retain(|_, process| *process != pid);
                self.gone.remove(&pid);
            }
        }
    }

    /// Returns the number of live threads.
    pub fn live(&self) -> usize {
        self.threads.len()
    }

    /// Returns the name of a process, with its number in its container.
    pub fn name(&self, pid: u32) -> String {
        match self.processes.get(&pid) {
            Some(Process { comm, inner: Some(inner), .. }) => format!("{comm} (container pid {inner})"),
            Some(process) => process.comm.clone(),
            None => String::new(),
        }
    }

    pub fn file(&self, number: FileNumber) -> &FileName {
        self.files.get(number as usize).unwrap_or(&self.files[0])
    }

    /// Returns the file with an inode on a disk; none if no descriptor of it was seen.
    pub fn of_inode(&self, disk: u32, inode: u64) -> Option<FileNumber> {
        self.by_inode.get(&(disk, inode)).copied()
    }

    /// Returns the number of files, which have the numbers below it.
    pub fn file_count(&self) -> FileNumber {
        self.files.len() as FileNumber
    }

    /// Returns the paths by which a file may be opened: its descriptors, then its name.
    pub fn paths_of(&self, number: FileNumber) -> Vec<PathBuf> {
        let of_process = |(pid, process): (&u32, &Process)| {
            let found = process.descriptors.iter().find(|(_, descriptor)| descriptor.file == number);
            found.map(|(fd, _)| self.proc.join(format!("{pid}/fd/{fd}")))
        };
        let mut paths: Vec<PathBuf> = self.processes.iter().filter_map(of_process).collect();
        paths.push(PathBuf::from(&self.file(number).path));
        paths
    }

    /// Adds the files that a process has mapped, because programs close mapped files.
    pub fn add_mapped(&mut self, pid: u32) {
        let maps = fs::read_to_string(self.proc.join(pid.to_string()).join("maps")).unwrap_or_default();
        for (device, inode, path) in maps.lines().filter_map(mapped_file) {
            let disk = self.disk_of(device);
            if self.of_inode(disk, inode).is_none() {
                self.add_file(FileName { path, disk, inode, kind: FileKind::Regular, size: None });
            }
        }
    }

    /// Adds a file that has no descriptor, such as a journal.
    pub fn add_file(&mut self, file: FileName) -> FileNumber {
        if self.files.len() >= FILES_MAX {
            return 0;
        }
        let number = self.files.len() as FileNumber;
        if file.inode != 0 {
            self.by_inode.insert((file.disk, file.inode), number);
        }
        self.files.push(file);
        number
    }

    /// Returns a descriptor, read from /proc at its first sight.
    pub fn descriptor(&mut self, thread: u32, number: i32) -> Descriptor {
        let Some(pid) = self.process_of(thread) else { return Descriptor::default() };
        let known = self.processes.get(&pid).and_then(|process| process.descriptors.get(&number)).copied();
        if known.is_none_or(|known| known.is_old) && self.changing.contains_key(&(pid, number)) {
            return known.unwrap_or_default();
        }
        if let Some(known) = known.filter(|known| !known.is_old) {
            return known;
        }
        assert!(!self.changing.contains_key(&(pid, number)), "F1");
        match known {
            Some(known) => {
                // A process that has ended cannot say it; what it inherited is the better guess.
                let found = self.read(pid, number).unwrap_or(Descriptor { is_old: false, ..known });
                self.keep(pid, number, found)
            }
            None => {
                let found = self.read(pid, number).unwrap_or_default();
                self.keep(pid, number, found)
            }
        }
    }

    fn keep(&mut self, pid: u32, number: i32, found: Descriptor) -> Descriptor {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.descriptors.insert(number, found);
        }
        found
    }

    /// Notes that an event changes a descriptor and has not been taken yet; returns its key.
    pub fn announce(&mut self, thread: u32, number: i32) -> (u32, i32) {
        let key = (self.process_of(thread).unwrap_or(thread), number);
        *self.changing.entry(key).or_default() += 1;
        key
    }

    /// Notes that an announced event is being taken.
    pub fn settle(&mut self, process: u32, number: i32) {
        let key = (process, number);
        if let Some(count) = self.changing.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.changing.remove(&key);
            }
        }
    }

    /// True if the file of a descriptor is not known.
    pub fn is_unknown(&self, thread: u32, number: i32) -> bool {
        let process = self.process_of(thread).and_then(|pid| self.processes.get(&pid));
        process.and_then(|process| process.descriptors.get(&number)).is_none_or(|known| known.file == 0)
    }

    /// Sets the descriptor that an open returned; none if it could not be read in time.
    pub fn opened(&mut self, thread: u32, number: i32, found: Option<Raw>) {
        let Some(pid) = self.process_of(thread) else { return };
        let found = found.map_or_else(Descriptor::default, |raw| self.of_raw(raw));
        self.keep(pid, number, found);
    }

    /// Adds a second descriptor of a file. Both move one position, which is unknown from then on.
    pub fn duplicated(&mut self, thread: u32, old: i32, new: i32) {
        let Some(pid) = self.process_of(thread) else { return };
        let found = Descriptor { position: None, is_old: false, ..self.descriptor(thread, old) };
        for number in [old, new] {
            self.keep(pid, number, found);
        }
    }

    /// Sets the position of a descriptor; none if it is not known.
    pub fn moved(&mut self, thread: u32, number: i32, position: Option<u64>) {
        let Some(pid) = self.process_of(thread) else { return };
        if let Some(process) = self.processes.get_mut(&pid)
            && let Some(descriptor) = process.descriptors.get_mut(&number)
        {
            descriptor.position = position;
        }
    }

    pub fn closed(&mut self, thread: u32, number: i32) {
        let Some(pid) = self.process_of(thread) else { return };
        if let Some(process) = self.processes.get_mut(&pid) {
            process.descriptors.remove(&number);
        }
    }

    /// Reads the paths of a process's files again, after a rename.
    pub fn renamed(&mut self, thread: u32) {
        let Some(pid) = self.process_of(thread) else { return };
        let numbers: Vec<i32> = match self.processes.get(&pid) {
            Some(process) => process.descriptors.keys().copied().collect(),
            None => return,
        };
        for number in numbers {
            let _ = self.read(pid, number);
        }
    }

    fn read(&mut self, pid: u32, number: i32) -> Option<Descriptor> {
        let raw = descriptor::read(&self.proc, pid, number)?;
        Some(self.of_raw(raw))
    }

    fn of_raw(&mut self, raw: Raw) -> Descriptor {
        let disk = self.disk_of(raw.device);
        // An offset is known from the start of a file on, unless each write moves to its end.
        let starts = raw.kind != FileKind::Other && !raw.flags.contains(OFlags::APPEND);
        Descriptor {
            position: raw.position.filter(|position| starts && *position == 0),
            is_direct: raw.flags.contains(OFlags::DIRECT),
            is_durable: raw.flags.bits() & O_DSYNC != 0,
            is_old: false,
            file: self.file_of(FileName {
                path: raw.path,
                disk,
                inode: raw.inode,
                kind: raw.kind,
                size: raw.size,
            }),
        }
    }

    fn file_of(&mut self, file: FileName) -> FileNumber {
        match self.of_inode(file.disk, file.inode) {
            Some(number) => {
                let known = &mut self.files[number as usize];
                // The name of a deleted file, or of a renamed one, replaces the earlier one.
                if known.path != file.path {
                    known.path = file.path;
                }
                number
            }
            None => self.add_file(file),
        }
    }

    /// Returns the whole disk of a device that was seen before; none for others.
    pub fn known_disk(&self, device: u32) -> Option<u32> {
        self.disks.get(&device).copied()
    }

    /// Returns the whole disk of a partition, because block requests carry the disk's number.
    pub fn disk_of(&mut self, device: u32) -> u32 {
        if let Some(disk) = self.disks.get(&device) {
            return *disk;
        }
        let (major, minor) = (device >> 20, device & 0xf_ffff);
        let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let of_partition = path.join("partition").exists().then(|| {
            let text = fs::read_to_string(path.join("../dev")).ok()?;
            let (major, minor) = text.trim().split_once(':')?;
            Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
        });
        let disk = of_partition.flatten().unwrap_or(device);
        self.disks.insert(device, disk);
        disk
    }
}

/// Parses a line of `/proc/PID/maps` with a file: device, inode and path. Line feeds of the path
/// are written `\012` there.
fn mapped_file(line: &str) -> Option<(u32, u64, String)> {
    let mut words = line.splitn(6, ' ').skip(3);
    let (major, minor) = words.next()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = number(major)? << 20 | number(minor)?;
    let inode: u64 = words.next()?.parse().ok().filter(|inode| *inode != 0)?;
    let path = words.next()?.trim_start().replace("\\012", "\n");
    path.starts_with('/').then(|| (device, inode, path_text(Path::new(&path))))
}

/// Returns the first sector of a partition on its disk; 0 for a whole disk.
pub fn partition_start(device: u32) -> u64 {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    let start = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/start")).unwrap_or_default();
    start.trim().parse().unwrap_or(0)
}

/// True or false for a fork's child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsThread {
    Yes,
    No,
}

/// True or false for the end of a process's last thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsProcess {
    Yes,
    No,
}

/// Returns the kernel's name of a disk: `vda`.
pub fn disk_name(device: u32) -> String {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    let uevent = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent")).unwrap_or_default();
    let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map_or_else(|| format!("{major}:{minor}"), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn own() -> (Processes, u32) {
        let mut processes = Processes::new(Path::new("/proc"));
        let pid = std::process::id();
        assert!(processes.add(pid).contains(&pid));
        (processes, pid)
    }

    #[test]
    fn a_descriptor_has_the_path_of_its_file_and_keeps_the_file_through_a_rename() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a\nb");
        let file = fs::File::create(&path).expect("a file");
        let (mut processes, pid) = own();
        let found = processes.descriptor(pid, file.as_raw_fd());
        let shown = processes.file(found.file).clone();
        assert_eq!((shown.path.as_str(), shown.kind), (path_text(&path).as_str(), FileKind::Regular));
        assert_eq!(found.position, Some(0));
        assert_eq!(processes.of_inode(shown.disk, shown.inode), Some(found.file));
        let renamed = directory.path().join("c");
        fs::rename(&path, &renamed).expect("renamed");
        processes.renamed(pid);
        assert_eq!(processes.file(found.file).path, path_text(&renamed));
        fs::remove_file(&renamed).expect("removed");
        processes.renamed(pid);
        assert!(processes.file(found.file).path.ends_with(" (deleted)"));
    }

    #[test]
    fn a_descriptor_that_is_known_to_be_another_file_by_now_has_no_name() {
        let file = tempfile::tempfile().expect("a file");
        let (mut processes, pid) = own();
        let key = processes.announce(pid, file.as_raw_fd());
        let found = processes.descriptor(pid, file.as_raw_fd());
        assert_eq!(processes.file(found.file).path, NO_NAME, "F1");
        processes.settle(key.0, key.1);
        assert_ne!(processes.descriptor(pid, file.as_raw_fd()).file, 0);
        processes.opened(pid, file.as_raw_fd(), None);
        assert_eq!(processes.descriptor(pid, file.as_raw_fd()).file, 0, "F1: it was read too late");
    }

    #[test]
    fn a_process_of_a_container_is_named_with_its_number_there() {
        let proc = tempfile::tempdir().expect("a directory");
        let own = proc.path().join("4711");
        fs::create_dir_all(own.join("task/4711")).expect("a directory");
        fs::write(own.join("status"), "Name:\tlgwr\nNSpid:\t4711\t7\n").expect("a file");
        let mut processes = Processes::new(proc.path());
        assert_eq!(processes.add(4711), [4711]);
        assert_eq!(processes.name(4711), "lgwr (container pid 7)");
    }

    #[test]
    fn mapped_files_are_known_by_device_inode_and_path_with_blanks() {
        let line = "7f1c4000-7f1c5000 r-xp 00001000 fe:01 4711                       /usr/a b\\012c";
        assert_eq!(mapped_file(line), Some((0xfe << 20 | 1, 4711, path_text(Path::new("/usr/a b\nc")))));
        for other in ["7ffd-7ffe rw-p 00000000 00:00 0        [stack]", "7ff-7fe rw-p 00000000 00:00 0", "x"]
        {
            assert_eq!(mapped_file(other), None, "{other}");
        }
        let (mut processes, pid) = own();
        processes.add_mapped(pid);
        let program = std::env::current_exe().expect("a path");
        let known = (0..processes.file_count()).any(|at| processes.file(at).path == path_text(&program));
        assert!(known, "its own program is mapped");
    }

    #[test]
    fn children_inherit_files_and_share_positions_and_a_reused_number_is_another_process() {
        let file = tempfile::tempfile().expect("a file");
        let (mut processes, pid) = own();
        let number = file.as_raw_fd();
        let found = processes.descriptor(pid, number);
        let child = 4_194_303;
        processes.forked(pid, child, IsThread::No, b"child\0");
        assert_eq!(processes.name(child), "child");
        let inherited = processes.descriptor(child, number);
        assert_eq!((inherited.file, inherited.position), (found.file, None));
        assert_eq!(processes.descriptor(pid, number).position, None, "the child moves it too");
        processes.ended(child, IsProcess::Yes);
        assert_eq!(processes.process_of(child), None);
        assert_eq!(processes.name(child), "child", "its requests may still complete");
        processes.forked(pid, child, IsThread::No, b"other\0");
        assert_eq!(processes.name(child), "other");
        processes.forked(pid, 77, IsThread::Yes, b"thread\0");
        assert_eq!(processes.process_of(77), Some(pid));
    }
}
