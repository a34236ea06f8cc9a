//! What is sorted: a key and a row id, in one of two forms.
//!
//! A record is a stretch of bytes, the same in a queue buffer, in a run block
//! and in a merge, so it is copied and never converted. [`WordKey`] is for
//! keys of up to 8 bytes: 16 bytes a record, compared as one 128-bit number.
//! [`BytesKey`] is for any key: a length, the row id, the key.
//!
//! ```text
//! WordKey    row id u64 | key u64                      one little-endian 128-bit number
//! BytesKey   key length u16 | row id u64 | key bytes   little-endian words
//! ```
//!
//! In runs, and in a sort area that has sorted them, BytesKey records are packed
//! ([`packed`](super::packed)).

use crate::EngineError;
use crate::index::block::LeafBuilder;
use crate::sort::SortServer;
use crate::sort::area::bytes::BytesArea;
use crate::sort::area::{SortArea, WordArea};
use crate::sort::key::KeyBuilder;
use crate::sort::merge;
use crate::sort::merge_plan::MergeShape;
use crate::sort::packed::{Packed, Packer, Rebuilt};
use crate::sort::run::Run;
use plumb_types::RowError;
use plumb_units::RowId;
use std::cmp::Ordering;
use std::fmt::Debug;

/// A form of records.
pub trait Format: Copy + Debug + Send + Sync + 'static {
    /// Where records are collected and sorted.
    type Area: SortArea<Self>;
    /// How they lie in the blocks of a run.
    type Packing: Packing;

    /// Appends the record of a row and gives back how long its key is. A key
    /// longer than `u16::MAX` makes no record: the caller refuses it.
    ///
    /// # Errors
    /// When the row cannot be read.
    fn make(key: &KeyBuilder, row: &[u8], row_id: RowId, out: &mut Vec<u8>) -> Result<usize, RowError>;

    /// The length of the record that `bytes` begin with. 0 when they end inside it.
    fn length(bytes: &[u8]) -> usize;

    /// The order of two records: by key, then by row id.
    fn compare(one: &[u8], two: &[u8]) -> Ordering;

    /// Replaces `last` by the last record of the content of a run block, if there
    /// is one. The block may be corrupt.
    fn last_record(content: &[u8], last: &mut Vec<u8>);

    /// Merges runs and hands their records out in order; gives back how many.
    ///
    /// # Errors
    /// When a block is corrupt, a read fails, the operation stops, or `take` fails.
    fn merge(
        server: &SortServer<'_>,
        runs: Vec<Run<'_>>,
        shape: MergeShape,
        take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<u64, EngineError>;

    /// The record's key, trimmed, and its row id.
    fn parts<'r>(record: &'r [u8], word: &'r mut [u8; 8]) -> (&'r [u8], RowId);

    /// Adds the record to an index leaf; `false` when the leaf is full.
    fn push_leaf(record: &[u8], leaf: &mut LeafBuilder, block: &mut [u8]) -> bool;
}

/// A format with something that stands for a record in a tree of losers.
pub trait Headed: Format {
    /// It.
    type Head: Copy + Debug;

    /// The head of a record of a source.
    fn head(record: &[u8], source: u32) -> Self::Head;

    /// A head above every record.
    fn exhausted(source: u32) -> Self::Head;

    /// The source of a head.
    fn source(head: &Self::Head) -> u32;

    /// Whether the first head's record comes first.
    fn less(one: &Self::Head, two: &Self::Head) -> bool;
}

/// How records lie in the blocks of a run, one after the other.
pub trait Packing: Default {
    /// A block begins: nothing of the block before will be known.
    fn begin_block(&mut self);

    /// Puts a record at the beginning of `room` and gives back how many bytes it
    /// takes; `None` when it does not fit, and the block ends before it.
    fn put(&mut self, record: &[u8], room: &mut [u8]) -> Option<usize>;

    /// Bytes that records needed less than they are long, since the last call.
    fn bytes_saved(&mut self) -> u64;
}

/// Keys of up to 8 bytes.
#[derive(Debug, Clone, Copy)]
pub struct WordKey;

/// Bytes of a [`WordKey`] record.
pub const WORD_RECORD: usize = 16;

/// Key and row id of a [`WordKey`] record as one number.
#[inline]
pub(crate) fn wide(record: &[u8]) -> u128 {
    u128::from_le_bytes(record.try_into().expect("sixteen bytes"))
}

impl Format for WordKey {
    type Area = WordArea;
    type Packing = Unpacked;

    #[inline]
    fn make(key: &KeyBuilder, row: &[u8], row_id: RowId, out: &mut Vec<u8>) -> Result<usize, RowError> {
        let wide = u128::from(key.word(row)?) << 64 | u128::from(row_id.0);
        out.extend_from_slice(&wide.to_le_bytes());
        Ok(size_of::<u64>())
    }

    #[inline]
    fn length(bytes: &[u8]) -> usize {
        if bytes.len() < WORD_RECORD { 0 } else { WORD_RECORD }
    }

    #[inline]
    fn compare(one: &[u8], two: &[u8]) -> Ordering {
        wide(one).cmp(&wide(two))
    }

    fn last_record(content: &[u8], last: &mut Vec<u8>) {
        if let Some(record) = content.as_chunks::<WORD_RECORD>().0.last() {
            last.clear();
            last.extend_from_slice(record);
        }
    }

    fn merge(
        server: &SortServer<'_>,
        runs: Vec<Run<'_>>,
        shape: MergeShape,
        take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<u64, EngineError> {
        merge::merge::<WordKey>(server, runs, shape, take)
    }

    #[inline]
    fn parts<'r>(record: &'r [u8], word: &'r mut [u8; 8]) -> (&'r [u8], RowId) {
        let wide = wide(record);
        let key = (wide >> 64) as u64;
        *word = key.to_be_bytes();
        let length = 8 - (key.trailing_zeros().min(64) / 8) as usize;
        (&word[..length], RowId(wide as u64))
    }

    #[inline]
    fn push_leaf(record: &[u8], leaf: &mut LeafBuilder, block: &mut [u8]) -> bool {
        let wide = wide(record);
        leaf.push_word(block, (wide >> 64) as u64, RowId(wide as u64))
    }
}

impl Headed for WordKey {
    /// The number and the source. No row id is all ones, so neither is a record.
    type Head = (u128, u32);

    #[inline]
    fn head(record: &[u8], source: u32) -> (u128, u32) {
        (wide(record), source)
    }

    fn exhausted(source: u32) -> (u128, u32) {
        (u128::MAX, source)
    }

    #[inline]
    fn source(head: &(u128, u32)) -> u32 {
        head.1
    }

    #[inline]
    fn less(one: &(u128, u32), two: &(u128, u32)) -> bool {
        one.0 < two.0
    }
}

/// Records as they are.
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

/// Keys of any length.
#[derive(Debug, Clone, Copy)]
pub struct BytesKey;

/// Bytes of a [`BytesKey`] record before its key.
pub const BYTES_HEADER: usize = 10;

/// The key of a [`BytesKey`] record.
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
    type Packing = Packer;

    fn make(key: &KeyBuilder, row: &[u8], row_id: RowId, out: &mut Vec<u8>) -> Result<usize, RowError> {
        let start = out.len();
        out.extend_from_slice(&[0; BYTES_HEADER]);
        key.append(row, out)?;
        let length = out.len() - start - BYTES_HEADER;
        match u16::try_from(length) {
            Ok(short) => {
                let header = &mut out[start..start + BYTES_HEADER];
                header[..2].copy_from_slice(&short.to_le_bytes());
                header[2..].copy_from_slice(&row_id.0.to_le_bytes());
            }
            Err(_) => out.truncate(start),
        }
        Ok(length)
    }

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

    fn merge(
        server: &SortServer<'_>,
        runs: Vec<Run<'_>>,
        shape: MergeShape,
        take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<u64, EngineError> {
        merge::bytes::merge(server, runs, shape, take)
    }

    #[inline]
    fn parts<'r>(record: &'r [u8], _: &'r mut [u8; 8]) -> (&'r [u8], RowId) {
        (key_of(record), row_of(record))
    }

    #[inline]
    fn push_leaf(record: &[u8], leaf: &mut LeafBuilder, block: &mut [u8]) -> bool {
        leaf.push(block, key_of(record), row_of(record))
    }
}
