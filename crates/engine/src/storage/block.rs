//! A block: 24 bytes of header, then its content.
//!
//! ```text
//! byte 0   crc32c u32     over bytes 4.. of the block
//!      4   kind u8        1 file header, 2 table, 3 temp, 4 leaf, 5 branch, 6 segment, 7 rows
//!      5   version u8     2
//!      6   file u16       the block's own address: data file
//!      8   block u32      and block number
//!     12   entries u16    rows, records or index entries in the block
//!     14   used u16       bytes of content after the header (32K - 24 fits)
//!     16   lsn u64        which operation of the database wrote it
//! ```
//! All numbers are little-endian. CRC-32C (Castagnoli, RFC 3720 appendix B.4) finds every
//! error burst of up to 32 bits and misses others once in 2^32; it runs at tens of GB/s
//! where the processor has carry-less multiplication. The address finds a block written,
//! or read, in the wrong place, which a checksum cannot. The LSN finds a lost write: the
//! block that it should have replaced is whole and in its place, but its operation is not
//! one of the segment's ([`LsnRange`]).

use super::layout::{self, Misfit};
use crate::EngineError;
use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn, range_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Bytes of header before a block's content.
pub const HEADER_BYTES: usize = 24;
const VERSION: u8 = 2;
/// Highest operation number and highest LSN that a file may name. No database reaches it in 2^27
/// openings. The sum of an LSN and a length stays far from 2^64.
pub(crate) const LSN_MOST: u64 = 1 << 62;

/// Kind of content of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Block 0 of a data file.
    FileHeader = 1,
    /// Rows of a table loaded by direct path.
    Table = 2,
    /// Records of a sort run.
    Temp = 3,
    /// Entries of an index, in key order.
    Leaf = 4,
    /// Separators of an index, each with a child.
    Branch = 5,
    /// First block of a segment that transactions change.
    Segment = 6,
    /// Rows of a table that transactions change.
    Rows = 7,
}

impl BlockKind {
    const fn name(self) -> &'static str {
        match self {
            BlockKind::FileHeader => "file header",
            BlockKind::Table => "table",
            BlockKind::Temp => "temp",
            BlockKind::Leaf => "index leaf",
            BlockKind::Branch => "index branch",
            BlockKind::Segment => "segment header",
            BlockKind::Rows => "rows",
        }
    }

    fn of(byte: u8) -> Option<BlockKind> {
        use BlockKind::{Branch, FileHeader, Leaf, Rows, Segment, Table, Temp};
        [FileHeader, Table, Temp, Leaf, Branch, Segment, Rows].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The operations that may have written a segment's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LsnRange {
    first: u64,
    last: u64,
}

impl LsnRange {
    /// Any operation, for blocks that belong to no segment.
    pub const ANY: LsnRange = LsnRange { first: 0, last: u64::MAX };

    /// Redo records of this LSN or a later one.
    pub const fn from(lsn: Lsn) -> LsnRange {
        LsnRange { first: lsn.0, last: u64::MAX }
    }

    /// One operation, as for direct path loads and builds.
    pub const fn only(lsn: Lsn) -> LsnRange {
        LsnRange { first: lsn.0, last: lsn.0 }
    }

    /// Returns the range that also has a later operation, for a segment that it extended.
    pub(crate) const fn up_to(self, lsn: Lsn) -> LsnRange {
        LsnRange { first: self.first, last: if lsn.0 > self.last { lsn.0 } else { self.last } }
    }

    /// Returns the lowest LSN that the segment's redo records may have; `None` if
    /// one operation wrote all blocks.
    pub const fn first_record(self) -> Option<Lsn> {
        if self.last == u64::MAX { Some(Lsn(self.first)) } else { None }
    }

    /// Returns the lowest and the highest number.
    pub(super) const fn bounds(self) -> [u64; 2] {
        [self.first, self.last]
    }

    #[inline]
    const fn contains(self, lsn: u64) -> bool {
        self.first <= lsn && lsn <= self.last
    }
}

impl fmt::Display for LsnRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ending = if self.first == self.last { "" } else { "s" };
        write!(f, "number{ending} {}", range_text(i128::from(self.first), i128::from(self.last)))
    }
}

/// The kind and the writers that a block of a segment must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Kind of content that it must have.
    pub kind: BlockKind,
    /// Operations that may have written it.
    pub lsns: LsnRange,
}

impl Expected {
    /// True if the header of a verified block has this kind and one of these LSNs.
    #[inline]
    pub fn matches(self, block: &[u8]) -> bool {
        block[4] == self.kind as u8 && self.lsns.contains(lsn_of(block))
    }
}

/// Size of a block's content, as its header states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Number of rows, records or entries.
    pub entries: u16,
    /// Bytes of content after the header.
    pub used: u16,
}

/// Writes the header and the checksum, as the last step before a block is written.
pub fn seal(block: &mut [u8], kind: BlockKind, address: BlockAddress, lsn: Lsn, content: Content) {
    debug_assert!(content.used as usize <= block.len() - HEADER_BYTES);
    set_identity(block, kind, address);
    block[12..14].copy_from_slice(&content.entries.to_le_bytes());
    block[14..16].copy_from_slice(&content.used.to_le_bytes());
    set_lsn(block, lsn);
    set_checksum(block);
}

/// Writes the kind and the address of a block into its header.
pub(crate) fn set_identity(block: &mut [u8], kind: BlockKind, address: BlockAddress) {
    block[4] = kind as u8;
    block[5] = VERSION;
    block[6..8].copy_from_slice(&address.file.0.to_le_bytes());
    block[8..12].copy_from_slice(&address.block.0.to_le_bytes());
}

/// Notes the redo record that changed the block.
pub(crate) fn set_lsn(block: &mut [u8], lsn: Lsn) {
    block[16..24].copy_from_slice(&lsn.0.to_le_bytes());
}

/// Writes the checksum of a block that was changed in place.
pub(crate) fn set_checksum(block: &mut [u8]) {
    let sum = checksum(block);
    block[0..4].copy_from_slice(&sum.to_le_bytes());
}

/// True if the checksum and the address of a block are right.
pub(crate) fn is_whole(block: &[u8], address: BlockAddress) -> bool {
    word(block, 0) == checksum(block) && block[5] == VERSION && address_of(block) == address
}

/// Checks a block that was read: checksum, address, kind, version, LSN, and the bounds of its
/// content ([`layout`]), so that callers need not check these again.
///
/// # Errors
/// [`EngineError::CorruptBlock`] with the value found and the value expected.
#[inline]
pub fn verify(
    block: &[u8],
    expected: Expected,
    address: BlockAddress,
    path: &Path,
) -> Result<Content, EngineError> {
    if word(block, 0) != checksum(block) {
        return Err(explain(block, expected, address, path));
    }
    verify_header(block, expected, address, path)
}

/// Checks a block without its checksum; after the header it reads only the slots.
///
/// # Errors
/// The same errors as [`verify`], if the header is wrong.
#[inline]
pub fn verify_header(
    block: &[u8],
    expected: Expected,
    address: BlockAddress,
    path: &Path,
) -> Result<Content, EngineError> {
    let right = expected.matches(block) && block[5] == VERSION && address_of(block) == address;
    if !right {
        return Err(explain(block, expected, address, path));
    }
    let content = content_of(block);
    match layout::misfit(block, expected.kind, content) {
        None => Ok(content),
        Some(misfit) => Err(does_not_fit(misfit, address, path)),
    }
}

/// Checks a block that was made from the log: its address, its kind and the bounds of its content.
///
/// # Errors
/// The same errors as [`verify`].
pub(crate) fn verify_made(block: &[u8], address: BlockAddress, path: &Path) -> Result<(), EngineError> {
    let Some(kind) = BlockKind::of(block[4]) else {
        let (found, expected) = (block[4].to_string(), "a kind of block from 1 to 7".to_string());
        return Err(EngineError::CorruptBlock {
            path: path.to_path_buf(),
            address,
            what: "kind",
            found,
            expected,
        });
    };
    verify_header(block, Expected { kind, lsns: LsnRange::ANY }, address, path).map(drop)
}

#[cold]
fn does_not_fit(misfit: Misfit, address: BlockAddress, path: &Path) -> EngineError {
    let Misfit { what, found, expected } = misfit;
    EngineError::CorruptBlock { path: path.to_path_buf(), address, what, found, expected }
}

/// Returns the error of a block whose last change lies after the end of the log.
pub(crate) fn beyond_log(lsn: Lsn, address: BlockAddress, path: &Path, end: Lsn) -> EngineError {
    let ended = "where the log ended when it was opened: the log has lost its end";
    wrong_change(lsn, address, path, format!("one before LSN {}, {ended}", end.0))
}

/// Returns the error of a block whose last change has an unexpected LSN.
#[cold]
pub(crate) fn wrong_change(lsn: Lsn, address: BlockAddress, path: &Path, expected: String) -> EngineError {
    let (path, found) = (path.to_path_buf(), format!("that of LSN {}", lsn.0));
    EngineError::CorruptBlock { path, address, what: "its last change", found, expected }
}

/// Returns the size of the content of a verified block.
#[inline]
pub fn content_of(block: &[u8]) -> Content {
    Content { entries: half(block, 12), used: half(block, 14) }
}

/// Returns the error that describes the damage of a block of any kind.
#[cold]
pub(crate) fn damage(block: &[u8], address: BlockAddress, path: &Path) -> EngineError {
    let kind = BlockKind::of(block[4]).unwrap_or(BlockKind::Table);
    explain(block, Expected { kind, lsns: LsnRange::ANY }, address, path)
}

#[cold]
fn explain(block: &[u8], expected: Expected, address: BlockAddress, path: &Path) -> EngineError {
    let Expected { kind, lsns } = expected;
    let (what, found, expected) = if block.iter().all(|byte| *byte == 0) {
        ("content", "zeros, as in a block never written".to_string(), format!("a {} block", kind.name()))
    } else if word(block, 0) != checksum(block) {
        ("checksum", format!("{:#010x}", word(block, 0)), format!("{:#010x}", checksum(block)))
    } else if address_of(block) != address {
        ("its own address", address_of(block).to_string(), address.to_string())
    } else if block[4] != kind as u8 {
        let found = BlockKind::of(block[4]).map_or("an unknown kind", BlockKind::name);
        ("kind", found.to_string(), kind.name().to_string())
    } else if block[5] != VERSION {
        ("version", block[5].to_string(), VERSION.to_string())
    } else {
        let found = lsn_of(block);
        let age = if found < lsns.first { "an earlier" } else { "a later" };
        ("operation", format!("number {found}, {age} one"), lsns.to_string())
    };
    EngineError::CorruptBlock { path: path.to_path_buf(), address, what, found, expected }
}

/// Returns the CRC-32C of all bytes after the checksum itself.
#[inline]
fn checksum(block: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(&block[4..])
}

/// Returns the address that a block names as its own.
pub(crate) fn address_of(block: &[u8]) -> BlockAddress {
    BlockAddress { file: FileId(half(block, 6)), block: BlockNumber(word(block, 8)) }
}

/// Returns the number of the operation, or the LSN of the redo record, that last changed the block.
#[inline]
pub fn lsn_of(block: &[u8]) -> u64 {
    u64::from(word(block, 16)) | u64::from(word(block, 20)) << 32
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

    fn written_by(kind: BlockKind, lsn: u64) -> Expected {
        Expected { kind, lsns: LsnRange::only(Lsn(lsn)) }
    }

    fn complaint(block: &[u8], kind: BlockKind, address: BlockAddress) -> String {
        let result = verify(block, written_by(kind, 9), address, Path::new("users01.dbf"));
        result.expect_err("corrupt").to_string()
    }

    #[test]
    fn a_sealed_block_is_accepted_where_it_belongs() {
        let content =
            verify(&sealed(), written_by(BlockKind::Table, 9), HERE, Path::new("x")).expect("right");
        assert_eq!(content, Content { entries: 12, used: 2000 });
    }

    #[test]
    fn corruption_is_found_at_every_byte() {
        let good = sealed();
        for at in 0..good.len() {
            for flip in [1u8, 0x80, 0xFF] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                assert!(
                    verify(&bad, written_by(BlockKind::Table, 9), HERE, Path::new("x")).is_err(),
                    "byte {at}"
                );
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

    #[test]
    fn a_whole_block_of_another_operation_is_refused() {
        for (lsn, age) in [(8, "a later"), (10, "an earlier")] {
            let expected = written_by(BlockKind::Table, lsn);
            let error = verify(&sealed(), expected, HERE, Path::new("users01.dbf")).expect_err("another's");
            let text = format!("operation: found number 9, {age} one, expected number {lsn}; restore");
            assert!(error.to_string().contains(&text), "{error}");
        }
        let between = Expected { kind: BlockKind::Table, lsns: LsnRange { first: 3, last: 8 } };
        let error = verify(&sealed(), between, HERE, Path::new("x")).expect_err("another's").to_string();
        assert!(error.contains("expected numbers 3 to 8"), "{error}");
        let any = Expected { kind: BlockKind::Table, lsns: LsnRange::ANY };
        assert!(verify(&sealed(), any, HERE, Path::new("x")).is_ok());
    }
}
