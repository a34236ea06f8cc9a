//! Workloads on a server, on the same rows as the engine's.
//!
//! ```text
//! load (once)  ──>  [ begin ──> work (timed) ──> verify ──> undo ]*
//! ```
//!
//! A row of the table is a workload; nothing outside this folder names one.

mod large_sort;
mod pgbench;
mod redo;
mod sales;
mod scan;
mod slob;

use crate::PostgresError;
use crate::evidence::WorkDone;
use crate::session::InForce;
use crate::session::{SESSION, Served, ServerSession};
use plumb_events::{Cancel, Phase, clock};
use plumb_record::{Check, Response};
use plumb_units::{Bytes, Nanos};
use plumb_workload::specification::{LARGE_SORT, PGBENCH, REDO, SCAN, SLOB};
use plumb_workload::{Decides, Parameter, Work, Workload};
use std::thread;

/// Settings as options of the server.
pub type BaseSettings = &'static [(&'static str, &'static str)];

/// Settings of all runs: no work of the server's own disturbs them, unless a study asks for it.
pub const PEACE: BaseSettings =
    &[("autovacuum", "off"), ("jit", "off"), ("checkpoint_timeout", "1d"), ("track_io_timing", "on")];

/// A started server with the work and the settings of a run.
pub struct WorkPlace<'a> {
    pub server: &'a dyn Served,
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
        let mut session = ServerSession::connect(self.server, SESSION)?.working();
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
    /// Counts with the names that the engine's runs have for them.
    pub statistics: Vec<(&'static str, u64)>,
    pub responses: Vec<Response>,
    /// CPU time of programs that worked as clients.
    pub client_cpu: Nanos,
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

    /// Library of an extension that counts what it does, taken if the server has it.
    fn preloads(&self) -> Option<&'static str> {
        None
    }

    /// Programs that work as clients of the server.
    fn clients(&self) -> &'static [&'static str] {
        &[]
    }

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

    /// Returns the query of which a study keeps the plan; `None` if the work is none that EXPLAIN
    /// takes, such as CREATE INDEX, or changes rows.
    ///
    /// # Errors
    /// If the server does not carry out the parameters.
    fn query(&self, _: &Work) -> Result<Option<String>, PostgresError> {
        Ok(None)
    }

    /// Connects the sessions and prepares what is not timed.
    ///
    /// # Errors
    /// The server's.
    fn begin<'a>(&self, place: &WorkPlace<'a>) -> Result<Box<dyn Begun + 'a>, PostgresError>;
}

const EXECUTIONS: &[&dyn ServerWork] =
    &[&large_sort::LargeSort, &redo::Redo, &slob::Slob, &scan::Scan, &pgbench::Pgbench];

pub const WORKLOADS: &[&Workload] = &[&LARGE_SORT, &REDO, &SLOB, &SCAN, &PGBENCH];

/// Returns the workload parameter of that name, if a study may vary it.
pub(crate) fn parameter(name: &str) -> Option<&'static Parameter> {
    let of = |workload: &&'static Workload| {
        let of_server =
            |parameter: &&Parameter| parameter.decides == Decides::Work && takes(workload, parameter);
        workload.parameters.iter().filter(of_server).find(|parameter| parameter.is_named(name))
    };
    WORKLOADS.iter().find_map(of)
}

/// Parameters of a large sort that only the embedded engine carries out.
const OF_THE_ENGINE: [&str; 8] =
    ["sorters", "sort-memory", "with", "scale", "hot-pct", "alone", "work-unit", "rate"];

/// True if a server carries out this parameter of a workload.
fn takes(workload: &Workload, parameter: &Parameter) -> bool {
    workload.name != LARGE_SORT.name || !OF_THE_ENGINE.contains(&parameter.name)
}

/// Rejects work that only the embedded engine carries out.
///
/// # Errors
/// If a parameter asks for more than one build, or for users.
pub(crate) fn require(work: &Work) -> Result<(), PostgresError> {
    if work.workload.name != LARGE_SORT.name {
        return Ok(());
    }
    let usual = Work::of(work.workload);
    let refused = OF_THE_ENGINE.into_iter().find(|name| work.value(name) != usual.value(name));
    refused.map_or(Ok(()), |name| {
        let why = format!("{name}: the embedded engine alone has it; leave it out, or leave out the server");
        Err(PostgresError::Unfit(why))
    })
}

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

/// Runs a function for each client in a thread of its own, with the client's number.
fn in_threads<C: Send>(
    clients: &mut [C],
    work: impl Fn(&mut C, u64) -> Result<(), PostgresError> + Sync,
) -> Result<(), PostgresError> {
    let work = &work;
    thread::scope(|scope| {
        let numbered = (0..).zip(clients);
        let threads: Vec<_> =
            numbered.map(|(number, client)| scope.spawn(move || work(client, number))).collect();
        let lost = || PostgresError::Unfit("a session's thread ended by a panic".to_string());
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| lost())?)
    })
}

/// Returns the bytes of a table or an index.
fn relation_size(session: &mut ServerSession<'_>, relation: &str) -> Result<Bytes, PostgresError> {
    let size: i64 =
        session.value("a table is measured", &format!("select pg_relation_size('{relation}')"))?;
    Ok(Bytes(u64::try_from(size).unwrap_or(0)))
}

/// Returns the blocks of all tables and indexes that sessions found in the buffers, and those that
/// they read.
fn buffer_gets(session: &mut ServerSession<'_>) -> Result<[u64; 2], PostgresError> {
    const DURING: &str = "the buffer gets are read";
    let sum = |what: &str| {
        format!(
            "select coalesce(sum(coalesce(heap_blks_{what}, 0) + coalesce(idx_blks_{what}, 0)), 0)::bigint from \
             pg_statio_user_tables"
        )
    };
    let hits: i64 = session.value(DURING, &sum("hit"))?;
    let reads: i64 = session.value(DURING, &sum("read"))?;
    Ok([hits, reads].map(|count| u64::try_from(count).unwrap_or(0)))
}

/// Compares an index with its table by amcheck; `None` where that is not available to this user.
fn check_index(session: &mut ServerSession<'_>, index: &str) -> Result<Option<Check>, PostgresError> {
    let begin = clock::now();
    let available = "select exists (select from pg_available_extensions where name = 'amcheck' and (installed_version \
                     is not null or (select rolsuper from pg_roles where rolname = current_user)))";
    if !session.value("amcheck is looked for", available)? {
        return Ok(None);
    }
    let check = format!(
        "create extension if not exists amcheck; select bt_index_parent_check('{index}', true, true)"
    );
    let (passed, detail) = match session.run("the index is checked", &check) {
        Ok(()) => (true, "amcheck: order, parents, and an entry for each row".to_string()),
        Err(PostgresError::Statement { said, .. }) => (false, said),
        Err(other) => return Err(other),
    };
    let name = format!("index {}", index.to_uppercase());
    Ok(Some(Check { name, passed, detail, elapsed_ns: clock::now().saturating_sub(begin).0 }))
}
