//! Logs whose bytes were changed, or whose files are missing: rejected in one line, or
//! recovered if the rest suffices.

use plumb_crash::world::read;
use plumb_crash::{Base, LogKind, schema};
use plumb_engine::Instance;
use plumb_engine::transaction::Transactions;
use plumb_events::{Role, Session};
use plumb_io::sim::MemoryDisk;
use plumb_io::sim::power::Survivors;
use plumb_io::{DirectIo, Disk, OpenMode};
use plumb_types::{Number, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const COMMITS: i64 = 5;

fn path(name: &str) -> PathBuf {
    Path::new("/in/memory/db").join(name)
}

/// Returns a database that was not closed after five commits, of one batch each.
fn left_open() -> Arc<MemoryDisk> {
    left_open_after(|_, _| ())
}

/// The same after some further work.
fn left_open_after(more: impl FnOnce(&Transactions<'_>, &Session)) -> Arc<MemoryDisk> {
    let disk = Base::new(LogKind::Plain).copy();
    let instance = LogKind::Plain.open(&disk).expect("open");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("open");
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    for id in 0..COMMITS {
        let id = Value::Number(Number::new(i128::from(id), 0).expect("small"));
        transaction.insert("T", &[id.clone(), id, Value::Text("v".into()), Value::Null]).expect("inserted");
        transaction.commit_and_chain().expect("committed");
    }
    more(&transactions, &session);
    disk.restart(Survivors::All)
}

/// Returns the batches by LSN, with file and offset.
fn batches(disk: &Arc<MemoryDisk>) -> Vec<(u64, PathBuf, u64)> {
    let mut found = Vec::new();
    for name in ["redo01.log", "redo02.log", "redo03.log"] {
        let bytes = Disk::Memory(Arc::clone(disk)).read_small(&path(name)).expect("readable").expect("there");
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let sequence = number(32);
        let mut at = 4096;
        while at + 32 <= bytes.len() && number(at + 16) == sequence && sequence > 0 {
            found.push((number(at + 8), path(name), at as u64));
            at += ((number(at) >> 32) as usize).next_multiple_of(512);
        }
    }
    found.sort();
    found
}

fn refused(disk: &Arc<MemoryDisk>) -> String {
    let error =
        LogKind::Plain.open(disk).and_then(|instance| read(&instance)).expect_err("damaged").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn rows(disk: &Arc<MemoryDisk>) -> i64 {
    LogKind::Plain.open(disk).and_then(|instance| read(&instance)).expect("recovered").rows.len() as i64
}

#[test]
fn a_bad_batch_before_a_whole_one_is_damage() {
    let disk = left_open();
    let found = batches(&disk);
    let (_, file, offset) = &found[found.len() - 3];
    disk.flip_bit(file, (offset + 100) * 8);
    let error = refused(&disk);
    let begin = format!(
        "redo log {}: the batch at byte {offset} is damaged: the log goes on at LSN ",
        file.display()
    );
    assert!(error.starts_with(&begin), "{error}");
    assert!(
        error.ends_with("what follows may have been committed: restore the database from a copy"),
        "{error}"
    );
}

#[test]
fn a_last_batch_that_is_not_whole_ends_the_log() {
    let disk = left_open();
    let found = batches(&disk);
    let (_, file, offset) = found.last().expect("a batch");
    disk.flip_bit(file, (offset + 100) * 8);
    assert_eq!(rows(&disk), COMMITS - 1);
}

/// The control file has the LSN up to which the log went when it was written.
#[test]
fn a_bad_last_batch_behind_the_control_file_is_damage() {
    let disk = left_open_after(|transactions, session| {
        transactions.create_table(session, "LATER", &schema(), &[]).expect("created");
    });
    let found = batches(&disk);
    let (_, file, offset) = found.last().expect("a batch");
    disk.flip_bit(file, (offset + 100) * 8);
    let error = refused(&disk);
    assert!(
        error.contains(&format!("the batch at byte {offset} is damaged: the log goes on at LSN ")),
        "{error}"
    );
}

#[test]
fn one_copy_of_the_control_block_is_enough() {
    for copy in 0..2 {
        let disk = left_open();
        disk.flip_bit(&path("redo.ctl"), (copy * 4096 + 40) * 8);
        assert_eq!(rows(&disk), COMMITS, "copy {copy}");
    }
    let disk = left_open();
    [0, 4096].iter().for_each(|copy| disk.flip_bit(&path("redo.ctl"), (copy + 40) * 8));
    assert_eq!(
        refused(&disk),
        "redo log /in/memory/db/redo.ctl: neither copy of the log's control block is whole; restore the database from a copy"
    );
}

#[test]
fn a_missing_or_foreign_log_file_is_refused() {
    let disk = left_open();
    Disk::Memory(Arc::clone(&disk)).remove(&path("redo02.log")).expect("removed");
    assert_eq!(
        refused(&disk),
        "redo log /in/memory/db/redo02.log: it is missing; restore it from a copy of the database made when it was closed"
    );
    // A file that has lost its end has lost batches; zeros in their place would
    // look like an unused end.
    let disk = left_open();
    let cut = Disk::Memory(Arc::clone(&disk)).open(&path("redo01.log"), OpenMode::Write, DirectIo::Off);
    cut.and_then(|file| file.truncate(8192)).expect("cut");
    assert_eq!(
        refused(&disk),
        "redo log /in/memory/db/redo01.log: it has 8192 bytes of 65536, and what its end had may have been committed; restore it from a copy of the database made when it was closed"
    );
    let disk = left_open();
    let current = batches(&disk).last().expect("a batch").1.clone();
    disk.flip_bit(&current, 40 * 8);
    let error = refused(&disk);
    assert!(error.contains("no log file has the sequence "), "{error}");
}

/// A log that the control file names is never made again.
#[test]
fn a_log_without_a_control_block_is_refused_and_kept() {
    let disk = left_open();
    let memory = Disk::Memory(Arc::clone(&disk));
    let control = memory.read_small(&path("redo.ctl")).expect("readable").expect("there");
    memory.remove(&path("redo.ctl")).expect("removed");
    assert_eq!(
        refused(&disk),
        "redo log /in/memory/db/redo.ctl: it is missing, and the log files cannot be read without it; put it back, or restore the database from a copy"
    );
    memory.replace(&path("redo.ctl"), &control).expect("put back");
    assert_eq!(rows(&disk), COMMITS);
}

/// Commits until the third log file has some batches; no checkpoint completes
/// that begins after the first.
fn in_three_files() -> (Arc<MemoryDisk>, Vec<PathBuf>) {
    let disk = Base::new(LogKind::Plain).copy();
    let mut settings = LogKind::Plain.settings();
    settings.set("log_checkpoint_interval", "0", "the test").expect("in range");
    let instance = Instance::open_on(&disk, Path::new("/in/memory/db"), settings).expect("open");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("open");
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    let before = batches(&disk).last().map_or(0, |(lsn, ..)| *lsn);
    let mut files: Vec<PathBuf> = Vec::new();
    for id in 0.. {
        let id = Value::Number(Number::new(id, 0).expect("small"));
        transaction
            .insert("T", &[id.clone(), id, Value::Text("v".repeat(100)), Value::Null])
            .expect("inserted");
        transaction.commit_and_chain().expect("committed");
        files =
            batches(&disk).into_iter().filter(|(lsn, ..)| *lsn > before).map(|(_, file, _)| file).collect();
        files.dedup();
        if files.len() == 3 {
            break;
        }
    }
    (disk.restart(Survivors::All), files)
}

/// A header is durable before its file has a batch, and before another file is begun. So a missing
/// header does not end the log.
#[test]
fn a_log_file_with_batches_but_no_header_is_damage() {
    assert!(rows(&in_three_files().0) > 10, "all of the log is read");
    for (file, says) in [(1, "it has the sequence "), (2, "its first batch has the sequence ")] {
        let (disk, files) = in_three_files();
        disk.flip_bit(&files[file], 33 * 8);
        let error = refused(&disk);
        assert!(error.contains(says) || error.contains("its first batch has the sequence "), "{error}");
        assert!(error.ends_with("may have been committed: restore the database from a copy"), "{error}");
    }
}

/// Kills the process at each request of a commit, so also between the write of its batch and the
/// sync. The next process finds the batch in the page cache and makes its own commit durable by
/// O_DSYNC. Then the power goes: the acknowledged commit must not lie after a hole.
#[test]
fn a_commit_behind_an_unsynced_batch_survives_a_power_loss() {
    let open = |disk: &Arc<MemoryDisk>, method: &str| {
        let mut settings = LogKind::Plain.settings();
        settings.set("log_sync_method", method, "the test").expect("in range");
        Instance::open_on(disk, Path::new("/in/memory/db"), settings)
    };
    let commit = |instance: &Instance, id: i64| {
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(instance, &session)?;
        let mut connection = transactions.connect(&session);
        let mut transaction = connection.begin();
        let id = Value::Number(Number::new(i128::from(id), 0).expect("small"));
        transaction.insert("T", &[id.clone(), id, Value::Text("v".into()), Value::Null])?;
        transaction.commit_and_chain()
    };
    let base = Base::new(LogKind::Plain);
    let mut killed_before_its_end = 0;
    for more in 0.. {
        let disk = base.copy();
        let instance = open(&disk, "fdatasync").expect("open");
        disk.lose_power_at(Some(disk.requests() + more));
        let acknowledged = commit(&instance, 1).is_ok();
        let next = disk.after_kill();
        drop(instance);
        let instance = open(&next, "open_datasync").expect("the machine goes on");
        commit(&instance, 2).expect("acknowledged");
        let rows = rows(&next.restart(Survivors::None));
        assert!(rows >= if acknowledged { 2 } else { 1 }, "L6: killed at request {more}: {rows} rows");
        if acknowledged {
            break;
        }
        killed_before_its_end += 1;
    }
    assert!(killed_before_its_end > 1);
}
