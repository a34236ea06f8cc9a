//! A record as JSON, and back.
//!
//! `docs/record.md` is its schema. A record of a version that is not read is refused
//! before its fields are looked at, because a field may have changed its meaning.

use super::{Record, SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a record could not be read.
#[derive(Debug)]
pub enum RecordError {
    /// It is no JSON, or a field is missing or of another type.
    Json(serde_json::Error),
    /// It was written by another version of the program.
    Version {
        found: u32,
        /// The version that this program reads.
        expected: u32,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // It quotes what it does not know, and that may be all of the file.
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

/// The one field that every version has.
#[derive(Deserialize)]
struct Versioned {
    schema_version: u32,
}

/// A record with the words of its headline, for programs that read no more; a reader of records
/// leaves them.
#[derive(Serialize)]
struct Headed<'a> {
    state: String,
    #[serde(flatten)]
    record: &'a Record,
}

impl Record {
    /// The record, indented, with the words of its headline first.
    ///
    /// # Errors
    /// When the record cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, RecordError> {
        let headed = Headed { state: self.validity().words(), record: self };
        serde_json::to_string_pretty(&headed).map_err(RecordError::Json)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When it is no record, or one of another version.
    pub fn from_json(text: &str) -> Result<Record, RecordError> {
        let versioned: Versioned = serde_json::from_str(text).map_err(RecordError::Json)?;
        let found = versioned.schema_version;
        if !(SCHEMA_VERSION_OLDEST..=SCHEMA_VERSION).contains(&found) {
            return Err(RecordError::Version { found, expected: SCHEMA_VERSION });
        }
        serde_json::from_str(text).map_err(RecordError::Json)
    }
}
