//! Records, environments and a target of made-up figures, for tests of everything behind a run.

use crate::LabError;
use crate::bundle::{Environment, Settled};
use crate::canary::Canary;
use crate::target::{Preparation, RunError, Target};
use crate::vocabulary::Assignment;
use plumb_events::Cancel;
use plumb_record::Record;

/// Where nothing ran.
pub fn environment() -> Environment {
    Environment {
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        git_revision: None,
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
        spawn_ns: None,
    }
}

/// What a made-up run gives, by the number of runs before it and its settings.
pub type Script = Box<dyn FnMut(usize, &[Assignment]) -> Result<Record, RunError>>;

/// A target that does no work.
pub struct Scripted {
    /// What its runs give.
    pub script: Script,
    /// Runs made.
    pub runs: usize,
    /// What lies before each run.
    pub settled: Settled,
}

impl Scripted {
    /// A target whose files are not in the page cache.
    pub fn new(script: impl FnMut(usize, &[Assignment]) -> Result<Record, RunError> + 'static) -> Scripted {
        let settled =
            Settled { waited_ns: 1, idle: true, resident_pages: 0, total_pages: 100, ..Settled::default() };
        Scripted { script: Box::new(script), runs: 0, settled }
    }
}

impl Target for Scripted {
    fn environment(&mut self) -> Result<Environment, LabError> {
        Ok(environment())
    }

    fn prepare(&mut self, _: &Preparation<'_>) -> Result<(), LabError> {
        Ok(())
    }

    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, LabError> {
        Ok(self.settled)
    }

    /// The machine is as fast before each run.
    fn sing(&self) -> Canary {
        Canary { cpu_ns: 3_000_000, read_ns: None }
    }

    fn run(&mut self, settings: &[Assignment], _: &Cancel) -> Result<Record, RunError> {
        self.runs += 1;
        (self.script)(self.runs - 1, settings)
    }
}
