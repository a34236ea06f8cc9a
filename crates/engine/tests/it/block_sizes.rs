//! Tablespaces of several block sizes in one database and one log: tables, caches, recovery.

use crate::support::{
    Rows, assert_green, assert_no_space_leaks, build_on, images, keyed_schema, number, scan_rows,
};
use plumb_engine::backup::{self, Verification};
use plumb_engine::cache::BufferCache;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::control::Table;
use plumb_engine::storage::header::FileShape;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::{self, LoadTarget};
use plumb_engine::transaction::{IndexDefinition, Logging, Transactions};
use plumb_engine::{EngineError, Instance, Layout, Settings};
use plumb_events::{Cancel, PoolCounts, Role, Session, Statistic};
use plumb_io::sim::MemoryDisk;
use plumb_io::sim::power::Survivors;
use plumb_types::Value;
use plumb_units::{BlockSize, Bytes, Lsn};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const HOME: &str = "/in/memory/db";
const CACHES: [(&str, &str); 2] = [("db_2k_cache_size", "1M"), ("db_16k_cache_size", "1M")];

fn settings(more: &[(&str, &str)]) -> Settings {
    let mut all = Settings::default();
    let small = [
        ("debug_extent_blocks", "8"),
        ("data_files", "2"),
        ("log_file_size", "8M"),
        ("log_buffer", "256K"),
        ("filesystemio_options", "none"),
        ("parallel_degree", "2"),
    ];
    for (name, value) in small.iter().chain(more) {
        all.set(name, value, "the test").expect("in range");
    }
    all
}

const SIZES: InitialSizes =
    InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 20) };

fn create(home: &Path, more: &[(&str, &str)]) -> Result<Instance, EngineError> {
    Instance::create(&Layout::in_one(home.to_path_buf()), settings(more), SIZES, Cancel::default())
}

fn open(home: &Path, more: &[(&str, &str)]) -> Result<Instance, EngineError> {
    Instance::open(home, settings(more), Cancel::default())
}

fn create_on(disk: &Arc<MemoryDisk>) -> Instance {
    Instance::create_on(disk, Path::new(HOME), settings(&CACHES), SIZES).expect("a database")
}

fn open_on(disk: &Arc<MemoryDisk>) -> Instance {
    Instance::open_on(disk, Path::new(HOME), settings(&CACHES)).expect("opened")
}

fn size(bytes: u64) -> BlockSize {
    BlockSize::new(bytes).expect("a block size")
}

fn tablespace(instance: &Instance, session: &Session, bytes: u64) -> Purpose {
    instance.tablespace_of(session, size(bytes), Bytes(0)).expect("a tablespace")
}

/// Makes a row of the key, followed by a text of `letters` letters.
fn row(key: i64, letters: usize) -> Vec<Value> {
    vec![number(key), Value::Text("x".repeat(letters))]
}

fn index(table: &str) -> IndexDefinition {
    IndexDefinition { name: format!("{table}_K"), columns: vec![("K".into(), false)], unique: true }
}

/// Makes tables of each block size, with rows that fill several blocks,
/// some updated and some deleted.
fn fill(transactions: &Transactions<'_>, session: &Session, tables: &[(&str, Purpose)]) {
    for (name, tablespace) in tables {
        let indexes = [index(name)];
        transactions
            .create_table_in(session, (name, *tablespace), &keyed_schema(), &indexes)
            .expect("a table");
        let mut connection = transactions.connect(session);
        let mut transaction = connection.begin();
        let rows: Vec<Vec<Value>> = (0..300).map(|key| row(key, 60 + key as usize)).collect();
        let ids = transaction.insert_rows(name, &images(&rows)).expect("inserted");
        for id in &ids[..100] {
            transaction
                .update(name, *id, |values| values[1] = Value::Text("y".repeat(700)))
                .expect("updated");
        }
        ids[200..].iter().for_each(|id| transaction.delete(name, *id).expect("deleted"));
        transaction.commit().expect("committed");
    }
}

/// Asserts that these rows exist and that the index has them.
fn require_filled(instance: &Instance, tables: &[&str]) {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session).expect("opened");
    for name in tables {
        let found = transactions.check(&session, name).expect("the index agrees");
        assert_eq!((found.row_count, found.entry_count), (200, 200), "{name}");
    }
}

#[test]
fn one_log_recovers_tables_of_three_block_sizes() {
    let disk = MemoryDisk::with_power(3);
    let instance = create_on(&disk);
    let session = instance.recorder.session(Role::User);
    let (small, large) = (tablespace(&instance, &session, 2048), tablespace(&instance, &session, 16_384));
    assert_eq!((small, large), (Purpose::Users2K, Purpose::Users16K));
    let transactions = Transactions::open(&instance, &session).expect("a log");
    fill(&transactions, &session, &[("SMALL", small), ("OWN", Purpose::Users), ("LARGE", large)]);
    // A transaction that has not ended at the loss of power.
    let mut connection = transactions.connect(&session);
    let mut open = connection.begin();
    for name in ["SMALL", "OWN", "LARGE"] {
        open.insert_rows(name, &images(&[row(1000, 10)])).expect("inserted");
    }
    for survivors in [Survivors::None, Survivors::All, Survivors::Random(7)] {
        let found = open_on(&disk.restart(survivors));
        require_filled(&found, &["SMALL", "OWN", "LARGE"]);
        let caches = found.caches();
        let cached = |purpose| caches.of(purpose).expect("a cache").cached_blocks(purpose);
        assert!([small, Purpose::Users, large].into_iter().all(|purpose| cached(purpose) > 0));
        // Each cache counts its own work, and all of them that of the sessions.
        let counts: Vec<PoolCounts> = caches.iter().map(BufferCache::counts).collect();
        assert!(counts.iter().filter(|counts| counts.gets > 0).count() >= 3, "{counts:?}");
        let snapshot = found.recorder.snapshot();
        let sum = |of: fn(&PoolCounts) -> u64| counts.iter().map(of).sum::<u64>();
        assert_eq!(sum(|counts| counts.gets), snapshot.statistic(Statistic::LogicalReads));
        assert_eq!(sum(|counts| counts.hits), snapshot.statistic(Statistic::CacheHits));
        for cache in caches.iter() {
            let census = cache.census();
            assert!(census.iter().all(|row| row.blocks == cache.cached_blocks(row.purpose)), "{census:?}");
            assert!(census.iter().map(|row| row.blocks).sum::<u64>() <= cache.options().frame_count as u64);
        }
    }
}

/// Sessions carry the writes of a checkpoint for all caches; the cache of 2K has never been
/// used and has no memory.
#[test]
fn a_checkpoint_skips_a_cache_never_used() {
    let instance = create_on(&MemoryDisk::with_power(3));
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    fill(&transactions, &session, &[("OWN", Purpose::Users)]);
    let changed = instance.caches().changed();
    while !changed.are_written(Lsn(u64::MAX)) {
        changed.write_some(&session, Lsn(u64::MAX)).expect("written");
    }
    assert!(instance.caches().iter().any(|cache| cache.memory().is_none()));
}

#[test]
fn a_loaded_table_has_the_blocks_of_its_tablespace() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let instance = create(&home, &CACHES).expect("a database");
    let session = instance.recorder.session(Role::User);
    let rows: Vec<Vec<Value>> =
        (0..2000).map(|key| row(key, if key % 50 == 0 { 3500 } else { 80 })).collect();
    for (name, bytes, chained) in [("SMALL", 2048, 40), ("OWN", 8192, 0), ("LARGE", 16_384, 0)] {
        let purpose = tablespace(&instance, &session, bytes);
        let target = LoadTarget { table: name, tablespace: purpose, log: None };
        let loaded = load::load_into(&instance, &session, target, &Rows::of_values(keyed_schema(), &rows))
            .expect("loaded");
        assert_eq!((loaded.row_count, loaded.chained_row_count), (2000, chained), "{name}");
        assert!(loaded.row_bytes.div_ceil(bytes) <= loaded.block_count, "{name}");
        assert!(loaded.block_count < 2 * loaded.row_bytes.div_ceil(bytes), "{name}: {}", loaded.block_count);
        build_on(&instance, (&format!("{name}_K"), name), &[("K", false)]).expect("an index");
        assert_green(&instance, name);
        for file in &instance.tablespace(purpose).files {
            assert_eq!(FileShape::read(file.file.path()).expect("a data file").block_bytes, bytes);
        }
    }
    drop((session, instance));
    // The same tables are there after opening again.
    let instance = open(&home, &CACHES).expect("opened");
    for name in ["SMALL", "OWN", "LARGE"] {
        assert_green(&instance, name);
        assert_eq!(scan_rows(&instance, name).len(), 2000);
    }
    assert_no_space_leaks(&instance);
    plumb_engine::drop::drop_named(&instance, "SMALL").expect("dropped");
    let target = LoadTarget { table: "AGAIN", tablespace: Purpose::Users2K, log: None };
    load::load_into(
        &instance,
        &instance.recorder.session(Role::User),
        target,
        &Rows::of_values(keyed_schema(), &rows),
    )
    .expect("the space is free");
}

#[test]
fn a_table_as_select_has_the_rows_of_its_source() {
    let rows: Vec<Vec<Value>> =
        (0..3000).map(|key| row(key, if key % 60 == 0 { 5000 } else { 90 })).collect();
    for (degree, direct) in [("1", "false"), ("1", "true"), ("3", "true")] {
        let directory = tempfile::tempdir().expect("a directory");
        let changes = [CACHES[0], CACHES[1], ("parallel_degree", degree), ("serial_direct_read", direct)];
        let instance = create(&directory.path().join("db"), &changes).expect("a database");
        let session = instance.recorder.session(Role::User);
        load::load(&instance, "SOURCE", &Rows::of_values(keyed_schema(), &rows)).expect("loaded");
        for bytes in [2048, 16_384] {
            let name = format!("COPY_{bytes}");
            let target =
                LoadTarget { table: &name, tablespace: tablespace(&instance, &session, bytes), log: None };
            let made = load::create_as_select(&instance, &session, target, "SOURCE").expect("made");
            assert_eq!((made.row_count, made.chained_row_count), (3000, if bytes == 2048 { 50 } else { 0 }));
            let sorted = |table: &str| {
                let mut rows: Vec<String> = scan_rows(&instance, table)
                    .into_iter()
                    .map(|(_, values)| format!("{values:?}"))
                    .collect();
                rows.sort();
                rows
            };
            assert!(sorted(&name) == sorted("SOURCE"), "the rows of the source: {degree} {direct} {bytes}");
            let columns = |table: &Table| table.column_statistics.clone();
            let catalog = instance.catalog();
            assert_eq!(
                columns(catalog.table(&name).expect("there")),
                columns(catalog.table("SOURCE").expect("there"))
            );
        }
        let target = LoadTarget { table: "NONE", tablespace: Purpose::Users, log: None };
        let missing = load::create_as_select(&instance, &session, target, "NOBODY")
            .expect_err("no such table")
            .to_string();
        assert!(missing.starts_with("there is no table NOBODY in this database"), "{missing}");
    }
}

#[test]
fn blocks_without_a_cache_are_refused_with_its_setting() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let instance = create(&home, &CACHES[..1]).expect("a database");
    let session = instance.recorder.session(Role::User);
    let refused = |bytes: u64| instance.tablespace_of(&session, size(bytes), Bytes(0)).expect_err("no cache");
    assert_eq!(
        refused(16_384).to_string(),
        "tablespace USERS_16K has blocks of 16K, for which there is no buffer cache; set db_16k_cache_size, for example to 4M"
    );
    assert_eq!(instance.tablespaces().iter().count(), 3, "nothing was made");
    let small = tablespace(&instance, &session, 2048);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    fill(&transactions, &session, &[("SMALL", small)]);
    drop(transactions);
    drop((session, instance));
    // A database with such a table opens, but its transactions do not.
    let instance = open(&home, &[]).expect("opened");
    let session = instance.recorder.session(Role::User);
    let refused = Transactions::open(&instance, &session).expect_err("no cache").to_string();
    assert!(refused.ends_with("set db_2k_cache_size, for example to 4M"), "{refused}");
    drop((session, instance));
    require_filled(&open(&home, &CACHES).expect("opened"), &["SMALL"]);
}

#[test]
fn a_second_cache_for_the_own_block_size_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let both = [("db_8k_cache_size", "4M")];
    let text = "db_8k_cache_size=4m contradicts db_block_size=8K: db_cache_size is the cache for these blocks; set that, and \
                leave this one out";
    assert_eq!(create(&home, &both).expect_err("refused").to_string(), text);
    assert!(!home.exists(), "nothing was made");
    drop(create(&home, &[]).expect("a database"));
    assert_eq!(open(&home, &both).expect_err("refused").to_string(), text);
}

#[test]
fn a_tablespace_whose_maker_was_killed_is_made_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let instance = create(&home, &CACHES).expect("a database");
    let session = instance.recorder.session(Role::User);
    tablespace(&instance, &session, 2048);
    drop((session, instance));
    // The state after a kill when the control file has the tablespace and its
    // second file is not made.
    fs::remove_file(home.join("users_2k02.dbf")).expect("there");
    {
        let reader = Instance::open_to_read(&home, settings(&CACHES), Cancel::default()).expect("read");
        let mut unusable = reader.tablespaces().iter().flat_map(|tablespace| &tablespace.unusable);
        assert!(unusable.next().is_none(), "nothing lies in it, so nothing is damaged");
    }
    let instance = open(&home, &CACHES).expect("opened");
    let rows: Vec<Vec<Value>> = (0..2000).map(|key| row(key, 100)).collect();
    let target = LoadTarget { table: "T", tablespace: Purpose::Users2K, log: None };
    load::load_into(
        &instance,
        &instance.recorder.session(Role::User),
        target,
        &Rows::of_values(keyed_schema(), &rows),
    )
    .expect("loaded");
    assert_eq!(instance.tablespace(Purpose::Users2K).files.len(), 2);
    assert_green(&instance, "T");
}

#[test]
fn a_file_where_a_tablespace_goes_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let instance = create(&home, &CACHES).expect("a database");
    let session = instance.recorder.session(Role::User);
    let file = home.join("users_2k02.dbf");
    fs::write(&file, "somebody's").expect("written");
    let refused = instance.tablespace_of(&session, size(2048), Bytes(0)).expect_err("in the way").to_string();
    assert_eq!(
        refused,
        format!("{} exists already: choose another name, or remove it first", file.display())
    );
    assert_eq!(fs::read(&file).expect("there"), b"somebody's");
    assert!(!home.join("users_2k01.dbf").exists());
    fs::remove_file(&file).expect("there");
    tablespace(&instance, &session, 2048);
}

#[test]
fn blocks_larger_than_the_open_log_allows_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let instance = create(&home, &CACHES).expect("a database");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let refused = instance.tablespace_of(&session, size(16_384), Bytes(0)).expect_err("refused").to_string();
    assert!(refused.ends_with("make the tablespace before they are opened"), "{refused}");
    let small = tablespace(&instance, &session, 2048);
    fill(&transactions, &session, &[("SMALL", small)]);
}

/// Simulates the copy of a backup during a load with redo: older data files with
/// a newer catalog and log.
#[test]
fn a_load_with_redo_is_redone_from_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let changes = [CACHES[0], CACHES[1], ("force_logging", "on")];
    let instance = create(&home, &changes).expect("a database");
    let session = instance.recorder.session(Role::User);
    let small = tablespace(&instance, &session, 2048);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let saved = directory.path().join("saved");
    backup::backup(&instance, Some(&transactions), &session, &saved, Verification::Blocks)
        .expect("backed up");
    let rows: Vec<Vec<Value>> =
        (0..1000).map(|key| row(key, if key % 50 == 0 { 3500 } else { 80 })).collect();
    let log = transactions.log_of_load(Logging::NoLogging);
    assert!(log.is_some(), "force_logging is on");
    for (table, tablespace) in [("SMALL", small), ("OWN", Purpose::Users)] {
        let target = LoadTarget { table, tablespace, log };
        load::load_into(&instance, &session, target, &Rows::of_values(keyed_schema(), &rows))
            .expect("loaded");
    }
    drop(transactions);
    drop((session, instance));
    {
        let recorder = plumb_events::Recorder::new();
        backup::restore(&recorder.session(Role::User), &Cancel::default(), &saved, &copy).expect("restored");
    }
    for file in fs::read_dir(&home).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        let is_of_log = file.extension().is_some_and(|end| end == "log");
        if is_of_log || file.ends_with("control.json") {
            fs::copy(&file, copy.join(file.file_name().expect("a name"))).expect("copied");
        }
    }
    let lengthen = |name: &str| {
        let length = fs::metadata(home.join(name)).expect("there").len();
        fs::OpenOptions::new()
            .write(true)
            .open(copy.join(name))
            .expect("there")
            .set_len(length)
            .expect("grown");
    };
    ["users01.dbf", "users02.dbf", "users_2k01.dbf", "users_2k02.dbf"].into_iter().for_each(lengthen);
    fs::remove_dir_all(&home).expect("the original is gone");
    let instance = open(&copy, &changes).expect("opened");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("recovered");
    assert!(transactions.recovered().block_count > 0);
    for table in ["SMALL", "OWN"] {
        assert_green(&instance, table);
        assert_eq!(scan_rows(&instance, table).len(), 1000);
    }
}

#[test]
fn archiving_forcing_and_the_load_decide_its_logging() {
    for (archive, force, asked, logged) in [
        ("off", "off", Logging::Logging, false),
        ("off", "off", Logging::NoLogging, false),
        ("off", "on", Logging::NoLogging, true),
        ("on", "off", Logging::Logging, true),
        ("on", "off", Logging::NoLogging, false),
        ("on", "on", Logging::NoLogging, true),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let changes =
            [("archive_log_mode", archive), ("archive_log_dest", "archive"), ("force_logging", force)];
        let instance = create(&directory.path().join("db"), &changes).expect("a database");
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        let log = transactions.log_of_load(asked);
        assert_eq!(log.is_some(), logged, "{archive} {force} {asked:?}");
        let target = LoadTarget { table: "T", tablespace: Purpose::Users, log };
        let before = instance.recorder.snapshot();
        let rows: Vec<Vec<Value>> = (0..3000).map(|key| row(key, 100)).collect();
        let loaded = load::load_into(&instance, &session, target, &Rows::of_values(keyed_schema(), &rows))
            .expect("loaded");
        let period = instance.recorder.snapshot().since(&before);
        let redo = period.statistic(plumb_events::Statistic::RedoDirectBytes);
        let bytes = loaded.block_count * 8192;
        assert!(
            if logged { redo > bytes && redo < bytes + bytes / 50 } else { redo == 0 },
            "{redo} of {bytes}"
        );
        assert_green(&instance, "T");
    }
}
