//! An edit changes a block and records each step, so that no change escapes the log.
//!
//! Steps apply to the block at once. [`Edit::finish`] decides what is logged: the steps, or the
//! whole block if it was not logged since the last checkpoint. A stamp is the place of the record's
//! LSN in the block, filled when the record has its LSN.

use super::record::{RecordBytes, Start, Step};
use crate::storage::block::{self, BlockKind};
use crate::storage::tablespace::Purpose;
use plumb_units::{BlockAddress, Lsn};

/// Steps applied to one block, and what the log needs of them.
#[derive(Debug)]
pub struct Edit {
    purpose: Purpose,
    address: BlockAddress,
    start: Start,
    steps: Vec<u8>,
    stamps: Vec<u16>,
}

impl Edit {
    /// Edits an existing block. The block is logged whole if its last change is before `floor`, the
    /// LSN at which the last checkpoint began.
    pub fn new(purpose: Purpose, address: BlockAddress, block: &[u8], floor: Lsn) -> Edit {
        let start = if block::lsn_of(block) < floor.0 { Start::Image } else { Start::Present };
        Edit { purpose, address, start, steps: Vec::new(), stamps: Vec::new() }
    }

    /// Logs a block whole, as it is when the edit finishes.
    pub fn image(purpose: Purpose, address: BlockAddress) -> Edit {
        Edit { purpose, address, start: Start::Image, steps: Vec::new(), stamps: Vec::new() }
    }

    /// Formats a new block: zeros it and writes its header.
    #[must_use]
    pub fn format(purpose: Purpose, address: BlockAddress, block: &mut [u8], kind: BlockKind) -> Edit {
        block.fill(0);
        block::set_identity(block, kind, address);
        let mut edit = Edit { purpose, address, start: Start::Zeros, steps: Vec::new(), stamps: Vec::new() };
        edit.note(Step::Write { offset: 4, bytes: &block[4..12] });
        edit
    }

    /// Writes `bytes` at an offset.
    ///
    /// # Panics
    /// If they reach beyond the block.
    pub fn write(&mut self, block: &mut [u8], offset: usize, bytes: &[u8]) {
        self.step(block, Step::Write { offset: offset as u16, bytes });
    }

    /// Writes a `u16`, little-endian.
    pub fn write_u16(&mut self, block: &mut [u8], offset: usize, number: u16) {
        self.write(block, offset, &number.to_le_bytes());
    }

    /// Moves `length` bytes within the block; the two ranges may overlap.
    pub fn shift(&mut self, block: &mut [u8], from: usize, to: usize, length: usize) {
        if length > 0 && from != to {
            self.step(block, Step::Move { from: from as u16, to: to as u16, length: length as u16 });
        }
    }

    /// Adds `delta` to `count` adjacent `u16`, modulo 2^16.
    pub fn add(&mut self, block: &mut [u8], offset: usize, count: usize, delta: u16) {
        if count > 0 {
            self.step(block, Step::Add { offset: offset as u16, count: count as u16, delta });
        }
    }

    /// Reserves eight bytes at `offset` for the LSN of the record.
    pub fn stamp(&mut self, offset: usize) {
        self.stamps.push(offset as u16);
    }

    fn step(&mut self, block: &mut [u8], step: Step<'_>) {
        step.apply(block, Lsn(0)).expect("a change stays within its block");
        self.note(step);
    }

    /// Records a step; an image needs none.
    fn note(&mut self, step: Step<'_>) {
        if self.start != Start::Image {
            step.push(&mut self.steps);
        }
    }

    /// Adds the change to a record; returns the bytes of the block's image, or 0 if it has none.
    pub fn finish(&mut self, block: &[u8], record: &mut RecordBytes) -> usize {
        let mut image = 0;
        if self.start == Start::Image {
            Step::Write { offset: 0, bytes: block }.push(&mut self.steps);
            image = block.len();
        }
        for offset in &self.stamps {
            Step::Stamp { offset: *offset }.push(&mut self.steps);
        }
        record.change(self.purpose, self.address, self.start, &self.steps);
        image
    }

    /// Writes the record's LSN into the block's header and stamps.
    pub fn set_lsn(&self, block: &mut [u8], lsn: Lsn) {
        for offset in &self.stamps {
            Step::Stamp { offset: *offset }.apply(block, lsn).expect("a stamp stays within its block");
        }
        block::set_lsn(block, lsn);
    }
}
