//! The archiver: a filled log file is copied before it is used again.
//!
//! A copy is made beside its name (`.part`), synced, and then named, so what has the name is whole.
//! Its name has the database's id and the sequence of the log file. A copy that cannot be made (no
//! directory, no space) is no failure of the log: it is made anew until it can be, and sessions
//! that need the file wait (`log file switch (archiving needed)`). A file whose copy has been made
//! is known after a crash by the copy, whose first 4096 bytes are those of the file.

use super::bell::Bell;
use super::copier::{Copier, Purpose};
use super::log_file::{FILE_HEADER, FileHeader};
use crate::EngineError;
use crate::access::Access;
use crate::database_id::DatabaseId;
use plumb_events::{Event, Session, Statistic, locked, wait_signal};
use plumb_io::{DirectIo, File, OpenMode};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Time that a wait sleeps before it checks its condition again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The directory of copies, and the database whose they are.
#[derive(Debug, Clone)]
pub(super) struct Archive {
    access: Access,
    directory: PathBuf,
    database: DatabaseId,
}

impl Archive {
    pub(super) fn new(access: &Access, directory: PathBuf, database: DatabaseId) -> Archive {
        Archive { access: access.clone(), directory, database }
    }

    fn path(&self, sequence: u64) -> PathBuf {
        self.directory.join(format!("redo_{:08x}_{sequence:010}.arc", self.database.0 >> 96))
    }

    /// True if there is a copy of the file with this header.
    pub(super) fn has(&self, session: &Session, header: &FileHeader) -> Result<bool, EngineError> {
        let path = self.path(header.sequence);
        if !self.access.disk.exists(&path) {
            return Ok(false);
        }
        let file = Arc::new(self.access.disk.open(&path, OpenMode::Read, DirectIo::Off)?);
        let mut copier = Copier::new(session, Purpose::Archive)?;
        let found = FileHeader::read(copier.read(&file, 0, FILE_HEADER as usize)?, self.database, &path)?;
        if found.as_ref() == Some(header) {
            return Ok(true);
        }
        let why = format!(
            "it is the copy of another log of sequence {}, so this one's cannot be kept here; name another archive_log_dest",
            header.sequence
        );
        Err(EngineError::Log { path, why })
    }

    /// Copies a log file of so many bytes, durably.
    pub(super) fn copy(
        &self,
        session: &Session,
        file: &Arc<File>,
        bytes: u64,
        header: &FileHeader,
    ) -> Result<(), EngineError> {
        if self.has(session, header)? {
            return Ok(());
        }
        let (disk, path) = (&self.access.disk, self.path(header.sequence));
        let part = path.with_extension("part");
        if disk.exists(&part) {
            disk.remove(&part)?;
        }
        let copy = Arc::new(disk.open(&part, OpenMode::Create, DirectIo::Off)?);
        let mut copier = Copier::new(session, Purpose::Archive)?;
        copier.copy(file, &copy, 0..bytes)?;
        session.wait(Event::LogArchiveIo, || copy.sync_all())?;
        disk.rename(&part, &path)?;
        self.sync_names()?;
        session.count(Statistic::RedoFilesArchived, 1);
        Ok(())
    }

    /// Makes the names of copies durable.
    pub(super) fn sync_names(&self) -> Result<(), EngineError> {
        Ok(self.access.disk.sync_directory(&self.directory)?)
    }
}

/// The copies of filled log files, and the sessions that wait for them.
#[derive(Debug)]
pub(crate) struct Archiving {
    /// None where no copies are made.
    archive: Option<Archive>,
    /// Why the last copy could not be made.
    failure: Mutex<Option<String>>,
    copied: Condvar,
    /// Rung when a file has been filled.
    bell: Bell,
}

impl Archiving {
    pub(super) fn new(archive: Option<Archive>) -> Archiving {
        let (failure, copied, bell) = (Mutex::default(), Condvar::new(), Bell::default());
        Archiving { archive, failure, copied, bell }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.archive.is_some()
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(super) fn failure(&self) -> Option<String> {
        locked(&self.failure).clone()
    }

    /// Copies a log file of so many bytes, and notes why that failed.
    pub(super) fn copy(
        &self,
        session: &Session,
        file: &Arc<File>,
        bytes: u64,
        header: &FileHeader,
    ) -> Result<(), EngineError> {
        let archive = self.archive.as_ref().expect("only filled files that are to be copied have no copy");
        let copied = archive.copy(session, file, bytes, header);
        let directory = archive.directory.display();
        let said = |error: &EngineError| format!("log sequence {} in {directory}: {error}", header.sequence);
        *locked(&self.failure) = copied.as_ref().err().map(said);
        copied
    }

    /// Wakes the sessions that wait for a copy.
    pub(super) fn tell(&self) {
        self.copied.notify_all();
    }

    /// Rings the archiver and waits a moment for a copy.
    pub(crate) fn await_copy(&self, session: &Session) {
        self.bell.ring();
        let begin = session.begin_wait();
        drop(wait_signal((&self.failure, &self.copied), locked(&self.failure), LOOK_AGAIN));
        session.end_wait(Event::LogFileSwitchArchive, begin);
    }
}
