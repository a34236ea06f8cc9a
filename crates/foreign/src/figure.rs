//! A printed figure: its value, and the interval of values that print so.
//!
//! A report prints 4.16 for anything from 4.155 to 4.165. The interval, and not a tolerance, decides
//! whether two figures of a report contradict each other. It follows from the text:
//!
//! | text | unit | value | interval |
//! |---|---|---|---|
//! | `1,083` | [`Unit::COUNT`] | 1083 | exact |
//! | `1,083` | [`Unit::S`] | 1083 s | 1082.5 to 1083.5 s |
//! | `12.9G` | [`Unit::BYTES`] | 12.9 * 2^30 | 12.85 to 12.95 * 2^30 |
//! | `7.1E+04` | [`Unit::PER_S`] | 71000 | 70500 to 71500 |
//! | `109.72us` | any time | 0.00010972 s | 0.000109715 to 0.000109725 s |
//! | `<0.01(2247)` | [`Unit::PERCENT`] | 0.005 | 0 to 0.01 |
//!
//! What is missing has a kind ([`Absence`]) and no value. It is never zero.

use serde::Serialize;

/// An interval of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Range {
    /// Returns the interval that has one value alone.
    #[must_use]
    pub const fn exactly(value: f64) -> Range {
        Range { low: value, high: value }
    }

    /// Returns the middle.
    #[must_use]
    pub fn middle(self) -> f64 {
        self.low / 2.0 + self.high / 2.0
    }

    /// Returns the smallest interval that has the sum of a value of each.
    #[must_use]
    pub fn plus(self, other: Range) -> Range {
        Range { low: self.low + other.low, high: self.high + other.high }
    }

    /// Returns the smallest interval that has the product of a value of each.
    #[must_use]
    pub fn times(self, other: Range) -> Range {
        let ends =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let [low, high] = [f64::min, f64::max].map(|end: fn(f64, f64) -> f64| {
            ends.into_iter().filter(|end| !end.is_nan()).reduce(end).unwrap_or(0.0)
        });
        Range { low, high }
    }

    /// Returns the values that a quotient may have; none where the divisor may be zero or less.
    #[must_use]
    pub fn over(self, divisor: Range) -> Option<Range> {
        let inverse = Range { low: 1.0 / divisor.high, high: 1.0 / divisor.low };
        (divisor.low > 0.0).then(|| self.times(inverse))
    }

    /// True if both have a value in common. A relative 1e-9 is left for the arithmetic of floats.
    #[must_use]
    pub fn meets(self, other: Range) -> bool {
        let slack =
            1e-9 * [self.low, self.high, other.low, other.high].into_iter().map(f64::abs).fold(0.0, f64::max);
        self.low <= other.high + slack && other.low <= self.high + slack
    }

    /// Returns the values that both have.
    #[must_use]
    pub fn and(self, other: Range) -> Option<Range> {
        let both = Range { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }
}

/// A quantity that figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Words.
    Text,
    /// Whole things; without a suffix a figure is exact.
    Count,
    /// Whole things in a column so narrow that the K behind a thousand may be cut off.
    NarrowCount,
    /// A number that was rounded.
    Number,
    /// Bytes; suffixes are multiples of 1024.
    Bytes,
    /// Bytes a second; suffixes are multiples of 1024.
    BytesPerSecond,
    /// Things a second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Hundredths.
    Percent,
}

/// The unit that a column's figures are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unit {
    /// The quantity; values are in its base unit.
    pub quantity: Quantity,
    /// The base units of a figure that has no unit of its own.
    pub scale: f64,
}

impl Unit {
    /// Words.
    pub const TEXT: Unit = Unit::new(Quantity::Text, 1.0);
    /// Whole things.
    pub const COUNT: Unit = Unit::new(Quantity::Count, 1.0);
    /// Whole things whose K may be cut off.
    pub const NARROW_COUNT: Unit = Unit::new(Quantity::NarrowCount, 1.0);
    /// A rounded number.
    pub const NUMBER: Unit = Unit::new(Quantity::Number, 1.0);
    /// Bytes.
    pub const BYTES: Unit = Unit::new(Quantity::Bytes, 1.0);
    /// 2^20 bytes.
    pub const MB: Unit = Unit::new(Quantity::Bytes, 1_048_576.0);
    /// 2^30 bytes.
    pub const GB: Unit = Unit::new(Quantity::Bytes, 1_073_741_824.0);
    /// 2^20 bytes a second.
    pub const MB_PER_S: Unit = Unit::new(Quantity::BytesPerSecond, 1_048_576.0);
    /// Things a second.
    pub const PER_S: Unit = Unit::new(Quantity::PerSecond, 1.0);
    /// Seconds.
    pub const S: Unit = Unit::new(Quantity::Seconds, 1.0);
    /// Milliseconds.
    pub const MS: Unit = Unit::new(Quantity::Seconds, 1e-3);
    /// Microseconds.
    pub const US: Unit = Unit::new(Quantity::Seconds, 1e-6);
    /// Minutes.
    pub const MINUTES: Unit = Unit::new(Quantity::Seconds, 60.0);
    /// Hundredths.
    pub const PERCENT: Unit = Unit::new(Quantity::Percent, 1.0);

    /// Returns a unit that is so many base units of a quantity.
    #[must_use]
    pub const fn new(quantity: Quantity, scale: f64) -> Unit {
        Unit { quantity, scale }
    }

    /// Returns the base unit as it is printed; empty for a plain number.
    #[must_use]
    pub const fn base(self) -> &'static str {
        match self.quantity {
            Quantity::Text | Quantity::Count | Quantity::NarrowCount | Quantity::Number => "",
            Quantity::Bytes => "bytes",
            Quantity::BytesPerSecond => "bytes/s",
            Quantity::PerSecond => "/s",
            Quantity::Seconds => "s",
            Quantity::Percent => "%",
        }
    }
}

/// The kind of a figure that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// Nothing is printed.
    Blank,
    /// The report says that it does not apply: `N/A`.
    NotApplicable,
    /// It was wider than its column: `####`.
    Overflow,
    /// The file ends in it.
    CutOff,
    /// It is no number that is known.
    Unreadable,
}

/// A figure as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Words.
    Words,
    /// A value in the base unit, within an interval.
    Value {
        /// The value as printed.
        value: f64,
        /// The values that print so.
        range: Range,
    },
    /// No value.
    Absent(Absence),
}

impl Reading {
    /// Returns the values that print so; none where there is no value.
    #[must_use]
    pub fn range(self) -> Option<Range> {
        match self {
            Reading::Value { range, .. } => Some(range),
            _ => None,
        }
    }

    /// Returns the value as printed.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Reading::Value { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// Returns what a printed text says in a unit.
#[must_use]
pub fn read(raw: &str, unit: Unit) -> Reading {
    let text = raw.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{a0}');
    match text {
        "" => return Reading::Absent(Absence::Blank),
        _ if unit.quantity == Quantity::Text => return Reading::Words,
        "N/A" | "n/a" | "NA" => return Reading::Absent(Absence::NotApplicable),
        _ if text.bytes().all(|byte| byte == b'#') => return Reading::Absent(Absence::Overflow),
        _ => {}
    }
    printed(text, unit).unwrap_or(Reading::Absent(Absence::Unreadable))
}

/// True if a text is a number, whatever its unit.
#[must_use]
pub fn is_number(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | '<'))
        && printed(text, Unit::new(Quantity::Number, 1.0)).is_some()
}

/// A number with what may stand around it: `<0.01(2247)`, `60.9K`, `3.82ms`, `1.3497E+07`.
fn printed(text: &str, unit: Unit) -> Option<Reading> {
    let (text, is_bound) = text.strip_prefix('<').map_or((text, false), |rest| (rest, true));
    // A count in brackets behind a share says of how many waits it is.
    let text = match text.split_once('(') {
        Some((share, count)) if count.ends_with(')') && !share.is_empty() => share,
        Some(_) => return None,
        None => text,
    };
    let is_of_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',');
    let sign = text.starts_with(['-', '+']).into();
    let end = text[sign..].find(|letter: char| !is_of_number(letter)).map_or(text.len(), |end| end + sign);
    let (digits, rest) = text.split_at(end);
    let (exponent, rest) = exponent(rest)?;
    let (plain, decimals) = plain_digits(&digits[sign..], unit)?;
    let magnitude: f64 = plain.parse().ok()?;
    let has_suffix = !rest.trim_start().is_empty();
    let mut factor = suffix(rest.trim_start(), unit)? * 10f64.powi(exponent);
    let is_whole = decimals == 0 && exponent == 0 && !has_suffix;
    if unit.quantity == Quantity::NarrowCount && decimals > 0 && !has_suffix {
        factor *= 1000.0;
    }
    let value = magnitude * factor * if digits.starts_with('-') { -1.0 } else { 1.0 };
    let is_exact = is_whole && matches!(unit.quantity, Quantity::Count | Quantity::NarrowCount);
    let half = if is_exact { 0.0 } else { 0.5 * 10f64.powi(-decimals) * factor };
    if !value.is_finite() || !half.is_finite() {
        return None;
    }
    Some(if is_bound {
        Reading::Value { value: value / 2.0, range: Range { low: 0.0, high: value } }
    } else if magnitude == 0.0 {
        Reading::Value { value, range: Range { low: 0.0, high: half } }
    } else {
        Reading::Value { value, range: Range { low: value - half, high: value + half } }
    })
}

/// The exponent of `E+07` at the start of a text, and the text behind it.
fn exponent(rest: &str) -> Option<(i32, &str)> {
    let Some(behind) = rest.strip_prefix(['E', 'e']) else { return Some((0, rest)) };
    let signed = behind.strip_prefix(['+', '-']).unwrap_or(behind);
    let end = signed.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(signed.len());
    let at = behind.len() - signed.len() + end;
    let exponent: i32 = behind[..at].parse().ok()?;
    (exponent.abs() <= 300).then_some((exponent, &behind[at..]))
}

/// Digits without the commas between thousands, and how many stand behind the point. A single
/// comma without a point is a decimal comma in a column of percentages, and nowhere else.
fn plain_digits(digits: &str, unit: Unit) -> Option<(String, i32)> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let groups: Vec<&str> = whole.split(',').collect();
    let is_grouped = groups.iter().skip(1).all(|group| group.len() == 3)
        && (groups.len() == 1 || (1..=3).contains(&groups[0].len()));
    let decimals = |fraction: &str| i32::try_from(fraction.len()).ok();
    let is_decimal_comma = groups.len() == 2 && unit.quantity == Quantity::Percent && !digits.contains('.');
    if fraction.contains(['.', ',']) || whole.len() + fraction.len() == 0 {
        None
    } else if is_decimal_comma {
        Some((format!("{}.{}", groups[0], groups[1]), decimals(groups[1])?))
    } else if is_grouped {
        Some((format!("{}.{fraction}", groups.concat()), decimals(fraction)?))
    } else {
        None
    }
}

/// The base units that a suffix stands for; those of the column where there is none.
fn suffix(rest: &str, unit: Unit) -> Option<f64> {
    let is_bytes = matches!(unit.quantity, Quantity::Bytes | Quantity::BytesPerSecond);
    let multiple = |power: i32| Some(if is_bytes { 1024f64 } else { 1000.0 }.powi(power));
    // Of a time in thousands the column says the unit.
    let scaled = |power: i32| multiple(power).map(|many| if is_bytes { many } else { many * unit.scale });
    match (rest, unit.quantity) {
        ("", _) => Some(unit.scale),
        ("%", Quantity::Percent) => Some(1.0),
        ("ns", Quantity::Seconds) => Some(1e-9),
        ("us" | "\u{b5}s" | "usecs", Quantity::Seconds) => Some(1e-6),
        ("ms", Quantity::Seconds) => Some(1e-3),
        ("s" | "sec" | "secs" | "seconds", Quantity::Seconds) => Some(1.0),
        ("(mins)" | "mins", Quantity::Seconds) => Some(60.0),
        ("bytes" | "B", Quantity::Bytes) => Some(1.0),
        ("K" | "KB", _) => scaled(1),
        ("M" | "MB", _) => scaled(2),
        ("G" | "GB", _) => scaled(3),
        ("T" | "TB", _) => scaled(4),
        ("P" | "PB", _) => scaled(5),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
