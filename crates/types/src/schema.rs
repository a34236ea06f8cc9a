//! The columns of a table.

use crate::{COLUMN_COUNT_MAX, ColumnType, DateText, NumberForm, Value};
use serde::{Deserialize, Serialize};

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name; letter case does not distinguish two columns.
    pub name: String,
    /// What it holds.
    pub column_type: ColumnType,
    /// Whether a row may leave it NULL.
    pub nullable: bool,
    /// How its numbers are written for people.
    #[serde(default, skip_serializing_if = "NumberForm::is_shortest")]
    pub written: NumberForm,
    /// The way its dates are written for people.
    #[serde(default, skip_serializing_if = "DateText::is_default")]
    pub dates: DateText,
}

impl Column {
    /// A value of the column as it is written.
    #[must_use]
    pub fn text(&self, value: &Value) -> String {
        match value {
            Value::Number(number) => self.written.text(number),
            Value::Date(date) if !self.dates.is_default() => self.dates.text(date),
            other => other.to_string(),
        }
    }

    /// A column that may be NULL.
    pub fn nullable(name: impl Into<String>, column_type: ColumnType) -> Self {
        let (written, dates) = (NumberForm::SHORTEST, DateText::default());
        Column { name: name.into(), column_type, nullable: true, written, dates }
    }

    /// A column every row fills.
    pub fn required(name: impl Into<String>, column_type: ColumnType) -> Self {
        Column { nullable: false, ..Column::nullable(name, column_type) }
    }
}

/// The columns of a table in the order its rows store them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Columns")]
pub struct Schema {
    /// 1 to 255 columns with different names.
    pub columns: Vec<Column>,
}

/// Columns as a file has them, which make a table or do not.
#[derive(Deserialize)]
struct Columns {
    columns: Vec<Column>,
}

impl TryFrom<Columns> for Schema {
    type Error = SchemaError;

    fn try_from(Columns { columns }: Columns) -> Result<Schema, SchemaError> {
        Schema::new(columns)
    }
}

/// Why columns do not make a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A table has at least one column.
    #[error("a table needs at least one column")]
    NoColumns,
    /// The column count of a row is one byte.
    #[error("a table has at most 255 columns, not {found}")]
    TooManyColumns {
        /// Columns given.
        found: usize,
    },
    /// A column without a name could never be asked for.
    #[error("column {position} has no name")]
    EmptyName {
        /// Its place, the first being 1.
        position: usize,
    },
    /// Two columns answer to the same name.
    #[error("two columns are named {name:?}; letter case does not distinguish them")]
    DuplicateName {
        /// The name they share.
        name: String,
    },
}

impl Schema {
    /// A table of these columns; fails on none, more than 255, an empty name
    /// or a name used twice.
    pub fn new(columns: Vec<Column>) -> Result<Self, SchemaError> {
        if columns.is_empty() {
            return Err(SchemaError::NoColumns);
        }
        if columns.len() > COLUMN_COUNT_MAX {
            return Err(SchemaError::TooManyColumns { found: columns.len() });
        }
        for (index, column) in columns.iter().enumerate() {
            if column.name.is_empty() {
                return Err(SchemaError::EmptyName { position: index + 1 });
            }
            if columns[..index].iter().any(|earlier| earlier.name.eq_ignore_ascii_case(&column.name)) {
                return Err(SchemaError::DuplicateName { name: column.name.clone() });
            }
        }
        Ok(Schema { columns })
    }

    /// How many columns there are.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// The index of a column by name, in any letter case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// A column by name, in any letter case.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The names, for a message: `SALES_DATE, STORE_ID, "price, EUR"`.
    pub fn names(&self) -> String {
        listed_names(self.columns.iter().map(|column| column.name.as_str()))
    }
}

/// Names of columns for a message, those in double quotes that are typed so.
pub fn listed_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let last_word = |name: &str| name.rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase();
    let needs_quotes = |name: &str| {
        let names_a_direction =
            name.contains(char::is_whitespace) && ["asc", "desc"].contains(&&*last_word(name));
        name.contains([',', '=']) || name.starts_with('"') || name.trim() != name || names_a_direction
    };
    let shown = names.map(|name| match needs_quotes(name) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(names: &[&str]) -> Result<Schema, SchemaError> {
        Schema::new(names.iter().map(|name| Column::nullable(*name, ColumnType::Date)).collect())
    }

    #[test]
    fn columns_are_found_in_any_letter_case() {
        let schema = schema(&["SALES_DATE", "store_id"]).unwrap();
        assert_eq!(schema.position("STORE_ID"), Some(1));
        assert_eq!(schema.position("price"), None);
        assert_eq!(schema.column("sales_date").map(|column| column.name.as_str()), Some("SALES_DATE"));
        assert_eq!(schema.names(), "SALES_DATE, store_id");
        assert_eq!(schema.column_count(), 2);
    }

    #[test]
    fn names_that_are_typed_in_quotes_are_shown_so() {
        let odd = schema(&["price, EUR", "5\" pipe", "\"x", "Sort desc", "desc", " b", "a=b"]).unwrap();
        assert_eq!(odd.names(), r#""price, EUR", 5" pipe, """x", "Sort desc", desc, " b", "a=b""#);
    }

    #[test]
    fn columns_that_make_no_table_are_refused() {
        assert_eq!(schema(&[]), Err(SchemaError::NoColumns));
        assert_eq!(schema(&["a", ""]), Err(SchemaError::EmptyName { position: 2 }));
        assert_eq!(schema(&["a", "b", "A"]), Err(SchemaError::DuplicateName { name: "A".to_owned() }));
        let names: Vec<String> = (0..256).map(|index| index.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(schema(&names), Err(SchemaError::TooManyColumns { found: 256 }));
        assert!(schema(&names[..255]).is_ok());
    }

    #[test]
    fn serde_keeps_a_schema() {
        let schema = schema(&["a", "b"]).unwrap();
        let json = serde_json::to_string(&schema).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema);
        let none = serde_json::from_str::<Schema>(r#"{"columns":[]}"#).unwrap_err().to_string();
        assert!(none.contains("at least one column"), "{none}");
        let twice = json.replace("\"b\"", "\"A\"");
        let twice = serde_json::from_str::<Schema>(&twice).unwrap_err().to_string();
        assert!(twice.contains("two columns are named"), "{twice}");
    }
}
