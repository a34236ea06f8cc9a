//! Measures, the figures of a record that runs are compared by.

use plumb_events::Unit;
use plumb_proof::verdict::Better;
use plumb_record::Record;
use serde::Serialize;

/// Source of a figure in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    Elapsed,
    /// CPU and waits of the foreground sessions.
    DbTime,
    DbCpu,
    /// CPU of the whole process, background and waits included.
    ProcessCpu,
    /// Waits of the foreground sessions for one event.
    Event(String),
    Count(String),
    Bytes(String),
    /// Share of DB time waited for one event, per cent.
    EventShare(String),
    /// A statistic per second of the elapsed time.
    Rate(String),
    /// Bytes of an I/O stream per second of the elapsed time.
    StreamRate(String),
    /// Mean time of a request of an I/O stream, from its record.
    StreamTime(String),
    /// A statistic that counts microseconds.
    Micros(String),
    /// A figure that the target measures itself, in this unit.
    Measured(String),
    /// Quotient or difference of two figures.
    Both(Box<Measure>, Join, Box<Measure>),
}

/// Operation on two figures of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// The first divided by the second.
    Per,
    /// The first minus the second, in the same unit.
    Minus,
}

impl Join {
    pub const ALL: [Join; 2] = [Join::Per, Join::Minus];

    /// Returns the word between two names in study files; no name contains it.
    pub const fn word(self) -> &'static str {
        match self {
            Join::Per => " per ",
            Join::Minus => " minus ",
        }
    }
}

/// A named figure with its better direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measure {
    pub name: String,
    pub figure: Figure,
    pub better: Better,
}

/// Units of figures of a target that are counted.
const COUNTED: [&str; 9] =
    ["B", "bytes", "rows", "blocks", "pages", "buffers", "requests", "files", "segments"];
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// Sums bytes, requests and nanoseconds of a stream.
fn stream(record: &Record, name: &str) -> (u64, u64, u64) {
    let own = record.io_functions.iter().filter(|row| row.function == name);
    own.flat_map(|row| [row.reads, row.writes]).fold((0, 0, 0), |(bytes, requests, time), tally| {
        // A run of a study knows all of its times: only an imported record may lack one.
        (bytes + tally.bytes, requests + tally.requests, time + tally.time_ns.unwrap_or(0))
    })
}

impl Measure {
    /// Returns a measure that improves by decreasing.
    pub fn cost(name: &str, figure: Figure) -> Measure {
        Measure { name: name.to_string(), figure, better: Better::Lower }
    }

    /// Returns a measure that improves by increasing.
    pub fn gain(name: &str, figure: Figure) -> Measure {
        Measure { name: name.to_string(), figure, better: Better::Higher }
    }

    /// Combines two measures into one that improves by decreasing; `None` for
    /// a difference of unequal units.
    pub fn both(name: &str, (first, join, second): (Measure, Join, Measure)) -> Option<Measure> {
        let has_one = join == Join::Per || first.unit() == second.unit();
        has_one.then(|| Measure::cost(name, Figure::Both(Box::new(first), join, Box::new(second))))
    }

    pub fn elapsed() -> Measure {
        Measure::cost("elapsed", Figure::Elapsed)
    }

    /// Returns the whole from which parts are subtracted: for `elapsed minus a
    /// minus b` the elapsed time.
    #[must_use]
    pub fn taken_from(&self) -> Option<&Measure> {
        let Figure::Both(first, Join::Minus, _) = &self.figure else { return None };
        Some(first.taken_from().unwrap_or(first))
    }

    /// Returns the subtracted parts in order.
    #[must_use]
    pub fn taken_off(&self) -> Vec<&Measure> {
        let Figure::Both(first, Join::Minus, part) = &self.figure else { return Vec::new() };
        let mut parts = first.taken_off();
        parts.push(part);
        parts
    }

    /// Returns the name used in reports.
    pub fn title(&self) -> String {
        match &self.figure {
            Figure::Elapsed => "elapsed time".to_string(),
            Figure::DbTime => "DB time".to_string(),
            Figure::DbCpu => "DB CPU".to_string(),
            Figure::ProcessCpu => "CPU of the process".to_string(),
            Figure::Event(name) => format!("time waited on {name}"),
            Figure::Count(name) | Figure::Bytes(name) => name.clone(),
            Figure::Rate(name) => format!("{name} a second"),
            Figure::EventShare(name) => format!("share of DB time waited on {name}"),
            Figure::StreamRate(name) => format!("throughput of {name}"),
            Figure::StreamTime(name) => format!("time of a request of {name}"),
            Figure::Micros(name) => name.replace(" (usec)", ""),
            Figure::Measured(_) => self.name.clone(),
            Figure::Both(first, join, second) => {
                let unit = if *join == Join::Per { second.unit() } else { "" };
                let space = if unit.is_empty() { "" } else { " " };
                format!("{}{}{unit}{space}{}", first.title(), join.word(), second.title())
            }
        }
    }

    pub fn unit(&self) -> &str {
        match &self.figure {
            Figure::Elapsed
            | Figure::DbTime
            | Figure::DbCpu
            | Figure::ProcessCpu
            | Figure::Event(_)
            | Figure::Micros(_) => "s",
            Figure::Count(_) => "",
            Figure::Bytes(_) => "MB",
            Figure::Rate(_) => "/s",
            Figure::EventShare(_) => "%",
            Figure::StreamRate(_) => "MB/s",
            Figure::StreamTime(_) => "ms",
            Figure::Measured(unit) => unit,
            Figure::Both(first, Join::Minus, _) => first.unit(),
            Figure::Both(_, Join::Per, _) => "",
        }
    }

    /// True if the figure is counted and not read from a clock, so that equal figures are equal.
    pub fn is_exact(&self) -> bool {
        match &self.figure {
            Figure::Count(_) | Figure::Bytes(_) => true,
            Figure::Measured(unit) => COUNTED.contains(&unit.as_str()),
            Figure::Both(first, _, second) => first.is_exact() && second.is_exact(),
            Figure::Elapsed
            | Figure::DbTime
            | Figure::DbCpu
            | Figure::ProcessCpu
            | Figure::Event(_)
            | Figure::EventShare(_)
            | Figure::Rate(_)
            | Figure::StreamRate(_)
            | Figure::StreamTime(_)
            | Figure::Micros(_) => false,
        }
    }

    /// Returns the figure of a run; an event without waits took no time.
    pub fn value(&self, record: &Record) -> f64 {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let total = |name: &str, unit: Unit| {
            let found = record.statistics.iter().find(|row| row.name == *name && row.unit == unit);
            found.map_or(0.0, |row| row.total as f64)
        };
        match &self.figure {
            Figure::Elapsed => seconds(record.header.elapsed_ns),
            Figure::DbTime => seconds(record.header.db_time()),
            Figure::DbCpu => seconds(record.header.db_cpu()),
            Figure::ProcessCpu => record.process.as_ref().map_or(f64::NAN, |used| seconds(used.cpu_ns)),
            Figure::Event(name) => {
                let waited = record.foreground_events.iter().find(|event| event.event == *name);
                seconds(waited.map_or(0, |event| event.time_ns))
            }
            Figure::Rate(name) => total(name, Unit::Count) / seconds(record.header.elapsed_ns.max(1)),
            Figure::EventShare(name) => {
                let waited = record.foreground_events.iter().find(|event| event.event == *name);
                let share = waited.map_or(0, |event| event.time_ns) as f64;
                100.0 * share / record.header.db_time().max(1) as f64
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
            Figure::Micros(name) => total(name, Unit::Count) / 1e6,
            Figure::Both(first, Join::Per, second) => first.value(record) / second.value(record),
            Figure::Both(first, Join::Minus, second) => first.value(record) - second.value(record),
            Figure::Measured(_) => {
                record.measures.iter().find(|row| row.name == self.name).map_or(f64::NAN, |row| row.value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::StatisticRow;

    #[test]
    fn a_figure_may_be_taken_by_another_or_without_it() {
        let mut record = plumb_record::fixture::record(1_000_000_000, 1);
        let row = |name: &str, unit, total| StatisticRow { name: name.to_string(), unit, total };
        record.statistics = vec![
            row("physical writes from cache", Unit::Count, 30),
            row("redo size", Unit::Bytes, 10 << 20),
            row("redo write time (usec)", Unit::Count, 250_000),
        ];
        let blocks = || Measure::cost("", Figure::Count("physical writes from cache".to_string()));
        let size = || Measure::cost("", Figure::Bytes("redo size".to_string()));
        let writes = || Measure::cost("", Figure::Micros("redo write time (usec)".to_string()));
        let per = Measure::both("", (blocks(), Join::Per, size())).expect("two units");
        assert_eq!((per.value(&record), per.unit()), (3.0, ""));
        assert_eq!(per.title(), "physical writes from cache per MB redo size");
        let rest = Measure::both("", (Measure::elapsed(), Join::Minus, writes())).expect("both are times");
        assert_eq!((rest.value(&record), rest.unit()), (0.75, "s"));
        assert_eq!(rest.title(), "elapsed time minus redo write time");
        assert_eq!(Measure::both("", (blocks(), Join::Minus, size())), None);
        assert_eq!(per.taken_from(), None);
        assert_eq!(rest.taken_from(), Some(&Measure::elapsed()));
        let less = Measure::both("", (rest, Join::Minus, writes())).expect("all are times");
        assert_eq!(less.taken_from(), Some(&Measure::elapsed()));
        assert_eq!(less.taken_off(), [&writes(), &writes()]);
    }
}
