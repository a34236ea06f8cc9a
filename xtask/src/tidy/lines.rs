//! Counts lines of code by crate: lines with a token, comments and tests apart.

use super::{Source, is_for_tests};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Returns the lines of each crate.
pub fn by_crate(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut crates: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        *crates.entry(source.crate_name().to_string()).or_default() += count(source);
    }
    crates
}

/// Prints the lines of each crate and their sum.
pub fn print(root: &Path) {
    let crates = by_crate(&super::sources(root).0);
    for (name, lines) in &crates {
        println!("{name:<10} {lines:>7}");
    }
    println!("{:<10} {:>7}", "all", crates.values().sum::<usize>());
}

fn count(source: &Source) -> usize {
    let mut lines = BTreeSet::new();
    if let Ok(tokens) = source.text.parse::<TokenStream>() {
        mark(tokens, &mut lines);
    }
    let mut tests = Tests { lines };
    tests.visit_file(&source.syntax);
    tests.lines.len()
}

/// Marks the lines with tokens; skips doc comments, which are attributes to the tokeniser.
fn mark(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_mark =
            |token: &TokenTree| matches!(token, TokenTree::Punct(it) if matches!(it.as_char(), '#' | '!'));
        let behind_mark = is_mark(&token) && tokens.peek().is_some_and(|next| is_mark(next) || is_doc(next));
        if behind_mark {
            if tokens.peek().is_some_and(is_doc) {
                tokens.next();
            }
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                mark(group.stream(), lines);
                lines.insert(group.span_close().end().line);
            }
            other => lines.extend(other.span().start().line..=other.span().end().line),
        }
    }
}

fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket && matches!(first, Some(TokenTree::Ident(it)) if it == "doc")
}

/// Visitor that removes the lines of tests.
struct Tests {
    lines: BTreeSet<usize>,
}

impl Tests {
    fn leave_out(&mut self, item: &impl Spanned) {
        let span = item.span();
        self.lines.retain(|line| !(span.start().line..=span.end().line).contains(line));
    }
}

impl<'a> Visit<'a> for Tests {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if is_for_tests(&item.attrs) { self.leave_out(item) } else { visit::visit_item_mod(self, item) }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if is_for_tests(&item.attrs) {
            self.leave_out(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text = "//! Header.\n\n/// Doc.\n#[must_use]\npub fn f() -> u8 {\n    // why\n    1\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert_eq!(count(&crate::tidy::parsed("crates/x/src/a.rs", text)), 4);
    }
}
