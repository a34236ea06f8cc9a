//! Rules of the house that a program can check. Also run by `cargo test`.
//!
//! - Arrows: a crate depends only on those that ARCHITECTURE.md allows it.
//! - A file of more than 80 lines says in a header what it is.
//! - A function has at most 70 lines.
//! - No public function takes a bool.
//! - No mark of unfinished work, no name that means nothing, no file outside the tree of modules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const FUNCTION_LINES_MAX: usize = 70;
const HEADLESS_LINES_MAX: usize = 80;
/// Spelled apart, so that this file passes its own check.
const UNFINISHED: [&str; 4] =
    [concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
const EMPTY_NAMES: [&str; 7] = ["manager", "helper", "helpers", "util", "utils", "common", "misc"];

/// Every breach, as `file:line: what`.
pub fn check(root: &Path) -> Vec<String> {
    let mut complaints = arrows(root);
    for file in sources(root) {
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let Ok(text) = fs::read_to_string(&file) else {
            complaints.push(format!("{shown}: cannot be read"));
            continue;
        };
        let mut found = source(&text);
        found.extend(name(&file));
        found.extend(orphan(&file));
        complaints.extend(found.into_iter().map(|what| format!("{shown}:{what}")));
    }
    complaints
}

/// Rust files of the crates and of this one.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![root.join("crates"), root.join("xtask")];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Checks the text of one file; each complaint starts with its line number.
fn source(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > HEADLESS_LINES_MAX && !lines.iter().take(3).any(|line| line.starts_with("//!")) {
        complaints.push(format!("1: {} lines and no header that says what the file is", lines.len()));
    }
    for (number, line) in lines.iter().enumerate() {
        for mark in UNFINISHED {
            if line.contains(mark) {
                complaints.push(format!("{}: {mark} marks unfinished work", number + 1));
            }
        }
        if line.trim_start().starts_with("pub fn ") && line.contains(": bool,") {
            complaints.push(format!("{}: a public function takes a bool: name the two cases", number + 1));
        }
    }
    complaints.extend(long_functions(&lines));
    complaints
}

/// Functions are found by their first line and the closing brace at its indentation.
fn long_functions(lines: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (number, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if begins_function(line.trim_start()) {
            open = Some((number, indent));
        }
        if let Some((start, at)) = open
            && line.trim_end() == format!("{}}}", " ".repeat(at))
        {
            let length = number - start + 1;
            if length > FUNCTION_LINES_MAX {
                complaints.push(format!("{}: a function of {length} lines", start + 1));
            }
            open = None;
        }
    }
    complaints
}

fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| !matches!(*word, "pub" | "pub(crate)" | "pub(super)" | "const" | "unsafe"))
        == Some("fn")
}

fn name(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    EMPTY_NAMES.contains(&stem).then(|| format!("1: {stem} names nothing"))
}

/// A file that no `mod` line names is dead.
fn orphan(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    let directory = file.parent()?;
    let folder = directory.file_name()?.to_str()?;
    if matches!(stem, "main" | "lib" | "build")
        || matches!(folder, "tests" | "benches" | "examples" | "bin")
            && stem != "mod"
            && !directory.join("mod.rs").exists()
            && is_target(directory)
    {
        return None;
    }
    let (owner_directory, module) =
        if stem == "mod" { (directory.parent()?, folder) } else { (directory, stem) };
    let inside = owner_directory.file_name()?.to_str()?;
    let candidates = [
        owner_directory.join("lib.rs"),
        owner_directory.join("main.rs"),
        owner_directory.join("mod.rs"),
        owner_directory.parent()?.join(format!("{inside}.rs")),
    ];
    let declares = |path: &PathBuf| {
        fs::read_to_string(path).is_ok_and(|text| {
            text.lines().any(|line| {
                line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ")
                    == format!("mod {module};")
            })
        })
    };
    (!candidates.iter().any(declares)).then(|| "1: no mod line names this file".to_string())
}

/// Whether a folder holds cargo targets rather than modules.
fn is_target(directory: &Path) -> bool {
    directory.parent().is_some_and(|parent| parent.join("Cargo.toml").exists())
}

/// Compares the Cargo.toml files with the block of ARCHITECTURE.md that starts
/// with "```arrows": one line a crate, `name: what it may depend on`.
fn arrows(root: &Path) -> Vec<String> {
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let allowed = allowed_arrows(&architecture);
    if allowed.is_empty() {
        return vec!["ARCHITECTURE.md:1: no block ```arrows that lists what may depend on what".to_string()];
    }
    let mut complaints = Vec::new();
    let Ok(entries) = fs::read_dir(root.join("crates")) else { return complaints };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
        for dependency in dependencies(&manifest) {
            if !allowed.get(&name).is_some_and(|may| may.contains(&dependency)) {
                complaints.push(format!(
                    "crates/{name}/Cargo.toml:1: {name} -> {dependency} is no arrow of ARCHITECTURE.md"
                ));
            }
        }
    }
    complaints.sort();
    complaints
}

fn allowed_arrows(architecture: &str) -> BTreeMap<String, Vec<String>> {
    let block =
        architecture.split("```arrows\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or("");
    block
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, may)| (name.trim().to_string(), may.split_whitespace().map(str::to_string).collect()))
        .collect()
}

/// The plumb crates that a manifest's `[dependencies]` name.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("[dependencies]").nth(1).unwrap_or("");
    let section = section.split("\n[").next().unwrap_or("");
    section
        .lines()
        .filter_map(|line| line.trim().strip_prefix("plumb-"))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let complaints = check(&crate::workspace());
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let long = format!("fn long() {{\n{}}}\n", "    work();\n".repeat(FUNCTION_LINES_MAX));
        assert_eq!(source(&long), ["1: a function of 72 lines"]);
        assert_eq!(source(&"// line\n".repeat(81)), ["1: 81 lines and no header that says what the file is"]);
        assert_eq!(source(&format!("// {}\n", UNFINISHED[0])).len(), 1);
        assert_eq!(source("pub fn set(on: bool, x: u8) {}\n").len(), 1);
        assert!(source("pub fn set(on: Switch) {}\n").is_empty());
        assert_eq!(
            dependencies("[dependencies]\nplumb-io.workspace = true\nserde = \"1\"\n[lints]\nplumb-x = 1\n"),
            ["io"]
        );
        assert_eq!(allowed_arrows("x\n```arrows\nio: units events\n```\n")["io"], ["units", "events"]);
    }
}
