//! Splits a piece of the text into records and fields.
//!
//! A piece ends where a record does, so fields are slices of it without a copy. Doubled
//! quotes are reduced in a copy after the piece, which stays as it was read, because a
//! piece may be parsed again.
//!
//! Quotes count only at the start of a field, as in `"a ""b"", c"`. Elsewhere they are text: `5"
//! pipe` has five characters. In files without quoting they are always text.

use super::dialect::{Dialect, LineEnd, Quote};
use super::pieces::{PieceError, Pieces};
use std::io;

/// Reason for which there is no next record.
#[derive(Debug)]
pub(super) enum RecordError {
    /// The bytes cannot be read; the last good record ended before this line.
    Read { line: u64, source: io::Error },
    /// A quote is open at the end of the file.
    UnclosedQuote { line: u64, quote_line: u64 },
    /// Text follows a closing quote; with the field's index and beginning.
    TextAfterQuote { line: u64, field: usize, found: String },
    /// The record exceeds 16 MiB.
    TooLong { line: u64 },
}

/// The records of a piece, one at a time.
#[derive(Debug)]
pub(super) struct Records {
    dialect: Dialect,
    /// Meaning of an empty line.
    empty_lines: EmptyLines,

    /// The piece, followed by fields of the current record with their quotes reduced.
    buffer: Vec<u8>,
    /// Start of its records, start of the next one, and end of the last one.
    begin: usize,
    start: usize,
    end: usize,
    /// Start of the current record.
    record_start: usize,
    next_line: u64,
    /// Number of empty lines skipped.
    skipped: u64,

    /// Line on which the current record started.
    line: u64,
    /// Number of line breaks within its fields.
    lines_within: u64,
    /// Places of its fields in `buffer`.
    fields: Vec<Field>,
    /// Indices of fields with doubled quotes.
    escaped: Vec<usize>,
}

/// Meaning of a line without characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyLines {
    /// No record: counted and skipped.
    Skipped,
    /// A record of one empty field.
    Records,
}

impl EmptyLines {
    /// Returns their meaning for records of `columns` fields.
    pub(super) fn of(columns: usize) -> EmptyLines {
        if columns == 1 { EmptyLines::Records } else { EmptyLines::Skipped }
    }
}

#[derive(Debug, Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
}

impl PieceError {
    /// Returns the error of a reader that has read up to this line.
    pub(super) fn at(self, line: u64) -> RecordError {
        match self {
            PieceError::Read(source) => RecordError::Read { line, source },
            PieceError::TooLong => RecordError::TooLong { line },
        }
    }
}

impl Records {
    /// Creates an empty reader; its first piece starts on the first line.
    pub(super) fn new(dialect: Dialect, empty_lines: EmptyLines) -> Records {
        Records {
            dialect,
            empty_lines,
            buffer: Vec::new(),
            begin: 0,
            start: 0,
            end: 0,
            record_start: 0,
            next_line: 1,
            skipped: 0,
            line: 1,
            lines_within: 0,
            fields: Vec::new(),
            escaped: Vec::new(),
        }
    }

    /// Returns the records of these bytes.
    pub(super) fn of(bytes: &[u8], dialect: Dialect, empty_lines: EmptyLines) -> Records {
        Records { buffer: bytes.to_vec(), end: bytes.len(), ..Records::new(dialect, empty_lines) }
    }

    /// Sets the line of the next record.
    pub(super) fn begin_at(&mut self, line: u64) {
        self.next_line = line;
    }

    /// Goes back to the start of the current record.
    pub(super) fn step_back(&mut self) {
        (self.start, self.next_line) = (self.record_start, self.line);
    }

    /// Takes the next piece; false if there is none. Line numbers continue.
    pub(super) fn refill(&mut self, pieces: &mut Pieces) -> Result<bool, PieceError> {
        (self.begin, self.start, self.end) = (0, 0, 0);
        let more = pieces.next(&mut self.buffer)?;
        self.end = self.buffer.len();
        Ok(more)
    }

    /// Takes the rest of the piece as the whole of it, with this meaning of empty lines, and
    /// restarts the count of those skipped.
    pub(super) fn begin_here(&mut self, empty_lines: EmptyLines) {
        self.begin = self.start;
        self.empty_lines = empty_lines;
        self.skipped = 0;
    }

    /// Goes back to the start of the piece, which gets this line number.
    pub(super) fn rewind(&mut self, line: u64) {
        self.start = self.begin;
        self.next_line = line;
        self.skipped = 0;
    }

    /// Returns the number of empty lines skipped.
    pub(super) fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    /// Returns the line after the current record.
    pub(super) fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Moves to the next record of the input; false at its end.
    pub(super) fn advance_in(&mut self, pieces: &mut Pieces) -> Result<bool, RecordError> {
        while !self.advance()? {
            if !self.refill(pieces).map_err(|error| error.at(self.next_line))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves to the next record of the piece; false at its end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool, RecordError> {
        self.buffer.truncate(self.end);
        self.fields.clear();
        self.escaped.clear();
        if !self.find_record() {
            return Ok(false);
        }
        let mut lines = 0;
        let end = self.scan(&mut lines)?;
        // Past the line break, if one ended the record.
        let breaks = usize::from(end < self.end);
        (self.record_start, self.start) = (self.start, end + breaks);
        self.next_line = self.line + lines + breaks as u64;
        self.lines_within = lines;
        self.reduce_quotes();
        Ok(true)
    }

    /// Returns the line on which the current record starts, the first being 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Returns the number of line breaks within the current record's fields.
    pub(super) fn lines_within(&self) -> u64 {
        self.lines_within
    }

    /// Returns the number of fields of the current record.
    pub(super) fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// Returns a field of the current record, without its quotes.
    #[inline]
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let Field { start, end } = self.fields[index];
        &self.buffer[start..end]
    }

    /// Returns the fields of the current record in order.
    #[inline]
    pub(super) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().map(|field| &self.buffer[field.start..field.end])
    }

    /// Moves to the first byte of a record; false if there is none.
    #[inline]
    fn find_record(&mut self) -> bool {
        while self.empty_lines == EmptyLines::Skipped
            && let Some(b'\n' | b'\r') = self.buffer.get(self.start)
            && let Some(end) = self.break_at(self.start)
        {
            self.start = self.end.min(end + 1);
            self.next_line += 1;
            self.skipped += 1;
        }
        self.line = self.next_line;
        self.start < self.end
    }

    /// Returns the place of the line break that ends a field or line at `at`, or the end of the
    /// piece; `None` if other text follows.
    #[inline]
    fn break_at(&self, at: usize) -> Option<usize> {
        let crs = match self.dialect.line_end {
            LineEnd::Lf => self.buffer[at..].iter().take_while(|byte| **byte == b'\r').count(),
            LineEnd::Cr => 0,
        };
        let found = self.buffer.get(at + crs);
        found.is_none_or(|byte| *byte == self.dialect.line_end.byte()).then_some(at + crs)
    }

    /// Finds the fields of the record at `start` and adds their line breaks to `lines`. Returns the
    /// end of the last field: a line break or the end of the piece.
    #[inline]
    fn scan(&mut self, lines: &mut u64) -> Result<usize, RecordError> {
        let Dialect { delimiter, quote, line_end } = self.dialect;
        let mut at = self.start;
        loop {
            at = if self.buffer.get(at) == Some(&b'"') && quote == Quote::Double {
                self.scan_quoted(at, lines)?
            } else {
                let end = at + plain_length(&self.buffer[at..], [delimiter, line_end.byte()]);
                self.fields.push(Field { start: at, end });
                end
            };
            if self.buffer.get(at) != Some(&delimiter) {
                self.trim_line_end();
                return Ok(at);
            }
            at += 1;
        }
    }

    /// Removes CRs before the line break from the last field, unless a quote ends it.
    #[inline]
    fn trim_line_end(&mut self) {
        let Some(last) = self.fields.last_mut().filter(|_| self.dialect.line_end == LineEnd::Lf) else {
            return;
        };
        // A quoted field may end in a CR of its own.
        if self.buffer.get(last.end) == Some(&b'"') && self.dialect.quote == Quote::Double {
            return;
        }
        while last.end > last.start && self.buffer[last.end - 1] == b'\r' {
            last.end -= 1;
        }
    }

    /// Finds the end of a field whose opening quote is at `quote`, adding
    /// its line breaks to `lines`.
    fn scan_quoted(&mut self, quote: usize, lines: &mut u64) -> Result<usize, RecordError> {
        let quote_line = self.line + *lines;
        let mut escaped = false;
        let mut at = quote + 1;
        loop {
            match self.buffer[at..] {
                [] => return Err(RecordError::UnclosedQuote { line: self.line, quote_line }),
                [b'"', b'"', ..] => {
                    escaped = true;
                    at += 1;
                }
                [b'"', ..] => break,
                [byte, ..] => *lines += u64::from(byte == b'\n'),
            }
            at += 1;
        }
        let is_delimiter = self.buffer.get(at + 1) == Some(&self.dialect.delimiter);
        let end = if is_delimiter { Some(at + 1) } else { self.break_at(at + 1) };
        let Some(end) = end else {
            let found = &self.buffer[quote..self.end.min(quote + 200)];
            return Err(RecordError::TextAfterQuote {
                line: self.line,
                field: self.fields.len(),
                found: String::from_utf8_lossy(found).into_owned(),
            });
        };
        if escaped {
            self.escaped.push(self.fields.len());
        }
        self.fields.push(Field { start: quote + 1, end: at });
        Ok(end)
    }

    /// Reduces each doubled quote to one, in the fields that have them.
    #[inline]
    fn reduce_quotes(&mut self) {
        for &index in &self.escaped {
            let Field { start, end } = self.fields[index];
            let target = self.buffer.len();
            let mut source = start;
            while source < end {
                let byte = self.buffer[source];
                self.buffer.push(byte);
                source += 1 + usize::from(byte == b'"');
            }
            self.fields[index] = Field { start: target, end: self.buffer.len() };
        }
    }
}

/// Returns the bytes before the first of two, or before the end. It compares eight
/// at a time: fields are short and of all lengths, and a branch for each byte would
/// be mispredicted once a field.
#[inline]
fn plain_length(bytes: &[u8], ends: [u8; 2]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Marks the first zero byte; marks above it may be false.
    let zeros = |word: u64| word.wrapping_sub(EACH) & !word & HIGH;
    let [one, two] = ends.map(|end| EACH * u64::from(end));
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ one) | zeros(word ^ two);
        if found != 0 {
            return 8 * index + found.trailing_zeros() as usize / 8;
        }
    }
    let length = rest.iter().position(|byte| ends.contains(byte));
    8 * words.len() + length.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests;
