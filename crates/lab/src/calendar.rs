//! Dates of the civil calendar from seconds since 1970, in UTC.
//!
//! Days to dates after Howard Hinnant's `civil_from_days`: eras of 400 years,
//! years that begin in March, so that the leap day is the last of its year.

use std::time::Duration;

const SECONDS_PER_DAY: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: u64 = 719_468;
/// Days in 400 years.
const DAYS_PER_ERA: u64 = 146_097;

/// A time of day on a date, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    year: u64,
    month: u64,
    day: u64,
    second: u64,
}

impl Moment {
    /// The moment that is `wall` after 1970-01-01 00:00:00 UTC.
    #[must_use]
    pub fn of(wall: Duration) -> Moment {
        let days = wall.as_secs() / SECONDS_PER_DAY + DAYS_TO_EPOCH;
        let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / (DAYS_PER_ERA - 1)) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March, 0 to 11.
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        Moment {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted + 2) / 5 + 1,
            second: wall.as_secs() % SECONDS_PER_DAY,
        }
    }

    /// `2026-11-20T21:04:05Z`
    #[must_use]
    pub fn iso(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", self.year, self.month, self.day)
    }

    /// `20261120-210405`, for names of files.
    #[must_use]
    pub fn compact(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}{:02}{:02}-{hour:02}{minute:02}{second:02}", self.year, self.month, self.day)
    }

    /// `20261120_2104`, as ORION's files have it in their names.
    #[must_use]
    pub fn minute(self) -> String {
        let (hour, minute, _) = self.clock();
        format!("{:04}{:02}{:02}_{hour:02}{minute:02}", self.year, self.month, self.day)
    }

    fn clock(self) -> (u64, u64, u64) {
        (self.second / 3_600, self.second / 60 % 60, self.second % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Moment::of(Duration::from_secs(seconds)).iso(), expected);
        }
        assert_eq!(Moment::of(Duration::from_secs(951_782_399)).compact(), "20000228-235959");
        assert_eq!(Moment::of(Duration::from_secs(951_782_399)).minute(), "20000228_2359");
    }
}
