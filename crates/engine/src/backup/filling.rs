//! The directory that a backup or a restore fills; its files are removed unless it is completed.
//!
//! The directory is held by its descriptor and bears the mark of this process. Another process that
//! would fill it is refused. The mark of a killed process is taken over with its files, which all
//! have names that the engine makes.

use super::manifest::{MANIFEST, is_engine_name};
use super::refused;
use crate::EngineError;
use crate::storage::control::FILE_NAME as CATALOG;
use plumb_host::kind::what_is;
use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart, PartKind};
use plumb_host::owner::{self, MARK, Owner};
use plumb_io::{DirectIo, Directory, Disk, EntryKind, File, IoError, OpenMode};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

/// Name of the directory of second members of log files.
const MIRROR: &str = "mirror";

pub(super) struct Filling {
    directory: Arc<Directory>,
    disk: Disk,
    /// `None` once the directory is complete.
    owner: RefCell<Option<Owner>>,
    /// Files and directories that were created, each directory before its contents.
    made: RefCell<Vec<PathBuf>>,
    was_there: bool,
}

impl Filling {
    /// Takes a directory that is empty or absent, or that a killed backup or restore has left.
    pub(super) fn begin(to: &Path) -> Result<Filling, EngineError> {
        let was_there = to.exists();
        require_empty(to)?;
        let directory = Arc::new(Directory::create(to)?);
        let owner = own(to).inspect_err(|_| {
            if !was_there {
                // A directory that another process has marked is not empty, and stays.
                let _ = Disk::Kernel.remove_directory(to);
            }
        })?;
        let disk = Disk::Held(Arc::clone(&directory));
        let filling = Filling {
            directory,
            disk,
            owner: RefCell::new(Some(owner)),
            made: RefCell::default(),
            was_there,
        };
        filling.take_over()?;
        Ok(filling)
    }

    /// Removes what a killed process has left.
    fn take_over(&self) -> Result<(), EngineError> {
        let found = inside(&self.directory)?;
        if let Some(other) = found.iter().find(|name| !is_left_over(name)) {
            return Err(not_empty(self.directory.path(), other));
        }
        // Directories after their files.
        for name in found.iter().rev().filter(|name| *name != Path::new(MARK)) {
            match self.directory.kind(name) {
                Some(EntryKind::Directory) => self.directory.remove_directory(name)?,
                _ => self.directory.remove(name)?,
            }
        }
        Ok(())
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Creates a new file, and the directory in its name.
    pub(super) fn create(&self, name: &str) -> Result<File, EngineError> {
        let name = Path::new(name);
        if let Some(above) = name.parent().filter(|above| !above.as_os_str().is_empty())
            && self.directory.kind(above).is_none()
        {
            self.directory.make_directory(above)?;
            self.directory.sync("")?;
            self.made.borrow_mut().push(above.to_path_buf());
        }
        let path = self.directory.path().join(name);
        let file = self.disk.open(&path, OpenMode::Create, DirectIo::Off)?;
        self.made.borrow_mut().push(name.to_path_buf());
        Ok(file)
    }

    /// Opens a file that was created.
    pub(super) fn open(&self, name: &str) -> Result<File, EngineError> {
        Ok(self.disk.open(&self.directory.path().join(name), OpenMode::Write, DirectIo::Off)?)
    }

    /// Writes a small file, whole and durably.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), EngineError> {
        self.made.borrow_mut().push(PathBuf::from(name));
        Ok(self.disk.replace(&self.directory.path().join(name), bytes)?)
    }

    /// Makes all names durable, and keeps all files.
    pub(super) fn complete(self) -> Result<(), EngineError> {
        let directories: BTreeSet<PathBuf> =
            self.made.borrow().iter().filter_map(|name| name.parent().map(Path::to_path_buf)).collect();
        directories.iter().try_for_each(|directory| self.directory.sync(directory))?;
        self.made.borrow_mut().clear();
        drop(self.owner.borrow_mut().take());
        Ok(())
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        let is_complete = self.owner.borrow().is_none();
        // The first error is the one to report.
        for name in self.made.borrow().iter().rev() {
            let _ = self.directory.remove(name).or_else(|_| self.directory.remove_directory(name));
        }
        drop(self.owner.borrow_mut().take());
        if !is_complete && !self.was_there {
            let _ = Disk::Kernel.remove_directory(self.directory.path());
        }
    }
}

fn own(to: &Path) -> Result<Owner, EngineError> {
    Owner::of_directory(to).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => refused(
            to,
            format!("{error}: a backup or a restore fills it; wait for its end, or name another directory"),
        ),
        _ => IoError::operation("mark", to, error).into(),
    })
}

/// Returns the names in a directory and one level below, each directory before its contents.
fn inside(directory: &Directory) -> Result<Vec<PathBuf>, EngineError> {
    let mut names = Vec::new();
    for entry in directory.entries()? {
        let name = PathBuf::from(&entry.name);
        names.push(name.clone());
        if entry.kind == EntryKind::Directory {
            let below = directory.directory(&name)?.entries()?;
            names.extend(below.into_iter().map(|entry| name.join(entry.name)));
        }
    }
    Ok(names)
}

/// Directories of killed backups and restores, and empty ones reserved by another command. They
/// have a user's name, so their parts identify them, without the file that completes them.
#[derive(Debug)]
pub struct FillingLeftover;

impl Leftover for FillingLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        let is_whole = || [MANIFEST, CATALOG].iter().any(|last| marked.join(last).symlink_metadata().is_ok());
        (marked.is_dir() && !is_whole()).then_some(MakerClaim::Parts)
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        let is_directory = part.name == Path::new(MIRROR);
        is_left_over(part.name)
            && part.kind == if is_directory { PartKind::Directory } else { PartKind::File }
    }
}

/// True for a name that a backup or a restore creates in its directory before its last file. A
/// directory with such names only, and the mark of a dead process, is the remains of a killed one.
fn is_left_over(name: &Path) -> bool {
    let text = name.to_str().unwrap_or_default();
    let is_last = text == CATALOG || text == MANIFEST;
    let directory = text == MIRROR;
    let fresh = text.strip_suffix(".new").unwrap_or(text);
    name == Path::new(MARK)
        || directory
        || (!is_last && is_engine_name(fresh))
        || fresh == MANIFEST && fresh != text
}

fn not_empty(to: &Path, first: &Path) -> EngineError {
    refused(
        to,
        format!("it is not empty ({}), and nothing is written over; name a new directory", first.display()),
    )
}

/// Refuses a directory that is, or would be created, inside another one.
pub(super) fn require_apart(to: &Path, home: &Path) -> Result<(), EngineError> {
    let resolved = |path: &Path| path.canonicalize().ok();
    // For an absent path, its existing part.
    let around = path::absolute(to).ok().and_then(|to| to.ancestors().find_map(resolved));
    match (around, resolved(home)) {
        (Some(around), Some(inside)) if around.starts_with(&inside) => {
            let why = format!(
                "it lies within the database {}, and would be lost with it; name a directory outside of it",
                home.display()
            );
            Err(refused(to, why))
        }
        _ => Ok(()),
    }
}

/// Refuses a directory that is not empty, unless a killed process has left it.
pub(super) fn require_empty(to: &Path) -> Result<(), EngineError> {
    if !to.is_dir() {
        return match what_is(to) {
            None => Ok(()),
            Some(found) => {
                let why = format!("it is {found}, expected an empty directory or none; name another one");
                Err(refused(to, why))
            }
        };
    }
    let found = inside(&Directory::open(to)?)?;
    let known = [("a backup stands there", MANIFEST), ("a database stands there", CATALOG)];
    if let Some((what, name)) =
        known.into_iter().find(|(_, name)| found.iter().any(|found| found == Path::new(name)))
    {
        return Err(refused(
            to,
            format!("{what} ({name}), and nothing is written over; name a new directory"),
        ));
    }
    let is_left = found.iter().any(|name| name == Path::new(MARK))
        && found.iter().all(|name| is_left_over(name))
        && owner::abandoned(&to.join(MARK)).is_some();
    // [`Owner`] refuses a directory with a live mark, and names the process.
    let is_held =
        found.iter().any(|name| name == Path::new(MARK)) && owner::abandoned(&to.join(MARK)).is_none();
    match found.first().filter(|_| !is_left && !is_held) {
        Some(first) => Err(not_empty(to, first)),
        None => Ok(()),
    }
}
