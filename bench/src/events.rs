//! Measures the cost of recording: nanoseconds of a wait, a count, a clock reading.

use super::figure::Figure;
use plumb_events::clock::thread_cpu;
use plumb_events::{Event, IoStream, Moved, Recorder, RequestTimes, Role, Statistic, now};
use plumb_units::Nanos;
use std::hint::black_box;

const CALLS: u64 = 2_000_000;
const REPEATS: usize = 9;

pub(super) fn run() -> anyhow::Result<()> {
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    println!("nanoseconds a call: of {REPEATS} x {CALLS} calls [95% interval]; the goal for a wait is 60");
    let per_call = |work: &dyn Fn()| {
        let one = |_| {
            let begin = now();
            (0..CALLS).for_each(|_| work());
            now().saturating_sub(begin).0 as f64 / CALLS as f64
        };
        Figure::of((0..REPEATS).map(one).collect::<Vec<_>>())
    };
    let moved = Moved {
        stream: IoStream::TableReads,
        event: Event::DirectPathRead,
        file: 1,
        offset: 0,
        bytes: 524_288,
    };
    let traced = Recorder::new();
    traced.arm_trace((REPEATS as u64 + 1) * CALLS);
    traced.begin_trace();
    let traced = traced.session(Role::User);
    let rows: [(&str, &dyn Fn()); 6] = [
        ("clock reading", &|| {
            black_box(now());
        }),
        ("reading of the thread's CPU clock", &|| {
            black_box(thread_cpu());
        }),
        ("wait (two clock readings, count, time, maximum, histogram)", &|| {
            session.wait(Event::DirectPathRead, || black_box(()));
        }),
        ("statistic", &|| session.count(Statistic::SortRows, black_box(1))),
        ("transfer (stream, statistics, profile)", &|| {
            let times = RequestTimes::of_call(Nanos(1_000_000), Nanos(1_200_000));
            session.transferred(times, black_box(&moved));
        }),
        ("transfer that a trace keeps", &|| {
            let times = RequestTimes::of_call(Nanos(1_000_000), Nanos(1_200_000));
            traced.transferred(times, black_box(&moved));
        }),
    ];
    for (name, work) in rows {
        println!("{:>28}  {name}", per_call(work).show(1));
    }
    Ok(())
}
