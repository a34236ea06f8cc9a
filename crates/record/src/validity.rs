//! Validity of a run's figures.
//!
//! A contradicted receipt or a failed check makes a run invalid, whatever its time. A run whose
//! result was not checked is not called valid, whatever its receipts. Use of the machine by others
//! and answers of caches make no run invalid; its headline reports them after the state.

use super::{Fact, Held, Record, circumstance};
use serde::{Deserialize, Serialize};

/// The state at the head of every report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Nothing failed, and the result was checked.
    Valid,
    /// Nothing failed, and the result was not checked.
    Unverified,
    /// A check failed or a receipt contradicts its setting.
    Invalid,
}

impl RunState {
    pub const fn word(self) -> &'static str {
        match self {
            RunState::Valid => "VALID",
            RunState::Unverified => "UNVERIFIED",
            RunState::Invalid => "INVALID",
        }
    }
}

/// The state with its basis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    pub state: RunState,
    /// Facts that make the figures doubtful in any state.
    pub doubtful: Vec<Fact>,
    /// Counts of checks and receipts in one line.
    pub basis: String,
    /// Reasons why the run is invalid, one sentence each.
    pub reasons: Vec<String>,
}

impl Validity {
    /// Returns the words of a headline: `VALID, DISTURBED (others used the device)`.
    pub fn words(&self) -> String {
        let mut words = vec![self.state.word().to_string()];
        words.extend(circumstance::headline(&self.doubtful));
        words.join(", ")
    }
}

impl Record {
    /// Judges if the run's figures may be used.
    pub fn validity(&self) -> Validity {
        let reasons = self.failed_checks().chain(self.contradicted_receipts()).collect::<Vec<_>>();
        let state = match (reasons.is_empty(), self.checks.is_empty()) {
            (false, _) => RunState::Invalid,
            (true, true) => RunState::Unverified,
            (true, false) => RunState::Valid,
        };
        let doubtful = self.doubtful().map(|circumstance| circumstance.fact).collect();
        Validity { state, doubtful, basis: self.basis(), reasons }
    }

    fn failed_checks(&self) -> impl Iterator<Item = String> {
        let failed = self.checks.iter().filter(|check| !check.passed);
        failed.map(|check| format!("verification failed: {}: {}", check.name, check.detail))
    }

    fn contradicted_receipts(&self) -> impl Iterator<Item = String> {
        let contradicted = self.receipts.iter().filter(|row| row.held == Held::Contradicted);
        contradicted
            .map(|row| format!("receipt contradicts {} = {}: {}", row.setting, row.asked, row.evidence))
    }

    fn basis(&self) -> String {
        if let Some(imported) = &self.imported {
            let [held, failed] = imported.checked();
            return format!(
                "{held} of {} checks of the imported report's own arithmetic held",
                held + failed
            );
        }
        let passed = self.checks.iter().filter(|check| check.passed).count();
        let count = |held| self.receipts.iter().filter(|row| row.held == held).count();
        let mut basis = match self.checks.len() {
            0 => "no check of the result was run".to_string(),
            checks => format!("{passed} of {checks} checks passed"),
        };
        basis.push_str(&format!(", {} of {} receipts held", count(Held::Held), self.receipts.len()));
        for (held, word) in [(Held::Contradicted, "contradicted"), (Held::NotChecked, "not checked")] {
            if count(held) > 0 {
                basis.push_str(&format!(", {} {word}", count(held)));
            }
        }
        basis
    }
}
