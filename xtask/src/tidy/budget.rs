//! Budgets: the most lines of code that each crate may have, in `budget.tsv` next to this file.
//!
//! A crate that needs more changes its row, so that a review sees the growth in the commit that
//! causes it. A row far above the lines would let the next change grow unseen; it is a complaint,
//! too, until `cargo xtask tidy --shrink` lowers it to the lines and a hundredth.
//!
//! Lines that begin with # are comments: rooms reserved for crates to come. Rejected: one sum for
//! the workspace, because the last change would pay for the growth of all others.

use super::{Source, lines};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Path of the budgets, relative to the root.
const BUDGET: &str = "xtask/src/tidy/budget.tsv";

/// Returns a complaint for each crate above its budget, far below it, or without one.
pub fn check(root: &Path, sources: &[Source]) -> Vec<String> {
    let (crates, budgets) = (lines::by_crate(sources), budgets(root));
    let mut complaints = Vec::new();
    for (name, lines) in &crates {
        match budgets.get(name) {
            None => complaints.push(format!("{BUDGET}:1: {name} has no row; its lines are {lines}")),
            Some(most) if lines > most => complaints.push(format!(
                "{BUDGET}:1: {name} has {lines} lines of code, expected at most {most}; delete some, or change the row"
            )),
            Some(most) if *most > loosest(*lines) => complaints.push(format!(
                "{BUDGET}:1: {name} has {lines} lines of code and a budget of {most}; `cargo xtask tidy --shrink` lowers it"
            )),
            Some(_) => {}
        }
    }
    let gone = budgets.keys().filter(|name| !crates.contains_key(*name));
    complaints.extend(gone.map(|name| format!("{BUDGET}:1: {name} is no crate; delete its row")));
    complaints
}

/// Lowers the budgets that are far above the lines; keeps comments.
pub fn shrink(root: &Path, sources: &[Source]) -> std::io::Result<()> {
    let (crates, path) = (lines::by_crate(sources), root.join(BUDGET));
    let mut lowered = String::new();
    for line in fs::read_to_string(&path).unwrap_or_default().lines() {
        let loose = row(line).and_then(|(name, most)| {
            let lines = *crates.get(name).filter(|lines| most > loosest(**lines))?;
            Some(format!("{name}\t{}", tight(lines)))
        });
        lowered.push_str(loose.as_deref().unwrap_or(line));
        lowered.push('\n');
    }
    fs::write(path, lowered)
}

/// Returns the budget that a crate of this size is given.
fn tight(lines: usize) -> usize {
    lines + lines / 100
}

/// Returns the largest budget of a crate of this size that is no complaint.
fn loosest(lines: usize) -> usize {
    lines + (lines / 50).max(20)
}

fn budgets(root: &Path) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(root.join(BUDGET)).unwrap_or_default();
    text.lines().filter_map(row).map(|(name, most)| (name.to_string(), most)).collect()
}

fn row(line: &str) -> Option<(&str, usize)> {
    let (name, most) = line.split_once('\t').filter(|_| !line.starts_with('#'))?;
    Some((name, most.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::parsed;

    fn complaints(budget: &str, lines: usize) -> Vec<String> {
        let root = root(budget);
        check(root.path(), &[source(lines)])
    }

    fn root(budget: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("xtask/src/tidy")).expect("a directory");
        fs::write(root.path().join(BUDGET), budget).expect("written");
        root
    }

    fn source(lines: usize) -> Source {
        parsed("crates/run/src/x.rs", &"fn f() {}\n".repeat(lines))
    }

    #[test]
    fn a_crate_stays_within_its_budget() {
        let budget = "# sql\t4000\nrun\t100\n";
        assert_eq!(complaints(budget, 100), [] as [&str; 0]);
        assert_eq!(complaints(budget, 80), [] as [&str; 0]);
        let more = "xtask/src/tidy/budget.tsv:1: run has 101 lines of code, expected at most 100; \
                    delete some, or change the row";
        assert_eq!(complaints(budget, 101), [more]);
        let loose = "xtask/src/tidy/budget.tsv:1: run has 79 lines of code and a budget of 100; \
                     `cargo xtask tidy --shrink` lowers it";
        assert_eq!(complaints(budget, 79), [loose]);
        let other = [
            "xtask/src/tidy/budget.tsv:1: run has no row; its lines are 1",
            "xtask/src/tidy/budget.tsv:1: walk is no crate; delete its row",
        ];
        assert_eq!(complaints("walk\t100\n", 1), other);
    }

    #[test]
    fn a_budget_shrinks_and_does_not_grow() {
        let shrunk = |lines: usize| {
            let root = root("# sql\t4000\nrun\t1000\n");
            shrink(root.path(), &[source(lines)]).expect("written");
            fs::read_to_string(root.path().join(BUDGET)).expect("read")
        };
        assert_eq!(shrunk(500), "# sql\t4000\nrun\t505\n");
        assert_eq!(shrunk(990), "# sql\t4000\nrun\t1000\n");
        assert_eq!(shrunk(1500), "# sql\t4000\nrun\t1000\n");
    }
}
