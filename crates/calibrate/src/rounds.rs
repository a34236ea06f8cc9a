//! Rounds: each task once a round, in an order drawn anew for each.
//!
//! A round is a block of the design: whatever drifts over minutes reaches all
//! tasks alike. Before each round the device is watched while nothing is asked of
//! it, to see whether somebody else is using it. After the first `REPEATS_MIN`
//! rounds only what has not settled goes on, until it settles, has been repeated
//! [`REPEATS_MAX`] times, or time is up.

use crate::estimate::REPEATS_MIN;
use crate::evidence::DeviceMeter;
use crate::random::Random;
use crate::results::TaskResult;
use crate::runner::Runner;
use crate::{CalibrateError, Plan, Progress, Repeat, Watch};
use plumb_events::now;
use plumb_units::Nanos;

/// Nine repeats are the fewest of which an interval may leave out an outlier.
pub(crate) const REPEATS_MAX: usize = 9;
/// How long the device is watched before a round.
const LOOK: Nanos = Nanos(100_000_000);

/// When rounds begin and must end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clockwork {
    /// When the calibration began.
    pub begin: Nanos,
    /// When no further task may begin that would not be done.
    pub deadline: Nanos,
    /// How long each task is measured.
    pub task_time: Nanos,
}

/// What the rounds came to.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub results: Vec<TaskResult>,
    /// Requests a second of others before a round, the busiest time.
    pub other_load: Option<f64>,
    /// Rounds before which there were others.
    pub busy_rounds: usize,
}

/// Runs a plan.
pub(crate) fn run(
    plan: &Plan,
    runner: &Runner<'_>,
    meter: &DeviceMeter,
    watch: &dyn Watch,
    clockwork: Clockwork,
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
        if let Some(requests) = meter.other_load(LOOK) {
            rounds.busy_rounds += 1;
            rounds.other_load = Some(rounds.other_load.unwrap_or(0.0).max(requests));
        }
        random.shuffle(&mut turns);
        let total = done + turns.len() + REPEATS_MIN.saturating_sub(round + 1) * rounds.results.len();
        for index in turns {
            let begin = now();
            // A task takes its ramp and its drain besides; twice its time is on the safe side.
            if begin.0 + clockwork.task_time.0 * 2 > clockwork.deadline.0 {
                return Ok(rounds);
            }
            let result = &mut rounds.results[index];
            watch.progress(&Progress {
                what: result.task.to_string(),
                done,
                total,
                elapsed: begin.saturating_sub(clockwork.begin),
                left: clockwork.deadline.saturating_sub(begin),
            });
            let measurement = runner.run(&result.task, done, clockwork.task_time)?;
            let begin_ns = begin.saturating_sub(clockwork.begin).0;
            result.repeats.push(Repeat { round, order: done, begin_ns, measurement });
            done += 1;
        }
    }
    Ok(rounds)
}
