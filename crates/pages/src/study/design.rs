//! Design of the study, and its environment.

use super::advice::assignments;
use crate::run::settings_section;
use plumb_report::Section;
use plumb_report::format::{Count, Figure, Seconds, Share};
use plumb_report::table::{Cell, Facts, RowKind, Table};
use plumb_study::analysis::result::{Analysis, CanaryFigure, Explains, StolenFigure, StudyState};

pub(super) fn design(analysis: &Analysis) -> Section {
    let design = &analysis.design;
    let mut facts = Facts::default();
    facts.add("Study", format!("{}, hash {}", analysis.study.name, analysis.study_hash));
    facts.add("Release", release(analysis));
    if let Some(hash) = &analysis.evidence_hash {
        facts.add("Hash", format!("{hash}; `plumb verify --expect` holds the bundle to it"));
    }
    facts.add("Design", format!("{}, {} arms", design.kind, analysis.arms.len()));
    for words in &design.confounded {
        facts.add("Confounded", words);
    }
    facts.add("Reference", format!("{}, twice in every block", analysis.arm_name(design.reference_arm)));
    facts.add("Order", format!("{}, seed {}", design.order, design.seed));
    facts.add("Stopping", &design.stopping);
    facts.add("Blocks", blocks(analysis));
    for marked in &design.blocks_marked {
        facts.add("Not used", format!("block {}: {}", marked.block, marked.reason));
    }
    facts.add("Warm-up", warm_up(design.warm_up_runs));
    facts.add("Between runs", &design.settling);
    facts.add("Measured", measured(analysis));
    for canary in &analysis.canary {
        facts.add("Canary", canary_line(canary));
    }
    if let Some(stolen) = &analysis.stolen {
        facts.add("Stolen", stolen_line(stolen));
    }
    facts.add(
        "Error allowed",
        format!(
            "in at most {} of studies anything is said that is not so: differences, equalities, what holds and what is \
             refuted, and the advice",
            Share(analysis.study.alpha).figure()
        ),
    );
    facts.add("Not randomised", &design.not_randomised);
    facts.add("Effect sought", Share(analysis.study.sought).figure());
    Section::detail("design", "Design").facts(facts)
}

/// Describes the processor time given to other guests.
fn stolen_line(stolen: &StolenFigure) -> String {
    let [low, median, high] = [stolen.low, stolen.median, stolen.high].map(|share| Share(share).figure());
    let explains = explains(stolen.explains);
    format!(
        "{median} of the processors' time in the median run, in nine runs of ten {low} to {high}{explains}"
    )
}

fn explains(explains: Option<Explains>) -> String {
    explains.map_or(String::new(), |Explains { share, low, high }| {
        let ends = format!("[{:.0}, {:.0}]", 100.0 * low, 100.0 * high);
        format!(
            "; explains {} {ends} of the noise within blocks and arms (95% interval)",
            Share(share).figure()
        )
    })
}

/// Describes the steadiness of the machine, and its share of the noise.
fn canary_line(canary: &CanaryFigure) -> String {
    let millis = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
    let used = if canary.adjusted { ": comparisons are adjusted by it" } else { "" };
    let explains = explains(canary.explains);
    let (low, median, high) = (millis(canary.low_ns), millis(canary.median_ns), millis(canary.high_ns));
    format!(
        "{} before each run took {median} ms, in nine runs of ten {low} to {high}{explains}{used}",
        canary.what
    )
}

/// Describes the timed share of the study's time. Loading and the canary
/// are excluded from the whole.
fn measured(analysis: &Analysis) -> String {
    let design = &analysis.design;
    let timed: u64 = analysis.runs.iter().filter_map(|run| run.elapsed_ns).sum();
    let whole = analysis.elapsed_ns.saturating_sub(design.loading_ns + design.canary_ns);
    if timed == 0 || whole == 0 {
        return String::new();
    }
    let share = Share(timed as f64 / whole as f64).figure();
    let (loading, canary) = (Seconds(design.loading_ns).figure(), Seconds(design.canary_ns).figure());
    format!(
        "{share} of the study's time was that of timed runs, {loading} s of loading and {canary} s of the canary left out"
    )
}

fn release(analysis: &Analysis) -> String {
    let environment = &analysis.environment;
    let revision = environment.git_revision.as_deref().unwrap_or("unknown");
    let profile = environment.profile.iter().map(|profile| format!(", {profile}")).collect::<String>();
    format!("plumb {}, revision {revision}{profile}", environment.plumb_version)
}

fn warm_up(runs: u64) -> String {
    format!("{} run{}, recorded and not counted", Count(runs).figure(), if runs == 1 { "" } else { "s" })
}

fn blocks(analysis: &Analysis) -> String {
    let design = &analysis.design;
    let state = match analysis.state {
        StudyState::Finished => "",
        StudyState::Interrupted => "; the study was interrupted",
    };
    format!(
        "{} used, {} marked, {} planned{state}",
        Count(design.blocks_used).figure(),
        design.blocks_marked.len(),
        Count(analysis.study.blocks as u64).figure()
    )
}

pub(super) fn factors(analysis: &Analysis) -> Section {
    let mut table = Table::default().text(["Factor", "Level"]).wrapped("Settings", 60).text([""]);
    let reference = &analysis.arms[analysis.design.reference_arm].levels;
    for (factor, reference) in analysis.study.factors.iter().zip(reference) {
        for (index, level) in factor.levels.iter().enumerate() {
            let is_reference = index == *reference;
            let cells = vec![
                Cell::from(if index == 0 { factor.name.as_str() } else { "" }),
                Cell::from(&level.label),
                Cell::from(assignments(&level.settings)),
                Cell::from(if is_reference { "reference" } else { "" }),
            ];
            table.push(RowKind::Plain, cells);
        }
    }
    Section::detail("factors", "Factors").table(table)
}

/// Shows the settings that all arms share.
pub(super) fn settings(analysis: &Analysis) -> Section {
    settings_section(&analysis.settings, "Settings of All Arms", 34)
}
