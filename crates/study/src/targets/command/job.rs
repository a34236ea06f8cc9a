//! One run of a command in a process of its own: prepared, run, judged and cleaned up.
//!
//! ```text
//! files written ──> prepare ──> [ clock, readings, command, readings, clock ] ──> conclude
//!                                              files restored <── verify <────────────┘
//! ```
//!
//! The timed part starts before the start of the command's first process and ends with that
//! process. Processes left running are killed and reported. A thread samples its processes at once,
//! then at growing intervals up to ten times a second.

use super::secret::HIDDEN;
use super::{figure, receipt};
use crate::disturbance::{self, DiskBytes, Stretch, Watched};
use crate::file_journal::{self, Written};
use crate::machine::{self, CpuTimes};
use crate::sampler::{Beat, Sampler};
use crate::targets::Failure;
use crate::vocabulary::Assignment;
use plumb_events::{SessionKind, clock};
use plumb_host::process::{self, Ended, Looks};
use plumb_host::readings::DiskStats;
use plumb_record::{
    Beside, Check, CommandRun, HashedFile, Header, MeasuredFigure, OpenedFile, Receipt, Record, Ruling, Seen,
    SessionTime, SettingRow,
};
use plumb_units::{Bytes, Nanos, hex, path_of_text};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

/// First and longest interval between two samples.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// Bytes kept of each output, half from its start and half from its end.
const KEPT: usize = 512 * 1024;
/// Largest random addition to the environment, bytes.
const PADDING_MAX: u64 = 4096;
const PADDING: &str = "PLUMB_PADDING";

/// A run with all words filled in.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Job {
    pub(super) run: Vec<String>,
    pub(super) prepare: Option<Vec<String>>,
    pub(super) conclude: Option<Vec<String>>,
    /// Accepted exit codes of the run; empty means 0.
    pub(super) exit_codes: Vec<u8>,
    pub(super) verify: Option<Vec<String>>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: String,
    pub(super) timeout_ns: u64,
    /// Files to write, with their text.
    pub(super) written: Vec<(String, String)>,
    /// Files whose content is part of the treatment.
    pub(super) named: Vec<String>,
    /// Variables whose values are never kept.
    pub(super) secrets: Vec<String>,
    pub(super) measures: Vec<(String, figure::Declared)>,
    pub(super) receipts: Vec<receipt::Declared>,
    pub(super) words: Vec<Assignment>,
    /// Block devices for the circumstances of the run.
    pub(super) disks: Vec<String>,
    /// Block devices that are sampled during the run.
    pub(super) sampled: Vec<String>,
    pub(super) command_line: String,
}

/// Output of a command, and the time it was suspended.
struct Printed {
    output: String,
    errors: String,
    stopped: Nanos,
}

impl Job {
    fn directory(&self) -> PathBuf {
        path_of_text(&self.directory)
    }

    /// Kills all processes and restores files, because the study has ended.
    pub(in crate::targets) fn abandon(&self) {
        let _ = process::end_all();
        file_journal::put_all_back(&self.written, &self.directory());
    }

    /// Makes the run, with secrets removed from its errors. Fails if a command cannot be started or
    /// fails, or a figure is missing.
    pub(in crate::targets) fn execute(&self) -> Result<Record, Failure> {
        self.make().map_err(|failure| Failure {
            why: self.without_secrets(&failure.why),
            said: failure.said.map(|said| self.without_secrets(&said)),
            errors: self.without_secrets(&failure.errors),
        })
    }

    fn make(&self) -> Result<Record, Failure> {
        let directory = self.directory();
        let written = Written::write(&self.written, &directory)?;
        let made = self.between(&directory);
        let back = written.put_back();
        let record = made?;
        back?;
        Ok(record)
    }

    fn between(&self, directory: &Path) -> Result<Record, Failure> {
        self.beside("prepare", self.prepare.as_deref())?;
        let wall = clock::wall();
        let began = SystemTime::UNIX_EPOCH + wall;
        let watched = Watched::named(&self.disks);
        let before = (CpuTimes::read(), self.disks());
        let earlier = watched.read();
        let sampler = Sampler::of(self.sampled.clone());
        let start = clock::now();
        let (mut run, ended, printed) = self.started(&self.run)?;
        let looks = sampler.end();
        let stopped_ns = Some(printed.stopped.0).filter(|stopped| *stopped > 0);
        let stretch = Stretch::between(&watched, &earlier, &watched.read());
        let after = (CpuTimes::read(), self.disks());
        let concluded = self.beside("conclude", self.conclude.as_deref());
        let printed = self.require_code(&ended, printed)?;
        concluded?;
        let checks = self.verified()?;
        let figures = self.figures(&printed, directory, began)?;
        self.count(&mut run, &ended, &before.1, &after.1);
        run.files = self.files(directory)?;
        run.treatment = self.treatment(&run);
        (run.output, run.errors) = (printed.output.clone(), printed.errors.clone());
        let (user, system) = (ended.usage.user, ended.usage.system);
        let own = [("cpu", user + system, "s"), ("user cpu", user, "s"), ("system cpu", system, "s")];
        let own = own.map(|(name, time, unit)| measured(name, time.seconds(), unit)).into_iter();
        let peak = measured("peak memory", self.peak(&run, &ended) as f64 / Bytes::M as f64, "MB");
        let header = self.header(ended.elapsed, user + system, wall);
        let mut record = Record {
            checks,
            measures: own.chain([peak]).chain(figures).collect(),
            sessions: vec![session(ended.elapsed, user + system)],
            host_cpu: after.0.zip(before.0).map(|(later, earlier)| {
                later.since(&earlier, machine::load_average(), machine::load_average())
            }),
            settings: self.words.iter().map(setting).collect(),
            // A server that the command uses works in processes outside its own.
            circumstances: Some(disturbance::judge(&Stretch {
                own_cpu: (run.sockets == 0).then_some(user + system),
                own_io: ended.usage.io.as_ref().map(DiskBytes::of).filter(|_| run.sockets == 0),
                // Pages that an earlier run or preparation left unwritten are not others' writes.
                unwritten: earlier.unwritten(),
                ..stretch
            })),
            stopped_ns,
            ..Record::of(header)
        };
        record.memory.peak_rss_bytes = Some(self.peak(&run, &ended));
        record.receipts = self.receipts(&run);
        record.beside = looks.map(|looks| looks.beside(|at| at.saturating_sub(start).0));
        record.io_devices = record.beside.as_ref().map_or_else(Vec::new, Beside::devices);
        record.command = Some(run);
        self.redact(&mut record);
        Ok(record)
    }

    /// Starts a command and samples it to its end.
    fn started(&self, arguments: &[String]) -> Result<(CommandRun, Ended, Printed), Failure> {
        let padding = RandomState::new().hash_one(0_u8) % PADDING_MAX;
        let mut command = self.command(arguments);
        command.env(PADDING, "x".repeat(padding as usize)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let wrong = |what: &str, error: std::io::Error| match error.kind() {
            ErrorKind::NotFound if !arguments[0].contains('/') => {
                let program = &arguments[0];
                Failure::from(format!(
                    "cannot {what} {program}: there is none in PATH; install it, or give its path"
                ))
            }
            _ => Failure::from(format!("cannot {what} {}: {error}", arguments[0])),
        };
        let mut started = process::start(&mut command).map_err(|error| wrong("start", error))?;
        let (output, errors) = (kept(started.child.stdout.take()), kept(started.child.stderr.take()));
        let (pid, over, late) = (started.pid(), AtomicBool::new(false), AtomicBool::new(false));
        let (ended, (looks, stopped)) = thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let (begin, mut pause, mut looks) = (clock::now(), LOOKS.0, Looks::default());
                let (mut last, mut stopped) = (Beat::now(), Nanos(0));
                while !over.load(Relaxed) {
                    looks.look(pid);
                    if clock::now().saturating_sub(begin).0 > self.timeout_ns {
                        late.store(true, Relaxed);
                        let _ = process::end_all();
                        break;
                    }
                    thread::park_timeout(pause);
                    let now = Beat::now();
                    stopped += now.lost_since(&last, Nanos(pause.as_nanos() as u64));
                    (last, pause) = (now, (pause * 2).min(LOOKS.1));
                }
                // The command may end, after a stop, before this thread looks again.
                (looks, stopped + Beat::now().lost_since(&last, Nanos(0)))
            });
            let ended = started.wait();
            over.store(true, Relaxed);
            watch.thread().unpark();
            (ended, watch.join().unwrap_or_default())
        });
        let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
        let printed = Printed { output, errors, stopped };
        let ended = ended.map_err(|error| wrong("wait for", error))?;
        if late.load(Relaxed) {
            let limit = Nanos(self.timeout_ns);
            let why = format!("{} did not end within timeout = {limit}; it was ended", arguments[0]);
            return Err(Failure { why, said: None, errors: printed.errors });
        }
        if ended.left > 0 {
            let left = ended.left;
            let why = format!(
                "{} left {left} process{} running, which would disturb the next run; they were ended: wait for them in \
                 the command, or start them in prepare of another program",
                arguments[0],
                if left == 1 { "" } else { "es" }
            );
            return Err(Failure { why, said: None, errors: printed.errors });
        }
        Ok((self.seen(arguments, padding, &looks), ended, printed))
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).current_dir(self.directory()).stdin(Stdio::null()).env("LC_ALL", "C");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command around the measured one; processes it leaves running are killed.
    fn beside(&self, what: &str, arguments: Option<&[String]>) -> Result<(), Failure> {
        let Some(arguments) = arguments else { return Ok(()) };
        let (_, ended, printed) = self.started(arguments)?;
        self.require(what, &ended, printed).map(|_| ())
    }

    fn verified(&self) -> Result<Vec<Check>, Failure> {
        let Some(arguments) = &self.verify else { return Ok(Vec::new()) };
        let (_, ended, printed) = self.started(arguments)?;
        Ok(vec![Check {
            name: "verify".to_string(),
            passed: ended.status.success(),
            detail: format!("{}: {}", shown(ended.status), said(&printed)),
            elapsed_ns: ended.elapsed.0,
        }])
    }

    /// Returns the output of a command that exited with 0; otherwise an error.
    fn require(&self, what: &str, ended: &Ended, printed: Printed) -> Result<Printed, Failure> {
        if ended.status.success() {
            return Ok(printed);
        }
        let why = format!("{what} ended with {}", shown(ended.status));
        Err(Failure { why, said: Some(said(&printed)), errors: printed.errors })
    }

    /// Checks the exit code of the measured command, for which other codes may be accepted.
    fn require_code(&self, ended: &Ended, printed: Printed) -> Result<Printed, Failure> {
        let is_accepted = |code| u8::try_from(code).is_ok_and(|code| self.exit_codes.contains(&code));
        match ended.status.code() {
            Some(code) if is_accepted(code) => Ok(printed),
            // Commands run once for all arms have no codes of their own.
            Some(code) if !self.exit_codes.is_empty() => {
                let codes: Vec<String> = self.exit_codes.iter().map(u8::to_string).collect();
                let why = format!(
                    "the command ended with {}, which --exit-codes {},{code} would accept",
                    shown(ended.status),
                    codes.join(",")
                );
                Err(Failure { why, said: Some(said(&printed)), errors: printed.errors })
            }
            _ => self.require("the command", ended, printed),
        }
    }

    fn figures(
        &self,
        printed: &Printed,
        directory: &Path,
        began: SystemTime,
    ) -> Result<Vec<MeasuredFigure>, Failure> {
        let figure = |(name, declared): &(String, figure::Declared)| {
            // Some tools print their figures to standard error.
            let both = || format!("{}\n{}", printed.output, printed.errors);
            let text = if declared.regex.is_some() { both() } else { printed.output.clone() };
            let missing = |why: String| Failure {
                why: format!("measure {name}: {why}; it printed last"),
                said: Some(said(printed)),
                errors: both(),
            };
            let value = declared.read(&text, directory, began).map_err(missing)?;
            Ok(measured(name, value, &declared.unit))
        };
        self.measures.iter().map(figure).collect()
    }

    /// Describes the run from the samples taken while it lived.
    fn seen(&self, arguments: &[String], padding: u64, looks: &Looks) -> CommandRun {
        let text = |path: &Path| plumb_units::path_text(path);
        let programs: std::collections::BTreeSet<PathBuf> =
            looks.executables.iter().cloned().chain(self.program(&arguments[0])).collect();
        CommandRun {
            arguments: arguments.to_vec(),
            environment: self.environment.iter().map(|(name, value)| self.variable(name, value)).collect(),
            padding_bytes: padding,
            executables: programs.iter().map(|path| hashed(path)).collect(),
            files: Vec::new(),
            libraries: looks.libraries.iter().map(|path| text(path)).collect(),
            opened: looks
                .files
                .iter()
                .map(|(path, flags)| OpenedFile { path: text(path), flags: format!("{:07o}", flags.raw) })
                .collect(),
            sockets: looks.sockets.len() as u64,
            rings: looks.rings.len() as u64,
            ring_requests: looks.ring_requests(),
            processes: looks.processes.len() as u64,
            threads_max: looks.threads_max,
            looks: looks.count,
            peak_seen_bytes: looks.peak.0,
            ..CommandRun::default()
        }
    }

    /// Resolves a program's name to its file.
    fn program(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return self.directory().join(name).canonicalize().ok();
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|file| file.is_file())?
            .canonicalize()
            .ok()
    }

    /// Returns the larger of the kernel's peak and the sampled one. The kernel's peak starts at
    /// this process's own, so it counts only above that.
    fn peak(&self, run: &CommandRun, ended: &Ended) -> u64 {
        let ours = plumb_host::readings::resident_memory().map_or(0, |memory| memory.peak.0);
        let seen = run.peak_seen_bytes;
        if ended.usage.peak.0 > ours { ended.usage.peak.0.max(seen) } else { seen }
    }

    fn count(&self, run: &mut CommandRun, ended: &Ended, before: &[DiskStats], after: &[DiskStats]) {
        if let Some(io) = ended.usage.io {
            run.asked_read_bytes = Some(io.rchar.0);
            run.asked_written_bytes = Some(io.wchar.0);
            run.device_read_bytes = Some(io.read_bytes.0);
            run.device_written_bytes = Some(io.write_bytes.0);
        }
        let flushes = |disks: &[DiskStats]| {
            disks.iter().filter_map(|disk| Some(disk.flushes.as_ref()?.completed)).sum::<u64>()
        };
        run.flushes = (!after.is_empty()).then(|| flushes(after).saturating_sub(flushes(before)));
        run.status = shown(ended.status);
    }

    fn disks(&self) -> Vec<DiskStats> {
        self.disks.iter().filter_map(|name| DiskStats::read(name).ok()).collect()
    }

    /// Hashes the files that the study names, and those it wrote.
    fn files(&self, directory: &Path) -> Result<Vec<HashedFile>, String> {
        let names = self.named.iter().chain(self.written.iter().map(|(name, _)| name));
        let file = |name: &String| {
            let found = hashed(&directory.join(name));
            let missing = || format!("files: {name} cannot be read, and it is part of the treatment");
            if found.sha256.is_some() { Ok(found) } else { Err(missing()) }
        };
        names.map(file).collect()
    }

    /// Hashes everything the command was given, except the padding and the program's name.
    fn treatment(&self, run: &CommandRun) -> String {
        let mut hash = Sha256::new();
        let mut add = |kind: &str, text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(kind);
            hash.update(text);
        };
        for file in &run.executables {
            // An unreadable executable is identified by its name.
            add("executable", file.sha256.as_deref().unwrap_or(&file.path));
        }
        self.run[1..].iter().for_each(|argument| add("argument", argument));
        // A hash of a secret would allow guessing it.
        self.environment.iter().for_each(|(name, value)| {
            let is_secret = self.secrets.contains(name);
            add("variable", &format!("{name}={}", if is_secret { HIDDEN } else { value }));
        });
        run.files.iter().for_each(|file| add("file", file.sha256.as_deref().unwrap_or_default()));
        hex(&hash.finalize())
    }

    /// Returns a receipt for each word, that it was requested, and those that the study declares.
    fn receipts(&self, run: &CommandRun) -> Vec<Receipt> {
        let value = |word: &str| {
            let found = self.words.iter().find(|set| set.name == word);
            found.map_or_else(String::new, |set| set.value.clone())
        };
        let asked = |set: &Assignment| {
            let ruling = Ruling { seen: Seen::Asked, ..Ruling::held("the command was started with it") };
            ruling.receipt(&set.name, &set.value)
        };
        let declared = self.receipts.iter().flat_map(|declared| declared.judge(run, value));
        self.words.iter().map(asked).chain(declared).collect()
    }

    fn header(&self, elapsed: Nanos, cpu: Nanos, begin: Duration) -> Header {
        Header {
            elapsed_ns: elapsed.0,
            db_time_ns: Some(cpu.0),
            db_cpu_ns: Some(cpu.0),
            command_line: self.command_line.clone(),
            ..machine::header("PLUMB REPORT  Command".to_string(), "command", [begin, clock::wall()])
        }
    }

    fn variable(&self, name: &str, value: &str) -> String {
        if self.secrets.iter().any(|secret| secret == name) {
            format!("{name}={HIDDEN}")
        } else {
            format!("{name}={}", self.without_secrets(value))
        }
    }

    /// Removes the values of secrets from all text of a record that the study, the
    /// command or its processes gave.
    fn redact(&self, record: &mut Record) {
        let without = |text: &mut String| *text = self.without_secrets(text);
        without(&mut record.header.command_line);
        record.checks.iter_mut().for_each(|check| without(&mut check.detail));
        record.settings.iter_mut().for_each(|row| without(&mut row.value));
        for receipt in &mut record.receipts {
            without(&mut receipt.asked);
            without(&mut receipt.evidence);
        }
        let Some(run) = &mut record.command else { return };
        run.arguments.iter_mut().chain(&mut run.libraries).for_each(without);
        run.opened.iter_mut().for_each(|file| without(&mut file.path));
        run.executables.iter_mut().chain(&mut run.files).for_each(|file| without(&mut file.path));
        [&mut run.output, &mut run.errors].into_iter().for_each(without);
    }

    /// Replaces the values of secrets in a text.
    fn without_secrets(&self, text: &str) -> String {
        let set = |name: &String| {
            let given =
                self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            given.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
        };
        self.secrets.iter().filter_map(set).fold(text.to_string(), |text, value| text.replace(&value, HIDDEN))
    }
}

fn measured(name: &str, value: f64, unit: &str) -> MeasuredFigure {
    MeasuredFigure { name: name.to_string(), value, unit: unit.to_string() }
}

fn setting(set: &Assignment) -> SettingRow {
    SettingRow {
        taken: None,
        name: set.name.clone(),
        value: set.value.clone(),
        is_default: false,
        source: "study".to_string(),
        description: String::new(),
    }
}

/// Accounts for the time: CPU, at most the elapsed time, and an unknown rest.
fn session(elapsed: Nanos, cpu: Nanos) -> SessionTime {
    SessionTime {
        name: "command".to_string(),
        role: "command".to_string(),
        kind: SessionKind::Foreground,
        elapsed_ns: elapsed.0,
        cpu_ns: cpu.0.min(elapsed.0),
        wait_cpu_ns: 0,
        wait_ns: 0,
        idle_ns: 0,
        run_queue_ns: None,
    }
}

/// Returns `exit status 3`, `signal 9 (SIGKILL)`.
fn shown(status: ExitStatus) -> String {
    status.to_string().replacen(": ", " ", 1)
}

/// Returns the last non-empty line, of standard error if there is one.
fn said(printed: &Printed) -> String {
    let last =
        |text: &str| text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_string);
    let line = last(&printed.errors).or_else(|| last(&printed.output));
    let line = line.unwrap_or_else(|| "it printed nothing".to_string());
    line.chars().take(300).collect()
}

/// Returns a file with the hash of its content.
fn hashed(path: &Path) -> HashedFile {
    let hash = || {
        let mut file = plumb_host::regular::open_regular(path).ok()?;
        let (mut hash, mut piece) = (Sha256::new(), vec![0; 64 * 1024]);
        while let count @ 1.. = file.read(&mut piece).ok()? {
            hash.update(&piece[..count]);
        }
        Some(hex(&hash.finalize()))
    };
    HashedFile { path: plumb_units::path_text(path), sha256: hash() }
}

/// Reads a pipe to its end, and keeps its start and its end.
fn kept(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut head, mut tail, mut total) = (Vec::new(), VecDeque::new(), 0_usize);
        let mut piece = vec![0; 64 * 1024];
        let Some(mut from) = from else { return String::new() };
        while let Ok(count @ 1..) = from.read(&mut piece) {
            total += count;
            let room = (KEPT / 2).saturating_sub(head.len()).min(count);
            head.extend_from_slice(&piece[..room]);
            tail.extend(&piece[room..count]);
            let over = tail.len().saturating_sub(KEPT / 2);
            tail.drain(..over);
        }
        let (head_bytes, tail_bytes) = (head.len(), tail.len());
        let left_out = total - head_bytes - tail_bytes;
        let tail: Vec<u8> = tail.into();
        let (head, tail) = (String::from_utf8_lossy(&head), String::from_utf8_lossy(&tail));
        match left_out {
            0 => format!("{head}{tail}"),
            left_out => format!("{head}\n[{} left out]\n{tail}", Bytes(left_out as u64)),
        }
    })
}
