//! Files that a study writes before a run and puts back after it.
//!
//! ```text
//! x.conf                      as the study wrote it, for the time of a run
//! x.conf.plumb-original       as it was: complete and durable before x.conf is touched
//! x.conf.plumb-absent         instead: there was none
//! x.conf.plumb-written        SHA-256 of what the study wrote
//! x.conf.plumb-owner          the mark of the run's process
//! ```
//!
//! The copy beside the file is the journal: as long as it stands, the file is to be put back. Whoever ends a run does
//! so, also when its study was killed; if that too was killed, `plumb clean` does, or the next run that writes the file. They
//! come later, when somebody may have edited it: what is neither the study's text nor the original is left to its owner.

use crate::hex::hex;
use crate::outside::WRITTEN_MOST;
use plumb_io::owner::{self, MARK, Owner};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

const ORIGINAL: &str = "plumb-original";
const ABSENT: &str = "plumb-absent";
const WRITTEN: &str = "plumb-written";
const FRESH: &str = "plumb-new";

/// Files that were written; put back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Written(Vec<(PathBuf, Owner)>);

impl Written {
    /// Writes files, each whole or not at all.
    ///
    /// # Errors
    /// Which one cannot be written or kept, or is another process's; all are then as they were.
    pub(crate) fn write(files: &[(String, String)], directory: &Path) -> Result<Written, String> {
        let mut written = Written::default();
        for (name, text) in files {
            let named = directory.join(name);
            // What a link points to is what is written and put back.
            let path = named.canonicalize().unwrap_or(named);
            let wrong = |error: io::Error| format!("cannot write {name}: {error}");
            let mark = beside(&path, MARK);
            // Held until it is put back, and still there if it cannot be.
            let abandoned = owner::abandoned(&mark);
            if mark.exists() && abandoned.is_none() {
                return Err(format!("cannot write {name}: another run has it written"));
            }
            recover(&path)?;
            drop(abandoned);
            let owner = Owner::of_file(&path).map_err(wrong)?;
            let hash = hex(&Sha256::digest(text));
            replace(&beside(&path, WRITTEN), hash.as_bytes(), None)
                .and_then(|()| keep(&path))
                .map_err(wrong)?;
            written.0.push((path.clone(), owner));
            replace(&path, text.as_bytes(), fs::metadata(&path).ok()).map_err(wrong)?;
        }
        Ok(written)
    }

    /// Puts them back now.
    ///
    /// # Errors
    /// Which one could not be; its copy stays beside it.
    pub(crate) fn put_back(mut self) -> Result<(), String> {
        let back = |(path, _owner): (PathBuf, Owner)| {
            put_back(&path).map_err(|error| format!("cannot put back {}: {error}", path.display()))
        };
        std::mem::take(&mut self.0).into_iter().try_for_each(back)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        for (path, _) in &self.0 {
            let _ = put_back(path);
        }
    }
}

/// Puts back whatever of these this process wrote, which is about to end.
pub(crate) fn put_all_back(files: &[(String, String)], directory: &Path) {
    for (name, _) in files {
        let named = directory.join(name);
        let path = named.canonicalize().unwrap_or(named);
        if put_back(&path).is_ok() {
            let _ = fs::remove_file(beside(&path, MARK));
        }
    }
}

/// The file that a mark says is written, if there is a journal of it.
pub(crate) fn journalled(mark: &Path) -> Option<PathBuf> {
    let path = mark.extension().is_some_and(|end| end == MARK).then(|| mark.with_extension(""))?;
    [ORIGINAL, ABSENT, WRITTEN].iter().any(|what| beside(&path, what).exists()).then_some(path)
}

/// Puts back a file whose run was killed before it could; one without a journal stays as it is.
///
/// # Errors
/// When it was edited since, or the kernel refuses: a line with what to do.
pub(crate) fn recover(path: &Path) -> Result<(), String> {
    let (original, absent, hash) =
        (beside(path, ORIGINAL), beside(path, ABSENT), content(&beside(path, WRITTEN)).ok());
    let kept = if original.exists() { &original } else { &absent };
    if !kept.exists() {
        // What is left when somebody settled it by hand.
        let _ = fs::remove_file(beside(path, WRITTEN));
        return Ok(());
    }
    let now = content(path).ok();
    let as_written = now.as_ref().is_some_and(|now| hash == Some(hex(&Sha256::digest(now)).into_bytes()));
    let as_it_was = if original.exists() { now == content(&original).ok() } else { now.is_none() };
    if !as_written && !as_it_was {
        let (path, kept) = (path.display(), kept.display());
        let before =
            if original.exists() { "has what it was before" } else { "says that there was none before" };
        return Err(format!(
            "{path} was changed after a study that had written it was killed, and is not overwritten: {kept} {before}; make \
             {path} what it is to be, and remove {kept}"
        ));
    }
    put_back(path).map_err(|error| format!("cannot put back {}: {error}", path.display()))
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    plumb_io::read_regular(path, WRITTEN_MOST)
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{what}"));
    PathBuf::from(name)
}

/// Makes a file of this content in the place of another, with the rights of that one.
fn replace(path: &Path, content: &[u8], like: Option<fs::Metadata>) -> io::Result<()> {
    let fresh = beside(path, FRESH);
    let write = || -> io::Result<()> {
        let mut file = File::create(&fresh)?;
        file.write_all(content)?;
        if let Some(like) = like {
            file.set_permissions(like.permissions())?;
            chown(&fresh, Some(like.uid()), Some(like.gid()))?;
        }
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        File::open(path.parent().unwrap_or(path))?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}

/// Keeps the file as it is.
fn keep(path: &Path) -> io::Result<()> {
    match content(path) {
        Ok(content) => replace(&beside(path, ORIGINAL), &content, Some(fs::metadata(path)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(&beside(path, ABSENT), b"", None),
        Err(error) => Err(error),
    }
}

/// Puts a file back that was kept; one that was not stays as it is.
fn put_back(path: &Path) -> io::Result<()> {
    let (original, absent) = (beside(path, ORIGINAL), beside(path, ABSENT));
    if original.exists() {
        fs::rename(&original, path)?;
    } else if absent.exists() {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => fs::remove_file(&absent)?,
        }
    }
    match fs::remove_file(beside(path, WRITTEN)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_there_comes_back_with_its_rights_and_what_was_not_goes() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let old = directory.path().join("old.conf");
        fs::write(&old, "old").expect("written");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).expect("set");
        let files =
            [("old.conf".to_string(), "x=1".to_string()), ("new.conf".to_string(), "x=2".to_string())];
        let written = Written::write(&files, directory.path()).expect("written");
        assert_eq!(fs::read_to_string(&old).expect("read"), "x=1");
        assert_eq!(fs::metadata(&old).expect("there").permissions().mode() & 0o777, 0o640);
        // Killed here: nobody puts them back, and the next one does.
        killed(written);
        let again = Written::write(&files, directory.path()).expect("written");
        again.put_back().expect("put back");
        assert_eq!(fs::read_to_string(&old).expect("read"), "old");
        assert_eq!(fs::metadata(&old).expect("there").permissions().mode() & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["old.conf"]);
    }

    /// Leaves everything as a process would that is killed.
    fn killed(mut written: Written) {
        for (path, owner) in std::mem::take(&mut written.0) {
            drop(owner);
            fs::write(beside(&path, MARK), "plumb 4194305 started 1\n").expect("a mark");
        }
    }

    #[test]
    fn what_was_edited_after_the_kill_is_left_alone_and_what_nobody_touched_is_put_back() {
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
            let mark = beside(&path, MARK);
            assert_eq!(journalled(&mark).as_ref(), Some(&path));
            match (recover(&path), after) {
                (Ok(()), Ok(after)) => {
                    assert_eq!(fs::read_to_string(&path).ok().as_deref(), after);
                    assert_eq!(journalled(&mark), None);
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
}
