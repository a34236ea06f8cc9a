//! Writes this bench's part of docs/measured/proof.md: the output, the machine and the command.

use super::Options;
use super::delayed::Delayed;
use super::same::Same;
use crate::machine::{Machine, today};
use plumb_units::RowCount;

/// First line of the part; a comment, so rendered Markdown does not show it.
const BEGIN: &str = "<!-- studies on the real engine -->\n";
const END: &str = "<!-- end of studies on the real engine -->\n";

/// Returns the part without its marks.
pub(super) fn part(options: &Options, machine: &Machine, same: &Same, delayed: &Delayed) -> String {
    format!(
        "## On the real engine\n\n\
         Made on {} by `{}`, and not edited: repeat it.\n\n{}\n\
         A/A studies of two arms that set the same, {} rows, the reference twice in each block. Whatever they prove is\n\
         false. The last column is what the exact test would give, whose p takes few values at so few blocks; intervals are\n\
         those of Clopper and Pearson (1934).\n\n```text\n{}```\n\n\
         Delays put before every request of three arms (`debug_request_delay`, a setting that no list shows and that a\n\
         record names among its findings), in a table of {} rows,\n\
         of sizes that a pilot study of 12 blocks found to make the run 2, 5 and 10% longer; one study has all three.\n\n\
         ```text\n{}```\n",
        today(),
        options.command(),
        machine.show(),
        RowCount(options.rows),
        same.show(),
        RowCount(options.delayed_rows),
        delayed.show()
    )
}

/// Returns the document with its part replaced, or with the part appended.
pub(super) fn replaced(present: &str, part: &str) -> String {
    let (before, after) = match present.split_once(BEGIN) {
        Some((before, rest)) => (before, rest.split_once(END).map_or("", |(_, after)| after)),
        None => (present, ""),
    };
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    format!("{before}{gap}{BEGIN}{part}{END}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_takes_the_place_of_the_one_before_it() {
        let first = replaced("# Proof\n", "one\n");
        assert_eq!(first, format!("# Proof\n\n{BEGIN}one\n{END}"));
        let more = first + "\nafter\n";
        assert_eq!(replaced(&more, "two\n"), format!("# Proof\n\n{BEGIN}two\n{END}\nafter\n"));
    }
}
