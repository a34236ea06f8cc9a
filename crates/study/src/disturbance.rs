//! Judges if a run had the machine and the device to itself, by counters read around it.
//!
//! ```text
//! MachineCounters ──> work ──> MachineCounters     their difference, and the run's own part of it
//!        └─────────> Stretch <─────────┘
//! Stretch ──[RULES]──> Circumstance ──> findings and headline of a run, disturbed blocks
//! ```
//!
//! The kernel counts bytes at the device for all processes, processor time for all tasks, and
//! quotas for the control group. Counts in excess of the run's own belong to others. A rule
//! requires a share and an amount. In a run of milliseconds, steps of the counters (ticks of 10 ms,
//! a journal commit) make up most of any share.
//!
//! Limits: only bytes are compared, because the block layer splits and merges requests. So a
//! neighbour that only syncs is not seen. CPU time of interrupts counts as others'.

use crate::machine::{CpuTimes, MemoryStall};
use plumb_events::clock;
use plumb_host::device::{DeviceDescription, is_memory_file_system};
use plumb_host::limits::{self, CpuQuota};
use plumb_host::readings::{DiskStats, ProcessIo, ProcessUse};
use plumb_record::{Circumstance, Fact, HostCpu};
use plumb_units::{Bytes, Nanos};
use std::collections::BTreeSet;

/// Share of the device's bytes that others may move.
const DEVICE_SHARE: f64 = 0.10;
/// Others count only above these bytes and these bytes per second.
const DEVICE_BYTES: u64 = 4 << 20;
const DEVICE_BYTES_PER_S: f64 = (1 << 20) as f64;
/// Share of the host's CPU time that others may use while the run waits for a processor.
const CPU_SHARE: f64 = 0.10;
/// Share of its time from which on the run counts as waiting for a processor.
const QUEUE_SHARE: f64 = 0.05;
/// Share of others while hardly a processor is idle, whatever the run's waits show.
const CPU_SHARE_OF_FULL: f64 = 0.25;
const IDLE_SHARE_OF_FULL: f64 = 0.10;
/// CPU time of others above the error of some clock ticks.
const CPU_TIME: Nanos = Nanos(50_000_000);
/// Time in the run queue, or waiting for memory, above that of a context switch.
const WAITED: Nanos = Nanos(10_000_000);
/// Share of CPU time that the hypervisor may give to other guests.
const STEAL_SHARE: f64 = 0.05;
/// Share of a quota's periods that may be throttled.
const THROTTLED_SHARE: f64 = 0.05;
/// Share of the time in which tasks may wait for memory.
const STALLED_SHARE: f64 = 0.05;
/// Swapped bytes from which on memory counts as short.
const SWAPPED: u64 = 4 << 20;
/// Share of bytes read that the page cache may answer.
const CACHED_SHARE: f64 = 0.5;
/// Below this amount, reads of the program's own files distort the count.
const READ_BYTES: u64 = 16 << 20;
/// Share of the time in which other clients of a server may work.
const CLIENTS_SHARE: f64 = 0.05;
/// Factor by which a device may exceed its measured rate.
const ABOVE: f64 = 1.1;
/// Factor by which a device may exceed its measured rate if its own counters confirm the bytes.
/// More requests may be in flight than during the measurement.
const ABOVE_OF_DEVICE: f64 = 1.5;

/// Counters of the machine at one moment.
#[derive(Debug, Clone)]
pub struct MachineCounters {
    at: Nanos,
    cpu: Option<CpuTimes>,
    /// Counters of each named device; `None` if one cannot be read.
    disks: Option<Vec<DiskStats>>,
    /// Counters of the disks below a caching layer; `None` if one cannot be read.
    beneath: Option<Vec<DiskStats>>,
    quotas: Vec<CpuQuota>,
    stalled: Option<MemoryStall>,
    swapped: Option<Bytes>,
    unwritten: Option<Bytes>,
    process_io: Option<ProcessIo>,
    process: Option<ProcessUse>,
}

/// Block devices whose counters show the work of others.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// For a partition its disk, since others may use its other partitions. Otherwise the
    /// device of the file system.
    disks: BTreeSet<String>,
    /// The disks below layers that cache.
    beneath: BTreeSet<String>,
    /// These layers, a sentence each.
    caches: BTreeSet<String>,
    /// True if every byte read comes from memory, or from a device that counts it.
    counts_reads: bool,
}

impl MachineCounters {
    /// Bytes of all processes that were in the page cache, unwritten, at that moment.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.unwrap_or_default().0
    }
}

impl Watched {
    pub fn of(devices: &[DeviceDescription]) -> Watched {
        let mut watched = Watched { counts_reads: true, ..Watched::default() };
        for device in devices {
            let in_memory = is_memory_file_system(&device.mount.file_system);
            watched.counts_reads &= device.block.is_some() || in_memory;
            let Some(block) = &device.block else { continue };
            let own = if block.partition.is_some() { &block.disk } else { &block.name };
            watched.disks.insert(own.clone());
            watched.caches.extend(block.caches.iter().cloned());
            if !block.caches.is_empty() {
                watched.beneath.extend(block.disks.iter().filter(|disk| *disk != &block.name).cloned());
            }
        }
        watched
    }

    /// Watches the devices with these names, without knowledge of partitions or layers.
    pub fn named(disks: &[String]) -> Watched {
        Watched { disks: disks.iter().cloned().collect(), ..Watched::default() }
    }

    pub fn read(&self) -> MachineCounters {
        let stats = |names: &BTreeSet<String>| {
            let all: Option<Vec<_>> = names.iter().map(|name| DiskStats::read(name).ok()).collect();
            all.filter(|disks| !disks.is_empty())
        };
        MachineCounters {
            at: clock::now(),
            cpu: CpuTimes::read(),
            disks: stats(&self.disks),
            beneath: stats(&self.beneath),
            quotas: limits::cpu_quotas(),
            stalled: MemoryStall::read_own(),
            swapped: limits::swapped(),
            unwritten: limits::unwritten(),
            process_io: ProcessIo::read().ok(),
            process: ProcessUse::read().ok(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskBytes {
    pub read: u64,
    pub written: u64,
}

impl DiskBytes {
    /// Bytes that a process moved at devices.
    pub fn of(io: &ProcessIo) -> DiskBytes {
        DiskBytes { read: io.read_bytes.0, written: io.write_bytes.0 }
    }

    fn grown(later: &[DiskStats], earlier: &[DiskStats]) -> DiskBytes {
        let mut moved = DiskBytes::default();
        for grown in later.iter().zip(earlier).map(|(later, earlier)| later.since(earlier)) {
            moved.read += grown.reads.bytes.0;
            moved.written += grown.writes.bytes.0;
        }
        moved
    }

    fn total(&self) -> u64 {
        self.read + self.written
    }
}

/// Counters of the machine over a stretch of time, with the run's own part. Unknown
/// figures are `None`, never zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretch {
    // The machine.
    pub elapsed: Nanos,
    pub cpu: Option<HostCpu>,
    pub disks: Option<DiskBytes>,
    pub beneath: Option<DiskBytes>,
    pub caches: Vec<String>,
    /// The quota that throttled the run most often.
    pub quota: Option<CpuQuota>,
    pub stalled: Option<Nanos>,
    pub swapped: Option<Bytes>,

    // The run.
    pub own_cpu: Option<Nanos>,
    pub own_io: Option<DiskBytes>,
    /// Bytes in the page cache, unwritten, at the start: their later writes are not others'.
    pub unwritten: u64,
    /// Time of its sessions in the run queue, and all their time except idle waits.
    pub queued: Option<[Nanos; 2]>,
    /// True if the kernel counts each byte that is fetched for the run.
    pub counts_reads: bool,
    /// Bytes requested by its reads.
    pub asked_read: Option<u64>,
    /// Share of the time in which other clients of the run's server worked, with the counts.
    pub clients: Option<(f64, String)>,
    /// Highest measured rate as a share of the device's, with its name.
    pub above: Option<(f64, String)>,
}

impl Stretch {
    /// Returns the difference of two readings of this process.
    pub fn between(watched: &Watched, earlier: &MachineCounters, later: &MachineCounters) -> Stretch {
        let quota = |quota: &CpuQuota| {
            let then = earlier.quotas.iter().find(|then| then.group == quota.group)?;
            Some(quota.since(then))
        };
        let stalled = later.stalled.zip(earlier.stalled);
        let grown = |later: &Option<Vec<DiskStats>>, earlier: &Option<Vec<DiskStats>>| {
            Some(DiskBytes::grown(later.as_ref()?, earlier.as_ref()?))
        };
        let own_io = later.process_io.zip(earlier.process_io);
        let written_before = earlier.process_io.map_or(0, |io| io.write_bytes.0);
        Stretch {
            elapsed: later.at.saturating_sub(earlier.at),
            cpu: later.cpu.zip(earlier.cpu).map(|(later, earlier)| later.since(&earlier, None, None)),
            disks: grown(&later.disks, &earlier.disks),
            beneath: grown(&later.beneath, &earlier.beneath),
            caches: watched.caches.iter().cloned().collect(),
            quota: later.quotas.iter().filter_map(quota).max_by_key(|quota| quota.throttled),
            stalled: stalled.map(|(later, earlier)| Nanos(later.some_ns.saturating_sub(earlier.some_ns))),
            swapped: later
                .swapped
                .zip(earlier.swapped)
                .map(|(later, earlier)| Bytes(later.0.saturating_sub(earlier.0))),
            own_cpu: later
                .process
                .zip(earlier.process)
                .map(|(later, earlier): (ProcessUse, _)| Nanos(later.since(&earlier).cpu_ns)),
            own_io: own_io.map(|(later, earlier)| DiskBytes::of(&later.since(&earlier))),
            unwritten: earlier.unwritten.map_or(0, |bytes| bytes.0.min(written_before)),
            counts_reads: watched.counts_reads,
            ..Stretch::default()
        }
    }
}

/// Judges one circumstance. Returns `None` if the machine does not count it.
type Rule = fn(&Stretch) -> Option<Circumstance>;

/// Rules in the order of their findings; the last one, [`above_device`], needs their results.
const RULES: &[Rule] = &[device, processors, steal, quota, memory, clients, page_cache, cache_below];

/// Judges a stretch of time.
pub fn judge(stretch: &Stretch) -> Vec<Circumstance> {
    let mut found: Vec<Circumstance> = RULES.iter().filter_map(|rule| rule(stretch)).collect();
    found.extend(above_device(stretch, &found));
    found
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        low if (0.05..10.0).contains(&low) => format!("{low:.1}%"),
        other => format!("{other:.0}%"),
    }
}

/// Judges bytes of others at the devices, in the direction with more of them.
fn device(stretch: &Stretch) -> Option<Circumstance> {
    let (all, own) = (stretch.disks?, stretch.own_io?);
    let reads = ("reads", all.read.saturating_sub(own.read), all.read);
    let writes = ("writes", all.written.saturating_sub(own.written + stretch.unwritten), all.written);
    let (what, others, whole) = if writes.1 >= reads.1 { writes } else { reads };
    let figure = share(others, whole);
    let much =
        others >= DEVICE_BYTES && others as f64 / stretch.elapsed.seconds().max(1e-9) >= DEVICE_BYTES_PER_S;
    Some(Circumstance {
        fact: Fact::Device,
        share: figure,
        threshold: DEVICE_SHARE,
        doubtful: figure >= DEVICE_SHARE && much && own.total() > 0,
        evidence: format!("{} of its {what}, {} of {}", percent(figure), Bytes(others), Bytes(whole)),
    })
}

/// Judges CPU time of others while the run waited for a processor, or none was idle.
fn processors(stretch: &Stretch) -> Option<Circumstance> {
    let (cpu, own) = (stretch.cpu.as_ref()?, stretch.own_cpu?);
    let busy = cpu.user_ns + cpu.system_ns;
    let others = busy.saturating_sub(own.0);
    let figure = share(others, cpu.total_ns());
    let (queue, queued) = stretch.queued.map_or((0.0, 0), |[queued, of]| (share(queued.0, of.0), queued.0));
    let waited = figure >= CPU_SHARE && queue >= QUEUE_SHARE && queued >= WAITED.0;
    let idle = share(cpu.idle_ns + cpu.iowait_ns, cpu.total_ns());
    let full = figure >= CPU_SHARE_OF_FULL && idle <= IDLE_SHARE_OF_FULL;
    let in_queue = stretch.queued.map_or(String::new(), |[queued, of]| {
        format!("{:.2} s of {:.2} s in the run queue, ", queued.seconds(), of.seconds())
    });
    Some(Circumstance {
        fact: Fact::Processors,
        share: figure,
        threshold: CPU_SHARE,
        doubtful: others >= CPU_TIME.0 && (waited || full),
        evidence: format!(
            "{in_queue}{} of the host's CPU time, of which {} was ours",
            percent(share(busy, cpu.total_ns())),
            percent(share(own.0.min(busy), busy))
        ),
    })
}

fn steal(stretch: &Stretch) -> Option<Circumstance> {
    let cpu = stretch.cpu.as_ref()?;
    let figure = share(cpu.steal_ns, cpu.total_ns());
    Some(Circumstance {
        fact: Fact::Steal,
        share: figure,
        threshold: STEAL_SHARE,
        doubtful: figure >= STEAL_SHARE,
        evidence: format!("{} of the host's CPU time was stolen", percent(figure)),
    })
}

fn quota(stretch: &Stretch) -> Option<Circumstance> {
    let quota = stretch.quota.as_ref()?;
    let figure = share(quota.throttled, quota.periods);
    Some(Circumstance {
        fact: Fact::Quota,
        share: figure,
        threshold: THROTTLED_SHARE,
        doubtful: quota.throttled > 0 && figure >= THROTTLED_SHARE,
        evidence: format!(
            "CPU quota {} CPUs: throttled in {} of {} periods, {:.2} s",
            quota.cpus,
            quota.throttled,
            quota.periods,
            quota.throttled_time.seconds()
        ),
    })
}

fn memory(stretch: &Stretch) -> Option<Circumstance> {
    if stretch.stalled.is_none() && stretch.swapped.is_none() {
        return None;
    }
    let stalled = stretch.stalled.unwrap_or_default();
    let swapped = stretch.swapped.unwrap_or_default();
    let figure = share(stalled.0, stretch.elapsed.0);
    Some(Circumstance {
        fact: Fact::Memory,
        share: figure,
        threshold: STALLED_SHARE,
        doubtful: (figure >= STALLED_SHARE && stalled >= WAITED) || swapped.0 >= SWAPPED,
        evidence: format!(
            "tasks waited for memory in {:.2} s of {:.2} s{}",
            stalled.seconds(),
            stretch.elapsed.seconds(),
            if swapped.0 > 0 { format!("; {swapped} were swapped") } else { String::new() }
        ),
    })
}

fn clients(stretch: &Stretch) -> Option<Circumstance> {
    let (share, evidence) = stretch.clients.clone()?;
    let (fact, threshold) = (Fact::Clients, CLIENTS_SHARE);
    Some(Circumstance { fact, share, threshold, doubtful: share >= threshold, evidence })
}

fn page_cache(stretch: &Stretch) -> Option<Circumstance> {
    let asked = stretch.asked_read.filter(|_| stretch.counts_reads)?;
    let fetched = stretch.own_io?.read;
    let figure = share(asked.saturating_sub(fetched), asked);
    Some(Circumstance {
        fact: Fact::PageCache,
        share: figure,
        threshold: CACHED_SHARE,
        doubtful: asked >= READ_BYTES && figure >= CACHED_SHARE,
        evidence: format!(
            "{} of the bytes read: {} were asked for and {} fetched from a device",
            percent(figure),
            Bytes(asked),
            Bytes(fetched.min(asked))
        ),
    })
}

/// A layer that may cache is enough: its answers show only if the disk below counts requests.
fn cache_below(stretch: &Stretch) -> Option<Circumstance> {
    if stretch.caches.is_empty() {
        return None;
    }
    let own = stretch.own_io.unwrap_or_default();
    let below = stretch.beneath.unwrap_or_default();
    let seen =
        |below: u64| format!("; {} of the {} read came from the disk below", Bytes(below), Bytes(own.read));
    Some(Circumstance {
        fact: Fact::CacheBelow,
        share: 1.0 - share(below.read.min(own.read), own.read),
        threshold: 0.0,
        doubtful: own.total() > 0,
        evidence: stretch.caches.join("; ")
            + &stretch.beneath.map_or(String::new(), |below| seen(below.read.min(own.read))),
    })
}

/// Judges a rate above the measured one; the bound is higher for bytes that the device did give.
fn above_device(stretch: &Stretch, found: &[Circumstance]) -> Option<Circumstance> {
    let (figure, what) = stretch.above.as_ref()?;
    let cache = found.iter().find(|found| found.fact == Fact::PageCache);
    let cached = cache.is_none_or(|cache| cache.share >= 1.0 - 0.95);
    let threshold = if cached { ABOVE } else { ABOVE_OF_DEVICE };
    Some(Circumstance {
        fact: Fact::AboveDevice,
        share: *figure,
        threshold,
        doubtful: *figure >= threshold,
        evidence: format!("{what}: {:.0}% of the most that it gave", 100.0 * figure),
    })
}

#[cfg(test)]
mod tests;
