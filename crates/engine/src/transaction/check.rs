//! Checks a table that transactions change, and its indexes.
//!
//! The check proves what a new transaction sees. Every row can be read, and each piece of a chained
//! row belongs to exactly one row. Each index has exactly one unmarked entry for each row, with the
//! row's key, in order, and reachable from the root.
//!
//! Limits: the keys of rows, their entries and the ids of pieces are held in memory, and one thread
//! works. No transaction may run, because entries have no version.

use super::range::Heads;
use super::segment::Segment;
use super::tree::Tree;
use super::worker::Worker;
use super::{Transactions, rows};
use crate::EngineError;
use crate::check::{Damage, SegmentDamage, entry_text};
use crate::index::block::Entry;
use crate::storage::block::BlockKind;
use plumb_events::Session;
use plumb_units::RowId;

/// Result of a check without errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveCheck {
    /// Rows of the table.
    pub row_count: u64,
    /// Rows that lie in several blocks, because one block has no room for them.
    pub chained_row_count: u64,
    /// Sum of the hashes of all rows ([`row_hash`]), modulo 2^64: equal for the
    /// same rows in any order.
    pub row_sum: u64,
    /// Unmarked entries of all indexes.
    pub entry_count: u64,
    /// Deleted rows, pieces and entries that keep their room, because statements may see them, or
    /// because no session has needed the room.
    pub version_count: u64,
}

/// Block kinds allowed in a segment, after its header.
const OF_TABLES: [BlockKind; 1] = [BlockKind::Rows];
const OF_INDEXES: [BlockKind; 2] = [BlockKind::Leaf, BlockKind::Branch];

impl Transactions<'_> {
    /// Checks each block of a table and its indexes on its own, past all errors. It shows the
    /// extent of the damage after an error of [`Transactions::check`].
    ///
    /// # Errors
    /// If a block cannot be read for another reason than its contents.
    pub fn damage(&self, session: &Session, table: &str) -> Result<Vec<SegmentDamage>, EngineError> {
        let table = self.table(table)?;
        let of_table = (format!("table {}", table.name), &table.segment, &OF_TABLES[..]);
        let of_indexes =
            table.indexes.iter().map(|tree| (format!("index {}", tree.name), &tree.segment, &OF_INDEXES[..]));
        let mut found = Vec::new();
        for (name, segment, kinds) in std::iter::once(of_table).chain(of_indexes) {
            let damage = Damage::default();
            self.look_at_blocks(session, (segment, kinds), &damage)?;
            found.extend(damage.of(name));
        }
        Ok(found)
    }

    fn look_at_blocks(
        &self,
        session: &Session,
        (segment, kinds): (&Segment, &[BlockKind]),
        damage: &Damage,
    ) -> Result<(), EngineError> {
        let mut worker = Worker::verifying(self, session);
        let used = match worker.used_blocks(segment) {
            Ok(used) => used,
            // Without it the number of blocks is unknown.
            Err(error) => return damage.note_blocks((0, 0), 1, error),
        };
        for index in 1..used {
            self.instance.cancel.check()?;
            let Some(address) = segment.address(index) else { break };
            let mut read = |kind: &BlockKind| {
                worker.reader.get(segment.purpose, address, segment.expected(*kind)).map(drop)
            };
            let first = read(&kinds[0]);
            if let Err(error) = first
                && kinds[1..].iter().all(|kind| read(kind).is_err())
            {
                damage.note_blocks((0, index), 1, error)?;
            }
        }
        Ok(())
    }

    /// Checks a table and its indexes, and verifies the checksum of every block that is
    /// read, even with `db_block_checksum` off.
    ///
    /// # Errors
    /// The first error found, or a running transaction.
    pub fn check(&self, session: &Session, table: &str) -> Result<LiveCheck, EngineError> {
        self.log.check()?;
        let table = self.table(table)?;
        if let Some(transaction) = self.active.oldest() {
            return Err(EngineError::Contradiction {
                first: format!("a check of table {}", table.name),
                second: format!("transaction {transaction}"),
                why: "entries of a transaction under way have no rows yet; end it first".to_string(),
            });
        }
        let mut worker = Worker::verifying(self, session);
        let snapshot = self.active.snapshot(0, || self.log.end());
        let mut found =
            LiveCheck { row_count: 0, chained_row_count: 0, row_sum: 0, entry_count: 0, version_count: 0 };
        let mut keys: Vec<Vec<(Vec<u8>, RowId)>> = vec![Vec::new(); table.indexes.len()];
        let (mut there, mut led_to) = (Vec::new(), Vec::new());
        let mut count = |row: RowId, image: &[u8]| {
            found.row_count += 1;
            found.row_sum = found.row_sum.wrapping_add(row_hash(image));
            for (tree, keys) in table.indexes.iter().zip(&mut keys) {
                let mut key = Vec::new();
                let built = tree.key.build(image, &mut key);
                built.map_err(|error| EngineError::bad_row(row, error))?;
                keys.push((key, row));
            }
            Ok(())
        };
        let (mut chained_row_count, mut version_count) = (0, 0);
        worker.scan_blocks(&table, |worker, blocks| {
            let mut heads = Heads::new();
            for block in blocks {
                version_count += rows::deleted_count(&block) as u64;
                there.extend(rows::pieces(&block).map(|slot| RowId::new(block.address(), slot)));
                worker.show_block((block.address(), &block), Some(&snapshot), (&mut count, &mut heads))?;
            }
            chained_row_count += heads.len() as u64;
            for (row, head) in heads {
                let chained = worker.assemble(&table, row, &head)?;
                led_to.extend(chained.pieces);
                count(row, &chained.image)?;
            }
            Ok(())
        })?;
        (found.chained_row_count, found.version_count) = (chained_row_count, version_count);
        require_each_once(there, led_to)?;
        for (tree, keys) in table.indexes.iter().zip(keys) {
            let (entries, marked) = check_tree(&mut worker, tree, keys)?;
            found.entry_count += entries;
            found.version_count += marked;
        }
        Ok(found)
    }
}

/// Rejects pieces that no row leads to, and pieces that several rows lead to.
fn require_each_once(mut there: Vec<RowId>, mut led_to: Vec<RowId>) -> Result<(), EngineError> {
    there.sort_unstable();
    led_to.sort_unstable();
    if there == led_to {
        return Ok(());
    }
    let twice = led_to.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let lost = there.iter().find(|piece| led_to.binary_search(piece).is_err());
    let gone = led_to.iter().find(|piece| there.binary_search(piece).is_err());
    let piece = twice.as_ref().or(lost).or(gone).expect("two lists that differ");
    let rows = led_to.iter().filter(|other| *other == piece).count();
    let why = format!("it is a piece of a row, and {rows} rows lead to it");
    Err(EngineError::bad_row(*piece, if gone == Some(piece) { why + ", but it was deleted" } else { why }))
}

/// Returns the CRC-64/NVME of a row image.
pub fn row_hash(image: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, image)
}

/// Checks an index against the keys of the table's rows. Returns the numbers of
/// its unmarked and marked entries.
fn check_tree(
    worker: &mut Worker<'_>,
    tree: &Tree,
    mut expected: Vec<(Vec<u8>, RowId)>,
) -> Result<(u64, u64), EngineError> {
    expected.sort_unstable();
    let mut entries: Vec<(Vec<u8>, RowId)> = Vec::with_capacity(expected.len());
    let mut marked = Vec::new();
    worker.walk(tree, &[], |entry| {
        let list = if entry.is_marked() { &mut marked } else { &mut entries };
        list.push((entry.key.to_vec(), entry.row_id()));
        true
    })?;
    let wrong = |what: &str, found: String, expected: String| {
        Err(EngineError::Verification { what: format!("index {}: {what}", tree.name), found, expected })
    };
    let shown = |(key, row): &(Vec<u8>, RowId)| entry_text(Entry { key, row: *row });
    let some = |entry: Option<&(Vec<u8>, RowId)>| entry.map_or("none".to_string(), shown);
    if let Some(pair) = entries.windows(2).find(|pair| pair[0] >= pair[1]) {
        return wrong(
            "order of entries",
            format!("{} behind {}", shown(&pair[1]), shown(&pair[0])),
            "a higher one".into(),
        );
    }
    if let Some(entry) = marked.iter().find(|entry| expected.binary_search(entry).is_ok()) {
        return wrong(
            "marked entries",
            format!("{}, a row's own", shown(entry)),
            "one without a mark".into(),
        );
    }
    if entries != expected {
        let missing = expected.iter().find(|entry| entries.binary_search(entry).is_err());
        let surplus = entries.iter().find(|entry| expected.binary_search(entry).is_err());
        return wrong(
            "entries = rows",
            format!("{} entries, without {}, with {}", entries.len(), some(missing), some(surplus)),
            format!("{} entries, one a row", expected.len()),
        );
    }
    for (key, row) in &expected {
        if !worker.rows_of(tree, key)?.contains(row) {
            return wrong("look-up", format!("no way to {}", shown(&(key.clone(), *row))), "one".into());
        }
    }
    Ok((entries.len() as u64, marked.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::require_each_once;
    use plumb_units::RowId;

    #[test]
    fn a_lost_deleted_or_shared_piece_is_named() {
        let check = |there: &[u64], led_to: &[u64], expect: &str| {
            let rows = |ids: &[u64]| ids.iter().map(|id| RowId(*id << 16)).collect();
            let found = require_each_once(rows(there), rows(led_to)).err().map(|error| error.to_string());
            assert_eq!(found.unwrap_or_default(), expect);
        };
        check(&[1, 2], &[2, 1], "");
        let one = "row at file 0 block 1 slot 0 cannot be read: it is a piece of a row, and";
        check(&[1, 2], &[2], &format!("{one} 0 rows lead to it"));
        check(&[2], &[2, 1], &format!("{one} 1 rows lead to it, but it was deleted"));
        check(&[1, 2], &[1, 1], &format!("{one} 2 rows lead to it"));
    }
}
