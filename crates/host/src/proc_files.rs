//! The kernel's files about a process in /proc: texts, links and descriptors, unparsed.
//!
//! A file that is missing and one that this user may not read give the same answer, `None`: the
//! process may end between two reads, and a caller can do nothing about either.
//!
//! A process is named by its number, or as `self`: in a container /proc may have other numbers than
//! the process itself.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

/// Returns a text of a process, such as `status`.
#[must_use]
pub fn text(process: impl Display, name: &str) -> Option<String> {
    let text = fs::read(format!("/proc/{process}/{name}")).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the target of a link of a process, such as `exe`.
#[must_use]
pub fn link(process: impl Display, name: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/{name}")).ok()
}

/// Returns the numbers of all processes that this one sees.
pub fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// An open descriptor of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Number of the descriptor in its process.
    pub number: i32,
    /// File, or the kernel's word for something else, such as `socket:[7]`.
    pub target: PathBuf,
    pid: i32,
}

impl Descriptor {
    /// Returns the text of its position and flags.
    #[must_use]
    pub fn info(&self) -> Option<String> {
        text(self.pid, &format!("fdinfo/{}", self.number))
    }
}

/// Returns the open descriptors of a process; none if this user may not see them.
pub fn descriptors(pid: i32) -> impl Iterator<Item = Descriptor> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some(Descriptor { number, target: fs::read_link(entry.path()).ok()?, pid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_this_process_are_read_and_those_of_none_are_not() {
        let own = i32::try_from(std::process::id()).expect("a number");
        assert!(text(own, "status").is_some_and(|status| status.starts_with("Name:")));
        assert_eq!(link("self", "exe"), std::env::current_exe().ok());
        assert!(all().any(|number| number == own));
        let file = tempfile::NamedTempFile::new().expect("a file");
        let found = descriptors(own).find(|open| open.target == file.path()).expect("it is open");
        assert!(found.info().is_some_and(|info| info.contains("flags:")), "{found:?}");
        assert_eq!((text(i32::MAX, "status"), link(i32::MAX, "exe")), (None, None));
        assert_eq!(descriptors(i32::MAX).count(), 0);
    }
}
