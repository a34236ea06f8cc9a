//! `plumb study --check`: foresight of a study on this machine, without a run.
//!
//! No bundle is reserved, no server started, nothing written below the path. A server's programs
//! are asked about names and values only, and a running server of `--target` what it is.

use super::study::possible_plan;
use super::visit::{inspected, listed};
use crate::arguments::Study;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output::{self, aligned_under_head, counted};
use plumb_postgres::visit::Visit;
use plumb_study::definition::{Level, catalog};
use plumb_study::plan::Plan;
use plumb_study::vocabulary::{Assignment, Here, ReceiptEvidence, Seen};
use std::path::Path;

/// Prints levels and evidence of a study, or of each study of a suite. Fails if one cannot run.
pub fn run(arguments: &Study) -> Result<Outcome, Failure> {
    let suite = arguments.study.as_deref().filter(|_| arguments.factor.is_empty()).and_then(catalog::suite);
    let Some(suite) = suite else { return check(arguments) };
    for member in suite.studies {
        check(&Study { study: Some((*member).to_string()), ..arguments.clone() })?;
    }
    Ok(Outcome::Fine)
}

fn check(arguments: &Study) -> Result<Outcome, Failure> {
    let (plan, left_out) = possible_plan(arguments, None)?;
    let settings: Vec<&Assignment> = plan.study.all_settings().collect();
    let path = arguments.conduct.path.first().map_or(Path::new("."), |path| path);
    let here = plan.study.vocabulary.here(&settings, path);
    let visit = inspected(arguments, &plan.study)?;
    let (here, would) = match &visit {
        Some((visit, intentions)) => (on_server(here, visit), listed("\nThe study would", intentions)),
        None => (here, String::new()),
    };
    let mut levels = vec![row(["FACTOR", "LEVEL", "POSSIBLE"])];
    for factor in &plan.study.factors {
        let possible = |level: &Level| row([&factor.name, &level.label, "yes"]);
        levels.extend(factor.levels.iter().map(possible));
        let ours = left_out.iter().filter(|level| level.factor == factor.name);
        levels.extend(ours.map(|left| row([&left.factor, &left.level, &format!("no: {}", left.why)])));
    }
    let blocks = plan.study.blocks + 1;
    let text = format!(
        "{}: {}\n{} of {}, {} with the warm-up: {} on {}\n\n{}\n{}{would}",
        plan.study.name,
        plan.study.title,
        counted(plan.study.claims.len() as u64, "claim"),
        counted(plan.schedule.arms as u64, "arm"),
        counted(blocks as u64, "block"),
        counted((blocks * plan.schedule.slots()) as u64, "run"),
        here.target,
        aligned_under_head(&levels),
        aligned_under_head(&evidence(&plan, here.clone()))
    );
    output::print(&text)?;
    Ok(Outcome::Fine)
}

/// Returns the evidence on a running server. Without its processes there is only its word.
fn on_server(here: Here, visit: &Visit) -> Here {
    let target = visit.described();
    if visit.sees_processes() {
        return Here { target, ..here };
    }
    let told = |found: ReceiptEvidence| ReceiptEvidence {
        seen: Seen::Inside,
        by: "pg_settings: the value in force in the working session".to_string(),
        ..found
    };
    Here { target, evidence: here.evidence.into_iter().map(told).collect() }
}

fn row(cells: [&str; 3]) -> Vec<String> {
    cells.map(str::to_string).to_vec()
}

/// Returns a row for each setting, varied ones first, because their receipts decide a comparison.
fn evidence(plan: &Plan, here: Here) -> Vec<Vec<String>> {
    let varies = |found: &ReceiptEvidence| plan.study.settings.iter().all(|set| set.name != found.setting);
    let mut found = here.evidence;
    found.sort_by(|one, two| varies(two).cmp(&varies(one)).then(one.setting.cmp(&two.setting)));
    found.dedup_by(|one, two| one.setting == two.setting);
    let seen = |found: &ReceiptEvidence| if found.seen.is_outside() { "outside" } else { "inside only" };
    let rows = found.iter().map(|found| row([&found.setting, seen(found), &found.by]));
    std::iter::once(row(["SETTING", "RECEIPT", "EVIDENCE"])).chain(rows).collect()
}
