//! Files that fail on purpose, at one place after the other.
//!
//! Faults that must be survived: a failed read or write, a full disk, short and interrupted
//! transfers. Surviving means: one line that names file and offset, nothing half-made, no extent
//! lost, and the same operation succeeds once the cause is gone. After a failed write of the
//! database writer the cache stays closed; then every use of it must report that.

use crate::support::{
    Rows, assert_green, assert_no_space_leaks, build, build_on, in_memory, index_rows, load, memory_disk,
    within,
};
use plumb_engine::check::check_table;
use plumb_engine::drop::drop_named;
use plumb_engine::{EngineError, Instance};
use plumb_io::sim::Faults;
use plumb_types::Value;

const SEED: u64 = 11;
const ROWS: u64 = 30_000;
/// Most places tried of each kind.
const PLACES: u64 = 45;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    Load,
    Build,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Failing {
    Read,
    Write,
}

const SMALL_BLOCKS: [(&str, &str); 6] = [
    ("db_block_size", "4K"),
    ("sort_area_size", "64K"),
    ("sort_write_buffer_size", "32K"),
    ("sort_read_fac", "5"),
    ("db_cache_size", "1M"),
    ("db_file_multiblock_read_count", "8"),
];

fn instance_for(work: Work, settings: &[(&str, &str)]) -> Instance {
    let instance = in_memory(&[&SMALL_BLOCKS[..], settings].concat());
    if work == Work::Build {
        load(&instance, "t", &Rows::uniform(ROWS, SEED)).expect("loaded");
    }
    instance
}

fn run(work: Work, instance: &Instance) -> Result<(), EngineError> {
    match work {
        Work::Load => load(instance, "t", &Rows::uniform(ROWS, SEED)).map(|_| ()),
        Work::Build => build(instance).map(|_| ()),
    }
}

fn assert_nothing_half_made(work: Work, instance: &Instance) {
    {
        let catalog = instance.catalog();
        assert!(catalog.indexes.is_empty());
        assert_eq!(catalog.tables.len(), usize::from(work == Work::Build));
    }
    assert_no_space_leaks(instance);
}

/// Fails each of many transfers in turn.
fn check(work: Work, failing: Failing, settings: &'static [(&'static str, &'static str)]) {
    within(120, move || {
        let instance = instance_for(work, settings);
        memory_disk(&instance).plan_faults(Faults::default());
        run(work, &instance).expect("nothing fails yet");
        let (reads, writes) = memory_disk(&instance).calls();
        let calls = if failing == Failing::Read { reads } else { writes };
        assert!(calls > 0);
        let places = calls.min(PLACES);
        let mut failures = 0;
        for place in 1..=places {
            let place = 1 + (place - 1) * calls / places;
            let failed = check_place((work, failing, place), settings);
            failures += u64::from(failed);
        }
        // The number of requests varies a little from run to run, because threads share the work.
        assert!(failures * 10 >= places * 8, "{failures} of {places} places failed");
    });
}

fn check_place((work, failing, place): (Work, Failing, u64), settings: &[(&str, &str)]) -> bool {
    // A new database each time: its files are short, so that they grow at some places.
    let instance = &instance_for(work, settings);
    let what = format!("{work:?} with {failing:?} number {place} failing, {settings:?}");
    let disk = memory_disk(instance);
    disk.plan_faults(match failing {
        Failing::Read => Faults { fail_read: Some(place), ..Faults::default() },
        Failing::Write => Faults { fail_write: Some(place), ..Faults::default() },
    });
    let result = run(work, instance);
    let (reads, writes) = disk.calls();
    disk.plan_faults(Faults::default());
    let Err(error) = result else {
        let calls = if failing == Failing::Read { reads } else { writes };
        assert!(calls < place, "{what}: the failure was passed over");
        return false;
    };
    assert_names_the_place(&error, failing, &what);
    assert_nothing_half_made(work, instance);
    match run(work, instance) {
        Ok(()) => {
            if !matches!(error, EngineError::WriterFailed { .. }) {
                assert_green(instance, "t");
            }
        }
        Err(again) => {
            assert!(matches!(again, EngineError::WriterFailed { .. }), "{what}: then {again}");
            assert!(matches!(error, EngineError::WriterFailed { .. }), "{what}: {error}, then {again}");
            assert_eq!(again.to_string(), error.to_string());
            assert_nothing_half_made(work, instance);
        }
    }
    true
}

fn assert_names_the_place(error: &EngineError, failing: Failing, what: &str) {
    let text = error.to_string();
    let verb = if failing == Failing::Read { "read of " } else { "write of " };
    assert_eq!(text.lines().count(), 1, "{what}: {text}");
    for part in [verb, " bytes at offset ", " of /in/memory/", ".dbf failed: Input/output error"] {
        assert!(text.contains(part), "{what}: {part:?} is not in {text}");
    }
}

/// The disk silently loses a write: the block is zeros, or has its earlier content.
#[test]
fn a_lost_write_of_a_build_is_found() {
    within(120, || {
        // One file, so that a second build writes to the same place as the first one.
        let settings = [("parallel_degree", "1"), ("sort_direct_writes", "true"), ("data_files", "1")];
        let counted = instance_for(Work::Build, &settings);
        memory_disk(&counted).plan_faults(Faults::default());
        run(Work::Build, &counted).expect("nothing fails yet");
        let (_, writes) = memory_disk(&counted).calls();
        let (mut merges, mut checks, mut earlier) = (0, 0, 0);
        for place in 1..=writes {
            let instance = instance_for(Work::Build, &settings);
            if place % 2 == 0 {
                // The earlier content is then a block of an earlier build, which is intact.
                run(Work::Build, &instance).expect("nothing fails yet");
                drop_named(&instance, "i").expect("dropped");
            }
            memory_disk(&instance).plan_faults(Faults { lose_write: Some(place), ..Faults::default() });
            let built = run(Work::Build, &instance);
            memory_disk(&instance).plan_faults(Faults::default());
            match built {
                Err(error) => {
                    merges += 1;
                    earlier += u64::from(error.to_string().contains("an earlier one"));
                    assert!(matches!(error, EngineError::CorruptBlock { .. }), "write {place}: {error}");
                }
                // Losing zeros of a new file does no harm, nor losing a block that the earlier
                // build wrote with the same content.
                Ok(()) => checks += u64::from(check_table(&instance, "t").is_err()),
            }
        }
        assert!(merges > 0 && checks > 0 && earlier > 0, "{merges} {checks} {earlier} of {writes}");
    });
}

#[test]
fn a_load_survives_a_failing_write_at_any_place() {
    check(Work::Load, Failing::Write, &[("parallel_degree", "1")]);
    check(Work::Load, Failing::Write, &[("parallel_degree", "3")]);
}

#[test]
fn a_parallel_build_survives_a_failing_read_at_any_place() {
    check(Work::Build, Failing::Read, &[("parallel_degree", "2"), ("sort_direct_writes", "true")]);
    check(Work::Build, Failing::Read, &[("parallel_degree", "3"), ("sort_direct_writes", "false")]);
}

#[test]
fn a_parallel_build_survives_a_failing_write_at_any_place() {
    check(Work::Build, Failing::Write, &[("parallel_degree", "2"), ("sort_direct_writes", "true")]);
    check(Work::Build, Failing::Write, &[("parallel_degree", "3"), ("sort_direct_writes", "false")]);
}

#[test]
fn a_serial_build_survives_a_failing_read_at_any_place() {
    check(Work::Build, Failing::Read, &[("parallel_degree", "1"), ("sort_direct_writes", "true")]);
    check(Work::Build, Failing::Read, &[("parallel_degree", "1"), ("serial_direct_read", "false")]);
}

#[test]
fn a_serial_build_survives_a_failing_write_at_any_place() {
    check(Work::Build, Failing::Write, &[("parallel_degree", "1"), ("sort_direct_writes", "true")]);
    check(Work::Build, Failing::Write, &[("parallel_degree", "1"), ("sort_direct_writes", "false")]);
}

/// Long keys make a tree of many levels: a failure while one level is written must
/// release the levels below it.
#[test]
fn a_failed_build_releases_all_branch_levels() {
    let key = |row: u64| format!("{:0>900}", row * 7919 % 1000);
    let rows: Vec<Vec<Value>> = (0..300).map(|row| vec![Value::Null, Value::Text(key(row))]).collect();
    let rows = Rows::of_values(crate::support::keyed_schema(), &rows);
    let instance = in_memory(&[("db_block_size", "2K"), ("parallel_degree", "1"), ("sort_area_size", "1M")]);
    load(&instance, "t", &rows).expect("loaded");
    let disk = memory_disk(&instance);
    let on_text = || build_on(&instance, ("i", "t"), &[("t", false)]);
    disk.plan_faults(Faults::default());
    let height = on_text().expect("built").index.height;
    assert!(height >= 5, "{height} levels");
    let (_, writes) = disk.calls();
    for place in 1..=writes {
        if !instance.catalog().indexes.is_empty() {
            drop_named(&instance, "i").expect("dropped");
        }
        disk.plan_faults(Faults { fail_write: Some(place), ..Faults::default() });
        let result = on_text();
        disk.plan_faults(Faults::default());
        if let Err(error) = result {
            assert_names_the_place(&error, Failing::Write, &format!("write {place} of {writes}"));
            assert!(instance.catalog().indexes.is_empty());
        }
        assert_no_space_leaks(&instance);
    }
    if instance.catalog().indexes.is_empty() {
        on_text().expect("built at last");
    }
    assert_green(&instance, "t");
}

#[test]
fn a_load_survives_a_full_disk() {
    within(60, || {
        let instance = instance_for(Work::Load, &[("parallel_degree", "2")]);
        for capacity in [0u64, 1, 100 << 10, 300 << 10, 700 << 10, 900 << 10] {
            memory_disk(&instance).plan_faults(Faults { capacity: Some(capacity), ..Faults::default() });
            let Err(error) = run(Work::Load, &instance) else {
                panic!("30,000 rows fit {capacity} bytes");
            };
            let text = error.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(
                text.starts_with("write of ") && text.contains(".dbf failed: No space left on device"),
                "{text}"
            );
            assert!(text.ends_with("free some space, or choose a place on another file system"), "{text}");
            memory_disk(&instance).plan_faults(Faults::default());
            assert_nothing_half_made(Work::Load, &instance);
        }
        run(Work::Load, &instance).expect("there is space now");
        assert_green(&instance, "t");
    });
}

#[test]
fn a_build_survives_a_full_disk() {
    within(60, || {
        for mode in ["true", "false"] {
            let mut instance = instance_for(Work::Build, &[("sort_direct_writes", mode)]);
            for capacity in [0u64, 64 << 10, 300 << 10, 600 << 10] {
                memory_disk(&instance).plan_faults(Faults { capacity: Some(capacity), ..Faults::default() });
                let Err(error) = run(Work::Build, &instance) else {
                    panic!("an index of 30,000 rows fits {capacity} bytes");
                };
                let text = error.to_string();
                assert_eq!(text.lines().count(), 1, "{text}");
                assert!(text.contains(".dbf failed: No space left on device"), "{text}");
                memory_disk(&instance).plan_faults(Faults::default());
                assert_nothing_half_made(Work::Build, &instance);
                if matches!(error, EngineError::WriterFailed { .. }) {
                    instance = instance_for(Work::Build, &[("sort_direct_writes", mode)]);
                }
            }
            run(Work::Build, &instance).expect("there is space now");
            assert_green(&instance, "t");
        }
    });
}

#[test]
fn short_and_interrupted_transfers_give_the_same_index() {
    within(120, || {
        let plans = [(Some(1), None), (Some(3), None), (None, Some(2)), (None, Some(7)), (Some(2), Some(3))];
        for (short_every, interrupt_every) in plans {
            for (degree, mode) in [("1", "true"), ("1", "false"), ("3", "true"), ("3", "false")] {
                let settings = [("parallel_degree", degree), ("sort_direct_writes", mode)];
                let instance = instance_for(Work::Load, &settings);
                memory_disk(&instance).plan_faults(Faults {
                    short_every,
                    interrupt_every,
                    ..Faults::default()
                });
                run(Work::Load, &instance).expect("loaded all the same");
                run(Work::Build, &instance).expect("built all the same");
                assert_eq!(index_rows(&instance, "i").len() as u64, ROWS);
                assert_green(&instance, "t");
                memory_disk(&instance).plan_faults(Faults::default());
                assert_green(&instance, "t");
                assert_no_space_leaks(&instance);
            }
        }
    });
}
