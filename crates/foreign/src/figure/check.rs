//! Checks a report by its own arithmetic.
//!
//! A check has an expected interval, computed from other figures, and the interval of the figure in
//! question. Both follow from printed texts. It holds if the intervals meet. A check that lacks a
//! figure is counted as not asked, which is no failure.
//!
//! Sound reports differ from themselves in known ways, and a headline that is always up says
//! nothing. So a difference that a [`Habit`] explains is counted apart. A habit has a name and a
//! bound; beyond it the figures contradict each other.

use crate::figure::sheet::{Figure, Sheet, SheetRow, added};
use plumb_figures::relation::{Quotient, Test, gap};
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

/// A known way in which figures of a sound report differ.
#[derive(Debug, Clone, Copy)]
pub struct Habit {
    /// The name and the reason, as the page prints them.
    pub name: &'static str,
    /// The gap of both sides up to which a check holds.
    pub holds_most: f64,
    /// The gap up to which the habit explains the difference.
    pub most: f64,
}

impl Habit {
    /// Figures that were computed from rounded ones, or rounded twice.
    pub const ROUNDING: Habit = Habit {
        name: "rounding: computed from figures that were rounded before",
        holds_most: 0.0,
        most: 0.02,
    };
    /// Two counters that are read one after the other while both grow.
    pub const MOMENTS: Habit = Habit {
        name: "sampling moments: both counters are read at different moments",
        holds_most: 0.02,
        most: 0.1,
    };

    /// Returns the outcome of a difference of this size.
    fn outcome(self, gap: f64) -> Consistent {
        match gap {
            gap if gap <= self.holds_most => Consistent::Holds,
            gap if gap <= self.most => Consistent::Habit,
            _ => Consistent::Fails,
        }
    }
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
    /// Returns a rule with this name and this arithmetic.
    #[must_use]
    pub const fn new(name: &'static str, arithmetic: &'static str) -> Rule {
        Rule { name, arithmetic }
    }

    /// Returns a check that holds if both intervals meet. Exact counts were not rounded, so nothing
    /// explains their difference.
    #[must_use]
    pub fn meets(self, of: &str, sides: Sides, figures: &[&Figure]) -> Consistency {
        let Sides { expected, found, .. } = sides;
        let is_rounded = [expected, found].iter().any(|side| side.low < side.high);
        match is_rounded {
            true => self.within(of, sides, figures, Habit::ROUNDING),
            false => self.settled(of, sides, figures, expected.meets(found)),
        }
    }

    /// Returns a check that holds if both intervals meet, or differ as a habit explains.
    #[must_use]
    pub fn within(self, of: &str, sides: Sides, figures: &[&Figure], habit: Habit) -> Consistency {
        let outcome = habit.outcome(gap(sides.expected, sides.found));
        let check = self.judged(of, sides, figures, outcome);
        if outcome == Consistent::Habit { check.explained(habit.name) } else { check }
    }

    /// Returns a check that holds if the figure can be at most the greatest expected value.
    #[must_use]
    pub fn at_most(self, of: &str, sides: Sides, figures: &[&Figure]) -> Consistency {
        self.settled(of, sides, figures, sides.found.may_be_at_most(sides.expected))
    }

    /// Returns a check that holds if the figure can be at most the expected value, or exceeds it as
    /// a habit explains.
    #[must_use]
    pub fn at_most_within(self, of: &str, sides: Sides, figures: &[&Figure], habit: Habit) -> Consistency {
        match sides.found.may_be_at_most(sides.expected) {
            true => self.settled(of, sides, figures, true),
            false => self.within(of, sides, figures, habit),
        }
    }

    /// Returns a check of figures, of which the last is the printed one; `None` if one lacks, or if
    /// `sides` has no expected and found interval for theirs.
    pub fn ask<const N: usize>(
        self,
        of: &str,
        figures: [Option<Figure>; N],
        test: Test,
        sides: impl FnOnce([ValueRange; N]) -> Option<[ValueRange; 2]>,
    ) -> Option<Consistency> {
        let figures: Vec<Figure> = figures.into_iter().collect::<Option<_>>()?;
        let [expected, found] = sides(std::array::from_fn(|at| figures[at].range))?;
        let sides = Sides { expected, found, unit: figures[N - 1].unit };
        let shown: Vec<&Figure> = figures.iter().collect();
        Some(match test {
            Test::Equal => self.meets(of, sides, &shown),
            test => self.settled(of, sides, &shown, test.holds(found, expected)),
        })
    }

    /// Returns a check that parts add up to their total; `None` without a part.
    pub fn adds_up(self, of: &str, parts: &[Figure], total: Option<Figure>) -> Option<Consistency> {
        let total = total.filter(|_| !parts.is_empty())?;
        let figures: Vec<&Figure> = parts.iter().chain([&total]).collect();
        let sides = Sides { expected: added(parts), found: total.range, unit: total.unit };
        Some(self.meets(of, sides, &figures))
    }

    /// Returns the checks that columns of a table add up to its row of totals.
    pub fn of_total(
        self,
        sheet: &Sheet,
        is_total: fn(&Sheet, &SheetRow) -> bool,
        keys: &[&str],
    ) -> Vec<Consistency> {
        let Some(total) = sheet.rows.iter().find(|row| is_total(sheet, row)) else { return Vec::new() };
        let parts = |key: &str| -> Vec<Figure> {
            let own = sheet.rows.iter().filter(|row| !is_total(sheet, row));
            own.filter_map(|row| sheet.figure(row, key)).collect()
        };
        let asked = |key: &&str| {
            let found = sheet.figure(total, key)?;
            self.adds_up(&found.name.clone(), &parts(key), Some(found))
        };
        keys.iter().filter_map(asked).collect()
    }

    fn settled(self, of: &str, sides: Sides, figures: &[&Figure], holds: bool) -> Consistency {
        self.judged(of, sides, figures, if holds { Consistent::Holds } else { Consistent::Fails })
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
            habit: String::new(),
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
            habit: String::new(),
            note: format!("no {missing}"),
        }
    }
}

/// Names the habit that explains a difference.
pub trait ExplainedByHabit {
    /// Returns the check as one that a habit explains.
    #[must_use]
    fn explained(self, habit: &str) -> Self;
}

impl ExplainedByHabit for Consistency {
    fn explained(self, habit: &str) -> Consistency {
        Consistency { outcome: Consistent::Habit, habit: habit.to_string(), ..self }
    }
}

/// A check of each row of some sections, as data: a quotient of its figures is another one. A key
/// that begins with `@` names a figure of the whole report.
#[derive(Debug)]
pub struct RowCheck {
    pub rule: Rule,
    /// Keys of the sections with such rows.
    pub sections: &'static [&'static str],
    pub quotient: Quotient,
    /// The key of the printed side.
    pub printed: &'static str,
}

impl RowCheck {
    /// Checks a row; `None` if it lacks a figure of its own, or its divisor may be zero.
    pub fn ask(
        &self,
        of: &str,
        sheet: &Sheet,
        row: &SheetRow,
        whole: &dyn Fn(&str) -> Option<Figure>,
    ) -> Option<Consistency> {
        let keys = || self.quotient.over.iter().chain(self.quotient.under);
        let figure = |key: &str| if key.starts_with('@') { whole(key) } else { sheet.figure(row, key) };
        let found = sheet.figure(row, self.printed)?;
        let mut figures: Vec<Figure> = Vec::new();
        for key in keys() {
            match figure(key) {
                Some(figure) => figures.push(figure),
                None if key.starts_with('@') => return Some(self.rule.not_asked(of, &key[1..])),
                None => return None,
            }
        }
        let expected = self.quotient.of(|key| figure(key).map(|figure| figure.range))?;
        let unit = found.unit;
        let sides = Sides { expected, found: found.range, unit };
        let shown: Vec<&Figure> = figures.iter().chain([&found]).collect();
        Some(self.rule.meets(of, sides, &shown))
    }
}
