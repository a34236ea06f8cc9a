//! Draws the progress of a calibration on the terminal, and stops it at Ctrl-C.
//!
//! The bar shows time: the number of measurements is not known before figures settle,
//! but the latest end is. It is drawn twice a second and between measurements.

use crate::interrupt::Interrupt;
use crate::progress::Audience;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use plumb_calibrate::{Progress, ProgressObserver, leftovers};
use plumb_events::{Cancel, clock};
use plumb_units::Nanos;
use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::Duration;

/// Interval at which the remaining time is drawn.
const INTERVAL: Duration = Duration::from_millis(500);

/// Observes a calibration for the user at the terminal.
pub struct ProgressDisplay<'a> {
    interrupt: &'a Interrupt,
    cancel: Cancel,
    line: Option<ProgressLine>,
    /// Directories in which the calibration makes its own.
    paths: Vec<PathBuf>,
    /// Directories of other calibrations there.
    others: Vec<PathBuf>,
    named: Once,
}

impl<'a> ProgressDisplay<'a> {
    /// Draws for `audience`; `interrupt` decides when to stop.
    pub fn new(audience: Audience, paths: &[&Path], interrupt: &'a Interrupt) -> ProgressDisplay<'a> {
        let drawn = audience == Audience::Terminal && std::io::stderr().is_terminal();
        ProgressDisplay {
            interrupt,
            cancel: interrupt.cancel(),
            line: drawn.then(ProgressLine::new),
            others: paths.iter().flat_map(|path| leftovers(path)).collect(),
            paths: paths.iter().map(|path| path.to_path_buf()).collect(),
            named: Once::new(),
        }
    }

    /// Names the directory to remove if the calibration does not stop in time.
    fn name_directory(&self) {
        let process = format!("-{}-", std::process::id());
        let ours = |found: &PathBuf| {
            let name = found.file_name().unwrap_or_default().to_string_lossy();
            name.contains(&process) && !self.others.contains(found)
        };
        self.paths
            .iter()
            .flat_map(|path| leftovers(path))
            .filter(ours)
            .for_each(|found| self.interrupt.temporary(found));
    }
}

impl ProgressObserver for ProgressDisplay<'_> {
    fn progress(&self, progress: &Progress) {
        // The directory exists by the time of the first call.
        self.named.call_once(|| self.name_directory());
        if let Some(line) = &self.line {
            line.draw(progress);
        }
    }

    fn cancelled(&self) -> bool {
        let cancelled = self.cancel.check().is_err();
        if let Some(line) = self.line.as_ref().filter(|_| cancelled) {
            // The caller prints the end in its place.
            line.bar.finish_and_clear();
        }
        cancelled
    }
}

impl fmt::Debug for ProgressDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressDisplay").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// A line on the terminal, removed when this is dropped.
struct ProgressLine {
    bar: ProgressBar,
    /// When the calibration ends at the latest.
    deadline: Arc<AtomicU64>,
}

impl ProgressLine {
    fn new() -> ProgressLine {
        let deadline = Arc::new(AtomicU64::new(0));
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(20));
        bar.set_style(style(&deadline));
        bar.enable_steady_tick(INTERVAL);
        ProgressLine { bar, deadline }
    }

    fn draw(&self, progress: &Progress) {
        let Progress { what, done, total, elapsed, left } = progress;
        self.deadline.store((clock::now() + *left).0, Relaxed);
        self.bar.set_length((*elapsed + *left).0);
        self.bar.set_position(elapsed.0);
        self.bar.set_message(match total {
            0 => what.clone(),
            total => format!("{done} of {total} measured, {what}"),
        });
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(deadline: &Arc<AtomicU64>) -> ProgressStyle {
    let deadline = Arc::clone(deadline);
    let left = move |_: &ProgressState, text: &mut dyn Write| {
        let left = Nanos(deadline.load(Relaxed)).saturating_sub(clock::now());
        let _ = write!(text, "at most {:.0} s left", left.seconds());
    };
    // The template is valid.
    let style = ProgressStyle::with_template("calibrate [{bar:20}] {left}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("left", left).progress_chars("=> ")
}
