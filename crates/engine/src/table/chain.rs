//! Rows longer than a block: their pieces, in consecutive blocks.
//!
//! ```text
//! block i      .. rows .. | head: flags 28 hex, 0, length u32, the image's first bytes | slots
//! block i + 1  bytes of the image, the whole block                                       no slot
//! block i + 2  bytes of the image | rows ..                                              slots
//! ```
//! The head is the last row of its block and has a slot. The rest precedes the first row of the
//! next blocks, without a slot, so that a count of slots counts a chained row once. All pieces of a
//! row are in one extent. A scan takes whole extents in order, so it has the row together as it
//! reads on. An access by row id reads the following blocks.
//!
//! Rejected: a row id of the next piece, because it would always be that of the next block.
//! Rejected: pieces in any block with room, as for rows that grow. A loaded row does not grow, and
//! every piece elsewhere is another read.
//!
//! Limits: a row takes less than an extent. If the rest of an extent has too few blocks for a row,
//! these blocks stay empty.

use crate::EngineError;
use crate::storage::block::{Content, HEADER_BYTES};
use crate::table::heap;
use plumb_types::columns;
use plumb_units::{BlockAddress, BlockCount, BlockSize, RowId};

/// Flags of a head: the first piece, but not the last.
const HEAD_FLAGS: u8 = 0x28;
/// Bytes of a head before the row's bytes.
pub(crate) const HEAD_BYTES: usize = 6;

/// Returns the bytes of a row in a block without other rows.
fn room(block_size: BlockSize) -> usize {
    block_size.bytes() - HEADER_BYTES
}

/// Returns the most bytes of a row in an extent. The head's block may have room for
/// only one byte of it.
pub fn row_bytes_max(block_size: BlockSize, extent: BlockCount) -> usize {
    // The first extent of a file lacks block 0.
    room(block_size) * (extent.0 as usize - 2)
}

/// Returns the blocks after its head that a row of `row` bytes needs, if its head holds no byte.
pub(crate) fn blocks_behind(row: usize, block_size: BlockSize) -> u32 {
    row.div_ceil(room(block_size)) as u32
}

/// Returns the error of a row that is longer than the room in an extent.
pub(crate) fn too_long(row: &[u8], room: usize, extent_bytes: u64) -> EngineError {
    EngineError::ChainTooLong { found: row.len(), extent_bytes, room, start: begin_of(row) }
}

/// Returns the first columns of a row, to find it by.
fn begin_of(row: &[u8]) -> String {
    let shown: Vec<String> = columns(row)
        .take(3)
        .map(|value| match value {
            Some(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).escape_debug().to_string(),
            None => "NULL".to_string(),
        })
        .collect();
    shown.join(", ")
}

/// Returns the bytes of a head before the row's bytes.
pub(crate) fn head_of(row: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [HEAD_FLAGS, 0, 0, 0, 0, 0];
    head[2..].copy_from_slice(&(row.len() as u32).to_le_bytes());
    head
}

/// Returns the length of the row with this head; `None` for a row that is not chained.
#[inline]
pub fn chained_length(row: &[u8]) -> Option<usize> {
    if row.first() != Some(&HEAD_FLAGS) {
        return None;
    }
    row.get(2..HEAD_BYTES)
        .map(|length| u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize)
}

/// Returns the bytes before the first row of a block: the rest of a row that
/// begins in an earlier one.
#[inline]
pub(crate) fn before_rows(block: &[u8], content: Content) -> &[u8] {
    let rows = heap::row_at(block, content, 0).map_or(0, <[u8]>::len);
    let used = usize::from(content.used);
    &block[HEADER_BYTES..HEADER_BYTES + used - rows.min(used)]
}

/// A chained row whose pieces are being read.
#[derive(Debug, Default)]
pub struct Chain {
    bytes: Vec<u8>,
    /// Row id, length, and address of the block with the next piece.
    open: Option<(RowId, usize, BlockAddress)>,
}

impl Chain {
    /// Begins with a head, which reaches to the end of its block's rows.
    pub(crate) fn begin(&mut self, head: &[u8], row_id: RowId, length: usize) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&head[HEAD_BYTES..]);
        let address = row_id.address();
        let next = BlockAddress { file: address.file, block: address.block.plus(1) };
        self.open = Some((row_id, length, next));
    }

    /// Returns the block with the next piece; `None` if no row is open.
    pub fn next(&self) -> Option<BlockAddress> {
        self.open.map(|(_, _, next)| next)
    }

    /// Adds the bytes that a block has before its rows. Returns the row once it is whole.
    ///
    /// # Errors
    /// If the block is not the next one of the row, or has more or fewer bytes
    /// of it than are missing.
    pub fn go_on(
        &mut self,
        address: BlockAddress,
        content: Content,
        block: &[u8],
    ) -> Result<Option<(RowId, &[u8])>, EngineError> {
        let piece = before_rows(block, content);
        // An incomplete row is dropped, so that it does not affect the next one.
        let Some((row, length, next)) = self.open.take() else {
            if piece.is_empty() {
                return Ok(None);
            }
            let why = format!("{} bytes stand before it that are of no row", piece.len());
            return Err(EngineError::bad_row(RowId::new(address, 0), why));
        };
        let bad = |why: String| EngineError::bad_row(row, why);
        let left = length.saturating_sub(self.bytes.len());
        if address != next {
            return Err(bad(format!(
                "{left} bytes of its {length} are missing: block {next} should have them"
            )));
        }
        if piece.is_empty() || piece.len() > left {
            return Err(bad(format!(
                "block {address} has {} bytes of it, expected 1 to {left}",
                piece.len()
            )));
        }
        self.bytes.extend_from_slice(piece);
        if piece.len() < left {
            let next = BlockAddress { file: address.file, block: address.block.plus(1) };
            self.open = Some((row, length, next));
            return Ok(None);
        }
        Ok(Some((row, &self.bytes)))
    }

    /// Fails if a row is still incomplete at the end of the rows.
    ///
    /// # Errors
    /// The error of the incomplete row.
    pub fn end(&self) -> Result<(), EngineError> {
        let Some((row, length, next)) = self.open else { return Ok(()) };
        let why = format!(
            "{} bytes of its {length} are missing: block {next} should have them",
            length - self.bytes.len()
        );
        Err(EngineError::bad_row(row, why))
    }

    /// Visits the rows of the next block, first a row that ends in it. Returns their number. Rows
    /// lie one behind another in the order of their slots, so each ends where the next one begins.
    ///
    /// # Errors
    /// If a slot points outside the rows, a chained row is incomplete, or `visit` fails.
    pub(crate) fn visit(
        &mut self,
        address: BlockAddress,
        content: Content,
        block: &[u8],
        visit: &mut impl FnMut(&[u8], RowId) -> Result<(), EngineError>,
    ) -> Result<u64, EngineError> {
        let mut rows = 0;
        if let Some((row_id, row)) = self.go_on(address, content, block)? {
            visit(row, row_id)?;
            rows += 1;
        }
        let outside =
            |slot: u16| EngineError::bad_row(RowId::new(address, slot), "its slot points outside the rows");
        let start_of = |slot| heap::row_at(block, content, slot).ok_or_else(|| outside(slot));
        let mut rest = if content.entries == 0 { &[][..] } else { start_of(0)? };
        for slot in 0..content.entries {
            let row_id = RowId::new(address, slot);
            let bad = |why: String| EngineError::bad_row(row_id, why);
            let behind = if slot + 1 == content.entries { &[][..] } else { start_of(slot + 1)? };
            let length = rest.len().checked_sub(behind.len()).ok_or_else(|| outside(slot + 1))?;
            let row = &rest[..length];
            rest = behind;
            match chained_length(row) {
                None => {
                    visit(row, row_id)?;
                    rows += 1;
                }
                Some(length) if slot + 1 == content.entries && length > row.len() - HEAD_BYTES => {
                    self.begin(row, row_id, length);
                }
                Some(length) => {
                    return Err(bad(format!(
                        "it is the head of {length} bytes, and its block goes on behind it"
                    )));
                }
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::heap::BlockFill;
    use plumb_units::{BlockNumber, FileId};

    fn address(block: u32) -> BlockAddress {
        BlockAddress { file: FileId(1), block: BlockNumber(block) }
    }

    /// Returns blocks of 2K with a short row, a row of `length` bytes, and another short row.
    fn blocks(length: usize) -> (Vec<(Content, Vec<u8>)>, Vec<u8>) {
        let row: Vec<u8> =
            [0x2C, 0, 1].into_iter().chain((3..length).map(|at| (at * 31 % 251) as u8)).collect();
        let (mut made, mut block, mut fill) = (Vec::new(), vec![0; 2048], BlockFill::default());
        assert!(fill.push(&mut block, &[0x2C, 0, 0], 0));
        let mut rest = fill.push_head(&mut block, &row);
        while !rest.is_empty() {
            made.push((std::mem::take(&mut fill).finish(&mut block), block.clone()));
            rest = fill.go_on(&mut block, rest);
        }
        assert!(fill.push(&mut block, &[0x2C, 0, 0], 0), "the last block goes on with rows");
        made.push((fill.finish(&mut block), block));
        (made, row)
    }

    #[test]
    fn a_chained_row_and_its_neighbours_come_back_whole() {
        for length in [2030, 4000, 6054, 10_000] {
            let (blocks, row) = blocks(length);
            let mut chain = Chain::default();
            let mut found = Vec::new();
            for (number, (content, block)) in (0..).zip(&blocks) {
                let mut visit = |row: &[u8], id: RowId| {
                    found.push((id, row.to_vec()));
                    Ok(())
                };
                chain.visit(address(number), *content, block, &mut visit).expect("all is there");
            }
            chain.end().expect("nothing is open");
            assert_eq!(found.len(), 3, "{length}");
            assert_eq!((found[1].0, &found[1].1), (RowId::new(address(0), 1), &row));
            assert_eq!(found[2].0, RowId::new(address(blocks.len() as u32 - 1), 0));
        }
    }

    #[test]
    fn a_row_whose_pieces_are_not_together_is_named() {
        let (blocks, _) = blocks(6054);
        let mut ignore = |_: &[u8], _: RowId| Ok(());
        let mut visit = |chain: &mut Chain, place: u32, at: usize| {
            let (content, block) = &blocks[at];
            chain.visit(address(place), *content, block, &mut ignore).map_err(|error| error.to_string())
        };
        let mut chain = Chain::default();
        visit(&mut chain, 0, 0).expect("the head");
        let error = chain.end().expect_err("a piece is missing").to_string();
        assert!(error.contains("are missing: block"), "{error}");
        let error = visit(&mut chain, 2, 2).expect_err("a block is missing");
        assert!(error.contains("are missing: block"), "{error}");
        let error = visit(&mut Chain::default(), 1, 1).expect_err("of no row");
        assert!(error.contains("2024 bytes stand before it that are of no row"), "{error}");
    }
}
