//! The file of a sector: the second way to the path of a request, where no call names it.
//!
//! ```text
//! request without a file ──> disk, sector ──> extent ──> file, offset in the file
//!                               └ no extent: read those of files that have not been read
//! ```
//!
//! The first way is the call. A request lacks it after a page fault of a mapped file, and where a
//! worker of the kernel makes it: write-back, or a control group's limit that delays requests.
//! Files are those of descriptors that were seen, and those that the process has mapped.
//!
//! X1 Extents never overlap: those that were read later replace the earlier ones.
//!
//! Limits: extents are read once a file, and again after a traced process has written it, at most
//! once a second. A file that another moves or shortens meanwhile keeps its old sectors until then.
//! Deleted files without a descriptor, btrfs, and file systems over several disks have no extents.

use crate::owner::descriptor::{FileKind, kernel_device};
use crate::owner::process::{FileNumber, Processes, partition_start};
use plumb_host::extents::{FileExtent, extents};
use plumb_host::regular::open_regular;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// Most extents of all files, about 5 MB.
const EXTENTS_MAX: usize = 65_536;
/// Most extents of one file.
const EXTENTS_OF_FILE_MAX: usize = 4096;
/// Files read for one request, about 1 ms.
const FILES_READ: usize = 64;
/// Least time between two readings of a file or of a process's maps, nanoseconds.
const AGAIN: u64 = 1_000_000_000;

/// Position of a request for [`Extents::find`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought {
    /// The kernel's number of the disk.
    pub disk: u32,
    pub sector: u64,
    /// Monotonic time of the request, nanoseconds.
    pub time: u64,
    /// Traced process whose mapped files may have the sector.
    pub process: Option<u32>,
}

/// Place of a sector: a file, and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub file: FileNumber,
    pub offset: u64,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    /// Sector behind the last one.
    end: u64,
    first: FilePlace,
}

/// Extents of the files of a trace.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// By disk and first sector.
    runs: BTreeMap<(u32, u64), Run>,
    /// Files from here on have not been read.
    next: FileNumber,
    /// Files written since the last readings.
    written: HashSet<FileNumber>,
    /// Time of the last reading of written files.
    again: u64,
    /// Time of the last reading of a process's maps.
    mapped: HashMap<u32, u64>,
}

impl Extents {
    /// Notes that a file may have grown.
    pub fn written(&mut self, file: FileNumber) {
        if file < self.next {
            self.written.insert(file);
        }
    }

    /// Returns the file of a sector; none if no known file has it.
    pub fn find(&mut self, sought: Sought, processes: &mut Processes) -> Option<FilePlace> {
        if let Some(found) = self.known(sought) {
            return Some(found);
        }
        if let Some(pid) = sought.process
            && self.mapped.get(&pid).is_none_or(|read| sought.time >= read + AGAIN)
        {
            self.mapped.insert(pid, sought.time);
            processes.add_mapped(pid);
        }
        for file in self.unread(sought.time, processes) {
            self.read(file, processes);
        }
        self.known(sought)
    }

    /// True if any sector is known to be the file's.
    pub fn has(&self, file: FileNumber) -> bool {
        self.runs.values().any(|run| run.first.file == file)
    }

    /// Returns the file of a sector, of those that have been read.
    pub fn known(&self, sought: Sought) -> Option<FilePlace> {
        let Sought { disk, sector, .. } = sought;
        let ((_, first), run) = self.runs.range((disk, 0)..=(disk, sector)).next_back()?;
        let FilePlace { file, offset } = run.first;
        (sector < run.end).then(|| FilePlace { file, offset: offset + (sector - first) * 512 })
    }

    /// Takes the files to read now.
    fn unread(&mut self, time: u64, processes: &Processes) -> Vec<FileNumber> {
        let end = processes.file_count().min(self.next + FILES_READ as FileNumber);
        let mut files: Vec<FileNumber> = (self.next..end).collect();
        self.next = end;
        if time >= self.again + AGAIN {
            self.again = time;
            let again: Vec<FileNumber> = self.written.iter().copied().take(FILES_READ).collect();
            self.written.retain(|file| !again.contains(file));
            files.extend(again);
        }
        files
    }

    /// Reads the extents of a file, unless it cannot be opened by any of its names.
    pub fn read(&mut self, number: FileNumber, processes: &Processes) {
        let file = processes.file(number);
        if file.kind != FileKind::Regular || file.disk == 0 || file.inode == 0 {
            return;
        }
        let (disk, inode) = (file.disk, file.inode);
        for path in processes.paths_of(number) {
            let Ok(opened) = open_regular(&path) else { continue };
            let Ok(found) = opened.metadata() else { continue };
            // The path may be another file's by now.
            let device = kernel_device(found.dev());
            if found.ino() != inode || processes.known_disk(device) != Some(disk) {
                continue;
            }
            let Ok(extents) = extents(opened.as_fd(), EXTENTS_OF_FILE_MAX) else { return };
            return self.set(number, disk, partition_start(device), &extents);
        }
    }

    /// Replaces the extents of a file; `start` is the first sector of its partition.
    pub fn set(&mut self, number: FileNumber, disk: u32, start: u64, extents: &[FileExtent]) {
        self.runs.retain(|_, run| run.first.file != number);
        for extent in extents.iter().take(EXTENTS_MAX.saturating_sub(self.runs.len())) {
            let from = start + extent.physical.0 / 512;
            let end = from + extent.length.0 / 512;
            self.clear(disk, from, end);
            let first = FilePlace { file: number, offset: extent.logical.0 };
            self.runs.insert((disk, from), Run { end, first });
        }
    }

    /// Removes what others had of a range of sectors (X1).
    fn clear(&mut self, disk: u32, from: u64, end: u64) {
        let before = self.runs.range_mut((disk, 0)..(disk, from)).next_back();
        if let Some((_, run)) = before {
            run.end = run.end.min(from);
        }
        let inside: Vec<(u32, u64)> = self.runs.range((disk, from)..(disk, end)).map(|(at, _)| *at).collect();
        for at in inside {
            self.runs.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_units::Bytes;
    use std::path::Path;

    fn extent(logical: u64, physical: u64, length: u64) -> FileExtent {
        FileExtent { logical: Bytes(logical), physical: Bytes(physical), length: Bytes(length) }
    }

    fn found(extents: &Extents, disk: u32, sector: u64) -> Option<(FileNumber, u64)> {
        let found = extents.known(Sought { disk, sector, time: 0, process: None })?;
        Some((found.file, found.offset))
    }

    #[test]
    fn sectors_belong_to_the_file_that_was_read_last() {
        let mut extents = Extents::default();
        extents.set(3, 9, 2048, &[extent(0, 0, 8192), extent(8192, 1 << 20, 4096)]);
        assert_eq!(found(&extents, 9, 2048), Some((3, 0)));
        assert_eq!(found(&extents, 9, 2063), Some((3, 15 * 512)));
        assert_eq!(found(&extents, 9, 2064), None);
        assert_eq!(found(&extents, 9, 2048 + 2050), Some((3, 8192 + 1024)));
        assert_eq!((found(&extents, 9, 2047), found(&extents, 8, 2048)), (None, None));
        extents.set(4, 9, 0, &[extent(65536, 2052 * 512, 1 << 20)]);
        assert_eq!(found(&extents, 9, 2051), Some((3, 3 * 512)), "X1: what is left of the first");
        assert_eq!(found(&extents, 9, 2053), Some((4, 65536 + 512)), "X1");
        extents.set(4, 9, 0, &[]);
        assert_eq!(found(&extents, 9, 2053), None, "it has become shorter");
    }

    #[test]
    fn a_file_is_found_by_its_sectors_before_and_after_it_grows() {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = directory.path().join("file");
        let write = |bytes: usize| {
            let mut file = std::fs::File::options().append(true).create(true).open(&path).expect("a file");
            std::io::Write::write_all(&mut file, &vec![7; bytes]).expect("written");
            file.sync_all().expect("on the disk");
            file
        };
        let file = write(8192);
        let pid = std::process::id();
        let mut processes = Processes::new(Path::new("/proc"));
        processes.add(pid);
        let number = processes.descriptor(pid, std::os::fd::AsRawFd::as_raw_fd(&file)).file;
        let disk = processes.file(number).disk;
        let start = partition_start(kernel_device(file.metadata().expect("its device").dev()));
        let places =
            |file: &std::fs::File| plumb_host::extents::extents(file.as_fd(), 10).unwrap_or_default();
        let sector = |at: &FileExtent| start + (at.physical.0 + at.length.0 - 512) / 512;
        let Some(last) = places(&file).last().map(sector) else {
            return println!("skipped: no FIEMAP here");
        };
        let mut extents = Extents::default();
        let mut at = |sector, time| {
            let sought = Sought { disk, sector, time, process: None };
            extents.find(sought, &mut processes).map(|found| found.file)
        };
        assert_eq!(at(last, 5), Some(number));
        let grown = write(16 << 20);
        let last = places(&grown).last().map(sector).expect("it has more");
        assert_eq!(at(last, 2 * AGAIN), None, "read once");
        extents.written(number);
        let sought = Sought { disk, sector: last, time: 4 * AGAIN, process: None };
        assert_eq!(extents.find(sought, &mut processes).map(|found| found.file), Some(number));
    }
}
