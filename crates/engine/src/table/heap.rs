//! Rows in a block.
//!
//! Rows fill a block from the front. A directory of 2-byte offsets grows down from the block's end,
//! so that slot i is found without a search. A direct path load fills blocks completely, except for
//! `pct_free`. The rest of a row that begins in an earlier block precedes the first row
//! ([`chain`](super::chain)).
//!
//! Invariants:
//! - T1 Rows grow up, slots grow down, and they never meet.
//! - T2 A load server's blocks have as many slots as it has taken rows, and no block is empty.

use crate::storage::block::{Content, HEADER_BYTES};
use crate::table::chain::{HEAD_BYTES, head_of};
use plumb_units::BlockSize;

/// Bytes of a slot in the directory.
const SLOT_BYTES: usize = 2;

/// Returns the most bytes of a row image in a block.
pub fn row_bytes_max(block_size: BlockSize) -> usize {
    block_size.bytes() - HEADER_BYTES - SLOT_BYTES
}

/// Position of the next row in a block; the writer holds the block itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockFill {
    rows: u16,
    used: u16,
}

impl BlockFill {
    /// Adds a row. `false` if the block has no room, or would keep less than `spare` bytes free. An
    /// empty block takes any row that fits.
    #[inline]
    pub fn push(&mut self, block: &mut [u8], row: &[u8], spare: usize) -> bool {
        let spare = if self.used == 0 { 0 } else { spare };
        if row.len() + spare > self.room(block) {
            return false;
        }
        self.put(block, &[row]);
        true
    }

    /// Returns the bytes of a row that still fit.
    pub fn room(&self, block: &[u8]) -> usize {
        let taken = HEADER_BYTES + usize::from(self.used) + SLOT_BYTES * (usize::from(self.rows) + 1);
        block.len().saturating_sub(taken)
    }

    /// Adds the head of a row that does not fit, with as much of the row as fits. Returns the rest.
    ///
    /// # Panics
    /// If there is no room for a head and a byte, or there is room for the whole row.
    pub(crate) fn push_head<'r>(&mut self, block: &mut [u8], row: &'r [u8]) -> &'r [u8] {
        let (first, rest) = row.split_at(self.room(block) - HEAD_BYTES);
        assert!(!first.is_empty(), "a head has a byte of its row");
        assert!(!rest.is_empty(), "a row in pieces has several");
        self.put(block, &[&head_of(row), first]);
        rest
    }

    /// Continues a row at the front of an empty block. Returns the rest.
    pub(crate) fn go_on<'r>(&mut self, block: &mut [u8], row: &'r [u8]) -> &'r [u8] {
        assert!(self.is_empty(), "a row goes on before others");
        let (piece, rest) = row.split_at(row.len().min(block.len() - HEADER_BYTES));
        block[HEADER_BYTES..HEADER_BYTES + piece.len()].copy_from_slice(piece);
        self.used = piece.len() as u16;
        rest
    }

    /// Appends the parts of a row, with a slot.
    #[inline]
    fn put(&mut self, block: &mut [u8], parts: &[&[u8]]) {
        let start = HEADER_BYTES + usize::from(self.used);
        let slot = block.len() - SLOT_BYTES * (usize::from(self.rows) + 1);
        let mut at = start;
        for part in parts {
            block[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        block[slot..slot + SLOT_BYTES].copy_from_slice(&(start as u16).to_le_bytes());
        self.rows += 1;
        self.used += (at - start) as u16;
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Zeros the gap and returns the counts for the block's header.
    #[must_use]
    pub fn finish(self, block: &mut [u8]) -> Content {
        assert!(self.used > 0, "T2: a block of a table has a row, or a part of one");
        let ends = (HEADER_BYTES + self.used as usize, block.len() - SLOT_BYTES * self.rows as usize);
        assert!(ends.0 <= ends.1, "T1: rows up to byte {}, slots from {}", ends.0, ends.1);
        block[ends.0..ends.1].fill(0);
        Content { entries: self.rows, used: self.used }
    }
}

/// Returns the bytes from a row's start to the end of the rows in a verified block; the row encodes
/// its own end. `None` if there is no such slot.
#[inline]
pub fn row_at(block: &[u8], content: Content, slot: u16) -> Option<&[u8]> {
    if slot >= content.entries {
        return None;
    }
    let at = block.len().checked_sub(SLOT_BYTES * (slot as usize + 1))?;
    let offset = u16::from_le_bytes([*block.get(at)?, *block.get(at + 1)?]) as usize;
    if offset < HEADER_BYTES {
        return None;
    }
    block.get(offset..HEADER_BYTES + content.used as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_slots_until_a_block_is_full() {
        let mut block = vec![0xEE; 2048];
        let mut fill = BlockFill::default();
        let row = |i: u16| vec![i as u8; 1 + (i as usize * 7) % 60];
        let mut count = 0;
        while fill.push(&mut block, &row(count), 0) {
            count += 1;
        }
        let content = fill.finish(&mut block);
        assert_eq!(content.entries, count);
        for slot in 0..count {
            let found = row_at(&block, content, slot).expect("a row");
            assert_eq!(&found[..row(slot).len()], row(slot));
        }
        assert_eq!(row_at(&block, content, count), None);
        // Every byte is accounted for: header, rows, gap, slots.
        let gap = 2048 - HEADER_BYTES - content.used as usize - 2 * count as usize;
        assert!(gap < row(count).len() + 2);
    }

    #[test]
    #[should_panic(expected = "T1: rows up to byte 1924, slots from 1848")]
    fn rows_do_not_meet_their_slots() {
        let fill = BlockFill { rows: 100, used: 1900 };
        let _ = fill.finish(&mut [0; 2048]);
    }

    #[test]
    #[should_panic(expected = "T2: a block of a table has a row, or a part of one")]
    fn a_block_without_rows_is_not_finished() {
        let _ = BlockFill::default().finish(&mut [0; 2048]);
    }

    #[test]
    fn spare_bytes_stay_free_unless_the_block_is_empty() {
        let mut block = vec![0; 2048];
        let mut fill = BlockFill::default();
        assert!(fill.push(&mut block, &vec![1; 1990], 204), "an empty block takes any row");
        assert!(!fill.push(&mut block, &[1; 10], 204));
        assert!(fill.push(&mut block, &[1; 10], 0));
        let mut fill = BlockFill::default();
        while fill.push(&mut block, &[1; 100], 204) {}
        assert!((204..204 + 102).contains(&fill.room(&block)), "{}", fill.room(&block));
    }

    #[test]
    fn the_longest_row_fits_and_one_byte_more_does_not() {
        for size in BlockSize::ALL {
            let longest = row_bytes_max(size);
            let mut block = vec![0; size.bytes()];
            assert!(BlockFill::default().push(&mut block, &vec![1; longest], 0));
            assert!(!BlockFill::default().push(&mut block, &vec![1; longest + 1], 0));
        }
    }
}
