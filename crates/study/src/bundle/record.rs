//! Contents of a bundle's JSON files.

use crate::canary::Canary;
use crate::plan::{Plan, Until};
use crate::vocabulary::SettingFacts;
use crate::{StudyError, machine};
use plumb_calibrate::Calibration;
use plumb_events::clock;
use plumb_proof::design::Order;
use plumb_record::calendar::Moment;
use plumb_record::{Build, Device, Host, Record, SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// State of the machine before a run, after settling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Time until the machine was settled, nanoseconds.
    pub waited_ns: u64,
    /// False if the devices were still busy when the bound was reached.
    pub idle: bool,
    /// Pages of the data files that stayed in the page cache.
    pub resident_pages: u64,
    /// All pages of the data files.
    pub total_pages: u64,
    /// True if the data were made for this run alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_data: bool,
    /// Times of the canary just before the run; `None` in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Ended {
    Finished,
    Failed { reason: String },
}

/// Raw record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1, in order of execution.
    pub number: u64,
    pub arm: String,
    pub arm_index: usize,
    /// Block, from 1; `None` for a warm-up.
    pub block: Option<u64>,
    /// Place in the block, from 1; 0 for the run that warms up a resumed study.
    pub position: u64,
    pub slot: usize,
    /// Start in nanoseconds from the study's start, without pauses.
    pub start_ns: u64,
    pub settled: Settled,
    pub ended: Ended,
    /// Record of `docs/record.md`; `None` if the run failed.
    pub record: Option<Record>,
}

/// Figure of the calibration valid for the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitFigure {
    pub name: String,
    pub unit: String,
    pub median: f64,
    /// The largest of its repeats, or the upper end of its interval.
    pub high: f64,
}

impl LimitFigure {
    pub fn of(calibration: &Calibration) -> Vec<LimitFigure> {
        let limit = |figure: &plumb_calibrate::MainFigure| LimitFigure {
            name: figure.kind.name().to_string(),
            unit: figure.kind.unit().to_string(),
            median: figure.estimate.median,
            high: figure.estimate.high,
        };
        calibration.figures.iter().map(limit).collect()
    }
}

/// The machine and the program of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub plumb_version: String,
    /// Revision of the sources built.
    pub git_revision: Option<String>,
    /// Profile that the program was compiled with, and the engine's opt-level if that is low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The subject, such as `the embedded engine`.
    pub target: String,
    pub host: Host,
    /// Devices under the paths of the run.
    pub devices: Vec<Device>,
    /// Date of the calibration valid for the device; `None` without one.
    pub calibration_date: Option<String>,
    /// Objections to the calibration, a sentence each: any of them puts it IN DOUBT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration_doubts: Vec<String>,
    pub limits: Vec<LimitFigure>,
    /// Facts about the settings that the study gives.
    pub settings: Vec<SettingFacts>,
    /// Start of the study, nanoseconds since 1970.
    pub begin_ns: u64,
    pub begin_time: String,
    /// Command line of the first start.
    pub command_line: String,
    /// Steps of the target between two runs; `None` if they are those of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_runs: Option<String>,
    /// Cost of starting a command that does nothing, nanoseconds; `None` if runs start no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn_ns: Option<u64>,
}

impl Environment {
    /// Describes the environment of a study of this target that starts now.
    pub fn now(
        target: String,
        devices: Vec<Device>,
        calibration: Option<&Calibration>,
        command_line: &str,
    ) -> Environment {
        let (begin, build) = (clock::wall(), Build::this());
        Environment {
            plumb_version: build.version.to_string(),
            git_revision: build.revision.map(str::to_string),
            profile: build.profile(),
            target,
            host: machine::describe(),
            devices,
            calibration_date: calibration.map(|found| found.environment.date.clone()),
            calibration_doubts: calibration.map(Calibration::doubts).unwrap_or_default(),
            limits: calibration.map(LimitFigure::of).unwrap_or_default(),
            settings: Vec::new(),
            begin_ns: u64::try_from(begin.as_nanos()).unwrap_or(u64::MAX),
            begin_time: Moment::of(begin).iso(),
            command_line: command_line.to_string(),
            between_runs: None,
            spawn_ns: None,
        }
    }

    /// Lists differences from the start of the study that make figures incomparable.
    pub fn differences(&self, now: &Environment) -> Vec<String> {
        let device = |of: &Environment| {
            let name =
                |device: &Device| format!("{} ({}) on {}", device.path, device.filesystem, device.device);
            of.devices.iter().map(name).collect::<Vec<_>>().join("; ")
        };
        let revision = |of: &Environment| of.git_revision.clone().unwrap_or_else(|| "unknown".to_string());
        let profile = |of: &Environment| of.profile.clone().unwrap_or_else(|| "unknown".to_string());
        let cpus = |of: &Environment| of.host.cpus.map_or("unknown".to_string(), |cpus| cpus.to_string());
        let pairs = [
            ("version", self.plumb_version.clone(), now.plumb_version.clone()),
            ("revision", revision(self), revision(now)),
            ("profile", profile(self), profile(now)),
            ("target", self.target.clone(), now.target.clone()),
            ("host", self.host.name.clone(), now.host.name.clone()),
            ("CPUs", cpus(self), cpus(now)),
            ("CPU model", self.host.cpu_model.clone(), now.host.cpu_model.clone()),
            ("kernel", self.host.kernel.clone(), now.host.kernel.clone()),
            ("device", device(self), device(now)),
        ];
        let different = pairs.into_iter().filter(|(_, then, now)| then != now);
        different.map(|(what, then, now)| format!("{what} was {then} and is {now}")).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderFile {
    pub seed: u64,
    pub order: String,
    pub until: Until,
    pub arms: Vec<String>,
    /// The arm that runs twice per block.
    pub reference: usize,
    /// Slots of the warm-up in order of execution.
    pub warm_up: Vec<usize>,
    /// Slots of every planned block in order of execution.
    pub blocks: Vec<Vec<usize>>,
}

impl OrderFile {
    pub fn of(plan: &Plan) -> OrderFile {
        OrderFile {
            seed: plan.schedule.seed,
            order: match plan.study.order {
                Order::Shuffled => "shuffled".to_string(),
                Order::Williams => "williams".to_string(),
            },
            until: plan.until,
            arms: (0..plan.design.arms.len()).map(|arm| plan.arm_name(arm)).collect(),
            reference: plan.schedule.reference,
            warm_up: plan.schedule.block(0),
            blocks: (1..=plan.study.blocks).map(|block| plan.schedule.block(block)).collect(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    Planned,
    Decided,
    /// Another block would not have fitted the budget.
    Budget,
    Failures,
    Interrupted,
    /// Interrupted, then ended without resuming.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndFile {
    pub stop: Stop,
    /// Time of the end in nanoseconds from the start, without pauses.
    pub end_ns: u64,
}

/// Parses a run's record and checks its version. Fails on an unsupported version.
pub fn read(path: &Path, text: &str) -> Result<RunRecord, StudyError> {
    let unreadable = |why: String| StudyError::BundleRead { path: path.to_path_buf(), why };
    let (oldest, expected) = (SCHEMA_VERSION_OLDEST, SCHEMA_VERSION);
    // The version is read first, because another version may have other fields.
    let versioned: Versioned = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    match versioned.record.map(|record| record.schema_version) {
        Some(found) if !(oldest..=expected).contains(&found) => Err(unreadable(format!(
            "the record has schema version {found}, and this program reads version {expected}: use the release that \
             wrote it"
        ))),
        _ => serde_json::from_str(text).map_err(|error| unreadable(error.to_string())),
    }
}

/// Fields that every version of a record has.
#[derive(Deserialize)]
struct Versioned {
    record: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_an_unsupported_version_is_rejected_by_number() {
        let text = r#"{"number": 1, "record": {"schema_version": 99, "sessions": [{"name": "p000"}]}}"#;
        let error = read(Path::new("runs/0001.json"), text).expect_err("another version");
        assert!(
            error.to_string().contains("the record has schema version 99, and this program reads"),
            "{error}"
        );
    }
}
