//! PostgreSQL as a kind of target: its settings, workloads and measures.
//!
//! Settings with evidence of their own are rows of [`receipts`](crate::receipts). Any other name
//! that the installed server lists is taken, with the server's word as its receipt. A kept study is
//! read on any machine, so only a new one asks the installed server.
//!
//! A study for the engine runs on a server if its file has a table `[postgres]`. The keys in it
//! replace those of the file; nothing is translated by guess.

use crate::evidence::PAGE_CACHE;
use crate::foresight;
use crate::installation::{self, Installation};
use crate::receipts::{is_on, rule_of};
use crate::run::WORDS;
use crate::workload::{WORKLOADS, parameter};
use plumb_study::vocabulary::{
    Assignment, Figure, Here, Join, Made, Measure, Refusal, Seen, SettingFacts, TakesEffect, TargetKind,
    Vocabulary, Words,
};
use plumb_units::RowCount;
use plumb_workload::{Work, Workload};
use std::path::Path;
use std::process::Command;
use toml::de::Deserializer;

/// Name of the kind of target, of its table in study files, and of its runner.
pub const NAME: &str = "postgres";

/// PostgreSQL as a kind of target: all studies share its vocabulary.
#[derive(Debug, Clone, Copy)]
pub struct Postgres;

impl TargetKind for Postgres {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    fn replaces(&self) -> Option<&'static str> {
        Some(NAME)
    }

    fn vocabulary(&self, _: Deserializer<'_>) -> Result<Vocabulary, plumb_study::vocabulary::Refusal> {
        Ok(Vocabulary::new(Postgres))
    }
}

/// Statistics that every run has, by their kind of figure.
const BYTES: [&str; 6] = [
    "physical read total bytes",
    "physical write total bytes",
    "read call bytes",
    "write call bytes",
    "redo size",
    "temporary file bytes",
];
const COUNTS: [&str; 11] = [
    "user commits",
    "parallel workers",
    "control file changes",
    "redo synch writes",
    "execute count",
    "session logical reads",
    "buffer cache hits",
    "physical reads",
    "table scan rows gotten",
    "physical reads direct temporary tablespace",
    "physical writes direct temporary tablespace",
];

impl Words for Postgres {
    fn target(&self) -> &'static str {
        NAME
    }

    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String> {
        let (name, value) = (name.trim(), value.trim());
        if let Some(parameter) = parameter(name) {
            let value = parameter.parse(value).map_err(|why| format!("{origin}: {name}: {why}"))?;
            let value = parameter.shown(value).to_string();
            return Ok((facts(parameter.name, TakesEffect::Session, Seen::Inside), value));
        }
        if name == WORDS[0] {
            return Ok((facts(name, TakesEffect::Build, Seen::Outside), value.to_string()));
        }
        if name == WORDS[2] {
            return match value.is_empty() {
                true => Err(format!("{origin}: {name}: expected a directory")),
                false => Ok((
                    SettingFacts { about_io: true, ..facts(name, TakesEffect::Creation, Seen::Outside) },
                    value.to_string(),
                )),
            };
        }
        if name == WORDS[3] && !PAGE_CACHE.contains(&value) {
            return Err(format!("{origin}: {name}: expected {}, found {value:?}", PAGE_CACHE.join(" or ")));
        }
        let plain =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_.".contains(letter);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!(
                "{origin}: {name:?}: a setting of PostgreSQL has small letters, digits, _ and ."
            ));
        }
        if name == "huge_pages" && value == "try" {
            return Err(format!(
                "{origin}: huge_pages = try falls back without a word, so that it is no treatment; it takes on or off"
            ));
        }
        let value = if is_truth(name) {
            (if is_on(value) { "on" } else { "off" }).to_string()
        } else {
            value.to_string()
        };
        let known = rule_of(name);
        let facts = match known {
            Some(rule) => {
                SettingFacts { about_io: rule.about_io, ..facts(name, rule.takes_effect, rule.seen()) }
            }
            None => facts(name, TakesEffect::Start, Seen::Inside),
        };
        Ok((facts, value))
    }

    /// Asks the installed server about names without a rule. Without a server the study's target
    /// cannot be opened, and says so.
    fn require_new(&self, settings: &[&Assignment]) -> Result<(), Refusal> {
        let own = |name: &str| rule_of(name).is_some() || parameter(name).is_some() || WORDS.contains(&name);
        let unknown: Vec<&str> =
            settings.iter().map(|set| set.name.as_str()).filter(|name| !own(name)).collect();
        let Some(first) = unknown.first() else { return Ok(()) };
        let named = settings.iter().find(|set| set.name == WORDS[0]).map(|set| set.value.as_str());
        let Ok(found) = Installation::find(named) else { return Ok(()) };
        let listed = installation::asked(Command::new(found.program("postgres")).arg("--describe-config"));
        let listed = listed.unwrap_or_default();
        let is_listed = |name: &&str| listed.lines().any(|line| line.split('\t').next() == Some(*name));
        match unknown.iter().find(|name| !is_listed(name)) {
            None => Ok(()),
            Some(name) => Err(Refusal {
                place: 0..0,
                what: format!(
                    "{name}: PostgreSQL {} has no such setting; a table [postgres] in the study's file says what replaces {} \
                     there, and {}",
                    found.major,
                    if name == first { "it" } else { first },
                    self.settings()
                ),
            }),
        }
    }

    fn settings(&self) -> String {
        "`postgres --describe-config` lists the server's settings".to_string()
    }

    /// Asks the programs of each server of the study, because names and values depend on version
    /// and build.
    fn impossible(&self, level: &[Assignment], study: &[&Assignment]) -> Option<String> {
        foresight::impossible(level, study)
    }

    fn here(&self, settings: &[&Assignment], path: &Path) -> Here {
        foresight::here(settings, path)
    }

    /// Rejects settings that the server would refuse together.
    fn consistent(&self, settings: &[Assignment]) -> Result<(), String> {
        let value = |name: &str| settings.iter().find(|set| set.name == name).map(|set| set.value.as_str());
        match (value("io_method"), value("io_workers")) {
            (Some(method), Some(_)) if method != "worker" => Err(format!(
                "io_workers acts only with io_method = worker, found io_method = {method}; leave one out"
            )),
            _ => Ok(()),
        }
    }

    fn workloads(&self) -> &'static [&'static Workload] {
        WORKLOADS
    }

    fn measure(&self, name: &str) -> Option<Measure> {
        if let Some((name_of, count)) = name.strip_suffix("/s").zip(name.strip_suffix("/s")) {
            let known = COUNTS.contains(&name_of);
            return known.then(|| Measure::gain(name, Figure::Rate(count.to_string())));
        }
        if let Some(event) = name.strip_prefix("share of ") {
            return is_event(event).then(|| Measure::cost(name, Figure::EventShare(event.to_string())));
        }
        let figure = match name {
            "elapsed" => Figure::Elapsed,
            "db time" => Figure::DbTime,
            "db cpu" => Figure::DbCpu,
            "process cpu" => Figure::ProcessCpu,
            _ if BYTES.contains(&name) => Figure::Bytes(name.to_string()),
            _ if COUNTS.contains(&name) => Figure::Count(name.to_string()),
            _ if is_event(name) => Figure::Event(name.to_string()),
            _ => {
                return Join::ALL.into_iter().find_map(|join| {
                    let (first, second) = name.rsplit_once(join.word())?;
                    Measure::both(name, (self.measure(first)?, join, self.measure(second)?))
                });
            }
        };
        Some(Measure::cost(name, figure))
    }

    fn measures(&self) -> String {
        format!(
            "elapsed, db time, db cpu, process cpu, {}, {}, a count with /s behind it, a wait event as the server spells it \
             (DataFileRead), `share of` one, or two of them as A per B or A minus B",
            BYTES.join(", "),
            COUNTS.join(", ")
        )
    }

    fn sections(&self) -> String {
        String::new()
    }

    fn between_runs(&self, _: &[&Assignment]) -> String {
        "the server stopped, its files were made durable and dropped from the page cache, the block device was waited for \
         until nothing moved on it, for 2 s at most, and the server started with the settings of the arm"
            .to_string()
    }

    fn not_randomised(&self, made: Made<'_>) -> String {
        let files = match made {
            Made::EachRun => "nor the rows; each run has a data directory of its own".to_string(),
            Made::Once([]) => "the rows, nor the data directory, made once for all arms".to_string(),
            Made::Once(factors) => {
                format!(
                    "the rows, nor the data directories, made once for each level of {}",
                    factors.join(" and ")
                )
            }
        };
        format!("only the order of runs within blocks was drawn; not the machine, the day, {files}")
    }

    fn not_tested(&self, work: Option<&Work>) -> String {
        let rows = work.map_or(0, Work::rows);
        format!(
            "Tables of other sizes than {} rows, other versions and builds of the server than those under Environment.",
            RowCount(rows)
        )
    }

    fn parts(&self) -> (&'static str, &'static str) {
        (
            "DB CPU",
            "each part of the time in which sessions and parallel workers were not idle, divided by the average number of \
             them that was active; CPU and run queue are the kernel's, waits are divided by samples; means over the counted runs",
        )
    }
}

fn facts(name: &str, takes_effect: TakesEffect, receipt: Seen) -> SettingFacts {
    SettingFacts { name: name.to_string(), takes_effect, about_io: false, receipt }
}

/// True for a setting that initdb takes as an option, which has no canonical form of the server's.
fn is_truth(name: &str) -> bool {
    ["data_checksums", WORDS[1]].contains(&name)
}

/// True for a name in the form of the server's wait events.
fn is_event(name: &str) -> bool {
    name == crate::assemble::NO_EVENT
        || name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric())
}
