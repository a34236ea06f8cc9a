//! The damage of a segment: all of it counted, the first errors in full.

use crate::EngineError;
use plumb_events::locked;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Errors of a segment that are kept.
const KEPT: usize = 10;

/// The damage of a table or an index.
#[derive(Debug)]
pub struct SegmentDamage {
    /// `table T` or `index I`.
    pub segment: String,
    /// Number of damaged blocks, by kind of damage.
    pub counts: Vec<(&'static str, u64)>,
    /// The first errors, in the order of the segment; not empty.
    pub first: Vec<EngineError>,
}

impl SegmentDamage {
    /// Returns the number of damaged blocks.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

/// Place of a block in its segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The number of its extent.
    pub(super) extent: usize,
    /// The number within the extent.
    pub(super) index: u32,
}

/// Damage found so far. All servers that check a segment add to it.
#[derive(Debug, Default)]
pub(crate) struct Damage(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    counts: BTreeMap<&'static str, u64>,
    /// Sorted by extent and block, so that the errors kept do not depend on
    /// the order of the servers.
    first: Vec<((usize, u32), EngineError)>,
}

impl Damage {
    /// Notes an error of a block. Returns the error if it is no damage.
    pub(super) fn note(&self, place: Place, error: EngineError) -> Result<(), EngineError> {
        self.note_blocks((place.extent, place.index), 1, error)
    }

    /// Notes an error of `blocks` blocks. Returns the error if it is no damage.
    pub(crate) fn note_blocks(
        &self,
        place: (usize, u32),
        blocks: u32,
        error: EngineError,
    ) -> Result<(), EngineError> {
        if !error.is_damage() {
            return Err(error);
        }
        let mut found = self.found();
        *found.counts.entry(kind(&error)).or_default() += u64::from(blocks);
        let at = found.first.partition_point(|(known, _)| *known <= place);
        if at < KEPT {
            found.first.insert(at, (place, error));
            found.first.truncate(KEPT);
        }
        Ok(())
    }

    pub(super) fn is_none(&self) -> bool {
        self.found().first.is_empty()
    }

    /// Returns the damage of a segment, if there is any.
    pub(crate) fn of(self, segment: String) -> Option<SegmentDamage> {
        let Found { counts, first } = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let first: Vec<EngineError> = first.into_iter().map(|(_, error)| error).collect();
        (!first.is_empty()).then(|| SegmentDamage { segment, counts: counts.into_iter().collect(), first })
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        locked(&self.0)
    }
}

fn kind(error: &EngineError) -> &'static str {
    match error {
        EngineError::CorruptBlock { what: "content", .. } => "never written",
        EngineError::CorruptBlock { what, .. } => what,
        EngineError::BadRow { .. } => "rows",
        EngineError::Unusable(_) | EngineError::Io(_) => "data file",
        _ => "contents",
    }
}
