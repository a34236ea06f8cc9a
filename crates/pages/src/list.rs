//! Lists as rows: for a terminal, for programs, and for pages.
//!
//! A field has a text and a value. The names of the head are those of the fields in JSON.

use plumb_engine::Setting;
use plumb_events::Event;
use plumb_study::bundle::listing::FoundBundle;
use plumb_units::{Bytes, Nanos, RowCount};
use serde_json::Value;

/// A field of a list, as text and as JSON.
#[derive(Debug, Clone)]
pub struct Field {
    pub shown: String,
    pub value: Value,
}

impl<T: Into<String>> From<T> for Field {
    fn from(text: T) -> Field {
        let shown = text.into();
        // Indexes are indented in a list.
        let value = if shown.is_empty() { Value::Null } else { shown.trim().into() };
        Field { shown, value }
    }
}

impl Field {
    pub fn count(count: u64) -> Field {
        Field { shown: RowCount(count).to_string(), value: count.into() }
    }

    pub fn bytes(bytes: u64) -> Field {
        Field { shown: Bytes(bytes).to_string(), value: bytes.into() }
    }

    pub fn time(time: Nanos) -> Field {
        Field { shown: format!("{:.2} s", time.seconds()), value: time.seconds().into() }
    }

    /// Returns a field that does not apply or is unknown.
    pub fn none(shown: &str) -> Field {
        Field { shown: shown.to_string(), value: Value::Null }
    }

    /// True if the field contains a text, in any case.
    pub fn has(&self, text: &str) -> bool {
        self.shown.to_lowercase().contains(&text.to_lowercase())
    }
}

/// A list: the names of the fields, and the rows.
#[derive(Debug, Clone)]
pub struct RowList {
    pub head: Vec<String>,
    pub rows: Vec<Vec<Field>>,
}

impl RowList {
    pub fn new(head: &[&str], rows: Vec<Vec<Field>>) -> RowList {
        RowList { head: head.iter().map(|name| (*name).to_string()).collect(), rows }
    }

    /// Returns a list of texts; the first row is the head.
    pub fn of_texts(texts: Vec<Vec<String>>) -> RowList {
        let mut texts = texts.into_iter();
        let head = texts.next().unwrap_or_default();
        RowList { head, rows: texts.map(|row| row.into_iter().map(Field::from).collect()).collect() }
    }

    /// Formats a list of objects, with the names of the head.
    pub fn to_json(&self) -> String {
        let names: Vec<String> = self.head.iter().map(|name| name.to_lowercase().replace(' ', "_")).collect();
        let object = |row: &Vec<Field>| {
            let values = row.iter().map(|field| field.value.clone());
            Value::Object(names.iter().cloned().zip(values).collect())
        };
        format!("{:#}\n", Value::Array(self.rows.iter().map(object).collect()))
    }
}

/// Lists the settings that are shown.
pub fn settings() -> RowList {
    let shown = Setting::ALL.iter().filter(|setting| !setting.row().is_hidden());
    let rows = shown.map(|setting| {
        let row = setting.row();
        let takes = row.domain.describe();
        [row.name, row.group.name(), row.default, takes.as_str(), row.help].map(Field::from).into()
    });
    RowList::new(&["NAME", "GROUP", "DEFAULT", "TAKES", "HELP"], rows.collect())
}

pub fn events() -> RowList {
    let rows = Event::ALL
        .iter()
        .map(|event| [event.name(), event.class().name(), event.sentence()].map(Field::from).into());
    RowList::new(&["EVENT", "CLASS", "WAITS FOR"], rows.collect())
}

pub fn bundles(found: &[FoundBundle]) -> RowList {
    let row = |FoundBundle { path, head }: &FoundBundle| {
        let path = path.as_ref().map_or(Field::none("-"), |path| path.display().to_string().into());
        let text = |text: &String| Field::from(text.clone());
        vec![
            path,
            text(&head.kind),
            text(&head.date),
            head.elapsed().map_or(Field::none(""), Field::time),
            head.bytes.map_or(Field::none(""), Field::bytes),
            text(&head.asked),
            text(&head.headline),
        ]
    };
    let names = ["BUNDLE", "KIND", "DATE", "ELAPSED", "SIZE", "ASKED", "SAYS"];
    RowList::new(&names, found.iter().map(row).collect())
}
