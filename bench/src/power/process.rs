//! Processes that make, change and recover the database of a trial. They are separate, so that the
//! FUSE server never waits for its own file system, and a panic or hang of a database is a finding.

use crate::stop::Stop;
use anyhow::Context;
use plumb_crash::kill::{self, Unfit};
use plumb_engine::Settings;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Longest life of a process; the slowest takes a second.
const LIFE_MOST: Duration = Duration::from_secs(120);
/// Exit status of a judge that found rows which no number of transactions explains.
const WRONG: i32 = 3;

/// Runs as such a process. `given` has its work, the database, the file for reports, and settings.
pub(super) fn run(given: &[String]) -> anyhow::Result<()> {
    // Otherwise this process outlives a parent that was killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let [work, home, acknowledged, set @ ..] = given else { anyhow::bail!("a process has no work") };
    let pairs = set.iter().map(|set| set.split_once('=').context("a setting is name=value"));
    let pairs = pairs.collect::<anyhow::Result<Vec<_>>>()?;
    let (home, settings) = (Path::new(home), kill::settings(&pairs));
    match work.as_str() {
        "create" => create(home, settings),
        "change" => {
            let file = OpenOptions::new().write(true).open(acknowledged)?;
            let report = |line: &str| (&file).write_all(line.as_bytes());
            kill::child(home, settings, &report).map_err(|unfit| anyhow::anyhow!("{unfit}"))
        }
        "judge" => match kill::transactions_found(home, settings) {
            Ok(found) => {
                found.iter().for_each(|found| println!("{found}"));
                Ok(())
            }
            Err(Unfit::Refused(error)) => Err(error.into()),
            Err(Unfit::Wrong(wrong)) => {
                eprintln!("{wrong}");
                std::process::exit(WRONG);
            }
        },
        work => anyhow::bail!("{work} is no work of a process"),
    }
}

fn create(home: &Path, settings: Settings) -> anyhow::Result<()> {
    std::fs::create_dir(home)?;
    kill::create(home, settings)?;
    // The engine syncs a directory only if it makes it, and this one existed.
    std::fs::File::open(home.parent().context("a home in a directory")?)?.sync_all()?;
    Ok(())
}

/// Work of a process on a database.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    pub name: &'a str,
    pub home: &'a Path,
    pub acknowledged: &'a Path,
    pub set: &'a [String],
}

/// A process with work; dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub(super) fn start(work: &Work<'_>) -> anyhow::Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["power", "--process", work.name]).args([work.home, work.acknowledged]);
        command
            .args(work.set)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(Process(command.spawn().context("starting a process of the harness")?))
    }

    /// Waits until the process has ended, `enough` is true, or [`LIFE_MOST`] has passed.
    /// The latter two return `None`.
    pub(super) fn wait(
        &mut self,
        stop: &Stop,
        enough: impl Fn() -> bool,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let begin = plumb_events::now();
        loop {
            stop.check()?;
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            let life = plumb_events::now().saturating_sub(begin).seconds();
            if enough() || life > LIFE_MOST.as_secs_f64() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns stdout and stderr of an ended process.
    fn printed(&mut self) -> anyhow::Result<(String, String)> {
        let (mut out, mut complaint) = (String::new(), String::new());
        self.0.stdout.take().context("piped")?.read_to_string(&mut out)?;
        self.0.stderr.take().context("piped")?.read_to_string(&mut complaint)?;
        Ok((out, complaint.trim().replace('\n', "; ")))
    }
}

/// State of a recovered database.
#[derive(Debug)]
pub(super) enum Judgement {
    /// Number of transactions of each session; nothing else was found.
    Found(Vec<u64>),
    /// The database could not be opened or read, with a reason.
    Refused(String),
    /// Rows that no number of transactions explains, or a process that hung or was killed.
    Wrong(String),
}

/// Recovers and reads a database.
pub(super) fn judge(work: &Work<'_>, stop: &Stop) -> anyhow::Result<Judgement> {
    let mut process = Process::start(work)?;
    let Some(status) = process.wait(stop, || false)? else {
        return Ok(Judgement::Wrong(format!("the recovery takes more than {} s", LIFE_MOST.as_secs())));
    };
    let (out, complaint) = process.printed()?;
    match status.code() {
        Some(0) => {
            let found = out.lines().map(str::parse).collect::<Result<Vec<u64>, _>>();
            Ok(Judgement::Found(found.with_context(|| format!("{out:?} is no judgement"))?))
        }
        Some(1) => Ok(Judgement::Refused(complaint)),
        _ => Ok(Judgement::Wrong(format!("{status}: {complaint}"))),
    }
}

/// Runs work that ends on its own.
pub(super) fn finish(work: &Work<'_>, stop: &Stop) -> anyhow::Result<()> {
    let mut process = Process::start(work)?;
    let status = process.wait(stop, || false)?.with_context(|| format!("{} hangs", work.name))?;
    let (_, complaint) = process.printed()?;
    anyhow::ensure!(status.success(), "{}: {status}: {complaint}", work.name);
    Ok(())
}

/// Runs work until `enough` is true, and kills it.
pub(super) fn kill_when(work: &Work<'_>, stop: &Stop, enough: impl Fn() -> bool) -> anyhow::Result<()> {
    let mut process = Process::start(work)?;
    if let Some(status) = process.wait(stop, &enough)? {
        let (_, complaint) = process.printed()?;
        anyhow::bail!("{} ended on its own: {status}: {complaint}", work.name);
    }
    anyhow::ensure!(enough(), "{} has done too little in {} s", work.name, LIFE_MOST.as_secs());
    Ok(())
}
