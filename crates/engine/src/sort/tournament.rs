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
//!        0                                                     has the last winner's key
//!        FFFFFFFFFFFFFFFF                                      nothing left
//! ```
//!
//! A symbol is 6 bytes. With symbols of one byte, as published, many more codes
//! are equal; with all that fits a word the code of a loser would have to be made
//! anew after each match. Records of one key are told apart by their row ids,
//! which are in the candidates: repeated keys are never looked at again.
//!
//! Not for keys of up to 8 bytes: their records are compared as one number.

use super::format::Merger;
use super::packed::{Packed, Rebuilt};
use plumb_events::{Session, Statistic};
use std::mem::swap;

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

#[derive(Debug, Clone, Copy)]
struct Candidate {
    code: u64,
    row: u64,
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
        let mut tournament =
            Tournament { nodes: vec![leaves[0]; count], records, matches: Matches::default() };
        // Relative to the empty key, which comes before all. winners[i] is the winner below node i.
        let mut winners = [leaves.clone(), leaves].concat();
        for node in (1..count).rev() {
            let (mut winner, mut loser) = (winners[2 * node], winners[2 * node + 1]);
            tournament.play(&mut winner, &mut loser);
            winners[node] = winner;
            tournament.nodes[node] = loser;
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
        let next = Packed::take_from(rest);
        let mut winner = candidate(&mut self.records[source as usize], source, next);
        let mut node = (self.nodes.len() + source as usize) / 2;
        while node > 0 {
            let mut loser = self.nodes[node];
            self.play(&mut winner, &mut loser);
            self.nodes[node] = loser;
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    fn matches(&self) -> Matches {
        self.matches
    }
}

impl Tournament {
    /// Puts the smaller one first; the other's code is relative to it then.
    #[inline]
    fn play(&mut self, one: &mut Candidate, two: &mut Candidate) {
        self.matches.count += 1;
        if one.code == two.code {
            self.play_out(one, two);
        } else if two.code < one.code {
            swap(one, two);
        }
    }

    /// A match of equal codes.
    #[inline(never)]
    fn play_out(&mut self, one: &mut Candidate, two: &mut Candidate) {
        if one.code != SAME_KEY {
            if one.code == EXHAUSTED {
                return;
            }
            self.matches.by_key += 1;
            let records = (&self.records[one.source as usize], &self.records[two.source as usize]);
            let mut number = SYMBOL_NUMBER_MAX + 1 - (one.code >> SYMBOL_BITS) as usize;
            loop {
                number += 1;
                match (records.0.symbol(number), records.1.symbol(number)) {
                    (None, None) => break,
                    (mine, other) if mine == other => {}
                    (mine, other) => {
                        let (mine, other) = (mine.unwrap_or(0), other.unwrap_or(0));
                        if mine == other {
                            continue;
                        }
                        if other < mine {
                            swap(one, two);
                        }
                        two.code = code(number, mine.max(other));
                        return;
                    }
                }
            }
        }
        if two.row < one.row {
            swap(one, two);
        }
        two.code = SAME_KEY;
    }
}

#[inline]
const fn code(number: usize, symbol: u64) -> u64 {
    ((SYMBOL_NUMBER_MAX + 1 - number) as u64) << SYMBOL_BITS | symbol
}

/// Takes the next record of a source in; its code is relative to the one before.
#[inline]
fn candidate(record: &mut Rebuilt, source: u32, next: Option<Packed<'_>>) -> Candidate {
    let Some(next) = next else { return Candidate { code: EXHAUSTED, row: u64::MAX, source } };
    let code = record.advance(next).map_or(SAME_KEY, |differs| {
        let number = Rebuilt::symbol_of(differs);
        code(number, record.symbol(number).unwrap_or(0))
    });
    Candidate { code, row: record.row().0, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::format::{BytesKey, Format, Packing};
    use crate::sort::packed::Packer;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        let site = prop_oneof![Just("https://www.a.org"), Just("https://www.b.org"), Just("/srv/"), Just("")];
        let zeros = prop_oneof![4 => Just(0usize), 1 => 1usize..15];
        (site, zeros, "[ab]{1,8}")
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
            let (head, rest, _) = packer.pack(record);
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(rest);
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
