//! Sum of the time: each session's elapsed time as CPU, waits and a rest.
//!
//! The rest is printed, not spread over the other parts, and marked above a twentieth of the
//! elapsed time, because then something is not measured. CPU used inside waits is part of them and
//! has a column of its own.

use super::{events, waited_io};
use plumb_events::SessionKind;
use plumb_record::{Record, SessionTime};
use plumb_report::format::{Figure, Percent, Seconds, SignedSeconds};
use plumb_report::table::{Cell, Column, RowKind, Table, Tone};
use plumb_report::{Block, Part, Parts, Section, cells};
use plumb_units::total_of;

/// Largest share of elapsed time, either way, that may stay unaccounted without a mark.
pub(crate) const UNACCOUNTED_SHARE_MAX: f64 = 0.05;

/// Shows the parts of each session's time.
pub(super) fn time_model(record: &Record) -> Section {
    let mut table = Table::new(columns());
    let mut sessions = record.sessions.iter().collect::<Vec<_>>();
    sessions.sort_by_key(|session| session.kind);
    for session in &sessions {
        table.push(RowKind::Plain, cells(session));
    }
    if !sessions.is_empty() {
        table.push(RowKind::Total, cells(&total(record)));
    }
    let marked = record.sessions.iter().filter(|session| is_marked(session)).count();
    let section = Section::detail("time-model", "Time Model Statistics")
        .note("Elapsed = CPU + waits + idle waits + run queue + unaccounted, by session, in seconds")
        .note("Run queue: ready to run without a CPU, outside waits, as the kernel counts it")
        .note("CPU is that outside waits, in user and kernel mode; the CPU inside waits is a part of waits and idle waits");
    let section = match marked {
        0 => section,
        _ => section.note(format!(
            "*: more than {:.0}% of elapsed unaccounted ({marked} of {} sessions)",
            UNACCOUNTED_SHARE_MAX * 100.0,
            sessions.len()
        )),
    };
    section.table(table)
}

/// Draws one bar of non-idle foreground time: CPU, waits by class, the run queue and the rest.
pub(super) fn parts(record: &Record) -> Option<Section> {
    let foreground = || record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    let busy = total_of(foreground().map(|session| session.elapsed_ns.saturating_sub(session.idle_ns)));
    let mut parts = events::class_times(record);
    parts.push(("run queue", total_of(foreground().filter_map(|session| session.run_queue_ns))));
    let known = total_of(parts.iter().map(|(_, ns)| *ns));
    parts.push(("unaccounted", busy.saturating_sub(known)));
    // CPU used inside waits counts in both, so the parts may exceed the whole.
    let whole = busy.max(known);
    let part = |(name, ns): (&str, u64)| {
        let share = Percent::of(ns, whole);
        let shown = format!("{} s, {}%", Seconds(ns).figure(), share.figure());
        Some(Part { name: name.to_string(), shown, share: share.share().filter(|share| *share > 0.0)? })
    };
    let parts = Parts(parts.into_iter().filter_map(part).collect());
    let note = format!("{} s in which foreground sessions were not idle", Seconds(whole).figure());
    let section = Section::front("time", "Where the Time Went").note(note).block(Block::Parts(parts));
    let section = waited_io::table(record).into_iter().fold(section, Section::table);
    (whole > 0).then_some(section)
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("Session"),
        Column::text("Role"),
        Column::text("FG/BG"),
        Column::number("Elapsed"),
        Column::number("CPU"),
        Column::number("%"),
        Column::number("Waits"),
        Column::number("%"),
        Column::number("Idle"),
        Column::number("%"),
        Column::number("CPU in\nwaits"),
        Column::number("Run\nqueue"),
        Column::number("%"),
        Column::number("Unac-\ncounted"),
        Column::number("%"),
        Column::text(""),
    ]
}

fn cells(session: &SessionTime) -> Vec<Cell> {
    let of_elapsed = |ns: u64| Percent::of(ns, session.elapsed_ns);
    let share = |ns: u64| Cell::of(of_elapsed(ns)).with_share(of_elapsed(ns).share());
    let rest = session.unaccounted_ns();
    let rest_share = Percent { part: rest as f64, whole: session.elapsed_ns as f64 };
    let (mark, tone) = if is_marked(session) { ("*", Tone::Bad) } else { ("", Tone::Plain) };
    let kind = match session.kind {
        _ if session.name == TOTAL => "",
        SessionKind::Foreground => "FG",
        SessionKind::Background | SessionKind::Probe => "BG",
    };
    cells![
        &session.name,
        &session.role,
        kind,
        Seconds(session.elapsed_ns),
        Seconds(session.cpu_ns),
        share(session.cpu_ns),
        Seconds(session.wait_ns),
        share(session.wait_ns),
        Seconds(session.idle_ns),
        share(session.idle_ns),
        Seconds(session.wait_cpu_ns),
        session.run_queue_ns.map(Seconds),
        session.run_queue_ns.map(of_elapsed),
        Cell::of(SignedSeconds(rest)).with_tone(tone),
        Cell::from(signed_percent(rest_share)).with_tone(tone),
        Cell::from(mark).with_tone(tone)
    ]
}

/// Name of the row that sums the sessions.
const TOTAL: &str = "Total";

/// Sums the sessions. The run queue is unknown only if no session knows its own.
fn total(record: &Record) -> SessionTime {
    let sum = |part: fn(&SessionTime) -> u64| total_of(record.sessions.iter().map(part));
    let knows_queue = record.sessions.iter().any(|session| session.run_queue_ns.is_some());
    SessionTime {
        name: TOTAL.to_string(),
        role: String::new(),
        kind: SessionKind::Foreground,
        elapsed_ns: sum(|session| session.elapsed_ns),
        cpu_ns: sum(|session| session.cpu_ns),
        wait_cpu_ns: sum(|session| session.wait_cpu_ns),
        wait_ns: sum(|session| session.wait_ns),
        idle_ns: sum(|session| session.idle_ns),
        run_queue_ns: knows_queue.then(|| sum(|session| session.run_queue_ns.unwrap_or(0))),
    }
}

/// Returns the unaccounted share of all sessions' elapsed time; `None` without sessions.
pub(crate) fn unaccounted(record: &Record) -> Option<Percent> {
    let total = total(record);
    let share = Percent { part: total.unaccounted_ns() as f64, whole: total.elapsed_ns as f64 };
    share.share().map(|_| share)
}

fn is_marked(session: &SessionTime) -> bool {
    let limit = session.elapsed_ns as f64 * UNACCOUNTED_SHARE_MAX;
    (session.unaccounted_ns() as f64).abs() > limit
}

/// Prints a share; one that rounds to zero has no sign.
fn signed_percent(share: Percent) -> String {
    let shown = share.figure();
    if shown == "-0.0" { "0.0".to_string() } else { shown }
}
