//! Parameters of a copy that a study may vary, compared with the sessions' work and the new blocks.

use super::super::Evidence;
use super::{Ruling, counted};
use crate::evidence::CopyDone;
use plumb_engine::transaction::Logging;
use plumb_engine::view::copy::LoadDegree;
use plumb_events::{IoStream, Statistic};
use plumb_record::Receipt;
use plumb_units::{Bytes, RowCount};

pub(super) fn parameters(seen: &Evidence) -> Vec<Receipt> {
    let Some(done) = &seen.measured.outcome.copy else { return Vec::new() };
    let load = if done.load == LoadDegree::Serial { "serial" } else { "parallel" };
    let logging = if done.logging == Logging::Logging { "logging" } else { "nologging" };
    vec![
        sessions(seen, done).inside("load", load),
        target(done).inside("into", if done.old > 0 { "existing" } else { "new" }),
        logged(seen, done).inside("logging", logging),
        source(seen, done).inside("source", "read once, past the cache"),
        written(seen, done).inside("target blocks", "written once"),
    ]
}

/// Rows by session: one loads all rows, or each its own.
fn sessions(seen: &Evidence, done: &CopyDone) -> Ruling {
    let rows = |statistic: Statistic| -> Vec<u64> {
        let sessions = seen.measured.period.sessions.iter();
        sessions.map(|session| session.statistics[statistic as usize]).filter(|rows| *rows > 0).collect()
    };
    let (loaded, sent) = (rows(Statistic::LoadRows), rows(Statistic::QueueRows));
    let range = |rows: &[u64]| {
        let (least, most) = (rows.iter().min().unwrap_or(&0), rows.iter().max().unwrap_or(&0));
        format!("{} to {} rows each", RowCount(*least), RowCount(*most))
    };
    let mut evidence = format!("{} loaded {}", counted(loaded.len() as u64, "session"), range(&loaded));
    if !sent.is_empty() {
        evidence += &format!("; {} sent {}", counted(sent.len() as u64, "scan server"), range(&sent));
    }
    let (degree, total) = (seen.inside.degree, done.loaded.row_count);
    if total < degree as u64 * 10_000 {
        return Ruling::unknown(format!("{evidence}: there were not rows for more"));
    }
    // A session that starts when all extents are taken reads nothing.
    let right = match done.load {
        LoadDegree::Serial => loaded == [total] && (sent.len() > 1 || degree == 1),
        LoadDegree::Parallel => (loaded.len() > 1 || degree == 1) && sent.is_empty(),
    };
    Ruling::that(right && loaded.iter().sum::<u64>() == total, evidence)
}

fn target(done: &CopyDone) -> Ruling {
    let evidence = match done.old {
        0 => "no table of that name before".to_string(),
        old => format!("{} rows before, which stay", RowCount(old)),
    };
    Ruling::held(evidence)
}

/// Redo of the new blocks.
fn logged(seen: &Evidence, done: &CopyDone) -> Ruling {
    let redo = seen.measured.period.statistic(Statistic::RedoDirectBytes);
    let bytes = done.loaded.block_count * done.block_bytes;
    let evidence = format!("{} of redo for {} of blocks", Bytes(redo), Bytes(bytes));
    Ruling::that(if done.logged { redo >= bytes } else { redo == 0 }, evidence)
}

fn source(seen: &Evidence, done: &CopyDone) -> Ruling {
    let read = seen.measured.period.stream(IoStream::TableReads);
    let bytes = done.source_blocks * done.block_bytes;
    let evidence = format!(
        "{} read in {}, and the source has {}",
        Bytes(read.bytes),
        counted(read.count, "request"),
        Bytes(bytes)
    );
    Ruling::that(read.bytes == bytes, evidence)
}

/// A block of the target is written once.
fn written(seen: &Evidence, done: &CopyDone) -> Ruling {
    let written = seen.measured.period.stream(IoStream::DataWrites);
    let bytes = done.loaded.block_count * done.block_bytes;
    let evidence = format!(
        "{} written in {}, and the new blocks have {}",
        Bytes(written.bytes),
        counted(written.count, "request"),
        Bytes(bytes)
    );
    Ruling::that(written.bytes == bytes, evidence)
}
