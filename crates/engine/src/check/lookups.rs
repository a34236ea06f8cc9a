//! Entries looked up one at a time, each compared with its row.

use super::damage::Place;
use super::rows::RowMap;
use super::segment::Inspector;
use super::{Checked, Rows, entry_text, key_text, leaves};
use crate::EngineError;
use crate::cache::CacheReader;
use crate::index::block::{Entry, LeafView};
use crate::index::btree::{BTree, content_of};
use crate::sort::key::KeyBuilder;
use crate::storage::block::{Content, Expected};
use crate::storage::tablespace::Purpose;
use crate::table::chain::{Chain, chained_length};
use crate::table::heap;
use plumb_events::{Session, Statistic};
use plumb_units::{BlockAddress, RowId, SplitMix};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::atomic::AtomicUsize;

/// Rows chosen at random, whose keys are looked up.
const POINTS: u64 = 300;
/// Entries of such a key whose rows are fetched and compared.
const ROWS_OF_A_KEY: usize = 4;
/// Entries of the range that is read, and every how many a row is fetched.
const RANGE_ENTRIES: u64 = 2000;
const RANGE_STEP: u64 = 20;
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Looks up some entries, and reads a range; says how many.
pub(super) fn try_some(
    checked: &Checked<'_>,
    rows: Rows<'_>,
    session: &Session,
) -> Result<String, EngineError> {
    let blocks = RefCell::new(CacheReader::verifying(session, checked.instance.caches()));
    let tree = BTree::new(checked.index, checked.instance.tablespace(Purpose::Indx), &blocks);
    let fetch =
        Fetch { session, blocks: &blocks, key: rows.key, table: (rows.rows.tablespace, rows.rows.expected) };
    let map = &rows.rows.map;
    let mut random = SplitMix(SEED);
    let (mut key, mut other) = (Vec::new(), Vec::new());
    let points = POINTS.min(map.row_count());
    for _ in 0..points {
        checked.instance.cancel.check()?;
        let row = random_row(map, &mut random);
        fetch.key_of(row, &mut key)?;
        if !tree.contains(&key, row)? {
            let looked_up = entry_text(Entry { key: &key, row });
            return Err(checked.wrong("look-up", "nothing".to_string(), looked_up));
        }
        let mut range = tree.range(Bound::Included(&key), Bound::Included(&key))?;
        for _ in 0..ROWS_OF_A_KEY {
            let Some(entry) = range.next_entry()? else { break };
            fetch.key_of(entry.row, &mut other)?;
            checked.same_key("look-up", entry, &other)?;
        }
    }
    let mut in_range = 0;
    if map.row_count() > 0 {
        fetch.key_of(random_row(map, &mut random), &mut key)?;
        in_range = read_range(checked, &tree, &fetch, &key)?;
    } else if !tree.lookup(&[])?.is_empty() {
        return Err(checked.wrong("look-up", "an entry".to_string(), "none, as in the table".to_string()));
    }
    Ok(format!("{points} keys, and a range of {in_range} entries, compared with their rows"))
}

fn read_range<'a>(
    checked: &Checked<'_>,
    tree: &BTree<'a, RefCell<CacheReader<'a>>>,
    fetch: &Fetch<'_>,
    from: &[u8],
) -> Result<u64, EngineError> {
    let mut range = tree.range(Bound::Included(from), Bound::Unbounded)?;
    let (mut last_key, mut last_row) = (from.to_vec(), RowId(0));
    let mut other = Vec::new();
    let mut count = 0;
    while count < RANGE_ENTRIES {
        let Some(entry) = range.next_entry()? else { break };
        if entry.order(&last_key, last_row) != Ordering::Greater {
            let before = entry_text(Entry { key: &last_key, row: last_row });
            return Err(checked.wrong("range", entry_text(entry), format!("more than {before}")));
        }
        if count.is_multiple_of(RANGE_STEP) {
            fetch.key_of(entry.row, &mut other)?;
            checked.same_key("range", entry, &other)?;
        }
        last_key.clear();
        last_key.extend_from_slice(entry.key);
        last_row = entry.row;
        count += 1;
    }
    if count == 0 {
        return Err(checked.wrong("range", "nothing".to_string(), format!("key {}", key_text(from))));
    }
    Ok(count)
}

fn random_row(map: &RowMap, random: &mut SplitMix) -> RowId {
    map.row_id(random.below(map.row_count())).expect("less than the row count")
}

/// Fetches rows by their ids.
struct Fetch<'a> {
    session: &'a Session,
    blocks: &'a RefCell<CacheReader<'a>>,
    key: &'a KeyBuilder,
    /// The tablespace of its table, and what blocks of it must be.
    table: (Purpose, Expected),
}

impl Fetch<'_> {
    /// The key of a row of the table.
    fn key_of(&self, row: RowId, key: &mut Vec<u8>) -> Result<(), EngineError> {
        let block = self.blocks.borrow_mut().get(self.table.0, row.address(), self.table.1)?;
        self.session.count(Statistic::RowsFetchedByRowId, 1);
        let bad = |why: String| EngineError::bad_row(row, why);
        let image = heap::row_at(&block, content_of(&block), row.slot());
        let image = image.ok_or_else(|| bad("its block has no such slot".to_string()))?;
        let Some(length) = chained_length(image) else {
            return self.key.build(image, key).map_err(|error| bad(error.to_string()));
        };
        let mut chain = Chain::default();
        chain.begin(image, row, length);
        drop(block);
        while let Some(next) = chain.next() {
            let block = self.blocks.borrow_mut().get(self.table.0, next, self.table.1)?;
            if let Some((_, image)) = chain.go_on(next, content_of(&block), &block)? {
                return self.key.build(image, key).map_err(|error| bad(error.to_string()));
            }
        }
        Err(bad("it ends within itself".to_string()))
    }
}

impl Checked<'_> {
    fn wrong(&self, what: &str, found: String, expected: String) -> EngineError {
        EngineError::Verification { what: format!("index {}: {what}", self.index.name), found, expected }
    }

    fn same_key(&self, what: &str, entry: Entry<'_>, key_of_row: &[u8]) -> Result<(), EngineError> {
        if entry.key == key_of_row {
            return Ok(());
        }
        let expected = format!("key {}, which the row has", key_text(key_of_row));
        Err(self.wrong(what, entry_text(entry), expected))
    }
}

/// Finds an entry that differs from its row among those of suspected rows: the slow
/// way, after sums or the bitmap have shown that there is one.
pub(super) fn explain_difference(
    checked: &Checked<'_>,
    rows: Rows<'_>,
    session: &Session,
    what: &str,
    suspect: &dyn Fn(RowId) -> bool,
) -> EngineError {
    let compare = || {
        let blocks = RefCell::new(CacheReader::verifying(session, checked.instance.caches()));
        let fetch = Fetch {
            session,
            blocks: &blocks,
            key: rows.key,
            table: (rows.rows.tablespace, rows.rows.expected),
        };
        let mut comparer = Comparer { checked, fetch, what, suspect, key: Vec::new() };
        let cancel = || Ok(checked.instance.cancel.check()?);
        leaves::segment(checked.index).read(
            (checked.instance, session),
            &AtomicUsize::new(0),
            (&cancel, &|_, error| Err(error)),
            &mut comparer,
        )
    };
    let unexplained = || {
        let found = "a set of entries that is not the table's, but none that differs from its row";
        checked.wrong(what, found.to_string(), "an entry with the key of its row for each row".to_string())
    };
    compare().err().unwrap_or_else(unexplained)
}

/// Compares the entries of suspected rows.
struct Comparer<'a> {
    checked: &'a Checked<'a>,
    fetch: Fetch<'a>,
    what: &'a str,
    suspect: &'a dyn Fn(RowId) -> bool,
    key: Vec<u8>,
}

impl Inspector for Comparer<'_> {
    fn block(
        &mut self,
        _: Place,
        (address, content): (BlockAddress, Content),
        block: &[u8],
    ) -> Result<(), EngineError> {
        let path = self.checked.instance.tablespace(Purpose::Indx).path(address);
        let corrupt = |error: crate::index::block::LayoutError| error.at(path, address);
        for (number, entry) in LeafView::new(block, content).map_err(corrupt)?.entries().enumerate() {
            let entry = entry.map_err(corrupt)?;
            if (self.suspect)(entry.row) {
                self.fetch.key_of(entry.row, &mut self.key)?;
                let what = format!("leaf {address}, entry {number}: {}", self.what);
                self.checked.same_key(&what, entry, &self.key)?;
            }
        }
        Ok(())
    }
}
