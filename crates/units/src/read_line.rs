//! The cost of reads as a line: t(bytes) = start + bytes / rate, one read at a time.
//!
//! ```text
//! sort_read_fac = (start + b / rate) / (b / rate)     the first block over each further one
//! start = 45 us, rate = 1.2 GB/s, b = 8K: b / rate = 6.4 us, sort_read_fac = 8
//! ```

/// Cost of a read of any size on one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadLine {
    /// Seconds before the first byte: seek, latency, system call.
    pub start_seconds: f64,
    /// Rate after the first byte, bytes a second.
    pub bytes_per_second: f64,
}

impl ReadLine {
    /// Fits the line through (bytes, seconds) with the least squares of relative errors: the
    /// scatter of a time grows with the time, and a plain fit would let the longest reads decide
    /// where the line starts. A start below zero is taken as zero. `None` where longer reads take
    /// no longer.
    pub fn fit(points: &[(f64, f64)]) -> Option<ReadLine> {
        // Each error is divided by the time: weights of 1 / t^2 in the normal equations.
        let sum = |term: fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|(bytes, seconds)| term(*bytes, *seconds) / (seconds * seconds)).sum()
        };
        let (weight, x, y) = (sum(|_, _| 1.0), sum(|b, _| b), sum(|_, s| s));
        let (xx, xy) = (sum(|b, _| b * b), sum(|b, s| b * s));
        let slope = (weight * xy - x * y) / (weight * xx - x * x);
        let start = (y - slope * x) / weight;
        if !slope.is_finite() || slope <= 0.0 {
            return None;
        }
        let (start_seconds, bytes_per_second) =
            if start >= 0.0 { (start, 1.0 / slope) } else { (0.0, xx / xy) };
        Some(ReadLine { start_seconds, bytes_per_second })
    }

    /// Returns SORT_READ_FAC: the cost of reading one block over the cost of each further block of
    /// the same request, rounded, and at least 1.
    pub fn read_fac(&self, block_bytes: u64) -> u64 {
        let transfer = block_bytes as f64 / self.bytes_per_second;
        self.read_fac_of(block_bytes, self.start_seconds + transfer).round() as u64
    }

    /// Returns the same ratio for a measured time of a one-block read, seconds, such as that with
    /// several reads in flight; at least 1.
    pub fn read_fac_of(&self, block_bytes: u64, block_seconds: f64) -> f64 {
        let ratio = block_seconds / (block_bytes as f64 / self.bytes_per_second);
        if ratio.is_finite() { ratio.max(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= expected.abs() * 0.02
    }

    fn fit(points: &[(f64, f64)]) -> (f64, f64) {
        let line = ReadLine::fit(points).expect("a line");
        (line.start_seconds, line.bytes_per_second)
    }

    #[test]
    fn the_line_is_found_and_one_bad_size_bends_it_little() {
        let line = |start: f64, rate: f64| {
            [8192.0, 65536.0, 262_144.0, 1_048_576.0].map(|bytes: f64| (bytes, start + bytes / rate)).to_vec()
        };
        let (start, rate) = fit(&line(100e-6, 1.5e9));
        assert!(close(start, 100e-6) && close(rate, 1.5e9), "{start} {rate}");
        let (start, rate) = fit(&line(8e-3, 150e6));
        assert!(close(start, 8e-3) && close(rate, 150e6), "{start} {rate}");
        let mut slow_end = line(100e-6, 1.5e9);
        slow_end[3].1 *= 1.3;
        let (start, _) = fit(&slow_end);
        assert!((60e-6..110e-6).contains(&start), "{start}");
    }

    #[test]
    fn a_device_whose_reads_all_take_the_same_has_no_line() {
        assert_eq!(ReadLine::fit(&[(8e3, 1e-3), (64e3, 1e-3), (1e6, 0.9e-3)]), None);
        assert_eq!(ReadLine::fit(&[(8192.0, 1e-4)]), None);
        let (start, rate) = fit(&[(8192.0, 1e-6), (65536.0, 4e-5), (262_144.0, 3e-4)]);
        assert!(start == 0.0 && rate > 0.0, "{start} {rate}");
    }

    #[test]
    fn the_read_factor_follows_the_formula() {
        let fac = |start_seconds: f64, bytes_per_second: f64| {
            ReadLine { start_seconds, bytes_per_second }.read_fac(8192)
        };
        // A disk of 1996: 10 ms seek and latency, 8 MB/s: a block takes 1 ms.
        assert_eq!(fac(10e-3, 8_192_000.0), 11);
        assert_eq!(fac(100e-6, 1.5e9), 19);
        assert_eq!(fac(0.0, 1.5e9), 1);
        assert_eq!(fac(f64::NAN, 1.5e9), 1);
    }
}
