//! Dates as files write them: the order of day, month and year, their separator, and a zone.
//!
//! A column has one form for all its values. It is found by exclusion: `03/04/2020` may have day or
//! month first, `31/04/2020` is no date either way, and `31/12/2020` has the day first. If two
//! forms remain, the dates are ambiguous, and the column stays text until the user names a form.
//!
//! ```text
//! 2020-12-31    2020/12/31    31/12/2020    12/31/2020    31.12.2020    31-12-2020    ...
//!               alone, or followed by T or a blank, 23:59 or 23:59:59, and a zone:
//!               Z, +02:00, +0200, +02
//! ```
//!
//! A DATE has no zone. Times of one zone are stored as written, without the zone, which the report
//! mentions. Times of two zones would sort in another order than they happened, so they stay text.
//!
//! Dates are exported as they were written: leading zeros or none, a blank or a T before the time,
//! seconds or none, and a zone's text after it. A [`Spelling`] is the part of that which all values
//! of a column share. If they share none, the column stays text, as with numbers.

use plumb_types::{DateError, DateText, DateTime};
use std::fmt;

/// Form of dates: the order of their numbers, and the separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateForm {
    order: Order,
    separator: u8,
}

/// The number that comes first; the year comes last unless first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Year,
    Day,
    Month,
}

/// Every form; its index is its bit in [`Forms`].
const FORMS: [DateForm; 9] = {
    const fn form(order: Order, separator: u8) -> DateForm {
        DateForm { order, separator }
    }
    [
        form(Order::Year, b'-'),
        form(Order::Year, b'/'),
        form(Order::Year, b'.'),
        form(Order::Day, b'-'),
        form(Order::Day, b'/'),
        form(Order::Day, b'.'),
        form(Order::Month, b'-'),
        form(Order::Month, b'/'),
        form(Order::Month, b'.'),
    ]
};

impl DateForm {
    /// The form `2020-12-31`, the default.
    pub const ISO: DateForm = FORMS[0];

    /// Parses a pattern as `DD/MM/YYYY`, in any letter case.
    ///
    /// # Errors
    /// The list of all patterns, for a message.
    pub fn parse(pattern: &str) -> Result<DateForm, String> {
        let found = FORMS.into_iter().find(|form| form.to_string().eq_ignore_ascii_case(pattern));
        found.ok_or_else(|| {
            let all: Vec<String> = FORMS.iter().map(DateForm::to_string).collect();
            format!("expected one of {}", all.join(", "))
        })
    }
}

/// Prints the pattern, as `DD/MM/YYYY`.
impl fmt::Display for DateForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = self.separator as char;
        f.write_str(&match self.order {
            Order::Year => format!("YYYY{mark}MM{mark}DD"),
            Order::Day => format!("DD{mark}MM{mark}YYYY"),
            Order::Month => format!("MM{mark}DD{mark}YYYY"),
        })
    }
}

/// Zone in minutes east of Greenwich; `None` for a text without one, or with `Z`.
type Zone = Option<i16>;

/// Form of a column's dates, and their zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateStyle {
    /// Order of the numbers, and separator.
    pub form: DateForm,
    /// Zone of all values, in minutes east of Greenwich.
    pub zone: Option<i16>,
}

impl DateStyle {
    /// The form `2020-12-31`, without a zone.
    pub const ISO: DateStyle = DateStyle { form: DateForm::ISO, zone: None };

    /// Parses a date of this style.
    ///
    /// # Errors
    /// When it has another form or zone, or is no existing day or time.
    #[inline]
    pub fn read(&self, text: &[u8]) -> Result<DateTime, DateError> {
        if self.form == DateForm::ISO && self.zone.is_none() {
            let found = DateTime::parse(text);
            if !matches!(found, Err(DateError::NotADate { .. })) {
                return found;
            }
        }
        let not_a_date = || DateError::NotADate {
            text: String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned(),
        };
        let parts = Parts::of(text).ok_or_else(not_a_date)?;
        let (date, zone) = parts.by(self.form).ok_or_else(not_a_date)??;
        if zone == self.zone { Ok(date) } else { Err(not_a_date()) }
    }
}

/// The forms that all dates of a column may have, and their zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms {
    bits: u16,
    zone: Zone,
}

impl Forms {
    /// Returns the possible forms of a date; if the user named a form, only that one and ISO.
    pub fn of(text: &[u8], meant: Option<DateForm>) -> Result<Forms, DateError> {
        // A fast path, because most dates have the ISO form.
        match DateTime::parse(text) {
            Ok(_) => return Ok(Forms { bits: 1, zone: None }),
            Err(DateError::NotADate { .. }) => {}
            Err(other) => return Err(other),
        }
        let not_a_date = || DateError::NotADate {
            text: String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned(),
        };
        let parts = Parts::of(text).ok_or_else(not_a_date)?;
        let (mut bits, mut seen, mut wrong) = (0, None, None);
        for (bit, form) in FORMS.into_iter().enumerate() {
            if meant.is_some_and(|meant| form != meant && form != DateForm::ISO) {
                continue;
            }
            match parts.by(form) {
                Some(Ok((_, zone))) => (bits, seen) = (bits | 1 << bit, zone),
                Some(Err(error)) => wrong = Some(error),
                None => {}
            }
        }
        if bits == 0 { Err(wrong.unwrap_or_else(not_a_date)) } else { Ok(Forms { bits, zone: seen }) }
    }

    /// Returns the forms in common; `None` if there is none, or the zones differ.
    pub fn and(self, other: Forms) -> Option<Forms> {
        let bits = self.bits & other.bits;
        (bits != 0 && self.zone == other.zone).then_some(Forms { bits, ..self })
    }

    /// Returns the only remaining form, with the zone; or the first two that remain.
    pub fn style(self) -> Result<DateStyle, [DateForm; 2]> {
        let mut left = FORMS.into_iter().enumerate().filter(|(bit, _)| self.bits >> bit & 1 == 1);
        let first = left.next().map_or(DateForm::ISO, |(_, form)| form);
        match left.next() {
            None => Ok(DateStyle { form: first, zone: self.zone }),
            Some((_, second)) => Err([first, second]),
        }
    }

    /// True if two values have different zones.
    pub fn differs_in_zone(self, other: Forms) -> bool {
        self.zone != other.zone
    }
}

/// Spelling of a column's dates within their form. A part is unknown until a value shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// True if one-digit numbers have a leading zero: of the two numbers that are
    /// no year, in their order.
    padded: [Option<bool>; 2],
    /// True if midnight is written, false if the day is alone.
    midnight: Option<bool>,
    clock: Option<Clock>,
}

/// Spelling of a column's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    /// Separator before the time: a blank or a T.
    before: u8,
    seconds: bool,
    /// The bytes after the time, and their number.
    behind: ([u8; CLOCK_BEHIND_MAX], usize),
}

/// Longest text after a time: ` +02:00`.
const CLOCK_BEHIND_MAX: usize = 7;

impl Spelling {
    /// Returns the spelling of a text that is a date of some form.
    #[inline]
    pub(super) fn of(text: &[u8]) -> Option<Spelling> {
        // A fast path, because most dates have the ISO form.
        if let &[_, _, _, _, b'-', month, _, b'-', day, _] = text {
            let padded = [month, day].map(|tens| (tens == b'0').then_some(true));
            return Some(Spelling { padded, midnight: Some(false), clock: None });
        }
        let parts = Parts::of(text)?;
        let places = if parts.year_first { [1, 2] } else { [0, 1] };
        let padded = places.map(|place| (parts.numbers[place] < 10).then_some(parts.digits[place] == 2));
        let Some((before, clock)) = parts.rest.split_first() else {
            return Some(Spelling { padded, midnight: Some(false), clock: None });
        };
        let seconds = clock.get(5) == Some(&b':');
        let (time, behind) = clock.split_at_checked(if seconds { 8 } else { 5 })?;
        let is_midnight = time.iter().all(|byte| matches!(byte, b'0' | b':'));
        let mut kept = [0; CLOCK_BEHIND_MAX];
        kept.get_mut(..behind.len())?.copy_from_slice(behind);
        let clock = Clock { before: *before, seconds, behind: (kept, behind.len()) };
        Some(Spelling { padded, midnight: is_midnight.then_some(true), clock: Some(clock) })
    }

    /// Merges two spellings; `None` if no single spelling reproduces both.
    #[inline]
    pub(super) fn and(self, other: Spelling) -> Option<Spelling> {
        fn both<T: PartialEq>(one: Option<T>, two: Option<T>) -> Option<Option<T>> {
            match (one, two) {
                (Some(one), Some(two)) if one != two => None,
                (one, two) => Some(one.or(two)),
            }
        }
        let padded = [both(self.padded[0], other.padded[0])?, both(self.padded[1], other.padded[1])?];
        let (midnight, clock) = (both(self.midnight, other.midnight)?, both(self.clock, other.clock)?);
        Some(Spelling { padded, midnight, clock })
    }

    pub(super) fn text(self, form: DateForm) -> DateText {
        let [first, second] = self.padded.map(|padded| padded != Some(false));
        let (month, day) = if form.order == Order::Day { (second, first) } else { (first, second) };
        let mut pattern = form.to_string();
        for (padded, long, short) in [(month, "MM", "M"), (day, "DD", "D")] {
            if !padded {
                pattern = pattern.replace(long, short);
            }
        }
        let time = self.clock.map_or_else(|| DateText::default().time, Clock::text);
        DateText { day: pattern, time, midnight: self.midnight == Some(true) }
    }
}

impl Clock {
    fn text(self) -> String {
        let (behind, length) = self.behind;
        let time = if self.seconds { "HH:MI:SS" } else { "HH:MI" };
        format!("{}{time}{}", self.before as char, String::from_utf8_lossy(&behind[..length]))
    }
}

/// The numbers of a date, with their separator.
struct Parts<'a> {
    numbers: [u16; 3],
    digits: [usize; 3],
    /// True if the first number has four digits; otherwise the last one has.
    year_first: bool,
    separator: u8,
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(text: &'a [u8]) -> Option<Parts<'a>> {
        let (first, first_digits, rest) = number(text)?;
        let (separator, rest) = rest.split_first().filter(|(mark, _)| matches!(mark, b'-' | b'/' | b'.'))?;
        let (second, second_digits, rest) = number(rest)?;
        let rest = rest.strip_prefix(&[*separator])?;
        let (third, third_digits, rest) = number(rest)?;
        let year_first = first_digits == 4;
        let lengths = match year_first {
            true => second_digits <= 2 && third_digits <= 2,
            false => first_digits <= 2 && second_digits <= 2 && third_digits == 4,
        };
        let digits = [first_digits, second_digits, third_digits];
        lengths.then_some(Parts {
            numbers: [first, second, third],
            digits,
            year_first,
            separator: *separator,
            rest,
        })
    }

    /// Returns the date read by this form; `None` if the text has another one.
    fn by(&self, form: DateForm) -> Option<Result<(DateTime, Zone), DateError>> {
        if form.separator != self.separator || (form.order == Order::Year) != self.year_first {
            return None;
        }
        let [first, second, third] = self.numbers;
        let (year, month, day) = match form.order {
            Order::Year => (first, second, third),
            Order::Day => (third, second, first),
            Order::Month => (third, first, second),
        };
        let ((hour, minute, second), zone) = match self.rest {
            [] => ((0, 0, 0), None),
            [b' ' | b'T' | b't', clock @ ..] => time(clock)?,
            _ => return None,
        };
        // Each has two digits, so the casts fit.
        Some(DateTime::new(year, month as u8, day as u8, hour, minute, second).map(|date| (date, zone)))
    }
}

/// Parses leading digits, four at most; returns number, digits and the rest.
fn number(text: &[u8]) -> Option<(u16, usize, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=4).contains(&digits) {
        return None;
    }
    let value = text[..digits].iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    Some((value, digits, &text[digits..]))
}

/// Parses `13:45` or `13:45:00`, with or without a zone.
fn time(text: &[u8]) -> Option<((u8, u8, u8), Zone)> {
    let (hour, rest) = two(text)?;
    let (minute, rest) = two(rest.strip_prefix(b":")?)?;
    let (second, rest) = match rest.strip_prefix(b":") {
        Some(rest) => two(rest)?,
        None => (0, rest),
    };
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let zone = match rest {
        [] | [b'Z' | b'z'] => None,
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let (hours, rest) = two(rest)?;
            let minutes = match rest {
                [] => 0,
                rest => {
                    let (minutes, rest) = two(rest.strip_prefix(b":").unwrap_or(rest))?;
                    if !rest.is_empty() {
                        return None;
                    }
                    minutes
                }
            };
            let east = i16::from(hours) * 60 + i16::from(minutes);
            // Greenwich counts as no zone.
            Some(if *sign == b'-' { -east } else { east }).filter(|east| *east != 0)
        }
        _ => return None,
    };
    Some(((hour, minute, second), zone))
}

fn two(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [tens, ones, rest @ ..] if tens.is_ascii_digit() && ones.is_ascii_digit() => {
            Some(((tens - b'0') * 10 + (ones - b'0'), rest))
        }
        _ => None,
    }
}

/// Formats a zone as `+02:00`, from minutes east of Greenwich.
pub fn zone_name(minutes: i16) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn style(texts: &[&str]) -> Option<Result<DateStyle, [DateForm; 2]>> {
        let mut forms = texts.iter().map(|text| Forms::of(text.as_bytes(), None).ok());
        let first = forms.next()??;
        let all = forms.try_fold(first, |all, next| all.and(next?))?;
        Some(all.style())
    }

    fn shown(texts: &[&str]) -> String {
        match style(texts) {
            None => "no dates".to_string(),
            Some(Ok(DateStyle { form, zone })) => {
                format!("{form}{}", zone.map_or(String::new(), |zone| format!(" {}", zone_name(zone))))
            }
            Some(Err([one, two])) => format!("{one} or {two}"),
        }
    }

    #[test]
    fn a_column_has_the_one_form_that_all_its_values_may_have() {
        for (texts, expected) in [
            (&["2020-12-31", "2021-01-01 10:00:00Z"][..], "YYYY-MM-DD"),
            (&["2012/01/01"], "YYYY/MM/DD"),
            (&["03/04/2020", "31/12/2020"], "DD/MM/YYYY"),
            (&["3/4/2020", "12/31/2020 23:59"], "MM/DD/YYYY"),
            (&["03/04/2020"], "DD/MM/YYYY or MM/DD/YYYY"),
            (&["31/12/2020", "12/31/2020"], "no dates"),
            (&["31.12.2020"], "DD.MM.YYYY"),
            (&["31.12.2020", "31/12/2020"], "no dates"),
            (&["2020-12-31T10:00:00+02:00", "2020-06-30 10:00:00+0200"], "YYYY-MM-DD +02:00"),
            (&["2020-12-31T10:00:00+02:00", "2020-12-31T10:00:00+01:00"], "no dates"),
            (&["2020-12-31T10:00:00+00:00", "2020-12-31"], "YYYY-MM-DD"),
            (&["31/02/2020"], "no dates"),
            (&["1.10"], "no dates"),
            (&["192.168.0.1"], "no dates"),
            (&["20-12-2020x"], "no dates"),
        ] {
            assert_eq!(shown(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn dates_come_back_where_all_are_written_in_one_way() {
        let comes_back = |texts: &[&str]| {
            let DateStyle { form, .. } = style(texts)?.ok()?;
            let mut spellings = texts.iter().map(|text| Spelling::of(text.as_bytes()));
            let first = spellings.next()??;
            let text = spellings.try_fold(first, |all, next| all.and(next?))?.text(form);
            let zone = style(texts)?.ok()?.zone;
            for original in texts {
                let date = DateStyle { form, zone }.read(original.as_bytes()).expect("read");
                assert_eq!(text.text(&date), *original);
            }
            Some(format!("{}{}", text.day, text.time))
        };
        for (texts, expected) in [
            (&["2020-12-31", "2021-01-01 10:00:00"][..], Some("YYYY-MM-DD HH:MI:SS")),
            (&["3/4/2020", "12/31/2020"], Some("M/D/YYYY HH:MI:SS")),
            (&["31/1/2020", "05/12/2020"], Some("DD/M/YYYY HH:MI:SS")),
            (&["31.12.2020 00:00", "1.2.2020 23:59"], Some("D.M.YYYY HH:MI")),
            (&["2020-12-31T10:00:00Z", "2020-12-31T00:00:00Z"], Some("YYYY-MM-DDTHH:MI:SSZ")),
            (&["2020-12-31 10:00 +0200", "2020-12-31 11:00 +0200"], Some("YYYY-MM-DD HH:MI +0200")),
            (&["2020-12-31", "2021-01-01 00:00:00"], None),
            (&["2020-1-31", "2021-01-31"], None),
            (&["2020-01-31 10:00", "2021-01-31 10:00:01"], None),
            (&["2020-01-31 10:00:00", "2021-01-31T10:00:00"], None),
            (&["2020-01-31 10:00:00Z", "2021-01-31 10:00:00"], None),
        ] {
            assert_eq!(comes_back(texts).as_deref(), expected, "{texts:?}");
        }
    }

    #[test]
    fn what_a_style_does_not_have_is_refused() {
        let berlin = DateStyle { form: DateForm::parse("dd.mm.yyyy").expect("a form"), zone: Some(60) };
        assert_eq!(berlin.read(b"31.12.2020 23:59:58 +01").expect("read").to_string(), "2020-12-31 23:59:58");
        assert!(berlin.read(b"31.12.2020 23:59:58").is_err());
        assert!(berlin.read(b"2020-12-31 23:59:58+01").is_err());
        assert!(DateForm::parse("DD/MM/YY").expect_err("no century").contains("DD/MM/YYYY"));
    }

    proptest! {
        #[test]
        fn a_date_of_any_form_comes_back(
            form in 0usize..9, year in 1000u16..9999, month in 1u8..=12, day in 1u8..=28, clock in any::<bool>(),
        ) {
            let form = FORMS[form];
            let pattern = form.to_string();
            let text = pattern.replace("YYYY", &format!("{year:04}")).replace("MM", &format!("{month:02}"));
            let text = text.replace("DD", &format!("{day:02}")) + if clock { " 13:45:01" } else { "" };
            let (hour, minute, second) = if clock { (13, 45, 1) } else { (0, 0, 0) };
            let expected = DateTime::new(year, month, day, hour, minute, second).expect("a day");
            prop_assert_eq!(DateStyle { form, zone: None }.read(text.as_bytes()), Ok(expected));
        }

        #[test]
        fn any_text_is_read_or_not(text in "[0-9:/. +TZ-]{0,25}") {
            let _ = Forms::of(text.as_bytes(), None);
        }
    }
}
