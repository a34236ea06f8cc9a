//! The blocks of a table or index that transactions change.
//!
//! The catalog has the extents: an extent belongs to the segment, durably, before one of its blocks
//! is used. The segment's first block has the number of blocks in use (byte 24, u32, itself
//! included), and is changed and logged like any other. So after a crash an extent may be owned and
//! unused, but never the reverse.
//!
//! Blocks with room are remembered. Blocks that gain room once all statements see their rows
//! deleted are in a separate queue, in order of the deletions. If the first has to wait, all do. A
//! row piece ([`super::row_pieces`]) leaves its block empty, so the next piece takes it whole.
//!
//! Limits: blocks are never freed. Free room is known only since the database was opened.

use super::worker::Worker;
use crate::EngineError;
use crate::redo::edit::Edit;
use crate::storage::block::{BlockKind, Expected, HEADER_BYTES, LsnRange};
use crate::storage::control::{Catalog, SegmentExtent};
use crate::storage::tablespace::Purpose;
use plumb_events::{Event, locked};
use plumb_units::{BlockAddress, FileId, Lsn};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// Offset of the number of blocks in use.
const USED: usize = HEADER_BYTES;
/// Most remembered blocks with room.
const POOL_MOST: usize = 10_000;
/// A segment grows by one extent, and one more for each [`GROWTH_PART`] extents it has. Each growth
/// rewrites the control file, which would otherwise cost the square of a large segment's size.
const GROWTH_PART: usize = 32;

/// The extents of a segment. Both lookups are binary searches, because every row fetched by its id
/// needs the number of its block.
#[derive(Debug, Default)]
struct Extents {
    /// In the order of allocation.
    pieces: Vec<SegmentExtent>,
    /// Number of the first block of each extent.
    first: Vec<u32>,
    /// Indexes of `pieces`, sorted by address.
    by_place: Vec<u32>,
}

impl Extents {
    fn new(pieces: Vec<SegmentExtent>) -> Extents {
        let mut extents = Extents::default();
        extents.add(pieces);
        extents
    }

    fn add(&mut self, pieces: Vec<SegmentExtent>) {
        for piece in pieces {
            let first = match (self.first.last(), self.pieces.last()) {
                (Some(first), Some(last)) => first + last.extent.blocks,
                _ => 0,
            };
            let place = self.behind(piece.extent.file, piece.extent.block);
            self.by_place.insert(place, self.pieces.len() as u32);
            self.first.push(first);
            self.pieces.push(piece);
        }
    }

    /// Returns the number of extents that begin at or before an address.
    fn behind(&self, file: u16, block: u32) -> usize {
        self.by_place.partition_point(|number| {
            let extent = self.pieces[*number as usize].extent;
            (extent.file, extent.block) <= (file, block)
        })
    }

    fn address(&self, index: u32) -> Option<BlockAddress> {
        let number = self.first.partition_point(|first| *first <= index).checked_sub(1)?;
        let (within, extent) = (index - self.first[number], self.pieces[number].extent);
        (within < extent.blocks).then(|| extent.address(within))
    }

    fn index_of(&self, address: BlockAddress) -> Option<u32> {
        let place = self.behind(address.file.0, address.block.0).checked_sub(1)?;
        let number = self.by_place[place] as usize;
        let extent = self.pieces[number].extent;
        let within = address.block.0.wrapping_sub(extent.block);
        (extent.file == address.file.0 && within < extent.blocks).then(|| self.first[number] + within)
    }
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) purpose: Purpose,
    /// LSN of its creation, which names it in the log.
    pub(super) created: Lsn,
    extents: RwLock<Extents>,
    /// Held while the segment gets an extent.
    extending: Mutex<()>,
    /// Blocks known to have room, or not used yet.
    pool: Mutex<BTreeSet<BlockAddress>>,
    /// Blocks whose rows were deleted, which gain room once all statements see that, oldest first.
    left: Mutex<VecDeque<BlockAddress>>,
}

impl Segment {
    pub(super) fn new(purpose: Purpose, created: Lsn, extents: Vec<SegmentExtent>) -> Segment {
        Segment {
            purpose,
            created,
            extents: RwLock::new(Extents::new(extents)),
            extending: Mutex::default(),
            pool: Mutex::default(),
            left: Mutex::default(),
        }
    }

    pub(super) fn extents(&self) -> Vec<SegmentExtent> {
        self.read().pieces.clone()
    }

    fn read(&self) -> RwLockReadGuard<'_, Extents> {
        self.extents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn block_count(&self) -> u32 {
        let extents = self.read();
        extents.first.last().zip(extents.pieces.last()).map_or(0, |(first, last)| first + last.extent.blocks)
    }

    /// Returns the address of block `index`, the header being 0; `None` after the last extent.
    pub(super) fn address(&self, index: u32) -> Option<BlockAddress> {
        self.read().address(index)
    }

    /// Returns the index of a block; `None` if it is not of this segment.
    pub(super) fn index_of(&self, address: BlockAddress) -> Option<u32> {
        self.read().index_of(address)
    }

    pub(super) fn header(&self) -> BlockAddress {
        self.address(0).expect("a segment has an extent")
    }

    pub(super) fn expected(&self, kind: BlockKind) -> Expected {
        Expected { kind, lsns: LsnRange::from(self.created) }
    }

    pub(super) fn take_from_pool(&self) -> Option<BlockAddress> {
        self.pool().pop_first()
    }

    pub(super) fn add_to_pool(&self, block: BlockAddress) {
        let mut pool = self.pool();
        if pool.len() < POOL_MOST {
            pool.insert(block);
        }
    }

    /// Takes the block whose rows were deleted first, if there is one.
    pub(super) fn take_left(&self) -> Option<BlockAddress> {
        self.left().pop_front()
    }

    /// Returns such a block to the front of the queue, because it has to wait.
    pub(super) fn put_back_left(&self, block: BlockAddress) {
        self.left().push_front(block);
    }

    pub(super) fn add_left(&self, block: BlockAddress) {
        let mut left = self.left();
        if left.len() < POOL_MOST {
            left.push_back(block);
        }
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<BlockAddress>> {
        locked(&self.left)
    }

    fn pool(&self) -> MutexGuard<'_, BTreeSet<BlockAddress>> {
        locked(&self.pool)
    }
}

/// Writes the first contents of a segment's header.
pub(super) fn format_header(edit: &mut Edit, block: &mut [u8], used: u32) {
    edit.write(block, 14, &4_u16.to_le_bytes());
    edit.write(block, USED, &used.to_le_bytes());
}

fn used_in(header: &[u8]) -> u32 {
    u32::from_le_bytes([header[USED], header[USED + 1], header[USED + 2], header[USED + 3]])
}

impl Worker<'_> {
    /// Returns the number of blocks of a segment in use.
    pub(super) fn used_blocks(&mut self, segment: &Segment) -> Result<u32, EngineError> {
        let expected = segment.expected(BlockKind::Segment);
        let used = used_in(&self.reader.get(segment.purpose, segment.header(), expected)?);
        self.require_used(segment, used)
    }

    /// Rejects a number of blocks in use that the segment's extents do not have. An extent is in
    /// the catalog before one of its blocks is used.
    fn require_used(&self, segment: &Segment, used: u32) -> Result<u32, EngineError> {
        let (address, count) = (segment.header(), segment.block_count());
        if (1..=count).contains(&used) {
            return Ok(used);
        }
        Err(EngineError::CorruptBlock {
            path: self.instance.tablespace(segment.purpose).path(address).to_path_buf(),
            address,
            what: "blocks in use",
            found: used.to_string(),
            expected: format!("1 to {count}, which the segment's extents have"),
        })
    }

    /// Adds a block without contents to a segment.
    pub(super) fn new_block(
        &mut self,
        segment: &Segment,
        kind: BlockKind,
    ) -> Result<BlockAddress, EngineError> {
        let purpose = segment.purpose;
        loop {
            let admission = self.admit(self.block_bytes_of(purpose) + 512, 0)?;
            let gate = self.log.enter();
            let expected = segment.expected(BlockKind::Segment);
            let mut header = self.reader.change(purpose, segment.header(), expected)?;
            let used = self.require_used(segment, used_in(&header))?;
            let Some(address) = segment.address(used) else {
                drop((header, gate, admission));
                self.extend(segment, used)?;
                continue;
            };
            let mut block = self.reader.change_new(purpose, address)?;
            let mut count = Edit::new(purpose, segment.header(), &header, gate.floor());
            count.write(&mut header, USED, &(used + 1).to_le_bytes());
            let mut edit = Edit::format(purpose, address, &mut block, kind);
            if kind == BlockKind::Leaf {
                // No next leaf.
                edit.write(&mut block, 14, &8_u16.to_le_bytes());
            }
            self.log_system(admission, vec![(count, header), (edit, block)])?;
            return Ok(address);
        }
    }

    /// Gives a segment more extents, unless another session has done so.
    fn extend(&mut self, segment: &Segment, used: u32) -> Result<(), EngineError> {
        let _extending = self.session.latch(&segment.extending, Event::EnqHwContention);
        if segment.address(used).is_some() {
            return Ok(());
        }
        let extents = self.allocate(segment.purpose, 1 + segment.read().pieces.len() / GROWTH_PART)?;
        let added = self.instance.change_catalog(self.session, |catalog| {
            if let Some(stored) = extents_of(catalog, segment) {
                stored.extend_from_slice(&extents);
            }
        });
        match &added {
            Ok(()) => segment.extents.write().unwrap_or_else(PoisonError::into_inner).add(extents),
            Err(_) => self.instance.release(self.session, segment.purpose, &extents),
        }
        added
    }

    /// Allocates `count` extents, or as many as there is room for, at least one. Their places
    /// in the files are durable.
    pub(super) fn allocate(
        &mut self,
        purpose: Purpose,
        count: usize,
    ) -> Result<Vec<SegmentExtent>, EngineError> {
        let tablespace = self.instance.tablespace(purpose);
        let mut extents = vec![tablespace.allocate(self.session, &self.instance.access)?];
        while extents.len() < count
            && let Ok(extent) = tablespace.allocate(self.session, &self.instance.access)
        {
            extents.push(extent);
        }
        let files: BTreeSet<u16> = extents.iter().map(|extent| extent.file).collect();
        let sync = |file| tablespace.file(FileId(file)).and_then(|file| file.sync(self.session));
        if let Err(error) = files.into_iter().try_for_each(sync) {
            tablespace.release(extents);
            return Err(error);
        }
        Ok(extents.into_iter().map(|extent| SegmentExtent { extent, used: extent.blocks }).collect())
    }
}

fn extents_of<'c>(catalog: &'c mut Catalog, segment: &Segment) -> Option<&'c mut Vec<SegmentExtent>> {
    let tables = catalog.live_tables.iter_mut().map(|table| (table.created, &mut table.extents));
    let indexes = catalog.live_indexes.iter_mut().map(|index| (index.created, &mut index.extents));
    let of_segment = |(created, _): &(u64, _)| *created == segment.created.0;
    tables.chain(indexes).find(of_segment).map(|(_, extents)| extents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::tablespace::Extent;
    use proptest::prelude::*;

    proptest! {
        /// Extents in any order, of two files, with gaps between them.
        #[test]
        fn blocks_are_numbered_through_the_extents(sizes in prop::collection::vec((0_u16..2, 1_u32..9, 0_u32..3, any::<u32>()), 1..20)) {
            let mut next = [0_u32; 2];
            let mut pieces: Vec<(u32, SegmentExtent)> = Vec::new();
            for (file, blocks, gap, order) in sizes {
                let block = next[usize::from(file)] + gap;
                next[usize::from(file)] = block + blocks;
                pieces.push((order, SegmentExtent { extent: Extent { file, block, blocks }, used: blocks }));
            }
            pieces.sort_by_key(|(order, _)| *order);
            let pieces: Vec<SegmentExtent> = pieces.into_iter().map(|(_, piece)| piece).collect();
            let model: Vec<BlockAddress> =
                pieces.iter().flat_map(|piece| (0..piece.extent.blocks).map(|at| piece.extent.address(at))).collect();
            let extents = Extents::new(pieces);
            for (index, address) in (0..).zip(&model) {
                prop_assert_eq!(extents.address(index), Some(*address));
            }
            prop_assert_eq!(extents.address(model.len() as u32), None);
            for (file, end) in (0..).zip(next) {
                for block in 0..end + 2 {
                    let address = BlockAddress { file: FileId(file), block: plumb_units::BlockNumber(block) };
                    let expected = model.iter().position(|found| *found == address).map(|at| at as u32);
                    prop_assert_eq!(extents.index_of(address), expected);
                }
            }
        }
    }
}
