//! One round: each point by both tools, in an order of its own.

use super::fio::Fio;
use super::point::{Comparison, Outcome};
use super::quiet::{self, Moment};
use crate::order;
use plumb_calibrate::{Task, TaskSession};
use plumb_proof::random::Generator;
use plumb_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) each: Nanos,
    /// The wait before a pair, at most.
    pub(super) wait: Nanos,
}

/// Measures every point once by plumb and once by fio.
pub(super) fn run(
    comparisons: &mut [Comparison],
    bench: &TaskSession<'_>,
    fio: &Fio,
    times: Times,
    seed: u64,
    round: u16,
) -> anyhow::Result<()> {
    let mut random = Generator::of_part(seed, u64::from(round));
    for index in order(&mut random, comparisons.len()) {
        let comparison = &mut comparisons[index];
        let task = &comparison.task;
        let moment = quiet::wait(times.wait);
        let time = times.each;
        let pair = if random.below(2) == 0 {
            let first = plumb(task, bench, time)?;
            (first, fio.measure(task, bench, time)?)
        } else {
            let first = fio.measure(task, bench, time)?;
            (plumb(task, bench, time)?, first)
        };
        comparison.rounds.push(pair);
        comparison.quiet += usize::from(moment == Moment::Quiet);
    }
    Ok(())
}

fn plumb(task: &Task, bench: &TaskSession<'_>, time: Nanos) -> anyhow::Result<Outcome> {
    let _company = Company::new();
    let measured = bench.measure(task, time)?;
    Ok(Outcome {
        iops: measured.iops(0),
        cpu_micros: measured.cpu_micros().unwrap_or(f64::NAN),
        io_wq_workers: measured.evidence.io_wq_workers,
    })
}

/// A thread that wakes a hundred times a second and does nothing, as fio's main process
/// does next to its job. Where a processor is otherwise idle between two requests, the
/// kernel stops its clock tick and starts it again at a cost that is booked on the
/// request: a loop of pwrite and fdatasync in C takes 49 us of processor time a write alone,
/// and 36 us with such a sleeper on its processor.
struct Company {
    over: Arc<AtomicBool>,
    sleeper: Option<JoinHandle<()>>,
}

/// The sleep of fio's main process while a job runs.
const COMPANY_SLEEP: Duration = Duration::from_millis(10);

impl Company {
    fn new() -> Company {
        let over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&over);
        let sleeper = thread::spawn(move || {
            while !theirs.load(Relaxed) {
                thread::sleep(COMPANY_SLEEP);
            }
        });
        Company { over, sleeper: Some(sleeper) }
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // It must not wake in fio's turn.
        let _ = self.sleeper.take().map(JoinHandle::join);
    }
}
