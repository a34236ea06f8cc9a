//! Audits published claims: contradictions among the figures of a claim, and missing facts.
//!
//! ```text
//! claim file ──> claim (figures, relations, answers) ──┬─> arithmetic (rule, physics) ──┐
//!                                                      ├─> checklist ───────────────────┼─> audit
//! bundle ──> (the caller verifies it) ──> evidence ────┴────────────────────────────────┘
//! ```
//!
//! A claim file has only facts: printed figures, and the relations among them. The rules find
//! contradictions by the intervals that the printed digits allow, in every reading of their units.
//! No comparison has a tolerance. The checklist finds facts that are not stated.
//!
//! This crate reads no file, depends on no study or engine, and reads no clock.

mod arithmetic;
mod audit;
pub mod catalog;
mod checklist;
mod claim;
mod rule;

pub use audit::{Audit, Backing, Reason, ReasonKind, audit};
pub use claim::{By, ClaimError, Experiment, PrintedFigure, Publication, PublishedClaim, parse};

#[cfg(test)]
mod tests;
