//! The table queue: records from scan servers to sort servers, by key range.
//!
//! One lane per sort server, bounded by a fixed number of buffers, which travel
//! to and fro: a scan server takes an empty one (`PX Deq Credit: send blkd` when
//! there is none), fills it, and puts it into the lane; the sort server empties
//! it and gives it back (`PX Deq: Table Q Normal` when none is filled). Memory is
//! lanes x buffers x 64K, and a slow sort server slows its senders instead of growing.
//!
//! A buffer holds 4,096 records of 16 bytes, so the lock, the wake-up and the
//! clock reads are paid once in thousands of rows: under 1 ns a row.

use plumb_events::{Event, Session, Statistic};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of a buffer.
pub const BUFFER_BYTES: usize = 64 * 1024;

/// The queue between two sets of servers.
#[derive(Debug)]
pub struct TableQueue {
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    state: Mutex<LaneState>,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Debug)]
struct LaneState {
    full: VecDeque<Vec<u8>>,
    empty: Vec<Vec<u8>>,
    /// Buffers that may still be made.
    unmade: usize,
    /// Senders that have not finished.
    senders: usize,
    closed: bool,
}

/// The other side is gone because it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl TableQueue {
    /// A queue with so many lanes, senders and buffers a lane.
    #[must_use]
    pub fn new(lane_count: usize, sender_count: usize, buffers_per_lane: usize) -> TableQueue {
        assert!(buffers_per_lane > sender_count, "each sender keeps one buffer of each lane");
        let lane = || Lane {
            state: Mutex::new(LaneState {
                full: VecDeque::new(),
                empty: Vec::new(),
                unmade: buffers_per_lane,
                senders: sender_count,
                closed: false,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        };
        TableQueue { lanes: (0..lane_count).map(|_| lane()).collect() }
    }

    /// An empty buffer of a lane, waiting for one if all are full.
    ///
    /// # Errors
    /// [`Closed`] when the receiver has failed.
    pub fn empty_buffer(&self, session: &Session, lane: usize) -> Result<Vec<u8>, Closed> {
        let lane = &self.lanes[lane];
        let mut state = locked(&lane.state);
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
                break Ok(Vec::with_capacity(BUFFER_BYTES));
            }
            begin.get_or_insert_with(|| session.begin_wait());
            state = lane.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        if let Some(begin) = begin {
            session.end_wait(Event::PxDeqCreditSendBlkd, begin);
        }
        buffer
    }

    /// Puts a filled buffer into a lane.
    pub fn send(&self, session: &Session, lane: usize, buffer: Vec<u8>) {
        session.count(Statistic::QueueBytes, buffer.len() as u64);
        let lane = &self.lanes[lane];
        locked(&lane.state).full.push_back(buffer);
        lane.filled.notify_one();
    }

    /// The next filled buffer of a lane; `None` when every sender has finished.
    ///
    /// # Errors
    /// [`Closed`] when a sender has failed.
    pub fn receive(&self, session: &Session, lane: usize) -> Result<Option<Vec<u8>>, Closed> {
        let lane = &self.lanes[lane];
        let mut state = locked(&lane.state);
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
            state = lane.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        if let Some(begin) = begin {
            session.end_wait(Event::PxDeqTableQNormal, begin);
        }
        buffer
    }

    /// Gives an emptied buffer back.
    pub fn give_back(&self, lane: usize, mut buffer: Vec<u8>) {
        buffer.clear();
        let lane = &self.lanes[lane];
        locked(&lane.state).empty.push(buffer);
        lane.emptied.notify_one();
    }

    /// One sender has sent everything.
    pub fn sender_done(&self) {
        for lane in &self.lanes {
            locked(&lane.state).senders -= 1;
            lane.filled.notify_all();
        }
    }

    /// A guard that closes the queue when it is dropped before its server has
    /// succeeded: by an error or by a panic, nobody is left waiting.
    pub fn close_unless_done(&self) -> CloseGuard<'_> {
        CloseGuard { queue: self, done: false }
    }

    /// Wakes everybody with [`Closed`]: a server has failed.
    fn close(&self) {
        for lane in &self.lanes {
            locked(&lane.state).closed = true;
            lane.filled.notify_all();
            lane.emptied.notify_all();
        }
    }
}

/// Closes its queue unless told that the server is done.
#[derive(Debug)]
pub struct CloseGuard<'q> {
    queue: &'q TableQueue,
    done: bool,
}

impl CloseGuard<'_> {
    /// The server has succeeded.
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
