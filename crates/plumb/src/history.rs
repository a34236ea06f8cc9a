//! What ended early in a directory with bundles: a line each of runs, studies and calibrations that
//! failed or were interrupted.
//!
//! Such a command leaves no bundle, and `plumb list bundles` is where one looks for it. The lines
//! are kept beside the bundles and only where there are some, so a command that fails in a
//! directory without any leaves nothing in it.

use crate::command_line;
use crate::failure::Failure;
use crate::outcome::Outcome;
use plumb_events::clock;
use plumb_record::calendar::Moment;
use plumb_record::outside;
use plumb_run::orphans::REPORTS;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

/// The file beside the bundles.
const FILE: &str = "ended-early.jsonl";
/// The file is begun again beyond so many bytes.
const BYTES_MAX: u64 = 1 << 20;

/// What the program is doing: `run`, `study` or `calibration`.
static KIND: OnceLock<&'static str> = OnceLock::new();

/// A command that ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Early {
    pub kind: String,
    pub date: String,
    /// The command as it was typed.
    pub command: String,
    pub why: String,
}

/// Says what has begun: an early end is noted from now on.
pub fn begin(kind: &'static str) {
    let _ = KIND.set(kind);
}

/// Notes an early end, if something has begun and there are bundles.
pub fn note(failure: &Failure) {
    // A study that can go on has its bundle, which says so.
    let is_elsewhere = failure.resumable || failure.outcome == Outcome::Usage;
    let Some(kind) = KIND.get().filter(|_| !is_elsewhere) else { return };
    let reports = Path::new(REPORTS);
    if !fs::symlink_metadata(reports).is_ok_and(|found| found.is_dir()) {
        return;
    }
    let file = reports.join(FILE);
    let known = fs::symlink_metadata(&file).ok();
    if known.as_ref().is_some_and(|found| !found.is_file()) {
        // Nothing is written through a link, or into a pipe.
        return;
    }
    let line = json!({ "kind": kind, "date": Moment::of(clock::wall()).iso(), "command": command_line::typed(), "why": failure.message });
    let is_long = known.is_some_and(|found| found.len() > BYTES_MAX);
    let opened = File::options().create(true).append(!is_long).write(true).truncate(is_long).open(file);
    // A history that cannot be written must not hide why the command ended.
    let _ = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}

/// What ended early in a directory of bundles, in the order in which it did.
pub fn read(reports: &Path) -> Vec<Early> {
    let text = outside::text(&reports.join(FILE)).unwrap_or_default();
    text.lines().filter_map(early).collect()
}

fn early(line: &str) -> Option<Early> {
    let found: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| Some(found[name].as_str()?.to_string());
    Some(Early { kind: text("kind")?, date: text("date")?, command: text("command")?, why: text("why")? })
}
