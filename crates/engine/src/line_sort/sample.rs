//! Samples of the input, read beforehand: its key ranges, and its end.

use super::Shape;
use super::key::Keyed;
use crate::file_sort::input::RecordFile;
use crate::storage::scattered_reader::{Piece, ScatteredOptions, ScatteredReader};
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::File;
use std::sync::Arc;

/// Alignment of reads in bytes.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Number of pieces read, and bytes of each: 2 MB, some thousand lines.
const PIECES: u64 = 64;
const PIECE_BYTES: u64 = 32 * 1024;
/// Number of reads in flight.
const READS: usize = 16;

/// Returns the records of the whole lines in evenly spaced pieces of the file.
pub(super) fn records(
    instance: &Instance,
    session: &Session,
    input: &RecordFile,
    keyed: &Keyed<'_>,
) -> Result<Vec<Vec<u8>>, EngineError> {
    let pieces = input.record_count.div_ceil(PIECE_BYTES).min(PIECES);
    let place = |piece: u64| (u128::from(input.record_count) * u128::from(piece) / u128::from(pieces)) as u64;
    let places: Vec<u64> = (0..pieces).map(|piece| place(piece) / BLOCK_BYTES * BLOCK_BYTES).collect();
    let mut records = Vec::new();
    read(instance, session, input.file(), (&places, PIECE_BYTES as usize), |offset, bytes| {
        let mut take = |line: &[u8], at: usize| {
            let mut record = Vec::new();
            keyed.append(line, offset + at as u64, &mut record)?;
            records.push(record);
            Ok(())
        };
        match keyed.shape() {
            Shape::Lines => whole_lines(offset, bytes).try_for_each(|(at, line)| take(line, at)),
            Shape::Records(length) => {
                let first = (length - (offset % length as u64) as usize) % length;
                let whole = bytes.get(first..).unwrap_or_default().chunks_exact(length).enumerate();
                whole.into_iter().try_for_each(|(index, record)| take(record, first + index * length))
            }
        }
    })?;
    session.count(Statistic::SampleRows, records.len() as u64);
    Ok(records)
}

/// Returns the lines that certainly begin and end in these bytes of a file, with their places.
fn whole_lines(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let end_of = |from: usize| bytes[from..].iter().position(|byte| *byte == b'\n').map(|end| from + end);
    let mut at = if offset == 0 { Some(0) } else { end_of(0).map(|end| end + 1) };
    std::iter::from_fn(move || {
        let begin = at?;
        let end = end_of(begin)?;
        at = Some(end + 1);
        Some((begin, &bytes[begin..end]))
    })
}

/// Reads pieces of a file, several in flight, and shows each with its offset;
/// the last may be short.
pub(super) fn read(
    instance: &Instance,
    session: &Session,
    file: &Arc<File>,
    (places, bytes): (&[u64], usize),
    mut show: impl FnMut(u64, &[u8]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    if places.is_empty() {
        return Ok(());
    }
    let options = ScatteredOptions {
        piece_bytes: bytes,
        in_flight: places.len().min(READS),
        event: Event::ExternalTableRead,
        stream: IoStream::FileReads,
    };
    ScatteredReader::new(session, &instance.access, options)?.read(
        places.len(),
        |number| Ok(Piece::of_file(file, places[number], bytes)),
        |number, bytes| show(places[number], bytes),
    )
}
