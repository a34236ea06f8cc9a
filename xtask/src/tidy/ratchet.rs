//! Rules that the tree breaks today: each counts its breaches per file, and the counts may only
//! shrink.
//!
//! The counts are in `left.tsv`, next to this file. A file with more breaches than its count is a
//! complaint, with the lines; one with fewer is a complaint too, until `cargo xtask tidy --shrink`
//! writes the lower count. Rejected: a list of the breaches. Lines move with each change, and a
//! reviewer can read a count per file.
//!
//! - `width`: a line of a comment or of Markdown has at most 100 columns, one of code 110.
//! - `tuple`: no function has a tuple for a parameter; an options struct, or two parameters.
//! - `opening`: a doc comment begins with a verb or a noun of the trade (`OPENINGS` are neither).
//! - `short`: no doc of four words or fewer, where docs are not owed ([`LIBRARIES`]): it repeats
//!   the name.
//! - `name`: one name, one public type in the workspace.
//! - `circle`: no circle among the files of a crate ([`super::modules`]).
//! - `invariant`: the number of an invariant is unique in its crate, and an assertion and a test
//!   cite it.
//! - `bytes` and `ending`: no file is large, and each is of a known kind ([`super::files`]).
//!
//! Limits: arguments of macros are not parsed; tables and code blocks in Markdown may be wide.

use super::{Source, files, modules};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

/// Path of the counts, relative to the root.
const LEFT: &str = "xtask/src/tidy/left.tsv";
/// Most columns of a comment or of Markdown.
const TEXT_COLUMNS: usize = 100;
/// Most columns of code, as in rustfmt.toml.
const CODE_COLUMNS: usize = 110;
/// A doc with at most this many words is taken to repeat the name.
const SHORT: usize = 4;
/// Crates whose public items need a doc, however short.
const LIBRARIES: [&str; 8] = ["units", "events", "types", "host", "io", "engine", "proof", "workload"];
/// First words that a doc may not have.
const OPENINGS: [&str; 10] =
    ["What", "Whether", "How", "Its", "Their", "Which", "Where", "That of", "Those of", "By which"];
/// Lines that a complaint shows.
const SHOWN: usize = 5;

/// Breaches by file and rule: the line of each, and its text.
type Breaches = BTreeMap<(String, String), Vec<(usize, String)>>;

/// Returns a complaint for each file and rule whose count is not the one of `left.tsv`.
pub fn check(root: &Path, sources: &[Source]) -> Vec<String> {
    let (found, left) = (breaches(root, sources), left(root));
    let mut complaints = Vec::new();
    for (key, breaches) in &found {
        let (rule, path) = key;
        let allowed = left.get(key).copied().unwrap_or(0);
        if breaches.len() > allowed {
            let shown = breaches.iter().take(SHOWN).map(|(line, what)| format!("line {line}: {what}"));
            let (line, count) = (breaches[0].0, breaches.len());
            let shown = shown.collect::<Vec<_>>().join("; ");
            complaints.push(format!("{path}:{line}: {rule}: {count} found, expected {allowed}: {shown}"));
        }
    }
    for (key, allowed) in &left {
        let (rule, path) = key;
        let count = found.get(key).map_or(0, Vec::len);
        if count < *allowed {
            complaints.push(format!(
                "{path}:1: {rule}: {count} found, {allowed} in {LEFT}; `cargo xtask tidy --shrink` notes it"
            ));
        }
    }
    complaints
}

/// Writes the counts that have shrunk; all counts if there is no file of counts.
pub fn shrink(root: &Path, sources: &[Source]) -> std::io::Result<()> {
    let (found, left, path) = (breaches(root, sources), left(root), root.join(LEFT));
    let is_new = !path.exists();
    let mut text = String::new();
    for (key, breaches) in found {
        let allowed = left.get(&key).copied().unwrap_or(if is_new { usize::MAX } else { 0 });
        let count = breaches.len().min(allowed);
        if count > 0 {
            let (rule, file) = key;
            text.push_str(&format!("{rule}\t{file}\t{count}\n"));
        }
    }
    fs::write(path, text)
}

fn left(root: &Path) -> BTreeMap<(String, String), usize> {
    let text = fs::read_to_string(root.join(LEFT)).unwrap_or_default();
    let row = |line: &str| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().map(str::to_string);
        Some(((next()?, next()?), next()?.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

fn breaches(root: &Path, sources: &[Source]) -> Breaches {
    let mut found = Breaches::new();
    for source in sources {
        let path = source.path.display().to_string();
        let mut add = |rule: &str, breaches: Vec<(usize, String)>| {
            if !breaches.is_empty() {
                found.entry((rule.to_string(), path.clone())).or_default().extend(breaches);
            }
        };
        add("width", wide_code(&source.text));
        let [openings, short] = docs(source);
        add("opening", openings);
        add("short", short);
        add("tuple", tuples(source));
    }
    for path in files::tree(root) {
        let shown = path.display().to_string();
        let mut add =
            |rule: &str, what| found.entry((rule.to_string(), shown.clone())).or_default().push(what);
        files::too_large(root, &path).into_iter().for_each(|what| add("bytes", (1, what)));
        files::unexpected(&path).into_iter().for_each(|what| add("ending", (1, what)));
        if is_page(&path) {
            let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
            wide_page(&text).into_iter().for_each(|what| add("width", what));
        }
    }
    for (rule, path, line, what) in names(sources).into_iter().chain(invariants(sources)) {
        found.entry((rule.to_string(), path)).or_default().push((line, what));
    }
    for (path, what) in modules::file_circles(sources) {
        found.entry(("circle".to_string(), path)).or_default().push((1, what));
    }
    found
}

fn columns(line: &str) -> usize {
    line.chars().count()
}

fn wide_code(text: &str) -> Vec<(usize, String)> {
    let limit = |line: &str| if line.trim_start().starts_with("//") { TEXT_COLUMNS } else { CODE_COLUMNS };
    // A string literal cannot be broken without a change of code.
    let is_cuttable = |line: &str| line.trim_start().starts_with("//") || !line.contains('"');
    let lines = text.lines().enumerate().filter(|(_, line)| columns(line) > limit(line) && is_cuttable(line));
    lines.map(|(number, line)| (number + 1, format!("{} columns", columns(line)))).collect()
}

/// True for a page written by hand. The changelog is exempt, because an entry is one line.
fn is_page(path: &Path) -> bool {
    let is_text = path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("CHANGELOG.md");
    is_text && !path.iter().any(|part| part == "snapshots")
}

fn wide_page(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let is_free = is_code || line.starts_with("    ") || line.starts_with('|') || line.contains("](");
        if !is_free && columns(line) > TEXT_COLUMNS {
            found.push((number + 1, format!("{} columns", columns(line))));
        }
    }
    found
}

/// Returns the breaches of `opening` and `short` in a file. Consecutive lines of `///` are one doc.
fn docs(source: &Source) -> [Vec<(usize, String)>; 2] {
    let owes = LIBRARIES.contains(&source.crate_name());
    let (mut openings, mut short) = (Vec::new(), Vec::new());
    let mut lines = source.text.lines().map(str::trim_start).enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let Some(first) = line.strip_prefix("///") else { continue };
        let mut text = first.trim().to_string();
        while let Some(more) = lines.peek().and_then(|(_, line)| line.strip_prefix("///")) {
            text = format!("{text} {}", more.trim());
            lines.next();
        }
        let begins =
            |opening: &&&str| text.strip_prefix(**opening).is_some_and(|rest| rest.starts_with([' ', ',']));
        if let Some(opening) = OPENINGS.iter().find(begins) {
            openings.push((number + 1, format!("begins with {opening:?}")));
        }
        if !owes && text.split_whitespace().count() <= SHORT {
            short.push((number + 1, format!("{text:?} repeats the name")));
        }
    }
    [openings, short]
}

/// Returns the functions with a tuple as a parameter.
fn tuples(source: &Source) -> Vec<(usize, String)> {
    let mut tuples = Tuples(Vec::new());
    tuples.visit_file(&source.syntax);
    tuples.0
}

struct Tuples(Vec<(usize, String)>);

impl<'a> Visit<'a> for Tuples {
    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        let is_tuple = |argument: &syn::FnArg| match argument {
            syn::FnArg::Typed(argument) => {
                matches!(&*argument.ty, syn::Type::Tuple(tuple) if !tuple.elems.is_empty())
            }
            syn::FnArg::Receiver(_) => false,
        };
        if signature.inputs.iter().any(is_tuple) {
            let line = signature.ident.span().start().line;
            self.0.push((line, format!("{} takes a tuple", signature.ident)));
        }
        visit::visit_signature(self, signature);
    }
}

/// A breach: rule, file, line and text.
type Breach = (&'static str, String, usize, String);

/// Returns the public types whose name another crate uses for a type of its own.
fn names(sources: &[Source]) -> Vec<Breach> {
    let mut named: BTreeMap<String, Vec<(&str, String, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for item in &source.syntax.items {
            let (visibility, name) = match item {
                syn::Item::Struct(item) => (&item.vis, &item.ident),
                syn::Item::Enum(item) => (&item.vis, &item.ident),
                syn::Item::Trait(item) => (&item.vis, &item.ident),
                syn::Item::Type(item) => (&item.vis, &item.ident),
                _ => continue,
            };
            if matches!(visibility, syn::Visibility::Public(_)) {
                let place = (source.path.display().to_string(), name.span().start().line);
                named.entry(name.to_string()).or_default().push((source.crate_name(), place.0, place.1));
            }
        }
    }
    let mut found = Vec::new();
    for (name, places) in named {
        for (index, (_, path, line)) in places.iter().enumerate().skip(1) {
            let (_, other, _) = &places[index - 1];
            found.push(("name", path.clone(), *line, format!("{name} is a public type of {other} too")));
        }
    }
    found
}

/// Returns the invariants (`- B7 Text` in a header) whose number is taken in their crate, or that
/// no assertion or no test cites.
fn invariants(sources: &[Source]) -> Vec<Breach> {
    let mut found = Vec::new();
    let mut taken: BTreeSet<(&str, String)> = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let own = || sources.iter().filter(|other| other.crate_name() == source.crate_name());
        for (number, line) in source.text.lines().enumerate() {
            let Some(name) = line.strip_prefix("//! - ").and_then(invariant) else { continue };
            let mut breach = |what: String| {
                found.push(("invariant", source.path.display().to_string(), number + 1, what));
            };
            if !taken.insert((source.crate_name(), name.to_string())) {
                breach(format!("{name} is another invariant of the crate too"));
            }
            let cited = |place| own().any(|other| cites(other, name, place));
            if !cited(Place::Code) {
                breach(format!("no assertion cites {name}"));
            }
            if !cited(Place::Test) {
                breach(format!("no test cites {name}"));
            }
        }
    }
    found
}

/// The two kinds of places that must cite an invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    Test,
}

/// Returns the number at the start of an invariant: a capital letter and digits.
fn invariant(text: &str) -> Option<&str> {
    let name = text.split([' ', '.', ':']).next()?;
    let digits = name.strip_prefix(|first: char| first.is_ascii_uppercase())?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some(name)
}

/// True if a line of this kind of place cites an invariant. Lines after `mod tests` are tests,
/// and headers do not count.
fn cites(source: &Source, name: &str, place: Place) -> bool {
    let mut here = if source.is_test() { Place::Test } else { Place::Code };
    source.text.lines().any(|line| {
        if line.trim_start().starts_with("mod tests") {
            here = Place::Test;
        }
        let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
        here == place && !line.starts_with("//!") && words.any(|word| word == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::parsed;

    fn found(path: &str, text: &str) -> Vec<String> {
        let nowhere = tempfile::tempdir().expect("a directory");
        let found = breaches(nowhere.path(), &[parsed(path, text)]);
        let line = |((rule, _), all): (_, Vec<(usize, String)>)| {
            all.into_iter().map(|(line, what)| format!("{rule} {line}: {what}")).collect::<Vec<_>>()
        };
        found.into_iter().flat_map(line).collect()
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let path = "crates/run/src/x.rs";
        let wide = format!("/// {}\npub fn f() {{}}\n", "word ".repeat(21));
        assert_eq!(found(path, &wide), ["width 1: 109 columns"]);
        assert_eq!(
            found(path, "/// What it is, and why at all.\nfn f() {}"),
            ["opening 1: begins with \"What\""]
        );
        assert_eq!(
            found(path, "/// The name of it.\nfn f() {}"),
            ["short 1: \"The name of it.\" repeats the name"]
        );
        assert_eq!(
            found("crates/io/src/x.rs", "/// Its name.\nfn f() {}"),
            ["opening 1: begins with \"Its\""]
        );
        assert_eq!(found(path, "fn f((a, b): (u8, u8)) {}"), ["tuple 1: f takes a tuple"]);
        assert_eq!(found(path, "fn f(a: (), b: &[(u8, u8)]) {}"), Vec::<String>::new());
    }

    #[test]
    fn an_invariant_needs_its_own_number_an_assertion_and_a_test() {
        let path = "crates/io/src/x.rs";
        let header = "//! - B7 Nothing is lost.\n";
        let both = ["invariant 1: no assertion cites B7", "invariant 1: no test cites B7"];
        assert_eq!(found(path, header), both);
        let cited = format!(
            "{header}fn f() {{ assert!(true, \"B7\"); }}\nmod tests {{ fn t() {{ assert!(true, \"B7\"); }} }}"
        );
        assert_eq!(found(path, &cited), Vec::<String>::new());
        let twice = format!("{header}{cited}");
        assert_eq!(found(path, &twice), ["invariant 2: B7 is another invariant of the crate too"]);
    }

    #[test]
    fn two_crates_do_not_name_their_types_alike() {
        let sources = [
            parsed("crates/io/src/x.rs", "pub struct File;"),
            parsed("crates/run/src/x.rs", "pub struct File; struct Own;"),
        ];
        let what = names(&sources).into_iter().map(|(_, path, _, what)| (path, what)).collect::<Vec<_>>();
        let other = "File is a public type of crates/io/src/x.rs too";
        assert_eq!(what, [("crates/run/src/x.rs".to_string(), other.to_string())]);
    }

    #[test]
    fn counts_may_shrink_and_not_grow() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("xtask/src/tidy")).expect("a directory");
        let source = |count: usize| parsed("crates/run/src/x.rs", &"fn f(a: (u8, u8)) {}\n".repeat(count));
        shrink(root.path(), &[source(2)]).expect("written");
        assert!(check(root.path(), &[source(2)]).is_empty());
        let more = check(root.path(), &[source(3)]);
        assert!(
            more[0].starts_with("crates/run/src/x.rs:1: tuple: 3 found, expected 2: line 1: f takes"),
            "{more:?}"
        );
        let fewer = check(root.path(), &[source(1)]);
        assert!(fewer[0].contains("tuple: 1 found, 2 in xtask/src/tidy/left.tsv"), "{fewer:?}");
        shrink(root.path(), &[source(3)]).expect("written");
        assert!(!check(root.path(), &[source(3)]).is_empty(), "no count grows");
    }
}
