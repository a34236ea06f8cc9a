//! How large the files of a run must be, so that none grows while it is measured.
//!
//! Estimates err on the large side: a file that is too large costs seconds of
//! writing zeros before the run; one that is too small makes the run invalid.

use plumb_engine::instance::{InitialSizes, extent_bytes};
use plumb_engine::settings::Domain;
use plumb_engine::storage::block::HEADER_BYTES;
use plumb_engine::{Setting, Settings};
use plumb_units::Bytes;
use plumb_workload::TextShape;
use plumb_workload::slob::SlobSpec;

/// Bytes that a row of the sales table takes in a block, its slot included; 46 on average.
const SALES_ROW_BYTES: u64 = 49;
/// Bytes that an entry of its index takes in a leaf; 19 on average.
const INDEX_ENTRY_BYTES: u64 = 22;
/// Bytes of a sort record of its key.
const SORT_RECORD_BYTES: u64 = 16;
/// The least a merge can join at once, however small its memory.
const MERGE_WIDTH_MIN: u64 = 2;

/// The first sizes of the tablespaces for a sort of so many sales.
#[must_use]
pub fn of_sales(rows: u64, settings: &Settings) -> InitialSizes {
    let degree = settings.degree() as u64;
    let slack = extent_bytes(settings) * (2 * degree + settings.number(Setting::DataFiles));
    let blocks = |entry_bytes: u64| {
        let block = settings.number(Setting::DbBlockSize);
        // Less than one entry is lost at the end of a block.
        let per_block = ((block - HEADER_BYTES as u64) / entry_bytes).max(1);
        Bytes(rows.div_ceil(per_block).saturating_mul(block).saturating_add(slack))
    };
    InitialSizes {
        users: blocks(SALES_ROW_BYTES),
        temp: temp(rows, SORT_RECORD_BYTES, settings),
        indx: blocks(INDEX_ENTRY_BYTES),
    }
}

/// The first sizes of the tablespaces for a sort of a file of so many records of
/// so many bytes: runs are all that lies in them.
#[must_use]
pub fn of_records(count: u64, record_bytes: u64, settings: &Settings) -> InitialSizes {
    InitialSizes { users: Bytes(0), temp: temp(count, record_bytes, settings), indx: Bytes(0) }
}

/// Bytes that a line takes in a run beside its own: lengths and row id.
const LINE_HEAD_BYTES: u64 = 12;
/// Memory of the areas that lines and their heads take at least, in eighths, before any of them spills.
const AREA_EIGHTHS: u64 = 5;

/// The first sizes of the tablespaces for a sort of so many lines of so many bytes, their keys included: runs, where they
/// do not all fit in the areas.
#[must_use]
pub fn of_lines(count: u64, line_bytes: u64, settings: &Settings) -> InitialSizes {
    let record = line_bytes + LINE_HEAD_BYTES;
    let areas = settings.number(Setting::SortAreaSize).saturating_mul(settings.degree() as u64);
    let fits = count.saturating_mul(record) < areas / 8 * AREA_EIGHTHS;
    let temp = if fits { Bytes(1) } else { temp(count, record, settings) };
    InitialSizes { users: Bytes(1), temp, indx: Bytes(1) }
}

/// Bytes that a page view takes in a block of a table that transactions change, its slot and version included; 64 on average.
const VIEW_BYTES: u64 = 72;
/// Bytes that its entry takes in a leaf; 48 on average.
const VIEW_ENTRY_BYTES: u64 = 60;
/// What a transaction logs and reserves for its undoing, in lengths of its rows.
const REDO_OF_ROWS: u64 = 6;

/// The first sizes of the tablespaces for an import of so many page views. A tenth of each block stays free, and each session has
/// an extent of its own begun.
#[must_use]
pub fn of_import(rows: u64, sessions: u64, settings: &Settings) -> InitialSizes {
    let slack = extent_bytes(settings) * (settings.number(Setting::DataFiles) + 2);
    let block = settings.number(Setting::DbBlockSize);
    let users = rows.saturating_mul(VIEW_BYTES) / 8 * 10 + sessions * block;
    InitialSizes {
        users: Bytes(users.saturating_add(slack)),
        temp: Bytes(1),
        indx: Bytes((rows.saturating_mul(VIEW_ENTRY_BYTES) / 8 * 10).saturating_add(slack)),
    }
}

/// Bytes of a table of so many texts in blocks of any size. A row takes a slot; a block of 32K loses less than one row, and a chained row of a
/// block of 2K the end of the block before.
#[must_use]
pub fn of_texts(rows: u64, shape: TextShape) -> u64 {
    let bytes = rows.saturating_mul(shape.row_bytes() + 4);
    bytes.saturating_add(bytes / 4).saturating_add(8 * Bytes::M)
}

/// The size of a log file with which the transactions of an import fit the log, all under way at once.
#[must_use]
pub fn log_file_of_import(buffer: u64, sessions: u64, settings: &Settings) -> u64 {
    let all = buffer.saturating_mul(sessions).saturating_mul(REDO_OF_ROWS);
    (all / settings.number(Setting::LogFileGroups)).min(u64::MAX - Bytes::M).next_multiple_of(Bytes::M)
}

/// The longest arrays with which that is a size that a log file may have.
#[must_use]
pub fn buffer_of_import_max(sessions: u64, settings: &Settings) -> u64 {
    let Domain::Size(_, most) = Setting::LogFileSize.row().domain else { return u64::MAX };
    most.saturating_mul(settings.number(Setting::LogFileGroups)) / REDO_OF_ROWS / sessions.max(1) / Bytes::M
        * Bytes::M
}

/// Bytes of an entry of an index on a key of SLOB, its slot included: 20 at most, in leaves that are half full at worst.
const KEY_ENTRY_BYTES: u64 = 40;

/// The first sizes of the tablespaces for SLOB: a block a row, and a header and the rest of an extent for each table and index.
#[must_use]
pub fn of_slob(spec: &SlobSpec, settings: &Settings) -> InitialSizes {
    let extent = extent_bytes(settings);
    let files = settings.number(Setting::DataFiles);
    let scan = if spec.scan_pct > 0 { spec.scan_blocks } else { 0 };
    // A large segment grows by several extents at once, a thirty-second of it at most.
    let whole = |bytes: u64| {
        // Half of all that can be said is more than any device has.
        let bytes = bytes.min(u64::MAX / 2);
        (bytes + bytes / 32 + 2 * spec.block_bytes).next_multiple_of(extent)
    };
    let blocks = |count: u64| whole(count.saturating_mul(spec.block_bytes));
    let entries = spec.scale.saturating_mul(KEY_ENTRY_BYTES).saturating_add(4 * spec.block_bytes);
    let tables = blocks(spec.scale).saturating_mul(spec.schemas);
    let indexes = whole(entries).saturating_mul(spec.schemas);
    InitialSizes {
        users: Bytes(tables.saturating_add(blocks(scan)).saturating_add(extent * (files + 1))),
        temp: Bytes(1),
        indx: Bytes(indexes.saturating_add(extent * (files + 1))),
    }
}

/// Transactions that other sessions begin and end while the slowest one is under way. With twice as
/// many sessions as processors and a log that is always full, four were too few once in a minute.
const TRANSACTIONS_BESIDE: u64 = 6;

/// The size of a log file with which the log holds what all sessions write while the slowest
/// transaction or statement is under way. Each row may log its block, and reserves as much for its
/// undoing. The log is needed from the oldest transaction on, and readers find old versions in it.
#[must_use]
pub fn log_file_of_updates(spec: &SlobSpec, settings: &Settings) -> u64 {
    if spec.update_pct == 0 {
        return 0;
    }
    let row = 4 * spec.block_bytes;
    let all = row.saturating_mul(spec.work_unit).saturating_mul(spec.sessions);
    let groups = settings.number(Setting::LogFileGroups);
    let size = all.saturating_mul(TRANSACTIONS_BESIDE).div_ceil(groups);
    size.min(u64::MAX - Bytes::M).next_multiple_of(Bytes::M)
}

/// The whole input once as runs, and once more while intermediate merges have
/// written longer runs and not yet given back what they read. A server's runs
/// follow one another without loss; the result of an intermediate merge of two
/// runs or more ends inside an extent of its own.
fn temp(rows: u64, record_bytes: u64, settings: &Settings) -> Bytes {
    let degree = settings.degree() as u64;
    let extent = extent_bytes(settings);
    let slack = extent * (2 * degree + settings.number(Setting::DataFiles));
    let records = rows.saturating_mul(record_bytes);
    let bytes = records.saturating_add(records / 16);
    // Write buffers may come out of the area.
    let area = settings.number(Setting::SortAreaSize) * 4 / 5;
    let runs = bytes / area + degree;
    let block = settings.number(Setting::DbBlockSize);
    let request = (settings.number(Setting::DbFileMultiblockReadCount) * block).min(extent);
    let width = (area / request * 3 / 4).max(1);
    if runs / degree <= width {
        return Bytes(bytes.saturating_add(slack));
    }
    Bytes(bytes.saturating_mul(2).saturating_add(slack).saturating_add(runs / MERGE_WIDTH_MIN * extent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_workload::Work;
    use plumb_workload::slob::SLOB;

    /// With 64M files the sessions of the second one ended with "the redo log has no room" or
    /// "snapshot too old" within a minute.
    #[test]
    fn a_log_has_room_for_the_transactions_that_pass_the_slowest_one() {
        let size = |parameters: &[(&str, &str)]| {
            let mut work = Work::of(&SLOB);
            parameters.iter().for_each(|(name, value)| work.set(name, value).expect("in range"));
            let spec = SlobSpec::of(&work, 8192).expect("it can be done");
            Bytes(log_file_of_updates(&spec, &Settings::default())).as_setting()
        };
        assert_eq!(size(&[]), "64M", "the default of the setting");
        assert_eq!(size(&[("work-unit", "256"), ("update-pct", "20")]), "256M");
        assert_eq!(size(&[("work-unit", "256"), ("update-pct", "0")]), "0");
    }
}
