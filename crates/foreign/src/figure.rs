//! A printed figure: its value, and the interval of values with that text.
//!
//! A report prints 4.16 for anything from 4.155 to 4.165. The interval, and not a tolerance,
//! decides whether two figures of a report contradict each other. It follows from the text:
//!
//! | text | unit | value | interval |
//! |---|---|---|---|
//! | `1,083` | [`FigureUnit::COUNT`] | 1083 | exact |
//! | `1,083` | [`FigureUnit::S`] | 1083 s | 1082.5 to 1083.5 s |
//! | `12.9G` | [`FigureUnit::BYTES`] | 12.9 * 2^30 | 12.85 to 12.95 * 2^30 |
//! | `7.1E+04` | [`FigureUnit::PER_S`] | 71000 | 70500 to 71500 |
//! | `109.72us` | any time | 0.00010972 s | 0.000109715 to 0.000109725 s |
//! | `<0.01(2247)` | [`FigureUnit::PERCENT`] | 0.005 | 0 to 0.01 |
//!
//! A missing figure has a reason ([`Absence`]) and no value. It is never zero.

use plumb_units::ValueRange;
use serde::Serialize;

/// The quantity of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Words, which have no value.
    Text,
    /// Whole things; without a suffix a figure is exact.
    Count,
    /// Whole things in a narrow column, which may cut off the K after thousands.
    NarrowCount,
    /// A number that was rounded.
    Number,
    /// A number that was first rounded to one decimal more: 0.3465 to 0.35, and that to 0.4.
    TwiceRounded,
    /// Bytes; suffixes are multiples of 1024.
    Bytes,
    /// Bytes a second; suffixes are multiples of 1024.
    BytesPerSecond,
    /// A rate: things in each second.
    PerSecond,
    /// A time; its base unit is seconds.
    Seconds,
    /// A share, as hundredths of a whole.
    Percent,
}

/// The unit of a column's figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FigureUnit {
    /// The quantity; values are in its base unit.
    pub quantity: Quantity,
    /// Base units of a figure without a unit of its own.
    pub scale: f64,
}

impl FigureUnit {
    /// Names and other texts without a value.
    pub const TEXT: FigureUnit = FigureUnit::new(Quantity::Text, 1.0);
    /// Whole things, exact unless they have a suffix.
    pub const COUNT: FigureUnit = FigureUnit::new(Quantity::Count, 1.0);
    /// Whole things whose K may be cut off.
    pub const NARROW_COUNT: FigureUnit = FigureUnit::new(Quantity::NarrowCount, 1.0);
    /// A number that was rounded once.
    pub const NUMBER: FigureUnit = FigureUnit::new(Quantity::Number, 1.0);
    /// A number that was rounded twice.
    pub const TWICE_ROUNDED: FigureUnit = FigureUnit::new(Quantity::TwiceRounded, 1.0);
    /// Bytes, or multiples of 1024 by a suffix.
    pub const BYTES: FigureUnit = FigureUnit::new(Quantity::Bytes, 1.0);
    /// Units of 2^20 bytes without a suffix.
    pub const MB: FigureUnit = FigureUnit::new(Quantity::Bytes, 1_048_576.0);
    /// Units of 2^30 bytes without a suffix.
    pub const GB: FigureUnit = FigureUnit::new(Quantity::Bytes, 1_073_741_824.0);
    /// Units of 2^20 bytes in each second.
    pub const MB_PER_S: FigureUnit = FigureUnit::new(Quantity::BytesPerSecond, 1_048_576.0);
    /// A rate: things in each second.
    pub const PER_S: FigureUnit = FigureUnit::new(Quantity::PerSecond, 1.0);
    /// Seconds, unless the text has a unit.
    pub const S: FigureUnit = FigureUnit::new(Quantity::Seconds, 1.0);
    /// Milliseconds, unless the text has a unit.
    pub const MS: FigureUnit = FigureUnit::new(Quantity::Seconds, 1e-3);
    /// Microseconds, unless the text has a unit.
    pub const US: FigureUnit = FigureUnit::new(Quantity::Seconds, 1e-6);
    /// Minutes, unless the text has a unit.
    pub const MINUTES: FigureUnit = FigureUnit::new(Quantity::Seconds, 60.0);
    /// Hundredths of a whole, such as DB time.
    pub const PERCENT: FigureUnit = FigureUnit::new(Quantity::Percent, 1.0);

    /// Returns a unit of `scale` base units of a quantity.
    #[must_use]
    pub const fn new(quantity: Quantity, scale: f64) -> FigureUnit {
        FigureUnit { quantity, scale }
    }

    /// Returns the printed name of the base unit; empty for a plain number.
    #[must_use]
    pub const fn base(self) -> &'static str {
        match self.quantity {
            Quantity::Text
            | Quantity::Count
            | Quantity::NarrowCount
            | Quantity::Number
            | Quantity::TwiceRounded => "",
            Quantity::Bytes => "bytes",
            Quantity::BytesPerSecond => "bytes/s",
            Quantity::PerSecond => "/s",
            Quantity::Seconds => "s",
            Quantity::Percent => "%",
        }
    }
}

/// The reason why a figure is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// The report leaves it blank.
    Blank,
    /// The report says `N/A`: the figure does not apply.
    NotApplicable,
    /// The figure was wider than its column: `####`.
    Overflow,
    /// The file ends within the figure.
    CutOff,
    /// The text is no known form of a number.
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Words, in a column without figures.
    Words,
    /// A value in the base unit, within an interval.
    Value {
        /// The value as printed, in the base unit.
        value: f64,
        /// The values with the printed text.
        range: ValueRange,
    },
    /// No value, with the reason of its absence.
    Absent(Absence),
}

impl Reading {
    /// Returns the values with the printed text; `None` without a value.
    #[must_use]
    pub fn range(self) -> Option<ValueRange> {
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

/// Parses a printed text in a unit.
#[must_use]
pub fn read(raw: &str, unit: FigureUnit) -> Reading {
    let text = raw.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{a0}');
    if unit.quantity == Quantity::Seconds && text.contains(':') {
        return clock(text).unwrap_or(Reading::Absent(Absence::Unreadable));
    }
    match text {
        "" => return Reading::Absent(Absence::Blank),
        _ if unit.quantity == Quantity::Text => return Reading::Words,
        "N/A" | "n/a" | "NA" => return Reading::Absent(Absence::NotApplicable),
        _ if text.bytes().all(|byte| byte == b'#') => return Reading::Absent(Absence::Overflow),
        _ => {}
    }
    printed(text, unit).unwrap_or(Reading::Absent(Absence::Unreadable))
}

/// A time such as `00:04:50.02`.
fn clock(text: &str) -> Option<Reading> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then_some(())?;
    let Reading::Value { value, range } = printed(seconds, FigureUnit::S)? else { return None };
    let before = whole(hours)? * 3600.0 + whole(minutes)? * 60.0;
    let range = ValueRange { low: before + range.low, high: before + range.high };
    Some(Reading::Value { value: before + value, range })
}

/// True if a text is a number, whatever its unit.
#[must_use]
pub fn is_number(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | '<'))
        && printed(text, FigureUnit::new(Quantity::Number, 1.0)).is_some()
}

/// Parses a number with its affixes: `<0.01(2247)`, `60.9K`, `3.82ms`, `1.3497E+07`.
fn printed(text: &str, unit: FigureUnit) -> Option<Reading> {
    let (text, is_bound) = text.strip_prefix('<').map_or((text, false), |rest| (rest, true));
    // The count in brackets after a share is its number of waits.
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
    let share = if unit.quantity == Quantity::TwiceRounded { 0.55 } else { 0.5 };
    let half = if is_exact { 0.0 } else { share * 10f64.powi(-decimals) * factor };
    if !value.is_finite() || !half.is_finite() {
        return None;
    }
    Some(if is_bound {
        Reading::Value { value: value / 2.0, range: ValueRange { low: 0.0, high: value } }
    } else if magnitude == 0.0 {
        Reading::Value { value, range: ValueRange { low: 0.0, high: half } }
    } else {
        Reading::Value { value, range: ValueRange { low: value - half, high: value + half } }
    })
}

/// Returns the exponent of `E+07` at the start of a text, and the text after it.
fn exponent(rest: &str) -> Option<(i32, &str)> {
    let Some(behind) = rest.strip_prefix(['E', 'e']) else { return Some((0, rest)) };
    let signed = behind.strip_prefix(['+', '-']).unwrap_or(behind);
    let end = signed.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(signed.len());
    let at = behind.len() - signed.len() + end;
    let exponent: i32 = behind[..at].parse().ok()?;
    (exponent.abs() <= 300).then_some((exponent, &behind[at..]))
}

/// Returns the digits without commas between thousands, and the number after the point. A single
/// comma without a point is a decimal comma only in a column of percentages.
fn plain_digits(digits: &str, unit: FigureUnit) -> Option<(String, i32)> {
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

/// Returns the base units of a suffix; without a suffix those of the column.
fn suffix(rest: &str, unit: FigureUnit) -> Option<f64> {
    let is_bytes = matches!(unit.quantity, Quantity::Bytes | Quantity::BytesPerSecond);
    let multiple = |power: i32| Some(if is_bytes { 1024f64 } else { 1000.0 }.powi(power));
    // For a time in thousands (`2.1K`) the column gives the unit.
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
        // A column of several units: each figure has its own.
        ("seconds" | "bytes", Quantity::Number) => Some(1.0),
        ("K" | "KB" | "kB", _) => scaled(1),
        ("M" | "MB", _) => scaled(2),
        ("G" | "GB", _) => scaled(3),
        ("T" | "TB", _) => scaled(4),
        ("P" | "PB", _) => scaled(5),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
