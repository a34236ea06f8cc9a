//! Users that read while the work runs: counters of their sessions and of the buffer cache, part by
//! part.

use super::SlobDone;
use plumb_engine::Instance;
use plumb_events::{Period, PoolCounts, Role, Snapshot};
use plumb_units::Nanos;
use plumb_workload::users::UsersSpec;

/// Counters at the border of two parts.
#[derive(Debug)]
pub struct UsersMark {
    snapshot: Snapshot,
    pool: PoolCounts,
}

impl UsersMark {
    /// Reads the counters of all sessions and of the cache for `db_block_size`.
    #[must_use]
    pub fn take(instance: &Instance) -> UsersMark {
        UsersMark { pool: instance.caches().own().counts(), snapshot: instance.recorder.snapshot() }
    }
}

/// Users of a run, with their counters in each part of it.
#[derive(Debug, Clone)]
pub struct UsersDone {
    pub spec: UsersSpec,
    pub parts: Vec<PartCounts>,
}

impl UsersDone {
    /// Names of the parts, in their order.
    pub const PARTS: [&'static str; 3] = ["before", "during", "after"];
}

/// A part of the run, for the users.
#[derive(Debug, Clone)]
pub struct PartCounts {
    /// Time of its start on the monotonic clock.
    pub begin: Nanos,
    /// Operations that began in it.
    pub done: SlobDone,
    /// Growth of the users' sessions, without others.
    pub period: Period,
    /// Work of the cache for all sessions.
    pub pool: PoolCounts,
}

impl PartCounts {
    pub fn between(done: SlobDone, [earlier, later]: [&UsersMark; 2]) -> PartCounts {
        let mut period = later.snapshot.since(&earlier.snapshot);
        period.sessions.retain(|session| session.role == Role::User);
        let pool = later.pool.since(&earlier.pool);
        PartCounts { begin: earlier.snapshot.at, done, period, pool }
    }
}
