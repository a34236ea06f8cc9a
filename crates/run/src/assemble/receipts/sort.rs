//! Receipts of the sort: its memory, its path to the disk, its servers.

use super::super::Evidence;
use super::super::sort::{first_run_bytes, first_runs_share};
use super::{BEYOND_MEMORY, Ruling, beyond_memory, counted, scan};
use plumb_engine::Setting;
use plumb_engine::sort::merge_plan::{self, MergeCost, MergeShape};
use plumb_engine::sort::plan::SortPlan;
use plumb_engine::sort::summary::Divided;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{IoStream, Role, SortServerSummary, Statistic};
use plumb_units::{Bytes, RowCount};

/// Bytes of an area that may stay unused, by rounding to records and to equal strips.
const AREA_SLACK: u64 = 16 * Bytes::K;
/// Fewest requests whose mean size is judged.
const REQUESTS_MIN: u64 = 16;
/// Fewest rows from which on every server has a share.
const SHARED_ROWS_MIN: u64 = 100_000;
/// Reason why a setting of the spill has no effect.
const IN_MEMORY: &str = "the sort fitted in memory: this setting had no effect";

fn servers(seen: &Evidence) -> &[SortServerSummary] {
    seen.measured.outcome.servers()
}

/// Returns the division of work among servers; arbitrary without a sort.
fn divided(seen: &Evidence) -> Divided {
    seen.measured.outcome.sort.as_ref().map_or(Divided::ByKey, |sort| sort.divided)
}

fn in_memory(seen: &Evidence) -> bool {
    !spilled(seen)
}

/// True if a server wrote a run.
pub(super) fn spilled(seen: &Evidence) -> bool {
    servers(seen).iter().any(|server| server.run_count > 0)
}

/// Compares mapped areas and written runs with the setting.
pub(super) fn area(seen: &Evidence) -> Option<Ruling> {
    let plan = seen.inside.plan.as_deref()?;
    let asked = seen.inside.settings.number(Setting::SortAreaSize);
    if beyond_memory(asked) {
        return Some(Ruling::unknown(BEYOND_MEMORY));
    }
    let mapped = || servers(seen).iter().map(|server| server.area_mapped.0);
    let (least, most) = (mapped().min()?, mapped().max()?);
    // With auto, write buffers are part of the area; with true, they are added to it.
    let from_area = asked - plan.area.0;
    let memory =
        format!("areas of {} mapped and {} of write buffers out of them", Bytes(most), Bytes(from_area));
    let runs: u64 = servers(seen).iter().map(|server| server.run_count).sum();
    // Memory is mapped as records arrive: a sort in memory need not have mapped all.
    // A sort of a file needs two loads for its runs, and the rest only for its merge.
    let wanted = match divided(seen) {
        Divided::ByKey => asked - from_area,
        Divided::InMerge => servers(seen).iter().map(|server| server.strip.0.0).min()?,
    };
    let fits = most + from_area <= asked && (runs == 0 || least + AREA_SLACK >= wanted);
    let count = |kind| RowCount(seen.measured.period.statistic(kind));
    let sorts = format!(
        "sorts: {} in memory, {} on disk",
        count(Statistic::SortsMemory),
        count(Statistic::SortsDisk)
    );
    if runs == 0 {
        return Some(Ruling::that(fits, format!("{memory}; {sorts}")));
    }
    // Shared prefixes are neither kept in a strip nor written, so packed records make the largest
    // run and original records the smallest.
    let shared = seen.measured.period.statistic(Statistic::SortKeyBytesShared);
    let written = first_run_bytes(seen) / runs;
    let unpacked = written + first_runs_share(seen, shared) / runs;
    let strip = servers(seen).iter().map(|server| server.strip.0.0).max()?;
    let (largest, smallest) = (largest_run(strip, shared > 0), smallest_run(seen));
    let packed = if shared > 0 { format!(", {} unpacked", Bytes(unpacked)) } else { String::new() };
    let evidence = format!(
        "{memory}; {} of {} on average{packed}, where such an area makes runs of {} to {}, the smaller ones where one merge \
         takes them all; {sorts}",
        counted(runs, "run"),
        Bytes(written),
        Bytes(smallest),
        Bytes(largest),
    );
    Some(Ruling::that(fits && written <= largest && unpacked >= smallest, evidence))
}

/// Largest mean run of a working area: a strip with the headers of its blocks. A block of packed
/// records starts with a whole key, which may take half of it.
fn largest_run(strip: u64, packed: bool) -> u64 {
    let blocks = strip + strip / 16 + 64 * Bytes::K;
    if packed { 2 * blocks } else { blocks }
}

/// Smallest mean run of a working area: half the records of a strip. A strip closes early if
/// records are longer than in the sample, and each server's last run has the remaining rows.
fn smallest_run(seen: &Evidence) -> u64 {
    let runs: u64 = servers(seen).iter().map(|server| server.run_count).sum();
    let spilled = servers(seen).iter().filter(|server| server.run_count > 0);
    let strip = spilled.clone().map(|server| server.strip.1.0).min().unwrap_or(0);
    // Each server's last run may have any size.
    strip / 2 * runs.saturating_sub(spilled.count() as u64) / runs.max(1)
}

pub(super) fn direct_writes(seen: &Evidence) -> Option<Ruling> {
    if in_memory(seen) {
        return Some(Ruling::unknown(IN_MEMORY));
    }
    let period = &seen.measured.period;
    let direct = period.statistic(Statistic::PhysicalWritesDirectTemp);
    let cached = period.statistic(Statistic::PhysicalWritesFromCache);
    let batches = period.statistic(Statistic::DbwrBatches);
    let through = through_cache(seen);
    let outcome = seen.measured.outcome.sort.as_ref()?;
    let evidence = format!(
        "{} written by the sort itself, {} by DBWR in {}: {} of runs through the cache ({})",
        counted(direct, "run block"),
        RowCount(cached),
        counted(batches, "batch"),
        Bytes(through),
        outcome.direct_writes_reason
    );
    let asked = match seen.inside.settings.word(Setting::SortDirectWrites) {
        "true" => true,
        "false" => false,
        _ => outcome.direct_writes,
    };
    // Runs that fit the cache need not be written.
    Some(match asked {
        true => Ruling::that(direct > 0 && through == 0, evidence),
        false if direct == 0 && through == 0 => {
            Ruling::unknown(format!("{evidence}; the runs fitted the cache"))
        }
        false => Ruling::that(direct == 0, evidence),
    })
}

/// Bytes of sort runs that database writers wrote: those that went through the cache.
fn through_cache(seen: &Evidence) -> u64 {
    let writers = seen.measured.period.sessions.iter().filter(|it| it.role == Role::DatabaseWriter);
    writers.map(|session| session.streams[IoStream::TempWrites as usize].bytes).sum()
}

/// Judges the mean write of a run.
pub(super) fn write_buffer_size(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    if in_memory(seen) {
        return settings.is_explicit(Setting::SortWriteBufferSize).then(|| Ruling::unknown(IN_MEMORY));
    }
    let writes = seen.measured.period.stream(IoStream::TempWrites);
    let directly = seen.measured.outcome.sort.as_ref().is_some_and(|sort| sort.direct_writes);
    if !directly || writes.count == 0 {
        let explicit = settings.is_explicit(Setting::SortWriteBufferSize);
        return explicit
            .then(|| Ruling::unknown("runs went through the buffer cache: this setting had no effect"));
    }
    let plan = seen.inside.plan.as_deref()?;
    let asked = settings.number(Setting::SortWriteBufferSize);
    let planned = plan.write_buffer_bytes as u64;
    let mean = writes.bytes / writes.count;
    let evidence = format!("{} of runs of {} on average", counted(writes.count, "write"), Bytes(mean));
    let block = seen.inside.tablespace(Purpose::Temp).block_size.bytes() as u64;
    if planned != asked.next_multiple_of(block) {
        // auto has shrunk the buffers, or an extent is smaller.
        let why =
            format!("{evidence}; the buffers were made {}: {}", Bytes(planned), plan.direct_writes_reason);
        return settings.is_explicit(Setting::SortWriteBufferSize).then(|| Ruling::unknown(why));
    }
    // Writes end with their extent, and a server's last one with its runs.
    if writes.count < REQUESTS_MIN {
        return Some(Ruling::unknown(format!("{evidence}: too few to judge")));
    }
    Some(Ruling::that(mean <= planned && mean * 2 >= planned, evidence))
}

/// Judges the read cost that merges were planned with, by its consequences: width of the merges,
/// number of passes, and size of reads.
pub(super) fn read_fac(seen: &Evidence) -> Option<Ruling> {
    let outcome = seen.measured.outcome.sort.as_ref()?;
    let asked = seen.inside.settings.optional_number(Setting::SortReadFac)?;
    if in_memory(seen) {
        return Some(Ruling::unknown(IN_MEMORY));
    }
    if outcome.sort_read_fac == 0 {
        let why = format!("no merge plan depended on it: {}", outcome.sort_read_fac_source);
        return Some(Ruling::unknown(why));
    }
    if divided(seen) == Divided::InMerge {
        return Some(Ruling::unknown("the merge of a file is divided: no server's runs are its own"));
    }
    let plan = seen.inside.plan.as_deref()?;
    let merges: Vec<Merge> =
        servers(seen).iter().filter_map(|server| Merge::that_depended(seen, plan, server, asked)).collect();
    let shown: Vec<String> = merges.iter().map(Merge::shown).collect();
    let agrees = !merges.is_empty() && merges.iter().all(Merge::agrees);
    Some(Ruling::that(agrees, shown.join("; ")))
}

/// Costs of a merge with a given read cost: a further pass costs its write alone.
pub(in crate::assemble) const fn given_cost(read_fac: f64) -> MergeCost {
    MergeCost { read_fac, extra_pass: 1.0 }
}

/// Merges of a server, planned and done.
struct Merge {
    server: String,
    shape: MergeShape,
    chunk: Bytes,
    passes: u64,
    width_done: u64,
    passes_done: u64,
    /// Number of reads and their mean size.
    reads: (u64, Bytes),
}

impl Merge {
    /// Returns the merges of a server if its plan depended on the read cost.
    fn that_depended(
        seen: &Evidence,
        plan: &SortPlan,
        server: &SortServerSummary,
        fac: u64,
    ) -> Option<Merge> {
        let block = seen.inside.tablespace(Purpose::Temp).block_size;
        let memory = block.blocks_in(plan.area.0).0;
        let (runs, most) = (server.run_count as usize, plan.chunk_blocks_max);
        if runs == 0 || merge_plan::fits_one_pass(runs, memory, block.bytes(), most).is_some() {
            return None;
        }
        let shape = merge_plan::plan(runs, memory, most, given_cost(fac as f64));
        let session = seen.measured.period.sessions.iter().find(|session| session.name == server.name)?;
        let reads = &session.streams[IoStream::TempReads as usize];
        Some(Merge {
            server: server.name.clone(),
            shape,
            chunk: Bytes(u64::from(shape.chunk_blocks) * block.bytes() as u64),
            passes: u64::from(merge_plan::passes(runs, shape.fan_in)),
            width_done: server.merge_width,
            passes_done: server.merge_passes,
            reads: (reads.count, Bytes(reads.bytes.checked_div(reads.count).unwrap_or(0))),
        })
    }

    /// Requests end with a run and with an extent, so their mean is smaller, but hardly by half.
    fn agrees(&self) -> bool {
        let (count, mean) = self.reads;
        let size = mean <= self.chunk && (count < REQUESTS_MIN || mean.0 * 2 >= self.chunk.0);
        size && self.width_done <= self.shape.fan_in as u64 && self.passes_done == self.passes
    }

    fn shown(&self) -> String {
        format!(
            "{}: planned {} wide in {} with reads of {}, done {} wide in {} with {} of {} on average",
            self.server,
            self.shape.fan_in,
            counted(self.passes, "pass"),
            self.chunk,
            self.width_done,
            counted(self.passes_done, "pass"),
            counted(self.reads.0, "read"),
            self.reads.1
        )
    }
}

pub(super) fn degree(seen: &Evidence) -> Option<Ruling> {
    if seen.measured.outcome.sort.is_none() {
        return scan::degree(seen);
    }
    let builds = seen.measured.outcome.sorters.len().max(1);
    let asked = seen.inside.degree * builds;
    let count = |role| seen.measured.period.sessions.iter().filter(|session| session.role == role).count();
    let [scan, sort, merge] = [Role::ScanServer, Role::SortServer, Role::MergeServer].map(count);
    let largest = servers(seen).iter().map(|server| server.row_count).max().unwrap_or(0);
    let rows: u64 = servers(seen).iter().map(|server| server.row_count).sum();
    let share = largest as f64 * 100.0 / rows.max(1) as f64;
    if divided(seen) == Divided::InMerge {
        let evidence = format!(
            "{} and {} lived; the busiest made runs of {share:.0}% of the rows",
            counted(sort as u64, "sort server"),
            counted(merge as u64, "merge server")
        );
        // Few records make fewer shares, and intermediate merges have servers of their own.
        let all = sort == asked && (merge >= asked || rows < SHARED_ROWS_MIN);
        return Some(Ruling::that(all, evidence).counted(sort as u64));
    }
    let evidence = format!(
        "{} and {} lived; the busiest sorted {share:.0}% of the rows",
        counted(scan as u64, "scan server"),
        counted(sort as u64, "sort server")
    );
    let judged = match seen.inside.degree {
        1 => Ruling::that(scan + sort == 0, format!("one serial session; {evidence}")),
        _ => Ruling::that(scan == asked && sort == asked, evidence),
    };
    Some(judged.counted(sort as u64))
}
