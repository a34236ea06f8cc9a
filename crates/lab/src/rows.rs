//! What sessions recorded in a period, as rows of a record: of a whole run, or of the time between two snapshots of it.

use plumb_events::{Direction, Event, IoStream, Period, SessionKind, SessionTotals, Statistic};
use plumb_record::{IoFunction, IoTally, SessionTime, StatisticRow, WaitEvent};
use plumb_units::Nanos;

/// The counters of a period, and its database time.
#[derive(Debug, Clone)]
pub struct Counted {
    /// CPU and waits of the foreground sessions.
    pub db_time: Nanos,
    /// Their CPU.
    pub db_cpu: Nanos,
    /// By [`Statistic`].
    statistics: Vec<u64>,
}

impl Counted {
    /// Those of a period.
    #[must_use]
    pub fn of(period: &Period) -> Counted {
        let statistics = Statistic::ALL.iter().map(|statistic| period.statistic(*statistic));
        Counted { db_time: period.db_time(), db_cpu: period.db_cpu(), statistics: statistics.collect() }
    }

    /// Adds those of the period that follows.
    pub fn add(&mut self, next: &Counted) {
        (self.db_time, self.db_cpu) = (self.db_time + next.db_time, self.db_cpu + next.db_cpu);
        for (total, more) in self.statistics.iter_mut().zip(&next.statistics) {
            *total += more;
        }
    }

    /// One counter.
    #[must_use]
    pub fn statistic(&self, statistic: Statistic) -> u64 {
        self.statistics[statistic as usize]
    }

    /// All of them.
    #[must_use]
    pub fn statistics(&self) -> Vec<StatisticRow> {
        let row = |statistic: &Statistic| StatisticRow {
            name: statistic.name().to_string(),
            total: self.statistic(*statistic),
            unit: statistic.unit(),
        };
        Statistic::ALL.iter().map(row).collect()
    }
}

/// Events that sessions of a kind waited for, in the order of their table.
#[must_use]
pub fn events(period: &Period, kind: SessionKind) -> Vec<WaitEvent> {
    let waited = |event: &Event| {
        let total = period.event(*event, kind);
        (total.count > 0).then(|| WaitEvent {
            event: event.name().to_string(),
            wait_class: event.class().name().to_string(),
            waits: total.count,
            time_ns: total.time.0,
            max_ns: Some(total.max.0),
            histogram: total.histogram.0.to_vec(),
            latency: total.latency.clone(),
        })
    };
    Event::ALL.iter().filter_map(waited).collect()
}

/// Where each session's time went.
#[must_use]
pub fn sessions(period: &Period) -> Vec<SessionTime> {
    period.sessions.iter().map(session_time).collect()
}

fn session_time(session: &SessionTotals) -> SessionTime {
    SessionTime {
        name: short_name(session),
        role: session.role.name().to_string(),
        kind: session.role.kind(),
        elapsed_ns: session.elapsed.0,
        cpu_ns: session.cpu.0,
        wait_cpu_ns: session.wait_cpu.0,
        wait_ns: session.waits().0,
        idle_ns: session.idle().0,
        // The kernel counts the run queue inside waits too: a session that is woken
        // queues before its wait ends for us. Only what no wait explains can be
        // queueing outside waits, so no nanosecond is counted twice.
        run_queue_ns: Some(session.run_queue.min(session.unaccounted()).0),
    }
}

/// `PX sort server p001` is the sort server p001; a session that is alone in its role is named by it.
fn short_name(session: &SessionTotals) -> String {
    let number = session.name.strip_prefix(session.role.name()).and_then(|number| number.strip_prefix(' '));
    number.unwrap_or(&session.name).to_string()
}

/// Requests and bytes by the function that asked for them.
#[must_use]
pub fn functions(period: &Period) -> Vec<IoFunction> {
    let row = |stream: &IoStream| {
        let total = period.stream(*stream);
        let tally = IoTally { requests: total.count, bytes: total.bytes, time_ns: Some(total.time.0) };
        let (reads, writes) = match stream.direction() {
            Direction::Read => (tally, IoTally::default()),
            Direction::Write => (IoTally::default(), tally),
        };
        (total.count > 0).then(|| IoFunction { function: stream.name().to_string(), reads, writes })
    };
    IoStream::ALL.iter().filter_map(row).collect()
}
