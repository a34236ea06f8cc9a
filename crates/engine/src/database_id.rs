//! The id that distinguishes a database from all others.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Random id drawn when a database is made; a copy of its directory has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseId(pub u128);

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for DatabaseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DatabaseId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DatabaseId, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(DatabaseId).map_err(serde::de::Error::custom)
    }
}
