//! Checks a table and its indexes against each other.
//!
//! What it proves: every block is the one that was written, every row can be
//! read, and each index has for each row exactly one entry, with that row's
//! key, in order, in a tree that leads to it.
//!
//! How, in two passes of parallel multiblock reads past the buffer cache:
//! 1. The table. Each row is taken apart; its key for each index is built and
//!    (key, row id) hashed to 64 bits. The hashes are summed, 128 bits a sum,
//!    into buckets by block. The rows of each block are counted.
//! 2. Each index's leaves. Entries must ascend, within a leaf, from leaf to leaf
//!    and over the joints between the pieces that different servers read. Each
//!    row id must be one of the table's, and is ticked off in a bitmap with one
//!    bit a row: what is there already is there twice, what is missing in the
//!    end is missing. The hashes go into buckets as before.
//!
//! Sums do not depend on order, so table and index need no sort and no join to
//! be compared. Two different sets of entries have the same sum by chance once
//! in 2^64. Where sums differ, the bucket says in which blocks the rows lie; the
//! index is read once more, and the entries of those rows are compared one by
//! one with the rows themselves, until one differs.
//!
//! Then the branches are walked from the root, in order: each leaf must come up
//! at its turn, behind a separator that is its first entry. At last some entries
//! are looked up as a user would, through the buffer cache.
//!
//! Memory: a bit a row, 10 bytes a table block, 8 bytes a leaf, 16K of sums a
//! server and index, and the buffers of a scan.
//! Cost: 10 million rows of 45 bytes and an index of two columns, 600 MB in all,
//! take 0.6 s on two processors.
//! Limits: values are not decoded, so a date of 13 months passes. An old version
//! of a block at its own address is found by what no longer adds up, not by its
//! LSN.

mod hash;
mod leaves;
mod lookups;
mod rows;
mod segment;
mod tree;

use crate::index::block::Entry;
use crate::sort::key::KeyBuilder;
use crate::storage::control::{Index, Table};
use crate::{EngineError, Instance};
use leaves::LeafFacts;
use plumb_events::{Session, SessionKind, now};
use plumb_units::{Bytes, Nanos, RowCount};
use rows::RowFacts;

/// One thing that was checked and is right. What is wrong is an error.
#[derive(Debug, Clone)]
pub struct CheckLine {
    /// What was checked, as `keys in order`.
    pub name: String,
    /// With which figures; begins with the name of the index, for one.
    pub detail: String,
    /// How long it took; zero for what a pass over the blocks checks on the way
    /// beside what its time is given for.
    pub elapsed: Nanos,
}

fn line(name: &str, detail: String, elapsed: Nanos) -> CheckLine {
    CheckLine { name: name.to_string(), detail, elapsed }
}

/// Checks one table and all its indexes.
///
/// # Errors
/// The first thing that is wrong, named with block, row, found and expected.
pub fn check_table(instance: &Instance, table: &str) -> Result<Vec<CheckLine>, EngineError> {
    let begin = now();
    let (table, indexes) = {
        let catalog = instance.catalog();
        let table = catalog.table(table)?.clone();
        let indexes: Vec<Index> = catalog.indexes_of(&table.name).cloned().collect();
        (table, indexes)
    };
    let coordinator = instance.recorder.session("check", SessionKind::Foreground);
    let keys = key_builders(&table, &indexes)?;
    let rows = rows::read(instance, &coordinator, &table, &keys)?;
    let row_count = rows.map.row_count();
    let mut lines = vec![line("rows readable", rows_detail(&table, &rows), rows.elapsed)];
    let mut blocks = format!("{} of the table", RowCount(rows.map.block_count()));
    for (number, index) in indexes.iter().enumerate() {
        let checked = Checked { instance, index, key: &keys[number], rows: &rows };
        let leaves = checked.entries(&coordinator, number, &mut lines)?;
        checked.tree(&coordinator, &leaves, &mut lines)?;
        let branches: u64 = index.branches.iter().map(|extent| u64::from(extent.used)).sum();
        let leaf_count = RowCount(leaves.leaf_count);
        blocks.push_str(&format!(
            ", {leaf_count} leaves and {} branches of {}",
            RowCount(branches),
            index.name
        ));
    }
    lines.insert(0, line("block checksums", blocks, Nanos(0)));
    instance.recorder.phase("verify", begin, row_count);
    Ok(lines)
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

/// An index under examination, its table's rows being known.
struct Checked<'a> {
    instance: &'a Instance,
    index: &'a Index,
    key: &'a KeyBuilder,
    rows: &'a RowFacts,
}

impl Checked<'_> {
    /// Checks what the leaves hold.
    fn entries(
        &self,
        coordinator: &Session,
        number: usize,
        lines: &mut Vec<CheckLine>,
    ) -> Result<LeafFacts, EngineError> {
        let name = &self.index.name;
        let map = &self.rows.map;
        let leaves = leaves::read(self.instance, coordinator, self.index, map)?;
        let entries = RowCount(leaves.entry_count);
        let in_order = format!("{name}: {entries} entries in {} leaves", RowCount(leaves.leaf_count));
        lines.push(line("keys in order", in_order, leaves.elapsed));
        self.same_count(&leaves)?;
        lines.push(line("entries = rows", format!("{name}: {entries} of each"), Nanos(0)));
        let bitmap = format!("{name}: a bitmap of {entries} bits ({})", Bytes(leaves.seen.bytes()));
        lines.push(line("each row id once", bitmap, Nanos(0)));
        let begin = now();
        if let Some(bucket) = self.rows.sums[number].first_difference(&leaves.sums) {
            return Err(lookups::explain_difference(self, coordinator, bucket));
        }
        let sum = format!("{name}: 128-bit sum of hashes {:032x} on both sides", leaves.sums.total());
        lines.push(line("keys equal rows", sum, now().saturating_sub(begin)));
        Ok(leaves)
    }

    fn same_count(&self, leaves: &LeafFacts) -> Result<(), EngineError> {
        let row_count = self.rows.map.row_count();
        let differs = |what: String, found: String, expected: u64| {
            Err(EngineError::Verification { what, found, expected: RowCount(expected).to_string() })
        };
        let name = &self.index.name;
        let found = RowCount(leaves.entry_count).to_string();
        if leaves.entry_count != row_count {
            let missing =
                leaves.seen.first_clear(row_count).and_then(|ordinal| self.rows.map.row_id(ordinal));
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

    /// Checks the way to the leaves.
    fn tree(
        &self,
        coordinator: &Session,
        leaves: &LeafFacts,
        lines: &mut Vec<CheckLine>,
    ) -> Result<(), EngineError> {
        let name = &self.index.name;
        let begin = now();
        let branches = tree::walk(self, coordinator, leaves)?;
        let levels = format!("{name}: height {}, {} branches", self.index.height, RowCount(branches));
        lines.push(line("branch levels", levels, now().saturating_sub(begin)));
        let begin = now();
        let found = lookups::try_some(self, coordinator)?;
        lines.push(line("look-ups", format!("{name}: {found}"), now().saturating_sub(begin)));
        Ok(())
    }
}

/// An entry for a message: the key in hexadecimal, cut at 24 bytes, and the row.
fn entry_text(entry: Entry<'_>) -> String {
    format!("key {} of the row at {}", key_text(entry.key), entry.row)
}

fn key_text(key: &[u8]) -> String {
    let shown: Vec<String> = key.iter().take(24).map(|byte| format!("{byte:02X}")).collect();
    let rest = if key.len() > 24 { format!(" .. ({} bytes)", key.len()) } else { String::new() };
    format!("[{}{rest}]", shown.join(" "))
}

#[cfg(test)]
mod tests;
