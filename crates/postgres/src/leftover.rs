//! Leftovers of killed studies on servers of others, as this user's state directory notes them.
//!
//! ```text
//! $XDG_STATE_HOME/plumb/undo-SERVER.json         settings to put back; `plumb undo` asks first
//!                       visit-DATABASE.json      a database to drop
//!                       *.draft                  a file of these that was never whole
//! ```

use crate::address::environment;
use crate::visit::journal::{JournalFile, directory};
use crate::visit::record::PREFIX;
use crate::visit::{address_of, drop_left};
use plumb_host::leftover::{Fate, Leftover, Remains};
use plumb_host::regular::open_regular;
use plumb_units::{Bytes, visible};
use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};

/// Notes of killed studies of servers of others.
#[derive(Debug)]
pub struct VisitLeftover;

impl Leftover for VisitLeftover {
    fn elsewhere(&self) -> Vec<Remains> {
        let drafts = notes("", ".draft").into_iter().map(|draft| {
            let name = draft.display().to_string();
            let line = format!("cannot remove {name}");
            Remains::new(name, Bytes(0), Fate::Ends("it was never whole"), move || {
                fs::remove_file(&draft).map_err(|error| format!("{line}: {error}"))
            })
        });
        let databases = notes(PREFIX, ".json").into_iter().map(visited);
        journals().into_iter().map(waiting).chain(databases).chain(drafts).collect()
    }
}

/// Returns the journals of studies that were killed before they put settings back, oldest name
/// first.
#[must_use]
pub fn journals() -> Vec<PathBuf> {
    notes("undo-", ".json")
}

/// Returns the notes of this form that no running study holds.
fn notes(prefix: &str, suffix: &str) -> Vec<PathBuf> {
    let entries = directory(&environment).and_then(|directory| fs::read_dir(directory).ok());
    let is_note = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && name.ends_with(suffix) && !is_held(path)
    };
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut notes: Vec<PathBuf> = paths.filter(is_note).collect();
    notes.sort();
    notes
}

/// True if a running study holds a note. A pipe is no note, and opening it would wait for ever.
fn is_held(path: &Path) -> bool {
    open_regular(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Describes the database of a killed study. Its server is asked only when it is put away.
fn visited(record: PathBuf) -> Remains {
    let name = record.display().to_string();
    match address_of(&record) {
        Err(error) => Remains::new(name, Bytes(0), Fate::Stays(error.to_string()), || Ok(())),
        Ok(address) => {
            let shown = format!("a database on {}", visible(&address));
            let fate = Fate::Ends("asks this server, and drops it");
            Remains::new(shown, Bytes(0), fate, move || {
                drop_left(&record).map_err(|error| format!("{name}: {error}"))
            })
        }
    }
}

/// Describes a journal that waits: only a person decides about settings of a server.
fn waiting(path: PathBuf) -> Remains {
    let why = match JournalFile::take(&path) {
        Ok((_, journal)) => format!(
            "`plumb undo {}` puts {} of {} back",
            path.display(),
            journal.names().join(", "),
            visible(&journal.address)
        ),
        Err(error) => error.to_string(),
    };
    Remains::new(path.display().to_string(), Bytes(0), Fate::Stays(why), || Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_host::regular::read_regular;

    #[test]
    fn a_pipe_among_the_notes_holds_nothing_up() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let pipe = place.path().join("undo-1111111111111111.json");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
        assert!(!is_held(&pipe), "and it is refused by its kind when it is read");
        assert!(read_regular(&pipe, 1).is_err());
    }
}
