//! The blocks of a table or index that transactions change.
//!
//! The extents are in the catalog: an extent belongs to the segment, durably, before a block of it is used. How many blocks are in
//! use is in the segment's first block, byte 24 (u32, itself included), which is changed and logged as any other. So after a crash an extent may be owned
//! and not used, and never the other way round.
//!
//! Blocks with room are remembered. Those that have it only when everybody sees that rows have left them are remembered apart, in the order in which they
//! were left: when the first one has to wait, all do. A row piece ([`super::row_pieces`]) leaves its block empty, so the next one takes it whole.
//!
//! Limits: blocks are never given back; free room in blocks is known from the opening of the database on.

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

/// Where the number of blocks in use is.
const USED: usize = HEADER_BYTES;
/// Blocks with room that are remembered at most.
const POOL_MOST: usize = 10_000;
/// A segment grows by one extent, and by one more for each so many that it has: the control file is written whole each time, which would take
/// the square of a large segment's size otherwise.
const GROWTH_PART: usize = 32;

/// The extents of a segment. Each row that is got by its id asks for the number of its block, so both ways are a search by halves.
#[derive(Debug, Default)]
struct Extents {
    /// In the order in which they came.
    pieces: Vec<SegmentExtent>,
    /// The number of the first block of each.
    first: Vec<u32>,
    /// Their order by place.
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

    /// How many extents begin at that place or before.
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

/// A segment of an open database.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) purpose: Purpose,
    /// The LSN of its creation, which is its name in the log.
    pub(super) created: Lsn,
    extents: RwLock<Extents>,
    /// Taken while it gets an extent.
    extending: Mutex<()>,
    /// Blocks that are known to have room, or are not used yet.
    pool: Mutex<BTreeSet<BlockAddress>>,
    /// Blocks that rows have left, and that have room when everybody sees it; the first one first.
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

    /// How many blocks its extents have.
    fn block_count(&self) -> u32 {
        let extents = self.read();
        extents.first.last().zip(extents.pieces.last()).map_or(0, |(first, last)| first + last.extent.blocks)
    }

    /// Its block number `index`, the header being 0; `None` behind the last extent.
    pub(super) fn address(&self, index: u32) -> Option<BlockAddress> {
        self.read().address(index)
    }

    /// The number of one of its blocks; `None` for a block of another's.
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

    /// The block that rows have left first, if they have one.
    pub(super) fn take_left(&self) -> Option<BlockAddress> {
        self.left().pop_front()
    }

    /// Such a block that has to wait.
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

/// Puts the first content of the header of a segment there.
pub(super) fn format_header(edit: &mut Edit, block: &mut [u8], used: u32) {
    edit.write(block, 14, &4_u16.to_le_bytes());
    edit.write(block, USED, &used.to_le_bytes());
}

fn used_in(header: &[u8]) -> u32 {
    u32::from_le_bytes([header[USED], header[USED + 1], header[USED + 2], header[USED + 3]])
}

impl Worker<'_> {
    /// How many blocks of a segment are in use.
    pub(super) fn used_blocks(&mut self, segment: &Segment) -> Result<u32, EngineError> {
        let expected = segment.expected(BlockKind::Segment);
        let used = used_in(&self.reader.get(segment.purpose, segment.header(), expected)?);
        self.require_used(segment, used)
    }

    /// Refuses a number of blocks in use that a segment does not have: an extent is in the catalog
    /// before a block of it is used.
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

    /// A new block of a segment, without content.
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
                // The link to the next leaf: none.
                edit.write(&mut block, 14, &8_u16.to_le_bytes());
            }
            self.log_system(admission, vec![(count, header), (edit, block)])?;
            return Ok(address);
        }
    }

    /// Gives a segment more extents, if it still has no more blocks than that.
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

    /// Extents whose places in their files are durable: so many, or as many as there is room for, one at least.
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

/// What the catalog has of a segment.
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
        /// Extents come in any order of place, of one file and another, with gaps between them.
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
