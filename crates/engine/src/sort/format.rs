//! What is sorted: records, in one of several forms.
//!
//! A record is a stretch of bytes, the same in a queue buffer, in a run block
//! and in a merge, so it is copied and never converted. [`WordKey`](super::word::WordKey)
//! is key and row id in one machine word; [`BytesKey`] is for any key: a length,
//! the row id, the key.
//!
//! ```text
//! WordKey     key and row id                            one little-endian word of 8 or 16 bytes
//! BytesKey   key length u16 | row id u64 | key bytes   little-endian words
//! ```

use crate::sort::area::Strip;
use crate::sort::area::bytes::BytesStrip;
use plumb_units::RowId;
use std::cmp::Ordering;
use std::fmt::Debug;

/// A form of records.
pub trait Format: Copy + Debug + Send + Sync + 'static {
    /// What stands for a record in a tree of losers.
    type Head: Copy + Debug;
    /// Where records are collected and sorted.
    type Strip: Strip;

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

impl BytesKey {
    /// Appends a record.
    #[inline]
    pub fn append(key: &[u8], row: RowId, out: &mut Vec<u8>) {
        // Keys longer than a block takes are refused by whoever collects records;
        // u16 holds any that a row of 64K can make after escaping up to there.
        let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&row.0.to_le_bytes());
        out.extend_from_slice(&key[..length as usize]);
    }
}

impl Format for BytesKey {
    type Head = PrefixHead;
    type Strip = BytesStrip;

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
}
