//! The area of words: strips sorted in place.
//!
//! Each strip has memory of its own, so that one can become a run, be filled again, or be released,
//! without the others. It is sorted by the standard library's unstable sort, which has no branch
//! that depends on the data and needs no second buffer.

use super::{InputOrder, Mapped, RecordSink, RecordSize, SortArea, StripPool};
use crate::sort::word::Word;
use plumb_io::{HugeVec, IoError, strict_assert};
use std::collections::VecDeque;

// A record's bytes are the word in memory, least significant first.
const _: () = assert!(cfg!(target_endian = "little"), "records are little-endian words");

/// Sort area of records that are words.
#[derive(Debug)]
pub struct WordArea<W: Word> {
    /// Sorted strips, the oldest first.
    full: VecDeque<HugeVec<W>>,
    filling: Option<HugeVec<W>>,
    order: InputOrder,
    pool: StripPool<W>,
}

impl<W: Word> SortArea for WordArea<W> {
    const ENTRY_BYTES: usize = 0;

    fn new(bytes: usize, strips: usize, _: RecordSize) -> Result<WordArea<W>, IoError> {
        let pool = StripPool::new(bytes, strips);
        Ok(WordArea { full: VecDeque::new(), filling: None, order: InputOrder::UNKNOWN, pool })
    }

    fn fill(&mut self, records: &[u8]) -> Result<usize, IoError> {
        assert!(records.len().is_multiple_of(W::BYTES), "A2: records of {} bytes come whole", W::BYTES);
        let mut taken = 0;
        while taken < records.len() {
            if self.filling.is_none() {
                self.filling = self.pool.take()?;
            }
            let Some(strip) = &mut self.filling else { break };
            let end = records.len().min(taken + strip.room() * W::BYTES);
            self.pool.supply(strip, (end - taken) / W::BYTES);
            append(strip, &mut self.order, &records[taken..end]);
            taken = end;
            if strip.room() == 0 {
                self.close()?;
            }
        }
        Ok(taken)
    }

    fn close(&mut self) -> Result<(), IoError> {
        let Some(mut strip) = self.filling.take() else { return Ok(()) };
        match std::mem::replace(&mut self.order, InputOrder::UNKNOWN) {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => strip.reverse(),
            _ => strip.sort_unstable(),
        }
        strict_assert!(strip.is_sorted(), "A3: a strip is in order when it is closed");
        self.full.push_back(strip);
        Ok(())
    }

    fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<u64, S::Error> {
        let Some(strip) = self.full.pop_front() else { return Ok(0) };
        strip.bytes().chunks_exact(W::BYTES).try_for_each(|record| sink.record(record))?;
        sink.end_run()?;
        self.pool.give_back(strip);
        Ok(1)
    }

    fn release_spare(&mut self) -> usize {
        self.pool.release()
    }

    fn len(&self) -> usize {
        self.full.iter().chain(&self.filling).map(|strip| strip.len()).sum()
    }

    fn mapped(&self) -> Mapped {
        self.pool.mapped()
    }

    fn sources(&self) -> Vec<&[u8]> {
        self.full.iter().map(HugeVec::bytes).collect()
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
