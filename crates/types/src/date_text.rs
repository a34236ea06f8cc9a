//! Form in which the dates of a column are written, so that an export of `31/12/2020` is
//! not the default form `2020-12-31`.

use crate::DateTime;
use serde::{Deserialize, Serialize};

/// Form in which the dates of a column are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DateText {
    /// The day, as in `YYYY-MM-DD` or `D/M/YYYY`; a single D or M has no leading zero.
    pub day: String,
    /// The time after it, as in ` HH:MI:SS` or `THH:MI+02:00`.
    pub time: String,
    /// True if midnight is written, rather than the day alone.
    pub midnight: bool,
}

impl Default for DateText {
    fn default() -> DateText {
        DateText { day: "YYYY-MM-DD".to_string(), time: " HH:MI:SS".to_string(), midnight: false }
    }
}

impl DateText {
    /// True for `2020-12-31 23:59:59`, with the day alone at midnight.
    pub fn is_default(&self) -> bool {
        *self == DateText::default()
    }

    /// Writes the date in this form.
    pub fn text(&self, date: &DateTime) -> String {
        let is_midnight = (date.hour(), date.minute(), date.second()) == (0, 0, 0);
        let mut text = String::with_capacity(self.day.len() + self.time.len() + 2);
        append(&self.day, date, &mut text);
        if self.midnight || !is_midnight {
            append(&self.time, date, &mut text);
        }
        text
    }
}

/// A part of a date, as a number.
type PartOf = fn(&DateTime) -> u16;

/// The words of a form with their digits. A word comes before any shorter
/// word with which it begins.
const WORDS: [(&str, usize, PartOf); 8] = [
    ("YYYY", 4, DateTime::year),
    ("MM", 2, |date| date.month().into()),
    ("DD", 2, |date| date.day().into()),
    ("HH", 2, |date| date.hour().into()),
    ("MI", 2, |date| date.minute().into()),
    ("SS", 2, |date| date.second().into()),
    ("M", 1, |date| date.month().into()),
    ("D", 1, |date| date.day().into()),
];

fn append(form: &str, date: &DateTime, text: &mut String) {
    let mut left = form;
    while let Some(first) = left.chars().next() {
        let word = WORDS.iter().find(|(word, ..)| left.starts_with(word));
        let length = match word {
            Some((word, digits, part)) => {
                text.push_str(&format!("{:0width$}", part(date), width = *digits));
                word.len()
            }
            None => {
                text.push(first);
                first.len_utf8()
            }
        };
        left = &left[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_comes_back_as_its_column_was_written() {
        let text = |day: &str, time: &str, midnight, date: &str| {
            let form = DateText { day: day.to_string(), time: time.to_string(), midnight };
            form.text(&DateTime::parse(date).expect("a date"))
        };
        assert_eq!(text("D/M/YYYY", " HH:MI", false, "2020-03-04 05:06:00"), "4/3/2020 05:06");
        assert_eq!(text("D/M/YYYY", " HH:MI", false, "2020-12-31"), "31/12/2020");
        assert_eq!(text("YYYY.MM.DD", "THH:MI:SS+02:00", true, "2020-03-04"), "2020.03.04T00:00:00+02:00");
        for date in ["2020-12-31", "0001-01-01 23:59:59"] {
            let read = DateTime::parse(date).expect("a date");
            assert_eq!(DateText::default().text(&read), read.to_string());
        }
    }
}
