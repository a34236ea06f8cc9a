//! Judges a file of lines or records: whether it is in order, how many it has, and the sum of their
//! checksums.
//!
//! Servers take chunks in turn and compare neighbours within each. What joins two chunks is
//! compared when both are there: of each stretch of the file that has been read without a gap only
//! the first and the last key are kept, and two stretches that meet become one. So memory is that
//! of the chunks under way, whatever the file.
//!
//! What is compared is what was sorted by: the keys, and where these are equal the bytes, unless
//! equal lines were to stay as they came: their order says nothing without the input.

use super::key::{Keyed, Ties};
use super::seams::Seams;
use super::{LineSortSpec, Summed};
use crate::file_sort::input::{RecordFile, RecordReader};
use crate::parallel::servers;
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use plumb_events::{Phase, Role, locked, now};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Reads in flight of each server, and bytes of one.
const BUFFERS: usize = 16;
const CHUNK_BYTES: usize = 512 * 1024;

/// What was found in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Judged {
    /// Its lines, whatever their order.
    pub summed: Summed,
    /// Lines that belong before the one before them.
    pub unordered: u64,
    /// The byte at which the first of these begins.
    pub first_unordered: Option<u64>,
}

impl Judged {
    fn note(&mut self, offset: u64) {
        self.unordered += 1;
        self.first_unordered = Some(self.first_unordered.map_or(offset, |first| first.min(offset)));
    }

    fn add(&mut self, other: &Judged) {
        self.summed.add(&other.summed);
        self.unordered += other.unordered;
        self.first_unordered = self.first_unordered.into_iter().chain(other.first_unordered).min();
    }
}

/// Reads the output of a sort and judges it.
///
/// # Errors
/// When it cannot be read, or is no file of the shape.
pub fn judge(instance: &Instance, spec: &LineSortSpec) -> Result<Judged, EngineError> {
    let coordinator = instance.recorder.session(Role::Coordinator);
    let begin = now();
    let file = RecordFile::open(instance, &coordinator, &spec.output, (1, CHUNK_BYTES))?;
    let block_size = instance.tablespace(Purpose::Temp).block_size;
    let keyed = Keyed::new(spec.shape, &spec.order, block_size, &spec.output);
    let seams = Seams::new(spec.shape, file.record_count, keyed.line_bytes_max(), &spec.output);
    let stretches = Mutex::new(Stretches::default());
    let parts = servers::run_set(
        instance.operation(),
        &coordinator,
        (Role::CheckServer, instance.parallel_degree()),
        |session, operation, _| {
            let mut part = Judged::default();
            let mut reader = RecordReader::new(session, &instance.access, &file, BUFFERS)?;
            while let Some(chunk) = reader.next()? {
                operation.check()?;
                look_at(&keyed, &seams, &stretches, (chunk.first, chunk.records()), &mut part)?;
                reader.recycle([chunk.buffer])?;
            }
            Ok(part)
        },
    )?;
    seams.require_closed();
    let mut judged = stretches.into_inner().unwrap_or_else(PoisonError::into_inner).judged;
    parts.iter().for_each(|part| judged.add(part));
    instance.recorder.phase(Phase::VerifyRecords, begin, judged.summed.line_count);
    Ok(judged)
}

/// Compares the lines of a chunk with each other.
fn look_at(
    keyed: &Keyed<'_>,
    seams: &Seams<'_>,
    stretches: &Mutex<Stretches>,
    (offset, bytes): (u64, &[u8]),
    part: &mut Judged,
) -> Result<(), EngineError> {
    let mut stretch: Option<Stretch> = None;
    let mut key = Vec::new();
    let bring = |stretch: Stretch| locked(stretches).bring(stretch);
    seams.cut(offset, bytes, |line, at| {
        part.summed.line(line);
        key.clear();
        compared(keyed, line, &mut key);
        let end = at + line.len() as u64 + keyed.shape().end_bytes();
        match &mut stretch {
            Some(stretch) if stretch.end == at => {
                if key < stretch.last {
                    part.note(at);
                }
                std::mem::swap(&mut stretch.last, &mut key);
                stretch.end = end;
            }
            other => {
                // A line that was joined out of two chunks: it comes after the chunk's own.
                let alone = Stretch { begin: at, end, first: key.clone(), last: key.clone() };
                if let Some(before) = other.replace(alone) {
                    bring(before);
                }
            }
        }
        Ok(())
    })?;
    if let Some(stretch) = stretch {
        bring(stretch);
    }
    Ok(())
}

/// What a line is compared by, as bytes.
fn compared(keyed: &Keyed<'_>, line: &[u8], key: &mut Vec<u8>) {
    keyed.append_keys(line, key);
    if keyed.ties() == Ties::Bytes || !keyed.has_prefix() {
        key.extend_from_slice(line);
    }
}

/// Lines that follow one another without a gap.
#[derive(Debug)]
struct Stretch {
    begin: u64,
    end: u64,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// The stretches that have been read, by where they begin.
#[derive(Debug, Default)]
struct Stretches {
    found: BTreeMap<u64, Stretch>,
    judged: Judged,
}

impl Stretches {
    fn bring(&mut self, mut stretch: Stretch) {
        let before = self.found.range(..stretch.begin).next_back();
        if let Some(begin) = before.filter(|(_, before)| before.end == stretch.begin).map(|(begin, _)| *begin)
            && let Some(before) = self.found.remove(&begin)
        {
            if stretch.first < before.last {
                self.judged.note(stretch.begin);
            }
            stretch = Stretch { begin, first: before.first, ..stretch };
        }
        if let Some(behind) = self.found.remove(&stretch.end) {
            if behind.first < stretch.last {
                self.judged.note(behind.begin);
            }
            stretch = Stretch { end: behind.end, last: behind.last, ..stretch };
        }
        self.found.insert(stretch.begin, stretch);
    }
}
