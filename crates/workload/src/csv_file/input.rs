//! Opens a file, plain or compressed.

use super::CsvError;
use super::error::is_of_gzip;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
const UTF8_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
const UTF16_MARKS: [[u8; 2]; 2] = [[0xFF, 0xFE], [0xFE, 0xFF]];

/// The text of a file whose bytes lie here, decompressed where it is gzip, without a byte order
/// mark.
///
/// Fails where it cannot be read and where it is UTF-16.
pub(super) fn open(path: &Path, bytes: &Path) -> Result<Box<dyn Read + Send>, CsvError> {
    let unreadable = |source| CsvError::Open { path: path.to_owned(), source };
    let mut file = File::open(bytes).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(CsvError::NoFile { path: path.to_owned() });
    }
    let head = head(&mut file, GZIP_MAGIC.len()).map_err(unreadable)?;
    let whole = Cursor::new(head.clone()).chain(file);
    let mut text: Box<dyn Read + Send> =
        if head == GZIP_MAGIC { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    let mut head = self::head(&mut text, UTF8_MARK.len()).map_err(|source| match is_of_gzip(&source) {
        true => CsvError::DamagedGzip { path: path.to_owned(), line: 1, source },
        false => unreadable(source),
    })?;
    if UTF16_MARKS.iter().any(|mark| head.starts_with(mark)) {
        return Err(CsvError::Utf16 { path: path.to_owned() });
    }
    if head == UTF8_MARK {
        head.clear();
    }
    Ok(Box::new(Cursor::new(head).chain(text)))
}

/// The first `count` bytes, or fewer where there are no more.
fn head(input: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(count);
    input.take(count as u64).read_to_end(&mut head)?;
    Ok(head)
}
