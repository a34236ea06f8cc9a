//! Opens a log: its control block, the members of its files, and the epoch of members outside.
//!
//! 1. The newer whole copy of the control block names the log file with the low LSN, and the LSN
//!    where redo begins.
//! 2. The control block and the files from that one on are synced, because a killed process may
//!    have written without a sync (L6).
//! 3. Recovery applies the records again ([`recovery`](super::recovery)).
//! 4. The log continues after its last batch, with new LSNs.

use super::archiver::Archive;
use super::checkpoint::{self, Checkpoint, ControlFile};
use super::copier::{Copier, Purpose};
use super::creation::OPERATIONS;
use super::epoch::Standing;
use super::log::{Log, Opened};
use super::log_file::{FILE_HEADER, FileHeader};
use super::log_home::{Continuation, LogHome, of_whole_pages, require_records};
use super::log_writer::{BatchPlace, LogFile, Usage};
use super::recovery::{Recovered, Redo};
use crate::EngineError;
use crate::settings::Setting;
use crate::storage::log_places::MemberId;
use crate::storage::own_file::require_own_at;
use plumb_events::{Event, Session};
use plumb_io::{File, IoError, OpenMode};
use plumb_units::{Bytes, Lsn, path_text};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

impl LogHome<'_> {
    /// Opens the log and applies its records.
    ///
    /// # Errors
    /// If the control block, a log file or a block to change is missing or damaged.
    pub fn recover(&self, session: &Session) -> Result<(Log, Recovered), EngineError> {
        let options = self.options()?;
        let path = checkpoint::path(self.home);
        require_own_at(&self.access.disk, &path, OpenMode::Write)?;
        let mut control = ControlFile::open_at(self.access, &path, OpenMode::Write)?;
        let checkpoint = control.read(session, self.database)?;
        self.require_as_made(&checkpoint)?;
        let mut redo = Redo::new(self, session, &checkpoint)?;
        let files = self.open_files(&mut redo, &checkpoint)?;
        let lengths = || files.iter().map(|file| file.bytes);
        require_records(&options, u64::from(checkpoint.log_block), lengths().min().unwrap_or(0))?;
        let file_bytes = checkpoint.file_bytes.max(lengths().max().unwrap_or(0));
        let checkpoint = Checkpoint { file_bytes, ..checkpoint };
        self.make_durable(session, &files, &checkpoint)?;
        let (current, offset, end) = redo.read_log(&files, &checkpoint, options.buffer_bytes)?;
        redo.finish(end)?;
        let Redo { places, recovered, is_cut_short, .. } = redo;
        let checkpoint = match self.is_outside() {
            true => {
                if is_cut_short {
                    // O1: two openings in a row that are cut short would leave members of three
                    // epochs.
                    self.write_epoch(session, &files, &checkpoint)?;
                }
                self.take_epoch(session, &mut control, &files, checkpoint)?
            }
            false => checkpoint,
        };
        // Copies of a database continue with different LSNs. All are above any operation number,
        // and above the first LSN of a file begun by an opening that wrote nothing else.
        let stretch = self.access.disk.random_id() as u64 >> 32;
        let least = end.max(files[current].header.first).max(Lsn(self.above.0 + OPERATIONS));
        let next = Lsn((least.0 + stretch).next_multiple_of(8));
        let mut files = used(files, &places, &checkpoint);
        let archive = self.archive()?;
        if let Some(archive) = &archive {
            require_archived(session, archive, &mut files)?;
        }
        let at = Continuation { files, current, offset, next, end };
        let writer = self.writer(session, &options, &checkpoint, archive.is_some(), at)?;
        Ok((Log::new(Opened { options, writer, archive, control, checkpoint, places })?, recovered))
    }

    /// Rejects settings that are fixed when a log is created, if set explicitly to another value.
    fn require_as_made(&self, checkpoint: &Checkpoint) -> Result<(), EngineError> {
        let log = &self.settings.log;
        let place = |asked: &Path, made: &Path| (asked == made, format!("in {:?}", path_text(made)));
        let count = |asked: u32, made: u32| (asked == made || made == 0, format!("with {made}"));
        let (asked, bytes) = (of_whole_pages(log.log_file_size.0), checkpoint.file_bytes);
        // A control block without a size accepts any.
        let size = (asked == bytes || bytes == 0, format!("with {}", Bytes(bytes).as_setting()));
        let fixed = [
            (Setting::LogPath, place(&log.log_path, &self.places.first)),
            (Setting::LogMirrorPath, place(&log.log_mirror_path, &self.places.second)),
            (Setting::LogFileGroups, count(log.log_file_groups, checkpoint.log_files)),
            (Setting::LogFileMembers, count(log.log_file_members, checkpoint.members)),
            (Setting::LogFileSize, size),
        ];
        let is_other = |(setting, (is_same, _)): &(Setting, (bool, String))| {
            self.settings.is_explicit(*setting) && !is_same
        };
        if let Some((setting, (_, made))) = fixed.into_iter().find(is_other) {
            return Err(EngineError::Contradiction {
                first: match setting {
                    // The text is in lower case, and the size rounded to whole pages.
                    Setting::LogFileSize => format!("log_file_size={}", Bytes(asked).as_setting()),
                    _ => self.settings.assigned(setting),
                },
                second: format!("a log that was made {made}"),
                why: "that is fixed then; leave it out, or make another database".to_string(),
            });
        }
        Ok(())
    }

    /// Syncs the files that recovery reads (L6). A killed process may have left its last batch in
    /// the page cache alone. A later O_DSYNC write does not sync it, so a power failure would leave
    /// a hole before acknowledged records.
    fn make_durable(
        &self,
        session: &Session,
        files: &[LogFile],
        checkpoint: &Checkpoint,
    ) -> Result<(), EngineError> {
        let needed = files.iter().filter(|file| file.header.sequence >= checkpoint.sequence);
        for member in needed.flat_map(|file| &file.members) {
            session.wait(Event::LogFileParallelWrite, || member.sync_data())?;
        }
        Ok(())
    }

    fn open_files(&self, redo: &mut Redo<'_>, checkpoint: &Checkpoint) -> Result<Vec<LogFile>, EngineError> {
        self.make_places(checkpoint.members)?;
        (1..=checkpoint.log_files).map(|number| self.open_file(redo, number, checkpoint)).collect()
    }

    /// Opens a member of a log file; the inner error says that it is missing or has lost its end.
    fn open_member(&self, path: &Path, least: u64) -> Result<Result<Arc<File>, String>, EngineError> {
        require_own_at(&self.access.disk, path, OpenMode::Write)?;
        match self.access.disk.open(path, OpenMode::Write, self.access.direct) {
            Ok(file) => {
                checkpoint::lock(&file)?;
                let bytes = file.length()?;
                let is_short =
                    format!("it has {bytes} bytes of {least}, and what its end had may have been committed");
                Ok(if bytes < least { Err(is_short) } else { Ok(Arc::new(file)) })
            }
            Err(IoError::Operation { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(Err("it is missing".to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Claims the members outside of the home for this opening.
    fn take_epoch(
        &self,
        session: &Session,
        control: &mut ControlFile,
        files: &[LogFile],
        checkpoint: Checkpoint,
    ) -> Result<Checkpoint, EngineError> {
        let epochs = checkpoint.epochs.next(&self.access.disk);
        assert_eq!(epochs.before, checkpoint.epochs.now, "O1: members have the epoch before");
        let checkpoint = Checkpoint { serial: checkpoint.serial + 1, epochs, ..checkpoint };
        // O2: before a member has it.
        control.write(session, &checkpoint)?;
        self.write_epoch(session, files, &checkpoint)?;
        Ok(checkpoint)
    }

    /// Writes the control block's epoch to the members outside of the home, durably.
    fn write_epoch(
        &self,
        session: &Session,
        files: &[LogFile],
        checkpoint: &Checkpoint,
    ) -> Result<(), EngineError> {
        let owner = self.owner(checkpoint.epochs.now);
        let mut copier = Copier::new(session, Purpose::Member)?;
        let mut page = vec![0; FILE_HEADER as usize];
        for file in files {
            file.header.write(&mut page, &owner);
            for (_, member) in (1..).zip(&file.members).filter(|(number, _)| self.places.is_outside(*number))
            {
                copier.write(member, 0, &page)?;
            }
        }
        Ok(())
    }

    /// Opens the members of a log file. One that is missing, has lost its end or has a damaged
    /// header is created again from the other.
    fn open_file(
        &self,
        redo: &mut Redo<'_>,
        number: u32,
        checkpoint: &Checkpoint,
    ) -> Result<LogFile, EngineError> {
        let unused = FileHeader::unused(self.database, number);
        let mut found: Vec<Option<(Arc<File>, Option<FileHeader>)>> = Vec::new();
        let (mut first_why, mut others) = (None, Vec::new());
        for member in 1..=checkpoint.members {
            let path = self.path(MemberId { number, member });
            let opened = match self.open_member(&path, checkpoint.file_bytes)? {
                Ok(file) => file,
                Err(why) => {
                    first_why.get_or_insert(why);
                    found.push(None);
                    continue;
                }
            };
            let head = redo.reader.head(&opened)?;
            let header = FileHeader::read(head, self.database, &path)?;
            if header.is_some() && self.places.is_outside(member) {
                let owner = FileHeader::owner(head);
                redo.is_cut_short |= owner.epoch != checkpoint.epochs.now;
                if self.claim(checkpoint).judge(&path, &owner)? == Standing::Behind {
                    first_why.get_or_insert(
                        "it is an older copy, which was not there at the last opening".to_string(),
                    );
                    found.push(None);
                    continue;
                }
            }
            others.extend(header.filter(|header| header.number != number).map(|found| (member, found)));
            found.push(Some((opened, header.filter(|header| header.number == number))));
        }
        let worth = |(file, header): &&(Arc<File>, Option<FileHeader>)| {
            (header.map(|header| header.sequence), file.length().unwrap_or(0))
        };
        let best = found.iter().flatten().max_by_key(worth).cloned();
        let Some((source, header)) = best else {
            let path = self.path(MemberId { number, member: 1 });
            let wrong = first_why.expect("a member that was not opened has a reason");
            let why = format!("{wrong}; restore it from a copy of the database made when it was closed");
            return Err(EngineError::Log { path, why });
        };
        self.require_own(number, found.iter().flatten().count(), &others)?;
        let (bytes, owner) = (source.length()?, self.owner(checkpoint.epochs.now));
        let mut opened = Vec::new();
        for (member, found) in (1..).zip(found) {
            let id = MemberId { number, member };
            let file = match &found {
                Some((file, same)) if *same == header && file.length()? == bytes => Arc::clone(file),
                found => {
                    if matches!(found, Some((_, Some(_)))) {
                        // The member is this database's, whichever directory its header names.
                        self.access.disk.remove(&self.path(id))?;
                    }
                    redo.is_cut_short = true;
                    let file = self.create_member(redo.session, id, bytes, &owner)?;
                    self.access.disk.sync_directory(file.path().parent().unwrap_or(self.home))?;
                    redo.make_like(&source, &file, bytes)?;
                    file
                }
            };
            opened.push(file);
        }
        let header = header.unwrap_or(unused);
        Ok(LogFile { members: opened, header, bytes, usage: Usage::Free, archived: true })
    }

    /// Refuses a log file if all its `members` belong to other log files. One misplaced member
    /// alone is created again from the other.
    fn require_own(
        &self,
        number: u32,
        members: usize,
        others: &[(u32, FileHeader)],
    ) -> Result<(), EngineError> {
        let Some((member, FileHeader { number: found, .. })) = others.last() else { return Ok(()) };
        if others.len() < members {
            return Ok(());
        }
        let why = format!(
            "it is log file {found} of this database, expected log file {number}; name it {}, where it belongs: if \
             the two were swapped, swap them back",
            self.path(MemberId { number: *found, member: *member }).display()
        );
        Err(EngineError::Log { path: self.path(MemberId { number, member: *member }), why })
    }
}

/// Sets the usage of each file: from the checkpoint's file on all are needed,
/// even those without a batch.
fn used(mut files: Vec<LogFile>, places: &VecDeque<BatchPlace>, checkpoint: &Checkpoint) -> Vec<LogFile> {
    for file in files.iter_mut().filter(|file| file.header.sequence >= checkpoint.sequence) {
        file.usage = Usage::Used(checkpoint.low);
    }
    for place in places {
        files[place.file].usage = Usage::Used(place.end);
    }
    files
}

/// Keeps filled files without a copy from being reused.
fn require_archived(session: &Session, archive: &Archive, files: &mut [LogFile]) -> Result<(), EngineError> {
    // L6: a killed process may have renamed a copy without a sync of the directory.
    let is_durable = archive.sync_names().is_ok();
    for file in files.iter_mut().filter(|file| file.header.sequence > 0) {
        file.archived = is_durable && archive.has(session, &file.header).unwrap_or(false);
        if !file.archived && file.usage == Usage::Free {
            file.usage = Usage::Used(Lsn(0));
        }
    }
    Ok(())
}
