//! Processor time that the hypervisor gave to other guests, by run.
//!
//! Unlike the canary, it is no covariate. It is counted during the runs, and a treatment that uses
//! the processors more loses more of them. So it is shown with the share of the noise that it
//! explains, and no figure is adjusted by it. A canary lasts milliseconds and may miss what a run
//! of seconds meets. This figure shows why runs differ.

use super::result::{Explains, StolenFigure};
use super::used_blocks::UsedBlocks;
use plumb_proof::covariate::Explained;
use plumb_proof::effect::Observations;
use plumb_record::HostCpu;

/// Share of the processors' time from which on a run counts as slowed by other guests.
pub(super) const MUCH: f64 = 0.05;

/// Returns the share of the processors' time lost during the used blocks' runs. `figures` are
/// unadjusted values of the study's own measure. `None` if a run did not record the lost time.
pub(super) fn figure(used: &UsedBlocks<'_>, figures: Option<&Observations>) -> Option<StolenFigure> {
    let share = |cpu: &HostCpu| cpu.steal_ns as f64 / cpu.total_ns().max(1) as f64;
    let of_block = |runs: &Vec<&crate::bundle::RunRecord>| {
        let shares = runs.iter().map(|run| Some(share(run.record.as_ref()?.host_cpu.as_ref()?)));
        shares.collect::<Option<Vec<f64>>>()
    };
    let blocks: Vec<Vec<f64>> = used.blocks.iter().map(|(_, runs)| of_block(runs)).collect::<Option<_>>()?;
    let mut shares: Vec<f64> = blocks.iter().flatten().copied().collect();
    shares.sort_unstable_by(f64::total_cmp);
    let at = |place: f64| shares.get((shares.len().saturating_sub(1) as f64 * place) as usize).copied();
    Some(StolenFigure {
        median: at(0.5)?,
        low: at(0.05)?,
        high: at(0.95)?,
        most: at(1.0)?,
        much: shares.iter().filter(|share| **share >= MUCH).count() as u64,
        runs: shares.len() as u64,
        explains: figures.and_then(|figures| explains(used, figures, &blocks)),
    })
}

/// Relates the lost time to the noise within blocks. Fits are of logarithms, and a share already is
/// one: the factor by which a run is slowed.
fn explains(used: &UsedBlocks<'_>, figures: &Observations, shares: &[Vec<f64>]) -> Option<Explains> {
    let rows: Vec<Vec<f64>> =
        shares.iter().map(|block| block.iter().map(|share| share.exp()).collect()).collect();
    let shares = Observations::new(used.contents.plan.schedule.slots(), &rows).ok()?;
    Explained::of(figures, &shares).map(Explains::from)
}
