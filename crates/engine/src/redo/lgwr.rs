//! LGWR: the background process that writes the log for sessions that wait together, and what has
//! gathered while no session waits.

use super::bell::Bell;
use crate::EngineError;
use crate::settings::HighPriority;
use plumb_host::priority;
use plumb_units::Lsn;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// Bytes of log that gather before LGWR writes them although no session waits: Oracle's begins at a
/// megabyte, or a third of its buffer.
const GATHERED: u64 = 1 << 20;

/// The bell of LGWR and its thread.
#[derive(Debug)]
pub(crate) struct Lgwr {
    /// Bytes that gather before it is rung.
    gathered: u64,
    /// True from a ring until it is heard.
    has_rung: AtomicBool,
    bell: Bell,
    /// None where sessions do its work.
    thread: OnceLock<i32>,
}

impl Lgwr {
    pub(super) fn new(buffer_bytes: usize) -> Lgwr {
        let gathered = GATHERED.min(buffer_bytes as u64 / 4);
        Lgwr { gathered, has_rung: AtomicBool::default(), bell: Bell::default(), thread: OnceLock::new() }
    }

    /// Rung when LGWR is to check whether it writes.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// True if much of the log is not durable.
    pub(super) fn has_gathered(&self, durable: Lsn, end: Lsn) -> bool {
        end.0.saturating_sub(durable.0) >= self.gathered
    }

    /// Rings unless it has been rung. Checks first, because while much has gathered every session
    /// that appends comes here.
    pub(super) fn ring_once(&self) {
        if !self.has_rung.load(Relaxed) && !self.has_rung.swap(true, Relaxed) {
            self.bell.ring();
        }
    }

    /// Hears the ring, before LGWR reads the end of the log: a session that appends later rings
    /// again, and one whose ring was in vain has appended before.
    pub(super) fn hear(&self) {
        self.has_rung.store(false, Relaxed);
        fence(SeqCst);
    }

    /// Returns its nice value as the kernel has it; `None` where sessions do its work.
    pub(super) fn nice(&self) -> Option<i32> {
        priority::nice_of(*self.thread.get()?)
    }

    /// Makes the calling thread LGWR. True if it has been put before all other threads: only then
    /// it may write for sessions that wait together, because otherwise they would wait for its turn
    /// too.
    ///
    /// # Errors
    /// When that was asked for by name and is refused.
    pub(super) fn begin(&self, asked: Option<HighPriority>) -> Result<bool, EngineError> {
        self.thread.get_or_init(priority::thread_number);
        if asked == Some(HighPriority::None) {
            return Ok(false);
        }
        match priority::put_first() {
            Ok(()) => Ok(true),
            Err(_) if asked.is_none() => Ok(false),
            Err(why) => Err(EngineError::Priority { why }),
        }
    }
}
