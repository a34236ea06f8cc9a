//! The canary: work that no treatment touches, done before each run.
//!
//! A machine that gets slower shows it here as well as in the run: fewer processor cycles (other guests, frequency, heat) in a fixed
//! loop, a slower device (spent credits, other guests) in fixed reads. The analysis takes these times as covariates and
//! says when they move ([`crate::analysis`]).
//!
//! The loop is one chain of multiplications, so that its time is the processor's and not the compiler's or the memory's. The reads are of one
//! block each, direct, one after the other, spread over a data file: what a random read costs now. A data file that cannot be
//! read past the page cache gives no figure, because a read from memory says nothing of the device.
//!
//! Cost: 5 ms of processor and 64 reads a run, outside of what is timed.

use plumb_events::clock;
use plumb_io::{Arena, DirectIo, Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Multiplications, each of which waits for the one before: 3 to 5 cycles each.
const ROUNDS: u64 = 3_000_000;
const READS: u64 = 64;
const READ_BYTES: usize = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    pub cpu_ns: u64,
    /// The fixed reads, nanoseconds; none without a file that can be read directly.
    pub read_ns: Option<u64>,
}

impl Canary {
    /// Does the work now; reads are of this file.
    #[must_use]
    pub fn sing(file: Option<&Path>) -> Canary {
        let begin = clock::now();
        let sum =
            (0..ROUNDS).fold(1u64, |sum, round| sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(round));
        black_box(sum);
        Canary { cpu_ns: clock::now().saturating_sub(begin).0, read_ns: file.and_then(read) }
    }
}

/// Nanoseconds of the reads, if they could be made past the page cache.
fn read(path: &Path) -> Option<u64> {
    let file = Disk::Kernel.open(path, OpenMode::Read, DirectIo::Required).ok()?;
    let blocks = file.length().ok()? / READ_BYTES as u64;
    let (_, mut buffers) = Arena::buffers(READ_BYTES, 1).ok()?;
    let buffer = buffers.first_mut().filter(|_| blocks >= READS)?;
    let file = File::from(file.descriptor()?.try_clone_to_owned().ok()?);
    let begin = clock::now();
    for number in 0..READS {
        let offset = blocks / READS * number * READ_BYTES as u64;
        file.read_exact_at(buffer, offset).ok()?;
    }
    Some(clock::now().saturating_sub(begin).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_small_or_missing_gives_no_figure_and_the_loop_always_does() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("users01.dbf");
        std::fs::write(&file, vec![7; (READS as usize - 1) * READ_BYTES]).expect("a file");
        for missing in [Some(file.as_path()), Some(Path::new("/nowhere")), None] {
            let canary = Canary::sing(missing);
            assert!(canary.cpu_ns > 0);
            assert_eq!(canary.read_ns, None);
        }
    }
}
