//! The sorted file: written by several servers, each from its own place on.
//!
//! Until it is complete and durable it has another name, so that a part of it is never taken for
//! the whole; a failure removes it. Its space is allocated before the first record is read, so that
//! a disk that is too small is reported at once.
//!
//! Direct writes are whole blocks, and a server's share begins and ends inside one. Each
//! server keeps the bytes before its first block boundary and those after its last; the
//! coordinator joins these fragments ([`OutputFile::patch`]).

use crate::file_sort::BLOCK_BYTES;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart};
use plumb_host::owner::Owner;
use plumb_io::{Arena, Channel, Disk, File, IoBuffer, IoError, Operation, Request, Space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is being made.
#[derive(Debug)]
pub(crate) struct OutputFile<'i> {
    instance: &'i Instance,
    file: Arc<File>,
    unfinished: PathBuf,
    path: PathBuf,
    bytes: u64,
    finished: bool,
    /// Distinguishes the file of a killed sort from this one.
    _owner: Option<Owner>,
}

/// Suffix of an output's name until it is complete.
const UNFINISHED: &str = ".unfinished";

/// Returns the name of an output until it is complete.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// Unfinished outputs of killed sorts and exports.
#[derive(Debug)]
pub struct OutputLeftover;

impl Leftover for OutputLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        let is_named = marked.as_os_str().to_string_lossy().ends_with(UNFINISHED);
        (is_named && !marked.is_dir()).then_some(MakerClaim::Name)
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        part.is_file()
    }
}

impl<'i> OutputFile<'i> {
    /// Makes a file of `bytes` bytes under the name `PATH.unfinished`.
    pub fn create(
        instance: &'i Instance,
        session: &Session,
        path: &Path,
        bytes: u64,
    ) -> Result<OutputFile<'i>, EngineError> {
        let disk = &instance.access.disk;
        let taken = |path: &Path| {
            let open = || disk.open(path, plumb_io::OpenMode::Read, plumb_io::DirectIo::Off);
            session.wait(Event::DiskFileOperations, open).is_ok()
        };
        if taken(path) {
            return Err(EngineError::FileExists { path: path.to_path_buf() });
        }
        let unfinished = unfinished(path);
        if taken(&unfinished) {
            return Err(EngineError::Unfinished { path: unfinished });
        }
        let marked = || match disk {
            Disk::Memory(_) => Ok(None),
            _ => Owner::of_file(&unfinished).map(Some),
        };
        let owner = session.wait(Event::DiskFileOperations, marked).map_err(|source| IoError::Operation {
            operation: "create",
            path: unfinished.clone(),
            source,
        })?;
        let open = || disk.open(&unfinished, plumb_io::OpenMode::Create, instance.access.direct);
        let file = Arc::new(session.wait(Event::DiskFileOperations, open)?);
        let path = path.to_path_buf();
        let output = OutputFile { instance, file, unfinished, path, bytes, finished: false, _owner: owner };
        if bytes > 0 {
            let whole_blocks = bytes.next_multiple_of(BLOCK_BYTES as u64);
            let space = session.wait(Event::DiskFileOperations, || output.file.allocate(whole_blocks))?;
            if space == Space::Lengthened {
                session.count(Statistic::SpaceNotReserved, whole_blocks);
            }
        }
        Ok(output)
    }

    /// Writes the blocks that fragments of several writers share. The fragments must fill these
    /// blocks up to the end of the file.
    pub fn patch(&self, session: &Session, fragments: Vec<Fragment>) -> Result<(), EngineError> {
        let mut blocks: BTreeMap<u64, (usize, [u8; BLOCK_BYTES])> = BTreeMap::new();
        for Fragment { offset, bytes } in &fragments {
            for (offset, byte) in (*offset..).zip(bytes) {
                let block = offset / BLOCK_BYTES as u64;
                let (filled, content) = blocks.entry(block).or_insert((0, [0; BLOCK_BYTES]));
                content[(offset % BLOCK_BYTES as u64) as usize] = *byte;
                *filled += 1;
            }
        }
        if blocks.is_empty() {
            return Ok(());
        }
        let (arena, mut buffers) = Arena::buffers(BLOCK_BYTES, 1)?;
        let mut channel = self.instance.access.method.channel(&[&arena])?;
        for (block, (filled, content)) in blocks {
            let offset = block * BLOCK_BYTES as u64;
            let bytes = (self.bytes - offset).min(BLOCK_BYTES as u64);
            assert_eq!(filled as u64, bytes, "X4: fragments fill the block at {offset}");
            let mut buffer = buffers.pop().expect("one buffer, not in flight");
            buffer.copy_from_slice(&content);
            channel.submit(session, write_request(&self.file, offset, buffer, BLOCK_BYTES))?;
            buffers.push(channel.wait(session, Event::ExternalTableWrite)?.buffer);
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name; it stays open.
    pub fn finish(mut self, session: &Session) -> Result<Arc<File>, EngineError> {
        let disk = &self.instance.access.disk;
        session.wait(Event::DiskFileOperations, || self.file.truncate(self.bytes))?;
        session.wait(Event::DirectPathSync, || self.file.sync_data())?;
        session.wait(Event::DiskFileOperations, || disk.rename(&self.unfinished, &self.path))?;
        self.finished = true;
        if let Some(directory) = self.path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            session.wait(Event::DirectPathSync, || disk.sync_directory(directory))?;
        }
        Ok(Arc::clone(&self.file))
    }
}

impl Drop for OutputFile<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // The error that led here is the one to report.
            let _ = self.instance.access.disk.remove(&self.unfinished);
        }
    }
}

/// Bytes of a block that is shared with another writer.
#[derive(Debug)]
pub(crate) struct Fragment {
    offset: u64,
    bytes: Vec<u8>,
}

/// Writes a part of the file in order.
pub(crate) struct OutputWriter<'a> {
    session: &'a Session,
    file: &'a Arc<File>,
    channel: Channel,
    free: Vec<IoBuffer>,
    current: IoBuffer,
    /// Bytes of `current` that are filled.
    filled: usize,
    /// Offset in the file at which `current` is written.
    offset: u64,
    head: Fragment,
    /// Bytes that `head` still takes.
    head_room: usize,
}

impl<'a> OutputWriter<'a> {
    /// Makes a writer from byte `offset` on, with `buffer_count` buffers of `buffer_bytes` each.
    pub fn new(
        output: &'a OutputFile<'_>,
        session: &'a Session,
        offset: u64,
        (buffer_bytes, buffer_count): (usize, usize),
    ) -> Result<OutputWriter<'a>, EngineError> {
        assert!(buffer_bytes.is_multiple_of(BLOCK_BYTES), "X3: a buffer of {buffer_bytes} bytes");
        assert!(buffer_count >= 2, "a writer fills one buffer while another is written");
        assert!(offset <= output.bytes, "X4: a share lies inside the file");
        let (arena, mut free) = Arena::buffers(buffer_bytes, buffer_count)?;
        let channel = output.instance.access.method.channel(&[&arena])?;
        let aligned = offset.next_multiple_of(BLOCK_BYTES as u64);
        Ok(OutputWriter {
            session,
            file: &output.file,
            channel,
            current: free.pop().expect("one buffer at least"),
            free,
            filled: 0,
            offset: aligned,
            head: Fragment { offset, bytes: Vec::new() },
            head_room: (aligned - offset) as usize,
        })
    }

    /// Appends bytes to the file.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let end = self.filled + bytes.len();
        if self.head_room == 0 && end < self.current.len() {
            self.current[self.filled..end].copy_from_slice(bytes);
            self.filled = end;
            return Ok(());
        }
        self.push_across(bytes)
    }

    /// Appends bytes to the head or over the end of a buffer, which is rare.
    #[cold]
    fn push_across(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let (head, mut rest) = bytes.split_at(self.head_room.min(bytes.len()));
        self.head.bytes.extend_from_slice(head);
        self.head_room -= head.len();
        while !rest.is_empty() {
            let part = rest.len().min(self.current.len() - self.filled);
            self.current[self.filled..self.filled + part].copy_from_slice(&rest[..part]);
            self.filled += part;
            rest = &rest[part..];
            if self.filled == self.current.len() {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Waits until all whole blocks are written; returns the fragments at both ends.
    pub fn finish(mut self) -> Result<Vec<Fragment>, EngineError> {
        let whole = self.filled / BLOCK_BYTES * BLOCK_BYTES;
        let tail =
            Fragment { offset: self.offset + whole as u64, bytes: self.current[whole..self.filled].to_vec() };
        if whole > 0 {
            self.filled = whole;
            self.send()?;
        }
        while self.channel.outstanding() > 0 {
            self.channel.wait(self.session, Event::ExternalTableWrite)?;
        }
        let head = std::mem::replace(&mut self.head, Fragment { offset: 0, bytes: Vec::new() });
        Ok(vec![head, tail])
    }

    /// Sends the filled part and continues with another buffer.
    fn send(&mut self) -> Result<(), EngineError> {
        assert!(self.offset.is_multiple_of(BLOCK_BYTES as u64), "X3: a write at byte {}", self.offset);
        assert!(self.filled.is_multiple_of(BLOCK_BYTES), "X3: a write of {} bytes", self.filled);
        let next = match self.free.pop() {
            Some(buffer) => buffer,
            None if self.channel.outstanding() > 0 => {
                self.channel.wait(self.session, Event::ExternalTableWrite)?.buffer
            }
            None => unreachable!("a writer has two buffers at least"),
        };
        let full = std::mem::replace(&mut self.current, next);
        self.channel.submit(self.session, write_request(self.file, self.offset, full, self.filled))?;
        self.channel.flush(self.session)?;
        self.offset += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

impl Drop for OutputWriter<'_> {
    /// Waits for writes in flight, because the file is about to be removed.
    fn drop(&mut self) {
        self.channel.abandon(self.session, Event::ExternalTableWrite);
    }
}

fn write_request(file: &Arc<File>, offset: u64, buffer: IoBuffer, bytes: usize) -> Request {
    Request {
        operation: Operation::Write,
        file: Arc::clone(file),
        offset,
        buffer,
        range: 0..bytes,
        event: Event::ExternalTableWrite,
        stream: IoStream::FileWrites,
        tag: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::fixture::with_server;

    fn patched(fragments: &[(u64, usize)]) {
        with_server(|server| {
            let path = Path::new("sorted");
            let output = OutputFile::create(server.instance, server.session, path, 8192).expect("a file");
            let fragment =
                |(offset, length): &(u64, usize)| Fragment { offset: *offset, bytes: vec![1; *length] };
            output.patch(server.session, fragments.iter().map(fragment).collect()).expect("written");
        });
    }

    #[test]
    fn fragments_of_two_servers_fill_a_block() {
        patched(&[(4096, 10), (4106, 4086)]);
    }

    #[test]
    #[should_panic(expected = "X4: fragments fill the block at 4096")]
    fn a_byte_that_no_server_has_written_is_noticed() {
        patched(&[(4096, 10), (4107, 4085)]);
    }

    #[test]
    #[should_panic(expected = "X4: fragments fill the block at 4096")]
    fn a_byte_that_two_servers_have_written_is_noticed() {
        patched(&[(4096, 11), (4106, 4086)]);
    }
}
