//! Proof that two arms are practically equal. A small difference is not the same as none, and
//! "no difference found" is neither.
//!
//! Two one-sided tests (Schuirmann 1987), each of the claim's own kind about a margin:
//!
//! ```text
//! H-: effect <= -ln(1 + d)      H+: effect >= +ln(1 + d)      p = max(p-, p+)
//! ```
//!
//! Both must be rejected, each at the claim's whole level, because both are needed (Berger 1982);
//! `family` tests them. The margin is the same distance on the logarithm to either side, so that
//! ratio and inverse ratio get the same answer. The lower end, 1/(1 + d), is a little inside 1 - d.
//!
//! A difference and an equality can both be proved (a real 0.5% within 2%); `verdict` then reports
//! the equality. The margin must be chosen before the run.

use serde::Serialize;

/// Result of the two one-sided tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Equivalence {
    /// The margin d as a share: 0.02 is 2%.
    pub margin: f64,
    /// p against "faster by d or more" (the lower margin).
    pub p_lower: f64,
    /// p against "slower by d or more" (the upper margin).
    pub p_upper: f64,
    /// The larger of the two, corrected for the other claims, to be compared with alpha.
    pub p: f64,
}
