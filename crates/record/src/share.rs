//! The copy of a record, field by field: numbers stay, and a text is judged by the key of its
//! field.

use plumb_share::{Label, Tokens, is_figure, is_stamp};
use serde_json::Value;

/// Fields with sentences of this program.
const SENTENCES: &str = " evidence detail what advice caveat note notes arithmetic cannot_see \
    caches virtual_reason io_method_reason direct_writes_reason reason reasons cure \
    calibration_doubts doubts description at basis remarks refused left_out \
    sequential_read_unsettled asked status stop plausibility cycles_refused why limit between_runs \
    mode detail_text verdict sort_read_fac_source source_text threshold_text habit ";
/// Fields with words of this program's lists, among them the values of its types.
const WORDS: &str = " event wait_class kind state unit direction function part_of fact held seen \
    outcome role operation filesystem scheduler io_method write_cache clock_source rule \
    sync_method pattern completion view how effect call takes_effect receipt workload pairing \
    group order until series flags sort_direct_writes ended cpu_model mode method layout phase \
    operation_kind flavour volume access sampling name stream heading of section title missing key \
    settled quality verdict label bound class at_least basis_kind what_kind shape disk_kind \
    buffers files column_type counted direct_io doubtful expects figure interval intervals \
    io_uring large_pattern matrix_large_pattern limits purpose quantity setup source task tree validity \
    vocabulary warnings space tasks ";
/// Fields with names of this program: settings, parameters, measures and their values.
const OWN: &str = " setting value arm taken target parameter measure default ";
/// Fields with figures and times of day.
const TIMES: &str = " begin_time end_time date calibration_date time sum text clock ";
/// Fields with versions of programs and systems.
const VERSIONS: &str = " plumb_version kernel server version ";
/// Fields that are emptied: output of commands.
const EMPTY: &str = " output errors printed plan ";
/// Objects whose names are those of settings, parameters and measures.
const OWN_NAMES: &str = " settings parameters measures levels readings figures_of_measures assignments ";

fn among(list: &str, key: &str) -> bool {
    list.contains(&format!(" {key} "))
}

/// Replaces the names in a record or another document of this program.
pub fn replace_names(tokens: &mut Tokens, document: &mut Value) {
    Replacing { tokens }.field("", "", document);
}

/// A document whose names are being replaced.
struct Replacing<'t> {
    tokens: &'t mut Tokens,
}

impl Replacing<'_> {
    /// `of` is the key of the object or list that has the field.
    fn field(&mut self, of: &str, key: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(of, key, text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.field(of, key, value)),
            Value::Object(fields) if key == "imported" => self.imported(fields),
            Value::Object(fields) => {
                // An enumeration's value with data is an object of one field.
                fields.iter_mut().for_each(|(own, value)| self.field(key, own, value));
            }
            _ => {}
        }
    }

    fn text(&mut self, of: &str, key: &str, text: &str) -> String {
        match key {
            "name" if of == "host" => self.tokens.hidden(text),
            "name" if among(OWN_NAMES, of) => self.tokens.name(text),
            "command_line" => self.command(text),
            "title" if text.contains('/') => self.tokens.hidden(text),
            key if among(EMPTY, key) => String::new(),
            key if among(SENTENCES, key) => self.tokens.sentence(text),
            key if among(OWN, key) => self.tokens.name(text),
            key if among(VERSIONS, key) => self.tokens.value(Label::Versions, text),
            key if among(TIMES, key) => self.tokens.value(Label::Times, text),
            key if among(WORDS, key) => self.listed(text),
            _ => self.tokens.hidden(text),
        }
    }

    /// Returns a text of listed words and figures as it is. Every other one is hidden as a whole,
    /// because a listed word next to a name may be a part of it.
    fn listed(&mut self, text: &str) -> String {
        let stays = self.tokens.is_name(text)
            || text
                .split_whitespace()
                .all(|word| self.tokens.stands_alone(word.trim_matches(['(', ')', ':', ',', ';'])));
        if stays { text.to_string() } else { self.tokens.hidden(text) }
    }

    /// Returns a command line with the program and its command alone.
    fn command(&mut self, text: &str) -> String {
        let mut words = text.splitn(3, ' ');
        let own: Vec<&str> = words.by_ref().take(2).take_while(|word| self.tokens.is_listed(word)).collect();
        let behind = text.get(own.iter().map(|word| word.len() + 1).sum::<usize>()..).unwrap_or_default();
        let hidden = self.tokens.hidden(behind);
        own.into_iter().chain([hidden.as_str()]).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Replaces the names in what a record keeps of a report of another program.
    fn imported(&mut self, fields: &mut serde_json::Map<String, Value>) {
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("facts", Value::Array(facts)) => facts.iter_mut().for_each(|fact| self.fact(fact)),
                ("figures", Value::Array(figures)) => self.figures(figures),
                ("checks", Value::Array(checks)) => {
                    for check in checks {
                        if let Some(Value::Array(figures)) = check.get_mut("figures") {
                            self.figures(figures);
                        }
                        let Value::Object(parts) = check else { continue };
                        for (own, part) in parts.iter_mut().filter(|(own, _)| *own != "figures") {
                            self.field("checks", own, part);
                        }
                    }
                }
                (key, value) => self.field("imported", key, value),
            }
        }
    }

    fn fact(&mut self, fact: &mut Value) {
        let label = self.tokens.label(fact["name"].as_str().unwrap_or_default());
        let text = self.tokens.value(label, fact["text"].as_str().unwrap_or_default());
        let name = self.listed(fact["name"].as_str().unwrap_or_default());
        (fact["name"], fact["text"]) = (Value::from(name), Value::from(text));
    }

    /// Keeps the figures whose column has figures: `ROW: COLUMN`, or a figure that was derived.
    fn figures(&mut self, figures: &mut Vec<Value>) {
        figures.retain_mut(|figure| {
            let name = figure["name"].as_str().unwrap_or_default().to_string();
            let (row, column) = name.rsplit_once(": ").unwrap_or(("", &name));
            let text = figure["text"].as_str().unwrap_or_default().to_string();
            let is_derived = text.contains("derived");
            let label = self.tokens.label(column);
            let has_figures = matches!(label, Label::Figures | Label::Times) && is_figure(&text);
            let stays = has_figures || is_stamp(&text) && label == Label::Times || is_derived;
            if stays {
                let row = if row.is_empty() { String::new() } else { format!("{}: ", self.listed(row)) };
                figure["name"] = Value::from(format!("{row}{}", self.listed(column)));
                let unit = self.listed(figure["unit"].as_str().unwrap_or_default());
                figure["unit"] = Value::from(unit);
            }
            self.tokens.dropped += u64::from(!stays);
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_its_figures_and_loses_its_names() {
        let mut tokens = Tokens::new(["redo", "sort_area_size", "64M"]);
        let mut value = serde_json::json!({
            "header": { "host": { "name": "service", "kernel": "5.10.0-prod", "cpus": 4 },
                "command_line": "plumb run redo --path /data/acme --rows 2K" },
            "command": { "arguments": ["psql", "-p", "5432"], "output": "alice", "errors": "bob" },
            "settings": [{ "name": "sort_area_size", "value": "64M" }, { "name": "acme", "value": "blue" }],
            "imported": { "file": "acme.txt", "facts": [{ "name": "DB Id", "text": "4711", "line": 1 }],
                "figures": [{ "name": "db file sequential read: Waits", "text": "12", "line": 1, "unit": "", "value": 12 },
                    { "name": "acme: Phone", "text": "5551234", "line": 1, "unit": "", "value": 5551234 }] },
        });
        replace_names(&mut tokens, &mut value);
        let text = value.to_string();
        for name in
            ["service", "prod", "acme", "5432", "psql", "alice", "bob", "blue", "4711", "5551234", "2K"]
        {
            assert!(!text.contains(name), "{name}: {text}");
        }
        for kept in ["\"cpus\":4", "sort_area_size", "64M", "db file sequential read: Waits", "plumb run "] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }
}
