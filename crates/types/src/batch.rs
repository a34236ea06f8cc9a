//! Rows while they are made and passed on.

use crate::number::Encoded;
use crate::row::{LONG_MARK, NULL_MARK, ROW_FLAGS, SHORT_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{DateTime, Value};

/// Row images in sequence, up to 4 GiB of them.
///
/// A row is made column by column: [`begin_row`](Self::begin_row), one push for
/// each column, [`end_row`](Self::end_row). Clearing the batch keeps its memory,
/// so that refilling allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct RowBatch {
    bytes: Vec<u8>,
    /// Offset in `bytes` at which each row ends.
    ends: Vec<u32>,
    /// Columns that the unfinished row still lacks; None between rows.
    columns_left: Option<u8>,
}

impl RowBatch {
    /// Creates a batch without rows or memory.
    pub fn new() -> Self {
        RowBatch::default()
    }

    /// Removes all rows but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.columns_left = None;
    }

    /// Returns the number of complete rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no complete row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the length of all row images together, in bytes.
    pub fn byte_count(&self) -> usize {
        self.row_start()
    }

    /// Returns a row image; panics where `index` is not below [`len`](Self::len).
    #[inline]
    pub fn row(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    /// Returns the row images in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|index| self.row(index))
    }

    /// Starts a row of this many columns. Panics if the last row is unfinished.
    #[inline]
    pub fn begin_row(&mut self, columns: u8) {
        assert!(self.columns_left.is_none(), "a row is begun before the last one is ended");
        self.columns_left = Some(columns);
        self.bytes.extend_from_slice(&[ROW_FLAGS, 0, columns]);
    }

    /// Appends NULL as the next column.
    #[inline]
    pub fn push_null(&mut self) {
        self.take_column();
        self.bytes.push(NULL_MARK);
    }

    /// Appends encoded bytes as the next column; no bytes are NULL. Panics above 65,535 bytes.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) {
        self.take_column();
        match value.len() {
            0 => self.bytes.push(NULL_MARK),
            length @ 1..=SHORT_BYTES_MAX => self.bytes.push(length as u8),
            length => {
                assert!(length <= VALUE_BYTES_MAX, "a value of {length} bytes does not fit a row");
                let [low, high] = (length as u16).to_le_bytes();
                self.bytes.extend_from_slice(&[LONG_MARK, low, high]);
            }
        }
        self.bytes.extend_from_slice(value);
    }

    /// Appends the number `unscaled / 10^scale` as the next
    /// column. Panics where [`encode_number`](crate::encode_number) does.
    #[inline]
    pub fn push_number(&mut self, unscaled: i128, scale: i8) {
        self.take_column();
        match Encoded::new(unscaled, i32::from(scale)) {
            Ok(encoded) => encoded.append_with_length_to(&mut self.bytes),
            Err(error) => panic!("{unscaled} with scale {scale}: {error}"),
        }
    }

    /// Appends a date as the next column.
    #[inline]
    pub fn push_date(&mut self, date: &DateTime) {
        self.push_bytes(&date.encode());
    }

    /// Appends text as the next column; empty text is NULL. Panics above 65,535 bytes.
    #[inline]
    pub fn push_text(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    /// Appends a value of any type as the next column.
    pub fn push_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.push_null(),
            Value::Number(number) => self.push_bytes(number.as_bytes()),
            Value::Date(date) => self.push_date(date),
            Value::Text(text) => self.push_text(text),
        }
    }

    /// Completes the row. Panics where columns are missing and where the batch exceeds 4 GiB.
    #[inline]
    pub fn end_row(&mut self) {
        match self.columns_left.take() {
            Some(0) => {}
            Some(missing) => panic!("{missing} columns of the row are missing"),
            None => panic!("a row is ended that was not begun"),
        }
        let end = u32::try_from(self.bytes.len()).expect("a batch holds at most 4 GiB");
        self.ends.push(end);
    }

    /// Drops the unfinished row, if there is one.
    pub fn abandon_row(&mut self) {
        self.columns_left = None;
        self.bytes.truncate(self.row_start());
    }

    /// Appends a complete row image unchanged. Panics if the last row is unfinished.
    pub fn push_row(&mut self, image: &[u8]) {
        assert!(self.columns_left.is_none(), "a row is appended before the last one is ended");
        self.bytes.extend_from_slice(image);
        let end = u32::try_from(self.bytes.len()).expect("a batch holds at most 4 GiB");
        self.ends.push(end);
    }

    fn row_start(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    #[inline]
    fn take_column(&mut self) {
        match self.columns_left {
            Some(left @ 1..) => self.columns_left = Some(left - 1),
            _ => panic!("more columns than the row was begun with"),
        }
    }
}
