//! The exact sum of encoded NUMBERs, without decoding each to decimal digits.
//!
//! A NUMBER is `m * 100^e` with an integer m of its base-100 digits. Values of one exponent are
//! added as integers, so an addition is a loop over the digits and one 128-bit addition. Values
//! with more than nine base-100 digits, which no machine word holds, are decoded.
//!
//! Limits: the total of each exponent is below 2^127. A sum beyond it, or beyond 38 digits, is an
//! error.

use crate::number::{NUMBER_BYTES_MAX, NumberError, decode_number};
use std::fmt;

/// The exponents of a last base-100 digit: those of a first one, less up to 19 digits.
const EXPONENTS: usize = 160;
/// Place of exponent 0 among them.
const ZERO_EXPONENT: i32 = 90;
const EXPONENT_BIAS: i32 = 193;
/// Base-100 digits whose integer a word holds.
const WORD_DIGITS: usize = 9;
const NEGATIVE_END: u8 = 102;

/// A sum of encoded numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberSum {
    /// Sum of the integers of each exponent.
    parts: Box<[i128; EXPONENTS]>,
    count: u64,
}

impl Default for NumberSum {
    fn default() -> NumberSum {
        NumberSum { parts: Box::new([0; EXPONENTS]), count: 0 }
    }
}

impl NumberSum {
    /// Adds an encoded number.
    ///
    /// # Errors
    /// If the bytes are not an encoded NUMBER, or the sum leaves its range.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), NumberError> {
        match word_of(bytes) {
            Some((integer, exponent)) => self.add_part(i128::from(integer), exponent)?,
            None => self.add_decoded(bytes)?,
        }
        self.count += 1;
        Ok(())
    }

    #[inline]
    fn add_part(&mut self, integer: i128, exponent: i32) -> Result<(), NumberError> {
        let part = &mut self.parts[(exponent + ZERO_EXPONENT) as usize];
        *part = part.checked_add(integer).ok_or(NumberError::OutOfRange)?;
        Ok(())
    }

    #[cold]
    fn add_decoded(&mut self, bytes: &[u8]) -> Result<(), NumberError> {
        let (unscaled, scale) = decode_number(bytes)?;
        // An odd scale is raised to the even one of base 100.
        let scale = i32::from(scale);
        let raised = if scale % 2 == 0 { Some(unscaled) } else { unscaled.checked_mul(10) };
        self.add_part(raised.ok_or(NumberError::OutOfRange)?, -((scale + scale.rem_euclid(2)) / 2))
    }

    /// Adds the sum of other numbers.
    ///
    /// # Errors
    /// If the sum leaves its range.
    pub fn merge(&mut self, other: &NumberSum) -> Result<(), NumberError> {
        for (mine, theirs) in self.parts.iter_mut().zip(other.parts.iter()) {
            *mine = mine.checked_add(*theirs).ok_or(NumberError::OutOfRange)?;
        }
        self.count += other.count;
        Ok(())
    }

    /// Returns the number of values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total as `unscaled / 10^scale`, with the smallest scale that is not negative.
    ///
    /// # Errors
    /// If the total has more digits than an `i128` holds.
    pub fn total(&self) -> Result<(i128, u32), NumberError> {
        let Some(lowest) = self.parts.iter().position(|part| *part != 0) else { return Ok((0, 0)) };
        let lowest = (lowest as i32 - ZERO_EXPONENT).min(0);
        let mut total: i128 = 0;
        for part in self.parts[(lowest + ZERO_EXPONENT) as usize..].iter().rev() {
            let shifted = total.checked_mul(100).and_then(|total| total.checked_add(*part));
            total = shifted.ok_or(NumberError::OutOfRange)?;
        }
        let mut scale = 2 * lowest.unsigned_abs();
        while scale > 0 && total % 10 == 0 {
            total /= 10;
            scale -= 1;
        }
        Ok((total, scale))
    }
}

impl fmt::Display for NumberSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok((total, scale)) = self.total() else { return f.pad("beyond 38 digits") };
        let digits = format!("{:0width$}", total.unsigned_abs(), width = scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        let sign = if total < 0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        f.pad(&format!("{sign}{whole}{point}{fraction}"))
    }
}

/// Returns the integer of an encoded number's digits and the exponent of the last one; `None` for
/// numbers of more digits and for bytes that are no number.
#[inline]
fn word_of(bytes: &[u8]) -> Option<(i64, i32)> {
    let (&head, digits) = bytes.split_first()?;
    if digits.len() > WORD_DIGITS {
        return None;
    }
    if head > 0x80 {
        let exponent = i32::from(head) - EXPONENT_BIAS + 1 - digits.len() as i32;
        let mut integer = 0;
        for &digit in digits {
            let digit = digit.wrapping_sub(1);
            if digit > 99 {
                return None;
            }
            integer = integer * 100 + i64::from(digit);
        }
        return (!digits.is_empty()).then_some((integer, exponent));
    }
    if head == 0x80 {
        return digits.is_empty().then_some((0, 0));
    }
    let digits = digits.strip_suffix(&[NEGATIVE_END])?;
    let exponent = i32::from(!head) - EXPONENT_BIAS + 1 - digits.len() as i32;
    let mut integer = 0;
    for &digit in digits {
        if !(2..=101).contains(&digit) {
            return None;
        }
        integer = integer * 100 - i64::from(101 - digit);
    }
    (!digits.is_empty()).then_some((integer, exponent))
}

const _: () = assert!(NUMBER_BYTES_MAX == 21, "a last digit lies at most 19 places below the first");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{encode_number, parse_number};

    fn sum_of(texts: &[&str]) -> NumberSum {
        let mut sum = NumberSum::default();
        for text in texts {
            let mut bytes = Vec::new();
            parse_number(text, &mut bytes).expect("a number");
            sum.add(&bytes).expect("in range");
        }
        sum
    }

    #[test]
    fn sums_are_exact_for_every_sign_scale_and_length() {
        let check = |texts: &[&str], expect: &str| assert_eq!(sum_of(texts).to_string(), expect, "{texts:?}");
        check(&[], "0");
        check(&["0", "1", "-1"], "0");
        check(&["0.05", "12.5", "-3"], "9.55");
        check(&["1200", "34", "5600000"], "5601234");
        check(&["0.001", "-0.0001", "100"], "100.0009");
        check(&["99999999999999999999", "1"], "100000000000000000000");
        check(&["1234567890123456789.5", "-1234567890123456789.4"], "0.1");
        check(&["-12345678901234567890123456", "1"], "-12345678901234567890123455");
        check(&["0.00000000000000000000001", "0.00000000000000000000009"], "0.0000000000000000000001");
    }

    #[test]
    fn a_sum_of_many_values_equals_that_of_their_integers() {
        let (mut sum, mut parts, mut expected) = (NumberSum::default(), NumberSum::default(), 0_i128);
        let mut state = 7_u64;
        for count in 0..5000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = i128::from((state >> 8) as i64 >> (state & 31));
            let value = if count % 3 == 0 { -value } else { value };
            let mut bytes = Vec::new();
            encode_number(value, 2, &mut bytes);
            let part = if count % 2 == 0 { &mut sum } else { &mut parts };
            part.add(&bytes).expect("in range");
            expected += value;
        }
        sum.merge(&parts).expect("in range");
        let (total, scale) = sum.total().expect("in range");
        assert_eq!((total * 10_i128.pow(2 - scale), sum.count()), (expected, 5000));
    }

    #[test]
    fn bytes_that_are_no_number_are_refused_and_large_sums_too() {
        for bytes in [&[][..], &[0xC1], &[0xC1, 0], &[0xC1, 102], &[0x3E, 1, 102], &[0x80, 1]] {
            assert!(NumberSum::default().add(bytes).is_err(), "{bytes:?}");
        }
        let most = "9".repeat(38);
        let mut sum = sum_of(&[&most]);
        let mut bytes = Vec::new();
        parse_number(&most, &mut bytes).expect("a number");
        assert!((0..10).any(|_| sum.add(&bytes).is_err()), "2^127 is below 1.8e38");
        assert_eq!(sum_of(&["1e100", "1"]).to_string(), "beyond 38 digits");
    }
}
