//! A value taken out of its row: for people, and as the model with
//! which tests compare encoded bytes.

use crate::{ColumnType, DateError, DateTime, Number, NumberError};
use std::fmt;

/// The value of a column. Values of one column are ordered as its encoded bytes are, NULL last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A NUMBER, in its encoded form.
    Number(Number),
    /// A DATE, by its fields.
    Date(DateTime),
    /// A text, never empty, because empty text is NULL.
    Text(String),
    /// No value; sorts after all others.
    Null,
}

/// Bytes that are no value of their column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The bytes are no encoded NUMBER.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// The bytes are no encoded DATE.
    #[error(transparent)]
    Date(#[from] DateError),
    /// The bytes are not UTF-8 text.
    #[error("bytes [{}] are not UTF-8 text", hex(found))]
    Text {
        /// The bytes, cut at 24.
        found: Vec<u8>,
    },
}

impl Value {
    /// Decodes the value of a column; `None` is NULL. It does not check
    /// the declared precision and length.
    ///
    /// Fails where the bytes are not an encoding of the column's type.
    pub fn from_encoded(column_type: &ColumnType, bytes: Option<&[u8]>) -> Result<Value, ValueError> {
        let Some(bytes) = bytes else {
            return Ok(Value::Null);
        };
        match column_type {
            ColumnType::Number { .. } => Ok(Value::Number(Number::from_encoded(bytes)?)),
            ColumnType::Date => Ok(Value::Date(DateTime::decode(bytes)?)),
            ColumnType::Text { .. } => match std::str::from_utf8(bytes) {
                Ok("") => Ok(Value::Null),
                Ok(text) => Ok(Value::Text(text.to_owned())),
                Err(_) => Err(ValueError::Text { found: bytes[..bytes.len().min(24)].to_vec() }),
            },
        }
    }

    /// True if the value is NULL.
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }
}

/// Prints the number, date or text; NULL as `NULL`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Date(date) => date.fmt(f),
            Value::Text(text) => f.pad(text),
            Value::Null => f.pad("NULL"),
        }
    }
}

/// Formats bytes as `C1 02`, for messages.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_ordered_with_null_last() {
        let number = |text: &str| Value::Number(Number::parse(text).unwrap());
        let mut values = [Value::Null, number("10"), number("-3"), number("9.99"), number("0")];
        values.sort();
        let shown: Vec<String> = values.iter().map(Value::to_string).collect();
        assert_eq!(shown, ["-3", "0", "9.99", "10", "NULL"]);

        let mut values = [Value::Null, Value::Text("b".into()), Value::Text("Z".into())];
        values.sort();
        assert_eq!(values, [Value::Text("Z".into()), Value::Text("b".into()), Value::Null]);
    }

    #[test]
    fn bytes_become_values_of_their_column() {
        let text = ColumnType::Text { max_bytes: 9 };
        assert_eq!(Value::from_encoded(&text, None), Ok(Value::Null));
        assert_eq!(Value::from_encoded(&text, Some(b"")), Ok(Value::Null));
        assert_eq!(Value::from_encoded(&text, Some("é".as_bytes())), Ok(Value::Text("é".into())));
        let number = Value::from_encoded(&ColumnType::NUMBER, Some(&[0xC1, 13, 51])).unwrap();
        assert_eq!(number.to_string(), "12.5");
        let date = DateTime::date(1996, 3, 31).unwrap();
        assert_eq!(Value::from_encoded(&ColumnType::Date, Some(&date.encode())), Ok(Value::Date(date)));
        assert!(!number.is_null());
    }

    #[test]
    fn bytes_of_another_type_say_so() {
        let check = |column_type: ColumnType, bytes: &[u8], expect: &str| {
            let error = Value::from_encoded(&column_type, Some(bytes)).unwrap_err();
            assert_eq!(error.to_string(), expect);
        };
        check(ColumnType::Date, &[0x80], "bytes [80] are not an encoded DATE");
        check(
            ColumnType::NUMBER,
            &[0xC1],
            "bytes [C1] are not an encoded NUMBER: a number has 1 to 20 base-100 digits",
        );
        check(ColumnType::Text { max_bytes: 9 }, &[0xFF, 0xFE], "bytes [FF FE] are not UTF-8 text");
    }
}
