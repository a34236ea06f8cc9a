//! What is varied: a factor with its levels, each one or more settings.

use crate::vocabulary::Assignment;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Factor {
    pub name: String,
    /// At least two; the first is the reference.
    pub levels: Vec<Level>,
}

/// One of a factor's levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Its label, unique in the factor.
    pub label: String,
    /// What it stands for: `asynchronous` may be a method and an option.
    pub settings: Vec<Assignment>,
}

impl Factor {
    /// The index of the level with this label.
    #[must_use]
    pub fn level(&self, label: &str) -> Option<usize> {
        self.levels.iter().position(|level| level.label == label)
    }

    /// Settings that have another value at one level than at another.
    #[must_use]
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
