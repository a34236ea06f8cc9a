//! Keys of lines: byte strings that compare as the lines do, with the line in them.
//!
//! [`Keyed`] makes the record of a line, for a sort of [`BytesKey`](crate::sort::format::BytesKey)
//! records, and returns the line of a record.
//!
//! ```text
//! whole lines      line
//! with keys        key 1 | key 2 | ... | line                   ties: bytes of the line
//! stable           key 1 | key 2 | ... | offset u64 | line      ties: place in the file
//! records          bytes of the key | the other bytes
//!
//! a key as bytes   its bytes, 00 and 01 written 01 01 and 01 02 | 00
//! a key as number  80                                              zero, and any other text
//!                  81 | digits before the point u16 | digits | 00  above zero
//!                  7F | the same, every bit turned                 below zero
//! ```
//!
//! Each key ends in a byte that is below all of its own. So a shorter key comes first, and the
//! bytes after a key decide only if the keys are equal. A number loses insignificant zeros:
//! those before the digits and those after the last digit of the fraction. So numbers of any
//! length compare exactly, as strings.
//!
//! The row id of a record has the line's offset in its upper 48 bits, so that equal lines are
//! divided evenly among servers. The lower bits are the length of the bytes before the line.
//!
//! A number has GNU sort's form: blanks, `-`, digits, a point, digits; the rest is ignored. Without
//! a delimiter a field begins with the blanks before it.

use super::Shape;
use crate::sort::format::{BYTES_HEADER, key_of, row_of};
use crate::storage::block::HEADER_BYTES;
use crate::{EngineError, LineCure};
use plumb_units::BlockSize;
use std::ops::Range;
use std::path::Path;

/// Bits of a row id that hold the length of the keys before the line.
const PREFIX_BITS: u32 = 16;
/// Most bytes of a packed record before its key: two lengths and the row id.
const PACKED_HEAD_MAX: usize = 14;
/// Hint for a line that is too long.
/// Bytes of a line that a message shows.
const SHOWN_BYTES: usize = 40;

/// Order of lines: their keys, and the rule for equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortOrder {
    /// Keys in order: the first that differs decides. Without keys the whole lines are compared.
    pub keys: Vec<SortKey>,
    /// Rule for lines whose keys are all equal.
    pub ties: Ties,
}

/// A part of a line, and its comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// Part of the line that is compared.
    pub part: Part,
    /// Kind of comparison of the part.
    pub compared: Compared,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The whole line, without its end.
    Whole,
    /// Fields from `first` to `last`, counted from 1.
    Fields {
        /// Number of the first field.
        first: usize,
        /// Number of the last field; `None` for the end of the line.
        last: Option<usize>,
        /// Byte between two fields; `None` if a field begins with blanks.
        delimiter: Option<u8>,
    },
    /// Bytes of a record, counted from 0.
    Bytes(Range<usize>),
}

/// Kind of comparison of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Byte by byte, as unsigned.
    Bytes,
    /// By the number that it begins with.
    Numbers,
}

/// Rule for lines with equal keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// The bytes of the lines decide.
    Bytes,
    /// The place in the input decides: a stable sort.
    Input,
}

impl Part {
    fn of<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        match self {
            Part::Whole => line,
            Part::Fields { first, last, delimiter } => {
                let begin = field_begin(line, *first, *delimiter);
                let end = last.map_or(line.len(), |last| field_end(line, last, *delimiter));
                &line[begin..end.max(begin)]
            }
            Part::Bytes(range) => &line[range.clone()],
        }
    }
}

/// Returns the byte at which a field begins; the end of the line if it has fewer fields.
fn field_begin(line: &[u8], field: usize, delimiter: Option<u8>) -> usize {
    let mut at = 0;
    for _ in 1..field {
        at = match delimiter {
            Some(delimiter) => match line[at..].iter().position(|byte| *byte == delimiter) {
                Some(place) => at + place + 1,
                None => return line.len(),
            },
            None => behind_field(line, at),
        };
    }
    at
}

/// Returns the byte at which a field ends, before its delimiter.
fn field_end(line: &[u8], field: usize, delimiter: Option<u8>) -> usize {
    let begin = field_begin(line, field, delimiter);
    match delimiter {
        Some(delimiter) => {
            line[begin..].iter().position(|byte| *byte == delimiter).map_or(line.len(), |place| begin + place)
        }
        None => behind_field(line, begin),
    }
}

/// Returns the byte after blanks and the field after them.
fn behind_field(line: &[u8], from: usize) -> usize {
    let blanks = line[from..].iter().take_while(|byte| is_blank(**byte)).count();
    let field = line[from + blanks..].iter().take_while(|byte| !is_blank(**byte)).count();
    from + blanks + field
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Makes records of lines, and lines of records.
#[derive(Debug)]
pub(super) struct Keyed<'a> {
    shape: Shape,
    order: &'a SortOrder,
    block_size: BlockSize,
    path: &'a Path,
    /// Range of the key in a record, if the key is moved to the front of it.
    lifted: Option<Range<usize>>,
}

impl<'a> Keyed<'a> {
    pub fn new(shape: Shape, order: &'a SortOrder, block_size: BlockSize, path: &'a Path) -> Keyed<'a> {
        let lifted = match (shape, order.keys.as_slice(), order.ties) {
            (
                Shape::Records(_),
                [SortKey { part: Part::Bytes(range), compared: Compared::Bytes }],
                Ties::Bytes,
            ) => Some(range.clone()),
            _ => None,
        };
        Keyed { shape, order, block_size, path, lifted }
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn ties(&self) -> Ties {
        self.order.ties
    }

    /// Returns the bytes of the longest line without keys.
    pub fn line_bytes_max(&self) -> usize {
        self.block_size.bytes() - HEADER_BYTES - PACKED_HEAD_MAX
    }

    /// Returns the most bytes of the record of a line of `line_bytes` bytes.
    pub fn record_bytes_max(&self, line_bytes: usize) -> usize {
        // An escaped key is twice as long; a number has four bytes more.
        BYTES_HEADER + line_bytes + self.order.keys.len() * (2 * line_bytes + 5) + size_of::<u64>()
    }

    /// Appends the record of a line.
    ///
    /// # Errors
    /// If it does not fit a block.
    #[inline]
    pub fn append(&self, line: &[u8], offset: u64, out: &mut Vec<u8>) -> Result<(), EngineError> {
        let start = out.len();
        out.extend_from_slice(&[0; BYTES_HEADER]);
        let mut prefix = 0;
        match &self.lifted {
            Some(range) => {
                out.extend_from_slice(&line[range.clone()]);
                out.extend_from_slice(&line[..range.start]);
                out.extend_from_slice(&line[range.end..]);
            }
            None => {
                if self.has_prefix() {
                    self.append_keys(line, out);
                    if self.order.ties == Ties::Input {
                        out.extend_from_slice(&offset.to_be_bytes());
                    }
                    prefix = out.len() - start - BYTES_HEADER;
                }
                out.extend_from_slice(line);
            }
        }
        let length = out.len() - start - BYTES_HEADER;
        if length > self.line_bytes_max() {
            out.truncate(start);
            return Err(self.too_long(line, offset, length));
        }
        let row = offset << PREFIX_BITS | prefix as u64;
        let header = &mut out[start..start + BYTES_HEADER];
        header[..2].copy_from_slice(&(length as u16).to_le_bytes());
        header[2..].copy_from_slice(&row.to_le_bytes());
        Ok(())
    }

    /// Appends the keys of a line; nothing if the bytes of the line are its key.
    pub fn append_keys(&self, line: &[u8], out: &mut Vec<u8>) {
        for key in &self.order.keys {
            let part = key.part.of(line);
            match key.compared {
                Compared::Bytes => append_bytes(part, out),
                Compared::Numbers => append_number(part, out),
            }
        }
    }

    /// Hands the line of a record, in its form in the file, to `write` piece by piece.
    #[inline]
    pub fn write(
        &self,
        record: &[u8],
        mut write: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let key = key_of(record);
        if let Some(range) = &self.lifted {
            let (lifted, others) = key.split_at(range.len());
            let (before, behind) = others.split_at(range.start);
            return [before, lifted, behind].into_iter().try_for_each(write);
        }
        let prefix = row_of(record).0 & ((1 << PREFIX_BITS) - 1);
        write(&key[prefix as usize..])?;
        if self.shape == Shape::Lines { write(b"\n") } else { Ok(()) }
    }

    /// True if a record has keys before the line.
    pub fn has_prefix(&self) -> bool {
        !self.order.keys.is_empty()
    }

    #[cold]
    fn too_long(&self, line: &[u8], offset: u64, length: usize) -> EngineError {
        let shown = &line[..line.len().min(SHOWN_BYTES)];
        EngineError::LineTooLong {
            path: self.path.to_path_buf(),
            offset,
            found: length,
            limit: self.line_bytes_max(),
            start: String::from_utf8_lossy(shown).into_owned(),
            cure: if self.block_size.bytes() < 32 * 1024 {
                LineCure::LargerBlocks
            } else {
                LineCure::ShorterLine
            },
        }
    }
}

/// Appends bytes with a terminator that is below all of them.
fn append_bytes(part: &[u8], out: &mut Vec<u8>) {
    if part.iter().all(|byte| *byte > 1) {
        out.extend_from_slice(part);
    } else {
        for byte in part {
            match byte {
                0 | 1 => out.extend_from_slice(&[1, byte + 1]),
                other => out.push(*other),
            }
        }
    }
    out.push(0);
}

/// Appends the number that a text begins with.
fn append_number(part: &[u8], out: &mut Vec<u8>) {
    const ZERO: u8 = 0x80;
    let blanks = part.iter().take_while(|byte| is_blank(**byte)).count();
    let text = &part[blanks..];
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, rest) = text.split_at(digits(text));
    let fraction = match rest {
        [b'.', rest @ ..] => &rest[..digits(rest)],
        _ => &[],
    };
    let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
    let whole = &whole[zeros..];
    let closing = fraction.iter().rev().take_while(|digit| **digit == b'0').count();
    let fraction = &fraction[..fraction.len() - closing];
    if whole.is_empty() && fraction.is_empty() {
        out.push(ZERO);
        return;
    }
    let start = out.len();
    out.push(ZERO + 1);
    // A line of more digits does not fit a block, and is rejected as too long.
    out.extend_from_slice(&u16::try_from(whole.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(whole);
    out.extend_from_slice(fraction);
    out.push(0);
    if negative {
        out[start] = ZERO - 1;
        out[start + 1..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests;
