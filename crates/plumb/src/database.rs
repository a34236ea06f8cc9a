//! The persistent database, made at its first use in a directory of its own below the given path.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use plumb_engine::instance::{InitialSizes, stands};
use plumb_engine::redo::recovery::Recovered;
use plumb_engine::storage::control::{Catalog, FILE_NAME, stored_name};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance, Layout, Setting, Settings};
use plumb_events::Session;
use plumb_io::named_directory::{self, NamedDirectoryError};
use plumb_run::place::require_space;
use plumb_run::settings;
use plumb_units::{BlockSize, Bytes, RowCount};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of its directory, under `--path`.
const PERSISTENT: &str = "plumb.db";
/// Bytes besides the first extents: control file, lock file, the file system's own blocks.
const SPARE_BYTES: u64 = Bytes::M;
/// First size of a file, which is rounded up to one extent.
const ONE_EXTENT: Bytes = Bytes(1);

/// Opens the database in `path`.
pub fn open(path: &Path, settings: Settings, interrupt: &Interrupt) -> Result<Instance, Failure> {
    let home = home_in(path)?;
    require_standing(path, &home, stands(&home)?)?;
    let instance = Instance::open(&home, settings, interrupt.cancel())?;
    require_same_shape(&instance)?;
    Ok(instance)
}

/// Opens the transactions of a database, and reports their recovery on standard error.
pub fn open_transactions<'i>(
    instance: &'i Instance,
    session: &Session,
) -> Result<Transactions<'i>, EngineError> {
    let transactions = Transactions::open(instance, session)?;
    output::remark(&recovery(transactions.recovered()));
    Ok(transactions)
}

/// Formats a recovery, a line each; empty if there was nothing to recover.
fn recovery(done: &Recovered) -> String {
    let mut said = String::new();
    if done.block_count > 0 || !done.unended.is_empty() {
        said = format!(
            "recovered: {} records of the log, {}, in {} blocks; {} transactions that had not ended were undone\n",
            RowCount(done.record_count),
            Bytes(done.redo_bytes),
            RowCount(done.block_count),
            RowCount(done.unended.len() as u64)
        );
    }
    done.restored.iter().for_each(|line| said.push_str(&format!("recovered: {line}\n")));
    said
}

/// Opens the database in `path` read-only: nothing in it or next to it is written.
pub fn open_to_read(path: &Path, settings: Settings, interrupt: &Interrupt) -> Result<Instance, Failure> {
    let home = home_in(path)?;
    let catalog = Catalog::find(&home)?;
    require_standing(path, &home, catalog.is_some_and(|catalog| catalog.is_open()))?;
    let instance = Instance::open_to_read(&home, settings, interrupt.cancel())?;
    require_same_shape(&instance)?;
    Ok(instance)
}

/// Opens the database in `path` to read a table: also its log, if transactions change the table.
pub fn open_for(path: &Path, table: &str, interrupt: &Interrupt) -> Result<Instance, Failure> {
    let instance = open_to_read(path, Settings::default(), interrupt)?;
    if !is_live(&instance, table) {
        return Ok(instance);
    }
    drop(instance);
    open(path, Settings::default(), interrupt)
}

/// True if transactions change the table of this name.
pub fn is_live(instance: &Instance, table: &str) -> bool {
    let stored = stored_name(table);
    instance.catalog().live_tables.iter().any(|table| table.name == stored)
}

fn require_standing(path: &Path, home: &Path, stands: bool) -> Result<(), Failure> {
    if stands {
        return Ok(());
    }
    Err(Failure::run(format!(
        "there is no database {}: `plumb load FILE.csv --table T --path {}` makes one",
        home.display(),
        path.display()
    )))
}

/// Database of a load: the one in `path`, or a new one, which is made when first needed and
/// removed unless it is kept.
#[derive(Debug)]
pub struct Target<'a> {
    path: &'a Path,
    home: PathBuf,
    interrupt: &'a Interrupt,
    settings: Settings,
    instance: Option<Instance>,
    /// True if the directory was made for this database.
    directory_is_ours: bool,
    /// True if the database is removed on drop.
    temporary: Cell<bool>,
}

impl<'a> Target<'a> {
    /// Opens the database, or makes sure that one can be made.
    pub fn find(path: &'a Path, settings: Settings, interrupt: &'a Interrupt) -> Result<Target<'a>, Failure> {
        let home = home_in(path)?;
        // Checked now, because a new database would find it only after the file was read.
        settings.require_archive_dest()?;
        let exists = stands(&home)?;
        let instance = exists.then(|| open(path, settings.clone(), interrupt)).transpose()?;
        if !exists {
            require_space(&plumb_io::describe_device(path)?, first_bytes(&settings) + SPARE_BYTES)?;
            interrupt.whole(|_| {
                let made = named_directory::make("--path", path, &home)?;
                // This only tested the right to make it.
                let _ = made.then(|| fs::remove_dir(&home));
                Ok::<(), NamedDirectoryError>(())
            })?;
        }
        let (directory_is_ours, temporary) = (false, Cell::new(false));
        Ok(Target { path, home, interrupt, settings, instance, directory_is_ours, temporary })
    }

    /// Fails on a name in use.
    pub fn require_free(&self, name: &str) -> Result<(), EngineError> {
        let Some(instance) = &self.instance else { return Ok(()) };
        instance.catalog().require_free(name).map(|_| ())
    }

    /// Returns the largest block size of the database, or the block size of a new one.
    pub fn largest_block(&self) -> BlockSize {
        let there = self.instance.as_ref().map(|instance| instance.tablespaces().largest_block());
        there.unwrap_or_else(|| self.settings.block_size())
    }

    /// Makes the database now if it is new. If that fails, nothing of it remains.
    pub fn make(&mut self) -> Result<(), Failure> {
        if self.instance.is_none() {
            self.instance = Some(self.create()?);
        }
        Ok(())
    }

    /// Returns the database once it exists. Panics if it is new and not yet made.
    pub fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("a new one is made first")
    }

    fn create(&mut self) -> Result<Instance, Failure> {
        let sizes = InitialSizes { users: ONE_EXTENT, temp: ONE_EXTENT, indx: ONE_EXTENT };
        self.interrupt.begin();
        self.directory_is_ours = self.interrupt.whole(|temporary| {
            let made = named_directory::make("--path", self.path, &self.home)?;
            temporary.extend(made.then(|| self.home.clone()));
            Ok::<bool, NamedDirectoryError>(made)
        })?;
        self.temporary.set(true);
        let layout = Layout::in_one(self.home.clone());
        Ok(Instance::create(&layout, self.settings.clone(), sizes, self.interrupt.cancel())?)
    }

    /// Keeps the database, because it has content now; returns its directory.
    pub fn keep(&self) -> &Path {
        self.temporary.set(false);
        self.interrupt.keep();
        &self.home
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if !self.temporary.get() {
            return;
        }
        if let Some(instance) = self.instance.take() {
            let _ = instance.destroy();
        }
        if self.directory_is_ours {
            // Empty by now, unless another program put something there.
            let _ = fs::remove_dir(&self.home);
        }
    }
}

/// Returns the bytes of a new database's files.
fn first_bytes(settings: &Settings) -> u64 {
    Purpose::FIRST.len() as u64 * settings.number(Setting::DataFiles) * settings.extent_bytes()
}

/// Returns the database in a directory, or the directory itself if it is one, as
/// `plumb run --keep` leaves it.
pub fn home_in(path: &Path) -> Result<PathBuf, Failure> {
    let directory = named_directory::require("--path", path)?;
    let is_home = directory.join(FILE_NAME).exists();
    Ok(if is_home { directory } else { directory.join(PERSISTENT) })
}

/// Fails on a setting that differs from the one fixed at the database's creation.
fn require_same_shape(instance: &Instance) -> Result<(), Failure> {
    let catalog = instance.catalog();
    // Tablespaces of other block sizes have shapes of their own.
    for entry in catalog.tablespaces.iter().filter(|entry| entry.purpose.own_size().is_none()) {
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
