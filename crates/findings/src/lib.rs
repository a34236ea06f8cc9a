//! Findings: one table of rules that judge the figures of a period.
//!
//! What it does: [`findings`] applies every row of [`rules`] to a [`Signals`] value. A row states its
//! signal, threshold, origin, caveat and advice; its function compares the figures with the
//! threshold. A finding has its arithmetic, the time that could be saved at most, and the study that
//! would prove it.
//!
//! ```text
//! record of a run ──> Signals::of ──┐
//!   facts of the run ─> .run        ├─> rules ──> findings, the largest saving first
//! imported report ──> Signals ──────┘
//! ```
//!
//! How: rules read nothing but `Signals`, which knows no engine and no file format. A figure that its
//! source lacks is `None` or empty, and the rules that need it are silent. Doubts about the figures
//! come first, then findings by the time that they could save, then remarks.
//!
//! Why not rules next to the engine: an imported report has the same signals, and two tables of
//! thresholds would drift apart. Why not one score: a reader has to see which figure met which
//! threshold, and who published it.
//!
//! Limits: a saving is an upper bound in DB time, because a session that stops waiting for one thing
//! may wait for the next. Savings of several findings overlap and do not add up. A rule advises a
//! setting only if the workload uses it ([`Uses`]).

mod judge;
mod rule;
mod rules;
mod signals;

pub use judge::findings;
pub use rule::{Rank, Rule, Seen};
pub use rules::all as rules;
pub use signals::{
    Absorbed, Advisory, CacheSignals, Grown, HostSignals, LogSignals, Medium, Origin, Reached, RunFacts,
    ServerSignals, Signals, SortFacts, TablespaceIo, Uses,
};
