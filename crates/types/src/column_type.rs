//! The type of a column.

use crate::number::SIGNIFICANT_DIGITS_MAX;
use crate::{NumberShape, TEXT_BYTES_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Range of scales that a NUMBER may declare.
const SCALE_MIN: i8 = -84;
const SCALE_MAX: i8 = 127;

/// `text` without a length, as in `id:int, name:text`.
const TEXT_BYTES_DEFAULT: u32 = 4000;

/// Type of a column's values, written and read as a database administrator writes
/// it: `NUMBER`, `NUMBER(38,2)`, `DATE`, `VARCHAR2(60)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ColumnType {
    /// A decimal number of up to 38 significant digits.
    Number {
        /// Digits that the column holds, 1 to 38; `None` allows any number up to 38.
        precision: Option<u8>,
        /// Digits right of the point, -84 to 127. `None` means 0 with a precision
        /// and any scale without one.
        scale: Option<i8>,
    },
    /// A day and a time of day, to the second.
    Date,
    /// UTF-8 text. Empty text is NULL, as in Oracle.
    Text {
        /// Longest value in bytes (not characters), 1 to 32,767.
        max_bytes: u32,
    },
}

impl ColumnType {
    /// A NUMBER that holds any number.
    pub const NUMBER: ColumnType = ColumnType::Number { precision: None, scale: None };

    /// True if a number of this shape fits the column without rounding. False for a column
    /// that is not a NUMBER.
    pub fn admits_number(&self, shape: NumberShape) -> bool {
        let ColumnType::Number { precision, scale } = *self else {
            return false;
        };
        if shape.is_zero() {
            return true;
        }
        let scale = match (precision, scale) {
            (None, None) => return true,
            (_, Some(scale)) => i16::from(scale),
            (Some(_), None) => 0,
        };
        let precision = precision.map_or(SIGNIFICANT_DIGITS_MAX as i16, i16::from);
        shape.fraction_digits <= scale && shape.integer_digits <= precision - scale
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            ColumnType::Number { precision: None, scale: None } => "NUMBER".to_owned(),
            ColumnType::Number { precision: Some(precision), scale: None } => format!("NUMBER({precision})"),
            ColumnType::Number { precision: Some(precision), scale: Some(scale) } => {
                format!("NUMBER({precision},{scale})")
            }
            ColumnType::Number { precision: None, scale: Some(scale) } => format!("NUMBER(*,{scale})"),
            ColumnType::Date => "DATE".to_owned(),
            ColumnType::Text { max_bytes } => format!("VARCHAR2({max_bytes})"),
        };
        f.pad(&text)
    }
}

/// A text that names no column type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnTypeError {
    /// The word is not the name of a type.
    #[error("{found:?} is no column type; write NUMBER, NUMBER(38,2), INT, DATE, VARCHAR2(60) or TEXT")]
    Unknown {
        /// Text that named the type.
        found: String,
    },
    /// The part in parentheses does not fit the type.
    #[error("{found:?}: {expected}")]
    BadArgument {
        /// Text that named the type.
        found: String,
        /// Rule that the text breaks.
        expected: &'static str,
    },
}

impl FromStr for ColumnType {
    type Err = ColumnTypeError;

    fn from_str(text: &str) -> Result<Self, ColumnTypeError> {
        let bad = |expected| ColumnTypeError::BadArgument { found: text.to_owned(), expected };
        let trimmed = text.trim();
        let (name, arguments) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((name, rest)) => {
                let inside = rest.strip_suffix(')').ok_or_else(|| bad("the parenthesis is not closed"))?;
                (name.trim_end(), Some(inside))
            }
        };
        match (name.to_ascii_uppercase().as_str(), arguments) {
            ("NUMBER" | "NUMERIC" | "DECIMAL", None) => Ok(ColumnType::NUMBER),
            ("NUMBER" | "NUMERIC" | "DECIMAL", Some(arguments)) => number_of(arguments).map_err(bad),
            ("INT" | "INTEGER", None) => Ok(ColumnType::Number { precision: Some(38), scale: None }),
            ("DATE", None) => Ok(ColumnType::Date),
            ("TEXT", None) => Ok(ColumnType::Text { max_bytes: TEXT_BYTES_DEFAULT }),
            ("VARCHAR2" | "VARCHAR" | "TEXT", Some(length)) => text_of(length).map_err(bad),
            ("VARCHAR2" | "VARCHAR", None) => {
                Err(bad("VARCHAR2 needs its longest length in bytes, as in VARCHAR2(60)"))
            }
            ("INT" | "INTEGER" | "DATE", Some(_)) => Err(bad("this type takes nothing in parentheses")),
            _ => Err(ColumnTypeError::Unknown { found: text.to_owned() }),
        }
    }
}

/// Parses `38`, `38,2` or `*,2`.
fn number_of(arguments: &str) -> Result<ColumnType, &'static str> {
    const PRECISION: &str = "the precision of a NUMBER is a whole number from 1 to 38";
    const SCALE: &str = "the scale of a NUMBER is a whole number from -84 to 127";
    let (precision, scale) = match arguments.split_once(',') {
        None => (arguments.trim(), None),
        Some((precision, scale)) => (precision.trim(), Some(scale.trim())),
    };
    let scale = match scale {
        None => None,
        Some(scale) => {
            let scale = scale.parse().map_err(|_| SCALE)?;
            if !(SCALE_MIN..=SCALE_MAX).contains(&scale) {
                return Err(SCALE);
            }
            Some(scale)
        }
    };
    if precision == "*" && scale.is_some() {
        return Ok(ColumnType::Number { precision: None, scale });
    }
    let precision = precision.parse().map_err(|_| PRECISION)?;
    if !(1..=38).contains(&precision) {
        return Err(PRECISION);
    }
    Ok(ColumnType::Number { precision: Some(precision), scale })
}

fn text_of(length: &str) -> Result<ColumnType, &'static str> {
    const LENGTH: &str = "the length of a VARCHAR2 is a whole number of bytes from 1 to 32767";
    let max_bytes = length.trim().parse().map_err(|_| LENGTH)?;
    if !(1..=TEXT_BYTES_MAX).contains(&max_bytes) {
        return Err(LENGTH);
    }
    Ok(ColumnType::Text { max_bytes })
}

impl TryFrom<String> for ColumnType {
    type Error = ColumnTypeError;

    fn try_from(text: String) -> Result<Self, ColumnTypeError> {
        text.parse()
    }
}

impl From<ColumnType> for String {
    fn from(column_type: ColumnType) -> String {
        column_type.to_string()
    }
}

#[cfg(test)]
mod tests;
