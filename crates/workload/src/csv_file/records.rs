//! Splits bytes into records and fields.
//!
//! A record is found whole within one buffer, which grows where it must, so
//! that its fields can be given out as slices of it without a copy. A first
//! scan only marks where fields start and end; where it runs out of bytes,
//! more are read and the record is scanned again. Doubled quotes are reduced
//! in place once the record is complete, and not before: a second scan must
//! find the bytes untouched.
//!
//! Quotes count only at the start of a field, as in `"a ""b"", c"`. Elsewhere
//! they are text: `5" pipe` is five characters of it and needs no care.

use flate2::Crc;
use std::io::{self, Read};

/// Read at a time; also the longest record without growing the buffer.
const BUFFER_BYTES: usize = 256 * 1024;

/// Longest record. Nothing but an unclosed quote is longer than this, and a
/// row could not be kept.
const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

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

/// The records of an input, one at a time.
pub(super) struct Records {
    input: Box<dyn Read + Send>,
    delimiter: u8,

    buffer: Vec<u8>,
    /// `buffer[start..end]` is read and not yet given out.
    start: usize,
    end: usize,
    /// Whether the input has no more bytes.
    input_ended: bool,
    /// How many bytes it gave, and their checksum.
    bytes: u64,
    checksum: Crc,
    /// The line that `start` is on, the first being 1.
    next_line: u64,

    /// What an empty line is.
    empty_lines: EmptyLines,
    /// Empty lines passed over since that was last said.
    skipped: u64,
    /// The line the current record started on.
    line: u64,
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

#[derive(Debug, Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
}

/// How a scan ended.
enum Scan {
    /// At the end of the record, after so many line breaks.
    Complete { next: usize, lines: u64 },
    /// At the end of the bytes there are.
    Incomplete,
}

/// Where a field ended.
enum FieldEnd {
    /// At a delimiter, or at what may end the record.
    At(usize),
    /// Nowhere in the bytes there are.
    Beyond,
}

impl Records {
    /// Reads the first bytes; without a delimiter, takes it from them.
    pub(super) fn new(input: Box<dyn Read + Send>, delimiter: Option<u8>) -> Result<Self, RecordError> {
        let mut records = Records {
            input,
            delimiter: b',',
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            input_ended: false,
            bytes: 0,
            checksum: Crc::new(),
            next_line: 1,
            empty_lines: EmptyLines::Skipped,
            skipped: 0,
            line: 1,
            fields: Vec::new(),
            escaped: Vec::new(),
        };
        records.fill()?;
        records.delimiter = delimiter.unwrap_or_else(|| detect_delimiter(&records.buffer[..records.end]));
        Ok(records)
    }

    /// Says what empty lines are from here on, and counts those skipped anew.
    pub(super) fn set_empty_lines(&mut self, empty_lines: EmptyLines) {
        self.empty_lines = empty_lines;
        self.skipped = 0;
    }

    /// Empty lines passed over since.
    pub(super) fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    /// How many bytes were read so far, and their CRC-32.
    pub(super) fn read_so_far(&self) -> (u64, u32) {
        (self.bytes, self.checksum.sum())
    }

    /// Goes to the next record; false at the end of the input.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool, RecordError> {
        loop {
            if self.find_record() {
                match self.scan()? {
                    Scan::Complete { next, lines } => {
                        self.start = next;
                        self.next_line = self.line + lines;
                        self.reduce_quotes();
                        return Ok(true);
                    }
                    Scan::Incomplete => {
                        assert!(!self.input_ended, "the end of the input ends its last record")
                    }
                }
            } else if self.input_ended {
                self.fields.clear();
                return Ok(false);
            }
            self.fill()?;
        }
    }

    /// The line the current record starts on, the first being 1.
    pub(super) fn line(&self) -> u64 {
        self.line
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

    /// Moves to the first byte of a record; false where there is none yet.
    #[inline]
    fn find_record(&mut self) -> bool {
        while self.start < self.end {
            if self.empty_lines == EmptyLines::Records {
                self.line = self.next_line;
                return true;
            }
            match self.buffer[self.start] {
                b'\n' => self.start += 1,
                b'\r' if self.start + 1 < self.end => {
                    self.start += 1 + usize::from(self.buffer[self.start + 1] == b'\n');
                }
                b'\r' if self.input_ended => self.start += 1,
                b'\r' => return false,
                _ => {
                    self.line = self.next_line;
                    return true;
                }
            }
            self.next_line += 1;
            self.skipped += 1;
        }
        false
    }

    /// Marks the fields of the record at `start`.
    #[inline]
    fn scan(&mut self) -> Result<Scan, RecordError> {
        self.fields.clear();
        self.escaped.clear();
        let mut lines = 0;
        let mut at = self.start;
        loop {
            let found = if at < self.end && self.buffer[at] == b'"' {
                self.scan_quoted(at, &mut lines)?
            } else {
                self.scan_plain(at)
            };
            let FieldEnd::At(end) = found else {
                return Ok(Scan::Incomplete);
            };
            at = end;
            if at == self.end {
                return Ok(Scan::Complete { next: at, lines });
            }
            match self.buffer[at] {
                b'\n' => {
                    return Ok(Scan::Complete { next: at + 1, lines: lines + 1 });
                }
                b'\r' => {
                    // Whether a line feed follows cannot be told yet.
                    if at + 1 == self.end && !self.input_ended {
                        return Ok(Scan::Incomplete);
                    }
                    let crlf = self.buffer[..self.end].get(at + 1) == Some(&b'\n');
                    return Ok(Scan::Complete { next: at + 1 + usize::from(crlf), lines: lines + 1 });
                }
                _ => at += 1,
            }
        }
    }

    /// Marks a field without quotes.
    #[inline]
    fn scan_plain(&mut self, start: usize) -> FieldEnd {
        let length = plain_length(&self.buffer[start..self.end], self.delimiter);
        let end = match length {
            Some(length) => start + length,
            None if self.input_ended => self.end,
            None => return FieldEnd::Beyond,
        };
        self.fields.push(Field { start, end });
        FieldEnd::At(end)
    }

    /// Marks a field whose opening quote is at `quote`, adding to `lines` the
    /// line breaks in it.
    fn scan_quoted(&mut self, quote: usize, lines: &mut u64) -> Result<FieldEnd, RecordError> {
        let quote_line = self.line + *lines;
        let mut escaped = false;
        let mut at = quote + 1;
        loop {
            match self.buffer[..self.end].get(at) {
                None if self.input_ended => {
                    return Err(RecordError::UnclosedQuote { line: self.line, quote_line });
                }
                None => return Ok(FieldEnd::Beyond),
                Some(b'\n') => *lines += 1,
                Some(b'"') => match self.buffer[..self.end].get(at + 1) {
                    Some(b'"') => {
                        escaped = true;
                        at += 1;
                    }
                    None if !self.input_ended => return Ok(FieldEnd::Beyond),
                    _ => break,
                },
                Some(_) => {}
            }
            at += 1;
        }
        let next = self.buffer[..self.end].get(at + 1).copied();
        if next.is_some_and(|byte| byte != self.delimiter && byte != b'\n' && byte != b'\r') {
            let found = &self.buffer[quote..self.end.min(quote + 200)];
            return Err(RecordError::TextAfterQuote {
                line: self.line,
                field: self.fields.len(),
                found: String::from_utf8_lossy(found).into_owned(),
            });
        }
        if escaped {
            self.escaped.push(self.fields.len());
        }
        self.fields.push(Field { start: quote + 1, end: at });
        Ok(FieldEnd::At(at + 1))
    }

    /// Makes one quote of each two within the fields that hold them.
    #[inline]
    fn reduce_quotes(&mut self) {
        for &index in &self.escaped {
            let Field { start, end } = self.fields[index];
            let mut target = start;
            let mut source = start;
            while source < end {
                self.buffer[target] = self.buffer[source];
                source += 1 + usize::from(self.buffer[source] == b'"');
                target += 1;
            }
            self.fields[index].end = target;
        }
    }

    /// Reads more bytes behind those not yet given out.
    fn fill(&mut self) -> Result<(), RecordError> {
        debug_assert!(!self.input_ended);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= RECORD_BYTES_MAX {
                return Err(RecordError::TooLong { line: self.line });
            }
            self.buffer.resize(self.end * 2, 0);
        }
        while self.end < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.input_ended = true;
                    break;
                }
                Ok(count) => {
                    self.checksum.update(&self.buffer[self.end..self.end + count]);
                    self.bytes += count as u64;
                    self.end += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(RecordError::Read { line: self.next_line, source });
                }
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records")
            .field("line", &self.line)
            .field("delimiter", &self.delimiter)
            .finish_non_exhaustive()
    }
}

/// Bytes up to the first delimiter or line break, eight at a time: fields are
/// short and of all lengths, and a branch for each byte would be guessed wrong
/// once a field.
#[inline]
fn plain_length(bytes: &[u8], delimiter: u8) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Marks the first byte that is zero; above it marks may be false.
    let zeros = |word: u64| word.wrapping_sub(EACH) & !word & HIGH;
    let delimiters = EACH * u64::from(delimiter);
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ delimiters) | zeros(word ^ (EACH * 0x0A)) | zeros(word ^ (EACH * 0x0D));
        if found != 0 {
            return Some(8 * index + found.trailing_zeros() as usize / 8);
        }
    }
    let length = rest.iter().position(|byte| *byte == delimiter || *byte == b'\n' || *byte == b'\r')?;
    Some(8 * words.len() + length)
}

/// The delimiter the first line has most of outside quotes.
fn detect_delimiter(bytes: &[u8]) -> u8 {
    const CANDIDATES: [u8; 3] = [b',', b';', b'\t'];
    let mut counts = [0_usize; CANDIDATES.len()];
    let mut quoted = false;
    let first = bytes.iter().skip_while(|byte| matches!(byte, b'\n' | b'\r'));
    for byte in first {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => {
                if let Some(index) = CANDIDATES.iter().position(|candidate| candidate == byte) {
                    counts[index] += 1;
                }
            }
        }
    }
    let mut best = 0;
    for index in 1..CANDIDATES.len() {
        if counts[index] > counts[best] {
            best = index;
        }
    }
    CANDIDATES[best]
}

#[cfg(test)]
mod tests;
