//! Files of a database's home that no other directory reaches.

use crate::EngineError;
use plumb_io::{Directory, EntryKind, OpenMode};
use std::path::Path;

/// Refuses a file of the home that is a link, and one with a second name if it is to be written:
/// another directory may reach it too, as `cp -a` copies links, and nothing else would tell the
/// copy from the original.
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
        // A file that is missing, a pipe or out of reach is reported by the call that opens it.
        _ => Ok(()),
    }
}
