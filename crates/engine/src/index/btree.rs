//! Look-ups in an index: from the root to a leaf, and then along the leaves.
//!
//! A search is for an entry, the pair of key and row id. The pair is unique, so every level has one
//! path down even if one key fills many leaves. A look-up of a key searches for its lowest possible
//! entry, which leads to the leftmost leaf that may hold the key. The entry may also be the first
//! of the next leaf, so a range that finds no more entries in a leaf continues with the next.
//!
//! The search trusts no block. On the path each level must be of its kind: `height - 1` branches
//! and then a leaf. So a cycle, or a tree deeper than the catalog says, ends at a branch where a
//! leaf is due. Along the leaves, a search visits no more leaves than the index has.
//!
//! Limits: a search holds one block at a time and takes no locks, because an index does not change
//! once it is built.

use crate::EngineError;
use crate::cache::{CacheReader, PinnedBlock};
use crate::index::block::{BranchView, Entry, LayoutError, LeafView, trimmed};
use crate::storage::block::{BlockKind, Content, Expected};
use crate::storage::control::Index;
use crate::storage::tablespace::{Purpose, Tablespace};
use plumb_units::{BlockAddress, RowId};
use std::cell::RefCell;
use std::ops::{Bound, Deref};

/// Source of verified blocks for a search: the buffer cache, except in tests.
pub trait BlockGetter {
    /// A whole block, header included, that does not change while it is held.
    type Block: Deref<Target = [u8]>;

    /// Returns the block of the index tablespace at `address`.
    ///
    /// # Errors
    /// If it cannot be read, is corrupt, or is not as expected.
    fn get(&self, address: BlockAddress, expected: Expected) -> Result<Self::Block, EngineError>;
}

/// A session's reader, shared by searches and by the fetches of the rows they find.
impl<'a> BlockGetter for RefCell<CacheReader<'a>> {
    type Block = PinnedBlock<'a>;

    fn get(&self, address: BlockAddress, expected: Expected) -> Result<PinnedBlock<'a>, EngineError> {
        self.borrow_mut().get(Purpose::Indx, address, expected)
    }
}

/// Returns the counts in a verified block's header.
pub(crate) fn content_of(block: &[u8]) -> Content {
    let half = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    Content { entries: half(12), used: half(14) }
}

/// An index to search.
#[derive(Debug)]
pub struct BTree<'a, G> {
    index: &'a Index,
    tablespace: &'a Tablespace,
    blocks: &'a G,
}

impl<G> Clone for BTree<'_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for BTree<'_, G> {}

impl<'a, G: BlockGetter> BTree<'a, G> {
    /// Creates the search from the catalog's entry of the index and its tablespace.
    pub fn new(index: &'a Index, tablespace: &'a Tablespace, blocks: &'a G) -> BTree<'a, G> {
        assert_eq!(tablespace.purpose, Purpose::Indx, "an index is in the index tablespace");
        BTree { index, tablespace, blocks }
    }

    /// Returns the rows of a normalised key, sorted by row id.
    ///
    /// # Errors
    /// If a block cannot be read, or is not of this index.
    pub fn lookup(&self, key: &[u8]) -> Result<Vec<RowId>, EngineError> {
        let mut range = self.range(Bound::Included(key), Bound::Included(key))?;
        let mut rows = Vec::new();
        while let Some(entry) = range.next_entry()? {
            rows.push(entry.row);
        }
        Ok(rows)
    }

    /// True if the index has an entry of this key for this row.
    ///
    /// # Errors
    /// As [`BTree::lookup`].
    pub fn contains(&self, key: &[u8], row: RowId) -> Result<bool, EngineError> {
        let key = trimmed(key);
        let mut range = self.seek(key, row, Bound::Included(key))?;
        Ok(range.next_entry()?.is_some_and(|entry| entry.row == row))
    }

    /// Returns the entries between two normalised keys, in order.
    ///
    /// # Errors
    /// As [`BTree::lookup`].
    pub fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<Range<'a, G>, EngineError> {
        // No row id is all zeros or all ones, because files are numbered from 1 to 1023.
        match from {
            Bound::Unbounded => self.seek(&[], RowId(0), to),
            Bound::Included(key) => self.seek(key, RowId(0), to),
            Bound::Excluded(key) => self.seek(key, RowId(u64::MAX), to),
        }
    }

    /// Returns the entries at or above this one, up to a key.
    fn seek(&self, key: &[u8], row: RowId, to: Bound<&[u8]>) -> Result<Range<'a, G>, EngineError> {
        let key = trimmed(key);
        let leaf = self.descend(key, row)?;
        let first = match &leaf {
            Some((address, block)) => {
                let view = LeafView::new(block, content_of(block));
                let found = view.and_then(|view| view.lower_bound(key, row));
                found.map_err(|error| self.corrupt(error, *address))?
            }
            None => 0,
        };
        let leaves_left = self.index.leaves.iter().map(|extent| u64::from(extent.used)).sum();
        Ok(Range { tree: *self, leaf, first, leaves_left, to: to.map(|key| trimmed(key).to_vec()) })
    }

    /// Returns the leaf that covers an entry; `None` for an empty index.
    fn descend(&self, key: &[u8], row: RowId) -> Result<Option<(BlockAddress, G::Block)>, EngineError> {
        let Some(root) = self.index.root else { return Ok(None) };
        let mut address = BlockAddress::from(root);
        if !self.tablespace.has_file(address.file) {
            return Err(self.foreign("root", address));
        }
        for _ in 1..self.index.height {
            let block = self.blocks.get(address, self.index.expected(BlockKind::Branch))?;
            let view = BranchView::new(&block, content_of(&block));
            let child = view.and_then(|view| view.child_for(key, row));
            let child = child.map_err(|error| self.corrupt(error, address))?;
            if !self.tablespace.has_file(child.file) {
                return Err(self.corrupt(foreign_address("child", child), address));
            }
            address = child;
        }
        Ok(Some((address, self.blocks.get(address, self.index.expected(BlockKind::Leaf))?)))
    }

    fn corrupt(&self, error: LayoutError, address: BlockAddress) -> EngineError {
        error.at(self.tablespace.path(address), address)
    }

    fn foreign(&self, what: &'static str, address: BlockAddress) -> EngineError {
        let LayoutError { what, found, expected } = foreign_address(what, address);
        EngineError::Verification { what: format!("index {}: {what}", self.index.name), found, expected }
    }
}

/// Returns the error of an address outside of the index tablespace.
pub(crate) fn foreign_address(what: &'static str, address: BlockAddress) -> LayoutError {
    let expected = "a block of the index tablespace".to_string();
    LayoutError { what, found: address.to_string(), expected }
}

/// Iterator over entries of an index.
#[derive(Debug)]
pub struct Range<'a, G: BlockGetter> {
    tree: BTree<'a, G>,
    leaf: Option<(BlockAddress, G::Block)>,
    /// Index of the next entry in the leaf.
    first: usize,
    /// Leaves that may still be visited, this one included.
    leaves_left: u64,
    to: Bound<Vec<u8>>,
}

impl<'a, G: BlockGetter> Range<'a, G> {
    /// Returns the next entry, or `None` at the end of the range.
    ///
    /// # Errors
    /// If a leaf cannot be read, or is not of this index.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, EngineError> {
        self.pass_finished_leaves()?;
        let Some((address, block)) = &self.leaf else { return Ok(None) };
        let entry = LeafView::new(block, content_of(block)).and_then(|view| view.entry(self.first));
        let entry = entry.map_err(|error| self.tree.corrupt(error, *address))?;
        let within = match &self.to {
            Bound::Unbounded => true,
            Bound::Included(key) => entry.key <= key.as_slice(),
            Bound::Excluded(key) => entry.key < key.as_slice(),
        };
        if !within {
            return Ok(None);
        }
        self.first += 1;
        Ok(Some(entry))
    }

    /// Moves to the next leaf while this one has no more entries.
    fn pass_finished_leaves(&mut self) -> Result<(), EngineError> {
        while let Some((address, block)) = &self.leaf {
            let address = *address;
            let view =
                LeafView::new(block, content_of(block)).map_err(|error| self.tree.corrupt(error, address))?;
            if self.first < view.entry_count() {
                return Ok(());
            }
            let next = view.next();
            self.leaf = None;
            self.first = 0;
            let Some(next) = next else { return Ok(()) };
            self.leaves_left = self.leaves_left.saturating_sub(1);
            if self.leaves_left == 0 {
                let leaves: u64 = self.tree.index.leaves.iter().map(|extent| u64::from(extent.used)).sum();
                let found = format!("{next} as leaf number {} from the first", leaves + 1);
                let expected = format!("an end: the index has {leaves} leaves");
                return Err(self.tree.corrupt(LayoutError { what: "next leaf", found, expected }, address));
            }
            if !self.tree.tablespace.has_file(next.file) {
                return Err(self.tree.corrupt(foreign_address("next leaf", next), address));
            }
            let expected = self.tree.index.expected(BlockKind::Leaf);
            self.leaf = Some((next, self.tree.blocks.get(next, expected)?));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
