//! The area of keys of any length: a strip being filled, and packed strips.
//!
//! What it does: records collect in a strip that the second-level cache holds.
//! When it is full it is sorted and packed ([`packed`](crate::sort::packed)): each
//! key without the bytes that the key before has too. The strip is then empty
//! again. An area of addresses holds two to three times as many rows that way,
//! so there are fewer runs; and what is merged is read from front to back, where
//! sorted references into a heap would miss the cache at every record.
//!
//! ```text
//! | strip: records as they came | entries | packed strips, one after the other    free |
//! ```
//!
//! How a strip is sorted: an entry of 16 bytes for each record holds 8 bytes of
//! its key, as a number, and its place. Entries are sorted by these bytes, then
//! each group with equal bytes by the 8 after them, until groups have few members
//! or one key, which leaves the row ids. Bytes that all keys of a group share are
//! skipped, so `https://www.` costs a look each and no comparison.
//!
//! What was tried and lost: sorting groups of equal prefixes by comparing their
//! keys. Four fifths of all addresses begin with the same 8 bytes, so most of the
//! sort was then calls of memcmp, 14 for each record.
//!
//! Limits: the split between strip and entries follows the expected length of
//! records. A wrong guess leaves part of one unused; it never takes more. The
//! keys that a merge is at, one a strip, are beside the area.

use super::{InputOrder, MemoryMerge, RecordSink, RecordSize, SortArea};
use crate::sort::format::{BYTES_HEADER, BytesKey, RunFormat, row_of};
use crate::sort::packed::{self, GROWTH_MAX, Head, Packed, Rebuilt};
use plumb_io::{HugeVec, IoError};
use std::ops::Range;

/// Most bytes of a strip with its entries: half of a second-level cache of 2 MiB.
const STRIP_BYTES: usize = 1 << 20;
/// The least part of an area that is kept for packed strips, as 1 - 1 / this.
const STRIP_SHARE: usize = 4;
/// Groups of so many records are sorted by comparing their keys.
const SMALL_GROUP: usize = 8;
/// Bytes of a prefix.
const PREFIX_BYTES: usize = 8;

/// Area of [`BytesKey`] records.
#[derive(Debug)]
pub struct BytesArea {
    strip: HugeVec<u8>,
    strip_bytes: usize,
    entries: HugeVec<Entry>,
    entry_count_max: usize,
    order: InputOrder,
    packed: HugeVec<u8>,
    packed_bytes: usize,
    /// Where each packed strip lies.
    strips: Vec<Range<usize>>,
    /// Records in the packed strips.
    packed_count: usize,
    /// Whether a full area becomes one run; else each packed strip does.
    one_run: bool,
}

/// Stands for a record of the strip.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Bytes of its key, or its row id where the key is no longer in question.
    prefix: u64,
    /// Where the record starts.
    at: u32,
    key_bytes: u32,
}

impl SortArea for BytesArea {
    const ENTRY_BYTES: usize = size_of::<Entry>();
    const STRIP_BYTES_MAX: usize = STRIP_BYTES;

    /// Strips are cut by the cache, not by the area: `strips` of one means that a
    /// full area is to become one run.
    fn new(bytes: usize, strips: usize, record: RecordSize) -> Result<BytesArea, IoError> {
        let strip_and_entries = STRIP_BYTES.min(bytes / STRIP_SHARE);
        let entry_count_max = record.fitting(strip_and_entries);
        let entry_bytes = entry_count_max * size_of::<Entry>();
        let strip_bytes = strip_and_entries.saturating_sub(entry_bytes);
        let packed_bytes = bytes.saturating_sub(entry_bytes + strip_bytes);
        Ok(BytesArea {
            strip: HugeVec::with_capacity(strip_bytes)?,
            strip_bytes,
            entries: HugeVec::with_capacity(entry_count_max)?,
            entry_count_max,
            order: InputOrder::UNKNOWN,
            packed: HugeVec::with_capacity(packed_bytes)?,
            packed_bytes,
            strips: Vec::new(),
            packed_count: 0,
            one_run: strips == 1,
        })
    }

    fn fill(&mut self, records: &[u8]) -> Result<usize, IoError> {
        let mut taken = 0;
        loop {
            let rest = &records[taken..];
            let length = BytesKey::length(rest);
            if length == 0 {
                return Ok(taken);
            }
            if !self.strip_takes(length) {
                self.close();
                if !self.begins_strip(length) {
                    return Ok(taken);
                }
            }
            self.push(&rest[..length]);
            taken += length;
        }
    }

    fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<u64, S::Error> {
        let runs = if self.one_run { self.strips.len().min(1) } else { self.strips.len() };
        if self.one_run {
            let mut merge = MemoryMerge::<BytesKey>::new(self);
            while let record @ [_, ..] = merge.current() {
                sink.record(record)?;
                merge.advance();
            }
            sink.end_run()?;
        } else {
            for strip in self.sources() {
                pass_on(strip, sink)?;
                sink.end_run()?;
            }
        }
        self.packed.clear();
        self.strips.clear();
        self.packed_count = 0;
        Ok(runs as u64)
    }

    fn release_spare(&mut self) -> usize {
        if self.len() > 0 {
            return 0;
        }
        let room = |vector: &HugeVec<u8>| vector.room();
        let bytes = room(&self.packed) + room(&self.strip) + self.entries.room() * size_of::<Entry>();
        (self.packed, self.strip, self.entries) = (HugeVec::empty(), HugeVec::empty(), HugeVec::empty());
        bytes
    }

    fn len(&self) -> usize {
        self.packed_count + self.entries.len()
    }

    fn mapped_bytes(&self) -> usize {
        self.entries.mapped_bytes() + self.strip.mapped_bytes() + self.packed.mapped_bytes()
    }

    fn sources(&self) -> Vec<&[u8]> {
        self.strips.iter().map(|strip| &self.packed[strip.clone()]).collect()
    }

    /// Sorts the strip and packs it behind the others.
    fn close(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => self.entries.reverse(),
            _ => sort_entries(&self.strip, &mut self.entries, 0),
        }
        let start = self.packed.len();
        let mut last: &[u8] = &[];
        for entry in self.entries.iter() {
            let key = entry.key(&self.strip);
            let shared = packed::shared_bytes(last, key);
            let head = Head::new(shared, key.len() - shared, row_of(entry.record(&self.strip)));
            self.packed.extend_from_slice(head.as_bytes());
            self.packed.extend_from_slice(&key[shared..]);
            last = key;
        }
        self.strips.push(start..self.packed.len());
        self.packed_count += self.entries.len();
        self.entries.clear();
        self.strip.clear();
        self.order = InputOrder::UNKNOWN;
    }
}

impl BytesArea {
    /// Whether the strip has room for a record, and so the packed strips for the
    /// strip, whatever its records share.
    #[inline]
    fn strip_takes(&self, length: usize) -> bool {
        let count = self.entries.len() + 1;
        let bytes = self.strip.len() + length;
        count <= self.entry_count_max
            && bytes <= self.strip_bytes
            && self.packed.len() + bytes + count * GROWTH_MAX <= self.packed_bytes
    }

    /// Whether a new strip is worth its beginning with such a record: the strips
    /// that fit what is left at the end of an area are shorter and shorter.
    fn begins_strip(&self, length: usize) -> bool {
        let left = self.packed_bytes - self.packed.len();
        let worth = self.strips.is_empty() || left >= self.strip_bytes / 2;
        worth && self.strip_takes(length)
    }

    #[inline]
    fn push(&mut self, record: &[u8]) {
        if (self.order.ascending || self.order.descending)
            && let Some(last) = self.entries.last()
        {
            let order = BytesKey::compare(&self.strip[last.at as usize..], record);
            self.order.ascending &= order.is_le();
            self.order.descending &= order.is_ge();
        }
        let at = self.strip.len() as u32;
        self.entries.push(Entry { prefix: 0, at, key_bytes: (record.len() - BYTES_HEADER) as u32 });
        self.strip.extend_from_slice(record);
    }
}

impl Entry {
    #[inline]
    fn record<'s>(&self, strip: &'s [u8]) -> &'s [u8] {
        &strip[self.at as usize..][..BYTES_HEADER + self.key_bytes as usize]
    }

    #[inline]
    fn key<'s>(&self, strip: &'s [u8]) -> &'s [u8] {
        &self.record(strip)[BYTES_HEADER..]
    }

    /// 8 bytes of its key from `skip` on, followed by zeros, as a number. What
    /// follows the key in the strip is read with it and masked.
    #[inline]
    fn prefix_at(&self, strip: &[u8], skip: usize) -> u64 {
        let left = (self.key_bytes as usize).saturating_sub(skip);
        if left == 0 {
            return 0;
        }
        let at = self.at as usize + BYTES_HEADER + skip;
        match strip[at..].first_chunk::<PREFIX_BYTES>() {
            Some(word) if left >= PREFIX_BYTES => u64::from_be_bytes(*word),
            Some(word) => u64::from_be_bytes(*word) & !(u64::MAX >> (8 * left)),
            None => (0..left.min(PREFIX_BYTES))
                .fold(0, |prefix, byte| prefix | u64::from(strip[at + byte]) << (56 - 8 * byte)),
        }
    }
}

/// Sorts entries whose keys have their first `skip` bytes in common, zeros after
/// shorter ones included.
fn sort_entries(strip: &[u8], entries: &mut [Entry], mut skip: usize) {
    if entries.len() <= SMALL_GROUP {
        let tail = |entry: &Entry| entry.key(strip).get(skip..).unwrap_or(&[]);
        let row = |entry: &Entry| row_of(entry.record(strip));
        return entries
            .sort_unstable_by(|one, two| tail(one).cmp(tail(two)).then_with(|| row(one).cmp(&row(two))));
    }
    loop {
        let first = entries[0].prefix_at(strip, skip);
        let (mut differing, mut longest) = (0, 0);
        for entry in entries.iter_mut() {
            entry.prefix = entry.prefix_at(strip, skip);
            differing |= entry.prefix ^ first;
            longest = longest.max(entry.key_bytes as usize);
        }
        let shared = differing.leading_zeros() as usize / 8;
        if shared == PREFIX_BYTES && longest <= skip + PREFIX_BYTES {
            // Keys end in no zero byte: they are one and the same.
            entries.iter_mut().for_each(|entry| entry.prefix = row_of(entry.record(strip)).0);
            return entries.sort_unstable_by_key(|entry| entry.prefix);
        }
        if shared < PREFIX_BYTES / 2 {
            break;
        }
        skip += shared;
    }
    entries.sort_unstable_by_key(|entry| entry.prefix);
    for group in entries.chunk_by_mut(|one, two| one.prefix == two.prefix) {
        if group.len() > 1 {
            sort_entries(strip, group, skip + PREFIX_BYTES);
        }
    }
}

fn pass_on<S: RecordSink>(mut strip: &[u8], sink: &mut S) -> Result<(), S::Error> {
    let mut record = Rebuilt::default();
    while let Some(next) = Packed::take_from(&mut strip) {
        record.advance(next);
        sink.record(record.record())?;
    }
    Ok(())
}
