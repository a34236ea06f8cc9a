//! Runs fio and parses its output.

use anyhow::{Context, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::Command;

/// Starts a job. Options before the first name apply to every job, later ones to that job.
pub(super) const NAME: &str = "--name=plumb";

/// Options of every job: no map of visited blocks, no new file, one process.
pub(super) const OPTIONS: [&str; 5] =
    ["--allow_file_create=0", "--direct=1", "--norandommap=1", "--randrepeat=0", "--output-format=json"];

/// The fields of fio's JSON that benches use.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    error: i64,
    /// Milliseconds that the shares of processor time refer to.
    job_runtime: f64,
    usr_cpu: f64,
    sys_cpu: f64,
    pub(super) read: Direction,
    pub(super) write: Direction,
}

#[derive(Debug, Deserialize)]
pub(super) struct Direction {
    pub(super) iops: f64,
    pub(super) total_ios: u64,
    #[serde(default)]
    pub(super) clat_ns: Latency,
}

/// Completion latencies in nanoseconds, by percentile as fio writes it (`99.000000`).
#[derive(Debug, Default, Deserialize)]
pub(super) struct Latency {
    #[serde(default)]
    pub(super) percentile: BTreeMap<String, f64>,
}

impl Job {
    /// Processor time in user and kernel mode, microseconds.
    pub(super) fn cpu_micros(&self) -> f64 {
        (self.usr_cpu + self.sys_cpu) / 1e2 * self.job_runtime * 1e3
    }
}

/// Returns fio's version; `None` if fio is not installed.
pub(super) fn version() -> anyhow::Result<Option<String>> {
    match Command::new("fio").arg("--version").output() {
        Ok(output) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("starting fio"),
    }
}

pub(super) fn run(arguments: &[String]) -> anyhow::Result<Answer> {
    let output = Command::new("fio").args(arguments).output().context("starting fio")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fio {}: {}: {}", arguments.join(" "), output.status, told.trim());
    answer(&String::from_utf8_lossy(&output.stdout))
        .with_context(|| format!("reading what fio {} answered", arguments.join(" ")))
}

/// Parses fio's output. Warnings precede the JSON on the same stream.
pub(super) fn answer(text: &str) -> anyhow::Result<Answer> {
    let begin = text.find('{').context("there is no JSON in it")?;
    let answer: Answer = serde_json::from_str(&text[begin..])?;
    ensure!(!answer.jobs.is_empty(), "it has no job");
    for job in &answer.jobs {
        ensure!(job.error == 0, "its job failed with error {}", job.error);
    }
    Ok(answer)
}
