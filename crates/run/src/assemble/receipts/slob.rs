//! Parameters of random reads and updates that a study may vary, compared with the sessions' work.
//!
//! Shares of operations are those drawn; rows are counted where they were read. Idle waits of the
//! sessions show pauses and arrivals, the log shows the bytes of an update.

use super::super::Evidence;
use super::{Ruling, counted, parameter};
use crate::evidence::SlobDone;
use plumb_engine::Setting;
use plumb_events::{Event, Role, SessionKind, Statistic};
use plumb_record::Receipt;
use plumb_units::{Bytes, RowCount};
use plumb_workload::slob::{Hotspot, Kind, SLOB};

/// Bytes of a column that an update replaces; less in blocks of 2K.
const TEXT_BYTES: u64 = 128;
/// Fewest operations from which shares by quota are judged.
const OPERATIONS_MIN: u64 = 1000;

pub(super) fn parameters(seen: &Evidence) -> Vec<Receipt> {
    let Some(done) = &seen.measured.outcome.slob else { return Vec::new() };
    let spec = &done.spec;
    let mut found = vec![
        parameter(&SLOB, "sessions", spec.sessions, sessions(seen, done)),
        parameter(&SLOB, "threads-per-schema", spec.threads_per_schema, schemas(done)),
        parameter(&SLOB, "update-pct", spec.update_pct, share(done, Kind::Update, spec.update_pct)),
        parameter(&SLOB, "scan-pct", spec.scan_pct, share(done, Kind::Scan, spec.scan_pct)),
        parameter(&SLOB, "work-unit", spec.work_unit, work_unit(done)),
        parameter(&SLOB, "hotspot", spec.hotspot as u64, hotspot(done)),
        parameter(&SLOB, "hot-schema-frequency", spec.hot_schema_frequency, hot_schema(done)),
        parameter(&SLOB, "think-frequency", spec.think_frequency, pauses(seen, done)),
        parameter(&SLOB, "rate", spec.rate, rate(seen, done)),
    ];
    if spec.update_pct > 0 {
        found.push(parameter(&SLOB, "redo-stress", u64::from(spec.heavy), redo_stress(seen, done)));
        found.push(parameter(&SLOB, "mix", u64::from(spec.iid), mix(done)));
    }
    found.push(match spec.work_loop {
        0 => parameter(&SLOB, "run-time", spec.run_time.0, run_time(seen, done)),
        count => parameter(&SLOB, "work-loop", count, work_loop(done)),
    });
    found
}

/// Judges the number of blocks requested at once.
pub(super) fn prefetch(seen: &Evidence) -> Option<Ruling> {
    let done = &seen.measured.outcome;
    if done.slob.is_none() && done.users.is_none() {
        return None;
    }
    let asked = seen.inside.settings.number(Setting::DbBlockPrefetchLimit);
    let waits = |event| seen.measured.period.event(event, SessionKind::Foreground).count;
    let (parallel, single) = (waits(Event::DbFileParallelRead), waits(Event::DbFileSequentialRead));
    let evidence =
        format!("{} for blocks asked for at once, {single} for single ones", counted(parallel, "wait"));
    match (asked, parallel + single) {
        (_, 0) => Some(Ruling::unknown("no block was read: this setting had no effect")),
        (0 | 1, _) => Some(Ruling::that(parallel == 0, evidence)),
        _ => Some(Ruling::that(parallel > 0, evidence)),
    }
}

/// Counts the sessions that read rows, by their own counters.
fn sessions(seen: &Evidence, done: &SlobDone) -> Ruling {
    let users = seen.measured.period.sessions.iter().filter(|session| session.role == Role::User);
    let worked = users.filter(|it| it.statistics[Statistic::LogicalReads as usize] > 0).count() as u64;
    let (most, least) = done.operations;
    let evidence = format!("{} read blocks, {least} to {most} operations each", counted(worked, "session"));
    match done.took_part == done.spec.sessions && worked < done.spec.sessions {
        // A session may have thought for the whole run, and read nothing.
        true => Ruling::unknown(evidence),
        false => Ruling::that(worked == done.spec.sessions, evidence),
    }
}

fn schemas(done: &SlobDone) -> Ruling {
    let spec = &done.spec;
    let expected = spec.sessions.div_ceil(spec.threads_per_schema).min(spec.schemas);
    let found = done.schemas.len() as u64;
    let evidence = format!("the sessions work on {}", counted(found, "schema"));
    Ruling::that(found == expected, evidence)
}

/// Judges the share of a kind among the operations.
fn share(done: &SlobDone, kind: Kind, asked: u64) -> Ruling {
    let (count, all) = (done.count_of(kind), done.count());
    let found = count as f64 * 100.0 / all.max(1) as f64;
    let evidence = format!("{} of {}: {found:.1}%", RowCount(count), counted(all, "operation"));
    if asked == 0 {
        return Ruling::that(count == 0, evidence);
    }
    if all < OPERATIONS_MIN && !done.spec.iid {
        return Ruling::unknown(format!("{evidence}; these are too few for a share"));
    }
    // By quota each session may have an unfinished hundred; draws have five standard errors.
    let part = asked as f64 / 100.0;
    let slack = match done.spec.iid {
        true => 500.0 * (part * (1.0 - part) / all as f64).sqrt(),
        false => 100.0 * (100 * done.spec.sessions) as f64 / all as f64,
    };
    match slack > found.max(1.0) {
        true => Ruling::unknown(format!("{evidence}; no session has had many hundreds")),
        false => Ruling::that((found - asked as f64).abs() <= slack, evidence),
    }
}

fn work_unit(done: &SlobDone) -> Ruling {
    let (rows, count) =
        (done.rows_read + done.rows_updated, done.count_of(Kind::Select) + done.count_of(Kind::Update));
    let evidence = format!("{} by {}", RowCount(rows), counted(count, "operation"));
    Ruling::that(rows == count * (done.spec.work_unit - 1), format!("{evidence}: a row less than this each"))
}

fn hotspot(done: &SlobDone) -> Ruling {
    let all = match done.spec.hotspot {
        Hotspot::Updates => done.count_of(Kind::Update),
        _ => done.count(),
    };
    let evidence = format!("{} of {} went there", RowCount(done.hot), counted(all, "operation"));
    match done.spec.hotspot {
        Hotspot::Off => Ruling::that(done.hot == 0, evidence),
        _ if all < OPERATIONS_MIN => Ruling::unknown(evidence),
        _ => {
            let expected = all as f64 / done.spec.hotspot_frequency as f64;
            Ruling::that((done.hot as f64 / expected - 1.0).abs() < 0.2, evidence)
        }
    }
}

fn hot_schema(done: &SlobDone) -> Ruling {
    let evidence = format!("{} of {}", RowCount(done.in_hot_schema), counted(done.count(), "operation"));
    match done.spec.hot_schema_frequency {
        0 => Ruling::that(done.in_hot_schema == 0, evidence),
        frequency => {
            // Each session counts its own.
            let expected = done.count() / frequency;
            let found = done.in_hot_schema;
            Ruling::that(found <= expected && found + done.spec.sessions >= expected, evidence)
        }
    }
}

/// Judges pauses by the idle waits of sessions.
fn pauses(seen: &Evidence, done: &SlobDone) -> Ruling {
    let idle = seen.measured.period.event(Event::MessageFromClient, SessionKind::Foreground);
    let evidence = format!(
        "{} among {}; sessions waited {} in all for their next request",
        counted(done.pauses, "pause"),
        counted(done.count(), "operation"),
        idle.time
    );
    match done.spec.think_frequency {
        0 => Ruling::that(done.pauses == 0, evidence),
        _ if done.spec.rate > 0 => Ruling::unknown("operations arrive by themselves: there is no pause"),
        _ if done.count() < OPERATIONS_MIN => Ruling::unknown(evidence),
        frequency => {
            let expected = done.count() as f64 / frequency as f64;
            Ruling::that((done.pauses as f64 / expected - 1.0).abs() < 0.5, evidence)
        }
    }
}

fn rate(seen: &Evidence, done: &SlobDone) -> Ruling {
    let seconds = seen.measured.period.elapsed.seconds();
    let due = done.count() + done.behind;
    let found = due as f64 / seconds.max(1e-3);
    match done.spec.rate {
        0 => Ruling::held("each session begins the next operation when one has ended"),
        _ if due < OPERATIONS_MIN => Ruling::unknown(format!("{} came due", counted(due, "operation"))),
        asked => {
            let evidence = format!(
                "{} came due, {found:.0} a second; {} had not begun at the end",
                counted(due, "operation"),
                RowCount(done.behind)
            );
            Ruling::that((found / asked as f64 - 1.0).abs() < 0.1, evidence)
        }
    }
}

/// Judges the bytes of log per row, without block images.
fn redo_stress(seen: &Evidence, done: &SlobDone) -> Ruling {
    let statistic = |kind| seen.measured.period.statistic(kind);
    let bytes = statistic(Statistic::RedoSize).saturating_sub(statistic(Statistic::RedoImageBytes));
    let rows = done.rows_updated;
    let each = bytes.checked_div(rows).unwrap_or(0);
    let evidence =
        format!("{} of redo for each of {}, block images apart", Bytes(each), counted(rows, "row"));
    if rows < OPERATIONS_MIN {
        return Ruling::unknown(evidence);
    }
    // At least the old values of nineteen columns; the new ones may be in the image of their block.
    let heavy = 19 * TEXT_BYTES.min(done.spec.block_bytes / 32) * 3 / 4;
    Ruling::that(done.spec.heavy == (each >= heavy), evidence)
}

/// Judges the distribution of updates within their hundred.
fn mix(done: &SlobDone) -> Ruling {
    let (count, early) = (done.count_of(Kind::Update), done.early_updates);
    let evidence = format!(
        "{} of {} were in the first half of their hundred",
        RowCount(early),
        counted(count, "update")
    );
    // By quota, every second operation is an update until the hundred has all of its updates, so at
    // most 25 are in the first half. Drawn independently, half of them are.
    let by_quota = (25.0 / done.spec.update_pct.max(1) as f64).min(1.0);
    let middle = f64::midpoint(0.5, by_quota);
    let deviation = (0.25 / count.max(1) as f64).sqrt();
    if count < OPERATIONS_MIN || middle - 0.5 < 4.0 * deviation {
        return Ruling::unknown(evidence);
    }
    let share = early as f64 / count as f64;
    Ruling::that(done.spec.iid == (share < middle), evidence)
}

fn run_time(seen: &Evidence, done: &SlobDone) -> Ruling {
    let elapsed = seen.measured.period.elapsed;
    let evidence = format!("the sessions worked for {elapsed}, operations in flight at the end included");
    Ruling::that(elapsed >= done.spec.run_time, evidence)
}

fn work_loop(done: &SlobDone) -> Ruling {
    let (most, least) = done.operations;
    let evidence = format!("{} did {least} to {most} operations each", counted(done.took_part, "session"));
    Ruling::that(most == done.spec.work_loop && least == done.spec.work_loop, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::Held;
    use plumb_units::Nanos;
    use plumb_workload::Work;
    use plumb_workload::slob::SlobSpec;

    #[test]
    fn the_mix_is_judged_by_the_places_of_updates() {
        let held = |(percent, mix): (&str, &str), early, updates| {
            let mut work = Work::of(&SLOB);
            for (name, text) in [("update-pct", percent), ("mix", mix)] {
                work.set(name, text).expect("in range");
            }
            let mut done = SlobDone::of(&SlobSpec::of(&work, 8192).expect("consistent"));
            (0..updates).for_each(|_| done.responses[Kind::Update as usize].add(Nanos(1)));
            done.early_updates = early;
            super::mix(&done).held
        };
        assert_eq!(held(("20", "slob"), 2600, 2688), Held::Held);
        assert_eq!(held(("20", "slob"), 1400, 2688), Held::Contradicted);
        // 25 of 40 updates are in the first half of a hundred.
        assert_eq!(held(("40", "slob"), 1708, 2688), Held::Held);
        assert_eq!(held(("40", "iid"), 1708, 2688), Held::Contradicted);
        assert_eq!(held(("40", "iid"), 1340, 2688), Held::Held);
        assert_eq!(held(("48", "slob"), 1340, 2688), Held::NotChecked, "too near to half");
        assert_eq!(held(("20", "slob"), 500, 500), Held::NotChecked, "too few");
    }
}
