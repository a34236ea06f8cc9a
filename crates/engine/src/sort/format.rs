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

use crate::index::block::LeafBuilder;
use crate::sort::area::bytes::BytesArea;
use crate::sort::area::{SortArea, WordArea};
use crate::sort::key::KeyBuilder;
use plumb_types::RowError;
use plumb_units::RowId;
use std::cmp::Ordering;
use std::fmt::Debug;

/// A form of records.
pub trait Format: Copy + Debug + Send + Sync + 'static {
    /// What stands for a record in a tree of losers.
    type Head: Copy + Debug;
    /// Where records are collected and sorted.
    type Area: SortArea<Self>;

    /// Appends the record of a row.
    ///
    /// # Errors
    /// When the row cannot be read.
    fn make(
        key: &KeyBuilder,
        row: &[u8],
        row_id: RowId,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError>;

    /// The length of the record that `bytes` begin with. 0 when they end inside it.
    fn length(bytes: &[u8]) -> usize;

    /// The order of two records: by key, then by row id.
    fn compare(one: &[u8], two: &[u8]) -> Ordering;

    /// The head of a record of a source.
    fn head(record: &[u8], source: u32) -> Self::Head;

    /// A head above every record.
    fn exhausted(source: u32) -> Self::Head;

    /// The source of a head.
    fn source(head: &Self::Head) -> u32;

    /// Whether the first head's record comes first. `record` gives the record a
    /// source is at, for heads that do not decide alone.
    fn less<'r>(one: &Self::Head, two: &Self::Head, record: impl Fn(u32) -> &'r [u8]) -> bool;

    /// The record's key, trimmed, and its row id.
    fn parts<'r>(record: &'r [u8], word: &'r mut [u8; 8]) -> (&'r [u8], RowId);

    /// Adds the record to an index leaf; `false` when the leaf is full.
    fn push_leaf(record: &[u8], leaf: &mut LeafBuilder, block: &mut [u8]) -> bool;
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
    /// The number and the source. No row id is all ones, so neither is a record.
    type Head = (u128, u32);
    type Area = WordArea;

    #[inline]
    fn make(
        key: &KeyBuilder,
        row: &[u8],
        row_id: RowId,
        _: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        let wide = u128::from(key.word(row)?) << 64 | u128::from(row_id.0);
        out.extend_from_slice(&wide.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn length(bytes: &[u8]) -> usize {
        if bytes.len() < WORD_RECORD { 0 } else { WORD_RECORD }
    }

    #[inline]
    fn compare(one: &[u8], two: &[u8]) -> Ordering {
        wide(one).cmp(&wide(two))
    }

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
    fn less<'r>(one: &(u128, u32), two: &(u128, u32), _: impl Fn(u32) -> &'r [u8]) -> bool {
        one.0 < two.0
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

/// The first 8 bytes of a key from `skip` on, zero-padded, big-endian.
#[inline]
pub(crate) fn prefix(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or(&[]);
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Head of a [`BytesKey`] record: its first 8 key bytes decide most comparisons.
#[derive(Debug, Clone, Copy)]
pub struct PrefixHead {
    prefix: u64,
    source: u32,
    exhausted: bool,
}

impl Format for BytesKey {
    type Head = PrefixHead;
    type Area = BytesArea;

    fn make(
        key: &KeyBuilder,
        row: &[u8],
        row_id: RowId,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        key.build(row, scratch)?;
        // Keys longer than a block takes are refused by whoever collects records;
        // u16 holds any that a row of 64K can make after escaping up to there.
        let length = u16::try_from(scratch.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&row_id.0.to_le_bytes());
        out.extend_from_slice(&scratch[..length as usize]);
        Ok(())
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

    fn head(record: &[u8], source: u32) -> PrefixHead {
        PrefixHead { prefix: prefix(key_of(record), 0), source, exhausted: false }
    }

    fn exhausted(source: u32) -> PrefixHead {
        PrefixHead { prefix: u64::MAX, source, exhausted: true }
    }

    #[inline]
    fn source(head: &PrefixHead) -> u32 {
        head.source
    }

    #[inline]
    fn less<'r>(one: &PrefixHead, two: &PrefixHead, record: impl Fn(u32) -> &'r [u8]) -> bool {
        if one.prefix != two.prefix {
            return one.prefix < two.prefix;
        }
        match (one.exhausted, two.exhausted) {
            (false, false) => Self::compare(record(one.source), record(two.source)).is_lt(),
            (mine, other) => !mine && other,
        }
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
