//! fio: the same requests, as a command line, and its answer.

use super::point::Outcome;
use anyhow::{Context, ensure};
use plumb_calibrate::{DurablePoint, Load, Pattern, Task, TaskSession};
use plumb_units::Nanos;
use serde::Deserialize;
use std::io::ErrorKind;
use std::process::Command;

/// The program that was found.
#[derive(Debug)]
pub(super) struct Fio {
    version: String,
}

/// The part of fio's JSON that is read.
#[derive(Debug, Deserialize)]
struct Answer {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    error: i64,
    /// Milliseconds that the shares of processor time are of.
    job_runtime: f64,
    usr_cpu: f64,
    sys_cpu: f64,
    read: Direction,
    write: Direction,
}

#[derive(Debug, Deserialize)]
struct Direction {
    iops: f64,
    total_ios: u64,
}

impl Fio {
    /// Looks for the program.
    pub(super) fn find() -> anyhow::Result<Fio> {
        match Command::new("fio").arg("--version").output() {
            Ok(output) => Ok(Fio { version: String::from_utf8_lossy(&output.stdout).trim().to_string() }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                anyhow::bail!("there is no fio in PATH to compare with: apt-get install fio")
            }
            Err(error) => Err(error).context("starting fio"),
        }
    }

    /// Its name and version.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Measures a task once.
    pub(super) fn measure(
        &self,
        task: &Task,
        bench: &TaskSession<'_>,
        time: Nanos,
    ) -> anyhow::Result<Outcome> {
        let arguments = arguments(task, bench, time);
        let output = Command::new("fio").args(&arguments).output().context("starting fio")?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "fio {}: {}: {}", arguments.join(" "), output.status, told.trim());
        outcome(&String::from_utf8_lossy(&output.stdout))
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

/// What all points have. No map of visited blocks, no file of its own, one process.
pub(super) fn common() -> Vec<String> {
    let options = "--name=plumb --allow_file_create=0 --direct=1 --norandommap=1 --randrepeat=0 --time_based \
                   --output-format=json";
    options.split_whitespace().map(str::to_string).collect()
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

/// Reads fio's answer. It writes warnings to the same stream, before the JSON.
fn outcome(text: &str) -> anyhow::Result<Outcome> {
    let begin = text.find('{').context("there is no JSON in it")?;
    let answer: Answer = serde_json::from_str(&text[begin..])?;
    let job = answer.jobs.first().context("it has no job")?;
    ensure!(job.error == 0, "its job failed with error {}", job.error);
    let requests = job.read.total_ios + job.write.total_ios;
    ensure!(requests > 0, "no request completed");
    let cpu_seconds = (job.usr_cpu + job.sys_cpu) / 1e2 * job.job_runtime / 1e3;
    Ok(Outcome {
        iops: job.read.iops + job.write.iops,
        cpu_micros: cpu_seconds * 1e6 / requests as f64,
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
        let found = outcome(text).expect("an answer");
        assert_eq!(found, Outcome { iops: 56455.0, cpu_micros: 4.0, io_wq_workers: 0 });
        let failed = outcome(&text.replace("\"error\": 0", "\"error\": 5")).expect_err("an error");
        assert_eq!(failed.to_string(), "its job failed with error 5");
        assert_eq!(outcome("fio: no such file").expect_err("no JSON").to_string(), "there is no JSON in it");
    }
}
