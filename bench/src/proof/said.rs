//! The numbers in a page's sentences, held against simulated studies.
//!
//! ```text
//! floor    median effect that studies say they find with 80% power; the one that 80% find
//! need     median blocks that open studies say it takes; the number with which 80% find it
//! best     named level of equal ones, and its interval
//! ```

use super::law::Run;
use super::rows::Bound;
use super::simulated::Size::Blocks;
use super::simulated::{Simulated, Truth};
use super::table::{Line, Share, each};
use plumb_study::analysis::result::JudgedClaim;
use plumb_study::best_level::best_level;
use plumb_units::median;

type Draw = fn(&mut Run<'_>) -> f64;

const POWER: f64 = 0.8;
/// Halvings of a searched floor or number of blocks.
const STEPS: usize = 6;

fn study(blocks: usize, percent: f64, noise: Draw) -> Simulated {
    let truth = Truth::percent(percent);
    Simulated::two("", Blocks(blocks), "differs", truth, move |run| noise(run) + run.treated(truth.typical))
}

/// Returns the share of studies that prove a difference.
fn found(of: &Simulated, studies: usize, seed: u64) -> anyhow::Result<f64> {
    let text = of.study()?;
    let seen = each(studies, seed, 3000, |seed| {
        let analysis = of.judged(&text, seed)?;
        Ok(analysis.is_some_and(|found| found.claims[0].verdict.label().starts_with("PROVED")))
    })?;
    Ok(Share::counted(&seen).found())
}

/// Compares the floors and the blocks needed that studies print with those that are found.
pub(super) fn floors(studies: usize, seed: u64) -> anyhow::Result<String> {
    let mut text = String::new();
    let noises: [(&str, Draw); 2] = [("even noise", |run| run.noise()), ("stalls", |run| run.stalls())];
    for (name, noise) in noises {
        for blocks in [10, 16, 30] {
            let floors =
                numbers(&study(blocks, 0.0, noise), None, studies, seed, |claim| claim.smallest_effect)?;
            let floor = 100.0 * median(&floors);
            let (mut low, mut high) = (floor / 4.0, 4.0 * floor);
            for _ in 0..STEPS {
                let half = (low * high).sqrt();
                if found(&study(blocks, half, noise), studies, seed)? < POWER {
                    low = half
                } else {
                    high = half
                }
            }
            // An effect that takes about twice the blocks.
            let sought = floor / 1.5;
            let needs = numbers(&study(blocks, 0.0, noise), Some(sought), studies, seed, |claim| {
                Some((claim.blocks + claim.blocks_needed.unwrap_or(0)) as f64)
            })?;
            let (mut few, mut enough) = (blocks as f64 / 2.0, 8.0 * blocks as f64);
            for _ in 0..STEPS {
                let half = (few * enough).sqrt();
                let share = found(&study(half.round() as usize, sought, noise), studies, seed)?;
                if share < POWER { few = half } else { enough = half }
            }
            let need = median(&needs);
            text += &format!(
                "{name:<12}{blocks:>3} blocks: floor said {floor:.1}%, found {high:.1}% ({:.2}); {sought:.1}% is said to \
                 need {need:.0} and is found in {enough:.0} ({:.2})\n",
                floor / high,
                need / enough
            );
        }
    }
    Ok(text)
}

/// Returns a number that studies print of their claim, of those that print it.
fn numbers(
    of: &Simulated,
    sought: Option<f64>,
    studies: usize,
    seed: u64,
    number: fn(&JudgedClaim) -> Option<f64>,
) -> anyhow::Result<Vec<f64>> {
    let mut study = of.study()?;
    study.sought = sought.map_or(study.sought, |percent| percent / 100.0);
    let said = each(studies, seed, 3001, |seed| {
        Ok(of.judged(&study, seed)?.and_then(|found| number(&found.claims[0])))
    })?;
    Ok(said.into_iter().flatten().collect())
}

/// Counts how often `--best` names each of four equal levels, and how often its interval
/// contains the first level.
pub(super) fn best(studies: usize, seed: u64) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (name, deviation) in [("noise 3%", 0.03), ("noise 50%", 0.5), ("noise 100%", 1.0)] {
        let of = Simulated::arms(name, 40, &[0.0; 4], move |run| run.normal(deviation));
        let text = of.study()?;
        let seen = each(studies, seed, 3002, |seed| {
            let contents = of.contents(&text, seed)?;
            Ok(contents.and_then(|contents| best_level(&contents, "f0", None).ok()?.knee))
        })?;
        let covers: Vec<bool> = seen.iter().flatten().map(|knee| knee.low == 0).collect();
        let named: Vec<usize> =
            (0..4).map(|level| seen.iter().flatten().filter(|knee| knee.level == level).count()).collect();
        lines.push(Line {
            name: format!("--best of four equal levels, {name}"),
            size: "40".to_string(),
            what: "its interval has the first".to_string(),
            beside: format!("  named {named:?}"),
            ..Line::of(&covers, Some(Bound::AtLeast(0.94)))
        });
    }
    Ok(lines)
}
