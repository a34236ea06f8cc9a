//! Dates of the civil calendar from seconds since 1970, in UTC.
//!
//! Algorithm: Howard Hinnant's `civil_from_days`, with eras of 400 years. Years start in March, so
//! that the leap day is the last of its year.

use std::time::Duration;

const SECONDS_PER_DAY: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: u64 = 719_468;
/// Days in 400 years, an era.
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
    /// Returns the moment `wall` after 1970-01-01 00:00:00 UTC.
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

    /// Parses the format of [`Self::iso`].
    pub fn parse(iso: &str) -> Option<Moment> {
        let number = |from: usize, to: usize| iso.get(from..to)?.parse::<u64>().ok();
        let clock = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
        let moment = Moment { year: number(0, 4)?, month: number(5, 7)?, day: number(8, 10)?, second: clock };
        // An invalid date converts to a different one.
        (Moment::of(moment.since_epoch()) == moment && moment.iso() == iso).then_some(moment)
    }

    /// Returns the time since 1970-01-01 00:00:00 UTC; zero for earlier moments.
    pub fn since_epoch(self) -> Duration {
        let year = self.year.saturating_sub(u64::from(self.month <= 2));
        let (era, year_of_era) = (year / 400, year % 400);
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day.saturating_sub(1);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = (era * DAYS_PER_ERA + day_of_era).saturating_sub(DAYS_TO_EPOCH);
        Duration::from_secs(days * SECONDS_PER_DAY + self.second)
    }

    /// Formats as ISO 8601, `2026-11-20T21:04:05Z`.
    pub fn iso(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", self.year, self.month, self.day)
    }

    /// Formats `20261120-210405`, for names of files.
    pub fn compact(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}{:02}{:02}-{hour:02}{minute:02}{second:02}", self.year, self.month, self.day)
    }

    /// Formats `20261120_2104`, as in the names of ORION's files.
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

    #[test]
    fn dates_round_trip_and_invalid_ones_are_rejected() {
        for seconds in [0, 951_782_399, 951_782_400, 1_767_225_599, 1_795_208_645, 4_107_542_400] {
            let moment = Moment::of(Duration::from_secs(seconds));
            assert_eq!(moment.since_epoch().as_secs(), seconds);
            assert_eq!(Moment::parse(&moment.iso()), Some(moment));
        }
        for no_date in ["", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01 00:00:00Z", "today"] {
            assert_eq!(Moment::parse(no_date), None, "{no_date}");
        }
    }
}
