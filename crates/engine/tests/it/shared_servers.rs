//! Sessions that share threads wait for sessions of the same thread and of others; all end, with
//! the same result as on threads of their own.

use crate::slob;
use crate::support::{self, SMALLEST, number, within};
use crate::transactions as changes;
use plumb_engine::parallel::servers::{self, Operation};
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance, Layout};
use plumb_events::{Cancel, Event, Role, Session, SessionKind, Statistic, locked, sharing};
use plumb_types::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// Makes a database of files, accessed through rings, with less cache and
/// log than the sessions need.
fn instance(home: &Path, servers: &str, others: &[(&str, &str)]) -> Instance {
    let given = [
        ("shared_servers", servers),
        ("filesystemio_options", "asynch"),
        ("db_block_size", "2K"),
        ("log_file_size", "1M"),
        ("log_buffer", "64K"),
    ];
    let settings = support::settings(&[given.as_slice(), others].concat());
    Instance::create(&Layout::in_one(home.to_path_buf()), settings, SMALLEST, Cancel::default())
        .expect("a database")
}

/// Runs `count` sessions on the threads that they share.
fn sessions<T: Send>(
    instance: &Instance,
    count: usize,
    work: impl Fn(&Session, &Operation, usize) -> Result<T, EngineError> + Copy + Send,
) -> Vec<T> {
    let coordinator = instance.recorder.session(Role::Coordinator);
    let operation = instance.operation();
    let done = thread::scope(|scope| {
        let operation = &operation;
        let work = move |session: &Session, number: usize| work(session, operation, number);
        servers::join(&coordinator, servers::start_sessions(scope, operation, count, work))
    });
    operation.outcome().expect("no session fails");
    done.into_iter().flatten().flatten().collect()
}

/// Fewer buffers than sessions; each holds one block while it waits for another.
#[test]
fn sessions_of_one_thread_wait_for_each_other() {
    for (servers, prefetch, members) in [("1", "0", "2"), ("2", "0", "1"), ("2", "4", "2")] {
        within(120, move || {
            let home = tempfile::tempdir().expect("a directory");
            let small = [
                ("debug_cache_blocks", "12"),
                ("db_block_prefetch_limit", prefetch),
                ("log_file_members", members),
            ];
            let instance = instance(home.path(), servers, &small);
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(&instance, &session).expect("a log");
            slob::create(&transactions, &session).expect("a table");
            let before = instance.recorder.snapshot();
            let done = sessions(&instance, 16, |session, _, number| {
                slob::select_and_update(&mut transactions.connect(session), number as i64)
            });
            assert_eq!(done.len(), 16);
            assert_eq!(slob::balances(&transactions, &session), slob::ROWS * slob::BALANCE);
            let period = instance.recorder.snapshot().since(&before);
            let of_servers = period.sessions.iter().filter(|session| session.role == Role::SharedServer);
            assert_eq!(of_servers.count().to_string(), servers);
            let waits = |event| period.event(event, SessionKind::Foreground).count;
            let commits = period.statistic(Statistic::UserCommits);
            assert_eq!(commits, 16 * 10);
            assert!(waits(Event::LogFileSync) <= 2 * commits, "a wait is one, however often it looks");
            assert!(period.statistic(Statistic::RingRequests) > 0);
        });
    }
}

/// Random statements, with rollbacks, leaves that split and checkpoints that are due.
#[test]
fn random_sessions_of_one_thread_leave_a_sound_table() {
    within(240, || {
        let home = tempfile::tempdir().expect("a directory");
        let instance = instance(home.path(), "2", &[("debug_cache_blocks", "64")]);
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        changes::create(&transactions, &session);
        let models = sessions(&instance, 6, |_, _, number| {
            Ok(changes::change_at_random(&transactions, number as u64))
        });
        let expected: BTreeMap<_, _> = models.into_iter().flatten().collect();
        let checked = transactions.check(&session, "T").expect("index equals table");
        assert_eq!(checked.row_count, expected.len() as u64);
        let mut connection = transactions.connect(&session);
        let mut found = BTreeMap::new();
        for row in changes::all(&mut connection.begin()) {
            let value = |value: &Value| value.to_string().parse::<i64>().expect("a number");
            found.insert(value(&row.values[0]), (value(&row.values[1]), row.values[2].to_string()));
        }
        assert_eq!(found, expected);
    });
}

/// A log writer lets the other sessions of its thread run first, so each write has a commit of all.
#[test]
fn sessions_of_one_thread_commit_together() {
    within(60, || {
        let home = tempfile::tempdir().expect("a directory");
        let instance = instance(home.path(), "1", &[]);
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        changes::create(&transactions, &session);
        transactions.checkpoint(&session).expect("a checkpoint");
        let before = instance.recorder.snapshot();
        sessions(&instance, 8, |session, _, number| {
            let mut connection = transactions.connect(session);
            let mut transaction = connection.begin();
            for commit in 0..20 {
                let id = (number * 20 + commit) as i64;
                changes::add(&mut transaction, id, id, "v");
                transaction.commit_and_chain()?;
            }
            Ok(())
        });
        let period = instance.recorder.snapshot().since(&before);
        let (commits, writes) =
            (period.statistic(Statistic::UserCommits), period.statistic(Statistic::RedoWrites));
        assert_eq!(commits, 8 * 20);
        // Some more writes happen if a session waits for a block, or for a checkpoint.
        assert!(writes < 2 * 20, "{writes} writes of {commits} commits");
    });
}

/// Both wait on the same thread: one gets the error, and the other continues.
#[test]
fn a_deadlock_between_sessions_of_one_thread_is_found() {
    within(30, || {
        let home = tempfile::tempdir().expect("a directory");
        let instance = instance(home.path(), "1", &[]);
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        changes::create(&transactions, &session);
        let mut connection = transactions.connect(&session);
        let mut setup = connection.begin();
        let rows = [changes::add(&mut setup, 1, 1, "a"), changes::add(&mut setup, 2, 2, "b")];
        setup.commit().expect("committed");
        let ready = AtomicU64::new(0);
        let deadlocks = Mutex::new(Vec::new());
        let change = |row: &mut [Value]| row[1] = number(7);
        sessions(&instance, 2, |session, _, place| {
            let mut connection = transactions.connect(session);
            let mut transaction = connection.begin();
            transaction.update("T", rows[place], change)?;
            ready.fetch_add(1, Relaxed);
            while ready.load(Relaxed) < 2 {
                sharing::yield_now();
            }
            match transaction.update("T", rows[1 - place], change) {
                Ok(_) => transaction.commit(),
                Err(error) => {
                    locked(&deadlocks).push(error.to_string());
                    transaction.rollback()
                }
            }
        });
        let deadlocks = locked(&deadlocks);
        assert!(deadlocks.len() == 1 && deadlocks[0].starts_with("deadlock: transaction "), "{deadlocks:?}");
    });
}

/// A failing session stops the others, as with threads of their own.
#[test]
fn a_session_that_fails_stops_those_of_its_thread() {
    within(30, || {
        let home = tempfile::tempdir().expect("a directory");
        let instance = instance(home.path(), "1", &[]);
        let coordinator = instance.recorder.session(Role::Coordinator);
        let operation = instance.operation();
        thread::scope(|scope| {
            let operation = &operation;
            let work = move |_: &Session, number: usize| -> Result<(), EngineError> {
                if number == 2 {
                    return Err(EngineError::LogFailed { first: "the third one".to_string() });
                }
                loop {
                    operation.check()?;
                    sharing::yield_now();
                }
            };
            servers::join(&coordinator, servers::start_sessions(scope, operation, 4, work));
        });
        let error = operation.outcome().expect_err("one has failed").to_string();
        assert!(error.contains("the third one"), "{error}");
    });
}

/// A request must not block in a call, which would hold up all sessions of the thread.
#[test]
fn threads_are_shared_only_where_requests_go_through_rings() {
    let refused = |given: &[(&str, &str)]| {
        let home = tempfile::tempdir().expect("a directory");
        let settings = support::settings(&[&[("shared_servers", "2")], given].concat());
        let layout = Layout::in_one(home.path().to_path_buf());
        let made = Instance::create(&layout, settings, SMALLEST, Cancel::default());
        made.expect_err("no rings").to_string()
    };
    for (given, second) in [
        (("io_method", "sync"), "io_method=sync"),
        (("io_method", "threads"), "io_method=threads"),
        (("io_method", "null"), "io_method=null"),
        (("filesystemio_options", "directio"), "filesystemio_options=directio"),
    ] {
        let error = refused(&[given]);
        assert!(error.contains("shared_servers=2") && error.contains(second), "{error}");
        assert!(error.contains("set shared_servers to 0") && error.lines().count() == 1, "{error}");
    }
}
