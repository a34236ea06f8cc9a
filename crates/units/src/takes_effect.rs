//! The moment at which a setting takes effect.

use serde::{Deserialize, Serialize};

/// Step that gives effect to another value of a setting, the dearest first. The engine knows the
/// second and the fourth; servers that are studied know them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// The program is built.
    Build,
    /// The database is made.
    Creation,
    /// The files of the database are changed while it is closed.
    Offline,
    /// It is started. Written as `run` in bundles of before there were targets to be started.
    #[serde(alias = "run")]
    Start,
    /// It reads its configuration again.
    Reload,
    /// A session sets it.
    Session,
}
