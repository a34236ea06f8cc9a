//! A disk whose reads or flushes wait a known time before each answer.
//!
//! ```text
//! program ──> /dev/loopN ─ request ─> kernel thread ─> file system here: waits ─> sparse file
//! ```
//!
//! A thread that sleeps wakes late on a busy machine, so the wait is measured where it is made.
//!
//! Limits: one thread answers, so that a request that waits holds up the others.

use super::power::place::unmount;
use anyhow::Context;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, Session, WriteFlags,
};
use plumb_events::now;
use plumb_host::priority;
use plumb_units::Nanos;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::{Duration, UNIX_EPOCH};

const FILE: &str = "device";
const FILE_INODE: INodeNo = INodeNo(2);
const FOREVER: Duration = Duration::from_secs(3600);

/// Kind of requests that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsAt {
    Reads,
    /// A flush of the device.
    Syncs,
}

pub(super) struct SlowSpec<'a> {
    /// Name of the mount point in the room.
    pub name: &'a str,
    pub bytes: u64,
    pub waits: WaitsAt,
}

/// A wait before each answer, with the time that was really waited.
#[derive(Debug)]
pub(super) struct Wait {
    each_ns: AtomicU64,
    waited_ns: AtomicU64,
    answers: AtomicU64,
    /// Gives the thread that answers precedence.
    first: Once,
}

/// Waits of a stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waited {
    pub mean_us: f64,
    pub answers: u64,
}

impl Wait {
    fn new() -> Wait {
        let none = || AtomicU64::new(0);
        Wait { each_ns: none(), waited_ns: none(), answers: none(), first: Once::new() }
    }

    pub(super) fn start(&self, each: Nanos) {
        self.waited_ns.store(0, Relaxed);
        self.answers.store(0, Relaxed);
        self.each_ns.store(each.0, Relaxed);
    }

    /// Ends the waits; returns those since the start.
    pub(super) fn end(&self) -> Waited {
        self.each_ns.store(0, Relaxed);
        let answers = self.answers.load(Relaxed);
        Waited { mean_us: self.waited_ns.load(Relaxed) as f64 / answers.max(1) as f64 / 1e3, answers }
    }

    fn wait(&self) {
        // Otherwise the answer waits for other programs too. Without the right it does.
        self.first.call_once(|| drop(priority::put_first()));
        let begin = now();
        let each = self.each_ns.load(Relaxed);
        if each > 0 {
            std::thread::sleep(Duration::from_nanos(each));
        }
        self.waited_ns.fetch_add(now().saturating_sub(begin).0, Relaxed);
        self.answers.fetch_add(1, Relaxed);
    }
}

/// A file system with one file of zeros, whose answers wait. Dropping it unmounts it.
pub(super) struct SlowDisk {
    pub wait: Arc<Wait>,
    directory: PathBuf,
    session: Option<BackgroundSession>,
}

impl SlowDisk {
    pub(super) fn mount(room: &Path, spec: &SlowSpec<'_>) -> anyhow::Result<SlowDisk> {
        let directory = room.join(spec.name);
        std::fs::create_dir(&directory)?;
        let contents = room.join(format!("{}-contents", spec.name));
        let contents = File::options().create_new(true).read(true).write(true).open(contents)?;
        contents.set_len(spec.bytes)?;
        let wait = Arc::new(Wait::new());
        let files = Answers { wait: Arc::clone(&wait), waits: spec.waits, bytes: spec.bytes, contents };
        let session = Session::new(files, &directory, &Config::default()).and_then(Session::spawn);
        let session =
            session.with_context(|| format!("mounting on {} needs root and FUSE", directory.display()))?;
        Ok(SlowDisk { wait, directory, session: Some(session) })
    }

    pub(super) fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.wait.end();
        let Some(session) = self.session.take() else { return };
        if let Err(error) = unmount(&self.directory) {
            eprintln!("{} stays mounted: {error}", self.directory.display());
        } else if let Err(error) = session.join() {
            eprintln!("{}: {error}", self.directory.display());
        }
    }
}

/// Answers the kernel after the wait.
struct Answers {
    wait: Arc<Wait>,
    waits: WaitsAt,
    bytes: u64,
    contents: File,
}

impl Answers {
    fn wait_at(&self, at: WaitsAt) {
        if self.waits == at {
            self.wait.wait();
        }
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE_INODE;
        FileAttr {
            ino: inode,
            size: if is_file { self.bytes } else { 4096 },
            blocks: self.bytes / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Answers {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == FILE {
            true => reply.entry(&FOREVER, &self.attributes(FILE_INODE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.wait_at(WaitsAt::Reads);
        let bytes = self.bytes.saturating_sub(offset).min(u64::from(size));
        let mut data = vec![0; bytes as usize];
        match self.contents.read_exact_at(&mut data, offset) {
            Ok(()) => reply.data(&data),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.contents.write_all_at(data, offset) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.wait_at(WaitsAt::Syncs);
        reply.ok();
    }
}
