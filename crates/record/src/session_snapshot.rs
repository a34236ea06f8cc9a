//! Waits and counters of one session between two snapshots.

use super::{SessionTime, StatisticRow, WaitEvent};
use serde::{Deserialize, Serialize};

/// Figures of a session during the measured work: the difference of two snapshots, like
/// those of `v$session_event` and `v$mystat`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    /// Parts of the session's time.
    pub time: SessionTime,
    /// Waits by event, in any order.
    pub events: Vec<WaitEvent>,
    /// Counters of the session, in any order.
    pub statistics: Vec<StatisticRow>,
}
