//! Cuts the text of a file into pieces of whole records, which threads then parse in parallel.
//!
//! The ends of records are found without their fields. A line break ends a record unless it is
//! inside quotes, and quotes count only at the start of a field ([`dialect`](super::dialect)). So a
//! piece is read up to its size and searched for quotes, of which most files have few. The bytes
//! after the last line break outside quotes are kept for the next piece. That, and the checksum of
//! the bytes, is all that one thread does for the others.
//!
//! Limits: a record of more than 16 MiB is an error.

use super::dialect::{Ambiguous, Dialect, LineEnd, Quote, named_delimiter};
use flate2::Crc;
use std::io::{self, Read};

/// Bytes of a piece, except the last one and those with longer records.
pub(super) const PIECE_BYTES: usize = 512 * 1024;

/// Longest record in bytes: only an unclosed quote is longer, and a row could not hold it.
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reason for which there is no next piece.
#[derive(Debug)]
pub(super) enum PieceError {
    /// The bytes cannot be read.
    Read(io::Error),
    /// A record exceeds 16 MiB.
    TooLong,
}

/// The pieces of an input, from first to last.
pub(super) struct Pieces {
    input: Box<dyn Read + Send>,
    dialect: Dialect,
    /// Lines before the first record: one that names the delimiter.
    lines_before: u64,
    piece_bytes: usize,
    /// Bytes already read that belong to the next piece.
    rest: Vec<u8>,
    /// True if the input has no more bytes.
    ended: bool,
    /// Error that ended it; reported after the bytes read before it.
    failed: Option<io::Error>,
    /// Number of bytes read, and their checksum.
    bytes: u64,
    checksum: Crc,
}

impl Pieces {
    /// Cuts pieces of about `piece_bytes`. Without a given delimiter, finds it in the first piece,
    /// and fails if that is ambiguous.
    pub(super) fn new(
        input: Box<dyn Read + Send>,
        (delimiter, quote): (Option<u8>, Quote),
        piece_bytes: usize,
    ) -> Result<Pieces, Ambiguous> {
        let mut pieces = Pieces {
            input,
            dialect: Dialect { delimiter: b',', quote, line_end: LineEnd::Lf },
            lines_before: 0,
            piece_bytes,
            rest: Vec::new(),
            ended: false,
            failed: None,
            bytes: 0,
            checksum: Crc::new(),
        };
        let mut first = Vec::new();
        pieces.read(&mut first, piece_bytes);
        let named = named_delimiter(&first);
        if let Some((_, line_bytes)) = named {
            first.drain(..line_bytes);
            pieces.lines_before = 1;
        }
        let delimiter = delimiter.or(named.map(|(delimiter, _)| delimiter));
        pieces.dialect = Dialect::of(&first, delimiter, quote)?;
        pieces.rest = first;
        Ok(pieces)
    }

    /// Returns the dialect of the file.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Replaces the dialect that the first bytes showed.
    #[cfg(test)]
    pub(super) fn take_for(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    /// Returns the line of the first record, the first of the file being 1.
    pub(super) fn first_line(&self) -> u64 {
        1 + self.lines_before
    }

    /// Returns the number of bytes read so far, and their CRC-32.
    pub(super) fn read_so_far(&self) -> (u64, u32) {
        (self.bytes, self.checksum.sum())
    }

    /// Replaces `piece` by the next one; false, with an empty piece, after the last.
    pub(super) fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, PieceError> {
        piece.clear();
        piece.append(&mut self.rest);
        let mut wanted = self.piece_bytes;
        while !self.ended {
            self.read(piece, wanted);
            match last_record_end(piece, self.dialect) {
                _ if self.ended => {}
                Some(end) => {
                    self.rest.extend_from_slice(&piece[end..]);
                    piece.truncate(end);
                    return Ok(true);
                }
                None if piece.len() >= RECORD_BYTES_MAX => return Err(PieceError::TooLong),
                None => wanted = RECORD_BYTES_MAX.min(2 * piece.len()),
            }
        }
        if self.failed.is_some() {
            piece.truncate(last_record_end(piece, self.dialect).unwrap_or(0));
        }
        match self.failed.take_if(|_| piece.is_empty()) {
            Some(error) => Err(PieceError::Read(error)),
            None => Ok(!piece.is_empty()),
        }
    }

    /// Reads until the piece has `wanted` bytes, or the input ends.
    fn read(&mut self, piece: &mut Vec<u8>, wanted: usize) {
        let start = piece.len();
        let missing = wanted.saturating_sub(start);
        piece.reserve(missing);
        match self.input.by_ref().take(missing as u64).read_to_end(piece) {
            Ok(count) => self.ended = count < missing,
            Err(error) => (self.ended, self.failed) = (true, Some(error)),
        }
        self.checksum.update(&piece[start..]);
        self.bytes += (piece.len() - start) as u64;
    }
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

/// Returns the end of the last record that surely ends; `bytes` start with a record.
fn last_record_end(bytes: &[u8], dialect: Dialect) -> Option<usize> {
    let Dialect { delimiter, quote, line_end } = dialect;
    if quote == Quote::None {
        return last_break(bytes, (0, bytes.len()), line_end);
    }
    let mut end = None;
    // No quoted field so far from here on.
    let mut plain = 0;
    let mut at = 0;
    while let Some(quote) = find(bytes, at, b'"') {
        at = quote + 1;
        if quote > 0 && ![delimiter, line_end.byte()].contains(&bytes[quote - 1]) {
            continue;
        }
        end = last_break(bytes, (plain, quote), line_end).or(end);
        loop {
            let closing = find(bytes, at, b'"');
            // A quote at the very end may be the first of a doubled one.
            let Some((closing, next)) = closing.and_then(|at| Some((at, *bytes.get(at + 1)?))) else {
                return end;
            };
            at = closing + 1 + usize::from(next == b'"');
            if next != b'"' {
                break;
            }
        }
        plain = at;
    }
    last_break(bytes, (plain, bytes.len()), line_end).or(end)
}

/// Returns the end of the last line break in a part of the bytes.
fn last_break(bytes: &[u8], (from, to): (usize, usize), line_end: LineEnd) -> Option<usize> {
    let last = bytes[from..to].iter().rposition(|byte| *byte == line_end.byte())?;
    Some(from + last + 1)
}

/// Returns the first place of a byte from `from` on: 32 bytes at a time, which
/// is a few vector instructions.
fn find(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let (blocks, _) = rest.as_chunks::<32>();
    let holds = |block: &[u8; 32]| block.iter().fold(false, |any, byte| any | (*byte == wanted));
    let passed = 32 * blocks.iter().take_while(|block| !holds(block)).count();
    let place = rest[passed..].iter().position(|byte| *byte == wanted)?;
    Some(from + passed + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_end_at_line_breaks_outside_quotes() {
        for (text, end) in [
            ("a,b", None),
            ("a,b\n", Some(4)),
            ("a\nb", Some(2)),
            ("a\r", None),
            ("a\r\n", Some(3)),
            ("a\rb", None),
            ("a\rb\n\r", Some(4)),
            ("a\n\"b\nc", Some(2)),
            ("a\n\"b\nc\"", Some(2)),
            ("a\n\"b\nc\"\n", Some(8)),
            ("a\n\"b\n\"\"\nc", Some(2)),
            ("x,\"b\n\"\n1,\"\n", Some(7)),
            ("5\" pipe\n6\"\n", Some(11)),
            ("\"\n", None),
        ] {
            let dialect = Dialect { delimiter: b',', quote: Quote::Double, line_end: LineEnd::Lf };
            assert_eq!(last_record_end(text.as_bytes(), dialect), end, "{text:?}");
        }
        let cr = Dialect { delimiter: b',', quote: Quote::Double, line_end: LineEnd::Cr };
        assert_eq!(last_record_end(b"a\r\"b\rc\"\r1", cr), Some(8));
        let bare = Dialect { delimiter: b',', quote: Quote::None, line_end: LineEnd::Lf };
        assert_eq!(last_record_end(b"a\n\"b\nc", bare), Some(5));
    }
}
