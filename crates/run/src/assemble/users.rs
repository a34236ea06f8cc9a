//! Users that read while the work ran, and the figures by which studies judge them.

use super::Evidence;
use super::phases::Timeline;
use crate::evidence::{PartCounts, UsersDone};
use crate::rows;
use plumb_events::{Period, Role, SessionKind, Statistic};
use plumb_record::{self as record, MeasuredFigure, PoolStats, Response, SessionsTime, Users};
use plumb_study::vocabulary::{Figure, Measure};

/// A figure of a part: its name behind `users`, its unit, and whether more of it is better.
struct Row {
    name: &'static str,
    unit: &'static str,
    grows: bool,
    value: fn(&record::UsersPart) -> f64,
}

const MEASURES: [Row; 7] = [
    Row { name: "operations/s", unit: "/s", grows: true, value: record::UsersPart::operations_per_s },
    Row { name: "p50", unit: "ms", grows: false, value: |part| milliseconds(part, 0.5) },
    Row { name: "p99", unit: "ms", grows: false, value: |part| milliseconds(part, 0.99) },
    Row { name: "hit ratio", unit: "%", grows: true, value: |part| part.hit_ratio() * 100.0 },
    Row { name: "blocks read", unit: "", grows: false, value: |part| part.reads as f64 },
    Row { name: "blocks evicted", unit: "", grows: false, value: |part| part.pool.counts.evicted as f64 },
    Row {
        name: "free buffer waits",
        unit: "",
        grows: false,
        value: |part| part.pool.counts.free_buffer_waits as f64,
    },
];

fn milliseconds(part: &record::UsersPart, share: f64) -> f64 {
    match part.latency.count() {
        0 => f64::NAN,
        _ => part.latency.quantile(share).0 as f64 / 1e6,
    }
}

/// Returns the measure of this name, such as `users p99 during`.
pub(crate) fn measure(name: &str) -> Option<Measure> {
    let rest = name.strip_prefix("users ")?;
    let (figure, part) = rest.rsplit_once(' ')?;
    let row = MEASURES.iter().find(|row| row.name == figure)?;
    UsersDone::PARTS.contains(&part).then(|| {
        let figure = Figure::Measured(row.unit.to_string());
        if row.grows { Measure::gain(name, figure) } else { Measure::cost(name, figure) }
    })
}

/// Lists the names of the measures, for messages.
pub(crate) fn measures_in_words() -> String {
    let names: Vec<&str> = MEASURES.iter().map(|row| row.name).collect();
    format!("`users FIGURE {}` with {}", UsersDone::PARTS.join("|"), names.join(", "))
}

pub(super) fn measured(users: Option<&Users>) -> Vec<MeasuredFigure> {
    let of_part = |part: &record::UsersPart| {
        let figure = |row: &Row| MeasuredFigure {
            name: format!("users {} {}", row.name, part.name),
            value: (row.value)(part),
            unit: row.unit.to_string(),
        };
        MEASURES.iter().map(figure).filter(|figure| figure.value.is_finite()).collect::<Vec<_>>()
    };
    users.iter().flat_map(|users| &users.parts).flat_map(of_part).collect()
}

/// Returns the response times of each part.
pub(super) fn responses(users: Option<&Users>) -> Vec<Response> {
    let parts = users.iter().flat_map(|users| &users.parts).filter(|part| part.latency.count() > 0);
    let response = |part: &record::UsersPart| Response {
        operation: format!("users {}", part.name),
        latency: part.latency.clone(),
        elapsed_ns: Some(part.elapsed_ns),
    };
    parts.map(response).collect()
}

pub(super) fn users(seen: &Evidence, timeline: &Timeline) -> Option<Users> {
    let done = seen.measured.outcome.users.as_ref()?;
    let spec = &done.spec;
    let parts = UsersDone::PARTS.iter().zip(&done.parts);
    let build = seen.measured.period.sessions.iter().filter(|session| session.role != Role::User);
    let build = Period { elapsed: seen.measured.period.elapsed, sessions: build.cloned().collect() };
    Some(Users {
        sessions: spec.reads.sessions,
        hot_blocks: spec.reads.scale,
        table_blocks: spec.table.scale,
        block_bytes: spec.table.block_bytes,
        rate: spec.reads.rate,
        parts: parts.map(|(name, part)| users_part(seen, timeline, name, part)).collect(),
        build: time(&build),
    })
}

fn users_part(seen: &Evidence, timeline: &Timeline, name: &str, part: &PartCounts) -> record::UsersPart {
    let statistic = |statistic| part.period.statistic(statistic);
    let mut latency = plumb_events::LatencyHistogram::default();
    part.done.responses.iter().for_each(|of_kind| latency.merge(of_kind));
    let cache = seen.inside.cache();
    record::UsersPart {
        name: name.to_string(),
        start_ns: timeline.since_start(part.begin),
        elapsed_ns: part.period.elapsed.0,
        latency,
        gets: statistic(Statistic::LogicalReads),
        hits: statistic(Statistic::CacheHits),
        reads: statistic(Statistic::PhysicalReadBlocks),
        time: time(&part.period),
        pool: PoolStats {
            block_bytes: cache.block_size.bytes() as u64,
            buffers: cache.frames,
            counts: part.pool,
            census: Vec::new(),
        },
    }
}

fn time(period: &Period) -> SessionsTime {
    SessionsTime { cpu_ns: period.db_cpu().0, events: rows::events(period, SessionKind::Foreground) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_judges_users_by_figure_and_part() {
        let (cost, gain) =
            (Measure::cost("", Figure::Elapsed).better, Measure::gain("", Figure::Elapsed).better);
        for (name, unit, better) in [("users p99 during", "ms", cost), ("users hit ratio before", "%", gain)]
        {
            let found = measure(name).expect("a measure");
            assert_eq!((found.unit(), found.better), (unit, better), "{name}");
        }
        for name in ["users p98 during", "users p99 beside", "p99 during", "users p99"] {
            assert_eq!(measure(name), None, "{name}");
        }
    }
}
