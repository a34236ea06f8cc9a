//! Tables, histograms, sessions, periods and the profile.

use crate::*;
use plumb_units::Nanos;
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

#[test]
fn names_are_unique_and_have_sentences() {
    let events: HashSet<_> = Event::ALL.iter().map(|event| event.name()).collect();
    assert_eq!(events.len(), Event::COUNT);
    let statistics: HashSet<_> = Statistic::ALL.iter().map(|statistic| statistic.name()).collect();
    assert_eq!(statistics.len(), Statistic::COUNT);
    assert!(Event::ALL.iter().all(|event| event.sentence().ends_with('.')));
    assert!(Statistic::ALL.iter().all(|statistic| statistic.sentence().ends_with('.')));
}

#[test]
fn a_duration_falls_in_the_bucket_that_covers_it() {
    for (nanos, bucket) in
        [(0, 0), (999, 0), (1_000, 1), (1_999, 1), (2_000, 2), (160_000, 8), (u64::MAX, BUCKETS - 1)]
    {
        assert_eq!(Histogram::bucket(Nanos(nanos)), bucket, "{nanos} ns");
    }
    assert_eq!(Histogram::upper_micros(8), 256);
}

#[test]
fn elapsed_is_cpu_plus_waits_plus_a_small_rest() {
    let recorder = Recorder::new();
    let before = recorder.snapshot();
    thread::scope(|scope| {
        scope.spawn(|| {
            let session = recorder.session(Role::User);
            session.wait(Event::DirectPathRead, || thread::sleep(Duration::from_millis(20)));
            session.wait(Event::PxDeqTableQNormal, || thread::sleep(Duration::from_millis(10)));
            session.count(Statistic::SortRows, 7);
        });
    });
    let period = recorder.snapshot().since(&before);
    let session = &period.sessions[0];
    assert!(session.waits() >= Nanos(20_000_000));
    assert!(session.idle() >= Nanos(10_000_000));
    let parts = session.cpu + session.waits() + session.idle() + session.unaccounted();
    assert_eq!(parts, session.elapsed);
    assert!(session.wait_cpu > Nanos(0), "to go to sleep and to wake up takes CPU");
    assert_eq!(period.statistic(Statistic::SortRows), 7);
    assert_eq!(period.event(Event::DirectPathRead, SessionKind::Foreground).count, 1);
    assert_eq!(period.db_time(), session.cpu + session.waits());
}

#[test]
fn a_period_leaves_out_what_came_before_it() {
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    session.count(Statistic::SortRows, 5);
    session.waited(Event::DirectPathRead, Nanos(0), Nanos(5_000));
    let middle = recorder.snapshot();
    session.count(Statistic::SortRows, 3);
    session.waited(Event::DirectPathRead, Nanos(0), Nanos(9_000));
    let period = recorder.snapshot().since(&middle);
    assert_eq!(period.statistic(Statistic::SortRows), 3);
    let event = period.event(Event::DirectPathRead, SessionKind::Foreground);
    assert_eq!((event.count, event.time), (1, Nanos(9_000)));
    assert_eq!(event.histogram.0[4], 1);
}

#[test]
fn the_profile_keeps_every_byte_when_it_folds() {
    let mut profile = Profile::new(Nanos(0));
    for second in 0..100u64 {
        let at = Nanos(second * 1_000_000_000);
        profile.add(IoStream::TableReads, at, Nanos(at.0 + 3_500_000), 1_000 + second);
    }
    let mut other = Profile::new(Nanos(0));
    other.add(IoStream::TableReads, Nanos(0), Nanos(0), 11);
    profile.merge(&other);
    assert!(profile.width() > Nanos(1_000_000));
    assert_eq!(profile.series(IoStream::TableReads).sum::<u64>(), 100 * 1_000 + 4_950 + 11);
    assert_eq!(profile.series(IoStream::TempReads).sum::<u64>(), 0);
    let length = |stream| profile.series(stream).count();
    assert_eq!(length(IoStream::TempReads), length(IoStream::TableReads), "one axis of time for all");
}

#[test]
fn a_long_wait_counts_while_it_lasts_and_publishes_what_was_moved() {
    let recorder = Recorder::new();
    let session = recorder.session(Role::DatabaseWriter);
    let moved = Moved {
        stream: IoStream::TempWrites,
        event: Event::DirectPathWriteTemp,
        file: 0,
        offset: 0,
        bytes: 4096,
    };
    session.transferred(RequestTimes::of_call(now(), now()), &moved);
    let before = recorder.snapshot();
    session.wait_long(Event::DbwrIdle, || {
        assert_eq!(recorder.profile().series(IoStream::TempWrites).sum::<u64>(), 4096);
        thread::sleep(Duration::from_millis(5));
        let idle = recorder.snapshot().since(&before).event(Event::DbwrIdle, SessionKind::Background);
        assert!(idle.time >= Nanos(5_000_000));
        assert_eq!(idle.count, 0);
    });
    let idle = recorder.snapshot().since(&before).event(Event::DbwrIdle, SessionKind::Background);
    assert_eq!(idle.count, 1);
}

/// Creates a record by a clock that the test sets.
fn record(begin: Nanos, used_before: [Nanos; 2]) -> session::Record {
    session::Record::new(("p000".to_string(), Role::User, session::Meter::Thread(0)), begin, used_before)
}

#[test]
fn cpu_inside_waits_is_a_part_of_the_waits_and_the_parts_sum_to_elapsed() {
    let record = record(Nanos(1_000), [Nanos(7_000), Nanos(50)]);
    // The clock was read around one wait of two. A third of its time was CPU, which is
    // assumed of the other too.
    record.waited(Event::DirectPathRead, Nanos(300), Some(Nanos(100)));
    record.waited(Event::DirectPathRead, Nanos(600), None);
    // Reading the CPU clock takes longer than an empty wait.
    record.waited(Event::PxDeqTableQNormal, Nanos(40), Some(Nanos(90)));
    // The CPU inside is unknown: none is subtracted from the rest.
    record.waited(Event::DbFileAsyncIoSubmit, Nanos(60), None);
    record.ended(Nanos(3_000), [Nanos(7_900), Nanos(70)]);
    let session = SessionTotals::of(&record, Nanos(9_999));
    assert_eq!(session.events[Event::DirectPathRead as usize].cpu, Nanos(300));
    assert_eq!((session.wait_cpu, session.cpu), (Nanos(340), Nanos(900 - 340)));
    assert_eq!((session.waits(), session.idle()), (Nanos(960), Nanos(40)));
    assert_eq!((session.elapsed, session.run_queue), (Nanos(2_000), Nanos(20)));
    assert_eq!(session.unaccounted(), Nanos(2_000 - 560 - 960 - 40));
}

#[test]
fn no_more_cpu_is_taken_for_waits_than_was_used() {
    let record = record(Nanos(0), [Nanos(0); 2]);
    record.waited(Event::DirectPathRead, Nanos(100), Some(Nanos(100)));
    record.waited(Event::DirectPathRead, Nanos(900), None);
    record.ended(Nanos(1_000), [Nanos(400), Nanos(0)]);
    let session = SessionTotals::of(&record, Nanos(1_000));
    assert_eq!((session.cpu, session.wait_cpu, session.unaccounted()), (Nanos(0), Nanos(400), Nanos(0)));
}

#[test]
fn waits_that_are_all_cpu_leave_the_sleep_beside_them_to_the_cpu_of_the_session() {
    let recorder = Recorder::new();
    let before = recorder.snapshot();
    thread::scope(|scope| {
        scope.spawn(|| {
            let session = recorder.session(Role::User);
            for _ in 0..20 {
                session.wait(Event::DirectPathRead, || spin(Nanos(1_000_000)));
                session.wait(Event::DbFileSequentialRead, || thread::sleep(Duration::from_millis(1)));
            }
            spin(Nanos(10_000_000));
        });
    });
    let period = recorder.snapshot().since(&before);
    let session = &period.sessions[0];
    let within = session.events[Event::DirectPathRead as usize].cpu;
    assert!((20_000_000..=session.waits().0).contains(&within.0), "{within}");
    assert!(session.cpu >= Nanos(9_000_000) && session.cpu < Nanos(20_000_000), "{}", session.cpu);
    let parts = session.cpu + session.waits();
    assert!(parts <= session.elapsed, "counted twice: {parts} of {}", session.elapsed);
    assert_eq!(period.db_time(), parts);
}

/// Uses the processor for `time`.
fn spin(time: Nanos) {
    let begin = clock::thread_cpu();
    while clock::thread_cpu().saturating_sub(begin) < time {}
}

#[test]
fn a_session_on_a_thread_that_lived_before_it_counts_its_own_cpu_only() {
    const BEFORE: Nanos = Nanos(60_000_000);
    spin(BEFORE);
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    spin(Nanos(5_000_000));
    let cpu = || recorder.snapshot().sessions[0].cpu_used();
    let of_another_thread = thread::scope(|scope| scope.spawn(cpu).join().expect("a snapshot"));
    assert!(of_another_thread < BEFORE, "alive, seen from another thread: {of_another_thread}");
    let alive = cpu();
    assert!(alive >= Nanos(5_000_000) && alive < BEFORE, "alive: {alive}");
    drop(session);
    let ended = cpu();
    assert!(ended >= alive && ended < BEFORE, "ended: {ended}");
}

#[test]
fn scheduler_times_are_the_first_two_fields() {
    assert_eq!(clock::parse_schedstat("100 25 7\n"), Some((Nanos(100), Nanos(25))));
    assert_eq!(clock::parse_schedstat("100"), None);
}

#[test]
fn a_stream_has_the_function_of_the_role_that_moves_it() {
    use crate::{Function, IoStream};
    let of = |stream: IoStream, role| stream.function_of(role);
    assert_eq!(of(IoStream::TempWrites, Role::SortServer), Function::DirectWrites);
    assert_eq!(of(IoStream::TempWrites, Role::DatabaseWriter), Function::Dbwr);
    assert_eq!(of(IoStream::DataWrites, Role::DatabaseWriter), Function::Dbwr);
    assert_eq!(of(IoStream::LogWrites, Role::DatabaseWriter), Function::Lgwr);
    assert_eq!(of(IoStream::LogWrites, Role::User), Function::Lgwr);
    assert_eq!(of(IoStream::LogReads, Role::Archiver), Function::Arch);
    assert_eq!(of(IoStream::CacheReads, Role::User), Function::BufferCacheReads);
    for stream in IoStream::ALL {
        assert_eq!(IoStream::named(stream.name()), Some(*stream));
        assert!(Function::ALL.contains(&stream.function()), "{}", stream.name());
    }
}
