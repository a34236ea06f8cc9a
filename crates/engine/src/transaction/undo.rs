//! The undo bytes of a record: how to undo it, and how to find older versions of a row.
//!
//! ```text
//! byte 0  kind u8      1 rows inserted, 2 row updated, 3 row deleted, 4 entry added,
//!                      5 entry marked, 6 mark removed, 7 row patched
//!      1  segment u64  LSN of the creation of the table or index
//!      9  block        file u16, block u32 (of rows); or row id u64 (of entries)
//!     15  1: slots u16 each
//!         2: slot u16, version before u64, image before
//!         3: slot u16, version before u64; the image stayed in the block
//!         7: slot u16, version before u64, pieces before the update ([`super::patch`])
//!     17  4 to 6: key
//! ```
//! Rows are undone in place. Entries are found by key and row id, because splits may have moved
//! them.

use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn, RowId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Undo<'a> {
    Inserted { block: BlockAddress, slots: Vec<u16> },
    Updated { block: BlockAddress, slot: u16, version: Lsn, image: &'a [u8] },
    Deleted { block: BlockAddress, slot: u16, version: Lsn },
    Patched { block: BlockAddress, slot: u16, version: Lsn, pieces: &'a [u8] },
    EntryAdded { row: RowId, key: &'a [u8] },
    EntryMarked { row: RowId, key: &'a [u8] },
    MarkTakenOff { row: RowId, key: &'a [u8] },
}

impl<'a> Undo<'a> {
    /// True if it undoes a change of an index.
    pub(super) fn is_of_index(&self) -> bool {
        matches!(self, Undo::EntryAdded { .. } | Undo::EntryMarked { .. } | Undo::MarkTakenOff { .. })
    }

    /// Encodes the undo of a change in the segment created at this LSN.
    pub(super) fn write(&self, segment: Lsn, into: &mut Vec<u8>) {
        into.clear();
        let code = match self {
            Undo::Inserted { .. } => 1,
            Undo::Updated { .. } => 2,
            Undo::Deleted { .. } => 3,
            Undo::EntryAdded { .. } => 4,
            Undo::EntryMarked { .. } => 5,
            Undo::MarkTakenOff { .. } => 6,
            Undo::Patched { .. } => 7,
        };
        into.push(code);
        into.extend_from_slice(&segment.0.to_le_bytes());
        match self {
            Undo::Inserted { block, slots } => {
                put_block(*block, into);
                slots.iter().for_each(|slot| into.extend_from_slice(&slot.to_le_bytes()));
            }
            Undo::Updated { block, slot, version, image }
            | Undo::Patched { block, slot, version, pieces: image } => {
                put_block(*block, into);
                into.extend_from_slice(&slot.to_le_bytes());
                into.extend_from_slice(&version.0.to_le_bytes());
                into.extend_from_slice(image);
            }
            Undo::Deleted { block, slot, version } => {
                put_block(*block, into);
                into.extend_from_slice(&slot.to_le_bytes());
                into.extend_from_slice(&version.0.to_le_bytes());
            }
            Undo::EntryAdded { row, key }
            | Undo::EntryMarked { row, key }
            | Undo::MarkTakenOff { row, key } => {
                into.extend_from_slice(&row.0.to_le_bytes());
                into.extend_from_slice(key);
            }
        }
    }

    /// Parses the undo bytes of a record: the segment's LSN and the undo;
    /// `None` if they are malformed.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<(Lsn, Undo<'a>)> {
        let (code, rest) = bytes.split_first()?;
        let (segment, rest) = rest.split_first_chunk::<8>()?;
        let undo = match code {
            1..=3 | 7 => {
                let ([f0, f1, b0, b1, b2, b3], rest) = rest.split_first_chunk::<6>()?;
                let file = FileId(u16::from_le_bytes([*f0, *f1]));
                let block =
                    BlockAddress { file, block: BlockNumber(u32::from_le_bytes([*b0, *b1, *b2, *b3])) };
                if *code == 1 {
                    let slots =
                        rest.chunks_exact(2).map(|slot| u16::from_le_bytes([slot[0], slot[1]])).collect();
                    Undo::Inserted { block, slots }
                } else {
                    let (slot, rest) = rest.split_first_chunk::<2>()?;
                    let (version, image) = rest.split_first_chunk::<8>()?;
                    let (slot, version) = (u16::from_le_bytes(*slot), Lsn(u64::from_le_bytes(*version)));
                    match code {
                        2 => Undo::Updated { block, slot, version, image },
                        7 => Undo::Patched { block, slot, version, pieces: image },
                        _ => Undo::Deleted { block, slot, version },
                    }
                }
            }
            4..=6 => {
                let (row, key) = rest.split_first_chunk::<8>()?;
                let row = RowId(u64::from_le_bytes(*row));
                match code {
                    4 => Undo::EntryAdded { row, key },
                    5 => Undo::EntryMarked { row, key },
                    _ => Undo::MarkTakenOff { row, key },
                }
            }
            _ => return None,
        };
        Some((Lsn(u64::from_le_bytes(*segment)), undo))
    }
}

fn put_block(block: BlockAddress, into: &mut Vec<u8>) {
    into.extend_from_slice(&block.file.0.to_le_bytes());
    into.extend_from_slice(&block.block.0.to_le_bytes());
}
