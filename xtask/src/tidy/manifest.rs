//! Compares the dependencies in the crates' manifests with those that ARCHITECTURE.md lists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Compares the Cargo.toml files with the block of ARCHITECTURE.md that starts with "```arrows":
/// one line per crate, `name: allowed dependencies`.
pub fn arrows(root: &Path) -> Vec<String> {
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

/// Returns the plumb crates in a manifest's `[dependencies]`.
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
    fn manifests_and_arrows_are_read() {
        assert_eq!(
            dependencies("[dependencies]\nplumb-io.workspace = true\nserde = \"1\"\n[lints]\nplumb-x = 1\n"),
            ["io"]
        );
        assert_eq!(allowed_arrows("x\n```arrows\nio: units events\n```\n")["io"], ["units", "events"]);
    }
}
