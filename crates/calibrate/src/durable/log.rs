//! The logs that durable writes go to, and the few calls that reach them.
//!
//! `plumb-io` opens files direct or buffered and syncs them with fdatasync. A log
//! also needs `O_DSYNC`, `RWF_DSYNC`, fsync and fallocate: this file makes those
//! calls, by safe interfaces and on files of our own [`Home`] only. What was asked
//! of an open is read back from the kernel before the first write.

use super::{DurableMethod, DurablePoint, Space};
use crate::home::Home;
use crate::{Access, CalibrateError};
use plumb_io::{DirectIo, File, receipt};
use plumb_units::Bytes;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{ReadWriteFlags, pwritev2};
use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is written with zeros at a time.
const ZEROS_BYTES: usize = 1 << 20;

/// The logs of a calibration.
#[derive(Debug)]
pub(crate) struct Logs {
    /// The log that is written with zeros before; `None` where there is no kernel's file.
    zeroed: Option<File>,
    bytes: Bytes,
}

impl Logs {
    /// No logs: nothing durable is measured.
    pub(crate) fn none() -> Logs {
        Logs { zeroed: None, bytes: Bytes(0) }
    }

    /// Makes the zeroed log; allocated ones, of the same length, are made when needed.
    pub(crate) fn create(home: &Home, bytes: Bytes) -> Result<Logs, CalibrateError> {
        if home.in_memory() {
            return Ok(Logs::none());
        }
        let zeroed = home.create_file("log", DirectIo::Off)?;
        let file = open(zeroed.path(), 0)?;
        let zeros = vec![0u8; ZEROS_BYTES];
        let mut offset = 0;
        while offset < bytes.0 {
            let part = (bytes.0 - offset).min(ZEROS_BYTES as u64) as usize;
            file.write_all_at(&zeros[..part], offset)
                .map_err(|error| failed("fill", zeroed.path(), error))?;
            offset += part as u64;
        }
        zeroed.sync_data()?;
        Ok(Logs { zeroed: Some(zeroed), bytes })
    }
}

/// A log that is open in the way a point asks for.
#[derive(Debug)]
pub(super) struct LogFile {
    point: DurablePoint,
    path: PathBuf,
    file: std::fs::File,
    /// Writes that fit.
    writes: u64,
}

impl LogFile {
    pub(super) fn open(home: &Home, logs: &Logs, point: DurablePoint) -> Result<LogFile, CalibrateError> {
        let path = match (point.space, &logs.zeroed) {
            (Space::Zeroed, Some(zeroed)) => zeroed.path().to_path_buf(),
            _ => allocated(home, logs.bytes)?,
        };
        let direct = if point.access == Access::Direct { libc::O_DIRECT } else { 0 };
        let dsync = if point.method == DurableMethod::ODsync { libc::O_DSYNC } else { 0 };
        let file = open(&path, direct | dsync)?;
        let flags =
            receipt::open_flags(file.as_fd()).map_err(|error| failed("read the flags of", &path, error))?;
        if flags.direct != (direct != 0) || flags.dsync != (dsync != 0) {
            let found = io::Error::other(format!("the kernel has it open with flags {:o}", flags.raw));
            return Err(failed("open as asked", &path, found));
        }
        Ok(LogFile { point, path, file, writes: logs.bytes.0 / point.request_bytes })
    }

    /// Whether one more may be written after so many: an allocated log is written once.
    pub(super) fn has_room(&self, writes: u64) -> bool {
        self.point.space == Space::Zeroed || writes < self.writes
    }

    /// Writes at the next place and returns when it is durable.
    pub(super) fn write(&self, bytes: &[u8], number: u64) -> Result<(), CalibrateError> {
        let offset = number % self.writes.max(1) * self.point.request_bytes;
        let done = match self.point.method {
            DurableMethod::None | DurableMethod::ODsync => self.file.write_all_at(bytes, offset),
            DurableMethod::Fdatasync => {
                self.file.write_all_at(bytes, offset).and_then(|()| self.file.sync_data())
            }
            DurableMethod::Fsync => self.file.write_all_at(bytes, offset).and_then(|()| self.file.sync_all()),
            DurableMethod::RwfDsync => self.write_with_flag(bytes, offset),
        };
        done.map_err(|error| failed("write", &self.path, error))
    }

    fn write_with_flag(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = pwritev2(&self.file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC)?;
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Removes an allocated log: its blocks are written now.
    pub(super) fn close(self, home: &Home) -> Result<(), CalibrateError> {
        if self.point.space == Space::Allocated {
            home.remove_file(&self.path)?;
        }
        Ok(())
    }
}

fn allocated(home: &Home, bytes: Bytes) -> Result<PathBuf, CalibrateError> {
    let file = home.create_file("log-allocated", DirectIo::Off)?;
    let path = file.path().to_path_buf();
    let Some(descriptor) = file.descriptor() else { return Ok(path) };
    fallocate(descriptor, FallocateFlags::empty(), 0, bytes.0)
        .map_err(|errno| failed("allocate space for", &path, errno.into()))?;
    // The length and the map are durable before the first write is timed.
    file.sync_data()?;
    Ok(path)
}

fn open(path: &Path, flags: i32) -> Result<std::fs::File, CalibrateError> {
    OpenOptions::new()
        .write(true)
        .custom_flags(flags | libc::O_NOFOLLOW)
        .open(path)
        .map_err(|error| failed("open", path, error))
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> CalibrateError {
    CalibrateError::Log { operation, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::*;
    use crate::random::Random;
    use crate::watch::Guard;
    use plumb_io::Disk;
    use plumb_units::Nanos;

    fn check(method: DurableMethod, space: Space) {
        let under = tempfile::tempdir().expect("a directory");
        let home = Home::create(Disk::Kernel, under.path()).expect("a home");
        let logs = Logs::create(&home, Bytes(Bytes::M)).expect("logs");
        let point = DurablePoint { method, access: Access::Buffered, request_bytes: 4096, space };
        let time = Nanos(10_000_000);
        let found =
            run(&home, &logs, point, Random::seeded(1), time, &Guard::new(&())).expect("a measurement");
        assert_eq!(found.evidence.asked.write_bytes, found.evidence.asked.requests * 4096);
        assert!(found.evidence.asked.requests > 0);
        if space == Space::Allocated {
            assert!(found.evidence.asked.requests <= 256, "an allocated log is written once");
            assert!(!home.directory().join("log-allocated").exists());
        }
    }

    #[test]
    fn every_way_writes_both_logs() {
        for method in DurableMethod::ALL {
            check(method, Space::Zeroed);
            check(method, Space::Allocated);
        }
    }
}
