//! The table, and docs/measured/calibrate.md around it.

use super::Options;
use super::fio::{self, Fio};
use super::point::{Comparison, Outcome};
use crate::figure::{Figure, Goal};
use crate::machine::{Machine, today, wrapped};
use plumb_calibrate::Task;
use std::fmt::Write as _;

/// plumb's rate is to be at least so much of fio's.
const RATE_GOAL: f64 = 0.97;
/// Goal for plumb's processor time a request, as a share of fio's.
const CPU_GOAL: f64 = 1.0;
pub(super) fn table(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "| point | plumb | fio | plumb / fio [95%] | at least 0.97 | CPU us/request: plumb | fio | plumb / fio [95%] | no more CPU | io-wq | quiet |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for comparison in comparisons.iter().filter(|comparison| !comparison.rounds.is_empty()) {
        let rounds = &comparison.rounds;
        let (rate, cpu) = (ratio(rounds, |found| found.iops), ratio(rounds, |found| found.cpu_micros));
        let (plumb, fio): (Vec<Outcome>, Vec<Outcome>) = rounds.iter().copied().unzip();
        let workers = plumb.iter().map(|found| found.io_wq_workers).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.2} | {:.2} | {} | {} | {workers} | {} of {} |",
            name(&comparison.task),
            comparison.stated(typical(&plumb, |found| found.iops)),
            comparison.stated(typical(&fio, |found| found.iops)),
            rate.show(3),
            rate.verdict(Goal::AtLeast, RATE_GOAL),
            typical(&plumb, |found| found.cpu_micros),
            typical(&fio, |found| found.cpu_micros),
            cpu.show(3),
            cpu.verdict(Goal::AtMost, CPU_GOAL),
            comparison.quiet,
            rounds.len(),
        );
    }
    text
}

/// The task without what all of them have in common.
fn name(task: &Task) -> String {
    match task {
        Task::Point(point) => point.single().map_or_else(|| point.to_string(), ToString::to_string),
        Task::Durable(point) => format!("{}K write + fdatasync", point.request_bytes >> 10),
    }
}

/// A ratio of plumb to fio, paired by round.
fn ratio(rounds: &[(Outcome, Outcome)], value: fn(&Outcome) -> f64) -> Figure {
    let ratios: Vec<f64> = rounds.iter().map(|(plumb, fio)| value(plumb) / value(fio)).collect();
    Figure::of_ratios(&ratios)
}

fn typical(outcomes: &[Outcome], value: fn(&Outcome) -> f64) -> f64 {
    Figure::of(outcomes.iter().map(value).collect::<Vec<_>>()).value
}

pub(super) fn render(options: &Options, machine: &Machine, fio: &Fio, comparisons: &[Comparison]) -> String {
    let Options { seconds, repeat, file_size, processor, .. } = options;
    let mut text = String::from("# plumb and fio on the same file\n\n");
    let _ = writeln!(
        text,
        "Made by `cargo xtask bench calibrate` on {}: {} of {seconds} s each, file of {}, {}, {}. Do not edit: repeat.\n",
        today(),
        if *repeat == 1 { "1 round".to_string() } else { format!("{repeat} rounds") },
        file_size.as_setting(),
        match processor {
            Some(processor) => format!("both tools held on processor {processor}"),
            None => "neither tool held on a processor".to_string(),
        },
        fio.version(),
    );
    let _ = writeln!(text, "## Machine\n\n{}", machine.show());
    let _ = writeln!(text, "## Results\n\n{}", table(comparisons));
    text.push_str(READING);
    let _ = writeln!(text, "## What fio was asked\n\n```text\n{}```\n", asked(comparisons));
    let _ = writeln!(text, "## Each round\n\n```text\n{}```\n", rounds(comparisons));
    let _ = writeln!(
        text,
        "## How to repeat it\n\n```sh\ncargo xtask bench calibrate --seconds {seconds} --repeat {repeat} --file-size {} --seed {} --ring {}{} --document docs/measured/calibrate.md\n```",
        file_size.as_setting(),
        options.seed,
        format!("{:?}", options.ring).to_lowercase(),
        processor.map_or(String::new(), |processor| format!(" --processor {processor}")),
    );
    wrapped(&text)
}

const READING: &str = "\
## How to read it

- Rates and processor times are Hodges-Lehmann estimates over the rounds. The ratio is that of the
  ratios within rounds, with the interval of the exact signed-rank test at 95%. It is not the
  quotient of the rates.
- Each round takes the points in a new random order, the two tools of a point one after the other; a
  coin decides which is first. Both use the same file (or log), which was written once before.
- Both use O_DIRECT and one thread or process. The points go through io_uring with registered
  buffers, durable writes by pwrite and fdatasync. Both time every request and keep a histogram.
- Processor time is user and system time: of plumb's process over its requests, ramp and drain
  included; of fio's job, from the shares and the run time that it reports.
- io-wq: the most kernel threads that plumb's ring fell back to in any round; 0 is right. fio does
  not report it.
- quiet: rounds before which other processes used less than a tenth of the processors. While others
  work, both tools are slower, and the ratio compares two unequal moments.
- \"not beyond doubt\": the interval lies on both sides of the goal.
- One request at a time depends on where the thread runs. A disk with one queue interrupts one
  processor, and must wake a thread on the other from there: fio made 13,000 reads a second on one
  and 8,300 on the other. If neither tool is held, the intervals of that point are wide.
- fio's main process wakes a hundred times a second during its job, and a thread of the bench does
  the same for plumb. It matters if a processor is idle between two requests: the kernel then stops
  and starts its tick, a quarter of the processor time of a lone request.

";

fn asked(comparisons: &[Comparison]) -> String {
    comparisons.iter().fold(String::new(), |text, comparison| {
        let own = match &comparison.task {
            Task::Point(point) => point.single().map_or(Vec::new(), fio::of_load),
            Task::Durable(point) => fio::of_log(point),
        };
        text + &fio::common().join(" ") + " " + &own.join(" ") + "\n"
    })
}

/// Lists all measurements, so that everything above can be computed again.
fn rounds(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "point                      round   plumb IOPS     fio IOPS   plumb CPU us   fio CPU us\n",
    );
    for comparison in comparisons {
        for (round, (plumb, fio)) in comparison.rounds.iter().enumerate() {
            let _ = writeln!(
                text,
                "{:<26} {:>5} {:>12.1} {:>12.1} {:>14.3} {:>12.3}",
                name(&comparison.task),
                round + 1,
                plumb.iops,
                fio.iops,
                plumb.cpu_micros,
                fio.cpu_micros
            );
        }
    }
    text
}
