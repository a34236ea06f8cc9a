//! The device as the run's own files show it, measured before the work: what it can do, and what plans will ask.
//!
//! All of it is done before anything is timed, because which settings make the engine ask is part of what a study
//! varies.

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

/// The record that a plan is worked out for; area and buffers do not depend on it.
const RECORD: RecordSize = RecordSize { bytes: 16, entry_bytes: 0 };
/// How much is read to find the sequential rate, in parts whose rates must agree.
const SEQUENTIAL: Shots = Shots { bytes: 256 * Bytes::M, count: 6 };
/// The widest interval of these rates, as a share of their median, of which a share is worth
/// stating.
const SPREAD_MAX: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Bytes a second of large reads, many in flight: the median of several parts with its
    /// interval.
    pub sequential_read: Estimate,
    /// Nanoseconds of one random read of a block, nothing else in flight.
    pub block_read_ns: u64,
}

/// Measures the device under a tablespace with reads of its own files; `None`
/// for files in memory, which have no device.
///
/// # Errors
/// When a read fails.
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

/// The plan that an instance's settings make for a sort.
///
/// # Errors
/// When they make none.
pub fn plan(instance: &Instance) -> Result<SortPlan, EngineError> {
    SortPlan::new(instance, RECORD, 0)
}

/// Measures what the plan of a merge may ask for, so that no build does while it is timed.
///
/// # Errors
/// When a read fails.
pub fn learn_read_cost(instance: &Instance) -> Result<(), EngineError> {
    plan(instance)?.learn_read_cost(instance, &instance.recorder.session(Role::DeviceProbe))
}

/// Takes the data files out of the page cache, so that what is read comes from
/// the device. What cannot be dropped is seen in the residency before the work.
pub fn make_cold(instance: &Instance) {
    for file in instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files) {
        if let Some(descriptor) = file.file.descriptor() {
            let _ = readings::drop_cache(descriptor);
        }
    }
}
