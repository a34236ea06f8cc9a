//! A temporary database: it is removed when its guard is dropped, however
//! the run ends.
//!
//! Everything lies under the directories that were named, in a directory of its own, which is
//! marked as this process's: what a killed one leaves is found by [`orphans`](crate::orphans).

use crate::LabError;
use crate::observer::{Observer, Stage};
use crate::place::{self, Places, Room};
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::{Instance, Setting, Settings};
use plumb_io::limits;
use plumb_io::owner::Owner;
use plumb_units::Bytes;
use std::fs;
use std::path::PathBuf;

/// A database that lives as long as this guard.
#[derive(Debug)]
pub struct Temporary {
    instance: Option<Instance>,
    directories: Vec<PathBuf>,
    /// Tell these directories from those of killed processes.
    owners: Vec<Owner>,
    keep: bool,
}

impl Temporary {
    /// Makes it in new directories of this name, one in each place, after looking whether there is room.
    ///
    /// # Errors
    /// When there is no room, or something cannot be made; then nothing of it remains.
    pub fn create(
        places: &Places<'_>,
        name: &str,
        settings: Settings,
        Room { tablespaces: sizes, beside }: Room,
        cancel: Cancel,
        observer: &dyn Observer,
    ) -> Result<Temporary, LabError> {
        let all = |one: Bytes, two: Bytes| Bytes(one.0.saturating_add(two.0));
        let room = InitialSizes {
            users: all(sizes.users, beside.users),
            temp: all(sizes.temp, beside.temp),
            indx: all(sizes.indx, beside.indx),
        };
        if settings.word(Setting::IoMethod) == "null" {
            return Temporary::in_memory(places, settings, (sizes, total(&room)), cancel, observer);
        }
        places.require_room(&room)?;
        let mut made = Temporary { instance: None, directories: Vec::new(), owners: Vec::new(), keep: false };
        for (argument, path) in places.named() {
            let directory = path.join(name);
            place::make_directory(argument, path, &directory)?;
            made.owners.push(place::own(argument, path, &directory)?);
            observer.made(&directory);
            made.directories.push(directory);
        }
        observer.stage(&Stage::Files { directories: &made.directories, bytes: total(&sizes) });
        made.instance = Some(Instance::create(&places.layout(name), settings, sizes, cancel)?);
        Ok(made)
    }

    /// Files in memory: nothing is made on disk, and memory is what there must be room in.
    fn in_memory(
        places: &Places<'_>,
        settings: Settings,
        (sizes, needed): (InitialSizes, u64),
        cancel: Cancel,
        observer: &dyn Observer,
    ) -> Result<Temporary, LabError> {
        if let Some(memory) = limits::memory().filter(|memory| memory.available.0 < needed) {
            return Err(LabError::NoMemory { needed: Bytes(needed), free: memory.available });
        }
        observer.begins();
        let instance = Instance::create(&places.layout("plumb-run"), settings, sizes, cancel)?;
        Ok(Temporary { instance: Some(instance), directories: Vec::new(), owners: Vec::new(), keep: false })
    }

    /// The database.
    ///
    /// # Panics
    /// After [`Temporary::close`].
    #[must_use]
    pub fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("there until it is closed")
    }

    /// Closes the database; its files stay until this is dropped. Returns its directory.
    pub fn close(&mut self) -> PathBuf {
        let home = self.instance().home().to_path_buf();
        self.instance = None;
        home
    }

    /// Leaves the database where it is. Returns its directory.
    pub fn keep(&mut self) -> PathBuf {
        self.keep = true;
        self.owners.clear();
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

/// Bytes of all files.
fn total(sizes: &InitialSizes) -> u64 {
    sizes.users.0.saturating_add(sizes.temp.0).saturating_add(sizes.indx.0)
}
