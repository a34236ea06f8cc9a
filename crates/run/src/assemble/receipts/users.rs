//! Parameters of users that read during a build, and of builds at the same time, compared with the
//! work of their sessions and servers.

use super::super::Evidence;
use super::{Ruling, counted, parameter};
use crate::evidence::{PartCounts, UsersDone};
use plumb_engine::Setting;
use plumb_events::Statistic;
use plumb_record::Receipt;
use plumb_units::{Bytes, Nanos, RowCount, total_of};
use plumb_workload::specification::LARGE_SORT;

/// Largest share of the cache for which all users' blocks are expected to stay in it: their index
/// has blocks too.
const HOT_PCT_MAX: u64 = 90;
/// Share of the users' blocks that may be read while nothing displaces any.
const MISSES_MAX: f64 = 0.01;
/// Time by which a part may be longer than asked: its end is found by a sleeping session.
const LATE: Nanos = Nanos(1_000_000_000);

pub(super) fn parameters(seen: &Evidence) -> Vec<Receipt> {
    let mut found = Vec::from_iter(memory(seen));
    if let Some(users) = &seen.measured.outcome.users {
        let reads = &users.spec.reads;
        found.extend([
            parameter(&LARGE_SORT, "sessions", reads.sessions, sessions(users)),
            parameter(&LARGE_SORT, "hot-pct", users.spec.hot_pct, hot(seen, users)),
            parameter(&LARGE_SORT, "alone", users.spec.alone.0, alone(users)),
            parameter(&LARGE_SORT, "work-unit", reads.work_unit, work_unit(users)),
            parameter(&LARGE_SORT, "rate", reads.rate, rate(users)),
        ]);
    }
    found
}

fn part<'u>(users: &'u UsersDone, name: &str) -> Option<&'u PartCounts> {
    let place = UsersDone::PARTS.iter().position(|known| *known == name)?;
    users.parts.get(place)
}

/// Counts the sessions that read blocks in every part.
fn sessions(users: &UsersDone) -> Ruling {
    let read = |part: &PartCounts| {
        let read =
            |session: &&plumb_events::SessionTotals| session.statistics[Statistic::LogicalReads as usize] > 0;
        part.period.sessions.iter().filter(read).count() as u64
    };
    let each: Vec<u64> = users.parts.iter().map(read).collect();
    let shown: Vec<String> =
        UsersDone::PARTS.iter().zip(&each).map(|(name, count)| format!("{count} {name}")).collect();
    let evidence = format!("sessions that read blocks: {}", shown.join(", "));
    let asked = users.spec.reads.sessions;
    match users.spec.reads.rate > 0 && each.iter().all(|count| *count <= asked) {
        // A session to which nothing arrived reads nothing.
        true if each.iter().any(|count| *count < asked) => Ruling::unknown(evidence),
        _ => Ruling::that(each.iter().all(|count| *count == asked), evidence),
    }
}

/// Checks that users found their blocks in the cache as long as nothing displaced any.
fn hot(seen: &Evidence, users: &UsersDone) -> Ruling {
    let Some(before) = part(users, "before") else { return Ruling::unknown("users never read alone") };
    let (gets, reads) = (
        before.period.statistic(Statistic::LogicalReads),
        before.period.statistic(Statistic::PhysicalReadBlocks),
    );
    let evidence = format!(
        "{} of {} buffers; before the build {} of {} looked up came from disk",
        RowCount(users.spec.reads.scale),
        RowCount(seen.inside.cache().frames),
        RowCount(reads),
        counted(gets, "block")
    );
    match users.spec.hot_pct > HOT_PCT_MAX {
        true => Ruling::unknown(evidence),
        false => Ruling::that(gets > 0 && reads as f64 <= gets as f64 * MISSES_MAX, evidence),
    }
}

fn alone(users: &UsersDone) -> Ruling {
    let times =
        ["before", "after"].map(|name| part(users, name).map_or(Nanos(0), |part| part.period.elapsed));
    let asked = users.spec.alone;
    let evidence = format!("{} before the build and {} after it", times[0], times[1]);
    Ruling::that(times.iter().all(|time| *time >= asked && *time <= asked + LATE), evidence)
}

fn work_unit(users: &UsersDone) -> Ruling {
    let rows = total_of(users.parts.iter().map(|part| part.done.rows_read));
    let operations = total_of(users.parts.iter().map(|part| part.done.count()));
    let evidence = format!("{} by {}", counted(rows, "row"), counted(operations, "operation"));
    let each = users.spec.reads.work_unit - 1;
    Ruling::that(operations > 0 && rows == operations * each, format!("{evidence}: {each} each"))
}

/// Compares the operations with the arrivals, while users were alone.
fn rate(users: &UsersDone) -> Ruling {
    let each = UsersDone::PARTS.iter().zip(&users.parts).map(|(name, part)| {
        let rate = part.done.count() as f64 / part.period.elapsed.seconds().max(1e-9);
        (format!("{rate:.0} {name}"), rate, part.done.count())
    });
    let each: Vec<(String, f64, u64)> = each.collect();
    let shown: Vec<&str> = each.iter().map(|(shown, ..)| shown.as_str()).collect();
    let evidence = format!("operations a second: {}", shown.join(", "));
    let asked = users.spec.reads.rate as f64;
    match each.first() {
        _ if asked == 0.0 => Ruling::held(format!("{evidence}; each began when the one before had ended")),
        // Five standard errors of a Poisson count, and a hundredth for the borders of the part.
        Some((_, found, count)) if *found >= asked * 0.5 => {
            let slack = asked * (5.0 / (*count as f64).sqrt().max(1.0) + 0.01);
            Ruling::that((found - asked).abs() <= slack, evidence)
        }
        _ => Ruling::unknown(format!("{evidence}: the sessions could not keep up even alone")),
    }
}

/// Compares the memory of all sort servers with the budget that was shared out.
fn memory(seen: &Evidence) -> Option<Receipt> {
    let asked = seen.asked.parameters.iter().find(|row| row.name == "sort-memory")?;
    let budget = plumb_units::parse_size(&asked.value).ok()?;
    let sort = seen.measured.outcome.sort.as_ref()?;
    let mapped = total_of(sort.servers.iter().map(|server| server.area_mapped.0));
    let buffers = sort.memory.iter().find(|(name, _)| name == "sort write buffers");
    let buffers = buffers.map_or(0, |(_, bytes)| bytes.0);
    let servers = sort.servers.len() as u64;
    let evidence = format!(
        "areas of {} mapped by {} of {} builds, {} each at most, and write buffers of {}",
        Bytes(mapped),
        counted(servers, "server"),
        seen.measured.outcome.sorters.len().max(1),
        Bytes(seen.inside.settings.number(Setting::SortAreaSize)),
        Bytes(buffers)
    );
    let judged = Ruling::that(mapped + buffers <= budget, evidence);
    Some(parameter(&LARGE_SORT, "sort-memory", budget, judged))
}
