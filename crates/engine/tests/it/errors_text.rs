//! The exact words of errors that users meet; `{}` stands for paths and rows.

use crate::support::{
    Rows, SMALLEST, assert_no_space_leaks, build_on, create_in, in_memory, keyed_schema, load, number,
    open_in,
};
use plumb_engine::drop::drop_named;
use plumb_engine::index::block::key_bytes_max;
use plumb_engine::table::load as table_load;
use plumb_engine::{EngineError, Instance, Layout, Settings, check::check_table};
use plumb_events::Cancel;
use plumb_types::{RowBatch, RowSource, Schema, SourceError, Value};
use std::fmt::Debug;
use std::path::Path;

fn check<T: Debug>(result: Result<T, EngineError>, expected: &str) {
    let text = result.expect_err("an error").to_string();
    assert_eq!(text, expected);
}

fn one_row(text: String) -> Rows {
    Rows::of_values(
        keyed_schema(),
        &[vec![number(1), Value::Text("ü".to_string())], vec![number(-25), Value::Text(text)]],
    )
}

#[test]
fn a_row_that_does_not_fit_an_extent() {
    let fits = 2048 - 24 - 2 - 3 - 4 - 3;
    let instance =
        in_memory(&[("db_block_size", "2K"), ("debug_extent_blocks", "2"), ("parallel_degree", "1")]);
    load(&instance, "fits", &one_row("x".repeat(fits))).expect("to the last byte of a block");
    check(
        load(&instance, "t", &one_row("x".repeat(fits + 1))),
        "a row of 2023 bytes does not fit an extent of 4.00 KB: there is room for 0; create the \
         database with a larger extent_size or db_block_size, or shorten the row: it begins with >Lf, xxxxxxxxxxxxxxxxxxxx",
    );
    assert_eq!(instance.catalog().tables.len(), 1);
    assert_no_space_leaks(&instance);
}

#[test]
fn an_index_key_that_is_too_long() {
    for (block, name) in [(2048, "2K"), (8192, "8K"), (32_768, "32K")] {
        for degree in ["1", "2"] {
            let instance =
                in_memory(&[("db_block_size", name), ("parallel_degree", degree), ("sort_area_size", "1M")]);
            let limit = key_bytes_max(block);
            load(&instance, "t", &one_row("x".repeat(limit + 1))).expect("loaded");
            let row = format!("file 1 block 1 slot {}", 1);
            let expected = format!(
                "an index key of {} bytes at {row} is too long: a block of {block} bytes takes keys of up to {limit}; \
                 index fewer or shorter columns, or use a larger db_block_size",
                limit + 1
            );
            check(build_on(&instance, ("i", "t"), &[("t", false)]), &expected);
            assert!(instance.catalog().indexes.is_empty());
            assert_no_space_leaks(&instance);
        }
    }
}

/// The limit is exact: two of the longest keys fit a branch.
#[test]
fn the_longest_keys_are_indexed_in_every_block_size() {
    for (block, name) in [(2048, "2K"), (4096, "4K"), (8192, "8K"), (16_384, "16K"), (32_768, "32K")] {
        let limit = key_bytes_max(block);
        let row = |row: i64| vec![number(row), Value::Text(format!("{row:0>limit$}"))];
        let rows: Vec<Vec<Value>> = (0..60).map(|at| row(at * 37 % 60)).collect();
        let instance =
            in_memory(&[("db_block_size", name), ("sort_area_size", "256K"), ("sort_read_fac", "5")]);
        load(&instance, "t", &Rows::of_values(keyed_schema(), &rows)).expect("loaded");
        let index = build_on(&instance, ("i", "t"), &[("t", false)]).expect("built").index;
        assert!(index.height >= 4, "{index:?}");
        check_table(&instance, "t").expect("green");
    }
}

#[test]
fn key_ranges_of_different_heights_are_joined() {
    let limit = key_bytes_max(2048);
    // The lower half has the longest keys, the upper half short ones.
    let row = |row: i64| {
        let key = if row < 200 { format!("{row:0>limit$}") } else { format!("x{row:04}") };
        vec![number(row), Value::Text(key)]
    };
    let rows: Vec<Vec<Value>> = (0..400).map(|at| row(at * 37 % 400)).collect();
    for degree in ["1", "2", "5"] {
        let instance = in_memory(&[
            ("db_block_size", "2K"),
            ("sort_area_size", "256K"),
            ("sort_read_fac", "5"),
            ("parallel_degree", degree),
        ]);
        load(&instance, "t", &Rows::of_values(keyed_schema(), &rows)).expect("loaded");
        let index = build_on(&instance, ("i", "t"), &[("t", false)]).expect("built").index;
        assert!(index.height >= 7, "degree {degree}: {index:?}");
        check_table(&instance, "t").expect("green");
    }
}

#[test]
fn a_table_index_or_column_that_is_not_there() {
    let instance = in_memory(&[]);
    let on = |table, column: &str| build_on(&instance, ("i", table), &[(column, false)]);
    check(on("sales", "k"), "there is no table sales in this database; it has none");
    check(check_table(&instance, "sales"), "there is no table sales in this database; it has none");
    check(drop_named(&instance, "x"), "there is no table or index X in this database; it has none");
    load(&instance, "t", &Rows::uniform(10, 1)).expect("loaded");
    load(&instance, "u", &Rows::uniform(10, 1)).expect("loaded");
    on("t", "k").expect("built");
    check(drop_named(&instance, "x"), "there is no table or index X in this database; it has T, U, I");
    check(
        build_on(&instance, ("j", "sales"), &[("k", false)]),
        "there is no table sales in this database; it has T, U",
    );
    check(
        build_on(&instance, ("j", "t"), &[("k", false), ("price", false)]),
        "there is no column price in table T in this database; it has K, T",
    );
    check(
        build_on(&instance, ("j", "t"), &[]),
        "there is no column for the key in this database; it has K, T",
    );
}

fn create(home: &Path, changes: &[(&str, &str)]) -> Result<Instance, EngineError> {
    let mut settings = Settings::default();
    for (name, value) in changes {
        settings.set(name, value, "--set")?;
    }
    Instance::create(&Layout::in_one(home.to_path_buf()), settings, SMALLEST, Cancel::default())
}

#[test]
fn settings_that_contradict_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused =
        |changes: &[(&str, &str)], expected: &str| check(create(directory.path(), changes), expected);
    for method in ["threads", "io_uring"] {
        refused(
            &[("io_method", method), ("filesystemio_options", "none")],
            &format!(
                "io_method={method} contradicts filesystemio_options=none: that option means one request at a time; \
                 set filesystemio_options to asynch or setall, or io_method to sync or auto"
            ),
        );
    }
    refused(
        &[("io_method", "sync"), ("filesystemio_options", "asynch")],
        "io_method=sync contradicts filesystemio_options=asynch: sync is one request at a time; set \
         filesystemio_options to none or directio, or io_method to auto",
    );
    let instance = in_memory(&[("db_block_size", "32K"), ("sort_area_size", "127K")]);
    load(&instance, "t", &Rows::uniform(10, 1)).expect("loaded");
    check(
        build_on(&instance, ("i", "t"), &[("k", false)]),
        "sort_area_size=127K contradicts db_block_size=32K: a merge needs 4 blocks; set sort_area_size to at least 128K",
    );
    assert_no_space_leaks(&instance);
}

#[test]
fn settings_out_of_range_or_unknown() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |name, value, expected: &str| check(create(directory.path(), &[(name, value)]), expected);
    refused(
        "db_block_size",
        "3K",
        "--set: db_block_size = 3K is out of range: it takes one of 2K, 4K, 8K, 16K, 32K",
    );
    refused(
        "parallel_degree",
        "65",
        "--set: parallel_degree = 65 is out of range: it takes auto, or a number from 1 to 64; it is above the upper end, 64",
    );
    refused("data_files", "0", "--set: data_files = 0 is out of range: it takes a number from 1 to 64");
    refused(
        "sort_direct_writes",
        "maybe",
        "--set: sort_direct_writes = maybe is out of range: it takes one of auto, true, false",
    );
    refused(
        "db_cache_size",
        "512K",
        "--set: db_cache_size = 512K is out of range: it takes a size from 1M to 1T",
    );
    refused(
        "sort_area_sizes",
        "1M",
        "--set: there is no setting sort_area_sizes (did you mean sort_area_size?)",
    );
}

#[test]
fn a_database_that_is_there_already_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let shown = home.display();
    check(open_in(&home), &format!("there is no database in {shown}: check the spelling, or make one"));
    assert!(!home.exists(), "an open makes nothing");
    drop(create_in(&home, &[]));
    check(
        create(&home, &[]),
        &format!("database {shown} exists already: choose another name, or remove it first"),
    );
}

/// A source that fails after some rows.
struct Broken(Schema, std::sync::atomic::AtomicU64);

impl RowSource for Broken {
    fn schema(&self) -> &Schema {
        &self.0
    }

    fn row_count_hint(&self) -> Option<u64> {
        None
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 5 {
            return Err("sales.csv: line 5001 has 2 columns, expected 3".into());
        }
        for key in 0..1000 {
            batch.begin_row(2);
            batch.push_number(key, 0);
            batch.push_null();
            batch.end_row();
        }
        Ok(true)
    }
}

#[test]
fn a_source_that_fails_says_what_it_says() {
    for degree in ["1", "4"] {
        let instance = in_memory(&[("parallel_degree", degree)]);
        check(
            table_load::load(&instance, "t", &Broken(keyed_schema(), 0.into())),
            "sales.csv: line 5001 has 2 columns, expected 3",
        );
        assert!(instance.catalog().tables.is_empty());
        assert_no_space_leaks(&instance);
    }
}
