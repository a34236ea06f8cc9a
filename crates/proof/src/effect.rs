//! Effects: logarithms of ratios within a block.
//!
//! ```text
//! treatment        d_b = ln y(b, treatment) - ln y(b, reference)
//! several arms     d_b = mean of ln y over arms on one side - mean on the other
//! ```
//!
//! The block is the unit. Two runs of one block share the machine's state of that hour, which the
//! difference removes, and runs of different blocks are never compared. Ratios, because settings
//! scale times and a slow disk makes every gap larger. Logarithms, because then twice as fast and
//! half as fast are opposite numbers (Fleming, Wallace 1986).
//!
//! Contrasts have the same number of arms, of equal weight, on either side, so that their noise is
//! symmetric. `contrast` explains the use of the reference's second run.
//!
//! Limits: both sides of a comparison have the same number of arms.

use crate::ProofError;
use crate::summary::variance;
use serde::Serialize;

/// Noise of two runs smooths the rounding if it spreads by this number of units: the mean is then
/// off by less than a hundredth of one.
const SMOOTHED: f64 = 0.7;
/// Digits of a figure that are searched for a unit.
const DIGITS: i32 = 7;

/// The figures of a study: one positive number (a time, a rate) for each slot and block. The caller
/// leaves out blocks with a failed run.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    slots: usize,
    logs: Vec<Vec<f64>>,
    /// Logarithms of a covariate, in the same layout.
    covariate: Option<Vec<Vec<f64>>>,
}

impl Observations {
    /// Takes `blocks[b][slot]`, not in order of execution. Fails on ragged blocks and on
    /// figures that are not positive.
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
        Ok(Self { slots, logs, covariate: None })
    }

    /// Returns the first blocks only.
    pub fn first(&self, blocks: usize) -> Self {
        let first = |rows: &Vec<Vec<f64>>| rows[..blocks.min(rows.len())].to_vec();
        Self { slots: self.slots, logs: first(&self.logs), covariate: self.covariate.as_ref().map(first) }
    }

    /// Adds a covariate of its runs, which `contrast` removes from comparisons.
    #[must_use]
    pub fn beside(self, covariate: &Observations) -> Self {
        Self { covariate: Some(covariate.logs.clone()), ..self }
    }

    /// Returns the logarithms of the covariate, block by block.
    pub fn covariate(&self) -> Option<&[Vec<f64>]> {
        self.covariate.as_deref()
    }

    /// Returns the unit of rounded figures, a power of ten, relative to their median. 0 if the
    /// noise of two runs of one arm smooths the rounding: it is [`SMOOTHED`] units or more, and
    /// their figures are more than two neighbours.
    pub(crate) fn unit(&self, twice: (usize, usize)) -> f64 {
        let mut values: Vec<f64> = self.logs.iter().flatten().map(|log| log.exp()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.get(values.len() / 2).copied().unwrap_or(0.0);
        // A figure recovered from its logarithm differs by a rounding.
        let same = 1e-9 * middle;
        let distinct = 1 + values.windows(2).filter(|two| two[1] - two[0] > same).count();
        if distinct == 1 || 2 * distinct > values.len() {
            return 0.0;
        }
        let is_unit = |unit: &f64| {
            values.iter().all(|value| ((value / unit).round() - value / unit).abs() * unit <= same)
        };
        let largest = middle.log10().floor();
        let units = (0..DIGITS).map(|digit| 10f64.powi(largest as i32 - digit));
        let Some(unit) = units.into_iter().find(is_unit).map(|unit| unit / middle) else { return 0.0 };
        let pairs: Vec<f64> = self.logs.iter().map(|block| block[twice.1] - block[twice.0]).collect();
        // Where a cost lies between two units, the least noise spreads its runs over both of them.
        let own = || self.logs.iter().flat_map(|block| [block[twice.0], block[twice.1]]);
        let (low, high) = (own().fold(f64::INFINITY, f64::min), own().fold(f64::NEG_INFINITY, f64::max));
        let is_border = (high.exp() - low.exp()) / middle < 1.5 * unit;
        if is_border || variance(&pairs).sqrt() < SMOOTHED * unit { unit } else { 0.0 }
    }

    /// Returns the logarithms, block by block.
    pub fn logs(&self) -> &[Vec<f64>] {
        &self.logs
    }

    /// Returns the number of slots in a block.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.logs.len()
    }

    /// Returns the logarithms of one slot over the blocks.
    pub fn series(&self, slot: usize) -> Result<Vec<f64>, ProofError> {
        self.known(slot)?;
        Ok(self.logs.iter().map(|block| block[slot]).collect())
    }

    /// Returns ln(slot / reference) of each block.
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
}

/// A factor moved from one of its levels to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Index of the factor in the design.
    pub factor: usize,
    /// Index of the level that is the base.
    pub from: usize,
    /// Index of the level that replaces it.
    pub to: usize,
}

/// Returns, for each block, the mean logarithm of the arms on one side less that of
/// the arms on the other. Both sides have the same number of arms, so that the noise
/// of the difference is symmetric.
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

/// Converts a log-ratio to a change in per cent: ln 0.95 is -5.
pub fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// Converts a change in per cent, which must be above -100, to a log-ratio.
pub fn log_ratio(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrasts_recover_what_was_put_in() {
        // off/off 100, direct halves, asynch halves, both together still only halve.
        let rows: Vec<Vec<f64>> = [1.0, 1.7, 0.6]
            .iter()
            .map(|mood| vec![100.0 * mood, 50.0 * mood, 50.0 * mood, 50.0 * mood, 100.0 * mood])
            .collect();
        let seen = Observations::new(5, &rows).unwrap();
        for d in seen.log_ratios(3, 0).unwrap() {
            assert!((percent(d) + 50.0).abs() < 1e-9);
        }
        assert_eq!(contrast(&seen, &[3], &[0]).unwrap(), seen.log_ratios(3, 0).unwrap());
        let half = 0.5f64.ln();
        assert!(contrast(&seen, &[2, 3], &[0, 1]).unwrap().iter().all(|d| (d - half / 2.0).abs() < 1e-12));
        assert!(contrast(&seen, &[2, 3], &[0]).is_err());
        assert!(contrast(&seen, &[9], &[0]).is_err());
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
