//! Rows longer than a block: loaded in pieces, scanned, indexed, checked, fetched by row id.

use crate::support::{
    Rows, assert_green, assert_no_space_leaks, build_on, create_in, in_memory, load, number, open_in,
    scan_rows, settings,
};
use plumb_engine::settings::Setting;
use plumb_engine::table::fetch::RowFetcher;
use plumb_engine::table::heap::row_bytes_max;
use plumb_engine::{Instance, check::check_table};
use plumb_events::Role;
use plumb_types::{Column, ColumnType, Schema, Value};
use plumb_units::{BlockSize, RowId, SplitMix};
use std::path::Path;

/// Text columns of 4000 bytes each, of which a row may have all.
const TEXTS: usize = 8;

fn schema() -> Schema {
    let id = Column::required("ID", ColumnType::NUMBER);
    let text = |at: usize| Column::nullable(format!("T{at}"), ColumnType::Text { max_bytes: 4000 });
    Schema::new([id].into_iter().chain((0..TEXTS).map(text)).collect()).expect("columns with names")
}

/// A row with about so many bytes of text.
fn row(id: i64, bytes: usize) -> Vec<Value> {
    let part = |at: usize| {
        let length = bytes.saturating_sub(at * 4000).min(4000);
        if length == 0 { Value::Null } else { Value::Text(format!("{:<length$}", format!("{id}.{at}"))) }
    };
    [number(id)].into_iter().chain((0..TEXTS).map(part)).collect()
}

/// Short rows and long ones, as lengths of text are in sources: a long tail.
fn mixed(count: i64, longest: u64, seed: u64) -> Vec<Vec<Value>> {
    let mut random = SplitMix(seed);
    let mut length = move |id: i64| match random.below(10) {
        _ if id == 3 => longest as usize,
        0 => random.below(longest) as usize,
        1 | 2 => random.below(3000) as usize,
        _ => random.below(150) as usize,
    };
    (0..count).map(|id| row(id, length(id))).collect()
}

fn chained(instance: &Instance) -> u64 {
    instance.catalog().table("t").expect("it was loaded").chained_row_count
}

/// Loads the rows and holds scans, index and check against them.
fn check(instance: &Instance, rows: &[Vec<Value>]) {
    let loaded = load(instance, "t", &Rows::of_values(schema(), rows)).expect("loaded");
    assert_eq!(loaded.row_count, rows.len() as u64);
    let found = scan_rows(instance, "t");
    let mut values: Vec<&Vec<Value>> = found.iter().map(|(_, values)| values).collect();
    values.sort_by_key(|values| format!("{:?}", values[0]));
    let mut expected: Vec<&Vec<Value>> = rows.iter().collect();
    expected.sort_by_key(|values| format!("{:?}", values[0]));
    assert!(values == expected, "the rows of the source");
    let block_size = instance.tablespace(plumb_engine::storage::tablespace::Purpose::Users).block_size;
    let images = crate::support::images(rows);
    let longer = (0..images.len()).filter(|row| images.row(*row).len() > row_bytes_max(block_size)).count();
    assert_eq!((loaded.chained_row_count, chained(instance)), (longer as u64, longer as u64));
    build_on(instance, ("i", "t"), &[("id", false)]).expect("an index");
    build_on(instance, ("d", "t"), &[("id", true)]).expect("an index");
    assert_green(instance, "t");
    assert_no_space_leaks(instance);
}

#[test]
fn rows_of_any_length_come_back_whatever_the_block_size_and_the_degree() {
    for (block, degree, direct, seed) in [
        ("2K", "1", "true", 1),
        ("2K", "1", "false", 2),
        ("2K", "4", "true", 3),
        ("4K", "2", "true", 4),
        ("32K", "2", "true", 5),
    ] {
        let changes = [("db_block_size", block), ("parallel_degree", degree), ("serial_direct_read", direct)];
        let instance = in_memory(&changes);
        check(&instance, &mixed(3000, 30_000, seed));
        assert_eq!(chained(&instance) > 0, block != "32K", "{block}");
    }
}

#[test]
fn a_row_of_each_length_around_the_ends_of_blocks() {
    let room = row_bytes_max(BlockSize::new(2048).expect("a block size"));
    let lengths = (room - 40..room + 20).chain(2 * room - 40..2 * room + 20).chain(4000..4020);
    let rows: Vec<Vec<Value>> = lengths.enumerate().map(|(id, bytes)| row(id as i64, bytes)).collect();
    check(&in_memory(&[("db_block_size", "2K"), ("parallel_degree", "1")]), &rows);
}

#[test]
fn a_row_lies_within_an_extent_and_one_that_cannot_is_refused() {
    // Extents of 8 blocks: a row in 7 pieces fits hardly anywhere else than at the beginning of one.
    let changes = [("db_block_size", "2K"), ("debug_extent_blocks", "8"), ("parallel_degree", "2")];
    let instance = in_memory(&changes);
    check(&instance, &mixed(400, 11_000, 6));
    let refused = load(&instance, "u", &Rows::of_values(schema(), &[row(1, 20), row(2, 12_200)]));
    let refused = refused.expect_err("an extent has no room").to_string();
    let length = crate::support::images(&[row(2, 12_200)]).row(0).len();
    assert!(
        refused.starts_with(&format!(
            "a row of {length} bytes does not fit an extent of 16.0 KB: there is room for 12144; \
             create the database with a larger extent_size or db_block_size, or shorten the row: it begins with "
        )),
        "{refused}"
    );
    assert_no_space_leaks(&instance);
}

#[test]
fn rows_in_pieces_are_fetched_by_their_ids_in_any_order() {
    for (block, degree) in [("2K", "1"), ("2K", "4"), ("4K", "2")] {
        let instance = in_memory(&[("db_block_size", block), ("parallel_degree", degree)]);
        load(&instance, "t", &Rows::of_values(schema(), &mixed(600, 30_000, 8))).expect("loaded");
        assert!(chained(&instance) > 50, "{block}");
        let mut rows = scan_rows(&instance, "t");
        let mut random = SplitMix(9);
        (1..rows.len()).for_each(|place| rows.swap(place, random.below(place as u64 + 1) as usize));
        let session = instance.recorder.session(Role::User);
        let table = instance.catalog().table("t").expect("it was loaded").clone();
        let mut fetcher = RowFetcher::new(&instance, &session, &table).expect("a fetcher");
        // Batches of one row, of some, and of so many that blocks have several of them.
        for batch in [&rows[..1], &rows[1..40], &rows[40..]] {
            let ids: Vec<RowId> = batch.iter().map(|(row, _)| *row).collect();
            let fetched = fetcher.fetch(&ids).expect("the rows are there");
            assert!(fetched.iter().eq(batch.iter().map(|(_, values)| values)), "{block}, {} rows", ids.len());
        }
    }
}

#[test]
fn a_row_id_of_no_row_is_refused_with_it() {
    let instance = in_memory(&[("db_block_size", "2K")]);
    load(&instance, "t", &Rows::of_values(schema(), &[row(1, 20), row(2, 5000)])).expect("loaded");
    let session = instance.recorder.session(Role::User);
    let table = instance.catalog().table("t").expect("it was loaded").clone();
    let mut fetcher = RowFetcher::new(&instance, &session, &table).expect("a fetcher");
    let (first, _) = scan_rows(&instance, "t")[0];
    let missing = RowId::new(first.address(), 9);
    let refused = fetcher.fetch(&[first, missing]).expect_err("there are two rows").to_string();
    assert!(refused.contains(&missing.to_string()) && refused.contains("has no such row"), "{refused}");
}

#[test]
fn a_database_with_rows_in_pieces_is_opened_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    check(&create_in(&home, &[("db_block_size", "2K")]), &mixed(2000, 9000, 7));
    let instance = open_in(&home).expect("it is there");
    assert!(chained(&instance) > 100);
    check_table(&instance, "t").expect("and whole");
    let control = std::fs::read_to_string(Path::new(&home).join("control.json")).expect("text");
    assert!(control.contains("\"version\":4"), "programs that know no such rows refuse it");
}

#[test]
fn what_is_to_stay_free_stays_free() {
    let blocks = |percent: &str| {
        let instance = in_memory(&[("db_block_size", "2K"), ("pct_free", percent), ("parallel_degree", "1")]);
        assert_eq!(instance.settings.word(Setting::PctFree), percent);
        let rows: Vec<Vec<Value>> = (0..4000).map(|id| row(id, 60)).collect();
        let loaded = load(&instance, "t", &Rows::of_values(schema(), &rows)).expect("loaded");
        assert_green(&instance, "t");
        loaded.block_count
    };
    let (full, half) = (blocks("0"), blocks("50"));
    assert!(
        (19 * full / 10..22 * full / 10).contains(&half),
        "{full} blocks when full, {half} when half full"
    );
    assert!(settings(&[]).optional_number(Setting::PctFree).is_none(), "auto is the default");
}
