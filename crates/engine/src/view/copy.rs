//! Copies rows of a table into another one: INSERT /*+ APPEND */ AS SELECT.
//!
//! ```text
//! parallel   scan + project + load   in each server
//! serial     scan + project          in each server ──> table queue ──> one loader
//! ```
//! A server tests the rows of its granules, and makes the image of each new row from the encoded
//! values of the old one. A parallel load writes them where they are. A serial load sends them to
//! the session, which fills the blocks alone: the servers then wait for it (`PX Deq Credit: send
//! blkd`), as they do behind a `LOAD AS SELECT` above the coordinator.
//!
//! The target gets the rows in one change of the control file, after their blocks are durable. It
//! is as before if the copy fails, is interrupted, or its process is killed. Old rows of an
//! existing target stay.
//!
//! Rejected: a serial load whose rows pass one by one, because each would cost a lock; a buffer of
//! the queue has a thousand.
//!
//! Limits: the target is loaded by direct path and has no index. A serial load takes rows of up to
//! 64K.

use crate::access::memory::{QUEUE_BUFFER_BYTES, QUEUE_BUFFERS_PER_SENDER};
use crate::parallel::servers::{self, Operation};
use crate::parallel::table_queue::{Closed, TableQueue};
use crate::table::load::{LoadOutcome, LoadTarget, RowsLoad};
use crate::table::scan::Granules;
use crate::view::predicate::Predicate;
use crate::view::{ExtentShare, TableView};
use crate::{EngineError, Instance};
use plumb_events::{Role, Session, Statistic};
use plumb_types::{RowBatch, RowError, Schema, columns};
use std::thread;

/// Bytes of a row's length in a buffer of the queue.
const LENGTH_BYTES: usize = 4;
/// The only range of the queue: rows go to one loader in no order.
const RANGE: usize = 0;

/// Number of sessions that fill the blocks of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadDegree {
    /// One, the session that copies; servers scan for it.
    Serial,
    /// Each server loads the rows that it scans.
    Parallel,
}

/// Columns, condition and target of a copy.
#[derive(Clone, Copy)]
pub struct CopySpec<'s> {
    /// Positions of the columns of the new rows.
    pub columns: &'s [usize],
    /// Condition on the old rows; `None` for all rows.
    pub predicate: Option<&'s Predicate>,
    /// Number of sessions that load.
    pub load: LoadDegree,
    /// Table that gets the rows. If it exists, its tablespace stays.
    pub target: LoadTarget<'s>,
}

/// Copies rows of a table into a new or an existing one.
///
/// # Errors
/// As [`totals`](crate::view::totals::totals). Also if the target has other columns, an index, or
/// is one that transactions change, or a write fails. Then the target is as before.
pub fn copy(
    instance: &Instance,
    session: &Session,
    view: &TableView<'_>,
    spec: CopySpec<'_>,
) -> Result<LoadOutcome, EngineError> {
    let schema =
        Schema { columns: spec.columns.iter().map(|place| view.schema().columns[*place].clone()).collect() };
    let load = RowsLoad::new(instance, session, spec.target, &schema)?;
    let degree = instance.parallel_degree();
    let granules = view.granules(ExtentShare::ALL).shared_by(degree);
    let source = Source { view, granules: &granules, spec: &spec };
    let load_degree = if spec.load == LoadDegree::Serial { 1 } else { degree };
    load.run(session, load_degree, |session, operation, push| match spec.load {
        LoadDegree::Serial if degree > 1 => source.through_queue(session, operation, degree, push),
        _ => source.rows(session, operation, push),
    })
}

#[derive(Clone, Copy)]
struct Source<'s> {
    view: &'s TableView<'s>,
    granules: &'s Granules<'s>,
    spec: &'s CopySpec<'s>,
}

impl Source<'_> {
    /// Passes the new rows of the granules that this server takes.
    fn rows(
        &self,
        session: &Session,
        operation: &Operation,
        push: &mut dyn FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut projection = Projection::of(self.spec.columns);
        self.view.scan(session, operation, self.granules, |row, id| {
            let bad = |error: RowError| EngineError::bad_row(id, error);
            if let Some(predicate) = self.spec.predicate
                && !predicate.holds(row).map_err(bad)?
            {
                return Ok(());
            }
            push(projection.image(row).map_err(bad)?)
        })?;
        // Before the target has the rows: blocks of a dropped table may be those of another one.
        self.view.require_unchanged()
    }

    /// Passes the new rows that `degree` scan servers make.
    fn through_queue(
        &self,
        session: &Session,
        operation: &Operation,
        degree: usize,
        push: &mut dyn FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let queue = &TableQueue::new(1, degree, degree * QUEUE_BUFFERS_PER_SENDER);
        thread::scope(|scope| {
            let scan = |number| {
                // Made here, so that the loader does not wait for a server that cannot start.
                let guard = queue.close_unless_done();
                let work = move |session: &Session| {
                    self.send(session, operation, queue)?;
                    queue.sender_done();
                    guard.done();
                    Ok(())
                };
                servers::start(scope, operation, (Role::ScanServer, number), work)
            };
            let started: Vec<_> = (0..degree).map(scan).collect();
            let guard = queue.close_unless_done();
            let received = receive(session, operation, queue, push);
            if received.is_ok() {
                guard.done();
            } else {
                drop(guard);
            }
            servers::join(session, started);
            received
        })
    }

    /// Sends the new rows of the granules that this server takes.
    fn send(&self, session: &Session, operation: &Operation, queue: &TableQueue) -> Result<(), EngineError> {
        let empty = || queue.empty_buffer(session, RANGE).map_err(|Closed| EngineError::Stopped);
        let mut buffer = empty()?;
        let mut rows = 0;
        self.rows(session, operation, &mut |row| {
            if row.len() + LENGTH_BYTES > QUEUE_BUFFER_BYTES {
                return Err(EngineError::Contradiction {
                    first: format!("a row of {} bytes", row.len()),
                    second: "a serial load".to_string(),
                    why: format!("its rows pass in buffers of {QUEUE_BUFFER_BYTES} bytes; load in parallel"),
                });
            }
            if buffer.len() + LENGTH_BYTES + row.len() > QUEUE_BUFFER_BYTES {
                queue.send(session, RANGE, std::mem::take(&mut buffer));
                buffer = empty()?;
            }
            buffer.extend_from_slice(&(row.len() as u32).to_le_bytes());
            buffer.extend_from_slice(row);
            rows += 1;
            Ok(())
        })?;
        queue.send(session, RANGE, buffer);
        session.count(Statistic::QueueRows, rows);
        Ok(())
    }
}

/// Passes the rows in the buffers of the queue.
fn receive(
    session: &Session,
    operation: &Operation,
    queue: &TableQueue,
    push: &mut dyn FnMut(&[u8]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    while let Some(buffer) = queue.receive(session, RANGE).map_err(|Closed| EngineError::Stopped)? {
        operation.check()?;
        let mut rest = &buffer[..];
        while let Some((length, behind)) = rest.split_first_chunk::<LENGTH_BYTES>() {
            let (row, next) = behind.split_at(u32::from_le_bytes(*length) as usize);
            push(row)?;
            rest = next;
        }
        queue.give_back(RANGE, buffer);
    }
    Ok(())
}

/// Makes the image of a new row from the encoded values of an old one.
struct Projection<'p> {
    columns: &'p [usize],
    /// Start and length of each value of the old row, from the first to the last that is needed.
    places: Vec<Option<(usize, usize)>>,
    needed: usize,
    made: RowBatch,
}

impl<'p> Projection<'p> {
    fn of(columns: &'p [usize]) -> Projection<'p> {
        let needed = columns.iter().max().map_or(0, |last| last + 1);
        Projection { columns, places: Vec::with_capacity(needed), needed, made: RowBatch::new() }
    }

    fn image(&mut self, row: &[u8]) -> Result<&[u8], RowError> {
        self.places.clear();
        let start = row.as_ptr().addr();
        let place = |value: Option<&[u8]>| value.map(|value| (value.as_ptr().addr() - start, value.len()));
        self.places.extend(columns(row).take(self.needed).map(place));
        if self.places.len() < self.needed {
            // The walk finds out what is wrong with the row.
            plumb_types::column_at(row, self.needed - 1)?;
        }
        self.made.clear();
        self.made.begin_row(self.columns.len() as u8);
        for column in self.columns {
            match self.places[*column] {
                Some((at, length)) => self.made.push_bytes(&row[at..at + length]),
                None => self.made.push_null(),
            }
        }
        self.made.end_row();
        Ok(self.made.row(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projection_takes_encoded_values_in_the_order_asked_for() {
        let mut row = RowBatch::new();
        row.begin_row(4);
        row.push_number(125, 1);
        row.push_null();
        row.push_text(&"x".repeat(300));
        row.push_number(-7, 0);
        row.end_row();
        let image = row.row(0);
        let check = |wanted: &[usize]| {
            let mut projection = Projection::of(wanted);
            let made = projection.image(image).expect("a row").to_vec();
            let (found, all): (Vec<_>, Vec<_>) = (columns(&made).collect(), columns(image).collect());
            assert_eq!(found, wanted.iter().map(|place| all[*place]).collect::<Vec<_>>());
            assert_eq!(columns(&made).finish(), Ok(wanted.len()));
        };
        [&[0][..], &[3, 0], &[2, 1, 2], &[0, 1, 2, 3]].into_iter().for_each(check);
        let cut = &image[..image.len() - 2];
        assert!(Projection::of(&[0]).image(cut).is_ok(), "columns behind are not reached");
        assert!(Projection::of(&[3]).image(cut).is_err());
    }
}
