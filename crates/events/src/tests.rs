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
            let session = recorder.session("sleeper", SessionKind::Foreground);
            session.wait(Event::DirectPathRead, || thread::sleep(Duration::from_millis(20)));
            session.wait(Event::PxDeqExecutionMsg, || thread::sleep(Duration::from_millis(10)));
            session.count(Statistic::SortRows, 7);
        });
    });
    let period = recorder.snapshot().since(&before);
    let session = &period.sessions[0];
    assert!(session.waits(false) >= Nanos(20_000_000));
    assert!(session.waits(true) >= Nanos(10_000_000));
    let parts = session.cpu + session.waits(false) + session.waits(true) + session.unaccounted();
    // Going to sleep and waking up is CPU time within a wait: that much is counted twice.
    let twice = parts.0.checked_sub(session.elapsed.0).expect("no time is missing");
    assert!(twice <= session.cpu.0, "{twice}");
    assert_eq!(period.statistic(Statistic::SortRows), 7);
    assert_eq!(period.event(Event::DirectPathRead, SessionKind::Foreground).count, 1);
    assert_eq!(period.db_time(), session.cpu + session.waits(false));
}

#[test]
fn a_period_leaves_out_what_came_before_it() {
    let recorder = Recorder::new();
    let session = recorder.session("worker", SessionKind::Foreground);
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
}

#[test]
fn a_long_wait_counts_while_it_lasts_and_publishes_what_was_moved() {
    let recorder = Recorder::new();
    let session = recorder.session("DBW0", SessionKind::Background);
    session.transferred(IoStream::TempWrites, now(), now(), 4096);
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

#[test]
fn scheduler_times_are_the_first_two_fields() {
    assert_eq!(clock::parse_schedstat("100 25 7\n"), Some((Nanos(100), Nanos(25))));
    assert_eq!(clock::parse_schedstat("100"), None);
}
