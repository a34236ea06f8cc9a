//! The columns of a table.

use crate::{COLUMN_COUNT_MAX, ColumnType, DateText, NumberForm, Value};
use serde::{Deserialize, Serialize};

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the column; letter case does not distinguish two columns.
    pub name: String,
    /// Type of the column's values.
    pub column_type: ColumnType,
    /// True if a row may leave it NULL.
    pub nullable: bool,
    /// Form in which its numbers are exported.
    #[serde(default, skip_serializing_if = "NumberForm::is_shortest")]
    pub written: NumberForm,
    /// Form in which its dates are exported.
    #[serde(default, skip_serializing_if = "DateText::is_default")]
    pub dates: DateText,
}

impl Column {
    /// Writes a value of the column in its form.
    pub fn text(&self, value: &Value) -> String {
        match value {
            Value::Number(number) => self.written.text(number),
            Value::Date(date) if !self.dates.is_default() => self.dates.text(date),
            other => other.to_string(),
        }
    }

    /// Creates a column that may be NULL.
    pub fn nullable(name: impl Into<String>, column_type: ColumnType) -> Self {
        let (written, dates) = (NumberForm::SHORTEST, DateText::default());
        Column { name: name.into(), column_type, nullable: true, written, dates }
    }

    /// Creates a column that every row must fill.
    pub fn required(name: impl Into<String>, column_type: ColumnType) -> Self {
        Column { nullable: false, ..Column::nullable(name, column_type) }
    }
}

/// Columns of a table, in the order in which rows store them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Columns")]
pub struct Schema {
    /// 1 to 255 columns with different names.
    pub columns: Vec<Column>,
}

/// Columns read from a file, not checked yet.
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

/// Columns that make no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A table has at least one column.
    #[error("a table needs at least one column")]
    NoColumns,
    /// The column count of a row is one byte.
    #[error("a table has at most 255 columns, not {found}")]
    TooManyColumns {
        /// Number of columns that were given.
        found: usize,
    },
    /// A column has no name, so that no statement could refer to it.
    #[error("column {position} has no name")]
    EmptyName {
        /// Position of the column, the first being 1.
        position: usize,
    },
    /// Two columns have the same name, letter case ignored.
    #[error("two columns are named {name:?}; letter case does not distinguish them")]
    DuplicateName {
        /// Name that both columns have.
        name: String,
    },
}

impl Schema {
    /// Creates a table's columns. Fails on no columns, more than 255, an empty name
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

    /// Returns the number of columns, 1 to 255.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the index of a column by name, in any letter case.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Returns a column by name, in any letter case.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Lists the names for a message: `SALES_DATE, STORE_ID, "price, EUR"`.
    pub fn names(&self) -> String {
        listed_names(self.columns.iter().map(|column| column.name.as_str()))
    }
}

/// Lists names of columns for a message; those that a user must type in double quotes are quoted.
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
