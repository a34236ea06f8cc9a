//! What a set of repeated runs proves: numbers in, a verdict out.
//!
//! ```text
//! design ──> (somebody runs it) ──> effect ──> contrast ──> randomisation ──┐
//!                                     │           └────> sequential ────────┼─> family ──┐
//!                                     │                                     └─> best ────┤
//!                                     ├─> average, order, change_point ──────────────────┼─> verdict
//!                                     └─> noise ─────────────────────────────────────────┘
//! ```
//!
//! One idea carries the crate. Arms run in random order within a block, so if a treatment does
//! nothing, which of a block's runs was the treatment was drawn, by the design and not by the
//! machine. Every test here asks how often such draws give what was seen, and is therefore right
//! for drifting, bursty, autocorrelated and heavy-tailed times alike. Effects that vary from block
//! to block are what that leaves out, and blocks have to agree besides. What breaks it is a run
//! that changes its successor, which is why `order` exists.
//!
//! All effects are natural logarithms of ratios; `effect::percent` turns them into per cent. Every
//! random number comes from a seed that the caller keeps.
//!
//! It is not a statistics library: it opens no file, reads no clock, prints nothing and knows no
//! workload.

#![warn(missing_docs)]

pub mod average;
pub mod best;
pub mod change_point;
pub mod contrast;
pub mod covariate;
pub mod design;
pub mod effect;
pub mod equivalence;
mod error;
pub mod family;
pub mod interval;
pub mod multiple;
pub mod noise;
pub mod order;
pub mod proportion;
pub mod random;
pub mod randomisation;
pub mod selection;
pub mod sequential;
pub mod signed_rank;
pub mod student;
mod summary;
pub mod verdict;

pub use error::ProofError;
pub use plumb_units::median;
pub use summary::normal_quantile;
