//! The origin of a record that was read from another program's report, and what that report's own
//! arithmetic says.
//!
//! A figure keeps its text, its line, and the interval of values that print so. A check says what
//! it computes, which figures it used, and what it expected and found, both as intervals. It holds
//! if they meet; no tolerance is added.

use serde::{Deserialize, Serialize};

/// A report that a record was read from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The file.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// The line in which the report begins.
    pub line: u32,
    /// The kind of report, such as `AWR report`.
    pub kind: String,
    /// The facts of its head.
    pub facts: Vec<ImportedFact>,
    /// The figures that the record's come from.
    pub figures: Vec<ImportedFigure>,
    /// Counts of its checks, a kind each.
    pub tallies: Vec<ConsistencyTally>,
    /// The checks that did not hold.
    pub checks: Vec<Consistency>,
    /// The sections that were read, with their lines.
    pub sections: Vec<ImportedSection>,
    /// The number of lines that were not understood.
    pub unread: u64,
}

/// A fact of a report's head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedFact {
    /// Its name.
    pub name: String,
    /// The text as printed.
    pub text: String,
    /// The line.
    pub line: u32,
}

/// A section that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedSection {
    /// The heading as printed.
    pub heading: String,
    /// The line of the heading.
    pub line: u32,
    /// Its rows, a count.
    pub rows: u64,
    /// True if its columns are known by name; otherwise they are read as they are headed.
    pub known: bool,
}

/// A printed figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedFigure {
    /// Its row and its column.
    pub name: String,
    /// The text as printed.
    pub text: String,
    /// The line.
    pub line: u32,
    /// The base unit; empty for a plain number.
    pub unit: String,
    /// The value as printed, in the base unit.
    pub value: f64,
    /// The least value that prints so.
    pub low: f64,
    /// The greatest value that prints so.
    pub high: f64,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistent {
    /// Both sides have a value in common.
    Holds,
    /// They have none.
    Fails,
    /// The figure is more than any device, link or processor can do.
    Impossible,
    /// A figure that it needs is missing.
    NotAsked,
}

/// A statement about a report's figures that must hold if they are true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consistency {
    /// The kind of check, such as `time / waits = average`.
    pub name: String,
    /// The row that it is about.
    pub of: String,
    /// The arithmetic in words.
    pub arithmetic: String,
    /// The figures that it used.
    pub figures: Vec<ImportedFigure>,
    /// The interval that the other figures give; none where it was not asked.
    pub expected: Option<[f64; 2]>,
    /// The interval of the figure in question.
    pub found: Option<[f64; 2]>,
    /// The unit of both.
    pub unit: String,
    /// The result.
    pub outcome: Consistent,
    /// The reading of a failure, or what is missing; may be empty.
    pub note: String,
}

/// Counts of one kind of check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsistencyTally {
    /// The kind.
    pub name: String,
    /// Checks that held, a count.
    pub held: u64,
    /// Checks that failed, a count.
    pub failed: u64,
    /// Figures that no device can have, a count.
    pub impossible: u64,
    /// Checks without a figure that they need, a count.
    pub not_asked: u64,
}

impl ConsistencyTally {
    /// Returns the counts of each kind of check, in the order of their first.
    #[must_use]
    pub fn of(checks: &[Consistency]) -> Vec<ConsistencyTally> {
        let mut tallies: Vec<ConsistencyTally> = Vec::new();
        for check in checks {
            let at = tallies.iter().position(|tally| tally.name == check.name).unwrap_or_else(|| {
                let name = check.name.clone();
                tallies.push(ConsistencyTally { name, held: 0, failed: 0, impossible: 0, not_asked: 0 });
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            *match check.outcome {
                Consistent::Holds => &mut tally.held,
                Consistent::Fails => &mut tally.failed,
                Consistent::Impossible => &mut tally.impossible,
                Consistent::NotAsked => &mut tally.not_asked,
            } += 1;
        }
        tallies
    }
}
