//! Prepares the state in which work on transactions starts, so that no run pays for the one before.
//!
//! ```text
//! log switch ──> checkpoint ──> copies made ──> pages dropped
//! ```
//!
//! The log continues at the start of a file, and all changed blocks are written, so that database
//! writers are idle. Filled log files are archived if archiving is on. Neither log nor tables are
//! in the page cache. Otherwise a buffered log would find pages of its last use there, and need not
//! read a block before a partial write. The state is checked, and receipts report it
//! (`assemble/receipts/start`).
//!
//! The runs of a study also wait for an idle device in between ([`settle`](plumb_study::settle));
//! this module does not.

use super::Place;
use crate::device_probe;
use crate::evidence::{self, LogStart};
use plumb_engine::EngineError;
use plumb_engine::redo::FIRST_BATCH;
use plumb_events::Session;
use plumb_host::readings::{self, Residency};
use plumb_io::File;

/// Prepares the state and returns what was found.
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

/// Sums the pages; `None` if one file's are unknown.
fn all(of: impl Iterator<Item = Option<Residency>>) -> Option<Residency> {
    of.reduce(|sum, next| {
        let (sum, next) = (sum?, next?);
        let (resident_pages, total_pages) =
            (sum.resident_pages + next.resident_pages, sum.total_pages + next.total_pages);
        Some(Residency { resident_pages, total_pages, ..sum })
    })?
}
