//! Lines of a CSV file, in the form that [`CsvFile`](crate::CsvFile) reads.

/// Appends a line: delimiters between fields, quotes where needed (RFC 4180), a line feed.
pub fn append_line(fields: &mut dyn Iterator<Item = String>, delimiter: u8, out: &mut Vec<u8>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(delimiter);
        }
        if !field.bytes().any(|byte| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r')) {
            out.extend_from_slice(field.as_bytes());
            continue;
        }
        out.push(b'"');
        for byte in field.bytes() {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn another_reader_gives_the_fields_back(
            fields in proptest::collection::vec("[a,\"\n\r ;\t|é]{0,6}", 2..5),
            delimiter in proptest::sample::select(&b",;\t|"[..]),
        ) {
            let mut line = Vec::new();
            super::append_line(&mut fields.iter().cloned(), delimiter, &mut line);
            let mut reader = csv::ReaderBuilder::new();
            reader.has_headers(false).delimiter(delimiter);
            let mut reader = reader.from_reader(line.as_slice());
            let back: Vec<csv::StringRecord> = reader.records().map(|record| record.expect("a record")).collect();
            prop_assert_eq!(back.len(), 1);
            prop_assert_eq!(back[0].iter().map(str::to_string).collect::<Vec<_>>(), fields);
        }
    }
}
