//! `plumb list bundles`: what runs, studies and calibrations have kept.
//!
//! A bundle is told by its record, and says of itself what its report says: the line under the title.

use crate::failure::Failure;
use plumb_lab::bundle::{CALIBRATION, REPORTS, STUDY};
use plumb_lab::calendar::Moment;
use plumb_lab::{orphans, outside, record};
use plumb_units::Bytes;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A bundle.
pub struct Found {
    /// Its directory.
    pub path: PathBuf,
    /// `run`, `study` or `calibration`.
    pub kind: &'static str,
    /// When it was last written, `2026-02-01 10:00:00`.
    pub date: String,
    /// What its report says first.
    pub headline: String,
    /// All its files.
    pub bytes: Bytes,
}

/// The bundles in `plumb-reports` below a directory, the oldest first.
///
/// # Errors
/// When the directory is there and cannot be read.
pub fn find(directory: &Path) -> Result<Vec<Found>, Failure> {
    let reports = directory.join(orphans::REPORTS);
    if !reports.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&reports)
        .map_err(|error| Failure::run(format!("cannot read {}: {error}", reports.display())))?;
    let mut found: Vec<Found> = entries.flatten().filter_map(|entry| bundle(entry.path())).collect();
    found.sort_by(|one, two| (&one.date, &one.path).cmp(&(&two.date, &two.path)));
    Ok(found)
}

fn bundle(path: PathBuf) -> Option<Found> {
    let kinds = [(STUDY, "study"), (CALIBRATION, "calibration"), (record::FILE, "run")];
    let (file, kind) = kinds.into_iter().find(|(file, _)| path.join(file).is_file())?;
    let text = REPORTS[0];
    let written = fs::metadata(path.join(text)).or_else(|_| fs::metadata(path.join(file))).ok()?;
    let since = written.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    // A study that has not ended has no report.
    let headline = outside::text(&path.join(text)).unwrap_or_default();
    let headline =
        headline.lines().nth(1).unwrap_or("not ended: plumb study --resume goes on").trim().to_string();
    let date = Moment::of(since).iso();
    Some(Found { kind, date, headline, bytes: Bytes(bytes_in(&path)), path })
}

/// Bytes of the files in a directory and in those below it; no link is followed.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = entries.flatten().filter_map(|entry| {
        let found = fs::symlink_metadata(entry.path()).ok()?;
        Some(if found.is_dir() { bytes_in(&entry.path()) } else { found.len() })
    });
    bytes.sum()
}
