//! Domains: the values that a setting or a parameter of a workload takes.

use crate::{BlockSize, Bytes, parse_count, parse_size};

/// A way to write a value, and the values that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// A size in bytes within a range, both ends included; K, M and G are powers of 1024.
    Size(u64, u64),
    /// A size in bytes within a range that is a power of two.
    PowerOfTwo(u64, u64),
    /// A whole number within a range, both ends included; K, M and G are powers of 1000.
    Count(u64, u64),
    /// `auto`, or a whole number within a range.
    AutoOrCount(u64, u64),
    /// One of these words, in any case.
    Word(&'static [&'static str]),
    /// One of the block sizes.
    BlockSize,
    /// A path, or nothing.
    Path,
    /// Blocks from this number on, or bytes where K, M, G, T or P follows.
    Blocks(u64),
    /// A time; a number without a unit is of seconds.
    Time,
    /// A text of one line with at most this many bytes; it may be empty.
    Text(usize),
}

impl Domain {
    /// A whole number from this one on.
    pub const fn count_from(least: u64) -> Domain {
        Domain::Count(least, u64::MAX)
    }

    /// A size in bytes from this one on.
    pub const fn size_from(least: u64) -> Domain {
        Domain::Size(least, u64::MAX)
    }

    /// Describes the values as the end of a sentence.
    pub fn describe(self) -> String {
        let size = |bytes: u64| Bytes(bytes).as_setting();
        match self {
            Domain::Size(least, most) => format!("a size from {} to {}", size(least), size(most)),
            Domain::PowerOfTwo(least, most) => {
                format!("a power of two from {} to {}", size(least), size(most))
            }
            Domain::Count(least, most) => format!("a number from {least} to {most}"),
            Domain::AutoOrCount(least, most) => format!("auto, or a number from {least} to {most}"),
            Domain::Word(words) => format!("one of {}", words.join(", ")),
            Domain::BlockSize => "one of 2K, 4K, 8K, 16K, 32K".to_string(),
            Domain::Path => "a path, or nothing".to_string(),
            Domain::Blocks(least) => format!("{least} blocks or more, or bytes"),
            Domain::Time => "a time".to_string(),
            Domain::Text(most) => format!("a line of at most {most} bytes"),
        }
    }

    /// Returns the number that a text stands for, whatever the range; `None` for a text that is
    /// none, and in domains of other values.
    pub fn number(self, text: &str) -> Option<u64> {
        match self {
            Domain::Size(..) | Domain::PowerOfTwo(..) | Domain::BlockSize => parse_size(text).ok(),
            Domain::Count(..) | Domain::AutoOrCount(..) => parse_count(text).ok(),
            Domain::Word(_) | Domain::Path | Domain::Blocks(_) | Domain::Time | Domain::Text(_) => None,
        }
    }

    /// True for the text of a setting's value, in lower case.
    #[must_use]
    pub fn admits(self, text: &str) -> bool {
        let number = self.number(text);
        match self {
            Domain::Size(least, most) | Domain::Count(least, most) => {
                number.is_some_and(|number| (least..=most).contains(&number))
            }
            Domain::PowerOfTwo(least, most) => {
                number.is_some_and(|number| (least..=most).contains(&number) && number.is_power_of_two())
            }
            Domain::AutoOrCount(least, most) => text == "auto" || Domain::Count(least, most).admits(text),
            Domain::Word(words) => words.contains(&text),
            Domain::BlockSize => number.is_some_and(|number| BlockSize::new(number).is_some()),
            // It goes into records as one line.
            Domain::Path => !text.contains(char::is_control),
            Domain::Text(most) => text.len() <= most && !text.contains(char::is_control),
            Domain::Blocks(_) | Domain::Time => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_admits_its_range_both_ends_included() {
        let admitted = |domain: Domain, texts: &[&'static str]| -> Vec<&'static str> {
            texts.iter().copied().filter(|text| domain.admits(text)).collect()
        };
        let sizes = ["1K", "2K", "3000", "4K", "4097", "x"];
        assert_eq!(admitted(Domain::Size(2048, 4096), &sizes), ["2K", "3000", "4K"]);
        assert_eq!(admitted(Domain::PowerOfTwo(2048, 4096), &sizes), ["2K", "4K"]);
        assert_eq!(admitted(Domain::Count(2, 4000), &["1", "2", "4K", "5K"]), ["2", "4K"]);
        assert_eq!(admitted(Domain::AutoOrCount(1, 2), &["auto", "2", "3"]), ["auto", "2"]);
        assert_eq!(admitted(Domain::Word(&["on", "off"]), &["on", "On", "of"]), ["on"]);
        assert_eq!(admitted(Domain::BlockSize, &["2K", "8192", "3K", "64K"]), ["2K", "8192"]);
        assert_eq!(admitted(Domain::Path, &["", "/u 01", "a\nb"]), ["", "/u 01"]);
    }

    #[test]
    fn sizes_and_counts_have_their_own_multiples() {
        assert_eq!(Domain::Size(0, 1 << 20).number("4K"), Some(4096));
        assert_eq!(Domain::Count(0, 1 << 20).number("4K"), Some(4000));
        assert_eq!(Domain::AutoOrCount(0, 9).number("auto"), None);
        assert_eq!(Domain::Size(2048, 4 << 20).describe(), "a size from 2K to 4M");
    }
}
