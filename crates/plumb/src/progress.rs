//! Watches a run from beside it: progress bars, and the kernel's I/O workers.
//!
//! A thread of its own looks ten times a second. On a terminal it reads the
//! statistics that the work counts anyway and draws one bar a stage; off one it
//! draws nothing and reads no statistics. Either way it counts the kernel's
//! io-wq workers of this process, which a receipt needs. Nothing is added to
//! code whose time is measured.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use plumb_engine::Instance;
use plumb_events::{Recorder, Snapshot, Statistic};
use plumb_io::receipt;
use plumb_units::RowCount;
use std::fmt;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the thread looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Who wants to see progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Whoever sits at the terminal, should stderr be one.
    Terminal,
    /// Nobody: output is for a program.
    Nobody,
}

/// What a stage counts, and how many there will be.
#[derive(Debug, Clone)]
pub enum Goal {
    /// Bytes of the files in these directories.
    FileBytes(Vec<PathBuf>, u64),
    /// A statistic, from where it stands when the stage begins.
    Counted(Recorder, Statistic, u64),
}

/// A bar to be drawn.
#[derive(Debug, Clone)]
struct Stage {
    label: &'static str,
    goal: Goal,
    base: u64,
}

/// The watching thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The stages under way; the second number grows when they change.
    stages: Mutex<(Vec<Stage>, u64)>,
    stop: AtomicBool,
    workers_max: AtomicUsize,
}

impl Watch {
    /// Starts watching.
    #[must_use]
    pub fn start(audience: Audience) -> Watch {
        let shared = Arc::new(Shared::default());
        let drawn = audience == Audience::Terminal && std::io::stderr().is_terminal();
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let mut display = drawn.then(Display::default);
            while !theirs.stop.load(Relaxed) {
                theirs.look(display.as_mut());
                thread::park_timeout(INTERVAL);
            }
            theirs.look(display.as_mut());
            if let Some(display) = display {
                let _ = display.bars.clear();
            }
        });
        Watch { shared, thread: Some(thread) }
    }

    /// Draws the growth of files while they are made.
    pub fn files(&self, directories: &[PathBuf], bytes: u64) {
        self.stages(vec![("make files", Goal::FileBytes(directories.to_vec(), bytes))]);
    }

    /// Draws a load; without a number of rows where it is not known.
    pub fn load(&self, instance: &Instance, rows: u64) {
        self.stages(vec![("load rows", Goal::Counted(instance.recorder.clone(), Statistic::LoadRows, rows))]);
    }

    /// Draws the two halves of an index build.
    pub fn build(&self, instance: &Instance, rows: u64) {
        let counted = |statistic| Goal::Counted(instance.recorder.clone(), statistic, rows);
        self.stages(vec![
            ("scan rows", counted(Statistic::TableScanRows)),
            ("merge rows", counted(Statistic::MergeRows)),
        ]);
    }

    /// Draws a verification of so many blocks.
    pub fn verify(&self, instance: &Instance, blocks: u64) {
        self.stages(vec![(
            "verify blocks",
            Goal::Counted(instance.recorder.clone(), Statistic::BlocksVerified, blocks),
        )]);
    }

    /// Counts io-wq workers anew; gives those there are.
    #[must_use]
    pub fn begin_counting_workers(&self) -> usize {
        self.shared.workers_max.store(0, Relaxed);
        self.io_wq_workers_max()
    }

    /// The most io-wq workers seen since.
    #[must_use]
    pub fn io_wq_workers_max(&self) -> usize {
        self.shared.count_workers();
        self.shared.workers_max.load(Relaxed)
    }

    fn stages(&self, stages: Vec<(&'static str, Goal)>) {
        let stages = stages.into_iter().map(|(label, goal)| {
            let base = match &goal {
                Goal::FileBytes(..) => 0,
                Goal::Counted(recorder, statistic, _) => recorder.snapshot().statistic(*statistic),
            };
            Stage { label, goal, base }
        });
        let mut shared = self.shared.stages.lock().unwrap_or_else(PoisonError::into_inner);
        *shared = (stages.collect(), shared.1 + 1);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the display must not hide how the run ended.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn look(&self, display: Option<&mut Display>) {
        self.count_workers();
        if let Some(display) = display {
            let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner).clone();
            display.draw(&stages.0, stages.1);
        }
    }

    fn count_workers(&self) {
        // An idle worker lives for seconds, so none is missed between two looks.
        let workers = receipt::io_wq_workers().unwrap_or(0);
        self.workers_max.fetch_max(workers, Relaxed);
    }
}

/// The bars on the terminal.
#[derive(Debug)]
struct Display {
    bars: MultiProgress,
    current: Vec<ProgressBar>,
    generation: u64,
}

impl Default for Display {
    fn default() -> Display {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(20));
        Display { bars, current: Vec::new(), generation: 0 }
    }
}

impl Display {
    fn draw(&mut self, stages: &[Stage], generation: u64) {
        if generation != self.generation {
            self.generation = generation;
            self.current.iter().for_each(ProgressBar::finish);
            self.current = stages.iter().map(|stage| self.bars.add(bar(stage))).collect();
        }
        let mut snapshot: Option<Snapshot> = None;
        for (stage, bar) in stages.iter().zip(&self.current) {
            let position = match &stage.goal {
                Goal::FileBytes(directories, _) => bytes_in(directories),
                Goal::Counted(recorder, statistic, _) => {
                    snapshot.get_or_insert_with(|| recorder.snapshot()).statistic(*statistic)
                }
            };
            let position = position.saturating_sub(stage.base);
            // Intermediate merges pass rows more than once.
            if bar.length().is_some_and(|length| position > length) {
                bar.set_length(position);
            }
            bar.set_position(position);
        }
    }
}

fn bar(stage: &Stage) -> ProgressBar {
    let (total, figures) = match &stage.goal {
        Goal::FileBytes(_, bytes) => (*bytes, "{bytes} of {total_bytes}  {binary_bytes_per_sec}"),
        Goal::Counted(_, _, count) => (*count, "{human_pos} of {human_len}  {rate}"),
    };
    let template = match total {
        0 => "{msg:14} {spinner} {human_pos}  {rate}".to_string(),
        _ => format!("{{msg:14}} [{{bar:30}}] {figures}  {{eta}} left"),
    };
    let bar = if total == 0 { ProgressBar::no_length() } else { ProgressBar::new(total) };
    // The template is one of the three above, and each is valid.
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let style = style.with_key("rate", write_rate).progress_chars("=> ");
    bar.with_style(style).with_message(stage.label)
}

/// The mean rate since the stage began, in whole things.
fn write_rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    let rate = state.pos() as f64 / state.elapsed().as_secs_f64().max(0.001);
    // A display that cannot be written to shows nothing.
    let _ = write!(out, "{}/s", RowCount(rate as u64));
}

fn bytes_in(directories: &[PathBuf]) -> u64 {
    let entries = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|found| found.len()).sum()
}
