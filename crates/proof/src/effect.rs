//! Effects: logarithms of ratios within a block.
//!
//! ```text
//! treatment        d_b = ln y(b, treatment) - ln y(b, reference)
//! main effect      d_b = mean of ln y over arms at the high level - mean at the low
//! interaction      d_b = (hh - lh) - (hl - ll), each a mean of ln y over its arms
//! ```
//!
//! The block is the unit: two runs of one block share the machine's mood of that hour,
//! which the difference removes, and runs of different blocks are compared with nothing.
//! Ratios, because settings scale times and a slow disk makes every gap larger; logarithms,
//! because then twice as fast and half as fast are opposite numbers (Fleming, Wallace 1986).
//!
//! Contrasts have as many arms, of equal weight, on either side, so that their noise is fair. What the
//! reference's second run adds to a comparison is said in `contrast`.
//!
//! Limits: an interaction of factors with more than two levels is asked for a pair of
//! levels each.

use crate::ProofError;
use crate::design::Design;
use serde::Serialize;

/// The figures of a study: one positive number (a time, a rate) a slot and block.
/// Blocks with a failed run are left out by the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    slots: usize,
    logs: Vec<Vec<f64>>,
}

impl Observations {
    /// Takes `blocks[b][slot]`, not in order of execution.
    pub fn new(slots: usize, blocks: &[Vec<f64>]) -> Result<Self, ProofError> {
        let mut logs = Vec::with_capacity(blocks.len());
        for (block, values) in blocks.iter().enumerate() {
            if values.len() != slots {
                return Err(ProofError::Ragged { block, found: values.len(), expected: slots });
            }
            if let Some(slot) = values.iter().position(|value| !(*value > 0.0 && value.is_finite())) {
                return Err(ProofError::NotPositive { block, slot, value: values[slot] });
            }
            logs.push(values.iter().map(|value| value.ln()).collect());
        }
        Ok(Self { slots, logs })
    }

    /// The first blocks alone.
    pub fn first(&self, blocks: usize) -> Self {
        Self { slots: self.slots, logs: self.logs[..blocks.min(self.logs.len())].to_vec() }
    }

    /// The logarithms, block by block.
    pub fn logs(&self) -> &[Vec<f64>] {
        &self.logs
    }

    /// Slots of a block.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.logs.len()
    }

    /// The logarithms of one slot over the blocks.
    pub fn series(&self, slot: usize) -> Result<Vec<f64>, ProofError> {
        self.known(slot)?;
        Ok(self.logs.iter().map(|block| block[slot]).collect())
    }

    /// Per block, ln(slot / reference).
    pub fn log_ratios(&self, slot: usize, reference: usize) -> Result<Vec<f64>, ProofError> {
        self.known(slot)?;
        self.known(reference)?;
        Ok(self.logs.iter().map(|block| block[slot] - block[reference]).collect())
    }

    pub(crate) fn known(&self, slot: usize) -> Result<(), ProofError> {
        if slot < self.slots {
            Ok(())
        } else {
            Err(ProofError::Unknown { what: "slot", index: slot, last: self.slots.saturating_sub(1) })
        }
    }

    /// Per block, the mean logarithm of the arms that `chosen` accepts.
    fn means(&self, design: &Design, chosen: impl Fn(&[usize]) -> bool) -> Result<Vec<f64>, ProofError> {
        self.known(design.arms.len().saturating_sub(1))?;
        let arms: Vec<usize> = (0..design.arms.len()).filter(|arm| chosen(&design.arms[*arm])).collect();
        if arms.is_empty() {
            return Err(ProofError::TooFew { what: "arms at these levels", found: 0, needed: 1 });
        }
        let mean = |block: &Vec<f64>| arms.iter().map(|arm| block[*arm]).sum::<f64>() / arms.len() as f64;
        Ok(self.logs.iter().map(mean).collect())
    }
}

/// A factor moved from one of its levels to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Index of the factor.
    pub factor: usize,
    /// The level that is the base.
    pub from: usize,
    /// The level it is changed to.
    pub to: usize,
}

impl Change {
    fn check(&self, design: &Design) -> Result<(), ProofError> {
        let Some(factor) = design.factors.get(self.factor) else {
            let last = design.factors.len().saturating_sub(1);
            return Err(ProofError::Unknown { what: "factor", index: self.factor, last });
        };
        match [self.from, self.to].into_iter().find(|level| *level >= factor.levels.len()) {
            Some(index) => Err(ProofError::Unknown { what: "level", index, last: factor.levels.len() - 1 }),
            None => Ok(()),
        }
    }
}

/// Per block, the mean logarithm of the arms on one side less that of the arms on the other.
/// Both sides have as many arms, so that the noise of the difference is fair.
pub fn contrast(seen: &Observations, to: &[usize], from: &[usize]) -> Result<Vec<f64>, ProofError> {
    if to.len() != from.len() || to.is_empty() {
        let (found, needed) = (to.len().min(from.len()), to.len().max(from.len()).max(1));
        return Err(ProofError::TooFew { what: "arms on one side of a comparison", found, needed });
    }
    to.iter().chain(from).try_for_each(|arm| seen.known(*arm))?;
    let mean =
        |block: &[f64], arms: &[usize]| arms.iter().map(|arm| block[*arm]).sum::<f64>() / arms.len() as f64;
    Ok(seen.logs.iter().map(|block| mean(block, to) - mean(block, from)).collect())
}

/// Per block, the effect of a change averaged over all other factors.
pub fn main_effect(design: &Design, seen: &Observations, change: Change) -> Result<Vec<f64>, ProofError> {
    change.check(design)?;
    let to = seen.means(design, |arm| arm[change.factor] == change.to)?;
    let from = seen.means(design, |arm| arm[change.factor] == change.from)?;
    Ok(to.iter().zip(&from).map(|(to, from)| to - from).collect())
}

/// Per block, by how much the effect of `first` differs after `second` from before it:
/// 0 when the two ratios simply multiply.
pub fn interaction(
    design: &Design,
    seen: &Observations,
    first: Change,
    second: Change,
) -> Result<Vec<f64>, ProofError> {
    first.check(design)?;
    second.check(design)?;
    let cell =
        |a: usize, b: usize| seen.means(design, |arm| arm[first.factor] == a && arm[second.factor] == b);
    let (both, first_only) = (cell(first.to, second.to)?, cell(first.to, second.from)?);
    let (second_only, neither) = (cell(first.from, second.to)?, cell(first.from, second.from)?);
    Ok((0..seen.blocks()).map(|b| (both[b] - second_only[b]) - (first_only[b] - neither[b])).collect())
}

/// A log-ratio as a change in per cent: ln 0.95 is -5.
pub fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// The log-ratio of a change in per cent, which must be above -100.
pub fn log_ratio(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Factor;

    #[test]
    fn contrasts_recover_what_was_put_in() {
        let levels = || vec!["off".to_string(), "on".to_string()];
        let names = ["asynch", "direct"];
        let factors = names.map(|name| Factor { name: name.to_string(), levels: levels() }).to_vec();
        let design = Design::full(factors).unwrap();
        // off/off 100, direct halves, asynch halves, both together still only halve.
        let rows: Vec<Vec<f64>> = [1.0, 1.7, 0.6]
            .iter()
            .map(|mood| vec![100.0 * mood, 50.0 * mood, 50.0 * mood, 50.0 * mood, 100.0 * mood])
            .collect();
        let seen = Observations::new(5, &rows).unwrap();
        let asynch = Change { factor: 0, from: 0, to: 1 };
        let direct = Change { factor: 1, from: 0, to: 1 };
        let half = 0.5f64.ln();
        for d in main_effect(&design, &seen, asynch).unwrap() {
            assert!((d - half / 2.0).abs() < 1e-12);
        }
        for d in interaction(&design, &seen, asynch, direct).unwrap() {
            assert!((d + half).abs() < 1e-12);
        }
        for d in seen.log_ratios(3, 0).unwrap() {
            assert!((percent(d) + 50.0).abs() < 1e-9);
        }
        assert_eq!(contrast(&seen, &[3], &[0]).unwrap(), seen.log_ratios(3, 0).unwrap());
        let averaged = contrast(&seen, &[2, 3], &[0, 1]).unwrap();
        assert_eq!(averaged, main_effect(&design, &seen, asynch).unwrap());
        assert!(contrast(&seen, &[2, 3], &[0]).is_err());
        assert!(contrast(&seen, &[9], &[0]).is_err());
        assert!(main_effect(&design, &seen, Change { factor: 2, from: 0, to: 1 }).is_err());
        assert!(main_effect(&design, &seen, Change { factor: 1, from: 0, to: 2 }).is_err());
        assert!((log_ratio(percent(0.3)) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn figures_without_a_logarithm_are_refused() {
        let error = Observations::new(2, &[vec![1.0, 2.0], vec![1.0, 0.0]]).unwrap_err();
        assert_eq!(error.to_string(), "block 1, slot 1: 0 has no logarithm; times and rates are above 0");
        assert!(Observations::new(2, &[vec![1.0]]).is_err());
        assert!(Observations::new(1, &[vec![f64::NAN]]).is_err());
    }
}
