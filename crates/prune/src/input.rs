//! The bytes of a file, read twice: once to know all spans, once to write those that are kept.
//!
//! Both passes hash what they read, so that a file which changes in between is refused.

use crate::PruneError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 * 1024;
/// Most bytes of a line, a record of CSV or a text of JSON.
pub(crate) const TEXT_MOST: usize = 16 << 20;

/// Reason why a file is refused, with its line from 1.
#[derive(Debug)]
pub(crate) struct Fault {
    pub line: u64,
    pub why: FaultKind,
}

#[derive(Debug)]
pub(crate) enum FaultKind {
    Read(std::io::Error),
    Write(std::io::Error),
    /// The file ends within a thing.
    Cut(&'static str),
    Other(String),
}

impl From<std::io::Error> for FaultKind {
    fn from(error: std::io::Error) -> FaultKind {
        FaultKind::Write(error)
    }
}

/// A file that is read once from its start.
pub(crate) struct Input {
    reader: BufReader<Hashed>,
    pub line: u64,
}

struct Hashed {
    file: File,
    hash: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(into)?;
        self.hash.update(&into[..count]);
        Ok(count)
    }
}

impl Input {
    pub fn open(path: &Path) -> Result<Input, PruneError> {
        let refused = |source| PruneError::Read { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(refused)?;
        if !file.metadata().map_err(refused)?.is_file() {
            let why = "it is no regular file, and a trace is read twice; write it to a file first";
            return Err(refused(std::io::Error::other(why)));
        }
        let hashed = Hashed { file, hash: Sha256::new() };
        Ok(Input { reader: BufReader::with_capacity(READ_BYTES, hashed), line: 1 })
    }

    /// Returns the hash of all bytes read.
    pub fn hash(self) -> [u8; 32] {
        self.reader.into_inner().hash.finalize().into()
    }

    pub fn fault(&self, why: impl Into<FaultKind>) -> Fault {
        Fault { line: self.line, why: why.into() }
    }

    /// Returns the bytes that are read and not yet taken; none at the end.
    pub fn ahead(&mut self) -> Result<&[u8], Fault> {
        let line = self.line;
        self.reader.fill_buf().map_err(|error| Fault { line, why: FaultKind::Read(error) })
    }

    pub fn peek(&mut self) -> Result<Option<u8>, Fault> {
        Ok(self.ahead()?.first().copied())
    }

    /// Takes a byte that [`Input::peek`] has returned.
    pub fn take(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.reader.consume(1);
    }

    /// Appends the bytes up to the end of the line; false at the end of the file.
    pub fn read_line(&mut self, into: &mut Vec<u8>) -> Result<bool, Fault> {
        let (line, room) = (self.line, (TEXT_MOST - into.len().min(TEXT_MOST)) as u64 + 1);
        let read = self.reader.by_ref().take(room).read_until(b'\n', into);
        let read = read.map_err(|error| Fault { line, why: FaultKind::Read(error) })?;
        if into.len() > TEXT_MOST {
            return Err(self.fault(too_long("record")));
        }
        self.line += u64::from(into.last() == Some(&b'\n') && read > 0);
        Ok(read > 0)
    }
}

impl From<String> for FaultKind {
    fn from(why: String) -> FaultKind {
        FaultKind::Other(why)
    }
}

pub(crate) fn too_long(what: &str) -> String {
    format!("the {what} has more than {} MiB", TEXT_MOST >> 20)
}

/// True if a text in quotes is not closed; a quote within it is doubled.
pub(crate) fn has_open_quote(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}
