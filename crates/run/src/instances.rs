//! Instances: processes that read a closed database, each a share of a table's extents.
//!
//! ```text
//! this process                         an instance
//! lends the database                   opens it to read
//!                      ── request ──>
//!                      <── "ready" ──
//!                      ──── "go" ───>  scans its share
//!                      <── answer ───
//! takes the database back              ends
//! ```
//! An instance is this program with a hidden command. All are opened before the first one starts to
//! scan, so that their times overlap. The extents are shared out once, before they start: an
//! instance without extents finds no rows. An instance that ends before its answer is named, and
//! the others are stopped.
//!
//! Rejected: a queue of extents that instances ask for, because each answer would then depend on
//! the others' speed, and the bytes of an instance could not be held against its share.

use crate::evidence::{InstanceDone, with_io};
use crate::settings;
use plumb_engine::parallel::servers;
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::totals::{self, Checksum, Totals, TotalsSpec};
use plumb_engine::view::{ExtentShare, TableView, positions};
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::{Cancel, Phase, Role, Session, clock};
use plumb_host::readings::ProcessIo;
use plumb_record::ScanInstance;
use plumb_types::{Number, NumberSum};
use plumb_units::{Nanos, path_of_text, path_text};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The hidden command of an instance.
pub const COMMAND: &str = "scan-instance";
/// Line of an instance that has opened the database.
const READY: &str = "ready";
/// Line that starts its scan.
const GO: &str = "go";
/// Time between two checks for an interruption.
const INTERVAL: Duration = Duration::from_millis(20);

/// Scans that each instance makes of its share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scans {
    pub table: String,
    pub streams: usize,
    pub columns: Vec<String>,
    pub predicate: Option<String>,
    pub is_hashed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// Text form of a path ([`path_text`]).
    home: String,
    settings: Vec<(String, String)>,
    part: usize,
    of: usize,
    scans: Scans,
}

/// Answer of an instance, as a line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Done(Box<Found>),
    Failed(String),
}

/// Result of an instance, with the totals of each stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Found {
    /// Rows scanned, rows found, their hash, and the sums of each stream; a sum is decimal text.
    streams: Vec<(u64, u64, u64, Vec<String>)>,
    done: InstanceDone,
}

/// Results of all instances, added stream by stream.
#[derive(Debug)]
pub struct Together {
    /// Totals of each stream over all instances, with the time of the slowest instance.
    pub streams: Vec<(Totals, Nanos)>,
    pub instances: Vec<InstanceDone>,
}

/// Scans a table by `count` instances at once. `around` surrounds the time from the first scan to
/// the last.
///
/// # Errors
/// If the database cannot be lent, or an instance fails or is killed; its name is in the message.
pub fn scan<T>(
    instance: &Instance,
    scans: &Scans,
    count: usize,
    around: impl FnOnce(&mut dyn FnMut() -> Result<Together, EngineError>) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let lent = instance.lend()?;
    let mut running = Vec::new();
    for part in 0..count {
        running.push(Running::start(instance, scans, ExtentShare { part, of: count })?);
    }
    running.iter_mut().try_for_each(|one| one.ready(&instance.cancel))?;
    let found = around(&mut || {
        running.iter_mut().try_for_each(Running::go)?;
        let found = running.iter_mut().map(|one| one.answer(&instance.cancel));
        together(&found.collect::<Result<Vec<Found>, EngineError>>()?, scans)
    });
    // Ended processes have closed their files, so the locks are free.
    drop(running);
    found.and_then(|found| lent.take_back().map(|()| found))
}

/// Adds up the answers, stream by stream.
fn together(found: &[Found], scans: &Scans) -> Result<Together, EngineError> {
    let elapsed = Nanos(found.iter().map(|one| one.done.seen.elapsed_ns).max().unwrap_or(0));
    let mut streams = vec![(Totals::of_none(scans.columns.len()), elapsed); scans.streams];
    for one in found {
        for ((totals, _), (scanned, row_count, row_sum, sums)) in streams.iter_mut().zip(&one.streams) {
            let sums = sums.iter().map(|text| sum_of(text)).collect::<Result<_, _>>()?;
            let (scanned, row_count, row_sum) = (*scanned, *row_count, *row_sum);
            totals.merge(&Totals { scanned, row_count, row_sum, sums })?;
        }
    }
    Ok(Together { streams, instances: found.iter().map(|one| one.done.clone()).collect() })
}

fn sum_of(text: &str) -> Result<NumberSum, EngineError> {
    let mut sum = NumberSum::default();
    let added = Number::parse(text).and_then(|number| sum.add(number.as_bytes()));
    added.map(|()| sum).map_err(|error| EngineError::Verification {
        what: "a sum of an instance".to_string(),
        found: error.to_string(),
        expected: "a number of at most 38 digits".to_string(),
    })
}

/// A started instance, killed when this is dropped before it has ended.
struct Running {
    name: String,
    child: Child,
    /// Lines of its output; closed at its end.
    lines: Receiver<String>,
}

impl Running {
    fn start(instance: &Instance, scans: &Scans, share: ExtentShare) -> Result<Running, EngineError> {
        let name = format!("instance {}", share.part + 1);
        let request = Request {
            home: path_text(instance.home()),
            settings: explicit(&instance.settings),
            part: share.part,
            of: share.of,
            scans: scans.clone(),
        };
        let failed = |why: String| ended(&name, &why);
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A signal of the terminal goes to this process, which stops its instances.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (sender, lines) = mpsc::channel();
        let output = child.stdout.take();
        let reader = move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            // The receiver is gone if the run has failed.
            lines.map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        };
        let started = thread::Builder::new().name("instance".to_string()).spawn(reader);
        let mut running = Running { name, child, lines };
        started.map_err(|error| running.fails(&error.to_string()))?;
        let text = serde_json::to_string(&request).map_err(|error| running.fails(&error.to_string()))?;
        running.say(&text)?;
        Ok(running)
    }

    fn fails(&self, why: &str) -> EngineError {
        ended(&self.name, why)
    }

    /// Writes a line to the instance. One that has ended reports by its status.
    fn say(&mut self, line: &str) -> Result<(), EngineError> {
        let written = self.child.stdin.as_mut().map(|input| writeln!(input, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.gone()),
        }
    }

    fn go(&mut self) -> Result<(), EngineError> {
        self.say(GO)
    }

    fn ready(&mut self, cancel: &Cancel) -> Result<(), EngineError> {
        match self.line(cancel)? {
            line if line == READY => Ok(()),
            line => Err(match serde_json::from_str(&line) {
                Ok(Answer::Failed(why)) => self.fails(&why),
                _ => self.fails("it answered before it was asked"),
            }),
        }
    }

    fn answer(&mut self, cancel: &Cancel) -> Result<Found, EngineError> {
        let line = self.line(cancel)?;
        match serde_json::from_str(&line) {
            Ok(Answer::Done(found)) => {
                let mut found = *found;
                found.done.seen.name.clone_from(&self.name);
                Ok(found)
            }
            Ok(Answer::Failed(why)) => Err(self.fails(&why)),
            Err(error) => Err(self.fails(&format!("its answer cannot be read: {error}"))),
        }
    }

    /// Waits for a line, the end of the instance, or an interruption.
    fn line(&mut self, cancel: &Cancel) -> Result<String, EngineError> {
        loop {
            cancel.check()?;
            match self.lines.recv_timeout(INTERVAL) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            }
        }
    }

    /// Returns the error of an instance that ended before its answer.
    fn gone(&mut self) -> EngineError {
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => self.fails(&format!("process {} ended with {status}", self.child.id())),
            Err(error) => self.fails(&error.to_string()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has answered ends when its input does.
        self.child.stdin = None;
        if self.lines.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn ended(name: &str, why: &str) -> EngineError {
    EngineError::Instance { name: name.to_string(), why: why.to_string() }
}

/// Returns the settings that differ from their defaults, as they would be typed.
fn explicit(settings: &Settings) -> Vec<(String, String)> {
    let set = Setting::ALL.iter().filter(|setting| settings.is_explicit(**setting));
    set.map(|setting| (setting.row().name.to_string(), settings::shown(settings, *setting))).collect()
}

/// Serves as an instance: reads a request, reports that the database is open, scans at a command,
/// and returns the answer as a line.
///
/// # Errors
/// Never by the scan, whose error is the answer; only if the request or `go` does not arrive.
pub fn serve(input: impl Read, say: &mut dyn FnMut(&str)) -> std::io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    let answer = match answer(&request, &mut input, say) {
        Ok(Some(found)) => Answer::Done(Box::new(found)),
        // The run around it has ended.
        Ok(None) => return Ok(()),
        Err(error) => Answer::Failed(error.to_string()),
    };
    say(&serde_json::to_string(&answer)?);
    Ok(())
}

fn answer(
    request: &Request,
    input: &mut dyn BufRead,
    say: &mut dyn FnMut(&str),
) -> Result<Option<Found>, EngineError> {
    let mut settings = Settings::default();
    request.settings.iter().try_for_each(|(name, value)| settings.set(name, value, "the run"))?;
    let cancel = Cancel::default();
    let instance = Instance::open_to_read(&path_of_text(&request.home), settings, cancel)?;
    let session = instance.recorder.session(Role::Coordinator);
    let view = TableView::open(&instance, None, &session, &request.scans.table)?;
    let scans = &request.scans;
    let columns = positions(view.schema(), scans.columns.iter().map(String::as_str))?;
    let predicate = scans.predicate.as_deref().map(|text| Predicate::parse(text, view.schema()));
    let predicate = predicate.transpose()?;
    let share = ExtentShare { part: request.part, of: request.of };
    let checksum = if scans.is_hashed { Checksum::Taken } else { Checksum::Skipped };
    let spec = TotalsSpec { columns: &columns, predicate: predicate.as_ref(), checksum, share };
    say(READY);
    let mut line = String::new();
    if !input.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        return Ok(None);
    }
    let (before, of_kernel) = (instance.recorder.snapshot(), ProcessIo::read().ok());
    let begin = clock::now();
    let streams = streams(&session, &view, scans.streams, spec)?;
    let elapsed = clock::now().saturating_sub(begin);
    let period = instance.recorder.snapshot().since(&before);
    let fetched = ProcessIo::read().ok().zip(of_kernel).map(|(now, then)| now.since(&then).read_bytes.0);
    let block_bytes = instance.tablespace(view.tablespace()).block_size.bytes() as u64;
    let seen = ScanInstance {
        extents: view.extents_of(share).len() as u64,
        share_bytes: view.block_count(share) * block_bytes * scans.streams as u64,
        rows: streams.iter().map(|totals| totals.row_count).sum(),
        elapsed_ns: elapsed.0,
        ..ScanInstance::default()
    };
    let text = |totals: &Totals| totals.sums.iter().map(ToString::to_string).collect();
    let streams = streams.iter();
    let streams =
        streams.map(|totals| (totals.scanned, totals.row_count, totals.row_sum, text(totals))).collect();
    Ok(Some(Found { streams, done: InstanceDone { seen: with_io(seen, &period), fetched } }))
}

/// Runs scans of the same share at once, each in a session of its own.
///
/// # Errors
/// The first error of a scan.
pub fn streams(
    coordinator: &Session,
    view: &TableView<'_>,
    count: usize,
    spec: TotalsSpec<'_>,
) -> Result<Vec<Totals>, EngineError> {
    let (instance, begin) = (view.instance(), clock::now());
    let found = match count {
        1 => vec![totals::totals(coordinator, view, spec)?],
        _ => servers::run_set(
            instance.operation(),
            coordinator,
            (Role::Coordinator, count),
            |session, _, _| totals::totals(session, view, spec),
        )?,
    };
    let rows = found.iter().map(|totals| totals.scanned).sum();
    instance.recorder.phase(Phase::TableScan, begin, rows);
    Ok(found)
}
