//! The records that are sorted, in one of several forms.
//!
//! A record is a sequence of bytes. [`WordKey`](super::word::WordKey) is key and row id in one
//! machine word; [`BytesKey`] is for any key: a length, the row id, the key. In runs, and in a
//! sort area that has sorted them, BytesKey records are packed ([`packed`](super::packed));
//! words are the same everywhere.
//!
//! ```text
//! WordKey    key and row id                            one little-endian word of 8 or 16 bytes
//! BytesKey   key length u16 | row id u64 | key bytes   little-endian words
//! ```

use super::area::SortArea;
use super::area::bytes::BytesArea;
use super::packed::{Packed, Packer, Rebuilt};
use super::tournament::{Matches, Tournament};
use plumb_units::RowId;
use std::cmp::Ordering;
use std::fmt::Debug;

/// A form of records, as runs and merges use it.
pub trait RunFormat: Copy + Debug + Send + Sync + 'static {
    /// Layout of the records in the blocks of a run.
    type Packing: Packing;
    /// Merges sorted records of several sources into one order.
    type Merger: Merger;

    /// Returns the length of the first record of `bytes`; 0 if they end inside it.
    fn length(bytes: &[u8]) -> usize;

    /// Compares two records: by key, then by row id if they have one.
    fn compare(one: &[u8], two: &[u8]) -> Ordering;

    /// Replaces `last` by the last record of the content of a run block, if there is one.
    /// The block may be corrupt.
    fn last_record(content: &[u8], last: &mut Vec<u8>);
}

/// A form of records with memory to sort them in.
pub trait Format: RunFormat {
    /// Memory in which records are collected and sorted.
    type Area: SortArea;
}

/// A tournament between sources of sorted records, as they lie in a run or in a strip. A source is
/// the rest of its bytes; a record that enters the tournament is taken off the front.
pub trait Merger: Sized {
    /// Takes the first record of each source and plays all matches.
    ///
    /// # Panics
    /// If there is no source.
    fn new(sources: &mut [&[u8]]) -> Self;

    /// Returns the smallest record; no bytes if all sources are empty.
    fn record(&self) -> &[u8];

    /// Returns the index of the smallest record's source.
    fn source(&self) -> usize;

    /// Takes the next record of that source and plays again.
    fn replace(&mut self, source: &mut &[u8]);

    /// Returns counts of the matches played; zero for a merger that keeps none.
    fn matches(&self) -> Matches {
        Matches::default()
    }
}

/// Layout of records in the blocks of a run, one after the other.
pub trait Packing: Default {
    /// Begins a block, whose reader does not know the block before.
    fn begin_block(&mut self);

    /// Writes a record to the start of `room` and returns the bytes it takes. `None` if it does not
    /// fit; the block then ends before it.
    fn put(&mut self, record: &[u8], room: &mut [u8]) -> Option<usize>;

    /// Returns the bytes saved against unpacked records since the last call.
    fn bytes_saved(&mut self) -> u64;
}

/// Lays records one after the other, unchanged.
#[derive(Debug, Default)]
pub struct Unpacked;

impl Packing for Unpacked {
    fn begin_block(&mut self) {}

    #[inline]
    fn put(&mut self, record: &[u8], room: &mut [u8]) -> Option<usize> {
        room.get_mut(..record.len())?.copy_from_slice(record);
        Some(record.len())
    }

    fn bytes_saved(&mut self) -> u64 {
        0
    }
}

/// A form of records with keys of any length.
#[derive(Debug, Clone, Copy)]
pub struct BytesKey;

/// Bytes of a [`BytesKey`] record before its key.
pub const BYTES_HEADER: usize = 10;

/// Returns the key of a [`BytesKey`] record.
#[inline]
pub(crate) fn key_of(record: &[u8]) -> &[u8] {
    let length = u16::from_le_bytes([record[0], record[1]]) as usize;
    &record[BYTES_HEADER..BYTES_HEADER + length]
}

#[inline]
pub(crate) fn row_of(record: &[u8]) -> RowId {
    RowId(u64::from_le_bytes(record[2..BYTES_HEADER].try_into().expect("eight bytes")))
}

impl Format for BytesKey {
    type Area = BytesArea;
}

impl RunFormat for BytesKey {
    type Packing = Packer;
    type Merger = Tournament;

    #[inline]
    fn length(bytes: &[u8]) -> usize {
        if bytes.len() < BYTES_HEADER {
            return 0;
        }
        let length = BYTES_HEADER + u16::from_le_bytes([bytes[0], bytes[1]]) as usize;
        if bytes.len() < length { 0 } else { length }
    }

    #[inline]
    fn compare(one: &[u8], two: &[u8]) -> Ordering {
        key_of(one).cmp(key_of(two)).then_with(|| row_of(one).cmp(&row_of(two)))
    }

    fn last_record(content: &[u8], last: &mut Vec<u8>) {
        let mut rebuilt = Rebuilt::default();
        let mut rest = content;
        while let Some(next) = Packed::first_of(rest) {
            rebuilt.advance(next);
            rest = &rest[next.length..];
        }
        if !rebuilt.record().is_empty() {
            last.clear();
            last.extend_from_slice(rebuilt.record());
        }
    }
}
