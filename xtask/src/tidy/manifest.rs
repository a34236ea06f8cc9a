//! Compares the dependencies in the crates' manifests with those that ARCHITECTURE.md lists, and
//! the profiles of the workspace with each other.

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

/// Complains about each package that `release` does not optimise and `dist` does not name: cargo
/// inherits the rows of packages, so the installed program would have it unoptimised.
pub fn profiles(root: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let levels = |profile: &str| -> BTreeMap<String, String> {
        let begin = format!("profile.{profile}.package.");
        let sections = manifest.split("\n[").filter_map(|section| section.strip_prefix(&begin));
        sections.filter_map(level).collect()
    };
    let (release, dist) = (levels("release"), levels("dist"));
    let lost = release
        .iter()
        .filter(|(package, level)| *level != "3" && dist.get(*package).is_none_or(|level| level != "3"));
    lost.map(|(package, level)| {
        format!(
            "Cargo.toml:1: profile dist has no opt-level 3 for {package}, which release compiles at {level}"
        )
    })
    .collect()
}

/// Returns the package of a profile's section and its opt-level.
fn level(section: &str) -> Option<(String, String)> {
    let (package, rows) = section.split_once(']')?;
    let level = rows.lines().find_map(|row| row.strip_prefix("opt-level = "))?;
    Some((package.to_string(), level.to_string()))
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
    fn a_package_that_dist_would_not_optimise_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let text = "[profile.release.package.a]\nopt-level = 0\n\n[profile.release.package.b]\nopt-level = 1\n\n\
                    [profile.release.package.c]\nopt-level = 3\n\n[profile.dist.package.a]\nopt-level = 3\n";
        std::fs::write(root.path().join("Cargo.toml"), format!("[workspace]\n{text}")).expect("written");
        let complaint = "Cargo.toml:1: profile dist has no opt-level 3 for b, which release compiles at 1";
        assert_eq!(profiles(root.path()), [complaint]);
    }

    #[test]
    fn manifests_and_arrows_are_read() {
        assert_eq!(
            dependencies("[dependencies]\nplumb-io.workspace = true\nserde = \"1\"\n[lints]\nplumb-x = 1\n"),
            ["io"]
        );
        assert_eq!(allowed_arrows("x\n```arrows\nio: units events\n```\n")["io"], ["units", "events"]);
    }
}
