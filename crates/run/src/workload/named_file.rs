//! The sort of a file that the user names: its lines or records go, sorted, into another file.
//!
//! Only a temporary database for the data that does not fit in memory is made beforehand. Its
//! temporary tablespace is as large as the sort will need, so that it does not grow during the
//! measurement. If the input is far smaller than the sort areas, it is one extent.
//!
//! Records of 100 bytes with a key of 10 at their front use the record sort ([`record_sort`]),
//! everything else the sort of lines ([`line_sort`]). The output is read again and judged. A wrong
//! output is removed, because users rely on a file of that name.

use super::{record_sort, sizing};
use crate::evidence::{self, Asked, Done, Evidence, FileRole, Measured};
use crate::place::{self, Places, Room};
use crate::{RunError, Temporary, assemble, calibration_store};
use plumb_engine::check::CheckLine;
use plumb_engine::file_sort::{FileSortSpec, sort_file};
use plumb_engine::instance::InitialSizes;
use plumb_engine::line_sort::judge::judge;
use plumb_engine::line_sort::{
    Compared, LineSortSpec, Part, Shape, SortKey, SortOrder, Summed, Ties, sort_lines,
};
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::{Cancel, clock};
use plumb_host::device::DeviceDescription;
use plumb_host::readings::Residency;
use plumb_io::{DirectIo, Disk, OpenMode};
use plumb_record::Record;
use plumb_study::{Observer, Stage};
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::gensort::{KEY_BYTES, RECORD_BYTES};
use std::io::Read;
use std::path::Path;

const NAME: &str = "sort";
/// Bytes read from the start of a file to estimate the length of its lines.
const BEGINNING_BYTES: u64 = 64 * Bytes::K;

/// A file to sort, and its directories.
#[derive(Debug)]
pub struct Request<'a> {
    /// The files and the order.
    pub spec: &'a LineSortSpec,
    /// A value for every setting.
    pub settings: Settings,
    /// Directories of the temporary database.
    pub places: &'a Places<'a>,
    /// Devices under it and under the files.
    pub devices: &'a [DeviceDescription],
    /// The command as it could be typed again.
    pub command_line: &'a str,
}

/// Sorts the file, judges the output, and makes the record. If it fails, there is no output. A
/// wrong output is a failed check of the record.
pub fn sort(request: Request<'_>, cancel: Cancel, observer: &dyn Observer) -> Result<Record, RunError> {
    let Request { spec, mut settings, places, devices, command_line } = request;
    apply_defaults(spec, &mut settings)?;
    let (bytes, line) = measure(spec)?;
    let room = Room { tablespaces: temporary(spec, bytes, line, &settings), beside: InitialSizes::NONE };
    let name = place::free_name(places, "plumb-run");
    let database = Temporary::create(places, &name, settings, room, cancel, observer)?;
    let instance = database.instance();
    let asked = Asked {
        workload: NAME.to_string(),
        data: spec.input.display().to_string(),
        measures: "file sort",
        command_line: command_line.to_string(),
        ..Asked::of_own_data(clock::now())
    };
    observer.stage(&Stage::Build { recorder: &instance.recorder, rows: bytes / line });
    let (measured, read) = carry_out(instance, spec, devices)?;
    observer.stage(&Stage::Verify { recorder: &instance.recorder, blocks: 0 });
    let checks = match verify(instance, spec, read) {
        Err(error) if !error.is_damage() => return Err(error.into()),
        found => evidence::checks(found, "the sorted file"),
    };
    if checks.iter().any(|check| !check.passed) {
        instance.access.disk.remove(&spec.output).map_err(EngineError::from)?;
    }
    let described: Vec<&DeviceDescription> = devices.iter().collect();
    let limits = calibration_store::limits(&[places.home], &described);
    let seen = Evidence::of(instance, asked, measured, devices, checks).with_limits(None, limits);
    Ok(assemble::record(&seen))
}

/// Sets the largest blocks, unless the user set others: they bound the length of a line.
fn apply_defaults(spec: &LineSortSpec, settings: &mut Settings) -> Result<(), EngineError> {
    if is_of_the_benchmarks(spec) {
        return record_sort::apply_write_buffers(settings, NAME);
    }
    if !settings.is_explicit(Setting::DbBlockSize) {
        settings.set("db_block_size", "32K", NAME)?;
    }
    Ok(())
}

/// True if the record sort supports the file's records and order.
fn is_of_the_benchmarks(spec: &LineSortSpec) -> bool {
    let front = SortKey { part: Part::Bytes(0..KEY_BYTES), compared: Compared::Bytes };
    spec.shape == Shape::Records(RECORD_BYTES)
        && spec.order == SortOrder { keys: vec![front], ties: Ties::Bytes }
}

/// Returns the bytes of the input, and the mean bytes of a line at its start.
fn measure(spec: &LineSortSpec) -> Result<(u64, u64), RunError> {
    let file = Disk::Kernel.open(&spec.input, OpenMode::Read, DirectIo::Off).map_err(EngineError::from)?;
    let length = file.length().map_err(EngineError::from)?;
    if let Shape::Records(bytes) = spec.shape {
        return Ok((length, bytes as u64));
    }
    // The sort rejects an unreadable file, with the reason.
    let mut beginning = Vec::new();
    let _ = plumb_host::regular::open_regular(&spec.input)
        .and_then(|file| file.take(BEGINNING_BYTES).read_to_end(&mut beginning));
    let lines = beginning.iter().filter(|byte| **byte == b'\n').count();
    Ok((length, (beginning.len() / lines.max(1)).max(1) as u64))
}

/// Returns the size of the temporary tablespace: the bytes that the sort will write to it.
fn temporary(spec: &LineSortSpec, bytes: u64, line: u64, settings: &Settings) -> InitialSizes {
    let keys = spec.order.keys.len() as u64 * line + if spec.order.ties == Ties::Input { 8 } else { 0 };
    match is_of_the_benchmarks(spec) {
        true => sizing::of_records(bytes / line, line, settings),
        false => sizing::of_lines(bytes / line, line + keys, settings),
    }
}

/// Sorts between two readings; returns the checksum of the input if the sort computes it.
fn carry_out(
    instance: &Instance,
    spec: &LineSortSpec,
    devices: &[DeviceDescription],
) -> Result<(Measured, Option<Summed>), EngineError> {
    let input = instance.access.disk.open(&spec.input, OpenMode::Read, instance.access.direct)?;
    let cached_before = evidence::residency(&input);
    let mut read = None;
    let measured = evidence::around(instance, devices, || {
        let (sort, input, output) = if is_of_the_benchmarks(spec) {
            let sorted = sort_file::<RECORD_BYTES, KEY_BYTES>(instance, &file_spec(spec))?;
            (sorted.sort, sorted.input, sorted.output)
        } else {
            let sorted = sort_lines(instance, spec)?;
            read = Some(sorted.summed);
            (sorted.sort, sorted.input, sorted.output)
        };
        // The output was made during the work.
        let nothing = evidence::residency(&output).map(|pages| Residency { resident_pages: 0, ..pages });
        let files = vec![
            evidence::of_plain_file(FileRole::Input, &spec.input, &input, cached_before),
            evidence::of_plain_file(FileRole::Output, &spec.output, &output, nothing),
        ];
        Ok((Done { sort: Some(sort), ..Done::default() }, files))
    })?;
    Ok((measured, read))
}

fn file_spec(spec: &LineSortSpec) -> FileSortSpec {
    FileSortSpec { input: spec.input.clone(), output: spec.output.clone() }
}

/// Reads the output, and compares it with the input.
fn verify(
    instance: &Instance,
    spec: &LineSortSpec,
    read: Option<Summed>,
) -> Result<Vec<CheckLine>, EngineError> {
    let Some(read) = read else { return record_sort::judge(instance, &file_spec(spec)) };
    let begin = clock::now();
    let judged = judge(instance, spec)?;
    let elapsed = clock::now().saturating_sub(begin);
    let noun = if spec.shape == Shape::Lines { "lines" } else { "records" };
    let wrong = |what: &str, found: String, expected: String| {
        Err(EngineError::Verification { what: format!("{what} of the sorted file"), found, expected })
    };
    if let Some(offset) = judged.first_unordered {
        let found =
            format!("{} below the one before, the first at byte {offset}", RowCount(judged.unordered));
        return wrong(noun, found, "none".to_string());
    }
    if judged.summed.line_count != read.line_count {
        return wrong(noun, judged.summed.line_count.to_string(), read.line_count.to_string());
    }
    if judged.summed != read {
        let (found, expected) = (judged.summed, read);
        return wrong(
            "checksum",
            format!("{:x} of {}", found.checksum, Bytes(found.bytes)),
            format!("{:x} of {}, as read from the input", expected.checksum, Bytes(expected.bytes)),
        );
    }
    let line = |name: &str, detail: String, elapsed| CheckLine { name: name.to_string(), detail, elapsed };
    let count = RowCount(read.line_count);
    let order = match spec.order.ties {
        Ties::Input => "; the order of equal ones is not checked",
        Ties::Bytes => "",
    };
    Ok(vec![
        line("in order", format!("{count} {noun} of the output{order}"), elapsed),
        line(&format!("same number of {noun}"), format!("{count} in input and output"), Nanos(0)),
        line(
            &format!("same {noun}"),
            format!("the sums of their CRC-32C are {:x} as they were read and in the output", read.checksum),
            Nanos(0),
        ),
    ])
}

/// Returns the directory of a file that may not exist yet.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
