//! The studies that come with the program.

use super::{Study, StudyError, parse};
use crate::target::Vocabulary;

/// Name of the file, and its text.
pub const FILES: &[(&str, &str)] = &[
    ("large-sort.toml", include_str!("../../../../studies/large-sort.toml")),
    ("large-sort-serial.toml", include_str!("../../../../studies/large-sort-serial.toml")),
    ("large-sort-parallel.toml", include_str!("../../../../studies/large-sort-parallel.toml")),
    ("sort-write-buffers.toml", include_str!("../../../../studies/sort-write-buffers.toml")),
    ("sort-area.toml", include_str!("../../../../studies/sort-area.toml")),
];

/// All of them.
///
/// # Errors
/// Never, which a test sees to; a study of a changed vocabulary could be refused.
pub fn all(vocabulary: &dyn Vocabulary) -> Result<Vec<Study>, StudyError> {
    FILES.iter().map(|(file, text)| parse(file, text, vocabulary)).collect()
}

/// The study of that name.
///
/// # Errors
/// As [`all`].
pub fn find(name: &str, vocabulary: &dyn Vocabulary) -> Result<Option<Study>, StudyError> {
    Ok(all(vocabulary)?.into_iter().find(|study| study.name == name))
}
