//! Makes the databases to be changed: small ones in memory, the same for every seed.
//!
//! They lie on a disk in memory that can lose power. One thread does all work on it, and its random
//! numbers come from its own seed, so a trial can be repeated anywhere.

use anyhow::Context as _;
use plumb_engine::index::build::{IndexSpec, create_index};
use plumb_engine::instance::InitialSizes;
use plumb_engine::table::load::load;
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::Role;
use plumb_io::sim::MemoryDisk;
use plumb_io::sim::power::Survivors;
use plumb_types::{Column, ColumnType, Number, RowBatch, RowSource, Schema, SourceError, Value};
use plumb_units::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The directory of the databases on their disks.
pub(super) const HOME: &str = "/in/memory/db";
/// Rows of the table loaded by direct path: enough for a tree with branches.
const LOADED: i64 = 1500;
/// Rows of the table that transactions change.
const CHANGED: i64 = 300;

/// State of a database's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Closed, with nothing to recover.
    Closed,
    /// Crashed, with an unfinished transaction.
    Open,
    /// Crashed, with two members of each log file.
    Mirrored,
}

impl Left {
    fn settings(self) -> anyhow::Result<Settings> {
        let members = if self == Left::Mirrored { "2" } else { "1" };
        let given = [
            ("db_block_size", "2K"),
            ("debug_extent_blocks", "16"),
            ("data_files", "2"),
            ("debug_cache_blocks", "64"),
            ("log_buffer", "64K"),
            ("log_file_size", "2M"),
            ("log_file_groups", "3"),
            ("log_file_members", members),
            ("io_method", "null"),
        ];
        crate::settings(&given, &[])
    }

    pub(super) fn open(self, disk: &Arc<MemoryDisk>) -> Result<Instance, EngineError> {
        let settings = self.settings().unwrap_or_default();
        Instance::open_on(disk, Path::new(HOME), settings)
    }
}

#[derive(Debug)]
pub(super) struct Base {
    disk: Arc<MemoryDisk>,
    pub(super) left: Left,
}

impl Base {
    pub(super) fn new(left: Left) -> anyhow::Result<Base> {
        let disk = MemoryDisk::with_power(1);
        let sizes = InitialSizes { users: Bytes(1), temp: Bytes(1), indx: Bytes(1) };
        {
            let instance = Instance::create_on(&disk, Path::new(HOME), left.settings()?, sizes)?;
            load(&instance, "D", &Rows::new()?)?;
            for (name, column, descending) in [("D_K", "K", false), ("D_V", "V", true)] {
                let (name, table) = (name.to_string(), "D".to_string());
                create_index(
                    &instance,
                    &IndexSpec { name, table, columns: vec![(column.to_string(), descending)] },
                )?;
            }
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(&instance, &session)?;
            let index = |name: &str, column: &str, unique| IndexDefinition {
                name: name.to_string(),
                columns: vec![(column.to_string(), false)],
                unique,
            };
            transactions.create_table(
                &session,
                "L",
                &schema()?,
                &[index("L_K", "K", true), index("L_V", "V", false)],
            )?;
            fill(&transactions, &session)?;
            // Otherwise recovery rebuilds blocks from the log and overwrites the fuzzer's changes.
            transactions.checkpoint(&session)?;
        }
        let mut base = Base { disk: disk.restart(Survivors::All), left };
        if left != Left::Closed {
            base.leave_open()?;
        }
        Ok(base)
    }

    /// Cuts the power while a transaction is open whose changes a later commit made durable.
    fn leave_open(&mut self) -> anyhow::Result<()> {
        let instance = self.left.open(&self.disk)?;
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session)?;
        let mut connections = [transactions.connect(&session), transactions.connect(&session)];
        let [one, other] = &mut connections;
        let (mut unended, mut ended) = (one.begin(), other.begin());
        for key in 0..6 {
            unended.insert("L", &row(10_000 + key, if key == 3 { 5000 } else { 30 }))?;
            ended.insert("L", &row(20_000 + key, 30))?;
        }
        let rows = unended.lookup("L_K", &[number(7)])?;
        for found in rows {
            unended.update("L", found.id, |values| values[2] = text(90))?;
        }
        for found in unended.lookup("L_K", &[number(9)])? {
            unended.delete("L", found.id)?;
        }
        ended.commit()?;
        self.disk = self.disk.restart(Survivors::All);
        Ok(())
    }

    pub(super) fn copy(&self) -> Arc<MemoryDisk> {
        self.disk.restart(Survivors::All)
    }
}

/// Inserts rows of all lengths, some in pieces; changes and deletes some.
fn fill(transactions: &Transactions<'_>, session: &plumb_events::Session) -> anyhow::Result<()> {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let mut ids = Vec::new();
    for key in 0..CHANGED {
        let length = if key % 50 == 0 { 6000 } else { 10 + (key as usize * 7) % 200 };
        ids.push(transaction.insert("L", &row(key, length))?);
        if key % 20 == 0 {
            transaction.commit_and_chain()?;
        }
    }
    for (place, id) in ids.iter().enumerate().skip(1).step_by(9) {
        transaction.update("L", *id, |values| values[2] = text(10 + place % 300))?;
        transaction.commit_and_chain()?;
    }
    for id in ids.iter().skip(2).step_by(11) {
        transaction.delete("L", *id)?;
    }
    transaction.commit().context("the rows are committed")
}

fn schema() -> anyhow::Result<Schema> {
    let columns = vec![
        Column::required("K", ColumnType::NUMBER),
        Column::nullable("V", ColumnType::Text { max_bytes: 40 }),
        Column::nullable("W", ColumnType::Text { max_bytes: 20_000 }),
    ];
    Ok(Schema::new(columns)?)
}

pub(super) fn number(value: i64) -> Value {
    Number::new(i128::from(value), 0).map_or(Value::Null, Value::Number)
}

fn text(length: usize) -> Value {
    Value::Text("abcdefghij".chars().cycle().take(length).collect())
}

pub(super) fn row(key: i64, length: usize) -> Vec<Value> {
    vec![number(key), text(1 + key as usize % 17), text(length)]
}

/// Rows of the loaded table. Every hundredth is longer than a block.
struct Rows {
    schema: Schema,
    next: AtomicUsize,
}

impl Rows {
    fn new() -> anyhow::Result<Rows> {
        let columns = vec![
            Column::required("K", ColumnType::NUMBER),
            Column::nullable("V", ColumnType::Text { max_bytes: 40 }),
            Column::nullable("W", ColumnType::Text { max_bytes: 20_000 }),
            Column::nullable("A", ColumnType::Date),
        ];
        Ok(Rows { schema: Schema::new(columns)?, next: AtomicUsize::new(0) })
    }
}

impl RowSource for Rows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(LOADED as u64)
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        let begin = self.next.fetch_add(100, Relaxed) as i64;
        for key in begin..(begin + 100).min(LOADED) {
            batch.begin_row(4);
            batch.push_number(i128::from(key * 7919 % LOADED), 0);
            batch.push_text(&format!("value {}", key % 97));
            match key % 100 {
                50 => batch.push_text(&"w".repeat(5000)),
                _ => batch.push_null(),
            }
            batch.push_null();
            batch.end_row();
        }
        Ok(!batch.is_empty())
    }
}
