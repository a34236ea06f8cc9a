//! Reads the blocks of a segment with several servers, an extent at a time.

use super::damage::{Damage, Place};
use crate::parallel::servers;
use crate::storage::block::{Content, Expected};
use crate::storage::control::SegmentExtent;
use crate::storage::reader::{ReaderOptions, SegmentReader};
use crate::storage::tablespace::Purpose;
use crate::table::scan;
use crate::{EngineError, Instance};
use plumb_events::{IoStream, Role, Session, Statistic};
use plumb_units::{BlockAddress, FileId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) purpose: Purpose,
    pub(super) expected: Expected,
    pub(super) stream: IoStream,
    pub(super) extents: &'a [SegmentExtent],
}

/// Place of a block in its segment.
pub(super) type Note<'a> = &'a dyn Fn(Place, EngineError) -> Result<(), EngineError>;

/// Checks all blocks of some extents, in the order of the extents and blocks.
pub(super) trait Inspector {
    fn block(
        &mut self,
        place: Place,
        header: (BlockAddress, Content),
        block: &[u8],
    ) -> Result<(), EngineError>;
}

impl Segment<'_> {
    /// Reads the segment with as many servers as a scan has, and returns the inspector of each. An
    /// error of a block is noted, and the pass continues.
    pub(super) fn inspect<I: Inspector + Send>(
        &self,
        instance: &Instance,
        coordinator: &Session,
        damage: &Damage,
        make: impl Fn() -> I + Sync,
    ) -> Result<Vec<I>, EngineError> {
        for (number, (file, extent)) in instance.tablespace(self.purpose).unusable_among(self.extents) {
            damage.note_blocks((number, 0), extent.used, EngineError::Unusable(Arc::clone(&file.error)))?;
        }
        let operation = instance.operation();
        let taken = AtomicUsize::new(0);
        let inspectors = thread::scope(|scope| {
            let start = |number: usize| {
                let (operation, taken, make) = (&operation, &taken, &make);
                servers::start(scope, operation, (Role::CheckServer, number), move |session| {
                    let mut inspector = make();
                    let check = || operation.check();
                    let note = |place, error| damage.note(place, error);
                    self.read((instance, session), taken, (&check, &note), &mut inspector)?;
                    Ok(inspector)
                })
            };
            let degree = instance.parallel_degree().min(self.extents.len());
            let servers = (0..degree).map(start).collect();
            servers::join(coordinator, servers)
        });
        operation.outcome()?;
        Ok(inspectors.into_iter().flatten().collect())
    }

    /// Reads extents until `taken` has counted all of them. Passes the errors of blocks to `note`.
    pub(super) fn read(
        &self,
        (instance, session): (&Instance, &Session),
        taken: &AtomicUsize,
        (check, note): (&dyn Fn() -> Result<(), EngineError>, Note<'_>),
        inspector: &mut dyn Inspector,
    ) -> Result<(), EngineError> {
        let tablespace = instance.tablespace(self.purpose);
        let options = scan::reader_options(instance, self.purpose);
        let chunk_blocks = options.chunk_blocks.min(tablespace.extent_blocks.0);
        let options = ReaderOptions { stream: self.stream, chunk_blocks, ..options };
        let mut reader = SegmentReader::new(session, &instance.access, tablespace, options)?;
        // Requested extents, and the number of their blocks delivered so far.
        let mut asked: VecDeque<(usize, u32)> = VecDeque::new();
        loop {
            let mut pieces = |_| loop {
                let number = taken.fetch_add(1, Relaxed);
                let extent = self.extents.get(number)?;
                if tablespace.file(FileId(extent.extent.file)).is_ok() {
                    asked.push_back((number, 0));
                    return Some(*extent);
                }
            };
            let Some(chunk) = reader.next(&mut pieces)? else { return Ok(()) };
            check()?;
            let (extent, index) = asked.front_mut().expect("a chunk is of an extent that was asked for");
            for block in chunk.blocks(tablespace, self.expected) {
                let place = Place { extent: *extent, index: *index };
                let looked_at = block
                    .and_then(|(address, content, block)| inspector.block(place, (address, content), block));
                looked_at.or_else(|error| note(place, error))?;
                *index += 1;
            }
            if *index == self.extents[*extent].used {
                asked.pop_front();
            }
            session.count(Statistic::BlocksVerified, u64::from(chunk.block_count()));
            reader.recycle(chunk);
        }
    }
}

/// Returns the number of each extent's first block in the segment, and the number of all blocks.
pub(super) fn block_numbers(extents: &[SegmentExtent]) -> (Vec<u64>, u64) {
    let mut count = 0;
    let numbers = extents.iter().map(|extent| {
        count += u64::from(extent.used);
        count - u64::from(extent.used)
    });
    (numbers.collect(), count)
}

/// Rejects a segment of the control file whose extents cannot be read.
pub(super) fn check_extents(what: &str, extents: &[SegmentExtent]) -> Result<(), EngineError> {
    match extents.iter().find(|extent| extent.used == 0 || extent.used > extent.extent.blocks) {
        None => Ok(()),
        Some(extent) => Err(EngineError::Verification {
            what: format!(
                "{what}: blocks in use of the extent at file {} block {}",
                extent.extent.file, extent.extent.block
            ),
            found: extent.used.to_string(),
            expected: format!("1 to {}", extent.extent.blocks),
        }),
    }
}
