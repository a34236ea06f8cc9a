//! Each invariant of a channel, broken by hand: the program must stop at the breach.

use super::*;
use crate::Disk;
use crate::sim::MemoryDisk;
use plumb_events::{Recorder, Role};
use std::path::Path;

fn with_channel(body: impl FnOnce(&mut Channel, &Session, Request)) {
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    let disk = Disk::Memory(MemoryDisk::new());
    let file = disk.open(Path::new("file"), crate::OpenMode::Create, DirectIo::Off).expect("a file");
    let (_, mut buffers) = Arena::buffers(4096, 1).expect("a buffer");
    let request = Request {
        operation: Operation::Write,
        file: Arc::new(file),
        offset: 0,
        range: 0..4096,
        buffer: buffers.pop().expect("one"),
        event: Event::DirectPathWrite,
        stream: IoStream::DataWrites,
        tag: 0,
    };
    let method = Method::start(MethodKind::Sync, 1).expect("the plain method");
    body(&mut method.channel(&[]).expect("a channel"), &session, request);
}

fn settle(channel: &mut Channel, session: &Session, pending: Pending, result: Result<usize, Errno>) {
    channel.settle(session, Attempt { pending, result, end: now() }, now()).expect("errors come out of wait");
}

#[test]
#[should_panic(expected = "C1: what ends was in flight")]
fn a_request_ends_once() {
    with_channel(|channel, session, request| settle(channel, session, Pending::new(request), Ok(4096)));
}

#[test]
#[should_panic(expected = "C1: 4097 bytes moved, more than asked for")]
fn no_transfer_moves_more_than_its_range() {
    with_channel(|channel, session, request| settle(channel, session, Pending::new(request), Ok(4097)));
}

#[test]
#[should_panic(expected = "C3: nothing to wait for")]
fn a_wait_for_nothing_is_refused() {
    with_channel(|channel, session, _| {
        let _ = channel.wait(session, Event::DirectPathWrite);
    });
}

#[test]
#[should_panic(expected = "C4: a request whose sync failed is not tried again")]
fn a_failed_sync_is_not_repeated_with_the_rest_of_its_write() {
    with_channel(|channel, session, request| {
        let pending = Pending { sync: Err(Errno::IO), ..Pending::new(request) };
        settle(channel, session, pending, Ok(512));
    });
}
