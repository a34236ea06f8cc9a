//! Golden copies: a loaded data directory from which each run of a writing workload gets its own.
//!
//! ```text
//! load ──> stop ──> golden, hashed once        [ remove data ──> copy golden ──> hash ──> run ]*
//! ```
//!
//! The hash covers paths, lengths and contents of all files. Two runs whose hashes are equal began
//! with the same bytes, which a record can show and a repeated load cannot: a new data directory
//! has an identity and times of its own. On a file system with shared extents a copy costs no
//! space, because `copy` asks the kernel to clone.
//!
//! Rejected: `CREATE DATABASE ... TEMPLATE`, which writes log and fills buffers between the runs.

use crate::account::Account;
use plumb_units::{Bytes, hex};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Files of a directory, and the hash of their paths and contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryHash {
    pub files: u64,
    pub bytes: Bytes,
    pub sha256: String,
}

impl fmt::Display for DirectoryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files, {}, sha256 {}", self.files, self.bytes, &self.sha256[..16])
    }
}

impl DirectoryHash {
    /// Reads all files of a directory.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(directory: &Path) -> io::Result<DirectoryHash> {
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let mut files = files_below(directory);
        files.sort_unstable();
        let mut piece = vec![0; 256 * 1024];
        for path in &files {
            let inside = path.strip_prefix(directory).unwrap_or(path);
            let mut file = fs::File::open(path)?;
            let length = file.metadata()?.len();
            hash.update(inside.as_os_str().as_bytes());
            hash.update([0]);
            hash.update(length.to_be_bytes());
            bytes += length;
            while let count @ 1.. = file.read(&mut piece)? {
                hash.update(&piece[..count]);
            }
        }
        Ok(DirectoryHash { files: files.len() as u64, bytes: Bytes(bytes), sha256: hex(&hash.finalize()) })
    }
}

/// Returns all files below a directory.
#[must_use]
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// Copies a directory with all below it, for this user.
///
/// # Errors
/// The kernel's; a part may be there.
pub(crate) fn copy(from: &Path, to: &Path, account: &Account) -> io::Result<()> {
    let mut directories = vec![PathBuf::new()];
    while let Some(inside) = directories.pop() {
        let made = to.join(&inside);
        fs::DirBuilder::new().mode(0o700).create(&made)?;
        account.own(&made)?;
        for entry in fs::read_dir(from.join(&inside))? {
            let entry = entry?;
            let name = inside.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                directories.push(name);
            } else {
                fs::copy(entry.path(), to.join(&name))?;
                account.own(&to.join(&name))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_hash_of_its_origin_until_a_byte_a_name_or_a_file_changes() {
        let place = tempfile::tempdir().expect("a directory");
        let (origin, copied) = (place.path().join("origin"), place.path().join("copied"));
        fs::create_dir_all(origin.join("base/5")).expect("directories");
        fs::create_dir(origin.join("pg_tblspc")).expect("an empty directory");
        fs::write(origin.join("base/5/1259"), vec![7; 300_000]).expect("a file");
        fs::write(origin.join("PG_VERSION"), "15\n").expect("a file");
        let account = Account::of_program().expect("this user");
        copy(&origin, &copied, &account).expect("copied");
        let hash = || DirectoryHash::of(&copied).expect("read");
        let golden = DirectoryHash::of(&origin).expect("read");
        assert_eq!((hash(), golden.files, golden.bytes), (golden.clone(), 2, Bytes(300_003)));
        assert!(copied.join("pg_tblspc").is_dir());
        fs::write(copied.join("PG_VERSION"), "16\n").expect("another byte");
        assert_ne!(hash().sha256, golden.sha256);
        fs::write(copied.join("PG_VERSION"), "15\n").expect("as before");
        assert_eq!(hash(), golden);
        fs::rename(copied.join("base/5/1259"), copied.join("base/5/1260")).expect("another name");
        assert_ne!(hash().sha256, golden.sha256);
    }
}
