//! Determines if a cache or the device answered each task.
//!
//! ```text
//! page cache             fewer bytes came from a device than were read
//! cache below            the device is a layer that may answer without the disk below it
//! host cache suspected   the part of the file that is read most is faster than the rest,
//!                        a second pass is faster than the first,
//!                        writes return much faster than reads of the same kind,
//!                        a sync costs nothing or no flush reached the disk
//! device                 none of these
//! ```
//!
//! Limits: the first is a measurement, the others are suspicions. A disk as fast as a cache is
//! suspected. A layer that caches is reported even if the disk below it answered. A cache that
//! holds the whole file from the start shows no difference, and nothing inside the machine can
//! detect it.

use crate::measure::{Traffic, find};
use crate::{
    Answer, AnswerSource, DeviceEvidence, DurableMethod, DurablePoint, LogSpace, Pattern, Point, Task,
    TaskResult,
};
use plumb_host::device::{DeviceDescription, WriteCache};
use plumb_io::DirectIo;
use plumb_units::Nanos;

/// Share of bytes from the device below which the page cache answered the rest.
const DEVICE_SHARE_MIN: f64 = 0.95;
/// Ratio of rates from which on a second pass or a hot zone counts as faster.
const FASTER: f64 = 1.25;
/// Ratio of rates from which on a cache absorbs writes, compared with reads.
const ABSORBED: f64 = 1.5;
/// Cost below which a sync did not reach a device: a command and its interrupt alone take longer.
const SYNC_MIN_MICROS: f64 = 5.0;

fn answered(source: AnswerSource, reason: impl Into<String>) -> Answer {
    Answer { source, reason: reason.into() }
}

/// Determines the source of each task's answers.
pub(crate) fn judge(results: &mut [TaskResult], device: &DeviceDescription) {
    let cache = device.block.as_ref().and_then(|block| block.queue.write_cache);
    let caches = device.block.as_ref().map_or(&[][..], |block| &block.caches);
    let answers: Vec<Answer> = results
        .iter()
        .map(|result| match &result.task {
            Task::Point(point) => judge_point(results, result, point).unless_cached(caches),
            Task::Durable(point) => judge_durable(results, result, *point, cache),
        })
        .collect();
    for (result, answer) in results.iter_mut().zip(answers) {
        result.answer = answer;
    }
}

impl Answer {
    /// Replaces the answer if a layer caches: its counters say nothing about the disk below it.
    fn unless_cached(self, caches: &[String]) -> Answer {
        match (self.source, caches) {
            (AnswerSource::Device | AnswerSource::HostCacheSuspected, [_, ..]) => {
                answered(AnswerSource::CacheBelow, caches.join("; "))
            }
            _ => self,
        }
    }
}

fn judge_point(results: &[TaskResult], result: &TaskResult, point: &Point) -> Answer {
    let Some(moved) = Moved::by(result) else {
        return answered(AnswerSource::Unknown, "no statistics of a block device name it");
    };
    let reads = result.repeats.iter().any(|repeat| repeat.measurement.evidence.asked.read_bytes > 0);
    if let Some(share) = moved.read_share.filter(|share| *share < DEVICE_SHARE_MIN) {
        let reason = format!("{:.0}% of the bytes read came from a device", share * 1e2);
        return answered(AnswerSource::PageCache, reason);
    }
    if let Some(share) = moved.write_share.filter(|share| *share < DEVICE_SHARE_MIN) {
        let reason = format!("{:.0}% of the bytes written had reached the device", share * 1e2);
        return answered(AnswerSource::PageCache, reason);
    }
    let suspicion = hot_zone(results, result, point)
        .or_else(|| second_pass(result, point))
        .or_else(|| absorbed(results, result, point));
    match suspicion {
        Some(reason) => answered(AnswerSource::HostCacheSuspected, reason),
        None if reads => answered(AnswerSource::Device, "every byte read came from a device"),
        None => answered(AnswerSource::Device, "the device moved at least as many bytes as were written"),
    }
}

/// Bytes at the device as a share of bytes requested, over all repeats.
struct Moved {
    read_share: Option<f64>,
    write_share: Option<f64>,
}

impl Moved {
    fn by(result: &TaskResult) -> Option<Moved> {
        let mut total = DeviceEvidence {
            device: Some(Traffic::default()),
            caused_read_bytes: Some(0),
            ..DeviceEvidence::default()
        };
        for repeat in &result.repeats {
            let evidence = &repeat.measurement.evidence;
            total.asked.add(&evidence.asked);
            total.device.as_mut()?.add(&evidence.device?);
            total.caused_read_bytes =
                total.caused_read_bytes.zip(evidence.caused_read_bytes).map(|(a, b)| a + b);
        }
        (!result.repeats.is_empty())
            .then(|| Moved { read_share: total.read_share(), write_share: total.write_share() })
    }
}

impl TaskResult {
    /// Share of the requested bytes that a device moved, of reads if there were any, otherwise of
    /// writes. `None` if nothing counts them.
    pub fn device_share(&self) -> Option<f64> {
        let moved = Moved::by(self)?;
        moved.read_share.or(moved.write_share)
    }
}

/// Reports a small part of the file that is faster than the whole.
fn hot_zone(results: &[TaskResult], result: &TaskResult, point: &Point) -> Option<String> {
    let mut whole = point.clone();
    whole.loads.first_mut()?.zone_bytes.take()?;
    let (hot, cold) = (result.iops(0)?, find(results, &whole)?.iops(0)?);
    let ratio = hot.median / cold.median;
    (ratio > FASTER && hot.low > cold.high)
        .then(|| format!("a small part of the file is {ratio:.1} times as fast as the whole"))
}

/// Reports repeats of a sequential read that are faster than the first, which reads the same bytes.
fn second_pass(result: &TaskResult, point: &Point) -> Option<String> {
    let load = point.single()?;
    if load.pattern != Pattern::Sequential || load.write_percent > 0 {
        return None;
    }
    // Another load may have slowed the first pass.
    if result.repeats.first()?.measurement.evidence.other_rate().is_some() {
        return None;
    }
    let rates: Vec<f64> = result.repeats.iter().map(|repeat| repeat.measurement.iops(0)).collect();
    let (first, later) = rates.split_first()?;
    let slowest = later.iter().copied().reduce(f64::min)?;
    let ratio = slowest / first;
    (ratio > FASTER).then(|| format!("the second pass was {ratio:.1} times as fast as the first"))
}

/// Reports writes that are faster than reads of the same kind.
fn absorbed(results: &[TaskResult], result: &TaskResult, point: &Point) -> Option<String> {
    let mut mirrored = point.clone();
    for load in &mut mirrored.loads {
        if std::mem::take(&mut load.write_percent) != 100 {
            return None;
        }
    }
    let (writes, reads) = (result.iops(0)?, find(results, &mirrored)?.iops(0)?);
    let ratio = writes.median / reads.median;
    (ratio > ABSORBED && writes.low > reads.high)
        .then(|| format!("writes are {ratio:.1} times as fast as the same reads: a cache takes them"))
}

fn judge_durable(
    results: &[TaskResult],
    result: &TaskResult,
    point: DurablePoint,
    cache: Option<WriteCache>,
) -> Answer {
    if point.method == DurableMethod::None {
        return match point.direct_io {
            DirectIo::Off => answered(AnswerSource::PageCache, "nothing asked for more than the page cache"),
            DirectIo::Required => {
                answered(AnswerSource::Unknown, "without a sync a write may end in any cache")
            }
        };
    }
    let Some(sync) = SyncCost::of(results, result, point) else {
        return answered(AnswerSource::Unknown, "the same write without a sync was not measured");
    };
    if sync.flush_share.is_some_and(|share| share < 0.5) && cache == Some(WriteCache::WriteBack) {
        return answered(
            AnswerSource::HostCacheSuspected,
            "the disk has a write cache, and hardly a flush reached it",
        );
    }
    if sync.micros < SYNC_MIN_MICROS {
        let reason =
            format!("a sync costs {:.1} us: a flush that costs nothing does not flush", sync.micros.max(0.0));
        return answered(AnswerSource::HostCacheSuspected, reason);
    }
    answered(AnswerSource::Device, format!("a sync costs {}", Nanos((sync.micros * 1e3) as u64)))
}

/// Time that a sync adds to a write.
struct SyncCost {
    durable_micros: f64,
    micros: f64,
    flush_share: Option<f64>,
}

impl SyncCost {
    fn of(results: &[TaskResult], result: &TaskResult, point: DurablePoint) -> Option<SyncCost> {
        let plain = DurablePoint { method: DurableMethod::None, space: LogSpace::Zeroed, ..point };
        let plain = results.iter().find(|other| other.durable() == Some(&plain))?;
        let durable_micros = result.latency_micros(0, 0.5)?.median;
        let micros = durable_micros - plain.latency_micros(0, 0.5)?.median;
        let evidence = || result.repeats.iter().map(|repeat| repeat.measurement.evidence);
        let syncs: u64 = evidence().map(|evidence| evidence.syncs).sum();
        let flushes: Option<u64> = evidence().map(|evidence| evidence.flushes).sum();
        let flush_share = flushes.map(|flushes| flushes as f64 / syncs.max(1) as f64);
        Some(SyncCost { durable_micros, micros, flush_share })
    }
}

/// Judges in one line if a durable write was really durable; `None` without durable writes.
pub(crate) fn plausibility(results: &[TaskResult], device: &DeviceDescription) -> Option<String> {
    let (result, point) = results.iter().find_map(|result| {
        let point = result.durable()?;
        let usual = point.method == DurableMethod::Fdatasync && point.space == LogSpace::Zeroed;
        (usual && point.request_bytes == 4096).then_some((result, *point))
    })?;
    let sync = SyncCost::of(results, result, point)?;
    let whole = Nanos((sync.durable_micros * 1e3) as u64);
    let part = Nanos((sync.micros.max(0.0) * 1e3) as u64);
    let kind = match sync.micros {
        micros if micros < SYNC_MIN_MICROS => "nothing flushes for nothing: these writes are not durable",
        micros if micros < 60.0 => {
            "possible only where the cache is safe (capacitors, battery) or does not count"
        }
        micros if micros < 300.0 => "fast for flash without capacitors, slow for a safe cache",
        micros if micros < 4000.0 => "what flash without capacitors takes",
        _ => "what a disk that rotates takes, or a busy one",
    };
    let flushes = match sync.flush_share {
        Some(share) => format!("; {share:.2} flushes a sync reached the disk"),
        None => String::new(),
    };
    let unsettled = match result.latency_micros(0, 0.5)?.reason {
        Some(reason) => format!("; it has not settled: {reason}"),
        None => String::new(),
    };
    let host = if device.virtualization.disk {
        "; the disk is virtual: what its host keeps is not seen here"
    } else {
        ""
    };
    Some(format!("{point} takes {whole}, {part} of it the sync: {kind}{flushes}{unsettled}{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{place, result};
    use crate::{Buffers, Load, Ring};
    use plumb_io::MethodKind;

    fn point(pattern: Pattern, write_percent: u8, zone_bytes: Option<u64>) -> Task {
        let load =
            Load { pattern, request_bytes: 8192, write_percent, outstanding: 1, zone_bytes, path: None };
        Task::Point(Point {
            loads: vec![load],
            threads: 1,
            method: MethodKind::IoUring,
            direct_io: DirectIo::Required,
            buffers: Buffers::Registered,
            ring: Ring::default(),
        })
    }

    fn durable(method: DurableMethod) -> Task {
        let direct_io = DirectIo::Required;
        Task::Durable(DurablePoint { method, direct_io, request_bytes: 4096, space: LogSpace::Zeroed })
    }

    /// Judges these results and checks the answer of the last.
    fn check(mut results: Vec<TaskResult>, source: AnswerSource, reason: &str) {
        judge(&mut results, &place().1);
        let found = &results.last().expect("a result").answer;
        assert_eq!((found.source, found.reason.as_str()), (source, reason));
    }

    #[test]
    fn reads_that_reached_a_device_are_the_devices() {
        let read = result(point(Pattern::Random, 0, None), &[100, 101, 99], 50);
        check(vec![read], AnswerSource::Device, "every byte read came from a device");
    }

    #[test]
    fn reads_that_no_device_saw_came_from_the_page_cache() {
        let mut read = result(point(Pattern::Random, 0, None), &[100, 101, 99], 50);
        for repeat in &mut read.repeats {
            repeat.measurement.evidence.caused_read_bytes = Some(10 * 8192);
        }
        check(vec![read], AnswerSource::PageCache, "10% of the bytes read came from a device");
    }

    #[test]
    fn a_caching_layer_is_not_the_device() {
        let mut device = place().1;
        let block = device.block.as_mut().expect("a disk");
        block.caches = vec!["loop0 reaches its file through the page cache (loop/dio is 0)".to_string()];
        let mut results = vec![result(point(Pattern::Random, 0, None), &[100, 101, 99], 50)];
        judge(&mut results, &device);
        let answer = &results[0].answer;
        assert_eq!(answer.source, AnswerSource::CacheBelow);
        assert_eq!(answer.reason, device.block.expect("a disk").caches[0]);
    }

    #[test]
    fn what_only_speed_gives_away_is_suspected() {
        let cold = || result(point(Pattern::Random, 0, None), &[100, 101, 99], 50);
        let hot = result(point(Pattern::Random, 0, Some(1 << 25)), &[300, 310, 305], 20);
        let reason = "a small part of the file is 3.0 times as fast as the whole";
        check(vec![cold(), hot], AnswerSource::HostCacheSuspected, reason);
        let write = result(point(Pattern::Random, 100, None), &[200, 205, 199], 20);
        let reason = "writes are 2.0 times as fast as the same reads: a cache takes them";
        check(vec![cold(), write], AnswerSource::HostCacheSuspected, reason);
        let again = result(point(Pattern::Sequential, 0, None), &[100, 150, 160], 50);
        let reason = "the second pass was 1.5 times as fast as the first";
        check(vec![again], AnswerSource::HostCacheSuspected, reason);
    }

    #[test]
    fn a_flush_that_costs_nothing_does_not_flush() {
        let plain = || result(durable(DurableMethod::None), &[100; 3], 20);
        let free = result(durable(DurableMethod::Fdatasync), &[100; 3], 22);
        let reason = "a sync costs 2.0 us: a flush that costs nothing does not flush";
        check(vec![plain(), free], AnswerSource::HostCacheSuspected, reason);
        let paid = result(durable(DurableMethod::Fdatasync), &[100; 3], 180);
        check(vec![plain(), paid.clone()], AnswerSource::Device, "a sync costs 160 us");
        let mut device = place().1;
        device.virtualization.disk = true;
        let line = plausibility(&[plain(), paid], &device).expect("a line");
        insta::assert_snapshot!(line);
    }
}
