//! Tests keys against a plain comparison of lines, written from the manual of GNU sort.

use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

fn fields(first: usize, last: Option<usize>, delimiter: Option<u8>, compared: Compared) -> SortOrder {
    SortOrder {
        keys: vec![SortKey { part: Part::Fields { first, last, delimiter }, compared }],
        ties: Ties::Bytes,
    }
}

fn record(order: &SortOrder, line: &[u8], offset: u64) -> Vec<u8> {
    let keyed = Keyed::new(Shape::Lines, order, BlockSize::ALL[4], Path::new("in"));
    let mut record = Vec::new();
    keyed.append(line, offset, &mut record).expect("a line that fits");
    let mut back = Vec::new();
    let push = |bytes: &[u8]| {
        back.extend_from_slice(bytes);
        Ok(())
    };
    keyed.write(&record, push).expect("written");
    assert_eq!(back, [line, b"\n"].concat());
    record
}

fn compared(order: &SortOrder, one: &[u8], two: &[u8]) -> Ordering {
    key_of(&record(order, one, 1)).cmp(key_of(&record(order, two, 2)))
}

/// Returns the value of a short number, in millionths.
fn value(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).expect("ASCII").trim_start_matches([' ', '\t']);
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(end);
    let fraction = rest.strip_prefix('.').unwrap_or("");
    let fraction: String =
        fraction.chars().take_while(char::is_ascii_digit).chain("000000".chars()).take(6).collect();
    sign * (whole.parse::<i64>().unwrap_or(0) * 1_000_000 + fraction.parse::<i64>().unwrap_or(0))
}

#[test]
fn numbers_compare_by_value_and_what_is_none_is_zero() {
    let order = SortOrder {
        keys: vec![SortKey { part: Part::Whole, compared: Compared::Numbers }],
        ties: Ties::Bytes,
    };
    let ascending: [&[u8]; 12] = [
        b"-1000",
        b"-12.51",
        b"-12.5",
        b"-.5",
        b"",
        b".000001",
        b"0.5",
        b"1",
        b"1.05",
        b"9",
        b"10",
        b"123456789012345678901",
    ];
    for pair in ascending.windows(2) {
        assert_eq!(compared(&order, pair[0], pair[1]), Ordering::Less, "{pair:?}");
    }
    let equal: [&[u8]; 8] = [b"0", b"-0", b"x", b"-", b"+5", b"-.", b"  0.00", b"e5"];
    let key = |line: &[u8]| {
        let mut key = Vec::new();
        append_number(line, &mut key);
        key
    };
    assert!(equal.iter().all(|line| key(line) == key(b"0")));
    assert_eq!(key(b"007"), key(b" 7.0"));
    assert_eq!(key(b"1e5"), key(b"1"));
}

#[test]
fn fields_are_those_of_gnu_sort() {
    let part = |first, last, delimiter, line: &'static [u8]| {
        String::from_utf8_lossy(Part::Fields { first, last, delimiter }.of(line)).into_owned()
    };
    let comma = Some(b',');
    assert_eq!(part(2, Some(2), comma, b"a,b,c"), "b");
    assert_eq!(part(2, None, comma, b"a,b,c"), "b,c");
    assert_eq!(part(2, Some(3), comma, b"a,b,c,d"), "b,c");
    assert_eq!(part(1, Some(1), comma, b",b"), "");
    assert_eq!(part(3, Some(3), comma, b"a,b"), "");
    assert_eq!(part(2, Some(9), comma, b"a,b"), "b");
    assert_eq!(part(2, Some(2), None, b"one  two\tthree"), "  two");
    assert_eq!(part(1, Some(1), None, b"  one two"), "  one");
    assert_eq!(part(4, Some(4), None, b"one two"), "");
}

#[test]
fn a_line_too_long_is_refused_with_its_place() {
    let order = SortOrder { keys: Vec::new(), ties: Ties::Bytes };
    let keyed = Keyed::new(Shape::Lines, &order, BlockSize::ALL[0], Path::new("in.txt"));
    let line = [b'x'; 2100];
    let error = keyed.append(&line, 77, &mut Vec::new()).expect_err("refused").to_string();
    assert_eq!(
        error,
        "in.txt: the line at byte 77 takes 2100 bytes with its key, and a block has room for 2010; it begins with \
         \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; set db_block_size=32K"
    );
}

#[test]
fn records_come_back_whatever_part_of_them_is_the_key() {
    for range in [0..10, 3..7, 15..20] {
        let order = SortOrder {
            keys: vec![SortKey { part: Part::Bytes(range), compared: Compared::Bytes }],
            ties: Ties::Bytes,
        };
        let keyed = Keyed::new(Shape::Records(20), &order, BlockSize::ALL[2], Path::new("in"));
        let line: Vec<u8> = (0..20).collect();
        let (mut record, mut back) = (Vec::new(), Vec::new());
        keyed.append(&line, 0, &mut record).expect("it fits");
        let push = |bytes: &[u8]| {
            back.extend_from_slice(bytes);
            Ok(())
        };
        keyed.write(&record, push).expect("written");
        assert_eq!(back, line);
    }
}

proptest! {
    #[test]
    fn numeric_keys_order_lines_as_their_values_do(
        one in "[ ]{0,2}-?[0-9]{0,6}[.x]?[0-9]{0,4}", two in "[ ]{0,2}-?[0-9]{0,6}[.x]?[0-9]{0,4}",
    ) {
        let order = SortOrder {
            keys: vec![SortKey { part: Part::Whole, compared: Compared::Numbers }],
            ties: Ties::Bytes,
        };
        let (one, two) = (one.as_bytes(), two.as_bytes());
        let expected = value(one).cmp(&value(two)).then_with(|| one.cmp(two));
        prop_assert_eq!(compared(&order, one, two), expected);
    }

    #[test]
    fn fields_order_lines_as_they_compare_and_then_whole_lines(
        one in "[a\u{0}\u{1}\u{2},]{0,6}", two in "[a\u{0}\u{1}\u{2},]{0,6}", first in 1usize..4, more in 0usize..3,
    ) {
        let last = (more > 0).then(|| first + more - 1);
        let order = fields(first, last, Some(b','), Compared::Bytes);
        let part = order.keys[0].part.clone();
        let (one, two) = (one.as_bytes(), two.as_bytes());
        let expected = part.of(one).cmp(part.of(two)).then_with(|| one.cmp(two));
        prop_assert_eq!(compared(&order, one, two), expected);
        let stable = SortOrder { ties: Ties::Input, ..order };
        let expected = part.of(one).cmp(part.of(two)).then(Ordering::Less);
        prop_assert_eq!(compared(&stable, one, two), expected);
    }
}
