//! Directories of a run's database, and checks for room in them.
//!
//! A directory has the name of the argument that gave it, because every error must say which
//! argument to change.

use crate::RunError;
use plumb_engine::Layout;
use plumb_engine::instance::InitialSizes;
use plumb_host::device::DeviceDescription;
use plumb_io::named_directory;
use plumb_units::{Bytes, path_of_text};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Room besides the data files: control file, lock file, the file system's own blocks.
pub const SPARE_BYTES: u64 = 16 * Bytes::M;

/// Number of checks for room that may become free; the interval follows.
const ROOM_LOOKS: u32 = 50;
const ROOM_LOOK: Duration = Duration::from_millis(100);

/// Directories named by the arguments of a run.
#[derive(Debug)]
pub struct Places<'a> {
    /// `--path`, or `--log-path`: directory of the log, of the control file and of
    /// all files without another place.
    pub home: &'a Path,
    /// The argument that named it.
    pub home_argument: &'static str,
    pub users: &'a [PathBuf],
    pub temp: &'a [PathBuf],
    pub indx: &'a [PathBuf],
}

/// Files that a word of a study, or the argument of that name, places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// Everything that no other word places.
    Rest,
    Data,
    Temp,
    Index,
    /// The log, and with it the control file.
    Log,
}

impl Placed {
    /// Words and the files they place.
    pub const WORDS: [(&'static str, Placed); 5] = [
        ("path", Placed::Rest),
        ("data_path", Placed::Data),
        ("temp_path", Placed::Temp),
        ("index_path", Placed::Index),
        ("log_path", Placed::Log),
    ];

    pub fn of(word: &str) -> Option<Placed> {
        Placed::WORDS.iter().find(|(name, _)| *name == word).map(|(_, placed)| *placed)
    }

    /// True if several directories may be used in turn.
    #[must_use]
    pub fn takes_several(self) -> bool {
        matches!(self, Placed::Data | Placed::Temp | Placed::Index)
    }
}

/// Directories of a run, from the words of a study and a default place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    home: PathBuf,
    users: Vec<PathBuf>,
    temp: Vec<PathBuf>,
    indx: Vec<PathBuf>,
    log_apart: bool,
}

impl Placement {
    /// Places files by these words; other files go to `rest`.
    pub fn of<'w>(rest: &Path, words: impl Iterator<Item = (&'w str, &'w str)>) -> Placement {
        let list = |value: &str| value.split(',').map(path_of_text).collect::<Vec<_>>();
        let (mut rest, mut log) = (rest.to_path_buf(), None);
        let (mut users, mut temp, mut indx) = (Vec::new(), Vec::new(), Vec::new());
        for (word, value) in words {
            match Placed::of(word) {
                Some(Placed::Rest) => rest = path_of_text(value),
                Some(Placed::Log) => log = Some(path_of_text(value)),
                Some(Placed::Data) => users = list(value),
                Some(Placed::Temp) => temp = list(value),
                Some(Placed::Index) => indx = list(value),
                None => {}
            }
        }
        let log_apart = log.is_some();
        if log_apart {
            // The home is the log's place here, so the other lists need the default explicitly.
            for list in [&mut users, &mut temp, &mut indx] {
                if list.is_empty() {
                    list.push(rest.clone());
                }
            }
        }
        Placement { home: log.unwrap_or(rest), users, temp, indx, log_apart }
    }

    pub fn places(&self) -> Places<'_> {
        Places {
            home: &self.home,
            home_argument: if self.log_apart { "--log-path" } else { "--path" },
            users: &self.users,
            temp: &self.temp,
            indx: &self.indx,
        }
    }
}

/// Space that the files of a run take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room {
    /// First sizes of the tablespaces, so that none grows while it is measured.
    pub tablespaces: InitialSizes,
    /// Sizes of other files next to those of each tablespace.
    pub beside: InitialSizes,
}

impl Room {
    #[must_use]
    pub fn largest(rooms: &[Room]) -> Room {
        let most = |sizes: fn(&Room) -> InitialSizes| InitialSizes {
            users: rooms.iter().map(|room| sizes(room).users).max().unwrap_or(Bytes(0)),
            temp: rooms.iter().map(|room| sizes(room).temp).max().unwrap_or(Bytes(0)),
            indx: rooms.iter().map(|room| sizes(room).indx).max().unwrap_or(Bytes(0)),
        };
        Room { tablespaces: most(|room| room.tablespaces), beside: most(|room| room.beside) }
    }
}

impl<'a> Places<'a> {
    pub fn in_one(home: &'a Path) -> Places<'a> {
        Places { home, home_argument: "--path", users: &[], temp: &[], indx: &[] }
    }

    /// Returns every directory with its argument, each once.
    pub(crate) fn named(&self) -> Vec<(&'static str, &Path)> {
        let lists = [("--data-path", self.users), ("--temp-path", self.temp), ("--index-path", self.indx)];
        let others =
            lists.iter().flat_map(|(name, list)| list.iter().map(move |path| (*name, path.as_path())));
        let mut named: Vec<(&'static str, &Path)> = Vec::new();
        for place in std::iter::once((self.home_argument, self.home)).chain(others) {
            if named.iter().all(|known| known.1 != place.1) {
                named.push(place);
            }
        }
        named
    }

    pub fn tables(&self) -> Vec<&Path> {
        match self.users {
            [] => vec![self.home],
            users => users.iter().map(PathBuf::as_path).collect(),
        }
    }

    /// Describes the device under each directory. Fails if a directory is
    /// missing, or is no directory.
    pub fn describe(&self) -> Result<Vec<DeviceDescription>, RunError> {
        let mut described: Vec<DeviceDescription> = Vec::new();
        for (name, path) in self.named() {
            named_directory::require(name, path)?;
            let device = plumb_io::describe_device(path)?;
            if described.iter().all(|known| known.path != device.path) {
                described.push(device);
            }
        }
        Ok(described)
    }

    /// Returns the paths of the files if each directory gets a subdirectory of this name.
    pub(crate) fn layout(&self, name: &str) -> Layout {
        // A path that cannot be made absolute is rejected when it is opened.
        let inside = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).join(name);
        let own = |paths: &[PathBuf]| match paths {
            [] => vec![inside(self.home)],
            paths => paths.iter().map(|path| inside(path)).collect(),
        };
        Layout { home: inside(self.home), users: own(self.users), temp: own(self.temp), indx: own(self.indx) }
    }

    /// Rejects sizes that the file systems have no room for.
    pub(crate) fn require_room(&self, sizes: &InitialSizes) -> Result<(), RunError> {
        let mut needs: Vec<(DeviceDescription, u64)> = Vec::new();
        for (paths, bytes) in [(self.users, sizes.users), (self.temp, sizes.temp), (self.indx, sizes.indx)] {
            let home = [self.home.to_path_buf()];
            let paths = if paths.is_empty() { &home[..] } else { paths };
            for path in paths {
                let device = plumb_io::describe_device(path)?;
                let share = bytes.0.div_ceil(paths.len() as u64);
                match needs.iter_mut().find(|(known, _)| known.mount == device.mount) {
                    Some((_, needed)) => *needed = needed.saturating_add(share),
                    None => needs.push((device, share.saturating_add(SPARE_BYTES))),
                }
            }
        }
        needs.into_iter().try_for_each(|(device, needed)| require_space(&later(device, needed)?, needed))
    }
}

/// Waits for room that becomes free. XFS frees the space of removed files in the background, and
/// the previous run had files there.
fn later(mut device: DeviceDescription, needed: u64) -> Result<DeviceDescription, RunError> {
    let may_come = |device: &DeviceDescription| {
        device.mount.file_system == "xfs" && (device.space.free.0..device.space.total.0).contains(&needed)
    };
    for _ in 0..ROOM_LOOKS {
        if !may_come(&device) {
            break;
        }
        thread::sleep(ROOM_LOOK);
        device = plumb_io::describe_device(&device.path)?;
    }
    Ok(device)
}

/// Rejects a need that the file system has no room for.
pub fn require_space(device: &DeviceDescription, needed: u64) -> Result<(), RunError> {
    if device.space.free.0 >= needed {
        return Ok(());
    }
    Err(RunError::NoRoom { path: device.path.clone(), needed: Bytes(needed), free: device.space.free })
}

/// Returns an unused name for directories in these places: `STEM-PID`. If a dead process with that
/// number left one, a number is appended.
pub fn free_name(places: &Places<'_>, stem: &str) -> String {
    let taken = |name: &String| places.named().iter().any(|(_, path)| path.join(name).exists());
    let first = format!("{stem}-{}", std::process::id());
    let others = (2_u32..).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(others).find(|name| !taken(name)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_place_their_files_and_others_use_the_path() {
        let check = |words: &[(&str, &str)], expected: &str| {
            let placement = Placement::of(Path::new("/a"), words.iter().copied());
            let places = placement.places();
            let named: Vec<String> =
                places.named().iter().map(|(name, path)| format!("{name} {}", path.display())).collect();
            assert_eq!(named.join(", "), expected, "{words:?}");
        };
        check(&[], "--path /a");
        check(&[("path", "/b")], "--path /b");
        check(&[("temp_path", "/b,/c")], "--path /a, --temp-path /b, --temp-path /c");
        check(&[("log_path", "/l")], "--log-path /l, --data-path /a");
        check(
            &[("path", "/b"), ("log_path", "/l"), ("index_path", "/i")],
            "--log-path /l, --data-path /b, --index-path /i",
        );
    }
}
