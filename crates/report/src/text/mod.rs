//! The text report: what an AWR report reads like, in at most 132 columns.
//!
//! Walks the sections and sets each block: titles of the first page underlined
//! with tildes, those behind it with the run's name beside them and closed by a
//! ruler; notes after an arrow; tables under dashed rulers. Lines carry no
//! trailing blanks, so that reports can be compared with diff.

mod chart;
mod facts;
mod table;
mod wrap;

pub(crate) use chart::lines as chart_lines;

use crate::ReportContext;
use crate::section::{self, Block, Masthead, Section, Setting};
use crate::validity::RunState;

/// The longest line.
pub(crate) const WIDTH: usize = 132;

/// The ruler that ends a section.
const END_OF_SECTION: &str =
    "                          ------------------------------------------------------";

/// The whole report.
#[must_use]
pub fn render(context: &ReportContext) -> String {
    let mut lines = masthead(&section::masthead(context));
    for section in section::sections(context) {
        lines.extend(render_section(&section, context));
    }
    lines.push("End of Report".to_string());
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The title, and below it, always in the same place, whether the run counts.
fn masthead(masthead: &Masthead) -> Vec<String> {
    let validity = &masthead.validity;
    let word = match validity.state {
        RunState::Invalid => format!("*** {} ***", validity.state.word()),
        RunState::Valid | RunState::Unverified => validity.state.word().to_string(),
    };
    let mut lines = wrap::wrap(&masthead.title, WIDTH);
    lines.push(format!("Run: {word}   {}", validity.basis));
    for reason in &validity.reasons {
        let reason = wrap::wrap(reason, WIDTH - 5);
        lines.extend(
            reason.into_iter().enumerate().map(|(index, line)| {
                if index == 0 { format!("  -> {line}") } else { format!("     {line}") }
            }),
        );
    }
    lines.push(String::new());
    lines
}

pub(crate) fn render_section(section: &Section, context: &ReportContext) -> Vec<String> {
    let mut lines = Vec::new();
    match section.setting {
        Setting::Front => {
            lines.push(section.title.clone());
            lines.push("~".repeat(section.title.chars().count()));
        }
        Setting::Detail => lines.push(format!(
            "{:<48}  Run: {}/{}  Host: {}",
            section.title, context.header.workload, context.header.settings_hash, context.header.host.name
        )),
    }
    for note in &section.notes {
        let note = wrap::wrap(note, WIDTH - 3).into_iter().enumerate();
        lines.extend(note.map(
            |(index, line)| {
                if index == 0 { format!("-> {line}") } else { format!("   {line}") }
            },
        ));
    }
    if !section.notes.is_empty() || section.setting == Setting::Detail {
        lines.push(String::new());
    }
    if section.blocks.is_empty() {
        lines.push(section::NO_DATA.to_string());
    }
    for (index, block) in section.blocks.iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.extend(match block {
            Block::Table(table) => table::lines(table),
            Block::Facts(facts) => facts::lines(facts),
            Block::Profile(chart) => chart::lines(chart),
        });
    }
    if section.setting == Setting::Detail {
        lines.push(END_OF_SECTION.to_string());
    }
    lines.push(String::new());
    lines
}
