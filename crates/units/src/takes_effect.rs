//! The step by which a setting takes effect.

use serde::{Deserialize, Serialize};

/// Step by which a new value of a setting takes effect, the most expensive first. The engine knows
/// the second and the fourth; database servers under study have all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// Building the program from source.
    Build,
    /// Creation of a new, empty database.
    Creation,
    /// Change of the database's files while it is closed.
    Offline,
    /// Start of the server or engine. Older bundles, from before targets were
    /// started, write it as `run`.
    #[serde(alias = "run")]
    Start,
    /// Reload of the configuration by the running server.
    Reload,
    /// A statement of the session.
    Session,
}
