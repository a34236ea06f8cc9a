//! Where the kernel's own files are, so that tests can lay out other machines.

use std::fs;
use std::path::{Path, PathBuf};

/// The roots of sysfs and procfs.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    /// `/sys`, resolved: paths within are compared with it.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
}

impl Roots {
    /// Those of this machine.
    pub(crate) fn real() -> Roots {
        Roots { sys: PathBuf::from("/sys"), proc: PathBuf::from("/proc") }
    }

    /// The text of a file under the sysfs root, trimmed; `None` when it is
    /// missing, unreadable or empty.
    pub(crate) fn sys_text(&self, relative: &str) -> Option<String> {
        text(&self.sys.join(relative))
    }

    /// The same under the procfs root.
    pub(crate) fn proc_text(&self, relative: &str) -> Option<String> {
        text(&self.proc.join(relative))
    }

    /// The directories of this process's control group of a controller and of its parents, the root last, each with
    /// the number in the first of these files that it has.
    pub(crate) fn group_files(&self, controller: &str, files: &[&str]) -> Vec<(PathBuf, u64)> {
        let limit = |directory: &PathBuf| files.iter().find_map(|name| self.number_in(directory, name));
        let directories = self.group_directories(controller).into_iter();
        directories.filter_map(|directory| limit(&directory).map(|limit| (directory, limit))).collect()
    }

    /// The directories of this process's control group of a controller and of its parents, the root last. Both
    /// layouts are looked at: all controllers in one tree, or a tree for each.
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

    /// The number in a file of a directory; `None` for `max` too.
    pub(crate) fn number_in(&self, directory: &Path, name: &str) -> Option<u64> {
        number(&directory.join(name))
    }
}

/// The text of a file, trimmed; `None` when it is missing, unreadable or empty.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The number a file holds.
pub(crate) fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The choice in brackets: `b` of `a [b] c`; the only word when there is one.
pub(crate) fn bracketed(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let chosen = words.clone().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.or_else(|| words.next().filter(|_| words.next().is_none()))
}

/// The names in a directory, sorted; none when it cannot be read.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// The last component of a path as text; empty when there is none.
pub(crate) fn base_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
