//! Indexes that transactions change: B-trees with a fixed root block.
//!
//! The blocks have the layout of a built index ([`crate::index::block`]), with three differences. A
//! leaf may be empty. An entry whose row is deleted or has another key now is marked, and stays for
//! sessions that still see the row. The first separator of the leftmost branches is the empty key.
//!
//! An entry is added to its leaf under a shared latch of the tree and an exclusive hold of the
//! block. If it does not fit, the latch is taken exclusively. Then the lowest node on the path
//! whose parent has room for one more separator is split. One record logs all blocks, and the entry
//! is tried again. A full root moves into two new blocks and becomes the branch above them.
//!
//! A full leaf with marked entries that has not changed since the horizon loses these entries
//! instead. The transactions that marked them have ended, and no session sees the rows. A leaf that
//! grows only at its end is split there, and stays full.
//!
//! Limits: nodes are not merged. Blocks prepared for a split stay unused after a crash.

use super::row_pieces::is_head;
use super::segment::Segment;
use super::undo::Undo;
use super::worker::{RowVersion, Thread, Worker};
use super::{Table, rows};
use crate::EngineError;
use crate::cache::ChangingBlock;
use crate::index::block::{
    BranchView, CHILD_BYTES, Entry, LINK_BYTES, LayoutError, LeafView, MARK, SLOT_BYTES, leaf_entry_bytes,
};
use crate::index::btree::foreign_address;
use crate::redo::edit::Edit;
use crate::sort::key::KeyBuilder;
use crate::storage::block::{BlockKind, Content, HEADER_BYTES, content_of, lsn_of};
use crate::storage::tablespace::Purpose;
use plumb_events::{Event, Session, Statistic, sharing};
use plumb_units::{BlockAddress, Lsn, RowId};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const INDX: Purpose = Purpose::Indx;

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) name: String,
    pub(super) segment: Segment,
    pub(super) key: KeyBuilder,
    /// True if no two rows may have the same key, unless it contains a NULL.
    pub(super) unique: bool,
    /// Levels with the leaves, changed under the latch. 0: unknown yet, or a block
    /// on the path is damaged.
    pub(super) height: AtomicU32,
    latch: RwLock<()>,
}

/// Change of an entry in a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryChange {
    Mark,
    TakeMarkOff,
    Remove,
}

impl Tree {
    pub(super) fn new(name: String, segment: Segment, key: KeyBuilder, unique: bool) -> Tree {
        Tree { name, segment, key, unique, height: AtomicU32::new(0), latch: RwLock::new(()) }
    }

    fn root(&self) -> BlockAddress {
        self.segment.address(1).expect("an index has a root behind its header")
    }

    fn height(&self) -> u32 {
        self.height.load(Relaxed)
    }

    fn share(&self, session: &Session) -> RwLockReadGuard<'_, ()> {
        let latch = || self.latch.read().unwrap_or_else(PoisonError::into_inner);
        self.latch.try_read().unwrap_or_else(|_| {
            let wait = || sharing::patiently(|| self.latch.try_read().ok(), latch);
            session.wait(Event::BufferBusyWaits, wait)
        })
    }

    fn exclude(&self, session: &Session) -> RwLockWriteGuard<'_, ()> {
        let latch = || self.latch.write().unwrap_or_else(PoisonError::into_inner);
        self.latch.try_write().unwrap_or_else(|_| {
            let wait = || sharing::patiently(|| self.latch.try_write().ok(), latch);
            session.wait(Event::BufferBusyWaits, wait)
        })
    }
}

fn slot(block: &[u8], index: usize) -> usize {
    let at = block.len() - SLOT_BYTES * (index + 1);
    usize::from(u16::from_le_bytes([block[at], block[at + 1]]))
}

fn end_of(content: Content) -> usize {
    HEADER_BYTES + content.used as usize
}

fn room(block: &[u8]) -> usize {
    let content = content_of(block);
    block.len() - SLOT_BYTES * content.entries as usize - end_of(content)
}

fn write_counts(edit: &mut Edit, block: &mut [u8], entries: usize, end: usize) {
    edit.write(block, 12, &(((end - HEADER_BYTES) as u32) << 16 | entries as u32).to_le_bytes());
}

/// Encodes an entry; `child` is for a branch.
fn entry_bytes(key: &[u8], row: RowId, child: Option<BlockAddress>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + 20);
    match u8::try_from(key.len()) {
        Ok(length) if length < 0xFF => bytes.push(length),
        _ => {
            bytes.push(0xFF);
            bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        }
    }
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&row.0.to_be_bytes());
    if let Some(child) = child {
        bytes.extend_from_slice(&child.file.0.to_le_bytes());
        bytes.extend_from_slice(&child.block.0.to_le_bytes());
    }
    bytes
}

/// Inserts an entry at `index`; the caller has checked the room.
fn insert_at(edit: &mut Edit, block: &mut [u8], index: usize, bytes: &[u8]) {
    let content = content_of(block);
    let (entries, end) = (content.entries as usize, end_of(content));
    let at = if index < entries { slot(block, index) } else { end };
    edit.shift(block, at, at + bytes.len(), end - at);
    edit.write(block, at, bytes);
    let slots = block.len() - SLOT_BYTES * entries;
    let behind = entries - index;
    edit.shift(block, slots, slots - SLOT_BYTES, SLOT_BYTES * behind);
    edit.add(block, slots - SLOT_BYTES, behind, bytes.len() as u16);
    let own = block.len() - SLOT_BYTES * (index + 1);
    edit.write_u16(block, own, at as u16);
    write_counts(edit, block, entries + 1, end + bytes.len());
}

fn remove_at(edit: &mut Edit, block: &mut [u8], index: usize) {
    let content = content_of(block);
    let (entries, end) = (content.entries as usize, end_of(content));
    let at = slot(block, index);
    let behind = entries - index - 1;
    let next = if behind > 0 { slot(block, index + 1) } else { end };
    let bytes = next - at;
    edit.shift(block, next, at, end - next);
    let slots = block.len() - SLOT_BYTES * entries;
    edit.shift(block, slots, slots + SLOT_BYTES, SLOT_BYTES * behind);
    edit.add(block, slots + SLOT_BYTES, behind, (bytes as u16).wrapping_neg());
    write_counts(edit, block, entries - 1, end - bytes);
}

/// Replaces a node's contents by entries `from..to` of `source`, at offset `start`.
fn fill(edit: &mut Edit, block: &mut [u8], start: usize, source: &[u8], from: usize, to: usize) {
    let content = content_of(source);
    let offset =
        |index: usize| if index < content.entries as usize { slot(source, index) } else { end_of(content) };
    let (begin, end) = (offset(from), offset(to));
    edit.write(block, start, &source[begin..end]);
    let slots: Vec<u8> = (from..to)
        .rev()
        .flat_map(|index| ((slot(source, index) - begin + start) as u16).to_le_bytes())
        .collect();
    let at = block.len() - slots.len();
    edit.write(block, at, &slots);
    write_counts(edit, block, to - from, start + end - begin);
}

fn link_bytes(next: Option<BlockAddress>) -> [u8; LINK_BYTES] {
    let next = next.unwrap_or_default();
    let mut bytes = [0; LINK_BYTES];
    bytes[..2].copy_from_slice(&next.file.0.to_le_bytes());
    bytes[4..].copy_from_slice(&next.block.0.to_le_bytes());
    bytes
}

/// Returns the offset of the first entry of a node.
fn start_of(kind: BlockKind) -> usize {
    if kind == BlockKind::Leaf { HEADER_BYTES + LINK_BYTES } else { HEADER_BYTES }
}

/// Returns the index of the first entry that a split moves to the new node. It is at half of the
/// node's bytes, and never the first.
fn middle(block: &[u8], kind: BlockKind) -> usize {
    let content = content_of(block);
    let entries = content.entries as usize;
    let half = usize::midpoint(start_of(kind), end_of(content));
    (1..entries).find(|index| slot(block, *index) >= half).unwrap_or(entries.saturating_sub(1)).max(1)
}

/// A node on the path from the root.
struct Step {
    address: BlockAddress,
    kind: BlockKind,
}

impl<'a> Worker<'a> {
    fn broken(&self, error: LayoutError, address: BlockAddress) -> EngineError {
        error.at(self.instance.tablespace(INDX).path(address), address)
    }

    /// Returns the address of a child or next leaf, if it is in a file of the index's tablespace.
    fn require_own(
        &self,
        found: Result<BlockAddress, LayoutError>,
        from: BlockAddress,
    ) -> Result<BlockAddress, EngineError> {
        let found = found.map_err(|error| self.broken(error, from))?;
        // Only the file is checked, because each look-up comes here. A block of another segment
        // shows in its kind, its LSN, or the number of steps.
        match self.instance.tablespace(INDX).has_file(found.file) {
            true => Ok(found),
            false => Err(self.broken(foreign_address("the block that it leads to", found), from)),
        }
    }

    /// Refuses to follow more blocks than the index has. After a lost write, a block may lead back.
    fn require_end(&self, tree: &Tree, count: u32, address: BlockAddress) -> Result<(), EngineError> {
        if tree.segment.address(count).is_some() {
            return Ok(());
        }
        Err(EngineError::CorruptBlock {
            path: self.instance.tablespace(INDX).path(address).to_path_buf(),
            address,
            what: "the block that it leads to",
            found: "one that leads back to it".to_string(),
            expected: format!("an end after the blocks of the index, fewer than {count}"),
        })
    }

    /// Returns the path from the root to the leaf for an entry. The caller holds the latch.
    fn way_to(&mut self, tree: &Tree, key: &[u8], row: RowId) -> Result<Vec<Step>, EngineError> {
        let height = match tree.height() {
            0 => self.find_height(tree)?,
            known => known,
        };
        let mut address = tree.root();
        let mut way = Vec::with_capacity(height as usize);
        for _ in 1..height {
            let block = self.reader.get(INDX, address, tree.segment.expected(BlockKind::Branch))?;
            let child = BranchView::new(&block, content_of(&block)).and_then(|view| view.child_for(key, row));
            way.push(Step { address, kind: BlockKind::Branch });
            address = self.require_own(child, address)?;
        }
        way.push(Step { address, kind: BlockKind::Leaf });
        Ok(way)
    }

    /// Finds the height of the tree, and remembers it.
    pub(super) fn find_height(&mut self, tree: &Tree) -> Result<u32, EngineError> {
        let (mut address, mut height) = (tree.root(), 1);
        while let Err(no_leaf) = self.reader.get(INDX, address, tree.segment.expected(BlockKind::Leaf)) {
            let block = match self.reader.get(INDX, address, tree.segment.expected(BlockKind::Branch)) {
                Ok(block) => block,
                // A damaged leaf is no branch either, and the leaf's error is the right one.
                Err(no_branch) => {
                    let is_other = matches!(no_leaf, EngineError::CorruptBlock { what: "kind", .. });
                    return Err(if is_other { no_branch } else { no_leaf });
                }
            };
            let first = BranchView::new(&block, content_of(&block)).and_then(|view| view.entry(0));
            self.require_end(tree, height, address)?;
            address = self.require_own(first.map(|first| first.child), address)?;
            height += 1;
        }
        tree.height.store(height, Relaxed);
        Ok(height)
    }

    /// Adds the entry of a row; `rivals` is the table of a unique index, in which no other row may
    /// have the key. Waits for a rival whose transaction runs.
    pub(super) fn add_entry(
        &mut self,
        thread: &mut Thread<'a>,
        (tree, rivals): (&Tree, Option<&Table>),
        (key, row): (&[u8], RowId),
    ) -> Result<(), EngineError> {
        loop {
            let promise = self.promise(INDX, key.len() + 32);
            let admission = self.admit(2 * self.block_bytes_of(INDX) + 256, promise)?;
            let gate = self.log.enter();
            // Exclusive, so that no session adds the key between the search for rivals and the
            // insert.
            let alone = rivals.is_some().then(|| tree.exclude(self.session));
            let latch = (rivals.is_none().then(|| tree.share(self.session)), alone);
            if let Some(table) = rivals
                && let Some(rival) = self.rival(table, tree, (key, row), thread.transaction)?
            {
                drop((latch, gate, admission));
                self.await_end(thread, rival)?;
                continue;
            }
            let address = self.way_to(tree, key, row)?.pop().expect("a leaf").address;
            let mut leaf = self.reader.change(INDX, address, tree.segment.expected(BlockKind::Leaf))?;
            let (index, found) = self.find(&leaf, address, key, row)?;
            let mut edit = Edit::new(INDX, address, &leaf, gate.floor());
            let undo = match found {
                Some(marked) if marked => {
                    set_mark(&mut edit, &mut leaf, index, 0);
                    Undo::MarkTakenOff { row, key }
                }
                Some(_) => {
                    return Err(EngineError::Verification {
                        what: format!("index {}: entries of the row at {row}", tree.name),
                        found: "one of the same key".to_string(),
                        expected: "none".to_string(),
                    });
                }
                None if room(&leaf) >= leaf_entry_bytes(key.len()) => {
                    insert_at(&mut edit, &mut leaf, index, &entry_bytes(key, row, None));
                    Undo::EntryAdded { row, key }
                }
                None => {
                    drop((leaf, latch, gate, admission));
                    self.make_space(tree, key, row)?;
                    continue;
                }
            };
            let undo = (tree.segment.created, &undo);
            return self.log_change(thread, (admission, promise), undo, vec![(edit, leaf)]);
        }
    }

    /// Appends sorted entries to an index that nothing refers to yet: as many as its last leaf
    /// takes, in one record. Returns their number.
    pub(super) fn append_entries(
        &mut self,
        tree: &Tree,
        entries: &[(Vec<u8>, RowId)],
    ) -> Result<usize, EngineError> {
        let (first, row) = &entries[0];
        loop {
            let admission = self.admit(self.log.options().record_max(), 0)?;
            let gate = self.log.enter();
            let latch = tree.share(self.session);
            let address = self.way_to(tree, first, *row)?.pop().expect("a leaf").address;
            let mut leaf = self.reader.change(INDX, address, tree.segment.expected(BlockKind::Leaf))?;
            let mut edit = Edit::new(INDX, address, &leaf, gate.floor());
            let mut added = 0;
            for (key, row) in entries {
                if room(&leaf) < leaf_entry_bytes(key.len()) {
                    break;
                }
                let index = content_of(&leaf).entries as usize;
                insert_at(&mut edit, &mut leaf, index, &entry_bytes(key, *row, None));
                added += 1;
            }
            if added > 0 {
                self.log_system(admission, vec![(edit, leaf)])?;
                return Ok(added);
            }
            drop((leaf, latch, gate, admission));
            self.make_space(tree, first, *row)?;
        }
    }

    /// Returns a running transaction, and its row, that may still get this key.
    /// The caller holds the latch.
    ///
    /// # Errors
    /// If another row has the key for certain.
    fn rival(
        &mut self,
        table: &Table,
        tree: &Tree,
        (key, own_row): (&[u8], RowId),
        own: u64,
    ) -> Result<Option<(u64, RowId)>, EngineError> {
        let mut others = Vec::new();
        self.walk_latched(tree, key, |entry| {
            let is_key = entry.key == key;
            if is_key {
                others.push(entry.row_id());
            }
            is_key
        })?;
        for other in others.into_iter().filter(|other| *other != own_row) {
            let expected = table.segment.expected(BlockKind::Rows);
            let block = self.reader.get(table.segment.purpose, other.address(), expected)?;
            let Some(stored) = rows::row_at(&block, other.slot()) else { continue };
            // While the block is pinned, no session undoes the version (R4 of row pieces).
            if let Some(holder) = self.holder(stored.version, own)? {
                if self.may_get_key(tree, key, (other, &stored), holder)? {
                    return Ok(Some((holder, other)));
                }
                continue;
            }
            if stored.deleted {
                continue;
            }
            let stored = rows::plain_image(&stored);
            drop(block);
            let image = self.whole(table, other, stored)?;
            if self.key_of(tree, &image, other)? == key {
                return Err(tree.duplicate(table, &image, other));
            }
        }
        Ok(None)
    }

    /// True if a row has this key, or its holder can get it back by undoing changes. The entry
    /// alone proves neither, because it stays marked for statements that see an old version. A
    /// session that waited for a holder without the key would meet false deadlocks.
    fn may_get_key(
        &mut self,
        tree: &Tree,
        key: &[u8],
        (row, stored): (RowId, &rows::StoredRow<'_>),
        holder: u64,
    ) -> Result<bool, EngineError> {
        let mut version = RowVersion::of(stored);
        loop {
            // Pieces of an old version may be gone, so it counts as a rival.
            if is_head(&version.image) {
                return Ok(true);
            }
            if version.is_there {
                let found = self.key_of(tree, &version.image, row)?;
                let is_same = found == key;
                self.key = found;
                if is_same {
                    return Ok(true);
                }
            }
            let before = version.lsn;
            match self.read_log(before)? {
                Some(record) if record.transaction != holder => return Ok(false),
                Some(record) if !version.step_back(record.undo) => return Ok(false),
                Some(_) => self.require_older(version.lsn, before)?,
                None => return Ok(true),
            }
        }
    }

    pub(super) fn mark_entry(
        &mut self,
        thread: &mut Thread<'a>,
        tree: &Tree,
        (key, row): (&[u8], RowId),
    ) -> Result<(), EngineError> {
        let promise = self.promise(INDX, key.len() + 32);
        let admission = self.admit(2 * self.block_bytes_of(INDX) + 256, promise)?;
        let gate = self.log.enter();
        let _latch = tree.share(self.session);
        let change = self.change_entry(tree, (key, row), EntryChange::Mark, gate.floor())?;
        let undo = (tree.segment.created, &Undo::EntryMarked { row, key });
        self.log_change(thread, (admission, promise), undo, vec![change])
    }

    /// Undoes a change of an entry.
    pub(super) fn undo_entry(
        &mut self,
        thread: &mut Thread<'a>,
        tree: &Tree,
        (key, row): (&[u8], RowId),
        (change, previous): (EntryChange, Lsn),
    ) -> Result<(), EngineError> {
        let gate = self.log.enter();
        let _latch = tree.share(self.session);
        let change = self.change_entry(tree, (key, row), change, gate.floor())?;
        self.log_undoing(thread, previous, vec![change])
    }

    fn change_entry(
        &mut self,
        tree: &Tree,
        (key, row): (&[u8], RowId),
        change: EntryChange,
        floor: Lsn,
    ) -> Result<(Edit, ChangingBlock<'a>), EngineError> {
        let address = self.way_to(tree, key, row)?.pop().expect("a leaf").address;
        let mut leaf = self.reader.change(INDX, address, tree.segment.expected(BlockKind::Leaf))?;
        let (index, found) = self.find(&leaf, address, key, row)?;
        let expected = change == EntryChange::TakeMarkOff;
        if found != Some(expected) {
            let said = |marked: Option<bool>| match marked {
                None => "none",
                Some(true) => "a marked one",
                Some(false) => "one without a mark",
            };
            return Err(EngineError::Verification {
                what: format!("index {}: entry of the row at {row}", tree.name),
                found: said(found).to_string(),
                expected: said(Some(expected)).to_string(),
            });
        }
        let mut edit = Edit::new(INDX, address, &leaf, floor);
        match change {
            EntryChange::Mark => set_mark(&mut edit, &mut leaf, index, MARK),
            EntryChange::TakeMarkOff => set_mark(&mut edit, &mut leaf, index, 0),
            EntryChange::Remove => remove_at(&mut edit, &mut leaf, index),
        }
        Ok((edit, leaf))
    }

    /// Returns the index of an entry in a leaf, or where it belongs, and its mark if it is there.
    fn find(
        &self,
        leaf: &[u8],
        address: BlockAddress,
        key: &[u8],
        row: RowId,
    ) -> Result<(usize, Option<bool>), EngineError> {
        let found = LeafView::new(leaf, content_of(leaf)).and_then(|view| {
            let index = view.lower_bound(key, row)?;
            let entry = if index < view.entry_count() { Some(view.entry(index)?) } else { None };
            let same = entry.filter(|entry| entry.order(key, row).is_eq());
            Ok((index, same.map(|entry| entry.is_marked())))
        });
        found.map_err(|error| self.broken(error, address))
    }

    /// Makes room for an entry: splits one node on its path, or removes the
    /// marked entries of its leaf.
    fn make_space(&mut self, tree: &Tree, key: &[u8], row: RowId) -> Result<(), EngineError> {
        let mut fresh = Vec::new();
        for _ in 0..2 {
            fresh.push(match tree.segment.take_from_pool() {
                Some(block) => block,
                None => self.new_block(&tree.segment, BlockKind::Leaf)?,
            });
        }
        let admission = self.admit(self.log.options().record_max(), 0)?;
        let gate = self.log.enter();
        let latch = tree.exclude(self.session);
        let floor = gate.floor();
        let way = self.way_to(tree, key, row)?;
        let leaf = way.last().expect("a leaf");
        let block = self.reader.get(INDX, leaf.address, tree.segment.expected(BlockKind::Leaf))?;
        let is_settled = lsn_of(&block) < self.active.horizon(self.log.end()).0;
        let view =
            LeafView::new(&block, content_of(&block)).map_err(|error| self.broken(error, leaf.address))?;
        let has_marks =
            (0..view.entry_count()).any(|index| view.entry(index).is_ok_and(|entry| entry.is_marked()));
        let has_room = room(&block) >= leaf_entry_bytes(key.len());
        drop(block);
        let changes = if has_room {
            // Another session has made room meanwhile.
            Vec::new()
        } else if is_settled && has_marks {
            let mut block = self.reader.change(INDX, leaf.address, tree.segment.expected(BlockKind::Leaf))?;
            let mut edit = Edit::new(INDX, leaf.address, &block, floor);
            clean(&mut edit, &mut block);
            vec![(edit, block)]
        } else {
            self.split(tree, &way, (key, row), floor, &mut fresh)?
        };
        let result = if changes.is_empty() { Ok(()) } else { self.log_system(admission, changes) };
        drop((latch, gate));
        fresh.into_iter().for_each(|block| tree.segment.add_to_pool(block));
        result
    }

    /// Splits the lowest node on the path whose parent has room.
    fn split(
        &mut self,
        tree: &Tree,
        way: &[Step],
        (key, row): (&[u8], RowId),
        floor: Lsn,
        fresh: &mut Vec<BlockAddress>,
    ) -> Result<Vec<(Edit, ChangingBlock<'a>)>, EngineError> {
        for (level, step) in way.iter().enumerate().rev() {
            let expected = tree.segment.expected(step.kind);
            let block = self.reader.get(INDX, step.address, expected)?;
            let at = divide(&block, step.kind, key, row);
            let separator = self.separator(&block, step, at, (key, row))?;
            drop(block);
            let Some(parent) = level.checked_sub(1).map(|above| &way[above]) else {
                return self.split_root(tree, step, (at, separator), floor, fresh);
            };
            let above = self.reader.get(INDX, parent.address, tree.segment.expected(BlockKind::Branch))?;
            let needed = leaf_entry_bytes(separator.0.len()) + CHILD_BYTES;
            let has_room = room(&above) >= needed;
            drop(above);
            if has_room {
                return self.split_below(tree, (parent, step), (at, separator), floor, fresh);
            }
        }
        unreachable!("the root is split if nothing else is")
    }

    /// Returns the first entry of the new node.
    fn separator(
        &self,
        block: &[u8],
        step: &Step,
        at: usize,
        (key, row): (&[u8], RowId),
    ) -> Result<(Vec<u8>, RowId), EngineError> {
        let own = |entry: Entry<'_>| (entry.key.to_vec(), entry.row_id());
        let content = content_of(block);
        let found = match step.kind {
            BlockKind::Leaf if at == content.entries as usize => Ok((key.to_vec(), row)),
            BlockKind::Leaf => LeafView::new(block, content).and_then(|view| view.entry(at)).map(own),
            _ => {
                BranchView::new(block, content).and_then(|view| view.entry(at)).map(|entry| own(entry.first))
            }
        };
        found.map_err(|error| self.broken(error, step.address))
    }

    fn count_split(&self, kind: BlockKind) {
        let counted = if kind == BlockKind::Leaf { Statistic::LeafSplits } else { Statistic::BranchSplits };
        self.session.count(counted, 1);
    }

    fn split_below(
        &mut self,
        tree: &Tree,
        (parent, step): (&Step, &Step),
        (at, separator): (usize, (Vec<u8>, RowId)),
        floor: Lsn,
        fresh: &mut Vec<BlockAddress>,
    ) -> Result<Vec<(Edit, ChangingBlock<'a>)>, EngineError> {
        let right_address = fresh.pop().expect("two were prepared");
        let (is_leaf, start) = (step.kind == BlockKind::Leaf, start_of(step.kind));
        let branch = tree.segment.expected(BlockKind::Branch);
        let mut above = self.reader.change(INDX, parent.address, branch)?;
        let mut left = self.reader.change(INDX, step.address, tree.segment.expected(step.kind))?;
        let mut right = self.reader.change(INDX, right_address, tree.segment.expected(BlockKind::Leaf))?;
        let content = content_of(&left);
        let mut edit_right = Edit::format(INDX, right_address, &mut right, step.kind);
        fill(&mut edit_right, &mut right, start, &left, at, content.entries as usize);
        let mut edit_left = Edit::new(INDX, step.address, &left, floor);
        let end = if at < content.entries as usize { slot(&left, at) } else { end_of(content) };
        if is_leaf {
            let link: Vec<u8> = left[HEADER_BYTES..HEADER_BYTES + LINK_BYTES].to_vec();
            edit_right.write(&mut right, HEADER_BYTES, &link);
            edit_left.write(&mut left, HEADER_BYTES, &link_bytes(Some(right_address)));
        }
        write_counts(&mut edit_left, &mut left, at, end);
        let mut edit_above = Edit::new(INDX, parent.address, &above, floor);
        let view = BranchView::new(&above, content_of(&above));
        let place = view.and_then(|view| {
            let count = view.entry_count();
            let mut place = 0;
            while place < count && view.entry(place)?.first.order(&separator.0, separator.1).is_lt() {
                place += 1;
            }
            Ok(place)
        });
        let place = place.map_err(|error| self.broken(error, parent.address))?;
        let bytes = entry_bytes(&separator.0, separator.1, Some(right_address));
        insert_at(&mut edit_above, &mut above, place, &bytes);
        self.count_split(step.kind);
        Ok(vec![(edit_above, above), (edit_left, left), (edit_right, right)])
    }

    /// Moves the root's contents into two blocks, and makes the root the branch above them.
    fn split_root(
        &mut self,
        tree: &Tree,
        step: &Step,
        (at, separator): (usize, (Vec<u8>, RowId)),
        floor: Lsn,
        fresh: &mut Vec<BlockAddress>,
    ) -> Result<Vec<(Edit, ChangingBlock<'a>)>, EngineError> {
        let addresses = [fresh.pop().expect("two were prepared"), fresh.pop().expect("two were prepared")];
        let (kind, start) = (step.kind, start_of(step.kind));
        let mut root = self.reader.change(INDX, step.address, tree.segment.expected(kind))?;
        let entries = content_of(&root).entries as usize;
        let mut changes = Vec::new();
        for (address, (from, to)) in addresses.into_iter().zip([(0, at), (at, entries)]) {
            let mut block = self.reader.change(INDX, address, tree.segment.expected(BlockKind::Leaf))?;
            let mut edit = Edit::format(INDX, address, &mut block, kind);
            fill(&mut edit, &mut block, start, &root, from, to);
            if kind == BlockKind::Leaf && from == 0 && address == addresses[0] {
                edit.write(&mut block, HEADER_BYTES, &link_bytes(Some(addresses[1])));
            }
            changes.push((edit, block));
        }
        let mut edit = Edit::new(INDX, step.address, &root, floor);
        edit.write(&mut root, 4, &[BlockKind::Branch as u8]);
        write_counts(&mut edit, &mut root, 0, HEADER_BYTES);
        let first = entry_bytes(&[], RowId(0), Some(addresses[0]));
        insert_at(&mut edit, &mut root, 0, &first);
        insert_at(&mut edit, &mut root, 1, &entry_bytes(&separator.0, separator.1, Some(addresses[1])));
        changes.push((edit, root));
        tree.height.store(tree.height() + 1, Relaxed);
        self.count_split(kind);
        Ok(changes)
    }

    /// Returns the rows with entries of this key, marked or not, in order.
    pub(super) fn rows_of(&mut self, tree: &Tree, key: &[u8]) -> Result<Vec<RowId>, EngineError> {
        let mut rows = Vec::new();
        self.walk(tree, key, |entry| {
            let is_key = entry.key == key;
            if is_key {
                rows.push(entry.row_id());
            }
            is_key
        })?;
        Ok(rows)
    }

    /// Visits entries in order, from the first at or above `from`, until `visit` returns false.
    pub(super) fn walk(
        &mut self,
        tree: &Tree,
        from: &[u8],
        visit: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<(), EngineError> {
        let _latch = tree.share(self.session);
        self.walk_latched(tree, from, visit)
    }

    fn walk_latched(
        &mut self,
        tree: &Tree,
        from: &[u8],
        mut visit: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<(), EngineError> {
        let mut next = self.way_to(tree, from, RowId(0))?.pop().map(|step| step.address);
        let mut leaves = 0;
        while let Some(address) = next {
            let block = self.reader.get(INDX, address, tree.segment.expected(BlockKind::Leaf))?;
            let broken = |error| self.broken(error, address);
            let view = LeafView::new(&block, content_of(&block)).map_err(broken)?;
            let first = if leaves > 0 { 0 } else { view.lower_bound(from, RowId(0)).map_err(broken)? };
            for index in first..view.entry_count() {
                if !visit(view.entry(index).map_err(broken)?) {
                    return Ok(());
                }
            }
            leaves += 1;
            next = match view.next() {
                None => None,
                Some(next) => {
                    self.require_end(tree, leaves, address)?;
                    Some(self.require_own(Ok(next), address)?)
                }
            };
        }
        Ok(())
    }
}

/// Returns the index at which a node is split: the middle, or the end for a
/// last leaf that grows there.
fn divide(block: &[u8], kind: BlockKind, key: &[u8], row: RowId) -> usize {
    let content = content_of(block);
    if kind == BlockKind::Leaf
        && let Ok(view) = LeafView::new(block, content)
        && view.next().is_none()
        && view.lower_bound(key, row).is_ok_and(|index| index == content.entries as usize)
    {
        return content.entries as usize;
    }
    middle(block, kind)
}

fn set_mark(edit: &mut Edit, block: &mut [u8], index: usize, mark: u64) {
    let content = content_of(block);
    let entries = content.entries as usize;
    let end = if index + 1 < entries { slot(block, index + 1) } else { end_of(content) };
    // The row id is the end of an entry, highest byte first.
    let at = end - 8;
    let byte = block[at] & 0x7F | (mark >> 56) as u8;
    edit.write(block, at, &[byte]);
}

/// Removes the marked entries from a leaf.
fn clean(edit: &mut Edit, block: &mut [u8]) {
    let mut index = content_of(block).entries as usize;
    while index > 0 {
        index -= 1;
        let content = content_of(block);
        let marked =
            LeafView::new(block, content).and_then(|view| view.entry(index)).is_ok_and(|it| it.is_marked());
        if marked {
            remove_at(edit, block, index);
        }
    }
}
