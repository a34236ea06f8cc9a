//! Parses a printed figure into every quantity that its text can mean.
//!
//! The interval follows from the text alone:
//!
//! | text | interval |
//! |---|---|
//! | `4.33` | half of the last digit either way |
//! | `16,800` | two or more zeros after two digits count as rounding: 16,750 to 16,850 |
//! | `4,962` blocks | a whole number of counted things is exact |
//! | `4:51`, `9 min 0.7 sec` | minutes and seconds, half of the last digit either way |
//! | `17,01` | a comma not followed by three digits is a decimal comma |
//! | `8k`, `89 Mio`, `8e3` | half of the last digit before the multiple |
//! | `~30`, `about 30` | half of the last digit that is not 0: 25 to 35 |
//! | `almost 18` | 17.5 to 18 |
//! | `more than`, `>1M`, `1M+`, `less than`, `up to` | open at one end |
//! | `one third` | the values nearer to it than to the next common fraction |
//! | `2-3` | between the two |
//!
//! A text with a unit of several meanings (`MB`) has a [`Meaning`] for each.

use crate::numeral::{Comma, numeral as digits_of};
use crate::unit::{Dimension, PrintedUnit, UnitScale, multiple, power_of};
use plumb_units::ValueRange;
use std::ops::RangeInclusive;

/// One quantity that a text can mean, in base units.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    pub range: ValueRange,
    /// Number of base units in one printed unit.
    pub scale: f64,
    /// The choices made: an ambiguous text, and its meaning.
    pub choices: Vec<(String, String)>,
}

/// Meaning of the words before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hedge {
    None,
    About,
    Almost,
    AtLeast,
    AtMost,
}

const HEDGES: [(&str, Hedge); 21] = [
    ("~", Hedge::About),
    ("\u{2248}", Hedge::About),
    (">=", Hedge::AtLeast),
    ("\u{2265}", Hedge::AtLeast),
    (">", Hedge::AtLeast),
    ("<=", Hedge::AtMost),
    ("\u{2264}", Hedge::AtMost),
    ("<", Hedge::AtMost),
    ("about ", Hedge::About),
    ("around ", Hedge::About),
    ("approx. ", Hedge::About),
    ("almost ", Hedge::Almost),
    ("nearly ", Hedge::Almost),
    ("more than ", Hedge::AtLeast),
    ("over ", Hedge::AtLeast),
    ("at least ", Hedge::AtLeast),
    ("less than ", Hedge::AtMost),
    ("under ", Hedge::AtMost),
    ("up to ", Hedge::AtMost),
    ("as much as ", Hedge::AtMost),
    ("at most ", Hedge::AtMost),
];
/// Common fractions, in order; a text means the values nearest to it.
const FRACTIONS: [(&str, f64); 7] = [
    ("one tenth", 0.1),
    ("one fifth", 0.2),
    ("one quarter", 0.25),
    ("one third", 1.0 / 3.0),
    ("half", 0.5),
    ("two thirds", 2.0 / 3.0),
    ("three quarters", 0.75),
];
const WORDS: [(&str, f64); 10] = [
    ("one", 1.0),
    ("twice", 2.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("ten", 10.0),
];

/// A number in its printed unit, with its rounding.
struct Number<'t> {
    value: f64,
    /// Half of the last digit; half of the last digit that is not 0.
    half: f64,
    half_of_digits: f64,
    /// An interval that the text states, rather than one of rounding.
    said: Option<RangeInclusive<f64>>,
    /// True if it is a whole number without a multiple.
    is_whole: bool,
    form: Form,
    rest: &'t str,
}

/// The form of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Digits,
    Clock,
    Fraction,
}

/// The rounding of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    ByText,
    /// Not rounded: a setting, or a requested size.
    Exact,
}

#[derive(Debug)]
pub struct ClaimedFigure {
    pub dimension: Dimension,
    /// The unit for results printed next to it.
    pub unit: String,
    pub readings: Vec<Meaning>,
}

/// Parses a text. `given` is the unit in the claim file; `None` if the text has its own.
pub fn printed(text: &str, given: Option<&str>, rounding: Rounding) -> Result<ClaimedFigure, String> {
    let lower = text.trim();
    let hedged =
        HEDGES.iter().find(|(words, _)| lower.len() > words.len() && lower.to_lowercase().starts_with(words));
    let (hedge, bare) =
        hedged.map_or((Hedge::None, lower), |(words, hedge)| (*hedge, lower[words.len()..].trim()));
    let (hedge, bare) = match (hedge, without_plus(bare)) {
        (Hedge::None, Some(bare)) => (Hedge::AtLeast, bare),
        (hedge, _) => (hedge, bare.to_string()),
    };
    let number = number(&bare).ok_or_else(|| {
        format!("text {text:?} is no figure; expected a number as printed, such as \"4.33\", \"8k\", \"4:51\" or \"~30%\"")
    })?;
    let (multiple, unit) = of_rest(&number, given)?;
    let interval = interval(&number, hedge, rounding, unit.is_counted && multiple.is_none());
    let multiple = multiple.and_then(power_of).map_or(1.0, |power| 1000f64.powi(power));
    let read = |scale: &UnitScale| {
        let scale_by = scale.factor * multiple;
        let choices = scale.choice.clone().into_iter().collect();
        // A fraction in words is compared with per cent.
        let scale = if number.form == Form::Fraction { 0.01 } else { scale.factor };
        let range = ValueRange { low: interval.start() * scale_by, high: interval.end() * scale_by };
        Meaning { range, scale, choices }
    };
    let shown = match number.form {
        Form::Fraction => "%",
        Form::Clock => "s",
        Form::Digits => given.unwrap_or(number.rest.trim()),
    };
    let shown = if shown == "percent" { "%" } else { shown };
    let readings = unit.scales.iter().map(read).collect();
    Ok(ClaimedFigure { dimension: unit.dimension, unit: shown.to_string(), readings })
}

/// Returns a figure such as `1M+` or `1M+ rows` without its plus.
fn without_plus(text: &str) -> Option<String> {
    let (before, behind) = text.split_once('+')?;
    let ends = |letter: char| letter.is_ascii_digit() || power_of(letter).is_some();
    let is_open = before.ends_with(ends) && !behind.starts_with(|letter: char| letter.is_ascii_digit());
    is_open.then(|| [before, behind].concat())
}

/// Returns the multiple and the unit in the text after a number.
fn of_rest(number: &Number, unit: Option<&str>) -> Result<(Option<char>, PrintedUnit), String> {
    let rest = number.rest.trim().trim_start_matches('-');
    // A multiple of bytes is a unit of its own, because it has two meanings.
    let of_bytes = |letter: char| PrintedUnit::parse(&letter.to_ascii_uppercase().to_string());
    let Some(given) = unit else {
        let parsed = PrintedUnit::parse(rest);
        let Err(why) = parsed else { return Ok((None, parsed?)) };
        let end = rest.find(' ').unwrap_or(usize::from(rest.is_char_boundary(1)));
        let (letter, own) = (multiple(&rest[..end]).ok_or(&why)?, rest[end..].trim());
        return Ok((Some(letter), PrintedUnit::parse(own).map_err(|_| why)?));
    };
    let unit = PrintedUnit::parse(given)?;
    if rest.is_empty() || rest == given {
        return Ok((None, unit));
    }
    let letter = multiple(rest).ok_or_else(|| {
        format!("{rest:?} stands behind the number and unit = {given:?} beside it; give one")
    })?;
    match given {
        "bytes" | "B" => Ok((None, of_bytes(letter)?)),
        _ => Ok((Some(letter), unit)),
    }
}

fn interval(number: &Number, hedge: Hedge, rounding: Rounding, is_counted: bool) -> RangeInclusive<f64> {
    let value = number.value;
    let exact = rounding == Rounding::Exact || (is_counted && number.is_whole);
    let half = if exact { 0.0 } else { number.half };
    match hedge {
        Hedge::AtLeast => value..=f64::INFINITY,
        Hedge::AtMost => f64::NEG_INFINITY..=value,
        Hedge::Almost => {
            number.said.as_ref().map_or(value - number.half_of_digits, |said| *said.start())..=value
        }
        Hedge::About if number.said.is_none() => {
            value - number.half_of_digits..=value + number.half_of_digits
        }
        Hedge::None | Hedge::About => number.said.clone().unwrap_or(value - half..=value + half),
    }
}

fn number(text: &str) -> Option<Number<'_>> {
    of_words(text).or_else(|| clock(text)).or_else(|| range(text)).or_else(|| decimal(text))
}

fn of_words(text: &str) -> Option<Number<'_>> {
    let whole = |value: f64, said: Option<RangeInclusive<f64>>, rest| {
        let form = if said.is_some() { Form::Fraction } else { Form::Digits };
        Number { value, half: 0.5, half_of_digits: 0.5, said, is_whole: true, form, rest }
    };
    if let Some(place) = FRACTIONS.iter().position(|(words, _)| text.starts_with(words)) {
        let (words, value) = FRACTIONS[place];
        let below = place.checked_sub(1).map_or(0.0, |below| FRACTIONS[below].1);
        let above = FRACTIONS.get(place + 1).map_or(1.0, |above| above.1);
        let said = f64::midpoint(below, value)..=f64::midpoint(value, above);
        return Some(whole(value, Some(said), &text[words.len()..]));
    }
    let found = WORDS.iter().find(|(word, _)| {
        text.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    found.map(|(word, value)| whole(*value, None, &text[word.len()..]))
}

/// Parses `m:ss`, `h:mm:ss` or `9 min 0.7 sec`, with decimals of the second.
fn clock(text: &str) -> Option<Number<'_>> {
    if let Some((minutes, seconds)) = text.split_once(" min ") {
        let seconds = decimal(seconds)?;
        let value = 60.0 * f64::from(minutes.parse::<u32>().ok()?) + seconds.value;
        return Some(Number { value, is_whole: false, form: Form::Clock, ..seconds });
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (last, before) = parts.split_last().filter(|(_, before)| (1..=2).contains(&before.len()))?;
    let seconds = decimal(last).filter(|seconds| seconds.value < 60.0 && last.len() >= 2)?;
    let whole =
        before.iter().try_fold(0.0, |sum, part| Some(sum * 60.0 + f64::from(part.parse::<u32>().ok()?)))?;
    Some(Number {
        value: whole * 60.0 + seconds.value,
        said: None,
        is_whole: false,
        form: Form::Clock,
        ..seconds
    })
}

/// Parses `2-3`, which means between the two, without rounding.
fn range(text: &str) -> Option<Number<'_>> {
    let (low, high) = text.split_once('-').or_else(|| text.split_once(" to "))?;
    let (low, high) = (decimal(low.trim())?, decimal(high.trim())?);
    let ordered = low.rest.is_empty() && low.value < high.value;
    ordered.then(|| Number {
        value: f64::midpoint(low.value, high.value),
        said: Some(low.value..=high.value),
        is_whole: false,
        ..high
    })
}

fn decimal(text: &str) -> Option<Number<'_>> {
    let found = digits_of(text, Comma::Either)?;
    let half_at = |place: i32| 0.5 * 10f64.powi(place);
    let zeros = if found.is_whole { found.zeros.min(found.digits.saturating_sub(1)) } else { 0 };
    let last = found.last + i32::try_from(zeros).ok()?;
    // At least two digits must remain: one digit with zeros is taken as exact.
    let is_round = zeros >= 2 && found.digits - zeros >= 2;
    Some(Number {
        value: found.value,
        half: half_at(if is_round { last } else { found.last }),
        half_of_digits: half_at(last),
        said: None,
        is_whole: found.is_whole,
        form: Form::Digits,
        rest: found.rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, unit: Option<&str>) -> Vec<(f64, f64)> {
        let printed = printed(text, unit, Rounding::ByText).expect("a figure");
        printed.readings.iter().map(|reading| (reading.range.low, reading.range.high)).collect()
    }

    #[test]
    fn the_interval_follows_from_the_text() {
        for (text, unit, low, high) in [
            ("4.33", Some("s"), 4.325, 4.335),
            ("4:51", Some("m:ss"), 290.5, 291.5),
            ("2:24.41", Some("m:ss"), 144.405, 144.415),
            ("1:00:00.5", Some("m:ss"), 3600.45, 3600.55),
            ("8k", Some("rows"), 7500.0, 8500.0),
            ("4,962", Some("blocks"), 4962.0, 4962.0),
            ("16,800", Some("commits/s"), 16750.0, 16850.0),
            ("500,000", Some("rows/s"), 499_999.5, 500_000.5),
            ("17,01", Some("s"), 17.005, 17.015),
            ("9 min 0.7 sec", None, 540.65, 540.75),
            ("~30%", None, 0.25, 0.35),
            ("almost one third", None, 7.0 / 24.0, 1.0 / 3.0),
            ("almost 18", Some("s"), 17.5, 18.0),
            ("more than two thirds", None, 2.0 / 3.0, f64::INFINITY),
            ("as much as one third", None, f64::NEG_INFINITY, 1.0 / 3.0),
            ("one third", None, 7.0 / 24.0, 5.0 / 12.0),
            ("ten times", None, 9.5, 10.5),
            ("2-3x", None, 2.0, 3.0),
            ("1,440 million", Some("rows"), 1439.5e6, 1440.5e6),
            ("0.04 seconds", None, 0.035, 0.045),
            ("11-fold", None, 10.5, 11.5),
            ("1M+", Some("IOPS"), 1e6, f64::INFINITY),
            ("1M+ IOPS", None, 1e6, f64::INFINITY),
            (">1M", Some("rows"), 1e6, f64::INFINITY),
            ("< 5 ms", None, f64::NEG_INFINITY, 0.005),
            ("\u{2265}2x", None, 2.0, f64::INFINITY),
            ("1e6", Some("rows"), 5e5, 1.5e6),
            ("1.50E+06 rows", None, 1_495_000.0, 1_505_000.0),
            ("2.5e-3 s", None, 0.00245, 0.00255),
            ("50000.12", Some("tps"), 50_000.115, 50_000.125),
            ("10.5k qps", None, 10_450.0, 10_550.0),
            ("10.5kIOPS", None, 10_450.0, 10_550.0),
            ("12 million tps", None, 11.5e6, 12.5e6),
            ("600000", Some("NOPM"), 599_999.5 / 60.0, 600_000.5 / 60.0),
            ("4.5", Some("ops/s"), 4.45, 4.55),
            ("3", Some("1/s"), 2.5, 3.5),
            ("3", Some("/s"), 2.5, 3.5),
            ("3", Some("transactions per second"), 2.5, 3.5),
            ("5 milliseconds", None, 0.0045, 0.0055),
            ("5", Some("msec"), 0.0045, 0.0055),
            ("5 \u{b5}s", None, 4.5e-6, 5.5e-6),
            ("5 usec", None, 4.5e-6, 5.5e-6),
            ("2 hours", None, 5400.0, 9000.0),
            ("1 minute", None, 30.0, 90.0),
            ("10 Gbps", None, 9.5e9 / 8.0, 10.5e9 / 8.0),
            ("10 Gbit/s", None, 9.5e9 / 8.0, 10.5e9 / 8.0),
        ] {
            let found = read(text, unit);
            let [(from, to)] = found[..] else { panic!("{text}: {found:?}") };
            let near =
                |one: f64, other: f64| one == other || (one - other).abs() <= 1e-9 * other.abs().max(1e-3);
            assert!(near(from, low) && near(to, high), "{text}: {from} to {to}");
        }
    }

    #[test]
    fn an_ambiguous_unit_is_read_each_way() {
        assert_eq!(read("8K", None), [(7500.0, 8500.0), (7680.0, 8704.0)]);
        assert_eq!(read("8k", Some("bytes")), read("8K", None));
        assert_eq!(read("8", Some("KiB")), [(7680.0, 8704.0)]);
        assert_eq!(read("5", Some("s or min")), [(4.5, 5.5), (270.0, 330.0)]);
        assert_eq!(read("96.0 MB/s", None).len(), 2);
        assert_eq!(read("96.0 MBps", None), read("96.0 MB/s", None));
        assert_eq!(read("8 Gb/s", None).len(), 3);
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        for (text, unit) in [
            ("", None),
            ("fast", None),
            ("4..3", Some("s")),
            ("1,23,456", Some("rows")),
            ("1:2:3:4", Some("s")),
            ("1:75", Some("m:ss")),
            ("5 MB", Some("s")),
            ("5 parsecs", None),
            ("5 +", None),
            ("1e999", Some("rows")),
            ("5 k parsecs", None),
            ("5", Some("rwos")),
            ("5", Some("s or MB")),
            ("inf", Some("s")),
            ("nan", None),
        ] {
            assert!(printed(text, unit, Rounding::ByText).is_err(), "{text:?} {unit:?}");
        }
    }
}
