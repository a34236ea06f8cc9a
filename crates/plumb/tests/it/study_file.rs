//! A study file of one factor and one claim: each test states only what its study is about.

use serde_json::Value;
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub struct StudyFile<'a> {
    /// Also the name of the claim; the file is `NAME.toml`.
    pub name: &'a str,
    /// Workload or target, with the keys at the top that belong to it.
    pub top: &'a str,
    pub blocks: u64,
    /// Sections of the file before its factor.
    pub sections: &'a str,
    /// Setting that the factor varies; empty if it is that of the factor's name, or of its levels.
    pub setting: &'a str,
    /// Levels as TOML, the reference first.
    pub levels: [&'a str; 2],
    pub expect: &'a str,
}

impl Default for StudyFile<'_> {
    fn default() -> Self {
        StudyFile {
            name: "small",
            top: "workload = \"large-sort\"\nrows = 20000",
            blocks: 6,
            sections: "",
            setting: "",
            levels: ["1", "2"],
            expect: "differs",
        }
    }
}

impl StudyFile<'_> {
    pub fn text(&self) -> String {
        let StudyFile { name, top, blocks, sections, setting, levels: [from, to], expect } = self;
        let setting = if setting.is_empty() { String::new() } else { format!("setting = \"{setting}\"\n") };
        let [first, second] = [from, to].map(|level| label(level));
        format!(
            r#"name = "{name}"
title = "A small study"
question = "Does it run?"
blocks = {blocks}
{top}

{sections}

[[factor]]
name = "x"
{setting}levels = [{from}, {to}]

[[claim]]
name = "x"
text = "It matters."
factor = "x"
from = {first}
to = {second}
expect = "{expect}"
"#
        )
    }

    pub fn write(&self, directory: &Path) {
        fs::write(directory.join(format!("{}.toml", self.name)), self.text()).expect("a file");
    }
}

/// The label of a level: that of a table, otherwise the level itself.
fn label(level: &str) -> String {
    let of_table = level.strip_prefix("{ label = ").and_then(|rest| rest.split(',').next());
    of_table.unwrap_or(level).to_string()
}

pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
