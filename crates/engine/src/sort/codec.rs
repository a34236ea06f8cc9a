//! Makes records of rows, and keys of records.

use super::format::{BYTES_HEADER, BytesKey, Format, key_of, row_of};
use super::key::KeyBuilder;
use plumb_types::RowError;
use plumb_units::RowId;
use std::fmt::Debug;

/// Reason for which a row makes no record.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not a row.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A value is outside the statistics of its column.
    #[error("column {column} has a value outside the table's statistics; load the table again")]
    Statistics {
        /// Position of the column, from 0.
        column: usize,
    },
}

/// The normalised key of a record, without the 00 bytes at its end.
#[derive(Debug, Clone, Copy)]
pub enum RecordKey<'s> {
    /// Bytes of a big-endian word, up to the last that is not 00.
    Word(u64),
    /// A key of any length.
    Bytes(&'s [u8]),
}

impl<'s> RecordKey<'s> {
    /// Returns the key as bytes; the bytes of a word are written to `room`.
    pub fn bytes<'r>(self, room: &'r mut [u8; 8]) -> &'r [u8]
    where
        's: 'r,
    {
        match self {
            RecordKey::Word(word) => {
                *room = word.to_be_bytes();
                &room[..8 - word.trailing_zeros() as usize / 8]
            }
            RecordKey::Bytes(bytes) => bytes,
        }
    }
}

/// Makes the records of an index from its rows, and keys from the records.
pub trait Codec: Debug + Sync {
    /// Form of the records it makes.
    type Format: Format;
    /// State that decoding one record leaves for the next.
    type State: Default;

    /// Appends the record of a row and returns the most bytes that its key takes in an index. A key
    /// longer than `u16::MAX` makes no record: the caller rejects it.
    ///
    /// # Errors
    /// If the row cannot be read, or contradicts the statistics.
    fn encode(&self, row: &[u8], row_id: RowId, out: &mut Vec<u8>) -> Result<usize, CodecError>;

    /// Returns the record's key and row id. Fastest if records come in order.
    fn decode<'s>(&self, record: &'s [u8], state: &'s mut Self::State) -> (RecordKey<'s>, RowId);
}

/// Makes [`BytesKey`] records, for any key.
#[derive(Debug)]
pub struct BytesCodec(pub KeyBuilder);

impl Codec for BytesCodec {
    type Format = BytesKey;
    type State = ();

    #[inline]
    fn encode(&self, row: &[u8], row_id: RowId, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let start = out.len();
        out.extend_from_slice(&[0; BYTES_HEADER]);
        self.0.append(row, out)?;
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
    fn decode<'s>(&self, record: &'s [u8], _: &'s mut ()) -> (RecordKey<'s>, RowId) {
        (RecordKey::Bytes(key_of(record)), row_of(record))
    }
}
