//! Rules of the code that a program can check. `cargo test` checks them, too.
//!
//! - A crate depends only on those that ARCHITECTURE.md allows, and the profiles of Cargo.toml
//!   agree (`manifest`).
//! - The top modules of a crate form no circle (`modules`).
//! - A file of more than 80 lines has a header; a function has at most 70 lines; no public
//!   function takes a bool; only `plumb`, `bench` and `xtask` print; no mark of unfinished work,
//!   no empty name, no file outside the tree of modules (`source`).
//! - A crate has at most the lines of code of its budget (`budget`).
//! - Old breaches are counted per file, and a count may only shrink (`ratchet`); large files and
//!   files of unknown kinds are breaches, too (`files`).
//! - The public items of the library crates are a snapshot, so that a review sees each new one
//!   (`public`).
//!
//! Each file is parsed once by syn, and rules walk the tree. Headers and marks have no syntax, so
//! they are searched for in the text.

mod budget;
mod files;
mod lines;
mod manifest;
mod modules;
#[cfg(test)]
mod public;
mod ratchet;
mod source;

pub use lines::print as print_lines;

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file of the workspace.
pub struct Source {
    /// Relative to the root, as complaints print it.
    pub path: PathBuf,
    pub text: String,
    pub syntax: syn::File,
}

impl Source {
    /// Returns the crate's folder under `crates`, or `bench` or `xtask`.
    fn crate_name(&self) -> &str {
        let mut parts = self.path.iter().filter_map(|part| part.to_str());
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            first => first.unwrap_or_default(),
        }
    }

    fn is_example(&self) -> bool {
        self.path.iter().any(|part| part == "examples")
    }

    /// True if the whole file is test code: in a folder `tests`, named `tests.rs`, or part of the
    /// crate `crash`, the harness of tests and benches.
    fn is_test(&self) -> bool {
        let mut parts = self.path.iter().filter_map(|part| part.to_str());
        self.crate_name() == "crash" || parts.any(|part| matches!(part, "tests" | "tests.rs" | "fixture.rs"))
    }
}

/// Returns every breach, as `file:line: text`.
pub fn check(root: &Path) -> Vec<String> {
    let (sources, mut complaints) = sources(root);
    complaints.extend(manifest::arrows(root));
    complaints.extend(manifest::profiles(root));
    complaints.extend(modules::circles(&sources));
    for source in &sources {
        let shown = source.path.display();
        complaints.extend(source::check(source).into_iter().map(|what| format!("{shown}:{what}")));
        complaints.extend(source::orphan(&root.join(&source.path)).map(|what| format!("{shown}:{what}")));
    }
    complaints.extend(budget::check(root, &sources));
    complaints.extend(ratchet::check(root, &sources));
    complaints
}

/// Writes the budgets and the counts of breaches that have shrunk.
pub fn shrink(root: &Path) -> std::io::Result<()> {
    let sources = sources(root).0;
    budget::shrink(root, &sources)?;
    ratchet::shrink(root, &sources)
}

/// Returns the Rust files of the workspace, and complaints about those that cannot be read.
pub fn sources(root: &Path) -> (Vec<Source>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let mut directories = vec![root.join("crates"), root.join("bench"), root.join("xtask")];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for full in entries.flatten().map(|entry| entry.path()) {
            if full.is_dir() {
                directories.push(full);
            } else if full.extension().is_some_and(|ending| ending == "rs") {
                let path = full.strip_prefix(root).unwrap_or(&full).to_path_buf();
                let text = fs::read_to_string(&full).unwrap_or_default();
                match syn::parse_file(&text) {
                    Ok(syntax) => found.push(Source { path, text, syntax }),
                    Err(error) => unread.push(format!("{}:1: cannot be parsed: {error}", path.display())),
                }
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    (found, unread)
}

/// True if an item is compiled for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let inner = || attribute.parse_args::<syn::Ident>();
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && inner().is_ok_and(|it| it == "test")
    })
}

#[cfg(test)]
fn parsed(path: &str, text: &str) -> Source {
    let syntax = syn::parse_file(text).expect("a test's text is Rust");
    Source { path: PathBuf::from(path), text: text.to_string(), syntax }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let complaints = super::check(&crate::workspace());
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
