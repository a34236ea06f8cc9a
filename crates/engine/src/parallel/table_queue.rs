//! The table queue: records from scan servers to sort servers, by key range.
//!
//! Each sort server has a part of the queue, for its key range, with a fixed number of buffers. A
//! scan server takes an empty buffer of that range (it waits for `PX Deq Credit: send blkd` if
//! there is none), fills it with records and sends it. The sort server empties it and returns it
//! (it waits for `PX Deq: Table Q Normal` if none is filled).
//!
//! Each range has a mutex and two conditions. Memory is ranges x buffers x 64K. A slow sort server
//! makes its senders wait; it does not make the queue grow.
//!
//! Why buffers and not records: a buffer holds 4,096 records of 16 bytes, so lock, wake-up and
//! clock reads together cost under 1 ns a row. A queue without a lock is not needed: at that rate
//! the lock is taken some thousand times a second.
//!
//! Limits: a sender keeps one buffer of every range, so a range needs more buffers than there are
//! senders. Records of one sender and range arrive in order, those of two senders in any.
//!
//! Invariants:
//! - Q1 A buffer of a range is empty in the queue, full in the queue, or with one server; a
//!   range never has more than it was planned with.
//! - Q2 A buffer has at most [`QUEUE_BUFFER_BYTES`] of records, so it never moves to larger memory.
//! - Q3 A sender that is done sends no more, and is done once.

use crate::access::memory::QUEUE_BUFFER_BYTES;
use plumb_events::{Event, Session, Statistic, locked};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// The queue between two sets of servers.
#[derive(Debug)]
pub struct TableQueue {
    ranges: Vec<RangeQueue>,
}

#[derive(Debug)]
struct RangeQueue {
    state: Mutex<RangeState>,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Debug)]
struct RangeState {
    full: VecDeque<Vec<u8>>,
    empty: Vec<Vec<u8>>,
    /// Number of buffers that may still be made.
    unmade: usize,
    /// Number of all buffers: empty, full, unmade, or with a server.
    buffers: usize,
    /// Number of senders that have not finished.
    senders: usize,
    closed: bool,
}

impl RangeState {
    fn check(&self) {
        let known = self.full.len() + self.empty.len() + self.unmade;
        assert!(known <= self.buffers, "Q1: {known} buffers of {}", self.buffers);
    }
}

/// Error of a queue whose other side has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl TableQueue {
    /// Makes a queue for `range_count` key ranges and `sender_count` senders.
    pub fn new(range_count: usize, sender_count: usize, buffers_per_range: usize) -> TableQueue {
        assert!(buffers_per_range > sender_count, "each sender keeps one buffer of each range");
        let range = || RangeQueue {
            state: Mutex::new(RangeState {
                full: VecDeque::new(),
                empty: Vec::new(),
                unmade: buffers_per_range,
                buffers: buffers_per_range,
                senders: sender_count,
                closed: false,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        };
        TableQueue { ranges: (0..range_count).map(|_| range()).collect() }
    }

    /// Takes an empty buffer of a range, waiting for one if all are full.
    ///
    /// # Errors
    /// [`Closed`] if the receiver has failed.
    pub fn empty_buffer(&self, session: &Session, range: usize) -> Result<Vec<u8>, Closed> {
        let range = &self.ranges[range];
        let mut state = locked(&range.state);
        let mut begin = None;
        let buffer = loop {
            if state.closed {
                break Err(Closed);
            }
            if let Some(buffer) = state.empty.pop() {
                break Ok(buffer);
            }
            if state.unmade > 0 {
                state.unmade -= 1;
                break Ok(Vec::with_capacity(QUEUE_BUFFER_BYTES));
            }
            begin.get_or_insert_with(|| session.begin_wait());
            state = range.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        if let Some(begin) = begin {
            session.end_wait(Event::PxDeqCreditSendBlkd, begin);
        }
        buffer
    }

    /// Puts a filled buffer into a range.
    pub fn send(&self, session: &Session, range: usize, buffer: Vec<u8>) {
        assert!(buffer.len() <= QUEUE_BUFFER_BYTES, "Q2: a buffer of {} bytes", buffer.len());
        session.count(Statistic::QueueBytes, buffer.len() as u64);
        let range = &self.ranges[range];
        let mut state = locked(&range.state);
        assert!(state.senders > 0, "Q3: all senders are done");
        state.full.push_back(buffer);
        state.check();
        drop(state);
        range.filled.notify_one();
    }

    /// Takes the next filled buffer of a range; `None` after every sender has finished.
    ///
    /// # Errors
    /// [`Closed`] if a sender has failed.
    pub fn receive(&self, session: &Session, range: usize) -> Result<Option<Vec<u8>>, Closed> {
        let range = &self.ranges[range];
        let mut state = locked(&range.state);
        let mut begin = None;
        let buffer = loop {
            if state.closed {
                break Err(Closed);
            }
            if let Some(buffer) = state.full.pop_front() {
                break Ok(Some(buffer));
            }
            if state.senders == 0 {
                break Ok(None);
            }
            begin.get_or_insert_with(|| session.begin_wait());
            state = range.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        if let Some(begin) = begin {
            session.end_wait(Event::PxDeqTableQNormal, begin);
        }
        buffer
    }

    /// Returns an emptied buffer to its range.
    pub fn give_back(&self, range: usize, mut buffer: Vec<u8>) {
        buffer.clear();
        let range = &self.ranges[range];
        let mut state = locked(&range.state);
        state.empty.push(buffer);
        state.check();
        drop(state);
        range.emptied.notify_one();
    }

    /// Notes that one sender has sent everything.
    pub fn sender_done(&self) {
        for range in &self.ranges {
            let mut state = locked(&range.state);
            assert!(state.senders > 0, "Q3: a sender is done once");
            state.senders -= 1;
            drop(state);
            range.filled.notify_all();
        }
    }

    /// Returns a guard that closes the queue if it is dropped before its server has succeeded. So
    /// no server keeps waiting after an error or a panic.
    pub fn close_unless_done(&self) -> CloseGuard<'_> {
        CloseGuard { queue: self, done: false }
    }

    /// Wakes all servers with [`Closed`], because one has failed.
    fn close(&self) {
        for range in &self.ranges {
            locked(&range.state).closed = true;
            range.filled.notify_all();
            range.emptied.notify_all();
        }
    }
}

/// Closes its queue unless its server has called [`CloseGuard::done`].
#[derive(Debug)]
pub struct CloseGuard<'q> {
    queue: &'q TableQueue,
    done: bool,
}

impl CloseGuard<'_> {
    /// Ends the guard of a server that has succeeded.
    pub fn done(mut self) {
        self.done = true;
    }
}

impl Drop for CloseGuard<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.queue.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_events::{Recorder, Role};

    fn with_queue(body: impl FnOnce(&TableQueue, &Session)) {
        let recorder = Recorder::new();
        body(&TableQueue::new(2, 1, 2), &recorder.session(Role::User));
    }

    #[test]
    fn buffers_travel_to_and_fro() {
        with_queue(|queue, session| {
            let mut buffer = queue.empty_buffer(session, 1).expect("an unmade buffer");
            buffer.extend_from_slice(b"records");
            queue.send(session, 1, buffer);
            let received = queue.receive(session, 1).expect("open").expect("a buffer");
            assert_eq!(received, b"records");
            queue.give_back(1, received);
            assert!(queue.empty_buffer(session, 1).expect("that buffer").is_empty());
            queue.sender_done();
            assert_eq!(queue.receive(session, 0), Ok(None));
        });
    }

    #[test]
    #[should_panic(expected = "Q1: 3 buffers of 2")]
    fn a_foreign_buffer_is_not_given_back() {
        with_queue(|queue, _| queue.give_back(0, Vec::new()));
    }

    #[test]
    #[should_panic(expected = "Q2: a buffer of 65537 bytes")]
    fn a_buffer_that_has_grown_is_not_sent() {
        with_queue(|queue, session| queue.send(session, 0, vec![0; QUEUE_BUFFER_BYTES + 1]));
    }

    #[test]
    #[should_panic(expected = "Q3: all senders are done")]
    fn nothing_is_sent_after_the_last_sender_is_done() {
        with_queue(|queue, session| {
            let buffer = queue.empty_buffer(session, 0).expect("an unmade buffer");
            queue.sender_done();
            queue.send(session, 0, buffer);
        });
    }
}
