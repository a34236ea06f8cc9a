//! Checks that no other directory reaches a database's file.

use crate::EngineError;
use plumb_io::{Directory, Disk, EntryKind, OpenMode};
use std::path::Path;

/// Rejects a file of the home that is a link, and one with a second name if it will be written.
/// Another directory may reach it too, because `cp -a` copies links, and nothing else distinguishes
/// the copy from the original.
pub(crate) fn require_own(
    home: &Directory,
    name: impl AsRef<Path>,
    mode: OpenMode,
) -> Result<(), EngineError> {
    let name = name.as_ref();
    let linked =
        |why: &str| Err(EngineError::LinkedFile { path: home.path().join(name), why: why.to_string() });
    match (home.kind(name), home.links(name)) {
        (Some(EntryKind::Link), _) => linked("it is a link"),
        (Some(EntryKind::File), Some(names)) if names > 1 && mode != OpenMode::Read => {
            linked(&format!("it has {names} names (hard links)"))
        }
        // A file that is missing, a pipe or inaccessible is reported by the call that opens it.
        _ => Ok(()),
    }
}

/// Checks a file in the home or in a directory outside it.
pub(crate) fn require_own_at(disk: &Disk, path: &Path, mode: OpenMode) -> Result<(), EngineError> {
    if let Some((home, name)) = disk.held(path) {
        return require_own(home, name, mode);
    }
    let (Some(around), Some(name)) = (path.parent().filter(|_| !disk.is_memory()), path.file_name()) else {
        return Ok(());
    };
    // An inaccessible directory is reported by the call that opens the file.
    Directory::open(around).map_or(Ok(()), |around| require_own(&around, name, mode))
}
