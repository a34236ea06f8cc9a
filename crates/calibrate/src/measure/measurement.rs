//! The measurement of one repeat of one task.

use crate::DeviceEvidence;
use plumb_events::LatencyHistogram;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Completed requests of one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasurement {
    /// Number of reads completed in the window.
    pub reads: u64,
    /// Number of writes completed in the window.
    pub writes: u64,
    /// Latency from submission to completion.
    pub latency: LatencyHistogram,
}

impl LoadMeasurement {
    pub fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    pub(crate) fn merge(&mut self, other: &LoadMeasurement) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.latency.merge(&other.latency);
    }
}

/// The measurement of one repeat of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Measured time without the ramp, nanoseconds.
    pub elapsed_ns: u64,
    /// One for each load of the task.
    pub loads: Vec<LoadMeasurement>,
    /// Processor time of the process in nanoseconds, kernel threads of its rings included. It
    /// covers the first request of the ramp to the last completion.
    pub cpu_ns: u64,
    /// Processor cycles of the same period; `None` if nothing counts them.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// Counters of the kernel for the same period.
    pub evidence: DeviceEvidence,
}

impl Measurement {
    /// Requests of a load per second.
    pub fn iops(&self, load: usize) -> f64 {
        let requests = self.loads.get(load).map_or(0, LoadMeasurement::requests);
        requests as f64 / Nanos(self.elapsed_ns).seconds().max(1e-9)
    }

    /// MB per second of a load with requests of this size.
    pub fn mb_per_second(&self, load: usize, request_bytes: u64) -> f64 {
        self.iops(load) * request_bytes as f64 / Bytes::M as f64
    }

    /// Processor microseconds per request; `None` without requests.
    pub fn cpu_micros(&self) -> Option<f64> {
        let requests = self.evidence.asked.requests;
        (requests > 0).then(|| Nanos(self.cpu_ns).micros() / requests as f64)
    }

    /// Processor cycles per request; `None` without requests or counter.
    pub fn cycles_a_request(&self) -> Option<f64> {
        let (requests, cycles) = (self.evidence.asked.requests, self.cycles?);
        (requests > 0).then(|| cycles as f64 / requests as f64)
    }
}

/// One repeat: its position in the calibration, and its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    pub round: usize,
    /// Position among all repeats of all tasks, from 0.
    pub order: usize,
    /// Start in nanoseconds from the calibration's start.
    pub begin_ns: u64,
    pub measurement: Measurement,
}
