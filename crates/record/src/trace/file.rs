//! `trace.bin`: the requests of a run as bytes.
//!
//! ```text
//! "plumbtrc" | version u32 | bytes of the rest u64 | SHA-256 of the rest | rest
//! rest      elapsed, dropped, files, kinds, sessions; each list with its length first
//! kind      stream, event, 0 read 1 write
//! session   name, requests
//! request   kind + kinds * file | begin less the one before, zigzag | service time
//!           | offset less the end of the one before in that file, zigzag | bytes
//! ```
//!
//! Numbers of the head are little-endian; those of the rest are varints of 7 bits a byte, the
//! lowest first. Text is preceded by its length. Requests of a session are consecutive, so that
//! differences are small: an append takes 8 to 10 bytes.

use super::{Kind, Request, RunTrace, SessionTrace};
use crate::outside;
use plumb_events::Direction;
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file in a bundle.
pub const FILE: &str = "trace.bin";
const MAGIC: &[u8; 8] = b"plumbtrc";
const VERSION: u32 = 1;
/// Bytes of magic, version, length and hash.
const HEAD: usize = 8 + 4 + 8 + 32;

/// Reason why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// It is no trace, or not the one that was written.
    #[error("{}: {why}", path.display())]
    Damaged {
        path: PathBuf,
        /// The value found, and the value expected.
        why: String,
    },
}

impl RunTrace {
    /// Returns the bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut rest = Writer(Vec::new());
        rest.number(self.elapsed_ns);
        rest.number(self.dropped);
        rest.list(&self.files, |rest, file| rest.text(file));
        rest.list(&self.kinds, |rest, kind| {
            rest.text(&kind.stream);
            rest.text(&kind.event);
            rest.number(u64::from(kind.direction == Direction::Write));
        });
        rest.list(&self.sessions, |rest, session| {
            rest.text(&session.name);
            let mut before = Before::new(self.files.len());
            rest.list(&session.requests, |rest, request| {
                rest.number((request.kind + self.kinds.len() * request.file) as u64);
                rest.signed(request.begin_ns.wrapping_sub(before.begin_ns));
                rest.number(request.latency_ns);
                rest.signed(request.offset.wrapping_sub(before.ends[request.file]));
                rest.number(request.bytes);
                before.note(request);
            });
        });
        let rest = rest.0;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((rest.len() as u64).to_le_bytes());
        bytes.extend(Sha256::digest(&rest));
        bytes.extend(rest);
        bytes
    }

    /// Parses the bytes of a trace file.
    pub fn of_bytes(bytes: &[u8]) -> Result<RunTrace, String> {
        let Some((head, rest)) = bytes.split_at_checked(HEAD).filter(|(head, _)| head.starts_with(MAGIC))
        else {
            return Err(format!("it does not begin as a trace does, with {:?}", "plumbtrc"));
        };
        let number =
            |at: usize| head[at..at + 8].iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let version = number(8) as u32;
        if version != VERSION {
            return Err(format!(
                "it is a trace of version {version}, and this program reads version {VERSION}"
            ));
        }
        if number(12) != rest.len() as u64 {
            return Err(format!(
                "it has {} bytes behind its head, and the head says {}",
                rest.len(),
                number(12)
            ));
        }
        if Sha256::digest(rest)[..] != head[20..] {
            return Err(
                "its bytes are not those that were written: the SHA-256 in its head differs".to_string()
            );
        }
        Reader(rest).trace().ok_or_else(|| "it ends within a request".to_string())
    }
}

/// Reads the trace of a bundle, named by its directory or by the file.
pub fn read(bundle: &Path) -> Result<RunTrace, TraceError> {
    let path = if bundle.is_dir() { bundle.join(FILE) } else { bundle.to_path_buf() };
    let bytes = plumb_host::regular::read_regular(&path, outside::TRACE_MOST)
        .map_err(|source| TraceError::Read { path: path.clone(), source })?;
    RunTrace::of_bytes(&bytes).map_err(|why| TraceError::Damaged { path, why })
}

/// Base of the differences in a session's next request.
struct Before {
    begin_ns: u64,
    /// End of the previous request, by file.
    ends: Vec<u64>,
}

impl Before {
    fn new(files: usize) -> Before {
        Before { begin_ns: 0, ends: vec![0; files] }
    }

    fn note(&mut self, request: &Request) {
        self.begin_ns = request.begin_ns;
        self.ends[request.file] = request.offset.wrapping_add(request.bytes);
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Writes a difference in two's complement.
    fn signed(&mut self, difference: u64) {
        let signed = difference as i64;
        self.number((signed << 1 ^ signed >> 63) as u64);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, list: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|entry| write(self, entry));
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<u64> {
        let number = self.number()?;
        Some(number >> 1 ^ (number & 1).wrapping_neg())
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        (0..length).map(|_| read(self)).collect()
    }

    fn trace(&mut self) -> Option<RunTrace> {
        let (elapsed_ns, dropped) = (self.number()?, self.number()?);
        let files = self.list(Reader::text)?;
        let kinds = self.list(|rest| {
            let (stream, event) = (rest.text()?, rest.text()?);
            let direction = if rest.number()? == 1 { Direction::Write } else { Direction::Read };
            Some(Kind { stream, event, direction })
        })?;
        let sessions = self.list(|rest| {
            let name = rest.text()?;
            let mut before = Before::new(files.len());
            let requests = rest.list(|rest| {
                let both = usize::try_from(rest.number()?).ok()?;
                let (kind, file) = (both.checked_rem(kinds.len())?, both.checked_div(kinds.len())?);
                let begin_ns = before.begin_ns.wrapping_add(rest.signed()?);
                let latency_ns = rest.number()?;
                let offset = before.ends.get(file)?.wrapping_add(rest.signed()?);
                let request = Request { begin_ns, latency_ns, kind, file, offset, bytes: rest.number()? };
                before.note(&request);
                Some(request)
            })?;
            Some(SessionTrace { name, requests })
        })?;
        Some(RunTrace { elapsed_ns, dropped, files, kinds, sessions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_trace_reads_back_as_it_was_written() {
        let trace = fixture::trace();
        let bytes = trace.to_bytes();
        assert_eq!(RunTrace::of_bytes(&bytes), Ok(trace.clone()));
        assert!(bytes.len() < 400, "{} bytes for 11 requests", bytes.len());
        assert_eq!(RunTrace::of_bytes(&RunTrace::default().to_bytes()), Ok(RunTrace::default()));
        let mut far = trace;
        far.sessions[0].requests[1].offset = u64::MAX - 5;
        far.sessions[0].requests[2].begin_ns = 0;
        assert_eq!(RunTrace::of_bytes(&far.to_bytes()), Ok(far));
    }

    #[test]
    fn a_damaged_trace_is_rejected_in_one_line() {
        let refused = |bytes: &[u8]| RunTrace::of_bytes(bytes).expect_err("refused");
        let whole = fixture::trace().to_bytes();
        assert_eq!(refused(b"{}"), "it does not begin as a trace does, with \"plumbtrc\"");
        let mut other = whole.clone();
        other[8] = 9;
        assert_eq!(refused(&other), "it is a trace of version 9, and this program reads version 1");
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("bytes") ^= 1;
        assert_eq!(
            refused(&damaged),
            "its bytes are not those that were written: the SHA-256 in its head differs"
        );
        let cut = &whole[..whole.len() - 1];
        assert!(refused(cut).starts_with("it has "), "{}", refused(cut));
        for length in 0..whole.len() {
            assert!(RunTrace::of_bytes(&whole[..length]).is_err());
        }
    }
}
