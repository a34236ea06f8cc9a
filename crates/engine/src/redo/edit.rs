//! Changes a block and notes each step, so that nothing is changed that is not logged.
//!
//! The steps are done in the block at once. What becomes of them is decided at the end, in
//! [`Edit::finish`]: they are the change, or, where the block has not been logged since the last
//! checkpoint, the whole block is. A stamp is the place of the record's LSN, which is known only
//! when the record has its place in the log.

use super::record::{RecordBytes, Start, Step};
use crate::storage::block::{self, BlockKind};
use crate::storage::tablespace::Purpose;
use plumb_units::{BlockAddress, Lsn};

/// What was done to one block.
#[derive(Debug)]
pub struct Edit {
    purpose: Purpose,
    address: BlockAddress,
    start: Start,
    steps: Vec<u8>,
    stamps: Vec<u16>,
}

impl Edit {
    /// Of a block as it is. It is logged whole if it was last changed before `floor`, where the
    /// last checkpoint began.
    #[must_use]
    pub fn new(purpose: Purpose, address: BlockAddress, block: &[u8], floor: Lsn) -> Edit {
        let start = if block::lsn_of(block) < floor.0 { Start::Image } else { Start::Present };
        Edit { purpose, address, start, steps: Vec::new(), stamps: Vec::new() }
    }

    /// Of a block that is logged as it is.
    #[must_use]
    pub fn image(purpose: Purpose, address: BlockAddress) -> Edit {
        Edit { purpose, address, start: Start::Image, steps: Vec::new(), stamps: Vec::new() }
    }

    /// Of a new block, whose header this writes.
    #[must_use]
    pub fn format(purpose: Purpose, address: BlockAddress, block: &mut [u8], kind: BlockKind) -> Edit {
        block.fill(0);
        block::set_identity(block, kind, address);
        let mut edit = Edit { purpose, address, start: Start::Zeros, steps: Vec::new(), stamps: Vec::new() };
        edit.note(Step::Write { offset: 4, bytes: &block[4..12] });
        edit
    }

    /// Writes bytes.
    pub fn write(&mut self, block: &mut [u8], offset: usize, bytes: &[u8]) {
        self.step(block, Step::Write { offset: offset as u16, bytes });
    }

    /// Writes a number of two bytes.
    pub fn write_u16(&mut self, block: &mut [u8], offset: usize, number: u16) {
        self.write(block, offset, &number.to_le_bytes());
    }

    /// Moves bytes; the two places may overlap.
    pub fn shift(&mut self, block: &mut [u8], from: usize, to: usize, length: usize) {
        if length > 0 && from != to {
            self.step(block, Step::Move { from: from as u16, to: to as u16, length: length as u16 });
        }
    }

    /// Adds to adjacent numbers of two bytes, modulo 2^16.
    pub fn add(&mut self, block: &mut [u8], offset: usize, count: usize, delta: u16) {
        if count > 0 {
            self.step(block, Step::Add { offset: offset as u16, count: count as u16, delta });
        }
    }

    /// Puts the LSN of the record there, eight bytes, once it is known.
    pub fn stamp(&mut self, offset: usize) {
        self.stamps.push(offset as u16);
    }

    fn step(&mut self, block: &mut [u8], step: Step<'_>) {
        step.apply(block, Lsn(0)).expect("a change stays within its block");
        self.note(step);
    }

    /// An image needs no steps.
    fn note(&mut self, step: Step<'_>) {
        if self.start != Start::Image {
            step.push(&mut self.steps);
        }
    }

    /// Adds the change to a record; gives the bytes of the block's image, if it has one.
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

    /// Puts the LSN into the block.
    pub fn set_lsn(&self, block: &mut [u8], lsn: Lsn) {
        for offset in &self.stamps {
            Step::Stamp { offset: *offset }.apply(block, lsn).expect("a stamp stays within its block");
        }
        block::set_lsn(block, lsn);
    }
}
