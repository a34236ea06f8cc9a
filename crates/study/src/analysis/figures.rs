//! The figures of the used blocks, measure by measure: input of every test.
//!
//! The study's own measure has the canary as a covariate, if that explains enough of the noise.

use super::canary::{self, Series};
use super::used_blocks::UsedBlocks;
use crate::bundle::RunRecord;
use crate::plan::Plan;
use crate::vocabulary::{Better, Measure};
use plumb_proof::ProofError;
use plumb_proof::effect::Observations;
use plumb_proof::order::{self, After, Asked};

pub(super) struct Figures<'a> {
    pub(super) used: &'a UsedBlocks<'a>,
    /// Times of the canary over the used blocks.
    pub(super) canary: Vec<Series>,
}

impl<'a> Figures<'a> {
    pub(super) fn of(used: &'a UsedBlocks<'a>) -> Figures<'a> {
        Figures { used, canary: canary::series(used) }
    }

    pub(super) fn plan(&self) -> &'a Plan {
        &self.used.contents.plan
    }

    /// Returns the figures of the used blocks by slot.
    pub(super) fn observations(&self, measure: &Measure) -> Result<Observations, ProofError> {
        Ok(self.adjusted(self.measured(measure)?, measure))
    }

    /// Returns the figures without a covariate.
    pub(super) fn measured(&self, measure: &Measure) -> Result<Observations, ProofError> {
        let value = |run: &&RunRecord| run.record.as_ref().map_or(0.0, |record| measure.value(record));
        let rows: Vec<Vec<f64>> =
            self.used.blocks.iter().map(|(_, runs)| runs.iter().map(value).collect()).collect();
        Observations::new(self.plan().schedule.slots(), &rows)
    }

    /// Returns the figures as costs: a rate by its inverse, so that less
    /// is better for every measure.
    pub(super) fn costs(&self, measure: &Measure) -> Result<Observations, ProofError> {
        let cost = |logs: &Vec<f64>| match measure.better {
            Better::Lower => logs.iter().map(|log| log.exp()).collect(),
            Better::Higher => logs.iter().map(|log| (-log).exp()).collect(),
        };
        let rows: Vec<Vec<f64>> = self.measured(measure)?.logs().iter().map(cost).collect();
        let costs = Observations::new(self.plan().schedule.slots(), &rows)?;
        Ok(self.adjusted(costs, measure))
    }

    fn adjusted(&self, figures: Observations, measure: &Measure) -> Observations {
        let is_own = *measure == self.plan().study.measure;
        match is_own.then(|| canary::best(self.plan().until, &self.canary, &figures)).flatten() {
            Some(canary) => figures.beside(&canary.times),
            None => figures,
        }
    }

    /// Compares the runs that follow these arms with all others.
    pub(super) fn after(&self, observations: &Observations, arms: &[usize]) -> Option<After> {
        let schedule = &self.plan().schedule;
        let slots: Vec<usize> =
            (0..schedule.slots()).filter(|slot| arms.contains(&schedule.arm_of(*slot))).collect();
        order::after(
            observations,
            &self.used.orders(),
            &Asked { slots: &slots, twice: self.plan().twice(), seed: schedule.seed },
        )
    }
}
