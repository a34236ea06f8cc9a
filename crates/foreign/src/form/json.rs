//! A JSON document as leaves that know their lines.
//!
//! A leaf is a text, a number or a word, under its path, as in `jobs/0000000/read/iops`. Places of
//! lists have seven digits, so that the order of paths is that of a list. A `/` within a key is
//! `~1`, as in a JSON pointer.
//!
//! Rejected: `serde_json::Value`, which forgets lines and the text of numbers, keeps one of two
//! equal keys, and reads nothing of a file that was cut off.
//!
//! Limits: [`DEPTH_MOST`] levels and [`LEAVES_MOST`] leaves; what follows is not read.

use crate::figure::sheet::{Printed, Sheet};
use crate::source::SourcePart;
use std::collections::BTreeMap;

/// Objects within objects at most: a nested line of a hostile file must not take all memory.
const DEPTH_MOST: usize = 64;
/// Leaves of a document at most. The largest report seen has 110,000.
const LEAVES_MOST: usize = 1_000_000;

/// Texts by their path. Of two equal paths the first one counts.
#[derive(Debug, Default)]
pub struct Json {
    leaves: BTreeMap<String, Leaf>,
    /// The byte of the text behind the document.
    pub end: usize,
    /// True unless the text ends within the document.
    pub is_closed: bool,
}

#[derive(Debug)]
struct Leaf {
    text: Printed,
    /// Number of the leaves before it, because the order of a map is another one.
    number: u32,
}

/// Reads a document from the first brace at or after a byte of a text.
#[must_use]
pub fn read(part: &SourcePart<'_>, from: usize) -> Json {
    let at = part.text[from..].find('{').map_or(part.text.len(), |brace| from + brace + 1);
    read_behind(part, at)
}

/// Reads a document whose first brace stands before a byte of a text.
#[must_use]
pub fn read_behind(part: &SourcePart<'_>, at: usize) -> Json {
    let frames = vec![Frame::Object(String::new())];
    let mut scan = Scan { part, at, frames, json: Json::default() };
    scan.run();
    let is_left = scan.frames.len() >= DEPTH_MOST || scan.json.leaves.len() >= LEAVES_MOST;
    let is_closed = scan.frames.is_empty() || is_left;
    Json { end: scan.at, is_closed, ..scan.json }
}

/// The path of a place in a list.
#[must_use]
pub fn place(list: &str, number: usize) -> String {
    format!("{list}/{number:07}")
}

impl Json {
    /// Returns the text under a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Printed> {
        self.leaves.get(path).map(|leaf| &leaf.text)
    }

    /// Returns the text under a path; an empty one where there is none.
    #[must_use]
    pub fn text(&self, path: &str) -> Printed {
        self.get(path).cloned().unwrap_or_default()
    }

    /// Returns the leaves below a path in their order, each with the rest of its path.
    pub fn below<'j>(&'j self, path: &'j str) -> impl Iterator<Item = (&'j str, &'j Printed)> {
        self.leaves_below(path).map(|(rest, leaf)| (rest, &leaf.text))
    }

    fn leaves_below<'j>(&'j self, path: &'j str) -> impl Iterator<Item = (&'j str, &'j Leaf)> {
        let own = self.leaves.range(path.to_string()..).take_while(move |(leaf, _)| leaf.starts_with(path));
        own.map(move |(leaf, text)| (&leaf[path.len()..], text))
    }

    /// Adds the objects of a list to a table as rows: each column takes the key of its name.
    /// Returns the number of objects.
    pub fn rows(&self, list: &str, sheet: &mut Sheet) -> usize {
        let mut number = 0;
        loop {
            let object = place(list, number) + "/";
            let Some((_, first)) = self.below(&object).next() else { return number };
            let cell = |column: &crate::figure::sheet::Column| {
                let text = self.text(&(object.clone() + &escaped(&column.name)));
                if text.raw == "null" { Printed { raw: String::new(), ..text } } else { text }
            };
            let cells = sheet.columns.iter().map(cell).collect();
            sheet.push(first.line, cells);
            number += 1;
        }
    }

    /// Returns the keys of the first object of a list, in the order of the document.
    #[must_use]
    pub fn keys(&self, list: &str) -> Vec<String> {
        let object = place(list, 0);
        let own = self.members(&object);
        own.into_iter().filter(|key| self.get(&format!("{object}/{}", escaped(key))).is_some()).collect()
    }

    /// Returns the keys of an object, in the order of the document.
    #[must_use]
    pub fn members(&self, object: &str) -> Vec<String> {
        let object = format!("{object}/");
        let mut own: Vec<(u32, &str)> = Vec::new();
        for (path, leaf) in self.leaves_below(&object) {
            let key = path.split('/').next().unwrap_or(path);
            match own.last_mut().filter(|(_, last)| *last == key) {
                Some((number, _)) => *number = leaf.number.min(*number),
                None => own.push((leaf.number, key)),
            }
        }
        own.sort_unstable();
        own.into_iter().map(|(_, key)| key.replace("~1", "/")).collect()
    }
}

fn escaped(key: &str) -> String {
    key.replace('/', "~1")
}

/// A level of the document.
#[derive(Debug)]
enum Frame {
    /// An object, with the key that is being read.
    Object(String),
    /// A list, with the place that is being read.
    List(usize),
}

/// A scan of a document from behind its first brace, up to its last one or to the end of the file.
struct Scan<'a, 't> {
    part: &'a SourcePart<'t>,
    at: usize,
    frames: Vec<Frame>,
    json: Json,
}

impl Scan<'_, '_> {
    fn run(&mut self) {
        let mut key_done = false;
        while let Some(byte) = self.part.text.as_bytes().get(self.at).copied() {
            match byte {
                b'{' | b'[' if self.frames.len() < DEPTH_MOST => {
                    self.frames.push(if byte == b'{' {
                        Frame::Object(String::new())
                    } else {
                        Frame::List(0)
                    });
                    key_done = false;
                }
                b'{' | b'[' => return,
                b'}' | b']' => {
                    self.frames.pop();
                    if self.frames.is_empty() {
                        self.at += 1;
                        return;
                    }
                }
                b',' => {
                    key_done = false;
                    if let Some(Frame::List(place)) = self.frames.last_mut() {
                        *place += 1;
                    }
                }
                b':' => key_done = true,
                byte if byte.is_ascii_whitespace() => {}
                _ => {
                    let line = self.part.line_of(self.at);
                    let Some(text) = self.token() else { return };
                    self.take(text, line, key_done);
                    if self.json.leaves.len() >= LEAVES_MOST {
                        return;
                    }
                    continue;
                }
            }
            self.at += 1;
        }
    }

    /// Returns the text of a string, number or word; none where the file ends in it.
    fn token(&mut self) -> Option<String> {
        let rest = &self.part.text[self.at..];
        if let Some(inside) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = inside.find(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            })?;
            self.at += end + 2;
            let quoted = &rest[..end + 2];
            return Some(serde_json::from_str(quoted).unwrap_or_else(|_| inside[..end].to_string()));
        }
        let end = rest.find(|letter: char| letter.is_ascii_whitespace() || ",:{}[]\"".contains(letter))?;
        self.at += end;
        Some(rest[..end].to_string())
    }

    /// A key, or the value of one.
    fn take(&mut self, text: String, line: u32, key_done: bool) {
        if let Some(Frame::Object(key)) = self.frames.last_mut()
            && !key_done
        {
            *key = escaped(&text);
            return;
        }
        let steps = self.frames.iter().map(|frame| match frame {
            Frame::Object(key) => key.clone(),
            Frame::List(place) => format!("{place:07}"),
        });
        let path = steps.collect::<Vec<_>>().join("/");
        let number = self.json.leaves.len() as u32;
        self.json.leaves.entry(path).or_insert(Leaf { text: Printed { raw: text, line }, number });
    }
}
