//! Users that read while the index is built: sessions of SLOB in the same instance.
//!
//! ```text
//! warm-up ──> before ──> during ──────────────────────> after
//! users       users      users, and the index build     users
//! alone       alone                                      alone
//! ```
//!
//! Users go on through all parts, as they would in a database in use, and are counted in each. The
//! time before shows what they do undisturbed, the time after how soon they have it back.
//! Everything between the two marks of a part belongs to it: counters of the users' sessions and
//! of the buffer cache. The measured period of the run is that of the build alone.
//!
//! The coordinator reads the users' blocks into the cache before they start, if it holds them all.

use crate::evidence::{Measured, PartCounts, UsersDone, UsersMark};
use crate::workload::Place;
use crate::workload::slob::session::{self, Gate, Parts, Stage};
use crate::workload::slob::{load, rows};
use plumb_engine::EngineError;
use plumb_engine::parallel::servers::{self, Operation};
use plumb_events::{Phase, Role, Session, clock};
use plumb_units::Nanos;
use plumb_workload::users::UsersSpec;
use std::thread;

/// Longest time for which users read before they are counted: enough for hits to raise the touch
/// counts of all blocks, which protect them in the cache.
const WARM_UP: Nanos = Nanos(1_000_000_000);
/// Parts of a run, by their numbers in [`Parts`]; the warm-up has none of these names.
const BEFORE: usize = 1;
const DURING: usize = 2;
const AFTER: usize = 3;

/// Runs a build while users read; adds to its evidence what they did.
pub(super) fn during(
    place: &Place<'_>,
    users: UsersSpec,
    build: impl FnOnce() -> Result<Measured, EngineError>,
) -> Result<Measured, EngineError> {
    let (instance, transactions) = (place.instance, place.transactions()?);
    let coordinator = instance.recorder.session(Role::Coordinator);
    let spec = &users.reads;
    load::warm(transactions, &coordinator, spec)?;
    let run = Stage {
        transactions,
        spec,
        rows: rows(spec, transactions),
        gate: Gate::default(),
        parts: Parts::new(AFTER + 1),
    };
    let operation = instance.operation();
    let found: Result<(Measured, Vec<PartCounts>), EngineError> = thread::scope(|scope| {
        // On any error users end, so that the scope can be left.
        let _ended = Ended(&run);
        let work = {
            let (run, operation) = (&run, &operation);
            move |session: &Session, number| session::run(run, session, operation, number as u64)
        };
        let started = servers::start_sessions(scope, &operation, spec.sessions as usize, work);
        run.gate.await_ready(&coordinator, &operation, spec.sessions);
        run.gate.open();
        let alone = Alone { coordinator: &coordinator, operation: &operation, run: &run };
        let (measured, marks) = alone.around(users.alone, build)?;
        run.parts.end();
        let sums = run.sums(servers::join(&coordinator, started).into_iter().flatten().flatten());
        let done = sums.into_iter().skip(BEFORE).zip(marks.windows(2));
        let parts = done.map(|(done, marks)| PartCounts::between(done, [&marks[0], &marks[1]])).collect();
        Ok((measured, parts))
    });
    operation.outcome()?;
    let (mut measured, parts) = found?;
    measured.outcome.users = Some(UsersDone { spec: users, parts });
    Ok(measured)
}

/// Ends the users' sessions when dropped, even those that wait at the gate.
struct Ended<'s, 'r>(&'s Stage<'r>);

impl Drop for Ended<'_, '_> {
    fn drop(&mut self) {
        self.0.parts.end();
        self.0.gate.open();
    }
}

/// The time in which users read alone, around the build.
struct Alone<'s, 'r> {
    coordinator: &'s Session,
    operation: &'s Operation,
    run: &'s Stage<'r>,
}

impl Alone<'_, '_> {
    /// Goes through all parts; returns the marks between them.
    fn around<T>(
        &self,
        alone: Nanos,
        build: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<(T, Vec<UsersMark>), EngineError> {
        let mut marks = Vec::new();
        let mut enter = |part| {
            self.run.parts.enter(part);
            marks.push(UsersMark::take(self.run.transactions.instance()));
        };
        self.wait(alone.min(WARM_UP))?;
        enter(BEFORE);
        self.phase(Phase::UsersBefore, alone)?;
        enter(DURING);
        let built = build()?;
        enter(AFTER);
        self.phase(Phase::UsersAfter, alone)?;
        marks.push(UsersMark::take(self.run.transactions.instance()));
        Ok((built, marks))
    }

    fn phase(&self, phase: Phase, time: Nanos) -> Result<(), EngineError> {
        let begin = clock::now();
        self.wait(time)?;
        self.run.transactions.instance().recorder.phase(phase, begin, 0);
        Ok(())
    }

    fn wait(&self, time: Nanos) -> Result<(), EngineError> {
        session::pause(self.coordinator, self.operation, clock::now() + time, &|| false)
    }
}
