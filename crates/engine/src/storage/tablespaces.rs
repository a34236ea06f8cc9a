//! The tablespaces of an open database: those of its creation, and those of
//! other block sizes made since.
//!
//! A tablespace stays as long as the database is open, so sessions keep references to it, and one
//! can be added while others are read.

use crate::EngineError;
use crate::storage::tablespace::{Purpose, Tablespace};
use plumb_io::{File, Method, MethodKind};
use plumb_units::{BlockSize, Lsn};
use std::sync::{Arc, OnceLock};

/// Most files that a ring registers.
const REGISTERED_FILES: usize = 16;

/// The tablespaces of a database, indexed by purpose.
#[derive(Debug, Default)]
pub struct Tablespaces([OnceLock<Tablespace>; Purpose::ALL.len()]);

impl Tablespaces {
    /// Collects tablespaces, each of another purpose.
    ///
    /// # Errors
    /// The name of a tablespace that is there twice, or of one of the first three that is missing.
    pub(crate) fn of(found: Vec<Tablespace>) -> Result<Tablespaces, String> {
        let all = Tablespaces::default();
        for tablespace in found {
            let name = tablespace.purpose.name();
            all.add(tablespace).map_err(|_| format!("tablespace {name} is there twice"))?;
        }
        match Purpose::FIRST.into_iter().find(|purpose| all.find(*purpose).is_none()) {
            Some(missing) => Err(format!("tablespace {} is missing", missing.name())),
            None => Ok(all),
        }
    }

    /// Adds a tablespace made since the opening.
    ///
    /// # Errors
    /// Returns the tablespace if there is one of its purpose already.
    #[expect(clippy::result_large_err, reason = "two sessions have to make one at once for it")]
    pub(crate) fn add(&self, tablespace: Tablespace) -> Result<(), Tablespace> {
        self.0[tablespace.purpose as usize].set(tablespace)
    }

    /// Returns the tablespace of a purpose, if there is one.
    #[inline]
    pub fn find(&self, purpose: Purpose) -> Option<&Tablespace> {
        self.0[purpose as usize].get()
    }

    /// Returns the tablespace of a purpose that some segment is in.
    ///
    /// # Panics
    /// If there is no such tablespace.
    #[inline]
    pub fn get(&self, purpose: Purpose) -> &Tablespace {
        self.find(purpose).expect("what lies in a tablespace is entered after it")
    }

    /// Returns all tablespaces, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Tablespace> {
        self.0.iter().filter_map(OnceLock::get)
    }

    /// Returns the files with blocks of this size for a ring to register. They are few enough that
    /// finding one among them costs less than looking up its descriptor.
    pub(crate) fn files_to_register(&self, block_size: BlockSize) -> Vec<&Arc<File>> {
        let of_size = self.iter().filter(|tablespace| tablespace.block_size == block_size);
        of_size
            .flat_map(|tablespace| &tablespace.files)
            .map(|file| &file.file)
            .take(REGISTERED_FILES)
            .collect()
    }

    /// Returns the tablespaces whose files outlive the instance.
    pub fn kept(&self) -> impl Iterator<Item = &Tablespace> {
        self.iter().filter(|tablespace| tablespace.purpose != Purpose::Temp)
    }

    /// Returns the block size of the tablespaces that every database has.
    pub fn block_size(&self) -> BlockSize {
        self.get(Purpose::Users).block_size
    }

    /// Returns the tablespace for tables with blocks of this size; it need not exist yet.
    pub fn tables_of(&self, block_size: BlockSize) -> Purpose {
        if block_size == self.block_size() { Purpose::Users } else { Purpose::of_size(block_size) }
    }

    /// Returns the size of the largest block.
    pub fn largest_block(&self) -> BlockSize {
        self.iter().map(|tablespace| tablespace.block_size).max().unwrap_or(self.block_size())
    }

    /// Notes a checkpoint in the headers of all files but temporary ones; the
    /// next sync makes it durable.
    ///
    /// # Errors
    /// If a header cannot be read or written.
    pub(crate) fn note_checkpoint(
        &self,
        session: &plumb_events::Session,
        at: Lsn,
    ) -> Result<(), EngineError> {
        let mut channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        let mut files = self.kept().flat_map(|tablespace| &tablespace.files);
        files.try_for_each(|file| file.note_checkpoint(session, &mut channel, at))
    }

    /// Makes all files but temporary ones durable.
    ///
    /// # Errors
    /// If a device reports a failed write.
    pub(crate) fn sync(&self, session: &plumb_events::Session) -> Result<(), EngineError> {
        self.kept().flat_map(|tablespace| &tablespace.files).try_for_each(|file| file.sync(session))
    }
}
