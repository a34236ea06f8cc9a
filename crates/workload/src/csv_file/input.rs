//! Opens a file, plain or compressed.

use super::CsvError;
use super::error::{BehindGzip, is_of_gzip};
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
const UTF8_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
const UTF16_MARKS: [[u8; 2]; 2] = [[0xFF, 0xFE], [0xFE, 0xFF]];
/// Bytes of the text that show its encoding.
const HEAD_BYTES: usize = 8;
/// Compressed bytes to read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Bytes after gzip data that a message shows.
const SHOWN_BYTES: usize = 40;

/// Opens the text of a file whose content is at `bytes`, decompressed if it is
/// gzip, without byte order marks.
///
/// Fails if it cannot be read or is UTF-16.
pub(super) fn open(path: &Path, bytes: &Path) -> Result<Box<dyn Read + Send>, CsvError> {
    let unreadable = |source| CsvError::Open { path: path.to_owned(), source };
    let mut file = File::open(bytes).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(CsvError::NoFile { path: path.to_owned() });
    }
    let head = head(&mut file, GZIP_MAGIC.len()).map_err(unreadable)?;
    let whole = Cursor::new(head.clone()).chain(file);
    let mut text: Box<dyn Read + Send> =
        if head == GZIP_MAGIC { Box::new(Members::new(whole)) } else { Box::new(whole) };
    let mut head = self::head(&mut text, HEAD_BYTES).map_err(|source| match is_of_gzip(&source) {
        true => CsvError::of_gzip(path.to_owned(), 1, source),
        false => unreadable(source),
    })?;
    if let Some(form) = utf16(&head) {
        return Err(CsvError::Utf16 { path: path.to_owned(), form });
    }
    // Two marks, because programs concatenate files that each have one.
    while head.starts_with(&UTF8_MARK) {
        head.drain(..UTF8_MARK.len());
        let missing = HEAD_BYTES - head.len();
        head.extend(self::head(&mut text, missing).map_err(unreadable)?);
    }
    Ok(Box::new(Cursor::new(head).chain(text)))
}

/// Returns the name of UTF-16 if a text begins with it: with its mark, or with a zero in every
/// second byte of an ASCII header.
fn utf16(head: &[u8]) -> Option<&'static str> {
    if UTF16_MARKS.iter().any(|mark| head.starts_with(mark)) {
        return Some("UTF-16");
    }
    let (pairs, _) = head.as_chunks::<2>();
    let all = |low: usize| pairs.len() > 1 && pairs.iter().all(|pair| pair[low] != 0 && pair[1 - low] == 0);
    if all(0) { Some("UTF-16LE") } else { all(1).then_some("UTF-16BE") }
}

/// Reads the first `count` bytes, or fewer at the end.
fn head(input: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(count);
    input.take(count as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Text of consecutive gzip members, possibly followed by zeros, with which tapes
/// and block devices pad files.
///
/// Why not `MultiGzDecoder`: it reads padding as a damaged member.
struct Members<R: Read> {
    /// None after the last member.
    member: Option<GzDecoder<BufReader<R>>>,
}

impl<R: Read> Members<R> {
    fn new(input: R) -> Members<R> {
        Members { member: Some(GzDecoder::new(BufReader::with_capacity(READ_BYTES, input))) }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(target)?;
            if count > 0 || target.is_empty() {
                return Ok(count);
            }
            let Some(ended) = self.member.take() else { break };
            let mut input = ended.into_inner();
            match first_nonzero(&mut input)? {
                None => {}
                Some(byte) if byte == GZIP_MAGIC[0] => self.member = Some(GzDecoder::new(input)),
                Some(_) => {
                    let behind = head(&mut input, SHOWN_BYTES)?;
                    return Err(io::Error::new(ErrorKind::InvalidData, BehindGzip(behind)));
                }
            }
        }
        Ok(0)
    }
}

/// Skips zeros; returns the byte after them without consuming it.
fn first_nonzero(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let next = bytes.get(zeros).copied();
        input.consume(zeros);
        if next.is_some() {
            return Ok(next);
        }
    }
}
