//! Files of records, sorted: compared with a plain sorted Vec, in little memory and in much,
//! and with files that fail.
//!
//! Faults that must be survived: those of `faults`, and a cancel request. Surviving
//! means here: no file of the output's name or of its unfinished one, and no extent
//! taken in the temporary tablespace.

use crate::support::{
    assert_no_space_leaks, content, create_in, in_memory, memory_disk, settings, try_create_in, within,
};
use plumb_engine::file_sort::create::create;
use plumb_engine::file_sort::validate::{RecordSummary, validate};
use plumb_engine::file_sort::{FileSortOutcome, FileSortSpec, sort_file};
use plumb_engine::instance::InitialSizes;
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::{Cancel, Statistic};
use plumb_io::sim::Faults;
use plumb_types::RecordSource;
use plumb_units::{Bytes, SplitMix};
use plumb_workload::gensort::{GensortRecords, KEY_BYTES, RECORD_BYTES, RecordForm};
use std::fs;
use std::path::{Path, PathBuf};

/// Small records, so that chunks are small too.
const SMALL: usize = 16;
const SMALL_KEY: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Keys {
    Random,
    /// Each key is in every run.
    Few,
    Same,
    Ascending,
    Descending,
}

const ALL_KEYS: [Keys; 5] = [Keys::Random, Keys::Few, Keys::Same, Keys::Ascending, Keys::Descending];

/// Records with a key, followed by their number.
struct Numbered {
    count: u64,
    keys: Keys,
}

impl RecordSource for Numbered {
    fn record_bytes(&self) -> usize {
        SMALL
    }

    fn record_count(&self) -> u64 {
        self.count
    }

    fn fill(&self, first: u64, out: &mut [u8]) {
        for (number, record) in (first..).zip(out.chunks_exact_mut(SMALL)) {
            let random = SplitMix(number).draw();
            let key = match self.keys {
                Keys::Random => random,
                Keys::Few => random % 5,
                Keys::Same => 7,
                Keys::Ascending => number,
                Keys::Descending => self.count - number,
            };
            record[..SMALL_KEY].copy_from_slice(&(key as u32).to_be_bytes()[1..]);
            record[SMALL_KEY..8].fill(0);
            record[8..].copy_from_slice(&number.to_le_bytes());
        }
    }
}

fn spec(home: &Path) -> FileSortSpec {
    FileSortSpec { input: home.join("in.dat"), output: home.join("out.dat") }
}

/// Sorts records in a database in memory with these settings and compares with a sorted Vec.
fn check(source: &Numbered, changes: &[(&str, &str)]) -> FileSortOutcome {
    let instance = in_memory(changes);
    let spec = memory_spec();
    create(&instance, &spec.input, source).expect("created");
    let mut input = vec![0; source.count as usize * SMALL];
    source.fill(0, &mut input);
    assert!(content(&instance, &spec.input) == input, "the input is not what its source makes");

    let outcome = sort_file::<SMALL, SMALL_KEY>(&instance, &spec).expect("sorted");
    let output = content(&instance, &spec.output);
    assert_eq!(output.len(), input.len());
    let mut expected: Vec<&[u8]> = input.chunks_exact(SMALL).collect();
    let mut found: Vec<&[u8]> = output.chunks_exact(SMALL).collect();
    assert!(found.is_sorted_by_key(|record| &record[..SMALL_KEY]), "{:?} {changes:?}", source.keys);
    // Records of one key may come in any order.
    expected.sort_unstable();
    found.sort_unstable();
    assert!(found == expected, "{:?} {changes:?}: the records are others", source.keys);
    assert_eq!(outcome.record_count, source.count);
    assert_no_space_leaks(&instance);

    let summary = |path| validate::<SMALL, SMALL_KEY>(&instance, path).expect("validated");
    let (before, after) = (summary(&spec.input), summary(&spec.output));
    let same_key = |pair: &&[&[u8]]| pair[0][..SMALL_KEY] == pair[1][..SMALL_KEY];
    let right = RecordSummary {
        record_count: source.count,
        checksum: before.checksum,
        duplicate_keys: expected.windows(2).filter(same_key).count() as u64,
        ..RecordSummary::default()
    };
    assert_eq!(after, right);
    outcome
}

#[test]
fn a_sorted_file_has_its_inputs_records_in_order() {
    for keys in ALL_KEYS {
        for (count, area) in [(50_000, "64K"), (200_000, "256K"), (120_000, "1M"), (120_000, "64M")] {
            for degree in ["1", "2", "3"] {
                check(&Numbered { count, keys }, &[("sort_area_size", area), ("parallel_degree", degree)]);
            }
        }
    }
}

#[test]
fn few_records_and_counts_around_blocks_and_chunks() {
    for count in [0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 1024, 4095, 4096, 4097, 32_768, 32_769] {
        for degree in ["1", "2", "5"] {
            let changes = [("sort_area_size", "64K"), ("parallel_degree", degree)];
            check(&Numbered { count, keys: Keys::Random }, &changes);
        }
    }
}

#[test]
fn every_block_size_and_way_to_the_disk() {
    for block in ["2K", "8K", "32K"] {
        for direct in ["true", "false", "auto"] {
            let changes = [
                ("db_block_size", block),
                ("sort_area_size", "256K"),
                ("sort_direct_writes", direct),
                ("sort_write_buffer_size", "32K"),
            ];
            check(&Numbered { count: 60_000, keys: Keys::Random }, &changes);
        }
    }
}

#[test]
fn little_memory_merges_in_several_passes() {
    let changes = [
        ("sort_area_size", "64K"),
        ("db_block_size", "4K"),
        ("db_file_multiblock_read_count", "4"),
        ("sort_read_fac", "40"),
    ];
    let outcome = check(&Numbered { count: 300_000, keys: Keys::Random }, &changes);
    let merges: u64 = outcome.sort.servers.iter().map(|server| server.intermediate_merges).sum();
    assert!(merges > 1, "{:?}", outcome.sort);
    assert!(outcome.sort.servers.iter().all(|server| server.merge_passes > 1));
}

#[test]
fn shares_are_equal_whatever_the_keys() {
    for keys in ALL_KEYS {
        let changes = [("sort_area_size", "1M"), ("parallel_degree", "4")];
        let outcome = check(&Numbered { count: 400_000, keys }, &changes);
        let (least, most) = (outcome.share_counts.iter().min(), outcome.share_counts.iter().max());
        assert_eq!(outcome.share_counts.len(), 4);
        // The division of a run is exact to within one sample interval.
        assert!(most.expect("four") - least.expect("four") < 40_000, "{keys:?}: {:?}", outcome.share_counts);
    }
}

/// Direct I/O, with the records of the benchmarks, by the method that the machine offers.
#[test]
fn benchmark_records_past_the_page_cache() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let small = InitialSizes { users: Bytes(1), temp: Bytes(1), indx: Bytes(1) };
    let changes = settings(&[("sort_area_size", "1M")]);
    let layout = Layout::in_one(home.path().join("db"));
    let instance = Instance::create(&layout, changes, small, Cancel::default()).expect("a database");
    for form in [RecordForm::Binary, RecordForm::Ascii] {
        let spec = FileSortSpec {
            input: home.path().join(format!("{form:?}.in")),
            output: home.path().join(format!("{form:?}.out")),
        };
        create(&instance, &spec.input, &GensortRecords { count: 163_840, form }).expect("created");
        let before = validate::<RECORD_BYTES, KEY_BYTES>(&instance, &spec.input).expect("read");
        assert!(before.unordered > 80_000 && before.first_unordered == Some(2), "{before:?}");
        sort_file::<RECORD_BYTES, KEY_BYTES>(&instance, &spec).expect("sorted");
        let after = validate::<RECORD_BYTES, KEY_BYTES>(&instance, &spec.output).expect("read");
        let sorted = RecordSummary { unordered: 0, first_unordered: None, ..before };
        assert_eq!(after, sorted);
        if form == RecordForm::Ascii {
            assert_eq!(after.checksum, 0x0001_400F_ED7B_B2C2);
        }
        assert_eq!(fs::metadata(&spec.output).expect("there").len(), 16_384_000);
    }
    assert_no_space_leaks(&instance);
}

const SMALL_MEMORY: [(&str, &str); 6] = [
    ("sort_direct_writes", "true"),
    ("sort_write_buffer_size", "32K"),
    ("sort_area_size", "64K"),
    ("db_block_size", "4K"),
    ("db_file_multiblock_read_count", "4"),
    ("sort_read_fac", "5"),
];

fn memory_spec() -> FileSortSpec {
    spec(Path::new("/in/memory"))
}

fn with_input(count: u64) -> Instance {
    let instance = in_memory(&SMALL_MEMORY);
    create(&instance, &memory_spec().input, &Numbered { count, keys: Keys::Random }).expect("created");
    instance
}

fn assert_only_the_input(instance: &Instance) {
    let names: Vec<PathBuf> = memory_disk(instance).paths();
    assert!(names.contains(&memory_spec().input));
    assert!(names.iter().all(|name| !name.display().to_string().contains("out.dat")), "{names:?}");
    assert_no_space_leaks(instance);
}

#[test]
fn a_transfer_that_fails_anywhere_leaves_nothing() {
    within(240, || {
        let instance = with_input(40_000);
        let spec = memory_spec();
        memory_disk(&instance).plan_faults(Faults::default());
        sort_file::<SMALL, SMALL_KEY>(&instance, &spec).expect("nothing fails yet");
        let (reads, writes) = memory_disk(&instance).calls();
        instance.access.disk.remove(&spec.output).expect("sorted");
        let mut failures = 0;
        for (calls, write) in [(reads, false), (writes, true)] {
            for place in 0..40 {
                let place = Some(1 + place * calls / 40);
                let plan = if write {
                    Faults { fail_write: place, ..Faults::default() }
                } else {
                    Faults { fail_read: place, ..Faults::default() }
                };
                memory_disk(&instance).plan_faults(plan);
                let result = sort_file::<SMALL, SMALL_KEY>(&instance, &spec);
                memory_disk(&instance).plan_faults(Faults::default());
                match result {
                    Ok(_) => instance.access.disk.remove(&spec.output).expect("sorted"),
                    Err(error) => {
                        failures += 1;
                        let text = error.to_string();
                        assert!(text.contains("/in/memory/") && text.lines().count() == 1, "{text}");
                    }
                }
                assert_only_the_input(&instance);
            }
        }
        // The number of requests varies a little from run to run, because servers share the work.
        assert!(failures >= 60, "{failures} of 80 places failed");
        sort_file::<SMALL, SMALL_KEY>(&instance, &spec).expect("the cause is gone");
        assert_no_space_leaks(&instance);
    });
}

#[test]
fn short_and_interrupted_transfers_change_nothing() {
    let instance = with_input(40_000);
    memory_disk(&instance).plan_faults(Faults {
        short_every: Some(3),
        interrupt_every: Some(7),
        ..Faults::default()
    });
    sort_file::<SMALL, SMALL_KEY>(&instance, &memory_spec()).expect("carried on");
    let found = validate::<SMALL, SMALL_KEY>(&instance, &memory_spec().output).expect("read");
    assert_eq!((found.unordered, found.record_count), (0, 40_000));
}

/// ext2, NFSv3 and many FUSE file systems cannot reserve space for a file.
#[test]
fn an_output_without_reserved_space_is_lengthened_and_counted() {
    let instance = with_input(40_000);
    let count = || instance.recorder.snapshot().statistic(Statistic::SpaceNotReserved);
    sort_file::<SMALL, SMALL_KEY>(&instance, &memory_spec()).expect("sorted");
    assert_eq!(count(), 0, "here it can be");
    instance.access.disk.remove(&memory_spec().output).expect("removed");
    memory_disk(&instance).plan_faults(Faults { no_allocation: true, ..Faults::default() });
    sort_file::<SMALL, SMALL_KEY>(&instance, &memory_spec()).expect("sorted all the same");
    let found = validate::<SMALL, SMALL_KEY>(&instance, &memory_spec().output).expect("read");
    assert_eq!((found.unordered, found.record_count), (0, 40_000));
    assert_eq!(count(), (40_000 * SMALL as u64).next_multiple_of(4096));
}

#[test]
fn a_disk_filled_by_runs_or_output_keeps_nothing() {
    let instance = with_input(40_000);
    let bytes = 40_000 * SMALL as u64;
    for capacity in [bytes - 1, bytes + bytes / 4, bytes + bytes / 2] {
        memory_disk(&instance).plan_faults(Faults { capacity: Some(capacity), ..Faults::default() });
        let error = sort_file::<SMALL, SMALL_KEY>(&instance, &memory_spec()).expect_err("full").to_string();
        memory_disk(&instance).plan_faults(Faults::default());
        assert!(error.contains("No space left on device"), "{error}");
        assert_only_the_input(&instance);
    }
}

#[test]
fn an_error_says_what_was_found_and_what_to_do() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let instance = create_in(&home.path().join("db"), &[("sort_area_size", "64K")]);
    let spec = spec(home.path());
    let refused = |instance: &Instance, spec: &FileSortSpec, expected: &str| {
        let error = sort_file::<RECORD_BYTES, KEY_BYTES>(instance, spec).expect_err("refused");
        assert_eq!(error.to_string().replace(&home.path().display().to_string(), "DIR"), expected);
        assert_eq!(fs::read_dir(home.path()).expect("there").count(), 1 + usize::from(spec.input.exists()));
    };
    let small = "sort_area_size=64K contradicts records of 100 bytes: two reads of whole records and blocks do not \
                 fit; set sort_area_size to at least 240K";
    refused(&instance, &spec, small);
    drop(instance);
    fs::remove_dir_all(home.path().join("db")).expect("removed");
    let enough = try_create_in(&home.path().join("db"), &[("sort_area_size", "240K")]).expect("a database");
    refused(
        &enough,
        &spec,
        "cannot open DIR/in.dat: No such file or directory (os error 2); it does not exist: check the spelling or \
         create it first",
    );
    fs::write(&spec.input, vec![7; 1_050]).expect("a small file");
    refused(
        &enough,
        &spec,
        "DIR/in.dat cannot be read as records: its 1050 bytes are no whole number of records of 100 bytes, 50 are \
         left over; it was cut short, or has records of another length",
    );
    fs::write(&spec.input, vec![7; 1_000]).expect("a small file");
    let taken = FileSortSpec { output: spec.input.clone(), ..spec.clone() };
    refused(&enough, &taken, "DIR/in.dat exists already: choose another name, or remove it first");
    let left = home.path().join("out.dat.unfinished");
    assert_eq!(spec.output.with_extension("dat.unfinished"), left);
    fs::write(&left, "left by one that was killed").expect("a small file");
    let error = sort_file::<RECORD_BYTES, KEY_BYTES>(&enough, &spec).expect_err("refused").to_string();
    let expected = "is the output of a sort that still runs or was killed: wait for its end, or remove it";
    assert_eq!(error, format!("{} {expected}", left.display()));
    fs::remove_file(&left).expect("not removed by the one that was refused");
    sort_file::<RECORD_BYTES, KEY_BYTES>(&enough, &spec).expect("240K are enough");
}

#[test]
fn a_sort_that_is_asked_to_stop_leaves_nothing() {
    let instance = with_input(400_000);
    let cancel = instance.cancel.clone();
    let stopped = std::thread::scope(|scope| {
        let instance = &instance;
        let sorting = scope.spawn(move || sort_file::<SMALL, SMALL_KEY>(instance, &memory_spec()));
        let rows = || instance.recorder.snapshot().statistic(Statistic::PhysicalWriteBytes);
        let before = 400_000 * SMALL as u64;
        while rows() < before + before / 4 && !sorting.is_finished() {
            std::thread::yield_now();
        }
        cancel.request();
        sorting.join().expect("no panic")
    });
    assert!(matches!(stopped, Err(EngineError::Interrupted)), "{stopped:?}");
    assert_only_the_input(&instance);
}
