//! Rows longer than a block in tables that transactions change: their pieces.
//!
//! ```text
//! piece   flags u8 | 0 | bytes u16 | left u32 | next u64 | check u32 | bytes of the row's image
//!
//! flags   28 hex the head, which lies in the row's place | 00 one in between | 04 the last
//! bytes   of the image in this piece
//! left    of the image from this piece on
//! next    row id of the next piece; 0 after the last
//! check   of a head: CRC-32C of the row's image; else 0
//! ```
//! A row is cut from its end. Each piece but the head fills a block of the table. The head holds
//! the rest and lies among other rows, so that a row takes hardly more than its own bytes. A piece
//! is a row in the sense of [`rows`]: the same code inserts, deletes, logs, undoes and recovers it.
//! Only a head counts as a row in a search for rows ([`rows::row_at`]).
//!
//! - R1 A piece is inserted before the head that leads to it, and deleted after the change that
//!   removes the head's link. One transaction does both.
//! - R2 A piece is never changed. An update inserts the pieces that differ and deletes those they
//!   replace; the last pieces with the same bytes stay.
//! - R3 A statement that sees a head finds its pieces unchanged. It gets the head of its moment
//!   from undo, like any row. By R1 it does not see a deletion of the pieces. Their room is reused
//!   only when all statements see the deletion ([`rows::compact`]), so they stay until the
//!   statement ends. By R2 their bytes need no undo.
//! - R4 A session that changes a row uses no snapshot. It reads the current head while the block is
//!   pinned, and continues with the pieces if no other transaction has changed it. Its own running
//!   transaction keeps the room of pieces that others delete later.
//! - R5 An assembled row has the checksum in its head. If the disk lost the last write of a block,
//!   the block holds valid pieces of another row, and its own checksum cannot reveal that.
//!
//! Rejected: pieces in consecutive blocks, as in a direct path load ([`crate::table::chain`]),
//! because a row that grows finds the next block taken. Rejected: a head without bytes of the row,
//! which costs one more block per row. Rejected: pieces in any block with room, because each is a
//! read, and full blocks need the fewest.
//!
//! Limits: a row has at most as many bytes as a direct path load allows, so that tables can be
//! copied either way. Pieces are read in sequence, `db file sequential read`. The head moves like
//! any row if its block has no room for it.

use super::rows::{self, image_bytes_max};
use super::undo::Undo;
use super::worker::{Thread, Worker};
use super::{Segment, Table};
use crate::EngineError;
use crate::redo::edit::Edit;
use crate::storage::block::BlockKind;
use crate::storage::tablespace::Purpose;
use crate::table::chain;
use plumb_events::Statistic;
use plumb_types::RowBatch;
use plumb_units::{BlockAddress, RowId};
use std::borrow::Cow;

/// Flags of the first piece of a row, its head.
pub(super) const HEAD_FLAGS: u8 = 0x28;
/// Flags of a piece in between.
const MIDDLE_FLAGS: u8 = 0x00;
/// Flags of the last piece of a row.
const LAST_FLAGS: u8 = 0x04;
/// Bytes of a piece before the row's bytes.
const HEADER_BYTES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPiece<'a> {
    is_head: bool,
    /// Bytes of the row from this piece on.
    left: usize,
    next: RowId,
    check: u32,
    bytes: &'a [u8],
}

impl<'a> RowPiece<'a> {
    /// Parses an image as a piece; `None` if it is a whole row or malformed. Ignores the flag of
    /// deletion, which belongs to [`rows`].
    pub(super) fn parse(image: &'a [u8]) -> Option<RowPiece<'a>> {
        let (header, behind) = image.split_first_chunk::<HEADER_BYTES>()?;
        let [flags, _, b0, b1, l0, l1, l2, l3, n0, n1, n2, n3, n4, n5, n6, n7, check @ ..] = *header;
        let bytes = behind.get(..usize::from(u16::from_le_bytes([b0, b1])))?;
        let left = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let fits = match rows::without_deletion(flags) {
            HEAD_FLAGS | MIDDLE_FLAGS => bytes.len() < left,
            LAST_FLAGS => bytes.len() == left,
            _ => false,
        };
        let is_head = rows::without_deletion(flags) == HEAD_FLAGS;
        let next = RowId(u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]));
        let piece = RowPiece { is_head, left, next, check: u32::from_le_bytes(check), bytes };
        (fits && !bytes.is_empty()).then_some(piece)
    }

    /// Returns the bytes of the piece's image.
    pub(super) fn image_length(&self) -> usize {
        HEADER_BYTES + self.bytes.len()
    }

    fn image(&self) -> Vec<u8> {
        let flags = match self.is_head {
            true => HEAD_FLAGS,
            false if self.left == self.bytes.len() => LAST_FLAGS,
            false => MIDDLE_FLAGS,
        };
        let mut image = Vec::with_capacity(self.image_length());
        image.extend_from_slice(&[flags, 0]);
        image.extend_from_slice(&(self.bytes.len() as u16).to_le_bytes());
        image.extend_from_slice(&(self.left as u32).to_le_bytes());
        image.extend_from_slice(&self.next.0.to_le_bytes());
        image.extend_from_slice(&self.check.to_le_bytes());
        image.extend_from_slice(self.bytes);
        image
    }
}

/// True if the image is the head of a chained row.
pub(super) fn is_head(image: &[u8]) -> bool {
    image.first() == Some(&HEAD_FLAGS)
}

/// Returns the bytes of the row in a piece that is not the head.
const fn piece_bytes(block_bytes: usize) -> usize {
    image_bytes_max(block_bytes) - HEADER_BYTES
}

/// Cuts an image into the part for its head, at least one byte, and the
/// part for pieces of `piece_bytes`.
fn cut(image: &[u8], piece_bytes: usize) -> (&[u8], &[u8]) {
    let pieces = image.len().saturating_sub(1) / piece_bytes;
    image.split_at(image.len() - pieces * piece_bytes)
}

#[derive(Debug)]
pub(super) struct Chained {
    pub(super) image: Vec<u8>,
    /// Pieces after the head, in order.
    pub(super) pieces: Vec<RowId>,
}

/// A row as a change finds it.
#[derive(Debug)]
pub(super) struct Found {
    /// Stored image: the row, or the head of its pieces.
    pub(super) stored: Vec<u8>,
    chained: Option<Chained>,
}

impl Found {
    pub(super) fn image(&self) -> &[u8] {
        self.chained.as_ref().map_or(&self.stored, |chained| &chained.image)
    }

    pub(super) fn pieces(&self) -> &[RowId] {
        self.chained.as_ref().map_or(&[], |chained| &chained.pieces)
    }
}

/// Image to store in the place of a changed row.
#[derive(Debug)]
pub(super) struct Stored<'r> {
    pub(super) image: Cow<'r, [u8]>,
    /// Number of old pieces, counted from the last, that stay.
    pub(super) kept: usize,
}

impl<'a> Worker<'a> {
    /// Returns the most bytes of a row in a table of this tablespace.
    pub(super) fn row_bytes_max(&self, purpose: Purpose) -> usize {
        let tablespace = self.instance.tablespace(purpose);
        let in_pieces = chain::row_bytes_max(tablespace.block_size, tablespace.extent_blocks);
        in_pieces.max(image_bytes_max(tablespace.block_size.bytes()))
    }

    /// Returns the whole row of a stored image.
    pub(super) fn whole(
        &mut self,
        table: &Table,
        row: RowId,
        stored: Vec<u8>,
    ) -> Result<Vec<u8>, EngineError> {
        if is_head(&stored) { Ok(self.assemble(table, row, &stored)?.image) } else { Ok(stored) }
    }

    /// Returns the row with its pieces, for a change that deletes the ones it replaces.
    pub(super) fn find_row(
        &mut self,
        table: &Table,
        row: RowId,
        stored: Vec<u8>,
    ) -> Result<Found, EngineError> {
        let chained = is_head(&stored).then(|| self.assemble(table, row, &stored)).transpose()?;
        Ok(Found { stored, chained })
    }

    /// Assembles a row from its head. The caller must not pin a block, because the row may have
    /// more pieces than the cache has frames.
    pub(super) fn assemble(
        &mut self,
        table: &Table,
        row: RowId,
        head: &[u8],
    ) -> Result<Chained, EngineError> {
        let bad = |why: String| EngineError::bad_row(row, why);
        let head =
            RowPiece::parse(head).ok_or_else(|| bad("the head of its pieces makes no sense".into()))?;
        let (purpose, length, limit) =
            (table.segment.purpose, head.left, self.row_bytes_max(table.segment.purpose));
        if length > limit {
            return Err(bad(format!("its head says {length} bytes, and {limit} are the most")));
        }
        let size = piece_bytes(self.block_bytes_of(purpose));
        let mut chained = Chained { image: Vec::with_capacity(length), pieces: Vec::new() };
        chained.image.extend_from_slice(head.bytes);
        let mut next = head.next;
        while chained.image.len() < length {
            let left = length - chained.image.len();
            let missing = || {
                bad(format!("{left} bytes of its {length} are missing: the piece at {next} should have them"))
            };
            table.segment.index_of(next.address()).filter(|number| *number > 0).ok_or_else(missing)?;
            let expected = table.segment.expected(BlockKind::Rows);
            let block = self.reader.get(purpose, next.address(), expected)?;
            let piece = rows::piece_at(&block, next.slot()).and_then(|stored| RowPiece::parse(stored.image));
            let piece =
                piece.filter(|piece| piece.left == left && piece.bytes.len() == size).ok_or_else(missing)?;
            chained.image.extend_from_slice(piece.bytes);
            chained.pieces.push(next);
            self.session.count(Statistic::RowPiecesFetched, 1);
            next = piece.next;
        }
        if crc_fast::crc32_iscsi(&chained.image) != head.check {
            let why = "its pieces are not those that its head was written with: a write of one of their blocks was lost";
            return Err(bad(why.into()));
        }
        Ok(chained)
    }

    /// Returns the images to store for new rows: the rows, or the heads of those that are too long.
    /// Inserts the pieces of the latter.
    pub(super) fn store_rows<'r>(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        images: &'r RowBatch,
    ) -> Result<Cow<'r, RowBatch>, EngineError> {
        let room = image_bytes_max(self.block_bytes_of(table.segment.purpose));
        if images.iter().all(|image| image.len() <= room) {
            return Ok(Cow::Borrowed(images));
        }
        let mut stored = RowBatch::new();
        for image in images.iter() {
            stored.push_row(&self.store_row(thread, table, (image, None))?.image);
        }
        Ok(Cow::Owned(stored))
    }

    /// Returns the image to store for one row. `before` is the row that it replaces.
    pub(super) fn store_row<'r>(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        (image, before): (&'r [u8], Option<&Found>),
    ) -> Result<Stored<'r>, EngineError> {
        let block_bytes = self.block_bytes_of(table.segment.purpose);
        if image.len() <= image_bytes_max(block_bytes) {
            return Ok(Stored { image: Cow::Borrowed(image), kept: 0 });
        }
        self.require_pieces_known()?;
        let size = piece_bytes(block_bytes);
        let (head, tail) = cut(image, size);
        let pieces = before.map_or(&[][..], Found::pieces);
        let old_tail =
            before.map_or(&[][..], |before| &before.image()[before.image().len() - pieces.len() * size..]);
        let same = tail.rchunks(size).zip(old_tail.rchunks(size)).take_while(|(new, old)| new == old);
        let kept = same.count();
        let mut next = pieces.get(pieces.len() - kept).copied().unwrap_or(RowId(0));
        let mut left = kept * size;
        for bytes in tail[..tail.len() - left].rchunks(size) {
            left += bytes.len();
            let piece = RowPiece { is_head: false, left, next, check: 0, bytes };
            next = self.insert_piece(thread, table, &piece.image())?;
        }
        let check = crc_fast::crc32_iscsi(image);
        let head = RowPiece { is_head: true, left: image.len(), next, check, bytes: head };
        Ok(Stored { image: Cow::Owned(head.image()), kept })
    }

    /// Notes chained rows in the control file before the first one is written.
    fn require_pieces_known(&mut self) -> Result<(), EngineError> {
        if self.instance.catalog().knows_row_pieces() {
            return Ok(());
        }
        self.instance.change_catalog(self.session, |catalog| catalog.note_row_pieces())
    }

    fn insert_piece(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        image: &[u8],
    ) -> Result<RowId, EngineError> {
        loop {
            let address = self.empty_block(&table.segment)?;
            // If another session found the same block empty, it has no room left.
            if let [slot] = self.insert_into(thread, table, address, std::iter::once(image))?[..] {
                return Ok(RowId::new(address, slot));
            }
        }
    }

    /// Deletes pieces that no head leads to any more.
    pub(super) fn delete_pieces(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        pieces: &[RowId],
    ) -> Result<(), EngineError> {
        let purpose = table.segment.purpose;
        for row in pieces {
            let promise = self.promise(purpose, 32);
            let admission = self.admit(self.block_bytes_of(purpose) + 512, promise)?;
            let gate = self.log.enter();
            let expected = table.segment.expected(BlockKind::Rows);
            let mut block = self.reader.change(purpose, row.address(), expected)?;
            let mut edit = Edit::new(purpose, row.address(), &block, gate.floor());
            let stored = rows::piece_at(&block, row.slot()).filter(|piece| !piece.deleted);
            let stored =
                stored.ok_or_else(|| EngineError::bad_row(*row, "a piece that a row leads to is gone"))?;
            let undo = Undo::Deleted { block: row.address(), slot: row.slot(), version: stored.version };
            rows::delete(&mut edit, &mut block, row.slot());
            let undo = (table.segment.created, &undo);
            self.log_change(thread, (admission, promise), undo, vec![(edit, block)])?;
            table.segment.add_left(row.address());
        }
        Ok(())
    }

    /// Returns a block without rows: one whose rows were deleted, if all statements see that, or a
    /// new one. Blocks that have rows again are remembered for other inserts.
    pub(super) fn empty_block(&mut self, segment: &Segment) -> Result<BlockAddress, EngineError> {
        while let Some(address) = segment.take_left() {
            let admission = self.admit(2 * self.block_bytes_of(segment.purpose) + 256, 0)?;
            let gate = self.log.enter();
            let mut block =
                self.reader.change(segment.purpose, address, segment.expected(BlockKind::Rows))?;
            let mut edit = Edit::new(segment.purpose, address, &block, gate.floor());
            let horizon = self.active.horizon(self.log.end());
            let has_gained = rows::compact(&mut edit, &mut block, horizon);
            let (has_rows, has_deleted) = (rows::has_rows(&block), rows::has_deleted(&block));
            if has_gained {
                self.log_system(admission, vec![(edit, block)])?;
            }
            match (has_rows, has_deleted) {
                (false, false) => return Ok(address),
                (_, true) => {
                    // The blocks after it were left later.
                    segment.put_back_left(address);
                    break;
                }
                // Its deletions may have been undone, or new rows have come.
                (true, false) if has_gained => segment.add_to_pool(address),
                (true, false) => {}
            }
        }
        self.new_block(segment, BlockKind::Rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_a_byte_and_other_pieces_are_full() {
        for (length, head, tail) in [(1, 1, 0), (10, 10, 0), (11, 1, 10), (20, 10, 10), (21, 1, 20)] {
            let image = vec![7; length];
            let (found, rest) = cut(&image, 10);
            assert_eq!((found.len(), rest.len()), (head, tail), "{length}");
        }
    }

    #[test]
    fn a_piece_is_read_as_written_and_nonsense_rejected() {
        let bytes = [5; 40];
        for (is_head, left) in [(true, 100), (false, 100), (false, 40)] {
            let piece = RowPiece { is_head, left, next: RowId(3 << 48 | 7), check: 9, bytes: &bytes };
            let mut image = piece.image();
            assert_eq!(RowPiece::parse(&image), Some(piece));
            assert_eq!(is_head, self::is_head(&image));
            // A row keeps its former capacity.
            image.extend_from_slice(&[9; 5]);
            assert_eq!(rows::image_length(&image), Some(HEADER_BYTES + 40));
            assert_eq!(RowPiece::parse(&image[..HEADER_BYTES + 39]), None, "it is cut off");
            image[4..8].copy_from_slice(&39_u32.to_le_bytes());
            assert_eq!(RowPiece::parse(&image), None, "it has more than there is of the row");
        }
        assert_eq!(RowPiece::parse(&[plumb_types::row::ROW_FLAGS; 40]), None, "a row in one piece");
    }
}
