//! What a set of repeated runs proves: numbers in, a verdict out.
//!
//! ```text
//! design ──> (somebody runs it) ──> effect ──> permutation ──> multiple ──┐
//!                                     │    └─> sequential ────────────────┤
//!                                     ├─> equivalence ────────────────────┼─> verdict
//!                                     ├─> order, change_point ────────────┤
//!                                     └─> noise ──────────────────────────┘
//! synthetic ──> calibration: what all of the above does to data whose truth is known
//! ```
//!
//! One idea carries the crate. Arms run in random order within a block, so if
//! a treatment does nothing, the treatment's and the reference's labels could
//! have been exchanged and the logarithm of their ratio would only have changed
//! its sign. A coin was tossed for that sign, by the design and not by the
//! machine. Every test here asks how often such coins give what was seen, and
//! is therefore right for drifting, bursty, autocorrelated and heavy-tailed
//! times alike. What breaks it is a run that changes its successor, which is
//! why `order` exists.
//!
//! All effects are natural logarithms of ratios; `effect::percent` turns them
//! into per cent. Every random number comes from a seed that the caller keeps.
//!
//! It is not a statistics library: it opens no file, reads no clock, prints
//! nothing and knows no workload.

pub mod calibration;
pub mod change_point;
pub mod design;
pub mod effect;
pub mod equivalence;
mod error;
pub mod interval;
pub mod multiple;
pub mod noise;
pub mod order;
pub mod permutation;
pub mod proportion;
pub mod random;
pub mod sequential;
pub mod signed_rank;
mod summary;
pub mod synthetic;
pub mod verdict;

pub use error::ProofError;
