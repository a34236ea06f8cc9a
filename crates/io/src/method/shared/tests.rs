//! Sessions that share a thread: their reads, waits and CPU, and the errors of
//! all when the ring fails.

use super::*;
use crate::{DirectIo, Disk, MethodKind, OpenMode, Operation, Request};
use plumb_events::{IoStream, Period, Recorder, Role, SessionTotals, Statistic, locked, wait_signal};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::sync::{Condvar, Mutex};

const BLOCK: usize = 4096;
const BLOCKS: u64 = 40;

/// Runs sessions with their numbers on one server; returns their results and their records.
fn carried<T>(count: usize, work: impl Fn(&Session, usize) -> T + Copy) -> (Vec<T>, Period) {
    let recorder = Recorder::new();
    let before = recorder.snapshot();
    let method = Method::start(MethodKind::IoUring, 8).expect("a kernel with io_uring");
    let own = || recorder.numbered_session(Role::SharedServer, 0);
    let session = |number| -> Box<dyn FnOnce() -> T + '_> {
        let recorder = &recorder;
        Box::new(move || work(&recorder.numbered_session(Role::User, number), number))
    };
    let results = carry(&method, (&[], &[]), own, (0..count).map(session).collect()).expect("a ring");
    (results, recorder.snapshot().since(&before))
}

fn of_role(period: &Period, role: Role) -> Vec<&SessionTotals> {
    period.sessions.iter().filter(|session| session.role == role).collect()
}

struct Blocks {
    directory: tempfile::TempDir,
    file: Arc<File>,
}

impl Blocks {
    fn new() -> Blocks {
        let directory = tempfile::tempdir().expect("a directory");
        let file = Disk::Kernel.open(&directory.path().join("file"), OpenMode::Create, DirectIo::Off);
        Blocks { directory, file: Arc::new(file.expect("a file")) }
    }

    /// A pipe without a writer's bytes: a read stays in flight.
    fn silent() -> Blocks {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("silent");
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
        let opened = rustix::fs::open(&path, OFlags::RDWR, Mode::empty()).expect("a pipe");
        Blocks { directory, file: Arc::new(File::of_descriptor(&path, opened)) }
    }

    /// Moves a block by one request.
    fn moves(&self, session: &Session, operation: Operation, block: u64, byte: u8) -> Result<u8, IoError> {
        let (_, mut buffers) = Arena::buffers(BLOCK, 1)?;
        let mut buffer = buffers.pop();
        buffer.as_mut().expect("one").fill(byte);
        let request = Request {
            operation,
            file: Arc::clone(&self.file),
            offset: block * BLOCK as u64,
            buffer: buffer.take().expect("one"),
            range: 0..BLOCK,
            event: if operation.writes() { Event::DirectPathWrite } else { Event::DirectPathRead },
            stream: if operation.writes() { IoStream::DataWrites } else { IoStream::TableReads },
            tag: 0,
        };
        let mut channel = Method::start(MethodKind::Sync, 1)?.channel_for_one();
        let moved = channel.carry_out(session, request, &mut buffer)?;
        assert_eq!(moved, BLOCK);
        let bytes = buffer.expect("what succeeded gives its buffer back");
        assert!(bytes.iter().all(|other| *other == bytes[0]), "a block is one session's");
        Ok(bytes[0])
    }
}

#[test]
fn each_reads_what_it_has_written_through_the_ring() {
    let blocks = Blocks::new();
    let (results, period) = carried(8, |session, number| {
        for block in 0..BLOCKS {
            let place = number as u64 * BLOCKS + block;
            let byte = (place * 7 + 1) as u8;
            let write = if block % 8 == 0 { Operation::WriteAndSync } else { Operation::Write };
            blocks.moves(session, write, place, byte)?;
            assert_eq!(blocks.moves(session, Operation::Read, place, 0)?, byte);
        }
        Ok::<_, IoError>(number)
    });
    let numbers: Vec<usize> = results.into_iter().map(|result| result.expect("it succeeds")).collect();
    assert_eq!(numbers, (0..8).collect::<Vec<_>>());
    let [ring, calls] =
        [Statistic::RingRequests, Statistic::SyncRequests].map(|statistic| period.statistic(statistic));
    assert_eq!(ring + calls, 8 * BLOCKS * 2);
    // Only the last session writes by a call.
    assert!(calls <= BLOCKS, "{calls} calls");
    for session in of_role(&period, Role::User) {
        let waits =
            [Event::DirectPathRead, Event::DirectPathWrite].map(|event| &session.events[event as usize]);
        assert_eq!(waits.map(|waits| waits.count), [BLOCKS, BLOCKS]);
    }
    drop(blocks.directory);
}

/// A lock that its holder keeps through a request, while another session needs it.
#[test]
fn who_wants_a_lock_lets_its_holder_run() {
    let blocks = Blocks::new();
    let count = Mutex::new(0_u64);
    let add = |session: &Session, number: usize| {
        let mut guard = locked(&count);
        let before = *guard;
        blocks.moves(session, Operation::Write, number as u64, 1).expect("it is written");
        *guard = before + 1;
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|number| add(&Recorder::new().session(Role::User), number)));
        carried(4, |session, number| (0..20).for_each(|_| add(session, number)));
    });
    assert_eq!(*locked(&count), 100);
}

#[test]
fn a_signal_and_a_moment_are_waited_for_while_others_run() {
    let order = Mutex::new(Vec::new());
    let (given, signal) = (Mutex::new(false), Condvar::new());
    let (_, period) = carried(3, |session, number| {
        match number {
            0 => {
                let mut seen = locked(&given);
                while !*seen {
                    seen = wait_signal((&given, &signal), seen, Duration::from_secs(3600));
                }
            }
            1 => {
                let begin = now();
                session.wait(Event::MessageFromClient, || sharing::sleep(Duration::from_millis(5)));
                assert!(now().saturating_sub(begin) >= Nanos(5_000_000));
                *locked(&given) = true;
            }
            _ => sharing::yield_now(),
        }
        locked(&order).push(number);
    });
    assert_eq!(*locked(&order), [2, 1, 0]);
    assert!(
        period.event(Event::MessageFromClient, plumb_events::SessionKind::Foreground).time
            >= Nanos(5_000_000)
    );
}

/// CPU counts for the session that computes; a session that is ready meanwhile is queued.
#[test]
fn cpu_is_that_of_the_session_that_had_the_thread() {
    let blocks = Blocks::new();
    let (_, period) = carried(2, |session, number| {
        if number == 0 {
            let begin = now();
            while now().saturating_sub(begin) < Nanos(30_000_000) {}
        } else {
            blocks.moves(session, Operation::Write, 0, 1).expect("it is written");
        }
    });
    let [computes, writes] = of_role(&period, Role::User)[..] else { panic!("two sessions") };
    assert!(computes.cpu + computes.wait_cpu >= Nanos(30_000_000), "{:?}", computes.cpu);
    assert!(writes.cpu + writes.wait_cpu < Nanos(30_000_000), "{:?}", writes.cpu);
    let [server] = of_role(&period, Role::SharedServer)[..] else { panic!("one server") };
    assert!(
        server.cpu + server.wait_cpu < Nanos(30_000_000),
        "what it lent is not its own: {:?}",
        server.cpu
    );
}

/// As in a commit: the others wait for the write, and do not need the thread.
#[test]
fn a_write_that_all_others_wait_for_is_a_call_and_its_time_is_a_wait() {
    let blocks = Blocks::new();
    let is_written = Mutex::new(false);
    let (_, period) = carried(3, |session, number| {
        if number == 0 {
            blocks.moves(session, Operation::Write, 0, 1).expect("it is written");
            sharing::let_others();
            blocks.moves(session, Operation::WriteAndSync, 1, 1).expect("it is written");
            *locked(&is_written) = true;
        }
        while !*locked(&is_written) {
            sharing::yield_now();
        }
    });
    let counts = [Statistic::RingRequests, Statistic::SyncRequests];
    assert_eq!(counts.map(|statistic| period.statistic(statistic)), [1, 1], "others were ready at first");
    let writer = of_role(&period, Role::User)[0];
    let waits = &writer.events[Event::DirectPathWrite as usize];
    assert_eq!(waits.count, 2);
    // The call's overhead, some hundred nanoseconds, is in both.
    let both = (writer.cpu_used() + waits.time).saturating_sub(writer.elapsed);
    assert!(both < Nanos(20_000), "{both} of {} waited are CPU, too", waits.time);
}

#[test]
fn a_panic_comes_out_when_the_others_have_ended() {
    let ended = Mutex::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        carried(4, |_, number| {
            sharing::yield_now();
            assert_ne!(number, 1, "the second gives up");
            sharing::yield_now();
            *locked(&ended) += 1;
        })
    }));
    let panic = outcome.expect_err("it goes on");
    assert!(panic.downcast_ref::<String>().expect("a message").contains("the second gives up"));
    assert_eq!(*locked(&ended), 3);
    assert!(!is_shared() && !sharing::is_shared(), "the thread is its own again");
}

/// The ring is closed beneath them: every session with a request, now or later, gets
/// an error, and all end.
#[test]
fn a_ring_that_fails_is_an_error_of_each() {
    let blocks = Blocks::silent();
    let (results, _) = carried(3, |session, number| {
        if number == 2 {
            SERVER.with_borrow(|server| server.as_ref().expect("here").ring.borrow().close_for_test());
            sharing::yield_now();
        }
        blocks.moves(session, Operation::Read, 0, 1)
    });
    for result in results {
        let error = result.expect_err("nothing is read any more").to_string();
        assert!(error.contains("shared server") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn without_a_ring_nothing_runs() {
    let method = Method::start(MethodKind::Sync, 1).expect("calls");
    let recorder = Recorder::new();
    let own = || recorder.session(Role::SharedServer);
    let sessions: Vec<Box<dyn FnOnce()>> = vec![Box::new(|| panic!("it has no server"))];
    let error = carry(&method, (&[], &[]), own, sessions).expect_err("calls do not do").to_string();
    assert!(error.contains("io_method is sync") && error.contains("shared_servers=0"), "{error}");
}

/// A session that lets others run resumes after each of them has run until it waits,
/// and before they run again.
#[test]
fn who_lets_others_run_goes_on_behind_those_who_are_ready() {
    let order = Mutex::new(Vec::new());
    carried(3, |_, number| {
        let note = |what: &str| locked(&order).push(format!("{number} {what}"));
        note("begins");
        if number == 0 {
            sharing::let_others();
        } else {
            sharing::yield_now();
        }
        note("goes on");
    });
    let order = locked(&order);
    assert_eq!(*order, ["0 begins", "1 begins", "2 begins", "0 goes on", "1 goes on", "2 goes on"]);
}
