//! Whether to believe a calibration: one line, always in the same place.
//!
//! It follows from the context and is not stored in it. A calibration is settled
//! when every main figure is, nobody else used the device, and nothing but the
//! device answered reads; anything else leaves it in doubt, with the reasons.

use super::context::{CalibrationContext, MeasuredPoint, Source};

/// Whether the figures may be used as limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// Nothing speaks against it.
    Settled,
    /// Something does.
    InDoubt,
}

impl Confidence {
    /// The word that reports print.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Confidence::Settled => "SETTLED",
            Confidence::InDoubt => "IN DOUBT",
        }
    }
}

/// The verdict on a calibration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationVerdict {
    /// Whether to believe it.
    pub confidence: Confidence,
    /// What that rests on.
    pub basis: String,
    /// What speaks against it, a sentence each.
    pub reasons: Vec<String>,
}

impl CalibrationContext {
    /// Whether to believe it, and why.
    #[must_use]
    pub fn verdict(&self) -> CalibrationVerdict {
        let settled = self.figures.iter().filter(|figure| figure.estimate.unsettled.is_none()).count();
        let from_device = self.points.iter().filter(|point| point.source == Source::Device).count();
        let reasons = self.reasons();
        CalibrationVerdict {
            confidence: if reasons.is_empty() { Confidence::Settled } else { Confidence::InDoubt },
            basis: format!(
                "{settled} of {} main figures settled, the device answered {from_device} of {} points",
                self.figures.len(),
                self.points.len()
            ),
            reasons,
        }
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.header.direct {
            reasons.push("all requests went through the page cache".to_string());
        }
        reasons.extend(self.other_load.clone());
        let unsettled: Vec<&str> = self
            .figures
            .iter()
            .filter(|figure| figure.estimate.unsettled.is_some())
            .map(|figure| figure.name.as_str())
            .collect();
        if !unsettled.is_empty() {
            reasons.push(format!("not settled: {}", unsettled.join(", ")));
        }
        for (source, what) in [
            (Source::PageCache, "the page cache answered part of"),
            (Source::HostCacheSuspected, "a cache beneath this machine may have answered"),
        ] {
            // A write that was to end in the page cache is no surprise there.
            let unexpected = |point: &&MeasuredPoint| point.source == source && point.direct;
            let found: Vec<&MeasuredPoint> = self.points.iter().filter(unexpected).collect();
            if let Some(first) = found.first() {
                let points =
                    if found.len() == 1 { "1 point".to_string() } else { format!("{} points", found.len()) };
                reasons.push(format!("{what} {points}, among them {}: {}", first.what, first.reason));
            }
        }
        reasons
    }
}
