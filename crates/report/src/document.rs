//! The document: the contents of a report of any kind, without its looks.
//!
//! A section is notes and blocks; a block is a table, a list of facts or a picture. How these look is the
//! renderers' business. Pictures stand before tables where a kind has any: one look tells where to read on.

use crate::order::OrderPlot;
use crate::plot::{Bars, Plot};
use crate::profile::{Chart, PairChart};
use crate::table::{Facts, Table, Tone};

/// What stands in place of a table without rows.
pub(crate) const NO_DATA: &str = "No data exists for this section of the report.";

/// A report of any kind.
#[derive(Debug, Clone)]
pub struct Document {
    pub title: String,
    /// One or two sentences beneath it on a page, such as a study's question; may be empty.
    pub question: String,
    /// What stands beside the titles of detail sections.
    pub running_head: String,
    /// Columns of the text at most.
    pub width: usize,
    /// Whether to believe it, or what it proves.
    pub state: State,
    /// What the state rests on; may be empty.
    pub basis: String,
    pub reasons: Vec<String>,
    /// The figures to read first.
    pub headline: Vec<Headline>,
    /// The sections in reading order.
    pub sections: Vec<Section>,
    /// The few lines for a terminal.
    pub summary: Summary,
    /// Which program made it, and what else the page holds.
    pub footer: String,
    /// What it was made from, as JSON: a page carries it along.
    pub data: String,
}

/// Whether to believe a report, or what it proves.
#[derive(Debug, Clone)]
pub struct State {
    /// What it is the state of, such as `Run`.
    pub of: String,
    /// In a word or a line.
    pub word: String,
    pub tone: Tone,
}

/// A figure to read first.
#[derive(Debug, Clone)]
pub struct Headline {
    pub name: String,
    /// The value with its unit.
    pub value: String,
    /// What it is to be read against: a share, a bound.
    pub aside: String,
}

impl Headline {
    /// Value and aside in a line.
    #[must_use]
    pub fn line(&self) -> String {
        if self.aside.is_empty() { self.value.clone() } else { format!("{}, {}", self.value, self.aside) }
    }
}

/// The few lines for a terminal, beneath the state.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// What the state is of: `large-sort on dblab03`.
    pub subject: String,
    /// A mark, and what stands behind it, further lines under the first; a line that is set already has no mark.
    pub lines: Vec<(String, String)>,
    /// Names and values; a value without a name continues the one above.
    pub facts: Vec<(String, String)>,
}

/// The place and style of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On the first page: the title underlined with tildes.
    Front,
    /// Behind it: the title with the running head beside it, a ruler at the end.
    Detail,
}

/// A part of a section.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a report has some hundred")]
pub enum Block {
    Table(Table),
    Facts(Facts),
    /// One bar of the parts of a whole.
    Parts(Parts),
    Profile(Chart),
    /// The profiles of two runs on the same axes.
    Pair(PairChart),
    /// Every run of a study in order of execution.
    Order(OrderPlot),
    /// Curves and bars, side by side where there is room.
    Drawings(Vec<Drawing>),
}

/// What a page draws and a text leaves to its tables.
#[derive(Debug, Clone)]
pub enum Drawing {
    Plot(Plot),
    Bars(Bars),
}

/// A whole and its parts, in the order they are drawn.
#[derive(Debug, Clone, Default)]
pub struct Parts(pub Vec<Part>);

/// A part of a whole.
#[derive(Debug, Clone)]
pub struct Part {
    pub name: String,
    /// Its size as it is printed.
    pub shown: String,
    /// Its size, 0 to 1 of the whole.
    pub share: f64,
}

#[derive(Debug, Clone)]
pub struct Section {
    /// Its anchor, unique in the report.
    pub id: &'static str,
    pub title: String,
    pub placement: Placement,
    /// What a reader must know of the columns, one sentence each.
    pub notes: Vec<String>,
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty one on the first page.
    pub fn front(id: &'static str, title: impl Into<String>) -> Section {
        let title = title.into();
        Section { id, title, placement: Placement::Front, notes: Vec::new(), blocks: Vec::new() }
    }

    /// An empty one behind it.
    pub fn detail(id: &'static str, title: impl Into<String>) -> Section {
        Section { placement: Placement::Detail, ..Section::front(id, title) }
    }

    /// With a note, unless it is empty.
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
