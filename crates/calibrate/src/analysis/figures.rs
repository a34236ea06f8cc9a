//! The main figures: a row each, with name, unit and sentence.
//!
//! Comparisons of calibrations use them, a summary prints them, and later reports state shares of
//! them. Each names the task that gave it.

use super::curve::SATURATED;
use crate::measure::find;
use crate::plan::{LARGE_OUTSTANDING, MIXED_PERCENT};
use crate::{Curve, DurableMethod, Estimate, Load, LogSpace, Pattern, Point, ReadCost, TaskResult};
use plumb_io::DirectIo;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

macro_rules! figures {
    ($($variant:ident, $name:literal, $unit:literal, $sentence:literal;)*) => {
        /// A main figure of a calibration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FigureKind { $(#[doc = $sentence] $variant),* }

        impl FigureKind {
            /// Every figure, in printing order.
            pub const ALL: &'static [FigureKind] = &[$(FigureKind::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(FigureKind::$variant => $name),* }
            }

            pub const fn unit(self) -> &'static str {
                match self { $(FigureKind::$variant => $unit),* }
            }
        }
    };
}

figures! {
    SmallReadLatency, "small random read, alone", "us", "The median time of one small random read with nothing else in flight.";
    SmallReadIops, "small random reads", "IOPS", "The most small random reads a second at any depth.";
    SmallWriteIops, "small random writes", "IOPS", "The most small random writes a second at any depth.";
    SmallMixedIops, "small random 70/30", "IOPS", "The most small random requests a second, seven reads to three writes, at any depth.";
    IopsWithinLatency, "reads within the latency", "IOPS", "The most small random reads a second whose mean latency stays within the maximum asked for.";
    SequentialRead, "large sequential read", "MB/s", "Large sequential reads by one thread.";
    SequentialReadAll, "large sequential read, by all threads", "MB/s", "Large sequential reads by as many threads as there are processors.";
    SequentialWrite, "large sequential write", "MB/s", "Large sequential writes by one thread.";
    SequentialWriteAll, "large sequential write, by all threads", "MB/s", "Large sequential writes by as many threads as there are processors.";
    RandomRead, "large random read", "MB/s", "Large random reads by one thread.";
    RandomReadAll, "large random read, by all threads", "MB/s", "Large random reads by as many threads as there are processors.";
    RandomWrite, "large random write", "MB/s", "Large random writes by one thread.";
    RandomWriteAll, "large random write, by all threads", "MB/s", "Large random writes by as many threads as there are processors.";
    DurableWrite, "4K write + fdatasync", "us", "The median time of a durable 4K write to a log of zeros, past the page cache where that works.";
    ReadStart, "read cost: start", "us", "What a read costs before its first byte.";
    ReadRate, "read cost: rate", "MB/s", "Bytes a second of a read once it runs.";
}

/// A main figure with its estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MainFigure {
    pub kind: FigureKind,
    pub estimate: Estimate,
    /// The task that gave the figure.
    pub at: String,
}

/// Results to search, and the properties of the figures' tasks.
pub(crate) struct FigureSearch<'a> {
    pub results: &'a [TaskResult],
    /// A single small random read by the usual method.
    pub like: &'a Point,
    pub size_large: Bytes,
    pub processors: usize,
    pub max_latency: Nanos,
    pub read_cost: Option<&'a ReadCost>,
}

impl FigureSearch<'_> {
    /// Returns all figures that the results contain.
    pub(crate) fn figures(&self) -> Vec<MainFigure> {
        FigureKind::ALL.iter().filter_map(|kind| self.figure(*kind)).collect()
    }

    fn figure(&self, kind: FigureKind) -> Option<MainFigure> {
        let (sequential, random) = (Pattern::Sequential, Pattern::Random);
        let (estimate, at) = match kind {
            FigureKind::SmallReadLatency => {
                let result = find(self.results, self.like)?;
                (result.latency_micros(0, 0.5)?, self.like.single()?.to_string())
            }
            FigureKind::SmallReadIops => self.maximum(0)?,
            FigureKind::SmallWriteIops => self.maximum(100)?,
            FigureKind::SmallMixedIops => self.maximum(MIXED_PERCENT)?,
            FigureKind::IopsWithinLatency => {
                let curve = Curve::of(self.results, self.like, 0);
                let point = curve.within(self.max_latency)?;
                (
                    point.iops.clone(),
                    format!("depth {}, mean {:.0} us", point.outstanding, point.mean_micros.median),
                )
            }
            FigureKind::SequentialRead => self.large(sequential, 0, 1)?,
            FigureKind::SequentialReadAll => self.large(sequential, 0, self.processors)?,
            FigureKind::SequentialWrite => self.large(sequential, 100, 1)?,
            FigureKind::SequentialWriteAll => self.large(sequential, 100, self.processors)?,
            FigureKind::RandomRead => self.large(random, 0, 1)?,
            FigureKind::RandomReadAll => self.large(random, 0, self.processors)?,
            FigureKind::RandomWrite => self.large(random, 100, 1)?,
            FigureKind::RandomWriteAll => self.large(random, 100, self.processors)?,
            FigureKind::DurableWrite => self.durable()?,
            FigureKind::ReadStart => (self.read_cost?.start_micros.clone(), "t = s + bytes / B".to_string()),
            FigureKind::ReadRate => (self.read_cost?.mb_per_second.clone(), "t = s + bytes / B".to_string()),
        };
        Some(MainFigure { kind, estimate, at })
    }

    fn maximum(&self, write_percent: u8) -> Option<(Estimate, String)> {
        let curve = Curve::of(self.results, self.like, write_percent);
        let (point, saturation) = (curve.maximum()?, curve.saturation()?);
        let threads = if point.threads > 1 { format!(", {} threads", point.threads) } else { String::new() };
        let at = format!(
            "depth {}{threads}; {:.0}% at {}",
            point.outstanding,
            SATURATED * 1e2,
            saturation.outstanding
        );
        Some((point.iops.clone(), at))
    }

    fn large(&self, pattern: Pattern, write_percent: u8, threads: usize) -> Option<(Estimate, String)> {
        let load = Load { pattern, write_percent, ..Load::random_read(self.size_large, LARGE_OUTSTANDING) };
        let threads = threads.min(LARGE_OUTSTANDING);
        let result = find(self.results, &self.like.with(vec![load], threads))?;
        let at = if threads > 1 { format!("{load}, {threads} threads") } else { load.to_string() };
        Some((result.mb_per_second(0)?, at))
    }

    fn durable(&self) -> Option<(Estimate, String)> {
        let wanted = |direct_io| {
            self.results.iter().find(|result| {
                result.durable().is_some_and(|point| {
                    point.method == DurableMethod::Fdatasync
                        && point.space == LogSpace::Zeroed
                        && point.request_bytes == 4096
                        && point.direct_io == direct_io
                })
            })
        };
        let result = wanted(DirectIo::Required).or_else(|| wanted(DirectIo::Off))?;
        Some((result.latency_micros(0, 0.5)?, result.task.to_string()))
    }
}
