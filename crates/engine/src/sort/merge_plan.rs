//! Decides how many runs to merge at once, and the size of reads.
//!
//! The memory of a merge holds a number of blocks. Reading k blocks at a time from each run makes a
//! request cheaper per block, and the fan-in smaller. The read cost ratio `fac` (Oracle's
//! SORT_READ_FAC) is the cost of a one-block read over the cost of each further block of a request.
//! So a request of k blocks costs fac - 1 + k, and a block costs (fac - 1 + k) / k each time it is
//! read. The plan takes the k with the least total:
//!
//! ```text
//! cost(k) = passes(fan_in(k)) * (fac - 1 + k) / k  +  (passes(fan_in(k)) - 1) * extra_pass
//! ```
//!
//! `extra_pass` is the cost of every pass but the last, besides reading: it writes the block
//! (counted as one transfer) and merges its rows (CPU time over transfer time). The merge reads
//! ahead, so fac is measured with that many reads in flight, not one at a time. On a device that
//! serves several at once it is a few, on a disk that seeks it stays in the tens.
//!
//! A quarter of the buffers, at least one, is for reading ahead. The last key of each run tells
//! which buffer will be used up first (forecasting; Knuth, The Art of Computer Programming 3,
//! section 5.4.6), so not every run needs a second buffer.
//!
//! Intermediate merges: the first one takes just enough runs that all others, and the last merge,
//! are full. Shortest runs first would matter if runs differed in length; they do not, so the queue
//! is first in, first out.
//!
//! Invariants:
//! - F1 The buffers of a shape fit the memory it was planned for.
//! - F2 A merge takes at least two runs and leaves a buffer to read ahead. So every merge reduces
//!   the number of runs and none starves.

/// Costs in units of the transfer time of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeCost {
    /// Read cost ratio: a one-block read over each further block of a request.
    pub read_fac: f64,
    /// Cost of an intermediate pass for a block besides reading it.
    pub extra_pass: f64,
}

/// The fan-in and the buffers of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeShape {
    /// Most runs merged at once.
    pub fan_in: usize,
    /// Number of blocks of a read request.
    pub chunk_blocks: u32,
    /// Buffers of `chunk_blocks` blocks, for runs and for reading ahead.
    pub buffer_count: usize,
}

impl MergeShape {
    /// Returns the shape unchanged; its buffers must fit `memory_blocks`.
    ///
    /// # Panics
    /// If they do not fit.
    #[must_use]
    pub(crate) fn within(self, memory_blocks: u32) -> MergeShape {
        let blocks = self.buffer_count as u64 * u64::from(self.chunk_blocks);
        assert!(blocks <= u64::from(memory_blocks), "F1: buffers of {blocks} blocks in {memory_blocks}");
        self
    }
}

/// Buffers of the smallest merge: two runs, and one buffer to read ahead.
pub const BUFFERS_MIN: usize = 3;

/// Several requests of this size in flight come within a few per cent of the largest rate on
/// every device measured so far.
pub const FULL_RATE_BYTES: u32 = 128 * 1024;

fn shape(memory_blocks: u32, chunk_blocks: u32) -> Option<MergeShape> {
    let buffer_count = (memory_blocks / chunk_blocks) as usize;
    if buffer_count < BUFFERS_MIN {
        return None;
    }
    let fan_in = buffer_count - (buffer_count / 4).max(1);
    assert!(fan_in >= 2, "F2: {fan_in} of {buffer_count} buffers are for runs");
    assert!(fan_in < buffer_count, "F2: a buffer reads ahead");
    Some(MergeShape { fan_in, chunk_blocks, buffer_count })
}

/// Returns how often each row is read until `run_count` runs are one.
pub fn passes(run_count: usize, fan_in: usize) -> u32 {
    assert!(fan_in >= 2, "F2: a merge of {fan_in} makes runs no fewer");
    let mut passes = 1;
    let mut reach = fan_in;
    while reach < run_count {
        reach = reach.saturating_mul(fan_in);
        passes += 1;
    }
    passes
}

/// Returns the cheapest shape for merging `run_count` runs in `memory_blocks` blocks of memory,
/// with requests of at most `chunk_blocks_max` blocks.
///
/// # Panics
/// If the memory is less than [`BUFFERS_MIN`] blocks.
pub fn plan(run_count: usize, memory_blocks: u32, chunk_blocks_max: u32, costs: MergeCost) -> MergeShape {
    let cost = |shape: &MergeShape| {
        let chunk = f64::from(shape.chunk_blocks);
        let passes = f64::from(passes(run_count, shape.fan_in));
        passes * (costs.read_fac - 1.0 + chunk) / chunk + (passes - 1.0) * costs.extra_pass
    };
    let chunks =
        (1..=chunk_blocks_max).filter(|blocks| blocks.is_power_of_two() || *blocks == chunk_blocks_max);
    let shapes = chunks.filter_map(|blocks| shape(memory_blocks, blocks));
    // Of equal costs the largest request is taken.
    let cheapest = shapes.rev().min_by(|one, two| cost(one).total_cmp(&cost(two)));
    cheapest.expect("F2: the memory of a sort holds the smallest merge")
}

/// Returns the reads that a merge of single blocks has in flight, in `memory_blocks` of memory.
pub fn read_ahead(memory_blocks: u32) -> usize {
    (memory_blocks as usize / 4).max(1)
}

/// Returns the shape with the largest requests that merges all runs at once, if these requests come
/// near the device's full rate. Then its read cost does not matter.
pub fn fits_one_pass(
    run_count: usize,
    memory_blocks: u32,
    block_bytes: usize,
    chunk_blocks_max: u32,
) -> Option<MergeShape> {
    let full_rate = (FULL_RATE_BYTES / block_bytes as u32).clamp(1, chunk_blocks_max);
    let mut chunk_blocks = chunk_blocks_max;
    while chunk_blocks >= full_rate {
        if let Some(shape) = shape(memory_blocks, chunk_blocks).filter(|shape| run_count <= shape.fan_in) {
            return Some(shape);
        }
        chunk_blocks /= 2;
    }
    None
}

/// Returns the number of runs that the next intermediate merge takes; 0 if none is needed.
pub fn next_merge(run_count: usize, fan_in: usize) -> usize {
    assert!(fan_in >= 2, "F2: a merge of {fan_in} makes runs no fewer");
    if run_count <= fan_in {
        return 0;
    }
    // Each full merge removes `fan_in - 1` runs; the first removes the rest of that division.
    match (run_count - fan_in) % (fan_in - 1) {
        0 => fan_in,
        over => over + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cheap_starts_favour_wide_merges_and_dear_ones_large_reads() {
        // One pass over 40 runs in 64 blocks of memory needs one-block reads.
        let plan = |read_fac, extra_pass| plan(40, 64, 64, MergeCost { read_fac, extra_pass });
        assert_eq!(plan(1.0, 1.0).chunk_blocks, 1);
        // If a seek costs 42 blocks, two passes with larger reads are cheaper.
        let dear = plan(42.0, 1.0);
        assert!(dear.chunk_blocks >= 4, "{dear:?}");
        assert!(dear.fan_in < 40);
        // A ratio of 2 does not pay for a second pass, which also writes.
        assert_eq!(plan(2.0, 1.0).chunk_blocks, 1);
        // A ratio of 5 pays, unless merging again costs four transfers.
        assert!(plan(5.0, 1.0).chunk_blocks > 1);
        assert_eq!(plan(5.0, 4.0).chunk_blocks, 1);
    }

    #[test]
    fn few_runs_get_the_largest_requests() {
        let shape = fits_one_pass(3, 4096, 8192, 64).expect("one pass");
        assert_eq!((shape.chunk_blocks, shape.buffer_count), (64, 64));
        // 60 runs need smaller requests; 500 runs need some below the full rate.
        assert_eq!(fits_one_pass(60, 4096, 8192, 64).map(|shape| shape.chunk_blocks), Some(32));
        assert_eq!(fits_one_pass(500, 4096, 8192, 64), None);
        assert_eq!(plan(3, 4096, 64, MergeCost { read_fac: 5.0, extra_pass: 1.0 }), shape);
    }

    #[test]
    #[should_panic(expected = "F1: buffers of 12 blocks in 11")]
    fn a_shape_does_not_grow_beyond_its_memory() {
        let _ = MergeShape { fan_in: 2, chunk_blocks: 4, buffer_count: 3 }.within(11);
    }

    #[test]
    #[should_panic(expected = "F2: a merge of 1 makes runs no fewer")]
    fn a_merge_of_one_run_is_no_step() {
        let _ = passes(3, 1);
    }

    #[test]
    #[should_panic(expected = "F2: the memory of a sort holds the smallest merge")]
    fn two_blocks_of_memory_are_too_few() {
        let _ = plan(3, 2, 1, MergeCost { read_fac: 5.0, extra_pass: 1.0 });
    }

    proptest! {
        #[test]
        fn intermediate_merges_end_with_a_full_last_merge(runs in 2usize..5000, fan_in in 2usize..100) {
            let mut left = runs;
            let mut first = true;
            loop {
                let take = next_merge(left, fan_in);
                if take == 0 {
                    break;
                }
                prop_assert!((2..=fan_in).contains(&take));
                prop_assert!(first || take == fan_in);
                first = false;
                left = left - take + 1;
            }
            prop_assert!(left <= fan_in);
            prop_assert!(left == runs || left == fan_in);
        }

        #[test]
        fn a_plan_never_takes_more_memory_than_there_is(
            runs in 1usize..5000, memory in 3u32..10_000, chunk in 1u32..128, fac in 1.0f64..500.0,
        ) {
            let shape = plan(runs, memory, chunk, MergeCost { read_fac: fac, extra_pass: 1.0 });
            prop_assert!(shape.buffer_count as u64 * u64::from(shape.chunk_blocks) <= u64::from(memory));
            prop_assert!(shape.fan_in >= 2 && shape.fan_in < shape.buffer_count);
        }
    }
}
