//! Evidence of a measurement from outside the code that made it.
//!
//! Bytes at the block device compared with bytes requested distinguish a device from a page cache,
//! and own requests from those of other processes:
//!
//! ```text
//! caused reads < asked reads    the page cache answered the rest
//! device bytes > asked bytes    another load (or, through the page cache, read-ahead)
//! flushes = 0, syncs > 0        nothing was flushed
//! ```
//!
//! Caused reads are the kernel's count for this process, so another process cannot hide a page
//! cache. The device's bytes are those of all processes, so they show another load.
//!
//! Limits: the kernel charges writes when a page becomes dirty. So for writes only the device's
//! bytes are evidence, and only without other users. Another load that starts and ends with the
//! measurement resembles journal writes of its own file system. Only [`OTHER_SHARE_MIN`] and
//! [`OTHER_BYTES_MIN`] separate the two by size.

use plumb_events::now;
use plumb_host::device::DeviceDescription;
use plumb_host::readings::{DiskStats, ProcessIo};
use plumb_units::{Bytes, Counter, Nanos, Rate, counters};
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::Duration;

/// Share of the requested bytes above which other bytes count as another load,
const OTHER_SHARE_MIN: f64 = 0.02;
/// and bytes above those of a journal commit or two.
const OTHER_BYTES_MIN: u64 = 512 << 10;
/// Requests per second of an idle device: journal commits and the like.
const IDLE_REQUESTS_PER_SECOND: f64 = 50.0;

/// Number of requests, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Number of reads and writes.
    pub requests: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

counters!(Traffic { requests, read_bytes, write_bytes });

/// Evidence of a measurement, from its ramp to its last completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEvidence {
    pub asked: Traffic,
    /// Number of syncs, `O_DSYNC` writes included.
    pub syncs: u64,
    /// Bytes read from a device for this process; `None` if the kernel does not count them.
    pub caused_read_bytes: Option<u64>,
    /// Requests at the device; `None` without its statistics.
    pub device: Option<Traffic>,
    /// Time between both readings of the device, nanoseconds.
    pub span_ns: u64,
    /// Number of flushes that reached the disk.
    pub flushes: Option<u64>,
    /// Number of kernel threads that served ring requests which would have blocked.
    pub io_wq_workers: usize,
    /// Number of requests through a ring.
    pub ring_requests: u64,
    /// Number of these with registered buffers.
    pub ring_fixed_requests: u64,
    /// Number of these to registered files.
    #[serde(default)]
    pub ring_fixed_file_requests: u64,
}

impl DeviceEvidence {
    /// Reads at a device for this process, as a share of requested reads.
    pub fn read_share(&self) -> Option<f64> {
        let caused = self.caused_read_bytes?;
        (self.asked.read_bytes > 0).then(|| caused as f64 / self.asked.read_bytes as f64)
    }

    /// Device writes as a share of requested writes.
    pub fn write_share(&self) -> Option<f64> {
        let device = self.device?;
        (self.asked.write_bytes > 0).then(|| device.write_bytes as f64 / self.asked.write_bytes as f64)
    }

    /// Bytes per second of other processes, if they exceed the own file system's.
    pub fn other_rate(&self) -> Option<Rate> {
        let device = self.device?;
        let reads = device.read_bytes.saturating_sub(self.asked.read_bytes);
        let writes = device.write_bytes.saturating_sub(self.asked.write_bytes);
        let asked = self.asked.read_bytes.saturating_add(self.asked.write_bytes).max(1);
        let moved = reads.saturating_add(writes);
        let share = moved as f64 / asked as f64;
        let seen = share > OTHER_SHARE_MIN && moved > OTHER_BYTES_MIN;
        seen.then(|| Bytes(moved).per(Nanos(self.span_ns)))
    }
}

/// Reads the statistics of the devices under file systems.
#[derive(Debug, Clone)]
pub(crate) struct DeviceMeter {
    /// Names of each device under a file system, and of its disk, which counts the flushes; `None`
    /// if a path has no device.
    names: Option<Vec<(String, String)>>,
}

/// Samples a device for half a second. Returns the requests a second that others send to it,
/// if it is not idle.
pub fn busy(device: &DeviceDescription) -> Option<f64> {
    DeviceMeter::of([device]).other_load(Nanos(500_000_000))
}

/// Statistics of device and process at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    at: Nanos,
    /// Counters of each device and of its disk.
    disks: Option<Vec<(DiskStats, DiskStats)>>,
    process: Option<ProcessIo>,
}

impl DeviceMeter {
    pub(crate) fn of<'a>(devices: impl IntoIterator<Item = &'a DeviceDescription>) -> DeviceMeter {
        let name = |device: &DeviceDescription| {
            device.block.as_ref().map(|block| (block.name.clone(), block.disk.clone()))
        };
        let mut names: Option<Vec<(String, String)>> = devices.into_iter().map(name).collect();
        // Two paths on one device are counted once.
        if let Some(names) = &mut names {
            names.sort_unstable();
            names.dedup();
        }
        DeviceMeter { names }
    }

    /// A meter without a device, for files in memory.
    #[cfg(test)]
    pub(crate) fn none() -> DeviceMeter {
        DeviceMeter { names: None }
    }

    pub(crate) fn read(&self) -> Reading {
        let statistics = |(device, disk): &(String, String)| {
            Some((DiskStats::read(device).ok()?, DiskStats::read(disk).ok()?))
        };
        Reading {
            at: now(),
            disks: self.names.as_ref().and_then(|names| names.iter().map(statistics).collect()),
            process: ProcessIo::read().ok(),
        }
    }

    /// Returns the evidence since an earlier reading; the caller adds `asked` and `syncs`.
    pub(crate) fn since(&self, earlier: &Reading) -> DeviceEvidence {
        let later = self.read();
        let caused = later.process.as_ref().zip(earlier.process.as_ref());
        let mut evidence = DeviceEvidence {
            span_ns: later.at.saturating_sub(earlier.at).0,
            caused_read_bytes: caused.map(|(later, earlier)| later.since(earlier).read_bytes.0),
            ..DeviceEvidence::default()
        };
        if let (Some(later), Some(earlier)) = (&later.disks, &earlier.disks) {
            let mut traffic = Traffic::default();
            let mut flushes = Some(0);
            for ((device, disk), (device_then, disk_then)) in later.iter().zip(earlier) {
                let device = device.since(device_then);
                let flushed = disk.since(disk_then).flushes.map(|flushes| flushes.completed);
                flushes.grow(&flushed);
                traffic.add(&Traffic {
                    requests: device.reads.completed + device.writes.completed,
                    read_bytes: device.reads.bytes.0,
                    write_bytes: device.writes.bytes.0,
                });
            }
            (evidence.flushes, evidence.device) = (flushes, Some(traffic));
        }
        evidence
    }

    /// Samples the idle device. Returns the requests per second of other processes if they exceed
    /// those of an idle system.
    pub(crate) fn other_load(&self, look: Nanos) -> Option<f64> {
        let earlier = self.read();
        thread::sleep(Duration::from_nanos(look.0));
        let seen = self.since(&earlier);
        let requests = seen.device?.requests as f64 / Nanos(seen.span_ns).seconds().max(1e-9);
        (requests > IDLE_REQUESTS_PER_SECOND).then_some(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_load_is_told_from_a_journal_commit() {
        let asked = Traffic { requests: 1000, read_bytes: 100 << 20, write_bytes: 0 };
        let with = |device: Traffic| DeviceEvidence {
            asked,
            device: Some(device),
            caused_read_bytes: Some(25 << 20),
            span_ns: 500_000_000,
            ..DeviceEvidence::default()
        };
        let journal = Traffic { write_bytes: 64 << 10, ..asked };
        assert_eq!(with(journal).other_rate(), None);
        let neighbour = Traffic { read_bytes: 150 << 20, ..asked };
        assert_eq!(with(neighbour).other_rate(), Some(Rate(100.0 * Bytes::M as f64)));
        assert_eq!(with(neighbour).read_share(), Some(0.25), "a neighbour does not hide a page cache");
        assert_eq!(DeviceEvidence::default().other_rate(), None);
    }
}
