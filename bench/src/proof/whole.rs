//! Simulates whole studies, from the records of their runs to the findings of the analysis. Only
//! the figures are synthetic.
//!
//! The rest of this bench calls the inference directly, which is much faster. This part makes the
//! contents of a bundle and calls [`analyse`]: contrasts of a factorial, receipts, equalities,
//! bounds, advice, phases and findings. So it finds faults between the inference and the report.
//!
//! ```text
//! at the edge     two factors: a without effect, b 5% slower; six claims and an advice, each just
//!                 not true, so that no number of blocks settles a claim. Advice needs settled
//!                 claims, so it is rare
//! in a phase      a treatment 5% slower, in the phase of its claim, or in a timed set-up
//! ```

use super::simulation::synthetic::{Noise, Study};
use super::simulation::{Scale, Share, each};
use plumb_events::Phase;
use plumb_proof::random::Generator;
use plumb_record::{Header, Held, Host, Phase as PhaseSpan, Receipt, Record, Seen};
use plumb_run::embedded::Engine;
use plumb_study::analysis::analyse;
use plumb_study::analysis::result::{Analysis, ClaimOutcome};
use plumb_study::bundle::{Contents, EndFile, Ended, Environment, RunRecord, Settled, Stop};
use plumb_study::definition;
use plumb_study::plan::{Plan, PlanOptions, Until};
use std::fmt::Write as _;

/// Standard deviation of the log-ratio of two runs (s_d).
const PAIR_DEVIATION: f64 = 0.03;
/// Slowdown, per cent: also the margin and the bound of the claims.
const SLOWER: f64 = 5.0;
/// Share of the merge in a run; the rest is the load.
const MERGE: f64 = 0.5;
const BLOCKS: [usize; 2] = [9, 20];
const NOISES: [Noise; 4] = [Noise::Lognormal, Noise::HeavyTails, Noise::Unequal, Noise::ByBlock];

/// Factor a (`sort_direct_writes`) has no effect. Factor b (`sort_area_size`) is 5% slower at
/// 2M, which the reference has.
const AT_THE_EDGE: &str = r#"name = "edge"
title = "Claims that are just not true"
question = "Is anything said that is not so?"
workload = "large-sort"
rows = "1M"
blocks = 9

[[factor]]
name = "a"
setting = "sort_direct_writes"
levels = ["FALSE", "TRUE"]

[[factor]]
name = "b"
setting = "sort_area_size"
levels = ["2M", "1M"]
"#;

/// Claims of that study: name, change, and further lines.
const CLAIMS: [(&str, &str, &str); 6] = [
    ("a-at-1M", A, "at = { b = '1M' }\nexpect = 'differs'"),
    ("a-at-2M", A, "at = { b = '2M' }\nexpect = 'differs'"),
    ("b-at-FALSE", B, "at = { a = 'FALSE' }\nexpect = 'equal within 5%'"),
    ("b-at-TRUE", B, "at = { a = 'TRUE' }\nexpect = 'equal within 5%'"),
    ("b", B, "expect = 'slower by at least 5%'"),
    ("a-with-b", A, "with = { factor = 'b', from = '1M', to = '2M' }\nexpect = 'differs'"),
];
const A: &str = "factor = 'a'\nfrom = 'FALSE'\nto = 'TRUE'";
const B: &str = "factor = 'b'\nfrom = '1M'\nto = '2M'";

/// Claims without an effect, where a difference is false. Of the others, a HOLDS or FAILS is false.
const WITHOUT_EFFECT: [&str; 3] = ["a-at-1M", "a-at-2M", "a-with-b"];

const IN_A_PHASE: &str = r#"name = "phase"
title = "A treatment of the merge"
question = "Is it seen where the difference lies?"
workload = "large-sort"
rows = "1M"
blocks = 9

[[factor]]
name = "b"
setting = "sort_area_size"
levels = ["1M", "2M"]
"#;

/// Makes the studies, and returns a table of rates.
pub(super) fn run(studies: usize, seed: u64) -> anyhow::Result<String> {
    let mut text =
        format!("\n{:<52}{:<22}", format!("Whole studies, % of {studies} (records to report)"), "counted");
    for noise in NOISES {
        write!(text, "{:>16}", noise.name())?;
    }
    text.push('\n');
    for blocks in BLOCKS {
        let name = format!("two factors, 6 claims and advice, {blocks} blocks");
        let counted = [("anything false", says_falsely as fn(&Analysis) -> bool), ("UNSTABLE", is_unstable)];
        row(&mut text, (studies, seed), &name, &counted, |noise, seed| at_the_edge(blocks, noise, seed))?;
    }
    for (where_it_is, slower) in
        [("where its claim says", Phase::MergeAndIndex), ("in the set-up", Phase::Load)]
    {
        let name = format!("5% slower {where_it_is}, {} blocks", BLOCKS[1]);
        let counted = [
            ("PROVED slower", is_slower as fn(&Analysis) -> bool),
            ("said to lie elsewhere", lies_elsewhere),
        ];
        row(&mut text, (studies, seed), &name, &counted, |noise, seed| in_a_phase(slower, noise, seed))?;
    }
    Ok(text)
}

/// True if a study is counted.
type Counts = fn(&Analysis) -> bool;

/// Returns a row per counted property, with a column per noise.
fn row(
    text: &mut String,
    (studies, seed): (usize, u64),
    name: &str,
    counted: &[(&str, Counts)],
    make: impl Fn(Noise, u64) -> anyhow::Result<Analysis> + Sync,
) -> anyhow::Result<()> {
    let mut seen: Vec<Vec<Vec<bool>>> = Vec::new();
    for (column, noise) in NOISES.into_iter().enumerate() {
        seen.push(each(Scale { studies, seed }, column, |generator| {
            let analysis = make(noise, generator.bits())?;
            anyhow::Ok(counted.iter().map(|(_, holds)| holds(&analysis)).collect())
        })?);
    }
    for (index, (what, _)) in counted.iter().enumerate() {
        write!(text, "{name:<52}{what:<22}")?;
        for studies_of in &seen {
            let hits = studies_of.iter().filter(|study| study[index]).count();
            write!(text, "{:>16}", Share { hits, studies })?;
        }
        text.push('\n');
    }
    Ok(())
}

/// True if a statement is false: the effect lies exactly on each bound, so no claim about a bound
/// may hold or be refuted.
fn says_falsely(analysis: &Analysis) -> bool {
    let is_false = analysis.claims.iter().any(|claim| {
        let says = claim.verdict.label();
        match claim.name.as_str() {
            name if WITHOUT_EFFECT.contains(&name) => says == "PROVED faster" || says == "PROVED slower",
            _ => says == "PROVED EQUAL" || says == "PROVED faster" || claim.outcome != ClaimOutcome::Open,
        }
    });
    // The best arms have b at 1M.
    let is_best = |arm: &usize| analysis.arms[*arm].name.contains("b=1M");
    is_false || analysis.recommendation.as_ref().is_some_and(|advice| !advice.candidates.iter().any(is_best))
}

fn is_unstable(analysis: &Analysis) -> bool {
    analysis.claims.iter().any(|claim| claim.verdict.label() == "UNSTABLE")
}

fn is_slower(analysis: &Analysis) -> bool {
    analysis.claims[0].verdict.label() == "PROVED slower"
}

fn lies_elsewhere(analysis: &Analysis) -> bool {
    analysis
        .findings
        .iter()
        .any(|finding| finding.what.starts_with("The difference of merge lies in the phase"))
}

fn at_the_edge(blocks: usize, noise: Noise, seed: u64) -> anyhow::Result<Analysis> {
    let slower = (1.0 + SLOWER / 100.0).ln();
    made((AT_THE_EDGE, &CLAIMS), blocks, (noise, seed), |plan, arm| {
        if plan.arm_name(arm).contains("b=2M") { [slower; 2] } else { [0.0; 2] }
    })
}

fn in_a_phase(slower: Phase, noise: Noise, seed: u64) -> anyhow::Result<Analysis> {
    let share = if slower == Phase::Load { 1.0 - MERGE } else { MERGE };
    let effect = (1.0 + SLOWER / 100.0 / share).ln();
    let claim = [("merge", B, "expect = 'slower'\nphase = 'merge and index'")];
    made((IN_A_PHASE, &claim), BLOCKS[1], (noise, seed), |plan, arm| {
        match plan.arm_name(arm).contains("2M") {
            true if slower == Phase::Load => [effect, 0.0],
            true => [0.0, effect],
            false => [0.0; 2],
        }
    })
}

/// Returns a study with these log-ratios of load and merge by arm.
fn made(
    (head, claims): (&str, &[(&str, &str, &str)]),
    blocks: usize,
    (noise, seed): (Noise, u64),
    effects: impl Fn(&Plan, usize) -> [f64; 2],
) -> anyhow::Result<Analysis> {
    let claim = |(name, change, rest): &(&str, &str, &str)| {
        format!("\n[[claim]]\nname = '{name}'\ntext = 'Made up.'\n{change}\n{rest}\n")
    };
    let text = head.to_string() + &claims.iter().map(claim).collect::<String>();
    let study = definition::parse("made-up", &text, &[&Engine])?;
    let plan = Plan::new(study, PlanOptions { blocks: Some(blocks), rows: None }, Until::Blocks, seed)?;
    let sigma = PAIR_DEVIATION / std::f64::consts::SQRT_2;
    // Block 0 is the warm-up.
    let schedule = Study { schedule: plan.schedule, blocks: blocks + 1, effects: &[], noise, sigma };
    let (seen, _) = schedule.run(&mut Generator::of_part(seed, 1))?;
    let mut environment = environment();
    environment.settings = plan.setting_facts();
    let mut runs = Vec::new();
    for block in 0..=blocks {
        for cell in plan.block(block) {
            let seconds = seen.logs()[block][cell.slot].exp();
            let [load, merge] = effects(&plan, cell.arm);
            let (load, merge) = (seconds * (1.0 - MERGE) * load.exp(), seconds * MERGE * merge.exp());
            let asked =
                plan.arm_settings(cell.arm).into_iter().map(|set| held(set.name, set.value)).collect();
            runs.push(RunRecord {
                number: runs.len() as u64 + 1,
                arm: plan.arm_name(cell.arm),
                arm_index: cell.arm,
                block: (block > 0).then_some(block as u64),
                position: cell.position as u64,
                slot: cell.slot,
                start_ns: runs.len() as u64,
                settled: Settled { idle: true, total_pages: 100, ..Settled::default() },
                ended: Ended::Finished,
                record: Some(record((load, merge), asked)),
            });
        }
    }
    let end = Some(EndFile { stop: Stop::Planned, end_ns: runs.len() as u64 });
    Ok(analyse(&Contents { plan, environment, runs, end }))
}

/// Returns a run with two phases; half of its time is CPU.
pub(super) fn record((load, merge): (f64, f64), receipts: Vec<Receipt>) -> Record {
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let (loaded, elapsed_ns) = (nanos(load), nanos(load + merge));
    let phase = |phase: Phase, start_ns, end_ns| PhaseSpan {
        name: phase.name().to_string(),
        operation: String::new(),
        start_ns,
        end_ns,
        rows: 0,
        bytes: 0,
        direction: None,
    };
    let phases = vec![phase(Phase::Load, 0, loaded), phase(Phase::MergeAndIndex, loaded, elapsed_ns)];
    let header = Header {
        title: String::new(),
        workload: "large-sort".to_string(),
        plumb_version: String::new(),
        git_revision: None,
        profile: None,
        host: host(),
        begin_time: String::new(),
        end_time: String::new(),
        elapsed_ns,
        db_time_ns: Some(elapsed_ns / 2),
        db_cpu_ns: Some(elapsed_ns / 2),
        command_line: String::new(),
        seed: Some(1),
        settings_hash: String::new(),
        clock_source: None,
        clock_precision_ns: None,
    };
    Record { phases, receipts, ..Record::of(header) }
}

pub(super) fn held(setting: String, asked: String) -> Receipt {
    Receipt { setting, asked, evidence: "made up".to_string(), held: Held::Held, seen: Seen::Outside }
}

pub(super) fn environment() -> Environment {
    Environment {
        plumb_version: String::new(),
        git_revision: None,
        profile: None,
        target: "made-up figures".to_string(),
        host: host(),
        devices: Vec::new(),
        calibration_date: None,
        calibration_doubts: Vec::new(),
        limits: Vec::new(),
        settings: Vec::new(),
        begin_ns: 0,
        begin_time: String::new(),
        command_line: String::new(),
        between_runs: None,
        spawn_ns: None,
    }
}

fn host() -> Host {
    Host {
        name: String::new(),
        cpus: Some(2),
        cpu_model: String::new(),
        memory_bytes: Some(1 << 33),
        kernel: String::new(),
        cpu_quota: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_said_and_nothing_else() {
        let edge = at_the_edge(20, Noise::Lognormal, 1).expect("a study");
        assert_eq!(edge.claims.len(), 6);
        assert!(edge.claims.iter().all(|claim| claim.effect.is_some()), "no claim is invalid");
        assert!(!says_falsely(&edge) && !is_unstable(&edge), "seed 1");
        for (slower, elsewhere) in [(Phase::MergeAndIndex, false), (Phase::Load, true)] {
            let seen = in_a_phase(slower, Noise::Lognormal, 1).expect("a study");
            assert!(is_slower(&seen), "{}", seen.claims[0].verdict);
            assert_eq!(lies_elsewhere(&seen), elsewhere, "{:?}", seen.findings);
        }
    }
}
