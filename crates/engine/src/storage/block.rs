//! A block: 24 bytes of header, then content.
//!
//! ```text
//! byte 0   crc32c u32     over bytes 4.. of the block
//!      4   kind u8        file header, table, temp, leaf, branch
//!      5   version u8     1
//!      6   file u16       the block's own address: data file
//!      8   block u32      and block number
//!     12   entries u16    rows, records or index entries in the block
//!     14   used u16       bytes of content after the header (32K - 24 fits)
//!     16   lsn u64        which operation of the database wrote it
//! ```
//! All numbers are little-endian. CRC-32C (Castagnoli, RFC 3720 appendix B.4)
//! finds every error burst of up to 32 bits and misses others once in 2^32; it
//! runs at tens of GB/s where the processor multiplies without carry. The
//! address in the block finds what a checksum cannot: a block written, or read,
//! in the wrong place.

use crate::EngineError;
use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn};
use std::path::Path;

/// Bytes of header before a block's content.
pub const HEADER_BYTES: usize = 24;
const VERSION: u8 = 1;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Block 0 of a data file.
    FileHeader = 1,
    /// Rows of a table.
    Table = 2,
    /// Records of a sort run.
    Temp = 3,
    /// Entries of an index.
    Leaf = 4,
    /// Separators of an index.
    Branch = 5,
}

impl BlockKind {
    const fn name(self) -> &'static str {
        match self {
            BlockKind::FileHeader => "file header",
            BlockKind::Table => "table",
            BlockKind::Temp => "temp",
            BlockKind::Leaf => "index leaf",
            BlockKind::Branch => "index branch",
        }
    }

    fn of(byte: u8) -> Option<BlockKind> {
        [BlockKind::FileHeader, BlockKind::Table, BlockKind::Temp, BlockKind::Leaf, BlockKind::Branch]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// What a block's header says of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Rows, records or entries.
    pub entries: u16,
    /// Bytes of content after the header.
    pub used: u16,
}

/// Writes the header and the checksum: the last thing before a block is written.
pub fn seal(block: &mut [u8], kind: BlockKind, address: BlockAddress, lsn: Lsn, content: Content) {
    debug_assert!(content.used as usize <= block.len() - HEADER_BYTES);
    block[4] = kind as u8;
    block[5] = VERSION;
    block[6..8].copy_from_slice(&address.file.0.to_le_bytes());
    block[8..12].copy_from_slice(&address.block.0.to_le_bytes());
    block[12..14].copy_from_slice(&content.entries.to_le_bytes());
    block[14..16].copy_from_slice(&content.used.to_le_bytes());
    block[16..24].copy_from_slice(&lsn.0.to_le_bytes());
    let sum = checksum(block);
    block[0..4].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a block that was read: checksum first, then address and kind.
///
/// # Errors
/// [`EngineError::CorruptBlock`] with what was found and expected.
#[inline]
pub fn verify(
    block: &[u8],
    kind: BlockKind,
    address: BlockAddress,
    path: &Path,
) -> Result<Content, EngineError> {
    let right = word(block, 0) == checksum(block)
        && block[4] == kind as u8
        && block[5] == VERSION
        && address_of(block) == address;
    let content = content_of(block);
    if right && content.used as usize <= block.len() - HEADER_BYTES {
        return Ok(content);
    }
    Err(explain(block, kind, address, path))
}

/// Checks which operation wrote a block that has been verified.
///
/// # Errors
/// When it was another one: the write that should have replaced the block was lost.
pub fn require_lsn(block: &[u8], lsn: Lsn, address: BlockAddress, path: &Path) -> Result<(), EngineError> {
    let found = Lsn(u64::from_le_bytes(block[16..24].try_into().expect("eight bytes")));
    if found == lsn {
        return Ok(());
    }
    Err(EngineError::CorruptBlock {
        path: path.to_path_buf(),
        address,
        what: "operation",
        found: format!("number {}, an earlier one", found.0),
        expected: format!("number {}", lsn.0),
    })
}

/// What the header of a block that has been verified says of its content.
#[inline]
#[must_use]
pub fn content_of(block: &[u8]) -> Content {
    Content { entries: half(block, 12), used: half(block, 14) }
}

#[cold]
fn explain(block: &[u8], kind: BlockKind, address: BlockAddress, path: &Path) -> EngineError {
    let (what, found, expected) = if block.iter().all(|byte| *byte == 0) {
        ("content", "zeros, as in a block never written".to_string(), format!("a {} block", kind.name()))
    } else if word(block, 0) != checksum(block) {
        ("checksum", format!("{:#010x}", word(block, 0)), format!("{:#010x}", checksum(block)))
    } else if address_of(block) != address {
        ("its own address", address_of(block).to_string(), address.to_string())
    } else if block[4] != kind as u8 {
        let found = BlockKind::of(block[4]).map_or("an unknown kind", BlockKind::name);
        ("kind", found.to_string(), kind.name().to_string())
    } else {
        ("version", block[5].to_string(), VERSION.to_string())
    };
    EngineError::CorruptBlock { path: path.to_path_buf(), address, what, found, expected }
}

/// CRC-32C of everything after the checksum itself.
#[inline]
fn checksum(block: &[u8]) -> u32 {
    // The crate gives all widths as u64; CRC-32 fits the low half.
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &block[4..]) as u32
}

fn address_of(block: &[u8]) -> BlockAddress {
    BlockAddress { file: FileId(half(block, 6)), block: BlockNumber(word(block, 8)) }
}

fn half(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

fn word(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: BlockAddress = BlockAddress { file: FileId(3), block: BlockNumber(4711) };

    fn sealed() -> Vec<u8> {
        let mut block: Vec<u8> = (0..2048u32).map(|i| (i * 7) as u8).collect();
        seal(&mut block, BlockKind::Table, HERE, Lsn(9), Content { entries: 12, used: 2000 });
        block
    }

    fn complaint(block: &[u8], kind: BlockKind, address: BlockAddress) -> String {
        let result = verify(block, kind, address, Path::new("users01.dbf"));
        result.expect_err("corrupt").to_string()
    }

    #[test]
    fn a_sealed_block_is_accepted_where_it_belongs() {
        let content = verify(&sealed(), BlockKind::Table, HERE, Path::new("x")).expect("right");
        assert_eq!(content, Content { entries: 12, used: 2000 });
    }

    #[test]
    fn corruption_is_found_at_every_byte() {
        let good = sealed();
        for at in 0..good.len() {
            for flip in [1u8, 0x80, 0xFF] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                assert!(verify(&bad, BlockKind::Table, HERE, Path::new("x")).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn the_complaint_says_what_was_found_and_expected() {
        let mut bad = sealed();
        bad[100] ^= 1;
        let text = complaint(&bad, BlockKind::Table, HERE);
        assert!(
            text.starts_with("users01.dbf: block 4711 (file 3 block 4711) is corrupt: checksum: found 0x"),
            "{text}"
        );
        let elsewhere = BlockAddress { file: FileId(3), block: BlockNumber(4712) };
        assert_eq!(
            complaint(&sealed(), BlockKind::Table, elsewhere),
            "users01.dbf: block 4712 (file 3 block 4712) is corrupt: its own address: found file 3 block 4711, \
             expected file 3 block 4712; restore the file from a copy, or drop and rebuild what it holds"
        );
        assert!(
            complaint(&sealed(), BlockKind::Leaf, HERE).contains("kind: found table, expected index leaf")
        );
        assert!(
            complaint(&[0; 2048], BlockKind::Leaf, HERE).contains("found zeros, as in a block never written")
        );
    }
}
