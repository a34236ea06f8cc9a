//! Reads a file of records: chunk by chunk, several requests ahead, past the page
//! cache if that is supported.
//!
//! A chunk is a multiple of a block and of a record, so every request is aligned and no record is
//! split over two. Servers take the chunks of a file in turn: together they read it in one pass
//! from front to end, and a slow server takes fewer.

use crate::access::Access;
use crate::file_sort::{BLOCK_BYTES, RECORD_FILE_HINT};
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, Channel, File, IoBuffer, Operation, Request};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Returns the bytes of the smallest chunk of whole blocks and whole records.
pub(crate) const fn chunk_bytes_min(record_bytes: usize) -> usize {
    let (mut a, mut b) = (BLOCK_BYTES, record_bytes);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    BLOCK_BYTES / a * record_bytes
}

/// An open file of records, and the number of chunks taken.
#[derive(Debug)]
pub(crate) struct RecordFile {
    file: Arc<File>,
    pub record_bytes: usize,
    pub record_count: u64,
    pub chunk_bytes: usize,
    next_chunk: AtomicU64,
}

impl RecordFile {
    /// Opens a file that must consist of whole records.
    pub fn open(
        instance: &Instance,
        session: &Session,
        path: &Path,
        (record_bytes, chunk_bytes): (usize, usize),
    ) -> Result<RecordFile, EngineError> {
        let whole = chunk_bytes.is_multiple_of(chunk_bytes_min(record_bytes));
        assert!(whole, "X3: a chunk of {chunk_bytes} bytes has whole blocks and records of {record_bytes}");
        let Access { disk, direct, .. } = &instance.access;
        let file =
            session.wait(Event::DiskFileOperations, || disk.open(path, plumb_io::OpenMode::Read, *direct))?;
        let length = file.length()?;
        require_whole(path, length, record_bytes)?;
        Ok(RecordFile {
            file: Arc::new(file),
            record_bytes,
            record_count: length / record_bytes as u64,
            chunk_bytes,
            next_chunk: AtomicU64::new(0),
        })
    }

    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn length(&self) -> u64 {
        self.record_count * self.record_bytes as u64
    }
}

/// Rejects a file whose length is not a multiple of the record length.
pub(crate) fn require_whole(path: &Path, length: u64, record_bytes: usize) -> Result<(), EngineError> {
    let left_over = length % record_bytes as u64;
    if left_over == 0 {
        return Ok(());
    }
    Err(EngineError::RecordFile {
        path: path.to_path_buf(),
        why: format!(
            "its {length} bytes are no whole number of records of {record_bytes} bytes, {left_over} are left over; {RECORD_FILE_HINT}"
        ),
    })
}

/// The records of a chunk, in their read buffer.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub buffer: IoBuffer,
    /// Bytes of the buffer that are records.
    pub bytes: usize,
    /// Number in the file of the chunk's first record.
    pub first: u64,
}

impl Chunk {
    pub fn records(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}

/// One server's reads of a file.
pub(crate) struct RecordReader<'a> {
    session: &'a Session,
    source: &'a RecordFile,
    channel: Channel,
    free: Vec<IoBuffer>,
    /// Chunks requested and not yet returned, in order.
    expected: VecDeque<Expected>,
    next_tag: u64,
}

struct Expected {
    offset: u64,
    bytes: usize,
    arrived: Option<IoBuffer>,
}

impl<'a> RecordReader<'a> {
    /// Makes a reader with `buffer_count` buffers of a chunk each.
    pub fn new(
        session: &'a Session,
        access: &Access,
        source: &'a RecordFile,
        buffer_count: usize,
    ) -> Result<RecordReader<'a>, EngineError> {
        let (arena, free) = Arena::buffers(source.chunk_bytes, buffer_count)?;
        let channel = access.method.channel(&[&arena])?;
        Ok(RecordReader { session, source, channel, free, expected: VecDeque::new(), next_tag: 0 })
    }

    /// Returns the next chunk of this server; `None` after the servers have taken all.
    pub fn next(&mut self) -> Result<Option<Chunk>, EngineError> {
        self.read_ahead()?;
        while self.expected.front().is_some_and(|front| front.arrived.is_none()) {
            let completion = self.channel.wait(self.session, Event::ExternalTableRead)?;
            let oldest = self.next_tag - self.expected.len() as u64;
            let asked = &mut self.expected[(completion.tag - oldest) as usize];
            assert!(asked.arrived.is_none(), "a chunk arrives once");
            if completion.range.len() != asked.bytes {
                return Err(self.changed());
            }
            asked.arrived = Some(completion.buffer);
        }
        let Some(Expected { offset, bytes, arrived }) = self.expected.pop_front() else { return Ok(None) };
        let buffer = arrived.expect("waited for above");
        let record_bytes = self.source.record_bytes;
        assert!(offset.is_multiple_of(record_bytes as u64), "X3: a chunk begins with a record");
        assert!(bytes.is_multiple_of(record_bytes), "X3: a chunk ends with a record");
        Ok(Some(Chunk { buffer, bytes, first: offset / record_bytes as u64 }))
    }

    /// Takes buffers back and starts the reads that they allow.
    pub fn recycle(&mut self, buffers: impl IntoIterator<Item = IoBuffer>) -> Result<(), EngineError> {
        self.free.extend(buffers);
        self.read_ahead()
    }

    fn read_ahead(&mut self) -> Result<(), EngineError> {
        let chunk_bytes = self.source.chunk_bytes as u64;
        let chunk_count = self.source.length().div_ceil(chunk_bytes);
        let mut submitted = false;
        // Stays within the queue's depth, so that submitting never waits.
        while !self.free.is_empty() && self.channel.has_room() {
            let chunk = self.source.next_chunk.fetch_add(1, Relaxed);
            if chunk >= chunk_count {
                break;
            }
            let offset = chunk * chunk_bytes;
            let bytes = (self.source.length() - offset).min(chunk_bytes) as usize;
            let buffer = self.free.pop().expect("seen above");
            let request = Request {
                // The end of the file need not be the end of a block.
                operation: if bytes < self.source.chunk_bytes {
                    Operation::ReadAtMost
                } else {
                    Operation::Read
                },
                file: Arc::clone(&self.source.file),
                offset,
                range: 0..buffer.len(),
                buffer,
                event: Event::ExternalTableRead,
                stream: IoStream::FileReads,
                tag: self.next_tag,
            };
            self.next_tag += 1;
            self.expected.push_back(Expected { offset, bytes, arrived: None });
            self.channel.submit(self.session, request)?;
            submitted = true;
        }
        if submitted {
            self.channel.flush(self.session)?;
        }
        Ok(())
    }

    fn changed(&self) -> EngineError {
        EngineError::RecordFile {
            path: self.source.file.path().to_path_buf(),
            why: format!(
                "it was {} bytes long and has changed while it was read; no other program may write to it meanwhile",
                self.source.length()
            ),
        }
    }
}
