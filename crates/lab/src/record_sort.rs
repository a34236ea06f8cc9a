//! The record sort: a file of the sort benchmarks' records, sorted into another file
//! and judged as valsort does.
//!
//! The temporary tablespace is made beforehand, as a database has it; the output is
//! made while the sort is measured. Input and output lie in the directories of the
//! tables and of the indexes.

use crate::assemble::{self, Story};
use crate::large_sort::Request;
use crate::measure;
use crate::observer::{Observer, Stage};
use crate::record::Record;
use crate::{LabError, Temporary, large_sort, place, sizing};
use plumb_engine::check::CheckLine;
use plumb_engine::file_sort::FileSortSpec;
use plumb_engine::file_sort::create::create;
use plumb_engine::file_sort::validate::{RecordSummary, validate};
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::clock;
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::gensort::{GensortRecords, KEY_BYTES, RECORD_BYTES, RecordForm};
use std::path::PathBuf;

/// The workload's name, in titles and paths.
pub const NAME: &str = "record-sort";

/// Bytes of a record.
pub const BYTES: u64 = RECORD_BYTES as u64;

/// Write buffers that take in a load at once: with few of them a server that has
/// sorted its load stands until the device has taken most of it.
const WRITE_BUFFERS_MAX: u64 = 16;
/// Bytes of each.
const WRITE_BUFFER_BYTES: u64 = 512 * Bytes::K;

/// Sets what suits records where nobody asked for another value: as many large write
/// buffers as the tenth of the sort area holds that they may take.
///
/// # Errors
/// Never, as long as the values are in the settings' ranges.
pub fn suit(settings: &mut Settings) -> Result<(), EngineError> {
    let asked = [Setting::SortWriteBuffers, Setting::SortWriteBufferSize];
    let room = settings.number(Setting::SortAreaSize) / 10 / WRITE_BUFFER_BYTES;
    let count = room.min(WRITE_BUFFERS_MAX);
    if count <= settings.number(asked[0]) || asked.iter().any(|setting| settings.is_explicit(*setting)) {
        return Ok(());
    }
    settings.set("sort_write_buffers", &count.to_string(), NAME)?;
    settings.set("sort_write_buffer_size", &Bytes(WRITE_BUFFER_BYTES).as_setting(), NAME)
}

/// Runs the workload from nothing to the context of its report. All files are
/// removed with the guard. The records have no seed: they are gensort's first.
///
/// # Errors
/// When it cannot run to its end. A failed verification is no error but a check of the context.
pub fn run(
    request: Request<'_>,
    cancel: Cancel,
    observer: &dyn Observer,
) -> Result<(Record, Temporary), LabError> {
    let Request { rows, mut settings, places, devices, command_line, .. } = request;
    suit(&mut settings)?;
    let sizes = sizing::of_records(rows, BYTES, &settings);
    let file = Bytes(rows.saturating_mul(BYTES));
    let beside = InitialSizes { users: file, temp: Bytes(0), indx: file };
    let name = place::free_name(places, "plumb-run");
    let database = Temporary::with_files_beside(places, &name, settings, (sizes, beside), cancel, observer)?;
    let instance = database.instance();
    let spec = FileSortSpec {
        input: beside_files_of(instance, Purpose::Users, "records.dat"),
        output: beside_files_of(instance, Purpose::Indx, "sorted.dat"),
    };
    let begin = clock::now();
    observer.stage(&Stage::Load { instance, rows });
    create(instance, &spec.input, &GensortRecords { count: rows, form: RecordForm::Binary })?;
    let calibrated = assemble::calibrate(instance, Purpose::Temp)?;
    let limits = large_sort::limits(instance, places, devices);
    assemble::learn_read_cost(instance)?;
    measure::make_cold(instance);
    observer.stage(&Stage::Build { instance, rows });
    let (measured, _) = measure::sort::<RECORD_BYTES, KEY_BYTES>(instance, &spec, devices)?;
    observer.stage(&Stage::Verify { instance, blocks: 0 });
    let checks = match verify(instance, &spec) {
        Err(error) if !error.is_damage() => return Err(error.into()),
        checked => checked,
    };
    let context = assemble::context(&Story {
        workload: NAME,
        command_line,
        seed: 0,
        table: "RECORDS",
        begin,
        instance,
        devices,
        measured: &measured,
        checks: &checks,
        calibrated: calibrated.as_ref(),
        limits: limits.as_ref(),
        files_presized: true,
    });
    Ok((context, database))
}

/// A file of the run's own in the directory of a tablespace.
fn beside_files_of(instance: &Instance, purpose: Purpose, name: &str) -> PathBuf {
    let data_file = instance.tablespace(purpose).files.first();
    let directory = data_file.and_then(|file| file.file.path().parent()).unwrap_or(instance.home());
    directory.join(name)
}

/// Reads input and output and compares their sums.
fn verify(instance: &Instance, spec: &FileSortSpec) -> Result<Vec<CheckLine>, EngineError> {
    let timed = |path: &PathBuf| -> Result<(RecordSummary, Nanos), EngineError> {
        let begin = clock::now();
        let summary = validate::<RECORD_BYTES, KEY_BYTES>(instance, path)?;
        Ok((summary, clock::now().saturating_sub(begin)))
    };
    let (input, input_time) = timed(&spec.input)?;
    let (output, output_time) = timed(&spec.output)?;
    let wrong = |what: &str, found: String, expected: String| {
        Err(EngineError::Verification { what: format!("{what} of the sorted file"), found, expected })
    };
    if let Some(record) = output.first_unordered {
        let found =
            format!("{} below the one before, the first is record {record}", RowCount(output.unordered));
        return wrong("keys", found, "none".to_string());
    }
    if output.record_count != input.record_count {
        return wrong("records", output.record_count.to_string(), input.record_count.to_string());
    }
    if output.checksum != input.checksum {
        return wrong(
            "checksum",
            format!("{:x}", output.checksum),
            format!("{:x}, the input's", input.checksum),
        );
    }
    let line = |name: &str, detail: String, elapsed| CheckLine { name: name.to_string(), detail, elapsed };
    let records = RowCount(output.record_count);
    Ok(vec![
        line("keys in order", format!("{records} records of the output"), output_time),
        line("same number of records", format!("{records} in input and output"), Nanos(0)),
        line(
            "same records",
            format!("the sums of their CRC-32 are {:x} in both", output.checksum),
            input_time,
        ),
        line(
            "repeated keys",
            format!("{} records have the key of the one before", RowCount(output.duplicate_keys)),
            Nanos(0),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suited(set: &[(&str, &str)]) -> (u64, u64) {
        let mut settings = Settings::default();
        for (name, value) in set {
            settings.set(name, value, "test").expect("a setting");
        }
        suit(&mut settings).expect("in range");
        (settings.number(Setting::SortWriteBuffers), settings.number(Setting::SortWriteBufferSize))
    }

    #[test]
    fn write_buffers_follow_the_area_and_what_was_asked_for_stays() {
        let (large, usual) = (512 * Bytes::K, (4, 256 * Bytes::K));
        assert_eq!(suited(&[("sort_area_size", "244M")]), (16, large));
        assert_eq!(suited(&[("sort_area_size", "32M")]), (6, large));
        assert_eq!(suited(&[("sort_area_size", "16M")]), usual);
        assert_eq!(suited(&[("sort_area_size", "244M"), ("sort_write_buffers", "4")]), usual);
    }
}
