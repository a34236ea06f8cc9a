//! Looks on while a calibration runs: draws its progress, passes on Ctrl-C.
//!
//! The bar is the time: how many measurements there will be is not known before
//! figures settle, but when it is over at the latest is. It is drawn twice a
//! second and between measurements, on a terminal only.

use crate::interrupt::Interrupt;
use crate::progress::Audience;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use plumb_calibrate::{Progress, Watch, leftovers};
use plumb_engine::instance::Cancel;
use plumb_events::clock;
use plumb_units::Nanos;
use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often the time that is left is drawn.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks on.
pub struct Onlooker<'a> {
    interrupt: &'a Interrupt,
    cancel: Cancel,
    display: Option<Display>,
    /// Where the calibration makes its directory.
    path: PathBuf,
    /// Directories of other calibrations there.
    others: Vec<PathBuf>,
    named: Once,
}

impl<'a> Onlooker<'a> {
    /// Looks on for somebody.
    #[must_use]
    pub fn new(
        audience: Audience,
        path: &Path,
        others: Vec<PathBuf>,
        interrupt: &'a Interrupt,
    ) -> Onlooker<'a> {
        let drawn = audience == Audience::Terminal && std::io::stderr().is_terminal();
        Onlooker {
            interrupt,
            cancel: interrupt.cancel(),
            display: drawn.then(Display::new),
            path: path.to_path_buf(),
            others,
            named: Once::new(),
        }
    }

    /// Names the directory that must go when the calibration does not stop in time.
    fn name_directory(&self) {
        let process = format!("-{}-", std::process::id());
        let ours = |found: &PathBuf| {
            let name = found.file_name().unwrap_or_default().to_string_lossy();
            name.contains(&process) && !self.others.contains(found)
        };
        leftovers(&self.path).into_iter().filter(ours).for_each(|found| self.interrupt.temporary(found));
    }
}

impl Watch for Onlooker<'_> {
    fn progress(&self, progress: &Progress) {
        // It has been made by the time of the first call.
        self.named.call_once(|| self.name_directory());
        if let Some(display) = &self.display {
            display.draw(progress);
        }
    }

    fn cancelled(&self) -> bool {
        let cancelled = self.cancel.check().is_err();
        if let Some(display) = self.display.as_ref().filter(|_| cancelled) {
            // The line on which it will be said how it ended.
            display.bar.finish_and_clear();
        }
        cancelled
    }
}

impl fmt::Debug for Onlooker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onlooker").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A line on the terminal; it goes when this is dropped.
struct Display {
    bar: ProgressBar,
    /// When the calibration ends at the latest.
    deadline: Arc<AtomicU64>,
}

impl Display {
    fn new() -> Display {
        let deadline = Arc::new(AtomicU64::new(0));
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(20));
        bar.set_style(style(&deadline));
        bar.enable_steady_tick(INTERVAL);
        Display { bar, deadline }
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

impl Drop for Display {
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
