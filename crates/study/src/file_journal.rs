//! Files that a study writes before a run and restores after it.
//!
//! ```text
//! x.conf                      as the study wrote it, for the time of a run
//! x.conf.plumb-original       the file itself under another name, before x.conf is touched
//! x.conf.plumb-absent         instead: there was none
//! x.conf.plumb-written        SHA-256 of what the study wrote
//! x.conf.plumb-owner          the mark of the run's process
//! ```
//!
//! The second name is the journal: while it exists, the file must be restored. The run restores the
//! file at its end, even if its study was killed. If the run was killed, too, `plumb clean` or the
//! next run that writes the file does. By then a user may have edited the file: content that is
//! neither the study's nor the original is left alone.
//!
//! Restoring brings back the same inode, so that permissions, access control list, attributes,
//! times and other names are unchanged. Rejected: writing the content back into the inode, because
//! a crash would leave a part of the file. On a file system without hard links a copy is kept, with
//! its permissions and modification time.
//!
//! Any user could place a journal in a directory that others may write to. A journal is ignored
//! unless it belongs to this user, to root or to the owner of the file. No link is followed.

use plumb_events::locked;
use plumb_host::leftover::{Leftover, MakerClaim};
use plumb_host::owner::{self, MARK, Owner};
use plumb_host::rights;
use plumb_io::{Directory, EntryKind, Found, IoError, cure};
use plumb_record::outside::WRITTEN_MOST;
use plumb_units::hex;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::FileTimes;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const ORIGINAL: &str = "plumb-original";
const ABSENT: &str = "plumb-absent";
const WRITTEN: &str = "plumb-written";
const FRESH: &str = "plumb-new";
const JOURNAL: [&str; 3] = [ORIGINAL, ABSENT, WRITTEN];

/// True when the study has ended and nothing more may be written. Held while a file is written or
/// restored: otherwise a file written behind [`put_all_back`] would stay, without a mark.
static HAS_ENDED: Mutex<bool> = Mutex::new(false);

/// Written files; restored on drop.
#[derive(Debug, Default)]
pub struct Written(Vec<(Place, Owner)>);

impl Written {
    /// Writes files, each whole or not at all. After an error all files are restored. Fails if a
    /// file cannot be written or kept, or belongs to another process.
    pub fn write(files: &[(String, String)], directory: &Path) -> Result<Written, String> {
        let mut written = Written::default();
        for (name, text) in files {
            let has_ended = locked(&HAS_ENDED);
            if *has_ended {
                return Err(format!("cannot write {name}: the study has ended"));
            }
            let path = meant(directory, name);
            let wrong = |error: IoError| format!("cannot write {name}: {error}");
            let place = Place::of(&path).map_err(wrong)?;
            let mark = place.path_of(MARK);
            // Held until the file is restored, and kept if that fails.
            let abandoned = owner::abandoned(&mark);
            if mark.exists() && abandoned.is_none() {
                return Err(format!("cannot write {name}: another run has it written"));
            }
            place.recover()?;
            drop(abandoned);
            let owner = Owner::of_file(&path).map_err(|error| {
                let right = "give this user the right to write in its directory";
                format!("cannot write {name}: {error}{}", cure(&error, &path, right))
            })?;
            let hash = hex(&Sha256::digest(text));
            place.note(WRITTEN, hash.as_bytes()).and_then(|()| place.keep()).map_err(wrong)?;
            written.0.push((place, owner));
            let wrote = written.0.last().map(|(place, _)| place.replace(text.as_bytes()));
            drop(has_ended);
            wrote.transpose().map_err(wrong)?;
        }
        Ok(written)
    }

    /// Restores the files, with errors reported. If a file cannot be restored, its original
    /// stays under the other name.
    pub fn put_back(mut self) -> Result<(), String> {
        let _held = locked(&HAS_ENDED);
        let back =
            |(place, _owner): (Place, Owner)| place.put_back().map_err(|error| place.not_put_back(&error));
        std::mem::take(&mut self.0).into_iter().try_for_each(back)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        let _held = locked(&HAS_ENDED);
        for (place, _) in &self.0 {
            let _ = place.put_back();
        }
    }
}

/// Restores all files written by this process, which is about to exit.
pub fn put_all_back(files: &[(String, String)], directory: &Path) {
    let mut has_ended = locked(&HAS_ENDED);
    *has_ended = true;
    for (name, _) in files {
        let Ok(place) = Place::of(&meant(directory, name)) else { continue };
        if place.put_back().is_ok() {
            let _ = place.directory.remove(place.beside(MARK));
        }
    }
}

/// Files that killed studies wrote over.
#[derive(Debug)]
pub struct WrittenLeftover;

impl Leftover for WrittenLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        let place = Place::of(marked).ok().filter(|_| !marked.is_dir())?;
        let is_left = JOURNAL.iter().any(|what| place.found(what).is_some()) || !place.halves().is_empty();
        is_left.then_some(MakerClaim::Original)
    }

    /// Restores a file whose run was killed. Fails if the file was edited since, or its journal
    /// belongs to another user.
    fn release(&self, marked: &Path) -> io::Result<()> {
        let place = Place::of(marked).map_err(io::Error::other)?;
        place.recover().map_err(io::Error::other)
    }
}

/// Resolves links, because the target of a link is written and restored.
fn meant(directory: &Path, name: &str) -> PathBuf {
    let named = directory.join(name);
    named.canonicalize().unwrap_or(named)
}

/// A file, with the directory that holds it.
#[derive(Debug)]
struct Place {
    directory: Directory,
    name: OsString,
}

impl Place {
    fn of(path: &Path) -> Result<Place, IoError> {
        let directory = Directory::open(path.parent().unwrap_or(Path::new("")))?;
        Ok(Place { directory, name: path.file_name().unwrap_or_default().to_os_string() })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    fn path_of(&self, what: &str) -> PathBuf {
        self.directory.path().join(self.beside(what))
    }

    /// Returns the name of a file of the journal.
    fn beside(&self, what: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(".");
        name.push(what);
        name
    }

    fn found(&self, what: &str) -> Option<Found> {
        self.directory.found(self.beside(what))
    }

    fn content(&self, name: &OsStr) -> Option<Vec<u8>> {
        self.directory.read(name, WRITTEN_MOST).ok().flatten()
    }

    /// Rejects a journal that another user may have placed.
    fn require_own(&self) -> Result<(), String> {
        let owner = self.directory.found(&self.name).map(|found| found.owner);
        for what in JOURNAL {
            let Some(found) = self.found(what) else { continue };
            let is_own = owner::is_trusted(found.owner, owner);
            if !is_own || found.kind != EntryKind::File {
                let (path, journal) = (self.path().display().to_string(), self.path_of(what));
                let why = match is_own {
                    true => "is no regular file".to_string(),
                    false => {
                        format!("belongs to user {}, not to its owner, to this user or to root", found.owner)
                    }
                };
                let journal = journal.display();
                return Err(format!("{path} is not put back: {journal} {why}; remove {journal}"));
            }
        }
        Ok(())
    }

    fn recover(&self) -> Result<(), String> {
        self.require_own()?;
        let original = self.found(ORIGINAL);
        if original.is_none() && self.found(ABSENT).is_none() {
            // Remainder of a journal that a user resolved by hand, or that a kill left.
            let _ = self.directory.remove(self.beside(WRITTEN));
            return self.remove_halves().map_err(|error| self.not_put_back(&error));
        }
        let hash = self.content(&self.beside(WRITTEN));
        let now = self.content(&self.name);
        let as_written = now.as_ref().is_some_and(|now| hash == Some(hex(&Sha256::digest(now)).into_bytes()));
        let same =
            |original: Found| self.is_original(original) || now == self.content(&self.beside(ORIGINAL));
        let as_it_was = original.map_or(now.is_none(), same);
        if !as_written && !as_it_was {
            let kept = if original.is_some() { ORIGINAL } else { ABSENT };
            let (path, kept) = (self.path(), self.path_of(kept));
            let (path, kept) = (path.display(), kept.display());
            let before =
                if original.is_some() { "has what it was before" } else { "says that there was none before" };
            return Err(format!(
                "{path} was changed after a study that had written it was killed, and is not overwritten: {kept} {before}; make \
                 {path} what it is to be, and remove {kept}"
            ));
        }
        self.put_back().map_err(|error| self.not_put_back(&error))
    }

    fn not_put_back(&self, error: &IoError) -> String {
        format!("cannot put back {}: {error}", self.path().display())
    }

    /// True if the file is the original itself, under both names.
    fn is_original(&self, original: Found) -> bool {
        self.directory.found(&self.name).is_some_and(|found| found.identity == original.identity)
    }

    /// Writes a file of the journal.
    fn note(&self, what: &str, content: &[u8]) -> Result<(), IoError> {
        self.directory.replace(self.beside(what), content)
    }

    /// Keeps the file as it is, durably.
    fn keep(&self) -> Result<(), IoError> {
        let original = self.beside(ORIGINAL);
        match self.directory.found(&self.name) {
            None => self.note(ABSENT, b""),
            Some(_) if self.directory.link(&self.name, &original)? => self.directory.sync(""),
            Some(_) => self.copy_to(&original),
        }
    }

    /// Keeps a copy, on a file system without hard links.
    fn copy_to(&self, original: &OsStr) -> Result<(), IoError> {
        let file = self.directory.read_file(&self.name)?;
        let wrong = |error| IoError::operation("keep", &self.path(), error);
        let content = self.directory.read(&self.name, WRITTEN_MOST)?.unwrap_or_default();
        let changed = file.metadata().and_then(|found| found.modified()).map_err(wrong)?;
        self.make(original, &content, |copy| {
            rights::copy_rights(&file, copy)?;
            copy.set_times(FileTimes::new().set_modified(changed))
        })
    }

    /// Replaces the file's content; the new file has the permissions of the old.
    fn replace(&self, content: &[u8]) -> Result<(), IoError> {
        let like =
            self.directory.found(&self.name).map(|_| self.directory.read_file(&self.name)).transpose()?;
        self.make(&self.name, content, |fresh| {
            like.iter().try_for_each(|like| rights::copy_rights(like, fresh))
        })
    }

    /// Creates a whole, durable file in place of any file of that name.
    fn make(
        &self,
        name: &OsStr,
        content: &[u8],
        finish: impl Fn(&std::fs::File) -> std::io::Result<()>,
    ) -> Result<(), IoError> {
        let fresh = self.beside(FRESH);
        if self
            .found(FRESH)
            .is_some_and(|found| found.kind == EntryKind::File && found.owner == rights::caller())
        {
            // Left by a killed run of this user.
            self.directory.remove(&fresh)?;
        }
        let mut file = self.directory.create_file(&fresh)?;
        let wrong = |error| IoError::operation("write", &self.path(), error);
        let write = || file.write_all(content).and_then(|()| finish(&file)).and_then(|()| file.sync_all());
        let mut write = write;
        let made = write().map_err(wrong).and_then(|()| self.directory.rename_over(&fresh, name));
        made.inspect_err(|_| {
            let _ = self.directory.remove(&fresh);
        })?;
        self.directory.sync("")
    }

    /// Restores a file that was kept; without a journal it is unchanged.
    fn put_back(&self) -> Result<(), IoError> {
        let (original, absent) = (self.beside(ORIGINAL), self.beside(ABSENT));
        let is_there = |name: &OsStr| self.directory.found(name).is_some();
        match self.found(ORIGINAL) {
            // A rename between two names of one inode does nothing.
            Some(kept) if self.is_original(kept) => self.directory.remove(&original)?,
            Some(_) => self.directory.rename_over(&original, &self.name)?,
            None if is_there(&absent) => {
                if is_there(&self.name) {
                    self.directory.remove(&self.name)?;
                }
                self.directory.sync("")?;
                self.directory.remove(&absent)?;
            }
            None => {}
        }
        // The hash goes last: without it, recovery could not recognise the study's text.
        self.directory.sync("")?;
        if is_there(&self.beside(WRITTEN)) {
            self.directory.remove(self.beside(WRITTEN))?;
        }
        self.remove_halves()
    }

    /// Returns the files of this user that a kill left before they had their names.
    fn halves(&self) -> Vec<OsString> {
        let of_journal = JOURNAL.iter().map(|what| {
            let mut name = self.beside(what);
            name.push(plumb_io::FRESH);
            name
        });
        let is_own = |name: &OsString| {
            let found = self.directory.found(name);
            found.is_some_and(|found| found.kind == EntryKind::File && found.owner == rights::caller())
        };
        of_journal.chain([self.beside(FRESH)]).filter(is_own).collect()
    }

    fn remove_halves(&self) -> Result<(), IoError> {
        self.halves().into_iter().try_for_each(|half| self.directory.remove(half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::time::{Duration, UNIX_EPOCH};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_restored_with_permissions_and_new_ones_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let old = directory.path().join("old.conf");
        fs::write(&old, "old").expect("written");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).expect("set");
        let files =
            [("old.conf".to_string(), "x=1".to_string()), ("new.conf".to_string(), "x=2".to_string())];
        let written = Written::write(&files, directory.path()).expect("written");
        assert_eq!(fs::read_to_string(&old).expect("read"), "x=1");
        assert_eq!(fs::metadata(&old).expect("there").permissions().mode() & 0o777, 0o640);
        // Killed here: the next write restores the file.
        killed(written);
        let again = Written::write(&files, directory.path()).expect("written");
        again.put_back().expect("put back");
        assert_eq!(fs::read_to_string(&old).expect("read"), "old");
        assert_eq!(fs::metadata(&old).expect("there").permissions().mode() & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["old.conf"]);
    }

    fn recover(path: &Path) -> Result<(), String> {
        WrittenLeftover.release(path).map_err(|error| error.to_string())
    }

    /// Leaves the state of a killed process.
    fn killed(mut written: Written) {
        for (place, owner) in std::mem::take(&mut written.0) {
            drop(owner);
            fs::write(place.path_of(MARK), "plumb 4194305 started 1\n").expect("a mark");
        }
    }

    #[test]
    fn edited_files_are_left_alone_and_others_restored() {
        let files = [("x.conf".to_string(), "x=1".to_string())];
        for (before, edited, after) in [
            (Some("old"), None, Ok(Some("old"))),
            (Some("old"), Some("old"), Ok(Some("old"))),
            (Some("old"), Some("mine"), Err("plumb-original has what it was before; make ")),
            (None, None, Ok(None)),
            (None, Some("mine"), Err("plumb-absent says that there was none before; make ")),
        ] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = directory.path().join("x.conf");
            before.into_iter().for_each(|text| fs::write(&path, text).expect("written"));
            killed(Written::write(&files, directory.path()).expect("written"));
            edited.into_iter().for_each(|text| fs::write(&path, text).expect("written"));
            let mark = Place::of(&path).expect("a directory").path_of(MARK);
            assert_eq!(WrittenLeftover.claim(&path), Some(MakerClaim::Original));
            match (recover(&path), after) {
                (Ok(()), Ok(after)) => {
                    assert_eq!(fs::read_to_string(&path).ok().as_deref(), after);
                    assert_eq!(WrittenLeftover.claim(&path), None);
                }
                (Err(error), Err(expected)) => {
                    assert!(error.contains(expected), "{error}");
                    assert_eq!(fs::read_to_string(&path).ok().as_deref(), edited);
                    let next =
                        Written::write(&files, directory.path()).expect_err("the next run does not either");
                    assert_eq!(next, error);
                    assert!(mark.exists(), "it is still to be found");
                }
                (found, after) => panic!("{before:?}, {edited:?}: {found:?} and not {after:?}"),
            }
        }
    }

    #[test]
    fn what_a_living_run_writes_no_other_does() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = [("x.conf".to_string(), "x=1".to_string())];
        let held = Written::write(&files, directory.path()).expect("written");
        let error = Written::write(&files, directory.path()).expect_err("it is held");
        assert_eq!(error, "cannot write x.conf: another run has it written");
        held.put_back().expect("put back");
        assert_eq!(names(directory.path()), Vec::<String>::new());
    }

    #[test]
    fn when_one_cannot_be_written_all_are_as_they_were() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("a"), "a").expect("written");
        let files = [("a".to_string(), "b".to_string()), ("no/such/x".to_string(), "y".to_string())];
        let error = Written::write(&files, directory.path()).expect_err("no such directory");
        assert!(error.starts_with("cannot write no/such/x: "), "{error}");
        assert_eq!(fs::read_to_string(directory.path().join("a")).expect("read"), "a");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn the_restored_file_has_its_inode_names_and_times() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, other) = (directory.path().join("x.conf"), directory.path().join("other-name"));
        fs::write(&path, "old").expect("written");
        fs::hard_link(&path, &other).expect("a second name");
        let past = UNIX_EPOCH + Duration::from_secs(1_500_000_000);
        let file = fs::File::options().write(true).open(&path).expect("there");
        file.set_times(FileTimes::new().set_modified(past)).expect("set");
        let inode = fs::metadata(&path).expect("there").ino();
        let files = [("x.conf".to_string(), "x=1".to_string())];
        for is_killed in [false, true] {
            let written = Written::write(&files, directory.path()).expect("written");
            assert_eq!(fs::read_to_string(&other).expect("read"), "old", "the study writes another file");
            match is_killed {
                true => {
                    killed(written);
                    recover(&path).expect("put back");
                }
                false => written.put_back().expect("put back"),
            }
            let found = fs::metadata(&path).expect("there");
            assert_eq!((found.ino(), found.nlink()), (inode, 2));
            assert_eq!(found.modified().expect("a time"), past);
            assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        }
    }

    #[test]
    fn a_run_killed_before_its_write_loses_no_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.conf");
        fs::write(&path, "old").expect("written");
        let place = Place::of(&path).expect("a directory");
        place.note(WRITTEN, b"hash").and_then(|()| place.keep()).expect("kept");
        recover(&path).expect("put back");
        assert_eq!(names(directory.path()), ["x.conf"]);
        assert_eq!(fs::metadata(&path).expect("there").nlink(), 1);
    }

    /// Calls the copy directly, because no file system without hard links is available.
    #[test]
    fn a_copy_that_is_kept_has_rights_and_time() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.conf");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).expect("set");
        let past = UNIX_EPOCH + Duration::from_secs(1_500_000_000);
        let file = fs::File::options().write(true).open(&path).expect("there");
        file.set_times(FileTimes::new().set_modified(past)).expect("set");
        let place = Place::of(&path).expect("a directory");
        place.copy_to(&place.beside(ORIGINAL)).expect("kept");
        place.replace(b"x=1").expect("written");
        place.put_back().expect("put back");
        let found = fs::metadata(&path).expect("there");
        assert_eq!(found.permissions().mode() & 0o777, 0o604);
        assert_eq!(found.modified().expect("a time"), past);
        assert_eq!(names(directory.path()), ["x.conf"]);
    }

    #[test]
    fn nothing_is_written_through_a_link_that_somebody_laid() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        let files = [("x.conf".to_string(), "x=1".to_string())];
        for what in [FRESH, WRITTEN, ABSENT, ORIGINAL] {
            let link = directory.path().join(format!("x.conf.{what}"));
            symlink(&victim, &link).expect("a link");
            Written::write(&files, directory.path()).expect_err(what);
            assert_eq!(fs::read_to_string(&victim).expect("read"), "precious", "{what}");
            fs::remove_file(&link).expect("it is still there");
            assert_eq!(names(directory.path()), ["victim"]);
        }
    }

    /// Needs root to change the owner; otherwise the test passes without a check.
    #[test]
    fn a_journal_of_another_user_is_not_acted_on() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.conf");
        fs::write(&path, "root's").expect("written");
        if rights::caller() != 0 {
            println!("skipped: files are given away by root alone");
            return;
        }
        let nobody = Some(65_534);
        let evil = directory.path().join("x.conf.plumb-original");
        let hash = directory.path().join("x.conf.plumb-written");
        fs::write(&evil, "evil").expect("written");
        fs::write(&hash, hex(&Sha256::digest("root's"))).expect("written");
        for file in [&evil, &hash] {
            std::os::unix::fs::chown(file, nobody, nobody).expect("given away");
        }
        let error = recover(&path).expect_err("another user's");
        assert!(error.contains("belongs to user 65534"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("read"), "root's");
        // A journal of the file's own owner is accepted.
        std::os::unix::fs::chown(&path, nobody, nobody).expect("given away");
        recover(&path).expect("put back");
        assert_eq!(fs::read_to_string(&path).expect("read"), "evil");
    }
}
