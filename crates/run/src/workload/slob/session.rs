//! A session of SLOB: draws operations and performs them until its time is over.
//!
//! **Closed loop** (`rate=0`): the next operation starts when one has ended, after a pause if there
//! is one. **Open arrivals** (`rate=N`): operations are due at random times, exponentially
//! distributed, independent of the engine. A session that is late starts the next at once, and its
//! response time counts from the due time. So a stall is in the response of every operation that
//! became due during it. Operations due but not started at the end are counted, not timed.
//!
//! Waiting for the next operation, or through a pause, is the idle wait of a session without a
//! request (`SQL*Net message from client`).

use crate::evidence::SlobDone;
use plumb_engine::EngineError;
use plumb_engine::parallel::servers::Operation as Parallel;
use plumb_engine::transaction::{Connection, Transactions};
use plumb_events::{Event, Session, Statistic, locked, now, sharing, wait_signal};
use plumb_types::{Number, Value, column_at};
use plumb_units::Nanos;
use plumb_workload::slob::{
    Arrivals, BALANCE_COLUMN, FIRST_TEXT, Kind, LAST_TEXT, Operation, Operations, Rows, SlobSpec, Texts,
    balance_change, balance_text,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Longest sleep in a pause between checks for the end of the run.
const LOOK_AGAIN: Nanos = Nanos(100_000_000);

/// Shared state of all sessions.
pub(in crate::workload) struct Stage<'r> {
    pub(in crate::workload) transactions: &'r Transactions<'r>,
    pub(in crate::workload) spec: &'r SlobSpec,
    pub(in crate::workload) rows: Rows,
    pub(in crate::workload) gate: Gate,
    pub(in crate::workload) parts: Parts,
}

impl Stage<'_> {
    /// Adds up the counts of all sessions, part by part.
    pub(in crate::workload) fn sums(&self, sessions: impl Iterator<Item = Vec<SlobDone>>) -> Vec<SlobDone> {
        let mut sums = vec![SlobDone::of(self.spec); self.parts.count];
        for session in sessions {
            sums.iter_mut().zip(&session).for_each(|(sum, part)| sum.add(part));
        }
        sums
    }
}

/// Parts of a run in which operations are counted apart. An operation belongs to the part in which
/// it began. Behind the last part the run is over.
#[derive(Debug)]
pub(in crate::workload) struct Parts {
    count: usize,
    current: AtomicUsize,
}

impl Parts {
    pub(in crate::workload) fn new(count: usize) -> Parts {
        Parts { count, current: AtomicUsize::new(0) }
    }

    pub(in crate::workload) fn enter(&self, part: usize) {
        self.current.store(part, Relaxed);
    }

    pub(in crate::workload) fn end(&self) {
        self.enter(self.count);
    }

    /// Returns the part that runs now; `None` if the run is over.
    fn current(&self) -> Option<usize> {
        Some(self.current.load(Relaxed)).filter(|part| *part < self.count)
    }
}

/// Holds connected sessions until all are connected.
#[derive(Debug, Default)]
pub(in crate::workload) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    ready: u64,
    is_open: bool,
}

/// Opens the gate when dropped.
pub(in crate::workload) struct OpenAtLast<'g>(&'g Gate);

impl Drop for OpenAtLast<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        locked(&self.state)
    }

    pub(in crate::workload) fn open(&self) {
        self.state().is_open = true;
        self.changed.notify_all();
    }

    pub(in crate::workload) fn open_at_last(&self) -> OpenAtLast<'_> {
        OpenAtLast(self)
    }

    /// Waits until this number of sessions is ready, or one has failed.
    pub(in crate::workload) fn await_ready(&self, session: &Session, operation: &Parallel, count: u64) {
        session.wait(Event::PxDeqExecuteReply, || {
            let mut state = self.state();
            while state.ready < count && operation.check().is_ok() {
                state = self.wait(state);
            }
        });
    }

    fn pass(&self, session: &Session) {
        session.wait_long(Event::MessageFromClient, || {
            let mut state = self.state();
            state.ready += 1;
            self.changed.notify_all();
            while !state.is_open {
                state = self.wait(state);
            }
        });
    }

    fn wait<'g>(&'g self, state: MutexGuard<'g, GateState>) -> MutexGuard<'g, GateState> {
        wait_signal((&self.state, &self.changed), state, Duration::from_nanos(LOOK_AGAIN.0))
    }
}

pub(in crate::workload) fn key(number: u64) -> Value {
    Value::Number(Number::new(i128::from(number), 0).expect("a key is a NUMBER"))
}

/// Runs a session to its end; returns its counts of each part.
pub(in crate::workload) fn run(
    stage: &Stage<'_>,
    session: &Session,
    operation: &Parallel,
    number: u64,
) -> Result<Vec<SlobDone>, EngineError> {
    let spec = stage.spec;
    let mut client = Client {
        stage,
        connection: stage.transactions.connect(session),
        texts: RefCell::new(Texts::new(spec.seed ^ (number + 1) << 44)),
        parts: vec![SlobDone::of(spec); stage.parts.count],
        part: 0,
    };
    let mut operations = Operations::new(spec, number);
    stage.gate.pass(session);
    let begin = now();
    let end = if spec.work_loop == 0 { begin + spec.run_time } else { Nanos(u64::MAX) };
    let mut arrivals = Arrivals::new(spec, number, begin);
    let mut count = 0;
    while now() < end && (spec.work_loop == 0 || count < spec.work_loop) {
        operation.check()?;
        let drawn = operations.draw();
        let due = match &mut arrivals {
            Some(arrivals) => Some(arrivals.draw()),
            None => drawn.think.map(|pause| now() + pause),
        };
        if let Some(due) = due {
            pause(session, operation, due.min(end), &|| stage.parts.current().is_none())?;
        }
        let started = now();
        let Some(part) = stage.parts.current().filter(|_| started < end) else { break };
        client.part = part;
        client.perform(&drawn)?;
        let since = due.filter(|_| arrivals.is_some()).unwrap_or(started);
        session.count(Statistic::ExecuteCount, 1);
        client.parts[part].note(&drawn, now().saturating_sub(since));
        count += 1;
    }
    let last = now().min(end);
    client.parts[client.part].behind = arrivals.map_or(0, |mut arrivals| arrivals.due_before(last));
    for done in &mut client.parts {
        done.took_part = 1;
        done.schemas.insert(spec.schema_of(number));
    }
    Ok(client.parts)
}

/// Waits until a moment, if it has not passed, or until something is over.
pub(in crate::workload) fn pause(
    session: &Session,
    operation: &Parallel,
    until: Nanos,
    is_over: &dyn Fn() -> bool,
) -> Result<(), EngineError> {
    if now() >= until {
        return Ok(());
    }
    session.wait_long(Event::MessageFromClient, || {
        loop {
            operation.check()?;
            let left = until.saturating_sub(now());
            if left == Nanos(0) || is_over() {
                return Ok(());
            }
            sharing::sleep(Duration::from_nanos(left.min(LOOK_AGAIN).0));
        }
    })
}

/// A session with its connection and its counts.
struct Client<'s, 'a> {
    stage: &'s Stage<'s>,
    connection: Connection<'a>,
    texts: RefCell<Texts>,
    parts: Vec<SlobDone>,
    /// Part in which the current operation began.
    part: usize,
}

impl Client<'_, '_> {
    fn perform(&mut self, operation: &Operation) -> Result<(), EngineError> {
        match operation.kind {
            Kind::Select => self.select(operation),
            Kind::Update => self.update(operation),
            Kind::Scan => self.scan(),
        }
    }

    /// Returns the keys of an operation's first and last row.
    fn keys(&self, operation: &Operation) -> [Value; 2] {
        [key(operation.key - self.stage.spec.work_unit + 1), key(operation.key)]
    }

    /// Counts the rows with a first text.
    fn select(&mut self, operation: &Operation) -> Result<(), EngineError> {
        let [from, to] = self.keys(operation);
        let mut count = 0;
        let mut transaction = self.connection.begin();
        transaction.range(&SlobSpec::index(operation.schema), (&[from], &[to]), |_, image| {
            count += u64::from(column_at(image, FIRST_TEXT).is_ok_and(|text| text.is_some()));
            Ok(())
        })?;
        self.parts[self.part].rows_read += count;
        require_rows(operation, self.stage.spec, count)
    }

    /// Replaces texts, and moves balances between the rows, in one transaction.
    fn update(&mut self, operation: &Operation) -> Result<(), EngineError> {
        let [from, to] = self.keys(operation);
        let (spec, rows, texts) = (self.stage.spec, &self.stage.rows, &self.texts);
        let expected = spec.work_unit - 1;
        let mut transaction = self.connection.begin();
        let table = SlobSpec::table(operation.schema);
        let change = |place: u64, values: &mut [Value]| {
            let mut texts = texts.borrow_mut();
            let replaced = if spec.heavy { FIRST_TEXT..LAST_TEXT } else { FIRST_TEXT..FIRST_TEXT + 1 };
            for column in replaced.chain([LAST_TEXT]) {
                values[column] = Value::Text(rows.text(&mut texts).to_string());
            }
            if let Value::Text(balance) = &mut values[BALANCE_COLUMN]
                && let Ok(old) = balance.parse::<u64>()
            {
                *balance = balance_text(old.wrapping_add_signed(balance_change(place, expected)));
            }
        };
        let index = SlobSpec::index(operation.schema);
        let count = transaction.update_range((&table, &index), (&[from], &[to]), change)?;
        transaction.commit()?;
        self.parts[self.part].rows_updated += count;
        require_rows(operation, spec, count)
    }

    /// Counts the rows of the scan table.
    fn scan(&mut self) -> Result<(), EngineError> {
        let mut count = 0;
        self.connection.begin().scan_images(SlobSpec::SCAN_TABLE, |_, _| {
            count += 1;
            Ok(())
        })?;
        self.parts[self.part].rows_scanned += count;
        require(count, self.stage.spec.scan_blocks, || "rows of the scan table".to_string())
    }
}

fn require_rows(operation: &Operation, spec: &SlobSpec, found: u64) -> Result<(), EngineError> {
    let rows = || {
        let table = SlobSpec::table(operation.schema);
        format!(
            "rows of table {table} with keys below {} in a work unit of {}",
            operation.key, spec.work_unit
        )
    };
    require(found, spec.work_unit - 1, rows)
}

fn require(found: u64, expected: u64, what: impl Fn() -> String) -> Result<(), EngineError> {
    if found == expected {
        return Ok(());
    }
    Err(EngineError::Verification { what: what(), found: found.to_string(), expected: expected.to_string() })
}
