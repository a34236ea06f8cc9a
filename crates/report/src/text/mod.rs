//! The text report: what an AWR report reads like, in at most 132 columns (a study's: 110).
//!
//! Walks the sections and sets each block: titles of the first page underlined
//! with tildes, those behind it with the run's name beside them and closed by a
//! ruler; notes after an arrow; tables under dashed rulers. Lines carry no
//! trailing blanks, so that reports can be compared with diff, and no control characters.

mod chart;
mod facts;
mod order;
mod strip;
mod table;
mod wrap;

pub(crate) use chart::{lines as chart_lines, pair_lines};
pub(crate) use wrap::wrap;

use crate::ReportContext;
use crate::section::{self, Block, Masthead, Section, Setting};
use crate::validity::RunState;
use plumb_units::visible;

/// The longest line of a run's report.
pub(crate) const WIDTH: usize = 132;

/// What the sections of one report share.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The longest line.
    pub width: usize,
    /// What stands beside the titles behind the first page.
    pub running_head: String,
}

impl Page {
    pub(crate) fn of_run(context: &ReportContext) -> Page {
        let header = &context.header;
        Page {
            width: WIDTH,
            running_head: format!(
                "Run: {}/{}  Host: {}",
                header.workload, header.settings_hash, header.host.name
            ),
        }
    }
}

/// The ruler that ends a section.
const END_OF_SECTION: &str =
    "                          ------------------------------------------------------";

/// The whole report.
#[must_use]
pub fn render(context: &ReportContext) -> String {
    document(masthead(&section::masthead(context)), &section::sections(context), &Page::of_run(context))
}

/// A masthead and the sections below it, lines without trailing blanks.
pub(crate) fn document(masthead: Vec<String>, sections: &[Section], page: &Page) -> String {
    let mut lines = masthead;
    for section in sections {
        lines.extend(render_section(section, page));
    }
    lines.push("End of Report".to_string());
    let mut text = String::new();
    for line in lines {
        text.push_str(&visible(line.trim_end()));
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
    let mut lines = wrap(&masthead.title, WIDTH);
    lines.push(format!("Run: {word}   {}", validity.basis));
    for reason in &validity.reasons {
        lines.extend(hanging("  -> ", reason, WIDTH));
    }
    lines.push(String::new());
    lines
}

/// A text behind a mark, its further lines below its first.
pub(crate) fn hanging(mark: &str, text: &str, width: usize) -> Vec<String> {
    let indent = mark.chars().count();
    let lines = wrap(text, width - indent).into_iter().enumerate();
    lines
        .map(
            |(index, line)| {
                if index == 0 { format!("{mark}{line}") } else { format!("{:indent$}{line}", "") }
            },
        )
        .collect()
}

pub(crate) fn render_section(section: &Section, page: &Page) -> Vec<String> {
    let mut lines = Vec::new();
    match section.setting {
        Setting::Front => {
            lines.push(section.title.clone());
            lines.push("~".repeat(section.title.chars().count()));
        }
        Setting::Detail => lines.push(format!("{:<48}  {}", section.title, page.running_head)),
    }
    for note in &section.notes {
        lines.extend(hanging("-> ", note, page.width));
    }
    if !section.notes.is_empty() || section.setting == Setting::Detail {
        lines.push(String::new());
    }
    if section.blocks.is_empty() {
        lines.push(section::NO_DATA.to_string());
    }
    // What is drawn has its figures in tables.
    let blocks = section.blocks.iter().filter(|block| !matches!(block, Block::Drawings(_)));
    for (index, block) in blocks.enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.extend(match block {
            Block::Table(table) => table::lines(table, page.width),
            Block::Facts(facts) => facts::lines(facts, page.width),
            Block::Profile(chart) => chart::lines(chart),
            Block::Pair(pair) => chart::pair_lines(pair),
            Block::Order(plot) => order::lines(plot),
            Block::Drawings(_) => Vec::new(),
        });
    }
    if section.setting == Setting::Detail {
        lines.push(END_OF_SECTION.to_string());
    }
    lines.push(String::new());
    lines
}
