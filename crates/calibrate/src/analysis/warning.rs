//! Warnings that limit the meaning of a calibration's figures.

use plumb_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A limit of the figures' meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Another process used the device.
    OtherLoad {
        /// Rounds preceded by requests of others.
        busy_rounds: usize,
        /// Highest rate of others' requests before a round.
        requests_per_second: f64,
        /// Tasks during which others moved bytes at the device.
        tasks: usize,
        /// Highest rate of others' bytes during a task.
        bytes_per_second: f64,
    },
    /// The method was replaced by another.
    MethodReplaced { by: String, why: String, cure: String },
    /// Direct I/O does not work: all requests used the page cache.
    NotDirect { why: String },
    /// The file is shorter than requested.
    FileShort {
        /// Length as it was requested, bytes.
        wanted: u64,
        /// Length as it was made, bytes.
        made: u64,
    },
    /// Two paths lie on the same disk, so that together they cannot do more than one.
    SameDisk { disk: String, paths: [String; 2] },
    /// Requests of a ring fell back to kernel threads.
    RingWorkers {
        /// Number of tasks with such requests.
        tasks: usize,
    },
    /// The time ended before all tasks had been repeated often enough.
    TimeRanOut {
        /// Number of tasks with too few repeats.
        tasks: usize,
    },
    /// The repeats of main figures disagree.
    NotSettled {
        /// Names of the figures, with the reasons.
        figures: Vec<String>,
    },
    /// A cache may have given some figures.
    Cached {
        /// Number of tasks with an answer other than the device.
        tasks: usize,
        /// The reason for one of them.
        example: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::OtherLoad { busy_rounds, requests_per_second, tasks, bytes_per_second } => {
                write!(f, "another load used the device: ")?;
                if *busy_rounds > 0 {
                    write!(f, "up to {requests_per_second:.0} requests/s before {busy_rounds} rounds; ")?;
                }
                let rate = Rate(*bytes_per_second);
                write!(f, "up to {rate} during {}; repeat it on an idle device", counted(*tasks, "task"))
            }
            Warning::MethodReplaced { by, why, cure } => {
                write!(f, "io_uring does not work here, {by} took its place: {why}; {cure}")
            }
            Warning::NotDirect { why } => {
                write!(f, "all requests went through the page cache because direct I/O does not work: {why}")
            }
            Warning::FileShort { wanted, made } => write!(
                f,
                "the file has {} instead of {}: caches in front of the disk hide more of it",
                Bytes(*made).as_setting(),
                Bytes(*wanted).as_setting()
            ),
            Warning::SameDisk { disk, paths: [first, second] } => {
                write!(
                    f,
                    "{first} and {second} lie on one disk, {disk}: together they cannot do more than one"
                )
            }
            Warning::RingWorkers { tasks } => {
                write!(
                    f,
                    "during {} ring requests fell back to kernel threads (io-wq), which costs processor time",
                    counted(*tasks, "task")
                )
            }
            Warning::TimeRanOut { tasks } => {
                write!(
                    f,
                    "time ran out: fewer than 3 repeats of {}; allow more time",
                    counted(*tasks, "task")
                )
            }
            Warning::NotSettled { figures } => {
                let example = figures.first().map_or("", String::as_str);
                match figures.len() {
                    1 => write!(f, "1 figure has not settled: {example}"),
                    several => write!(f, "{several} figures have not settled, among them {example}"),
                }
            }
            Warning::Cached { tasks, example } => {
                write!(f, "a cache may have answered {}: {example}", counted(*tasks, "task"))
            }
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
