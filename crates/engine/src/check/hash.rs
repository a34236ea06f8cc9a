//! Sums of hashes that show if two sets of entries are equal.

use plumb_units::RowId;

/// Odd numbers without a pattern: the fractional parts of the square roots of 2, 3, 5 and 7,
/// with the last bit set.
const SECRET: [u64; 4] =
    [0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1];

/// Hashes an entry. It mixes by multiplying 64 by 64 bits and folding the product, like wyhash:
/// about 1 ns per 8 bytes.
#[inline]
pub(super) fn entry_hash(key: &[u8], row: RowId) -> u64 {
    let mut state = fold(row.0 ^ SECRET[0], key.len() as u64 ^ SECRET[1]);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), SECRET[2]);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = fold(state ^ u64::from_le_bytes(last), SECRET[3]);
    fold(state ^ SECRET[2], SECRET[1])
}

#[inline]
fn fold(one: u64, two: u64) -> u64 {
    let product = u128::from(one) * u128::from(two);
    product as u64 ^ (product >> 64) as u64
}

/// Few enough buckets for a first-level cache, and enough that the blocks of
/// one are soon read again.
const BUCKETS: usize = 1024;

/// A sum of hashes for each bucket of table blocks; a sum holds 2^64 hashes.
#[derive(Debug, Clone)]
pub(super) struct Sums(Box<[u128; BUCKETS]>);

impl Sums {
    pub(super) fn new() -> Sums {
        Sums(Box::new([0; BUCKETS]))
    }

    /// Returns the bucket of a table block, by its number in the segment.
    #[inline]
    pub(super) fn bucket(block: u64) -> usize {
        block as usize % BUCKETS
    }

    #[inline]
    pub(super) fn add(&mut self, block: u64, hash: u64) {
        self.0[Sums::bucket(block)] += u128::from(hash);
    }

    pub(super) fn merge(&mut self, other: &Sums) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += theirs;
        }
    }

    /// Returns the first bucket in which the sums differ.
    pub(super) fn first_difference(&self, other: &Sums) -> Option<usize> {
        (0..BUCKETS).find(|bucket| self.0[*bucket] != other.0[*bucket])
    }

    pub(super) fn total(&self) -> u128 {
        self.0.iter().fold(0, |total, sum| total.wrapping_add(*sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_entry_bit_changes_about_half_of_its_hash() {
        for length in [0, 1, 7, 8, 9, 20] {
            let key: Vec<u8> = (0..length as u8).map(|i| i.wrapping_mul(37)).collect();
            let hash = entry_hash(&key, RowId(1 << 48));
            for bit in 0..64 {
                let changed = (hash ^ entry_hash(&key, RowId(1 << 48 ^ 1 << bit))).count_ones();
                assert!((8..56).contains(&changed), "row bit {bit}: {changed}");
            }
            for bit in 0..length * 8 {
                let mut other = key.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                let changed = (hash ^ entry_hash(&other, RowId(1 << 48))).count_ones();
                assert!((8..56).contains(&changed), "key bit {bit} of {length}: {changed}");
            }
        }
    }

    #[test]
    fn small_keys_and_near_rows_do_not_collide() {
        let mut seen = HashSet::new();
        for key in 0..200u8 {
            for row in 0..200 {
                assert!(seen.insert(entry_hash(&[key], RowId(1 << 48 | row))));
                assert!(seen.insert(entry_hash(&[key, 1], RowId(1 << 48 | row))));
            }
        }
    }
}
