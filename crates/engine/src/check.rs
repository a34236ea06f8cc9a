//! Checks a table and its indexes against each other.
use crate::{EngineError, Instance};
use plumb_units::Nanos;

/// One thing that was checked and is right. What is wrong is an error.
#[derive(Debug, Clone)]
pub struct CheckLine {
    /// What was checked, as `keys in order`.
    pub name: String,
    /// With which figures.
    pub detail: String,
    /// How long it took.
    pub elapsed: Nanos,
}

/// Checks one table and all its indexes.
///
/// # Errors
/// The first thing that is wrong, named with block, row, found and expected.
pub fn check_table(_instance: &Instance, _table: &str) -> Result<Vec<CheckLine>, EngineError> {
    unimplemented!()
}
