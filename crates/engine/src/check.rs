//! Checks a table and its indexes against each other.
//!
//! The check proves that every block is the one that was written and every row can be read. Each
//! index has exactly one entry for each row, with that row's key, in order, in a tree that leads to
//! it.
//!
//! It makes two passes of parallel multiblock reads that bypass the buffer cache:
//! 1. The table. Each row is decoded. For each index its key is built, and (key, row id) is hashed
//!    to 64 bits. The hashes are added to sums of 128 bits, one for each bucket of blocks. The rows
//!    of each block are counted.
//! 2. The leaves of each index. Entries must ascend within a leaf, from leaf to leaf, and between
//!    the pieces that different servers read. Each row id must be one of the table's, and sets a
//!    bit in a bitmap of rows. A bit set twice, by one server or by two, is a duplicate; a clear
//!    bit at the end is a missing row. The hashes are summed as before.
//!
//! Sums do not depend on order, so the comparison needs no sort and no join. Two different sets of
//! entries have the same sum by chance once in 2^64. If sums differ, the bucket names the blocks of
//! the rows. The index is read again, and the entries of those rows are compared with the rows
//! until one differs. If a row has two entries, its entries are compared.
//!
//! The check continues after an error: it counts damaged blocks and reports the first ones of a
//! segment in full. It skips comparisons with damaged blocks: the rows of a damaged table with its
//! indexes, the order over damaged leaves, and a tree with damaged blocks. Their blocks are still
//! checked.
//!
//! Then the branches are walked from the root, in order: each leaf must come in its turn, after a
//! separator that is its first entry. Finally some entries are looked up through the buffer cache.
//!
//! Memory: a bit per row and server, 10 bytes per table block, and 8 bytes per leaf. Each server
//! has 16K of sums per index, and the buffers of a scan. Cost: 10 million rows of 45 bytes and an
//! index of two columns, 600 MB in all, take 0.6 s on two processors.
//!
//! Limits: values are not decoded, so a date of 13 months passes. An older version of a block by
//! the same operation (a leaf before it was linked) shows in the sums; any other shows in its LSN.

mod damage;
mod hash;
mod leaves;
mod lookups;
mod rows;
mod segment;
mod tree;

pub(crate) use damage::Damage;
pub use damage::SegmentDamage;

use crate::index::block::Entry;
use crate::sort::key::KeyBuilder;
use crate::storage::control::{Index, Table};
use crate::{EngineError, Instance};
use hash::Sums;
use leaves::LeafFacts;
use plumb_events::{Phase, Role, Session, now};
use plumb_units::{Bytes, Nanos, RowCount, RowId};
use rows::{RowFacts, RowMap};

/// A check that passed; failures are errors.
#[derive(Debug, Clone)]
pub struct CheckLine {
    /// Name of the check, such as `keys in order`.
    pub name: String,
    /// Figures of the check; for an index they begin with its name.
    pub detail: String,
    /// Time taken; zero if another line of the same pass has the time.
    pub elapsed: Nanos,
}

fn line(name: &str, detail: String, elapsed: Nanos) -> CheckLine {
    CheckLine { name: name.to_string(), detail, elapsed }
}

/// Result of a check of a table and its indexes.
#[derive(Debug, Default)]
pub struct TableCheck {
    /// Checks that passed.
    pub lines: Vec<CheckLine>,
    /// Damage, by table and index.
    pub damage: Vec<SegmentDamage>,
    /// Errors that kept a table or an index from being read to its end.
    pub unreached: Vec<EngineError>,
}

impl TableCheck {
    /// Records how the check of a segment ended; `None` unless it passed without damage.
    fn settle<T>(
        &mut self,
        segment: String,
        damage: Damage,
        result: Result<T, EngineError>,
    ) -> Result<Option<T>, EngineError> {
        let looked_at = match result {
            Ok(facts) => Some(facts),
            // An error of no single block is listed after those of blocks.
            Err(error) if error.is_damage() => {
                damage.note_blocks((usize::MAX, 0), 1, error)?;
                None
            }
            Err(error @ (EngineError::Io(_) | EngineError::Unusable(_))) => {
                self.unreached.push(error);
                None
            }
            Err(error) => return Err(error),
        };
        let damage = damage.of(segment);
        let facts = looked_at.filter(|_| damage.is_none());
        self.damage.extend(damage);
        Ok(facts)
    }
}

/// Checks one table and all its indexes.
///
/// # Errors
/// The first failure, with block, row, found and expected.
pub fn check_table(instance: &Instance, table: &str) -> Result<Vec<CheckLine>, EngineError> {
    let TableCheck { lines, damage, unreached } = examine_table(instance, table)?;
    let first = damage.into_iter().flat_map(|damage| damage.first).chain(unreached).next();
    first.map_or(Ok(lines), Err)
}

/// Checks one table and all its indexes, and continues after failures.
///
/// # Errors
/// If there is no such table, or the check was interrupted.
pub fn examine_table(instance: &Instance, table: &str) -> Result<TableCheck, EngineError> {
    let begin = now();
    let (table, indexes) = {
        let catalog = instance.catalog();
        let table = catalog.table(table)?.clone();
        let indexes: Vec<Index> = catalog.indexes_of(&table.name).cloned().collect();
        (table, indexes)
    };
    let coordinator = instance.recorder.session(Role::Check);
    let mut found = TableCheck::default();
    let mut lines = Vec::new();
    let damage = Damage::default();
    let rows = key_builders(&table, &indexes).and_then(|keys| {
        let rows = rows::read(instance, &coordinator, &table, &keys, &damage)?;
        Ok((keys, rows))
    });
    let rows = found.settle(format!("table {}", table.name), damage, rows)?;
    let mut blocks = Vec::new();
    if let Some((_, rows)) = &rows {
        lines.push(line("rows readable", rows_detail(&table, rows), rows.elapsed));
        blocks.push(format!("{} of the table", RowCount(rows.map.block_count())));
    }
    for (number, index) in indexes.iter().enumerate() {
        let checked = Checked { instance, index };
        let damage = Damage::default();
        let known = rows.as_ref().map(|(keys, rows)| Rows { key: &keys[number], rows, number });
        let result = checked.all(&coordinator, known, &damage, &mut lines);
        if let Some(counted) = found.settle(format!("index {}", index.name), damage, result)? {
            blocks.push(counted);
        }
    }
    if !blocks.is_empty() {
        lines.insert(0, line("block checksums", blocks.join(", "), Nanos(0)));
    }
    found.lines = lines;
    instance.recorder.phase(Phase::Verify, begin, rows.map_or(0, |(_, rows)| rows.map.row_count()));
    Ok(found)
}

fn key_builders(table: &Table, indexes: &[Index]) -> Result<Vec<KeyBuilder>, EngineError> {
    let columns = table.schema.column_count();
    for index in indexes {
        if let Some(column) = index.columns.iter().find(|column| column.position >= columns) {
            return Err(EngineError::Verification {
                what: format!("index {}: its columns", index.name),
                found: format!("number {}", column.position + 1),
                expected: format!("one of the {columns} of table {}", table.name),
            });
        }
    }
    Ok(indexes.iter().map(|index| KeyBuilder::new(&index.columns, &table.schema)).collect())
}

fn rows_detail(table: &Table, rows: &RowFacts) -> String {
    let columns = table.schema.column_count();
    format!("{} rows of {columns} columns, as many as the catalog says", RowCount(rows.map.row_count()))
}

struct Checked<'a> {
    instance: &'a Instance,
    index: &'a Index,
}

/// The rows of its table, all of them sound.
#[derive(Clone, Copy)]
struct Rows<'a> {
    rows: &'a RowFacts,
    key: &'a KeyBuilder,
    /// Position of the index among those of the table.
    number: usize,
}

impl Checked<'_> {
    /// Checks leaves and branches, against the rows if they are known. Returns a text
    /// with the number of blocks.
    fn all(
        &self,
        coordinator: &Session,
        rows: Option<Rows<'_>>,
        damage: &Damage,
        lines: &mut Vec<CheckLine>,
    ) -> Result<String, EngineError> {
        let map = rows.map(|known| &known.rows.map);
        let leaves = leaves::read(self.instance, coordinator, self.index, map, damage)?;
        if !damage.is_none() {
            tree::look_at_branches(self, coordinator, damage)?;
            return Ok(String::new());
        }
        let name = &self.index.name;
        let leaf_count = RowCount(leaves.leaf_count);
        let in_order = format!("{name}: {} entries in {leaf_count} leaves", RowCount(leaves.entry_count));
        lines.push(line("keys in order", in_order, leaves.elapsed));
        match rows {
            Some(rows) => self.entries(coordinator, rows, &leaves, lines)?,
            None => {
                let why = format!("{name}: the table is damaged");
                lines.push(line("not compared with rows", why, Nanos(0)));
            }
        }
        let begin = now();
        let branches = tree::walk(self, coordinator, &leaves).or_else(|error| {
            tree::look_at_branches(self, coordinator, damage)?;
            // A damaged branch has been counted by now, and explains the failed walk.
            if damage.is_none() { Err(error) } else { Ok(0) }
        })?;
        if !damage.is_none() {
            return Ok(String::new());
        }
        let levels = format!("{name}: height {}, {} branches", self.index.height, RowCount(branches));
        lines.push(line("branch levels", levels, now().saturating_sub(begin)));
        if let Some(rows) = rows {
            let begin = now();
            let found = lookups::try_some(self, rows, coordinator)?;
            lines.push(line("look-ups", format!("{name}: {found}"), now().saturating_sub(begin)));
        }
        Ok(format!("{leaf_count} leaves and {} branches of {name}", RowCount(branches)))
    }

    /// Compares the entries of the leaves with the rows.
    fn entries(
        &self,
        coordinator: &Session,
        rows: Rows<'_>,
        leaves: &LeafFacts,
        lines: &mut Vec<CheckLine>,
    ) -> Result<(), EngineError> {
        let name = &self.index.name;
        let entries = RowCount(leaves.entry_count);
        let map = &rows.rows.map;
        if let Some(twice) = leaves.seen.twice().and_then(|ordinal| map.row_id(ordinal)) {
            // Entries ascend, so two entries of a row have different keys, and one is wrong.
            let suspect = |row: RowId| row == twice;
            return Err(lookups::explain_difference(self, rows, coordinator, "each row id once", &suspect));
        }
        self.same_count(map, leaves)?;
        lines.push(line("entries = rows", format!("{name}: {entries} of each"), Nanos(0)));
        let bitmap = format!("{name}: bitmaps of {entries} bits ({})", Bytes(leaves.seen.bytes()));
        lines.push(line("each row id once", bitmap, Nanos(0)));
        let begin = now();
        if let Some(bucket) = rows.rows.sums[rows.number].first_difference(&leaves.sums) {
            let suspect = |row| map.ordinal(row).is_some_and(|(block, _)| Sums::bucket(block) == bucket);
            return Err(lookups::explain_difference(self, rows, coordinator, "keys equal rows", &suspect));
        }
        let sum = format!("{name}: 128-bit sum of hashes {:032x} on both sides", leaves.sums.total());
        lines.push(line("keys equal rows", sum, now().saturating_sub(begin)));
        Ok(())
    }

    fn same_count(&self, map: &RowMap, leaves: &LeafFacts) -> Result<(), EngineError> {
        let row_count = map.row_count();
        let differs = |what: String, found: String, expected: u64| {
            Err(EngineError::Verification { what, found, expected: RowCount(expected).to_string() })
        };
        let name = &self.index.name;
        let found = RowCount(leaves.entry_count).to_string();
        if leaves.entry_count != row_count {
            let missing = leaves.seen.first_clear(row_count).and_then(|ordinal| map.row_id(ordinal));
            let missing =
                missing.map_or(String::new(), |row| format!(", with no entry for the row at {row}"));
            return differs(format!("index {name}: entries = rows"), found + &missing, row_count);
        }
        if leaves.entry_count != self.index.entry_count {
            return differs(
                format!("index {name}: entries as the catalog says"),
                found,
                self.index.entry_count,
            );
        }
        Ok(())
    }
}

/// Formats an entry for a message: the key in hexadecimal, cut at 24 bytes, and the row.
pub(crate) fn entry_text(entry: Entry<'_>) -> String {
    format!("key {} of the row at {}", key_text(entry.key), entry.row)
}

fn key_text(key: &[u8]) -> String {
    let shown: Vec<String> = key.iter().take(24).map(|byte| format!("{byte:02X}")).collect();
    let rest = if key.len() > 24 { format!(" .. ({} bytes)", key.len()) } else { String::new() };
    format!("[{}{rest}]", shown.join(" "))
}

#[cfg(test)]
mod tests;
