//! The latches of the buffer cache under a model checker (loom): sessions and database writers in
//! every order of their steps, up to a number of preemptions.
//!
//! The files are the engine's own. The checker replaces the mutex, the conditions, the
//! atomics, and the record of each use of a block's bytes. A use that the latches do not order
//! before or after a change is a fault, even if the bytes happen to be right. No wait ends by
//! time, so a missing signal is a deadlock. Waits for an unpin, which sends no signal, release
//! the mutex and check again.
//!
//! Disk and log belong to the model and take no steps of the checker. They check that each written
//! block is whole and that its log is durable.

use plumb_engine::EngineError;
use plumb_engine::cache::{BlockCheck, CacheOptions};
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Recorder, Role, Session};
use plumb_units::{BlockAddress, BlockNumber, BlockSize, FileId, Lsn};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model;
use buffers::{BufferPin, BufferPool, IoBuffer};
use handles::ChangingBlock;
use latches::{Claim, Latches, Patience, WriteAhead};
use loom::sync::atomic;
use plumb_io::ask_huge_pages;

#[allow(dead_code)]
#[path = "../../../io/src/buffer_pool/pins.rs"]
mod pins;

#[allow(dead_code)]
#[path = "../../src/cache/frames.rs"]
mod frames;

#[allow(dead_code)]
#[path = "../../src/cache/handles.rs"]
mod handles;

#[allow(dead_code)]
#[path = "../../src/cache/latches.rs"]
mod latches;

/// The checker's synchronisation, except for waits that end by time.
mod sync {
    use super::thread;
    use std::ops::{Deref, DerefMut};
    use std::sync::{LockResult, TryLockError, TryLockResult};
    use std::time::Duration;

    /// A shorter wait is one for an unpin; all waits for a signal are at least this long.
    const SIGNALLED: Duration = Duration::from_millis(100);

    #[derive(Debug, Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    /// Refers to its mutex, in order to release it for a moment.
    pub struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        guard: loom::sync::MutexGuard<'a, T>,
    }

    impl<T> Mutex<T> {
        pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            let guard = self.0.lock().expect("a panic ends the model");
            Ok(MutexGuard { mutex: self, guard })
        }

        pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
            let guard = self.0.try_lock().map_err(|_| TryLockError::WouldBlock)?;
            Ok(MutexGuard { mutex: self, guard })
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.guard
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.guard
        }
    }

    #[derive(Debug)]
    pub struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }

        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        pub fn wait_timeout<'a, T>(
            &self,
            held: MutexGuard<'a, T>,
            most: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, bool)> {
            let MutexGuard { mutex, guard } = held;
            if most < SIGNALLED {
                drop(guard);
                thread::yield_now();
                return Ok((mutex.lock().expect("a panic ends the model"), true));
            }
            let guard = self.0.wait(guard).expect("a panic ends the model");
            Ok((MutexGuard { mutex, guard }, false))
        }
    }
}

mod thread {
    use std::time::Duration;

    pub use loom::thread::{JoinHandle, spawn, yield_now};

    /// False, because each session is a thread.
    pub fn is_shared() -> bool {
        false
    }

    /// Lets other threads run instead of sleeping.
    pub fn sleep(_: Duration) {
        yield_now();
    }
}

/// Buffers whose uses are recorded, in a pool that counts pins as the engine's does.
mod buffers {
    use super::pins::Pins;
    use loom::cell::UnsafeCell;
    use plumb_io::IoError;
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};
    use std::rc::Rc;

    /// Three words, as in [`super::Content`].
    #[derive(Debug, Default)]
    struct Memory {
        bytes: Cell<[u8; 24]>,
        uses: UnsafeCell<()>,
    }

    #[derive(Debug)]
    pub struct BufferPool {
        memory: Vec<Rc<Memory>>,
        pins: Pins,
    }

    impl BufferPool {
        pub fn new(_: usize, count: usize) -> Result<BufferPool, IoError> {
            Ok(BufferPool { memory: (0..count).map(|_| Rc::default()).collect(), pins: Pins::new(count) })
        }

        pub fn count(&self) -> usize {
            self.pins.count()
        }

        pub fn take(&self, index: u32) -> Option<IoBuffer> {
            self.pins.take(index).then(|| {
                let memory = Rc::clone(&self.memory[index as usize]);
                IoBuffer { bytes: memory.bytes.get(), memory }
            })
        }

        pub fn give_back(&self, index: u32, buffer: IoBuffer) {
            assert!(Rc::ptr_eq(&buffer.memory, &self.memory[index as usize]), "given back by its number");
            buffer.memory.uses.with_mut(|_| ());
            buffer.memory.bytes.set(buffer.bytes);
            self.pins.give_back(index);
        }

        pub fn pin(&self, index: u32) -> BufferPin<'_> {
            self.pins.pin(index);
            let memory = &self.memory[index as usize];
            BufferPin { pool: self, index, bytes: memory.bytes.get() }
        }

        pub fn is_idle(&self, index: u32) -> bool {
            self.pins.is_idle(index)
        }

        pub fn is_taken(&self, index: u32) -> bool {
            self.pins.is_taken(index)
        }

        /// Does nothing: a prefetch reads no byte.
        pub fn prefetch(&self, _: u32) {}
    }

    /// The owner's copy of the bytes; others see them after it is returned.
    #[derive(Debug)]
    pub struct IoBuffer {
        memory: Rc<Memory>,
        bytes: [u8; 24],
    }

    impl Deref for IoBuffer {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            self.memory.uses.with(|_| ());
            &self.bytes
        }
    }

    impl DerefMut for IoBuffer {
        fn deref_mut(&mut self) -> &mut [u8] {
            self.memory.uses.with_mut(|_| ());
            &mut self.bytes
        }
    }

    #[derive(Debug)]
    pub struct BufferPin<'a> {
        pool: &'a BufferPool,
        index: u32,
        bytes: [u8; 24],
    }

    impl Deref for BufferPin<'_> {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            let memory = &self.pool.memory[self.index as usize];
            memory.uses.with(|_| ());
            assert_eq!(memory.bytes.get(), self.bytes, "a block that is pinned stays as it is");
            &self.bytes
        }
    }

    impl Drop for BufferPin<'_> {
        fn drop(&mut self) {
            self.pool.pins.unpin(self.index);
        }
    }
}

const PURPOSE: Purpose = Purpose::Users;

fn address(block: u32) -> BlockAddress {
    BlockAddress { file: FileId(1), block: BlockNumber(block) }
}

/// Content of a block in the model.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Content {
    /// Number of changes, at both ends of the block.
    changes: u64,
    /// LSN of the last change.
    lsn: u64,
}

impl Content {
    fn of(block: &[u8]) -> Content {
        let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
        assert_eq!(word(0), word(16), "half a change");
        Content { changes: word(0), lsn: word(8) }
    }

    fn fill(self, block: &mut [u8]) {
        for (bytes, word) in block.chunks_exact_mut(8).zip([self.changes, self.lsn, self.changes]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// One session suffices, because the checker runs its threads in one thread of the system.
fn session() -> &'static Session {
    thread_local!(static SESSION: &'static Session = Box::leak(Box::new(Recorder::new().session(Role::User))));
    SESSION.with(|session| *session)
}

fn check(preemptions: usize, work: impl Fn() + Sync + Send + 'static) {
    // Made here, because the checker's threads have small stacks.
    session();
    model::check(preemptions, work);
}

/// A log of changes, each of which takes one LSN.
#[derive(Debug, Default)]
struct Log {
    appended: AtomicU64,
    durable: AtomicU64,
    fails: bool,
}

impl WriteAhead for Log {
    fn require_durable(&self, _: &Session, until: Lsn) -> Result<(), EngineError> {
        if self.fails {
            return Err(EngineError::WriterFailed { first: "the log is gone".to_string() });
        }
        assert!(until.0 <= self.appended.load(SeqCst) + 1, "only what was appended can be made durable");
        self.durable.fetch_max(until.0, SeqCst);
        Ok(())
    }

    fn gap(&self) -> &Range<Lsn> {
        &(Lsn(0)..Lsn(0))
    }

    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(SeqCst))
    }

    fn write_behind(&self) -> Lsn {
        Lsn(0)
    }

    fn note_definitions(&self, _: &Session, _: u64) {}
}

/// A block on disk, with its number of reads.
#[derive(Debug, Default, Clone, Copy)]
struct OnDisk {
    content: Content,
    reads: u64,
}

/// Outcome of writes to the disk.
#[derive(Debug, Clone, Copy)]
enum Device {
    Works,
    Fails,
}

/// A cache over a disk of a few blocks. An `Rc` suffices, because the checker runs its threads
/// in one of the system's.
struct Cache {
    latches: Latches,
    log: Arc<Log>,
    disk: Mutex<[OnDisk; 5]>,
}

impl Cache {
    fn new(frame_count: usize) -> Rc<Cache> {
        Cache::with(frame_count, Log::default())
    }

    fn with(frame_count: usize, log: Log) -> Rc<Cache> {
        let options = CacheOptions {
            frame_count,
            writer_count: 1,
            first_writer: 0,
            batch_blocks: 8,
            request_blocks: 1,
            prefetch_blocks: 0,
            check: BlockCheck::Whole,
        };
        let log = Arc::new(log);
        let latches = Latches::new(options, BlockSize::ALL[0], "db_cache_size");
        latches.log_first(Arc::clone(&log) as Arc<dyn WriteAhead>);
        Rc::new(Cache { latches, log, disk: Mutex::default() })
    }

    fn on_disk<T>(&self, block: u32, with: impl FnOnce(&mut OnDisk) -> T) -> T {
        with(&mut self.disk.lock().unwrap_or_else(PoisonError::into_inner)[block as usize])
    }

    /// Returns a block's content, reading it from disk if it is not cached.
    fn look(&self, block: u32) -> Result<Content, EngineError> {
        match self.latches.claim(session(), PURPOSE, address(block), Patience::Wait)? {
            Claim::Hit(pinned) => Ok(Content::of(&pinned)),
            Claim::Miss(mut frame) => {
                let read = self.on_disk(block, |disk| {
                    disk.reads += 1;
                    disk.content
                });
                read.fill(frame.bytes_mut());
                Ok(Content::of(&frame.arrived(session(), 1)))
            }
            Claim::Unavailable => unreachable!("the session waits"),
        }
    }

    /// Changes a block; returns the LSN of the change.
    fn change(&self, block: u32) -> Result<Lsn, EngineError> {
        loop {
            self.look(block)?;
            if let Some(changing) = self.latches.begin_change(session(), address(block))? {
                return Ok(self.log_change(changing));
            }
        }
    }

    fn log_change(&self, mut changing: ChangingBlock<'_>) -> Lsn {
        let changes = Content::of(&changing).changes + 1;
        let lsn = self.log.appended.fetch_add(1, SeqCst) + 1;
        Content { changes, lsn }.fill(&mut changing);
        changing.changed(Lsn(lsn));
        Lsn(lsn)
    }

    /// Formats a new block, and waits until it is on disk.
    fn format(&self, block: u32) -> Result<(), EngineError> {
        let writer = self.latches.open_writer(session())?;
        let mut frame = self.latches.own(session())?.expect("a database writer writes");
        let formatted = Content { changes: 7, lsn: 0 };
        formatted.fill(frame.bytes_mut());
        self.latches.dirtied(session(), frame, (address(block), Purpose::Temp), writer)?;
        self.latches.drain(session(), writer)?;
        assert_eq!(self.on_disk(block, |disk| disk.content), formatted, "it is on disk");
        self.latches.close_writer(writer);
        Ok(())
    }

    /// Runs a database writer on this device.
    fn write(&self, disk: Device) {
        while let Some(mut batch) = self.latches.next_batch(session()) {
            for block in &mut batch {
                let copy = Content::of(&block.bytes.take().expect("copied once"));
                assert!(copy.lsn < self.log.durable().0 || !block.logged, "written before its log");
                self.on_disk(block.address.block.0, |disk| {
                    assert!(copy.changes >= disk.content.changes, "the copy is older than what is there");
                    disk.content = copy;
                });
            }
            match disk {
                Device::Works => self.latches.written(&batch),
                Device::Fails => {
                    self.latches.fail("the disk is gone".to_string());
                    break;
                }
            }
        }
        self.latches.writer_ended();
    }

    fn start_writer(self: &Rc<Cache>, disk: Device) -> thread::JoinHandle<()> {
        self.latches.writer_begins();
        self.start(move |cache| cache.write(disk))
    }

    fn start<T>(self: &Rc<Cache>, work: impl FnOnce(&Cache) -> T + 'static) -> thread::JoinHandle<()> {
        let cache = Rc::clone(self);
        thread::spawn(move || {
            work(&cache);
        })
    }

    /// Joins the sessions, then the database writers. Asserts that nothing failed
    /// and that no session waits.
    fn end(
        &self,
        sessions: impl IntoIterator<Item = thread::JoinHandle<()>>,
        writers: impl IntoIterator<Item = thread::JoinHandle<()>>,
    ) {
        sessions.into_iter().for_each(|thread| thread.join().expect("no panic"));
        self.latches.stop();
        writers.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(self.latches.check(), 0, "nobody waits");
        if let Some(buffers) = self.latches.memory() {
            assert!((0..buffers.count() as u32).all(|index| buffers.is_idle(index)), "nobody uses a buffer");
        }
    }
}

/// Waits until the change of this LSN is on disk.
fn checkpoint(cache: &Cache, lsn: Lsn) -> Result<(), EngineError> {
    cache.latches.write_changed(session(), Lsn(lsn.0 + 1))
}

const WORKS: &str = "nothing fails";

/// Tests the pin counts without the latches, whose mutex orders all but the end of a pin: the
/// counts alone separate an owner from readers.
#[test]
fn pins_see_the_last_owner_and_precede_the_next() {
    check(3, || {
        let pool = Rc::new(BufferPool::new(24, 1).expect("memory"));
        let write = |pool: &BufferPool, changes: u64| {
            if let Some(mut buffer) = pool.take(0) {
                Content { changes, lsn: changes }.fill(&mut buffer);
                pool.give_back(0, buffer);
            }
        };
        write(&pool, 1);
        let is_given_back = Rc::new(atomic::AtomicBool::new(false));
        let (other, says) = (Rc::clone(&pool), Rc::clone(&is_given_back));
        let writing = thread::spawn(move || {
            write(&other, 2);
            says.store(true, atomic::Ordering::Relaxed);
        });
        if is_given_back.load(atomic::Ordering::Relaxed) {
            let content = Content::of(&pool.pin(0));
            assert_eq!(content.changes, content.lsn);
        }
        write(&pool, 3);
        writing.join().expect("no panic");
        assert!(pool.is_idle(0));
    });
}

#[test]
fn a_block_that_two_sessions_miss_is_read_once() {
    check(3, || {
        let cache = Cache::new(2);
        let other = cache.start(|cache| cache.look(1).expect(WORKS));
        cache.look(1).expect(WORKS);
        cache.end([other], []);
        assert_eq!(cache.on_disk(1, |disk| disk.reads), 1);
    });
}

/// A session whose read fails returns the frame; the session waiting for it reads.
#[test]
fn a_read_that_fails_is_done_by_the_waiter() {
    check(3, || {
        let cache = Cache::new(1);
        let failing = cache.start(|cache| {
            drop(cache.latches.claim(session(), PURPOSE, address(1), Patience::Wait).expect(WORKS));
        });
        let other = cache.start(|cache| cache.look(1).expect(WORKS));
        cache.look(1).expect(WORKS);
        cache.end([failing, other], []);
        assert_eq!(cache.on_disk(1, |disk| disk.reads), 1);
    });
}

#[test]
fn a_reader_sees_whole_changes_and_does_not_starve_them() {
    check(3, || {
        let cache = Cache::new(2);
        let reader = cache.start(|cache| {
            let before = cache.look(1).expect(WORKS);
            assert!(cache.look(1).expect(WORKS).changes >= before.changes, "a change stays");
        });
        cache.change(1).expect(WORKS);
        cache.end([reader], []);
        assert_eq!(cache.look(1).expect(WORKS).changes, 1);
    });
}

#[test]
fn changes_of_two_sessions_are_both_there() {
    check(3, || {
        let cache = Cache::new(2);
        let other = cache.start(|cache| cache.change(1).expect(WORKS));
        cache.change(1).expect(WORKS);
        cache.end([other], []);
        assert_eq!(cache.look(1).expect(WORKS), Content { changes: 2, lsn: 2 });
    });
}

/// With eight frames only the checkpoint causes writes.
#[test]
fn a_checkpoint_has_changes_on_disk_while_others_go_on() {
    check(3, || {
        let cache = Cache::new(8);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| cache.change(1).expect(WORKS));
        let lsn = cache.change(1).expect(WORKS);
        checkpoint(&cache, lsn).expect(WORKS);
        assert!(cache.on_disk(1, |disk| disk.content.lsn) >= lsn.0, "the checkpoint's change is on disk");
        other.join().expect("no panic");
        checkpoint(&cache, Lsn(2)).expect(WORKS);
        assert_eq!(cache.on_disk(1, |disk| disk.content), Content { changes: 2, lsn: 2 });
        cache.end([], [writer]);
    });
}

/// With two frames each change is written at once, and the second perhaps during the first write.
#[test]
fn a_block_changed_while_it_is_written_is_written_again() {
    check(3, || {
        let cache = Cache::new(2);
        let writer = cache.start_writer(Device::Works);
        let reader = cache.start(|cache| cache.look(1).expect(WORKS));
        cache.change(1).expect(WORKS);
        let lsn = cache.change(1).expect(WORKS);
        checkpoint(&cache, lsn).expect(WORKS);
        assert_eq!(cache.on_disk(1, |disk| disk.content), Content { changes: 2, lsn: 2 });
        cache.end([reader], [writer]);
    });
}

/// B8: a block in flight of one database writer is skipped by the other, changed again or not.
#[test]
fn two_database_writers_do_not_write_a_block_at_once() {
    check(2, || {
        let cache = Cache::new(2);
        let writers = [cache.start_writer(Device::Works), cache.start_writer(Device::Works)];
        cache.change(1).expect(WORKS);
        let lsn = cache.change(1).expect(WORKS);
        checkpoint(&cache, lsn).expect(WORKS);
        assert_eq!(cache.on_disk(1, |disk| disk.content), Content { changes: 2, lsn: 2 });
        cache.end([], writers);
    });
}

/// A change that is given up makes the block dirty again: a database writer that found
/// nothing to write is signalled.
#[test]
fn a_checkpoint_ends_although_a_change_is_given_up() {
    check(3, || {
        let cache = Cache::new(8);
        let lsn = cache.change(1).expect(WORKS);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| {
            drop(cache.latches.begin_change(session(), address(1)).expect(WORKS));
        });
        checkpoint(&cache, lsn).expect(WORKS);
        cache.end([other], [writer]);
    });
}

#[test]
fn sessions_share_a_frame_by_unpinning() {
    check(3, || {
        let cache = Cache::new(1);
        let other = cache.start(|cache| cache.look(1).expect(WORKS));
        cache.look(2).expect(WORKS);
        cache.end([other], []);
    });
}

#[test]
fn sessions_get_the_frame_that_they_wait_for() {
    check(3, || {
        let cache = Cache::new(1);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| cache.look(2).expect(WORKS));
        cache.change(1).expect(WORKS);
        cache.look(3).expect(WORKS);
        assert_eq!(
            cache.on_disk(1, |disk| disk.content.changes),
            1,
            "a frame is not taken before it is written"
        );
        cache.end([other], [writer]);
    });
}

/// Three of four frames are pinned; the one dirty block is written only because a session waits.
#[test]
fn a_dirty_block_is_written_when_its_frame_is_wanted() {
    check(3, || {
        let cache = Cache::new(4);
        cache.change(0).expect(WORKS);
        let pins = [1, 2, 3].map(|block| {
            cache.look(block).expect(WORKS);
            cache.latches.claim(session(), PURPOSE, address(block), Patience::Never).expect(WORKS)
        });
        assert!(pins.iter().all(|pin| matches!(pin, Claim::Hit(_))), "they have been read");
        let writer = cache.start_writer(Device::Works);
        cache.look(4).expect(WORKS);
        drop(pins);
        cache.end([], [writer]);
    });
}

#[test]
fn two_sessions_waiting_for_one_block_read_it_once() {
    check(3, || {
        let cache = Cache::new(1);
        cache.change(1).expect(WORKS);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| cache.look(2).expect(WORKS));
        cache.look(2).expect(WORKS);
        cache.end([other], [writer]);
        assert_eq!(cache.on_disk(2, |disk| disk.reads), 1);
    });
}

#[test]
fn sessions_that_format_blocks_share_a_frame() {
    check(2, || {
        let cache = Cache::new(1);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| cache.format(1).expect(WORKS));
        cache.format(2).expect(WORKS);
        cache.end([other], [writer]);
    });
}

/// With eight frames one dirty block is written only because a session drains.
#[test]
fn a_session_that_drains_has_its_blocks_written() {
    check(3, || {
        let cache = Cache::new(8);
        let writer = cache.start_writer(Device::Works);
        cache.format(1).expect(WORKS);
        cache.end([], [writer]);
    });
}

/// B6: one session waits for a frame, one for its changes on disk.
#[test]
fn a_failed_write_wakes_everybody() {
    check(3, || {
        let cache = Cache::new(1);
        let lsn = cache.change(1).expect(WORKS);
        let writer = cache.start_writer(Device::Fails);
        let other = cache.start(|cache| assert!(cache.look(2).is_err()));
        assert!(checkpoint(&cache, lsn).is_err());
        cache.end([other], [writer]);
        assert!(cache.look(1).is_err(), "it stays so");
    });
}

/// The same if the log fails, before any block is written.
#[test]
fn a_failed_log_wakes_everybody() {
    check(3, || {
        let cache = Cache::with(1, Log { fails: true, ..Log::default() });
        let lsn = cache.change(1).expect(WORKS);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| assert!(cache.look(2).is_err()));
        assert!(checkpoint(&cache, lsn).is_err());
        cache.end([other], [writer]);
        assert!(cache.look(1).is_err(), "it stays so");
    });
}

#[test]
fn a_block_is_forgotten_before_a_change_or_after_it() {
    check(3, || {
        let cache = Cache::new(2);
        cache.look(1).expect(WORKS);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| {
            if let Some(changing) = cache.latches.begin_change(session(), address(1)).expect(WORKS) {
                cache.log_change(changing);
            }
        });
        cache.latches.discard(session(), [address(1)]);
        other.join().expect("no panic");
        cache.latches.discard(session(), [address(1)]);
        assert_eq!(cache.latches.count_of(PURPOSE), 0);
        cache.end([], [writer]);
    });
}

/// A session waiting for a frame gets the frame of a discarded block.
#[test]
fn a_frame_whose_block_is_forgotten_is_free() {
    check(3, || {
        let cache = Cache::new(2);
        cache.change(1).expect(WORKS);
        cache.change(2).expect(WORKS);
        let other = cache.start(|cache| cache.look(3).expect(WORKS));
        cache.latches.discard(session(), [address(1)]);
        cache.end([other], []);
    });
}

/// A new block replaces an old one at its address, whose frame is free at
/// once for a waiting session.
#[test]
fn a_frame_whose_block_a_new_one_replaces_is_free() {
    check(3, || {
        let cache = Cache::new(2);
        cache.change(1).expect(WORKS);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| cache.look(2).expect(WORKS));
        let new = cache.latches.begin_new(session(), PURPOSE, address(1));
        let mut new = new.expect(WORKS).expect("a database writer writes");
        other.join().expect("no panic");
        Content::default().fill(&mut new);
        cache.log_change(new);
        cache.end([], [writer]);
    });
}

/// A discarded block need not be written, so a session waiting for its write continues.
#[test]
fn a_checkpoint_ends_although_a_block_is_forgotten() {
    check(3, || {
        let cache = Cache::new(8);
        let lsn = cache.change(1).expect(WORKS);
        let writer = cache.start_writer(Device::Works);
        let other = cache.start(|cache| cache.latches.discard(session(), [address(1)]));
        checkpoint(&cache, lsn).expect(WORKS);
        cache.end([other], [writer]);
    });
}
