//! Loads a table by direct path and builds an index on it by a parallel disk sort. Then checks
//! both, and reads the rows in the order of the index.
//!
//!     cargo run --example load_and_index -- DIRECTORY

use plumb_engine::cache::CacheReader;
use plumb_engine::index::btree::BTree;
use plumb_engine::index::build::{IndexSpec, create_index};
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::fetch::RowFetcher;
use plumb_engine::table::load::load;
use plumb_engine::{Instance, Layout, Settings, check};
use plumb_events::{Cancel, Role};
use plumb_types::{Column, ColumnType, RowBatch, RowSource, Schema, SourceError};
use std::cell::RefCell;
use std::error::Error;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of the table, and of a batch.
const ROWS: u64 = 100_000;
const BATCH: u64 = 5_000;

/// Rows that are made when a thread of the load asks for them.
struct Orders {
    schema: Schema,
    next: AtomicU64,
}

impl Orders {
    fn new() -> Result<Orders, Box<dyn Error>> {
        let columns = vec![
            Column::required("ID", ColumnType::NUMBER),
            Column::required("CITY", ColumnType::Text { max_bytes: 20 }),
        ];
        Ok(Orders { schema: Schema::new(columns)?, next: AtomicU64::new(0) })
    }
}

impl RowSource for Orders {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(ROWS)
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
        for id in first..ROWS.min(first + BATCH) {
            batch.begin_row(2);
            batch.push_number(i128::from(id), 0);
            batch.push_text(["Bern", "Rome", "Oslo"][(id * 7 % 3) as usize]);
            batch.end_row();
        }
        Ok(!batch.is_empty())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args_os().nth(1).ok_or("usage: load_and_index DIRECTORY, which must be new")?;
    let layout = Layout::in_one(home.into());
    let mut settings = Settings::default();
    settings.set("sort_area_size", "256K", "this example")?;
    let instance = Instance::create(&layout, settings, InitialSizes::NONE, Cancel::default())?;

    let loaded = load(&instance, "ORDERS", &Orders::new()?)?;
    println!("{} rows in {} blocks", loaded.row_count, loaded.block_count);

    let columns = vec![("CITY".to_string(), false), ("ID".to_string(), true)];
    let spec = IndexSpec { name: "BY_CITY".to_string(), table: "ORDERS".to_string(), columns };
    let built = create_index(&instance, &spec)?;
    println!("{} entries", built.index.entry_count);

    for line in check::check_table(&instance, "ORDERS")? {
        println!("checked: {}", line.name);
    }

    let session = instance.recorder.session(Role::User);
    let table = instance.catalog().table("ORDERS")?.clone();
    let blocks = RefCell::new(CacheReader::new(&session, instance.caches()));
    let tree = BTree::new(&built.index, instance.tablespace(Purpose::Indx), &blocks);
    let mut entries = tree.range(Bound::Unbounded, Bound::Unbounded)?;
    let mut first = Vec::new();
    while let Some(entry) = entries.next_entry()?.filter(|_| first.len() < 3) {
        first.push(entry.row);
    }
    for values in RowFetcher::new(&instance, &session, &table)?.fetch(&first)? {
        println!("{} {}", values[1], values[0]);
    }
    Ok(())
}
