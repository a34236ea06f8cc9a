//! What is claimed, and between which arms.
//!
//! A claim moves one factor from a level to another. Factors that it holds (`at`) have one level
//! in all arms compared; over the others the effect is averaged. A claim `with` a second change
//! is about the interaction: by how much the first effect differs after the second change.

use super::Study;
use crate::vocabulary::Measure;
use plumb_proof::ProofError;
use plumb_proof::design::Design;
use plumb_proof::effect::{Change, Observations, contrast};
use serde::Serialize;
use std::fmt;

/// What the author expects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The figure becomes better by at least so many per cent.
    Faster {
        /// 0 for "faster" alone.
        at_least: f64,
    },
    /// It becomes worse by at least so many per cent.
    Slower {
        /// 0 for "slower" alone.
        at_least: f64,
    },
    /// It changes by less than so many per cent either way.
    Equal {
        /// The margin.
        within: f64,
    },
    /// It changes, to whichever side.
    Differs,
}

impl Expectation {
    /// Reads `faster`, `slower by at least 5%`, `equal within 2%`, `differs`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Expectation> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let percent = |word: &str| {
            let number: f64 = word.strip_suffix('%')?.parse().ok()?;
            (number > 0.0 && number < 1000.0).then_some(number)
        };
        Some(match words[..] {
            ["faster"] => Expectation::Faster { at_least: 0.0 },
            ["slower"] => Expectation::Slower { at_least: 0.0 },
            ["faster", "by", "at", "least", by] => {
                Expectation::Faster { at_least: percent(by).filter(|by| *by < 100.0)? }
            }
            ["slower", "by", "at", "least", by] => Expectation::Slower { at_least: percent(by)? },
            ["equal", "within", by] => Expectation::Equal { within: percent(by)? },
            ["differs"] => Expectation::Differs,
            _ => return None,
        })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Expectation::Faster { at_least: 0.0 } => out.write_str("faster"),
            Expectation::Slower { at_least: 0.0 } => out.write_str("slower"),
            Expectation::Faster { at_least } => write!(out, "faster by at least {at_least}%"),
            Expectation::Slower { at_least } => write!(out, "slower by at least {at_least}%"),
            Expectation::Equal { within } => write!(out, "equal within {within}%"),
            Expectation::Differs => out.write_str("differs"),
        }
    }
}

/// A claim, written before the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Its key, unique in the study.
    pub name: String,
    /// The claim in a sentence.
    pub text: String,
    /// What is changed.
    pub change: Change,
    /// The second change of an interaction.
    pub with: Option<Change>,
    /// Factors that are held, each with its level.
    pub at: Vec<(usize, usize)>,
    /// What is expected.
    pub expects: Expectation,
    /// The statistic, when it is not the study's own.
    pub measure: Option<Measure>,
}

/// The arms on either side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// After the change.
    pub to: Vec<usize>,
    /// Before it.
    pub from: Vec<usize>,
}

impl Claim {
    /// The arms on either side of the change, without regard to a second one.
    #[must_use]
    pub fn sides(&self, design: &Design) -> Sides {
        let side = |level| self.arms(design, &[(self.change.factor, level)]);
        Sides { to: side(self.change.to), from: side(self.change.from) }
    }

    /// The arms at the held levels and at these.
    fn arms(&self, design: &Design, levels: &[(usize, usize)]) -> Vec<usize> {
        let held =
            |arm: &Vec<usize>| self.at.iter().chain(levels).all(|(factor, level)| arm[*factor] == *level);
        (0..design.arms.len()).filter(|arm| held(&design.arms[*arm])).collect()
    }

    /// The effect in every block, as a log-ratio; of an interaction, a difference of two.
    ///
    /// # Errors
    /// When the design has no such arms, or more on one side than on the other.
    pub fn differences(&self, design: &Design, seen: &Observations) -> Result<Vec<f64>, ProofError> {
        let at = |second: &[(usize, usize)]| {
            let side = |level| {
                let levels: Vec<_> = second.iter().copied().chain([(self.change.factor, level)]).collect();
                self.arms(design, &levels)
            };
            contrast(seen, &side(self.change.to), &side(self.change.from))
        };
        let Some(with) = self.with else { return at(&[]) };
        let (after, before) = (at(&[(with.factor, with.to)])?, at(&[(with.factor, with.from)])?);
        Ok(after.iter().zip(&before).map(|(after, before)| after - before).collect())
    }

    /// All arms that the claim rests on.
    #[must_use]
    pub fn all_arms(&self, design: &Design) -> Vec<usize> {
        let Sides { mut to, from } = self.sides(design);
        to.extend(from);
        if let Some(with) = self.with {
            to.retain(|arm| [with.from, with.to].contains(&design.arms[*arm][with.factor]));
        }
        to.sort_unstable();
        to
    }

    /// What is compared: `direct=TRUE against direct=FALSE, at area=1M`.
    #[must_use]
    pub fn comparison(&self, study: &Study) -> String {
        let level = |factor: usize, level: usize| {
            format!("{}={}", study.factors[factor].name, study.factors[factor].levels[level].label)
        };
        let Change { factor, from, to } = self.change;
        let mut text = format!("{} against {}", level(factor, to), level(factor, from));
        if let Some(with) = self.with {
            let (to, from) = (level(with.factor, with.to), level(with.factor, with.from));
            text.push_str(&format!(", with {to} against the same with {from}"));
        }
        if !self.at.is_empty() {
            let held: Vec<String> = self.at.iter().map(|(factor, at)| level(*factor, *at)).collect();
            text.push_str(&format!(", at {}", held.join(" ")));
        }
        let free = (0..study.factors.len()).filter(|other| {
            *other != factor
                && self.with.is_none_or(|with| with.factor != *other)
                && self.at.iter().all(|(held, _)| held != other)
        });
        let free: Vec<&str> = free.map(|factor| study.factors[factor].name.as_str()).collect();
        if !free.is_empty() {
            text.push_str(&format!(", over all of {}", free.join(", ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Expectation;

    #[test]
    fn what_is_expected_reads_back_as_it_is_written() {
        for text in [
            "faster",
            "slower",
            "faster by at least 60%",
            "slower by at least 2.5%",
            "equal within 2%",
            "differs",
        ] {
            assert_eq!(Expectation::parse(text).map(|expects| expects.to_string()).as_deref(), Some(text));
        }
        for wrong in [
            "",
            "quicker",
            "faster by 5%",
            "faster by at least 100%",
            "equal",
            "equal within 0%",
            "differs 2%",
        ] {
            assert_eq!(Expectation::parse(wrong), None, "{wrong}");
        }
    }
}
