//! A temporary database, removed when its guard is dropped, however the run ends.
//!
//! Each named directory gets a subdirectory with this process's mark, so that `plumb clean` finds
//! those of a killed one ([`TemporaryLeftover`]). Files are closed before they are
//! removed. FUSE and NFS would rename a file that is removed while open, and its directory could
//! not be removed. A directory that cannot be removed keeps its mark, and [`left`] reports it.

use crate::RunError;
use crate::place::{Places, Room};
use plumb_engine::backup::MANIFEST;
use plumb_engine::instance::InitialSizes;
use plumb_engine::redo;
use plumb_engine::storage::control::{Catalog, FILE_NAME as CATALOG};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{Instance, Setting, Settings};
use plumb_events::Cancel;
use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart, PartKind, named};
use plumb_host::limits;
use plumb_host::owner::{MARK, Owner};
use plumb_io::named_directory;
use plumb_study::{Observer, Stage};
use plumb_units::Bytes;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::{fs, io};

/// A database that exists as long as this guard.
#[derive(Debug)]
pub struct Temporary {
    instance: Option<Instance>,
    directories: Vec<PathBuf>,
    /// Marks that distinguish these directories from those of killed processes.
    owners: Vec<Owner>,
    keep: bool,
}

impl Temporary {
    /// Makes a database in new directories of this name, one in each place, after a check for room.
    /// Fails if there is no room, or something cannot be made. Then nothing is left behind.
    pub fn create(
        places: &Places<'_>,
        name: &str,
        mut settings: Settings,
        Room { tablespaces: sizes, beside }: Room,
        cancel: Cancel,
        observer: &dyn Observer,
    ) -> Result<Temporary, RunError> {
        let all = |one: Bytes, two: Bytes| Bytes(one.0.saturating_add(two.0));
        let room = InitialSizes {
            users: all(sizes.users, beside.users),
            temp: all(sizes.temp, beside.temp),
            indx: all(sizes.indx, beside.indx),
        };
        if settings.word(Setting::IoMethod) == "null" {
            return Temporary::in_memory(places, settings, sizes, total(&room), cancel, observer);
        }
        places.require_room(&room)?;
        let mut made = Temporary { instance: None, directories: Vec::new(), owners: Vec::new(), keep: false };
        for (argument, path) in places.named() {
            let directory = path.join(name);
            named_directory::make(argument, path, &directory)?;
            made.owners.push(named_directory::own(argument, path, &directory)?);
            observer.made(&directory);
            made.directories.push(directory);
        }
        made.place_log(name, &mut settings, observer)?;
        observer.stage(&Stage::Files { directories: &made.directories, bytes: total(&sizes) });
        made.instance = Some(Instance::create(&places.layout(name), settings, sizes, cancel)?);
        Ok(made)
    }

    /// Puts log files with another place into a directory of their own there, which
    /// is removed with the rest.
    fn place_log(
        &mut self,
        name: &str,
        settings: &mut Settings,
        observer: &dyn Observer,
    ) -> Result<(), RunError> {
        for (setting, argument) in
            [(Setting::LogPath, "--set log_path"), (Setting::LogMirrorPath, "--set log_mirror_path")]
        {
            let path = PathBuf::from(settings.word(setting));
            let Some(origin) = settings.origin(setting).filter(|_| path.is_absolute()).map(str::to_string)
            else {
                continue;
            };
            named_directory::require(argument, &path)?;
            let directory = path.join(name);
            if !self.directories.contains(&directory) {
                named_directory::make(argument, &path, &directory)?;
                self.owners.push(named_directory::own(argument, &path, &directory)?);
                observer.made(&directory);
                self.directories.push(directory.clone());
            }
            settings.set(setting.row().name, &directory.display().to_string(), &origin)?;
        }
        Ok(())
    }

    /// Makes files in memory: needs room in memory and nothing on disk.
    fn in_memory(
        places: &Places<'_>,
        settings: Settings,
        sizes: InitialSizes,
        needed: u64,
        cancel: Cancel,
        observer: &dyn Observer,
    ) -> Result<Temporary, RunError> {
        if let Some(memory) = limits::memory().filter(|memory| memory.available.0 < needed) {
            return Err(RunError::NoMemory { needed: Bytes(needed), free: memory.available });
        }
        observer.begins();
        let instance = Instance::create(&places.layout("plumb-run"), settings, sizes, cancel)?;
        Ok(Temporary { instance: Some(instance), directories: Vec::new(), owners: Vec::new(), keep: false })
    }

    /// Returns the database, which must be open. Panics after [`Temporary::close`].
    pub fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("there until it is closed")
    }

    /// Closes the database and returns its directory; its files stay until this is dropped.
    pub fn close(&mut self) -> PathBuf {
        let home = self.instance().home().to_path_buf();
        self.instance = None;
        home
    }

    /// Leaves the database in place. Returns its directory.
    pub fn keep(&mut self) -> PathBuf {
        self.keep = true;
        self.owners.clear();
        self.instance().home().to_path_buf()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        self.instance = None;
        for (directory, owner) in self.directories.iter().zip(self.owners.drain(..)) {
            if let Err(error) = remove(directory, owner) {
                let around = directory.parent().unwrap_or(directory).display();
                let why = format!(
                    "cannot remove {}: {error}; `plumb clean --path {around}` does, later",
                    directory.display()
                );
                LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(why);
            }
        }
    }
}

/// Reasons why directories of this process remain.
static LEFT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes the lines that say which directories could not be removed, and why.
pub fn left() -> Vec<String> {
    std::mem::take(&mut LEFT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Number of attempts for a directory whose files disappear some time after they
/// are closed; the interval follows.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(20);

/// Removes a directory with its contents; one that remains keeps its mark.
fn remove(directory: &Path, owner: Owner) -> io::Result<()> {
    let mut emptied = empty(directory, &owner);
    for _ in 0..LOOKS {
        if !emptied.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::DirectoryNotEmpty) {
            break;
        }
        thread::sleep(LOOK);
        emptied = empty(directory, &owner);
    }
    match emptied {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.exists() => return Ok(()),
        Err(error) => {
            owner.leave();
            return Err(error);
        }
        Ok(()) => drop(owner),
    }
    fs::remove_dir(directory).inspect_err(|_| {
        if let Ok(owner) = Owner::of_directory(directory) {
            owner.leave();
        }
    })
}

/// Removes everything except the mark.
fn empty(directory: &Path, owner: &Owner) -> io::Result<()> {
    let entries = || fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>();
    let others = || Ok::<_, io::Error>(entries()?.into_iter().filter(|entry| entry.path() != owner.mark()));
    for entry in others()? {
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    // A file that is still open has been renamed.
    match others()?.next() {
        Some(_) => Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty)),
        None => Ok(()),
    }
}

/// Name prefixes of the directories of runs and of studies.
const PREFIXES: [&str; 2] = ["plumb-run-", "plumb-study-"];

/// Databases of killed runs and studies.
///
/// The names identify the directories, so that a user's database is never taken for one. Their own
/// directories have known names, but for that with copies of log files, which a user names.
#[derive(Debug)]
pub struct TemporaryLeftover;

impl Leftover for TemporaryLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        PREFIXES.iter().find_map(|prefix| named(marked, prefix))
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        let Some(name) = part.name.to_str() else { return false };
        match (part.kind, name.split_once('/')) {
            (PartKind::Directory, inside) => inside.is_none(),
            (PartKind::File, None) => is_database_file(name),
            (PartKind::File, Some(("mirror", file))) => is_log_file(file),
            (PartKind::File, Some(("backup", file))) => is_database_file(file) || file == MANIFEST,
            (PartKind::File, Some((_, file))) => is_log_copy(file),
            (PartKind::Special, _) => false,
        }
    }

    /// Reads the places of data and log files from the control file.
    fn others(&self, marked: &Path) -> Vec<PathBuf> {
        let Some(catalog) = Catalog::find(marked).ok().flatten() else { return Vec::new() };
        let mut places: Vec<PathBuf> = catalog
            .data_files(marked)
            .filter_map(|file| file.parent().map(Path::to_path_buf))
            .chain([&catalog.log_places.first, &catalog.log_places.second].map(Clone::clone))
            .filter(|place| place.is_absolute() && self.claim(place).is_some())
            .collect();
        places.sort();
        places.dedup();
        places
    }
}

/// True if a run makes plain files of this name in its directory.
fn is_database_file(name: &str) -> bool {
    const NAMES: [&str; 6] =
        ["lock", CATALOG, "control.json.new", "control.json.reserve", "records.dat", "sorted.dat"];
    let own = name.strip_suffix(MARK).and_then(|name| name.strip_suffix('.')).unwrap_or(name);
    let own = own.strip_suffix(".unfinished").unwrap_or(own);
    let data_file = own.strip_suffix(".dbf").is_some_and(|stem| {
        // The number after the tablespace's name has two or more digits; the name may end in
        // digits, too.
        let stem = stem.trim_end_matches(|digit: char| digit.is_ascii_digit());
        Purpose::ALL.iter().any(|purpose| purpose.name().eq_ignore_ascii_case(stem))
    });
    data_file || NAMES.contains(&own) || is_log_file(name) || is_log_apart(name)
}

fn is_log_file(name: &str) -> bool {
    redo::files(Path::new("")).any(|file| file == Path::new(name))
}

/// True for a log file outside its database's directory: `redoNN_DATABASE.log`.
fn is_log_apart(name: &str) -> bool {
    let stem = name.strip_prefix("redo").and_then(|rest| rest.strip_suffix(".log"));
    stem.and_then(|stem| stem.split_once('_'))
        .is_some_and(|(number, database)| is_number(number, 2) && is_database(database))
}

/// True for a copy of a filled log file, complete or not: `redo_DATABASE_SEQUENCE.arc`.
fn is_log_copy(name: &str) -> bool {
    let stem = name.strip_suffix(".arc").or_else(|| name.strip_suffix(".part"));
    let numbers = stem.and_then(|stem| stem.strip_prefix("redo_")?.split_once('_'));
    numbers.is_some_and(|(database, sequence)| is_database(database) && is_number(sequence, 10))
}

fn is_number(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_database(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn total(sizes: &InitialSizes) -> u64 {
    sizes.users.0.saturating_add(sizes.temp.0).saturating_add(sizes.indx.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_removed_keeps_its_mark() {
        let around = tempfile::tempdir().expect("a directory");
        let directory = around.path().join("plumb-run-1");
        let made = || {
            fs::create_dir_all(directory.join("mirror")).expect("a directory");
            fs::write(directory.join("mirror/redo01.log"), "").expect("a file");
            Owner::of_directory(&directory).expect("a mark")
        };
        remove(&directory, made()).expect("removed");
        assert!(!directory.exists());
        let owner = made();
        let mark = owner.mark().to_path_buf();
        fs::remove_dir_all(&directory).expect("removed");
        remove(&directory, owner).expect("somebody else has");
        let owner = made();
        let held = fs::canonicalize(&directory).expect("there");
        let chattr = |flag: &str| {
            let file = held.join("mirror/redo01.log");
            let ran = std::process::Command::new("chattr").arg(flag).arg(file).output();
            ran.is_ok_and(|ran| ran.status.success())
        };
        if !chattr("+i") {
            println!("skipped: no file can be made immutable here");
            return;
        }
        let removed = remove(&directory, owner);
        assert!(chattr("-i"));
        removed.expect_err("the kernel refuses");
        assert!(mark.exists(), "clean finds it");
    }
}
