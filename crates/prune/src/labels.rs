//! Names of top spans and statements, as numbers that each span has room for.
//!
//! Statements are without their literals, as in `plumb plans`. Of more than [`LABELS_MOST`] names
//! and statements the further ones are one, so that a hostile file fills no memory.

use plumb_findings::plans::normalised;
use std::collections::HashMap;

/// Most names of top spans and statements with sums of their own.
const LABELS_MOST: usize = 100_000;
/// Most letters of a name.
const LETTERS_MOST: usize = 1000;

/// Names as numbers; 0 is none.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    places: HashMap<String, u32>,
    names: Vec<String>,
}

impl Labels {
    pub fn of(&mut self, name: &str) -> u32 {
        let end = name.char_indices().nth(LETTERS_MOST).map_or(name.len(), |(end, _)| end);
        if let Some(known) = self.places.get(&name[..end]) {
            return *known;
        }
        let name = if self.names.len() < LABELS_MOST { &name[..end] } else { "(all others)" };
        let next = self.names.len() as u32 + 1;
        let place = *self.places.entry(name.to_string()).or_insert(next);
        if place == next {
            self.names.push(name.to_string());
        }
        place
    }

    /// Returns the number of a statement; 0 of an empty one.
    pub fn statement(&mut self, sql: &str) -> u32 {
        let end = sql.char_indices().nth(4 * LETTERS_MOST).map_or(sql.len(), |(end, _)| end);
        let statement = normalised(&sql[..end]);
        if statement.is_empty() { 0 } else { self.of(&statement) }
    }

    /// Returns the number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, label: u32) -> &str {
        self.names.get(label as usize - 1).map_or("", String::as_str)
    }
}
