//! The table that every section declares and both renderers walk.
//!
//! A column has a title of one or more lines and says how its cells are aligned; a cell
//! is its printed text, with what HTML may add to it: a share that becomes a
//! bar behind the number, a tone that becomes a colour. Text ignores both, so
//! nothing may be said by them alone. A column may have an axis on which its cells
//! draw an interval or a bar; text sets these in characters.

use crate::format::Figure;

/// How a column's cells are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    Text,
    /// Left, broken at this many characters.
    Wrapped(usize),
    Number,
    /// Drawn on the column's axis; so many characters wide in text.
    Drawn(usize),
}

/// The axis of a column whose cells are drawn; positions are 0 at its left end and 1 at its right.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// Positions and what they stand for, from left to right, apart enough for their labels.
    pub ticks: Vec<(f64, String)>,
    /// Where nothing happens: a line through all rows.
    pub line: Option<f64>,
}

/// What a cell draws on its column's axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawing {
    /// An estimate within its interval; an end that lies off the axis is open.
    Interval {
        /// The lower end; none lies off the axis.
        low: Option<f64>,
        at: f64,
        /// The upper end; none lies off the axis.
        high: Option<f64>,
    },
    /// A bar between two positions.
    Bar { from: f64, to: f64, kind: BarKind },
}

/// What a bar stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarKind {
    Total,
    More,
    Less,
}

#[derive(Debug, Clone)]
pub struct Column {
    /// The title's lines, the last one next to the ruler.
    pub title: String,
    /// How its cells are aligned.
    pub alignment: Alignment,
    /// The axis, when its cells are drawn.
    pub axis: Option<Axis>,
}

impl Column {
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), alignment: Alignment::Text, axis: None }
    }

    pub fn wrapped(title: impl Into<String>, width: usize) -> Column {
        Column { title: title.into(), alignment: Alignment::Wrapped(width), axis: None }
    }

    pub fn number(title: impl Into<String>) -> Column {
        Column { title: title.into(), alignment: Alignment::Number, axis: None }
    }

    /// Drawings on an axis, in text so many characters wide.
    pub fn drawn(title: impl Into<String>, width: usize, axis: Axis) -> Column {
        Column { title: title.into(), alignment: Alignment::Drawn(width), axis: Some(axis) }
    }
}

/// What a cell's colour may stress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    /// Not as it should be.
    Bad,
    Open,
}

#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub text: String,
    /// The length of the bar behind it, 0 to 1.
    pub share: Option<f64>,
    pub tone: Tone,
    /// What it draws, in a column that has an axis.
    pub drawing: Option<Drawing>,
}

impl Cell {
    /// A drawing; none draws nothing but the axis' line.
    pub fn drawn(drawing: Option<Drawing>) -> Cell {
        Cell { drawing, ..Cell::default() }
    }

    pub fn of(figure: impl Figure) -> Cell {
        Cell::from(figure.figure())
    }

    pub fn with_share(mut self, share: Option<f64>) -> Cell {
        self.share = share.map(|share| share.clamp(0.0, 1.0));
        self
    }

    pub fn with_tone(mut self, tone: Tone) -> Cell {
        self.tone = tone;
        self
    }
}

impl<F: Figure> From<F> for Cell {
    fn from(figure: F) -> Cell {
        Cell::from(figure.figure())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, ..Cell::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_string())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Cell {
        Cell::from(text.as_str())
    }
}

/// The cells of a row, each from what it shows: a word, a figure, or a [`Cell`] with more than its text.
#[macro_export]
macro_rules! cells {
    ($($shown:expr),* $(,)?) => { vec![$($crate::table::Cell::from($shown)),*] };
}

/// What a row is among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Plain,
    /// One that does not count, such as an idle event.
    Quiet,
    Total,
}

/// A row; it has a cell for each column.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is among its siblings.
    pub kind: RowKind,
    /// Its cells in the columns' order.
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, Default)]
pub struct Table {
    /// A line above the header, when the section has several tables.
    pub caption: Option<String>,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

impl Table {
    pub fn new(columns: Vec<Column>) -> Table {
        Table { caption: None, columns, rows: Vec::new() }
    }

    #[must_use]
    pub fn column(mut self, column: Column) -> Table {
        self.columns.push(column);
        self
    }

    #[must_use]
    pub fn text<const N: usize>(self, titles: [&str; N]) -> Table {
        titles.into_iter().map(Column::text).fold(self, Table::column)
    }

    /// With a column of sentences or paths.
    #[must_use]
    pub fn wrapped(self, title: &str, width: usize) -> Table {
        self.column(Column::wrapped(title, width))
    }

    #[must_use]
    pub fn numbers<const N: usize>(self, titles: [&str; N]) -> Table {
        titles.into_iter().map(Column::number).fold(self, Table::column)
    }

    /// With a line above the header.
    pub fn with_caption(mut self, caption: impl Into<String>) -> Table {
        self.caption = Some(caption.into());
        self
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.push(RowKind::Plain, cells);
    }

    /// Adds a row of some kind.
    pub fn push(&mut self, kind: RowKind, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(Row { kind, cells });
    }
}

/// Names with their values, one a line.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// A line above them, when the section has several groups.
    pub caption: Option<String>,
    pub rows: Vec<(String, Cell)>,
}

impl Facts {
    /// Adds a fact; an empty value is a fact that nobody knows and is left out.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<Cell>) {
        let value = value.into();
        if !value.text.is_empty() {
            self.rows.push((name.into(), value));
        }
    }
}
