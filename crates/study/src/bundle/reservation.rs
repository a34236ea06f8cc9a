//! Reserves a directory for a new bundle before the run: empty, and for one process alone.
//!
//! A run may take hours. Its report must not fail for a missing permission, nor replace another
//! report. So the directory is made and marked as this process's ([`Owner`]) before the run.
//! Dropping the reservation removes the mark. It also removes the directory, and parents made for
//! it, if they are empty. Two processes never share a directory. A mark has one owner, and exactly
//! one process makes a directory of a default name; others take `-2`, `-3` and so on.
//!
//! A killed process leaves the mark, and a part of the files ([`BundleLeftover`]). The next
//! reservation of the directory removes them. The file by which a reader knows a bundle is written
//! last where the rest can be made again, as by an import, and first where it cannot.

use super::{CALIBRATION, MANIFEST, ORDER, RUNS, STUDY, is_made};
use crate::StudyError;
use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart, PartKind, Remains};
use plumb_host::owner::{self, MARK, Owner};
use plumb_io::{FRESH, marked};
use plumb_record::{BESIDE, FILE, FIO_JOB, trace};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories of one default name; more in a second are a mistake.
const NAMES_MAX: usize = 10_000;

/// A directory that no other process writes to.
#[derive(Debug)]
pub struct Reservation {
    directory: PathBuf,
    /// Released when the reservation is dropped.
    owner: Option<Owner>,
    /// Directories made for it, innermost first.
    made: Vec<PathBuf>,
}

impl Reservation {
    /// Reserves the directory that the user named, new or empty. Fails if it is not empty, another
    /// process has it, it lies in a study's bundle, or cannot be made.
    pub fn named(directory: &Path) -> Result<Reservation, StudyError> {
        require_outside(directory)?;
        let half = marked::at(directory, &[&BundleLeftover]);
        half.map_or(Ok(()), Remains::put_away).map_err(|why| refused(directory, io::Error::other(why)))?;
        require_empty(directory)?;
        let mut reservation =
            Reservation { directory: directory.to_path_buf(), owner: None, made: Vec::new() };
        reservation.make(directory).map_err(|source| refused(directory, source))?;
        reservation.owner = Some(own(directory)?);
        // Another process may have filled it before the mark was written.
        require_empty(directory)?;
        Ok(reservation)
    }

    /// Reserves a new directory of this name, with a number appended if the name is taken. Fails if
    /// it lies in a study's bundle, or cannot be made.
    pub fn fresh(parent: &Path, name: &str) -> Result<Reservation, StudyError> {
        let first = parent.join(name);
        require_outside(&first)?;
        require_own(parent)?;
        let numbered = (2..NAMES_MAX).map(|number| parent.join(format!("{name}-{number}")));
        let mut reservation = Reservation { directory: first.clone(), owner: None, made: Vec::new() };
        for directory in std::iter::once(first.clone()).chain(numbered) {
            reservation.make(parent).map_err(|source| refused(&directory, source))?;
            match fs::create_dir(&directory) {
                Ok(()) => {
                    reservation.made.insert(0, directory.clone());
                    reservation.owner = Some(own(&directory)?);
                    reservation.directory = directory;
                    return Ok(reservation);
                }
                // Not found: another process has just removed the empty parent.
                Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
                Err(source) => return Err(refused(&directory, source)),
            }
        }
        Err(StudyError::BundleOccupied { path: first, resumable: false })
    }

    /// Reserves an existing bundle for writing.
    pub(super) fn existing(directory: &Path) -> Result<Reservation, StudyError> {
        Ok(Reservation { directory: directory.to_path_buf(), owner: Some(own(directory)?), made: Vec::new() })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the paths removed on drop, in this order: the mark, then empty directories.
    pub fn traces(&self) -> Vec<PathBuf> {
        let mark = self.owner.iter().map(|owner| owner.mark().to_path_buf());
        mark.chain(self.made.iter().cloned()).collect()
    }

    /// Makes a directory and its missing parents, and remembers them.
    fn make(&mut self, directory: &Path) -> io::Result<()> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<PathBuf> =
            directory.ancestors().take_while(missing).map(Path::to_path_buf).collect();
        self.made.extend(missing);
        fs::create_dir_all(directory)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.owner = None;
        for directory in &self.made {
            // A directory that holds a bundle, or that another process uses, is not empty and
            // stays.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// File of an import's bundle with all tables of the report.
pub const TABLES: &str = "imported.json";

/// Files by which a reader knows a bundle, in the order in which a copy or an import writes them,
/// after all others.
pub const LAST: [&str; 3] = [FILE, CALIBRATION, STUDY];

/// Bundles of killed imports and copies, and those of studies before their first run.
#[derive(Debug)]
pub struct BundleLeftover;

impl Leftover for BundleLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        let entries = fs::read_dir(marked).ok()?.flatten();
        let names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let is_whole =
            || is_resumable(marked) || names.iter().any(|name| [FILE, CALIBRATION].contains(&name.as_str()));
        let is_part = |name: &String| is_of_bundle(name) || name == RUNS || is_number(name);
        // A copy of one file has the name of that file.
        let is_fresh = |name: &String| name == MARK || name.ends_with(FRESH);
        let is_half = || names.iter().any(is_part) || names.iter().all(is_fresh);
        (!is_whole() && is_half()).then_some(MakerClaim::Parts)
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        let Some(name) = part.name.to_str() else { return false };
        let (top, inner) = name.split_once('/').map_or((name, None), |(top, inner)| (top, Some(inner)));
        // An import of several reports has a bundle of each.
        match (part.kind, inner) {
            (PartKind::Directory, None) => is_number(top) || top == RUNS,
            (PartKind::File, None) => is_of_bundle(name) || name.ends_with(FRESH),
            (PartKind::File, Some(inner)) => is_made(name) || (is_number(top) && is_of_bundle(inner)),
            _ => false,
        }
    }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_of_bundle(name: &str) -> bool {
    let whole = name.strip_suffix(FRESH).unwrap_or(name);
    [FILE, BESIDE, FIO_JOB, trace::FILE, TABLES, CALIBRATION].contains(&whole) || is_made(name)
}

/// True if a study in this directory has begun, so that it can be resumed.
fn is_resumable(directory: &Path) -> bool {
    [STUDY, ORDER].iter().all(|name| directory.join(name).exists())
}

/// Writes a new file outside the bundles of studies. Fails if it exists, lies in a study's
/// bundle, or cannot be written.
pub fn write_new(path: &Path, text: &str) -> Result<(), StudyError> {
    require_outside(path)?;
    let write = |mut file: fs::File| file.write_all(text.as_bytes());
    fs::File::create_new(path).and_then(write).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => StudyError::BundleOccupied { path: path.to_path_buf(), resumable: false },
        _ => refused(path, source),
    })
}

/// Error for a report that cannot be written.
pub fn refused(path: &Path, source: io::Error) -> StudyError {
    StudyError::Reports { path: path.to_path_buf(), source }
}

fn own(directory: &Path) -> Result<Owner, StudyError> {
    Owner::of_directory(directory).map_err(|source| match source.kind() {
        ErrorKind::ResourceBusy => StudyError::BundleInUse { path: directory.to_path_buf() },
        _ => refused(directory, source),
    })
}

/// Rejects a directory with anything but a mark in it.
fn require_empty(directory: &Path) -> Result<(), StudyError> {
    let Ok(mut entries) = fs::read_dir(directory) else { return Ok(()) };
    if entries.any(|entry| entry.map_or(true, |entry| entry.file_name() != MARK)) {
        let resumable = is_resumable(directory);
        return Err(StudyError::BundleOccupied { path: directory.to_path_buf(), resumable });
    }
    Ok(())
}

/// Rejects a link of another user: any user can make one in a directory such as `/tmp`.
fn require_own(parent: &Path) -> Result<(), StudyError> {
    match fs::symlink_metadata(parent) {
        Ok(found) if found.is_symlink() && !owner::is_trusted(found.uid(), None) => {
            Err(refused(parent, io::Error::other(format!("it is a link of user {}", found.uid()))))
        }
        _ => Ok(()),
    }
}

/// Rejects a place inside a study's bundle, because `verify` would report an unlisted file.
fn require_outside(path: &Path) -> Result<(), StudyError> {
    let there = path.ancestors().skip(1).find_map(|around| {
        let around = if around.as_os_str().is_empty() { Path::new(".") } else { around };
        around.canonicalize().ok()
    });
    let study = |around: &&Path| around.join(MANIFEST).is_file() && around.join(ORDER).is_file();
    match there.iter().flat_map(|path| path.ancestors()).find(study) {
        Some(study) => Err(StudyError::BundleInside { path: path.to_path_buf(), study: study.to_path_buf() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_default_name_is_taken_once() {
        let under = tempfile::tempdir().expect("a directory");
        let parent = under.path().join("reports");
        let taken = std::thread::scope(|scope| {
            let take = || Reservation::fresh(&parent, "run").expect("reserved");
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().expect("reserved")).collect::<Vec<_>>()
        });
        let mut found: Vec<&Path> = taken.iter().map(Reservation::directory).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 8);
        assert_eq!(names(&parent).len(), 8);
        fs::write(taken[0].directory().join("report.txt"), "kept").expect("a file");
        let kept = taken[0].directory().file_name().expect("a name").display().to_string();
        drop(taken);
        assert_eq!(names(&parent), [kept], "what holds a report stays, and nothing else");
    }

    #[test]
    fn occupied_or_reserved_directories_are_rejected_and_left_unchanged() {
        let under = tempfile::tempdir().expect("a directory");
        let there = under.path().join("there");
        fs::create_dir(&there).expect("a directory");
        let reservation = Reservation::named(&there).expect("it is empty");
        let error = Reservation::named(&there).expect_err("reserved").to_string();
        assert!(error.contains(" is being written by another process"), "{error}");
        drop(reservation);
        assert_eq!(names(under.path()), ["there"], "it was there before");
        fs::write(there.join("record.json"), "{}").expect("a file");
        let error = Reservation::named(&there).expect_err("occupied").to_string();
        assert!(
            error.ends_with("it has contents, and nothing is overwritten: name a new directory"),
            "{error}"
        );
        assert_eq!(names(&there), ["record.json"]);
        drop(Reservation::named(&under.path().join("a/b/c")).expect("new"));
        assert_eq!(names(under.path()), ["there"], "what was made goes again");
    }

    #[test]
    fn the_inside_of_a_study_is_refused() {
        let under = tempfile::tempdir().expect("a directory");
        let study = under.path().join("study");
        fs::create_dir_all(study.join("runs")).expect("a directory");
        [MANIFEST, ORDER].iter().for_each(|name| fs::write(study.join(name), "").expect("a file"));
        for inside in ["mine", "runs/mine/deeper"] {
            let error = Reservation::named(&study.join(inside)).expect_err("inside").to_string();
            assert!(error.contains("lies in the bundle of a study"), "{error}");
            Reservation::fresh(&study.join(inside), "run").expect_err("inside");
        }
        write_new(&study.join("page.html"), "").expect_err("inside");
        assert_eq!(names(&study), [MANIFEST, ORDER, "runs"]);
        let page = under.path().join("page.html");
        write_new(&page, "one").expect("a new file");
        write_new(&page, "two").expect_err("it is there");
        assert_eq!(fs::read_to_string(&page).expect("the file"), "one");
    }

    #[test]
    fn a_link_of_another_user_is_not_where_reports_go() {
        let under = tempfile::tempdir().expect("a directory");
        let (reports, elsewhere) = (under.path().join("plumb-reports"), under.path().join("elsewhere"));
        fs::create_dir(&elsewhere).expect("a directory");
        std::os::unix::fs::symlink(&elsewhere, &reports).expect("a link");
        drop(Reservation::fresh(&reports, "run").expect("it is this user's own link"));
        if std::os::unix::fs::lchown(&reports, Some(65_534), None).is_err() {
            println!("skipped: links are given away by root alone");
            return;
        }
        let error = Reservation::fresh(&reports, "run").expect_err("another user's").to_string();
        assert!(error.contains("it is a link of user 65534"), "{error}");
        assert_eq!(names(&elsewhere), Vec::<String>::new());
    }
}
