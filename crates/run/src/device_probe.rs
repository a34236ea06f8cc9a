//! Measures the device on the run's own files before the work: its limits, and the read cost for
//! plans.
//!
//! Everything is measured before the timed part, because a study may vary settings that make the
//! engine measure.

use plumb_calibrate::Estimate;
use plumb_engine::probe::{self, Shots};
use plumb_engine::sort::area::RecordSize;
use plumb_engine::sort::plan::SortPlan;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance};
use plumb_events::{Phase, Role, clock};
use plumb_host::readings;
use plumb_io::Disk;
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};

/// Record of the probe's plan; area and buffers do not depend on it.
const RECORD: RecordSize = RecordSize { bytes: 16, entry_bytes: 0 };
/// Bytes read for the sequential rate, in parts whose rates must agree.
const SEQUENTIAL: Shots = Shots { bytes: 256 * Bytes::M, count: 6 };
/// Widest interval of these rates, as a share of their median, for which their share is stated.
const SPREAD_MAX: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Bytes per second of large reads, many in flight: the median of
    /// several parts with its interval.
    pub sequential_read: Estimate,
    /// Nanoseconds of one random read of a block with nothing else in flight.
    pub block_read_ns: u64,
}

/// Measures the device under a tablespace with reads of its own files; `None` for files in memory.
pub fn calibrate(instance: &Instance, purpose: Purpose) -> Result<Option<Calibrated>, EngineError> {
    if matches!(instance.access.disk, Disk::Memory(_)) {
        return Ok(None);
    }
    make_cold(instance);
    let begin = clock::now();
    let session = instance.recorder.session(Role::DeviceProbe);
    let rates = probe::sequential_reads(instance, &session, purpose, SEQUENTIAL)?;
    let cost = probe::measure(instance, &session, purpose)?;
    instance.recorder.phase(Phase::DeviceProbe, begin, 0);
    let block_read_ns = (cost.block_read_seconds * 1e9) as u64;
    let estimate = Estimate::of(&rates, SPREAD_MAX);
    Ok(estimate.map(|sequential_read| Calibrated { sequential_read, block_read_ns }))
}

/// Returns the plan of a sort with an instance's settings.
pub fn plan(instance: &Instance) -> Result<SortPlan, EngineError> {
    SortPlan::new(instance, RECORD, 0)
}

/// Measures the read cost that a merge plan may need, so that no build measures
/// it while it is timed.
pub fn learn_read_cost(instance: &Instance) -> Result<(), EngineError> {
    plan(instance)?.learn_read_cost(instance, &instance.recorder.session(Role::DeviceProbe))
}

/// Drops the data files from the page cache, so that reads reach the device. The residency before
/// the work shows pages that stayed.
pub fn make_cold(instance: &Instance) {
    for file in instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files) {
        if let Some(descriptor) = file.file.descriptor() {
            let _ = readings::drop_cache(descriptor);
        }
    }
}
