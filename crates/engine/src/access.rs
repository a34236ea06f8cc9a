//! Resources that the machine gives an instance: the way to its files, servers, memory.
//! Resolved once, at the start.
//!
//! An explicit setting is obeyed or rejected, never replaced; the error names the limit that was
//! hit, its value and the value needed. A default is replaced by the next best: a direct file by a
//! buffered one, io_uring by the next of [`plumb_io::Method::best_of`], a degree by the servers
//! that could be started. The reasons are kept for the report.
//!
//! Memory is checked before anything is made: see [`memory`].
//!
//! Threads are tried before any server waits for another: the number that a build needs is started
//! and ends at once. Other programs of the user can still take their place; a server that cannot
//! start is then an error of its operation ([`crate::parallel::servers`]).

pub mod memory;

use crate::EngineError;
use crate::settings::{IoMethod, Setting, Settings};
use plumb_host::device::{DeviceDescription, DirectIoSupport, IoUringSupport};
use plumb_host::limits::{self, Quota, Quotas};
use plumb_io::sim::MemoryDisk;
use plumb_io::{DirectIo, Disk, IoError, Method, MethodKind};
use plumb_units::{BlockSize, Nanos};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Threads besides servers and database writers: a counter of the laboratory, a watchdog.
const OTHER_THREADS: usize = 2;

/// Access to the machine, shared by all sessions.
#[derive(Debug, Clone)]
pub struct Access {
    /// The file system, or files in memory.
    pub disk: Disk,
    /// Method of requests: sync, threads or io_uring.
    pub method: Method,
    /// Bypass of the page cache, or not.
    pub direct: DirectIo,
    /// Reason for direct or buffered access.
    pub direct_reason: String,
    /// Servers of the instance's operations.
    pub servers: Servers,
    /// Warning that the memory of an operation may exceed the available memory.
    pub memory_warning: Option<String>,
    method_reason: String,
}

impl Access {
    /// Returns the reason for this method, and the sessions that had to use another one so far.
    pub fn method_reason(&self) -> String {
        let replaced = self.method.replaced().map_or(String::new(), |said| format!("; {said}"));
        format!("{}{replaced}", self.method_reason)
    }
}

impl Access {
    /// Rejects a block size that the devices cannot read and write directly, if
    /// the database's files are direct.
    ///
    /// # Errors
    /// If a device under one of the directories needs larger alignment.
    pub(crate) fn require_direct(
        &self,
        block_size: BlockSize,
        directories: &[PathBuf],
    ) -> Result<(), EngineError> {
        if self.direct == DirectIo::Off {
            return Ok(());
        }
        let described = describe(directories.iter())?;
        let refused = described.iter().find_map(|device| {
            refusal_of(&device.direct_io, block_size).map(|why| (device.path.clone(), why))
        });
        refused.map_or(Ok(()), |(path, why)| Err(IoError::DirectUnsupported { path, why }.into()))
    }
}

/// The servers of a parallel operation.
#[derive(Debug, Clone)]
pub struct Servers {
    /// Number of servers in each set.
    pub degree: usize,
    /// Reason for fewer servers than processors.
    pub reason: Option<String>,
    /// Quota of threads for the servers.
    pub(crate) threads: Quota,
}

/// Decides memory, method, direct I/O and servers for files in these directories. `disk` reaches
/// the files, unless the method keeps them in memory.
pub(crate) fn resolve<'a>(
    settings: &Settings,
    block_size: BlockSize,
    disk: Disk,
    directories: impl Iterator<Item = &'a PathBuf>,
) -> Result<Access, EngineError> {
    let memory = memory::require(settings, block_size)?;
    settings.require_ring_to_share()?;
    let quotas = quotas(settings);
    if settings.io.io_method == Some(IoMethod::Null) {
        let direct = (DirectIo::Off, "files in memory have no page cache to bypass".to_string());
        let reason = "null: files are kept in memory, so the run costs what the engine costs".to_string();
        let method = (Method::start(MethodKind::Sync, 1)?, reason);
        return assemble(settings, memory, Disk::Memory(MemoryDisk::new()), (direct, method, quotas));
    }
    let described = describe(directories)?;
    let direct = resolve_direct(settings, block_size, &described)?;
    let method = resolve_method(settings, &described, &quotas)?;
    assemble(settings, memory, disk, (direct, method, quotas))
}

/// Returns the access of an instance on a disk in memory: one request at a
/// time, one server, no threads.
pub(crate) fn in_memory(settings: &Settings, disk: &Arc<MemoryDisk>) -> Result<Access, EngineError> {
    let reason = "the files are in memory".to_string();
    Ok(Access {
        disk: Disk::Memory(Arc::clone(disk)),
        method: Method::start(MethodKind::Sync, 1)?,
        direct: DirectIo::Off,
        direct_reason: reason.clone(),
        servers: Servers { degree: 1, reason: None, threads: quotas(settings).threads },
        memory_warning: None,
        method_reason: reason,
    })
}

/// Decides the same for reading only, without leaving a trace: direct access is tried on a database
/// file, not by a probe file.
pub(crate) fn resolve_to_read(
    settings: &Settings,
    block_size: BlockSize,
    disk: Disk,
    file: Option<&Path>,
) -> Result<Access, EngineError> {
    let memory = memory::require(settings, block_size)?;
    let refused = file.filter(|_| settings.io.filesystemio_options.is_direct()).and_then(|file| {
        let opened = disk.open(file, plumb_io::OpenMode::Read, DirectIo::Required);
        opened.err().filter(|error| matches!(error, IoError::DirectUnsupported { .. }))
    });
    let direct = match refused {
        Some(error) if settings.is_explicit(Setting::FilesystemioOptions) => return Err(error.into()),
        Some(error) => (DirectIo::Off, format!("buffered: {error}")),
        None => resolve_direct(settings, block_size, &[])?,
    };
    let quotas = quotas(settings);
    let method = resolve_method(settings, &[], &quotas)?;
    assemble(settings, memory, disk, (direct, method, quotas))
}

fn quotas(settings: &Settings) -> Quotas {
    let quota = |most| if most == 0 { Quota::default() } else { Quota::of(most) };
    let debug = &settings.debug;
    Quotas { threads: quota(debug.debug_thread_limit), rings: quota(debug.debug_ring_limit) }
}

type Reasoned<T> = (T, String);

fn assemble(
    settings: &Settings,
    memory_warning: Option<String>,
    disk: Disk,
    (direct, method, quotas): (Reasoned<DirectIo>, Reasoned<Method>, Quotas),
) -> Result<Access, EngineError> {
    Ok(Access {
        disk,
        method: method.0.delayed(Nanos(settings.debug.debug_request_delay)),
        direct: direct.0,
        direct_reason: direct.1,
        servers: resolve_servers(settings, quotas.threads)?,
        memory_warning,
        method_reason: method.1,
    })
}

fn describe<'a>(
    directories: impl Iterator<Item = &'a PathBuf>,
) -> Result<Vec<DeviceDescription>, EngineError> {
    let mut described: Vec<DeviceDescription> = Vec::new();
    for directory in directories {
        let existing = directory.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
        if !described.iter().any(|known| known.path == existing) {
            let found = plumb_io::describe_device(existing);
            described
                .push(found.map_err(|error| {
                    IoError::operation("examine", existing, std::io::Error::other(error))
                })?);
        }
    }
    Ok(described)
}

/// Returns the servers that an operation can have.
fn resolve_servers(settings: &Settings, threads: Quota) -> Result<Servers, EngineError> {
    let degree = settings.degree();
    let beside = settings.cache.db_writer_processes + OTHER_THREADS;
    // Two sets of servers run at once; a serial operation is one thread.
    let needed = if degree == 1 { 1 } else { 2 * degree } + beside;
    let Err(shortage) = limits::try_threads(&threads, needed) else {
        return Ok(Servers { degree, reason: None, threads });
    };
    let started = shortage.started;
    if settings.is_explicit(Setting::ParallelDegree) {
        let what = format!("the {needed} threads that parallel_degree={degree} takes, but only {started}");
        let limit = format!("{}, or lower parallel_degree", shortage.limit);
        return Err(IoError::Threads { what, source: shortage.source, limit }.into());
    }
    let least = 1 + beside;
    if started < least {
        let what = format!("the {least} threads that a database takes at least, but only {started}");
        return Err(IoError::Threads { what, source: shortage.source, limit: limits::threads(least) }.into());
    }
    let fewer = ((started - beside) / 2).clamp(1, degree);
    let reason = format!(
        "{fewer} instead of {degree}: of {needed} threads {started} could be started: {}; {}",
        shortage.source, shortage.limit
    );
    Ok(Servers { degree: fewer, reason: Some(reason), threads })
}

fn resolve_direct(
    settings: &Settings,
    block_size: BlockSize,
    described: &[DeviceDescription],
) -> Result<(DirectIo, String), EngineError> {
    let options = settings.assigned(Setting::FilesystemioOptions);
    if !settings.io.filesystemio_options.is_direct() {
        return Ok((DirectIo::Off, format!("{options}: through the page cache")));
    }
    let refusal = described.iter().find_map(|device| {
        let why = refusal_of(&device.direct_io, block_size)?;
        Some((device.path.clone(), why))
    });
    match refusal {
        None => Ok((DirectIo::Required, format!("{options}: O_DIRECT works here"))),
        Some((path, why)) if settings.is_explicit(Setting::FilesystemioOptions) => {
            Err(IoError::DirectUnsupported { path, why }.into())
        }
        Some((path, why)) => {
            Ok((DirectIo::Off, format!("buffered, because {} cannot do direct I/O: {why}", path.display())))
        }
    }
}

/// Returns the reason for which blocks of this size cannot be direct; `None` if they can. Requests
/// and their buffers begin and end at blocks.
fn refusal_of(support: &DirectIoSupport, block_size: BlockSize) -> Option<String> {
    match support {
        DirectIoSupport::No { why } => Some(why.clone()),
        DirectIoSupport::Yes { memory_align, offset_align, .. } => {
            let align = memory_align.0.max(offset_align.0);
            (!(block_size.bytes() as u64).is_multiple_of(align)).then(|| {
                format!("it moves whole pieces of {align} bytes, and a block is {block_size}, which is no multiple")
            })
        }
    }
}

fn resolve_method(
    settings: &Settings,
    described: &[DeviceDescription],
    quotas: &Quotas,
) -> Result<(Method, String), EngineError> {
    settings.require_consistent()?;
    let depth = settings.io.io_queue_depth;
    let named = |kind, works: &str| {
        Ok((Method::start_within(kind, depth, quotas)?, format!("io_method={kind} was asked for{works}")))
    };
    let io_uring = described.iter().find_map(|device| match &device.io_uring {
        IoUringSupport::No { why, cure } => Some((why.clone(), cure.clone())),
        IoUringSupport::Yes { .. } => None,
    });
    match (settings.io.io_method, settings.io.filesystemio_options.is_asynchronous()) {
        (_, false) => {
            let method = Method::start(MethodKind::Sync, depth)?;
            let options = settings.assigned(Setting::FilesystemioOptions);
            Ok((method, format!("{options}: one request at a time")))
        }
        (Some(IoMethod::Sync), true) => named(MethodKind::Sync, ""),
        (Some(IoMethod::Threads), true) => named(MethodKind::Threads, ""),
        (Some(IoMethod::IoUring), true) => match io_uring {
            Some((why, cure)) => Err(IoError::MethodUnsupported { method: "io_uring", why, cure }.into()),
            None => named(MethodKind::IoUring, ", and works"),
        },
        _ => {
            let (best, reason) = match io_uring {
                Some((why, cure)) => (
                    MethodKind::Threads,
                    format!("the next best, because io_uring does not work here: {why}; {cure}"),
                ),
                None => (MethodKind::IoUring, "the best, and a probe found it working here".to_string()),
            };
            Ok((Method::best_of(best, depth, quotas), reason))
        }
    }
}

#[cfg(test)]
mod tests;
