//! One type for each unit, so that different units cannot be added by mistake.
//!
//! Sizes parse as a database administrator writes them (`64K`, `5T`, binary multiples) and print as
//! one reads them (`1.24 GB/s`). Counts parse with decimal multiples (`10M` rows is ten million).
//! This crate depends on serde alone and does no I/O.

#![warn(missing_docs)]

mod count;
mod counter;
mod domain;
mod hex;
mod median;
mod nearest;
mod parse;
mod path;
mod place;
mod read_line;
mod size;
mod split_mix;
mod takes_effect;
mod time;
mod value_range;
mod visible;

pub use count::{RowCount, range_text, total_of};
pub use counter::{Counter, Latest};
pub use domain::Domain;
pub use hex::hex;
pub use median::median;
pub use nearest::nearest;
pub use parse::{ParseUnitError, parse_count, parse_duration, parse_size};
pub use path::{path_of_text, path_text};
pub use place::{BlockAddress, BlockCount, BlockNumber, BlockSize, FileId, Lsn, RowId};
pub use read_line::ReadLine;
pub use size::{Bytes, Rate};
pub use split_mix::{SplitMix, mix};
pub use takes_effect::TakesEffect;
pub use time::Nanos;
pub use value_range::ValueRange;
pub use visible::{COLUMN_MOST, changes_direction, cut, visible, visible_lines};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
