//! Plans a sort before its first row: memory, write path, read cost.
//!
//! The settings and the expected number of rows become a [`SortPlan`], the same for all servers of
//! a sort and fixed from then on. Contradictions (an area of too few blocks, a write buffer of half
//! a block) are rejected here, before a row has been read.
//!
//! The memory of a server's sort area:
//!
//! ```text
//! sort_area_size = area + write buffers     auto: at most a tenth is for the buffers
//! area           = strips while records come, then the buffers of the merge
//! ```
//! `sort_direct_writes=true` puts the write buffers on top of `sort_area_size`. The number
//! of strips is the largest for which one merge takes the runs of all expected rows.
//!
//! The read cost ratio of the device matters only for a plan of several passes, so it is read when
//! a merge needs it. It is not measured at that moment, because a probe inside a timed build would
//! look like an effect of some setting. So [`SortPlan::learn_read_cost`] can be called before, and
//! the instance keeps the result.
//!
//! Limits: the expected rows of a server are the table's divided by the servers, and a tenth more;
//! a key range that gets more has runs that need another pass. Records are assumed to be as long
//! as those of the sample.

use crate::probe;
use crate::read_cost::MergeReads;
use crate::settings::Domain;
use crate::sort::area::{
    RecordSize, STRIP_BYTES_MAX, STRIP_BYTES_MIN, STRIP_BYTES_TARGET, STRIPS_MAX, STRIPS_MIN,
};
use crate::sort::merge_plan::{self, MergeCost, MergeShape};
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance, Setting, Settings};
use plumb_events::{Phase, Session, locked, now};
use plumb_io::MethodKind;
use plumb_units::{BlockCount, BlockSize, Bytes, Nanos, Rate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Purpose of memory that all sorts of an instance share.
pub const SHARED_MEMORY: &str = "buffer cache";
/// Smallest write buffers that `sort_direct_writes=auto` considers: 2 of 32K.
const AUTO_BUFFERS_MIN: u64 = 2 * 32 * Bytes::K;
/// CPU time of a row in an intermediate merge: read, compared, written and verified.
/// Measured: 20 to 30 ns.
const MERGE_ROW_SECONDS: f64 = 25e-9;
/// Blocks of the smallest sort area: those of the smallest merge, and one to spare.
const AREA_BLOCKS_MIN: u64 = 4;
const _: () = assert!(AREA_BLOCKS_MIN > merge_plan::BUFFERS_MIN as u64, "the smallest area holds a merge");

/// A budget too small to be divided among sort servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLittle {
    /// Smallest sort area of a server.
    pub area: Bytes,
    /// Smallest budget that gives each server that area and its write buffers.
    pub budget: Bytes,
}

/// Returns the sort area of each of `servers` that share a budget equally, in whole blocks. Write
/// buffers on top of the areas come out of the budget, because the servers take them too.
///
/// # Errors
/// If an area would be smaller than `sort_area_size` may be, or than a merge needs.
pub fn area_of_share(settings: &Settings, budget: Bytes, servers: u64) -> Result<Bytes, TooLittle> {
    let block = settings.block_size().bytes() as u64;
    let least = match Setting::SortAreaSize.row().domain {
        Domain::Size(least, _) => least.max(AREA_BLOCKS_MIN * block).next_multiple_of(block),
        _ => AREA_BLOCKS_MIN * block,
    };
    let buffers = buffers_on_top(settings).0;
    let area = (budget.0 / servers).saturating_sub(buffers) / block * block;
    if area < least {
        let budget = (least + buffers).saturating_mul(servers);
        return Err(TooLittle { area: Bytes(least), budget: Bytes(budget) });
    }
    Ok(Bytes(area))
}

/// Returns the memory of a server's write buffers that is not part of its sort area.
pub fn buffers_on_top(settings: &Settings) -> Bytes {
    let sort = &settings.sort;
    match sort.sort_direct_writes {
        Some(true) => Bytes(sort.sort_write_buffers * sort.sort_write_buffer_size.0),
        _ => Bytes(0),
    }
}

/// The plan of a sort, the same for all its servers.
#[derive(Debug)]
pub struct SortPlan {
    /// Memory for the area, later for the merge, per server.
    pub area: Bytes,
    /// True if servers write their runs themselves, past the buffer cache.
    pub direct_writes: bool,
    /// Rule that decided the write path, as the report states it.
    pub direct_writes_reason: String,
    /// Bytes of a write buffer, whole blocks.
    pub write_buffer_bytes: usize,
    /// Number of write buffers of a server.
    pub write_buffer_count: usize,
    /// Most blocks of a read request.
    pub chunk_blocks_max: u32,
    /// Expected size of a record.
    pub record: RecordSize,
    /// Number of strips of the area; each becomes a run of its own when room is needed.
    pub strips: usize,
    block_bytes: u64,
    read_fac: Mutex<ReadFac>,
    /// True once a merge plan has used `read_fac`.
    read_fac_used: AtomicBool,
}

#[derive(Debug, Clone)]
enum ReadFac {
    Given(u64),
    /// Read from the instance, or measured, when a merge plan first needs it.
    Unmeasured,
    Measured {
        fac: f64,
        reads: MergeReads,
    },
}

/// Sizes of the temporary tablespace that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TempSizes {
    /// Size of a block of run files.
    pub block: BlockSize,
    /// Blocks of an extent; a request does not cross its end.
    pub extent: BlockCount,
}

impl TempSizes {
    /// Returns the sizes that a database made with these settings has.
    pub fn of_new(settings: &Settings) -> TempSizes {
        let block = settings.block_size();
        TempSizes { block, extent: block.blocks_in(settings.extent_bytes()) }
    }
}

impl SortPlan {
    /// Computes the plan of a sort in this instance.
    ///
    /// # Errors
    /// If [`SortPlan::of_settings`] refuses the settings.
    pub fn new(instance: &Instance, record: RecordSize, rows_expected: u64) -> Result<SortPlan, EngineError> {
        let tablespace = instance.tablespace(Purpose::Temp);
        let temp = TempSizes { block: tablespace.block_size, extent: tablespace.extent_blocks };
        SortPlan::of_settings(&instance.settings, temp, record, rows_expected)
    }

    /// Computes the plan from the settings, without a database.
    ///
    /// # Errors
    /// If the sort area holds too few blocks for a merge, or a write buffer a part of a block.
    pub fn of_settings(
        settings: &Settings,
        temp: TempSizes,
        record: RecordSize,
        rows_expected: u64,
    ) -> Result<SortPlan, EngineError> {
        let area = settings.sort.sort_area_size.0;
        let block_bytes = temp.block.bytes() as u64;
        if area < AREA_BLOCKS_MIN * block_bytes {
            return Err(EngineError::Contradiction {
                first: format!("sort_area_size={}", Bytes(area).as_setting()),
                second: format!("db_block_size={}", temp.block),
                why: format!(
                    "a merge needs {AREA_BLOCKS_MIN} blocks; set sort_area_size to at least {}",
                    Bytes(AREA_BLOCKS_MIN * block_bytes).as_setting()
                ),
            });
        }
        let count = settings.sort.sort_write_buffers;
        let size = settings.sort.sort_write_buffer_size.0;
        if !size.is_multiple_of(block_bytes) {
            return Err(EngineError::Contradiction {
                first: format!("sort_write_buffer_size={}", Bytes(size).as_setting()),
                second: format!("db_block_size={}", temp.block),
                why: format!(
                    "a write buffer holds whole blocks; set a multiple of {}",
                    Bytes(block_bytes).as_setting()
                ),
            });
        }
        let buffers = write_buffers(settings.sort.sort_direct_writes, area, count, size, temp.block);
        let chunk_blocks_max = settings.io.db_file_multiblock_read_count;
        let read_fac = settings.sort.sort_read_fac;
        let mut plan = SortPlan {
            area: Bytes(buffers.area),
            direct_writes: buffers.direct,
            direct_writes_reason: buffers.reason,
            write_buffer_bytes: (buffers.size as usize).min(temp.extent.bytes(temp.block) as usize),
            write_buffer_count: buffers.count as usize,
            chunk_blocks_max: chunk_blocks_max.min(temp.extent.0),
            record,
            strips: 1,
            block_bytes,
            read_fac: Mutex::new(read_fac.map_or(ReadFac::Unmeasured, ReadFac::Given)),
            read_fac_used: AtomicBool::new(false),
        };
        plan.strips = plan.choose_strips(rows_expected);
        let buffer_bytes = plan.write_buffer_bytes as u64;
        assert!(buffer_bytes >= block_bytes, "a write buffer holds a block");
        assert!(buffer_bytes.is_multiple_of(block_bytes), "a write buffer holds whole blocks");
        assert!(plan.area.0 / plan.strips as u64 >= block_bytes, "{} strips in {}", plan.strips, plan.area);
        Ok(plan)
    }

    /// Returns the largest number of strips that have a worthwhile size and leave few enough runs:
    /// one merge must take them all, with requests at the device's full rate.
    fn choose_strips(&self, rows_expected: u64) -> usize {
        // A tenth more, because key ranges from a sample are not exactly equal.
        let rows = rows_expected + rows_expected / 10;
        let area = self.area.0 as usize;
        let most = (area / STRIP_BYTES_TARGET).max(STRIPS_MIN).min(area / STRIP_BYTES_MIN);
        let most = most.clamp(1, STRIPS_MAX.max(area / STRIP_BYTES_MAX));
        let runs = |strips: usize| rows * self.record.bytes as u64 / (area / strips) as u64 + 1;
        let fits = |strips: &usize| self.one_pass(runs(*strips) as usize, self.area).is_some();
        (1..=most).rev().find(fits).unwrap_or(1)
    }

    /// Returns the shape of one merge of all `runs` in `memory`, if there is one with requests
    /// at the device's full rate.
    pub fn one_pass(&self, runs: usize, memory: Bytes) -> Option<MergeShape> {
        merge_plan::fits_one_pass(
            runs,
            self.memory_blocks(memory),
            self.block_bytes as usize,
            self.chunk_blocks_max,
        )
    }

    /// Returns the bytes of a block of the temporary tablespace.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Returns the number of blocks that this memory holds.
    pub fn memory_blocks(&self, memory: Bytes) -> u32 {
        (memory.0 / self.block_bytes) as u32
    }

    /// Returns the memory of a strip, and the part of it that records fill: the size of
    /// its run. For text both are only planned values, because it also has a batch and
    /// is packed in its strips.
    pub fn strip(&self) -> (Bytes, Bytes) {
        let memory = self.area.0 / self.strips as u64;
        (Bytes(memory), Bytes(memory / self.record.bytes as u64 * self.record.bytes as u64))
    }

    /// Returns the memory of the write buffers of a server.
    pub fn write_buffer_memory(&self) -> Bytes {
        Bytes((self.write_buffer_bytes * self.write_buffer_count) as u64)
    }

    /// Returns the costs of a merge. Measures the device now if `sort_read_fac` is not set and
    /// the instance has no measurement. A given ratio has no rate, so an intermediate pass then
    /// counts as the write only.
    ///
    /// # Errors
    /// If the device cannot be read.
    pub fn merge_cost(&self, instance: &Instance, session: &Session) -> Result<MergeCost, EngineError> {
        self.read_fac_used.store(true, Relaxed);
        let mut read_fac = locked(&self.read_fac);
        if let ReadFac::Unmeasured = *read_fac {
            *read_fac = self.measure(instance, session)?;
        }
        Ok(match &*read_fac {
            ReadFac::Given(fac) => MergeCost { read_fac: *fac as f64, extra_pass: 1.0 },
            ReadFac::Measured { fac, reads } => {
                let merging = self.block_bytes as f64 / self.record.bytes as f64 * MERGE_ROW_SECONDS;
                let transfer = self.block_bytes as f64 / reads.line.bytes_per_second;
                MergeCost { read_fac: *fac, extra_pass: 1.0 + merging / transfer }
            }
            ReadFac::Unmeasured => unreachable!("measured above"),
        })
    }

    /// Measures the read cost before a sort needs it, so that no timed sort pays for
    /// it. The settings decide which sorts need it, so the measurement would look like
    /// the effect of a setting.
    ///
    /// # Errors
    /// If the device cannot be read.
    pub fn learn_read_cost(&self, instance: &Instance, session: &Session) -> Result<(), EngineError> {
        if instance.settings.sort.sort_read_fac.is_none() {
            let reads = probe::merge_reads(instance, session, self.merge_depth(instance))?;
            *locked(&instance.merge_reads) = Some(reads);
        }
        Ok(())
    }

    /// Returns the instance's measurement, or else measures now.
    fn measure(&self, instance: &Instance, session: &Session) -> Result<ReadFac, EngineError> {
        let depth = self.merge_depth(instance);
        let mut known = locked(&instance.merge_reads);
        let reads = match known.filter(|reads| reads.depth == depth) {
            Some(reads) => reads,
            None => {
                let begin = now();
                let reads = probe::merge_reads(instance, session, depth)?;
                instance.recorder.phase(Phase::ReadCost, begin, 0);
                *known.insert(reads)
            }
        };
        let block_bytes = instance.tablespace(Purpose::Temp).block_size.bytes() as u64;
        Ok(ReadFac::Measured { fac: reads.line.read_fac_of(block_bytes, reads.block_seconds), reads })
    }

    /// Returns the reads that a merge of single blocks has in flight.
    fn merge_depth(&self, instance: &Instance) -> usize {
        let method = &instance.access.method;
        match method.kind() {
            MethodKind::Sync => 1,
            _ => merge_plan::read_ahead(self.memory_blocks(self.area)).min(method.queue_depth()),
        }
    }

    /// Returns the memory of a sort by `degree` servers, by purpose, in bytes.
    pub fn memory(&self, settings: &Settings, degree: u64) -> Vec<(String, Bytes)> {
        let all = |bytes: Bytes| Bytes(bytes.0 * degree);
        let buffers = match self.direct_writes {
            true => ("sort write buffers".to_string(), all(self.write_buffer_memory())),
            false => (SHARED_MEMORY.to_string(), settings.cache.db_cache_size),
        };
        vec![("sort areas".to_string(), all(self.area)), buffers]
    }

    /// Returns the ratio used and its source, for the report; 0 if no merge plan needed it.
    pub fn read_fac_used(&self) -> (u64, String) {
        let why_not = "one pass takes all runs with requests at the device's full rate";
        let used = self.read_fac_used.load(Relaxed);
        match &*locked(&self.read_fac) {
            ReadFac::Given(fac) if used => (*fac, "given".to_string()),
            ReadFac::Given(fac) => (0, format!("{fac} was given and not needed: {why_not}")),
            ReadFac::Unmeasured => (0, format!("not needed: {why_not}")),
            ReadFac::Measured { fac, reads: MergeReads { line, depth, .. } } => (
                fac.round() as u64,
                format!(
                    "measured with {depth} reads in flight; one at a time {} to start a read, then {}",
                    Nanos((line.start_seconds * 1e9) as u64),
                    Rate(line.bytes_per_second)
                ),
            ),
        }
    }
}

struct WriteBuffers {
    area: u64,
    direct: bool,
    reason: String,
    count: u64,
    size: u64,
}

/// Decides the write path by `sort_direct_writes`. `true` adds the write buffers to the sort area.
/// `auto` takes them out of it, and shrinks them to a tenth of it (the one-tenth rule of Oracle
/// 7.3). If even the smallest buffers are more than a tenth, runs go through the buffer cache.
fn write_buffers(
    asked: Option<bool>,
    area: u64,
    count: u64,
    size: u64,
    block_size: BlockSize,
) -> WriteBuffers {
    let block_bytes = block_size.bytes() as u64;
    let conventional =
        |reason: String| WriteBuffers { area, direct: false, reason, count: 2, size: block_bytes };
    match asked {
        Some(true) => WriteBuffers {
            area,
            direct: true,
            reason: "true: write buffers on top of the sort area".to_string(),
            count,
            size,
        },
        Some(false) => conventional("false: runs go through the buffer cache".to_string()),
        None if AUTO_BUFFERS_MIN > area / 10 => conventional(format!(
            "auto: the smallest write buffers, {}, are more than a tenth of the sort area, {}",
            Bytes(AUTO_BUFFERS_MIN).as_setting(),
            Bytes(area).as_setting()
        )),
        None => {
            let least = (32 * Bytes::K).max(block_bytes);
            let (mut count, mut size) = (count, size);
            while count * size > area / 10 && size > least {
                size = (size / 2).next_multiple_of(block_bytes).max(least);
            }
            count = count.min((area / 10 / size).max(2));
            assert!(count * size < area, "write buffers of {count} x {size} in {area} bytes");
            WriteBuffers {
                area: area - count * size,
                direct: true,
                reason: format!("auto: {count} x {} out of the sort area", Bytes(size).as_setting()),
                count,
                size,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockSize = BlockSize::ALL[2];

    #[test]
    fn auto_follows_the_one_tenth_rule() {
        let decide = |area| write_buffers(None, area, 4, 256 * Bytes::K, BLOCK);
        assert!(!decide(639 * Bytes::K).direct);
        let smallest = decide(640 * Bytes::K);
        assert_eq!((smallest.direct, smallest.count, smallest.size), (true, 2, 32 * Bytes::K));
        assert_eq!(smallest.area, 576 * Bytes::K);
        let large = decide(32 * Bytes::M);
        assert_eq!((large.count, large.size), (4, 256 * Bytes::K));
        assert_eq!(large.area, 31 * Bytes::M);
        for area in [Bytes::M, 2 * Bytes::M, 4 * Bytes::M, 7 * Bytes::M] {
            let taken = decide(area);
            assert!(taken.count * taken.size <= area / 10, "{area}");
        }
    }

    #[test]
    fn a_budget_is_shared_in_whole_blocks_or_refused_with_the_least_that_does() {
        let share = |budget: u64, servers, set: &[(&str, &str)]| {
            let mut settings = Settings::default();
            set.iter().for_each(|(name, value)| settings.set(name, value, "test").expect("in range"));
            area_of_share(&settings, Bytes(budget), servers)
        };
        let direct = ("sort_direct_writes", "true");
        assert_eq!(share(16 * Bytes::M, 8, &[]), Ok(Bytes(2 * Bytes::M)));
        assert_eq!(share(16 * Bytes::M, 8, &[direct]), Ok(Bytes(Bytes::M)), "4 buffers of 256K on top");
        assert_eq!(share(Bytes::M, 3, &[]), Ok(Bytes(336 * Bytes::K)));
        for set in [&[][..], &[direct], &[direct, ("db_block_size", "32K")]] {
            let TooLittle { area, budget } = share(Bytes::K, 5, set).expect_err("too little");
            assert_eq!(share(budget.0, 5, set), Ok(area));
            assert_eq!(share(budget.0 - 1, 5, set), Err(TooLittle { area, budget }));
        }
    }

    #[test]
    fn true_adds_the_buffers_and_false_needs_none() {
        let on = write_buffers(Some(true), Bytes::M, 8, 64 * Bytes::K, BLOCK);
        assert_eq!((on.direct, on.area, on.count), (true, Bytes::M, 8));
        assert!(!write_buffers(Some(false), 1 << 30, 8, 64 * Bytes::K, BLOCK).direct);
    }
}
