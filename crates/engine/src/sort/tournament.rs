//! A tree of losers for packed records: most matches are decided by a code.
//!
//! What it does: merges sources of [`Packed`] records without looking at their
//! keys more than they differ.
//!
//! How: offset-value codes (Conner 1977; Graefe and Do, arXiv 2209.08420). All
//! candidates on the way from a leaf to the root have a code relative to the last
//! winner: at which symbol they differ from it first, and by which symbol. Both
//! come after the winner, so the one that differs later, or by less, is smaller.
//! The codes differ in most matches, and then the loser's code relative to the
//! new winner is the one it has. Only where they are equal are keys compared,
//! from the next symbol on, and the loser gets a new code. The next record of the
//! winner's source differs from the winner where the packed record says.
//!
//! ```text
//! code   FFFE - number of the symbol u16 | symbol, 48 bits     differs from the last winner
//!        0                                                     has the last winner's key, and zeros behind it at most
//!        FFFFFFFFFFFFFFFF                                      nothing left
//! ```
//!
//! A symbol is 6 bytes. With symbols of one byte, as published, many more codes
//! are equal; with all that fits a word the code of a loser would have to be made
//! anew after each match. Records of one key are told apart by their row ids:
//! repeated keys are never looked at again. Symbols are those of keys followed by zeros, so keys
//! that differ in zeros at their ends have one code, and their lengths come before the row ids.
//!
//! What was tried and lost: candidates with the row id in them, swapped in place.
//! Parts written one by one and read back together stall at every level; in
//! registers a merge of 64 runs takes half the time.
//!
//! Not for keys of up to 8 bytes: their records are compared as one number.
//!
//! Invariant: L1 of [`loser_tree`](super::loser_tree), for codes are right only as long as
//! each source is in order.

use super::format::{BytesKey, Merger, RunFormat};
use super::packed::{Packed, Rebuilt};
use plumb_events::{Session, Statistic};
use plumb_io::{STRICT, prefetch, strict_assert};

/// How far ahead memory is asked for: a processor does not follow tens of sources by
/// itself. A tenth of the time of a merge went into waiting.
const AHEAD_BYTES: usize = 256;
const SAME_KEY: u64 = 0;
const EXHAUSTED: u64 = u64::MAX;
const SYMBOL_BITS: u32 = 48;
const SYMBOL_NUMBER_MAX: usize = 0xFFFD;
const _: () = assert!(Rebuilt::symbol_of(u16::MAX as usize) < SYMBOL_NUMBER_MAX);

/// How matches were decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Matches {
    /// All of them.
    pub count: u64,
    /// Those for which keys were compared.
    pub by_key: u64,
}

impl Matches {
    /// Counts them as statistics of a session.
    pub fn count_in(self, session: &Session) {
        session.count(Statistic::SortMatches, self.count);
        session.count(Statistic::SortMatchesByKey, self.by_key);
    }
}

impl std::ops::AddAssign for Matches {
    fn add_assign(&mut self, other: Matches) {
        self.count += other.count;
        self.by_key += other.by_key;
    }
}

/// 16 bytes: a match reads one and writes one back.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    code: u64,
    source: u32,
}

/// The tournament, with the record that each source is at.
#[derive(Debug)]
pub struct Tournament {
    /// 0 is the winner; 1.. are the losers of the inner nodes. Leaf i, if it
    /// were stored, would be node `len + i`.
    nodes: Vec<Candidate>,
    records: Vec<Rebuilt>,
    matches: Matches,
}

impl Merger for Tournament {
    fn new(sources: &mut [&[u8]]) -> Tournament {
        let mut records = Vec::new();
        let mut leaves = Vec::new();
        for (rest, source) in sources.iter_mut().zip(0..) {
            let mut record = Rebuilt::default();
            leaves.push(candidate(&mut record, source, Packed::take_from(rest)));
            records.push(record);
        }
        let count = leaves.len();
        assert!(count > 0, "a tournament has a source");
        let mut tournament =
            Tournament { nodes: vec![leaves[0]; count], records, matches: Matches::default() };
        // Relative to the empty key, which comes before all. winners[i] is the winner below node i.
        let mut winners = [leaves.clone(), leaves].concat();
        for node in (1..count).rev() {
            (winners[node], tournament.nodes[node]) =
                tournament.play(winners[2 * node], winners[2 * node + 1]);
        }
        tournament.nodes[0] = winners[1];
        tournament
    }

    #[inline]
    fn record(&self) -> &[u8] {
        match self.nodes[0] {
            Candidate { code: EXHAUSTED, .. } => &[],
            Candidate { source, .. } => self.records[source as usize].record(),
        }
    }

    #[inline]
    fn source(&self) -> usize {
        self.nodes[0].source as usize
    }

    #[inline]
    fn replace(&mut self, rest: &mut &[u8]) {
        let source = self.nodes[0].source;
        prefetch(rest, AHEAD_BYTES);
        let next = Packed::take_from(rest);
        let mut winner = candidate(&mut self.records[source as usize], source, next);
        let mut node = (self.nodes.len() + source as usize) / 2;
        while node > 0 {
            let stored = self.nodes[node];
            (winner, self.nodes[node]) = self.play(winner, stored);
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    fn matches(&self) -> Matches {
        self.matches
    }
}

impl Tournament {
    /// The smaller one, and the other with its code relative to it. Each part is
    /// chosen for itself, in registers: swapping them in memory stalls, and so
    /// does guessing who wins.
    #[inline(always)]
    fn play(&mut self, one: Candidate, two: Candidate) -> (Candidate, Candidate) {
        self.matches.count += 1;
        if one.code == two.code {
            return self.play_out(one, two);
        }
        let first = one.code < two.code;
        let pick = |first: bool| Candidate {
            code: if first { one.code } else { two.code },
            source: if first { one.source } else { two.source },
        };
        (pick(first), pick(!first))
    }

    /// A match of equal codes.
    #[inline(never)]
    fn play_out(&mut self, one: Candidate, two: Candidate) -> (Candidate, Candidate) {
        if one.code == EXHAUSTED {
            return (one, two);
        }
        let records = (&self.records[one.source as usize], &self.records[two.source as usize]);
        if one.code != SAME_KEY {
            self.matches.by_key += 1;
            let number = SYMBOL_NUMBER_MAX + 1 - (one.code >> SYMBOL_BITS) as usize;
            if let Some((number, mine, other)) = first_difference(records.0, records.1, number + 1) {
                let with_code = |loser: Candidate| Candidate { code: code(number, mine.max(other)), ..loser };
                return if mine < other { (one, with_code(two)) } else { (two, with_code(one)) };
            }
        }
        let with_code = |loser: Candidate| Candidate { code: SAME_KEY, ..loser };
        if records.0.rank() < records.1.rank() { (one, with_code(two)) } else { (two, with_code(one)) }
    }
}

/// The number of the first symbol from `number` on that differs, and both symbols;
/// `None` when the keys are the same but for zeros at their ends.
fn first_difference(one: &Rebuilt, two: &Rebuilt, mut number: usize) -> Option<(usize, u64, u64)> {
    loop {
        let symbols = (one.symbol(number), two.symbol(number));
        if symbols == (None, None) {
            return None;
        }
        let (mine, other) = (symbols.0.unwrap_or(0), symbols.1.unwrap_or(0));
        if mine != other {
            return Some((number, mine, other));
        }
        number += 1;
    }
}

#[inline]
const fn code(number: usize, symbol: u64) -> u64 {
    ((SYMBOL_NUMBER_MAX + 1 - number) as u64) << SYMBOL_BITS | symbol
}

/// Takes the next record of a source in; its code is relative to the one before.
#[inline]
fn candidate(record: &mut Rebuilt, source: u32, next: Option<Packed<'_>>) -> Candidate {
    let Some(next) = next else { return Candidate { code: EXHAUSTED, source } };
    let before = STRICT.then(|| record.record().to_vec()).filter(|before| !before.is_empty());
    let code = record.advance(next).map_or(SAME_KEY, |differs| {
        let number = Rebuilt::symbol_of(differs);
        code(number, record.symbol(number).unwrap_or(0))
    });
    let in_order = |before: &Vec<u8>| BytesKey::compare(before, record.record()).is_le();
    strict_assert!(before.as_ref().is_none_or(in_order), "L1: source {source} is out of order");
    Candidate { code, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::format::Packing;
    use crate::sort::packed::{Packer, packed_by};
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        let site = prop_oneof![Just("https://www.a.org"), Just("https://www.b.org"), Just("/srv/"), Just("")];
        let zeros = prop_oneof![4 => Just(0usize), 1 => 1usize..15];
        (site, zeros, "[ab]{0,8}")
            .prop_map(|(site, zeros, end)| [site.as_bytes(), &vec![0; zeros], end.as_bytes()].concat())
    }

    /// A source of packed records, read from the front.
    fn packed(records: &[Vec<u8>]) -> Vec<u8> {
        let mut packer = Packer::default();
        let mut bytes = Vec::new();
        for (at, record) in records.iter().enumerate() {
            if at % 7 == 0 {
                packer.begin_block();
            }
            bytes.extend(packed_by(&mut packer, record));
        }
        bytes
    }

    proptest! {
        #[test]
        fn sources_merge_into_one_order(sources in proptest::collection::vec(
            proptest::collection::vec((key(), 0u64..9), 0..30), 1..20,
        )) {
            let record = |(key, row): &(Vec<u8>, u64)| {
                [&(key.len() as u16).to_le_bytes()[..], &row.to_le_bytes()[..], &key[..]].concat()
            };
            let mut sources: Vec<Vec<Vec<u8>>> =
                sources.iter().map(|source| source.iter().map(record).collect()).collect();
            sources.iter_mut().for_each(|source| source.sort_by(|one, two| BytesKey::compare(one, two)));
            let mut expected: Vec<Vec<u8>> = sources.concat();
            expected.sort_by(|one, two| BytesKey::compare(one, two));
            let packed: Vec<Vec<u8>> = sources.iter().map(|source| packed(source)).collect();
            let mut rest: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
            let mut tournament = Tournament::new(&mut rest);
            let mut merged = Vec::new();
            while let record @ [_, ..] = tournament.record() {
                merged.push(record.to_vec());
                tournament.replace(&mut rest[tournament.source()]);
            }
            prop_assert_eq!(merged, expected);
        }
    }

    #[test]
    #[should_panic(expected = "L1: source 0 is out of order")]
    fn a_source_that_goes_back_is_noticed() {
        let record = |row: u64| [&1u16.to_le_bytes()[..], &row.to_le_bytes()[..], b"k"].concat();
        let packed = packed(&[record(2), record(1)]);
        let mut rest = [packed.as_slice()];
        let mut tournament = Tournament::new(&mut rest);
        tournament.replace(&mut rest[0]);
    }

    #[test]
    fn repeated_keys_are_not_compared_again() {
        let source = |rows: std::ops::Range<u64>| -> Vec<Vec<u8>> {
            rows.map(|row| [&7u16.to_le_bytes()[..], &row.to_le_bytes()[..], b"popular"].concat()).collect()
        };
        let packed = [packed(&source(0..100)), packed(&source(100..200))];
        let mut rest = [packed[0].as_slice(), packed[1].as_slice()];
        let mut tournament = Tournament::new(&mut rest);
        let mut rows = 0;
        while !tournament.record().is_empty() {
            rows += 1;
            tournament.replace(&mut rest[tournament.source()]);
        }
        assert_eq!(rows, 200);
        assert_eq!(tournament.matches(), Matches { count: 201, by_key: 1 });
    }
}
