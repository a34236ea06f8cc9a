//! A factor with its levels, each of which sets one or more settings.

use crate::vocabulary::Assignment;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Factor {
    pub name: String,
    /// At least two; the first is the reference.
    pub levels: Vec<Level>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Unique among the factor's levels.
    pub label: String,
    /// The settings of the level. A level `asynchronous` may set a method and an option.
    pub settings: Vec<Assignment>,
}

impl Factor {
    pub fn level(&self, label: &str) -> Option<usize> {
        self.levels.iter().position(|level| level.label == label)
    }

    /// Returns settings whose values differ between two levels.
    pub fn differing(&self, from: usize, to: usize) -> Vec<&str> {
        let value = |level: usize, name: &str| {
            self.levels[level].settings.iter().find(|set| set.name == name).map(|set| &set.value)
        };
        let named = self.levels[from].settings.iter().chain(&self.levels[to].settings);
        let mut names: Vec<&str> = named.map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| value(from, name) != value(to, name));
        names
    }
}
