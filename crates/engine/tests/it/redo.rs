//! Effects of settings on the log: how its writes become durable, and the work that
//! checkpoints leave to a recovery.

use crate::support::{Rows, memory_disk};
use plumb_engine::instance::InitialSizes;
use plumb_engine::redo::SyncMethod;
use plumb_engine::transaction::Transactions;
use plumb_engine::transaction::import::{ImportSpec, import};
use plumb_engine::{EngineError, Instance, Layout, Settings};
use plumb_events::{Cancel, Event, Role, Session, SessionTotals, Statistic};
use plumb_host::priority;
use plumb_io::sim::power::Survivors;
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_io::{DirectIo, Disk, IoError};
use plumb_types::{Column, ColumnType, Number, RowSource, Schema, Value};
use plumb_units::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

fn settings(more: &[(&str, &str)]) -> Settings {
    let mut all = Settings::default();
    let small = [("debug_extent_blocks", "8"), ("log_file_size", "1M"), ("log_buffer", "256K")];
    for (name, value) in small.iter().chain(more) {
        all.set(name, value, "the test").expect("in range");
    }
    all
}

fn create(home: &Path, more: &[(&str, &str)]) -> Instance {
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 20) };
    let layout = Layout::in_one(home.to_path_buf());
    Instance::create(&layout, settings(more), sizes, Cancel::default()).expect("a database")
}

fn open(home: &Path, more: &[(&str, &str)]) -> Instance {
    Instance::open(home, settings(more), Cancel::default()).expect("opened")
}

fn create_table(transactions: &Transactions<'_>, session: &Session) {
    let columns = vec![
        Column::required("ID", ColumnType::NUMBER),
        Column::required("V", ColumnType::Text { max_bytes: 1000 }),
    ];
    let schema = Schema::new(columns).expect("a schema");
    transactions.create_table(session, "T", &schema, &[]).expect("a table");
}

fn insert(transactions: &Transactions<'_>, session: &Session, rows: i64) {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    for id in 0..rows {
        let id = Value::Number(Number::new(i128::from(id), 0).expect("small"));
        transaction.insert("T", &[id, Value::Text("v".repeat(500))]).expect("inserted");
        transaction.commit_and_chain().expect("committed");
    }
}

#[test]
fn lgwr_has_priority_where_permitted_and_wanted() {
    let home = tempfile::tempdir().expect("a directory");
    drop(create(&home.path().join("db"), &[]));
    let nice = |word| {
        let instance = open(&home.path().join("db"), &[("high_priority_processes", word)]);
        let session = instance.recorder.session(Role::User);
        let opened = Transactions::open(&instance, &session);
        opened.map(|transactions| transactions.log().lgwr_nice().expect("there is an LGWR"))
    };
    let own = nice("none").expect("opened");
    assert!(own > priority::FIRST, "LGWR has {own}");
    match nice("lgwr") {
        Ok(first) => {
            assert_eq!(first, priority::FIRST);
            assert_eq!(nice("auto").expect("opened"), priority::FIRST);
        }
        Err(refused) => {
            assert!(refused.to_string().contains("high_priority_processes=lgwr"), "{refused}");
            assert_eq!(nice("auto").expect("opened"), own);
        }
    }
}

#[test]
fn lgwr_writes_for_sessions_that_wait_together() {
    const SESSIONS: i64 = 6;
    let home = tempfile::tempdir().expect("a directory");
    let instance = create(&home.path().join("db"), &[]);
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create_table(&transactions, &session);
    let lgwr = || lgwr_of(&instance);
    let written = || lgwr().statistics[Statistic::RedoWrites as usize];
    insert(&transactions, &session, 20);
    assert_eq!(written(), 0, "who commits alone writes");
    // Without priority LGWR does not write; sessions write for each other.
    let serves = transactions.log().lgwr_nice() == Some(priority::FIRST);
    let most = if serves { 100_000 } else { 1000 };
    let mut rows = 20;
    // The scheduler decides if two sessions wait at once, but in this number of commits some do.
    while written() == 0 && rows < most {
        thread::scope(|scope| {
            for _ in 0..SESSIONS {
                scope.spawn(|| insert(&transactions, &instance.recorder.session(Role::User), 50));
            }
        });
        rows += SESSIONS * 50;
    }
    assert_eq!(written() > 0, serves, "{rows} commits");
    // LGWR's writes are waits of its own, each for a waiting session.
    assert_eq!(lgwr().events[Event::LogFileParallelWrite as usize].count, written());
    let sessions = instance.recorder.snapshot().sessions;
    let waits: u64 = sessions.iter().map(|session| session.events[Event::LogFileSync as usize].count).sum();
    assert!(waits >= written(), "{waits} waits for a commit, {} writes of LGWR", written());
    assert_eq!(count(&transactions, &session), rows as usize);
    drop(transactions);
    drop(session);
    instance.destroy().expect("removed");
}

fn lgwr_of(instance: &Instance) -> SessionTotals {
    let sessions = instance.recorder.snapshot().sessions;
    sessions.into_iter().find(|session| session.role == Role::LogWriter).expect("there is an LGWR")
}

/// LGWR's sync fails while five sessions wait for it: each learns of it, and
/// the sync is not retried.
#[test]
fn all_waiters_learn_of_a_failed_sync_of_lgwr() {
    let instance = instance_in_memory(&[("log_sync_method", "fdatasync")]);
    let disk = memory_disk(&instance);
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create_table(&transactions, &session);
    transactions.checkpoint(&session).expect("nothing is written behind the sessions' backs");
    let log = transactions.log();
    disk.stall();
    disk.plan_faults(Faults { fail_sync: Some(2), ..Faults::default() });
    let results: Vec<Result<(), EngineError>> = thread::scope(|scope| {
        let commit = |id: i64| {
            let session = instance.recorder.session(Role::User);
            let mut connection = transactions.connect(&session);
            let mut transaction = connection.begin();
            let id = Value::Number(Number::new(i128::from(id), 0).expect("small"));
            transaction.insert("T", &[id, Value::Text("v".repeat(500))])?;
            transaction.commit_and_chain()
        };
        // The first session's write is held by the disk, and has only its own records.
        let first = scope.spawn(move || commit(0));
        while disk.held() == 0 {
            thread::yield_now();
        }
        let first_end = log.end();
        let others: Vec<_> = (1..6).map(|id| scope.spawn(move || commit(id))).collect();
        // Waits until all have appended and wait.
        let mut end = first_end;
        while end == first_end || end != log.end() {
            end = log.end();
            thread::sleep(Duration::from_millis(100));
        }
        disk.resume();
        [first].into_iter().chain(others).map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(results[0].is_ok(), "{:?}", results[0]);
    for result in &results[1..] {
        let said = result.as_ref().expect_err("the sync failed").to_string();
        assert!(
            said.starts_with("the redo log cannot be written, and transactions are stopped: cannot sync "),
            "{said}"
        );
    }
    if log.lgwr_nice() == Some(priority::FIRST) {
        let totals = lgwr_of(&instance);
        assert_eq!(totals.events[Event::LogFileParallelWrite as usize].count, 1, "the write was LGWR's");
        assert_eq!(totals.statistics[Statistic::RedoWrites as usize], 0, "and failed");
    }
    let calls = disk.calls();
    transactions.checkpoint(&session).expect_err("stopped");
    assert_eq!(disk.calls(), calls, "nothing is tried again");
}

/// The state of the last commit on disk is unknown, so it is counted neither
/// as committed nor as lost.
#[test]
fn rows_of_a_commit_whose_sync_failed_are_counted_apart() {
    let instance = instance_in_memory(&[("log_sync_method", "fdatasync")]);
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let source = Rows::uniform(10_000, 7);
    transactions.create_table(&session, "T", source.schema(), &[]).expect("a table");
    transactions.checkpoint(&session).expect("nothing is written behind the session's back");
    memory_disk(&instance).plan_faults(Faults { fail_syncs: Some(4), ..Faults::default() });
    let committed = AtomicU64::new(0);
    let spec = ImportSpec {
        table: "T",
        array_bytes: 4096,
        rows_per_commit: Some(100),
        sessions: 1,
        committed: &committed,
    };
    let (imported, ended) = import(&transactions, &session, &source, &spec);
    let error = ended.expect_err("a sync failed");
    assert!(matches!(error, EngineError::LogFailed { .. }), "{error}");
    assert_eq!(imported.doubtful_row_count, 100);
    assert_eq!((imported.row_count, committed.load(Relaxed)), (300, 300));
}

fn count(transactions: &Transactions<'_>, session: &Session) -> usize {
    let mut connection = transactions.connect(session);
    let mut rows = 0;
    let scanned = connection.begin().scan("T", |_| {
        rows += 1;
        Ok(())
    });
    scanned.expect("scanned");
    rows
}

#[test]
fn log_writes_use_the_sync_method_that_was_set() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let methods = SyncMethod::ALL.map(SyncMethod::name);
    for (round, word) in methods.into_iter().chain(["auto"]).enumerate() {
        let asked = [("log_sync_method", word), ("filesystemio_options", "none")];
        let instance = if round == 0 { create(&home, &asked) } else { open(&home, &asked) };
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        if round == 0 {
            create_table(&transactions, &session);
        }
        let sync = transactions.log().sync();
        if word == "auto" {
            assert!(sync.reason.starts_with("auto measured, in microseconds: fdatasync "), "{}", sync.reason);
        } else {
            assert_eq!((sync.method.name(), &sync.reason), (word, &format!("log_sync_method={word}")));
        }
        assert_eq!(count(&transactions, &session), 10 * round, "before {word}");
        insert(&transactions, &session, 10);
    }
}

/// Inserts rows on a disk that can lose power, where sessions step the checkpoints. Returns the
/// most log bytes that a recovery would have read after any commit.
fn most_to_recover(interval: &str, rows: i64) -> (u64, u64) {
    let disk = MemoryDisk::with_power(1);
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 16) };
    let more = [("io_method", "null"), ("log_file_size", "256K"), ("log_checkpoint_interval", interval)];
    let home = Path::new("/in/memory/db");
    let instance = Instance::create_on(&disk, home, settings(&more), sizes).expect("a database");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create_table(&transactions, &session);
    let mut most = 0;
    for _ in 0..rows {
        insert(&transactions, &session, 1);
        most = most.max(transactions.log().to_recover().0);
    }
    let period = instance.recorder.snapshot();
    let waited =
        period.sessions.iter().map(|it| it.events[Event::LogFileSwitchCheckpoint as usize].count).sum();
    (most, waited)
}

#[test]
fn checkpoints_follow_the_log_as_closely_as_they_are_told() {
    // Each commit is a log write of two blocks, and a batch of 512 bytes is the finest step.
    let (most, waited) = most_to_recover("128K", 2000);
    assert!((64 << 10..=(128 << 10) + 8192).contains(&most), "{most}");
    assert_eq!(waited, 0);
    // Two megabytes of log pass through three files of a quarter, and no session waits for a file.
    let (most, waited) = most_to_recover("0", 2000);
    assert!((256 << 10..=640 << 10).contains(&most), "{most}");
    assert_eq!(waited, 0);
}

/// Collects the sequences of log files, in the files and as copies; none between the first and
/// the last may be missing.
fn require_every_sequence(disk: &Disk, home: &Path, copies: impl Iterator<Item = PathBuf>) -> u64 {
    let mut found: Vec<u64> = copies
        .filter(|path| path.extension().is_some_and(|ending| ending == "arc"))
        .map(|path| {
            let bytes = disk.read_small(&path).expect("readable").expect("there");
            let sequence = u64::from_le_bytes(bytes[32..40].try_into().expect("eight bytes"));
            assert!(path.to_string_lossy().ends_with(&format!("_{sequence:010}.arc")), "{}", path.display());
            sequence
        })
        .collect();
    let copied = found.len() as u64;
    for number in 1..=3 {
        let bytes =
            disk.read_small(&home.join(format!("redo{number:02}.log"))).expect("readable").expect("there");
        found.push(u64::from_le_bytes(bytes[32..40].try_into().expect("eight bytes")));
    }
    found.sort_unstable();
    found.dedup();
    let first = u64::from(found[0] != 0);
    let expected: Vec<u64> = (first..first + found.len() as u64).collect();
    assert_eq!(found, expected, "of 0 (a file that was not used) and the sequences so far");
    copied
}

/// Commits until the power goes at a request. Returns the disk that a restart finds, and
/// the number of acknowledged commits.
fn crashed(
    base: &MemoryDisk,
    more: &[(&str, &str)],
    (request, survivors): (u64, Survivors),
) -> (Arc<MemoryDisk>, usize) {
    let disk = base.restart(Survivors::All);
    disk.lose_power_at(Some(request));
    let mut acknowledged = 0;
    let mut run = || -> Result<(), EngineError> {
        let instance = Instance::open_on(&disk, Path::new(HOME), settings(more))?;
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session)?;
        let mut connection = transactions.connect(&session);
        let mut transaction = connection.begin();
        for id in 0..400 {
            let id = Value::Number(Number::new(id, 0).expect("small"));
            transaction.insert("T", &[id, Value::Text("v".repeat(900))])?;
            transaction.commit_and_chain()?;
            acknowledged += 1;
        }
        Ok(())
    };
    let run = run();
    assert!(run.is_ok() || disk.requests() >= request, "request {request}: {run:?}");
    (disk.restart(survivors), acknowledged)
}

/// Makes a closed database with an empty table, on a disk that can lose power.
fn disk_with_table(more: &[(&str, &str)]) -> Arc<MemoryDisk> {
    let base = MemoryDisk::with_power(1);
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 16) };
    let instance = Instance::create_on(&base, Path::new(HOME), settings(more), sizes).expect("a database");
    let session = instance.recorder.session(Role::User);
    create_table(&Transactions::open(&instance, &session).expect("a log"), &session);
    base
}

/// Returns the number of rows, and the members of log files that were restored.
fn recovered(disk: &Arc<MemoryDisk>, more: &[(&str, &str)]) -> (usize, Vec<String>) {
    let instance = Instance::open_on(disk, Path::new(HOME), settings(more)).expect("opened");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("recovered");
    (count(&transactions, &session), transactions.recovered().restored.clone())
}

const HOME: &str = "/in/memory/db";
const SMALL: [(&str, &str); 4] =
    [("io_method", "null"), ("db_block_size", "2K"), ("log_buffer", "32K"), ("log_file_size", "64K")];

#[test]
fn a_log_file_is_reused_only_after_a_durable_copy() {
    let more =
        [&SMALL[..], &[("archive_log_mode", "on"), ("archive_log_dest", "/in/memory/copies")]].concat();
    let base = disk_with_table(&more);
    let mut copied = 0;
    for seed in 0..60 {
        let (disk, acknowledged) = crashed(&base, &more, (20 + 23 * seed, Survivors::Random(seed)));
        let (rows, _) = recovered(&disk, &more);
        assert!((acknowledged..=acknowledged + 1).contains(&rows), "seed {seed}: {rows} of {acknowledged}");
        let memory = Disk::Memory(Arc::clone(&disk));
        copied = copied.max(require_every_sequence(&memory, Path::new(HOME), disk.paths().into_iter()));
    }
    assert!(copied > 3, "{copied}");
}

/// One member of every log file suffices, either one, before and after a recovery.
#[test]
fn either_log_member_is_enough_at_any_power_loss() {
    let more = [&SMALL[..], &[("log_file_members", "2")]].concat();
    let base = disk_with_table(&more);
    let members =
        |directory: &'static str| (1..=3).map(move |number| format!("{directory}redo{number:02}.log"));
    let mut damaged = 0;
    for seed in 0..60 {
        let (disk, acknowledged) = crashed(&base, &more, (20 + 23 * seed, Survivors::Random(seed)));
        let [one, other] = if seed % 2 == 0 { ["", "mirror/"] } else { ["mirror/", ""] };
        let remove = |directory| {
            for name in members(directory) {
                Disk::Memory(Arc::clone(&disk)).remove(&Path::new(HOME).join(name)).expect("removed");
            }
        };
        if seed % 4 < 2 {
            remove(one);
        } else {
            // A bit in each of the first batches.
            members(one).for_each(|name| disk.flip_bit(&Path::new(HOME).join(name), (4096 + 40) * 8));
        }
        let (rows, restored) = recovered(&disk, &more);
        let said = || format!("seed {seed}: {rows} of {acknowledged}, {restored:?}");
        assert!((acknowledged..=acknowledged + 1).contains(&rows), "{}", said());
        assert!(seed % 4 >= 2 || restored.len() >= 3, "{}", said());
        damaged += restored.iter().filter(|said| said.starts_with("the batch at byte 4096 of ")).count();
        // Damage in the middle of a second member is found only when it is needed.
        if seed % 4 != 3 {
            remove(other);
            assert_eq!(recovered(&disk, &more).0, rows, "{}", said());
        }
    }
    assert!(damaged > 0, "a batch of the first member was taken from the second");
}

/// Sessions, LGWR and the opener take the log writer's role in turn, each in a thread; the
/// next opening has either member.
#[test]
fn any_role_holder_writes_both_members_on_disk() {
    const SESSIONS: usize = 4;
    for method in ["io_uring", "threads", "sync"] {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("db");
        let more = [("io_method", method), ("log_file_members", "2")];
        let instance = create(&home, &more);
        let opened = |instance: &Instance| {
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(instance, &session).expect("a log");
            if transactions.instance().catalog().live_tables.is_empty() {
                create_table(&transactions, &session);
            }
            thread::scope(|scope| {
                for _ in 0..SESSIONS {
                    scope.spawn(|| insert(&transactions, &instance.recorder.session(Role::User), 50));
                }
            });
            (count(&transactions, &session), transactions.recovered().restored.len())
        };
        assert_eq!(opened(&instance), (SESSIONS * 50, 0), "{method}");
        drop(instance);
        for (round, lost) in (2..).zip(["", "mirror"]) {
            for number in 1..=3 {
                let path = home.join(lost).join(format!("redo{number:02}.log"));
                std::fs::remove_file(path).expect("removed");
            }
            let instance = open(&home, &more);
            assert_eq!(opened(&instance), (round * SESSIONS * 50, 3), "{method} without {lost}");
        }
    }
}

#[test]
fn sessions_wait_for_a_missing_destination() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, copies) = (directory.path().join("db"), directory.path().join("copies"));
    let destination = copies.to_string_lossy().to_string();
    let more =
        [("archive_log_mode", "on"), ("archive_log_dest", destination.as_str()), ("log_file_size", "256K")];
    std::fs::create_dir(&copies).expect("made");
    let instance = create(&home, &more);
    std::fs::remove_dir(&copies).expect("it is empty");
    let error = waits_for_the_destination(&instance, || std::fs::create_dir(&copies).expect("made"));
    assert!(error.starts_with(&format!("log sequence 1 in {destination}: ")), "{error}");
    let found = std::fs::read_dir(&copies).expect("there").map(|entry| entry.expect("readable").path());
    assert!(require_every_sequence(&Disk::Kernel, &home, found) > 0);
}

#[test]
fn sessions_wait_for_a_full_destination() {
    let copies = Path::new("/in/memory/copies");
    let more =
        [("archive_log_mode", "on"), ("archive_log_dest", "/in/memory/copies"), ("log_file_size", "256K")];
    let instance = instance_in_memory(&more);
    let disk = memory_disk(&instance);
    disk.plan_faults(Faults { full: Some(copies.to_path_buf()), ..Faults::default() });
    let error = waits_for_the_destination(&instance, || disk.plan_faults(Faults::default()));
    let expected = "log sequence 1 in /in/memory/copies: write of 262144 bytes at offset 0 of ";
    assert!(error.starts_with(expected) && error.contains("No space left on device"), "{error}");
    let found = disk.paths().into_iter();
    assert!(require_every_sequence(&Disk::Memory(disk), Path::new("/in/memory"), found) > 0);
}

/// Writes more than all log files hold, and repairs the archive destination once sessions wait for
/// it. Returns the error of the failed copy.
fn waits_for_the_destination(instance: &Instance, mend: impl FnOnce()) -> String {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session).expect("a log");
    create_table(&transactions, &session);
    let error = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let session = instance.recorder.session(Role::User);
            insert(&transactions, &session, 2000);
        });
        let waits = || -> u64 {
            let snapshot = instance.recorder.snapshot();
            snapshot.sessions.iter().map(|it| it.events[Event::LogFileSwitchArchive as usize].count).sum()
        };
        while waits() == 0 {
            assert!(!writer.is_finished(), "three files of 256K do not hold a megabyte");
            thread::sleep(Duration::from_millis(1));
        }
        let error = transactions.log().archiver_error().expect("a copy failed");
        mend();
        writer.join().expect("all rows are in");
        error
    });
    assert_eq!(count(&transactions, &session), 2000);
    error
}

#[test]
fn settings_fixed_at_log_creation_cannot_change_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let open_log = |instance: &Instance| {
        let session = instance.recorder.session(Role::User);
        Transactions::open(instance, &session).map(drop).map_err(|error| error.to_string())
    };
    open_log(&create(&home, &[])).expect("made");
    for (setting, value, made) in
        [("log_file_members", "2", "1"), ("log_file_groups", "5", "3"), ("log_file_size", "2M", "1M")]
    {
        assert_eq!(
            open_log(&open(&home, &[(setting, value)])).expect_err("another log"),
            format!(
                "{setting}={value} contradicts a log that was made with {made}: that is fixed then; leave it out, or make another database"
            )
        );
    }
    open_log(&open(&home, &[("log_file_groups", "3")])).expect("as it was made");
}

#[test]
fn a_destination_must_be_named() {
    let instance = instance_in_memory(&[("archive_log_mode", "on")]);
    let session = instance.recorder.session(Role::User);
    assert_eq!(
        Transactions::open(&instance, &session).expect_err("no destination").to_string(),
        "archive_log_mode=on contradicts an empty archive_log_dest: log files must be copied somewhere; name a directory"
    );
}

#[test]
fn a_destination_must_be_there_when_the_database_is_opened() {
    let directory = tempfile::tempdir().expect("a directory");
    let (home, copies) = (directory.path().join("db"), directory.path().join("copies"));
    let named = copies.display().to_string();
    let all = settings(&[("archive_log_mode", "on"), ("archive_log_dest", named.as_str())]);
    let expected = format!(
        "archive_log_mode=on contradicts archive_log_dest={named}: there is no such directory for copies of log files; \
         make it first, or name another one"
    );
    let layout = Layout::in_one(home.clone());
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 20) };
    let made = Instance::create(&layout, all.clone(), sizes, Cancel::default());
    assert_eq!(made.expect_err("no directory").to_string(), expected);
    assert!(!home.exists(), "nothing was made");
    drop(create(&home, &[]));
    let opened = Instance::open(&home, all.clone(), Cancel::default());
    assert_eq!(opened.expect_err("no directory").to_string(), expected);
    std::fs::write(&copies, "").expect("a file");
    Instance::open(&home, all, Cancel::default()).expect_err("a file is no directory");
    drop(open(&home, &[("archive_log_mode", "on"), ("archive_log_dest", "within")]));
}

fn instance_in_memory(more: &[(&str, &str)]) -> Instance {
    let null = [("io_method", "null")];
    create(Path::new("/in/memory"), &[&null, more].concat())
}

#[test]
fn a_switch_leaves_nothing_to_write_or_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    std::fs::create_dir_all(directory.path().join("copies")).expect("a directory");
    let copies = directory.path().join("copies").display().to_string();
    let more = [("archive_log_mode", "on"), ("archive_log_dest", copies.as_str())];
    let instance = create(&home, &more);
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create_table(&transactions, &session);
    let log = transactions.log();
    let room = log.room();
    // More rounds than files, so that each file is used again.
    for round in 1..=8 {
        insert(&transactions, &session, 5);
        transactions.switch_log_file(&session).expect("switched");
        let (_, offset) = log.position();
        // A checkpoint's record, and the ends of the transactions it waited for.
        assert!(offset <= 4096 + 4 * 4096, "round {round}: {offset}");
        assert!(log.to_recover().0 <= 16_384, "round {round}: {}", log.to_recover());
        assert_eq!(
            std::fs::read_dir(&copies).expect("a directory").count(),
            round,
            "each filled file has a copy"
        );
        assert_eq!(count(&transactions, &session), 5 * round);
    }
    assert!((log.room() - room).abs() < 65_536, "no room is lost: {} then, {room} at first", log.room());
    drop(transactions);
    drop(instance);
    let instance = open(&home, &more);
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    assert_eq!(count(&transactions, &session), 40);
}

#[test]
fn a_log_without_a_free_file_is_not_switched() {
    let disk = MemoryDisk::with_power(1);
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 16) };
    let more = [("io_method", "null"), ("log_file_groups", "2")];
    let instance =
        Instance::create_on(&disk, Path::new("/in/memory/db"), settings(&more), sizes).expect("a database");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create_table(&transactions, &session);
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    let id = Value::Number(Number::new(1, 0).expect("small"));
    transaction.insert("T", &[id, Value::Text("v".to_string())]).expect("inserted");
    transactions.switch_log_file(&session).expect("the second file was free");
    let refused = transactions.switch_log_file(&session).expect_err("the first one is needed");
    assert_eq!(
        refused.to_string(),
        "the log cannot be switched: all its 2 files are needed by transactions under way; commit or roll back first"
    );
    transaction.commit().expect("committed all the same");
    transactions.switch_log_file(&session).expect("nobody needs the first one any more");
    assert_eq!(count(&transactions, &session), 1);
}

#[test]
fn a_log_is_direct_or_buffered_independently() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let ways = [("buffered", DirectIo::Off), ("direct", DirectIo::Required), ("buffered", DirectIo::Off)];
    let mut block = None;
    for (round, (word, expected)) in ways.into_iter().enumerate() {
        let asked = [("log_file_io", word), ("filesystemio_options", "none")];
        let instance = if round == 0 { create(&home, &asked) } else { open(&home, &asked) };
        let session = instance.recorder.session(Role::User);
        let transactions = match Transactions::open(&instance, &session) {
            Ok(transactions) => transactions,
            // If the file system cannot do direct I/O, the explicit setting is rejected by name.
            Err(error) if expected == DirectIo::Required => {
                assert!(matches!(error, EngineError::Io(IoError::DirectUnsupported { .. })), "{error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        if round == 0 {
            create_table(&transactions, &session);
        }
        assert!(transactions.log().files().all(|file| file.direct() == expected), "{word}");
        assert_eq!(*block.get_or_insert(transactions.log().block_bytes()), transactions.log().block_bytes());
        assert_eq!(count(&transactions, &session), 10 * round, "before {word}");
        insert(&transactions, &session, 10);
    }
}

/// When archiving is newly enabled, all log files may lack a copy at opening.
#[test]
fn a_log_switches_after_files_filled_without_copies() {
    let (disk, home) = (MemoryDisk::with_power(5), Path::new("/in/memory/db"));
    let sizes = InitialSizes { users: Bytes(8 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 16) };
    {
        let instance = Instance::create_on(&disk, home, settings(&[]), sizes).expect("a database");
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        create_table(&transactions, &session);
        insert(&transactions, &session, 6000);
    }
    let copies = [("archive_log_mode", "on"), ("archive_log_dest", "/in/memory/copies")];
    let instance = Instance::open_on(&disk, home, settings(&copies)).expect("opened");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("recovered");
    transactions.switch_log_file(&session).expect("the files were copied, and one of them is free");
    assert_eq!(count(&transactions, &session), 6000);
}
