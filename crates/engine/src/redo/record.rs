//! A redo record: the new bytes of blocks, and how to undo the change.
//!
//! ```text
//! byte  0  length u32       of all, a multiple of 8; what is not 0 is complete
//!       4  kind u8          1 change, 2 its undoing, 3 commit, 4 end of rollback, 5 checkpoint
//!       8  transaction u64  0: none, for example a split of a leaf
//!      16  previous u64     LSN of the transaction's record to undo after this one; 0: none
//!      24  undo u32         bytes that say how to undo it; 0: it is not undone
//!      28  changes u32      bytes of changes
//!      32  undo, then changes; zeros up to the length
//!
//! a change:  purpose u8 | start u8 | file u16 | block u32 | bytes u32 | steps
//! start:     0 the block as it is, 1 a block of zeros, 2 any block: a step writes all of it
//! a step:    1 write     offset u16, length u16, bytes
//!            2 move      from u16, to u16, length u16
//!            3 add       offset u16, count u16, delta u16: to `count` adjacent u16, modulo 2^16
//!            4 stamp     offset u16: the LSN of the record, u64
//! ```
//! Recovery applies a change's steps to a block with a lower LSN; the block then gets the record's
//! LSN.

use crate::storage::tablespace::Purpose;
use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn};

/// Bytes of a record before undo and changes.
pub const HEADER_BYTES: usize = 32;
/// Bytes of one transaction in a checkpoint's record: its number, first LSN and last LSN.
pub(crate) const UNDER_WAY_BYTES: usize = 3 * 8;
/// Bytes of a change before its steps.
const CHANGE_BYTES: usize = 12;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Changes blocks.
    Change = 1,
    /// Undoes a change; `previous` is the record to undo next.
    Undoing = 2,
    /// Commits the transaction.
    Commit = 3,
    /// Ends a rollback: all changes of the transaction are undone.
    RolledBack = 4,
    /// Begins a checkpoint; its undo bytes list the running transactions.
    Checkpoint = 5,
}

impl RecordKind {
    fn of(byte: u8) -> Option<RecordKind> {
        use RecordKind::{Change, Checkpoint, Commit, RolledBack, Undoing};
        [Change, Undoing, Commit, RolledBack, Checkpoint].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Contents of a block before the first step of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Start {
    /// The block as it is.
    Present = 0,
    /// Zeros, whatever the block holds.
    Zeros = 1,
    /// Anything, because the first step writes the whole block.
    Image = 2,
}

/// Builder of a record's bytes.
#[derive(Debug, Default)]
pub struct RecordBytes(Vec<u8>);

impl RecordBytes {
    /// Clears the bytes and begins a record.
    pub fn begin(&mut self, kind: RecordKind, transaction: u64, previous: Lsn, undo: &[u8]) {
        let bytes = &mut self.0;
        bytes.clear();
        bytes.extend_from_slice(&[0; HEADER_BYTES]);
        bytes[4] = kind as u8;
        bytes[8..16].copy_from_slice(&transaction.to_le_bytes());
        bytes[16..24].copy_from_slice(&previous.0.to_le_bytes());
        bytes[24..28].copy_from_slice(&(undo.len() as u32).to_le_bytes());
        bytes.extend_from_slice(undo);
    }

    /// Adds the change of one block.
    pub fn change(&mut self, purpose: Purpose, address: BlockAddress, start: Start, steps: &[u8]) {
        let bytes = &mut self.0;
        bytes.extend_from_slice(&[purpose as u8, start as u8]);
        bytes.extend_from_slice(&address.file.0.to_le_bytes());
        bytes.extend_from_slice(&address.block.0.to_le_bytes());
        bytes.extend_from_slice(&(steps.len() as u32).to_le_bytes());
        bytes.extend_from_slice(steps);
    }

    /// Fills in the lengths and returns the whole record, padded to 8 bytes.
    pub fn finish(&mut self) -> &[u8] {
        let bytes = &mut self.0;
        let undo = u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]) as usize;
        let changes = bytes.len() - HEADER_BYTES - undo;
        bytes[28..32].copy_from_slice(&(changes as u32).to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let length = bytes.len() as u32;
        bytes[0..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }
}

/// A parsed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// LSN of the record.
    pub lsn: Lsn,
    /// Kind of the record.
    pub kind: RecordKind,
    /// Number of the transaction; 0 for none.
    pub transaction: u64,
    /// LSN of the record of the transaction that is undone next; 0 for none.
    pub previous: Lsn,
    /// Bytes that describe the undoing; empty for a record that is not undone.
    pub undo: &'a [u8],
    changes: &'a [u8],
}

impl Record<'_> {
    /// Returns the bytes of the whole record.
    pub fn length(&self) -> usize {
        (HEADER_BYTES + self.undo.len() + self.changes.len()).next_multiple_of(8)
    }

    pub(super) fn change_bytes(&self) -> usize {
        self.changes.len()
    }
}

/// Change of one block in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockChange<'a> {
    /// Tablespace of the block.
    pub purpose: Purpose,
    /// Address of the block.
    pub address: BlockAddress,
    /// Contents of the block before the first step.
    pub start: Start,
    steps: &'a [u8],
}

/// Returns the length of the record at the front of `bytes`, from its first word;
/// `None` if none begins there.
pub fn length_of(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.first_chunk::<4>()?) as usize;
    (length >= HEADER_BYTES && length.is_multiple_of(8)).then_some(length)
}

impl<'a> Record<'a> {
    /// Parses the record at the front of `bytes`; `None` if none is there.
    pub fn parse(lsn: Lsn, bytes: &'a [u8]) -> Option<Record<'a>> {
        let bytes = bytes.get(..length_of(bytes)?)?;
        let word =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let undo_bytes = word(24) as u32 as usize;
        let change_bytes = (word(24) >> 32) as usize;
        let (undo, rest) = bytes[HEADER_BYTES..].split_at_checked(undo_bytes)?;
        Some(Record {
            lsn,
            kind: RecordKind::of(bytes[4])?,
            transaction: word(8),
            previous: Lsn(word(16)),
            undo,
            changes: rest.get(..change_bytes)?,
        })
    }

    /// Returns the changes in order; stops at malformed bytes.
    pub fn changes(&self) -> impl Iterator<Item = BlockChange<'a>> + use<'a> {
        let mut rest = self.changes;
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_first_chunk::<CHANGE_BYTES>()?;
            let [purpose, start, f0, f1, b0, b1, b2, b3, l0, l1, l2, l3] = *head;
            let (steps, behind) = behind.split_at_checked(u32::from_le_bytes([l0, l1, l2, l3]) as usize)?;
            rest = behind;
            let file = FileId(u16::from_le_bytes([f0, f1]));
            let block = BlockNumber(u32::from_le_bytes([b0, b1, b2, b3]));
            Some(BlockChange {
                purpose: *Purpose::ALL.get(purpose as usize)?,
                address: BlockAddress { file, block },
                start: [Start::Present, Start::Zeros, Start::Image]
                    .into_iter()
                    .find(|it| *it as u8 == start)?,
                steps,
            })
        })
    }
}

#[derive(Debug)]
pub(super) enum Step<'a> {
    Write { offset: u16, bytes: &'a [u8] },
    Move { from: u16, to: u16, length: u16 },
    Add { offset: u16, count: u16, delta: u16 },
    Stamp { offset: u16 },
}

impl Step<'_> {
    /// Appends the encoded step to `steps`.
    pub(super) fn push(&self, steps: &mut Vec<u8>) {
        let mut put = |code: u8, numbers: &[u16]| {
            steps.push(code);
            numbers.iter().for_each(|number| steps.extend_from_slice(&number.to_le_bytes()));
        };
        match self {
            Step::Write { offset, bytes } => {
                put(1, &[*offset, bytes.len() as u16]);
                steps.extend_from_slice(bytes);
            }
            Step::Move { from, to, length } => put(2, &[*from, *to, *length]),
            Step::Add { offset, count, delta } => put(3, &[*offset, *count, *delta]),
            Step::Stamp { offset } => put(4, &[*offset]),
        }
    }

    /// Applies the step; `None` if it reaches beyond the block.
    pub(super) fn apply(&self, block: &mut [u8], lsn: Lsn) -> Option<()> {
        match *self {
            Step::Write { offset, bytes } => {
                block.get_mut(offset as usize..offset as usize + bytes.len())?.copy_from_slice(bytes);
            }
            Step::Move { from, to, length } => {
                let (from, to, length) = (from as usize, to as usize, length as usize);
                block.get(from.max(to)..from.max(to) + length)?;
                block.copy_within(from..from + length, to);
            }
            Step::Add { offset, count, delta } => {
                let numbers = block.get_mut(offset as usize..offset as usize + 2 * count as usize)?;
                for number in numbers.chunks_exact_mut(2) {
                    let sum = u16::from_le_bytes([number[0], number[1]]).wrapping_add(delta);
                    number.copy_from_slice(&sum.to_le_bytes());
                }
            }
            Step::Stamp { offset } => {
                block.get_mut(offset as usize..offset as usize + 8)?.copy_from_slice(&lsn.0.to_le_bytes());
            }
        }
        Some(())
    }

    /// Takes the first step off `steps`; `None` if it is malformed.
    fn take<'a>(steps: &mut &'a [u8]) -> Option<Step<'a>> {
        let (code, mut rest) = steps.split_first()?;
        let mut number = || {
            let (head, behind) = rest.split_first_chunk::<2>()?;
            rest = behind;
            Some(u16::from_le_bytes(*head))
        };
        let step = match code {
            1 => {
                let (offset, length) = (number()?, number()?);
                let (bytes, behind) = rest.split_at_checked(length as usize)?;
                rest = behind;
                Step::Write { offset, bytes }
            }
            2 => Step::Move { from: number()?, to: number()?, length: number()? },
            3 => Step::Add { offset: number()?, count: number()?, delta: number()? },
            4 => Step::Stamp { offset: number()? },
            _ => return None,
        };
        *steps = rest;
        Some(step)
    }
}

impl BlockChange<'_> {
    /// Returns the bytes of the change in its record.
    pub(super) fn bytes(&self) -> usize {
        CHANGE_BYTES + self.steps.len()
    }

    /// Applies the change to a block and sets its LSN; `None` if a step is malformed.
    #[must_use]
    pub fn apply(&self, block: &mut [u8], lsn: Lsn) -> Option<()> {
        if self.start == Start::Zeros {
            block.fill(0);
        }
        let mut steps = self.steps;
        while !steps.is_empty() {
            Step::take(&mut steps)?.apply(block, lsn)?;
        }
        crate::storage::block::set_lsn(block, lsn);
        Some(())
    }
}
