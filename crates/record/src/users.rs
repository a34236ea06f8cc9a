//! Users that read through the buffer cache before, during and after the work.

use crate::{PoolStats, WaitEvent};
use plumb_events::LatencyHistogram;
use plumb_units::total_of;
use serde::{Deserialize, Serialize};

/// Users of a run, with their counters in each part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Users {
    pub sessions: u64,
    /// Blocks of the table that they read.
    pub hot_blocks: u64,
    pub table_blocks: u64,
    pub block_bytes: u64,
    /// Operations that arrive each second over all sessions; 0 if the next begins when one ends.
    pub rate: u64,
    /// Before the work, during it, and after it.
    pub parts: Vec<UsersPart>,
    /// The sessions of the work itself, while users read.
    pub build: SessionsTime,
}

/// CPU and waits of some foreground sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionsTime {
    /// CPU time outside waits, nanoseconds.
    pub cpu_ns: u64,
    /// Waits by event, idle ones included.
    pub events: Vec<WaitEvent>,
}

impl SessionsTime {
    /// Returns CPU and non-idle waits, nanoseconds.
    pub fn db_time_ns(&self) -> u64 {
        let busy = self.events.iter().filter(|event| !event.is_idle());
        self.cpu_ns + total_of(busy.map(|event| event.time_ns))
    }
}

/// Counters of users in a part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsersPart {
    /// Name of the part: `before`, `during` or `after`.
    pub name: String,
    /// Start, nanoseconds from the run's start.
    pub start_ns: u64,
    pub elapsed_ns: u64,
    /// Response times of the operations that began in it.
    pub latency: LatencyHistogram,
    /// Blocks that users looked up in the cache.
    pub gets: u64,
    /// Blocks of these that were in the cache.
    pub hits: u64,
    /// Blocks that users read from disk.
    pub reads: u64,
    pub time: SessionsTime,
    /// The buffer cache, for all sessions.
    pub pool: PoolStats,
}

impl Users {
    /// Returns the part of this name.
    pub fn part(&self, name: &str) -> Option<&UsersPart> {
        self.parts.iter().find(|part| part.name == name)
    }
}

impl UsersPart {
    /// Returns the operations a second.
    pub fn operations_per_s(&self) -> f64 {
        self.latency.count() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Returns the share of the users' blocks that were in the cache; NaN if they looked up none.
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.gets as f64
    }
}
