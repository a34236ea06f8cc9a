//! Splits a piece of the text into records and fields.
//!
//! A piece ends where a record does, so that fields can be given out as slices of it
//! without a copy. Doubled quotes are reduced in a copy behind the piece, which stays
//! as it was read: a piece may be gone over again.
//!
//! Quotes count only at the start of a field, as in `"a ""b"", c"`. Elsewhere
//! they are text: `5" pipe` is five characters of it and needs no care. Files without quoting have
//! none at all.

use super::dialect::{Dialect, LineEnd, Quote};
use super::pieces::{PieceError, Pieces};
use std::io;

/// Why there is no next record.
#[derive(Debug)]
pub(super) enum RecordError {
    /// The bytes cannot be had; the last good record ended before this line.
    Read { line: u64, source: io::Error },
    /// A quote that the file's end leaves open.
    UnclosedQuote { line: u64, quote_line: u64 },
    /// A closing quote with text behind it; the field's index and beginning.
    TextAfterQuote { line: u64, field: usize, found: String },
    /// More than 16 MiB.
    TooLong { line: u64 },
}

/// The records of a piece, one at a time.
#[derive(Debug)]
pub(super) struct Records {
    dialect: Dialect,
    /// What an empty line is.
    empty_lines: EmptyLines,

    /// The piece, and behind it fields of the current record with their quotes reduced.
    buffer: Vec<u8>,
    /// Where its records begin, the next one starts and the last one ends.
    begin: usize,
    start: usize,
    end: usize,
    /// The place where the current record begins.
    record_start: usize,
    /// The line that `start` is on.
    next_line: u64,
    /// Empty lines passed over.
    skipped: u64,

    /// The line the current record started on.
    line: u64,
    /// Line breaks within its fields.
    lines_within: u64,
    /// Where its fields are in `buffer`.
    fields: Vec<Field>,
    /// Indices of fields that hold doubled quotes.
    escaped: Vec<usize>,
}

/// What a line without a character is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyLines {
    /// Nothing: counted and passed over.
    Skipped,
    /// A record of one empty field.
    Records,
}

impl EmptyLines {
    /// What they are where records have so many fields.
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
    /// The error of who has read up to this line.
    pub(super) fn at(self, line: u64) -> RecordError {
        match self {
            PieceError::Read(source) => RecordError::Read { line, source },
            PieceError::TooLong => RecordError::TooLong { line },
        }
    }
}

impl Records {
    /// Without a piece; the first has the first line.
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

    /// The records of these bytes.
    pub(super) fn of(bytes: &[u8], dialect: Dialect, empty_lines: EmptyLines) -> Records {
        Records { buffer: bytes.to_vec(), end: bytes.len(), ..Records::new(dialect, empty_lines) }
    }

    /// The next record is on this line.
    pub(super) fn begin_at(&mut self, line: u64) {
        self.next_line = line;
    }

    /// Goes back to the current record, as if it had not been read.
    pub(super) fn step_back(&mut self) {
        (self.start, self.next_line) = (self.record_start, self.line);
    }

    /// Takes the next piece; false when there is none. Lines go on from those before.
    pub(super) fn refill(&mut self, pieces: &mut Pieces) -> Result<bool, PieceError> {
        (self.begin, self.start, self.end) = (0, 0, 0);
        let more = pieces.next(&mut self.buffer)?;
        self.end = self.buffer.len();
        Ok(more)
    }

    /// What is left of the piece is taken for all of it, and empty lines for this; those
    /// passed over are counted anew.
    pub(super) fn begin_here(&mut self, empty_lines: EmptyLines) {
        self.begin = self.start;
        self.empty_lines = empty_lines;
        self.skipped = 0;
    }

    /// Goes back to where the piece begins, and takes that for this line.
    pub(super) fn rewind(&mut self, line: u64) {
        self.start = self.begin;
        self.next_line = line;
        self.skipped = 0;
    }

    /// Empty lines passed over.
    pub(super) fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    /// The line behind the current record.
    pub(super) fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Goes to the next record of the input; false at its end.
    pub(super) fn advance_in(&mut self, pieces: &mut Pieces) -> Result<bool, RecordError> {
        while !self.advance()? {
            if !self.refill(pieces).map_err(|error| error.at(self.next_line))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes to the next record of the piece; false at its end.
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
        // Past the line break, if that is what ended the record.
        let breaks = usize::from(end < self.end);
        (self.record_start, self.start) = (self.start, end + breaks);
        self.next_line = self.line + lines + breaks as u64;
        self.lines_within = lines;
        self.reduce_quotes();
        Ok(true)
    }

    /// The line the current record starts on, the first being 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Line breaks within fields of the current record.
    pub(super) fn lines_within(&self) -> u64 {
        self.lines_within
    }

    /// How many fields the current record has.
    pub(super) fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// A field of the current record, without its quotes.
    #[inline]
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let Field { start, end } = self.fields[index];
        &self.buffer[start..end]
    }

    /// The fields of the current record in order.
    #[inline]
    pub(super) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().map(|field| &self.buffer[field.start..field.end])
    }

    /// Moves to the first byte of a record; false where there is none.
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

    /// Returns the place of the line break that ends a field or line at `at`, the end of the piece
    /// included; none where something else stands there.
    #[inline]
    fn break_at(&self, at: usize) -> Option<usize> {
        let crs = match self.dialect.line_end {
            LineEnd::Lf => self.buffer[at..].iter().take_while(|byte| **byte == b'\r').count(),
            LineEnd::Cr => 0,
        };
        let found = self.buffer.get(at + crs);
        found.is_none_or(|byte| *byte == self.dialect.line_end.byte()).then_some(at + crs)
    }

    /// Marks the fields of the record at `start`, adding to `lines` the line breaks in
    /// them; gives back where the last one ends: at a line break or the end of the piece.
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

    /// Takes CRs before the line break off the last field, where no quote ends it.
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

    /// Marks a field whose opening quote is at `quote`, adding to `lines` the
    /// line breaks in it; gives back where it ends.
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

    /// Makes one quote of each two within the fields that hold them.
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

/// Bytes up to the first of two or the end, eight at a time: fields are
/// short and of all lengths, and a branch for each byte would be guessed wrong
/// once a field.
#[inline]
fn plain_length(bytes: &[u8], ends: [u8; 2]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Marks the first byte that is zero; above it marks may be false.
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
