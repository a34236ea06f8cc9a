//! The list of a backup's files: what it must say before any of it is believed.

use super::refused;
use crate::EngineError;
use crate::database_id::DatabaseId;
use crate::redo::log_home;
use crate::storage::control::{Catalog, FILE_NAME as CATALOG};
use crate::storage::tablespace::Purpose;
use plumb_host::kind::what_is;
use plumb_io::{Directory, Disk};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

/// The manifest's name in a backup.
pub const MANIFEST: &str = "backup.json";
const VERSION: u32 = 1;

/// The files of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    version: u32,
    /// The database's id, in hexadecimal.
    pub database: String,
    /// The files, the catalog last.
    pub files: Vec<CopiedFile>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// Its path within the database's directory.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// CRC-32C of its bytes.
    pub crc32c: u32,
}

/// Reads the manifest of a backup.
///
/// # Errors
/// When there is none, it is of another version, or names a file that the engine does not make.
pub fn manifest(from: &Path) -> Result<Manifest, EngineError> {
    if !from.is_dir() {
        return Err(missing(from));
    }
    of(&Disk::Held(Arc::new(Directory::open(from)?)), from)
}

pub(super) fn missing(from: &Path) -> EngineError {
    let why = match what_is(from).filter(|_| !from.is_dir()) {
        Some(found) => format!("it is {found}, expected the directory of a backup"),
        None if from.is_dir() => format!("it has no {MANIFEST}, and so is no whole backup"),
        None => "there is no such directory".to_string(),
    };
    refused(from, format!("{why}: name a directory that a backup has written"))
}

pub(super) fn of(disk: &Disk, from: &Path) -> Result<Manifest, EngineError> {
    let path = from.join(MANIFEST);
    let text = disk.read_small(&path)?.ok_or_else(|| missing(from))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| refused(&path, format!("it cannot be understood: {error}")))?;
    if manifest.version != VERSION {
        let why = format!("it is of version {}, and this program reads {VERSION}", manifest.version);
        return Err(refused(&path, why));
    }
    if let Some(file) = manifest.files.iter().find(|file| !is_engine_name(&file.name)) {
        let why = format!(
            "it names the file {:?}, expected names of a database's files alone; nothing was restored: restore from another backup",
            file.name
        );
        return Err(refused(&path, why));
    }
    Ok(manifest)
}

/// True for names of files that a database has in its directory and that a backup keeps.
pub(super) fn is_engine_name(name: &str) -> bool {
    let path = Path::new(name);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) || name.ends_with('/') {
        return false;
    }
    let (above, last) =
        (path.parent().unwrap_or(Path::new("")), path.file_name().and_then(|last| last.to_str()));
    let last = last.unwrap_or_default();
    let is_top = above.as_os_str().is_empty();
    let digits = |text: &str| text.len() >= 2 && text.bytes().all(|digit| digit.is_ascii_digit());
    let data_file = || {
        let mut names = Purpose::ALL.iter().map(|purpose| purpose.name().to_lowercase());
        let stem = last.strip_suffix(".dbf");
        stem.is_some_and(|stem| names.any(|name| stem.strip_prefix(&name).is_some_and(digits)))
    };
    let log_file = || {
        let stem = last.strip_prefix("redo").and_then(|rest| rest.strip_suffix(".log"));
        stem.is_some_and(digits) && (is_top || above == Path::new("mirror"))
    };
    (is_top && (last == CATALOG || Path::new(last) == log_home::control_block(Path::new(""))))
        || data_file()
        || log_file()
}

impl Manifest {
    pub(super) fn new(database: DatabaseId, files: Vec<CopiedFile>) -> Manifest {
        Manifest { version: VERSION, database: format!("{:032x}", database.0), files }
    }

    pub(super) fn text(&self, to: &Path) -> Result<String, EngineError> {
        serde_json::to_string_pretty(self).map_err(|error| refused(to, error.to_string()))
    }

    /// Requires each file that the backup's own catalog and control block need, once, and as long
    /// as they say.
    pub(super) fn require_complete(&self, disk: &Disk, from: &Path) -> Result<(), EngineError> {
        let path = from.join(MANIFEST);
        let wrong = |why: String| {
            Err(refused(&path, format!("{why}; nothing was restored: restore from another backup")))
        };
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for file in &self.files {
            if bytes.insert(&file.name, file.bytes).is_some() {
                return wrong(format!("it lists {} twice", file.name));
            }
        }
        if self.files.last().map(|file| file.name.as_str()) != Some(CATALOG) {
            return wrong(format!("its last file is not {CATALOG}, without which no database stands"));
        }
        let Some(catalog) = Catalog::find_on(disk, from)? else {
            return wrong(format!("{CATALOG} is not there"));
        };
        let own = format!("{:032x}", catalog.database.0);
        if self.database != own {
            return wrong(format!("it is of database {:?}, and {CATALOG} is of {own}", self.database));
        }
        let kept = catalog.tablespaces.iter().filter(|entry| entry.purpose != Purpose::Temp);
        let data =
            kept.flat_map(|entry| &entry.files).map(|file| (file.path.display().to_string(), file.bytes));
        let log = log_home::log_files_of(disk, from, &catalog)?;
        for (name, least) in data.chain(log) {
            match bytes.get(name.as_str()) {
                None => return wrong(format!("it does not list {name}, which {CATALOG} or redo.ctl needs")),
                Some(found) if *found < least => {
                    return wrong(format!("it lists {name} with {found} bytes, and {least} are needed"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_engine_makes() {
        for name in [
            "control.json",
            "redo.ctl",
            "redo01.log",
            "mirror/redo12.log",
            "users01.dbf",
            "users_2k01.dbf",
            "sub/indx02.dbf",
        ] {
            assert!(is_engine_name(name), "{name}");
        }
        for name in [
            "",
            "/",
            "..",
            "../users01.dbf",
            "/users01.dbf",
            "users.dbf",
            "users1x.dbf",
            "usersx01.dbf",
            "sub/redo01.log",
            "mirror/redo.ctl",
            "sub/control.json",
            "evil.sh",
            "backup.json",
            "lock",
            "users01.dbf/",
            "./users01.dbf",
            "redo.log",
            "a/../users01.dbf",
        ] {
            assert!(!is_engine_name(name), "{name:?}");
        }
    }
}
