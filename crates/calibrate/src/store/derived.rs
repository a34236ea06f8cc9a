//! Figures that follow from the main figures: commits, time of a scan, parameters of optimizers.
//!
//! A cost-based optimizer needs the cost of a random block relative to a sequential one. PostgreSQL
//! has the ratio as a setting, Oracle gathers the times as system statistics. Both are quotients of
//! measured figures:
//!
//! ```text
//! seq      = block / rate of sequential reads by one thread     time of a block in a scan
//! random   = median time of one random block, alone
//!
//! PostgreSQL  seq_page_cost 1, random_page_cost random / seq,
//!             effective_io_concurrency: fewest outstanding reads that saturate
//! Oracle      SREADTIM random, MREADTIM time of MBRC blocks in one read,
//!             IOSEEKTIM start of a read, IOTFRSPEED bytes a ms after it
//! ```
//!
//! The interval of a quotient divides the low end by the high one and the reverse. That is wider
//! than an interval of the same confidence, but assumes nothing about how both vary together.
//!
//! Limits: these are costs of the device. A database that has most blocks in its cache pays less
//! for a random one, and its administrator sets `random_page_cost` lower. Sessions that share a log
//! write also need processors, so their commits are an upper bound.

use crate::analysis::SATURATED;
use crate::{Calibration, DurableMethod, DurablePoint, Estimate, FigureKind, LogSpace};
use plumb_units::{Bytes, Nanos};

/// A number that follows from main figures by arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedFigure {
    pub kind: DerivedKind,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The quotient with its numbers, as `1 s / 160 us`.
    pub arithmetic: String,
}

macro_rules! derived {
    ($($variant:ident, $name:literal, $unit:literal, $user:literal;)*) => {
        /// Kind of a derived figure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum DerivedKind { $(#[doc = $name] $variant),* }

        impl DerivedKind {
            /// Name of the figure, or of the setting that takes it.
            pub const fn name(self) -> &'static str {
                match self { $(DerivedKind::$variant => $name),* }
            }

            pub const fn unit(self) -> &'static str {
                match self { $(DerivedKind::$variant => $unit),* }
            }

            /// Reader of the figure: a person, or the optimizer of a database.
            pub const fn user(self) -> &'static str {
                match self { $(DerivedKind::$variant => $user),* }
            }
        }
    };
}

derived! {
    CommitsOne, "commits of one session", "a second", "reader";
    CommitsShared, "commits of 32 sessions, at most", "a second", "reader";
    Scan, "reading 100 GB", "s", "reader";
    RandomPageCost, "random_page_cost", "of seq_page_cost 1", "PostgreSQL";
    IoConcurrency, "effective_io_concurrency", "reads", "PostgreSQL";
    SreadTime, "SREADTIM", "ms", "Oracle";
    MreadTime, "MREADTIM", "ms", "Oracle";
    Mbrc, "MBRC", "blocks", "Oracle";
    SeekTime, "IOSEEKTIM", "ms", "Oracle";
    TransferSpeed, "IOTFRSPEED", "bytes a ms", "Oracle";
}

/// Sessions that share log writes, as administrators ask for.
const SESSIONS: f64 = 32.0;
/// Log bytes of one small commit: a record fills its block of 512 bytes.
const COMMIT_BYTES: u64 = 512;
/// Bytes of the scan whose time is given.
const SCAN: Bytes = Bytes(100 * Bytes::G);
/// Bytes of a multiblock read.
const MULTIBLOCK: u64 = Bytes::M;

/// Returns what follows from a calibration; figures that were not measured have no consequences.
pub(crate) fn of(calibration: &Calibration) -> Vec<DerivedFigure> {
    let mut found = Vec::new();
    found.extend(commits_of_one(calibration));
    found.extend(commits_shared(calibration));
    found.extend(scan(calibration));
    // Optimizers count in blocks of 8K.
    if calibration.size_small == 8 * Bytes::K {
        found.extend(random_page_cost(calibration));
        found.extend(io_concurrency(calibration));
        found.extend(oracle_reads(calibration));
    }
    found
}

fn commits_of_one(calibration: &Calibration) -> Option<DerivedFigure> {
    let write = &calibration.figure(FigureKind::DurableWrite)?.estimate;
    let arithmetic = format!("1 s / {}, a 4K write + fdatasync", time(write.median));
    Some(quotient(DerivedKind::CommitsOne, &constant(1e6), write, arithmetic))
}

/// All sessions wait for one write, which carries a record of each.
fn commits_shared(calibration: &Calibration) -> Option<DerivedFigure> {
    let bytes = COMMIT_BYTES * SESSIONS as u64;
    let of_bytes = |wanted: u64| {
        let sound = |point: &DurablePoint| {
            point.method == DurableMethod::Fdatasync
                && point.space == LogSpace::Zeroed
                && point.request_bytes == wanted
        };
        let result = calibration.measured().find(|result| result.durable().is_some_and(sound))?;
        Some((wanted, result.latency_micros(0, 0.5)?))
    };
    // A quick calibration writes 4K only, which is less than such a write has.
    let (bytes, write) = match of_bytes(bytes) {
        Some(found) => found,
        None => (4096, calibration.figure(FigureKind::DurableWrite)?.estimate.clone()),
    };
    let arithmetic =
        format!("{SESSIONS} / {}, a {} write + fdatasync", time(write.median), Bytes(bytes).as_setting());
    Some(quotient(DerivedKind::CommitsShared, &constant(SESSIONS * 1e6), &write, arithmetic))
}

fn scan(calibration: &Calibration) -> Option<DerivedFigure> {
    let of = |kind| calibration.figure(kind).map(|figure| &figure.estimate);
    let fastest = [of(FigureKind::SequentialRead), of(FigureKind::SequentialReadAll)];
    let rate = fastest.into_iter().flatten().max_by(|left, right| left.median.total_cmp(&right.median))?;
    let arithmetic = format!("{} / {:.0} MB/s, the faster sequential read", SCAN, rate.median);
    Some(quotient(DerivedKind::Scan, &constant(SCAN.0 as f64 / Bytes::M as f64), rate, arithmetic))
}

fn random_page_cost(calibration: &Calibration) -> Option<DerivedFigure> {
    let random = &calibration.figure(FigureKind::SmallReadLatency)?.estimate;
    let rate = &calibration.figure(FigureKind::SequentialRead)?.estimate;
    let per_block =
        |mb_per_second: f64| calibration.size_small as f64 / Bytes::M as f64 / mb_per_second * 1e6;
    let block = Estimate {
        median: per_block(rate.median),
        low: per_block(rate.high),
        high: per_block(rate.low),
        ..rate.clone()
    };
    let arithmetic =
        format!("{} / {}, 8K at {:.0} MB/s", time(random.median), time(block.median), rate.median);
    Some(quotient(DerivedKind::RandomPageCost, random, &block, arithmetic))
}

fn io_concurrency(calibration: &Calibration) -> Option<DerivedFigure> {
    let curve = calibration.curve(0);
    let depth = curve.saturation()?.outstanding as f64;
    let arithmetic = format!("fewest outstanding reads with {:.0}% of the most", SATURATED * 1e2);
    Some(exact(DerivedKind::IoConcurrency, depth, arithmetic))
}

fn oracle_reads(calibration: &Calibration) -> Vec<DerivedFigure> {
    let mut found = Vec::new();
    if let Some(figure) = calibration.figure(FigureKind::SmallReadLatency) {
        found.push(scaled(DerivedKind::SreadTime, &figure.estimate, "one 8K read, alone".to_string()));
    }
    let Some(cost) = &calibration.read_cost else { return found };
    if let Some((bytes, mean)) = cost.measured.iter().find(|(bytes, _)| *bytes == MULTIBLOCK) {
        let arithmetic = format!("one read of {}, alone", Bytes(*bytes).as_setting());
        found.push(scaled(DerivedKind::MreadTime, mean, arithmetic));
        let blocks = (bytes / calibration.size_small) as f64;
        found.push(exact(DerivedKind::Mbrc, blocks, "blocks of 8K in a read of 1M".to_string()));
    }
    found.push(scaled(DerivedKind::SeekTime, &cost.start_micros, "the start of a read".to_string()));
    let per_ms = Bytes::M as f64 / 1e3;
    let Estimate { median, low, high, .. } = cost.mb_per_second;
    let arithmetic = format!("{median:.0} MB/s after the start");
    let kind = DerivedKind::TransferSpeed;
    found.push(DerivedFigure {
        kind,
        median: median * per_ms,
        low: low * per_ms,
        high: high * per_ms,
        arithmetic,
    });
    found
}

/// A time in microseconds as milliseconds.
fn scaled(kind: DerivedKind, micros: &Estimate, arithmetic: String) -> DerivedFigure {
    let Estimate { median, low, high, .. } = micros;
    DerivedFigure { kind, median: median / 1e3, low: low / 1e3, high: high / 1e3, arithmetic }
}

fn exact(kind: DerivedKind, value: f64, arithmetic: String) -> DerivedFigure {
    DerivedFigure { kind, median: value, low: value, high: value, arithmetic }
}

fn constant(value: f64) -> Estimate {
    Estimate {
        median: value,
        low: value,
        high: value,
        interval: crate::Interval::Range,
        repeats: 1,
        settled: true,
        reason: None,
    }
}

fn quotient(kind: DerivedKind, over: &Estimate, under: &Estimate, arithmetic: String) -> DerivedFigure {
    DerivedFigure {
        kind,
        median: over.median / under.median,
        low: over.low / under.high,
        high: over.high / under.low,
        arithmetic,
    }
}

fn time(micros: f64) -> Nanos {
    Nanos((micros * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(median: f64, low: f64, high: f64) -> Estimate {
        Estimate { median, low, high, ..constant(median) }
    }

    #[test]
    fn a_quotient_lies_between_its_widest_ends() {
        let found =
            quotient(DerivedKind::CommitsOne, &constant(1e6), &estimate(160.0, 125.0, 200.0), String::new());
        assert_eq!((found.median, found.low, found.high), (6_250.0, 5_000.0, 8_000.0));
    }
}
