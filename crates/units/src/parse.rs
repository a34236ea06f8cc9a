//! Numbers as people write them: `64K`, `1.5G`, `5T`, `10_000`, `10M`.

use crate::Nanos;
use std::fmt;

/// A text that is no size, count or time. The caller's error adds the setting's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    /// Text that the user gave.
    pub text: String,
    /// Form that the text should have, with an example.
    pub expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not {}", self.text, self.expected)
    }
}

impl std::error::Error for ParseUnitError {}

/// Parses a size in bytes. K, M, G, T and P are powers of 1024; `B` or `iB` may follow.
///
/// # Errors
/// When the text is no number with such a suffix, or exceeds 2^63 bytes.
pub fn parse_size(text: &str) -> Result<u64, ParseUnitError> {
    let trimmed = text.trim();
    let bare =
        ["iB", "ib", "B", "b"].iter().find_map(|ending| trimmed.strip_suffix(ending)).unwrap_or(trimmed);
    parse_scaled(bare, 1024).ok_or_else(|| ParseUnitError {
        text: text.to_string(),
        expected: "a size (a number with K, M, G, T or P after it, as in 64K or 5T)",
    })
}

/// Parses a count; K, M, G and T are powers of 1000.
///
/// # Errors
/// When the text is no number with such a suffix, or exceeds 2^63.
pub fn parse_count(text: &str) -> Result<u64, ParseUnitError> {
    parse_scaled(text.trim(), 1000).ok_or_else(|| ParseUnitError {
        text: text.to_string(),
        expected: "a count (a number with K, M, G or T after it, as in 10M)",
    })
}

/// Parses a time: a number with the suffix ns, us, ms, s, m or h.
///
/// # Errors
/// When the text has another form.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseUnitError> {
    let trimmed = text.trim();
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
    let parts =
        units.into_iter().find_map(|(unit, scale)| Some((trimmed.strip_suffix(unit)?.trim_end(), scale)));
    let plain = |number: &&str| number.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let nanos = parts.filter(|(number, _)| plain(number)).and_then(|(number, scale)| {
        Some(number.parse::<f64>().ok()? * scale).filter(|nanos| *nanos < u64::MAX as f64)
    });
    nanos.map(|nanos| Nanos(nanos.round() as u64)).ok_or_else(|| ParseUnitError {
        text: text.to_string(),
        expected: "a time (a number with us, ms, s, m or h after it, as in 10ms)",
    })
}

fn parse_scaled(text: &str, base: u64) -> Option<u64> {
    let last = text.chars().last()?;
    let power = match last.to_ascii_uppercase() {
        'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        'P' => 5,
        _ => 0,
    };
    let digits = if power > 0 { text.get(..text.len() - 1)? } else { text };
    let digits = digits.trim_end().replace('_', "");
    let multiple = base.checked_pow(power)?;
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (digits.as_str(), ""),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(multiple)?;
    if !fraction.is_empty() {
        let scale = 10u64.pow(u32::try_from(fraction.len()).ok()?);
        let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(multiple);
        // "1.5" without a multiple, and "0.3K", are not whole numbers.
        if part % u128::from(scale) != 0 {
            return None;
        }
        value = value.checked_add(u64::try_from(part / u128::from(scale)).ok()?)?;
    }
    (value <= i64::MAX as u64).then_some(value)
}
