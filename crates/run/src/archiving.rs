//! Says why sessions wait for copies of filled log files, while they do.
//!
//! A copy that cannot be made is no failure of the log: sessions that need the file wait until it can be, without an end. Off a
//! terminal nobody would see that. So a thread beside the work looks twice a second whether a copy has failed, and, only
//! if so, whether sessions have waited for it since. Where no copies are kept there is no thread.

use plumb_engine::Setting;
use plumb_engine::transaction::Transactions;
use plumb_events::{Event, locked};
use plumb_study::WAITS;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(500);

/// Does some work, and has each reason said for which sessions wait for a copy meanwhile, once until it changes.
pub fn watched<T>(
    transactions: &Transactions<'_>,
    say: &(dyn Fn(&str) + Sync),
    work: impl FnOnce() -> T,
) -> T {
    if transactions.instance().settings.word(Setting::ArchiveLogMode) != "on" {
        return work();
    }
    let over = Over::default();
    thread::scope(|scope| {
        let look = || look(transactions, say, &over);
        // Where no thread can be started nothing is said.
        let _watching = thread::Builder::new().name("archiver watch".to_string()).spawn_scoped(scope, look);
        let _end = End(&over);
        work()
    })
}

/// Set when the work is over.
#[derive(Debug, Default)]
struct Over(Mutex<bool>, Condvar);

impl Over {
    /// Whether it is, or becomes so within an interval.
    fn wait(&self) -> bool {
        let over = locked(&self.0);
        let waited = self.1.wait_timeout_while(over, INTERVAL, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Ends the watch, also where the work panics.
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

/// How often sessions have waited for a copy, a tenth of a second each time.
fn waits(transactions: &Transactions<'_>) -> u64 {
    let snapshot = transactions.instance().recorder.snapshot();
    let event = Event::LogFileSwitchArchive as usize;
    snapshot.sessions.iter().map(|session| session.events[event].count).sum()
}
