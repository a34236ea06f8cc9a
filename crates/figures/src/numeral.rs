//! A number's digits: groups of thousands, decimals, exponent.
//!
//! `1,234` has groups, `12,5` and `17,01` have a decimal comma. `1,234` in a text that shows
//! decimal commas elsewhere is a number with three decimals, so the caller says which it is.

/// The meaning of a comma that groups of three digits leave open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Comma {
    /// It parts thousands; any other comma is no number.
    #[default]
    Groups,
    /// It parts thousands where three digits follow, otherwise decimals.
    Either,
    /// It parts decimals, and a point parts thousands.
    Decimals,
}

/// A number without its sign, unit and multiple.
#[derive(Debug, Clone, PartialEq)]
pub struct Numeral<'t> {
    /// The value with its exponent, without a multiple such as `K`.
    pub value: f64,
    /// The power of ten of the last digit.
    pub last: i32,
    /// Zeros at the end of a whole number.
    pub zeros: usize,
    /// Number of digits before the point.
    pub digits: usize,
    /// True without decimals and exponent.
    pub is_whole: bool,
    /// The text after the number.
    pub rest: &'t str,
}

/// Parses the number at the start of a text; `None` if there is none.
#[must_use]
pub fn numeral(text: &str, comma: Comma) -> Option<Numeral<'_>> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',');
    let end = text.find(|letter: char| !is_of_number(letter)).unwrap_or(text.len());
    let behind = &text[end..];
    // A point or a comma after a number ends a sentence, unless an exponent follows: `7.E+05`.
    let digits = match exponent(behind) {
        Some((exponent, _)) if exponent != 0 => &text[..end],
        _ => text[..end].trim_end_matches([',', '.']),
    };
    let (plain, decimals) = plain(digits, comma)?;
    let (exponent, rest) = match digits.len() < end {
        true => (0, &text[digits.len()..]),
        false => exponent(behind)?,
    };
    let value = plain.parse::<f64>().ok()? * 10f64.powi(exponent);
    let whole = plain.split('.').next().unwrap_or_default();
    let zeros = if decimals > 0 { 0 } else { whole.bytes().rev().take_while(|digit| *digit == b'0').count() };
    let (last, is_whole) = (exponent - decimals, decimals == 0 && exponent == 0);
    value.is_finite().then_some(Numeral { value, last, zeros, digits: whole.len(), is_whole, rest })
}

/// Returns the exponent of `E+07` at the start of a text, and the text after it. Digits must
/// follow the letter; otherwise it is of a unit.
fn exponent(rest: &str) -> Option<(i32, &str)> {
    let Some(behind) = rest.strip_prefix(['E', 'e']) else { return Some((0, rest)) };
    let signed = behind.strip_prefix(['+', '-']).unwrap_or(behind);
    let end = signed.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(signed.len());
    // The multiple of Oracle's largest numbers of rows.
    if rest == "E" {
        return Some((0, rest));
    }
    let at = behind.len() - signed.len() + end;
    let exponent: i32 = behind[..at].parse().ok()?;
    (exponent.abs() <= 300).then_some((exponent, &behind[at..]))
}

/// Returns the digits with a decimal point and without groups, and the number of decimals.
fn plain(digits: &str, comma: Comma) -> Option<(String, i32)> {
    let (group, point) = if comma == Comma::Decimals { ('.', ',') } else { (',', '.') };
    let (whole, fraction) = digits.split_once(point).unwrap_or((digits, ""));
    let decimals = |fraction: &str| i32::try_from(fraction.len()).ok();
    if fraction.contains(['.', ',']) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut groups = whole.split(group);
    let first = groups.next().unwrap_or_default();
    let (mut behind, mut is_grouped) = (0, true);
    for group in groups {
        behind += 1;
        is_grouped &= group.len() == 3;
    }
    if behind == 0 {
        return Some((format!("{whole}.{fraction}"), decimals(fraction)?));
    }
    if is_grouped && (1..=3).contains(&first.len()) {
        return Some((format!("{}.{fraction}", whole.replace(group, "")), decimals(fraction)?));
    }
    let is_decimal = comma != Comma::Groups && behind == 1 && fraction.is_empty() && !digits.contains(point);
    let (whole, fraction) = whole.split_once(group)?;
    is_decimal.then_some(())?;
    Some((format!("{whole}.{fraction}"), decimals(fraction)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, comma: Comma, expected: Option<(f64, i32, &str)>) {
        let found = numeral(text, comma).map(|found| (found.value, found.last, found.rest));
        assert_eq!(found, expected, "{text} {comma:?}");
    }

    #[test]
    fn groups_decimals_and_exponents_are_told_apart() {
        for (text, value, last, rest) in [
            ("1,234", 1234.0, 0, ""),
            ("7.E+05", 700_000.0, 5, ""),
            (".039M", 0.039, -3, "M"),
            ("1e6 rows", 1_000_000.0, 6, " rows"),
            ("4.33.", 4.33, -2, "."),
            ("16,800 TPS", 16_800.0, 0, " TPS"),
        ] {
            check(text, Comma::Either, Some((value, last, rest)));
        }
        check("17,01", Comma::Either, Some((17.01, -2, "")));
        check("17,01", Comma::Groups, None);
        check("60,00 (mins)", Comma::Decimals, Some((60.0, -2, " (mins)")));
        check("139.819", Comma::Decimals, Some((139_819.0, 0, "")));
        check("1.139.819,5", Comma::Decimals, Some((1_139_819.5, -1, "")));
        for text in ["", ".", ",", "fast", "1,23,456", "4..3", "1e", "1e999", "1e+"] {
            check(text, Comma::Either, None);
        }
    }
}
