//! A run of a study as a process of its own.
//!
//! It is this program with a hidden command, given a [`Request`] on its
//! standard input. So a crash is one failed run and not the end of the study; the peak of its memory
//! is its own; its layout in memory is drawn anew each time, which is known to decide some per cent
//! (Mytkowicz et al. 2009); and what the kernel counts for a process it counts for this
//! run. It costs the start of a process, some milliseconds outside what is
//! timed. Why not a fork: the parent has threads. Why not in this process: none of the above.
//!
//! The input stays open as long as the study lives. A run whose input ends has lost its study and
//! stops at once, with all that it started.

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
/// How often a run is asked whether it has ended.
const INTERVAL: Duration = Duration::from_millis(5);
/// How many times a run that is to end is looked at before it is killed: ten seconds.
const END_LOOKS: u32 = 2000;
/// How long after a run the study itself may learn of the signal that ended both.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(50);

/// What a run is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Name of the [`Runner`] that makes it.
    runner: String,
    /// The run, in the runner's own form.
    run: Value,
}

impl Request {
    /// Asks the runner of this name for a run.
    ///
    /// # Errors
    /// When the run is no JSON.
    pub fn to(runner: &str, run: &impl Serialize) -> Result<Request, NoRecord> {
        let run = serde_json::to_value(run).map_err(|error| NoRecord::Failed(error.to_string().into()))?;
        Ok(Request { runner: runner.to_string(), run })
    }
}

/// Makes runs in a process of their own. The program registers one for each kind of target.
pub trait Runner: Sync {
    /// Returns the name that requests have for it.
    fn runner(&self) -> &'static str;

    /// Makes the run; `say` prints a line to standard error.
    ///
    /// # Errors
    /// When it does not come to its end.
    fn make(&self, run: Value, say: fn(&str)) -> Result<Record, Failure>;

    /// Undoes what a run has begun, because nobody waits for it any more.
    fn abandon(&self, _: &Value) {}
}

/// What a run that came to its end answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Made(Box<Record>),
    /// Why nothing can be said of it.
    Failed(Failure),
}

/// Has this program make a run in a process of its own, and waits for it; kills it when the study is to stop. `waits` is given why
/// sessions of the run wait, while they do.
///
/// # Errors
/// When it did not come to its end.
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
    // A signal from the terminal is the study's to take: a run that it ended could undo nothing.
    command.process_group(0);
    let child = command.spawn().map_err(|source| {
        NoRecord::Failed(StudyError::Child { program: program.to_path_buf(), source }.to_string().into())
    })?;
    watch(child, &request, cancel, waits)
}

fn watch(mut child: Child, request: &str, cancel: &Cancel, waits: &dyn Fn(&str)) -> Result<Record, NoRecord> {
    let mut input = child.stdin.take();
    // A run that has died already says so by its status.
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
    // A signal from the terminal reaches the run too, and maybe before the study.
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

/// Waits for the end of a run, or ends it when the study is to stop.
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
                // It ends what it started, puts back what it wrote, and goes.
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

/// Waits for a run whose input has ended; one that does not go is killed.
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

/// Takes in a pipe to its end, on a thread of its own.
fn reading(from: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<String>> {
    thread::Builder::new().spawn(move || {
        let mut text = String::new();
        let _ = from.map(|mut from| from.read_to_string(&mut text));
        text
    })
}

/// The same, and hands on the lines that say why sessions wait, which are no errors.
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
                // Nobody listens any more when the run has ended.
                let _ = reasons.send(said.trim_end().to_string());
            } else {
                text.push_str(&said);
            }
            line.clear();
        }
        text
    })
}

/// The run's side: reads a request from standard input, has its runner make the run, and returns the
/// record, or why there is none, as JSON. Ends the process when the input ends. `say` prints a line
/// to standard error.
///
/// # Errors
/// When the request cannot be read or names no runner.
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
        // What is half made owns no space and goes with the study's directory.
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
    fn why_sessions_of_a_run_wait_is_handed_on_and_is_no_error_of_it() {
        let why = format!("{WAITS}the archiver: no directory");
        let (sender, reasons) = mpsc::channel();
        let said = format!("thread panicked\n{why}\nplumb: the end");
        let read = reading_lines(Some(io::Cursor::new(said)), sender).expect("a thread");
        assert_eq!(read.join().expect("read"), "thread panicked\nplumb: the end");
        assert_eq!(reasons.iter().collect::<Vec<_>>(), [why]);
    }
}
