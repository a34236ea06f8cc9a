//! Origin of a record imported from another program's report, and the checks of that report's
//! arithmetic.
//!
//! A figure has its text, its line, and the interval of values with that text. A check names its
//! arithmetic and its figures, with the expected and the found interval. It holds if both meet,
//! without a tolerance.

use serde::{Deserialize, Serialize};

/// A report that a record was read from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The path of the file, as it was named.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// The line in which the report begins, from 1.
    pub line: u32,
    /// The kind of report, such as `AWR report`.
    pub kind: String,
    pub facts: Vec<ImportedFact>,
    /// Errors of the run that it describes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The figures that answer first what such a report is read for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<ImportedAnswer>,
    /// The figures that follow from printed ones, then the printed figures with a key.
    pub figures: Vec<ImportedFigure>,
    /// The number of figures that follow from printed ones.
    #[serde(default)]
    pub derived: u64,
    /// Counts of the checks, one entry per kind.
    pub tallies: Vec<ConsistencyTally>,
    /// The checks that did not hold.
    pub checks: Vec<Consistency>,
    /// The sections that were read, with their lines.
    pub sections: Vec<ImportedSection>,
    /// The number of lines that were not understood.
    pub unread: u64,
    /// The last line of a report that was cut short; `None` for a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_after: Option<u32>,
}

/// A name and a value in the head of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedFact {
    /// The name that the report gives it.
    pub name: String,
    /// The text as the report prints it.
    pub text: String,
    pub line: u32,
}

/// A figure that a reader of such a report looks for first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedAnswer {
    pub name: String,
    /// The figure as the report prints it, with its unit.
    pub value: String,
    /// Context of the figure; may be empty.
    pub aside: String,
}

/// A section that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedSection {
    /// The heading as the report prints it.
    pub heading: String,
    pub line: u32,
    pub rows: u64,
    /// True if its columns are known; otherwise they have the units and names of their headings.
    pub known: bool,
}

/// A printed figure with its line and its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedFigure {
    /// The row and the column of the figure.
    pub name: String,
    /// The text as the report prints it.
    pub text: String,
    pub line: u32,
    /// The base unit; empty for a plain number.
    pub unit: String,
    /// The value as printed, in the base unit.
    pub value: f64,
    /// The least value with that text.
    pub low: f64,
    /// The greatest value with that text.
    pub high: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistent {
    /// Both sides have a value in common.
    Holds,
    /// Both sides differ by as much as a known habit of such reports explains.
    Habit,
    /// Both sides have no value in common.
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
    /// The name of the checked row.
    pub of: String,
    /// The arithmetic of both sides, in words.
    pub arithmetic: String,
    /// The figures of both sides, with their lines.
    pub figures: Vec<ImportedFigure>,
    /// The interval that follows from the other figures; `None` if a figure is missing.
    pub expected: Option<[f64; 2]>,
    /// The interval of the figure in question.
    pub found: Option<[f64; 2]>,
    /// The base unit that both sides have.
    pub unit: String,
    pub outcome: Consistent,
    /// The habit that explains a difference; empty for another outcome.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub habit: String,
    /// An explanation of a failure, or the missing figure; may be empty.
    pub note: String,
}

/// Counts of one kind of check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsistencyTally {
    pub name: String,
    pub held: u64,
    /// Differences that a known habit explains.
    #[serde(default)]
    pub habits: u64,
    pub failed: u64,
    /// Figures that no device can have.
    pub impossible: u64,
    /// Checks that lack a figure.
    pub not_asked: u64,
}

impl Imported {
    /// Returns the number of checks that held, and of those that failed or are impossible.
    pub fn checked(&self) -> [u64; 2] {
        let held = self.tallies.iter().map(|tally| tally.held).sum();
        [held, self.tallies.iter().map(|tally| tally.failed + tally.impossible).sum()]
    }
}

impl ConsistencyTally {
    /// Returns the counts of each kind of check, in the order of first occurrence.
    pub fn of(checks: &[Consistency]) -> Vec<ConsistencyTally> {
        let mut tallies: Vec<ConsistencyTally> = Vec::new();
        for check in checks {
            let at = tallies.iter().position(|tally| tally.name == check.name).unwrap_or_else(|| {
                let name = check.name.clone();
                tallies.push(ConsistencyTally {
                    name,
                    held: 0,
                    habits: 0,
                    failed: 0,
                    impossible: 0,
                    not_asked: 0,
                });
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            *match check.outcome {
                Consistent::Holds => &mut tally.held,
                Consistent::Habit => &mut tally.habits,
                Consistent::Fails => &mut tally.failed,
                Consistent::Impossible => &mut tally.impossible,
                Consistent::NotAsked => &mut tally.not_asked,
            } += 1;
        }
        tallies
    }
}
