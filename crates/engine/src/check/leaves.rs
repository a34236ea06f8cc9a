//! The pass over an index's leaves: entries in order, one for each row.

use super::damage::{Damage, Place};
use super::hash::{Sums, entry_hash};
use super::rows::{Bitmap, RowMap};
use super::segment::{Inspector, Segment, block_numbers, check_extents};
use super::{entry_text, key_text};
use crate::index::block::{Entry, LeafView};
use crate::storage::block::{BlockKind, Content};
use crate::storage::control::{Index, SegmentExtent};
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::{EngineError, Instance};
use plumb_events::{IoStream, Session, now};
use plumb_units::{BlockAddress, Nanos, RowId};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the pass found.
pub(super) struct LeafFacts {
    pub(super) entry_count: u64,
    pub(super) leaf_count: u64,
    pub(super) seen: Bitmap,
    pub(super) sums: Sums,
    /// Of each leaf, the hash of its first entry.
    pub(super) firsts: Vec<AtomicU64>,
    pub(super) elapsed: Nanos,
}

/// The leaves of an index as a segment.
pub(super) fn segment(index: &Index) -> Segment<'_> {
    Segment {
        purpose: Purpose::Indx,
        expected: index.expected(BlockKind::Leaf),
        stream: IoStream::IndexReads,
        extents: &index.leaves,
    }
}

/// Reads every leaf of the index.
pub(super) fn read(
    instance: &Instance,
    coordinator: &Session,
    index: &Index,
    map: Option<&RowMap>,
    damage: &Damage,
) -> Result<LeafFacts, EngineError> {
    let begin = now();
    check_extents(&format!("index {}", index.name), &index.leaves)?;
    let (numbers, leaf_count) = block_numbers(&index.leaves);
    let firsts: Vec<AtomicU64> = (0..leaf_count).map(|_| AtomicU64::new(0)).collect();
    let row_count = map.map_or(0, RowMap::row_count);
    let tablespace = instance.tablespace(Purpose::Indx);
    let inspectors = segment(index).inspect(instance, coordinator, damage, || LeafInspector {
        index,
        tablespace,
        map,
        numbers: &numbers,
        firsts: &firsts,
        entry_count: 0,
        seen: Bitmap::new(row_count),
        sums: Sums::new(),
        rows: Vec::new(),
        last: Owned::default(),
        joints: Vec::new(),
    })?;
    let (mut seen, mut sums) = (Bitmap::new(row_count), Sums::new());
    for inspector in &inspectors {
        seen.merge(&inspector.seen);
        sums.merge(&inspector.sums);
    }
    let entry_count = inspectors.iter().map(|inspector| inspector.entry_count).sum();
    let joints = inspectors.into_iter().flat_map(|inspector| inspector.joints).collect();
    if damage.is_none() {
        check_joints(index, joints)?;
    }
    Ok(LeafFacts { entry_count, leaf_count, seen, sums, firsts, elapsed: now().saturating_sub(begin) })
}

/// An entry that outlives its block.
#[derive(Debug, Default, Clone)]
struct Owned {
    key: Vec<u8>,
    row: RowId,
}

impl Owned {
    fn set(&mut self, entry: Entry<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.row = entry.row;
    }

    fn entry(&self) -> Entry<'_> {
        Entry { key: &self.key, row: self.row }
    }
}

/// The first and the last entry of an extent.
struct Joint {
    extent: usize,
    leaf: BlockAddress,
    first: Owned,
    last: Owned,
}

fn check_joints(index: &Index, mut joints: Vec<Joint>) -> Result<(), EngineError> {
    joints.sort_by_key(|joint| joint.extent);
    for pair in joints.windows(2) {
        let (before, after) = (pair[0].last.entry(), pair[1].first.entry());
        if before.order(after.key, after.row) != Ordering::Less {
            return Err(out_of_order(index, pair[1].leaf, 0, after, before));
        }
    }
    Ok(())
}

struct LeafInspector<'a> {
    // What it looks at.
    index: &'a Index,
    tablespace: &'a Tablespace,
    /// `None` when the table cannot be compared with.
    map: Option<&'a RowMap>,
    numbers: &'a [u64],
    // What all servers fill.
    firsts: &'a [AtomicU64],
    // What it found itself.
    entry_count: u64,
    seen: Bitmap,
    sums: Sums,
    /// The row ids of a leaf, each with the hash of its entry.
    rows: Vec<(RowId, u64)>,
    /// The last entry of the leaf before, within an extent.
    last: Owned,
    joints: Vec<Joint>,
}

impl Inspector for LeafInspector<'_> {
    fn block(
        &mut self,
        place: Place,
        (address, content): (BlockAddress, Content),
        block: &[u8],
    ) -> Result<(), EngineError> {
        let corrupt =
            |error: crate::index::block::LayoutError| error.at(self.tablespace.path(address), address);
        let view = LeafView::new(block, content).map_err(corrupt)?;
        check_next(self.index, (place, address), view.next())?;
        let before = (place.index > 0).then(|| self.last.entry());
        let (mut first, mut last) = (None, None);
        self.rows.clear();
        for (number, entry) in view.entries().enumerate() {
            let entry = entry.map_err(corrupt)?;
            if let Some(previous) = last.or(before)
                && previous.order(entry.key, entry.row) != Ordering::Less
            {
                return Err(out_of_order(self.index, address, number, entry, previous));
            }
            if entry.key.last() == Some(&0) {
                return Err(not_trimmed(self.index, address, number, entry));
            }
            self.rows.push((entry.row, entry_hash(entry.key, entry.row)));
            first.get_or_insert(entry);
            last = Some(entry);
        }
        let (Some(first), Some(last)) = (first, last) else {
            return Err(wrong(self.index, address, "entries", "0".to_string(), "at least 1".to_string()));
        };
        if let Err(number) = self.tick_off() {
            let entry = view.entry(number).map_err(corrupt)?;
            return Err(no_such_row(self.index, address, number, entry));
        }
        self.entry_count += view.entry_count() as u64;
        let leaf = self.numbers[place.extent] + u64::from(place.index);
        self.firsts[leaf as usize].store(self.rows[0].1, Relaxed);
        if place.index == 0 {
            let mut joint = Joint {
                extent: place.extent,
                leaf: address,
                first: Owned::default(),
                last: Owned::default(),
            };
            joint.first.set(first);
            self.joints.push(joint);
        }
        self.last.set(last);
        if place.index + 1 == self.index.leaves[place.extent].used
            && let Some(joint) = self.joints.last_mut()
        {
            joint.last = self.last.clone();
        }
        Ok(())
    }
}

impl LeafInspector<'_> {
    /// Ticks off the rows of a leaf; fails with the number of the first that is none of the
    /// table's.
    ///
    /// In a loop of its own: rows lie anywhere in the table, so map and bitmap miss the cache, and
    /// here the misses of many entries overlap.
    fn tick_off(&mut self) -> Result<(), usize> {
        let Some(map) = self.map else { return Ok(()) };
        for (number, (row, hash)) in self.rows.iter().enumerate() {
            let (block, ordinal) = map.ordinal(*row).ok_or(number)?;
            self.seen.set(ordinal);
            self.sums.add(block, *hash);
        }
        Ok(())
    }
}

/// A leaf's next one is the block after it, or the first of the next extent.
fn check_next(
    index: &Index,
    (place, address): (Place, BlockAddress),
    found: Option<BlockAddress>,
) -> Result<(), EngineError> {
    let here = &index.leaves[place.extent];
    let expected = if place.index + 1 < here.used {
        Some(here.extent.address(place.index + 1))
    } else {
        index.leaves.get(place.extent + 1).map(|next: &SegmentExtent| next.extent.address(0))
    };
    if found == expected {
        return Ok(());
    }
    let text =
        |address: Option<BlockAddress>| address.map_or("none".to_string(), |address| address.to_string());
    Err(wrong(index, address, "next leaf", text(found), text(expected)))
}

#[cold]
fn wrong(index: &Index, leaf: BlockAddress, what: &str, found: String, expected: String) -> EngineError {
    EngineError::Verification { what: format!("index {}, leaf {leaf}: {what}", index.name), found, expected }
}

#[cold]
fn out_of_order(
    index: &Index,
    leaf: BlockAddress,
    number: usize,
    entry: Entry<'_>,
    before: Entry<'_>,
) -> EngineError {
    let expected = format!("more than the entry before it, {}", entry_text(before));
    wrong(index, leaf, &format!("keys in order, entry {number}"), entry_text(entry), expected)
}

#[cold]
fn not_trimmed(index: &Index, leaf: BlockAddress, number: usize, entry: Entry<'_>) -> EngineError {
    let expected = "a key that does not end in 00".to_string();
    wrong(index, leaf, &format!("entry {number}"), key_text(entry.key), expected)
}

#[cold]
fn no_such_row(index: &Index, leaf: BlockAddress, number: usize, entry: Entry<'_>) -> EngineError {
    let expected = format!("a row of table {}", index.table);
    wrong(index, leaf, &format!("row id of entry {number}"), entry_text(entry), expected)
}
