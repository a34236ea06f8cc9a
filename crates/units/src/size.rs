//! Bytes, and bytes a second.

use crate::{Nanos, ParseUnitError, parse_size};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A number of bytes, printed in binary multiples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Bytes of one KiB, 2^10.
    pub const K: u64 = 1024;
    /// Bytes of one MiB, 2^20.
    pub const M: u64 = 1024 * 1024;
    /// Bytes of one GiB, 2^30.
    pub const G: u64 = 1024 * 1024 * 1024;

    /// Returns the rate at which these bytes moved; zero if no time passed.
    pub fn per(self, elapsed: Nanos) -> Rate {
        if elapsed.0 == 0 {
            return Rate(0.0);
        }
        Rate(self.0 as f64 / elapsed.seconds())
    }

    /// Formats the size as a setting takes it: `64K`, `1M`, or `1000` where no multiple fits.
    pub fn as_setting(self) -> String {
        for (letter, power) in [('P', 5), ('T', 4), ('G', 3), ('M', 2), ('K', 1)] {
            let unit = 1024u64.pow(power);
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return format!("{}{letter}", self.0 / unit);
            }
        }
        self.0.to_string()
    }
}

/// Prints three significant figures in binary multiples, with the letters that administrators use:
/// `451 MB`, `4.50 GB`, `512 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0 as f64, "B"))
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_size(text).map(Bytes)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        Bytes(iter.map(|bytes| bytes.0).sum())
    }
}

/// A rate in bytes a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl Rate {
    /// Returns MiB a second, the unit of the I/O profile.
    pub fn mb_per_second(self) -> f64 {
        self.0 / Bytes::M as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", scaled(self.0, "B")))
    }
}

fn scaled(value: f64, unit: &str) -> String {
    let mut value = value;
    for prefix in ["", "K", "M", "G", "T", "P"] {
        // 999.5 would round to 1000, which has four figures.
        if value < 999.5 || prefix == "P" {
            let decimals = match value {
                _ if prefix.is_empty() => 0,
                v if v < 9.995 => 2,
                v if v < 99.95 => 1,
                _ => 0,
            };
            return format!("{value:.decimals$} {prefix}{unit}");
        }
        value /= 1024.0;
    }
    unreachable!("the loop returns at P")
}
