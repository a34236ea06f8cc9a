//! What runs are compared by: a figure of their record.

use crate::record::Record;
use plumb_events::Unit;
use plumb_proof::verdict::Better;
use serde::Serialize;

/// Where in a record a figure stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The elapsed time.
    Elapsed,
    /// CPU and waits of the foreground sessions.
    DbTime,
    /// Their CPU.
    DbCpu,
    /// Their waits for one event.
    Event(String),
    /// A statistic that counts.
    Count(String),
    /// A statistic in bytes.
    Bytes(String),
    /// The share of DB time that is waited for one event, per cent.
    EventShare(String),
    /// A statistic, a second of the elapsed time.
    Rate(String),
    /// What an I/O stream moved, a second of the elapsed time.
    StreamRate(String),
    /// The mean time of a request of an I/O stream, as its record has it.
    StreamTime(String),
    /// A figure that the target measures by itself, in this unit.
    Measured(String),
}

/// A figure with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Its name in study files.
    pub name: String,
    /// Where it stands.
    pub figure: Figure,
    /// Which way it is to go.
    pub better: Better,
}

const MEGABYTE: f64 = 1024.0 * 1024.0;

/// Bytes, requests and nanoseconds of a stream.
fn stream(record: &Record, name: &str) -> (u64, u64, u64) {
    let own = record.io_functions.iter().filter(|row| row.function == name);
    own.flat_map(|row| [row.reads, row.writes]).fold((0, 0, 0), |(bytes, requests, time), tally| {
        (bytes + tally.bytes, requests + tally.requests, time + tally.time_ns)
    })
}

impl Measure {
    /// A figure of which less is better.
    #[must_use]
    pub fn cost(name: &str, figure: Figure) -> Measure {
        Measure { name: name.to_string(), figure, better: Better::Lower }
    }

    /// A figure of which more is better.
    #[must_use]
    pub fn gain(name: &str, figure: Figure) -> Measure {
        Measure { name: name.to_string(), figure, better: Better::Higher }
    }

    /// The elapsed time.
    #[must_use]
    pub fn elapsed() -> Measure {
        Measure::cost("elapsed", Figure::Elapsed)
    }

    /// What it is in reports.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.figure {
            Figure::Elapsed => "elapsed time".to_string(),
            Figure::DbTime => "DB time".to_string(),
            Figure::DbCpu => "DB CPU".to_string(),
            Figure::Event(name) => format!("time waited on {name}"),
            Figure::Count(name) | Figure::Bytes(name) => name.clone(),
            Figure::Rate(name) => format!("{name} a second"),
            Figure::EventShare(name) => format!("share of DB time waited on {name}"),
            Figure::StreamRate(name) => format!("throughput of {name}"),
            Figure::StreamTime(name) => format!("time of a request of {name}"),
            Figure::Measured(_) => self.name.clone(),
        }
    }

    /// The unit of [`Measure::value`].
    #[must_use]
    pub fn unit(&self) -> &str {
        match &self.figure {
            Figure::Elapsed | Figure::DbTime | Figure::DbCpu | Figure::Event(_) => "s",
            Figure::Count(_) => "",
            Figure::Bytes(_) => "MB",
            Figure::Rate(_) => "/s",
            Figure::EventShare(_) => "%",
            Figure::StreamRate(_) => "MB/s",
            Figure::StreamTime(_) => "ms",
            Figure::Measured(unit) => unit,
        }
    }

    /// The figure of a run; an event that nobody waited for took no time.
    #[must_use]
    pub fn value(&self, record: &Record) -> f64 {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let total = |name: &str, unit: Unit| {
            let found = record.statistics.iter().find(|row| row.name == *name && row.unit == unit);
            found.map_or(0.0, |row| row.total as f64)
        };
        match &self.figure {
            Figure::Elapsed => seconds(record.header.elapsed_ns),
            Figure::DbTime => seconds(record.header.db_time_ns),
            Figure::DbCpu => seconds(record.header.db_cpu_ns),
            Figure::Event(name) => {
                let waited = record.foreground_events.iter().find(|event| event.event == *name);
                seconds(waited.map_or(0, |event| event.time_ns))
            }
            Figure::Rate(name) => total(name, Unit::Count) / seconds(record.header.elapsed_ns.max(1)),
            Figure::EventShare(name) => {
                let waited = record.foreground_events.iter().find(|event| event.event == *name);
                let share = waited.map_or(0, |event| event.time_ns) as f64;
                100.0 * share / record.header.db_time_ns.max(1) as f64
            }
            Figure::StreamRate(name) => {
                let (bytes, ..) = stream(record, name);
                bytes as f64 / MEGABYTE / seconds(record.header.elapsed_ns.max(1))
            }
            Figure::StreamTime(name) => match stream(record, name) {
                (_, 0, _) => f64::NAN,
                (_, requests, time_ns) => time_ns as f64 / 1e6 / requests as f64,
            },
            Figure::Count(name) => total(name, Unit::Count),
            Figure::Bytes(name) => total(name, Unit::Bytes) / MEGABYTE,
            Figure::Measured(_) => {
                record.measures.iter().find(|row| row.name == self.name).map_or(f64::NAN, |row| row.value)
            }
        }
    }
}
