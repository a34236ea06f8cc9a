//! Requests to a file by size, and waits for its blocks.

use super::Transfers;
use plumb_io::{File, SIZE_CLASSES, class_bytes};
use plumb_record::{BufferWaits, IoSize, IoTally};

/// Requests to a file by direction and size, with the waits for its blocks in the cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileMoves {
    /// Reads by size class of `io`.
    pub reads: [Transfers; SIZE_CLASSES],
    pub writes: [Transfers; SIZE_CLASSES],
    /// Waits for blocks that another session held.
    pub waits: BufferWaits,
}

impl FileMoves {
    /// Returns the counters of a file so far.
    pub fn of(file: &File, waits: BufferWaits) -> FileMoves {
        FileMoves { reads: file.counters().reads(), writes: file.counters().writes(), waits }
    }

    /// Returns the growth since an earlier reading.
    pub fn since(&self, earlier: &FileMoves) -> FileMoves {
        let grown = |later: &[Transfers; SIZE_CLASSES], earlier: &[Transfers; SIZE_CLASSES]| {
            std::array::from_fn(|class| {
                let (later, earlier) = (later[class], earlier[class]);
                (later.0 - earlier.0, later.1 - earlier.1, later.2 - earlier.2)
            })
        };
        FileMoves {
            reads: grown(&self.reads, &earlier.reads),
            writes: grown(&self.writes, &earlier.writes),
            waits: BufferWaits {
                waits: self.waits.waits - earlier.waits.waits,
                time_ns: self.waits.time_ns.saturating_sub(earlier.waits.time_ns),
            },
        }
    }

    /// Adds the growth of the next period.
    pub fn add(&mut self, next: &FileMoves) {
        let add = |sums: &mut [Transfers; SIZE_CLASSES], more: &[Transfers; SIZE_CLASSES]| {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = plus(*sum, *more));
        };
        add(&mut self.reads, &next.reads);
        add(&mut self.writes, &next.writes);
        self.waits.waits += next.waits.waits;
        self.waits.time_ns += next.waits.time_ns;
    }

    /// Returns the sums over all sizes, reads and writes.
    pub fn totals(&self) -> [Transfers; 2] {
        [&self.reads, &self.writes].map(|sizes| sizes.iter().copied().fold((0, 0, 0), plus))
    }

    /// Returns the requests by size, without sizes that no request had.
    pub fn sizes(&self) -> Vec<IoSize> {
        let size = |class: usize| {
            let [reads, writes] = [self.reads[class], self.writes[class]].map(tally);
            let moved = reads.requests + writes.requests > 0;
            moved.then_some(IoSize { up_to_bytes: class_bytes(class), reads, writes })
        };
        (0..SIZE_CLASSES).filter_map(size).collect()
    }
}

fn plus(one: Transfers, other: Transfers) -> Transfers {
    (one.0 + other.0, one.1 + other.1, one.2 + other.2)
}

fn tally((requests, bytes, time_ns): Transfers) -> IoTally {
    IoTally { requests, bytes, time_ns: Some(time_ns) }
}
