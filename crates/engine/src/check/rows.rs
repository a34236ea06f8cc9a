//! The pass over the table: rows that can be read, and where they are.

use super::damage::{Damage, Place};
use super::hash::{Sums, entry_hash};
use super::segment::{Inspector, Segment, block_numbers, check_extents};
use crate::sort::key::KeyBuilder;
use crate::storage::block::{Content, Expected};
use crate::storage::control::{SegmentExtent, Table};
use crate::storage::tablespace::Purpose;
use crate::table::chain::{Chain, before_rows, chained_length};
use crate::table::heap;
use crate::{EngineError, Instance};
use plumb_events::{IoStream, Session, now};
use plumb_types::columns;
use plumb_units::{BlockAddress, BlockNumber, FileId, Nanos, RowCount, RowId};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// What the pass found.
pub(super) struct RowFacts {
    pub(super) map: RowMap,
    /// The tablespace of the table, and what a block of it must be.
    pub(super) tablespace: Purpose,
    pub(super) expected: Expected,
    /// For each index, of its keys.
    pub(super) sums: Vec<Sums>,
    pub(super) elapsed: Nanos,
}

/// Reads every row of the table.
pub(super) fn read(
    instance: &Instance,
    coordinator: &Session,
    table: &Table,
    keys: &[KeyBuilder],
    damage: &Damage,
) -> Result<RowFacts, EngineError> {
    let begin = now();
    check_extents(&format!("table {}", table.name), &table.extents)?;
    let (numbers, block_count) = block_numbers(&table.extents);
    let counts: Vec<AtomicU16> = (0..block_count).map(|_| AtomicU16::new(0)).collect();
    let segment = Segment {
        purpose: table.tablespace,
        expected: table.expected(),
        stream: IoStream::TableReads,
        extents: &table.extents,
    };
    let inspectors = segment.inspect(instance, coordinator, damage, || RowInspector {
        column_count: table.schema.column_count(),
        keys,
        numbers: &numbers,
        counts: &counts,
        sums: vec![Sums::new(); keys.len()],
        key: Vec::new(),
        chain: Chain::default(),
        head: 0,
    })?;
    if damage.is_none() {
        inspectors.iter().try_for_each(|inspector| inspector.chain.end())?;
    }
    let mut sums = vec![Sums::new(); keys.len()];
    for inspector in &inspectors {
        sums.iter_mut().zip(&inspector.sums).for_each(|(total, part)| total.merge(part));
    }
    let extent_blocks = instance.tablespace(table.tablespace).extent_blocks.0;
    let map = RowMap::new(&table.extents, extent_blocks, numbers, &counts);
    if damage.is_none() && map.row_count() != table.row_count {
        return Err(EngineError::Verification {
            what: format!("table {}: rows", table.name),
            found: RowCount(map.row_count()).to_string(),
            expected: format!("{}, as the catalog says", RowCount(table.row_count)),
        });
    }
    Ok(RowFacts {
        map,
        tablespace: table.tablespace,
        expected: table.expected(),
        sums,
        elapsed: now().saturating_sub(begin),
    })
}

struct RowInspector<'a> {
    column_count: usize,
    keys: &'a [KeyBuilder],
    numbers: &'a [u64],
    counts: &'a [AtomicU16],
    sums: Vec<Sums>,
    key: Vec<u8>,
    /// A row in several blocks, and the number of the block where it begins.
    chain: Chain,
    head: u64,
}

impl Inspector for RowInspector<'_> {
    fn block(
        &mut self,
        place: Place,
        (address, content): (BlockAddress, Content),
        block: &[u8],
    ) -> Result<(), EngineError> {
        let number = self.numbers[place.extent] + u64::from(place.index);
        // Rows lie one behind the other, so a row ends where the next one starts.
        let before = before_rows(block, content).len();
        let mut left = usize::from(content.used) - before;
        let Self { chain, column_count, keys, sums, key, head, .. } = self;
        let mut pass = Pass { column_count: *column_count, keys, sums: sums.as_mut_slice(), key };
        if let Some((row_id, row)) = chain.go_on(address, content, block)? {
            pass.row(row, row_id, *head).map_err(|why| EngineError::bad_row(row_id, why))?;
        }
        for slot in 0..content.entries {
            let row_id = RowId::new(address, slot);
            let bad = |why: String| EngineError::bad_row(row_id, why);
            let to_the_end = heap::row_at(block, content, slot);
            let to_the_end = to_the_end.ok_or_else(|| bad("its slot points outside the rows".to_string()))?;
            if to_the_end.len() != left {
                let found = to_the_end.len();
                return Err(bad(format!(
                    "it starts {found} bytes before the end of the rows, expected {left}"
                )));
            }
            left = match slot + 1 < content.entries {
                true => heap::row_at(block, content, slot + 1).map_or(0, <[u8]>::len),
                false => 0,
            };
            let row = to_the_end.get(..to_the_end.len() - left.min(to_the_end.len())).unwrap_or(&[]);
            match chained_length(row) {
                None => pass.row(row, row_id, number).map_err(bad)?,
                Some(length) if slot + 1 == content.entries && length > row.len() => {
                    chain.begin(row, row_id, length);
                    *head = number;
                }
                Some(length) => {
                    return Err(bad(format!(
                        "it is the head of {length} bytes, and its block goes on behind it"
                    )));
                }
            }
        }
        self.counts[number as usize].store(content.entries, Relaxed);
        Ok(())
    }
}

/// What is done with each row.
struct Pass<'a> {
    column_count: usize,
    keys: &'a [KeyBuilder],
    sums: &'a mut [Sums],
    key: &'a mut Vec<u8>,
}

impl Pass<'_> {
    #[inline]
    fn row(&mut self, row: &[u8], row_id: RowId, block: u64) -> Result<(), String> {
        let found = columns(row).finish().map_err(|error| error.to_string())?;
        if found != self.column_count {
            return Err(format!("it has {found} columns, expected {}", self.column_count));
        }
        for (key, sums) in self.keys.iter().zip(self.sums.iter_mut()) {
            key.build(row, self.key).map_err(|error| error.to_string())?;
            sums.add(block, entry_hash(self.key, row_id));
        }
        Ok(())
    }
}

/// A table's rows, numbered through in the order of the segment.
#[derive(Debug)]
pub(super) struct RowMap {
    extents: Vec<SegmentExtent>,
    /// Each extent's first block, as a number in the segment.
    numbers: Vec<u64>,
    /// Each block's first row, and behind the last one the row count.
    starts: Vec<u64>,
    /// The extent that lies at a place of a file: by file, then by block number
    /// in units of the extent size.
    places: Vec<(FileId, Vec<u32>)>,
    extent_blocks: u32,
}

const NO_EXTENT: u32 = u32::MAX;

impl RowMap {
    fn new(extents: &[SegmentExtent], extent_blocks: u32, numbers: Vec<u64>, counts: &[AtomicU16]) -> RowMap {
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut row_count = 0;
        starts.push(0);
        for count in counts {
            row_count += u64::from(count.load(Relaxed));
            starts.push(row_count);
        }
        let mut places: Vec<(FileId, Vec<u32>)> = Vec::new();
        for (number, SegmentExtent { extent, .. }) in (0u32..).zip(extents) {
            let file = FileId(extent.file);
            let known = places.iter().position(|(known, _)| *known == file).unwrap_or_else(|| {
                places.push((file, Vec::new()));
                places.len() - 1
            });
            let place = (extent.block / extent_blocks) as usize;
            let of_file = &mut places[known].1;
            of_file.resize(of_file.len().max(place + 1), NO_EXTENT);
            of_file[place] = number;
        }
        RowMap { extents: extents.to_vec(), numbers, starts, places, extent_blocks }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    pub(super) fn block_count(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// The number of a row's block and its own; `None` when there is no such row.
    #[inline]
    pub(super) fn ordinal(&self, row: RowId) -> Option<(u64, u64)> {
        let address = row.address();
        let (_, of_file) = self.places.iter().find(|(file, _)| *file == address.file)?;
        let extent = *of_file.get((address.block.0 / self.extent_blocks) as usize)?;
        let SegmentExtent { extent: place, used } = self.extents.get(extent as usize)?;
        let index = address.block.0.checked_sub(place.block)?;
        if index >= *used {
            return None;
        }
        let block = self.numbers[extent as usize] + u64::from(index);
        let ordinal = self.starts[block as usize] + u64::from(row.slot());
        (ordinal < self.starts[block as usize + 1]).then_some((block, ordinal))
    }

    /// The row of a number.
    pub(super) fn row_id(&self, ordinal: u64) -> Option<RowId> {
        let block = self.starts.partition_point(|start| *start <= ordinal).checked_sub(1)? as u64;
        if block >= self.block_count() {
            return None;
        }
        let extent = self.numbers.partition_point(|number| *number <= block).checked_sub(1)?;
        let place = self.extents[extent].extent;
        let block_number = BlockNumber(place.block + (block - self.numbers[extent]) as u32);
        let address = BlockAddress { file: FileId(place.file), block: block_number };
        Some(RowId::new(address, (ordinal - self.starts[block as usize]) as u16))
    }
}

/// A bit for each row. Each server sets bits of its own: in one bitmap for all of them,
/// lines of the cache would go from one processor to the other with nearly every bit.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    /// A bit that was set again.
    twice: Option<u64>,
}

impl Bitmap {
    pub(super) fn new(bits: u64) -> Bitmap {
        Bitmap { words: vec![0; bits.div_ceil(64) as usize], twice: None }
    }

    /// Sets a bit.
    #[inline]
    pub(super) fn set(&mut self, bit: u64) {
        let (word, mask) = (&mut self.words[(bit / 64) as usize], 1 << (bit % 64));
        if *word & mask != 0 {
            self.twice = Some(bit);
        }
        *word |= mask;
    }

    /// Sets the bits of a bitmap of the same length.
    pub(super) fn merge(&mut self, other: &Bitmap) {
        assert_eq!(self.words.len(), other.words.len());
        self.twice = self.twice.or(other.twice);
        for (number, (mine, theirs)) in (0..).zip(self.words.iter_mut().zip(&other.words)) {
            if *mine & theirs != 0 {
                self.twice = Some(64 * number + u64::from((*mine & theirs).trailing_zeros()));
            }
            *mine |= theirs;
        }
    }

    /// A bit that was set more than once, if there is one.
    pub(super) fn twice(&self) -> Option<u64> {
        self.twice
    }

    /// The first of `bits` bits that is not set.
    pub(super) fn first_clear(&self, bits: u64) -> Option<u64> {
        let word = self.words.iter().position(|word| *word != u64::MAX)?;
        let bit = word as u64 * 64 + u64::from(self.words[word].trailing_ones());
        (bit < bits).then_some(bit)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_that_is_set_again_is_known_by_any_two_servers() {
        let bitmap = |bits: &[u64]| {
            let mut bitmap = Bitmap::new(200);
            bits.iter().for_each(|bit| bitmap.set(*bit));
            bitmap
        };
        for (one, two, twice) in [
            (vec![0, 63, 199], vec![1, 64], None),
            (vec![0, 64, 64], vec![1], Some(64)),
            (vec![0, 64], vec![1, 128, 128], Some(128)),
            (vec![0, 64, 130], vec![1, 130], Some(130)),
        ] {
            let mut both = bitmap(&one);
            both.merge(&bitmap(&two));
            assert_eq!(both.twice(), twice);
        }
        let mut all = bitmap(&(0..70).collect::<Vec<u64>>());
        assert_eq!(all.first_clear(200), Some(70));
        all.merge(&bitmap(&(70..200).collect::<Vec<u64>>()));
        assert_eq!(all.first_clear(200), None);
    }
}
