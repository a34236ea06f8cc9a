//! The files and directories of a file system in memory.
//!
//! A clone shares unchanged bytes, so an image of a file system takes memory only for differences.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

/// Number of a file or directory.
pub(super) type Inode = u64;

pub(super) const ROOT: Inode = 1;

/// Unit of sharing and copying.
const CHUNK: u64 = 64 << 10;

/// The bytes of a file. Chunks that were never written are zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    length: u64,
    chunks: BTreeMap<u64, Arc<Vec<u8>>>,
}

impl Content {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes from `offset` on, at most `bytes` of them.
    pub(super) fn read(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let end = self.length.min(offset.saturating_add(bytes));
        let mut read = vec![0; end.saturating_sub(offset) as usize];
        for (chunk, at, part) in pieces(offset, read.len()) {
            if let Some(chunk) = self.chunks.get(&chunk) {
                let length = part.len();
                read[part].copy_from_slice(&chunk[at..at + length]);
            }
        }
        read
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (chunk, at, part) in pieces(offset, bytes.len()) {
            // Zeros are not stored, because mkfs writes whole journals of them.
            if !self.chunks.contains_key(&chunk) && bytes[part.clone()].iter().all(|byte| *byte == 0) {
                continue;
            }
            let chunk = self.chunks.entry(chunk).or_insert_with(|| Arc::new(vec![0; CHUNK as usize]));
            Arc::make_mut(chunk)[at..at + part.len()].copy_from_slice(&bytes[part]);
        }
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            self.chunks.split_off(&length.div_ceil(CHUNK));
            if let Some(last) = self.chunks.get_mut(&(length / CHUNK)) {
                Arc::make_mut(last)[(length % CHUNK) as usize..].fill(0);
            }
        }
        self.length = length;
    }
}

/// Returns the chunks of a range of a file: number, offset in the chunk, part of the range.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let length = (bytes - done).min((CHUNK - at % CHUNK) as usize);
        let piece = (at / CHUNK, (at % CHUNK) as usize, done..done + length);
        done += length;
        (length > 0).then_some(piece)
    })
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    File(Content),
    Directory(BTreeMap<OsString, Inode>),
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub mode: u32,
    pub kind: Kind,
}

/// A file system. Files that lost their last name stay, because they may be open.
#[derive(Debug, Clone)]
pub(super) struct Tree(BTreeMap<Inode, Node>);

impl Tree {
    pub(super) fn new() -> Tree {
        Tree(BTreeMap::from([(ROOT, Node { mode: 0o755, kind: Kind::Directory(BTreeMap::new()) })]))
    }

    /// Adds a file of zeros to the root directory.
    pub(super) fn add_file(&mut self, name: &str, length: u64) -> Inode {
        let content = Content { length, ..Content::default() };
        let inode = self.add(Node { mode: 0o600, kind: Kind::File(content) });
        self.set_name(ROOT, &OsString::from(name), Some(inode));
        inode
    }

    /// Adds a node without a name.
    pub(super) fn add(&mut self, node: Node) -> Inode {
        let inode = self.0.last_key_value().map_or(ROOT, |(last, _)| last + 1);
        self.0.insert(inode, node);
        inode
    }

    /// Adds a node under the number that another file system gave it.
    pub(super) fn put(&mut self, inode: Inode, node: Node) {
        self.0.insert(inode, node);
    }

    pub(super) fn node(&self, inode: Inode) -> Option<&Node> {
        self.0.get(&inode)
    }

    pub(super) fn node_mut(&mut self, inode: Inode) -> Option<&mut Node> {
        self.0.get_mut(&inode)
    }

    pub(super) fn names(&self, directory: Inode) -> Option<&BTreeMap<OsString, Inode>> {
        match &self.node(directory)?.kind {
            Kind::Directory(names) => Some(names),
            Kind::File(_) => None,
        }
    }

    pub(super) fn content(&self, file: Inode) -> Option<&Content> {
        match &self.node(file)?.kind {
            Kind::File(content) => Some(content),
            Kind::Directory(_) => None,
        }
    }

    pub(super) fn content_mut(&mut self, file: Inode) -> Option<&mut Content> {
        match &mut self.node_mut(file)?.kind {
            Kind::File(content) => Some(content),
            Kind::Directory(_) => None,
        }
    }

    /// Points a name at a node, or removes it.
    pub(super) fn set_name(&mut self, directory: Inode, name: &OsString, inode: Option<Inode>) {
        let Some(Node { kind: Kind::Directory(names), .. }) = self.node_mut(directory) else { return };
        match inode {
            Some(inode) => names.insert(name.clone(), inode),
            None => names.remove(name),
        };
    }

    /// Returns the number of names of a file.
    pub(super) fn links(&self, inode: Inode) -> u32 {
        let named = |node: &Node| match &node.kind {
            Kind::Directory(names) => names.values().filter(|it| **it == inode).count() as u32,
            Kind::File(_) => 0,
        };
        self.0.values().map(named).sum()
    }
}
