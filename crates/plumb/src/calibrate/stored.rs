//! The newest calibration of a path, where later runs look for it.

use crate::failure::Failure;
use plumb_calibrate::Calibration;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Its name under the path that was calibrated.
const FILE: &str = "plumb-calibration.json";
/// What every version of it has.
const MARKS: [&str; 3] = ["schema_version", "environment", "figures"];

/// The earlier calibration; none where there is none that this version reads.
///
/// # Errors
/// When what bears its name is something else, which a new one must not replace.
pub fn read(path: &Path) -> Result<Option<Calibration>, Failure> {
    let file = path.join(FILE);
    let refuse = |why: &str| {
        Err(Failure::run(format!(
            "{}: {why}, and the result would take its place; move it away or choose another --path",
            file.display()
        )))
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return refuse(&format!("cannot be read ({error})")),
    };
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if MARKS.iter().any(|mark| value.get(mark).is_none()) {
        return refuse("is no calibration");
    }
    // One of another version is not compared with, only replaced.
    Ok(serde_json::from_value(value).ok())
}

/// Puts a calibration in the place of the earlier one, whole or not at all; gives its path.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, record: &str) -> Result<PathBuf, Failure> {
    let file = path.join(FILE);
    let fresh = path.join(format!("{FILE}.{}", std::process::id()));
    replace(&fresh, &file, record).map_err(|error| {
        let _ = fs::remove_file(&fresh);
        Failure::run(format!(
            "cannot store the calibration as {}: {error}; give this user the right to write there",
            file.display()
        ))
    })?;
    Ok(file)
}

fn replace(fresh: &Path, file: &Path, record: &str) -> io::Result<()> {
    let mut made = File::create_new(fresh)?;
    made.write_all(record.as_bytes())?;
    made.sync_all()?;
    fs::rename(fresh, file)
}
