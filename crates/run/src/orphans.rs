//! Remains of killed processes.
//!
//! - directories of runs, studies and calibrations
//! - the unfinished output of a sort of records
//! - empty directories reserved for a bundle
//! - files that a study overwrote, which are restored
//!
//! An orphan is identified by a dead process's mark ([`owner`]) in it or next to it, never by its
//! name alone. So files in use by a live process, kept files (without a mark) and other programs'
//! files are no orphans. The search covers a directory and its `plumb-reports`. Other users may
//! write there, as in `/tmp`. So another user's mark counts only for that user's files, and removal
//! starts from the searched directory and follows no link.
//!
//! A file system on a loop device is unmounted and its device detached before its image is removed.
//! Otherwise plumb puts plain files of known names into these directories, and into directories one
//! level below. Those hold second members of log files, copies of filled ones, or a backup. A
//! directory with anything else in it is left alone. The directory for copies has a name given by
//! its user, so it is identified by its contents; an empty one holds nothing to lose. A directory
//! of runs is identified by its name, so that a user's database is never taken for one. A bundle of
//! a killed study holds runs, and can be resumed. The directory of a killed backup or restore has
//! its user's name, too. It is identified by names that the engine creates, without the file that
//! completes it.
//!
//! A run may have directories in several places. The search follows the control file to those with
//! the mark of the same process.

use crate::loops;
use plumb_engine::backup::{MANIFEST, is_left_over};
use plumb_engine::redo;
use plumb_engine::storage::control::{Catalog, FILE_NAME as CATALOG};
use plumb_engine::storage::tablespace::Purpose;
use plumb_host::owner::{self, MARK};
use plumb_io::{Directory, EntryKind, IoError};
use plumb_study::bundle::source_of;
use plumb_study::file_journal;
use plumb_units::Bytes;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Name prefixes of directories that are removed with their process.
const PREFIXES: [&str; 4] = ["plumb-run-", "plumb-study-", "plumb-calibrate-", loops::PREFIX];
/// Name prefix of the directory of a database server, which holds directories at any depth.
const SERVER: &str = "plumb-postgres-";
/// What the directory of a server holds besides its mark.
const OF_SERVER: [&str; 2] = ["data", "server.log"];
/// Suffix of an output's name until it is complete.
const UNFINISHED: &str = ".unfinished";
/// Directory of bundles unless a command names another.
pub const REPORTS: &str = "plumb-reports";

/// Remains of a killed process.
#[derive(Debug)]
pub struct Orphan {
    pub path: PathBuf,
    /// Bytes allocated on the file system.
    pub bytes: Bytes,
    /// The searched directory: everything is removed by its name in it, through no link.
    around: Rc<Directory>,
    /// Names of plain files to remove, the mark last.
    files: Vec<PathBuf>,
    /// Names of directories that these files leave empty; they are removed before the mark.
    directories: Vec<PathBuf>,
    /// Name of the directory itself, if it is one.
    own_directory: Option<PathBuf>,
    /// An entry that plumb did not make: then nothing is removed.
    stray: Option<PathBuf>,
    end: End,
    /// The mark, locked, so that no other process takes it over.
    held: File,
}

/// Kind of cleanup of an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Removed,
    /// A study overwrote it, and its original is restored.
    PutBack,
}

impl Orphan {
    #[must_use]
    pub fn end(&self) -> End {
        self.end
    }

    /// Returns an entry that plumb did not make: the orphan is then not removed.
    #[must_use]
    pub fn stray(&self) -> Option<&Path> {
        self.stray.as_deref()
    }

    /// Removes or restores the orphan. A directory with a stray entry stays with its mark,
    /// and the stray is returned. Fails if the kernel returns an error, or a file was edited
    /// after its study was killed.
    pub fn remove(self) -> io::Result<Option<PathBuf>> {
        if self.stray.is_some() {
            return Ok(self.stray);
        }
        if self.end == End::PutBack {
            file_journal::recover(&self.path).map_err(io::Error::other)?;
        }
        if let Some(own) = self.own_directory.as_ref().filter(|own| is_of_loop(own)) {
            loops::release(&self.path)?;
            let mounted = own.join(loops::MOUNTED);
            if self.around.kind(&mounted).is_some() {
                self.around.remove_directory(mounted).map_err(source_of)?;
            }
        }
        self.remove_files().map_err(source_of)?;
        Ok(None)
    }

    fn remove_files(&self) -> Result<(), IoError> {
        if let Some((mark, files)) = self.files.split_last() {
            files.iter().try_for_each(|file| self.around.remove(file))?;
            self.directories.iter().try_for_each(|directory| self.around.remove_directory(directory))?;
            self.around.remove(mark)?;
        }
        self.own_directory.iter().try_for_each(|own| self.around.remove_directory(own))
    }
}

/// Returns all orphans in a directory and in its `plumb-reports`, and remains of their processes
/// elsewhere, sorted by path. An unreadable directory has none.
#[must_use]
pub fn find(directory: &Path) -> Vec<Orphan> {
    let Ok(directory) = Directory::open(directory) else { return Vec::new() };
    let reports = directory.directory(REPORTS).ok();
    let within = |directory: Directory| {
        let around = Rc::new(directory);
        plain_entries(&around, Path::new("")).into_iter().filter_map(move |entry| orphan(&around, entry))
    };
    let mut found: Vec<Orphan> = within(directory).chain(reports.into_iter().flat_map(within)).collect();
    let elsewhere: Vec<Orphan> = found.iter().flat_map(elsewhere).collect();
    found.extend(elsewhere);
    found.sort_by(|one, two| one.path.cmp(&two.path));
    found
}

/// Finds the other directories of a killed run: those of log and data files in its control file.
/// Another user may have written that file. So a directory counts only if it belongs to the same
/// user and has the mark of the same process.
fn elsewhere(of: &Orphan) -> Vec<Orphan> {
    let own = of.own_directory.as_ref().filter(|own| is_temporary(own));
    let user = own.and_then(|own| of.around.found(own)).map(|found| found.owner);
    let Some(catalog) = user.and_then(|_| Catalog::find(&of.path).ok().flatten()) else {
        return Vec::new();
    };
    let mut places: Vec<PathBuf> = catalog
        .data_files(&of.path)
        .filter_map(|file| file.parent().map(Path::to_path_buf))
        .chain([&catalog.log_places.first, &catalog.log_places.second].map(Clone::clone))
        .filter(|place| place.is_absolute() && is_temporary(place) && !is_of_loop(place))
        .collect();
    places.sort();
    places.dedup();
    let found = places.iter().filter_map(|place| {
        let around = Rc::new(Directory::open(place.parent()?).ok()?);
        let name = PathBuf::from(place.file_name()?);
        let there = around.found(&name).filter(|there| Some(there.owner) == user)?;
        let is_directory = there.kind == EntryKind::Directory;
        let found = orphan(&around, Entry { name, is_directory, bytes: there.allocated })?;
        owner::is_same_maker(&of.held, &found.held).then_some(found)
    });
    found.collect()
}

/// True if the name shows that a directory is removed with its process.
fn is_temporary(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A file or directory; links and other kinds are left out.
struct Entry {
    /// Relative to the searched directory.
    name: PathBuf,
    is_directory: bool,
    bytes: u64,
}

/// Returns the files and directories in a directory of this name.
fn plain_entries(around: &Directory, inside: &Path) -> Vec<Entry> {
    let entry = |name: &OsStr| {
        let name = inside.join(name);
        let found = around
            .found(&name)
            .filter(|found| matches!(found.kind, EntryKind::File | EntryKind::Directory))?;
        Some(Entry { name, is_directory: found.kind == EntryKind::Directory, bytes: found.allocated })
    };
    let entries = around.directory(inside).and_then(|directory| directory.entries());
    entries.unwrap_or_default().iter().filter_map(|found| entry(&found.name)).collect()
}

fn orphan(around: &Rc<Directory>, Entry { name: own, is_directory, .. }: Entry) -> Option<Orphan> {
    if !is_directory {
        return written_over(around, &own).or_else(|| unfinished(around, own));
    }
    let mark = own.join(MARK);
    let path = around.path().join(&own);
    let held = owner::abandoned(&path.join(MARK))?;
    if is_of_server(&own) {
        return of_server(around, own, held);
    }
    let (mut files, mut directories, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut add = |entry: Entry| {
        bytes += entry.bytes;
        files.push(entry.name);
    };
    for entry in plain_entries(around, &own).into_iter().filter(|entry| entry.name != mark) {
        if !entry.is_directory {
            add(entry);
        } else if !is_of_loop(&own) {
            let inside = plain_entries(around, &entry.name);
            inside.into_iter().filter(|inner| !inner.is_directory).for_each(&mut add);
            directories.push(entry.name);
        }
    }
    let stray = match is_temporary(&own) {
        true => stray(&path, &own)?,
        // A bundle's contents are worth more than its space.
        false => filled_half(&path)?.stray,
    };
    files.push(mark);
    let (around, own_directory) = (Rc::clone(around), Some(own));
    Some(Orphan {
        path,
        bytes: Bytes(bytes),
        around,
        files,
        directories,
        own_directory,
        stray,
        end: End::Removed,
        held,
    })
}

fn is_of_server(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SERVER))
}

/// Returns the directory of a database server whose study was killed. The server's own directory
/// may hold any file; a link in it leads elsewhere and is a stray. A server that still runs keeps
/// its directory.
fn of_server(around: &Rc<Directory>, own: PathBuf, held: File) -> Option<Orphan> {
    let path = around.path().join(&own);
    let (mut files, mut directories, mut bytes, mut stray) = (Vec::new(), Vec::new(), 0, None);
    let mut waiting = vec![own.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in around.directory(&directory).and_then(|found| found.entries()).ok()? {
            let name = directory.join(&entry.name);
            let is_known = directory != own || OF_SERVER.iter().any(|known| entry.name == *known);
            match around.found(&name) {
                _ if name == own.join(MARK) => {}
                Some(found) if found.kind == EntryKind::Directory && is_known => waiting.push(name),
                // A killed server leaves its socket.
                Some(found) if found.kind != EntryKind::Link && is_known => {
                    bytes += found.allocated;
                    files.push(name);
                }
                _ => stray = stray.or(Some(around.path().join(&name))),
            }
        }
        if directory != own {
            directories.push(directory);
        }
    }
    // A directory is found before those in it.
    directories.reverse();
    if serves(&path.join(OF_SERVER[0])) {
        return None;
    }
    files.push(own.join(MARK));
    let (around, own_directory) = (Rc::clone(around), Some(own));
    let end = End::Removed;
    Some(Orphan { path, bytes: Bytes(bytes), around, files, directories, own_directory, stray, end, held })
}

/// True if the process that a server's directory names works in it.
fn serves(data: &Path) -> bool {
    let process = || {
        let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let number: u32 = text.lines().next()?.trim().parse().ok()?;
        fs::read_link(format!("/proc/{number}/cwd")).ok()
    };
    process().is_some_and(|works_in| data.canonicalize().is_ok_and(|data| data == works_in))
}

/// Finds an entry in a directory of runs or of a loop device that plumb did not make.
fn stray(path: &Path, own: &Path) -> Option<Option<PathBuf>> {
    let is_ours = |entry: &PathBuf| match is_of_loop(own) {
        true => is_of_loop_directory(entry),
        false => is_ours(entry) || is_our_directory(entry),
    };
    Some(entries(path)?.into_iter().find(|entry| !is_ours(entry)))
}

/// The directory of a killed backup or restore, or an empty reserved one.
struct FilledHalf {
    /// An entry that the engine did not make.
    stray: Option<PathBuf>,
}

/// Recognises such a directory by its entries. `None` for a complete backup or database, and if
/// no entry is the engine's.
///
/// A link, a pipe and a directory two levels below are not the engine's, whatever their names.
fn filled_half(path: &Path) -> Option<FilledHalf> {
    let is_directory = |entry: &Path| fs::symlink_metadata(entry).is_ok_and(|found| found.is_dir());
    let is_file = |entry: &Path| fs::symlink_metadata(entry).is_ok_and(|found| found.is_file());
    let mut all = entries(path)?;
    for directory in all.clone().iter().filter(|entry| is_directory(entry)) {
        all.extend(entries(directory)?);
    }
    all.sort();
    let name = |entry: &PathBuf| entry.strip_prefix(path).unwrap_or(entry).to_path_buf();
    if all.iter().map(name).any(|name| [MANIFEST, CATALOG].iter().any(|last| name == Path::new(last))) {
        return None;
    }
    let is_mirror = |entry: &PathBuf| is_directory(entry) && is_left_over(&name(entry));
    let is_ours = |entry: &PathBuf| is_file(entry) && is_left_over(&name(entry));
    let stray = all.iter().find(|entry| !is_ours(entry) && !is_mirror(entry)).cloned();
    let is_known =
        stray.is_none() || all.iter().any(|entry| is_ours(entry) && name(entry) != Path::new(MARK));
    is_known.then_some(FilledHalf { stray })
}

/// True if plumb makes a file or directory like this in that of a loop device; false for a link.
fn is_of_loop_directory(entry: &Path) -> bool {
    let named = |name: &str| entry.file_name() == Some(name.as_ref());
    let is_mounted = named(loops::MOUNTED);
    let found = fs::symlink_metadata(entry);
    let is_its_kind = found.is_ok_and(|found| if is_mounted { found.is_dir() } else { found.is_file() });
    is_its_kind && (is_mounted || named(loops::IMAGE) || named(MARK))
}

/// Returns the paths in a directory; `None` if it cannot be read.
fn entries(directory: &Path) -> Option<Vec<PathBuf>> {
    fs::read_dir(directory).ok()?.map(|entry| Some(entry.ok()?.path())).collect()
}

/// True if the name says that a directory holds a file system of its own.
fn is_of_loop(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(loops::PREFIX))
}

/// Returns the file that a study overwrote, from the mark next to it.
fn written_over(around: &Rc<Directory>, mark: &Path) -> Option<Orphan> {
    let marked = around.path().join(mark);
    let path = file_journal::journalled(&marked)?;
    let held = owner::abandoned(&marked)?;
    Some(Orphan {
        path,
        bytes: Bytes(0),
        around: Rc::clone(around),
        files: vec![mark.to_path_buf()],
        directories: Vec::new(),
        own_directory: None,
        stray: None,
        end: End::PutBack,
        held,
    })
}

/// True if plumb makes plain files of this name in its own directories.
fn is_ours(entry: &Path) -> bool {
    const NAMES: [&str; 10] = [
        MARK,
        "lock",
        "control.json",
        "control.json.new",
        "control.json.reserve",
        "records.dat",
        "sorted.dat",
        "data",
        "log",
        "log-allocated",
    ];
    let plain = fs::symlink_metadata(entry).is_ok_and(|found| found.is_file());
    if plain && entry.parent().is_some_and(|home| redo::files(home).any(|file| file == *entry)) {
        return true;
    }
    let Some(name) = entry.file_name().and_then(|name| name.to_str()) else { return false };
    if plain && is_log_apart(name) {
        return true;
    }
    // FUSE and NFS rename a file that is removed while open.
    if plain && [".fuse_hidden", ".nfs"].iter().any(|prefix| name.starts_with(prefix)) {
        return true;
    }
    let name = name.strip_suffix(&format!(".{MARK}")).unwrap_or(name);
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let data_file = name.strip_suffix(".dbf").is_some_and(|stem| {
        // The number after the tablespace's name has two or more digits; the name may end in
        // digits, too.
        let stem = stem.trim_end_matches(|digit: char| digit.is_ascii_digit());
        Purpose::ALL.iter().any(|purpose| purpose.name().eq_ignore_ascii_case(stem))
    });
    plain && (data_file || NAMES.contains(&name))
}

/// True if plumb makes a directory like this in those of runs: for second members of log files,
/// copies of filled ones, or a backup. It must be no link and contain no directory.
fn is_our_directory(entry: &Path) -> bool {
    let directory = fs::symlink_metadata(entry).is_ok_and(|found| found.is_dir());
    let (true, Some(inside)) = (directory, entries(entry)) else { return false };
    let named = |name: &str| entry.file_name().is_some_and(|own| own == name);
    let is_manifest = |file: &Path| file.file_name().is_some_and(|name| name == MANIFEST);
    let is_kept = |file: &PathBuf| match () {
        () if named("mirror") => redo::files(Path::new("")).any(|log| file.file_name() == log.file_name()),
        () if named("backup") => is_ours(file) || is_manifest(file),
        () => is_log_copy(file),
    };
    let is_plain = |file: &PathBuf| fs::symlink_metadata(file).is_ok_and(|found| found.is_file());
    inside.iter().all(|file| is_plain(file) && is_kept(file))
}

/// True for a log file outside its database's directory: `redoNN_DATABASE.log`.
fn is_log_apart(name: &str) -> bool {
    let stem = name.strip_prefix("redo").and_then(|rest| rest.strip_suffix(".log"));
    stem.and_then(|stem| stem.split_once('_')).is_some_and(|(number, database)| {
        number.len() == 2
            && number.bytes().all(|digit| digit.is_ascii_digit())
            && database.len() == 8
            && database.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// True for a copy of a filled log file, complete or not: `redo_DATABASE_SEQUENCE.arc`.
fn is_log_copy(file: &Path) -> bool {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
    let stem = name.strip_suffix(".arc").or_else(|| name.strip_suffix(".part"));
    let numbers = stem.and_then(|stem| stem.strip_prefix("redo_")?.split_once('_'));
    numbers.is_some_and(|(database, sequence)| {
        let is_hexadecimal = |digit: u8| digit.is_ascii_hexdigit();
        database.len() == 8
            && database.bytes().all(is_hexadecimal)
            && sequence.len() == 10
            && sequence.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Returns the unfinished output next to a mark.
fn unfinished(around: &Rc<Directory>, mark: PathBuf) -> Option<Orphan> {
    let name = mark.extension().is_some_and(|end| end == MARK).then(|| mark.with_extension(""))?;
    let named = name.as_os_str().to_string_lossy().ends_with(UNFINISHED);
    let held = owner::abandoned(&around.path().join(&mark)).filter(|_| named)?;
    let output = around.found(&name).filter(|found| found.kind == EntryKind::File);
    let bytes = Bytes(output.map_or(0, |found| found.allocated));
    let path = around.path().join(&name);
    Some(Orphan {
        path,
        bytes,
        around: Rc::clone(around),
        files: output.map(|_| name).into_iter().chain([mark]).collect(),
        directories: Vec::new(),
        own_directory: None,
        stray: None,
        end: End::Removed,
        held,
    })
}
