//! The source's table, printed next to ours in its own layout.

use serde::Serialize;

/// A published table of times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    pub title: String,
    /// The publication, and its hardware.
    pub source: String,
    /// The factor whose levels are the columns.
    pub column: usize,
    /// The factors that label the rows.
    pub row_factors: Vec<usize>,
    pub rows: Vec<PublishedRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRow {
    /// Level of each row factor.
    pub levels: Vec<usize>,
    /// Time per column, as printed (`45:50`); empty where the table has a gap.
    pub times: Vec<String>,
}

/// Parses `minutes:seconds`, or a plain number of seconds, into seconds.
pub fn minutes(text: &str) -> Option<f64> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        plain.then(|| text.parse::<f64>().ok()).flatten()
    };
    match text.split_once(':') {
        Some((minutes, seconds)) => {
            Some(number(minutes)? * 60.0 + number(seconds).filter(|part| *part < 60.0)?)
        }
        None => number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::minutes;

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(minutes("45:50"), Some(2750.0));
        assert_eq!(minutes("04:57"), Some(297.0));
        assert_eq!(minutes("8.74"), Some(8.74));
        for wrong in ["", "4:60", "-1:00", "a:b", "1:2:3", "inf"] {
            assert_eq!(minutes(wrong), None, "{wrong}");
        }
    }
}
