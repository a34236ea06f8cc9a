//! The log buffer and group commit under a model checker (loom): every order of their steps that
//! threads and the memory model allow, up to a number of preemptions. The files are the engine's
//! own; only atomics, mutexes and threads are the checker's, and the records are shorter.

use atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use loom::model::Builder;
use loom::thread;
use plumb_units::Lsn;
use std::sync::{Arc, OnceLock};

use loom::sync::{self, atomic};
use loom::thread::{JoinHandle, Thread};

mod sharing {
    pub use loom::thread::yield_now;

    /// False, because each session is a thread.
    pub fn is_shared() -> bool {
        false
    }
}

mod record {
    pub const HEADER_BYTES: usize = 16;
}

#[allow(dead_code)]
#[path = "../../src/redo/log_buffer.rs"]
mod log_buffer;

#[allow(dead_code)]
#[path = "../../src/redo/group_commit.rs"]
mod group_commit;

use group_commit::{GroupCommit, ROLE, Turn};
use log_buffer::LogBuffer;

/// Bytes of a record: its length, and a number.
const RECORD: usize = 16;
/// Number of records in the ring.
const RING: usize = 4;

fn record(number: u64) -> Vec<u8> {
    [RECORD as u64, number].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Each session appends its numbers in turn; the writer takes and releases until it has all.
/// Returns the numbers in the order of their places.
fn written(sessions: &'static [&'static [u64]]) -> Vec<u64> {
    let buffer = Arc::new(LogBuffer::new(RING * RECORD, Lsn(0)));
    let append = |numbers: &'static [u64]| {
        let buffer = Arc::clone(&buffer);
        thread::spawn(move || {
            for number in numbers {
                let lsn = buffer.reserve(RECORD);
                while !buffer.has_room(Lsn(lsn.0 + RECORD as u64)) {
                    thread::yield_now();
                }
                buffer.fill(lsn, &record(*number));
            }
        })
    };
    let threads: Vec<_> = sessions.iter().map(|numbers| append(numbers)).collect();
    let count: usize = sessions.iter().map(|numbers| numbers.len()).sum();
    let (mut at, mut found) = (Lsn(0), Vec::new());
    while found.len() < count {
        let mut records = 0;
        let end = buffer.complete_from(at, RING * RECORD, |length| {
            assert_eq!(length, RECORD, "a length is there with its record");
            records += 1;
        });
        let mut bytes = vec![0; records * RECORD];
        buffer.copy(at, &mut bytes);
        for bytes in bytes.chunks_exact(RECORD) {
            found.push(u64::from_le_bytes(bytes[8..].try_into().expect("eight bytes")));
        }
        at = end;
        buffer.release(at);
        if records == 0 {
            thread::yield_now();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    found
}

/// Runs `work` in every order of its steps, up to this number of preemptions.
pub(crate) fn check(preemptions: usize, work: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(work);
}

#[test]
fn a_taken_record_is_whole_and_in_its_place() {
    check(3, || {
        let mut found = written(&[&[11], &[21]]);
        found.sort_unstable();
        assert_eq!(found, [11, 21]);
    });
}

/// More records than the ring holds, so places are used again.
#[test]
fn places_are_reused_without_records_of_an_earlier_round() {
    check(2, || assert_eq!(written(&[&[1, 2, 3, 4, 5, 6]]), [1, 2, 3, 4, 5, 6]));
}

/// A reader of an old version copies while its place is released: it gets the record, or
/// learns that it is gone.
#[test]
fn a_reader_has_the_record_or_none() {
    check(3, || {
        let buffer = Arc::new(LogBuffer::new(RING * RECORD, Lsn(0)));
        for number in 1..=3 {
            let lsn = buffer.reserve(RECORD);
            buffer.fill(lsn, &record(number));
        }
        let reader = Arc::clone(&buffer);
        let reading = thread::spawn(move || {
            let mut bytes = Vec::new();
            if reader.read(Lsn(0), &mut bytes).is_some() {
                assert_eq!(bytes, record(1));
            }
        });
        buffer.release(Lsn(3 * RECORD as u64));
        let lsn = buffer.reserve(RECORD);
        buffer.fill(lsn, &record(4));
        let lsn = buffer.reserve(RECORD);
        assert!(buffer.has_room(Lsn(lsn.0 + RECORD as u64)), "the first place was given back");
        buffer.fill(lsn, &record(5));
        reading.join().expect("no panic");
    });
}

/// A log whose records are bytes that are only counted.
struct Counted {
    group: GroupCommit,
    appended: AtomicU64,
    /// True while a thread writes; only one may.
    writing: AtomicBool,
    /// Most bytes that a write takes.
    most: u64,
    /// Thread of LGWR, if there is one.
    lgwr: OnceLock<Thread>,
    is_over: AtomicBool,
    /// Number of records that LGWR writes without a request.
    gathered: u64,
    /// True if LGWR's writes fail.
    fails: bool,
}

impl Counted {
    fn new(most: u64) -> Arc<Counted> {
        Arc::new(Counted::with(most))
    }

    fn with(most: u64) -> Counted {
        Counted {
            group: GroupCommit::new(Lsn(0)),
            appended: AtomicU64::new(0),
            writing: AtomicBool::new(false),
            most,
            lgwr: OnceLock::new(),
            is_over: AtomicBool::new(false),
            gathered: u64::MAX,
            fails: false,
        }
    }

    /// Starts the thread of LGWR.
    fn start_lgwr(self: &Arc<Self>, is_first: bool) -> JoinHandle<()> {
        self.group.lgwr_serves(is_first);
        let log = Arc::clone(self);
        let thread = thread::spawn(move || {
            while !log.is_over.load(SeqCst) {
                log.write_as_lgwr();
                thread::park();
            }
            log.group.lgwr_serves(false);
            log.write_as_lgwr();
        });
        self.lgwr.set(thread.thread().clone()).expect("one LGWR");
        thread
    }

    /// Requests the role when `gathered` records are not durable, and fails if the device does.
    fn write_as_lgwr(&self) {
        let gathered = || {
            let durable = self.group.durable().0;
            let appended = self.appended.load(SeqCst);
            (appended - durable >= self.gathered).then_some(Lsn(appended))
        };
        while self.group.lgwr_writes(gathered()) {
            if self.fails {
                self.group.fail("the device is gone".to_string());
            }
            self.give_up((!self.fails).then(|| self.write()));
        }
    }

    /// Appends many records, as a large transaction does.
    fn append(&self, records: u64) {
        self.appended.fetch_add(records, SeqCst);
        self.lgwr.get().expect("there is an LGWR").unpark();
    }

    fn end_lgwr(&self, thread: JoinHandle<()>) {
        self.is_over.store(true, SeqCst);
        thread.thread().unpark();
        thread.join().expect("no panic");
    }

    /// Takes the role without writing, as a log switch does.
    fn take_the_role(&self) -> Result<(), String> {
        while self.group.turn(ROLE)? != Turn::Write {
            self.group.sleep(ROLE);
        }
        assert!(!self.writing.swap(true, SeqCst), "G1: one writes");
        self.writing.store(false, SeqCst);
        self.give_up(None);
        Ok(())
    }

    fn give_up(&self, durable: Option<Lsn>) {
        self.group.give_up(durable, || self.lgwr.get().expect("LGWR is there that has the role").unpark());
    }

    /// Starts a further session, whose work must not fail.
    fn start(self: &Arc<Self>, work: fn(&Counted) -> Result<(), String>) -> JoinHandle<()> {
        let log = Arc::clone(self);
        thread::spawn(move || work(&log).expect("nothing fails"))
    }

    /// Appends a record and makes it durable before it returns.
    fn commit(&self) -> Result<(), String> {
        self.make_durable(self.appended.fetch_add(1, SeqCst) + 1)
    }

    fn make_durable(&self, until: u64) -> Result<(), String> {
        loop {
            match self.group.turn(Lsn(until))? {
                Turn::Durable => return Ok(()),
                Turn::Sleep => self.group.sleep(Lsn(until)),
                Turn::Write => {
                    let mut durable = self.write();
                    while durable < Lsn(until) {
                        self.group.wrote(durable);
                        durable = self.write();
                    }
                    self.give_up(Some(durable));
                }
            }
        }
    }

    fn write(&self) -> Lsn {
        assert!(!self.writing.swap(true, SeqCst), "G1: one writes");
        let end = self.appended.load(SeqCst).min(self.group.durable().0 + self.most);
        self.writing.store(false, SeqCst);
        Lsn(end)
    }
}

/// Runs sessions that commit at the same time. Each must return with its record durable; a session
/// that sleeps for ever is detected.
fn commits(most: u64, sessions: usize, each: usize) {
    let log = Counted::new(most);
    let work = move |log: &Counted| {
        for _ in 0..each {
            log.commit().expect("nothing fails");
        }
    };
    let threads: Vec<_> = (1..sessions)
        .map(|_| {
            let log = Arc::clone(&log);
            thread::spawn(move || work(&log))
        })
        .collect();
    work(&log);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(log.group.durable(), Lsn((sessions * each) as u64));
}

#[test]
fn each_of_two_sessions_comes_back_from_its_commits() {
    check(3, || commits(8, 2, 2));
}

#[test]
fn each_of_three_sessions_comes_back_from_its_commit() {
    check(2, || commits(8, 3, 1));
}

/// Two sessions wait for a third: LGWR writes for them, as long as a session waits.
#[test]
fn each_comes_back_whose_commit_lgwr_writes() {
    for most in [1, 8] {
        check(2, move || {
            let log = Counted::new(most);
            let lgwr = log.start_lgwr(true);
            let threads = [log.start(Counted::commit), log.start(Counted::commit)];
            log.commit().expect("nothing fails");
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(log.group.durable(), Lsn(3));
            log.end_lgwr(lgwr);
            log.commit().expect("a session writes where no LGWR does");
        });
    }
}

/// LGWR requests the role while others hold it, because many records have gathered, and is woken
/// when it has it. No committing session waits for ever meanwhile.
#[test]
fn each_comes_back_beside_an_lgwr_that_wants_the_role() {
    for is_first in [true, false] {
        check(2, move || {
            let log = Arc::new(Counted { gathered: 2, ..Counted::with(8) });
            let lgwr = log.start_lgwr(is_first);
            let committing = log.start(Counted::commit);
            log.append(2);
            log.commit().expect("nothing fails");
            committing.join().expect("no panic");
            log.end_lgwr(lgwr);
            log.commit().expect("a session writes where no LGWR does");
        });
    }
}

/// LGWR's write fails: all sessions waiting for it learn of it, and so does
/// one that requests the role.
#[test]
fn a_failed_write_of_lgwr_wakes_everybody() {
    check(2, || {
        let log = Arc::new(Counted { fails: true, gathered: 1, ..Counted::with(8) });
        let lgwr = log.start_lgwr(true);
        let other = Arc::clone(&log);
        let switching = thread::spawn(move || {
            let _ = other.take_the_role();
        });
        // A session's own write works, and LGWR's does not.
        let _ = log.commit();
        log.append(1);
        log.end_lgwr(lgwr);
        switching.join().expect("no panic");
    });
}

/// LGWR ends while others commit: sessions write from then on.
#[test]
fn each_comes_back_from_its_commit_while_lgwr_ends() {
    check(2, || {
        let log = Counted::new(8);
        let lgwr = log.start_lgwr(true);
        let threads = [log.start(Counted::commit), log.start(Counted::commit)];
        log.end_lgwr(lgwr);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(log.group.durable(), Lsn(2));
    });
}

/// A session that requests the role and was woken for another reason finds it free, and is not
/// given it a second time.
#[test]
fn who_has_taken_the_role_waits_for_it_no_more() {
    check(2, || {
        let log = Counted::new(8);
        let other = Arc::clone(&log);
        let switching = thread::spawn(move || {
            thread::current().unpark();
            other.take_the_role().expect("nothing fails");
        });
        let committing = log.start(Counted::commit);
        log.commit().expect("nothing fails");
        switching.join().expect("no panic");
        committing.join().expect("no panic");
        log.commit().expect("the role is free");
    });
}

/// LGWR gives the role up to a session that needs it for something else.
#[test]
fn who_needs_the_role_gets_it_from_lgwr() {
    check(2, || {
        let log = Counted::new(8);
        let lgwr = log.start_lgwr(true);
        let switching = log.start(Counted::take_the_role);
        let committing = log.start(Counted::commit);
        log.commit().expect("nothing fails");
        switching.join().expect("no panic");
        committing.join().expect("no panic");
        log.end_lgwr(lgwr);
    });
}

/// A write takes less than the session needs.
#[test]
fn each_comes_back_from_writes_that_do_not_take_all() {
    check(2, || commits(1, 3, 1));
}

/// A log switch takes the role, and writes nothing.
#[test]
fn who_needs_the_role_for_something_else_gets_it() {
    check(2, || {
        let log = Counted::new(8);
        let switching = log.start(Counted::take_the_role);
        let committing = log.start(Counted::commit);
        log.commit().expect("nothing fails");
        switching.join().expect("no panic");
        committing.join().expect("no panic");
    });
}

/// A failed write reaches all sessions at once.
#[test]
fn a_failed_write_wakes_everybody() {
    check(2, || {
        let log = Counted::new(8);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let log = Arc::clone(&log);
                thread::spawn(move || assert!(log.commit().is_err() || log.group.durable().0 > 0))
            })
            .collect();
        loop {
            match log.group.turn(Lsn(3)) {
                Ok(Turn::Write) => {
                    log.group.fail("the disk is gone".to_string());
                    log.give_up(None);
                }
                Ok(Turn::Sleep) => log.group.sleep(Lsn(3)),
                Ok(Turn::Durable) => break,
                Err(_) => break,
            }
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert!(log.commit().is_err(), "it stays so");
    });
}
