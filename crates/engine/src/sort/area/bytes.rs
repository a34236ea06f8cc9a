//! The area of keys of any length: a batch in the cache, and strips of mini-runs.
//!
//! Records collect in a batch that the second-level cache holds. When it is full it is sorted and
//! becomes a mini-run of the strip being filled, packed ([`packed`](crate::sort::packed)): each key
//! without the bytes that it shares with the key before. The batch is then empty again. So an area
//! of addresses holds two to three times as many rows, and there are fewer runs. The merge reads
//! mini-runs from front to back; sorted references into a heap would miss the cache at every
//! record. A strip becomes a run by a merge of its mini-runs. Mini-runs that do not overlap, as of
//! input in some order, are simply concatenated.
//!
//! ```text
//! | batch: records as they came | entries |    | mini-run | mini-run | mini-ru    a strip
//!                                              | n | mini-run |  free              the next one
//! ```
//!
//! Sorting a batch: an entry of 16 bytes for each record holds 8 bytes of its key, as a number, and
//! its place. Entries are sorted by these bytes. Then each group with equal bytes is sorted by the
//! 8 after them. That ends when groups have few members, or keys that differ only in zeros at their
//! ends. Lengths and row ids decide the rest. Bytes that all keys of a group share are skipped, so
//! `https://www.` costs one pass over the entries and no comparison.
//!
//! Input in some order: while records come in order, or in reverse, the comparison that detects
//! it also gives the bytes that a key shares with its neighbour. So a batch in reverse is packed
//! from its end. Behind a batch in order records are packed as they come, without a batch, until
//! one is out of order.
//!
//! Rejected: sorting groups of equal prefixes by comparing their keys. Four fifths of all addresses
//! begin with the same 8 bytes, so most of the sort was calls of memcmp, 14 for each record.
//!
//! Limits: the split between batch and entries follows the expected length of records. A wrong
//! guess leaves part of one unused; it never takes more. Outside the area's budget are the first
//! and the last record of each mini-run, and in a merge the current key of each mini-run.

use super::{InputOrder, Mapped, MemoryMerge, RecordSink, RecordSize, SortArea, StripPool};
use crate::sort::format::{BYTES_HEADER, BytesKey, RunFormat, key_of, row_of};
use crate::sort::packed::{self, GROWTH_MAX, Head, Packed, Rebuilt};
use plumb_io::{HugeVec, IoError, prefetch, strict_assert};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

/// Most bytes of a batch with its entries: half of a second-level cache of 2 MiB.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// At most one part in this many of an area is the batch; the rest is for strips.
const BATCH_SHARE: usize = 4;
/// Input that is scanned and then copied in one step: the longest record fits, and the copy
/// finds it in a cache.
const INPUT_BYTES: usize = 1 << 17;
const _: () = assert!(INPUT_BYTES > BYTES_HEADER + u16::MAX as usize, "the longest record fits");
const _: () = assert!(BATCH_BYTES_MAX <= u32::MAX as usize, "an entry has 32 bits for a record's place");
/// Prefetch distance. Input comes from another processor, and without prefetching a third of the
/// time is spent waiting for it.
const AHEAD_BYTES: usize = 1024;
/// Most records of a group that is sorted by comparing whole keys.
const SMALL_GROUP: usize = 8;
/// Bytes of a key that an entry holds as a number.
const PREFIX_BYTES: usize = 8;

/// Sort area of [`BytesKey`] records.
#[derive(Debug)]
pub struct BytesArea {
    batch: Batch,
    /// Full strips, the oldest first.
    full: VecDeque<Strip>,
    filling: Option<Strip>,
    /// Last record, while all records since the start of a batch have come in order.
    in_order: Option<Vec<u8>>,
    pool: StripPool<u8>,
}

/// Mini-runs, one after the other.
#[derive(Debug)]
struct Strip {
    packed: HugeVec<u8>,
    mini_runs: Vec<MiniRun>,
    row_count: usize,
}

/// Sorted records of a batch.
#[derive(Debug)]
pub(super) struct MiniRun {
    /// Byte range in its strip.
    pub(super) place: Range<usize>,
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
}

/// Free bytes for packed records.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// In the strip being filled.
    here: usize,
    /// In the strips after it.
    beyond: usize,
}

impl SortArea for BytesArea {
    const ENTRY_BYTES: usize = size_of::<Entry>();

    fn new(bytes: usize, strips: usize, record: RecordSize) -> Result<BytesArea, IoError> {
        // A mini-run is not longer than a strip, so it lies in at most two of them.
        let batch_bytes = BATCH_BYTES_MAX.min(bytes / BATCH_SHARE.max(strips + 1));
        let batch = Batch::new(batch_bytes, record)?;
        let pool = StripPool::new(bytes.saturating_sub(batch.bytes_max()), strips);
        Ok(BytesArea { batch, full: VecDeque::new(), filling: None, in_order: None, pool })
    }

    fn fill(&mut self, records: &[u8]) -> Result<usize, IoError> {
        let mut taken = 0;
        loop {
            if self.filling.is_none() {
                self.filling = self.pool.take()?.map(Strip::new);
            }
            taken += self.take_in_order(&records[taken..])?;
            if self.in_order.is_some() {
                return Ok(taken);
            }
            let room = self.room();
            if !self.begins_batch(room) {
                return Ok(taken);
            }
            let end = records.len().min(taken + INPUT_BYTES);
            match self.batch.take(&records[taken..end], room) {
                0 if end == taken || self.batch.entries.is_empty() => return Ok(taken),
                0 => self.close()?,
                bytes => taken += bytes,
            }
        }
    }

    /// Sorts the batch and packs it after the mini-runs of the strip.
    fn close(&mut self) -> Result<(), IoError> {
        if self.batch.entries.is_empty() {
            return Ok(());
        }
        let row_count = self.len();
        let shared_known = self.batch.sort();
        let records = &*self.batch.records;
        let mut strip = self.filling.take().expect("records were taken for which strips have room");
        self.pool.supply(&mut strip.packed, records.len());
        let mut first = 0;
        let mut start = strip.packed.len();
        let mut last: &[u8] = &[];
        for (number, entry) in self.batch.entries.iter().enumerate() {
            let key = entry.key(records);
            let shared = if shared_known { entry.prefix as usize } else { packed::shared_bytes(last, key) };
            let record = &records[entry.at as usize..];
            strict_assert!(shared == packed::shared_bytes(last, key), "P1: entry {number} shares {shared}");
            if !strip.append(record, shared) {
                strip.end_mini_run(start, records, &self.batch.entries[first..number]);
                let next = self.pool.take()?.expect("records were taken for which strips have room");
                self.full.push_back(std::mem::replace(&mut strip, Strip::new(next)));
                (first, start) = (number, 0);
                assert!(strip.append(record, 0), "a strip holds a record");
            }
            last = key;
        }
        strip.end_mini_run(start, records, &self.batch.entries[first..]);
        if self.batch.order.ascending {
            self.in_order = strip.mini_runs.last().map(|mini_run| mini_run.last.clone());
        }
        self.filling = Some(strip);
        self.batch.clear();
        assert_eq!(self.len(), row_count, "A4: records of a batch and of the strips it was packed in");
        Ok(())
    }

    fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<u64, S::Error> {
        assert!(self.batch.entries.is_empty(), "A4: a batch is packed before a strip is spilled");
        let Some(mut strip) = self.full.pop_front().or_else(|| self.filling.take()) else { return Ok(0) };
        strip.mini_runs.sort_by(|one, two| BytesKey::compare(&one.first, &two.first));
        let mut rest = strip.mini_runs.as_slice();
        while !rest.is_empty() {
            let (group, after) = rest.split_at(MiniRun::overlapping(rest));
            rest = after;
            if let [alone] = group {
                alone.unpack(&strip.packed, sink)?;
                continue;
            }
            let sources = group.iter().map(|mini_run| &strip.packed[mini_run.place.clone()]).collect();
            let mut merge = MemoryMerge::<BytesKey>::new(sources);
            while let record @ [_, ..] = merge.current() {
                sink.record(record)?;
                merge.advance();
            }
        }
        sink.end_run()?;
        self.pool.give_back(strip.packed);
        Ok(u64::from(strip.row_count > 0))
    }

    fn release_spare(&mut self) -> usize {
        self.pool.release() + self.batch.release()
    }

    fn len(&self) -> usize {
        self.batch.entries.len() + self.strips().map(|strip| strip.row_count).sum::<usize>()
    }

    fn mapped(&self) -> Mapped {
        let strips = self.pool.mapped();
        Mapped { bytes: self.batch.mapped_bytes + strips.bytes, ..strips }
    }

    fn sources(&self) -> Vec<&[u8]> {
        self.strips().flat_map(Strip::sources).collect()
    }
}

impl BytesArea {
    fn strips(&self) -> impl Iterator<Item = &Strip> {
        self.full.iter().chain(&self.filling)
    }

    /// Packs records as they come after the last mini-run, as long as they are in order. Returns
    /// the number of bytes taken.
    fn take_in_order(&mut self, records: &[u8]) -> Result<usize, IoError> {
        let (Some(before), Some(strip)) = (&self.in_order, &mut self.filling) else { return Ok(0) };
        self.pool.supply(&mut strip.packed, records.len());
        let (mut last, mut taken) = (before.as_slice(), 0);
        let mut in_order = true;
        loop {
            let rest = &records[taken..];
            let length = BytesKey::length(rest);
            if length == 0 {
                break;
            }
            prefetch(rest, AHEAD_BYTES);
            let record = &rest[..length];
            let shared = packed::shared_bytes(key_of(last), key_of(record));
            let fits_a_strip = length + GROWTH_MAX <= strip.packed.capacity();
            in_order = fits_a_strip && compare_from(shared, last, record).is_le();
            if !in_order {
                break;
            }
            if !strip.append_in_order(rest, record, shared) {
                strip.end_in_order(last);
                let Some(next) = self.pool.take()? else { break };
                self.full.push_back(std::mem::replace(strip, Strip::new(next)));
                assert!(strip.append_in_order(rest, record, 0), "a strip holds a record");
            }
            last = record;
            taken += length;
        }
        strip.end_in_order(last);
        self.in_order = in_order.then(|| last.to_vec());
        Ok(taken)
    }

    fn room(&self) -> Room {
        Room { here: self.filling.as_ref().map_or(0, |strip| strip.packed.room()), beyond: self.pool.room() }
    }

    /// True if a batch may continue, or there is enough room to begin one. Otherwise mini-runs
    /// would become shorter and shorter at the end of an area.
    fn begins_batch(&self, room: Room) -> bool {
        self.is_empty()
            || !self.batch.entries.is_empty()
            || room.here + room.beyond >= self.batch.bytes_max() / 2
    }
}

impl MiniRun {
    /// Hands the records to the sink without a merge.
    fn unpack<S: RecordSink>(&self, strip: &[u8], sink: &mut S) -> Result<(), S::Error> {
        let mut rebuilt = Rebuilt::default();
        let mut rest = &strip[self.place.clone()];
        while let Some(next) = Packed::take_from(&mut rest) {
            rebuilt.advance(next);
            sink.record(rebuilt.record())?;
        }
        Ok(())
    }

    /// Returns how many of these mini-runs, ordered by their first records, overlap from the front
    /// on: all later records come after theirs.
    pub(super) fn overlapping(mini_runs: &[MiniRun]) -> usize {
        let Some(mut last) = mini_runs.first().map(|first| &first.last) else { return 0 };
        for (number, mini_run) in mini_runs.iter().enumerate().skip(1) {
            if BytesKey::compare(last, &mini_run.first).is_le() {
                return number;
            }
            if BytesKey::compare(last, &mini_run.last).is_lt() {
                last = &mini_run.last;
            }
        }
        mini_runs.len()
    }
}

impl Strip {
    fn new(memory: HugeVec<u8>) -> Strip {
        Strip { packed: memory, mini_runs: Vec::new(), row_count: 0 }
    }

    fn sources(&self) -> impl Iterator<Item = &[u8]> {
        self.mini_runs.iter().map(|mini_run| &self.packed[mini_run.place.clone()])
    }

    /// Notes a mini-run: the records of these entries, packed from `start` on.
    fn end_mini_run(&mut self, start: usize, records: &[u8], entries: &[Entry]) {
        let ends = entries.first().zip(entries.last());
        let ends = ends.map(|(first, last)| (first.record(records).to_vec(), last.record(records).to_vec()));
        let place = start..self.packed.len();
        if let Some((first, last)) = &ends {
            assert_eq!(self.packed[start], 0, "P1: a mini-run begins with a whole key");
            assert!(BytesKey::compare(first, last).is_le(), "A3: a mini-run is in order");
        }
        self.mini_runs.extend(ends.map(|(first, last)| MiniRun { place, first, last }));
        self.row_count += entries.len();
    }

    /// Packs the first record of `bytes` after the last one; `false` if it does not fit.
    #[inline]
    fn append(&mut self, bytes: &[u8], shared: usize) -> bool {
        let rest_bytes = key_of(bytes).len() - shared;
        let tail = &bytes[BYTES_HEADER + shared..];
        let Some(length) = Head::new(shared, rest_bytes, row_of(bytes)).put(tail, self.packed.room_mut())
        else {
            return false;
        };
        self.packed.grow(length);
        true
    }

    /// Packs a record that continues the last mini-run or begins the strip; `false`
    /// if it does not fit.
    #[inline]
    fn append_in_order(&mut self, bytes: &[u8], record: &[u8], shared: usize) -> bool {
        if self.mini_runs.is_empty() {
            let first = record.to_vec();
            self.mini_runs.push(MiniRun { place: 0..0, last: first.clone(), first });
        }
        let shared = if self.packed.is_empty() { 0 } else { shared };
        let fits = self.append(bytes, shared);
        self.row_count += usize::from(fits);
        fits
    }

    /// Notes that the last mini-run now ends with this record.
    fn end_in_order(&mut self, last: &[u8]) {
        let end = self.packed.len();
        if let Some(mini_run) = self.mini_runs.last_mut() {
            assert!(BytesKey::compare(&mini_run.last, last).is_le(), "A3: a mini-run goes on in order");
            mini_run.place.end = end;
            mini_run.last.clear();
            mini_run.last.extend_from_slice(last);
        }
    }
}

/// Records in the order of arrival.
#[derive(Debug)]
struct Batch {
    records: HugeVec<u8>,
    entries: HugeVec<Entry>,
    /// Bytes of the longest record.
    longest: usize,
    order: InputOrder,
    mapped_bytes: usize,
}

/// Sorted in place of a record of the batch.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// While records come in order: bytes that its key shares with the record before. During the
    /// sort: 8 bytes of its key, or its row id once the key is decided.
    prefix: u64,
    /// Byte at which the record starts.
    at: u32,
    key_bytes: u32,
}

impl Batch {
    fn new(bytes: usize, record: RecordSize) -> Result<Batch, IoError> {
        // Leaves room for the records however short they are: one of the longest key of a block
        // must fit the smallest area.
        let count_max = record.fitting(bytes).min(bytes / 2 / size_of::<Entry>()).max(1);
        let entries = HugeVec::with_capacity(count_max)?;
        let records = HugeVec::with_capacity(bytes.saturating_sub(count_max * size_of::<Entry>()))?;
        let mapped_bytes = records.mapped_bytes() + entries.mapped_bytes();
        Ok(Batch { records, entries, longest: 0, order: InputOrder::UNKNOWN, mapped_bytes })
    }

    fn bytes_max(&self) -> usize {
        self.records.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Takes records from the front while there is room for them, here and, packed, in the strips.
    /// Returns the number of bytes.
    fn take(&mut self, input: &[u8], room: Room) -> usize {
        let start = self.records.len();
        let mut taken = 0;
        let mut last = self.entries.last().map(|last| last.record(&self.records));
        loop {
            let rest = &input[taken..];
            let length = BytesKey::length(rest);
            if length == 0 || !self.fits(taken + length, length, room) {
                break;
            }
            prefetch(rest, AHEAD_BYTES);
            let record = &rest[..length];
            let mut shared = 0;
            if let Some(last) = last
                && (self.order.ascending || self.order.descending)
            {
                shared = packed::shared_bytes(key_of(last), key_of(record));
                let order = compare_from(shared, last, record);
                self.order.ascending &= order.is_le();
                // Rows of one key come in table order, whatever the order of keys.
                self.order.descending &= order.is_ge() || key_of(last) == key_of(record);
            }
            let at = (start + taken) as u32;
            self.entries.push(Entry { prefix: shared as u64, at, key_bytes: (length - BYTES_HEADER) as u32 });
            self.longest = self.longest.max(length);
            last = Some(record);
            taken += length;
        }
        self.records.extend_from_slice(&input[..taken]);
        taken
    }

    /// True if another record of this length fits, after `more` bytes of records not yet in the
    /// batch, even if keys share nothing. If a mini-run continues in another strip, less than
    /// the longest record is lost.
    #[inline]
    fn fits(&self, more: usize, length: usize, room: Room) -> bool {
        let count = self.entries.len() + 1;
        let bytes = self.records.len() + more;
        let lost = if room.beyond > 0 { self.longest.max(length) } else { 0 };
        more <= self.records.room()
            && count <= self.entries.capacity()
            && bytes + count * GROWTH_MAX + lost <= room.here + room.beyond
    }

    /// Sorts the entries. Returns true if each then has the number of bytes that its key
    /// shares with the one before.
    fn sort(&mut self) -> bool {
        match self.order {
            InputOrder { ascending: true, .. } => true,
            InputOrder { descending: true, .. } => {
                reverse(&self.records, &mut self.entries);
                true
            }
            _ => {
                sort_entries(&self.records, &mut self.entries, 0);
                strict_assert!(self.is_sorted(), "A3: a batch is in order");
                false
            }
        }
    }

    fn is_sorted(&self) -> bool {
        let record = |entry: &Entry| entry.record(&self.records);
        self.entries.is_sorted_by(|one, two| BytesKey::compare(record(one), record(two)).is_le())
    }

    fn clear(&mut self) {
        self.records.clear();
        self.entries.clear();
        self.longest = 0;
        self.order = InputOrder::UNKNOWN;
    }

    /// Returns the memory to the system if there are no records in it; returns its size.
    fn release(&mut self) -> usize {
        if !self.entries.is_empty() {
            return 0;
        }
        let bytes = self.bytes_max();
        (self.records, self.entries) = (HugeVec::empty(), HugeVec::empty());
        bytes
    }
}

/// Compares two records whose keys have exactly their first `shared` bytes in common.
#[inline]
fn compare_from(shared: usize, one: &[u8], two: &[u8]) -> Ordering {
    let next = |record| key_of(record).get(shared).copied();
    next(one).cmp(&next(two)).then_with(|| row_of(one).cmp(&row_of(two)))
}

impl Entry {
    #[inline]
    fn record<'s>(&self, records: &'s [u8]) -> &'s [u8] {
        &records[self.at as usize..][..BYTES_HEADER + self.key_bytes as usize]
    }

    #[inline]
    fn key<'s>(&self, records: &'s [u8]) -> &'s [u8] {
        &self.record(records)[BYTES_HEADER..]
    }

    /// Returns 8 bytes of its key from `skip` on, followed by zeros, as a number. The bytes after
    /// the key in the batch are read with it and masked.
    #[inline]
    fn prefix_at(&self, records: &[u8], skip: usize) -> u64 {
        let left = (self.key_bytes as usize).saturating_sub(skip);
        if left == 0 {
            return 0;
        }
        let at = self.at as usize + BYTES_HEADER + skip;
        match records[at..].first_chunk::<PREFIX_BYTES>() {
            Some(word) if left >= PREFIX_BYTES => u64::from_be_bytes(*word),
            Some(word) => u64::from_be_bytes(*word) & !(u64::MAX >> (8 * left)),
            None => (0..left.min(PREFIX_BYTES))
                .fold(0, |prefix, byte| prefix | u64::from(records[at + byte]) << (56 - 8 * byte)),
        }
    }
}

/// Reverses a batch, but not rows of one key, which come in order. Afterwards an entry again has
/// the bytes that its key shares with the one before.
fn reverse(records: &[u8], entries: &mut [Entry]) {
    entries.reverse();
    let (mut first, mut before) = (0, 0);
    for at in 0..entries.len() {
        let entry = &mut entries[at];
        std::mem::swap(&mut entry.prefix, &mut before);
        let key_bytes = entry.key_bytes;
        let same_key =
            entry.prefix == u64::from(key_bytes) && at > first && entries[at - 1].key_bytes == key_bytes;
        if !same_key {
            sort_rows(records, &mut entries[first..at]);
            first = at;
        }
    }
    sort_rows(records, &mut entries[first..]);
}

/// Sorts entries of one key by their rows.
#[inline]
fn sort_rows(records: &[u8], entries: &mut [Entry]) {
    if let [first, _, ..] = entries {
        let (shared, same) = (first.prefix, u64::from(first.key_bytes));
        entries.sort_unstable_by_key(|entry| row_of(entry.record(records)));
        entries.iter_mut().for_each(|entry| entry.prefix = same);
        entries[0].prefix = shared;
    }
}

/// Sorts entries whose keys have their first `skip` bytes in common,
/// with zeros after shorter ones.
fn sort_entries(records: &[u8], entries: &mut [Entry], mut skip: usize) {
    if entries.len() <= SMALL_GROUP {
        let tail = |entry: &Entry| entry.key(records).get(skip..).unwrap_or(&[]);
        // Keys that end before `skip` may differ in the number of zeros at their ends.
        let rank = |entry: &Entry| (entry.key_bytes, row_of(entry.record(records)));
        return entries
            .sort_unstable_by(|one, two| tail(one).cmp(tail(two)).then_with(|| rank(one).cmp(&rank(two))));
    }
    loop {
        let first = entries[0].prefix_at(records, skip);
        let (mut differing, mut longest) = (0, 0);
        for entry in entries.iter_mut() {
            entry.prefix = entry.prefix_at(records, skip);
            differing |= entry.prefix ^ first;
            longest = longest.max(entry.key_bytes as usize);
        }
        let shared = differing.leading_zeros() as usize / 8;
        if shared == PREFIX_BYTES && longest <= skip + PREFIX_BYTES {
            // Keys differ only in zeros at their ends; the shorter one comes first.
            entries.iter_mut().for_each(|entry| entry.prefix = row_of(entry.record(records)).0);
            return entries.sort_unstable_by_key(|entry| (entry.key_bytes, entry.prefix));
        }
        if shared < PREFIX_BYTES / 2 {
            break;
        }
        skip += shared;
    }
    entries.sort_unstable_by_key(|entry| entry.prefix);
    for group in entries.chunk_by_mut(|one, two| one.prefix == two.prefix) {
        if group.len() > 1 {
            sort_entries(records, group, skip + PREFIX_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &[u8]) -> Vec<u8> {
        [&(key.len() as u16).to_le_bytes()[..], &[0; 8], key].concat()
    }

    fn area_with(keys: &[&[u8]]) -> BytesArea {
        let size = RecordSize { bytes: 20, entry_bytes: BytesArea::ENTRY_BYTES };
        let mut area = BytesArea::new(64 * 1024, 2, size).expect("memory");
        for key in keys {
            area.fill(&record(key)).expect("memory");
        }
        area
    }

    #[test]
    #[should_panic(expected = "P1: a mini-run begins with a whole key")]
    fn a_mini_run_shares_nothing_with_the_bytes_before() {
        let mut area = area_with(&[b"abc", b"abd"]);
        let strip = area.filling.as_mut().expect("a strip");
        strip.append(&record(b"abc"), 2);
        strip.end_mini_run(0, &area.batch.records, &area.batch.entries);
    }

    #[test]
    #[should_panic(expected = "A3: a mini-run is in order")]
    fn a_mini_run_out_of_order_is_noticed() {
        let mut area = area_with(&[b"b", b"a"]);
        let strip = area.filling.as_mut().expect("a strip");
        strip.append(&record(b"b"), 0);
        strip.end_mini_run(0, &area.batch.records, &area.batch.entries);
    }

    #[test]
    #[should_panic(expected = "A4: a batch is packed before a strip is spilled")]
    fn a_spill_does_not_pass_over_a_batch() {
        struct Nowhere;
        impl RecordSink for Nowhere {
            type Error = std::convert::Infallible;
            fn record(&mut self, _: &[u8]) -> Result<(), Self::Error> {
                Ok(())
            }
            fn end_run(&mut self) -> Result<(), Self::Error> {
                Ok(())
            }
        }
        let _ = area_with(&[b"b", b"a"]).spill(&mut Nowhere);
    }
}
