//! Rounds: each task once a round, in an order drawn anew for each.
//!
//! A round is a block of the design: whatever drifts over minutes reaches all tasks
//! alike. Before each round the idle device is watched, to see whether another process
//! uses it. After the first `REPEATS_MIN` rounds only tasks that have not settled go on,
//! until they settle, have been repeated [`REPEATS_MAX`] times, or time is up.

use super::TaskRunner;
use crate::plan::REPEATS_MIN;
use crate::random::Random;
use crate::{CalibrateError, Progress, ProgressObserver, Repeat, TaskPlan, TaskResult};
use plumb_events::now;
use plumb_units::Nanos;

/// Nine repeats are the fewest whose interval leaves out an outlier on either side.
pub(crate) const REPEATS_MAX: usize = 9;
/// How long the device is watched before a round.
const LOOK: Nanos = Nanos(100_000_000);

/// The time of a calibration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeBudget {
    pub begin: Nanos,
    /// When the last task must have ended.
    pub deadline: Nanos,
    /// How long each task is measured.
    pub task_time: Nanos,
}

/// The results of all rounds.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub results: Vec<TaskResult>,
    /// The most requests a second by other processes that were seen before a round.
    pub other_load: Option<f64>,
    /// Rounds before which there were such requests.
    pub busy_rounds: usize,
}

pub(crate) fn run(
    plan: &TaskPlan,
    runner: &TaskRunner<'_>,
    observer: &dyn ProgressObserver,
    time: TimeBudget,
) -> Result<Rounds, CalibrateError> {
    let results = plan.tasks.iter().cloned().map(TaskResult::new).collect();
    let mut rounds = Rounds { results, other_load: None, busy_rounds: 0 };
    let mut random = Random::part(runner.seed, u64::MAX - 1);
    let mut done = 0;
    for round in 0..REPEATS_MAX {
        let mut turns: Vec<usize> = (0..rounds.results.len())
            .filter(|index| round < REPEATS_MIN || !rounds.results[*index].settled())
            .collect();
        if turns.is_empty() {
            break;
        }
        if let Some(requests) = runner.meter.other_load(LOOK) {
            rounds.busy_rounds += 1;
            rounds.other_load = Some(rounds.other_load.unwrap_or(0.0).max(requests));
        }
        random.shuffle(&mut turns);
        let total = done + turns.len() + REPEATS_MIN.saturating_sub(round + 1) * rounds.results.len();
        for index in turns {
            let begin = now();
            // Ramp and drain come on top: twice the time is enough for them.
            if begin.0 + time.task_time.0 * 2 > time.deadline.0 {
                return Ok(rounds);
            }
            let result = &mut rounds.results[index];
            observer.progress(&Progress {
                what: result.task.to_string(),
                done,
                total,
                elapsed: begin.saturating_sub(time.begin),
                left: time.deadline.saturating_sub(begin),
            });
            let measurement = runner.run(&result.task, done, time.task_time)?;
            let begin_ns = begin.saturating_sub(time.begin).0;
            result.repeats.push(Repeat { round, order: done, begin_ns, measurement });
            done += 1;
        }
    }
    Ok(rounds)
}
