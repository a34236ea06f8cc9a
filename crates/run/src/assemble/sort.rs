//! Summary of the sort.

use super::Evidence;
use plumb_engine::Setting;
use plumb_events::{SortServerSummary, Statistic};
use plumb_record::Sort;

pub(super) fn sort(seen: &Evidence) -> Option<Sort> {
    let outcome = seen.measured.outcome.sort.as_ref()?;
    let servers = &outcome.servers;
    let total = |part: fn(&SortServerSummary) -> u64| servers.iter().map(part).sum::<u64>();
    let most = |part: fn(&SortServerSummary) -> u64| servers.iter().map(part).max().unwrap_or(0);
    let spilled = |server: &&SortServerSummary| !server.optimal;
    let passes = |least: fn(u64) -> bool| {
        servers.iter().filter(spilled).filter(|server| least(server.merge_passes)).count() as u64
    };
    Some(Sort {
        optimal: servers.iter().filter(|server| server.optimal).count() as u64,
        one_pass: passes(|passes| passes <= 1),
        multi_pass: passes(|passes| passes > 1),
        rows: total(|server| server.row_count),
        runs: total(|server| server.run_count),
        run_bytes: first_run_bytes(seen),
        merge_passes: most(|server| server.merge_passes),
        merge_width: most(|server| server.merge_width),
        intermediate_merges: total(|server| server.intermediate_merges),
        sort_read_fac: outcome.sort_read_fac,
        sort_read_fac_source: outcome.sort_read_fac_source.clone(),
        sort_direct_writes: seen.inside.settings.word(Setting::SortDirectWrites).to_string(),
        direct_writes_used: outcome.direct_writes,
        direct_writes_reason: outcome.direct_writes_reason.clone(),
        servers: servers.clone(),
        sorters: seen.measured.outcome.sorters.clone(),
    })
}

/// Bytes of the runs made from the input.
pub(super) fn first_run_bytes(seen: &Evidence) -> u64 {
    let written = seen.measured.outcome.servers().iter().map(|server| server.run_bytes).sum();
    first_runs_share(seen, written)
}

/// Returns the initial runs' part of a figure for all runs. A merge does not change the length of
/// records, so the share of the rows is the share of the bytes.
pub(super) fn first_runs_share(seen: &Evidence, all: u64) -> u64 {
    let spilled = seen.measured.outcome.servers().iter().filter(|server| !server.optimal);
    let rows: u64 = spilled.map(|server| server.row_count - server.memory_rows).sum();
    let rows_written = seen.measured.period.statistic(Statistic::SortRunRows);
    if rows_written == 0 {
        return all;
    }
    let share = u128::from(all) * u128::from(rows) / u128::from(rows_written);
    u64::try_from(share).unwrap_or(u64::MAX).min(all)
}
