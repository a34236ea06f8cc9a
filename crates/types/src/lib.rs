//! Columns, the bytes of their values, and rows.
//!
//! A value is encoded so that comparing bytes compares values: NUMBER by its exponent and base-100
//! digits, DATE from century to second, text as UTF-8. A sort, an index and a merge therefore need
//! `memcmp` and no types. A row is a header and its columns, each after its length. This crate does
//! no I/O; a source of rows implements [`RowSource`].

#![warn(missing_docs)]

mod column_type;
mod number_form;
mod number_sum;
mod schema;

pub mod date;
mod date_text;
pub mod number;
pub mod row;

mod batch;
mod source;
mod value;

pub use batch::RowBatch;
pub use column_type::{ColumnType, ColumnTypeError};
pub use date::{DATE_BYTES, DateError, DateTime, Weekday};
pub use date_text::DateText;
pub use number::{
    DigitCode, INTEGER_WORDS, Number, NumberError, NumberShape, decode_number, encode_number, first_bytes,
    number_to_string, parse_number, try_encode_number,
};
pub use number_form::NumberForm;
pub use number_sum::NumberSum;
pub use row::{ColumnWalk, Columns, RowError, column_at, columns, leading_word};
pub use schema::{Column, Schema, SchemaError, listed_names};
pub use source::{RecordSource, RowSource, SourceError};
pub use value::{Value, ValueError};

/// Most columns of a row: its column count is one byte.
pub const COLUMN_COUNT_MAX: usize = 255;

/// Longest text column in bytes.
pub const TEXT_BYTES_MAX: u32 = 32_767;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
