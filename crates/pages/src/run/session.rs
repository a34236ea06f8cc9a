//! Snapshot of one session: its time by event, its unaccounted time, and its counters.

use plumb_events::Unit;
use plumb_record::{Record, SessionSnapshot};
use plumb_report::format::{Average, Count, Percent, Seconds, SignedSeconds};
use plumb_report::table::{RowKind, Table};
use plumb_report::{Section, cells, table};

/// Name of the time without any instrument.
const REST: &str = "not accounted for by any instrument";

/// Shows the parts of its time; `None` if several sessions shared the work.
pub(super) fn waits(record: &Record) -> Option<Section> {
    let SessionSnapshot { time, events, .. } = record.session.as_ref()?;
    let mut events: Vec<_> = events.iter().filter(|event| event.waits > 0).collect();
    events.sort_by(|one, two| two.time_ns.cmp(&one.time_ns).then(one.event.cmp(&two.event)));
    let share = |ns: u64| Percent::of(ns, time.elapsed_ns);
    let mut table = table!(event in events; {
        let mean = Average { total_ns: event.time_ns, count: event.waits };
    } [
        text "What" => &event.event,
        numbers "Waits" => Count(event.waits),
        numbers "Time (s)" => Seconds(event.time_ns),
        numbers "Avg wait" => mean,
        numbers "% of\nelapsed" => share(event.time_ns),
    ]);
    table.row(cells!["CPU", "", Seconds(time.cpu_ns), "", share(time.cpu_ns)]);
    if let Some(queue) = time.run_queue_ns {
        table.row(cells!["ready to run without a CPU", "", Seconds(queue), "", share(queue)]);
    }
    let rest = time.unaccounted_ns();
    let part = Percent { part: rest as f64, whole: time.elapsed_ns as f64 };
    table.row(cells![REST, "", SignedSeconds(rest), "", part]);
    table.push(RowKind::Total, cells!["Elapsed", "", Seconds(time.elapsed_ns), "", share(time.elapsed_ns)]);
    let section = Section::detail("session-waits", "Session Snapshot: Waits")
        .note(format!("session {} ({}), from before the work to behind it", time.name, time.role));
    Some(section.table(table))
}

pub(super) fn statistics(record: &Record) -> Option<Section> {
    let session = record.session.as_ref()?;
    let mut statistics: Vec<_> = session.statistics.iter().filter(|statistic| statistic.total > 0).collect();
    statistics.sort_by(|one, two| one.name.cmp(&two.name));
    let mut table = Table::default().text(["Statistic"]).numbers(["Value"]).text(["Unit"]);
    for statistic in statistics {
        let unit = if statistic.unit == Unit::Bytes { "bytes" } else { "" };
        table.row(cells![&statistic.name, Count(statistic.total), unit]);
    }
    let section = Section::detail("session-statistics", "Session Snapshot: Statistics").note(format!(
        "session {} ({}); statistics that did not move are left out",
        session.time.name, session.time.role
    ));
    Some(section.table(table))
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use super::super::fixture::large_sort;
    use super::*;
    use plumb_record::{SessionTime, WaitEvent};
    use plumb_report::text;

    fn event(name: &str, waits: u64, time_ns: u64) -> WaitEvent {
        WaitEvent { event: name.to_string(), waits, time_ns, ..large_sort().foreground_events[0].clone() }
    }

    /// Ten seconds: 4 of CPU, 5 of waits, 0.5 in the run queue, and 0.5 unaccounted.
    #[test]
    fn a_session_shows_its_unaccounted_time() {
        let mut record = large_sort();
        assert!(waits(&record).is_none(), "several sessions shared the work");
        let of_all = record.sessions[0].clone();
        let time = SessionTime {
            name: "load coordinator".to_string(),
            elapsed_ns: 10_000_000_000,
            cpu_ns: 4_000_000_000,
            wait_ns: 5_000_000_000,
            idle_ns: 0,
            run_queue_ns: Some(500_000_000),
            ..of_all
        };
        let events = vec![
            event("log buffer space", 40, 1_000_000_000),
            event("direct path write", 2_000, 4_000_000_000),
            event("log file sync", 0, 0),
        ];
        record.session = Some(SessionSnapshot { time, events, statistics: record.statistics.clone() });
        let section = waits(&record).expect("one session did it");
        let lines = text::render_section(&section, &document(&record));
        let row = |start: &str| {
            let line = lines.iter().find(|line| line.trim_start().starts_with(start)).expect(start);
            line.split_whitespace().rev().take(2).map(str::to_string).collect::<Vec<_>>()
        };
        assert_eq!(row("direct path write"), ["40.0", "2.00ms"]);
        assert_eq!(row("CPU"), ["40.0", "4.00"]);
        assert_eq!(row(REST), ["5.0", "0.50"]);
        assert_eq!(row("Elapsed"), ["100.0", "10.00"]);
        assert!(!lines.iter().any(|line| line.contains("log file sync")), "nobody waited for it");
        let order = |name: &str| lines.iter().position(|line| line.contains(name));
        assert!(order("direct path write") < order("log buffer space"));
    }
}
