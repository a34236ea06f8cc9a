//! Writes that never reached the disk: in their place is a whole block of an earlier operation.

use crate::support::{
    Rows, assert_green, build, create_in, in_memory, index_rows, load, memory_disk, open_in, scan_rows,
};
use plumb_engine::EngineError;
use plumb_engine::check::check_table;
use plumb_engine::drop::drop_named;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::Role;
use plumb_io::sim::Faults;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const BLOCK: usize = 2048;

/// Makes the same table twice and drops the first, so that blocks of the two differ only in their
/// LSN. Runs `what` at the end of each, with some blocks of `file` replaced by those of the first.
fn check(file: &str, what: impl Fn(&plumb_engine::Instance)) {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let path = home.join(file);
    let make = |instance: &plumb_engine::Instance| {
        load(instance, "t", &Rows::uniform(20_000, 5)).expect("loaded");
        build(instance).expect("built");
    };
    let instance =
        create_in(&home, &[("db_block_size", "2K"), ("parallel_degree", "1"), ("data_files", "1")]);
    make(&instance);
    let first = fs::read(&path).expect("a data file");
    drop_named(&instance, "t").expect("dropped");
    make(&instance);
    assert_green(&instance, "t");
    drop(instance);
    let mut bytes = fs::read(&path).expect("a data file");
    let lost = 5 * BLOCK..6 * BLOCK;
    assert_ne!(first[lost.clone()], bytes[lost.clone()]);
    bytes[lost.clone()].copy_from_slice(&first[lost]);
    fs::write(&path, bytes).expect("written");
    let instance = open_in(&home).expect("opened");
    let error = check_table(&instance, "t").expect_err("a write was lost").to_string();
    assert!(error.starts_with(&format!("{}: block 5 (file ", path.display())), "{error}");
    assert!(
        error.contains(" is corrupt: operation: found number ") && error.contains(", an earlier one, "),
        "{error}"
    );
    what(&instance);
}

/// Regression: the check passed a block of a dropped table of the same shape, left by a lost write,
/// and so did an index build.
#[test]
fn a_block_of_a_dropped_table_is_rejected() {
    check("users01.dbf", |instance| {
        drop_named(instance, "i").expect("dropped");
        let error = build(instance).expect_err("a build believes no such block").to_string();
        assert!(error.contains("is corrupt: operation: found number "), "{error}");
    });
}

#[test]
fn a_leaf_of_a_dropped_index_is_rejected() {
    check("indx01.dbf", |instance| {
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| index_rows(instance, "i")));
        assert!(read.is_err(), "a look-up believes no such leaf");
    });
}

/// A cached block is checked against its segment, as a block read from disk is.
#[test]
fn a_cached_block_of_a_dropped_table_is_rejected() {
    let instance = in_memory(&[("parallel_degree", "1")]);
    load(&instance, "t", &Rows::uniform(300, 1)).expect("loaded");
    let session = instance.recorder.session(Role::User);
    let table = instance.catalog().tables[0].clone();
    let address = table.extents[0].extent.address(0);
    let mut reader = plumb_engine::cache::CacheReader::new(&session, instance.caches());
    reader.get(Purpose::Users, address, table.expected()).expect("read");
    load(&instance, "u", &Rows::uniform(300, 1)).expect("loaded");
    let other = instance.catalog().tables[1].clone();
    let error = reader.get(Purpose::Users, address, other.expected()).expect_err("another's").to_string();
    assert!(
        error.contains("is corrupt: operation: found number 2, an earlier one, expected number 3"),
        "{error}"
    );
}

/// Loses each write of a load in turn, and checks the error.
#[test]
fn every_lost_write_of_a_load_is_found() {
    let make = || in_memory(&[("db_block_size", "2K"), ("parallel_degree", "1"), ("data_files", "1")]);
    let rows = Rows::uniform(20_000, 5);
    let instance = make();
    memory_disk(&instance).plan_faults(Faults::default());
    load(&instance, "t", &rows).expect("loaded");
    let (_, writes) = memory_disk(&instance).calls();
    let mut found = BTreeSet::new();
    for number in 1..=writes {
        for again in [false, true] {
            let instance = make();
            if again {
                load(&instance, "t", &rows).expect("loaded");
                drop_named(&instance, "t").expect("dropped");
            }
            memory_disk(&instance).plan_faults(Faults { lose_write: Some(number), ..Faults::default() });
            load(&instance, "t", &rows).expect("nobody is told");
            memory_disk(&instance).plan_faults(Faults::default());
            match check_table(&instance, "t") {
                // The lost write was of zeros, which were there already or were written over.
                Ok(_) => assert_eq!(scan_rows(&instance, "t").len(), 20_000),
                Err(EngineError::CorruptBlock { what, .. }) => drop(found.insert(what)),
                Err(error) => panic!("write {number}: {error}"),
            }
        }
    }
    assert!(found.contains("content"), "zeros: {found:?}");
}

/// Regression: the number of a killed build was given to the next one.
#[test]
fn numbers_of_operations_never_repeat() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let mut given = BTreeSet::new();
    let mut take = |instance: &plumb_engine::Instance, count: usize| {
        let session = instance.recorder.session(Role::User);
        for _ in 0..count {
            let lsn = instance.next_lsn(&session).expect("a number").0;
            assert!(given.insert(lsn), "{lsn} was given before");
            assert!(lsn < ceiling(&home), "{lsn} is reserved durably before it is given");
        }
    };
    take(&create_in(&home, &[]), 3000);
    // A killed process does no more than this: nothing is written at the end.
    for count in [0, 1, 1, 1500, 2] {
        take(&open_in(&home).expect("opened"), count);
    }
}

fn ceiling(home: &Path) -> u64 {
    plumb_engine::storage::control::Catalog::read(home).expect("a control file").lsn_ceiling
}
