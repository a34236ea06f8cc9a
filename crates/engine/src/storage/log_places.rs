//! Directories of the members of a database's log files.
//!
//! The settings `log_path` and `log_mirror_path` name them when the log is made; the control file
//! keeps them. A member outside the home has the database's id in its name, so that several
//! databases may share a directory.

use crate::EngineError;
use crate::database_id::DatabaseId;
use crate::settings::{Setting, Settings};
use plumb_host::kind::what_is;
use plumb_units::path_text;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// Directory of second members in a database's home; another disk may be mounted there.
const MIRROR: &str = "mirror";

/// Directories of the first and second members of a database's log files: absolute,
/// or relative to its home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlaces {
    /// Directory of the first members; empty for the home.
    #[serde(with = "super::path_text")]
    pub first: PathBuf,
    /// Directory of the second members.
    #[serde(with = "super::path_text")]
    pub second: PathBuf,
}

impl Default for LogPlaces {
    fn default() -> LogPlaces {
        LogPlaces { first: PathBuf::new(), second: PathBuf::from(MIRROR) }
    }
}

impl LogPlaces {
    /// Returns the directories of log files that are made from now on.
    ///
    /// # Errors
    /// If both members would lie in one directory, or a directory named outside
    /// the home does not exist.
    pub(crate) fn of(settings: &Settings) -> Result<LogPlaces, EngineError> {
        let (first, second) = (settings.log.log_path.clone(), settings.log.log_mirror_path.clone());
        for (setting, path) in [(Setting::LogPath, &first), (Setting::LogMirrorPath, &second)] {
            require_place(path).map_err(|why| EngineError::LogPlace {
                setting: setting.row().name,
                path: path.clone(),
                why,
            })?;
        }
        let places = LogPlaces { first, second };
        places.require_valid().map_err(|why| EngineError::Contradiction {
            first: settings.assigned(Setting::LogPath),
            second: settings.assigned(Setting::LogMirrorPath),
            why,
        })?;
        Ok(places)
    }

    /// True for the directories of a database whose settings name none.
    pub fn are_usual(&self) -> bool {
        *self == LogPlaces::default()
    }

    /// Rejects directories that no setting could have named.
    pub(crate) fn require_valid(&self) -> Result<(), String> {
        let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
        for place in [&self.first, &self.second] {
            if !(place.components().all(normal) || place.is_absolute()) {
                return Err(format!(
                    "log files lie in {:?}, expected an absolute path, or one within the directory",
                    path_text(place)
                ));
            }
        }
        if self.first == self.second {
            return Err(format!("both members of log files lie in {:?}", path_text(&self.first)));
        }
        Ok(())
    }

    fn place(&self, member: u32) -> &Path {
        if member == 1 { &self.first } else { &self.second }
    }

    pub(crate) fn directory(&self, home: &Path, member: u32) -> PathBuf {
        let place = self.place(member);
        if place.as_os_str().is_empty() { home.to_path_buf() } else { home.join(place) }
    }

    pub(crate) fn is_outside(&self, member: u32) -> bool {
        self.place(member).is_absolute()
    }

    pub(crate) fn path(&self, home: &Path, database: DatabaseId, of: MemberId) -> PathBuf {
        let MemberId { number, member } = of;
        let name = match self.is_outside(member) {
            true => format!("redo{number:02}_{:08x}.log", database.0 >> 96),
            false => format!("redo{number:02}.log"),
        };
        self.directory(home, member).join(name)
    }
}

/// A member of a log file; files and members are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberId {
    pub(crate) number: u32,
    pub(crate) member: u32,
}

impl MemberId {
    /// Returns the members of all log files, file by file.
    pub(crate) fn all(files: u32, members: u32) -> impl Iterator<Item = MemberId> {
        (1..=files).flat_map(move |number| (1..=members).map(move |member| MemberId { number, member }))
    }
}

/// Rejects a missing directory outside the home, and a relative path of several names.
fn require_place(path: &Path) -> Result<(), String> {
    if path.is_absolute() {
        return match what_is(path).filter(|_| !path.is_dir()) {
            Some(found) => Err(format!("it is {found}, expected a directory; name another one")),
            None if path.is_dir() => Ok(()),
            None => Err("there is no such directory; make it first, or name another one".to_string()),
        };
    }
    let is_name = path.components().all(|part| matches!(part, Component::Normal(_)));
    match is_name && path.components().count() <= 1 {
        true => Ok(()),
        false => Err("expected an absolute path, or the name of a directory in the database's".to_string()),
    }
}
