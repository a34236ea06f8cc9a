//! Snapshot of the public items of the library crates, so that a review sees each new one.
//!
//! `INSTA_UPDATE=always cargo test -p xtask` accepts a change. The snapshot lists names and kinds
//! without signatures, because its purpose is to limit the number of items.

use super::{Source, is_for_tests};
use std::collections::BTreeMap;

/// Returns one line per item: `sort::merge  fn merge_runs`.
fn items(sources: &[Source], name: &str) -> String {
    let mut files: BTreeMap<String, &Source> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.crate_name() == name && !source.is_test()) {
        let path = source.path.with_extension("").display().to_string();
        if let Some((_, module)) = path.split_once("/src/") {
            files.insert(module.trim_end_matches("/mod").replace('/', "::"), source);
        }
    }
    let mut lines = Vec::new();
    if let Some(root) = files.get("lib") {
        list(&files, "", &root.syntax.items, &mut lines);
    }
    lines.sort();
    lines.join("\n")
}

fn list(files: &BTreeMap<String, &Source>, module: &str, items: &[syn::Item], lines: &mut Vec<String>) {
    let mut line = |visibility: &syn::Visibility, kind: &str, name: String| {
        if matches!(visibility, syn::Visibility::Public(_)) {
            lines.push(format!("{module}  {kind} {name}"));
        }
    };
    let mut inner = Vec::new();
    for item in items {
        match item {
            syn::Item::Const(it) => line(&it.vis, "const", it.ident.to_string()),
            syn::Item::Enum(it) => line(&it.vis, "enum", it.ident.to_string()),
            syn::Item::Fn(it) => line(&it.vis, "fn", it.sig.ident.to_string()),
            syn::Item::Static(it) => line(&it.vis, "static", it.ident.to_string()),
            syn::Item::Struct(it) => line(&it.vis, "struct", it.ident.to_string()),
            syn::Item::Trait(it) => line(&it.vis, "trait", it.ident.to_string()),
            syn::Item::Type(it) => line(&it.vis, "type", it.ident.to_string()),
            syn::Item::Use(it) => {
                for name in use_names(&it.tree) {
                    line(&it.vis, "use", name);
                }
            }
            syn::Item::Impl(it) if it.trait_.is_none() && !is_for_tests(&it.attrs) => {
                let owner = type_name(&it.self_ty);
                for item in &it.items {
                    match item {
                        syn::ImplItem::Fn(it) => line(&it.vis, "fn", format!("{owner}::{}", it.sig.ident)),
                        syn::ImplItem::Const(it) => line(&it.vis, "const", format!("{owner}::{}", it.ident)),
                        _ => {}
                    }
                }
            }
            syn::Item::Mod(it) if matches!(it.vis, syn::Visibility::Public(_)) => inner.push(it),
            _ => {}
        }
    }
    for it in inner {
        let path = if module.is_empty() { it.ident.to_string() } else { format!("{module}::{}", it.ident) };
        let items =
            it.content.as_ref().map(|(_, items)| items).or(files.get(&path).map(|file| &file.syntax.items));
        list(files, &path, items.map_or(&[], Vec::as_slice), lines);
    }
}

fn use_names(tree: &syn::UseTree) -> Vec<String> {
    match tree {
        syn::UseTree::Path(path) => use_names(&path.tree),
        syn::UseTree::Name(name) => vec![name.ident.to_string()],
        syn::UseTree::Rename(name) => vec![name.rename.to_string()],
        syn::UseTree::Glob(_) => vec!["*".to_string()],
        syn::UseTree::Group(group) => group.items.iter().flat_map(use_names).collect(),
    }
}

fn type_name(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Path(it) => it.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}

#[test]
fn the_public_items_of_the_libraries_are_these() {
    let (sources, _) = super::sources(&crate::workspace());
    for name in ["host", "io", "engine", "proof"] {
        insta::assert_snapshot!(name, items(&sources, name));
    }
}
