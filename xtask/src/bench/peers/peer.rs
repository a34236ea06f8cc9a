//! What a peer is: it loads the rows in its own best form, and does tasks.

use super::rows_text::Rows;
use crate::bench::dataset::Keys;
use crate::bench::stop::Stop;
use plumb_units::{Bytes, RowCount};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that a load or a run may take.
pub(super) const RUN_TIME_MAX: Duration = Duration::from_secs(3600);

/// A program or library that sorts.
pub(super) trait Peer {
    fn name(&self) -> &'static str;

    /// How it keeps the rows, for the document.
    fn form(&self) -> &'static str;

    /// How memory is given to it, for the document.
    fn memory(&self) -> &'static str;

    /// Fetches and starts it, and loads the rows; returns its version.
    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<String>;

    /// What it does at these memory limits.
    fn tasks(&self, limits: &[Bytes]) -> Vec<Task>;

    /// Does a task once, cold, and checks the result.
    fn run(&mut self, ground: &Ground, task: &Task) -> anyhow::Result<Run>;
}

/// What all peers work on.
#[derive(Debug)]
pub(super) struct Ground {
    /// Holds everything that is removed in the end.
    pub(super) directory: PathBuf,
    /// Holds what was fetched, and stays.
    pub(super) packages: PathBuf,
    pub(super) stop: Stop,
    pub(super) keys: Keys,
    pub(super) rows: RowCount,
    pub(super) seed: u64,
    pub(super) degree: usize,
    /// The rows as text, until all peers have loaded them.
    pub(super) csv: PathBuf,
    /// What the keys must add up to.
    pub(super) facts: KeyFacts,
}

impl Ground {
    /// An error on one line, without the names of the directories.
    pub(super) fn show(&self, error: &anyhow::Error) -> String {
        let named = format!("{error:#}");
        let shown = [(&self.directory, "DATA"), (&self.packages, "PACKAGES")]
            .iter()
            .fold(named, |text, (path, word)| text.replace(&path.display().to_string(), word));
        shown.split_whitespace().collect::<Vec<&str>>().join(" ")
    }

    /// The rows, to be written as text.
    pub(super) fn text_rows(&self) -> Rows {
        Rows { keys: self.keys, count: self.rows, seed: self.seed }
    }

    /// A directory of its own for a peer.
    pub(super) fn room(&self, name: &str) -> anyhow::Result<PathBuf> {
        let room = self.directory.join(name);
        fs::create_dir_all(&room)?;
        Ok(room)
    }
}

/// Number of the keys and sum of their weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeyFacts {
    pub(super) rows: u64,
    pub(super) key_sum: u64,
}

impl KeyFacts {
    pub(super) fn add(&mut self, weight: u64) {
        self.rows += 1;
        self.key_sum += weight;
    }

    /// Fails where a result has other keys.
    pub(super) fn check(&self, found: KeyFacts) -> anyhow::Result<()> {
        anyhow::ensure!(found.rows == self.rows, "wrong result: {} rows of {}", found.rows, self.rows);
        anyhow::ensure!(found.key_sum == self.key_sum, "wrong result: the keys are not those of the rows");
        Ok(())
    }
}

/// Which limit a task counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The limit it was given.
    OwnLimit,
    /// Every limit that its memory is within: of such tasks the best is shown.
    Sweep,
}

/// A piece of work with its setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// What its peer knows it by.
    pub(super) action: &'static str,
    /// What is done, for the table.
    pub(super) work: &'static str,
    /// What it makes, for the table.
    pub(super) produces: &'static str,
    pub(super) memory: Bytes,
    pub(super) reach: Reach,
}

/// What a peer knows a task by, what is done, and what it makes.
pub(super) type Work = (&'static str, &'static str, &'static str);

impl Task {
    /// Each work at each memory limit.
    pub(super) fn at_each(works: &[Work], limits: &[Bytes]) -> Vec<Task> {
        let task = |(action, work, produces), memory| Task {
            action,
            work,
            produces,
            memory,
            reach: Reach::OwnLimit,
        };
        works.iter().flat_map(|work| limits.iter().map(move |memory| task(*work, *memory))).collect()
    }
}

/// One run of a task.
#[derive(Debug, Clone, Default)]
pub(in crate::bench) struct Run {
    /// From the command until the result is durable.
    pub(in crate::bench) seconds: f64,
    /// Of these, for the sync of a file that the peer itself would not sync.
    pub(in crate::bench) sync_seconds: f64,
    /// CPU time of all its threads and processes: what a busy machine disturbs least.
    pub(in crate::bench) cpu_seconds: f64,
    pub(in crate::bench) memory_start: Bytes,
    pub(in crate::bench) memory_peak: Bytes,
    pub(in crate::bench) output: Bytes,
    pub(in crate::bench) note: String,
}

/// Writes back and drops the page cache of all files below a directory.
pub(in crate::bench) fn drop_caches(directory: &Path) -> anyhow::Result<()> {
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file()
                && let Ok(file) = File::open(entry.path())
            {
                // A server may remove a file meanwhile; then nothing of it is cached.
                plumb_host::readings::drop_cache(file.as_fd())?;
            }
        }
    }
    Ok(())
}
