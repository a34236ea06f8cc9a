//! Checks a report by its own arithmetic.
//!
//! A check has an expected interval, computed from other figures, and the interval of the figure in
//! question. Both follow from printed texts. It holds if the intervals meet. A check that lacks a
//! figure is counted as not asked, which is no failure.

use crate::figure::sheet::Figure;
use plumb_record::{Consistency, Consistent, ImportedFigure};
use plumb_units::ValueRange;

/// A kind of check, with its arithmetic.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The name, such as `time / waits = average`.
    pub name: &'static str,
    /// The arithmetic of both sides in words.
    pub arithmetic: &'static str,
}

/// Both sides of a check.
#[derive(Debug, Clone, Copy)]
pub struct Sides {
    /// The interval that follows from other figures.
    pub expected: ValueRange,
    /// The interval of the figure in question.
    pub found: ValueRange,
    /// The base unit of both sides.
    pub unit: &'static str,
}

impl From<&Figure> for ImportedFigure {
    fn from(figure: &Figure) -> ImportedFigure {
        ImportedFigure {
            name: figure.name.clone(),
            text: figure.raw.clone(),
            line: figure.line,
            unit: figure.unit.to_string(),
            value: figure.value,
            low: figure.range.low,
            high: figure.range.high,
        }
    }
}

impl Rule {
    /// Returns a check that holds if both intervals meet.
    #[must_use]
    pub fn meets(self, of: &str, sides: Sides, figures: &[&Figure]) -> Consistency {
        let held = sides.expected.meets(sides.found);
        self.judged(of, sides, figures, if held { Consistent::Holds } else { Consistent::Fails })
    }

    /// Returns a check that holds if the figure can be at most the greatest expected value.
    #[must_use]
    pub fn at_most(self, of: &str, sides: Sides, figures: &[&Figure]) -> Consistency {
        let held = sides.found.may_be_at_most(sides.expected);
        self.judged(of, sides, figures, if held { Consistent::Holds } else { Consistent::Fails })
    }

    /// Returns a check with this outcome.
    #[must_use]
    pub fn judged(self, of: &str, sides: Sides, figures: &[&Figure], outcome: Consistent) -> Consistency {
        Consistency {
            name: self.name.to_string(),
            of: of.to_string(),
            arithmetic: self.arithmetic.to_string(),
            figures: figures.iter().map(|figure| ImportedFigure::from(*figure)).collect(),
            expected: Some([sides.expected.low, sides.expected.high]),
            found: Some([sides.found.low, sides.found.high]),
            unit: sides.unit.to_string(),
            outcome,
            note: String::new(),
        }
    }

    /// Returns a check that lacks a figure.
    #[must_use]
    pub fn not_asked(self, of: &str, missing: &str) -> Consistency {
        Consistency {
            name: self.name.to_string(),
            of: of.to_string(),
            arithmetic: self.arithmetic.to_string(),
            figures: Vec::new(),
            expected: None,
            found: None,
            unit: String::new(),
            outcome: Consistent::NotAsked,
            note: format!("no {missing}"),
        }
    }
}
