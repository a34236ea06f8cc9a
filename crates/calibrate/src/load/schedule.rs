//! Rounds: each task once per round, in a new random order.
//!
//! A round is a block of the design: a drift over minutes affects all tasks alike. Before each
//! round the idle device is sampled for requests of other processes. After the first `REPEATS_MIN`
//! rounds only unsettled tasks continue, until they settle, have been repeated [`REPEATS_MAX`]
//! times, or time is up.

use super::TaskRunner;
use crate::plan::REPEATS_MIN;
use crate::random::Random;
use crate::{CalibrateError, Progress, ProgressObserver, Repeat, TaskPlan, TaskResult};
use plumb_events::now;
use plumb_units::Nanos;

/// Fewest repeats for which the interval excludes an outlier on either side.
pub(crate) const REPEATS_MAX: usize = 9;
/// Duration of the sample before a round.
const LOOK: Nanos = Nanos(100_000_000);

/// Time limits of a calibration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeBudget {
    pub begin: Nanos,
    /// Time by which the last task must have ended.
    pub deadline: Nanos,
    /// Measured time of each task.
    pub task_time: Nanos,
}

#[derive(Debug)]
pub(crate) struct Rounds {
    pub results: Vec<TaskResult>,
    /// Highest rate of others' requests before a round, per second.
    pub other_load: Option<f64>,
    /// Number of rounds preceded by such requests.
    pub busy_rounds: usize,
}

/// Runs the tasks of a plan in rounds.
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
            // Ramp and drain need more time: twice the task's time is enough.
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
