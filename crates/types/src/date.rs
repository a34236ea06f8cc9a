//! DATE: a day and a time of day in seven bytes that compare as times do.
//!
//! ```text
//! byte    0            1             2      3    4       5         6
//!         century+100  year%100+100  month  day  hour+1  minute+1  second+1
//! ```
//!
//! This is the form that Oracle documents, for the years 1 to 9999. The offsets keep zero
//! bytes out of it. There is no time zone and nothing below a second: a text with fractional
//! seconds is rejected, not cut.

use std::fmt;

/// Length of an encoded DATE.
pub const DATE_BYTES: usize = 7;

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// Bytes or a text that are no DATE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DateError {
    /// The text has another shape.
    #[error("{text:?} is not a date; dates are written 2024-01-31 or 2024-01-31 13:45:00")]
    NotADate {
        /// The text as found, cut at 40 bytes.
        text: String,
    },
    /// The text has fractional seconds, but a DATE ends at the second.
    #[error("{text:?} has fractional seconds, which a DATE does not keep")]
    FractionalSeconds {
        /// The text as found, cut at 40 bytes.
        text: String,
    },
    /// The calendar has no such day.
    #[error("there is no day {year:04}-{month:02}-{day:02} in the calendar of the years 1 to 9999")]
    NoSuchDay {
        /// Year that was given, 1 to 9999 if valid.
        year: u16,
        /// Month that was given, 1 to 12 if valid.
        month: u8,
        /// Day that was given, 1 to 31 if valid.
        day: u8,
    },
    /// The day has no such second.
    #[error("there is no time {hour:02}:{minute:02}:{second:02}; a day runs from 00:00:00 to 23:59:59")]
    NoSuchTime {
        /// Hour that was given, 0 to 23 if valid.
        hour: u8,
        /// Minute that was given, 0 to 59 if valid.
        minute: u8,
        /// Second that was given, 0 to 59 if valid.
        second: u8,
    },
    /// The bytes are not an encoded DATE.
    #[error("bytes [{}] are not an encoded DATE", crate::value::hex(found))]
    Malformed {
        /// The bytes, cut at 24.
        found: Vec<u8>,
    },
}

/// A second of the calendar years 1 to 9999, without a time zone. The order
/// of the fields is the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
}

impl DateTime {
    /// Creates a second; fails where the calendar or the clock has none.
    pub fn new(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8) -> Result<Self, DateError> {
        if !(1..=9999).contains(&year) || day == 0 || day > days_in_month(year, month) {
            return Err(DateError::NoSuchDay { year, month, day });
        }
        if hour > 23 || minute > 59 || second > 59 {
            return Err(DateError::NoSuchTime { hour, minute, second });
        }
        Ok(DateTime { year, month, day, hour, minute, second })
    }

    /// Creates midnight at the start of a day; fails where the calendar has none.
    pub fn date(year: u16, month: u8, day: u8) -> Result<Self, DateError> {
        DateTime::new(year, month, day, 0, 0, 0)
    }

    /// Parses `2024-01-31`, `2024-01-31 13:45:00` or `2024-01-31T13:45:00`. The last two may end
    /// in `Z`, which is dropped.
    ///
    /// Fails on any other shape, on fractional seconds, and on days and times that do not exist.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, DateError> {
        parse_bytes(text.as_ref())
    }

    /// Returns the year, 1 to 9999.
    pub fn year(&self) -> u16 {
        self.year
    }

    /// Returns the month, 1 to 12.
    pub fn month(&self) -> u8 {
        self.month
    }

    /// Returns the day of the month, 1 to 31.
    pub fn day(&self) -> u8 {
        self.day
    }

    /// Returns the hour, 0 to 23.
    pub fn hour(&self) -> u8 {
        self.hour
    }

    /// Returns the minute, 0 to 59.
    pub fn minute(&self) -> u8 {
        self.minute
    }

    /// Returns the second, 0 to 59.
    pub fn second(&self) -> u8 {
        self.second
    }

    /// Returns the day of the week, in the Gregorian calendar.
    pub fn weekday(&self) -> Weekday {
        // Sakamoto's method: a month's offset, with January and February counted as months of the
        // year before; 0 is Sunday.
        const OFFSETS: [u32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = u32::from(self.year) - u32::from(self.month < 3);
        let offset = OFFSETS[usize::from(self.month - 1)];
        match (year + year / 4 - year / 100 + year / 400 + offset + u32::from(self.day)) % 7 {
            0 => Weekday::Sunday,
            1 => Weekday::Monday,
            2 => Weekday::Tuesday,
            3 => Weekday::Wednesday,
            4 => Weekday::Thursday,
            5 => Weekday::Friday,
            _ => Weekday::Saturday,
        }
    }

    /// Returns the seven bytes of the column.
    #[inline]
    pub fn encode(&self) -> [u8; DATE_BYTES] {
        [
            (self.year / 100) as u8 + 100,
            (self.year % 100) as u8 + 100,
            self.month,
            self.day,
            self.hour + 1,
            self.minute + 1,
            self.second + 1,
        ]
    }

    /// Decodes the bytes of a column; fails on another length and on
    /// bytes that [`encode`](Self::encode) never makes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DateError> {
        let malformed = || DateError::Malformed { found: bytes[..bytes.len().min(24)].to_vec() };
        let &[century, year, month, day, hour, minute, second] = bytes else {
            return Err(malformed());
        };
        let in_century = year.wrapping_sub(100);
        let century = century.wrapping_sub(100);
        if in_century > 99 || century > 99 || hour == 0 || minute == 0 || second == 0 {
            return Err(malformed());
        }
        let year = u16::from(century) * 100 + u16::from(in_century);
        DateTime::new(year, month, day, hour - 1, minute - 1, second - 1).map_err(|_| malformed())
    }
}

/// Returns the days of a month; 0 for a month outside 1 to 12.
pub fn days_in_month(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    }
}

/// Prints `2024-01-31` at midnight, `2024-01-31 13:45:00` otherwise.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = format!("{:04}-{:02}-{:02}", self.year, self.month, self.day);
        if (self.hour, self.minute, self.second) == (0, 0, 0) {
            f.pad(&day)
        } else {
            f.pad(&format!("{day} {:02}:{:02}:{:02}", self.hour, self.minute, self.second))
        }
    }
}

impl std::str::FromStr for DateTime {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        parse_bytes(text.as_bytes())
    }
}

fn parse_bytes(text: &[u8]) -> Result<DateTime, DateError> {
    let excerpt = || String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
    let not_a_date = || DateError::NotADate { text: excerpt() };
    let (day_part, time_part) = text.split_at_checked(10).ok_or_else(not_a_date)?;
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = day_part else {
        return Err(not_a_date());
    };
    let day = (pair(y1, y2), pair(y3, y4), pair(m1, m2), pair(d1, d2));
    let (Some(century), Some(year), Some(month), Some(day)) = day else {
        return Err(not_a_date());
    };
    let year = u16::from(century) * 100 + u16::from(year);
    if time_part.is_empty() {
        return DateTime::date(year, month, day);
    }
    let (clock, rest) = time_part.split_at_checked(9).ok_or_else(not_a_date)?;
    let &[b' ' | b'T' | b't', h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return Err(not_a_date());
    };
    let (Some(hour), Some(minute), Some(second)) = (pair(h1, h2), pair(m1, m2), pair(s1, s2)) else {
        return Err(not_a_date());
    };
    match rest {
        b"" | b"Z" | b"z" => DateTime::new(year, month, day, hour, minute, second),
        [b'.', b'0'..=b'9', ..] => Err(DateError::FractionalSeconds { text: excerpt() }),
        _ => Err(not_a_date()),
    }
}

/// Returns the value of two decimal digits.
#[inline]
fn pair(tens: u8, ones: u8) -> Option<u8> {
    (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + (ones - b'0'))
}

#[cfg(test)]
mod tests;
