//! Findings: one table of rules that judge the figures of a period.
//!
//! [`findings`] applies every row of [`rules`] to a [`Signals`] value. A row states its signal,
//! threshold, origin, caveat and advice; its function compares the figures with the threshold. A
//! finding has its arithmetic, the time that could be saved at most, and the study that would prove
//! it.
//!
//! ```text
//! record of a run ──> Signals::of ──┐
//!   facts of the run ─> .run        ├─> rules ──> findings, the largest saving first
//! imported report ──> Signals ──────┤
//! record of a trace ─> Signals::of ─┘
//! ```
//!
//! Rules read nothing but `Signals`, which knows no engine and no file format. A figure that the
//! source lacks is `None` or empty, and the rules that need it are silent. Doubts about the figures
//! come first, then findings by the time that they could save, then remarks.
//!
//! Why not rules next to the engine: an imported report has the same signals, and two tables of
//! thresholds would drift apart. Why not one score: a reader has to see which figure met which
//! threshold, and its publication.
//!
//! [`plans`] has the rules over plans of execution, which are trees and no figures of a period.
//!
//! Limits: a saving is an upper bound in DB time, or in the elapsed time of a trace, because a
//! session that stops waiting for one thing may wait for the next. Savings of several findings
//! overlap and do not add up. A rule advises a setting only if the workload uses it ([`Uses`]).

mod judge;
pub mod plans;
mod reasons;
mod rule;
mod rules;
mod signals;

pub use judge::findings;
pub use reasons::{MissedPath, REASONS, reasons_of};
pub use rule::{FindingRule, Observed, Rank};
pub use rules::all as rules;
pub use signals::{
    Absorbed, Advisory, CacheSignals, DeviceSignals, Grown, HostSignals, JobSignals, LogSignals, Medium,
    Origin, Reached, RunFacts, ServerSignals, Signals, SortFacts, TablespaceIo, UsersFacts, Uses,
};
