//! Stores paths in the control file by [`plumb_units::path_text`].

use plumb_units::{path_of_text, path_text};
use serde::{Deserialize, Deserializer, Serializer};
use std::path::{Path, PathBuf};

/// Writes a path as its text.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_text(path))
}

/// Reads a path from its text.
pub fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(|text| path_of_text(&text))
}
