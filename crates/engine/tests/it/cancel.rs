//! A cancel request from another thread, at several stages of the work.

use crate::support::{
    Rows, assert_green, assert_no_space_leaks, build, in_memory, keyed_schema, load, within,
};
use plumb_engine::drop::drop_named;
use plumb_engine::table::load as table_load;
use plumb_engine::{EngineError, Instance};
use plumb_events::{Cancel, Statistic, now};
use plumb_types::{RowBatch, RowSource, Schema, SourceError};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Runs `work` and cancels it once the statistic has grown by `amount`; returns its result. It must
/// end within a second of the request.
fn check<T>(
    instance: &mut Instance,
    (statistic, amount): (Statistic, u64),
    work: impl FnOnce(&Instance) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let before = instance.recorder.snapshot().statistic(statistic);
    let finished = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let instance = &*instance;
        let finished = &finished;
        let watcher = scope.spawn(move || {
            while instance.recorder.snapshot().statistic(statistic) < before + amount
                && !finished.load(Relaxed)
            {
                thread::yield_now();
            }
            instance.cancel.request();
            now()
        });
        let result = work(instance);
        let end = now();
        finished.store(true, Relaxed);
        let requested = watcher.join().expect("the watcher only watches");
        let late = end.saturating_sub(requested);
        assert!(late.seconds() < 1.0, "ended {late} after it was asked to");
        result
    });
    instance.cancel = Cancel::default();
    result
}

/// A source of rows without an end.
struct Endless(Schema);

impl RowSource for Endless {
    fn schema(&self) -> &Schema {
        &self.0
    }

    fn row_count_hint(&self) -> Option<u64> {
        None
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        for number in 0..1000 {
            batch.begin_row(2);
            batch.push_number(number, 0);
            batch.push_null();
            batch.end_row();
        }
        Ok(true)
    }
}

fn assert_interrupted<T>(result: Result<T, EngineError>) {
    match result {
        Err(error @ EngineError::Interrupted) => {
            assert_eq!(error.to_string(), "interrupted: what was under way has been removed");
        }
        Err(error) => panic!("not interrupted but failed: {error}"),
        Ok(_) => panic!("not interrupted"),
    }
}

#[test]
fn a_load_that_is_interrupted_leaves_nothing() {
    within(60, || {
        for degree in ["1", "2", "5"] {
            let mut instance = in_memory(&[("parallel_degree", degree)]);
            for rows in [0, 1, 200_000] {
                let result = check(&mut instance, (Statistic::LoadRows, rows), |instance| {
                    table_load::load(instance, "t", &Endless(keyed_schema()))
                });
                assert_interrupted(result);
                assert!(instance.catalog().tables.is_empty());
                assert_no_space_leaks(&instance);
            }
            load(&instance, "t", &Rows::uniform(1000, 1)).expect("loaded afterwards");
            assert_green(&instance, "t");
        }
    });
}

#[test]
fn a_build_that_is_interrupted_at_any_stage_leaves_nothing() {
    let stages = [
        (Statistic::SampleRows, 0),
        (Statistic::TableScanRows, 1),
        (Statistic::PhysicalWriteBlocks, 100),
        (Statistic::SortRuns, 1),
        (Statistic::IntermediateMerges, 1),
    ];
    within(120, move || {
        for (degree, mode) in [("1", "true"), ("2", "false"), ("3", "true")] {
            let settings = [
                ("parallel_degree", degree),
                ("sort_direct_writes", mode),
                ("sort_area_size", "64K"),
                ("sort_read_fac", "5"),
            ];
            let mut instance = in_memory(&settings);
            load(&instance, "t", &Rows::uniform(300_000, 3)).expect("loaded");
            for stage in stages {
                // The build may end before the request comes; then it is tried again.
                let mut attempts = (0..50).map(|_| {
                    let result = check(&mut instance, stage, build);
                    if result.is_ok() {
                        drop_named(&instance, "i").expect("dropped");
                    }
                    result
                });
                let result =
                    attempts.find(Result::is_err).expect("50 builds ended before they were asked to");
                drop(attempts);
                assert_interrupted(result);
                assert!(instance.catalog().indexes.is_empty(), "{stage:?}");
                assert_no_space_leaks(&instance);
            }
            build(&instance).expect("built afterwards");
            assert_green(&instance, "t");
        }
    });
}
