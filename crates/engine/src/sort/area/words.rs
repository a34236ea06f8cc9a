//! The area of words: strips sorted in place.
//!
//! Each strip has memory of its own, so that one can become a run, be filled
//! again, or be given back, without the others. Sorting is the standard library's
//! unstable sort: no branch depends on the data, and no second buffer is needed.

use super::{InputOrder, RecordSink, RecordSize, SortArea};
use crate::sort::word::Word;
use plumb_io::{HugeVec, IoError};
use std::collections::VecDeque;

// A record's bytes are the word, least significant first, as it lies in memory.
const _: () = assert!(cfg!(target_endian = "little"), "records are little-endian words");

/// Area of records that are words.
#[derive(Debug)]
pub struct WordArea<W: Word> {
    /// Sorted, the oldest first.
    full: VecDeque<HugeVec<W>>,
    filling: Option<HugeVec<W>>,
    order: InputOrder,
    /// Empty, with memory.
    spare: Vec<HugeVec<W>>,
    /// Strips that may still be made: memory is taken as records come.
    unmade: usize,
    strip_bytes: usize,
    mapped_bytes: usize,
}

impl<W: Word> SortArea for WordArea<W> {
    const ENTRY_BYTES: usize = 0;
    const STRIP_BYTES_MAX: usize = usize::MAX;

    fn new(bytes: usize, strips: usize, _: RecordSize) -> Result<WordArea<W>, IoError> {
        assert!(strips > 0);
        Ok(WordArea {
            full: VecDeque::new(),
            filling: None,
            order: InputOrder::UNKNOWN,
            spare: Vec::new(),
            unmade: strips,
            strip_bytes: bytes / strips,
            mapped_bytes: 0,
        })
    }

    fn fill(&mut self, records: &[u8]) -> Result<usize, IoError> {
        let mut taken = 0;
        while taken < records.len() {
            if self.filling.is_none() {
                self.filling = self.empty_strip()?;
            }
            let Some(strip) = &mut self.filling else { break };
            let end = records.len().min(taken + strip.room() * W::BYTES);
            append(strip, &mut self.order, &records[taken..end]);
            taken = end;
            if strip.room() == 0 {
                self.close();
            }
        }
        Ok(taken)
    }

    fn close(&mut self) {
        let Some(mut strip) = self.filling.take() else { return };
        match std::mem::replace(&mut self.order, InputOrder::UNKNOWN) {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => strip.reverse(),
            _ => strip.sort_unstable(),
        }
        self.full.push_back(strip);
    }

    fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<u64, S::Error> {
        let Some(mut strip) = self.full.pop_front() else { return Ok(0) };
        strip.bytes().chunks_exact(W::BYTES).try_for_each(|record| sink.record(record))?;
        sink.end_run()?;
        strip.clear();
        self.spare.push(strip);
        Ok(1)
    }

    fn release_spare(&mut self) -> usize {
        self.spare.drain(..).count() * self.strip_bytes
    }

    fn len(&self) -> usize {
        self.full.iter().chain(&self.filling).map(|strip| strip.len()).sum()
    }

    fn mapped_bytes(&self) -> usize {
        self.mapped_bytes
    }

    fn sources(&self) -> Vec<&[u8]> {
        self.full.iter().map(HugeVec::bytes).collect()
    }
}

impl<W: Word> WordArea<W> {
    fn empty_strip(&mut self) -> Result<Option<HugeVec<W>>, IoError> {
        if let Some(strip) = self.spare.pop() {
            return Ok(Some(strip));
        }
        if self.unmade == 0 {
            return Ok(None);
        }
        let strip = HugeVec::with_capacity(self.strip_bytes / W::BYTES)?;
        self.unmade -= 1;
        self.mapped_bytes += strip.mapped_bytes();
        Ok(Some(strip))
    }
}

#[inline]
fn append<W: Word>(strip: &mut HugeVec<W>, order: &mut InputOrder, records: &[u8]) {
    let mut last = strip.last().copied();
    let mut so_far = *order;
    for record in records.chunks_exact(W::BYTES) {
        let word = W::from_record(record);
        if let Some(last) = last {
            so_far.ascending &= last <= word;
            so_far.descending &= last >= word;
        }
        last = Some(word);
        strip.push(word);
    }
    *order = so_far;
}
