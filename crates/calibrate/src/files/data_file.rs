//! The data file, which points read and write: made, filled and, with its directory, removed.
//!
//! It is written once from start to end with data that do not compress, in 1 MiB
//! requests, and made durable, before anything is measured: no point extends it,
//! allocates in it or reads what was never written. Where writing is slow it ends
//! at a time limit and is shorter than wished.
//!
//! ```text
//! SplitMix64 makes about 5 GB/s of data a core, so a disk below that is not held up
//! 2 GiB at 1 GB/s: 2 s    16 GiB at 1 GB/s: 16 s    any disk: at most the limit
//! ```
//!
//! Limits: a cache in front of the disk that is larger than the file holds all of
//! it. No interface tells how large such a cache is; `analysis/answer` looks for its effects.

use super::ScratchDirectory;
use crate::CalibrateError;
use crate::progress::StopCheck;
use crate::random::Random;
use plumb_events::{Event, IoStream, Recorder, Role, now};
use plumb_host::device::{DeviceDescription, DirectIoSupport, is_memory_file_system};
use plumb_host::readings;
use plumb_io::{Arena, DirectIo, Durability, File, Method, Operation, Request};
use plumb_units::{Bytes, Nanos};
use std::path::Path;
use std::sync::Arc;

const FILL_BYTES: u64 = Bytes::M;
const FILL_DEPTH: usize = 8;
/// The least that is written, however slow the disk.
const LENGTH_MIN: u64 = 64 * Bytes::M;
/// What stays free in the file system: it may be the root's.
const SPARE: u64 = 256 * Bytes::M;

/// The length of a file, and what bounds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub wanted: Bytes,
    /// Whether a shorter file will do where space is short.
    pub flexible: Flexible,
    /// Bytes that will be written beside it.
    pub beside: Bytes,
}

/// Whether a size was asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flexible {
    /// A default: may become less.
    Yes,
    /// Asked for: done or refused.
    No,
}

/// Refuses a place without a device, or where nothing may be written.
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

/// The length that fits: what is wanted, or for a default at most half of what is free.
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

/// The data file, open direct where that works, and through the page cache.
#[derive(Debug)]
pub(crate) struct DataFile {
    direct: Option<Arc<File>>,
    buffered: Arc<File>,
    length: Bytes,
}

impl DataFile {
    /// Its name in its directory.
    pub(crate) const NAME: &'static str = "data";

    /// Makes it in `scratch`, of `length` or as long as `time_max` allows.
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

    /// The file by one way; direct only where [`Self::has_direct`].
    pub(crate) fn by(&self, direct_io: DirectIo) -> &Arc<File> {
        match (direct_io, &self.direct) {
            (DirectIo::Required, Some(direct)) => direct,
            _ => &self.buffered,
        }
    }

    pub(crate) fn has_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Empties the page cache of it.
    pub(crate) fn drop_cache(&self) {
        if let Some(descriptor) = self.buffered.descriptor() {
            // Pages that stay show in the evidence: fewer bytes at the device than asked for.
            let _ = readings::drop_cache(descriptor);
        }
    }
}

/// What a file is filled with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    /// Data that do not compress, from this seed.
    Random(u64),
    Zeros,
}

/// How a file is filled.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    pub method: &'a Method,
    pub content: Content,
    /// When to end with a shorter file.
    pub time_max: Nanos,
    pub stop: &'a StopCheck<'a>,
}

impl Filling<'_> {
    /// Fills a file from its start, several requests at a time; returns how much was written.
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
            // Buffers are zeros until something is put into them.
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
    fn space_is_checked_and_an_error_names_needed_free_and_cure() {
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
    fn the_fill_does_not_compress_and_a_time_limit_shortens_it() {
        let disk = Disk::Memory(MemoryDisk::new());
        let scratch = ScratchDirectory::create(disk, Path::new("/memory")).expect("a directory");
        let method = Method::start(MethodKind::Sync, 8).expect("a method");
        let stop = StopCheck::new(&());
        let filling =
            Filling { method: &method, content: Content::Random(7), time_max: Nanos(0), stop: &stop };
        let none = DirectIoSupport::No { why: "memory".to_string() };
        let file = DataFile::create(&scratch, &none, Bytes(Bytes::G), &filling).expect("a file");
        assert_eq!(file.length(), Bytes(LENGTH_MIN));
        assert_eq!(file.by(DirectIo::Off).length().expect("a length"), LENGTH_MIN);
    }
}
