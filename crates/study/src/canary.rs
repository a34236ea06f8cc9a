//! The canary: fixed work before each run that no treatment affects.
//!
//! A slower machine shows in the canary as well as in the run. A fixed loop shows fewer processor
//! cycles (other guests, frequency, heat). Fixed reads show a slower device (spent credits, other
//! guests). The analysis takes these times as covariates and reports when they change
//! ([`crate::analysis`]).
//!
//! The loop is one chain of multiplications, so that its time depends on the processor, not on
//! compiler or memory. The reads are direct, of one block each, one after the other, spread over a
//! data file: the present cost of a random read. A data file that does not allow direct reads gives
//! no figure, because a read from memory says nothing about the device.
//!
//! Cost: 5 ms of processor and 64 reads a run, outside the timed part.

use plumb_events::clock;
use plumb_io::{Arena, DirectIo, Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Multiplications, each dependent on the one before: 3 to 5 cycles each.
const ROUNDS: u64 = 3_000_000;
const READS: u64 = 64;
const READ_BYTES: usize = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    pub cpu_ns: u64,
    /// Time of the fixed reads, nanoseconds; `None` without a file that allows direct reads.
    pub read_ns: Option<u64>,
}

impl Canary {
    /// Runs the loop, and the reads from this file.
    #[must_use]
    pub fn sing(file: Option<&Path>) -> Canary {
        let begin = clock::now();
        let sum =
            (0..ROUNDS).fold(1u64, |sum, round| sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(round));
        black_box(sum);
        Canary { cpu_ns: clock::now().saturating_sub(begin).0, read_ns: file.and_then(read) }
    }
}

/// Returns the nanoseconds of the reads if they bypassed the page cache.
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
