//! A study before its check: a table of values, each with its origin.
//!
//! The text of a file and the options of a command line both become a draft, so that one parser
//! checks both. An error names the line or the option of the value.
//!
//! Spans hold the origins. A span within the text means its bytes; a span after the text means an
//! option, by its number.

use crate::vocabulary::Refusal;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// An error in a study file: its place, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StudyFileError(String);

impl StudyFileError {
    pub(super) fn new(text: String) -> StudyFileError {
        StudyFileError(text)
    }
}

/// A study before its check.
#[derive(Debug)]
pub struct Draft<'t> {
    pub(super) whole: DeTable<'t>,
    pub(super) places: Places<'t>,
}

/// A claim given by an option, in the words of a study file.
#[derive(Debug, Clone, Copy)]
pub struct DraftClaim<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub factor: &'a str,
    /// Label of the reference's level.
    pub from: &'a str,
    /// Label of the level to compare with it.
    pub to: &'a str,
    pub expect: &'a str,
}

/// A value given by an option.
#[derive(Debug, Clone)]
pub enum DraftValue<'t> {
    /// A text, or a number in quotes.
    Text(String),
    Flag(bool),
    /// The text of a number.
    Number(&'t str),
    List(Vec<DraftValue<'t>>),
    Table(Vec<(String, DraftValue<'t>)>),
}

impl From<&str> for DraftValue<'_> {
    fn from(text: &str) -> Self {
        DraftValue::Text(text.to_string())
    }
}

#[derive(Debug)]
pub(super) struct Places<'t> {
    file: &'t str,
    text: &'t str,
    /// The options, in the order of their spans.
    options: Vec<String>,
}

impl Places<'_> {
    pub(super) fn origin(&self, span: &Range<usize>) -> String {
        match span.start.checked_sub(self.first()).and_then(|number| self.options.get(number)) {
            Some(option) => option.clone(),
            None => {
                let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                format!("{}:{line}", self.file)
            }
        }
    }

    pub(super) fn at(&self, span: Range<usize>, what: &str) -> StudyFileError {
        StudyFileError::new(format!("{}: {what}", self.origin(&span)))
    }

    pub(super) fn of(&self, refusal: Refusal) -> StudyFileError {
        self.at(refusal.place, &refusal.what)
    }

    /// Returns the start of the first option's span. Without a text it is 0, the library's span for
    /// values without one, so that errors about these name the first option.
    fn first(&self) -> usize {
        if self.file.is_empty() { 0 } else { self.text.len() + 1 }
    }

    /// Returns the span of an option.
    fn option(&mut self, origin: &str) -> Range<usize> {
        let known = self.options.iter().position(|known| known == origin);
        let number = known.unwrap_or_else(|| {
            self.options.push(origin.to_string());
            self.options.len() - 1
        });
        let place = self.first() + number;
        place..place
    }
}

impl<'t> Draft<'t> {
    /// Starts a draft without text; `origin` is named in errors about missing values.
    pub fn stated(origin: &str) -> Draft<'t> {
        let places = Places { file: "", text: "", options: vec![origin.to_string()] };
        Draft { whole: DeTable::new(), places }
    }

    /// Parses the text of a file, which errors name with a line.
    pub fn of_text(file: &'t str, text: &'t str) -> Result<Draft<'t>, StudyFileError> {
        let places = Places { file, text, options: Vec::new() };
        let whole = DeTable::parse(text).map_err(|error| places.of(error.into()))?;
        Ok(Draft { whole: whole.into_inner(), places })
    }

    /// Sets a value at the top.
    pub fn set(&mut self, origin: &str, key: &str, value: impl Into<DraftValue<'t>>) {
        let span = self.places.option(origin);
        let value = spanned(&span, value.into());
        self.whole.insert(Spanned::new(span, Cow::Owned(key.to_string())), value);
    }

    /// Sets a value in a table at the top; the first value makes the table.
    pub fn set_in(&mut self, origin: &str, table: &str, key: &str, value: impl Into<DraftValue<'t>>) {
        let span = self.places.option(origin);
        let value = spanned(&span, value.into());
        let key = Spanned::new(span.clone(), Cow::Owned(key.to_string()));
        if let Some(DeValue::Table(known)) = self.whole.get_mut(table).map(Spanned::get_mut) {
            known.insert(key, value);
            return;
        }
        let made = [(key, value)].into_iter().collect();
        let name = Spanned::new(span.clone(), Cow::Owned(table.to_string()));
        self.whole.insert(name, Spanned::new(span, DeValue::Table(made)));
    }

    /// Adds a table to a list at the top.
    pub fn push<'k>(
        &mut self,
        origin: &str,
        list: &str,
        row: impl IntoIterator<Item = (&'k str, DraftValue<'t>)>,
    ) {
        let span = self.places.option(origin);
        let row = row.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let row = spanned(&span, DraftValue::Table(row));
        if let Some(DeValue::Array(known)) = self.whole.get_mut(list).map(Spanned::get_mut) {
            known.push(row);
            return;
        }
        let made: DeArray<'t> = [row].into_iter().collect();
        let name = Spanned::new(span.clone(), Cow::Owned(list.to_string()));
        self.whole.insert(name, Spanned::new(span, DeValue::Array(made)));
    }

    pub fn push_claim(&mut self, origin: &str, claim: &DraftClaim<'_>) {
        let DraftClaim { name, text, factor, from, to, expect } = *claim;
        let row = [
            ("name", name),
            ("text", text),
            ("factor", factor),
            ("from", from),
            ("to", to),
            ("expect", expect),
        ];
        self.push(origin, "claim", row.map(|(key, value)| (key, DraftValue::from(value))));
    }

    /// True if any value is this text.
    pub fn has(&self, text: &str) -> bool {
        let mut found = false;
        let mut values: Vec<&DeValue<'_>> = self.whole.values().map(Spanned::get_ref).collect();
        while let Some(value) = values.pop() {
            match value {
                DeValue::String(known) => found |= known == text,
                DeValue::Array(list) => values.extend(list.iter().map(Spanned::get_ref)),
                DeValue::Table(table) => values.extend(table.values().map(Spanned::get_ref)),
                _ => {}
            }
        }
        found
    }

    /// True if any table has this key.
    pub fn has_key(&self, key: &str) -> bool {
        let mut values: Vec<(&str, &DeValue<'_>)> =
            self.whole.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref())).collect();
        while let Some((name, value)) = values.pop() {
            match value {
                _ if name == key => return true,
                DeValue::Array(list) => values.extend(list.iter().map(|value| ("", value.get_ref()))),
                DeValue::Table(table) => {
                    values.extend(table.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref())));
                }
                _ => {}
            }
        }
        false
    }

    /// Replaces each value that is this text.
    pub fn replace(&mut self, text: &str, with: &str) {
        self.whole.iter_mut().for_each(|(_, value)| replace(value.get_mut(), text, with));
    }
}

fn replace(value: &mut DeValue<'_>, text: &str, with: &str) {
    match value {
        DeValue::String(known) if known == text => *known = Cow::Owned(with.to_string()),
        DeValue::Array(list) => list.iter_mut().for_each(|value| replace(value.get_mut(), text, with)),
        DeValue::Table(table) => {
            table.iter_mut().for_each(|(_, value)| replace(value.get_mut(), text, with));
        }
        _ => {}
    }
}

/// Returns a value with one span for all its parts.
fn spanned<'t>(span: &Range<usize>, value: DraftValue<'t>) -> Spanned<DeValue<'t>> {
    let made = match value {
        DraftValue::Text(text) => DeValue::String(Cow::Owned(text)),
        DraftValue::Flag(flag) => DeValue::Boolean(flag),
        // The library makes numbers only from text, and its parser rejects any other text.
        DraftValue::Number(text) => {
            DeValue::parse(text).map_or_else(|_| DeValue::String(Cow::Borrowed(text)), Spanned::into_inner)
        }
        DraftValue::List(list) => {
            DeValue::Array(list.into_iter().map(|value| spanned(span, value)).collect())
        }
        DraftValue::Table(table) => {
            let key = |key: String| Spanned::new(span.clone(), Cow::Owned(key));
            let table = table.into_iter().map(|(name, value)| (key(name), spanned(span, value)));
            DeValue::Table(table.collect())
        }
    };
    Spanned::new(span.clone(), made)
}
