//! NUMBER against exact decimal arithmetic: text, bytes, order.

use super::*;
use proptest::prelude::*;

fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    parse_number(text, &mut bytes).unwrap_or_else(|error| panic!("{text}: {error}"));
    bytes
}

fn encoded_pair(unscaled: i128, scale: i8) -> Vec<u8> {
    let mut bytes = vec![7];
    encode_number(unscaled, scale, &mut bytes);
    assert_eq!(bytes.remove(0), 7);
    bytes
}

/// Text in, bytes in hex and text out.
fn check(text: &str, hex: &str, expect: &str) {
    let bytes = encoded(text);
    let found: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(found.join(" "), hex, "{text}");
    assert_eq!(number_to_string(&bytes).unwrap(), expect, "{text}");
}

#[test]
fn the_bytes_are_the_documented_ones() {
    check("0", "80", "0");
    check("-0.00", "80", "0");
    check("1", "C1 02", "1");
    check("10", "C1 0B", "10");
    check("100", "C2 02", "100");
    check("123", "C2 02 18", "123");
    check("12345.6", "C3 02 18 2E 3D", "12345.6");
    check("-1", "3E 64 66", "-1");
    check("-12", "3E 59 66", "-12");
    check("-123.45", "3D 64 4E 38 66", "-123.45");
    check("0.5", "C0 33", "0.5");
    check(".05", "C0 06", "0.05");
    check("0.005", "BF 33", "0.005");
    check("1e-130", "80 02", "1E-130");
    check("-1e-130", "7F 64 66", "-1E-130");
    check("9.9e125", "FF 64", "9.9E+125");
    check("1000000", "C4 02", "1000000");
    check("+12.50", "C1 0D 33", "12.5");
    check("5.", "C1 06", "5");
    check("1e3", "C2 0B", "1000");
    check("0012E-1", "C1 02 15", "1.2");
    check("00000000000000000000000000000000000000000000000000.10", "C0 0B", "0.1");
}

#[test]
fn thirty_eight_digits_are_kept_and_thirty_nine_refused() {
    let digits = "12345678901234567890123456789012345678";
    for (text, bytes) in [
        (digits.to_owned(), 20),
        (format!("-{digits}"), 21),
        (format!("1.{}", &digits[1..]), 21),
        (format!("-1.{}", &digits[1..]), 21),
    ] {
        assert_eq!(encoded(&text).len(), bytes, "{text}");
        assert_eq!(number_to_string(&encoded(&text)).unwrap(), text);
    }
    assert_eq!(encoded(&format!("{digits}000")), encoded(&format!("{digits}e3")));
    let mut out = vec![9];
    let error = parse_number(format!("{digits}9"), &mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a NUMBER keeps 38 significant digits and does not round; this number has 39"
    );
    assert_eq!(try_encode_number(i128::MAX, 0, &mut out), Err(NumberError::TooManyDigits { digits: 39 }));
    assert_eq!(out, [9]);
}

#[test]
#[should_panic(expected = "38 significant digits")]
fn the_unchecked_encoder_stops_at_thirty_nine_digits() {
    encode_number(i128::MIN, 0, &mut Vec::new());
}

#[test]
fn numbers_out_of_range_are_refused() {
    let mut out = Vec::new();
    for text in ["1e126", "-1e126", "1e-131", "1e99999999999999999999", "1e-99999999999999999999"] {
        assert_eq!(parse_number(text, &mut out), Err(NumberError::OutOfRange), "{text}");
    }
    assert_eq!(try_encode_number(1, -127, &mut out), Err(NumberError::OutOfRange));
    assert!(parse_number("0e999999", &mut out).is_ok());
}

#[test]
fn what_is_not_a_number_is_refused() {
    for text in [
        "", "-", ".", "+.", "1.2.3", "12x", " 1", "1 ", "1,5", "e5", "1e", "1e+", "--1", "NaN", "inf",
        "0x10", "1e5.0",
    ] {
        let error = parse_number(text, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), format!("{text:?} is not a number"));
    }
}

#[test]
fn the_shape_counts_digits_around_the_point() {
    let shape = |text: &str| {
        let shape = parse_number(text, &mut Vec::new()).unwrap();
        (shape.integer_digits, shape.fraction_digits)
    };
    assert_eq!(shape("12.50"), (2, 1));
    assert_eq!(shape("1200"), (4, -2));
    assert_eq!(shape("0.001"), (-2, 3));
    assert_eq!(shape("0.0"), (0, 0));
    assert_eq!(shape("-1.5e10"), (11, -9));
    assert_eq!(shape("1234567890123456789012345678.9"), (28, 1));
}

#[test]
fn bytes_no_encoder_makes_are_refused() {
    let cases: [&[u8]; 11] = [
        &[],
        &[0xC1],
        &[0xC1, 0x01],
        &[0xC1, 0x02, 0x01],
        &[0xC1, 0x65 + 1],
        &[0xC1, 0x00],
        &[0x3E, 0x64],
        &[0x3E, 0x66],
        &[0x3E, 0x65, 0x66],
        &[0xC1; 22],
        &[0x3E; 30],
    ];
    for bytes in cases {
        assert!(matches!(number_to_string(bytes), Err(NumberError::Malformed { .. })), "{bytes:?}");
    }
    assert_eq!(
        decode_number(&[0xC1, 0x02, 0x01]).unwrap_err().to_string(),
        "bytes [C1 02 01] are not an encoded NUMBER: its first and last base-100 digits are not zero"
    );
}

#[test]
fn numbers_decode_to_integers_where_they_fit() {
    let decode = |text: &str| decode_number(&encoded(text));
    assert_eq!(decode("100"), Ok((100, 0)));
    assert_eq!(decode("-12.50"), Ok((-125, 1)));
    assert_eq!(decode("0"), Ok((0, 0)));
    assert_eq!(decode("1e37"), Ok((10_i128.pow(37), 0)));
    assert_eq!(decode("1e38"), Ok((1, -38)));
    assert_eq!(decode("1.5e-100"), Ok((15, 101)));
    assert_eq!(
        decode("1e-130").unwrap_err().to_string(),
        "1E-130 cannot be given as an integer and a power of ten"
    );
}

fn unscaled() -> impl Strategy<Value = i128> {
    const MAX: i128 = 10_i128.pow(38) - 1;
    prop_oneof![-200_i128..200, -100_000_000_i128..100_000_000, any::<i64>().prop_map(i128::from), -MAX..=MAX]
}

/// Numbers as text, many of them close to each other.
fn decimal_text() -> impl Strategy<Value = (bool, String, i32)> {
    (any::<bool>(), "[1-9][0-9]{0,36}", prop_oneof![-5_i32..5, -120_i32..80])
}

/// The order of `(negative, digits, exponent)` worked out on the digits.
fn model_order(one: &(bool, String, i32), two: &(bool, String, i32)) -> Ordering {
    let key = |(_, digits, exponent): &(bool, String, i32)| {
        (digits.len() as i32 + exponent, digits.trim_end_matches('0').to_owned())
    };
    match (one.0, two.0) {
        (false, false) => key(one).cmp(&key(two)),
        (true, true) => key(two).cmp(&key(one)),
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn integers_return_from_their_bytes(unscaled in unscaled(), scale in -80_i8..=80) {
        let bytes = encoded_pair(unscaled, scale);
        prop_assert!(bytes.len() <= NUMBER_BYTES_MAX);
        let (found, found_scale) = decode_number(&bytes).unwrap();
        // The value is the same in another scale, and its bytes are the same.
        prop_assert_eq!(encoded_pair(found, found_scale), &bytes[..]);
        prop_assert_eq!(encoded(&format!("{unscaled}e{}", -i32::from(scale))), &bytes[..]);
        if found_scale == scale {
            prop_assert_eq!(found, unscaled);
        }
    }

    #[test]
    fn short_numbers_of_every_scale_agree_with_the_long_way(unscaled in any::<u64>(), scale in -90_i8..=127, negative: bool) {
        let signed = if negative { -i128::from(unscaled) } else { i128::from(unscaled) };
        let mut bytes = Vec::new();
        let whole = try_encode_number(signed, scale, &mut bytes);
        if unscaled != 0 {
            let large = Encoded::large(negative, u128::from(unscaled), i32::from(scale));
            match (whole, large) {
                (Ok(()), Ok(large)) => prop_assert_eq!(&bytes[..], &large.bytes()[1..1 + large.len()]),
                (Err(one), Err(two)) => prop_assert_eq!(one, two),
                _ => prop_assert!(false, "one way fails, the other does not"),
            }
        }
    }

    #[test]
    fn text_returns_from_bytes(decimal in decimal_text()) {
        let text = format!("{}{}e{}", if decimal.0 { "-" } else { "" }, decimal.1, decimal.2);
        let bytes = encoded(&text);
        prop_assert_eq!(encoded(&number_to_string(&bytes).unwrap()), bytes);
    }

    #[test]
    fn byte_order_is_number_order(one in decimal_text(), two in decimal_text()) {
        let encode = |(negative, digits, exponent): &(bool, String, i32)| {
            encoded(&format!("{}{digits}e{exponent}", if *negative { "-" } else { "" }))
        };
        prop_assert_eq!(encode(&one).cmp(&encode(&two)), model_order(&one, &two));
    }

    #[test]
    fn byte_order_is_integer_order(one in unscaled(), two in unscaled(), scale in 0_i8..4) {
        prop_assert_eq!(encoded_pair(one, scale).cmp(&encoded_pair(two, scale)), one.cmp(&two));
    }

    #[test]
    fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
        if let Ok(text) = number_to_string(&bytes) {
            prop_assert_eq!(encoded(&text), bytes);
        }
    }

    #[test]
    fn mantissas_of_valid_digits_return(head: u8, pairs in proptest::collection::vec(1_u8..=101, 1..22)) {
        let mut bytes = vec![head];
        bytes.extend(pairs);
        if let Ok(text) = number_to_string(&bytes) {
            prop_assert_eq!(encoded(&text), bytes);
        }
    }

    #[test]
    fn any_text_parses_or_fails(text in "[-+]?[0-9]{0,45}\\.?[0-9]{0,45}([eE][-+]?[0-9]{1,4})?") {
        let _ = parse_number(text, &mut Vec::new());
    }
}

fn digit_code(bytes: &[u8]) -> Option<DigitCode> {
    let mut padded = [0; 8];
    let first = bytes.len().min(8);
    padded[..first].copy_from_slice(&bytes[..first]);
    DigitCode::decode(u64::from_be_bytes(padded), bytes.len())
}

/// The digit code of an integer reads back, as a word and as an integer.
fn check_integer(value: i64) {
    let bytes = encoded_pair(i128::from(value), 0);
    let code = digit_code(&bytes);
    if !INTEGER_WORDS.contains(&value) {
        assert_eq!(code, None, "{value}");
        return;
    }
    let code = code.unwrap_or_else(|| panic!("{value} has no code"));
    let (word, length) = code.encode();
    assert_eq!(&word.to_be_bytes()[..length as usize], bytes, "{value}");
    assert_eq!(word.to_be_bytes()[length as usize..], vec![0; 8 - length as usize], "{value}");
    assert_eq!(i64::from(code), value);
    // Bytes after the number are ignored.
    let followed = word | if length == 8 { 0 } else { u64::MAX >> (8 * length) };
    assert_eq!(DigitCode::decode(followed, length as usize), Some(code), "{value}");
}

#[test]
fn integers_of_a_word_go_there_and_back() {
    for power in 0..17 {
        let ten = 10i64.pow(power);
        for value in [ten - 1, ten, ten + 1] {
            check_integer(value);
            check_integer(-value);
        }
    }
}

#[test]
fn what_is_no_integer_of_a_word_is_none() {
    for text in ["0.5", "-0.5", "12.01", "1e14", "-1e12", "1e100"] {
        assert_eq!(digit_code(&encoded(text)), None, "{text}");
    }
    for bytes in [&[][..], &[0xC1], &[0x3E, 0x64], &[0x3E, 0x66], &[0x80, 2], &[0xC7, 2, 2, 2, 2, 2, 2, 2, 2]]
    {
        assert_eq!(digit_code(bytes), None, "{bytes:02X?}");
    }
}

proptest! {
    #[test]
    fn any_integer_goes_there_and_back(value in -2_000_000_000_000i64..200_000_000_000_000) {
        check_integer(value);
        check_integer(value % 100_000);
    }

    #[test]
    fn digit_codes_order_as_integers(one in -30_000i64..30_000, two in -30_000i64..30_000) {
        let code = |value: i64| digit_code(&encoded_pair(i128::from(value), 0)).expect("small");
        prop_assert_eq!(code(one).cmp(&code(two)), one.cmp(&two));
    }
}
