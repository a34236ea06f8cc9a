//! Simulated records, environments and a target, for tests of everything after a run.

use crate::embedded::Engine;
use plumb_events::Cancel;
use plumb_record::Record;
use plumb_study::StudyError;
use plumb_study::bundle::{Bundle, Environment, Reservation, Settled, Stop};
use plumb_study::canary::Canary;
use plumb_study::definition::{Study, parse};
use plumb_study::execution::execute;
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::{NoRecord, Preparation, Target};
use plumb_study::vocabulary::Assignment;
use plumb_study::{Observer, Stage};
use plumb_units::Nanos;
use std::path::Path;

/// Environment of a study without runs.
pub fn environment() -> Environment {
    Environment {
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        git_revision: None,
        profile: None,
        target: "made-up figures".to_string(),
        host: plumb_record::fixture::host(),
        devices: Vec::new(),
        calibration_doubts: Vec::new(),
        calibration_date: None,
        limits: Vec::new(),
        settings: Vec::new(),
        begin_ns: 1_767_225_600_000_000_000,
        begin_time: "2026-01-01T00:00:00Z".to_string(),
        command_line: "plumb study".to_string(),
        between_runs: None,
        spawn_ns: None,
    }
}

/// Returns the record or failure of a simulated run, from the number of runs
/// before it and its settings.
pub type Script = Box<dyn FnMut(usize, &[Assignment]) -> Result<Record, NoRecord>>;

/// A target that does no work.
pub struct Scripted {
    /// Record or failure of each run.
    pub script: Script,
    /// Number of runs so far.
    pub runs: usize,
    /// Settling and canary before each run.
    pub settled: Settled,
}

impl Scripted {
    /// A target whose files are not in the page cache.
    pub fn new(script: impl FnMut(usize, &[Assignment]) -> Result<Record, NoRecord> + 'static) -> Scripted {
        let settled =
            Settled { waited_ns: 1, idle: true, resident_pages: 0, total_pages: 100, ..Settled::default() };
        Scripted { script: Box::new(script), runs: 0, settled }
    }
}

impl Target for Scripted {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        Ok(environment())
    }

    fn prepare(&mut self, _: &Preparation<'_>) -> Result<(), StudyError> {
        Ok(())
    }

    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, StudyError> {
        Ok(self.settled)
    }

    /// Constant speed of the machine.
    fn sing(&self) -> Canary {
        Canary { cpu_ns: 3_000_000, read_ns: None }
    }

    fn run(&mut self, settings: &[Assignment], _: &Cancel) -> Result<Record, NoRecord> {
        self.runs += 1;
        (self.script)(self.runs - 1, settings)
    }
}

/// Two factors, a claim of each kind.
pub const STUDY: &str = r#"
name = "made-up"
title = "A study of made-up runs"
question = "What follows from figures whose truth is known?"
workload = "large-sort"
rows = 1000
blocks = 10

[[factor]]
name = "direct"
setting = "sort_direct_writes"
levels = ["FALSE", "TRUE"]

[[factor]]
name = "area"
setting = "sort_area_size"
levels = ["1M", "2M"]

[[claim]]
name = "direct"
text = "Direct writes make it faster."
factor = "direct"
from = "FALSE"
to = "TRUE"
at = { area = "1M" }
expect = "faster by at least 10%"

[[claim]]
name = "area"
text = "The area does not matter."
factor = "area"
from = "1M"
to = "2M"
expect = "equal within 5%"

[[claim]]
name = "both"
text = "The effects simply multiply."
factor = "direct"
from = "FALSE"
to = "TRUE"
with = { factor = "area", from = "1M", to = "2M" }
expect = "equal within 5%"
"#;

/// An observer that ignores every stage.
#[derive(Debug)]
pub struct Nobody;

impl Observer for Nobody {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// The study of simulated runs.
pub fn study() -> Study {
    parse("made-up.toml", STUDY, &[&Engine]).expect("a study that is well formed")
}

/// The plan of that study with a seed.
pub fn plan(seed: u64) -> Plan {
    Plan::new(study(), PlanOptions::default(), Until::Blocks, seed).expect("a design")
}

/// A new bundle of a plan.
pub fn bundle(directory: &Path, plan: &Plan) -> Bundle {
    let mut environment = environment();
    environment.settings = plan.setting_facts();
    let reserved = Reservation::named(directory).expect("an empty directory");
    Bundle::create(reserved, plan, environment).expect("a bundle can be written")
}

/// Runs a plan to its end.
pub fn run(bundle: &mut Bundle, target: &mut Scripted) -> Result<Stop, StudyError> {
    run_within(bundle, target, None)
}

/// Runs a plan to its end, or until the budget is spent.
pub fn run_within(
    bundle: &mut Bundle,
    target: &mut Scripted,
    budget: Option<Nanos>,
) -> Result<Stop, StudyError> {
    execute(bundle, target as &mut dyn Target, budget, &Cancel::default(), &Nobody)
}

/// Random numbers between 0 and 1 from a seed (splitmix64), for noise.
#[derive(Debug)]
pub struct Noise(u64);

impl Noise {
    /// Starts a sequence from a seed.
    pub fn new(seed: u64) -> Noise {
        Noise(seed)
    }

    /// Draws the next number, from 0 to below 1.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Approximates a normal number by the sum of twelve.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.draw()).sum::<f64>() - 6.0
    }
}
