//! The measurement of one repeat of one task.

use crate::DeviceEvidence;
use plumb_events::LatencyHistogram;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The requests of one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasurement {
    /// Reads that completed while it was measured.
    pub reads: u64,
    /// Writes that completed while it was measured.
    pub writes: u64,
    pub latency: LatencyHistogram,
}

impl LoadMeasurement {
    #[must_use]
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
    /// How long was measured, without the ramp before.
    pub elapsed_ns: u64,
    pub loads: Vec<LoadMeasurement>,
    /// Processor time of the process, kernel threads for its rings included, from the
    /// first request of the ramp to the last completion.
    pub cpu_ns: u64,
    /// Processor cycles of the same; `None` where nothing counts them.
    #[serde(default)]
    pub cycles: Option<u64>,
    /// What the kernel counted meanwhile.
    pub evidence: DeviceEvidence,
}

impl Measurement {
    /// Requests a second of a load.
    #[must_use]
    pub fn iops(&self, load: usize) -> f64 {
        let requests = self.loads.get(load).map_or(0, LoadMeasurement::requests);
        requests as f64 / Nanos(self.elapsed_ns).seconds().max(1e-9)
    }

    /// MB a second of a load whose requests have so many bytes.
    #[must_use]
    pub fn mb_per_second(&self, load: usize, request_bytes: u64) -> f64 {
        self.iops(load) * request_bytes as f64 / Bytes::M as f64
    }

    /// Microseconds of processor time a request; `None` of none.
    #[must_use]
    pub fn cpu_micros(&self) -> Option<f64> {
        let requests = self.evidence.asked.requests;
        (requests > 0).then(|| Nanos(self.cpu_ns).micros() / requests as f64)
    }

    /// Processor cycles a request; `None` of none, or where nothing counts them.
    #[must_use]
    pub fn cycles_a_request(&self) -> Option<f64> {
        let (requests, cycles) = (self.evidence.asked.requests, self.cycles?);
        (requests > 0).then(|| cycles as f64 / requests as f64)
    }
}

/// One repeat: its place in the calibration, and its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    pub round: usize,
    /// Its place among all repeats of all tasks, from 0.
    pub order: usize,
    /// When it began, since the calibration began.
    pub begin_ns: u64,
    pub measurement: Measurement,
}
