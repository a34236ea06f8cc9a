//! Circumstances of a run: use of the machine by others, and caches that answered instead of the
//! device.
//!
//! A run whose checks pass and whose receipts hold did the requested work. Its time may still
//! depend on other work, a quota or a cache. Each circumstance compares one figure with one
//! threshold. `disturbance` computes them, and findings, headlines and studies read nothing else.

use super::Record;
use serde::{Deserialize, Serialize};

/// A judged figure of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Circumstance {
    pub fact: Fact,
    /// The figure, a share of a whole that `evidence` names; above 1 if it exceeds a limit.
    pub share: f64,
    /// Share from which on the run is doubtful.
    pub threshold: f64,
    /// True if the share reaches the threshold and the counts exceed noise.
    pub doubtful: bool,
    /// The counts behind the figure, in a sentence.
    pub evidence: String,
}

/// Kind of a circumstance, in the order of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// I/O of other processes on the device of the run.
    Device,
    /// CPU time of other processes, and the run's own time without a processor.
    Processors,
    /// CPU time that the hypervisor gave to other guests.
    Steal,
    /// Periods in which a control group's quota of CPU time was exhausted.
    Quota,
    /// Time in which tasks waited for memory.
    Memory,
    /// Work of other clients of the server.
    Clients,
    /// Bytes of reads answered by the page cache.
    PageCache,
    /// Bytes that a layer below the file system answered without the disk.
    CacheBelow,
    /// A rate above the device's own.
    AboveDevice,
}

impl Fact {
    /// Returns the word of a headline, and its sentence.
    pub const fn words(self) -> (&'static str, &'static str) {
        const DISTURBED: &str = "DISTURBED";
        const NOT_THE_DEVICE: &str = "NOT THE DEVICE";
        match self {
            Fact::Device => (DISTURBED, "others used the device"),
            Fact::Processors => (DISTURBED, "others used the processors"),
            Fact::Steal => (DISTURBED, "the hypervisor gave CPU time to others"),
            Fact::Quota => (DISTURBED, "a CPU quota stopped it"),
            Fact::Memory => (DISTURBED, "memory was short"),
            Fact::Clients => (DISTURBED, "other clients used the server"),
            Fact::PageCache => (NOT_THE_DEVICE, "the page cache answered reads"),
            Fact::CacheBelow => (NOT_THE_DEVICE, "a layer below the file system answers"),
            Fact::AboveDevice => (NOT_THE_DEVICE, "it was faster than the device"),
        }
    }

    /// True for facts that slowed the run; false for caches and devices that answered too fast.
    pub fn is_disturbance(self) -> bool {
        self.words().0 == Fact::Device.words().0
    }

    /// Returns advice against the circumstance.
    pub const fn advice(self) -> &'static str {
        match self {
            Fact::Device | Fact::Processors | Fact::Steal => {
                "repeat the run at a quieter time before comparing it with another"
            }
            Fact::Quota => {
                "raise the quota (docker: --cpus; systemd: CPUQuota), or judge by it: more servers or another method only \
                 use it up sooner"
            }
            Fact::Memory => "lower sort_area_size or db_cache_size, or end what else needs memory",
            Fact::Clients => "keep other clients off the server while it runs",
            Fact::PageCache => {
                "this measures memory: make the data larger than memory, or use filesystemio_options=setall"
            }
            Fact::CacheBelow => {
                "figures are those of that layer: use a file system on a device of its own, or `losetup --direct-io=on`"
            }
            Fact::AboveDevice => {
                "a cache may have answered for the device: look for one, or measure the device again"
            }
        }
    }
}

impl Record {
    /// Returns the circumstances that make the run doubtful.
    pub fn doubtful(&self) -> impl Iterator<Item = &Circumstance> {
        self.circumstances.iter().flatten().filter(|circumstance| circumstance.doubtful)
    }

    /// True if one of these facts makes the run doubtful.
    pub fn is_doubtful(&self, facts: &[Fact]) -> bool {
        self.doubtful().any(|circumstance| facts.contains(&circumstance.fact))
    }
}

/// Capitalises the first letter of a sentence.
pub fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the words of a headline for some facts, each with its sentences: `DISTURBED (others used
/// the device; memory was short)`.
pub fn headline(facts: &[Fact]) -> Vec<String> {
    let mut words: Vec<(&str, Vec<&str>)> = Vec::new();
    for fact in facts {
        let (word, why) = fact.words();
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, sentences)) => sentences.push(why),
            None => words.push((word, vec![why])),
        }
    }
    words.into_iter().map(|(word, why)| format!("{word} ({})", why.join("; "))).collect()
}
