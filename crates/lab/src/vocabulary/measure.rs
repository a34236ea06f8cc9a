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

impl Measure {
    /// A figure of which less is better.
    #[must_use]
    pub fn cost(name: &str, figure: Figure) -> Measure {
        Measure { name: name.to_string(), figure, better: Better::Lower }
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
            Figure::Count(name) => total(name, Unit::Count),
            Figure::Bytes(name) => total(name, Unit::Bytes) / MEGABYTE,
            Figure::Measured(_) => {
                record.measures.iter().find(|row| row.name == self.name).map_or(f64::NAN, |row| row.value)
            }
        }
    }
}
