//! Claims and the arms they compare.
//!
//! A claim moves one factor from a level to another. Factors in `at` are held: they have one level
//! in all arms compared. The effect is averaged over the others. A claim `with` a second change is
//! about the interaction: the factor by which the second change alters the first effect.

use super::Study;
use crate::vocabulary::Measure;
use plumb_proof::ProofError;
use plumb_proof::contrast::{Contrast, Lottery};
use plumb_proof::design::Design;
use plumb_proof::effect::{Change, Observations, contrast};
use serde::Serialize;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The figure improves by at least this per cent.
    Faster { at_least: f64 },
    /// The figure worsens by at least this per cent.
    Slower { at_least: f64 },
    /// The figure changes by less than this per cent either way.
    Equal { within: f64 },
    /// The figure worsens by less than this per cent, or improves.
    NotSlower { by: f64 },
    /// The figure changes in either direction.
    Differs,
}

impl Expectation {
    /// Parses `faster`, `slower by at least 5%`, `equal within 2%`, `not slower by 3%`, `differs`.
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
            ["not", "slower", "by", by] => {
                Expectation::NotSlower { by: percent(by).filter(|by| *by < 100.0)? }
            }
            ["differs"] => Expectation::Differs,
            _ => return None,
        })
    }
}

/// Figure of an arm that a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    Typical,
    /// The average of all runs, and the typical run as well.
    Average,
    /// The time that 19 of 20 runs do not exceed, or the rate that they reach.
    P95,
}

impl Of {
    #[must_use]
    pub fn is_typical(&self) -> bool {
        *self == Of::Typical
    }

    /// Returns the words at the end of an expectation.
    fn words(self) -> &'static str {
        match self {
            Of::Typical => "",
            Of::Average => " on average",
            Of::P95 => " in p95",
        }
    }
}

impl Claim {
    /// Parses an expectation of the typical run, of the average or of the p95: `equal within 2% on
    /// average`. A bound of a difference is not of the average.
    #[must_use]
    pub fn parse(text: &str) -> Option<(Expectation, Of)> {
        let ending = |of: &Of| text.trim_end().ends_with(of.words());
        let of = [Of::Average, Of::P95].into_iter().find(ending).unwrap_or(Of::Typical);
        let expects = text.trim_end().strip_suffix(of.words())?;
        let is_tested = of != Of::Average || !expects.contains("at least");
        Some((Expectation::parse(expects).filter(|_| is_tested)?, of))
    }

    /// Returns the expectation as it is written.
    #[must_use]
    pub fn expectation(&self) -> String {
        format!("{}{}", self.expects, self.of.words())
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
            Expectation::NotSlower { by } => write!(out, "not slower by {by}%"),
            Expectation::Differs => out.write_str("differs"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Unique in the study file.
    pub name: String,
    /// The claim in a sentence.
    pub text: String,
    pub change: Change,
    /// The second change of an interaction.
    pub with: Option<Change>,
    /// Held factors, each with its level.
    pub at: Vec<(usize, usize)>,
    pub expects: Expectation,
    #[serde(skip_serializing_if = "Of::is_typical")]
    pub of: Of,
    /// The measure, if it is not the study's own.
    pub measure: Option<Measure>,
    /// Phase of the run that the treatment affects, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Arms on either side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    pub to: Vec<usize>,
    pub from: Vec<usize>,
}

impl Claim {
    /// Returns the arms on either side of the first change, averaged over a second one.
    pub fn sides(&self, design: &Design) -> Sides {
        let side = |level| self.arms(design, &[(self.change.factor, level)]);
        Sides { to: side(self.change.to), from: side(self.change.from) }
    }

    /// Returns the arms with positive and with negative sign in the effect.
    pub fn signs(&self, design: &Design) -> Sides {
        let Some(with) = self.with else { return self.sides(design) };
        let at = |level, second| self.arms(design, &[(self.change.factor, level), (with.factor, second)]);
        Sides {
            to: [at(self.change.to, with.to), at(self.change.from, with.from)].concat(),
            from: [at(self.change.from, with.to), at(self.change.to, with.from)].concat(),
        }
    }

    /// Returns the arms at these levels and the held ones.
    fn arms(&self, design: &Design, levels: &[(usize, usize)]) -> Vec<usize> {
        let held =
            |arm: &Vec<usize>| self.at.iter().chain(levels).all(|(factor, level)| arm[*factor] == *level);
        (0..design.arms.len()).filter(|arm| held(&design.arms[*arm])).collect()
    }

    /// Returns the comparison, block by block. Arms that differ only in the changed factor form
    /// pairs, each randomised by the design on its own. A fraction has no such pairs, and its block
    /// is one comparison of means. `twice` has the slots of the reference arm. Fails if the design
    /// lacks these arms, or has more on one side than on the other.
    pub fn contrast(
        &self,
        design: &Design,
        seen: &Observations,
        twice: (usize, usize),
    ) -> Result<Contrast, ProofError> {
        let sides = |second: &[(usize, usize)]| {
            let side = |level| {
                let levels: Vec<_> = second.iter().copied().chain([(self.change.factor, level)]).collect();
                self.arms(design, &levels)
            };
            (side(self.change.to), side(self.change.from))
        };
        let Some(with) = self.with else {
            let (to, from) = sides(&[]);
            return match paired(design, &to, &from, self.change.factor) {
                Some(pairs) => Contrast::of_pairs(seen, &pairs, twice),
                None => Ok(Contrast::of_differences(&contrast(seen, &to, &from)?)),
            };
        };
        let (after, before) = (sides(&[(with.factor, with.to)]), sides(&[(with.factor, with.from)]));
        let pairs = |(to, from): &(Vec<usize>, Vec<usize>)| paired(design, to, from, self.change.factor);
        match (pairs(&after), pairs(&before), paired(design, &after.0, &before.0, with.factor)) {
            (Some(after), Some(before), Some(_)) => {
                let four = |block: &Vec<f64>, index: usize| {
                    let at = |(to, from): (usize, usize)| block[to] - block[from];
                    Lottery::pair(at(after[index]) - at(before[index]))
                };
                let block = |block: &Vec<f64>| (0..after.len()).map(|index| four(block, index)).collect();
                Ok(Contrast::new(seen.logs().iter().map(block).collect()))
            }
            _ => {
                let (after, before) =
                    (contrast(seen, &after.0, &after.1)?, contrast(seen, &before.0, &before.1)?);
                let differences: Vec<f64> =
                    after.iter().zip(&before).map(|(after, before)| after - before).collect();
                Ok(Contrast::of_differences(&differences))
            }
        }
    }

    /// Returns all arms that the claim rests on.
    pub fn all_arms(&self, design: &Design) -> Vec<usize> {
        let Sides { mut to, from } = self.sides(design);
        to.extend(from);
        if let Some(with) = self.with {
            to.retain(|arm| [with.from, with.to].contains(&design.arms[*arm][with.factor]));
        }
        to.sort_unstable();
        to
    }

    /// Describes the comparison: `direct=TRUE against direct=FALSE, at area=1M`.
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

/// Pairs arms of both sides that differ only in one factor. `None` if any pair differs in another,
/// or a side is empty.
pub(crate) fn paired(
    design: &Design,
    to: &[usize],
    from: &[usize],
    factor: usize,
) -> Option<Vec<(usize, usize)>> {
    let alike = |(to, from): &(usize, usize)| {
        let levels = design.arms[*to].iter().zip(&design.arms[*from]).enumerate();
        levels.into_iter().all(|(at, (to, from))| at == factor || to == from)
    };
    let pairs: Vec<(usize, usize)> = to.iter().copied().zip(from.iter().copied()).collect();
    (to.len() == from.len() && !pairs.is_empty() && pairs.iter().all(alike)).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::{Claim, Expectation, Of};

    #[test]
    fn averages_and_p95_are_claimed_by_their_words() {
        let equal = Expectation::Equal { within: 2.0 };
        assert_eq!(Claim::parse("equal within 2% on average"), Some((equal, Of::Average)));
        assert_eq!(Claim::parse("equal within 2%"), Some((equal, Of::Typical)));
        let faster = Expectation::Faster { at_least: 5.0 };
        assert_eq!(Claim::parse("faster by at least 5% in p95"), Some((faster, Of::P95)));
        for wrong in [
            "faster by at least 5% on average",
            "on average",
            "equal on average within 2%",
            "in p95",
            "faster in p99",
            "faster in p95 on average",
        ] {
            assert_eq!(Claim::parse(wrong), None, "{wrong}");
        }
    }

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
