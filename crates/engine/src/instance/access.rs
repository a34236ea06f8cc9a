//! The way to the files, decided once: which I/O method, direct or not, and why.
//!
//! What somebody asked for by name is done or refused, never replaced; a default is
//! replaced by the next best, and the reason says so. `null` keeps the files in memory.

use crate::EngineError;
use crate::settings::{Setting, Settings};
use plumb_io::device::{self, DeviceDescription, DirectIoSupport, IoUringSupport};
use plumb_io::sim::MemoryDisk;
use plumb_io::{DirectIo, Disk, IoError, Method, MethodKind};
use plumb_units::Nanos;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The way to the files: what all sessions share.
#[derive(Debug, Clone)]
pub struct Access {
    /// In the file system, or in memory.
    pub disk: Disk,
    /// Sync, threads or io_uring.
    pub method: Method,
    /// Past the page cache or through it.
    pub direct: DirectIo,
    /// Why this method.
    pub method_reason: String,
    /// Why direct, or why not.
    pub direct_reason: String,
}

/// A request to stop, seen by every server between two pieces of work.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// # Errors
    /// [`EngineError::Interrupted`] once a stop was asked for.
    #[inline]
    pub fn check(&self) -> Result<(), EngineError> {
        if self.0.load(Relaxed) { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

/// Decides the I/O method and direct I/O for files in these directories.
pub(super) fn resolve<'a>(
    settings: &Settings,
    directories: impl Iterator<Item = &'a PathBuf>,
) -> Result<Access, EngineError> {
    let delay = Nanos(settings.number(Setting::DebugRequestDelay));
    if settings.word(Setting::IoMethod) == "null" {
        return Ok(Access {
            disk: Disk::Memory(MemoryDisk::new()),
            method: Method::start(MethodKind::Sync, 1)?.delayed(delay),
            direct: DirectIo::Off,
            method_reason: "null: files are kept in memory, so the run costs what the engine costs"
                .to_string(),
            direct_reason: "files in memory have no page cache to bypass".to_string(),
        });
    }
    let mut described: Vec<DeviceDescription> = Vec::new();
    for directory in directories {
        let existing = directory.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
        if !described.iter().any(|known| known.path == existing) {
            described.push(device::describe(existing).map_err(|error| IoError::Operation {
                operation: "examine",
                path: existing.to_path_buf(),
                source: std::io::Error::other(error),
            })?);
        }
    }
    let (direct, direct_reason) = resolve_direct(settings, &described)?;
    let (kind, method_reason) = resolve_method(settings, &described)?;
    let queue_depth = settings.number(Setting::IoQueueDepth) as usize;
    let method = Method::start(kind, queue_depth)?.delayed(delay);
    Ok(Access { disk: Disk::Kernel, method, direct, method_reason, direct_reason })
}

/// The same to read alone, and without a trace: what works is tried on one of the files, not by a probe beside them.
pub(super) fn resolve_to_read(settings: &Settings, file: Option<&Path>) -> Result<Access, EngineError> {
    settings.require_consistent()?;
    let options = settings.word(Setting::FilesystemioOptions);
    let mut direct = DirectIo::Off;
    let mut direct_reason = format!("filesystemio_options={options}: through the page cache");
    if matches!(options, "directio" | "setall") {
        let refused = file.and_then(|file| {
            let opened = Disk::Kernel.open(file, plumb_io::Access::Read, DirectIo::Required);
            opened.err().filter(|error| matches!(error, IoError::DirectUnsupported { .. }))
        });
        match refused {
            Some(error) if settings.is_explicit(Setting::FilesystemioOptions) => return Err(error.into()),
            Some(error) => direct_reason = format!("buffered: {error}"),
            None => {
                direct = DirectIo::Required;
                direct_reason = format!("filesystemio_options={options}");
            }
        }
    }
    let kind = match (options, settings.word(Setting::IoMethod)) {
        ("none" | "directio", _) | (_, "sync") => MethodKind::Sync,
        (_, "io_uring") => MethodKind::IoUring,
        _ => MethodKind::Threads,
    };
    let method = Method::start(kind, settings.number(Setting::IoQueueDepth) as usize)?
        .delayed(Nanos(settings.number(Setting::DebugRequestDelay)));
    let method_reason = "what works everywhere, or was asked for".to_string();
    Ok(Access { disk: Disk::Kernel, method, direct, method_reason, direct_reason })
}

fn resolve_direct(
    settings: &Settings,
    described: &[DeviceDescription],
) -> Result<(DirectIo, String), EngineError> {
    let options = settings.word(Setting::FilesystemioOptions);
    if !matches!(options, "directio" | "setall") {
        return Ok((DirectIo::Off, format!("filesystemio_options={options}: through the page cache")));
    }
    let refusal = described.iter().find_map(|device| match &device.direct_io {
        DirectIoSupport::No { why } => Some((device.path.clone(), why.clone())),
        DirectIoSupport::Yes { .. } => None,
    });
    match refusal {
        None => Ok((DirectIo::Required, format!("filesystemio_options={options}: O_DIRECT works here"))),
        Some((path, why)) if settings.is_explicit(Setting::FilesystemioOptions) => {
            Err(IoError::DirectUnsupported { path, why }.into())
        }
        Some((path, why)) => {
            Ok((DirectIo::Off, format!("buffered, because {} cannot do direct I/O: {why}", path.display())))
        }
    }
}

fn resolve_method(
    settings: &Settings,
    described: &[DeviceDescription],
) -> Result<(MethodKind, String), EngineError> {
    settings.require_consistent()?;
    let options = settings.word(Setting::FilesystemioOptions);
    let asked = settings.word(Setting::IoMethod);
    let asynchronous = matches!(options, "asynch" | "setall");
    let io_uring = described.iter().find_map(|device| match &device.io_uring {
        IoUringSupport::No { why, cure } => Some((why.clone(), cure.clone())),
        IoUringSupport::Yes { .. } => None,
    });
    match (asked, asynchronous) {
        (_, false) => {
            Ok((MethodKind::Sync, format!("filesystemio_options={options}: one request at a time")))
        }
        ("sync", true) => Ok((MethodKind::Sync, "io_method=sync was asked for".to_string())),
        ("threads", true) => Ok((MethodKind::Threads, "io_method=threads was asked for".to_string())),
        ("io_uring", true) => match io_uring {
            Some((why, cure)) => Err(IoError::MethodUnsupported { method: "io_uring", why, cure }.into()),
            None => Ok((MethodKind::IoUring, "io_method=io_uring was asked for, and works".to_string())),
        },
        _ => Ok(match io_uring {
            Some((why, cure)) => (
                MethodKind::Threads,
                format!("the next best, because io_uring does not work here: {why}; {cure}"),
            ),
            None => (MethodKind::IoUring, "the best, and a probe found it working here".to_string()),
        }),
    }
}
