//! Circumstances of a run: what others had of the machine meanwhile, and what answered instead of
//! the device.
//!
//! A run whose checks pass and whose receipts hold did its work as it was told. Its time may still
//! be that of a neighbour, of a quota or of a cache. Each circumstance is one figure against one
//! threshold; `disturbance` fills them, and findings, headlines and studies read nothing else.

use super::Record;
use serde::{Deserialize, Serialize};

/// One reading of the machine, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Circumstance {
    pub fact: Fact,
    /// Its figure, a share of a whole that `evidence` names; above 1 for what exceeds a limit.
    pub share: f64,
    /// The share from which on the run is doubtful.
    pub threshold: f64,
    /// True if the share is there, and what was counted is more than noise.
    pub doubtful: bool,
    pub evidence: String,
}

/// What is read of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// I/O of other processes on the device of the run.
    Device,
    /// CPU time of other processes, and the run's own time without a processor.
    Processors,
    /// CPU time that the hypervisor gave to other guests.
    Steal,
    /// Periods in which a control group's quota of CPU time was used up.
    Quota,
    /// Time in which tasks waited for memory.
    Memory,
    /// Bytes that were read and came from the page cache.
    PageCache,
    /// Bytes that a layer below the file system answered without the disk.
    CacheBelow,
    /// A rate above the device's own.
    AboveDevice,
}

impl Fact {
    /// The word of a headline, and the sentence behind it.
    #[must_use]
    pub const fn words(self) -> (&'static str, &'static str) {
        const DISTURBED: &str = "DISTURBED";
        const NOT_THE_DEVICE: &str = "NOT THE DEVICE";
        match self {
            Fact::Device => (DISTURBED, "others used the device"),
            Fact::Processors => (DISTURBED, "others used the processors"),
            Fact::Steal => (DISTURBED, "the hypervisor gave CPU time to others"),
            Fact::Quota => (DISTURBED, "a CPU quota stopped it"),
            Fact::Memory => (DISTURBED, "memory was short"),
            Fact::PageCache => (NOT_THE_DEVICE, "the page cache answered reads"),
            Fact::CacheBelow => (NOT_THE_DEVICE, "a layer below the file system answers"),
            Fact::AboveDevice => (NOT_THE_DEVICE, "it was faster than the device"),
        }
    }

    /// True if others, and not the run's own place, made it doubtful.
    #[must_use]
    pub fn is_disturbance(self) -> bool {
        self.words().0 == Fact::Device.words().0
    }

    /// What to do about it.
    #[must_use]
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
            Fact::PageCache => {
                "this measures memory: make the data larger than memory, or use filesystemio_options=setall"
            }
            Fact::CacheBelow => {
                "figures are those of that layer: use a file system on a device of its own, or `losetup --direct-io=on`"
            }
            Fact::AboveDevice => {
                "something above or beside the device answered: look for a cache, or measure the device again"
            }
        }
    }
}

impl Record {
    /// The circumstances that make the run doubtful.
    pub fn doubtful(&self) -> impl Iterator<Item = &Circumstance> {
        self.circumstances.iter().flatten().filter(|circumstance| circumstance.doubtful)
    }

    /// True if one of these facts makes the run doubtful.
    #[must_use]
    pub fn is_doubtful(&self, facts: &[Fact]) -> bool {
        self.doubtful().any(|circumstance| facts.contains(&circumstance.fact))
    }
}

/// The sentence with a capital.
#[must_use]
pub fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The words of a headline for some facts, each with its sentences: `DISTURBED (others used the
/// device; memory was short)`.
#[must_use]
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
