//! A record as JSON, and back.
//!
//! `docs/record.md` is the schema. A record of an unsupported version is rejected before its fields
//! are read, because a field may have another meaning.

use super::{Record, SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reason why a record could not be read.
#[derive(Debug)]
pub enum RecordError {
    /// The text is no JSON, or a field is missing or has another type.
    Json(serde_json::Error),
    /// The version of the record is not supported.
    Version {
        found: u32,
        /// Newest version that this program reads.
        expected: u32,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The error quotes unknown text, which may be the whole file.
            RecordError::Json(error) => {
                write!(f, "the record is not readable: {}", plumb_units::cut(&error.to_string(), 300))
            }
            RecordError::Version { found, expected } => write!(
                f,
                "the record has schema version {found}, and this program reads version {expected}: \
                 use the release that wrote it"
            ),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Json(error) => Some(error),
            RecordError::Version { .. } => None,
        }
    }
}

/// The field that every version has.
#[derive(Deserialize)]
struct Versioned {
    schema_version: u32,
}

/// A record with its headline, for programs that read nothing else; it is ignored
/// when a record is read.
#[derive(Serialize)]
struct Headed<'a> {
    state: String,
    #[serde(flatten)]
    record: &'a Record,
}

impl Record {
    /// Formats the record as indented JSON, with its headline first.
    pub fn to_json(&self) -> Result<String, RecordError> {
        let headed = Headed { state: self.validity().words(), record: self };
        serde_json::to_string_pretty(&headed).map_err(RecordError::Json)
    }

    /// Parses a record of a run. Fails on an unsupported version.
    pub fn from_json(text: &str) -> Result<Record, RecordError> {
        let versioned: Versioned = serde_json::from_str(text).map_err(RecordError::Json)?;
        let found = versioned.schema_version;
        if !(SCHEMA_VERSION_OLDEST..=SCHEMA_VERSION).contains(&found) {
            return Err(RecordError::Version { found, expected: SCHEMA_VERSION });
        }
        serde_json::from_str(text).map_err(RecordError::Json)
    }
}
