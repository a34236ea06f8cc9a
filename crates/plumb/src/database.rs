//! Where a database lies: the one that stays, and the temporary one of a run.
//!
//! Everything lies under the directories that were named, in a directory of its
//! own. A temporary database is removed when its guard is dropped, on whatever
//! way the run ends; one that stays is made at its first use.

use crate::failure::Failure;
use crate::host;
use crate::interrupt::Interrupt;
use crate::settings;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::control;
use plumb_engine::{EngineError, Instance, Layout, Setting, Settings};
use plumb_io::device::{self, DeviceDescription};
use plumb_units::Bytes;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory of a database that stays, under `--path`.
const PERSISTENT: &str = "plumb.db";
/// The first size of each of its tablespaces; files grow as they fill.
const FIRST_BYTES: Bytes = Bytes(16 * Bytes::M);
/// Room beside the data files: control file, lock file, the file system's own blocks.
const SPARE_BYTES: u64 = 16 * Bytes::M;

/// Opens the database in `path`.
///
/// # Errors
/// When there is none, or it cannot be opened.
pub fn open(path: &Path, settings: Settings, interrupt: &Interrupt) -> Result<Instance, Failure> {
    let home = home_in(path)?;
    if !home.join(control::FILE_NAME).exists() {
        return Err(Failure::run(format!(
            "there is no database {}: `plumb load FILE.csv --table T --path {}` makes one",
            home.display(),
            path.display()
        )));
    }
    let instance = Instance::open(&home, settings, interrupt.cancel())?;
    require_same_shape(&instance)?;
    Ok(instance)
}

/// The database that a load goes to: the one in `path`, or a new one, which is
/// made when it is first needed and removed again unless it is kept.
#[derive(Debug)]
pub struct Target<'a> {
    path: &'a Path,
    home: PathBuf,
    interrupt: &'a Interrupt,
    settings: Settings,
    instance: Option<Instance>,
    /// Whether the directory was made for it.
    directory_is_ours: bool,
    /// Whether what is there goes when this is dropped.
    temporary: bool,
}

impl<'a> Target<'a> {
    /// Opens the database, or makes sure that one can be made.
    ///
    /// # Errors
    /// When it can be neither opened nor made.
    pub fn find(path: &'a Path, settings: Settings, interrupt: &'a Interrupt) -> Result<Target<'a>, Failure> {
        let home = home_in(path)?;
        let exists = home.join(control::FILE_NAME).exists();
        let instance = exists.then(|| open(path, settings.clone(), interrupt)).transpose()?;
        if !exists {
            require_space(&device::describe(path)?, 3 * FIRST_BYTES.0 + SPARE_BYTES)?;
            if make_directory("--path", path, &home)? {
                // The right to make it was all that was in question.
                let _ = fs::remove_dir(&home);
            }
        }
        let (directory_is_ours, temporary) = (false, false);
        Ok(Target { path, home, interrupt, settings, instance, directory_is_ours, temporary })
    }

    /// Refuses a name that the database has given away.
    ///
    /// # Errors
    /// When a table or an index has it.
    pub fn require_free(&self, name: &str) -> Result<(), EngineError> {
        let Some(instance) = &self.instance else { return Ok(()) };
        let catalog = instance.catalog();
        let name = name.to_uppercase();
        let table = catalog.tables.iter().any(|table| table.name == name).then_some("table");
        let index = || catalog.indexes.iter().any(|index| index.name == name).then_some("index");
        table.or_else(index).map_or(Ok(()), |kind| Err(EngineError::Exists { kind, name }))
    }

    /// The database, made now if it is new.
    ///
    /// # Errors
    /// When it cannot be made; then nothing of it remains.
    pub fn instance(&mut self) -> Result<&Instance, Failure> {
        let instance = match self.instance.take() {
            Some(instance) => instance,
            None => self.create()?,
        };
        Ok(self.instance.insert(instance))
    }

    fn create(&mut self) -> Result<Instance, Failure> {
        let sizes = InitialSizes { users: FIRST_BYTES, temp: FIRST_BYTES, indx: FIRST_BYTES };
        self.directory_is_ours = make_directory("--path", self.path, &self.home)?;
        self.temporary = true;
        if self.directory_is_ours {
            self.interrupt.temporary(self.home.clone());
        }
        let layout = Layout::in_one(self.home.clone());
        Ok(Instance::create(&layout, self.settings.clone(), sizes, self.interrupt.cancel())?)
    }

    /// Something is in it now: it stays. Returns its directory.
    pub fn keep(&mut self) -> &Path {
        self.temporary = false;
        self.interrupt.keep();
        &self.home
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        if let Some(instance) = self.instance.take() {
            let _ = instance.destroy();
        }
        if self.directory_is_ours {
            // Empty now; where it is not, something else was put there meanwhile.
            let _ = fs::remove_dir(&self.home);
        }
    }
}

/// The database in a directory, or the directory itself where it is one: what
/// `plumb run --keep` left.
fn home_in(path: &Path) -> Result<PathBuf, Failure> {
    let directory = require_directory("--path", path)?;
    let is_home = directory.join(control::FILE_NAME).exists();
    Ok(if is_home { directory } else { directory.join(PERSISTENT) })
}

/// What is fixed when a database is made is not silently ignored afterwards.
fn require_same_shape(instance: &Instance) -> Result<(), Failure> {
    let catalog = instance.catalog();
    for entry in &catalog.tablespaces {
        let extent = u64::from(entry.extent_blocks) * entry.block_size;
        let shape = [
            (Setting::DbBlockSize, entry.block_size),
            (Setting::DataFiles, entry.files.len() as u64),
            (Setting::ExtentSize, extent),
        ];
        for (setting, found) in shape {
            if instance.settings.is_explicit(setting) && instance.settings.number(setting) != found {
                let shown =
                    if setting == Setting::DataFiles { found.to_string() } else { Bytes(found).as_setting() };
                return Err(Failure::usage(format!(
                    "--set {0}={1}: the database {2} was made with {0}={shown}, which is fixed then; leave it out, or \
                     choose another --path",
                    setting.row().name,
                    settings::shown(&instance.settings, setting),
                    instance.home().display()
                )));
            }
        }
    }
    Ok(())
}

/// The directories that the arguments of a run name.
#[derive(Debug)]
pub struct Places<'a> {
    /// `--path`
    pub home: &'a Path,
    /// `--data-path`
    pub users: &'a [PathBuf],
    /// `--temp-path`
    pub temp: &'a [PathBuf],
    /// `--index-path`
    pub indx: &'a [PathBuf],
}

impl Places<'_> {
    /// Every directory with its argument, each once.
    fn named(&self) -> Vec<(&'static str, &Path)> {
        let lists = [("--data-path", self.users), ("--temp-path", self.temp), ("--index-path", self.indx)];
        let others =
            lists.iter().flat_map(|(name, list)| list.iter().map(move |path| (*name, path.as_path())));
        let mut named: Vec<(&'static str, &Path)> = Vec::new();
        for place in std::iter::once(("--path", self.home)).chain(others) {
            if named.iter().all(|known| known.1 != place.1) {
                named.push(place);
            }
        }
        named
    }

    /// What lies under each of them.
    ///
    /// # Errors
    /// When one is missing or is no directory.
    pub fn describe(&self) -> Result<Vec<DeviceDescription>, Failure> {
        let mut described: Vec<DeviceDescription> = Vec::new();
        for (name, path) in self.named() {
            require_directory(name, path)?;
            let device = device::describe(path)?;
            if described.iter().all(|known| known.path != device.path) {
                described.push(device);
            }
        }
        Ok(described)
    }

    /// Where the files go when each directory gets one of its own of this name.
    fn layout(&self, name: &str) -> Layout {
        // A path that cannot be made absolute is refused by whoever opens it.
        let inside = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).join(name);
        let own = |paths: &[PathBuf]| match paths {
            [] => vec![inside(self.home)],
            paths => paths.iter().map(|path| inside(path)).collect(),
        };
        Layout { home: inside(self.home), users: own(self.users), temp: own(self.temp), indx: own(self.indx) }
    }

    /// Refuses sizes that the file systems have no room for.
    fn require_room(&self, sizes: &InitialSizes) -> Result<(), Failure> {
        let mut needs: Vec<(DeviceDescription, u64)> = Vec::new();
        for (paths, bytes) in [(self.users, sizes.users), (self.temp, sizes.temp), (self.indx, sizes.indx)] {
            let home = [self.home.to_path_buf()];
            let paths = if paths.is_empty() { &home[..] } else { paths };
            for path in paths {
                let device = device::describe(path)?;
                let share = bytes.0.div_ceil(paths.len() as u64);
                match needs.iter_mut().find(|(known, _)| known.mount == device.mount) {
                    Some((_, needed)) => *needed = needed.saturating_add(share),
                    None => needs.push((device, share.saturating_add(SPARE_BYTES))),
                }
            }
        }
        needs.iter().try_for_each(|(device, needed)| require_space(device, *needed))
    }
}

/// A database that lives as long as this guard.
#[derive(Debug)]
pub struct Temporary {
    instance: Option<Instance>,
    directories: Vec<PathBuf>,
    keep: bool,
}

impl Temporary {
    /// Makes it in new directories of its own, after looking whether there is room.
    ///
    /// # Errors
    /// When there is no room, or something cannot be made; then nothing of it remains.
    pub fn create(
        places: &Places<'_>,
        settings: Settings,
        sizes: InitialSizes,
        interrupt: &Interrupt,
        directories_made: impl FnOnce(&[PathBuf]),
    ) -> Result<Temporary, Failure> {
        if settings.word(Setting::IoMethod) == "null" {
            return Temporary::in_memory(places, settings, sizes, interrupt);
        }
        places.require_room(&sizes)?;
        let name = free_name(places);
        let mut made = Temporary { instance: None, directories: Vec::new(), keep: false };
        for (argument, path) in places.named() {
            let directory = path.join(&name);
            make_directory(argument, path, &directory)?;
            interrupt.temporary(directory.clone());
            made.directories.push(directory);
        }
        directories_made(&made.directories);
        made.instance = Some(Instance::create(&places.layout(&name), settings, sizes, interrupt.cancel())?);
        Ok(made)
    }

    /// Files in memory: nothing is made on disk, and memory is what there must be room in.
    fn in_memory(
        places: &Places<'_>,
        settings: Settings,
        sizes: InitialSizes,
        interrupt: &Interrupt,
    ) -> Result<Temporary, Failure> {
        let needed = sizes.users.0.saturating_add(sizes.temp.0).saturating_add(sizes.indx.0);
        if let Some(free) = host::available_memory().filter(|free| *free < needed) {
            return Err(Failure::run(format!(
                "io_method=null keeps the files in memory: {} are needed and {} are available; use fewer --rows",
                Bytes(needed),
                Bytes(free)
            )));
        }
        interrupt.begin();
        let instance = Instance::create(&places.layout("plumb-run"), settings, sizes, interrupt.cancel())?;
        Ok(Temporary { instance: Some(instance), directories: Vec::new(), keep: false })
    }

    /// The database.
    ///
    /// # Panics
    /// Never: it is there from [`Temporary::create`] to the drop.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("there from creation to the drop")
    }

    /// Leaves the database where it is. Returns its directory.
    pub fn keep(&mut self, interrupt: &Interrupt) -> PathBuf {
        self.keep = true;
        interrupt.keep();
        self.instance().home().to_path_buf()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Some(instance) = self.instance.take() {
            // The directories go below, with whatever this leaves.
            let _ = instance.destroy();
        }
        for directory in &self.directories {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// `plumb-run-PID`, or with a number behind it where a run of that number left one.
fn free_name(places: &Places<'_>) -> String {
    let taken = |name: &String| places.named().iter().any(|(_, path)| path.join(name).exists());
    let first = format!("plumb-run-{}", std::process::id());
    let others = (2_u32..).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(others).find(|name| !taken(name)).unwrap_or(first)
}

/// Makes a directory of our own; false when it is there already.
fn make_directory(argument: &str, path: &Path, directory: &Path) -> Result<bool, Failure> {
    match fs::create_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(false),
        Err(error) => Err(Failure::run(format!(
            "{argument} {}: cannot make the directory {} in it: {error}; give this user the right to write there, or \
             name another directory",
            path.display(),
            directory.file_name().unwrap_or_default().display()
        ))),
    }
}

/// The directory, absolute and without links: the control file keeps paths, and
/// the next command may be typed elsewhere.
///
/// # Errors
/// When there is no such directory.
pub fn require_directory(argument: &str, path: &Path) -> Result<PathBuf, Failure> {
    let refuse = |why: &str| Err(Failure::run(format!("{argument} {}: {why}", path.display())));
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => path.canonicalize().or_else(|error| refuse(&error.to_string())),
        Ok(_) => refuse("is a file, and a directory is expected; name the directory it is in"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            refuse("there is no such directory; make it first, or name another one")
        }
        Err(error) => refuse(&format!("{error}; name a directory that this user may write to")),
    }
}

fn require_space(device: &DeviceDescription, needed: u64) -> Result<(), Failure> {
    if device.space.free.0 >= needed {
        return Ok(());
    }
    Err(Failure::run(format!(
        "{}: {} are needed there and {} are free; free some space, use fewer --rows, or name a directory on another \
         file system",
        device.path.display(),
        Bytes(needed),
        device.space.free
    )))
}
