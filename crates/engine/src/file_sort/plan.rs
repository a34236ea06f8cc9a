//! Plans the memory of a sort of a file, before the first record.
//!
//! While runs are made, a server's sort area holds two loads, one being sorted and one being read,
//! and the entries of one. In the merge it holds a few buffers of output and the pieces of runs.

use crate::file_sort::BLOCK_BYTES;
use crate::file_sort::input::{RecordFile, chunk_bytes_min};
use crate::file_sort::load::ENTRY_BYTES;
use crate::file_sort::runs::sample_interval;
use crate::sort::area::RecordSize;
use crate::sort::merge_plan::{self, BUFFERS_MIN, MergeShape};
use crate::sort::plan::SortPlan;
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use plumb_events::Session;
use plumb_units::Bytes;

/// Most bytes of a read request: above it the kernel hands requests to worker threads.
const CHUNK_BYTES_MAX: usize = 512 * 1024;
/// Smallest load, if memory allows it: reading the next one while it is sorted keeps a device busy.
const LOAD_BYTES_MIN: usize = 8 << 20;
/// Number of write buffers of a server's share of the output.
const OUTPUT_BUFFERS: usize = 8;
/// Most bytes of such a buffer, and the part of the sort area (1 / this) that it may take.
const OUTPUT_BYTES_MAX: usize = 512 * 1024;
const OUTPUT_PART: usize = 32;

/// The plan of a sort of a file, the same for all its servers.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// Write buffers of runs, and the costs of merges.
    pub sort: SortPlan,
    /// Number of chunks in a load.
    pub load_chunks: usize,
    /// Bytes and number of the output buffers.
    pub output_buffers: (usize, usize),
    /// Distance of sampled records, in records.
    pub sample_interval: u64,
    /// Memory of a merge without its output buffers.
    merge_bytes: u64,
}

/// Returns the bytes of a chunk: as large as a request should be, if four fit.
///
/// # Errors
/// If the sort area is too small.
pub(super) fn chunk_bytes(instance: &Instance, record_bytes: usize) -> Result<usize, EngineError> {
    let plan = SortPlan::new(instance, record_size(record_bytes), 0)?;
    let least = chunk_bytes_min(record_bytes);
    let area = plan.area.0 as usize;
    let needed = area_min(instance, record_bytes);
    if area < needed {
        // Write buffers that come out of the area take at most a tenth of it.
        let setting = (needed * 10).div_ceil(9).next_multiple_of(Bytes::K as usize);
        return Err(EngineError::Contradiction {
            first: format!("sort_area_size={}", instance.settings.sort.sort_area_size.as_setting()),
            second: format!("records of {record_bytes} bytes"),
            why: format!(
                "two reads of whole records and blocks do not fit; set sort_area_size to at least {}",
                Bytes(setting as u64).as_setting()
            ),
        });
    }
    let most = (area / load_memory(1, record_bytes, record_bytes) / 4 * record_bytes).min(CHUNK_BYTES_MAX);
    Ok((most / least * least).max(least))
}

/// Returns the least bytes of a sort area: a load of one chunk, or the narrowest merge.
fn area_min(instance: &Instance, record_bytes: usize) -> usize {
    let block_bytes = instance.tablespace(Purpose::Temp).block_size.bytes();
    let merge = BUFFERS_MIN * block_bytes + OUTPUT_BUFFERS * BLOCK_BYTES;
    load_memory(1, chunk_bytes_min(record_bytes), record_bytes).max(merge)
}

/// Returns the memory of two loads, one with entries.
fn load_memory(chunks: usize, chunk_bytes: usize, record_bytes: usize) -> usize {
    chunks * (2 * chunk_bytes + chunk_bytes / record_bytes * ENTRY_BYTES)
}

fn record_size(bytes: usize) -> RecordSize {
    RecordSize { bytes, entry_bytes: ENTRY_BYTES }
}

impl FilePlan {
    pub fn new(instance: &Instance, input: &RecordFile) -> Result<FilePlan, EngineError> {
        let degree = instance.parallel_degree();
        let sort =
            SortPlan::new(instance, record_size(input.record_bytes), input.record_count / degree as u64)?;
        let area = sort.area.0 as usize;
        let output_bytes =
            (area / OUTPUT_PART / BLOCK_BYTES * BLOCK_BYTES).clamp(BLOCK_BYTES, OUTPUT_BYTES_MAX);
        let mut plan = FilePlan {
            load_chunks: 0,
            output_buffers: (output_bytes, OUTPUT_BUFFERS),
            sample_interval: sample_interval(input.record_count),
            merge_bytes: (area - output_bytes * OUTPUT_BUFFERS) as u64,
            sort,
        };
        plan.load_chunks = plan.choose_load(input, degree);
        let load = load_memory(plan.load_chunks, input.chunk_bytes, input.record_bytes);
        assert!(plan.load_chunks > 0, "a load has a chunk");
        assert!(load <= area, "loads of {load} bytes in a sort area of {area}");
        Ok(plan)
    }

    /// Returns the chunks of the smallest load whose runs one merge can take with the largest
    /// requests. If there is none, returns the largest load that fits.
    fn choose_load(&self, input: &RecordFile, degree: usize) -> usize {
        let most = self.sort.area.0 as usize / load_memory(1, input.chunk_bytes, input.record_bytes);
        let bytes = input.record_count * input.record_bytes as u64;
        let least = LOAD_BYTES_MIN.div_ceil(input.chunk_bytes).clamp(1, most);
        let merged_well = |chunks: &usize| {
            let runs = bytes.div_ceil((*chunks * input.chunk_bytes) as u64) as usize + degree;
            self.one_pass(runs).is_some_and(|shape| shape.chunk_blocks == self.sort.chunk_blocks_max)
        };
        (least..=most).find(merged_well).unwrap_or(most)
    }

    fn one_pass(&self, run_count: usize) -> Option<MergeShape> {
        self.sort.one_pass(run_count, Bytes(self.merge_bytes))
    }

    /// Returns the memory of a load, and the part of it that is records: the size of its run.
    pub fn load(&self, input: &RecordFile) -> (Bytes, Bytes) {
        let memory = load_memory(self.load_chunks, input.chunk_bytes, input.record_bytes);
        (Bytes(memory as u64), Bytes((self.load_chunks * input.chunk_bytes) as u64))
    }

    /// Returns the number of read buffers, two loads.
    pub fn buffer_count(&self) -> usize {
        2 * self.load_chunks
    }

    /// Returns the shape of the merges of `run_count` runs.
    ///
    /// # Errors
    /// If the device's read cost must be measured and a read fails.
    pub fn merge_shape(
        &self,
        instance: &Instance,
        session: &Session,
        run_count: usize,
    ) -> Result<MergeShape, EngineError> {
        let memory_blocks = self.sort.memory_blocks(Bytes(self.merge_bytes));
        if let Some(shape) = self.one_pass(run_count) {
            return Ok(shape.within(memory_blocks));
        }
        let costs = self.sort.merge_cost(instance, session)?;
        let shape = merge_plan::plan(run_count, memory_blocks, self.sort.chunk_blocks_max, costs);
        Ok(shape.within(memory_blocks))
    }

    /// Returns the memory of the sort, by purpose.
    pub fn memory(&self, instance: &Instance) -> Vec<(String, Bytes)> {
        self.sort.memory(&instance.settings, instance.parallel_degree() as u64)
    }
}
