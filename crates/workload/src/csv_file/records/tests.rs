//! The splitter of records against the csv crate.

use super::*;
use crate::csv_file::dialect::Quote;
use crate::csv_file::pieces::RECORD_BYTES_MAX;
use proptest::prelude::*;
use std::io::Read;

/// Returns a few bytes at a time, so that every seam is tested.
struct Slow {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Slow {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.step.min(target.len()).min(self.bytes.len() - self.at);
        target[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A record's line and its fields.
type Split = (u64, Vec<Vec<u8>>);

/// Records with their lines, in pieces of `buffer` bytes or whole records.
fn split(bytes: &[u8], buffer: usize) -> Result<Vec<Split>, RecordError> {
    split_by(bytes, buffer, Quote::Double)
}

fn split_by(bytes: &[u8], buffer: usize, quote: Quote) -> Result<Vec<Split>, RecordError> {
    let input = Box::new(Slow { bytes: bytes.to_vec(), at: 0, step: 3 });
    let mut pieces = Pieces::new(input, (Some(b','), quote), buffer).unwrap();
    // A first piece as short as these is ambiguous.
    pieces.take_for(Dialect::of(bytes, Some(b','), quote).unwrap());
    let mut records = Records::new(pieces.dialect(), EmptyLines::Skipped);
    let mut found = Vec::new();
    while records.advance_in(&mut pieces)? {
        assert_eq!(records.field_count(), records.fields().count());
        found.push((records.line(), records.fields().map(<[u8]>::to_vec).collect()));
    }
    Ok(found)
}

fn check(text: &str, expect: &str) {
    for buffer in [1, 2, 5, 1000] {
        let found = match split(text.as_bytes(), buffer) {
            Ok(records) => records
                .iter()
                .map(|(line, fields)| {
                    let fields: Vec<_> = fields.iter().map(|field| String::from_utf8_lossy(field)).collect();
                    format!("{line}:{}", fields.join("|"))
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(found, expect, "{text:?} with a buffer of {buffer}");
    }
}

#[test]
fn lines_end_in_three_ways() {
    check("a,b\nc,d\n", "1:a|b 2:c|d");
    check("a,b\r\nc,d\r\n", "1:a|b 2:c|d");
    check("a,b\rc,d\r", "1:a|b 2:c|d");
    check("a,b\nc,d", "1:a|b 2:c|d");
    check("a,b\r\nc,d", "1:a|b 2:c|d");
    check("", "");
    check("\n\r\n\n", "");
}

#[test]
fn a_cr_is_text_unless_lines_end_in_it() {
    check("a,b\n1,x\ry\n2,z\n", "1:a|b 2:1|x\ry 3:2|z");
    check("a\rb,c\r\n1,2\r\n", "1:a\rb|c 2:1|2");
    check("a,b\r\r\n1,2\r\r\n\r\r\n3,\"4\"\r\r\n", "1:a|b 2:1|2 4:3|4");
    check("a,\"b\r\"\r\n1,\r\n", "1:a|b\r 2:1|");
    check("a,\"b\nc\"\r1,2\r\r3,4", "1:a|b\nc 3:1|2 5:3|4");
    let error = split(b"a\n\"x\"\ry\n", 1000).unwrap_err();
    assert!(matches!(error, RecordError::TextAfterQuote { line: 2, field: 0, .. }), "{error:?}");
}

#[test]
fn without_quoting_quotes_are_text() {
    for buffer in [1, 5, 1000] {
        let found = split_by(b"\"a,b\n\"\"\"c\" d,e\"\n", buffer, Quote::None).unwrap();
        let fields = |line: [&str; 2]| line.map(|field| field.as_bytes().to_vec()).to_vec();
        assert_eq!(found, [(1, fields(["\"a", "b"])), (2, fields(["\"\"\"c\" d", "e\""]))]);
    }
}

#[test]
fn empty_fields_count_and_empty_lines_do_not() {
    check("a,\n\n\r\n,\nb", "1:a| 4:| 5:b");
    check(",,", "1:||");
    check("\"\"\n\"\",\"\"", "1: 2:|");
}

#[test]
fn empty_lines_are_counted_or_are_records() {
    let piece = |text: &'static str| {
        let mut pieces = Pieces::new(Box::new(io::Cursor::new(text)), (None, Quote::Double), 1000).unwrap();
        let mut records = Records::new(pieces.dialect(), EmptyLines::Skipped);
        records.refill(&mut pieces).unwrap();
        records
    };
    let mut records = piece("\n\nh\n\r\n1\r\n\n2\n\n");
    assert!(records.advance().unwrap());
    records.begin_here(EmptyLines::Skipped);
    assert!(records.advance().unwrap() && records.advance().unwrap());
    assert_eq!(records.skipped_lines(), 2);
    assert!(!records.advance().unwrap());
    assert_eq!(records.skipped_lines(), 3);

    let mut records = piece("h\n\n1\r\n\r\n\n2\n\n");
    assert!(records.advance().unwrap());
    records.begin_here(EmptyLines::Records);
    let mut found = Vec::new();
    while records.advance().unwrap() {
        assert_eq!(records.field_count(), 1);
        found.push((records.line(), String::from_utf8_lossy(records.field(0)).into_owned()));
    }
    let expected = [(2, ""), (3, "1"), (4, ""), (5, ""), (6, "2"), (7, "")];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_string())));
    assert_eq!(records.skipped_lines(), 0);
}

#[test]
fn quotes_hold_delimiters_line_breaks_and_quotes() {
    check("\"a,b\",c\n", "1:a,b|c");
    check("\"a \"\"b\"\"\",\"\"\"\"\nx", "1:a \"b\"|\" 2:x");
    check("\"a\nb\",\"c\r\nd\"\r\nx,y\n", "1:a\nb|c\r\nd 4:x|y");
    check("5\" pipe,a\"b\"\n", "1:5\" pipe|a\"b\"");
}

#[test]
fn broken_quotes_are_errors() {
    check("a\nb,\"c\nd\n", "UnclosedQuote { line: 2, quote_line: 2 }");
    check("a\n\"b\nc\",\"d\n", "UnclosedQuote { line: 2, quote_line: 3 }");
    let error = split(b"a\nb,\"c\"d\n", 1000).unwrap_err();
    assert!(matches!(error, RecordError::TextAfterQuote { line: 2, field: 1, .. }), "{error:?}");
}

#[test]
fn a_record_has_an_end() {
    let mut bytes = vec![b'x'; RECORD_BYTES_MAX + 10];
    bytes[..4].copy_from_slice(b"a\n\"b");
    let mut pieces = Pieces::new(Box::new(io::Cursor::new(bytes)), (None, Quote::Double), 1000).unwrap();
    let mut records = Records::new(pieces.dialect(), EmptyLines::Skipped);
    assert!(records.advance_in(&mut pieces).unwrap());
    let error = records.advance_in(&mut pieces).unwrap_err();
    assert!(matches!(error, RecordError::TooLong { line: 2 }), "{error:?}");
}

proptest! {
    #[test]
    fn what_the_csv_crate_writes_is_read(
        records in proptest::collection::vec(proptest::collection::vec("[a-c,\"\r\n é]{0,6}", 1..5), 0..8),
        crlf: bool, always: bool, buffer in 1_usize..20,
    ) {
        let mut writer = csv::WriterBuilder::new();
        writer.flexible(true);
        writer.terminator(if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') });
        writer.quote_style(if always { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary });
        let mut writer = writer.from_writer(Vec::new());
        for record in &records {
            writer.write_record(record).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let found: Vec<Vec<Vec<u8>>> = split(&bytes, buffer).unwrap().into_iter().map(|(_, fields)| fields).collect();
        let written: Vec<Vec<Vec<u8>>> =
            records.iter().map(|record| record.iter().map(|field| field.clone().into_bytes()).collect()).collect();
        prop_assert_eq!(found, written);
    }

    #[test]
    fn any_text_is_read_as_the_csv_crate_reads_it_or_refused(
        text in "[ab,\"\n]{0,30}", line_end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        buffer in 1_usize..20,
    ) {
        // A CR among LFs is text here, and a line end in the csv crate.
        let text = text.replace('\n', line_end);
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.has_headers(false).flexible(true).from_reader(text.as_bytes());
        let expected: Vec<Vec<Vec<u8>>> =
            reader.byte_records().map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect()).collect();
        if let Ok(found) = split(text.as_bytes(), buffer) {
            // The line numbers have no counterpart in the csv crate.
            let found: Vec<Vec<Vec<u8>>> = found.into_iter().map(|(_, fields)| fields).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
