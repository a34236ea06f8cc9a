//! I/O mode of the log files: past the page cache or through it, independent of the data files.
//!
//! `log_file_io=auto` follows `filesystemio_options`. `direct` and `buffered` affect the log alone,
//! so that a comparison of the two changes nothing else. A log block is as long as direct I/O
//! requires on this device, in either mode. So both modes write the same bytes, and a log can be
//! reopened in the other one.

use crate::EngineError;
use crate::access::Access;
use crate::settings::{LogFileIo, Settings};
use plumb_host::device::{self, DirectIoSupport};
use plumb_io::{DirectIo, IoError};
use std::path::Path;

const LOG_BLOCK_MIN: u64 = 512;

/// Returns the access to the log files, given the access to the data files.
///
/// # Errors
/// If direct I/O was requested for the log, but its directory does not support it.
pub(crate) fn of_log(settings: &Settings, access: &Access, home: &Path) -> Result<Access, EngineError> {
    let direct = match (settings.log.log_file_io, !access.disk.is_memory()) {
        (Some(LogFileIo::Buffered), _) | (_, false) => DirectIo::Off,
        (Some(LogFileIo::Direct), true) if access.direct == DirectIo::Off => match described(home) {
            DirectIoSupport::Yes { .. } => DirectIo::Required,
            DirectIoSupport::No { why } => {
                return Err(IoError::DirectUnsupported { path: home.to_path_buf(), why }.into());
            }
        },
        _ => access.direct,
    };
    let mut way = access.clone();
    way.direct = direct;
    Ok(way)
}

/// Returns the bytes of a log block in this directory, the least unit of a write.
pub(super) fn log_block(access: &Access, home: &Path) -> u64 {
    if access.disk.is_memory() {
        return LOG_BLOCK_MIN;
    }
    match described(home) {
        DirectIoSupport::Yes { memory_align, offset_align, .. } => {
            offset_align.0.max(memory_align.0).max(LOG_BLOCK_MIN)
        }
        DirectIoSupport::No { .. } if access.direct == DirectIo::Off => LOG_BLOCK_MIN,
        DirectIoSupport::No { .. } => 4096,
    }
}

fn described(home: &Path) -> DirectIoSupport {
    let unknown = |error: device::DeviceError| DirectIoSupport::No { why: error.to_string() };
    plumb_io::describe_device(home).map_or_else(unknown, |device| device.direct_io)
}
