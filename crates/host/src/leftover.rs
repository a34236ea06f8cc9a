//! Leftovers of killed processes: each maker of things that outlive a kill says how to find them,
//! and how to put them away.
//!
//! ```text
//! maker ──implements──> Leftover ──a row of──> the program's list ──> list, remove
//! ```
//!
//! Most leftovers are marked files and directories ([`owner`](crate::owner)). A search offers each
//! one to the makers in turn. A maker recognises it by its name or its parts. Other leftovers lie
//! in no searched directory, as a database on another machine: their maker finds them itself.
//!
//! A leftover belongs to a process that has ended. The lock of its mark decides, otherwise the
//! number of the process together with its start time, because numbers are reused.
//!
//! Rejected: one list of all names in one place. It lacked every name that a maker got later.

use plumb_units::Bytes;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// A maker of things that outlive a kill. The default methods find nothing.
pub trait Leftover: Sync {
    /// Recognises a marked file or directory of a dead process.
    fn claim(&self, _marked: &Path) -> Option<MakerClaim> {
        None
    }

    /// True if the maker makes a part of this name, relative to the marked directory. Of a marked
    /// file the only part is the file, with an empty name.
    fn makes(&self, _part: &MarkedPart<'_>) -> bool {
        false
    }

    /// Ends the use of a marked file or directory, before its parts are removed.
    ///
    /// # Errors
    /// When it is still in use, or an original cannot be restored.
    fn release(&self, _marked: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Returns other marked directories that the same process may have made.
    fn others(&self, _marked: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Finds leftovers that lie in no searched directory.
    fn elsewhere(&self) -> Vec<Remains> {
        Vec::new()
    }
}

/// Reason why a marked file or directory is a maker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MakerClaim {
    /// The name: other parts in it are strays.
    Name,
    /// The parts: at least one must be the maker's, unless there is none.
    Parts,
    /// A file that was overwritten, and is restored by [`Leftover::release`].
    Original,
}

/// Claims marked directories whose name begins with a prefix.
pub fn named(marked: &Path, prefix: &str) -> Option<MakerClaim> {
    let is_named = marked.file_name()?.to_str()?.starts_with(prefix) && marked.is_dir();
    is_named.then_some(MakerClaim::Name)
}

/// A part of a marked directory; links are not followed.
#[derive(Debug, Clone, Copy)]
pub struct MarkedPart<'p> {
    /// Name relative to the marked directory.
    pub name: &'p Path,
    /// File, directory or another kind; a link is no part.
    pub kind: PartKind,
}

/// Kinds of parts that a maker may have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A regular file, removed by its name.
    File,
    /// A directory. If it is the maker's, its entries are parts, too.
    Directory,
    /// A socket, a pipe or a device.
    Special,
}

impl MarkedPart<'_> {
    /// Returns the name as text, if it has no directory before it.
    pub fn top(&self) -> Option<&str> {
        self.name.to_str().filter(|name| !name.contains('/'))
    }

    /// True for a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == PartKind::File
    }
}

/// Effect of putting a leftover away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is removed without a remark.
    Removed,
    /// It is removed, or restored, with this remark.
    Ends(&'static str),
    /// It stays, for this reason.
    Stays(String),
}

/// A leftover that was found.
pub struct Remains {
    /// Path, or another name, as a list shows it.
    pub name: String,
    /// Bytes allocated on the file system.
    pub bytes: Bytes,
    /// Result of putting it away.
    pub fate: Fate,
    put_away: Box<dyn FnOnce() -> Result<(), String>>,
}

impl Remains {
    /// Describes a leftover, with the way to put it away, which fails with one line.
    pub fn new(
        name: String,
        bytes: Bytes,
        fate: Fate,
        put_away: impl FnOnce() -> Result<(), String> + 'static,
    ) -> Remains {
        Remains { name, bytes, fate, put_away: Box::new(put_away) }
    }

    /// Removes or restores the leftover; one that stays is left alone.
    ///
    /// # Errors
    /// With a line that names it.
    pub fn put_away(self) -> Result<(), String> {
        match self.fate {
            Fate::Stays(_) => Ok(()),
            _ => (self.put_away)(),
        }
    }

    /// Returns the bytes that putting it away frees.
    pub fn freed(&self) -> Bytes {
        if matches!(self.fate, Fate::Stays(_)) { Bytes(0) } else { self.bytes }
    }
}

impl fmt::Debug for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remains").field("name", &self.name).field("fate", &self.fate).finish_non_exhaustive()
    }
}
