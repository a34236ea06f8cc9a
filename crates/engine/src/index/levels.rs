//! The levels of a B-tree, written bottom-up and in order.
//!
//! Leaves come from sorted records, and the branches right above them are written
//! along the way, so that what stays in memory is one separator for each branch
//! block, not for each leaf: with keys of 2,000 bytes, four to a block, a quarter;
//! with short keys a few hundredths of a per cent.

use crate::EngineError;
use crate::index::block::{BranchBuilder, LeafBuilder};
use crate::instance::Access;
use crate::sort::codec::Codec;
use crate::storage::block::{BlockKind, Content};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::Tablespace;
use crate::storage::writer::{SegmentWriter, WriterOptions};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_units::{BlockAddress, Lsn, RowId};

/// Write buffers of the leaves, and of the branches above them.
const LEAF_BUFFERS: (usize, usize) = (256 * 1024, 4);
const BRANCH_BUFFERS: (usize, usize) = (64 * 1024, 2);
/// Bytes of all of them.
pub(super) const BUFFER_MEMORY: usize = LEAF_BUFFERS.0 * LEAF_BUFFERS.1 + BRANCH_BUFFERS.0 * BRANCH_BUFFERS.1;

/// Where a tree is written, and by whom.
pub(super) struct TreeTarget<'a> {
    pub(super) session: &'a Session,
    pub(super) access: &'a Access,
    pub(super) tablespace: &'a Tablespace,
    pub(super) lsn: Lsn,
}

impl<'a> TreeTarget<'a> {
    fn writer(
        &self,
        kind: BlockKind,
        (bytes, count): (usize, usize),
    ) -> Result<SegmentWriter<'a>, EngineError> {
        let extent_bytes = self.tablespace.extent_blocks.bytes(self.tablespace.block_size) as usize;
        let options = WriterOptions {
            kind,
            lsn: self.lsn,
            buffer_bytes: bytes.max(self.tablespace.block_size.bytes()).min(extent_bytes),
            buffer_count: count,
            event: Event::DirectPathWrite,
            stream: IoStream::IndexWrites,
        };
        SegmentWriter::new(self.session, self.access, self.tablespace, options)
    }
}

/// The two lowest levels of one key range.
#[derive(Default)]
pub(super) struct WrittenTree {
    pub(super) leaf_count: u64,
    pub(super) leaves: Vec<SegmentExtent>,
    pub(super) branches: Vec<SegmentExtent>,
    /// One separator for each of those branches.
    pub(super) above: Separators,
    pub(super) first_leaf: Option<BlockAddress>,
    pub(super) last_leaf: Option<LastLeaf>,
}

impl WrittenTree {
    /// Everything it owns.
    pub(super) fn extents(&self) -> impl Iterator<Item = SegmentExtent> {
        self.leaves.iter().chain(&self.branches).copied()
    }
}

/// The last leaf of a key range, kept so that it can be linked to the next one.
pub(super) struct LastLeaf {
    pub(super) address: BlockAddress,
    pub(super) content: Content,
    pub(super) block: Vec<u8>,
}

/// Writes leaves and the branches above them.
pub(super) struct LeafWriter<'a, C: Codec> {
    codec: &'a C,
    /// What decoding one record leaves for the next.
    state: C::State,
    writer: SegmentWriter<'a>,
    leaf: LeafBuilder,
    branches: BranchWriter<'a>,
    entry_count: u64,
    leaf_count: u64,
    first_leaf: Option<BlockAddress>,
}

impl<'a, C: Codec> LeafWriter<'a, C> {
    pub(super) fn new(target: &TreeTarget<'a>, codec: &'a C) -> Result<LeafWriter<'a, C>, EngineError> {
        Ok(LeafWriter {
            codec,
            state: C::State::default(),
            writer: target.writer(BlockKind::Leaf, LEAF_BUFFERS)?,
            leaf: LeafBuilder::new(),
            branches: BranchWriter::new(target)?,
            entry_count: 0,
            leaf_count: 0,
            first_leaf: None,
        })
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Adds an entry; entries come in order.
    #[inline]
    pub(super) fn push(&mut self, record: &[u8]) -> Result<(), EngineError> {
        self.entry_count += 1;
        if self.entry_count > 1 {
            if self.codec.push_leaf(record, &mut self.state, &mut self.leaf, self.writer.block()?) {
                return Ok(());
            }
            let next = self.writer.following_address()?;
            let content = self.leaf.finish(self.writer.block()?, Some(next));
            self.writer.seal(content)?;
        }
        self.begin_leaf(record)
    }

    fn begin_leaf(&mut self, record: &[u8]) -> Result<(), EngineError> {
        let address = self.writer.address()?;
        let (key, row) = self.codec.decode(record, &mut self.state);
        self.branches.push(key, row, address)?;
        self.first_leaf.get_or_insert(address);
        self.leaf_count += 1;
        let fits = self.codec.push_leaf(record, &mut self.state, &mut self.leaf, self.writer.block()?);
        assert!(fits, "an empty leaf takes any key up to key_bytes_max");
        Ok(())
    }

    /// Writes what is left. The last leaf refers to none yet.
    pub(super) fn finish(mut self) -> Result<WrittenTree, EngineError> {
        if self.entry_count == 0 {
            return Ok(WrittenTree::default());
        }
        let content = self.leaf.finish(self.writer.block()?, None);
        let block = self.writer.block()?.to_vec();
        let address = self.writer.seal(content)?;
        // Whichever part fails, the writer of the other still owns its extents and
        // gives them back: after the drain the last step cannot fail.
        self.writer.drain()?;
        let (branches, above) = self.branches.finish()?;
        let leaves = self.writer.finish()?;
        Ok(WrittenTree {
            leaf_count: self.leaf_count,
            leaves,
            branches,
            above,
            first_leaf: self.first_leaf,
            last_leaf: Some(LastLeaf { address, content, block }),
        })
    }
}

/// Writes one level of branches.
pub(super) struct BranchWriter<'a> {
    session: &'a Session,
    writer: SegmentWriter<'a>,
    builder: BranchBuilder,
    above: Separators,
}

impl<'a> BranchWriter<'a> {
    pub(super) fn new(target: &TreeTarget<'a>) -> Result<BranchWriter<'a>, EngineError> {
        Ok(BranchWriter {
            session: target.session,
            writer: target.writer(BlockKind::Branch, BRANCH_BUFFERS)?,
            builder: BranchBuilder::new(),
            above: Separators::default(),
        })
    }

    /// Adds a block of the level below, by its first entry.
    pub(super) fn push(&mut self, key: &[u8], row: RowId, child: BlockAddress) -> Result<(), EngineError> {
        if self.builder.entry_count() > 0 {
            if self.builder.push(self.writer.block()?, key, row, child) {
                return Ok(());
            }
            let content = self.builder.finish(self.writer.block()?);
            self.writer.seal(content)?;
        }
        self.above.push(key, row, self.writer.address()?);
        let fits = self.builder.push(self.writer.block()?, key, row, child);
        assert!(fits, "key_bytes_max leaves room for two separators in a branch");
        Ok(())
    }

    /// Writes what is left; gives back the blocks and what the next level refers to.
    pub(super) fn finish(mut self) -> Result<(Vec<SegmentExtent>, Separators), EngineError> {
        if self.builder.entry_count() > 0 {
            let content = self.builder.finish(self.writer.block()?);
            self.writer.seal(content)?;
        }
        self.session.count(Statistic::IndexBranchBlocks, self.above.len() as u64);
        Ok((self.writer.finish()?, self.above))
    }
}

/// First entry and address of each block of a level, packed.
#[derive(Default)]
pub(super) struct Separators {
    keys: Vec<u8>,
    entries: Vec<(u32, RowId, BlockAddress)>,
}

impl Separators {
    fn push(&mut self, key: &[u8], row: RowId, child: BlockAddress) {
        self.keys.extend_from_slice(key);
        let end = u32::try_from(self.keys.len()).expect("separators of one level stay below 4 GiB");
        self.entries.push((end, row, child));
    }

    pub(super) fn append(&mut self, other: &Separators) {
        for index in 0..other.len() {
            let (key, row, child) = other.get(index);
            self.push(key, row, child);
        }
    }

    pub(super) fn get(&self, index: usize) -> (&[u8], RowId, BlockAddress) {
        let (end, row, child) = self.entries[index];
        let start = if index == 0 { 0 } else { self.entries[index - 1].0 };
        (&self.keys[start as usize..end as usize], row, child)
    }

    pub(super) fn child(&self, index: usize) -> BlockAddress {
        self.entries[index].2
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
