//! Feeds the program files with valid checksums and invalid content. None may cause a panic, a
//! hang or unbounded memory.
//!
//! A trial takes a small database, record, trace, calibration or backup made by this program. It
//! changes numbers and texts, corrects the checksums, and uses the file as the commands do. The
//! file may be rejected with one line of bounded length, or accepted. Reports of other programs
//! have no checksum: their bytes, lines and pieces are changed.
//!
//! Each trial draws its random numbers from the seed and its own number, so `--first N --trials 1`
//! repeats it. Trials run in a child process that prints a line before and after each. A child that
//! ends, prints nothing for [`PATIENCE`] or exceeds [`MEMORY_MOST`] is a finding; a new child
//! continues after that trial.
//!
//! Limits: a trial changes one to three numbers. One thread does all work on a database in memory,
//! so hangs between threads are not found. Records and calibrations differ from run to run;
//! `--documents DIR` keeps them.

mod base;
mod change;
mod documents;
mod files;
mod reports;
mod trial;

use anyhow::Context as _;
use base::{Base, Left};
use clap::Args;
use documents::KINDS;
use files::PARTS;
use plumb_proof::random::Generator;
use plumb_units::{COLUMN_MOST, Nanos, cut, visible};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Longest time of a trial; a usual one takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Address space of the child process.
const MEMORY_MOST: u64 = 4 << 30;
/// Most bytes of an error, with the paths in it.
const REFUSAL_MOST: usize = 4096 + COLUMN_MOST;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Seconds to run; the trial in progress is finished.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first trial.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Largest number of trials to make.
    #[arg(long, default_value_t = u64::MAX)]
    trials: u64,
    /// Make trials of this format alone, by its name in the result, as `report`.
    #[arg(long, value_name = "FORMAT")]
    only: Option<String>,
    /// Directory that keeps the original documents for the next run; otherwise they are removed.
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// Run as the child process.
    #[arg(long, hide = true)]
    child: bool,
}

/// Runs trials until the time is up. Fails if anything was found.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let own = tempfile::tempdir()?;
    let documents = options.documents.clone().unwrap_or_else(|| own.path().to_path_buf());
    std::fs::create_dir_all(&documents)?;
    if options.child {
        return carry_out(options, &documents);
    }
    println!("seed {}, {} s, trials from {} on", options.seed, options.seconds, options.first);
    let end = plumb_events::now() + Nanos::from(Duration::from_secs(options.seconds));
    let mut tally = Tally::default();
    let last = options.first.saturating_add(options.trials);
    let mut next = options.first;
    while next < last && plumb_events::now() < end {
        next = Watched::start(options, &documents, next, last - next)?.watch(end, &mut tally)?;
    }
    print!("{}", tally.shown());
    let found = tally.finds.len();
    anyhow::ensure!(
        found == 0,
        "{found} trials found something; `--seed {} --first N --trials 1` repeats one",
        options.seed
    );
    Ok(())
}

/// Outcomes by format, and the findings.
#[derive(Debug, Default)]
struct Tally {
    counts: BTreeMap<(String, &'static str), u64>,
    finds: Vec<String>,
}

impl Tally {
    fn note(&mut self, number: u64, format: &str, (outcome, why): (&'static str, &str)) {
        *self.counts.entry((format.to_string(), outcome)).or_default() += 1;
        if !matches!(outcome, "taken" | "refused") {
            let find = format!("trial {number}, {format}: {outcome}: {why}");
            println!("{find}");
            self.finds.push(find);
        }
    }

    fn shown(&self) -> String {
        let mut text = String::new();
        let mut formats: Vec<&String> = self.counts.keys().map(|(format, _)| format).collect();
        formats.dedup();
        for format in formats {
            let of_format = self.counts.iter().filter(|((of, _), _)| of == format);
            let outcomes: Vec<String> =
                of_format.map(|((_, outcome), count)| format!("{count} {outcome}")).collect();
            text.push_str(&format!("{format:<18} {}\n", outcomes.join(", ")));
        }
        let all: u64 = self.counts.values().sum();
        text.push_str(&format!("{all} trials, {} finds\n", self.finds.len()));
        text
    }
}

/// The child process and its output.
struct Watched {
    child: Child,
    lines: Receiver<String>,
    at: (u64, String),
}

impl Watched {
    fn start(options: &Options, documents: &Path, first: u64, trials: u64) -> anyhow::Result<Watched> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["fuzz", "--child", "--seed", &options.seed.to_string()])
            .args(["--first", &first.to_string(), "--trials", &trials.to_string(), "--documents"])
            .arg(documents)
            .args(options.only.iter().flat_map(|format| ["--only", format]))
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("a pipe was asked for")?;
        let (said, lines) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Ok(Watched { child, lines, at: (first, "start".to_string()) })
    }

    /// Counts the outcomes until the child ends or the time is up. Returns the next trial.
    fn watch(mut self, end: Nanos, tally: &mut Tally) -> anyhow::Result<u64> {
        loop {
            if plumb_events::now() >= end {
                self.stop()?;
                return Ok(u64::MAX);
            }
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.heard(&line, tally),
                Err(why) => {
                    let outcome = match why {
                        RecvTimeoutError::Timeout => ("hung", "it had not ended after 30 s"),
                        RecvTimeoutError::Disconnected => ("died", "its process ended"),
                    };
                    let status = self.stop()?;
                    if status.success() {
                        return Ok(u64::MAX);
                    }
                    let (number, format) = self.at;
                    anyhow::ensure!(format != "start", "the trials could not be begun: {status}");
                    tally.note(number, &format, outcome);
                    return Ok(number + 1);
                }
            }
        }
    }

    fn heard(&mut self, line: &str, tally: &mut Tally) {
        let mut parts = line.splitn(4, '\t');
        let mut part = || parts.next().unwrap_or_default().to_string();
        let (what, number, format, why) = (part(), part(), part(), part());
        let Ok(number) = number.parse() else { return };
        let outcomes = ["taken", "refused", "panicked", "too long"];
        match outcomes.into_iter().find(|outcome| *outcome == what) {
            Some(outcome) => tally.note(number, &format, (outcome, &why)),
            None => self.at = (number, format),
        }
    }

    fn stop(&mut self) -> anyhow::Result<std::process::ExitStatus> {
        // A child that has ended only has to be waited for.
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        Ok(self.child.wait()?)
    }
}

/// Message and place of each panic, of all threads.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn panics() -> Vec<String> {
    std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the trials in the child, and prints a line before and after each.
fn carry_out(options: &Options, documents: &Path) -> anyhow::Result<()> {
    documents::make(documents)?;
    let bases = [Left::Closed, Left::Open, Left::Mirrored].map(Base::new);
    let bases = bases.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    for base in &bases {
        // An error of the unchanged database would hide those of a change.
        let refusals = trial::exercise(&base.copy(), base.left).0;
        anyhow::ensure!(refusals.is_empty(), "a database that was not changed: {refusals:?}");
    }
    setrlimit(Resource::As, Rlimit { current: Some(MEMORY_MOST), maximum: Some(MEMORY_MOST) })?;
    std::panic::set_hook(Box::new(|info| {
        // The program's first own frame, because the panic may be in the standard library.
        let frames = Backtrace::force_capture().to_string();
        let own = |line: &&str| line.contains("/crates/") && !line.contains("/bench/");
        let at = frames.lines().find(own).unwrap_or_default().trim().to_string();
        let said = format!("{info} {at}").replace(['\n', '\t'], " ");
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }));
    let mut output = std::io::stdout();
    let names = || PARTS.iter().map(|(_, name)| *name).chain(KINDS.iter().map(|(_, name)| *name));
    let only = options.only.as_deref().map(|only| {
        let known = || names().collect::<Vec<_>>().join(", ");
        names()
            .position(|name| name == only)
            .with_context(|| format!("--only {only}: expected one of {}", known()))
    });
    let only = only.transpose()?;
    for number in options.first..options.first.saturating_add(options.trials) {
        let mut random = Generator::of_part(options.seed, number);
        // Databases are chosen more often, because they have more kinds of files.
        let chosen = only.unwrap_or_else(|| random.below(names().count()));
        let format = names().nth(chosen).unwrap_or_default();
        writeln!(output, "begin\t{number}\t{format}\t")?;
        output.flush()?;
        let tried = catch_unwind(AssertUnwindSafe(|| attempt(&bases, documents, chosen, &mut random)));
        let panics = panics();
        let (outcome, why) = match tried {
            _ if !panics.is_empty() => ("panicked", panics.join("; ")),
            Err(_) => ("panicked", "without a word".to_string()),
            Ok(refusals) => judged(&refusals?),
        };
        let why = why.replace(['\n', '\t'], " ");
        writeln!(output, "{outcome}\t{number}\t{format}\t{}", cut(&why, 600))?;
    }
    Ok(())
}

/// Tries one file. Returns the errors.
fn attempt(
    bases: &[Base],
    documents: &Path,
    chosen: usize,
    random: &mut Generator,
) -> anyhow::Result<Vec<String>> {
    let Some((part, _)) = PARTS.get(chosen) else {
        return documents::attempt(documents, KINDS[chosen - PARTS.len()].0, random);
    };
    let base = &bases[random.below(bases.len())];
    let disk = base.copy();
    for _ in 0..=random.below(2) {
        files::change(&disk, *part, random)?;
    }
    Ok(trial::exercise(&disk, base.left).0)
}

/// Checks that each error is one line of bounded length.
fn judged(refusals: &[String]) -> (&'static str, String) {
    // The command line prints errors through `visible`.
    match refusals.iter().map(|text| visible(text)).find(|text| text.len() > REFUSAL_MOST) {
        Some(long) => ("too long", long.into_owned()),
        None if refusals.is_empty() => ("taken", String::new()),
        None => ("refused", visible(&refusals[0]).into_owned()),
    }
}
