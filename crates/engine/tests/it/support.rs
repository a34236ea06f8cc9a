//! Test databases, rows to fill them with, and ways to read them back.

use plumb_engine::cache::CacheReader;
use plumb_engine::index::btree::BTree;
use plumb_engine::index::build::{self, BuildOutcome, IndexSpec};
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::control::SegmentExtent;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::{self, LoadOutcome};
use plumb_engine::table::scan::{self, Granules};
use plumb_engine::{EngineError, Instance, Layout, Settings, check};
use plumb_events::{Cancel, Event, IoStream, Role};
use plumb_io::sim::MemoryDisk;
use plumb_io::{Arena, DirectIo, Disk, OpenMode, Operation, Request};
use plumb_types::{Column, ColumnType, Number, RowBatch, RowSource, Schema, SourceError, Value, column_at};
use plumb_units::{Bytes, RowId, SplitMix};
use std::cell::RefCell;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Rows in memory, taken a batch at a time by any number of servers.
pub struct Rows {
    schema: Schema,
    images: RowBatch,
    batch_rows: usize,
    next: AtomicUsize,
}

impl Rows {
    pub fn new(schema: Schema, images: RowBatch) -> Rows {
        Rows { schema, images, batch_rows: 1000, next: AtomicUsize::new(0) }
    }

    pub fn of_values(schema: Schema, rows: &[Vec<Value>]) -> Rows {
        Rows::new(schema, images(rows))
    }

    /// Makes rows of a NUMBER column K with the given values and a text column T.
    pub fn of_keys(keys: impl Iterator<Item = i64>) -> Rows {
        let mut images = RowBatch::new();
        for key in keys {
            images.begin_row(2);
            images.push_number(i128::from(key), 0);
            images.push_text("what a row has besides its key");
            images.end_row();
        }
        Rows::new(keyed_schema(), images)
    }

    /// Makes `count` rows with keys drawn from a billion.
    pub fn uniform(count: u64, seed: u64) -> Rows {
        let mut random = SplitMix(seed);
        Rows::of_keys((0..count).map(move |_| random.below(1_000_000_000) as i64))
    }

    /// Starts again from the first row, so that the rows can be loaded twice.
    pub fn rewind(&self) -> &Rows {
        self.next.store(0, Relaxed);
        self
    }
}

pub fn keyed_schema() -> Schema {
    let columns = vec![
        Column::nullable("K", ColumnType::NUMBER),
        Column::nullable("T", ColumnType::Text { max_bytes: 4000 }),
    ];
    Schema::new(columns).expect("two columns with names")
}

pub fn images(rows: &[Vec<Value>]) -> RowBatch {
    let mut images = RowBatch::new();
    for row in rows {
        images.begin_row(row.len() as u8);
        row.iter().for_each(|value| images.push_value(value));
        images.end_row();
    }
    images
}

pub fn number(value: i64) -> Value {
    Value::Number(Number::new(i128::from(value), 0).expect("an i64 is a NUMBER"))
}

impl RowSource for Rows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(self.images.len() as u64)
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        let begin = self.next.fetch_add(self.batch_rows, Relaxed);
        let end = (begin + self.batch_rows).min(self.images.len());
        (begin..end).for_each(|row| batch.push_row(self.images.row(row)));
        Ok(!batch.is_empty())
    }
}

/// Sets small extents and a small cache, so that little data reaches their ends too.
pub fn settings(changes: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    let small = [("extent_size", "256K"), ("db_cache_size", "2M"), ("parallel_degree", "2")];
    for (name, value) in small.iter().chain(changes) {
        settings.set(name, value, "test").expect("a setting in its range");
    }
    settings
}

/// Sizes that give one extent to each file.
pub const SMALLEST: InitialSizes = InitialSizes { users: Bytes(1), temp: Bytes(1), indx: Bytes(1) };

/// Makes a database of files in memory.
pub fn in_memory(changes: &[(&str, &str)]) -> Instance {
    let mut settings = settings(changes);
    settings.set("io_method", "null", "test").expect("there is a null device");
    let layout = Layout::in_one(PathBuf::from("/in/memory"));
    Instance::create(&layout, settings, SMALLEST, Cancel::default()).expect("a database in memory")
}

pub fn memory_disk(instance: &Instance) -> Arc<MemoryDisk> {
    match &instance.access.disk {
        Disk::Memory(disk) => Arc::clone(disk),
        _ => panic!("the test wants a database in memory"),
    }
}

/// Makes a database in a directory, through the page cache, which works on any file system.
pub fn create_in(home: &Path, changes: &[(&str, &str)]) -> Instance {
    try_create_in(home, changes).expect("a database in a directory of its own")
}

pub fn try_create_in(home: &Path, changes: &[(&str, &str)]) -> Result<Instance, EngineError> {
    Instance::create(&Layout::in_one(home.to_path_buf()), buffered(changes), SMALLEST, Cancel::default())
}

pub fn open_in(home: &Path) -> Result<Instance, EngineError> {
    Instance::open(home, buffered(&[]), Cancel::default())
}

fn buffered(changes: &[(&str, &str)]) -> Settings {
    let mut all = vec![("filesystemio_options", "none")];
    all.extend(changes);
    settings(&all)
}

pub fn load(instance: &Instance, table: &str, rows: &Rows) -> Result<LoadOutcome, EngineError> {
    load::load(instance, table, rows.rewind())
}

pub fn build_on(
    instance: &Instance,
    (name, table): (&str, &str),
    columns: &[(&str, bool)],
) -> Result<BuildOutcome, EngineError> {
    let columns = columns.iter().map(|(name, descending)| (name.to_string(), *descending)).collect();
    build::create_index(instance, &IndexSpec { name: name.to_string(), table: table.to_string(), columns })
}

/// Builds index I on column K of table T.
pub fn build(instance: &Instance) -> Result<BuildOutcome, EngineError> {
    build_on(instance, ("i", "t"), &[("k", false)])
}

/// Returns every row of a table, by a scan past the buffer cache.
pub fn scan_rows(instance: &Instance, table: &str) -> Vec<(RowId, Vec<Value>)> {
    let table = instance.catalog().table(table).expect("the table was loaded").clone();
    let session = instance.recorder.session(Role::User);
    let (operation, granules) = (instance.operation(), Granules::new(&table));
    let mut rows = Vec::new();
    scan::scan(instance, &session, &operation, &granules, |row, row_id| {
        let columns = table.schema.columns.iter().enumerate();
        let value = |(at, column): (usize, &Column)| {
            let bytes = column_at(row, at).expect("a column of the row");
            Value::from_encoded(&column.column_type, bytes).expect("a value of its column")
        };
        rows.push((row_id, columns.map(value).collect()));
        Ok(())
    })
    .expect("a scan of a table that was loaded");
    rows
}

/// Returns the row ids of an index in its order, through the buffer cache.
pub fn index_rows(instance: &Instance, index: &str) -> Vec<RowId> {
    let named = |known: &&plumb_engine::storage::control::Index| known.name.eq_ignore_ascii_case(index);
    let index = instance.catalog().indexes.iter().find(named).expect("the index was built").clone();
    let session = instance.recorder.session(Role::User);
    let blocks = RefCell::new(CacheReader::new(&session, instance.caches()));
    let tree = BTree::new(&index, instance.tablespace(Purpose::Indx), &blocks);
    let mut range = tree.range(Bound::Unbounded, Bound::Unbounded).expect("a way down");
    let mut rows = Vec::new();
    while let Some(entry) = range.next_entry().expect("a leaf") {
        rows.push(entry.row);
    }
    rows
}

/// Asserts that the check finds a table and its indexes intact.
pub fn assert_green(instance: &Instance, table: &str) {
    if let Err(error) = check::check_table(instance, table) {
        panic!("{table} is not as it must be: {error}");
    }
}

/// Asserts that the taken extents are those of the catalog's tables and indexes, with
/// none in the temporary tablespace.
pub fn assert_no_space_leaks(instance: &Instance) {
    let count =
        |segments: &[&Vec<SegmentExtent>]| segments.iter().map(|extents| extents.len()).sum::<usize>();
    for purpose in instance.tablespaces().iter().map(|tablespace| tablespace.purpose) {
        let owned = {
            let catalog = instance.catalog();
            let tables = catalog.tables.iter().filter(|table| table.tablespace == purpose);
            let indexes = catalog.indexes.iter().filter(|_| purpose == Purpose::Indx);
            let indexes = indexes.map(|index| count(&[&index.leaves, &index.branches])).sum::<usize>();
            tables.map(|table| table.extents.len()).sum::<usize>() + indexes
        };
        let taken = taken_extents(instance, purpose);
        assert_eq!(taken, owned, "extents of {} that are taken, and that have an owner", purpose.name());
    }
}

/// Counts the taken extents: allocates all free ones until the tablespace grows, and releases them.
fn taken_extents(instance: &Instance, purpose: Purpose) -> usize {
    let session = instance.recorder.session(Role::User);
    let tablespace = instance.tablespace(purpose);
    let size = tablespace.size();
    let mut extents = Vec::new();
    while tablespace.size() == size {
        extents.push(tablespace.allocate(&session, &instance.access).expect("an extent"));
    }
    let free = extents.len() - 1;
    tablespace.release(extents);
    (size.0 / tablespace.extent_blocks.bytes(tablespace.block_size)) as usize - free
}

/// Runs `work` in a thread of its own and fails if it takes too long. So a hang ends the test
/// and not the whole run.
pub fn within<T: Send + 'static>(seconds: u64, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    let worker = thread::spawn(move || {
        let result = work();
        // The receiver is gone if this took too long.
        let _ = done.send(());
        result
    });
    if finished.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
        panic!("not finished after {seconds} s: it hangs");
    }
    match worker.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Returns all bytes of a file in memory.
pub fn content(instance: &Instance, path: &Path) -> Vec<u8> {
    let session = instance.recorder.session(Role::User);
    let file = instance.access.disk.open(path, OpenMode::Read, DirectIo::Off).expect("a file");
    let length = file.length().expect("its length") as usize;
    let (_, mut buffers) = Arena::buffers((length + 1).next_multiple_of(4096), 1).expect("memory");
    let mut channel = instance.access.method.channel(&[]).expect("a channel");
    let buffer = buffers.remove(0);
    let request = Request {
        operation: Operation::ReadAtMost,
        file: Arc::new(file),
        offset: 0,
        range: 0..buffer.len(),
        buffer,
        event: Event::ExternalTableRead,
        stream: IoStream::FileReads,
        tag: 0,
    };
    channel.submit(&session, request).expect("submitted");
    let read = channel.wait(&session, Event::ExternalTableRead).expect("read");
    read.buffer[read.range].to_vec()
}
