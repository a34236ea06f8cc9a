//! The rows in a block that transactions change.
//!
//! ```text
//! byte 12  slots u16        18 used slots and empty ones
//!      14  used u16         bytes from byte 24 to the end of the last row
//!      24  rows             version u64 | row image
//!      ..  zeros, or what moved rows have left behind
//!      ..  slots from the end of the block down: offset u16 (0: empty), capacity u16
//! ```
//! A version is the LSN of the record that last changed the row. A deleted row stays, with a flag,
//! until no session can see it or undo its deletion. A row keeps its capacity until then, so that a
//! shortened row can grow back: an undo always fits. A piece of a chained row is stored as a row
//! here ([`super::row_pieces`]).
//!
//! Every function works through an [`Edit`], so that its changes are logged.

use super::patch;
use super::row_pieces::{HEAD_FLAGS, RowPiece};
use crate::redo::edit::Edit;
use crate::storage::block::{HEADER_BYTES, content_of};
use plumb_types::row::ROW_FLAGS;
use plumb_units::Lsn;

const SLOT_BYTES: usize = 4;
/// Bytes of a version, before its row.
const VERSION_BYTES: usize = 8;
/// Flag of a deleted row, in the first byte of its image.
const DELETED: u8 = 0x10;

/// Returns the most bytes of a row image in a block.
pub const fn image_bytes_max(block_bytes: usize) -> usize {
    block_bytes - HEADER_BYTES - SLOT_BYTES - VERSION_BYTES
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredRow<'a> {
    pub(super) version: Lsn,
    pub(super) deleted: bool,
    /// Bytes up to the end of the capacity; the image encodes its own end.
    pub(super) image: &'a [u8],
    offset: usize,
}

impl StoredRow<'_> {
    /// True if a row begins with it, rather than a later piece.
    fn begins(&self) -> bool {
        matches!(self.image.first().map(|flags| without_deletion(*flags)), Some(ROW_FLAGS | HEAD_FLAGS))
    }
}

/// Returns the flags of a row without the deletion flag.
pub(super) fn without_deletion(flags: u8) -> u8 {
    flags & !DELETED
}

fn slot_at(block: &[u8], slot: u16) -> usize {
    block.len() - SLOT_BYTES * (slot as usize + 1)
}

fn half(block: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([block[at], block[at + 1]]))
}

pub(super) fn slot_count(block: &[u8]) -> u16 {
    content_of(block).entries
}

/// Returns the row of a slot, or the head of its pieces; `None` if there is neither.
pub(super) fn row_at(block: &[u8], slot: u16) -> Option<StoredRow<'_>> {
    stored_at(block, slot).filter(StoredRow::begins)
}

/// Returns the piece of a slot; `None` for a head, a whole row or an empty slot.
pub(super) fn piece_at(block: &[u8], slot: u16) -> Option<StoredRow<'_>> {
    stored_at(block, slot).filter(|row| !row.begins())
}

/// Returns the version of the row or piece of a slot; `None` if the slot is empty.
pub(super) fn version_at(block: &[u8], slot: u16) -> Option<Lsn> {
    stored_at(block, slot).map(|row| row.version)
}

/// Returns the slots of undeleted pieces that are not heads.
pub(super) fn pieces(block: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let is_there = |slot: &u16| piece_at(block, *slot).is_some_and(|piece| !piece.deleted);
    (0..slot_count(block)).filter(is_there)
}

/// True if a block has a row or piece that is not deleted.
pub(super) fn has_rows(block: &[u8]) -> bool {
    stored(block).any(|row| !row.deleted)
}

/// Returns the number of deleted rows and pieces that keep their room.
pub(super) fn deleted_count(block: &[u8]) -> usize {
    stored(block).filter(|row| row.deleted).count()
}

/// True if a block has a deleted row or piece that keeps its room.
pub(super) fn has_deleted(block: &[u8]) -> bool {
    stored(block).any(|row| row.deleted)
}

fn stored(block: &[u8]) -> impl Iterator<Item = StoredRow<'_>> {
    (0..slot_count(block)).filter_map(|slot| stored_at(block, slot))
}

fn stored_at(block: &[u8], slot: u16) -> Option<StoredRow<'_>> {
    if slot >= slot_count(block) {
        return None;
    }
    let at = slot_at(block, slot);
    let (offset, capacity) = (half(block, at), half(block, at + 2));
    let bytes = block.get(offset..offset + capacity).filter(|_| offset >= HEADER_BYTES)?;
    let (version, image) = bytes.split_first_chunk::<VERSION_BYTES>()?;
    let deleted = image.first()? & DELETED != 0;
    Some(StoredRow { version: Lsn(u64::from_le_bytes(*version)), deleted, image, offset })
}

/// Returns the bytes of a row image that other bytes may follow; `None` if it is malformed.
pub(super) fn image_length(image: &[u8]) -> Option<usize> {
    if without_deletion(*image.first()?) != ROW_FLAGS {
        return RowPiece::parse(image).map(|piece| piece.image_length());
    }
    let mut offset = 3;
    for _ in 0..*image.get(2)? {
        offset += match *image.get(offset)? {
            0xFF => 1,
            0xFE => 3 + half(image.get(..offset + 3)?, offset + 1),
            length => 1 + usize::from(length),
        };
    }
    (offset <= image.len()).then_some(offset)
}

/// Returns a row image without the deletion flag.
pub(super) fn plain_image(row: &StoredRow<'_>) -> Vec<u8> {
    let length = image_length(row.image).unwrap_or(row.image.len());
    let mut image = row.image[..length].to_vec();
    image[0] = without_deletion(image[0]);
    image
}

/// Returns the free bytes between rows and slots.
fn gap(block: &[u8]) -> usize {
    let content = content_of(block);
    block.len() - SLOT_BYTES * content.entries as usize - HEADER_BYTES - content.used as usize
}

fn write_counts(edit: &mut Edit, block: &mut [u8], slots: usize, used: usize) {
    edit.write(block, 12, &((used as u32) << 16 | slots as u32).to_le_bytes());
}

/// Inserts rows while at least `spare` bytes of the block stay free; the first one only has
/// to fit. Returns their slots.
pub(super) fn insert<'r>(
    edit: &mut Edit,
    (block, spare): (&mut [u8], usize),
    rows: impl Iterator<Item = &'r [u8]>,
) -> Vec<u16> {
    let content = content_of(block);
    let begin = HEADER_BYTES + content.used as usize;
    let old_slots = content.entries;
    let mut left = gap(block);
    let mut free =
        (0..old_slots).filter(|slot| half(block, slot_at(block, *slot)) == 0).collect::<Vec<_>>().into_iter();
    let (mut slots, mut places, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut new_slots = 0;
    for row in rows {
        let reused = free.next();
        let needed = VERSION_BYTES + row.len() + if reused.is_some() { 0 } else { SLOT_BYTES };
        let is_first = slots.is_empty() && content.used == 0;
        if needed + if is_first { 0 } else { spare } > left {
            break;
        }
        left -= needed;
        slots.push(reused.unwrap_or(old_slots + new_slots));
        new_slots += u16::from(reused.is_none());
        places.push((begin + bytes.len(), VERSION_BYTES + row.len()));
        bytes.extend_from_slice(&[0; VERSION_BYTES]);
        bytes.extend_from_slice(row);
    }
    if slots.is_empty() {
        return slots;
    }
    edit.write(block, begin, &bytes);
    places.iter().for_each(|(offset, _)| edit.stamp(*offset));
    let slot_bytes = |place: &(usize, usize)| ((place.1 as u32) << 16 | place.0 as u32).to_le_bytes();
    let reused = slots.len() - new_slots as usize;
    for (slot, place) in slots.iter().zip(&places).take(reused) {
        let at = slot_at(block, *slot);
        edit.write(block, at, &slot_bytes(place));
    }
    // New slots are adjacent, and the last one is the lowest.
    let added: Vec<u8> = places[reused..].iter().rev().flat_map(slot_bytes).collect();
    let end = block.len() - SLOT_BYTES * old_slots as usize;
    edit.write(block, end - added.len(), &added);
    write_counts(edit, block, (old_slots + new_slots) as usize, content.used as usize + bytes.len());
    slots
}

/// Replaces a row by another image; `false` if it does not fit.
pub(super) fn update(edit: &mut Edit, block: &mut [u8], slot: u16, image: &[u8]) -> bool {
    let at = slot_at(block, slot);
    let (mut offset, capacity) = (half(block, at), half(block, at + 2));
    let needed = VERSION_BYTES + image.len();
    if needed > capacity {
        let content = content_of(block);
        if needed > gap(block) {
            return false;
        }
        offset = HEADER_BYTES + content.used as usize;
        edit.write(block, at, &((needed as u32) << 16 | offset as u32).to_le_bytes());
        write_counts(edit, block, content.entries as usize, content.used as usize + needed);
    }
    edit.stamp(offset);
    let begin = offset + VERSION_BYTES;
    if needed <= capacity && image_length(&block[begin..offset + capacity]) == Some(image.len()) {
        let changed = patch::differing(&block[begin..begin + image.len()], image);
        changed.into_iter().for_each(|range| edit.write(block, begin + range.start, &image[range]));
    } else {
        edit.write(block, begin, image);
    }
    true
}

pub(super) fn delete(edit: &mut Edit, block: &mut [u8], slot: u16) {
    let offset = half(block, slot_at(block, slot));
    edit.stamp(offset);
    let flags = block[offset + VERSION_BYTES];
    edit.write(block, offset + VERSION_BYTES, &[flags | DELETED]);
}

/// Undoes an update or a deletion by restoring this version of the row. `image` is empty if it
/// stayed in the block. `false`, without a change, if the row has no room for it. A row keeps the
/// room that its undo needs, but a damaged log may ask for more.
pub(super) fn restore(edit: &mut Edit, block: &mut [u8], slot: u16, version: Lsn, image: &[u8]) -> bool {
    let at = slot_at(block, slot);
    let (offset, capacity) = (half(block, at), half(block, at + 2));
    if VERSION_BYTES + image.len() > capacity {
        return false;
    }
    edit.write(block, offset, &version.0.to_le_bytes());
    let flags = [without_deletion(block[offset + VERSION_BYTES])];
    let image = if image.is_empty() { &flags[..] } else { image };
    edit.write(block, offset + VERSION_BYTES, image);
    true
}

/// Undoes an update by restoring the pieces that it changed; as [`restore`].
pub(super) fn restore_pieces(
    edit: &mut Edit,
    block: &mut [u8],
    slot: u16,
    version: Lsn,
    pieces: &[u8],
) -> bool {
    let at = slot_at(block, slot);
    let (offset, capacity) = (half(block, at), half(block, at + 2));
    if patch::each(pieces).any(|(place, bytes)| VERSION_BYTES + place + bytes.len() > capacity) {
        return false;
    }
    edit.write(block, offset, &version.0.to_le_bytes());
    for (place, bytes) in patch::each(pieces) {
        edit.write(block, offset + VERSION_BYTES + place, bytes);
    }
    true
}

/// Undoes an insert by emptying the slots.
pub(super) fn remove(edit: &mut Edit, block: &mut [u8], slots: &[u16]) {
    for slot in slots {
        let at = slot_at(block, *slot);
        edit.write(block, at, &[0; SLOT_BYTES]);
    }
}

/// Removes deleted rows older than `horizon`, which no session can see or restore, and unused
/// capacity. `false` if nothing was gained.
pub(super) fn compact(edit: &mut Edit, block: &mut [u8], horizon: Lsn) -> bool {
    let content = content_of(block);
    let (mut rows, mut slots) = (Vec::new(), vec![0; SLOT_BYTES * content.entries as usize]);
    for slot in 0..content.entries {
        let Some(row) = stored_at(block, slot) else { continue };
        let settled = row.version < horizon;
        if settled && row.deleted {
            continue;
        }
        let length =
            if settled { image_length(row.image).unwrap_or(row.image.len()) } else { row.image.len() };
        let place = HEADER_BYTES + rows.len();
        rows.extend_from_slice(&block[row.offset..row.offset + VERSION_BYTES + length]);
        let at = slots.len() - SLOT_BYTES * (slot as usize + 1);
        let capacity = VERSION_BYTES + length;
        slots[at..at + SLOT_BYTES].copy_from_slice(&((capacity as u32) << 16 | place as u32).to_le_bytes());
    }
    if rows.len() == content.used as usize {
        return false;
    }
    edit.write(block, HEADER_BYTES, &rows);
    let at = block.len() - slots.len();
    edit.write(block, at, &slots);
    write_counts(edit, block, content.entries as usize, rows.len());
    true
}
