//! Makes the images that a loss of power may leave, from a log of operations.
//!
//! - A file has what its last sync covered, and any subset of the sectors written and lengths set
//!   since.
//! - A directory has what its last sync covered, and any prefix of the names made, moved and
//!   removed since. A rename between two directories belongs to its target.
//! - A write with O_DSYNC is durable when it returns, and makes nothing else durable.
//!
//! The model is stricter than a journalling file system, where the sync of a new file makes its
//! name durable, too. It assumes that a sector is written whole or not at all, and that synced data
//! stay.

use super::tree::{Inode, Node, Tree};
use plumb_io::sim::power::{SECTOR, Survivors};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// An operation that changes the file system.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write {
        file: Inode,
        offset: u64,
        bytes: Vec<u8>,
    },
    Length {
        file: Inode,
        bytes: u64,
    },
    /// Names, each with its directory and its new target. They change together or not at all.
    Names {
        directory: Inode,
        changed: Vec<(Inode, OsString, Option<Inode>)>,
    },
}

impl Change {
    /// Returns the file or directory whose sync makes the change durable.
    fn owner(&self) -> Inode {
        match self {
            Change::Write { file, .. } | Change::Length { file, .. } => *file,
            Change::Names { directory, .. } => *directory,
        }
    }

    /// Returns the file's sector in which a write begins.
    fn first_sector(&self) -> usize {
        match self {
            Change::Write { offset, .. } => (offset / SECTOR as u64) as usize,
            Change::Length { .. } | Change::Names { .. } => 0,
        }
    }

    /// Applies the change. Of a write, only sectors accepted by `keeps` are written; sector
    /// 0 is the write's first.
    pub(super) fn apply(&self, tree: &mut Tree, keeps: impl Fn(usize) -> bool) {
        match self {
            Change::Write { file, offset, bytes } => {
                let Some(content) = tree.content_mut(*file) else { return };
                let into = (*offset % SECTOR as u64) as usize;
                let mut from = 0;
                for sector in 0.. {
                    let to = ((sector + 1) * SECTOR - into).min(bytes.len());
                    if keeps(sector) {
                        content.write(offset + from as u64, &bytes[from..to]);
                    }
                    from = to;
                    if to == bytes.len() {
                        return;
                    }
                }
            }
            Change::Length { file, bytes } if keeps(0) => {
                if let Some(content) = tree.content_mut(*file) {
                    content.set_length(*bytes);
                }
            }
            Change::Names { changed, .. } if keeps(0) => {
                changed.iter().for_each(|(directory, name, inode)| tree.set_name(*directory, name, *inode));
            }
            Change::Length { .. } | Change::Names { .. } => {}
        }
    }
}

/// An entry of the log.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// A file or directory was made. Its name is a change of its own.
    Node(Inode, Node),
    Change(Change),
    /// A write with O_DSYNC: durable when it returns.
    DurableWrite(Change),
    /// A sync of a file or directory returned.
    Sync(Inode),
    /// A process has reported a commit.
    Acknowledged(String),
}

/// True or false acknowledgements of syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syncs {
    /// Everything written before is durable.
    Hold,
    /// Syncs are acknowledged, but nothing is durable.
    Lie,
}

/// A change on its way to the medium.
#[derive(Debug, Clone)]
struct Pending {
    change: Change,
    /// The write was durable when it returned. It waits for older changes of its file.
    is_durable: bool,
}

/// The durable state of a file system, and the changes on their way to it.
#[derive(Debug, Clone)]
pub(super) struct Medium {
    durable: Tree,
    pending: Vec<Pending>,
    /// Sectors of a file that are written together or not at all.
    whole: usize,
}

impl Medium {
    /// Starts with all of `tree` durable. A write is torn between pieces of `whole` sectors.
    pub(super) fn new(tree: Tree, whole: usize) -> Medium {
        Medium { durable: tree, pending: Vec::new(), whole }
    }

    /// Applies an entry of the log.
    pub(super) fn advance(&mut self, entry: &Entry, syncs: Syncs) {
        match entry {
            Entry::Node(inode, node) => self.durable.put(*inode, node.clone()),
            Entry::Change(change) => self.push(change, false),
            Entry::DurableWrite(change) => {
                let waits = self.pending.iter().any(|it| it.change.owner() == change.owner());
                if syncs == Syncs::Lie || waits {
                    self.push(change, syncs == Syncs::Hold);
                } else {
                    change.apply(&mut self.durable, |_| true);
                }
            }
            Entry::Sync(inode) if syncs == Syncs::Hold => {
                let (durable, pending) =
                    std::mem::take(&mut self.pending).into_iter().partition(|it| it.change.owner() == *inode);
                self.pending = pending;
                let durable: Vec<Pending> = durable;
                durable.iter().for_each(|it| it.change.apply(&mut self.durable, |_| true));
            }
            Entry::Sync(_) | Entry::Acknowledged(_) => {}
        }
    }

    fn push(&mut self, change: &Change, is_durable: bool) {
        self.pending.push(Pending { change: change.clone(), is_durable });
    }

    /// Returns the number of changes that are not durable.
    pub(super) fn unsynced(&self) -> usize {
        self.pending.len()
    }

    /// Returns the file system after a loss of power now.
    pub(super) fn image(&self, survivors: Survivors) -> Tree {
        let mut image = self.durable.clone();
        let mut ended = BTreeSet::new();
        for (number, Pending { change, is_durable }) in self.pending.iter().enumerate() {
            let first = change.first_sector();
            let piece = |sector: usize| (first + sector) / self.whole - first / self.whole;
            let keeps = |sector| *is_durable || survivors.keeps(number, piece(sector));
            if let Change::Names { directory, .. } = change {
                if !keeps(0) {
                    ended.insert(*directory);
                }
                if ended.contains(directory) {
                    continue;
                }
            }
            change.apply(&mut image, keeps);
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::ROOT;
    use super::*;

    fn write(file: Inode, offset: u64, byte: u8, bytes: usize) -> Change {
        Change::Write { file, offset, bytes: vec![byte; bytes] }
    }

    fn name(name: &str, inode: Option<Inode>) -> Entry {
        Entry::Change(Change::Names { directory: ROOT, changed: vec![(ROOT, name.into(), inode)] })
    }

    fn medium(entries: &[Entry], syncs: Syncs) -> (Medium, Inode) {
        let mut tree = Tree::new();
        let file = tree.add_file("f", 0);
        let mut medium = Medium::new(tree, 1);
        entries.iter().for_each(|entry| medium.advance(entry, syncs));
        (medium, file)
    }

    fn read(tree: &Tree, file: Inode) -> Vec<u8> {
        tree.content(file).unwrap().read(0, 1 << 20)
    }

    #[test]
    fn what_was_synced_survives_unless_the_sync_lies() {
        let entries =
            [Entry::Change(write(2, 0, 1, 600)), Entry::Sync(2), Entry::Change(write(2, 0, 2, 600))];
        let (holds, file) = medium(&entries, Syncs::Hold);
        assert_eq!(read(&holds.image(Survivors::None), file), vec![1; 600]);
        assert_eq!(read(&holds.image(Survivors::All), file), vec![2; 600]);
        let (lies, file) = medium(&entries, Syncs::Lie);
        assert!(read(&lies.image(Survivors::None), file).is_empty());
    }

    #[test]
    fn a_write_is_torn_where_sectors_of_the_file_meet() {
        let (medium, file) = medium(&[Entry::Change(write(2, 500, 7, 600))], Syncs::Hold);
        // Sectors 0 and 2 of the write: bytes 500 to 511 and 1024 to 1099.
        let mut expected = vec![0; 1100];
        expected[500..512].fill(7);
        expected[1024..].fill(7);
        assert_eq!(read(&medium.image(Survivors::AllTorn(0)), file), expected);
    }

    #[test]
    fn a_device_writes_a_block_of_4096_bytes_whole() {
        let mut tree = Tree::new();
        let file = tree.add_file("f", 0);
        let mut medium = Medium::new(tree, 8);
        medium.advance(&Entry::Change(write(2, 3584, 7, 8192)), Syncs::Hold);
        // Pieces 0 and 2 of three: bytes 3584 to 4095 and 8192 to 11775.
        let mut expected = vec![0; 11776];
        expected[3584..4096].fill(7);
        expected[8192..].fill(7);
        assert_eq!(read(&medium.image(Survivors::AllTorn(0)), file), expected);
    }

    #[test]
    fn a_durable_write_stays_above_an_older_one_and_syncs_nothing_else() {
        let entries = [Entry::Change(write(2, 0, 1, 1024)), Entry::DurableWrite(write(2, 0, 2, 512))];
        let (medium, file) = medium(&entries, Syncs::Hold);
        assert_eq!(read(&medium.image(Survivors::None), file), vec![2; 512]);
        assert_eq!(read(&medium.image(Survivors::All), file), [[2; 512], [1; 512]].concat());
    }

    #[test]
    fn names_survive_in_their_order_until_their_directory_is_synced() {
        let names = [name("a", Some(2)), name("b", Some(2)), name("a", None)];
        let (medium, _) = medium(&names, Syncs::Hold);
        let found = |survivors| {
            let image = medium.image(survivors);
            image
                .names(ROOT)
                .unwrap()
                .keys()
                .map(|name| name.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(Survivors::None), ["f"]);
        assert_eq!(found(Survivors::AllBut(1)), ["a", "f"]);
        assert_eq!(found(Survivors::Only(2)), ["f"]);
        assert_eq!(found(Survivors::All), ["b", "f"]);
    }
}
