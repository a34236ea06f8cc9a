//! Predicates on encoded values: a row is tested without decoding it.
//!
//! ```text
//! predicate  = comparison { AND comparison }
//! comparison = column ( = | <> | != | < | <= | > | >= ) literal | column IS [NOT] NULL
//! literal    = number | 'text'        a quote within a text is doubled
//! ```
//! Encoded values of one type compare as their bytes do. So the literal is encoded once, and a test
//! is one comparison of bytes. Columns are walked from the first to the last that the predicate
//! needs; those behind it are never reached. A comparison with NULL does not hold.
//!
//! Limits: no OR, no expressions, no comparison of two columns. Texts compare by their bytes.

use crate::EngineError;
use crate::view::position;
use plumb_types::row::RowError;
use plumb_types::{ColumnType, ColumnWalk, DateTime, Number, Schema};
use std::fmt;

/// A condition on a row: all of its tests hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predicate {
    text: String,
    /// In the order of their columns.
    tests: Vec<Test>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    column: usize,
    condition: Condition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Compares(Comparison, Box<[u8]>),
    IsNull,
    IsNotNull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Differs,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// The longer of two spellings with a common start comes first.
    const ALL: [(&'static str, Comparison); 7] = [
        ("<>", Comparison::Differs),
        ("!=", Comparison::Differs),
        ("<=", Comparison::AtMost),
        (">=", Comparison::AtLeast),
        ("=", Comparison::Equal),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];

    #[inline]
    fn holds(self, value: &[u8], literal: &[u8]) -> bool {
        match self {
            Comparison::Equal => value == literal,
            Comparison::Differs => value != literal,
            Comparison::Less => value < literal,
            Comparison::AtMost => value <= literal,
            Comparison::Greater => value > literal,
            Comparison::AtLeast => value >= literal,
        }
    }
}

impl Predicate {
    /// Parses a predicate on a table with these columns.
    ///
    /// # Errors
    /// [`EngineError::Predicate`] with the place and the expected form; or a column that the table
    /// lacks.
    pub fn parse(text: &str, schema: &Schema) -> Result<Predicate, EngineError> {
        let mut parser = Parser { text, rest: text };
        let mut tests = vec![parser.test(schema)?];
        while parser.word("AND") {
            tests.push(parser.test(schema)?);
        }
        if !parser.peek().is_empty() {
            return Err(parser.refuse(format!("expected AND or the end, found {:?}", parser.peek())));
        }
        tests.sort_by_key(|test| test.column);
        Ok(Predicate { text: text.trim().to_string(), tests })
    }

    /// True if the row satisfies every test.
    ///
    /// # Errors
    /// If the row lacks a column, or its bytes end before it.
    #[inline]
    pub fn holds(&self, row: &[u8]) -> Result<bool, RowError> {
        let mut walk = ColumnWalk::new(row)?;
        for test in &self.tests {
            let holds = match (walk.value(test.column)?, &test.condition) {
                (Some(value), Condition::Compares(comparison, literal)) => comparison.holds(value, literal),
                (value, Condition::IsNull) => value.is_none(),
                (value, Condition::IsNotNull) => value.is_some(),
                (None, Condition::Compares(..)) => false,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

struct Parser<'p> {
    text: &'p str,
    rest: &'p str,
}

impl<'p> Parser<'p> {
    fn refuse(&self, why: String) -> EngineError {
        EngineError::Predicate { text: self.text.trim().to_string(), why }
    }

    fn peek(&self) -> &'p str {
        self.rest.trim_start()
    }

    /// Takes a keyword, in any case.
    fn word(&mut self, word: &str) -> bool {
        let rest = self.peek();
        let found = rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && !rest[word.len()..].starts_with(is_of_name);
        if found {
            self.rest = &rest[word.len()..];
        }
        found
    }

    fn name(&mut self) -> Result<&'p str, EngineError> {
        let rest = self.peek();
        let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        if end == 0 {
            let found = if rest.is_empty() { "the end".to_string() } else { format!("{rest:?}") };
            return Err(self.refuse(format!("expected a column, found {found}")));
        }
        self.rest = &rest[end..];
        Ok(&rest[..end])
    }

    fn test(&mut self, schema: &Schema) -> Result<Test, EngineError> {
        let column = position(schema, self.name()?)?;
        if self.word("IS") {
            let condition = if self.word("NOT") { Condition::IsNotNull } else { Condition::IsNull };
            if !self.word("NULL") {
                return Err(self.refuse(format!("expected NULL after IS, found {:?}", self.peek())));
            }
            return Ok(Test { column, condition });
        }
        let rest = self.peek();
        let found = Comparison::ALL.iter().find(|(sign, _)| rest.starts_with(sign));
        let Some((sign, comparison)) = found else {
            return Err(self.refuse(format!("expected =, <>, <, <=, >, >= or IS, found {rest:?}")));
        };
        self.rest = &rest[sign.len()..];
        let literal = self.literal(schema, column)?;
        Ok(Test { column, condition: Condition::Compares(*comparison, literal.into()) })
    }

    /// Takes a literal and encodes it as a value of the column.
    fn literal(&mut self, schema: &Schema, column: usize) -> Result<Vec<u8>, EngineError> {
        let column = &schema.columns[column];
        let quoted = self.peek().starts_with('\'');
        let text = if quoted { self.quoted()? } else { self.bare().to_string() };
        let wrong = |expected: &str| {
            let found = if quoted { format!("the text '{text}'") } else { format!("{text:?}") };
            self.refuse(format!(
                "column {} is {}, and {found} is no value of it; write {expected}",
                column.name, column.column_type
            ))
        };
        match (column.column_type, quoted) {
            (ColumnType::Number { .. }, false) => {
                let number = Number::parse(&text).map_err(|_| wrong("a number, as in 12.5"))?;
                Ok(number.as_bytes().to_vec())
            }
            (ColumnType::Number { .. }, true) => Err(wrong("a number without quotes, as in 12.5")),
            (ColumnType::Date, true) => {
                let date = DateTime::parse(&text).map_err(|_| wrong("a date, as in '1996-03-31'"))?;
                Ok(date.encode().to_vec())
            }
            (ColumnType::Date, false) => Err(wrong("a date in quotes, as in '1996-03-31'")),
            (ColumnType::Text { .. }, true) if text.is_empty() => Err(wrong("IS NULL")),
            (ColumnType::Text { .. }, true) => Ok(text.into_bytes()),
            (ColumnType::Text { .. }, false) => Err(wrong("a text in quotes, as in 'abc'")),
        }
    }

    /// Takes a literal without quotes, up to a space.
    fn bare(&mut self) -> &'p str {
        let rest = self.peek();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    /// Takes a text in quotes; two quotes are one of the text.
    fn quoted(&mut self) -> Result<String, EngineError> {
        let mut rest = &self.peek()[1..];
        let mut text = String::new();
        loop {
            let Some(end) = rest.find('\'') else {
                return Err(self.refuse("a text lacks its closing quote".to_string()));
            };
            text.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('\'') {
                Some(behind) => {
                    text.push('\'');
                    rest = behind;
                }
                None => break,
            }
        }
        self.rest = rest;
        Ok(text)
    }
}

/// True for the letters of a column's name.
fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_types::{Column, RowBatch, Value};

    fn schema() -> Schema {
        Schema::new(vec![
            Column::nullable("ID", ColumnType::NUMBER),
            Column::nullable("NAME", ColumnType::Text { max_bytes: 20 }),
            Column::nullable("DAY", ColumnType::Date),
        ])
        .expect("three columns")
    }

    fn row(id: Option<&str>, name: Option<&str>, day: Option<&str>) -> RowBatch {
        let mut batch = RowBatch::new();
        batch.begin_row(3);
        let number = |text| Value::Number(Number::parse(text).expect("a number"));
        batch.push_value(&id.map_or(Value::Null, number));
        batch.push_value(&name.map_or(Value::Null, |name| Value::Text(name.to_string())));
        batch.push_value(&day.map_or(Value::Null, |day| Value::Date(DateTime::parse(day).expect("a day"))));
        batch.end_row();
        batch
    }

    #[test]
    fn encoded_values_compare_as_values_do() {
        let check = |text: &str, rows: &[(RowBatch, bool)]| {
            let predicate = Predicate::parse(text, &schema()).expect(text);
            for (row, expect) in rows {
                assert_eq!(predicate.holds(row.row(0)), Ok(*expect), "{text}");
            }
        };
        let of_id = |id: &str| row(Some(id), Some("x"), None);
        check("id < 100", &[(of_id("99.99"), true), (of_id("100"), false), (of_id("-1000"), true)]);
        check("ID >= -3", &[(of_id("-3"), true), (of_id("-3.01"), false), (of_id("0"), true)]);
        check("id <> 5", &[(of_id("5"), false), (of_id("6"), true), (row(None, None, None), false)]);
        let of_name = |name: &str| row(Some("1"), Some(name), None);
        check("name = 'O''Hara'", &[(of_name("O'Hara"), true), (of_name("OHara"), false)]);
        check("name > 'ab'", &[(of_name("abc"), true), (of_name("a"), false)]);
        let of_day = |day: &str| row(None, None, Some(day));
        check("day <= '1996-03-31'", &[(of_day("1996-03-31"), true), (of_day("1996-04-01"), false)]);
        check("name is null AND day IS NOT NULL", &[(of_day("1996-03-31"), true), (of_id("1"), false)]);
        check("day > '1996-01-01' and id = 7", &[(row(Some("7"), None, Some("1996-01-02")), true)]);
    }

    #[test]
    fn a_wrong_predicate_names_its_place_and_the_form() {
        let check = |text: &str, expect: &str| {
            let error = Predicate::parse(text, &schema()).expect_err(text).to_string();
            assert_eq!(error, expect);
        };
        check("", "predicate \"\": expected a column, found the end");
        check("id ~ 3", "predicate \"id ~ 3\": expected =, <>, <, <=, >, >= or IS, found \"~ 3\"");
        check(
            "id < 'abc'",
            "predicate \"id < 'abc'\": column ID is NUMBER, and the text 'abc' is no value of it; write a number without \
             quotes, as in 12.5",
        );
        check(
            "day = 1996",
            "predicate \"day = 1996\": column DAY is DATE, and \"1996\" is no value of it; write a date in quotes, as in \
             '1996-03-31'",
        );
        check(
            "id < 3 or id > 5",
            "predicate \"id < 3 or id > 5\": expected AND or the end, found \"or id > 5\"",
        );
        check("name = 'x", "predicate \"name = 'x\": a text lacks its closing quote");
        check("x = 1", "there is no column x in this database; it has ID, NAME, DAY");
    }
}
