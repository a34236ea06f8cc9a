//! Leaf and branch blocks of an index, and the layout of their entries.
//!
//! ```text
//! leaf    byte 24  next leaf [file u16][0 u16][block u32], file 0: this is the last
//!              32  entries, in order: [length u8 | FF, length u16][key][row id u64 BE]
//! branch  byte 24  entries, in order: as in a leaf, and [child: file u16][block u32]
//!              ..  zeros
//!              ..  slots from the end of the block down: u16, offset of entry 0, 1, ..
//! ```
//! Numbers are little-endian except the row id, which is big-endian so that its bytes sort like the
//! number. The header's `entries` counts the slots, and its `used` the bytes from byte 24 to the
//! end of the last entry. An entry of a branch is the whole first entry of its child, row id
//! included. So rows of one key may fill many leaves, and each still has an order and a path.
//!
//! The key rule: a stored key never ends in byte 00, and keys compare as if both were padded with
//! 00 bytes forever. Plain comparison, shorter is less, gives that order. If one key is a prefix of
//! the other, the longer one's last byte is above 00, and compares with a padding byte of the
//! shorter. Therefore cutting off the zeros ([`trimmed`]) changes no order, and keys padded to a
//! machine word compare as words.
//!
//! A builder holds no block: each call gets the block to fill, so that it can be in a writer's
//! buffer. Nothing is moved or sorted, because entries come in order. A view trusts nothing it
//! reads: bytes that are no index block give a [`LayoutError`] and no panic.
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

/// Bytes of a leaf before its first entry: the address of the next leaf.
pub const LINK_BYTES: usize = 8;
/// Bytes of a row id after a key.
const ROW_ID_BYTES: usize = 8;
/// Bytes of a child's address after a separator.
pub(crate) const CHILD_BYTES: usize = 6;
/// Bit of an entry's row id, unused by row ids, that marks the entry as no longer valid.
pub(crate) const MARK: u64 = 1 << 63;
pub(crate) const SLOT_BYTES: usize = 2;
/// Length byte that announces a length of 255 or more in the next two bytes.
const LONG_MARK: u8 = 0xFF;
/// Bytes of the longest key that is written as one word.
const WORD_BYTES: usize = 8;

/// Returns the most bytes of a key: two of them must fit a branch. Otherwise a level of the tree
/// would be as large as the one below.
pub const fn key_bytes_max(block_bytes: usize) -> usize {
    (block_bytes - HEADER_BYTES - LINK_BYTES) / 2 - (3 + ROW_ID_BYTES + CHILD_BYTES + SLOT_BYTES)
}

/// Returns the bytes that a leaf needs for an entry with a key of `key_bytes`, slot included.
pub const fn leaf_entry_bytes(key_bytes: usize) -> usize {
    length_bytes(key_bytes) + key_bytes + ROW_ID_BYTES + SLOT_BYTES
}

/// Returns a key without its trailing 00 bytes.
pub fn trimmed(key: &[u8]) -> &[u8] {
    let length = key.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &key[..length]
}

const fn length_bytes(key_bytes: usize) -> usize {
    if key_bytes < LONG_MARK as usize { 1 } else { 3 }
}

/// Fills a leaf block. The builder keeps the position of the next entry; each call gets the block,
/// which must be the same until `finish`.
#[derive(Debug)]
pub struct LeafBuilder {
    area: Area,
}

impl LeafBuilder {
    /// Creates a builder of an empty leaf.
    pub const fn new() -> LeafBuilder {
        LeafBuilder { area: Area::starting_at(HEADER_BYTES + LINK_BYTES) }
    }

    /// Returns the number of entries added so far.
    pub const fn entry_count(&self) -> usize {
        self.area.entries
    }

    /// Adds an entry, which must not be below the last one. `false` if it does not fit;
    /// then the block is unchanged.
    #[inline]
    pub fn push(&mut self, block: &mut [u8], key: &[u8], row: RowId) -> bool {
        strict_assert!(key.last() != Some(&0), "I1: a stored key does not end in 00");
        let bytes = length_bytes(key.len()) + key.len() + ROW_ID_BYTES;
        let Some(at) = self.area.reserve(block, bytes) else { return false };
        write_entry(&mut block[at..at + bytes], key, row);
        true
    }

    /// Adds the entry of a record, like [`LeafBuilder::push`].
    #[inline]
    pub fn push_key(&mut self, block: &mut [u8], key: RecordKey<'_>, row: RowId) -> bool {
        match key {
            RecordKey::Word(word) => self.push_word(block, word, row),
            RecordKey::Bytes(bytes) => self.push(block, bytes, row),
        }
    }

    /// Adds an entry whose key is a big-endian word without
    /// trailing 00 bytes, like [`LeafBuilder::push`].
    #[inline]
    pub fn push_word(&mut self, block: &mut [u8], key: u64, row: RowId) -> bool {
        let key_bytes = WORD_BYTES - (key.trailing_zeros() / 8) as usize;
        let bytes = 1 + key_bytes + ROW_ID_BYTES;
        let Some(at) = self.area.reserve(block, bytes) else { return false };
        // Writes the whole word, and then the row id over its zeros: two stores instead of a copy
        // of variable length. The zeros after the entry need room up to the slots.
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

    /// Completes the block except header and checksum, and resets the builder. Returns
    /// the counts for the header.
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

/// Sets the next leaf of a leaf; a finished block must be sealed again.
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

/// Fills a branch block, as [`LeafBuilder`] fills a leaf.
#[derive(Debug)]
pub struct BranchBuilder {
    area: Area,
}

impl BranchBuilder {
    /// Creates a builder of an empty branch.
    pub const fn new() -> BranchBuilder {
        BranchBuilder { area: Area::starting_at(HEADER_BYTES) }
    }

    /// Returns the number of entries added so far.
    pub const fn entry_count(&self) -> usize {
        self.area.entries
    }

    /// Adds a child with its first entry; `false` if it does not fit.
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

    /// Completes the block except header and checksum, and resets the builder. Returns
    /// the counts for the header.
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

/// Position of a builder, shared by both kinds of block.
#[derive(Debug)]
struct Area {
    entries: usize,
    /// Offset of the next entry in the block.
    end: usize,
}

impl Area {
    const fn starting_at(start: usize) -> Area {
        Area { entries: 0, end: start }
    }

    /// Returns the offset of the slots; the bytes from `end` to there are free.
    #[inline]
    fn slots_start(&self, block: &[u8]) -> usize {
        block.len() - SLOT_BYTES * self.entries
    }

    /// Reserves bytes for an entry and writes its slot; returns the entry's offset.
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

/// True if the entries of a finished leaf can be read in order.
pub(super) fn leaf_in_order(block: &[u8], content: Content) -> bool {
    in_order(block, content, HEADER_BYTES + LINK_BYTES, 0)
}

/// True if the entries of a finished block can be read, each above the one before.
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

/// The part of a block that does not fit an index block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: found {found}, expected {expected}")]
pub struct LayoutError {
    /// The wrong part.
    pub what: &'static str,
    /// Contents of that part.
    pub found: String,
    /// Contents that an index block would have.
    pub expected: String,
}

impl LayoutError {
    /// Returns the error of the block at this address and file.
    pub fn at(self, path: &Path, address: BlockAddress) -> EngineError {
        let LayoutError { what, found, expected } = self;
        EngineError::CorruptBlock { path: path.to_path_buf(), address, what, found, expected }
    }
}

/// An entry of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Normalised key, as stored.
    pub key: &'a [u8],
    /// Row of the entry, with [`Entry::is_marked`]'s bit.
    pub row: RowId,
}

impl Entry<'_> {
    /// Compares by key and then by row id, the order of an index; ignores the mark.
    #[inline]
    pub fn order(&self, key: &[u8], row: RowId) -> Ordering {
        self.key.cmp(key).then_with(|| (self.row.0 & !MARK).cmp(&row.0))
    }

    /// True if the row is deleted or has another key now; the entry stays for
    /// sessions that still see it.
    #[inline]
    pub const fn is_marked(&self) -> bool {
        self.row.0 & MARK != 0
    }

    /// Returns the row id without the mark.
    #[inline]
    pub const fn row_id(&self) -> RowId {
        RowId(self.row.0 & !MARK)
    }
}

/// An entry of a branch: a child and the first entry below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separator<'a> {
    /// First entry below the child when the tree was written.
    pub first: Entry<'a>,
    /// Address of the child.
    pub child: BlockAddress,
}

/// Reads a leaf block.
#[derive(Debug, Clone, Copy)]
pub struct LeafView<'a> {
    layout: Layout<'a>,
    next: Option<BlockAddress>,
}

impl<'a> LeafView<'a> {
    /// Creates a view of a whole block, header included. Checks the layout only; an entry is
    /// checked when it is read.
    ///
    /// # Errors
    /// If entries and slots cannot both fit, or the next leaf is no valid address.
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

    /// Returns the number of entries.
    pub fn entry_count(&self) -> usize {
        self.layout.entries
    }

    /// Returns the next leaf in key order; `None` for the last.
    pub fn next(&self) -> Option<BlockAddress> {
        self.next
    }

    /// Returns entry `index`, from 0.
    ///
    /// # Errors
    /// If there is no such entry, or its bytes reach outside the content.
    #[inline]
    pub fn entry(&self, index: usize) -> Result<Entry<'a>, LayoutError> {
        let offset = self.layout.slot(index)?;
        self.layout.parse(index, offset).map(|parsed| parsed.entry)
    }

    /// Iterates over the entries in order, strictly: each must start where the one before ended,
    /// and the last must end where the content ends.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, LayoutError>> + use<'a> {
        Walk::new(self.layout).map(|parsed| parsed.map(|parsed| parsed.entry))
    }

    /// Returns the index of the first entry that is not below this one; the number
    /// of entries if all are.
    ///
    /// # Errors
    /// If an entry compared cannot be read.
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
    /// Creates a view of a whole block, header included; an entry is checked when it is read.
    ///
    /// # Errors
    /// If entries and slots cannot both fit, or there is no entry.
    pub fn new(block: &'a [u8], content: Content) -> Result<BranchView<'a>, LayoutError> {
        let layout = Layout::new(block, content, HEADER_BYTES, CHILD_BYTES)?;
        if layout.entries == 0 {
            let expected = "at least 1".to_string();
            return Err(LayoutError { what: "children of a branch", found: "0".to_string(), expected });
        }
        Ok(BranchView { layout })
    }

    /// Returns the number of children.
    pub fn entry_count(&self) -> usize {
        self.layout.entries
    }

    /// Returns child `index`, from 0.
    ///
    /// # Errors
    /// If there is no such entry, or its bytes reach outside the content.
    #[inline]
    pub fn entry(&self, index: usize) -> Result<Separator<'a>, LayoutError> {
        let offset = self.layout.slot(index)?;
        self.layout.parse(index, offset).map(Parsed::separator)
    }

    /// Iterates over the children in order, as strictly as [`LeafView::entries`].
    pub fn entries(&self) -> impl Iterator<Item = Result<Separator<'a>, LayoutError>> + use<'a> {
        Walk::new(self.layout).map(|parsed| parsed.map(Parsed::separator))
    }

    /// Returns the child that covers an entry: the last child whose first entry is not above
    /// it, or the first child.
    ///
    /// # Errors
    /// If an entry compared cannot be read.
    pub fn child_for(&self, key: &[u8], row: RowId) -> Result<BlockAddress, LayoutError> {
        let above = self.layout.partition(|entry| entry.order(key, row) != Ordering::Greater)?;
        self.entry(above.saturating_sub(1)).map(|separator| separator.child)
    }
}

/// The layout of a block: the range of its entries, and the bytes that follow each.
#[derive(Debug, Clone, Copy)]
struct Layout<'a> {
    block: &'a [u8],
    entries: usize,
    /// Offsets of the first entry's start and the last entry's end.
    start: usize,
    end: usize,
    /// Bytes after the row id.
    tail: usize,
}

struct Parsed<'a> {
    entry: Entry<'a>,
    tail: &'a [u8],
    /// Offset of the entry's end.
    end: usize,
}

impl<'a> Parsed<'a> {
    fn separator(self) -> Separator<'a> {
        // A branch has a tail of six bytes.
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

    /// Returns the offset of entry `index` in its slot.
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

    /// Returns the number of leading entries for which `below` is true.
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

/// Iterator over all entries that stops at the first malformed one.
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
