//! How the study was run, and on what.

use super::advice::assignments;
use crate::analysis::result::{Analysis, StudyState};
use crate::document::run::settings_section;
use plumb_report::Section;
use plumb_report::format::{Count, Figure, Share};
use plumb_report::table::{Cell, Column, Facts, RowKind, Table};

/// The design.
pub(super) fn design(study: &Analysis) -> Section {
    let (header, design) = (&study.header, &study.design);
    let mut facts = Facts::default();
    facts.add("Study", format!("{}, hash {}", header.name, header.study_hash));
    facts.add("Release", release(study));
    facts.add("Design", format!("{}, {} arms", design.kind, study.arms.len()));
    for words in &design.confounded {
        facts.add("Confounded", words);
    }
    facts.add("Reference", format!("{}, twice in every block", study.arm_name(design.reference_arm)));
    facts.add("Order", format!("{}, seed {}", design.order, design.seed));
    facts.add("Stopping", &design.stopping);
    facts.add("Blocks", blocks(study));
    for marked in &design.blocks_marked {
        facts.add("Not used", format!("block {}: {}", marked.block, marked.reason));
    }
    facts.add("Warm-up", format!("{} runs, recorded and not counted", Count(design.warm_up_runs).figure()));
    facts.add("Between runs", &design.settling);
    facts.add(
        "Error allowed",
        format!(
            "in at most {} of studies anything is called proved that is not so",
            Share(design.alpha).figure()
        ),
    );
    facts.add("Effect sought", Share(design.effect_sought).figure());
    Section::detail("design", "Design").facts(facts)
}

fn release(study: &Analysis) -> String {
    let revision = study.header.git_revision.as_deref().unwrap_or("unknown");
    format!("plumb {}, revision {revision}", study.header.plumb_version)
}

fn blocks(study: &Analysis) -> String {
    let design = &study.design;
    let state = match study.header.state {
        StudyState::Finished => "",
        StudyState::Interrupted => "; the study was interrupted",
    };
    format!(
        "{} used, {} marked, {} planned{state}",
        Count(design.blocks_used).figure(),
        design.blocks_marked.len(),
        Count(design.blocks_planned).figure()
    )
}

/// What was varied.
pub(super) fn factors(study: &Analysis) -> Section {
    let mut table = Table::new(vec![
        Column::text("Factor"),
        Column::text("Level"),
        Column::wrapped("Settings", 60),
        Column::text(""),
    ]);
    for factor in &study.factors {
        for (index, level) in factor.levels.iter().enumerate() {
            let is_reference = index == factor.reference;
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

/// The settings that all arms share.
pub(super) fn settings(study: &Analysis) -> Section {
    settings_section(&study.settings, "Settings of All Arms", 34)
}
