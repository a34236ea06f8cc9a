//! Counts of rows.

use crate::{ParseUnitError, parse_count};
use std::fmt;
use std::str::FromStr;

/// A number of rows, printed in groups of three digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowCount(pub u64);

/// Prints the digits in groups of three: `10,000,000`.
impl fmt::Display for RowCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

impl FromStr for RowCount {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_count(text).map(RowCount)
    }
}

/// Sums figures of a stored record, which may have any values: the sum
/// saturates at the largest word.
pub fn total_of(figures: impl Iterator<Item = u64>) -> u64 {
    figures.fold(0, u64::saturating_add)
}

/// Returns the allowed range of a number for a message: `3`, `at least 1` where 64 bits are the
/// only bound, otherwise `1 to 64`.
pub fn range_text(least: i128, most: i128) -> String {
    match () {
        () if least == most => least.to_string(),
        () if most >= i128::from(u64::MAX) => format!("at least {least}"),
        () => format!("{least} to {most}"),
    }
}
