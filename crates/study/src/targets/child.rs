//! A run of a study in a process of its own.
//!
//! The process is this program with a hidden command and a [`Request`] on its standard input.
//! - A crash is one failed run and not the end of the study.
//! - The peak of its memory and the kernel's counters for the process belong to this run alone.
//! - Its layout in memory is random for each run. The layout is known to decide some per cent
//!   (Mytkowicz et al. 2009).
//!
//! Cost: the start of a process, some milliseconds outside the timed part. Rejected: a fork,
//! because the parent has threads; running in this process, which gives none of the above.
//!
//! The input stays open while the study lives. A run whose input ends has lost its study and stops
//! at once, with all processes it started.

use super::{Failure, NoRecord};
use crate::StudyError;
use crate::observer::WAITS;
use plumb_events::Cancel;
use plumb_io::IoError;
use plumb_record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The hidden command that makes one run.
pub const COMMAND: &str = "study-run";
/// Time between two checks for the end of a run.
const INTERVAL: Duration = Duration::from_millis(5);
/// Number of checks before an ending run is killed: ten seconds.
const END_LOOKS: u32 = 2000;
/// Delay after which the study itself has received the signal that ended a run.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(50);

/// Request to make a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Name of the [`Runner`] that makes the run.
    runner: String,
    /// The run, in the runner's own format.
    run: Value,
}

impl Request {
    /// Addresses a run to the runner of this name.
    pub fn to(runner: &str, run: &impl Serialize) -> Result<Request, NoRecord> {
        let run = serde_json::to_value(run).map_err(|error| NoRecord::Failed(error.to_string().into()))?;
        Ok(Request { runner: runner.to_string(), run })
    }
}

/// Makes runs in a process of their own. The program registers one for each kind of target.
pub trait Runner: Sync {
    /// Returns the name that requests use.
    fn runner(&self) -> &'static str;

    /// Makes the run; `say` prints a line to standard error.
    fn make(&self, run: Value, say: fn(&str)) -> Result<Record, Failure>;

    /// Undoes an unfinished run, because its study has ended.
    fn abandon(&self, _: &Value) {}
}

/// Answer of a run's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Made(Box<Record>),
    /// Reason why there is no record.
    Failed(Failure),
}

/// Starts this program as the process of a run and waits for it; kills it when the study must stop.
/// While sessions of the run wait, `waits` receives the reason.
pub fn run(
    program: &Path,
    request: &Request,
    cancel: &Cancel,
    waits: &dyn Fn(&str),
) -> Result<Record, NoRecord> {
    let failed = |error: serde_json::Error| NoRecord::Failed(error.to_string().into());
    let request = serde_json::to_string(request).map_err(failed)?;
    let mut command = Command::new(program);
    command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Only the study handles signals of the terminal: a run killed by one could not clean up.
    command.process_group(0);
    let child = command.spawn().map_err(|source| {
        NoRecord::Failed(StudyError::Child { program: program.to_path_buf(), source }.to_string().into())
    })?;
    watch(child, &request, cancel, waits)
}

fn watch(mut child: Child, request: &str, cancel: &Cancel, waits: &dyn Fn(&str)) -> Result<Record, NoRecord> {
    let mut input = child.stdin.take();
    // A run that has already died reports by its exit status.
    let _ =
        input.as_mut().map(|input| input.write_all(request.as_bytes()).and_then(|()| input.write_all(b"\n")));
    let (sender, reasons) = mpsc::channel();
    let started = reading(child.stdout.take())
        .and_then(|output| Ok((output, reading_lines(child.stderr.take(), sender)?)))
        .map_err(|source| {
            NoRecord::Failed(IoError::thread("the readers of a run", source).to_string().into())
        });
    let (output, errors) = started.inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let status = ended(&mut child, input, cancel, &reasons, waits)?;
    let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
    // A signal may reach the run before the study.
    if status.signal().is_some() {
        thread::sleep(SIGNAL_PATIENCE);
    }
    if cancel.check().is_err() {
        return Err(NoRecord::Interrupted);
    }
    if !status.success() {
        let said = errors.lines().last().map(|line| line.trim_start_matches("plumb: ").to_string());
        let why = format!("the run's process ended with {status}");
        return Err(NoRecord::Failed(Failure { why, said, errors }));
    }
    match serde_json::from_str(&output) {
        Ok(Answer::Made(record)) => Ok(*record),
        Ok(Answer::Failed(failure)) => Err(NoRecord::Failed(failure)),
        Err(error) => Err(NoRecord::Failed(format!("the run's answer cannot be read: {error}").into())),
    }
}

/// Waits for the end of a run, or ends it when the study must stop.
fn ended(
    child: &mut Child,
    input: Option<ChildStdin>,
    cancel: &Cancel,
    reasons: &Receiver<String>,
    waits: &dyn Fn(&str),
) -> Result<ExitStatus, NoRecord> {
    loop {
        reasons.try_iter().for_each(|why| waits(&why));
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if cancel.check().is_err() => {
                // Closing its input makes the run stop its processes, restore files and exit.
                drop(input);
                end(child);
                return Err(NoRecord::Interrupted);
            }
            Ok(None) => thread::sleep(INTERVAL),
            Err(error) => {
                return Err(NoRecord::Failed(format!("the run's process was lost: {error}").into()));
            }
        }
    }
}

/// Waits for a run whose input has ended; kills it if it does not exit.
fn end(child: &mut Child) {
    for _ in 0..END_LOOKS {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(INTERVAL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads a pipe to its end in a thread.
fn reading(from: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<String>> {
    thread::Builder::new().spawn(move || {
        let mut text = String::new();
        let _ = from.map(|mut from| from.read_to_string(&mut text));
        text
    })
}

/// Reads a pipe as `reading` does, and passes on the lines that say why sessions wait.
fn reading_lines(
    from: Option<impl Read + Send + 'static>,
    reasons: Sender<String>,
) -> io::Result<JoinHandle<String>> {
    thread::Builder::new().spawn(move || {
        let mut text = String::new();
        let Some(from) = from else { return text };
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let said = String::from_utf8_lossy(&line);
            if said.starts_with(WAITS) {
                // The receiver is gone after the end of the run.
                let _ = reasons.send(said.trim_end().to_string());
            } else {
                text.push_str(&said);
            }
            line.clear();
        }
        text
    })
}

/// Serves one request in the run's process: reads it from standard input, has its runner
/// make the run, and returns the answer as JSON. Exits when the input ends. `say` prints
/// a line to standard error.
pub fn serve(
    input: impl Read + Send + 'static,
    runners: &'static [&'static dyn Runner],
    say: fn(&str),
) -> Result<String, StudyError> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input
        .read_line(&mut line)
        .map_err(|source| StudyError::Json { source: serde_json::Error::io(source) })?;
    let request: Request = serde_json::from_str(&line).map_err(|source| StudyError::Json { source })?;
    let Request { runner: name, run } = request;
    let runner = runners.iter().find(|runner| runner.runner() == name);
    let runner = *runner.ok_or(StudyError::Runner { name })?;
    let theirs = run.clone();
    let watch = move || {
        let mut rest = Vec::new();
        let _ = input.read_to_end(&mut rest);
        // Half-made work owns no space of its own, and is removed with the study's directory.
        runner.abandon(&theirs);
        std::process::exit(1);
    };
    let watching = thread::Builder::new().spawn(watch);
    watching.map_err(|source| StudyError::from(IoError::thread("the watch over the study", source)))?;
    let answer = runner.make(run, say).map_or_else(Answer::Failed, |record| Answer::Made(Box::new(record)));
    serde_json::to_string(&answer).map_err(|source| StudyError::Json { source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_waiting_sessions_are_passed_on_not_errors() {
        let why = format!("{WAITS}the archiver: no directory");
        let (sender, reasons) = mpsc::channel();
        let said = format!("thread panicked\n{why}\nplumb: the end");
        let read = reading_lines(Some(io::Cursor::new(said)), sender).expect("a thread");
        assert_eq!(read.join().expect("read"), "thread panicked\nplumb: the end");
        assert_eq!(reasons.iter().collect::<Vec<_>>(), [why]);
    }
}
