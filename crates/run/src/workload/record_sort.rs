//! The record sort: a file of sort-benchmark records, sorted into another file and judged as
//! valsort does.
//!
//! The temporary tablespace is made beforehand, as in a database; the output is made during the
//! measured sort. Input and output are in the directories of the tables and of the indexes. The
//! records have no seed: they are gensort's first.

use super::{Execution, Place, sizing};
use crate::evidence::{self, Done, FileRole, Measured};
use crate::place::Room;
use plumb_engine::check::CheckLine;
use plumb_engine::file_sort::create::create;
use plumb_engine::file_sort::validate::{RecordSummary, validate};
use plumb_engine::file_sort::{FileSortSpec, sort_file};
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::clock;
use plumb_host::readings::{self, Residency};
use plumb_study::Stage;
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::gensort::{GensortRecords, KEY_BYTES, RECORD_BYTES, RecordForm};
use plumb_workload::specification::RECORD_SORT;
use plumb_workload::{Work, Workload};
use std::path::PathBuf;

/// Largest number of write buffers, enough for a whole load. With few of them, a server that has
/// sorted its load waits until the device has written most of it.
const WRITE_BUFFERS_MAX: u64 = 16;
const WRITE_BUFFER_BYTES: u64 = 512 * Bytes::K;

pub(super) struct RecordSort;

impl Execution for RecordSort {
    fn workload(&self) -> &'static Workload {
        &RECORD_SORT
    }

    /// Sets as many large write buffers as a tenth of the sort area holds.
    fn apply_defaults(&self, _: &Work, settings: &mut Settings) -> Result<(), EngineError> {
        apply_write_buffers(settings, RECORD_SORT.name)
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let file = Bytes(work.rows().saturating_mul(RECORD_BYTES as u64));
        Room {
            tablespaces: sizing::of_records(work.rows(), RECORD_BYTES as u64, settings),
            beside: InitialSizes { users: file, temp: Bytes(0), indx: file },
        }
    }

    fn source(&self) -> Purpose {
        Purpose::Temp
    }

    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let count = place.work.rows();
        place.observer.stage(&Stage::Load { recorder: &place.instance.recorder, rows: count });
        let form = if place.work.value("form") == Some(1) { RecordForm::Random } else { RecordForm::Binary };
        create(place.instance, &files(place).input, &GensortRecords { count, form })
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let (instance, spec) = (place.instance, files(place));
        place.observer.stage(&Stage::Build { recorder: &instance.recorder, rows: place.work.rows() });
        let input =
            instance.access.disk.open(&spec.input, plumb_io::OpenMode::Read, instance.access.direct)?;
        if let Some(descriptor) = input.descriptor() {
            let _ = readings::drop_cache(descriptor);
        }
        let cached_before = evidence::residency(&input);
        evidence::around(instance, place.devices, || {
            let sorted = sort_file::<RECORD_BYTES, KEY_BYTES>(instance, &spec)?;
            // The output was made during the work.
            let nothing =
                evidence::residency(&sorted.output).map(|pages| Residency { resident_pages: 0, ..pages });
            let files = vec![
                evidence::of_plain_file(FileRole::Input, &spec.input, &sorted.input, cached_before),
                evidence::of_plain_file(FileRole::Output, &spec.output, &sorted.output, nothing),
            ];
            Ok((Done { sort: Some(sorted.sort), ..Done::default() }, files))
        })
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        place.observer.stage(&Stage::Verify { recorder: &place.instance.recorder, blocks: 0 });
        judge(place.instance, &files(place))
    }

    fn undo(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let output = files(place).output;
        if !output.exists() {
            return Ok(());
        }
        place.instance.access.disk.remove(&output).map_err(EngineError::from)
    }
}

/// Sets as many large write buffers as a tenth of the sort area holds, unless the user set others.
pub(super) fn apply_write_buffers(settings: &mut Settings, origin: &str) -> Result<(), EngineError> {
    let asked = [Setting::SortWriteBuffers, Setting::SortWriteBufferSize];
    let room = settings.number(Setting::SortAreaSize) / 10 / WRITE_BUFFER_BYTES;
    let count = room.min(WRITE_BUFFERS_MAX);
    if count <= settings.number(asked[0]) || asked.iter().any(|setting| settings.is_explicit(*setting)) {
        return Ok(());
    }
    settings.set("sort_write_buffers", &count.to_string(), origin)?;
    settings.set("sort_write_buffer_size", &Bytes(WRITE_BUFFER_BYTES).as_setting(), origin)
}

fn files(place: &Place<'_>) -> FileSortSpec {
    FileSortSpec {
        input: beside_files_of(place.instance, Purpose::Users, "records.dat"),
        output: beside_files_of(place.instance, Purpose::Indx, "sorted.dat"),
    }
}

/// Returns the path of a file in the directory of a tablespace.
fn beside_files_of(instance: &Instance, purpose: Purpose, name: &str) -> PathBuf {
    let data_file = instance.tablespace(purpose).files.first();
    let directory = data_file.and_then(|file| file.file.path().parent()).unwrap_or(instance.home());
    directory.join(name)
}

/// Reads input and output and compares their sums.
pub(super) fn judge(instance: &Instance, spec: &FileSortSpec) -> Result<Vec<CheckLine>, EngineError> {
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

    fn with_defaults(set: &[(&str, &str)]) -> (u64, u64) {
        let mut settings = Settings::default();
        for (name, value) in set {
            settings.set(name, value, "test").expect("a setting");
        }
        RecordSort.apply_defaults(&Work::of(&RECORD_SORT), &mut settings).expect("in range");
        (settings.number(Setting::SortWriteBuffers), settings.number(Setting::SortWriteBufferSize))
    }

    #[test]
    fn write_buffers_follow_the_area_and_what_was_asked_for_stays() {
        let (large, usual) = (512 * Bytes::K, (4, 256 * Bytes::K));
        assert_eq!(with_defaults(&[("sort_area_size", "244M")]), (16, large));
        assert_eq!(with_defaults(&[("sort_area_size", "32M")]), (6, large));
        assert_eq!(with_defaults(&[("sort_area_size", "16M")]), usual);
        assert_eq!(with_defaults(&[("sort_area_size", "244M"), ("sort_write_buffers", "4")]), usual);
    }
}
