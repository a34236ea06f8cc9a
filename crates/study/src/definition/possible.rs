//! Levels that this machine lacks: left out, with the claims about them, before a study is planned.
//!
//! A server's version or build may lack a setting or a value. The other arms still have an answer,
//! so only the level goes. A study without two levels of a factor, or without a claim, is refused.
//!
//! Rejected: failing the runs of such a level, because three failed blocks end a study.

use super::{Claim, Study, StudyFileError};
use crate::vocabulary::Assignment;
use plumb_proof::effect::Change;
use std::fmt;

/// A level that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub factor: String,
    pub level: String,
    pub why: String,
    /// Names of the claims that went with it.
    pub claims: Vec<String>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} is left out: {}", self.factor, self.level, self.why)?;
        match self.claims.as_slice() {
            [] => Ok(()),
            claims => write!(f, "; without it there is no claim {}", claims.join(", ")),
        }
    }
}

impl Study {
    /// Leaves out the levels that the target lacks on this machine.
    ///
    /// # Errors
    /// If a factor keeps one level, or no claim is left.
    pub fn possible(mut self) -> Result<(Study, Vec<LeftOut>), StudyFileError> {
        let mut left_out = Vec::new();
        for factor in 0..self.factors.len() {
            let mut ours = Vec::new();
            // From the last, so that indices of the others stay.
            for level in (0..self.factors[factor].levels.len()).rev() {
                let given: Vec<&Assignment> = self.all_settings().collect();
                let settings = &self.factors[factor].levels[level].settings;
                let why = self.vocabulary.impossible(settings, &given);
                ours.extend(why.map(|why| self.leave_out(factor, level, why)));
            }
            left_out.extend(ours.into_iter().rev());
        }
        let because = || {
            let mut reasons: Vec<&str> = left_out.iter().map(|level: &LeftOut| level.why.as_str()).collect();
            reasons.dedup();
            reasons.join("; ")
        };
        let why = match self.factors.iter().find(|factor| factor.levels.len() < 2) {
            Some(factor) if factor.levels.is_empty() => {
                Some(format!("no level of {} is possible here", factor.name))
            }
            Some(factor) => Some(format!("only {}={} is possible here", factor.name, factor.levels[0].label)),
            None if self.claims.is_empty() => Some("none of its claims can be tested here".to_string()),
            None => None,
        };
        match why {
            Some(why) => Err(StudyFileError::new(format!("study {}: {why}: {}", self.name, because()))),
            None => Ok((self, left_out)),
        }
    }

    fn leave_out(&mut self, factor: usize, level: usize, why: String) -> LeftOut {
        let (gone, kept) = std::mem::take(&mut self.claims)
            .into_iter()
            .partition::<Vec<Claim>, _>(|claim| is_about(claim, factor, level));
        self.claims = kept;
        self.claims.iter_mut().for_each(|claim| renumber(claim, factor, level));
        // Its columns are the levels of the source.
        self.published = None;
        let removed = self.factors[factor].levels.remove(level);
        LeftOut {
            factor: self.factors[factor].name.clone(),
            level: removed.label,
            why,
            claims: gone.into_iter().map(|claim| claim.name).collect(),
        }
    }
}

/// Returns the changes of a claim.
fn changes(claim: &Claim) -> impl Iterator<Item = &Change> {
    std::iter::once(&claim.change).chain(&claim.with)
}

fn is_about(claim: &Claim, factor: usize, level: usize) -> bool {
    changes(claim).any(|change| change.factor == factor && [change.from, change.to].contains(&level))
        || claim.at.contains(&(factor, level))
}

/// Moves the indices of levels behind a removed one.
fn renumber(claim: &mut Claim, factor: usize, removed: usize) {
    let moved = |level: &mut usize| *level -= usize::from(*level > removed);
    for change in std::iter::once(&mut claim.change).chain(&mut claim.with) {
        if change.factor == factor {
            moved(&mut change.from);
            moved(&mut change.to);
        }
    }
    for (_, level) in claim.at.iter_mut().filter(|(held, _)| *held == factor) {
        moved(level);
    }
}
