//! Writes the levels of a B-tree bottom-up and in order, all at once.
//!
//! ```text
//! level 3               [ open ]              one block of each level is being filled:
//! level 2      [written][ open ]              when it is full it is written, and its
//! level 1   [written][written][ open ]        first entry goes to the level above
//! leaves  [written][written][written][ open ]
//! ```
//! So a tree of any size needs the memory of one block per level. A level exists once the level
//! below has filled a block, so the highest level of a key range is always one open block. The join
//! packs the entries of those blocks into new ones. That takes no more blocks, and hardly ever one
//! level more, than if one server had written it all.
//!
//! All branches of a range share a writer. They are on disk in the order in which they filled up,
//! which does not matter, because searches and checks follow addresses.
//!
//! Invariants (I1 to I3 are in [`block`](super::block)):
//! - I4 A leaf links to the block that the next leaf is then written to.
//! - I5 A branch written because it is full has at least two children. So each level has at most
//!   half the blocks of the one below.

use crate::EngineError;
use crate::access::Access;
use crate::index::block::{BranchBuilder, BranchView, LeafBuilder, Separator, leaf_in_order};
use crate::sort::codec::Codec;
use crate::storage::block::{BlockKind, Content};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::Tablespace;
use crate::storage::writer::{SegmentWriter, WriterOptions};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::strict_assert;
use plumb_units::{BlockAddress, Lsn, RowId};

/// Write buffers, as bytes and count: of the leaves, and of all branches above them.
const LEAF_BUFFERS: (usize, usize) = (256 * 1024, 4);
const BRANCH_BUFFERS: (usize, usize) = (64 * 1024, 2);
/// Bytes of all write buffers.
pub(super) const BUFFER_MEMORY: usize = LEAF_BUFFERS.0 * LEAF_BUFFERS.1 + BRANCH_BUFFERS.0 * BRANCH_BUFFERS.1;

/// Destination of a tree, and the session that writes it.
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

/// The tree of one key range, except its highest block.
#[derive(Default)]
pub(super) struct WrittenTree {
    pub(super) leaf_count: u64,
    pub(super) leaves: Vec<SegmentExtent>,
    pub(super) branches: Vec<SegmentExtent>,
    /// The highest branch, not written yet; a tree with a leaf has one.
    pub(super) top: Option<Top>,
    pub(super) first_leaf: Option<BlockAddress>,
    pub(super) last_leaf: Option<LastLeaf>,
}

impl WrittenTree {
    /// Returns all extents of the tree.
    pub(super) fn extents(&self) -> impl Iterator<Item = SegmentExtent> {
        self.leaves.iter().chain(&self.branches).copied()
    }
}

/// The last leaf of a key range, kept to be linked to the next range.
pub(super) struct LastLeaf {
    pub(super) address: BlockAddress,
    pub(super) content: Content,
    pub(super) block: Vec<u8>,
}

/// Writes leaves and the branches above them.
pub(super) struct LeafWriter<'a, C: Codec> {
    codec: &'a C,
    /// State that decoding one record leaves for the next.
    state: C::State,
    writer: SegmentWriter<'a>,
    leaf: LeafBuilder,
    branches: BranchWriter<'a>,
    entry_count: u64,
    leaf_count: u64,
    first_leaf: Option<BlockAddress>,
    /// Address that the leaf before links to.
    linked: Option<BlockAddress>,
}

impl<'a, C: Codec> LeafWriter<'a, C> {
    pub(super) fn new(target: &TreeTarget<'a>, codec: &'a C) -> Result<LeafWriter<'a, C>, EngineError> {
        Ok(LeafWriter {
            codec,
            state: C::State::default(),
            writer: target.writer(BlockKind::Leaf, LEAF_BUFFERS)?,
            leaf: LeafBuilder::new(),
            branches: BranchWriter::new(target, 1)?,
            entry_count: 0,
            leaf_count: 0,
            first_leaf: None,
            linked: None,
        })
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Adds an entry; entries must come in order.
    #[inline]
    pub(super) fn push(&mut self, record: &[u8]) -> Result<(), EngineError> {
        self.entry_count += 1;
        if self.entry_count > 1 {
            let (key, row) = self.codec.decode(record, &mut self.state);
            if self.leaf.push_key(self.writer.block()?, key, row) {
                return Ok(());
            }
            let next = self.writer.following_address()?;
            let content = self.close_leaf(Some(next))?;
            self.writer.seal(content)?;
            self.linked = Some(next);
        }
        self.begin_leaf(record)
    }

    fn begin_leaf(&mut self, record: &[u8]) -> Result<(), EngineError> {
        let address = self.writer.address()?;
        assert_eq!(*self.linked.get_or_insert(address), address, "I4: a leaf is where it is linked to");
        let (key, row) = self.codec.decode(record, &mut self.state);
        self.branches.push(key.bytes(&mut [0; 8]), row, address)?;
        self.first_leaf.get_or_insert(address);
        self.leaf_count += 1;
        let fits = self.leaf.push_key(self.writer.block()?, key, row);
        assert!(fits, "an empty leaf takes any key up to key_bytes_max");
        Ok(())
    }

    fn close_leaf(&mut self, next: Option<BlockAddress>) -> Result<Content, EngineError> {
        let block = self.writer.block()?;
        let content = self.leaf.finish(block, next);
        strict_assert!(leaf_in_order(block, content), "I2: a leaf is in order");
        Ok(content)
    }

    /// Writes the rest. The last leaf has no next leaf yet.
    pub(super) fn finish(mut self) -> Result<WrittenTree, EngineError> {
        if self.entry_count == 0 {
            return Ok(WrittenTree::default());
        }
        assert!(self.leaf.entry_count() > 0, "the last leaf was begun with an entry");
        assert!(self.leaf_count <= self.entry_count, "a leaf has an entry");
        let content = self.close_leaf(None)?;
        let block = self.writer.block()?.to_vec();
        let address = self.writer.seal(content)?;
        // If one writer fails, the other still owns its extents and frees them: after the drain the
        // last step cannot fail.
        self.writer.drain()?;
        let (branches, top) = self.branches.finish()?;
        let leaves = self.writer.finish()?;
        Ok(WrittenTree {
            leaf_count: self.leaf_count,
            leaves,
            branches,
            top,
            first_leaf: self.first_leaf,
            last_leaf: Some(LastLeaf { address, content, block }),
        })
    }
}

#[derive(Clone)]
struct ClosedBranch {
    block: Vec<u8>,
    content: Content,
}

impl ClosedBranch {
    fn entries(&self) -> impl Iterator<Item = Separator<'_>> {
        let view = BranchView::new(&self.block, self.content).expect("a branch is closed with entries");
        view.entries().map(|entry| entry.expect("entries read as they were written"))
    }

    fn first(&self) -> Separator<'_> {
        self.entries().next().expect("a branch is closed with entries")
    }
}

#[derive(Clone)]
pub(super) struct Top {
    branch: ClosedBranch,
    /// Levels from here down; a leaf is 1.
    pub(super) height: u32,
}

/// The block at which a search begins.
#[derive(Clone, Copy)]
pub(super) struct Root {
    pub(super) address: BlockAddress,
    /// Levels of the tree, leaves included.
    pub(super) height: u32,
}

struct OpenBranch {
    builder: BranchBuilder,
    block: Vec<u8>,
}

impl OpenBranch {
    fn new(block_bytes: usize) -> OpenBranch {
        OpenBranch { builder: BranchBuilder::new(), block: vec![0; block_bytes] }
    }

    /// Adds a child; `false` if it does not fit.
    fn push(&mut self, key: &[u8], row: RowId, child: BlockAddress) -> bool {
        self.builder.push(&mut self.block, key, row, child)
    }

    fn close(mut self) -> ClosedBranch {
        let content = self.builder.finish(&mut self.block);
        ClosedBranch { block: self.block, content }
    }
}

/// Writes the branches above the blocks it is given, on all levels.
pub(super) struct BranchWriter<'a> {
    session: &'a Session,
    writer: SegmentWriter<'a>,
    block_bytes: usize,
    /// Height of the blocks it is given.
    below: u32,
    /// One block of each level, the lowest first.
    open: Vec<OpenBranch>,
}

impl<'a> BranchWriter<'a> {
    /// Creates a writer of the branches above blocks of height `below`.
    pub(super) fn new(target: &TreeTarget<'a>, below: u32) -> Result<BranchWriter<'a>, EngineError> {
        Ok(BranchWriter {
            session: target.session,
            writer: target.writer(BlockKind::Branch, BRANCH_BUFFERS)?,
            block_bytes: target.tablespace.block_size.bytes(),
            below,
            open: Vec::new(),
        })
    }

    /// Adds a block of the level below, by its first entry.
    pub(super) fn push(&mut self, key: &[u8], row: RowId, child: BlockAddress) -> Result<(), EngineError> {
        self.push_at(0, key, row, child)
    }

    /// Adds the tree below another writer's top, raised to the height that this writer builds on.
    pub(super) fn adopt(&mut self, mut top: Top) -> Result<(), EngineError> {
        while top.height <= self.below {
            let address = self.write(&top.branch)?;
            let mut alone = OpenBranch::new(self.block_bytes);
            let first = top.branch.first();
            assert!(alone.push(first.first.key, first.first.row, address), "an empty branch takes any key");
            top = Top { branch: alone.close(), height: top.height + 1 };
        }
        top.branch.entries().try_for_each(|entry| self.push(entry.first.key, entry.first.row, entry.child))
    }

    fn push_at(
        &mut self,
        level: usize,
        key: &[u8],
        row: RowId,
        child: BlockAddress,
    ) -> Result<(), EngineError> {
        if level == self.open.len() {
            self.open.push(OpenBranch::new(self.block_bytes));
        }
        if self.open[level].push(key, row, child) {
            return Ok(());
        }
        let children = self.open[level].builder.entry_count();
        assert!(children >= 2, "I5: a full branch with {children} children");
        self.raise(level)?;
        let fits = self.open[level].push(key, row, child);
        assert!(fits, "key_bytes_max leaves room for two separators in a branch");
        Ok(())
    }

    /// Writes the open block of a level, adds it to the level above and opens the next.
    fn raise(&mut self, level: usize) -> Result<(), EngineError> {
        let full = std::mem::replace(&mut self.open[level], OpenBranch::new(self.block_bytes)).close();
        let address = self.write(&full)?;
        let first = full.first().first;
        self.push_at(level + 1, first.key, first.row, address)
    }

    fn write(&mut self, branch: &ClosedBranch) -> Result<BlockAddress, EngineError> {
        self.writer.block()?.copy_from_slice(&branch.block);
        self.session.count(Statistic::IndexBranchBlocks, 1);
        self.writer.seal(branch.content)
    }

    /// Writes every level except the highest; returns the extents, and the highest block.
    pub(super) fn finish(mut self) -> Result<(Vec<SegmentExtent>, Option<Top>), EngineError> {
        let top = self.close_levels()?;
        Ok((self.writer.finish()?, top))
    }

    /// Writes every level; returns the extents, and the root.
    pub(super) fn finish_root(mut self) -> Result<(Vec<SegmentExtent>, Option<Root>), EngineError> {
        let root = match self.close_levels()? {
            Some(top) => Some(Root { address: self.write(&top.branch)?, height: top.height }),
            None => None,
        };
        Ok((self.writer.finish()?, root))
    }

    fn close_levels(&mut self) -> Result<Option<Top>, EngineError> {
        let mut level = 0;
        // The highest level may fill up in the loop, so that another rises above it.
        while level + 1 < self.open.len() {
            self.raise(level)?;
            level += 1;
        }
        let height = self.below + self.open.len() as u32;
        assert!(self.open.len() < 32, "I5: a tree of {height} levels");
        Ok(self.open.pop().map(|open| Top { branch: open.close(), height }))
    }
}

#[cfg(test)]
mod tests;
