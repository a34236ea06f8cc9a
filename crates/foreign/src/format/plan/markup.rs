//! EXPLAIN (FORMAT YAML) and (FORMAT XML) as the values that the JSON form has.
//!
//! Only what EXPLAIN prints is known: maps and lists by indentation with values on one line, and
//! elements without attributes that matter. A file of another kind has no operator in the end.

use super::Fault;
use super::client::Numbered;
use serde_json::{Map, Value};

/// Most levels of a plan, which has two levels of markup for each.
const PLAN_LEVELS_MOST: usize = 60;
const LEVELS_MOST: usize = 2 * PLAN_LEVELS_MOST + 8;

/// Returns the documents of YAML, each with its first line.
pub(super) fn yaml(lines: &[Numbered<'_>]) -> Result<Vec<(u32, Value)>, Fault> {
    let all: Vec<(u32, usize, &str)> = lines
        .iter()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| (*number, line.len() - line.trim_start().len(), line.trim()))
        .collect();
    let mut found = Vec::new();
    let mut reader = Yaml { lines: all, at: 0 };
    while let Some((number, indent, text)) = reader.lines.get(reader.at).copied() {
        let text = text.trim_start_matches("- ");
        if text.starts_with("Query Text: ") || text == "Plan:" {
            let begin = reader.at;
            found.extend(each(reader.block(indent, 0)?).into_iter().map(|one| (number, one)));
            reader.at = reader.at.max(begin + 1);
        } else {
            reader.at += 1;
        }
    }
    Ok(found)
}

fn each(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        one => vec![one],
    }
}

struct Yaml<'a> {
    /// Number, indentation and text of each line.
    lines: Vec<(u32, usize, &'a str)>,
    at: usize,
}

impl Yaml<'_> {
    /// Reads the lines of a map or a list with this indentation.
    fn block(&mut self, indent: usize, level: usize) -> Result<Value, Fault> {
        let mut list = Vec::new();
        let mut map = Map::new();
        while let Some((line, found, text)) =
            self.lines.get(self.at).copied().filter(|(_, found, _)| *found == indent)
        {
            if level > LEVELS_MOST {
                return Err(super::too_large(line, "levels", PLAN_LEVELS_MOST));
            }
            if let Some(item) = text.strip_prefix("- ") {
                let blanks = text.len() - item.trim_start().len();
                if item.contains(": ") || item.ends_with(':') {
                    self.lines[self.at] = (line, found + blanks, item.trim_start());
                    list.push(self.block(indent + blanks, level + 1)?);
                } else {
                    list.push(scalar(item));
                    self.at += 1;
                }
                continue;
            }
            let Some((name, value)) = text.split_once(':') else { break };
            self.at += 1;
            let below = self.lines.get(self.at).map(|(_, below, _)| *below).filter(|below| *below > indent);
            let value = match (value.trim(), below) {
                ("", Some(below)) => self.block(below, level + 1)?,
                (value, _) => scalar(value),
            };
            map.insert(name.to_string(), value);
        }
        Ok(if list.is_empty() { Value::Object(map) } else { Value::Array(list) })
    }
}

fn scalar(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|_| Value::String(text.trim().to_string()))
}

/// Returns the queries of XML, each with its first line.
pub(super) fn xml(lines: &[Numbered<'_>]) -> Result<Vec<(u32, Value)>, Fault> {
    let mut found = Vec::new();
    let mut open: Vec<Element> = Vec::new();
    // A terminal may break a line within a tag.
    let mut broken = String::new();
    for (number, line) in lines {
        let line = std::mem::take(&mut broken) + line;
        let mut rest = line.as_str();
        while let Some((text, (tag, behind))) =
            rest.split_once('<').and_then(|(text, tag)| Some((text, tag.split_once('>')?)))
        {
            if let Some(element) = open.last_mut() {
                element.text.push_str(text);
            }
            rest = behind;
            if let Some(name) = tag.strip_prefix('/') {
                let Some(element) = open.pop().filter(|element| element.tag == name) else {
                    return Err(Fault {
                        line: *number,
                        why: format!("the XML of the plan closes {name}, which is not open"),
                    });
                };
                match open.last_mut() {
                    Some(parent) if element.tag != "Query" => {
                        parent.children.push((element.name(), element.value()))
                    }
                    _ => found.push((element.line, element.value())),
                }
            } else if !tag.starts_with(['?', '!']) && !tag.ends_with('/') {
                if open.len() > LEVELS_MOST {
                    return Err(super::too_large(*number, "levels", PLAN_LEVELS_MOST));
                }
                let tag = tag.split(' ').next().unwrap_or_default().to_string();
                open.push(Element { tag, line: *number, text: String::new(), children: Vec::new() });
            }
        }
        if rest.contains('<') && !open.is_empty() {
            broken = rest.to_string();
        } else if let Some(element) = open.last_mut() {
            element.text.push_str(rest);
        }
    }
    match open.first() {
        Some(_) => {
            let line = lines.last().map_or(1, |(number, _)| *number);
            Err(Fault { line, why: "the plan is cut off: the file ends within its XML".to_string() })
        }
        None => Ok(found),
    }
}

struct Element {
    tag: String,
    line: u32,
    text: String,
    children: Vec<(String, Value)>,
}

impl Element {
    /// Returns the name in the words of JSON.
    fn name(&self) -> String {
        let plain = self.tag.replace('-', " ").replace("I O ", "I/O ");
        plain.replace("Full sort", "Full-sort").replace("Pre sorted", "Pre-sorted")
    }

    fn value(self) -> Value {
        let is_list = matches!(self.tag.as_str(), "Plans" | "Workers" | "Triggers")
            || self.children.iter().any(|(name, _)| name == "Item");
        if is_list {
            return Value::Array(self.children.into_iter().map(|(_, value)| value).collect());
        }
        if !self.children.is_empty() {
            return Value::Object(self.children.into_iter().collect());
        }
        let letters = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
        scalar(&letters.iter().fold(self.text, |text, (entity, letter)| text.replace(entity, letter)))
    }
}
