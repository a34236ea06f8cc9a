//! WordKey records: key and row id in one machine word.
//!
//! A table's column statistics bound the values of a key column. A column of integers from 1 to
//! 2,000 then needs 12 bits, whatever its bytes. A row id needs as many bits as the table has
//! files, blocks and rows in a block. A key of two such columns and the row id of a table of 5 GB
//! take 56 bits: a record of 8 bytes instead of 16 to 30. Sort memory, runs, reads and writes
//! shrink by the same factor, and two records compare by one instruction.
//!
//! ```text
//! word   0 .. 0 | first column | .. | last column | file | block | slot     lowest bits last
//! ```
//!
//! A column becomes a number that orders as its values do. For integers that fit
//! [`plumb_types::INTEGER_WORDS`] it is the distance of the [`DigitCode`] from the smallest,
//! or to the largest if the column is descending. Other values of at most 8 bytes are their
//! stored bytes, which `memcmp` orders, padded with zeros, and complemented if descending.
//! NULL is all ones, above every value. The index builder turns the word back into the
//! normalised key of [`key`](super::key). In sorted order most columns are those of the record
//! before, so only changed columns are converted.
//!
//! Making the word is a third of a build's CPU. Rejected: the digits in base 100 as one number. It
//! takes a bit less for each column, but multiplications here and divisions at the leaf.
//!
//! Why not dictionaries: they pack text too, but must know every value before the first row is
//! sorted. Why not offset-value codes here: with one comparison a match there is nothing to save.
//!
//! Limits: 63 bits, or 127 in words twice as wide (the highest bit stays zero, so
//! that all ones is above every record); 16 columns; no text. Other keys are
//! [`BytesKey`](super::format::BytesKey) records.

use super::area::words::WordArea;
use super::codec::{Codec, CodecError, RecordKey};
use super::format::{Format, Merger, RunFormat, Unpacked};
use super::loser_tree::LoserTree;
use crate::storage::block::HEADER_BYTES;
use crate::storage::control::{ColumnStatistics, IndexColumn, Table};
use plumb_io::{Plain, strict_assert};
use plumb_types::row::ROW_HEADER_BYTES;
use plumb_types::{ColumnType, ColumnWalk, DigitCode, first_bytes, leading_word};
use plumb_units::{BlockAddress, BlockNumber, BlockSize, FileId, RowId};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::marker::PhantomData;

/// Most columns of a packed key.
const COLUMNS_MAX: usize = 16;
/// Bytes of a column in a normalised key: a word and a terminator.
const COLUMN_BYTES_MAX: usize = 9;
/// NULL in a normalised key, with the second byte as its terminator.
const NULL_WORD: u64 = 0xFFFF << 48;
/// Bytes of a key buffer: all columns, and room to write a whole word at the end.
const KEY_BYTES: usize = COLUMNS_MAX * COLUMN_BYTES_MAX + 8;

/// A machine word that holds a record.
pub trait Word: Plain + Ord + Debug + Send + Sync + 'static {
    /// Bytes of the word, and of a record.
    const BYTES: usize;
    /// All ones, above every record.
    const MAX: Self;
    /// Word of a record before its key and row id are added.
    const ZERO: Self;

    /// Reads a word from its record.
    fn from_record(record: &[u8]) -> Self;

    /// Appends the word's record to `out`.
    fn append_to(self, out: &mut Vec<u8>);

    /// Writes the word's record to the front.
    fn write_to(self, record: &mut [u8; 16]);

    /// Returns the word with `value` added at bit `shift`; these bits must be zero.
    fn with(self, value: u64, shift: u32) -> Self;

    /// Returns `bits` bits from bit `shift` on.
    fn bits(self, shift: u32, bits: u32) -> u64;

    /// Returns the word shifted right by `shift` bits.
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
            fn write_to(self, record: &mut [u8; 16]) {
                record[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn with(self, value: u64, shift: u32) -> Self {
                self | (value as $type) << shift
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

/// Returns the number whose lowest `bits` bits, 1 to 64, are ones.
#[inline]
fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// A form of records that are one word.
#[derive(Debug, Clone, Copy)]
pub struct WordKey<W>(PhantomData<W>);

impl<W: Word> Format for WordKey<W> {
    type Area = WordArea<W>;
}

impl<W: Word> RunFormat for WordKey<W> {
    type Packing = Unpacked;
    type Merger = WordMerger<W>;

    #[inline]
    fn length(bytes: &[u8]) -> usize {
        if bytes.len() < W::BYTES { 0 } else { W::BYTES }
    }

    #[inline]
    fn compare(one: &[u8], two: &[u8]) -> Ordering {
        W::from_record(one).cmp(&W::from_record(two))
    }

    fn last_record(content: &[u8], last: &mut Vec<u8>) {
        if let Some(record) = content.chunks_exact(W::BYTES).last() {
            last.clear();
            last.extend_from_slice(record);
        }
    }
}

/// A tree of losers whose heads are the records themselves.
#[derive(Debug)]
pub struct WordMerger<W> {
    tree: LoserTree<(W, u32)>,
    record: [u8; 16],
}

impl<W: Word> WordMerger<W> {
    /// Takes the next head of a source: all ones if none is left.
    #[inline]
    fn head(rest: &mut &[u8], source: u32) -> (W, u32) {
        match rest.split_at_checked(W::BYTES) {
            Some((record, left)) => {
                *rest = left;
                (W::from_record(record), source)
            }
            None => (W::MAX, source),
        }
    }

    #[inline]
    fn less(one: &(W, u32), two: &(W, u32)) -> bool {
        one.0 < two.0
    }
}

impl<W: Word> Merger for WordMerger<W> {
    fn new(sources: &mut [&[u8]]) -> WordMerger<W> {
        let heads: Vec<(W, u32)> =
            sources.iter_mut().zip(0..).map(|(rest, source)| Self::head(rest, source)).collect();
        let tree = LoserTree::new(&heads, Self::less);
        let mut record = [0; 16];
        tree.winner().0.write_to(&mut record);
        WordMerger { tree, record }
    }

    #[inline]
    fn record(&self) -> &[u8] {
        if self.tree.winner().0 == W::MAX { &[] } else { &self.record[..W::BYTES] }
    }

    #[inline]
    fn source(&self) -> usize {
        self.tree.winner().1 as usize
    }

    #[inline]
    fn replace(&mut self, rest: &mut &[u8]) {
        let source = self.tree.winner().1;
        self.tree.replace(source, Self::head(rest, source), Self::less);
        self.tree.winner().0.write_to(&mut self.record);
    }
}

/// Packing of the keys of an index.
#[derive(Debug, Clone)]
pub struct WordLayout {
    /// Columns in the order of the key.
    columns: Vec<WordColumn>,
    /// Columns in the order of the row.
    walk: Vec<WordColumn>,
    row: RowBits,
    bits: u32,
    /// True if all normalised keys fit a word of 8 bytes.
    short: bool,
}

#[derive(Debug, Clone, Copy)]
struct WordColumn {
    position: usize,
    descending: bool,
    values: Values,
    /// Largest code of a value.
    top: u64,
    bits: u32,
    /// Lowest bit of the column in the key, the row id not counted.
    shift: u32,
}

#[derive(Debug, Clone, Copy)]
enum Values {
    /// Integers by their [`DigitCode`]s; the field is the smallest code.
    Integers(i64),
    /// Stored values of at most this number of bytes.
    Bytes(u32),
}

/// Number of bits of each part of a row id.
#[derive(Debug, Clone, Copy)]
struct RowBits {
    block: u32,
    slot: u32,
    all: u32,
}

impl WordLayout {
    /// Returns the layout of an index on these columns. `None` if a column has values that cannot
    /// be packed, or key and row id have more bits than a word.
    pub fn new(columns: &[IndexColumn], table: &Table, block_size: BlockSize) -> Option<WordLayout> {
        let row = RowBits::of(table, block_size);
        if columns.len() > COLUMNS_MAX || table.column_statistics.len() != table.schema.column_count() {
            return None;
        }
        let mut key_bits = 0;
        let mut packed = Vec::new();
        for column in columns.iter().rev() {
            let column_type = &table.schema.columns[column.position].column_type;
            let column = WordColumn::new(column, column_type, &table.column_statistics[column.position])?;
            packed.push(WordColumn { shift: key_bits, ..column });
            key_bits += column.bits;
        }
        packed.reverse();
        let bits = key_bits + row.all;
        assert!(row.all <= u64::BITS, "a row id has {} bits", row.all);
        let mut walk = packed.clone();
        walk.sort_by_key(|column| column.position);
        // The last terminator is cut off unless it is complemented; that of a NULL never is.
        let cut_off = packed.last().is_some_and(|last| !last.descending && last.key_bytes_max() > 2);
        let key_bytes = packed.iter().map(WordColumn::key_bytes_max).sum::<u32>() - u32::from(cut_off);
        let short = key_bytes <= 8;
        (bits < u128::BITS).then_some(WordLayout { columns: packed, walk, row, bits, short })
    }

    /// Returns the bits of a record: key and row id.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// True if a record fits a word of this type, with its highest bit free.
    pub fn fits<W: Word>(&self) -> bool {
        self.bits < 8 * W::BYTES as u32
    }
}

/// Returns the bits of numbers up to `most`; at least one.
fn bits_for(most: u64) -> u32 {
    (u64::BITS - most.leading_zeros()).max(1)
}

impl WordColumn {
    /// Returns the packing of a column; `None` if its values cannot be packed.
    fn new(
        column: &IndexColumn,
        column_type: &ColumnType,
        statistics: &ColumnStatistics,
    ) -> Option<WordColumn> {
        let (values, top, bits) = match (column_type, statistics.integers) {
            (ColumnType::Text { .. }, _) => return None,
            (_, Some((least, most))) => {
                let top = most.abs_diff(least);
                // One code more, all ones, for NULL.
                (Values::Integers(least), top, bits_for(top + u64::from(statistics.null_count > 0)))
            }
            (_, None) => {
                // A column of NULLs only has a code of one byte.
                let bytes = statistics.bytes_max.max(1);
                (bytes <= 8).then_some((Values::Bytes(bytes), ones(8 * bytes.min(8)), 8 * bytes))?
            }
        };
        let (position, descending) = (column.position, column.descending);
        Some(WordColumn { position, descending, values, top, bits, shift: 0 })
    }

    /// Returns the most bytes of the column in a normalised key, terminator included.
    fn key_bytes_max(&self) -> u32 {
        let bytes = match self.values {
            Values::Integers(least) => {
                let most = least.unsigned_abs().max((least + self.top as i64).unsigned_abs());
                // An exponent, the digits of 7 bits, and the end of a negative number.
                1 + (most.max(1).ilog2() / 7 + 1) + u32::from(least < 0)
            }
            Values::Bytes(bytes) => bytes,
        };
        bytes + 1
    }

    /// Returns the code of a value of this row; `None` if the statistics do not allow it.
    #[inline(always)]
    fn pack(&self, row: &[u8], value: &[u8]) -> Option<u64> {
        let word = leading_word(row, value);
        let raw = match self.values {
            Values::Integers(least) => DigitCode::decode(word, value.len())?.0.wrapping_sub(least) as u64,
            Values::Bytes(bytes) if value.len() <= bytes as usize => {
                (word & first_bytes(value.len() as u32)) >> (64 - self.bits)
            }
            Values::Bytes(_) => return None,
        };
        let code = if self.descending { self.top.wrapping_sub(raw) } else { raw };
        (raw <= self.top).then_some(code)
    }

    /// Returns the column in a normalised key: its bytes and terminator as the first bytes of a
    /// big-endian word, and the number of bytes before the terminator. If these are eight, the word
    /// has no room for the terminator.
    #[inline]
    fn unpack(&self, code: u64) -> (u64, u32) {
        let raw = if self.descending { self.top.wrapping_sub(code) } else { code };
        let (word, length) = match self.values {
            _ if self.is_null(code) => return (NULL_WORD, 1),
            Values::Integers(least) => DigitCode(least + raw as i64).encode(),
            Values::Bytes(_) => {
                let word = raw << (64 - self.bits);
                (word, 8 - word.trailing_zeros() / 8)
            }
        };
        (if self.descending { !word & first_bytes(length + 1) } else { word }, length)
    }

    /// True for NULL: no stored value is FF in all its bytes, complemented or not.
    #[inline]
    fn is_null(&self, code: u64) -> bool {
        match self.values {
            Values::Integers(_) => code > self.top,
            Values::Bytes(_) => code == self.top,
        }
    }

    #[inline]
    fn code<W: Word>(&self, key: W) -> u64 {
        key.bits(self.shift, self.bits)
    }
}

impl RowBits {
    fn of(table: &Table, block_size: BlockSize) -> RowBits {
        let addresses = table.extents.iter().map(|extent| extent.extent.address(extent.extent.blocks - 1));
        let (mut file, mut block) = (0, 0);
        for address in addresses {
            file = file.max(address.file.0);
            block = block.max(address.block.0);
        }
        // Every row has at least its header, a byte for each column, and its slot.
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
pub struct WordCodec<W> {
    layout: WordLayout,
    word: PhantomData<W>,
}

impl<W: Word> WordCodec<W> {
    /// Makes a codec with this layout, which must fit the word.
    pub fn new(layout: WordLayout) -> WordCodec<W> {
        assert!(layout.fits::<W>(), "{} bits in a word of {} bytes", layout.bits, W::BYTES);
        WordCodec { layout, word: PhantomData }
    }
}

/// The normalised key of the last record. In sorted order the next key shares most of it.
#[derive(Debug)]
pub struct LastKey<W> {
    /// Packed form of the key; all ones before the first record.
    key: W,
    /// Converted columns of the key.
    parts: [Part; COLUMNS_MAX],
    /// Bytes of a short key, zeros after them.
    word: u64,
    /// Bytes of a long key, zeros after them; `length` is their number.
    bytes: [u8; KEY_BYTES],
    length: usize,
}

/// A column of a key.
#[derive(Debug, Clone, Copy)]
struct Part {
    code: u64,
    word: u64,
    length: u32,
}

impl<W: Word> Default for LastKey<W> {
    fn default() -> LastKey<W> {
        // Only NULL in a column of eight bytes has a code of 64 ones.
        let part = Part { code: u64::MAX, word: NULL_WORD, length: 1 };
        LastKey { key: W::MAX, parts: [part; COLUMNS_MAX], word: 0, bytes: [0; KEY_BYTES], length: 0 }
    }
}

impl<W: Word> Codec for WordCodec<W> {
    type Format = WordKey<W>;
    type State = LastKey<W>;

    #[inline]
    fn encode(&self, row: &[u8], row_id: RowId, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let rows = self.layout.row;
        let code = rows.pack(row_id);
        strict_assert!(code <= ones(rows.all), "the row {row_id} is outside the table");
        let mut word = W::ZERO.with(code, 0);
        let mut walk = ColumnWalk::new(row)?;
        for column in &self.layout.walk {
            let code = match walk.value(column.position)? {
                Some(value) => column.pack(row, value),
                None => Some(ones(column.bits)),
            };
            let Some(code) = code else { return Err(CodecError::Statistics { column: column.position }) };
            word = word.with(code, rows.all + column.shift);
        }
        word.append_to(out);
        Ok(self.layout.columns.len() * COLUMN_BYTES_MAX)
    }

    #[inline]
    fn decode<'s>(&self, record: &'s [u8], last: &'s mut LastKey<W>) -> (RecordKey<'s>, RowId) {
        let row = self.turn_to(record, last);
        if self.layout.short {
            (RecordKey::Word(last.word), row)
        } else {
            (RecordKey::Bytes(&last.bytes[..last.length]), row)
        }
    }
}

impl<W: Word> WordCodec<W> {
    /// Makes `last` the key of a record, as a word if it is short, otherwise as
    /// bytes. Returns the row id.
    #[inline]
    fn turn_to(&self, record: &[u8], last: &mut LastKey<W>) -> RowId {
        let word = W::from_record(record);
        let rows = self.layout.row;
        let key = word.above(rows.all);
        if last.key != key {
            if self.layout.short {
                self.write_word(key, last);
            } else {
                self.write_bytes(key, last);
            }
            last.key = key;
        }
        rows.unpack(word.bits(0, rows.all))
    }

    /// Returns the part of a column, converted only if its code has changed.
    #[inline]
    fn part(column: &WordColumn, key: W, part: &mut Part) -> Part {
        let code = column.code(key);
        if part.code != code {
            let (word, length) = column.unpack(code);
            *part = Part { code, word, length };
        }
        *part
    }

    /// Writes a short key in registers, because eight bytes that were written in pieces cannot be
    /// read at once without a stall.
    #[inline]
    fn write_word(&self, key: W, last: &mut LastKey<W>) {
        let (mut word, mut at) = (0, 0);
        for (column, part) in self.layout.columns.iter().zip(&mut last.parts) {
            let part = Self::part(column, key, part);
            word |= part.word >> at;
            at += 8 * (part.length + 1);
        }
        last.word = word;
    }

    /// Writes a key that may be long.
    fn write_bytes(&self, key: W, last: &mut LastKey<W>) {
        last.bytes.fill(0);
        let mut end = 0;
        for (column, part) in self.layout.columns.iter().zip(&mut last.parts) {
            let part = Self::part(column, key, part);
            let length = part.length as usize;
            last.bytes[end..end + 8].copy_from_slice(&part.word.to_be_bytes());
            // Trailing zeros are cut off; only terminators are zero.
            let ones = column.descending || part.word == NULL_WORD;
            last.length = end + length + usize::from(ones);
            if ones {
                last.bytes[end + length] = 0xFF;
            }
            end += length + 1;
        }
    }
}

#[cfg(test)]
mod tests;
