//! NUMBER: a decimal number as bytes that compare as numbers do.
//!
//! ```text
//! zero       80
//! positive   193+e   d+1  d+1  ...              e.g. 12345.6 = C3 02 18 2E 3D
//! negative    62-e   101-d  101-d  ...  102     e.g.     -12 = 3E 59 66
//! ```
//!
//! This is the form that Oracle documents. A number is written in base 100, as `d0.d1d2... *
//! 100^e`. The first and the last digit are not zero, so the encoding of a value is unique. The
//! exponent comes first, so the larger magnitude sorts later. A negative number has exponent and
//! digits complemented and ends in 102, above any digit. So of two that share their first digits,
//! the longer (more negative) one sorts first. With all 20 digits used no longer one exists, and
//! the 102 is omitted. A value takes 1 to 21 bytes: a quantity two, a price four.
//! Magnitudes range from 1e-130 to just below 1e126. There are no infinities and no NaN.

use std::cmp::Ordering;
use std::fmt;

/// Longest encoding: exponent and 20 base-100 digits.
pub const NUMBER_BYTES_MAX: usize = 21;

/// Most decimal digits from the first that is not zero to the last.
pub const SIGNIFICANT_DIGITS_MAX: u32 = 38;

/// 38 decimal digits take at most 20 base-100 digits, the first of which
/// may hold one decimal digit.
const MANTISSA_BYTES_MAX: usize = 20;

const ZERO: u8 = 0x80;
const EXPONENT_BIAS: i32 = 193;
const EXPONENT_MIN: i32 = -65;
const EXPONENT_MAX: i32 = 62;
/// Above every complemented digit, which are 2 to 101.
const NEGATIVE_END: u8 = 102;

/// Bytes, a text or a pair of integers that are no NUMBER.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text is not a decimal number.
    #[error("{text:?} is not a number")]
    NotANumber {
        /// The text as found, cut at 40 bytes.
        text: String,
    },
    /// More digits than a NUMBER keeps.
    #[error("a NUMBER keeps 38 significant digits and does not round; this number has {digits}")]
    TooManyDigits {
        /// Decimal digits from the first to the last that is not zero.
        digits: u32,
    },
    /// The magnitude is outside 1e-130 to 1e126.
    #[error("the number is outside the range of a NUMBER, 1e-130 to below 1e126")]
    OutOfRange,
    /// The bytes are not an encoded NUMBER.
    #[error("bytes [{}] are not an encoded NUMBER: {reason}", crate::value::hex(found))]
    Malformed {
        /// The bytes, cut at 24.
        found: Vec<u8>,
        /// Rule that the bytes break.
        reason: &'static str,
    },
    /// The number does not fit an `i128` and an `i8`.
    #[error("{text} cannot be given as an integer and a power of ten")]
    NotRepresentable {
        /// The number as decimal text.
        text: String,
    },
}

/// Digits of a number on either side of the point, without leading and trailing zeros: 12.50 has 2
/// and 1, 1200 has 4 and -2, 0.001 has -2 and 3. Their sum is the count of significant digits;
/// both are 0 for zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberShape {
    /// Digits left of the point; negative where zeros follow the point.
    pub integer_digits: i16,
    /// Digits right of the point; negative where zeros precede the point.
    pub fraction_digits: i16,
}

impl NumberShape {
    /// True if the number is zero.
    pub fn is_zero(&self) -> bool {
        self.integer_digits == 0 && self.fraction_digits == 0
    }
}

/// Appends the encoding of `unscaled / 10^scale`.
///
/// # Panics
/// On more than 38 significant digits and on a magnitude of 1e126 or more;
/// [`try_encode_number`] returns these as errors.
#[inline]
pub fn encode_number(unscaled: i128, scale: i8, out: &mut Vec<u8>) {
    match Encoded::new(unscaled, i32::from(scale)) {
        Ok(encoded) => encoded.append_to(out),
        Err(error) => panic!("{unscaled} with scale {scale}: {error}"),
    }
}

/// Appends the encoding of `unscaled / 10^scale`. With more than 38 significant digits or a
/// magnitude of 1e126 or more it returns an error and appends nothing.
pub fn try_encode_number(unscaled: i128, scale: i8, out: &mut Vec<u8>) -> Result<(), NumberError> {
    Encoded::new(unscaled, i32::from(scale))?.append_to(out);
    Ok(())
}

/// Appends the encoding of a decimal text such as `-12.50`, `.5` or `1e3` and returns the number's
/// shape. Zeros that do not change the value are dropped.
///
/// Fails, appending nothing, on any other text (spaces and thousands separators included), on more
/// than 38 significant digits and outside the range. Exact, because it uses no floating point.
pub fn parse_number(text: impl AsRef<[u8]>, out: &mut Vec<u8>) -> Result<NumberShape, NumberError> {
    let text = text.as_ref();
    // A fast path, because most numbers are short.
    if let Some(short) = ShortDecimal::parse(text) {
        return Ok(short.encode_to(out));
    }
    let decimal = Decimal::parse(text)?;
    decimal.encode()?.append_to(out);
    Ok(decimal.shape())
}

/// Formats an encoded number as exact decimal text: `-12.5`. A number of more than 40 places gets
/// an exponent, `1.5E-100`, which [`parse_number`] accepts.
///
/// Fails on bytes that are not an encoded number.
pub fn number_to_string(bytes: &[u8]) -> Result<String, NumberError> {
    Ok(Digits::decode(bytes)?.to_string())
}

/// Decodes a number to `(unscaled, scale)` with the value `unscaled / 10^scale`. The scale is the
/// smallest that is not negative, if 38 digits allow it; otherwise the smallest.
///
/// Fails on bytes that are not an encoded number, and where the scale would exceed
/// 127 (magnitudes below about 1e-89).
pub fn decode_number(bytes: &[u8]) -> Result<(i128, i8), NumberError> {
    let digits = Digits::decode(bytes)?;
    let mut unscaled: i128 = 0;
    for &digit in digits.decimals() {
        unscaled = unscaled * 10 + i128::from(digit);
    }
    let mut scale = digits.count as i32 - digits.integer_digits;
    if scale < 0 && digits.integer_digits <= SIGNIFICANT_DIGITS_MAX as i32 {
        unscaled *= 10_i128.pow(scale.unsigned_abs());
        scale = 0;
    }
    let signed = if digits.negative { -unscaled } else { unscaled };
    match i8::try_from(scale) {
        Ok(scale) => Ok((signed, scale)),
        Err(_) => Err(NumberError::NotRepresentable { text: digits.to_string() }),
    }
}

/// Integers whose encoding has at most 8 bytes and so fits a machine word.
pub const INTEGER_WORDS: std::ops::RangeInclusive<i64> = -999_999_999_999..=99_999_999_999_999;

/// An integer of [`INTEGER_WORDS`] by its base-100 digits, 7 bits each, signed: 12345 is `1 << 14 |
/// 23 << 7 | 45`. It orders as the integer does and takes a few more bits. But converting it to and
/// from encoded bytes needs no multiplication or division.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DigitCode(pub i64);

impl DigitCode {
    /// Returns the code of an encoded number in [`INTEGER_WORDS`]; `None` for every other number,
    /// and for most bytes that are no number. `word` is the encoding as a big-endian word; bytes
    /// after the first `length` are ignored.
    ///
    /// No branch depends on the number of digits, which real data makes unpredictable.
    #[inline]
    pub fn decode(word: u64, length: usize) -> Option<DigitCode> {
        let head = (word >> 56) as u32;
        // Digits before the point; with a larger exponent the integer exceeds a word.
        let whole = head.wrapping_sub(FIRST_INTEGER).wrapping_add(1);
        let count = (length as u32).wrapping_sub(1);
        if !(1..=7).contains(&whole) || count > whole || count == 0 {
            return decode_zero_or_negative(word, length);
        }
        let present = first_bytes(length as u32);
        let digits = (word & present).wrapping_sub(EACH & present) << 8;
        Some(DigitCode(squeeze(digits >> (64 - 8 * whole)) as i64))
    }

    /// Returns the encoding as a big-endian word padded with zeros, and its length in bytes.
    #[inline]
    pub fn encode(self) -> (u64, u32) {
        if self.0 <= 0 {
            return encode_zero_or_negative(self);
        }
        let pairs = spread(self.0 as u64);
        let (leading, trailing) = (pairs.leading_zeros() / 8, pairs.trailing_zeros() / 8);
        let length = 1 + 8 - leading - trailing;
        let digits = (pairs << (8 * leading)) + EACH;
        let head = u64::from(FIRST_INTEGER + 7 - leading);
        ((head << 56 | digits >> 8) & first_bytes(length), length)
    }
}

impl From<DigitCode> for i64 {
    fn from(code: DigitCode) -> i64 {
        let pairs = spread(code.0.unsigned_abs()).to_be_bytes();
        let value = pairs.iter().fold(0, |value, pair| value * 100 + i64::from(*pair));
        if code.0 < 0 { -value } else { value }
    }
}

/// The exponent byte of the integers 1 to 99.
const FIRST_INTEGER: u32 = EXPONENT_BIAS as u32;
/// A one in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Returns a big-endian word with its first `count` bytes set to ones, at most 8.
#[inline]
pub fn first_bytes(count: u32) -> u64 {
    u64::MAX.checked_shl(64 - 8 * count.min(8)).unwrap_or(0)
}

/// Joins eight bytes of at most 7 bits each, without their highest bits.
#[inline]
fn squeeze(bytes: u64) -> u64 {
    let pairs = bytes & 0x007F_007F_007F_007F | (bytes & 0x7F00_7F00_7F00_7F00) >> 1;
    let fours = pairs & 0x0000_3FFF_0000_3FFF | (pairs & 0x3FFF_0000_3FFF_0000) >> 2;
    fours & 0x0FFF_FFFF | (fours & 0x0FFF_FFFF_0000_0000) >> 4
}

/// Splits the bits again: the inverse of [`squeeze`].
#[inline]
fn spread(bits: u64) -> u64 {
    let fours = bits & 0x0FFF_FFFF | (bits & 0x00FF_FFFF_F000_0000) << 4;
    let pairs = fours & 0x0000_3FFF_0000_3FFF | (fours & 0x0FFF_C000_0FFF_C000) << 2;
    pairs & 0x007F_007F_007F_007F | (pairs & 0x3F80_3F80_3F80_3F80) << 1
}

#[cold]
fn decode_zero_or_negative(word: u64, length: usize) -> Option<DigitCode> {
    let bytes = word.to_be_bytes();
    let (&head, digits) = bytes.get(..length)?.split_first()?;
    if head == ZERO && digits.is_empty() {
        return Some(DigitCode(0));
    }
    let digits = digits.strip_suffix(&[NEGATIVE_END]).filter(|digits| !digits.is_empty())?;
    let whole = u32::from(!head).checked_sub(FIRST_INTEGER)? as usize + 1;
    let zeros = whole.checked_sub(digits.len()).filter(|_| whole <= 6)?;
    let code =
        digits.iter().fold(0, |code, digit| code << 7 | i64::from(NEGATIVE_END - 1 - digit.clamp(&2, &101)));
    Some(DigitCode(-(code << (7 * zeros))))
}

#[cold]
fn encode_zero_or_negative(code: DigitCode) -> (u64, u32) {
    if code.0 == 0 {
        return (u64::from(ZERO) << 56, 1);
    }
    let encoded = Encoded::small(true, i64::from(code).unsigned_abs(), 0);
    let length = encoded.len() as u32;
    let word = u64::from_be_bytes(encoded.bytes()[1..9].try_into().expect("eight bytes"));
    (word & first_bytes(length), length)
}

/// An encoded number that owns its bytes, ordered as numbers are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(Box<[u8]>);

impl Number {
    /// Encodes `unscaled / 10^scale`; fails where [`try_encode_number`] does.
    pub fn new(unscaled: i128, scale: i8) -> Result<Self, NumberError> {
        let mut bytes = Vec::new();
        try_encode_number(unscaled, scale, &mut bytes)?;
        Ok(Number(bytes.into()))
    }

    /// Parses decimal text; fails where [`parse_number`] does.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, NumberError> {
        let mut bytes = Vec::new();
        parse_number(text, &mut bytes)?;
        Ok(Number(bytes.into()))
    }

    /// Copies encoded bytes; fails where they are not an encoded number.
    pub fn from_encoded(bytes: &[u8]) -> Result<Self, NumberError> {
        Digits::decode(bytes)?;
        Ok(Number(bytes.into()))
    }

    /// Returns the encoded bytes, at most 21.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match number_to_string(&self.0) {
            Ok(text) => f.pad(&text),
            Err(_) => unreachable!("a Number holds bytes that were checked"),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({self})")
    }
}

/// An encoding that is about to be appended: `[length][bytes]`, so that a row can take it with its
/// length. It is held in little-endian words, because single bytes would have to reach memory
/// before a copy by words could read them. The size is fixed so that copying needs no call; bytes
/// after the length are truncated.
pub(crate) struct Encoded([u64; 3]);

impl Encoded {
    /// Encodes `unscaled / 10^scale`, or returns why it cannot.
    #[inline]
    pub(crate) fn new(unscaled: i128, scale: i32) -> Result<Self, NumberError> {
        let magnitude = unscaled.unsigned_abs();
        Encoded::from_parts(unscaled < 0, magnitude, scale)
    }

    #[inline]
    fn from_parts(negative: bool, magnitude: u128, scale: i32) -> Result<Self, NumberError> {
        // Ten times this still fits, for an odd scale, and with these scales
        // no exponent leaves the range.
        const SMALL_MAX: u128 = (u64::MAX / 10) as u128;
        if magnitude == 0 {
            return Ok(Encoded([u64::from_le_bytes([1, ZERO, 0, 0, 0, 0, 0, 0]), 0, 0]));
        }
        if magnitude <= SMALL_MAX && (-80..=127).contains(&scale) {
            return Ok(Encoded::small(negative, magnitude as u64, scale));
        }
        Encoded::large(negative, magnitude, scale)
    }

    /// Encodes a magnitude up to a tenth of a u64's. Numbers below 1e8 and 1e16 take no branch on
    /// their digits: real data has all lengths, so that half of the branches would be mispredicted.
    #[inline]
    fn small(negative: bool, magnitude: u64, scale: i32) -> Self {
        let odd = scale & 1;
        let shifted = if odd == 1 { magnitude * 10 } else { magnitude };
        let half_scale = (scale + odd) / 2;
        if shifted < 100_000_000 {
            let pairs = four_pairs(shifted as u32);
            let leading = pairs.leading_zeros() / 8;
            let count = 4 - leading - pairs.trailing_zeros() / 8;
            let digits = complement_pairs(u64::from(pairs) << (32 + 8 * leading), negative);
            return Encoded::assemble(digits, count as usize, 3 - leading as i32 - half_scale, negative);
        }
        if shifted < 10_000_000_000_000_000 {
            let (high, low) = (shifted / 100_000_000, shifted % 100_000_000);
            let pairs = u64::from(four_pairs(high as u32)) << 32 | u64::from(four_pairs(low as u32));
            let leading = pairs.leading_zeros() / 8;
            let count = 8 - leading - pairs.trailing_zeros() / 8;
            let digits = complement_pairs(pairs << (8 * leading), negative);
            return Encoded::assemble(digits, count as usize, 7 - leading as i32 - half_scale, negative);
        }
        Encoded::long(negative, shifted, half_scale)
    }

    /// Puts up to eight finished digits, the first on top, after their exponent. Bits below the
    /// last digit are not part of the number.
    #[inline]
    fn assemble(digits: u64, count: usize, exponent: i32, negative: bool) -> Self {
        let head = (EXPONENT_BIAS + exponent) as u8;
        let mut digits = u128::from(digits.swap_bytes());
        if negative {
            digits &= !(0xFF << (8 * count));
            digits |= u128::from(NEGATIVE_END) << (8 * count);
        }
        let length = 1 + count + usize::from(negative);
        let head = if negative { !head } else { head };
        let words = digits << 16 | u128::from(head) << 8 | length as u128;
        Encoded([words as u64, (words >> 64) as u64, 0])
    }

    /// Encodes nine or ten base-100 digits.
    fn long(negative: bool, magnitude: u64, half_scale: i32) -> Self {
        let mut rest = magnitude;
        let count = if rest < 1_000_000_000_000_000_000 { 9 } else { 10 };
        let mut bytes = [0; 24];
        for digit in bytes[2..2 + count].iter_mut().rev() {
            *digit = (rest % 100) as u8 + 1;
            rest /= 100;
        }
        Encoded::finish(bytes, count, count as i32 - 1 - half_scale, negative)
    }

    /// Encodes any number: 39 digits, all exponents.
    fn large(negative: bool, magnitude: u128, scale: i32) -> Result<Self, NumberError> {
        let mut magnitude = magnitude;
        let mut scale = scale;
        while magnitude.is_multiple_of(10) {
            magnitude /= 10;
            scale -= 1;
        }
        let digits = magnitude.ilog10() + 1;
        if digits > SIGNIFICANT_DIGITS_MAX {
            return Err(NumberError::TooManyDigits { digits });
        }
        let mut pairs = [0_u8; MANTISSA_BYTES_MAX];
        let mut first = MANTISSA_BYTES_MAX;
        // Ten times the magnitude may overflow, so an odd scale gives up its last digit first.
        if scale & 1 != 0 {
            first -= 1;
            pairs[first] = (magnitude % 10) as u8 * 10;
            magnitude /= 10;
            scale += 1;
        }
        while magnitude > 0 {
            first -= 1;
            pairs[first] = (magnitude % 100) as u8;
            magnitude /= 100;
        }
        let count = MANTISSA_BYTES_MAX - first;
        let exponent = count as i32 - 1 - scale / 2;
        if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
            return Err(NumberError::OutOfRange);
        }
        let mut bytes = [0; 24];
        for (target, pair) in bytes[2..].iter_mut().zip(&pairs[first..]) {
            *target = pair + 1;
        }
        Ok(Encoded::finish(bytes, count, exponent, negative))
    }

    /// Completes positive base-100 digits at `bytes[2..2 + count]`:
    /// trims, complements, adds the head.
    #[inline]
    fn finish(mut bytes: [u8; 24], mut count: usize, exponent: i32, negative: bool) -> Self {
        while bytes[1 + count] == 1 {
            count -= 1;
        }
        let head = (EXPONENT_BIAS + exponent) as u8;
        if negative {
            bytes[1] = !head;
            for digit in &mut bytes[2..2 + count] {
                *digit = NEGATIVE_END - *digit;
            }
            if count < MANTISSA_BYTES_MAX {
                bytes[2 + count] = NEGATIVE_END;
                count += 1;
            }
        } else {
            bytes[1] = head;
        }
        bytes[0] = 1 + count as u8;
        let (words, _) = bytes.as_chunks();
        Encoded([0, 1, 2].map(|index| u64::from_le_bytes(words[index])))
    }

    /// Returns the length of the encoding in bytes, 1 to 21.
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.0[0] as u8)
    }

    /// Returns the length, the encoding, and padding, which callers truncate.
    #[inline]
    fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let (words, _) = bytes.as_chunks_mut();
        words.iter_mut().zip(self.0).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        bytes
    }

    #[inline]
    fn append_to(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.len();
        out.extend_from_slice(&self.bytes()[1..]);
        out.truncate(end);
    }

    /// Appends the length byte and the bytes.
    #[inline]
    pub(crate) fn append_with_length_to(&self, out: &mut Vec<u8>) {
        let end = out.len() + 1 + self.len();
        out.extend_from_slice(&self.bytes());
        out.truncate(end);
    }
}

/// Splits a number below 1e8 into four base-100 digits, a byte each.
#[inline]
fn four_pairs(number: u32) -> u32 {
    let (high, low) = (number / 10_000, number % 10_000);
    (high / 100) << 24 | (high % 100) << 16 | (low / 100) << 8 | (low % 100)
}

/// Adds 1 to each of eight digits, or subtracts each from 101. No byte carries into the next.
#[inline]
fn complement_pairs(pairs: u64, negative: bool) -> u64 {
    if negative { EACH * 101 - pairs } else { pairs + EACH }
}

/// A decimal text of at most 18 bytes after its sign, without an exponent: `magnitude / 10^scale`,
/// with a magnitude that does not end in zero.
struct ShortDecimal {
    negative: bool,
    magnitude: u64,
    scale: i32,
}

impl ShortDecimal {
    /// Returns `None` for any other text, or an empty one.
    #[inline]
    fn parse(text: &[u8]) -> Option<Self> {
        let (negative, digits) = split_sign(text);
        if digits.len() > 18 {
            return None;
        }
        let mut magnitude: u64 = 0;
        let mut point = None;
        for (index, &byte) in digits.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                magnitude = magnitude * 10 + u64::from(digit);
            } else if byte == b'.' && point.is_none() {
                point = Some(index);
            } else {
                return None;
            }
        }
        if digits.len() == usize::from(point.is_some()) {
            return None;
        }
        let mut scale = point.map_or(0, |point| digits.len() - 1 - point) as i32;
        while magnitude.is_multiple_of(10) && magnitude != 0 {
            magnitude /= 10;
            scale -= 1;
        }
        Some(ShortDecimal { negative, magnitude, scale })
    }

    #[inline]
    fn encode_to(&self, out: &mut Vec<u8>) -> NumberShape {
        if self.magnitude == 0 {
            out.push(ZERO);
            return NumberShape { integer_digits: 0, fraction_digits: 0 };
        }
        Encoded::small(self.negative, self.magnitude, self.scale).append_to(out);
        let digits = self.magnitude.ilog10() as i16 + 1;
        let fraction_digits = self.scale as i16;
        NumberShape { integer_digits: digits - fraction_digits, fraction_digits }
    }
}

/// Any decimal text: `magnitude / 10^scale`, with a magnitude that does not end in zero.
struct Decimal {
    negative: bool,
    magnitude: u128,
    scale: i32,
}

impl Decimal {
    fn parse(text: &[u8]) -> Result<Self, NumberError> {
        let excerpt = || String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        let not_a_number = || NumberError::NotANumber { text: excerpt() };
        let (negative, unsigned) = split_sign(text);
        let (mantissa, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            None => (unsigned, 0),
            Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..]).ok_or_else(not_a_number)?),
        };
        let mut decimal = Decimal { negative, magnitude: 0, scale: 0 };
        let (mut digits, mut zeros, mut places) = (0_u32, 0_u32, 0_i64);
        let (mut point, mut any_digit) = (false, false);
        for &byte in mantissa {
            match byte {
                b'.' if !point => point = true,
                b'0'..=b'9' => {
                    any_digit = true;
                    places += i64::from(point);
                    if byte == b'0' {
                        zeros += u32::from(digits > 0);
                        continue;
                    }
                    digits += zeros + 1;
                    if digits <= SIGNIFICANT_DIGITS_MAX {
                        decimal.magnitude =
                            decimal.magnitude * 10_u128.pow(zeros + 1) + u128::from(byte - b'0');
                    }
                    zeros = 0;
                }
                _ => return Err(not_a_number()),
            }
        }
        if !any_digit {
            return Err(not_a_number());
        }
        if digits > SIGNIFICANT_DIGITS_MAX {
            return Err(NumberError::TooManyDigits { digits });
        }
        let scale = places - i64::from(zeros) - exponent;
        decimal.scale = scale.clamp(-100_000, 100_000) as i32;
        Ok(decimal)
    }

    fn encode(&self) -> Result<Encoded, NumberError> {
        Encoded::from_parts(self.negative, self.magnitude, self.scale)
    }

    /// The caller has checked that the number is in range.
    fn shape(&self) -> NumberShape {
        if self.magnitude == 0 {
            return NumberShape { integer_digits: 0, fraction_digits: 0 };
        }
        let digits = self.magnitude.ilog10() + 1;
        NumberShape {
            integer_digits: (digits as i32 - self.scale) as i16,
            fraction_digits: self.scale as i16,
        }
    }
}

#[inline]
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Parses a signed whole number. A value beyond any NUMBER is clamped to one that still is.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() {
        return None;
    }
    let mut exponent: i64 = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        // Far beyond any number; no text has enough digits to compensate for it.
        exponent = (exponent * 10 + i64::from(byte - b'0')).min(1 << 40);
    }
    Some(if negative { -exponent } else { exponent })
}

/// The decimal digits of an encoded number, the first and the last
/// not zero: `0.d1d2d3... * 10^integer_digits`.
struct Digits {
    negative: bool,
    integer_digits: i32,
    digits: [u8; 2 * MANTISSA_BYTES_MAX],
    start: usize,
    count: usize,
}

impl Digits {
    fn decode(bytes: &[u8]) -> Result<Self, NumberError> {
        let malformed =
            |reason| NumberError::Malformed { found: bytes[..bytes.len().min(24)].to_vec(), reason };
        let (&head, mantissa) = bytes.split_first().ok_or_else(|| malformed("it is empty"))?;
        let mut digits = Digits { negative: false, integer_digits: 0, digits: [0; 40], start: 0, count: 0 };
        if head == ZERO && mantissa.is_empty() {
            return Ok(digits);
        }
        digits.negative = head < ZERO;
        let mantissa = match (digits.negative, mantissa) {
            (true, [front @ .., NEGATIVE_END]) if front.len() < MANTISSA_BYTES_MAX => front,
            (true, all) if all.len() != MANTISSA_BYTES_MAX => {
                return Err(malformed("a negative number ends in 66"));
            }
            (_, all) => all,
        };
        if mantissa.is_empty() || mantissa.len() > MANTISSA_BYTES_MAX {
            return Err(malformed("a number has 1 to 20 base-100 digits"));
        }
        for (index, &byte) in mantissa.iter().enumerate() {
            let pair = if digits.negative { 101_u8.wrapping_sub(byte) } else { byte.wrapping_sub(1) };
            if pair > 99 {
                return Err(malformed("a base-100 digit is out of range"));
            }
            digits.digits[2 * index] = pair / 10;
            digits.digits[2 * index + 1] = pair % 10;
        }
        let exponent = i32::from(if digits.negative { !head } else { head }) - EXPONENT_BIAS;
        digits.trim(2 * mantissa.len(), exponent).map_err(malformed)?;
        Ok(digits)
    }

    /// Drops the zero half of the first and the last base-100 digit.
    fn trim(&mut self, length: usize, exponent: i32) -> Result<(), &'static str> {
        if self.digits[..2] == [0, 0] || self.digits[length - 2..length] == [0, 0] {
            return Err("its first and last base-100 digits are not zero");
        }
        self.start = usize::from(self.digits[0] == 0);
        let end = length - usize::from(self.digits[length - 1] == 0);
        self.count = end - self.start;
        self.integer_digits = 2 * (exponent + 1) - self.start as i32;
        if self.count > SIGNIFICANT_DIGITS_MAX as usize {
            return Err("it has more than 38 decimal digits");
        }
        Ok(())
    }

    fn decimals(&self) -> &[u8] {
        &self.digits[self.start..self.start + self.count]
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PLACES_MAX: i32 = 40;
        if self.count == 0 {
            return f.write_str("0");
        }
        let text: String = self.decimals().iter().map(|digit| char::from(b'0' + digit)).collect();
        let sign = if self.negative { "-" } else { "" };
        let integer = self.integer_digits;
        let fraction = self.count as i32 - integer;
        if integer > PLACES_MAX || fraction > PLACES_MAX {
            let (first, rest) = text.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let exponent = integer - 1;
            return write!(f, "{sign}{first}{point}{rest}E{exponent:+}");
        }
        match integer.cmp(&0) {
            Ordering::Greater if fraction <= 0 => {
                write!(f, "{sign}{text}{:0<1$}", "", fraction.unsigned_abs() as usize)
            }
            Ordering::Greater => {
                let (whole, part) = text.split_at(integer as usize);
                write!(f, "{sign}{whole}.{part}")
            }
            _ => write!(f, "{sign}0.{:0<1$}{text}", "", integer.unsigned_abs() as usize),
        }
    }
}

#[cfg(test)]
mod tests;
