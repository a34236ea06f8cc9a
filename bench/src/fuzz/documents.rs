//! Changes files outside databases: records, traces, calibrations, and lists of backups.

use super::{change, reports};
use crate::settings;
use anyhow::Context as _;
use plumb_calibrate::{Calibration, Mode};
use plumb_engine::backup::{self, Verification};
use plumb_engine::instance::InitialSizes;
use plumb_engine::{Instance, Layout};
use plumb_events::{Cancel, Role};
use plumb_pages::{info, rendered};
use plumb_proof::random::Generator;
use plumb_record::Record;
use plumb_record::trace::{self, RunTrace};
use plumb_report::{Document, summary};
use plumb_run::place::Places;
use plumb_run::workload::{self, Request};
use plumb_study::provenance::Provenance;
use plumb_study::{Observer, Stage};
use plumb_units::{Bytes, Nanos};
use plumb_workload::Work;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of magic, version, length and hash of a trace.
const TRACE_HEAD: usize = 8 + 4 + 8 + 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Record,
    Trace,
    Calibration,
    Backup,
    Report,
}

/// All kinds, with their files.
pub(super) const KINDS: [(Kind, &str); 5] = [
    (Kind::Record, "record.json"),
    (Kind::Trace, "trace.bin"),
    (Kind::Calibration, "calibration.json"),
    (Kind::Backup, "backup.json"),
    (Kind::Report, "report"),
];

struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// Makes the missing documents in a directory.
pub(super) fn make(directory: &Path) -> anyhow::Result<()> {
    let path = |kind: Kind| path(directory, kind);
    if !path(Kind::Trace).exists() {
        let (record, trace) = run(directory)?;
        fs::write(path(Kind::Record), record.to_json()?)?;
        fs::write(path(Kind::Trace), trace.to_bytes())?;
    }
    if !path(Kind::Calibration).exists() {
        let device = plumb_io::describe_device(directory)?;
        let options = plumb_calibrate::Options {
            file_size: Some(Bytes(64 * Bytes::M)),
            budget: Some(Nanos(10_000_000_000)),
            duration: Some(Nanos(5_000_000)),
            ..plumb_calibrate::Options::new(Mode::Quick, 1, "2026-01-02")
        };
        let calibration = plumb_calibrate::calibrate(std::slice::from_ref(&device), &options, &())?;
        fs::write(path(Kind::Calibration), serde_json::to_string(&calibration)?)?;
    }
    if !path(Kind::Backup).exists() {
        back_up(directory)?;
    }
    Ok(())
}

fn path(directory: &Path, kind: Kind) -> PathBuf {
    let name = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name);
    if kind == Kind::Backup { directory.join("backup").join(name) } else { directory.join(name) }
}

/// Makes a small run with its trace.
fn run(directory: &Path) -> anyhow::Result<(Record, RunTrace)> {
    let workload = &plumb_workload::specification::REDO;
    let mut work = Work::of(workload);
    work.set("rows", "500").map_err(anyhow::Error::msg)?;
    let places = Places::in_one(directory);
    let devices = places.describe()?;
    let request = Request {
        work: &work,
        settings: settings(&[("debug_trace_requests", "100000"), ("filesystemio_options", "none")], &[])?,
        places: &places,
        devices: &devices,
        command_line: "bench fuzz",
    };
    let ran = workload::run(request, Cancel::default(), &Silent)?;
    Ok((ran.record, ran.trace.context("a trace was asked for")?))
}

/// Makes a database in a directory, and its backup next to it.
fn back_up(directory: &Path) -> anyhow::Result<()> {
    let home = directory.join("database");
    let given = [("filesystemio_options", "none"), ("extent_size", "256K"), ("data_files", "1")];
    let sizes = InitialSizes { users: Bytes(1), temp: Bytes(1), indx: Bytes(1) };
    let instance =
        Instance::create(&Layout::in_one(home.clone()), settings(&given, &[])?, sizes, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let made = directory.join("backup.new");
    backup::backup(&instance, None, &session, &made, Verification::Blocks)?;
    fs::rename(made, directory.join("backup"))?;
    drop(session);
    drop(instance);
    Ok(fs::remove_dir_all(home)?)
}

/// Changes a document and uses it as the commands do. Returns the errors.
pub(super) fn attempt(directory: &Path, kind: Kind, random: &mut Generator) -> anyhow::Result<Vec<String>> {
    if kind == Kind::Report {
        return reports::attempt(random, shown);
    }
    let bytes = fs::read(path(directory, kind))?;
    if kind == Kind::Trace {
        return Ok(trace(bytes, random));
    }
    let mut document: Value = serde_json::from_slice(&bytes)?;
    (0..=random.below(3)).for_each(|_| change::json(random, &mut document));
    let text = document.to_string();
    match kind {
        Kind::Record => Ok(record(&text)),
        Kind::Calibration => calibration(directory, &text),
        _ => restore(directory, &text),
    }
}

fn record(text: &str) -> Vec<String> {
    let record = match Record::from_json(text) {
        Ok(record) => record,
        Err(error) => return vec![error.to_string()],
    };
    shown(&plumb_pages::run::document(&record));
    drop(info::line("fuzz", &record));
    if let Some(period) = record.last_snapshot().and_then(|last| record.period(1, last)) {
        shown(&plumb_pages::run::document(&period));
    }
    Vec::new()
}

/// Renders a document by every renderer.
fn shown(document: &Document) {
    drop(rendered(document));
    for width in [60, 132, usize::MAX] {
        drop(summary::render_in(document, width));
        drop(plumb_report::text::render_in(document, width));
    }
}

fn calibration(directory: &Path, text: &str) -> anyhow::Result<Vec<String>> {
    let calibration = match Calibration::from_json(text) {
        Ok(calibration) => calibration,
        Err(error) => return Ok(vec![error.to_string()]),
    };
    let device = plumb_io::describe_device(directory)?;
    let provenance = Provenance::of(&calibration, &device, "bench fuzz".to_string());
    shown(&plumb_pages::calibration::document(&calibration, &provenance));
    drop(calibration.agreement(&calibration));
    Ok(Vec::new())
}

fn trace(mut bytes: Vec<u8>, random: &mut Generator) -> Vec<String> {
    for _ in 0..=random.below(8) {
        let near = TRACE_HEAD + if random.below(2) == 0 { 400 } else { bytes.len() };
        change::bytes(random, &mut bytes, TRACE_HEAD..near);
    }
    if random.below(5) == 0 {
        bytes.truncate(TRACE_HEAD + random.below(bytes.len() - TRACE_HEAD));
    }
    let rest = bytes.len() as u64 - TRACE_HEAD as u64;
    bytes[12..20].copy_from_slice(&rest.to_le_bytes());
    let hash = Sha256::digest(&bytes[TRACE_HEAD..]);
    bytes[20..TRACE_HEAD].copy_from_slice(&hash);
    match RunTrace::of_bytes(&bytes) {
        Err(why) => vec![why],
        Ok(trace) => {
            let options = trace::Options { lines: true, ..trace::Options::default() };
            trace::render(&trace, &options).err().into_iter().collect()
        }
    }
}

/// Restores a backup with a changed list, into a directory that is removed afterwards.
fn restore(directory: &Path, text: &str) -> anyhow::Result<Vec<String>> {
    let changed = tempfile::tempdir_in(directory)?;
    let (from, to) = (changed.path().join("backup"), changed.path().join("restored"));
    fs::create_dir(&from)?;
    for entry in fs::read_dir(directory.join("backup"))? {
        let entry = entry?;
        fs::hard_link(entry.path(), from.join(entry.file_name()))?;
    }
    fs::remove_file(from.join("backup.json"))?;
    fs::write(from.join("backup.json"), text)?;
    let recorder = plumb_events::Recorder::new();
    let session = recorder.session(Role::User);
    let restored = backup::restore(&session, &Cancel::default(), &from, &to);
    Ok(restored.err().map(|error| error.to_string()).into_iter().collect())
}
