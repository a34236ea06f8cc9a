//! The records of the sort benchmarks: 100 bytes, a random key of 10 at the front.
//!
//! Byte for byte the output of gensort 1.5 (Nyberg and Govindaraju, sortbenchmark.org). So valsort
//! can check the sorted output, and the published checksums of a number of records apply here too
//! (the tests hold some of them).
//!
//! ```text
//! binary   key 10 | 00 11 | record number, 32 hex digits | 88 99 AA BB | filler 48 | CC DD EE FF
//! ascii    key 10 | 2 spaces | record number, 32 hex digits | 2 spaces | filler 52 | CR LF
//! random   key 10 | 90 random bytes
//! ```
//!
//! Record n is made from the (n + 1)-th number of a linear congruential generator of 128 bits
//! that starts from 0. The key has its high bits. The filler has the hexadecimal digits of
//! its low 48 (ascii: 52) bits, each written four times. An ascii key has its digits in base
//! 95 from the space on. The generator can jump n steps in as many multiplications as n has
//! bits (Brown, Random Number Generation with Arbitrary Strides, 1994). So any part of the
//! file can be made independently.

use plumb_types::RecordSource;
use plumb_units::SplitMix;

/// Bytes of each record, key included.
pub const RECORD_BYTES: usize = 100;
/// Bytes of its key, at the front.
pub const KEY_BYTES: usize = 10;

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
const INCREMENT: u128 = 0x4A69_6D47_7261_7952_4950_2020_2020_2001;
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Form of a record: its key and its filler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordForm {
    /// Keys of 10 random bytes.
    Binary,
    /// Keys of 10 printable characters; each record is a line of text.
    Ascii,
    /// Keys of the binary form with random bytes after them. Records of gensort 1.5 shrink to a
    /// third on a disk that compresses, which then does less work than the figures show.
    Random,
}

/// The first records of gensort's sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GensortRecords {
    /// Number of records to make.
    pub count: u64,
    /// Form that all records have.
    pub form: RecordForm,
}

impl RecordSource for GensortRecords {
    fn record_bytes(&self) -> usize {
        RECORD_BYTES
    }

    fn record_count(&self) -> u64 {
        self.count
    }

    fn fill(&self, first: u64, out: &mut [u8]) {
        let (records, rest) = out.as_chunks_mut::<RECORD_BYTES>();
        assert!(rest.is_empty(), "a whole number of records");
        let mut random = advanced(first);
        for (number, record) in (first..).zip(records) {
            random = random.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
            match self.form {
                RecordForm::Binary => binary(record, random, number),
                RecordForm::Ascii => ascii(record, random, number),
                RecordForm::Random => incompressible(record, random, number),
            }
        }
    }
}

/// Returns the generator after `steps` steps from 0: x becomes a x + c,
/// composed with itself by squaring.
fn advanced(mut steps: u64) -> u128 {
    let (mut multiplier, mut increment) = (MULTIPLIER, INCREMENT);
    let mut state: u128 = 0;
    while steps > 0 {
        if steps & 1 == 1 {
            state = state.wrapping_mul(multiplier).wrapping_add(increment);
        }
        increment = increment.wrapping_mul(multiplier.wrapping_add(1));
        multiplier = multiplier.wrapping_mul(multiplier);
        steps >>= 1;
    }
    state
}

fn binary(record: &mut [u8; RECORD_BYTES], random: u128, number: u64) {
    record[..KEY_BYTES].copy_from_slice(&random.to_be_bytes()[..KEY_BYTES]);
    record[10..12].copy_from_slice(&[0x00, 0x11]);
    write_number(&mut record[12..44], number);
    record[44..48].copy_from_slice(&[0x88, 0x99, 0xAA, 0xBB]);
    write_filler(&mut record[48..96], random);
    record[96..].copy_from_slice(&[0xCC, 0xDD, 0xEE, 0xFF]);
}

/// Makes the bytes after the key by a generator of their own that starts with the record's number
/// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn incompressible(record: &mut [u8; RECORD_BYTES], random: u128, number: u64) {
    let (key, rest) = record.split_at_mut(KEY_BYTES);
    key.copy_from_slice(&random.to_be_bytes()[..KEY_BYTES]);
    let words = rest.len().div_ceil(8) as u64;
    for (word, bytes) in (1..).zip(rest.chunks_mut(8)) {
        let word = SplitMix::at(0, number.wrapping_mul(words).wrapping_add(word));
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
}

fn ascii(record: &mut [u8; RECORD_BYTES], random: u128, number: u64) {
    let (high, low) = record[..KEY_BYTES].split_at_mut(8);
    write_base_95(high, (random >> 64) as u64);
    write_base_95(low, random as u64);
    record[10..12].fill(b' ');
    write_number(&mut record[12..44], number);
    record[44..46].fill(b' ');
    write_filler(&mut record[46..98], random);
    record[98..].copy_from_slice(b"\r\n");
}

/// Writes digits in base 95, the lowest first.
fn write_base_95(out: &mut [u8], mut value: u64) {
    for byte in out {
        *byte = b' ' + (value % 95) as u8;
        value /= 95;
    }
}

/// Writes hexadecimal digits, the lowest last.
fn write_number(out: &mut [u8], mut number: u64) {
    for byte in out.iter_mut().rev() {
        *byte = HEX[(number & 15) as usize];
        number >>= 4;
    }
}

/// Writes the lowest hexadecimal digits of `random`, each four times, as many as fit.
fn write_filler(out: &mut [u8], mut random: u128) {
    for four in out.chunks_exact_mut(4).rev() {
        four.fill(HEX[(random & 15) as usize]);
        random >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(form: RecordForm, first: u64, count: usize) -> Vec<u8> {
        let mut out = vec![0; count * RECORD_BYTES];
        GensortRecords { count: first + count as u64, form }.fill(first, &mut out);
        out
    }

    /// Returns the sum of the CRC-32 of each record, as gensort -c prints it.
    fn checksum(form: RecordForm, count: usize) -> u128 {
        let crc = |record: &[u8]| {
            let mut crc = flate2::Crc::new();
            crc.update(record);
            u128::from(crc.sum())
        };
        records(form, 0, count).chunks(RECORD_BYTES).map(crc).sum()
    }

    #[test]
    fn the_first_records_are_those_of_gensort() {
        let ascii = records(RecordForm::Ascii, 0, 2);
        assert!(ascii.starts_with(b"AsfAGHM5om  00000000000000000000000000000000  0000222200002222"));
        assert!(ascii[RECORD_BYTES..].starts_with(b"~sHd0jDv6X  00000000000000000000000000000001"));
        assert!(ascii.ends_with(b"77779999444488885555CCCC777755555555BBBB666644446666\r\n"));
        let binary = records(RecordForm::Binary, 0, 1);
        assert!(
            binary.starts_with(b"JimGrayRIP\x00\x1100000000000000000000000000000000\x88\x99\xAA\xBB2222")
        );
    }

    #[test]
    fn checksums_are_those_that_others_published_for_gensort() {
        assert_eq!(checksum(RecordForm::Ascii, 163_840), 0x0001_400F_ED7B_B2C2);
        assert_eq!(checksum(RecordForm::Binary, 1_000_000), 0x0007_A27E_2D0D_55DE);
    }

    #[test]
    fn random_records_have_the_keys_of_the_others_and_do_not_compress() {
        let (binary, random) = (records(RecordForm::Binary, 0, 1000), records(RecordForm::Random, 0, 1000));
        let keys = |records: &[u8]| -> Vec<u8> {
            records.chunks(RECORD_BYTES).flat_map(|record| record[..KEY_BYTES].to_vec()).collect()
        };
        assert_eq!(keys(&binary), keys(&random));
        let packed = |bytes: &[u8]| {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, bytes).expect("to memory");
            encoder.finish().expect("to memory").len() as f64 / bytes.len() as f64
        };
        assert!(packed(&binary) < 0.5, "{}", packed(&binary));
        assert!(packed(&random) > 0.99, "{}", packed(&random));
    }

    proptest! {
        #[test]
        fn any_part_can_be_made_by_itself(first in 0u64..5000, count in 0usize..50) {
            for form in [RecordForm::Binary, RecordForm::Ascii, RecordForm::Random] {
                let whole = records(form, 0, first as usize + count);
                prop_assert_eq!(&records(form, first, count), &whole[first as usize * RECORD_BYTES..]);
            }
        }
    }
}
