//! Physical bounds: bytes a second of links and of one request, requests a second of a spindle.

use crate::unit::Dimension;
use plumb_units::ValueRange;

/// Bytes a second that no single request reaches: four lanes of PCIe 5.0 carry 15.75 GB/s.
pub const REQUEST_RATE_MOST: f64 = 20e9;

/// Returns the bytes a second of a request by the intervals of its bytes and seconds. A time that
/// prints as 0.0 ms is up to 0.05 ms long, so that its rate has no upper bound.
#[must_use]
pub fn request_rate(bytes: ValueRange, seconds: ValueRange) -> ValueRange {
    let low = if seconds.high > 0.0 { bytes.low / seconds.high } else { f64::MAX };
    let high = if seconds.low > 0.0 { bytes.high / seconds.low } else { f64::MAX };
    ValueRange { low: low.min(f64::MAX), high: high.min(f64::MAX) }
}

#[derive(Debug)]
pub struct PhysicalBound {
    pub name: &'static str,
    /// Bytes a second of a link in one direction, or requests a second of a device.
    pub value: f64,
    pub dimension: Dimension,
    pub because: &'static str,
}

const LINK: Dimension = Dimension { bytes: 1, seconds: -1 };
const REQUESTS: Dimension = Dimension { bytes: 0, seconds: -1 };
const CODED: &str = "its line rate less 8b/10b coding";
const LANES: &str = "its lanes less 128b/130b coding";

const fn link(name: &'static str, megabytes: f64, because: &'static str) -> PhysicalBound {
    PhysicalBound { name, value: megabytes * 1e6, dimension: LINK, because }
}

/// Bounds of payload: 8b/10b coding takes a fifth of the line rate up to 8GFC, SATA and SAS.
pub const BOUNDS: [PhysicalBound; 18] = [
    link("1GFC", 100.0, CODED),
    link("2GFC", 200.0, CODED),
    link("4GFC", 400.0, CODED),
    link("8GFC", 800.0, CODED),
    link("16GFC", 1600.0, "its line rate less 64b/66b coding"),
    link("32GFC", 3200.0, "its line rate less 64b/66b coding"),
    link("1GbE", 125.0, "its line rate"),
    link("10GbE", 1250.0, "its line rate"),
    link("25GbE", 3125.0, "its line rate"),
    link("100GbE", 12500.0, "its line rate"),
    link("SATA-2", 300.0, CODED),
    link("SATA-3", 600.0, CODED),
    link("SAS-2", 600.0, CODED),
    link("SAS-3", 1200.0, CODED),
    link("PCIe3 x4", 3938.0, LANES),
    link("PCIe4 x4", 7877.0, LANES),
    link("PCIe5 x4", 15754.0, LANES),
    // At 15,000 turns a minute half a turn takes 2 ms. A queue can shorten that by reordering, so
    // 2 ms with the seek is a generous bound.
    PhysicalBound {
        name: "spindle",
        value: 500.0,
        dimension: REQUESTS,
        because: "2 ms a random request, the seek included",
    },
];

pub fn bound(name: &str) -> Option<&'static PhysicalBound> {
    BOUNDS.iter().find(|bound| bound.name == name)
}
