//! Records of one length with the key at their front, and that key as a number.
//!
//! Lengths are parameters of the type, so that a record is copied by a few wide moves and a key is
//! one load; with lengths in variables each record costs two more calls of memcpy. A key of up to
//! 11 bytes fits the upper part of a 128-bit number. The other 32 bits name its owner: the position
//! of the record in a load, or the source in a merge. Comparing two such numbers compares the keys,
//! and no comparison reads a record.

use crate::sort::format::{Merger, RunFormat, Unpacked};
use crate::sort::loser_tree::LoserTree;
use plumb_io::prefetch;
use std::cmp::Ordering;

/// Records of `BYTES` bytes that begin with a key of `KEY` bytes, compared as bytes.
#[derive(Debug, Clone, Copy)]
pub struct FixedRecord<const BYTES: usize, const KEY: usize>;

/// Most key bytes that fit a number with 32 further bits, and a spare byte for
/// a number above every key.
const KEY_BYTES_MAX: usize = 11;

impl<const BYTES: usize, const KEY: usize> FixedRecord<BYTES, KEY> {
    const KEY_MASK: u128 = {
        assert!(KEY >= 1 && KEY <= KEY_BYTES_MAX, "a key must fit a number beside its place");
        assert!(BYTES >= size_of::<u128>(), "a key is loaded with the 16 bytes at a record's front");
        u128::MAX << (128 - 8 * KEY)
    };

    /// Returns the key in the upper bytes of a number, zeros below.
    #[inline]
    pub(super) fn key(record: &[u8; BYTES]) -> u128 {
        let front = record.first_chunk().expect("a record has 16 bytes at least");
        u128::from_be_bytes(*front) & Self::KEY_MASK
    }

    /// Returns `bytes` as whole records.
    #[inline]
    pub(super) fn records(bytes: &[u8]) -> &[[u8; BYTES]] {
        let (records, rest) = bytes.as_chunks();
        assert!(rest.is_empty(), "X3: {} bytes are left over behind whole records", rest.len());
        records
    }
}

impl<const BYTES: usize, const KEY: usize> RunFormat for FixedRecord<BYTES, KEY> {
    type Packing = Unpacked;
    type Merger = RecordMerger<BYTES, KEY>;

    #[inline]
    fn length(bytes: &[u8]) -> usize {
        if bytes.len() < BYTES { 0 } else { BYTES }
    }

    #[inline]
    fn compare(one: &[u8], two: &[u8]) -> Ordering {
        // Skips the missing key in a forecast for a run that is not yet read.
        one.get(..KEY).cmp(&two.get(..KEY))
    }

    fn last_record(content: &[u8], last: &mut Vec<u8>) {
        if let Some(record) = content.as_chunks::<BYTES>().0.last() {
            last.clear();
            last.extend_from_slice(record);
        }
    }
}

/// A tree of losers over keys, with the record of each source next to it.
///
/// A record is copied when it enters: the copy waits for memory while the matches continue. When
/// the record wins, about as many matches later as there are sources, it is in the cache. Of equal
/// keys the first source's record comes first.
#[derive(Debug)]
pub struct RecordMerger<const BYTES: usize, const KEY: usize> {
    tree: LoserTree<u128>,
    records: Vec<[u8; BYTES]>,
}

impl<const BYTES: usize, const KEY: usize> RecordMerger<BYTES, KEY> {
    /// Number above every key; a source's number is added to it.
    const EXHAUSTED: u128 = u128::MAX << 32;

    /// Takes the next record of a source into `kept` and returns its key.
    #[inline]
    fn take(rest: &mut &[u8], source: u32, kept: &mut [u8; BYTES]) -> u128 {
        let Some((record, left)) = rest.split_first_chunk::<BYTES>() else {
            return Self::EXHAUSTED | u128::from(source);
        };
        // The record after it is needed the next time that this source wins.
        (0..BYTES).step_by(64).for_each(|line| prefetch(left, line));
        *kept = *record;
        *rest = left;
        FixedRecord::<BYTES, KEY>::key(record) | u128::from(source)
    }
}

impl<const BYTES: usize, const KEY: usize> Merger for RecordMerger<BYTES, KEY> {
    fn new(sources: &mut [&[u8]]) -> Self {
        assert!(u32::try_from(sources.len()).is_ok(), "a number has 32 bits for the source");
        let mut records = vec![[0; BYTES]; sources.len()];
        let taken = sources.iter_mut().zip(&mut records).zip(0..);
        let heads: Vec<u128> = taken.map(|((rest, kept), source)| Self::take(rest, source, kept)).collect();
        RecordMerger { tree: LoserTree::new(&heads, u128::lt), records }
    }

    #[inline]
    fn record(&self) -> &[u8] {
        if self.tree.winner() >= Self::EXHAUSTED { &[] } else { &self.records[self.source()] }
    }

    #[inline]
    fn source(&self) -> usize {
        self.tree.winner() as u32 as usize
    }

    #[inline]
    fn replace(&mut self, source: &mut &[u8]) {
        let number = self.tree.winner() as u32;
        let head = Self::take(source, number, &mut self.records[number as usize]);
        self.tree.replace(number, head, u128::lt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Small = FixedRecord<16, 3>;

    #[test]
    fn the_largest_key_is_below_an_exhausted_source() {
        let mut kept = [0; 16];
        let largest = RecordMerger::<16, 11>::take(&mut [0xFF; 16].as_slice(), u32::MAX, &mut kept);
        let exhausted = RecordMerger::<16, 11>::take(&mut [].as_slice(), 0, &mut kept);
        assert!(largest < exhausted);
    }

    #[test]
    #[should_panic(expected = "X3: 7 bytes are left over behind whole records")]
    fn a_part_of_a_record_is_noticed() {
        Small::records(&[0; 39]);
    }

    proptest! {
        #[test]
        fn keys_compare_as_their_bytes(
            one in proptest::array::uniform16(0u8..3), two in proptest::array::uniform16(0u8..3),
        ) {
            prop_assert_eq!(Small::key(&one).cmp(&Small::key(&two)), one[..3].cmp(&two[..3]));
            prop_assert_eq!(Small::compare(&one, &two), one[..3].cmp(&two[..3]));
        }

        #[test]
        fn sources_merge_into_one_order(sources in proptest::collection::vec(
            proptest::collection::vec(proptest::array::uniform16(0u8..4), 0..30), 1..20,
        )) {
            let mut sources = sources;
            sources.iter_mut().for_each(|source| source.sort_by_key(Small::key));
            let mut expected = sources.concat();
            // The sort is stable, so of equal keys the first source's come first.
            expected.sort_by_key(Small::key);
            let bytes: Vec<Vec<u8>> = sources.iter().map(|source| source.concat()).collect();
            let mut rest: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            let mut merger = RecordMerger::<16, 3>::new(&mut rest);
            let mut merged = Vec::new();
            while let record @ [_, ..] = merger.record() {
                merged.push(<[u8; 16]>::try_from(record).expect("a record"));
                let source = merger.source();
                merger.replace(&mut rest[source]);
            }
            prop_assert_eq!(merged, expected);
        }
    }
}
