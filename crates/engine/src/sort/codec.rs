//! From rows to records and from records to index entries.

use super::format::{BytesKey, Format, key_of, row_of};
use super::key::KeyBuilder;
use crate::index::block::LeafBuilder;
use plumb_types::RowError;
use plumb_units::RowId;
use std::fmt::Debug;

/// Why a row makes no record.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// Its bytes are no row.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A value is not one that the statistics of its column allow.
    #[error("column {column} has a value outside the table's statistics; load the table again")]
    Statistics {
        /// The column, the first being 0.
        column: usize,
    },
}

/// Makes the records of an index, and index entries of them.
pub trait Codec: Debug + Sync {
    /// The form of its records.
    type Format: Format;
    /// What one record leaves for the next.
    type State: Default;

    /// Appends the record of a row.
    ///
    /// # Errors
    /// When the row cannot be read, or contradicts the statistics.
    fn encode(
        &self,
        row: &[u8],
        row_id: RowId,
        state: &mut Self::State,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError>;

    /// Bytes that the key of the last row encoded takes in an index, at most.
    fn key_length(&self, state: &Self::State) -> usize;

    /// The record's normalised key, trimmed, and its row id.
    fn decode<'s>(&self, record: &'s [u8], state: &'s mut Self::State) -> (&'s [u8], RowId);

    /// Adds the record to an index leaf; `false` when the leaf is full. Records
    /// come in order.
    fn push_leaf(
        &self,
        record: &[u8],
        state: &mut Self::State,
        leaf: &mut LeafBuilder,
        block: &mut [u8],
    ) -> bool;
}

/// Makes [`BytesKey`] records: any key.
#[derive(Debug)]
pub struct BytesCodec(pub KeyBuilder);

impl Codec for BytesCodec {
    type Format = BytesKey;
    /// The last key made.
    type State = Vec<u8>;

    #[inline]
    fn encode(
        &self,
        row: &[u8],
        row_id: RowId,
        key: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        self.0.build(row, key)?;
        BytesKey::append(key, row_id, out);
        Ok(())
    }

    #[inline]
    fn key_length(&self, key: &Vec<u8>) -> usize {
        key.len()
    }

    fn decode<'s>(&self, record: &'s [u8], _: &'s mut Vec<u8>) -> (&'s [u8], RowId) {
        (key_of(record), row_of(record))
    }

    #[inline]
    fn push_leaf(&self, record: &[u8], _: &mut Vec<u8>, leaf: &mut LeafBuilder, block: &mut [u8]) -> bool {
        leaf.push(block, key_of(record), row_of(record))
    }
}
