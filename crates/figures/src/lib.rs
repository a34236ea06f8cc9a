//! Figures as they are printed: what a text says, in which unit, and which values print so.
//!
//! ```text
//! numeral   digits, groups of thousands, decimals, exponent ──> value, place of the last digit
//! unit      names of units ──> powers of bytes and seconds, each size that a name may mean
//! printed   a cell of a report: its column has a unit, and a missing figure has a reason
//! claimed   a figure of prose: words before it (`about`), fractions in words, ambiguous units
//! relation  one side computed from figures, and the distance from the other
//! bound     what no device, link or processor does
//! ```
//!
//! A figure is the interval of values with its text, and two figures contradict each other only if
//! their intervals do not meet. A cell and a claim share numerals and units, and no more. A column
//! fixes the unit of a cell, and a whole count is exact. A claim may mean MB either way, and its
//! zeros are rounding.
//!
//! The crate knows no kind of report and no claim file.

pub mod bound;
pub mod claimed;
pub mod numeral;
pub mod printed;
pub mod relation;
pub mod unit;

pub use printed::{
    Absence, CellReading, FigureUnit, Quantity, is_figure, is_number, is_of_bytes, read, unit_of,
};
