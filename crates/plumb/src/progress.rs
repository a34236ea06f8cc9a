//! Progress bars of a run, drawn by a thread of their own.
//!
//! On a terminal a thread samples ten times a second: it reads the statistics that the work counts
//! anyway and draws one bar for each stage. Off a terminal there is no thread. A bar that has
//! reached its goal, or whose stage has ended, keeps its length and its own rate. Figures have the
//! units of the report: MB is 2^20 bytes. Measured code is not changed.

use crate::interrupt::Interrupt;
use crate::output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use plumb_events::{Event, Recorder, Snapshot, Statistic, clock, locked};
use plumb_study::{Observer, Stage};
use plumb_units::{Bytes, Nanos, RowCount, visible};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval of the thread's samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// Audience to which progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// On the terminal, if stderr is one.
    Terminal,
    /// Not at all: output is for a program.
    Nobody,
}

/// Counter of a stage, with its total.
#[derive(Debug, Clone)]
pub enum Goal {
    /// Bytes of the files in these directories.
    FileBytes(Vec<PathBuf>, u64),
    /// A statistic, from its value at the start of the stage.
    Counted(Recorder, Statistic, u64),
    /// Rows that leave merges; the total is known until a sort turns
    /// out to need intermediate merges.
    Merged(Recorder, u64),
    /// Done, total, and a text.
    Stated(u64, u64, String),
    /// The start, and the total time.
    Elapsed(Nanos, Nanos),
}

impl Goal {
    /// Returns the statistic that it counts; none for files and texts.
    fn statistic(&self) -> Option<(&Recorder, Statistic)> {
        match self {
            Goal::FileBytes(..) | Goal::Stated(..) | Goal::Elapsed(..) => None,
            Goal::Counted(recorder, statistic, _) => Some((recorder, *statistic)),
            Goal::Merged(recorder, _) => Some((recorder, Statistic::MergeRows)),
        }
    }

    /// Returns the total; 0 if it is unknown.
    fn total(&self) -> u64 {
        match self {
            Goal::FileBytes(_, total)
            | Goal::Counted(.., total)
            | Goal::Merged(_, total)
            | Goal::Stated(_, total, _) => *total,
            Goal::Elapsed(_, total) => total.0,
        }
    }

    /// Formats a quantity of the counted things.
    fn shown(&self, quantity: u64) -> String {
        match self {
            Goal::FileBytes(..) => Bytes(quantity).to_string(),
            Goal::Counted(..) | Goal::Merged(..) | Goal::Stated(..) => RowCount(quantity).to_string(),
            Goal::Elapsed(..) => format!("{:.0} s", Nanos(quantity).seconds()),
        }
    }
}

/// A bar, ready to be drawn.
#[derive(Debug, Clone)]
struct Counted {
    label: &'static str,
    goal: Goal,
    base: u64,
}

/// The thread that draws, if there is a terminal; it ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The stages in progress, and how often they have changed.
    stages: Mutex<(Vec<Counted>, u64)>,
    /// Lines that stay, above the bars.
    lines: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Watch {
    /// Starts the thread, if stderr is a terminal.
    #[must_use]
    pub fn start(audience: Audience) -> Watch {
        let shared = Arc::new(Shared::default());
        let drawn = audience == Audience::Terminal && std::io::stderr().is_terminal();
        let theirs = Arc::clone(&shared);
        let draw = move || {
            let mut display = Display::default();
            while !theirs.stop.load(Relaxed) {
                theirs.look(&mut display);
                thread::park_timeout(INTERVAL);
            }
            theirs.look(&mut display);
            let _ = display.bars.clear();
        };
        // Without a thread nothing is drawn.
        let thread = drawn.then(|| thread::Builder::new().spawn(draw).ok()).flatten();
        Watch { shared, thread }
    }

    pub fn stage(&self, stage: &Stage<'_>) {
        let goal = |recorder: &Recorder, statistic, total| Goal::Counted(recorder.clone(), statistic, total);
        self.stages(match *stage {
            Stage::Files { directories, bytes } => {
                vec![("make files", Goal::FileBytes(directories.to_vec(), bytes))]
            }
            Stage::Load { recorder, rows } => vec![("load rows", goal(recorder, Statistic::LoadRows, rows))],
            Stage::Build { recorder, rows } => vec![
                ("scan rows", goal(recorder, Statistic::TableScanRows, rows)),
                ("merge rows", Goal::Merged(recorder.clone(), rows)),
            ],
            Stage::Scan { recorder, rows } => {
                vec![("scan rows", goal(recorder, Statistic::TableScanRows, rows))]
            }
            Stage::Import { recorder, rows } => {
                vec![("insert rows", goal(recorder, Statistic::RowsInserted, rows))]
            }
            Stage::RandomIo { recorder, time } => vec![
                ("random I/O", Goal::Elapsed(clock::now(), time)),
                ("read rows", goal(recorder, Statistic::RowsFetchedByRowId, 0)),
            ],
            Stage::Study { done, runs, block, blocks, arm, left } => {
                let block =
                    if block == 0 { "warm-up".to_string() } else { format!("block {block} of {blocks}") };
                // The longest part comes last, because it may be cut.
                let left = left.map_or(String::new(), |left| format!("at most {} left  ", rounded(left)));
                vec![("study", Goal::Stated(done, runs, format!("{left}{block}  {}", visible(arm))))]
            }
            Stage::Verify { recorder, blocks } => {
                vec![("verify blocks", goal(recorder, Statistic::BlocksVerified, blocks))]
            }
        });
    }

    /// Prints a line that stays, above the bars.
    pub fn line(&self, line: &str) {
        match &self.thread {
            Some(_) => locked(&self.shared.lines).push(line.to_string()),
            None => output::remark(&format!("{line}\n")),
        }
    }

    fn stages(&self, stages: Vec<(&'static str, Goal)>) {
        let stages = stages.into_iter().map(|(label, goal)| {
            let count = |(recorder, statistic): (&Recorder, _)| recorder.snapshot().statistic(statistic);
            let base = goal.statistic().map_or(0, count);
            Counted { label, goal, base }
        });
        let mut shared = locked(&self.shared.stages);
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
    fn look(&self, display: &mut Display) {
        let lines = std::mem::take(&mut *locked(&self.lines));
        for line in lines {
            // A terminal that is gone shows nothing anyway.
            let _ = display.bars.println(visible(&line));
        }
        let stages = locked(&self.stages).clone();
        display.draw(&stages.0, stages.1);
    }
}

/// Shows the stages of a run, and registers temporary directories.
#[derive(Debug)]
pub struct ProgressObserver<'a> {
    pub watch: &'a Watch,
    /// Ends the program on a signal.
    pub interrupt: &'a Interrupt,
}

impl Observer for ProgressObserver<'_> {
    fn stage(&self, stage: &Stage<'_>) {
        self.watch.stage(stage);
    }

    fn begins(&self) {
        self.interrupt.begin();
    }

    fn made(&self, directory: &Path) {
        self.interrupt.temporary(directory.to_path_buf());
    }

    fn waits(&self, why: &str) {
        self.watch.line(why);
    }
}

/// The bars on the terminal.
#[derive(Debug)]
struct Display {
    bars: MultiProgress,
    current: Vec<Drawn>,
    generation: u64,
}

impl Default for Display {
    fn default() -> Display {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(20));
        Display { bars, current: Vec::new(), generation: 0 }
    }
}

impl Display {
    fn draw(&mut self, stages: &[Counted], generation: u64) {
        if generation != self.generation {
            self.generation = generation;
            // All runs of a study share one bar, which continues.
            if let ([Drawn { stage, ended: false, .. }], [next @ Counted { goal: Goal::Stated(..), .. }]) =
                (&mut self.current[..], stages)
                && matches!(stage.goal, Goal::Stated(..))
            {
                *stage = next.clone();
                self.update(Drawn::update);
                return;
            }
            self.update(Drawn::end);
            let now = clock::now();
            self.current = stages.iter().map(|stage| Drawn::new(&self.bars, stage, now)).collect();
        }
        self.update(Drawn::update);
    }

    /// Brings all bars up to date by one snapshot.
    fn update(&mut self, update: fn(&mut Drawn, Option<&Snapshot>)) {
        let recorder = self.current.iter().find_map(|drawn| Some(drawn.stage.goal.statistic()?.0));
        let snapshot = recorder.map(Recorder::snapshot);
        self.current
            .iter_mut()
            .filter(|drawn| !drawn.ended)
            .for_each(|drawn| update(drawn, snapshot.as_ref()));
    }
}

/// A bar, with its state.
#[derive(Debug)]
struct Drawn {
    stage: Counted,
    bar: ProgressBar,
    /// Last sample before any progress: rates count from there.
    begin: Nanos,
    position: u64,
    ended: bool,
    /// Waits for the archiver so far, and true if some came since the last sample.
    archiving: (u64, bool),
}

/// Text of a stage while sessions wait for the archiver: nothing is lost, but nothing progresses.
const ARCHIVING: &str = "  waits: log file switch (archiving needed)";

/// Returns the number of waits for the archiver, a tenth of a second each.
fn waits_for_archiver(snapshot: &Snapshot) -> u64 {
    let event = Event::LogFileSwitchArchive as usize;
    snapshot.sessions.iter().map(|session| session.events[event].count).sum()
}

impl Drawn {
    fn new(bars: &MultiProgress, stage: &Counted, now: Nanos) -> Drawn {
        let total = stage.goal.total();
        let bar = bars.add(ProgressBar::new(total)).with_style(style(total > 0)).with_prefix(stage.label);
        Drawn { stage: stage.clone(), bar, begin: now, position: 0, ended: false, archiving: (0, false) }
    }

    fn update(&mut self, snapshot: Option<&Snapshot>) {
        let goal = &self.stage.goal;
        let found = match (goal, snapshot) {
            (Goal::FileBytes(directories, _), _) => bytes_in(directories),
            (Goal::Stated(done, ..), _) => *done,
            (Goal::Elapsed(begin, _), _) => clock::now().saturating_sub(*begin).0,
            (_, Some(snapshot)) => goal.statistic().map_or(0, |(_, kind)| snapshot.statistic(kind)),
            (_, None) => 0,
        };
        self.position = found.saturating_sub(self.stage.base).max(self.position);
        let now = clock::now();
        if self.position == 0 {
            self.begin = now;
        }
        if let (Goal::Merged(recorder, 1..), Some(snapshot)) = (goal, snapshot)
            && snapshot.statistic(Statistic::SortsMultiPass) > 0
        {
            self.stage.goal = Goal::Merged(recorder.clone(), 0);
            self.bar.set_style(style(false));
        }
        let merges = snapshot.map_or(0, |snapshot| snapshot.statistic(Statistic::IntermediateMerges));
        let waits = snapshot.map_or(0, waits_for_archiver);
        self.archiving = (waits, waits > self.archiving.0);
        self.show(now, merges);
        let total = self.stage.goal.total();
        if total > 0 && self.position >= total {
            self.finish();
        }
    }

    /// Ends the bar of a stage.
    fn end(&mut self, snapshot: Option<&Snapshot>) {
        self.update(snapshot);
        self.finish();
    }

    fn finish(&mut self) {
        self.ended = true;
        self.bar.abandon();
    }

    fn show(&self, now: Nanos, merges: u64) {
        let goal = &self.stage.goal;
        if let Goal::Stated(done, total, text) = goal {
            self.bar.set_position(*done);
            self.bar.set_message(cut(&format!("{done} of {total} runs  {text}"), message_room()));
            return;
        }
        let (position, total) = (self.position, goal.total());
        let elapsed = now.saturating_sub(self.begin);
        let rate = position as f64 / elapsed.seconds().max(0.001);
        let mut text = match total {
            0 => goal.shown(position),
            total => format!("{} of {}", goal.shown(position.min(total)), goal.shown(total)),
        };
        if matches!(goal, Goal::Elapsed(..)) {
            self.bar.set_position(position.min(total));
            self.bar.set_message(text);
            return;
        }
        // One sample is too few for a rate.
        if elapsed.0 * 2 > INTERVAL.as_nanos() as u64 {
            text.push_str(&format!("  {}/s", goal.shown(rate as u64)));
        }
        if matches!(goal, Goal::Merged(_, 0)) {
            text.push_str(&format!("  intermediate merges first: {merges} done"));
        } else if position > 0 && position < total && text.ends_with("/s") {
            text.push_str(&format!("  {:.0} s left", (total - position) as f64 / rate));
        }
        if self.archiving.1 {
            text.push_str(ARCHIVING);
        }
        self.bar.set_position(position.min(self.bar.length().unwrap_or(position)));
        self.bar.set_message(text);
    }
}

/// Rounds a time to wait: seconds, or minutes from two on.
fn rounded(time: Nanos) -> String {
    let seconds = time.seconds().round() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Returns the columns of the terminal; none if standard error is none.
fn columns() -> Option<usize> {
    console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns))
}

/// Returns the columns after the label and the bar of a stage with an end.
fn message_room() -> usize {
    let bar = if is_narrow() { BAR_NARROW } else { BAR };
    columns().map_or(usize::MAX, |columns| columns.saturating_sub(LABEL + bar + " [] ".len()))
}

/// Cuts a line at the terminal's edge, with an ellipsis.
fn cut(text: &str, room: usize) -> String {
    console::truncate_str(text, room, "...").into_owned()
}

/// Columns of a stage's label, and of its bar.
const LABEL: usize = 14;
const BAR: usize = 20;
const BAR_NARROW: usize = 8;

/// True if a terminal has too few columns for a bar of the usual length.
fn is_narrow() -> bool {
    columns().is_some_and(|columns| columns < 80)
}

/// Returns the style of a bar with an end, or of a line without.
fn style(with_end: bool) -> ProgressStyle {
    // Wide messages are cut, because a wrapped line would be drawn again ten times a second.
    let bar = if is_narrow() { BAR_NARROW } else { BAR };
    let template = match with_end {
        true => format!("{{prefix:{LABEL}}} [{{bar:{bar}}}] {{wide_msg}}"),
        false => format!("{{prefix:{LABEL}}} {{spinner}} {{wide_msg}}"),
    };
    // Both templates are valid.
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

fn bytes_in(directories: &[PathBuf]) -> u64 {
    let entries = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|found| found.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_events::Role;

    #[test]
    fn a_study_says_what_is_left_before_what_may_be_cut() {
        let left = Some(Nanos(200_000_000_000));
        let watch = Watch::start(Audience::Nobody);
        let arm = "filesystemio_options=setall sort_direct_writes=true sort_area_size=1M";
        watch.stage(&Stage::Study { done: 14, runs: 90, block: 1, blocks: 9, arm, left });
        let stages = locked(&watch.shared.stages).0.clone();
        let Goal::Stated(14, 90, text) = &stages[0].goal else { panic!("{stages:?}") };
        assert_eq!(
            cut(&format!("14 of 90 runs  {text}"), 80 - LABEL - BAR - 4),
            "14 of 90 runs  at most 4 min left  bloc..."
        );
        let times = [59, 119, 121, 7_300].map(|seconds| rounded(Nanos(seconds * 1_000_000_000)));
        assert_eq!(times, ["59 s", "119 s", "3 min", "2 h 1 min"]);
    }

    /// The text follows the figures only while sessions wait.
    #[test]
    fn a_bar_says_that_sessions_wait_for_the_archiver() {
        let recorder = Recorder::new();
        let session = recorder.session(Role::User);
        let goal = Goal::Counted(recorder.clone(), Statistic::RowsInserted, 100);
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let stage = Counted { label: "insert rows", goal, base: 0 };
        let mut drawn = Drawn::new(&bars, &stage, clock::now());
        let mut shown = || {
            drawn.update(Some(&recorder.snapshot()));
            drawn.bar.message()
        };
        assert!(!shown().contains(ARCHIVING));
        session.wait(Event::LogFileSwitchArchive, || ());
        let message = shown();
        assert!(message.starts_with("0 of 100") && message.ends_with(ARCHIVING), "{message}");
        assert!(!shown().contains(ARCHIVING), "nobody has waited since");
    }
}
