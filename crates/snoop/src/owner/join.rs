//! Joins events: entry and exit to a call, issue and completion to a request, a request to its
//! call.
//!
//! ```text
//! thread T  enter pwrite ─────────────────────── exit      a call: offset in the file, bytes, time
//!                 └ queued ─ issued ── completed           a request: sector, bytes, queue, device
//! ```
//!
//! The thread that makes a request decides its owner ([`How`]), at `block_io_start`: that is the
//! caller, even where another thread issues the request. In this order:
//!
//! 1. a traced thread within a call: the call's file;
//! 2. a traced thread that submits to io_uring, or a worker of it: the submission's file;
//! 3. a journal thread, or a flush, while a traced call waits for durability on that disk;
//! 4. any thread that writes back a file which a traced process wrote: that file and process;
//! 5. a worker of the kernel, for a sector of a file that a traced call waits for, or has written:
//!    that call, or that file and process. So limits of a control group hide no request;
//! 6. otherwise another's, counted only.
//!
//! J1 Each issued request is completed once: the requests in flight at a disk never fall below 0.
//!
//! Limits: a request of a journal belongs to the oldest waiting call and may serve others too. A
//! disk on top of another (loop, dm) shows each request twice, once for each.

use crate::kernel::event::{Block, Event, What, comm_text};
use crate::kernel::syscalls::{Call, Effect, ring_operation};
use crate::owner::descriptor::FileKind;
use crate::owner::extents::{Extents, FilePlace, Sought};
use crate::owner::process::{Descriptor, FileName, FileNumber, IsProcess, IsThread, Processes, disk_name};
use std::collections::{BTreeMap, HashMap, VecDeque};

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLine {
    pub begin: u64,
    /// Time from entry to exit, or from submission to completion, nanoseconds.
    pub duration: u64,
    pub thread: u32,
    pub process: u32,
    pub name: &'static str,
    pub effect: Effect,
    pub file: FileNumber,
    /// Offset in the file; none if unknown.
    pub offset: Option<u64>,
    pub bytes: u64,
    /// Error number; 0 for success.
    pub error: i32,
    /// True if it bypassed the page cache.
    pub is_direct: bool,
    /// True for a write that waits until its bytes are durable.
    pub is_durable: bool,
    /// Requests that ended within the call.
    pub disk: Share,
}

/// Part of a call at the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub requests: u64,
    pub bytes: u64,
    /// Time of all requests from issue to completion, nanoseconds.
    pub time: u64,
}

/// Relation of a request to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum How {
    /// Made by the thread of a call, within it.
    Call,
    /// Made for a submission to io_uring, by the submitter or a worker.
    Ring,
    /// Read ahead of the reader by the file system.
    ReadAhead,
    /// Written later by the kernel from the page cache.
    WriteBack,
    /// Written by the journal that a call waits for.
    Journal,
    /// A flush of the disk's cache that a call waits for.
    Flush,
    /// Metadata of the file system.
    Metadata,
    /// Blocks that the file system gives back, after a truncation or a deletion.
    Discard,
    /// Made by a traced thread outside a call: page faults, programs that start.
    Outside,
    /// Made by or for another process.
    Other,
}

impl How {
    /// Returns the words of a report.
    pub fn words(self) -> &'static str {
        match self {
            How::Call => "call",
            How::Ring => "io_uring",
            How::ReadAhead => "read-ahead",
            How::WriteBack => "written back",
            How::Journal => "journal",
            How::Flush => "flush",
            How::Metadata => "metadata",
            How::Discard => "discard",
            How::Outside => "page fault",
            How::Other => "other",
        }
    }
}

/// A completed request of a disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLine {
    /// Time when it was made, monotonic nanoseconds.
    pub queued: u64,
    /// Time when the disk got it.
    pub issued: u64,
    /// Time when the disk had completed it.
    pub completed: u64,
    /// The kernel's number of the disk.
    pub disk: u32,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Bytes; 0 for a flush.
    pub bytes: u64,
    /// Direction and flags of the kernel: `WFS`.
    pub flags: [u8; 10],
    /// Owner; 0 for another process.
    pub process: u32,
    pub thread: u32,
    pub file: FileNumber,
    pub how: How,
    /// Name of the call; empty if it is not part of one.
    pub call: &'static str,
    pub depth: Depth,
}

/// Requests of a disk in flight, at an issue with itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Requests of all processes at the disk.
    pub all: u32,
    /// Requests of the traced processes alone.
    pub own: u32,
}

impl Depth {
    /// Adds a request; returns the number with it.
    fn issue(&mut self, how: How) -> Depth {
        self.all += 1;
        self.own += u32::from(how != How::Other);
        *self
    }

    fn forget(&mut self, how: How) {
        self.all = self.all.saturating_sub(1);
        self.own = self.own.saturating_sub(u32::from(how != How::Other));
    }
}

impl RequestLine {
    /// Returns R, W, F for a flush, D for a discard, or the kernel's letter.
    pub fn letter(&self) -> char {
        letter(&self.flags, self.bytes)
    }

    /// Returns the bytes that the disk read or wrote; a discard moves none.
    pub fn moved(&self) -> u64 {
        if self.letter() == 'D' { 0 } else { self.bytes }
    }
}

/// The leading F of `FF` and `FWS` asks for a flush before the data.
fn letter(flags: &[u8; 10], bytes: u64) -> char {
    let first = if flags[0] == b'F' && bytes > 0 { flags[1] } else { flags[0] };
    if first == 0 { '-' } else { char::from(first) }
}

/// Receiver of finished calls and requests.
pub(crate) trait Sink {
    fn call(&mut self, call: &CallLine, processes: &Processes);
    /// Receives a completed request of any process.
    fn request(&mut self, request: &RequestLine, processes: &Processes);
}

#[derive(Debug, Clone, Copy)]
struct Open {
    begin: u64,
    call: &'static Call,
    arguments: [u64; 4],
    descriptor: Descriptor,
    disk: Share,
}

impl Open {
    /// True if it waits for the disk with bytes of a file, rather than for the page cache.
    fn waits_at(&self, place: FilePlace, is_read: bool) -> bool {
        let waits = match self.call.effect {
            Effect::Read => is_read,
            Effect::Write => !is_read && (self.descriptor.is_direct || self.descriptor.is_durable),
            Effect::Sync => !is_read,
            _ => false,
        };
        waits && self.descriptor.file == place.file
    }

    /// True if an offset is known to be one of its bytes.
    fn covers(&self, offset: u64) -> bool {
        let argument = |at: Option<usize>| at.map(|at| self.arguments[at]);
        let begin = argument(self.call.offset).or(self.descriptor.position);
        let bytes = argument(self.call.bytes).unwrap_or(0);
        begin.is_some_and(|begin| begin <= offset && offset < begin.saturating_add(bytes))
    }
}

/// A submission to io_uring in flight.
#[derive(Debug, Clone, Copy)]
struct Ring {
    begin: u64,
    thread: u32,
    process: u32,
    name: &'static str,
    effect: Effect,
    file: FileNumber,
    offset: Option<u64>,
    is_direct: bool,
    disk: Share,
}

impl Ring {
    /// True if it waits for the disk with the bytes of a file from an offset on.
    fn waits_at(&self, place: FilePlace, is_read: bool) -> bool {
        let waits = match self.effect {
            Effect::Read => is_read,
            Effect::Write => !is_read && self.is_direct,
            _ => !is_read,
        };
        waits && self.file == place.file && self.offset.is_none_or(|offset| offset == place.offset)
    }
}

/// Call or submission that a request counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    None,
    /// The call of this thread that began then.
    Call(u32, u64),
    Ring(u64),
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    process: u32,
    thread: u32,
    file: FileNumber,
    how: How,
    call: &'static str,
    link: Link,
}

impl Owner {
    /// Returns the owner of a request of another process.
    fn none(thread: u32) -> Owner {
        Owner { process: 0, thread, file: 0, how: How::Other, call: "", link: Link::None }
    }
}

/// A request that has not completed.
#[derive(Debug, Clone, Copy)]
struct Pending {
    queued: u64,
    issued: Option<u64>,
    block: Block,
    done: u32,
    depth: Depth,
    owner: Owner,
}

/// Disk, first remaining sector, and letter, because a read and a write may be in flight together.
type Place = (u32, u64, char);

/// Counts of what the join could not use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unjoined {
    /// Completions of requests whose issue was not seen.
    pub completions: u64,
    /// Exits of calls whose entry was not seen.
    pub exits: u64,
    /// Calls on sockets, pipes and terminals.
    pub other_files: u64,
    /// Requests that were still in flight at the end.
    pub in_flight: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Joiner {
    open: HashMap<u32, Open>,
    /// Descriptor that a thread duplicates.
    duplicating: HashMap<u32, i32>,
    rings: HashMap<u64, Ring>,
    /// Submission that a thread works on.
    current: HashMap<u32, u64>,
    /// Submissions that wait for a worker, by process.
    queued: HashMap<u32, VecDeque<u64>>,
    /// File that a thread writes back.
    writing_back: HashMap<u32, u64>,
    /// Last process that wrote a file through the page cache.
    writers: HashMap<FileNumber, u32>,
    pending: BTreeMap<Place, Pending>,
    flushes: HashMap<u32, VecDeque<Pending>>,
    in_flight: HashMap<u32, Depth>,
    /// True once the kernel has shown a request that enters a queue.
    sees_queue: bool,
    journals: HashMap<u32, FileNumber>,
    extents: Extents,
    unjoined: Unjoined,
}

impl Joiner {
    /// Takes an event; events come in the order of their times.
    pub fn event(&mut self, event: &Event, processes: &mut Processes, sink: &mut impl Sink) {
        let (time, thread) = (event.time, event.thread);
        match event.what {
            What::Enter { call, arguments } => self.enter(event, call, arguments, processes),
            What::Exit { call, result } => self.exit(event, call, result, processes, sink),
            What::Fork { child, is_thread, comm } => {
                let is_thread = if is_thread { IsThread::Yes } else { IsThread::No };
                processes.forked(thread, child, is_thread, &comm);
            }
            What::Exec => processes.executed(thread),
            What::End { is_process } => {
                let is_process = if is_process { IsProcess::Yes } else { IsProcess::No };
                processes.ended(thread, is_process);
                self.open.remove(&thread);
                self.current.remove(&thread);
            }
            What::Named { thread, comm } => processes.named(thread, &comm),
            What::RingSubmit { request, operation } => self.submitted(event, request, operation, processes),
            What::RingFile { request, descriptor } => {
                let descriptor = processes.descriptor(thread, descriptor);
                if let Some(ring) = self.rings.get_mut(&request) {
                    (ring.file, ring.is_direct) = (descriptor.file, descriptor.is_direct);
                }
            }
            What::RingAsync { request } => {
                if let Some(ring) = self.rings.get(&request) {
                    self.queued.entry(ring.process).or_default().push_back(request);
                }
            }
            What::RingDone { request, result } => self.completed_ring(request, result, time, processes, sink),
            What::DirectBegin { device, inode, offset } => {
                let disk = processes.disk_of(device);
                let file = processes.of_inode(disk, inode);
                self.direct(thread, file, offset, processes);
            }
            What::Queued(block) => {
                self.sees_queue = true;
                let pending = made(&block, event, self.owner(&block, event, processes));
                self.pending.insert(place(&block), pending);
            }
            What::Issued(block) => self.issued(&block, event, processes),
            What::Completed(block) => self.completed(&block, time, processes, sink),
            What::WriteBack { inode } => {
                self.writing_back.insert(thread, inode);
            }
            What::WriteBackEnd => {
                self.writing_back.remove(&thread);
            }
        }
    }

    fn enter(&mut self, event: &Event, call: &'static Call, arguments: [u64; 4], processes: &mut Processes) {
        let number = arguments[0] as u32 as i32;
        match call.effect {
            Effect::Close => return processes.closed(event.thread, number),
            Effect::Duplicate => {
                self.duplicating.insert(event.thread, number);
                return;
            }
            _ => {}
        }
        let descriptor = match call.has_file() {
            true => processes.descriptor(event.thread, number),
            false => Descriptor::default(),
        };
        let open = Open { begin: event.time, call, arguments, descriptor, disk: Share::default() };
        self.open.insert(event.thread, open);
    }

    fn exit(
        &mut self,
        event: &Event,
        call: &'static Call,
        result: i64,
        processes: &mut Processes,
        sink: &mut impl Sink,
    ) {
        match call.effect {
            // The names were read when the event arrived.
            Effect::Open | Effect::Close => return,
            Effect::Duplicate => {
                let old = self.duplicating.remove(&event.thread);
                if let (Some(old), Ok(new @ 0..)) = (old, i32::try_from(result)) {
                    processes.duplicated(event.thread, old, new);
                }
                return;
            }
            Effect::Rename if result == 0 => return processes.renamed(event.thread),
            Effect::Rename => return,
            _ => {}
        }
        self.current.remove(&event.thread);
        let Some(open) = self.open.remove(&event.thread).filter(|open| open.call == call) else {
            self.unjoined.exits += u64::from(call.is_shown());
            return;
        };
        let number = open.arguments[0] as u32 as i32;
        if call.effect == Effect::Seek {
            return processes.moved(event.thread, number, u64::try_from(result).ok());
        }
        let Some(process) = processes.process_of(event.thread).filter(|_| call.is_shown()) else { return };
        if processes.file(open.descriptor.file).kind == FileKind::Other {
            self.unjoined.other_files += 1;
            return;
        }
        let moved = u64::try_from(result).unwrap_or(0);
        let bytes = match call.effect {
            Effect::Sync => call.bytes.map_or(0, |at| open.arguments[at]),
            _ => moved,
        };
        let offset = match call.offset {
            Some(at) => Some(open.arguments[at]),
            None if call.effect == Effect::Sync => None,
            None => open.descriptor.position,
        };
        if call.offset.is_none() && call.effect != Effect::Sync {
            processes.moved(event.thread, number, offset.map(|offset| offset + moved));
        }
        if call.effect == Effect::Write {
            self.written(open.descriptor.file, Some(process).filter(|_| !open.descriptor.is_direct));
        }
        let line = CallLine {
            begin: open.begin,
            duration: event.time.saturating_sub(open.begin),
            thread: event.thread,
            process,
            name: call.name,
            effect: call.effect,
            file: open.descriptor.file,
            offset,
            bytes,
            error: i32::try_from(-result.min(0)).unwrap_or(0),
            is_direct: open.descriptor.is_direct,
            is_durable: call.effect == Effect::Write && open.descriptor.is_durable,
            disk: open.disk,
        };
        sink.call(&line, processes);
    }

    /// Notes that the extents of a file may be others now. `cached_by` is the process that wrote it
    /// through the page cache.
    fn written(&mut self, file: FileNumber, cached_by: Option<u32>) {
        if let Some(process) = cached_by {
            self.writers.insert(file, process);
        }
        self.extents.written(file);
    }

    fn submitted(&mut self, event: &Event, request: u64, operation: u8, processes: &Processes) {
        self.current.remove(&event.thread);
        let Some(process) = processes.process_of(event.thread) else { return };
        let Some((name, effect)) = ring_operation(operation) else { return };
        let ring = Ring {
            begin: event.time,
            thread: event.thread,
            process,
            name,
            effect,
            file: 0,
            offset: None,
            is_direct: false,
            disk: Share::default(),
        };
        self.rings.insert(request, ring);
        self.current.insert(event.thread, request);
    }

    /// Gives a submission its place in the file: the submitter's current one, or the oldest that
    /// waits for a worker and may be it.
    fn direct(&mut self, thread: u32, file: Option<FileNumber>, offset: u64, processes: &Processes) {
        let current = self.current.get(&thread).copied();
        let is_it = |ring: &Ring| {
            ring.offset.is_none_or(|known| known == offset)
                && (ring.file == 0 || file.is_none_or(|file| file == ring.file))
        };
        let request = current.filter(|request| self.rings.get(request).is_some_and(is_it)).or_else(|| {
            let waiting = self.queued.get_mut(&processes.process_of(thread)?)?;
            let at = waiting.iter().position(|request| self.rings.get(request).is_some_and(is_it))?;
            waiting.remove(at)
        });
        let Some(request) = request else { return };
        if let Some(ring) = self.rings.get_mut(&request) {
            ring.offset = Some(offset);
            ring.is_direct = true;
            ring.file = file.filter(|_| ring.file == 0).unwrap_or(ring.file);
        }
        self.current.insert(thread, request);
    }

    fn completed_ring(
        &mut self,
        request: u64,
        result: i64,
        time: u64,
        processes: &Processes,
        sink: &mut impl Sink,
    ) {
        let Some(ring) = self.rings.remove(&request) else { return };
        if processes.file(ring.file).kind == FileKind::Other {
            self.unjoined.other_files += 1;
            return;
        }
        if ring.effect == Effect::Write {
            self.written(ring.file, Some(ring.process).filter(|_| !ring.is_direct));
        }
        let line = CallLine {
            begin: ring.begin,
            duration: time.saturating_sub(ring.begin),
            thread: ring.thread,
            process: ring.process,
            name: ring.name,
            effect: ring.effect,
            file: ring.file,
            offset: ring.offset,
            bytes: u64::try_from(result).unwrap_or(0),
            error: i32::try_from(-result.min(0)).unwrap_or(0),
            is_direct: ring.is_direct,
            is_durable: false,
            disk: ring.disk,
        };
        sink.call(&line, processes);
    }

    /// Returns the owner of a request that was not seen in the queue: a flush, or one that was made
    /// before the trace. A traced thread that issues it does so for another, because its own
    /// requests are queued first. Kernels without `block_io_start` show only who issues.
    fn owner_of_unqueued(&mut self, block: &Block, event: &Event, processes: &mut Processes) -> Owner {
        match self.sees_queue && processes.process_of(event.thread).is_some() {
            true => Owner::none(event.thread),
            false => self.owner(block, event, processes),
        }
    }

    fn owner(&mut self, block: &Block, event: &Event, processes: &mut Processes) -> Owner {
        let thread = event.thread;
        let none = Owner::none(thread);
        if let Some(process) = processes.process_of(thread) {
            return self.owner_in(process, block, event, processes);
        }
        if block.comm.starts_with(b"jbd2/") {
            let Some((waiting, open)) = self.waiting(block.device, processes) else { return none };
            let file = self.journal(block, processes);
            let process = processes.process_of(waiting).unwrap_or(0);
            return Owner { process, file, how: How::Journal, call: open.call.name, ..none };
        }
        let inode = self.writing_back.get(&thread).copied();
        let file = inode.and_then(|inode| processes.of_inode(block.device, inode));
        match file.and_then(|file| Some((file, *self.writers.get(&file)?))) {
            Some((file, process)) => Owner { process, file, how: How::WriteBack, ..none },
            None => self.of_worker(block, event, processes).unwrap_or(none),
        }
    }

    /// Returns the owner of a request that a traced thread makes.
    fn owner_in(&mut self, process: u32, block: &Block, event: &Event, processes: &mut Processes) -> Owner {
        let has = |flag: u8| block.flags[1..].contains(&flag);
        let own = Owner { process, how: How::Outside, ..Owner::none(event.thread) };
        if let Some((request, ring)) = self.ring_of(event.thread) {
            let link = Link::Ring(request);
            return Owner { file: ring.file, how: How::Ring, call: ring.name, link, ..own };
        }
        let how = match (place_letter(block), has(b'M'), has(b'A')) {
            ('D', ..) => How::Discard,
            (_, true, _) => How::Metadata,
            (_, _, true) => How::ReadAhead,
            _ => How::Call,
        };
        match self.open.get(&event.thread).filter(|open| open.call.is_shown()).copied() {
            Some(open) => {
                let (file, call) = (open.descriptor.file, open.call.name);
                Owner { file, how, call, link: Link::Call(event.thread, open.begin), ..own }
            }
            None if how == How::Metadata => Owner { how, ..own },
            None => {
                let found = self.extents.find(sought(block, event, Some(process)), processes);
                let how = if how == How::Discard { how } else { own.how };
                Owner { file: found.map_or(0, |found| found.file), how, ..own }
            }
        }
    }

    /// Returns the owner of a request that a worker of the kernel passes on, by the file of its
    /// sector: a call on these bytes that waits for the disk, or else the last writer.
    fn of_worker(&mut self, block: &Block, event: &Event, processes: &mut Processes) -> Option<Owner> {
        if !block.comm.starts_with(b"kworker/") || block.sectors == 0 {
            return None;
        }
        let place = self.extents.find(sought(block, event, None), processes)?;
        let is_read = place_letter(block) == 'R';
        let none = Owner { file: place.file, ..Owner::none(event.thread) };
        let calls = self.open.iter().filter(|(_, open)| open.waits_at(place, is_read));
        if let Some((thread, open)) = calls.min_by_key(|(_, open)| (!open.covers(place.offset), open.begin)) {
            let (process, link) = (processes.process_of(*thread)?, Link::Call(*thread, open.begin));
            return Some(Owner {
                process,
                thread: *thread,
                how: How::Call,
                call: open.call.name,
                link,
                ..none
            });
        }
        let rings = self.rings.iter().filter(|(_, ring)| ring.waits_at(place, is_read));
        if let Some((request, ring)) = rings.min_by_key(|(_, ring)| ring.begin) {
            let Ring { process, thread, name, .. } = *ring;
            let link = Link::Ring(*request);
            return Some(Owner { process, thread, how: How::Ring, call: name, link, ..none });
        }
        let process = *self.writers.get(&place.file).filter(|_| !is_read)?;
        Some(Owner { process, how: How::WriteBack, ..none })
    }

    fn ring_of(&self, thread: u32) -> Option<(u64, Ring)> {
        let request = *self.current.get(&thread)?;
        Some((request, *self.rings.get(&request)?))
    }

    /// Returns the oldest call that waits for durability on a disk.
    fn waiting(&self, disk: u32, processes: &Processes) -> Option<(u32, Open)> {
        let waits = |open: &Open| {
            let is_sync = open.call.effect == Effect::Sync;
            let is_durable = open.call.effect == Effect::Write && open.descriptor.is_durable;
            let file = processes.file(open.descriptor.file);
            (is_sync || is_durable) && (file.disk == disk || file.disk == 0)
        };
        let waiting = self.open.iter().filter(|(_, open)| waits(open));
        waiting.min_by_key(|(_, open)| open.begin).map(|(thread, open)| (*thread, *open))
    }

    fn journal(&mut self, block: &Block, processes: &mut Processes) -> FileNumber {
        *self.journals.entry(block.device).or_insert_with(|| {
            let path = format!("<journal {}>", comm_text(&block.comm));
            let disk = block.device;
            processes.add_file(FileName { path, disk, inode: 0, kind: FileKind::Regular, size: None })
        })
    }

    fn issued(&mut self, block: &Block, event: &Event, processes: &mut Processes) {
        if block.sectors == 0 {
            let mut owner = self.owner_of_unqueued(block, event, processes);
            if let Some((thread, open)) = self.waiting(block.device, processes) {
                let process = processes.process_of(thread).unwrap_or(0);
                let link = Link::Call(thread, open.begin);
                let (file, call) = (open.descriptor.file, open.call.name);
                owner = Owner { process, thread, file, how: How::Flush, call, link };
            }
            let depth = self.in_flight.entry(block.device).or_default().issue(owner.how);
            let (queued, issued) = (event.time, Some(event.time));
            let flush = Pending { queued, issued, block: *block, done: 0, depth, owner };
            self.flushes.entry(block.device).or_default().push_back(flush);
            return;
        }
        let mut pending = match self.take_queued(block) {
            Some(pending) => pending,
            None => made(block, event, self.owner_of_unqueued(block, event, processes)),
        };
        // A disk without room takes the request again: it was counted at its first issue.
        if pending.issued.is_none() {
            pending.depth = self.in_flight.entry(block.device).or_default().issue(pending.owner.how);
        }
        pending.issued = Some(event.time);
        pending.block = *block;
        self.pending.insert(place(block), pending);
    }

    /// Takes the request that is issued: at its own sector, or at a later one if another request
    /// was merged before it. Others within it were merged and have ended.
    fn take_queued(&mut self, block: &Block) -> Option<Pending> {
        let (device, sector, letter) = place(block);
        let end = sector + u64::from(block.sectors);
        if let Some(exact) = self.pending.remove(&(device, sector, letter)) {
            if exact.block.sectors == block.sectors {
                return Some(exact);
            }
            self.merged(block, end);
            return Some(exact);
        }
        self.merged(block, end)
    }

    /// Removes the requests that were merged into one; returns the first of them.
    fn merged(&mut self, block: &Block, end: u64) -> Option<Pending> {
        let (device, sector, letter) = place(block);
        let inside = self.pending.range((device, sector, '\0')..(device, end, '\0'));
        let inside = inside.filter(|((_, _, of), pending)| *of == letter && pending.issued.is_none());
        let places: Vec<Place> = inside.map(|(place, _)| *place).collect();
        places.into_iter().filter_map(|place| self.pending.remove(&place)).reduce(|first, _| first)
    }

    fn completed(&mut self, block: &Block, time: u64, processes: &Processes, sink: &mut impl Sink) {
        // A request that asked for a flush ends again, without sectors, after the flush itself.
        if block.sectors == 0 && block.flags[0] != b'F' {
            return;
        }
        let found = match block.sectors {
            0 => self.flushes.get_mut(&block.device).and_then(VecDeque::pop_front),
            _ => self.pending.remove(&place(block)),
        };
        let Some((mut pending, issued)) = found.and_then(|found| Some((found, found.issued?))) else {
            self.unjoined.completions += 1;
            return;
        };
        pending.done += block.sectors;
        if pending.done < pending.block.sectors {
            let (device, sector, letter) = place(block);
            self.pending.insert((device, sector + u64::from(block.sectors), letter), pending);
            return;
        }
        if let Some(depth) = self.in_flight.get_mut(&block.device) {
            assert!(depth.all > 0, "J1");
            depth.forget(pending.owner.how);
        }
        let owner = pending.owner;
        let bytes = u64::from(pending.block.sectors) * 512;
        let share = match owner.link {
            Link::None => None,
            Link::Ring(request) => self.rings.get_mut(&request).map(|ring| &mut ring.disk),
            Link::Call(thread, begin) => {
                let open = self.open.get_mut(&thread).filter(|open| open.begin == begin);
                open.map(|open| &mut open.disk)
            }
        };
        if let Some(share) = share {
            share.requests += 1;
            share.bytes += bytes;
            share.time += time.saturating_sub(issued);
        }
        let line = RequestLine {
            queued: pending.queued,
            issued,
            completed: time,
            disk: block.device,
            sector: pending.block.sector,
            bytes,
            flags: pending.block.flags,
            process: owner.process,
            thread: owner.thread,
            file: owner.file,
            how: owner.how,
            call: owner.call,
            depth: pending.depth,
        };
        sink.request(&line, processes);
    }

    /// Returns the counts of what could not be joined so far.
    pub fn unjoined(&self) -> Unjoined {
        let issued = self.pending.values().filter(|pending| pending.issued.is_some()).count();
        let flushes: usize = self.flushes.values().map(VecDeque::len).sum();
        Unjoined { in_flight: (issued + flushes) as u64, ..self.unjoined }
    }

    /// Forgets requests older than `age`, whose completion was lost or came before the trace.
    pub fn forget(&mut self, now: u64, age: u64) {
        let old = |queued: u64| queued + age < now;
        let mut fell: Vec<(u32, How)> = Vec::new();
        self.pending.retain(|(device, ..), pending| {
            let goes = old(pending.queued);
            fell.extend((goes && pending.issued.is_some()).then_some((*device, pending.owner.how)));
            !goes
        });
        for (device, how) in fell {
            if let Some(depth) = self.in_flight.get_mut(&device) {
                depth.forget(how);
            }
        }
        self.rings.retain(|_, ring| !old(ring.begin));
    }
}

/// The name of a disk for reports, with its numbers.
pub fn disk_text(disk: u32) -> (String, u32, u32) {
    (disk_name(disk), disk >> 20, disk & 0xf_ffff)
}

fn place(block: &Block) -> Place {
    (block.device, block.sector, place_letter(block))
}

fn place_letter(block: &Block) -> char {
    letter(&block.flags, u64::from(block.sectors))
}

fn sought(block: &Block, event: &Event, process: Option<u32>) -> Sought {
    Sought { disk: block.device, sector: block.sector, time: event.time, process }
}

fn made(block: &Block, event: &Event, owner: Owner) -> Pending {
    Pending { queued: event.time, issued: None, block: *block, done: 0, depth: Depth::default(), owner }
}

#[cfg(test)]
mod tests;
