//! Work between two runs, so that no run pays for the one before it.
//!
//! Files written by a run are made durable and dropped from the page cache, one by one. Then the
//! block devices are sampled until they are idle. Other processes may use the same device
//! indefinitely, so the wait is bounded, and the run records if the bound was reached. Without a
//! device there is no wait.

use crate::bundle::Settled;
use plumb_events::clock;
use plumb_host::readings::{self, DiskStats};
use plumb_host::regular::open_regular;
use plumb_units::{Bytes, Nanos};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Time between two samples of the devices.
const INTERVAL: Duration = Duration::from_millis(20);
/// Consecutive quiet samples after which a device counts as idle.
const LOOKS: u32 = 3;
/// Bytes that an idle device may move between two samples: a log is written now and then.
const REST_BYTES: Bytes = Bytes(256 * Bytes::K);
/// Longest wait for a busy device.
const BOUND: Nanos = Nanos(2_000_000_000);

/// Settles these files, and the block devices with these names.
pub fn settle(files: &[PathBuf], devices: &[String]) -> Settled {
    let begin = clock::now();
    let (resident_pages, total_pages) = drop_cached(files);
    let idle = wait_until_idle(devices, begin);
    Settled {
        waited_ns: clock::now().saturating_sub(begin).0,
        idle,
        resident_pages,
        total_pages,
        ..Settled::default()
    }
}

/// Drops the files' pages from the page cache; returns the pages that stayed, and all pages.
fn drop_cached(files: &[PathBuf]) -> (u64, u64) {
    let dropped = files.iter().filter_map(|file| readings::drop_cache(open_regular(file).ok()?.as_fd()).ok());
    dropped.fold((0, 0), |(resident, total), file| (resident + file.resident_pages, total + file.total_pages))
}

fn wait_until_idle(devices: &[String], begin: Nanos) -> bool {
    // Samples of no device would never change.
    if devices.is_empty() {
        return true;
    }
    let moved =
        |stats: &[DiskStats]| stats.iter().map(|disk| disk.reads.bytes + disk.writes.bytes).sum::<Bytes>();
    let read =
        || -> Vec<DiskStats> { devices.iter().filter_map(|name| DiskStats::read(name).ok()).collect() };
    let (mut before, mut quiet) = (moved(&read()), 0);
    while quiet < LOOKS {
        if clock::now().saturating_sub(begin) > BOUND {
            return false;
        }
        thread::sleep(INTERVAL);
        let stats = read();
        let now = moved(&stats);
        let at_rest =
            stats.iter().all(|disk| disk.in_flight.0 == 0) && now.0.saturating_sub(before.0) <= REST_BYTES.0;
        quiet = if at_rest { quiet + 1 } else { 0 };
        before = now;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::settle;

    #[test]
    fn without_a_device_there_is_no_wait() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("users01.dbf");
        std::fs::write(&file, vec![7; 100_000]).expect("a file");
        let settled = settle(&[file, directory.path().join("missing")], &[]);
        assert!(settled.idle);
        assert_eq!(settled.total_pages, 100_000_u64.div_ceil(4096));
        assert!(settled.resident_pages <= settled.total_pages);
    }
}
