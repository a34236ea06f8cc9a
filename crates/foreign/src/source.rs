//! Reads a foreign file as text with numbered lines.
//!
//! ```text
//! bytes ──[bound]──> bytes ──[encoding]──> text ──[line ends]──> lines, numbered from 1
//! ```
//!
//! The file may be hostile: only a regular file is read, and at most [`BYTES_MOST`] of it. Text
//! that is not UTF-8 is read as Latin-1, which has a letter for every byte, so that no encoding is
//! rejected. UTF-16 is recognised by its byte order mark.
//!
//! Line ends are LF, CR LF or CR. A form feed precedes a heading and becomes a blank. A NUL becomes
//! a blank, too, because tools pad their files with it.

use sha2::{Digest, Sha256};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Most bytes of a file. The largest report seen has 40 MB.
pub const BYTES_MOST: u64 = 64 << 20;

/// Most lines of a file, which are kept with their places.
pub const LINES_MOST: usize = 4_000_000;
/// The name of standard input.
pub const STDIN: &str = "-";

/// Reasons why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The file is missing, not regular, too long, or not readable.
    #[error("{} cannot be read: {why}", path.display())]
    Read {
        /// The file that was to be imported.
        path: PathBuf,
        /// The reason, without the file's name.
        why: String,
    },
    /// No part of the file is a known report.
    #[error(
        "{} has no report that is known: no line of {lines} begins one and no table has known columns; \
         `plumb help import` names the kinds",
        path.display()
    )]
    Unknown {
        /// The file that was to be imported.
        path: PathBuf,
        /// The number of its lines.
        lines: usize,
    },
    /// A document of this program, whose data is in its bundle.
    #[error("{} is {what} by plumb, and import reads reports of other programs; {cure}", path.display())]
    Own {
        /// The file that was to be imported.
        path: PathBuf,
        /// Kind of the document, with its article.
        what: &'static str,
        /// Command that takes it, or what it was made from.
        cure: &'static str,
    },
    /// A file of a known kind that is not read.
    #[error("{} is {what}, which import does not read; {instead}", path.display())]
    Kind {
        /// The file that was to be imported.
        path: PathBuf,
        /// Kind of the file, with its article.
        what: &'static str,
        /// The output of the same system that is read, or the command that takes the file.
        instead: &'static str,
    },
    /// A report of which no table was read.
    #[error(
        "{} has a report ({kind}) without a table that import knows: nothing of it was read; \
         `plumb help import` names the kinds",
        path.display()
    )]
    Nothing {
        /// The file that was to be imported.
        path: PathBuf,
        kind: String,
    },
    /// No part of the file is a plan of execution.
    #[error("{} has no plan{}", path.display(), no_plan(*seen))]
    NoPlan {
        /// The file with the plan.
        path: PathBuf,
        /// The form of plans that it has and that is not read.
        seen: Option<&'static str>,
    },
    /// No report and no plan is in a file that was to be copied.
    #[error(
        "{} has nothing that is understood, so that its copy would be empty; reports of `plumb import` \
         and plans of `plumb plans` are copied",
        path.display()
    )]
    NotUnderstood {
        /// The file that was to be copied.
        path: PathBuf,
    },
    /// A plan that cannot be used.
    #[error("{} line {line}: {why}", path.display())]
    Plan {
        /// The file with the plan.
        path: PathBuf,
        /// Line of the fault in the file, from 1.
        line: u32,
        /// Reason, without file and line.
        why: String,
    },
    /// The file has more lines than are kept.
    #[error("{} has more than {most} lines; cut the file into single reports", path.display())]
    TooManyLines {
        /// The file that was to be imported.
        path: PathBuf,
        /// The most that are kept.
        most: usize,
    },
    /// The file has too many reports, tables or cells.
    #[error("{} has more than {most} {what}; cut the file into single reports", path.display())]
    TooLarge {
        /// The file that was to be imported.
        path: PathBuf,
        /// The most that are kept.
        most: usize,
        /// The things of which there are too many.
        what: &'static str,
    },
}

fn no_plan(seen: Option<&str>) -> String {
    let other = seen.map_or(String::new(), |form| format!(" that is read: it is {form}"));
    format!(
        "{other}; read are EXPLAIN of PostgreSQL as text, JSON, YAML or XML, and tables of DBMS_XPLAN and SQL Monitor \
         with Id and Operation"
    )
}

/// A file as text with numbered lines.
#[derive(Debug)]
pub struct Source {
    /// The path, as given by the user.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    text: String,
    /// Offset in `text` of the start of each line.
    starts: Vec<usize>,
}

impl Source {
    /// Reads a file as text, whatever its encoding. Fails if it is no regular file, is longer than
    /// [`BYTES_MOST`], or cannot be read.
    pub fn read(path: &Path) -> Result<Source, ForeignError> {
        if path == Path::new(STDIN) {
            return Source::of_stdin(path);
        }
        match plumb_host::regular::read_regular(path, BYTES_MOST) {
            Ok(bytes) => Source::bounded(path, &bytes),
            Err(error) => Err(ForeignError::Read { path: path.to_path_buf(), why: error.to_string() }),
        }
    }

    /// Decodes the bytes of a file, which must not have more than [`LINES_MOST`] lines.
    pub fn bounded(path: &Path, bytes: &[u8]) -> Result<Source, ForeignError> {
        let ends = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
        // Of line ends by two letters both count.
        if ends > 2 * LINES_MOST {
            return Err(ForeignError::TooManyLines { path: path.to_path_buf(), most: LINES_MOST });
        }
        Ok(Source::of(path, bytes))
    }

    fn of_stdin(path: &Path) -> Result<Source, ForeignError> {
        let refused = |why: String| ForeignError::Read { path: path.to_path_buf(), why };
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().take(BYTES_MOST + 1).read_to_end(&mut bytes);
        read.map_err(|error| refused(error.to_string()))?;
        match bytes.len() as u64 {
            0 => Err(refused("standard input is empty; pipe a report into it".to_string())),
            length if length > BYTES_MOST => {
                Err(refused(format!("standard input has more than {BYTES_MOST} bytes; expected one report")))
            }
            _ => Source::bounded(path, &bytes),
        }
    }

    /// Decodes the bytes of a file.
    #[must_use]
    pub fn of(path: &Path, bytes: &[u8]) -> Source {
        let text = line_ends(decoded(bytes));
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts: Vec<usize> = std::iter::once(0).chain(ends).filter(|at| *at < text.len()).collect();
        let sha256 = plumb_units::hex(Sha256::digest(bytes).as_slice());
        Source { path: path.to_path_buf(), sha256, text, starts }
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True if it has no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the lines from `first` up to but without `end`, both counted from 0.
    #[must_use]
    pub fn part(&self, first: usize, end: usize) -> SourcePart<'_> {
        let at = |line: usize| self.starts.get(line).copied().unwrap_or(self.text.len());
        let (first, end) = (first.min(self.len()), end.clamp(first.min(self.len()), self.len()));
        SourcePart {
            text: &self.text[at(first)..at(end)],
            starts: &self.starts[first..end],
            first,
            source: self,
        }
    }
}

/// Consecutive lines of a source.
#[derive(Debug, Clone, Copy)]
pub struct SourcePart<'a> {
    /// The text of the lines, line ends included.
    pub text: &'a str,
    starts: &'a [usize],
    first: usize,
    source: &'a Source,
}

impl<'a> SourcePart<'a> {
    /// Returns the number of its first line in the file, from 1.
    #[must_use]
    pub fn first_line(&self) -> u32 {
        number(self.first)
    }

    /// Returns the lines without line ends and trailing blanks, each with its number in the file.
    pub fn lines(&self) -> impl Iterator<Item = (u32, &'a str)> + use<'a> {
        let first = self.first;
        self.text.lines().enumerate().map(move |(at, line)| (number(first + at), line.trim_end()))
    }

    /// Returns the lines after a line, which is given by its number in the file.
    #[must_use]
    pub fn behind(&self, line: u32) -> SourcePart<'a> {
        let count = (line as usize).saturating_sub(self.first).min(self.starts.len());
        let begin = self.starts.first().copied().unwrap_or(0);
        let at = self.starts.get(count).map_or(self.text.len(), |start| start - begin);
        let (text, starts) = (&self.text[at..], &self.starts[count..]);
        SourcePart { text, starts, first: self.first + count, source: self.source }
    }

    /// Returns the lines of the file above it, `count` at most.
    #[must_use]
    pub fn above(&self, count: usize) -> SourcePart<'a> {
        self.source.part(self.first.saturating_sub(count), self.first)
    }

    /// Returns the name of the file, without its directory.
    #[must_use]
    pub fn file_name(&self) -> &'a str {
        self.source.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the lines from the one with this byte of `text` on.
    #[must_use]
    pub fn from_byte(&self, byte: usize) -> SourcePart<'a> {
        SourcePart { text: &self.text[byte.min(self.text.len())..], starts: &[], ..*self }
    }

    /// Returns the number in the file of the line at this byte of `text`.
    #[must_use]
    pub fn line_of(&self, byte: usize) -> u32 {
        let Some(begin) = self.starts.first() else { return number(self.first) };
        let before = self.starts.partition_point(|start| start - begin <= byte);
        number(self.first + before.saturating_sub(1))
    }
}

/// A line's number in the file, from 1.
fn number(line: usize) -> u32 {
    u32::try_from(line + 1).unwrap_or(u32::MAX)
}

fn decoded(bytes: &[u8]) -> String {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
        char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8_or_latin1(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        bytes => utf8_or_latin1(bytes),
    }
}

fn utf8_or_latin1(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_string(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Returns the text with LF as the only line end, and blanks for form feeds and NULs.
fn line_ends(text: String) -> String {
    // Most files have none of these.
    if !text.bytes().any(|byte| matches!(byte, b'\r' | 0xC | 0)) {
        return text;
    }
    text.replace("\r\n", "\n").replace('\r', "\n").replace(['\u{c}', '\0'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(u32, String)> {
        let source = Source::of(Path::new("x"), bytes);
        source.part(0, source.len()).lines().map(|(number, line)| (number, line.to_string())).collect()
    }

    #[test]
    fn every_encoding_and_line_end_gives_the_same_lines() {
        let expected = vec![(1, "Größe".to_string()), (2, String::new()), (3, " 1".to_string())];
        let text = "Größe\r\n\r\x0c1  ";
        let utf16 = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        let latin1: Vec<u8> = text.chars().map(|letter| u8::try_from(letter).expect("Latin-1")).collect();
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        for bytes in [
            text.as_bytes().to_vec(),
            marked(&[0xEF, 0xBB, 0xBF], text.as_bytes()),
            marked(&[0xFF, 0xFE], &utf16(u16::to_le_bytes)),
            marked(&[0xFE, 0xFF], &utf16(u16::to_be_bytes)),
            latin1,
        ] {
            assert_eq!(lines(&bytes), expected);
        }
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn a_byte_of_a_part_leads_to_its_line_in_the_file() {
        let source = Source::of(Path::new("x"), b"a\nbb\n\nccc");
        let part = source.part(1, 4);
        let found: Vec<u32> = (0..part.text.len()).map(|byte| part.line_of(byte)).collect();
        assert_eq!(found, [2, 2, 2, 3, 4, 4, 4]);
        assert_eq!(part.first_line(), 2);
        assert_eq!(source.part(9, 12).text, "");
        let behind = |line: u32| (part.behind(line).first_line(), part.behind(line).text.to_string());
        assert_eq!(behind(1), (2, "bb\n\nccc".to_string()));
        assert_eq!(behind(3), (4, "ccc".to_string()));
        assert_eq!(behind(9), (5, String::new()));
    }

    #[test]
    fn a_file_that_is_too_long_is_one_line_of_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("long.html");
        std::fs::File::create(&path).and_then(|file| file.set_len(BYTES_MOST + 1)).expect("a long file");
        let refused = Source::read(&path).expect_err("refused").to_string();
        assert!(refused.contains("longer than 67108864 bytes"), "{refused}");
        assert!(!refused.contains('\n'));
    }
}
