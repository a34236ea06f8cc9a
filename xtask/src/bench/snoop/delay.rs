//! A disk that waits a known time before each answer: the wait is found, and where.
//!
//! ```text
//! dd ─ pread ─> /dev/loopN ─ request ─> kernel thread ─ read ─> file system in this process: waits
//!      call         disk: issue ──────────────────────────────> completion
//! ```
//!
//! A thread that sleeps wakes late on a busy machine, so the wait is measured where it is made.
//!
//! Reads of the loop device have the wait at the disk, within the call. Reads of the file itself
//! have it in the call alone, because no disk is below it.

use super::{calls, mean_us, traced_command};
use crate::bench::power::place::{Loop, unmount};
use anyhow::Context;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, Request, Session,
};
use plumb_events::now;
use plumb_host::priority;
use plumb_units::Nanos;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::{Duration, UNIX_EPOCH};

const DELAYS_MS: [u64; 5] = [0, 1, 2, 5, 20];
const FILE: &str = "device";
const FILE_INODE: INodeNo = INodeNo(2);
const FILE_BYTES: u64 = 64 << 20;
const FOREVER: Duration = Duration::from_secs(3600);

pub(super) fn run(room: &Path, requests: u64) -> anyhow::Result<()> {
    println!("A disk with a delay, {requests} direct reads of 4 KiB each\n");
    println!(
        "| asked for | read of | calls | mean of a call | at the disk, a call | waited | found | error |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let place = Slow::mount(room)?;
    let device = Loop::attach(&place.file())?;
    let file = place.file().display().to_string();
    for of in [device.device.as_str(), &file] {
        let mut undelayed = 0.0;
        for delay in DELAYS_MS {
            place.wait.start(Nanos(delay * 1_000_000));
            let [input, count] = [format!("if={of}"), format!("count={requests}")];
            let words = ["dd", &input, "of=/dev/null", "bs=4k", &count, "iflag=direct", "status=none"];
            let snoop = traced_command(&words);
            let waited = place.wait.end();
            let snoop = snoop?;
            let found = calls(&snoop, |row| row.file == of && row.operation == "read");
            let [call, disk] = [found.time_ns, found.disk_time_ns].map(|time| mean_us(time, found.calls));
            let seen = if found.disk_requests > 0 { disk } else { call };
            if delay == 0 {
                undelayed = seen;
            }
            let more = seen - undelayed;
            let error = match delay {
                0 => String::new(),
                _ => format!("{:+.1}%", (more / waited - 1.0) * 100.0),
            };
            println!(
                "| {} | {} | {} | {call:.0} us | {disk:.0} us | {waited:.0} us | {more:.0} us | {error} |",
                Nanos(delay * 1_000_000),
                if found.disk_requests > 0 { "the device" } else { "the file" },
                found.calls,
            );
        }
    }
    Ok(())
}

/// A wait before each answer, with the time that was really waited.
#[derive(Debug)]
struct Wait {
    each_ns: AtomicU64,
    waited_ns: AtomicU64,
    answers: AtomicU64,
    /// Gives the thread that answers precedence.
    first: Once,
}

impl Wait {
    fn new() -> Wait {
        let none = || AtomicU64::new(0);
        Wait { each_ns: none(), waited_ns: none(), answers: none(), first: Once::new() }
    }

    fn start(&self, each: Nanos) {
        self.waited_ns.store(0, Relaxed);
        self.answers.store(0, Relaxed);
        self.each_ns.store(each.0, Relaxed);
    }

    /// Ends the waits; returns the mean of them in microseconds.
    fn end(&self) -> f64 {
        self.each_ns.store(0, Relaxed);
        mean_us(self.waited_ns.load(Relaxed), self.answers.load(Relaxed))
    }

    fn wait(&self) {
        // Otherwise the answer waits for other programs too. Without the right it does.
        self.first.call_once(|| drop(priority::put_first()));
        let begin = now();
        std::thread::sleep(Duration::from_nanos(self.each_ns.load(Relaxed)));
        self.waited_ns.fetch_add(now().saturating_sub(begin).0, Relaxed);
        self.answers.fetch_add(1, Relaxed);
    }
}

/// A file system with one file of zeros, whose reads wait.
struct Slow {
    wait: Arc<Wait>,
    directory: PathBuf,
    session: Option<BackgroundSession>,
}

impl Slow {
    fn mount(room: &Path) -> anyhow::Result<Slow> {
        let directory = room.join("slow");
        std::fs::create_dir(&directory)?;
        let wait = Arc::new(Wait::new());
        let files = Answers(Arc::clone(&wait));
        let session = Session::new(files, &directory, &Config::default()).and_then(Session::spawn);
        let session =
            session.with_context(|| format!("mounting on {} needs root and FUSE", directory.display()))?;
        Ok(Slow { wait, directory, session: Some(session) })
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }
}

impl Drop for Slow {
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

/// Answers the kernel after the delay.
struct Answers(Arc<Wait>);

fn attributes(inode: INodeNo) -> FileAttr {
    let is_file = inode == FILE_INODE;
    FileAttr {
        ino: inode,
        size: if is_file { FILE_BYTES } else { 4096 },
        blocks: FILE_BYTES / 512,
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

impl Filesystem for Answers {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == FILE {
            true => reply.entry(&FOREVER, &attributes(FILE_INODE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &attributes(ino));
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
        self.0.wait();
        let bytes = FILE_BYTES.saturating_sub(offset).min(u64::from(size));
        reply.data(&vec![0; bytes as usize]);
    }
}
