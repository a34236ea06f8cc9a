//! Cuts the text of a file into pieces of whole records, which threads then read side by side.
//!
//! Where records end can be told without their fields: a line break ends one unless it
//! stands in quotes, and quotes count only at the start of a field. So a piece is read
//! up to its size, quotes are looked for (most files have few), and what lies behind the
//! last line break outside them is kept for the next piece. That, and the checksum of what
//! was read, is all that one thread does for the others.
//!
//! Limits: a record of more than 16 MiB ends the reading.

use flate2::Crc;
use std::io::{self, Read};

/// Bytes of a piece, but for the last one and for those of longer records.
pub(super) const PIECE_BYTES: usize = 512 * 1024;

/// Longest record. Nothing but an unclosed quote is longer than this, and a
/// row could not be kept.
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why there is no next piece.
#[derive(Debug)]
pub(super) enum PieceError {
    /// The bytes cannot be had.
    Read(io::Error),
    /// A record of more than 16 MiB.
    TooLong,
}

/// The pieces of an input, from the first to the last.
pub(super) struct Pieces {
    input: Box<dyn Read + Send>,
    delimiter: u8,
    piece_bytes: usize,
    /// Read, and behind the last piece.
    rest: Vec<u8>,
    /// Whether the input has no more bytes.
    ended: bool,
    /// Why it has none; said when what was read before has been given out.
    failed: Option<io::Error>,
    /// How many bytes it gave, and their checksum.
    bytes: u64,
    checksum: Crc,
}

impl Pieces {
    /// Pieces of about so many bytes; without a delimiter, takes it from the first, and fails where that does not tell.
    pub(super) fn new(
        input: Box<dyn Read + Send>,
        delimiter: Option<u8>,
        piece_bytes: usize,
    ) -> Result<Pieces, Ambiguous> {
        let mut pieces = Pieces {
            input,
            delimiter: b',',
            piece_bytes,
            rest: Vec::new(),
            ended: false,
            failed: None,
            bytes: 0,
            checksum: Crc::new(),
        };
        let mut first = Vec::new();
        pieces.read(&mut first, piece_bytes);
        pieces.delimiter = delimiter.map_or_else(|| detect_delimiter(&first), Ok)?;
        pieces.rest = first;
        Ok(pieces)
    }

    /// What stands between two fields.
    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// How many bytes were read so far, and their CRC-32.
    pub(super) fn read_so_far(&self) -> (u64, u32) {
        (self.bytes, self.checksum.sum())
    }

    /// Replaces `piece` by the next one; false, and nothing in it, behind the last.
    pub(super) fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, PieceError> {
        piece.clear();
        piece.append(&mut self.rest);
        let mut wanted = self.piece_bytes;
        while !self.ended {
            self.read(piece, wanted);
            match last_record_end(piece, self.delimiter) {
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
            piece.truncate(last_record_end(piece, self.delimiter).unwrap_or(0));
        }
        match self.failed.take_if(|_| piece.is_empty()) {
            Some(error) => Err(PieceError::Read(error)),
            None => Ok(!piece.is_empty()),
        }
    }

    /// Reads until there are so many bytes, or no more.
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
        f.debug_struct("Pieces").field("delimiter", &self.delimiter).finish_non_exhaustive()
    }
}

/// Where the last record ends that surely does; `bytes` start with a record.
fn last_record_end(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let mut end = None;
    // From here on there was no quoted field.
    let mut plain = 0;
    let mut at = 0;
    while let Some(quote) = find(bytes, at, b'"') {
        at = quote + 1;
        if quote > 0 && ![delimiter, b'\n', b'\r'].contains(&bytes[quote - 1]) {
            continue;
        }
        end = last_break(bytes, plain, quote).or(end);
        loop {
            let closing = find(bytes, at, b'"');
            // Of a quote behind all others it cannot be told whether it is doubled.
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
    last_break(bytes, plain, bytes.len()).or(end)
}

/// The end of the last line break in a part of the bytes. A CR behind all else may be
/// the first half of one.
fn last_break(bytes: &[u8], from: usize, to: usize) -> Option<usize> {
    let to = to - usize::from(to == bytes.len() && bytes.ends_with(b"\r"));
    let last = bytes[from..to.max(from)].iter().rposition(|byte| matches!(byte, b'\n' | b'\r'))?;
    Some(from + last + 1)
}

/// Where a byte comes first, looking from a place on: 32 at a time, which is a few
/// vector instructions.
fn find(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let (blocks, _) = rest.as_chunks::<32>();
    let holds = |block: &[u8; 32]| block.iter().fold(false, |any, byte| any | (*byte == wanted));
    let passed = 32 * blocks.iter().take_while(|block| !holds(block)).count();
    let place = rest[passed..].iter().position(|byte| *byte == wanted)?;
    Some(from + passed + place)
}

/// What a header may have between two fields, unless it is given.
const CANDIDATES: [(u8, &str); 4] = [(b',', "comma"), (b';', "semicolon"), (b'\t', "tab"), (b'|', "|")];
/// Lines below the header that are looked at when it has several of them.
const LINES_LOOKED_AT: usize = 20;

/// A header that has several delimiters, and what it has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ambiguous(pub(super) String);

/// The only candidate of the header, or the only one that the lines below it have as often.
fn detect_delimiter(bytes: &[u8]) -> Result<u8, Ambiguous> {
    let mut lines = counted_lines(bytes);
    let Some(header) = lines.next() else { return Ok(b',') };
    let found: Vec<usize> = (0..CANDIDATES.len()).filter(|index| header[*index] > 0).collect();
    if let [] | [_] = found[..] {
        return Ok(found.first().map_or(b',', |index| CANDIDATES[*index].0));
    }
    let below: Vec<_> = lines.take(LINES_LOOKED_AT).collect();
    let agree = |index: &usize| !below.is_empty() && below.iter().all(|line| line[*index] == header[*index]);
    let agreeing: Vec<usize> = found.iter().copied().filter(agree).collect();
    if let [only] = agreeing[..] {
        return Ok(CANDIDATES[only].0);
    }
    let counts = found.iter().map(|index| {
        let (name, count) = (CANDIDATES[*index].1, header[*index]);
        format!("{count} {name}{}", if count > 1 && name.len() > 1 { "s" } else { "" })
    });
    Err(Ambiguous(counts.collect::<Vec<_>>().join(" and ")))
}

/// How often each line has each candidate outside quotes; empty lines, and one that does not end, are left out.
fn counted_lines(bytes: &[u8]) -> impl Iterator<Item = [usize; CANDIDATES.len()]> {
    let mut rest = bytes.iter();
    std::iter::from_fn(move || {
        let (mut counts, mut quoted, mut empty) = ([0; CANDIDATES.len()], false, true);
        loop {
            let byte = rest.next();
            match byte {
                None | Some(b'\n' | b'\r') if !quoted => {
                    if !empty {
                        return Some(counts);
                    }
                    byte?;
                }
                None => return None,
                Some(byte) => {
                    empty = false;
                    quoted ^= *byte == b'"';
                    let candidate = CANDIDATES.iter().position(|(candidate, _)| candidate == byte);
                    if let Some(index) = candidate.filter(|_| !quoted) {
                        counts[index] += 1;
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_found_in_the_header() {
        let found = |text: &str| detect_delimiter(text.as_bytes());
        for (text, delimiter) in [
            ("a;b", b';'),
            ("a\tb\n", b'\t'),
            ("id|name\n1|x", b'|'),
            ("\"a,b,c\";d", b';'),
            ("\na;b;c,d\n1;2;3,4\n1;2;3\n", b';'),
            ("name, first\tage\nx\t1\n", b'\t'),
            ("a", b','),
            ("", b','),
        ] {
            assert_eq!(found(text), Ok(delimiter), "{text:?}");
        }
        let unclear = |text: &str| found(text).expect_err("unclear").0;
        assert_eq!(unclear("a,b;c,d\n;;;;;"), "2 commas and 1 semicolon");
        assert_eq!(unclear("a|b,c"), "1 comma and 1 |");
        assert_eq!(unclear("a;b,c\n1;2,3\n"), "1 comma and 1 semicolon");
    }

    #[test]
    fn records_end_at_line_breaks_outside_quotes() {
        for (text, end) in [
            ("a,b", None),
            ("a,b\n", Some(4)),
            ("a\nb", Some(2)),
            ("a\r", None),
            ("a\r\n", Some(3)),
            ("a\rb", Some(2)),
            ("a\rb\r", Some(2)),
            ("a\n\"b\nc", Some(2)),
            ("a\n\"b\nc\"", Some(2)),
            ("a\n\"b\nc\"\n", Some(8)),
            ("a\n\"b\n\"\"\nc", Some(2)),
            ("x,\"b\n\"\n1,\"\n", Some(7)),
            ("5\" pipe\n6\"\n", Some(11)),
            ("\"\n", None),
        ] {
            assert_eq!(last_record_end(text.as_bytes(), b','), end, "{text:?}");
        }
    }
}
