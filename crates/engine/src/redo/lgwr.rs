//! LGWR: the background process that writes the log for sessions that wait together. It also writes
//! what has gathered while no session waits.

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

/// Bytes of log that gather before LGWR writes them although no session waits. Oracle's LGWR starts
/// at a megabyte, or a third of its buffer.
const GATHERED: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Lgwr {
    /// Unwritten bytes at which sessions ring, at most a quarter of the buffer.
    gathered: u64,
    /// True from a ring until it is heard.
    has_rung: AtomicBool,
    bell: Bell,
    /// Kernel's thread number; none if sessions do LGWR's work.
    thread: OnceLock<i32>,
}

impl Lgwr {
    pub(super) fn new(buffer_bytes: usize) -> Lgwr {
        let gathered = GATHERED.min(buffer_bytes as u64 / 4);
        Lgwr { gathered, has_rung: AtomicBool::default(), bell: Bell::default(), thread: OnceLock::new() }
    }

    /// Returns the bell that makes LGWR check whether it writes.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// True if so much of the log is not durable that LGWR must write.
    pub(super) fn has_gathered(&self, durable: Lsn, end: Lsn) -> bool {
        end.0.saturating_sub(durable.0) >= self.gathered
    }

    /// Rings unless LGWR has a ring to hear. A load comes first, because every session that appends
    /// comes here while much has gathered.
    pub(super) fn ring_once(&self) {
        if !self.has_rung.load(Relaxed) && !self.has_rung.swap(true, Relaxed) {
            self.bell.ring();
        }
    }

    /// Hears the ring before LGWR reads the end of the log. A session that appends later rings
    /// again; one that found the bell rung has appended before.
    pub(super) fn hear(&self) {
        self.has_rung.store(false, Relaxed);
        fence(SeqCst);
    }

    /// Returns LGWR's nice value from the kernel; `None` if sessions do its work.
    pub(super) fn nice(&self) -> Option<i32> {
        priority::nice_of(*self.thread.get()?)
    }

    /// Makes the calling thread LGWR. True if it got priority over other threads. Only then it
    /// writes for sessions that wait together, because otherwise they would wait for its turn too.
    ///
    /// # Errors
    /// If the setting demands priority and the kernel refuses it.
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
