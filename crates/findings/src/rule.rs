//! A row of the table of rules.

use crate::signals::Signals;

/// Place of a finding among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Void,
    /// The figures are in doubt.
    Doubt,
    Saving,
    /// A remark without a time.
    Remark,
}

/// A rule: one row of the table.
#[derive(Debug)]
pub struct FindingRule {
    /// Short name, such as `R7`.
    pub id: &'static str,
    pub rank: Rank,
    /// Figure that the rule judges.
    pub signal: &'static str,
    pub threshold: &'static str,
    /// Publication of the threshold, or `own`.
    pub origin: &'static str,
    /// Reason why the rule may mislead; may be empty.
    pub caveat: &'static str,
    pub advice: &'static str,
    /// Returns what the figures show; `None` if they stay below the threshold or are missing.
    pub judge: fn(&Signals) -> Option<Observed>,
}

/// Observation of a rule that fired.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// The conclusion, in a sentence.
    pub what: String,
    /// The figures and the arithmetic.
    pub evidence: String,
    /// Advice for this workload; the rule's own if it is empty.
    pub advice: String,
    /// DB time that could be saved at most, nanoseconds.
    pub saves_ns: Option<u64>,
    /// Command of the study that would prove it; empty if there is none.
    pub study: String,
    /// Place among the others, if it is not the rule's.
    pub rank: Option<Rank>,
}

impl Observed {
    pub(crate) fn new(what: impl Into<String>, evidence: impl Into<String>) -> Observed {
        Observed { what: what.into(), evidence: evidence.into(), ..Observed::default() }
    }

    pub(crate) fn advise(self, advice: impl Into<String>) -> Observed {
        Observed { advice: advice.into(), ..self }
    }

    pub(crate) fn saves(self, ns: u64) -> Observed {
        Observed { saves_ns: (ns > 0).then_some(ns), ..self }
    }

    pub(crate) fn ranked(self, rank: Rank) -> Observed {
        Observed { rank: Some(rank), ..self }
    }

    pub(crate) fn proved_by(self, study: impl Into<String>) -> Observed {
        Observed { study: study.into(), ..self }
    }
}
