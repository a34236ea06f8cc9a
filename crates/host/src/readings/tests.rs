//! The receipts against the kernel that runs the tests. Where a container lacks something (procfs,
//! a disk's statistics, room on a real file system), the rest is asserted.

use super::*;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const LENGTH: Bytes = Bytes(Bytes::M);

/// A file that goes when the test ends.
struct TestFile {
    path: PathBuf,
}

impl TestFile {
    /// A file of [`LENGTH`] bytes in the directory.
    fn new_in(directory: &Path) -> TestFile {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let serial = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("plumb-receipt-test-{}-{serial}", std::process::id());
        let file = TestFile { path: directory.join(name) };
        std::fs::write(&file.path, vec![7u8; LENGTH.0 as usize]).unwrap();
        file
    }

    fn new() -> TestFile {
        TestFile::new_in(&std::env::temp_dir())
    }

    fn open(&self, flags: i32) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path)
    }

    fn on_tmpfs(&self) -> bool {
        let kind = rustix::fs::statfs(&self.path).unwrap().f_type;
        kind as u64 == libc::TMPFS_MAGIC as u64
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn open_flags_are_those_the_file_was_opened_with() {
    let file = TestFile::new();
    let flags = |bits: i32| open_flags(file.open(bits).unwrap().as_fd()).unwrap();
    let plain = flags(0);
    assert!(!plain.direct && !plain.dsync && !plain.sync && !plain.append);
    assert_eq!(plain.raw & OFlags::ACCMODE.bits(), OFlags::RDWR.bits());
    let dsync = flags(libc::O_DSYNC);
    assert!(dsync.dsync && !dsync.sync);
    let sync = flags(libc::O_SYNC);
    assert!(sync.dsync && sync.sync);
    assert!(flags(libc::O_APPEND).append);
    // A file system may refuse O_DIRECT; it may not take it and hide it.
    if let Ok(direct) = file.open(libc::O_DIRECT) {
        assert!(open_flags(direct.as_fd()).unwrap().direct);
        rustix::fs::fcntl_setfl(&direct, OFlags::empty()).unwrap();
        assert!(!open_flags(direct.as_fd()).unwrap().direct);
    }
}

#[test]
fn process_io_counts_what_was_read() {
    let Ok(before) = ProcessIo::read() else {
        return;
    };
    let file = TestFile::new();
    let mut content = Vec::new();
    file.open(0).unwrap().read_to_end(&mut content).unwrap();
    let io = ProcessIo::read().unwrap().since(&before);
    // Other tests run in the same process, so these are lower bounds.
    assert!(io.rchar >= LENGTH);
    assert!(io.wchar >= LENGTH);
    assert!(io.syscr >= 1);
    assert!(io.syscw >= 1);
    assert_eq!(before.since(&ProcessIo::read().unwrap()), ProcessIo::default());
}

#[test]
fn disk_stats_read_the_fields_in_order() {
    let text = "10 1 16 5 20 2 24 6 3 40 41 30 4 32 7 50 8\n";
    let stats = DiskStats::parse(text).unwrap();
    let counts = |completed, merged, sectors: u64, time| RequestCounts {
        completed,
        merged,
        bytes: Bytes(sectors * 512),
        time: millis(time),
    };
    let expect = DiskStats {
        reads: counts(10, 1, 16, 5),
        writes: counts(20, 2, 24, 6),
        in_flight: Latest(3),
        io_time: millis(40),
        weighted_io_time: millis(41),
        discards: Some(counts(30, 4, 32, 7)),
        flushes: Some(FlushCounts { completed: 50, time: millis(8) }),
    };
    assert_eq!(stats, expect);
    let old = DiskStats::parse("10 1 16 5 20 2 24 6 3 40 41").unwrap();
    assert_eq!(old, DiskStats { discards: None, flushes: None, ..expect });
    assert_eq!(DiskStats::parse("10 1"), None);
    let nothing = stats.since(&stats);
    assert_eq!(nothing.reads, RequestCounts::default());
    assert_eq!(nothing.in_flight, Latest(3));
}

#[test]
fn times_that_wrapped_are_still_differences() {
    let near_the_end = millis(u64::from(u32::MAX) - 9);
    assert_eq!(elapsed(millis(5), near_the_end), millis(15));
    assert_eq!(elapsed(millis(7), millis(5)), millis(2));
}

#[test]
fn disk_stats_know_the_disks_of_this_machine_and_no_other() {
    for disk in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = disk.file_name().into_string().unwrap();
        let earlier = DiskStats::read(&name).unwrap();
        let later = DiskStats::read(&name).unwrap();
        assert!(later.reads.completed >= earlier.reads.completed);
    }
    let unknown = DiskStats::read("no-such-disk").unwrap_err();
    assert_eq!(unknown.kind(), io::ErrorKind::NotFound);
}

#[test]
fn what_was_read_is_resident_and_what_was_dropped_is_not() {
    let file = TestFile::new();
    let opened = file.open(0).unwrap();
    let Ok(written) = residency(opened.as_fd(), LENGTH) else {
        return;
    };
    assert_eq!(written.total_pages, LENGTH.0 / rustix::param::page_size() as u64);
    assert_eq!(written.resident_pages, written.total_pages);
    let dropped = drop_cache(opened.as_fd()).unwrap();
    if file.on_tmpfs() {
        assert_eq!(dropped.resident_pages, dropped.total_pages);
        return;
    }
    assert!(dropped.resident_pages * 10 < dropped.total_pages, "{dropped:?}");
    assert_eq!(dropped.dirty_pages.unwrap_or(0), 0);
    let mut content = vec![0; LENGTH.0 as usize];
    opened.read_exact_at(&mut content, 0).unwrap();
    let read = residency(opened.as_fd(), LENGTH).unwrap();
    assert_eq!(read.resident_pages, read.total_pages);
}

#[test]
fn unsynced_writes_are_dirty() {
    let file = TestFile::new();
    let mut opened = file.open(0).unwrap();
    drop_cache(opened.as_fd()).unwrap();
    opened.write_all(&[1; 8192]).unwrap();
    let Ok(written) = residency(opened.as_fd(), LENGTH) else {
        return;
    };
    if let Some(dirty) = written.dirty_pages
        && !file.on_tmpfs()
    {
        assert!(dirty <= written.resident_pages);
        opened.sync_data().unwrap();
        assert_eq!(residency(opened.as_fd(), LENGTH).unwrap().dirty_pages, Some(0));
    }
}

#[test]
fn both_ways_of_counting_residency_agree() {
    let file = TestFile::new();
    let opened = file.open(0).unwrap();
    let page = rustix::param::page_size() as u64;
    let mapped = mincore(opened.as_fd(), LENGTH.0).unwrap();
    assert_eq!(mapped, LENGTH.0 / page);
    if let Ok(counts) = cachestat(opened.as_fd(), LENGTH) {
        assert_eq!(counts.cached, mapped);
    }
    // Past the end no page exists, and none is mapped.
    assert_eq!(mincore(opened.as_fd(), 4 * LENGTH.0).unwrap(), mapped);
    assert_eq!(residency(opened.as_fd(), Bytes(0)).unwrap().total_pages, 0);
}

#[test]
fn files_in_memory_cannot_be_dropped() {
    let directory = Path::new("/dev/shm");
    if !directory.is_dir() {
        return;
    }
    let file = TestFile::new_in(directory);
    if file.on_tmpfs() {
        let opened = file.open(0).unwrap();
        let dropped = drop_cache(opened.as_fd()).unwrap();
        assert_eq!(dropped.resident_pages, dropped.total_pages);
    }
}

#[test]
fn resident_memory_and_its_peak_follow_what_is_touched() {
    const TOUCHED: usize = 32 << 20;
    let Ok(before) = resident_memory() else {
        return;
    };
    assert!(before.rss.0 > 0);
    let memory = std::hint::black_box(vec![1u8; TOUCHED]);
    let during = resident_memory().unwrap();
    assert!(during.peak.0 >= during.rss.0);
    assert!(during.peak.0 >= TOUCHED as u64);
    drop(memory);
    if reset_peak() {
        // Other tests hold memory too, but less than this one.
        assert!(resident_memory().unwrap().peak < during.peak);
    }
}

/// Adding the differences of two periods gives that of both, for merged requests too.
#[test]
fn what_a_disk_did_in_two_times_adds_up_to_both() {
    let at = |scale: u64| {
        let requests = |each: u64| RequestCounts {
            completed: each * scale,
            merged: 2 * each * scale,
            bytes: Bytes(8192 * each * scale),
            time: Nanos(100 * each * scale),
        };
        DiskStats {
            reads: requests(1),
            writes: requests(3),
            in_flight: Latest(scale),
            io_time: Nanos(10 * scale),
            weighted_io_time: Nanos(20 * scale),
            discards: Some(requests(5)),
            flushes: Some(FlushCounts { completed: scale, time: Nanos(scale) }),
        }
    };
    let mut sum = at(3).since(&at(1));
    sum.add(&at(7).since(&at(3)));
    assert_eq!(sum, at(7).since(&at(1)));
}

#[test]
fn pages_of_some_file_systems_show_no_path_of_requests() {
    for (file_system, name) in [(FUSE, "FUSE"), (OVERLAYFS, "overlayfs"), (TMPFS, "tmpfs"), (ZFS, "ZFS")] {
        assert!(untold(file_system).is_some_and(|why| why.contains(name)), "{name}");
    }
    const EXT4: u64 = 0xef53;
    assert_eq!(untold(EXT4), None);
}
