//! Rules about one file: header, functions, printing, marks and names.

use super::{Source, is_for_tests};
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FUNCTION_LINES_MAX: usize = 70;
const HEADLESS_LINES_MAX: usize = 80;
/// Words of unfinished work. They are split, so that this file passes its own check.
const UNFINISHED: [&str; 4] =
    [concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
const EMPTY_NAMES: [&str; 7] = ["manager", "helper", "helpers", "util", "utils", "common", "misc"];
/// Crates that may print; the others return text to their callers.
const PRINTERS: [&str; 3] = ["plumb", "bench", "xtask"];

/// Checks one file; each complaint starts with its line number.
pub fn check(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines: Vec<&str> = source.text.lines().collect();
    if lines.len() > HEADLESS_LINES_MAX && !lines.iter().take(3).any(|line| line.starts_with("//!")) {
        complaints.push(format!("1: {} lines and no header that says what the file is", lines.len()));
    }
    for (number, line) in lines.iter().enumerate() {
        for mark in UNFINISHED {
            if line.contains(mark) {
                complaints.push(format!("{}: {mark} marks unfinished work", number + 1));
            }
        }
    }
    let stem = source.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem) {
        complaints.push(format!("1: {stem} names nothing"));
    }
    let is_program = PRINTERS.contains(&source.crate_name()) || source.is_example();
    let prints = is_program || source.is_test() || stem == "build";
    let mut rules = Rules { complaints, prints };
    rules.visit_file(&source.syntax);
    rules.complaints
}

struct Rules {
    complaints: Vec<String>,
    prints: bool,
}

impl Rules {
    fn complain(&mut self, at: &impl Spanned, what: String) {
        self.complaints.push(format!("{}: {what}", at.span().start().line));
    }

    fn function(&mut self, public: bool, whole: &impl Spanned, signature: &syn::Signature) {
        // Counted from the signature, because the function's own span begins with its doc comment.
        let length = whole.span().end().line - signature.span().start().line + 1;
        if length > FUNCTION_LINES_MAX {
            self.complain(signature, format!("a function of {length} lines"));
        }
        let takes_bool = |argument: &syn::FnArg| match argument {
            syn::FnArg::Typed(argument) => {
                matches!(&*argument.ty, syn::Type::Path(it) if it.path.is_ident("bool"))
            }
            syn::FnArg::Receiver(_) => false,
        };
        if public && signature.inputs.iter().any(takes_bool) {
            self.complain(signature, "a public function takes a bool: name the two cases".to_string());
        }
    }
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

impl<'a> Visit<'a> for Rules {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        let prints = self.prints;
        self.prints |= is_for_tests(&item.attrs);
        self.function(is_public(&item.vis), item, &item.sig);
        visit::visit_item_fn(self, item);
        self.prints = prints;
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function(is_public(&item.vis), item, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.function(true, item, &item.sig);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let prints = self.prints;
        self.prints |= is_for_tests(&item.attrs);
        visit::visit_item_mod(self, item);
        self.prints = prints;
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        let prints = |name: &str| item.path.is_ident(name);
        if !self.prints && ["print", "println", "eprint", "eprintln"].into_iter().any(prints) {
            self.complain(item, format!("only {} print", PRINTERS.join(" and ")));
        }
        visit::visit_macro(self, item);
    }
}

/// Returns a complaint if no `mod` line declares the file: it is not compiled.
pub fn orphan(file: &Path) -> Option<String> {
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
                let line = line.trim();
                let behind =
                    line.strip_prefix("pub").map(|rest| rest.split_once(' ').map_or(rest, |(_, rest)| rest));
                behind.unwrap_or(line) == format!("mod {module};")
            })
        })
    };
    (!candidates.iter().any(declares)).then(|| "1: no mod line names this file".to_string())
}

/// True if a folder holds cargo targets rather than modules.
fn is_target(directory: &Path) -> bool {
    directory.parent().is_some_and(|parent| parent.join("Cargo.toml").exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::parsed;

    fn complaints(text: &str) -> Vec<String> {
        check(&parsed("crates/engine/src/sort/key.rs", text))
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let long = format!("fn long() {{\n{}}}\n", "    work();\n".repeat(FUNCTION_LINES_MAX));
        assert_eq!(complaints(&long), ["1: a function of 72 lines"]);
        assert_eq!(
            complaints(&"// line\n".repeat(81)),
            ["1: 81 lines and no header that says what the file is"]
        );
        assert_eq!(complaints(&format!("// {}\n", UNFINISHED[0])).len(), 1);
        assert_eq!(check(&parsed("crates/run/src/util.rs", "")), ["1: util names nothing"]);
    }

    #[test]
    fn a_bool_is_found_wherever_it_stands_among_the_parameters() {
        let found = ["1: a public function takes a bool: name the two cases"];
        assert_eq!(complaints("pub fn set(on: bool, x: u8) {}"), found);
        assert_eq!(complaints("pub fn set(x: u8, on: bool) {}"), found);
        assert_eq!(complaints("pub trait Lamp { fn set(&self, on: bool); }"), found);
        assert_eq!(complaints("impl Lamp { pub fn set(\n&self,\non: bool) {} }"), found);
        assert!(
            complaints("pub fn set(on: Switch) {} fn inner(on: bool) {} pub(crate) fn is() -> bool {}")
                .is_empty()
        );
    }

    #[test]
    fn printing_is_found_outside_the_program_and_not_in_tests() {
        assert_eq!(complaints("fn show() { println!(\"x\") }"), ["1: only plumb and bench and xtask print"]);
        assert!(complaints("#[cfg(test)] mod tests { fn show() { println!(\"x\") } }").is_empty());
        for program in ["crates/plumb/src/output.rs", "crates/engine/examples/transaction.rs"] {
            assert!(check(&parsed(program, "fn show() { eprintln!(\"x\") }")).is_empty());
        }
    }
}
