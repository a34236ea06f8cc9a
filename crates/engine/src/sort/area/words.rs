//! Strips of packed records: machine words, sorted in place.
//!
//! The standard library's unstable sort: no branch depends on the data, and no
//! second buffer is needed.

use super::{InputOrder, RecordSize, Strip};
use crate::sort::word::Word;
use plumb_io::{HugeVec, IoError};

// A record's bytes are the word, least significant first; `record` gives them
// out as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"), "records are little-endian words");

/// A strip of words.
#[derive(Debug)]
pub struct WordStrip<W: Word> {
    words: HugeVec<W>,
    order: InputOrder,
}

impl<W: Word> Strip for WordStrip<W> {
    const ENTRY_BYTES: usize = 0;

    fn new(bytes: usize, _: RecordSize) -> Result<WordStrip<W>, IoError> {
        Ok(WordStrip { words: HugeVec::with_capacity(bytes / W::BYTES)?, order: InputOrder::UNKNOWN })
    }

    #[inline]
    fn fill(&mut self, records: &[u8]) -> usize {
        let bytes = records.len().min(self.words.room() * W::BYTES);
        let mut order = self.order;
        let mut last = self.words.last().copied();
        for record in records[..bytes].chunks_exact(W::BYTES) {
            let word = W::from_record(record);
            if let Some(last) = last {
                order.ascending &= last <= word;
                order.descending &= last >= word;
            }
            last = Some(word);
            self.words.push(word);
        }
        self.order = order;
        bytes
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn sort(&mut self) {
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => self.words.reverse(),
            _ => self.words.sort_unstable(),
        }
    }

    #[inline]
    fn record(&self, place: usize) -> &[u8] {
        let start = place * W::BYTES;
        self.words.bytes().get(start..start + W::BYTES).unwrap_or(&[])
    }

    fn clear(&mut self) {
        self.words.clear();
        self.order = InputOrder::UNKNOWN;
    }

    fn mapped_bytes(&self) -> usize {
        self.words.mapped_bytes()
    }
}
