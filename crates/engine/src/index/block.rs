//! Leaf and branch blocks of an index: how entries lie in them.
//!
//! ```text
//! leaf    byte 24  next leaf [file u16][0 u16][block u32], file 0: this is the last
//!              32  entries, in order: [length u8 | FF, length u16][key][row id u64 BE]
//! branch  byte 24  entries, in order: as in a leaf, and [child: file u16][block u32]
//!              ..  zeros
//!              ..  slots from the end of the block down: u16, where entry 0, 1, .. starts
//! ```
//! Numbers are little-endian but for the row id, whose bytes compare as it does.
//! The header's `entries` counts the slots, its `used` the bytes from byte 24 up
//! to the end of the last entry. An entry of a branch is the whole first entry of
//! its child, row id included, so that rows of one key may fill many leaves and
//! each of them still has an order and a way to it.
//!
//! The key rule: a stored key never ends in the byte 00, and keys compare as if
//! both went on with 00 bytes for ever. Then plain comparison, shorter is less,
//! is right: where one key is a prefix of the other, the longer one has a last
//! byte above 00 somewhere in the zeros of the shorter. Cutting off the zeros
//! ([`trimmed`]) therefore changes no order, and keys padded to a machine word
//! compare as words.
//!
//! A builder holds no block: the block to fill is given to each call, so that it
//! can lie in the buffer of a writer. Nothing is moved or sorted: entries come in
//! order. A view trusts nothing it reads; bytes that are no index block give a
//! [`LayoutError`] and no panic.
//!
//! Invariants:
//! - I1 A stored key does not end in 00.
//! - I2 The entries of a block are in order: by key, then by row id.
//! - I3 Entries grow up, slots grow down, and they never meet.

use crate::EngineError;
use crate::sort::codec::RecordKey;
use crate::storage::block::{Content, HEADER_BYTES};
use plumb_io::strict_assert;
use plumb_units::{BlockAddress, BlockNumber, FileId, RowId};
use std::cmp::Ordering;
use std::path::Path;

/// Bytes of a leaf's content before its first entry: the address of the next leaf.
pub const LINK_BYTES: usize = 8;
/// Bytes of a row id after a key.
const ROW_ID_BYTES: usize = 8;
/// Bytes of a child's address after a separator.
pub(crate) const CHILD_BYTES: usize = 6;
/// The bit of an entry's row id, which no row id has, that marks it as not valid any more.
pub(crate) const MARK: u64 = 1 << 63;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 2;
/// Marks a length of 255 and more: the length follows in two bytes.
const LONG_MARK: u8 = 0xFF;
/// Bytes of the longest key written as one word.
const WORD_BYTES: usize = 8;

/// The longest key that may be stored: two of them fit a branch, without which
/// a level of the tree would not be smaller than the one below.
#[must_use]
pub const fn key_bytes_max(block_bytes: usize) -> usize {
    (block_bytes - HEADER_BYTES - LINK_BYTES) / 2 - (3 + ROW_ID_BYTES + CHILD_BYTES + SLOT_BYTES)
}

/// Bytes that a leaf spends on an entry with a key of `key_bytes` bytes, slot included.
#[must_use]
pub const fn leaf_entry_bytes(key_bytes: usize) -> usize {
    length_bytes(key_bytes) + key_bytes + ROW_ID_BYTES + SLOT_BYTES
}

/// A key without the 00 bytes at its end.
#[must_use]
pub fn trimmed(key: &[u8]) -> &[u8] {
    let length = key.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &key[..length]
}

const fn length_bytes(key_bytes: usize) -> usize {
    if key_bytes < LONG_MARK as usize { 1 } else { 3 }
}

/// Fills a leaf block. It keeps where the next entry goes; the block is given to
/// each call and must be the same until `finish`.
#[derive(Debug)]
pub struct LeafBuilder {
    area: Area,
}

impl LeafBuilder {
    /// A builder of an empty leaf.
    #[must_use]
    pub const fn new() -> LeafBuilder {
        LeafBuilder { area: Area::starting_at(HEADER_BYTES + LINK_BYTES) }
    }

    /// Entries so far.
    #[must_use]
    pub const fn entry_count(&self) -> usize {
        self.area.entries
    }

    /// Adds an entry, not below the last one; `false` when it does not fit, and
    /// the block is as before.
    #[inline]
    pub fn push(&mut self, block: &mut [u8], key: &[u8], row: RowId) -> bool {
        strict_assert!(key.last() != Some(&0), "I1: a stored key does not end in 00");
        let bytes = length_bytes(key.len()) + key.len() + ROW_ID_BYTES;
        let Some(at) = self.area.reserve(block, bytes) else { return false };
        write_entry(&mut block[at..at + bytes], key, row);
        true
    }

    /// Adds the entry of a record; otherwise as `push`.
    #[inline]
    pub fn push_key(&mut self, block: &mut [u8], key: RecordKey<'_>, row: RowId) -> bool {
        match key {
            RecordKey::Word(word) => self.push_word(block, word, row),
            RecordKey::Bytes(bytes) => self.push(block, bytes, row),
        }
    }

    /// Adds an entry whose key is the bytes of a big-endian word without the 00
    /// bytes at its end; otherwise as `push`.
    #[inline]
    pub fn push_word(&mut self, block: &mut [u8], key: u64, row: RowId) -> bool {
        let key_bytes = WORD_BYTES - (key.trailing_zeros() / 8) as usize;
        let bytes = 1 + key_bytes + ROW_ID_BYTES;
        let Some(at) = self.area.reserve(block, bytes) else { return false };
        // The whole word is written, then the row id over its zeros: two stores
        // instead of a copy of varying length. It needs room up to the slots for
        // the zeros that remain behind the entry.
        const ROOM: usize = 1 + WORD_BYTES + ROW_ID_BYTES;
        if at + ROOM <= self.area.slots_start(block) {
            let entry = &mut block[at..at + ROOM];
            entry[0] = key_bytes as u8;
            entry[1..1 + WORD_BYTES].copy_from_slice(&key.to_be_bytes());
            entry[1 + key_bytes..1 + key_bytes + ROW_ID_BYTES].copy_from_slice(&row.0.to_be_bytes());
        } else {
            write_entry(&mut block[at..at + bytes], &key.to_be_bytes()[..key_bytes], row);
        }
        true
    }

    /// Completes the block, but for header and checksum, and starts anew.
    pub fn finish(&mut self, block: &mut [u8], next: Option<BlockAddress>) -> Content {
        assert!(
            next.is_none_or(|next| next.file.0 != 0),
            "files are numbered from 1: 0 is the end of leaves"
        );
        set_next(block, next.unwrap_or_default());
        let content = self.area.close(block);
        *self = LeafBuilder::new();
        content
    }
}

/// Sets the next leaf of a leaf; one that was finished must be sealed again.
pub fn set_next(block: &mut [u8], next: BlockAddress) {
    block[HEADER_BYTES..HEADER_BYTES + 2].copy_from_slice(&next.file.0.to_le_bytes());
    block[HEADER_BYTES + 2..HEADER_BYTES + 4].fill(0);
    block[HEADER_BYTES + 4..HEADER_BYTES + LINK_BYTES].copy_from_slice(&next.block.0.to_le_bytes());
}

impl Default for LeafBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Fills a branch block, as [`LeafBuilder`] does a leaf.
#[derive(Debug)]
pub struct BranchBuilder {
    area: Area,
}

impl BranchBuilder {
    /// A builder of an empty branch.
    #[must_use]
    pub const fn new() -> BranchBuilder {
        BranchBuilder { area: Area::starting_at(HEADER_BYTES) }
    }

    /// Entries so far.
    #[must_use]
    pub const fn entry_count(&self) -> usize {
        self.area.entries
    }

    /// Adds a child with its first entry; `false` when it does not fit.
    pub fn push(&mut self, block: &mut [u8], key: &[u8], row: RowId, child: BlockAddress) -> bool {
        assert!(key.last() != Some(&0), "I1: a stored key does not end in 00");
        let entry_bytes = length_bytes(key.len()) + key.len() + ROW_ID_BYTES;
        let Some(at) = self.area.reserve(block, entry_bytes + CHILD_BYTES) else { return false };
        let (entry, address) = block[at..at + entry_bytes + CHILD_BYTES].split_at_mut(entry_bytes);
        write_entry(entry, key, row);
        address[..2].copy_from_slice(&child.file.0.to_le_bytes());
        address[2..].copy_from_slice(&child.block.0.to_le_bytes());
        true
    }

    /// Completes the block, but for header and checksum, and starts anew.
    pub fn finish(&mut self, block: &mut [u8]) -> Content {
        let content = self.area.close(block);
        assert!(in_order(block, content, HEADER_BYTES, CHILD_BYTES), "I2: a branch is in order");
        *self = BranchBuilder::new();
        content
    }
}

impl Default for BranchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a builder is: what both kinds of block share.
#[derive(Debug)]
struct Area {
    entries: usize,
    /// Where the next entry starts, from the start of the block.
    end: usize,
}

impl Area {
    const fn starting_at(start: usize) -> Area {
        Area { entries: 0, end: start }
    }

    /// Where the slots start: what lies between `end` and there is free.
    #[inline]
    fn slots_start(&self, block: &[u8]) -> usize {
        block.len() - SLOT_BYTES * self.entries
    }

    /// Makes room for an entry and gives it a slot.
    #[inline]
    fn reserve(&mut self, block: &mut [u8], bytes: usize) -> Option<usize> {
        let at = self.end;
        let slot = self.slots_start(block) - SLOT_BYTES;
        if at + bytes > slot {
            return None;
        }
        block[slot..slot + SLOT_BYTES].copy_from_slice(&(at as u16).to_le_bytes());
        self.entries += 1;
        self.end = at + bytes;
        Some(at)
    }

    fn close(&self, block: &mut [u8]) -> Content {
        let slots_start = self.slots_start(block);
        assert!(self.entries > 0, "a block of an index has an entry");
        assert!(self.end <= slots_start, "I3: entries up to byte {}, slots from {slots_start}", self.end);
        block[self.end..slots_start].fill(0);
        Content { entries: self.entries as u16, used: (self.end - HEADER_BYTES) as u16 }
    }
}

/// True when the entries of a finished leaf can be read back in order.
pub(super) fn leaf_in_order(block: &[u8], content: Content) -> bool {
    in_order(block, content, HEADER_BYTES + LINK_BYTES, 0)
}

/// True when the entries of a finished block can be read back, each above the one before.
fn in_order(block: &[u8], content: Content, start: usize, tail: usize) -> bool {
    let Ok(layout) = Layout::new(block, content, start, tail) else { return false };
    let mut last = None;
    Walk::new(layout).all(|parsed| {
        let Ok(Parsed { entry, .. }) = parsed else { return false };
        let before = last.replace(entry);
        before.is_none_or(|before| before.order(entry.key, entry.row).is_lt())
    })
}

#[inline]
fn write_entry(entry: &mut [u8], key: &[u8], row: RowId) {
    let at = length_bytes(key.len());
    if at == 1 {
        entry[0] = key.len() as u8;
    } else {
        entry[0] = LONG_MARK;
        entry[1..3].copy_from_slice(&(key.len() as u16).to_le_bytes());
    }
    entry[at..at + key.len()].copy_from_slice(key);
    entry[at + key.len()..].copy_from_slice(&row.0.to_be_bytes());
}

/// Why a block's content is not that of an index block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: found {found}, expected {expected}")]
pub struct LayoutError {
    /// Which part is wrong.
    pub what: &'static str,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

impl LayoutError {
    /// The error with the block it was found in.
    #[must_use]
    pub fn at(self, path: &Path, address: BlockAddress) -> EngineError {
        let LayoutError { what, found, expected } = self;
        EngineError::CorruptBlock { path: path.to_path_buf(), address, what, found, expected }
    }
}

/// An entry of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The normalised key, as stored.
    pub key: &'a [u8],
    /// The row it belongs to.
    pub row: RowId,
}

impl Entry<'_> {
    /// Compares by key, then by row id: the order of an index. A mark does not count.
    #[inline]
    #[must_use]
    pub fn order(&self, key: &[u8], row: RowId) -> Ordering {
        self.key.cmp(key).then_with(|| (self.row.0 & !MARK).cmp(&row.0))
    }

    /// Whether the row has been deleted or has another key now; for those who still see it the entry stays.
    #[inline]
    #[must_use]
    pub const fn is_marked(&self) -> bool {
        self.row.0 & MARK != 0
    }

    /// The row without a mark.
    #[inline]
    #[must_use]
    pub const fn row_id(&self) -> RowId {
        RowId(self.row.0 & !MARK)
    }
}

/// An entry of a branch: a child with the first entry below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separator<'a> {
    /// The first entry below the child when the tree was written.
    pub first: Entry<'a>,
    /// The block below.
    pub child: BlockAddress,
}

/// Reads a leaf block.
#[derive(Debug, Clone, Copy)]
pub struct LeafView<'a> {
    layout: Layout<'a>,
    next: Option<BlockAddress>,
}

impl<'a> LeafView<'a> {
    /// A view of a whole block, header included. Looks at the frame only: each
    /// entry is looked at when it is asked for.
    ///
    /// # Errors
    /// When entries and slots cannot both fit, or the next leaf is no address.
    pub fn new(block: &'a [u8], content: Content) -> Result<LeafView<'a>, LayoutError> {
        let layout = Layout::new(block, content, HEADER_BYTES + LINK_BYTES, 0)?;
        let link = &block[HEADER_BYTES..HEADER_BYTES + LINK_BYTES];
        let next = BlockAddress {
            file: FileId(u16::from_le_bytes([link[0], link[1]])),
            block: BlockNumber(u32::from_le_bytes([link[4], link[5], link[6], link[7]])),
        };
        if link[2..4] != [0, 0] || (next.file.0 == 0 && next.block.0 != 0) {
            return Err(LayoutError {
                what: "address of the next leaf",
                found: format!("{link:02X?}"),
                expected: "a file, two bytes 00 and a block, or eight bytes 00".to_string(),
            });
        }
        Ok(LeafView { layout, next: (next.file.0 != 0).then_some(next) })
    }

    /// How many entries.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.layout.entries
    }

    /// The leaf that follows in key order.
    #[must_use]
    pub fn next(&self) -> Option<BlockAddress> {
        self.next
    }

    /// Entry number `index`.
    ///
    /// # Errors
    /// When there is no such entry, or its bytes reach outside the content.
    #[inline]
    pub fn entry(&self, index: usize) -> Result<Entry<'a>, LayoutError> {
        let offset = self.layout.slot(index)?;
        self.layout.parse(index, offset).map(|parsed| parsed.entry)
    }

    /// The entries in order. Strict: each must start where the one before ended,
    /// and the last end where the content does.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, LayoutError>> + use<'a> {
        Walk::new(self.layout).map(|parsed| parsed.map(|parsed| parsed.entry))
    }

    /// The number of the first entry that is not below this one; the number of
    /// entries when all are.
    ///
    /// # Errors
    /// When an entry on the way cannot be read.
    pub fn lower_bound(&self, key: &[u8], row: RowId) -> Result<usize, LayoutError> {
        self.layout.partition(|entry| entry.order(key, row) == Ordering::Less)
    }
}

/// Reads a branch block.
#[derive(Debug, Clone, Copy)]
pub struct BranchView<'a> {
    layout: Layout<'a>,
}

impl<'a> BranchView<'a> {
    /// A view of a whole block, header included; each entry is looked at when it
    /// is asked for.
    ///
    /// # Errors
    /// When entries and slots cannot both fit, or there is no entry.
    pub fn new(block: &'a [u8], content: Content) -> Result<BranchView<'a>, LayoutError> {
        let layout = Layout::new(block, content, HEADER_BYTES, CHILD_BYTES)?;
        if layout.entries == 0 {
            let expected = "at least 1".to_string();
            return Err(LayoutError { what: "children of a branch", found: "0".to_string(), expected });
        }
        Ok(BranchView { layout })
    }

    /// How many children.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.layout.entries
    }

    /// Child number `index`.
    ///
    /// # Errors
    /// When there is no such entry, or its bytes reach outside the content.
    #[inline]
    pub fn entry(&self, index: usize) -> Result<Separator<'a>, LayoutError> {
        let offset = self.layout.slot(index)?;
        self.layout.parse(index, offset).map(Parsed::separator)
    }

    /// The children in order; as strict as [`LeafView::entries`].
    pub fn entries(&self) -> impl Iterator<Item = Result<Separator<'a>, LayoutError>> + use<'a> {
        Walk::new(self.layout).map(|parsed| parsed.map(Parsed::separator))
    }

    /// The child below which an entry is, if it is anywhere: the last one whose
    /// first entry is not above it, or the first one.
    ///
    /// # Errors
    /// When an entry on the way cannot be read.
    pub fn child_for(&self, key: &[u8], row: RowId) -> Result<BlockAddress, LayoutError> {
        let above = self.layout.partition(|entry| entry.order(key, row) != Ordering::Greater)?;
        self.entry(above.saturating_sub(1)).map(|separator| separator.child)
    }
}

/// The frame of a block: where entries may be, and what follows each of them.
#[derive(Debug, Clone, Copy)]
struct Layout<'a> {
    block: &'a [u8],
    entries: usize,
    /// Where the first entry starts and the last one ends.
    start: usize,
    end: usize,
    /// Bytes after the row id.
    tail: usize,
}

struct Parsed<'a> {
    entry: Entry<'a>,
    tail: &'a [u8],
    /// Where the entry ends.
    end: usize,
}

impl<'a> Parsed<'a> {
    fn separator(self) -> Separator<'a> {
        // A branch is laid out with a tail of six bytes.
        let [f0, f1, b0, b1, b2, b3] = *self.tail else {
            return Separator { first: self.entry, child: BlockAddress::default() };
        };
        let file = FileId(u16::from_le_bytes([f0, f1]));
        let block = BlockNumber(u32::from_le_bytes([b0, b1, b2, b3]));
        Separator { first: self.entry, child: BlockAddress { file, block } }
    }
}

impl<'a> Layout<'a> {
    fn new(block: &'a [u8], content: Content, start: usize, tail: usize) -> Result<Layout<'a>, LayoutError> {
        let entries = usize::from(content.entries);
        let end = HEADER_BYTES + usize::from(content.used);
        if end < start || end + SLOT_BYTES * entries > block.len() {
            return Err(LayoutError {
                what: "size of the content",
                found: format!("{} bytes and {entries} slots", content.used),
                expected: format!(
                    "at least {} bytes, and no more with the slots than {}",
                    start - HEADER_BYTES,
                    block.len().saturating_sub(HEADER_BYTES)
                ),
            });
        }
        Ok(Layout { block, entries, start, end, tail })
    }

    /// Where entry `index` starts, as its slot says.
    #[inline]
    fn slot(&self, index: usize) -> Result<usize, LayoutError> {
        if index >= self.entries {
            return Err(no_such_entry(index, self.entries));
        }
        let at = self.block.len() - SLOT_BYTES * (index + 1);
        let offset = usize::from(u16::from_le_bytes([self.block[at], self.block[at + 1]]));
        if offset < self.start { Err(self.outside(index, offset)) } else { Ok(offset) }
    }

    #[inline]
    fn parse(&self, index: usize, offset: usize) -> Result<Parsed<'a>, LayoutError> {
        self.parse_at(offset).ok_or_else(|| self.outside(index, offset))
    }

    #[inline]
    fn parse_at(&self, offset: usize) -> Option<Parsed<'a>> {
        let bytes = self.block[..self.end].get(offset..)?;
        let (key_bytes, at) = match *bytes.first()? {
            LONG_MARK => (usize::from(u16::from_le_bytes([*bytes.get(1)?, *bytes.get(2)?])), 3),
            short => (usize::from(short), 1),
        };
        let (key, rest) = bytes.get(at..)?.split_at_checked(key_bytes)?;
        let (row, rest) = rest.split_first_chunk::<ROW_ID_BYTES>()?;
        let tail = rest.get(..self.tail)?;
        let end = offset + at + key_bytes + ROW_ID_BYTES + self.tail;
        Some(Parsed { entry: Entry { key, row: RowId(u64::from_be_bytes(*row)) }, tail, end })
    }

    /// How many entries, from the first, satisfy `below`.
    fn partition(&self, mut below: impl FnMut(&Entry<'a>) -> bool) -> Result<usize, LayoutError> {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low.midpoint(high);
            let offset = self.slot(middle)?;
            if below(&self.parse(middle, offset)?.entry) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    #[cold]
    fn outside(&self, index: usize, offset: usize) -> LayoutError {
        LayoutError {
            what: "an entry's place",
            found: format!("entry {index} at byte {offset}, which is not all inside"),
            expected: format!("all of it from byte {} up to byte {}", self.start, self.end),
        }
    }
}

#[cold]
fn no_such_entry(index: usize, entries: usize) -> LayoutError {
    LayoutError { what: "entries", found: entries.to_string(), expected: format!("more than {index}") }
}

/// Goes over all entries once, and stops at the first that is not as written.
struct Walk<'a> {
    layout: Layout<'a>,
    index: usize,
    offset: usize,
}

impl<'a> Walk<'a> {
    fn new(layout: Layout<'a>) -> Walk<'a> {
        Walk { layout, index: 0, offset: layout.start }
    }

    #[inline]
    fn step(&mut self) -> Result<Parsed<'a>, LayoutError> {
        let offset = self.layout.slot(self.index)?;
        if offset != self.offset {
            return Err(not_adjacent(self.index, offset, self.offset));
        }
        let parsed = self.layout.parse(self.index, offset)?;
        self.index += 1;
        self.offset = parsed.end;
        Ok(parsed)
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Parsed<'a>, LayoutError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index < self.layout.entries {
            let parsed = self.step();
            if parsed.is_err() {
                // The error is the last item.
                self.index = usize::MAX;
            }
            return Some(parsed);
        }
        if self.index == self.layout.entries && self.offset != self.layout.end {
            self.index = usize::MAX;
            let expected = format!("byte {}", self.layout.end);
            let found = format!("byte {}", self.offset);
            return Some(Err(LayoutError { what: "end of the last entry", found, expected }));
        }
        None
    }
}

#[cold]
fn not_adjacent(index: usize, offset: usize, expected: usize) -> LayoutError {
    LayoutError {
        what: "an entry's place",
        found: format!("entry {index} at byte {offset}"),
        expected: format!("byte {expected}, where the entry before it ends"),
    }
}

#[cfg(test)]
mod tests;
