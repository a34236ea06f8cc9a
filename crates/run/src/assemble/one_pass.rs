//! Computes the smallest sort area whose runs a single merge can take.
//!
//! This build shows how many runs an area makes. A server with intermediate merges wrote each full
//! strip as a run, usually the whole area. So a strip holds at least its rows divided by its runs,
//! and a larger area proportionally more. The merge planner decides if one merge takes the runs.
//! The area is found by doubling, then by bisection.
//!
//! Limits: the last run counts as full, and a few more rows are assumed than there were, so the
//! result is slightly above the minimum. A measured read cost will be measured again and is not
//! used. Requests must then come close to the device's full rate.

use super::Evidence;
use super::receipts::given_cost;
use plumb_engine::Setting;
use plumb_engine::settings::Domain;
use plumb_engine::sort::merge_plan;
use plumb_engine::sort::plan::SortPlan;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::SortServerSummary;
use plumb_units::{BlockSize, Bytes};

/// Step between areas; larger areas have [`STEP_LARGE`].
const STEP: u64 = 64 * Bytes::K;
const STEP_LARGE: u64 = Bytes::M;
/// Area from which on the larger steps apply.
const LARGE: u64 = 16 * Bytes::M;

/// Rows sorted by a server, and the rules for merging them.
#[derive(Debug, Clone, Copy)]
struct Server {
    rows: u64,
    /// Bytes of the area that a row takes.
    row_bytes: f64,
    block: BlockSize,
    chunk_blocks_max: u32,
    /// Read cost, if it is set, and so will not change.
    read_fac: Option<f64>,
    /// Share of `sort_area_size` that remains after the write buffers.
    usable: f64,
}

impl Server {
    fn of(seen: &Evidence, plan: &SortPlan, server: &SortServerSummary) -> Server {
        let settings = &seen.inside.settings;
        let held = server.row_count / server.run_count.max(1);
        let from_area = settings.word(Setting::SortDirectWrites) == "auto";
        Server {
            rows: server.row_count + server.row_count / 50,
            row_bytes: server.strip.0.0 as f64 / held.max(1) as f64,
            block: seen.inside.tablespace(Purpose::Temp).block_size,
            chunk_blocks_max: plan.chunk_blocks_max,
            read_fac: settings.optional_number(Setting::SortReadFac).map(|fac| fac as f64),
            // With auto, write buffers take at most a tenth of the area.
            usable: if from_area { 0.9 } else { 1.0 },
        }
    }

    /// True if one merge takes all runs that this area makes.
    fn fits(&self, area: u64) -> bool {
        let usable = area as f64 * self.usable;
        let runs = (self.rows as f64 * self.row_bytes / usable).ceil() as usize;
        let memory_blocks = self.block.blocks_in(usable as u64).0;
        if runs <= 1 {
            return true;
        }
        if (memory_blocks as usize) < merge_plan::BUFFERS_MIN {
            return false;
        }
        if merge_plan::fits_one_pass(runs, memory_blocks, self.block.bytes(), self.chunk_blocks_max).is_some()
        {
            return true;
        }
        self.read_fac.is_some_and(|read_fac| {
            let shape = merge_plan::plan(runs, memory_blocks, self.chunk_blocks_max, given_cost(read_fac));
            merge_plan::passes(runs, shape.fan_in) == 1
        })
    }
}

/// Returns the smallest `sort_area_size` without intermediate merges; `None` if
/// it exceeds the setting's range.
pub(super) fn area(seen: &Evidence) -> Option<Bytes> {
    let Domain::Size(_, most) = Setting::SortAreaSize.row().domain else { return None };
    let plan = seen.inside.plan.as_deref()?;
    let merged = seen.measured.outcome.servers().iter().filter(|server| server.intermediate_merges > 0);
    let servers: Vec<Server> = merged.map(|server| Server::of(seen, plan, server)).collect();
    let asked = seen.inside.settings.number(Setting::SortAreaSize);
    smallest_area(asked, most, |area| servers.iter().all(|server| server.fits(area))).map(Bytes)
}

/// Returns the smallest multiple of the step above `least` that fits; `None` if none up to `most`
/// does.
pub fn smallest_area(least: u64, most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (least, least.next_multiple_of(STEP));
    while high <= low || !fits(high) {
        low = high.max(low);
        high = (low * 2).next_multiple_of(if low * 2 > LARGE { STEP_LARGE } else { STEP });
        if high > most {
            return None;
        }
    }
    // `high` always fits; `low` is too small or was not tried.
    let step = if high > LARGE { STEP_LARGE } else { STEP };
    while high - low > step {
        let middle = (low + (high - low) / 2).next_multiple_of(step);
        if middle >= high {
            break;
        }
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_area_is_found_to_a_step() {
        for wanted in [65 * Bytes::K, 128 * Bytes::K, 700 * Bytes::K, 5 * Bytes::M, 999 * Bytes::M] {
            let found =
                smallest_area(64 * Bytes::K, 1024 * Bytes::G, |area| area >= wanted).expect("in range");
            let step = if found > LARGE { STEP_LARGE } else { STEP };
            assert!(found >= wanted && found - wanted <= step, "{wanted}: {found}");
            assert!(found.is_multiple_of(STEP));
        }
        assert_eq!(smallest_area(64 * Bytes::K, Bytes::M, |_| false), None);
    }

    #[test]
    fn more_rows_ask_for_a_larger_area() {
        let server = |rows| Server {
            rows,
            row_bytes: 16.0,
            block: BlockSize::ALL[2],
            chunk_blocks_max: 64,
            read_fac: None,
            usable: 0.9,
        };
        let area = |rows| {
            smallest_area(64 * Bytes::K, 1024 * Bytes::G, |area| server(rows).fits(area)).expect("in range")
        };
        assert!(area(100_000) < area(1_000_000));
        assert!(area(1_000_000) < area(100_000_000));
        // 100 million rows are 1.6 GB; one merge needs the root of that times a request.
        assert!((10 * Bytes::M..64 * Bytes::M).contains(&area(100_000_000)));
    }
}
