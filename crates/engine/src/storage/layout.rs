//! Bounds of a block's content: its bytes and its directory of slots.
//!
//! A checksum proves that a block is as it was written, but not that this program wrote it. Reading
//! rows or entries, and changing them in place, computes with the numbers in the header and the
//! slots. So these are checked once, when the block has been read ([`super::block::verify_header`])
//! or made from the log (`redo/replay`), and not at each row. Afterwards every slot leads to bytes
//! of the block, and the bytes between two slots are at least a whole entry.
//!
//! ```text
//! kind            slot bytes  checked
//! table           2           rows and slots fit ([`crate::table::heap`] checks each slot)
//! leaf, branch    2           the same; entries lie one after the other, each of the least length
//! rows            4           the same; each row lies within the used bytes, and so does their sum
//! segment header              there is room for the number of blocks in use
//! ```
//! Cost: a pass over the slots, which the reader needs next. Values, keys and lengths in entries
//! are checked by their readers ([`crate::index::block`], `plumb_types::row`).

use super::block::{BlockKind, Content, HEADER_BYTES};

/// Least bytes of a leaf entry: the length of its key, and a row id.
const LEAF_ENTRY_MIN: usize = 1 + 8;
/// Least bytes of a branch entry: those of a leaf entry, and the address of a child.
const BRANCH_ENTRY_MIN: usize = LEAF_ENTRY_MIN + 6;
/// Bytes of a leaf before its first entry: the address of the next leaf.
const LINK_BYTES: usize = 8;
/// Least bytes of a row: its version, and the flags of its image.
const ROW_MIN: usize = 8 + 1;
/// Bytes of a segment header's content.
const SEGMENT_BYTES: usize = 4;

/// A part of a block's content that is impossible.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) what: &'static str,
    pub(super) found: String,
    pub(super) expected: String,
}

/// Returns the first impossible value in a block's header or slots; `None` if there is none.
pub(super) fn misfit(block: &[u8], kind: BlockKind, content: Content) -> Option<Misfit> {
    match kind {
        BlockKind::Table => frame(block, content, (0, 2)),
        BlockKind::Leaf => {
            frame(block, content, (LINK_BYTES, 2)).or_else(|| entries(block, content, LINK_BYTES))
        }
        BlockKind::Branch => frame(block, content, (0, 2)).or_else(|| entries(block, content, 0)),
        BlockKind::Rows => frame(block, content, (0, 4)).or_else(|| rows(block, content)),
        BlockKind::Segment => frame(block, content, (SEGMENT_BYTES, 0)),
        // A file header has checks of its own, and a temporary block was written
        // since the database was opened.
        BlockKind::FileHeader | BlockKind::Temp => frame(block, content, (0, 0)),
    }
}

/// Checks that bytes and slots fit into the block, and that there are at least `least` bytes.
fn frame(block: &[u8], content: Content, (least, slot_bytes): (usize, usize)) -> Option<Misfit> {
    let (used, slots) = (usize::from(content.used), usize::from(content.entries));
    let room = block.len() - HEADER_BYTES;
    if used >= least && used + slot_bytes * slots <= room {
        return None;
    }
    let (what, found) = match slot_bytes {
        0 => ("bytes in use", used.to_string()),
        _ => ("size of the content", format!("{used} bytes and {slots} slots")),
    };
    let expected = match least {
        0 => format!("at most {room} bytes with the slots"),
        _ => format!("at least {least} bytes, and no more with the slots than {room}"),
    };
    Some(Misfit { what, found, expected })
}

/// Checks that index entries begin after the link, each after the one before it.
fn entries(block: &[u8], content: Content, link: usize) -> Option<Misfit> {
    let least = if link > 0 { LEAF_ENTRY_MIN } else { BRANCH_ENTRY_MIN };
    let end = HEADER_BYTES + usize::from(content.used);
    let mut from = HEADER_BYTES + link;
    let mut next = from;
    let slots = block.rchunks_exact(2).take(usize::from(content.entries));
    for (number, slot) in slots.enumerate() {
        let at = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
        let fits = if number == 0 { at == from } else { at >= next };
        if !fits || at + least > end {
            let expected = match number {
                0 => format!("byte {from}, with {least} bytes up to byte {end}"),
                _ => format!("byte {next} or a later one, with {least} bytes up to byte {end}"),
            };
            return Some(Misfit {
                what: "an entry's place",
                found: format!("entry {number} at byte {at}"),
                expected,
            });
        }
        (from, next) = (at, at + least);
    }
    (content.entries == 0 && end != from).then(|| Misfit {
        what: "bytes in use",
        found: content.used.to_string(),
        expected: format!("{link} without an entry"),
    })
}

/// Checks that rows lie within the bytes in use and do not exceed them together, so that
/// not all rows can overlap.
fn rows(block: &[u8], content: Content) -> Option<Misfit> {
    let end = HEADER_BYTES + usize::from(content.used);
    let mut taken = 0;
    let slots = block.rchunks_exact(4).take(usize::from(content.entries));
    for (number, slot) in slots.enumerate() {
        let (offset, capacity) =
            (u16::from_le_bytes([slot[0], slot[1]]), u16::from_le_bytes([slot[2], slot[3]]));
        let (offset, capacity) = (usize::from(offset), usize::from(capacity));
        if offset == 0 {
            continue;
        }
        if offset < HEADER_BYTES || capacity < ROW_MIN || offset + capacity > end {
            return Some(Misfit {
                what: "a row's place",
                found: format!("slot {number} at byte {offset} with {capacity} bytes"),
                expected: format!("{ROW_MIN} bytes or more from byte {HEADER_BYTES} up to byte {end}"),
            });
        }
        taken += capacity;
    }
    (taken > usize::from(content.used)).then(|| Misfit {
        what: "bytes of all rows",
        found: taken.to_string(),
        expected: format!("at most the {} in use", content.used),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a branch of three entries of 20 bytes each.
    fn branch() -> (Vec<u8>, Content) {
        let mut block = vec![0; 2048];
        for (slot, at) in block.rchunks_exact_mut(2).zip([24_u16, 44, 64]) {
            slot.copy_from_slice(&at.to_le_bytes());
        }
        (block, Content { entries: 3, used: 60 })
    }

    #[test]
    fn entries_lie_one_behind_the_other_within_the_used_bytes() {
        let (block, content) = branch();
        let of = |block: &[u8], content| misfit(block, BlockKind::Branch, content).map(|misfit| misfit.what);
        assert_eq!(of(&block, content), None);
        assert_eq!(of(&block, Content { used: 54, ..content }), Some("an entry's place"));
        assert_eq!(of(&block, Content { entries: 1000, ..content }), Some("size of the content"));
        assert_eq!(of(&block, Content { entries: 0, ..content }), Some("bytes in use"));
        for (slot, at) in [(0, 25_u16), (1, 24), (1, 30), (2, 58), (2, u16::MAX)] {
            let (mut block, content) = branch();
            let place = block.len() - 2 * (slot + 1);
            block[place..place + 2].copy_from_slice(&at.to_le_bytes());
            assert_eq!(of(&block, content), Some("an entry's place"), "slot {slot} at {at}");
        }
    }

    #[test]
    fn rows_take_no_more_than_the_bytes_in_use_together() {
        let mut block = vec![0; 2048];
        let mut put = |slot: usize, [offset, capacity]: [u16; 2]| {
            let place = 2048 - 4 * (slot + 1);
            block[place..place + 2].copy_from_slice(&offset.to_le_bytes());
            block[place + 2..place + 4].copy_from_slice(&capacity.to_le_bytes());
            misfit(&block, BlockKind::Rows, Content { entries: 2, used: 60 }).map(|misfit| misfit.what)
        };
        assert_eq!(put(0, [24, 40]), None, "the other slot is empty");
        assert_eq!(put(1, [64, 20]), None);
        assert_eq!(put(1, [50, 30]), Some("bytes of all rows"), "two rows in one place");
        assert_eq!(put(1, [64, 8]), Some("a row's place"), "no room for a row");
    }
}
