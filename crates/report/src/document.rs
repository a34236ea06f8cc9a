//! The document: the content of a report of any kind, without its appearance.
//!
//! A section consists of notes and blocks; a block is a table, a list of facts or a picture.
//! Renderers decide on the appearance. Pictures precede tables, because a glance shows where to
//! read on.

use crate::answer::{Headline, ReportAnswer};
use crate::order::OrderPlot;
use crate::plot::{Bars, Heat, Plot};
use crate::profile::{Chart, PairChart};
use crate::table::{Facts, Table, Tone};
use std::borrow::Cow;

/// Text in place of a table without rows.
pub(crate) const NO_DATA: &str = "No data exists for this section of the report.";

#[derive(Debug, Clone)]
pub struct Document {
    pub title: String,
    /// The answer, first everywhere but below a title.
    pub answer: ReportAnswer,
    /// One or two sentences below the title of a page, such as a study's question; may be empty.
    pub question: String,
    /// Text next to the titles of detail sections.
    pub running_head: String,
    /// Largest number of columns of the text.
    pub width: usize,
    /// Credibility of the report, or its result.
    pub state: State,
    /// Basis of the state; may be empty.
    pub basis: String,
    /// Reasons of the state, a sentence each.
    pub reasons: Vec<String>,
    /// The most important figures of the report.
    pub headline: Vec<Headline>,
    /// The sections in reading order.
    pub sections: Vec<Section>,
    /// A few lines for a terminal.
    pub summary: Summary,
    /// The program, and further content of the page.
    pub footer: String,
    /// The report's input as JSON, embedded in a page.
    pub data: String,
}

impl Document {
    /// Adds the answer to a JSON object as its first field; JSON of another kind stays as it is.
    pub fn answered(&self, json: &str) -> String {
        match (json.trim().strip_prefix('{'), serde_json::to_string(&self.answer)) {
            (Some(rest), Ok(answer)) => format!("{{\n  \"answer\": {answer},{rest}\n"),
            _ => json.to_string(),
        }
    }
}

/// Credibility of a report, or its result.
#[derive(Debug, Clone)]
pub struct State {
    /// Subject of the state, such as `Run`.
    pub of: String,
    /// The state in a word or a line.
    pub word: String,
    pub tone: Tone,
}

/// A few lines for a terminal, below the state.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Subject of the state: `large-sort on dblab03`.
    pub subject: String,
    /// A mark with text, wrapped below its start; a composed line has no mark.
    pub lines: Vec<(String, String)>,
    /// Names and values; a value without a name continues the one above.
    pub facts: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On the first page: the title underlined with tildes.
    Front,
    /// After the first page: the title with the running head, and a ruler at the end.
    Detail,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a report has some hundred")]
pub enum Block {
    Table(Table),
    Facts(Facts),
    /// One bar of the parts of a whole.
    Parts(Parts),
    Profile(Chart),
    /// Profiles of two runs on the same axes.
    Pair(PairChart),
    /// Every run of a study in order of execution.
    Order(OrderPlot),
    /// Curves and bars, side by side if there is room.
    Drawings(Vec<Drawing>),
}

/// A drawing of a page; text shows its figures in tables.
#[derive(Debug, Clone)]
pub enum Drawing {
    Plot(Plot),
    Bars(Bars),
    Heat(Heat),
}

/// A whole and its parts, in the order they are drawn.
#[derive(Debug, Clone, Default)]
pub struct Parts(pub Vec<Part>);

#[derive(Debug, Clone)]
pub struct Part {
    pub name: String,
    /// Printed size of the part.
    pub shown: String,
    /// Share of the whole, 0 to 1.
    pub share: f64,
}

#[derive(Debug, Clone)]
pub struct Section {
    /// Anchor, unique in the report.
    pub id: Cow<'static, str>,
    pub title: String,
    pub placement: Placement,
    /// Explanations of the columns, one sentence each.
    pub notes: Vec<String>,
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty section on the first page.
    pub fn front(id: impl Into<Cow<'static, str>>, title: impl Into<String>) -> Section {
        let (id, title) = (id.into(), title.into());
        Section { id, title, placement: Placement::Front, notes: Vec::new(), blocks: Vec::new() }
    }

    /// An empty section after the first page.
    pub fn detail(id: impl Into<Cow<'static, str>>, title: impl Into<String>) -> Section {
        Section { placement: Placement::Detail, ..Section::front(id, title) }
    }

    /// Adds a note unless it is empty.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Section {
        let note = note.into();
        self.notes.extend(Some(note).filter(|note| !note.is_empty()));
        self
    }

    #[must_use]
    pub fn block(mut self, block: Block) -> Section {
        self.blocks.push(block);
        self
    }

    #[must_use]
    pub fn table(self, table: Table) -> Section {
        self.block(Block::Table(table))
    }

    #[must_use]
    pub fn facts(self, facts: Facts) -> Section {
        self.block(Block::Facts(facts))
    }

    #[must_use]
    pub fn drawings(self, drawings: Vec<Drawing>) -> Section {
        self.block(Block::Drawings(drawings))
    }
}
