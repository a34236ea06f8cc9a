//! The image of a row, as it stands in a block.
//!
//! ```text
//! [flags 2C][lock 00][column count]  then per column one of
//! [len 01..FA][len bytes]            a value of up to 250 bytes
//! [FE][length u16 LE][bytes]         a longer value, 251 to 65,535 bytes
//! [FF]                               NULL
//! ```
//!
//! No value has length zero: the empty text is NULL and the other types have
//! no empty encoding. Flags and lock belong to whoever keeps the row; they are
//! not looked at here. Reading never panics, whatever the bytes.

/// The flags of a whole row: its head, first and last piece in one.
pub const ROW_FLAGS: u8 = 0x2C;

/// Flags, lock and column count.
pub const ROW_HEADER_BYTES: usize = 3;

/// Longest value behind a length of one byte.
pub const SHORT_BYTES_MAX: usize = 250;

/// Longest value a row can hold.
pub const VALUE_BYTES_MAX: usize = u16::MAX as usize;

pub(crate) const LONG_MARK: u8 = 0xFE;
pub(crate) const NULL_MARK: u8 = 0xFF;

/// Why bytes are not the image of a row, or not of this many columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Not even a header.
    #[error("a row of {found} bytes is shorter than its header of 3")]
    NoHeader {
        /// Bytes there are.
        found: usize,
    },
    /// A column reaches past the end of the row.
    #[error("column {column} of the row starts at byte {offset} and ends past its last, {found}")]
    Truncated {
        /// The column, the first being 0.
        column: usize,
        /// Where its length stands.
        offset: usize,
        /// Bytes of the row.
        found: usize,
    },
    /// A length that no writer makes.
    #[error("column {column} of the row has the impossible length mark {mark:#04x} at byte {offset}")]
    BadLength {
        /// The column, the first being 0.
        column: usize,
        /// Where its length stands.
        offset: usize,
        /// The byte there.
        mark: u8,
    },
    /// Bytes follow the last column.
    #[error("the row goes on for {surplus} bytes after its last column")]
    TrailingBytes {
        /// How many.
        surplus: usize,
    },
    /// The row has fewer columns.
    #[error("column {index} was asked of a row of {count} columns")]
    NoSuchColumn {
        /// The column asked for, the first being 0.
        index: usize,
        /// Columns of the row.
        count: usize,
    },
}

/// The columns of a row image in order; see [`Columns`].
#[inline]
pub fn columns(row: &[u8]) -> Columns<'_> {
    Columns { row, offset: ROW_HEADER_BYTES, column: 0, count: row.get(2).map(|count| usize::from(*count)) }
}

/// One column of a row image, the first being 0; `None` is NULL.
///
/// Fails where the row has no such column or its bytes break off before it.
/// What follows the column is not looked at.
#[inline]
pub fn column_at(row: &[u8], index: usize) -> Result<Option<&[u8]>, RowError> {
    let Some(&count) = row.get(2) else {
        return Err(RowError::NoHeader { found: row.len() });
    };
    if index >= usize::from(count) {
        return Err(RowError::NoSuchColumn { index, count: usize::from(count) });
    }
    let mut offset = ROW_HEADER_BYTES;
    for column in 0..index {
        offset = value_range(row, offset, column)?.1;
    }
    let (start, end) = value_range(row, offset, index)?;
    value_at(row, start, end, offset, index)
}

/// Looks up columns of a row, from the first to the last, and walks over each
/// column once.
#[derive(Debug, Clone)]
pub struct ColumnWalk<'a> {
    row: &'a [u8],
    count: usize,
    /// The column that starts at `offset`.
    column: usize,
    offset: usize,
}

impl<'a> ColumnWalk<'a> {
    /// At the first column. Fails where there is no row.
    #[inline]
    pub fn new(row: &'a [u8]) -> Result<ColumnWalk<'a>, RowError> {
        match row.get(2) {
            Some(&count) => {
                Ok(ColumnWalk { row, count: usize::from(count), column: 0, offset: ROW_HEADER_BYTES })
            }
            None => Err(RowError::NoHeader { found: row.len() }),
        }
    }

    /// The column `index`, not before the last one asked for; `None` is NULL.
    /// Fails as [`column_at`] does.
    ///
    /// # Panics
    /// When the column has been passed.
    #[inline]
    pub fn value(&mut self, index: usize) -> Result<Option<&'a [u8]>, RowError> {
        assert!(index >= self.column, "columns are walked in order");
        if index >= self.count {
            return Err(RowError::NoSuchColumn { index, count: self.count });
        }
        while self.column < index {
            self.offset = value_range(self.row, self.offset, self.column)?.1;
            self.column += 1;
        }
        let (start, end) = value_range(self.row, self.offset, index)?;
        value_at(self.row, start, end, self.offset, index)
    }
}

/// An iterator over the columns of a row; `None` is NULL. Corrupt bytes yield
/// an error, which is the last item; so do bytes after the last column.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    row: &'a [u8],
    offset: usize,
    column: usize,
    /// None where the row has no header.
    count: Option<usize>,
}

impl<'a> Columns<'a> {
    fn step(&mut self, count: usize) -> Result<Option<&'a [u8]>, RowError> {
        let (start, end) = value_range(self.row, self.offset, self.column)?;
        let value = value_at(self.row, start, end, self.offset, self.column)?;
        self.offset = end;
        self.column += 1;
        debug_assert!(self.column <= count);
        Ok(value)
    }

    /// No further items.
    fn stop(&mut self) {
        self.count = Some(self.column);
        self.offset = self.row.len();
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = Result<Option<&'a [u8]>, RowError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let result = match self.count {
            None => Err(RowError::NoHeader { found: self.row.len() }),
            Some(count) if self.column < count => self.step(count),
            Some(_) if self.offset < self.row.len() => {
                Err(RowError::TrailingBytes { surplus: self.row.len() - self.offset })
            }
            Some(_) => return None,
        };
        if result.is_err() {
            self.stop();
        }
        Some(result)
    }
}

/// Where the value whose length stands at `offset` starts and ends. The end
/// may lie outside the row; start and end are the same for NULL.
#[inline]
fn value_range(row: &[u8], offset: usize, column: usize) -> Result<(usize, usize), RowError> {
    let Some(&mark) = row.get(offset) else {
        return Err(RowError::Truncated { column, offset, found: row.len() });
    };
    let length = usize::from(mark);
    if length.wrapping_sub(1) < SHORT_BYTES_MAX {
        return Ok((offset + 1, offset + 1 + length));
    }
    match mark {
        NULL_MARK => Ok((offset + 1, offset + 1)),
        LONG_MARK => {
            let Some(&[low, high]) = row.get(offset + 1..offset + 3) else {
                return Err(RowError::Truncated { column, offset, found: row.len() });
            };
            let length = usize::from(u16::from_le_bytes([low, high]));
            if length <= SHORT_BYTES_MAX {
                return Err(RowError::BadLength { column, offset, mark });
            }
            Ok((offset + 3, offset + 3 + length))
        }
        _ => Err(RowError::BadLength { column, offset, mark }),
    }
}

#[inline]
fn value_at(
    row: &[u8],
    start: usize,
    end: usize,
    offset: usize,
    column: usize,
) -> Result<Option<&[u8]>, RowError> {
    match row.get(start..end) {
        Some([]) => Ok(None),
        Some(value) => Ok(Some(value)),
        None => Err(RowError::Truncated { column, offset, found: row.len() }),
    }
}

#[cfg(test)]
mod tests;
