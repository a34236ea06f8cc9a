//! History of a directory with bundles: a line for each run, study or calibration
//! that failed or was interrupted.
//!
//! Such a command leaves no bundle, but `plumb list bundles` should show it. The
//! lines are kept next to the bundles, and only if there are any, so that a command
//! that fails elsewhere leaves nothing.

use crate::command_line;
use crate::failure::Failure;
use crate::outcome::Outcome;
use plumb_events::clock;
use plumb_record::calendar::Moment;
use plumb_study::bundle::listing::ENDED_EARLY;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

pub use plumb_study::bundle::listing::REPORTS_BELOW as REPORTS;

/// Most bytes of the file, after which it is restarted.
const BYTES_MAX: u64 = 1 << 20;

/// Running command: `run`, `study` or `calibration`.
static KIND: OnceLock<&'static str> = OnceLock::new();

/// Sets the running command: an early end is noted from now on.
pub fn begin(kind: &'static str) {
    let _ = KIND.set(kind);
}

/// Notes an early end, if a command is running and there are bundles.
pub fn note(failure: &Failure) {
    // A study that can continue has a bundle, which shows it.
    let is_elsewhere = failure.resumable || failure.outcome == Outcome::Usage;
    let Some(kind) = KIND.get().filter(|_| !is_elsewhere) else { return };
    let reports = Path::new(REPORTS);
    if !fs::symlink_metadata(reports).is_ok_and(|found| found.is_dir()) {
        return;
    }
    let file = reports.join(ENDED_EARLY);
    let known = fs::symlink_metadata(&file).ok();
    if known.as_ref().is_some_and(|found| !found.is_file()) {
        // Never write through a link or into a pipe.
        return;
    }
    let line = json!({ "kind": kind, "date": Moment::of(clock::wall()).iso(), "command": command_line::typed(), "why": failure.message });
    let is_long = known.is_some_and(|found| found.len() > BYTES_MAX);
    let opened = File::options().create(true).append(!is_long).write(true).truncate(is_long).open(file);
    // A history that cannot be written must not hide why the command ended.
    let _ = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}
