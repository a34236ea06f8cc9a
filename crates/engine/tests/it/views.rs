//! One view of tables, however they were filled: scans, sums, and copies of rows.

use crate::support::{
    Rows, assert_green, assert_no_space_leaks, build_on, create_in, images, in_memory, keyed_schema, load,
    memory_disk, number, open_in, within,
};
use plumb_engine::drop::drop_named;
use plumb_engine::storage::tablespace::{Extent, Purpose};
use plumb_engine::table::load::{LoadOutcome, LoadTarget};
use plumb_engine::transaction::check::row_hash;
use plumb_engine::transaction::{Logging, Transactions};
use plumb_engine::view::copy::{CopySpec, LoadDegree, copy};
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::totals::{Checksum, Totals, TotalsSpec, totals};
use plumb_engine::view::{ExtentShare, TableView, positions};
use plumb_engine::{EngineError, Instance};
use plumb_events::{Role, Session};
use plumb_io::sim::Faults;
use plumb_types::Value;
use plumb_units::SplitMix;
use std::fs::OpenOptions;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

const SMALL: [(&str, &str); 4] = [
    ("db_block_size", "2K"),
    ("db_file_multiblock_read_count", "4"),
    ("log_file_size", "4M"),
    ("db_cache_size", "2M"),
];

/// Makes rows with NULLs, negative numbers, and texts of which some are longer than a block.
fn rows(count: u64, seed: u64) -> Vec<Vec<Value>> {
    let mut random = SplitMix(seed);
    let row = |_| {
        let key = if random.below(20) == 0 { Value::Null } else { number(random.below(2000) as i64 - 1000) };
        let length = if random.below(50) == 0 { 2000 + random.below(1500) } else { 1 + random.below(60) };
        vec![key, Value::Text("abcdefgh".repeat(500)[..length as usize].to_string())]
    };
    (0..count).map(row).collect()
}

fn session(instance: &Instance) -> Session {
    instance.recorder.session(Role::User)
}

/// Adds rows by their values, without blocks or sums of the engine.
fn model(rows: &[Vec<Value>], holds: impl Fn(&Value) -> bool) -> (u64, i64, u64) {
    let kept: Vec<&Vec<Value>> = rows.iter().filter(|row| holds(&row[0])).collect();
    let key = |row: &&Vec<Value>| match &row[0] {
        Value::Number(key) => key.to_string().parse::<i64>().expect("a small integer"),
        _ => 0,
    };
    let image = |row: &&Vec<Value>| row_hash(images(std::slice::from_ref(*row)).row(0));
    let sum = kept.iter().map(image).fold(0_u64, u64::wrapping_add);
    (kept.len() as u64, kept.iter().map(key).sum(), sum)
}

fn scanned(session: &Session, view: &TableView<'_>, predicate: Option<&str>) -> (u64, i64, u64) {
    let predicate = predicate.map(|text| Predicate::parse(text, view.schema()).expect("a predicate"));
    let columns = positions(view.schema(), ["k"]).expect("a column");
    let spec = TotalsSpec {
        columns: &columns,
        predicate: predicate.as_ref(),
        checksum: Checksum::Taken,
        share: ExtentShare::ALL,
    };
    seen(&totals(session, view, spec).expect("scanned"))
}

fn seen(totals: &Totals) -> (u64, i64, u64) {
    let sum = totals.sums[0].total().expect("in range");
    assert_eq!(sum.1, 0, "a sum of integers");
    (totals.row_count, sum.0 as i64, totals.row_sum)
}

#[test]
fn rows_are_the_same_whichever_way_a_table_was_filled() {
    within(120, || {
        for degree in ["1", "2", "4"] {
            let instance = &in_memory(&[&SMALL[..], &[("parallel_degree", degree)]].concat());
            let (session, rows) = (&session(instance), rows(3000, 5));
            load(instance, "loaded", &Rows::of_values(keyed_schema(), &rows)).expect("loaded");
            let transactions = &Transactions::open(instance, session).expect("a new log");
            transactions.create_table(session, "live", &keyed_schema(), &[]).expect("made");
            let mut connection = transactions.connect(session);
            let mut transaction = connection.begin();
            for some in rows.chunks(200) {
                transaction.insert_rows("live", &images(some)).expect("inserted");
                transaction.commit_and_chain().expect("durable");
            }
            let ids = transaction.insert_rows("live", &images(&rows[..40])).expect("inserted");
            transaction.commit_and_chain().expect("durable");
            ids.iter().for_each(|row| transaction.delete("live", *row).expect("deleted"));
            transaction.commit_and_chain().expect("durable");
            transaction.insert_rows("live", &images(&rows[..30])).expect("inserted, and not committed");
            for (name, way) in [("loaded", "direct path"), ("live", "transactions")] {
                let view = TableView::open(instance, Some(transactions), session, name).expect(way);
                let all = model(&rows, |_| true);
                assert_eq!(scanned(session, &view, None), all, "{way}, degree {degree}");
                let low = model(&rows, |key| !key.is_null() && *key < number(-10));
                assert_eq!(scanned(session, &view, Some("k < -10")), low, "{way}");
                let null = model(&rows, Value::is_null);
                assert_eq!(scanned(session, &view, Some("k is null")), null, "{way}");
                let parts = (0..5).map(|part| {
                    let spec = TotalsSpec {
                        columns: &[0],
                        predicate: None,
                        checksum: Checksum::Taken,
                        share: ExtentShare { part, of: 5 },
                    };
                    totals(session, &view, spec).expect("scanned")
                });
                let mut sum = Totals::of_none(1);
                parts.for_each(|part| sum.merge(&part).expect("in range"));
                assert_eq!(seen(&sum), all, "{way}, in parts");
            }
            transaction.rollback().expect("rolled back");
        }
    });
}

/// Sessions move amounts between rows: every statement sees the same sum.
#[test]
fn a_scan_sees_one_moment_while_sessions_change_rows() {
    within(120, || {
        let settings = [&SMALL[..], &[("parallel_degree", "2"), ("log_file_size", "8M")]].concat();
        let instance = &in_memory(&settings);
        let session = &session(instance);
        let transactions = &Transactions::open(instance, session).expect("a new log");
        transactions.create_table(session, "t", &keyed_schema(), &[]).expect("made");
        let rows: Vec<Vec<Value>> =
            (0..800).map(|row| vec![number(100), Value::Text("x".repeat(1 + row % 50))]).collect();
        let mut connection = transactions.connect(session);
        let mut transaction = connection.begin();
        let ids = transaction.insert_rows("t", &images(&rows)).expect("inserted");
        transaction.commit().expect("durable");
        let stop = &AtomicBool::new(false);
        let moves = thread::scope(|scope| {
            let mover = scope.spawn(move || {
                let own = instance.recorder.session(Role::User);
                let mut connection = transactions.connect(&own);
                let (mut random, mut moves, mut ids) = (SplitMix(3), 0_u64, ids);
                while !stop.load(Relaxed) {
                    let mut transaction = connection.begin();
                    for step in [1, -1] {
                        let place = random.below(ids.len() as u64) as usize;
                        let add = |values: &mut [Value]| {
                            let Value::Number(key) = &values[0] else { panic!("a number") };
                            let key = key.to_string().parse::<i64>().expect("an integer");
                            values[0] = number(key + step);
                        };
                        // A row that outgrows its block moves.
                        ids[place] = transaction.update("t", ids[place], add).expect("updated");
                    }
                    transaction.commit().expect("durable");
                    moves += 1;
                }
                moves
            });
            for _ in 0..15 {
                let view = TableView::open(instance, Some(transactions), session, "t").expect("a view");
                let (count, sum, _) = scanned(session, &view, None);
                assert_eq!((count, sum), (800, 80_000));
            }
            stop.store(true, Relaxed);
            mover.join().expect("the mover ended")
        });
        assert!(moves > 0);
    });
}

fn target(table: &str) -> LoadTarget<'_> {
    LoadTarget { table, tablespace: plumb_engine::storage::tablespace::Purpose::Users, log: None }
}

fn copied(
    instance: &Instance,
    from: &str,
    to: &str,
    load: LoadDegree,
    predicate: Option<&str>,
) -> Result<LoadOutcome, EngineError> {
    let session = instance.recorder.session(Role::LoadCoordinator);
    let view = TableView::open(instance, None, &session, from)?;
    let predicate = predicate.map(|text| Predicate::parse(text, view.schema())).transpose()?;
    let spec = CopySpec { columns: &[0], predicate: predicate.as_ref(), load, target: target(to) };
    copy(instance, &session, &view, spec)
}

fn count_and_sum(instance: &Instance, table: &str) -> (u64, i64) {
    let session = session(instance);
    let view = TableView::open(instance, None, &session, table).expect("a table");
    let (count, sum, _) = scanned(&session, &view, None);
    (count, sum)
}

#[test]
fn a_copy_has_the_projected_rows_behind_those_that_were_there() {
    within(120, || {
        for (degree, load_degree) in
            [("1", LoadDegree::Serial), ("3", LoadDegree::Serial), ("3", LoadDegree::Parallel)]
        {
            let instance = &in_memory(&[&SMALL[..], &[("parallel_degree", degree)]].concat());
            let rows = rows(4000, 9);
            load(instance, "t", &Rows::of_values(keyed_schema(), &rows)).expect("loaded");
            let (all, sum, _) = model(&rows, |_| true);
            let outcome = copied(instance, "t", "u", load_degree, None).expect("copied");
            assert_eq!((outcome.row_count, count_and_sum(instance, "u")), (all, (all, sum)));
            let (some, low, _) = model(&rows, |key| !key.is_null() && *key < number(0));
            let outcome = copied(instance, "t", "u", load_degree, Some("k < 0")).expect("added");
            assert_eq!(outcome.row_count, some);
            assert_eq!(count_and_sum(instance, "u"), (all + some, sum + low));
            let none = copied(instance, "t", "u", load_degree, Some("k > 99999")).expect("nothing added");
            assert_eq!((none.row_count, count_and_sum(instance, "u").0), (0, all + some));
            copied(instance, "u", "u", load_degree, None).expect("added to itself");
            assert_eq!(count_and_sum(instance, "u"), (2 * (all + some), 2 * (sum + low)));
            assert_green(instance, "u");
            build_on(instance, ("ui", "u"), &[("k", false)]).expect("an index on all of them");
            assert_green(instance, "u");
            assert_no_space_leaks(instance);
        }
    });
}

#[test]
fn a_copy_that_cannot_be_is_refused_by_one_line() {
    let instance = &in_memory(&SMALL);
    let check = |from: &str, to: &str, predicate: Option<&str>, expect: &str| {
        let error = copied(instance, from, to, LoadDegree::Parallel, predicate).expect_err(expect);
        assert_eq!(error.to_string(), expect);
    };
    load(instance, "t", &Rows::of_keys(0..100)).expect("loaded");
    check("x", "u", None, "there is no table X in this database; it has T");
    check("t", "u", Some("z = 1"), "there is no column z in this database; it has K, T");
    check("t", "t", None, "columns of the rows for table T: found NUMBER, expected NUMBER, VARCHAR2(4000)");
    copied(instance, "t", "u", LoadDegree::Serial, None).expect("copied");
    build_on(instance, ("ui", "u"), &[("k", false)]).expect("an index");
    check(
        "t",
        "u",
        None,
        "index UI contradicts table U, which exists: it would lack the new rows; drop it, and build it again behind the load",
    );
    let session = session(instance);
    let view = TableView::open(instance, None, &session, "t").expect("a view");
    drop_named(instance, "t").expect("dropped");
    let spec =
        TotalsSpec { columns: &[0], predicate: None, checksum: Checksum::Skipped, share: ExtentShare::ALL };
    let error = totals(&session, &view, spec).expect_err("dropped").to_string();
    assert_eq!(error, "table T was changed or dropped meanwhile: do it again");
    let error = copy(
        instance,
        &session,
        &view,
        CopySpec { columns: &[0], predicate: None, load: LoadDegree::Parallel, target: target("v") },
    );
    assert!(error.expect_err("dropped").to_string().starts_with("table T was changed or dropped"));
    assert!(instance.catalog().tables.iter().all(|table| table.name != "V"));
    assert_no_space_leaks(instance);
}

#[test]
fn a_table_with_redo_and_one_without_are_not_mixed() {
    let instance = &in_memory(&[&SMALL[..], &[("force_logging", "on")]].concat());
    let session = session(instance);
    load(instance, "t", &Rows::of_keys(0..100)).expect("loaded without redo");
    let transactions = Transactions::open(instance, &session).expect("a new log");
    let view = TableView::open(instance, Some(&transactions), &session, "t").expect("a view");
    let with = |to: &'static str| CopySpec {
        columns: &[0],
        predicate: None,
        load: LoadDegree::Parallel,
        target: LoadTarget { log: transactions.log_of_load(Logging::NoLogging), ..target(to) },
    };
    copy(instance, &session, &view, with("logged")).expect("with redo");
    copy(instance, &session, &view, with("logged")).expect("added with redo");
    assert_eq!(count_and_sum(instance, "logged"), (200, 2 * 4950));
    let error = copied(instance, "t", "logged", LoadDegree::Serial, None).expect_err("without");
    assert_eq!(
        error.to_string(),
        "a load without redo contradicts table LOGGED, which exists: its blocks are in the log; load with logging, or \
         into a new table"
    );
    copied(instance, "t", "bare", LoadDegree::Serial, None).expect("without redo");
    let error = copy(instance, &session, &view, with("bare")).expect_err("with redo").to_string();
    assert!(error.starts_with("a load with redo contradicts table BARE"), "{error}");
}

/// Fails each of many transfers in turn.
#[test]
fn a_copy_that_fails_leaves_its_target_as_it_was() {
    within(240, || {
        for load_degree in [LoadDegree::Serial, LoadDegree::Parallel] {
            let mut failures = 0;
            for place in (1..120).step_by(4) {
                let instance = &in_memory(&SMALL);
                let disk = memory_disk(instance);
                load(instance, "t", &Rows::uniform(20_000, 3)).expect("loaded");
                copied(instance, "t", "u", load_degree, Some("k < 100000000")).expect("copied");
                let before = count_and_sum(instance, "u");
                disk.plan_faults(match place % 8 {
                    1 => Faults { fail_read: Some(place), ..Faults::default() },
                    _ => Faults { fail_write: Some(place), ..Faults::default() },
                });
                let result = copied(instance, "t", "u", load_degree, None);
                disk.plan_faults(Faults::default());
                failures += u64::from(result.is_err());
                match result {
                    Ok(outcome) => assert_eq!(outcome.row_count, 20_000),
                    Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
                }
                let now = count_and_sum(instance, "u");
                assert!(now == before || now.0 == before.0 + 20_000, "{now:?} after {before:?}");
                assert_green(instance, "u");
                assert_no_space_leaks(instance);
            }
            assert!(failures > 10, "{failures} copies failed");
        }
    });
}

#[test]
fn rows_beyond_32_gigabytes_of_a_data_file_are_read_as_they_were_written() {
    within(120, || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = directory.path().join("db");
        drop(create_in(&home, &[("data_files", "1"), ("extent_size", "8M")]));
        // Holes: only the extents that are written take space.
        let file = OpenOptions::new().write(true).open(home.join("users01.dbf")).expect("a data file");
        file.set_len(40 << 30).expect("the file system has sparse files");
        let instance = &open_in(&home).expect("opened");
        let (session, rows) = (&session(instance), rows(3000, 9));
        let users = instance.tablespace(Purpose::Users);
        let allocated = || users.allocate(session, &instance.access).expect("a free extent");
        let offset = |extent: Extent| u64::from(extent.block) * users.block_size.bytes() as u64;
        while offset(allocated()) < 33 << 30 {}
        load(instance, "loaded", &Rows::of_values(keyed_schema(), &rows)).expect("loaded");
        let table = instance.catalog().table("loaded").expect("loaded").clone();
        assert!(table.extents.iter().all(|extent| offset(extent.extent) > 32 << 30));
        build_on(instance, ("i", "loaded"), &[("k", false)]).expect("built");
        assert_green(instance, "loaded");
        let view = TableView::open(instance, None, session, "loaded").expect("a table");
        assert_eq!(scanned(session, &view, None), model(&rows, |_| true));
    });
}
