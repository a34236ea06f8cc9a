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

use crate::numeral::{Comma, numeral};
use crate::unit::{power_of, seconds_in};
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
    /// Bytes in each second, or multiples of 1024 by a suffix.
    pub const BYTES_PER_S: FigureUnit = FigureUnit::new(Quantity::BytesPerSecond, 1.0);
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

    /// Returns the unit that a table of data names so: `mb_per_s`.
    #[must_use]
    pub fn named(name: &str) -> Option<FigureUnit> {
        const NAMED: [(&str, FigureUnit); 21] = [
            ("text", FigureUnit::TEXT),
            ("count", FigureUnit::COUNT),
            ("narrow_count", FigureUnit::NARROW_COUNT),
            ("number", FigureUnit::NUMBER),
            ("twice_rounded", FigureUnit::TWICE_ROUNDED),
            ("bytes", FigureUnit::BYTES),
            ("mb", FigureUnit::MB),
            ("gb", FigureUnit::GB),
            ("bytes_per_s", FigureUnit::BYTES_PER_S),
            ("mb_per_s", FigureUnit::MB_PER_S),
            ("per_s", FigureUnit::PER_S),
            ("s", FigureUnit::S),
            ("ms", FigureUnit::MS),
            ("us", FigureUnit::US),
            ("ns", FigureUnit::new(Quantity::Seconds, 1e-9)),
            ("minutes", FigureUnit::MINUTES),
            ("kib", FigureUnit::new(Quantity::Bytes, 1024.0)),
            ("kib_per_s", FigureUnit::new(Quantity::BytesPerSecond, 1024.0)),
            ("sectors", FigureUnit::new(Quantity::Bytes, 512.0)),
            ("sectors_per_s", FigureUnit::new(Quantity::BytesPerSecond, 512.0)),
            ("percent", FigureUnit::PERCENT),
        ];
        NAMED.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
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
pub enum CellReading {
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

impl CellReading {
    /// Returns the values with the printed text; `None` without a value.
    #[must_use]
    pub fn range(self) -> Option<ValueRange> {
        match self {
            CellReading::Value { range, .. } => Some(range),
            _ => None,
        }
    }

    /// Returns the value as printed.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            CellReading::Value { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// Parses a printed text in a unit.
#[must_use]
pub fn read(raw: &str, unit: FigureUnit) -> CellReading {
    read_with(raw, unit, Comma::Groups)
}

/// Parses a printed text in a unit, of a report whose commas have this meaning.
#[must_use]
pub fn read_with(raw: &str, unit: FigureUnit, comma: Comma) -> CellReading {
    let text = raw.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{a0}');
    if unit.quantity == Quantity::Seconds && text.contains(':') {
        return clock(text, comma).unwrap_or(CellReading::Absent(Absence::Unreadable));
    }
    match text {
        "" => return CellReading::Absent(Absence::Blank),
        _ if unit.quantity == Quantity::Text => return CellReading::Words,
        "N/A" | "n/a" | "NA" => return CellReading::Absent(Absence::NotApplicable),
        _ if text.bytes().all(|byte| byte == b'#') => return CellReading::Absent(Absence::Overflow),
        _ => {}
    }
    printed(text, unit, comma).unwrap_or(CellReading::Absent(Absence::Unreadable))
}

/// A time such as `00:04:50.02`, or `4:51` of minutes and seconds.
fn clock(text: &str, comma: Comma) -> Option<CellReading> {
    let parts: Vec<&str> = text.splitn(4, ':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] => ("0", *minutes, *seconds),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    seconds.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',')).then_some(())?;
    let CellReading::Value { value, range } = printed(seconds, FigureUnit::S, comma)? else { return None };
    let before = whole(hours)? * 3600.0 + whole(minutes)? * 60.0;
    (value < 60.0).then_some(())?;
    let range = ValueRange { low: before + range.low, high: before + range.high };
    Some(CellReading::Value { value: before + value, range })
}

/// True if a text is a number, with a multiple such as `K` at most.
#[must_use]
pub fn is_number(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | '<'))
        && [Comma::Either, Comma::Decimals]
            .into_iter()
            .any(|comma| printed(text, FigureUnit::COUNT, comma).is_some())
}

/// True if a text is a figure, with or without a unit of its own. A bound such as `<1ms` is none,
/// because it is the heading of a bucket.
#[must_use]
pub fn is_figure(text: &str) -> bool {
    let starts = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+');
    text.starts_with(starts)
        && (printed(text, FigureUnit::NUMBER, Comma::Groups).is_some()
            || clock(text, Comma::Groups).is_some())
}

/// True if a name of a row or a column says that its figures are bytes, so that K, M and G are
/// multiples of 1024 there: `Physical Memory`.
#[must_use]
pub fn is_of_bytes(name: &str) -> bool {
    let name = name.to_lowercase();
    ["memory", "size"].iter().any(|word| name.contains(word))
}

/// Returns the unit that all texts of a column share, if its heading has none: `4:51`,
/// `724 MB/sec`, `3.7 GB`. K, M and G are bytes only under a heading of memory or size.
#[must_use]
pub fn unit_of(heading: &str, texts: &[&str]) -> Option<FigureUnit> {
    let is_bytes = is_of_bytes(heading);
    let unit = |text: &str| {
        let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || "+-.,".contains(letter));
        match rest.trim_start() {
            _ if text.contains(':') && clock(text, Comma::Groups).is_some() => Some(FigureUnit::S),
            "K" | "M" | "G" if is_bytes => Some(FigureUnit::BYTES),
            rest => own_unit(rest).map(|(quantity, _)| FigureUnit::new(quantity, 1.0)),
        }
    };
    let mut units = texts.iter().filter(|text| !text.is_empty()).map(|text| unit(text));
    let first = units.next()??;
    units.all(|unit| unit == Some(first)).then_some(first)
}

/// Parses a number with its affixes: `<0.01(2247)`, `60.9K`, `3.82ms`, `1.3497E+07`.
fn printed(text: &str, unit: FigureUnit, comma: Comma) -> Option<CellReading> {
    let (text, is_bound) = text.strip_prefix('<').map_or((text, false), |rest| (rest, true));
    // The count in brackets after a share is its number of waits.
    let text = match text.split_once('(') {
        Some((share, count)) if count.ends_with(')') && !share.is_empty() => share,
        Some(_) => return None,
        None => text,
    };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    // A single comma is a decimal one only in a column of percentages.
    let may_be_decimal = unit.quantity == Quantity::Percent && comma == Comma::Groups;
    let found = numeral(unsigned, if may_be_decimal { Comma::Either } else { comma })?;
    let rest = found.rest.trim_start();
    let mut factor = suffix(rest, unit)?;
    if unit.quantity == Quantity::NarrowCount && found.last < 0 && rest.is_empty() {
        factor *= 1000.0;
    }
    let magnitude = found.value;
    let value = magnitude * factor * if text.starts_with('-') { -1.0 } else { 1.0 };
    let is_count = matches!(unit.quantity, Quantity::Count | Quantity::NarrowCount);
    let is_exact = is_count && found.is_whole && rest.is_empty();
    let share = if unit.quantity == Quantity::TwiceRounded { 0.55 } else { 0.5 };
    let half = if is_exact { 0.0 } else { share * 10f64.powi(found.last) * factor };
    if !value.is_finite() || !half.is_finite() {
        return None;
    }
    Some(if is_bound {
        CellReading::Value { value: value / 2.0, range: ValueRange { low: 0.0, high: value } }
    } else if magnitude == 0.0 {
        CellReading::Value { value, range: ValueRange { low: 0.0, high: half } }
    } else {
        CellReading::Value { value, range: ValueRange { low: value - half, high: value + half } }
    })
}

/// Returns the base units of a suffix; without a suffix those of the column.
fn suffix(rest: &str, unit: FigureUnit) -> Option<f64> {
    let is_bytes = matches!(unit.quantity, Quantity::Bytes | Quantity::BytesPerSecond);
    let multiple = |power: i32| Some(if is_bytes { 1024f64 } else { 1000.0 }.powi(power));
    // For a time in thousands (`2.1K`) the column gives the unit.
    let scaled = |power: i32| multiple(power).map(|many| if is_bytes { many } else { many * unit.scale });
    // In a column of several units each figure is in the base unit of its own text.
    let own = own_unit(rest).filter(|(of, _)| [*of, Quantity::Number].contains(&unit.quantity));
    match (rest, own) {
        ("", _) => Some(unit.scale),
        ("(mins)" | "mins", _) if unit.quantity == Quantity::Seconds => Some(60.0),
        ("(secs)", _) if unit.quantity == Quantity::Seconds => Some(1.0),
        (_, Some((_, base_units))) => Some(base_units),
        ("K" | "k" | "KB" | "kB", _) => scaled(1),
        ("M" | "MB", _) => scaled(2),
        ("G" | "GB", _) => scaled(3),
        ("T" | "TB", _) => scaled(4),
        ("P" | "PB", _) => scaled(5),
        // The rows that Oracle expects at most.
        ("E", _) if unit.quantity == Quantity::Count => scaled(6),
        _ => None,
    }
}

/// Returns the quantity and the base units of a text's own unit; `None` for a bare multiple.
fn own_unit(rest: &str) -> Option<(Quantity, f64)> {
    // Most figures have none.
    if rest.is_empty() {
        return None;
    }
    let (size, quantity) = match rest.strip_suffix("/sec").or_else(|| rest.strip_suffix("/s")) {
        Some(size) => (size, Quantity::BytesPerSecond),
        None => (rest, Quantity::Bytes),
    };
    let bytes = match size {
        "bytes" | "B" => Some(1.0),
        _ => size
            .strip_suffix("iB")
            .or_else(|| size.strip_suffix('B'))
            .filter(|prefix| prefix.len() == 1)
            .and_then(|prefix| power_of(prefix.chars().next()?))
            .map(|power| 1024f64.powi(power)),
    };
    let seconds = seconds_in(rest);
    let share = rest.strip_prefix('%').filter(|of| of.is_empty() || of.starts_with(" of "));
    bytes
        .map(|bytes| (quantity, bytes))
        .or(seconds.map(|seconds| (Quantity::Seconds, seconds)))
        .or(share.map(|_| (Quantity::Percent, 1.0)))
}

#[cfg(test)]
mod tests;
