//! The walk over an index's branches: every leaf, in order, after its separator.

use super::damage::{Damage, Place};
use super::hash::entry_hash;
use super::leaves::LeafFacts;
use super::segment::{Inspector, Segment};
use super::{Checked, entry_text};
use crate::EngineError;
use crate::cache::CacheReader;
use crate::index::block::{BranchView, Entry, LayoutError, LeafView};
use crate::index::btree::{BlockGetter, content_of, foreign_address};
use crate::storage::block::{BlockKind, Content};
use crate::storage::control::Index;
use crate::storage::tablespace::{Purpose, Tablespace};
use plumb_events::{IoStream, Session};
use plumb_units::BlockAddress;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Checks every branch on its own, in disk order, to count the damaged ones if
/// the tree cannot be walked.
pub(super) fn look_at_branches(
    checked: &Checked<'_>,
    session: &Session,
    damage: &Damage,
) -> Result<(), EngineError> {
    let index = checked.index;
    let segment = Segment {
        purpose: Purpose::Indx,
        expected: index.expected(BlockKind::Branch),
        stream: IoStream::IndexReads,
        extents: &index.branches,
    };
    let tablespace = checked.instance.tablespace(Purpose::Indx);
    segment.inspect(checked.instance, session, damage, || BranchInspector(tablespace)).map(|_| ())
}

struct BranchInspector<'a>(&'a Tablespace);

impl Inspector for BranchInspector<'_> {
    fn block(
        &mut self,
        _: Place,
        (address, content): (BlockAddress, Content),
        block: &[u8],
    ) -> Result<(), EngineError> {
        let entries = BranchView::new(block, content).map(|view| view.entries());
        let sound = entries.and_then(|mut entries| entries.try_for_each(|entry| entry.map(|_| ())));
        sound.map_err(|error| error.at(self.0.path(address), address))
    }
}

/// Walks the tree from its root. Returns the number of branch blocks.
pub(super) fn walk(checked: &Checked<'_>, session: &Session, leaves: &LeafFacts) -> Result<u64, EngineError> {
    let index = checked.index;
    let instance = checked.instance;
    super::segment::check_extents(&format!("index {}", index.name), &index.branches)?;
    let branch_limit = index.branches.iter().map(|extent| u64::from(extent.used)).sum();
    let blocks = RefCell::new(CacheReader::verifying(session, instance.caches()));
    let addresses =
        index.leaves.iter().flat_map(|extent| (0..extent.used).map(|at| extent.extent.address(at)));
    let mut walk = Walk {
        index,
        tablespace: instance.tablespace(Purpose::Indx),
        blocks: &blocks,
        leaves: addresses,
        firsts: leaves.firsts.iter(),
        branch_count: 0,
        branch_limit,
    };
    if let Some(root) = index.root {
        let root = BlockAddress::from(root);
        if !walk.tablespace.has_file(root.file) {
            let LayoutError { found, expected, .. } = foreign_address("root", root);
            return Err(walk.wrong("root".to_string(), found, expected));
        }
        walk.descend(root, index.height, None)?;
    }
    if let Some(leaf) = walk.leaves.next() {
        let found = "an end of the tree".to_string();
        return Err(walk.wrong("leaves in order from the root".to_string(), found, format!("leaf {leaf}")));
    }
    if walk.branch_count != branch_limit {
        let found = walk.branch_count.to_string();
        return Err(walk.wrong(
            "branches reached from the root".to_string(),
            found,
            branch_limit.to_string(),
        ));
    }
    Ok(branch_limit)
}

struct Walk<'a, G, L> {
    index: &'a Index,
    tablespace: &'a Tablespace,
    blocks: &'a G,
    /// Leaves not reached yet, with the hash of their first entry.
    leaves: L,
    firsts: std::slice::Iter<'a, AtomicU64>,
    branch_count: u64,
    /// Ends a walk in a cycle.
    branch_limit: u64,
}

impl<G: BlockGetter, L: Iterator<Item = BlockAddress>> Walk<'_, G, L> {
    /// Checks the blocks below a block; `first` is the parent's entry for it.
    fn descend(
        &mut self,
        address: BlockAddress,
        level: u32,
        first: Option<Entry<'_>>,
    ) -> Result<(), EngineError> {
        if level <= 1 {
            return self.leaf(address, first);
        }
        self.branch_count += 1;
        if self.branch_count > self.branch_limit {
            let expected = format!("no more than {} branches", self.branch_limit);
            return Err(self.wrong(
                "branches reached from the root".to_string(),
                format!("{address} as one more"),
                expected,
            ));
        }
        let block = self.blocks.get(address, self.index.expected(BlockKind::Branch))?;
        let corrupt =
            |error: LayoutError, tablespace: &Tablespace| error.at(tablespace.path(address), address);
        let view =
            BranchView::new(&block, content_of(&block)).map_err(|error| corrupt(error, self.tablespace))?;
        for (number, separator) in view.entries().enumerate() {
            let separator = separator.map_err(|error| corrupt(error, self.tablespace))?;
            if number == 0
                && let Some(first) = first
                && first != separator.first
            {
                return Err(self.wrong_separator(address, first, separator.first));
            }
            if !self.tablespace.has_file(separator.child.file) {
                return Err(corrupt(foreign_address("child", separator.child), self.tablespace));
            }
            self.descend(separator.child, level - 1, Some(separator.first))?;
        }
        Ok(())
    }

    fn leaf(&mut self, address: BlockAddress, first: Option<Entry<'_>>) -> Result<(), EngineError> {
        let expected = self.leaves.next();
        if expected != Some(address) {
            let expected = expected.map_or("an end of the tree".to_string(), |leaf| format!("leaf {leaf}"));
            return Err(self.wrong(
                "leaves in order from the root".to_string(),
                format!("leaf {address}"),
                expected,
            ));
        }
        let hash = self.firsts.next().map(|hash| hash.load(Relaxed));
        match first {
            Some(first) if hash != Some(entry_hash(first.key, first.row)) => {
                let block = self.blocks.get(address, self.index.expected(BlockKind::Leaf))?;
                let view = LeafView::new(&block, content_of(&block)).and_then(|view| view.entry(0));
                let in_leaf = view.map_err(|error| error.at(self.tablespace.path(address), address))?;
                Err(self.wrong_separator(address, first, in_leaf))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn wrong_separator(&self, child: BlockAddress, separator: Entry<'_>, first: Entry<'_>) -> EngineError {
        let expected = format!("the first entry there, {}", entry_text(first));
        self.wrong(format!("separator of {child}"), entry_text(separator), expected)
    }

    #[cold]
    fn wrong(&self, what: String, found: String, expected: String) -> EngineError {
        EngineError::Verification { what: format!("index {}: {what}", self.index.name), found, expected }
    }
}
