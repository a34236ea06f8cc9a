//! Peers that are libraries: a script in a fresh Python process does each job.
//!
//! The script is handed over as text and starts with `job.py`. The process
//! measures itself, from its command on: what the interpreter and the library
//! take to start is no part of the time, and the peak of memory is reset first.

use super::child::{Child, Used, Watch};
use super::packages;
use super::peer::{Ground, KeyFacts, RUN_TIME_MAX, Run, Task};
use anyhow::Context;
use plumb_units::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const PRELUDE: &str = include_str!("job.py");

/// A script and the interpreter that can run it.
#[derive(Debug)]
pub(super) struct Script {
    name: &'static str,
    text: String,
    packages: &'static [&'static str],
    interpreter: Option<PathBuf>,
}

/// What a script prints; each has only some of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    pub(super) version: String,
    pub(super) seconds: f64,
    sync_seconds: f64,
    cpu_seconds: f64,
    memory_start: u64,
    memory_peak: u64,
    pub(super) output_bytes: u64,
    rows: Option<u64>,
    key_sum: Option<u64>,
    ordered: Option<bool>,
    note: String,
}

impl Answer {
    fn parse(output: &str) -> anyhow::Result<Answer> {
        let line = output.lines().last().context("the script printed nothing")?;
        serde_json::from_str(line).with_context(|| format!("the script printed {line}"))
    }

    /// Fails where rows or keys are counted and wrong, or known to be out of order.
    pub(super) fn check(&self, facts: &KeyFacts) -> anyhow::Result<()> {
        anyhow::ensure!(self.ordered != Some(false), "wrong result: the keys do not ascend");
        if let (Some(rows), Some(key_sum)) = (self.rows, self.key_sum) {
            facts.check(KeyFacts { rows, key_sum })?;
        }
        Ok(())
    }

    pub(super) fn into_run(self) -> Run {
        Run {
            seconds: self.seconds,
            sync_seconds: self.sync_seconds,
            cpu_seconds: self.cpu_seconds,
            memory_start: Bytes(self.memory_start),
            memory_peak: Bytes(self.memory_peak),
            output: Bytes(self.output_bytes),
            note: self.note,
        }
    }
}

impl Script {
    pub(super) fn new(name: &'static str, text: &str, packages: &'static [&'static str]) -> Script {
        Script { name, text: format!("{PRELUDE}\n{text}"), packages, interpreter: None }
    }

    /// Another script by the same interpreter.
    pub(super) fn with(&self, text: &str) -> Script {
        Script { interpreter: self.interpreter.clone(), ..Script::new(self.name, text, self.packages) }
    }

    /// Fetches the packages it imports.
    pub(super) fn fetch(&mut self, ground: &Ground) -> anyhow::Result<()> {
        self.interpreter = Some(packages::python(ground, self.packages)?);
        Ok(())
    }

    /// Fetches, and loads the rows into a room of its own.
    pub(super) fn load(&mut self, ground: &Ground) -> anyhow::Result<String> {
        self.fetch(ground)?;
        let room = ground.room(self.name)?;
        let job = json!({
            "action": "load", "directory": room, "csv": ground.csv, "degree": ground.degree,
            "data": ground.keys.job(),
        });
        Ok(self.call(ground, &job, Watch::Nobody)?.0.version)
    }

    /// A task on the loaded rows, cold, checked.
    pub(super) fn run(&self, ground: &Ground, task: &Task, leftovers: &[&str]) -> anyhow::Result<Run> {
        let room = ground.room(self.name)?;
        remove(&room, leftovers);
        super::peer::drop_caches(&room)?;
        let job = json!({
            "action": task.action, "directory": room, "degree": ground.degree, "memory": task.memory.0,
            "data": ground.keys.job(),
        });
        let answered = self.call(ground, &job, Watch::Nobody);
        remove(&room, leftovers);
        let (answer, _) = answered?;
        answer.check(&ground.facts)?;
        Ok(answer.into_run())
    }

    /// Hands the script a job and waits for its answer.
    pub(super) fn call(&self, ground: &Ground, job: &Value, watch: Watch) -> anyhow::Result<(Answer, Used)> {
        let interpreter = self.interpreter.as_ref().context("its packages were not fetched")?;
        let mut command = Command::new(interpreter);
        // Isolated: no variable and no file of the user changes what is imported.
        command.args(["-I", "-c", &self.text, &job.to_string()]);
        let child = Child::start(command, self.name, &ground.directory)?;
        let finished = child.finish(&ground.stop, RUN_TIME_MAX, watch)?;
        Ok((Answer::parse(&finished.output)?, finished.used))
    }
}

/// Removes the results of a run, also those of one that failed half-way.
pub(super) fn remove(room: &Path, leftovers: &[&str]) {
    for name in leftovers {
        let path = room.join(name);
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_last_line_and_wrong_keys_are_refused() {
        let text = "progress\n{\"seconds\": 1.5, \"rows\": 2, \"key_sum\": 7, \"ordered\": true}\n";
        let answer = Answer::parse(text).expect("an answer");
        assert!(answer.check(&KeyFacts { rows: 2, key_sum: 7 }).is_ok());
        let refused = |facts| answer.check(&facts).expect_err("refused").to_string();
        assert_eq!(refused(KeyFacts { rows: 3, key_sum: 7 }), "wrong result: 2 rows of 3");
        assert_eq!(
            refused(KeyFacts { rows: 2, key_sum: 8 }),
            "wrong result: the keys are not those of the rows"
        );
        assert!(
            Answer::parse("{\"ordered\": false}").expect("an answer").check(&KeyFacts::default()).is_err()
        );
        assert!(Answer::parse("").is_err());
        assert!(Answer::parse("Traceback").is_err());
    }
}
