//! Objections to a calibration, a sentence each.
//!
//! They derive from the record. A calibration is settled if every main figure is, no other process
//! used the device, and only the device answered. Anything else leaves it in doubt.

use crate::{AnswerSource, Calibration, TaskResult, Warning};
use plumb_io::DirectIo;
use plumb_units::Bytes;

/// Returns the objections to a calibration, a sentence each.
pub(super) fn of(calibration: &Calibration) -> Vec<String> {
    let mut reasons = Vec::new();
    if let (Some(figure), Some(link)) = (calibration.impossible().first(), calibration.link_bytes_per_second)
    {
        reasons.push(format!(
            "IMPOSSIBLE: {} of {:.0} {} is more than the link's {:.0} MB/s: a cache on this side of the link \
             answered, or the link is faster than was stated",
            figure.kind.name(),
            figure.estimate.median,
            figure.kind.unit(),
            link as f64 / Bytes::M as f64
        ));
    }
    if !calibration.environment.direct {
        reasons.push("all requests went through the page cache".to_string());
    }
    if let Some(rate) = calibration.max_rate {
        reasons.push(format!("limited to {rate} requests a second: no rate is the device's"));
    }
    let other_load = |warning: &&Warning| matches!(warning, Warning::OtherLoad { .. });
    reasons.extend(calibration.warnings.iter().find(other_load).map(ToString::to_string));
    let unsettled = calibration.figures.iter().filter(|figure| !figure.estimate.settled);
    let unsettled: Vec<&str> = unsettled.map(|figure| figure.kind.name()).collect();
    if !unsettled.is_empty() {
        reasons.push(format!("not settled: {}", unsettled.join("; ")));
    }
    for (source, what) in [
        (AnswerSource::PageCache, "the page cache answered part of"),
        (AnswerSource::CacheBelow, "a layer below the file system answers"),
        (AnswerSource::HostCacheSuspected, "a cache beneath this machine may have answered"),
    ] {
        // A write without direct I/O is expected to end in the page cache.
        let unexpected =
            |result: &&TaskResult| result.answer.source == source && result.direct_io() == DirectIo::Required;
        let found: Vec<&TaskResult> = calibration.measured().filter(unexpected).collect();
        if let Some(first) = found.first() {
            let points =
                if found.len() == 1 { "1 point".to_string() } else { format!("{} points", found.len()) };
            reasons.push(format!("{what} {points}, among them {}: {}", first.task, first.answer.reason));
        }
    }
    reasons
}
