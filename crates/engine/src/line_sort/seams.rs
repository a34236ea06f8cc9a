//! Cuts chunks of a file into lines, and joins those that lie in several.
//!
//! Servers take chunks in turn, so the parts of a line come from different servers and in any
//! order. The server that has read a chunk cuts it. The bytes before its first line end and after
//! its last one are fragments. A fragment waits until its neighbours have come; the server that
//! brings the last part of a line visits the line.
//!
//! ```text
//!      chunk 1            chunk 2            chunk 3
//!  |one two thr|       |ee fo|            |ur five|         a blank ends a line here
//!   lines: one, two     fragment: fo       lines: three (by the last of its servers), four ...
//! ```
//!
//! Why not read a chunk with the bytes that follow it: every byte is read once, so that the
//! receipts of reads add up to the length of the file.
//!
//! Limits: the waiting fragments are those of the chunks in progress, two a chunk, each
//! shorter than the longest line.

use super::Shape;
use crate::{EngineError, LineCure};
use plumb_events::locked;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// Joins lines where the chunks of a file meet.
#[derive(Debug)]
pub(super) struct Seams<'a> {
    shape: Shape,
    file_bytes: u64,
    line_bytes_max: usize,
    path: &'a Path,
    waiting: Mutex<Vec<Fragment>>,
}

/// A part of a line that begins or ends with a chunk.
#[derive(Debug)]
struct Fragment {
    offset: u64,
    bytes: Vec<u8>,
    /// True if a line begins with it.
    begins: bool,
    /// True if a line ends with it.
    ends: bool,
}

impl Fragment {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl<'a> Seams<'a> {
    pub fn new(shape: Shape, file_bytes: u64, line_bytes_max: usize, path: &'a Path) -> Seams<'a> {
        Seams { shape, file_bytes, line_bytes_max, path, waiting: Mutex::new(Vec::new()) }
    }

    /// Visits the lines of a chunk, without their ends, each with its offset, and
    /// the lines that it completes.
    pub fn cut(
        &self,
        offset: u64,
        chunk: &[u8],
        mut visit: impl FnMut(&[u8], u64) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let (head, tail) = self.whole_lines(offset, chunk);
        let lines = &chunk[head..tail];
        match self.shape {
            Shape::Lines => {
                let mut at = 0;
                for end in LineEnds::of(lines) {
                    visit(&lines[at..end], offset + (head + at) as u64)?;
                    at = end + 1;
                }
            }
            Shape::Records(bytes) => {
                for (index, record) in lines.chunks_exact(bytes).enumerate() {
                    visit(record, offset + (head + index * bytes) as u64)?;
                }
            }
        }
        let last = offset + chunk.len() as u64 == self.file_bytes;
        let begins = self.begins_line(offset);
        // Without a line end inside, the chunk is one fragment.
        let through = head == chunk.len() && !self.ends_line(offset, chunk, head);
        if !begins || through {
            let ends = !through || last;
            self.bring(Fragment { offset, bytes: chunk[..head].to_vec(), begins, ends }, &mut visit)?;
        }
        // A line begins after the last line end, although this chunk may have no byte of it; of a
        // record it has at least one.
        let nothing = tail == chunk.len() && (last || self.shape != Shape::Lines);
        if !through && !nothing {
            let bytes = chunk[tail..].to_vec();
            self.bring(
                Fragment { offset: offset + tail as u64, bytes, begins: true, ends: last },
                &mut visit,
            )?;
        }
        Ok(())
    }

    /// True if a line is known to begin with the chunk at this offset.
    fn begins_line(&self, offset: u64) -> bool {
        match self.shape {
            Shape::Lines => offset == 0,
            Shape::Records(bytes) => offset.is_multiple_of(bytes as u64),
        }
    }

    /// Returns the first byte of the first line that begins in this chunk, and the end of the last
    /// line that ends in it.
    fn whole_lines(&self, offset: u64, chunk: &[u8]) -> (usize, usize) {
        match self.shape {
            Shape::Lines => {
                let head = if offset == 0 { Some(0) } else { LineEnds::of(chunk).next().map(|end| end + 1) };
                let tail = chunk.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
                match (head, tail) {
                    (Some(head), Some(tail)) => (head, tail),
                    _ => (chunk.len(), chunk.len()),
                }
            }
            Shape::Records(bytes) => {
                let over = (offset % bytes as u64) as usize;
                let head = if over == 0 { 0 } else { (bytes - over).min(chunk.len()) };
                let whole = (chunk.len() - head) / bytes * bytes;
                if head + whole == 0 { (chunk.len(), chunk.len()) } else { (head, head + whole) }
            }
        }
    }

    /// True if a line ends with the first `head` bytes of a chunk.
    fn ends_line(&self, offset: u64, chunk: &[u8], head: usize) -> bool {
        match self.shape {
            Shape::Lines => chunk[..head].ends_with(b"\n"),
            Shape::Records(bytes) => (offset + head as u64).is_multiple_of(bytes as u64),
        }
    }

    /// Adds a fragment, and visits the line that it completes.
    fn bring(
        &self,
        mut fragment: Fragment,
        visit: &mut impl FnMut(&[u8], u64) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut waiting = self.lock();
        if !fragment.begins
            && let Some(place) =
                waiting.iter().position(|other| !other.ends && other.end() == fragment.offset)
        {
            let mut before = waiting.swap_remove(place);
            before.bytes.append(&mut fragment.bytes);
            fragment = Fragment { ends: fragment.ends, ..before };
        }
        if !fragment.ends
            && let Some(place) =
                waiting.iter().position(|other| !other.begins && other.offset == fragment.end())
        {
            let mut behind = waiting.swap_remove(place);
            fragment.bytes.append(&mut behind.bytes);
            fragment.ends = behind.ends;
        }
        if fragment.bytes.len() > self.line_bytes_max + self.shape.end_bytes() as usize {
            return Err(self.too_long(&fragment));
        }
        if !(fragment.begins && fragment.ends) {
            waiting.push(fragment);
            return Ok(());
        }
        drop(waiting);
        let line = match self.shape {
            Shape::Lines => fragment.bytes.strip_suffix(b"\n").unwrap_or(&fragment.bytes),
            Shape::Records(_) => &fragment.bytes,
        };
        visit(line, fragment.offset)
    }

    /// Asserts that no fragment waits after all chunks have been cut.
    pub fn require_closed(&self) {
        let waiting = self.lock();
        assert!(waiting.is_empty(), "Y1: {} fragments of lines have no end", waiting.len());
    }

    fn too_long(&self, fragment: &Fragment) -> EngineError {
        EngineError::LineTooLong {
            path: self.path.to_path_buf(),
            offset: fragment.offset,
            found: fragment.bytes.len(),
            limit: self.line_bytes_max,
            start: String::from_utf8_lossy(&fragment.bytes[..fragment.bytes.len().min(40)]).into_owned(),
            cure: LineCure::RecordLength,
        }
    }

    /// Locks without a wait event, because the lock is held only briefly.
    fn lock(&self) -> MutexGuard<'_, Vec<Fragment>> {
        locked(&self.waiting)
    }
}

/// Finds line ends: 32 bytes are compared at once, by a few vector
/// instructions, and each byte once.
struct LineEnds<'b> {
    blocks: std::slice::Iter<'b, [u8; 32]>,
    /// The bytes after the last whole block, then zeros; `None` once they have been compared.
    rest: Option<[u8; 32]>,
    /// Byte at which the next block begins.
    next: usize,
    /// Line ends in the block before it that are not returned yet, a bit each.
    ends: u32,
}

impl LineEnds<'_> {
    fn of(bytes: &[u8]) -> LineEnds<'_> {
        let (blocks, left) = bytes.as_chunks::<32>();
        let mut rest = [0; 32];
        rest[..left.len()].copy_from_slice(left);
        LineEnds { blocks: blocks.iter(), rest: Some(rest), next: 0, ends: 0 }
    }
}

impl Iterator for LineEnds<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.ends == 0 {
            let rest;
            let block = match self.blocks.next() {
                Some(block) => block,
                None => {
                    rest = self.rest.take()?;
                    &rest
                }
            };
            for (bit, byte) in block.iter().enumerate() {
                self.ends |= u32::from(*byte == b'\n') << bit;
            }
            self.next += block.len();
        }
        let end = self.next - 32 + self.ends.trailing_zeros() as usize;
        self.ends &= self.ends - 1;
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the lines of a text that is cut into chunks, which come in this order.
    fn cut(text: &[u8], shape: Shape, chunk_bytes: usize, order: impl Fn(&mut Vec<usize>)) -> Vec<Vec<u8>> {
        let seams = Seams::new(shape, text.len() as u64, 1000, Path::new("in"));
        let mut chunks: Vec<usize> = (0..text.len().div_ceil(chunk_bytes)).collect();
        order(&mut chunks);
        let mut lines = Vec::new();
        for chunk in chunks {
            let from = chunk * chunk_bytes;
            let bytes = &text[from..text.len().min(from + chunk_bytes)];
            let note = |line: &[u8], offset: u64| {
                lines.push((offset, line.to_vec()));
                Ok(())
            };
            seams.cut(from as u64, bytes, note).expect("cut");
        }
        seams.require_closed();
        lines.sort_unstable();
        lines.into_iter().map(|(_, line)| line).collect()
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text_whatever_the_chunks(
            text in "[ab\n]{0,200}", chunk_bytes in 1usize..40, turn in 0usize..100,
        ) {
            let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            let found = cut(text.as_bytes(), Shape::Lines, chunk_bytes, |chunks| {
                let middle = turn.min(chunks.len());
                chunks.rotate_left(middle);
                if turn % 3 == 0 { chunks.reverse() }
            });
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn records_are_those_of_the_file_whatever_the_chunks(
            count in 0usize..30, bytes in 1usize..50, chunk_bytes in 1usize..40,
        ) {
            let text: Vec<u8> = (0..count * bytes).map(|byte| byte as u8).collect();
            let expected: Vec<Vec<u8>> = text.chunks(bytes).map(<[u8]>::to_vec).collect();
            let found = cut(&text, Shape::Records(bytes), chunk_bytes, |chunks| chunks.reverse());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_endless_line_is_refused_before_it_fills_memory() {
        let seams = Seams::new(Shape::Lines, 10_000, 1000, Path::new("in"));
        let chunk = [b'x'; 600];
        seams.cut(0, &chunk, |_, _| Ok(())).expect("not yet");
        let error = seams.cut(600, &chunk, |_, _| Ok(())).expect_err("refused").to_string();
        assert!(error.contains("1200 bytes") && error.contains("in: the line at byte 0"), "{error}");
    }

    #[test]
    #[should_panic(expected = "Y1: 1 fragments of lines have no end")]
    fn a_chunk_that_is_missing_is_noticed() {
        let seams = Seams::new(Shape::Lines, 20, 1000, Path::new("in"));
        seams.cut(0, b"one\ntwo", |_, _| Ok(())).expect("cut");
        seams.require_closed();
    }
}
