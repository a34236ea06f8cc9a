//! Room in the log files: bytes of log blocks that sessions may still be admitted for.
//!
//! Each change takes some and gives back what it did not use. On one counter two threads that do nothing else hand its cache line to and
//! fro: with that of the records' places it is two lines a record, 70 to 90 ns where one alone is 17. So each thread has
//! a shard, into which it takes a parcel at a time; what the shards hold is collected when the rest runs short. Nothing is admitted that
//! is not there, and nothing is refused that is there, but for what another thread is moving at that moment.

use super::log_buffer::Apart;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// Threads that have a shard for themselves.
const SHARDS: usize = 8;
/// Most bytes that a shard takes at once.
const PARCEL_MAX: i64 = 64 * 1024;

thread_local! {
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Relaxed) % SHARDS
    };
}

/// What is left.
#[derive(Debug)]
pub(super) struct Room {
    common: Apart<AtomicI64>,
    shards: [Apart<AtomicI64>; SHARDS],
    parcel: i64,
}

impl Room {
    /// So many bytes, of log files of so many in all.
    pub(super) fn new(bytes: i64, total: u64) -> Room {
        let parcel = (total as i64 / 64).min(PARCEL_MAX);
        let shards = std::array::from_fn(|_| Apart::new(AtomicI64::new(0)));
        Room { common: Apart::new(AtomicI64::new(bytes)), shards, parcel }
    }

    /// Takes so many, if they are left.
    pub(super) fn take(&self, bytes: i64) -> bool {
        let own = self.own();
        if take_from(own, bytes, 0) {
            return true;
        }
        if take_from(&self.common, bytes + self.parcel, 0) {
            own.fetch_add(self.parcel, Relaxed);
            return true;
        }
        self.take_spared(bytes, 0)
    }

    /// Takes so many, if they are left or spared; what is spared makes the rest negative.
    pub(super) fn take_spared(&self, bytes: i64, spared: i64) -> bool {
        self.shards.iter().for_each(|shard| self.collect(shard));
        take_from(&self.common, bytes, spared)
    }

    /// Gives back what a session has not used.
    pub(super) fn give_back(&self, bytes: i64) {
        let own = self.own();
        if own.fetch_add(bytes, Relaxed) + bytes > 2 * self.parcel {
            self.collect(own);
        }
    }

    /// More has become free.
    pub(super) fn add(&self, bytes: i64) {
        self.common.fetch_add(bytes, Relaxed);
    }

    /// What is left in all.
    pub(super) fn left(&self) -> i64 {
        self.common.load(Relaxed) + self.shards.iter().map(|shard| shard.load(Relaxed)).sum::<i64>()
    }

    fn collect(&self, shard: &AtomicI64) {
        if shard.load(Relaxed) != 0 {
            self.common.fetch_add(shard.swap(0, Relaxed), Relaxed);
        }
    }

    fn own(&self) -> &AtomicI64 {
        &self.shards[SHARD.with(|shard| *shard)]
    }
}

fn take_from(counter: &AtomicI64, bytes: i64, spared: i64) -> bool {
    let take = |left: i64| (left + spared >= bytes).then_some(left - bytes);
    counter.fetch_update(Relaxed, Relaxed, take).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_given_to_the_last_byte_and_no_more() {
        let room = Room::new(1000, 64 * 100);
        assert!(room.take(300));
        assert_eq!((room.left(), room.common.load(Relaxed)), (700, 600), "a parcel of 100 is in the shard");
        assert!(room.take(700), "with what the shard has");
        assert!(!room.take(1));
        assert!(room.take_spared(50, 50) && !room.take_spared(1, 50));
        assert_eq!(room.left(), -50);
        room.give_back(250);
        assert_eq!((room.left(), room.common.load(Relaxed)), (200, 200), "more than two parcels go back");
        room.add(10);
        assert_eq!(room.left(), 210);
    }

    #[test]
    fn threads_share_what_there_is() {
        let room = Room::new(100_000, 64 * 1000);
        let taken = || (0..).take_while(|_| room.take(7)).count() as i64;
        let counts: Vec<i64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(taken)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        // A refusal may meet bytes that another thread is moving; nothing is lost by it.
        let left = 100_000 - 7 * counts.iter().sum::<i64>();
        assert_eq!(room.left(), left, "{counts:?}");
        assert!(left >= 0, "{counts:?}");
        let rest = taken();
        assert_eq!(room.left(), left - 7 * rest);
        assert!(room.left() < 7, "{counts:?}, then {rest}");
    }
}
