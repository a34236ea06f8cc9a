//! Requests to a file by size, and waits for its blocks.

use super::FileRole;
use crate::rows::tally;
use plumb_io::{File, Moves, SIZE_CLASSES, class_bytes};
use plumb_record::{BufferWaits, IoFile, IoSize};
use plumb_units::{BlockSize, counters, path_text};

/// Requests to a file by direction and size, with the waits for its blocks in the cache.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileMoves {
    /// Reads by size class of `io`.
    reads: [Moves; SIZE_CLASSES],
    writes: [Moves; SIZE_CLASSES],
    /// Waits for blocks that another session held.
    waits: BufferWaits,
}

counters!(FileMoves { reads, writes, waits });

impl FileMoves {
    /// Returns the counters of a file so far.
    pub(super) fn of(file: &File, waits: BufferWaits) -> FileMoves {
        FileMoves { reads: file.counters().reads(), writes: file.counters().writes(), waits }
    }

    /// Returns the record's row of these requests. Only files of blocks have waits for blocks.
    pub(super) fn row(&self, role: FileRole, file: &File, block: Option<BlockSize>) -> IoFile {
        let [reads, writes] = [&self.reads, &self.writes].map(|sizes| {
            let mut sum = Moves::default();
            sizes.iter().for_each(|size| sum.add(size));
            tally(sum)
        });
        IoFile {
            tablespace: role.name().to_string(),
            path: path_text(file.path()),
            reads,
            writes,
            block_bytes: block.map(|block| block.bytes() as u64),
            sizes: self.sizes(),
            buffer_waits: block.map(|_| self.waits),
        }
    }

    /// Returns the requests by size, without sizes that no request had.
    fn sizes(&self) -> Vec<IoSize> {
        let size = |class: usize| {
            let [reads, writes] = [self.reads[class], self.writes[class]].map(tally);
            let moved = reads.requests + writes.requests > 0;
            moved.then_some(IoSize { up_to_bytes: class_bytes(class), reads, writes })
        };
        (0..SIZE_CLASSES).filter_map(size).collect()
    }
}
