//! One session's own figures: what it waited for and what it counted between two looks.

use super::{SessionTime, StatisticRow, WaitEvent};
use serde::{Deserialize, Serialize};

/// What a session did while the work was measured: the difference of two looks at it, as a DBA takes them of `v$session_event` and `v$mystat`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    pub time: SessionTime,
    /// What it waited for, in any order.
    pub events: Vec<WaitEvent>,
    /// What it counted, in any order.
    pub statistics: Vec<StatisticRow>,
}
