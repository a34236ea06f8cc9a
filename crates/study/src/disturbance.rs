//! Whether a run had the machine and the device to itself: readings around it, and the rules that
//! judge them.
//!
//! ```text
//! MachineCounters ──> work ──> MachineCounters       Stretch: counters of the whole machine, and what of them was the run's
//! Stretch ──[RULES]──> Circumstance ──> findings and headline of a run, disturbed blocks of a study
//! ```
//!
//! The kernel counts for all processes at the device, for all tasks on the processors, for the
//! control group at its quota. What is not ours of these was others'. A rule wants a share and an
//! amount: of a run of milliseconds the counters' steps (ticks of 10 ms, a journal commit) are most
//! of any share.
//!
//! Limits: bytes tell, requests do not (the block layer splits and merges), so a neighbour that
//! only syncs is not seen. CPU time of interrupts counts as others'.

use crate::machine::{CpuTimes, MemoryStall};
use plumb_events::clock;
use plumb_host::device::{DeviceDescription, is_memory_file_system};
use plumb_host::limits::{self, CpuQuota};
use plumb_host::readings::{DiskStats, ProcessIo, ProcessUse};
use plumb_record::{Circumstance, Fact, HostCpu};
use plumb_units::{Bytes, Nanos};
use std::collections::BTreeSet;

/// The share of the device's bytes that others may have moved.
const DEVICE_SHARE: f64 = 0.10;
/// Others moved something from these bytes, and these bytes a second, on.
const DEVICE_BYTES: u64 = 4 << 20;
const DEVICE_BYTES_PER_S: f64 = (1 << 20) as f64;
/// The share of the host's CPU time that others may have had while the run waited for a processor,
const CPU_SHARE: f64 = 0.10;
/// waited being this share of its time.
const QUEUE_SHARE: f64 = 0.05;
/// The same while hardly a processor was idle, whether or not the run's waits show it.
const CPU_SHARE_OF_FULL: f64 = 0.25;
const IDLE_SHARE_OF_FULL: f64 = 0.10;
/// CPU time of others that is more than some ticks of the clock.
const CPU_TIME: Nanos = Nanos(50_000_000);
/// Time in the run queue, or waiting for memory, that is more than a switch of threads.
const WAITED: Nanos = Nanos(10_000_000);
/// The share of CPU time that the hypervisor may have taken.
const STEAL_SHARE: f64 = 0.05;
/// The share of a quota's periods that may have been cut short.
const THROTTLED_SHARE: f64 = 0.05;
/// The share of the time in which tasks may have waited for memory.
const STALLED_SHARE: f64 = 0.05;
/// Bytes that were swapped when memory was short.
const SWAPPED: u64 = 4 << 20;
/// The share of bytes read that the page cache may have answered.
const CACHED_SHARE: f64 = 0.5;
/// With fewer bytes read the program's own files are too large a part of the count.
const READ_BYTES: u64 = 16 << 20;
/// What a device may be faster than when it was measured.
const ABOVE: f64 = 1.1;
/// The same of a run whose bytes came from the device: more may have been in flight than when it
/// was measured.
const ABOVE_OF_DEVICE: f64 = 1.5;

/// The counters of the machine at one moment.
#[derive(Debug, Clone)]
pub struct MachineCounters {
    at: Nanos,
    cpu: Option<CpuTimes>,
    /// Of each device that is named; none where one cannot be read.
    disks: Option<Vec<DiskStats>>,
    /// Of the disks below a layer that caches; likewise.
    beneath: Option<Vec<DiskStats>>,
    quotas: Vec<CpuQuota>,
    stalled: Option<MemoryStall>,
    swapped: Option<Bytes>,
    unwritten: Option<Bytes>,
    process_io: Option<ProcessIo>,
    process: Option<ProcessUse>,
}

/// The block devices whose counters tell of others.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The disk of a partition, since others may use its other partitions; else the device of the
    /// file system.
    disks: BTreeSet<String>,
    /// The disks below layers that cache.
    beneath: BTreeSet<String>,
    /// These layers, a sentence each.
    caches: BTreeSet<String>,
    /// True if all that is read is fetched from a device that counts it, or is in memory.
    counts_reads: bool,
}

impl MachineCounters {
    /// Bytes in the page cache that were to be written then, by whomever.
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

    /// The devices with these names, of which nothing more is known.
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

/// Bytes that were read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskBytes {
    pub read: u64,
    pub written: u64,
}

impl DiskBytes {
    /// What a process caused at devices.
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

/// What the machine did in a stretch of time, and what of it was the run's. What is not known is
/// `None`, never zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretch {
    // The machine.
    pub elapsed: Nanos,
    pub cpu: Option<HostCpu>,
    pub disks: Option<DiskBytes>,
    pub beneath: Option<DiskBytes>,
    pub caches: Vec<String>,
    /// The quota that stopped the run most often.
    pub quota: Option<CpuQuota>,
    pub stalled: Option<Nanos>,
    pub swapped: Option<Bytes>,

    // The run.
    pub own_cpu: Option<Nanos>,
    pub own_io: Option<DiskBytes>,
    /// Its bytes that were in the page cache and unwritten when it began: their writes are its own.
    pub unwritten: u64,
    /// Time that its sessions were ready to run without a processor, and all their time but idle
    /// waits.
    pub queued: Option<[Nanos; 2]>,
    /// True if the kernel counts each byte that is fetched for it.
    pub counts_reads: bool,
    /// Bytes that it asked for by reads.
    pub asked_read: Option<u64>,
    /// What was reached of the device's rate at its highest, and of which.
    pub above: Option<(f64, String)>,
}

impl Stretch {
    /// What lay between two moments of this process.
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
                .map(|(later, earlier): (ProcessUse, _)| later.since(&earlier).cpu),
            own_io: own_io.map(|(later, earlier)| DiskBytes::of(&later.since(&earlier))),
            unwritten: earlier.unwritten.map_or(0, |bytes| bytes.0.min(written_before)),
            counts_reads: watched.counts_reads,
            ..Stretch::default()
        }
    }
}

/// A rule; `None` where its counters are not known.
type Rule = fn(&Stretch) -> Option<Circumstance>;

/// The rules in the order of their findings; the last one, [`above_device`], needs theirs.
const RULES: &[Rule] = &[device, processors, steal, quota, memory, page_cache, cache_below];

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

/// Bytes of others at the devices, in the direction that has more of them.
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

/// CPU time of others, where the run waited for a processor or none was idle.
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

/// A layer that may answer is enough: what it answered is seen as far as the disk below counts it.
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

/// A rate that the device did not show when it was measured; of bytes that it did give, more.
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
