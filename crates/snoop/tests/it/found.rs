//! Programs with known requests: each is found, with its bytes, in the order of the program.

use crate::{traced, turn};
use plumb_record::{Snoop, SnoopCalls, SnoopRequests};
use std::path::Path;
use std::process::{Command, Stdio};

/// A directory on a disk, where this machine has one.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a directory")
}

fn calls<'s>(snoop: &'s Snoop, file: &Path, operation: &str) -> Option<&'s SnoopCalls> {
    let name = file.display().to_string();
    snoop.calls.iter().find(|row| row.file == name && row.operation == operation)
}

fn requests<'s>(snoop: &'s Snoop, file: &Path, how: &str) -> Vec<&'s SnoopRequests> {
    let name = file.display().to_string();
    snoop.requests.iter().filter(|row| row.file == name && row.how == how).collect()
}

/// A command that writes blocks of 8K to a file with dd. Its input ends late, so that dd has the
/// file open for long enough to read its name on a busy machine.
fn dd(path: &Path, blocks: usize, more: &str) -> String {
    let (bytes, path) = (blocks * 8192, path.display());
    format!(
        "(head -c {bytes} /dev/zero; sleep 0.5) | dd bs=8k iflag=fullblock of={path} conv=notrunc {more} 2>/dev/null"
    )
}

#[test]
fn direct_writes_are_found_at_both_views_with_their_sizes() {
    let _turn = turn();
    let directory = directory();
    let path = directory.path().join("direct");
    let script = format!("{}; sleep 0.1", dd(&path, 200, "oflag=direct"));
    let Some(snoop) = traced(&["sh", "-c", &script]) else { return };
    let written = calls(&snoop, &path, "write").unwrap_or_else(|| panic!("{:?}", snoop.calls));
    assert_eq!((written.calls, written.bytes, written.errors), (200, 200 * 8192, 0));
    let disk = requests(&snoop, &path, "call");
    if disk.is_empty() {
        println!("skipped: the disk's view needs a file system on a block device");
        return;
    }
    let bytes: u64 = disk.iter().map(|row| row.bytes).sum();
    let count: u64 = disk.iter().map(|row| row.requests).sum();
    // A write over the end of a piece of the file is two requests.
    assert!(bytes == 200 * 8192 && count >= 200, "{disk:?}");
    assert_eq!((written.disk_requests, written.disk_bytes), (count, bytes), "they end within the calls");
    assert!(written.disk_time_ns <= written.time_ns, "the disk's time is part of the calls'");
    // Its blocks may lie in a few pieces.
    let sequential = snoop.patterns.iter().find(|row| row.name == "sequential writes" && row.view == "disk");
    let shown =
        sequential.map(|row| (row.of >= 199, row.requests >= 150, row.arithmetic.starts_with("BLOCK ")));
    assert_eq!(shown, Some((true, true, true)), "{:?}", snoop.patterns);
}

#[test]
fn buffered_writes_reach_the_disk_by_the_sync_that_asks_for_them() {
    let _turn = turn();
    let directory = directory();
    let path = directory.path().join("buffered");
    let script = format!("{}; sync {}; sleep 0.1", dd(&path, 64, ""), path.display());
    let Some(snoop) = traced(&["sh", "-c", &script]) else { return };
    let written = calls(&snoop, &path, "write").unwrap_or_else(|| panic!("{:?}", snoop.calls));
    assert_eq!((written.calls, written.bytes, written.disk_requests), (64, 64 * 8192, 0));
    let by = snoop
        .requests
        .iter()
        .filter(|row| row.call == "fsync" && row.flags.starts_with('W') && row.how == "call");
    let bytes: u64 = by.map(|row| row.bytes).sum();
    // The kernel may have begun to write it back before.
    let back: u64 = requests(&snoop, &path, "written back").iter().map(|row| row.bytes).sum();
    assert!(bytes + back == 64 * 8192 || bytes + back == 0, "{:?}", snoop.requests);
}

/// fio states how much it moved; without it the test has nothing to compare.
fn fio(engine: &str, direct: &str, pattern: &str) {
    let _turn = turn();
    if Command::new("fio").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: fio is not installed");
        return;
    }
    let directory = directory();
    let path = directory.path().join("data");
    // Into blocks that were written before: for others ext4 also writes zeros next to a request.
    std::fs::write(&path, vec![7; 8 << 20]).expect("a file");
    std::fs::File::open(&path).and_then(|file| file.sync_all()).expect("on the disk");
    let words = [
        "fio".to_string(),
        "--name=known".to_string(),
        format!("--filename={}", path.display()),
        format!("--ioengine={engine}"),
        format!("--direct={direct}"),
        format!("--rw={pattern}"),
        "--bs=4k".to_string(),
        "--size=8m".to_string(),
        "--fallocate=none".to_string(),
        "--iodepth=8".to_string(),
        "--thread".to_string(),
        "--output=/dev/null".to_string(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(snoop) = traced(&words) else { return };
    let operation = match (engine, pattern) {
        ("psync", "randwrite" | "write") => "pwrite",
        ("psync", _) => "pread",
        (_, "randwrite" | "write") => "uring write",
        _ => "uring read",
    };
    let rows: Vec<&SnoopCalls> = snoop.calls.iter().filter(|row| row.operation == operation).collect();
    let of_file: Vec<_> = rows.iter().filter(|row| row.file == path.display().to_string()).collect();
    let sum = |rows: &[&&SnoopCalls]| {
        (rows.iter().map(|row| row.calls).sum::<u64>(), rows.iter().map(|row| row.bytes).sum::<u64>())
    };
    assert_eq!(sum(&of_file), (2048, 8 << 20), "{operation} of {engine}: {rows:?}");
    if direct == "1" {
        let how = if engine == "psync" { "call" } else { "io_uring" };
        // The file system may read its own blocks in a call that writes.
        let way = if pattern.ends_with("write") { 'W' } else { 'R' };
        let rows = requests(&snoop, &path, how).into_iter();
        let rows = rows.filter(|row| row.call == operation && row.flags.starts_with(way));
        let bytes: u64 = rows.map(|row| row.bytes).sum();
        assert_eq!(bytes, 8 << 20, "{:?}", snoop.requests);
    }
}

#[test]
fn fio_by_calls_direct_and_through_the_page_cache() {
    fio("psync", "1", "randwrite");
    fio("psync", "0", "write");
    fio("psync", "1", "randread");
}

#[test]
fn fio_by_io_uring_direct_and_through_the_page_cache() {
    fio("io_uring", "1", "randwrite");
    fio("io_uring", "0", "write");
    fio("io_uring", "1", "randread");
}
