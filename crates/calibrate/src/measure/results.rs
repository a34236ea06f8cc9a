//! All repeats of one task, and estimates from them.

use super::{Estimate, Measurement, Repeat, Traffic};
use crate::plan::{DurablePoint, Point, Task};
use plumb_events::LatencyHistogram;
use plumb_io::DirectIo;
use plumb_units::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest interval of a settled figure, as a share of its median.
pub(crate) const SETTLED_LIMIT: f64 = 0.10;

/// All repeats of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    pub task: Task,
    /// Repeats in the order they ran.
    pub repeats: Vec<Repeat>,
    /// Source of the answers: the device or a cache.
    #[serde(alias = "verdict")]
    pub answer: Answer,
}

/// Source of a task's answers: the device or a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    Device,
    /// The page cache of this machine.
    PageCache,
    /// A cache of the host or a controller, suspected because of its speed.
    HostCacheSuspected,
    /// A layer between file system and disk that may answer without the disk. Examples: a loop
    /// device over the page cache, a cache on another device, memory.
    CacheBelow,
    #[default]
    Unknown,
}

impl AnswerSource {
    pub const fn name(self) -> &'static str {
        match self {
            AnswerSource::Device => "device",
            AnswerSource::PageCache => "page cache",
            AnswerSource::HostCacheSuspected => "host cache suspected",
            AnswerSource::CacheBelow => "cache below",
            AnswerSource::Unknown => "unknown",
        }
    }
}

/// Source of a task's answers, with the evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub source: AnswerSource,
    /// The evidence, in one line.
    pub reason: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source.name(), self.reason)
    }
}

impl TaskResult {
    pub(crate) fn new(task: Task) -> TaskResult {
        TaskResult { task, repeats: Vec::new(), answer: Answer::default() }
    }

    pub fn point(&self) -> Option<&Point> {
        if let Task::Point(point) = &self.task { Some(point) } else { None }
    }

    pub fn durable(&self) -> Option<&DurablePoint> {
        if let Task::Durable(point) = &self.task { Some(point) } else { None }
    }

    /// Required if the task bypasses the page cache.
    pub fn direct_io(&self) -> DirectIo {
        match &self.task {
            Task::Point(point) => point.direct_io,
            Task::Durable(point) => point.direct_io,
        }
    }

    pub fn request_bytes(&self, load: usize) -> u64 {
        match &self.task {
            Task::Point(point) => point.loads.get(load).map_or(0, |load| load.request_bytes),
            Task::Durable(point) => point.request_bytes,
        }
    }

    /// Requests of a load per second.
    pub fn iops(&self, load: usize) -> Option<Estimate> {
        self.estimate(|measurement| Some(measurement.iops(load)))
    }

    pub fn mb_per_second(&self, load: usize) -> Option<Estimate> {
        let bytes = self.request_bytes(load);
        self.estimate(|measurement| Some(measurement.mb_per_second(load, bytes)))
    }

    /// A quantile of a load's latency, in microseconds.
    pub fn latency_micros(&self, load: usize, quantile: f64) -> Option<Estimate> {
        self.estimate_latency(load, |latency| latency.quantile(quantile))
    }

    /// Mean latency of a load, in microseconds.
    pub fn mean_micros(&self, load: usize) -> Option<Estimate> {
        self.estimate_latency(load, LatencyHistogram::mean)
    }

    /// Processor time per request, microseconds.
    pub fn cpu_micros(&self) -> Option<Estimate> {
        self.estimate(Measurement::cpu_micros)
    }

    /// Processor cycles per request, if something counts them.
    pub fn cycles(&self) -> Option<Estimate> {
        self.estimate(Measurement::cycles_a_request)
    }

    /// Bytes requested and bytes that the device moved, in all repeats;
    /// `None` without the device's statistics.
    pub fn bytes(&self) -> (u64, Option<u64>) {
        let sum = |traffic: Traffic| traffic.read_bytes + traffic.write_bytes;
        let evidence = || self.repeats.iter().map(|repeat| repeat.measurement.evidence);
        (evidence().map(|seen| sum(seen.asked)).sum(), evidence().map(|seen| seen.device.map(sum)).sum())
    }

    /// All latencies of a load, merged.
    pub fn latency(&self, load: usize) -> LatencyHistogram {
        let mut all = LatencyHistogram::default();
        for repeat in &self.repeats {
            if let Some(load) = repeat.measurement.loads.get(load) {
                all.merge(&load.latency);
            }
        }
        all
    }

    /// True if the rates of all loads have settled.
    pub fn settled(&self) -> bool {
        let loads = self.point().map_or(1, |point| point.loads.len());
        (0..loads).all(|load| self.iops(load).is_some_and(|estimate| estimate.settled))
    }

    /// Highest rate of other processes during any repeat.
    pub fn other_rate(&self) -> Option<Rate> {
        let rates = self.repeats.iter().filter_map(|repeat| repeat.measurement.evidence.other_rate());
        rates.reduce(|left, right| if right > left { right } else { left })
    }

    /// Number of repeats with another load on the device.
    fn disturbed_repeats(&self) -> usize {
        // Buffered requests are read ahead and written later, which looks like another load.
        let disturbed = |repeat: &&Repeat| repeat.measurement.evidence.other_rate().is_some();
        if self.direct_io() == DirectIo::Required { self.repeats.iter().filter(disturbed).count() } else { 0 }
    }

    /// Estimates a figure of the repeats. If another load disturbed at least half of them, the
    /// median may mix both, so it counts as unsettled.
    pub fn estimate(&self, figure: impl Fn(&Measurement) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.repeats.iter().filter_map(|repeat| figure(&repeat.measurement)).collect();
        let mut estimate = Estimate::of(&values, SETTLED_LIMIT)?;
        let disturbed = self.disturbed_repeats();
        match &mut estimate.reason {
            Some(reason) if disturbed > 0 => {
                reason.push_str(&format!(", with another load during {disturbed} of them"));
            }
            None if 2 * disturbed >= estimate.repeats && disturbed > 0 => {
                let repeats = estimate.repeats;
                estimate.reason =
                    Some(format!("another load used the device during {disturbed} of {repeats} repeats"));
                estimate.settled = false;
            }
            _ => {}
        }
        Some(estimate)
    }

    fn estimate_latency(&self, load: usize, figure: impl Fn(&LatencyHistogram) -> Nanos) -> Option<Estimate> {
        self.estimate(|measurement| {
            let latency = &measurement.loads.get(load)?.latency;
            (latency.count() > 0).then(|| figure(latency).micros())
        })
    }
}

/// Finds a measured point among results.
pub(crate) fn find<'a>(results: &'a [TaskResult], wanted: &Point) -> Option<&'a TaskResult> {
    results.iter().find(|result| result.point() == Some(wanted) && !result.repeats.is_empty())
}
