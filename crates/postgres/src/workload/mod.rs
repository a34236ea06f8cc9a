//! Workloads on a server, on the same rows as the engine's.
//!
//! ```text
//! load (once)  ──>  [ begin ──> work (timed) ──> verify ──> undo ]*
//! ```
//!
//! A row of the table is a workload; nothing outside this folder names one.

mod large_sort;
mod redo;

use crate::PostgresError;
use crate::cluster::RunningServer;
use crate::evidence::{InForce, WorkDone};
use crate::session::ServerSession;
use plumb_events::{Cancel, Phase};
use plumb_record::Check;
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::{LARGE_SORT, REDO};
use plumb_workload::{Work, Workload};

/// Settings as options of the server.
pub type BaseSettings = &'static [(&'static str, &'static str)];

/// Settings of all runs: no work of the server's own disturbs them, unless a study asks for it.
pub const PEACE: BaseSettings =
    &[("autovacuum", "off"), ("jit", "off"), ("checkpoint_timeout", "1d"), ("track_io_timing", "on")];

/// A started server with the work and the settings of a run.
pub struct WorkPlace<'a> {
    pub server: &'a RunningServer,
    pub work: &'a Work,
    /// Settings of each working session.
    pub session: &'a [(String, String)],
    pub cancel: &'a Cancel,
}

impl<'a> WorkPlace<'a> {
    /// Connects a working session with its settings.
    ///
    /// # Errors
    /// If the server refuses one.
    pub fn session(&self) -> Result<ServerSession<'a>, PostgresError> {
        let mut session = ServerSession::connect(self.server, "plumb")?;
        self.session.iter().try_for_each(|(name, value)| session.set(name, value))?;
        Ok(session)
    }
}

/// Outcome of the timed work.
#[derive(Debug, Clone, Default)]
pub struct WorkOutcome {
    pub done: WorkDone,
    pub rows: u64,
    /// Phases with their begin and end on the monotonic clock.
    pub phases: Vec<(Phase, Nanos, Nanos)>,
    /// Lines that the server wrote about its sorts.
    pub sort_lines: Vec<String>,
}

/// Work that has been set up and can be timed.
pub trait Begun {
    /// Does the work. Only this is timed.
    ///
    /// # Errors
    /// The server's.
    fn work(&mut self) -> Result<(), PostgresError>;

    /// Returns what was done.
    ///
    /// # Errors
    /// The server's.
    fn outcome(&mut self) -> Result<WorkOutcome, PostgresError>;

    /// Verifies the result.
    ///
    /// # Errors
    /// If it cannot be checked; a wrong result is a failed check.
    fn verify(&mut self) -> Result<Vec<Check>, PostgresError>;

    /// Restores the state before the work.
    ///
    /// # Errors
    /// The server's.
    fn undo(&mut self) -> Result<(), PostgresError>;

    /// Returns all settings as a session has them that worked.
    ///
    /// # Errors
    /// The server's.
    fn settings(&mut self) -> Result<Vec<InForce>, PostgresError>;
}

pub trait ServerWork: Sync {
    fn workload(&self) -> &'static Workload;

    /// Settings of its runs, which a study may replace.
    fn settings(&self) -> BaseSettings;

    /// Bytes on disk of its data and its work.
    fn room(&self, work: &Work) -> Bytes;

    fn table(&self) -> &'static str;

    /// True if its work changes the data, so that each run needs a copy.
    fn writes(&self) -> bool;

    /// Loads the data.
    ///
    /// # Errors
    /// If there is no room, or the work is cancelled.
    fn load(
        &self,
        session: &mut ServerSession<'_>,
        work: &Work,
        cancel: &Cancel,
    ) -> Result<(), PostgresError>;

    /// Connects the sessions and prepares what is not timed.
    ///
    /// # Errors
    /// The server's.
    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError>;
}

const EXECUTIONS: &[&dyn ServerWork] = &[&large_sort::LargeSort, &redo::Redo];

pub const WORKLOADS: &[&Workload] = &[&LARGE_SORT, &REDO];

/// Returns the execution of a workload of [`WORKLOADS`].
///
/// # Errors
/// For another workload.
pub fn execution(name: &str) -> Result<&'static dyn ServerWork, PostgresError> {
    EXECUTIONS.iter().copied().find(|execution| execution.workload().name == name).ok_or_else(|| {
        let known: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        PostgresError::Unfit(format!("PostgreSQL has no workload {name}; it takes {}", known.join(", ")))
    })
}

#[must_use]
pub fn counted(name: &str, found: u64, expected: u64, elapsed: Nanos) -> Check {
    Check {
        name: name.to_string(),
        passed: found == expected,
        detail: format!("{found} found, {expected} expected"),
        elapsed_ns: elapsed.0,
    }
}
