//! The image of a row, as a block holds it.
//!
//! ```text
//! [flags 2C][lock 00][column count]  then per column one of
//! [len 01..FA][len bytes]            a value of up to 250 bytes
//! [FE][length u16 LE][bytes]         a longer value, 251 to 65,535 bytes
//! [FF]                               NULL
//! ```
//!
//! No value has length zero: empty text is NULL and the other types have no empty encoding.
//! Flags and lock belong to the table that keeps the row and are ignored here. Reading
//! never panics, whatever the bytes.

/// Flags of a whole row: its head, first and last piece in one.
pub const ROW_FLAGS: u8 = 0x2C;

/// Bytes of flags, lock and column count.
pub const ROW_HEADER_BYTES: usize = 3;

/// Longest value with a length of one byte.
pub const SHORT_BYTES_MAX: usize = 250;

/// Longest value that a row can hold, in bytes.
pub const VALUE_BYTES_MAX: usize = u16::MAX as usize;

pub(crate) const LONG_MARK: u8 = 0xFE;
pub(crate) const NULL_MARK: u8 = 0xFF;

/// Bytes that are no image of a row, or of another number of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The row is shorter than a header.
    #[error("a row of {found} bytes is shorter than its header of 3")]
    NoHeader {
        /// Bytes that the row has.
        found: usize,
    },
    /// A column extends past the end of the row.
    #[error("column {column} of the row starts at byte {offset} and ends past its last, {found}")]
    Truncated {
        /// The column, the first being 0.
        column: usize,
        /// Byte offset of its length.
        offset: usize,
        /// Bytes that the row has.
        found: usize,
    },
    /// A length that no writer produces.
    #[error("column {column} of the row has the impossible length mark {mark:#04x} at byte {offset}")]
    BadLength {
        /// The column, the first being 0.
        column: usize,
        /// Byte offset of its length.
        offset: usize,
        /// Byte found at that offset.
        mark: u8,
    },
    /// Bytes follow the last column.
    #[error("the row goes on for {surplus} bytes after its last column")]
    TrailingBytes {
        /// Bytes after the last column.
        surplus: usize,
    },
    /// The row has fewer columns.
    #[error("column {index} was asked of a row of {count} columns")]
    NoSuchColumn {
        /// The requested column, the first being 0.
        index: usize,
        /// Columns that the row has.
        count: usize,
    },
}

/// Returns the columns of a row image in order; see [`Columns`].
#[inline]
pub fn columns(row: &[u8]) -> Columns<'_> {
    let count = row.get(2).map_or(0, |count| usize::from(*count));
    Columns { row, offset: ROW_HEADER_BYTES, column: 0, count }
}

/// Returns one column of a row image, the first being 0; `None` is NULL.
///
/// Fails where the row lacks the column or its bytes end before it. Bytes after
/// the column are not checked.
#[inline]
pub fn column_at(row: &[u8], index: usize) -> Result<Option<&[u8]>, RowError> {
    ColumnWalk::new(row)?.value(index)
}

/// Returns the first 8 bytes of a value in `row`, as a big-endian word; after a shorter value
/// come the bytes that follow it in the row. One load replaces a copy of variable length, which
/// would go byte by byte.
#[inline]
pub fn leading_word(row: &[u8], value: &[u8]) -> u64 {
    let at = value.as_ptr().addr() - row.as_ptr().addr();
    match (row.get(at..at + 8), row.last_chunk()) {
        (Some(bytes), _) => u64::from_be_bytes(bytes.try_into().expect("eight bytes")),
        (None, Some(last)) => u64::from_be_bytes(*last).unbounded_shl(8 * (at + 8 - row.len()) as u32),
        (None, None) => {
            let mut bytes = [0; 8];
            bytes[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Looks up columns of a row from the first to the last, and walks over each column once.
#[derive(Debug, Clone)]
pub struct ColumnWalk<'a> {
    row: &'a [u8],
    count: usize,
    /// Index of the column that starts at `offset`.
    column: usize,
    offset: usize,
}

impl<'a> ColumnWalk<'a> {
    /// Starts at the first column. Fails where the row lacks a header.
    #[inline]
    pub fn new(row: &'a [u8]) -> Result<ColumnWalk<'a>, RowError> {
        match row.get(2) {
            Some(&count) => {
                Ok(ColumnWalk { row, count: usize::from(count), column: 0, offset: ROW_HEADER_BYTES })
            }
            None => Err(RowError::NoHeader { found: row.len() }),
        }
    }

    /// Returns column `index`, which may not precede the last one requested; `None` is
    /// NULL. Fails where [`column_at`] does.
    ///
    /// # Panics
    /// When the walk is past the column.
    #[inline]
    pub fn value(&mut self, index: usize) -> Result<Option<&'a [u8]>, RowError> {
        assert!(index >= self.column, "columns are walked in order");
        if index >= self.count {
            return Err(RowError::NoSuchColumn { index, count: self.count });
        }
        loop {
            let Some((value, end)) = value_at(self.row, self.offset) else {
                return Err(fault_at(self.row, self.offset, self.column));
            };
            if self.column == index {
                return Ok(value);
            }
            self.offset = end;
            self.column += 1;
        }
    }
}

/// An iterator over the columns of a row; `None` is NULL. It ends where the row ends and where
/// bytes are corrupt; [`finish`](Self::finish) distinguishes them.
///
/// Why the items are no results: a result passes through memory in parts and is read back as a
/// whole. That took longer than the rest of a load.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    row: &'a [u8],
    offset: usize,
    column: usize,
    /// Zero if the row has no header.
    count: usize,
}

impl Columns<'_> {
    /// Returns the number of columns of the row, including those not requested.
    ///
    /// Fails where the row has no header, a column cannot be read, or bytes follow the last column.
    #[inline]
    pub fn finish(mut self) -> Result<usize, RowError> {
        self.by_ref().for_each(drop);
        match self.column == self.count && self.offset == self.row.len() {
            true => Ok(self.count),
            false => Err(self.fault()),
        }
    }

    /// Returns the length of the row in bytes; bytes may follow it.
    ///
    /// Fails where the row has no header, or a column cannot be read.
    #[inline]
    pub fn end(mut self) -> Result<usize, RowError> {
        self.by_ref().for_each(drop);
        match self.column == self.count && self.offset <= self.row.len() {
            true => Ok(self.offset),
            false => Err(self.fault()),
        }
    }

    #[cold]
    fn fault(&self) -> RowError {
        match self.row.len().checked_sub(self.offset) {
            None => RowError::NoHeader { found: self.row.len() },
            Some(surplus) if self.column == self.count => RowError::TrailingBytes { surplus },
            Some(_) => fault_at(self.row, self.offset, self.column),
        }
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.column == self.count {
            return None;
        }
        let (value, end) = value_at(self.row, self.offset)?;
        self.offset = end;
        self.column += 1;
        Some(value)
    }
}

/// Returns the value whose length is at `offset`, and its end.
#[inline]
fn value_at(row: &[u8], offset: usize) -> Option<(Option<&[u8]>, usize)> {
    let mark = *row.get(offset)?;
    let (start, length) = match usize::from(mark) {
        length @ 1..=SHORT_BYTES_MAX => (offset + 1, length),
        _ if mark == NULL_MARK => return Some((None, offset + 1)),
        _ => (offset + 3, long_length(row, offset)?),
    };
    Some((Some(row.get(start..start + length)?), start + length))
}

/// Returns the length after the mark at `offset`, if the mark is that of a long value.
fn long_length(row: &[u8], offset: usize) -> Option<usize> {
    let &[LONG_MARK, low, high] = row.get(offset..offset + 3)? else { return None };
    let length = usize::from(u16::from_le_bytes([low, high]));
    (length > SHORT_BYTES_MAX).then_some(length)
}

/// Returns the error of a missing value at `offset`.
#[cold]
fn fault_at(row: &[u8], offset: usize, column: usize) -> RowError {
    let cut_short = RowError::Truncated { column, offset, found: row.len() };
    let Some(&mark) = row.get(offset) else { return cut_short };
    let impossible = match mark {
        LONG_MARK => row.len() >= offset + 3 && long_length(row, offset).is_none(),
        mark => !(1..=SHORT_BYTES_MAX).contains(&usize::from(mark)),
    };
    if impossible { RowError::BadLength { column, offset, mark } } else { cut_short }
}

#[cfg(test)]
mod tests;
