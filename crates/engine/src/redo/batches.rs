//! The batches in the log files: the place of each, and readers of the records in them.

use super::log_file::BATCH_HEADER;
use super::log_writer::{BatchPlace, LogWriter, Usage, charge};
use super::read_back::ReadBack;
use crate::EngineError;
use plumb_events::{Event, Session, locked};
use plumb_io::{File, Method, MethodKind};
use plumb_units::{Bytes, Lsn};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// Most sessions that read records back at once, each of another batch.
const READERS: usize = 8;

/// The batches whose records can be read.
#[derive(Debug)]
pub(crate) struct Batches {
    /// First members.
    files: Vec<Arc<File>>,
    log_block: usize,
    /// In the order of their LSNs.
    places: Mutex<VecDeque<BatchPlace>>,
    readers: [Mutex<ReadBack>; READERS],
}

impl Batches {
    pub(super) fn new(writer: &LogWriter, places: VecDeque<BatchPlace>) -> Result<Batches, EngineError> {
        let method = Method::start(MethodKind::Sync, 1)?;
        Ok(Batches {
            files: writer.files.iter().map(|file| Arc::clone(file.file())).collect(),
            log_block: writer.block,
            places: Mutex::new(places),
            readers: std::array::from_fn(|_| Mutex::new(ReadBack::new(method.channel_for_one()))),
        })
    }

    pub(crate) fn files(&self) -> &[Arc<File>] {
        &self.files
    }

    pub(super) fn places(&self) -> MutexGuard<'_, VecDeque<BatchPlace>> {
        locked(&self.places)
    }

    /// Forgets the batches of the file that a switch would go on in, before a byte of it is written
    /// over. Those of the others can be read although no recovery needs them: statements that began
    /// before a checkpoint find their versions there.
    pub(super) fn forget_next(&self, writer: &LogWriter) {
        let next = writer.next_file();
        let is_free = writer.files[next].usage == Usage::Free;
        let mut places = self.places();
        while is_free && places.front().is_some_and(|place| place.file == next) {
            places.pop_front();
        }
    }

    /// Returns the position of the file with the first record from `low` on.
    pub(super) fn file_of(&self, low: Lsn) -> Option<usize> {
        self.places().iter().find(|place| place.end > low).map(|place| place.file)
    }

    /// Returns the bytes of log blocks from the batch with the record at `redo` on.
    pub(super) fn bytes_from(&self, redo: Lsn) -> Bytes {
        let places = self.places();
        let first = places.get(places.partition_point(|place| place.end <= redo));
        let (Some(first), Some(last)) = (first, places.back()) else { return Bytes(0) };
        let own = charge((first.end.0 - first.lsn.0) as usize, self.log_block) as u64;
        Bytes((last.written + own).saturating_sub(first.written))
    }

    /// Reads the bytes of the record at an LSN; false when its file has been used again.
    pub(super) fn read(&self, session: &Session, lsn: Lsn, into: &mut Vec<u8>) -> Result<bool, EngineError> {
        let place = {
            let places = self.places();
            let behind = places.partition_point(|place| place.lsn <= lsn);
            behind.checked_sub(1).and_then(|at| places.get(at).copied()).filter(|place| lsn < place.end)
        };
        let Some(place) = place else { return Ok(false) };
        let offset = place.offset + BATCH_HEADER as u64 + (lsn.0 - place.lsn.0);
        let file = (&self.files[place.file], place.file);
        // One batch has one reader, so that its windows serve all who want records of it.
        let number = (place.offset / self.log_block as u64) as usize % READERS;
        let mut reader = session.latch(&self.readers[number], Event::LatchFree);
        let verified = if place.verified { Ok(()) } else { reader.verify(session, file, &place) };
        let read = verified.and_then(|()| reader.record(session, file, (offset, &place), into));
        drop(reader);
        let mut places = self.places();
        // The file may have been used again meanwhile.
        if places.front().is_none_or(|first| first.lsn > place.lsn) {
            return Ok(false);
        }
        read?;
        let at = places.partition_point(|other| other.lsn < place.lsn);
        places[at].verified = true;
        Ok(true)
    }

    /// Forgets the windows of the readers, before a file is written over.
    pub(super) fn forget_windows(&self) {
        self.readers.iter().for_each(|reader| locked(reader).forget());
    }

    /// Returns the memory that holds records read back.
    pub(super) fn memory(&self) -> Bytes {
        self.readers.iter().map(|reader| locked(reader).memory()).sum()
    }
}
