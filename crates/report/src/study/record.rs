//! The study context as JSON, and back. Another version is refused by its number, as for a run's record.

use super::context::{STUDY_SCHEMA_VERSION, StudyContext};
use crate::record::{self, RecordError};

impl StudyContext {
    /// The context, indented.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, RecordError> {
        serde_json::to_string_pretty(self).map_err(RecordError::Json)
    }

    /// Reads a context.
    ///
    /// # Errors
    /// When it is none, or one of another version.
    pub fn from_json(text: &str) -> Result<StudyContext, RecordError> {
        record::read_version(text, STUDY_SCHEMA_VERSION)
    }
}
