//! `plumb list bundles`: bundles of runs, studies and calibrations.
//!
//! The record of a bundle shows its kind. Its row repeats the line under the report's title. A
//! command that ended early has a row, too, from the `history`.

use crate::failure::Failure;
use crate::history;
use crate::targets::KINDS;
use plumb_record::Record;
use plumb_record::calendar::Moment;
use plumb_record::{self as record, outside};
use plumb_study::bundle::{CALIBRATION, REPORTS, STUDY, run_record};
use plumb_study::definition;
use plumb_units::{Bytes, Nanos};
use plumb_workload::{Work, Workload};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A line of the history: a command, with its bundle if it wrote one.
pub struct Found {
    /// Directory of the bundle; none if the command ended early.
    pub path: Option<PathBuf>,
    /// Kind: `run`, `study` or `calibration`.
    pub kind: String,
    /// Time of the last write, `2026-02-01 10:00:00`.
    pub date: String,
    /// The time that a run took.
    pub elapsed: Option<Nanos>,
    /// Parameters and settings of a run that are not the defaults, or the factors of a study.
    pub asked: String,
    /// The line under the report's title.
    pub headline: String,
    /// Bytes of all its files.
    pub bytes: Option<Bytes>,
}

/// Returns the bundles in `plumb-reports` below a directory and the commands that ended early
/// there, the oldest first. A missing directory has none.
pub fn find(directory: &Path) -> Result<Vec<Found>, Failure> {
    let reports = directory.join(history::REPORTS);
    if !reports.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&reports)
        .map_err(|error| Failure::run(format!("cannot read {}: {error}", reports.display())))?;
    let mut found: Vec<Found> = entries.flatten().filter_map(|entry| bundle(entry.path())).collect();
    found.extend(history::read(&reports).into_iter().map(|early| Found {
        path: None,
        kind: early.kind,
        date: early.date,
        elapsed: None,
        asked: early.command,
        headline: early.why,
        bytes: None,
    }));
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
    let headline = headline(&outside::text(&path.join(text)).unwrap_or_default());
    // An unreadable record is reported when the user opens it.
    let record = (kind == "run").then(|| run_record(&path).ok()).flatten().map(|(_, record)| record);
    let asked = match (&record, kind) {
        (Some(record), _) => beside_defaults(record),
        (None, "study") => factors(&path).unwrap_or_default(),
        _ => String::new(),
    };
    Some(Found {
        kind: kind.to_string(),
        date: Moment::of(since).iso(),
        elapsed: record.map(|record| Nanos(record.header.elapsed_ns)),
        asked,
        headline: headline.unwrap_or_else(|| "not ended: plumb study --resume goes on".to_string()),
        bytes: Some(Bytes(bytes_in(&path))),
        path: Some(path),
    })
}

/// Returns the state (`Run: VALID ..`) below a report's title, joined where it was wrapped.
fn headline(report: &str) -> Option<String> {
    let mut lines = report.lines().skip(1);
    let first = lines.next()?.trim();
    let goes_on = |line: &&str| line.starts_with("  ") && !line.trim_start().starts_with("->");
    let rest = lines.take_while(goes_on).map(str::trim);
    Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join(" "))
}

/// Returns the workload of a run with the parameters and settings that are not the defaults.
fn beside_defaults(record: &Record) -> String {
    let defaults: Vec<(&str, String)> = match Workload::find(&record.header.workload) {
        Some(workload) => {
            Work::of(workload).values().map(|(name, value)| (name, value.to_string())).collect()
        }
        None => Vec::new(),
    };
    let parameters = record.parameters.iter().map(|row| (row.name.as_str(), row.value.as_str()));
    let parameters =
        parameters.filter(|(name, value)| !defaults.iter().any(|(known, of)| known == name && of == value));
    let settings = record.settings.iter().filter(|row| !row.is_default && row.source == "--set");
    let settings = settings.map(|row| (row.name.as_str(), row.value.as_str()));
    let all = parameters.chain(settings).map(|(name, value)| format!("{name}={value}"));
    std::iter::once(record.header.workload.clone()).chain(all).collect::<Vec<_>>().join(" ")
}

/// Returns the name of a study with its factors: `io=none,setall`.
fn factors(bundle: &Path) -> Option<String> {
    let text = outside::text(&bundle.join(STUDY)).ok()?;
    let study = definition::parse_kept(STUDY, &text, KINDS).ok()?;
    let factor = |factor: &definition::Factor| {
        let labels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
        format!("{}={}", factor.name, labels.join(","))
    };
    let factors = study.factors.iter().map(factor);
    let name = std::iter::once(study.name.clone());
    Some(name.chain(factors).collect::<Vec<_>>().join(" "))
}

/// Returns the bytes of all files in a directory tree; no link is followed.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = entries.flatten().filter_map(|entry| {
        let found = fs::symlink_metadata(entry.path()).ok()?;
        Some(if found.is_dir() { bytes_in(&entry.path()) } else { found.len() })
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_read_to_its_end() {
        let state = "PLUMB REPORT  Workload: redo\nRun: VALID, DISTURBED (memory was short) 3 of 3 checks passed, 2 not\n";
        let whole =
            Some("Run: VALID, DISTURBED (memory was short) 3 of 3 checks passed, 2 not checked".to_string());
        for behind in ["\n        Elapsed: 1 s\n", "  -> a reason\n     of two lines\n"] {
            assert_eq!(headline(&format!("{state}     checked\n{behind}")), whole);
        }
        assert_eq!(
            headline(&format!("{state}\n")).as_deref(),
            whole.as_deref().map(|it| &it[..it.len() - 8])
        );
        assert_eq!(headline(""), None);
    }
}
