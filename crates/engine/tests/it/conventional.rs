//! Sorts and scans through the buffer cache, observed by their wait events.

use crate::support::{Rows, assert_green, assert_no_space_leaks, build, in_memory, load};
use plumb_engine::cache::{CacheReader, PinnedBlock};
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, Period, Role, SessionKind, Statistic};

const ROWS: u64 = 100_000;
const SEED: u64 = 7;

/// Returns the events of a build while another session pins `pinned` blocks of
/// the table in the cache.
fn check(settings: &[(&str, &str)], pinned: u32) -> Period {
    let instance = in_memory(settings);
    load(&instance, "t", &Rows::uniform(ROWS, SEED)).expect("loaded");
    let other = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&other, instance.caches());
    let table = instance.catalog().tables[0].clone();
    let extents = &table.extents;
    let blocks = extents.iter().flat_map(|piece| (0..piece.used).map(|block| piece.extent.address(block)));
    let get = |address| reader.get(Purpose::Users, address, table.expected()).expect("a block of the table");
    let held: Vec<PinnedBlock<'_>> = blocks.take(pinned as usize).map(get).collect();
    let before = instance.recorder.snapshot();
    build(&instance).expect("built");
    let period = instance.recorder.snapshot().since(&before);
    drop(held);
    assert_green(&instance, "t");
    assert_no_space_leaks(&instance);
    period
}

fn waits(period: &Period, event: Event) -> u64 {
    period.event(event, SessionKind::Foreground).count
}

#[test]
fn without_direct_writes_the_database_writer_writes_the_runs() {
    let settings = [
        ("sort_direct_writes", "false"),
        ("sort_area_size", "256K"),
        ("db_cache_size", "1M"),
        ("db_block_size", "32K"),
        ("parallel_degree", "2"),
    ];
    // 4 of the 32 buffers are left and a run fills 8; with more, files in memory are written
    // too fast for a wait.
    let period = check(&settings, 28);
    assert!(waits(&period, Event::FreeBufferWaits) > 0);
    assert!(period.statistic(Statistic::PhysicalWritesFromCache) > 0);
    assert!(period.statistic(Statistic::DbwrBatches) > 0);
    assert_eq!(period.statistic(Statistic::PhysicalWritesDirectTemp), 0);
    assert!(period.event(Event::DbFileParallelWrite, SessionKind::Background).count > 0);
    assert_eq!(waits(&period, Event::DirectPathWriteTemp), 0);
}

#[test]
fn with_direct_writes_the_cache_is_not_touched() {
    let settings = [("sort_direct_writes", "true"), ("sort_area_size", "256K"), ("parallel_degree", "2")];
    let period = check(&settings, 0);
    assert!(period.statistic(Statistic::PhysicalWritesDirectTemp) > 0);
    assert_eq!(period.statistic(Statistic::PhysicalWritesFromCache), 0);
    assert_eq!(period.statistic(Statistic::FreeBufferRequested), 0);
    assert!(waits(&period, Event::DirectPathWriteTemp) > 0);
    assert_eq!(waits(&period, Event::FreeBufferWaits), 0);
}

#[test]
fn a_serial_scan_without_direct_reads_goes_through_the_cache() {
    let settings = [("serial_direct_read", "false"), ("parallel_degree", "1"), ("sort_area_size", "64M")];
    let period = check(&settings, 0);
    assert!(waits(&period, Event::DbFileScatteredRead) > 0);
    assert!(period.stream(IoStream::CacheReads).bytes > 4 << 20, "100,000 rows of 40 bytes and more");
    // Only the sample is read directly: single blocks, 256 at most.
    let sampled = period.statistic(Statistic::PhysicalReadsDirect);
    assert_eq!(sampled, 256);
    assert_eq!(waits(&period, Event::DirectPathRead), sampled);
    assert_eq!(period.stream(IoStream::TableReads).count, sampled);
    assert_eq!(period.statistic(Statistic::TableScanRows), ROWS);
}

#[test]
fn serial_direct_and_parallel_scans_bypass_the_cache() {
    for (direct, degree) in [("true", "1"), ("true", "2"), ("false", "2")] {
        let settings =
            [("serial_direct_read", direct), ("parallel_degree", degree), ("sort_area_size", "64M")];
        let period = check(&settings, 0);
        assert_eq!(waits(&period, Event::DbFileScatteredRead), 0, "{settings:?}");
        assert_eq!(period.stream(IoStream::CacheReads).count, 0);
        assert!(period.statistic(Statistic::PhysicalReadsDirect) > 256);
        assert_eq!(period.statistic(Statistic::TableScanRows), ROWS);
    }
}
