//! Finds circular dependencies among the top modules of a crate.
//!
//! Each path that begins with `crate` or `super` is an arrow from the file's top module to the
//! named one. A name of the crate's root is resolved through the root's `pub use`. Tests are
//! exempt. Each circle is one complaint, with one file for each of its arrows.
//!
//! [`file_circles`] finds circles among files of one folder. Old ones are counted
//! ([`super::ratchet`]).
//!
//! Limits: arguments of macros are not parsed; a `mod` declaration is no arrow.

use super::{Source, is_for_tests};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// From one module to another, with a place that has the arrow.
type Arrows = BTreeMap<(String, String), String>;

/// Returns a complaint for each circle among the top modules of a crate.
pub fn circles(sources: &[Source]) -> Vec<String> {
    let crates: BTreeSet<&str> = sources.iter().map(Source::crate_name).collect();
    let of_crate = |name: &str| {
        let files: Vec<&Source> = sources.iter().filter(|source| source.crate_name() == name).collect();
        circles_of(name, &arrows(&files))
    };
    crates.into_iter().flat_map(of_crate).collect()
}

fn arrows(files: &[&Source]) -> Arrows {
    let inside: Vec<(Vec<String>, &&Source)> =
        files.iter().filter(|source| !source.is_test()).filter_map(|it| Some((module_of(it)?, it))).collect();
    let tops: BTreeSet<String> = inside.iter().filter_map(|(module, _)| module.first().cloned()).collect();
    let mut exported = BTreeMap::new();
    for (_, root) in inside.iter().filter(|(module, _)| module.is_empty()) {
        for item in &root.syntax.items {
            if let syn::Item::Use(item) = item {
                for path in use_paths(&item.tree) {
                    let home = path.iter().find(|part| tops.contains(*part));
                    exported.extend(path.last().cloned().zip(home.cloned()));
                }
            }
        }
    }
    let mut arrows = Arrows::new();
    for (module, source) in inside.iter().filter(|(module, _)| !module.is_empty()) {
        let mut paths = Paths { module: module.clone(), found: Vec::new(), whole: Vec::new() };
        paths.visit_file(&source.syntax);
        for (name, line) in paths.found {
            let target = if tops.contains(&name) { Some(&name) } else { exported.get(&name) };
            if let Some(target) = target.filter(|target| **target != module[0]) {
                let place = format!("{}:{line}", source.path.display());
                arrows.entry((module[0].clone(), target.clone())).or_insert(place);
            }
        }
    }
    arrows
}

/// Returns the path of a file's module: `[sort, key]` for `sort/key.rs`, `[]` for
/// the root, `None` outside `src`.
fn module_of(source: &Source) -> Option<Vec<String>> {
    let parts: Vec<&str> = source.path.iter().filter_map(|part| part.to_str()).collect();
    let start = parts.iter().position(|part| *part == "src")? + 1;
    let names = parts[start..].iter().map(|part| part.trim_end_matches(".rs").to_string());
    Some(names.filter(|name| !matches!(name.as_str(), "lib" | "main" | "mod")).collect())
}

/// Visitor that collects the first names after `crate` in the paths of a file, with their lines.
struct Paths {
    module: Vec<String>,
    found: Vec<(String, usize)>,
    /// Whole paths from the root, of those that begin with `crate` or `super`.
    whole: Vec<(Vec<String>, usize)>,
}

impl Paths {
    fn take(&mut self, path: &[String], line: usize) {
        let above = path.iter().take_while(|part| *part == "super").count();
        let base = match path.first().map(String::as_str) {
            Some("crate") => Some(&self.module[..0]),
            Some("super") => self.module.len().checked_sub(above).map(|depth| &self.module[..depth]),
            _ => None,
        };
        if let Some(base) = base {
            self.whole.push(([base, &path[above.max(1)..]].concat(), line));
        }
        match path.first().map(String::as_str) {
            Some("crate") => self.found.extend(path.get(1).cloned().map(|name| (name, line))),
            // A `super` per level of the module leads to the root.
            Some("super") if above == self.module.len() => {
                self.found.extend(path.get(above).cloned().map(|name| (name, line)));
            }
            _ => {}
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let line = item.use_token.span.start().line;
        for path in use_paths(&item.tree) {
            self.take(&path, line);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(1, |first| first.ident.span().start().line);
        self.take(&names, line);
        visit::visit_path(self, path);
    }
}

/// Returns the paths of a `use`, each from its first name.
fn use_paths(tree: &syn::UseTree) -> Vec<Vec<String>> {
    match tree {
        syn::UseTree::Path(path) => {
            let behind = use_paths(&path.tree).into_iter();
            behind.map(|rest| [vec![path.ident.to_string()], rest].concat()).collect()
        }
        syn::UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        syn::UseTree::Rename(name) => vec![vec![name.ident.to_string()]],
        syn::UseTree::Glob(_) => vec![Vec::new()],
        syn::UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
    }
}

fn circles_of(name: &str, arrows: &Arrows) -> Vec<String> {
    let describe = |circle: BTreeSet<&String>| {
        let within = arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let drawn: Vec<String> =
            within.map(|((from, to), place)| format!("{from} -> {to} at {place}")).collect();
        format!("crates/{name}/src:1: modules know each other in a circle: {}", drawn.join(", "))
    };
    knots(arrows).into_iter().map(describe).collect()
}

/// Returns the sets of modules that reach each other.
fn knots(arrows: &Arrows) -> BTreeSet<BTreeSet<&String>> {
    let mut next: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    arrows.keys().for_each(|(from, to)| next.entry(from).or_default().push(to));
    let tops: BTreeSet<&String> = arrows.keys().flat_map(|(from, to)| [from, to]).collect();
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        tops.iter().map(|top| (*top, reached_from(top, &next))).collect();
    let in_circle = |top: &&&String| reached[**top].contains(**top);
    let circle =
        |top: &&String| reached[*top].iter().filter(|it| reached[**it].contains(*top)).copied().collect();
    tops.iter().filter(in_circle).map(circle).collect()
}

fn reached_from<'a>(from: &'a String, next: &BTreeMap<&'a String, Vec<&'a String>>) -> BTreeSet<&'a String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        open.extend(next.get(at).into_iter().flatten().copied().filter(|to| seen.insert(*to)));
    }
    seen
}

/// Returns the files of circles, each with the others of its circle.
pub fn file_circles(sources: &[Source]) -> Vec<(String, String)> {
    let crates: BTreeSet<&str> = sources.iter().map(Source::crate_name).collect();
    let mut found = Vec::new();
    for name in crates {
        let files: Vec<&Source> = sources.iter().filter(|source| source.crate_name() == name).collect();
        let paths: BTreeMap<String, String> = files
            .iter()
            .filter_map(|source| Some((module_of(source)?.join("::"), source.path.display().to_string())))
            .collect();
        for circle in knots(&file_arrows(&files)) {
            for file in &circle {
                let others: Vec<&str> =
                    circle.iter().filter(|other| other != &file).map(|other| other.as_str()).collect();
                found.push((paths[*file].clone(), format!("in a circle with {}", others.join(", "))));
            }
        }
    }
    found
}

fn file_arrows(files: &[&Source]) -> Arrows {
    let inside: Vec<(Vec<String>, &&Source)> =
        files.iter().filter(|source| !source.is_test()).filter_map(|it| Some((module_of(it)?, it))).collect();
    let known: BTreeSet<&[String]> = inside.iter().map(|(module, _)| module.as_slice()).collect();
    // Finds the longest prefix of a path that is a file.
    let file_of = |path: &[String]| {
        (0..=path.len())
            .rev()
            .map(|length| &path[..length])
            .find(|beginning| known.contains(beginning))
            .map(<[String]>::to_vec)
    };
    let mut exported: BTreeMap<(Vec<String>, String), Vec<String>> = BTreeMap::new();
    for (module, source) in &inside {
        for item in &source.syntax.items {
            let syn::Item::Use(item) = item else { continue };
            for path in use_paths(&item.tree) {
                let below = [module.as_slice(), &path].concat();
                let home = file_of(&below).filter(|home| home.len() > module.len());
                exported.extend(path.last().cloned().map(|name| (module.clone(), name)).zip(home));
            }
        }
    }
    let mut arrows = Arrows::new();
    for (module, source) in &inside {
        let mut paths = Paths { module: module.clone(), found: Vec::new(), whole: Vec::new() };
        paths.visit_file(&source.syntax);
        for (path, line) in paths.whole {
            let Some(mut target) = file_of(&path) else { continue };
            let exports =
                path.get(target.len()).and_then(|name| exported.get(&(target.clone(), name.clone())));
            target = exports.cloned().unwrap_or(target);
            if target != *module {
                let place = format!("{}:{line}", source.path.display());
                arrows.entry((module.join("::"), target.join("::"))).or_insert(place);
            }
        }
    }
    arrows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::parsed;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<Source> =
            files.iter().map(|(name, text)| parsed(&format!("crates/x/src/{name}"), text)).collect();
        circles(&files)
    }

    #[test]
    fn a_circle_is_found_with_its_arrows() {
        let found = complaints(&[
            ("lib.rs", "pub mod a; pub mod b; mod c; pub use b::Thing;"),
            ("a/mod.rs", "use crate::Thing;"),
            ("b.rs", "use super::c::{deep::Other, more};"),
            ("c/deep.rs", "fn f() -> crate::a::X { todo() }"),
        ]);
        assert_eq!(
            found,
            ["crates/x/src:1: modules know each other in a circle: a -> b at crates/x/src/a/mod.rs:1, \
              b -> c at crates/x/src/b.rs:1, c -> a at crates/x/src/c/deep.rs:1"]
        );
    }

    #[test]
    fn files_of_one_folder_in_a_circle_are_found_through_what_their_folder_exports() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod one; mod two; pub use two::X;"),
            ("a/one.rs", "use super::X;"),
            ("a/two.rs", "use super::one::Z; #[cfg(test)] mod tests { use crate::b::Y; }"),
            ("b.rs", "use crate::a::one::Z;"),
        ];
        let files: Vec<Source> =
            files.iter().map(|(name, text)| parsed(&format!("crates/x/src/{name}"), text)).collect();
        let circle = |file: &str, other: &str| {
            (format!("crates/x/src/a/{file}.rs"), format!("in a circle with a::{other}"))
        };
        assert_eq!(file_circles(&files), [circle("one", "two"), circle("two", "one")]);
    }

    #[test]
    fn tests_and_files_of_one_folder_may_know_each_other() {
        let found = complaints(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/one.rs", "use super::two::X; #[cfg(test)] mod tests { use crate::b::Y; }"),
            ("a/two.rs", "use super::one::Z;"),
            ("b.rs", "use crate::a::one::Z;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
