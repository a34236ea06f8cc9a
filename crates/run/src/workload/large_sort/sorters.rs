//! Many sorters at once: index builds of the same size, each on a table and on a thread of its own,
//! in one instance.
//!
//! `sort-memory` is the budget of them all. It is shared out before the first row: equal parts for
//! all sort servers of all builds, because the builds are alike. The write buffers of
//! `sort_direct_writes=true` come out of it too, so that no build takes memory that another one
//! counts on. A build that gets less sorts with more runs, and perhaps more passes; it never fails.
//!
//! Why not memory that moves from a finished build to the others: the parts of a build would depend
//! on the speed of its neighbours, and no two runs would do the same work.
//!
//! Limits: buffers of scans, of table queues and of index writers are not in the budget. They are
//! declared with the memory of the run.

use super::spec;
use crate::evidence::{self, Done, Measured};
use crate::workload::Place;
use plumb_engine::index::build::{BuildOutcome, create_index_among};
use plumb_engine::sort::plan::{TooLittle, area_of_share, buffers_on_top};
use plumb_engine::{EngineError, Setting, Settings};
use plumb_events::{SortServerSummary, clock};
use plumb_host::limits;
use plumb_io::IoError;
use plumb_record::SortBuild;
use plumb_units::{Bytes, Nanos, total_of};
use plumb_workload::Work;
use plumb_workload::specification::LARGE_SORT;
use std::thread;

/// Returns the number of builds.
pub(super) fn count(work: &Work) -> u64 {
    work.value("sorters").unwrap_or(1)
}

/// Returns the table of a build.
pub(super) fn table(number: u64) -> String {
    match number {
        0 => LARGE_SORT.data.to_string(),
        number => format!("{}_{}", LARGE_SORT.data, number + 1),
    }
}

/// Returns the index that a build makes.
pub(super) fn index(number: u64) -> String {
    table(number) + "_STORE_PROD"
}

/// Sets the sort area of each server to its part of `sort-memory`, if that is given. Fails if the
/// parts are too small, or the areas of all servers are more than the machine has.
pub(super) fn share_out(work: &Work, settings: &mut Settings) -> Result<(), EngineError> {
    let degree = settings.degree() as u64;
    let servers = count(work).saturating_mul(degree);
    let of_all = || format!("{servers} sort servers ({degree} of {} builds)", count(work));
    let refuse =
        |first: String, second: String, why: String| Err(EngineError::Contradiction { first, second, why });
    if let Some(budget) = work.value("sort-memory") {
        let first = format!("sort-memory={}", Bytes(budget).as_setting());
        if settings.is_explicit(Setting::SortAreaSize) {
            let second =
                format!("sort_area_size={}", Bytes(settings.number(Setting::SortAreaSize)).as_setting());
            return refuse(first, second, "both decide the memory of a sort server; give one of them".into());
        }
        match area_of_share(settings, Bytes(budget), servers) {
            Ok(area) => {
                settings.set(Setting::SortAreaSize.row().name, &area.as_setting(), "sort-memory")?;
            }
            Err(TooLittle { area, budget }) => {
                let why = format!(
                    "a server needs {} besides its write buffers; give {} or more, or fewer sorters",
                    area.as_setting(),
                    budget.as_setting()
                );
                return refuse(first, of_all(), why);
            }
        }
    }
    let area = settings.number(Setting::SortAreaSize);
    let all = Bytes((area + buffers_on_top(settings).0).saturating_mul(servers));
    match limits::memory() {
        Some(memory) if count(work) > 1 && all > memory.total => refuse(
            format!("sort_area_size={}", Bytes(area).as_setting()),
            of_all(),
            format!("together they may take {all}, and there are {}; set a smaller area", memory.total),
        ),
        _ => Ok(()),
    }
}

/// Builds all indexes at once, between two readings.
pub(super) fn build(place: &Place<'_>, count: u64) -> Result<Measured, EngineError> {
    let instance = place.instance;
    evidence::around(instance, place.devices, || {
        let one = |number: u64| -> Result<(BuildOutcome, Nanos), EngineError> {
            let begin = clock::now();
            let first_server = number as usize * instance.parallel_degree();
            let built = create_index_among(instance, &spec(number), first_server)?;
            Ok((built, clock::now().saturating_sub(begin)))
        };
        let built = thread::scope(|scope| {
            let start = |number: u64| {
                let name = format!("sorter {}", number + 1);
                let thread = thread::Builder::new().name(name.clone());
                let started = thread.spawn_scoped(scope, move || one(number));
                started.map_err(|source| EngineError::from(IoError::thread(name, source)))
            };
            let started: Vec<_> = (0..count).map(start).collect();
            let join = |thread: Result<thread::ScopedJoinHandle<'_, _>, EngineError>| match thread?.join() {
                Ok(built) => built,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            // All are joined, so that the error of one does not hide a panic of another.
            let built: Vec<Result<(BuildOutcome, Nanos), EngineError>> =
                started.into_iter().map(join).collect();
            built.into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        Ok((done(built), Vec::new()))
    })
}

/// Summarises builds of one instance.
fn done(built: Vec<(BuildOutcome, Nanos)>) -> Done {
    let sorters = built.iter().map(|(built, elapsed)| sorter(built, *elapsed)).collect();
    let index = built.first().map(|(built, _)| built.index.name.clone());
    let sort = built.into_iter().map(|(built, _)| built.sort).reduce(|sum, next| sum.and(next));
    Done { index, sort, sorters, ..Done::default() }
}

/// Sums the servers of one of several builds.
fn sorter(built: &BuildOutcome, elapsed: Nanos) -> SortBuild {
    let servers = &built.sort.servers;
    let total = |part: fn(&SortServerSummary) -> u64| total_of(servers.iter().map(part));
    let most = |part: fn(&SortServerSummary) -> u64| servers.iter().map(part).max().unwrap_or(0);
    SortBuild {
        index: built.index.name.clone(),
        elapsed_ns: elapsed.0,
        servers: servers.len() as u64,
        area_bytes: total(|server| server.area.0),
        rows: total(|server| server.row_count),
        runs: total(|server| server.run_count),
        run_bytes: total(|server| server.run_bytes),
        merge_passes: most(|server| server.merge_passes),
        merge_width: most(|server| server.merge_width),
        intermediate_merges: total(|server| server.intermediate_merges),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(parameters: &[(&str, &str)], set: &[(&str, &str)]) -> Result<String, String> {
        let mut work = Work::of(&LARGE_SORT);
        parameters.iter().for_each(|(name, value)| work.set(name, value).expect("in range"));
        let mut settings = Settings::default();
        set.iter().for_each(|(name, value)| settings.set(name, value, "--set").expect("in range"));
        share_out(&work, &mut settings).map_err(|error| error.to_string())?;
        Ok(Bytes(settings.number(Setting::SortAreaSize)).as_setting())
    }

    #[test]
    fn servers_of_all_builds_get_equal_parts_of_the_budget() {
        let degree = ("parallel_degree", "2");
        let shared = |sorters, memory, set: &[(&str, &str)]| {
            area(&[("sorters", sorters), ("sort-memory", memory)], set).expect("it can be shared out")
        };
        assert_eq!(area(&[("sorters", "4")], &[degree]).expect("the default"), "4M");
        assert_eq!(shared("4", "16M", &[degree]), "2M");
        // Four buffers of 256K are on top of each area.
        assert_eq!(shared("4", "16M", &[degree, ("sort_direct_writes", "true")]), "1M");
        assert_eq!(shared("3", "1M", &[("parallel_degree", "1")]), "336K", "whole blocks");
    }

    #[test]
    fn memory_that_cannot_be_shared_out_is_refused_in_a_line() {
        let degree = ("parallel_degree", "2");
        let refused = |parameters: &[(&str, &str)], set: &[(&str, &str)]| {
            area(parameters, set).expect_err("it cannot be done")
        };
        let found = [
            refused(&[("sorters", "16"), ("sort-memory", "1M")], &[degree]),
            refused(&[("sort-memory", "8M")], &[degree, ("sort_area_size", "4M")]),
        ];
        let expected = [
            "sort-memory=1M contradicts 32 sort servers (2 of 16 builds): a server needs 64K besides its \
             write buffers; give 2M or more, or fewer sorters",
            "sort-memory=8M contradicts sort_area_size=4M: both decide the memory of a sort server; give one \
             of them",
        ];
        assert_eq!(found, expected);
    }
}
