//! Joins of made-up events.

use super::*;
use crate::kernel::event::Comm;
use crate::kernel::syscalls::CALLS;
use crate::owner::process::NO_NAME;
use plumb_host::extents::FileExtent;
use plumb_units::Bytes;
use std::os::fd::AsRawFd;

/// Disk that no test machine has.
const DISK: u32 = 4095 << 20;

#[derive(Default)]
struct Kept {
    calls: Vec<CallLine>,
    requests: Vec<RequestLine>,
}

impl Sink for Kept {
    fn call(&mut self, call: &CallLine, _: &Processes) {
        self.calls.push(*call);
    }

    fn request(&mut self, request: &RequestLine, _: &Processes) {
        self.requests.push(*request);
    }
}

/// Events of this process, with a descriptor of a file on the disk.
struct Scene {
    joiner: Joiner,
    processes: Processes,
    kept: Kept,
    time: u64,
    thread: u32,
    file: std::fs::File,
}

impl Scene {
    fn new() -> Scene {
        let mut processes = Processes::new(std::path::Path::new("/proc"));
        let thread = std::process::id();
        processes.add(thread);
        let file = tempfile::tempfile().expect("a file");
        Scene { joiner: Joiner::default(), processes, kept: Kept::default(), time: 1000, thread, file }
    }

    fn at(&mut self, thread: u32, what: What) -> &mut Scene {
        self.time += 10;
        let event = Event { time: self.time, thread, what };
        self.joiner.event(&event, &mut self.processes, &mut self.kept);
        self
    }

    fn own(&mut self, what: What) -> &mut Scene {
        self.at(self.thread, what)
    }

    fn enter(&mut self, name: &str, rest: [u64; 3]) -> &mut Scene {
        let fd = self.file.as_raw_fd() as u64;
        self.own(What::Enter { call: call(name), arguments: [fd, rest[0], rest[1], rest[2]] })
    }

    fn exit(&mut self, name: &str, result: i64) -> &mut Scene {
        self.own(What::Exit { call: call(name), result })
    }

    /// The disk of the file, as block requests carry it.
    fn disk(&mut self) -> u32 {
        let found = self.processes.descriptor(self.thread, self.file.as_raw_fd());
        self.processes.file(found.file).disk
    }
}

fn call(name: &str) -> &'static Call {
    CALLS.iter().find(|call| call.name == name).expect("a row")
}

fn block(device: u32, sector: u64, sectors: u32, flags: &str) -> Block {
    let mut block = Block { device, sector, sectors, ..Block::default() };
    block.flags[..flags.len()].copy_from_slice(flags.as_bytes());
    block
}

fn by(comm: &str, mut block: Block) -> Block {
    block.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    block
}

#[test]
fn a_request_made_within_a_call_belongs_to_it_whatever_thread_issues_it() {
    let mut scene = Scene::new();
    let write = block(DISK, 2048, 16, "WS");
    scene.enter("pwrite", [0, 8192, 65536]).own(What::Queued(write));
    scene.at(2, What::Issued(by("kworker", write))).at(3, What::Completed(write)).exit("pwrite", 8192);
    let (call, request) = (scene.kept.calls[0], scene.kept.requests[0]);
    assert_eq!((call.name, call.offset, call.bytes, call.duration), ("pwrite", Some(65536), 8192, 40));
    assert_eq!(call.disk, Share { requests: 1, bytes: 8192, time: 10 });
    assert_eq!((request.how, request.call, request.file), (How::Call, "pwrite", call.file));
    assert_eq!((request.issued - request.queued, request.completed - request.issued), (10, 10));
    assert_eq!((request.process, request.depth.all, request.letter()), (scene.thread, 1, 'W'));
}

#[test]
fn a_request_that_was_queued_before_the_trace_is_not_of_the_thread_that_issues_it() {
    let mut scene = Scene::new();
    let [mine, other, flush] = [block(DISK, 0, 8, "W"), block(DISK, 800, 16, "W"), block(DISK, 0, 0, "FF")];
    scene.enter("pwrite", [0, 4096, 0]).own(What::Queued(mine)).own(What::Issued(mine));
    scene.own(What::Issued(other)).own(What::Issued(flush));
    for ended in [mine, other, flush] {
        scene.at(0, What::Completed(ended));
    }
    scene.exit("pwrite", 4096);
    let owners: Vec<_> = scene.kept.requests.iter().map(|request| (request.how, request.bytes)).collect();
    assert_eq!(owners, [(How::Call, 4096), (How::Other, 8192), (How::Other, 0)]);
    assert_eq!(scene.kept.calls[0].disk, Share { requests: 1, bytes: 4096, ..scene.kept.calls[0].disk });
}

#[test]
fn merged_and_split_requests_complete_once() {
    let mut scene = Scene::new();
    scene.enter("pread", [0, 24576, 0]);
    // The second is merged before the first, a third behind it.
    for (sector, sectors) in [(2064, 16), (2048, 16), (2080, 16)] {
        scene.own(What::Queued(block(DISK, sector, sectors, "R")));
    }
    scene.own(What::Issued(block(DISK, 2048, 48, "R")));
    scene.own(What::Completed(block(DISK, 2048, 40, "R"))).own(What::Completed(block(DISK, 2088, 8, "R")));
    scene.exit("pread", 24576);
    assert_eq!(scene.kept.requests.len(), 1);
    assert_eq!((scene.kept.requests[0].sector, scene.kept.requests[0].bytes), (2048, 24576));
    assert_eq!(scene.kept.calls[0].disk.requests, 1);
    assert_eq!(scene.joiner.unjoined(), Unjoined::default());
}

/// J1: each issued request is completed once.
#[test]
fn depth_counts_requests_in_flight_of_all_processes_and_reissues_once() {
    let mut scene = Scene::new();
    let [mine, other] = [block(DISK, 0, 8, "W"), block(DISK, 800, 8, "W")];
    scene.at(9, What::Issued(by("other", other)));
    scene.enter("pwrite", [0, 4096, 0]).own(What::Queued(mine)).own(What::Issued(mine));
    scene.own(What::Issued(mine)).own(What::Completed(mine)).exit("pwrite", 4096);
    scene.at(0, What::Completed(other)).at(0, What::Completed(other));
    let depths: Vec<_> = scene.kept.requests.iter().map(|request| (request.how, request.depth)).collect();
    let [first, second] = [Depth { all: 2, own: 1 }, Depth { all: 1, own: 0 }];
    assert_eq!(depths, [(How::Call, first), (How::Other, second)], "J1");
    assert_eq!(scene.joiner.unjoined().completions, 1, "the last had no issue");
    assert_eq!(scene.joiner.in_flight[&DISK], Depth::default(), "J1");
}

#[test]
fn what_the_kernel_writes_back_belongs_to_the_file_and_its_last_writer() {
    let mut scene = Scene::new();
    let disk = scene.disk();
    scene.enter("write", [0, 8192, 0]).exit("write", 8192);
    let file = scene.kept.calls[0].file;
    let inode = scene.processes.file(file).inode;
    let write = by("kworker/u8:1", block(disk, 5000, 16, "W"));
    scene.at(7, What::WriteBack { inode }).at(7, What::Queued(write)).at(7, What::Issued(write));
    scene.at(7, What::WriteBackEnd).at(0, What::Completed(write));
    let later = by("kworker/u8:1", block(disk, 6000, 16, "W"));
    scene.at(7, What::Issued(later)).at(0, What::Completed(later));
    let shown: Vec<_> = scene.kept.requests.iter().map(|line| (line.how, line.process, line.file)).collect();
    assert_eq!(shown, [(How::WriteBack, scene.thread, file), (How::Other, 0, 0)]);
}

/// A file of 1 MB at sector 8000 of its disk.
fn placed(scene: &mut Scene) -> (FileNumber, u32) {
    let disk = scene.disk();
    let file = scene.processes.descriptor(scene.thread, scene.file.as_raw_fd()).file;
    // The file's real extents are read once, and these replace them.
    let sought = Sought { disk, sector: 0, time: 0, process: None };
    scene.joiner.extents.find(sought, &mut scene.processes);
    let extent = FileExtent { logical: Bytes(0), physical: Bytes(8000 * 512), length: Bytes(1 << 20) };
    scene.joiner.extents.set(file, disk, 0, &[extent]);
    (file, disk)
}

#[test]
fn a_page_fault_is_of_the_file_of_its_sector() {
    let mut scene = Scene::new();
    let (file, disk) = placed(&mut scene);
    for (sector, flags) in [(8000, "R"), (8016, "RA"), (7992, "R"), (8032, "RM")] {
        let read = block(disk, sector, 8, flags);
        scene.own(What::Queued(read)).own(What::Issued(read)).at(0, What::Completed(read));
    }
    let shown: Vec<_> = scene.kept.requests.iter().map(|line| (line.how, line.file)).collect();
    let expected = [(How::Outside, file), (How::Outside, file), (How::Outside, 0), (How::Metadata, 0)];
    assert_eq!(shown, expected);
}

#[test]
fn a_discard_is_no_page_fault_and_moves_no_bytes() {
    let mut scene = Scene::new();
    let (file, disk) = placed(&mut scene);
    let discard = block(disk, 8000, 2048, "DS");
    scene.own(What::Queued(discard)).own(What::Issued(discard)).at(0, What::Completed(discard));
    let line = scene.kept.requests[0];
    assert_eq!((line.how, line.file, line.bytes, line.moved()), (How::Discard, file, 1 << 20, 0));
}

#[test]
fn a_request_that_a_worker_of_the_kernel_passes_on_belongs_to_the_call_on_its_bytes() {
    let mut scene = Scene::new();
    let (file, disk) = placed(&mut scene);
    let worker = |sector, flags| by("kworker/1:0H", block(disk, sector, 8, flags));
    let pass = |scene: &mut Scene, request: Block| {
        scene.at(7, What::Queued(request)).at(7, What::Issued(request)).at(0, What::Completed(request));
    };
    // Another thread reads elsewhere in the file, and began earlier.
    let other = 4_194_301;
    scene.own(What::Fork { child: other, is_thread: true, comm: Comm::default() });
    let arguments = [scene.file.as_raw_fd() as u64, 0, 4096, 0];
    scene.at(other, What::Enter { call: call("pread"), arguments });
    scene.enter("pread", [0, 4096, 65536]);
    pass(&mut scene, worker(8000 + 128, "R"));
    pass(&mut scene, worker(8000 + 128, "W"));
    pass(&mut scene, worker(7000, "R"));
    scene.exit("pread", 4096).enter("write", [0, 4096, 0]).exit("write", 4096);
    pass(&mut scene, worker(8000, "W"));
    pass(&mut scene, by("another", worker(8000, "W")));
    let line = |line: &RequestLine| (line.how, line.thread, line.call, line.file);
    let shown: Vec<_> = scene.kept.requests.iter().map(line).collect();
    let [own, none] = [scene.thread, 7];
    let expected = [
        (How::Call, own, "pread", file),
        (How::Other, none, "", 0),
        (How::Other, none, "", 0),
        (How::WriteBack, none, "", file),
        (How::Other, none, "", 0),
    ];
    assert_eq!(shown, expected, "a read call waits for no write");
    assert_eq!(scene.kept.calls[0].disk, Share { requests: 1, bytes: 4096, time: 10 });
}

#[test]
fn journal_and_flush_belong_to_the_call_that_waits_for_them() {
    let mut scene = Scene::new();
    let disk = scene.disk();
    let journal = by("jbd2/vda-8", block(disk, 99, 8, "WS"));
    scene.at(5, What::Issued(journal)).at(0, What::Completed(journal));
    scene.enter("fsync", [0; 3]);
    scene.at(5, What::Queued(journal)).at(5, What::Issued(journal)).at(0, What::Completed(journal));
    let flush = block(disk, 0, 0, "FF");
    scene.at(6, What::Issued(by("kworker/0:1H", flush))).at(0, What::Completed(flush));
    scene.at(0, What::Completed(block(disk, 0, 0, "WS"))).exit("fsync", 0);
    let shown: Vec<_> = scene.kept.requests.iter().map(|line| (line.how, line.call, line.letter())).collect();
    let expected = [(How::Other, "", 'W'), (How::Journal, "fsync", 'W'), (How::Flush, "fsync", 'F')];
    assert_eq!(shown, expected);
    assert_eq!(scene.processes.file(scene.kept.requests[1].file).path, "<journal jbd2/vda-8>");
    assert_eq!(scene.kept.calls[0].disk.requests, 1, "the flush is the caller's");
    assert_eq!(scene.joiner.unjoined(), Unjoined::default(), "its request ends again without sectors");
}

#[test]
fn submissions_to_io_uring_belong_to_the_submitter_also_by_a_worker() {
    let mut scene = Scene::new();
    let disk = scene.disk();
    let inode = scene.processes.file(1).inode;
    let fd = scene.file.as_raw_fd();
    let begin = |offset| What::DirectBegin { device: disk, inode, offset };
    let (direct, worked) = (block(disk, 16, 8, "WS"), block(disk, 24, 8, "WS"));
    scene.own(What::RingSubmit { request: 0xa, operation: 23 });
    scene.own(What::RingFile { request: 0xa, descriptor: fd }).own(begin(4096)).own(What::Queued(direct));
    scene.own(What::RingSubmit { request: 0xb, operation: 22 });
    scene.own(What::RingFile { request: 0xb, descriptor: fd }).own(What::RingAsync { request: 0xb });
    let worker = 4_194_302;
    scene.own(What::Fork { child: worker, is_thread: true, comm: Comm::default() });
    scene.at(worker, begin(8192)).at(worker, What::Queued(worked)).at(worker, What::Issued(worked));
    scene.at(0, What::Issued(direct)).at(0, What::Completed(direct)).at(0, What::Completed(worked));
    scene.at(0, What::RingDone { request: 0xa, result: 4096 });
    scene.at(worker, What::RingDone { request: 0xb, result: -11 });
    scene
        .own(What::RingSubmit { request: 0xc, operation: 0 })
        .own(What::RingDone { request: 0xc, result: 0 });
    let calls: Vec<_> = scene
        .kept
        .calls
        .iter()
        .map(|call| (call.name, call.file, call.offset, call.bytes, call.error, call.disk.requests))
        .collect();
    let expected = [("uring write", 1, Some(4096), 4096, 0, 1), ("uring read", 1, Some(8192), 0, 11, 1)];
    assert_eq!(calls, expected, "a no-op moves nothing");
    assert!(scene.kept.requests.iter().all(|line| line.how == How::Ring && line.process == scene.thread));
}

#[test]
fn offsets_follow_seeks_reads_and_writes_and_are_unknown_before() {
    let mut scene = Scene::new();
    scene.enter("read", [0, 100, 0]).exit("read", 100).enter("read", [0, 100, 0]).exit("read", 20);
    scene.enter("lseek", [5, 0, 0]).exit("lseek", 5000).enter("write", [0, 7, 0]).exit("write", -28);
    let shown: Vec<_> = scene.kept.calls.iter().map(|call| (call.offset, call.bytes, call.error)).collect();
    assert_eq!(shown, [(Some(0), 100, 0), (Some(100), 20, 0), (Some(5000), 0, 28)]);
}

#[test]
fn calls_that_serve_no_disk_and_exits_without_entry_are_counted() {
    let mut scene = Scene::new();
    scene.exit("read", 3);
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    let arguments = [writer.as_raw_fd() as u64, 0, 3, 0];
    scene.own(What::Enter { call: call("write"), arguments }).exit("write", 3);
    let expected = Unjoined { exits: 1, other_files: 1, ..Unjoined::default() };
    assert_eq!((scene.joiner.unjoined(), scene.kept.calls.len()), (expected, 0));
    // A thread of another process is no part of the trace.
    scene.at(4_194_301, What::Enter { call: call("fsync"), arguments });
    scene.at(4_194_301, What::Exit { call: call("fsync"), result: 0 });
    assert_eq!(scene.kept.calls.len(), 0);
    assert_eq!(scene.processes.file(0).path, NO_NAME);
}

#[test]
fn requests_whose_completion_was_lost_are_forgotten_with_their_depth() {
    let mut scene = Scene::new();
    let lost = block(DISK, 0, 8, "R");
    scene.at(1, What::Issued(lost));
    assert_eq!(scene.joiner.unjoined().in_flight, 1);
    scene.joiner.forget(scene.time + 100, 50);
    assert_eq!((scene.joiner.unjoined().in_flight, scene.joiner.in_flight[&DISK]), (0, Depth::default()));
}
