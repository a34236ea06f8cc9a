//! The state that work on transactions begins in, so that no run pays for the one before.
//!
//! ```text
//! log switch ──> checkpoint ──> copies made ──> pages dropped
//! ```
//! The log goes on at the beginning of a file, all changed blocks are written (so database writers are at rest), filled log files are copied
//! where copies are made, and neither log nor tables are in the page cache: a buffered log else finds the pages of its last use there, and
//! need not read what it writes a part of. What was reached is looked at, and receipts are made of it (`assemble/receipts/start`).
//!
//! That the device is idle is waited for between the runs of a study ([`settle`](plumb_study::settle)), and by nothing here.

use super::Place;
use crate::device_probe;
use crate::evidence::{self, LogStart};
use plumb_engine::EngineError;
use plumb_engine::redo::FIRST_BATCH;
use plumb_events::Session;
use plumb_host::readings::{self, Residency};
use plumb_io::File;

/// Reaches it, and says what was found.
///
/// # Errors
/// When the log cannot be switched, or a write fails.
pub(super) fn reach(place: &Place<'_>, session: &Session) -> Result<LogStart, EngineError> {
    let (instance, transactions) = (place.instance, place.transactions()?);
    transactions.switch_log_file(session)?;
    let log = transactions.log();
    let dropped =
        |file: &File| file.descriptor().and_then(|descriptor| readings::drop_cache(descriptor).ok());
    let cached = all(log.files().map(dropped));
    device_probe::make_cold(instance);
    let data = instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files);
    let (file, offset) = log.position();
    Ok(LogStart {
        file: file + 1,
        offset: offset - FIRST_BATCH,
        to_recover: log.to_recover(),
        blocks_written: instance.caches().changed().are_written(log.end()),
        cached,
        data_cached: all(data.map(|file| evidence::residency(&file.file))),
    })
}

/// The sum; none where one is not known.
fn all(of: impl Iterator<Item = Option<Residency>>) -> Option<Residency> {
    of.reduce(|sum, next| {
        let (sum, next) = (sum?, next?);
        let (resident_pages, total_pages) =
            (sum.resident_pages + next.resident_pages, sum.total_pages + next.total_pages);
        Some(Residency { resident_pages, total_pages, ..sum })
    })?
}
