//! Counts the kernel's io-wq workers of this process during a build, for a receipt.
//!
//! A thread of its own counts ten times a second; the timed code is unchanged. An idle worker lives
//! for seconds, so no sample misses it.

use plumb_host::readings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two counts of workers.
const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct WorkerCount {
    begin: usize,
    stop: Arc<AtomicBool>,
    /// Returns the largest number seen.
    thread: Option<JoinHandle<usize>>,
}

impl WorkerCount {
    #[must_use]
    pub fn start() -> WorkerCount {
        let begin = count();
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let look = move || {
            let mut most = begin;
            while !theirs.load(Relaxed) {
                most = most.max(count());
                thread::park_timeout(INTERVAL);
            }
            most.max(count())
        };
        // Without a thread only the workers at the start are known.
        let thread = thread::Builder::new().name("io-wq count".to_string()).spawn(look).ok();
        WorkerCount { begin, stop, thread }
    }

    /// Stops the thread; returns the workers at the start, and the largest number seen.
    #[must_use]
    pub fn end(mut self) -> (usize, usize) {
        let begin = self.begin;
        (begin, self.join().unwrap_or(begin))
    }

    fn join(&mut self) -> Option<usize> {
        self.stop.store(true, Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for WorkerCount {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn count() -> usize {
    readings::io_wq_workers().unwrap_or(0)
}
