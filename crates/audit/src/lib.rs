//! Audits of published claims: what the figures of a claim say against each other, and what it
//! leaves open.
//!
//! ```text
//! claim file ──> claim (figures, relations, answers) ──┬─> arithmetic (rule, physics) ──┐
//!                                                      ├─> checklist ───────────────────┼─> audit
//! bundle ──> (the caller verifies it) ──> evidence ────┴────────────────────────────────┘
//! ```
//!
//! A file has facts alone: figures as they are printed, and the relations that the claim makes
//! among them. The rules find contradictions by the intervals that the printed digits allow, in
//! every reading of their units; the checklist asks what must be stated. Nothing is compared with a
//! tolerance.
//!
//! This crate reads no file, knows no study and no engine, and has no clock.

mod arithmetic;
mod audit;
pub mod catalog;
mod checklist;
mod claim;
mod figure;
mod physics;
mod rule;
mod unit;

pub use audit::{Audit, Backing, Reason, ReasonKind, audit};
pub use claim::{By, ClaimError, Experiment, PrintedFigure, Publication, PublishedClaim, parse};

#[cfg(test)]
mod tests;
