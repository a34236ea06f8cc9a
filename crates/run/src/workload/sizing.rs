//! Sizes of a run's files, so that none grows while it is measured.
//!
//! Estimates are high: a file too large costs seconds of writing zeros before the run, one too
//! small makes the run invalid.

use plumb_engine::instance::InitialSizes;
use plumb_engine::settings::Domain;
use plumb_engine::storage::block::HEADER_BYTES;
use plumb_engine::{Setting, Settings};
use plumb_units::Bytes;
use plumb_workload::TextShape;
use plumb_workload::slob::SlobSpec;

/// Bytes of a sales row in a block, slot included; 46 on average.
const SALES_ROW_BYTES: u64 = 49;
/// Bytes of an index entry in a leaf; 19 on average.
const INDEX_ENTRY_BYTES: u64 = 22;
/// Bytes of a sort record with its key.
const SORT_RECORD_BYTES: u64 = 16;
/// Smallest number of runs that a merge joins, however small its memory.
const MERGE_WIDTH_MIN: u64 = 2;

/// Returns the bytes of all log files.
pub fn of_log(settings: &Settings) -> u64 {
    settings.number(Setting::LogFileSize).saturating_mul(settings.number(Setting::LogFileGroups))
}

/// Returns the first sizes of the tablespaces for a sort of this number of sales.
pub fn of_sales(rows: u64, settings: &Settings) -> InitialSizes {
    let degree = settings.degree() as u64;
    let slack = settings.extent_bytes() * (2 * degree + settings.number(Setting::DataFiles));
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

/// Returns the first sizes of the tablespaces for a sort of a file of records; they hold only runs.
pub fn of_records(count: u64, record_bytes: u64, settings: &Settings) -> InitialSizes {
    InitialSizes { users: Bytes(0), temp: temp(count, record_bytes, settings), indx: Bytes(0) }
}

/// Bytes of a line in a run besides its own: lengths and row id.
const LINE_HEAD_BYTES: u64 = 12;
/// Share of the areas, in eighths, that lines and their heads fill before any area spills.
const AREA_EIGHTHS: u64 = 5;

/// Returns the first sizes of the tablespaces for a sort of lines with their keys: runs, unless
/// all fit in the areas.
pub fn of_lines(count: u64, line_bytes: u64, settings: &Settings) -> InitialSizes {
    let record = line_bytes + LINE_HEAD_BYTES;
    let areas = settings.number(Setting::SortAreaSize).saturating_mul(settings.degree() as u64);
    let fits = count.saturating_mul(record) < areas / 8 * AREA_EIGHTHS;
    let temp = if fits { Bytes(1) } else { temp(count, record, settings) };
    InitialSizes { users: Bytes(1), temp, indx: Bytes(1) }
}

/// Bytes of a page view in a block of a transactional table, slot and
/// version included; 64 on average.
const VIEW_BYTES: u64 = 72;
/// Bytes of its index entry in a leaf; 48 on average.
const VIEW_ENTRY_BYTES: u64 = 60;
/// Bytes that a transaction logs and reserves for undo, in lengths of its rows.
const REDO_OF_ROWS: u64 = 6;

/// Returns the first sizes of the tablespaces for an import of page views. A tenth of each block
/// stays free, and each session has a started extent of its own.
pub fn of_import(rows: u64, sessions: u64, settings: &Settings) -> InitialSizes {
    let slack = settings.extent_bytes() * (settings.number(Setting::DataFiles) + 2);
    let block = settings.number(Setting::DbBlockSize);
    let users = rows.saturating_mul(VIEW_BYTES) / 8 * 10 + sessions * block;
    InitialSizes {
        users: Bytes(users.saturating_add(slack)),
        temp: Bytes(1),
        indx: Bytes((rows.saturating_mul(VIEW_ENTRY_BYTES) / 8 * 10).saturating_add(slack)),
    }
}

/// Returns the bytes of a table of texts in blocks of any size. A row takes a slot. A block of 32K
/// loses less than one row, and a chained row in blocks of 2K loses the end of the block before.
pub fn of_texts(rows: u64, shape: TextShape) -> u64 {
    let bytes = rows.saturating_mul(shape.row_bytes() + 4);
    bytes.saturating_add(bytes / 4).saturating_add(8 * Bytes::M)
}

/// Returns the size of log files that hold the transactions of all sessions at once.
pub fn log_file_of_import(buffer: u64, sessions: u64, settings: &Settings) -> u64 {
    let all = buffer.saturating_mul(sessions).saturating_mul(REDO_OF_ROWS);
    (all / settings.number(Setting::LogFileGroups)).min(u64::MAX - Bytes::M).next_multiple_of(Bytes::M)
}

/// Returns the longest arrays for which a log file of that size is possible.
pub fn buffer_of_import_max(sessions: u64, settings: &Settings) -> u64 {
    let Domain::Size(_, most) = Setting::LogFileSize.row().domain else { return u64::MAX };
    most.saturating_mul(settings.number(Setting::LogFileGroups)) / REDO_OF_ROWS / sessions.max(1) / Bytes::M
        * Bytes::M
}

/// Bytes of an index entry on a SLOB key: at most 20 with its slot, in leaves at worst half full.
const KEY_ENTRY_BYTES: u64 = 40;

/// Returns the first sizes of the tablespaces for SLOB. A row takes a block, and each table and
/// index a header and the rest of an extent.
pub fn of_slob(spec: &SlobSpec, settings: &Settings) -> InitialSizes {
    let extent = settings.extent_bytes();
    let files = settings.number(Setting::DataFiles);
    let scan = if spec.scan_pct > 0 { spec.scan_blocks } else { 0 };
    // A large segment grows by several extents at once, at most a thirty-second of it.
    let whole = |bytes: u64| {
        // Avoids overflow: no device has half of the largest number.
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

/// Transactions of other sessions that start and end during the slowest one. With twice as many
/// sessions as processors and a full log, four were too few once in a minute.
const TRANSACTIONS_BESIDE: u64 = 6;

/// Returns the size of log files that hold all sessions' writes during the slowest transaction or
/// statement. Each row may log its block, and reserves the same for undo. The log is needed from
/// the oldest transaction on, and readers find old versions in it.
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

/// Returns the temporary space. The input is stored once as runs, and twice during intermediate
/// merges, which write longer runs before they free the shorter ones. A server's runs follow one
/// another without loss. The result of an intermediate merge ends inside an extent of its own.
fn temp(rows: u64, record_bytes: u64, settings: &Settings) -> Bytes {
    let degree = settings.degree() as u64;
    let extent = settings.extent_bytes();
    let slack = extent * (2 * degree + settings.number(Setting::DataFiles));
    let records = rows.saturating_mul(record_bytes);
    let bytes = records.saturating_add(records / 16);
    // Write buffers may be taken from the area.
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
    fn a_log_has_room_for_transactions_during_the_slowest() {
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
