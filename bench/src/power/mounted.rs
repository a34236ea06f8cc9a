//! A file system in memory, mounted through /dev/fuse, that logs each operation in order.
//!
//! One thread answers the kernel, and the page cache is bypassed, so the order of the log is the
//! order in which operations returned. Each operation is in the log before the kernel has its
//! answer.
//!
//! A process reports its commits by writes to the file [`ACKNOWLEDGED`]. These are entries of
//! their own, so the log has them in order with the process's operations.

use super::medium::{Change, Entry};
use super::place::unmount;
use super::tree::{Content, Inode, Kind, Node, ROOT, Tree};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, TimeOrNow,
    WriteFlags,
};
use plumb_events::locked;
use rustix::fs::{FallocateFlags, OFlags};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File in the root directory for acknowledgements.
pub(super) const ACKNOWLEDGED: &str = "acknowledged";

const NO_CACHE: Duration = Duration::ZERO;

/// Returns a file system with an empty file of acknowledgements.
pub(super) fn empty() -> Tree {
    let mut tree = Tree::new();
    tree.add_file(ACKNOWLEDGED, 0);
    tree
}

#[derive(Debug)]
struct State {
    tree: Tree,
    log: Vec<Entry>,
    acknowledged: Option<Inode>,
}

/// A mounted file system; dropping it unmounts it.
#[derive(Debug)]
pub(super) struct Mounted {
    state: Arc<Mutex<State>>,
    session: Option<BackgroundSession>,
    directory: PathBuf,
}

impl Mounted {
    pub(super) fn new(tree: Tree, directory: &Path) -> anyhow::Result<Mounted> {
        let acknowledged = tree.names(ROOT).and_then(|names| names.get(OsStr::new(ACKNOWLEDGED)).copied());
        let state = Arc::new(Mutex::new(State { tree, log: Vec::new(), acknowledged }));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("plumb-power".to_string())];
        let session = Session::new(Logged(Arc::clone(&state)), directory, &config).and_then(Session::spawn);
        let session = session.map_err(|error| {
            anyhow::anyhow!("{}: mounting on {}: {error}", super::NEEDS, directory.display())
        })?;
        Ok(Mounted { state, session: Some(session), directory: directory.to_path_buf() })
    }

    /// Returns the number of operations so far.
    pub(super) fn log_length(&self) -> usize {
        locked(&self.state).log.len()
    }

    /// Unmounts, and returns the log.
    pub(super) fn into_log(mut self) -> anyhow::Result<Vec<Entry>> {
        self.unmount()?;
        Ok(std::mem::take(&mut locked(&self.state).log))
    }

    fn unmount(&mut self) -> anyhow::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        unmount(&self.directory)?;
        Ok(session.join()?)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = self.unmount() {
            eprintln!("{} stays mounted: {error}", self.directory.display());
        }
    }
}

/// A name in a directory.
#[derive(Debug, Clone, Copy)]
struct Named<'a> {
    directory: Inode,
    name: &'a OsStr,
}

impl State {
    fn attributes(&self, inode: Inode) -> Result<FileAttr, Errno> {
        let node = self.tree.node(inode).ok_or(Errno::ENOENT)?;
        let (kind, size, nlink) = match &node.kind {
            Kind::File(content) => (FileType::RegularFile, content.length(), self.tree.links(inode)),
            Kind::Directory(_) => (FileType::Directory, 4096, 2),
        };
        Ok(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: node.mode as u16,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn find(&self, directory: Inode, name: &OsStr) -> Result<Inode, Errno> {
        let names = self.tree.names(directory).ok_or(Errno::ENOTDIR)?;
        names.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn perform(&mut self, change: Change) {
        change.apply(&mut self.tree, |_| true);
        self.log.push(Entry::Change(change));
    }

    fn set_names(&mut self, directory: Inode, changed: Vec<(Inode, OsString, Option<Inode>)>) {
        self.perform(Change::Names { directory, changed });
    }

    fn make(&mut self, directory: Inode, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        if self.find(directory, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let inode = self.tree.add(node.clone());
        self.log.push(Entry::Node(inode, node));
        self.set_names(directory, vec![(directory, name.to_os_string(), Some(inode))]);
        self.attributes(inode)
    }

    fn remove(&mut self, directory: Inode, name: &OsStr) -> Result<(), Errno> {
        let inode = self.find(directory, name)?;
        if self.tree.names(inode).is_some_and(|names| !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        self.set_names(directory, vec![(directory, name.to_os_string(), None)]);
        Ok(())
    }

    fn rename(&mut self, from: Named<'_>, to: Named<'_>, flags: RenameFlags) -> Result<(), Errno> {
        if !(flags & !RenameFlags::RENAME_NOREPLACE).is_empty() {
            return Err(Errno::EINVAL);
        }
        let inode = self.find(from.directory, from.name)?;
        match self.find(to.directory, to.name) {
            Ok(_) if flags.contains(RenameFlags::RENAME_NOREPLACE) => return Err(Errno::EEXIST),
            Ok(found) if found == inode => return Ok(()),
            Ok(found) if self.tree.names(found).is_some_and(|names| !names.is_empty()) => {
                return Err(Errno::ENOTEMPTY);
            }
            _ => {}
        }
        let made = (to.directory, to.name.to_os_string(), Some(inode));
        let gone = (from.directory, from.name.to_os_string(), None);
        self.set_names(to.directory, vec![made, gone]);
        Ok(())
    }

    fn write(&mut self, file: Inode, offset: u64, bytes: &[u8], flags: OpenFlags) -> Result<u32, Errno> {
        self.tree.content(file).ok_or(Errno::EISDIR)?;
        if Some(file) == self.acknowledged {
            self.log.push(Entry::Acknowledged(String::from_utf8_lossy(bytes).into_owned()));
            return Ok(bytes.len() as u32);
        }
        let change = Change::Write { file, offset, bytes: bytes.to_vec() };
        change.apply(&mut self.tree, |_| true);
        let is_durable = flags.0 as u32 & OFlags::DSYNC.bits() != 0;
        self.log.push(if is_durable { Entry::DurableWrite(change) } else { Entry::Change(change) });
        Ok(bytes.len() as u32)
    }

    fn allocate(&mut self, file: Inode, end: u64, mode: FallocateFlags) -> Result<(), Errno> {
        if !(mode & !FallocateFlags::KEEP_SIZE).is_empty() {
            return Err(Errno::EOPNOTSUPP);
        }
        let length = self.tree.content(file).ok_or(Errno::EISDIR)?.length();
        if mode.is_empty() && end > length {
            self.perform(Change::Length { file, bytes: end });
        }
        Ok(())
    }

    fn set_attributes(
        &mut self,
        inode: Inode,
        mode: Option<u32>,
        size: Option<u64>,
    ) -> Result<FileAttr, Errno> {
        let node = self.tree.node_mut(inode).ok_or(Errno::ENOENT)?;
        node.mode = mode.map_or(node.mode, |mode| mode & 0o7777);
        if let Some(bytes) = size {
            self.perform(Change::Length { file: inode, bytes });
        }
        self.attributes(inode)
    }
}

struct Logged(Arc<Mutex<State>>);

impl Logged {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, Errno>) -> Result<T, Errno> {
        change(&mut locked(&self.0))
    }
}

fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn answer_entry(found: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match found {
        Ok(attributes) => reply.entry(&NO_CACHE, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn answer_attributes(found: Result<FileAttr, Errno>, reply: ReplyAttr) {
    match found {
        Ok(attributes) => reply.attr(&NO_CACHE, &attributes),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Logged {
    fn init(&mut self, _: &Request, _: &mut KernelConfig) -> std::io::Result<()> {
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.change(|state| state.find(parent.0, name).and_then(|inode| state.attributes(inode)));
        answer_entry(found, reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer_attributes(self.change(|state| state.attributes(ino.0)), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        answer_attributes(self.change(|state| state.set_attributes(ino.0, mode, size)), reply);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let node = Node { mode: mode & 0o7777, kind: Kind::Directory(BTreeMap::new()) };
        answer_entry(self.change(|state| state.make(parent.0, name, node)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.change(|state| state.remove(parent.0, name)), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.change(|state| state.remove(parent.0, name)), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let from = Named { directory: parent.0, name };
        let to = Named { directory: newparent.0, name: newname };
        answer(self.change(|state| state.rename(from, to, flags)), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let linked = self.change(|state| {
            if state.find(newparent.0, newname).is_ok() {
                return Err(Errno::EEXIST);
            }
            state.set_names(newparent.0, vec![(newparent.0, newname.to_os_string(), Some(ino.0))]);
            state.attributes(ino.0)
        });
        answer_entry(linked, reply);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let node = Node { mode: mode & 0o7777, kind: Kind::File(Content::default()) };
        match self.change(|state| state.make(parent.0, name, node)) {
            Ok(made) => {
                reply.created(&NO_CACHE, &made, Generation(0), FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = |state: &mut State| {
            let content = state.tree.content(ino.0).ok_or(Errno::EISDIR)?;
            Ok(content.read(offset, u64::from(size)))
        };
        match self.change(read) {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.change(|state| state.write(ino.0, offset, data, flags)) {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        locked(&self.0).log.push(Entry::Sync(ino.0));
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        locked(&self.0).log.push(Entry::Sync(ino.0));
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let state = locked(&self.0);
        let Some(names) = state.tree.names(ino.0) else { return reply.error(Errno::ENOTDIR) };
        let own = [(OsStr::new("."), ino.0), (OsStr::new(".."), ino.0)];
        let names = own.into_iter().chain(names.iter().map(|(name, inode)| (name.as_os_str(), *inode)));
        for (number, (name, inode)) in names.enumerate().skip(offset as usize) {
            let is_directory = state.tree.names(inode).is_some();
            let kind = if is_directory { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(inode), number as u64 + 1, kind, name) {
                break;
            }
        }
        drop(state);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let (blocks, files) = (1 << 20, 1 << 20);
        reply.statfs(blocks, blocks, blocks, files, files, 4096, 255, 4096);
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        answer(self.change(|state| state.allocate(ino.0, offset + length, mode)), reply);
    }
}
