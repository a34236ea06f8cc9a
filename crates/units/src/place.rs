//! Where a thing lies: file, block, row; and when it was written: LSN.

use crate::Bytes;
use std::fmt;

/// The size of a database block: 2K, 4K, 8K, 16K or 32K.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    /// The sizes a tablespace may have.
    pub const ALL: [BlockSize; 5] =
        [BlockSize(2048), BlockSize(4096), BlockSize(8192), BlockSize(16384), BlockSize(32768)];

    /// The block size of so many bytes, if it is one of the five.
    #[must_use]
    pub fn new(bytes: u64) -> Option<BlockSize> {
        Self::ALL.into_iter().find(|size| u64::from(size.0) == bytes)
    }

    /// Bytes in a block.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// How many whole blocks fit in so many bytes (rounded down).
    #[must_use]
    pub const fn blocks_in(self, bytes: u64) -> BlockCount {
        BlockCount((bytes / self.0 as u64) as u32)
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Bytes(u64::from(self.0)).as_setting())
    }
}

/// A number of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockCount(pub u32);

impl BlockCount {
    /// The bytes these blocks take.
    #[must_use]
    pub const fn bytes(self, size: BlockSize) -> u64 {
        self.0 as u64 * size.bytes() as u64
    }
}

/// The position of a block within its data file; block 0 is the file header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u32);

impl BlockNumber {
    /// Where the block starts in its file.
    #[must_use]
    pub const fn byte_offset(self, size: BlockSize) -> u64 {
        self.0 as u64 * size.bytes() as u64
    }

    /// The block so many further on.
    #[must_use]
    pub const fn plus(self, blocks: u32) -> BlockNumber {
        BlockNumber(self.0 + blocks)
    }
}

/// A data file's number within its database, from 1; at most 1023 (10 bits of a [`RowId`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

/// A block's address: which file, which block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// The data file.
    pub file: FileId,
    /// The block within it.
    pub block: BlockNumber,
}

impl fmt::Display for BlockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} block {}", self.file.0, self.block.0)
    }
}

/// A row's address in one word: file (10 bits), block (32 bits), slot (16 bits), so
/// that the order of the words is the order of the places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u64);

impl RowId {
    /// The address of slot `slot` in the block.
    #[must_use]
    pub const fn new(address: BlockAddress, slot: u16) -> RowId {
        RowId((address.file.0 as u64) << 48 | (address.block.0 as u64) << 16 | slot as u64)
    }

    /// The block the row is in.
    #[must_use]
    pub const fn address(self) -> BlockAddress {
        BlockAddress { file: FileId((self.0 >> 48) as u16), block: BlockNumber((self.0 >> 16) as u32) }
    }

    /// The row's slot in its block, from 0.
    #[must_use]
    pub const fn slot(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slot {}", self.address(), self.slot())
    }
}

/// A log sequence number: the order of changes to a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);
