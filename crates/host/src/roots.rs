//! Paths of the kernel's own files, which tests replace to lay out other machines.

use std::fs;
use std::path::{Path, PathBuf};

/// The roots of sysfs and procfs.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    /// Resolved `/sys`, because paths within are compared with it.
    pub sys: PathBuf,
    pub proc: PathBuf,
}

impl Roots {
    pub(crate) fn real() -> Roots {
        Roots { sys: PathBuf::from("/sys"), proc: PathBuf::from("/proc") }
    }

    /// Reads a file under the sysfs root, trimmed; `None` when it is missing, unreadable or empty.
    pub(crate) fn sys_text(&self, relative: &str) -> Option<String> {
        text(&self.sys.join(relative))
    }

    /// Reads a file under the procfs root in the same way.
    pub(crate) fn proc_text(&self, relative: &str) -> Option<String> {
        text(&self.proc.join(relative))
    }

    /// Returns the directories of this process's control group of a controller and of its parents,
    /// the root last. Each comes with the number in the first of these files that it has.
    pub(crate) fn group_files(&self, controller: &str, files: &[&str]) -> Vec<(PathBuf, u64)> {
        let limit = |directory: &PathBuf| files.iter().find_map(|name| self.number_in(directory, name));
        let directories = self.group_directories(controller).into_iter();
        directories.filter_map(|directory| limit(&directory).map(|limit| (directory, limit))).collect()
    }

    /// Returns the directories of this process's control group of a controller and of its parents,
    /// the root last. Reads both layouts: all controllers in one tree, or a tree for each.
    pub(crate) fn group_directories(&self, controller: &str) -> Vec<PathBuf> {
        let groups = self.proc_text("self/cgroup").unwrap_or_default();
        let root = self.sys.join("fs/cgroup");
        let mut found = Vec::new();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(names), Some(path)) = (fields.next(), fields.next()) else { continue };
            let tree = match names {
                "" => root.clone(),
                names if names.split(',').any(|name| name == controller) => root.join(controller),
                _ => continue,
            };
            let group = tree.join(path.trim_start_matches('/'));
            let inside = group.ancestors().take_while(|directory| directory.starts_with(&tree));
            found.extend(inside.map(Path::to_path_buf));
        }
        found
    }

    /// Reads the number in a file; `None` for `max`, too.
    pub(crate) fn number_in(&self, directory: &Path, name: &str) -> Option<u64> {
        number(&directory.join(name))
    }
}

/// Reads a file, trimmed; `None` when it is missing, unreadable or empty.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

pub(crate) fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Returns the choice in brackets, `b` of `a [b] c`; without brackets the only word.
pub(crate) fn bracketed(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let chosen = words.clone().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.or_else(|| words.next().filter(|_| words.next().is_none()))
}

/// Returns the names in a directory, sorted; none when it cannot be read.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Returns the last component of a path as text; empty when there is none.
pub(crate) fn base_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
