//! Bundles of a directory: runs, studies and calibrations, and the commands that ended early there.
//!
//! ```text
//! DIR/plumb-reports/NAME/    a bundle; its files show the kind
//! DIR/plumb-reports/ended-early.jsonl
//! DIR/plumb-reports/heads.json    what the rows below say, to read no record twice
//! ```
//!
//! A row repeats the line under the report's title. The directory is the truth: a row of the index
//! counts only while the bundle's directory, its report and its record have the lengths and times
//! that the row was made from. A lost, foreign or older index is made again. It is written once
//! [`INDEX_FROM`] rows are new, so that a small directory has none.
//!
//! Rejected: a database of bundles, which is a second truth and needs a repair of its own.
//!
//! Limits: a bundle changed without any trace in these times keeps its row. No link is followed.

use super::{CALIBRATION, END, ENVIRONMENT, EndFile, REPORTS, STUDY, Stop};
use crate::provenance::Provenance;
use crate::vocabulary::Kinds;
use crate::{StudyError, definition};
use plumb_host::owner::{MARK, abandoned};
use plumb_io::{Directory, EntryKind};
use plumb_record::calendar::Moment;
use plumb_record::{FILE, Record, outside};
use plumb_units::{Bytes, Nanos};
use plumb_workload::{Work, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Directory of bundles unless a command names another.
pub const REPORTS_BELOW: &str = "plumb-reports";
/// File with a line for each command that ended early.
pub const ENDED_EARLY: &str = "ended-early.jsonl";
pub const INDEX: &str = "heads.json";
/// New rows from which on the index is written.
pub const INDEX_FROM: usize = 64;
/// Form of the index. Another program may show other rows.
const INDEX_FORM: &str = concat!("1 of plumb ", env!("CARGO_PKG_VERSION"));

/// A line of the history: a command, with its bundle if it wrote one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBundle {
    /// Directory of the bundle; none if the command ended early.
    pub path: Option<PathBuf>,
    pub head: BundleHead,
}

/// Answers about a bundle that its list needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleHead {
    /// Kind: `run`, `study` or `calibration`.
    pub kind: String,
    /// Time of the last write, `2026-02-01T10:00:00Z`.
    pub date: String,
    /// The time that a run took, nanoseconds.
    pub elapsed_ns: Option<u64>,
    /// Parameters and settings of a run that are not the defaults, or the factors of a study.
    pub asked: String,
    /// The line under the report's title.
    pub headline: String,
    /// Bytes of all its files.
    pub bytes: Option<u64>,
    pub question: String,
    pub machine: String,
    pub device: String,
    pub progress: BundleProgress,
}

/// BundleProgress of the command that makes a bundle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundleProgress {
    #[default]
    Ended,
    /// A process holds the bundle.
    InProgress,
    Interrupted,
    /// No process holds the bundle, and none has noted its end.
    Killed,
    /// The command left no bundle.
    EndedEarly,
}

impl BundleHead {
    pub fn elapsed(&self) -> Option<Nanos> {
        self.elapsed_ns.map(Nanos)
    }

    pub fn size(&self) -> Option<Bytes> {
        self.bytes.map(Bytes)
    }
}

/// Lengths and times of a bundle's directory, its report and its first file.
type Stamp = [(u64, i64, i64); 3];

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    form: String,
    heads: BTreeMap<String, (Stamp, BundleHead)>,
}

/// Returns the bundles in `plumb-reports` below a directory and the commands that ended early
/// there, the oldest first. A missing directory has none.
pub fn find(directory: &Path, kinds: &Kinds) -> Result<Vec<FoundBundle>, StudyError> {
    let reports = directory.join(REPORTS_BELOW);
    if !reports.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&reports)
        .map_err(|error| StudyError::BundleRead { path: reports.clone(), why: error.to_string() })?;
    let mut known = read_index(&reports);
    let mut index = Index { form: INDEX_FORM.to_string(), heads: BTreeMap::new() };
    let (mut found, mut fresh) = (Vec::new(), 0);
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let path = entry.path();
        let name = entry.file_name().to_str().map(str::to_string);
        let stamp = stamp(&path);
        let kept = name.as_ref().and_then(|name| known.heads.remove(name));
        let head = match kept.filter(|(then, _)| Some(then) == stamp.as_ref()) {
            Some((_, head)) => head,
            None => {
                let Some(head) = head(&path, kinds) else { continue };
                fresh += 1;
                head
            }
        };
        if let (Some(name), Some(stamp), BundleProgress::Ended) = (name, stamp, head.progress) {
            index.heads.insert(name, (stamp, head.clone()));
        }
        found.push(FoundBundle { path: Some(path), head });
    }
    if fresh.min(index.heads.len()) >= INDEX_FROM {
        write_index(&reports, &index);
    }
    found.extend(ended_early(&reports).into_iter().map(|head| FoundBundle { path: None, head }));
    found.sort_by(|one, two| (&one.head.date, &one.path).cmp(&(&two.head.date, &two.path)));
    Ok(found)
}

/// Reads the index; an empty one in place of one that is missing, foreign or of another form.
fn read_index(reports: &Path) -> Index {
    let read = Directory::open(reports).and_then(|held| held.read(INDEX, outside::TEXT_MOST));
    let index: Option<Index> = read.ok().flatten().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    index.filter(|index| index.form == INDEX_FORM).unwrap_or_default()
}

/// Writes the index, if this user may: without one, the next list takes longer.
fn write_index(reports: &Path, index: &Index) {
    let Ok(text) = serde_json::to_vec(index) else { return };
    let _ = Directory::open(reports).and_then(|held| held.replace(INDEX, &text));
}

/// Returns the stamp of a bundle whose report is written.
fn stamp(path: &Path) -> Option<Stamp> {
    let of = |found: Metadata| (found.len(), found.mtime(), found.mtime_nsec());
    let report = fs::symlink_metadata(path.join(REPORTS[0])).ok()?;
    let kinds = [STUDY, CALIBRATION, FILE];
    let first = kinds.iter().find_map(|file| fs::symlink_metadata(path.join(file)).ok())?;
    Some([fs::symlink_metadata(path).ok()?, report, first].map(of))
}

fn head(path: &Path, kinds: &Kinds) -> Option<BundleHead> {
    let held = Directory::open(path).ok()?;
    let of_kinds = [(STUDY, "study"), (CALIBRATION, "calibration"), (FILE, "run")];
    let is_file = |name: &str| held.kind(name) == Some(EntryKind::File);
    let (file, kind) = of_kinds.into_iter().find(|(file, _)| is_file(file))?;
    let text = |name: &str| {
        let bytes = held.read(name, outside::TEXT_MOST).ok()??;
        String::from_utf8(bytes).ok()
    };
    let report = REPORTS[0];
    let dated = if is_file(report) { report } else { file };
    let since = fs::symlink_metadata(path.join(dated)).ok()?.modified().ok()?;
    let mut head = BundleHead {
        kind: kind.to_string(),
        date: Moment::of(since.duration_since(UNIX_EPOCH).ok()?).iso(),
        bytes: Some(bytes_in(path)),
        ..BundleHead::default()
    };
    // A study that was killed has no report.
    let headline = headline(&text(report).unwrap_or_default());
    if kind == "study" {
        let is_held = is_file(MARK) && abandoned(&path.join(MARK)).is_none();
        head.progress = progress(is_held, text(END), headline.is_some());
    }
    head.headline = headline.unwrap_or_else(|| "not ended: plumb study --resume goes on".to_string());
    // An unreadable record is reported when the user opens it.
    match kind {
        "study" => of_study(&mut head, text(STUDY), text(ENVIRONMENT), kinds),
        "run" => of_run(&mut head, text(FILE)),
        _ => {
            if let Some(by) = text(FILE).and_then(|text| Provenance::from_json(&text).ok()) {
                (head.machine, head.device) = (by.host.name, by.device.device);
            }
        }
    }
    Some(head)
}

/// Returns the progress of a study: an interrupted one has a report, which gives no verdict.
fn progress(is_held: bool, end: Option<String>, has_report: bool) -> BundleProgress {
    let end: Option<EndFile> = end.and_then(|text| serde_json::from_str(&text).ok());
    match end.map(|end| end.stop) {
        _ if is_held => BundleProgress::InProgress,
        Some(Stop::Interrupted) => BundleProgress::Interrupted,
        None if !has_report => BundleProgress::Killed,
        _ => BundleProgress::Ended,
    }
}

fn of_run(head: &mut BundleHead, text: Option<String>) {
    let Some(record) = text.and_then(|text| Record::from_json(&text).ok()) else { return };
    head.asked = beside_defaults(&record);
    head.elapsed_ns = Some(record.header.elapsed_ns);
    head.machine = record.header.host.name;
}

/// Adds the name of a study with its factors, `io=none,setall`, its question and its machine.
fn of_study(head: &mut BundleHead, study: Option<String>, environment: Option<String>, kinds: &Kinds) {
    let environment: Value =
        environment.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    head.machine = environment["host"]["name"].as_str().unwrap_or_default().to_string();
    let Some(study) = study.and_then(|text| definition::parse_kept(STUDY, &text, kinds).ok()) else { return };
    let factor = |factor: &definition::Factor| {
        let labels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
        format!("{}={}", factor.name, labels.join(","))
    };
    let factors = study.factors.iter().map(factor);
    head.asked = std::iter::once(study.name.clone()).chain(factors).collect::<Vec<_>>().join(" ");
    head.question = study.question;
}

/// Subjects of the states of reports that bundles keep.
const STATES: [&str; 5] = ["Run: ", "Study: ", "Calibration: ", "Trace: ", "Import: "];

/// Returns the state (`Run: VALID ..`) below a report's title and answer, joined where it was
/// wrapped; the line below the title in a report without one.
fn headline(report: &str) -> Option<String> {
    let below = || report.lines().skip(1);
    let is_state = |line: &str| STATES.iter().any(|subject| line.starts_with(subject));
    let mut lines = below().skip(below().position(is_state).unwrap_or(0));
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

/// Returns the bytes of all files in a directory tree; no link is followed.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = entries.flatten().filter_map(|entry| {
        let found = fs::symlink_metadata(entry.path()).ok()?;
        Some(if found.is_dir() { bytes_in(&entry.path()) } else { found.len() })
    });
    bytes.sum()
}

/// Reads the commands that ended early, in order.
fn ended_early(reports: &Path) -> Vec<BundleHead> {
    let read = Directory::open(reports).and_then(|held| held.read(ENDED_EARLY, outside::TEXT_MOST));
    let bytes = read.ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().filter_map(early).collect()
}

fn early(line: &str) -> Option<BundleHead> {
    let found: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| Some(found[name].as_str()?.to_string());
    Some(BundleHead {
        kind: text("kind")?,
        date: text("date")?,
        asked: text("command")?,
        headline: text("why")?,
        progress: BundleProgress::EndedEarly,
        ..BundleHead::default()
    })
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
        let answered =
            "REPORT\nredo: 10 commits/s (VALID); next: another\ndevice\nRun: VALID   checked\n  -> why\n";
        assert_eq!(headline(answered).as_deref(), Some("Run: VALID   checked"));
        assert_eq!(headline(""), None);
    }

    /// Makes bundles whose reports say this; their records are unreadable, as a stranger's may be.
    fn bundles(reports: &Path, count: usize, says: &str) {
        for number in 0..count {
            let bundle = reports.join(format!("r{number:03}"));
            fs::create_dir_all(&bundle).expect("a directory");
            fs::write(bundle.join(FILE), "{}").expect("a record");
            fs::write(bundle.join(REPORTS[0]), format!("REPORT\n{says}\n\n")).expect("a report");
        }
    }

    #[test]
    fn the_index_is_made_of_many_and_never_hides_a_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let reports = directory.path().join(REPORTS_BELOW);
        let says = || -> Vec<String> {
            let found = find(directory.path(), &[]).expect("a list");
            found.into_iter().map(|found| found.head.headline).collect()
        };
        bundles(&reports, INDEX_FROM - 1, "Run: VALID");
        assert_eq!(says().len(), INDEX_FROM - 1);
        assert!(!reports.join(INDEX).exists(), "a small directory has none");
        bundles(&reports, INDEX_FROM, "Run: VALID");
        assert!(says().iter().all(|line| line == "Run: VALID"));
        // The rows come from the index.
        let text = fs::read_to_string(reports.join(INDEX)).expect("an index");
        fs::write(reports.join(INDEX), text.replace("Run: VALID", "Run: KEPT")).expect("an index");
        assert!(says().iter().all(|line| line == "Run: KEPT"));
        // A report that was written again, a bundle less, an index of another form, a damaged one.
        fs::write(reports.join("r000/report.txt"), "REPORT\nRun: INVALID\n\n").expect("a report");
        assert_eq!(says().iter().filter(|line| *line == "Run: INVALID").count(), 1);
        fs::remove_dir_all(reports.join("r001")).expect("removed");
        assert_eq!(says().len(), INDEX_FROM - 1);
        for other in [text.replace(INDEX_FORM, "0"), "[".to_string()] {
            fs::write(reports.join(INDEX), other).expect("an index");
            assert!(says().iter().all(|line| line.starts_with("Run: VALID") || line == "Run: INVALID"));
        }
    }

    #[test]
    fn no_link_is_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (reports, outside) = (directory.path().join(REPORTS_BELOW), directory.path().join("outside"));
        bundles(&outside, 1, "Run: SECRET");
        bundles(&reports, 1, "Run: VALID");
        std::os::unix::fs::symlink(outside.join("r000"), reports.join("link")).expect("a link");
        fs::remove_file(reports.join("r000/report.txt")).expect("removed");
        std::os::unix::fs::symlink(outside.join("r000/report.txt"), reports.join("r000/report.txt"))
            .expect("a link");
        let found = find(directory.path(), &[]).expect("a list");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].head.headline.contains("SECRET"), "{found:?}");
    }
}
