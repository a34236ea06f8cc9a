//! The data file of the points: made, filled and removed with its directory.
//!
//! Before any measurement it is written once from start to end with incompressible data, in 1 MiB
//! requests, and made durable. So no point extends it, allocates in it or reads a block that was
//! never written. On a slow device the file ends at a time limit, and is shorter than requested.
//!
//! ```text
//! SplitMix64 makes about 5 GB/s of data a core, so a disk below that is not held up
//! 2 GiB at 1 GB/s: 2 s    16 GiB at 1 GB/s: 16 s    any disk: at most the limit
//! ```
//!
//! Limits: a cache in front of the disk that is larger than the file holds all of it. No interface
//! tells the size of such a cache; `analysis/answer` looks for its effects.

use super::ScratchDirectory;
use crate::CalibrateError;
use crate::pace::Pace;
use crate::progress::StopCheck;
use crate::random::Random;
use plumb_events::{Event, IoStream, Recorder, Role, now};
use plumb_host::device::{DeviceDescription, DirectIoSupport, is_memory_file_system};
use plumb_host::readings;
use plumb_io::{Arena, DirectIo, Durability, File, Method, Operation, Request};
use plumb_units::{Bytes, Nanos};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a fill request.
const FILL_BYTES: u64 = Bytes::M;
/// Number of fill requests in flight.
const FILL_DEPTH: usize = 8;
/// Least number of bytes written, however slow the disk.
const LENGTH_MIN: u64 = 64 * Bytes::M;
/// Bytes that stay free in the file system, which may be the root's.
const SPARE: u64 = 256 * Bytes::M;

/// Length of a file, and its limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub wanted: Bytes,
    /// `Yes` if a shorter file is acceptable when space is short.
    pub flexible: Flexible,
    /// Bytes that will be written besides the file.
    pub beside: Bytes,
}

/// Origin of a file's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flexible {
    /// A default size, which may be reduced.
    Yes,
    /// A requested size, which is made or rejected.
    No,
}

/// Rejects a place without a device, or without permission to write.
pub(crate) fn check_place(device: &DeviceDescription) -> Result<(), CalibrateError> {
    let path = device.path.clone();
    let file_system = device.mount.file_system.clone();
    if is_memory_file_system(&file_system) {
        return Err(CalibrateError::InMemory { path, file_system });
    }
    if device.space.read_only || device.mount.options.iter().any(|option| option == "ro") {
        return Err(CalibrateError::ReadOnly { path });
    }
    Ok(())
}

/// Returns the length that fits: as wanted, or for a default at most half of the free space.
pub(crate) fn fitting_length(path: &Path, free: Bytes, size: Size) -> Result<Bytes, CalibrateError> {
    let needed = Bytes(size.wanted.0 + size.beside.0 + SPARE);
    let room = free.0.saturating_sub(size.beside.0 + SPARE);
    let offer = room.min(free.0 / 2) / FILL_BYTES * FILL_BYTES;
    if size.flexible == Flexible::Yes && offer >= LENGTH_MIN.min(size.wanted.0) {
        return Ok(Bytes(size.wanted.0.min(offer)));
    }
    if size.flexible == Flexible::No && needed <= free {
        return Ok(size.wanted);
    }
    let smallest = Bytes(LENGTH_MIN + size.beside.0 + SPARE);
    let cure = if offer >= LENGTH_MIN {
        format!("a file of {} would fit", Bytes(offer).as_setting())
    } else {
        format!("free some space ({smallest} at least)")
    };
    Err(CalibrateError::NotEnoughSpace { path: path.to_path_buf(), needed, free, cure })
}

/// The data file, opened direct if that works, and through the page cache.
#[derive(Debug)]
pub(crate) struct DataFile {
    direct: Option<Arc<File>>,
    buffered: Arc<File>,
    length: Bytes,
}

impl DataFile {
    /// Name of the file in its directory.
    pub(crate) const NAME: &'static str = "data";

    /// Makes the file in `scratch` with this length, or as long as the filling's time allows.
    pub(crate) fn create(
        scratch: &ScratchDirectory,
        direct: &DirectIoSupport,
        length: Bytes,
        filling: &Filling<'_>,
    ) -> Result<DataFile, CalibrateError> {
        let buffered = Arc::new(scratch.create_file(DataFile::NAME, DirectIo::Off)?);
        let direct = match direct {
            DirectIoSupport::Yes { .. } => {
                Some(Arc::new(scratch.reopen(&buffered, DirectIo::Required, Durability::OnSync)?))
            }
            DirectIoSupport::No { .. } => None,
        };
        let written = filling.fill(direct.as_ref().unwrap_or(&buffered), length)?;
        buffered.sync_data()?;
        Ok(DataFile { direct, buffered, length: written })
    }

    pub(crate) fn length(&self) -> Bytes {
        self.length
    }

    /// Returns the file for an access; direct only if [`Self::has_direct`].
    pub(crate) fn by(&self, direct_io: DirectIo) -> &Arc<File> {
        match (direct_io, &self.direct) {
            (DirectIo::Required, Some(direct)) => direct,
            _ => &self.buffered,
        }
    }

    pub(crate) fn has_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Drops the file from the page cache.
    pub(crate) fn drop_cache(&self) {
        if let Some(descriptor) = self.buffered.descriptor() {
            // The evidence shows pages that stayed: fewer bytes at the device than requested.
            let _ = readings::drop_cache(descriptor);
        }
    }
}

/// Content of a filled file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    /// Data that do not compress, from this seed.
    Random(u64),
    Zeros,
}

/// Options for filling a file.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    pub method: &'a Method,
    pub content: Content,
    /// Time after which the file ends early.
    pub time_max: Nanos,
    /// Most writes a second; `None`: no limit.
    pub max_rate: Option<u64>,
    /// Cancellation, checked between two requests.
    pub stop: &'a StopCheck<'a>,
}

impl Filling<'_> {
    /// Fills a file from its start with several requests in flight; returns the bytes written.
    pub(super) fn fill(&self, file: &Arc<File>, length: Bytes) -> Result<Bytes, CalibrateError> {
        let recorder = Recorder::new();
        let session = recorder.session(match self.content {
            Content::Random(_) => Role::CalibrationFill,
            Content::Zeros => Role::CalibrationLogFill,
        });
        let depth = FILL_DEPTH.min(self.method.queue_depth());
        let (arena, mut buffers) = Arena::buffers(FILL_BYTES as usize, depth)?;
        let mut channel = self.method.channel(&[&arena])?;
        let mut random = match self.content {
            Content::Random(seed) => Some(Random::part(seed, u64::MAX)),
            Content::Zeros => None,
        };
        let mut pace = Pace::of(self.max_rate, 1);
        let begin = now();
        let mut offset = 0;
        while offset < length.0 {
            self.stop.check()?;
            if offset >= LENGTH_MIN && now().saturating_sub(begin) >= self.time_max {
                break;
            }
            let mut buffer = match buffers.pop() {
                Some(buffer) => buffer,
                None => channel.wait(&session, Event::DataFileInitWrite)?.buffer,
            };
            let bytes = FILL_BYTES.min(length.0 - offset) as usize;
            // New buffers contain zeros.
            if let Some(random) = &mut random {
                random.fill(&mut buffer[..bytes]);
            }
            let request = Request {
                operation: Operation::Write,
                file: Arc::clone(file),
                offset,
                buffer,
                range: 0..bytes,
                event: Event::DataFileInitWrite,
                stream: IoStream::FileInit,
                tag: 0,
            };
            pace.wait();
            channel.submit(&session, request)?;
            channel.flush(&session)?;
            offset += bytes as u64;
        }
        while channel.outstanding() > 0 {
            channel.wait(&session, Event::DataFileInitWrite)?;
        }
        Ok(Bytes(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_io::{Disk, MethodKind, sim::MemoryDisk};

    fn check(free: u64, wanted: u64, flexible: Flexible, expected: Result<u64, &str>) {
        let size = Size { wanted: Bytes(wanted), flexible, beside: Bytes(64 * Bytes::M) };
        let found = fitting_length(Path::new("/data"), Bytes(free), size);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.0, expected),
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn missing_space_is_an_error_with_figures_and_cure() {
        let (g, m) = (Bytes::G, Bytes::M);
        check(100 * g, 2 * g, Flexible::Yes, Ok(2 * g));
        check(2 * g, 2 * g, Flexible::Yes, Ok(g));
        check(2 * g, g, Flexible::No, Ok(g));
        check(
            2 * g,
            4 * g,
            Flexible::No,
            Err("calibration under /data needs 4.31 GB and 2.00 GB are free: \
                 a file of 1G would fit"),
        );
        check(
            300 * m,
            2 * g,
            Flexible::Yes,
            Err("calibration under /data needs 2.31 GB and 300 MB are free: \
                 free some space (384 MB at least)"),
        );
    }

    #[test]
    fn memory_and_read_only_mounts_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut device = plumb_io::describe_device(directory.path()).expect("a description");
        device.mount.file_system = "tmpfs".to_string();
        assert!(matches!(check_place(&device), Err(CalibrateError::InMemory { .. })));
        device.mount.file_system = "ext4".to_string();
        device.space.read_only = true;
        assert!(matches!(check_place(&device), Err(CalibrateError::ReadOnly { .. })));
    }

    #[test]
    fn the_fill_is_incompressible_and_ends_at_its_limit() {
        let disk = Disk::Memory(MemoryDisk::new());
        let scratch = ScratchDirectory::create(disk, Path::new("/memory")).expect("a directory");
        let method = Method::start(MethodKind::Sync, 8).expect("a method");
        let stop = StopCheck::new(&());
        let filling = Filling {
            method: &method,
            content: Content::Random(7),
            time_max: Nanos(0),
            max_rate: None,
            stop: &stop,
        };
        let none = DirectIoSupport::No { why: "memory".to_string() };
        let file = DataFile::create(&scratch, &none, Bytes(Bytes::G), &filling).expect("a file");
        assert_eq!(file.length(), Bytes(LENGTH_MIN));
        assert_eq!(file.by(DirectIo::Off).length().expect("a length"), LENGTH_MIN);
    }
}
