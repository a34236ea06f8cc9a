//! Facts about the machine for the head of a report.
//!
//! A file that cannot be read leaves a fact out, or `unknown` where the report needs a word.

use plumb_events::clock;
use plumb_host::limits;
use plumb_record::calendar::Moment;
use plumb_record::{Build, Header, Host, HostCpu};
use std::fs;
use std::time::Duration;

/// `USER_HZ`: the unit of /proc/stat, 100 on every architecture that Linux runs on today.
const NANOS_PER_TICK: u64 = 10_000_000;

/// Returns the head of a record by this program on this machine, between two times of day. It has
/// no DB time, command, seed or settings; a caller that has them fills them in.
pub fn header(title: String, workload: &str, [begin, end]: [Duration; 2]) -> Header {
    let build = Build::this();
    Header {
        title,
        workload: workload.to_string(),
        plumb_version: build.version.to_string(),
        git_revision: build.revision.map(str::to_string),
        profile: build.profile(),
        host: describe(),
        begin_time: Moment::of(begin).iso(),
        end_time: Moment::of(end).iso(),
        elapsed_ns: u64::try_from(end.saturating_sub(begin).as_nanos()).unwrap_or(u64::MAX),
        db_time_ns: None,
        db_cpu_ns: None,
        command_line: String::new(),
        seed: None,
        settings_hash: String::new(),
        clock_source: clock_source(),
        clock_precision_ns: None,
    }
}

pub fn describe() -> Host {
    let word = |path: &str| text(path).unwrap_or_else(|| "unknown".to_string());
    Host {
        name: word("/proc/sys/kernel/hostname"),
        cpus: Some(
            std::thread::available_parallelism()
                .map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        ),
        cpu_quota: limits::cpu_quotas().iter().map(|quota| quota.cpus).reduce(f64::min),
        cpu_model: cpu_model().unwrap_or_else(|| "unknown".to_string()),
        memory_bytes: limits::memory().map(|memory| memory.total.0),
        kernel: format!("Linux {} {}", word("/proc/sys/kernel/osrelease"), std::env::consts::ARCH),
    }
}

/// Returns the clock that times are read from, with the kernel's name of its source.
pub fn clock_source() -> Option<String> {
    let source = text("/sys/devices/system/clocksource/clocksource0/current_clocksource")?;
    Some(format!("CLOCK_MONOTONIC ({source})"))
}

/// Returns the smallest step of the clock in 4,096 readings.
pub fn clock_precision_ns() -> Option<u64> {
    let mut before = clock::now();
    let mut least = None;
    for _ in 0..4_096 {
        let now = clock::now();
        let step = now.saturating_sub(before).0;
        if step > 0 && least.is_none_or(|least| step < least) {
            least = Some(step);
        }
        before = now;
    }
    least
}

/// Returns the load average over one minute.
pub fn load_average() -> Option<f64> {
    text("/proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

/// CPU time of the whole host since it started.
#[derive(Debug, Clone, Copy)]
pub struct CpuTimes {
    user: u64,
    system: u64,
    iowait: u64,
    steal: u64,
    idle: u64,
}

impl CpuTimes {
    /// Reads the first line of /proc/stat.
    pub fn read() -> Option<CpuTimes> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0).saturating_mul(NANOS_PER_TICK);
        Some(CpuTimes {
            user: at(0) + at(1),
            system: at(2) + at(5) + at(6),
            idle: at(3),
            iowait: at(4),
            steal: at(7),
        })
    }

    /// Returns the time added since an earlier reading.
    pub fn since(&self, earlier: &CpuTimes, load_begin: Option<f64>, load_end: Option<f64>) -> HostCpu {
        HostCpu {
            user_ns: self.user.saturating_sub(earlier.user),
            system_ns: self.system.saturating_sub(earlier.system),
            // proc(5): this counter may decrease.
            iowait_ns: self.iowait.saturating_sub(earlier.iowait),
            steal_ns: self.steal.saturating_sub(earlier.steal),
            idle_ns: self.idle.saturating_sub(earlier.idle),
            load_begin,
            load_end,
        }
    }
}

/// Time in which tasks waited for memory since the host started, from /proc/pressure/memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStall {
    pub some_ns: u64,
    /// Time in which all non-idle tasks waited, nanoseconds.
    pub full_ns: u64,
}

impl MemoryStall {
    /// Reads the file; `None` if the kernel does not provide it.
    pub fn read() -> Option<MemoryStall> {
        MemoryStall::parse(&fs::read_to_string("/proc/pressure/memory").ok()?)
    }

    /// Reads the pressure of this process's control group, or of the machine if the kernel
    /// has none for the group.
    pub fn read_own() -> Option<MemoryStall> {
        limits::memory_pressure().and_then(|text| MemoryStall::parse(&text)).or_else(MemoryStall::read)
    }

    fn parse(text: &str) -> Option<MemoryStall> {
        let total = |kind: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
            let micros: u64 = line.rsplit_once("total=")?.1.trim().parse().ok()?;
            Some(micros.saturating_mul(1_000))
        };
        Some(MemoryStall { some_ns: total("some ")?, full_ns: total("full ")? })
    }
}

fn cpu_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_pressure_are_the_totals_of_their_lines() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7331\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=42\n";
        assert_eq!(MemoryStall::parse(text), Some(MemoryStall { some_ns: 7_331_000, full_ns: 42_000 }));
        assert_eq!(MemoryStall::parse("some avg10=0.00"), None);
    }
}
