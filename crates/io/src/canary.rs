//! Fixed work whose time shows the present speed of the processor and of a file's device.
//!
//! The loop is one chain of multiplications, so that its time depends on the processor, not on the
//! compiler or memory. The reads are direct, of one block each, one after the other, spread over
//! the file: the present cost of a random read. A file that does not allow direct reads gives no
//! figure, because a read from memory says nothing about the device.
//!
//! Cost: 5 ms of processor and 64 reads. It is part of this crate because a crate that is not
//! optimised would take ten times as long.

use crate::{Arena, DirectIo, Disk, OpenMode};
use plumb_events::clock;
use plumb_units::Nanos;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Multiplications, each dependent on the one before: 3 to 5 cycles each.
const ROUNDS: u64 = 3_000_000;
const READS: u64 = 64;
const READ_BYTES: usize = 8192;

/// Returns the time of the fixed loop, in nanoseconds of the monotonic clock.
pub fn loop_time() -> Nanos {
    let begin = clock::now();
    let sum =
        (0..ROUNDS).fold(1u64, |sum, round| sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(round));
    black_box(sum);
    clock::now().saturating_sub(begin)
}

/// Returns the time of the fixed reads from a file. `None` if the file is too small, cannot be
/// read, or does not allow reads that bypass the page cache.
pub fn read_time(path: &Path) -> Option<Nanos> {
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
    Some(clock::now().saturating_sub(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_or_missing_file_has_no_time() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("users01.dbf");
        std::fs::write(&file, vec![7; (READS as usize - 1) * READ_BYTES]).expect("a file");
        assert_eq!([file.as_path(), Path::new("/nowhere")].map(read_time), [None, None]);
        assert!(loop_time() > Nanos(0));
    }
}
