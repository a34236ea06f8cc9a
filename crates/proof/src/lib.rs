//! Inference from repeated runs: numbers in, a verdict out.
//!
//! ```text
//! design ──> (a study runs it) ──> effect ──> contrast ──> randomisation ──┐
//!                                     │           └────> sequential ──────┼─> family ──┐
//!                                     │                                   └─> best ────┤
//!                                     ├─> average, quantile, order, change_point ──────┼─> verdict
//!                                     └─> noise ───────────────────────────────────────┘
//! ```
//!
//! One idea carries the crate. Arms run in random order within a block. So if a treatment has no
//! effect, the design and not the machine drew which of a block's runs was the treatment. Every
//! test here computes how often such draws give the observed result. It is therefore valid for
//! drifting, bursty, autocorrelated and heavy-tailed times. Draws alone do not cover effects that
//! vary from block to block, so blocks must agree as well. A run that changes its successor breaks
//! the idea, which is why `order` exists.
//!
//! All effects are natural logarithms of ratios; `effect::percent` converts them to per cent. Every
//! random number comes from a seed that the caller keeps.
//!
//! It is no statistics library: it opens no file, reads no clock, prints
//! nothing and knows no workload.

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
pub mod knee;
pub mod multiple;
pub mod noise;
pub mod order;
pub mod proportion;
pub mod quantile;
pub mod random;
pub mod randomisation;
pub mod selection;
pub mod sequential;
pub mod series;
pub mod signed_rank;
pub mod student;
mod summary;
pub mod verdict;

pub use error::ProofError;
pub use plumb_units::median;
pub use summary::normal_quantile;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
