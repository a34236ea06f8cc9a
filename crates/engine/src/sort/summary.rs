//! Summary of a sort, for reports.

use crate::sort::SortOutcome;
use crate::sort::plan::{SHARED_MEMORY, SortPlan};
use plumb_events::SortServerSummary;
use plumb_units::Bytes;

/// Returns the summary of a server whose records passed a [`Sorter`](crate::sort::Sorter).
pub(crate) fn of_sorter(
    name: String,
    area: Bytes,
    plan: &SortPlan,
    outcome: &SortOutcome,
) -> SortServerSummary {
    SortServerSummary {
        name,
        area,
        area_mapped: Bytes(outcome.area.bytes as u64),
        area_mapping: outcome.area.time,
        strip: plan.strip(),
        memory_rows: outcome.memory_rows,
        row_count: outcome.row_count,
        run_count: outcome.run_count,
        run_bytes: outcome.run_bytes,
        intermediate_merges: outcome.intermediate_merges,
        merge_passes: outcome.merge_passes,
        merge_width: outcome.merge_width,
        optimal: outcome.run_count == 0,
    }
}

/// Division of a sort's work among its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divided {
    /// Each server sorts a range of keys, which a table queue brings.
    ByKey,
    /// Each server sorts the records that it reads, and the merge of all runs is divided.
    InMerge,
}

/// Work and memory of the servers of a sort.
#[derive(Debug, Clone)]
pub struct SortSummary {
    /// Division of the work among the servers.
    pub divided: Divided,
    /// One summary for each sort server.
    pub servers: Vec<SortServerSummary>,
    /// Read cost ratio used to plan merges; 0 if none was needed.
    pub sort_read_fac: u64,
    /// Source of the ratio: measured, with the figures, or given.
    pub sort_read_fac_source: String,
    /// True if servers wrote their runs themselves, past the buffer cache.
    pub direct_writes: bool,
    /// Rule that decided the write path, as the report states it.
    pub direct_writes_reason: String,
    /// Memory planned before the first row, by purpose.
    pub memory: Vec<(String, Bytes)>,
}

impl SortSummary {
    /// Adds a sort that ran at the same time with the same settings. Memory for the same purpose
    /// adds up, but for the buffer cache, which all sorts of an instance share.
    #[must_use]
    pub fn and(mut self, other: SortSummary) -> SortSummary {
        self.servers.extend(other.servers);
        if other.sort_read_fac > self.sort_read_fac {
            (self.sort_read_fac, self.sort_read_fac_source) =
                (other.sort_read_fac, other.sort_read_fac_source);
        }
        for (purpose, bytes) in other.memory {
            match self.memory.iter_mut().find(|(known, _)| *known == purpose) {
                Some(_) if purpose == SHARED_MEMORY => {}
                Some((_, sum)) => *sum += bytes,
                None => self.memory.push((purpose, bytes)),
            }
        }
        self
    }

    pub(crate) fn new(
        plan: &SortPlan,
        servers: Vec<SortServerSummary>,
        memory: Vec<(String, Bytes)>,
        divided: Divided,
    ) -> SortSummary {
        let (sort_read_fac, sort_read_fac_source) = plan.read_fac_used();
        SortSummary {
            divided,
            servers,
            sort_read_fac,
            sort_read_fac_source,
            direct_writes: plan.direct_writes,
            direct_writes_reason: plan.direct_writes_reason.clone(),
            memory,
        }
    }
}
