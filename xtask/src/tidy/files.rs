//! The files of the tree, and what each may be.
//!
//! A clone keeps every version of a file for good, so a large file costs every reader from then on.
//! A new ending is a new kind of thing that reviewers and tools must know: it needs a row here, in
//! the commit that brings it.
//!
//! Files are those of [`FOLDERS`] and of the root itself, except what runs leave there. Rejected:
//! asking git for its list, because a copy without a repository would check nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the repository; others in the root were made by runs or builds.
const FOLDERS: [&str; 6] = ["bench", "claims", "crates", "docs", "studies", "xtask"];
/// Start of the names of files that runs leave in the root, as `.gitignore` has them.
const OF_RUNS: &str = "plumb";
/// Most bytes of a file.
const BYTES_MAX: u64 = 256 * 1024;
/// Endings that a file may have; `new` is a snapshot that waits for its review.
const ENDINGS: [&str; 16] = [
    "css", "gz", "html", "js", "json", "lock", "md", "new", "py", "rs", "snap", "svg", "toml", "tsv", "txt",
    "LICENSE",
];
/// Names without an ending: licences, and files of /proc that tests read.
const NAMES: [&str; 6] = ["LICENSE-APACHE", "LICENSE-MIT", "schedstat", "smaps", "stat", "status"];

/// Returns the files of the repository, relative to its root and in order, without hidden ones.
pub fn tree(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = directories.pop() {
        let is_root = directory.as_os_str().is_empty();
        for entry in fs::read_dir(root.join(&directory)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let shown = name.to_string_lossy();
            let path = directory.join(&name);
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                _ if shown.starts_with('.') => {}
                true if is_root && !FOLDERS.contains(&&*shown) => {}
                true => directories.push(path),
                false if is_root && shown.starts_with(OF_RUNS) => {}
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Returns the reason why a file may not be in the tree.
pub fn unexpected(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let is_known = match path.extension().and_then(|ending| ending.to_str()) {
        Some(ending) => ENDINGS.contains(&ending),
        None => NAMES.contains(&&*name),
    };
    (!is_known).then(|| format!("{name} has no ending of xtask/src/tidy/files.rs; expected one"))
}

/// Returns the size of a file that is too large, in words.
pub fn too_large(root: &Path, path: &Path) -> Option<String> {
    let bytes = fs::metadata(root.join(path)).map_or(0, |found| found.len());
    (bytes > BYTES_MAX).then(|| format!("{bytes} bytes, expected at most {BYTES_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_its_folders_and_the_files_of_its_root() {
        let root = tempfile::tempdir().expect("a directory");
        let kept = ["README.md", "crates/run/src/lib.rs"];
        for path in kept.into_iter().chain(["target/x.rs", "plumb.db", "crates/.hidden", ".git/config"]) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, "").expect("written");
        }
        assert_eq!(tree(root.path()), kept.map(PathBuf::from));
    }

    #[test]
    fn a_file_has_a_known_ending_and_at_most_256_kib() {
        for known in ["crates/x/a.rs", "docs/a.svg", "crates/x/tests/14/stat", "Cargo.lock", "LICENSE-MIT"] {
            assert_eq!(unexpected(Path::new(known)), None, "{known}");
        }
        for unknown in ["crates/x/a.o", "docs/a.png", "crates/x/core", "studies/plumb.db"] {
            assert!(unexpected(Path::new(unknown)).is_some(), "{unknown}");
        }
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("a.rs");
        for (bytes, expected) in
            [(BYTES_MAX, None), (BYTES_MAX + 1, Some("262145 bytes, expected at most 262144"))]
        {
            fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("written");
            assert_eq!(too_large(root.path(), Path::new("a.rs")).as_deref(), expected);
        }
    }
}
