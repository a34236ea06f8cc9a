//! Rules of `--drop`: a field, `=` or `like`, and a text.
//!
//! ```text
//! sql like "SELECT pg_catalog%"     % is any text, _ one letter, \ takes the next letter as it is
//! type=425                          kind of a span, as a number or a word
//! attr.db.system=redis              attribute of a span, or column of a CSV file
//! ```
//! Letters are compared as they are, as `LIKE` of SQL does. A span is chosen if one rule holds.

use crate::PruneError;
use plumb_units::nearest;

/// Fields of a span, next to its attributes.
const FIELDS: [&str; 3] = ["sql", "name", "type"];
/// Begin of the name of an attribute.
const ATTRIBUTE: &str = "attr.";

/// A condition under which a span and all below it are removed.
#[derive(Debug, Clone)]
pub struct DropRule {
    /// The rule as the user typed it.
    pub text: String,
    /// `sql`, `name`, `type`, or the attribute behind `attr.`.
    field: String,
    value: String,
    is_pattern: bool,
}

/// The values of a span that rules are about; an absent one satisfies no rule.
#[derive(Debug, Default)]
pub(crate) struct SpanFields {
    pub sql: Option<String>,
    pub name: Option<String>,
    /// Spellings of the kind: `client` and `3`.
    pub kinds: Vec<String>,
    pub attributes: Vec<(String, String)>,
}

impl DropRule {
    /// Parses `FIELD=TEXT` or `FIELD like TEXT`; quotes around the text are no part of it.
    ///
    /// # Errors
    /// If there is no operator, an unknown field, or no text.
    pub fn parse(text: &str) -> Result<DropRule, PruneError> {
        let refused = |why: String| PruneError::Rule { text: text.to_string(), why };
        let end = text.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(text.len());
        let (field, rest) = (text[..end].trim(), text[end..].trim_start());
        let like = rest.get(..4).filter(|word| word.eq_ignore_ascii_case("like"));
        let value = match rest.strip_prefix('=') {
            Some(value) => value,
            None if like.is_some() => &rest[4..],
            None => return Err(refused("expected FIELD=TEXT or FIELD like \"TEXT%\"".to_string())),
        };
        if !FIELDS.contains(&field) && field.strip_prefix(ATTRIBUTE).is_none_or(str::is_empty) {
            let near = nearest(field, FIELDS.into_iter());
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(refused(format!(
                "{field:?} is no field, expected sql, name, type or attr.NAME{near}"
            )));
        }
        let value = value.trim();
        let inner = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
        let value = inner('"').or_else(|| inner('\'')).unwrap_or(value);
        if value.is_empty() {
            return Err(refused(format!("{field} has no text to compare with")));
        }
        let (field, value) = (field.to_string(), value.to_string());
        Ok(DropRule { text: text.to_string(), field, value, is_pattern: like.is_some() })
    }

    /// Returns the name of the attribute that the rule compares.
    pub(crate) fn attribute(&self) -> Option<&str> {
        self.field.strip_prefix(ATTRIBUTE)
    }

    pub(crate) fn holds(&self, of: &SpanFields) -> bool {
        let equals = |value: &String| match self.is_pattern {
            true => is_like(value, &self.value),
            false => *value == self.value || self.field == "type" && value.eq_ignore_ascii_case(&self.value),
        };
        match self.field.as_str() {
            "sql" => of.sql.iter().any(equals),
            "name" => of.name.iter().any(equals),
            "type" => of.kinds.iter().any(equals),
            _ => of
                .attributes
                .iter()
                .any(|(name, value)| Some(name.as_str()) == self.attribute() && equals(value)),
        }
    }
}

/// True if a text is as a pattern of SQL. After a mismatch only the last `%` takes one letter more,
/// so that the time is at most the product of both lengths.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut retry = None;
    loop {
        let (before, mut after) = (text.clone(), pattern.clone());
        let fits = match after.next() {
            Some('%') => {
                retry = Some((text.clone(), after.clone()));
                pattern = after;
                continue;
            }
            Some('_') => text.next().is_some(),
            Some('\\') => after.next().unwrap_or('\\').eq(&text.next().unwrap_or('\0')),
            Some(letter) => text.next() == Some(letter),
            None if before.as_str().is_empty() => return true,
            None => false,
        };
        if fits {
            pattern = after;
        } else if let Some((from, behind)) = &mut retry {
            if from.next().is_none() {
                return false;
            }
            (text, pattern) = (from.clone(), behind.clone());
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_sql() {
        let holds = [
            ("SELECT pg_catalog.x", "SELECT pg\\_catalog%"),
            ("a join pg_catalog.pg_class", "%pg_catalog.%"),
            ("", "%"),
            ("", ""),
            ("ab", "a_"),
            ("aä", "a_"),
            ("abcabd", "%ab%d"),
            ("100%", "100\\%"),
            ("mississippi", "%iss%ip%"),
        ];
        for (text, pattern) in holds {
            assert!(is_like(text, pattern), "{text:?} is like {pattern:?}");
        }
        let fails =
            [("select", "SELECT%"), ("ab", "a"), ("a", "a_"), ("", "_"), ("abc", "%b"), ("100", "100\\%")];
        for (text, pattern) in fails {
            assert!(!is_like(text, pattern), "{text:?} is not like {pattern:?}");
        }
        assert!(!is_like(&"a".repeat(20_000), &("%a".repeat(200) + "b")), "and it ends");
    }

    #[test]
    fn a_rule_is_a_field_an_operator_and_a_text() {
        let fields = SpanFields {
            sql: Some("SELECT 1 = 1".to_string()),
            name: Some("GET /".to_string()),
            kinds: vec!["client".to_string(), "3".to_string()],
            attributes: vec![("db.system".to_string(), "redis".to_string())],
        };
        let held = [
            "sql=SELECT 1 = 1",
            "sql = 'SELECT 1 = 1'",
            "sql LIKE \"SELECT%\"",
            "name=GET /",
            "type=3",
            "type=Client",
            "attr.db.system=redis",
            "attr.db.system like 'r%'",
        ];
        for text in held {
            assert!(DropRule::parse(text).expect("a rule").holds(&fields), "{text}");
        }
        for text in ["sql=select 1 = 1", "type=4", "attr.db.name=redis", "name like 'GET'"] {
            assert!(!DropRule::parse(text).expect("a rule").holds(&fields), "{text}");
        }
        assert!(!DropRule::parse("sql like '%'").expect("a rule").holds(&SpanFields::default()));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_reason() {
        for (text, why) in [
            ("425", "expected FIELD=TEXT"),
            ("", "expected FIELD=TEXT"),
            ("sql", "expected FIELD=TEXT"),
            ("sqk=1", "did you mean sql?"),
            ("attr.=1", "is no field"),
            ("type=", "type has no text"),
            ("sql like \"\"", "sql has no text"),
            ("sql ~ x", "expected FIELD=TEXT"),
        ] {
            let error = DropRule::parse(text).expect_err(text).to_string();
            assert!(error.contains(why) && error.starts_with(&format!("--drop {text}: ")), "{error}");
        }
    }
}
