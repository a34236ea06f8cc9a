//! The table that every section declares and both renderers walk.
//!
//! A column has a title of one or more lines and an alignment. A cell is its printed text, with
//! additions for HTML: a share becomes a bar after the number, a tone a colour. Text ignores both,
//! so they must not carry further information. A column may have an axis on which its cells draw an
//! interval or a bar; text draws these in characters.

use crate::format::Figure;

/// Alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Aligned left, on one line.
    Text,
    /// Aligned left, broken at this many characters.
    Wrapped(usize),
    /// Aligned right, on one line.
    Number,
    /// Drawn on the column's axis, this many characters wide in text.
    Drawn(usize),
}

/// Axis of a column with drawn cells; positions are 0 at its left end and 1 at its right.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// Positions and labels, from left to right, with room for the labels.
    pub ticks: Vec<(f64, String)>,
    /// Position of no effect, with a line through all rows.
    pub line: Option<f64>,
}

/// Drawing of a cell on its column's axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawing {
    /// An estimate within its interval; an end beyond the axis is open.
    Interval {
        /// Lower end; `None` if it is beyond the axis.
        low: Option<f64>,
        at: f64,
        /// Upper end; `None` if it is beyond the axis.
        high: Option<f64>,
    },
    /// A bar between two positions.
    Bar { from: f64, to: f64, kind: BarKind },
}

/// Meaning of a bar in a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarKind {
    Total,
    /// An addition to the whole.
    More,
    /// A reduction of the whole.
    Less,
}

#[derive(Debug, Clone)]
pub struct Column {
    /// Lines of the title, the last one next to the ruler.
    pub title: String,
    pub alignment: Alignment,
    /// The axis, if its cells are drawn.
    pub axis: Option<Axis>,
}

impl Column {
    /// A column of names and other words.
    pub fn text(title: impl Into<String>) -> Column {
        Column { title: title.into(), alignment: Alignment::Text, axis: None }
    }

    /// A column of sentences or paths.
    pub fn wrapped(title: impl Into<String>, width: usize) -> Column {
        Column { title: title.into(), alignment: Alignment::Wrapped(width), axis: None }
    }

    pub fn number(title: impl Into<String>) -> Column {
        Column { title: title.into(), alignment: Alignment::Number, axis: None }
    }

    /// A column of drawings on an axis, this many characters wide in text.
    pub fn drawn(title: impl Into<String>, width: usize, axis: Axis) -> Column {
        Column { title: title.into(), alignment: Alignment::Drawn(width), axis: Some(axis) }
    }
}

/// Meaning of a cell's colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    /// The value is as it should be.
    Good,
    /// The value is not as it should be.
    Bad,
    Open,
}

#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub text: String,
    /// Length of the bar after it, 0 to 1.
    pub share: Option<f64>,
    pub tone: Tone,
    /// Drawing on the column's axis.
    pub drawing: Option<Drawing>,
}

impl Cell {
    /// A drawing; `None` draws only the line of the axis.
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

/// Makes the cells of a row, each from a word, a figure, or a [`Cell`] with more than its text.
#[macro_export]
macro_rules! cells {
    ($($shown:expr),* $(,)?) => { vec![$($crate::table::Cell::from($shown)),*] };
}

/// Makes a table with a row for each thing. A column has its kind, its title, and the cell that it
/// shows of a thing; a block before the columns may compute parts of several cells. Without things
/// the table has one row.
///
/// `table!(file in files; { let rate = ..; } [text "File" => &file.name, numbers "MB/s" => rate])`
#[macro_export]
macro_rules! table {
    (@column $table:ident wrapped($width:expr) $title:expr) => { $table.wrapped($title, $width) };
    (@column $table:ident $kind:ident $title:expr) => { $table.$kind([$title]) };
    ([$($columns:tt)*]) => { $crate::table!(() in [()]; {} [$($columns)*]) };
    ($thing:pat in $things:expr; [$($columns:tt)*]) => {
        $crate::table!($thing in $things; {} [$($columns)*])
    };
    ($thing:pat in $things:expr; { $($before:tt)* } [
        $($kind:ident $(($width:expr))? $title:literal => $cell:expr),+ $(,)?
    ]) => {{
        let mut table = $crate::table::Table::default();
        $(table = $crate::table!(@column table $kind $(($width))? $title);)+
        for $thing in $things {
            $($before)*
            table.row($crate::cells![$($cell),+]);
        }
        table
    }};
}

/// Kind of a row, which decides on its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Plain,
    /// A row that does not count, such as an idle event.
    Quiet,
    /// The sum of the rows.
    Total,
}

/// A row with a cell for each column.
#[derive(Debug, Clone)]
pub struct Row {
    pub kind: RowKind,
    /// Cells in the order of the columns.
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, Default)]
pub struct Table {
    /// A line above the header, if the section has several tables.
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

    /// Adds a column of sentences or paths.
    #[must_use]
    pub fn wrapped(self, title: &str, width: usize) -> Table {
        self.column(Column::wrapped(title, width))
    }

    #[must_use]
    pub fn numbers<const N: usize>(self, titles: [&str; N]) -> Table {
        titles.into_iter().map(Column::number).fold(self, Table::column)
    }

    /// Adds a line above the header.
    pub fn with_caption(mut self, caption: impl Into<String>) -> Table {
        self.caption = Some(caption.into());
        self
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.push(RowKind::Plain, cells);
    }

    /// Adds a row of this kind.
    pub fn push(&mut self, kind: RowKind, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(Row { kind, cells });
    }
}

/// Names with their values, one per line.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// A line above them, if the section has several groups.
    pub caption: Option<String>,
    pub rows: Vec<(String, Cell)>,
}

impl Facts {
    /// Adds a fact; an unknown one has an empty value and is left out.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<Cell>) {
        let value = value.into();
        if !value.text.is_empty() {
            self.rows.push((name.into(), value));
        }
    }
}
