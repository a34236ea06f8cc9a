//! Files that a study writes before a run and puts back after it.
//!
//! ```text
//! x.conf                      as the study wrote it, for the time of a run
//! x.conf.plumb-original       as it was: complete and durable before x.conf is touched
//! x.conf.plumb-absent         instead: there was none
//! ```
//!
//! The copy beside the file is the journal: as long as it stands, the file is to be put back. Whoever ends a run does
//! so, also when its study was killed; if that too was killed, the next run that writes the file does it first.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

const ORIGINAL: &str = "plumb-original";
const ABSENT: &str = "plumb-absent";
const FRESH: &str = "plumb-new";

/// Files that were written; put back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Written(Vec<PathBuf>);

impl Written {
    /// Writes files, each whole or not at all.
    ///
    /// # Errors
    /// Which one cannot be written or kept; all are then as they were.
    pub(super) fn write(files: &[(String, String)], directory: &Path) -> Result<Written, String> {
        let mut written = Written::default();
        for (name, text) in files {
            let named = directory.join(name);
            // What a link points to is what is written and put back.
            let path = named.canonicalize().unwrap_or(named);
            let wrong = |error: io::Error| format!("cannot write {name}: {error}");
            put_back(&path).and_then(|()| keep(&path)).map_err(wrong)?;
            written.0.push(path.clone());
            replace(&path, text.as_bytes(), fs::metadata(&path).ok()).map_err(wrong)?;
        }
        Ok(written)
    }

    /// Puts them back now.
    ///
    /// # Errors
    /// Which one could not be; its copy stays beside it.
    pub(super) fn put_back(mut self) -> Result<(), String> {
        let back = |path: PathBuf| {
            put_back(&path).map_err(|error| format!("cannot put back {}: {error}", path.display()))
        };
        std::mem::take(&mut self.0).into_iter().try_for_each(back)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = put_back(path);
        }
    }
}

/// Puts back whatever of these is kept beside them.
pub(super) fn put_all_back(files: &[(String, String)], directory: &Path) {
    for (name, _) in files {
        let named = directory.join(name);
        let _ = put_back(&named.canonicalize().unwrap_or(named));
    }
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
    match fs::read(path) {
        Ok(content) => replace(&beside(path, ORIGINAL), &content, Some(fs::metadata(path)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(&beside(path, ABSENT), b"", None),
        Err(error) => Err(error),
    }
}

/// Puts a file back that was kept; one that was not stays as it is.
fn put_back(path: &Path) -> io::Result<()> {
    let (original, absent) = (beside(path, ORIGINAL), beside(path, ABSENT));
    if original.exists() {
        return fs::rename(&original, path);
    }
    if absent.exists() {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => return fs::remove_file(&absent),
        }
    }
    Ok(())
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
        std::mem::forget(written);
        let again = Written::write(&files, directory.path()).expect("written");
        again.put_back().expect("put back");
        assert_eq!(fs::read_to_string(&old).expect("read"), "old");
        assert_eq!(fs::metadata(&old).expect("there").permissions().mode() & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["old.conf"]);
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
