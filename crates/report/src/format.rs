//! Printed forms of numbers in a report's columns.
//!
//! One type per unit, one trait for all: a section names the kind of a number, and only this file
//! decides on its digits. A column with the unit in its header takes figures without one
//! ([`Seconds`], [`Megabytes`]). Figures over several magnitudes carry their unit ([`Average`],
//! [`Size`]).

use plumb_units::{Bytes, Nanos, RowCount};

/// A quantity with a printed form.
pub trait Figure {
    /// Returns the printed form; empty if there is nothing to print.
    fn figure(&self) -> String;
}

/// An unknown value is blank.
impl<T: Figure> Figure for Option<T> {
    fn figure(&self) -> String {
        self.as_ref().map_or_else(String::new, Figure::figure)
    }
}

/// A count, grouped in thousands.
#[derive(Clone, Copy)]
pub struct Count(pub u64);

impl Figure for Count {
    fn figure(&self) -> String {
        RowCount(self.0).to_string()
    }
}

/// Nanoseconds printed as seconds with two decimals.
#[derive(Clone, Copy)]
pub struct Seconds(pub u64);

impl Figure for Seconds {
    fn figure(&self) -> String {
        grouped(Nanos(self.0).seconds(), 2)
    }
}

/// Nanoseconds of either sign printed as seconds with two decimals.
#[derive(Clone, Copy)]
pub struct SignedSeconds(pub i64);

impl Figure for SignedSeconds {
    fn figure(&self) -> String {
        grouped(self.0 as f64 / 1e9, 2)
    }
}

/// Nanoseconds of either sign printed as seconds with three decimals.
#[derive(Clone, Copy)]
pub struct SignedMillis(pub i64);

impl Figure for SignedMillis {
    fn figure(&self) -> String {
        grouped(self.0 as f64 / 1e9, 3)
    }
}

/// A duration with its unit, as in `160 us`.
#[derive(Clone, Copy)]
pub struct Duration(pub u64);

impl Figure for Duration {
    fn figure(&self) -> String {
        Nanos(self.0).to_string()
    }
}

/// Mean of some durations with its unit, as in `160.23us`; blank without durations.
#[derive(Clone, Copy)]
pub struct Average {
    /// Sum of the durations, nanoseconds.
    pub total_ns: u64,
    /// Number of the durations summed.
    pub count: u64,
}

impl Figure for Average {
    fn figure(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let mean_ns = self.total_ns as f64 / self.count as f64;
        // Below these bounds two decimals still round to less than the next unit.
        match mean_ns {
            ns if ns < 999_995.0 => format!("{:.2}us", ns / 1e3),
            ns if ns < 999_995_000.0 => format!("{:.2}ms", ns / 1e6),
            ns => format!("{:.2}s", ns / 1e9),
        }
    }
}

/// A part of a whole, as a percentage with one decimal and no sign; blank without a whole.
#[derive(Clone, Copy)]
pub struct Percent {
    pub part: f64,
    pub whole: f64,
}

impl Percent {
    /// A share of two whole numbers of the same unit.
    pub fn of(part: u64, whole: u64) -> Percent {
        Percent { part: part as f64, whole: whole as f64 }
    }

    /// Returns the part as a fraction; `None` without a whole.
    pub fn share(self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.part / self.whole)
    }
}

impl Figure for Percent {
    fn figure(&self) -> String {
        // A negative value that rounds to zero has no sign.
        let unsigned = |shown: String| if shown == "-0.0" { "0.0".to_string() } else { shown };
        self.share().map_or_else(String::new, |share| unsigned(format!("{:.1}", share * 100.0)))
    }
}

/// A percentage in a dense table: blank if exactly zero, `.0` if it rounds to zero.
#[derive(Clone, Copy)]
pub struct SparsePercent(pub Percent);

impl Figure for SparsePercent {
    fn figure(&self) -> String {
        if self.0.part == 0.0 {
            return String::new();
        }
        let shown = self.0.figure();
        shown.strip_prefix('0').map_or(shown.clone(), str::to_string)
    }
}

/// A number with one decimal, grouped in thousands.
#[derive(Clone, Copy)]
pub struct Decimal(pub f64);

impl Figure for Decimal {
    fn figure(&self) -> String {
        grouped(self.0, 1)
    }
}

/// A total that may be fractional: one decimal below a thousand, none above.
#[derive(Clone, Copy)]
pub struct Total(pub f64);

impl Figure for Total {
    fn figure(&self) -> String {
        grouped(self.0, if self.0.abs() < 1000.0 { 1 } else { 0 })
    }
}

/// A total per second of a run; blank if no time passed.
#[derive(Clone, Copy)]
pub struct PerSecond {
    pub total: f64,
    /// Duration of the run, nanoseconds.
    pub elapsed_ns: u64,
}

impl PerSecond {
    /// Returns the rate; zero if no time passed.
    pub fn rate(self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.total / Nanos(self.elapsed_ns).seconds() }
    }
}

impl Figure for PerSecond {
    fn figure(&self) -> String {
        if self.elapsed_ns == 0 { String::new() } else { grouped(self.rate(), 1) }
    }
}

/// A size with its unit, as in `1.24 GB`.
#[derive(Clone, Copy)]
pub struct Size(pub u64);

impl Figure for Size {
    fn figure(&self) -> String {
        Bytes(self.0).to_string()
    }
}

/// Bytes printed as megabytes (2^20) with one decimal.
#[derive(Clone, Copy)]
pub struct Megabytes(pub f64);

impl Figure for Megabytes {
    fn figure(&self) -> String {
        grouped(self.0 / Bytes::M as f64, 1)
    }
}

/// Bytes over a time as megabytes (2^20) per second; blank if no time passed.
#[derive(Clone, Copy)]
pub struct Throughput {
    pub bytes: u64,
    /// Duration of the transfer, nanoseconds.
    pub elapsed_ns: u64,
}

impl Figure for Throughput {
    fn figure(&self) -> String {
        if self.elapsed_ns == 0 {
            return String::new();
        }
        grouped(Bytes(self.bytes).per(Nanos(self.elapsed_ns)).mb_per_second(), 1)
    }
}

/// A ratio printed as a change, always with a sign and enough digits to
/// differ from zero: `-62.3%`, `+0.43%`.
#[derive(Clone, Copy)]
pub struct Change(pub f64);

impl Change {
    /// Prints one decimal whatever the size, for columns of comparable changes.
    pub fn coarse(self) -> String {
        let shown = grouped((self.0 - 1.0) * 100.0, 1);
        if shown.starts_with('-') || shown == "0.0" { format!("{shown}%") } else { format!("+{shown}%") }
    }

    fn decimals(self) -> usize {
        match ((self.0 - 1.0) * 100.0).abs() {
            0.0 => 1,
            size if size >= 0.995 => 1,
            size if size >= 0.0995 => 2,
            _ => 3,
        }
    }
}

impl Figure for Change {
    fn figure(&self) -> String {
        let percent = (self.0 - 1.0) * 100.0;
        let shown = grouped(percent, self.decimals());
        let sign =
            if percent > 0.0 && shown.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) { "+" } else { "" };
        format!("{sign}{shown}%")
    }
}

/// An interval of ratios as changes: `[-64.0, -60.1]`; an open end is `..`.
#[derive(Clone, Copy)]
pub struct Ends {
    /// Lower end, as a ratio; `None` if open.
    pub low: Option<f64>,
    /// Upper end, as a ratio; `None` if open.
    pub high: Option<f64>,
}

impl Ends {
    /// Prints ratios with three decimals.
    pub fn ratios(self) -> String {
        let end = |ratio: Option<f64>| ratio.map_or("..".to_string(), |ratio| grouped(ratio, 3));
        format!("[{}, {}]", end(self.low), end(self.high))
    }
}

impl Figure for Ends {
    fn figure(&self) -> String {
        let end = |ratio: Option<f64>| {
            ratio.map_or("..".to_string(), |ratio| Change(ratio).figure().trim_end_matches('%').to_string())
        };
        format!("[{}, {}]", end(self.low), end(self.high))
    }
}

/// A share of 1 as a percentage: 0.02 is `2%`, 0.0043 is `0.43%`.
#[derive(Clone, Copy)]
pub struct Share(pub f64);

impl Figure for Share {
    fn figure(&self) -> String {
        let percent = self.0 * 100.0;
        let decimals = match percent.abs() {
            // A share below all must not round to 100%.
            size if (99.95..99.995).contains(&size) => 2,
            size if (99.995..100.0).contains(&size) => 3,
            size if size >= 9.95 || size == 0.0 => 1,
            size if size >= 0.0995 => 2,
            _ => 3,
        };
        let shown = grouped(percent, decimals);
        let shown = shown.trim_end_matches('0').trim_end_matches('.');
        format!("{shown}%")
    }
}

/// A p value with four decimals.
#[derive(Clone, Copy)]
pub struct Probability(pub f64);

impl Figure for Probability {
    fn figure(&self) -> String {
        if self.0 < 0.000_05 { "<.0001".to_string() } else { format!("{:.4}", self.0) }
    }
}

/// A value of any unit, with at least four digits and at most three decimals.
#[derive(Clone, Copy)]
pub struct Reading(pub f64);

impl Reading {
    /// Prints without trailing zeros, for the ticks of an axis.
    pub fn short(self) -> String {
        let shown = self.figure();
        if shown.contains('.') {
            shown.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            shown
        }
    }
}

impl Figure for Reading {
    fn figure(&self) -> String {
        let decimals = match self.0.abs() {
            size if size >= 1000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        grouped(self.0, decimals)
    }
}

/// Seconds as minutes:seconds in a published table, `45:50`.
#[derive(Clone, Copy)]
pub struct MinutesSeconds(pub f64);

impl Figure for MinutesSeconds {
    fn figure(&self) -> String {
        let seconds = self.0.round().max(0.0) as u64;
        format!("{}:{:02}", seconds / 60, seconds % 60)
    }
}

/// Prints a truth value as yes or no.
impl Figure for bool {
    fn figure(&self) -> String {
        if *self { "yes".to_string() } else { "no".to_string() }
    }
}

/// Formats a number with this many decimals, its whole part grouped in thousands.
pub fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    // Beyond the range of u64 the digits stay ungrouped.
    let whole = whole.parse().map_or(whole.to_string(), |digits| RowCount(digits).to_string());
    // A value that rounds to zero has no sign.
    let negative = value < 0.0 && plain.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_print_with_the_digits_they_deserve() {
        let shown = [
            (grouped(1_234_567.891, 2), "1,234,567.89"),
            (grouped(-0.001, 2), "0.00"),
            (grouped(-1234.5, 1), "-1,234.5"),
            (grouped(0.0, 0), "0"),
            (Average { total_ns: 999_996, count: 1 }.figure(), "1.00ms"),
            (Average { total_ns: 160_230, count: 1 }.figure(), "160.23us"),
            (Average { total_ns: 0, count: 0 }.figure(), ""),
            (Percent::of(1, 0).figure(), ""),
            (Percent::of(1, 3).figure(), "33.3"),
            (Percent { part: -0.0001, whole: 3.0 }.figure(), "0.0"),
            (Percent { part: -0.3, whole: 3.0 }.figure(), "-10.0"),
            (SparsePercent(Percent::of(0, 3)).figure(), ""),
            (SparsePercent(Percent::of(1, 30_000)).figure(), ".0"),
            (SparsePercent(Percent::of(3, 3)).figure(), "100.0"),
            (Throughput { bytes: 3 << 20, elapsed_ns: 2_000_000_000 }.figure(), "1.5"),
            (Some(Count(1000)).figure(), "1,000"),
            (Change(0.377).figure(), "-62.3%"),
            (Change(1.0043).figure(), "+0.43%"),
            (Change(1.0).figure(), "0.0%"),
            (Change(14.0).figure(), "+1,300.0%"),
            (Ends { low: Some(0.36), high: None }.figure(), "[-64.0, ..]"),
            (Share(0.02).figure(), "2%"),
            (Share(0.0043).figure(), "0.43%"),
            (Share(0.125).figure(), "12.5%"),
            (Share(0.9996).figure(), "99.96%"),
            (Share(0.99996).figure(), "99.996%"),
            (Share(1.0).figure(), "100%"),
            (Probability(0.000_976).figure(), "0.0010"),
            (Probability(0.000_001).figure(), "<.0001"),
            (Reading(0.8425).figure(), "0.843"),
            (Reading(20.0).short(), "20"),
            (MinutesSeconds(2750.0).figure(), "45:50"),
            (None::<Count>.figure(), ""),
        ];
        for (shown, expected) in shown {
            assert_eq!(shown, expected);
        }
    }
}
