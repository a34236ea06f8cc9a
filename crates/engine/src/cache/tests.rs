//! The cache over files in memory: 32 frames of 32K, so that everything runs short.
//!
//! Every test runs in a thread of its own and fails after a minute: the most likely failure of a
//! cache is a session that hangs.

mod frames;

use super::latches::Claim;
use super::{BufferCache, CacheReader, CacheWriter, CacheWriterOptions, PinnedBlock};
use crate::instance::InitialSizes;
use crate::settings::Settings;
use crate::storage::block::{self, BlockKind, Content, Expected, HEADER_BYTES, LsnRange};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::{EngineError, Instance, Layout};
use plumb_events::{Cancel, Event, IoStream, Period, Role, Session, SessionKind, Snapshot, Statistic, now};
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_io::{Arena, Disk, IoBuffer, Method, MethodKind, Operation, Request};
use plumb_units::{BlockAddress, Bytes, Lsn, Nanos, SplitMix};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

const FRAMES: u32 = 32;
const KIND: BlockKind = BlockKind::Temp;
const READ: Expected = Expected { kind: KIND, lsns: LsnRange::ANY };

/// Runs the body of a test and fails after a minute, far more than any test takes.
fn bounded(body: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        _ => thread.join().expect("the test's body"),
    }
}

fn instance_of(home: &Path, more: &[(&str, &str)]) -> Result<Instance, EngineError> {
    let mut settings = Settings::default();
    let few = [("db_block_size", "32K"), ("db_cache_size", "1M"), ("io_method", "null"), ("data_files", "2")];
    for (name, value) in few.iter().chain(more) {
        settings.set(name, value, "test")?;
    }
    let sizes = InitialSizes { users: Bytes(Bytes::M), temp: Bytes(8 * Bytes::M), indx: Bytes(Bytes::M) };
    Instance::create(&Layout::in_one(home.to_path_buf()), settings, sizes, Cancel::default())
}

fn instance(more: &[(&str, &str)]) -> Instance {
    let home = tempfile::tempdir().expect("a directory");
    instance_of(&home.path().join("db"), more).expect("an instance")
}

fn session(instance: &Instance) -> Session {
    instance.recorder.session(Role::User)
}

fn memory(instance: &Instance) -> Arc<MemoryDisk> {
    match &instance.access.disk {
        Disk::Memory(disk) => Arc::clone(disk),
        _ => unreachable!("io_method=null"),
    }
}

fn since(instance: &Instance, before: &Snapshot) -> Period {
    instance.recorder.snapshot().since(before)
}

fn writer<'a>(session: &'a Session, instance: &'a Instance, purpose: Purpose) -> CacheWriter<'a> {
    let options = CacheWriterOptions { kind: KIND, lsn: Lsn(7) };
    CacheWriter::new(session, (instance.caches(), &instance.access), instance.tablespace(purpose), options)
        .expect("a writer")
}

/// Writes a block with `mark` at both ends of its content.
fn write_block(writer: &mut CacheWriter<'_>, mark: u64) -> Result<BlockAddress, EngineError> {
    let block = writer.block()?;
    let used = block.len() - HEADER_BYTES;
    block[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&mark.to_le_bytes());
    let end = block.len();
    block[end - 8..].copy_from_slice(&mark.to_le_bytes());
    writer.seal(Content { entries: 1, used: used as u16 })
}

fn mark_of(block: &[u8]) -> u64 {
    let mark = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(mark(HEADER_BYTES), mark(block.len() - 8), "a block has one mark");
    mark(HEADER_BYTES)
}

/// Writes `count` blocks; their marks count from `from`.
fn write_segment(
    session: &Session,
    instance: &Instance,
    purpose: Purpose,
    (from, count): (u64, u64),
) -> Result<(Vec<SegmentExtent>, Vec<BlockAddress>), EngineError> {
    let mut writer = writer(session, instance, purpose);
    let addresses =
        (from..from + count).map(|mark| write_block(&mut writer, mark)).collect::<Result<Vec<_>, _>>()?;
    Ok((writer.finish()?, addresses))
}

/// Reads or writes the block on disk, past the cache.
fn past_the_cache(
    session: &Session,
    tablespace: &Tablespace,
    address: BlockAddress,
    (operation, buffer): (Operation, IoBuffer),
) -> IoBuffer {
    let file = Arc::clone(&tablespace.file(address.file).expect("usable").file);
    let mut channel = Method::start(MethodKind::Sync, 1).expect("calls").channel(&[]).expect("a channel");
    let request = Request {
        operation,
        file,
        offset: address.block.byte_offset(tablespace.block_size),
        range: 0..buffer.len(),
        buffer,
        event: Event::DirectPathReadTemp,
        stream: IoStream::TempReads,
        tag: 0,
    };
    channel.submit(session, request).expect("submitted");
    channel.wait(session, Event::DirectPathReadTemp).expect("carried out").buffer
}

fn one_block(tablespace: &Tablespace) -> IoBuffer {
    let (_, mut buffers) = Arena::buffers(tablespace.block_size.bytes(), 1).expect("a buffer");
    buffers.pop().expect("one")
}

/// Reads the block on disk, past the cache, verifies it and returns its mark.
fn mark_on_disk(session: &Session, instance: &Instance, purpose: Purpose, address: BlockAddress) -> u64 {
    let tablespace = instance.tablespace(purpose);
    let buffer = past_the_cache(session, tablespace, address, (Operation::Read, one_block(tablespace)));
    block::verify(&buffer, READ, address, tablespace.path(address)).expect("the block that was written");
    mark_of(&buffer)
}

fn release(session: &Session, instance: &Instance, purpose: Purpose, extents: Vec<SegmentExtent>) {
    instance.caches().own().discard(session, extents.iter().map(|extent| extent.extent));
    instance.tablespace(purpose).release(extents.into_iter().map(|extent| extent.extent));
}

/// Writes 2,000 blocks from `sessions` sessions through 32 frames; all must be on disk.
fn check_written_out(sessions: u64, more: &[(&str, &str)]) -> (Period, u64) {
    let instance = instance(more);
    let before = instance.recorder.snapshot();
    let each = 2000 / sessions;
    thread::scope(|scope| {
        for number in 0..sessions {
            let instance = &instance;
            scope.spawn(move || {
                let session = session(instance);
                let from = number * each;
                let (extents, addresses) =
                    write_segment(&session, instance, Purpose::Temp, (from, each)).expect("written");
                assert_eq!(extents.iter().map(|extent| u64::from(extent.used)).sum::<u64>(), each);
                for (mark, address) in (from..).zip(addresses) {
                    assert_eq!(mark_on_disk(&session, instance, Purpose::Temp, address), mark);
                }
            });
        }
    });
    instance.caches().own().check();
    let period = since(&instance, &before);
    assert_eq!(period.statistic(Statistic::PhysicalWritesFromCache), each * sessions);
    assert_eq!(period.statistic(Statistic::PhysicalWriteBlocks), each * sessions);
    assert_eq!(period.stream(IoStream::TempWrites).bytes, each * sessions * 32 * 1024);
    assert_eq!(period.statistic(Statistic::FreeBufferRequested), each * sessions);
    (period, each * sessions)
}

#[test]
fn blocks_of_one_session_are_on_disk_after_finish() {
    bounded(|| {
        let (period, blocks) = check_written_out(1, &[]);
        assert_eq!(period.stream(IoStream::TempWrites).count, blocks, "one request a block");
        assert_eq!(period.event(Event::DbFileParallelWrite, SessionKind::Background).count, blocks);
        let batches = period.statistic(Statistic::DbwrBatches);
        assert!(batches >= blocks / u64::from(FRAMES), "a batch is at most the cache");
    });
}

#[test]
fn one_writer_or_three_write_the_blocks_of_several_sessions() {
    bounded(|| {
        for writers in ["1", "3"] {
            let (period, _) = check_written_out(4, &[("db_writer_processes", writers)]);
            let background =
                period.sessions.iter().filter(|session| session.role.kind() == SessionKind::Background);
            assert_eq!(background.count().to_string(), writers);
        }
    });
}

#[test]
fn a_batch_is_no_longer_than_db_block_write_batch() {
    bounded(|| {
        let (period, blocks) = check_written_out(2, &[("db_block_write_batch", "3")]);
        assert!(period.statistic(Statistic::DbwrBatches) >= blocks / 3);
    });
}

#[test]
fn every_method_writes_and_reads_real_files() {
    bounded(|| {
        for (method, options) in [("sync", "none"), ("threads", "asynch"), ("io_uring", "asynch")] {
            let home = tempfile::tempdir().expect("a directory");
            let more = [("io_method", method), ("filesystemio_options", options), ("db_block_size", "8K")];
            let instance = match instance_of(&home.path().join("db"), &more) {
                Err(EngineError::Io(error)) if method == "io_uring" => {
                    println!("io_uring is not to be had here: {error}");
                    continue;
                }
                other => other.expect("an instance"),
            };
            let session = session(&instance);
            let (_, addresses) =
                write_segment(&session, &instance, Purpose::Indx, (0, 400)).expect("written");
            for (mark, address) in (0..).zip(&addresses) {
                assert_eq!(mark_on_disk(&session, &instance, Purpose::Indx, *address), mark);
            }
            let mut reader = CacheReader::new(&session, instance.caches());
            for (mark, address) in (0..).zip(addresses) {
                assert_eq!(mark_of(&reader.get(Purpose::Indx, address, READ).expect("read")), mark);
            }
            drop(reader);
            drop(session);
            instance.destroy().expect("removed");
            assert!(!home.path().join("db").exists());
        }
    });
}

#[test]
fn adjacent_blocks_are_joined_when_requests_may_be_larger() {
    bounded(|| {
        let mut instance = instance(&[]);
        let options = super::CacheOptions { request_blocks: 4, ..*instance.caches().own().options() };
        instance.replace_cache(options);
        let before = instance.recorder.snapshot();
        let session = session(&instance);
        let (_, addresses) = write_segment(&session, &instance, Purpose::Temp, (0, 300)).expect("written");
        for (mark, address) in (0..).zip(addresses) {
            assert_eq!(mark_on_disk(&session, &instance, Purpose::Temp, address), mark);
        }
        let writes = since(&instance, &before).stream(IoStream::TempWrites);
        assert_eq!(writes.bytes, 300 * 32 * 1024);
        assert!(writes.count < 300, "{} requests", writes.count);
    });
}

/// Pins blocks of a new segment until every frame is pinned.
fn pin_everything<'a>(session: &'a Session, instance: &'a Instance) -> Vec<PinnedBlock<'a>> {
    let (_, addresses) =
        write_segment(session, instance, Purpose::Users, (0, u64::from(FRAMES))).expect("written");
    let mut reader = CacheReader::new(session, instance.caches());
    let pins = addresses.iter().map(|address| reader.get(Purpose::Users, *address, READ).expect("read"));
    pins.collect()
}

#[test]
fn a_session_waits_for_a_free_buffer() {
    bounded(|| {
        let instance = instance(&[]);
        let before = instance.recorder.snapshot();
        let main = session(&instance);
        let pins = pin_everything(&main, &instance);
        let earlier = since(&instance, &before).event(Event::FreeBufferWaits, SessionKind::Foreground).count;
        thread::scope(|scope| {
            scope.spawn(|| {
                write_segment(&session(&instance), &instance, Purpose::Temp, (0, 1)).expect("written")
            });
            while instance.caches().own().check() == 0 {
                thread::yield_now();
            }
            drop(pins);
        });
        let waits = since(&instance, &before).event(Event::FreeBufferWaits, SessionKind::Foreground);
        assert_eq!(waits.count, earlier + 1);
        assert!(waits.time > Nanos(0));
    });
}

#[test]
fn a_session_gives_up_when_every_buffer_stays_pinned() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let pins = pin_everything(&session, &instance);
        let mut reader = CacheReader::new(&session, instance.caches());
        let elsewhere =
            BlockAddress { file: instance.tablespace(Purpose::Indx).files[0].id, ..pins[0].address() };
        let error = reader.get(Purpose::Indx, elsewhere, READ).expect_err("no frame");
        assert_eq!(
            error.to_string(),
            "db_cache_size of 32 blocks contradicts the sessions, which keep all of them pinned: \
             none became free for 1.00 s; raise db_cache_size or lower parallel_degree"
        );
    });
}

/// A starved session fails, but a session that waits for a device does not: here all buffers wait
/// for the device, longer than starving takes.
#[test]
fn a_device_that_does_not_answer_is_waited_for() {
    bounded(|| {
        let instance = instance(&[]);
        let blocks = {
            let session = session(&instance);
            let written = write_segment(&session, &instance, Purpose::Users, (0, 2 * u64::from(FRAMES)));
            let (extents, blocks) = written.expect("on disk");
            instance.caches().own().discard(&session, extents.iter().map(|extent| extent.extent));
            blocks
        };
        let disk = memory(&instance);
        disk.stall();
        let before = instance.recorder.snapshot();
        thread::scope(|scope| {
            for block in &blocks {
                let instance = &instance;
                scope.spawn(move || {
                    let session = session(instance);
                    let mut reader = CacheReader::new(&session, instance.caches());
                    reader.get(Purpose::Users, *block, READ).expect("read in the end");
                });
            }
            while disk.held() < FRAMES as usize {
                thread::yield_now();
            }
            // 1.5 times as long as a session waits for pinned buffers.
            thread::sleep(Duration::from_millis(1500));
            disk.resume();
        });
        let waited = since(&instance, &before).event(Event::FreeBufferWaits, SessionKind::Foreground);
        assert_eq!(waited.count, u64::from(FRAMES), "those without a buffer wait for one");
        instance.caches().own().check();
    });
}

/// A database writer pins the blocks that it has not copied yet; if the device does not answer,
/// for longer than starving takes.
#[test]
fn a_change_waits_for_a_batch_on_a_stalled_device() {
    bounded(|| {
        let instance = instance(&[]);
        let own = session(&instance);
        let disk = memory(&instance);
        let mut writer = writer(&own, &instance, Purpose::Users);
        let blocks: Vec<_> = (0..4).map(|mark| write_block(&mut writer, mark).expect("a buffer")).collect();
        let before = instance.recorder.snapshot();
        disk.stall();
        writer.flush().expect("asked");
        while disk.held() == 0 {
            thread::yield_now();
        }
        thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let session = session(&instance);
                let mut reader = CacheReader::new(&session, instance.caches());
                let changed = reader.change(Purpose::Users, blocks[3], READ);
                changed.map(drop)
            });
            thread::sleep(Duration::from_millis(1500));
            disk.resume();
            changing.join().expect("no panic").expect("taken when it has been copied");
        });
        let waited = since(&instance, &before).event(Event::WriteCompleteWaits, SessionKind::Foreground);
        assert!(waited.count > 0, "its name says what it waits for");
        writer.finish().expect("on disk");
        instance.caches().own().check();
    });
}

#[test]
fn a_block_is_read_once_and_then_found() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let (_, addresses) = write_segment(&session, &instance, Purpose::Users, (0, 40)).expect("written");
        let all = instance.tablespace(Purpose::Users).files.iter().map(|file| file.id);
        // Discards blocks that still have an owner, so that the first get reads.
        for file in all {
            let extent = crate::storage::tablespace::Extent { file: file.0, block: 0, blocks: 64 };
            instance.caches().own().discard(&session, [extent]);
        }
        let mut reader = CacheReader::new(&session, instance.caches());
        let before = instance.recorder.snapshot();
        for _ in 0..2 {
            assert_eq!(mark_of(&reader.get(Purpose::Users, addresses[3], READ).expect("read")), 3);
        }
        let period = since(&instance, &before);
        assert_eq!(period.statistic(Statistic::LogicalReads), 2);
        assert_eq!(period.statistic(Statistic::CacheHits), 1);
        assert_eq!(period.statistic(Statistic::PhysicalReadBlocks), 1);
        assert_eq!(period.event(Event::DbFileSequentialRead, SessionKind::Foreground).count, 1);
        assert_eq!(period.stream(IoStream::CacheReads).count, 1);

        let error = reader
            .get(Purpose::Users, addresses[3], Expected { kind: BlockKind::Leaf, ..READ })
            .expect_err("another kind");
        assert!(error.to_string().contains("kind: found temp, expected index leaf"), "{error}");
        instance.caches().own().check();
    });
}

#[test]
fn a_damaged_block_is_found_by_checksum_or_header() {
    bounded(|| {
        for (word, counted) in [("typical", [1, 0]), ("off", [0, 1])] {
            let instance = instance(&[("db_block_checksum", word)]);
            let session = session(&instance);
            let addresses = seven_on_disk(&session, &instance);
            let tablespace = instance.tablespace(Purpose::Users);
            let damage = |address, at: usize| {
                let read = (Operation::Read, one_block(tablespace));
                let mut buffer = past_the_cache(&session, tablespace, address, read);
                buffer[at] ^= 1;
                past_the_cache(&session, tablespace, address, (Operation::Write, buffer));
            };
            damage(addresses[0], HEADER_BYTES + 100);
            damage(addresses[1], 8);
            let before = instance.recorder.snapshot();
            let mut reader = CacheReader::new(&session, instance.caches());
            let read = reader.get(Purpose::Users, addresses[0], READ).map(|block| mark_of(&block));
            let period = since(&instance, &before);
            let statistics = [Statistic::BlocksVerified, Statistic::ChecksumsIgnored];
            assert_eq!(statistics.map(|of| period.statistic(of)), counted, "{word}");
            match word {
                "off" => assert_eq!(read.expect("taken as it is"), 0),
                _ => assert!(read.expect_err("damaged").to_string().contains("checksum")),
            }
            reader.get(Purpose::Users, addresses[1], READ).expect_err("the address is another's");
            // A verifying reader checks the checksum all the same.
            let extent = tablespace.file(addresses[0].file).expect("usable").id;
            let extent = crate::storage::tablespace::Extent { file: extent.0, block: 0, blocks: 64 };
            instance.caches().own().discard(&session, [extent]);
            let mut reader = CacheReader::verifying(&session, instance.caches());
            reader.get(Purpose::Users, addresses[0], READ).expect_err("damaged");
            instance.caches().own().check();
        }
    });
}

/// Writes blocks with marks from 0 to 6 and discards them from the cache.
fn seven_on_disk(session: &Session, instance: &Instance) -> Vec<BlockAddress> {
    let (extents, addresses) = write_segment(session, instance, Purpose::Users, (0, 7)).expect("written");
    instance.caches().own().discard(session, extents.iter().map(|extent| extent.extent));
    addresses
}

#[test]
fn a_multiblock_read_is_one_request_around_what_is_there() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let addresses = seven_on_disk(&session, &instance);
        let mut reader = CacheReader::new(&session, instance.caches());
        let in_between = reader.get(Purpose::Users, addresses[2], READ).expect("read");
        let before = instance.recorder.snapshot();
        let blocks = reader.read_multiblock(Purpose::Users, addresses[0], 7, READ).expect("read");
        assert_eq!(blocks.iter().map(|block| mark_of(block)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(blocks.iter().map(PinnedBlock::address).collect::<Vec<_>>(), addresses);
        assert_eq!(blocks[2].as_ptr(), in_between.as_ptr(), "a block is in one frame");
        let period = since(&instance, &before);
        assert_eq!(period.event(Event::DbFileScatteredRead, SessionKind::Foreground).count, 1);
        assert_eq!(period.statistic(Statistic::CacheHits), 1);
        assert_eq!(period.statistic(Statistic::LogicalReads), 7);
        assert_eq!(period.statistic(Statistic::PhysicalReadBlocks), 7);
    });
}

#[test]
fn a_multiblock_read_pins_at_most_a_quarter_of_frames() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let (_, addresses) = write_segment(&session, &instance, Purpose::Users, (0, 31)).expect("written");
        let mut reader = CacheReader::new(&session, instance.caches());
        let blocks = reader.read_multiblock(Purpose::Users, addresses[0], 31, READ).expect("read");
        assert_eq!(blocks.len() as u32, FRAMES / 4);
    });
}

/// Returns the share of hits among random reads of a set.
fn hit_ratio(
    reader: &mut CacheReader<'_>,
    instance: &Instance,
    set: &[BlockAddress],
    (random, reads): (&mut SplitMix, u64),
) -> f64 {
    let before = instance.recorder.snapshot().statistic(Statistic::CacheHits);
    for _ in 0..reads {
        let block = set[random.below(set.len() as u64) as usize];
        reader.get(Purpose::Users, block, READ).expect("read");
    }
    (instance.recorder.snapshot().statistic(Statistic::CacheHits) - before) as f64 / reads as f64
}

/// A hot set of half the cache is read as often as a scan of ten times the cache; then another hot
/// set is read in passes.
#[test]
fn a_scan_spares_a_hot_set_and_admits_new_ones() {
    bounded(|| {
        let more = [("db_block_size", "2K"), ("debug_cache_blocks", "512"), ("data_files", "1")];
        let instance = instance(&more);
        let session = session(&instance);
        let (_, blocks) = write_segment(&session, &instance, Purpose::Users, (0, 13 * 512)).expect("written");
        let (hot, rest) = blocks.split_at(256);
        let mut reader = CacheReader::new(&session, instance.caches());
        let mut random = SplitMix(7);
        hit_ratio(&mut reader, &instance, hot, (&mut random, 4096));
        assert_eq!(hit_ratio(&mut reader, &instance, hot, (&mut random, 4096)), 1.0);
        let (mut scan, mut hits, mut reads) = (&rest[..10 * 512], 0.0, 0);
        while !scan.is_empty() {
            let count =
                scan.windows(2).take(31).take_while(|pair| pair[0].block.plus(1) == pair[1].block).count()
                    as u32
                    + 1;
            let read = reader.read_multiblock(Purpose::Users, scan[0], count, READ).expect("read").len();
            hits += hit_ratio(&mut reader, &instance, hot, (&mut random, read as u64)) * read as f64;
            reads += read;
            scan = &scan[read..];
        }
        assert!(hits / reads as f64 >= 0.95, "{hits} of {reads}");
        let new = &rest[11 * 512..11 * 512 + 256];
        let pass = |reader: &mut CacheReader<'_>| {
            let before = instance.recorder.snapshot().statistic(Statistic::CacheHits);
            new.iter().for_each(|block| drop(reader.get(Purpose::Users, *block, READ).expect("read")));
            instance.recorder.snapshot().statistic(Statistic::CacheHits) - before
        };
        let passes = [pass(&mut reader), pass(&mut reader), pass(&mut reader)];
        assert!(passes[2] >= 243, "{passes:?} of 256");
        instance.caches().own().check();
    });
}

/// A sort and a scan take a few frames from others, and then recycle their own.
#[test]
fn blocks_that_others_may_need_are_counted_when_they_lose_their_frame() {
    bounded(|| {
        let instance = instance(&[("data_files", "1")]);
        let session = session(&instance);
        let frames = u64::from(FRAMES);
        let (_, blocks) =
            write_segment(&session, &instance, Purpose::Users, (0, 4 * frames)).expect("written");
        let evicted = || instance.caches().own().counts().evicted;
        let mut reader = CacheReader::new(&session, instance.caches());
        let start = evicted();
        let (single, scanned) = blocks.split_at(FRAMES as usize);
        single.iter().for_each(|block| drop(reader.get(Purpose::Users, *block, READ).expect("read")));
        assert_eq!(evicted() - start, frames, "each took the frame of a block that was written");
        let start = evicted();
        for _ in 0..20 {
            write_segment(&session, &instance, Purpose::Temp, (0, 4)).expect("written");
        }
        assert!((1..=8).contains(&(evicted() - start)), "{} of {}", evicted() - start, 20 * 4);
        let start = evicted();
        let mut scan = scanned;
        while scan.len() > 1 {
            let read = reader.read_multiblock(Purpose::Users, scan[0], 1, READ).expect("read").len();
            scan = &scan[read..];
        }
        assert!(evicted() - start <= frames / 4, "{} of {}", evicted() - start, scanned.len());
    });
}

#[test]
fn written_sort_blocks_do_not_age_out_blocks_of_others() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let (_, addresses) = write_segment(&session, &instance, Purpose::Users, (0, 5)).expect("written");
        for _ in 0..50 {
            write_segment(&session, &instance, Purpose::Temp, (0, 10)).expect("written");
        }
        let before = instance.recorder.snapshot();
        let mut reader = CacheReader::new(&session, instance.caches());
        for (mark, address) in (0..).zip(addresses) {
            assert_eq!(mark_of(&reader.get(Purpose::Users, address, READ).expect("read")), mark);
        }
        assert_eq!(since(&instance, &before).statistic(Statistic::CacheHits), 5);
    });
}

#[test]
fn discarded_blocks_are_read_anew() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let mut reader = CacheReader::new(&session, instance.caches());
        let (extents, old) = write_segment(&session, &instance, Purpose::Temp, (100, 1)).expect("written");
        let pinned = reader.get(Purpose::Temp, old[0], READ).expect("read");
        release(&session, &instance, Purpose::Temp, extents);
        // The extents of the other file are allocated first, then the same extent again.
        let found = (0..1000).find(|mark| {
            let (_, addresses) =
                write_segment(&session, &instance, Purpose::Temp, (*mark, 1)).expect("written");
            addresses[0] == old[0]
        });
        let mark = found.expect("a released extent is used again");
        assert_eq!(mark_of(&pinned), 100, "who has it pinned keeps what it read");
        assert_eq!(mark_of(&reader.get(Purpose::Temp, old[0], READ).expect("read")), mark);
        instance.caches().own().check();
    });
}

#[test]
fn an_unfinished_writer_leaves_no_write_behind() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        for round in 0..50u64 {
            let mut unfinished = writer(&session, &instance, Purpose::Temp);
            for mark in 0..20 {
                write_block(&mut unfinished, round * 1000 + mark).expect("written");
            }
            drop(unfinished);
            let (extents, addresses) =
                write_segment(&session, &instance, Purpose::Temp, (round * 1000 + 500, 10)).expect("written");
            for (mark, address) in (round * 1000 + 500..).zip(addresses) {
                assert_eq!(mark_on_disk(&session, &instance, Purpose::Temp, address), mark);
            }
            release(&session, &instance, Purpose::Temp, extents);
            instance.caches().own().check();
        }
        // 20 blocks of 32K fill less than an extent each time, and every one was released.
        assert_eq!(instance.tablespace(Purpose::Temp).size(), Bytes(8 * Bytes::M));
    });
}

#[test]
fn the_following_address_is_where_the_next_block_goes() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let mut writer = writer(&session, &instance, Purpose::Indx);
        let mut expected = None;
        for mark in 0..100 {
            let following = writer.following_address().expect("an address");
            let address = write_block(&mut writer, mark).expect("written");
            assert!(expected.is_none_or(|expected| expected == address));
            expected = Some(following);
        }
        let blocks: u32 = writer.finish().expect("written").iter().map(|extent| extent.used).sum();
        assert_eq!(blocks, 100);
    });
}

#[test]
fn flush_gets_blocks_written_without_anybody_waiting_for_them() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let before = instance.recorder.snapshot();
        let mut writer = writer(&session, &instance, Purpose::Temp);
        write_block(&mut writer, 1).expect("written");
        writer.flush().expect("asked");
        while since(&instance, &before).statistic(Statistic::PhysicalWritesFromCache) == 0 {
            thread::yield_now();
        }
        writer.drain().expect("written");
    });
}

#[test]
fn a_failed_write_surfaces_everywhere_and_nobody_hangs() {
    bounded(|| {
        for fail_write in [1, 10, 100] {
            let instance = instance(&[("db_writer_processes", "3")]);
            memory(&instance).plan_faults(Faults { fail_write: Some(fail_write), ..Faults::default() });
            // A writer made after the failure would be refused at once.
            let all_made = Barrier::new(3);
            let errors = thread::scope(|scope| {
                let sessions: Vec<_> = (0..3)
                    .map(|_| {
                        scope.spawn(|| {
                            let session = session(&instance);
                            let mut writer = writer(&session, &instance, Purpose::Temp);
                            all_made.wait();
                            let written =
                                (0..5000).try_for_each(|mark| write_block(&mut writer, mark).map(|_| ()));
                            written
                                .and_then(|()| writer.finish().map(|_| ()))
                                .expect_err("a write failed")
                                .to_string()
                        })
                    })
                    .collect();
                sessions.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
            });
            for error in &errors {
                assert!(
                    error.starts_with(
                        "the database writer failed, and the buffer cache is closed: write of 32768 bytes"
                    ),
                    "{error}"
                );
                assert_eq!(error, &errors[0]);
            }
            let session = session(&instance);
            let mut reader = CacheReader::new(&session, instance.caches());
            let address = BlockAddress::default();
            assert!(matches!(
                reader.get(Purpose::Temp, address, READ),
                Err(EngineError::WriterFailed { .. })
            ));
            instance.caches().own().check();
        }
    });
}

#[test]
fn a_failed_read_gives_its_buffer_back() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let addresses = seven_on_disk(&session, &instance);
        let mut reader = CacheReader::new(&session, instance.caches());
        for round in 0..100 {
            memory(&instance).plan_faults(Faults { fail_read: Some(1), ..Faults::default() });
            let failed = match round % 2 {
                0 => reader.get(Purpose::Users, addresses[0], READ).map(|_| ()),
                _ => reader.read_multiblock(Purpose::Users, addresses[0], 7, READ).map(|_| ()),
            };
            assert!(matches!(failed, Err(EngineError::Io(_))));
            // A block never written is refused, and its frame is free again too.
            let never = instance.tablespace(Purpose::Indx).files[0].address(addresses[0].block);
            let failed = reader.get(Purpose::Indx, never, READ);
            assert!(matches!(failed, Err(EngineError::CorruptBlock { .. })));
        }
        instance.caches().own().check();
        for (mark, address) in (0..).zip(addresses) {
            assert_eq!(mark_of(&reader.get(Purpose::Users, address, READ).expect("read")), mark);
        }
    });
}

#[test]
fn a_frame_is_lost_with_its_ring_unlike_its_block() {
    bounded(|| {
        let instance = instance(&[]);
        let session = session(&instance);
        let addresses = seven_on_disk(&session, &instance);
        let claimed = instance.caches().own().shared().claim(&session, Purpose::Users, addresses[0]);
        let Ok(Claim::Miss(mut frame)) = claimed else { unreachable!("the block is not in the cache") };
        drop(frame.lend());
        drop(frame);
        instance.caches().own().check();
        let mut reader = CacheReader::new(&session, instance.caches());
        for _ in 0..3 {
            for (mark, address) in (0..).zip(&addresses) {
                assert_eq!(mark_of(&reader.get(Purpose::Users, *address, READ).expect("read")), mark);
            }
        }
        instance.caches().own().check();
    });
}

#[test]
fn sessions_reading_the_same_blocks_share_one_read() {
    bounded(|| {
        let instance = instance(&[]);
        let main = session(&instance);
        let (_, addresses) = write_segment(&main, &instance, Purpose::Users, (0, 100)).expect("written");
        thread::scope(|scope| {
            for seed in 0..4u64 {
                let (instance, addresses) = (&instance, &addresses);
                scope.spawn(move || {
                    let session = session(instance);
                    let mut random = SplitMix(seed);
                    let mut reader = CacheReader::new(&session, instance.caches());
                    for _ in 0..20_000 {
                        let mark = random.below(100);
                        let address = addresses[mark as usize];
                        if random.below(4) > 0 {
                            let block = reader.get(Purpose::Users, address, READ).expect("read");
                            assert_eq!(mark_of(&block), mark);
                            continue;
                        }
                        // Reads at most up to the end of the adjacent blocks.
                        let adjacent = (mark..100)
                            .take_while(|m| {
                                let other = addresses[*m as usize];
                                other.file == address.file
                                    && other.block == address.block.plus((m - mark) as u32)
                            })
                            .count() as u64;
                        let count = 1 + random.below(adjacent) as u32;
                        let blocks =
                            reader.read_multiblock(Purpose::Users, address, count, READ).expect("read");
                        assert!(!blocks.is_empty());
                        for (block, mark) in blocks.iter().zip(mark..) {
                            assert_eq!(mark_of(block), mark);
                        }
                    }
                });
            }
        });
        instance.caches().own().check();
    });
}

/// The expected mark of each block, and the segments that exist.
#[derive(Default)]
struct Model {
    segments: Vec<(Purpose, Vec<SegmentExtent>, Vec<BlockAddress>)>,
    marks: HashMap<BlockAddress, u64>,
}

static NEXT_MARK: AtomicU64 = AtomicU64::new(1);

fn random_operation<'a>(
    random: &mut SplitMix,
    model: &mut Model,
    session: &Session,
    instance: &Instance,
    reader: &mut CacheReader<'a>,
    pins: &mut Vec<(PinnedBlock<'a>, u64)>,
) {
    let chosen = |random: &mut SplitMix, model: &Model| {
        let (purpose, _, addresses) = &model.segments[random.below(model.segments.len() as u64) as usize];
        (*purpose, addresses[random.below(addresses.len() as u64) as usize])
    };
    match random.below(100) {
        _ if model.segments.is_empty() => write_random(random, model, session, instance),
        0..10 => write_random(random, model, session, instance),
        10..20 => {
            let (purpose, extents, addresses) =
                model.segments.swap_remove(random.below(model.segments.len() as u64) as usize);
            release(session, instance, purpose, extents);
            for address in addresses {
                model.marks.remove(&address);
            }
        }
        20..30 => {
            let (purpose, address) = chosen(random, model);
            assert_eq!(mark_on_disk(session, instance, purpose, address), model.marks[&address]);
        }
        30..50 => {
            let (purpose, first) = chosen(random, model);
            let adjacent = (1..20).take_while(|n| {
                let next = BlockAddress { block: first.block.plus(*n), ..first };
                model.marks.contains_key(&next)
            });
            let count = 1 + adjacent.count() as u32;
            for block in reader.read_multiblock(purpose, first, count, READ).expect("read") {
                assert_eq!(mark_of(&block), model.marks[&block.address()]);
            }
        }
        _ => {
            let (purpose, address) = chosen(random, model);
            let block = reader.get(purpose, address, READ).expect("read");
            assert_eq!(mark_of(&block), model.marks[&address]);
            pins.push((block, model.marks[&address]));
        }
    }
    if pins.len() > 5 {
        let (block, mark) = pins.swap_remove(random.below(pins.len() as u64) as usize);
        assert_eq!(mark_of(&block), mark, "a pinned block does not change");
    }
}

fn write_random(random: &mut SplitMix, model: &mut Model, session: &Session, instance: &Instance) {
    let purpose = Purpose::ALL[random.below(3) as usize];
    let mut writer = writer(session, instance, purpose);
    let mut written = Vec::new();
    for _ in 0..1 + random.below(60) {
        let mark = NEXT_MARK.fetch_add(1, Relaxed);
        written.push((write_block(&mut writer, mark).expect("written"), mark));
        if random.below(50) == 0 {
            writer.drain().expect("written");
        }
    }
    if random.below(4) == 0 {
        return;
    }
    let extents = writer.finish().expect("written");
    model.segments.push((purpose, extents, written.iter().map(|(address, _)| *address).collect()));
    model.marks.extend(written);
}

#[test]
fn random_operations_of_three_sessions_agree_with_a_model() {
    bounded(|| {
        let begun = now();
        let seed = std::env::var("PLUMB_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(begun.0);
        println!("PLUMB_SEED={seed}");
        let instance = instance(&[("db_writer_processes", "2"), ("extent_size", "256K")]);
        thread::scope(|scope| {
            for number in 0..3 {
                let instance = &instance;
                scope.spawn(move || {
                    let session = session(instance);
                    let mut random = SplitMix(seed.wrapping_add(number));
                    let mut reader = CacheReader::new(&session, instance.caches());
                    let (mut model, mut pins) = (Model::default(), Vec::new());
                    for _ in 0..1500 {
                        random_operation(&mut random, &mut model, &session, instance, &mut reader, &mut pins);
                        instance.caches().own().check();
                    }
                });
            }
        });
    });
}

#[test]
fn an_instance_without_cache_use_has_no_writers() {
    bounded(|| {
        let instance = instance(&[]);
        let cache: &BufferCache = instance.caches().own();
        assert_eq!(cache.options().frame_count as u32, FRAMES);
        let sessions = instance.recorder.snapshot().sessions;
        assert!(sessions.iter().all(|session| session.role.kind() == SessionKind::Foreground));
    });
}

/// Prints the cost of a hit; the bound allows for machines that do ten other things.
#[test]
fn a_hit_is_cheap() {
    const ROUNDS: u64 = 200_000;
    bounded(|| {
        let instance = instance(&[("db_block_size", "8K")]);
        let session = session(&instance);
        let (_, addresses) = write_segment(&session, &instance, Purpose::Users, (0, 100)).expect("written");
        let mut reader = CacheReader::new(&session, instance.caches());
        let mut sum = 0u64;
        let mut best = u64::MAX;
        for _ in 0..5 {
            let begin = now();
            for round in 0..ROUNDS {
                let address = addresses[(round * 7 % 100) as usize];
                sum += u64::from(reader.get(Purpose::Users, address, READ).expect("there")[HEADER_BYTES]);
            }
            best = best.min(now().saturating_sub(begin).0 / ROUNDS);
        }
        println!("a hit takes {best} ns (sum {sum})");
        assert!(best < 3000, "{best} ns");
    });
}
