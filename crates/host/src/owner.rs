//! Marks of ownership on temporary directories and files.
//!
//! A killed program leaves files that it would have removed. The next program must tell such an
//! orphan from a file in use. So a process that creates one leaves a mark in the directory (or next
//! to the file) and holds a lock on the mark while it lives. The mark is removed with the marked
//! file, or when that is to stay.
//!
//! ```text
//! plumb-run-4711/plumb-owner        plumb 4711 started 812345
//! ```
//!
//! Why a lock and numbers: the kernel releases the lock with the process, however it ended, and
//! across containers, where process numbers mean nothing. Where a file system has no locks, the
//! process number decides, with the start time, because numbers are reused.
//!
//! Invariants:
//! - O1 While a mark's lock is held or its process lives, no other process takes or removes it.
//! - O2 A mark has its text and its lock before its name. Where the file system lacks unnamed
//!   files, it is written in place under its lock; an empty mark is one in the making.
//! - O3 A mark counts only if it belongs to this user, to root or to the owner of what it marks.

use crate::kernel::start_time;
use crate::regular::regular;
use crate::rights;
use rustix::fs::{AtFlags, CWD, linkat};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the mark in a directory, and suffix of the name of a file's mark.
pub const MARK: &str = "plumb-owner";

/// Most bytes of a mark's text.
const MARK_BYTES_MAX: usize = 64;

/// A mark of this process, removed on drop.
#[derive(Debug)]
pub struct Owner {
    mark: PathBuf,
    /// True if the mark stays, because the marked directory could not be removed.
    stays: bool,
    /// Open file of the mark, which holds the lock.
    file: File,
}

impl Owner {
    /// Marks a directory as owned by this process.
    ///
    /// # Errors
    /// `ResourceBusy` when another process owns it; otherwise the kernel's error.
    pub fn of_directory(directory: &Path) -> io::Result<Owner> {
        Owner::take(directory.join(MARK))
    }

    /// Marks a file, which need not exist yet.
    ///
    /// # Errors
    /// The errors that [`Owner::of_directory`] returns.
    pub fn of_file(file: &Path) -> io::Result<Owner> {
        let mut mark = file.as_os_str().to_owned();
        mark.push(format!(".{MARK}"));
        Owner::take(PathBuf::from(mark))
    }

    /// Leaves the mark in place: when this process has ended, the marked file is an orphan.
    pub fn leave(mut self) {
        self.stays = true;
    }

    /// Returns the path of the mark.
    pub fn mark(&self) -> &Path {
        &self.mark
    }

    /// Creates the mark, or takes over that of a dead process.
    fn take(mark: PathBuf) -> io::Result<Owner> {
        loop {
            let file = match open(File::options().read(true).write(true), &mark) {
                Err(error) if error.kind() == ErrorKind::NotFound => match make(&mark) {
                    // Another process has created one since.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    made => return Ok(Owner { mark, stays: false, file: made? }),
                },
                opened => opened?,
            };
            let maker = Maker::read(&file)?;
            let held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if held || maker.as_ref().is_some_and(Maker::lives) {
                let who =
                    maker.map_or("another process".to_string(), |maker| format!("process {}", maker.process));
                return Err(io::Error::new(ErrorKind::ResourceBusy, format!("{who} is using it")));
            }
            // The owner may have removed the mark since the open; then no
            // process would see this lock.
            let found = fs::symlink_metadata(&mark).ok();
            if found.is_some_and(|found| is_same(&found, &file)) {
                // A full disk refuses a new block, but allows overwriting the
                // bytes of the dead process.
                let text = Maker::this().text();
                file.write_all_at(text.as_bytes(), 0)?;
                file.set_len(text.len() as u64)?;
                return Ok(Owner { mark, stays: false, file });
            }
        }
    }
}

/// Creates a mark that is complete when it gets its name. Otherwise a full disk or a kill would
/// leave an empty one. A file system without unnamed files gets it in place.
fn make(mark: &Path) -> io::Result<File> {
    make_unnamed(mark).or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => Err(error),
        _ => make_in_place(mark),
    })
}

fn make_unnamed(mark: &Path) -> io::Result<File> {
    let around = mark.parent().filter(|around| !around.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).open(around)?;
    write_held(&file)?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, unnamed, CWD, mark, AtFlags::SYMLINK_FOLLOW)?;
    Ok(file)
}

fn make_in_place(mark: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create_new(true).open(mark)?;
    write_held(&file).inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(mark);
    })?;
    Ok(file)
}

/// Writes a new mark under its lock.
fn write_held(mut file: &File) -> io::Result<()> {
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(io::Error::new(ErrorKind::ResourceBusy, "another process is using it"));
    }
    file.write_all(Maker::this().text().as_bytes())
}

/// True if the name still leads to the open file.
fn is_same(found: &fs::Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|ours| (found.dev(), found.ino()) == (ours.dev(), ours.ino()))
}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.stays {
            // The mark may be gone with its directory. Or the directory was moved, and another one
            // with a mark of its own is in its place.
            let found = fs::symlink_metadata(&self.mark).ok();
            if found.is_some_and(|found| is_same(&found, &self.file)) {
                let _ = fs::remove_file(&self.mark);
            }
        }
    }
}

/// Opens the mark of a dead process; `None` if it is alive or not to be trusted. While the returned
/// file is open, no process takes the mark over.
pub fn abandoned(mark: &Path) -> Option<File> {
    let file = open(File::options().read(true), mark).ok()?;
    if !is_trusted(file.metadata().ok()?.uid(), owner_of_marked(mark)) {
        return None;
    }
    let maker = Maker::read(&file).ok()??;
    let held = || matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    (!maker.lives() && !held()).then_some(file)
}

/// True if one process made both abandoned marks.
pub fn is_same_maker(one: &File, other: &File) -> bool {
    let maker = |mark| Maker::read(mark).ok().flatten();
    maker(one).is_some_and(|one| maker(other) == Some(one))
}

/// True if a file of this user may be trusted about another file: the user is that of this process,
/// root, or the other file's owner. Any user may create a file in a directory such as `/tmp`.
pub fn is_trusted(user: u32, owner_of_thing: Option<u32>) -> bool {
    user == rights::caller() || user == 0 || owner_of_thing == Some(user)
}

/// Returns the owner of the marked directory or file.
fn owner_of_marked(mark: &Path) -> Option<u32> {
    let around = || mark.parent().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let marked = match mark.file_name().is_some_and(|name| name == MARK) {
        true => around()?.to_path_buf(),
        false => mark.with_extension(""),
    };
    fs::symlink_metadata(marked).ok().map(|found| found.uid())
}

/// Opens a mark without following a link or waiting for the other end of a pipe.
///
/// # Errors
/// When the mark is no regular file, or the kernel refuses.
fn open(options: &mut fs::OpenOptions, mark: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = options.truncate(false).custom_flags(flags).open(mark);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other(format!("{MARK} is a link, expected a regular file")),
        _ => error,
    })?;
    let file = regular(file.into()).map_err(|error| io::Error::new(error.kind(), format!("{MARK}: {error}")));
    file.map(File::from)
}

/// The process that made a mark.
#[derive(Debug, PartialEq, Eq)]
struct Maker {
    process: u32,
    /// Start time in clock ticks since boot; 0 where /proc does not show it.
    started: u64,
}

impl Maker {
    fn this() -> Maker {
        let process = std::process::id();
        Maker { process, started: start_time(process).unwrap_or(0) }
    }

    fn text(&self) -> String {
        format!("plumb {} started {}\n", self.process, self.started)
    }

    /// Reads a mark's text; `None` when it is empty or in another form.
    fn read(file: &File) -> io::Result<Option<Maker>> {
        let mut bytes = [0; MARK_BYTES_MAX];
        let length = if file.metadata()?.is_file() { file.read_at(&mut bytes, 0)? } else { 0 };
        let text = String::from_utf8_lossy(&bytes[..length]);
        let maker = || {
            let (process, started) = text.trim_end().strip_prefix("plumb ")?.split_once(" started ")?;
            Some(Maker { process: process.parse().ok()?, started: started.parse().ok()? })
        };
        Ok(maker())
    }

    fn lives(&self) -> bool {
        start_time(self.process).is_some_and(|started| started == self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_living_process_made_is_not_abandoned() {
        let directory = tempfile::tempdir().expect("a directory");
        let owner = Owner::of_directory(directory.path()).expect("a mark");
        assert!(abandoned(owner.mark()).is_none(), "O1");
        // A process of another namespace holds it, and its number means nothing here.
        fs::write(owner.mark(), "plumb 4194305 started 1\n").expect("another mark");
        assert!(abandoned(owner.mark()).is_none(), "O1");
        let error = Owner::of_directory(directory.path()).expect_err("O1");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert_eq!(error.to_string(), "process 4194305 is using it");
        let mark = owner.mark().to_path_buf();
        drop(owner);
        assert!(!mark.exists());
    }

    #[test]
    fn the_mark_of_a_dead_process_is_taken_over_and_what_is_no_mark_is_not_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let mark = directory.path().join(MARK);
        // The number is in use again, by a process with another start time.
        let again = format!("plumb {} started 1\n", std::process::id());
        for text in ["plumb 4194305 started 1\n", again.as_str()] {
            fs::write(&mark, text).expect("a mark");
            assert!(abandoned(&mark).is_some(), "{text}");
        }
        drop(Owner::of_directory(directory.path()).expect("taken over"));
        for text in ["", "plumb\n", "4711\n", "plumb x started y\n"] {
            fs::write(&mark, text).expect("a file");
            assert!(abandoned(&mark).is_none(), "O2: {text:?}");
        }
        fs::remove_file(&mark).expect("there");
        let elsewhere = directory.path().join("elsewhere");
        fs::write(&elsewhere, "plumb 4194305 started 1\n").expect("a file");
        std::os::unix::fs::symlink(&elsewhere, &mark).expect("a link");
        assert!(abandoned(&mark).is_none(), "no link is followed");
        let error = Owner::of_directory(directory.path()).expect_err("no link is followed").to_string();
        assert_eq!(error, "plumb-owner is a link, expected a regular file");
        fs::remove_file(&mark).expect("there");
        // No program makes it: another test kills the children of this process.
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &mark, kind, rustix::fs::Mode::RUSR, 0).expect("a pipe");
        let error = Owner::of_directory(directory.path()).expect_err("no pipe is opened").to_string();
        assert_eq!(error, "plumb-owner: it is a pipe, expected a regular file");
    }

    #[test]
    fn a_mark_in_place_is_as_one_that_had_no_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let mark = directory.path().join(MARK);
        for make in [make_unnamed, make_in_place] {
            let file = make(&mark).expect("made");
            assert_eq!(fs::read_to_string(&mark).expect("text"), Maker::this().text());
            let another = File::open(&mark).expect("there");
            assert!(matches!(another.try_lock(), Err(TryLockError::WouldBlock)), "O2");
            assert_eq!(make(&mark).expect_err("it is there").kind(), ErrorKind::AlreadyExists);
            fs::remove_file(&mark).expect("there");
            drop(file);
        }
    }

    #[test]
    fn a_mark_is_taken_over_in_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let mark = directory.path().join(MARK);
        fs::write(&mark, format!("plumb 4194305 started {}\n", u64::MAX)).expect("a mark");
        let before = fs::metadata(&mark).expect("there").ino();
        let owner = Owner::of_directory(directory.path()).expect("taken over");
        assert_eq!(fs::metadata(&mark).expect("there").ino(), before);
        assert_eq!(fs::read_to_string(&mark).expect("text"), Maker::this().text());
        drop(owner);
        assert!(!mark.exists());
    }

    #[test]
    fn the_mark_of_another_directory_in_the_place_of_this_one_stays() {
        let around = tempfile::tempdir().expect("a directory");
        let (here, there) = (around.path().join("here"), around.path().join("there"));
        fs::create_dir(&here).expect("a directory");
        let owner = Owner::of_directory(&here).expect("a mark");
        fs::rename(&here, &there).expect("moved");
        fs::create_dir(&here).expect("a directory");
        let other = Owner::of_directory(&here).expect("a mark of its own");
        drop(owner);
        assert!(other.mark().exists());
    }
}
