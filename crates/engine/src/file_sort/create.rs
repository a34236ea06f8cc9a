//! Makes a file of records from a source.

use crate::file_sort::BLOCK_BYTES;
use crate::file_sort::input::chunk_bytes_min;
use crate::file_sort::output::{Fragment, OutputFile, OutputWriter};
use crate::parallel::servers::{self, Operation};
use crate::{EngineError, Instance};
use plumb_events::{Phase, Role, Session, Statistic, now};
use plumb_types::RecordSource;
use std::path::Path;

/// Bytes and number of a server's write buffers.
const BUFFERS: (usize, usize) = (512 * 1024, 4);

/// Writes all records of a source to a new file; each server writes one part of it.
///
/// # Errors
/// If a file of that name exists, or a write fails; no new file remains then.
pub fn create(instance: &Instance, path: &Path, source: &dyn RecordSource) -> Result<(), EngineError> {
    let coordinator = instance.recorder.session(Role::Coordinator);
    let begin = now();
    let degree = instance.parallel_degree();
    let record_bytes = source.record_bytes() as u64;
    let count = source.record_count();
    let output = OutputFile::create(instance, &coordinator, path, count * record_bytes)?;
    let stretches = servers::run_set(
        instance.operation(),
        &coordinator,
        (Role::CopyServer, degree),
        |session, operation, number| {
            let begin_of = |number: usize| (u128::from(count) * number as u128 / degree as u128) as u64;
            write_stretch(session, operation, &output, source, (begin_of(number), begin_of(number + 1)))
        },
    )?;
    output.patch(&coordinator, stretches.into_iter().flatten().collect())?;
    output.finish(&coordinator)?;
    instance.recorder.phase(Phase::Load, begin, count);
    Ok(())
}

fn write_stretch(
    session: &Session,
    operation: &Operation,
    output: &OutputFile<'_>,
    source: &dyn RecordSource,
    (mut record, end): (u64, u64),
) -> Result<Vec<Fragment>, EngineError> {
    let record_bytes = source.record_bytes();
    let mut writer = OutputWriter::new(output, session, record * record_bytes as u64, BUFFERS)?;
    let mut records = vec![0; chunk_bytes_min(record_bytes).max(BLOCK_BYTES)];
    let at_a_time = (records.len() / record_bytes) as u64;
    while record < end {
        operation.check()?;
        let count = at_a_time.min(end - record);
        let part = &mut records[..count as usize * record_bytes];
        source.fill(record, part);
        writer.push(part)?;
        session.count(Statistic::LoadRows, count);
        record += count;
    }
    writer.finish()
}
