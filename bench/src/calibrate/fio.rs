//! The same requests as a command line of fio, and what its answer says of them.

use super::point::Outcome;
use crate::fio::{self, Answer};
use anyhow::{Context, ensure};
use plumb_calibrate::{DurablePoint, Load, Pattern, Task, TaskSession};
use plumb_units::Nanos;

/// The program that was found.
#[derive(Debug)]
pub(super) struct Fio {
    version: String,
}

impl Fio {
    pub(super) fn find() -> anyhow::Result<Fio> {
        let version = fio::version()?;
        let version = version.context("there is no fio in PATH to compare with: apt-get install fio")?;
        Ok(Fio { version })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn measure(
        &self,
        task: &Task,
        bench: &TaskSession<'_>,
        time: Nanos,
    ) -> anyhow::Result<Outcome> {
        let arguments = arguments(task, bench, time);
        outcome(&fio::run(&arguments)?)
            .with_context(|| format!("reading what fio {} answered", arguments.join(" ")))
    }
}

/// The command line of a task, without the program's name.
fn arguments(task: &Task, bench: &TaskSession<'_>, time: Nanos) -> Vec<String> {
    let (file, own) = match task {
        Task::Point(point) => (bench.file(), point.loads.first().map_or(Vec::new(), of_load)),
        Task::Durable(point) => (bench.log(), of_log(point)),
    };
    let mut arguments = common();
    arguments.extend(own);
    arguments.push(format!("--filename={}", file.display()));
    arguments.push(format!("--runtime={}ms", time.0 / 1_000_000));
    arguments.push(format!("--ramp_time={}ms", (time.0 / 8_000_000).max(1)));
    arguments
}

pub(super) fn common() -> Vec<String> {
    fio::OPTIONS.into_iter().chain([fio::NAME, "--time_based"]).map(str::to_string).collect()
}

/// Requests that are kept outstanding through a ring.
pub(super) fn of_load(load: &Load) -> Vec<String> {
    let rw = match (load.pattern, load.write_percent) {
        (Pattern::Random, 0) => "randread",
        (Pattern::Random, _) => "randwrite",
        (Pattern::Sequential, 0) => "read",
        (Pattern::Sequential, _) => "write",
    };
    vec![
        format!("--rw={rw}"),
        format!("--bs={}", load.request_bytes),
        format!("--iodepth={}", load.outstanding),
        "--ioengine=io_uring".to_string(),
        "--fixedbufs=1".to_string(),
    ]
}

/// Writes to a log, each made durable.
pub(super) fn of_log(point: &DurablePoint) -> Vec<String> {
    let options = ["--rw=write", "--ioengine=psync", "--fdatasync=1"];
    let mut options: Vec<String> = options.into_iter().map(str::to_string).collect();
    options.push(format!("--bs={}", point.request_bytes));
    options
}

/// Rate and processor time of an answer.
fn outcome(answer: &Answer) -> anyhow::Result<Outcome> {
    let job = answer.jobs.first().context("it has no job")?;
    let requests = job.read.total_ios + job.write.total_ios;
    ensure!(requests > 0, "no request completed");
    Ok(Outcome {
        iops: job.read.iops + job.write.iops,
        cpu_micros: job.cpu_micros() / requests as f64,
        io_wq_workers: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_rates_and_processor_time_a_request() {
        let text = "fio: a warning\n{\"jobs\": [{\"error\": 0, \"job_runtime\": 1500, \"usr_cpu\": 3.0, \
                    \"sys_cpu\": 17.0, \"read\": {\"iops\": 56455.0, \"total_ios\": 75000}, \
                    \"write\": {\"iops\": 0.0, \"total_ios\": 0}}]}";
        let outcome = |text: &str| fio::answer(text).and_then(|answer| outcome(&answer));
        let found = outcome(text).expect("an answer");
        assert_eq!(found, Outcome { iops: 56455.0, cpu_micros: 4.0, io_wq_workers: 0 });
        let failed = outcome(&text.replace("\"error\": 0", "\"error\": 5")).expect_err("an error");
        assert_eq!(failed.to_string(), "its job failed with error 5");
        assert_eq!(outcome("fio: no such file").expect_err("no JSON").to_string(), "there is no JSON in it");
    }
}
