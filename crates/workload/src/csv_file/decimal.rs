//! The mark between whole numbers and fractions: a point, or a comma with points between thousands.
//!
//! A comma is read only if it is asked for, because `1,234` is a thousand elsewhere. Rejected:
//! finding it from the values, because one column of `1,234` and `5,678` has both meanings.

use std::borrow::Cow;

/// Mark before the fraction of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecimalMark {
    /// As in `6341.71`, without thousands.
    #[default]
    Point,
    /// As in `6341,71`, with or without points between thousands.
    Comma,
}

impl DecimalMark {
    /// Returns a number as it is written with a point, and another text as it is. A number with a
    /// point that is not between thousands gets a comma, so that it is refused as a number.
    pub(super) fn pointed(self, value: &[u8]) -> Cow<'_, [u8]> {
        let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.,".contains(byte);
        let is_plain = || !value.iter().any(|byte| b".,".contains(byte));
        if self == DecimalMark::Point || !value.iter().all(is_of_number) || is_plain() {
            return Cow::Borrowed(value);
        }
        let (whole, fraction) = match value.iter().position(|byte| *byte == b',') {
            Some(comma) => (&value[..comma], Some(&value[comma + 1..])),
            None => (value, None),
        };
        let points = whole.iter().filter(|byte| **byte == b'.').count();
        let digits = whole.strip_prefix(b"-").or(whole.strip_prefix(b"+")).unwrap_or(whole);
        let groups: Vec<&[u8]> = digits.split(|byte| *byte == b'.').collect();
        let are_thousands = points == 0
            || (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
        match are_thousands {
            true => {
                let mut number: Vec<u8> = whole.iter().copied().filter(|byte| *byte != b'.').collect();
                if let Some(fraction) = fraction {
                    number.push(b'.');
                    number.extend_from_slice(fraction);
                }
                Cow::Owned(number)
            }
            // Two points may be those of a date.
            false if points > 1 => Cow::Borrowed(value),
            false => Cow::Owned(value.iter().map(|byte| if *byte == b'.' { b',' } else { *byte }).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_a_point_and_points_are_between_thousands() {
        let check = |value: &str, expected: &str| {
            let found = DecimalMark::Comma.pointed(value.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected, "{value}");
            assert_eq!(DecimalMark::Point.pointed(value.as_bytes()), value.as_bytes());
        };
        for (value, expected) in [
            ("6.341,71", "6341.71"),
            ("-1.234.567,5", "-1234567.5"),
            ("0,5", "0.5"),
            (",5", ".5"),
            ("1.500", "1500"),
            ("12", "12"),
            ("1.5", "1,5"),
            ("1.50,3", "1,50,3"),
            ("1,2,3", "1.2,3"),
            ("1,234.5", "1.234.5"),
            ("03.04.2021", "03.04.2021"),
            ("2021-04-03", "2021-04-03"),
            ("a.b,c", "a.b,c"),
        ] {
            check(value, expected);
        }
    }
}
