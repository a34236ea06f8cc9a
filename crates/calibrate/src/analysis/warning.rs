//! Warnings: what limits the meaning of a calibration's figures.

use plumb_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that limits what the figures mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Another process used the device.
    OtherLoad {
        /// Rounds before which its requests were seen.
        busy_rounds: usize,
        /// At most so many a second.
        requests_per_second: f64,
        /// Tasks during which the device moved bytes that were not ours.
        tasks: usize,
        /// At most so many a second.
        bytes_per_second: f64,
    },
    MethodReplaced {
        by: String,
        why: String,
        cure: String,
    },
    /// Direct I/O does not work: all went through the page cache.
    NotDirect {
        why: String,
    },
    /// The file became shorter than asked for.
    FileShort {
        wanted: u64,
        made: u64,
    },
    /// Requests of a ring fell back to kernel threads.
    RingWorkers {
        tasks: usize,
    },
    /// Time ran out before all tasks had been repeated often enough.
    TimeRanOut {
        tasks: usize,
    },
    /// Main figures whose repeats disagree.
    NotSettled {
        figures: Vec<String>,
    },
    /// Figures that a cache may have given.
    Cached {
        /// Tasks whose verdict is not the device.
        tasks: usize,
        /// What one of them showed.
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
