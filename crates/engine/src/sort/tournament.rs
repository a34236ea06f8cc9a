//! A tree of losers for packed records: most matches are decided by a code.
//!
//! It merges sources of [`Packed`] records and reads no more of their keys than needed.
//!
//! It uses offset-value codes (Conner 1977; Graefe and Do, arXiv 2209.08420). Each candidate on the
//! path from a leaf to the root has a code relative to the last winner: the first symbol at which
//! they differ, and the value of that symbol. Both come after the winner, so the one that differs
//! later, or by less, is smaller. The codes differ in most matches, and then the loser keeps its
//! code, which is right relative to the new winner too. Only if they are equal are keys compared,
//! from the next symbol on, and the loser gets a new code. For the next record of the winner's
//! source the packed record itself has the first difference.
//!
//! ```text
//! code   FFFE - number of the symbol u16 | symbol, 48 bits     differs from the last winner
//!        0                                                     the last winner's key or more zeros
//!        FFFFFFFFFFFFFFFF                                      the source is empty
//! ```
//!
//! A symbol is 6 bytes. With symbols of one byte, as published, many more codes are equal. With
//! symbols of a whole word the code of a loser would change after each match. Records of one key
//! are compared by their row ids, so repeated keys are never read again. Symbols are those of keys
//! followed by zeros. So keys that differ only in zeros at their ends have one code, and their
//! lengths are compared before the row ids.
//!
//! Rejected: candidates with the row id in them, swapped in place. Parts that are written
//! one by one and read back together stall at every level. In registers a merge of 64
//! runs takes half the time.
//!
//! Keys of up to 8 bytes do not need this: their records are compared as one number.
//!
//! Invariant: L1 of [`loser_tree`](super::loser_tree), because codes are right only if
//! each source is in order.

use super::format::{BytesKey, Merger, RunFormat};
use super::packed::{Packed, Rebuilt};
use plumb_events::{Session, Statistic};
use plumb_io::{STRICT, prefetch, strict_assert};

/// Prefetch distance. The processor does not prefetch tens of sources on its own, and a tenth of a
/// merge's time was spent waiting.
const AHEAD_BYTES: usize = 256;
const SAME_KEY: u64 = 0;
const EXHAUSTED: u64 = u64::MAX;
const SYMBOL_BITS: u32 = 48;
const SYMBOL_NUMBER_MAX: usize = 0xFFFD;
const _: () = assert!(Rebuilt::symbol_of(u16::MAX as usize) < SYMBOL_NUMBER_MAX);

/// Counts of matches, by the way in which they were decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Matches {
    /// Number of all matches played.
    pub count: u64,
    /// Number of matches that compared keys.
    pub by_key: u64,
}

impl Matches {
    /// Adds the counts to the statistics of a session.
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

/// 16 bytes: a match reads one candidate and writes one back.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    code: u64,
    source: u32,
}

/// The tournament, with the current record of each source.
#[derive(Debug)]
pub struct Tournament {
    /// Node 0 is the winner; the others are the losers of the inner nodes. Leaf i, if it were
    /// stored, would be node `len + i`.
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
        // Codes are relative to the empty key, which precedes all others. `winners[i]` is
        // the winner below node i.
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
    /// Returns the smaller candidate, and the other with its code relative to it. Each
    /// part is selected separately, in registers: swapping them in memory stalls, and
    /// so does a mispredicted branch.
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

    /// Decides a match of equal codes.
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

/// Returns the first symbol from `number` on that differs, and both values; `None` if the keys
/// differ only in zeros at their ends.
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

/// Takes the next record of a source; its code is relative to the record before.
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

    /// Packs records into a source that is read from the front.
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
