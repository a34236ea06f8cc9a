//! Moments as reports print them, for their order and for differences.

/// Returns the second of a printed moment, from the year 0: `03-May-24 10:00:02`,
/// `2024-05-03 10:00:02+00`, `2024-05-03T10:00:02`. None in another language or another form:
/// the month of `03/05/24` is not known.
#[must_use]
pub fn second(text: &str) -> Option<i64> {
    let (date, clock) = text.trim().split_once([' ', 'T'])?;
    let mut parts = date.splitn(3, '-');
    let (first, month, last) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |text: &str| text.parse::<u32>().ok().map(i64::from);
    let (year, month, day) = match number(month) {
        Some(month) if first.len() == 4 => (number(first)?, month, number(last)?),
        Some(_) => return None,
        // Years of two digits are of this century.
        None => (
            number(last).map(|year| if year < 100 { year + 2000 } else { year })?,
            named(month)?,
            number(first)?,
        ),
    };
    let mut clock = clock.splitn(3, ':');
    let hour = number(clock.next()?.trim())?;
    let minute = clock.next().map_or(Some(0), number)?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let second = clock.next().map_or(Some(0), |text| number(&digits(text)))?;
    ((1..=12).contains(&month) && (1..=31).contains(&day) && year < 10_000)
        .then(|| ((days(year, month) + day) * 24 + hour) * 3600 + minute * 60 + second)
}

fn named(month: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = MONTHS.iter().position(|own| *own == month.to_ascii_lowercase())?;
    i64::try_from(at + 1).ok()
}

/// Days before a month, of years that begin in March so that a leap day is the last.
fn days(year: i64, month: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_ordered_whatever_their_form() {
        let at = |text: &str| second(text).expect("a moment");
        assert_eq!(at("03-May-24 10:00:02"), at("2024-05-03 10:00:02+00"));
        assert_eq!(at("01-Mar-24 00:00") - at("28-Feb-24 00:00"), 2 * 86_400);
        assert_eq!(at("01-Jan-25 00:00:00") - at("2024-12-31T23:59:59Z"), 1);
        for text in ["", "16-2\u{6708} -13 10:00", "03/05/24 10:00:00", "03-Mai-24 10:00", "x-y-z 1"] {
            assert_eq!(second(text), None, "{text}");
        }
    }
}
