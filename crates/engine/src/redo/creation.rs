//! Making a log: its files, of zeros, and its control block, which comes last.

use super::checkpoint::{self, Checkpoint, ControlFile, FileHeaders};
use super::epoch::Epochs;
use super::log::{Log, Opened};
use super::log_file::{BATCH_HEADER, BatchHeader, FILE_HEADER, FileHeader, Owner};
use super::log_home::{Continuation, LogHome, of_whole_pages, require_records};
use super::log_writer::{LogFile, Usage};
use crate::EngineError;
use crate::storage::log_places::MemberId;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, File, Method, MethodKind, OpenMode, Operation, Request};
use plumb_units::Lsn;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Numbers that direct path operations of one opening may have below the LSNs of its log.
pub(super) const OPERATIONS: u64 = 1 << 30;
/// Bytes of a write when a log file is made.
const PIECE: usize = 1 << 20;

impl LogHome<'_> {
    /// Makes the log files and the control block. Until the control block is there the database has
    /// no log, and what was made is made anew.
    ///
    /// # Errors
    /// When a file cannot be made, or the settings contradict each other.
    pub fn create(&self, session: &Session) -> Result<Log, EngineError> {
        let options = self.options()?;
        let bytes = of_whole_pages(self.settings.log.log_file_size.0);
        let count = self.settings.log.log_file_groups;
        let log_block = self.log_block();
        require_records(&options, log_block, bytes)?;
        let first = Lsn((self.above.0 + OPERATIONS).max(self.reaches.0).next_multiple_of(8));
        let members = self.settings.log.log_file_members;
        self.make_places(members)?;
        self.require_no_log(count, members)?;
        let none = Epochs::default();
        let epoch = if self.is_outside() { none.next(&self.access.disk).now } else { none.now };
        let owner = self.owner(epoch);
        let mut files = Vec::new();
        for number in 1..=count {
            let of_file = MemberId::all(count, members).filter(|id| id.number == number);
            let made = of_file.map(|id| self.create_member(session, id, bytes, &owner));
            let members = made.collect::<Result<_, _>>()?;
            let header = FileHeader::unused(self.database, number);
            files.push(LogFile { members, header, bytes, usage: Usage::Free, archived: true });
        }
        for member in 1..=members {
            self.access.disk.sync_directory(&self.places.directory(self.home, member))?;
        }
        let checkpoint = Checkpoint {
            database: self.database,
            serial: 0,
            redo: first,
            low: first,
            sequence: 1,
            next_transaction: 1,
            log_block: log_block as u32,
            log_files: count,
            members,
            file_bytes: bytes,
            headers: FileHeaders::NotNoted,
            epochs: Epochs { now: epoch, before: epoch },
            definitions: 0,
        };
        let archive = self.archive()?;
        let at = Continuation { files, current: 0, offset: FILE_HEADER, next: first, end: first };
        let mut writer = self.writer(session, &options, &checkpoint, archive.is_some(), at)?;
        writer.begin_file(session, 0, 1)?;
        let control = self.create_control(session, &checkpoint)?;
        Log::new(Opened { options, writer, archive, control, checkpoint, places: VecDeque::new() })
    }

    /// The control block gets its name when it is whole.
    fn create_control(&self, session: &Session, checkpoint: &Checkpoint) -> Result<ControlFile, EngineError> {
        let path = checkpoint::path(self.home);
        let beside = path.with_extension("new");
        let disk = &self.access.disk;
        if disk.exists(&beside) {
            disk.remove(&beside)?;
        }
        let mut made = ControlFile::open_at(self.access, &beside, OpenMode::Create)?;
        made.write(session, &Checkpoint { serial: 1, ..*checkpoint })?;
        made.write(session, checkpoint)?;
        disk.sync_directory(self.home)?;
        disk.rename(&beside, &path)?;
        disk.sync_directory(self.home)?;
        drop(made);
        ControlFile::open_at(self.access, &path, OpenMode::Write)
    }

    /// Refuses to make a log where one of this database is. The copy of a directory from before its
    /// log was made has none, and would remove the original's.
    fn require_no_log(&self, count: u32, members: u32) -> Result<(), EngineError> {
        let all = MemberId::all(count, members);
        for path in all.filter(|id| self.places.is_outside(id.member)).map(|id| self.path(id)) {
            if self.access.disk.exists(&path) && self.has_begun(&path)? {
                let why = format!(
                    "the log of another copy of the database is in it, and none in {}; open that copy, or restore a backup",
                    self.home.display()
                );
                return Err(EngineError::Log { path, why });
            }
        }
        Ok(())
    }

    /// True for a log file of this database that has batches, or had some before it was begun
    /// again. One that a killed process was making has none.
    fn has_begun(&self, path: &Path) -> Result<bool, EngineError> {
        let mut head = self.access.disk.read_head(path, FILE_HEADER as usize + BATCH_HEADER)?;
        head.resize(FILE_HEADER as usize + BATCH_HEADER, 0);
        let Some(header) = FileHeader::read(&head, self.database, path)? else { return Ok(false) };
        let batch = BatchHeader::claimed(&head[FILE_HEADER as usize..], header.sequence, Lsn(0));
        Ok(header.sequence > 1 || batch.is_some())
    }

    /// Makes room for a member that is made: removes one that this database has made before.
    fn remove_own(&self, path: &Path, member: u32) -> Result<(), EngineError> {
        let disk = &self.access.disk;
        if !disk.exists(path) {
            return Ok(());
        }
        if self.places.is_outside(member) && !disk.is_memory() {
            let mut head = disk.read_head(path, FILE_HEADER as usize)?;
            head.resize(FILE_HEADER as usize, 0);
            FileHeader::read(&head, self.database, path)?;
            if FileHeader::owner(&head).home != self.canonical {
                let why = "it is there already, and does not say that it is this database's; move it away";
                return Err(EngineError::Log { path: path.to_path_buf(), why: why.to_string() });
            }
        }
        Ok(disk.remove(path)?)
    }

    /// Makes a member of a log file, of zeros. One outside of the home says first whose it is.
    pub(super) fn create_member(
        &self,
        session: &Session,
        id: MemberId,
        bytes: u64,
        owner: &Owner,
    ) -> Result<Arc<File>, EngineError> {
        let path = self.path(id);
        self.remove_own(&path, id.member)?;
        let file = Arc::new(self.access.disk.open(&path, OpenMode::Create, self.access.direct)?);
        checkpoint::lock(&file)?;
        let mut channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        let mut buffer = Arena::buffers(PIECE, 1)?.1.remove(0);
        if self.places.is_outside(id.member) {
            FileHeader::unused(self.database, id.number).write(&mut buffer, owner);
        }
        for offset in (0..bytes).step_by(PIECE) {
            let request = Request {
                operation: Operation::Write,
                file: Arc::clone(&file),
                offset,
                buffer,
                range: 0..PIECE.min((bytes - offset) as usize),
                event: Event::DataFileInitWrite,
                stream: IoStream::FileInit,
                tag: 0,
            };
            channel.submit(session, request)?;
            buffer = channel.wait(session, Event::DataFileInitWrite)?.buffer;
            buffer[..FILE_HEADER as usize].fill(0);
        }
        session.wait(Event::DataFileInitWrite, || file.sync_all())?;
        Ok(file)
    }
}
