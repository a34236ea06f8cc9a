//! Packed records: key and row id in one machine word.
//!
//! What it does: a table's column statistics say which values a key column has.
//! A column of integers from 1 to 2,000 then needs 11 bits, whatever its bytes;
//! a row id needs as many bits as the table has files, blocks and rows in a
//! block. A key of two such columns and the row id of a table of 5 GB come to 56
//! bits: a record of 8 bytes instead of 16 to 30. Sort memory, runs, reads and
//! writes shrink as much, and two records compare by one instruction.
//!
//! ```text
//! word   0 .. 0 | first column | .. | last column | file | block | slot     least significant bits last
//! ```
//!
//! How: a column is a number that orders as its values do. Integers (all values
//! of the column are, and fit [`INTEGER_WORDS`]): the distance from the smallest
//! value, or to the largest if the column is descending. Others of at most 8
//! bytes: their stored bytes, which `memcmp` orders, padded with zeros, and
//! complemented if descending. NULL is all ones, above every value. At the leaf
//! the word becomes the normalised key of [`key`](super::key) again; in sorted
//! order most columns are those of the record before, so only what changed is
//! converted.
//!
//! Why not dictionaries: they pack text too, but must know every value before
//! the first row is sorted. Why not offset-value codes here: with one comparison
//! a match they have nothing to save.
//!
//! Limits: 63 bits, or 127 in words twice as wide (the highest bit stays zero, so
//! that all ones is above every record); 16 columns; no text. Other keys are
//! [`BytesKey`](super::format::BytesKey) records.

use super::area::words::WordStrip;
use super::codec::{Codec, CodecError};
use super::format::Format;
use crate::index::block::LeafBuilder;
use crate::storage::block::HEADER_BYTES;
use crate::storage::control::{ColumnStatistics, IndexColumn, Table};
use plumb_io::Plain;
use plumb_types::row::ROW_HEADER_BYTES;
use plumb_types::{ColumnType, column_at, decode_integer, integer_word};
use plumb_units::{BlockAddress, BlockNumber, BlockSize, FileId, RowId};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::marker::PhantomData;

/// Most columns of a packed key.
const COLUMNS_MAX: usize = 16;
/// Bytes of a column in a normalised key: a word and a terminator.
const COLUMN_BYTES_MAX: usize = 9;
/// A key buffer: all columns, and room to write a whole word at the end.
const KEY_BYTES: usize = COLUMNS_MAX * COLUMN_BYTES_MAX + 8;

/// A machine word that holds a record.
pub trait Word: Plain + Ord + Debug + Send + Sync + 'static {
    /// Its bytes.
    const BYTES: usize;
    /// All ones: above every record.
    const MAX: Self;
    /// No bits.
    const ZERO: Self;

    /// Reads a record.
    fn from_record(record: &[u8]) -> Self;

    /// Appends its record.
    fn append_to(self, out: &mut Vec<u8>);

    /// Makes room for `bits` more bits at the low end, and puts them there.
    fn with(self, value: u64, bits: u32) -> Self;

    /// `bits` bits, the lowest of which is `shift`.
    fn bits(self, shift: u32, bits: u32) -> u64;

    /// Without its lowest bits.
    fn above(self, shift: u32) -> Self;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            const BYTES: usize = size_of::<$type>();
            const MAX: Self = <$type>::MAX;
            const ZERO: Self = 0;

            #[inline]
            fn from_record(record: &[u8]) -> Self {
                <$type>::from_le_bytes(record.try_into().expect("a record is one word"))
            }

            #[inline]
            fn append_to(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn with(self, value: u64, bits: u32) -> Self {
                self << bits | value as $type
            }

            #[inline]
            fn bits(self, shift: u32, bits: u32) -> u64 {
                (self >> shift) as u64 & ones(bits)
            }

            #[inline]
            fn above(self, shift: u32) -> Self {
                self >> shift
            }
        }
    };
}

word!(u64);
word!(u128);

/// A word of so many ones, 1 to 64.
#[inline]
fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Records that are one word.
#[derive(Debug, Clone, Copy)]
pub struct Packed<W>(PhantomData<W>);

impl<W: Word> Format for Packed<W> {
    /// The word and the source.
    type Head = (W, u32);
    type Strip = WordStrip<W>;

    #[inline]
    fn length(bytes: &[u8]) -> usize {
        if bytes.len() < W::BYTES { 0 } else { W::BYTES }
    }

    #[inline]
    fn compare(one: &[u8], two: &[u8]) -> Ordering {
        W::from_record(one).cmp(&W::from_record(two))
    }

    #[inline]
    fn head(record: &[u8], source: u32) -> (W, u32) {
        (W::from_record(record), source)
    }

    fn exhausted(source: u32) -> (W, u32) {
        (W::MAX, source)
    }

    #[inline]
    fn source(head: &(W, u32)) -> u32 {
        head.1
    }

    #[inline]
    fn less<'r>(one: &(W, u32), two: &(W, u32), _: impl Fn(u32) -> &'r [u8]) -> bool {
        one.0 < two.0
    }
}

/// How the keys of an index are packed.
#[derive(Debug, Clone)]
pub struct Packing {
    columns: Vec<PackedColumn>,
    row: RowBits,
    bits: u32,
}

#[derive(Debug, Clone, Copy)]
struct PackedColumn {
    position: usize,
    descending: bool,
    values: Values,
    bits: u32,
    /// Its lowest bit in the key, the row id not counted.
    shift: u32,
}

#[derive(Debug, Clone, Copy)]
enum Values {
    /// Integers within these bounds.
    Integers { least: i64, most: i64 },
    /// Stored values of at most so many bytes.
    Bytes(u32),
}

/// How many bits each part of a row id needs.
#[derive(Debug, Clone, Copy)]
struct RowBits {
    block: u32,
    slot: u32,
    all: u32,
}

impl Packing {
    /// The packing of an index on these columns; `None` when a column has values
    /// that cannot be packed, or key and row id have more bits than a word.
    #[must_use]
    pub fn new(columns: &[IndexColumn], table: &Table, block_size: BlockSize) -> Option<Packing> {
        let row = RowBits::of(table, block_size);
        if columns.len() > COLUMNS_MAX || table.column_statistics.len() != table.schema.column_count() {
            return None;
        }
        let mut key_bits = 0;
        let mut packed = Vec::new();
        for column in columns.iter().rev() {
            let column_type = &table.schema.columns[column.position].column_type;
            let (values, bits) = values_of(column_type, &table.column_statistics[column.position])?;
            packed.push(PackedColumn {
                position: column.position,
                descending: column.descending,
                values,
                bits,
                shift: key_bits,
            });
            key_bits += bits;
        }
        packed.reverse();
        let bits = key_bits + row.all;
        (bits < u128::BITS).then_some(Packing { columns: packed, row, bits })
    }

    /// Bits of a record.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Whether a record fits a word of this type, its highest bit free.
    #[must_use]
    pub fn fits<W: Word>(&self) -> bool {
        self.bits < 8 * W::BYTES as u32
    }
}

/// What a column holds, and the bits that takes.
fn values_of(column_type: &ColumnType, statistics: &ColumnStatistics) -> Option<(Values, u32)> {
    if matches!(column_type, ColumnType::Text { .. }) {
        return None;
    }
    if let Some((least, most)) = statistics.integers {
        // All ones is NULL.
        let codes = most.abs_diff(least) + u64::from(statistics.null_count > 0);
        return Some((Values::Integers { least, most }, bits_for(codes)));
    }
    // A column of NULLs alone has a code of one byte.
    let bytes = statistics.bytes_max.max(1);
    (bytes <= 8).then_some((Values::Bytes(bytes), 8 * bytes))
}

/// Bits for numbers up to `most`; at least one.
fn bits_for(most: u64) -> u32 {
    (u64::BITS - most.leading_zeros()).max(1)
}

impl PackedColumn {
    #[inline]
    fn pack(&self, value: Option<&[u8]>) -> Result<u64, CodecError> {
        let Some(value) = value else { return Ok(ones(self.bits)) };
        match self.values {
            Values::Integers { least, most } => match decode_integer(value) {
                Some(number) if (least..=most).contains(&number) => {
                    Ok(if self.descending { most.abs_diff(number) } else { number.abs_diff(least) })
                }
                _ => Err(CodecError::Statistics { column: self.position }),
            },
            Values::Bytes(bytes) => {
                if value.len() > bytes as usize {
                    return Err(CodecError::Statistics { column: self.position });
                }
                let mut padded = [0; 8];
                padded[..value.len()].copy_from_slice(value);
                let word = u64::from_be_bytes(padded) >> (64 - self.bits);
                Ok(if self.descending { word ^ ones(self.bits) } else { word })
            }
        }
    }

    /// The column in a normalised key: its bytes as a big-endian word, how many
    /// they are, and the terminator behind them.
    #[inline]
    fn unpack(&self, code: u64) -> (u64, u32, u8) {
        let terminator = if self.descending { 0xFF } else { 0 };
        let (word, length) = match self.values {
            _ if self.is_null(code) => return (0xFF << 56, 1, terminator),
            Values::Integers { least, .. } if !self.descending => integer_word(least + code as i64),
            Values::Integers { most, .. } => integer_word(most - code as i64),
            Values::Bytes(_) => {
                let word = if self.descending { code ^ ones(self.bits) } else { code };
                let word = word << (64 - self.bits);
                (word, 8 - word.trailing_zeros() / 8)
            }
        };
        let word = if self.descending { !word & ones(8 * length) << (64 - 8 * length) } else { word };
        (word, length, terminator)
    }

    #[inline]
    fn is_null(&self, code: u64) -> bool {
        let values = match self.values {
            Values::Integers { least, most } => most.abs_diff(least),
            // No stored value begins with FF, complemented or not.
            Values::Bytes(_) => ones(self.bits) - 1,
        };
        code > values
    }
}

impl RowBits {
    fn of(table: &Table, block_size: BlockSize) -> RowBits {
        let addresses = table.extents.iter().map(|extent| extent.extent.address(extent.used));
        let (mut file, mut block) = (0, 0);
        for address in addresses {
            file = file.max(address.file.0);
            block = block.max(address.block.0);
        }
        // No row is shorter than its header, a byte a column, and its slot.
        let row_bytes_min = ROW_HEADER_BYTES + table.schema.column_count() + 2;
        let slots = (block_size.bytes() - HEADER_BYTES) / row_bytes_min;
        let (block, slot) = (bits_for(u64::from(block)), bits_for(slots as u64));
        RowBits { block, slot, all: bits_for(u64::from(file)) + block + slot }
    }

    #[inline]
    fn pack(self, row: RowId) -> u64 {
        let address = row.address();
        (u64::from(address.file.0) << self.block | u64::from(address.block.0)) << self.slot
            | u64::from(row.slot())
    }

    #[inline]
    fn unpack(self, code: u64) -> RowId {
        let slot = code & ones(self.slot);
        let block = code >> self.slot & ones(self.block);
        let file = code >> self.slot >> self.block;
        RowId::new(BlockAddress { file: FileId(file as u16), block: BlockNumber(block as u32) }, slot as u16)
    }
}

/// Packs rows into words, and makes index entries of them.
#[derive(Debug)]
pub struct PackedCodec<W> {
    packing: Packing,
    word: PhantomData<W>,
}

impl<W: Word> PackedCodec<W> {
    /// With this packing, which must fit the word.
    #[must_use]
    pub fn new(packing: Packing) -> PackedCodec<W> {
        assert!(packing.fits::<W>());
        PackedCodec { packing, word: PhantomData }
    }
}

/// The normalised key of the last record.
#[derive(Debug)]
pub struct LastKey<W> {
    /// Its packed key; none before the first record.
    key: Option<W>,
    /// The key's bytes; zeros behind the first `length`.
    bytes: [u8; KEY_BYTES],
    length: usize,
    /// Where each column ends, its terminator included.
    ends: [u8; COLUMNS_MAX],
}

impl<W> Default for LastKey<W> {
    fn default() -> LastKey<W> {
        LastKey { key: None, bytes: [0; KEY_BYTES], length: 0, ends: [0; COLUMNS_MAX] }
    }
}

impl<W: Word> Codec for PackedCodec<W> {
    type Format = Packed<W>;
    type State = LastKey<W>;

    #[inline]
    fn encode(
        &self,
        row: &[u8],
        row_id: RowId,
        _: &mut LastKey<W>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let mut word = W::ZERO;
        for column in &self.packing.columns {
            let value = column_at(row, column.position).map_err(CodecError::Row)?;
            word = word.with(column.pack(value)?, column.bits);
        }
        let rows = self.packing.row;
        let code = rows.pack(row_id);
        debug_assert!(code <= ones(rows.all), "the row {row_id} is outside the table");
        word.with(code, rows.all).append_to(out);
        Ok(())
    }

    fn key_length(&self, _: &LastKey<W>) -> usize {
        self.packing.columns.len() * COLUMN_BYTES_MAX
    }

    fn decode<'s>(&self, record: &'s [u8], last: &'s mut LastKey<W>) -> (&'s [u8], RowId) {
        let row = self.turn_to(record, last);
        (&last.bytes[..last.length], row)
    }

    #[inline]
    fn push_leaf(
        &self,
        record: &[u8],
        last: &mut LastKey<W>,
        leaf: &mut LeafBuilder,
        block: &mut [u8],
    ) -> bool {
        let row = self.turn_to(record, last);
        match last.bytes.first_chunk::<8>() {
            Some(word) if last.length <= 8 => leaf.push_word(block, u64::from_be_bytes(*word), row),
            _ => leaf.push(block, &last.bytes[..last.length], row),
        }
    }
}

impl<W: Word> PackedCodec<W> {
    /// Makes `last` the key of a record; gives back its row id.
    #[inline]
    fn turn_to(&self, record: &[u8], last: &mut LastKey<W>) -> RowId {
        let word = W::from_record(record);
        let rows = self.packing.row;
        let key = word.above(rows.all);
        if last.key != Some(key) {
            self.write_key(key, last);
        }
        rows.unpack(word.bits(0, rows.all))
    }

    #[inline]
    fn write_key(&self, key: W, last: &mut LastKey<W>) {
        let columns = &self.packing.columns;
        let code = |key: W, column: &PackedColumn| key.bits(column.shift, column.bits);
        let changed = match last.key {
            Some(before) => columns.iter().position(|column| code(before, column) != code(key, column)),
            None => Some(0),
        };
        let first = changed.unwrap_or(columns.len());
        let mut end = first.checked_sub(1).map_or(0, |column| last.ends[column] as usize);
        let mut trimmed = last.length;
        for (index, column) in columns.iter().enumerate().skip(first) {
            let (word, length, terminator) = column.unpack(code(key, column));
            let length = length as usize;
            last.bytes[end..end + 8].copy_from_slice(&word.to_be_bytes());
            last.bytes[end + length] = terminator;
            // Trailing zeros are cut off: only terminators are zero.
            trimmed = end + length + usize::from(terminator != 0);
            end += length + 1;
            last.ends[index] = end as u8;
        }
        // The leaf takes whole words: no old bytes may follow the key.
        last.bytes[trimmed..trimmed + 8].fill(0);
        last.length = trimmed;
        last.key = Some(key);
    }
}

#[cfg(test)]
mod tests;
