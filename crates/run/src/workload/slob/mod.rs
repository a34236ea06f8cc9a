//! SLOB: random single-block reads and updates through the buffer cache.
//!
//! Each schema is a table with one row a block and an index on its key ([`load`]). Each session is
//! a thread with its own connection. It selects and updates work units of rows until the time is
//! over or its loops are done ([`session`]). Then every table is verified against its index, and
//! the sum of its balances against the constant that no update changes ([`judge`]).
//!
//! The measured work starts when all sessions are connected. If the cache holds all blocks, they
//! are read into it before, so that a cached run has no physical reads. Otherwise a run starts with
//! the blocks left by the load, or by the opening of the database.
//!
//! Updates stay: a study's next run works on the rows that this one changed, with the same keys and
//! lengths.

pub(super) mod judge;
pub(super) mod load;
pub(super) mod session;

use super::{Execution, Place, sizing};
use crate::device_mix::Mix;
use crate::evidence::{self, Done, Measured, SESSION_BYTES};
use crate::place::Room;
use plumb_engine::check::CheckLine;
use plumb_engine::instance::InitialSizes;
use plumb_engine::parallel::servers;
use plumb_engine::redo::LogOptions;
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Setting, Settings};
use plumb_events::{Phase, Role, Session, clock};
use plumb_host::limits;
use plumb_study::Stage;
use plumb_units::{Bytes, Nanos};
use plumb_workload::slob::{Conflict, Rows, SLOB, SlobSpec};
use plumb_workload::{Work, Workload};
use session::{Gate, Parts, Stage as Run};
use std::thread;

/// Size of a cache that nearly all reads miss, as in the source.
const CACHE: &str = "16M";
/// Expected time of a loop: one read of a block from a flash device.
const LOOP: Nanos = Nanos(100_000);

pub(super) struct Slob;

impl Execution for Slob {
    fn workload(&self) -> &'static Workload {
        &SLOB
    }

    /// Sets a small cache, and a log with room for the transactions of all sessions
    /// at once. Parameters that contradict each other, or the machine, are rejected
    /// here, before anything is made.
    fn apply_defaults(&self, work: &Work, settings: &mut Settings) -> Result<(), EngineError> {
        if !settings.is_explicit(Setting::DbCacheSize) {
            settings.set("db_cache_size", CACHE, SLOB.name)?;
        }
        let asked = [Setting::LogFileSize, Setting::LogFileGroups];
        let spec = spec(work, settings)?;
        require_sessions(&spec)?;
        let size = sizing::log_file_of_updates(&spec, settings);
        if size <= settings.number(asked[0]) || asked.iter().any(|setting| settings.is_explicit(*setting)) {
            return Ok(());
        }
        settings.set("log_file_size", &Bytes(size).as_setting(), SLOB.name)
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let log = sizing::of_log(settings);
        let tablespaces =
            spec(work, settings).map_or(InitialSizes::NONE, |spec| sizing::of_slob(&spec, settings));
        Room { tablespaces, beside: InitialSizes { users: Bytes(log), ..InitialSizes::NONE } }
    }

    /// A cache with all blocks leaves only the writes to the device; `None` if there are none.
    fn mix(&self, work: &Work, settings: &Settings) -> Option<Mix> {
        let spec = spec(work, settings).ok()?;
        let bytes = spec.schemas.saturating_mul(spec.scale).saturating_mul(spec.block_bytes);
        let is_cached = settings.number(Setting::DbCacheSize) >= bytes;
        let sessions = usize::try_from(spec.sessions).unwrap_or(usize::MAX);
        let expected = match spec.work_loop {
            0 => spec.run_time,
            loops => Nanos(loops.saturating_mul(LOOP.0)),
        };
        let mix = Mix::of_updates(Bytes(spec.block_bytes), sessions, spec.update_pct, expected);
        match (is_cached, spec.update_pct) {
            (false, _) => Some(mix),
            (true, 0) => None,
            (true, _) => Some(Mix { write_percent: 100, ..mix }),
        }
    }

    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let spec = spec(place.work, &place.instance.settings)?;
        let rows = spec.schemas * spec.scale;
        place.observer.stage(&Stage::Import { recorder: &place.instance.recorder, rows });
        let transactions = place.transactions()?;
        place.watched(transactions, || load::load(transactions, &spec))
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let instance = place.instance;
        let spec = spec(place.work, &instance.settings)?;
        let transactions = place.transactions()?;
        let coordinator = instance.recorder.session(Role::User);
        load::warm(transactions, &coordinator, &spec)?;
        transactions.checkpoint(&coordinator)?;
        let time = if spec.work_loop == 0 { spec.run_time } else { Nanos(0) };
        place.observer.stage(&Stage::RandomIo { recorder: &instance.recorder, time });
        let run = Run {
            transactions,
            spec: &spec,
            rows: rows(&spec, transactions),
            gate: Gate::default(),
            parts: Parts::new(1),
        };
        place.watched(transactions, || run_sessions(place, &coordinator, &run))
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        place.observer.stage(&Stage::Verify { recorder: &place.instance.recorder, blocks: 0 });
        judge::judge(place.transactions()?, &spec(place.work, &place.instance.settings)?)
    }

    /// Nothing is made that must be removed.
    fn undo(&self, _: &Place<'_>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Parameters in blocks of the database.
fn spec(work: &Work, settings: &Settings) -> Result<SlobSpec, EngineError> {
    SlobSpec::of(work, settings.number(Setting::DbBlockSize))
        .map_err(|Conflict { first, second, why }| EngineError::Contradiction { first, second, why })
}

/// Rows that fill the blocks of the database.
pub(super) fn rows(spec: &SlobSpec, transactions: &Transactions<'_>) -> Rows {
    let rows = Rows::new(transactions.row_bytes_max());
    if spec.obfuscate { rows } else { rows.repeating() }
}

fn require_sessions(spec: &SlobSpec) -> Result<(), EngineError> {
    let refuse = |second: String, why: String| {
        Err(EngineError::Contradiction { first: format!("sessions={}", spec.sessions), second, why })
    };
    let most = LogOptions::transactions_max(spec.block_bytes as usize);
    if spec.update_pct > 0 && spec.sessions as usize > most {
        let why = "each session that updates has one; ask for fewer, for update-pct=0, or for larger blocks";
        return refuse(format!("at most {most} transactions"), why.to_string());
    }
    let needed = Bytes(spec.sessions.saturating_mul(SESSION_BYTES));
    match limits::memory() {
        Some(memory) if needed > memory.available => refuse(
            format!("{} of available memory", memory.available),
            format!("each takes some {}, which makes {needed}; ask for fewer", Bytes(SESSION_BYTES)),
        ),
        _ => Ok(()),
    }
}

/// Connects all sessions, starts them at once, and waits for them between two readings.
fn run_sessions(place: &Place<'_>, coordinator: &Session, run: &Run<'_>) -> Result<Measured, EngineError> {
    let (instance, spec) = (place.instance, run.spec);
    let operation = instance.operation();
    let measured = thread::scope(|scope| {
        // On any error the gate opens, so that no session waits forever.
        let _opened = run.gate.open_at_last();
        let work = {
            let operation = &operation;
            move |session: &Session, number| session::run(run, session, operation, number as u64)
        };
        let started = servers::start_sessions(scope, &operation, spec.sessions as usize, work);
        run.gate.await_ready(coordinator, &operation, spec.sessions);
        evidence::around_logged(instance, place.devices, run.transactions.log(), None, || {
            let begin = clock::now();
            run.gate.open();
            let sessions = servers::join(coordinator, started).into_iter().flatten().flatten();
            let done = run.sums(sessions).remove(0);
            instance.recorder.phase(Phase::RandomIo, begin, done.rows());
            Ok(Done { slob: Some(done), ..Done::default() })
        })
    });
    operation.outcome()?;
    measured
}
