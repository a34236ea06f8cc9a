//! What a bundle's JSON files hold.

use crate::canary::Canary;
use crate::plan::{Plan, Until};
use crate::vocabulary::SettingFacts;
use crate::{LabError, host};
use plumb_calibrate::Calibration;
use plumb_events::clock;
use plumb_proof::design::Order;
use plumb_record::calendar::Moment;
use plumb_record::{Device, Host, Record, SCHEMA_VERSION, SCHEMA_VERSION_OLDEST};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How the work before a run came to rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// How long that took, nanoseconds.
    pub waited_ns: u64,
    /// Whether the devices were idle in the end; false when the bound was reached.
    pub idle: bool,
    /// Pages of the data files that stayed in the page cache.
    pub resident_pages: u64,
    /// Pages of the data files.
    pub total_pages: u64,
    /// Whether the data were made for this run alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_data: bool,
    /// What work that no treatment touches took just before the run; none in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Ended {
    /// It has a record.
    Finished,
    /// It crashed or refused to run.
    Failed {
        /// A sentence.
        reason: String,
    },
}

/// The raw record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1, in order of execution.
    pub number: u64,
    /// The name of its arm.
    pub arm: String,
    /// The index of its arm.
    pub arm_index: usize,
    /// Its block, from 1; none for a warm-up.
    pub block: Option<u64>,
    /// Its place in the block, from 1; 0 for the run that warms up a resumed study.
    pub position: u64,
    /// Its slot.
    pub slot: usize,
    /// When it began, nanoseconds from the study's start, pauses left out.
    pub start_ns: u64,
    /// What was before it.
    pub settled: Settled,
    /// How it ended.
    pub ended: Ended,
    /// The record of `docs/record.md`; none when the run failed.
    pub record: Option<Record>,
}

/// A figure of the calibration that holds for the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitFigure {
    /// Its name.
    pub name: String,
    /// The unit.
    pub unit: String,
    /// Median of its repeats.
    pub median: f64,
    /// The largest of its repeats or the upper end of its interval.
    pub high: f64,
}

impl LimitFigure {
    /// Those of a calibration.
    #[must_use]
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

/// Where a study ran, and by which program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The program.
    pub plumb_version: String,
    /// The revision it was built from.
    pub git_revision: Option<String>,
    /// What was studied, such as `the embedded engine`.
    pub target: String,
    /// The machine.
    pub host: Host,
    /// What lies under the paths.
    pub devices: Vec<Device>,
    /// The date of the calibration that holds for the device; none when there is none.
    pub calibration_date: Option<String>,
    /// What speaks against it, a sentence each: it is IN DOUBT where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration_doubts: Vec<String>,
    /// Its figures.
    pub limits: Vec<LimitFigure>,
    /// What is known of the settings that the study gives.
    pub settings: Vec<SettingFacts>,
    /// The study's start, nanoseconds since 1970.
    pub begin_ns: u64,
    /// The same, ISO 8601.
    pub begin_time: String,
    /// The command that began it.
    pub command_line: String,
    /// What the start of a command costs that does nothing, nanoseconds; none where runs start none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn_ns: Option<u64>,
}

impl Environment {
    /// Where a study of this target begins now.
    #[must_use]
    pub fn now(
        target: String,
        devices: Vec<Device>,
        calibration: Option<&Calibration>,
        command_line: &str,
    ) -> Environment {
        let begin = clock::wall();
        Environment {
            plumb_version: env!("CARGO_PKG_VERSION").to_string(),
            git_revision: option_env!("PLUMB_REVISION").map(str::to_string),
            target,
            host: host::describe(),
            devices,
            calibration_date: calibration.map(|found| found.environment.date.clone()),
            calibration_doubts: calibration.map(Calibration::doubts).unwrap_or_default(),
            limits: calibration.map(LimitFigure::of).unwrap_or_default(),
            settings: Vec::new(),
            begin_ns: u64::try_from(begin.as_nanos()).unwrap_or(u64::MAX),
            begin_time: Moment::of(begin).iso(),
            command_line: command_line.to_string(),
            spawn_ns: None,
        }
    }

    /// What differs here and now from where the study began, if it makes figures incomparable.
    #[must_use]
    pub fn differences(&self, now: &Environment) -> Vec<String> {
        let device = |of: &Environment| {
            let name =
                |device: &Device| format!("{} ({}) on {}", device.path, device.filesystem, device.device);
            of.devices.iter().map(name).collect::<Vec<_>>().join("; ")
        };
        let revision = |of: &Environment| of.git_revision.clone().unwrap_or_else(|| "unknown".to_string());
        let pairs = [
            ("version", self.plumb_version.clone(), now.plumb_version.clone()),
            ("revision", revision(self), revision(now)),
            ("target", self.target.clone(), now.target.clone()),
            ("host", self.host.name.clone(), now.host.name.clone()),
            ("CPUs", self.host.processors(), now.host.processors()),
            ("CPU model", self.host.cpu_model.clone(), now.host.cpu_model.clone()),
            ("kernel", self.host.kernel.clone(), now.host.kernel.clone()),
            ("device", device(self), device(now)),
        ];
        let different = pairs.into_iter().filter(|(_, then, now)| then != now);
        different.map(|(what, then, now)| format!("{what} was {then} and is {now}")).collect()
    }
}

/// Seed and order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderFile {
    /// The seed of the order.
    pub seed: u64,
    /// `shuffled` or `williams`.
    pub order: String,
    /// When the study stops.
    pub until: Until,
    /// The arms, by index.
    pub arms: Vec<String>,
    /// The arm that runs twice a block.
    pub reference: usize,
    /// The slots of the warm-up in order of execution.
    pub warm_up: Vec<usize>,
    /// The slots of every planned block in order of execution.
    pub blocks: Vec<Vec<usize>>,
}

impl OrderFile {
    /// That of a plan.
    #[must_use]
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

/// Why a study ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// All planned blocks ran.
    Planned,
    /// Every claim was decided.
    Decided,
    /// Another block would not have fitted the budget.
    Budget,
    /// Too many blocks failed.
    Failures,
    /// It was asked to.
    Interrupted,
    /// Interrupted, and then ended where it was.
    Ended,
}

/// How a study ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndFile {
    /// Why.
    pub stop: Stop,
    /// When, nanoseconds from its start, pauses left out.
    pub end_ns: u64,
}

/// A run's record from its text.
///
/// # Errors
/// When it is no such record, or of another version.
pub fn read(path: &Path, text: &str) -> Result<RunRecord, LabError> {
    let unreadable = |why: String| LabError::BundleRead { path: path.to_path_buf(), why };
    let (oldest, expected) = (SCHEMA_VERSION_OLDEST, SCHEMA_VERSION);
    // Before its fields, of which another version may have others.
    let versioned: Versioned = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    match versioned.record.map(|record| record.schema_version) {
        Some(found) if !(oldest..=expected).contains(&found) => Err(unreadable(format!(
            "the record has schema version {found}, and this program reads version {expected}: use the release that \
             wrote it"
        ))),
        _ => serde_json::from_str(text).map_err(|error| unreadable(error.to_string())),
    }
}

/// What every version of a run's record has.
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
    fn a_record_of_a_version_that_is_not_read_is_refused_by_its_number_and_not_by_a_field() {
        let text = r#"{"number": 1, "record": {"schema_version": 99, "sessions": [{"name": "p000"}]}}"#;
        let error = read(Path::new("runs/0001.json"), text).expect_err("another version");
        assert!(
            error.to_string().contains("the record has schema version 99, and this program reads"),
            "{error}"
        );
    }
}
