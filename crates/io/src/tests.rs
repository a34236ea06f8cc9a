//! Every method, direct and buffered, and the null device through one suite.

use crate::sim::{Faults, MemoryDisk};
use crate::{
    Arena, Channel, DirectIo, Disk, Durability, File, HugeVec, IoError, Method, MethodKind, OpenMode,
    Operation, Request, describe_device,
};
use plumb_events::{Event, IoStream, Recorder, Role, SessionKind, Statistic};
use plumb_host::device::{IoUringSupport, RingPart, RingSetup};
use plumb_host::limits::{Quota, Quotas};
use plumb_host::readings;
use std::path::Path;
use std::sync::Arc;

const BLOCK: usize = 64 * 1024;

fn request(
    file: &Arc<File>,
    operation: Operation,
    offset: u64,
    buffer: crate::IoBuffer,
    tag: u64,
) -> Request {
    let range = 0..buffer.len();
    let (event, stream) = match operation {
        Operation::Read | Operation::ReadAtMost => (Event::DirectPathRead, IoStream::TableReads),
        _ => (Event::DirectPathWrite, IoStream::DataWrites),
    };
    Request { operation, file: Arc::clone(file), offset, buffer, range, event, stream, tag }
}

/// Writes 64 blocks in reverse order with 8 in flight, reads them back and compares.
fn round_trip(disk: &Disk, path: &Path, direct: DirectIo, kind: MethodKind) -> Result<(), IoError> {
    round_trip_by(disk, path, direct, &Method::start(kind, 8)?, Operation::Write)
}

/// The same round trip by a running method, with a given kind of write.
fn round_trip_by(
    disk: &Disk,
    path: &Path,
    direct: DirectIo,
    method: &Method,
    write: Operation,
) -> Result<(), IoError> {
    let kind = method.kind();
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    let file = Arc::new(disk.open(path, OpenMode::Create, direct)?);
    let (arena, mut buffers) = Arena::buffers(BLOCK, 8)?;
    let mut channel = method.channel_to(&[&file], &[&arena])?;
    for block in (0..64u64).rev() {
        let mut buffer = match buffers.pop() {
            Some(buffer) => buffer,
            None => channel.wait(&session, Event::DirectPathWrite)?.buffer,
        };
        buffer.fill(block as u8 + 1);
        channel.submit(&session, request(&file, write, block * BLOCK as u64, buffer, block))?;
    }
    while channel.outstanding() > 0 {
        buffers.push(channel.wait(&session, Event::DirectPathWrite)?.buffer);
    }
    file.sync_data()?;
    assert_eq!(file.length()?, 64 * BLOCK as u64);
    let mut seen = 0;
    for first in (0..64u64).step_by(8) {
        for block in first..first + 8 {
            let buffer = buffers.pop().expect("eight buffers");
            channel.submit(&session, request(&file, Operation::Read, block * BLOCK as u64, buffer, block))?;
        }
        channel.flush(&session)?;
        while channel.outstanding() > 0 {
            let completion = channel.wait(&session, Event::DirectPathRead)?;
            assert!(completion.buffer.iter().all(|byte| *byte == completion.tag as u8 + 1));
            buffers.push(completion.buffer);
            seen += 1;
        }
    }
    assert_eq!(seen, 64);
    let totals = recorder.snapshot();
    assert_eq!(totals.statistic(Statistic::PhysicalWriteBytes), 64 * BLOCK as u64);
    assert_eq!(totals.statistic(Statistic::PhysicalReadRequests), 64);
    let carried = match (disk, kind) {
        (Disk::Memory(_), _) | (_, MethodKind::Sync) => Statistic::SyncRequests,
        (_, MethodKind::Threads) => Statistic::PoolRequests,
        (_, MethodKind::IoUring) => Statistic::RingRequests,
    };
    assert!(totals.statistic(carried) >= 128, "{kind} must carry the requests");
    if carried == Statistic::RingRequests {
        let requests = totals.statistic(carried);
        assert_eq!(totals.statistic(Statistic::RingFixedFileRequests), requests, "the file is registered");
        assert_eq!(totals.statistic(Statistic::RingFixedRequests), requests, "the arena is registered");
    }
    disk.remove(path)
}

fn works_here(kind: MethodKind) -> bool {
    let works = Method::start(kind, 8).is_ok();
    if !works {
        eprintln!("{kind} does not work here: not tested");
    }
    works
}

/// Bounds from below only, because the kernel decides how much longer a sleep takes.
#[test]
fn a_delay_is_in_the_waits_and_in_the_service_times_of_every_method() {
    const DELAY: u64 = 200_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
        let file = Arc::new(
            Disk::Kernel
                .open(&directory.path().join(kind.name()), OpenMode::Create, DirectIo::Off)
                .expect("a file"),
        );
        let method = Method::start(kind, 8).expect("a method").delayed(plumb_units::Nanos(DELAY));
        let recorder = Recorder::new();
        let session = recorder.session(Role::User);
        let before = recorder.snapshot();
        let (_arena, buffers) = Arena::buffers(BLOCK, 8).expect("an arena");
        let mut channel = method.channel(&[]).expect("a channel");
        for (block, buffer) in (0..8_u64).zip(buffers) {
            let write = request(&file, Operation::Write, block * BLOCK as u64, buffer, block);
            channel.submit(&session, write).expect("submitted");
        }
        while channel.outstanding() > 0 {
            channel.wait(&session, Event::DirectPathWrite).expect("written");
        }
        let waited =
            recorder.snapshot().since(&before).event(Event::DirectPathWrite, SessionKind::Foreground).time;
        assert!(waited.0 >= 8 * DELAY, "{kind}: {waited}");
        let crate::Moves { requests, nanos: service, .. } = total(file.counters().writes());
        assert!(requests == 8 && service >= 8 * DELAY, "{kind}: {service}");
    }
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Returns the service time of a write that is flushed after a pause, followed by a write to
/// another file, and waited for after another pause.
fn service_time(method: &Method, before_flush: std::time::Duration, before_wait: std::time::Duration) -> u64 {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = |name| Disk::Kernel.open(&directory.path().join(name), OpenMode::Create, DirectIo::Off);
    let files = ["first", "second"].map(|name| Arc::new(open(name).expect("a file")));
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    let (_arena, buffers) = Arena::buffers(BLOCK, 2).expect("an arena");
    let mut channel = method.channel(&[]).expect("a channel");
    for (file, buffer) in files.iter().zip(buffers) {
        channel.submit(&session, request(file, Operation::Write, 0, buffer, 0)).expect("submitted");
        std::thread::sleep(before_flush);
        channel.flush(&session).expect("flushed");
        std::thread::sleep(PAUSE / 10);
    }
    std::thread::sleep(before_wait);
    while channel.outstanding() > 0 {
        channel.wait(&session, Event::DirectPathWrite).expect("written");
    }
    total(files[0].counters().writes()).nanos
}

/// The sum over all sizes.
fn total(sizes: [crate::Moves; crate::SIZE_CLASSES]) -> crate::Moves {
    let mut sum = crate::Moves::default();
    sizes.iter().for_each(|size| sum.add(size));
    sum
}

#[test]
fn requests_are_counted_by_their_size() {
    let counters = crate::FileCounters::default();
    for bytes in [0, 512, 2048, 2049, 8192, 131_072, 131_073, 1 << 20, (1 << 20) + 1, 64 << 20] {
        counters.add(false, bytes, 1);
    }
    let counted = counters.reads().map(|moved| moved.requests);
    assert_eq!(counted, [3, 1, 1, 0, 0, 0, 1, 1, 0, 1, 2]);
    let ends: Vec<Option<u64>> = (0..crate::SIZE_CLASSES).map(crate::class_bytes).collect();
    assert_eq!((ends[0], ends[2], ends[6], ends[9]), (Some(2048), Some(8192), Some(131_072), Some(1 << 20)));
    assert_eq!(ends[10], None);
    for (class, end) in ends.into_iter().enumerate() {
        let only = crate::FileCounters::default();
        only.add(true, end.unwrap_or(u64::MAX), 1);
        assert_eq!(only.writes()[class].requests, 1, "the largest request of class {class}");
    }
}

#[test]
fn a_request_is_served_from_its_hand_over_and_not_from_its_queueing() {
    let kinds = [MethodKind::Sync, MethodKind::IoUring];
    for kind in kinds.into_iter().filter(|kind| works_here(*kind)) {
        let method = Method::start(kind, 8).expect("a method");
        let service = service_time(&method, PAUSE, PAUSE / 10);
        assert!(u128::from(service) < 2 * PAUSE.as_nanos(), "{kind}: {service} ns");
    }
}

#[test]
fn a_completion_is_exact_or_seen_at_the_next_flush_however_late_it_is_waited_for() {
    for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
        let method = Method::start(kind, 8).expect("a method");
        let service = service_time(&method, PAUSE / 10, PAUSE);
        assert!(u128::from(service) < PAUSE.as_nanos(), "{kind}: {service} ns");
    }
}

#[test]
fn every_method_reads_back_what_it_wrote() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
        for direct in [DirectIo::Required, DirectIo::Off] {
            let path = directory.path().join(format!("{kind}-{direct:?}"));
            match round_trip(&Disk::Kernel, &path, direct, kind) {
                Err(IoError::DirectUnsupported { .. }) => eprintln!("no direct I/O here: not tested"),
                result => result.expect("a round trip"),
            }
            assert!(!path.exists());
        }
        let memory = Disk::Memory(MemoryDisk::new());
        round_trip(&memory, Path::new("null"), DirectIo::Off, kind).expect("a round trip in memory");
    }
}

/// Every method, and every set-up of a ring that works here.
fn methods() -> Vec<Method> {
    let plain = [MethodKind::Sync, MethodKind::Threads].map(|kind| Method::start(kind, 8).expect("a method"));
    let rings = RingSetup::ALL.into_iter().filter_map(|setup| match Method::start_ring(setup, 8) {
        // A polled ring carries no syncs and no buffered requests: it has a test of its own.
        Ok(method) => Some(method).filter(|_| setup != RingSetup::CompletionPolling),
        Err(error) => {
            eprintln!("{error}: not tested");
            None
        }
    });
    plain.into_iter().chain(rings).collect()
}

#[test]
fn every_kind_of_write_goes_by_every_method_and_set_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for method in methods() {
        let synced = [Operation::WriteAndSync, Operation::WriteAndSyncAll];
        for write in [Operation::Write, Operation::WriteDurable].into_iter().chain(synced) {
            for direct in [DirectIo::Required, DirectIo::Off] {
                let setup = method.ring_setup().map_or("", RingSetup::name);
                let path = directory.path().join(format!("{} {setup} {write:?} {direct:?}", method.kind()));
                match round_trip_by(&Disk::Kernel, &path, direct, &method, write) {
                    Err(IoError::DirectUnsupported { .. }) => eprintln!("no direct I/O here: not tested"),
                    result => result.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                }
            }
        }
    }
}

#[test]
fn a_ring_of_one_request_takes_a_linked_pair() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Ok(method) = Method::start(MethodKind::IoUring, 1) else { return };
    let path = directory.path().join("one");
    round_trip_by(&Disk::Kernel, &path, DirectIo::Off, &method, Operation::WriteAndSync)
        .expect("a round trip");
}

#[test]
fn a_set_up_is_done_or_refused_and_a_disk_that_cannot_be_polled_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let description = describe_device(directory.path()).expect("a description");
    if let IoUringSupport::Yes { features, file_read, .. } = &description.io_uring {
        assert!(features.contains(&"nodrop"));
        assert!(file_read);
    }
    assert_eq!(directory.path().read_dir().expect("a directory").count(), 0, "the probe leaves nothing");
    for setup in RingSetup::ALL {
        let refusal = description.io_uring.refusal(RingPart::Setup(setup));
        if setup != RingSetup::CompletionPolling {
            let started = Method::start_ring(setup, 4);
            assert_eq!(started.is_ok(), refusal.is_none(), "{setup}: {started:?}, {refusal:?}");
        } else if description.block.as_ref().is_some_and(|block| block.queue.io_poll != Some(true)) {
            let (why, cure) = refusal.expect("a refusal");
            assert!(why.contains("queue/io_poll is 0") && cure.contains("poll_queues"), "{why}; {cure}");
        }
    }
}

#[test]
fn a_file_is_open_as_durable_as_it_was_asked_for() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (durability, expected) in [
        (Durability::OnSync, (false, false)),
        (Durability::Data, (true, false)),
        (Durability::All, (true, true)),
    ] {
        let path = directory.path().join(format!("{durability:?}"));
        let file = Disk::Kernel
            .open_durable(&path, OpenMode::Create, DirectIo::Off, durability)
            .expect("a new file");
        let flags = readings::open_flags(file.descriptor().expect("a descriptor")).expect("flags");
        assert_eq!((flags.dsync, flags.sync), expected, "{durability:?}");
        file.allocate(1 << 20).expect("space");
        assert_eq!(file.length().expect("a length"), 1 << 20);
        file.sync_all().expect("synced");
    }
}

#[test]
fn a_failed_sync_is_an_error_and_is_not_repeated() {
    let disk = MemoryDisk::new();
    let path = Path::new("log01.log");
    let file =
        Disk::Memory(Arc::clone(&disk)).open(path, OpenMode::Create, DirectIo::Off).expect("a new file");
    let file = Arc::new(file);
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    let mut channel = Method::start(MethodKind::Sync, 1).expect("a method").channel(&[]).expect("a channel");
    let (_arena, mut buffers) = Arena::buffers(BLOCK, 2).expect("memory");
    disk.plan_faults(Faults { fail_sync: Some(1), ..Faults::default() });
    let mut write = |offset: u64| {
        let buffer = buffers.pop().expect("a buffer");
        channel.submit(&session, request(&file, Operation::WriteAndSync, offset, buffer, 0))?;
        channel.wait(&session, Event::LogFileParallelWrite).map(|_| ())
    };
    let error = write(0).expect_err("the sync fails");
    assert_eq!(
        error.to_string(),
        "cannot sync log01.log: Input/output error (os error 5); \
         the device reports an error: look at the kernel's log (dmesg)"
    );
    assert_eq!(disk.calls().1, 1, "the write is not repeated");
    write(BLOCK as u64).expect("the next sync is another one");
}

#[test]
fn a_write_that_fails_is_named_and_its_sync_is_not() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("log01.log");
    std::fs::write(&path, b"").expect("a file");
    let file = Arc::new(Disk::Kernel.open(&path, OpenMode::Read, DirectIo::Off).expect("to be read"));
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    for method in methods() {
        let (_arena, mut buffers) = Arena::buffers(BLOCK, 1).expect("memory");
        let mut channel = method.channel(&[]).expect("a channel");
        let buffer = buffers.pop().expect("a buffer");
        channel.submit(&session, request(&file, Operation::WriteAndSync, 0, buffer, 7)).expect("submitted");
        let failed = channel.wait(&session, Event::LogFileParallelWrite).expect_err("open to be read only");
        let returned = failed.request.as_ref().map(|(tag, buffer)| (*tag, buffer.len()));
        assert_eq!(returned, Some((7, BLOCK)), "{}: it gives back what it was submitted with", method.kind());
        let error = failed.to_string();
        assert!(error.starts_with("write of 65536 bytes at offset 0 of "), "{}: {error}", method.kind());
        assert!(error.contains("Bad file descriptor"), "{}: {error}", method.kind());
    }
}

/// Forbids `io_uring_setup` to the calling thread, as a container's profile does.
#[allow(unsafe_code)]
fn forbid_rings() {
    let instruction = |code: u32, k: u32, jt: u8| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let mut program = [
        // Loads the call's number; returns EPERM for io_uring_setup and allows all others.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        libc::sock_filter {
            jf: 1,
            ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_io_uring_setup as u32, 0)
        },
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the calls, which copy it, and binds this thread only.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(installed, "{}", std::io::Error::last_os_error());
}

#[test]
fn where_rings_are_forbidden_it_is_said_and_cured() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_path_buf();
    let forbidden = std::thread::spawn(move || {
        forbid_rings();
        (describe_device(&path).expect("a description"), Method::start(MethodKind::IoUring, 8))
    });
    let (description, started) = forbidden.join().expect("no panic");
    let (why, cure) = description.io_uring.refusal(RingPart::RegisteredFiles).expect("a refusal");
    assert!(why.contains("a seccomp filter forbids it") && cure.contains("seccomp profile"), "{why}; {cure}");
    let error = started.expect_err("forbidden").to_string();
    assert!(error.contains("Operation not permitted") && error.contains("seccomp profile"), "{error}");
}

#[test]
fn short_and_interrupted_transfers_are_carried_on() {
    let disk = MemoryDisk::new();
    disk.plan_faults(Faults { short_every: Some(3), interrupt_every: Some(5), ..Faults::default() });
    let disk = Disk::Memory(disk);
    round_trip(&disk, Path::new("short"), DirectIo::Off, MethodKind::Sync).expect("a round trip");
    let method = Method::start(MethodKind::Sync, 8).expect("a method");
    round_trip_by(&disk, Path::new("synced"), DirectIo::Off, &method, Operation::WriteAndSync)
        .expect("a round trip");
}

fn one_read(disk: &Disk, path: &Path, offset: u64, kind: MethodKind) -> Result<(), IoError> {
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    let file = Arc::new(disk.open(path, OpenMode::Write, DirectIo::Off)?);
    let (_arena, mut buffers) = Arena::buffers(BLOCK, 1)?;
    let mut channel: Channel = Method::start(kind, 2)?.channel(&[])?;
    let buffer = buffers.pop().expect("one buffer");
    channel.submit(&session, request(&file, Operation::Read, offset, buffer, 0))?;
    channel.wait(&session, Event::DirectPathRead)?;
    Ok(())
}

#[test]
fn a_file_cut_short_is_named_with_its_length() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("users01.dbf");
    std::fs::write(&path, vec![1u8; 5_000]).expect("a small file");
    for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
        let error = one_read(&Disk::Kernel, &path, 4_096, kind).expect_err("the file is short");
        assert_eq!(
            error.to_string().replace(directory.path().to_str().expect("a UTF-8 path"), "DIR"),
            "DIR/users01.dbf was cut short: it ends at byte 5000, but a read needs bytes 4096 to 69632; \
             restore the file from a copy or load its tables again"
        );
    }
}

#[test]
fn a_failed_request_names_file_offset_and_cause() {
    let disk = MemoryDisk::new();
    let path = Path::new("data01.dbf");
    Disk::Memory(Arc::clone(&disk)).open(path, OpenMode::Create, DirectIo::Off).expect("a new file");
    disk.plan_faults(Faults { fail_read: Some(1), ..Faults::default() });
    let error = one_read(&Disk::Memory(disk), path, 8_192, MethodKind::Sync).expect_err("the read fails");
    assert_eq!(
        error.to_string(),
        "read of 65536 bytes at offset 8192 of data01.dbf failed: Input/output error (os error 5); \
         the device reports an error: look at the kernel's log (dmesg)"
    );
}

#[test]
fn a_channel_dropped_with_requests_in_flight_waits_for_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
        let path = directory.path().join(format!("{kind}"));
        let file = Arc::new(Disk::Kernel.open(&path, OpenMode::Create, DirectIo::Off).expect("a new file"));
        let (arena, buffers) = Arena::buffers(BLOCK, 16).expect("memory");
        let mut channel = Method::start(kind, 16).expect("the method").channel(&[&arena]).expect("a channel");
        for (index, buffer) in buffers.into_iter().enumerate() {
            let offset = (index * BLOCK) as u64;
            channel.submit(&session, request(&file, Operation::Write, offset, buffer, 0)).expect("submitted");
        }
        channel.flush(&session).expect("flushed");
        drop(channel);
    }
}

#[test]
fn a_refused_create_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("taken");
    std::fs::write(&path, b"precious").expect("a file");
    let error = Disk::Kernel.open(&path, OpenMode::Create, DirectIo::Off).expect_err("it exists");
    assert!(error.to_string().contains("File exists"), "{error}");
    assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
}

#[test]
fn a_file_that_ends_between_blocks_is_cut_short_and_no_endless_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("users01.dbf");
    std::fs::write(&path, vec![1u8; 8_192 + 100]).expect("a small file");
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
        let Ok(file) = Disk::Kernel.open(&path, OpenMode::Write, DirectIo::Required) else {
            eprintln!("no direct I/O here: not tested");
            return;
        };
        let (_arena, mut buffers) = Arena::buffers(BLOCK, 1).expect("memory");
        let mut channel = Method::start(kind, 2).expect("the method").channel(&[]).expect("a channel");
        let buffer = buffers.pop().expect("one buffer");
        channel.submit(&session, request(&Arc::new(file), Operation::Read, 0, buffer, 0)).expect("submitted");
        let error = channel.wait(&session, Event::DirectPathRead).expect_err("the file is short");
        assert!(error.to_string().contains("was cut short: it ends at byte 8292"), "{kind}: {error}");
    }
}

#[test]
fn a_read_at_most_ends_with_the_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    for length in [0usize, 100, 512, 4_096, 8_192 + 100, BLOCK, BLOCK + 1] {
        let path = directory.path().join(length.to_string());
        std::fs::write(&path, vec![1u8; length]).expect("a small file");
        for direct in [DirectIo::Off, DirectIo::Required] {
            let Ok(file) = Disk::Kernel.open(&path, OpenMode::Read, direct).map(Arc::new) else { continue };
            for kind in MethodKind::ALL.into_iter().filter(|kind| works_here(*kind)) {
                let mut channel =
                    Method::start(kind, 2).expect("the method").channel(&[]).expect("a channel");
                for offset in [0, 4_096] {
                    let (_arena, mut buffers) = Arena::buffers(BLOCK, 1).expect("memory");
                    let buffer = buffers.pop().expect("one buffer");
                    let request = request(&file, Operation::ReadAtMost, offset as u64, buffer, 0);
                    channel.submit(&session, request).expect("submitted");
                    let done = channel.wait(&session, Event::DirectPathRead).expect("no error");
                    assert_eq!(
                        done.range,
                        0..length.saturating_sub(offset).min(BLOCK),
                        "{kind} {direct:?} {length}"
                    );
                    assert!(done.buffer[done.range].iter().all(|byte| *byte == 1));
                }
            }
        }
    }
}

#[test]
fn a_file_gets_its_final_name_only_where_nothing_has_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let disks = [(Disk::Kernel, directory.path()), (Disk::Memory(MemoryDisk::new()), Path::new("/nowhere"))];
    for (disk, home) in disks {
        let (one, two) = (home.join("one"), home.join("two"));
        let file = disk.open(&one, OpenMode::Create, DirectIo::Off).expect("a new file");
        file.allocate(10_000).expect("room");
        assert_eq!(file.length().expect("its length"), 10_000);
        disk.rename(&one, &two).expect("renamed");
        disk.open(&one, OpenMode::Create, DirectIo::Off).expect("the old name is free again");
        let error = disk.rename(&one, &two).expect_err("the name is taken").to_string();
        assert!(error.starts_with(&format!("cannot make {}: File exists", two.display())), "{error}");
        disk.sync_directory(home).expect("synced");
    }
}

#[test]
fn forced_requests_are_worked_off_by_counted_threads() {
    use io_uring::{IoUring, opcode, squeue, types};
    use std::os::fd::AsRawFd;
    let before = readings::io_wq_workers().unwrap();
    let Ok(mut ring) = IoUring::new(4) else {
        return;
    };
    let mut opened = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut opened, &[7; 4096]).unwrap();
    let mut buffer = vec![0u8; 4096];
    let read = opcode::Read::new(types::Fd(opened.as_raw_fd()), buffer.as_mut_ptr(), 4096)
        .build()
        .flags(squeue::Flags::ASYNC);
    #[allow(unsafe_code)]
    // SAFETY: buffer and file outlive the request, which is waited for.
    unsafe {
        ring.submission().push(&read).unwrap();
    }
    ring.submit_and_wait(1).unwrap();
    assert_eq!(ring.completion().next().unwrap().result(), 4096);
    // A worker waits five seconds for more before it ends. Workers of other tests may have ended
    // meanwhile, so the test only checks that one lives.
    assert!(readings::io_wq_workers().unwrap() > 0, "{before} before");
}

fn quotas(threads: usize, rings: usize) -> Quotas {
    Quotas { threads: Quota::of(threads), rings: Quota::of(rings) }
}

#[test]
fn a_method_asked_for_by_name_is_refused_with_the_limit() {
    let refused = |kind| match Method::start_within(kind, 8, &quotas(3, 0)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{kind} started"),
    };
    let threads = refused(MethodKind::Threads);
    assert!(
        threads.starts_with("cannot start the 8 threads of io_method=threads, but only 3: Resource"),
        "{threads}"
    );
    assert!(threads.contains("RLIMIT_NPROC"), "{threads}");
    let ring = refused(MethodKind::IoUring);
    assert!(ring.contains("(RLIMIT_MEMLOCK, of all processes of this user)"), "{ring}");
    assert!(ring.contains("needs 8.00 KB more; set ulimit -l to "), "{ring}");
}

#[test]
fn without_a_name_each_channel_gets_the_best_there_is_and_it_is_said() {
    if Method::start(MethodKind::IoUring, 8).is_err() {
        println!("skipped: io_uring does not work here");
        return;
    }
    let method = Method::best_of(MethodKind::IoUring, 8, &quotas(100, 2));
    let open = || method.channel(&[]).expect("never refused");
    let rings = [open(), open()];
    assert_eq!(method.replaced(), None);
    let pooled = open();
    assert!(method.goes_by(MethodKind::Threads) && !method.goes_by(MethodKind::Sync));
    let said = method.replaced().expect("one is worse");
    assert!(said.starts_with("of 3 channels 1 go by threads, because io_uring_setup"), "{said}");
    assert!(said.contains("RLIMIT_MEMLOCK"), "{said}");
    drop((rings, pooled));
    let _ring = open();
    assert!(method.replaced().expect("kept").starts_with("of 4 channels 1 go by threads"));
    assert_eq!(method.kind(), MethodKind::IoUring);
}

#[test]
fn the_way_down_ends_in_plain_calls() {
    let check = |quotas: &Quotas, expect| {
        let method = Method::best_of(MethodKind::IoUring, 8, quotas);
        assert_eq!(method.kind(), expect);
        method.channel(&[]).expect("never refused");
        assert!(method.goes_by(expect));
    };
    check(&quotas(8, 0), MethodKind::Threads);
    check(&quotas(7, 0), MethodKind::Sync);
}

#[test]
fn small_buffers_lie_without_gaps_and_stay_aligned_to_their_size() {
    for bytes in [512, 2048, 4096, 6144, 8192] {
        let (_arena, buffers) = Arena::buffers(bytes, 100).expect("memory");
        let starts: Vec<usize> = buffers.iter().map(|buffer| buffer.as_ptr().addr()).collect();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == bytes), "{bytes}");
        let align = 1 << bytes.trailing_zeros().min(12);
        assert!(starts.iter().all(|start| start % align == 0), "{bytes}");
    }
}

#[test]
fn more_memory_than_there_are_addresses_is_an_error() {
    let arena = Arena::buffers(1 << 40, 1 << 40).map(|_| ());
    let vector = HugeVec::<u128>::with_capacity(usize::MAX / 2).map(|_| ());
    let edge = HugeVec::<u8>::with_capacity(usize::MAX - 1).map(|_| ());
    for refused in [arena, vector, edge] {
        assert!(matches!(refused, Err(IoError::Memory { .. })), "{refused:?}");
    }
}

#[test]
fn what_was_free_is_told_as_it_was_when_the_disk_was_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = IoError::operation("write", directory.path(), rustix::io::Errno::NOSPC);
    let said = error.to_string();
    assert!(said.contains("bytes were free there at that moment: free some space"), "{said}");
    // The text was formed with the error, so later removals do not change it.
    drop(directory);
    assert_eq!(error.to_string(), said);
}
