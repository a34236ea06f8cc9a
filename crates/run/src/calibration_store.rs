//! The newest calibration of a path, and a check that it is valid for the device of a run.
//!
//! A calibration is stored under the calibrated path, so it moves with the disk. It is valid only
//! for the same device, file system and kernel. Differences are reported, and then no figure of it
//! is used. Its age is shown, but does not matter.
//!
//! ```text
//! PATH/plumb-calibration.json    written whole or not at all
//! ```
//!
//! Limits: a disk is identified by the kernel's description and by the identity of its file system.
//! A copy of a whole disk under the same name counts as the same disk. A calibration of one device
//! says nothing about files spread over several.

use plumb_calibrate::{Calibration, FigureKind};
use plumb_events::clock;
use plumb_host::device::{DeviceDescription, DirectIoSupport};
use plumb_io::cure;
use plumb_record::calendar::Moment;
use plumb_record::{DeviceLimits, LimitFigure, StoredCalibration, outside};
use plumb_units::Bytes;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Name of the file under the calibrated path.
pub const FILE: &str = "plumb-calibration.json";
/// Fields that every version of it has.
const MARKS: [&str; 3] = ["schema_version", "environment", "figures"];

/// Error of a calibration's file.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// Another file has its name.
    #[error("{}: {why}, and the result would take its place; move it away or choose another --path", file.display())]
    Foreign {
        file: PathBuf,
        /// Kind of the file, or the reason why it cannot be read.
        why: String,
    },
    #[error("cannot store the calibration as {}: {source}{}", file.display(), cure(source, file, "give this user the right to write there"))]
    Write { file: PathBuf, source: io::Error },
}

/// Reads the earlier calibration of a path; `None` if there is none that this version can read.
/// Fails if another file has its name, which a new calibration must not replace.
pub fn read(path: &Path) -> Result<Option<Calibration>, StoredError> {
    let file = path.join(FILE);
    let foreign = |why: String| Err(StoredError::Foreign { file: file.clone(), why });
    let text = match outside::text(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return foreign(format!("cannot be read ({error})")),
    };
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if MARKS.iter().any(|mark| value.get(mark).is_none()) {
        return foreign("is no calibration".to_string());
    }
    // A calibration of another version can only be replaced.
    Ok(Calibration::from_json(&text).ok())
}

/// Replaces the earlier calibration, whole or not at all; returns its path.
pub fn write(path: &Path, record: &str) -> Result<PathBuf, StoredError> {
    let file = path.join(FILE);
    let fresh = path.join(format!("{FILE}.{}", std::process::id()));
    match replace(&fresh, &file, record) {
        Ok(()) => Ok(file),
        Err(source) => {
            let _ = fs::remove_file(&fresh);
            Err(StoredError::Write { file, source })
        }
    }
}

fn replace(fresh: &Path, file: &Path, record: &str) -> io::Result<()> {
    let mut made = File::create_new(fresh)?;
    made.write_all(record.as_bytes())?;
    made.sync_all()?;
    fs::rename(fresh, file)
}

/// Returns the limits of the tables' device, from the newest valid calibration under one of
/// `paths`, or the reason why none is valid. `devices` are those of the tables; the advice names
/// the path above the first.
pub fn limits(paths: &[&Path], devices: &[&DeviceDescription]) -> Option<DeviceLimits> {
    let device = devices.first()?;
    if let Some(other) = devices.iter().find(|other| other.mount != device.mount) {
        let reason = format!(
            "the tables are spread over {} and {}, and a calibration is of one device",
            device.mount.mount_point.display(),
            other.mount.mount_point.display()
        );
        return Some(DeviceLimits::NotCalibrated { reason, cure: "put them under one path".to_string() });
    }
    let mut reasons = Vec::new();
    let mut newest: Option<StoredCalibration> = None;
    for path in paths {
        match held(path, device) {
            Ok(None) => {}
            Ok(Some(found)) if newest.as_ref().is_some_and(|newest| newest.date >= found.date) => {}
            Ok(found) => newest = found,
            Err(reason) => reasons.push(reason),
        }
    }
    // The search covers the named paths; the database has a directory of its own below.
    let above = paths.iter().filter_map(|path| path.canonicalize().ok());
    let place = above.into_iter().find(|path| device.path.starts_with(path));
    let none = || DeviceLimits::NotCalibrated {
        reason: if reasons.is_empty() {
            "no calibration is stored there".to_string()
        } else {
            reasons.join("; ")
        },
        cure: format!(
            "plumb calibrate --path {} makes one",
            place.as_ref().unwrap_or(&device.path).display()
        ),
    };
    Some(newest.map_or_else(none, DeviceLimits::Calibrated))
}

/// Returns the calibration stored under a path, if any; an error if it is not valid for the device.
fn held(path: &Path, device: &DeviceDescription) -> Result<Option<StoredCalibration>, String> {
    let file = path.join(FILE);
    if !file.exists() {
        return Ok(None);
    }
    let refuse = |why: &str| Err(format!("{} does not hold: {why}", file.display()));
    let calibration = match read(path) {
        Ok(Some(calibration)) => calibration,
        Ok(None) => return refuse("it is of another version of plumb"),
        Err(_) => return refuse("it is no calibration"),
    };
    let differences = calibration.environment.differences(device);
    if !differences.is_empty() {
        return refuse(&differences.join(", "));
    }
    if !calibration.environment.direct && matches!(device.direct_io, DirectIoSupport::Yes { .. }) {
        return refuse("it was made through the page cache, and direct I/O works here");
    }
    Ok(Some(in_the_reports_words(&calibration, file)))
}

/// Converts the figures to the form of a record.
fn in_the_reports_words(calibration: &Calibration, file: PathBuf) -> StoredCalibration {
    // With one thread or several, the larger rate is the device's limit.
    let most = |kinds: [FigureKind; 2]| {
        let rates = kinds.iter().filter_map(|kind| calibration.figure(*kind));
        let rates = rates.map(|figure| figure.estimate.median * Bytes::M as f64);
        // No share can be taken of a zero rate.
        rates.filter(|rate| *rate > 0.0).reduce(f64::max)
    };
    let figures = calibration.figures.iter().map(|figure| LimitFigure {
        name: key(figure.kind),
        value: figure.estimate.median,
        low: figure.estimate.low,
        high: figure.estimate.high,
        unit: figure.kind.unit().to_string(),
        settled: figure.estimate.settled,
        at: figure.at.clone(),
    });
    let made = Moment::parse(&calibration.environment.date).map(Moment::since_epoch);
    StoredCalibration {
        source: file.canonicalize().unwrap_or(file).display().to_string(),
        date: calibration.environment.date.clone(),
        age_s: made.map(|made| clock::wall().saturating_sub(made).as_secs()),
        mode: calibration.mode.to_string(),
        doubts: calibration.doubts(),
        sequential_read_bytes_per_s: most([FigureKind::SequentialRead, FigureKind::SequentialReadAll]),
        sequential_write_bytes_per_s: most([FigureKind::SequentialWrite, FigureKind::SequentialWriteAll]),
        figures: figures.collect(),
    }
}

/// Returns a figure's name in records: `sequential_read`.
fn key(kind: FigureKind) -> String {
    let value = serde_json::to_value(kind).unwrap_or_default();
    value.as_str().unwrap_or(kind.name()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_calibrate::{Mode, Options, calibrate};
    use plumb_host::device;
    use plumb_units::Nanos;
    use std::sync::OnceLock;
    use tempfile::TempDir;

    /// A directory next to the test program, because the default one may be in memory.
    fn place() -> (TempDir, DeviceDescription) {
        let program = std::env::current_exe().expect("a test program");
        let directory = tempfile::tempdir_in(program.parent().expect("a directory")).expect("a directory");
        let device = plumb_io::describe_device(directory.path()).expect("a description");
        (directory, device)
    }

    /// A calibration of this machine, made once; its figures do not matter.
    fn calibration() -> &'static Calibration {
        static MADE: OnceLock<Calibration> = OnceLock::new();
        MADE.get_or_init(|| {
            let (_directory, device) = place();
            let options = Options {
                file_size: Some(Bytes(64 * Bytes::M)),
                duration: Some(Nanos(10_000_000)),
                ..Options::new(Mode::Dss, 1, "2026-01-02T03:04:05Z")
            };
            calibrate(std::slice::from_ref(&device), &options, &()).expect("a calibration")
        })
    }

    /// Returns the limits for a stored calibration and a device with these changes.
    fn check(change: impl FnOnce(&mut Calibration), is: impl FnOnce(&mut DeviceDescription)) -> DeviceLimits {
        let (directory, mut device) = place();
        let mut stored = calibration().clone();
        change(&mut stored);
        is(&mut device);
        write(directory.path(), &serde_json::to_string(&stored).expect("plain data")).expect("stored");
        limits(&[directory.path()], &[&device]).expect("a device")
    }

    fn reason(limits: DeviceLimits) -> String {
        let DeviceLimits::NotCalibrated { reason, cure } = limits else { panic!("it holds: {limits:?}") };
        assert!(cure.starts_with("plumb calibrate --path /"), "{cure}");
        let (file, why) = reason.split_once(" does not hold: ").expect("named");
        assert!(file.ends_with(FILE), "{file}");
        why.to_string()
    }

    #[test]
    fn a_valid_calibration_is_used_with_age_and_source() {
        let DeviceLimits::Calibrated(found) = check(|_| (), |_| ()) else { panic!("it holds") };
        assert!(found.source.ends_with(FILE), "{}", found.source);
        assert_eq!(found.date, "2026-01-02T03:04:05Z");
        assert!(found.age_s.is_some());
        let best = |kinds: [FigureKind; 2]| {
            let rates = kinds.map(|kind| calibration().figure(kind).expect("measured").estimate.median);
            rates[0].max(rates[1]) * Bytes::M as f64
        };
        let read = found.sequential_read_bytes_per_s.expect("measured");
        let expected = best([FigureKind::SequentialRead, FigureKind::SequentialReadAll]);
        assert!((read / expected - 1.0).abs() < 1e-9, "{read} {expected}");
        assert_eq!(found.figures.len(), calibration().figures.len());
        assert_eq!(found.doubts, calibration().doubts());
    }

    #[test]
    fn what_differs_is_named_and_nothing_is_used() {
        type Change = fn(&mut Calibration);
        let cases: [(Change, &str); 5] = [
            (|of| of.environment.device = "sdz9".to_string(), "device: calibrated on sdz9, this is "),
            (|of| of.environment.file_system = "zfs".to_string(), "file system: calibrated on zfs, this is "),
            (|of| of.environment.kernel = "2.6.32".to_string(), "kernel: calibrated on 2.6.32, this is "),
            (|of| of.environment.mount = Some("/mnt".to_string()), "mount: calibrated on /mnt, this is "),
            (
                |of| of.environment.file_system_id = Some("1".to_string()),
                "file system's identity: calibrated on 1, this is ",
            ),
        ];
        for (change, expected) in cases {
            let why = reason(check(change, |_| ()));
            assert!(why.starts_with(expected), "{why}");
        }
        let why = reason(check(|of| of.schema_version = 99, |_| ()));
        assert_eq!(why, "it is of another version of plumb");
        let buffered = |of: &mut Calibration| of.environment.direct = false;
        let direct = |device: &mut DeviceDescription| {
            let align = Bytes(512);
            let source = device::AlignmentSource::Probe;
            device.direct_io = DirectIoSupport::Yes { memory_align: align, offset_align: align, source };
        };
        let why = reason(check(buffered, direct));
        assert_eq!(why, "it was made through the page cache, and direct I/O works here");
    }

    #[test]
    fn where_there_is_none_one_is_asked_for() {
        let (directory, device) = place();
        let found = limits(&[directory.path()], &[&device]).expect("a device");
        let DeviceLimits::NotCalibrated { reason, cure } = found else { panic!("there is none") };
        assert_eq!(reason, "no calibration is stored there");
        assert_eq!(cure, format!("plumb calibrate --path {} makes one", device.path.display()));
        fs::write(directory.path().join(FILE), "notes").expect("a file");
        let found = limits(&[directory.path()], &[&device]).expect("a device");
        let DeviceLimits::NotCalibrated { reason, .. } = found else { panic!("it is none") };
        assert!(reason.ends_with("it is no calibration"), "{reason}");
        assert_eq!(limits(&[directory.path()], &[]), None);
    }

    #[test]
    fn the_newest_counts_and_several_devices_have_none() {
        let (old, device) = place();
        let (new, _) = place();
        for (directory, date) in [(&old, "2026-01-02T03:04:05Z"), (&new, "2026-02-02T03:04:05Z")] {
            let mut stored = calibration().clone();
            stored.environment.date = date.to_string();
            write(directory.path(), &serde_json::to_string(&stored).expect("plain data")).expect("stored");
        }
        let found = limits(&[new.path(), old.path()], &[&device]);
        let Some(DeviceLimits::Calibrated(found)) = found else { panic!("both hold") };
        assert_eq!(found.date, "2026-02-02T03:04:05Z");
        let mut other = device.clone();
        other.mount.mount_point = PathBuf::from("/other");
        let found = limits(&[new.path()], &[&device, &other]);
        let Some(DeviceLimits::NotCalibrated { reason, .. }) = found else { panic!("two devices") };
        assert!(reason.ends_with("and /other, and a calibration is of one device"), "{reason}");
    }
}
