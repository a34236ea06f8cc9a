//! Dates: text, bytes, order, and rejected input.

use super::*;
use proptest::prelude::*;

fn check(text: &str, expect: &str) {
    let found = match DateTime::parse(text) {
        Ok(date) => date.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expect, "{text}");
}

#[test]
fn iso_dates_are_read() {
    check("2024-01-31", "2024-01-31");
    check("2024-02-29", "2024-02-29");
    check("2024-01-31 13:45:00", "2024-01-31 13:45:00");
    check("2024-01-31T13:45:09Z", "2024-01-31 13:45:09");
    check("0001-01-01 00:00:00", "0001-01-01");
    check("9999-12-31 23:59:59", "9999-12-31 23:59:59");
}

#[test]
fn what_is_not_a_date_says_why() {
    for text in ["", "31.01.2024", "2024-1-31", "2024-01-31 13:45", "2024-01-31T13:45:00+01:00", "2024-01-3x"]
    {
        check(text, &format!("{text:?} is not a date; dates are written 2024-01-31 or 2024-01-31 13:45:00"));
    }
    check("2023-02-29", "there is no day 2023-02-29 in the calendar of the years 1 to 9999");
    check("2024-13-01", "there is no day 2024-13-01 in the calendar of the years 1 to 9999");
    check("2024-00-10", "there is no day 2024-00-10 in the calendar of the years 1 to 9999");
    check("2024-01-00", "there is no day 2024-01-00 in the calendar of the years 1 to 9999");
    check("0000-01-01", "there is no day 0000-01-01 in the calendar of the years 1 to 9999");
    check("1900-02-29", "there is no day 1900-02-29 in the calendar of the years 1 to 9999");
    check("2024-01-31 24:00:00", "there is no time 24:00:00; a day runs from 00:00:00 to 23:59:59");
    check(
        "2024-01-31 13:45:00.5",
        "\"2024-01-31 13:45:00.5\" has fractional seconds, which a DATE does not keep",
    );
}

#[test]
fn the_bytes_are_the_documented_ones() {
    let date = DateTime::new(1996, 3, 31, 13, 45, 0).unwrap();
    assert_eq!(date.encode(), [119, 196, 3, 31, 14, 46, 1]);
    assert_eq!(DateTime::decode(&[119, 196, 3, 31, 14, 46, 1]), Ok(date));
}

#[test]
fn other_bytes_are_refused() {
    for bytes in
        [&[][..], &[119; 6], &[119, 196, 2, 30, 1, 1, 1], &[119, 196, 3, 31, 0, 1, 1], &[255; 7], &[0; 7]]
    {
        let error = DateTime::decode(bytes).unwrap_err();
        assert!(matches!(error, DateError::Malformed { .. }), "{bytes:?}");
    }
    assert_eq!(DateTime::decode(&[1, 2]).unwrap_err().to_string(), "bytes [01 02] are not an encoded DATE");
}

#[test]
fn weekdays_are_those_of_the_calendar() {
    let weekday = |text: &str| DateTime::parse(text).unwrap().weekday();
    assert_eq!(weekday("1995-09-04"), Weekday::Monday);
    assert_eq!(weekday("2000-02-29"), Weekday::Tuesday);
    assert_eq!(weekday("2024-01-31"), Weekday::Wednesday);
    assert_eq!(weekday("1970-01-01"), Weekday::Thursday);
    assert_eq!(weekday("1999-12-31"), Weekday::Friday);
    assert_eq!(weekday("0001-01-06"), Weekday::Saturday);
    assert_eq!(weekday("2023-12-31"), Weekday::Sunday);
}

fn any_date() -> impl Strategy<Value = DateTime> {
    (1u16..=9999, 1u8..=12, 1u8..=31, 0u8..24, 0u8..60, 0u8..60)
        .prop_filter_map("a day of the calendar", |(y, m, d, h, mi, s)| DateTime::new(y, m, d, h, mi, s).ok())
}

proptest! {
    #[test]
    fn bytes_and_text_return_the_date(date in any_date()) {
        prop_assert_eq!(DateTime::decode(&date.encode()), Ok(date));
        prop_assert_eq!(DateTime::parse(date.to_string()), Ok(date));
    }

    #[test]
    fn byte_order_is_time_order(one in any_date(), two in any_date()) {
        prop_assert_eq!(one.encode().cmp(&two.encode()), one.cmp(&two));
    }

    #[test]
    fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..10)) {
        if let Ok(date) = DateTime::decode(&bytes) {
            prop_assert_eq!(&date.encode()[..], &bytes[..]);
        }
    }

    #[test]
    fn any_text_parses_or_fails(text in ".{0,30}") {
        let _ = DateTime::parse(text);
    }
}
