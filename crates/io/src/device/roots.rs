//! Where the kernel's own files are, so that tests can lay out other machines.

use std::fs;
use std::path::{Path, PathBuf};

/// The roots of sysfs and procfs.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    /// `/sys`, resolved: paths within are compared with it.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
}

impl Roots {
    /// Those of this machine.
    pub(super) fn real() -> Roots {
        Roots { sys: PathBuf::from("/sys"), proc: PathBuf::from("/proc") }
    }

    /// The text of a file under the sysfs root, trimmed; `None` when it is
    /// missing, unreadable or empty.
    pub(super) fn sys_text(&self, relative: &str) -> Option<String> {
        text(&self.sys.join(relative))
    }

    /// The same under the procfs root.
    pub(super) fn proc_text(&self, relative: &str) -> Option<String> {
        text(&self.proc.join(relative))
    }
}

/// The text of a file, trimmed; `None` when it is missing, unreadable or empty.
pub(super) fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The number a file holds.
pub(super) fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The choice in brackets: `b` of `a [b] c`; the only word when there is one.
pub(super) fn bracketed(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let chosen = words.clone().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.or_else(|| words.next().filter(|_| words.next().is_none()))
}

/// The names in a directory, sorted; none when it cannot be read.
pub(super) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// The last component of a path as text; empty when there is none.
pub(super) fn base_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
