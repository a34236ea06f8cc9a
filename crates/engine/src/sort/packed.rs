//! Packed records: keys without the bytes that they share with the record before.
//!
//! Sorted records of text keys share most of their bytes with their neighbours (20 to 30 of 36
//! among addresses). Strips in the sort area and blocks of runs store them packed. So an area holds
//! more rows, and runs have fewer bytes to write and read back.
//!
//! ```text
//! packed   shared u8 | FF, u16     bytes of the key that the record before has too
//!          length u8 | FF, u16     bytes that follow the row id
//!          row id u64
//!          the rest of the key
//! ```
//!
//! [`Packer`] compares each key with the last one. [`Rebuilt`] unpacks, in a buffer in which the
//! next record replaces only the bytes that differ. A reader that starts in the middle needs a
//! record with nothing shared: strips and blocks begin with one ([`Packing::begin_block`]).
//!
//! There is no switch, because packing is free if keys share nothing. The two lengths take the two
//! bytes of an unpacked record's length. So a packed record is never longer if its key has less
//! than 255 bytes. Comparing two keys that differ at once is one comparison of words. Published
//! implementations that lose space on keys of 10 random bytes store 4 bytes more.
//!
//! Invariants:
//! - P1 The first record of a strip, of a mini-run and of a block shares nothing.
//! - P2 Lengths fit the two bytes that follow the mark: no key is longer than 65,535 bytes.
//! - P3 A packed record is at most [`GROWTH_MAX`] bytes longer than the record.

use super::format::{BYTES_HEADER, Packing, key_of, row_of};
use plumb_io::strict_assert;
use plumb_units::RowId;

/// Marks a length of 255 and more; the length follows in two bytes.
const LONG_MARK: usize = 0xFF;
/// Bytes of room kept for a record beyond its length. Packing adds at most 2: one length may
/// take three bytes where the record has two for it, and the other takes one. The other 2
/// are slack for the record that a strip cannot take at its end. With them the room promised
/// to a batch always exists.
pub const GROWTH_MAX: usize = 4;
/// Zeros after a rebuilt key, so that a word can be read at any of its bytes.
const PADDING: usize = 8;
/// Longest rest that is copied as one piece of fixed size, because a copy of a length known only at
/// run time is a call.
const PIECE_BYTES: usize = 32;
/// Bytes of a symbol, the unit in which a tournament compares keys.
const SYMBOL_BYTES: usize = 6;

/// Returns the number of bytes that two keys share at their start.
#[inline]
pub fn shared_bytes(one: &[u8], two: &[u8]) -> usize {
    let length = one.len().min(two.len());
    let (one, two) = (&one[..length], &two[..length]);
    let Some(last) = length.checked_sub(8) else {
        return one.iter().zip(two).take_while(|(a, b)| a == b).count();
    };
    let mut at = 0;
    loop {
        let differing = word_at(one, at) ^ word_at(two, at);
        if differing != 0 {
            return at + differing.trailing_zeros() as usize / 8;
        }
        if at == last {
            return length;
        }
        // The last word overlaps the one before; the overlap is known to be equal.
        at = last.min(at + 8);
    }
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a word is asked for inside the bytes"))
}

/// Copies a piece as words. If it copied bytes, the compiler would merge this copy and the one for
/// longer rests into one call of a copy of any length.
#[inline]
fn copy_piece(piece: &[u8; PIECE_BYTES], place: &mut [u8; PIECE_BYTES]) {
    for (from, to) in piece.as_chunks::<16>().0.iter().zip(place.as_chunks_mut::<16>().0) {
        *to = u128::from_ne_bytes(*from).to_ne_bytes();
    }
}

/// The head of a packed record: both lengths and the row id.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// The stored form, first byte lowest, built in a register. Bytes stored one by one would stall
    /// a read of the whole.
    bytes: u128,
    length: usize,
    rest_bytes: usize,
}

impl Head {
    /// Makes the head of a record that shares `shared` bytes of its key and has `rest` more.
    #[inline]
    pub fn new(shared: usize, rest: usize, row: RowId) -> Head {
        let mut head = Head { bytes: 0, length: 0, rest_bytes: rest };
        head.push_length(shared);
        head.push_length(rest);
        head.push(u128::from(row.0), 8);
        head
    }

    #[inline]
    fn push_length(&mut self, length: usize) {
        if length < LONG_MARK {
            self.push(length as u128, 1);
        } else {
            assert!(length <= usize::from(u16::MAX), "P2: a length of {length} bytes");
            self.push((LONG_MARK | length << 8) as u128, 3);
        }
    }

    #[inline]
    fn push(&mut self, bytes: u128, length: usize) {
        self.bytes |= bytes << (8 * self.length);
        self.length += length;
    }

    /// Writes the record to the start of `room` and returns the bytes it takes; `None` if it does
    /// not fit. `tail` begins with the rest of the key; the bytes after it may be read, so that
    /// the copy has a fixed size.
    #[inline]
    pub fn put(&self, tail: &[u8], room: &mut [u8]) -> Option<usize> {
        let length = self.length + self.rest_bytes;
        if length > room.len() {
            return None;
        }
        // Both copies may write bytes past the record; the next record overwrites them.
        let head = self.bytes.to_le_bytes();
        match room.first_chunk_mut::<16>() {
            Some(place) => *place = head,
            None => room[..self.length].copy_from_slice(&head[..self.length]),
        }
        let place = &mut room[self.length..];
        match (tail.first_chunk::<PIECE_BYTES>(), place.first_chunk_mut::<PIECE_BYTES>()) {
            (Some(piece), Some(place)) if self.rest_bytes <= PIECE_BYTES => copy_piece(piece, place),
            _ => place[..self.rest_bytes].copy_from_slice(&tail[..self.rest_bytes]),
        }
        Some(length)
    }
}

/// Packs records that come in order.
#[derive(Debug, Default)]
pub struct Packer {
    /// Key of the last record.
    last: Vec<u8>,
    bytes_saved: u64,
}

impl Packing for Packer {
    fn begin_block(&mut self) {
        self.last.clear();
    }

    #[inline]
    fn put(&mut self, record: &[u8], room: &mut [u8]) -> Option<usize> {
        let key = key_of(record);
        let shared = shared_bytes(&self.last, key);
        let rest = &key[shared..];
        let length = Head::new(shared, rest.len(), row_of(record)).put(rest, room)?;
        strict_assert!(length <= record.len() + GROWTH_MAX, "P3: {length} bytes for {}", record.len());
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.bytes_saved += shared as u64;
        Some(length)
    }

    fn bytes_saved(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_saved)
    }
}

/// A packed record as it lies in memory.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'b> {
    shared: usize,
    row: RowId,
    /// The rest of the key, and the bytes after it.
    tail: &'b [u8],
    rest_bytes: usize,
    /// Bytes of the whole packed record.
    pub length: usize,
}

impl<'b> Packed<'b> {
    /// Returns the first record of `bytes`; `None` if they end inside it.
    #[inline]
    pub fn first_of(bytes: &'b [u8]) -> Option<Packed<'b>> {
        let (shared, at) = length_at(bytes, 0)?;
        let (rest, at) = length_at(bytes, at)?;
        let row = bytes.get(at..at + 8)?;
        let row = RowId(u64::from_le_bytes(row.try_into().expect("eight bytes")));
        let tail = &bytes[at + 8..];
        (rest <= tail.len()).then_some(Packed { shared, row, tail, rest_bytes: rest, length: at + 8 + rest })
    }

    /// Takes the first record off the rest of a source.
    #[inline]
    pub fn take_from(rest: &mut &'b [u8]) -> Option<Packed<'b>> {
        let next = Packed::first_of(rest)?;
        *rest = &rest[next.length..];
        Some(next)
    }
}

#[inline]
fn length_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = usize::from(*bytes.get(at)?);
    if first < LONG_MARK {
        return Some((first, at + 1));
    }
    let long = bytes.get(at + 1..at + 3)?;
    Some((usize::from(u16::from_le_bytes([long[0], long[1]])), at + 3))
}

/// The current record of a reader of packed records, unpacked.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// The record, and [`PADDING`] zeros after it.
    bytes: Vec<u8>,
    key_length: usize,
}

impl Rebuilt {
    /// Advances to the next record. Returns the first byte at which its key differs from the key
    /// before, if zeros follow both. `None` if only zeros at their ends differ. The first record of
    /// a block is stored whole, so its key is compared with the last one of the block before.
    #[inline]
    pub fn advance(&mut self, next: Packed<'_>) -> Option<usize> {
        // Only a corrupt block claims to share more than the key before has.
        let kept = next.shared.min(self.key_length);
        let rest = &next.tail[..next.rest_bytes];
        let end = kept + rest.len();
        let needed = BYTES_HEADER + end + PIECE_BYTES + PADDING;
        if self.bytes.len() < needed {
            self.bytes.resize(needed.next_power_of_two(), 0);
        }
        let key = &mut self.bytes[BYTES_HEADER..];
        let mut shared = kept;
        if kept == self.key_length || rest.first() == Some(&key[kept]) {
            // The key before ends here, or a block has begun with a whole key.
            shared += shared_bytes(&key[kept..self.key_length], rest);
            if shared == self.key_length {
                shared += rest[shared - kept..].iter().take_while(|byte| **byte == 0).count();
            }
        }
        match next.tail.first_chunk::<PIECE_BYTES>() {
            Some(piece) if rest.len() <= PIECE_BYTES => {
                let place = key[kept..].first_chunk_mut().expect("there is room for a piece behind a key");
                copy_piece(piece, place);
            }
            _ => key[kept..end].copy_from_slice(rest),
        }
        key[end..end + PADDING].fill(0);
        self.key_length = end;
        self.bytes[..2].copy_from_slice(&(end as u16).to_le_bytes());
        self.bytes[2..BYTES_HEADER].copy_from_slice(&next.row.0.to_le_bytes());
        (shared < end).then_some(shared)
    }

    /// Returns the record in unpacked form; no bytes before the first.
    #[inline]
    pub fn record(&self) -> &[u8] {
        if self.bytes.is_empty() { &[] } else { &self.bytes[..BYTES_HEADER + self.key_length] }
    }

    /// Returns the order of records that differ only in zeros at the ends of their keys: the
    /// shorter key first, then the row id.
    #[inline]
    pub fn rank(&self) -> (usize, RowId) {
        (self.key_length, row_of(&self.bytes))
    }

    /// Returns the number of the symbol that byte `at` is in: symbols are 6 bytes of the key.
    #[inline]
    pub const fn symbol_of(at: usize) -> usize {
        at / SYMBOL_BYTES
    }

    /// Returns a symbol as a number of 48 bits, of the key followed by zeros; `None` if
    /// it lies after the key.
    #[inline]
    pub fn symbol(&self, number: usize) -> Option<u64> {
        let at = number * SYMBOL_BYTES;
        if at >= self.key_length {
            return None;
        }
        let word = self.bytes[BYTES_HEADER + at..].first_chunk::<8>()?;
        Some(u64::from_be_bytes(*word) >> 16)
    }
}

/// Packs a record with the packer's state.
#[cfg(test)]
pub(crate) fn packed_by(packer: &mut Packer, record: &[u8]) -> Vec<u8> {
    let mut room = vec![0; record.len() + GROWTH_MAX];
    let length = packer.put(record, &mut room).expect("P3: no record grows by more");
    room.truncate(length);
    room
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(key: &[u8], row: u64) -> Vec<u8> {
        let mut record = (key.len() as u16).to_le_bytes().to_vec();
        record.extend_from_slice(&row.to_le_bytes());
        record.extend_from_slice(key);
        record
    }

    /// Counts shared bytes one by one, with zeros after a short key.
    fn shared_with_zeros(one: &[u8], two: &[u8]) -> usize {
        let byte = |key: &[u8], at: usize| key.get(at).copied().unwrap_or(0);
        (0..two.len()).take_while(|at| byte(one, *at) == byte(two, *at)).count()
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        let short = proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..20);
        let long = (250usize..600, any::<u8>()).prop_map(|(length, last)| {
            let mut key = vec![7; length];
            key.push(last.max(1));
            key
        });
        prop_oneof![4 => short, 1 => long]
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            mut keys in proptest::collection::vec(key(), 1..60), restart_every in 1usize..20,
        ) {
            keys.sort();
            let mut packer = Packer::default();
            let mut bytes = Vec::new();
            for (row, key) in keys.iter().enumerate() {
                if row % restart_every == 0 {
                    packer.begin_block();
                }
                let record = record(key, row as u64);
                bytes.extend(packed_by(&mut packer, &record));
            }
            let mut rebuilt = Rebuilt::default();
            let mut rest = bytes.as_slice();
            let mut last: &[u8] = &[];
            for (row, key) in keys.iter().enumerate() {
                let next = Packed::first_of(rest).expect("a record");
                prop_assert!(Packed::first_of(&rest[..next.length - 1]).is_none());
                let shared = rebuilt.advance(next);
                prop_assert_eq!(rebuilt.record(), record(key, row as u64));
                let shared_expected = shared_with_zeros(last, key);
                prop_assert_eq!(shared, (shared_expected < key.len()).then_some(shared_expected));
                rest = &rest[next.length..];
                last = key;
            }
            prop_assert!(Packed::first_of(rest).is_none());
        }
    }

    #[test]
    #[should_panic(expected = "P2: a length of 65536 bytes")]
    fn a_length_of_more_than_two_bytes_is_refused() {
        let _ = Head::new(0, 65_536, RowId(1));
    }

    #[test]
    fn symbols_are_the_key_followed_by_zeros() {
        let mut rebuilt = Rebuilt::default();
        let long = record(b"abcdefghijklmnopq", 1);
        let packed = packed_by(&mut Packer::default(), &long);
        rebuilt.advance(Packed::first_of(&packed).expect("a record"));
        assert_eq!(rebuilt.symbol(0), Some(0x6162_6364_6566));
        let short = record(b"abcdefgh", 2);
        let packed = packed_by(&mut Packer::default(), &short);
        rebuilt.advance(Packed::first_of(&packed).expect("a record"));
        assert_eq!(rebuilt.symbol(1), Some(0x6768_0000_0000));
        assert_eq!(rebuilt.symbol(2), None);
        assert_eq!(rebuilt.rank(), (8, RowId(2)));
    }

    #[test]
    fn shared_bytes_are_counted_over_words_and_tails() {
        assert_eq!(shared_bytes(b"", b"a"), 0);
        assert_eq!(shared_bytes(b"abcdefghij", b"abcdefghiX"), 9);
        assert_eq!(shared_bytes(b"abcdefghijklmnopqrs", b"abcdefghijklmnopqrs"), 19);
        assert_eq!(shared_bytes(b"abcXefghij", b"abcdefghij"), 3);
    }
}
