//! Bounds of the fields of the control file.
//!
//! The checksum of `control.json` proves that the file is as it was written, but not that this
//! program wrote it. Opening a database computes with its numbers: it opens files, makes tables as
//! long as a file has extents, multiplies sizes, and descends as many levels as an index has. So
//! all of them are checked once, where the file is read ([`Catalog::validate`]).
//!
//! Not checked here: paths, which [`Catalog`] checks itself; the length and header of other files,
//! which are compared when these are opened; and the number of rows or entries, which `check`
//! counts. These numbers are bounded by the number of blocks.

use super::block::LSN_MOST;
use super::control::{
    Catalog, ColumnStatistics, Index, IndexColumn, LiveIndex, LiveTable, SegmentExtent, Table,
    TablespaceEntry, stored_name,
};
use super::tablespace::Purpose;
use plumb_types::Schema;
use plumb_types::row::VALUE_BYTES_MAX;
use plumb_units::{BlockSize, range_text};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Blocks of an extent. At least two, because a row in pieces lies in one extent, after
/// the block of its head.
const EXTENT_BLOCKS: RangeInclusive<u32> = 2..=1 << 20;
/// Numbers of data files, which have ten bits of a row id.
const FILE_IDS: RangeInclusive<u16> = 1..=1023;
/// Integers that fit a machine word as digits: eight pairs of seven bits.
const INTEGERS: RangeInclusive<i64> = -(1 << 56)..=1 << 56;
/// Most levels of an index; its builder stops there.
const HEIGHT_MOST: u64 = 33;

/// Rejects a field that is out of its range.
fn within<T: Copy + PartialOrd + Display + TryInto<i128>>(
    field: impl Display,
    found: T,
    range: RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(&found) {
        return Ok(());
    }
    let [least, most] = [*range.start(), *range.end()].map(|end| end.try_into().unwrap_or(i128::MAX));
    Err(format!("{field}: found {found}, expected {}", range_text(least, most)))
}

impl Catalog {
    /// Rejects a control file with a field that no database can have.
    ///
    /// # Errors
    /// The first such field: its owner, the value found, the value expected.
    pub(super) fn validate(&self) -> Result<(), String> {
        within("lsn_ceiling", self.lsn_ceiling, 1..=LSN_MOST)?;
        within("log_reaches", self.log_reaches, 0..=LSN_MOST)?;
        within("definitions", self.definitions, 0..=LSN_MOST)?;
        let spaces = Spaces::of(&self.tablespaces)?;
        self.distinct_names()?;
        let mut taken = HashSet::new();
        for table in &self.tables {
            let of_table = format!("table {}", shown(&table.name));
            spaces.table(table, &mut taken).map_err(|why| format!("{of_table}: {why}"))?;
        }
        for index in &self.indexes {
            let of_index = format!("index {}", shown(&index.name));
            let table = self.tables.iter().find(|table| table.name == index.table);
            let checked = key(&index.columns, table.map(|table| &table.schema), &index.table)
                .and_then(|()| spaces.index(index, &mut taken));
            checked.map_err(|why| format!("{of_index}: {why}"))?;
        }
        let mut created = HashSet::new();
        for table in &self.live_tables {
            let checked = spaces.live_table(table, (&mut taken, &mut created));
            checked.map_err(|why| format!("table {}: {why}", shown(&table.name)))?;
        }
        for index in &self.live_indexes {
            let table = self.live_tables.iter().find(|table| table.name == index.table);
            let checked = key(&index.columns, table.map(|table| &table.schema), &index.table)
                .and_then(|()| spaces.live_index(index, (&mut taken, &mut created)));
            checked.map_err(|why| format!("index {}: {why}", shown(&index.name)))?;
        }
        Ok(())
    }

    /// Rejects names that are not in stored form, and equal names. Names may be
    /// longer than the present limit.
    fn distinct_names(&self) -> Result<(), String> {
        let mut known = HashSet::new();
        for name in self.segments() {
            if name.is_empty() || stored_name(name) != *name {
                return Err(format!(
                    "name of a table or an index: found {:?}, expected capital letters",
                    shown(name)
                ));
            }
            if !known.insert(name) {
                return Err(format!(
                    "name of a table or an index: found {} twice, expected it once",
                    shown(name)
                ));
            }
        }
        Ok(())
    }
}

/// Returns the first 64 bytes of a name, for a message.
fn shown(name: &str) -> String {
    plumb_units::cut(name, 64).into_owned()
}

/// Rejects index columns that are not columns of its table.
fn key(columns: &[IndexColumn], schema: Option<&Schema>, table: &str) -> Result<(), String> {
    let Some(schema) = schema else {
        return Err(format!("its table: found {}, expected one of the control file", shown(table)));
    };
    // A column may be named twice, which changes nothing.
    within("columns", columns.len(), 1..=usize::from(u16::MAX))?;
    columns
        .iter()
        .try_for_each(|column| within("column position", column.position, 0..=schema.column_count() - 1))
}

/// File number and first block of an extent.
type Place = (u16, u32);

/// The control file's tablespaces, by purpose.
struct Spaces<'c>(BTreeMap<Purpose, &'c TablespaceEntry>);

impl<'c> Spaces<'c> {
    fn of(entries: &'c [TablespaceEntry]) -> Result<Spaces<'c>, String> {
        let mut spaces = BTreeMap::new();
        let (mut ids, mut paths) = (HashSet::new(), HashSet::new());
        for entry in entries {
            let name = entry.purpose.name();
            let wrong = |why: String| format!("tablespace {name}: {why}");
            if spaces.insert(entry.purpose, entry).is_some() {
                return Err(wrong("found twice, expected once".to_string()));
            }
            let block_size = BlockSize::new(entry.block_size)
                .filter(|size| entry.purpose.own_size().is_none_or(|own| own == *size));
            let Some(block_size) = block_size else {
                let (found, own) = (entry.block_size, entry.purpose.own_size());
                let expected = own.map_or("2K, 4K, 8K, 16K or 32K".to_string(), |own| own.to_string());
                return Err(wrong(format!("block_size: found {found}, expected {expected}")));
            };
            within("extent_blocks", entry.extent_blocks, EXTENT_BLOCKS).map_err(wrong)?;
            within("files", entry.files.len(), 1..=usize::from(*FILE_IDS.end())).map_err(wrong)?;
            for file in &entry.files {
                let in_file = |why: String| wrong(format!("file {}: {why}", file.id));
                within("its number", file.id, FILE_IDS).map_err(in_file)?;
                if !ids.insert(file.id) || !paths.insert(&file.path) {
                    return Err(in_file("its number or its path: found twice, expected once".to_string()));
                }
                let most = u64::from(u32::MAX) * block_size.bytes() as u64;
                within("bytes", file.bytes, block_size.bytes() as u64..=most).map_err(in_file)?;
            }
        }
        if let Some(missing) = Purpose::FIRST.into_iter().find(|purpose| !spaces.contains_key(purpose)) {
            return Err(format!("tablespace {} is missing", missing.name()));
        }
        // The first three have the database's block size and share a cache; all
        // others must differ from it.
        let own = spaces[&Purpose::Users].block_size;
        for (purpose, entry) in &spaces {
            if (entry.block_size == own) != Purpose::FIRST.contains(purpose) {
                let (name, found) = (purpose.name(), entry.block_size);
                let expected = if Purpose::FIRST.contains(purpose) {
                    "as USERS has"
                } else {
                    "another one than USERS has"
                };
                return Err(format!("tablespace {name}: block_size: found {found}, expected {expected}"));
            }
        }
        Ok(Spaces(spaces))
    }

    /// Checks that the extents exist in the tablespace, are aligned, and have no other owner.
    /// Returns their number of blocks in use.
    fn extents(
        &self,
        purpose: Purpose,
        extents: &[SegmentExtent],
        taken: &mut HashSet<Place>,
    ) -> Result<u64, String> {
        let Some(entry) = self.0.get(&purpose) else {
            return Err(format!(
                "its tablespace: found {}, expected one of the control file",
                purpose.name()
            ));
        };
        let (mut used, mut blocks) = (0, 0);
        for piece in extents {
            let extent = piece.extent;
            let at = format!("the extent at file {} block {}", extent.file, extent.block);
            if !entry.files.iter().any(|file| file.id == extent.file) {
                return Err(format!(
                    "{at}: its file: found {}, expected one of tablespace {}",
                    extent.file,
                    purpose.name()
                ));
            }
            // Block 0 of a file is its header, so its first extent is one block shorter.
            let begin = extent.block / entry.extent_blocks * entry.extent_blocks;
            let end = u64::from(begin) + u64::from(entry.extent_blocks);
            let expected = (begin.max(1), end - u64::from(begin.max(1)));
            if (extent.block, u64::from(extent.blocks)) != expected || end > u64::from(u32::MAX) {
                let found = format!("{} blocks", extent.blocks);
                let (first, blocks) = expected;
                return Err(format!("{at}: found {found}, expected {blocks} from block {first} on"));
            }
            within(format!("{at}: blocks in use"), piece.used, 1..=extent.blocks)?;
            if !taken.insert((extent.file, extent.block)) {
                return Err(format!("{at}: found in two places, expected in one"));
            }
            used += u64::from(piece.used);
            blocks += u64::from(extent.blocks);
        }
        within("blocks of all extents", blocks, 0..=u64::from(u32::MAX))?;
        Ok(used)
    }

    fn table(&self, table: &Table, taken: &mut HashSet<Place>) -> Result<(), String> {
        for_tables(table.tablespace)?;
        let used = self.extents(table.tablespace, &table.extents, taken)?;
        let block_bytes = self.0[&table.tablespace].block_size;
        within("rows", table.row_count, 0..=used * u64::from(u16::MAX))?;
        within("bytes of rows", table.row_bytes, 0..=used * block_bytes)?;
        within("rows in several blocks", table.chained_row_count, 0..=table.row_count)?;
        let columns = table.schema.column_count();
        within("column_statistics", table.column_statistics.len(), columns..=columns)?;
        table.column_statistics.iter().try_for_each(|column| statistics(column, table.row_count))?;
        let [first, last] = table.lsns.bounds();
        within("the first operation", first, 0..=last)
    }

    fn index(&self, index: &Index, taken: &mut HashSet<Place>) -> Result<(), String> {
        let leaves = self.extents(Purpose::Indx, &index.leaves, taken)?;
        let branches = self.extents(Purpose::Indx, &index.branches, taken)?;
        within("entries", index.entry_count, 0..=leaves * u64::from(u16::MAX))?;
        let levels = match leaves {
            0 => 0..=0,
            _ => 1..=HEIGHT_MOST.min(branches + 1),
        };
        within("height", u64::from(index.height), levels)?;
        if index.root.is_some() != (leaves > 0) {
            let found = if index.root.is_some() { "a root without a leaf" } else { "leaves without a root" };
            return Err(format!("root: found {found}, expected both or neither"));
        }
        let [first, last] = index.lsns.bounds();
        within("the first operation", first, 0..=last)
    }

    fn live_table(
        &self,
        table: &LiveTable,
        (taken, created): (&mut HashSet<Place>, &mut HashSet<u64>),
    ) -> Result<(), String> {
        for_tables(table.tablespace)?;
        within("extents", table.extents.len(), 1..=usize::MAX)?;
        self.extents(table.tablespace, &table.extents, taken)?;
        made_once(table.created, created)
    }

    fn live_index(
        &self,
        index: &LiveIndex,
        (taken, created): (&mut HashSet<Place>, &mut HashSet<u64>),
    ) -> Result<(), String> {
        within("extents", index.extents.len(), 1..=usize::MAX)?;
        let blocks = index.extents[0].extent.blocks;
        self.extents(Purpose::Indx, &index.extents, taken)?;
        // A header block and a root block after it.
        within("blocks of the first extent", u64::from(blocks), 2..=u64::MAX)?;
        made_once(index.created, created)
    }
}

fn for_tables(purpose: Purpose) -> Result<(), String> {
    if purpose.is_tables() {
        return Ok(());
    }
    Err(format!("its tablespace: found {}, expected one for tables", purpose.name()))
}

/// The log names a segment by the LSN of its creation, so that LSN must be unique.
fn made_once(lsn: u64, created: &mut HashSet<u64>) -> Result<(), String> {
    within("created", lsn, 1..=LSN_MOST)?;
    match created.insert(lsn) {
        true => Ok(()),
        false => Err(format!("created: found {lsn} twice, expected it once")),
    }
}

fn statistics(column: &ColumnStatistics, rows: u64) -> Result<(), String> {
    within("bytes_max of a column", column.bytes_max as usize, 0..=VALUE_BYTES_MAX)?;
    within("null_count of a column", column.null_count, 0..=rows)?;
    let Some((least, most)) = column.integers else { return Ok(()) };
    within("the largest integer of a column", most, INTEGERS)?;
    within("the least integer of a column", least, *INTEGERS.start()..=most)
}
