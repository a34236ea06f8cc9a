//! Reports why sessions wait for copies of filled log files.
//!
//! A failed copy is no error of the log: sessions that need the file wait until a copy succeeds,
//! without limit. Without a terminal no user would see the reason. So a thread checks twice a
//! second if a copy has failed, and then if sessions have waited for it since. Without
//! `archive_log_mode` there is no thread.

use plumb_engine::Setting;
use plumb_engine::transaction::Transactions;
use plumb_events::{Event, locked};
use plumb_study::WAITS;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(500);

/// Does some work and meanwhile reports why sessions wait for a copy, once for each reason.
pub fn watched<T>(
    transactions: Option<&Transactions<'_>>,
    say: &(dyn Fn(&str) + Sync),
    work: impl FnOnce() -> T,
) -> T {
    let archives = |open: &&Transactions<'_>| open.instance().settings.word(Setting::ArchiveLogMode) == "on";
    let Some(transactions) = transactions.filter(archives) else { return work() };
    let over = Over::default();
    thread::scope(|scope| {
        let look = || look(transactions, say, &over);
        // Without a thread nothing is reported.
        let _watching = thread::Builder::new().name("archiver watch".to_string()).spawn_scoped(scope, look);
        let _end = End(&over);
        work()
    })
}

/// True after the end of the work.
#[derive(Debug, Default)]
struct Over(Mutex<bool>, Condvar);

impl Over {
    /// Waits up to an interval; returns true if the work is over.
    fn wait(&self) -> bool {
        let over = locked(&self.0);
        let waited = self.1.wait_timeout_while(over, INTERVAL, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Ends the watch, also if the work panics.
struct End<'a>(&'a Over);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *locked(&self.0.0) = true;
        self.0.1.notify_all();
    }
}

fn look(transactions: &Transactions<'_>, say: &(dyn Fn(&str) + Sync), over: &Over) {
    let (mut said, mut waits) = (None, waits(transactions));
    while !over.wait() {
        let Some(why) = transactions.log().archiver_error() else {
            said = None;
            continue;
        };
        let before = std::mem::replace(&mut waits, self::waits(transactions));
        if waits > before && said.as_ref() != Some(&why) {
            say(&format!("{WAITS}the archiver: {why}; they go on when it can be copied"));
            said = Some(why);
        }
    }
}

/// Number of waits for a copy, each a tenth of a second.
fn waits(transactions: &Transactions<'_>) -> u64 {
    let snapshot = transactions.instance().recorder.snapshot();
    let event = Event::LogFileSwitchArchive as usize;
    snapshot.sessions.iter().map(|session| session.events[event].count).sum()
}
