//! Layout of a tracepoint's record, from its `format` file.
//!
//! ```text
//! ID: 836
//! format:
//!         field:unsigned short common_type;   offset:0;   size:2; signed:0;
//!         field:loff_t pos;                   offset:40;  size:8; signed:0;
//!         field:__data_loc char[] cmd;        offset:60;  size:4; signed:0;
//! ```
//!
//! Why not fixed structs: fields move between kernels, and `rwbs` of the block tracepoints grew
//! from 8 to 10 bytes. A field that a kernel lacks is an error of the tracepoint, never a wrong
//! value.

/// Layout of a tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    /// Number in the first two bytes of each record.
    pub id: u16,
    fields: Vec<(String, Slot)>,
}

/// Place of a field in a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    offset: usize,
    size: usize,
    is_signed: bool,
}

impl Format {
    /// Parses the text of a `format` file.
    /// The line that is not understood.
    pub fn parse(text: &str) -> Result<Format, String> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let id = number.and_then(|number| number.trim().parse().ok());
        let id = id.ok_or("it has no line \"ID: number\"")?;
        let fields = text.lines().filter_map(|line| line.trim().strip_prefix("field:"));
        let fields = fields.map(|line| field(line).ok_or_else(|| format!("field {line:?}")));
        Ok(Format { id, fields: fields.collect::<Result<_, _>>()? })
    }

    /// Returns the place of a field; none if this kernel lacks it.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }
}

fn field(line: &str) -> Option<(String, Slot)> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let number = |part: Option<&str>, name: &str| part?.strip_prefix(name)?.parse::<usize>().ok();
    let offset = number(parts.next(), "offset:")?;
    let size = number(parts.next(), "size:")?;
    let is_signed = number(parts.next(), "signed:")? == 1;
    // `char rwbs[10]` is named rwbs; `unsigned long args[6]` args.
    let name = declared.rsplit([' ', '*']).next()?.split('[').next()?;
    Some((name.to_string(), Slot { offset, size, is_signed }))
}

impl Slot {
    /// Reads a number; 0 if the record ends before it.
    pub fn number(self, record: &[u8]) -> u64 {
        let bytes = record.get(self.offset..self.offset + self.size.min(8)).unwrap_or_default();
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    /// Reads a number with its sign; 0 if the record ends before it.
    pub fn signed(self, record: &[u8]) -> i64 {
        let unused = 64 - 8 * self.size.clamp(1, 8) as u32;
        let word = self.number(record) << unused;
        if self.is_signed { (word as i64) >> unused } else { (word >> unused) as i64 }
    }

    /// Reads an array of characters up to its first zero.
    pub fn text(self, record: &[u8]) -> &[u8] {
        let bytes = record.get(self.offset..self.offset + self.size).unwrap_or_default();
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:12;\tsize:10;\tsigned:0;\n\
        \tfield:void * req;\toffset:24;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"%d\", REC->dev\n";

    #[test]
    fn fields_are_found_by_name_and_read_by_size_and_sign() {
        let format = Format::parse(ISSUE).expect("a format");
        assert_eq!(format.id, 2104);
        let slot = |name: &str| format.slot(name).unwrap_or_else(|| panic!("{name}"));
        let mut record = vec![0_u8; 32];
        record[4..8].copy_from_slice(&(-7_i32).to_le_bytes());
        record[8..12].copy_from_slice(&0xfe00_0001_u32.to_le_bytes());
        record[12..15].copy_from_slice(b"WFS");
        assert_eq!(slot("common_pid").signed(&record), -7);
        assert_eq!(slot("dev").signed(&record), 0xfe00_0001, "an unsigned field has no sign");
        assert_eq!(slot("rwbs").text(&record), b"WFS");
        assert_eq!(slot("req").number(&record), 0);
        assert_eq!(slot("req").number(&record[..26]), 0, "a record that is cut has no such field");
        assert_eq!(format.slot("sector"), None);
    }

    #[test]
    fn text_that_is_no_format_is_an_error() {
        assert!(Format::parse("").expect_err("empty").contains("ID"));
        let odd = ISSUE.replace("size:10", "size:ten");
        assert!(Format::parse(&odd).expect_err("odd").contains("rwbs"));
    }
}
