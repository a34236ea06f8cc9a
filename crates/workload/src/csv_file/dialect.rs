//! The dialect of a file: delimiter, meaning of quotes, and line end.
//!
//! One parser serves all: [`Pieces`](super::pieces::Pieces) cuts by it, [`Records`] splits by it,
//! and the delimiter is found by splitting the first lines with each candidate. So a quote within a
//! field (`size (")`) hides no delimiter from the search unless it also hides it from the reader.
//!
//! A line ends in LF, with any number of CRs before it, or in CR if the file has no LF
//! outside quotes. A CR elsewhere is a character of its field, because a line end there would
//! make two rows of one.

use super::records::{EmptyLines, Records};

/// Delimiter, quoting and line end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Quote,
    pub(super) line_end: LineEnd,
}

/// Quoting: characters that enclose delimiters and line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quote {
    /// `"` at the start of a field, doubled within it.
    #[default]
    Double,
    /// No quoting: `"` is an ordinary character.
    None,
}

/// Character that ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// LF, with or without CRs before it.
    Lf,
    /// CR, in a file without LF outside quotes.
    Cr,
}

impl LineEnd {
    pub(super) const fn byte(self) -> u8 {
        match self {
            LineEnd::Lf => b'\n',
            LineEnd::Cr => b'\r',
        }
    }

    /// Returns the line end of the first bytes of a file, outside quotes.
    fn of(bytes: &[u8], delimiters: &[u8], quote: Quote) -> LineEnd {
        let (mut quoted, mut before, mut has_cr) = (false, b'\n', false);
        for byte in bytes {
            let starts_field = matches!(before, b'\n' | b'\r') || delimiters.contains(&before);
            let was_quoted = quoted;
            match byte {
                b'"' if quoted || starts_field && quote == Quote::Double => quoted = !quoted,
                b'\n' if !quoted => return LineEnd::Lf,
                b'\r' if !quoted => has_cr = true,
                _ => {}
            }
            // After a closing quote a second quote continues the field.
            before = if was_quoted && !quoted { delimiters.first().copied().unwrap_or(b',') } else { *byte };
        }
        if has_cr { LineEnd::Cr } else { LineEnd::Lf }
    }
}

/// Delimiters to look for in a header, unless one is given.
const CANDIDATES: [(u8, &str); 4] = [(b',', "comma"), (b';', "semicolon"), (b'\t', "tab"), (b'|', "|")];
/// Lines below the header to compare, if the header has several candidates.
const LINES_LOOKED_AT: usize = 20;

/// A header with several delimiters, and the list of them for a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ambiguous(pub(super) String);

impl Dialect {
    /// Returns the dialect of a file that begins with these bytes; finds the
    /// delimiter if none is given.
    pub(super) fn of(bytes: &[u8], delimiter: Option<u8>, quote: Quote) -> Result<Dialect, Ambiguous> {
        let candidates = CANDIDATES.map(|(candidate, _)| candidate);
        let known = delimiter.map(|known| [known]);
        let line_end = LineEnd::of(bytes, known.as_ref().map_or(&candidates[..], |known| known), quote);
        let with = |delimiter| Dialect { delimiter, quote, line_end };
        match delimiter {
            Some(delimiter) => Ok(with(delimiter)),
            None => detect(bytes, with),
        }
    }
}

/// Returns the only candidate in the header, or the only one that occurs
/// equally often in each line.
fn detect(bytes: &[u8], with: impl Fn(u8) -> Dialect) -> Result<Dialect, Ambiguous> {
    let counts = CANDIDATES.map(|(candidate, _)| field_counts(bytes, with(candidate)));
    let separators = |counts: &[usize]| counts.first().map_or(0, |fields| fields - 1);
    let found: Vec<usize> = (0..CANDIDATES.len()).filter(|index| separators(&counts[*index]) > 0).collect();
    let agree = |index: &usize| {
        let counts = &counts[*index];
        counts.len() > 1 && counts.iter().all(|fields| *fields == counts[0])
    };
    let agreeing: Vec<usize> = found.iter().copied().filter(agree).collect();
    match (&found[..], &agreeing[..]) {
        ([], _) => Ok(with(b',')),
        ([only], _) | (_, [only]) => Ok(with(CANDIDATES[*only].0)),
        _ => {
            let shown = found.iter().map(|index| {
                let (name, count) = (CANDIDATES[*index].1, separators(&counts[*index]));
                format!("{count} {name}{}", if count > 1 && name.len() > 1 { "s" } else { "" })
            });
            Err(Ambiguous(shown.collect::<Vec<_>>().join(" and ")))
        }
    }
}

/// Returns the number of fields of the header and of the lines below it, up to the first
/// line that violates the quoting.
fn field_counts(bytes: &[u8], dialect: Dialect) -> Vec<usize> {
    let mut records = Records::of(bytes, dialect, EmptyLines::Skipped);
    let mut counts = Vec::new();
    while counts.len() <= LINES_LOOKED_AT {
        match records.advance() {
            Ok(true) => counts.push(records.field_count()),
            Ok(false) => break,
            Err(_) => {
                // Zero matches no line, so this candidate does not agree.
                counts.push(0);
                break;
            }
        }
    }
    if counts.first() == Some(&0) { Vec::new() } else { counts }
}

/// Returns the delimiter that a first line names, as in `sep=;`, and the length of that line.
pub(super) fn named_delimiter(bytes: &[u8]) -> Option<(u8, usize)> {
    let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    let line =
        bytes[..end].strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(&bytes[..end]);
    let (word, [delimiter]) = line.split_at_checked(4)? else { return None };
    if !word.eq_ignore_ascii_case(b"sep=") || !delimiter.is_ascii() || *delimiter == b'"' {
        return None;
    }
    let crs = bytes[end..].iter().take_while(|byte| **byte == b'\r').count();
    let behind = if bytes.get(end + crs) == Some(&b'\n') { end + crs + 1 } else { end + 1 };
    Some((*delimiter, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_found_in_the_header() {
        let found =
            |text: &str| Dialect::of(text.as_bytes(), None, Quote::Double).map(|dialect| dialect.delimiter);
        for (text, delimiter) in [
            ("a;b", b';'),
            ("a\tb\n", b'\t'),
            ("id|name\n1|x", b'|'),
            ("\"a,b,c\";d", b';'),
            ("\na;b;c,d\n1;2;3,4\n1;2;3\n", b';'),
            ("name, first\tage\nx\t1\n", b'\t'),
            ("id\tsize (\")\tname\n1\t5\tx, y\n", b'\t'),
            ("id;size (\");name\n", b';'),
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
    fn lines_end_in_lf_unless_there_is_none_outside_quotes() {
        let found = |text: &str| LineEnd::of(text.as_bytes(), b",;", Quote::Double);
        for (text, line_end) in [
            ("a\nb", LineEnd::Lf),
            ("a\rb\n", LineEnd::Lf),
            ("a\r\n", LineEnd::Lf),
            ("a\rb\r", LineEnd::Cr),
            ("a,\"x\ny\"\r1,2\r", LineEnd::Cr),
            ("a,\"x \"\"\ny\"\"\"\r", LineEnd::Cr),
            ("5\" pipe\n", LineEnd::Lf),
            ("a\"\"\"\"\r\"", LineEnd::Cr),
            ("a,\"b\"\"\rc\"\n1\r", LineEnd::Lf),
            ("a", LineEnd::Lf),
        ] {
            assert_eq!(found(text), line_end, "{text:?}");
        }
        assert_eq!(LineEnd::of(b"\"a\nb\r", b",", Quote::None), LineEnd::Lf);
    }

    #[test]
    fn a_first_line_may_name_the_delimiter() {
        for (text, found) in [
            ("sep=;\na;b\n", Some((b';', 6))),
            ("SEP=\t\r\na", Some((b'\t', 7))),
            ("\"sep=|\"\ra", Some((b'|', 8))),
            ("sep=;;\n", None),
            ("sep=\n", None),
            ("sep=;", None),
            ("separator\n", None),
            ("sep=\u{e9}\n", None),
        ] {
            assert_eq!(named_delimiter(text.as_bytes()), found, "{text:?}");
        }
    }
}
