//! Addresses of files, blocks and rows, and the LSN of a change.

use crate::Bytes;
use std::fmt;

/// The size of a database block: 2K, 4K, 8K, 16K or 32K.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    /// The sizes a tablespace may have.
    pub const ALL: [BlockSize; 5] =
        [BlockSize(2048), BlockSize(4096), BlockSize(8192), BlockSize(16384), BlockSize(32768)];

    /// Returns the block size of this many bytes, if it is one of the five.
    pub fn new(bytes: u64) -> Option<BlockSize> {
        Self::ALL.into_iter().find(|size| u64::from(size.0) == bytes)
    }

    /// Returns the bytes in a block.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of whole blocks in `bytes`, rounded down.
    pub const fn blocks_in(self, bytes: u64) -> BlockCount {
        BlockCount((bytes / self.0 as u64) as u32)
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Bytes(u64::from(self.0)).as_setting())
    }
}

/// A number of blocks, of any size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockCount(pub u32);

impl BlockCount {
    /// Returns the bytes that these blocks take.
    pub const fn bytes(self, size: BlockSize) -> u64 {
        self.0 as u64 * size.bytes() as u64
    }
}

/// The position of a block within its data file; block 0 is the file header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u32);

impl BlockNumber {
    /// Returns the byte offset of the block in its file.
    pub const fn byte_offset(self, size: BlockSize) -> u64 {
        self.0 as u64 * size.bytes() as u64
    }

    /// Returns the block `blocks` further on.
    #[must_use]
    pub const fn plus(self, blocks: u32) -> BlockNumber {
        BlockNumber(self.0 + blocks)
    }
}

/// Number of a data file within its database, 1 to 1023 (10 bits of a [`RowId`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

/// Address of a block: its file, and its number there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// Number of the data file.
    pub file: FileId,
    /// Number of the block within the file.
    pub block: BlockNumber,
}

impl fmt::Display for BlockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} block {}", self.file.0, self.block.0)
    }
}

/// Address of a row in one word: file (10 bits), block (32 bits), slot (16 bits). The order of the
/// words is that of the places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u64);

impl RowId {
    /// Returns the address of slot `slot` in the block.
    pub const fn new(address: BlockAddress, slot: u16) -> RowId {
        RowId((address.file.0 as u64) << 48 | (address.block.0 as u64) << 16 | slot as u64)
    }

    /// Returns the address of the row's block.
    pub const fn address(self) -> BlockAddress {
        BlockAddress { file: FileId((self.0 >> 48) as u16), block: BlockNumber((self.0 >> 16) as u32) }
    }

    /// Returns the row's slot in its block, from 0.
    pub const fn slot(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slot {}", self.address(), self.slot())
    }
}

/// A log sequence number: the position of a change in the order of all changes to a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);
