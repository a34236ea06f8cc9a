//! Runs studies one after another, with the plumb program of this build.

use crate::stop::Room;
use anyhow::Context;
use plumb_events::Cancel;
use plumb_postgres::{Postgres, PostgresTarget};
use plumb_run::embedded::{Embedded, Engine};
use plumb_study::analysis::result::Analysis;
use plumb_study::bundle::{Bundle, Reservation, RunRecord, Stop};
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::{Opening, Target};
use plumb_study::{Observer, Stage, definition, execution, report};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};

/// Directory and program for the studies.
pub(crate) struct Laboratory {
    program: PathBuf,
    room: Room,
    cancel: Cancel,
}

impl Laboratory {
    /// Makes the directory under a path. Fails if the program has not been built.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Laboratory> {
        let program = std::env::current_exe()?.with_file_name("plumb");
        anyhow::ensure!(
            program.is_file(),
            "{}: there is no such program, and the studies' runs are its; build it first: cargo build --release",
            program.display()
        );
        let cancel = Cancel::default();
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let stop = cancel.clone();
        std::thread::spawn(move || signals.forever().for_each(|_| stop.request()));
        Ok(Laboratory { program, room: Room::create(path, "studies")?, cancel })
    }

    /// Returns the directory of all files.
    pub(crate) fn room(&self) -> &Path {
        self.room.path()
    }

    /// Runs a study to its end, judges it, and removes its bundle.
    pub(crate) fn study(&self, text: &str, seed: u64, label: &str) -> anyhow::Result<Analysis> {
        self.study_with(text, seed, label).map(|(analysis, _)| analysis)
    }

    /// Does the same, and returns the study's records, too.
    pub(crate) fn study_with(
        &self,
        text: &str,
        seed: u64,
        label: &str,
    ) -> anyhow::Result<(Analysis, Vec<RunRecord>)> {
        let study = definition::parse("study", text, &[&Engine, &Postgres])?;
        let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, seed)?;
        let progress = Progress { label, terminal: stderr().is_terminal() };
        let (cancel, command) = (self.cancel.clone(), "cargo xtask bench".to_string());
        let opening = Opening {
            path: self.room.path(),
            program: self.program.clone(),
            command_line: command,
            calibration: None,
            cancel,
            observer: &progress,
        };
        let mut target: Box<dyn Target> = match plan.study.vocabulary.target() {
            plumb_postgres::vocabulary::NAME => Box::new(PostgresTarget::open(&plan.study, opening)?),
            _ => Box::new(Embedded::open(&plan.study, opening)?),
        };
        let mut environment = target.environment()?;
        environment.settings = plan.setting_facts();
        let directory = self.room.path().join("bundle");
        let mut bundle = Bundle::create(Reservation::named(&directory)?, &plan, environment)?;
        let stop = execution::execute(&mut bundle, &mut *target, None, &self.cancel, &progress)?;
        anyhow::ensure!(stop != Stop::Interrupted, "interrupted: nothing remains");
        let analysis = report::publish(&mut bundle, plumb_pages::study::rendered)?;
        let runs = bundle.contents().runs.clone();
        drop(bundle);
        fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))?;
        anyhow::ensure!(
            stop == Stop::Planned,
            "{label} ended early: {}",
            analysis.design.blocks_marked.first().map_or("no reason is known", |block| block.reason.as_str())
        );
        Ok((analysis, runs))
    }
}

/// Prints progress: one changing line on a terminal, otherwise a line per study.
struct Progress<'a> {
    label: &'a str,
    terminal: bool,
}

impl Observer for Progress<'_> {
    fn stage(&self, stage: &Stage<'_>) {
        let Stage::Study { done, runs, .. } = stage else { return };
        let end = if done + 1 == *runs { "\r\x1b[K" } else { "" };
        // An error is ignored, because the line is only progress.
        let _ = match (self.terminal, done) {
            (true, _) => write!(stderr(), "\r{}: run {} of {runs}  {end}", self.label, done + 1),
            (false, 0) => writeln!(stderr(), "{}: {runs} runs", self.label),
            (false, _) => Ok(()),
        };
    }

    fn begins(&self) {}

    fn made(&self, _: &Path) {}
}
